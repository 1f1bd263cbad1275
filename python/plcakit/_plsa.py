"""Probabilistic latent semantic analysis."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from ._base import COMMON, SOLVERS, Factorization
from ._types import Array, Blocks, Callback, Data, Freeze, Mask, Priors, RandomState, Shapes

if TYPE_CHECKING:
    from typing_extensions import Self


class PLSA(Factorization):
    r"""Probabilistic latent semantic analysis: every sample is a mixture of a few distributions over the features.

    .. math:: P(x \mid y) = \sum_z P(x \mid z) \, P(z \mid y), \qquad \max \sum_{y,x} X_{yx} \ln P(x \mid y)

    Samples are rows, so that a file of the model is that of ``plca fit plsa --given 0``.

    Parameters
    ----------
    n_components : int, default=10
        The number of components.
    init : {"random", "custom"} or None, default=None
        The start: drawn, as by the command, where ``start`` of :meth:`fit` gives no block.
    solver : {"auto", "fast", "em", "squarem", "parabolic", "momentum"}, default="auto"
        How the likelihood is maximised.
    temper : float, default=1.0
        The power in (0, 1] that both blocks are raised to in the E-step.
    tol : float, default=1e-7
        The change of the objective per count and iteration that ends a fit; 0: all iterations are made.
    max_iter : int, default=1000
        The most iterations.
    transform_tol : float, default=1e-3
        The gap that ends :meth:`transform`: what the log-likelihood may still gain at most, per count. 0: all iterations are made.
    random_state : int, RandomState, Generator or None, default=None
        A whole number is the seed of the command. Start ``r`` of `n_init` is its stream ``r``.
    n_init : int, default=1
        From how many starts the fit is made; the best end is kept.
    n_jobs : int or None, default=None
        Threads. ``None``: all processors that this process may use. Results do not depend on it.
    warm_start : bool, default=False
        Whether a fit starts where the last one ended.
    missing : {"nan", "unstored"} or None, default=None
        What hides a cell: NaN of a dense array, or not being stored in a sparse one.
    prior : dict or None, default=None
        Priors of ``"basis"`` and ``"mixture"``: texts of the command such as ``"entropic:2"``, or objects of :mod:`plcakit.priors`.
    freeze : str, sequence of str or dict, default=()
        Blocks that keep the values of the start, or with a dict the components of a block that do.
    callback : callable or None, default=None
        Called as ``callback(iteration, objective)`` at every check; something true ends the fit.
    verbose : int, default=0
        1: a bar of tqdm where it is installed, else a line for every check. More: a line for every check.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        :math:`P(x \mid z)`; rows sum to 1.
    weights_ : ndarray of shape (n_components,)
        :math:`P(z)`.
    n_components_ : int
        The number of components.
    n_iter_ : int
        Iterations made.
    objective_ : float
        The log-likelihood, or the log-posterior.
    converged_ : bool
        Whether the stop rule ended the fit.
    stop_reason_ : str
        Why it ended.
    trace_ : ndarray of records ``iteration``, ``objective``
        The objective at every check.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where `X` has them.

    References
    ----------
    T. Hofmann, "Unsupervised learning by probabilistic latent semantic analysis", Machine Learning 42, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import PLSA
    >>> X = np.array([[4.0, 4.0, 0.0], [0.0, 0.0, 6.0]])
    >>> topics = PLSA(n_components=2, random_state=0).fit_transform(X)
    >>> topics.round(3).max(axis=1)
    array([1., 1.])
    """

    components_: Array
    weights_: Array

    _parameter_constraints = {
        **COMMON,
        "transform_tol": [Interval(numbers.Real, 0, None, closed="left")],
        "solver": [StrOptions(SOLVERS)],
        "temper": [Interval(numbers.Real, 0, 1, closed="right")],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        init: str | None = None,
        solver: str = "auto",
        temper: float = 1.0,
        tol: float = 1e-7,
        max_iter: int = 1000,
        transform_tol: float = 1e-3,
        random_state: RandomState = None,
        n_init: int = 1,
        n_jobs: int | None = None,
        warm_start: bool = False,
        missing: str | None = None,
        prior: Priors = None,
        freeze: Freeze = (),
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.solver = solver
        self.temper = temper
        self.tol = tol
        self.max_iter = max_iter
        self.transform_tol = transform_tol
        self.random_state = random_state
        self.n_init = n_init
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.missing = missing
        self.prior = prior
        self.freeze = freeze
        self.callback = callback
        self.verbose = verbose

    def _model(self) -> str:
        return "plsa"

    def _solver(self) -> str:
        # As of the command: tempering is of EM.
        return "em" if self.temper != 1 and self.solver == "auto" else self.solver

    def _options(self) -> dict[str, Any]:
        return {"given": "rows", "temper": float(self.temper)}

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        return {"basis": (shape[1], k), "mixture": (k, shape[0])}

    def _show(self, blocks: Blocks) -> None:
        self.components_ = np.ascontiguousarray(blocks["basis"].T)
        self.weights_ = blocks["mixture"] @ blocks["marginal"]

    def _answer(self, blocks: Blocks) -> Array:
        return np.ascontiguousarray(blocks["mixture"].T)

    def _answer_empty(self, samples: int, dtype: Any) -> Array:
        return np.tile(self.weights_.astype(dtype), (samples, 1))

    def _count(self, blocks: Blocks) -> int:
        return int(blocks["basis"].shape[1])

    def _adopt(self, blocks: Blocks, metadata: dict[str, Any]) -> tuple[Blocks, dict[str, Any]]:
        # The command's default has the samples in columns: the same blocks, of the other dimension.
        facts = metadata.setdefault("facts", {})
        given = facts.get("given", [(metadata.get("settings") or {}).get("given", 1)])
        if list(given) != [0]:
            facts["given"] = [0.0]
            metadata["data"]["shape"] = metadata["data"]["shape"][::-1]
        return blocks, metadata

    def _file_settings(self) -> dict[str, Any]:
        return {"given": 0, "temper": self.temper}

    def _after_batch(self, known: Blocks, batch: Blocks) -> Blocks:
        return {**batch, "basis": known["factor_0"]}

    def partial_fit(self, X: Data, y: object = None, *, observed: Mask = None) -> Self:
        """Learn from one more batch of samples; what the batches before have taught counts less and less.

        A call of :meth:`fit` begins anew.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The batch.
        y : Ignored
            Not used, present by convention.
        observed : array-like of bool of the shape of X, default=None
            False where a cell is hidden.

        Returns
        -------
        self : object
            The estimator. `objective_` is the log-likelihood of the batch under the components that it met, `n_iter_` the number of
            batches, `trace_` has one entry for each.
        """
        self._partial_fit(X, observed)
        return self

    def inverse_transform(self, X: Data) -> Array:
        r"""The distributions that mixtures stand for, :math:`P(x \mid y)`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Mixtures.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            Distributions; those of a sample's counts are its sum times them.
        """
        check_is_fitted(self)
        X = check_array(X, dtype=[np.float64, np.float32])
        return X @ self.components_

    def perplexity(self, X: Data, y: object = None, *, observed: Mask = None) -> float:
        """The perplexity of new data, the exponential of minus the log-likelihood per count; smaller is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.
        y : Ignored
            Not used, present by convention.
        observed : array-like of bool of the shape of X, default=None
            False where a cell is hidden.

        Returns
        -------
        perplexity : float
            Its value.
        """
        return float(np.exp(-self.score(X, observed=observed)))
