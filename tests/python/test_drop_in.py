"""The drop-in as public programs call it, against a naive mean field that shares no code with ours:
dense matrices made from the rows of the operator itself would be circular, so the lattice is written
once more here, with dictionaries."""

import itertools
import unittest

import numpy as np

from dcrf.pydensecrf import densecrf as dcrf
from dcrf.pydensecrf import utils


class NaiveLattice:
    """The permutohedral lattice with dictionaries, in the arithmetic of single precision."""

    def __init__(self, features):
        d, count = features.shape
        self.d = d
        deviation = float(np.float32(np.sqrt(2 / 3) * (d + 1)))
        scale = [np.float32(1 / np.sqrt((i + 1) * (i + 2)) * deviation) for i in range(d)]
        self.rows = []
        keys = {}
        # The original fills up to a multiple of four with zeros, whose vertices then exist.
        features = np.pad(features, ((0, 0), (0, -count % 4)))
        for a in range(features.shape[1]):
            elevated = [np.float32(0)] * (d + 1)
            total = np.float32(0)
            for i in range(d, 0, -1):
                along = np.float32(features[i - 1, a] * scale[i - 1])
                elevated[i] = np.float32(total - np.float32(i) * along)
                total = np.float32(total + along)
            elevated[0] = total
            nearest = [int(np.rint(np.float32(value * np.float32(1 / (d + 1))))) for value in elevated]
            origin = [n * (d + 1) for n in nearest]
            difference = [np.float32(e - np.float32(o)) for e, o in zip(elevated, origin)]
            rank = [0] * (d + 1)
            for i, j in itertools.combinations(range(d + 1), 2):
                if difference[i] < difference[j]:
                    rank[i] += 1
                else:
                    rank[j] += 1
            for i in range(d + 1):
                rank[i] += sum(nearest)
                if rank[i] < 0:
                    rank[i] += d + 1
                    origin[i] += d + 1
                elif rank[i] > d:
                    rank[i] -= d + 1
                    origin[i] -= d + 1
            weight = [0.0] * (d + 2)
            for i in range(d + 1):
                share = (float(elevated[i]) - origin[i]) / (d + 1)
                weight[d - rank[i]] += share
                weight[d + 1 - rank[i]] -= share
            weight[0] += 1 + weight[d + 1]
            row = []
            for k in range(d + 1):
                key = tuple(origin[i] + k - (d + 1 if rank[i] > d - k else 0) for i in range(d))
                row.append((keys.setdefault(key, len(keys)), weight[k]))
            self.rows.append(row)
        self.keys = keys
        self.rows = self.rows[:count]

    def apply(self, values):
        """values (labels, N)"""
        table = np.zeros((len(self.keys), values.shape[0]))
        for a, row in enumerate(self.rows):
            for vertex, weight in row:
                table[vertex] += weight * values[:, a]
        for axis in range(self.d + 1):
            blurred = table.copy()
            for key, vertex in self.keys.items():
                for sign in (1, -1):
                    step = [x + sign for x in key]
                    if axis < self.d:
                        step[axis] -= sign * (self.d + 1)
                    other = self.keys.get(tuple(step))
                    if other is not None:
                        blurred[vertex] += 0.5 * table[other]
            table = blurred
        out = np.array([sum(w * table[v] for v, w in row) for row in self.rows]).T
        return out / (1 + 2.0**-self.d)


class NaiveTerm:
    def __init__(self, features, compat, normalization):
        self.lattice = NaiveLattice(features)
        n = self.lattice.apply(np.ones((1, features.shape[1])))[0]
        power = 0.5 if normalization == 3 else 1
        scale = (n + 1e-20) ** -power
        self.before = scale if normalization in (1, 3) else 1
        self.after = scale if normalization in (2, 3) else 1
        self.compat = np.asarray(compat, np.float64)

    def message(self, q):
        filtered = self.lattice.apply(q * self.before) * self.after
        if self.compat.ndim == 0:
            return -self.compat * filtered
        if self.compat.ndim == 1:
            return self.compat[:, None] * filtered
        return (self.compat + self.compat.T) / 2 @ filtered


def softmax(field):
    e = np.exp(field - field.max(0))
    return e / e.sum(0)


def naive(unary, terms, iterations):
    q = softmax(-unary.astype(np.float64))
    for _ in range(iterations):
        q = softmax(-unary - sum(term.message(q) for term in terms))
    return q


def picture(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


def positions(height, width, sx, sy):
    y, x = np.mgrid[:height, :width]
    return np.stack([x.ravel() / sx, y.ravel() / sy]).astype(np.float32)


class Values(unittest.TestCase):
    """Against the naive implementation. 2e-5: single precision, a few hundred terms to a sum, times
    weights of up to 10, over 3 updates."""

    TOLERANCE = 2e-5

    def check(self, labels, compat_gaussian, compat_bilateral, normalization):
        height, width = 9, 11
        rng = np.random.default_rng(labels)
        image = picture(height, width) // 4
        unary = rng.normal(0, 2, (labels, height * width)).astype(np.float32)
        crf = dcrf.DenseCRF2D(width, height, labels)
        crf.setUnaryEnergy(unary)
        crf.addPairwiseGaussian((2, 3), compat_gaussian, normalization=normalization)
        crf.addPairwiseBilateral(
            (20, 30), (5, 10, 20), image, compat_bilateral, normalization=normalization
        )
        colours = image.reshape(-1, 3).T / np.array([[5], [10], [20]])
        bilateral = np.concatenate([positions(height, width, 20, 30), colours]).astype(np.float32)
        terms = [
            NaiveTerm(positions(height, width, 2, 3), compat_gaussian, normalization),
            NaiveTerm(bilateral, compat_bilateral, normalization),
        ]
        for iterations in (0, 1, 3):
            expected = naive(unary, terms, iterations)
            difference = np.abs(crf.inference(iterations) - expected).max()
            self.assertLess(difference, self.TOLERANCE, (labels, normalization, iterations))
        q, tmp1, tmp2 = crf.startInference()
        for _ in range(3):
            crf.stepInference(q, tmp1, tmp2)
        np.testing.assert_allclose(q, naive(unary, terms, 3), atol=self.TOLERANCE)
        exact = q.astype(np.float64)
        divergence = (exact * np.log(np.maximum(exact, 1e-20))).sum() + (exact * unary).sum()
        divergence += sum((exact * term.message(exact)).sum() for term in terms)
        self.assertAlmostEqual(crf.klDivergence(q) / divergence, 1, places=5)

    def test_normalizations(self):
        for normalization in range(4):
            scale = 0.05 if normalization == 0 else 1
            self.check(3, 3 * scale, 10 * scale, normalization)

    def test_many_labels(self):
        for labels in (1, 2, 8, 9, 33, 40):
            self.check(labels, 3, 5, dcrf.NORMALIZE_SYMMETRIC)

    def test_compatibilities(self):
        rng = np.random.default_rng(3)
        for labels in (3, 40):
            vector = -rng.random(labels).astype(np.float32)
            matrix = -rng.random((labels, labels)).astype(np.float32)
            self.check(labels, vector, 2, dcrf.NORMALIZE_SYMMETRIC)
            self.check(labels, 2, matrix, dcrf.NORMALIZE_AFTER)
            self.check(labels, vector, matrix, dcrf.NORMALIZE_BEFORE)


class LargeLattice(unittest.TestCase):
    def test_sorted_vertices(self):
        """A lattice so large that its vertices are numbered in the order of their keys."""
        features = np.random.default_rng(8).normal(0, 4, (5, 8000)).astype(np.float32)
        unary = np.random.default_rng(9).normal(0, 2, (2, 8000)).astype(np.float32)
        crf = dcrf.DenseCRF(8000, 2)
        crf.setUnaryEnergy(unary)
        crf.addPairwiseEnergy(features, 5)
        term = NaiveTerm(features, 5, 3)
        self.assertGreater(len(term.lattice.keys), 32768)
        np.testing.assert_allclose(crf.inference(2), naive(unary, [term], 2), atol=2e-5)


class FadedLabels(unittest.TestCase):
    """Labels that are not filtered change Q by little, and come back when they must."""

    def problem(self, labels=60, message_error=None):
        height, width = 40, 50
        rng = np.random.default_rng(5)
        unary = np.full((labels, height, width), 11.5, np.float32)  # -log(1e-5)
        for i in range(4):
            unary[i] = rng.normal(2, 1, (height, width))
        # One label that nearly all pixels rule out, and that the others' messages bring up where
        # the first four are unlikely.
        unary[7, 10:20, 10:20] = 9
        unary[:4, 10:20, 10:20] += 9
        crf = dcrf.DenseCRF2D(width, height, labels, message_error=message_error)
        crf.setUnaryEnergy(unary.reshape(labels, -1))
        crf.addPairwiseGaussian(3, 3)
        crf.addPairwiseBilateral(20, 20, picture(height, width, 6) // 8, 5)
        return crf

    def test_effect_on_q_is_small(self):
        for iterations in (1, 2, 5, 10):
            exact = self.problem(message_error=0).inference(iterations)
            fast = self.problem().inference(iterations)
            self.assertLess(np.abs(fast - exact).max(), 1e-6)
            self.assertTrue((fast.argmax(0) == exact.argmax(0)).all())

    def test_bound_of_one_update(self):
        """The stated bound: a message off by at most e moves a probability p by at most p (exp(e) - 1)
        where p is at most the threshold t = e / (largest row sum times weights, here at least 8), and
        the sum of these moves the others; the rest is rounding."""
        for error in (1e-3, 1e-2, 0.1):
            exact, fast = self.problem(message_error=0), self.problem(message_error=error)
            q = exact.inference(1)
            one, other = q.copy(), q.copy()
            exact.stepInference(one)
            fast.stepInference(other)
            most = len(q) * error / 8 * (np.exp(error) - 1)
            self.assertLess(np.abs(other - one).max(), most + 1e-6)

    def test_steps_and_inference_agree(self):
        crf = self.problem()
        q, _, _ = crf.startInference()
        for _ in range(4):
            crf.stepInference(q)
        self.assertLess(np.abs(q - crf.inference(4)).max(), 1e-4)


class Calls(unittest.TestCase):
    """Patterns of public programs, rewritten."""

    def setUp(self):
        self.height, self.width, self.labels = 12, 17, 4
        rng = np.random.default_rng(1)
        scores = rng.random((self.height, self.width, self.labels))
        self.hwc = (scores / scores.sum(-1, keepdims=True)).astype(np.float32)
        self.image = picture(self.height, self.width, 2)
        self.unary = utils.unary_from_softmax(np.ascontiguousarray(self.hwc.transpose(2, 0, 1)))
        self.expected = self.run_with(self.unary, self.image)

    def run_with(self, unary, image, **keywords):
        crf = dcrf.DenseCRF2D(self.width, self.height, self.labels)
        crf.setUnaryEnergy(unary)
        crf.addPairwiseGaussian(sxy=3, compat=3, kernel=dcrf.DIAG_KERNEL,
                                normalization=dcrf.NORMALIZE_SYMMETRIC)
        crf.addPairwiseBilateral(sxy=80, srgb=13, rgbim=image, compat=10, kernel=dcrf.DIAG_KERNEL,
                                 normalization=dcrf.NORMALIZE_SYMMETRIC)
        return crf.inference(5)

    def same(self, unary, image=None):
        q = self.run_with(unary, self.image if image is None else image)
        self.assertTrue((q == self.expected).all())

    def test_result(self):
        q = np.array(self.expected)
        self.assertEqual((q.dtype, q.shape), (np.float32, (self.labels, self.height * self.width)))
        self.assertEqual(np.argmax(q, axis=0).reshape((self.height, self.width)).shape,
                         (self.height, self.width))
        np.testing.assert_allclose(q.sum(0), 1, atol=1e-5)

    def test_transposed_softmax(self):
        self.same(utils.unary_from_softmax(self.hwc.transpose(2, 0, 1)))
        self.same(-np.log(self.hwc.transpose(2, 0, 1)).reshape(self.labels, -1))
        self.same(-np.log(self.hwc).transpose(2, 0, 1))

    def test_memory_orders(self):
        self.same(np.asfortranarray(self.unary))
        self.same(self.unary, np.asfortranarray(self.image))
        self.same(self.unary, self.image[::-1][::-1])
        frozen = self.unary.copy()
        frozen.flags.writeable = False
        self.same(frozen)
        padded = np.zeros((self.height, self.width, 5), np.uint8)
        padded[..., 1:4] = self.image
        self.same(self.unary, padded[..., 1:4])

    def test_types(self):
        self.same(self.unary.astype(np.float64))
        for dtype in (np.int16, np.int32, np.int64, np.uint16, np.float32, np.float64, ">i4", ">f4"):
            self.same(self.unary, self.image.astype(dtype))

    def test_inputs_are_copied(self):
        unary, image = self.unary.copy(), self.image.copy()
        crf = dcrf.DenseCRF2D(self.width, self.height, self.labels)
        crf.setUnaryEnergy(unary)
        crf.addPairwiseGaussian(3, 3)
        crf.addPairwiseBilateral(80, 13, image, 10)
        unary[...] = 0
        image[...] = 0
        self.assertTrue((crf.inference(5) == self.expected).all())
        self.assertTrue((crf.inference(5) == self.expected).all())

    def test_certain_labels(self):
        """-log(0)"""
        unary = self.unary.copy()
        unary[1:, :5] = np.inf
        q = self.run_with(unary, self.image)
        self.assertTrue((q[0, :5] == 1).all() and np.isfinite(q).all())

    def test_swapped_sizes(self):
        crf = dcrf.DenseCRF2D(self.height, self.width, self.labels)
        with self.assertRaisesRegex(ValueError, "swapped"):
            crf.addPairwiseBilateral(80, 13, self.image, 10)
        with self.assertRaisesRegex(ValueError, "swapped"):
            crf.setUnaryEnergy(self.hwc.transpose(2, 0, 1))
        with self.assertRaisesRegex(ValueError, "transpose"):
            crf.setUnaryEnergy(self.unary.T)
        with self.assertRaisesRegex(ValueError, "channels come last"):
            dcrf.DenseCRF2D(self.width, self.height, 2).addPairwiseBilateral(
                80, 13, self.image.transpose(2, 0, 1), 10)

    def test_features(self):
        gaussian = utils.create_pairwise_gaussian((3, 4), (self.height, self.width))
        bilateral = utils.create_pairwise_bilateral((80, 60), (13, 14, 15), self.image, chdim=2)
        y, x = np.mgrid[: self.height, : self.width]
        np.testing.assert_allclose(gaussian, [y.ravel() / 3, x.ravel() / 4], rtol=1e-6)
        np.testing.assert_allclose(bilateral[1], x.ravel() / 60, rtol=1e-6)
        np.testing.assert_allclose(bilateral[4], self.image[..., 2].ravel() / 15, rtol=1e-6)
        crf = dcrf.DenseCRF(self.height * self.width, self.labels)
        crf.setUnaryEnergy(self.unary)
        crf.addPairwiseEnergy(gaussian, compat=3, kernel=dcrf.DIAG_KERNEL,
                              normalization=dcrf.NORMALIZE_SYMMETRIC)
        crf.addPairwiseEnergy(bilateral, 10)
        terms = [NaiveTerm(gaussian, 3, 3), NaiveTerm(bilateral, 10, 3)]
        np.testing.assert_allclose(crf.inference(5), naive(self.unary, terms, 5), atol=1e-4)

    def test_labels_to_unary(self):
        labels = np.array([[0, 1], [2, 1]])
        energies = utils.unary_from_labels(labels, 2, gt_prob=0.7, zero_unsure=True)
        self.assertTrue(np.allclose(energies[:, 0], np.log(2)))
        self.assertTrue(np.allclose(energies[:, 1], [-np.log(0.7), -np.log(0.3)]))
        np.testing.assert_array_equal(utils.compute_unary(labels, 2, 0.7), energies)
        sure = utils.unary_from_labels(labels, 3, gt_prob=0.7, zero_unsure=False)
        self.assertTrue(np.allclose(sure[:, 0], [-np.log(0.7), -np.log(0.15), -np.log(0.15)]))
        with self.assertRaisesRegex(ValueError, "between 0 and 1"):
            utils.unary_from_labels(labels, 2, gt_prob=0.7, zero_unsure=False)

    def test_progress(self):
        crf = dcrf.DenseCRF2D(self.width, self.height, self.labels)
        crf.setUnaryEnergy(self.unary)
        crf.addPairwiseGaussian(3, 3)
        seen = []
        crf.inference(7, progress=lambda moment: seen.append(moment["iteration"]))
        self.assertEqual(seen, list(range(1, 8)))
        stopped = crf.inference(7, progress=lambda moment: "stop" if moment["iteration"] == 3 else True)
        self.assertTrue((stopped == crf.inference(3)).all())

        def fail(moment):
            raise KeyError("from the callback")

        with self.assertRaises(KeyError):
            crf.inference(7, progress=fail)


if __name__ == "__main__":
    unittest.main()
