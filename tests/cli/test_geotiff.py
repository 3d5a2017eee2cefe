#!/usr/bin/env python3
"""Pictures of the Earth and of instruments: georeferences, missing data, and numbers of other ranges than 8 bits."""

import json
import shutil
import struct
import subprocess
import unittest

import formats
import pictures
from case import HEIGHT, IMAGE, LABELS, WIDTH, Case
from pictures import ASCII, DOUBLE, SHORT

SCALE, TIE, MATRIX, KEYS, DOUBLES, TEXTS, NODATA = 33550, 33922, 34264, 34735, 34736, 34737, 42113


def text(words):
    return (ASCII, list(words.encode() + b"\0"))


# UTM zone 32 north, pixels of half a metre.
GEO = {SCALE: (DOUBLE, [0.5, 0.5, 0.0]), TIE: (DOUBLE, [0.0, 0.0, 0.0, 500000.0, 5400000.0, 0.0]),
       KEYS: (SHORT, [1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32632]), TEXTS: text("WGS 84|"),
       DOUBLES: (DOUBLE, [6378137.0])}


class GeoTest(Case):
    def solve(self, image, output="l.tif", *more):
        said = self.good("solve", image, "--unary", self.unary, "-o", output, "--json", "r.json", *more)
        self.energy_found = json.loads(self.read("r.json"))["energy"]
        return said

    def labels_of(self, name="l.tif"):
        return pictures.read_tiff(self.read(name))

    def plain(self):
        self.solve(self.image, "plain.npy")
        values = formats.read_npy(self.read("plain.npy"), "|u1")[1]
        return [values[y * WIDTH:(y + 1) * WIDTH] for y in range(HEIGHT)]

    def test_georeference_is_kept(self):
        for order in "<>":
            image = self.write("geo.tif", pictures.tiff(IMAGE, order=order, fields=GEO))
            self.solve(image)
            fields, rows = self.labels_of()
            self.assertEqual(rows, self.plain())
            for tag, (_, values) in GEO.items():
                self.assertEqual(list(fields[tag]), values, tag)
            self.assertNotIn(NODATA, fields)
        self.assertEqual(fields[pictures.PHOTOMETRIC_TAG], (pictures.TIFF_PALETTE,))
        self.assertEqual([fields[pictures.PALETTE_TAG][k * 256 + 1] // 257 for k in range(3)], [230, 159, 0])
        self.assertEqual(fields[pictures.COMPRESSION_TAG], (8,))
        self.solve(image, "grey.tif", "--label-format", "grey", "--confidence-map", "c.tif")
        fields, rows = self.labels_of("grey.tif")
        self.assertEqual((rows, fields[pictures.PHOTOMETRIC_TAG]), (self.plain(), (pictures.BLACK_IS_ZERO,)))
        self.assertEqual(list(self.labels_of("c.tif")[0][TIE]), GEO[TIE][1])
        self.bad("l.tif", "the image is a volume", "solve", self.write("v.nii", __import__("volumes").nifti(
            list(range(30 * 2)), (6, 5, 2))), "--unary", self.write("v.npy", formats.npy([0.5] * 120, (2, 5, 6, 2))), "-o", "l.tif")

    def test_in_tiles(self):
        image = self.write("geo.tif", pictures.tiff(IMAGE, fields=GEO))
        options = ("--spatial", "0.3", "--bilateral", "0.3,13", "--strength", "1")
        self.solve(image, "whole.tif", *options)
        self.solve(image, "tiled.tif", *options, "--tile", "5", "--confidence-map", "c.tif")
        self.assertEqual(self.labels_of("tiled.tif"), self.labels_of("whole.tif"))

    def test_large_ones_are_tiled(self):
        width, height = 700, 500
        rows = [[(x * 3 % 256, y % 256, 0) for x in range(width)] for y in range(height)]
        image = self.write("large.tif", pictures.tiff(rows, rows=50, fields=GEO))
        labels = [[(x // 90 + y // 70) % 3 for x in range(width)] for y in range(height)]
        prior = self.write("prior.png", formats.number_png(labels))
        self.good("solve", image, "--labels-prior", prior, "--confidence", "0.9", "--spatial", "none", "--bilateral", "none", "-o",
                  "l.tif", "-q")
        fields, found = self.labels_of()
        self.assertEqual((fields[pictures.TILE_WIDTH_TAG], fields[pictures.TILE_HEIGHT_TAG]), ((256,), (256,)))
        self.assertEqual(found, labels)
        # And read back, as a map of labels.
        self.assertEqual(json.loads(self.good("energy", image, "--labels-prior", prior, "--confidence", "0.9", "--labels", "l.tif",
                                              "--spatial", "none", "--bilateral", "none", "--json", "-"))["labels"], 3)

    def test_missing_data(self):
        """Pixels of the image's nodata have that of the labels, and do not count for the range."""
        hole = {(1, 1), (2, 1), (5, 4)}
        plain = self.plain()
        for value, expected in (("0", 255), ("7", 7), ("-9999", 255), ("2", 255), ("255", 255)):
            number = float(value)
            if 0 <= number <= 255:
                rows = [[(int(number),) * 3 if (x, y) in hole else IMAGE[y][x] for x in range(WIDTH)] for y in range(HEIGHT)]
                data = pictures.tiff(rows, fields={**GEO, NODATA: text(value)})
            else:
                rows = [[(number,) * 3 if (x, y) in hole else tuple(map(float, IMAGE[y][x])) for x in range(WIDTH)]
                        for y in range(HEIGHT)]
                data = pictures.tiff(rows, "f", fields={**GEO, NODATA: text(value)})
            said = self.solve(self.write("hole.tif", data), "l.tif", "--bilateral", "none", "--spatial", "none")
            self.assertIn("note: 3 pixels have no data", said)
            fields, found = self.labels_of()
            self.assertEqual(bytes(fields[NODATA]).rstrip(b"\0").decode(), str(expected))
            by_unary = [[min(range(LABELS), key=lambda i: self_unary(x, y, i)) for x in range(WIDTH)] for y in range(HEIGHT)]
            for y in range(HEIGHT):
                for x in range(WIDTH):
                    self.assertEqual(found[y][x], expected if (x, y) in hole else by_unary[y][x], (value, x, y))
        self.assertEqual(len(plain), HEIGHT)

    def test_world_files(self):
        lines = "0.25\n0.01\n-0.02\n-0.25\n1000.5\n2000.25\n"
        image = self.write("photo.png", formats.png(IMAGE))
        for name in ("photo.pgw", "photo.pngw", "photo.wld"):
            file = self.write(name, lines.encode())
            self.solve(image, "l.png")
            self.assertEqual([float(v) for v in self.read("l.pgw").split()], [float(v) for v in lines.split()])
            self.solve(image, "l.tif")
            matrix = self.labels_of()[0][MATRIX]
            middle = [matrix[4 * r] * 0.5 + matrix[4 * r + 1] * 0.5 + matrix[4 * r + 3] for r in range(2)]
            self.assertEqual(middle, [1000.5, 2000.25])
            self.assertEqual([matrix[0], matrix[4], matrix[1], matrix[5]], [0.25, 0.01, -0.02, -0.25])
            for made in (file, self.path("l.pgw")):
                __import__("os").remove(made)
        # Of a GeoTIFF, where the picture has no tags of its own; a tie point may be the middle of a pixel.
        point = {**GEO, KEYS: (SHORT, [1, 1, 0, 1, 1025, 0, 1, 2])}
        for fields, first in ((GEO, (500000.25, 5399999.75)), (point, (500000.0, 5400000.0))):
            self.solve(self.write("geo.tif", pictures.tiff(IMAGE, fields=fields)), "l.png")
            self.assertEqual([float(v) for v in self.read("l.pgw").split()], [0.5, 0, 0, -0.5, *first])
        __import__("os").remove(self.path("l.pgw"))
        # What is no world file does not matter.
        for data in (b"", b"1 2 3 4 5", b"a b c d e f", b"1 2 3 4 5 6 7", b"nan 0 0 1 1 1", b"0 0 0 0 1 1", b"1 0 0 1 1 1\0",
                     b"1,0,0,1,1,1", b"1 0 0 1 1 1" + b" " * 2000):
            self.write("photo.pgw", data)
            self.solve(image, "l.png")
            self.assertNotIn("l.pgw", self.snapshot())

    def test_broken_tags(self):
        """What GeoTIFF tags say is handed on or left out; nothing else is made of it."""
        wanted = self.plain()
        for fields in ({SCALE: (DOUBLE, [0.5])}, {SCALE: (SHORT, [1, 1, 0])}, {TIE: (DOUBLE, [1.0] * 5)}, {KEYS: (SHORT, [1])},
                       {KEYS: (SHORT, [1, 1, 0, 60000])}, {KEYS: (DOUBLE, [1.0] * 8)}, {NODATA: text("none")}, {NODATA: (ASCII, [0])},
                       {NODATA: (SHORT, [3])}, {NODATA: text("9" * 300)}, {MATRIX: (DOUBLE, [float("nan")] * 16)},
                       {MATRIX: (DOUBLE, [1.0] * 12)}, {TEXTS: (ASCII, [65, 66])}, {SCALE: (DOUBLE, [0.5] * 3)}):
            self.solve(self.write("odd.tif", pictures.tiff(IMAGE, fields=fields)))
            self.assertEqual(self.labels_of()[1], wanted, fields)

    @unittest.skipUnless(shutil.which("gdalinfo"), "GDAL (gdal-bin) is not installed")
    def test_gdal_agrees(self):
        for fields in (GEO, {**GEO, NODATA: text("200")}, {MATRIX: (DOUBLE, [1, 0.1, 0, 7, 0.2, -1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1.0]),
                                                           KEYS: GEO[KEYS]}):
            image = self.write("geo.tif", pictures.tiff(IMAGE, fields=fields))
            self.solve(image)
            told = []
            for file in (image, self.path("l.tif")):
                done = subprocess.run(["gdalinfo", "-json", file], capture_output=True, text=True, check=True)
                self.assertEqual(done.stderr, "")
                told.append(json.loads(done.stdout))
            for key in ("geoTransform", "coordinateSystem", "size", "cornerCoordinates"):
                self.assertEqual(told[1].get(key), told[0].get(key), key)
            self.assertEqual(told[1]["bands"][0].get("noDataValue"), told[0]["bands"][0].get("noDataValue"))
            self.assertEqual(told[1]["bands"][0]["colorInterpretation"], "Palette")


def self_unary(x, y, label):
    return ((3 * x + 5 * y + 7 * label * label) % 16) / 8


class RangeTest(Case):
    """Numbers of instruments: the same result as their picture of 8 bits."""

    def outcome(self, data, name="image.tif", *more):
        image = self.write(name, data)
        said = self.good("solve", image, "--unary", self.unary, "--confidence-map", "c.npy", "-o", "l.npy", "-m", "mf", *more)
        return self.read("l.npy"), formats.read_npy(self.read("c.npy"))[1], said

    def assertSame(self, found, wanted, words=None):
        self.assertEqual(found[0], wanted[0])
        for a, b in zip(found[1], wanted[1]):
            self.assertAlmostEqual(a, b, delta=2e-3)  # samples of 16 bits, and the lattice's rounding of positions
        if words is None:
            self.assertNotIn("scaled", found[2])
        else:
            self.assertIn(words, found[2])

    def spread(self):
        """The scene, stretched to all of 0 to 255."""
        low = min(v for row in IMAGE for p in row for v in p)
        high = max(v for row in IMAGE for p in row for v in p)
        return [[tuple(255 * (v - low) / (high - low) for v in p) for p in row] for row in IMAGE]

    def test_deep_pictures(self):
        full = self.spread()
        rounded = [[tuple(round(v) for v in p) for p in row] for row in full]
        wanted = self.outcome(formats.png(rounded), "w.png")

        def mapped(f):
            return [[tuple(f(v) for v in p) for p in row] for row in full]

        # Twelve bits in files of sixteen.
        for data, name in ((formats.png(mapped(lambda v: round(v * 4095 / 255)), 16), "i.png"),
                           (pictures.tiff(mapped(lambda v: round(v * 4095 / 255)), 16), "i.tif"),
                           (pictures.pnm(mapped(lambda v: round(v * 4095 / 255)), 6, 65535), "i.ppm")):
            self.assertSame(self.outcome(data, name), wanted, "note: the image's numbers run from 0 to 4095; scaled to 0 to 255")
        # Sixteen that are used are as they are.
        self.assertSame(self.outcome(formats.png(mapped(lambda v: round(v * 257)), 16), "f.png"), wanted)
        for order in "<>":
            for code in "hiI":
                self.assertSame(self.outcome(pictures.tiff(mapped(lambda v: round(v * 30) + 1000), code, order=order)), wanted,
                                "from 1000 to 8650; scaled to 0 to 255")
            self.assertSame(self.outcome(pictures.tiff(mapped(lambda v: round(v * 3) - 400), "h", order=order)), wanted,
                            "from -400 to 365")
            for code in "fd":
                self.assertSame(self.outcome(pictures.tiff(mapped(lambda v: v * 1e-3 - 0.1), code, order=order, tile=(16, 16))), wanted,
                                "from -0.1 to 0.155")
        # Floats from 0 to 1, and from 0 to 255.
        self.assertSame(self.outcome(pictures.tiff(mapped(lambda v: v / 255), "f")), wanted)
        self.assertSame(self.outcome(pictures.tiff(mapped(float), "d", compression=8)), wanted)

    def test_missing_numbers_are_no_range(self):
        """NaN, infinity and nodata are left out of it, whatever they are."""
        full = self.spread()
        for number, fields in ((float("nan"), {}), (float("inf"), {}), (-3.4028234663852886e38, {NODATA: text("-3.40282e+38")}),
                               (-3.4028234663852886e38, {NODATA: text("-3.4028234663852886e+38")})):
            rows = [[(number,) * 3 if (x, y) == (0, 0) else tuple(v * 7 for v in p) for x, p in enumerate(row)]
                    for y, row in enumerate(full)]
            said = self.outcome(pictures.tiff(rows, "f", fields=fields))[2]
            self.assertIn("the image's numbers run from 0 to 1785; scaled", said)
            self.assertIn("note: 1 pixel has no data", said)
        file = self.write("none.tif", pictures.tiff([[(float("nan"),) * 3] * WIDTH] * HEIGHT, "f"))
        self.bad(file, "has no data: every number is missing", "solve", file, "--unary", self.unary)

    def test_one_number(self):
        """A picture without contrast has a range of nothing."""
        wanted = self.outcome(formats.png([[(128, 128, 128)] * WIDTH] * HEIGHT), "w.png")
        for number, code in ((0.0, "f"), (-7.5, "f"), (3e9, "d"), (-3, "h"), (1e300, "d"), (5, 16)):
            found = self.outcome(pictures.tiff([[(number,) * 3] * WIDTH] * HEIGHT, code))
            self.assertEqual(found[0], wanted[0])
            for a, b in zip(found[1], wanted[1]):
                self.assertAlmostEqual(a, b, delta=0.02)  # where in a cell of the lattice the one colour lies

    def test_hot_pixels(self):
        """One in a thousand may be anything."""
        width, height = 60, 50
        rows = [[(10 * x, 8 * y, 300) for x in range(width)] for y in range(height)]
        rows[10][10] = (30000, 30000, 30000)
        unary = self.write("u60.npy", formats.npy([(i * 7 % 16) / 8 for i in range(width * height * 2)], (height, width, 2)))
        said = self.good("solve", self.write("hot.tif", pictures.tiff(rows, 16)), "--unary", unary)
        self.assertIn("note: the image's numbers run from 0 to 590; scaled to 0 to 255", said)

    def test_bands(self):
        """The first three of many; more are said."""
        wanted = self.outcome(formats.png(IMAGE), "w.png")
        for bands, planar in ((4, False), (5, False), (6, True)):
            rows = [[p + (0, 9, 200)[:bands - 3] for p in row] for row in IMAGE]
            found = self.outcome(pictures.tiff(rows, photometric=pictures.BLACK_IS_ZERO, planar=planar,
                                               fields={pictures.EXTRA_TAG: (SHORT, [0] * (bands - 1))}))
            self.assertSame(found, wanted)
            self.assertEqual("note: of the image's %d bands the first three are its colours" % bands in found[2], bands > 4)

    def test_labels_of_any_type(self):
        labels = [[(x + y) % LABELS for x in range(WIDTH)] for y in range(HEIGHT)]
        wanted = self.good("energy", self.image, "--unary", self.unary, "--labels", self.write("l.png", formats.number_png(labels)))
        for code in "bhiIfd":
            file = self.write("l.tif", pictures.tiff([[(v,) for v in row] for row in labels], code, photometric=pictures.BLACK_IS_ZERO))
            self.assertEqual(self.good("energy", self.image, "--unary", self.unary, "--labels", file), wanted)
        for value, code in ((0.5, "f"), (-1, "h"), (70000, "i"), (float("nan"), "d")):
            rows = [[(v,) for v in row] for row in labels]
            rows[3][2] = (value,)
            file = self.write("bad.tif", pictures.tiff(rows, code, photometric=pictures.BLACK_IS_ZERO))
            self.bad(file, "numbers that are not whole or not between 0 and 65535", "energy", self.image, "--unary", self.unary,
                     "--labels", file)


if __name__ == "__main__":
    unittest.main()
