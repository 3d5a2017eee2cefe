"""What people feed, and what they may expect: types, masks, scales, axes, callbacks, batches, copies."""

import copy
import os
import pickle
import signal
import threading
import time
import unittest
import warnings

import numpy as np

import dcrf


def scene(height=12, width=16, labels=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = (np.arange(width) * labels // width)[None].repeat(height, 0)
    image = (60 * truth[..., None] + rng.normal(0, 6, (height, width, 3)) + 40).clip(0, 255).astype(np.uint8)
    scores = rng.normal(0, 1, (height, width, labels)) + 2 * (truth[..., None] == np.arange(labels))
    p = np.exp(scores)
    return image, (p / p.sum(-1, keepdims=True)).astype(np.float32), truth


def solve(image, **options):
    options = {"method": "mf", "spatial": (2, 1), "bilateral": (10, 20, 2), **options}
    return dcrf.solve(image, **options)


class Arrays(unittest.TestCase):
    def setUp(self):
        self.image, self.p, self.truth = scene()
        self.expected = solve(self.image, probabilities=self.p).marginals

    def test_explicit_byte_order(self):
        """As files say it: '<i2' and '>i2'; nibabel hands out both."""
        for order in "<>":
            image = self.image.astype(np.dtype("i2").newbyteorder(order))
            p = self.p.astype(np.dtype("f4").newbyteorder(order))
            self.assertTrue((solve(image, probabilities=p).marginals == self.expected).all())
        # numpy forgets '<' on a machine where it is the order; a buffer of another library does not
        volume = np.zeros((4, 5, 6), np.dtype("<i2"))
        self.assertEqual(dcrf._arrays.array(volume, "a volume").dtype, np.int16)

    def test_masked_unaries_are_unknown(self):
        mask = np.zeros(self.p.shape, bool)
        mask[3, 4, 1] = True
        masked = np.ma.array(self.p, mask=mask)
        plain = self.p.copy()
        plain[3, 4] = 1 / 3
        ours = solve(self.image, probabilities=masked).marginals
        np.testing.assert_allclose(ours, solve(self.image, probabilities=plain).marginals, atol=1e-6)
        first = np.ma.array(np.moveaxis(self.p, -1, 0), mask=np.moveaxis(mask, -1, 0))
        self.assertTrue((solve(self.image, probabilities=first).marginals == ours).all())
        unmasked = np.ma.array(self.p)
        self.assertTrue((solve(self.image, probabilities=unmasked).marginals == self.expected).all())

    def test_masked_images_are_refused(self):
        image = np.ma.array(self.image, mask=self.image > 100)
        with self.assertRaisesRegex(ValueError, "masked"):
            solve(image, probabilities=self.p)

    def test_images_from_0_to_1(self):
        unit = self.image.astype(np.float64) / 255
        with self.assertWarnsRegex(UserWarning, "between 0 and 1"):
            q = solve(unit, probabilities=self.p).marginals
        np.testing.assert_allclose(q, self.expected, atol=1e-5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # sigmas that are meant for it
            q = solve(unit, probabilities=self.p, bilateral=(10, 20 / 255, 2)).marginals
        np.testing.assert_allclose(q, self.expected, atol=1e-5)

    def test_images_of_false_and_true(self):
        image = np.zeros((6, 8), bool)
        image[:, 4:] = True
        unary = np.random.default_rng(0).random((6, 8, 2))
        self.assertEqual(dcrf.solve(image, unary=unary).energy, dcrf.solve(np.uint8(255) * image, unary=unary).energy)
        np.testing.assert_array_equal(dcrf.superpixels(image, region_size=4), dcrf.superpixels(np.uint8(255) * image, region_size=4))

    def test_ambiguous_axes(self):
        cube = np.random.default_rng(0).random((5, 5, 5))
        with self.assertRaisesRegex(ValueError, "labels_axis"):
            dcrf.Model(unary=cube)
        with self.assertRaisesRegex(ValueError, "labels_axis"):
            dcrf.Model(np.zeros((5, 5, 3), np.uint8), unary=cube)
        one = dcrf.Model(unary=cube, labels_axis=0).solve("mf").marginals
        other = dcrf.Model(unary=np.moveaxis(cube, 0, -1), labels_axis=-1).solve("mf").marginals
        self.assertTrue((one == other).all())
        image = np.random.default_rng(1).integers(0, 255, (5, 5, 5)).astype(np.uint8)
        with self.assertRaisesRegex(ValueError, "channels_axis"):
            dcrf.Model(image, unary=cube[:2], shape=(5, 5))
        first = dcrf.Model(image, unary=cube[:2], shape=(5, 5), channels_axis=0)
        last = dcrf.Model(np.moveaxis(image, 0, -1), unary=cube[:2], shape=(5, 5), channels_axis=-1)
        self.assertTrue((first.solve("mf").marginals == last.solve("mf").marginals).all())

    def test_batches_of_one(self):
        p = np.moveaxis(self.p, -1, 0)[None]
        self.assertTrue((solve(self.image, probabilities=p).marginals == self.expected).all())
        image = np.moveaxis(self.image, -1, 0)[None]
        self.assertTrue((solve(image, probabilities=p).marginals == self.expected).all())

    def test_small_answers_are_enlarged(self):
        image, p, truth = scene(32, 48)
        small = np.moveaxis(p, -1, 0).reshape(3, 8, 4, 12, 4).mean((2, 4))
        for answer in (small, np.moveaxis(small, 0, -1), small[None]):
            result = solve(image, probabilities=answer)
            self.assertEqual(result.labels.shape, truth.shape)
            self.assertGreater((result.labels == truth).mean(), 0.9)

    def test_offsets_of_logits_change_nothing(self):
        logits = np.log(self.p.astype(np.float64))
        offset = np.random.default_rng(3).normal(0, 20, self.truth.shape)[..., None]
        one = solve(self.image, logits=logits, method="lp")
        other = solve(self.image, logits=logits + offset, method="lp")
        self.assertAlmostEqual(one.energy, other.energy, places=2)
        self.assertAlmostEqual(one.relative_gap, other.relative_gap, places=4)

    def test_what_numbers_look_like(self):
        with self.assertRaisesRegex(ValueError, "probabilities="):
            solve(self.image, unary=self.p)
        with self.assertRaisesRegex(ValueError, "logits="):
            solve(self.image, probabilities=np.log(self.p))

    def test_labels_prior(self):
        rough = self.truth.copy()
        rough[2, 3], rough[5, 5] = 2, 255
        result = solve(self.image, labels_prior=rough, confidence=0.6)
        self.assertTrue((result.labels == self.truth).all())
        masked = np.ma.array(rough, mask=rough == 255)
        again = solve(self.image, labels_prior=masked, confidence=0.6)
        self.assertTrue((again.marginals == result.marginals).all())
        for options in ({"confidence": 0.2}, {"labels": 2}, {"confidence": 1}):
            with self.assertRaises(ValueError):
                solve(self.image, labels_prior=rough, **options)
        with self.assertRaises(TypeError):
            solve(self.image, labels_prior=rough, probabilities=self.p)
        with self.assertRaises(TypeError):
            solve(self.image, probabilities=self.p, confidence=0.6)

    def test_labels_that_torch_reads(self):
        result = solve(self.image, probabilities=self.p)
        self.assertEqual(result.labels.dtype, np.int32)
        out = np.zeros(self.truth.shape, np.uint8)
        self.assertIs(solve(self.image, probabilities=self.p, out=out).labels, out)
        self.assertTrue((out == result.labels).all())
        with self.assertRaises(ValueError):
            solve(self.image, probabilities=self.p, out=out[:-1])


class Models(unittest.TestCase):
    def setUp(self):
        self.image, self.p, _ = scene()
        self.model = dcrf.Model(
            self.image, probabilities=self.p, spatial=(2, 1), bilateral=(10, 20, 2), cliques="slic", clique_cost=3.0
        )
        self.model.set_compatibility(1, np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]]))

    def test_copies(self):
        expected = self.model.solve("mf")
        for other in (copy.copy(self.model), copy.deepcopy(self.model), pickle.loads(pickle.dumps(self.model))):
            result = other.solve("mf")
            self.assertTrue((result.marginals == expected.marginals).all())
            self.assertEqual(result.energy, expected.energy)
            other.set_weight(0, 0.0)
            self.assertNotEqual(other.solve("mf").energy, expected.energy)
        self.assertEqual(self.model.solve("mf").energy, expected.energy)

    def test_kernels(self):
        spatial, bilateral = self.model.kernels
        self.assertEqual((spatial["kind"], spatial["sigma"], spatial["weight"]), ("spatial", (2.0, 2.0), 1.0))
        self.assertEqual(bilateral["channel_sigma"], (20.0, 20.0, 20.0))
        self.assertIsNone(spatial["compatibility"])
        self.assertEqual(bilateral["compatibility"].shape, (3, 3))
        self.assertIn("bilateral 2", repr(self.model))
        self.model.set_weight(1, 5)
        self.assertEqual(self.model.kernels[1]["weight"], 5)

    def test_sigmas_change(self):
        self.model.set_sigma(1, sigma=(5, 6), channel_sigma=30)
        fresh = dcrf.Model(
            self.image, probabilities=self.p, spatial=(2, 1), bilateral=((5, 6), 30, 2), cliques="slic",
            clique_cost=3.0,
        )
        fresh.set_compatibility(1, np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]]))
        self.assertTrue((self.model.solve("mf").marginals == fresh.solve("mf").marginals).all())
        before = self.model.solve("mf").energy
        for kernel, options in ((2, {"sigma": 3}), (0, {"channel_sigma": 3}), (0, {"sigma": -1})):
            with self.assertRaises(ValueError):
                self.model.set_sigma(kernel, **options)
        self.assertEqual(self.model.solve("mf").energy, before)

    def test_the_image_may_change(self):
        """What was given was copied."""
        expected = self.model.solve("mf").energy
        self.image[:] = 0
        self.model.set_sigma(0, sigma=2)
        self.assertEqual(self.model.solve("mf").energy, expected)


class Options(unittest.TestCase):
    """What the command can do."""

    def setUp(self):
        self.image, self.p, self.truth = scene()

    def test_presets(self):
        self.assertEqual(dcrf.PRESETS["deeplab"]["bilateral"], (67.0, 3.0, 2.0))
        model = dcrf.Model(self.image, probabilities=self.p, preset="deeplab")
        self.assertEqual([kernel["weight"] for kernel in model.kernels], [1.5, 2.0])
        cliques = dcrf.Model(self.image, probabilities=self.p, preset="paper-msrc-qp-cliques")
        self.assertEqual(cliques.kernels[0]["normalize"], "none")
        self.assertGreater(cliques._core.counts()["cliques"], 0)
        with self.assertRaisesRegex(ValueError, "deeplab"):
            dcrf.Model(self.image, probabilities=self.p, preset="deeplap")

    def test_several_kernels(self):
        model = dcrf.Model(self.image, probabilities=self.p, spatial=[(1, 0.5), (4, 0.5)],
                           bilateral=[(10, 20, 1)], compatibility=[None, None, np.ones((3, 3)) - np.eye(3)])
        self.assertEqual([kernel["kind"] for kernel in model.kernels], ["spatial", "spatial", "bilateral"])
        plain = dcrf.Model(self.image, probabilities=self.p, spatial=[(1, 0.5), (4, 0.5)], bilateral=(10, 20, 1))
        self.assertAlmostEqual(model.energy(self.truth).total, plain.energy(self.truth).total, places=3)
        with self.assertRaisesRegex(ValueError, "compatibility"):
            dcrf.Model(self.image, probabilities=self.p, compatibility=[None])

    def test_void(self):
        model = dcrf.Model(self.image, probabilities=self.p)
        best = self.p.argmax(-1)
        gaps = self.truth.copy()
        gaps[2:4] = 255
        filled = np.where(gaps == 255, best, gaps)
        expected = model.energy(filled).total
        self.assertEqual(model.energy(gaps, void=255).total, expected)
        self.assertEqual(model.energy(np.ma.array(gaps, mask=gaps == 255)).total, expected)
        certificate = model.certify(gaps, void=255, iterations=3)
        self.assertAlmostEqual(certificate.energy, expected, places=4)
        with self.assertRaises(ValueError):
            model.energy(gaps)

    def test_tune(self):
        problems, truths = [], []
        for seed in range(3):
            image, p, truth = scene(24, 32, seed=seed)
            problems.append({"image": image, "probabilities": p})
            truths.append(np.where(np.arange(32) % 8 == 0, 255, truth))
        seen = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = dcrf.tune(problems, truths, budget=9, progress=seen.append)
            results = dcrf.solve_many(problems, method="mf", **found["options"])
        self.assertLessEqual(len(seen), 9)
        self.assertEqual(found["start"], seen[0]["score"])
        self.assertEqual(found["score"], max(one["score"] for one in seen))
        scores = [dcrf.metrics.mean_iou(r.labels, t) for r, t in zip(results, truths)]
        self.assertAlmostEqual(np.mean(scores), found["score"], delta=0.02)  # one confusion, or one for each
        for bad in ({"objective": "luck"}, {"truths": truths[:2]}):
            with self.assertRaises(ValueError):
                dcrf.tune(**{"problems": problems, "truths": truths, **bad})

    def test_pictures(self):
        result = solve(self.image, probabilities=self.p)
        self.assertEqual(result.overlay().shape, self.image.shape)
        for image in (np.moveaxis(self.image, -1, 0), self.image / 255.0, self.image[..., 0]):
            self.assertEqual(result.overlay(image).dtype, np.uint8)
        np.testing.assert_allclose(result.overlay(self.image / 255.0).astype(int), result.overlay(), atol=1)
        self.assertTrue((result.overlay(opacity=1) == result.picture()).all())

    def test_warnings(self):
        with self.assertWarns(UserWarning):
            result = solve(self.image, probabilities=self.p, bilateral=(1000, 1000, 100))
        self.assertTrue(result.warnings)
        self.assertIn("pixels_changed", result.changes)


class Threads(unittest.TestCase):
    def test_environment(self):
        _, p, _ = scene()
        os.environ["DCRF_THREADS"] = "3"
        try:
            model = dcrf.Model(unary=-np.log(p))
            self.assertEqual(model._core.counts()["threads"], 3)
            self.assertEqual(dcrf.Model(unary=-np.log(p), threads=2)._core.counts()["threads"], 2)
            os.environ["DCRF_THREADS"] = "many"
            with self.assertRaisesRegex(ValueError, "DCRF_THREADS"):
                dcrf.Model(unary=-np.log(p))
        finally:
            del os.environ["DCRF_THREADS"]


class Callbacks(unittest.TestCase):
    def test_true_does_not_cancel(self):
        """tqdm's update returns True."""
        image, p, _ = scene()
        seen = []
        solve(image, probabilities=p, iterations=6, stationarity=0, progress=lambda moment: seen.append(moment["stage"]) or True)
        self.assertEqual(seen.count("solve"), 6)
        result = solve(image, probabilities=p, iterations=6, progress=lambda moment: dcrf.STOP)
        self.assertEqual((result.iterations, result.stop), (0, "cancelled"))


class Many(unittest.TestCase):
    def problems(self, count):
        for seed in range(count):
            image, p, _ = scene(seed=seed)
            yield {"image": image, "probabilities": p}

    def test_generators(self):
        read = []

        def source():
            for problem in self.problems(40):
                read.append(problem)
                yield problem

        results = dcrf.solve_each(source(), method="mf", threads=2)
        next(results)
        self.assertLess(len(read), 10)  # it reads as it goes
        self.assertEqual(len(list(results)), 39)
        expected = dcrf.solve(method="mf", **read[5])
        self.assertTrue((dcrf.solve_many(read, method="mf")[5].marginals == expected.marginals).all())

    def test_errors_say_which(self):
        problems = list(self.problems(5))
        problems[3] = {"image": problems[3]["image"], "probabilities": np.zeros((2, 2))}
        with self.assertRaisesRegex(dcrf.ProblemError, "problem 3") as caught:
            dcrf.solve_many(problems, method="mf")
        self.assertEqual(caught.exception.index, 3)
        self.assertIsInstance(caught.exception.__cause__, ValueError)
        results = dcrf.solve_many(problems, method="mf", errors="return")
        self.assertEqual([isinstance(result, dcrf.Result) for result in results], [True, True, True, False, True])
        with self.assertRaises(ValueError):
            dcrf.solve_many(problems, errors="ignore")

    def test_interrupt(self):
        """Ctrl-C while problems are being solved that would take days."""
        # Shells let jobs in the background ignore it, and Python then does not install its handler.
        old = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, old)
        rng = np.random.default_rng(0)
        begun = threading.Event()

        def problems():
            for _ in range(4):
                begun.set()
                yield {"unary": rng.random((3, 60, 60))}

        def interrupt():
            begun.wait()
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            dcrf.solve_many(problems(), method="mf", iterations=10**9, stationarity=0, gap=0, damping=0.5,
                            spatial=(2, 1), threads=2)
        thread.join()


if __name__ == "__main__":
    unittest.main()
