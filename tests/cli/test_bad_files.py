#!/usr/bin/env python3
"""Malformed and unfitting files: one line, status 2, nothing touched."""

import math
import os
import unittest

import formats
import pictures
import volumes
from case import HEIGHT, LABELLING, LABELS, REGIONS, UNARY, WIDTH, Case


class BadDatasetTest(Case):
    def test_malformed_descriptions(self):
        os.mkdir(self.path("set"))
        for data, words in formats.MALFORMED_DATASETS:
            with self.subTest(data):
                self.write("set/dataset.json", data)
                self.bad("set/dataset.json", words, "batch", "set", "--out", "out")


class BadEnergyInputTest(Case):
    def energy_of(self, image=None, unary=None, labels=None):
        return ("energy", image or self.image, "--unary", unary or self.unary, "--labels",
                labels or self.labels, "--json", "out.json")

    def test_malformed_unaries(self):
        self.write("out.json", b"keep me")
        cases = formats.malformed_npy((HEIGHT, WIDTH, LABELS))
        self.assertGreaterEqual(len(cases), 20)
        for name, data, words in cases:
            with self.subTest(name):
                file = self.write("bad.npy", data)
                self.bad(file, words, *self.energy_of(unary=file))

    def test_malformed_images(self):
        self.write("out.json", b"keep me")
        for cases in (formats.malformed_png(WIDTH, HEIGHT), pictures.malformed_jpeg(),
                      pictures.malformed_pnm(WIDTH, HEIGHT),
                      pictures.malformed_tiff(WIDTH, HEIGHT),
                      volumes.malformed_nifti((WIDTH, HEIGHT, 2))):
            self.assertGreaterEqual(len(cases), 20)
            for name, data, words in cases:
                with self.subTest(name):
                    file = self.write("bad.image", data)
                    self.bad(file, words, *self.energy_of(image=file))

    def test_malformed_labels(self):
        for name, data, _ in (formats.malformed_png(WIDTH, HEIGHT) +
                              formats.malformed_npy((HEIGHT, WIDTH)) +
                              pictures.malformed_jpeg() + pictures.malformed_pnm(WIDTH, HEIGHT) +
                              pictures.malformed_tiff(WIDTH, HEIGHT) +
                              volumes.malformed_nifti((WIDTH, HEIGHT, 1))):
            # A label picture has no use for its palette, so nothing is wrong with an index.
            if name in ("palette-index", "palette-missing"):
                continue
            with self.subTest(name):
                file = self.write("bad", data)
                self.bad(file, "", *self.energy_of(labels=file))

    def test_missing_files(self):
        for which in ("image", "unary", "labels"):
            self.bad("no/such", "cannot open", *self.energy_of(**{which: "no/such"}))
            folder = self.path("empty")
            os.makedirs(folder, exist_ok=True)
            words = "has no pictures" if which == "image" else "is a folder"  # of frames, where there are some
            self.bad(folder, words, *self.energy_of(**{which: folder}))
            self.bad("/dev/zero", "is a device", *self.energy_of(**{which: "/dev/zero"}))
        self.bad("no/such", "cannot open", *self.energy_of(), "--cliques", "no/such")

    def test_one_line_whatever_the_name(self):
        self.bad("no\\x0asuch\\x1b[31m", "cannot open", *self.energy_of(unary="no\nsuch\x1b[31m"))
        self.bad("..." + "x" * 512, "cannot open", *self.energy_of(unary="x" * 4000))

    def test_not_finite(self):
        for value in (math.nan, math.inf, -math.inf):
            values = list(UNARY)
            values[(2 * WIDTH + 4) * LABELS + 1] = value
            for descr in ("<f2", "<f4", "<f8"):
                file = self.write("bad.npy", formats.npy(values, (HEIGHT, WIDTH, LABELS), descr))
                self.bad(file, "x = 4, y = 2", *self.energy_of(unary=file))
        values[0] = 1e300
        file = self.write("bad.npy", formats.npy(values, (HEIGHT, WIDTH, LABELS), "<f8"))
        self.bad(file, "inf", *self.energy_of(unary=file))

    def test_wrong_shapes(self):
        swapped = self.write("s.npy", formats.npy(UNARY, (WIDTH, HEIGHT, LABELS)))
        self.bad(swapped, "seem to be swapped", *self.energy_of(unary=swapped))
        for shape in ((HEIGHT * WIDTH * LABELS,), (HEIGHT * WIDTH, LABELS),
                      (HEIGHT, WIDTH, LABELS, 1), (HEIGHT, LABELS, WIDTH)):
            file = self.write("s.npy", formats.npy(UNARY, shape))
            self.bad(file, "needs (5, 6, C) or (C, 5, 6)", *self.energy_of(unary=file))
        flat = self.write("s.npy", formats.npy(UNARY[:WIDTH * HEIGHT], (HEIGHT, WIDTH)))
        self.bad(flat, "third one, of the labels", *self.energy_of(unary=flat))
        small = self.write("s.png", formats.number_png([row[:-1] for row in LABELLING]))
        self.bad(small, "5 x 5 pixels and the image 6 x 5", *self.energy_of(labels=small))
        small = self.write("s.npy", formats.npy([0] * 30, (WIDTH, HEIGHT), "|u1"))
        self.bad(small, "needs (5, 6)", *self.energy_of(labels=small))

    def test_integers_need_a_scale(self):
        file = self.write("i.npy", formats.npy([1] * len(UNARY), (HEIGHT, WIDTH, LABELS), "|u1"))
        self.bad(file, "--unary-scale", *self.energy_of(unary=file))

    def test_bad_labels(self):
        for value, descr in ((LABELS, "|u1"), (-1, "|i1"), (2**31, "<u4"), (-2**40, "<i8"),
                             (2**63, ">u8")):
            values = [0] * (WIDTH * HEIGHT)
            values[8] = value
            file = self.write("l.npy", formats.npy(values, (HEIGHT, WIDTH), descr))
            self.bad(file, str(value), *self.energy_of(labels=file))
        floats = self.write("l.npy", formats.npy([0.0] * 30, (HEIGHT, WIDTH)))
        self.bad(floats, "integers are needed", *self.energy_of(labels=floats))
        void = self.write("l.png", formats.number_png([[0] * 6] * 4 + [[0, 0, 255, 0, 0, 0]]))
        self.bad(void, "label 255 at x = 2, y = 4", *self.energy_of(labels=void))
        self.bad(self.image, "one number per pixel", *self.energy_of(labels=self.image))
        text = self.write("l.txt", b"0 1 2\n")
        self.bad(text, "neither a picture nor a .npy", *self.energy_of(labels=text))

    def test_bad_cliques(self):
        file = self.write("c.png", formats.number_png([[0] * 3] * 3))
        self.bad(file, "3 x 3 pixels", *self.energy_of(), "--cliques", file)
        good = self.write("c.png", formats.number_png(REGIONS))
        self.bad("--gamma", "below zero", *self.energy_of(), "--cliques", good, "--gamma", "-1")

    def test_too_large_for_a_float(self):
        self.bad("--spatial", "a weight from 0 to 3.4e+38", *self.energy_of(), "--spatial", "2,1e39")
        self.bad("--bilateral", "a weight from 0 to 3.4e+38", *self.energy_of(), "--bilateral", "4,50,-1")
        self.bad("--strength", "too large for a float", *self.energy_of(), "--strength", "1e40")
        regions = self.write("c.png", formats.number_png(REGIONS))
        self.bad("--gamma", "1e+39: too large for a float", *self.energy_of(), "--cliques", regions, "--gamma", "1e39")


if __name__ == "__main__":
    unittest.main()
