#!/usr/bin/env python3
"""BMP and WebP pictures, files that grow when they are decoded, and files that are none."""

import gzip
import os
import resource
import struct
import subprocess
import unittest
import zlib

import bitmaps
import datasets
import formats
import volumes
from case import COMMAND, HEIGHT, IMAGE, LABELLING, LABELS, UNARY, WIDTH, Case


class BitmapTest(Case):
    def test_colours(self):
        expected = self.energy()
        flat = [p for row in IMAGE for p in row]
        indices = [[y * WIDTH + x for x in range(WIDTH)] for y in range(HEIGHT)]
        packed = [[r << 20 | g << 10 | b for r, g, b in row] for row in IMAGE]
        for data in (bitmaps.bmp(IMAGE), bitmaps.bmp(IMAGE, top_down=True), bitmaps.bmp(IMAGE, 32),
                     bitmaps.bmp(IMAGE, description=124), bitmaps.bmp(IMAGE) + b"\0\0", bitmaps.bmp(indices, 8, flat),
                     bitmaps.bmp(packed, 32, masks=(0xff << 20, 0xff << 10, 0xff), compression=bitmaps.MASKS)):
            self.assertEqual(self.energy(image=self.write("i.bmp", data)), expected)

    def test_few_bits(self):
        bits = [[(x + y) % 2 for x in range(WIDTH)] for y in range(HEIGHT)]
        palette = [(10, 20, 30), (200, 100, 50)]
        expected = self.energy(image=self.write("p.png", formats.png([[palette[v] for v in row] for row in bits])))
        for data in (bitmaps.bmp(bits, 1, palette), bitmaps.bmp(bits, 4, palette), bitmaps.bmp(bits, 8, palette)):
            self.assertEqual(self.energy(image=self.write("i.bmp", data)), expected)
        # Five bits a channel, spread over eight.
        fives = [[(x * 5, y * 6, 31) for x in range(WIDTH)] for y in range(HEIGHT)]
        wide = [[tuple((255 * v + 15) // 31 for v in p) for p in row] for row in fives]
        expected = self.energy(image=self.write("p.png", formats.png(wide)))
        packed = [[r << 10 | g << 5 | b for r, g, b in row] for row in fives]
        self.assertEqual(self.energy(image=self.write("i.bmp", bitmaps.bmp(packed, 16))), expected)

    def test_labels(self):
        grey = [(v, v, v) for v in range(256)]
        file = self.write("l.bmp", bitmaps.bmp(LABELLING, 8, grey))
        self.assertEqual(self.energy(labels=file), self.energy())
        file = self.write("l.bmp", bitmaps.bmp(IMAGE))
        self.bad(file, "one number per pixel", "energy", self.image, "--unary", self.unary, "--labels", file)

    def test_malformed(self):
        cases = bitmaps.malformed_bmp(WIDTH, HEIGHT)
        self.assertGreaterEqual(len(cases), 20)
        for name, data, words in cases:
            with self.subTest(name):
                file = self.write("bad.bmp", data)
                self.bad(file, words, "solve", file, "--unary", self.unary, "-o", "out.png")

    def test_webp(self):
        file = self.write("i.webp", bitmaps.LOSSLESS_WEBP)
        done = self.run_dcrf("energy", file, "--unary", self.unary, "--labels", self.labels)
        if "without libwebp" in done.stderr:
            self.assertIn("is a WebP picture", done.stderr)
            self.assertEqual(done.returncode, 2)
            self.skipTest("built without libwebp")
        self.assertEqual(self.energy(image=file), self.energy())
        self.bad(file, "has colours where one number per pixel is needed", "energy", self.image, "--unary", self.unary, "--labels", file)
        unary = self.write("u16.npy", formats.npy([0, 2] * 256, (16, 16, 2)))
        self.good("solve", self.write("j.webp", bitmaps.LOSSY_WEBP), "--unary", unary, "--overlay", "o.png", "-q")
        # Lossy, but a picture of one colour stays close to it: red most, blue least.
        pixel = formats.read_png(self.read("o.png"))[4][0][0]
        self.assertGreater(pixel[0], pixel[1])
        self.assertGreater(pixel[1], pixel[2])
        cases = bitmaps.malformed_webp()
        self.assertGreaterEqual(len(cases), 20)
        for name, data, words in cases:
            with self.subTest(name):
                file = self.write("bad.webp", data)
                self.bad(file, words, "solve", file, "--unary", self.unary, "-o", "out.png")


def one_bit_png(width, height):
    """A picture of zeros, one bit per pixel: as small as PNG gets."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    packer = zlib.compressobj(9)
    body = b"".join(packer.compress(bytes(1 + (width + 7) // 8)) for y in range(height)) + packer.flush()
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)) +
            chunk(b"IDAT", body) + chunk(b"IEND", b""))


class BombTest(Case):
    LIMIT = 300 << 20

    def limited(self):
        resource.setrlimit(resource.RLIMIT_AS, (self.LIMIT, self.LIMIT))

    def refused(self, subject, words, *arguments):
        """Refused, and with far less memory than the pixels would need."""
        if os.environ.get("DCRF_TEST_BUILD") == "sanitized":
            self.skipTest("sanitizers need memory of their own")
        self.bad(subject, words, *arguments, preexec_fn=self.limited)

    def test_png(self):
        file = self.write("bomb.png", one_bit_png(10000, 10000))
        self.assertLess(os.path.getsize(file), 20000)
        self.refused(file, "announces more pixels", "superpixels", file, "-o", "out.png")
        self.refused(self.unary, "has the shape (5, 6, 3); the image of 10000 x 10000", "solve", file, "--unary",
                     self.unary, "-o", "out.png")
        self.refused(file, "is 10000 x 10000 pixels and the image 6 x 5", "energy", self.image, "--unary", self.unary,
                     "--labels", file)
        for option in ("--labels-prior", "--scribbles"):
            self.refused(file, "is 10000 x 10000 pixels and the image 6 x 5", "solve", self.image, option, file)

    def test_an_honest_mask_is_no_bomb(self):
        """Blank maps are small. This one is larger than a photograph of so few bytes may be."""
        size = 2350
        mask = self.write("mask.png", one_bit_png(size, size))
        photo = self.write("photo.pgm", b"P5 %d %d 255\n" % (size, size) + bytes(x % 251 for x in range(size)) * size)
        text = self.good("energy", photo, "--labels-prior", mask, "--label-count=2", "--labels", mask, "--spatial=none",
                         "--bilateral=none", "--json=-")
        self.assertIn('"labels": 2', text)

    def test_tiff(self):
        rows = 200000
        strip = zlib.compress(bytes(4096 * rows // 8), 9)
        tags = [(256, 4, 4096), (257, 4, rows), (258, 3, 1), (259, 3, 8), (262, 3, 1), (273, 4, 8), (277, 3, 1),
                (278, 4, rows), (279, 4, len(strip))]
        data = b"II*\0" + struct.pack("<I", 8 + len(strip)) + strip + struct.pack("<H", len(tags))
        data += b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags) + bytes(4)
        file = self.write("bomb.tif", data)
        self.refused(file, "announces more pixels", "superpixels", file, "-o", "out.png")
        self.refused(self.unary, "the image of 4096 x 200000", "solve", file, "--unary", self.unary)

    def test_gzip_with_more_behind(self):
        image = volumes.nifti([0] * 60, (5, 4, 3), volumes.I16)
        file = self.write("bomb.nii.gz", gzip.compress(image + bytes(16 << 20)))
        self.refused(file, "much more than its header says", "superpixels", file, "-o", "out.npy")
        many = gzip.compress(image) + gzip.compress(bytes(8 << 20)) * 30
        file = self.write("members.nii.gz", many)
        self.refused(file, "much more than its header says", "solve", file, "--labels-prior", file)

    def test_sizes_are_compared_before_decoding(self):
        """The rest of the picture may be missing: it is not looked at."""
        cut = self.write("cut.png", formats.png([[(x * y % 256, x * x % 251, 7 * y) for x in range(40)] for y in range(12)])[:-100])
        self.bad(self.unary, "the image of 40 x 12", "solve", cut, "--unary", self.unary)


class PlainFileTest(Case):
    def test_data_sets_hold_plain_files(self):
        datasets.make(self.path("data"))
        for name, message in (("images/p0.png", "data/images/p0.png"), ("unaries/p1.npy", "data/unaries/p1.npy"),
                              ("gt/p2.png", "data/gt/p2.png"), ("dataset.json", "data/dataset.json"),
                              ("classes.txt", "data/classes.txt")):
            path = self.path("data/" + name)
            os.rename(path, self.path("kept"))
            for make in (os.mkfifo, lambda p: os.symlink("/dev/zero", p), os.mkdir):
                make(path)
                self.bad(message, "is not a regular file", "batch", "data", "--methods", "mf", "--out", "out")
                self.assertFalse(os.path.exists(self.path("out")))
                (os.rmdir if make is os.mkdir else os.unlink)(path)
            os.rename(self.path("kept"), path)
        self.good("batch", "data", "--methods", "mf", "--out", "out")

    def test_pipes_are_fine_elsewhere(self):
        for which in ("image", "unary"):
            pipe = self.path("pipe")
            os.mkfifo(pipe)
            with subprocess.Popen(["cat", getattr(self, which)], stdout=subprocess.PIPE) as feeder:
                data = feeder.stdout.read()
            arguments = {"image": self.image, "unary": self.unary, which: pipe}
            with subprocess.Popen([COMMAND, "energy", arguments["image"], "--unary", arguments["unary"], "--labels",
                                   self.labels], stdout=subprocess.PIPE, cwd=self.folder) as running:
                with open(pipe, "wb") as stream:
                    stream.write(data)
                text = running.stdout.read()
            self.assertEqual(running.returncode, 0)
            self.assertTrue(text.startswith(b"total"))
            os.unlink(pipe)


if __name__ == "__main__":
    unittest.main()
