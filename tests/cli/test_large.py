#!/usr/bin/env python3
"""Solving in tiles: what is read by windows is what is read whole, and one tile is the whole."""

import gzip
import json
import os
import random
import signal
import subprocess
import unittest

import bitmaps
import formats
import pictures
import volumes
from case import COMMAND, HANG_S, Case

WIDTH, HEIGHT = 64, 46
# An overlap of 8 pixels: twice the wider sigma.
KERNELS = ("--spatial", "1.5", "--bilateral", "4,20", "--strength", "2")
WHOLE_TILE = ("--tile", "100000")


def scene(width, height):
    """A disc with grain, and unaries that are wrong at a fifth of the pixels."""
    chance = random.Random(5)
    rows, unary = [], []
    for y in range(height):
        row = []
        for x in range(width):
            inside = (x - width / 2) ** 2 + (y - height / 2) ** 2 < (height / 3) ** 2
            row.append(tuple(min(255, int(90 + 60 * inside * (c != 1) + 40 * chance.random())) for c in range(3)))
            right = chance.random() > 0.2
            wrong, best = 1.0, chance.random() * 0.9
            unary += (wrong, best) if inside == right else (best, wrong)
        rows.append(row)
    return rows, unary


class LargeTest(Case):
    @classmethod
    def setUpClass(cls):
        cls.rows, cls.energies = scene(WIDTH, HEIGHT)

    def setUp(self):
        super().setUp()
        self.image = self.write("large.png", formats.png(self.rows))
        self.unary = self.write("large.npy", formats.npy(self.energies, (HEIGHT, WIDTH, 2)))

    def solve(self, *more, image=None, unary=None):
        source = unary or ("--unary", self.unary, "--unary-kind", "energies")
        return self.good("solve", image or self.image, *KERNELS, *source, *more)

    def same(self, names, **inputs):
        """The outputs are the same bytes with one tile as they are without tiles."""
        wanted = {}
        for folder, more in (("whole", ()), ("tiled", WHOLE_TILE)):
            os.makedirs(self.path(folder), exist_ok=True)
            options = [word for option, name in names for word in (option, os.path.join(folder, name))]
            self.assertEqual(self.solve("-q", *options, *more, **inputs), "")
            wanted[folder] = [self.read(os.path.join(folder, name)) for _, name in names]
        self.assertEqual(wanted["whole"], wanted["tiled"], inputs)
        return wanted["whole"]

    def run_json(self, *more, **inputs):
        return json.loads(self.solve("--json", "-", *more, **inputs))

    # ---- readers

    def test_pictures_are_read_the_same(self):
        grey = [[p[:1] for p in row] for row in self.rows]
        wide = [[tuple(257 * s - s % 7 for s in p) for p in row] for row in self.rows]
        palette = [(k, 255 - k, k // 2) for k in range(256)]
        files = {
            "rgb.png": formats.png(self.rows),
            "rgb16.png": formats.png(wide, depth=16),
            "grey.png": formats.png(grey, colour=formats.GREY),
            "indexed.png": formats.png(grey, colour=formats.PALETTE, palette=palette),
            "interlaced.png": formats.png(self.rows, interlace=True),
            "raw.ppm": pictures.pnm(self.rows, 6),
            "raw16.ppm": pictures.pnm(wide, 6, 65535),
            "odd.ppm": pictures.pnm(self.rows, 6, 254 + 1),
            "plain.ppm": pictures.pnm(self.rows, 3),
            "grey.pgm": pictures.pnm(grey, 5),
            "strips.tif": pictures.tiff(self.rows, rows=7),
            "one.tif": pictures.tiff(self.rows, rows=HEIGHT),
            "packed.tif": pictures.tiff(self.rows, rows=5, compression=32773),
            "tiles.tif": pictures.tiff(self.rows, tile=(16, 16)),
            "planes.tif": pictures.tiff(self.rows, planar=True),
            "wide.tif": pictures.tiff(wide, bits=16),
            "swapped.tif": pictures.tiff(wide, bits=16, order=">"),
            "plain.bmp": bitmaps.bmp(self.rows),
        }
        labels = set()
        for name, data in files.items():
            with self.subTest(name):
                labels.add(self.same([("--marginals", "m.npy")], image=self.write(name, data))[0])
        self.assertGreater(len(labels), 2)  # the pictures do differ

    def test_arrays_are_read_the_same(self):
        planar = [self.energies[2 * a + i] for i in range(2) for a in range(WIDTH * HEIGHT)]
        counts = [min(255, int(200 * e)) for e in self.energies]
        probability = [0.5 + (0.4 if e < other else -0.4) * abs(e - other)
                       for a in range(0, len(self.energies), 2)
                       for e, other in ((self.energies[a], self.energies[a + 1]),
                                        (self.energies[a + 1], self.energies[a]))]
        shape = (HEIGHT, WIDTH, 2)
        arrays = {
            "planar": (formats.npy(planar, (2, HEIGHT, WIDTH)), "energies", ()),
            "batch": (formats.npy(planar, (1, 2, HEIGHT, WIDTH)), "energies", ()),
            "half": (formats.npy(self.energies, shape, "<f2"), "energies", ()),
            "double": (formats.npy(self.energies, shape, ">f8"), "energies", ()),
            "bytes": (formats.npy(counts, shape, "|u1"), "energies", ("--unary-scale", "0.005")),
            "shorts": (formats.npy(counts, shape, ">i2"), "logits", ("--unary-scale", "0.005")),
            "probabilities": (formats.npy(probability, shape), "auto", ()),
        }
        for name, (data, kind, more) in arrays.items():
            with self.subTest(name):
                file = self.write(name + ".npy", data)
                self.same([("-o", "l.npy")], unary=("--unary", file, "--unary-kind", kind, *more))

    def test_maps_are_read_the_same(self):
        labels = [[int(self.energies[2 * (y * WIDTH + x)] > self.energies[2 * (y * WIDTH + x) + 1])
                   for x in range(WIDTH)] for y in range(HEIGHT)]
        unsure = [[255 if x % 9 == 4 else label for x, label in enumerate(row)] for row in labels]
        flat = [label for row in unsure for label in row]
        maps = {
            "map.png": formats.number_png(unsure),
            "mask.png": formats.number_png([[255 * label for label in row] for row in labels]),
            "map.npy": formats.npy(flat, (HEIGHT, WIDTH), "<i4"),
            "map.pgm": pictures.pnm([[(label,) for label in row] for row in unsure], 5),
        }
        for name, data in maps.items():
            with self.subTest(name):
                self.same([("-o", "l.npy")], unary=("--confidence=.7", "--labels-prior", self.write(name, data)))
        rough = ("--labels-prior", self.path("map.png"))
        note = "note: tiles do not refine the borders of a map; it is right with the probability 0.7 at every pixel"
        self.assertIn(note, self.solve(*WHOLE_TILE, unary=rough))
        for more in ((), (*WHOLE_TILE, "--confidence=.7")):
            self.assertNotIn("note: tiles", self.solve(*more, unary=rough))
        largest = 2**31 - 1  # which floats do not hold
        unknown = [largest if number == 255 else number for number in flat]
        self.same([("-o", "l.npy")], unary=("--confidence=.7", "--labels-prior", self.write(
            "unknown.npy", formats.npy(unknown, (HEIGHT, WIDTH), "<i4")), "--prior-unknown", str(largest)))
        self.bad(self.path("wide.npy"), "32 bits cannot hold", "solve", self.image, "--labels-prior",
                 self.write("wide.npy", formats.npy([2**40] * WIDTH * HEIGHT, (HEIGHT, WIDTH), "<i8")), *KERNELS,
                 *WHOLE_TILE)
        self.bad(self.path("map.png"), "has the label 2", "solve", self.image, "--labels-prior",
                 self.write("map.png", formats.number_png([[2] * WIDTH] * HEIGHT)), "--label-count", "2",
                 *KERNELS, *WHOLE_TILE)
        self.bad(self.path("floats.npy"), "integers are needed", "solve", self.image, "--labels-prior",
                 self.write("floats.npy", formats.npy([1.0] * WIDTH * HEIGHT, (HEIGHT, WIDTH))), *KERNELS,
                 *WHOLE_TILE)

    # ---- outputs

    def test_outputs_are_the_same(self):
        self.same([("-o", "l.png"), ("--confidence-map", "c.png"), ("--marginals", "m.npy")])
        self.same([("-o", "l.npy"), ("--confidence-map", "c.npy")])
        self.same([("-o", "l.png")], unary=("--unary", self.unary, "--unary-kind", "energies",
                                            "--label-format", "grey"))

    def test_bands_are_put_together(self):
        """Labels of many tiles as a picture and as an array; threads do not matter."""
        self.solve("-q", "--tile", "28", "-o", "l.npy", "--threads", "1", "--confidence-map", "c.npy")
        self.solve("-q", "--tile", "28", "-o", "l.png", "--threads", "3")
        values = formats.read_npy(self.read("l.npy"), "|u1")[1]
        self.assertEqual(values, [p[0] for row in formats.read_png(self.read("l.png"))[4] for p in row])
        self.solve("-q", "-o", "w.npy")
        whole = formats.read_npy(self.read("w.npy"), "|u1")[1]
        # Windows of 28 pixels with 12 of their own: nearly all of it is seam.
        self.assertLess(sum(a != b for a, b in zip(values, whole)), 0.02 * len(whole))
        shape, sure = formats.read_npy(self.read("c.npy"))
        self.assertEqual(shape, (HEIGHT, WIDTH))
        # Moves at the end choose another label than the marginals here and there.
        self.assertGreater(sum(0.5 <= p <= 1 for p in sure), 0.99 * len(sure))

    def test_it_says_so(self):
        tiles = self.run_json("--tile", "28")["tiles"]
        self.assertEqual((tiles["count"], tiles["along"], tiles["overlap"]), (24, [6, 4, 1], [8, 8, 0]))
        self.assertEqual(tiles["solved"], 24)
        self.assertIsNone(tiles["memory_limit"])
        text = self.solve("--tile", "28")
        self.assertIn("in 24 tiles, 6 x 4; windows of ", text)
        self.assertNotIn("lower bound", text)
        whole, tiled = self.run_json(), self.run_json(*WHOLE_TILE)
        self.assertNotIn("tiles", whole)
        self.assertSameInFloats(whole["energy"], tiled["energy"])
        self.assertEqual(whole["changes"], tiled["changes"])
        # What an LP proves of windows is said to be about windows.
        found = self.run_json("--tile", "28", "-m", "lp")
        self.assertIsNone(found["lower_bound"])
        self.assertLess(found["tiles"]["largest_gap"], 0.2)
        self.assertIn("no bound for the whole", self.solve("--tile", "28", "-m", "lp"))

    def test_strength_is_measured_once(self):
        """From a sample, near to that of the whole, and not by tiles."""
        options = ("solve", self.image, "--unary", self.unary, "--unary-kind", "energies", *KERNELS[:4],
                   "--json", "-")
        whole = json.loads(self.good(*options))["strength"]["nats"]
        tiled = [json.loads(self.good(*options, "--tile", side))["strength"]["nats"] for side in ("28", "40")]
        self.assertEqual(tiled[0], tiled[1])
        # 128 runs each; a standard deviation of a tenth.
        self.assertLess(abs(tiled[0] - whole), 0.3 * whole)

    # ---- memory

    def test_memory_decides(self):
        self.assertNotIn("tiles", self.run_json("--memory", "1T"))
        found = self.run_json("--memory", "66150K")
        self.assertGreater(found["tiles"]["count"], 1)
        self.assertLessEqual(found["tiles"]["memory_estimated"], 66150 * 2 ** 10)
        self.assertEqual(found["tiles"]["memory_limit"], 66150 * 2 ** 10)
        more = self.run_json("--memory", "65M")
        self.assertLess(more["tiles"]["count"], found["tiles"]["count"])
        self.bad("--memory", "take about", "solve", self.image, "--unary", self.unary, "--unary-kind",
                 "energies", *KERNELS, "--memory", "1M")
        self.bad("--memory", "not a number of bytes", "solve", self.image, "--unary", self.unary, "--memory", "much")

    def test_memory_holds(self):
        """A picture whose solution as a whole takes more address space than there is."""
        if os.environ.get("DCRF_TEST_BUILD") == "sanitized":
            self.skipTest("sanitizers reserve address space")
        rows, energies = scene(640, 480)
        image = self.write("l.ppm", pictures.pnm(rows, 6))
        unary = self.write("l.npy", formats.npy(energies, (480, 640, 2)))
        command = (f"ulimit -v 155000; exec {COMMAND} solve {image} --unary {unary} --unary-kind energies "
                   f"--threads 1 -n 2 -o out.png {' '.join(KERNELS)}")
        whole = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=self.folder, check=False)
        self.assertEqual(whole.returncode, 1)
        self.assertIn("--tile", whole.stderr)
        tiled = subprocess.run(["bash", "-c", command + " --memory 140M"], capture_output=True, text=True,
                               cwd=self.folder, check=False)
        self.assertEqual((tiled.returncode, tiled.stderr), (0, ""))
        self.assertIn(" tiles, ", tiled.stdout)

    # ---- limits and faults

    def test_a_time_limit_leaves_a_labelling(self):
        text = self.solve("--tile", "28", "--time-limit", "1e-9", "-o", "l.npy")
        self.assertIn("note: 0 of 24 tiles are solved", text)
        values = formats.read_npy(self.read("l.npy"), "|u1")[1]
        self.assertEqual(values, [int(self.energies[2 * a + 1] < self.energies[2 * a]) for a in range(WIDTH * HEIGHT)])

    def test_an_interrupt_leaves_a_labelling(self):
        done = subprocess.Popen([COMMAND, "solve", self.image, "--unary", self.unary, "--unary-kind", "energies",
                                 *KERNELS, "--tile", "28", "-n", "1000000", "-m", "lp", "--gap", "1e-300",
                                 "-o", "l.npy", "-v"],
                                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertTrue(done.stderr.readline())  # it has begun
        done.send_signal(signal.SIGINT)
        text, _ = done.communicate(timeout=HANG_S)
        self.assertEqual(done.returncode, 0)
        self.assertIn("interrupted", text)
        self.assertEqual(len(formats.read_npy(self.read("l.npy"), "|u1")[1]), WIDTH * HEIGHT)
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith(".")], [])

    def test_what_tiles_cannot_do(self):
        options = ("solve", self.image, "--unary", self.unary, "--unary-kind", "energies", *KERNELS, "--tile", "28")
        for name, more in (("--overlay", ("o.png",)), ("--boundaries", ("o.png",)), ("--trace", ("t.csv",)),
                           ("--report", ("r.html",)), ("--explain", ()), ("--cliques", ("slic",)),
                           ("--start", (self.image,))):
            self.bad(name, "tiles", *options, name, *more)
        self.bad("--tile", "no room for an overlap", *options[:-1], "16")
        small = self.write("small.npy", formats.npy([0.5] * (WIDTH * HEIGHT // 2), (HEIGHT // 2, WIDTH // 2, 2)))
        self.bad(small, "smaller than the image", "solve", self.image, "--unary", small, "--unary-kind",
                 "energies", *KERNELS, "--tile", "28")
        # As a whole they are done all the same, where that fits.
        self.solve("-q", "--memory", "1G", "--overlay", "o.png")

    def test_broken_inputs(self):
        def refused(name, data, words, *more):
            file = self.write(name, data)
            self.bad(file, words, "solve", self.image, "--unary", file, *more, *KERNELS, "--tile", "28", "-o", "l.npy")
        broken = list(self.energies)
        broken[2 * (40 * WIDTH + 60)] = float("nan")
        refused("nan.npy", formats.npy(broken, (HEIGHT, WIDTH, 2)), "holds nan at x = 60, y = 40, channel 0",
                "--unary-kind", "energies")
        good = formats.npy(self.energies, (HEIGHT, WIDTH, 2))
        refused("cut.npy", good[:-1], "truncated", "--unary-kind", "energies")
        refused("other.npy", formats.npy(self.energies, (WIDTH, HEIGHT, 2)), "swapped", "--unary-kind", "energies")
        refused("fortran.npy", formats.npy(self.energies, (HEIGHT, WIDTH, 2), fortran=True), "Fortran",
                "--unary-kind", "energies")
        for name, data, _ in formats.malformed_png(WIDTH, HEIGHT)[:12]:
            done = self.run_dcrf("solve", self.write("bad.png", data), "--unary", self.unary, "--unary-kind",
                                 "energies", *KERNELS, *WHOLE_TILE)
            self.assertEqual((done.returncode, done.stdout), (2, ""), name)

    # ---- volumes

    def test_volumes(self):
        size = (20, 16, 9)
        chance = random.Random(3)
        voxels = [100 * ((a % 20) > 9) + chance.randrange(40) for a in range(20 * 16 * 9)]
        prior = [int(((a % 20) > 9) == (chance.random() > 0.15)) for a in range(20 * 16 * 9)]
        image = self.write("v.nii.gz", gzip.compress(
            volumes.nifti(voxels, size, volumes.I16, spacing=(1, 1, 2))))
        rough = self.write("p.nii", volumes.nifti(prior, size, volumes.U8, spacing=(1, 1, 2)))
        options = {"image": image, "unary": ("--confidence=.7", "--labels-prior", rough, "--spatial", "1", "--bilateral", "2,30")}
        self.same([("-o", "l.nii"), ("--marginals", "m.nii"), ("--confidence-map", "c.npy")], **options)
        found = self.run_json("--tile", "12", "-o", "l.nii.gz", **options)
        # An overlap of 4 voxels, and of 2 where they are 2 mm apart.
        self.assertEqual((found["tiles"]["along"], found["tiles"]["overlap"]), ([5, 4, 1], [4, 4, 2]))
        labels = volumes.read_nifti(self.read("l.nii.gz"))[3]
        self.assertGreater(sum(x == ((a % 20) > 9) for a, x in enumerate(labels)), 0.98 * len(labels))
        self.assertIn(" x 1; windows of ", self.solve("--tile", "12", **options))


if __name__ == "__main__":
    unittest.main()
