"""A data set of coloured stripes, made here."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "cli"))

import formats

LABELS, IMAGES = 3, 24
SPLITS = {"val": range(0, IMAGES, 2), "test": range(1, IMAGES, 2)}


def make_dataset(folder, width, height):
    """Stripes with noise, shifted by k pixels in image k; the truth is a pixel off, so that there are
    errors to count."""
    for part in ("images", "unaries", "gt", "splits"):
        os.makedirs(os.path.join(folder, part))

    def write(name, data):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)

    for split, numbers in SPLITS.items():
        write("splits/%s.txt" % split, b"".join(b"%02d\n" % k for k in numbers))
    write("dataset.json", b'{"labels": %d, "void": 255}' % LABELS)
    for k in range(IMAGES):
        truth = [[(x + k) * LABELS // (width + IMAGES) for x in range(width)]
                 for y in range(height)]
        image = [[(60 * t + (7 * x + 5 * y + k) % 11, 200 - 70 * t, 90) for x, t in enumerate(row)]
                 for y, row in enumerate(truth)]
        unary = [(i != truth[y][x]) / 4 + ((13 * x + 29 * y + 17 * i * i + k) % 16) / 8
                 for y in range(height) for x in range(width) for i in range(LABELS)]
        truth = [[255] + row[:-1] for row in truth]
        write("images/%02d.png" % k, formats.png(image))
        write("unaries/%02d.npy" % k, formats.npy(unary, (height, width, LABELS)))
        write("gt/%02d.png" % k, formats.number_png(truth))
