from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

_Learned = Literal["weights", "compatibility", "sigmas"]
_Sigma = float | Sequence[float]
_Spatial = tuple[_Sigma, float] | None
_Bilateral = tuple[_Sigma, _Sigma, float] | None

class _Kernels(torch.nn.Module):
    labels: int
    learn: tuple[str, ...]
    per_label: bool
    constrained: bool
    log_weights: torch.nn.Parameter
    log_sigmas: torch.nn.Parameter
    compatibility: torch.nn.Parameter | None
    def __init__(
        self,
        labels: int,
        spatial: _Spatial,
        bilateral: _Bilateral,
        compatibility: Tensor | None,
        learn: str | Iterable[str],
        normalize: str,
        operator: str,
        spacing: float | Sequence[float],
        image_scale: float | None,
        per_label: bool,
        constrained: bool,
        threads: int,
    ) -> None: ...
    @property
    def weights(self) -> Tensor: ...
    @property
    def sigmas(self) -> Tensor: ...
    @property
    def used_compatibility(self) -> Tensor | None: ...
    def penalty(self) -> Tensor: ...

class MeanField(_Kernels):
    iterations: int
    output: str
    checkpoint: bool
    def __init__(
        self,
        labels: int,
        *,
        spatial: _Spatial = (3, 1.5),
        bilateral: _Bilateral = (80, 13, 5),
        compatibility: Tensor | None = None,
        iterations: int = 5,
        learn: _Learned | Iterable[_Learned] = ("weights",),
        normalize: Literal["none", "symmetric"] = "symmetric",
        operator: Literal["fast", "exact", "grid", "lattice"] = "fast",
        spacing: float | Sequence[float] = 1.0,
        image_scale: float | None = None,
        per_label: bool = False,
        constrained: bool = True,
        output: Literal["probabilities", "log_probabilities"] = "probabilities",
        checkpoint: bool = False,
        threads: int = 0,
    ) -> None: ...
    def forward(
        self,
        logits: Tensor,
        image: Tensor,
        mask: Tensor | None = None,
        keys: Sequence[Hashable] | None = None,
    ) -> Tensor: ...
    def forget(self) -> None: ...
    def __setstate__(self, state: dict[str, Any]) -> None: ...

class CRFLoss(_Kernels):
    reduction: str
    scale_factor: float
    def __init__(
        self,
        labels: int,
        *,
        spatial: _Spatial = None,
        bilateral: _Bilateral = (80, 13, 1),
        compatibility: Tensor | None = None,
        learn: _Learned | Iterable[_Learned] = (),
        normalize: Literal["none", "symmetric"] = "symmetric",
        operator: Literal["fast", "exact", "grid", "lattice"] = "fast",
        spacing: float | Sequence[float] = 1.0,
        image_scale: float | None = None,
        per_label: bool = False,
        constrained: bool = True,
        reduction: Literal["mean", "sum", "none"] = "mean",
        scale_factor: float = 1.0,
        threads: int = 0,
    ) -> None: ...
    def forward(self, y: Tensor, image: Tensor, mask: Tensor | None = None) -> Tensor: ...
