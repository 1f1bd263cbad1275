"""Non-negative matrix factorization."""

from __future__ import annotations

import numbers
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_array, check_is_fitted

from ._base import COMMON, SOLVERS, Factorization
from ._data import seed_of
from ._types import Array, Blocks, Callback, Data, Freeze, Mask, Priors, RandomState, Shapes, Start

if TYPE_CHECKING:
    from typing_extensions import Self


def nndsvd(X: Data, k: int, init: str | None, seed: int) -> tuple[Array, Array]:
    """The start of Boutsidis and Gallopoulos (2008): the non-negative parts of the leading singular vectors.

    Zeros cannot grow in multiplicative updates, and cells that are positive must be explained: ``nndsvd`` is filled as ``nndsvda`` is.
    """
    if k > min(X.shape):
        raise ValueError(f"init={init!r} needs n_components <= min(n_samples, n_features) = {min(X.shape)}, got {k}")
    if not sparse.issparse(X) and np.isnan(X).any():
        raise ValueError(f"init={init!r} does not go with missing values: expected 'random' or 'custom'")
    U, S, V = randomized_svd(X, k, random_state=seed % 2**32)
    W, H = np.zeros((X.shape[0], k)), np.zeros((k, X.shape[1]))
    W[:, 0], H[0] = np.sqrt(S[0]) * np.abs(U[:, 0]), np.sqrt(S[0]) * np.abs(V[0])
    for z in range(1, k):
        u, v = U[:, z], V[z]
        sides = [(np.maximum(u, 0), np.maximum(v, 0)), (np.maximum(-u, 0), np.maximum(-v, 0))]
        u, v = max(sides, key=lambda side: np.linalg.norm(side[0]) * np.linalg.norm(side[1]))
        norms = np.linalg.norm(u), np.linalg.norm(v)
        if norms[0] * norms[1] > 0:
            scale = np.sqrt(S[z] * norms[0] * norms[1])
            W[:, z], H[z] = scale * u / norms[0], scale * v / norms[1]
    W[W < 1e-6], H[H < 1e-6] = 0, 0
    mean = X.mean()
    if init == "nndsvdar":
        draw = np.random.RandomState(seed % 2**32)
        for factor in (W, H):
            empty = factor == 0
            factor[empty] = np.abs(mean * draw.standard_normal(empty.sum()) / 100) + mean * 1e-6
    else:
        if init == "nndsvd" and ((W == 0).any() or (H == 0).any()):
            warnings.warn(
                "init='nndsvd' has zeros, which never grow under the Kullback-Leibler divergence: they are filled as of 'nndsvda'",
                UserWarning,
                stacklevel=5,
            )
        W[W == 0], H[H == 0] = mean, mean
    return W.astype(X.dtype), H.astype(X.dtype)


class NMF(Factorization):
    r"""Non-negative matrix factorization, by default under the generalised Kullback-Leibler divergence.

    .. math:: X \approx W H, \qquad \min_{W, H \ge 0} D = \sum_{ij} X_{ij} \ln \frac{X_{ij}}{(W H)_{ij}} - X_{ij} + (W H)_{ij}

    The names are those of :class:`sklearn.decomposition.NMF`. Other than there ``beta_loss`` is ``"kullback-leibler"`` by default,
    ``tol`` is the change of the objective per count and iteration, and starts are drawn as by the command ``plca fit nmf-kl``.

    Parameters
    ----------
    n_components : int, "auto" or None, default="auto"
        The number of components. ``"auto"``: that of the start, or all features; ``None``: all features.
    init : {"random", "nndsvd", "nndsvda", "nndsvdar", "custom"} or None, default=None
        The start. ``None`` and ``"random"``: drawn, as by the command. ``"custom"``: `W` and `H` of :meth:`fit_transform`.
    beta_loss : {"kullback-leibler", "frobenius"}, default="kullback-leibler"
        What is minimised.
    solver : {"auto", "fast", "em", "mu", "squarem", "parabolic", "momentum"}, default="auto"
        How. ``"mu"``: the sequential multiplicative updates of scikit-learn. ``"auto"``: coordinate descent where it goes.
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
        Priors by block; NMF has none yet.
    freeze : str, sequence of str or dict, default=()
        Blocks (``"w"``, ``"h"``) that keep the values of the start, or with a dict the components of a block that do.
    callback : callable or None, default=None
        Called as ``callback(iteration, objective)`` at every check; something true ends the fit.
    verbose : int, default=0
        1: a bar of tqdm where it is installed, else a line for every check. More: a line for every check.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The factor `H`.
    n_components_ : int
        The number of components.
    n_iter_ : int
        Iterations made.
    reconstruction_err_ : float
        :math:`\sqrt{2 D}`, as of scikit-learn.
    objective_ : float
        The divergence `D`, or the squared error.
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
    D. D. Lee and H. S. Seung, "Algorithms for non-negative matrix factorization", NIPS 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import NMF
    >>> X = np.array([[3.0, 1.0], [0.0, 2.0]])
    >>> model = NMF(n_components=2, random_state=0).fit(X)
    >>> bool(model.reconstruction_err_ < 0.05)
    True
    """

    components_: Array
    reconstruction_err_: float

    _parameter_constraints = {
        **COMMON,
        "transform_tol": [Interval(numbers.Real, 0, None, closed="left")],
        "n_components": [*COMMON["n_components"], StrOptions({"auto"}), None],
        "init": [StrOptions({"random", "nndsvd", "nndsvda", "nndsvdar", "custom"}), None],
        "beta_loss": [StrOptions({"kullback-leibler", "frobenius"})],
        "solver": [StrOptions(SOLVERS | {"mu"})],
    }

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        init: str | None = None,
        beta_loss: str = "kullback-leibler",
        solver: str = "auto",
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
        self.beta_loss = beta_loss
        self.solver = solver
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

    @property
    def _kl(self) -> bool:
        return self.beta_loss == "kullback-leibler"

    def _model(self) -> str:
        return "nmf-kl" if self._kl else "ntf-l2"

    def _solver(self) -> str:
        return "em" if self.solver == "mu" or not self._kl else self.solver

    def _options(self) -> dict[str, Any]:
        return {"update": "sequential"} if self.solver == "mu" and self._kl else {}

    def _components(self, shape: tuple[int, ...]) -> int:
        if isinstance(self.n_components, str) or self.n_components is None:
            given = getattr(self, "_given_components", None)
            return int(shape[1]) if given is None or self.n_components is None else given
        return int(self.n_components)

    def _names(self) -> tuple[str, str]:
        return ("w", "h") if self._kl else ("factor_0", "factor_1")

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        w, h = self._names()
        return {w: (shape[0], k), h: (k, shape[1]) if self._kl else (shape[1], k)}

    def _show(self, blocks: Blocks) -> None:
        h = blocks[self._names()[1]]
        self.components_ = h if self._kl else np.ascontiguousarray(h.T)
        if self._kl:
            self.reconstruction_err_ = float(np.sqrt(2 * max(self.objective_, 0.0)))
        else:
            self.reconstruction_err_ = float(np.sqrt(max(self.objective_, 0.0)))

    def _answer(self, blocks: Blocks) -> Array:
        return blocks[self._names()[0]]

    def fit(
        self,
        X: Data,
        y: object = None,
        *,
        observed: Mask = None,
        start: Start = None,
        W: Data | None = None,
        H: Data | None = None,
    ) -> Self:
        """Fit the model to data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.
        y : Ignored
            Not used, present by convention.
        observed : array-like of bool of the shape of X, default=None
            False where a cell is hidden: its value is never read.
        start : dict of str to array, default=None
            Blocks to start from, by their names.
        W, H : array-like, default=None
            The start with ``init="custom"``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit(X, observed, start, W, H)
        return self

    def fit_transform(
        self,
        X: Data,
        y: object = None,
        *,
        observed: Mask = None,
        start: Start = None,
        W: Data | None = None,
        H: Data | None = None,
    ) -> Any:
        """Fit the model, and explain the same data by it: ``fit(X).transform(X)``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data.
        y : Ignored
            Not used, present by convention.
        observed : array-like of bool of the shape of X, default=None
            False where a cell is hidden.
        start : dict of str to array, default=None
            Blocks to start from.
        W, H : array-like, default=None
            The start with ``init="custom"``.

        Returns
        -------
        W : ndarray of shape (n_samples, n_components)
            The other factor.
        """
        X, observed = self._fit(X, observed, start, W, H)
        return self._explain(X, observed)[0]

    def _fit(
        self, X: Data, observed: Mask = None, start: Start = None, W: Data | None = None, H: Data | None = None
    ) -> tuple[Any, Array | None]:
        start = dict(start or {})
        for name, factor in zip(self._names(), (W, H)):
            if factor is None:
                continue
            if self.init != "custom":
                raise ValueError(f"W and H are given, but init is {self.init!r}: expected 'custom'")
            factor = check_array(factor, dtype=[np.float64, np.float32], input_name="W or H")
            start[name] = factor.T if name == "factor_1" else factor
        if self.init == "custom" and not start:
            raise ValueError("init is 'custom', but neither W nor H is given")
        self._given_components = None
        if start and self._names()[0] in start:
            self._given_components = int(start[self._names()[0]].shape[1])
        elif start and self._names()[1] in start:
            self._given_components = int(start[self._names()[1]].shape[0 if self._kl else 1])
        try:
            return super()._fit(X, observed, start)
        finally:
            del self._given_components

    def _start(self, start: Start, shapes: Shapes, X: Data) -> Blocks:
        blocks = super()._start(start, shapes, X)
        if self.init in ("nndsvd", "nndsvda", "nndsvdar"):
            k = shapes[self._names()[0]][1]
            W, H = nndsvd(X, k, self.init, seed_of(self.random_state))
            for name, factor in zip(self._names(), (W, H)):
                blocks.setdefault(name, factor.T if name == "factor_1" else factor)
        return blocks

    def _count(self, blocks: Blocks) -> int:
        return int(blocks[self._names()[0]].shape[1])

    def _score(self, found: dict[str, Any]) -> float:
        return float(-found["objective"] / found["observed"]) if found["observed"] > 0 else 0.0

    def _objective_name(self) -> str:
        return "kl_divergence" if self._kl else "squared_error"

    def inverse_transform(self, X: Data) -> Array:
        """The data that mixtures stand for, ``X @ components_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Mixtures.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            The data.
        """
        check_is_fitted(self)
        X = check_array(X, dtype=[np.float64, np.float32])
        return X @ self.components_
