"""Non-negative matrix factorization."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_array

from ._base import COMMON, GAP, SOLVERS
from ._data import seed_of
from ._docs import described
from ._mixtures import MixtureModel
from ._types import Array, Blocks, Callback, Data, Freeze, Mask, Priors, RandomState, Shapes, Start

if TYPE_CHECKING:
    from typing_extensions import Self


def nndsvd(X: Data, k: int, init: str | None, seed: int) -> tuple[Array, Array]:
    """The start of Boutsidis and Gallopoulos (2008): the non-negative parts of the leading singular vectors.

    Zeros cannot grow in multiplicative updates, and cells that are positive must be explained: ``nndsvd`` is filled as ``nndsvda`` is.
    """
    if k > min(X.shape):
        raise ValueError(f"init={init!r} needs n_components <= min(n_samples, n_features) = {min(X.shape)}, got {k}")
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


@described
class NMF(MixtureModel):
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
    %(tol)s
    %(max_iter)s
    %(transform_tol)s
    %(starts)s
    %(missing)s
    prior : dict or None, default=None
        Priors by block; NMF has none yet.
    freeze : str, sequence of str or dict, default=()
        Blocks (``"w"``, ``"h"``) that keep the values of the start, or with a dict the components of a block that do.
    %(check_every)s
    %(callback)s
    %(verbose)s

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The factor `H`.
    reconstruction_err_ : float
        :math:`\sqrt{2 D}`, as of scikit-learn.
    objective_ : float
        The divergence `D`, or the squared error.
    %(ended)s
    %(features)s

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

    reconstruction_err_: float
    beta_loss: str

    _minimised = True
    _per = "observed"
    _parameter_constraints = {
        **COMMON,
        **GAP,
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
        check_every: int = 10,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self._take(locals())

    @property
    def _kl(self) -> bool:
        return self.beta_loss == "kullback-leibler"

    def _model(self) -> str:
        return "nmf-kl" if self._kl else "ntf-l2"

    def _solver(self) -> str:
        return "em" if self.solver == "mu" or not self._kl else self.solver

    def _options(self) -> dict[str, Any]:
        return {"update": "sequential"} if self.solver == "mu" and self._kl else {}

    def _components(self, shape: tuple[int, ...], start: Start) -> int:
        if self.n_components is not None and not isinstance(self.n_components, str):
            return int(self.n_components)
        if self.n_components is not None:
            for name, mode in zip(self._names(), (1, 0 if self._kl else 1)):
                block = np.shape((start or {}).get(name, ()))
                # Other shapes are refused where all starts are.
                if len(block) == 2:
                    return int(block[mode])
        return int(shape[1])

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
        %(X)s
        %(y)s
        %(observed)s
        %(start)s
        W, H : array-like, default=None
            The start with ``init="custom"``.

        %(fitted)s
        """
        self._fit(X, observed, self._given(start, W, H))
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
        %(X)s
        %(y)s
        %(observed)s
        %(start)s
        W, H : array-like, default=None
            The start with ``init="custom"``.

        Returns
        -------
        W : ndarray of shape (n_samples, n_components)
            The other factor.
        """
        X, observed = self._fit(X, observed, self._given(start, W, H))
        return self._explain(X, observed)[0]

    def _given(self, start: Start, W: Data | None, H: Data | None) -> Start:
        """The start, with both factors of ``init="custom"``."""
        blocks = dict(start or {})
        for name, factor in zip(self._names(), (W, H)):
            if factor is None:
                continue
            if self.init != "custom":
                raise ValueError(f"W and H are given, but init is {self.init!r}: expected 'custom'")
            factor = check_array(factor, dtype=[np.float64, np.float32], input_name="W or H")
            blocks[name] = factor.T if name == "factor_1" else factor
        if self.init == "custom" and not blocks:
            raise ValueError("init is 'custom', but neither W nor H is given")
        return blocks

    def _start(self, start: Start, shapes: Shapes, X: Data, observed: Mask) -> Blocks:
        blocks = super()._start(start, shapes, X, observed)
        if self.init in ("nndsvd", "nndsvda", "nndsvdar"):
            hidden = observed is not None and not observed.all()
            if hidden or not sparse.issparse(X) and np.isnan(X).any():
                raise ValueError(f"init={self.init!r} does not go with missing values: expected 'random' or 'custom'")
            k = shapes[self._names()[0]][1]
            W, H = nndsvd(X, k, self.init, seed_of(self.random_state))
            for name, factor in zip(self._names(), (W, H)):
                blocks.setdefault(name, factor.T if name == "factor_1" else factor)
        return blocks

    def _count(self, blocks: Blocks) -> int:
        return int(blocks[self._names()[0]].shape[1])

    def _order(self) -> tuple[str, dict[str, Any]]:
        if not self._kl:
            raise ValueError(f"select: beta_loss is {self.beta_loss!r}, whose squared error is no likelihood")
        self._plainly("prior", "freeze")
        return "plca", {}

    def _objective_name(self) -> str:
        return "kl_divergence" if self._kl else "squared_error"
