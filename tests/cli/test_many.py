#!/usr/bin/env python3
"""Folders of pictures with what belongs to them: solved one after the other; and data sets that need no description."""

import json
import os
import signal
import subprocess
import unittest

import case
import formats
import pictures
from case import HEIGHT, IMAGE, LABELS, UNARY, WIDTH, Case

MASK = [[255 * (x >= 3) for x in range(WIDTH)] for y in range(HEIGHT)]


class ManyTest(Case):
    def setUp(self):
        super().setUp()
        for folder in ("photos", "masks", "u", "s"):
            os.mkdir(self.path(folder))
        for i, name in enumerate(("a", "b 2", "c")):
            rows = [[(r, g, (b + 40 * i) % 256) for r, g, b in row] for row in IMAGE]
            self.write("photos/%s.png" % name, formats.png(rows))
            self.write("masks/%s.png" % name, formats.number_png(MASK if i else [row[::-1] for row in MASK]))
            self.write("u/%s.npy" % name, formats.npy(UNARY[i:] + UNARY[:i], (HEIGHT, WIDTH, LABELS)))
        self.photos = ["photos/%s.png" % name for name in ("a", "b 2", "c")]

    def alone(self, option, folder, ending, *more):
        """What single runs write."""
        os.makedirs(self.path("alone"), exist_ok=True)
        for photo in self.photos:
            name = os.path.basename(photo)[:-4]
            self.good("solve", photo, option, "%s/%s%s" % (folder, name, ending), "-o", "alone/%s.png" % name, "-q", *more)
        return {name: self.read("alone/" + name) for name in sorted(os.listdir(self.path("alone")))}

    def in_folder(self, folder):
        return {name: self.read(folder + "/" + name) for name in sorted(os.listdir(self.path(folder)))}

    def test_pictures_and_masks(self):
        wanted = self.alone("--labels-prior", "masks", ".png")
        said = self.good("solve", *self.photos, "--labels-prior-dir", "masks/", "-o", "out/")
        self.assertEqual(self.in_folder("out"), wanted)
        self.assertEqual([line for line in said.splitlines() if line.startswith("photos/")], self.photos)
        # The folder itself, an output folder without a slash, and options of each run.
        self.assertEqual(self.good("solve", "photos", "-q", "--labels-prior-dir=masks", "--output", "out2", "--json", "j/",
                                   "--overlay", "o/"), "")
        self.assertEqual(self.in_folder("out2"), wanted)
        self.assertEqual(sorted(os.listdir(self.path("o"))), sorted(wanted))
        self.assertEqual(json.loads(self.read("j/b 2.json"))["labels"], 2)

    def test_pictures_and_arrays(self):
        wanted = self.alone("--unary", "u", ".npy", "--strength", "1")
        self.good("solve", "--strength", "1", "photos/", "--unary-dir", "u", "-o", "out/", "-q")
        self.assertEqual(self.in_folder("out"), wanted)

    def test_the_first_signal_ends_them_all(self):
        command = [case.COMMAND, "solve", "photos", "--unary-dir", "u", "-o", "out/", "-m", "lp", "--strength", "1", "--gap", "1e-15",
                   "-n", "1000000000", "--verbose"]
        with subprocess.Popen(command, cwd=self.folder, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
            while "iteration 1:" not in run.stderr.readline() and run.poll() is None:
                pass
            run.send_signal(signal.SIGINT)
            said = run.stderr.read()
            self.assertEqual(run.wait(timeout=case.HANG_S), 130, said)
        self.assertEqual(said.splitlines()[-1], "dcrf: photos/b 2.png: interrupted: 1 of 3 pictures were solved")
        self.assertEqual(os.listdir(self.path("out")), ["a.png"])

    def test_names_that_go_on(self):
        """photo_mask.png belongs to photo.jpg, where it is the only one."""
        for name in ("a", "b 2", "c"):
            os.rename(self.path("masks/%s.png" % name), self.path("masks/%s_mask.png" % name))
        self.good("solve", "photos", "--labels-prior-dir", "masks", "-o", "out/", "-q")
        self.assertEqual(len(os.listdir(self.path("out"))), 3)
        self.write("masks/a_other.png", formats.number_png(MASK))
        self.bad("masks", "has no file with the name of photos/a.png", "solve", "photos", "--labels-prior-dir", "masks", "-o", "out3/")
        self.assertFalse(os.path.exists(self.path("out3")))

    def test_strokes_and_geotiff(self):
        rows = [[255] * WIDTH for _ in range(HEIGHT)]
        rows[2][0], rows[2][5] = 0, 1
        os.mkdir(self.path("geo"))
        for name in "xy":
            self.write("geo/%s.tif" % name, pictures.tiff(IMAGE, fields={33550: (pictures.DOUBLE, [1.0, 1.0, 0.0]),
                                                                        33922: (pictures.DOUBLE, [0, 0, 0, 7.0, 9.0, 0])}))
            self.write("s/%s.png" % name, formats.number_png(rows))
        self.good("solve", "geo", "--scribbles-dir", "s", "-o", "out/", "-q")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["x.tif", "y.tif"])
        self.assertEqual(pictures.read_tiff(self.read("out/x.tif"))[0][33922][3:5], (7.0, 9.0))

    def test_what_does_not_go(self):
        start = ("solve", *self.photos, "--labels-prior-dir", "masks")
        self.bad("out.png", "is one file, and there are several pictures", *start, "-o", "out.png")
        self.bad("u/a.npy", "is one file, and there are several pictures; give a folder with --unary-dir", "solve", *self.photos,
                 "--unary", "u/a.npy", "-o", "out/")
        self.bad("nowhere", "is not a folder", "solve", "photos", "--unary-dir", "nowhere", "-o", "out/")
        self.write("a.png", formats.png(IMAGE))
        self.bad("a.png", "has the name of photos/a.png", "solve", "photos/a.png", "a.png", "--unary-dir", "u", "-o", "out/")
        self.bad("masks/a.png", "is the same file as --labels-prior masks/a.png", *start, "-q", "-o", "masks")
        self.bad("photos/c.png", "did you mean --labels-prior photos/c.png?", "solve", "photos/a.png", "photos/c.png", "--unary",
                 "u/a.npy")

    def test_video_by_folders(self):
        self.good("solve", "photos/", "--unary-dir", "u/", "--temporal", "2", "-o", "out/", "-q")
        self.good("solve", "photos/", "--unary", "u/", "--temporal", "2", "-o", "out2/", "-q")
        self.assertEqual(self.in_folder("out"), self.in_folder("out2"))
        self.assertEqual(len(self.in_folder("out")), 3)


class DatasetTest(Case):
    def test_without_a_description(self):
        os.makedirs(self.path("set/images"))
        os.makedirs(self.path("set/unaries"))
        self.write("set/images/a.png", formats.png(IMAGE))
        words = "docs/reference/formats.md and the manual (man dcrf, Data sets) say what a data set is"
        self.bad("set", words, "batch", "set", "--out", "res")
        self.write("set/unaries/a.npy", formats.npy([1] * (WIDTH * HEIGHT * LABELS), (HEIGHT, WIDTH, LABELS), "|u1"))
        self.bad("set", words, "batch", "set", "--out", "res")
        self.write("set/unaries/a.npy", formats.npy(UNARY, (HEIGHT, WIDTH, LABELS)))
        self.good("batch", "set", "--out", "res", "--methods", "mf", "-q")
        self.write("set/dataset.json", b'{"labels": 3}')
        self.good("batch", "set", "--out", "res2", "--methods", "mf", "-q")
        self.assertEqual(self.read("res/summary.md"), self.read("res2/summary.md"))
        os.makedirs(self.path("two/images"))
        os.makedirs(self.path("two/masks"))
        self.bad("two", "dcrf solve two/images --labels-prior-dir two/masks -o out/", "batch", "two", "--out", "res3")


if __name__ == "__main__":
    unittest.main()
