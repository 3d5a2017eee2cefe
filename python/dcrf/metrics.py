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

__all__ = [
    "accuracy",
    "class_accuracy",
    "class_counts",
    "confusion",
    "confusion_pairs",
    "iou",
    "iou_from_counts",
    "mean_iou",
    "mean_over_classes",
]


def confusion(labels, truth, count=None, ignore=255):
    """Counts, (count, count): truth by rows, labels by columns. See ``confusion_pairs`` for thousands of classes."""
    labels, truth, count = _scored(labels, truth, count, ignore)
    return np.bincount(truth * count + labels, minlength=count * count).reshape(count, count)


def confusion_pairs(labels, truth, count=None, ignore=255):
    """The pairs that occur, by truth and then by label: three arrays, truth, label and how many pixels have both.

    >>> [values.tolist() for values in confusion_pairs([0, 60000, 60000, 3], [0, 3, 3, 3])]
    [[0, 3, 3], [0, 3, 60000], [1, 1, 2]]
    """
    labels, truth, count = _scored(labels, truth, count, ignore)
    keys, pixels = np.unique(truth * count + labels, return_counts=True)
    return keys // max(count, 1), keys % max(count, 1), pixels


def accuracy(labels, truth, ignore=255):
    """The fraction of correct labels; NaN if nothing is scored."""
    labels, truth, _ = _scored(labels, truth, None, ignore)
    return float((labels == truth).mean()) if truth.size else float("nan")


def class_accuracy(labels, truth, count=None, ignore=255):
    """The fraction of correct labels per class; NaN for classes without truth."""
    right, of_truth, _ = class_counts(labels, truth, count, ignore)
    return _divide(right, of_truth)


def iou(labels, truth, count=None, ignore=255):
    """Intersection over union of each class; NaN for classes without truth."""
    return iou_from_counts(class_counts(labels, truth, count, ignore))


def mean_iou(labels, truth, count=None, ignore=255):
    """The mean of ``iou`` over the classes in the truth; NaN if nothing is scored."""
    return mean_over_classes(iou(labels, truth, count, ignore))


def class_counts(labels, truth, count=None, ignore=255):
    """Of each class, (3, count): the pixels that have it in truth and labels, in the truth, in the labels. They add
    up over images."""
    labels, truth, count = _scored(labels, truth, count, ignore)
    groups = (truth[truth == labels], truth, labels)
    return np.stack([np.bincount(group, minlength=count) for group in groups])


def iou_from_counts(counts):
    """``iou`` from the sums of ``class_counts``."""
    right, of_truth, of_labels = counts
    return _divide(right, np.where(of_truth > 0, of_truth + of_labels - right, 0))


def mean_over_classes(values):
    """The mean over the classes that have a value; NaN if none has."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _scored(labels, truth, count, ignore):
    """Labels and truth of the pixels that are scored, as int64, and how many classes there are."""
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
    return labels, truth, count


def _divide(numerator, denominator):
    result = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result
