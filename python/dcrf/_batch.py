"""Many images by several methods, and the figures of ``dcrf batch`` over them."""

import os
import re

import numpy as np

from . import metrics
from ._arrays import array
from ._dataset import DataSet
from ._many import ProblemError, work_on_each
from ._model import Model
from ._options import check_options, with_options_of
from ._report import page, table

_MEANS = ("energy", "energy_rounded", "lower_bound", "relative_gap", "proven_share", "iterations", "changed_share")
_MODEL_ONLY = ("cliques", "clique_cost")
_SOLVER_ONLY = ("gap", "time_limit_s", "stationarity", "damping", "rounding_draws", "seed", "polish", "polish_rounds",
                "lp_schedule")
_MATRIX_CLASSES_MAX = 256


class Comparison:
    """What ``batch`` found. ``methods`` is a dictionary: for each method, "unary" first, a dictionary of figures. Means
    over the images: energy, energy_rounded, lower_bound, relative_gap, proven_share, iterations, changed_share; how many
    labellings are ``constant``. Where there is a truth, over all its pixels: pixel_accuracy, mean_class_accuracy, mean_iou,
    class_accuracy, iou, band_accuracy (within 1, 2, ... pixels of a true boundary), and the confusion, a matrix of truth
    by labels (with more than 256 labels, as ``metrics.confusion_pairs``). ``images`` is how many were solved,
    ``failures`` the errors of the others, ``labels`` and ``classes`` are as given, and ``labellings``, where they are kept, the
    labels of every method, one array per image (None: it failed)."""

    def __init__(self, methods, images, labels, classes, failures, labellings):
        self.methods = methods
        self.images = images
        self.labels = labels
        self.classes = classes
        self.failures = failures
        self.labellings = labellings

    def _rows(self):
        has_truth = any("mean_iou" in figures for figures in self.methods.values())
        head = ["method", "energy", "gap", "changed"] + (["accuracy", "class accuracy", "IoU"] if has_truth else [])
        rows = []
        for name, figures in self.methods.items():
            shares = [figures["relative_gap"], figures["changed_share"]]
            if has_truth:
                shares += [figures[key] for key in ("pixel_accuracy", "mean_class_accuracy", "mean_iou")]
            texts = ["" if np.isnan(share) else f"{100 * share:.2f} %" for share in shares]
            rows.append([name, f"{figures['energy']:.2f}"] + texts)
        return head, rows

    def __str__(self):
        head, rows = self._rows()
        widths = [max(len(row[k]) for row in [head] + rows) for k in range(len(head))]
        lines = [
            "  ".join(cell.rjust(width) if k else cell.ljust(width) for k, (cell, width) in enumerate(zip(row, widths)))
            for row in [head] + rows
        ]
        return "\n".join(lines)

    def __repr__(self):
        return f"<dcrf.Comparison of {', '.join(self.methods)} on {self.images} images, {len(self.failures)} failures>"

    def _repr_html_(self):
        head, rows = self._rows()
        return table(rows, head)

    def report(self, title="dcrf"):
        """An HTML page with the figures, as a string; it needs no other file."""
        body = f"<p>{self.images} images, means over them; scores over all their pixels.</p>{self._repr_html_()}"
        scored = {name: figures for name, figures in self.methods.items() if "iou" in figures}
        if scored:
            names = self.classes or [f"label {i}" for i in range(self.labels)]
            rows = [
                [name] + ["" if np.isnan(f["iou"][i]) else f"{100 * f['iou'][i]:.2f} %" for f in scored.values()]
                for i, name in enumerate(names)
            ]
            body += f"<h2>IoU of each class</h2>{table(rows, ['class'] + list(scored))}"
        if self.failures:
            body += f"<h2>Failures</h2>{table([[f.index, f.__cause__] for f in self.failures])}"
        return page(title, body)


@with_options_of(
    Model, Model.solve,
    without=("iterations", "start", "marginals", "trace", "progress", "out", "proof", "certificate", "evaluate_every"),
)
def batch(
    problems,
    truths=None,
    *,
    methods=("mf5", "qp", "lp"),
    split=None,
    labels=None,
    ignore=255,
    band=8,
    cliques="meanshift",
    clique_cost=None,
    keep=False,
    threads=0,
    errors="raise",
    **options,
):
    """Solve many images by several methods and compare them: what ``dcrf batch`` does, with the same figures.

    ``problems`` is the folder of a data set (docs/reference/formats.md; ``split`` names a list of images), a ``DataSet``, or an
    iterable of dictionaries as for ``solve_many``, with ``truths`` beside it, one label map for each (``ignore``: not
    scored). A method is a solver, how many iterations, and whether with cliques: "mf5", "qp", "lp+cliques"; the
    unaries alone are always included. ``cliques`` are what "+cliques" means, other ``options`` go to ``Model`` and
    ``Model.solve``. With ``keep`` the labellings are kept. An image that fails raises ``ProblemError``, or with
    ``errors="return"`` is left out and listed in ``failures``.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.zeros((20, 30), int); truth[:, 15:] = 1
    >>> image = np.where(truth, 180, 60)[..., None].repeat(3, -1).astype(np.uint8)
    >>> p = np.clip(0.5 + 0.15 * (2 * truth - 1) + rng.normal(0, 0.2, truth.shape), 0.05, 0.95)
    >>> found = batch([{"image": image, "probabilities": np.stack([1 - p, p])}], [truth], methods=["mf5"])
    >>> found.methods["mf5"]["mean_iou"] > found.methods["unary"]["mean_iou"]
    True
    """
    check_options(batch, options)
    if isinstance(problems, (str, os.PathLike)):
        problems = DataSet(problems, split)
    elif split is not None:
        raise TypeError("split= is for the folder of a data set")
    data = problems if isinstance(problems, DataSet) else None
    if data is not None:
        if truths is not None:
            raise TypeError("a data set has its own truths")
        labels, ignore = data.labels, data.void
    methods = ["unary"] + [name for name in methods if name != "unary"]
    for name in methods:
        _parse(name)
    own = dict(options, cliques=cliques, clique_cost=clique_cost)

    def one(item, stop):
        problem, truth = item if data is None else (data[item], data.truth(item))
        return _compare_on_one(dict(own, **problem), truth, methods, labels, ignore, band, stop, keep)

    total, failures = {}, []
    labellings = {name: [] for name in methods} if keep else None
    items = range(len(data)) if data is not None else _pairs(problems, truths)
    for found in work_on_each(items, one, threads, errors):
        if isinstance(found, ProblemError):
            failures.append(found)
            for kept in (labellings or {}).values():
                kept.append(None)
            continue
        for name, part in found.items():
            if labellings is not None:
                labellings[name].append(part.pop("labels"))
            total.setdefault(name, []).append(part)
    figures = {name: _summarize(total.get(name, []), labels) for name in methods}
    images = len(total.get("unary", []))
    count = labels or max((len(part["counts"][0]) for part in total.get("unary", []) if "counts" in part), default=None)
    return Comparison(figures, images, count, data.classes if data is not None else None, failures, labellings)


def _pairs(problems, truths):
    """Problems with their truths; as many of one as of the other."""
    if truths is None:
        yield from ((problem, None) for problem in problems)
        return
    end = object()
    problems, truths = iter(problems), iter(truths)
    while True:
        problem, truth = next(problems, end), next(truths, end)
        if problem is end and truth is end:
            return
        if problem is end or truth is end:
            raise ValueError("there are not as many truths as problems")
        yield problem, truth


def _parse(name):
    """Solver, iterations or None, with cliques?"""
    found = re.fullmatch(r"(mf|qp|lp)(\d*)(\+cliques)?", name)
    if name == "unary":
        return None, None, False
    if not found or found[2].startswith("0"):
        raise ValueError(f"{name!r} is not a method; methods are for example 'mf5', 'qp', 'lp+cliques' and 'unary'")
    return found[1], int(found[2]) if found[2] else None, found[3] is not None


def _compare_on_one(options, truth, methods, labels, ignore, band, stop, keep):
    options.pop("name", None)
    cliques, clique_cost = (options.pop(name) for name in _MODEL_ONLY)
    settings = {name: options.pop(name) for name in _SOLVER_ONLY if name in options}
    model = Model(options.pop("image", None), threads=1, **options)
    if labels is not None and model.labels != labels:
        raise ValueError(f"the unary array has {model.labels} labels, and there are {labels}")
    unary_labels = model._core.unary().argmin(-1).astype(np.int32)
    distance = None
    if truth is not None:
        truth = array(truth, "the truth", integers=True)
        if truth.shape != model.shape:
            raise ValueError(f"the truth has the shape {truth.shape}, the model has {model.shape}")
        if truth.ndim == 2 and band > 0:
            distance = boundary_distance(truth, band)
    found = {}
    for name in sorted(methods, key=lambda name: _parse(name)[2]):  # cliques last, and set once
        solver, iterations, with_cliques = _parse(name)
        if with_cliques and not model._core.counts()["cliques"]:
            model.set_cliques(cliques, clique_cost)
        if solver is None:
            figures = dict.fromkeys(("lower_bound", "relative_gap", "proven_share"), np.nan)
            energy = model.energy(unary_labels).total
            figures.update(energy=energy, energy_rounded=energy, iterations=0)
            result_labels = unary_labels
        else:
            # No warnings of single images: the figures tell.
            result = model._solve(
                solver, {"polish": True, "iterations": iterations, **settings}, marginals=False, trace=False, warns=False,
                is_unwanted=stop.is_set,
            )
            result_labels = result.labels
            figures = {
                "energy": result.energy,
                "energy_rounded": result.rounded_energy,
                "lower_bound": result.lower_bound,
                "relative_gap": result.relative_gap,
                "proven_share": result.proven_share,
                "iterations": result.iterations,
            }
        figures["changed_share"] = float((result_labels != unary_labels).mean())
        figures["constant"] = bool((result_labels == result_labels.flat[0]).all())
        if truth is not None:
            figures.update(_score(result_labels, truth, model.labels, ignore, band, distance))
        if keep:
            figures["labels"] = result_labels
        found[name] = figures
    return {name: found[name] for name in methods}


def _score(labels, truth, count, ignore, band, distance):
    """Counts that add up over images. ``distance`` is that to true boundaries; None: no bands."""
    found = {
        "counts": metrics.class_counts(labels, truth, count, ignore),
        "pairs": np.stack(metrics.confusion_pairs(labels, truth, count, ignore)),
        "bands": np.empty((0, 2), np.int64),
    }
    if distance is not None:
        scored = truth != ignore
        distance, right = distance[scored], (labels == truth)[scored]
        found["bands"] = np.array([[(distance <= k).sum(), right[distance <= k].sum()] for k in range(1, band + 1)])
    return found


def boundary_distance(truth, most):
    """How far every pixel is from the nearest one with another truth, between centres; infinity beyond ``most``.

    >>> boundary_distance(np.array([[0, 0, 0, 1]]), 2).tolist()
    [[inf, 2.0, 1.0, 1.0]]
    """
    truth = np.atleast_2d(truth)
    squares = np.full(truth.shape, np.inf)
    height, width = truth.shape
    for dy in range(min(most, height - 1) + 1):
        for dx in range(-min(most, width - 1), min(most, width - 1) + 1):
            square = dx * dx + dy * dy
            if square == 0 or square > most * most:
                continue
            here = (slice(0, height - dy), slice(max(0, -dx), width - max(0, dx)))
            there = (slice(dy, height), slice(max(0, dx), width + min(0, dx)))
            differs = truth[here] != truth[there]
            for part in (here, there):
                squares[part] = np.where(differs & (squares[part] > square), square, squares[part])
    return np.sqrt(squares)


def _summarize(parts, labels):
    """The figures of a method from those of its images."""
    figures = {name: float(np.mean([part[name] for part in parts])) if parts else float("nan") for name in _MEANS}
    figures["constant"] = sum(part["constant"] for part in parts)
    scored = [part for part in parts if "counts" in part]
    if not scored:
        return figures
    count = labels or max(part["counts"].shape[1] for part in scored)
    counts = np.zeros((3, count), np.int64)
    for part in scored:
        counts[:, : part["counts"].shape[1]] += part["counts"]
    right, in_truth, _ = counts
    bands = sum(part["bands"] for part in scored)
    figures["pixel_accuracy"] = float(right.sum() / in_truth.sum()) if in_truth.sum() else float("nan")
    figures["class_accuracy"] = np.where(in_truth > 0, right / np.maximum(in_truth, 1), np.nan)
    figures["mean_class_accuracy"] = metrics.mean_over_classes(figures["class_accuracy"])
    figures["iou"] = metrics.iou_from_counts(counts)
    figures["mean_iou"] = metrics.mean_over_classes(figures["iou"])
    figures["band_accuracy"] = np.where(bands[:, 0] > 0, bands[:, 1] / np.maximum(bands[:, 0], 1), np.nan)
    figures["confusion"] = _add_pairs([part["pairs"] for part in scored], count)
    return figures


def _add_pairs(parts, count):
    truth, label, pixels = np.concatenate(parts, axis=1)
    if count <= _MATRIX_CLASSES_MAX:
        matrix = np.zeros((count, count), np.int64)
        np.add.at(matrix, (truth, label), pixels)
        return matrix
    keys, places = np.unique(truth * count + label, return_inverse=True)
    sums = np.zeros(len(keys), np.int64)
    np.add.at(sums, places, pixels)
    return keys // count, keys % count, sums
