from os import PathLike
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

__version__: str

__all__ = [
    "__version__",
    "consensus",
    "fit",
    "learn",
    "order",
    "read_model",
    "reconstruct",
    "sample",
    "sweep",
    "transform",
    "write_model",
]

_Blocks = dict[str, NDArray[Any]]

def fit(
    model: str,
    data: dict[str, Any],
    plan: dict[str, Any],
    watch: Callable[[int, int, float], object] | None = None,
) -> dict[str, Any]: ...
def sweep(model: str, data: dict[str, Any], plan: dict[str, Any], block: str) -> dict[str, Any]: ...
def consensus(spectra: NDArray[np.float64], how: dict[str, Any]) -> dict[str, Any]: ...
def transform(
    model: str, blocks: _Blocks, metadata: str, data: dict[str, Any], how: dict[str, Any]
) -> dict[str, Any]: ...
def learn(
    model: str, data: dict[str, Any], lesson: dict[str, Any], known: _Blocks | None
) -> dict[str, Any]: ...
def order(model: str, data: dict[str, Any], criterion: str, choice: dict[str, Any]) -> dict[str, Any]: ...
def reconstruct(
    model: str, blocks: _Blocks, metadata: str, single: bool = False, component: int | None = None
) -> NDArray[np.floating[Any]]: ...
def sample(
    model: str,
    blocks: _Blocks,
    metadata: str,
    options: dict[str, Any],
    draws: int | None,
    seed: int,
) -> dict[str, Any]: ...
def read_model(path: str | PathLike[str]) -> tuple[_Blocks, str]: ...
def write_model(
    path: str | PathLike[str], blocks: _Blocks, metadata: str, single: bool = False
) -> None: ...
