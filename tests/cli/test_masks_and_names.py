#!/usr/bin/env python3
"""Masks of 0 and 255, names of the labels, label maps for other programs, and names of files of any bytes."""

import json
import os
import subprocess
import unittest

import datasets
import formats
from case import COMMAND, HANG_S, HEIGHT, LABELLING, LABELS, WIDTH, Case

MASK = [[255 * (x >= 3) for x in range(WIDTH)] for y in range(HEIGHT)]
NUMBERS = [[v // 255 for v in row] for row in MASK]
UNARY_ONLY = ("--spatial", "none", "--bilateral", "none")


class MaskTest(Case):
    def setUp(self):
        super().setUp()
        self.mask = self.write("mask.png", formats.number_png(MASK))
        self.numbers = self.write("numbers.png", formats.number_png(NUMBERS))
        self.two = self.write("two.npy", formats.npy([(i * 7) % 16 / 4 for i in range(60)], (HEIGHT, WIDTH, 2)))

    def result(self, *arguments):
        found = json.loads(self.good(*arguments, "--json", "-"))
        return [found[k] for k in ("labels", "energy")]

    def test_as_a_prior(self):
        start = ("energy", self.image, "--labels", self.numbers)
        wanted = self.result(*start, "--labels-prior", self.numbers)
        self.assertEqual(wanted[0], 2)
        for more in ((), ("--label-count", "2")):
            self.assertEqual(self.result(*start, "--labels-prior", self.mask, *more), wanted)
        self.assertIn("unaries: a mask, 255 is label 1\n", self.good("solve", self.image, "--labels-prior", self.mask))
        # With more labels, or another number, 255 is unknown as ever.
        self.assertEqual(self.result(*start, "--labels-prior", self.mask, "--label-count", "3")[0], 3)
        other = [list(row) for row in MASK]
        other[0][0] = 1
        file = self.write("other.png", formats.number_png(other))
        self.assertNotEqual(self.result(*start, "--labels-prior", file), wanted)
        only = self.write("only.png", formats.number_png([[255] * WIDTH] * HEIGHT))
        self.bad(only, "gives 0 labels", *start, "--labels-prior", only)

    def test_as_labels(self):
        for command in ("energy", "certify"):
            self.assertEqual(self.result(command, self.image, "--unary", self.two, "--labels", self.mask),
                             self.result(command, self.image, "--unary", self.two, "--labels", self.numbers))
        self.good("solve", self.image, "--unary", self.two, "--start", self.mask, "-q")
        self.bad(self.mask, "has the label 255 at x = 3, y = 0; the unary has labels 0 to 2 (a 0/255 mask does for "
                 "two labels only)", "certify", self.image, "--unary", self.unary, "--labels", self.mask)

    def test_as_scribbles(self):
        """Black, white and a grey: the most frequent is where nothing was drawn."""
        photo = self.write("photo.png", formats.png([[(30 + 150 * (x >= 8) + x, 90, 60 + y) for x in range(16)]
                                                     for y in range(12)]))
        truth = self.write("truth.png", formats.number_png([[int(x >= 8) for x in range(16)] for y in range(12)]))

        def draw(name, first, second, rest):
            rows = [[rest] * 16 for y in range(12)]
            for y in range(2, 10):
                rows[y][2], rows[y][12] = first, second
            return self.write(name, formats.number_png(rows))

        start = ("energy", photo, "--labels", truth, "--scribbles")
        wanted = self.result(*start, draw("s.png", 0, 1, 255))
        for greys in ((128, 255, 0), (0, 255, 127), (0, 200, 255)):
            self.assertEqual(self.result(*start, draw("g.png", *greys)), wanted, greys)
        for greys in ((255, 255, 0), (0, 0, 255)):
            file = draw("m.png", *greys)
            self.bad(file, "is a mask of 0 and 255", *start, file)


class NameTest(Case):
    def solve(self, *more):
        return self.good("solve", self.image, "--unary", self.unary, *more)

    def test_classes(self):
        file = self.write("classes.txt", "sky\n grass & <hay>\nwater\n".encode())
        text = self.solve("--classes", file, "--json", "run.json", "--report", "page.html")
        self.assertRegex(text, r"label \d \((sky|grass & <hay>|water)\) everywhere")
        self.assertEqual(json.loads(self.read("run.json"))["classes"], ["sky", "grass & <hay>", "water"])
        page = self.read("page.html").decode()
        self.assertIn("</i>sky</span>", page)
        self.assertIn("</i>grass &amp; &lt;hay&gt;</span>", page)
        self.assertNotIn("</i>label 0</span>", page)
        for command in ("energy", "certify"):
            found = json.loads(self.good(command, self.image, "--unary", self.unary, "--labels", self.labels,
                                         "--classes", file, "--json", "-"))
            self.assertEqual(found["classes"][2], "water")
        self.assertNotIn("classes", json.loads(self.solve("--json", "-")))
        names = ["sky", "grass & <hay>", "water"]
        changes = json.loads(self.solve("--classes", file, "--strength", "50", "--json", "-"))["changes"]
        self.assertEqual(changes["largest_label_name"], names[changes["largest_label"]])
        self.assertTrue(changes["vanished"])
        for loss in changes["vanished"] + changes["shrunk"]:
            self.assertEqual(loss["name"], names[loss["label"]])
        changes = json.loads(self.solve("--strength", "50", "--json", "-"))["changes"]
        self.assertNotIn("largest_label_name", changes)
        self.assertNotIn("name", changes["vanished"][0])
        # A result is a config, and keeps the names.
        self.good("solve", "--config", "run.json", "--json", "again.json", "-q")
        self.assertEqual(json.loads(self.read("again.json"))["classes"], ["sky", "grass & <hay>", "water"])

    def test_bad_classes(self):
        few = self.write("few.txt", b"one\ntwo\n")
        arguments = ("solve", self.image, "--unary", self.unary, "-o", "out.png", "--classes")
        self.bad(few, "names 2 classes, and the model has 3 labels", *arguments, few)
        self.bad("none.txt", "cannot open", *arguments, "none.txt")
        binary = self.write("binary.txt", b"a\0b\n")
        self.bad(binary, "is not a text file", *arguments, binary)

    def test_names_in_a_palette(self):
        for text, names in (("#ff0000 sky\n#00ff00 grass land\n0 0 255\twater\n", ["sky", "grass land", "water"]),
                            ("GIMP Palette\nName: x\n255 0 0 a\n0 255 0 b\n0 0 255 c\n9 9 9 d\n", ["a", "b", "c"]),
                            ("2 water 0 0 255\n0 sky 255 0 0\n1 grass 0 255 0\n", ["sky", "grass", "water"])):
            file = self.write("p.txt", text.encode())
            self.assertEqual(json.loads(self.solve("--palette", file, "--json", "-"))["classes"], names)
        for text in ("255 0 0 Untitled\n0 255 0 Untitled\n0 0 255 Untitled\n", "#ff0000 sky\n#00ff00\n#0000ff water\n"):
            file = self.write("p.txt", text.encode())
            self.assertNotIn("classes", json.loads(self.solve("--palette", file, "--json", "-")))
        classes = self.write("classes.txt", b"x\ny\nz\n")
        palette = self.write("p.txt", b"#ff0000 a\n#00ff00 b\n#0000ff c\n")
        self.assertEqual(json.loads(self.solve("--palette", palette, "--classes", classes, "--json", "-"))["classes"],
                         ["x", "y", "z"])
        # Settings of the page have names and colours, too.
        labels = [{"name": name, "colour": colour} for name, colour in (("sky\n#", "#ff0000"), ("grass", "#00ff00"), ("x y", "#0000ff"))]
        saved = self.write("saved.json", json.dumps({"labels": labels, "settings": {}}).encode())
        self.assertEqual(json.loads(self.solve("--palette", saved, "--json", "-"))["classes"], ["sky", "grass", "x y"])
        for text, message in ((b'{"labels": []}', 'has no "labels" with colours'), (b'{"labels"', 'has no "labels" with colours'),
                              (b'{"labels": [{"name": "sky"}]}', "line 1 is not a colour")):
            bad = self.write("bad.json", text)
            self.bad(bad, message, "solve", self.image, "--unary", self.unary, "-o", "out.png", "--palette", bad)
        bad = self.write("bad.txt", b"#ff0000\nnonsense\n")
        self.bad(bad, "line 2 is not a colour", "solve", self.image, "--unary", self.unary, "-o", "out.png",
                 "--palette", bad)

    def test_escapes_stay_out_of_summaries(self):
        file = self.write("classes.txt", "a\x1b[31m\nb\u009b1m\nc\u202e\n".encode())
        text = self.solve("--classes", file)
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\u009b", text)
        datasets.make(self.path("data"), count=2)
        names = ["a\x1b[31m", "b\u009b1m", "c", "d"]
        self.write("data/classes.txt", "".join(n + "\n" for n in names).encode())
        shown = self.good("batch", "data", "--methods", "mf5", "--out", "out")
        for name in ("summary.md", "summary.csv"):
            shown += self.read("out/" + name).decode()
        self.assertNotIn("\x1b", shown)
        self.assertNotIn("\u009b", shown)
        self.assertIn("a\\x1b[31m", shown)
        self.assertRegex(text, r"\((a\\x1b\[31m|b\\xc2\\x9b1m|c\\xe2\\x80\\xae)\) everywhere")


class LabelFormatTest(Case):
    def test_grey(self):
        arguments = ("solve", self.image, "--unary", self.unary, "-q")
        self.good(*arguments, "-o", "indexed.png")
        self.good(*arguments, "-o", "grey.png", "--label-format", "grey")
        indexed, grey = self.read("indexed.png"), self.read("grey.png")
        # In the header: 8 bits, and palette or grey.
        self.assertEqual((indexed[24:26], grey[24:26]), (bytes([8, formats.PALETTE]), bytes([8, formats.GREY])))
        self.assertEqual(formats.read_png(indexed)[4], formats.read_png(grey)[4])
        for name in ("indexed.png", "grey.png"):
            self.energy(labels=self.path(name))
        self.bad("--label-format", "one of indexed|grey", *arguments, "-o", "x.png", "--label-format", "rgb")


class BytesTest(Case):
    """Names of files are bytes, of any encoding."""

    def run_bytes(self, *arguments):
        return subprocess.run([os.fsencode(COMMAND), *arguments], capture_output=True, timeout=HANG_S, cwd=self.folder,
                              check=False)

    def test_files_whose_names_are_not_utf8(self):
        image, unary, out = b"bild-\xe4\xff.png", b"un\xfcr.npy", b"\xf6ut.json"
        for name, data in ((image, self.read("image.png")), (unary, self.read("u.npy"))):
            with open(os.path.join(os.fsencode(self.folder), name), "wb") as stream:
                stream.write(data)
        done = self.run_bytes(b"solve", image, b"--unary", unary, b"--json", out, b"--report", b"\xe4.html")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        with open(os.path.join(os.fsencode(self.folder), out), encoding="utf-8") as stream:
            settings = json.load(stream)["settings"]
        self.assertEqual((settings["image"], settings["unary"]), ("bild-\\xe4\\xff.png", "un\\xfcr.npy"))
        with open(os.path.join(os.fsencode(self.folder), b"\xe4.html"), encoding="utf-8") as stream:
            self.assertIn("</html>", stream.read())

    def test_messages(self):
        for name, shown in ((b"\xff\xfe", b"\\xff\\xfe"), (b"a\x9bb", b"a\\x9bb"), (b"a\xc2\x9bb", b"a\\xc2\\x9bb"),
                            (b"\xe2\x80\xae", b"\\xe2\\x80\\xae"), ("bild-\u00e4".encode(), "bild-\u00e4".encode()),
                            (b"\xed\xa0\x80", b"\\xed\\xa0\\x80"), (b"\xc0\xaf", b"\\xc0\\xaf"),
                            ("\u4e2d\U0001f600".encode(), "\u4e2d\U0001f600".encode()), (b"\xe4\xbd", b"\\xe4\\xbd")):
            done = self.run_bytes(b"solve", name, b"--unary", b"u.npy")
            self.assertEqual((done.returncode, done.stderr),
                             (2, b"dcrf: " + shown + b": cannot open: No such file or directory\n"))

    def test_the_file_of_a_bad_value(self):
        config = self.write("c.json", json.dumps({"spatial": "x", "unary": self.unary}).encode())
        self.bad(config, "--spatial: 'x' is not", "solve", self.image, "--config", config)
        config = self.write("c.json", json.dumps({"unary": "none.npy"}).encode())
        done = self.run_dcrf("solve", self.image, "--config", config)
        self.assertIn("--unary none.npy: cannot open", done.stderr)
        self.assertIn(config, done.stderr)


if __name__ == "__main__":
    unittest.main()
