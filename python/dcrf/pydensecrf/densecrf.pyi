from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONST_KERNEL: int
DIAG_KERNEL: int
FULL_KERNEL: int
NO_NORMALIZATION: int
NORMALIZE_BEFORE: int
NORMALIZE_AFTER: int
NORMALIZE_SYMMETRIC: int

class KernelType:
    CONST_KERNEL: int
    DIAG_KERNEL: int
    FULL_KERNEL: int

class NormalizationType:
    NO_NORMALIZATION: int
    NORMALIZE_BEFORE: int
    NORMALIZE_AFTER: int
    NORMALIZE_SYMMETRIC: int

def set_threads(threads: int) -> None: ...

class DenseCRF:
    def __init__(
        self,
        nvar: int,
        nlabels: int,
        *_ignored: object,
        threads: int | None = None,
        message_error: float | None = None,
    ) -> None: ...
    def setUnaryEnergy(self, u: ArrayLike, f: None = None) -> None: ...
    def setUnary(self, u: ArrayLike, f: None = None) -> None: ...
    def addPairwiseEnergy(
        self, features: ArrayLike, compat: ArrayLike, kernel: int = 1, normalization: int = 3
    ) -> None: ...
    def inference(
        self, niter: int, progress: Callable[[dict[str, float]], object] | None = None
    ) -> NDArray[np.float32]: ...
    def startInference(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]: ...
    def stepInference(
        self, Q: NDArray[np.float32], tmp1: object = None, tmp2: object = None
    ) -> None: ...
    def klDivergence(self, Q: ArrayLike) -> float: ...

class DenseCRF2D(DenseCRF):
    def __init__(
        self,
        w: int,
        h: int,
        nlabels: int,
        *_ignored: object,
        threads: int | None = None,
        message_error: float | None = None,
    ) -> None: ...
    def addPairwiseGaussian(
        self, sxy: float | Sequence[float], compat: ArrayLike, kernel: int = 1, normalization: int = 3
    ) -> None: ...
    def addPairwiseBilateral(
        self,
        sxy: float | Sequence[float],
        srgb: float | Sequence[float],
        rgbim: ArrayLike,
        compat: ArrayLike,
        kernel: int = 1,
        normalization: int = 3,
    ) -> None: ...
