"""The summary of dcrf batch: its numbers against naive ones from the label maps, and its pages.

Nothing here shares code with the command: labels are read from the PNGs it wrote, the truth is the one
the data set was made of, and bands are found by comparing every pixel with every other."""

import base64
import csv
import html.parser
import io
import json
import os
import re
import unittest
import xml.etree.ElementTree as tree

import datasets
import formats
from case import Case

METHODS = ["unary", "mf5", "lp", "mf5+cliques"]
BAND_PX = 4
SUMMARY = ["summary.csv", "summary.json", "summary.md"]
SVG = "{http://www.w3.org/2000/svg}"


# ---- naive scores ---------------------------------------------------------------------------------


def label_rows(data):
    return [[p[0] for p in row] for row in formats.read_png(data)[4]]


def naive_confusion(pairs, classes):
    matrix = [[0] * classes for _ in range(classes)]
    for truth, labels in pairs:
        for truth_row, label_row in zip(truth, labels):
            for t, l in zip(truth_row, label_row):
                if t != datasets.VOID:
                    matrix[t][l] += 1
    return matrix


def ratio(part, whole):
    return part / whole if whole else None


def mean(values):
    values = [v for v in values if v is not None]
    return sum(values) / len(values) if values else None


def class_accuracies(matrix):
    return [ratio(row[i], sum(row)) for i, row in enumerate(matrix)]


def ious(matrix):
    found = []
    for i, row in enumerate(matrix):
        union = sum(row) + sum(other[i] for other in matrix) - row[i]
        found.append(ratio(row[i], union) if sum(row) else None)
    return found


def naive_band(pairs, width_px):
    right = pixels = 0
    for truth, labels in pairs:
        places = [(x, y) for y in range(len(truth)) for x in range(len(truth[0]))]
        for x, y in places:
            near = any((x - u)**2 + (y - v)**2 <= width_px**2 and truth[v][u] != truth[y][x]
                       for u, v in places)
            if near and truth[y][x] != datasets.VOID:
                pixels += 1
                right += truth[y][x] == labels[y][x]
    return ratio(right, pixels)


# ---- pages ----------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """Every tag is closed in its turn; what was text is kept."""
    SINGLE = {"meta", "img", "input", "br"}

    def __init__(self, source):
        super().__init__()
        self.open, self.text, self.addresses, self.tags = [], [], [], []
        self.feed(source)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [v for k, v in attributes if k in ("src", "href")]
        if tag not in self.SINGLE:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)


class ReportCase(Case):
    def setUp(self):
        super().setUp()
        self.data = self.path("data")

    def batch(self, *more, methods=METHODS, out="out"):
        return ["batch", self.data, "--methods", ",".join(methods), "--out", self.path(out), "--band",
                str(BAND_PX), "--quiet", *more]

    def out(self, name, out="out"):
        return self.read(os.path.join(out, name))

    def table(self, name="summary.csv"):
        return list(csv.DictReader(io.StringIO(self.out(name).decode(), newline="")))

    def svg(self, name):
        root = tree.fromstring(self.out(name))
        self.assertEqual(root.tag, SVG + "svg")
        return root

    def texts(self, root):
        return [t.text for t in root.iter(SVG + "text")]

    def page(self):
        source = self.out("report.html").decode()
        page = Page(source)
        for address in page.addresses:
            self.assertTrue(address.startswith("data:image/"), address[:60])
        self.assertIsNone(re.search(r"\b-?(nan|inf)\b", re.sub(r"base64,[^']*", "", source)))
        return page


# ---- numbers --------------------------------------------------------------------------------------


class NumberTest(ReportCase):
    def setUp(self):
        super().setUp()
        self.names = datasets.make(self.data, count=3, width=16, height=14)

    def pairs(self, method, names=None):
        return [(label_rows(self.read("data/gt/%s.png" % name)),
                 label_rows(self.out("results/%s/%s.png" % (method, name))))
                for name in names or self.names]

    def results(self, method, names=None):
        return [json.loads(self.out("results/%s/%s.json" % (method, name))) for name in names or self.names]

    def agrees(self, text, value):
        """CSV has twelve digits."""
        if value is None:
            self.assertEqual(text, "")
        else:
            self.assertAlmostEqual(float(text), value, delta=1e-11 * max(1, abs(value)))

    def check_scores(self, row, method, names=None):
        matrix = naive_confusion(self.pairs(method, names), len(datasets.CLASSES))
        right, pixels = sum(matrix[i][i] for i in range(len(matrix))), sum(map(sum, matrix))
        self.assertGreater(pixels, right)
        self.agrees(row["pixel_accuracy"], right / pixels)
        self.agrees(row["mean_class_accuracy"], mean(class_accuracies(matrix)))
        self.agrees(row["mean_iou"], mean(ious(matrix)))
        for name, value in zip(datasets.CLASSES, ious(matrix)):
            self.agrees(row["iou_" + name], value)
        for k in range(1, BAND_PX + 1):
            self.agrees(row["band_accuracy_%d" % k], naive_band(self.pairs(method, names), k))

    def check_means(self, row, results):
        self.assertEqual(int(row["images"]), len(results))
        for column in ["energy", "energy_rounded", "lower_bound", "relative_gap", "iterations"]:
            self.agrees(row[column], mean([r[column] for r in results]))
        self.assertEqual(int(row["constant"]), sum(r["constant"] for r in results))

    def test_csv(self):
        self.good(*self.batch())
        rows = self.table()
        self.assertEqual([r["method"] for r in rows], METHODS)
        for row in rows:
            self.check_scores(row, row["method"])
            self.check_means(row, self.results(row["method"]))
        self.assertEqual({r["iou_absent"] for r in rows}, {""})
        for column in ("lower_bound", "proven_share"):
            self.assertEqual([bool(r[column]) for r in rows], [m == "lp" for m in METHODS])
        proven = [r["proven"] for r in self.results("lp")]
        self.assertTrue(all(0 <= share <= 1 for share in proven) and any(proven), proven)
        self.agrees(rows[METHODS.index("lp")]["proven_share"], mean(proven))

    def test_json_says_the_same(self):
        self.good(*self.batch("--split", "test"))
        found = json.loads(self.out("summary.json"))
        self.assertEqual((found["dataset"], found["split"], found["images"], found["classes"]),
                         ("data", "test", 2, datasets.CLASSES))
        self.assertEqual((found["band_px"], found["failures"]), (BAND_PX, []))
        self.assertIn("bilateral", found["settings"])
        for row, method in zip(self.table(), found["methods"]):
            matrix = naive_confusion(self.pairs(method["method"], self.names[1:]), len(datasets.CLASSES))
            self.assertEqual(method["confusion"], matrix)
            self.assertEqual(method["class_accuracy"], class_accuracies(matrix))
            for key in ["energy", "lower_bound", "relative_gap", "pixel_accuracy", "mean_iou"]:
                self.agrees(row[key], method[key])
            for name, value in zip(datasets.CLASSES, method["iou"]):
                self.agrees(row["iou_" + name], value)
            for k, value in enumerate(method["band_accuracy"]):
                self.agrees(row["band_accuracy_%d" % (k + 1)], value)

    def test_markdown_says_the_same(self):
        self.good(*self.batch())
        lines = self.out("summary.md").decode().splitlines()
        for row in self.table():
            cells = [[c.strip() for c in line.split("|")] for line in lines
                     if line.startswith("| %s |" % row["method"])][0]
            self.assertEqual(cells[2], row["images"])
            self.assertEqual(cells[3], "%.2f" % float(row["energy"]))
            self.assertEqual(cells[5], "%.2f" % float(row["lower_bound"]) if row["lower_bound"] else "")
            self.assertEqual(cells[7], "%.2f" % (100 * float(row["proven_share"])) if row["proven_share"] else "")
            self.assertEqual(cells[10], "%.2f" % (100 * float(row["changed_share"])))
            self.assertEqual(cells[11], "%.2f" % (100 * float(row["pixel_accuracy"])))
            self.assertEqual(cells[13], "%.2f" % (100 * float(row["mean_iou"])))
        of_class = [line for line in lines if line.startswith(r"| a\<b\&c |")][0]
        self.assertEqual([c.strip() for c in of_class.split("|")[2:-1]],
                         ["%.2f" % (100 * float(r["iou_a<b&c"])) for r in self.table()])
        self.assertIn("| absent |" + " |" * len(METHODS), lines)

    def verdict(self, *more):
        self.good(*self.batch(*more, methods=["mf5", "qp"]))
        text = self.out("summary.md").decode().split("\n\n")[1].replace("\n", " ")
        self.assertIn(text, " ".join(self.page().text))
        return text

    def test_verdict(self):
        text = self.verdict("--spatial", "2,0.2", "--bilateral", "8,20,0.3")
        iou = {r["method"]: round(100 * float(r["mean_iou"]), 2) for r in self.table()}
        best = max(["mf5", "qp"], key=lambda m: iou[m])
        self.assertGreater(iou[best], iou["unary"])
        self.assertEqual(text, "%s has the best mean IoU, %.2f %%: %.2f points above the unaries alone (%.2f %%)."
                         % (best, iou[best], iou[best] - iou["unary"], iou["unary"]))

    def test_verdict_where_every_method_is_worse(self):
        text = self.verdict("--spatial", "9,90", "--bilateral", "none")
        iou = {r["method"]: round(100 * float(r["mean_iou"]), 2) for r in self.table()}
        self.assertLess(max(iou["mf5"], iou["qp"]), iou["unary"])
        self.assertTrue(text.startswith("Every method is worse than the unaries alone, which have a mean IoU "
                                        "of %.2f %%" % iou["unary"]), text)

    def test_a_failure_counts_for_no_method(self):
        with open(self.path("data/images/p1.png"), "r+b") as stream:
            stream.truncate(90)
        self.run_dcrf(*self.batch())
        left = ["p0", "p2"]
        for row in self.table():
            self.check_scores(row, row["method"], left)
            self.check_means(row, self.results(row["method"], left))
        failures = json.loads(self.out("summary.json"))["failures"]
        self.assertEqual([f["image"] for f in failures], ["p1"])
        self.assertIn("truncated", failures[0]["message"])
        self.assertIn("\n* p1: ", self.out("summary.md").decode())
        self.assertIn(failures[0]["message"], self.page().text)
        self.assertEqual(len(self.svg("pictures.svg").findall(SVG + "image")), 2 * (len(METHODS) + 2))

    def test_times_are_a_file_of_their_own(self):
        self.good(*self.batch())
        for row in self.table("times.csv"):
            results = self.results(row["method"])
            parts = [mean([r[key] for r in results]) for key in ("setup_s", "solve_s", "polish_s")]
            for key, value in zip(("setup_s", "solve_s", "polish_s"), parts):
                self.agrees(row[key], value)
            self.agrees(row["total_s"], sum(parts))
        for name in SUMMARY:
            self.assertNotIn(b"_s\"", self.out(name))

    def test_the_same_bytes_again(self):
        self.good(*self.batch())
        self.good(*self.batch(out="other"))
        self.good(*self.batch())
        for name in SUMMARY + ["pictures.svg"]:
            self.assertEqual(self.out(name), self.out(name, "other"), name)


# ---- looks ----------------------------------------------------------------------------------------


class LooksTest(ReportCase):
    def make(self, **more):
        self.names = datasets.make(self.data, **more)

    def picture(self, image):
        return base64.b64decode(image.get("href").split(",", 1)[1])

    def test_pictures(self):
        self.make(count=3)
        self.good(*self.batch("--pictures", "2"))
        root = self.svg("pictures.svg")
        images = root.findall(SVG + "image")
        self.assertEqual(len(images), 2 * (len(METHODS) + 2))
        shown = {i.find(SVG + "title").text: self.picture(i) for i in images}
        for name in self.names[:2]:
            self.assertEqual(shown[name + ": image"], self.read("data/images/%s.png" % name))
            for method in METHODS:
                self.assertEqual(label_rows(shown["%s: %s" % (name, method)]),
                                 label_rows(self.out("results/%s/%s.png" % (method, name))))
            truth = label_rows(self.read("data/gt/%s.png" % name))
            drawn = label_rows(shown[name + ": truth"])
            hatched = [[datasets.VOID if v >= 254 else v for v in row] for row in drawn]
            self.assertEqual(hatched, truth)
            self.assertEqual({v for row in drawn for v in row if v >= 254}, {254, 255})
        texts = self.texts(root)
        self.assertEqual(texts[:2 + len(METHODS)], ["image", "truth", *METHODS])
        for text in ["sky", "a<b&c", "road", "void"]:
            self.assertIn(text, texts)

    def test_pictures_begin_with_the_largest_change(self):
        self.make(count=4)
        self.good(*self.batch("--pictures", "3"))
        shares = {}
        for name in self.names:
            unary = label_rows(self.out("results/unary/%s.png" % name))
            found = [label_rows(self.out("results/%s/%s.png" % (m, name))) for m in METHODS]
            shares[name] = max(sum(a != b for r, s in zip(unary, labels) for a, b in zip(r, s))
                               for labels in found) / (len(unary) * len(unary[0]))
        order = sorted(self.names, key=lambda name: (-shares[name], name))[:3]
        self.assertGreater(len(set(shares.values())), 1)
        captions = [t for t in self.texts(self.svg("pictures.svg")) if "of the pixels change" in t]
        self.assertEqual(captions, ["%s: up to %.1f %% of the pixels change" % (n, 100 * shares[n])
                                    for n in order])

    def test_curves(self):
        self.make(count=3)
        self.good(*self.batch("--curves", "2", methods=["unary", "mf5", "mf7", "lp", "lp+cliques"]))
        root = self.svg("curves.svg")
        texts = self.texts(root)
        for text in ["Without cliques", "With cliques", "mf5", "mf7", "lp, lower bound", "lp+cliques"]:
            self.assertIn(text, texts)
        self.assertEqual([texts.count(name) for name in self.names], [2, 2, 0])
        ends = list(root.iter(SVG + "circle"))
        self.assertEqual(len(ends), 2 * 4)
        for end in ends:
            method, energy = re.fullmatch(r"(\S+): (\S+) after \S+ s", end.find(SVG + "title").text).groups()
            self.assertIn(method, ["mf5", "mf7", "lp", "lp+cliques"])
            self.assertGreater(float(energy), 0)
        for path in root.iter(SVG + "path"):
            numbers = [float(n) for n in re.findall(r"-?[\d.]+", path.get("d"))]
            self.assertTrue(numbers and all(-1e5 < n < 1e5 for n in numbers))

    def test_page(self):
        self.make(count=2)
        self.good(*self.batch())
        page = self.page()
        for text in ["data", "a<b&c", "mf5+cliques", "2 images, 4 labels; 4 methods", "bilateral"]:
            self.assertIn(text, page.text)
        self.assertEqual(page.tags.count("svg"), 3)
        for part in re.findall(r"<svg.*?</svg>", self.out("report.html").decode(), re.S):
            tree.fromstring(part)

    def test_without_truth(self):
        self.make(count=2, truth=False)
        self.good(*self.batch())
        self.assertEqual(list(self.table()[0]), ["method", "images", "energy", "energy_rounded", "lower_bound",
                                                 "relative_gap", "proven_share", "iterations", "constant",
                                                 "changed_share"])
        self.assertNotIn("iou", json.loads(self.out("summary.json"))["methods"][0])
        self.assertNotIn("IoU", self.out("summary.md").decode())
        self.assertNotIn("truth", self.texts(self.svg("pictures.svg")))
        self.assertNotIn("IoU", " ".join(self.page().text))

    def test_one_method_on_one_image(self):
        self.make(count=1)
        self.good(*self.batch(methods=["qp"]))
        self.assertEqual([r["method"] for r in self.table()], ["unary", "qp"])
        self.assertIn("qp", self.texts(self.svg("curves.svg")))
        self.svg("pictures.svg")
        self.page()

    def test_sixteen_methods(self):
        self.make(count=1)
        methods = ["mf%d" % k for k in range(1, 17)]
        self.good(*self.batch(methods=methods))
        self.assertEqual([r["method"] for r in self.table()], ["unary", *methods])
        for name in ["curves.svg", "pictures.svg"]:
            for method in methods:
                self.assertIn(method, self.texts(self.svg(name)))
        self.page()

    def test_nothing_to_draw(self):
        self.make(count=2)
        self.good(*self.batch("--curves", "0", "--pictures", "0"))
        self.assertIn("No curves were recorded.", self.texts(self.svg("curves.svg")))
        self.assertIn("There are no pictures.", self.texts(self.svg("pictures.svg")))
        self.page()

    def test_no_image_is_good(self):
        self.make(count=2)
        for name in self.names:
            self.write("data/images/%s.png" % name, b"no picture")
        self.assertNotEqual(self.run_dcrf(*self.batch()).returncode, 0)
        for row in self.table():
            self.assertEqual((row["images"], row["energy"], row["mean_iou"]), ("0", "", ""))
        found = json.loads(self.out("summary.json"))
        self.assertEqual([m["mean_iou"] for m in found["methods"]], [None] * len(METHODS))
        self.assertEqual([f["image"] for f in found["failures"]], self.names)
        for name in ["curves.svg", "pictures.svg"]:
            self.svg(name)
        self.page()

    def test_names_are_text(self):
        """Names of images and classes that mean something in CSV, Markdown, HTML or XML."""
        self.make(count=1)
        name, label = "x & <i>'y' | *z*", 'quoted "sky", blue'
        for folder, ending in [("images", "png"), ("unaries", "npy"), ("gt", "png")]:
            os.rename(self.path("data/%s/p0.%s" % (folder, ending)),
                      self.path("data/%s/%s.%s" % (folder, name, ending)))
        self.write("data/classes.txt", "\n".join([label, *datasets.CLASSES[1:]]).encode() + b"\n")
        self.good(*self.batch(methods=["mf5"]))
        self.assertIn("iou_" + label, self.table()[0])
        self.assertIn(label, json.loads(self.out("summary.json"))["classes"])
        self.assertIn(name, self.texts(self.svg("curves.svg")))
        self.assertTrue([t for t in self.texts(self.svg("pictures.svg")) if t.startswith(name + ": up")])
        self.assertIn(label, self.texts(self.svg("pictures.svg")))
        self.assertIn(label, self.page().text)


if __name__ == "__main__":
    unittest.main()
