#!/usr/bin/env python3
"""Every kind of input: pictures in all formats, volumes, and unary energies from all sources."""

import gzip
import json
import math
import os
import unittest

import formats
import pictures
import volumes
from case import HEIGHT, IMAGE, LABELLING, LABELS, PIXELS, SHARED_DATA, UNARY, WIDTH, Case

UNARY_ONLY = ("--spatial", "none", "--bilateral", "none")


class PictureTest(Case):
    def test_colours(self):
        expected = self.energy()
        flat = [p for row in IMAGE for p in row]
        wide = [[tuple(257 * s for s in p) for p in row] for row in IMAGE]
        alpha = [[p + (9 * p[1] % 256,) for p in row] for row in IMAGE]
        indexed = [[(y * WIDTH + x,) for x in range(WIDTH)] for y in range(HEIGHT)]
        palette = flat + [(0, 0, 0)] * (256 - len(flat))
        files = [pictures.pnm(IMAGE, 6), pictures.pnm(IMAGE, 3), pictures.pnm(wide, 6, 65535),
                 pictures.pnm(wide, 3, 65535)]
        for order in "<>":
            for compression in (1, 8, 32946, 32773):
                files += [pictures.tiff(IMAGE, order=order, compression=compression),
                          pictures.tiff(wide, 16, order=order, compression=compression),
                          pictures.tiff(IMAGE, order=order, compression=compression, planar=True),
                          pictures.tiff(wide, 16, order=order, tile=(16, 32), planar=True,
                                        compression=compression),
                          pictures.tiff(IMAGE, order=order, tile=(16, 16),
                                        compression=compression)]
            files += [pictures.tiff(alpha, order=order), pictures.tiff(IMAGE, order=order, rows=99),
                      pictures.tiff(alpha, order=order, planar=True, tile=(16, 16)),
                      pictures.tiff(indexed, 8, pictures.TIFF_PALETTE, order, palette=palette)]
        for data in files:
            self.assertEqual(self.energy(image=self.write("i", data)), expected, data[:40])

    def test_grey(self):
        grey = [[(p[1],) for p in row] for row in IMAGE]
        expected = self.energy(image=self.write("g.png", formats.png(grey, colour=formats.GREY)))
        wide = [[(257 * v,) for v, in row] for row in grey]
        white = [[(255 - v,) for v, in row] for row in grey]
        with_alpha = [[(v, 9) for v, in row] for row in grey]
        black = pictures.BLACK_IS_ZERO
        for data in (pictures.pnm(grey, 5), pictures.pnm(grey, 2), pictures.pnm(wide, 5, 65535),
                     pictures.tiff(grey, 8, black), pictures.tiff(wide, 16, black, ">"),
                     pictures.tiff(white, 8, pictures.WHITE_IS_ZERO),
                     pictures.tiff(with_alpha, 8, black),
                     pictures.tiff(with_alpha, 8, black, planar=True)):
            self.assertEqual(self.energy(image=self.write("g", data)), expected)

    def test_few_bits(self):
        bits = [[((x + y) % 2,) for x in range(WIDTH)] for y in range(HEIGHT)]
        expected = self.energy(image=self.write("b.png", formats.png(bits, 1, formats.GREY)))
        ink = [[(1 - v,) for v, in row] for row in bits]
        nibbles = [[(15 * v,) for v, in row] for row in bits]
        for data in (pictures.pnm(ink, 1), pictures.pnm(ink, 4), pictures.pnm(bits, 5, 1),
                     pictures.pnm([[(1000 * v,) for v, in row] for row in bits], 2, 1000),
                     pictures.tiff(bits, 1, pictures.BLACK_IS_ZERO),
                     pictures.tiff(ink, 1, pictures.WHITE_IS_ZERO),
                     pictures.tiff(nibbles, 4, pictures.BLACK_IS_ZERO)):
            self.assertEqual(self.energy(image=self.write("b", data)), expected)

    def test_jpeg(self):
        """Blocks of one colour come through JPEG as they are."""
        blocks = [(10, 20, 30), (200, 100, 50), (0, 255, 128), (77, 77, 77), (1, 2, 254), (9, 9, 9)]
        rows = [[blocks[3 * (y // 8) + x // 8] for x in range(24)] for y in range(16)]
        labels = self.write("l.png", formats.number_png([[x // 12 for x in range(24)]] * 16))
        unary = self.write("u24.npy", formats.npy([v % 5 for v in range(24 * 16 * 2)], (16, 24, 2)))
        expected = self.energy(image=self.write("b.png", formats.png(rows)), unary=unary,
                               labels=labels)
        data = pictures.jpeg(blocks, 3)
        for file in (data, data + b"trailing", pictures.SOI + pictures.segment(0xfe, b"comment") +
                     data[2:]):
            self.assertEqual(self.energy(image=self.write("b.jpg", file), unary=unary,
                                         labels=labels), expected)
        grey = [(b[1],) for b in blocks]
        as_png = [[grey[3 * (y // 8) + x // 8] for x in range(24)] for y in range(16)]
        self.assertEqual(
            self.energy(image=self.write("g.jpg", pictures.jpeg(grey, 3)), unary=unary,
                        labels=labels),
            self.energy(image=self.write("g.png", formats.png(as_png, colour=formats.GREY)),
                        unary=unary, labels=labels))
        self.bad(self.path("b.jpg"), "does not keep numbers", "energy", self.image, "--unary",
                 self.unary, "--labels", self.path("b.jpg"))

    def test_labels(self):
        expected = self.energy()
        rows = [[(v,) for v in row] for row in LABELLING]
        flat = [v for row in LABELLING for v in row]
        palette = [(255, 0, 0)] * 256
        for data in (pictures.pnm(rows, 5), pictures.pnm(rows, 2, 2), pictures.pnm(rows, 5, 65535),
                     pictures.tiff(rows, 8, pictures.BLACK_IS_ZERO),
                     pictures.tiff(rows, 16, pictures.WHITE_IS_ZERO, ">"),
                     pictures.tiff(rows, 8, pictures.TIFF_PALETTE, palette=palette),
                     volumes.nifti(flat, (WIDTH, HEIGHT, 1), volumes.U8),
                     volumes.nifti(flat, (WIDTH, HEIGHT), volumes.F32)):
            self.assertEqual(self.energy(labels=self.write("l", data)), expected)
        for data in (pictures.pnm(IMAGE, 6), pictures.tiff(IMAGE)):
            file = self.write("l", data)
            self.bad(file, "one number per pixel", "energy", self.image, "--unary", self.unary,
                     "--labels", file)


class UnaryTest(Case):
    def unary_energy(self, *more, image=None, labels=None):
        text = self.good("energy", image or self.image, "--labels", labels or self.labels,
                         "--json", "-", *UNARY_ONLY, *more)
        result = json.loads(text)
        return result["energy"], result["labels"]

    def near(self, value, expected):
        # Energies are floats, sums are doubles.
        self.assertAlmostEqual(value, expected, delta=2e-6 * max(1, abs(expected)))

    def of_labelling(self, energy):
        """The sum of energy(pixel, label) over the labelling."""
        return sum(energy(p, LABELLING[y][x]) for p, (x, y) in enumerate(PIXELS))

    def test_probabilities(self):
        def probability(p, i):
            row = [1 + (3 * p + 5 * k) % 7 for k in range(LABELS)]
            return row[i] / sum(row)

        values = [probability(p, i) for p in range(len(PIXELS)) for i in range(LABELS)]
        values[:3] = [1, 0, 0]
        expected = self.of_labelling(lambda p, i: -math.log(max(values[p * LABELS + i], 1e-6)))
        file = self.write("p.npy", formats.npy(values, (HEIGHT, WIDTH, LABELS)))
        kind = ("--unary-kind", "probabilities")
        self.near(self.unary_energy("--unary", file, *kind)[0], expected)
        planes = [values[p * LABELS + i] for i in range(LABELS) for p in range(len(PIXELS))]
        file = self.write("p.npy", formats.npy(planes, (LABELS, HEIGHT, WIDTH), "<f8"))
        self.near(self.unary_energy("--unary", file, *kind)[0], expected)
        stored = [round(200 * v) for v in values]
        expected = self.of_labelling(
            lambda p, i: -math.log(max(stored[p * LABELS + i] / 200, 1e-6)))
        file = self.write("q.npy", formats.npy(stored, (HEIGHT, WIDTH, LABELS), "|u1"))
        self.near(self.unary_energy("--unary", file, *kind, "--unary-scale", "0.005")[0], expected)
        for wrong, words in ((-0.01, ", label 1, which is not a probability"),
                             (1.5, ", label 1, which is not a probability"), (math.nan, ", channel 1")):
            values[4] = wrong
            file = self.write("w.npy", formats.npy(values, (HEIGHT, WIDTH, LABELS)))
            self.bad(file, "at x = 1, y = 0" + words, "energy", self.image, "--unary", file,
                     "--labels", self.labels, *kind)

    def test_logits(self):
        values = [((7 * i) % 23) - 11.5 for i in range(len(UNARY))]
        values[3:6] = [900.0, -900.0, 0.0]

        def energy(p, i):
            row = values[p * LABELS:(p + 1) * LABELS]
            top = max(row)
            return math.log(sum(math.exp(v - top) for v in row)) + top - row[i]

        file = self.write("l.npy", formats.npy(values, (HEIGHT, WIDTH, LABELS)))
        self.near(self.unary_energy("--unary", file, "--unary-kind=logits")[0],
                  self.of_labelling(energy))
        values[7] = math.nan
        file = self.write("l.npy", formats.npy(values, (HEIGHT, WIDTH, LABELS)))
        self.bad(file, "x = 2, y = 0", "energy", self.image, "--unary", file, "--labels",
                 self.labels, "--unary-kind=logits")

    def test_large_files_are_mapped(self):
        size = 600
        image = self.write("big.png", formats.number_png([[0] * size] * size))
        labels = self.write("one.png", formats.number_png([[1] * size] * size))
        values = [float(i % 8) for i in range(size * size * 2)]
        expected = sum(values[1::2])
        for descr in ("<f4", ">f4"):
            file = self.write("big.npy", formats.npy(values, (size, size, 2), descr))
            self.assertGreater(os.path.getsize(file), 2**20)
            self.near(self.unary_energy("--unary", file, image=image, labels=labels)[0], expected)
        self.near(self.unary_energy("--unary", file, "--unary-scale=2", image=image,
                                    labels=labels)[0], 2 * expected)

    def test_label_prior(self):
        prior = [[(x + y) % LABELS for x in range(WIDTH)] for y in range(HEIGHT)]
        prior[2][3] = 255

        def energy(labels, confidence):
            def of(p, i):
                given = prior[PIXELS[p][1]][PIXELS[p][0]]
                if given == 255:
                    return math.log(labels)
                return -math.log(confidence if i == given else (1 - confidence) / (labels - 1))
            return self.of_labelling(of)

        file = self.write("prior.png", formats.number_png(prior))
        start = ("--labels-prior", file)
        for more, labels, confidence in ((("--confidence=.7",), 3, 0.7), (("--confidence=.9",), 3, 0.9),
                                         (("--label-count=7", "--confidence=.7"), 7, 0.7)):
            value, count = self.unary_energy(*start, *more)
            self.assertEqual(count, labels)
            self.near(value, energy(labels, confidence))
        prior[2][3] = 77
        file = self.write("p77.png", formats.number_png(prior))
        prior[2][3] = 255
        self.near(self.unary_energy("--labels-prior", file, "--prior-unknown=77", "--confidence=.7")[0],
                  energy(3, 0.7))
        self.assertEqual(self.unary_energy(*start, "--prior-unknown=none")[1], 256)

        arguments = ("energy", self.image, "--labels", self.labels, *start)
        self.bad("--confidence", "not more than chance", *arguments, "--confidence", "0.3")
        self.bad(file, "label 77 at x = 3, y = 2; labels run from 0 to 2", "energy", self.image,
                 "--labels", self.labels, "--labels-prior", file, "--label-count=3")
        zero = self.write("zero.png", formats.number_png([[0] * WIDTH] * HEIGHT))
        self.bad(zero, "gives 1 labels", "energy", self.image, "--labels", self.labels,
                 "--labels-prior", zero)
        self.bad("--label-count", "gives 70000 labels", *arguments, "--label-count=70000")
        self.bad(self.image, "one number per pixel", "energy", self.image, "--labels", self.labels,
                 "--labels-prior", self.image)


class ScribbleTest(Case):
    """Two halves, dark and bright, with a stroke in each."""

    def setUp(self):
        super().setUp()
        self.width, self.height = 16, 12
        rows = [[((x * 5 + y * 3) % 20 + (180 if x >= 8 else 30),) * 3 for x in range(16)]
                for y in range(12)]
        self.photo = self.write("photo.png", formats.png(rows))
        self.truth = [[int(x >= 8) for x in range(16)] for y in range(12)]
        self.labels = self.write("truth.png", formats.number_png(self.truth))
        self.strokes = [[self.stroke(x, y) for x in range(16)] for y in range(12)]

    @staticmethod
    def stroke(x, y):
        return (0 if x == 2 else 1) if 1 < y < 10 and x in (2, 12) else None

    def draw(self, name, values):
        """A map with values[label], and values[2] where there is no stroke."""
        rows = [[values[2 if s is None else s] for s in row] for row in self.strokes]
        if isinstance(values[0], tuple):
            return self.write(name, formats.png(rows))
        return self.write(name, formats.number_png(rows))

    def result(self, scribbles, *more, labels=None, image=None):
        text = self.good("energy", image or self.photo, "--scribbles", scribbles, "--labels",
                         labels or self.labels, "--json=-", *UNARY_ONLY, *more)
        return json.loads(text)

    def test_numbers_and_colours(self):
        expected = self.result(self.draw("s.png", (0, 1, 255)))
        self.assertEqual(expected["labels"], 2)
        # The true labelling is likely at every pixel, and strokes cost nothing.
        self.assertLess(expected["energy"], 0.5 * self.width * self.height)
        for values, more in (((1, 2, 0), ()), ((0, 1, 9), ("--scribble-unknown=9",)),
                             ((0, 1, 200), ("--scribble-unknown", "200")),
                             (((0, 0, 255), (255, 0, 0), (0, 0, 0)), ()),
                             (((0, 0, 255), (255, 0, 0), (255, 255, 255)), ()),
                             (((0, 0, 0), (255, 0, 0), (255, 255, 255)), ()),
                             (((0, 0, 255), (255, 0, 0), (128, 128, 128)),
                              ("--scribble-unknown=128",)),
                             (((0, 0, 255), (255, 0, 0), (1, 2, 254)),
                              ("--scribble-unknown=#0102FE",))):
            file = self.draw("t.png", values)
            self.assertEqual(self.result(file, *more), expected, values)
        flat = [255 if s is None else s for row in self.strokes for s in row]
        npy = self.write("s.npy", formats.npy(flat, (12, 16), "<i2"))
        self.assertEqual(self.result(npy), expected)
        pgm = self.write("s.pgm", pictures.pnm([[(flat[16 * y + x],) for x in range(16)]
                                                for y in range(12)], 5))
        self.assertEqual(self.result(pgm), expected)

    def test_solve_with_kernels_for_scribbles(self):
        scribbles = self.draw("s.png", (0, 1, 255))
        for method in ("mf", "qp", "lp"):
            text = self.good("solve", self.photo, "--scribbles", scribbles, "-o", "m.png", "-m", method)
            self.assertIn("strokes on 16 pixels", text)
            self.assertRegex(text, r"kernels for scribbles: --spatial [\d.]+,[\d.]+ --bilateral ")
            mask = formats.read_png(self.read("m.png"))[4]
            self.assertEqual([[v for v, in row] for row in mask], self.truth)
        # Kernels that were asked for are used.
        text = self.good("solve", self.photo, "--scribbles", scribbles, "-o", "m.png", "-m", "mf",
                         "--bilateral=none")
        self.assertNotIn("kernels for scribbles", text)

    def test_strokes_are_hard(self):
        scribbles = self.draw("s.png", (0, 1, 255))
        right = self.result(scribbles)["energy"]
        wrong = [list(row) for row in self.truth]
        wrong[4][2] = 1
        file = self.write("wrong.png", formats.number_png(wrong))
        self.assertGreater(self.result(scribbles, labels=file)["energy"], right + 9e5)

    def test_bad_scribbles(self):
        def bad(file, words, *more):
            self.bad(file, words, "energy", self.photo, "--scribbles", file, "--labels",
                     self.labels, *more)

        bad(self.draw("b.png", (0, 0, 254)), "only one label", "--scribble-unknown=254")
        bad(self.draw("b.png", (0, 0, 255)), "is a mask of 0 and 255")
        bad(self.draw("b.png", (255, 255, 255)), "no label")
        bad(self.draw("b.png", (0, 2, 255)), "no stroke with the number 1")
        bad(self.draw("b.png", (1, 3, 0)), "no stroke with the number 2")
        bad(self.draw("b.png", (1, 254, 255)), "strokes with the number 254")
        bad(self.draw("b.png", ((255, 0, 0), (255, 0, 0), (0, 0, 0))), "only one label")
        bad(self.image, "6 x 5 pixels and the image 16 x 12")
        noise = self.write("noise.png", formats.png([[(x, 9 * y, 7 * (x ^ y)) for x in range(16)]
                                                     for y in range(12)]))
        bad(noise, "more than 64 colours")
        numbers = self.draw("b.png", (0, 1, 255))
        self.bad("--scribble-unknown", "numbers, not colours", "energy", self.photo, "--scribbles",
                 numbers, "--labels", self.labels, "--scribble-unknown=#ffffff")


class VolumeTest(Case):
    SIZE = (4, 3, 2)
    VOXELS = [(x, y, z) for z in range(2) for y in range(3) for x in range(4)]
    VALUES = [(37 * x + 11 * y * y + 5 * z) % 64 for x, y, z in VOXELS]
    LABELLING = [(x + z) % 2 for x, y, z in VOXELS]
    UNARY = [((3 * i + 7 * l) % 16) / 8 for l in range(2) for i in range(24)]

    def setUp(self):
        super().setUp()
        self.volume = self.write("v.nii", volumes.nifti(self.VALUES, self.SIZE, volumes.I16,
                                                        spacing=(1, 1, 2.5)))
        self.labels = self.write("l.nii", volumes.nifti(self.LABELLING, self.SIZE, volumes.U8))
        self.unary = self.write("u.nii", volumes.nifti(self.UNARY, self.SIZE + (2,)))
        self.options = ("--operator=exact", "--spatial=2,1.5", "--bilateral=3,20,4",
                        "--normalize=none")

    def result(self, volume=None, unary=None, labels=None):
        return self.energy(*self.options, image=volume or self.volume, unary=unary, labels=labels)

    def expected_energies(self, spacing=(1, 1, 2.5), scale=1):
        count = range(len(self.VOXELS))
        parts = [0, 0]
        for a in count:
            for b in count:
                if self.LABELLING[a] != self.LABELLING[b]:
                    square = sum(((p - q) * s) ** 2 for p, q, s in
                                 zip(self.VOXELS[a], self.VOXELS[b], spacing))
                    colour = (scale * (self.VALUES[a] - self.VALUES[b])) ** 2
                    parts[0] += 1.5 * math.exp(-square / 8)
                    parts[1] += 4 * math.exp(-square / 18 - colour / 800)
        unary = sum(self.UNARY[self.LABELLING[i] * len(self.VOXELS) + i] for i in count)
        return unary, parts[0], parts[1]

    def check(self, result, expected):
        found = [result["energy_unary"]] + [k["energy"] for k in result["kernels"]]
        for value, wanted in zip(found, expected):
            self.assertAlmostEqual(value, wanted, delta=1e-5 * max(1, abs(wanted)))

    def test_energy_with_spacing(self):
        result = self.result()
        self.check(result, self.expected_energies())
        self.assertEqual([result[k] for k in ("width", "height", "depth", "spacing_mm")],
                         [*self.SIZE, [1, 1, 2.5]])

    def test_every_type(self):
        expected = self.result()
        for datatype in volumes.CODE:
            for order in "<>":
                for version in (1, 2):
                    data = volumes.nifti(self.VALUES, self.SIZE, datatype, order, version,
                                         spacing=(1, 1, 2.5))
                    self.assertEqual(self.result(self.write("t.nii", data)), expected)
        packed = gzip.compress(data)
        self.assertEqual(self.result(self.write("t.nii.gz", packed)), expected)
        two = gzip.compress(data[:400]) + gzip.compress(data[400:])
        self.assertEqual(self.result(self.write("two.nii.gz", two)), expected)
        units = volumes.nifti(self.VALUES, self.SIZE, spacing=(1000, -1000, 2500), units=3)
        self.check(self.result(self.write("t.nii", units)), self.expected_energies())
        scaled = volumes.nifti([2 * v + 6 for v in self.VALUES], self.SIZE, volumes.I32,
                               slope=0.25, intercept=-3, spacing=(1, 1, 2.5))
        self.check(self.result(self.write("t.nii", scaled)), self.expected_energies(scale=0.5))

    def test_arrays_over_volumes(self):
        expected = self.result()
        shape = self.SIZE[::-1]
        rows = [self.UNARY[l * len(self.VOXELS) + i] for i in range(len(self.VOXELS))
                for l in range(2)]
        for values, axes in ((rows, shape + (2,)), (self.UNARY, (2,) + shape)):
            for fortran in (False, True):
                file = self.write("u.npy", formats.npy(values, axes, fortran=fortran))
                self.assertEqual(self.result(unary=file), expected)
        labels = self.write("l.npy", formats.npy(self.LABELLING, shape, "|u1"))
        self.assertEqual(self.result(labels=labels), expected)
        file = self.write("r.npy", formats.npy(self.UNARY, self.SIZE + (2,)))
        start = ("energy", self.volume, "--labels", self.labels, "--unary")
        self.bad(file, "proportions; its axes seem to be reversed",
                 *start, file)
        file = self.write("d.nii", volumes.nifti([0] * 24, (4, 2, 3)))
        self.bad(file, "is 4 x 2 x 3 voxels and the image 4 x 3 x 2 voxels", *start, file)
        whole = self.write("w.nii", volumes.nifti([v % 9 for v in range(48)], self.SIZE + (2,), volumes.I16))
        self.bad(whole, "holds integers", *start, whole)
        file = self.write("f.nii", volumes.nifti([0] * 24, self.SIZE))
        self.bad(file, "have a fourth one, of the labels", *start, file)
        self.bad(self.path("labels.png"), "6 x 5 pixels and the image 4 x 3 x 2 voxels", "energy",
                 self.volume, "--unary", self.unary, "--labels", self.path("labels.png"))
        half = self.write("h.nii", volumes.nifti([0.5] * 24, self.SIZE))
        self.bad(half, "whole numbers", *start, self.unary, "--cliques", half)
        high = self.write("h.nii", volumes.nifti([0] * 23 + [2], self.SIZE))
        self.bad(high, "label 2 at x = 3, y = 2, z = 1", "energy", self.volume, "--unary",
                 self.unary, "--labels", high)

    def test_cliques_and_channels(self):
        regions = self.write("r.nii", volumes.nifti([x // 2 for x, y, z in self.VOXELS], self.SIZE,
                                                    volumes.I32))
        result = self.energy(*self.options, "--cliques", regions, image=self.volume)
        self.assertEqual(result["cliques"], 2)
        twice = self.write("two.nii", volumes.nifti(self.VALUES * 2, self.SIZE + (2,),
                                                    spacing=(1, 1, 2.5, 1)))
        result = self.result(twice)
        self.check(result, self.expected_energies(scale=math.sqrt(2)))

    def test_label_prior_and_scribbles(self):
        prior = self.good("energy", self.volume, "--labels-prior", self.labels, "--confidence=.7", "--labels",
                          self.labels, *UNARY_ONLY, "--json=-")
        self.assertAlmostEqual(json.loads(prior)["energy"], -24 * math.log(0.7), delta=1e-5)
        strokes = [0] * 24
        strokes[0], strokes[5] = 1, 2
        file = self.write("s.nii.gz", gzip.compress(volumes.nifti(strokes, self.SIZE, volumes.U8)))
        result = json.loads(self.good("energy", self.volume, "--scribbles", file, "--labels",
                                      self.labels, *UNARY_ONLY, "--json=-"))
        self.assertEqual(result["labels"], 2)

    def test_filter_writes_volumes(self):
        for name in ("y.nii", "y.nii.gz"):
            self.good("filter", self.volume, "-o", name, "--operator=exact", "--bilateral=none",
                      "--spatial=2,3", "--normalize=none")
            size, spacing, datatype, values = volumes.read_nifti(self.read(name))
            self.assertEqual((size, spacing, datatype), (self.SIZE, (1, 1, 2.5), volumes.F32))
            for a, value in enumerate(values):
                expected = sum(3 * v * math.exp(-sum(((p - q) * s) ** 2 for p, q, s in
                                                     zip(self.VOXELS[a], b, (1, 1, 2.5))) / 8)
                               for b, v in zip(self.VOXELS, self.VALUES))
                self.assertAlmostEqual(value, expected, delta=1e-5 * abs(expected))
        self.good("filter", self.volume, "--input", self.unary, "-o", "u2.nii")
        self.assertEqual(volumes.read_nifti(self.read("u2.nii"))[0], self.SIZE + (2,))
        self.good("filter", self.volume, "--row-sums", "-o", "r.npy")
        self.assertEqual(formats.read_npy(self.read("r.npy"))[0], self.SIZE[::-1])
        self.bad("y.png", "a volume makes no picture", "filter", self.volume, "-o", "y.png")
        self.bad(self.volume, "one or two axes", "superpixels", self.volume, "-o", "y.npy")
        self.bad("y.nii", "a picture makes no volume", "filter", self.image, "-o", "y.nii")


class RealDataTest(Case):
    """Each kind of input on real data."""

    def shared(self, *names):
        path = os.path.join(SHARED_DATA, *names)
        if not os.path.exists(path):
            self.skipTest("no shared data")
        return path

    def without_void(self, path):
        """Label pictures with 255 replaced by 0."""
        rows = formats.read_png(path)[4]
        return self.write("gt.png", formats.number_png([[v if v != 255 else 0 for v, in row]
                                                        for row in rows]))

    def read_shared(self, path):
        with open(path, "rb") as stream:
            return stream.read()

    def test_scribbles(self):
        for name in ("106024", "21077", "153077"):
            truth = self.without_void(self.read_shared(self.shared("scribbles", name + "_gt.png")))
            rows = formats.read_png(self.read("gt.png"))[4]
            opposite = self.write("no.png", formats.number_png([[1 - v for v, in row]
                                                                for row in rows]))
            energies = []
            for labels in (truth, opposite):
                text = self.good("energy", self.shared("scribbles", name + ".png"), "--scribbles",
                                 self.shared("scribbles", name + "_scrib2.png"), "--labels", labels,
                                 "--json=-", *UNARY_ONLY)
                energies.append(json.loads(text)["energy"])
            self.assertLess(energies[0], 0.5 * energies[1])

    def test_quantized_unaries_and_prior(self):
        image = self.shared("eval-set", "images", "2_11_s.png")
        truth = self.without_void(
            self.read_shared(self.shared("eval-set", "gt", "2_11_s.png")))
        result = self.energy("--unary-scale", "0.05", image=image, labels=truth,
                             unary=self.shared("eval-set", "unaries", "2_11_s.npy"))
        self.assertEqual(result["labels"], 21)
        text = self.good("energy", image, "--labels-prior",
                         self.shared("eval-set", "gt", "2_11_s.png"), "--label-count=21",
                         "--labels", truth, "--json=-")
        self.assertEqual(json.loads(text)["labels"], 21)

    def test_volume(self):
        image = self.shared("volume", "2013_12_1_img.nii.gz")
        first = self.shared("volume", "2013_12_1_init.nii.gz")
        text = self.good("energy", image, "--labels-prior", first, "--confidence=.7", "--labels", first, "--json=-",
                         "--bilateral=4,20,3")
        result = json.loads(text)
        self.assertEqual([result[k] for k in ("width", "height", "depth")], [120, 150, 100])
        self.assertAlmostEqual(result["energy_unary"], -1800000 * math.log(0.7), delta=1)
        self.assertGreater(result["energy_pairwise"], 0)


if __name__ == "__main__":
    unittest.main()
