"""Superpixels, and the scale of the colours that they and the kernels are for."""

import warnings

import numpy as np

from . import _core
from ._arrays import array, one_or_many, thread_count
from ._layout import grid_of_image, place_channels_last
from ._options import outside_the_package


UNIT_MESSAGE = "the image lies between 0 and 1, and the sigmas are for 0 to 255: 255 times the image is used"


def without_bools(image):
    """False and True are black and white."""
    is_bool = getattr(image, "dtype", None) == np.dtype(bool)
    return np.asarray(image).astype(np.uint8) * np.uint8(255) if is_bool else image


def on_the_scale(channels, channel_sigma=None):
    """Colours from 0 to 1 where colours from 0 to 255 are meant: 255 times as much, with a warning."""
    if channels.dtype.kind != "f" or not channels.size:
        return channels
    is_meant = channel_sigma is None or np.min(channel_sigma) >= 1
    if not (is_meant and channels.min() >= 0 and 0 < channels.max() <= 1):
        return channels
    warnings.warn(UNIT_MESSAGE, stacklevel=outside_the_package())
    return channels * channels.dtype.type(255)


def superpixels(
    image,
    method="slic",
    *,
    region_size=None,
    compactness=None,
    spatial_bandwidth=None,
    range_bandwidth=None,
    min_region=None,
    shape=None,
    spacing=1.0,
    threads=0,
):
    """Superpixels, regions of similar colour: int32, numbered from 0. ``method`` is "slic" or "meanshift".

    The image is (H, W), (H, W, 3) or (3, H, W), on the scale 0 to 255. A volume, for "slic", is (D, H, W) with
    ``shape=volume.shape``, on any scale; distances are then in units of the smallest ``spacing``.

    >>> import numpy as np
    >>> image = np.zeros((32, 32, 3), np.uint8); image[:, 16:] = 255
    >>> len(np.unique(superpixels(image, region_size=16)))
    4
    """
    values = array(without_bools(image), "the image")
    shape = grid_of_image(values, shape)
    channels = place_channels_last(values, tuple(shape), "the image")
    if len(shape) < 3 or channels.shape[-1] > 1:
        channels = on_the_scale(channels)
    regions = np.empty(shape, np.int32)
    numbers = [
        -1.0 if value is None else float(value)
        for value in (region_size, compactness, spatial_bandwidth, range_bandwidth)
    ]
    least = -1 if min_region is None else int(min_region)
    steps = one_or_many(spacing, len(shape), "spacing")
    _core.superpixels(tuple(shape), steps, channels, method, *numbers, least, thread_count(threads), regions)
    return regions
