"""Fits of data in shards on the ranks of MPI, bit-identical with those of one process.

Every rank holds a range of the shards and makes the same run: sums are joined by all of them, and the M-step of equal bits has equal bits.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ._shards import Ranks, Sheet, check, opened, reading, sourced
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
        engine = _Ranks(comm, estimator, X, checkpoint, save_every)
        return _fit(estimator, engine, engine.along)
    except _Told as told:
        error = told.error
    except BaseException:
        if comm.size == 1 or engine is not None and engine.told:
            raise
        # The others would wait for ever.
        traceback.print_exc()
        comm.Abort(1)
        raise
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


def _length(of: int = 0) -> Any:
    return np.array([of], dtype=np.uint64)


def _chunks(message: Any) -> list[memoryview]:
    view = memoryview(message)
    return [view[first : first + _CHUNK] for first in range(0, len(view), _CHUNK)]


class _Carrier:
    """Messages between ranks."""

    def __init__(self, comm: Any) -> None:
        self.comm, self.rank, self.count = comm, comm.rank, comm.size

    def send(self, to: int, message: bytes) -> None:
        # Complete when the other rank has it, and so is ready for the rest.
        _complete(self.comm.Issend(_length(len(message)), to).Test)
        for chunk in _chunks(message):
            self.comm.Send(chunk, to)

    def receive(self, source: int) -> bytearray:
        length = _length()
        _complete(self.comm.Irecv(length, source).Test)
        message = bytearray(int(length[0]))
        for chunk in _chunks(message):
            self.comm.Recv(chunk, source)
        return message

    def broadcast(self, own: bytes) -> bytes | bytearray:
        length = _length(len(own))
        _complete(self.comm.Ibcast(length, 0).Test)
        message = own if self.rank == 0 else bytearray(int(length[0]))
        for chunk in _chunks(message):
            self.comm.Bcast(chunk, 0)
        return message

    def abort(self) -> None:
        self.comm.Abort(1)


class _Ranks(Ranks):
    #: Whether an error is one of all ranks from here on.
    told = False

    def __init__(self, comm: Any, estimator: Any, X: Any, checkpoint: str | Path | None, save_every: int) -> None:
        self.comm, self.checkpoint, self.save_every = comm, checkpoint, save_every
        self.warns, self.carries = comm.rank == 0, _Carrier(comm)

        def own() -> tuple[int, int | None]:
            check(estimator)
            if estimator.time_limit is not None:
                raise ValueError("time_limit cannot be used with ranks of MPI, whose clocks differ")
            sources, along = sourced(X)
            many = len(sources)
            if comm.size > many > 0:
                raise ValueError(f"{comm.size} ranks for {many} shards: expected at least one shard for each")
            first, end = (many * rank // comm.size for rank in (comm.rank, comm.rank + 1))
            # Only a checkpoint asks whether the data are the same.
            shards = opened(sources[first:end], first, reading(estimator, along), hashed=checkpoint is not None)
            super(_Ranks, self).__init__(shards, first, many)
            return many, along

        views = _together(comm, own)
        for rank, (count, _) in enumerate(views):
            if count != views[0][0]:
                raise _Told(ValueError(f"X has {views[0][0]} shards on rank 0 of MPI and {count} on rank {rank}"))
        self.along = views[0][1]

    def survey(self, sheet: Sheet) -> list[tuple[bytes, list[int], bool]]:
        return [found for of in _together(self.comm, lambda: super(_Ranks, self).survey(sheet)) for found in of]

    def agreed(self, seed: int) -> int:
        return int(self.comm.bcast(seed))

    def watch(self, estimator: Any) -> Any:
        return estimator._watch() if self.comm.rank == 0 else None

    def fit(self, *arguments: Any) -> dict[str, Any]:
        self.told = True
        return super().fit(*arguments)

    def kept(self, known: dict[str, Any]) -> tuple[str, int, str] | None:
        if self.checkpoint is None:
            return None
        digests = self.comm.allgather([shard.digest for shard in self.shards])
        known["data"] = [digest for of in digests for digest in of]
        return str(self.checkpoint), max(1, self.save_every), json.dumps(known)
