"""compatibility=: names, trees, cuts and matrices, against the matrix of the formula."""

import math
import pickle
import unittest

import numpy as np

import dcrf

RNG = np.random.default_rng(4)
UNARY = RNG.random((6, 7, 5)) * 3
PLACES = np.arange(5)
TREE = dcrf.Tree([(0, "low", 1), (1, "low", 0.5), (2, "low", 2), ("low", "all", 1), (3, "all", 0.25), (4, 3, 3)])
TREE_MATRIX = np.array([
    [0, 1.5, 3, 2.25, 5.25],
    [1.5, 0, 2.5, 1.75, 4.75],
    [3, 2.5, 0, 3.25, 6.25],
    [2.25, 1.75, 3.25, 0, 3],
    [5.25, 4.75, 6.25, 3, 0],
])
GROUPS = dcrf.Tree.from_groups((5, [(2.5, [(1, [0, 2]), 4]), (0, [3]), 1]))
GROUPS_MATRIX = np.array([
    [0, 5, 1, 5, 2.5],
    [5, 0, 5, 5, 5],
    [1, 5, 0, 5, 2.5],
    [5, 5, 5, 0, 5],
    [2.5, 5, 2.5, 5, 0],
])
DIFFERENCE = np.abs(PLACES[:, None] - PLACES)


def model(compatibility):
    return dcrf.Model(unary=UNARY, labels_axis=-1, spatial=(2, 0.4), compatibility=compatibility)


class Compatibility(unittest.TestCase):
    def test_names_trees_and_cuts(self):
        sets = np.array([[0, 1, 1, 0, 0], [1, 0, 1, 0, 1]])
        cuts = sum(length * (row[:, None] != row) for row, length in zip(sets, (1.5, 0.5)))
        for given, matrix in (
            ("linear", DIFFERENCE),
            ("truncated-linear:2", np.minimum(DIFFERENCE, 2)),
            (TREE, TREE_MATRIX),
            (GROUPS, GROUPS_MATRIX),
            (dcrf.Cuts(sets, [1.5, 0.5]), cuts),
            (dcrf.Cuts(sets.astype(bool), [1.5, 0.5]), cuts),
        ):
            one, other = model(given), model(matrix)
            labels = RNG.integers(0, 5, (6, 7))
            self.assertAlmostEqual(one.energy(labels).total, other.energy(labels).total, delta=1e-4)
            marginals = [m.solve("mf", iterations=3).marginals for m in (one, other)]
            np.testing.assert_allclose(*marginals, atol=1e-5)
            copy = pickle.loads(pickle.dumps(one))
            self.assertAlmostEqual(copy.energy(labels).total, one.energy(labels).total, delta=0)

    def test_the_stereo_preset(self):
        image = (np.arange(6 * 7 * 3) * 37 % 256).astype(np.uint8).reshape(6, 7, 3)
        preset = dcrf.Model(image, unary=UNARY, labels_axis=-1, preset="stereo")
        given = dcrf.Model(
            image, unary=UNARY, labels_axis=-1, spatial=(2, 0.3), bilateral=(12, 8, 2), normalize="symmetric",
            compatibility="truncated-linear:4",
        )
        labels = UNARY.argmin(-1)
        self.assertEqual(preset.energy(labels), given.energy(labels))
        self.assertEqual([kernel["compatibility"] for kernel in preset.kernels], ["truncated-linear:4"] * 2)

    def test_one_for_each_kernel(self):
        both = dcrf.Model(
            UNARY.mean(-1)[..., None] * np.ones(3), unary=UNARY, labels_axis=-1, spatial=(2, 0.4), bilateral=(3, 1, 0.2),
            compatibility=["linear", None],
        )
        self.assertEqual([kernel["compatibility"] for kernel in both.kernels], ["linear", None])

    def test_what_the_bound_leaves_out(self):
        squares = DIFFERENCE**2  # at best the cuts between neighbours are below: 1 for each step
        lossy = model(squares)
        result = lossy.solve("lp", iterations=60, certificate=True)
        pairs = [np.argwhere(result.labels == i) for i in range(5)]
        self.assertAlmostEqual(result.left_out.distance, 12, places=5)  # of 16
        self.assertAlmostEqual(result.left_out.fraction, 0.75, places=6)
        rest = model(squares - DIFFERENCE).energy(result.labels).pairwise
        self.assertGreater(rest, 0)
        self.assertAlmostEqual(result.left_out.energy, rest, delta=1e-5 * rest)
        self.assertLessEqual(result.lower_bound, result.energy - result.left_out.energy)
        floor = UNARY.min(-1).sum()
        self.assertAlmostEqual(result.left_out.gap, rest / (result.energy - floor), places=5)
        self.assertIn("leaves out up to 12 (75 %)", str(result.left_out))
        self.assertIn("leaves out", repr(result))
        self.assertIn(("note", str(result.left_out)), result.figures())
        self.assertIn("leaves out", result.report())
        certificate = lossy.certify(result.labels)
        self.assertAlmostEqual(certificate.left_out.energy, rest, delta=1e-5 * rest)
        self.assertIn("leaves out", str(certificate))
        for whole in ("linear", 0.3 * DIFFERENCE, None):
            result = model(whole).solve("lp")
            self.assertIsNone(result.left_out)
            self.assertNotIn("leaves out", repr(result) + result.report())
            certificate = model(whole).certify(result.labels)
            self.assertIsNone(certificate.left_out)
            self.assertNotIn("leaves out", str(certificate))
        self.assertIsNone(lossy.solve("mf").left_out)

    def test_refusals(self):
        for given, words in (
            ("truncated-linear:0", "above zero"),
            ("nearly", "is not a compatibility"),
            (dcrf.Tree([(0, 1, 1), (1, 2, 1), (2, 0, 1), (3, 4, 1)]), "cycle"),
            (dcrf.Tree([(0, 1, 1)]), "label 2 is missing"),
            (dcrf.Tree.from_groups((3, [0, 1, 3, 4])), "label 2 is missing"),
            (dcrf.Tree.from_groups((3, [0, 1, 2, 3, 4, 5])), "label 5"),
            (dcrf.Tree([(0, 9, 1)]), "label 9"),
            (dcrf.Tree([(0, 1, 1), (1, 2, -1), (2, 3, 1), (3, 4, 1)]), "negative"),
            (dcrf.Cuts([[0, 1]], [1]), "2 labels"),
            (np.triu(DIFFERENCE), "not symmetric"),
            (np.where(DIFFERENCE == 1, np.nan, 0), "nan"),
            (np.ones((3, 3)), "5 x 5"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                model(given)
        for group, words in (
            ((1, [0, (2, [1, 2])]), "costs 2 is in one that costs 1"),
            ((1, [0, 1, 0]), "label 0 occurs twice"),
            ((3, [0, (2, [1, 0])]), "label 0 occurs twice"),
            ((-1, [0, 1]), "finite cost"),
            ((math.nan, [0, 1]), "finite cost"),
            ((1, []), "members"),
            ((1, ["cat", 1]), "'cat' is no group"),
            ([0, 1, 2], "is no group"),
            (1, "1 is no group"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                dcrf.Tree.from_groups(group)
        for make in (lambda: dcrf.Tree([(0, 1)]), lambda: dcrf.Cuts([[0, 2]], [1]), lambda: dcrf.Cuts([[0, 1]], [1, 2])):
            self.assertRaises(ValueError, make)


if __name__ == "__main__":
    unittest.main()
