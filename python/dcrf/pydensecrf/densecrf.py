"""The classes of ``pydensecrf.densecrf``.

>>> import numpy as np
>>> from dcrf.pydensecrf import densecrf as dcrf
>>> crf = dcrf.DenseCRF2D(4, 3, 2)           # width, height, labels
>>> crf.setUnaryEnergy(np.zeros((2, 12), np.float32))
>>> crf.addPairwiseGaussian(sxy=3, compat=3)
>>> np.array(crf.inference(5)).shape
(2, 12)
"""

import enum
import math
import numbers

import numpy as np

from .. import _core
from .._arrays import array, one_or_many, thread_count
from .._device import on_device

__all__ = [
    "CONST_KERNEL",
    "DIAG_KERNEL",
    "FULL_KERNEL",
    "NO_NORMALIZATION",
    "NORMALIZE_BEFORE",
    "NORMALIZE_AFTER",
    "NORMALIZE_SYMMETRIC",
    "ConstUnary",
    "DenseCRF",
    "DenseCRF2D",
    "KernelType",
    "LogisticUnary",
    "NormalizationType",
    "Unary",
    "set_device",
    "set_threads",
]


class KernelType(enum.IntEnum):
    """What a learner may change; it makes no difference to inference."""

    CONST_KERNEL = 0
    DIAG_KERNEL = 1
    FULL_KERNEL = 2


class NormalizationType(enum.IntEnum):
    """How a kernel is divided by its row sums."""

    NO_NORMALIZATION = 0
    NORMALIZE_BEFORE = 1
    NORMALIZE_AFTER = 2
    NORMALIZE_SYMMETRIC = 3


CONST_KERNEL, DIAG_KERNEL, FULL_KERNEL = KernelType
NO_NORMALIZATION, NORMALIZE_BEFORE, NORMALIZE_AFTER, NORMALIZE_SYMMETRIC = NormalizationType

_threads = 0
_device = None


def set_threads(threads):
    """How many threads objects that are made from now on use; 0: one for each core.

    A program that runs many processes or threads of its own is better off with 1.
    """
    global _threads
    _threads = _count(threads, "threads", least=0)


def set_device(device):
    """Where objects that are made from now on work: "cpu", "cuda" or "cuda:1"; None: what the environment
    variable DCRF_DEVICE says, the CPU where there is none.

    The results are those of the CPU but for rounding. A model that a device cannot have (more than 512 labels, or
    features of an extent that its lattice has no numbers for) is on the CPU; ``device`` of an object tells.
    """
    global _device
    _device = None if device is None else str(device)


def _count(value, what, least=1):
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        if not (isinstance(value, numbers.Real) and float(value).is_integer()):
            raise TypeError(f"{what} must be a whole number, not {value!r}")
        value = int(value)
    value = value.__index__()
    if not least <= value < 2**31:
        raise ValueError(f"{what} is {value}; it must be at least {least} and below 2**31")
    return value


def _sigmas(value, count, what):
    """One positive number for each of `count` axes, from one number or a sequence."""
    sigmas = one_or_many(value, count, what)
    if not all(math.isfinite(sigma) and sigma > 0 for sigma in sigmas):
        raise ValueError(f"{what} must be positive and finite, not {value!r}")
    return sigmas


def _normalization(value):
    if value not in (0, 1, 2, 3):
        raise ValueError(
            f"normalization is {value!r}; it must be NO_NORMALIZATION, NORMALIZE_BEFORE, "
            "NORMALIZE_AFTER or NORMALIZE_SYMMETRIC"
        )
    return int(value)


def _kernel(value):
    if value not in (0, 1, 2):
        raise ValueError(
            f"kernel is {value!r}; it must be CONST_KERNEL, DIAG_KERNEL or FULL_KERNEL"
        )


class Unary:
    """Unary energies for ``setUnary``, (nlabels, number of variables)."""

    def __init__(self, energies):
        self.energies = np.array(_matrix(energies, "u"), np.float32)


class ConstUnary(Unary):
    """Energies that are given."""

    def __init__(self, u):
        super().__init__(u)


class LogisticUnary(Unary):
    """Energies L f of features f, (d, number of variables), with L (nlabels, d)."""

    def __init__(self, L, f):
        L, f = _matrix(L, "L"), _matrix(f, "f")
        if L.shape[1] != f.shape[0]:
            raise ValueError(
                f"L has the shape {L.shape} and f {f.shape}; (nlabels, d) and (d, N) are needed"
            )
        super().__init__(L.astype(np.float32) @ f.astype(np.float32))


def _matrix(values, what):
    result = array(values, what)
    if result.ndim != 2:
        raise ValueError(f"{what} has {result.ndim} axes; 2 are needed")
    return result


class DenseCRF:
    """Mean field over ``nvar`` variables with ``nlabels`` labels.

    ``message_error`` bounds what may be left out of a message, so that labels which have faded
    everywhere need not be filtered; 0 filters all of them. ``device``: see ``set_device``.
    """

    def __init__(self, nvar, nlabels, *_ignored, threads=None, message_error=None, device=None, **_too):
        self._make((_count(nvar, "nvar"),), nlabels, threads, message_error, device)

    def _make(self, shape, nlabels, threads, message_error, device):
        threads = _threads if threads is None else _count(threads, "threads", least=0)
        self._shape = shape
        self._nvar = math.prod(int(size) for size in shape)
        self._nlabels = _count(nlabels, "nlabels")
        device = _device if device is None else device
        self._core = on_device(_core.DenseCRF, device, shape, self._nlabels, thread_count(threads))
        if message_error is not None:
            self._core.set_message_error(float(message_error))

    @property
    def device(self):
        """Where the model is, and inference is done: "cpu" or "cuda:0"."""
        return self._core.device()

    # ---- unary energies

    def setUnaryEnergy(self, u, f=None):
        """Replace the unary energies, (nlabels, number of variables): minus the log-probabilities.

        With ``f``, features (d, number of variables), ``u`` is (nlabels, d) and the energies are u f.
        """
        if f is not None:
            u = LogisticUnary(u, f).energies
        energies = self._planes(array(u, "the unary array"), "the unary array")
        if energies.dtype.kind == "f" and energies.dtype != np.float32:
            energies = energies.astype(np.float32)  # infinities of float64 included
        try:
            self._core.set_unary(energies)
        except ValueError:
            if not (energies == np.inf).any() or not (energies > -np.inf).all():
                raise
            # -log(0): as good as any large energy
            self._core.set_unary(np.minimum(energies, np.float32(1e29)))

    def setUnary(self, u):
        """Replace the unary energies by a ``ConstUnary``, a ``LogisticUnary`` or an array."""
        self.setUnaryEnergy(u.energies if isinstance(u, Unary) else u)

    def _planes(self, values, what):
        """(nlabels, N), or (nlabels, H, W), as a view with the channels last."""
        nlabels, shape = self._nlabels, self._shape
        if values.shape == (nlabels, self._nvar):
            return np.moveaxis(values.reshape((nlabels,) + shape), 0, -1)
        if values.shape == (nlabels,) + shape:
            return np.moveaxis(values, 0, -1)
        raise ValueError(self._complaint(values.shape, what))

    def _complaint(self, given, what):
        nlabels, nvar = self._nlabels, self._nvar
        text = f"{what} has the shape {given}; ({nlabels}, {nvar}) is needed"
        if given == (nvar, nlabels) or given == self._shape + (nlabels,):
            text += ": labels come first (transpose it)"
        elif len(self._shape) == 2:
            height, width = self._shape
            text += f", for {nlabels} labels and a picture {width} wide and {height} high"
            if given == (nlabels, width, height):
                text += ": width and height are swapped (DenseCRF2D takes the width first)"
        return text

    # ---- pairwise energies

    def addPairwiseEnergy(
        self, features, compat, kernel=DIAG_KERNEL, normalization=NORMALIZE_SYMMETRIC
    ):
        """Add a Gaussian kernel over features (d, number of variables), divided by their sigmas."""
        values = array(features, "the feature array")
        if values.ndim != 2 or values.shape[1] != self._nvar:
            hint = ": features come first (transpose it)" if values.shape[:1] == (self._nvar,) else ""
            raise ValueError(
                f"the feature array has the shape {values.shape}; (d, {self._nvar}) is needed{hint}"
            )
        if values.shape[0] < 1:
            raise ValueError("the feature array has no features")
        channels = np.moveaxis(values.reshape(values.shape[:1] + self._shape), 0, -1)
        self._add(None, channels, None, compat, kernel, normalization)

    def _add(self, sigmas, channels, channel_sigmas, compat, kernel, normalization):
        _kernel(kernel)
        self._core.add_kernel(
            sigmas, channels, channel_sigmas, self._compat(compat), _normalization(normalization)
        )

    def _compat(self, compat):
        if isinstance(compat, np.ndarray) and compat.ndim and compat.dtype != np.float32:
            # As in the original; a program that is tried with both must not find out late.
            raise ValueError(
                f"compat is an array of {compat.dtype}; float32 is needed: compat.astype(np.float32)"
            )
        values = np.ascontiguousarray(array(compat, "compat"), dtype=np.float32)
        values = values.reshape(np.shape(compat))
        labels = self._nlabels
        if values.ndim == 1 and values.shape[0] == 1 and labels != 1:
            return values.reshape(())
        if values.shape not in ((), (labels,), (labels, labels)):
            raise ValueError(
                f"compat has the shape {values.shape}; a number, {labels} numbers or a "
                f"{labels} x {labels} matrix is needed"
            )
        return values

    # ---- inference

    def inference(self, niter, progress=None):
        """Mean field with ``niter`` updates: the distributions, float32 (nlabels, N).

        ``progress`` is called after each update with a dictionary; the answer ``dcrf.STOP`` stops the run.
        """
        result = np.empty((self._nlabels, self._nvar), np.float32)
        self._core.infer(_count(niter, "niter", least=0), result, progress)
        return result

    def startInference(self):
        """Q and two arrays that ``stepInference`` wants to be given; the last two are not used."""
        return self.inference(0), np.zeros((0, 0), np.float32), np.zeros((0, 0), np.float32)

    def stepInference(self, Q, tmp1=None, tmp2=None):
        """One update of Q, in place."""
        planes = self._distribution(Q, writable=True)
        self._core.step(planes)
        if planes is not Q:
            np.asarray(Q)[...] = planes.reshape(np.shape(Q))

    def klDivergence(self, Q):
        """sum Q log max(Q, 1e-20) + sum U Q + sum Q message."""
        return self._core.divergence(self._distribution(Q))

    def _distribution(self, Q, writable=False):
        given = np.asarray(Q)
        if given.shape not in ((self._nlabels, self._nvar), (self._nlabels,) + self._shape):
            raise ValueError(self._complaint(given.shape, "Q"))
        if writable and not (isinstance(Q, np.ndarray) or hasattr(Q, "__array_interface__")):
            if not _shares_memory(Q):
                raise TypeError("Q is updated in place and must be an array")
        if writable and not given.flags.writeable:
            raise ValueError("Q is updated in place and must be writable")
        return np.ascontiguousarray(array(given, "Q"), dtype=np.float32)


def _shares_memory(value):
    try:
        return not memoryview(value).readonly
    except TypeError:
        return False


class DenseCRF2D(DenseCRF):
    """Mean field over a picture; note the order: width, height, number of labels."""

    def __init__(self, w, h, nlabels, *_ignored, threads=None, message_error=None, device=None, **_too):
        shape = (_count(h, "h"), _count(w, "w"))
        self._make(shape, nlabels, threads, message_error, device)

    def addPairwiseGaussian(
        self, sxy, compat, kernel=DIAG_KERNEL, normalization=NORMALIZE_SYMMETRIC
    ):
        """Add a Gaussian kernel over positions; ``sxy`` is a number or (sx, sy)."""
        sx, sy = _sigmas(sxy, 2, "sxy")
        self._add((sy, sx), None, None, compat, kernel, normalization)

    def addPairwiseBilateral(
        self, sxy, srgb, rgbim, compat, kernel=DIAG_KERNEL, normalization=NORMALIZE_SYMMETRIC
    ):
        """Add a Gaussian kernel over positions and colours.

        ``rgbim`` is (h, w, channels), uint8 in the original; ``srgb`` is a number or one for each
        channel.
        """
        sx, sy = _sigmas(sxy, 2, "sxy")
        image = self._image(array(rgbim, "rgbim"))
        colours = _sigmas(srgb, image.shape[2], "srgb")
        if image.dtype.kind == "f" and min(colours) >= 1 and image.min() >= 0 and 0 < image.max() <= 1:
            # The original takes uint8 alone. Next to such sigmas colours from 0 to 1 are all the same.
            raise ValueError(
                f"rgbim holds {image.dtype} from 0 to 1, and srgb={srgb!r} is for 0 to 255: give (255 * rgbim).astype(np.uint8)"
            )
        self._add((sy, sx), image, colours, compat, kernel, normalization)

    def _image(self, image):
        height, width = self._shape
        if image.shape == (height, width):
            image = image[:, :, np.newaxis]
        if image.ndim == 3 and image.shape[:2] == (height, width) and image.shape[2] > 0:
            return image
        text = f"rgbim has the shape {image.shape}; ({height}, {width}, 3) is needed"
        if image.ndim == 3 and image.shape[:2] == (width, height):
            text += ": width and height are swapped (DenseCRF2D takes the width first)"
        elif image.ndim == 3 and image.shape[1:] == (height, width):
            text += ": channels come last (use np.moveaxis(rgbim, 0, -1))"
        raise ValueError(text)
