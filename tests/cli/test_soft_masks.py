#!/usr/bin/env python3
"""Masks as people have them: resized, blurred, saved in colour or as JPEG; how sure they are; and more labels than fit."""

import json
import os
import resource
import unittest

import formats
import pictures
from case import SHARED_DATA, Case

WIDTH, HEIGHT = 160, 96  # lengths are in proportion to the picture: in a small one borders move by parts of a pixel
RADIUS = 28


def disc(x, y):
    return ((x - 72) ** 2 + (y - 44) ** 2) ** 0.5


# Too large by two pixels, with an edge of three, as resizing leaves it.
SOFT = [[round(255 * min(1, max(0, (RADIUS + 2.2 - disc(x, y)) / 3 + 0.5))) for x in range(WIDTH)] for y in range(HEIGHT)]
HARD = [[255 * (v > 127) for v in row] for row in SOFT]
LABELS = [[v // 255 for v in row] for row in HARD]
PHOTO = [[(200, 60 + y // 2, 40) if disc(x, y) < RADIUS else (30, 80, 90 + y // 2) for x in range(WIDTH)] for y in range(HEIGHT)]
TRUTH = [[int(disc(x, y) < RADIUS) for x in range(WIDTH)] for y in range(HEIGHT)]


class SoftMaskTest(Case):
    def setUp(self):
        super().setUp()
        self.photo = self.write("photo.png", formats.png(PHOTO))

    def solve(self, rows_or_file, *more):
        """The labels, and what is said."""
        file = rows_or_file if isinstance(rows_or_file, str) else self.write("mask.png", formats.number_png(rows_or_file))
        said = self.good("solve", self.photo, "--labels-prior", file, "-o", "out.png", "--json", "run.json", *more)
        self.run_json = json.loads(self.read("run.json"))
        return [[p[0] for p in row] for row in formats.read_png(self.read("out.png"))[4]], said

    def test_resized_mask(self):
        self.assertGreater(len({v for row in SOFT for v in row}), 4)
        labels, said = self.solve(SOFT)
        self.assertIn("unaries: a soft mask of two labels, from 0 (label 0) to 255 (label 1)\n", said)
        self.assertEqual(self.run_json["labels"], 2)
        self.assertEqual(self.run_json["unary"], {"kind": "soft mask"})
        # Its borders are refined as those of a hard one: to where the picture has them.
        self.assertEqual(labels, TRUTH)
        self.assertIn("255 is label 1", self.solve(HARD)[1])

    def test_with_a_probability(self):
        """Half black says nothing, and the rest by how far it is from there."""
        off = ("--spatial", "none", "--bilateral", "none", "--confidence", "0.8")
        labels, _ = self.solve(SOFT, *off, "--marginals", "m.npy")
        marginals = formats.read_npy(self.read("m.npy"))[1]
        for i, value in enumerate(v for row in SOFT for v in row):
            sure = 2 * value / 255 - 1
            probability = 0.5 + 0.3 * sure
            self.assertAlmostEqual(marginals[2 * i + 1], probability, delta=1e-5)
            if abs(sure) > 0.05:
                self.assertEqual(labels[i // WIDTH][i % WIDTH], LABELS[i // WIDTH][i % WIDTH])

    def test_in_tiles(self):
        """Tiles read the same numbers."""
        off = ("--spatial", "none", "--bilateral", "none", "--confidence", "0.8")
        whole, _ = self.solve(SOFT, *off)
        tiled, said = self.solve(SOFT, *off, "--tile", "64")
        self.assertEqual(tiled, whole)
        self.assertIn("a soft mask of two labels", said)
        self.assertIn("tiles", said)

    def test_what_is_none(self):
        """Maps of labels stay maps of labels, also with large numbers and a void of 255."""
        blocks = [[(0, 90, 150, 255)[(x // 40 + y // 32) % 4] for x in range(WIDTH)] for y in range(HEIGHT)]
        self.solve(blocks)
        self.assertEqual(self.run_json["labels"], 151)
        noisy = [[(0, 7, 20, 255)[(x * x + y) % 4] for x in range(WIDTH)] for y in range(HEIGHT)]
        self.solve(noisy)
        self.assertEqual(self.run_json["labels"], 21)
        self.solve(SOFT, "--prior-unknown", "none")
        self.assertEqual(self.run_json["labels"], 256)
        file = self.write("three.png", formats.number_png([[x % 3 for x in range(WIDTH)]] * HEIGHT))
        self.bad(file, "has the label 2 at x = 2, y = 0; labels run from 0 to 1", "solve", self.photo, "--labels-prior", file,
                 "--label-count", "2")

    def test_trimap(self):
        """One grey between is unknown; black and white are what they say."""
        rows = [[255 if disc(x, y) < 20 else 0 if disc(x, y) > 36 else 128 for x in range(WIDTH)] for y in range(HEIGHT)]
        labels, said = self.solve(rows)
        self.assertIn("a soft mask", said)
        self.assertEqual(labels, TRUTH)

    def test_grey_in_colours(self):
        """Three equal channels, with alpha or without, are one number."""
        wanted, _ = self.solve(HARD)
        for name, colour, more in (("rgb.png", formats.RGB, ()), ("rgba.png", formats.RGBA, (255,))):
            file = self.write(name, formats.png([[(v, v, v) + more for v in row] for row in HARD], 8, colour))
            self.assertEqual(self.solve(file)[0], wanted)
            self.assertEqual(self.solve(file, "--tile", "64", "--confidence", "0.7", "--bilateral", "4,13")[0],
                             self.solve(HARD, "--tile", "64", "--confidence", "0.7", "--bilateral", "4,13")[0])
        for name, data in (("m.ppm", pictures.pnm([[(v, v, v) for v in row] for row in HARD], 6)),
                           ("m.tif", pictures.tiff([[(v, v, v) for v in row] for row in HARD]))):
            self.assertEqual(self.solve(self.write(name, data))[0], wanted)
        rows = [[(v, v, v) for v in row] for row in HARD]
        rows[5][7] = (255, 0, 0)
        file = self.write("red.png", formats.png(rows))
        for more in ((), ("--tile", "64")):
            self.bad(file, "has colours where one number per pixel is needed", "solve", self.photo, "--labels-prior", file, *more)

    def test_jpeg(self):
        """Blocks of 8 x 8 in black and white, and in greys, which a JPEG does not keep."""
        blocks = [[255 * ((x // 4 + y // 4) % 2) for x in range(20)] for y in range(12)]
        file = self.write("mask.jpg", pictures.jpeg([(v,) for row in blocks for v in row], 20))
        as_png = [[blocks[y // 8][x // 8] for x in range(WIDTH)] for y in range(HEIGHT)]
        wanted, _ = self.solve(as_png)
        self.assertEqual(self.solve(file)[0], wanted)
        greys = self.write("grey.jpg", pictures.jpeg([(12 * x + 8,) for _ in range(12) for x in range(20)], 20))
        self.bad(greys, "is a JPEG and no mask of black and white", "solve", self.photo, "--labels-prior", greys)
        self.bad(file, "is a JPEG, which does not keep numbers", "solve", self.photo, "--unary", self.write(
            "u.npy", formats.npy([0.5] * (WIDTH * HEIGHT * 2), (HEIGHT, WIDTH, 2))), "--start", file)


class SureTest(SoftMaskTest):
    """How sure a map is, pixel by pixel."""
    test_resized_mask = test_with_a_probability = test_in_tiles = test_what_is_none = None
    test_trimap = test_grey_in_colours = test_jpeg = None

    def test_sure_regions_keep_their_labels(self):
        """A patch that the picture speaks against stays where it is known, and not where it is not."""
        rows = [list(row) for row in HARD]
        patch = [(x, y) for x in range(8, 12) for y in range(8, 12)]
        for x, y in patch:
            rows[y][x] = 255
        sure = self.write("sure.png", formats.number_png([[255 * ((x, y) in patch) for x in range(WIDTH)] for y in range(HEIGHT)]))
        without, _ = self.solve(rows)
        kept, _ = self.solve(rows, "--prior-sure", sure)
        self.assertEqual({without[y][x] for x, y in patch}, {0})
        self.assertEqual({kept[y][x] for x, y in patch}, {1})
        kept, _ = self.solve(rows, "--prior-sure", sure, "--confidence", "0.6", "--strength", "50")
        self.assertEqual({kept[y][x] for x, y in patch}, {1})

    def test_confidence_maps(self):
        """Half of the map is wrong, and said to be unknown: the colours decide there."""
        rows = [[0 if x < 72 else v for x, v in enumerate(row)] for row in HARD]
        unknown = [[255 * (x >= 72) for x in range(WIDTH)] for _ in range(HEIGHT)]
        self.assertNotEqual(self.solve(rows)[0], TRUTH)
        as_picture = self.write("sure.png", formats.number_png(unknown))
        as_array = self.write("sure.npy", formats.npy([v / 255 for row in unknown for v in row], (HEIGHT, WIDTH)))
        for file in (as_picture, as_array):
            self.assertEqual(self.solve(rows, "--prior-confidence", file)[0], TRUTH)
        # White is as sure as ever, and does not bind.
        white = self.write("white.png", formats.number_png([[255] * WIDTH] * HEIGHT))
        self.assertEqual(self.solve(HARD, "--prior-confidence", white)[0], self.solve(HARD)[0])

    def test_bad_ones(self):
        mask = self.write("mask.png", formats.number_png(HARD))
        small = self.write("small.png", formats.number_png([[0, 1]]))
        high = self.write("high.npy", formats.npy([1.5] * (WIDTH * HEIGHT), (HEIGHT, WIDTH)))
        start = ("solve", self.photo, "--labels-prior", mask)
        self.bad(small, "they must agree", *start, "--prior-sure", small)
        self.bad(high, "holds 1.5 at x = 0, y = 0; how sure a map is lies between 0 and 1", *start, "--prior-confidence", high)
        self.bad("--prior-sure", "give that with --labels-prior", "solve", self.photo, "--scribbles", mask, "--prior-sure", mask)
        self.bad("--prior-sure", "which tiles do not do", *start, "--prior-sure", mask, "--tile", "64")


class RoomTest(Case):
    def test_too_many_labels(self):
        """Refused by their count, before memory is taken: 250 labels over a megapixel take gigabytes."""
        if os.environ.get("DCRF_TEST_BUILD") == "sanitized":
            self.skipTest("limits on the address space do not go with sanitizers")
        side = 700
        image = self.write("large.png", formats.png([[(x % 256, y % 256, 0) for x in range(side)] for y in range(side)]))
        labels = self.write("many.png", formats.number_png([[(x // 40 + 18 * (y // 40)) % 250 for x in range(side)]
                                                           for y in range(side)]))

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

        for more in ((), ("--confidence", "0.7")):
            done = self.run_dcrf("solve", image, "--labels-prior", labels, "--threads", "1", *more, preexec_fn=limit)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, r"^dcrf: --labels-prior .*many.png: 250 labels over 700 x 700 pixels take about "
                             r"\d{4,} MiB, and there are \d+; --tile 2000 solves")


if __name__ == "__main__":
    unittest.main()
