#!/usr/bin/env python3
"""dcrf energy: results against the formula, in every file format that is read."""

import itertools
import json
import os
import struct
import unittest
from decimal import Decimal, localcontext

import formats
import volumes
from case import (
    HEIGHT, IMAGE, LABELLING, LABELS, PIXELS, REGIONS, SHARED_DATA, UNARY, WIDTH, Case, clique_energy, kernel_matrix,
    pairwise_energy, unary_energy,
)


class EnergyTest(Case):
    def check(self, result, **expected):
        for key, value in expected.items():
            # Kernel values are floats, sums are doubles: 1e-5 is a hundred float roundings.
            self.assertAlmostEqual(result[key], value, delta=1e-5 * max(1, abs(value)), msg=key)

    def test_parts_against_the_formula(self):
        cliques = self.write("regions.png", formats.number_png(REGIONS))
        for normalize in ("symmetric", "none"):
            symmetric = normalize == "symmetric"
            spatial = pairwise_energy(kernel_matrix(2, None, symmetric), 1.25)
            bilateral = pairwise_energy(kernel_matrix(4, 50, symmetric), 0.5)
            cost = clique_energy(3, 2000)
            result = self.energy("--operator", "exact", "--spatial", "2,1.25", "--bilateral",
                                 "4,50,.5", "--normalize", normalize, "--cliques", cliques,
                                 "--gamma", "3", "--eta", "2000")
            self.check(result, energy_unary=unary_energy(), energy_pairwise=spatial + bilateral,
                       energy_cliques=cost, energy=unary_energy() + spatial + bilateral + cost)
            self.check(result["kernels"][0], energy=spatial, sigma=2, weight=1.25)
            self.check(result["kernels"][1], energy=bilateral, sigma=4, sigma_rgb=50, weight=.5)
            keys = ("width", "height", "labels", "cliques", "operator", "normalize")
            self.assertEqual([result[k] for k in keys],
                             [WIDTH, HEIGHT, LABELS, 4, "exact", normalize])

    def test_defaults(self):
        explicit = self.energy("--spatial=2", "--bilateral=40,8", "--normalize=symmetric",
                               "--strength=auto", "--spatial-share=0.3", "--temperature=1",
                               "--operator=lattice", "--cliques=none", "--threads", "2")
        default = self.energy("--threads", "2")
        self.assertEqual(default, explicit)
        self.assertGreater(default["energy_pairwise"], 0)
        cliques = self.write("regions.png", formats.number_png(REGIONS))
        self.assertEqual(self.energy("--cliques", cliques),
                         self.energy("--cliques", cliques, "--gamma", "auto", "--eta", "500"))

    def test_voxels_far_from_zero(self):
        """Values with an offset: not below the true energy, which is summed in 50 digits, and near it."""
        size = (3, 4, 2)
        voxels = list(itertools.product(*(range(n) for n in reversed(size))))  # z, y, x
        labels = [(7 * k * k + k // 5) % 3 for k in range(len(voxels))]
        unary = [((5 * k + k // 3) % 16) / 8 for k in range(3 * len(voxels))]
        arguments = ("--unary", self.write("u.npy", formats.npy(unary, (*reversed(size), 3))), "--unary-kind", "energies", "--labels",
                     self.write("l.nii", volumes.nifti(labels, size, volumes.U8)), "--operator", "exact", "--spatial", "none",
                     "--bilateral", "4,16,.5", "--normalize", "none", "--json", "-")
        for offset in (0, 10**4, 10**6):
            values = [offset + k * k % 61 / 2 for k in range(len(voxels))]
            found = json.loads(self.good("energy", self.write("far.nii", volumes.nifti(values, size)), *arguments))
            with localcontext() as context:
                context.prec = 50
                true = Decimal(sum(unary[3 * k + label] for k, label in enumerate(labels)))
                for a, b in itertools.permutations(range(len(voxels)), 2):
                    if labels[a] != labels[b]:
                        squared = Decimal(sum((p - q) ** 2 for p, q in zip(voxels[a], voxels[b]))) / 16 + \
                            Decimal(values[a] - values[b]) ** 2 / 256
                        true += (-squared / 2).exp() / 2
                self.assertGreaterEqual(Decimal(found["energy"]), true)
                self.assertLess(Decimal(found["energy"]), true + Decimal("1e-8"))

    def test_kernels_can_be_off(self):
        both = self.energy("--operator", "exact", "--spatial", "2,1")
        spatial = self.energy("--operator", "exact", "--spatial", "2,1", "--bilateral", "none")
        none = self.energy("--spatial", "none", "--bilateral", "none")
        self.assertEqual([k["kernel"] for k in spatial["kernels"]], ["spatial"])
        self.assertEqual(spatial["kernels"][0], both["kernels"][0])
        self.check(none, energy=unary_energy(), energy_pairwise=0)

    def test_pixels_without_a_label(self):
        """They get the label of their smallest unary, as if it had been written there."""
        void = {3, 10, len(PIXELS) - 1}
        rows = [UNARY[p * LABELS:(p + 1) * LABELS] for p in range(len(PIXELS))]
        given = [LABELLING[y][x] for x, y in PIXELS]
        holes = [77 if p in void else label for p, label in enumerate(given)]
        filled = [rows[p].index(min(rows[p])) if p in void else label for p, label in enumerate(given)]
        self.assertNotEqual(filled, given)
        with_holes, whole = (
            self.write(name, formats.number_png([values[y * WIDTH:(y + 1) * WIDTH] for y in range(HEIGHT)]))
            for name, values in (("holes.png", holes), ("whole.png", filled)))
        self.assertEqual(self.energy("--void", "77", labels=with_holes), self.energy(labels=whole))
        self.assertEqual(self.energy("--void", "none", labels=whole), self.energy(labels=whole))
        judged = [self.good("certify", self.image, "--unary", self.unary, "-n", "3", "-q", "--json", "-", "--labels",
                            *more) for more in ((with_holes, "--void", "77"), (whole,))]
        energies = [{key: value for key, value in json.loads(text).items() if key.startswith(("energy", "pixels"))}
                    for text in judged]
        self.assertEqual(*energies)
        start = ("energy", self.image, "--unary", self.unary, "--labels", with_holes)
        self.bad(with_holes, "has the label 77", *start)
        self.bad(with_holes, "has the label 77", *start, "--void", "78")
        for value in ("auto", "#ff0000", "x", "1.5"):
            self.bad("--void", "is not one of none|VALUE", *start, "--void", value)

    def test_table(self):
        lines = self.good("energy", self.image, "--unary", self.unary, "--labels",
                          self.labels).splitlines()
        self.assertEqual([line.split()[0] for line in lines],
                         ["total", "unary", "pairwise", "spatial", "bilateral", "cliques"])
        values = [float(line.split()[1]) for line in lines]
        self.assertAlmostEqual(values[0], values[1] + values[2] + values[5], places=4)
        self.assertAlmostEqual(values[2], values[3] + values[4], places=4)

    def test_json_file_beside_the_table(self):
        table = self.good("energy", self.image, "--unary", self.unary, "--labels", self.labels,
                          "--json", "r.json")
        self.assertIn("total", table)
        self.assertEqual(json.loads(self.read("r.json")), self.energy())
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["image.png", "labels.png", "r.json", "u.npy"])

    def test_every_npy_type_and_order(self):
        expected = self.energy()
        chw = [UNARY[p * LABELS + i] for i in range(LABELS) for p in range(len(PIXELS))]
        layouts = ((UNARY, (HEIGHT, WIDTH, LABELS)), (chw, (LABELS, HEIGHT, WIDTH)))
        variants = itertools.product(("<f2", ">f2", "<f4", ">f4", "<f8", ">f8"), (False, True),
                                     ((1, 0), (2, 0), (3, 0)), layouts)
        for descr, fortran, version, (values, shape) in variants:
            name = self.write("v.npy", formats.npy(values, shape, descr, fortran, version))
            self.assertEqual(self.energy(unary=name), expected, (descr, fortran, shape))
        for descr in ("|u1", "|i1", "<u2", ">u2", "<i2", ">i2", "<u4", ">i4", "<u8", ">u8", "<i8",
                      ">i8"):
            stored = [int(8 * v) for v in UNARY]
            name = self.write("v.npy", formats.npy(stored, (HEIGHT, WIDTH, LABELS), descr))
            self.assertEqual(self.energy("--unary-scale", "0.125", unary=name), expected, descr)

    def test_negative_integers(self):
        stored = [int(8 * v) - 100 for v in UNARY]
        for descr in ("|i1", ">i2", "<i4", ">i8"):
            name = self.write("v.npy", formats.npy(stored, (HEIGHT, WIDTH, LABELS), descr))
            result = self.energy("--unary-scale", "0.125", "--unary-kind=energies", unary=name)
            self.check(result, energy_unary=unary_energy() - 12.5 * len(PIXELS))

    def test_half_precision_values(self):
        """Subnormal, largest and negative halves."""
        values = [2.0**-24, 1023 * 2.0**-24, 65504, -65504, -2.0**-14]
        values += [0.0] * (WIDTH * HEIGHT - len(values))
        both = [v for value in values for v in (value, 0.0)]
        name = self.write("v.npy", formats.npy(both, (HEIGHT, WIDTH, 2), "<f2"))
        labels = self.write("zero.png", formats.number_png([[0] * WIDTH] * HEIGHT))
        result = self.energy("--unary-kind=energies", unary=name, labels=labels)
        self.assertAlmostEqual(result["energy_unary"], sum(values), delta=1e-12)

    def test_header_spellings(self):
        body = struct.pack("<%df" % len(UNARY), *UNARY)
        for text in ('{"shape": (5, 6, 3), "fortran_order": False, "descr": "<f4"}',
                     "{ 'fortran_order' : False,\n'shape':(5L,6L,3L,),'descr':'<f4',}   \n"):
            name = self.write("v.npy", formats.npy_header(text) + body)
            self.assertEqual(self.energy(unary=name), self.energy())

    def test_every_label_format(self):
        expected = self.energy()
        flat = [v for row in LABELLING for v in row]
        palette = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
        indexed = [[(v,) for v in row] for row in LABELLING]
        files = [formats.number_png(LABELLING, depth) for depth in (2, 4, 8, 16)]
        files += [formats.number_png(LABELLING, interlace=True)]
        files += [formats.png(indexed, depth, formats.PALETTE, palette) for depth in (2, 4, 8)]
        files += [formats.npy(flat, (HEIGHT, WIDTH), d)
                  for d in ("|u1", ">u2", "<i4", "<i8", ">u8")]
        files += [formats.npy(flat, (HEIGHT, WIDTH), "<i8", fortran=True)]
        for data in files:
            self.assertEqual(self.energy(labels=self.write("l", data)), expected)
        two = self.write("bool.npy", formats.npy([v > 0 for v in flat], (HEIGHT, WIDTH), "|b1"))
        bits = [[int(v > 0) for v in row] for row in LABELLING]
        one_bit = self.write("bit.png", formats.number_png(bits, 1))
        self.assertEqual(self.energy(labels=two), self.energy(labels=one_bit))

    def test_every_image_format(self):
        expected = self.energy()
        flat = [p for row in IMAGE for p in row]
        wide = [[tuple(257 * s for s in p) for p in row] for row in IMAGE]
        alpha = [[p + (9 * p[1] % 256,) for p in row] for row in IMAGE]
        indexed = [[(y * WIDTH + x,) for x in range(WIDTH)] for y in range(HEIGHT)]
        gamma = formats.chunk(b"gAMA", struct.pack(">I", 45455))
        wide_alpha = [[tuple(257 * s for s in p) for p in row] for row in alpha]
        transparent = formats.chunk(b"tRNS", bytes(9))
        for data in (formats.png(IMAGE, interlace=True), formats.png(wide, 16),
                     formats.png(alpha, colour=formats.RGBA),
                     formats.png(wide_alpha, 16, formats.RGBA, interlace=True),
                     formats.png(indexed, 8, formats.PALETTE, flat),
                     formats.png(indexed, 8, formats.PALETTE, flat, extra=transparent),
                     formats.png(IMAGE, extra=gamma), formats.png(IMAGE) + b"trailing"):
            self.assertEqual(self.energy(image=self.write("i.png", data)), expected)

    def test_grey_is_rgb_with_equal_channels(self):
        grey = [[p[1] for p in row] for row in IMAGE]
        as_rgb = self.write("rgb.png", formats.png([[(v, v, v) for v in row] for row in grey]))
        expected = self.energy(image=as_rgb)
        self.assertNotEqual(expected, self.energy())
        for data in (formats.number_png(grey),
                     formats.number_png([[257 * v for v in r] for r in grey], 16),
                     formats.png([[(v, 77) for v in r] for r in grey], 8, formats.GREY_ALPHA)):
            self.assertEqual(self.energy(image=self.write("g.png", data)), expected)
        coarse = [[v % 4 for v in row] for row in grey]
        as_rgb = self.write("c.png", formats.png([[(85 * v,) * 3 for v in row] for row in coarse]))
        two_bits = self.write("b.png", formats.number_png(coarse, 2))
        self.assertEqual(self.energy(image=as_rgb), self.energy(image=two_bits))

    def test_layout(self):
        n = 3
        image = self.write("i.png", formats.png([row[:n] for row in IMAGE[:n]]))
        labelling = [[0, 0, 1], [2, 1, 0], [1, 1, 1]]
        labels = self.write("l.png", formats.number_png(labelling))
        unary = self.write("c.npy", formats.npy([v * v / 4 for v in range(n**3)], (n, n, n)))
        arguments = ("energy", image, "--unary", unary, "--labels", labels)
        self.bad(unary, "--layout hwc or --layout chw", *arguments)
        results = {}
        for layout in ("hwc", "chw"):
            pixel_step, label_step = (n, 1) if layout == "hwc" else (1, n * n)
            places = [(y * n + x) * pixel_step + labelling[y][x] * label_step
                      for y in range(n) for x in range(n)]
            expected = sum(place**2 / 4 for place in places)
            results[layout] = self.energy("--layout", layout, image=image, unary=unary,
                                          labels=labels)
            self.check(results[layout], energy_unary=expected)
        self.assertNotEqual(results["hwc"], results["chw"])
        self.bad(self.unary, "not the one of --layout chw", "energy", self.image, "--unary",
                 self.unary, "--labels", self.labels, "--layout", "chw")

    def test_clique_maps(self):
        flat = [v for row in REGIONS for v in row]
        png = self.write("r.png", formats.number_png(REGIONS))
        wide = self.write("r16.png",
                          formats.number_png([[1000 * v for v in r] for r in REGIONS], 16))
        sparse = [v * 10**9 if v < 3 else -1 for v in flat]
        npy = self.write("r.npy", formats.npy(sparse, (HEIGHT, WIDTH), "<i8"))
        self.assertEqual(self.energy("--cliques", png), self.energy("--cliques", wide))
        self.assertEqual(self.energy("--cliques", npy)["cliques"], 3)

    def test_threads_do_not_change_the_result(self):
        results = [self.energy("--threads", t) for t in ("1", "2", "5")]
        for result, threads in zip(results, (1, 2, 5)):
            self.assertEqual(result.pop("threads"), threads)
            self.assertEqual(result, results[0])


class RealDataTest(Case):
    def test_photograph(self):
        folder = os.path.join(SHARED_DATA, "msrc-example")
        if not os.path.isdir(folder):
            self.skipTest("no shared data")
        height, width = 213, 320
        labels = self.write("zero.png", formats.number_png([[0] * width] * height))
        result = self.energy(image=os.path.join(folder, "photo1.png"), labels=labels,
                             unary=os.path.join(folder, "photo1_energy.npy"))
        self.assertEqual([result[k] for k in ("width", "height", "labels")], [width, height, 21])
        self.assertEqual(result["energy_pairwise"], 0)
        self.assertGreater(result["energy_unary"], 0)


if __name__ == "__main__":
    unittest.main()
