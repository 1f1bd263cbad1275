"""Fits of data in shards: what engines share.

An engine holds shards, with what belongs to their samples. The extension module makes the run, and its messages are bytes: sums over shards follow one
tree, whatever comes first, so that all engines find the same bits.
"""

from __future__ import annotations

import copyreg
import hashlib
import json
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from . import _core
from ._data import contiguous, coordinates, describe, real, seed_of, threads, unmasked, unpacked
from ._mixtures import SHAPE
from ._nmf import NMF
from ._plca import PLCA
from ._plsa import PLSA
from ._skellam import SkellamSNMF

if TYPE_CHECKING:
    from ._base import Factorization

#: Which model, of which settings, for the extension module.
Sheet = dict[str, Any]
#: What marks a hidden cell, whether arrays are transposed, whether values may be negative.
Reading = tuple[str | None, bool, bool]
#: Into how many shards a file of AnnData is cut, as `plca shard` cuts its data.
SHARDS = 64
#: What the samples are in the blocks of the estimator, and in those of the model, which has them last.
_SWAPPED = {"w": "h", "h": "w"}


def load(
    source: Any, missing: str | None, transposed: bool, signed: bool = False, sent: bool = False, hashed: bool = False
) -> _core.Shard:
    """A shard: of an array, of a file of one, or of a part ``(folder, number, single)`` of what ``plca shard`` has cut.

    One that may be ``sent`` to another process keeps the arrays that it was made of; the arrays of a ``hashed`` one give it its `digest`.
    """
    if isinstance(source, tuple):
        folder, number, single = source
        if missing is not None:
            raise ValueError(f"missing is {missing!r}: the shards of `plca shard` have no hidden cells, expected None")
        return _core.Shard({"folder": folder, "shard": number}, single, sent)
    if isinstance(source, (str, Path)):
        source = _read(source)
    X, observed = unmasked(unpacked(source), None)
    X = X if sparse.issparse(X) else real(np.asarray(X))
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    _check_cells(X, observed, missing, signed)
    arrays = describe(X, observed, missing, transposed)
    return _core.Shard(arrays, bool(X.dtype == np.float32), sent, _digest(arrays) if hashed else None)


def _read(path: str | Path) -> Any:
    try:
        return sparse.load_npz(path) if str(path).endswith(".npz") else np.load(path)
    except (OSError, MemoryError):
        # These name the file, or are not about it.
        raise
    except Exception as error:
        raise ValueError(f"{path} is not a complete file with one array or sparse matrix: {error}") from error


def _check_cells(X: Any, observed: Any, missing: str | None, signed: bool) -> None:
    """Refuses a cell that the model does not take, by its index in the shard."""
    if sparse.issparse(X) and X.format not in ("csr", "csc"):
        # Several entries of a cell are its sum.
        X = X.tocoo(copy=True)
        X.sum_duplicates()
    values = X.data if sparse.issparse(X) else X
    with np.errstate(invalid="ignore"):
        wrong = ~np.isfinite(values) if signed else ~((values >= 0) & (values < np.inf))
    if missing == "nan":
        wrong &= ~np.isnan(values)
    if observed is not None:
        wrong &= observed
    if not wrong.any():
        return
    first = int(np.argmax(wrong))
    if sparse.issparse(X):
        index = [int(at[first]) for at in coordinates(X.tocoo())]
    else:
        index = [int(at) for at in np.unravel_index(first, X.shape)]
    value = values.ravel()[first]
    hint = "; missing='nan' takes NaN as a hidden cell" if np.isnan(value) and not sparse.issparse(X) else ""
    raise ValueError(f"entry {index} is {value}, expected a finite number{'' if signed else ' >= 0'}{hint}")


def _digest(arrays: dict[str, Any]) -> str:
    """SHA-256 of what a shard is made of."""
    found = hashlib.sha256()
    for name, value in sorted(arrays.items()):
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, np.ndarray):
                found.update(f"{name} {part.dtype} {part.shape} {part.flags.c_contiguous}".encode())
                found.update(part.ravel(order="K").view(np.uint8).data)
            else:
                found.update(f"{name} {part}".encode())
    return found.hexdigest()


def opened(
    sources: Sequence[Any], first: int, how: Reading, sent: bool = False, hashed: bool = False
) -> list[_core.Shard]:
    """Shards, the first of which has the number ``first``, as of :func:`load`; a source may be a function that returns one."""
    shards = []
    for number, source in enumerate(sources, first):
        try:
            shards.append(load(source() if callable(source) else source, *how, sent=sent, hashed=hashed))
        except ValueError as error:
            raise ValueError(f"shard {number}: {error}") from error
    return shards


def _received(arrays: dict[str, Any], single: bool, sent: bool, digest: str | None) -> _core.Shard:
    """A shard whose arrays are views into a message, at any address."""
    return _core.Shard({name: _placed(array) for name, array in arrays.items()}, single, sent, digest)


def _placed(array: Any) -> Any:
    if isinstance(array, list):
        return [_placed(part) for part in array]
    return contiguous(array) if isinstance(array, np.ndarray) else array


copyreg.pickle(_core.Shard, lambda shard: (_received, shard.__reduce__()[1]))


class Cells:
    """Observations of a file of AnnData, which are read when they are called for."""

    def __init__(self, path: Path, first: int, end: int) -> None:
        self.path, self.first, self.end = path, first, end

    def __call__(self) -> Any:
        annotated = _annotated(self.path)
        try:
            return annotated.X[self.first : self.end]
        finally:
            annotated.file.close()


def _annotated(path: Path) -> Any:
    try:
        import anndata
    except ImportError as error:
        raise ImportError(f"{path} needs anndata: pip install 'plcakit[ad]'") from error
    annotated = anndata.read_h5ad(path, backed="r")
    try:
        if annotated.n_obs and "X" in annotated.file:
            return annotated
    except BaseException:
        annotated.file.close()
        raise
    annotated.file.close()
    raise ValueError(f"{path} has no cells or no X, expected counts of at least one cell")


def _cells(path: Path) -> list[Any]:
    annotated = _annotated(path)
    try:
        count = annotated.n_obs
    finally:
        annotated.file.close()
    many = min(SHARDS, count)
    ends = [count * n // many for n in range(many + 1)]
    return [Cells(path, a, b) for a, b in zip(ends, ends[1:])]


def sourced(X: Any) -> tuple[Sequence[Any], int | None]:
    """Where the shards are: those of a sequence, of a file of AnnData or of a folder. Of a folder that ``plca shard`` has made also the mode that is cut."""
    if isinstance(X, (str, Path)):
        path = Path(X).absolute()
        return (_cells(path), None) if path.suffix == ".h5ad" else _parts(path)
    if not isinstance(X, Sequence):
        raise ValueError(f"X is of {type(X).__name__}: expected a sequence of shards or a folder of them")
    # Of a process that works in another folder.
    return [Path(source).absolute() if isinstance(source, (str, Path)) else source for source in X], None


def _parts(folder: Path) -> tuple[list[Any], int | None]:
    manifest = folder / "manifest.json"
    if manifest.exists():
        try:
            known = json.loads(manifest.read_text())
            single = known["scalar"] == "f32"
            return [(str(folder), n, single) for n in range(len(known["shards"]))], int(known["along"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{manifest} is not a manifest of `plca shard`: {error!r}") from error
    files = sorted(str(file) for file in folder.iterdir() if file.suffix in (".npz", ".npy"))
    if not files:
        raise ValueError(f"{folder} has neither a manifest.json of `plca shard` nor parts in .npz or .npy")
    return list(files), None


class Engine:
    """Whoever holds the shards of a fit.

    `traffic` has the bytes of an iteration: of the statistics that are sent ``up``, and of what comes ``down``; and the number of ``passes`` over all
    shards.
    """

    #: Whether warnings of the fit are given here.
    warns = True

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError("no shards: expected at least one")
        self.count = count
        self.traffic = {"up": 0, "down": 0, "passes": 0}

    def survey(self, sheet: Sheet) -> list[tuple[bytes, list[int], bool]]:
        """What is known of ranges of the shards, in their order: as of :func:`surveyed`."""
        raise NotImplementedError

    def watch(self, estimator: Any) -> Any:
        """What looks at the fit at every check, as of `Factorization._watch`."""
        return estimator._watch()

    def agreed(self, seed: int) -> int:
        """The seed, where several drive the fit that of the first."""
        return seed

    def fit(self, sheet: Sheet, survey: bytes, firsts: Sequence[int], course: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
        """Makes the fit, of which something is ``known``: what a checkpoint must agree with."""
        raise NotImplementedError


def surveyed(sheet: Sheet, shards: Sequence[_core.Shard], first: int, count: int) -> tuple[bytes, list[int], bool]:
    """What is known of a range of shards, the samples of each, and whether they are in single precision."""
    single = shards[0].single
    places = [(first + n, count, 0) for n in range(len(shards))]
    found, sizes = _core.shard_survey({**sheet, "single": single}, shards, places)
    return found, sizes, single


class Ranks(Engine):
    """A range of the shards in this process: all of them, or those of a rank."""

    #: What messages go by: an object for `ranks_fit` of the extension module.
    carries: Any = None

    def __init__(self, shards: Sequence[_core.Shard], first: int, count: int) -> None:
        super().__init__(count)
        self.shards, self.first = shards, first

    def survey(self, sheet: Sheet) -> list[tuple[bytes, list[int], bool]]:
        return [surveyed(sheet, self.shards, self.first, self.count)]

    def kept(self, known: dict[str, Any]) -> tuple[str, int, str] | None:
        """The folder of a checkpoint, after how many iterations it is written, and what is known of the fit."""
        return None

    def fit(self, sheet: Sheet, survey: bytes, firsts: Sequence[int], course: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
        places = [(n, self.count, firsts[n]) for n in range(self.first, self.first + len(self.shards))]
        course["kept"] = self.kept(known)
        result = _core.ranks_fit(sheet, survey, self.shards, places, self.carries, course)
        self.traffic = dict(zip(self.traffic, result.pop("traffic")))
        return result


def reading(estimator: Factorization, along: int | None) -> Reading:
    """How shards are read: what marks a hidden cell, whether the model has the samples of arrays in its last mode, whether values may be negative."""
    transposed = along is None and not isinstance(estimator, PLSA)
    return estimator.missing, transposed, isinstance(estimator, SkellamSNMF)


def check(estimator: Factorization) -> None:
    """Refuses settings that need all data at once, before any are read."""
    name = type(estimator).__name__
    if not isinstance(estimator, (NMF, PLCA, PLSA, SkellamSNMF)) or not getattr(estimator, "_kl", True):
        raise ValueError(f"shards: expected PLSA, PLCA, SkellamSNMF, or NMF under the Kullback-Leibler divergence, got {name}")
    estimator._validate_params()
    plain = {"solver": ("auto", "em", "squarem", "fast"), "init": (None, "random"), "n_init": (1,), "warm_start": (False,)}
    for setting, expected in plain.items():
        value = getattr(estimator, setting)
        if value not in expected:
            raise ValueError(f"shards: {setting} is {value!r}, expected {' or '.join(map(repr, expected))}")
    if estimator._frozen({}):
        raise ValueError("shards: freeze needs a start, which shards do not take")


def fit(estimator: Any, engine: Engine, along: int | None = None) -> Any:
    """Fits an estimator to the shards that an engine holds; ``along`` is the mode of the model that a folder is cut along."""
    model, options = estimator._model(), estimator._options()
    plsa = isinstance(estimator, PLSA)
    if plsa and along == 1:
        options["given"] = "columns"
    sheet: Sheet = {
        "model": model,
        # Of the shards nothing is known yet, and what is known of them does not depend on the number of components.
        "components": 1,
        "options": options,
        "threads": threads(estimator.n_jobs),
    }
    partials, sizes, single = zip(*engine.survey(sheet))
    if len(set(single)) > 1:
        raise ValueError("shards: expected all in one precision")
    survey, shape, cut = _core.shard_known(partials)
    expected = [0, 1] if plsa else [len(shape) - 1]
    if cut not in expected or along not in (None, cut):
        raise ValueError(f"shards: cut along dimension {along}, but the samples of {type(estimator).__name__} lie along {cut}")
    # As the estimator has them: samples first, but of those that transpose their data.
    theirs = tuple(shape) if cut == 0 or estimator._transposed else tuple(shape[::-1])
    k = estimator._components(theirs, None)
    names = _names(model, len(shape))
    priors = estimator._priors(estimator._block_shapes(theirs, k))
    if priors:
        options["prior"] = {names.get(name, name): prior for name, prior in priors.items()}
    sheet.update(components=k, single=single[0])
    seed = engine.agreed(seed_of(estimator.random_state))
    stop = estimator._stop()
    watch, ended = engine.watch(estimator), {}
    course = {
        "seed": seed,
        "solver": "em" if estimator.solver == "auto" else estimator.solver,
        "stop": stop,
        "likelihood": estimator._wants_likelihood and bool(priors),
        "watch": watch,
        "kept": None,
    }
    known = {
        "model": model,
        "n_components": k,
        "the shape of the data": list(theirs),
        "the precision of the data": "single" if single[0] else "double",
        # Arrays of priors as lists, so that equal ones are written alike.
        "settings of the model": json.dumps(options, sort_keys=True, default=lambda array: np.asarray(array).tolist()),
        "random_state": seed,
        "solver": course["solver"],
        "tol": stop["tol"],
        "check_every": stop["check_every"],
        "the version of plcakit": _core.__version__,
    }
    try:
        firsts = [0, *accumulate(size for of in sizes for size in of)][:-1]
        result = engine.fit(sheet, survey, firsts, course, known)
        ended = {"iterations": result["iterations"], "objective": result["objective"]}
    finally:
        if watch is not None:
            watch.close(**ended)
    blocks, metadata = result["arrays"], result["metadata"]
    if plsa and cut == 1:
        facts = json.loads(metadata)
        facts["facts"]["given"] = [0.0]
        metadata = json.dumps(facts)
    result["arrays"] = {names.get(name, name): _turned(model, block, name) for name, block in blocks.items()}
    result.update(metadata=metadata, restored=[], error=None)
    estimator._keep(result, theirs, k, seed)
    # Of an earlier fit, as shards have no names of features.
    for name in ("feature_names_in_", "_named", "n_features_in_"):
        estimator.__dict__.pop(name, None)
    if len(theirs) == 2:
        estimator.n_features_in_ = theirs[0 if estimator._transposed else 1]
    estimator.traffic_ = dict(engine.traffic)
    if engine.warns:
        estimator._warn(result)
    return estimator


def _names(model: str, order: int) -> dict[str, str]:
    """Blocks of the model as the estimator calls them, and the other way round."""
    if model in ("plca", "plca-vb"):
        kinds = ("", SHAPE) if model == "plca-vb" else ("",)
        return {f"factor_{j}{kind}": f"factor_{order - 1 - j}{kind}" for j in range(order) for kind in kinds}
    return _SWAPPED if model == "nmf-kl" else {}


def _turned(model: str, block: Any, name: str) -> Any:
    return np.ascontiguousarray(block.T) if model == "nmf-kl" and name in _SWAPPED else block
