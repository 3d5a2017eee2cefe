"""Mean field and nothing else: from the arrays of a network to marginals and labels, on the GPU where they are."""

import dataclasses
from typing import Any

import numpy as np

from . import _core
from ._arrays import array, one_or_many, split_mask, thread_count, whole_number
from ._calls import Calls
from ._choices import NORMALIZATIONS, OPERATORS, choice
from ._gpu import as_stood_in, on_gpu, stand_in
from ._kernels import check_share, check_strength, parts_of_strength, several, with_weight
from ._layout import find_grid, place_channels_last
from ._model import DEFAULT_BILATERAL, DEFAULT_SPATIAL, Model, one_image
from ._superpixels import on_the_scale, without_bools
from ._unary import check_kind, one_source, two_labels

KINDS = {"unary": "energies", "probabilities": "probabilities", "logits": "logits"}
IMAGE = "the image"


@dataclasses.dataclass(frozen=True)
class MeanFieldResult:
    """``marginals`` is float32, (labels, ...), and ``labels`` int32: numpy arrays, ``DeviceArray`` objects if
    an input is on a GPU, or the output arrays that were given. Outputs that were not requested are None."""

    marginals: Any
    labels: Any


def mean_field(
    image=None,
    *,
    unary=None,
    probabilities=None,
    logits=None,
    spatial=DEFAULT_SPATIAL,
    bilateral=DEFAULT_BILATERAL,
    strength="auto",
    spatial_share=_core.defaults()["spatial_share"],
    normalize="symmetric",
    spacing=1.0,
    shape=None,
    labels_axis=None,
    channels_axis=None,
    operator="fast",
    iterations=10,
    marginals=True,
    labels=True,
    stream=None,
    threads=0,
    device=None,
    _calls=None,
):
    """The marginals and labels of ``iterations`` mean-field updates, and nothing else: no energy, no bound, no
    other candidates, no early stop. The options are those of ``Model``; the unary array has the size of the
    picture.

    Arrays on a GPU (of torch, cupy, jax, or anything with DLPack or ``__cuda_array_interface__``) are used in
    place, and results are ``DeviceArray`` objects on the same GPU. The GPU waits for work queued in the arrays'
    streams; ``stream``, a number, adds one more. Colours of an image on a GPU are not rescaled: they must be on
    the scale of the sigmas.

    ``marginals`` and ``labels`` select the outputs: True, False, or an array to write into, of numpy or on the GPU
    (float32, (labels, ...); int32, uint16 or uint8).

    Kernels without weights share the ``strength``. "auto" measures it on the host, which copies arrays from a GPU:
    give weights or a number if every millisecond counts.

    >>> import numpy as np
    >>> image = np.zeros((6, 8, 3), np.uint8); image[:, 4:] = 200
    >>> probabilities = np.full((2, 6, 8), 0.5); probabilities[:, 3, 1] = 0.9, 0.1
    >>> probabilities[:, 3, 6] = 0.1, 0.9
    >>> found = mean_field(image, probabilities=probabilities, bilateral=(20, 10, 5.0), spatial=None)
    >>> found.marginals.shape, bool((found.labels == (image[..., 0] > 0)).all())
    ((2, 6, 8), True)
    """
    name, numbers = one_source({"unary": unary, "probabilities": probabilities, "logits": logits})
    numbers = take(numbers, name)
    picture = None if image is None else take(image, IMAGE)
    rooms = [take_room(marginals, "marginals"), take_room(labels, "labels")]
    calls = Calls() if _calls is None else _calls
    arrays = [one for one in [numbers, picture, *rooms] if one is not None]
    place = _common_place(arrays, device)
    where = device if place is None else place
    grid, rows, channels = _lay_out(numbers, picture, shape, labels_axis, channels_axis)
    if rows.shape[-1] == 1:
        rows = _both_labels(numbers, rows, KINDS[name])
        numbers, labels_axis = _Array(name, rows), -1
    if numbers.there is None:
        check_kind(rows, KINDS[name], grid)
    kernels = _kernels(grid, channels, spatial, bilateral, choice(normalize, NORMALIZATIONS, "normalize"))
    strength, share = check_strength(strength), check_share(spatial_share)
    if strength is not None:
        _share(kernels, strength, share)
    elif any(kernel["weight"] is None for kernel in kernels):
        calls.was_measured = True
        _measure(
            kernels, picture, numbers, shape=grid, labels_axis=labels_axis, channels_axis=channels_axis, spacing=spacing,
            spatial=spatial, bilateral=bilateral, normalize=normalize, spatial_share=share, threads=threads,
        )
    if channels is not None:
        channels = _colours(picture, channels, kernels)
    if marginals is False and labels is False:
        raise ValueError("neither marginals nor labels are wanted")
    stays = any(one is not None and one.there is not None for one in (numbers, picture))

    def make(size, dtype):
        return calls.empty(size, dtype, place if stays else None)

    q = _result(marginals, rooms[0], (rows.shape[-1],) + grid, ("float32",), make)
    found = _result(labels, rooms[1], grid, ("int32", "uint16", "uint8"), make)
    arguments = (
        grid,
        one_or_many(spacing, len(grid), "spacing"),
        numbers.passed(rows),
        KINDS[name],
        [
            (kernel["sigmas"], channels if kernel["channel_sigmas"] else None, kernel["channel_sigmas"], kernel["weight"],
             kernel["is_symmetric"])
            for kernel in kernels
        ],
        choice(operator, OPERATORS, "operator"),
        whole_number(iterations, "iterations"),
        _channels_last(q, rooms[0], 0),
        _channels_last(found, rooms[1], None),
    )
    calls.add(where, thread_count(threads), _streams(arrays, stream), arguments)
    if _calls is None:
        calls.run()
    return MeanFieldResult(q, found)


# ---- the arrays that were given


@dataclasses.dataclass(frozen=True)
class _Array:
    """An array of numpy, which stands in for ``there`` where it is on a GPU."""

    name: str
    values: np.ndarray
    there: Any = None

    def passed(self, view):
        """A view of ``values``, as `_core.mean_field` takes it."""
        if self.there is not None:
            return as_stood_in(self.there, self.values, view, self.name)
        return view if _is_dense(view) else np.ascontiguousarray(view)

    def here(self):
        return self.values if self.there is None else self.there.numpy()


def take(values, name):
    detach = getattr(values, "detach", None)
    values = detach() if callable(detach) else values
    there = on_gpu(values, name)
    if there is not None:
        return _Array(name, stand_in(there), there)
    if name == IMAGE:
        values = without_bools(values)
    plain, mask = split_mask(values)
    if mask is not None:
        raise ValueError(f"{name} has masked elements, which mean_field does not take; solve does")
    return _Array(name, array(plain, name))


def _common_place(given, device):
    """The device that arrays are on, or None. "cuda" without a number is any."""
    on_devices = [one for one in given if one.there is not None]
    if not on_devices:
        return None
    first = on_devices[0]
    for one in on_devices[1:]:
        if one.there.device != first.there.device:
            raise ValueError(f"{first.name} is on {first.there.device} and {one.name} on {one.there.device}")
    if device is not None and str(device) not in ("cuda", first.there.device):
        raise ValueError(f"device is {device}, and {first.name} is on {first.there.device}")
    return first.there.device


def _lay_out(numbers, picture, shape, labels_axis, channels_axis):
    """The grid, and views of the arrays with labels and channels last."""
    image = None
    if picture is not None:
        image = one_image(picture.values)
        if channels_axis is not None:
            image = np.moveaxis(image, channels_axis, -1)
    grid, rows, own = find_grid(image, numbers.values, shape, labels_axis)
    if own != grid:
        raise ValueError(
            f"{numbers.name} lies over {own}, and the picture over {grid}: mean_field takes it at the size of the picture "
            "(solve enlarges it)"
        )
    if image is None:
        return grid, rows, None
    return grid, rows, place_channels_last(image, grid, IMAGE, None if channels_axis is None else -1)


def _both_labels(numbers, rows, kind):
    if numbers.there is not None:
        raise ValueError(
            f"{numbers.name} has one label; on a GPU both are needed, that of the background first (torch.cat([1 - p, p]) of "
            "probabilities, torch.cat([0 * x, x]) of logits)"
        )
    return two_labels(rows, kind)


def _colours(picture, channels, kernels):
    """The channels as `_core.mean_field` takes them."""
    sigmas = [kernel["channel_sigmas"] for kernel in kernels if kernel["channel_sigmas"]]
    if not sigmas:
        return None
    if picture.there is None:
        channels = on_the_scale(channels, np.concatenate(sigmas))
    return picture.passed(channels)


def is_bool(wanted):
    return isinstance(wanted, (bool, np.bool_))


def take_room(wanted, name):
    """An array that was given for a result."""
    if is_bool(wanted):
        return None
    there = on_gpu(wanted, name)
    if there is None and not isinstance(wanted, np.ndarray):
        raise TypeError(f"{name} must be True, False, or an array to write into, of numpy or on a GPU")
    if there._is_read_only if there is not None else not wanted.flags.writeable:
        raise ValueError(f"{name} is read-only")
    return _Array(name, wanted if there is None else stand_in(there), there)


def _result(wanted, room, size, dtypes, make):
    """What is given back: a new array, the caller's own, or None."""
    if room is None:
        return make(size, np.dtype(dtypes[0])) if wanted else None
    if room.values.shape != size:
        raise ValueError(f"{room.name} has the shape {room.values.shape}; {size} is needed")
    if room.values.dtype.name not in dtypes or not room.values.dtype.isnative:
        raise TypeError(f"{room.name} has elements of type {room.values.dtype}; {' or '.join(dtypes)} is needed")
    if room.there is None and not _is_dense(room.values):
        raise ValueError(f"{room.name} is not contiguous")
    return wanted


def _channels_last(result, room, axis):
    """A result, (labels, ...) or (...) where ``axis`` is None, as `_core.mean_field` takes it."""
    if result is None:
        return None
    there = result if room is None else room.there
    view = result if isinstance(result, np.ndarray) else stand_in(there) if room is None else room.values
    turned = view[..., np.newaxis] if axis is None else np.moveaxis(view, axis, -1)
    return turned if isinstance(result, np.ndarray) else as_stood_in(there, view, turned, "a result")


def _streams(arrays, stream):
    streams = {one.there._stream for one in arrays if one.there is not None}
    if stream is not None:
        streams.add(int(stream))
    return sorted(streams - {0})


def _is_dense(view):
    """Do the elements follow each other without gaps, in any order of the axes?"""
    step = view.itemsize
    for stride, size in sorted((abs(stride), size) for stride, size in zip(view.strides, view.shape) if size > 1):
        if stride != step:
            return False
        step *= size
    return True


# ---- kernels


def _kernels(grid, channels, spatial, bilateral, is_symmetric):
    """As ``Model`` has them, in its order; a weight may be None."""
    kernels = []

    def add(sigma, channel_sigmas, weight):
        if weight is None and not is_symmetric:
            raise ValueError("a kernel that is not normalized needs a weight of its own")
        kernels.append({
            "sigmas": one_or_many(sigma, len(grid), "sigma"),
            "channel_sigmas": channel_sigmas,
            "weight": None if weight is None else float(weight),
            "is_symmetric": is_symmetric,
        })

    for kernel in several(spatial):
        (sigma,), weight = with_weight(kernel, 1, "spatial", "a sigma, (sigma, weight) or None")
        add(sigma, None, weight)
    for kernel in several(bilateral) if channels is not None else ():
        (sigma, channel_sigma), weight = with_weight(
            kernel, 2, "bilateral", "(sigma, channel sigma), (sigma, channel sigma, weight) or None"
        )
        add(sigma, one_or_many(channel_sigma, channels.shape[-1], "channel_sigma"), weight)
    return kernels


def _share(kernels, strength, spatial_share):
    """Give weights to the kernels that have none."""
    sharing = [kernel for kernel in kernels if kernel["weight"] is None]
    if not sharing:
        return
    parts = parts_of_strength([kernel["channel_sigmas"] is None for kernel in sharing], spatial_share)
    for kernel, part in zip(sharing, parts):
        kernel["weight"] = strength / 2 * part


def _measure(kernels, picture, numbers, **options):
    """The same, with the strength that suits the energies, as ``Model`` measures it on the host."""
    image = None if picture is None else picture.here()
    model = Model(image, **{numbers.name: numbers.here()}, device="cpu", **options)
    for kernel, measured in zip(kernels, model.kernels):
        kernel["weight"] = measured["weight"]

