"""Unary energies from what callers have. The C library decides: floors, normalization of logits, what the
numbers look like, and how a network's small answer is enlarged are the same as in the command."""

import numpy as np

from . import _core
from ._arrays import array, split_mask
from ._layout import find_grid, place_channels_last

_OTHERS = {"energies": "unary=", "probabilities": "probabilities=", "logits": "logits="}


def unary_numbers(unary, probabilities, logits):
    """Exactly one of the three: its numbers, the name of its kind, and which of them are masked, or None."""
    given = {"energies": unary, "probabilities": probabilities, "logits": logits}
    given = {kind: values for kind, values in given.items() if values is not None}
    if len(given) != 1:
        raise TypeError("give exactly one of unary=, probabilities= and logits=")
    (kind, values), = given.items()
    values, mask = split_mask(values)
    name = _OTHERS[kind].rstrip("=")
    numbers = array(values, name)
    if mask is not None:
        numbers = np.where(mask, 0 if kind != "probabilities" else numbers.dtype.type(1), numbers)
    return numbers, kind, mask


def unary_energies(numbers, kind, mask, grid, from_grid, image):
    """Energies over the grid, float32 (..., labels), from numbers over ``from_grid`` with the labels last.

    Where a number is masked nothing is known about its pixel: all labels have the same energy.
    """
    energies = np.empty(grid + numbers.shape[-1:], np.float32)
    guide = None
    if from_grid != grid and image is not None:
        guide = place_channels_last(image, grid, "the image")
    try:
        _core.unary_energies(numbers, from_grid, kind, grid, guide, energies)
    except ValueError as error:
        looks = {"log-probabilities": "logits=", "probabilities": "probabilities=", "energies": "unary="}
        advice = next((f" ({word} takes them)" for look, word in looks.items() if f"look like {look}" in str(error)), "")
        if "not a probability" in str(error):
            advice = " (probabilities lie between 0 and 1; logits= takes any numbers)"
        raise ValueError(f"{_OTHERS[kind]} {error}{advice}") from None
    if mask is not None:
        unknown = mask.any(-1)
        if from_grid != grid:
            unknown = unknown[tuple(np.ix_(*(np.arange(n) * m // n for n, m in zip(grid, from_grid))))]
        energies[unknown] = 0
    return energies


def label_energies(labels, confidence=None, count=None):
    """Energies, (..., count), of a label map that is right with the probability ``confidence`` (0.7 unless it is
    given); masked, negative and 255 mean "not known". ``count`` is by default one more than the largest."""
    values, mask = split_mask(labels)
    given = array(values, "labels_prior", integers=True)
    if given.dtype.kind == "f":
        raise TypeError("labels_prior must hold integers")
    confidence = 0.7 if confidence is None else float(confidence)
    given = given.astype(np.int64)
    unknown = (given < 0) | (given == 255)
    if mask is not None:
        unknown |= mask
    known = given[~unknown]
    count = (int(known.max()) + 1 if known.size else 2) if count is None else int(count)
    count = max(count, 2)
    if not 1 / count < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must lie above 1 / {count} and below 1")
    if known.size and known.max() >= count:
        raise ValueError(f"labels_prior holds {known.max()}; with labels={count} at most {count - 1} is possible")
    energies = np.full(given.shape + (count,), -np.log((1 - confidence) / (count - 1)), np.float32)
    np.put_along_axis(energies, np.where(unknown, 0, given)[..., np.newaxis], -np.log(confidence), axis=-1)
    energies[unknown] = np.log(count)
    return energies
