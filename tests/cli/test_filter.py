#!/usr/bin/env python3
"""dcrf filter: results against the formula."""

import math
import unittest

import formats
from case import HEIGHT, LABELS, PIXELS, UNARY, WIDTH, Case, colour, kernel_matrix


class FilterTest(Case):
    def setUp(self):
        super().setUp()
        self.input = self.unary

    def filter(self, *more):
        self.assertEqual(self.good("filter", self.image, "-o", "y.npy", *more), "")
        return formats.read_npy(self.read("y.npy"))

    def near(self, values, expected):
        self.assertEqual(len(values), len(expected))
        for value, wanted in zip(values, expected):
            # One float result of double sums of float kernel values.
            self.assertAlmostEqual(value, wanted, delta=2e-5 * max(1, abs(wanted)))

    def test_exact_against_the_formula(self):
        spatial, bilateral = kernel_matrix(2), kernel_matrix(4, 50)
        count = range(len(PIXELS))
        total = [[2 * spatial[a][b] + 3 * bilateral[a][b] for b in count] for a in count]
        options = ("--operator=exact", "--spatial=2,2", "--bilateral=4,50,3")
        expected = [sum(total[a][b] * UNARY[b * LABELS + i] for b in count)
                    for a in count for i in range(LABELS)]
        shape, values = self.filter("--input", self.input, *options)
        self.assertEqual(shape, (HEIGHT, WIDTH, LABELS))
        self.near(values, expected)

        planar = [UNARY[p * LABELS + i] for i in range(LABELS) for p in count]
        file = self.write("p.npy",
                          formats.npy(planar, (LABELS, HEIGHT, WIDTH), ">f8", fortran=True))
        shape, values = self.filter("--input", file, *options)
        self.assertEqual(shape, (LABELS, HEIGHT, WIDTH))
        self.near(values, [expected[p * LABELS + i] for i in range(LABELS) for p in count])

        file = self.write("f.npy", formats.npy(UNARY[::LABELS], (HEIGHT, WIDTH)))
        shape, values = self.filter("--input", file, *options)
        self.assertEqual(shape, (HEIGHT, WIDTH))
        self.near(values, expected[::LABELS])

        shape, values = self.filter("--row-sums", *options)
        self.assertEqual(shape, (HEIGHT, WIDTH))
        self.near(values, [sum(row) for row in total])
        shape, values = self.filter("--diagonal", *options)
        self.near(values, [total[a][a] for a in count])

    def test_one_kernel_and_no_normalization(self):
        matrix = kernel_matrix(2, symmetric=False)
        _, values = self.filter("--row-sums", "--operator=exact", "--spatial=2,1",
                                "--bilateral=none", "--normalize=none")
        self.near(values, [sum(row) for row in matrix])

    def test_picture_of_means(self):
        """Without an input the image is filtered; a PNG holds the means around each pixel."""
        matrix = kernel_matrix(2, 60)
        options = ("--operator=exact", "--spatial=none", "--bilateral=2,60,7")
        self.assertEqual(self.good("filter", self.image, "-o", "y.png", *options), "")
        width, height, depth, kind, raw = formats.read_png(self.read("y.png"))
        self.assertEqual((width, height, depth, kind), (WIDTH, HEIGHT, 8, formats.RGB))
        for a, (x, y) in enumerate(PIXELS):
            for c in range(3):
                mean = sum(matrix[a][b] * colour(*p)[c] for b, p in enumerate(PIXELS))
                mean /= sum(matrix[a])
                self.assertLessEqual(abs(raw[y][x][c] - mean), 0.5 + 1e-3)

        shape, values = self.filter(*options)
        self.assertEqual(shape, (HEIGHT, WIDTH, 3))
        self.near(values[:1], [7 * sum(matrix[0][b] * colour(*p)[0] for b, p in enumerate(PIXELS))])

        grey = self.write("g.npy", formats.npy([100] * len(PIXELS), (HEIGHT, WIDTH), "|u1"))
        self.good("filter", self.image, "--input", grey, "-o", "g.png")
        _, _, _, kind, raw = formats.read_png(self.read("g.png"))
        self.assertEqual((kind, raw[1][2]), (formats.GREY, (100,)))

    def test_lattice_runs(self):
        shape, values = self.filter("--input", self.input)
        self.assertEqual(shape, (HEIGHT, WIDTH, LABELS))
        self.assertTrue(all(map(math.isfinite, values)))

    def test_bad_input(self):
        self.write("y.npy", b"keep me")
        start = ("filter", self.image, "-o", "y.npy")
        self.bad("filter", "only one of", *start, "--diagonal", "--row-sums")
        self.bad("filter", "only one of", *start, "--diagonal", "--input", self.unary)
        self.bad("filter", "both kernels are none", *start, "--row-sums", "--spatial=none",
                 "--bilateral=none")
        self.bad("y.png", "numbers, not colours", "filter", self.image, "--diagonal", "-o", "y.png")
        two = self.write("two.npy", formats.npy(UNARY[:60], (HEIGHT, WIDTH, 2)))
        self.bad("y.png", "1 or 3 channels", "filter", self.image, "--input", two, "-o", "y.png")
        values = list(UNARY)
        values[5] = math.nan
        file = self.write("x.npy", formats.npy(values, (HEIGHT, WIDTH, LABELS)))
        self.bad(file, "nan at x = 1, y = 0, channel 2", *start, "--input", file)
        for name, data, words in formats.malformed_npy((HEIGHT, WIDTH)):
            with self.subTest(name):
                file = self.write("bad.npy", data)
                self.bad(file, words, *start, "--input", file)


if __name__ == "__main__":
    unittest.main()
