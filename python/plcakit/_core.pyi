from os import PathLike
from typing import Any, Callable, Sequence, final

import numpy as np
from numpy.typing import NDArray

__version__: str

__all__ = [
    "Shard",
    "__version__",
    "consensus",
    "fit",
    "learn",
    "order",
    "ranks_fit",
    "read_model",
    "reconstruct",
    "sample",
    "shard_begin",
    "shard_finish",
    "shard_fit",
    "shard_known",
    "shard_pass",
    "shard_survey",
    "shares",
    "sweep",
    "transform",
    "validate",
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
def shares(data: dict[str, Any]) -> float | None: ...
def validate(model: str, data: dict[str, Any], folding: dict[str, Any], choice: dict[str, Any]) -> dict[str, Any]: ...
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
@final
class Shard:
    single: bool
    digest: str | None
    def __new__(cls, arrays: dict[str, Any], single: bool, sent: bool, digest: str | None = None) -> Shard: ...
    def __reduce__(self) -> tuple[type[Shard], tuple[dict[str, Any], bool, bool, str | None]]: ...
    def __sizeof__(self) -> int: ...

_Places = Sequence[tuple[int, int, int]]

def shard_survey(sheet: dict[str, Any], shards: Sequence[Shard], places: _Places) -> tuple[bytes, list[int]]: ...
def shard_known(partials: Sequence[bytes]) -> tuple[bytes, list[int], int]: ...
def shard_begin(
    sheet: dict[str, Any], shards: Sequence[Shard], places: _Places, shared: bytes, seed: int
) -> list[bytes]: ...
def shard_pass(
    sheet: dict[str, Any], shards: Sequence[Shard], locals: Sequence[bytes], shared: bytes, counts: bool, value: bool
) -> tuple[bytes, list[bytes]]: ...
def shard_finish(
    sheet: dict[str, Any], shards: Sequence[Shard], locals: Sequence[bytes], shared: bytes
) -> tuple[list[bytes], list[float]]: ...
def shard_fit(sheet: dict[str, Any], survey: bytes, engine: Any, course: dict[str, Any]) -> dict[str, Any]: ...
def ranks_fit(
    sheet: dict[str, Any], survey: bytes, shards: Sequence[Shard], places: _Places, carries: Any, course: dict[str, Any]
) -> dict[str, Any]: ...
def read_model(path: str | PathLike[str], unpack_limit: int | None = None) -> tuple[_Blocks, str]: ...
def write_model(
    path: str | PathLike[str], blocks: _Blocks, metadata: str, single: bool = False
) -> None: ...
