"""How well a labelling agrees with the truth.

Truth may hold values that are not scored: ``ignore`` (255, as is usual; None: all are scored).

>>> import numpy as np
>>> truth = np.array([0, 0, 1, 1, 255]); guess = np.array([0, 1, 1, 1, 0])
>>> confusion(guess, truth, 2)
array([[1, 1],
       [0, 2]])
>>> accuracy(guess, truth)
0.75
>>> round(mean_iou(guess, truth), 4)
0.5833
"""

import numpy as np

from ._arrays import array

__all__ = ["accuracy", "class_accuracy", "confusion", "iou", "mean_iou"]


def confusion(labels, truth, count=None, ignore=255):
    """Counts, (count, count): truth by rows, labels by columns."""
    labels = array(labels, "labels", integers=True)
    truth = array(truth, "truth", integers=True)
    if labels.shape != truth.shape:
        raise ValueError(f"labels has the shape {labels.shape}, truth has {truth.shape}")
    labels, truth = labels.ravel().astype(np.int64), truth.ravel().astype(np.int64)
    if ignore is not None:
        scored = truth != ignore
        labels, truth = labels[scored], truth[scored]
    highest = int(max(labels.max(initial=-1), truth.max(initial=-1)))
    if min(labels.min(initial=0), truth.min(initial=0)) < 0:
        raise ValueError("labels must not be negative")
    count = highest + 1 if count is None else int(count)
    if highest >= count:
        raise ValueError(f"there is a label {highest}, but count is {count}")
    return np.bincount(truth * count + labels, minlength=count * count).reshape(count, count)


def accuracy(labels, truth, ignore=255):
    """The fraction of labels that are right; NaN where nothing is scored."""
    counts = confusion(labels, truth, None, ignore)
    total = counts.sum()
    return float(np.trace(counts) / total) if total else float("nan")


def class_accuracy(labels, truth, count=None, ignore=255):
    """For each class the fraction that is right; NaN for classes without truth."""
    counts = confusion(labels, truth, count, ignore)
    return _divide(np.diag(counts), counts.sum(1))


def iou(labels, truth, count=None, ignore=255):
    """Intersection over union of each class; NaN for classes without truth."""
    counts = confusion(labels, truth, count, ignore)
    right, of_truth = np.diag(counts), counts.sum(1)
    union = of_truth + counts.sum(0) - right
    return _divide(right, np.where(of_truth > 0, union, 0))


def mean_iou(labels, truth, count=None, ignore=255):
    """The mean of ``iou`` over the classes that the truth has; NaN where nothing is scored."""
    values = iou(labels, truth, count, ignore)
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _divide(numerator, denominator):
    result = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result
