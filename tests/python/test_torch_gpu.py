"""What dcrf.torch does on a GPU, against what it does on the CPU, which shares no code with it but the kernels' parameters.

Without a GPU the same PyTorch code runs on the CPU with the CPU's lattices in place of the GPU's, so that formulas are tested
everywhere; with one (and libdcrf-cuda) it runs there. Without torch the test exits with 77, which counts as skipped."""

import copy
import sys
import unittest

try:
    import torch
except ImportError:
    print("skipped: there is no torch (on Debian: apt-get install python3-torch)")
    sys.exit(77)

import numpy as np

from dcrf import _core, _torch_gpu, _torch_kernels, devices
from dcrf._choices import OPERATORS
from dcrf.torch import CRFLoss, MeanField

HAS_GPU = torch.cuda.is_available() and bool(devices())
DEVICE = torch.device("cuda:0" if HAS_GPU else "cpu")
# Both are in single precision, and their sums have other orders.
WORST = 1e-4


class CpuLattices:
    """In place of ``_core.Lattices``: an operator of the CPU for each picture; calibrated where it is not normalized, which all that is
    done with it takes out again."""

    def __init__(self, features, pictures, channels, is_symmetric):
        rows = features.numpy().reshape(pictures, -1, features.shape[1])
        self._parts = [_core.Operator((len(one),), (1.0,), None, one.copy(), None, is_symmetric, OPERATORS["lattice"], 1) for one in rows]
        self._count = rows.shape[1]

    def _array(self, address, row):
        from ctypes import POINTER, c_float, cast

        shape = (len(self._parts), self._count, row)
        return np.ctypeslib.as_array(cast(address, POINTER(c_float)), shape=shape)

    filters = 0

    def apply(self, given, found, channels):
        CpuLattices.filters += 1
        row = _core.padded(channels)
        for part, one, out in zip(self._parts, self._array(given, row), self._array(found, row)):
            part.apply(0, one, out, channels)

    def diagonal(self, found):
        for part, out in zip(self._parts, self._array(found, 1)):
            part.diagonal(out[:, 0])


def on_gpu(layer):
    """The layer as it is on a GPU."""
    layer = copy.deepcopy(layer).to(DEVICE)
    if not HAS_GPU:
        _torch_gpu.takes = lambda task, values: True
        _torch_kernels.make_lattices = CpuLattices
    return layer


def on_cpu():
    _torch_gpu.takes = TAKES


TAKES = _torch_gpu.takes


def scene(labels, batch=2, size=(23, 31), channels=3, seed=1):
    torch.manual_seed(seed)
    coarse = torch.rand((batch, channels) + tuple(max(2, length // 6) for length in size))
    mode = {1: "linear", 2: "bilinear", 3: "trilinear"}[len(size)]
    image = 255 * torch.nn.functional.interpolate(coarse, size=size, mode=mode)
    image = (image + 12 * torch.randn(image.shape)).clamp(0, 255)
    return torch.randn((batch, labels) + tuple(size)), image


def run(layer, values, image, mask, weigh, image_needs):
    """The result and all derivatives, on the CPU."""
    device = next(layer.parameters()).device
    layer.zero_grad()
    values = values.clone().to(device).requires_grad_()
    image = image.clone().to(device).requires_grad_(image_needs)
    result = layer(values, image, None if mask is None else mask.to(device))
    (result * weigh.to(result)).sum().backward()
    found = {"result": result, "values": values.grad, "image": image.grad}
    found.update((name, parameter.grad) for name, parameter in layer.named_parameters())
    return {name: value.detach().cpu().double() for name, value in found.items() if value is not None}


class Same(unittest.TestCase):
    def setUp(self):
        on_cpu()

    tearDown = setUp

    def compare(self, layer, values, image, mask=None, image_needs=False):
        torch.manual_seed(5)
        weigh = torch.randn(len(values)) if isinstance(layer, CRFLoss) else torch.randn(values.shape)
        here = run(layer, values, image, mask, weigh, image_needs)
        there = run(on_gpu(layer), values, image, mask, weigh, image_needs)
        self.assertEqual(here.keys(), there.keys())
        for name, value in here.items():
            most = float(value.abs().max())
            difference = float((value - there[name]).abs().max())
            self.assertLessEqual(difference, WORST * max(most, 1e-6), f"{name}: {difference} of {most}")
        return there

    def test_potts(self):
        values, image = scene(5)
        self.compare(MeanField(5, spatial=(3, 1), bilateral=(8, 25, 2), iterations=5), values, image)

    def test_two_labels_without_positions(self):
        values, image = scene(2, batch=3)
        self.compare(MeanField(2, spatial=None, bilateral=(8, 25, 2), iterations=3), values, image)

    def test_positions_alone(self):
        values, image = scene(3)
        layer = MeanField(3, spatial=((2, 3), 1.5), bilateral=None, learn=("weights", "sigmas"), spacing=(1.5, 1))
        self.compare(layer, values, image)

    def test_everything_learned(self):
        values, image = scene(5)
        layer = MeanField(5, bilateral=(8, 25, 2), learn=("weights", "compatibility", "sigmas"), per_label=True)
        with torch.no_grad():
            layer.compatibility += 0.3 * torch.rand(5, 5)
        self.compare(layer, values, image, image_needs=True)

    def test_sigmas_of_their_own(self):
        values, image = scene(3)
        layer = MeanField(3, bilateral=((8, 6), (25, 30, 20), 2), learn=("sigmas",), iterations=2)
        self.compare(layer, values, image)

    @unittest.skipIf(HAS_GPU, "the GPU's lattices do not count")
    def test_filters_of_sigmas(self):
        """Those of two axes and of a wider and a narrower lattice for every third update, row sums, and one for the normalization."""
        values, image = scene(3)
        for iterations, some in ((2, 2), (5, 2), (9, 3)):
            counts = []
            for learn in (("weights",), ("weights", "sigmas")):
                layer = on_gpu(MeanField(3, bilateral=(8, 25, 2), learn=learn, iterations=iterations))
                CpuLattices.filters = 0
                layer(values.to(DEVICE), image.to(DEVICE)).square().sum().backward()
                counts.append(CpuLattices.filters)
            self.assertEqual(counts[0], 2 * iterations)
            self.assertEqual(counts[1] - counts[0], 2 * some + 2 * some + 2)

    def test_mask(self):
        values, image = scene(4)
        mask = torch.rand(2, 23, 31) > 0.3
        for output in ("probabilities", "log_probabilities"):
            layer = MeanField(4, bilateral=(8, 25, 2), learn=("weights", "sigmas"), iterations=3, output=output)
            self.compare(layer, values, image, mask, image_needs=True)

    def test_without_normalization(self):
        values, image = scene(3)
        layer = MeanField(3, spatial=(2, 0.05), bilateral=(8, 25, 0.02), normalize="none", learn=("weights", "sigmas"))
        self.compare(layer, values, image)

    def test_lattices_of_positions(self):
        values, image = scene(3)
        self.compare(MeanField(3, bilateral=(8, 25, 2), operator="lattice", learn=("weights", "sigmas")), values, image)

    def test_volume(self):
        values, image = scene(3, size=(6, 9, 11), channels=1)
        layer = MeanField(3, bilateral=(4, 25, 2), spacing=(2, 1, 1), learn=("weights", "sigmas"), iterations=2)
        self.compare(layer, values, image)

    def test_checkpoint(self):
        values, image = scene(3)
        for iterations in (1, 4, 7):
            found = []
            for checkpoint in (False, True):
                layer = MeanField(3, bilateral=(8, 25, 2), iterations=iterations, checkpoint=checkpoint)
                found.append(self.compare(layer, values, image))
            for name, value in found[0].items():
                self.assertTrue(torch.equal(value, found[1][name]), name)

    def test_loss(self):
        values, image = scene(4)
        mask = torch.rand(2, 23, 31) > 0.3
        y = torch.softmax(values, 1)
        for learn in ((), ("weights", "compatibility", "sigmas")):
            layer = CRFLoss(4, spatial=(2, 0.5), bilateral=(8, 25, 1), learn=learn, reduction="none")
            self.compare(layer, y, image, image_needs=bool(learn))
            self.compare(layer, y, image, mask)

    def test_loss_at_a_smaller_scale(self):
        values, image = scene(2)
        self.compare(CRFLoss(2, bilateral=(8, 25, 1), scale_factor=0.5, reduction="none"), torch.softmax(values, 1), image)

    def test_unit_pictures(self):
        values, image = scene(3)
        layer = MeanField(3, bilateral=(8, 25, 2), iterations=2)
        there = on_gpu(layer)
        with torch.no_grad():
            wanted = there(values.to(DEVICE), image.to(DEVICE))
            found = there(values.to(DEVICE), image.to(DEVICE) / 255)
        self.assertLess(float((wanted - found).abs().max()), 1e-3)

    @unittest.skipUnless(HAS_GPU, "the CPU's lattices refuse what is not a number")
    def test_normalized_pictures_are_not_numbers(self):
        values, image = scene(3)
        with torch.no_grad():
            found = on_gpu(MeanField(3, bilateral=(8, 25, 2)))(values.to(DEVICE), (image.to(DEVICE) - 127) / 60)
        self.assertTrue(bool(found.isnan().any()))
        torch.cuda.synchronize()
        with self.assertRaisesRegex(ValueError, "normalized"):
            on_gpu(MeanField(3, bilateral=(8, 25, 2)))(values.to(DEVICE), image.to(DEVICE))

    def test_precision_of_products(self):
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("medium")
        try:
            with _torch_gpu._exactly(torch.device("cuda")):
                self.assertEqual(torch.get_float32_matmul_precision(), "highest")
            self.assertEqual(torch.get_float32_matmul_precision(), "medium")
        finally:
            torch.set_float32_matmul_precision(before)

    def test_second_way_back(self):
        values, image = scene(3)
        values = values.to(DEVICE).requires_grad_()
        q = on_gpu(MeanField(3, bilateral=(8, 25, 2), iterations=2))(values, image.to(DEVICE))
        first = torch.autograd.grad(q[:, 0].sum(), values, retain_graph=True)[0]
        second = torch.autograd.grad(q[:, 0].sum(), values)[0]
        self.assertTrue(torch.equal(first, second))
        with self.assertRaises(RuntimeError):
            torch.autograd.grad(q[:, 0].sum(), values)


def step(layer, values, image):
    """One step; no host number comes of it."""
    layer.zero_grad(set_to_none=True)
    values = values.detach().requires_grad_()
    layer(values, image).square().sum().backward()
    return [values.grad] + [parameter.grad for parameter in layer.parameters() if parameter.requires_grad]


@unittest.skipUnless(HAS_GPU, "there is no GPU, or no libdcrf-cuda")
class OnGPU(unittest.TestCase):
    def setUp(self):
        on_cpu()
        values, image = scene(5, size=(90, 120))
        self.values, self.image = values.to(DEVICE), image.to(DEVICE)
        self.layer = MeanField(5, bilateral=(20, 13, 2), learn=("weights", "compatibility", "sigmas")).to(DEVICE)
        self.loss = CRFLoss(5, bilateral=(20, 13, 2), learn=("weights",), reduction="none").to(DEVICE)

    def test_same_bytes(self):
        for layer in (self.layer, self.loss):
            first = step(layer, self.values, self.image)
            for _ in range(3):
                for one, other in zip(first, step(layer, self.values, self.image)):
                    self.assertTrue(torch.equal(one, other))

    def test_no_wait(self):
        # A stream takes about a thousand launches; then further launches wait.
        short = MeanField(5, bilateral=(20, 13, 2), learn=("weights", "compatibility", "sigmas"), iterations=1).to(DEVICE)
        for layer in (short, MeanField(5, bilateral=(20, 13, 2)).to(DEVICE), self.loss):
            step(layer, self.values, self.image)  # whatever is made once
            torch.cuda.synchronize()
            torch.cuda._sleep(1 << 31)  # a second or so of clock ticks
            slept = torch.cuda.Event()
            slept.record()
            torch.cuda.set_sync_debug_mode("error")
            try:
                step(layer, self.values, self.image)
            finally:
                torch.cuda.set_sync_debug_mode("default")
            self.assertFalse(slept.query(), "the host has waited for the device")
            torch.cuda.synchronize()

    def test_stream(self):
        wanted = step(self.layer, self.values, self.image)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(1 << 28)
            late = self.values * 1  # after the sleep
            found = step(self.layer, late, self.image)
        torch.cuda.synchronize()
        for one, other in zip(wanted, found):
            self.assertTrue(torch.equal(one, other))

    def test_large_lattices_are_the_same(self):
        wanted = step(self.layer, self.values, self.image)
        room = _torch_kernels.MOST_ROOM_BYTES
        _torch_kernels.MOST_ROOM_BYTES = 0
        try:
            found = step(self.layer, self.values, self.image)
        finally:
            _torch_kernels.MOST_ROOM_BYTES = room
        for one, other in zip(wanted, found):
            self.assertTrue(torch.equal(one, other))

    def test_batches_are_pictures(self):
        with torch.no_grad():
            together = self.layer(self.values, self.image)
            alone = torch.cat([self.layer(self.values[i : i + 1], self.image[i : i + 1]) for i in range(2)])
        self.assertLess(float((together - alone).abs().max()), 1e-6)

    def test_compiled(self):
        for module in (self.layer, self.loss):
            wanted = step(module, self.values, self.image)
            for backend in ("aot_eager", "inductor"):
                torch._dynamo.reset()
                module.zero_grad()
                values = self.values.detach().requires_grad_()
                torch.compile(module, fullgraph=True, backend=backend)(values, self.image).square().sum().backward()
                found = [values.grad] + [parameter.grad for parameter in module.parameters() if parameter.requires_grad]
                for one, other in zip(wanted, found):
                    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)

    def test_layer_left_on_the_cpu(self):
        layer = MeanField(5, bilateral=(20, 13, 2), learn=("weights", "sigmas"))
        values = self.values.detach().requires_grad_()
        layer(values, self.image).square().sum().backward()
        self.assertEqual((values.grad.device.type, layer.log_weights.grad.device.type), ("cuda", "cpu"))
        self.assertEqual(layer.log_sigmas.grad.device.type, "cpu")

    def test_half_precision(self):
        with torch.no_grad():
            wanted = self.layer(self.values, self.image)
            self.assertEqual(self.layer(self.values.half(), self.image.half()).dtype, torch.float16)
            with torch.autocast("cuda"):
                found = self.layer(self.values, self.image)
        self.assertTrue(torch.equal(wanted, found))

    def test_memory(self):
        """Between the ways: one q for each update and the lattice, of which PyTorch knows nothing; fewer with checkpoints."""
        grown = []
        for checkpoint in (False, True):
            layer = MeanField(5, bilateral=(20, 13, 2), iterations=16, checkpoint=checkpoint).to(DEVICE)
            step(layer, self.values, self.image)
            before = torch.cuda.memory_allocated()
            q = layer(self.values.detach().requires_grad_(), self.image)
            grown.append(torch.cuda.memory_allocated() - before)
            q.sum().backward()
            del q
        row = 4 * 8 * self.values[:, 0].numel()
        self.assertLess(grown[0], 20 * row)
        self.assertLess(grown[1], 9 * row)

    def test_nothing_stays(self):
        """Rounds of equal steps. Pools of memory grow to what is needed, in large pieces and not all in the first round; a leak grows in
        every round. So a round that takes nothing is waited for, and with a leak there is none."""
        found = []
        for _ in range(6):
            for _ in range(10):
                step(self.layer, self.values, self.image)
            torch.cuda.synchronize()
            found.append((torch.cuda.mem_get_info()[0], torch.cuda.memory_allocated()))
        self.assertTrue(any(later[0] >= earlier[0] for earlier, later in zip(found, found[1:])), found)
        self.assertEqual(found[-1][1], found[1][1])  # PyTorch's own


if __name__ == "__main__":
    unittest.main()
