"""Non-negative matrix factorization."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_array

from ._base import COMMON, GAP, SOLVERS
from ._data import real
from ._docs import described
from ._mixtures import MixtureModel
from ._types import Array, Blocks, Callback, Data, Freeze, Mask, Priors, RandomState, Shapes, Start, available_if
from ._warn import warn
from .priors import Penalty

if TYPE_CHECKING:
    from typing_extensions import Self


def _learns(model: NMF) -> bool:
    """Whether the model learns batch by batch."""
    if not model._kl:
        raise AttributeError(f"beta_loss is {model.beta_loss!r}: partial_fit is for 'kullback-leibler'")
    if model.alpha_W or not isinstance(model.alpha_H, str) and model.alpha_H:
        raise AttributeError("partial_fit does not support penalties: leave alpha_W and alpha_H out")
    if model.prior:
        raise AttributeError("the factors that partial_fit learns have no scale: they cannot have priors")
    return True


@described
class NMF(MixtureModel):
    r"""Non-negative matrix factorization, by default under the generalised Kullback-Leibler divergence.

    .. math:: X \approx W H, \qquad \min_{W, H \ge 0} D = \sum_{ij} X_{ij} \ln \frac{X_{ij}}{(W H)_{ij}} - X_{ij} + (W H)_{ij}

    With ``alpha_W`` or ``alpha_H`` penalties are added, weighted as in scikit-learn:

    .. math:: m \, \alpha_W \Bigl( r \lVert W \rVert_1 + \tfrac{1 - r}{2} \lVert W \rVert^2 \Bigr)
              + n \, \alpha_H \Bigl( r \lVert H \rVert_1 + \tfrac{1 - r}{2} \lVert H \rVert^2 \Bigr)

    for `n` samples, `m` features and `r`, the ``l1_ratio``. Expectation-maximisation takes them into the M-step exactly, so that the
    objective falls; ``"mu"`` makes the iterations of scikit-learn, which may raise it where ``l1_ratio < 1``; ``"fast"`` has none.

    The names are those of :class:`sklearn.decomposition.NMF`. Other than there ``beta_loss`` is ``"kullback-leibler"`` by default,
    ``tol`` is the change of the objective per count and iteration, and starts are drawn as by the command ``plca fit nmf``.

    Parameters
    ----------
    n_components : int, "auto" or None, default="auto"
        The number of components. ``"auto"``: that of the start, or all features; ``None``: all features.
    init : {"random", "nndsvd", "nndsvda", "nndsvdar", "custom"} or None, default=None
        The start. ``None`` and ``"random"``: drawn, as by the command. ``"custom"``: `W` and `H` of :meth:`fit_transform`. The others:
        from the leading singular vectors, as in scikit-learn, zeros filled with the mean (``"nndsvda"``) or with drawn numbers below a
        hundredth of it (``"nndsvdar"``); hidden cells count as the mean of the others. ``"nndsvd"`` fills none; under the
        Kullback-Leibler divergence it warns and is ``"nndsvda"``.
    beta_loss : {"kullback-leibler", "frobenius"} or {1, 2}, default="kullback-leibler"
        What is minimised, by its name or as the beta that it has in scikit-learn.
    solver : {"auto", "fast", "em", "mu", "squarem", "parabolic", "momentum"}, default="auto"
        How. ``"mu"``: the sequential multiplicative updates of scikit-learn. ``"auto"``: coordinate descent where it goes.
    alpha_W : float, default=0.0
        The weight of the penalties on `W`.
    alpha_H : float or "same", default="same"
        That of the penalties on `H`. With one of the two at 0 a factor can escape its penalty: the other grows as it shrinks.
    l1_ratio : float, default=0.0
        The share of the linear penalty, 0 to 1.
    %(tol)s
    %(max_iter)s
    %(transform_tol)s
    %(starts)s
    %(missing)s
    prior : dict or None, default=None
        Priors of ``"w"`` and ``"h"``, in the place of ``alpha_W`` and ``alpha_H``: ``"gamma:SHAPE,RATE"``, ``"rate:L1,L2"``, or
        :class:`~plcakit.priors.Gamma` and :class:`~plcakit.priors.Penalty`. None under squared error.
    freeze : str, sequence of str or dict, default=()
        Blocks that keep the values of the start, or with a dict the components of a block that do: ``"w"`` and ``"h"``; under squared error
        ``"factor_0"``, which is `W`, and ``"factor_1"``, which is `H` transposed. A start has the same names.
    %(check_every)s
    %(time_limit)s
    %(callback)s
    %(verbose)s

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The factor `H`.
    reconstruction_err_ : float
        :math:`\sqrt{2 D}`, as of scikit-learn; the root of the squared error. Without penalties and priors.
    objective_ : float
        The divergence `D`, or the squared error, which scikit-learn halves; with penalties (twice those above under squared error), less the
        log-density of the priors.
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

    _saved = {"nmf-kl": ("w", "h"), "ntf-l2": ("factor_0", "factor_1")}
    reconstruction_err_: float
    beta_loss: str | float
    alpha_W: float
    alpha_H: float | str
    l1_ratio: float

    _minimised = True
    _wants_likelihood = True
    _streams_columns = True
    _per = "observed"
    _parameter_constraints = {
        **COMMON,
        **GAP,
        "n_components": [*COMMON["n_components"], StrOptions({"auto"}), None],
        "init": [StrOptions({"random", "nndsvd", "nndsvda", "nndsvdar", "custom"}), None],
        "beta_loss": [StrOptions({"kullback-leibler", "frobenius"}), Options(numbers.Real, {1, 2})],
        "solver": [StrOptions(SOLVERS | {"mu"})],
        "alpha_W": [Interval(numbers.Real, 0, None, closed="left")],
        "alpha_H": [Interval(numbers.Real, 0, None, closed="left"), StrOptions({"same"})],
        "l1_ratio": [Interval(numbers.Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        init: str | None = None,
        beta_loss: str | float = "kullback-leibler",
        solver: str = "auto",
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
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
        time_limit: float | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self._take(locals())

    @property
    def _kl(self) -> bool:
        return self.beta_loss in ("kullback-leibler", 1)

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

    def _weights(self, samples: int, features: int) -> dict[str, tuple[float, float]]:
        """The weights of both penalties on the blocks that have some, in units in which the squared error is halved."""
        alpha_H = self.alpha_W if isinstance(self.alpha_H, str) else self.alpha_H
        strengths = zip(self._names(), (features * float(self.alpha_W), samples * float(alpha_H)))
        ratio = float(self.l1_ratio)
        return {name: (alpha * ratio, alpha * (1 - ratio)) for name, alpha in strengths if alpha > 0}

    def _sizes(self, shapes: Shapes) -> tuple[int, int]:
        w, h = self._names()
        return shapes[w][0], shapes[h][1 if self._kl else 0]

    def _priors(self, shapes: Shapes) -> dict[str, Any]:
        priors = super()._priors(shapes)
        if priors and not self._kl:
            raise ValueError(f"prior is {self.prior!r}, but beta_loss='frobenius' has none: expected alpha_W and alpha_H")
        weights = self._weights(*self._sizes(shapes)) if self._kl else {}
        for name, (linear, quadratic) in weights.items():
            if name in priors:
                raise ValueError(f"prior and alpha_{name.upper()} are both of '{name}': expected one of them")
            priors[name] = str(Penalty(linear, quadratic, lagged=self.solver == "mu"))
        return priors

    def _prior_shapes(self, shapes: Shapes) -> Shapes:
        return shapes if self._kl else {}

    def _penalties(self, shapes: Shapes) -> dict[str, Any]:
        weights = {} if self._kl else self._weights(*self._sizes(shapes))
        # The squared error is not halved.
        return {name: [2 * linear, 2 * quadratic] for name, (linear, quadratic) in weights.items()}

    def _transform_options(self, shape: tuple[int, ...], along: int) -> dict[str, Any]:
        own = self._names()[along]
        shapes = self._block_shapes(self._shape, self.n_components_)
        given = {"prior": self._priors(shapes), "penalty": self._penalties(shapes)}
        return {kind: {own: of[own]} for kind, of in given.items() if own in of}

    def _penalty(self, blocks: Blocks) -> float:
        """What the penalties on these blocks add to the objective."""
        twice = 1 if self._kl else 2
        sums = 0.0
        for name, (linear, quadratic) in self._weights(self._shape[0], self._shape[1]).items():
            if name in blocks:
                block = np.asarray(blocks[name], dtype=np.float64)
                sums += twice * float(linear * block.sum() + quadratic / 2 * (block**2).sum())
        return sums

    def _score(self, found: dict[str, Any]) -> float:
        w, _ = self._names()
        if w in found.get("arrays", {}):
            found = {**found, "objective": found["objective"] - self._penalty({w: found["arrays"][w]})}
        return super()._score(found)

    def _show(self, blocks: Blocks) -> None:
        h = blocks[self._names()[1]]
        self.components_ = h if self._kl else np.ascontiguousarray(h.T)
        # Of a file nothing but the objective is known.
        of = self.objective_ - self._penalty(blocks) if self._likelihood is None else self._likelihood
        self.reconstruction_err_ = float(np.sqrt((2 if self._kl else 1) * max(of, 0.0)))

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
        """Fit the model and transform the same data: ``fit(X).transform(X)``.

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
        return self._explained(X, observed)[0]

    @available_if(_learns)
    def partial_fit(self, X: Data, y: object = None, *, observed: Mask = None) -> Self:
        """Learn from one more batch of samples; earlier batches have less and less weight.

        The divergence of a sample is least where the product has its sum, and what is left of it is the likelihood of
        :class:`~plcakit.PLSA`: so rows of `components_` sum to 1, and the scale is with `W`. Without penalties, priors and
        ``beta_loss="frobenius"``, with which there is no such method. After :meth:`fit`, or from a file, it goes on from what was learnt: a fit of
        n samples counts as n / (samples of the first batch) earlier batches.

        Parameters
        ----------
        %(X)s
        %(y)s
        %(observed)s

        Returns
        -------
        self : object
            The estimator. `objective_` is the divergence of the batch under the components that it met, `n_iter_` the number of batches,
            with those that a fit counts as; `trace_` has one entry for each batch since then.
        """
        self._partial_fit(X, observed)
        return self

    def sample(self, n: int | None = None, *, random_state: RandomState = None, as_sparse: bool = False) -> Any:
        """Draw counts from the learnt model, whose divergence is that of Poisson counts with the means `W H`.

        Parameters
        ----------
        n : int, default=None
            How many events are drawn, each in the cell that the model gives it. ``None``: a Poisson number with the sum of the model as
            its mean, so that cells are independent Poisson counts with the means of :meth:`reconstruct`.
        random_state : int, RandomState, Generator or None, default=None
            A whole number is the seed of the command ``plca sample``.
        as_sparse : bool, default=False
            Whether to return a sparse matrix (CSR), of data of two dimensions.

        Returns
        -------
        X : ndarray or sparse matrix of the shape of the data
            The counts.
        """
        if not self._kl:
            raise ValueError(f"beta_loss is {self.beta_loss!r}: only 'kullback-leibler' is the likelihood of counts")
        return self._sample(n, random_state, as_sparse, {})

    def _learnt(self) -> tuple[Array, Array, Array, float]:
        w, h = (np.asarray(self._blocks[name], dtype=np.float64) for name in ("w", "h"))
        sums = h.sum(axis=1)
        masses = w.sum(axis=0) * sums
        # A component without mass has even probabilities.
        shared = np.divide(h.T, sums, out=np.full(h.T.shape, 1 / h.shape[1]), where=sums > 0)
        weights = masses / masses.sum()
        return shared, weights, shared * weights, float(masses.sum())

    def _after_batch(self, known: Blocks, batch: Blocks) -> Blocks:
        # The samples of a batch are its second dimension.
        return {"w": np.ascontiguousarray(batch["h"].T), "h": np.ascontiguousarray(known["factor_0"].T)}

    def _given(self, start: Start, W: Data | None, H: Data | None) -> Start:
        """The start, with both factors of ``init="custom"``."""
        blocks = dict(start or {})
        for name, factor in zip(self._names(), (W, H)):
            if factor is None:
                continue
            if self.init != "custom":
                raise ValueError(f"W and H are given, but init is {self.init!r}: expected 'custom'")
            factor = check_array(real(factor, "W or H"), dtype=[np.float64, np.float32], input_name="W or H")
            blocks[name] = factor.T if name == "factor_1" else factor
        if self.init == "custom" and not blocks:
            raise ValueError("init is 'custom', but neither W nor H is given")
        return blocks

    def _start_name(self) -> str:
        if self.init == "nndsvd" and self._kl:
            warn("init='nndsvd' has zeros, which the Kullback-Leibler divergence may not allow and iterations never change: they are filled as with 'nndsvda'")
            return "nndsvda"
        return super()._start_name()

    def _start(self, start: Start, shapes: Shapes, X: Data, observed: Mask) -> Blocks:
        k, most = shapes[self._names()[0]][1], min(X.shape)
        if str(self.init).startswith("nndsvd") and k > most:
            raise ValueError(f"init={self.init!r} needs n_components <= min(n_samples, n_features) = {most}, got {k}")
        return super()._start(start, shapes, X, observed)

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        loss = "kullback-leibler" if name == "nmf-kl" else "frobenius"
        return {"beta_loss": loss, **super()._params_of(name, settings, blocks)}

    def _count(self, blocks: Blocks) -> int:
        return int(blocks[self._names()[0]].shape[1])

    def _order(self) -> tuple[str, dict[str, Any]]:
        if not self._kl:
            raise ValueError(f"select: beta_loss is {self.beta_loss!r}, whose squared error is not a likelihood")
        penalties = ("alpha_W",) if isinstance(self.alpha_H, str) else ("alpha_W", "alpha_H")
        self._plainly("prior", "freeze", *penalties)
        return "plca", {}

    def _objective_name(self) -> str:
        if self._kl:
            return "penalised_divergence" if self._posterior else "kl_divergence"
        return "penalised_squared_error" if self._weights(*self._shape) else "squared_error"
