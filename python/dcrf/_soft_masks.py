"""Masks with shades between 0 and 255: resized, blurred, a trimap. The library tells them from label maps."""

import numpy as np

from . import _core

_BRIGHT = 255


def hardened(numbers):
    """A soft mask as labels 0 and 1, -1 at a trimap's grey; None if the integers, int32, are no soft mask."""
    if not numbers.size or numbers.ndim < 2:
        return None
    labels = np.array(numbers, np.int32, order="C")
    width = labels.shape[-1]
    return labels if _core.soft_mask(labels, width, labels.size // width) else None


def as_integers(numbers):
    """Floats that mean integers, or a mask from 0 to 1 as shades; None if they are neither."""
    if not np.isfinite(numbers).all():
        return None
    whole = np.rint(numbers)
    if np.array_equal(whole, numbers):
        return whole.astype(np.int64)
    if numbers.min() >= 0 and numbers.max() <= 1:
        return np.rint(_BRIGHT * numbers).astype(np.int64)
    return None
