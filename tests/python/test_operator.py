"""dcrf.Operator against dense matrices."""

import unittest

import numpy as np

import dcrf


def dense(features):
    """exp(-|f_a - f_b|^2 / 2) for features (N, d)"""
    difference = features[:, None] - features[None]
    return np.exp(-(difference**2).sum(-1) / 2)


def normalized(matrix):
    scale = matrix.sum(1) ** -0.5
    return scale[:, None] * matrix * scale


class Values(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(0)
        self.shape = (6, 7)
        self.image = rng.integers(0, 255, self.shape + (3,)).astype(np.uint8)
        self.values = rng.normal(0, 1, self.shape + (5,))
        y, x = np.mgrid[:6, :7]
        self.position = np.stack([y.ravel(), x.ravel()], 1).astype(float)

    def matrix_of(self, operator, direction="symmetric"):
        n = int(np.prod(operator.grid))
        unit = np.eye(n).reshape(operator.grid + (n,))
        return operator.apply(unit, direction=direction).reshape(n, n)

    def test_exact(self):
        colours = self.image.reshape(-1, 3) / 60.0
        bilateral = np.concatenate([self.position / 3, colours], 1)
        cases = (
            (dcrf.Operator(shape=self.shape, sigma=(1, 2), operator="exact"), self.position / (1, 2)),
            (dcrf.Operator(self.image, sigma=3, channel_sigma=60, operator="exact"), bilateral),
            (dcrf.Operator(np.moveaxis(self.image, -1, 0), sigma=3, channel_sigma=60, operator="exact"), bilateral),
            (dcrf.Operator(features=bilateral.reshape(self.shape + (5,)), operator="exact"), bilateral),
        )
        for operator, features in cases:
            matrix = normalized(dense(features))
            expected = (matrix @ self.values.reshape(-1, 5)).reshape(self.values.shape)
            np.testing.assert_allclose(operator @ self.values, expected, atol=1e-5)
            np.testing.assert_allclose(operator @ self.values[..., 2], expected[..., 2], atol=1e-5)
            np.testing.assert_allclose(operator.row_sums().ravel(), matrix.sum(1), rtol=1e-5)
            np.testing.assert_allclose(operator.diagonal().ravel(), np.diag(matrix), rtol=1e-5)
            self.assertEqual(operator.kind, "exact")

    def test_lattice(self):
        operator = dcrf.Operator(self.image, sigma=3, channel_sigma=60, normalize="none")
        self.assertEqual(operator.kind, "lattice")
        self.assertGreater(operator.vertices, 0)
        self.assertGreater(operator.nbytes, 0)
        forward, adjoint = self.matrix_of(operator, "forward"), self.matrix_of(operator, "adjoint")
        np.testing.assert_allclose(adjoint, forward.T, atol=1e-6)
        symmetric = self.matrix_of(operator)
        np.testing.assert_allclose(symmetric, (forward + forward.T) / 2, atol=1e-5)
        np.testing.assert_allclose(operator.diagonal().ravel(), np.diag(symmetric), rtol=1e-4)
        np.testing.assert_allclose(operator.row_sums().ravel(), symmetric.sum(1), rtol=1e-4)
        self.assertIn("lattice", repr(operator))

    def test_out(self):
        operator = dcrf.Operator(shape=self.shape, sigma=2)
        out = np.empty(self.values.shape, np.float64)
        self.assertIs(operator.apply(self.values, out=out), out)
        np.testing.assert_array_equal(out, operator.apply(self.values))
        with self.assertRaises(ValueError):
            operator.apply(self.values, out=out[:-1])

    def test_mistakes(self):
        operator = dcrf.Operator(shape=self.shape, sigma=2)
        for error, call in (
            (TypeError, lambda: dcrf.Operator(sigma=2)),
            (TypeError, lambda: dcrf.Operator(self.image, sigma=2)),
            (TypeError, lambda: dcrf.Operator(shape=self.shape)),
            (TypeError, lambda: dcrf.Operator(self.image, sigma=2, channel_sigma=3, features=self.image)),
            (ValueError, lambda: dcrf.Operator(shape=self.shape, sigma=0)),
            (ValueError, lambda: dcrf.Operator(shape=self.shape, sigma=2, operator="none")),
            (ValueError, lambda: dcrf.Operator(np.zeros((4, 5, 3)), sigma=2, channel_sigma=1)),
            (ValueError, lambda: operator.apply(self.values[:-1])),
            (ValueError, lambda: operator.apply(np.full(self.shape, np.nan))),
            (ValueError, lambda: operator.apply(self.values, direction="back")),
            (NotImplementedError, lambda: dcrf.Operator(self.image, sigma=2, channel_sigma=3, operator="grid")),
        ):
            with self.assertRaises(error):
                call()


if __name__ == "__main__":
    unittest.main()
