"""Components that many fits of one model agree on."""

from __future__ import annotations

import json
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from . import _core
from ._base import COMMON, SOLVERS
from ._data import describe, has_mass, seed_of, threads, unpacked
from ._docs import described
from ._hints import complete, doubt, hinted, mended
from ._long import LONG, Long
from ._types import Array, Data, RandomState
from ._warn import warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

#: The block of every model whose columns are compared.
_BLOCKS = {"nmf-kl": "w", "plsa": "basis", "plca": "factor_0", "pntf": "factor_0", "ntf-l2": "factor_0"}
#: Gap and change of the divergence per count at which usages are known: those of the command.
_USAGE = {"residual_tol": 1e-12, "tol": 1e-16}


@described
class ConsensusNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Consensus of many fits of a non-negative factorization, for one or several numbers of components.

    Every fit is made from `n_runs` random starts. The components of all of them, spectra :math:`s_i`, are divided by their length; those far from
    their neighbours are left out; the others are clustered by k-means, and the consensus is the median of every cluster, divided by its sum.

    .. math:: l_i = s_i / \lVert s_i \rVert, \qquad
        \mathrm{density}_i = \frac{1}{b} \sum_{j \in N_i} \lVert l_i - l_j \rVert < \mathrm{threshold}, \qquad
        b = \lfloor \mathrm{neighbourhood} \cdot n / K \rfloor

    :math:`N_i` are the :math:`b + 1` spectra next to :math:`l_i`, itself included, and :math:`n = K \cdot` `n_runs` their number. A number of components is
    stable where the clusters are apart, which the mean silhouette says, and good where little of the data is left over. Definitions are those of
    cNMF; from one seed the numbers are those of the command ``plca consensus`` on the transposed data.

    Parameters
    ----------
    n_components : int or sequence of int, default=10
        The number of components, or those that are compared: the most stable one is taken.
    n_runs : int, default=100
        Fits for every number of components, at least as many as give one neighbour: 4 where `neighbourhood` is 0.3.
    model : {"nmf-kl", "plsa", "plca", "pntf", "ntf-l2"}, default="nmf-kl"
        What is fitted, as the command calls it.
    threshold : float, default=0.5
        Spectra of a smaller local density are kept.
    neighbourhood : float, default=0.3
        Neighbours of a spectrum, as a share of `n_runs`.
    solver : {"auto", "fast", "em", "squarem", "parabolic", "momentum"}, default="auto"
        How every fit is made.
    %(tol)s
    max_iter : int, default=1000
        The most iterations of a fit.
    random_state : int, RandomState, Generator or None, default=None
        A whole number is the seed of the command. Run ``r`` is its stream ``r``, for every number of components.
    n_jobs : int or None, default=None
        Threads, each with a fit of its own. ``None``: one, or as many as :func:`joblib.parallel_config` says. Negative, as in joblib: -1 is all
        processors. Results do not depend on it.

    Attributes
    ----------
    ranks_ : ndarray of shape (n_ranks,)
        The numbers of components that were compared.
    stability_ : ndarray of shape (n_ranks,)
        The mean silhouette of all spectra, none left out; NaN for one component.
    prediction_error_ : ndarray of shape (n_ranks,)
        The squared error of the data under the consensus of all spectra.
    n_components_ : int
        The most stable number of components, of equal ones the smallest.
    components_ : ndarray of shape (n_components, n_features)
        The consensus, every row sums to 1.
    silhouette_ : float
        The mean silhouette of the spectra that are kept.
    local_density_ : ndarray of shape (n_components * n_runs,)
        How far every spectrum is from its neighbours.
    kept_ : ndarray of bool of shape (n_components * n_runs,)
        Which spectra are kept.
    labels_ : ndarray of int of shape (n_kept,)
        The clusters of the spectra that are kept.
    spectra_ : ndarray of shape (n_components * n_runs, n_features)
        The components of all fits, fit after fit.
    objectives_ : ndarray of shape (n_runs,)
        The objective of every fit.
    n_iter_ : int
        The most iterations that a fit made.
    %(features)s

    References
    ----------
    D. Kotliar et al., "Identifying gene expression programs of cell-type identity and cellular activity with single-cell RNA-Seq",
    eLife 2019.

    Examples
    --------
    >>> from plcakit import ConsensusNMF
    >>> from plcakit.datasets import make_corpus
    >>> counts = make_corpus().counts
    >>> model = ConsensusNMF([3, 4], n_runs=10, random_state=0).fit(counts)
    >>> model.stability_.shape, model.components_.shape[0] == model.n_components_
    ((2,), True)
    >>> model.transform(counts).shape == (counts.shape[0], model.n_components_)
    True
    """

    n_components: int | Sequence[int]
    n_runs: int
    model: str
    threshold: float
    neighbourhood: float
    solver: str
    tol: float
    max_iter: int
    random_state: RandomState
    n_jobs: int | None

    ranks_: Array
    stability_: Array
    prediction_error_: Array
    n_components_: int
    components_: Array
    silhouette_: float
    local_density_: Array
    kept_: Array
    labels_: Array
    spectra_: Array
    objectives_: Array
    n_iter_: int
    n_features_in_: int
    feature_names_in_: Array

    _parameter_constraints: dict[str, Any] = {
        **{name: COMMON[name] for name in ("tol", "max_iter", "random_state", "n_jobs")},
        "n_components": [*COMMON["n_components"], "array-like"],
        "n_runs": [Interval(numbers.Integral, 1, 2**32 - 1, closed="both")],
        "model": [StrOptions(set(_BLOCKS))],
        "threshold": [Interval(numbers.Real, 0, None, closed="neither")],
        "neighbourhood": [Interval(numbers.Real, 0, None, closed="neither")],
        "solver": [StrOptions(SOLVERS)],
    }

    @hinted
    def __init__(
        self,
        n_components: int | Sequence[int] = 10,
        *,
        n_runs: int = 100,
        model: str = "nmf-kl",
        threshold: float = 0.5,
        neighbourhood: float = 0.3,
        solver: str = "auto",
        tol: float = 1e-7,
        max_iter: int = 1000,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_runs = n_runs
        self.model = model
        self.threshold = threshold
        self.neighbourhood = neighbourhood
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _check(self, X: Data, reset: bool, whom: str) -> Any:
        if isinstance(X, Long):
            raise TypeError(LONG)
        if np.ma.is_masked(X):
            raise ValueError(f"X has masked cells, and {complete('ConsensusNMF')}")
        given = X
        with mended(given, "ConsensusNMF", False):
            X = validate_data(self, unpacked(X), reset=reset, accept_sparse=("csr", "csc"), dtype=np.float64)
        if reset:
            doubt(given, X, getattr(self, "feature_names_in_", ()))
        check_non_negative(X, f"ConsensusNMF ({whom})")
        return X

    def _ranks(self) -> list[int]:
        ranks = np.atleast_1d(np.asarray(self.n_components))
        if ranks.ndim != 1 or ranks.size == 0 or ranks.dtype.kind not in "iu" or (ranks < 1).any():
            raise ValueError(f"n_components is {self.n_components!r}, expected whole numbers >= 1")
        return [int(k) for k in ranks]

    def fit(self, X: Data, y: object = None) -> Self:
        """Fit the model from many starts, and find what the fits agree on.

        Parameters
        ----------
        %(X)s
        %(y)s

        %(fitted)s
        """
        self._validate_params()
        ranks = self._ranks()
        if int(self.neighbourhood * self.n_runs) < 1:
            least = int(np.ceil(1 / self.neighbourhood))
            raise ValueError(f"n_runs is {self.n_runs}, with neighbourhood {self.neighbourhood} it must be at least {least}")
        X = self._check(X, True, "fit")
        seed, many = seed_of(self.random_state), threads(self.n_jobs)
        # The samples of the models lie in columns.
        data = describe(X, transpose=True)
        plan = {
            "options": {},
            "start": {},
            "seed": seed,
            "starts": int(self.n_runs),
            "init": "random",
            "likelihood": False,
            "solver": self._solver(),
            "stop": {"tol": float(self.tol), "max_iter": int(self.max_iter)},
            "threads": many,
        }
        stability, errors = np.full(len(ranks), np.nan), np.empty(len(ranks))
        best: tuple[float, int] | None = None
        for at, k in enumerate(ranks):
            swept = _core.sweep(self.model, data, {**plan, "components": k}, _BLOCKS[self.model])
            how = {
                "components": k,
                "threshold": float(self.threshold),
                "neighbourhood": float(self.neighbourhood),
                "seed": seed,
                "threads": many,
            }
            found = _core.consensus(swept["spectra"], how)
            whole = found["all"]
            if whole["silhouette"] is not None:
                stability[at] = whole["silhouette"]
            errors[at] = self._squared_error(X, whole["components"])
            # One component has no silhouette: it is taken where nothing else is.
            rank = (-np.nan_to_num(stability[at], nan=-np.inf), k)
            if best is None or rank < best:
                best = rank
                self._keep(found, swept)
        self.ranks_ = np.array(ranks)
        self.stability_ = stability
        self.prediction_error_ = errors
        return self

    def _solver(self) -> str:
        # As of the command: models that do not separate have plain iterations.
        return "em" if self.solver == "auto" and self.model in ("pntf", "ntf-l2") else self.solver

    def _keep(self, found: dict[str, Any], swept: dict[str, Any]) -> None:
        filtered = found["filtered"]
        self.components_ = filtered["components"]
        self.n_components_ = len(self.components_)
        silhouette = filtered["silhouette"]
        self.silhouette_ = float("nan") if silhouette is None else silhouette
        self.labels_ = filtered["labels"]
        self.local_density_ = found["local_density"]
        self.kept_ = found["kept"]
        self.spectra_ = swept["spectra"]
        self.objectives_ = swept["objectives"]
        self.n_iter_ = int(swept["iterations"].max())

    def _usage(self, X: Data, components: Array, model: str, stop: dict[str, float]) -> dict[str, Any]:
        """What the rows of `X` are made of, under components."""
        anything = np.ones((1, len(components)))
        if model == "nmf-kl":
            blocks = {"w": anything, "h": components}
        else:
            blocks = {"factor_0": anything, "factor_1": np.ascontiguousarray(components.T)}
        metadata = json.dumps({"model": model, "blocks": list(blocks)})
        how = {"components": len(components), "options": {}, "along": 0, "each": False}
        how = {**how, "solver": "auto", "stop": stop, "threads": threads(self.n_jobs)}
        return _core.transform(model, blocks, metadata, describe(X), how)

    def _squared_error(self, X: Data, components: Array) -> float:
        return float(self._usage(X, components, "ntf-l2", {})["objective"])

    def transform(self, X: Data, *, return_gap: bool = False) -> Any:
        """The usages of the components of the consensus with the least Kullback-Leibler divergence from the data.

        Parameters
        ----------
        %(X)s
        return_gap : bool, default=False
            Whether to return, too, how far the answer is from the best one at most.

        Returns
        -------
        W : ndarray of shape (n_samples, n_components)
            What every sample is made of.
        gap : ndarray of shape (n_samples,)
            The certificates: the divergence of a sample is at most its sum times the gap above the least. Only with ``return_gap``.
        """
        check_is_fitted(self)
        X = self._check(X, False, "transform")
        if not has_mass(X, None, None):
            W, gap = np.zeros((X.shape[0], self.n_components_)), np.zeros(X.shape[0])
            return (W, gap) if return_gap else W
        found = self._usage(X, self.components_, "nmf-kl", _USAGE)
        if found["dropped"] > 0:
            warn(f"data with the sum {found['dropped']:g} were left out: no component of the consensus is positive there")
        W = found["arrays"]["w"]
        W[found["empty"]] = 0.0
        return (W, found["gap"]) if return_gap else W

    def usage(self, X: Data) -> Array:
        """The usages of the components of the consensus with the least squared error.

        Parameters
        ----------
        %(X)s

        Returns
        -------
        W : ndarray of shape (n_samples, n_components)
            What every sample is made of.
        """
        check_is_fitted(self)
        X = self._check(X, False, "usage")
        W: Array = self._usage(X, self.components_, "ntf-l2", {})["arrays"]["factor_0"]
        return W
