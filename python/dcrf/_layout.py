"""Which axes of the caller's arrays are the grid, and which hold channels or labels."""

import math

import numpy as np

from . import _core
from ._arrays import array


def _candidates(shape, names):
    """Grids that an array of this shape may lie over: [(grid, channel axis or None)]."""
    found = []
    if 1 <= len(shape) - 1 <= 3:
        found = [(shape[:-1], len(shape) - 1), (shape[1:], 0)]
    if "plain" in names and 1 <= len(shape) <= 3:
        found.append((shape, None))
    return found


def grid_of_image(image, shape=None):
    """The grid of an image alone: (H, W), (H, W, C) or (C, H, W) with at most 4 channels; ``shape`` says it
    where that cannot be told."""
    if shape is not None:
        return tuple(int(size) for size in np.atleast_1d(shape))
    if image.ndim < 3:
        return image.shape
    if image.ndim == 4 and image.shape[0] == 1:  # a batch of one
        return grid_of_image(image[0])
    if image.ndim == 3:
        last, first = image.shape[2] <= 4, image.shape[0] <= 4
        if last != first:
            return image.shape[:2] if last else image.shape[1:]
    raise ValueError(
        f"the image has the shape {image.shape}: which axes are the grid cannot be told; pass shape="
    )


def place_channels_last(values, grid, what, axis=None):
    """A view of an image or features over the grid with the channels as its last axis.

    Channels may come last or first, or be missing; the grid may be flattened. ``axis`` (0 or -1) says where
    they are, which is needed where both would do.
    """
    values = array(values, what)
    size = int(np.prod(grid))
    if values.shape == grid:
        return values[..., np.newaxis]
    if values.ndim == len(grid) + 1:
        if axis is None and values.shape[:-1] == grid == values.shape[1:] and len(grid) > 1:
            raise ValueError(
                f"{what} has the shape {values.shape}: which axis holds the channels cannot be told; pass "
                "channels_axis=0 or channels_axis=-1"
            )
        if axis == 0 and values.shape[1:] == grid:
            return np.moveaxis(values, 0, -1)
        if values.shape[:-1] == grid:
            return values
        if values.shape[1:] == grid:
            return np.moveaxis(values, 0, -1)
    if values.ndim == 2 and values.shape[1] == size:
        return np.moveaxis(values.reshape(values.shape[:1] + grid), 0, -1)
    if values.ndim == 2 and values.shape[0] == size:
        return values.reshape(grid + values.shape[1:])
    raise ValueError(
        f"{what} has the shape {values.shape}, which does not fit a grid of {grid}{_swapped(values.shape, grid)}"
    )


def _swapped(shape, grid):
    """A word of advice where height and width seem to be swapped."""
    if len(grid) == 2 and grid[0] != grid[1]:
        turned = grid[::-1]
        if shape[:2] == turned or shape[-2:] == turned:
            return ": its height and width are swapped (transpose it)"
    return ""


def find_grid(image, numbers, shape=None, labels_axis=None):
    """The grid of a model, the unary numbers with the labels as their last axis, and the grid that these
    lie over, which is smaller where a network's answer is.

    Labels may come first or last, a batch of one may stand before them; ``labels_axis`` (0 or -1) says which
    where both would do. A map without labels, of the shape of the picture, is one label's.
    """
    if labels_axis not in (None, 0, -1):
        raise ValueError(f"labels_axis is {labels_axis!r}; it must be 0 or -1")
    if shape is not None:
        grids = [tuple(int(size) for size in np.atleast_1d(shape))]
    elif image is not None:
        # The fewest channels: (100, 120, 3) is a picture, not 100 channels over a grid of 120 x 3, nor 100 slices.
        found = _candidates(image.shape, ("plain",))
        is_picture = image.ndim == 3 and min(image.shape[0], image.shape[-1]) <= 4
        alone = math.inf if is_picture else 1
        found.sort(key=lambda candidate: alone if candidate[1] is None else image.shape[candidate[1]])
        grids = [grid for grid, _ in found]
        if labels_axis is None and not is_picture and numbers.shape == image.shape == grids[0]:
            return grids[0], numbers[..., np.newaxis], grids[0]
    else:
        batch = numbers.ndim == 4 and numbers.shape[0] == 1
        grids = _grids_of_numbers(numbers.shape[1:] if batch else numbers.shape, labels_axis)
    one = numbers[0] if numbers.ndim > 2 and numbers.shape[0] == 1 else numbers
    for fits in (lambda own, grid: own == grid, _is_smaller):
        for grid in grids:
            for values in (one, numbers) if one is not numbers else (numbers,):
                found = _place_labels(values, grid, fits, labels_axis)
                if found is not None:
                    return (grid,) + found
        if labels_axis is None and one.shape in grids:
            return one.shape, one[..., np.newaxis], one.shape
    what = f"a grid of {grids[0]}" if image is None else f"an image of the shape {image.shape}"
    advice = next((_swapped(numbers.shape, grid) for grid in grids if _swapped(numbers.shape, grid)), "")
    raise ValueError(
        f"the unary array has the shape {numbers.shape}, which does not fit {what}, nor the answer of a network "
        f"for it at a smaller size{advice}"
    )


def _grids_of_numbers(shape, labels_axis):
    """Without an image: the shorter of the first and the last axis holds the labels."""
    if not 2 <= len(shape) <= 4:
        raise ValueError(
            f"the unary array has the shape {shape}; (labels, ...) or (..., labels) over a grid of 1 to 3 axes "
            "is needed"
        )
    if labels_axis is None and shape[0] == shape[-1]:
        raise ValueError(
            f"the unary array has the shape {shape}: which axis holds the labels cannot be told; pass "
            "labels_axis=0 or labels_axis=-1"
        )
    first = labels_axis == 0 if labels_axis is not None else shape[0] < shape[-1]
    return [shape[1:] if first else shape[:-1]]


def _is_smaller(own, grid):
    return len(own) == len(grid) and all(own) and _core.unary_fits(own, grid)


def _place_labels(values, grid, fits, labels_axis):
    """The values with the labels last, and the grid they lie over; None where they do not fit."""
    if values.ndim < 2:
        return None
    is_first, is_last = (
        labels_axis in (None, axis) and fits(own, grid)
        for axis, own in ((0, values.shape[1:]), (-1, values.shape[:-1]))
    )
    if is_first and is_last:
        raise ValueError(
            f"the unary array has the shape {values.shape}: which axis holds the labels cannot be told; pass "
            "labels_axis=0 or labels_axis=-1"
        )
    if is_last:
        return values, values.shape[:-1]
    if is_first:
        return np.moveaxis(values, 0, -1), values.shape[1:]
    size = int(np.prod(grid))
    if values.ndim == 2 and size in values.shape and len(grid) > 1:
        flat_first = values.shape[1] == size if labels_axis is None else labels_axis == 0
        if flat_first and values.shape[1] == size:
            return np.moveaxis(values.reshape(values.shape[:1] + grid), 0, -1), grid
        if values.shape[0] == size:
            return values.reshape(grid + values.shape[1:]), grid
    return None
