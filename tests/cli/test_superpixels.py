#!/usr/bin/env python3
"""dcrf superpixels, and superpixels as cliques."""

import gzip
import itertools
import json
import os
import unittest

import formats
import volumes
from case import HEIGHT, PIXELS, SHARED_DATA, WIDTH, Case, colour


# Four flat fields with strong edges: what any method must find.
FIELDS = {(False, False): (200, 30, 30), (True, False): (30, 200, 30),
          (False, True): (30, 30, 200), (True, True): (240, 240, 240)}
SIDE = 20


def field_number(x, y):
    return (x >= SIDE) + 2 * (y >= SIDE)


class SuperpixelsTest(Case):
    def setUp(self):
        super().setUp()
        rows = [[FIELDS[x >= SIDE, y >= SIDE] for x in range(2 * SIDE)] for y in range(2 * SIDE)]
        self.fields = self.write("fields.png", formats.png(rows))
        self.numbers = [field_number(x, y) for y in range(2 * SIDE) for x in range(2 * SIDE)]

    def regions(self, image, *more):
        """The shape and the regions that the command finds."""
        self.assertEqual(self.good("superpixels", image, "-o", "r.npy", *more), "")
        return formats.read_npy(self.read("r.npy"), "<i4")

    def test_flat_fields(self):
        for options in ((), ("--method", "meanshift"), ("--method=slic", "--region-size=20")):
            shape, values = self.regions(self.fields, *options)
            self.assertEqual(shape, (2 * SIDE, 2 * SIDE))
            self.assertEqual(values, self.numbers, options)

    def test_png_and_boundaries(self):
        self.assertEqual(self.good("superpixels", self.fields, "-o", "r.png", "--boundaries",
                                   "b.png"), "")
        width, height, _, kind, rows = formats.read_png(self.read("r.png"))
        self.assertEqual((width, height, kind), (2 * SIDE, 2 * SIDE, formats.GREY))
        self.assertEqual([p[0] for row in rows for p in row], self.numbers)
        width, height, _, kind, rows = formats.read_png(self.read("b.png"))
        self.assertEqual((width, height, kind), (2 * SIDE, 2 * SIDE, formats.RGB))
        for y, row in enumerate(rows):
            for x, pixel in enumerate(row):
                line = SIDE - 1 in (x, y)
                self.assertEqual(pixel, (255, 0, 128) if line else FIELDS[x >= SIDE, y >= SIDE])

    def checkerboard(self, width, height):
        rows = [[((x + y) % 2 * 255,) * 3 for x in range(width)] for y in range(height)]
        return self.write("board.png", formats.png(rows))

    def test_many_regions_in_a_png(self):
        image = self.checkerboard(20, 15)
        start = ("superpixels", image, "--min-region=1", "--spatial-bandwidth=1", "-o")
        self.good(*start, "r.png")
        self.assertEqual(self.read("r.png")[24], 16)  # bits a sample
        self.good(*start, "r.npy")
        self.assertEqual(formats.read_npy(self.read("r.npy"), "<i4")[1], list(range(300)))
        unary = self.write("board.npy", formats.npy([0] * 600, (15, 20, 2)))
        labels = self.write("l.png", formats.number_png([[0] * 20] * 15))
        for file in ("r.png", "r.npy"):
            result = self.energy("--cliques", file, image=image, unary=unary, labels=labels)
            self.assertEqual(result["cliques"], 300)

        start = ("superpixels", self.checkerboard(300, 220), "--min-region=1",
                 "--spatial-bandwidth=1", "-o")
        self.bad("r.png", "there are 66000; write a .npy", *start, "r.png")
        self.good(*start, "r.npy")
        self.assertEqual(formats.read_npy(self.read("r.npy"), "<i4")[1][-1], 65999)

    def test_options_have_an_effect(self):
        rows = [[(90 + 4 * x + 37 * x * y % 14, 90 + 3 * y + x * x % 12, 150 - x + y * y % 16)
                 for x in range(32)] for y in range(32)]
        image = self.write("texture.png", formats.png(rows))
        for base, options in {
            "meanshift": ("--min-region=60", "--spatial-bandwidth=2", "--range-bandwidth=80"),
            "slic": ("--min-region=400", "--region-size=5", "--compactness=300"),
        }.items():
            plain = self.regions(image, "--method", base)
            for option in options:
                changed = self.regions(image, "--method", base, option)
                self.assertTrue(changed != plain, option)
                for threads in ("1", "3"):
                    again = self.regions(image, "--method", base, option, "--threads", threads)
                    self.assertTrue(changed == again, option)

    def test_bad_options(self):
        start = ("superpixels", self.image, "-o", "r.npy")
        for option, value, words in (("--method", "kmeans", "is not one of"),
                                     ("--spatial-bandwidth", "0", "is not a number above zero"),
                                     ("--min-region", "-3", "is not "),
                                     ("--compactness", "x", "is not ")):
            self.bad(option, words, *start, option, value)
        self.bad(self.image, "between 1 and 256", *start, "--spatial-bandwidth", "1000")
        self.bad(self.image, "between 1 and 1024", *start, "--method=slic", "--region-size", "0.5")
        self.bad("superpixels", "--output FILE is missing", "superpixels", self.image)
        self.bad("no/such.png", "cannot open", "superpixels", "no/such.png", "-o", "r.npy")
        self.bad("-", "is named for two outputs", "superpixels", self.image, "-o", "-",
                 "--boundaries", "-")
        # One output that cannot be written: the other does not appear either.
        self.bad("no/b.png", "cannot be created", *start, "--boundaries", "no/b.png")


class VolumeTest(Case):
    """Eight boxes of one intensity each, on a scale that is not 0 to 255."""

    SIDE = 8

    def setUp(self):
        super().setUp()
        size = (2 * self.SIDE,) * 3
        places = list(itertools.product(range(2 * self.SIDE), repeat=3))  # z, y, x
        self.boxes = [(x >= self.SIDE) + 2 * (y >= self.SIDE) + 4 * (z >= self.SIDE) for z, y, x in places]
        self.volume = self.write("v.nii.gz", gzip.compress(volumes.nifti([300.0 * box - 1000 for box in self.boxes],
                                                                         size)))
        self.inner = [all(k != self.SIDE - 1 for k in place) for place in places]
        self.start = ("superpixels", self.volume, "--method", "slic", "--region-size", str(self.SIDE))

    def test_boxes_are_found(self):
        self.assertEqual(self.good(*self.start, "-o", "r.npy", "--boundaries", "b.nii.gz"), "")
        shape, regions = formats.read_npy(self.read("r.npy"), "<i4")
        self.assertEqual(shape, (2 * self.SIDE,) * 3)
        self.assertEqual(regions, self.boxes)
        boundaries = volumes.read_nifti(self.read("b.nii.gz"))[3]
        self.assertEqual([value == 0 for value in boundaries], self.inner)
        self.good(*self.start, "-o", "r.nii.gz")
        self.assertEqual(volumes.read_nifti(self.read("r.nii.gz"))[3], self.boxes)

    def test_cliques(self):
        prior = self.write("prior.nii.gz", gzip.compress(volumes.nifti(
            [float((i * 7919) % 11 < 6) for i in range(len(self.boxes))], (2 * self.SIDE,) * 3)))
        model = (self.volume, "--labels-prior", prior, "--json", "-", "-q")
        by_name = json.loads(self.good("solve", *model, "--cliques", "slic", "--min-region", "64"))
        self.good("superpixels", self.volume, "--method", "slic", "--min-region", "64", "-o", "r.nii.gz")
        by_file = json.loads(self.good("solve", *model, "--cliques", "r.nii.gz"))
        self.assertEqual(by_name["cliques"], by_file["cliques"])
        self.assertEqual(by_name["energy"], by_file["energy"])

    def test_refusals(self):
        self.bad(self.volume, "mean shift is for grids of one or two axes", "superpixels", self.volume, "-o", "r.npy")
        self.bad("r.png", "the image is a volume", *self.start, "-o", "r.png")
        self.bad("b.png", "the image is a volume", *self.start, "-o", "r.npy", "--boundaries", "b.png")
        self.bad("b.npy", "must be a .nii", *self.start, "-o", "r.npy", "--boundaries", "b.npy")
        self.bad("r.nii", "the image is a photograph", "superpixels", self.image, "-o", "r.nii")


class CliquesTest(Case):
    def test_superpixels_are_the_cliques(self):
        for method, options in (("meanshift", ()), ("slic", ()), ("meanshift", ("--min-region=3",)),
                                ("slic", ("--min-region=2",))):
            self.good("superpixels", self.image, "--method", method, *options, "-o", "r.npy")
            by_file = self.energy("--cliques", "r.npy")
            by_name = self.energy("--cliques", method, *options)
            self.assertEqual(by_file, by_name)
        values = formats.read_npy(self.read("r.npy"), "<i4")[1]
        self.assertEqual(by_name["cliques"], len(set(values)))

    def test_cost_is_that_of_the_regions_own_colours(self):
        # One region over the whole image, whose variance is known.
        result = self.energy("--cliques=slic", "--gamma=1e30", "--eta=100")
        self.assertEqual(result["cliques"], 1)
        variance = 0
        for c in range(3):
            values = [colour(x, y)[c] for x, y in PIXELS]
            mean = sum(values) / len(values)
            variance += sum((v - mean) ** 2 for v in values) / len(values)
        expected = 1e30 * 2.718281828459045 ** (-variance / 100)
        self.assertGreater(expected, 0)
        # Costs are doubles; the colours are whole numbers.
        self.assertAlmostEqual(result["energy_cliques"] / expected, 1, delta=1e-9)

    def test_least_size_needs_a_method(self):
        regions = self.write("r.png", formats.number_png([[0] * WIDTH] * HEIGHT))
        start = ("energy", self.image, "--unary", self.unary, "--labels", self.labels)
        self.bad("--min-region", "is taken as it is", *start, "--cliques", regions,
                 "--min-region=5")
        # A file may have the name of a method.
        self.write("slic", formats.number_png([[x for x in range(WIDTH)]] * HEIGHT))
        self.assertEqual(self.energy("--cliques", "./slic")["cliques"], WIDTH)

    def test_photographs(self):
        image = os.path.join(SHARED_DATA, "msrc-example/photo1.png")
        if not os.path.exists(image):
            self.skipTest("skipped: no shared data")
        for method, least in (("meanshift", 20), ("slic", 64)):
            self.good("superpixels", image, "--method", method, "-o", "r.npy")
            (height, width), values = formats.read_npy(self.read("r.npy"), "<i4")
            self.assertEqual((width, height), (320, 213))
            sizes = {}
            for value in values:
                sizes[value] = sizes.get(value, 0) + 1
            self.assertEqual(sorted(sizes), list(range(len(sizes))))
            self.assertGreaterEqual(min(sizes.values()), least)
            self.assertTrue(200 < len(sizes) < 350, len(sizes))


if __name__ == "__main__":
    unittest.main()
