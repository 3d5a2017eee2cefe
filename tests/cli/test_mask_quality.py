#!/usr/bin/env python3
"""Rough masks of real photographs are refined by so much at least; docs/explain/strokes-and-masks.md has all figures, script/bench-masks makes them.

The floors are one point below what was measured when this was written: blocks 0.952 (rough 0.886), shrunk 0.942 (rough 0.685). Careful masks: 0.974 and
0.968 become 0.992 and 0.978."""

import os
import unittest

import formats
from case import SHARED_DATA, Case

COREL = os.path.join(SHARED_DATA, "eval-set-corel")
MISLEADING = [("078", 5), ("085", 1), ("083", 5), ("088", 4), ("062", 4), ("015", 5), ("030", 0), ("024", 6)]  # pictures of Corel, and a label
NAMES = "106024 153077 208001 21077 24077 326038".split()
FOLDER = os.path.join(SHARED_DATA, "scribbles")
VOID = 255
BLOCK, SHRUNK, CAREFUL_BLOCK = 12, 6, 5


def read_map(name, folder=FOLDER):
    with open(os.path.join(folder, name), "rb") as stream:
        return [[p[0] for p in row] for row in formats.read_png(stream.read())[4]]


def in_blocks(mask, side=BLOCK):
    """The majority of each square."""
    height, width = len(mask), len(mask[0])
    out = [[0] * width for _ in range(height)]
    for y0 in range(0, height, side):
        for x0 in range(0, width, side):
            rows = [row[x0:x0 + side] for row in mask[y0:y0 + side]]
            label = int(2 * sum(map(sum, rows)) >= len(rows) * len(rows[0]))
            for row in out[y0:y0 + side]:
                row[x0:x0 + side] = [label] * len(rows[0])
    return out


def least_along(rows):
    """The least number within SHRUNK places of each, along the rows."""
    return [[min(row[max(0, x - SHRUNK):x + SHRUNK + 1]) for x in range(len(row))] for row in rows]


def shrunk(mask):
    return [list(row) for row in zip(*least_along([list(row) for row in zip(*least_along(mask))]))]


def overlap(found, truth):
    both = either = 0
    for a, b in zip(found, truth):
        for i, j in zip(a, b):
            if j != VOID:
                both += i == 1 and j == 1
                either += i == 1 or j == 1
    return both / either


@unittest.skipUnless(os.path.isdir(FOLDER), "the photographs are not here")
class MaskQualityTest(Case):
    def refine(self, name, make_rough):
        """The overlap before and after."""
        return self.refine_as(os.path.join(FOLDER, name + ".png"), read_map(name + "_gt.png"), make_rough)

    def refine_as(self, picture, truth, make_rough):
        rough = make_rough([[int(v == 1) for v in row] for row in truth])
        file = self.write("rough.png", formats.number_png(rough))
        self.good("solve", picture, "--labels-prior", file, "--label-count", "2", "-o", "out.png", "-q")
        found = [[p[0] for p in row] for row in formats.read_png(self.read("out.png"))[4]]
        return overlap(rough, truth), overlap(found, truth)

    def check(self, make_rough, floor):
        before, after = (sum(values) / len(NAMES) for values in zip(*[self.refine(name, make_rough) for name in NAMES]))
        self.assertGreater(after, before)
        self.assertGreater(after, floor, "rough: %.3f" % before)

    def test_blocks(self):
        self.check(in_blocks, 0.942)

    def test_shrunk(self):
        self.check(shrunk, 0.932)

    def test_careful_masks_stay_careful(self):
        """Masks that are nearly right, which a refinement that trusts the picture too much makes worse."""
        for name, floor in (("153077", 0.98), ("326038", 0.97)):
            before, after = self.refine(name, lambda mask: in_blocks(mask, CAREFUL_BLOCK))
            self.assertGreater(before, 0.965)
            self.assertGreater(after, before, name)
            self.assertGreater(after, floor, name)

    def test_misleading_colours(self):
        """The background has the object's colours, and an offset of the border is found that is none: believed, it cost 0.043 on average, and 0.006 now."""
        gains = []
        for name, label in MISLEADING:
            truth = [[v if v == VOID else int(v == label) for v in row] for row in read_map(name + ".png", os.path.join(COREL, "gt"))]
            before, after = self.refine_as(os.path.join(COREL, "images", name + ".png"), truth, lambda mask: in_blocks(mask, 4))
            gains.append(after - before)
        self.assertGreater(sum(gains) / len(gains), -0.01, gains)

    def test_unknown_rims(self):
        """A correct mask whose rim is unknown (255), as those of Pascal VOC, stays: the mean was 0.964 when only borders outside the rim were counted."""
        kept = 0
        for name in NAMES:
            self.good("solve", os.path.join(FOLDER, name + ".png"), "--labels-prior", os.path.join(FOLDER, name + "_gt.png"), "-o", "out.png", "-q")
            found = [[p[0] for p in row] for row in formats.read_png(self.read("out.png"))[4]]
            kept += overlap(found, read_map(name + "_gt.png")) / len(NAMES)
        self.assertGreater(kept, 0.98)


if __name__ == "__main__":
    unittest.main()
