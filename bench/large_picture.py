#!/usr/bin/env python3
"""A large picture with grain, and unaries for it, written band by band: the same for every run.

    large_picture.py WIDTH HEIGHT FOLDER [--photographs FOLDER] [--seed S]

makes FOLDER/picture.ppm, FOLDER/unary.npy (two labels, probabilities times 255 as bytes) and
FOLDER/truth.npy. With a folder of photographs (NAME.png beside a mask NAME_gt.png) the picture is a
mosaic of them, each cell mirrored by its row and column, so that there are no steps between copies
of one photograph; without, regions of smooth outline with textures. Either way grain, slow changes
of brightness, and a classifier that errs at a quarter of the pixels, alone and in patches."""
import argparse
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "cli"))
import formats

BAND = 256
GRAIN = 6
# Logits of the classifier: the truth, noise of single pixels, noise in patches.
EVIDENCE, NOISE, PATCHES = 0.9, 1.2, 0.5


class Field:
    """Smooth noise of mean 0 and deviation about 1/2: random numbers on a coarse grid, between."""

    def __init__(self, width, height, scale, seed):
        random = numpy.random.default_rng(seed)
        self.scale = scale
        self.nodes = random.standard_normal((height // scale + 2, width // scale + 2))
        self.nodes = self.nodes.astype(numpy.float32)
        self.column, self.column_share = self.place(numpy.arange(width))

    def place(self, at):
        cell = at // self.scale
        share = ((at - cell * self.scale + 0.5) / self.scale).astype(numpy.float32)
        return cell, share * share * (3 - 2 * share)

    def rows(self, begin, end):
        row, share = self.place(numpy.arange(begin, end))
        share = share[:, None]
        lines = self.nodes[row] * (1 - share) + self.nodes[row + 1] * share
        return (lines[:, self.column] * (1 - self.column_share) +
                lines[:, self.column + 1] * self.column_share)


class Drawn:
    """Regions with textures."""

    def __init__(self, width, height, seed):
        self.outline = [(weight, Field(width, height, scale, [seed, k]))
                        for k, (weight, scale) in enumerate([(1, 300), (0.5, 90), (0.25, 30)])]
        self.texture = [[Field(width, height, scale, [seed, 10, c, scale]) for c in range(3)]
                        for scale in (120, 12)]

    def rows(self, begin, end):
        truth = sum(weight * field.rows(begin, end) for weight, field in self.outline) > 0.1
        colours = numpy.empty(truth.shape + (3,), numpy.float32)
        for c, contrast in enumerate((35, -20, 15)):
            colours[..., c] = (110 + contrast * truth + 18 * self.texture[0][c].rows(begin, end) +
                               8 * self.texture[1][c].rows(begin, end))
        return colours, truth


class Mosaic:
    """Photographs, mirrored."""

    def __init__(self, folder, width, height):
        names = sorted(name[:-len("_gt.png")] for name in os.listdir(folder)
                       if name.endswith("_gt.png"))
        self.photographs = [(self.read(folder, name + ".png"),
                             self.read(folder, name + "_gt.png") > 0) for name in names]
        # All cells have the same size.
        self.height = min(truth.shape[0] for _, truth in self.photographs)
        self.width = min(truth.shape[1] for _, truth in self.photographs)
        self.columns = width

    @staticmethod
    def read(folder, name):
        with open(os.path.join(folder, name), "rb") as file:
            rows = formats.read_png(file.read())[4]
        pixels = numpy.array(rows, dtype=numpy.uint8)
        return pixels[..., 0] if pixels.shape[2] == 1 else pixels

    @staticmethod
    def mirrored(at, size):
        inside = at % size
        return numpy.where(at // size % 2 == 0, inside, size - 1 - inside)

    def rows(self, begin, end):
        x, y = numpy.arange(self.columns), numpy.arange(begin, end)
        left, top = self.mirrored(x, self.width), self.mirrored(y, self.height)
        colours = numpy.empty((end - begin, self.columns, 3), numpy.float32)
        truth = numpy.empty((end - begin, self.columns), bool)
        # Mirrored pairs of cells have the same photograph, so that it continues across the boundary.
        cell = ((x + self.width) // (2 * self.width))[None] * 5 + \
            ((y + self.height) // (2 * self.height))[:, None] * 7
        cell = cell % len(self.photographs)
        for k, (photograph, mask) in enumerate(self.photographs):
            here = cell == k
            if here.any():
                colours[here] = photograph[top][:, left][here]
                truth[here] = mask[top][:, left][here]
        return colours, truth


def write(arguments):
    width, height, seed = arguments.width, arguments.height, arguments.seed
    scene = (Mosaic(arguments.photographs, width, height) if arguments.photographs
             else Drawn(width, height, seed))
    light = Field(width, height, 700, [seed, 20])
    patches = Field(width, height, 8, [seed, 21])
    unary = numpy.lib.format.open_memmap(os.path.join(arguments.folder, "unary.npy"), "w+",
                                         numpy.uint8, (height, width, 2))
    truths = numpy.lib.format.open_memmap(os.path.join(arguments.folder, "truth.npy"), "w+",
                                          numpy.uint8, (height, width))
    with open(os.path.join(arguments.folder, "picture.ppm"), "wb") as picture:
        picture.write(b"P6 %d %d 255\n" % (width, height))
        for begin in range(0, height, BAND):
            end = min(begin + BAND, height)
            random = numpy.random.default_rng([seed, 30, begin])
            colours, truth = scene.rows(begin, end)
            colours += 14 * light.rows(begin, end)[..., None]
            colours += GRAIN * random.standard_normal(colours.shape, numpy.float32)
            picture.write(numpy.clip(colours, 0, 255).astype(numpy.uint8).tobytes())
            logit = EVIDENCE * (2 * truth.astype(numpy.float32) - 1)
            logit += NOISE * random.standard_normal(logit.shape, numpy.float32)
            logit += PATCHES * patches.rows(begin, end)
            one = numpy.rint(255 / (1 + numpy.exp(-logit))).astype(numpy.uint8)
            unary[begin:end, :, 0] = 255 - one
            unary[begin:end, :, 1] = one
            truths[begin:end] = truth


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("width", type=int)
    parser.add_argument("height", type=int)
    parser.add_argument("folder")
    parser.add_argument("--photographs")
    parser.add_argument("--seed", type=int, default=1)
    write(parser.parse_args())


if __name__ == "__main__":
    main()
