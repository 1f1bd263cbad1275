"""Factors and weights on the simplex under squared error."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from ._base import COMMON, Factorization
from ._plca import outer
from ._types import Array, Blocks, Callback, Data, Freeze, RandomState, Shapes


class PNTF(Factorization):
    r"""Probabilistic non-negative factorization of data of any order under squared error.

    .. math:: \min \sum_x \Bigl( G_x - \sum_z w_z \prod_j F_j[x_j, z] \Bigr)^2, \qquad w \text{ and the columns of } F_j \text{ on the simplex}

    `G` are the data divided by their sum. Samples lie along the first dimension.

    Parameters
    ----------
    n_components : int, default=10
        The number of components.
    init : {"random", "custom", "deflation"} or None, default=None
        The start: drawn, as by the command, given, or component after component from what the earlier ones leave over.
    solver : {"auto", "em", "squarem", "parabolic", "momentum"}, default="auto"
        Plain sweeps, or extrapolated ones.
    tol : float, default=1e-7
        The change of the objective per unit of data and iteration that ends a fit; 0: all iterations are made.
    max_iter : int, default=1000
        The most iterations.
    random_state : int, RandomState, Generator or None, default=None
        A whole number is the seed of the command. Start ``r`` of `n_init` is its stream ``r``.
    n_init : int, default=1
        From how many starts the fit is made; the best end is kept.
    n_jobs : int or None, default=None
        Threads. ``None``: all processors that this process may use. Results do not depend on it.
    warm_start : bool, default=False
        Whether a fit starts where the last one ended.
    freeze : str, sequence of str or dict, default=()
        Blocks that keep the values of the start, or with a dict the components of a block that do.
    callback : callable or None, default=None
        Called as ``callback(iteration, objective)`` at every check; something true ends the fit.
    verbose : int, default=0
        1: a bar of tqdm where it is installed, else a line for every check. More: a line for every check.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The factor of the features; rows sum to 1. Of more dimensions, of shape ``(n_components, *X.shape[1:])``.
    weights_ : ndarray of shape (n_components,)
        The weights; they sum to 1.
    factors_ : list of ndarray of shape (X.shape[j], n_components)
        The factor of every dimension; columns sum to 1.
    reconstruction_err_ : float
        The root of the squared error of the data divided by their sum.
    objective_ : float
        That squared error.
    n_components_ : int
        The number of components.
    n_iter_ : int
        Iterations made.
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
    T. Hazan and A. Shashua, "Analysis of L2-loss for probabilistically valid factorizations under general additive noise", technical
    report TR-13, Leibniz Center, The Hebrew University of Jerusalem, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import PNTF
    >>> X = np.array([[4.0, 4.0, 0.0], [0.0, 0.0, 6.0]])
    >>> model = PNTF(n_components=2, random_state=0).fit(X)
    >>> sorted(model.weights_.round(3).tolist())
    [0.429, 0.571]
    """

    components_: Array
    weights_: Array
    factors_: list[Array]
    reconstruction_err_: float

    _any_order = True
    _hides = False
    missing = None
    prior = None
    _parameter_constraints = {
        **{name: rule for name, rule in COMMON.items() if name not in ("missing", "prior")},
        "init": [StrOptions({"random", "custom", "deflation"}), None],
        "solver": [StrOptions({"auto", "em", "squarem", "parabolic", "momentum"})],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        init: str | None = None,
        solver: str = "auto",
        tol: float = 1e-7,
        max_iter: int = 1000,
        random_state: RandomState = None,
        n_init: int = 1,
        n_jobs: int | None = None,
        warm_start: bool = False,
        freeze: Freeze = (),
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_init = n_init
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.freeze = freeze
        self.callback = callback
        self.verbose = verbose

    def _model(self) -> str:
        return "pntf"

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        return {"weights": (k,), **{f"factor_{j}": (n, k) for j, n in enumerate(shape)}}

    def _show(self, blocks: Blocks) -> None:
        self.weights_ = blocks["weights"]
        self.factors_ = [blocks[f"factor_{j}"] for j in range(len(self._shape))]
        self.components_ = outer(self.factors_[1:])
        self.reconstruction_err_ = float(np.sqrt(max(self.objective_, 0.0)))

    def _answer(self, blocks: Blocks) -> Array:
        return np.ascontiguousarray(blocks["mixture"].T)

    def _answer_empty(self, samples: int, dtype: Any) -> Array:
        return np.tile(self.weights_.astype(dtype), (samples, 1))

    def _count(self, blocks: Blocks) -> int:
        return len(blocks["weights"])

    def _score(self, found: dict[str, Any]) -> float:
        return float(-found["objective"] / found["observed"]) if found["observed"] > 0 else 0.0

    def _objective_name(self) -> str:
        return "squared_error"

    def inverse_transform(self, X: Data) -> Array:
        """The shares that mixtures stand for: a sample is its sum times them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Mixtures.

        Returns
        -------
        X_original : ndarray of shape (n_samples, ...)
            Shares.
        """
        check_is_fitted(self)
        X = check_array(X, dtype=[np.float64, np.float32])
        return np.tensordot(X, self.components_, axes=1)
