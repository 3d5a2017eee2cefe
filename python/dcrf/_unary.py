"""Unary energies from what callers have. The C library decides: floors, normalization of logits, what the
numbers look like, and how a network's small answer is enlarged are the same as in the command."""

import warnings

import numpy as np

from . import _core
from ._arrays import array, split_mask
from ._layout import find_grid, place_channels_last
from ._options import outside_the_package
from ._soft_masks import as_integers, hardened

_UNKNOWN = 255  # what most label pictures call unknown
_OTHERS = {"energies": "unary=", "probabilities": "probabilities=", "logits": "logits="}


def one_source(given, ways="unary=, probabilities= and logits="):
    """The only one of several keyword arguments that is not None, (name, values); an error names all ways."""
    given = {name: values for name, values in given.items() if values is not None}
    if not given:
        raise TypeError(f"nothing says which labels are likely; give exactly one of {ways}")
    if len(given) > 1:
        raise TypeError(f"give exactly one of {ways}")
    return next(iter(given.items()))


def unary_numbers(unary, probabilities, logits, ways="unary=, probabilities= and logits="):
    """Exactly one of the three: its numbers, the name of its kind, and which of them are masked, or None."""
    kind, values = one_source({"energies": unary, "probabilities": probabilities, "logits": logits}, ways)
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
    _settle(numbers, from_grid, kind, grid, guide, energies)
    if mask is not None:
        energies[_enlarged(mask.any(-1), from_grid, grid)] = 0
    return energies


def check_kind(numbers, kind, grid):
    """Refuse numbers, with the labels last, that do not look like what they are said to be."""
    _settle(numbers, grid, kind, grid, None, None)


def _settle(numbers, from_grid, kind, grid, guide, energies):
    """Energies where there is room for them; without, only the check of the kind."""
    try:
        _core.unary_energies(numbers, from_grid, kind, grid, guide, energies)
    except ValueError as error:
        looks = {"log-probabilities": "logits=", "probabilities": "probabilities=", "energies": "unary="}
        advice = next((f" ({word} takes them)" for look, word in looks.items() if f"look like {look}" in str(error)), "")
        if "not a probability" in str(error):
            advice = " (probabilities lie between 0 and 1; logits= takes any numbers)"
        raise ValueError(f"{_OTHERS[kind]} {error}{advice}") from None


def two_labels(numbers, kind):
    """What is said of one label, (..., 1), is of the foreground: the numbers of both, the background first."""
    name = _OTHERS[kind]
    if kind == "energies":
        raise ValueError(
            f"{name} has one label, so that there is nothing to choose; a map of the foreground goes into probabilities= or logits="
        )
    warnings.warn(
        f"{name} has one label: it is taken for the foreground, label 1, and label 0 is the rest",
        stacklevel=outside_the_package(),
    )
    if kind == "logits":
        return np.concatenate([np.zeros_like(numbers), numbers], -1)
    top = 1
    if numbers.dtype.kind in "ui" and numbers.size and numbers.max() > 1:
        top = np.iinfo(numbers.dtype).max  # a picture of the map
    elif numbers.size and not (0 <= numbers.min() and numbers.max() <= 1):
        raise ValueError(
            f"{name} has one label, with numbers from {numbers.min():g} to {numbers.max():g}; those of a map of the foreground lie "
            "between 0 and 1 (logits= takes any numbers)"
        )
    if numbers.dtype.kind != "f":
        numbers = numbers.astype(np.float32) / np.float32(top)
    return np.concatenate([1 - numbers, numbers], -1)


def _enlarged(values, from_grid, grid):
    """Values over a larger grid: those of the pixels that lie under its own."""
    if from_grid == grid:
        return values
    return values[np.ix_(*(np.arange(n) * m // n for n, m in zip(grid, from_grid)))]


def one_grey(labels, image):
    """A map that was saved in colours but is grey: its one channel, without alpha. Others as they are."""
    shape = np.shape(labels)
    is_picture = image is not None and (image.ndim == 2 or (image.ndim == 3 and image.shape[2] in (1, 3, 4)))
    if not (is_picture and len(shape) == 3 and shape[2] in (3, 4) and shape[:2] == image.shape[:2]):
        return labels
    channels = np.asarray(labels)
    if not (channels[..., :1] == channels[..., :3]).all():
        raise ValueError("labels_prior has colours where one number for each pixel is needed")
    return channels[..., 0]


def label_map(labels, count=None):
    """A label map as int32, -1 where it is not known (masked, negative, 255), and the number of labels: ``count``, or
    one more than the largest. In a mask of nothing but 0 and 255, 255 is label 1; shades between them are a soft mask."""
    values, mask = split_mask(labels)
    given = array(values, "labels_prior", integers=True)
    if given.dtype.kind == "f":
        given = as_integers(given)
        if given is None:
            raise TypeError("labels_prior must hold integers, or a mask from 0 to 1 (probabilities= takes one number for each label)")
    given = given.astype(np.int32)
    soft = hardened(given) if mask is None and (count is None or count <= 2) else None
    if soft is not None:
        return soft, 2
    if mask is not None:
        given[mask] = -1
    seen = given[given >= 0]
    is_mask = seen.size and seen.min() == 0 and seen.max() == _UNKNOWN and np.isin(seen, (0, _UNKNOWN)).all()
    given[given == _UNKNOWN] = 1 if is_mask and (count is None or count <= 2) else -1
    largest = int(given.max(initial=-1))
    if count is None:
        count = largest + 1 if largest >= 0 else 2
    count = max(int(count), 2)
    if largest >= count:
        raise ValueError(f"labels_prior holds {largest}; with labels={count} at most {count - 1} is possible")
    return given, count


def confidence_map(confidence, labels, image):
    """How far each pixel of a label map is to be believed, from 0 (not at all) to 1 (it keeps its label), as float32."""
    if image is None:
        raise ValueError("a confidence for each pixel goes with an image; without one give one number")
    given = array(confidence, "confidence").astype(np.float32)
    if given.shape != labels.shape:
        raise ValueError(f"confidence has the shape {given.shape} and labels_prior {labels.shape}; they must agree")
    if not ((given >= 0) & (given <= 1)).all():
        raise ValueError("the confidence of a pixel lies between 0 and 1")
    return given


def place_map(labels, image, shape):
    """The grid of a model, and a label map over it, (..., 1), enlarged where it is smaller than the picture."""
    grid, placed, own = find_grid(image, labels[..., np.newaxis], shape, -1)
    return grid, _enlarged(placed, own, grid)


def label_energies(labels, count, confidence=None):
    """Energies, (..., count), of a label map of ``label_map`` that is right with the probability ``confidence`` (0.7
    unless it is given) at every pixel."""
    confidence = 0.7 if confidence is None else float(confidence)
    if not 1 / count < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must lie above 1 / {count} and below 1")
    energies = np.full(labels.shape + (count,), -np.log((1 - confidence) / (count - 1)), np.float32)
    np.put_along_axis(energies, np.maximum(labels, 0)[..., np.newaxis], -np.log(confidence), axis=-1)
    energies[labels < 0] = np.log(count)
    return energies
