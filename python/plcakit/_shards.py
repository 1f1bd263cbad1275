"""Fits of data in shards: what engines share.

An engine holds shards, with what belongs to their samples, and answers for all of them. The extension module makes the run, and its messages are
bytes: sums over shards follow one tree, whatever comes first, so that all engines find the same bits.
"""

from __future__ import annotations

import copyreg
import hashlib
import json
import pickle
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from . import _core
from ._data import contiguous, describe, seed_of, threads, unpacked
from ._nmf import NMF
from ._plca import PLCA
from ._plsa import PLSA

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._base import Factorization

#: Which model, of which settings, for the extension module.
Sheet = dict[str, Any]
#: Number of a shard, how many there are, and its first sample.
Place = tuple[int, int, int]
#: What the samples are in the blocks of the estimator, and in those of the model, which has them last.
_SWAPPED = {"w": "h", "h": "w"}


def load(source: Any, missing: str | None, transposed: bool, sent: bool = False) -> _core.Shard:
    """A shard: of an array, of a file of one, or of a part ``(folder, number, single)`` of what ``plca shard`` has cut.

    One that may be ``sent`` to another process keeps the arrays that it was made of.
    """
    if isinstance(source, tuple):
        folder, number, single = source
        return _core.Shard({"folder": folder, "shard": number}, single, sent)
    if isinstance(source, (str, Path)):
        source = sparse.load_npz(source) if str(source).endswith(".npz") else np.load(source)
    X = unpacked(source)
    X = X if sparse.issparse(X) else np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    return _core.Shard(describe(X, None, missing, transposed), bool(X.dtype == np.float32), sent)


def _received(arrays: dict[str, Any], single: bool, sent: bool) -> _core.Shard:
    """A shard whose arrays are views into a message, at any address."""
    return _core.Shard({name: _placed(array) for name, array in arrays.items()}, single, sent)


def _placed(array: Any) -> Any:
    if isinstance(array, list):
        return [_placed(part) for part in array]
    return contiguous(array) if isinstance(array, np.ndarray) else array


copyreg.pickle(_core.Shard, lambda shard: (_received, shard.__reduce__()[1]))


def parts(path: str | Path) -> tuple[list[Any], int | None]:
    """The shards of a folder, and the mode that ``plca shard`` has cut; ``None`` for a folder of files, one of each shard in the order of names."""
    folder = Path(path)
    manifest = folder / "manifest.json"
    if manifest.exists():
        known = json.loads(manifest.read_text())
        single = known["scalar"] == "f32"
        return [(str(folder), n, single) for n in range(len(known["shards"]))], int(known["along"])
    files = sorted(str(file) for file in folder.iterdir() if file.suffix in (".npz", ".npy"))
    if not files:
        raise ValueError(f"{folder} has neither a manifest.json of `plca shard` nor parts in .npz or .npy")
    return list(files), None


class Engine:
    """Whoever holds the shards of a fit.

    `traffic` counts bytes: of statistics that came ``up`` from all workers, of models that went ``down``, and `passes`.
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError("no shards: expected one at least")
        self.count = count
        #: What a fit is of: data, settings and seed.
        self.key = ""
        self.traffic = {"up": 0, "down": 0, "passes": 0}

    def survey(self, sheet: Sheet) -> tuple[bytes, list[int], bool]:
        """What is known of all shards, the samples of each, and whether they are in single precision."""
        raise NotImplementedError

    def resumed(self, sheet: Sheet) -> bytes | None:
        """The state of a fit of the same `key` that ended before its time, whose shards are then as they were."""
        return None

    def saves(self) -> tuple[int, Callable[[bytes], None]] | None:
        """After how many iterations the state of the fit is saved, and by whom."""
        return None

    def agreed(self, seed: int) -> int:
        """The seed, where several drive the fit that of the first."""
        return seed

    def begin(self, sheet: Sheet, firsts: Sequence[int], shared: bytes, seed: int, stream: int) -> None:
        """Makes what belongs to the samples of every shard."""
        raise NotImplementedError

    def __call__(self, shared: bytes, counts: bool, value: bool) -> bytes:
        """A pass over all shards: the sum of their statistics."""
        raise NotImplementedError

    def finish(self, shared: bytes) -> tuple[list[bytes], list[float]]:
        """What belongs to the samples of all shards in the end, and the scales of samples where cells are hidden."""
        raise NotImplementedError

    def _passed(self, shared: bytes, partials: Sequence[bytes]) -> bytes:
        self.traffic["passes"] += 1
        self.traffic["down"] += len(shared) * len(partials)
        self.traffic["up"] += sum(map(len, partials))
        return _core.shard_join(partials)


# What a worker does with a range of shards: pure functions, for engines that send them.


def surveyed(sheet: Sheet, shards: Sequence[_core.Shard], first: int, count: int) -> tuple[bytes, list[int], bool]:
    single = shards[0].single
    places = [(first + n, count, 0) for n in range(len(shards))]
    found, sizes = _core.shard_survey({**sheet, "single": single}, shards, places)
    return found, sizes, single


def begun(
    sheet: Sheet, shards: Sequence[_core.Shard], places: Sequence[Place], shared: bytes, seed: int, stream: int
) -> tuple[bytes, list[bytes]]:
    return b"", _core.shard_begin_local(sheet, shards, places, shared, seed, stream)


def stepped(
    sheet: Sheet, shards: Sequence[_core.Shard], state: tuple[bytes, list[bytes]], shared: bytes, counts: bool, value: bool
) -> tuple[bytes, list[bytes]]:
    """The partial sum of their statistics, and what belongs to their samples."""
    return _core.shard_step(sheet, shards, state[1], shared, counts, value)


def finished(
    sheet: Sheet, shards: Sequence[_core.Shard], state: tuple[bytes, list[bytes]], shared: bytes
) -> tuple[list[bytes], list[float]]:
    return _core.shard_finish(sheet, shards, state[1], shared)


def partial_of(state: tuple[bytes, list[bytes]]) -> bytes:
    return state[0]


class OneProcess(Engine):
    """All shards in this process."""

    def __init__(self, shards: Sequence[_core.Shard]) -> None:
        super().__init__(len(shards))
        self.shards = shards

    def survey(self, sheet: Sheet) -> tuple[bytes, list[int], bool]:
        return surveyed(sheet, self.shards, 0, self.count)

    def begin(self, sheet: Sheet, firsts: Sequence[int], shared: bytes, seed: int, stream: int) -> None:
        self.sheet = sheet
        places = [(n, self.count, first) for n, first in enumerate(firsts)]
        self.state = begun(sheet, self.shards, places, shared, seed, stream)

    def __call__(self, shared: bytes, counts: bool, value: bool) -> bytes:
        state = stepped(self.sheet, self.shards, self.state, shared, counts, value)
        if counts:
            self.state = state
        return self._passed(shared, [state[0]])

    def finish(self, shared: bytes) -> tuple[list[bytes], list[float]]:
        return finished(self.sheet, self.shards, self.state, shared)


def transposes(estimator: Factorization, along: int | None) -> bool:
    """Whether the model has the samples of arrays in its last mode."""
    return along is None and not isinstance(estimator, PLSA)


def _check(estimator: Factorization) -> None:
    """Refuses settings that need all data at once."""
    name = type(estimator).__name__
    if not isinstance(estimator, (NMF, PLCA, PLSA)) or getattr(estimator, "beta_loss", "kullback-leibler") != "kullback-leibler":
        raise ValueError(f"shards: expected PLSA, PLCA or NMF under the Kullback-Leibler divergence, got {name}")
    estimator._validate_params()
    plain = {"solver": ("auto", "em"), "init": (None, "random"), "n_init": (1,), "warm_start": (False,)}
    for setting, expected in plain.items():
        value = getattr(estimator, setting)
        if value not in expected:
            raise ValueError(f"shards: {setting} is {value!r}, expected {expected[0]!r}")
    if estimator._frozen():
        raise ValueError("shards: freeze needs a start, which shards do not take")


def fit(estimator: Any, engine: Engine, along: int | None = None) -> Any:
    """Fits an estimator to the shards that an engine holds; ``along`` is the mode of the model that a folder is cut along."""
    _check(estimator)
    model, options = estimator._model(), estimator._options()
    if model == "plsa" and along == 1:
        options["given"] = "columns"
    sheet: Sheet = {
        "model": model,
        # Of the shards nothing is known yet, and what is known of them does not depend on the number of components.
        "components": 1,
        "options": options,
        "threads": threads(estimator.n_jobs),
    }
    survey, sizes, single = engine.survey(sheet)
    shape, cut, _ = _core.shard_known(survey)
    expected = [0, 1] if model == "plsa" else [len(shape) - 1]
    if cut not in expected or along not in (None, cut):
        raise ValueError(f"shards: cut along dimension {along}, {type(estimator).__name__} has its samples along {cut}")
    # As the estimator has them: samples first.
    theirs = tuple(shape) if cut == 0 else tuple(shape[::-1])
    k = estimator._components(theirs, None)
    names = _names(model, len(shape))
    priors = estimator._priors(estimator._block_shapes(theirs, k))
    if priors:
        options["prior"] = {names.get(name, name): prior for name, prior in priors.items()}
    sheet.update(components=k, single=single)
    seed = engine.agreed(seed_of(estimator.random_state))
    shared = _core.shard_begin(sheet, survey, seed, 0)
    known = {**sheet, "threads": None, "survey": survey, "seed": seed, "version": _core.__version__}
    engine.key = hashlib.sha256(pickle.dumps(known)).hexdigest()
    resume = engine.resumed(sheet)
    if resume is None:
        engine.begin(sheet, [0, *accumulate(sizes)][:-1], shared, seed, 0)
    watch, ended = estimator._watch(), {}
    try:
        course = {
            "stop": estimator._stop(),
            "likelihood": estimator._wants_likelihood and bool(priors),
            "watch": watch,
            "save": engine.saves(),
            "resume": resume,
        }
        result = _core.shard_fit(sheet, shared, engine, course)
        ended = {"iterations": result["iterations"], "objective": result["objective"]}
    finally:
        if watch is not None:
            watch.close(**ended)
    locals_, scales = engine.finish(result["shared"])
    blocks, metadata = _core.shard_gather(sheet, result["shared"], locals_, result["scale"] or scales)
    if model == "plsa" and cut == 1:
        facts = json.loads(metadata)
        facts["facts"]["given"] = [0.0]
        metadata = json.dumps(facts)
    result["arrays"] = {names.get(name, name): _turned(model, block, name) for name, block in blocks.items()}
    result.update(metadata=metadata, restored=[], error=None)
    estimator._keep(result, theirs, k, seed)
    if len(theirs) == 2:
        estimator.n_features_in_ = theirs[1]
    estimator.traffic_ = dict(engine.traffic)
    estimator._warn(result)
    return estimator


def _names(model: str, order: int) -> dict[str, str]:
    """Blocks of the model as the estimator calls them, and the other way round."""
    if model == "plca":
        return {f"factor_{j}": f"factor_{order - 1 - j}" for j in range(order)}
    return _SWAPPED if model == "nmf-kl" else {}


def _turned(model: str, block: Any, name: str) -> Any:
    return np.ascontiguousarray(block.T) if model == "nmf-kl" and name in _SWAPPED else block
