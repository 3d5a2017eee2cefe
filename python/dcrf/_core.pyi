"""The C library behind dcrf. Not an interface: use the package dcrf."""

from collections.abc import Callable, Sequence
from typing import Any, final

from numpy.typing import NDArray

_Array = NDArray[Any]
# Of numpy, or on a device: address, format, shape and strides.
_Anywhere = _Array | tuple[int, str, tuple[int, ...], tuple[int, ...]]
_Progress = Callable[[dict[str, float]], object]

def defaults() -> dict[str, float]: ...
def devices() -> list[tuple[str, str, int, int]]: ...
def device_memory(bytes: int, device: str, /) -> tuple[object, int]: ...
def device_of(address: int, /) -> str: ...
def fetch(address: int, device: str, stream: int, memory: _Array, /) -> None: ...
def from_dlpack(
    capsule: object, /
) -> tuple[object, int, int, int, tuple[int, ...], tuple[int, ...] | None, int, int]: ...
def to_dlpack(
    address: int, format: str, shape: Sequence[int], strides: Sequence[int], index: int, owner: object, /
) -> object: ...
def mean_field(
    problems: Sequence[
        tuple[
            Sequence[int],  # shape
            Sequence[float],  # spacing
            _Anywhere,  # unary
            str,  # its kind
            Sequence[
                tuple[Sequence[float] | None, _Anywhere | None, Sequence[float] | None, float, bool]
            ],  # kernels
            int,  # operator
            int,  # iterations
            _Anywhere | None,  # marginals
            _Anywhere | None,  # labels
        ]
    ],
    threads: int,
    streams: Sequence[int],
    device: str,
    /,
) -> None: ...
def padded(channels: int, /) -> int: ...
def version() -> str: ...
def cpu() -> str: ...
def pairwise_gradient(
    model: Model,
    y: _Array,
    y_derivative: _Array | None,
    weight: _Array | None,
    compatibility: _Array | None,
    sigma: _Array | None,
    features: _Array | None,
    channels_share_sigma: bool,
    /,
) -> float: ...
def soft_mask(numbers: _Array, width: int, rows: int, /) -> bool: ...
def unary_fits(from_shape: Sequence[int], to_shape: Sequence[int], /) -> bool: ...
def unary_energies(
    array: _Array,
    from_shape: Sequence[int],
    kind: str,
    to_shape: Sequence[int],
    image: _Array | None,
    energies: _Array | None,
    /,
) -> tuple[str, str]: ...
def superpixels(
    shape: Sequence[int],
    spacing: Sequence[float],
    image: _Array,
    method: str,
    region_size_px: float,
    compactness: float,
    spatial_bandwidth_px: float,
    range_bandwidth: float,
    min_region_px: int,
    threads: int,
    regions: _Array,
    /,
) -> int: ...

class DeviceError(RuntimeError): ...

@final
class Model:
    def __init__(
        self,
        shape: Sequence[int],
        spacing: Sequence[float],
        labels: int,
        operator: int = 0,
        threads: int = 0,
        device: str = "cpu",
    ) -> None: ...
    def device(self) -> str: ...
    def set_unary(self, array: _Array, /) -> None: ...
    def add_kernel(
        self,
        sigmas: Sequence[float] | None,
        channels: _Array | None,
        channel_sigmas: Sequence[float] | None,
        weight: float,
        is_symmetric: bool,
        /,
    ) -> None: ...
    def mask_energies(
        self, image: _Array, map: _Array, confidence: _Array | None, energies: _Array, /
    ) -> tuple[tuple[float, float], tuple[float, float, float]]: ...
    def set_weight(self, kernel: int, weight: float, /) -> None: ...
    def apply_temperature(self, temperature: float, /) -> None: ...
    def measure_strength(self) -> dict[str, float]: ...
    def strength(self) -> tuple[float, float]: ...
    def set_compatibility(self, kernel: int, compatibility: _Array | str | tuple[str, _Array, _Array] | None, /) -> None: ...
    def set_cliques(self, regions: _Array | None, cost: float, /) -> None: ...
    def set_clique_costs(self, image: _Array, gamma: float, eta: float, /) -> None: ...
    def counts(self) -> dict[str, int]: ...
    def energy(self, labels: _Array, /) -> dict[str, float]: ...
    def solve(
        self,
        method: str,
        settings: dict[str, Any],
        labels: _Array,
        marginals: _Array | None,
        start: _Array | None,
        progress: _Progress | None,
        possible: _Array | None = None,
        certificate: bool = False,
        judge_strength: bool = True,
        is_unwanted: Callable[[], object] | None = None,
        /,
    ) -> dict[str, Any]: ...
    def verify(
        self, certificate: bytes, labels: _Array | None, possible: _Array, /
    ) -> dict[str, Any]: ...
    def certify(
        self,
        labels: _Array,
        time_limit_s: float,
        gap: float,
        iterations: int,
        progress: _Progress | None,
        /,
    ) -> dict[str, Any]: ...

@final
class Lattices:
    def __init__(
        self,
        device: str,
        stream: int,
        features: int,
        variables: int,
        dimension: int,
        pictures: int,
        is_symmetric: bool,
        is_waiting: bool,
    ) -> None: ...
    def apply(self, values: int, result: int, channels: int, /) -> None: ...
    def diagonal(self, result: int, /) -> None: ...

@final
class Operator:
    def __init__(
        self,
        shape: Sequence[int],
        spacing: Sequence[float],
        sigmas: Sequence[float] | None,
        channels: _Array | None,
        channel_sigmas: Sequence[float] | None,
        is_symmetric: bool,
        kind: int,
        threads: int,
        device: str = "cpu",
    ) -> None: ...
    def device(self) -> str: ...
    def apply(self, direction: int, values: _Array, result: _Array, channels: int, /) -> None: ...
    def diagonal(self, result: _Array, /) -> None: ...
    def row_sums(self, result: _Array, /) -> None: ...
    def info(self) -> dict[str, int]: ...

@final
class Unrolled:
    def __init__(self, model: Model, iterations: int) -> None: ...
    def forward(self, mask: _Array | None, q: _Array, is_logarithm: bool = ..., /) -> None: ...
    def backward(
        self,
        q_derivative: _Array,
        is_logarithm: bool,
        unary: _Array | None,
        weight: _Array | None,
        compatibility: _Array | None,
        sigma: _Array | None,
        features: _Array | None,
        channels_share_sigma: bool,
        /,
    ) -> None: ...

@final
class DenseCRF:
    def __init__(self, shape: Sequence[int], labels: int, threads: int = 0, device: str = "cpu") -> None: ...
    def set_unary(self, array: _Array, /) -> None: ...
    def add_kernel(
        self,
        sigmas: Sequence[float] | None,
        channels: _Array | None,
        channel_sigmas: Sequence[float] | None,
        compatibility: _Array,
        normalization: int,
        /,
    ) -> None: ...
    def set_compatibility(self, kernel: int, array: _Array, /) -> None: ...
    def set_message_error(self, message_error: float, /) -> None: ...
    def infer(self, iterations: int, q: _Array, progress: _Progress | None, /) -> None: ...
    def step(self, q: _Array, /) -> None: ...
    def divergence(self, q: _Array, /) -> float: ...
    def device(self) -> str: ...

@final
class Scribbles:
    def __init__(
        self,
        shape: Sequence[int],
        spacing: Sequence[float],
        image: _Array,
        labels: int,
        settings: dict[str, Any],
        threads: int,
    ) -> None: ...
    def set_strokes(self, strokes: _Array, /) -> None: ...
    def update(self) -> None: ...
    def labels(self, labels: _Array, /) -> None: ...
    def marginals(self, marginals: _Array, /) -> None: ...
    def energies(self, energies: _Array, /) -> None: ...
    def info(self) -> dict[str, Any]: ...
    def settings(self) -> dict[str, float]: ...
