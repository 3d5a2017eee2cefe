"""What ``pydensecrf.eigen`` offers: float32 vectors and matrices that numpy reads as they are.

>>> import numpy as np
>>> from dcrf.pydensecrf import eigen
>>> np.array(eigen.vectorXf(np.array([1, 2], np.float32)))
array([1., 2.], dtype=float32)
"""

import numpy as np

__all__ = ["MatrixXf", "VectorXf", "matrixXf", "vectorXf"]


class VectorXf(np.ndarray):
    """A vector; ``VectorXf()`` is empty."""

    def __new__(cls):
        return np.zeros(0, np.float32).view(cls)


class MatrixXf(np.ndarray):
    """A matrix; ``MatrixXf()`` is empty."""

    def __new__(cls):
        return np.zeros((0, 0), np.float32).view(cls)


def _copy(arr, axes, kind):
    if arr is None:
        raise TypeError("arr must not be None")
    view = memoryview(arr)
    if view.format != "f":
        raise ValueError(f"arr has elements of format '{view.format}'; float32 is needed")
    if view.ndim != axes:
        raise ValueError(f"arr has {view.ndim} axes; {axes} are needed")
    return np.array(arr, np.float32).view(kind)


def vectorXf(arr):
    """A copy of a float32 array with one axis."""
    return _copy(arr, 1, VectorXf)


def matrixXf(arr):
    """A copy of a float32 array with two axes."""
    return _copy(arr, 2, MatrixXf)
