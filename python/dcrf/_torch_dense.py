"""The same as ``_torch_work`` in plain tensors, with matrices of all pairs of pixels: for small pictures in double precision, where
derivatives are to be checked (``torch.autograd.gradcheck``) or differentiated once more."""

import torch

MOST_PIXELS = 4096


def _kernels(task, picture, sigmas):
    """The matrices without their diagonals, for one picture (channels, ...)."""
    shape = picture.shape[1:]
    axes = len(shape)
    spacing = task.spacing if len(task.spacing) == axes else task.spacing * axes
    lines = [torch.arange(size, dtype=picture.dtype, device=picture.device) * step for size, step in zip(shape, spacing)]
    position = torch.stack([line.reshape(-1) for line in torch.meshgrid(*lines, indexing="ij")])
    found = []
    for kernel, has in enumerate((task.has_spatial, task.has_bilateral)):
        if not has:
            continue
        features, sigmas = position / sigmas[:axes, None], sigmas[axes:]
        if kernel == 1:
            features = torch.cat([features, picture.reshape(len(picture), -1) / sigmas[:, None]])
        values = torch.exp(-(features[:, :, None] - features[:, None, :]).pow(2).sum(0) / 2)
        if task.is_symmetric:
            scale = values.sum(1).rsqrt()
            values = scale[:, None] * values * scale[None]
        found.append(values * (1 - torch.eye(len(values), dtype=values.dtype, device=values.device)))
    return found


def _field(task, kernels, weights, matrices, q):
    """sum_m w_m mu_m K_m q for rows q"""
    total = 0
    for index, kernel in enumerate(kernels):
        filtered = kernel @ q
        mixed = filtered.sum(1, keepdim=True) - filtered if matrices is None else filtered @ matrices[index]
        total = total + weights[index] * mixed
    return total


def _rows(planes, labels):
    return planes.reshape(labels, -1).T


def mean_field(task, iterations, is_log, logits, image, mask, weights, sigmas, matrices):
    results = []
    for index in range(len(logits)):
        kernels = _kernels(task, image[index], sigmas)
        values = _rows(logits[index], task.labels)
        inside = torch.ones_like(values[:, :1]) if mask is None else (mask[index] != 0).reshape(-1, 1).to(values)
        s = values
        for _ in range(iterations):
            s = values - 2 * _field(task, kernels, weights, matrices, torch.softmax(s, 1) * inside)
        q = (torch.log_softmax(s, 1) if is_log else torch.softmax(s, 1)) * inside
        results.append(q.T.reshape(logits.shape[1:]))
    return torch.stack(results)


def crf_loss(task, y, image, mask, weights, sigmas, matrices):
    energies = []
    for index in range(len(y)):
        kernels = _kernels(task, image[index], sigmas)
        rows = _rows(y[index], task.labels)
        if mask is not None:
            rows = rows * (mask[index] != 0).reshape(-1, 1).to(rows)
        pixels = len(rows) if mask is None else max(1, int((mask[index] != 0).sum()))
        energies.append((rows * _field(task, kernels, weights, matrices, rows)).sum() / pixels)
    return torch.stack(energies)
