"""The functions of ``pydensecrf.utils``."""

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
        raise ValueError(f"gt_prob is {gt_prob}; it must lie between 0 and 1")
    n_labels = int(n_labels)
    given = array(labels, "labels", integers=True).ravel()
    if n_labels < 2:
        raise ValueError(f"n_labels is {n_labels}; at least 2 labels are needed")
    if given.dtype.kind == "f" and not (given == np.floor(given)).all():
        raise ValueError("labels must be whole numbers")
    given = given.astype(np.int64)
    highest = n_labels if zero_unsure else n_labels - 1
    if given.size and not (0 <= given.min() and given.max() <= highest):
        raise ValueError(
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
            raise ValueError(f"scale is {scale}; it must be above 0 and at most 1")
        probabilities = scale * probabilities + (1 - scale) / labels
    if clip is not None:
        probabilities = np.clip(probabilities, clip, 1.0)
    with np.errstate(divide="ignore"):
        return -np.log(probabilities).reshape(labels, -1).astype(np.float32)


def softmax_to_unary(sm, GT_PROB=1):
    """The old name: ``unary_from_softmax`` with a scale."""
    return unary_from_softmax(sm, None if GT_PROB == 1 else GT_PROB, clip=None)


def _positions(sdims, shape):
    """(axes, *shape): coordinates divided by their sigmas."""
    shape = tuple(int(size) for size in shape)
    sigmas = np.broadcast_to(np.asarray(sdims, dtype=np.float64), (len(shape),))
    if not (sigmas > 0).all():
        raise ValueError(f"sdims must be positive, not {sdims!r}")
    axes = [np.arange(size) / sigma for size, sigma in zip(shape, sigmas)]
    return np.stack(np.meshgrid(*axes, indexing="ij")) if shape else np.zeros((0,))


def create_pairwise_gaussian(sdims, shape):
    """Features (axes, N) for ``addPairwiseEnergy``: positions in the order of ``shape``."""
    positions = _positions(sdims, shape)
    return positions.reshape(len(shape), -1).astype(np.float32)


def create_pairwise_bilateral(sdims, schan, img, chdim=-1):
    """Features (axes + channels, N): positions, then the channels of ``img`` along axis ``chdim``.

    chdim = -1, as in the original, means that ``img`` has no axis for channels; a picture of the
    shape (h, w, 3) wants chdim=2.
    """
    image = array(img, "img")
    if chdim == -1:
        image = image[np.newaxis]
    else:
        if not 0 <= chdim < image.ndim:
            raise ValueError(f"img has {image.ndim} axes; there is no axis {chdim}")
        image = np.moveaxis(image, chdim, 0)
    channels, shape = image.shape[0], image.shape[1:]
    sigmas = np.broadcast_to(np.asarray(schan, dtype=np.float64), (channels,))
    if not (sigmas > 0).all():
        raise ValueError(f"schan must be positive, not {schan!r}")
    colours = image.reshape(channels, -1) / sigmas[:, np.newaxis]
    positions = _positions(sdims, shape).reshape(len(shape), -1)
    return np.concatenate([positions, colours]).astype(np.float32)
