"""dcrf.batch against the command's batch, and reports."""

import html.parser
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import dcrf

try:
    import PIL.Image
except ImportError:
    PIL = None

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import datasets  # noqa: E402

COMMAND = os.environ.get("DCRF_COMMAND", "")
METHODS = ["mf5", "qp", "lp", "mf3+cliques", "lp4+cliques"]


def noisy_scenes(count, labels=3, height=15, width=20):
    """Problems and their truths."""
    rng = np.random.default_rng(3)
    problems, truths = [], []
    for _ in range(count):
        truth = (np.arange(width) * labels // width)[None].repeat(height, 0)
        truth[rng.integers(height)] = 255
        known = np.where(truth == 255, 0, truth)
        energies = rng.random((height, width, labels)) + 0.5 * (known[..., None] != np.arange(labels))
        image = (80 * known[..., None] + rng.integers(0, 20, (height, width, 3))).astype(np.uint8)
        problems.append({"image": image, "unary": energies})
        truths.append(truth)
    return problems, truths


class WellFormed(html.parser.HTMLParser):
    """Every tag is closed, in the right order."""

    VOID = {"meta", "img"}

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class BatchTest(unittest.TestCase):
    def check_same(self, given, expected, what):
        if isinstance(expected, list):
            self.assertEqual(len(given), len(expected), what)
            for part, wanted in zip(given, expected):
                self.check_same(part, wanted, what)
        elif expected is None:
            self.assertTrue(math.isnan(given), what)
        else:
            # Means of the same numbers, added in another order.
            self.assertLessEqual(abs(given - expected), 1e-13 * max(1, abs(expected)), what)

    @unittest.skipUnless(COMMAND and PIL, "skipped: needs the command and PIL")
    def test_figures_are_those_of_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            data, out = os.path.join(folder, "data"), os.path.join(folder, "out")
            datasets.make(data, count=5)
            subprocess.run([COMMAND, "batch", data, "--split", "test", "--methods", ",".join(METHODS), "--out", out, "-q",
                            "--curves", "0", "--pictures", "0", "--band", "5"], check=True)
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as stream:
                summary = json.load(stream)
            found = dcrf.batch(data, split="test", methods=METHODS, band=5)
            kept = dcrf.batch(dcrf.DataSet(data, "test"), methods=["mf5"], keep=True, threads=3)
            written = np.asarray(PIL.Image.open(os.path.join(out, "results", "mf5", kept_name(data) + ".png")))
        self.assertEqual([row["method"] for row in summary["methods"]], list(found.methods))
        self.assertEqual((found.images, found.labels, found.classes, found.failures),
                         (summary["images"], summary["labels"], summary["classes"], []))
        compared = 0
        for row in summary["methods"]:
            figures = found.methods[row["method"]]
            for key, expected in row.items():
                if key in figures:
                    self.check_same(figures[key], expected, (row["method"], key))
                    compared += 1
            self.assertEqual(set(row) - set(figures), {"method", "images"})
        self.assertEqual(compared, len(summary["methods"]) * 15)
        np.testing.assert_array_equal(kept.labellings["mf5"][0], written)
        self.assertIsNone(found.labellings)

    def test_lists(self):
        problems, truths = noisy_scenes(4)
        found = dcrf.batch(problems, truths, methods=["mf5", "lp"], keep=True)
        by_hand = [dcrf.solve(method="lp", **problem) for problem in problems]
        figures = found.methods["lp"]
        self.assertAlmostEqual(figures["energy"], np.mean([result.energy for result in by_hand]), delta=1e-9)
        self.assertAlmostEqual(figures["lower_bound"], np.mean([result.lower_bound for result in by_hand]), delta=1e-9)
        self.assertAlmostEqual(figures["proven_share"], np.mean([result.proven_share for result in by_hand]), delta=1e-12)
        labels = np.stack([result.labels for result in by_hand])
        np.testing.assert_array_equal(np.stack(found.labellings["lp"]), labels)
        self.assertAlmostEqual(figures["pixel_accuracy"], dcrf.metrics.accuracy(labels, np.stack(truths)), delta=1e-15)
        self.assertAlmostEqual(figures["mean_iou"], dcrf.metrics.mean_iou(labels, np.stack(truths), 3), delta=1e-15)
        np.testing.assert_array_equal(figures["confusion"], dcrf.metrics.confusion(labels, np.stack(truths), 3))
        without = dcrf.batch(iter(problems), methods=["mf5"])
        self.assertNotIn("iou", without.methods["mf5"])
        self.assertIn("mf5", str(without))

    def test_proven_share(self):
        problem = noisy_scenes(1)[0][0]
        by_gap = dcrf.solve(method="lp", **problem)
        full = dcrf.solve(method="lp", proof=True, **problem)
        self.assertEqual(full.proven_share, full.proven.mean())
        self.assertLessEqual(by_gap.proven_share, full.proven_share)
        self.assertTrue(math.isnan(dcrf.solve(method="mf", **problem).proven_share))

    def test_bad_images(self):
        problems, truths = noisy_scenes(4)
        problems[2] = {"unary": "nonsense"}
        with self.assertRaises(dcrf.ProblemError) as raised:
            dcrf.batch(problems, truths, methods=["mf5"])
        self.assertEqual(raised.exception.index, 2)
        found = dcrf.batch(problems, truths, methods=["mf5"], errors="return", keep=True)
        self.assertEqual((found.images, [failure.index for failure in found.failures]), (3, [2]))
        self.assertIsNone(found.labellings["mf5"][2])
        self.assertIn("Failures", found.report())
        with self.assertRaisesRegex(ValueError, "as many truths as problems"):
            dcrf.batch(problems[:2], truths, methods=["mf5"])
        for name in ("mf0", "sgd", "lp+", "unary+cliques"):
            with self.assertRaisesRegex(ValueError, "is not a method"):
                dcrf.batch(problems[:1], methods=[name])
        with self.assertRaisesRegex(dcrf.ProblemError, "the truth has the shape"):
            dcrf.batch(problems[:1], [truths[0].T], methods=["mf5"])

    def test_many_labels(self):
        """65,535 labels, of which the images have a few: a matrix of all pairs would take 34 GB."""
        truth = np.arange(12).reshape(3, 4) * 5957
        part = {"counts": dcrf.metrics.class_counts(truth, truth, 65535)}
        self.assertEqual(part["counts"].shape, (3, 65535))
        pairs = dcrf.metrics.confusion_pairs(truth, np.full((3, 4), 7))
        np.testing.assert_array_equal(pairs[1], truth.ravel())
        self.assertEqual(dcrf.metrics.accuracy(truth, truth), 1)
        self.assertEqual(dcrf.metrics.mean_iou(truth, truth, 65535), 1)

    def test_reports(self):
        problems, truths = noisy_scenes(2)
        for method in ("mf", "lp"):
            result = dcrf.solve(method=method, **problems[0])
            text = result.report(classes=["sky", "a<b", "road"], title="x & y")
            page = WellFormed(text)
            self.assertIn("<title>x &amp; y</title>", text)
            self.assertIn("a&lt;b", text)
            self.assertEqual(sum(tag == "img" for tag, _ in page.seen), 3)
            self.assertEqual("lower bound" in text.lower().split("over time")[0], method == "lp")
            WellFormed(result._repr_html_())
            overlay = result.overlay()
            self.assertEqual((overlay.dtype, overlay.shape), (np.uint8, (15, 20, 3)))
            if PIL:
                self.assertEqual(PIL.Image.fromarray(overlay).size, (20, 15))
        WellFormed(dcrf.solve(unary=np.random.default_rng(0).random((2, 4, 5, 6)), method="mf").report())
        found = dcrf.batch(problems, truths, methods=["mf5"])
        for text in (found.report("t"), found._repr_html_()):
            WellFormed(text)
            self.assertIn("mf5", text)


class ExplainTest(unittest.TestCase):
    def test_against_dense_matrices(self):
        problem = noisy_scenes(1, height=9, width=11)[0][0]
        kernels = {"spatial": (2.0, 0.7), "bilateral": (3.0, 30.0, 1.3)}
        found = dcrf.Model(problem["image"], unary=problem["unary"], operator="exact", **kernels).explain()
        y, x = np.mgrid[:9, :11]
        place = np.stack([x.ravel(), y.ravel()], -1).astype(float)
        colour = problem["image"].reshape(-1, 3).astype(float)
        total = 0
        for given, features, weight in zip(found.kernels, (place / 2, np.hstack([place / 3, colour / 30])), (0.7, 1.3)):
            kernel = np.exp(-((features[:, None] - features[None]) ** 2).sum(-1) / 2)
            sums = kernel.sum(1)
            normalized = kernel / np.sqrt(sums[:, None] * sums[None])
            paid = 2 * weight * (normalized.sum(1) - np.diag(normalized))
            # Row sums are floats.
            self.assertAlmostEqual(given["reach"] / (sums.mean() - 1), 1, delta=1e-5)
            self.assertAlmostEqual(given["price"] / paid.mean(), 1, delta=1e-5)
            total = total + paid
        self.assertEqual([kernel["kind"] for kernel in found.kernels], ["spatial", "bilateral"])
        best = np.sort(problem["unary"].reshape(-1, 3).astype(np.float32), 1).astype(float)
        margins = best[:, 1] - best[:, 0]
        self.assertAlmostEqual(found.price, total.mean(), delta=1e-5)
        self.assertAlmostEqual(found.margin, np.sort(margins)[len(margins) // 2], delta=1e-12)
        self.assertAlmostEqual(found.persuadable_share, (margins < total).mean(), delta=1e-12)
        self.assertIn("bilateral kernel joins a pixel", str(found))

    def test_the_model_is_as_it_was(self):
        problem = noisy_scenes(1)[0][0]
        model = dcrf.Model(**problem)
        before, weights = model.solve("lp"), [kernel["weight"] for kernel in model.kernels]
        found = model.explain()
        self.assertEqual([kernel["weight"] for kernel in model.kernels], weights)
        self.assertEqual(model.solve("lp").energy, before.energy)
        self.assertEqual([point["factor"] for point in found.sweep], [0, 0.125, 0.25, 0.5, 1, 2, 4])
        self.assertEqual(found.sweep[0]["changed_pixels"], 0)
        self.assertEqual(found.sweep[4]["changed_pixels"], model.solve("mf", polish=True).changes["pixels_changed"])

    @unittest.skipUnless(COMMAND and PIL, "skipped: needs the command and PIL")
    def test_sweep_is_that_of_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            data = os.path.join(folder, "data")
            datasets.make(data, count=1)
            name = os.path.join(data, "{}", "p0.{}")
            text = subprocess.run(
                [COMMAND, "solve", name.format("images", "png"), "--unary", name.format("unaries", "npy"), "--unary-kind",
                 "energies", "--unary-scale", "0.05", "--explain", "--json", "-"], check=True, capture_output=True).stdout
            problem = dcrf.DataSet(data)[0]
            problem.pop("name")
            found = dcrf.Model(problem.pop("image"), **problem).explain()
        for given, expected in zip(found.sweep, json.loads(text)["sweep"]):
            self.assertAlmostEqual(given["strength"], expected["strength_nats"], delta=1e-9)
            for key in ("factor", "changed_pixels", "changed_share", "labels_left", "largest_share", "suspicious"):
                self.assertEqual(given[key], expected[key], (key, given["factor"]))


def kept_name(data):
    return dcrf.DataSet(data, "test").names[0]


if __name__ == "__main__":
    unittest.main()
