"""dcrf.Scribbles and solve(scribbles=)."""

import threading
import unittest
import warnings

import numpy as np

import dcrf


def scene(height=40, width=60):
    """A noisy disc, its truth, and a stroke on either side of its edge."""
    y, x = np.mgrid[:height, :width]
    truth = ((x - 25) ** 2 + (y - 20) ** 2 < 144).astype(np.uint8)
    noise = np.random.default_rng(1).integers(-20, 20, (height, width, 3))
    image = np.where(truth[..., None], (190, 120, 60), (60, 90, 60)) + noise
    strokes = np.full((height, width), -1)
    strokes[20, 18:32] = 1
    strokes[3, 5:55] = 0
    return image.astype(np.uint8), truth, strokes


class ScribblesTest(unittest.TestCase):
    def setUp(self):
        self.image, self.truth, self.strokes = scene()

    def test_mask(self):
        scribbles = dcrf.Scribbles(self.image)
        mask = scribbles.update(self.strokes)
        self.assertEqual((mask.dtype, mask.shape), (np.int32, self.truth.shape))
        # Half of the 75 pixels of the outline may be off by one.
        self.assertLess((mask != self.truth).sum(), 38)
        np.testing.assert_array_equal(mask, scribbles.labels)
        marginals = scribbles.marginals
        self.assertEqual(marginals.shape, (2,) + self.truth.shape)
        np.testing.assert_allclose(marginals.sum(0), 1, atol=1e-5)
        np.testing.assert_array_equal(marginals.argmax(0), mask)
        self.assertEqual(scribbles.info["strokes"], 64)
        self.assertEqual(scribbles.info["changed"], mask.size)

    def test_strokes_bind_and_history_does_not_matter(self):
        scribbles = dcrf.Scribbles(self.image, threads=2)
        first = scribbles.update(self.strokes)
        more = self.strokes.copy()
        more[20, 25] = 0
        second = scribbles.update(more)
        self.assertEqual(second[20, 25], 0)
        np.testing.assert_array_equal(scribbles.update(self.strokes), first)
        np.testing.assert_array_equal(dcrf.Scribbles(self.image, threads=1).update(more), second)

    def test_layouts_and_types(self):
        expected = dcrf.Scribbles(self.image).update(self.strokes)
        bytes_map = np.where(self.strokes < 0, 255, self.strokes).astype(np.uint8)
        for image in (self.image, self.image.astype(np.float64), self.image.transpose(2, 0, 1)):
            for strokes in (self.strokes, bytes_map, self.strokes.tolist(), np.asfortranarray(bytes_map)):
                np.testing.assert_array_equal(dcrf.Scribbles(image).update(strokes), expected)
        grey = dcrf.Scribbles(self.image[..., 0]).update(self.strokes)
        self.assertLess((grey != self.truth).sum(), 38)

    def test_volume(self):
        volume = np.repeat(self.image[None, ..., 0], 5, 0)
        strokes = np.full(volume.shape, -1)
        strokes[2] = self.strokes
        mask = dcrf.Scribbles(volume, spacing=(2, 1, 1)).update(strokes)
        self.assertLess((mask != self.truth).sum(), 5 * 38)

    def test_solve(self):
        scribbles = dcrf.Scribbles(self.image)
        mask = scribbles.update(self.strokes)
        for method in ("mf", "qp", "lp"):
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # nothing is wrong with kernels made for scribbles
                result = dcrf.solve(self.image, scribbles=self.strokes, method=method)
            self.assertEqual(result.warnings, [])
            self.assertLess((result.labels != self.truth).sum(), 38)
            self.assertLess((result.labels != mask).mean(), 0.01)
            np.testing.assert_array_equal(result.labels[self.strokes >= 0], self.strokes[self.strokes >= 0])
        # The same energies, kernels of one's own.
        model = dcrf.Model(self.image, unary=scribbles.energies, **scribbles.kernels)
        self.assertEqual(model.solve("lp").energy, result.energy)
        alone = dcrf.solve(self.image, scribbles=self.strokes, method="mf", spatial=None, bilateral=None)
        np.testing.assert_array_equal(alone.labels, scribbles.energies.argmin(0))

    def test_kernels_of_ones_own_are_judged(self):
        for own in ({"strength": 1e6}, {"spatial": (3, 1e6)}):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = dcrf.solve(self.image, scribbles=self.strokes, **own)
            self.assertTrue(any("times as strong" in text for text in result.warnings), own)

    def test_settings(self):
        scribbles = dcrf.Scribbles(self.image, refits=0, distance_weight=1.0)
        self.assertEqual(scribbles.settings["refits"], 0)
        scribbles.update(self.strokes)
        self.assertEqual(scribbles.info["rounds"], 1)
        energies = scribbles.energies[:, self.strokes < 0]
        # Distance costs at most a nat.
        self.assertGreaterEqual(energies.min(), 0)
        self.assertLessEqual(energies.max(), 1 + scribbles.settings["colour_limit"] + 1e-6)

    def test_mistakes(self):
        scribbles = dcrf.Scribbles(self.image)
        for call, error, text in (
            (lambda: scribbles.labels, ValueError, "no mask yet"),
            (lambda: scribbles.update(np.where(self.strokes < 0, -1, 0)), ValueError, "one label only"),
            (lambda: scribbles.update(self.strokes + 1), ValueError, "the label 2"),
            (lambda: scribbles.update(self.strokes.T), ValueError, "swapped"),
            (lambda: scribbles.update(self.strokes.astype(float)), TypeError, "integers"),
            (lambda: dcrf.Scribbles(self.image, labels=1), ValueError, "2 to 255 labels"),
            (lambda: dcrf.Scribbles(self.image, colour=3), TypeError, "unexpected keyword argument 'colour'"),
            (lambda: dcrf.Scribbles(self.image, components=0), ValueError, "components"),
            (lambda: dcrf.solve(scribbles=self.strokes), TypeError, "needs an image"),
            (
                lambda: dcrf.solve(self.image, scribbles=self.strokes, unary=np.zeros((2, 40, 60))),
                TypeError,
                "not both",
            ),
        ):
            with self.assertRaisesRegex(error, text):
                call()

    def test_threads_of_python(self):
        expected = dcrf.Scribbles(self.image).update(self.strokes)
        masks = [None] * 4

        def work(i):
            masks[i] = dcrf.Scribbles(self.image, threads=1).update(self.strokes)

        workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        for mask in masks:
            np.testing.assert_array_equal(mask, expected)


if __name__ == "__main__":
    unittest.main()
