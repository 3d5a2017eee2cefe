"""Operators for graphs that are compiled: ``dcrf::mean_field`` and ``dcrf::crf_loss`` (``torch.library.custom_op``, PyTorch 2.4).

An operator is a function of tensors and numbers alone, so a ``Task`` is a string here, and a backward operator computes the way forth
again. Fake kernels say what shapes come out, so that ``torch.compile`` keeps the graph whole. Tensors on a GPU have kernels of their own
(``_torch_gpu``).
"""

import torch

from . import _torch_gpu
from ._torch_work import (
    Needs, Task, loss_back, loss_parts, mean_field_back, mean_field_runs, numbers_of, tensors
)

_PARAMETERS = "Tensor image, Tensor? mask, Tensor weights, Tensor sigmas, Tensor? matrices"
_FIVE = "(Tensor, Tensor, Tensor, Tensor, Tensor)"
_DIFFERENTIABLE = (0, 1, 3, 4, 5)  # of logits or y, image, mask, weights, sigmas, matrices

exist = hasattr(torch.library, "custom_op")


def is_compiling():
    return exist and torch.compiler.is_compiling()


def _define(name, schema, function, fake, on_gpu):
    operator = torch.library.custom_op(name, function, mutates_args=(), schema=schema)
    operator.register_fake(fake)
    operator.register_kernel("cuda", on_gpu)
    return operator


def _filled(arrays, likes):
    """Operators give tensors: empty ones for what is not wanted."""
    return _without_none(tensors(arrays, likes), likes)


def _without_none(found, likes):
    return tuple(likes[0].new_empty(0) if one is None else one.to(like) for one, like in zip(found, likes))


def _empty(needs, likes):
    return tuple(
        torch.empty_like(like, memory_format=torch.contiguous_format) if is_wanted and like is not None else likes[0].new_empty(0)
        for is_wanted, like in zip(needs, likes)
    )


def _result(values, shape, is_single):
    return values.new_empty(shape, dtype=torch.float32 if is_single else values.dtype)


# ---- mean field


def _mean_field(logits, image, mask, weights, sigmas, matrices, iterations, is_log, is_single, task):
    numbers = numbers_of(weights, sigmas, matrices)
    found = mean_field_runs(Task.read(task), iterations, is_log, None, None, logits, image, mask, numbers)[0]
    return found.to(device=logits.device, dtype=torch.float32 if is_single else logits.dtype)


def _fake_mean_field(logits, image, mask, weights, sigmas, matrices, iterations, is_log, is_single, task):
    return _result(logits, logits.shape, is_single)


def _mean_field_backward(gradient, logits, image, mask, weights, sigmas, matrices, iterations, is_log, task, needs):
    settings, numbers = Task.read(task), numbers_of(weights, sigmas, matrices)
    _, runs, pictures, scale = mean_field_runs(settings, iterations, is_log, None, None, logits, image, mask, numbers)
    found = mean_field_back(settings, is_log, gradient, runs, pictures, scale, numbers, Needs(*needs))
    return _filled(found, (logits, image, weights, sigmas, matrices))


def _mean_field_on_gpu(logits, image, mask, weights, sigmas, matrices, iterations, is_log, is_single, task):
    settings, given = Task.read(task), (logits, image, mask, weights, sigmas, matrices)
    if not _torch_gpu.takes(settings, logits):
        return _mean_field(*given, iterations, is_log, is_single, task)
    found = _torch_gpu.mean_field(settings, iterations, is_log, max(1, iterations), *given)[0]
    return found.to(torch.float32 if is_single else logits.dtype)


def _mean_field_backward_on_gpu(gradient, logits, image, mask, weights, sigmas, matrices, iterations, is_log, task, needs):
    settings, given = Task.read(task), (logits, image, mask, weights, sigmas, matrices)
    if not _torch_gpu.takes(settings, logits):
        return _mean_field_backward(gradient, *given, iterations, is_log, task, needs)
    result, field, kept = _torch_gpu.mean_field(settings, iterations, is_log, 1, *given, bool(needs[3]))
    found = _torch_gpu.mean_field_back(
        field, iterations, is_log, 1, gradient, result, kept, logits, image, mask, Needs(*needs)
    )
    return _without_none(found, (logits, image, weights, sigmas, matrices))


def _fake_mean_field_backward(gradient, logits, image, mask, weights, sigmas, matrices, iterations, is_log, task, needs):
    return _empty(needs, (logits, image, weights, sigmas, matrices))


# ---- the relaxed energy


def _crf_loss(y, image, mask, weights, sigmas, matrices, is_single, task):
    numbers = numbers_of(weights, sigmas, matrices)
    energies = loss_parts(Task.read(task), y, image, mask, numbers, Needs(*[False] * 5))[0]
    return torch.tensor(energies, dtype=torch.float32 if is_single else y.dtype, device=y.device)


def _fake_crf_loss(y, image, mask, weights, sigmas, matrices, is_single, task):
    return _result(y, y.shape[:1], is_single)


def _crf_loss_backward(gradient, y, image, mask, weights, sigmas, matrices, task, needs):
    numbers, wanted = numbers_of(weights, sigmas, matrices), Needs(*needs)
    parts = loss_parts(Task.read(task), y, image, mask, numbers, wanted)[1:]
    return _filled(loss_back(gradient, *parts, numbers, wanted), (y, image, weights, sigmas, matrices))


def _crf_loss_on_gpu(y, image, mask, weights, sigmas, matrices, is_single, task):
    settings, given = Task.read(task), (y, image, mask, weights, sigmas, matrices)
    if not _torch_gpu.takes(settings, y):
        return _crf_loss(*given, is_single, task)
    return _torch_gpu.crf_loss(settings, *given)[0].to(torch.float32 if is_single else y.dtype)


def _crf_loss_backward_on_gpu(gradient, y, image, mask, weights, sigmas, matrices, task, needs):
    settings, given = Task.read(task), (y, image, mask, weights, sigmas, matrices)
    if not _torch_gpu.takes(settings, y):
        return _crf_loss_backward(gradient, *given, task, needs)
    _, field, rows, found, factors = _torch_gpu.crf_loss(settings, *given)
    found = _torch_gpu.crf_loss_back(field, gradient, rows, found, factors, image, mask, Needs(*needs))
    return _without_none(found, (y, image, weights, sigmas, matrices))


def _fake_crf_loss_backward(gradient, y, image, mask, weights, sigmas, matrices, task, needs):
    return _empty(needs, (y, image, weights, sigmas, matrices))


# ---- their registration


def _differentiate(operator, backward, rest):
    """``rest`` are the places of what the backward operator takes of the inputs after the tensors; the others have no gradient."""

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:6])
        ctx.rest = [inputs[place] for place in rest]
        ctx.count = len(inputs)

    def back(ctx, gradient):
        needs = [bool(ctx.needs_input_grad[place]) for place in _DIFFERENTIABLE]
        found = dict(zip(_DIFFERENTIABLE, backward(gradient, *ctx.saved_tensors, *ctx.rest, needs)))
        return tuple(found[place] if ctx.needs_input_grad[place] else None for place in range(ctx.count))

    operator.register_autograd(back, setup_context=setup_context)


if exist:
    mean_field = _define(
        "dcrf::mean_field",
        f"(Tensor logits, {_PARAMETERS}, int iterations, bool is_log, bool is_single, str task) -> Tensor",
        _mean_field,
        _fake_mean_field,
        _mean_field_on_gpu,
    )
    mean_field_backward = _define(
        "dcrf::mean_field_backward",
        f"(Tensor gradient, Tensor logits, {_PARAMETERS}, int iterations, bool is_log, str task, bool[] needs) -> {_FIVE}",
        _mean_field_backward,
        _fake_mean_field_backward,
        _mean_field_backward_on_gpu,
    )
    _differentiate(mean_field, mean_field_backward, (6, 7, 9))
    crf_loss = _define(
        "dcrf::crf_loss",
        f"(Tensor y, {_PARAMETERS}, bool is_single, str task) -> Tensor",
        _crf_loss,
        _fake_crf_loss,
        _crf_loss_on_gpu,
    )
    crf_loss_backward = _define(
        "dcrf::crf_loss_backward",
        f"(Tensor gradient, Tensor y, {_PARAMETERS}, str task, bool[] needs) -> {_FIVE}",
        _crf_loss_backward,
        _fake_crf_loss_backward,
        _crf_loss_backward_on_gpu,
    )
    _differentiate(crf_loss, crf_loss_backward, (7,))
