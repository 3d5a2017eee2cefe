"""What a training program does with ``dcrf.torch``: masks, half precision, copies, checkpoints, exports, gradcheck, pictures on
other scales. Without torch the test exits with 77, which counts as skipped."""

import copy
import io
import pathlib
import pickle
import re
import sys
import unittest
import warnings

try:
    import torch
except ImportError:
    print("skipped: there is no torch (on Debian: apt-get install python3-torch)")
    sys.exit(77)

from torch.nn import functional as F

from dcrf import _torch_ops
from dcrf._torch_work import LossFunction, MeanFieldFunction
from dcrf.torch import CRFLoss, MeanField

LABELS, HEIGHT, WIDTH = 3, 6, 7
EVERYTHING = ("weights", "compatibility", "sigmas")
# Single precision in the library against double.
TOLERANCE = {"rtol": 5e-4, "atol": 2e-5}


def scene(batch=2, size=(HEIGHT, WIDTH), channels=3, dtype=torch.float32):
    torch.manual_seed(5)
    image = 255 * torch.rand(batch, channels, *size, dtype=dtype)
    logits = 2 * torch.randn(batch, LABELS, *size, dtype=dtype)
    mask = (torch.rand(batch, *size) > 0.2).to(dtype)
    return logits, image, mask


class Masks(unittest.TestCase):
    def test_recipe_of_the_documentation(self):
        """The lines of docs/howto/train.md, as they stand there."""
        page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "howto" / "train.md"
        lines = re.search(r"```python\n(.*?)```", page.read_text(), re.DOTALL)[1]
        torch.manual_seed(1)
        logits = torch.randn(2, 21, 8, 9, requires_grad=True)
        image = 255 * torch.rand(2, 3, 8, 9)
        mask = torch.ones(2, 8, 9)
        mask[:, :3] = 0
        truth = torch.randint(0, 21, (2, 8, 9))
        truth[mask == 0] = 255
        names = {"logits": logits, "image": image, "mask": mask, "truth": truth, "torch": torch, "F": F}
        exec(lines, names)
        names["loss"].backward()
        self.assertTrue(torch.isfinite(logits.grad).all())
        self.assertGreater(float(logits.grad.abs().max()), 0)
        for parameter in names["layer"].parameters():
            self.assertTrue(torch.isfinite(parameter.grad).all())

    def test_log_of_probabilities(self):
        """0/0 of the logarithm's own derivative at masked pixels does not come through."""
        logits, image, mask = scene()
        truth = torch.randint(0, LABELS, mask.shape)
        truth[mask == 0] = 255
        gradients = []
        for output in ("probabilities", "log_probabilities"):
            layer = MeanField(LABELS, bilateral=(5, 60, 2), learn=EVERYTHING, output=output)
            given = logits.clone().requires_grad_(True)
            found = layer(given, image, mask)
            found = torch.log(found) if output == "probabilities" else found
            F.nll_loss(found, truth, ignore_index=255).backward()
            gradients.append([given.grad] + [parameter.grad for parameter in layer.parameters()])
        for one, other in zip(*gradients):
            self.assertTrue(torch.isfinite(one).all())
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)

    def test_logarithms_do_not_go_through_q(self):
        logits, image, mask = scene()
        logits = 100 * logits  # q underflows
        layer = MeanField(LABELS, iterations=1, output="log_probabilities")
        given = logits.clone().requires_grad_(True)
        log_q = layer(given, image, mask)
        self.assertTrue(torch.isfinite(log_q).all())
        self.assertLess(float(log_q.min()), -200)
        self.assertEqual(float(log_q[(mask == 0)[:, None].expand_as(log_q)].abs().max()), 0)
        total = torch.logsumexp(log_q, 1)[mask != 0]
        torch.testing.assert_close(total, torch.zeros_like(total), atol=1e-4, rtol=0)
        F.nll_loss(log_q, torch.zeros(mask.shape, dtype=torch.long)).backward()
        self.assertTrue(torch.isfinite(given.grad).all())
        self.assertGreater(float(given.grad.abs().max()), 0)


class Precision(unittest.TestCase):
    def test_half(self):
        logits, image, mask = scene()
        layer = MeanField(LABELS, output="log_probabilities")
        expected = layer(logits, image, mask)
        for dtype in (torch.float16, torch.bfloat16):
            given = logits.to(dtype).requires_grad_(True)
            found = layer(given, image.to(dtype), mask)
            self.assertEqual(found.dtype, dtype)
            self.assertTrue(torch.isfinite(found).all())
            found.float().sum().backward()
            self.assertEqual(given.grad.dtype, dtype)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                self.assertEqual(layer(given, image, mask).dtype, torch.float32)
                self.assertEqual(CRFLoss(LABELS)(torch.softmax(given.float(), 1).to(dtype), image).dtype, torch.float32)
        torch.testing.assert_close(layer(logits.double(), image, mask).float(), expected, rtol=1e-5, atol=1e-5)

    def test_types_of_parameters(self):
        logits, image, mask = scene()
        layer = MeanField(LABELS, learn=EVERYTHING)
        self.assertEqual({parameter.dtype for parameter in layer.parameters()}, {torch.float32})
        expected = layer(logits, image)
        for change, dtype in ((lambda: layer.double(), torch.float64), (lambda: layer.half(), torch.float16),
                              (lambda: layer.to(torch.float32), torch.float32)):
            change()
            found = layer(logits, image)
            self.assertEqual(found.dtype, torch.float32)
            torch.testing.assert_close(found, expected, rtol=5e-2, atol=2e-2)  # sigmas and weights in half precision
            layer.zero_grad(set_to_none=True)
            found[:, 0].sum().backward()
            self.assertEqual({parameter.grad.dtype for parameter in layer.parameters()}, {dtype})

    def test_gradcheck(self):
        logits, image, mask = scene(1, (3, 4), 2, torch.float64)
        options = {"spatial": (1.5, 0.5), "bilateral": (3, 90, 1), "operator": "exact"}
        for output in ("probabilities", "log_probabilities"):
            for per_label in (False, True):
                layer = MeanField(LABELS, iterations=2, learn=EVERYTHING, output=output, per_label=per_label, **options).double()
                given = [tensor.clone().requires_grad_(True) for tensor in (logits, image)] + list(layer.parameters())
                self.assertTrue(torch.autograd.gradcheck(lambda *a: layer(a[0], a[1], mask), given))
        loss = CRFLoss(LABELS, learn=EVERYTHING, **options).double()
        given = [torch.softmax(logits, 1).requires_grad_(True), image.clone().requires_grad_(True)] + list(loss.parameters())
        self.assertTrue(torch.autograd.gradcheck(lambda *a: loss(a[0], a[1], mask), given))


class Library(unittest.TestCase):
    """The library with the exact operator against plain tensors in double, for all that peers have."""

    def compare(self, make, size=(HEIGHT, WIDTH), is_loss=False):
        logits, image, mask = scene(2, size)
        values = torch.softmax(logits, 1) if is_loss else logits
        target = torch.randn(2, LABELS, *size)
        results = []
        for dtype in (torch.float32, torch.float64):
            torch.manual_seed(0)
            layer = make()
            with torch.no_grad():
                if layer.compatibility is not None:
                    layer.compatibility += 0.3 * torch.rand(LABELS, LABELS)
                if layer.per_label:
                    layer.log_weights += torch.randn_like(layer.log_weights)
            layer.to(dtype)
            self.assertEqual(layer._is_dense(values.to(dtype)), dtype == torch.float64)
            given, picture = (tensor.detach().clone().to(dtype).requires_grad_(True) for tensor in (values, image))
            out = layer(given, picture, mask)
            (out if is_loss else (out * target.to(dtype)).sum()).backward()
            results.append([out, given.grad, picture.grad] + [p.grad for p in layer.parameters() if p.requires_grad])
        for one, other in zip(*results):
            self.assertGreater(float(other.abs().max()), 1e-6)
            scale = float(other.abs().max())
            torch.testing.assert_close(one.double() / scale, other / scale, **TOLERANCE)

    def test_everything(self):
        options = {"spatial": ((1.5, 2), 0.5), "bilateral": ((3, 2.5), (90, 70, 110), 1), "learn": EVERYTHING, "operator": "exact"}
        for per_label in (False, True):
            for output in ("probabilities", "log_probabilities"):
                self.compare(lambda: MeanField(LABELS, per_label=per_label, iterations=3, output=output, **options))
            self.compare(lambda: CRFLoss(LABELS, per_label=per_label, **options), is_loss=True)

    def test_volumes_in_batches(self):
        self.compare(lambda: MeanField(LABELS, spatial=((1, 2, 1.5), 0.5), bilateral=(4, 90, 1), learn=EVERYTHING,
                                       spacing=(2.5, 1, 1), operator="exact"), (3, 4, 5))

    def test_smaller_loss(self):
        self.compare(lambda: CRFLoss(LABELS, bilateral=(4, 90, 1), learn=EVERYTHING, scale_factor=0.5, operator="exact"),
                     (8, 10), is_loss=True)
        y, image = torch.softmax(scene(1, (60, 80))[0], 1), torch.zeros(1, 3, 60, 80)
        image[..., 40:] = 200
        y = F.avg_pool2d(y, 9, 1, 4)
        whole, half = CRFLoss(LABELS)(y, image), CRFLoss(LABELS, scale_factor=0.5)(y, image)
        self.assertLess(abs(float(half / whole) - 1), 0.05)  # of the same mean energy a pixel


class State(unittest.TestCase):
    def test_second_way_back(self):
        logits, image, _ = scene()
        layer = MeanField(LABELS, learn=EVERYTHING)
        q = layer(logits.requires_grad_(True), image)
        q[:, 0].sum().backward(retain_graph=True)
        first = logits.grad.clone()
        q[:, 0].sum().backward(retain_graph=True)
        torch.testing.assert_close(logits.grad, 2 * first)
        q[:, 0].sum().backward()
        with self.assertRaisesRegex(RuntimeError, "second time"):
            q[:, 0].sum().backward()

    def test_memory_is_given_back(self):
        logits, image, _ = scene()
        layer = MeanField(LABELS)
        q = layer(logits.requires_grad_(True), image)
        runs = q.grad_fn.rest[2]
        self.assertEqual(len(runs), 2)
        q.sum().backward()
        self.assertEqual(len(runs), 0)

    def test_keys_stand_for_pictures(self):
        logits, image, _ = scene()
        layer = MeanField(LABELS, bilateral=(5, 30, 3))
        layer(logits, image, keys=["a", "b"])
        other = image.flip(-1)
        self.assertTrue(torch.equal(layer(logits, other, keys=["a", "b"]), layer(logits, other)))
        kept = layer._keeper._kept["a"][0]
        layer(logits, other, keys=["a", "b"])
        self.assertIs(layer._keeper._kept["a"][0], kept)
        with torch.no_grad():
            layer.log_sigmas += 0.5
        self.assertTrue(torch.equal(layer(logits, other, keys=["a", "b"]), layer(logits, other)))
        for k in range(0, 200, 2):
            layer(logits, image, keys=[k, k + 1])
        self.assertEqual(len(layer._keeper), 64)
        with self.assertRaisesRegex(ValueError, "keys has 1 entries"):
            layer(logits, image, keys=["a"])

    def test_copies(self):
        logits, image, _ = scene()
        layer = MeanField(LABELS, learn=EVERYTHING)
        expected = layer(logits, image, keys=["a", "b"])
        saved = io.BytesIO()
        torch.save(layer, saved)
        saved.seek(0)
        load = torch.load(saved, **({"weights_only": False} if int(torch.__version__.split(".")[0]) >= 2 else {}))
        for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), load):
            self.assertTrue(torch.equal(other(logits, image, keys=["a", "b"]), expected))
        fresh = MeanField(LABELS, spatial=(1, 1), bilateral=(9, 9, 9), learn=EVERYTHING)
        fresh.load_state_dict(layer.state_dict())
        self.assertTrue(torch.equal(fresh(logits, image), expected))

    def test_export_is_refused(self):
        logits, image, _ = scene()
        layer = MeanField(LABELS)
        with self.assertRaisesRegex(RuntimeError, "cannot be exported"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.jit.trace(layer, (logits, image))
        # Since 2.5 exports go by way of torch.export, where the layer is an operator that ONNX does not have.
        try:
            with self.assertRaisesRegex(RuntimeError, "cannot be exported|dcrf.mean_field"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(layer, (logits, image), io.BytesIO())
        except ImportError as error:
            self.skipTest(str(error))

    def test_repr(self):
        text = repr(MeanField(21, spatial=((3, 2), 1.5), learn="weights"))
        self.assertEqual(text, "MeanField(21, spatial=((3, 2), 1.5), bilateral=(80, 13, 5), learn=('weights',), operator='fast', "
                               "iterations=5, output='probabilities')")
        self.assertIn("scale_factor=0.5", repr(CRFLoss(2, scale_factor=0.5)))


class Scales(unittest.TestCase):
    def test_scales_of_pictures(self):
        logits, image, _ = scene()
        for module in (MeanField(LABELS), CRFLoss(LABELS)):
            values = torch.softmax(logits, 1) if isinstance(module, CRFLoss) else logits
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                expected = module(values, image)
            with self.assertWarnsRegex(UserWarning, "between 0 and 1"):
                found = module(values, image / 255)
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
            with self.assertRaisesRegex(ValueError, "normalized"):
                module(values, (image / 255 - 0.45) / 0.225)
            told = type(module)(LABELS, image_scale=255)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                torch.testing.assert_close(told(values, image / 255), expected, rtol=1e-3, atol=1e-4)
                type(module)(LABELS, image_scale=1)(values, (image / 255 - 0.45) / 0.225)

    def test_gradient_of_a_scaled_picture(self):
        logits, image, _ = scene()
        layer = MeanField(LABELS, bilateral=(5, 60, 2), image_scale=255, operator="exact")
        small = (image / 255).requires_grad_(True)
        layer(logits, small)[:, 0].square().sum().backward()
        large = image.clone().requires_grad_(True)
        MeanField(LABELS, bilateral=(5, 60, 2), operator="exact")(logits, large)[:, 0].square().sum().backward()
        torch.testing.assert_close(small.grad, 255 * large.grad, rtol=1e-3, atol=1e-5)


class Compatibility(unittest.TestCase):
    def test_constraints(self):
        layer = MeanField(LABELS, learn=EVERYTHING)
        self.assertTrue(torch.equal(layer.used_compatibility, 1 - torch.eye(LABELS)))
        self.assertEqual(float(layer.penalty()), 0)
        with torch.no_grad():
            layer.compatibility.copy_(torch.tensor([[5.0, 1, 2], [3, 7, 4], [2, 3, 9]]))
        used = layer.used_compatibility
        self.assertTrue(torch.equal(used, used.T))
        self.assertEqual(float(used.diagonal().abs().max()), 0)
        self.assertAlmostEqual(float(used.sum()) / (LABELS * (LABELS - 1)), 1, places=6)
        expected = ((used - 1 + torch.eye(LABELS)) ** 2).mean()
        torch.testing.assert_close(layer.penalty(), expected)
        layer.penalty().backward()
        self.assertGreater(float(layer.compatibility.grad.abs().max()), 0)
        with torch.no_grad():
            before = used.clone()
            layer.compatibility.mul_(3)  # its scale is the weights'
        torch.testing.assert_close(layer.used_compatibility, before)
        free = MeanField(LABELS, learn=EVERYTHING, constrained=False, compatibility=torch.eye(LABELS) + 2)
        self.assertTrue(torch.equal(free.used_compatibility, torch.eye(LABELS) + 2))


class Operators(unittest.TestCase):
    """What compiled graphs call, against what autograd calls."""

    def setUp(self):
        logits, image, self.mask = scene()
        self.layer = MeanField(LABELS, bilateral=(5, 60, 2), learn=EVERYTHING, per_label=True)
        self.loss = CRFLoss(LABELS, bilateral=(5, 60, 2), learn=EVERYTHING)
        self.given = [logits.requires_grad_(True), image.requires_grad_(True)]

    def test_functions(self):
        """The operators' own functions, whatever the version of torch."""
        for module, forward, backward, extra in (
            (self.layer, _torch_ops._mean_field, _torch_ops._mean_field_backward, (5, False)),
            (self.loss, _torch_ops._crf_loss, _torch_ops._crf_loss_backward, ()),
        ):
            used = [None if one is None else one.detach().requires_grad_(True) for one in module._used(2, 3)]
            found = forward(*self.given, self.mask, *used, *extra, False, module._task_text)
            apply = MeanFieldFunction if module is self.layer else LossFunction
            own = (module._task,) + ((5, False, module._keeper, None) if module is self.layer else ())
            expected = apply.apply(*own, *self.given, self.mask, *used)
            self.assertTrue(torch.equal(found, expected))
            gradient = torch.rand_like(expected)
            wanted = torch.autograd.grad(expected, self.given + used, gradient)
            found = backward(gradient, *self.given, self.mask, *used, *extra, module._task_text, [True] * 5)
            for one, other in zip(found, wanted):
                self.assertTrue(torch.equal(one, other))
            fake = getattr(_torch_ops, "_fake" + backward.__name__)
            arguments = (gradient, *self.given, self.mask, *used, *extra, module._task_text)
            for needs in ([True] * 5, [True, False, True, False, False]):
                shapes = [one.shape for one in backward(*arguments, needs)]
                self.assertEqual([one.shape for one in fake(*arguments, needs)], shapes)

    @unittest.skipUnless(_torch_ops.exist, "torch is older than 2.4")
    def test_compiled(self):
        for module, values in ((self.layer, self.given[0]), (self.loss, torch.softmax(self.given[0], 1).detach().requires_grad_(True))):
            inputs = [values, self.given[1]] + list(module.parameters())
            results = []
            for call in (module, torch.compile(module, fullgraph=True, backend="aot_eager")):
                out = call(values, self.given[1], self.mask)
                results.append([out] + list(torch.autograd.grad(out.square().sum(), inputs)))
            for one, other in zip(*results):
                torch.testing.assert_close(one, other)
        operator, text = torch.ops.dcrf.mean_field.default, self.layer._task_text
        used = [one.detach().requires_grad_(True) for one in self.layer._used(2, 3)]
        torch.library.opcheck(operator, (*self.given, self.mask, *used, 5, False, True, text))


class Messages(unittest.TestCase):
    def test_messages_name_the_argument(self):
        for options, text in (
            ({"spatial": 3}, r"spatial is 3; it must be \(sigma, weight\) or None"),
            ({"bilateral": (3, 1)}, r"bilateral is \(3, 1\); it must be \(sigma, channel sigma, weight\)"),
            ({"spatial": (0, 1)}, r"spatial is \(0, 1\); sigmas and weights must be positive"),
            ({"iterations": -2}, "iterations is -2; it must be a whole number"),
            ({"learn": ("weight",)}, "learn has 'weight'; it takes 'weights', 'compatibility', 'sigmas'"),
            ({"learn": "everything"}, "learn has 'everything'"),
            ({"output": "log"}, "output is 'log'"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                MeanField(LABELS, **options)
        with self.assertRaisesRegex(ValueError, "labels is 1"):
            MeanField(1)
        with self.assertRaisesRegex(ValueError, "3 sigmas for 2 axes"):
            logits, image, _ = scene()
            MeanField(LABELS, spatial=((1, 1, 1), 1))(logits, image)
        with self.assertRaisesRegex(ValueError, "scale_factor is 2"):
            CRFLoss(LABELS, scale_factor=2)


if __name__ == "__main__":
    unittest.main()
