"""What the settings of a model mean for its image, as ``dcrf solve --explain`` says it."""

import dataclasses
import math

import numpy as np

from . import _core

_FACTORS = (0, 0.125, 0.25, 0.5, 1, 2, 4)
_GONE = ("one label wins", "a label is gone")


@dataclasses.dataclass(frozen=True)
class Explanation:
    """``kernels``: for each, as a dictionary, its ``kind``, how many other pixels it joins a pixel to
    (``reach``), and the cost of disagreeing with all of them (``price``). ``margin`` is the median difference
    between a pixel's two best energies; ``price`` the mean cost of disagreeing with all surroundings;
    ``persuadable_share`` the fraction of pixels that their surroundings can overrule. ``measured`` is
    ``Model.measured_strength()``. ``sweep`` has the results of mean field at other strengths, a list of
    dictionaries.
    """

    kernels: list
    margin: float
    price: float
    persuadable_share: float
    measured: dict
    sweep: list

    def __str__(self):
        lines = [
            f"The {kernel['kind']} kernel joins a pixel to about {kernel['reach']:.0f} others. A pixel that disagrees "
            f"with all of them pays {kernel['price']:.3g}."
            for kernel in self.kernels
        ]
        if self.price > 0:
            lines.append(
                f"A typical pixel's own opinion, the margin between its two best unary energies, is worth "
                f"{self.margin:.3g}; disagreeing with everything around it costs {self.price:.3g} on average. The "
                f"surroundings can overrule {100 * self.persuadable_share:.0f} % of the pixels."
            )
        if not math.isnan(self.measured["rho"]):
            lines.append(f"A strength of {self.measured['strength']:.3g} suits these unaries.")
        if self.sweep:
            lines.append("  strength   pixels changed   labels left   largest label")
            lines += [
                f"  {point['strength']:8.3g} {100 * point['changed_share']:14.2f} % {point['labels_left']:13d} "
                f"{100 * point['largest_share']:13.0f} %" + ("   in force" if point["factor"] == 1 else "")
                for point in self.sweep
            ]
        return "\n".join(lines)


def explain(model):
    """The explanation of a ``Model``."""
    core = model._core
    kernels, total = [], np.zeros(model.shape, np.float64)
    for sigmas, channels, channel_sigmas, weight, is_symmetric in core.parts():
        reach = _sums(core, sigmas, channels, channel_sigmas, False)[0]
        sums, diagonal = _sums(core, sigmas, channels, channel_sigmas, is_symmetric)
        paid = 2 * weight * (sums.astype(np.float64) - diagonal)
        kind = "spatial" if channels is None else "features" if sigmas is None else "bilateral"
        kernels.append({"kind": kind, "reach": max(float(reach.mean()) - 1, 0.0), "price": float(paid.mean())})
        total += paid
    margins = np.zeros(model.shape)
    if model.labels > 1:
        best = np.partition(core.unary(), 1, axis=-1)[..., :2].astype(np.float64)
        margins = best[..., 1] - best[..., 0]
    return Explanation(
        kernels=kernels,
        margin=float(np.sort(margins, axis=None)[margins.size // 2]),
        price=float(total.mean()),
        persuadable_share=float((margins < total).mean()) if model.labels > 1 else 0.0,
        measured=core.measure_strength(),
        sweep=_sweep(model),
    )


def _sums(core, sigmas, channels, channel_sigmas, is_symmetric):
    shape, spacing, _, operator, threads, _ = core.arguments()
    made = _core.Operator(shape, spacing, sigmas, channels, channel_sigmas, is_symmetric, operator, threads)
    sums, diagonal = np.empty(shape, np.float32), np.empty(shape, np.float32)
    made.row_sums(sums)
    made.diagonal(diagonal)
    return sums, diagonal


def _sweep(model):
    core, strength = model._core, model.strength
    if not strength > 0:
        return []
    weights, points = [part[3] for part in core.parts()], []
    try:
        for factor in _FACTORS:
            for kernel, weight in enumerate(weights):
                core.set_weight(kernel, factor * weight)
            result = model._solve("mf", {"polish": True}, marginals=False, warns=False)
            points.append({
                "strength": factor * strength,
                "factor": factor,
                "changed_pixels": result.changes["pixels_changed"],
                "changed_share": result.changes["pixels_changed"] / result.labels.size,
                "labels_left": result.changes["labels_after"],
                "largest_share": result.changes["largest_share"],
                "suspicious": any(text.startswith(_GONE) for text in result.warnings),
                "labels": result.labels,
            })
    finally:
        for kernel, weight in enumerate(weights):
            core.set_weight(kernel, weight)
    return points
