"""The functions of ``pydensecrf.utils``."""

import numbers
import warnings

import numpy as np

from .._arrays import array

__all__ = [
    "compute_unary",
    "create_pairwise_bilateral",
    "create_pairwise_gaussian",
    "softmax_to_unary",
    "unary_from_labels",
    "unary_from_softmax",
]


class _Refused(ValueError, AssertionError):
    """A ValueError that programs which catch the original's AssertionError catch too."""


class _OutOfRange(ValueError, IndexError):
    """A ValueError that programs which catch the original's IndexError catch too."""


def unary_from_labels(labels, n_labels, gt_prob, zero_unsure=True):
    """Energies, (n_labels, N), of labels that are right with the probability ``gt_prob``.

    With ``zero_unsure`` label 0 means "not known", all labels being as likely, and row i belongs to
    label i + 1; without it row i belongs to label i.

    >>> import numpy as np
    >>> np.exp(-unary_from_labels(np.array([0, 1, 2]), 2, gt_prob=0.75)).round(2)
    array([[0.5 , 0.75, 0.25],
           [0.5 , 0.25, 0.75]], dtype=float32)
    """
    if not 0 < gt_prob < 1:
        raise _Refused(f"gt_prob is {gt_prob}; it must lie between 0 and 1")
    n_labels = int(n_labels)
    given = array(labels, "labels", integers=True).ravel()
    if n_labels < 2:
        raise ValueError(f"n_labels is {n_labels}; at least 2 labels are needed")
    if given.dtype.kind == "f" and not (given == np.floor(given)).all():
        raise ValueError("labels must be whole numbers")
    given = given.astype(np.int64)
    highest = n_labels if zero_unsure else n_labels - 1
    if given.size and not (0 <= given.min() and given.max() <= highest):
        raise _OutOfRange(
            f"labels run from {given.min()} to {given.max()}; with n_labels = {n_labels} and "
            f"zero_unsure = {bool(zero_unsure)} they must lie between 0 and {highest}"
        )
    here, elsewhere = -np.log(gt_prob), -np.log((1.0 - gt_prob) / (n_labels - 1))
    energies = np.full((n_labels, given.size), elsewhere, np.float32)
    rows = given - 1 if zero_unsure else given
    known = np.flatnonzero(rows >= 0)
    energies[rows[known], known] = here
    if zero_unsure:
        energies[:, rows < 0] = -np.log(1.0 / n_labels)
    return energies


def compute_unary(labels, M, GT_PROB=0.5):
    """The old name: ``unary_from_labels`` with label 0 unknown."""
    _deprecated("compute_unary", "unary_from_labels")
    return unary_from_labels(labels, M, GT_PROB, zero_unsure=True)


def unary_from_softmax(sm, scale=None, clip=1e-5):
    """Energies, (n_labels, N), of probabilities of any shape (n_labels, ...).

    ``scale`` below 1 mixes the probabilities with the uniform ones, ``clip`` keeps them from zero
    (None: no clipping).

    >>> import numpy as np
    >>> unary_from_softmax(np.array([[0.25, 1], [0.75, 0]])).round(3)
    array([[ 1.386, -0.   ],
           [ 0.288, 11.513]], dtype=float32)
    """
    given = array(sm, "sm")
    if given.ndim < 1 or given.shape[0] < 1:
        raise ValueError(f"sm has the shape {given.shape}; (n_labels, ...) is needed")
    probabilities = given if given.dtype.kind == "f" else given.astype(np.float32)
    labels = probabilities.shape[0]
    if scale is not None:
        if not 0 < scale <= 1:
            raise _Refused(f"scale is {scale}; it must be above 0 and at most 1")
        probabilities = scale * probabilities + (1 - scale) / labels
    if clip is not None:
        probabilities = np.clip(probabilities, clip, 1.0)
    with np.errstate(divide="ignore"):
        return -np.log(probabilities).reshape(labels, -1).astype(np.float32)


def softmax_to_unary(sm, GT_PROB=1):
    """The old name: ``unary_from_softmax`` with a scale."""
    _deprecated("softmax_to_unary", "unary_from_softmax")
    return unary_from_softmax(sm, None if GT_PROB == 1 else GT_PROB, clip=None)


def _deprecated(old, new):
    warnings.warn(f"{old} is an old name; use {new}", DeprecationWarning, stacklevel=3)


def _divide(rows, sigmas, what):
    """Divide the first rows by the sigmas, in the single precision of the original: which side of a
    border a point of the lattice falls on depends on it. Rows without a sigma stay as they are."""
    if isinstance(sigmas, numbers.Number):
        sigmas = [sigmas] * len(rows)
    if len(sigmas) > len(rows):
        raise _OutOfRange(f"{what} has {len(sigmas)} numbers for {len(rows)} axes or channels")
    for row, sigma in zip(rows, sigmas):
        if not sigma > 0:
            raise ValueError(f"{what} must be positive, not {sigmas!r}")
        row /= sigma


def _positions(sdims, shape):
    """(axes, *shape): coordinates divided by their sigmas."""
    axes = [np.arange(int(size), dtype=np.float32) for size in shape]
    mesh = np.stack(np.meshgrid(*axes, indexing="ij")) if axes else np.zeros((0,), np.float32)
    _divide(mesh, sdims, "sdims")
    return mesh


def create_pairwise_gaussian(sdims, shape):
    """Features (axes, N) for ``addPairwiseEnergy``: positions in the order of ``shape``.

    Axes beyond the numbers of ``sdims`` are not divided.
    """
    return _positions(sdims, shape).reshape(len(shape), -1)


def create_pairwise_bilateral(sdims, schan, img, chdim=-1):
    """Features (axes + channels, N): positions, then the channels of ``img`` along axis ``chdim``.

    chdim = -1, as in the original, means that ``img`` has no axis for channels; a picture of the
    shape (h, w, 3) wants chdim=2. ``schan`` is a number or one for each channel; channels (and axes)
    beyond the numbers that are given are not divided.
    """
    image = array(img, "img")
    if chdim == -1:
        image = image[np.newaxis]
    else:
        if not 0 <= chdim < image.ndim:
            raise ValueError(f"img has {image.ndim} axes; there is no axis {chdim}")
        image = np.moveaxis(image, chdim, 0)
    colours = np.array(image, np.float32, order="C")
    _divide(colours, schan, "schan")
    features = np.concatenate([_positions(sdims, image.shape[1:]), colours])
    return features.reshape(len(features), -1)


def _create_pairwise_gaussian_2d(sx, sy, shape):
    """The two-dimensional case, as some programs call it: rows first."""
    return create_pairwise_gaussian((sx, sy), shape)


def _create_pairwise_bilateral_2d(sx, sy, sr, sg, sb, img):
    """The case of a colour picture (h, w, 3): rows first."""
    return create_pairwise_bilateral((sx, sy), (sr, sg, sb), np.asarray(img)[:, :, :3], chdim=2)
