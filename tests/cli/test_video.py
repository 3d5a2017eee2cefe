#!/usr/bin/env python3
"""Folders of frames: solved as one, with a sigma along time; less flicker than frame by frame; masks and strokes carried on."""

import json
import os
import random
import re
import unittest

import formats
from case import Case

WIDTH, HEIGHT, FRAMES, RADIUS = 64, 48, 8, 11

LOCAL = ("--spatial", "2", "--bilateral", "6,13", "--strength", "4")  # over all of so small a picture colours alone decide


def inside(x, y, frame):
    return int((x - 20 - 2 * frame) ** 2 + (y - 24) ** 2 < RADIUS**2)


TRUTH = [[[inside(x, y, t) for x in range(WIDTH)] for y in range(HEIGHT)] for t in range(FRAMES)]


def picture(frame):
    """A disc that moves over a plane, with a little grain."""
    chance = random.Random(frame)
    return [[tuple(min(255, max(0, v + chance.randint(-2, 2))) for v in ((140, 86, 76) if TRUTH[frame][y][x] else (98, 103, 118)))
             for x in range(WIDTH)] for y in range(HEIGHT)]


def energies(frame):
    """Right by little, and wrong in blobs that come and go."""
    chance = random.Random(100 + frame)
    blobs = [(chance.randrange(WIDTH), chance.randrange(HEIGHT)) for _ in range(4)]
    out = []
    for y in range(HEIGHT):
        for x in range(WIDTH):
            wrong = any((x - bx) ** 2 + (y - by) ** 2 < 50 for bx, by in blobs)
            label = TRUTH[frame][y][x] ^ wrong
            pair = [0.25, 1.25] if wrong else [0.25, 1.85]
            out += pair[::-1] if label else pair
    return out


class VideoTest(Case):
    def setUp(self):
        super().setUp()
        for folder in ("frames", "u", "masks", "strokes"):
            os.mkdir(self.path(folder))
        for t in range(FRAMES):
            self.write("frames/f%d.png" % (t + 5), formats.png(picture(t)))  # f9 comes before f10
            self.write("u/f%d.npy" % (t + 5), formats.npy(energies(t), (HEIGHT, WIDTH, 2)))

    def frames_of(self, folder):
        return [[[p[0] for p in row] for row in formats.read_png(self.read("%s/f%d.png" % (folder, t + 5)))[4]]
                for t in range(FRAMES)]

    def errors(self, frames):
        return sum(frames[t][y][x] != TRUTH[t][y][x] for t in range(FRAMES) for y in range(HEIGHT) for x in range(WIDTH))

    def flicker(self, frames):
        """Changes of label between frames where the truth, and so the picture, does not change."""
        return sum(frames[t][y][x] != frames[t + 1][y][x] for t in range(FRAMES - 1) for y in range(HEIGHT) for x in range(WIDTH)
                   if TRUTH[t][y][x] == TRUTH[t + 1][y][x])

    def test_less_flicker_than_frame_by_frame(self):
        said = self.good("solve", "frames/", "--unary", "u/", "--temporal", "2", "-o", "out/", "--overlay", "over/", *LOCAL)
        self.assertIn("64 x 48 pixels in 8 frames, 2 labels", said)
        together = self.frames_of("out")
        os.mkdir(self.path("single"))
        for t in range(FRAMES):
            name = "f%d" % (t + 5)
            self.good("solve", "frames/%s.png" % name, "--unary", "u/%s.npy" % name, "-o", "single/%s.png" % name, "-q",
                      *LOCAL)
        alone = self.frames_of("single")
        self.assertLess(self.flicker(together), 0.5 * self.flicker(alone))
        self.assertLess(self.errors(together), self.errors(alone))
        # What is said is that number: the still pixels are those that the truth has so, up to grain.
        still = sum(TRUTH[t][y][x] == TRUTH[t + 1][y][x] for t in range(FRAMES - 1) for y in range(HEIGHT) for x in range(WIDTH))
        told = float(re.search(r"(?m)^flicker +([0-9.]+) %", said).group(1))
        self.assertAlmostEqual(told, 100 * self.flicker(together) / still, delta=5e-5)
        overlay = formats.read_png(self.read("over/f5.png"))[4]
        self.assertEqual(overlay[0][0] == picture(0)[0][0], together[0][0][0] == 0)

    def test_one_array_for_all(self):
        """The same energies as one array over time, height and width."""
        self.good("solve", "frames", "--unary", "u", "-o", "a.npy", "-q", *LOCAL)
        one = self.write("all.npy", formats.npy([v for t in range(FRAMES) for v in energies(t)], (FRAMES, HEIGHT, WIDTH, 2)))
        self.good("solve", "frames", "--unary", one, "-o", "b.npy", "-q", *LOCAL)
        self.assertEqual(self.read("a.npy"), self.read("b.npy"))
        shape, values = formats.read_npy(self.read("a.npy"), "|u1")
        self.assertEqual(shape, (FRAMES, HEIGHT, WIDTH))
        # Sigmas along time matter.
        self.good("solve", "frames", "--unary", "u", "-o", "c.npy", "--temporal", "0.1", "-q", *LOCAL)
        self.assertNotEqual(formats.read_npy(self.read("c.npy"), "|u1")[1], values)

    def test_in_tiles(self):
        """Cut along time by --memory, and in all directions by --tile: nearly the labels of the whole, and flicker counted across cuts."""
        common = ("solve", "frames", "--unary-dir", "u", "--temporal", "0.5", *LOCAL[:-1], "2.5")  # weak enough for some flicker
        self.good(*common, "-o", "whole/", "-q")
        whole = self.frames_of("whole")
        for options, cut in ((("--memory", "70M"), r"in 2 tiles, 1 x 1 x 2; windows of 64 x 48 x 5"),
                             (("--tile", "44"), "in 12 tiles, 4 x 3 x 1;")):
            said = self.good(*common, *options, "-o", "out/")
            self.assertRegex(said, cut)
            frames = self.frames_of("out")
            wrong = sum(frames[t][y][x] != whole[t][y][x] for t in range(FRAMES) for y in range(HEIGHT) for x in range(WIDTH))
            self.assertLess(wrong, 0.02 * WIDTH * HEIGHT * FRAMES, cut)
            still = sum(TRUTH[t][y][x] == TRUTH[t + 1][y][x] for t in range(FRAMES - 1) for y in range(HEIGHT) for x in range(WIDTH))
            told = [float(v) for v in re.search(r"(?m)^flicker +([0-9.]+) %.*; ([0-9.]+) %", said).groups()]
            self.assertAlmostEqual(told[0], 100 * self.flicker(frames) / still, delta=5e-5)
            self.assertGreater(told[0], 0)
            self.assertLess(told[0], 0.3 * told[1])
            self.good(*common, *options, "-o", "out.npy", "-q")
            shape, values = formats.read_npy(self.read("out.npy"), "|u1")
            self.assertEqual(shape, (FRAMES, HEIGHT, WIDTH))
            self.assertEqual(list(values), [v for frame in frames for row in frame for v in row])

    def test_masks_in_tiles(self):
        for t in (0, 4, 7):
            self.write("masks/f%d.png" % (t + 5), formats.number_png([[255 * v for v in row] for row in TRUTH[t]]))
        said = self.good("solve", "frames", "--labels-prior-dir", "masks", "--temporal", "1", "--tile", "44", "-o", "out/", *LOCAL)
        self.assertIn("tiles do not refine the borders", said)
        self.assertLess(self.errors(self.frames_of("out")), 0.015 * WIDTH * HEIGHT * FRAMES)

    def test_masks_on_some_frames(self):
        for t in (0, 4, 7):
            self.write("masks/f%d.png" % (t + 5), formats.number_png([[255 * v for v in row] for row in TRUTH[t]]))
        said = self.good("solve", "frames", "--labels-prior", "masks", "-o", "out/")
        self.assertRegex(said, r"borders moved by [0-9.]+ pixels on average; [0-9.]+ % of the pixels changed\n")
        self.assertRegex(said, r"(?m)^pixels changed .* by the kernels, after what distances and colours say$")
        frames = self.frames_of("out")
        self.assertLess(self.errors(frames), 0.01 * WIDTH * HEIGHT * FRAMES)
        for t in range(FRAMES):  # a copy of the nearest mask would be wrong on both sides of the disc
            self.assertLess(sum(frames[t][y][x] != TRUTH[t][y][x] for y in range(HEIGHT) for x in range(WIDTH)), 60, t)

    def test_masks_move_with_the_picture(self):
        """A camera that moves by 4 and 2 pixels a frame over a floor of tiles: no colour says where the disc is, only the mask of the first frame."""
        def seen(x, y, t):
            return x + 4 * t, y + 2 * t

        def disc(x, y):
            return int((x - 40) ** 2 + (y - 32) ** 2 < RADIUS**2)
        chance = random.Random(1)
        tiles = [[(chance.randrange(60, 200),) * 3 for _ in range(40)] for _ in range(30)]
        for t in range(FRAMES):
            places = [[seen(x, y, t) for x in range(WIDTH)] for y in range(HEIGHT)]
            self.write("frames/f%d.png" % (t + 5), formats.png([[tiles[y // 3][x // 3] for x, y in row] for row in places]))
            if t == 0:
                self.write("masks/f5.png", formats.number_png([[255 * disc(x, y) for x, y in row] for row in places]))
        self.good("solve", "frames", "--labels-prior", "masks", "-o", "out/", "-q")
        for t, frame in enumerate(self.frames_of("out")):
            found = {(x, y) for y in range(HEIGHT) for x in range(WIDTH) if frame[y][x]}
            truth = {(x, y) for y in range(HEIGHT) for x in range(WIDTH) if disc(*seen(x, y, t))}
            self.assertGreater(len(found & truth) / len(found | truth), 0.75, t)  # copies of the mask: 0.11 in the last frame

    def test_masks_are_refined_before_they_move(self):
        """What a mask that is too large holds of the still background would stay behind the disc as a trail."""
        rough = [[255 * int((x - 20) ** 2 + (y - 24) ** 2 < (RADIUS + 1.2) ** 2) for x in range(WIDTH)] for y in range(HEIGHT)]
        self.write("masks/f5.png", formats.number_png(rough))
        for t in range(FRAMES):
            chance, still = random.Random(t), random.Random(99)
            floor = [[still.randrange(60, 120) for _ in range(WIDTH)] for _ in range(HEIGHT)]
            self.write("frames/f%d.png" % (t + 5), formats.png([[(150 + chance.randrange(9), 70, 60) if TRUTH[t][y][x] else (60, floor[y // 3][x // 3], 90)
                                                                 for x in range(WIDTH)] for y in range(HEIGHT)]))
        self.good("solve", "frames", "--labels-prior", "masks", "-o", "out/", "-q")
        self.assertLess(self.errors(self.frames_of("out")), 0.04 * WIDTH * HEIGHT * FRAMES)  # 0.025; without refining 0.103

    def test_strokes_on_one_frame(self):
        rows = [[255] * WIDTH for _ in range(HEIGHT)]
        for x in range(24, 32):
            rows[24][x] = 1
        for x in range(4, 60):
            rows[4][x] = rows[44][x] = 0
        self.write("strokes/f8.png", formats.number_png(rows))
        said = self.good("solve", "frames", "--scribbles", "strokes", "-o", "out/")
        self.assertIn("strokes on 120 pixels", said)
        self.assertLess(self.errors(self.frames_of("out")), 0.01 * WIDTH * HEIGHT * FRAMES)

    def test_what_does_not_fit(self):
        start = ("solve", "frames", "--unary", "u")
        self.bad("l.png", "the image is a video; give a folder", *start, "-o", "l.png")
        self.bad("l.nii", "the image is a video; give a folder", *start, "-o", "l.nii")
        self.bad("out/", "is a folder, and the image is one", "solve", self.image, "--unary", self.unary, "-o", "out/")
        self.bad("frames", "is the same file as IMAGE frames", *start, "-o", "frames")
        self.bad("masks", "has no array (.npy, .npz) for frames/f5.png", "solve", "frames", "--unary", "masks")
        self.bad("masks", "has no map with the name of a frame", "solve", "frames", "--labels-prior", "masks")
        self.bad("masks", "has no pictures", "solve", "masks", "--unary", "u")
        mask = self.write("mask.png", formats.number_png(TRUTH[0]))
        for option in ("--labels-prior", "--scribbles"):
            self.bad(mask, "give a folder, in which it has the name of its frame", "solve", "frames", option, mask, "-o", "out/")
        self.bad("--tile", "window", *start, "--tile", "3")
        self.bad("--memory", "tiles as wide as the kernels need them", *start, "--memory", "10M", *LOCAL)
        self.bad("--overlay", "needs the whole image, which is solved in tiles", *start, "--memory", "66M", "--overlay", "over/")
        self.bad("--scribbles", "strokes are looked at in the whole image", "solve", "frames", "--scribbles", "masks", "--tile", "40")
        self.write("frames/f99.png", formats.png([[(1, 2, 3)] * 5] * 5))
        self.bad("frames/f99.png", "is 5 x 5 pixels, and the first frame 64 x 48", *start)


if __name__ == "__main__":
    unittest.main()
