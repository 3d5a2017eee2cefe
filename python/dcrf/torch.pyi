from collections.abc import Hashable, Iterable, Sequence
from typing import Literal

import torch
from torch import Tensor

class _Kernels(torch.nn.Module):
    labels: int
    log_weights: torch.nn.Parameter
    log_sigmas: torch.nn.Parameter
    compatibility: torch.nn.Parameter | None
    def __init__(
        self,
        labels: int,
        spatial: tuple[float, float] | None,
        bilateral: tuple[float, float, float] | None,
        compatibility: Tensor | None,
        learn: Iterable[str],
        normalize: str,
        operator: str,
        threads: int,
    ) -> None: ...
    @property
    def weights(self) -> Tensor: ...
    @property
    def sigmas(self) -> Tensor: ...

class MeanField(_Kernels):
    iterations: int
    def __init__(
        self,
        labels: int,
        *,
        spatial: tuple[float, float] | None = (3, 1.5),
        bilateral: tuple[float, float, float] | None = (80, 13, 5),
        compatibility: Tensor | None = None,
        iterations: int = 5,
        learn: Iterable[Literal["weights", "compatibility", "sigmas"]] = ("weights",),
        normalize: Literal["none", "symmetric"] = "symmetric",
        operator: Literal["fast", "exact", "grid", "lattice"] = "fast",
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

class CRFLoss(_Kernels):
    reduction: str
    def __init__(
        self,
        labels: int,
        *,
        spatial: tuple[float, float] | None = None,
        bilateral: tuple[float, float, float] | None = (80, 13, 1),
        compatibility: Tensor | None = None,
        learn: Iterable[Literal["weights", "compatibility", "sigmas"]] = (),
        normalize: Literal["none", "symmetric"] = "symmetric",
        operator: Literal["fast", "exact", "grid", "lattice"] = "fast",
        reduction: Literal["mean", "sum", "none"] = "mean",
        threads: int = 0,
    ) -> None: ...
    def forward(self, y: Tensor, image: Tensor, mask: Tensor | None = None) -> Tensor: ...
