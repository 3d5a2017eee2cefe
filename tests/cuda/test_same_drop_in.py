"""The drop-in for pydensecrf on a GPU: everything that is asked of it on the CPU, and the CPU's answers.

    PYTHONPATH=build/python NAIVE_DENSECRF=build/tests/python/libnaive_densecrf.so tests/cuda/test_same_drop_in.py

The recordings of the original (tests/python/golden.py), photographs against the naive program
(test_photographs.py), all tests of the drop-in (test_drop_in.py), and both devices on random models of every kind:
|dQ| <= 1e-3, labels equal at 99.99 % of the pixels, the same bytes every time. Without a GPU the test exits with 77,
which counts as skipped. DCRF_TEST_DEVICE is the device to try, "cuda" unless it says another.
"""

import importlib
import os
import pathlib
import sys
import unittest

import numpy as np

import dcrf
from dcrf.pydensecrf import densecrf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
DEVICE = os.environ.get("DCRF_TEST_DEVICE", "cuda")
MARGINALS = 1e-3
LABELS = 1e-4  # of the pixels may differ

places = set()  # where inference was done


def watch():
    """Nothing stays on the CPU without being noticed."""
    for name in ("inference", "stepInference"):

        def watched(crf, *arguments, call=getattr(densecrf.DenseCRF, name), **keywords):
            places.add(crf.device)
            return call(crf, *arguments, **keywords)

        setattr(densecrf.DenseCRF, name, watched)


class SameAnswers(unittest.TestCase):
    def model(self, device, labels, seed):
        rng = np.random.default_rng(seed)
        height, width = 60 + seed, 83
        y, x = np.mgrid[:height, :width]
        truth = (x * labels // width + y // 20) % labels
        image = (40 * (truth[..., None] % 5) + rng.integers(0, 50, (height, width, 3))).astype(np.uint8)
        unary = rng.random((labels, height, width)).astype(np.float32) * 2
        unary += 1.5 * (truth != np.arange(labels)[:, None, None])
        compats = (
            3.0,
            -rng.random(labels).astype(np.float32),
            rng.normal(0, 0.3, (labels, labels)).astype(np.float32),
        )
        crf = densecrf.DenseCRF2D(width, height, labels, device=device)
        crf.setUnaryEnergy(unary.reshape(labels, -1))
        crf.addPairwiseGaussian((2, 3), compats[seed % 3], normalization=seed % 4)
        crf.addPairwiseBilateral((30, 20), (13, 9, 5), image, 4.0)
        crf.addPairwiseEnergy(rng.normal(0, 2, (4, width * height)), compats[(seed + 1) % 3], normalization=(seed + 2) % 4)
        return crf

    def test_both(self):
        worst = 0
        for seed, labels in enumerate((2, 3, 5, 8, 21, 33, 70, 130)):
            with self.subTest(labels=labels):
                here, there = (self.model(device, labels, seed) for device in ("cpu", DEVICE))
                expected, found = here.inference(5), there.inference(5)
                worst = max(worst, np.abs(found - expected).max())
                self.assertLessEqual(np.abs(found - expected).max(), MARGINALS)
                self.assertLessEqual((found.argmax(0) != expected.argmax(0)).mean(), LABELS)
                self.assertEqual(found.tobytes(), there.inference(5).tobytes())
                self.assertEqual(found.tobytes(), self.model(DEVICE, labels, seed).inference(5).tobytes())
                self.assertLess(abs(there.klDivergence(found) / here.klDivergence(found) - 1), 1e-5)
                one, other = expected.copy(), expected.copy()
                here.stepInference(one)
                there.stepInference(other)
                self.assertLessEqual(np.abs(one - other).max(), MARGINALS)
        print(f"both devices on random models: max |dQ| {worst:.1e}", flush=True)


def main():
    if not dcrf.devices():
        try:
            densecrf.DenseCRF(1, 1, device=DEVICE)
        except dcrf.DeviceError as why:
            print("skipped:", why)
        return 77
    densecrf.set_device(DEVICE)
    watch()
    results = []
    wanted = {found.name for found in dcrf.devices()}
    for name in ("golden", "test_photographs"):
        status = importlib.import_module(name).main()  # 77: what it needs is not there
        print(f"{name}: {status}", flush=True)
        results.append(status in (0, 77))
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromTestCase(SameAnswers)
    print("inference was done on", sorted(places))
    results.append(places <= wanted)  # before models that compare both, and some that have no kernels
    suite.addTests(loader.loadTestsFromModule(importlib.import_module("test_drop_in")))
    results.append(unittest.TextTestRunner().run(suite).wasSuccessful())
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
