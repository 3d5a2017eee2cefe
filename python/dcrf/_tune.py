"""Parameters that suit a set of problems whose labels are known."""

import math

import numpy as np

from . import _core, metrics
from ._many import solve_many
from ._once import solve
from ._options import check_options, with_options_of

_FIRST_STEP, _LAST_STEP = 2.0, 1.15


def _score(results, truths, count, objective, ignore):
    counts = sum(metrics.class_counts(result.labels, truth, count, ignore) for result, truth in zip(results, truths))
    if objective == "accuracy":
        return float(counts[0].sum() / counts[1].sum())
    return metrics.mean_over_classes(metrics.iou_from_counts(counts))


@with_options_of(solve)
def tune(problems, truths, *, objective="iou", budget=40, ignore=255, method="mf", threads=0, progress=None, **options):
    """Search for the options of ``solve`` with the best score: the strength factor and the sigmas of the default
    kernels, by a pattern search over their logarithms, starting from the defaults.

    ``problems`` are as for ``solve_many``, ``truths`` their label maps (``ignore``: not scored). ``objective`` is
    "iou", the mean over classes, or "accuracy"; ``budget`` is the maximum number of evaluations, each of which
    solves all problems. ``progress`` is called with the dictionary of every evaluation. Returns the best options,
    their score, the score of the start, and all evaluations; score the options on other problems before you trust
    them.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.zeros((20, 30), int); truth[:, 15:] = 1
    >>> image = np.where(truth, 180, 60)[..., None].repeat(3, -1).astype(np.uint8)
    >>> p = np.clip(0.5 + 0.15 * (2 * truth - 1) + rng.normal(0, 0.2, truth.shape), 0.05, 0.95)
    >>> found = tune([{"image": image, "probabilities": np.stack([1 - p, p])}], [truth], budget=5)
    >>> found["score"] >= found["start"]
    True
    """
    check_options(tune, options)
    if objective not in ("iou", "accuracy"):
        raise ValueError(f"objective is {objective!r}; it must be 'iou' or 'accuracy'")
    problems, truths = list(problems), [np.asarray(truth) for truth in truths]
    if not problems or len(problems) != len(truths):
        raise ValueError(f"there are {len(problems)} problems and {len(truths)} truths")
    known = [truth[truth != ignore] for truth in truths]
    count = int(max((values.max(initial=0) for values in known), default=0)) + 1
    defaults = _core.defaults()
    names = ("strength_factor", "bilateral_sigma", "colour_sigma", "spatial_sigma")
    point = np.log([1.0] + [defaults[name] for name in names[1:]])
    evaluations = []

    def options_at(at):
        factor, bilateral, colour, spatial = (round(math.exp(value), 6) for value in at)
        return {"strength_factor": factor, "bilateral": (bilateral, colour), "spatial": spatial}

    def evaluate(at):
        found = options_at(at)
        results = solve_many(
            problems, method=method, threads=threads, **{"marginals": False, "polish": True, **options, **found}
        )
        most = max(count, max(int(result.labels.max()) + 1 for result in results))
        score = _score(results, truths, most, objective, ignore)
        evaluations.append({"options": found, "score": score})
        if progress is not None:
            progress(evaluations[-1])
        return score

    best = evaluate(point)
    step = math.log(_FIRST_STEP)
    while len(evaluations) < budget and step >= math.log(_LAST_STEP):
        improved = False
        for axis in range(len(point)):
            for sign in (1, -1):
                if len(evaluations) >= budget:
                    break
                other = point.copy()
                other[axis] += sign * step
                score = evaluate(other)
                if score > best:
                    point, best, improved = other, score, True
                    break
        if not improved:
            step /= 2
    return {
        "options": options_at(point),
        "score": best,
        "start": evaluations[0]["score"],
        "evaluations": evaluations,
    }
