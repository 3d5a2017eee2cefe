#!/usr/bin/env python3
"""The most memory that a whole run has resident: blocks that are used in turn do not exist at once."""

import os
import random
import unittest

import formats
from case import SHARED_DATA, Case

MEBIBYTE = 1 << 20
# Measured: 56 to 59 MiB; 7 MiB, 4 of them unaries; 194 to 199 bytes. A block more, or one that lives too long, exceeds them.
PHOTOGRAPH_MOST = 62 * MEBIBYTE
LABELS_MOST = 10 * MEBIBYTE
BYTES_PER_PIXEL_MOST = 203


def picture(width, height):
    """Two regions, a slow change and grain: about as many colours as a photograph has."""
    noise = random.Random(1).randbytes(3 * width * height)
    colours = bytearray()
    for y in range(height):
        for k in range(3 * width):
            colours.append(40 + 90 * (2 * y < height) + 30 * k // width + (noise[3 * width * y + k] & 15))
    return b"P6 %d %d 255\n" % (width, height) + bytes(colours)


def unary(width, height, labels, in_use):
    """Probabilities times 255: stripes of labels in use, with errors at a fifth of the pixels."""
    draws = random.Random(2)
    values = bytearray()
    for _ in range(height):
        for x in range(width):
            likely = (x * in_use // width + (draws.random() < 0.2)) % in_use
            values += bytes(150 if i == likely else 105 // (labels - 1) for i in range(labels))
    return formats.npy([], (height, width, labels), "|u1") + bytes(values)


class PeakTest(Case):
    def setUp(self):
        super().setUp()
        if "sanitized" in os.environ.get("DCRF_TEST_BUILD", ""):
            self.skipTest("the sanitizer has memory of its own")

    def solve(self, *arguments):
        """The most bytes that a run had resident."""
        status, message, peak = self.peak_of("solve", *arguments, "--threads", "2", "-q", "-o", "labels.npy")
        self.assertEqual(status, 0, message)
        return peak

    def solve_drawn(self, size, labels, in_use, *arguments):
        self.write("picture.ppm", picture(*size))
        self.write("unary.npy", unary(*size, labels, in_use))
        return self.solve("picture.ppm", "--unary", "unary.npy", "--unary-kind", "probabilities", "--unary-scale",
                          repr(1 / 255), "--strength", "4", *arguments)

    def test_labels_without_pixels(self):
        """Once the LP runs, labels that no pixel has take no memory but their unaries."""
        few, many = (self.solve_drawn((320, 213), labels, 5, "-m", "lp", "--gap", "1%") for labels in (5, 21))
        print(f"LP: {few / MEBIBYTE:.1f} MiB with 5 labels, {many / MEBIBYTE:.1f} MiB with 21")
        self.assertLess(many - few, LABELS_MOST)

    def test_two_labels(self):
        sizes = ((480, 320), (960, 640))
        peaks = [self.solve_drawn(size, 2, 2, "-n", "3") for size in sizes]
        bytes_per_pixel = (peaks[1] - peaks[0]) / (960 * 640 - 480 * 320)
        print(f"mean field of two labels: {bytes_per_pixel:.0f} bytes per pixel")
        self.assertLess(bytes_per_pixel, BYTES_PER_PIXEL_MOST)

    @unittest.skipUnless(os.path.isdir(SHARED_DATA), "no shared data")
    def test_photograph(self):
        place = os.path.join(SHARED_DATA, "msrc-example")
        for gap in ("1%", "0.1%", "0.01%"):
            with self.subTest(gap=gap):
                peak = self.solve(os.path.join(place, "photo1.png"), "--unary", os.path.join(place, "photo1_energy.npy"),
                                  "--preset", "common", "-m", "lp", "--gap", gap)
                print(f"photo 1 by LP to {gap}: {peak / MEBIBYTE:.1f} MiB")
                self.assertLess(peak, PHOTOGRAPH_MOST)


if __name__ == "__main__":
    unittest.main()
