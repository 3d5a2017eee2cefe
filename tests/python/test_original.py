"""What the original's own tests, examples and reported problems ask for, written anew from its
behaviour; what it accepts, what it refuses, and how."""

import unittest
import warnings

import numpy as np

from dcrf.pydensecrf import densecrf, eigen, utils


def two_squares():
    """Energies (2, 100) and a picture 10 x 10: a bright square, and an opinion about its middle."""
    belief = np.ones((2, 10, 10), np.float32)
    belief[0, 1:-1, 1:-1] = 20
    belief[1, 4:7, 4:7] = 400
    image = np.zeros((10, 10, 3), np.uint8)
    image[2:8, 2:8] = 255
    return -np.log(belief / belief.sum(0)).reshape(2, -1), image


class Inference(unittest.TestCase):
    def test_features_and_pictures_agree(self):
        energies, image = two_squares()
        plain, flat = densecrf.DenseCRF(100, 2), densecrf.DenseCRF2D(10, 10, 2)
        plain.setUnaryEnergy(energies)
        flat.setUnaryEnergy(energies)
        features = utils.create_pairwise_bilateral(sdims=(2, 2), schan=2, img=image, chdim=2)
        plain.addPairwiseEnergy(features, compat=3)
        flat.addPairwiseBilateral(sxy=2, srgb=2, rgbim=image, compat=3)
        one, other = (np.argmax(crf.inference(10), axis=0).reshape(10, 10) for crf in (plain, flat))
        self.assertTrue((one == other).all())
        self.assertEqual(len(np.unique(one)), 2)

    def test_arguments_that_are_swallowed(self):
        densecrf.DenseCRF2D(10, 10, 2, "more", and_more=1)
        densecrf.DenseCRF(100, 2, 7, and_more=1)

    def test_kinds_of_unaries(self):
        energies, image = two_squares()

        def run(set_unary):
            crf = densecrf.DenseCRF2D(10, 10, 2)
            set_unary(crf)
            crf.addPairwiseBilateral(2, 2, image, 3)
            return crf.inference(3)

        expected = run(lambda crf: crf.setUnaryEnergy(energies))
        self.assertTrue((run(lambda crf: crf.setUnary(densecrf.ConstUnary(energies))) == expected).all())
        one = np.eye(2, dtype=np.float32)
        for set_unary in (
            lambda crf: crf.setUnary(densecrf.LogisticUnary(one, energies)),
            lambda crf: crf.setUnaryEnergy(one, energies),
        ):
            self.assertTrue((run(set_unary) == expected).all())
        weights = np.array([[1, 2, 0], [0, -1, 3]], np.float32)
        features = np.random.default_rng(0).normal(0, 1, (3, 100)).astype(np.float32)
        learned = densecrf.LogisticUnary(weights, features)
        np.testing.assert_allclose(learned.energies, weights @ features, rtol=1e-6)
        with self.assertRaises(ValueError):
            densecrf.LogisticUnary(weights, features[:2])
        with self.assertRaises(ValueError):
            densecrf.ConstUnary(energies[0])

    def test_infinite_energies(self):
        """exp(-inf) is a probability of zero; NaN and -inf are mistakes."""
        energies, _ = two_squares()
        crf = densecrf.DenseCRF2D(10, 10, 2)
        for dtype in (np.float32, np.float64):
            certain = energies.astype(dtype)
            certain[1, :10] = np.inf
            crf.setUnaryEnergy(certain)
            self.assertTrue((crf.inference(0)[:, :10] == [[1], [0]]).all())
            for bad in (np.nan, -np.inf):
                certain[0, 3] = bad
                with self.assertRaises(ValueError):
                    crf.setUnaryEnergy(certain)

    def test_steps(self):
        energies, image = two_squares()
        crf = densecrf.DenseCRF2D(10, 10, 2)
        crf.setUnaryEnergy(energies)
        crf.addPairwiseGaussian((1, 2), 2)
        Q, tmp1, tmp2 = crf.startInference()
        before = crf.klDivergence(Q)
        for _ in range(4):
            crf.stepInference(Q, tmp1, tmp2)
        self.assertLess(crf.klDivergence(Q), before)
        self.assertTrue((np.array(Q) == crf.inference(4)).all())
        mine = eigen.matrixXf(np.ascontiguousarray(crf.inference(3)))
        crf.stepInference(mine, eigen.MatrixXf(), eigen.MatrixXf())
        np.testing.assert_allclose(mine, Q, atol=1e-6)


class Enumerations(unittest.TestCase):
    def test_values(self):
        self.assertEqual([int(kind) for kind in densecrf.KernelType], [0, 1, 2])
        self.assertEqual([int(kind) for kind in densecrf.NormalizationType], [0, 1, 2, 3])
        self.assertIs(densecrf.KernelType(1), densecrf.DIAG_KERNEL)
        self.assertIs(densecrf.NormalizationType(3), densecrf.NORMALIZE_SYMMETRIC)
        self.assertEqual(densecrf.KernelType.FULL_KERNEL, 2)
        with self.assertRaises(ValueError):
            densecrf.KernelType(7)

    def test_use(self):
        crf = densecrf.DenseCRF2D(10, 10, 2)
        for kernel in (densecrf.KernelType(1), densecrf.FULL_KERNEL, 0):
            crf.addPairwiseGaussian(3, 3, kernel=kernel, normalization=densecrf.NormalizationType(2))
        with self.assertRaises(ValueError):
            crf.addPairwiseGaussian(3, 3, kernel=3)
        with self.assertRaises(ValueError):
            crf.addPairwiseGaussian(3, 3, normalization=4)


class Eigen(unittest.TestCase):
    def test_copies(self):
        rng = np.random.default_rng(1)
        vector, matrix = rng.random(3).astype(np.float32), rng.random((3, 4)).astype(np.float32)
        one, two = eigen.vectorXf(vector), eigen.matrixXf(matrix)
        self.assertIsInstance(one, eigen.VectorXf)
        self.assertIsInstance(two, eigen.MatrixXf)
        vector_before, matrix_before = vector.copy(), matrix.copy()
        vector[:], matrix[:] = 0, 0
        self.assertTrue((np.array(one) == vector_before).all())
        self.assertTrue((np.array(two) == matrix_before).all())
        self.assertEqual(memoryview(two).shape, (3, 4))
        self.assertEqual((eigen.VectorXf().shape, eigen.MatrixXf().shape), ((0,), (0, 0)))

    def test_refusals(self):
        with self.assertRaises(ValueError):
            eigen.matrixXf(np.zeros((3, 3, 3), np.float32))
        with self.assertRaises(ValueError):
            eigen.vectorXf(np.zeros((3, 3), np.float32))
        with self.assertRaises(ValueError):
            eigen.matrixXf(np.zeros((3, 3), np.float64))
        for function in (eigen.matrixXf, eigen.vectorXf):
            with self.assertRaises(TypeError):
                function(None)
            with self.assertRaises(TypeError):
                function([[1.0]])


class Utilities(unittest.TestCase):
    def test_unary_of_labels(self):
        labels = np.array([[0, 1, 2, 3], [3, 2, 1, 0]])
        right, wrong, unknown = 0.8, 0.1, 1 / 3
        expected = np.full((3, 8), wrong)
        for place, label in enumerate(labels.ravel()):
            if label == 0:
                expected[:, place] = unknown
            else:
                expected[label - 1, place] = right
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            energies = utils.compute_unary(labels, 3, GT_PROB=right)
        np.testing.assert_allclose(energies, -np.log(expected), rtol=1e-6)

    def test_short_lists_of_sigmas(self):
        """Only the first rows are divided."""
        image = np.random.default_rng(2).integers(0, 255, (4, 5, 4)).astype(np.uint8)
        y, x = np.mgrid[:4, :5].astype(np.float32)
        features = utils.create_pairwise_bilateral((2,), (3, 5, 7), image, chdim=2)
        self.assertEqual(features.shape, (6, 20))
        np.testing.assert_array_equal(features[0], y.ravel() / np.float32(2))
        np.testing.assert_array_equal(features[1], x.ravel())
        np.testing.assert_array_equal(features[4], image[..., 2].ravel() / np.float32(7))
        np.testing.assert_array_equal(features[5], image[..., 3].ravel())
        np.testing.assert_array_equal(
            utils.create_pairwise_gaussian((2,), (4, 5)), [y.ravel() / np.float32(2), x.ravel()]
        )
        with self.assertRaises(IndexError):
            utils.create_pairwise_bilateral((2, 2), (1, 2, 3, 4, 5), image, chdim=2)

    def test_features_are_divided_in_single_precision(self):
        """Sigmas that are no floats, against one operation after the other."""
        image = np.random.default_rng(3).integers(0, 255, (30, 40, 3)).astype(np.uint8)
        sigma = 1.7
        features = utils.create_pairwise_bilateral((sigma, 0.3), sigma, image, chdim=2)
        y = np.repeat(np.arange(30, dtype=np.float32), 40)
        self.assertEqual(features.dtype, np.float32)
        np.testing.assert_array_equal(features[0], y / np.float32(sigma))
        red = image[..., 0].ravel().astype(np.float32)
        np.testing.assert_array_equal(features[2], red / np.float32(sigma))

    def test_private_functions(self):
        image = np.random.default_rng(4).integers(0, 255, (6, 7, 3)).astype(np.uint8)
        np.testing.assert_array_equal(
            utils._create_pairwise_gaussian_2d(3, 4, (6, 7)), utils.create_pairwise_gaussian((3, 4), (6, 7))
        )
        np.testing.assert_array_equal(
            utils._create_pairwise_bilateral_2d(3, 4, 5, 6, 7, image),
            utils.create_pairwise_bilateral((3, 4), (5, 6, 7), image, chdim=2),
        )


class Refusals(unittest.TestCase):
    """The types of exceptions that programs may catch."""

    def test_arrays(self):
        crf = densecrf.DenseCRF2D(10, 10, 2)
        image = np.zeros((10, 10, 3), np.uint8)
        with self.assertRaises(ValueError):
            crf.addPairwiseBilateral(3, 3, image, compat=np.array([1.0, 2.0]))
        with self.assertRaises(ValueError):
            crf.addPairwiseBilateral(3, 3, image, compat=np.zeros((2, 2, 2), np.float32))
        with self.assertRaises(ValueError):
            crf.addPairwiseBilateral(3, 3, image[:, :9], compat=3)
        with self.assertRaises(ValueError):
            crf.setUnaryEnergy(np.zeros((2, 99), np.float32))
        with self.assertRaises(ValueError):
            crf.addPairwiseEnergy(np.zeros((2, 99), np.float32), 3)
        for call in (
            lambda: crf.setUnaryEnergy(None),
            lambda: crf.addPairwiseEnergy(None, 3),
            lambda: crf.addPairwiseBilateral(3, 3, None, 3),
            lambda: densecrf.DenseCRF2D(10, 10),
            lambda: densecrf.DenseCRF("ten", 2),
        ):
            with self.assertRaises(TypeError):
                call()

    def test_a_wrong_shape_is_found_at_once(self):
        """A volume with the probabilities of a picture."""
        crf = densecrf.DenseCRF(6 * 5 * 7, 3)
        with self.assertRaises(ValueError):
            crf.setUnaryEnergy(utils.unary_from_softmax(np.full((3, 6, 5), 1 / 3, np.float32)))

    def test_assertions(self):
        labels, softmax = np.array([1, 2]), np.full((2, 3), 0.5)
        for kind in (AssertionError, ValueError):
            for probability in (0, 1, 1.5):
                with self.assertRaises(kind):
                    utils.unary_from_labels(labels, 2, probability)
            for scale in (0, 1.5):
                with self.assertRaises(kind):
                    utils.unary_from_softmax(softmax, scale=scale)
        with self.assertRaises(IndexError):
            utils.unary_from_labels(np.array([3]), 2, 0.7)

    def test_old_names_warn(self):
        with self.assertWarns(DeprecationWarning):
            utils.compute_unary(np.array([1, 2]), 2)
        with self.assertWarns(DeprecationWarning):
            utils.softmax_to_unary(np.full((2, 3), 0.5))


if __name__ == "__main__":
    unittest.main()
