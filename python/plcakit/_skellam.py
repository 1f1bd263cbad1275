"""Factorization of data of either sign under the Skellam law."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from ._base import COMMON, Factorization
from ._types import Array, Blocks, Callback, Data, Freeze, Priors, RandomState, Shapes


class SkellamSNMF(Factorization):
    r"""Semi-NMF of data of either sign: signed atoms, non-negative activations, under the Skellam law.

    .. math:: X^\top \sim \mathrm{Sk}(T^+ H, T^- H), \qquad T^\pm, H \ge 0, \qquad \sum_f T^+_{fk} + T^-_{fk} = 1

    The law is that of the difference of two Poisson counts; the expectation of the data is :math:`(T^+ - T^-) H`. Samples are rows
    here and columns of the files of the command ``plca fit skellam``.

    Parameters
    ----------
    n_components : int, default=10
        The number of components.
    method : {"em", "vb"}, default="em"
        The largest posterior by expectation-maximisation, or a distribution of the factors by variational Bayes.
    init : {"random", "custom"} or None, default=None
        The start: drawn, as by the command, where ``start`` of :meth:`fit` gives no block.
    solver : {"auto", "em", "squarem", "parabolic", "momentum"}, default="auto"
        How the objective is raised.
    replicates : int or float, default=inf
        Draws of which a datum is the mean: 1 for differences of counts, infinity for real data.
    real_data : bool, default=False
        Whether data that are no whole numbers are taken for a finite number of replicates, too.
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
    missing : {"nan", "unstored"} or None, default=None
        What hides a cell: NaN of a dense array, or not being stored in a sparse one.
    prior : dict or None, default=None
        Priors: ``"atoms"`` as ``"dirichlet:A"``, ``"activations"`` as ``"gamma:SHAPE,RATE"``, or objects of :mod:`plcakit.priors`.
    freeze : str, sequence of str or dict, default=()
        Blocks that keep the values of the start, or with a dict the components of a block that do.
    callback : callable or None, default=None
        Called as ``callback(iteration, objective)`` at every check; something true ends the fit.
    verbose : int, default=0
        1: a bar of tqdm where it is installed, else a line for every check. More: a line for every check.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        :math:`T^+ - T^-`, transposed.
    components_plus_, components_minus_ : ndarray of shape (n_components, n_features)
        Both sides.
    objective_ : float
        The log-posterior, or the lower bound of the log-evidence.
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
    B. Fuentes and G. Richard, "Probabilistic semi-nonnegative matrix factorization: a Skellam-based framework", 2021,
    https://arxiv.org/abs/2107.03317.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import SkellamSNMF
    >>> X = np.array([[2.0, -1.0], [4.0, -2.0]])
    >>> model = SkellamSNMF(n_components=1, random_state=0).fit(X)
    >>> bool(abs(model.inverse_transform(model.transform(X)) - X).max() < 0.05)
    True
    """

    components_: Array
    components_plus_: Array
    components_minus_: Array

    _counts = False
    _transposed = True
    _along = 1
    _parameter_constraints = {
        **COMMON,
        "method": [StrOptions({"em", "vb"})],
        "solver": [StrOptions({"auto", "em", "squarem", "parabolic", "momentum"})],
        "replicates": [Interval(numbers.Real, 1, None, closed="both")],
        "real_data": ["boolean"],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        method: str = "em",
        init: str | None = None,
        solver: str = "auto",
        replicates: float = float("inf"),
        real_data: bool = False,
        tol: float = 1e-7,
        max_iter: int = 1000,
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
        self.method = method
        self.init = init
        self.solver = solver
        self.replicates = replicates
        self.real_data = real_data
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_init = n_init
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.missing = missing
        self.prior = prior
        self.freeze = freeze
        self.callback = callback
        self.verbose = verbose

    @property
    def _vb(self) -> bool:
        return self.method == "vb"

    def _model(self) -> str:
        return "skellam-vb" if self._vb else "skellam"

    def _options(self) -> dict[str, Any]:
        return {"replicates": float(self.replicates), "real_data": bool(self.real_data)}

    def _transform_options(self) -> dict[str, Any]:
        options = self._options()
        # One number for all activations holds for new ones, too.
        priors = self._priors({"atoms": None, "activations": None})
        return {**options, "prior": priors} if priors else options

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        f, n = shape
        if self._vb:
            return {"atoms_shape": (f, k, 2), "activations_shape": (k, n), "activations_rate": (k, n)}
        return {"atoms": (f, k, 2), "activations": (k, n)}

    def _prior_shapes(self, shapes: Shapes) -> Shapes:
        return {"atoms": None, "activations": None}

    def _show(self, blocks: Blocks) -> None:
        plus, minus = blocks["atoms"][..., 0].T, blocks["atoms"][..., 1].T
        self.components_plus_ = np.ascontiguousarray(plus)
        self.components_minus_ = np.ascontiguousarray(minus)
        self.components_ = self.components_plus_ - self.components_minus_

    def _answer(self, blocks: Blocks) -> Array:
        return np.ascontiguousarray(blocks["activations"].T)

    def _count(self, blocks: Blocks) -> int:
        return int(blocks["atoms"].shape[1])

    def _score(self, found: dict[str, Any]) -> float:
        return float(found["objective"] / found["observed"]) if found["observed"] > 0 else 0.0

    def _objective_name(self) -> str:
        return "elbo" if self._vb else "log_posterior"

    def _file_settings(self) -> dict[str, Any]:
        m = float(self.replicates)
        return {"m": "inf" if np.isinf(m) else str(int(m)), "real_data": bool(self.real_data)}

    def inverse_transform(self, X: Data) -> Array:
        """The data that activations stand for, ``X @ components_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Activations.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            The data.
        """
        check_is_fitted(self)
        X = check_array(X, dtype=[np.float64, np.float32])
        return X @ self.components_
