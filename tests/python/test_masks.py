"""solve(labels_prior=): rough masks, against the command."""

import json
import os
import subprocess
import tempfile
import unittest
import warnings

import numpy as np

import dcrf
from dcrf import _png

COMMAND = os.environ.get("DCRF_COMMAND", "")


def scene(height=100, width=150):
    """A noisy disc and a bar, the truth, and a map whose things are all too large."""
    y, x = np.mgrid[:height, :width]
    radius, bar = np.hypot(x - 50, y - 47), np.abs(x - 120)
    truth = np.where(radius < 25, 1, np.where(bar < 12, 2, 0))
    rough = np.where(radius < 27, 1, np.where(bar < 14, 2, 0))
    colours = np.array([(60, 90, 60), (190, 120, 60), (70, 80, 190)])
    noise = np.random.default_rng(1).integers(-20, 20, (height, width, 3))
    return (colours[truth] + noise).astype(np.uint8), truth, rough.astype(np.uint8)


class MaskTest(unittest.TestCase):
    def setUp(self):
        self.image, self.truth, self.rough = scene()

    def solve(self, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nothing is wrong with kernels made for masks
            return dcrf.solve(self.image, labels_prior=self.rough, **options)

    def test_borders_move(self):
        result = self.solve()
        self.assertEqual(result.warnings, [])
        self.assertGreater((self.rough != self.truth).sum(), 700)
        self.assertLess((result.labels != self.truth).sum(), 50)

    @unittest.skipUnless(COMMAND, "there is no command")
    def test_far_too_large(self):
        # Half of what the mask holds is background: its colours must not be taken for the disc's.
        rows, columns = np.mgrid[0:300, 0:400]
        radius = np.hypot(rows - 150, columns - 200)
        image = np.where((radius < 70)[..., None], (180, 80, 60), (60, 120, 70)).astype(np.uint8)
        found = dcrf.solve(image, labels_prior=(radius < 85).astype(np.uint8), labels=2, method="mf").labels > 0
        both, either = np.sum(found & (radius < 70)), np.sum(found | (radius < 70))
        self.assertGreater(both / either, 0.98)

    def test_as_the_command(self):
        mask = np.where(self.rough == 1, 255, 0).astype(np.uint8)
        holes = self.rough.copy()
        holes[30:50, 30:130] = 255
        for rough, arguments, options in (
            (self.rough, [], {}),
            (mask, [], {}),
            (holes, [], {}),
            (mask, ["--label-count", "4"], {"labels": 4}),
            (mask, ["--confidence", ".7"], {"confidence": 0.7}),
            (self.rough, ["--method", "lp", "--iterations", "3"], {"method": "lp", "iterations": 3}),
            (self.rough, ["--strength", "4"], {"strength": 4}),
            (self.rough, ["--spatial", "2,1", "--bilateral", "9,9,2"], {"spatial": (2, 1), "bilateral": (9, 9, 2)}),
            (self.rough, ["--preset", "weak", "--temperature", "2"], {"preset": "weak", "temperature": 2}),
        ):
            with self.subTest(arguments=arguments):
                self.compare(rough, arguments, options)

    def compare(self, rough, arguments, options):
        with tempfile.TemporaryDirectory() as folder:
            files = [os.path.join(folder, name) for name in ("image.png", "rough.png", "labels.npy")]
            for file, picture in zip(files, (self.image, rough)):
                with open(file, "wb") as stream:
                    stream.write(_png.encode(picture))
            run = [COMMAND, "solve", files[0], "--labels-prior", files[1], "-o", files[2], "--json", "-", "-q"]
            told = json.loads(subprocess.run(run + arguments, check=True, stdout=subprocess.PIPE).stdout)
            wanted = np.load(files[2])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = dcrf.solve(self.image, labels_prior=rough, **options)
        np.testing.assert_array_equal(result.labels, wanted)
        self.assertEqual(result.energy, told["energy"])

    def test_forms_of_a_map(self):
        wanted = self.solve().labels
        for form in (self.rough.astype(np.int64), self.rough[None], self.rough.ravel(), np.asfortranarray(self.rough)):
            np.testing.assert_array_equal(dcrf.solve(self.image, labels_prior=form).labels, wanted)
        mask = self.rough == 1
        two = dcrf.solve(self.image, labels_prior=mask).labels
        np.testing.assert_array_equal(dcrf.solve(self.image, labels_prior=mask * np.uint8(255)).labels, two)
        holes = np.ma.array(self.rough, mask=self.truth != self.rough)
        result = dcrf.solve(self.image, labels_prior=holes)
        np.testing.assert_array_equal(
            dcrf.solve(self.image, labels_prior=np.where(holes.mask, -1, self.rough)).labels, result.labels
        )
        self.assertLess((result.labels != self.truth).sum(), 50)
        colours = np.repeat(mask[..., None] * np.uint8(255), 4, 2)
        np.testing.assert_array_equal(dcrf.solve(self.image, labels_prior=colours).labels, two)
        np.testing.assert_array_equal(dcrf.solve(self.image, labels_prior=colours[..., :3]).labels, two)
        np.testing.assert_array_equal(dcrf.solve(self.image, labels_prior=mask.astype(float)).labels, two)
        small = dcrf.solve(self.image, labels_prior=self.rough[::2, ::2])
        self.assertLess((small.labels != self.truth).sum(), 50)

    @staticmethod
    def blurred(mask):
        """Shades of grey around the border of a mask, as resizing leaves them."""
        soft = mask.astype(float)
        for axis in (0, 1):
            soft = sum(np.roll(soft, step, axis) for step in range(-2, 3)) / 5
        return np.rint(255 * soft).astype(np.uint8)

    def test_soft_masks(self):
        """A mask that was resized is no map of 250 labels."""
        soft = self.blurred(self.rough == 1)
        self.assertGreater(len(np.unique(soft)), 15)
        wanted = dcrf.solve(self.image, labels_prior=soft > 127).labels
        model = dcrf.Model(self.image, labels_prior=soft)
        self.assertEqual(model.labels, 2)
        for form in (soft, soft / 255):
            np.testing.assert_array_equal(dcrf.solve(self.image, labels_prior=form).labels, wanted)
        trimap = np.where((soft > 0) & (soft < 255), 128, soft)
        np.testing.assert_array_equal(
            dcrf.solve(self.image, labels_prior=trimap).labels,
            dcrf.solve(self.image, labels_prior=np.where(trimap == 128, -1, trimap // 255).astype(int)).labels,
        )
        many = np.repeat(np.arange(0, 240, 10, np.uint8), 10)[None].repeat(self.rough.shape[0], 0)[:, : self.rough.shape[1]]
        self.assertGreater(dcrf.Model(np.zeros(many.shape, np.uint8), labels_prior=many).labels, 100)  # stripes are labels
        with self.assertRaisesRegex(TypeError, "a mask from 0 to 1"):
            dcrf.solve(self.image, labels_prior=soft / 100)
        with self.assertRaisesRegex(ValueError, "has colours"):
            dcrf.solve(self.image, labels_prior=self.image)

    @unittest.skipUnless(COMMAND, "there is no command")
    def test_soft_masks_as_the_command(self):
        soft = self.blurred(self.rough == 1)
        for given in (soft, np.where((soft > 0) & (soft < 255), 128, soft).astype(np.uint8)):
            self.compare(given, [], {})

    def test_confidence_maps(self):
        """Pixels with the confidence 1 keep their labels, those with 0 are unknown, and without any the map is empty."""
        held = np.full(self.rough.shape, 0.999, np.float32)
        held[:, : held.shape[1] // 2] = 1
        labels = dcrf.solve(self.image, labels_prior=self.rough, confidence=held).labels
        np.testing.assert_array_equal(labels[held == 1], self.rough[held == 1])
        self.assertTrue((labels != self.rough)[held < 1].any())
        unknown = np.where(self.truth == self.rough, 0.999, 0)
        np.testing.assert_array_equal(
            dcrf.solve(self.image, labels_prior=self.rough, confidence=unknown).labels,
            dcrf.solve(self.image, labels_prior=np.where(unknown > 0, self.rough, -1).astype(int), confidence=unknown).labels,
        )
        for wrong, text in ((held[1:], "they must agree"), (2 * held, "between 0 and 1")):
            with self.assertRaisesRegex(ValueError, text):
                dcrf.solve(self.image, labels_prior=self.rough, confidence=wrong)
        with self.assertRaisesRegex(ValueError, "goes with an image"):
            dcrf.solve(labels_prior=self.rough, confidence=held)

    def test_scales_and_volumes(self):
        wanted = self.solve()
        with self.assertWarnsRegex(UserWarning, "between 0 and 1"):
            scaled = dcrf.solve(self.image / 255, labels_prior=self.rough)
        self.assertLess((scaled.labels != wanted.labels).sum(), 10)
        volume = np.repeat(self.image[None, ..., 0] / 255, 5, 0)
        two = np.repeat(self.rough[None] == 1, 5, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what is no photograph has the scale that it has
            result = dcrf.solve(volume, labels_prior=two, spacing=(2, 1, 1))
        self.assertLess((result.labels != (self.truth == 1)).mean(), 0.02)

    def test_without_a_picture(self):
        result = dcrf.solve(labels_prior=self.rough)
        again = dcrf.solve(labels_prior=self.rough, confidence=0.7)
        self.assertEqual(result.energy, again.energy)

    def test_mistakes(self):
        for rough, text in ((self.rough * 0 - 1, "no pixel"), (self.rough.T, "swapped")):
            with self.assertRaisesRegex(ValueError, text):
                dcrf.solve(self.image, labels_prior=rough.astype(np.int16))
        with self.assertRaisesRegex(ValueError, "labels=2"):
            dcrf.solve(self.image, labels_prior=self.rough, labels=2)
        model = dcrf.Model(self.image, labels_prior=self.rough)
        energies = np.empty(self.truth.shape + (3,), np.float32)
        rough = self.rough[..., None]
        for arguments in (
            (self.image, rough, None, energies[..., :2]),
            (self.image, rough[1:], None, energies),
            (self.image[1:], rough, None, energies),
            (self.image, rough, np.ones(self.truth.shape + (1,), np.float32)[1:], energies),
        ):
            with self.assertRaises(ValueError):
                model._core.mask_energies(*arguments)


if __name__ == "__main__":
    unittest.main()
