"""Fits of data in shards on the ranks of MPI, with the bits of one process.

Every rank holds a range of the shards and makes the same run: sums are joined by all of them, and the M-step of equal bits has equal bits.
"""

from __future__ import annotations

import pickle
import traceback
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import _core
from ._shards import Engine, Sheet, begun, finished, load, parts, stepped, surveyed, transposes
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
    estimator: Any, X: Any, *, comm: Any = None, checkpoint: str | Path | None = None, save_every: int = 10
) -> Any:
    """Fit an estimator to data in shards, on all ranks of a communicator; every rank calls this, and gets the same estimator.

    Starts, iterations and the end are those of one process over the same shards, to the bit: :func:`plcakit.shards.fit`. A rank that fails ends
    all of them.

    Parameters
    ----------
    estimator : PLSA, PLCA or NMF
        What is fitted, by the solver ``"em"``. ``n_jobs`` is the number of threads of a rank. It is changed in place.
    X : sequence or path-like
        The data, samples first, as of :func:`plcakit.shards.fit`. An item of a sequence may be a function that returns a shard: a rank calls those
        of its own shards alone.
    comm : mpi4py.MPI.Comm, default=None
        The ranks; ``None``: all.
    checkpoint : path-like, default=None
        A folder that all ranks share, in which the state is kept. A fit of the same data and settings that was ended before its time goes on from there,
        with any number of ranks and the bits of one that was not; ``trace_`` then begins there.
    save_every : int, default=10
        After how many iterations the state is saved.

    Returns
    -------
    estimator : object
        The estimator itself. ``traffic_`` has the bytes of statistics that this rank gave (``up``) and of sums that it took (``down``), and the number of
        passes.

    Examples
    --------
    A script for ``mpirun -n 16 python``:

    >>> from plcakit import PLSA
    >>> from plcakit.mpi import fit
    >>> topics = fit(PLSA(20, random_state=0, n_jobs=1), "counts.shards")        # doctest: +SKIP
    """
    comm = _world() if comm is None else comm
    sources, along = parts(X) if isinstance(X, (str, Path)) else (X, None)
    if not isinstance(sources, Sequence):
        raise ValueError(f"X is of {type(X).__name__}: expected a sequence of shards or a folder of them")
    how = (estimator.missing, transposes(estimator, along))
    try:
        return _fit(estimator, _Ranks(comm, sources, how, checkpoint, save_every), along)
    except BaseException:
        if comm.size == 1:
            raise
        # The others would wait for ever.
        traceback.print_exc()
        comm.Abort(1)
        raise


def _joined(left: bytes, right: bytes) -> bytes:
    return _core.shard_join([left, right])


def _part(folder: Path, shard: int, turn: str) -> Path:
    return folder / f"shard-{shard:05}-{turn}"


class _Ranks(Engine):
    def __init__(
        self,
        comm: Any,
        sources: Sequence[Any],
        how: tuple[str | None, bool],
        checkpoint: str | Path | None,
        save_every: int,
    ) -> None:
        super().__init__(len(sources))
        if comm.size > self.count:
            raise ValueError(f"{comm.size} ranks for {self.count} shards: expected one shard for each at least")
        self.comm, self.save_every = comm, save_every
        self.folder = None if checkpoint is None else Path(checkpoint)
        self.saved: str | None = None
        ends = [self.count * rank // comm.size for rank in range(comm.size + 1)]
        self.first, self.end = ends[comm.rank : comm.rank + 2]
        own = sources[self.first : self.end]
        self.shards = [load(source() if callable(source) else source, *how) for source in own]

    def survey(self, sheet: Sheet) -> tuple[bytes, list[int], bool]:
        found = self.comm.allgather(surveyed(sheet, self.shards, self.first, self.count))
        partials, sizes, single = zip(*found)
        if len(set(single)) > 1:
            raise ValueError("shards: expected all in one precision")
        return _core.shard_join(partials, True), [size for of in sizes for size in of], single[0]

    def resumed(self, sheet: Sheet) -> bytes | None:
        if self.folder is None:
            return None
        found = None
        if self.comm.rank == 0:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / "checkpoint"
            if path.exists():
                found = pickle.loads(path.read_bytes())
                if found[0] != self.key:
                    raise ValueError(f"{path} is of other data, settings or seed")
        found = self.comm.bcast(found)
        if found is None:
            return None
        _, self.saved, state = found
        self.sheet = sheet
        own = range(self.first, self.end)
        self.state = (b"", [_part(self.folder, n, self.saved).read_bytes() for n in own])
        return state

    def saves(self) -> Any:
        return None if self.folder is None else (max(1, self.save_every), partial(self._save, self.folder))

    def _save(self, folder: Path, state: bytes) -> None:
        turn = self.comm.bcast(uuid.uuid4().hex)
        for shard, local in zip(range(self.first, self.end), self.state[1]):
            _part(folder, shard, turn).write_bytes(local)
        self.comm.barrier()
        if self.comm.rank == 0:
            # Last, and whole or not at all.
            part = folder / "checkpoint.part"
            part.write_bytes(pickle.dumps((self.key, turn, state)))
            part.replace(folder / "checkpoint")
        self.comm.barrier()
        if self.saved is not None:
            for shard in range(self.first, self.end):
                _part(folder, shard, self.saved).unlink(missing_ok=True)
        self.saved = turn

    def agreed(self, seed: int) -> int:
        return int(self.comm.bcast(seed))

    def begin(self, sheet: Sheet, firsts: Sequence[int], shared: bytes, seed: int, stream: int) -> None:
        self.sheet = sheet
        places = [(n, self.count, firsts[n]) for n in range(self.first, self.end)]
        self.state = begun(sheet, self.shards, places, shared, seed, stream)

    def __call__(self, shared: bytes, counts: bool, value: bool) -> bytes:
        state = stepped(self.sheet, self.shards, self.state, shared, counts, value)
        if counts:
            self.state = state
        total = self.comm.allreduce(state[0], op=_joined)
        self.traffic["passes"] += 1
        self.traffic["up"] += len(state[0])
        self.traffic["down"] += len(total)
        return total

    def finish(self, shared: bytes) -> tuple[list[bytes], list[float]]:
        own = finished(self.sheet, self.shards, self.state, shared)
        # Before every rank takes what belongs to all samples: the data have been read for the last time.
        self.shards, self.state = [], (b"", [])
        found = self.comm.allgather(own)
        return [local for of, _ in found for local in of], [scale for _, of in found for scale in of]
