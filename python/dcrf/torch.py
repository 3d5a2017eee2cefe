"""Dense CRFs as parts of a network, for PyTorch (needed by this module only).

``MeanField`` is a layer: mean field with a fixed number of updates, with gradients to the logits, the picture, the
weights, the compatibility and the sigmas. ``CRFLoss`` is a loss: the relaxed energy, y'K(1 - y) for
Potts, with gradients to y, the picture and the parameters.

Batches are (B, labels, H, W) with pictures (B, channels, H, W), or volumes with one axis more. Tensors on the
CPU are processed by the C library (``dcrf/gradient.h``), on all cores; tensors on a GPU stay there, except with
``operator="exact"``. Both compute in single precision, whatever the type of the tensors; memory grows linearly
with the number of pixels. Gradients are those of the operators in use; docs/howto/train.md says how accurate those
of sigmas and pictures are on the lattice. With ``operator="exact"``, double precision and at most 4096 pixels
everything is computed in double, and ``torch.autograd.gradcheck`` passes.

>>> import torch
>>> from dcrf.torch import MeanField
>>> layer = MeanField(3, spatial=(1, 1), bilateral=(5, 20, 2), iterations=2, output="log_probabilities")
>>> logits = torch.zeros(1, 3, 6, 8, requires_grad=True)
>>> image = 255 * torch.rand(1, 3, 6, 8)
>>> log_q = layer(logits, image)
>>> log_q.shape
torch.Size([1, 3, 6, 8])
>>> torch.nn.functional.nll_loss(log_q, torch.zeros(1, 6, 8, dtype=torch.long)).backward()
>>> logits.grad.shape, layer.log_weights.grad.shape
(torch.Size([1, 3, 6, 8]), torch.Size([2]))
"""

import math

import torch

from . import _torch_dense, _torch_gpu, _torch_ops
from ._arrays import whole_number
from ._choices import NORMALIZATIONS, OPERATORS, choice
from ._torch_work import Keeper, LossFunction, MeanFieldFunction, Task, check_scale, numbers_of, result_type

__all__ = ["CRFLoss", "MeanField"]

_LEARNED = ("weights", "compatibility", "sigmas")
_MOST_KEPT = 64


def _kernel(given, count, name, meaning):
    """The sigmas of a kernel, each a number or a tuple of some, and its weight."""
    try:
        *sigmas, weight = given
        sigmas = [tuple(map(float, sigma)) if hasattr(sigma, "__len__") else float(sigma) for sigma in sigmas]
        weight = float(weight)
    except (TypeError, ValueError):
        sigmas = []
    if len(sigmas) != count:
        raise ValueError(f"{name} is {given!r}; it must be {meaning} or None")
    for number in [weight] + [n for sigma in sigmas for n in (sigma if isinstance(sigma, tuple) else (sigma,))]:
        if not 0 < number < math.inf:
            raise ValueError(f"{name} is {given!r}; sigmas and weights must be positive, since their logarithms are learned")
    return sigmas, weight


def _wide(parameter):
    """In single precision at least: the CPU has no exponentials of halves."""
    return parameter.float() if parameter.dtype in (torch.float16, torch.bfloat16) else parameter


class _Kernels(torch.nn.Module):
    """The kernels of a model and their parameters."""

    def __init__(
        self, labels, spatial, bilateral, compatibility, learn, normalize, operator, spacing, image_scale, per_label,
        constrained, threads,
    ):
        super().__init__()
        learn = (learn,) if isinstance(learn, str) else tuple(learn)
        for name in learn:
            if name not in _LEARNED:
                raise ValueError(f"learn has {name!r}; it takes {', '.join(map(repr, _LEARNED))}")
        self.labels = whole_number(labels, "labels")
        if self.labels < 2:
            raise ValueError(f"labels is {labels}; at least 2 are needed (a foreground has a background)")
        self.learn = learn
        self.per_label = bool(per_label)
        self.constrained = bool(constrained) and "compatibility" in learn
        if spatial is None and bilateral is None:
            raise ValueError("give spatial= or bilateral=")
        weights, self._sigma_counts = [], []  # of each kernel: whether every axis, and channel, has a sigma of its own
        flat = []
        for given, count, name, meaning in (
            (spatial, 1, "spatial", "(sigma, weight)"), (bilateral, 2, "bilateral", "(sigma, channel sigma, weight)")
        ):
            if given is None:
                continue
            sigmas, weight = _kernel(given, count, name, meaning)
            weights.append(weight)
            for sigma in sigmas:
                numbers = sigma if isinstance(sigma, tuple) else (sigma,)
                self._sigma_counts.append(len(numbers) if isinstance(sigma, tuple) else 0)
                flat += [math.log(number) for number in numbers]
        self._task = Task(
            labels=self.labels,
            is_symmetric=choice(normalize, NORMALIZATIONS, "normalize"),
            operator=choice(operator, OPERATORS, "operator"),
            threads=whole_number(threads, "threads"),
            has_spatial=spatial is not None,
            has_bilateral=bilateral is not None,
            spacing=tuple(map(float, spacing)) if hasattr(spacing, "__len__") else (float(spacing),),
            image_scale=None if image_scale is None else float(image_scale),
            channels_share_sigma=bilateral is not None and not self._sigma_counts[-1],
        )
        self._task_text = self._task.text()
        self._operator_name = operator
        logarithms = torch.log(torch.tensor(weights, dtype=torch.get_default_dtype()))
        if self.per_label:
            logarithms = logarithms[:, None].repeat(1, self.labels)
        self.log_weights = torch.nn.Parameter(logarithms, requires_grad="weights" in learn)
        self.log_sigmas = torch.nn.Parameter(
            torch.tensor(flat, dtype=torch.get_default_dtype()), requires_grad="sigmas" in learn
        )
        if compatibility is None and "compatibility" in learn:
            compatibility = 1 - torch.eye(self.labels)
        if compatibility is None:
            self.compatibility = None
        else:
            matrix = torch.as_tensor(compatibility).detach().clone().to(torch.get_default_dtype())
            if matrix.shape != (self.labels, self.labels):
                raise ValueError(f"compatibility has the shape {tuple(matrix.shape)}; {(self.labels,) * 2} is needed")
            self.compatibility = torch.nn.Parameter(matrix, requires_grad="compatibility" in learn)

    def extra_repr(self):
        texts = [f"{self.labels}"]
        values = [f"{value:.4g}" for value in self.sigmas.tolist()]
        weights = self.weights.tolist()
        names = [name for name, has in (("spatial", self._task.has_spatial), ("bilateral", self._task.has_bilateral)) if has]
        counts = iter(self._sigma_counts)
        for name, weight in zip(names, weights):
            shown = []
            for count in [next(counts) for _ in range(1 if name == "spatial" else 2)]:
                numbers, values = values[: max(count, 1)], values[max(count, 1) :]
                shown.append(f"({', '.join(numbers)})" if count else numbers[0])
            shown.append(f"[{', '.join(f'{w:.4g}' for w in weight)}]" if self.per_label else f"{weight:.4g}")
            texts.append(f"{name}=({', '.join(shown)})")
        return ", ".join(texts + [f"learn={self.learn}", f"operator={self._operator_name!r}"])

    @property
    def weights(self):
        """The weights of the kernels, spatial first; with ``per_label`` one row for each kernel."""
        return torch.exp(_wide(self.log_weights))

    @property
    def sigmas(self):
        """The sigmas as they were given: of the spatial kernel, then of the bilateral one: position and channels."""
        return torch.exp(_wide(self.log_sigmas))

    @property
    def used_compatibility(self):
        """The compatibility matrix: symmetric; if it is learned and ``constrained``, with a zero diagonal and a
        mean of 1 elsewhere. None: Potts."""
        if self.compatibility is None:
            return None
        matrix = _wide(self.compatibility)
        matrix = (matrix + matrix.T) / 2
        if self.constrained:
            off = 1 - torch.eye(self.labels, dtype=matrix.dtype, device=matrix.device)
            matrix = matrix * off
            matrix = matrix * (off.sum() / matrix.abs().sum())
        return matrix

    def penalty(self):
        """How far the compatibility is from Potts: the mean square of the difference over pairs of labels.
        Added to a loss, times a factor, it keeps the matrix near Potts where the data say little."""
        matrix = self.used_compatibility
        if matrix is None:
            return self.log_weights.new_zeros(())
        return (matrix - 1 + torch.eye(self.labels, dtype=matrix.dtype, device=matrix.device)).square().mean()

    def _used(self, axes, channels, shrink=1.0):
        """Weights, sigmas of every axis and channel, and the matrix of every kernel or None."""
        weights, sigmas, matrices = self.weights, self.sigmas, self.used_compatibility
        if self.per_label or matrices is not None:
            if matrices is None:
                matrices = 1 - torch.eye(self.labels, dtype=weights.dtype, device=weights.device)
            matrices = matrices.expand(len(weights), -1, -1)
        if self.per_label:
            halves = _wide(self.log_weights) / 2
            matrices = matrices * torch.exp(halves[:, :, None] + halves[:, None, :])
            weights = torch.ones_like(weights[:, 0])
        parts, at = [], 0
        for index, count in enumerate(self._sigma_counts):
            is_of_channels = self._task.has_bilateral and index == len(self._sigma_counts) - 1
            wanted = channels if is_of_channels else axes
            if count not in (0, wanted):
                what = "channels" if is_of_channels else "axes"
                raise ValueError(f"a kernel has {count} sigmas for {wanted} {what} of the picture")
            part = sigmas[at : at + max(count, 1)]
            parts.append((part if count else part.expand(wanted)) * (1.0 if is_of_channels else shrink))
            at += max(count, 1)
        return weights, torch.cat(parts), matrices

    def _is_dense(self, values):
        is_exact = self._task.operator == OPERATORS["exact"]
        return is_exact and values.dtype == torch.float64 and values[0, 0].numel() <= _torch_dense.MOST_PIXELS

    def _dense(self, values, image, used):
        """The picture and the parameters as the functions in double take them."""
        image = image.to(values)
        scale = check_scale(image.detach().cpu().numpy(), self._task, numbers_of(*used))
        return [image if scale is None else image * scale] + [None if one is None else one.to(values) for one in used]


def _check_batch(values, image, mask, labels, what):
    if not _torch_ops.is_compiling() and (torch.onnx.is_in_onnx_export() or torch.jit.is_tracing()):
        raise RuntimeError(
            "a dense CRF cannot be exported: its answer for this picture would be stored as a constant; export the network "
            "without it, and use dcrf.mean_field on what it gives"
        )
    if values.ndim not in (3, 4, 5) or values.shape[1] != labels:
        raise ValueError(f"{what} has the shape {tuple(values.shape)}; (B, {labels}, ...) is needed")
    if image.ndim != values.ndim or image.shape[0] != values.shape[0] or image.shape[2:] != values.shape[2:]:
        raise ValueError(
            f"{what} has the shape {tuple(values.shape)} and the image {tuple(image.shape)}; "
            "(B, labels, ...) and (B, channels, ...) over the same pixels are needed"
        )
    if mask is not None and mask.shape != values.shape[:1] + values.shape[2:]:
        raise ValueError(f"mask has the shape {tuple(mask.shape)}; {tuple(values.shape[:1] + values.shape[2:])} is needed")


def _beside(values, *others):
    """Where the values are: a layer may have been left on the CPU."""
    return [None if other is None else other.to(values.device) for other in others]


class MeanField(_Kernels):
    """Mean field with ``iterations`` updates as a layer.

    ``spatial`` is (sigma, weight) or None, ``bilateral`` (sigma, channel sigma, weight) or None, as in
    ``dcrf.Model``; a sigma may be a tuple, one for each axis (slowest first) or channel, and ``spacing`` is that of voxels.
    ``learn`` names what has gradients: "weights" and "sigmas" (by their logarithms, which are the parameters ``log_weights``
    and ``log_sigmas``), "compatibility". A compatibility that is learned is 1 - identity to begin with, and ``constrained``: see
    ``used_compatibility`` and ``penalty``. With ``per_label`` each label has a weight in each kernel, and a pair of labels
    the geometric mean of theirs.

    Call it with logits (B, labels, H, W), a picture (B, channels, H, W) on the scale of the sigmas, and
    perhaps a mask (B, H, W): pixels where it is zero neither send nor receive messages. The result are probabilities,
    zero at masked pixels, or with ``output="log_probabilities"`` their logarithms, which are computed without the probabilities and
    finite everywhere (zero at masked pixels): what ``nll_loss`` takes. It has the type of the logits; inside autocast it is float32.

    A picture from 0 to 1 is taken times 255, with a warning, and one that was normalized by mean and deviation is refused, where
    the channel sigma is at least 1; ``image_scale`` says what to multiply by, and nothing is looked at.

    With ``keys``, one hashable for each item of the batch, the lattices of the last 64 items are kept for the next
    call with the same key while picture and sigmas stay the same. ``forget()`` drops them. On a GPU a lattice takes less time
    than to look for one, and keys are not used. There, between the ways forth and back, one q is kept for each update, or with
    ``checkpoint`` about the square root of so many, for another filter in most updates.
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
        spacing=1.0,
        image_scale=None,
        per_label=False,
        constrained=True,
        output="probabilities",
        checkpoint=False,
        threads=0,
    ):
        super().__init__(
            labels, spatial, bilateral, compatibility, learn, normalize, operator, spacing, image_scale, per_label, constrained,
            threads,
        )
        if output not in ("probabilities", "log_probabilities"):
            raise ValueError(f"output is {output!r}; it must be 'probabilities' or 'log_probabilities'")
        self.iterations = whole_number(iterations, "iterations")
        self.output = output
        self.checkpoint = bool(checkpoint)
        self._keeper = Keeper(_MOST_KEPT)

    def extra_repr(self):
        return f"{super().extra_repr()}, iterations={self.iterations}, output={self.output!r}"

    def forward(self, logits, image, mask=None, keys=None):
        _check_batch(logits, image, mask, self.labels, "logits")
        if keys is not None and len(keys) != len(logits):
            raise ValueError(f"keys has {len(keys)} entries for a batch of {len(logits)}")
        used = self._used(logits.ndim - 2, image.shape[1])
        is_log = self.output == "log_probabilities"
        if self._is_dense(logits):
            image, *used = self._dense(logits, image, used)
            return _torch_dense.mean_field(self._task, self.iterations, is_log, logits, image, mask, *used)
        if _torch_ops.is_compiling():
            is_single = result_type(logits) == torch.float32
            image, *used = _beside(logits, image, *used)
            return _torch_ops.mean_field(
                logits, image, mask, *used, self.iterations, is_log, is_single, self._task_text
            )
        if _torch_gpu.takes(self._task, logits):
            every = max(1, math.isqrt(self.iterations)) if self.checkpoint else 1
            image, *used = _beside(logits, image, *used)
            found = _torch_gpu.MeanFieldOnGPU.apply(
                self._task, self.iterations, is_log, every, logits, image, mask, *used
            )
            return found.to(result_type(logits))
        return MeanFieldFunction.apply(
            self._task, self.iterations, is_log, self._keeper, keys, logits, image, mask, *used
        )

    def forget(self):
        """Drop the models that were kept for keys."""
        self._keeper.clear()

    def __getstate__(self):
        return {**self.__dict__, "_keeper": None}

    def __setstate__(self, state):
        super().__setstate__(state)
        self._keeper = Keeper(_MOST_KEPT)


class CRFLoss(_Kernels):
    """The relaxed pairwise energy of probabilities y (B, labels, H, W) as a loss, the mean over all pixels:
    sum_m w_m sum_{a != b} k_m(a, b) sum_ij mu(i, j) y_ai y_bj, which is y'K(1 - y) for Potts.

    Pixels where ``mask`` (B, H, W) is zero do not count. Arguments are those of ``MeanField``; by default
    nothing but y has a gradient. ``reduction`` is "mean" over the batch, "sum" or "none". With a ``scale_factor`` below 1
    the energy is that of y, picture and mask at so much of their size, with sigmas of positions as much smaller: most of the
    gradient for a part of the time.
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
        spacing=1.0,
        image_scale=None,
        per_label=False,
        constrained=True,
        reduction="mean",
        scale_factor=1.0,
        threads=0,
    ):
        super().__init__(
            labels, spatial, bilateral, compatibility, learn, normalize, operator, spacing, image_scale, per_label, constrained,
            threads,
        )
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction is {reduction!r}; it must be 'mean', 'sum' or 'none'")
        if not 0 < scale_factor <= 1:
            raise ValueError(f"scale_factor is {scale_factor!r}; it must be above 0 and at most 1")
        self.reduction = reduction
        self.scale_factor = float(scale_factor)

    def extra_repr(self):
        return f"{super().extra_repr()}, reduction={self.reduction!r}, scale_factor={self.scale_factor:g}"

    def forward(self, y, image, mask=None):
        _check_batch(y, image, mask, self.labels, "y")
        if self.scale_factor != 1:
            y, image, mask = self._smaller(y, image, mask)
        used = self._used(y.ndim - 2, image.shape[1], self.scale_factor)
        if self._is_dense(y):
            image, *used = self._dense(y, image, used)
            energies = _torch_dense.crf_loss(self._task, y, image, mask, *used)
        elif _torch_ops.is_compiling():
            is_single = result_type(y) == torch.float32
            image, *used = _beside(y, image, *used)
            energies = _torch_ops.crf_loss(y, image, mask, *used, is_single, self._task_text)
        elif _torch_gpu.takes(self._task, y):
            image, *used = _beside(y, image, *used)
            energies = _torch_gpu.LossOnGPU.apply(self._task, y, image, mask, *used).to(result_type(y))
        else:
            energies = LossFunction.apply(self._task, y, image, mask, *used)
        if self.reduction == "none":
            return energies
        return energies.mean() if self.reduction == "mean" else energies.sum()

    def _smaller(self, y, image, mask):
        """At a part of the size: means of y and colours, masks of the pixels in the middle."""
        size = [max(1, round(length * self.scale_factor)) for length in y.shape[2:]]

        def shrunk(values):
            pool = {1: torch.nn.functional.adaptive_avg_pool1d, 2: torch.nn.functional.adaptive_avg_pool2d,
                    3: torch.nn.functional.adaptive_avg_pool3d}[len(size)]
            return pool(values if values.dtype.is_floating_point else values.to(torch.float32), size)

        if mask is not None:
            mask = torch.nn.functional.interpolate(mask[:, None].to(torch.float32), size=size, mode="nearest")[:, 0]
        return shrunk(y), shrunk(image), mask
