import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import metrics as metrics

_Method = Literal["mf", "qp", "lp"]
_Normalization = Literal["none", "symmetric"]
_Operator = Literal["fast", "exact", "grid", "lattice"]
_Sigma = float | Sequence[float]
_Compatibility = ArrayLike | Tree | Cuts
_Progress = Callable[[dict[str, float]], object]

__version__: str
STOP: str
PRESETS: dict[str, dict[str, Any]]

@dataclasses.dataclass(frozen=True)
class Device:
    name: str
    description: str
    memory_bytes: int
    free_bytes: int

class DeviceError(RuntimeError): ...

class DeviceArray:
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: str
    def __init__(
        self,
        owner: object,
        address: int,
        dtype: object,
        shape: Iterable[int],
        strides: Iterable[int],
        device: str,
        stream: int = 0,
        is_bfloat: bool = False,
        is_read_only: bool = False,
    ) -> None: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def numpy(self) -> NDArray[Any]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...
    def __len__(self) -> int: ...

@dataclasses.dataclass(frozen=True)
class MeanFieldResult:
    marginals: Any
    labels: Any

def mean_field(
    image: object = None,
    *,
    unary: object = None,
    probabilities: object = None,
    logits: object = None,
    spatial: object = ...,
    bilateral: object = ...,
    strength: float | Literal["auto"] = "auto",
    spatial_share: float = ...,
    normalize: _Normalization = "symmetric",
    spacing: float | Sequence[float] = 1.0,
    shape: Sequence[int] | None = None,
    labels_axis: int | None = None,
    channels_axis: int | None = None,
    operator: _Operator = "fast",
    iterations: int = 10,
    marginals: object = True,
    labels: object = True,
    stream: int | None = None,
    threads: int = 0,
    device: object = None,
    _calls: object = None,
) -> MeanFieldResult: ...
def mean_field_batch(
    images: object = None,
    *,
    unary: object = None,
    probabilities: object = None,
    logits: object = None,
    marginals: object = True,
    labels: object = True,
    spatial: object = ...,
    bilateral: object = ...,
    strength: float | Literal["auto"] = "auto",
    spatial_share: float = ...,
    normalize: _Normalization = "symmetric",
    spacing: float | Sequence[float] = 1.0,
    shape: Sequence[int] | None = None,
    labels_axis: int | None = None,
    channels_axis: int | None = None,
    operator: _Operator = "fast",
    iterations: int = 10,
    stream: int | None = None,
    threads: int = 0,
    device: object = None,
) -> MeanFieldResult: ...
def mean_field_many(
    problems: Iterable[Mapping[str, Any]],
    *,
    threads: int = 0,
    errors: Literal["raise", "return"] = "raise",
    device: object = None,
    unary: object = None,
    probabilities: object = None,
    logits: object = None,
    spatial: object = ...,
    bilateral: object = ...,
    strength: float | Literal["auto"] = "auto",
    spatial_share: float = ...,
    normalize: _Normalization = "symmetric",
    spacing: float | Sequence[float] = 1.0,
    shape: Sequence[int] | None = None,
    labels_axis: int | None = None,
    channels_axis: int | None = None,
    operator: _Operator = "fast",
    iterations: int = 10,
    marginals: object = True,
    labels: object = True,
    stream: int | None = None,
) -> list[Any]: ...

def devices() -> list[Device]: ...

@dataclasses.dataclass(frozen=True)
class Energy:
    total: float
    unary: float
    pairwise: float
    cliques: float

@dataclasses.dataclass(frozen=True)
class LeftOut:
    distance: float
    fraction: float
    energy: float
    gap: float

@dataclasses.dataclass(frozen=True)
class Certificate:
    energies: dict[str, float]
    lower_bound: float
    relative_gap: float
    best_energy: float
    is_constant: bool
    iterations: int
    stop: str
    seconds: float
    right: int
    wrong: int
    left_out: LeftOut | None
    @property
    def energy(self) -> float: ...

@dataclasses.dataclass(frozen=True)
class Verification:
    is_exact: bool
    energy: float
    lower_bound: float
    relative_gap: float
    labels_energy: float
    labels_gap: float
    right: int
    wrong: int
    seconds: float
    possible: NDArray[np.bool_]
    @property
    def proven(self) -> NDArray[np.bool_]: ...

@dataclasses.dataclass(frozen=True)
class Explanation:
    kernels: list[dict[str, Any]]
    margin: float
    price: float
    persuadable_share: float
    measured: dict[str, float]
    sweep: list[dict[str, Any]]

class Result:
    labels: NDArray[np.int32]
    marginals: NDArray[np.float32] | None
    method: str
    energy: float
    energies: Energy
    objective: float
    lower_bound: float
    relative_gap: float
    unpolished_energy: float
    rounded_energy: float
    proven_share: float
    left_out: LeftOut | None
    iterations: int
    stop: str
    is_constant: bool
    seconds: dict[str, float]
    trace: dict[str, NDArray[Any]]
    changes: dict[str, Any]
    warnings: list[str]
    possible: NDArray[np.bool_] | None
    proven: NDArray[np.bool_] | None
    certificate: bytes | None
    def __init__(
        self,
        labels: NDArray[np.int32],
        marginals: NDArray[np.float32] | None,
        info: dict[str, Any],
        image: NDArray[Any] | None = None,
        possible: NDArray[np.bool_] | None = None,
    ) -> None: ...
    def overlay(self, image: ArrayLike | None = None, opacity: float = 0.5) -> NDArray[np.uint8]: ...
    def picture(self) -> NDArray[np.uint8]: ...
    def figures(self) -> list[tuple[str, str]]: ...
    def report(
        self, image: ArrayLike | None = None, classes: Sequence[str] | None = None, title: str = "dcrf"
    ) -> str: ...
    def _repr_html_(self) -> str: ...

class Operator:
    grid: tuple[int, ...]
    def __init__(
        self,
        image: ArrayLike | None = None,
        *,
        sigma: _Sigma | None = None,
        channel_sigma: _Sigma | None = None,
        features: ArrayLike | None = None,
        shape: Sequence[int] | None = None,
        spacing: _Sigma = 1.0,
        normalize: _Normalization = "symmetric",
        operator: _Operator = "fast",
        threads: int = 0,
        device: object = None,
    ) -> None: ...
    @property
    def device(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def vertices(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype[np.float32]: ...
    def matvec(self, values: ArrayLike) -> NDArray[np.float32]: ...
    def matmat(self, values: ArrayLike) -> NDArray[np.float32]: ...
    def rmatvec(self, values: ArrayLike) -> NDArray[np.float32]: ...
    def rmatmat(self, values: ArrayLike) -> NDArray[np.float32]: ...
    def apply(
        self,
        values: ArrayLike,
        out: NDArray[np.floating[Any]] | None = None,
        direction: Literal["symmetric", "forward", "adjoint"] = "symmetric",
    ) -> NDArray[np.float32]: ...
    def adjoint(
        self, values: ArrayLike, out: NDArray[np.floating[Any]] | None = None
    ) -> NDArray[np.float32]: ...
    def __matmul__(self, values: ArrayLike) -> NDArray[np.float32]: ...
    def row_sums(self, out: NDArray[np.floating[Any]] | None = None) -> NDArray[np.float32]: ...
    def diagonal(self, out: NDArray[np.floating[Any]] | None = None) -> NDArray[np.float32]: ...

class Tree:
    edges: list[tuple[object, object, float]]
    def __init__(self, edges: Iterable[tuple[object, object, float]]) -> None: ...
    @classmethod
    def from_groups(cls, group: tuple[float, Sequence[Any]]) -> Tree: ...

class Cuts:
    sets: NDArray[Any]
    lengths: NDArray[np.float64]
    def __init__(self, sets: ArrayLike, lengths: ArrayLike) -> None: ...

class Model:
    image: NDArray[Any] | None
    shape: tuple[int, ...]
    labels: int
    def __init__(
        self,
        image: ArrayLike | None = None,
        *,
        unary: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
        logits: ArrayLike | None = None,
        labels_prior: ArrayLike | None = None,
        confidence: float | ArrayLike | None = None,
        labels: int | None = None,
        preset: str | None = None,
        spatial: float | tuple[_Sigma] | tuple[_Sigma, float] | None = ...,
        bilateral: tuple[_Sigma, _Sigma] | tuple[_Sigma, _Sigma, float] | None = ...,
        strength: float | Literal["auto"] = "auto",
        strength_factor: float = 1.0,
        spatial_share: float = ...,
        temperature: float = 1.0,
        compatibility: _Compatibility | list[_Compatibility | None] | None = None,
        normalize: _Normalization | None = None,
        cliques: ArrayLike | str | bool | None = None,
        clique_cost: float | tuple[float, float] | None = None,
        spacing: float | Sequence[float] = 1.0,
        shape: Sequence[int] | None = None,
        labels_axis: Literal[0, -1] | None = None,
        channels_axis: Literal[0, -1] | None = None,
        operator: _Operator = "fast",
        threads: int = 0,
        device: object = None,
    ) -> None: ...
    @property
    def device(self) -> str: ...
    def __copy__(self) -> Model: ...
    @property
    def kernels(self) -> list[dict[str, Any]]: ...
    def set_sigma(
        self, kernel: int, sigma: _Sigma | None = None, channel_sigma: _Sigma | None = None
    ) -> None: ...
    def set_unary(
        self,
        unary: ArrayLike | None = None,
        *,
        probabilities: ArrayLike | None = None,
        logits: ArrayLike | None = None,
    ) -> None: ...
    def add_spatial(
        self, sigma: _Sigma, weight: float | None = None, normalize: _Normalization | None = None
    ) -> int: ...
    def add_bilateral(
        self,
        sigma: _Sigma,
        channel_sigma: _Sigma,
        weight: float | None = None,
        image: ArrayLike | None = None,
        normalize: _Normalization | None = None,
    ) -> int: ...
    def add_features(
        self, features: ArrayLike, weight: float, normalize: _Normalization | None = None
    ) -> int: ...
    def set_weight(self, kernel: int, weight: float) -> None: ...
    @property
    def strength(self) -> float: ...
    def set_strength(self, strength: float | Literal["auto"] = "auto") -> None: ...
    def measured_strength(self) -> dict[str, float]: ...
    def set_compatibility(self, kernel: int, compatibility: _Compatibility | None) -> None: ...
    def set_cliques(
        self, cliques: ArrayLike | str | None, cost: float | tuple[float, float] | None = None
    ) -> None: ...
    def solve(
        self,
        method: _Method | None = None,
        *,
        start: ArrayLike | None = None,
        marginals: bool = True,
        trace: bool | None = None,
        progress: _Progress | None = None,
        out: NDArray[np.integer[Any]] | None = None,
        proof: bool = False,
        certificate: bool = False,
        iterations: int | None = None,
        time_limit_s: float | None = None,
        gap: float | None = None,
        stationarity: float | None = None,
        damping: float | None = None,
        evaluate_every: int | None = None,
        rounding_draws: int | None = None,
        seed: int | None = None,
        polish: bool | None = None,
        polish_rounds: int | None = None,
        lp_schedule: Literal["huber", "proximal", "paper"] | None = None,
    ) -> Result: ...
    def explain(self) -> Explanation: ...
    def verify(
        self, certificate: bytes, labels: ArrayLike | None = None, void: int | None = None
    ) -> Verification: ...
    def energy(self, labels: ArrayLike, void: int | None = None) -> Energy: ...
    def certify(
        self,
        labels: ArrayLike,
        *,
        void: int | None = None,
        time_limit_s: float | None = None,
        gap: float | None = None,
        iterations: int | None = None,
        progress: _Progress | None = None,
    ) -> Certificate: ...

class Scribbles:
    image: NDArray[Any]
    shape: tuple[int, ...]
    def __init__(
        self,
        image: ArrayLike,
        labels: int = 2,
        *,
        spacing: float | Sequence[float] = 1.0,
        shape: Sequence[int] | None = None,
        threads: int = 0,
        components: int | None = None,
        colour_weight: float | None = None,
        colour_limit: float | None = None,
        distance_weight: float | None = None,
        step_length: float | None = None,
        refits: int | None = None,
        iterations: int | None = None,
        spatial_sigma: float | None = None,
        spatial_weight: float | None = None,
        bilateral_sigma: float | None = None,
        bilateral_channel_sigma: float | None = None,
        bilateral_weight: float | None = None,
    ) -> None: ...
    def update(self, strokes: ArrayLike) -> NDArray[np.int32]: ...
    @property
    def labels(self) -> NDArray[np.int32]: ...
    @property
    def marginals(self) -> NDArray[np.float32]: ...
    @property
    def energies(self) -> NDArray[np.float32]: ...
    @property
    def settings(self) -> dict[str, float]: ...
    @property
    def kernels(self) -> dict[str, tuple[float, ...] | None]: ...
    @property
    def info(self) -> dict[str, Any]: ...

def solve(
    image: ArrayLike | None = None,
    *,
    method: _Method | None = None,
    scribbles: ArrayLike | None = None,
    unary: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels_prior: ArrayLike | None = None,
    confidence: float | ArrayLike | None = None,
    labels: int | None = None,
    preset: str | None = None,
    spatial: float | tuple[_Sigma] | tuple[_Sigma, float] | None = ...,
    bilateral: tuple[_Sigma, _Sigma] | tuple[_Sigma, _Sigma, float] | None = ...,
    strength: float | Literal["auto"] = "auto",
    strength_factor: float = 1.0,
    spatial_share: float = ...,
    temperature: float = 1.0,
    compatibility: ArrayLike | None = None,
    normalize: _Normalization | None = None,
    cliques: ArrayLike | str | bool | None = None,
    clique_cost: float | tuple[float, float] | None = None,
    spacing: float | Sequence[float] = 1.0,
    shape: Sequence[int] | None = None,
    labels_axis: Literal[0, -1] | None = None,
    channels_axis: Literal[0, -1] | None = None,
    operator: _Operator = "fast",
    threads: int = 0,
    device: object = None,
    start: ArrayLike | None = None,
    marginals: bool = True,
    trace: bool | None = None,
    progress: _Progress | None = None,
    out: NDArray[np.integer[Any]] | None = None,
    proof: bool = False,
    certificate: bool = False,
    iterations: int | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    stationarity: float | None = None,
    damping: float | None = None,
    evaluate_every: int | None = None,
    rounding_draws: int | None = None,
    seed: int | None = None,
    polish: bool | None = None,
    polish_rounds: int | None = None,
    lp_schedule: Literal["huber", "proximal", "paper"] | None = None,
) -> Result: ...

class ProblemError(ValueError):
    index: int
    def __init__(self, index: int, error: BaseException) -> None: ...

def solve_each(
    problems: Iterable[Mapping[str, Any]],
    *,
    threads: int = 0,
    errors: Literal["raise", "return"] = "raise",
    device: object = None,
    method: _Method | None = None,
    scribbles: ArrayLike | None = None,
    unary: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels_prior: ArrayLike | None = None,
    confidence: float | ArrayLike | None = None,
    labels: int | None = None,
    preset: str | None = None,
    spatial: float | tuple[_Sigma] | tuple[_Sigma, float] | None = ...,
    bilateral: tuple[_Sigma, _Sigma] | tuple[_Sigma, _Sigma, float] | None = ...,
    strength: float | Literal["auto"] = "auto",
    strength_factor: float = 1.0,
    spatial_share: float = ...,
    temperature: float = 1.0,
    compatibility: ArrayLike | None = None,
    normalize: _Normalization | None = None,
    cliques: ArrayLike | str | bool | None = None,
    clique_cost: float | tuple[float, float] | None = None,
    spacing: float | Sequence[float] = 1.0,
    shape: Sequence[int] | None = None,
    labels_axis: Literal[0, -1] | None = None,
    channels_axis: Literal[0, -1] | None = None,
    operator: _Operator = "fast",
    start: ArrayLike | None = None,
    marginals: bool = True,
    trace: bool | None = None,
    progress: _Progress | None = None,
    out: NDArray[np.integer[Any]] | None = None,
    proof: bool = False,
    certificate: bool = False,
    iterations: int | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    stationarity: float | None = None,
    damping: float | None = None,
    evaluate_every: int | None = None,
    rounding_draws: int | None = None,
    seed: int | None = None,
    polish: bool | None = None,
    polish_rounds: int | None = None,
    lp_schedule: Literal["huber", "proximal", "paper"] | None = None,
) -> Iterator[Any]: ...
def solve_many(
    problems: Iterable[Mapping[str, Any]],
    *,
    threads: int = 0,
    errors: Literal["raise", "return"] = "raise",
    device: object = None,
    method: _Method | None = None,
    scribbles: ArrayLike | None = None,
    unary: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels_prior: ArrayLike | None = None,
    confidence: float | ArrayLike | None = None,
    labels: int | None = None,
    preset: str | None = None,
    spatial: float | tuple[_Sigma] | tuple[_Sigma, float] | None = ...,
    bilateral: tuple[_Sigma, _Sigma] | tuple[_Sigma, _Sigma, float] | None = ...,
    strength: float | Literal["auto"] = "auto",
    strength_factor: float = 1.0,
    spatial_share: float = ...,
    temperature: float = 1.0,
    compatibility: ArrayLike | None = None,
    normalize: _Normalization | None = None,
    cliques: ArrayLike | str | bool | None = None,
    clique_cost: float | tuple[float, float] | None = None,
    spacing: float | Sequence[float] = 1.0,
    shape: Sequence[int] | None = None,
    labels_axis: Literal[0, -1] | None = None,
    channels_axis: Literal[0, -1] | None = None,
    operator: _Operator = "fast",
    start: ArrayLike | None = None,
    marginals: bool = True,
    trace: bool | None = None,
    progress: _Progress | None = None,
    out: NDArray[np.integer[Any]] | None = None,
    proof: bool = False,
    certificate: bool = False,
    iterations: int | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    stationarity: float | None = None,
    damping: float | None = None,
    evaluate_every: int | None = None,
    rounding_draws: int | None = None,
    seed: int | None = None,
    polish: bool | None = None,
    polish_rounds: int | None = None,
    lp_schedule: Literal["huber", "proximal", "paper"] | None = None,
) -> list[Any]: ...
def energy(
    image: ArrayLike | None = None,
    *,
    labels: ArrayLike,
    void: int | None = None,
    unary: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels_prior: ArrayLike | None = None,
    confidence: float | ArrayLike | None = None,
    preset: str | None = None,
    spatial: float | tuple[_Sigma] | tuple[_Sigma, float] | None = ...,
    bilateral: tuple[_Sigma, _Sigma] | tuple[_Sigma, _Sigma, float] | None = ...,
    strength: float | Literal["auto"] = "auto",
    strength_factor: float = 1.0,
    spatial_share: float = ...,
    temperature: float = 1.0,
    compatibility: ArrayLike | None = None,
    normalize: _Normalization | None = None,
    cliques: ArrayLike | str | bool | None = None,
    clique_cost: float | tuple[float, float] | None = None,
    spacing: float | Sequence[float] = 1.0,
    shape: Sequence[int] | None = None,
    labels_axis: Literal[0, -1] | None = None,
    channels_axis: Literal[0, -1] | None = None,
    operator: _Operator = "fast",
    threads: int = 0,
    device: object = None,
) -> Energy: ...
def certify(
    image: ArrayLike | None = None,
    *,
    labels: ArrayLike,
    void: int | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    iterations: int | None = None,
    unary: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels_prior: ArrayLike | None = None,
    confidence: float | ArrayLike | None = None,
    preset: str | None = None,
    spatial: float | tuple[_Sigma] | tuple[_Sigma, float] | None = ...,
    bilateral: tuple[_Sigma, _Sigma] | tuple[_Sigma, _Sigma, float] | None = ...,
    strength: float | Literal["auto"] = "auto",
    strength_factor: float = 1.0,
    spatial_share: float = ...,
    temperature: float = 1.0,
    compatibility: ArrayLike | None = None,
    normalize: _Normalization | None = None,
    cliques: ArrayLike | str | bool | None = None,
    clique_cost: float | tuple[float, float] | None = None,
    spacing: float | Sequence[float] = 1.0,
    shape: Sequence[int] | None = None,
    labels_axis: Literal[0, -1] | None = None,
    channels_axis: Literal[0, -1] | None = None,
    operator: _Operator = "fast",
    threads: int = 0,
    device: object = None,
) -> Certificate: ...
def verify(
    image: ArrayLike | None = None,
    *,
    certificate: bytes,
    labels: ArrayLike | None = None,
    void: int | None = None,
    unary: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels_prior: ArrayLike | None = None,
    confidence: float | ArrayLike | None = None,
    preset: str | None = None,
    spatial: float | tuple[_Sigma] | tuple[_Sigma, float] | None = ...,
    bilateral: tuple[_Sigma, _Sigma] | tuple[_Sigma, _Sigma, float] | None = ...,
    strength: float | Literal["auto"] = "auto",
    strength_factor: float = 1.0,
    spatial_share: float = ...,
    temperature: float = 1.0,
    compatibility: ArrayLike | None = None,
    normalize: _Normalization | None = None,
    cliques: ArrayLike | str | bool | None = None,
    clique_cost: float | tuple[float, float] | None = None,
    spacing: float | Sequence[float] = 1.0,
    shape: Sequence[int] | None = None,
    labels_axis: Literal[0, -1] | None = None,
    channels_axis: Literal[0, -1] | None = None,
    operator: _Operator = "fast",
    threads: int = 0,
    device: object = None,
) -> Verification: ...
def tune(
    problems: Iterable[Mapping[str, Any]],
    truths: Iterable[ArrayLike],
    *,
    objective: Literal["iou", "accuracy"] = "iou",
    budget: int = 40,
    ignore: int = 255,
    method: _Method = "mf",
    threads: int = 0,
    progress: Callable[[dict[str, Any]], object] | None = None,
    scribbles: ArrayLike | None = None,
    unary: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels_prior: ArrayLike | None = None,
    confidence: float | ArrayLike | None = None,
    labels: int | None = None,
    preset: str | None = None,
    spatial: float | tuple[_Sigma] | tuple[_Sigma, float] | None = ...,
    bilateral: tuple[_Sigma, _Sigma] | tuple[_Sigma, _Sigma, float] | None = ...,
    strength: float | Literal["auto"] = "auto",
    strength_factor: float = 1.0,
    spatial_share: float = ...,
    temperature: float = 1.0,
    compatibility: ArrayLike | None = None,
    normalize: _Normalization | None = None,
    cliques: ArrayLike | str | bool | None = None,
    clique_cost: float | tuple[float, float] | None = None,
    spacing: float | Sequence[float] = 1.0,
    shape: Sequence[int] | None = None,
    labels_axis: Literal[0, -1] | None = None,
    channels_axis: Literal[0, -1] | None = None,
    operator: _Operator = "fast",
    device: object = None,
    start: ArrayLike | None = None,
    marginals: bool = True,
    trace: bool | None = None,
    out: NDArray[np.integer[Any]] | None = None,
    proof: bool = False,
    certificate: bool = False,
    iterations: int | None = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    stationarity: float | None = None,
    damping: float | None = None,
    evaluate_every: int | None = None,
    rounding_draws: int | None = None,
    seed: int | None = None,
    polish: bool | None = None,
    polish_rounds: int | None = None,
    lp_schedule: Literal["huber", "proximal", "paper"] | None = None,
) -> dict[str, Any]: ...
class DataSet:
    folder: str
    labels: int
    void: int
    classes: list[str]
    names: list[str]
    has_truth: bool
    def __init__(self, folder: str | os.PathLike[str], split: str | None = None) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    def truth(self, index: int) -> NDArray[Any] | None: ...

class Comparison:
    methods: dict[str, dict[str, Any]]
    images: int
    labels: int | None
    classes: list[str] | None
    failures: list[ProblemError]
    labellings: dict[str, list[NDArray[np.int32] | None]] | None
    def __init__(
        self,
        methods: dict[str, dict[str, Any]],
        images: int,
        labels: int | None,
        classes: list[str] | None,
        failures: list[ProblemError],
        labellings: dict[str, list[NDArray[np.int32] | None]] | None,
    ) -> None: ...
    def report(self, title: str = "dcrf") -> str: ...
    def _repr_html_(self) -> str: ...

def batch(
    problems: str | os.PathLike[str] | DataSet | Iterable[Mapping[str, Any]],
    truths: Iterable[ArrayLike] | None = None,
    *,
    methods: Sequence[str] = ("mf5", "qp", "lp"),
    split: str | None = None,
    labels: int | None = None,
    ignore: int = 255,
    band: int = 8,
    cliques: str | None = "meanshift",
    clique_cost: float | tuple[float, float] | None = None,
    keep: bool = False,
    threads: int = 0,
    errors: Literal["raise", "return"] = "raise",
    unary: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels_prior: ArrayLike | None = None,
    confidence: float | ArrayLike | None = None,
    preset: str | None = None,
    spatial: float | tuple[_Sigma] | tuple[_Sigma, float] | None = ...,
    bilateral: tuple[_Sigma, _Sigma] | tuple[_Sigma, _Sigma, float] | None = ...,
    strength: float | Literal["auto"] = "auto",
    strength_factor: float = 1.0,
    spatial_share: float = ...,
    temperature: float = 1.0,
    compatibility: ArrayLike | None = None,
    normalize: _Normalization | None = None,
    spacing: float | Sequence[float] = 1.0,
    shape: Sequence[int] | None = None,
    labels_axis: Literal[0, -1] | None = None,
    channels_axis: Literal[0, -1] | None = None,
    operator: _Operator = "fast",
    device: object = None,
    time_limit_s: float | None = None,
    gap: float | None = None,
    stationarity: float | None = None,
    damping: float | None = None,
    rounding_draws: int | None = None,
    seed: int | None = None,
    polish: bool | None = None,
    polish_rounds: int | None = None,
    lp_schedule: Literal["huber", "proximal", "paper"] | None = None,
) -> Comparison: ...
def superpixels(
    image: ArrayLike,
    method: Literal["slic", "meanshift"] = "slic",
    *,
    region_size: float | None = None,
    compactness: float | None = None,
    spatial_bandwidth: float | None = None,
    range_bandwidth: float | None = None,
    min_region: int | None = None,
    shape: Sequence[int] | None = None,
    spacing: float | Sequence[float] = 1.0,
    threads: int = 0,
) -> NDArray[np.int32]: ...
