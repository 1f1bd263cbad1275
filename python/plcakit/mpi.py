"""Fits of data in shards on the ranks of MPI, bit-identical with those of one process.

Every rank holds a range of the shards and makes the same run: sums are joined by all of them, and the M-step of equal bits has equal bits.
"""

from __future__ import annotations

import re
import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._shards import Engine, Sheet, begun, check, finished, opened, reading, sealed, sourced, stepped, surveyed, unsealed, write
from ._shards import fit as _fit

__all__ = ["fit"]


def _world() -> Any:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            "plcakit.mpi needs MPI and mpi4py: apt install openmpi-bin libopenmpi-dev && pip install 'plcakit[mpi]'"
        ) from error
    return MPI.COMM_WORLD


def fit(
    estimator: Any,
    X: Any,
    *,
    comm: Any = None,
    checkpoint: str | Path | None = None,
    save_every: int = 10,
    stepwise: tuple[int, int] | None = None,
) -> Any:
    """Fit an estimator to data in shards, on all ranks of a communicator; every rank calls this, and gets the same estimator.

    The result is bit-identical to that of one process over the same shards, :func:`plcakit.shards.fit`. An error on one rank is raised on all of
    them, or ends all of them. ``callback`` and ``verbose`` are for the first rank: it calls the callback, and all ranks follow its answer.

    Parameters
    ----------
    estimator : PLSA, PLCA, NMF or SkellamSNMF
        What is fitted, by the solver ``"em"``, ``"squarem"`` or ``"fast"``. ``n_jobs`` is the number of threads of a rank. It is changed in place.
    X : sequence or path-like
        The data, samples first, as of :func:`plcakit.shards.fit`. An item of a sequence may be a function that returns a shard: a rank calls those
        of its own shards alone.
    comm : mpi4py.MPI.Comm, default=None
        The ranks; ``None``: all.
    checkpoint : path-like, default=None
        A folder that all ranks share, in which the state is kept, for one fit at a time. The same fit goes on from there if it was ended, with any
        number of ranks, and has the same bits as one that was not ended; ``trace_`` then begins there. The same fit has the same shards in the same order and
        the same settings, ``random_state`` a whole number; only ``max_iter`` may be another, and not below the iterations done. Anything else is a
        ``ValueError`` that says what differs.
    save_every : int, default=10
        After how many iterations the state is saved.
    stepwise : tuple of int, default=None
        See :func:`plcakit.shards.fit`.

    Returns
    -------
    estimator : object
        The estimator itself. ``traffic_`` has the bytes of an iteration, of the statistics that this rank gives (``up``) and of their sum over all
        ranks that it takes (``down``), and the number of ``passes`` over the data.

    Examples
    --------
    A script for ``mpirun -n 16 python``:

    >>> from plcakit import PLSA
    >>> from plcakit.mpi import fit
    >>> topics = fit(PLSA(20, random_state=0, n_jobs=1), "counts.shards")        # doctest: +SKIP
    """
    comm = _world() if comm is None else comm
    engine: _Ranks | None = None
    try:
        engine = _Ranks(comm, estimator, X, checkpoint, save_every, stepwise)
        return _fit(estimator, engine, engine.along, stepwise)
    except _Told as told:
        error = told.error
    except BaseException:
        if engine is not None:
            engine.drop()
        if comm.size == 1:
            raise
        # The others would wait for ever.
        traceback.print_exc()
        comm.Abort(1)
        raise
    if engine is not None:
        engine.drop()
    raise error


class _Told(Exception):
    """An error that all ranks have heard of, so that none waits for another."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def _together(comm: Any, of: Callable[[], Any]) -> list[Any]:
    """What ``of`` answers on every rank; where it fails on one, all of them raise."""
    answer, error = None, None
    try:
        answer = of()
    except BaseException as failure:
        error = failure
    found = comm.allgather((answer, None if error is None else f"{type(error).__name__}: {error}"))
    if error is not None:
        raise _Told(error)
    for rank, (_, what) in enumerate(found):
        if what is not None:
            raise _Told(RuntimeError(f"rank {rank} of MPI failed, {what}"))
    return [answer for answer, _ in found]


#: For how long a rank looks for a message again at once, and after how long from then on, in seconds.
_LOOK, _NAP = 1e-4, 5e-5
#: Bytes at once: MPI counts them in 31 bits.
_CHUNK = 1 << 30


def _complete(test: Callable[[], bool]) -> None:
    """Waits for a message. MPI itself would hold a core meanwhile, which another rank may need."""
    begun = time.perf_counter()
    while not test():
        time.sleep(0 if time.perf_counter() - begun < _LOOK else _NAP)


def _send(comm: Any, to: int, message: bytes | bytearray) -> None:
    # Complete when the other rank has it, and so is ready for the rest.
    _complete(comm.Issend(_length(len(message)), to).Test)
    for chunk in _chunks(message):
        comm.Send(chunk, to)


def _receive(comm: Any, source: int) -> bytearray:
    length = _length()
    _complete(comm.Irecv(length, source).Test)
    message = bytearray(int(length[0]))
    for chunk in _chunks(message):
        comm.Recv(chunk, source)
    return message


def _length(of: int = 0) -> Any:
    return np.array([of], dtype=np.uint64)


def _chunks(message: bytes | bytearray) -> list[memoryview]:
    view = memoryview(message)
    return [view[first : first + _CHUNK] for first in range(0, len(view), _CHUNK)]


def _joined(comm: Any, own: bytes) -> bytes | bytearray:
    """The sum of what all ranks have, along a binary tree."""
    # Of no fixed length, as reductions of MPI need it.
    total: bytes | bytearray = own
    step = 1
    while step < comm.size and comm.rank & step == 0:
        if comm.rank + step < comm.size:
            total = _core.shard_join([total, _receive(comm, comm.rank + step)])
        step *= 2
    if step < comm.size:
        _send(comm, comm.rank - step, total)
    length = _length(len(total))
    _complete(comm.Ibcast(length, 0).Test)
    if comm.rank != 0:
        total = bytearray(int(length[0]))
    for chunk in _chunks(total):
        comm.Bcast(chunk, 0)
    return total


def _part(folder: Path, shard: int, turn: str) -> Path:
    return folder / f"shard-{shard:05}-{turn}"


#: Names of files beside a checkpoint: those of shards, of a run and its turn, and those that were not written to their end.
_BESIDE = re.compile(r"shard-\d{5,}-(?P<turn>[0-9a-f]{32}-[01])(\.[0-9a-f]{32}\.part)?|checkpoint\.[0-9a-f]{32}\.part")


def _differing(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """What two fits differ in, in words."""
    found = [name for name in ours if name != "data" and theirs.get(name) != ours[name]]
    old, new = theirs["data"], ours["data"]
    if len(old) != len(new):
        found.append(f"the number of shards, {len(old)} and {len(new)}")
    elif old != new and sorted(old) == sorted(new):
        found.append("the order of the shards")
    elif old != new:
        first = next(n for n, (a, b) in enumerate(zip(old, new)) if a != b)
        found.append(f"the data of shard {first}")
    return found


class _Watched:
    """What looks at a fit on the first rank; its answer goes to all of them."""

    def __init__(self, comm: Any, watch: Any) -> None:
        self.comm, self.watch = comm, watch

    def __call__(self, start: int, iteration: int, objective: float) -> bool:
        def own() -> bool:
            return self.watch is not None and self.watch(start, iteration, objective)

        return bool(_together(self.comm, own)[0])

    def close(self, **ended: Any) -> None:
        if self.watch is not None:
            self.watch.close(**ended)


class _Ranks(Engine):
    def __init__(self, comm: Any, estimator: Any, X: Any, checkpoint: str | Path | None, save_every: int, stepwise: tuple[int, int] | None) -> None:
        self.comm, self.save_every = comm, save_every
        self.folder = None if checkpoint is None else Path(checkpoint)
        self.warns = comm.rank == 0
        #: The files of the last state, and those of one that is being written.
        self.saved: str | None = None
        self.unsaved: list[Path] = []

        def own() -> tuple[int, int | None]:
            check(estimator, stepwise)
            sources, along = sourced(X)
            super(_Ranks, self).__init__(len(sources))
            if comm.size > self.count:
                raise ValueError(f"{comm.size} ranks for {self.count} shards: expected at least one shard for each")
            ends = [self.count * rank // comm.size for rank in range(comm.size + 1)]
            self.first, self.end = ends[comm.rank : comm.rank + 2]
            how = reading(estimator, along)
            # Only a checkpoint asks whether the data are the same.
            hashed = self.folder is not None
            self.shards = opened(sources[self.first : self.end], self.first, how, hashed=hashed)
            return self.count, along

        views = _together(comm, own)
        for rank, (count, _) in enumerate(views):
            if count != views[0][0]:
                raise _Told(ValueError(f"X has {views[0][0]} shards on rank 0 of MPI and {count} on rank {rank}"))
        self.along = views[0][1]
        #: Of the names of files: those of another run are others.
        self.run, self.turn = comm.bcast(uuid.uuid4().hex), 0

    def drop(self) -> None:
        """Removes what was not saved to its end."""
        for path in self.unsaved:
            path.unlink(missing_ok=True)

    def survey(self, sheet: Sheet) -> tuple[bytes, list[int], bool]:
        found = _together(self.comm, partial(surveyed, sheet, self.shards, self.first, self.count))
        partials, sizes, single = zip(*found)
        if len(set(single)) > 1:
            raise _Told(ValueError("shards: expected all in one precision"))
        return _core.shard_join(partials, True), [size for of in sizes for size in of], single[0]

    def resumed(self, sheet: Sheet, max_iter: int) -> bytes | None:
        if self.folder is None:
            return None
        folder = self.folder
        digests = self.comm.allgather([shard.digest for shard in self.shards])
        self.known["data"] = [digest for of in digests for digest in of]
        found = _together(self.comm, partial(self._resumed, folder, max_iter))[0]
        if found is None:
            return None
        self.saved, state = found

        def own() -> list[bytes]:
            return [_part(folder, n, found[0]).read_bytes() for n in range(self.first, self.end)]

        self.sheet, self.state = sheet, (b"", self._own(own))
        return state

    def _own(self, of: Callable[[], Any]) -> Any:
        """What ``of`` answers on this rank, if it does on all of them."""
        answers: list[Any] = []
        _together(self.comm, lambda: answers.append(of()))
        return answers[0]

    def _resumed(self, folder: Path, max_iter: int) -> tuple[str, bytes] | None:
        """What the checkpoint has, on the first rank, which also removes what a run has left that was killed."""
        if self.comm.rank != 0:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        path, turn, state = folder / "checkpoint", None, b""
        if path.exists():
            about, parts = unsealed(path)
            try:
                (state,) = parts
                turn, iteration = str(about["turn"]), int(about["iteration"])
                differing = _differing(about["known"], self.known)
            except Exception as error:
                raise ValueError(f"{path} is not a checkpoint of plcakit.mpi: {error!r}") from error
            if differing:
                raise ValueError(f"{path} is of another fit, which differs in {', '.join(differing)}: expected the same fit, or another folder")
            if iteration > max_iter:
                raise ValueError(f"{path} is of iteration {iteration}, beyond max_iter={max_iter}")
        for other in folder.iterdir():
            name = _BESIDE.fullmatch(other.name)
            if name is not None and (turn is None or name["turn"] != turn or other.suffix == ".part"):
                other.unlink(missing_ok=True)
        return None if turn is None else (turn, state)

    def saves(self) -> Any:
        return None if self.folder is None else (max(1, self.save_every), partial(self._save, self.folder))

    def _save(self, folder: Path, iteration: int, state: bytes) -> None:
        # Two sets of files: the last state stays until this one is whole.
        old, new = self.saved, f"{self.run}-{self.turn}"
        own = range(self.first, self.end)
        self.unsaved = [_part(folder, shard, new) for shard in own]

        def parts() -> None:
            for path, local in zip(self.unsaved, self.state[1]):
                write(path, local)

        def whole() -> None:
            if self.comm.rank == 0:
                about = {"known": self.known, "turn": new, "iteration": iteration}
                write(folder / "checkpoint", sealed(about, [state]))

        _together(self.comm, parts)
        _together(self.comm, whole)
        self.saved, self.turn, self.unsaved = new, 1 - self.turn, []
        if old is not None:
            for shard in own:
                _part(folder, shard, old).unlink(missing_ok=True)

    def agreed(self, seed: int) -> int:
        return int(self.comm.bcast(seed))

    def watch(self, estimator: Any) -> Any:
        own = estimator._watch() if self.comm.rank == 0 else None
        return _Watched(self.comm, own) if self.comm.bcast(own is not None) else None

    def begin(self, sheet: Sheet, firsts: Sequence[int], shared: bytes, seed: int) -> None:
        self.sheet = sheet
        places = [(n, self.count, firsts[n]) for n in range(self.first, self.end)]
        self.state = begun(sheet, self.shards, places, shared, seed)

    def __call__(self, shared: bytes, counts: bool, value: bool) -> bytes | bytearray:
        state = stepped(self.sheet, self.shards, self.state, shared, counts, value)
        if counts:
            self.state = state
        total = _joined(self.comm, state[0])
        self._count(len(state[0]), len(total))
        return total

    def finish(self, shared: bytes) -> tuple[list[bytes], list[float]]:
        own = finished(self.sheet, self.shards, self.state, shared)
        # Before every rank takes what belongs to all samples: the data have been read for the last time.
        self.shards, self.state = [], (b"", [])
        found = self.comm.allgather(own)
        return [local for of, _ in found for local in of], [scale for _, of in found for scale in of]
