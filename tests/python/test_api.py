"""The package dcrf: layouts and types give one result, results hold together, errors help."""

import unittest
import zlib

import numpy as np

import dcrf


def scene(height=14, width=18, labels=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = (np.arange(width)[None, :] * labels // width).repeat(height, 0)
    image = np.stack([60 * truth + 40] * 3, -1) + rng.integers(-8, 9, (height, width, 3))
    logits = rng.normal(0, 1, (height, width, labels))
    logits[np.arange(height)[:, None], np.arange(width)[None, :], truth] += 1.5
    e = np.exp(logits)
    return image.astype(np.uint8), (e / e.sum(-1, keepdims=True)).astype(np.float64), truth


def exact_energy(unary, labels, features, weights, normalize):
    """By double loops; unary (N, labels)."""
    n = len(labels)
    total = unary[np.arange(n), labels].sum()
    for f, weight in zip(features, weights):
        k = np.exp(-((f[:, None] - f[None]) ** 2).sum(-1) / 2)
        if normalize:
            s = 1 / np.sqrt(k.sum(1))
            k = k * s[:, None] * s[None]
        total += weight * (k * (labels[:, None] != labels[None])).sum()
    return total


class Strength(unittest.TestCase):
    def measure_by_hand(self, image, unary, temperature):
        """Pairs of like colours one or two pixels apart: how many disagree, how many should, how many there are."""
        best = unary.argmin(-1)
        e = np.exp(-(unary - unary.min(-1, keepdims=True)) / temperature)
        e = 1 - 1 / e.sum(-1)
        count = unary.shape[-1]
        differing = expected = pairs = 0
        for axis in (0, 1):
            for distance in (1, 2):
                a = [slice(None)] * 2
                b = [slice(None)] * 2
                a[axis], b[axis] = slice(None, -distance), slice(distance, None)
                a, b = tuple(a), tuple(b)
                alike = (np.abs(image[a].astype(int) - image[b].astype(int)) < 12).all(-1)
                pairs += alike.sum()
                differing += (best[a] != best[b])[alike].sum()
                both = 1 - ((1 - e[a]) * (1 - e[b]) + e[a] * e[b] / (count - 1))
                expected += both[alike].sum()
        return differing, expected, pairs

    def test_measured(self):
        image, p, _ = scene(40, 50)
        unary = -np.log(p)
        measured = dcrf.Model(image, unary=unary).measured_strength()
        differing, expected, pairs = self.measure_by_hand(image, unary, 1)
        self.assertEqual(measured["pairs"], pairs)
        # The library interpolates between temperatures a factor of two apart.
        self.assertAlmostEqual(measured["rho"] * expected / differing, 1, delta=0.01)
        _, at_temperature, _ = self.measure_by_hand(image, unary, measured["temperature"])
        self.assertAlmostEqual(at_temperature / differing, 1, delta=0.01)
        two_best = np.sort(unary, -1)
        margin = np.exp(np.log(two_best[..., 1] - two_best[..., 0]).mean())
        self.assertAlmostEqual(measured["margin"] / margin, 1, places=5)

    def test_scale_changes_nothing(self):
        image, p, truth = scene(40, 50)
        unary = -np.log(p)
        plain = dcrf.Model(image, unary=unary)
        for factor in (1 / 3, 3, 10):
            scaled = dcrf.Model(image, unary=factor * unary)
            self.assertAlmostEqual(scaled.strength / plain.strength / factor, 1, places=4)
            # The labelling of least energy is the same; rounding may move a pixel or two.
            differing = scaled.solve("lp").labels != plain.solve("lp").labels
            self.assertLess(differing.mean(), 0.002)
        self.assertGreater((plain.solve().labels == truth).mean(), (unary.argmin(-1) == truth).mean())

    def test_set(self):
        image, p, _ = scene()
        model = dcrf.Model(image, probabilities=p, strength=3, spatial_share=0.25)
        self.assertAlmostEqual(model.strength, 3)
        same = dcrf.Model(image, probabilities=p, spatial=(2, 0.375), bilateral=(40, 8, 1.125))
        labels = p.argmax(-1)
        self.assertAlmostEqual(model.energy(labels).total, same.energy(labels).total, places=4)
        model.set_strength("auto")
        self.assertEqual(model.strength, model.measured_strength()["strength"])
        twice = dcrf.Model(image, probabilities=p, strength_factor=2)
        self.assertAlmostEqual(twice.strength, 2 * model.strength)
        model.set_weight(0, 1)
        self.assertAlmostEqual(model.strength, 2 + 0.75 * model.measured_strength()["strength"])
        with self.assertRaisesRegex(ValueError, "set_weight"):
            same.set_strength(1)
        cold = dcrf.Model(image, probabilities=p, temperature=0.5)
        self.assertAlmostEqual(cold.energy(labels).unary, 2 * same.energy(labels).unary, places=2)

    def test_changes(self):
        image, p, _ = scene()
        before = p.argmax(-1)
        for strength in ("auto", 0, 60):
            result = dcrf.solve(image, probabilities=p, strength=strength)
            self.assertEqual(result.changes["pixels_changed"], (result.labels != before).sum())
            self.assertEqual(result.changes["labels_after"], len(np.unique(result.labels)))
            self.assertEqual(bool(result.warnings), strength == 60, result.warnings)


class Values(unittest.TestCase):
    def test_energy(self):
        image, p, truth = scene()
        height, width = truth.shape
        y, x = np.mgrid[:height, :width]
        position = np.stack([y.ravel(), x.ravel()], 1).astype(float)
        bilateral = np.concatenate([position / 20, image.reshape(-1, 3) / 10], 1)
        for normalize in ("none", "symmetric"):
            got = dcrf.energy(image, probabilities=p, labels=truth, spatial=(2, 1.5),
                              bilateral=(20, 10, 0.5), normalize=normalize, operator="exact")
            expected = exact_energy(-np.log(p.reshape(-1, 3)), truth.ravel(),
                                    [position / 2, bilateral], [1.5, 0.5], normalize == "symmetric")
            self.assertAlmostEqual(got.total / expected, 1, places=5)
            self.assertAlmostEqual(got.unary + got.pairwise + got.cliques, got.total, places=6)

    def test_methods(self):
        image, p, truth = scene()
        for method in ("mf", "qp", "lp"):
            result = dcrf.solve(image, probabilities=p, method=method, bilateral=(20, 10, 1))
            self.assertEqual(result.labels.shape, truth.shape)
            self.assertEqual(result.marginals.shape, (3,) + truth.shape)
            np.testing.assert_allclose(result.marginals.sum(0), 1, atol=1e-3)
            self.assertGreater(dcrf.metrics.accuracy(result.labels, truth), 0.95)
            model = dcrf.Model(image, probabilities=p, bilateral=(20, 10, 1))
            self.assertEqual(model.energy(result.labels).total, result.energy)
            self.assertLessEqual(result.energy, model.energy(p.argmax(-1)).total)
            self.assertIn(method, repr(result))
            self.assertEqual(len(result.trace["iteration"]), len(result.trace["time_s"]))
            if method == "lp":
                self.assertLessEqual(result.lower_bound, result.energy)
                self.assertGreaterEqual(result.relative_gap, 0)

    def test_certify(self):
        image, p, truth = scene()
        model = dcrf.Model(image, probabilities=p, bilateral=(20, 10, 1))
        result = model.solve("mf")
        certificate = model.certify(result.labels, time_limit_s=5)
        self.assertLessEqual(certificate.lower_bound, result.energy)
        self.assertLess(certificate.relative_gap, 0.1)
        self.assertIn("energy", str(certificate))

    def test_proofs(self):
        image, p, truth = scene()
        model = dcrf.Model(image, probabilities=p, bilateral=(20, 10, 1))
        plain = model.solve("lp")
        self.assertIsNone(plain.proven)
        self.assertIsNone(plain.certificate)
        result = model.solve("lp", proof=True)
        self.assertEqual(result.proven.shape, result.labels.shape)
        self.assertEqual(result.possible.shape, (model.labels,) + result.labels.shape)
        self.assertTrue((result.proven == (result.possible.sum(0) == 1)).all())
        self.assertTrue(np.take_along_axis(result.possible, result.labels[None].astype(int), 0).all())
        self.assertGreater(result.proven.mean(), 0.5)
        self.assertLessEqual(result.energy, plain.energy * (1 + 1e-6))
        self.assertLessEqual(result.lower_bound, result.energy)
        with self.assertRaises(NotImplementedError):
            model.solve("mf", proof=True)

    def test_certificates(self):
        image, p, truth = scene()
        model = dcrf.Model(image, probabilities=p, bilateral=(20, 10, 1))
        result = model.solve("lp", certificate=True)
        found = model.verify(result.certificate, result.labels)
        self.assertTrue((found.possible <= result.possible).all())
        self.assertEqual((found.right, found.wrong), (found.proven.sum(), 0))
        self.assertAlmostEqual(found.energy, result.energy, delta=1e-6 * result.energy)
        self.assertLessEqual(found.lower_bound, found.energy)
        wrong = (result.labels + 1) % model.labels
        self.assertEqual(model.verify(result.certificate, wrong).right, 0)
        self.assertGreaterEqual(model.verify(result.certificate, wrong).wrong, found.proven.sum())
        changed = bytearray(result.certificate)
        changed[200] ^= 1
        for certificate in (bytes(changed), b"", result.certificate[:-1]):
            with self.assertRaises(ValueError):
                model.verify(certificate)
        with self.assertRaisesRegex(ValueError, "weight"):
            dcrf.verify(image, probabilities=p, bilateral=(20, 10, 2), certificate=result.certificate)

    def test_weights_keep_the_lattice(self):
        image, p, _ = scene()
        model = dcrf.Model(image, probabilities=p, bilateral=(20, 10, 1))
        model.set_weight(1, 3)
        other = dcrf.Model(image, probabilities=p, bilateral=(20, 10, 3))
        self.assertTrue((model.solve("mf").labels == other.solve("mf").labels).all())
        self.assertEqual(model.solve("mf").energy, other.solve("mf").energy)

    def test_superpixels_of_volumes(self):
        z, y, x = np.mgrid[:6, :16, :16]
        boxes = x // 8 + 2 * (y // 8) + 4 * (z // 3)
        volume = 500.0 * boxes - 1000
        # 8 x 8 x 3 voxels of 1 x 1 x 2.5 mm are about cubes of 8 mm.
        regions = dcrf.superpixels(volume, shape=volume.shape, region_size=8, spacing=(2.5, 1, 1))
        np.testing.assert_array_equal(regions, boxes)
        other_scale = dcrf.superpixels(volume / 1e6, shape=volume.shape, region_size=8, spacing=(2.5, 1, 1))
        np.testing.assert_array_equal(other_scale, boxes)
        with self.assertRaisesRegex(NotImplementedError, "mean shift is for grids of one or two axes"):
            dcrf.superpixels(volume, "meanshift", shape=volume.shape)
        energies = np.random.default_rng(0).random((2,) + volume.shape)
        options = {"unary": energies, "spacing": (2.5, 1, 1), "clique_cost": 3.0, "bilateral": (3, 500)}
        named = dcrf.Model(volume, cliques="slic", **options)
        given = dcrf.Model(volume, cliques=dcrf.superpixels(volume, shape=volume.shape, spacing=(2.5, 1, 1)), **options)
        labels = energies.argmin(0)
        self.assertEqual(named.energy(labels), given.energy(labels))
        self.assertGreater(named.energy(labels).cliques, 0)

    def test_cliques(self):
        image, p, truth = scene()
        regions = truth.astype(np.int64)
        free = dcrf.solve(image, probabilities=p, method="mf", spatial=None, bilateral=None)
        bound = dcrf.solve(image, probabilities=p, method="mf", spatial=None, bilateral=None,
                           cliques=regions, clique_cost=1e4)
        self.assertLess(dcrf.metrics.accuracy(free.labels, truth), 1)
        self.assertEqual(dcrf.metrics.accuracy(bound.labels, truth), 1)
        for cost in (None, 5, (10, 500)):
            dcrf.solve(image, probabilities=p, method="mf", cliques="slic", clique_cost=cost)

    def test_many(self):
        problems = []
        for seed in range(6):
            image, p, _ = scene(seed=seed)
            problems.append({"image": image, "probabilities": p})
        together = dcrf.solve_many(problems, method="mf", threads=3)
        for problem, result in zip(problems, together):
            alone = dcrf.solve(method="mf", **problem)
            self.assertTrue((alone.labels == result.labels).all())
            self.assertTrue((alone.marginals == result.marginals).all())


class Layouts(unittest.TestCase):
    def setUp(self):
        self.image, self.p, _ = scene()
        self.expected = self.run_with(self.image, self.p)

    def run_with(self, image, p, **options):
        return dcrf.solve(image, probabilities=p, method="mf", **options).marginals

    def same(self, image, p, **options):
        self.assertTrue((self.run_with(image, p, **options) == self.expected).all())

    def test_orders(self):
        chw, labels_first = np.moveaxis(self.image, -1, 0), np.moveaxis(self.p, -1, 0)
        self.same(chw, labels_first)
        self.same(self.image, labels_first)
        self.same(chw, self.p)
        self.same(self.image, self.p.reshape(-1, 3))
        self.same(self.image, np.ascontiguousarray(labels_first).reshape(3, -1))
        self.same(np.asfortranarray(self.image), np.asfortranarray(self.p))
        self.same(self.image[::-1, ::-1][::-1, ::-1], self.p)

    def test_types(self):
        for dtype in (np.uint16, np.int16, np.int32, np.int64, np.float32, np.float64, ">f8"):
            self.same(self.image.astype(dtype), self.p)
        frozen = self.image.copy()
        frozen.flags.writeable = False
        self.same(frozen, self.p)

    def test_logits_and_unary(self):
        logits = np.log(self.p)
        for options in ({"unary": -logits}, {"logits": logits}):
            got = dcrf.solve(self.image, method="mf", **options).marginals
            np.testing.assert_allclose(got, self.expected, atol=1e-4)

    def test_array_protocol(self):
        class Tensor:
            """What a torch tensor on the CPU offers."""

            def __init__(self, values):
                self.values = values

            def detach(self):
                return self

            def __array__(self, dtype=None, copy=None):
                return np.asarray(self.values, dtype)

        self.same(Tensor(self.image), Tensor(self.p))

    def test_grids(self):
        line = dcrf.solve(unary=np.random.default_rng(0).random((2, 50)), method="mf")
        self.assertEqual(line.labels.shape, (50,))
        rng = np.random.default_rng(0)
        volume = rng.integers(0, 500, (5, 6, 7)).astype(np.int16)
        unary = rng.random((2, 5, 6, 7))
        result = dcrf.solve(volume, unary=unary, method="mf", spacing=(3, 1, 1))
        self.assertEqual(result.labels.shape, (5, 6, 7))
        self.assertEqual(result.picture().shape, (6, 7, 3))
        hyper = dcrf.solve(rng.random((8, 9, 10)) * 255, unary=rng.random((8, 9, 2)), method="mf",
                           bilateral=(5, 20, 1))
        self.assertEqual(hyper.labels.shape, (8, 9))


class Manners(unittest.TestCase):
    def setUp(self):
        self.image, self.p, self.truth = scene()

    def test_errors_help(self):
        image, p, u = self.image, self.p, -np.log(self.p)
        cases = [
            (ValueError, "swapped", lambda: dcrf.solve(image.transpose(1, 0, 2), probabilities=p)),
            (TypeError, r"nothing says .* unary=, probabilities=, logits= and labels_prior= \(strokes: dcrf.Scribbles\)", lambda: dcrf.solve(image)),
            (TypeError, r"exactly one of unary=, probabilities=, logits= and labels_prior=", lambda: dcrf.solve(image, unary=u, labels_prior=u[0])),
            (TypeError, "exactly one", lambda: dcrf.solve(image, unary=u, logits=p)),
            (ValueError, "between 0 and 1", lambda: dcrf.solve(image, probabilities=p * 9)),
            (ValueError, "'mf', 'qp' or 'lp'", lambda: dcrf.solve(image, unary=u, method="x")),
            (ValueError, "normalize", lambda: dcrf.solve(image, unary=u, normalize="x")),
            (TypeError, "no option 'itertions'; did you mean 'iterations'", lambda: dcrf.solve(image, unary=u, itertions=3)),
            (ValueError, "sigma", lambda: dcrf.solve(image, unary=u, spatial=(0, 1))),
            (ValueError, "spatial", lambda: dcrf.solve(image, unary=u, spatial=(3, 1, 1))),
            (ValueError, "bilateral", lambda: dcrf.solve(image, unary=u, bilateral=(80,))),
            (ValueError, "strength", lambda: dcrf.solve(image, unary=u, strength="strong")),
            (ValueError, "strength", lambda: dcrf.solve(image, unary=u, strength=-1)),
            (ValueError, "temperature", lambda: dcrf.solve(image, unary=u, temperature=0)),
            (ValueError, "spatial_share", lambda: dcrf.solve(image, unary=u, spatial_share=2)),
            (ValueError, "weight of its own", lambda: dcrf.solve(
                image, unary=u, spatial=(3, 1), bilateral=(60, 8, 1), strength=2)),
            (ValueError, "not normalized", lambda: dcrf.solve(image, unary=u, normalize="none")),
            (ValueError, "nan", lambda: dcrf.solve(image, unary=u * np.nan)),
            (TypeError, "real numbers", lambda: dcrf.solve(image, unary=u.astype(str))),
            (TypeError, "real numbers", lambda: dcrf.solve(image, unary=u * 1j)),
            (ValueError, "between 0 and 2", lambda: dcrf.energy(image, unary=u, labels=self.truth + 1)),
            (ValueError, "swapped", lambda: dcrf.energy(image, unary=u, labels=self.truth.T)),
        ]
        for kind, text, call in cases:
            with self.assertRaisesRegex(kind, text):
                call()

    def test_progress(self):
        seen = []
        result = dcrf.solve(self.image, probabilities=self.p, method="mf", iterations=4, stationarity=0, trace=True,
                            progress=lambda moment: seen.append((moment["iteration"], moment["stage"])))
        self.assertEqual(seen, [(0, "candidates"), (0, "candidates"), *((k, "solve") for k in range(1, 5)), (4, "finish")])
        self.assertEqual(seen, list(zip(result.trace["iteration"], result.trace["stage"])))
        for stage, iterations in (("candidates", 0), ("solve", 1)):
            result = dcrf.solve(self.image, probabilities=self.p, method="mf",
                                progress=lambda moment: dcrf.STOP if moment["stage"] == stage else None)
            self.assertEqual((result.stop, result.iterations), ("cancelled", iterations))
        seen = []
        dcrf.solve(self.image, probabilities=self.p, method="lp", proof=True, progress=lambda moment: seen.append(moment["stage"]))
        self.assertEqual(seen[-2:], ["finish", "proof"])
        model = dcrf.Model(self.image, probabilities=self.p)
        with self.assertRaisesRegex(RuntimeError, "in use"):
            model.solve("mf", progress=lambda moment: model.solve("mf"))
        self.assertEqual(model.solve("mf").labels.shape, self.truth.shape)

    def test_html(self):
        result = dcrf.solve(self.image, probabilities=self.p, method="mf")
        text = result._repr_html_()
        self.assertIn("data:image/png;base64,", text)
        self.assertIn("energy", text)

    def test_png(self):
        from dcrf._png import encode

        picture = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
        data = encode(picture)
        at = data.index(b"IDAT")
        size = int.from_bytes(data[at - 4 : at], "big")
        rows = np.frombuffer(zlib.decompress(data[at + 4 : at + 4 + size]), np.uint8).reshape(5, 22)
        self.assertTrue((rows[:, 1:].reshape(5, 7, 3) == picture).all() and (rows[:, 0] == 0).all())

    def test_metrics(self):
        guess = np.array([[0, 1], [2, 2]])
        truth = np.array([[0, 1], [1, 255]])
        np.testing.assert_array_equal(dcrf.metrics.confusion(guess, truth, 3),
                                      [[1, 0, 0], [0, 1, 1], [0, 0, 0]])
        np.testing.assert_allclose(dcrf.metrics.class_accuracy(guess, truth, 3), [1, 0.5, np.nan])
        # Class 2 is only predicted, class 3 is nowhere: neither has a value or enters the mean.
        np.testing.assert_allclose(dcrf.metrics.iou(guess, truth, 4), [1, 0.5, np.nan, np.nan])
        self.assertEqual(dcrf.metrics.mean_iou(guess, truth, 4), 0.75)
        self.assertTrue(np.isnan(dcrf.metrics.mean_iou(guess, np.full((2, 2), 255))))

    def test_metrics_against_sets_of_pixels(self):
        random = np.random.default_rng(3)
        for _ in range(20):
            truth = random.choice([0, 1, 3, 255], (6, 7))
            guess = random.integers(0, 5, (6, 7))
            scored = {i for i in range(42) if truth.flat[i] != 255}
            expected = []
            for label in range(5):
                a = {i for i in scored if truth.flat[i] == label}
                b = {i for i in scored if guess.flat[i] == label}
                expected.append(len(a & b) / len(a | b) if a else np.nan)
            np.testing.assert_allclose(dcrf.metrics.iou(guess, truth, 5), expected, rtol=1e-15)
            self.assertAlmostEqual(dcrf.metrics.mean_iou(guess, truth, 5), np.nanmean(expected), 14)


if __name__ == "__main__":
    unittest.main()
