"""Probabilistic latent component analysis."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from ._base import COMMON, SOLVERS, Factorization
from ._types import Array, Blocks, Callback, Data, Freeze, Mask, Priors, RandomState, Shapes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing_extensions import Self


class PLCA(Factorization):
    r"""Probabilistic latent component analysis of data of any order: a mixture of products of distributions.

    .. math:: P(x) = \sum_z P(z) \prod_j P(x_j \mid z), \qquad \max \sum_x X_x \ln P(x)

    Samples lie along the first dimension.

    Parameters
    ----------
    n_components : int, default=10
        The number of components.
    init : {"random", "custom"} or None, default=None
        The start: drawn, as by the command, where ``start`` of :meth:`fit` gives no block.
    solver : {"auto", "fast", "em", "squarem", "parabolic", "momentum"}, default="auto"
        How the likelihood is maximised.
    temper : float, default=1.0
        The power in (0, 1] that the factors are raised to in the E-step.
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
        Priors of ``"weights"``, ``"factor_0"``, ``"factor_1"``, …: texts of the command such as ``"entropic:2"``, or objects of
        :mod:`plcakit.priors`.
    freeze : str, sequence of str or dict, default=()
        Blocks that keep the values of the start, or with a dict the components of a block that do.
    callback : callable or None, default=None
        Called as ``callback(iteration, objective)`` at every check; something true ends the fit.
    verbose : int, default=0
        1: a bar of tqdm where it is installed, else a line for every check. More: a line for every check.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        :math:`P(x_1 \mid z)`; rows sum to 1. Of more dimensions, of shape ``(n_components, *X.shape[1:])``.
    weights_ : ndarray of shape (n_components,)
        :math:`P(z)`.
    factors_ : list of ndarray of shape (X.shape[j], n_components)
        :math:`P(x_j \mid z)` of every dimension; columns sum to 1.
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
    M. Shashanka, B. Raj and P. Smaragdis, "Probabilistic latent variable models as nonnegative factorizations", 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import PLCA
    >>> X = np.array([[4.0, 4.0, 0.0], [0.0, 0.0, 6.0]])
    >>> model = PLCA(n_components=2, random_state=0).fit(X)
    >>> sorted(model.weights_.round(3).tolist())
    [0.429, 0.571]
    """

    components_: Array
    weights_: Array
    factors_: list[Array]

    _any_order = True
    _streams_columns = True
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
        return "plca"

    def _solver(self) -> str:
        return "em" if self.temper != 1 and self.solver == "auto" else self.solver

    def _options(self) -> dict[str, Any]:
        return {"temper": float(self.temper)}

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        return {"weights": (k,), **{f"factor_{j}": (n, k) for j, n in enumerate(shape)}}

    def _show(self, blocks: Blocks) -> None:
        self.weights_ = blocks["weights"]
        self.factors_ = [blocks[f"factor_{j}"] for j in range(len(self._shape))]
        self.components_ = outer(self.factors_[1:])

    def _answer(self, blocks: Blocks) -> Array:
        joint = blocks["factor_0"] * blocks["weights"]
        mass = joint.sum(axis=1, keepdims=True)
        return np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)

    def _answer_empty(self, samples: int, dtype: Any) -> Array:
        return np.tile(self.weights_.astype(dtype), (samples, 1))

    def _count(self, blocks: Blocks) -> int:
        return len(blocks["weights"])

    def _file_settings(self) -> dict[str, Any]:
        return {"temper": self.temper}

    def _after_batch(self, known: Blocks, batch: Blocks) -> Blocks:
        # The samples of a batch are its second dimension.
        return {**batch, "weights": known["weights"], "factor_0": batch["factor_1"], "factor_1": known["factor_0"]}

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
        r"""The distributions that mixtures stand for, :math:`P(x_1, \dots \mid x_0)`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Mixtures.

        Returns
        -------
        X_original : ndarray of shape (n_samples, ...)
            Distributions; those of a sample's counts are its sum times them.
        """
        check_is_fitted(self)
        X = check_array(X, dtype=[np.float64, np.float32])
        return np.tensordot(X, self.components_, axes=1)

    def perplexity(self, X: Data, y: object = None, *, observed: Mask = None) -> float:
        """The perplexity of new data, the exponential of minus the log-likelihood per count; smaller is better.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
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


def outer(factors: Sequence[Array]) -> Array:
    """The outer product of the columns of factors, one array for every component."""
    product = factors[0].T
    for factor in factors[1:]:
        product = product[..., np.newaxis] * factor.T.reshape(factor.shape[1], *[1] * (product.ndim - 1), -1)
    return np.ascontiguousarray(product)
