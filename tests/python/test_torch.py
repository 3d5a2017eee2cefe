"""dcrf.torch against autograd through dense matrices in double, which shares no code with it. Without
torch the test exits with 77, which counts as skipped."""

import sys
import unittest

try:
    import torch
except ImportError:
    print("skipped: there is no torch (on Debian: apt-get install python3-torch)")
    sys.exit(77)

from dcrf.torch import CRFLoss, MeanField

HEIGHT, WIDTH, LABELS, CHANNELS = 5, 6, 3, 2
# Single precision in the library, double here: 1e-5 of values of the order of 1.
TOLERANCE = {"rtol": 2e-4, "atol": 2e-5}


def dense_kernels(layer, image, mask):
    """The matrices of the layer's kernels for one picture (channels, H, W), without their diagonals; with
    gradients to log_sigmas."""
    y, x = torch.meshgrid(torch.arange(HEIGHT), torch.arange(WIDTH), indexing="ij")
    position = torch.stack([x.ravel(), y.ravel()]).double()
    sigmas = torch.exp(layer.log_sigmas.double())
    features = [position / sigmas[0], torch.cat([position / sigmas[1], image.reshape(CHANNELS, -1) / sigmas[2]])]
    result = []
    for feature in features:
        squared = (feature[:, :, None] - feature[:, None, :]).pow(2).sum(0)
        kernel = torch.exp(-squared / 2)
        scale = kernel.sum(1).rsqrt()
        kernel = scale[:, None] * kernel * scale[None]
        kernel = kernel * (1 - torch.eye(len(kernel)))
        result.append(kernel * mask.reshape(-1)[None, :])
    return result


def dense_field(layer, kernels, q):
    """sum_m w_m (K_m q) mu, for rows q"""
    weights = torch.exp(layer.log_weights.double())
    mu = 1 - torch.eye(LABELS).double()
    if layer.compatibility is not None:
        mu = (layer.compatibility + layer.compatibility.T).double() / 2
    return sum(weight * kernel @ q @ mu for weight, kernel in zip(weights, kernels))


def dense_mean_field(layer, logits, image, mask):
    results = []
    for one_logits, one_image, one_mask in zip(logits, image, mask):
        kernels = dense_kernels(layer, one_image, one_mask)
        phi = -one_logits.reshape(LABELS, -1).T
        q = torch.softmax(-phi, 1)
        for _ in range(layer.iterations):
            q = torch.softmax(-phi - 2 * dense_field(layer, kernels, q), 1)
        q = q * one_mask.reshape(-1)[:, None]
        results.append(q.T.reshape(LABELS, HEIGHT, WIDTH))
    return torch.stack(results)


def dense_loss(layer, y, image, mask):
    energies = []
    for one_y, one_image, one_mask in zip(y, image, mask):
        rows = (one_y * one_mask).reshape(LABELS, -1).T
        kernels = dense_kernels(layer, one_image, one_mask)
        energies.append((rows * dense_field(layer, kernels, rows)).sum() / one_mask.sum())
    return torch.stack(energies).mean()


def single(layer):
    """The layer in single precision, which is the library's."""
    return lambda values, image, mask: layer(values.float(), image.float(), mask).double()


class Gradients(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.image = 255 * torch.rand(2, CHANNELS, HEIGHT, WIDTH).double()
        self.logits = torch.randn(2, LABELS, HEIGHT, WIDTH).double()
        self.target = torch.randn(2, LABELS, HEIGHT, WIDTH).double()
        self.mask = (torch.rand(2, HEIGHT, WIDTH) > 0.2).double()
        self.everything = ("weights", "compatibility", "sigmas")

    def compare(self, layer, values, ours, dense, mask):
        parameters = [p for p in layer.parameters() if p.requires_grad]
        results = []
        for function in (ours, dense):
            given = values.clone().requires_grad_(True)
            layer.zero_grad()
            out = function(given, self.image, mask)
            (out * self.target).sum().backward() if out.ndim else out.backward()
            results.append((out.detach(), given.grad, [p.grad.clone() for p in parameters]))
        (out, gradient, of_parameters), (expected, expected_gradient, expected_parameters) = results
        torch.testing.assert_close(out, expected, **TOLERANCE)
        torch.testing.assert_close(gradient, expected_gradient, **TOLERANCE)
        for one, other in zip(of_parameters, expected_parameters):
            self.assertGreater(float(other.abs().max()), 1e-3)
            torch.testing.assert_close(one, other, **TOLERANCE)

    def test_mean_field(self):
        for learn in (("weights", "sigmas"), self.everything):
            for mask in (torch.ones_like(self.mask), self.mask):
                layer = MeanField(LABELS, spatial=(1.5, 0.5), bilateral=(3, 90, 1), iterations=3, learn=learn,
                                  operator="exact", constrained=False)
                with torch.no_grad():
                    if layer.compatibility is not None:
                        layer.compatibility += 0.3 * torch.randn(LABELS, LABELS)
                self.compare(layer, self.logits, single(layer), lambda *a: dense_mean_field(layer, *a), mask)

    def test_loss(self):
        y = torch.softmax(self.logits, 1)
        for mask in (torch.ones_like(self.mask), self.mask):
            loss = CRFLoss(LABELS, spatial=(1.5, 0.5), bilateral=(3, 90, 1), learn=self.everything,
                           operator="exact", constrained=False)
            self.compare(loss, y, single(loss), lambda *a: dense_loss(loss, *a), mask)

    def test_only_what_is_learned_has_a_gradient(self):
        layer = MeanField(LABELS, spatial=(1, 1), bilateral=None, learn=("weights",))
        layer(self.logits, self.image).sum().backward()
        self.assertIsNone(layer.log_sigmas.grad)
        self.assertIsNone(layer.compatibility)
        self.assertEqual(layer.log_weights.grad.shape, (1,))

    def test_sigmas_of_many_updates(self):
        """On a grid they are computed from every third update; 0.8 % was measured."""
        for iterations in (2, 3, 5, 10, 20):
            torch.manual_seed(1)
            logits, image = torch.randn(1, 4, 20, 30), torch.zeros(1, 3, 20, 30)
            weigh, found = torch.randn(logits.shape), []
            for operator in ("exact", "grid"):
                layer = MeanField(4, spatial=(2, 2), bilateral=None, learn=("sigmas",), iterations=iterations, operator=operator)
                (layer(logits, image) * weigh).sum().backward()
                found.append(float(layer.log_sigmas.grad))
            self.assertLess(abs(found[1] / found[0] - 1), 0.02, (iterations, found))

    def test_reductions(self):
        y = torch.softmax(self.logits, 1)
        one = CRFLoss(LABELS, reduction="none")(y, self.image)
        torch.testing.assert_close(CRFLoss(LABELS)(y, self.image), one.mean())
        torch.testing.assert_close(CRFLoss(LABELS, reduction="sum")(y, self.image), one.sum())


class Manners(unittest.TestCase):
    def test_single_precision_and_size(self):
        """A picture whose dense matrix would take 32 GB; float32 in, float32 out."""
        side = 300
        image = 255 * torch.rand(1, 3, side, side)
        logits = torch.randn(1, 2, side, side, requires_grad=True)
        layer = MeanField(2, iterations=2)
        q = layer(logits, image)
        self.assertEqual(q.dtype, torch.float32)
        torch.testing.assert_close(q.sum(1), torch.ones(1, side, side))
        q[:, 0].mean().backward()
        self.assertTrue(torch.isfinite(logits.grad).all() and float(logits.grad.abs().max()) > 0)

    def test_keys_keep_lattices(self):
        image = 255 * torch.rand(2, 3, 12, 14)
        logits = torch.randn(2, 2, 12, 14)
        layer = MeanField(2, iterations=2, learn=("weights",))
        plain = layer(logits, image)
        first = layer(logits, image, keys=["a", "b"])
        again = layer(logits, image, keys=["a", "b"])  # while the first still wants derivatives
        self.assertTrue(torch.equal(plain, first) and torch.equal(plain, again))
        first.square().sum().backward()
        gradient = layer.log_weights.grad.clone()
        with torch.no_grad():
            layer.log_weights += 0.5
        changed = layer(logits, image, keys=["a", "b"])
        self.assertFalse(torch.equal(plain, changed))
        self.assertTrue(torch.equal(changed, layer(logits, image)))
        layer.zero_grad()
        again.square().sum().backward()
        torch.testing.assert_close(layer.log_weights.grad, gradient)
        layer.forget()

    def test_volumes_and_state(self):
        image = torch.rand(1, 1, 4, 5, 6) * 100
        logits = torch.randn(1, 2, 4, 5, 6)
        layer = MeanField(2, spatial=(1, 1), bilateral=(3, 20, 1), learn=("weights", "sigmas"))
        self.assertEqual(layer(logits, image).shape, (1, 2, 4, 5, 6))
        other = MeanField(2, learn=("weights", "sigmas"))
        other.load_state_dict(layer.state_dict())
        torch.testing.assert_close(other.sigmas, layer.sigmas)
        self.assertTrue(torch.equal(other(logits, image), layer(logits, image)))

    def test_mistakes(self):
        layer = MeanField(3)
        image, logits = torch.rand(1, 3, 6, 8), torch.rand(1, 3, 6, 8, requires_grad=True)
        for call in (
            lambda: layer(logits[:, :2], image),
            lambda: layer(logits, image[..., :7]),
            lambda: layer(logits, image, torch.ones(6, 8)),
            lambda: MeanField(3, learn=("everything",)),
            lambda: MeanField(3, spatial=None, bilateral=None),
            lambda: MeanField(3, spatial=(3, 0)),
            lambda: MeanField(3, compatibility=torch.ones(2, 2)),
            lambda: CRFLoss(3, reduction="product"),
        ):
            with self.assertRaises(ValueError):
                call()
        total = layer(logits, image).square().sum()
        total.backward()
        with self.assertRaisesRegex(RuntimeError, "second time"):
            total.backward()


if __name__ == "__main__":
    unittest.main()
