"""Factorization of data of either sign under the Skellam distribution."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from ._base import COMMON, EXTRAPOLATED, Factorization, laws_of
from ._docs import described
from ._mixtures import MixtureModel
from ._types import Array, Blocks, Callback, Data, Freeze, Mask, Priors, RandomState, Shapes, Start
from ._warn import warn


#: Rates that sum to more than this many times the data have run away.
AWAY = 10.0

#: Settings of models of data of either sign.
SIGNED: dict[str, Any] = {
    "replicates": [StrOptions({"auto"}), Interval(numbers.Real, 1, None, closed="both")],
    "real_data": ["boolean"],
}

#: The blocks of files of a matrix and of kernels, and of their posteriors.
SIGNED_BLOCKS = ("atoms", "activations")
SIGNED_VB_BLOCKS = (*SIGNED_BLOCKS, "atoms_shape", "activations_shape", "activations_rate")


class SignedModel(Factorization):
    """Models of data of either sign, by EM or variational Bayes."""

    method: str
    replicates: float | str
    real_data: bool
    prior: Priors
    cancellation_: float

    _counts = False
    _per = "observed"

    @property
    def _vb(self) -> bool:
        return self.method == "vb"

    def _of_data(self) -> dict[str, Any]:
        return {**self._replicates(), "real_data": bool(self.real_data)}

    def _replicates(self) -> dict[str, Any]:
        return {} if self.replicates == "auto" else {"replicates": float(self.replicates)}

    def _objective_name(self) -> str:
        return "elbo" if self._vb else "log_posterior"

    def _scaled(self) -> str:
        """The block that carries the scale."""
        return "activations"

    def _fit(self, X: Data, observed: Mask = None, start: Start = None) -> tuple[Any, Array | None]:
        X, observed = super()._fit(X, observed, start)
        values = np.asarray(X if isinstance(X, np.ndarray) else X.data)
        if observed is not None and observed.shape == values.shape:
            values = values[observed]
        size = float(np.nansum(np.abs(values), dtype=float))
        self.cancellation_ = float(self._blocks[self._scaled()].sum(dtype=float) / size) if size > 0 else 0.0
        bounded = self.replicates == "auto" and not self._vb and not self.prior
        real = self.replicates == "auto" or np.isinf(float(self.replicates))
        if real and not bounded and self.cancellation_ > AWAY:
            remedy = (
                "the priors do not bound them: they have the unit of the data, give one of the activations, 'gamma:SHAPE,RATE'"
                if self._vb
                else "replicates='auto' without a prior of the activations bounds them"
            )
            warn(
                f"both rates together sum to {self.cancellation_:.0f} times the data: without a bound the objective improves as they grow, "
                f"whatever is reconstructed; {remedy}"
            )
        return X, observed

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        m = settings.get("m") or "inf"
        of_data = {"replicates": m if m == "auto" else float(m), "real_data": settings.get("real_data", False)}
        method = "vb" if name.endswith("-vb") else "em"
        return {"method": method, "prior": laws_of(settings), **of_data, **super()._params_of(name, settings, blocks)}

    def _file_settings(self) -> dict[str, Any]:
        m = "auto" if self.replicates == "auto" else "inf" if np.isinf(float(self.replicates)) else str(int(self.replicates))
        return {"m": m, "real_data": bool(self.real_data)}


@described
class SkellamSNMF(SignedModel, MixtureModel):
    r"""Semi-NMF of data of either sign: signed atoms, non-negative activations, under the Skellam distribution.

    .. math:: X^\top \sim \mathrm{Sk}(T^+ H, T^- H), \qquad T^\pm, H \ge 0, \qquad \sum_f T^+_{fk} + T^-_{fk} = 1

    The law is that of the difference of two Poisson counts; the expectation of the data is :math:`(T^+ - T^-) H`. Samples are rows
    here and columns of the files of the command ``plca fit skellam``.

    Parameters
    ----------
    %(n_components)s
    method : {"em", "vb"}, default="em"
        The largest posterior by expectation-maximisation, or a distribution of the factors by variational Bayes.
    %(init)s
    solver : {"auto", "em", "squarem", "parabolic", "momentum"}, default="auto"
        How the objective is raised.
    replicates : int, float or "auto", default="auto"
        Draws of which a datum is the mean: 1 for differences of counts; "auto" for real data with noise, whose rates it bounds; infinity for
        real data without noise.
    real_data : bool, default=False
        Whether data that are not whole numbers are taken for a finite number of replicates, too.
    floor : float, default=0.0
        The least sum of counts and pseudo-counts of a fit by EM, for priors of shapes below 1: without it they empty their blocks.
    %(tol)s
    %(max_iter)s
    %(starts)s
    %(missing)s
    prior : dict or None, default=None
        Priors: ``"atoms"`` as ``"dirichlet:A"``, ``"activations"`` as ``"gamma:SHAPE,RATE"``, or objects of :mod:`plcakit.priors`.
    %(watch)s

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        :math:`T^+ - T^-`, transposed.
    components_plus_, components_minus_ : ndarray of shape (n_components, n_features)
        Both sides.
    objective_ : float
        The log-posterior, or the lower bound of the log-evidence.
    %(cancellation_)s
    %(ended)s
    %(features)s

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

    _saved = {"skellam": SIGNED_BLOCKS, "skellam-vb": SIGNED_VB_BLOCKS}
    components_plus_: Array
    components_minus_: Array

    floor: float

    _transposed = True
    _along = 1
    _parameter_constraints = {
        **COMMON,
        **SIGNED,
        "method": [StrOptions({"em", "vb"})],
        "solver": [StrOptions(EXTRAPOLATED)],
        "floor": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        method: str = "em",
        init: str | None = None,
        solver: str = "auto",
        replicates: float | str = "auto",
        real_data: bool = False,
        floor: float = 0.0,
        tol: float = 1e-7,
        max_iter: int = 1000,
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

    def _model(self) -> str:
        return "skellam-vb" if self._vb else "skellam"

    def _options(self) -> dict[str, Any]:
        if not self.floor:
            return self._of_data()
        if self._vb:
            raise ValueError(f"floor is {self.floor}, which method='vb' does not have: expected 0")
        return {**self._of_data(), "floor": float(self.floor)}

    def _transform_options(self, shape: tuple[int, ...], along: int) -> dict[str, Any]:
        options = self._of_data()
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

    def sample(self, n: int = 1, *, random_state: RandomState = None, as_sparse: bool = False) -> Any:
        """Draw data from the learnt model: the sum of `n` matrices, each the mean of `replicates` differences of Poisson counts.

        Of ``method="vb"`` the rates are those of the posterior means. Needs a finite number of `replicates`.

        Parameters
        ----------
        n : int, default=1
            How many matrices are drawn and added up.
        random_state : int, RandomState, Generator or None, default=None
            A whole number is the seed of the command ``plca sample``.
        as_sparse : bool, default=False
            Whether to return a sparse matrix (CSR).

        Returns
        -------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            The sum.
        """
        return self._sample(n, random_state, as_sparse, self._replicates())

    def _count(self, blocks: Blocks) -> int:
        return int(blocks["atoms"].shape[1])

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        return {"floor": settings.get("floor") or 0.0, **super()._params_of(name, settings, blocks)}

    def _order(self) -> tuple[str, dict[str, Any]]:
        if not self._vb:
            raise ValueError("select: SkellamSNMF has a score only with method='vb', the evidence lower bound")
        self._plainly("freeze")
        return self._model(), {**self._options(), **({"prior": {}} if self.prior else {})}

    def _file_settings(self) -> dict[str, Any]:
        return {**super()._file_settings(), "floor": float(self.floor)}
