#!/usr/bin/env python3
"""Photographs that were taken with the camera on its side: read as they are seen, whatever is made of them."""

import json
import struct
import unittest

import formats
import pictures
from case import HEIGHT, IMAGE, LABELS, WIDTH, Case

# Where the first row and the first column of the file are in the picture as it is seen (EXIF 2.3, tag 274).
PLACES = {1: "top left", 2: "top right", 3: "bottom right", 4: "bottom left",
          5: "left top", 6: "right top", 7: "right bottom", 8: "left bottom"}


def stored(seen, orientation):
    """The rows of a file that is seen as `seen` with this orientation."""
    row_side, column_side = PLACES[orientation].split()
    height, width = len(seen), len(seen[0])
    rows_are_columns = row_side in ("left", "right")
    out = [[None] * (height if rows_are_columns else width) for _ in range(width if rows_are_columns else height)]
    for r, line in enumerate(out):
        for c in range(len(line)):
            place = {}
            for side, index in ((row_side, r), (column_side, c)):
                axis, extent = ("y", height) if side in ("top", "bottom") else ("x", width)
                place[axis] = index if side in ("top", "left") else extent - 1 - index
            line[c] = seen[place["y"]][place["x"]]
    return out


def exif(orientation, order="<", more=()):
    entries = sorted([(274, 3, orientation), (256, 4, 9), *more])
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, len(entries))
    for tag, kind, value in entries:
        head += struct.pack(order + "HHI", tag, kind, 1) + (struct.pack(order + "HH", value, 0) if kind == 3 else
                                                            struct.pack(order + "I", value))
    return head + bytes(4)


def png_with(rows, block, colour=formats.RGB):
    return formats.png(rows, 8, colour, extra=formats.chunk(b"eXIf", block))


class UprightTest(Case):
    def solve(self, image, *more):
        said = self.good("solve", image, "--unary", self.unary, "-o", "l.npy", "--overlay", "o.png", "--json", "r.json", *more)
        return formats.read_npy(self.read("l.npy"), "|u1"), self.read("o.png"), json.loads(self.read("r.json"))["energy"], said

    def test_every_orientation(self):
        wanted = self.solve(self.image)
        self.assertEqual(wanted[0][0], (HEIGHT, WIDTH))
        self.assertNotIn("EXIF", wanted[3])
        for orientation in PLACES:
            rows = stored(IMAGE, orientation)
            files = [("a.png", png_with(rows, exif(orientation))), ("b.png", png_with(rows, exif(orientation, ">"))),
                     ("c.tif", pictures.tiff(rows, fields={274: (pictures.SHORT, [orientation])})),
                     ("d.tif", pictures.tiff(rows, order=">", fields={274: (pictures.SHORT, [orientation])}))]
            for name, data in files:
                found = self.solve(self.write(name, data))
                self.assertEqual(found[:3], wanted[:3], (orientation, name))
                self.assertEqual("as its EXIF orientation says" in found[3], orientation != 1)
        self.assertIn("turned by 90 degrees clockwise", self.solve(self.write("six.png", png_with(stored(IMAGE, 6), exif(6))))[3])

    def test_jpeg(self):
        seen = [[(40 * x, 90 * y, 128) for x in range(3)] for y in range(2)]
        unary = self.write("u.npy", formats.npy([((i * 5) % 7) / 4 for i in range(24 * 16 * 2)], (16, 24, 2)))
        results = set()
        for orientation in PLACES:
            rows = stored(seen, orientation)
            data = pictures.jpeg([p for row in rows for p in row], len(rows[0]))
            app1 = pictures.segment(0xe1, b"Exif\0\0" + exif(orientation, ">"))
            self.good("solve", self.write("photo.jpg", data[:2] + app1 + data[2:]), "--unary", unary, "-o", "l.npy", "-q",
                      "--confidence-map", "c.npy")
            results.add((self.read("l.npy"), self.read("c.npy")))
        self.assertEqual(len(results), 1)

    def test_in_tiles(self):
        small = ("--spatial", "1", "--bilateral", "1,13", "--strength", "1", "-q")
        self.good("solve", self.image, "--unary", self.unary, "-o", "a.png", "--tile", "5", *small, "--spatial", "0.3", "--bilateral",
                  "0.3,13")
        for orientation in (3, 6):
            image = self.write("turned.png", png_with(stored(IMAGE, orientation), exif(orientation)))
            said = self.good("solve", image, "--unary", self.unary, "-o", "b.png", "--tile", "5", "--strength", "1", "--spatial",
                             "0.3", "--bilateral", "0.3,13")
            self.assertIn("EXIF", said)
            self.assertEqual(self.read("a.png"), self.read("b.png"))

    def test_maps(self):
        """Masks are turned by their own orientation; one that was made for the file as it is stored is explained."""
        labels = [[int(x > 2) for x in range(WIDTH)] for _ in range(HEIGHT)]
        image = self.write("turned.png", png_with(stored(IMAGE, 6), exif(6)))
        upright = self.write("mask.png", formats.number_png(labels))
        turned = self.write("turned-mask.png", png_with([[(v,) for v in row] for row in stored(labels, 8)], exif(8), formats.GREY))
        results = set()
        for mask in (upright, turned):
            self.good("solve", image, "--labels-prior", mask, "-o", "l.png", "-q")
            results.add(self.read("l.png"))
        self.assertEqual(len(results), 1)
        as_stored = self.write("stored.png", formats.number_png(stored(labels, 6)))
        self.bad(as_stored, "the photograph was turned upright, as its EXIF orientation says: turn this, too", "solve", image,
                 "--labels-prior", as_stored)
        unary = self.write("stored.npy", formats.npy([0.5] * (WIDTH * HEIGHT * LABELS), (WIDTH, HEIGHT, LABELS)))
        self.bad(unary, "the photograph was turned upright", "solve", image, "--unary", unary)

    def test_nonsense_is_upright(self):
        wanted = self.solve(self.image)
        for block in (b"", b"II*\0", exif(0), exif(9), exif(300), exif(6)[:9], b"II*\0\xff\xff\xff\xff" + bytes(20),
                      exif(6).replace(b"\x12\x01", b"\x13\x01"), b"MM*\0" + exif(6)[4:], exif(6)[:8] + b"\xff\xff"):
            found = self.solve(self.write("odd.png", png_with(IMAGE, block)))
            self.assertEqual(found[:3], wanted[:3], block)
            self.assertNotIn("EXIF", found[3])
        # A GeoTIFF lies as its georeference says.
        geo = pictures.tiff(IMAGE, fields={274: (pictures.SHORT, [6]), 34735: (pictures.SHORT, [1, 1, 0, 0])})
        self.assertEqual(self.solve(self.write("geo.tif", geo))[:3], wanted[:3])


if __name__ == "__main__":
    unittest.main()
