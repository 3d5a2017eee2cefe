"""Mean field and the relaxed energy where the tensors are: on a GPU, in PyTorch's stream, without a wait for the device.

Blocks are rows (B, ..., padded labels), as the library has them, and a kernel K is applied to all pictures of a batch at once
(``_torch_kernels``). All else is written in PyTorch's operations, and so are the derivatives. With F = (K - diag) q, mu symmetric, and
x = -2 dL/ds for an update s = logits - 2 sum_m w_m mu_m F_m,

    R = (K - diag) x,   dL/dq = sum_m w_m mu_m R_m,   dL/dw = q . mu R,   dL/dmu = w R' q,

since K is symmetric too: one filter for each kernel and update.
"""

import contextlib
import math
import weakref

import torch
from torch.autograd.function import once_differentiable

from . import _core
from ._choices import OPERATORS
from ._device import devices
from ._torch_kernels import Bilateral, Positions, dot, on_the_scale
from ._torch_span import Span
from ._torch_work import Needs

_is_there = None


def takes(task, values):
    """Is this done here? Exact operators and GPUs that the library cannot reach are left to the CPU."""
    global _is_there
    if not values.is_cuda or task.operator == OPERATORS["exact"]:
        return False
    if _is_there is None:
        _is_there = bool(devices())
    return _is_there


def _forbid_short_products():
    """Products of matrices in full single precision. Returns what undoes it; None: it is so already."""
    try:
        precision = torch.get_float32_matmul_precision()
    except RuntimeError:  # where the caller uses the setting that PyTorch 2.9 brought, the old one must not be read
        matmul = torch.backends.cuda.matmul
        precision, matmul.fp32_precision = matmul.fp32_precision, "ieee"
        return lambda: setattr(matmul, "fp32_precision", precision)
    if precision == "highest":
        return None
    torch.set_float32_matmul_precision("highest")
    return lambda: torch.set_float32_matmul_precision(precision)


@contextlib.contextmanager
def _exactly(device):
    """Single precision, whatever the caller allows for his own products."""
    undo = _forbid_short_products() if device.type == "cuda" else None
    try:
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        if undo:
            undo()


class _Field:
    """The kernels of a task over a batch of pictures with their weights and compatibilities."""

    def __init__(self, task, image, weights, sigmas, matrices):
        self._labels, self._row, self._has_image = task.labels, _core.padded(task.labels), task.has_bilateral
        axes, self._kernels = image.ndim - 2, []
        image, self._image_scale = on_the_scale(task, image, sigmas)
        if task.has_spatial:
            if task.operator == OPERATORS["lattice"]:
                self._kernels.append(Bilateral(task, image[:, :0], sigmas[:axes], self._labels))
            else:
                self._kernels.append(Positions(task, image.shape[2:], sigmas[:axes]))
            sigmas = sigmas[axes:]
        if task.has_bilateral:
            if task.operator == OPERATORS["grid"]:
                raise ValueError("the grid operator is for spatial kernels only")
            self._kernels.append(Bilateral(task, image, sigmas, self._labels))
        self._weights = weights.detach().float().unbind()
        self._own = sum(weight * kernel.diagonal for weight, kernel in zip(self._weights, self._kernels))
        self._matrices = self._weighed = None
        if matrices is not None:
            self._matrices = torch.nn.functional.pad(matrices.detach().float(), [0, self._row - self._labels] * 2)
            self._weighed = [weight * matrix for weight, matrix in zip(self._weights, self._matrices)]

        self._span = None

    def span(self, count):
        """What derivatives by sigmas need is kept from now on: of ``count`` updates."""
        self._span = Span(count)

    def give(self, q):
        """The only distribution of the span."""
        self._span.give(0, q)

    def rows(self, planes, padding=0.0):
        given = planes.detach().float().movedim(1, -1)
        return torch.nn.functional.pad(given, (0, self._row - self._labels), value=padding).contiguous()

    def planes(self, rows):
        return rows[..., : self._labels].movedim(-1, 1).contiguous()

    def _sum(self, q, update=None):
        """sum_m w_m (K_m - diag) q, or with matrices sum_m w_m mu_m (K_m - diag) q"""
        total = None
        is_kept = self._span is not None and update is not None and self._span.is_in_basis(update)
        for index, kernel in enumerate(self._kernels):
            found = kernel.apply(q, self._labels)
            if is_kept and isinstance(kernel, Bilateral):
                kernel.keep(update, found.clone())
            if self._matrices is not None:
                found = found.addcmul_(kernel.diagonal, q, value=-1).reshape(-1, self._row)
                weighed = self._weighed[index]
                total = torch.mm(found, weighed) if total is None else torch.addmm(total, found, weighed)
            elif total is None:
                total = found.mul_(self._weights[index])
            else:
                total.addcmul_(found, self._weights[index])
        return total.addcmul_(self._own, q, value=-1) if self._matrices is None else total.reshape(q.shape)

    def __call__(self, q):
        """sum_m w_m mu_m (K_m - diag) q"""
        found = self._sum(q)
        return found.sum(-1, keepdim=True) - found if self._matrices is None else found

    def update(self, logits, q, update=None):
        """s = logits - 2 field(q); for Potts but for what the labels of a pixel share, which no softmax sees. With a number it is
        one of the updates of the span."""
        if self._span is not None and update is not None:
            self._span.give(update, q)
        return torch.add(logits, self._sum(q, update), alpha=2 if self._matrices is None else -2)

    def begin(self, needs):
        self._needs = needs
        self._by_weight = [0] * len(self._kernels)
        self._by_matrix = [0] * len(self._kernels)
        self._is_collecting = needs.sigmas or needs.image
        for kernel in self._kernels if self._is_collecting else ():
            kernel.begin(needs)
        if needs.sigmas:
            self._span.begin()

    def _mix(self, rows, kernel, is_centred):
        if self._matrices is not None:
            return torch.matmul(rows, self._matrices[kernel])
        return -rows if is_centred else rows.sum(-1, keepdim=True) - rows

    def back(self, q, x, is_centred):
        """dL/dq for L = x . field(q) with a constant x; and what that says of the parameters is added up. Where the rows of x are
        centred, so that they sum to zero, dL/dq for Potts is given but for what the labels of a pixel share."""
        total, needs = None, self._needs
        if needs.sigmas:
            self._span.next()
            self._span.add("x", x)
            self._is_centred = is_centred
        for index, kernel in enumerate(self._kernels):
            filtered = kernel.apply(x, self._labels)
            if needs.sigmas and isinstance(kernel, Bilateral):
                self._span.add(index, filtered)
            found = torch.addcmul(filtered, kernel.diagonal, x, value=-1)
            weight = self._weights[index]
            if self._matrices is not None:
                flat = found.reshape(-1, self._row)
                if needs.matrices or needs.weights:
                    products = torch.mm(flat.T, q.reshape(-1, self._row))
                    self._by_weight[index] = self._by_weight[index] + (self._matrices[index] * products).sum()
                    self._by_matrix[index] = self._by_matrix[index] + weight * products[: self._labels, : self._labels]
                weighed = self._weighed[index]
                total = torch.mm(flat, weighed) if total is None else torch.addmm(total, flat, weighed)
            else:
                mixed = found.neg_() if is_centred else found.sum(-1, keepdim=True) - found
                if needs.weights:
                    self._by_weight[index] = self._by_weight[index] + dot(q, mixed)
                total = weight * mixed if total is None else total.addcmul_(mixed, weight)
            if needs.image and isinstance(kernel, Bilateral):
                adjoint = weight * self._mix(x, index, is_centred)
                kernel.collect(q, adjoint, weight * self._mix(filtered, index, is_centred), self._labels)
        return total.reshape(q.shape)

    def _finish_sigmas(self):
        span = self._span
        for index, kernel in enumerate(self._kernels):
            weight = self._weights[index]
            adjoints = [weight * self._mix(x, index, self._is_centred) for x in span.sums("x")]
            returned = None
            if isinstance(kernel, Bilateral):
                returned = [weight * self._mix(x, index, self._is_centred) for x in span.sums(index)]
            kernel.add_sigmas(span, adjoints, returned, self._labels)

    def finish(self, image):
        """Derivatives by image, weights, sigmas, matrices; None: not wanted."""
        by_image = by_sigma = None
        if self._needs.sigmas:
            self._finish_sigmas()
        if self._is_collecting:
            for kernel in self._kernels:
                if isinstance(kernel, Bilateral):
                    kernel.finish()
            if self._needs.sigmas:
                by_sigma = torch.cat([kernel.by_sigma() for kernel in self._kernels])
            if self._needs.image:
                last = self._kernels[-1].by_image() if self._has_image else None
                by_image = torch.zeros_like(image) if last is None else last * self._image_scale
        weights = torch.stack(self._by_weight) if self._needs.weights else None
        return by_image, weights, by_sigma, torch.stack(self._by_matrix) if self._needs.matrices else None


# ---- mean field


def _inside(mask):
    return None if mask is None else (mask != 0).float().unsqueeze(-1)


def _distribution(s, inside):
    q = torch.softmax(s, -1)
    return q if inside is None else q * inside


def _updates(field, logits, inside, iterations, every):
    """The last s, and every so many q from the second one on: {update: q}. The first is softmax of the logits."""
    s, kept = logits, {}
    for update in range(iterations):
        q = _distribution(s, inside)
        if update and update % every == 0:
            kept[update] = q
        s = field.update(logits, q, update)
    return s, kept


def _backwards(field, logits, inside, iterations, every, kept):
    """(update, q) from the last to the first; what was not kept is computed again, ``every`` at a time."""
    for begin in reversed(range(0, iterations, every)):
        q = kept[begin] if begin else _distribution(logits, inside)
        some = [q]
        for _ in range(begin + 1, min(begin + every, iterations)):
            some.append(_distribution(field.update(logits, some[-1]), inside))
        while some:
            yield some.pop()


def _result(s, inside, is_log):
    if not is_log:
        return _distribution(s, inside)
    found = torch.log_softmax(s, -1)
    return found if inside is None else torch.where(inside > 0, found, 0 * inside)


def mean_field(task, iterations, is_log, every, logits, image, mask, weights, sigmas, matrices, has_sigmas=False):
    """The result, the field and what was kept; with ``has_sigmas`` also for their derivatives."""
    with _exactly(logits.device):
        field = _Field(task, image, weights, sigmas, matrices)
        if has_sigmas and iterations:
            field.span(iterations)
        rows, inside = field.rows(logits, -math.inf), _inside(mask)
        s, kept = _updates(field, rows, inside, iterations, every)
        return field.planes(_result(s, inside, is_log)), field, kept


def mean_field_back(field, iterations, is_log, every, gradient, result, kept, logits, image, mask, needs):
    """Derivatives by logits, image, weights, sigmas, matrices."""
    with _exactly(logits.device):
        rows, inside = field.rows(logits, -math.inf), _inside(mask)
        given, q = field.rows(gradient), field.rows(result, -math.inf if is_log else 0.0)
        if is_log:
            if inside is not None:
                given = torch.where(inside > 0, given, torch.zeros_like(given))
            e = given - q.exp() * given.sum(-1, keepdim=True)
        else:
            # Where q is zero the derivative may be anything.
            given = torch.where(q > 0, given, torch.zeros_like(given))
            e = q * (given - (q * given).sum(-1, keepdim=True))
        field.begin(needs if iterations else needs._replace(sigmas=False))
        by_logits = e
        for q in _backwards(field, rows, inside, iterations, every, kept):
            e = torch._softmax_backward_data(field.back(q, -2 * e, True), q, -1, torch.float32)
            by_logits = by_logits + e
        return (field.planes(by_logits) if needs.values else None,) + field.finish(image)


class MeanFieldOnGPU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, task, iterations, is_log, every, logits, image, mask, weights, sigmas, matrices):
        result, field, kept = mean_field(
            task, iterations, is_log, every, logits, image, mask, weights, sigmas, matrices, ctx.needs_input_grad[8]
        )
        # Autograd lets go of what it saved after the last way back, and with it of the lattices.
        holder, token = [field], torch.empty(0)
        weakref.finalize(token, holder.clear)
        ctx.save_for_backward(token, result, logits, image, mask, *kept.values())
        ctx.rest = (holder, iterations, is_log, every, list(kept))
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        _, result, logits, image, mask, *kept = ctx.saved_tensors
        (field,), iterations, is_log, every, updates = ctx.rest
        wanted = ctx.needs_input_grad
        needs = Needs(wanted[4], wanted[5], *wanted[7:10])
        kept = dict(zip(updates, kept))
        found = mean_field_back(field, iterations, is_log, every, gradient, result, kept, logits, image, mask, needs)
        return (None,) * 4 + found[:2] + (None,) + found[2:]


# ---- the relaxed energy


def crf_loss(task, y, image, mask, weights, sigmas, matrices):
    """Energies a pixel, one for each picture; the field, the rows of y, the field of y, and one over the number of pixels."""
    with _exactly(y.device):
        field = _Field(task, image, weights, sigmas, matrices)
        rows, inside = field.rows(y), _inside(mask)
        if inside is not None:
            rows = rows * inside
            pixels = inside.flatten(1).sum(1, dtype=torch.float64).clamp(min=1)
        else:
            pixels = torch.full((len(y),), float(y[0, 0].numel()), dtype=torch.float64, device=y.device)
        found = field(rows)
        energies = (rows * found).flatten(1).sum(1, dtype=torch.float64) / pixels
        return energies.float(), field, rows, found, 1 / pixels


def crf_loss_back(field, gradient, rows, found, factors, image, mask, needs):
    """Derivatives by y, image, weights, sigmas, matrices."""
    with _exactly(rows.device):
        each = (gradient.double() * factors).float().reshape((-1,) + (1,) * (rows.ndim - 1))
        if needs.sigmas:
            field.span(1)
            field.give(rows)
        field.begin(needs)
        if needs.image or needs.weights or needs.sigmas or needs.matrices:
            field.back(rows, each * rows, False)
        by_y = None
        if needs.values:
            by_y = 2 * each * found
            by_y = field.planes(by_y if mask is None else by_y * _inside(mask))
        return (by_y,) + field.finish(image)


class LossOnGPU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, task, y, image, mask, weights, sigmas, matrices):
        energies, field, rows, found, factors = crf_loss(task, y, image, mask, weights, sigmas, matrices)
        holder, token = [field], torch.empty(0)
        weakref.finalize(token, holder.clear)
        ctx.save_for_backward(token, rows, found, factors, image, mask)
        ctx.holder = holder
        return energies

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        _, rows, found, factors, image, mask = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        needs = Needs(wanted[1], wanted[2], *wanted[4:7])
        found = crf_loss_back(ctx.holder[0], gradient, rows, found, factors, image, mask, needs)
        return (None,) + found[:2] + (None,) + found[2:]
