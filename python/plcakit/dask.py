"""Fits of data in shards on a Dask cluster, bit-identical with those of one process.

The data are cut along their samples. What belongs to the samples of a shard stays with the worker that holds it; an iteration sends the model to
every worker, and statistics of its size back. Neither the number of workers nor a worker that is lost on the way changes a bit of the result.
"""

from __future__ import annotations

import asyncio
import io
import shutil
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._shards import Engine, Reading, Sheet, check, opened, reading, sourced, surveyed
from ._shards import fit as _fit

__all__ = ["fit"]


def _distributed() -> Any:
    try:
        from dask import distributed
    except ImportError as error:
        raise ImportError("plcakit.dask needs Dask: pip install 'plcakit[dask]'") from error
    return distributed


def fit(
    estimator: Any,
    X: Any,
    *,
    client: Any = None,
    ranges: int | None = None,
    folder: str | Path | None = None,
    save_every: int = 10,
    retries: int = 3,
    timeout: float = 300.0,
) -> Any:
    """Fit an estimator to data in shards, on the workers of a Dask cluster.

    The result is bit-identical to that of one process over the same shards, :func:`plcakit.shards.fit`.

    Parameters
    ----------
    estimator : PLSA, PLCA, NMF or SkellamSNMF
        What is fitted, by the solver ``"em"``, ``"squarem"`` or ``"fast"``. ``n_jobs`` is the number of threads of a task. It is changed in place.
    X : dask array or frame, sequence, or path-like
        The data, samples first. Chunks of samples of an array, and partitions of a frame, are the shards. Of a sequence, each item is one: an array or sparse matrix, a file
        ``.npz`` or ``.npy``, or a delayed object that becomes an array. A path is a folder that ``plca shard`` has made, one of such files, or a
        file of AnnData, ``.h5ad``, whose cells become 64 shards; every worker must be able to read it.
    client : dask.distributed.Client, default=None
        The cluster; ``None`` takes the current client.
    ranges : int, default=None
        Tasks of an iteration, each over a range of shards: one or two for a worker are enough. ``None``: 8, or one for every worker if there are more.
    folder : path-like, default=None
        A folder that all workers share, for what belongs to samples: written every ``save_every`` iterations, so that a lost worker costs no more than these.
        ``None``: the driver keeps it in memory.
    save_every : int, default=10
        After how many iterations the state is saved.
    retries : int, default=3
        How often the fit goes on from the saved state after Dask itself has given up a task.
    timeout : float, default=300.0
        Seconds to wait for an iteration. Then, without any worker left, the fit ends with a ``RuntimeError``; with workers that do nothing for twice as
        long, it goes on from the saved state; with a worker at work, it waits as long again.

    Returns
    -------
    estimator : object
        The estimator itself. ``traffic_`` has the bytes of an iteration for a range of shards, of its statistics (``up``) and of the model that it is
        sent (``down``), and the number of ``passes`` over the data. For K components and F features of the shared blocks both are about ``8 K F``;
        in single precision ``down`` is half of it.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> import dask.array as da
    >>> from plcakit import PLSA
    >>> from plcakit.datasets import make_corpus
    >>> from plcakit.dask import fit
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
    ...     counts = make_corpus().counts.toarray()
    ...     X = da.from_array(counts, chunks=(50, -1))
    ...     topics = fit(PLSA(3, random_state=0, max_iter=20, tol=0, n_jobs=1), X, client=client)
    >>> topics.components_.shape == (3, counts.shape[1])
    True
    """
    distributed = _distributed()
    client = distributed.get_client() if client is None else client
    check(estimator)
    sources, along = _sources(X)
    how = reading(estimator, along)
    engine = _Dask(client, sources, how, ranges, folder, save_every, retries, timeout)
    try:
        return _fit(estimator, engine, along)
    finally:
        engine.close()


def _sources(X: Any) -> tuple[list[Any], int | None]:
    if hasattr(X, "to_dask_array"):
        # Of a frame, whose parts are of lengths that have to be counted.
        X = X.to_dask_array(lengths=True)
        # A filter may have left partitions without samples.
        X = X.rechunk({0: tuple(many for many in X.chunks[0] if many)}) if 0 in X.chunks[0] else X
    if hasattr(X, "to_delayed"):
        if any(len(chunks) > 1 for chunks in X.chunks[1:]):
            X = X.rechunk({axis: -1 for axis in range(1, X.ndim)})
        return list(X.to_delayed().ravel()), None
    sources, along = sourced(X)
    return list(sources), along


def _loaded(how: Reading, first: int, *sources: Any) -> list[_core.Shard]:
    return opened(sources, first, how, sent=True)


def _carried(model: bytes) -> bytes:
    """The model of an iteration: a task that can be made again, where a scattered object could not."""
    return model


# What a worker does with a range of shards: the partial sum of their statistics, and what belongs to their samples.


def _begun(*arguments: Any) -> tuple[bytes, list[bytes]]:
    return b"", _core.shard_begin(*arguments)


def _passed(sheet: Sheet, shards: list[_core.Shard], state: tuple[bytes, list[bytes]], *rest: Any) -> tuple[bytes, list[bytes]]:
    return _core.shard_pass(sheet, shards, state[1], *rest)


def _finished(
    sheet: Sheet, shards: list[_core.Shard], state: tuple[bytes, list[bytes]], shared: bytes
) -> tuple[list[bytes], list[float]]:
    return _core.shard_finish(sheet, shards, state[1], shared)


def _partial(state: tuple[bytes, list[bytes]]) -> bytes:
    return state[0]


def _saved(state: tuple[bytes, list[bytes]], path: str | None) -> Any:
    """What belongs to the samples of a range, as what :func:`_restored` takes."""
    if path is None:
        return state[1]
    content = io.BytesIO()
    np.savez(content, *(np.frombuffer(part, dtype=np.uint8) for part in state[1]))
    _write(Path(path), content.getvalue())
    return path


def _write(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all."""
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _restored(saved: Any) -> tuple[bytes, list[bytes]]:
    if isinstance(saved, str):
        try:
            with np.load(saved, allow_pickle=False) as file:
                saved = [file[name].tobytes() for name in file.files]
        except (ValueError, AttributeError) as error:
            raise ValueError(f"{saved} is not what was saved of the shards: expected the file of this fit") from error
    return b"", saved


class _Dask(Engine):
    """Ranges of shards as tasks; the driver adds up and makes the M-step."""

    def __init__(
        self,
        client: Any,
        sources: Sequence[Any],
        how: Reading,
        ranges: int | None,
        folder: str | Path | None,
        save_every: int,
        retries: int,
        timeout: float,
    ) -> None:
        from dask.delayed import delayed

        super().__init__(len(sources))
        distributed = _distributed()
        #: What ends with a lost worker, and is worth another try.
        self.lost = (distributed.CancelledError, distributed.KilledWorker, OSError)
        self.client, self.retries, self.save_every, self.timeout = client, retries, save_every, timeout
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        many = min(self.count, max(8, workers) if ranges is None else max(1, ranges))
        self.ends = [self.count * (n + 1) // many for n in range(many)]
        self.firsts = [0, *self.ends[:-1]]
        # Keys of their own: Dask would take equal ones for the same task.
        self.run, self.tasks = uuid.uuid4().hex, 0
        # Of this fit alone. Workers may run in another folder.
        self.folder = None if folder is None else Path(folder).absolute() / f"plcakit-{self.run}"
        self.graphs = [delayed(_loaded, pure=False)(how, a, *sources[a:b]) for a, b in zip(self.firsts, self.ends)]
        self.data = client.compute(self.graphs)
        self.state: list[Any] = []

    def close(self) -> None:
        self.data, self.state = [], []
        if self.folder is not None:
            # With what workers have left that were lost while they wrote; one that writes later finds no folder.
            shutil.rmtree(self.folder, ignore_errors=True)

    def _submit(self, of: Any, *arguments: Any) -> Any:
        self.tasks += 1
        name = of.__name__.strip("_")
        return self.client.submit(of, *arguments, key=f"plcakit-{name}-{self.run}-{self.tasks}", pure=False)

    def _each(self, of: Any, *columns: Any) -> list[Any]:
        """A task for every range."""
        return [self._submit(of, *row) for row in zip(*columns)]

    def _same(self, what: Any) -> list[Any]:
        return [what] * len(self.ends)

    def _gathered(self, futures: list[Any]) -> list[Any]:
        """What tasks answer. Dask itself waits for ever for a worker, and for one that has forgotten its task."""
        # How many were done when nothing ran.
        idle: int | None = None
        while True:
            try:
                _distributed().wait(futures, timeout=self.timeout)
                # What was lost meanwhile is made again.
                ask = partial(self.client.gather, asynchronous=True)
                return self.client.sync(ask, futures, callback_timeout=self.timeout)
            except (TimeoutError, asyncio.TimeoutError):
                # One that a task itself has raised.
                if any(future.status == "error" for future in futures):
                    raise
                # The last answer came with the end of the time.
                if all(future.done() for future in futures):
                    continue
            running = self.client.processing()
            if not running:
                raise RuntimeError(f"plcakit.dask: the cluster has had no worker for {self.timeout:g} s")
            # Once is no sign: a scheduler that is busy has not given the tasks out yet.
            before, idle = idle, None
            if not any(running.values()):
                idle = sum(future.done() for future in futures)
                if idle == before:
                    raise OSError(f"plcakit.dask: no worker has done anything for {2 * self.timeout:g} s")

    def survey(self, sheet: Sheet) -> list[tuple[bytes, list[int], bool]]:
        return self._gathered(self._each(surveyed, self._same(sheet), self.data, self.firsts, self._same(self.count)))

    def fit(self, sheet: Sheet, survey: bytes, firsts: Sequence[int], course: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
        self.sheet, self.seed = sheet, course["seed"]
        places = [(n, self.count, first) for n, first in enumerate(firsts)]
        self.places = [places[a:b] for a, b in zip(self.firsts, self.ends)]
        return _core.shard_fit(sheet, survey, self, course)

    def begin(self, shared: bytes) -> None:
        self.start = shared
        self.saved: list[Any] | None = None
        #: Models since the state was saved, from which it follows.
        self.since: list[tuple[bytes, bool]] = []
        self._restart()

    def _restart(self) -> None:
        """What belongs to the samples, from where it was saved and the models since."""
        if self.saved is None:
            model = self._same(self._submit(_carried, self.start))
            self.state = self._each(_begun, self._same(self.sheet), self.data, self.places, model, self._same(self.seed))
        else:
            self.state = self._each(_restored, self.saved)
        for shared, value in self.since:
            self.state = self._step(shared, True, value)

    def _step(self, shared: bytes, counts: bool, value: bool) -> list[Any]:
        model = self._same(self._submit(_carried, shared))
        return self._each(
            _passed, self._same(self.sheet), self.data, self.state, model, self._same(counts), self._same(value)
        )

    def _insisting(self, of: Any) -> Any:
        """What ``of`` answers; where workers were lost for good, again from the last saved state."""
        for left in reversed(range(self.retries + 1)):
            try:
                return of()
            except self.lost:
                if not left:
                    raise
                self.client.retry([data for data in self.data if data.status == "error"])
                # Those that were cancelled are asked for anew.
                self.data = self.client.compute(self.graphs)
                self._restart()

    def __call__(self, shared: bytes, counts: bool, value: bool) -> list[bytes]:
        """A pass over all shards: the sums of their statistics."""

        def attempt() -> tuple[list[Any], list[bytes]]:
            state = self._step(shared, counts, value)
            return state, self._gathered(self._each(_partial, state))

        state, partials = self._insisting(attempt)
        if counts:
            self.state = state
            self.since.append((shared, value))
            if len(self.since) >= self.save_every:
                self._save()
        up, down = max(map(len, partials)), len(shared)
        # A pass that asks for the objective alone sends less than an iteration.
        before = self.traffic
        self.traffic = {"up": max(up, before["up"]), "down": max(down, before["down"]), "passes": before["passes"] + 1}
        return partials

    def _save(self) -> None:
        """Cuts the history of the state off, which would reach back to the start."""

        def attempt() -> list[Any]:
            paths: list[str | None] = [None] * len(self.ends)
            if self.folder is not None:
                self.folder.mkdir(parents=True, exist_ok=True)
                paths = [str(self.folder / f"{self.tasks}-{n}") for n in range(len(self.ends))]
            return self._gathered(self._each(_saved, self.state, paths))

        old = self.saved
        self.saved = self._insisting(attempt)
        self.since = []
        self._restart()
        for path in old or []:
            if isinstance(path, str):
                Path(path).unlink(missing_ok=True)

    def finish(self, shared: bytes) -> tuple[list[bytes], list[float]]:
        """What belongs to the samples of all shards in the end, and the scales of samples where cells are hidden."""

        def attempt() -> Any:
            model = self._same(self._submit(_carried, shared))
            return self._gathered(self._each(_finished, self._same(self.sheet), self.data, self.state, model))

        found = self._insisting(attempt)
        return [local for of, _ in found for local in of], [scale for _, of in found for scale in of]
