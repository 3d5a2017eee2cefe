#!/usr/bin/env python3
"""What a file needs when it is decoded is compared with what there is before any of it is taken."""

import gzip
import os
import resource
import struct
import subprocess
import threading
import time
import unittest
import zlib

import bitmaps
import formats
import pictures
import volumes
from case import COMMAND, Case

SIDE = 6000  # 36 million pixels: 108 MB as stored, 650 MB as 16 bits and floats
MEBIBYTE = 1 << 20


def address_space(bytes_):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (bytes_, bytes_))


def bomb_png(interlaced=False):
    squeezer = zlib.compressobj(9)
    row = b"\0" + bytes(3 * SIDE)
    data = b"".join(squeezer.compress(row) for _ in range(SIDE)) + squeezer.flush()
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 1 if interlaced else 0)
    return formats.SIGNATURE + formats.chunk(b"IHDR", header) + formats.chunk(b"IDAT", data) + formats.chunk(b"IEND", b"")


def bomb_jpeg(marker):
    """Sizes are said in the header; padding makes the file large enough to be believed."""
    return (b"\xff\xd8" + pictures.DQT + pictures.DHT_DC + pictures.DHT_AC + pictures.sof(SIDE, SIDE, 3, marker=marker) +
            pictures.sos(3) + bytes(MEBIBYTE // 4))


def bomb_tiff():
    fields = pictures.tiff_fields(SIDE, SIDE, 3, 8, pictures.TIFF_RGB, 8)
    fields[pictures.ROWS_TAG] = (pictures.LONG, [SIDE])
    return pictures.tiff_file(fields, [zlib.compress(bytes(3 * SIDE * SIDE), 9)])


def bomb_webp():
    data = bytearray(bitmaps.LOSSY_WEBP)
    struct.pack_into("<HH", data, 26, SIDE, SIDE)
    data += bytes(MEBIBYTE // 4)
    struct.pack_into("<I", data, 4, len(data) - 8)
    struct.pack_into("<I", data, 16, len(data) - 20)
    return bytes(data)


class RoomTest(Case):
    def setUp(self):
        super().setUp()
        if "sanitized" in os.environ.get("DCRF_TEST_BUILD", ""):
            self.skipTest("the sanitizer reserves address space")

    @staticmethod
    def little():
        """A child's peak begins with what this process has when it is started."""
        return max(100 * MEBIBYTE, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + 8 * MEBIBYTE)

    def test_pictures(self):
        cases = [("bomb.png", bomb_png()), ("passes.png", bomb_png(True)), ("baseline.jpg", bomb_jpeg(0xc0)),
                 ("progressive.jpg", bomb_jpeg(0xc2)), ("bomb.tif", bomb_tiff()), ("bomb.webp", bomb_webp())]
        for name, data in cases:
            with self.subTest(name=name):
                self.assertLess(len(data), MEBIBYTE)
                self.write(name, data)
                if "built without libwebp" in self.run_dcrf("superpixels", name, "-o", "y.npy",
                                                            preexec_fn=address_space(400 * MEBIBYTE)).stderr:
                    continue
                self.bad(name, "when it is decoded, and there are", "filter", name, "--row-sums", "-o", "y.npy", status=1,
                         preexec_fn=address_space(400 * MEBIBYTE))

    def test_memory(self):
        """--memory, of a problem that cannot be solved in tiles, and nothing is taken before it is refused."""
        self.write("bomb.png", bomb_png())
        status, message, peak = self.peak_of("solve", "bomb.png", "--unary", "u.npy", "--report", "r.html", "--memory", "100M")
        self.assertNotEqual(status, 0)
        self.assertIn("--", message)
        self.assertLess(peak, self.little())

    def test_volumes(self):
        """200 MB of zeros in 0.2: refused by its header, and one of the wrong size before it is unpacked."""
        side = 600
        self.write("small.nii.gz", gzip.compress(volumes.nifti([0] * 8, (2, 2, 2), volumes.U8)))
        squeezer = zlib.compressobj(9, zlib.DEFLATED, 31)
        data = squeezer.compress(volumes.nifti_header([3, side, side, side], volumes.U8) + bytes(4))
        data += b"".join(squeezer.compress(bytes(side * side)) for _ in range(side)) + squeezer.flush()
        self.write("bomb.nii.gz", data)
        self.bad("bomb.nii.gz", "when it is decoded, and there are", "superpixels", "bomb.nii.gz", "--method", "slic", "-o",
                 "y.npy", status=1, preexec_fn=address_space(400 * MEBIBYTE))
        for option in ("--labels-prior", "--unary"):
            status, message, peak = self.peak_of("solve", "small.nii.gz", option, "bomb.nii.gz", "-o", "l.nii.gz")
            self.assertEqual(status, 2)
            self.assertIn("bomb.nii.gz: is 600 x 600 x 600 voxels and the image 2 x 2 x 2 voxels", message)
            self.assertLess(peak, self.little())

    def test_files_that_grow(self):
        """A file that is written to while it is read has what it had when it was opened."""
        with open(self.path("growing.pgm"), "wb") as stream:
            stream.write(b"P5 8 8 255\n" + bytes(64))
        stop = threading.Event()

        def write_on():
            with open(self.path("growing.pgm"), "ab", buffering=0) as stream:
                end = time.monotonic() + 20
                while not stop.is_set() and time.monotonic() < end and stream.tell() < 256 * MEBIBYTE:
                    stream.write(bytes(MEBIBYTE))

        writer = threading.Thread(target=write_on)
        writer.start()
        try:
            status, message, peak = self.peak_of("superpixels", "growing.pgm", "-o", "y.npy")
        finally:
            stop.set()
            writer.join()
        self.assertIn(status, (0, 2), message)
        self.assertLess(peak, self.little())

    def test_enough_is_enough(self):
        """What fits is read as before."""
        self.good("superpixels", "image.png", "-o", "y.npy", "--threads", "1", preexec_fn=address_space(400 * MEBIBYTE))


if __name__ == "__main__":
    unittest.main()
