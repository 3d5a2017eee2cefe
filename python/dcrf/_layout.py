"""Which axes of the caller's arrays are the grid, and which hold channels or labels."""

import numpy as np

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
    if image.ndim == 3:
        last, first = image.shape[2] <= 4, image.shape[0] <= 4
        if last != first:
            return image.shape[:2] if last else image.shape[1:]
    raise ValueError(
        f"the image has the shape {image.shape}: which axes are the grid cannot be told; pass shape="
    )


def place_channels_last(values, grid, what):
    """A view of an image or features over the grid with the channels as its last axis.

    Channels may come last or first, or be missing; the grid may be flattened.
    """
    values = array(values, what)
    size = int(np.prod(grid))
    if values.shape == grid:
        return values[..., np.newaxis]
    if values.ndim == len(grid) + 1:
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


def find_grid(image, energies, shape=None):
    """The grid of an image and an array of energies, and the energies with the labels last.

    Either axis order is taken. Where both would do (without an image), the shorter of the first and
    the last axis holds the labels.
    """
    if shape is not None:
        grid = tuple(int(size) for size in np.atleast_1d(shape))
        return grid, _labels_last(energies, grid)
    if image is not None:
        fitting = []
        for grid, axis in _candidates(image.shape, ("plain",)):
            if _labels_fit(energies.shape, grid):
                channels = 1 if axis is None else image.shape[axis]
                fitting.append((channels, grid))
        if fitting:
            # The fewest channels: (100, 120, 3) is a picture, not 100 channels over a grid of 120 x 3.
            grid = min(fitting, key=lambda candidate: candidate[0])[1]
            return grid, _labels_last(energies, grid)
        advice = next(
            (
                _swapped(energies.shape, grid)
                for grid, _ in _candidates(image.shape, ("plain",))
                if _swapped(energies.shape, grid)
            ),
            "",
        )
        raise ValueError(
            f"the image has the shape {image.shape} and the energies have the shape "
            f"{energies.shape}: they do not lie over one grid{advice}"
        )
    if not 2 <= energies.ndim <= 4:
        raise ValueError(
            f"the energies have the shape {energies.shape}; (labels, ...) or (..., labels) over a "
            "grid of 1 to 3 axes is needed"
        )
    if energies.shape[0] == energies.shape[-1]:
        raise ValueError(
            f"the energies have the shape {energies.shape}: which axis holds the labels cannot be "
            "told; pass shape="
        )
    if energies.shape[0] < energies.shape[-1]:
        return energies.shape[1:], np.moveaxis(energies, 0, -1)
    return energies.shape[:-1], energies


def _labels_fit(shape, grid):
    size = int(np.prod(grid))
    return shape[:-1] == grid or shape[1:] == grid or (len(shape) == 2 and size in shape)


def _labels_last(energies, grid):
    if not _labels_fit(energies.shape, grid):
        raise ValueError(
            f"the energies have the shape {energies.shape}, which does not fit a grid of "
            f"{grid}{_swapped(energies.shape, grid)}"
        )
    return place_channels_last(energies, grid, "the energies")
