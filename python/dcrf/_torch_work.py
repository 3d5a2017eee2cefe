"""From tensors to the C library and back: what ``dcrf.torch`` differentiates.

Two functions, mean field and the relaxed energy, take tensors and a ``Task`` with the rest. They are called in two ways: here by
``torch.autograd.Function`` with what was computed kept for the way back; and, while a graph is compiled, by the operators of
``_torch_ops``, which compute it again.
"""

import collections
import hashlib
import json
import weakref
from typing import NamedTuple, Optional, Tuple

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from . import _core
from ._superpixels import on_the_scale

_MOST_FEATURES = 16
# Of pictures that were normalized by mean and deviation; a photograph on the scale 0 to 255 has no negative numbers.
LARGEST_DEVIATION = 20.0


class Task(NamedTuple):
    """What is not a tensor."""

    labels: int
    is_symmetric: bool
    operator: int
    threads: int
    has_spatial: bool
    has_bilateral: bool
    spacing: Tuple[float, ...]
    image_scale: Optional[float]
    channels_share_sigma: bool

    @staticmethod
    def read(text):
        values = json.loads(text)
        return Task(**{**values, "spacing": tuple(values["spacing"])})

    def text(self):
        return json.dumps(self._asdict())

    @property
    def kernels(self):
        return self.has_spatial + self.has_bilateral


class Numbers(NamedTuple):
    """Parameters on the host: weights (kernels), sigmas (every axis and channel of the kernels, one after the other), and
    compatibilities (kernels, labels, labels) or None."""

    weights: np.ndarray
    sigmas: np.ndarray
    matrices: Optional[np.ndarray]


def numbers_of(weights, sigmas, matrices):
    return Numbers(*(None if values is None else _numpy(values, torch.float64) for values in (weights, sigmas, matrices)))


def _numpy(tensor, dtype):
    return tensor.detach().cpu().to(dtype).numpy()


def normalized_message(least, most, sigma):
    return (
        f"the image lies between {least:.3g} and {most:.3g}, as if it was normalized, and the channel sigma {sigma:g} is for 0 to 255: "
        "give it before that, or say with image_scale= what to multiply it by (1: it is as it should be)"
    )


def check_scale(pictures, task, numbers):
    """What pictures, as float32, are multiplied by; None: they are as they should be."""
    if not task.has_bilateral:
        return None
    if task.image_scale is not None:
        return None if task.image_scale == 1 else task.image_scale
    channel_sigmas = numbers.sigmas[-pictures.shape[1] :]
    if channel_sigmas.min() < 1 or not pictures.size:
        return None
    least, most = float(pictures.min()), float(pictures.max())
    if least < 0 and max(-least, most) < LARGEST_DEVIATION:
        raise ValueError(normalized_message(least, most, channel_sigmas.min()))
    return 255.0 if on_the_scale(pictures, channel_sigmas) is not pictures else None


def model_of(task, picture, numbers):
    """A model without unary energies for one picture (channels, ...)."""
    shape = picture.shape[1:]
    axes = len(shape)
    spacing = task.spacing if len(task.spacing) == axes else task.spacing * axes
    core = _core.Model(shape, spacing, task.labels, task.operator, task.threads)
    sigmas, index = list(numbers.sigmas), 0
    for kernel, has in enumerate((task.has_spatial, task.has_bilateral)):
        if not has:
            continue
        position, sigmas = tuple(sigmas[:axes]), sigmas[axes:]
        channels = np.moveaxis(picture, 0, -1) if kernel == 1 else None
        core.add_kernel(position, channels, tuple(sigmas) if kernel == 1 else None, numbers.weights[index], task.is_symmetric)
        index += 1
    set_numbers(core, numbers)
    return core


def set_numbers(core, numbers):
    """Weights and compatibilities; sigmas stay."""
    for index, weight in enumerate(numbers.weights):
        core.set_weight(index, weight)
        if numbers.matrices is not None:
            core.set_compatibility(index, np.ascontiguousarray(numbers.matrices[index], np.float32))


class Keeper:
    """Models of pictures that come again, the last ``size`` that were used. A key stands for a picture as long as that and the
    sigmas stay the same."""

    def __init__(self, size):
        self._size = size
        self._kept = collections.OrderedDict()

    def __len__(self):
        return len(self._kept)

    def clear(self):
        self._kept.clear()

    def model(self, key, task, picture, numbers):
        if key is None:
            return model_of(task, picture, numbers)
        digest = hashlib.blake2b(np.ascontiguousarray(picture), digest_size=16)
        digest.update(repr((picture.shape, task)).encode() + numbers.sigmas.tobytes())
        digest = digest.digest()
        model, old = self._kept.get(key, (None, None))
        if old == digest:
            try:
                set_numbers(model, numbers)
                self._kept.move_to_end(key)
                return model
            except RuntimeError:  # held by a run whose derivatives are still wanted
                pass
        model = model_of(task, picture, numbers)
        self._kept[key] = model, digest
        self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return model


# ---- blocks of the library


def _block(values):
    """(labels, ...) as rows of the library: (..., padded labels), contiguous."""
    labels = values.shape[0]
    rows = np.zeros(values.shape[1:] + (_core.padded(labels),), np.float32)
    rows[..., :labels] = np.moveaxis(values, 0, -1)
    return rows


def _planes(rows, labels):
    return np.ascontiguousarray(np.moveaxis(rows[..., :labels], -1, 0))


def _mask_bytes(mask, index):
    return None if mask is None else np.ascontiguousarray(_numpy(mask[index] != 0, torch.uint8))


class Needs(NamedTuple):
    """Which derivatives are wanted."""

    values: bool
    image: bool
    weights: bool
    sigmas: bool
    matrices: bool


class _Sums:
    """Where the derivatives by parameters and features of one model go."""

    def __init__(self, task, picture, needs):
        self._axes = picture.ndim - 1
        self._channels = picture.shape[0] if task.has_bilateral else 0
        self._task = task
        self.weights = np.zeros(task.kernels) if needs.weights else None
        self.sigmas = np.zeros((task.kernels, _MOST_FEATURES)) if needs.sigmas else None
        self.matrices = np.zeros((task.kernels, task.labels, task.labels)) if needs.matrices else None
        has_features = needs.image and task.has_bilateral
        self.features = np.zeros(picture[0].size * _MOST_FEATURES, np.float32) if has_features else None

    def arrays(self):
        return self.weights, self.matrices, self.sigmas, self.features

    def by_sigma(self):
        """In the order of ``Numbers``: axes as the caller has them, while the library has the last one first."""
        found, row = [], 0
        for kernel, has in enumerate((self._task.has_spatial, self._task.has_bilateral)):
            if has:
                found += list(self.sigmas[row, : self._axes][::-1])
                if kernel == 1:
                    found += list(self.sigmas[row, self._axes : self._axes + self._channels])
                row += 1
        return np.array(found)

    def by_picture(self, shape, numbers, scale):
        """(channels, ...): features are the picture times its scale, divided by the sigmas."""
        dimension = self._axes + self._channels
        rows = self.features[: self.features.size // _MOST_FEATURES * dimension].reshape(-1, dimension)[:, self._axes :]
        factors = (1 if scale is None else scale) / numbers.sigmas[-self._channels :]
        return np.ascontiguousarray((rows * factors).T.reshape(shape), np.float32)


def _gather(sums, factors, shape, numbers, scale, needs):
    """Derivatives by image, weights, sigmas, matrices over a batch, each None where it is not wanted."""
    image = None
    if needs.image:
        zero = np.zeros(shape[1:], np.float32)
        image = np.stack([
            np.float32(factor) * (one.by_picture(shape[1:], numbers, scale) if one.features is not None else zero)
            for factor, one in zip(factors, sums)
        ])
    weights = sum(factor * one.weights for factor, one in zip(factors, sums)) if needs.weights else None
    sigmas = sum(factor * one.by_sigma() for factor, one in zip(factors, sums)) if needs.sigmas else None
    matrices = sum(factor * one.matrices for factor, one in zip(factors, sums)) if needs.matrices else None
    return image, weights, sigmas, matrices


def tensors(arrays, likes):
    """Arrays as tensors where their parameters are, which may not be where the gradient is."""
    return tuple(
        None if array is None else torch.from_numpy(np.ascontiguousarray(array)).to(like) for array, like in zip(arrays, likes)
    )


def _pictures(image, task, numbers):
    pictures = _numpy(image, torch.float32)
    scale = check_scale(pictures, task, numbers)
    return (pictures if scale is None else pictures * np.float32(scale)), scale


# ---- mean field


def mean_field_runs(task, iterations, is_log, keeper, keys, logits, image, mask, numbers):
    """The result, float32, and what the way back needs: runs, pictures, their scale."""
    pictures, scale = _pictures(image, task, numbers)
    runs, results = [], []
    for index, picture in enumerate(pictures):
        key = None if keys is None else keys[index]
        model = keeper.model(key, task, picture, numbers) if keeper is not None else model_of(task, picture, numbers)
        model.set_unary(np.moveaxis(-_numpy(logits[index], torch.float32), 0, -1))
        run = _core.Unrolled(model, iterations)
        q = np.empty(tuple(logits.shape[2:]) + (_core.padded(task.labels),), np.float32)
        run.forward(_mask_bytes(mask, index), q, is_log)
        runs.append(run)
        results.append(torch.from_numpy(_planes(q, task.labels)))
    return torch.stack(results), runs, pictures, scale


def mean_field_back(task, is_log, gradient, runs, pictures, scale, numbers, needs):
    """Derivatives by logits, image, weights, sigmas, matrices: arrays or None."""
    logits, sums = [], []
    for run, rows, picture in zip(runs, gradient, pictures):
        unary = _block(np.zeros(tuple(rows.shape), np.float32)) if needs.values else None
        one = _Sums(task, picture, needs)
        run.backward(_block(_numpy(rows, torch.float32)), is_log, unary, *one.arrays(), task.channels_share_sigma)
        sums.append(one)
        if needs.values:
            logits.append(-_planes(unary, task.labels))
    found = _gather(sums, [1.0] * len(sums), pictures.shape, numbers, scale, needs)
    return (np.stack(logits) if needs.values else None,) + found


class MeanFieldFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, task, iterations, is_log, keeper, keys, logits, image, mask, weights, sigmas, matrices):
        numbers = numbers_of(weights, sigmas, matrices)
        result, runs, pictures, scale = mean_field_runs(task, iterations, is_log, keeper, keys, logits, image, mask, numbers)
        # The runs hold every q. Autograd lets go of what it saved after the last way back, and with it of them.
        token = torch.empty(0)
        weakref.finalize(token, runs.clear)
        ctx.save_for_backward(token)
        ctx.rest = (task, is_log, runs, pictures, scale, numbers)
        ctx.likes = [_like(tensor) for tensor in (logits, image, weights, sigmas, matrices)]
        return result.to(device=logits.device, dtype=result_type(logits))

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        ctx.saved_tensors  # raises where the graph was freed: backward(retain_graph=True) keeps it
        task, is_log, runs, pictures, scale, numbers = ctx.rest
        wanted = ctx.needs_input_grad
        needs = Needs(wanted[5], wanted[6], *wanted[8:11])
        found = tensors(mean_field_back(task, is_log, gradient, runs, pictures, scale, numbers, needs), ctx.likes)
        return (None,) * 5 + found[:2] + (None,) + found[2:]


def _like(tensor):
    """A tensor of no elements with the device and type of another."""
    return None if tensor is None else tensor.detach().new_empty(0)


def result_type(values):
    """Single precision inside autocast, outside what was given."""
    if values.dtype in (torch.float16, torch.bfloat16) and _in_autocast():
        return torch.float32
    return values.dtype if values.dtype.is_floating_point else torch.float32


def _in_autocast():
    if hasattr(torch.library, "custom_op"):  # since 2.4, and so is the question for a device
        return torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")
    return torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled()


# ---- the relaxed energy


def loss_parts(task, y, image, mask, numbers, needs):
    """Energies a pixel, one for each item; and for the way back: derivatives by y or None, sums, factors, pictures, scale."""
    pictures, scale = _pictures(image, task, numbers)
    energies, by_y, sums, factors = [], [], [], []
    for index, picture in enumerate(pictures):
        model = model_of(task, picture, numbers)
        rows = _block(_numpy(y[index], torch.float32))
        allowed = _mask_bytes(mask, index)
        if allowed is not None:
            rows *= allowed[..., np.newaxis]
        out = np.empty_like(rows) if needs.values else None
        one = _Sums(task, picture, needs)
        pixels = rows[..., 0].size if allowed is None else max(1, int(allowed.sum()))
        energies.append(_core.pairwise_gradient(model, rows, out, *one.arrays(), task.channels_share_sigma) / pixels)
        sums.append(one)
        factors.append(1 / pixels)
        if out is not None:
            if allowed is not None:
                out *= allowed[..., np.newaxis]
            by_y.append(_planes(out, task.labels) / np.float32(pixels))
    return energies, np.stack(by_y) if needs.values else None, sums, factors, pictures.shape, scale


def loss_back(gradient, by_y, sums, factors, shape, scale, numbers, needs):
    values = _numpy(gradient, torch.float64)
    if by_y is not None:
        by_y = by_y * values.astype(np.float32).reshape((-1,) + (1,) * (by_y.ndim - 1))
    return (by_y,) + _gather(sums, [factor * value for factor, value in zip(factors, values)], shape, numbers, scale, needs)


class LossFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, task, y, image, mask, weights, sigmas, matrices):
        wanted = ctx.needs_input_grad
        needs = Needs(wanted[1], wanted[2], *wanted[4:7])
        numbers = numbers_of(weights, sigmas, matrices)
        energies, *parts = loss_parts(task, y, image, mask, numbers, needs)
        ctx.rest = (parts, numbers, needs)
        ctx.likes = [_like(tensor) for tensor in (y, image, weights, sigmas, matrices)]
        return torch.tensor(energies, dtype=result_type(y), device=y.device)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        parts, numbers, needs = ctx.rest
        found = tensors(loss_back(gradient, *parts, numbers, needs), ctx.likes)
        return (None,) + found[:2] + (None,) + found[2:]
