"""Fits of data in shards in one process: data that come in parts, or lie in a folder that ``plca shard`` has cut."""

from __future__ import annotations

from typing import Any

from ._shards import Ranks, check, opened, reading, sourced
from ._shards import fit as _fit

__all__ = ["fit"]


def fit(estimator: Any, X: Any) -> Any:
    """Fit an estimator to data in shards.

    Parameters
    ----------
    estimator : PLSA, PLCA, NMF or SkellamSNMF
        What is fitted, by the solver ``"em"``, ``"squarem"`` or ``"fast"``. It is changed in place.
    X : sequence or path-like
        The data, samples first: arrays, sparse matrices or files ``.npz`` and ``.npy``, each a shard; a folder of such files; one that
        ``plca shard`` has made, whose shards are read at every iteration; or a file of AnnData, ``.h5ad``, whose cells become 64 shards.

    Returns
    -------
    estimator : object
        The estimator itself. ``traffic_`` has the bytes of an iteration, as of :func:`plcakit.mpi.fit`.

    Examples
    --------
    >>> from plcakit import PLSA
    >>> from plcakit.datasets import make_corpus
    >>> from plcakit.shards import fit
    >>> counts = make_corpus().counts
    >>> topics = fit(PLSA(3, random_state=0, max_iter=20, tol=0), [counts[:40], counts[40:]])
    >>> topics.components_.shape == (3, counts.shape[1])
    True
    """
    check(estimator)
    sources, along = sourced(X)
    how = reading(estimator, along)
    shards = opened(sources, 0, how)
    return _fit(estimator, Ranks(shards, 0, len(shards)), along)
