"""Masks with shades between 0 and 255: resized, blurred, a trimap. They are told from label maps as the command does it
(cli/prior/traits.c): across a soft border numbers change from pixel to pixel, and there are many of them."""

import numpy as np

_BRIGHT = 255
_NEARLY = 16  # from 0 or 255
_LABELS_USUAL = 64
_SHADES, _SHADE_WIDTH = 64, 16
_TRIMAP = range(96, 161)  # the one grey that means unknown


def _trimap_grey(counts):
    """The grey that means unknown, or None if this is no trimap."""
    greys = np.flatnonzero(counts[1:_BRIGHT]) + 1
    return int(greys[0]) if len(greys) == 1 and int(greys[0]) in _TRIMAP else None


def _is_soft(numbers, counts):
    between = counts[1:_BRIGHT].sum()
    if not (counts[: _NEARLY + 1].any() and counts[_BRIGHT - _NEARLY :].any() and counts[_LABELS_USUAL + 1 : _BRIGHT].any()):
        return False
    left, right = numbers[..., :-1], numbers[..., 1:]
    changes = np.count_nonzero((left > 0) & (left < _BRIGHT) & (left != right))
    many = np.count_nonzero(counts[1:_BRIGHT]) >= _SHADES
    return _trimap_grey(counts) is not None or 2 * changes > between or (many and _SHADE_WIDTH * changes > between)


def hardened(numbers):
    """A soft mask as labels 0 and 1, -1 at a trimap's grey; None if the integers are no soft mask."""
    if not numbers.size or numbers.ndim < 2 or numbers.min() < 0 or numbers.max() > _BRIGHT:
        return None
    counts = np.bincount(numbers.ravel(), minlength=_BRIGHT + 1)
    if not _is_soft(numbers, counts):
        return None
    labels = (numbers > _BRIGHT // 2).astype(np.int32)
    grey = _trimap_grey(counts)
    if grey is not None:
        labels[numbers == grey] = -1
    return labels


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
