"""A data set of coloured stripes, made here."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cli"))

import datasets
import formats

LABELS, IMAGES = 3, 24
SPLITS = {"val": range(0, IMAGES, 2), "test": range(1, IMAGES, 2)}


def scene(k, width, height):
    truth = [[(x + k) * LABELS // (width + IMAGES) for x in range(width)] for y in range(height)]
    image = [[(60 * t + (7 * x + 5 * y + k) % 11, 200 - 70 * t, 90) for x, t in enumerate(row)]
             for y, row in enumerate(truth)]
    unary = [(i != truth[y][x]) / 4 + ((13 * x + 29 * y + 17 * i * i + k) % 16) / 8
             for y in range(height) for x in range(width) for i in range(LABELS)]
    return ("%02d" % k, image, formats.npy(unary, (height, width, LABELS)), [[255] + row[:-1] for row in truth])


def make_dataset(folder, width, height):
    """Stripes with noise, shifted by k pixels in image k; the truth is a pixel off, so that there are
    errors to count."""
    splits = {split: ["%02d" % k for k in numbers] for split, numbers in SPLITS.items()}
    datasets.write(folder, [scene(k, width, height) for k in range(IMAGES)], splits, {"labels": LABELS, "void": 255})
