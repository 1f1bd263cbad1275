from os import PathLike
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

__version__: str

Blocks = dict[str, NDArray[Any]]

def fit(
    model: str,
    data: dict[str, Any],
    plan: dict[str, Any],
    watch: Callable[[int, int, float], object] | None = None,
) -> dict[str, Any]: ...
def transform(
    model: str, blocks: Blocks, metadata: str, data: dict[str, Any], how: dict[str, Any]
) -> dict[str, Any]: ...
def learn(
    model: str, data: dict[str, Any], lesson: dict[str, Any], known: Blocks | None
) -> dict[str, Any]: ...
def reconstruct(
    model: str, blocks: Blocks, metadata: str, single: bool = False, component: int | None = None
) -> NDArray[np.floating[Any]]: ...
def read_model(path: str | PathLike[str]) -> tuple[Blocks, str]: ...
def write_model(
    path: str | PathLike[str], blocks: Blocks, metadata: str, single: bool = False
) -> None: ...
def check_prior(text: str, rows: int, columns: int) -> None: ...
