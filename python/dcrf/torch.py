"""Dense CRFs as parts of a network, for PyTorch (which has to be there; the rest of dcrf does without).

``MeanField`` is a layer: mean field with a fixed number of updates, with gradients to the logits, the
weights, the compatibility and the sigmas. ``CRFLoss`` is a loss: the relaxed energy, y'K(1 - y) for
Potts, with gradients to y and to the parameters.

Batches are (B, labels, H, W) with pictures (B, channels, H, W), or volumes with one axis more. The work
is done on the CPU in single precision by the C library (``dcrf/gradient.h``), on all cores; memory grows
linearly with the number of pixels. Gradients are those of the operators in use; those by the sigmas of a
lattice are differences of lattices at 1.2 sigma and sigma / 1.2, and the only ones that cost much. There is no
gradient to the picture, and no second derivative.

>>> import torch
>>> from dcrf.torch import MeanField
>>> layer = MeanField(3, spatial=(1, 1), bilateral=(5, 20, 2), iterations=2)
>>> logits = torch.zeros(1, 3, 6, 8, requires_grad=True)
>>> image = 255 * torch.rand(1, 3, 6, 8)
>>> q = layer(logits, image)
>>> q.shape
torch.Size([1, 3, 6, 8])
>>> (-torch.log(q[:, 0])).mean().backward()
>>> logits.grad.shape, layer.log_weights.grad.shape
(torch.Size([1, 3, 6, 8]), torch.Size([2]))
"""

import math

import numpy as np
import torch

from . import _core
from ._arrays import one_or_many
from ._choices import NORMALIZATIONS, OPERATORS, choice

__all__ = ["CRFLoss", "MeanField"]

_MOST_FEATURES = 16


class _Kernels(torch.nn.Module):
    """The kernels of a model, their parameters, and models of single pictures."""

    def __init__(self, labels, spatial, bilateral, compatibility, learn, normalize, operator, threads):
        super().__init__()
        unknown = set(learn) - {"weights", "compatibility", "sigmas"}
        if unknown:
            raise ValueError(f"learn has {sorted(unknown)}; it takes 'weights', 'compatibility', 'sigmas'")
        self.labels = int(labels)
        self._is_symmetric = choice(normalize, NORMALIZATIONS, "normalize")
        self._operator = choice(operator, OPERATORS, "operator")
        self._threads = threads
        self._has = (spatial is not None, bilateral is not None)
        if not any(self._has):
            raise ValueError("give spatial= or bilateral=")
        weights, sigmas = [], []
        if spatial is not None:
            weights.append(spatial[1])
            sigmas.append(spatial[:1])
        if bilateral is not None:
            weights.append(bilateral[2])
            sigmas.append(bilateral[:2])
        if not all(weight > 0 for weight in weights):
            raise ValueError("weights must be positive: their logarithms are what is learned")
        self.log_weights = torch.nn.Parameter(
            torch.log(torch.tensor(weights, dtype=torch.float64)), requires_grad="weights" in learn
        )
        flat = [math.log(one_or_many(sigma, 1, "a sigma")[0]) for row in sigmas for sigma in row]
        self.log_sigmas = torch.nn.Parameter(
            torch.tensor(flat, dtype=torch.float64), requires_grad="sigmas" in learn
        )
        if compatibility is None and "compatibility" in learn:
            compatibility = 1 - torch.eye(self.labels)
        if compatibility is None:
            self.compatibility = None
        else:
            matrix = torch.as_tensor(compatibility, dtype=torch.float64)
            if matrix.shape != (self.labels, self.labels):
                raise ValueError(f"the compatibility has the shape {tuple(matrix.shape)}")
            self.compatibility = torch.nn.Parameter(matrix, requires_grad="compatibility" in learn)

    @property
    def weights(self):
        """The weights of the kernels, spatial first."""
        return torch.exp(self.log_weights)

    @property
    def sigmas(self):
        """The sigma of the spatial kernel, then those of the bilateral one: position and channels."""
        return torch.exp(self.log_sigmas)

    def _parameters_of_kernels(self):
        matrix = self.compatibility
        if matrix is not None:
            matrix = (matrix + matrix.T) / 2
        return self.weights, self.sigmas, matrix

    def _model(self, image, weights, sigmas, matrix):
        """A model without unary energies for one picture (channels, ...), float32."""
        shape = image.shape[1:]
        axes = len(shape)
        core = _core.Model(shape, (1.0,) * axes, self.labels, self._operator, self._threads)
        values = iter(sigmas)
        for kernel, has in enumerate(self._has):
            if not has:
                continue
            channels = np.moveaxis(image, 0, -1) if kernel == 1 else None
            position = (next(values),) * axes
            colours = (next(values),) * image.shape[0] if kernel == 1 else None
            index = core.counts()["kernels"]
            core.add_kernel(position, channels, colours, weights[index], self._is_symmetric)
            if matrix is not None:
                core.set_compatibility(index, np.ascontiguousarray(matrix, np.float32))
        return core

    def _pool_sigmas(self, derivatives, axes, channels):
        """From one derivative a feature to one a sigma of ours."""
        pooled, row = [], 0
        for kernel, has in enumerate(self._has):
            if not has:
                continue
            pooled.append(derivatives[row, :axes].sum())
            if kernel == 1:
                pooled.append(derivatives[row, axes : axes + channels].sum())
            row += 1
        return np.array(pooled)


def _check_batch(values, image, mask, labels, what):
    if values.ndim not in (3, 4, 5) or values.shape[1] != labels:
        raise ValueError(f"{what} has the shape {tuple(values.shape)}; (B, {labels}, ...) is needed")
    if image.ndim != values.ndim or image.shape[0] != values.shape[0] or image.shape[2:] != values.shape[2:]:
        raise ValueError(
            f"{what} has the shape {tuple(values.shape)} and the image {tuple(image.shape)}; "
            "(B, labels, ...) and (B, channels, ...) over the same pixels are needed"
        )
    if mask is not None and mask.shape != values.shape[:1] + values.shape[2:]:
        raise ValueError(f"the mask has the shape {tuple(mask.shape)}; (B, ...) is needed")


def _block(values):
    """(labels, ...) as rows of the library: (..., padded labels), contiguous."""
    labels = values.shape[0]
    rows = np.zeros(values.shape[1:] + (_core.padded(labels),), np.float32)
    rows[..., :labels] = np.moveaxis(values, 0, -1)
    return rows


def _planes(rows, labels):
    return np.moveaxis(rows[..., :labels], -1, 0)


def _numpy(tensor, dtype):
    return tensor.detach().cpu().to(dtype).numpy()


def _mask_bytes(mask, index):
    return None if mask is None else np.ascontiguousarray(_numpy(mask[index] != 0, torch.uint8))


class _Sums:
    """Where the derivatives of the parameters of one model go."""

    def __init__(self, kernels, labels, needs):
        weights, sigmas, matrix = needs
        self.weights = np.zeros(kernels) if weights else None
        self.sigmas = np.zeros((kernels, _MOST_FEATURES)) if sigmas else None
        self.matrix = np.zeros((kernels, labels, labels)) if matrix else None

    def arrays(self):
        return self.weights, self.matrix, self.sigmas


def _totals(kernels, sums, axes, channels, device, scales):
    """The sums over a batch, with a factor for each item, as tensors for autograd."""
    weights = sigmas = matrix = None
    for scale, one in zip(scales, sums):
        if one.weights is not None:
            weights = (0 if weights is None else weights) + scale * one.weights
        if one.sigmas is not None:
            pooled = scale * kernels._pool_sigmas(one.sigmas, axes, channels)
            sigmas = (0 if sigmas is None else sigmas) + pooled
        if one.matrix is not None:
            matrix = (0 if matrix is None else matrix) + scale * one.matrix.sum(0)
    return tuple(
        None if total is None else torch.as_tensor(total, dtype=torch.float64, device=device)
        for total in (weights, sigmas, matrix)
    )


class _MeanFieldFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, kernels, iterations, keys, logits, image, mask, weights, sigmas, matrix):
        runs, results = [], []
        numbers = (_numpy(weights, torch.float64), _numpy(sigmas, torch.float64))
        values = None if matrix is None else _numpy(matrix, torch.float64)
        for index in range(logits.shape[0]):
            model = kernels._kept_model(
                None if keys is None else keys[index], _numpy(image[index], torch.float32), *numbers, values
            )
            model.set_unary(np.moveaxis(-_numpy(logits[index], torch.float32), 0, -1))
            run = _core.Unrolled(model, iterations)
            q = np.empty(logits.shape[2:] + (_core.padded(kernels.labels),), np.float32)
            run.forward(_mask_bytes(mask, index), q)
            runs.append(run)
            results.append(torch.from_numpy(np.ascontiguousarray(_planes(q, kernels.labels))))
        ctx.kernels, ctx.runs = kernels, runs
        ctx.channels = image.shape[1]
        return torch.stack(results).to(device=logits.device, dtype=logits.dtype)

    @staticmethod
    def backward(ctx, gradient):
        kernels = ctx.kernels
        needs = ctx.needs_input_grad
        count = len(kernels.log_weights)
        logits, sums = [], []
        if ctx.runs is None:
            raise RuntimeError("backward a second time: its memory was given back (no retain_graph here)")
        for run, rows in zip(ctx.runs, gradient):
            unary = _block(np.zeros(tuple(rows.shape), np.float32)) if needs[3] else None
            one = _Sums(count, kernels.labels, needs[6:9])
            run.backward(_block(_numpy(rows, torch.float32)), unary, *one.arrays())
            sums.append(one)
            if needs[3]:
                logits.append(torch.from_numpy(-np.ascontiguousarray(_planes(unary, kernels.labels))))
        ctx.runs = None
        axes = gradient.ndim - 2
        totals = _totals(kernels, sums, axes, ctx.channels, gradient.device, [1.0] * len(sums))
        stacked = torch.stack(logits).to(gradient) if needs[3] else None
        return (None, None, None, stacked, None, None) + totals


class MeanField(_Kernels):
    """Mean field with ``iterations`` updates as a layer.

    ``spatial`` is (sigma, weight) or None, ``bilateral`` (sigma, channel sigma, weight) or None, as in
    ``dcrf.Model``. ``learn`` names what has gradients: "weights" and "sigmas" (by their logarithms, which
    are the parameters ``log_weights`` and ``log_sigmas``), "compatibility" (a matrix that is made
    symmetric; 1 - identity to begin with).

    Call it with logits (B, labels, H, W), a picture (B, channels, H, W) on the scale of the sigmas, and
    perhaps a mask (B, H, W): pixels where it is zero neither send nor receive messages, and their
    probabilities are zero. The result are probabilities. With ``keys``, one hashable for each item of the
    batch, the lattices of an item are kept for the next call with the same key while the sigmas stay:
    worth it where they are not learned and the same pictures come again. ``forget()`` drops them.
    """

    def __init__(
        self,
        labels,
        *,
        spatial=(3, 1.5),
        bilateral=(80, 13, 5),
        compatibility=None,
        iterations=5,
        learn=("weights",),
        normalize="symmetric",
        operator="fast",
        threads=0,
    ):
        super().__init__(labels, spatial, bilateral, compatibility, learn, normalize, operator, threads)
        self.iterations = int(iterations)
        self._kept = {}

    def forward(self, logits, image, mask=None, keys=None):
        _check_batch(logits, image, mask, self.labels, "logits")
        weights, sigmas, matrix = self._parameters_of_kernels()
        return _MeanFieldFunction.apply(
            self, self.iterations, keys, logits, image, mask, weights, sigmas, matrix
        )

    def forget(self):
        """Drop the models that were kept for keys."""
        self._kept.clear()

    def _kept_model(self, key, image, weights, sigmas, matrix):
        model, old = self._kept.get(key, (None, None)) if key is not None else (None, None)
        if model is not None and np.array_equal(old, sigmas):
            try:
                for index, weight in enumerate(weights):
                    model.set_weight(index, weight)
                    if matrix is not None:
                        model.set_compatibility(index, np.ascontiguousarray(matrix, np.float32))
                return model
            except RuntimeError:  # held by a run whose derivatives are still wanted
                pass
        model = self._model(image, weights, sigmas, matrix)
        if key is not None:
            self._kept[key] = model, np.array(sigmas)
        return model


class _LossFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, kernels, y, image, mask, weights, sigmas, matrix):
        needs = (weights.requires_grad, sigmas.requires_grad, matrix is not None and matrix.requires_grad)
        numbers = (_numpy(weights, torch.float64), _numpy(sigmas, torch.float64))
        values = None if matrix is None else _numpy(matrix, torch.float64)
        energies, derivatives, ctx.sums = [], [], []
        for index in range(y.shape[0]):
            model = kernels._model(_numpy(image[index], torch.float32), *numbers, values)
            rows = _block(_numpy(y[index], torch.float32))
            allowed = _mask_bytes(mask, index)
            if allowed is not None:
                rows *= allowed[..., np.newaxis]
            out = np.empty_like(rows) if y.requires_grad else None
            one = _Sums(len(kernels.log_weights), kernels.labels, needs)
            pixels = rows[..., 0].size if allowed is None else max(1, int(allowed.sum()))
            energies.append(_core.pairwise_gradient(model, rows, out, *one.arrays()) / pixels)
            ctx.sums.append((1 / pixels, one))
            if out is not None:
                if allowed is not None:
                    out *= allowed[..., np.newaxis]
                derivatives.append(torch.from_numpy(np.ascontiguousarray(_planes(out, kernels.labels)) / pixels))
        ctx.kernels, ctx.axes, ctx.channels = kernels, y.ndim - 2, image.shape[1]
        ctx.save_for_backward(torch.stack(derivatives).to(y) if derivatives else None)
        return torch.tensor(energies, dtype=y.dtype, device=y.device)

    @staticmethod
    def backward(ctx, gradient):
        (derivatives,) = ctx.saved_tensors
        scales = [float(g) * scale for g, (scale, _) in zip(gradient, ctx.sums)]
        totals = _totals(
            ctx.kernels, [one for _, one in ctx.sums], ctx.axes, ctx.channels, gradient.device, scales
        )
        shape = (-1,) + (1,) * (ctx.axes + 1)
        y = None if derivatives is None else derivatives * gradient.reshape(shape)
        return (None, y, None, None) + totals


class CRFLoss(_Kernels):
    """The relaxed pairwise energy of probabilities y (B, labels, H, W) as a loss, the mean over all pixels:
    sum_m w_m sum_{a != b} k_m(a, b) sum_ij mu(i, j) y_ai y_bj, which is y'K(1 - y) for Potts.

    Pixels where ``mask`` (B, H, W) is zero do not count. Arguments are those of ``MeanField``; by default
    nothing but y has a gradient. ``reduction`` is "mean" over the batch, "sum" or "none".
    """

    def __init__(
        self,
        labels,
        *,
        spatial=None,
        bilateral=(80, 13, 1),
        compatibility=None,
        learn=(),
        normalize="symmetric",
        operator="fast",
        reduction="mean",
        threads=0,
    ):
        super().__init__(labels, spatial, bilateral, compatibility, learn, normalize, operator, threads)
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction is {reduction!r}; it must be 'mean', 'sum' or 'none'")
        self.reduction = reduction

    def forward(self, y, image, mask=None):
        _check_batch(y, image, mask, self.labels, "y")
        energies = _LossFunction.apply(self, y, image, mask, *self._parameters_of_kernels())
        if self.reduction == "none":
            return energies
        return energies.mean() if self.reduction == "mean" else energies.sum()
