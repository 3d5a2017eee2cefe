import enum
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

class KernelType(enum.IntEnum):
    CONST_KERNEL = 0
    DIAG_KERNEL = 1
    FULL_KERNEL = 2

class NormalizationType(enum.IntEnum):
    NO_NORMALIZATION = 0
    NORMALIZE_BEFORE = 1
    NORMALIZE_AFTER = 2
    NORMALIZE_SYMMETRIC = 3

CONST_KERNEL: KernelType
DIAG_KERNEL: KernelType
FULL_KERNEL: KernelType
NO_NORMALIZATION: NormalizationType
NORMALIZE_BEFORE: NormalizationType
NORMALIZE_AFTER: NormalizationType
NORMALIZE_SYMMETRIC: NormalizationType

class Unary:
    energies: NDArray[np.float32]
    def __init__(self, energies: ArrayLike) -> None: ...

class ConstUnary(Unary):
    def __init__(self, u: ArrayLike) -> None: ...

class LogisticUnary(Unary):
    def __init__(self, L: ArrayLike, f: ArrayLike) -> None: ...

def set_threads(threads: int) -> None: ...
def set_device(device: object) -> None: ...

class DenseCRF:
    def __init__(
        self,
        nvar: int,
        nlabels: int,
        *_ignored: object,
        threads: int | None = None,
        message_error: float | None = None,
        device: object = None,
        **_too: object,
    ) -> None: ...
    @property
    def device(self) -> str: ...
    def setUnaryEnergy(self, u: ArrayLike, f: ArrayLike | None = None) -> None: ...
    def setUnary(self, u: Unary | ArrayLike) -> None: ...
    def addPairwiseEnergy(
        self, features: ArrayLike, compat: ArrayLike, kernel: int = ..., normalization: int = ...
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
        device: object = None,
        **_too: object,
    ) -> None: ...
    def addPairwiseGaussian(
        self, sxy: float | Sequence[float], compat: ArrayLike, kernel: int = ..., normalization: int = ...
    ) -> None: ...
    def addPairwiseBilateral(
        self,
        sxy: float | Sequence[float],
        srgb: float | Sequence[float],
        rgbim: ArrayLike,
        compat: ArrayLike,
        kernel: int = ...,
        normalization: int = ...,
    ) -> None: ...
