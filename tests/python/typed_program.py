"""A program as its author would write it with `mypy --strict`; not run, only checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import dcrf
import dcrf.pydensecrf.densecrf as densecrf
from dcrf.pydensecrf.utils import unary_from_softmax


def refine(image: NDArray[np.uint8], softmax: NDArray[np.float32]) -> NDArray[np.intp]:
    height, width = image.shape[:2]
    crf = densecrf.DenseCRF2D(width, height, softmax.shape[0])
    crf.setUnaryEnergy(unary_from_softmax(softmax))
    crf.addPairwiseGaussian(sxy=3, compat=3, kernel=densecrf.KernelType(1))
    crf.addPairwiseBilateral(sxy=(80, 60), srgb=13, rgbim=image, compat=np.eye(2, dtype=np.float32))
    labels: NDArray[np.intp] = np.argmax(crf.inference(10), axis=0)
    return labels


def gap(image: NDArray[np.uint8], softmax: NDArray[np.float32]) -> float:
    result = dcrf.solve(image, probabilities=softmax, method="lp")
    labels: NDArray[np.integer[Any]] = result.labels
    assert labels.ndim == 2
    return result.relative_gap


def where(softmax: NDArray[np.float32]) -> tuple[str, int]:
    found: list[dcrf.Device] = dcrf.devices()
    try:
        model = dcrf.Model(probabilities=softmax, device=found[0].name if found else "cuda")
    except dcrf.DeviceError:
        model = dcrf.Model(probabilities=softmax, device="cpu")
    results = dcrf.solve_many([{"probabilities": softmax}], device="cpu")
    return model.device, len(results)


def from_a_network(image: NDArray[np.uint8], logits: NDArray[np.float32]) -> NDArray[np.float32]:
    found: dcrf.MeanFieldResult = dcrf.mean_field(image, logits=logits, spatial=(3, 3.0), iterations=5, device="cpu")
    many = dcrf.mean_field_many([{"logits": logits}], threads=2, strength=4.0)
    assert len(many) == 1
    if isinstance(found.marginals, dcrf.DeviceArray):
        return found.marginals.numpy()
    marginals: NDArray[np.float32] = found.marginals
    return marginals


def accuracy(model: dcrf.Model, truth: NDArray[np.uint8]) -> list[float]:
    energies = []
    for weight in (1.0, 2.0):
        model.set_weight(0, weight)
        energies.append(model.energy(truth).total)
    return energies
