"""What a newcomer meets first: maps of a foreground, scales of pictures, presets, misspelt options, messages, help, and
the conventions of numpy and scipy."""

import copy
import inspect
import pickle
import unittest
import warnings

import numpy as np

import dcrf
from dcrf.pydensecrf import densecrf

try:
    import scipy.sparse.linalg as linalg
except ImportError:
    linalg = None

HEIGHT, WIDTH = 20, 30


def scene():
    """A picture, and the probability of its foreground."""
    rng = np.random.default_rng(2)
    truth = np.zeros((HEIGHT, WIDTH), int)
    truth[5:15, 8:20] = 1
    image = np.where(truth[..., None], (180, 90, 60), (60, 80, 150)) + rng.integers(-9, 9, (HEIGHT, WIDTH, 3))
    p = np.clip(0.5 + 0.2 * (2 * truth - 1) + rng.normal(0, 0.2, truth.shape), 0.02, 0.98)
    return image.astype(np.uint8), p.astype(np.float32), truth


class Foreground(unittest.TestCase):
    def setUp(self):
        self.image, self.p, self.truth = scene()
        self.kernels = {"spatial": (2, 0.5), "bilateral": (10, 20, 2.0)}

    def check(self, image, expected, **map_of):
        for function in (dcrf.solve, dcrf.mean_field):
            with self.assertWarnsRegex(UserWarning, "one label: it is taken for the foreground") as told:
                found = function(image, **map_of, **self.kernels)
            self.assertEqual(told.filename, __file__)
            np.testing.assert_array_equal(found.labels, expected)
            self.assertEqual(found.marginals.shape, (2,) + expected.shape)

    def test_forms(self):
        both = np.stack([1 - self.p, self.p])
        expected = dcrf.solve(self.image, probabilities=both, **self.kernels).labels
        self.assertGreater((expected == self.truth).mean(), 0.95)
        for form in (self.p[None], self.p[..., None], self.p[None, None], self.p):
            self.check(self.image, expected, probabilities=form)
            self.check(self.image, expected, logits=np.log(form / (1 - form)))
            self.check(np.moveaxis(self.image, -1, 0), expected, probabilities=form)
        bytes_of_it = (255 * self.p).round().astype(np.uint8)
        with self.assertWarns(UserWarning):
            found = dcrf.solve(self.image, probabilities=bytes_of_it, **self.kernels)
        self.assertLess((found.labels != expected).sum(), 3)
        grey = self.image[..., 0]
        expected = dcrf.solve(grey, probabilities=both, **self.kernels).labels
        for form in (self.p[None], self.p[..., None], self.p):
            self.check(grey, expected, probabilities=form)

    def test_volumes(self):
        volume = np.repeat(self.image[None, ..., 0], 6, 0)
        p = np.repeat(self.p[None], 6, 0)
        expected = dcrf.solve(volume, probabilities=np.stack([1 - p, p]), **self.kernels).labels
        self.assertEqual(expected.shape, volume.shape)
        for form in (p[None], p[..., None], p):
            self.check(volume, expected, probabilities=form)

    def test_without_an_image_and_smaller(self):
        self.kernels["bilateral"] = None
        expected = dcrf.solve(probabilities=np.stack([1 - self.p, self.p]), **self.kernels).labels
        self.check(None, expected, probabilities=self.p[None])
        with self.assertWarns(UserWarning):
            small = dcrf.solve(self.image, probabilities=self.p[None, ::2, ::2], **self.kernels)
        self.assertEqual(small.labels.shape, (HEIGHT, WIDTH))

    def test_refused(self):
        for options, text in (
            ({"unary": self.p[None]}, "unary= has one label"),
            ({"probabilities": 2 * self.p[None]}, "one label, with numbers from"),
        ):
            for function in (dcrf.solve, dcrf.mean_field):
                with warnings.catch_warnings(), self.assertRaisesRegex(ValueError, text):
                    warnings.simplefilter("ignore")
                    function(self.image, **options, **self.kernels)


class Scales(unittest.TestCase):
    def test_operator_as_solve(self):
        image = scene()[0]
        values = np.random.default_rng(0).random((HEIGHT, WIDTH))
        expected = dcrf.Operator(image, sigma=10, channel_sigma=13) @ values
        with self.assertWarnsRegex(UserWarning, "between 0 and 1"):
            operator = dcrf.Operator((image / 255).astype(np.float32), sigma=10, channel_sigma=13)
        np.testing.assert_allclose(operator @ values, expected, rtol=1e-3)

    def test_drop_in_refuses(self):
        image = scene()[0]
        crf = densecrf.DenseCRF2D(WIDTH, HEIGHT, 2)
        with self.assertRaisesRegex(ValueError, "rgbim holds float64 from 0 to 1"):
            crf.addPairwiseBilateral(80, 13, image / 255, 10)
        crf.addPairwiseBilateral(80, 13, image.astype(float), 10)
        crf.addPairwiseBilateral(80, 0.1, image / 255, 10)  # sigmas for such colours


class Presets(unittest.TestCase):
    def setUp(self):
        self.image, p, _ = scene()
        self.p = np.stack([1 - p, p])

    def kernels(self, **options):
        return dcrf.Model(self.image, probabilities=self.p, **options).kernels

    def test_given_options_win(self):
        preset = self.kernels(preset="paper-msrc-mf")
        self.assertEqual({kernel["normalize"] for kernel in preset}, {"none"})
        given = self.kernels(preset="paper-msrc-mf", normalize="symmetric", spatial=(1, 2))
        self.assertEqual({kernel["normalize"] for kernel in given}, {"symmetric"})
        self.assertEqual(given[0]["weight"], 2)
        self.assertEqual(given[1]["weight"], preset[1]["weight"])

    def test_cliques_can_be_left_out(self):
        problem = {"image": self.image, "probabilities": self.p, "preset": "paper-msrc-mf-cliques"}
        labels = np.random.default_rng(0).integers(0, 2, (HEIGHT, WIDTH))
        self.assertGreater(dcrf.energy(labels=labels, **problem).cliques, 0)
        self.assertEqual(dcrf.energy(labels=labels, cliques=False, **problem).cliques, 0)

    def test_whole(self):
        self.assertEqual(dcrf.PRESETS["saliency"]["iterations"], 1)
        problem = {"image": self.image, "probabilities": self.p}
        options = {"stationarity": 0}
        for preset, method, iterations in (("saliency", "mf", 1), ("weak", "mf", 10), ("paper-msrc-qp", "qp", None)):
            found = dcrf.solve(preset=preset, **problem, **options)
            self.assertEqual(found.method, method)
            if iterations:
                self.assertEqual(found.iterations, iterations)
        self.assertEqual(dcrf.solve(preset="saliency", iterations=3, **problem, **options).iterations, 3)
        self.assertEqual(dcrf.solve(preset="saliency", method="qp", **problem).method, "qp")
        self.assertGreater(dcrf.solve(preset="saliency", method="qp", **problem, **options).iterations, 1)


class MeanFieldChecks(unittest.TestCase):
    def test_probabilities_are_no_logits(self):
        image, p, _ = scene()
        p = np.stack([1 - p, p])
        for kernels in ({"spatial": (2, 0.5), "bilateral": None}, {}):
            with self.assertRaisesRegex(ValueError, "logits= .*look like probabilities"):
                dcrf.mean_field(image, logits=p, **kernels)
            dcrf.mean_field(image, probabilities=p, **kernels)


class Speed(unittest.TestCase):
    def test_mean_field_does_what_it_was_asked_for(self):
        """Polishing and a trace cost more than mean field itself."""
        image, p, _ = scene()
        model = dcrf.Model(image, probabilities=np.stack([1 - p, p]))
        plain, asked = model.solve("mf"), model.solve("mf", polish=True, trace=True)
        self.assertEqual(plain.seconds["polish"], 0)
        self.assertEqual(len(plain.trace["best_energy"]), 0)
        self.assertEqual(plain.energy, plain.unpolished_energy)
        self.assertGreater(asked.seconds["polish"], 0)
        self.assertGreater(len(asked.trace["best_energy"]), 1)
        self.assertGreater(len(model.solve("qp").trace["best_energy"]), 0)


class Help(unittest.TestCase):
    def test_signatures_are_whole(self):
        of_model = [name for name, p in inspect.signature(dcrf.Model).parameters.items() if p.kind is p.KEYWORD_ONLY]
        for function in (dcrf.solve, dcrf.solve_each, dcrf.solve_many, dcrf.tune, dcrf.energy, dcrf.certify, dcrf.verify):
            names = set(inspect.signature(function).parameters)
            self.assertLessEqual(set(of_model), names, function.__name__)
        for function in (dcrf.solve, dcrf.solve_many, dcrf.Model.solve, dcrf.tune, dcrf.batch):
            self.assertIn("polish_rounds", inspect.signature(function).parameters)
        for thing in dcrf.__all__:
            found = getattr(dcrf, thing)
            for one in [found] + [getattr(found, name, None) for name in ("solve", "update", "apply")]:
                if callable(one) and not isinstance(one, type) and not inspect.isbuiltin(one):
                    kinds = {p.kind for p in inspect.signature(one).parameters.values()}
                    self.assertNotIn(inspect.Parameter.VAR_KEYWORD, kinds, thing)

    def test_misspelt_options(self):
        unary = np.zeros((2, 5, 6))
        problems = [{"unary": unary}]
        for call in (
            lambda: dcrf.solve(unary=unary, bilatral=None),
            lambda: dcrf.solve_many(problems, bilatral=None),
            lambda: dcrf.tune(problems, [unary[0]], bilatral=None),
            lambda: dcrf.batch(problems, bilatral=None),
            lambda: dcrf.energy(unary=unary, labels=unary[0], bilatral=None),
            lambda: dcrf.certify(unary=unary, labels=unary[0], bilatral=None),
            lambda: dcrf.verify(unary=unary, certificate=b"", bilatral=None),
            lambda: dcrf.mean_field_many(problems, bilatral=None),
            lambda: dcrf.mean_field_batch(unary=unary[None], bilatral=None),
        ):
            with self.assertRaisesRegex(TypeError, "has no option 'bilatral'; did you mean 'bilateral'"):
                call()

    def test_messages_name_the_argument(self):
        model = dcrf.Model(unary=np.zeros((2, 5, 6)))
        for name in ("iterations", "rounding_draws", "polish_rounds", "evaluate_every", "seed"):
            with self.assertRaisesRegex(ValueError, f"{name} is -2; it must be a whole number"):
                model.solve("mf", **{name: -2})
        with self.assertRaisesRegex(ValueError, "iterations is 2.5"):
            model.solve("mf", iterations=2.5)
        with self.assertRaisesRegex(ValueError, "gap is 'small'; it must be a number"):
            model.solve("mf", gap="small")
        with self.assertRaisesRegex(ValueError, "refits is -1"):
            dcrf.Scribbles(np.zeros((5, 6, 3), np.uint8), refits=-1)


class Conventions(unittest.TestCase):
    def setUp(self):
        image = scene()[0]
        self.operator = dcrf.Operator(image, sigma=10, channel_sigma=20)
        self.values = np.random.default_rng(0).random((HEIGHT, WIDTH)).astype(np.float32)

    def test_a_matrix(self):
        size = HEIGHT * WIDTH
        self.assertEqual(self.operator.shape, (size, size))
        self.assertEqual(self.operator.grid, (HEIGHT, WIDTH))
        expected = self.operator @ self.values
        np.testing.assert_array_equal(self.operator @ self.values.ravel(), expected.ravel())
        both = np.stack([self.values, 2 * self.values], -1)
        found = self.operator @ both.reshape(size, 2)
        np.testing.assert_array_equal(found, self.operator.apply(both).reshape(size, 2))
        for wrong in (np.zeros(size - 1), np.zeros((2, size))):
            with self.assertRaises(ValueError):
                self.operator @ wrong

    @unittest.skipUnless(linalg, "there is no scipy")
    def test_scipy(self):
        """(K + I) x = b by conjugate gradients; K is positive up to the lattice's errors."""
        operator = linalg.aslinearoperator(self.operator)
        self.assertIsInstance(operator, linalg.LinearOperator)
        vector = self.values.ravel()
        np.testing.assert_array_equal(operator.T @ vector, self.operator @ vector)
        system = operator + linalg.aslinearoperator(np.eye(len(vector), dtype=np.float32))
        found, code = linalg.cg(system, vector)
        self.assertEqual(code, 0)
        np.testing.assert_allclose(self.operator @ found + found, vector, atol=1e-3)
        largest = linalg.eigsh(operator, 1, return_eigenvectors=False)[0]
        self.assertAlmostEqual(float(largest), 1, delta=0.05)  # normalized symmetrically

    def test_pickle_and_copy(self):
        expected = self.operator @ self.values
        for other in (pickle.loads(pickle.dumps(self.operator)), copy.copy(self.operator), copy.deepcopy(self.operator)):
            np.testing.assert_array_equal(other @ self.values, expected)
            self.assertEqual(other.grid, self.operator.grid)
        spatial = dcrf.Operator(shape=(5, 6), sigma=2)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(spatial)).row_sums(), spatial.row_sums())

    def test_reprs(self):
        scribbles = dcrf.Scribbles(scene()[0], labels=3)
        self.assertEqual(repr(scribbles), "<dcrf.Scribbles over (20, 30), 3 labels; 0 pixels drawn on>")
        strokes = np.full((HEIGHT, WIDTH), -1)
        strokes[2, 2:6], strokes[9, 10:14] = 0, 1
        scribbles.update(strokes)
        self.assertIn("8 pixels drawn on", repr(scribbles))

    def test_one_name_for_one_thing(self):
        self.assertFalse(hasattr(dcrf, "MeanField"))
        for name in ("solve_many", "solve_each", "mean_field_many", "tune", "batch"):
            parameters = inspect.signature(getattr(dcrf, name)).parameters
            self.assertIn("threads", parameters)
            self.assertNotIn("workers", parameters)


if __name__ == "__main__":
    unittest.main()
