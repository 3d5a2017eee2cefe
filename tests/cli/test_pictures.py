#!/usr/bin/env python3
"""What dcrf solve writes: label maps, pictures, the report; and what it says meanwhile."""

import base64
import html.parser
import json
import os
import re
import shlex
import signal
import subprocess
import unittest

import formats
import volumes
from case import COMMAND, HANG_S, HEIGHT, IMAGE, LABELS, PIXELS, TERMINAL_COLUMNS, WIDTH, Case

OKABE_ITO = [(0, 0, 0), (230, 159, 0), (86, 180, 233), (0, 158, 115), (240, 228, 66), (0, 114, 178),
             (213, 94, 0), (204, 121, 167)]


def near(value, expected, tolerance):
    return abs(value - expected) <= tolerance


class PictureTest(Case):
    def solve(self, *more):
        self.assertEqual(self.good("solve", self.image, "--unary", self.unary, "-q", *more), "")

    def labels_of(self, name):
        return [[p[0] for p in row] for row in formats.read_png(self.read(name))[4]]

    def test_label_maps(self):
        self.solve("-o", "l.png")
        width, height, depth, colour, _ = formats.read_png(self.read("l.png"))
        self.assertEqual((width, height, depth, colour), (WIDTH, HEIGHT, 8, formats.PALETTE))
        self.assertEqual(formats.read_palette(self.read("l.png"))[:8], OKABE_ITO)
        self.solve("-o", "l.npy")
        shape, values = formats.read_npy(self.read("l.npy"), "|u1")
        self.assertEqual(shape, (HEIGHT, WIDTH))
        self.assertEqual(values, [v for row in self.labels_of("l.png") for v in row])

    def test_many_labels(self):
        """300 labels, of which each pixel wants one: beyond 255 a map has 16 bits."""
        wanted = [(37 * k + 290) % 300 for k in range(len(PIXELS))]
        unary = [2.0 * (i != w) for w in wanted for i in range(300)]
        self.unary = self.write("m.npy", formats.npy(unary, (HEIGHT, WIDTH, 300)))
        options = ("--spatial", "none", "--bilateral", "none", "-m", "mf")
        self.solve(*options, "-o", "l.npy")
        self.assertEqual(formats.read_npy(self.read("l.npy"), "<u2")[1], wanted)
        self.solve(*options, "-o", "l.png", "--overlay", "o.png")
        self.assertEqual(self.read("l.png")[24:26], bytes([16, formats.GREY]))
        energy = json.loads(self.good("energy", self.image, "--unary", self.unary, "--labels",
                                      "l.png", "--json", "-", *options[:4]))
        self.assertEqual(energy["energy"], 0)

    def test_default_palette(self):
        self.solve("-o", "l.png")
        palette = formats.read_palette(self.read("l.png"))
        self.assertEqual(len(palette), 256)
        self.assertEqual(len(set(palette)), 256)
        # Early colours are far from each other even in luminance and blue alone, which every
        # common form of colour blindness sees.
        seen = [(0.3 * r + 0.59 * g + 0.11 * b, b) for r, g, b in palette[:16]]
        closest = min(abs(p[0] - q[0]) + abs(p[1] - q[1]) for i, p in enumerate(seen)
                      for q in seen[:i])
        self.assertGreater(closest, 20)

    def test_palette_files(self):
        colours = [(1, 2, 3), (250, 128, 7), (16, 32, 64)]
        texts = {
            "hex": "#010203\n#FA8007\n#102040\n",
            "numbers": "1 2 3\n250 128 7 orange\n16 32 64\n",
            "gimp": "GIMP Palette\nName: mine\nColumns: 3\n#\n  1   2   3\tfirst\n"
                    "250 128   7\tsecond\n\n# a comment\n 16  32  64\tlast",
            "dos": "#010203\r\n#fa8007\r\n#102040\r\n",
        }
        for name, text in texts.items():
            self.solve("-o", "l.png", "--palette", self.write(name, text.encode()))
            palette = formats.read_palette(self.read("l.png"))
            self.assertEqual(palette[:3], colours, name)
            self.assertEqual(palette[3:8], OKABE_ITO[3:], name)
        for text, words in formats.MALFORMED_PALETTES:
            path = self.write("bad.txt", text)
            self.bad(path, words, "solve", self.image, "--unary", self.unary, "-o", "l.png",
                     "--palette", path)

    def test_overlay_and_boundaries(self):
        self.solve("-o", "l.png", "--overlay", "o.png", "--boundaries", "b.png")
        labels = self.labels_of("l.png")
        overlay = formats.read_png(self.read("o.png"))[4]
        boundaries = formats.read_png(self.read("b.png"))[4]
        for x, y in PIXELS:
            for c in range(3):
                mixed = IMAGE[y][x][c]  # label 0 is black, and left clear
                if labels[y][x] > 0:
                    mixed = 0.45 * IMAGE[y][x][c] + 0.55 * OKABE_ITO[labels[y][x]][c]
                self.assertTrue(near(overlay[y][x][c], mixed, 0.51), (x, y, c))
            edge = ((x + 1 < WIDTH and labels[y][x] != labels[y][x + 1]) or
                    (y + 1 < HEIGHT and labels[y][x] != labels[y + 1][x]))
            self.assertTrue(boundaries[y][x] in ((0, 0, 0),) if edge else
                            boundaries[y][x] in ((255, 255, 255), IMAGE[y][x]), (x, y))

    def test_marginals_and_confidence(self):
        for method in ("mf", "qp", "lp"):
            self.solve("-m", method, "-o", "l.png", "--marginals", "m.npy", "--confidence-map",
                       "c.npy")
            labels = [v for row in self.labels_of("l.png") for v in row]
            shape, marginals = formats.read_npy(self.read("m.npy"))
            self.assertEqual(shape, (HEIGHT, WIDTH, LABELS))
            shape, confidence = formats.read_npy(self.read("c.npy"))
            self.assertEqual(shape, (HEIGHT, WIDTH))
            for a, label in enumerate(labels):
                row = marginals[a * LABELS:(a + 1) * LABELS]
                # Float distributions.
                self.assertAlmostEqual(sum(row), 1, delta=1e-5)
                self.assertEqual(confidence[a], row[label])
            self.solve("-m", method, "--confidence-map", "c.png")
            grey = [p[0] for row in formats.read_png(self.read("c.png"))[4] for p in row]
            for value, sure in zip(grey, confidence):
                self.assertTrue(near(value, 255 * sure, 0.51))

    def test_confidence_is_of_the_labels_of_the_proof(self):
        """One step of the LP leaves a proof labels to change; marginals stay those of the step."""
        weak = ("-m", "lp", "-n", "1", "--no-polish", "--spatial", "1.5,.3", "--bilateral", "3,60,.3")
        changed = 0
        for seed in range(12):
            unary = [((13 * seed + 3 * x * x + 5 * y + 7 * i * i + 11 * x * y * (i + 1)) % (17 + seed)) / 8
                     for x, y in PIXELS for i in range(LABELS)]
            self.unary = self.write("u.npy", formats.npy(unary, (HEIGHT, WIDTH, LABELS)))
            self.solve(*weak, "-o", "old.npy")
            self.solve(*weak, "--proof", "p.png", "-o", "l.npy", "--marginals", "m.npy", "--confidence-map", "c.npy")
            self.solve(*weak, "--proof", "p.png", "--confidence-map", "c.png")
            old, labels = (formats.read_npy(self.read(name), "|u1")[1] for name in ("old.npy", "l.npy"))
            marginals = formats.read_npy(self.read("m.npy"))[1]
            confidence = formats.read_npy(self.read("c.npy"))[1]
            self.assertEqual(confidence, [marginals[LABELS * a + i] for a, i in enumerate(labels)])
            grey = [p[0] for row in formats.read_png(self.read("c.png"))[4] for p in row]
            self.assertTrue(all(near(value, 255 * sure, 0.51) for value, sure in zip(grey, confidence)))
            changed += confidence != [marginals[LABELS * a + i] for a, i in enumerate(old)]
        self.assertGreater(changed, 0)


class VolumeTest(Case):
    """4 x 3 x 5 voxels of two tissues, one of which fills x >= 2; opinions that follow it."""

    SIZE = (4, 3, 5)

    def setUp(self):
        super().setUp()
        width, height, depth = self.SIZE
        places = [(x, y, z) for z in range(depth) for y in range(height) for x in range(width)]
        values = [900.0 + 7 * y if x >= 2 else 100.0 + 5 * z for x, y, z in places]
        self.wanted = [int(x >= 2) for x, y, z in places]
        unary = [abs(w - i) + (0.25 if (x + y + z) % 3 == 0 else 0) * i
                 for w, (x, y, z) in zip(self.wanted, places) for i in (0, 1)]
        self.image = self.write("v.nii", volumes.nifti(values, self.SIZE))
        self.unary = self.write("v.npy", formats.npy(unary, (depth, height, width, 2)))

    def test_labels_and_floats(self):
        arguments = ("solve", self.image, "--unary", self.unary, "--spatial", "1,.1",
                     "--bilateral", "2,100,.1", "-q")
        self.good(*arguments, "-o", "l.npy", "--confidence-map", "c.npy", "--marginals", "m.npy")
        shape, labels = formats.read_npy(self.read("l.npy"), "|u1")
        self.assertEqual((shape, labels), (self.SIZE[::-1], self.wanted))
        shape, confidence = formats.read_npy(self.read("c.npy"))
        self.assertEqual(shape, self.SIZE[::-1])
        shape, marginals = formats.read_npy(self.read("m.npy"))
        self.assertEqual(shape, self.SIZE[::-1] + (2,))
        self.assertEqual(confidence, [marginals[2 * a + w] for a, w in enumerate(labels)])
        self.good(*arguments, "-o", "l.nii.gz", "--confidence-map", "c.nii", "--marginals", "m.nii")
        self.assertEqual(volumes.read_nifti(self.read("l.nii.gz"))[3], labels)
        self.assertEqual(volumes.read_nifti(self.read("c.nii"))[3], confidence)
        size, _, _, planes = volumes.read_nifti(self.read("m.nii"))
        self.assertEqual(tuple(size), self.SIZE + (2,))
        self.assertEqual(planes, marginals[0::2] + marginals[1::2])
        for name in ("l.nii.gz", "l.npy"):
            result = json.loads(self.good("energy", self.image, "--unary", self.unary, "--labels",
                                          name, "--json", "-", "--spatial", "1,.1"))
            self.assertEqual(result["depth"], 5)

    def test_pictures_show_the_middle_slice(self):
        text = self.good("solve", self.image, "--unary", self.unary, "--overlay", "o.png",
                         "--boundaries", "b.png", "--report", "r.html")
        self.assertIn("4 x 3 x 5 voxels", text)
        self.assertEqual(formats.read_png(self.read("o.png"))[:2], (4, 3))
        page = Page(self.read("r.html").decode())
        shown = formats.read_png(page.pictures["picture-image"])[4]
        for y in range(3):
            for x in range(4):
                value = 900 + 7 * y if x >= 2 else 100 + 5 * 2
                grey = 255 * (value - 100) / (914 - 100)
                self.assertTrue(all(near(c, grey, 0.51) for c in shown[y][x]))

    def test_page_has_every_slice(self):
        self.good("solve", self.image, "--unary", self.unary, "--report", "r.html", "-o", "l.npy")
        source = self.read("r.html").decode()
        page = Page(source)
        slices = json.loads(re.search(r"id='slices'>(.*?)</script>", source, re.S).group(1))
        self.assertEqual([s["slice"] for s in slices], list(range(5)))
        strengths = {n for n in page.pictures if n.startswith("picture-strength-")}
        labels = formats.read_npy(self.read("l.npy"), "|u1")[1]
        for s in slices:
            pictures = {k: base64.b64decode(v.split(",", 1)[1]) for k, v in s.items() if k != "slice"}
            self.assertEqual({"picture-" + k for k in pictures}, set(page.pictures) - strengths)
            shown = [p[0] for row in formats.read_png(pictures["result"])[4] for p in row]
            self.assertEqual(shown, labels[12 * s["slice"]:12 * (s["slice"] + 1)])
            if s["slice"] == 2:
                self.assertEqual({"picture-" + k: v for k, v in pictures.items()},
                                 {k: v for k, v in page.pictures.items() if k not in strengths})

    def test_formats_that_do_not_fit(self):
        start = ("solve", self.image, "--unary", self.unary)
        self.bad("l.png", "the image is a volume", *start, "-o", "l.png")
        self.bad("c.png", "the image is a volume", *start, "--confidence-map", "c.png")
        photo = self.write("i.png", formats.png([[(0, 0, 0)] * 2]))
        unary = self.write("w.npy", formats.npy([0, 2, 0, 2], (1, 2, 2)))
        self.bad("l.nii", "the image is a photograph", "solve", photo, "--unary", unary, "-o",
                 "l.nii")


class Page(html.parser.HTMLParser):
    VOID = {"meta", "img", "input", "br", "link"}

    def __init__(self, text):
        super().__init__()
        self.open, self.pictures, self.addresses, self.texts = [], {}, [], {}
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag not in self.VOID and tag not in ("line", "circle", "path", "rect"):
            self.open.append(tag)
        self.addresses += [v for k, v in attrs if k in ("src", "href", "xlink:href")]
        if tag == "img" and "src" in found:
            self.pictures[found["id"]] = base64.b64decode(found["src"].split(",", 1)[1])

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag in ("line", "circle", "path", "rect"):
            return
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]] = self.texts.get(self.open[-1], "") + data


class ReportTest(Case):
    def check_headline(self, page, labels):
        """How much changed, from the two label maps on the page."""
        rows = [[p[0] for row in formats.read_png(data)[4] for p in row]
                for data in (page.pictures["picture-unary"], self.read(labels))]
        changed = sum(a != b for a, b in zip(*rows))
        self.assertIn("%.1f %% of the pixels have another label than the unaries alone give them"
                      % (100 * changed / len(rows[0])), page.texts["p"])

    def test_pictures_at_other_strengths(self):
        text = self.good("solve", self.image, "--unary", self.unary, "--report", "r.html", "--explain",
                         "-o", "l.png")
        page = Page(self.read("r.html").decode())
        strengths = sorted(n for n in page.pictures if n.startswith("picture-strength-"))
        captions = re.findall(r"strength (\S+?)( \(in force\))?: ([\d.]+) % change",
                              page.texts["figcaption"])
        self.assertEqual(len(captions), len(strengths))
        self.assertGreater(len(strengths), 3)
        self.assertEqual(len([c for c in captions if c[1]]), 1)
        self.assertEqual(sorted(float(c[0]) for c in captions), [float(c[0]) for c in captions])
        self.assertIn("strength", text)

    def test_page(self):
        name = self.path("image <&'\">.png")
        os.rename(self.image, name)
        text = self.good("solve", name, "--unary", self.unary, "--report", "r.html", "-o",
                         "l.png", "--spatial", "2,.5", "-m", "lp")
        self.assertIn("energy", text)
        source = self.read("r.html").decode()
        page = Page(source)
        self.assertTrue(all(a.startswith("data:image/png;base64,") for a in page.addresses))
        self.assertNotIn("http", source)
        self.assertIn("image <&'\">.png", page.texts["title"])
        self.assertEqual(formats.read_png(page.pictures["picture-image"])[4],
                         [[tuple(p) for p in row] for row in IMAGE])
        self.assertEqual(page.pictures["picture-result"], self.read("l.png"))
        strengths = {n for n in page.pictures if n.startswith("picture-strength-")}
        self.assertEqual(set(page.pictures) - strengths, {"picture-" + n for n in (
            "image", "unary", "result", "overlay", "boundaries", "confidence", "proof")})
        self.check_headline(page, "l.png")
        self.assertIn("class='bound'", source)
        self.assertIn("lower bound", source)
        # The command that the page gives repeats the run.
        words = shlex.split(page.texts["pre"])
        self.assertEqual(words[0], "dcrf")
        self.good(*words[1:], "-o", "again.png")
        self.assertEqual(self.read("again.png"), self.read("l.png"))

    def test_page_of_strokes(self):
        """Strokes stand in the colours of their labels, on the left of the comparison; a proof has a picture."""
        strokes = [[255] * WIDTH for _ in range(HEIGHT)]
        strokes[0][0] = strokes[1][0] = 0
        strokes[4][5] = strokes[3][5] = 1
        path = self.write("strokes.png", formats.number_png(strokes))
        self.good("solve", self.image, "--scribbles", path, "--report", "r.html", "-m", "lp")
        source = self.read("r.html").decode()
        page = Page(source)
        self.assertRegex(source, "<option value='strokes' selected>")
        self.assertIn("picture-proof", page.pictures)
        shown = formats.read_png(page.pictures["picture-strokes"])[4]
        coloured = {(x, y) for y in range(HEIGHT) for x in range(WIDTH) if strokes[y][x] != 255}
        inks = {label: {shown[y][x] for x, y in coloured if strokes[y][x] == label} for label in (0, 1)}
        self.assertEqual([len(ink) for ink in inks.values()], [1, 1])
        self.assertNotEqual(inks[0], inks[1])
        for y in range(HEIGHT):
            for x in range(WIDTH):
                if (x, y) not in coloured:
                    self.assertEqual(len(set(shown[y][x])), 1)
                    self.assertGreaterEqual(shown[y][x][0], 110)

    def test_page_without_a_bound(self):
        self.good("solve", self.image, "--unary", self.unary, "--report", "r.html", "-m", "mf")
        source = self.read("r.html").decode()
        Page(source)
        self.assertNotIn("class='bound'", source)

    def test_page_of_a_constant(self):
        self.good("solve", self.image, "--unary", self.unary, "--report", "r.html", "--normalize",
                  "none", "--spatial", "4,50", "--bilateral", "80,13,5")
        self.assertIn("drown the unaries", Page(self.read("r.html").decode()).texts["p"])


class FeedbackTest(Case):
    """A run that takes as long as it is let: 120 x 90 noisy pixels, a gap that is not reached."""

    def setUp(self):
        super().setUp()
        width, height = 120, 90
        state, unary = 1, []
        for _ in range(width * height * 3):
            state = (state * 1103515245 + 12345) % 2**31
            unary.append((state >> 16) % 64 / 16)
        rows = [[(2 * x, 2 * y, (x * y) % 256) for x in range(width)] for y in range(height)]
        self.image = self.write("big.png", formats.png(rows))
        self.unary = self.write("big.npy", formats.npy(unary, (height, width, 3)))
        self.arguments = ["solve", self.image, "--unary", self.unary, "--gap", "1e-13",
                          "-m", "lp", "--preset", "common", "-o", "l.png", "--json", "r.json"]

    def start(self, *more, **streams):
        return subprocess.Popen([COMMAND, *self.arguments, *more], cwd=self.folder, **streams)

    def test_quiet_in_a_pipe(self):
        run = self.start("--time-limit", "1.5", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        _, errors = run.communicate(timeout=HANG_S)
        self.assertEqual((run.returncode, errors), (0, b""))

    def test_progress_on_a_terminal(self):
        bar = re.compile(r"^\[[#.]{20}\] \d+  energy [\d.]+  bound [\d.]+  gap (below )?[\d.]+ %"
                         r"  at most \d+ s left\x1b\[K$")
        shown = self.on_terminal(*self.arguments, "--time-limit", str(HANG_S), until=re.compile(r" s left\x1b\[K"))
        lines = shown.split("\r")
        words = re.compile(r"^[a-z ]+, \d+ s\x1b\[K$")
        shown_lines = [line for line in lines if line not in ("", "\x1b[K")]
        self.assertTrue(shown_lines)
        for line in shown_lines:
            self.assertTrue(bar.match(line) or words.match(line), line)
        self.assertTrue(any(bar.match(line) for line in shown_lines))
        self.assertTrue(all(len(line) < TERMINAL_COLUMNS + 3 for line in lines))
        self.assertTrue(shown.endswith("\r\x1b[K"))
        self.assertEqual(self.on_terminal(*self.arguments, "--time-limit", "1.5", "-q"), "")

    def test_interrupt_keeps_the_best_labelling(self):
        run = self.start("-v", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while b"iteration 1:" not in run.stderr.readline():
            self.assertIsNone(run.poll())
        run.send_signal(signal.SIGINT)
        summary, errors = run.communicate(timeout=HANG_S)
        self.assertEqual(run.returncode, 0, errors)
        self.assertNotIn(b"dcrf:", errors)
        self.assertIn(b"interrupted", summary)
        result = json.loads(self.read("r.json"))
        self.assertEqual(result["stop"], "cancelled")
        energy = json.loads(self.good("energy", self.image, "--unary", self.unary, "--labels",
                                      "l.png", "--preset", "common", "--json", "-"))
        # There was no time for a sum in double.
        self.assertSameInFloats(energy["energy"], result["energy"])
        self.assertLess(energy["energy"], result["energy_unary_minimum"])
        self.assertFalse([n for n in os.listdir(self.folder) if re.search(r"\.\w{6}$", n)])



class ReportOrderTest(Case):
    """What people ask first stands first."""

    def report(self, *more):
        names = self.write("names.txt", b"sky\ngrass\nwater\n")
        self.good("solve", self.image, "--unary", self.unary, "--classes", names, "--report", "r.html", "-q", *more)
        return self.read("r.html").decode()

    def test_order(self):
        page = self.report("--strength", "1.5")
        places = [page.index(words) for words in ("class='verdict'", "<h2>Labels</h2>", "<h2>Compare</h2>", "<h2>Pictures</h2>",
                                                  "class='figures'", "<h2>Energies</h2>", "<h2>Settings</h2>", "<details>")]
        self.assertEqual(places, sorted(places))

    def test_labels(self):
        """Their names and shares, which are those of the labels themselves."""
        self.good("solve", self.image, "--unary", self.unary, "-o", "l.npy", "-q")
        labels = formats.read_npy(self.read("l.npy"), "|u1")[1]
        page = self.report()
        for i, name in enumerate(("sky", "grass", "water")):
            row = re.search(r"</i>%s</td><td>([0-9.]+) %%</td><td>([0-9.]+) %%</td><td>(\d*)" % name, page)
            self.assertAlmostEqual(float(row.group(2)), 100 * labels.count(i) / len(labels), delta=0.005)

    def test_a_rough_mask(self):
        """It is what the result is compared with, not what distances and colours say."""
        picture = self.write("p.png", formats.png([[(40, 60, 80), (40, 60, 80), (200, 90, 80), (200, 90, 80)]] * 4))
        said = self.good("solve", picture, "--labels-prior", self.write("m.png", formats.number_png([[0, 0, 255, 1]] * 4)), "--report", "r.html")
        page = self.read("r.html").decode()
        headline = re.search("(?m)^the mask: (.*)$", said).group(1)
        self.assertIn("<p class='verdict'>The mask: %s.</p>" % headline, page)
        self.assertIn("<th>in the mask</th>", page)
        self.assertRegex(page, r"</i>label 0</td><td>50\.00 %</td>.*\n.*</i>label 1</td><td>25\.00 %</td>")
        self.assertIn("<option value='mask' selected>", page)
        self.assertNotIn("picture-unary", page)

    def test_strengths_and_settings(self):
        page = self.report("--strength", "1.5")
        table = page[page.index("<tr><th>strength</th><th>pixels changed</th>"):]
        table = table[:table.index("</table>")]
        self.assertIn("<td>1.5 (in force)</td>", table)
        self.assertGreaterEqual(table.count("<tr"), 4)
        self.assertNotIn("<p>  ", page)
        given, defaults = page[page.index("<h2>Settings</h2>"):].split("<details>")
        self.assertIn("<td>strength</td><td>1.5</td>", given)
        self.assertNotIn("<td>eta</td>", given)
        self.assertIn("<td>eta</td>", defaults)
        self.assertNotIn("<td>strength</td>", defaults)

    def test_a_picture_of_nothing_is_left_out(self):
        page = self.report("-m", "lp", "--no-polish", "-n", "200")
        found = json.loads(self.good("solve", self.image, "--unary", self.unary, "-m", "lp", "--no-polish", "-n", "200", "--json", "-"))
        self.assertIn(found["proven"]["fraction"], (0, 1))
        self.assertNotIn("picture-proof", page)


if __name__ == "__main__":
    unittest.main()
