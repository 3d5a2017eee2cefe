#!/usr/bin/env python3
"""Files as people have them: archives of arrays, pipes, palettes; and what is said to who mistypes."""

import io
import json
import os
import subprocess
import unittest
import zipfile

import formats
import pictures
from case import COMMAND, HANG_S, HEIGHT, IMAGE, LABELS, PIXELS, SHARED_DATA, UNARY, WIDTH, Case

VOC = [(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0)]
NUMBERS = [[(x + 2 * y) % LABELS for x in range(WIDTH)] for y in range(HEIGHT)]


def npz(members, compression=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name + ".npy", data)
    return out.getvalue()


class ArchiveTest(Case):
    def result(self, *arguments):
        return json.loads(self.good("solve", self.image, *arguments, "--json", "-"))["energy"]

    def test_arrays_in_archives(self):
        array = formats.npy(UNARY, (HEIGHT, WIDTH, LABELS))
        scalar = formats.npy([0.5], (1,))
        wanted = self.result("--unary", self.unary)
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            for members in ({"arr_0": array}, {"scale": scalar, "logits": array}, {"logits": array, "scale": scalar}):
                self.assertEqual(self.result("--unary", self.write("u.npz", npz(members, compression))), wanted)
        labels = formats.npy([v for row in NUMBERS for v in row], (HEIGHT, WIDTH), "|u1")
        self.assertEqual(self.result("--labels-prior", self.write("l.npz", npz({"mask": labels}))),
                         self.result("--labels-prior", self.write("l.npy", labels)))

    def test_bad_archives(self):
        array = formats.npy(UNARY, (HEIGHT, WIDTH, LABELS))
        good = npz({"u": array}, zipfile.ZIP_DEFLATED)
        directory = good.index(b"PK\1\2")
        broken = {
            "cut": good[:-10], "no-end": good[:directory], "head-only": b"PK\3\4", "magic-cut": good[:30],
            "directory-elsewhere": good[:-6] + b"\xff\xff\xff\x0f\0\0", "head-elsewhere":
            good[:directory + 42] + b"\xff\xff\xff\xff" + good[directory + 46:],
            "bytes-lie": good[:directory + 24] + b"\xff\xff\xff\x7f" + good[directory + 28:],
            "packed-lie": good[:directory + 20] + b"\xff\xff\xff\x7f" + good[directory + 24:],
            "method": good[:directory + 10] + b"\x0c\0" + good[directory + 12:],
            "encrypted": good[:directory + 8] + b"\1\0" + good[directory + 10:],
            "data": good[:60] + bytes(40) + good[100:], "name-lies": good[:directory + 28] + b"\xff\xff" + good[directory + 30:],
            "shorter": good[:directory + 24] + b"\x10\0\0\0" + good[directory + 28:],
        }
        for name, data in broken.items():
            with self.subTest(name):
                file = self.write("bad.npz", data)
                self.bad(file, "is a broken .npz archive", "solve", self.image, "--unary", file)
        for members, words in (({}, "no array over pixels"), ({"a": formats.npy([1.0], (1,))}, "no array over pixels (it has a)"),
                               ({"a": array, "b": array}, "several arrays that could be meant (it has a, b)")):
            file = self.write("odd.npz", npz(members))
            self.bad(file, words, "solve", self.image, "--unary", file)
        file = self.write("u.npz", good)
        self.bad(file, "cannot be read by windows", "solve", self.image, "--unary", file, "--tile", "5", "--spatial", "0.3",
                 "--bilateral", "none")


class PipeTest(Case):
    def piped(self, data, *arguments):
        return subprocess.run([COMMAND, *arguments], input=data, capture_output=True, timeout=HANG_S, cwd=self.folder, check=False)

    def test_standard_input_and_output(self):
        self.good("solve", self.image, "--unary", self.unary, "-o", "l.png", "-q")
        done = self.piped(formats.png(IMAGE), "solve", "-", "--unary", self.unary, "-o", "-")
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, b"", self.read("l.png")))
        done = self.piped(self.read("u.npy"), "solve", self.image, "--unary", "-", "-o", "out.png", "--report", "r.html")
        self.assertEqual((done.returncode, done.stderr, self.read("out.png")), (0, b"", self.read("l.png")))
        done = self.piped(formats.png(IMAGE), "solve", "-", "--unary", "-")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"the standard input was read already; one file can come from it", done.stderr)
        done = self.piped(b"", "solve", "-", "--unary", self.unary)
        self.assertIn(b"is empty", done.stderr)

    def test_help_for_who_reads_its_beginning(self):
        for arguments in (("help", "batch"), ("help", "solve"), ("solve", "--help"), ("--help",)):
            read, write = os.pipe()
            os.close(read)  # no reader at all
            done = subprocess.run([COMMAND, *arguments], stdout=write, stderr=subprocess.PIPE, timeout=HANG_S, check=False)
            os.close(write)
            self.assertEqual(done.stderr, b"", arguments)


class PaletteTest(Case):
    def colours_after(self, map_file, *more):
        self.good("solve", self.image, "--labels-prior", map_file, "-o", "l.png", "--overlay", "o.png", "-q", *more)
        return formats.read_palette(self.read("l.png"))

    def test_a_map_keeps_its_colours(self):
        rows = [[(v,) for v in row] for row in NUMBERS]
        for name, data in (("voc.png", formats.png(rows, 8, formats.PALETTE, VOC)),
                           ("voc.tif", pictures.tiff(rows, 8, pictures.TIFF_PALETTE, palette=VOC + [(9, 9, 9)] * 252))):
            file = self.write(name, data)
            self.assertEqual(self.colours_after(file)[:3], VOC[:3], name)
            self.good("solve", self.image, "--labels-prior", file, "-o", "t.png", "-q", "--tile", "5", "--spatial", "0.3",
                      "--bilateral", "none")
            self.assertEqual(formats.read_palette(self.read("t.png"))[:3], VOC[:3], name)
        given = self.write("p.txt", b"#010203\n#040506\n#070809\n")
        self.assertEqual(self.colours_after(file, "--palette", given)[:3], [(1, 2, 3), (4, 5, 6), (7, 8, 9)])
        greys = self.write("grey.png", formats.png(rows, 8, formats.PALETTE, [(i, i, i) for i in range(4)]))
        self.assertEqual(self.colours_after(greys)[1], (230, 159, 0))
        mask = [[(255 * (x > 2),) for x in range(WIDTH)] for _ in range(HEIGHT)]
        red = self.write("red.png", formats.png(mask, 8, formats.PALETTE, [(0, 0, 0)] * 255 + [(200, 0, 0)]))
        self.assertEqual(self.colours_after(red)[:2], [(0, 0, 0), (200, 0, 0)])

    def test_background_is_clear(self):
        self.good("solve", self.image, "--unary", self.unary, "-o", "l.png", "--overlay", "o.png", "-q")
        labels = formats.read_png(self.read("l.png"))[4]
        overlay = formats.read_png(self.read("o.png"))[4]
        self.assertIn((0,), [labels[y][x] for x, y in PIXELS])
        for x, y in PIXELS:
            self.assertEqual(overlay[y][x] == IMAGE[y][x], labels[y][x] == (0,))
        # A class that has a colour is none.
        palette = self.write("p.txt", b"#ff0000\n#00ff00\n#0000ff\n")
        self.good("solve", self.image, "--unary", self.unary, "--overlay", "o.png", "--palette", palette, "-q")
        overlay = formats.read_png(self.read("o.png"))[4]
        self.assertNotIn(True, [overlay[y][x] == IMAGE[y][x] for x, y in PIXELS])


class SaidTest(Case):
    def test_did_you_mean(self):
        self.bad("--unaries", "did you mean --unary?", "solve", self.image, "--unaries", self.unary)
        self.bad("--labels", "did you mean --labels-prior?", "solve", self.image, "--labels", self.labels)
        self.bad(self.unary, "did you mean --unary %s?" % self.unary, "solve", self.image, self.unary)
        self.bad(self.labels, "did you mean --labels-prior %s?" % self.labels, "solve", self.image, self.labels)
        self.bad("a.cert", "did you mean --certificate a.cert?", "verify", "a.cert", self.image)
        self.bad("a.cert", "did you mean --certificate a.cert?", "verify", self.image, "a.cert")
        self.bad("b.cert", "'dcrf help energy' shows the usage", "energy", self.image, "b.cert")

    def test_strength(self):
        """What was measured is not called given, whatever the rounding of its parts."""
        for share in ("0.1", "0.3", "0.37", "0.77"):
            said = self.good("solve", self.image, "--unary", self.unary, "--spatial-share", share)
            self.assertIn("measured, to suit the unaries", said)
        self.assertIn("given;", self.good("solve", self.image, "--unary", self.unary, "--strength", "2"))

    def test_gap(self):
        """A gap that was not reached is explained; nothing is said where none was asked for."""
        def run(*more):
            return self.good("solve", self.image, "--unary", self.unary, "--strength", "3", *more)
        self.assertNotIn("asked for", run("-m", "lp", "-n", "1"))
        self.assertIn("note: the gap that was asked for, 1 %, is not reached: only --method lp proves one", run("--gap", "1%"))

    @unittest.skipUnless(os.path.isdir(SHARED_DATA), "no shared data")
    def test_gap_of_a_photograph(self):
        """Pursued beyond the usual iterations, until it is reached or something else ends the run, which is said."""
        start = ("solve", os.path.join(SHARED_DATA, "eval-set-corel/images/045.png"), "--unary",
                 os.path.join(SHARED_DATA, "eval-set-corel/unaries/045.npy"), "--unary-scale", "0.05", "--unary-kind", "energies",
                 "-m", "lp", "--threads", "1", "--json", "r.json", "--no-polish")
        said = self.good(*start, "--gap", "1e-12", "-n", "5")
        self.assertIn("is not reached: that takes more iterations (-n)\n", said)
        said = self.good(*start, "--gap", "1e-12", "-t", "5")
        self.assertRegex(said, r"is not reached: (the time was up \(--time-limit\)|the bound and the energy have stopped to improve)\n")
        self.good(*start, "-n", "5")
        usual = json.loads(self.read("r.json"))
        self.good(*start, "--gap", "%.9f" % (usual["relative_gap"] / 4))
        found = json.loads(self.read("r.json"))
        self.assertLessEqual(found["relative_gap"], usual["relative_gap"] / 4)
        self.assertEqual(found["stop"], "gap")


if __name__ == "__main__":
    unittest.main()
