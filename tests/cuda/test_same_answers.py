"""The GPU's answers are the CPU's: the same problems on both, one after the other.

    PYTHONPATH=build/python tests/cuda/test_same_answers.py [-v]

A made scene, and where ../shared/data or $DCRF_SHARED/data is there, photographs. Without a GPU the test exits with
77, which counts as skipped. DCRF_TEST_DEVICE is the device to try, "cuda" unless it says another.

What is asked for:
  operators   row sums, diagonals and products within 1e-5 of the row sums
  mean field  after 10 iterations |dQ| <= 1e-3, labels equal at 99.99 % of the pixels
  energies    of one labelling within 1e-6; of what each device finds, too, where the labels are equal
  repetition  the same bytes, on the same device
  LP          the bound below the energy, and a certificate that the CPU verifies
"""

import functools
import os
import pathlib
import sys
import unittest

import numpy as np

import dcrf

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("DCRF_SHARED", ROOT / ".." / "shared")) / "data"
DEVICE = os.environ.get("DCRF_TEST_DEVICE", "cuda")

KERNELS = 1e-5
MARGINALS = 1e-3
LABELS = 1e-4  # of the pixels may differ
ENERGY = 1e-6


# ---- problems

def picture(path):
    """(H, W) of an indexed picture, (H, W, 3) of a coloured one."""
    try:
        from PIL import Image

        return np.array(Image.open(path))
    except ImportError:
        pass
    sys.path.insert(0, str(ROOT / "tests" / "cli"))
    import formats

    rows = formats.read_png(path.read_bytes())[4]
    values = np.array(rows, np.uint8)
    return values[..., 0] if values.shape[-1] == 1 else values


def made_scene(height=90, width=120, labels=5, seed=3):
    """Blobs of colour with grain, and energies that err at every third pixel."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    centres = rng.random((3 * labels, 2)) * (height, width)
    nearest = np.argmin([(y - a) ** 2 + (x - b) ** 2 for a, b in centres], 0)
    truth = nearest % labels
    image = rng.integers(30, 220, (labels, 3))[truth] + rng.normal(0, 9, (height, width, 3))
    right = 0.6 * (truth[..., None] == np.arange(labels)) + rng.random((height, width, labels))
    p = np.exp(2.5 * right)
    return image.clip(0, 255).astype(np.uint8), -np.log(p / p.sum(-1, keepdims=True)).astype(np.float32)


def network(truth, labels=21):
    """Energies as a network with a stride of 8 gives them for a label map: blocks that err."""
    rng = np.random.default_rng(int(truth.sum()))
    known = np.where(truth < labels, truth, 0)
    scores = 3.0 * (known[4::8, 4::8, None] == np.arange(labels))
    scores = (scores + rng.normal(0, 1, scores.shape)).repeat(8, 0).repeat(8, 1)
    height, width = truth.shape
    scores = np.pad(scores, ((0, 8), (0, 8), (0, 0)), mode="edge")[:height, :width]
    scores += rng.normal(0, 0.3, scores.shape)
    return -(scores - np.log(np.exp(scores).sum(-1, keepdims=True))).astype(np.float32)


def all_problems():
    """Names, images and energies."""
    yield ("made scene",) + made_scene()
    photo = DATA / "msrc-example"
    if photo.is_dir():
        yield "photo 1", picture(photo / "photo1.png"), np.load(photo / "photo1_energy.npy").astype(np.float32)
    for path in sorted((DATA / "voc").glob("*_gt.png")) if (DATA / "voc").is_dir() else ():
        image = picture(path.with_name(path.name.replace("_gt", "")))
        yield path.stem[:-3], image, network(picture(path))


@functools.lru_cache(None)
def problems():
    return list(all_problems())


class SameAnswers(unittest.TestCase):
    def each(self, count=None):
        for name, image, unary in problems()[:count]:
            with self.subTest(name):
                yield name, image, unary

    def note(self, what, figure):
        if "-v" in sys.argv:
            print(f"    {what}: {figure}", flush=True)

    # ---- operators

    def compare_operators(self, **options):
        here, there = (dcrf.Operator(device=device, **options) for device in ("cpu", DEVICE))
        self.assertTrue(there.device.startswith("cuda:"))
        self.assertEqual(there.kind, here.kind)
        scale = here.row_sums()
        values = np.random.default_rng(0).random(here.shape + (21,)).astype(np.float32)
        found = {
            "row sums": np.abs(there.row_sums() / scale - 1),
            "diagonal": np.abs(there.diagonal() - here.diagonal()) / np.maximum(scale, here.diagonal()),
            "product": np.abs(there @ values - here @ values) / scale[..., None],
            "repeated": np.abs(there @ values - there @ values),
        }
        for what, error in found.items():
            self.note(f"{here.kind}, {options.get('normalize')}, {what}", f"{error.max():.2e}")
            self.assertLessEqual(error.max(), 0 if what == "repeated" else KERNELS, what)

    def test_fast_operators(self):
        for _, image, _ in self.each():
            for normalize in ("symmetric", "none"):
                self.compare_operators(shape=image.shape[:2], sigma=3, normalize=normalize)
                self.compare_operators(image=image, sigma=80, channel_sigma=13, normalize=normalize)

    def test_exact_operators(self):
        for _, image, _ in self.each(1):
            for normalize in ("symmetric", "none"):
                self.compare_operators(image=image, sigma=40, channel_sigma=8, normalize=normalize, operator="exact")

    def test_features(self):
        features = np.random.default_rng(1).normal(0, 1.5, (50, 40, 4))
        for operator in ("fast", "exact"):
            self.compare_operators(features=features, operator=operator, normalize="none")

    # ---- methods

    def compare_solutions(self, image, unary, method, **options):
        """Both, and the device twice. Returns the first two."""
        here, there, again = (
            dcrf.solve(image, unary=unary, method=method, device=device, **options) for device in ("cpu", DEVICE, DEVICE)
        )
        self.assertEqual(there.labels.tobytes(), again.labels.tobytes())
        self.assertEqual(there.marginals.tobytes(), again.marginals.tobytes())
        self.assertEqual((there.energy, there.iterations), (again.energy, again.iterations))
        np.testing.assert_equal(there.lower_bound, again.lower_bound)
        differ = float((here.labels != there.labels).mean())
        self.note(f"{method}, labels that differ", f"{100 * differ:.4f} %")
        self.assertLessEqual(differ, LABELS)
        # One labelling has one energy.
        model = {key: value for key, value in options.items() if key in ("operator", "normalize", "spatial", "bilateral",
                                                                        "cliques", "clique_cost", "compatibility")}
        energy = dcrf.energy(image, unary=unary, labels=there.labels, device="cpu", **model).total
        self.note(f"{method}, energy", f"{abs(energy / there.energy - 1):.2e}")
        self.assertLessEqual(abs(energy - there.energy), ENERGY * abs(energy))
        if differ == 0:
            self.assertLessEqual(abs(here.energy - there.energy), ENERGY * abs(here.energy))
        return here, there

    def test_mean_field(self):
        for _, image, unary in self.each():
            options = {"iterations": 10, "stationarity": 0}
            here, there = self.compare_solutions(image, unary, "mf", **options)
            difference = np.abs(here.marginals - there.marginals).max()
            self.note("mf, |dQ|", f"{difference:.2e}")
            self.assertEqual((here.iterations, there.iterations), (10, 10))
            self.assertLessEqual(difference, MARGINALS)

    def test_mean_field_of_many_kinds(self):
        """Unnormalized kernels, damping, compatibilities and cliques."""
        for _, image, unary in self.each(2):
            labels = unary.shape[-1]
            matrix = (1 - np.eye(labels)).astype(np.float32)
            matrix[0, 1] = matrix[1, 0] = 0.5
            for options in (
                {"normalize": "none", "spatial": (3, 0.02), "bilateral": (40, 8, 0.01)},
                {"damping": 0.5},
                {"compatibility": matrix},
                {"cliques": "slic"},
                {"bilateral": None},
                {"spatial": None},
            ):
                options = {"iterations": 10, "stationarity": 0, "polish": 0, **options}
                here, there = self.compare_solutions(image, unary, "mf", **options)
                self.assertLessEqual(np.abs(here.marginals - there.marginals).max(), MARGINALS, options)

    def test_qp(self):
        for _, image, unary in self.each(2):
            self.compare_solutions(image, unary, "qp", iterations=10)

    def check_certificate(self, image, unary, result, **options):
        found = dcrf.verify(image, unary=unary, certificate=result.certificate, device="cpu", **options)
        self.assertLessEqual(found.lower_bound, found.energy)
        self.note("lp, proven", f"{100 * found.proven.mean():.2f} %, gap {100 * found.relative_gap:.4f} %")

    def test_lp(self):
        for _, image, unary in self.each(2):
            here, there, again = (
                dcrf.solve(image, unary=unary, method="lp", device=device, certificate=True)
                for device in ("cpu", DEVICE, DEVICE)
            )
            self.assertEqual((there.lower_bound, there.certificate), (again.lower_bound, again.certificate))
            self.assertLessEqual(there.lower_bound, there.energy)
            # Both bounds hold, and stop at the same gap; nothing makes them equal.
            self.assertLessEqual(there.lower_bound, here.energy * (1 + ENERGY))
            self.assertLessEqual(there.relative_gap, max(1.1 * here.relative_gap, 1e-3))
            self.note("lp, gap", f"{100 * here.relative_gap:.4f} % on the CPU, {100 * there.relative_gap:.4f} % there")
            self.check_certificate(image, unary, there)

    def test_lp_with_exact_operators(self):
        image, unary = made_scene(30, 40)
        for options in ({}, {"normalize": "none", "spatial": (3, 0.02), "bilateral": (40, 8, 0.01)}):
            options = {"operator": "exact", **options}
            result = dcrf.solve(image, unary=unary, method="lp", device=DEVICE, certificate=True, **options)
            self.assertLessEqual(result.lower_bound, result.energy)
            self.check_certificate(image, unary, result, **options)

    # ---- lives

    def test_many(self):
        given = [dict(zip(("image", "unary"), made_scene(40, 50, seed=seed))) for seed in range(12)]
        one = [dcrf.solve(device=DEVICE, **problem) for problem in given]
        for result, expected in zip(dcrf.solve_many(given, device=DEVICE, threads=4), one):
            self.assertEqual(result.marginals.tobytes(), expected.marginals.tobytes())

    def test_models_are_kept(self):
        image, unary = made_scene(40, 50)
        model = dcrf.Model(image, unary=unary, device=DEVICE, spatial=(2, 0.5), bilateral=(20, 10, 0.5))
        for weight in (0.0, 1.0, 0.5):
            model.set_weight(1, weight)
            other = dcrf.Model(image, unary=unary, device=DEVICE, spatial=(2, 0.5), bilateral=(20, 10, weight))
            self.assertEqual(model.solve().marginals.tobytes(), other.solve().marginals.tobytes())


if __name__ == "__main__":
    if not dcrf.devices():
        try:
            dcrf.Operator(shape=(2, 2), sigma=1, device=DEVICE)
        except dcrf.DeviceError as why:
            print("skipped:", why)
        sys.exit(77)
    unittest.main()
