#!/usr/bin/env python3
"""Unaries as people have them: recognized, refused with the option to use, or brought to the image's size."""

import json
import math
import os
import unittest

import datasets
import formats
import volumes
from case import HEIGHT, LABELLING, LABELS, PIXELS, WIDTH, Case

UNARY_ONLY = ("--spatial", "none", "--bilateral", "none")
SHAPE = (HEIGHT, WIDTH, LABELS)


def softmax(row):
    total = sum(math.exp(v) for v in row)
    return [math.exp(v) / total for v in row]


ROWS = [softmax([((7 * p + 5 * i * i) % 11) / 2 for i in range(LABELS)]) for p in range(len(PIXELS))]
P = [v for row in ROWS for v in row]
ENERGY = -sum(math.log(ROWS[p][LABELLING[y][x]]) for p, (x, y) in enumerate(PIXELS))


class KindTest(Case):
    def put(self, values, shape=SHAPE, descr="<f4"):
        return self.write("k.npy", formats.npy(values, shape, descr))

    def model(self, file, *more):
        return json.loads(self.good("energy", self.image, "--unary", file, "--labels", self.labels,
                                    "--json", "-", *UNARY_ONLY, *more))

    def refused(self, words, file, *more):
        self.bad(file, words, "solve", self.image, "--unary", file, "-o", "out.png", "--json", "out.json",
                 "--report", "out.html", *more)
        self.assertFalse(os.path.exists(self.path("out.png")))

    def is_the_model(self, values, kind, recognized=True, *more):
        found = self.model(self.put(values), *more)
        # Floats whose logarithms are summed in double.
        self.assertAlmostEqual(found["energy"], ENERGY, delta=1e-4)
        self.assertEqual(found["unary"], {"kind": kind, "recognized": recognized, "enlarged": False,
                                          "size": [WIDTH, HEIGHT, 1]})

    def test_one_model_from_every_kind(self):
        self.is_the_model(P, "probabilities")
        self.is_the_model([-math.log(v) for v in P], "energies")
        self.is_the_model([math.log(v) for v in P], "logits")
        for offset in (-30, 0.5, 30):
            logits = [math.log(v) + offset for v in P]
            self.is_the_model(logits, "logits", False, "--unary-kind", "logits")
        self.is_the_model(P, "probabilities", False, "--unary-kind", "probabilities")

    def test_one_label_is_a_foreground(self):
        """A sigmoid's map, of any shape, is two labels; the energy is that of both written out."""
        p = [0.03 + 0.9 * ((7 * k) % 13) / 12 for k in range(len(PIXELS))]
        both = self.put([v for one in p for v in (1 - one, one)], (HEIGHT, WIDTH, 2))
        labels = self.write("two.npy", formats.npy([int(v > 0.5) for v in p], (HEIGHT, WIDTH), "|u1"))

        def energy(file, *more):
            return json.loads(self.good("energy", self.image, "--unary", file, "--labels", labels, "--json", "-", *UNARY_ONLY,
                                        *more))

        expected = energy(both)["energy"]
        for shape in ((HEIGHT, WIDTH, 1), (1, HEIGHT, WIDTH)):
            file = self.write("one.npy", formats.npy(p, shape))
            found = energy(file)
            self.assertAlmostEqual(found["energy"], expected, delta=1e-4)
            self.assertTrue(found["unary"]["foreground"])
            self.assertEqual(found["unary"]["kind"], "probabilities")
            logits = self.write("logits.npy", formats.npy([math.log(v / (1 - v)) for v in p], shape))
            self.assertAlmostEqual(energy(logits)["energy"], expected, delta=1e-4)
        said = self.good("solve", self.image, "--unary", file, "-o", "out.png", *UNARY_ONLY)
        self.assertIn("taken for the foreground", said)
        rows = formats.read_png(self.read("out.png"))[4]
        self.assertEqual([pixel[0] for row in rows for pixel in row], [int(v > 0.5) for v in p])
        os.remove(self.path("out.png"))
        self.refused("nothing to choose", file, "--unary-kind", "energies")
        self.refused("between 0 and 1", logits, "--unary-kind", "probabilities")
        byte = self.write("byte.npy", formats.npy([round(255 * v) for v in p], (HEIGHT, WIDTH, 1), "|u1"))
        self.refused("--unary-scale", byte)
        self.assertAlmostEqual(energy(byte, "--unary-scale", str(1 / 255))["energy"], expected, delta=0.02 * expected)

    def test_an_offset_of_logits_changes_nothing(self):
        results = []
        for offset in (0, 64):
            file = self.put([((7 * i) % 23) / 4 + offset for i in range(len(P))])
            found = json.loads(self.good("solve", self.image, "--unary", file, "--unary-kind", "logits",
                                         "--method", "lp", "--json", "-"))
            results.append([found[k] for k in ("energy", "lower_bound", "relative_gap")])
        self.assertEqual(*results)

    def test_it_is_said(self):
        text = self.good("solve", self.image, "--unary", self.put(P))
        self.assertIn("unaries: probabilities (the numbers of a pixel sum to 1)\n", text)
        text = self.good("certify", self.image, "--unary", self.put(P), "--labels", self.labels, "-t", "1")
        self.assertIn("unaries: probabilities", text)
        text = self.good("solve", self.image, "--unary", self.put(P), "--unary-kind", "probabilities")
        self.assertIn("unaries: probabilities\n", text)

    def test_contradictions(self):
        energies, logits = [-math.log(v) for v in P], [math.log(v) for v in P]
        for claimed in ("energies", "logits"):
            self.refused("these look like probabilities, not %s: the numbers of a pixel sum to 1; add --unary-kind "
                         "probabilities" % claimed, self.put(P), "--unary-kind", claimed)
        for claimed in ("probabilities", "logits"):
            self.refused("look like energies, not %s: exp(-x) sums to 1 over the labels; add --unary-kind energies"
                         % claimed, self.put(energies), "--unary-kind", claimed)
        self.refused("look like log-probabilities, not energies: exp(x) sums to 1 over the labels; add --unary-kind "
                     "logits", self.put(logits), "--unary-kind", "energies")

    def test_what_cannot_be_told(self):
        self.refused("negative numbers can be logits (high is likely) or energies (low is likely); add --unary-kind "
                     "logits or --unary-kind energies", self.put([4 * v - 1 for v in P]))
        self.refused("do not sum to 1 can be scores or energies; add --unary-kind probabilities or --unary-kind "
                     "energies", self.put([v / 2 for v in P]))
        hard = self.put([float(p % 2 == i) for p in range(len(PIXELS)) for i in range(2)], (HEIGHT, WIDTH, 2))
        self.refused("with two labels, zeros and ones", hard)
        for kind in ("energies", "probabilities", "logits"):
            self.good("solve", self.image, "--unary", hard, "--unary-kind", kind, "-q")

    def test_the_option_is_named(self):
        done = self.run_dcrf("solve", self.image, "--unary", "none.npy")
        self.assertEqual(done.stderr, "dcrf: --unary none.npy: cannot open: No such file or directory\n")
        done = self.run_dcrf("solve", self.image, "--labels-prior", "none.png")
        self.assertTrue(done.stderr.startswith("dcrf: --labels-prior none.png: "), done.stderr)

    def test_integers(self):
        for whole, descr in ((255, "|u1"), (65535, "<u2"), (100, "<i4")):
            file = self.put([round(whole * v) for v in P], descr=descr)
            scale = "%.9g" % (1 / whole)
            self.refused("holds integers that look like probabilities times %d (the numbers of a pixel sum to %d); "
                         "add --unary-kind probabilities --unary-scale %s" % (whole, whole, scale), file)
            found = self.model(file, "--unary-kind", "probabilities", "--unary-scale", scale)
            self.assertEqual(found["unary"]["kind"], "probabilities")
        file = self.put([min(255, round(-20 * math.log(v))) for v in P], descr="|u1")
        self.refused("holds integers that look like energies times 20 (exp(-x / 20) sums to 1 over the labels); add "
                     "--unary-kind energies --unary-scale 0.05", file)
        self.assertAlmostEqual(self.model(file, "--unary-kind=energies", "--unary-scale=0.05")["energy"], ENERGY,
                               delta=0.025 * len(PIXELS))
        hot = self.put([int(max(row) == v) for row in ROWS for v in row], descr="|b1")
        self.refused("holds only zeros and ones; if a one marks the label, add --unary-kind probabilities "
                     "--unary-scale 1, or give the labels with --labels-prior", hot)
        self.refused("say with --unary-scale what one step is worth",
                     self.put([(5 * i) % 7 for i in range(len(P))], descr="<i8"))
        # Floats that are bytes show it too, and so does a wrong claim about them.
        stored = self.put([round(255 * v) for v in P])
        for more in ((), ("--unary-kind", "probabilities"), ("--unary-kind", "energies")):
            self.refused("add --unary-kind probabilities --unary-scale 0.00392156863", stored, *more)

    def test_a_batch_of_one(self):
        expected = self.model(self.put(P))
        planes = [P[p * LABELS + i] for i in range(LABELS) for p in range(len(PIXELS))]
        for values, shape in ((planes, (1, LABELS, HEIGHT, WIDTH)), (P, (1, HEIGHT, WIDTH, LABELS))):
            self.assertEqual(self.model(self.put(values, shape)), expected)
        self.refused("a batch of 2; save one of them: array[0]", self.put(planes * 2, (2, LABELS, HEIGHT, WIDTH)))


class SmallTest(Case):
    """A network's answer at 1/4 of the size: two halves, a corner that only the image shows."""

    W, H, STRIDE = 32, 24, 4

    def setUp(self):
        super().setUp()
        def inside(x, y):
            return x >= 18
        self.truth = [[int(inside(x, y)) for x in range(self.W)] for y in range(self.H)]
        self.photo = self.write("photo.png", formats.png([[(200, 60, 50) if v else (40, 90, 120) for v in row]
                                                          for row in self.truth]))
        self.rows = []
        for cy in range(self.H // self.STRIDE):
            for cx in range(self.W // self.STRIDE):
                cells = [self.truth[cy * 4 + j][cx * 4 + i] for i in range(4) for j in range(4)]
                share = 0.1 + 0.8 * sum(cells) / 16
                self.rows += [1 - share, share]

    def put(self, shape, values=None):
        return self.write("small.npy", formats.npy(values or self.rows, shape))

    def labels_of(self, *more, image=None, unary=None):
        self.good("solve", image or self.photo, "--unary", unary or self.put((6, 8, 2)), "--method", "mf", "--quiet",
                  "-o", "l.npy", *more)
        return formats.read_npy(self.read("l.npy"), "|u1")[1]

    def test_the_image_guides(self):
        wanted = [v for row in self.truth for v in row]
        self.assertEqual(self.labels_of(*UNARY_ONLY), wanted)
        planes = self.put((1, 2, 6, 8), self.rows[::2] + self.rows[1::2])
        self.assertEqual(self.labels_of(*UNARY_ONLY, unary=planes), wanted)
        text = self.good("solve", self.photo, "--unary", self.put((6, 8, 2)), "--json", "run.json")
        self.assertNotIn("enlarged", text.splitlines()[0])
        self.assertIn("unaries: probabilities (the numbers of a pixel sum to 1), enlarged from 8 x 6, guided by the "
                      "image's colours\n", self.good("solve", self.photo, "--unary", self.put((6, 8, 2))))
        self.assertEqual(json.loads(self.read("run.json"))["unary"],
                         {"kind": "probabilities", "recognized": True, "enlarged": True, "size": [8, 6, 1]})

    def test_without_colours_the_middle_is_the_border(self):
        """An image of one colour guides nothing: the labels change where the cells' shares cross a half."""
        plain = self.write("plain.png", formats.png([[(9, 9, 9)] * self.W] * self.H))
        found = self.labels_of(*UNARY_ONLY, image=plain)
        self.assertEqual(found, [int(x >= 18) for y in range(self.H) for x in range(self.W)])

    def test_other_proportions_are_refused(self):
        for shape, words in (((8, 6, 2), "needs (24, 32, C) or (C, 24, 32), or smaller with its proportions"),
                             ((4, 12, 2), "smaller with its proportions"), ((2, 8, 6), "with its proportions")):
            file = self.put(shape)
            self.bad(file, words, "solve", self.photo, "--unary", file, "-o", "out.png")
        larger = self.put((25, 33, 2), [0.5] * (25 * 33 * 2))
        self.bad(larger, "smaller with", "solve", self.photo, "--unary", larger, "-o", "out.png")
        # 6 x 8 x 6 is both, of six labels.
        both = self.put((6, 8, 6), [1 / 6] * 288)
        self.good("solve", self.photo, "--unary", both, "--quiet")
        square = self.write("square.png", formats.png([[(0, 0, 0)] * 12] * 12))
        both = self.put((3, 3, 3), [1 / 3] * 27)
        self.bad(both, "fits (H, W, C) and (C, H, W); say which with --layout", "solve", square, "--unary", both)
        self.good("solve", square, "--unary", both, "--layout", "chw", "--quiet")

    def test_a_volume(self):
        size = (8, 6, 4)
        volume = self.write("v.nii", volumes.nifti([int(i % 8 >= 4) * 90 for i in range(192)], size, volumes.I16))
        shares = [0.9 if i % 4 >= 2 else 0.1 for i in range(24)]
        file = self.write("u.nii", volumes.nifti([1 - v for v in shares] + shares, (4, 3, 2, 2)))
        self.good("solve", volume, "--unary", file, "-m", "mf", "-o", "l.npy", "-q", *UNARY_ONLY)
        self.assertEqual(formats.read_npy(self.read("l.npy"), "|u1")[1], [int(i % 8 >= 4) for i in range(192)])
        npy = self.write("u.npy", formats.npy([1 - v for v in shares] + shares, (1, 2, 2, 3, 4)))
        self.good("solve", volume, "--unary", npy, "--layout=chw", "-m", "mf", "-o", "m.npy", "-q", *UNARY_ONLY)
        self.assertEqual(self.read("m.npy"), self.read("l.npy"))

    def test_a_data_set(self):
        scene = ("a", [[(200, 60, 50) if v else (40, 90, 120) for v in row] for row in self.truth],
                 formats.npy(self.rows, (6, 8, 2)), self.truth)
        datasets.write(self.path("data"), [scene], {}, {"labels": 2}, ["out", "in"])
        self.good("batch", "data", "--methods", "unary", "--out", "out")
        with open(self.path("out/summary.json"), encoding="utf-8") as stream:
            self.assertEqual(json.load(stream)["methods"][0]["pixel_accuracy"], 1)
        datasets.write(self.path("wrong"), [scene], {}, {"labels": 2, "unary": {"kind": "logits"}}, ["out", "in"])
        done = self.run_dcrf("batch", "wrong", "--methods", "mf", "--out", "none")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn('look like probabilities, not logits: the numbers of a pixel sum to 1; write "unary": {"kind": '
                      '"probabilities"} into dataset.json', self.read("none/failures/a.txt").decode())


if __name__ == "__main__":
    unittest.main()
