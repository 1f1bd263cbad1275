"""Factorization of tensors of either sign under the Skellam law."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from ._base import COMMON, EXTRAPOLATED
from ._docs import described
from ._mixtures import MixtureModel, outer
from ._skellam import SIGNED, SignedModel
from ._types import Array, Blocks, Callback, Freeze, Priors, RandomState, Shapes


@described
class SkellamCP(SignedModel, MixtureModel):
    r"""Data of either sign and any order as a sum of products, the factor of one dimension of which is signed, under the Skellam law.

    .. math:: X \sim \mathrm{Sk}(L^+, L^-), \qquad L^\pm_{if j \dots} = \sum_k w_k \, T^\pm_{fk} B_{ik} C_{jk} \cdots,
              \qquad \sum_f T^+_{fk} + T^-_{fk} = \sum_i B_{ik} = \sum_j C_{jk} = 1

    The law is that of the difference of two Poisson counts; the expectation of the data is that of the factor :math:`T^+ - T^-`. Samples lie
    along the first dimension, and :meth:`transform` explains new ones, of ``method="vb"`` by their posterior means, unless `signed_mode`
    is 0 or `scale_mode` another dimension. An iteration costs about twice one of :class:`PLCA`.

    Parameters
    ----------
    %(n_components)s
    signed_mode : int, default=1
        The dimension whose factor is signed.
    scale_mode : int or None, default=None
        The dimension whose factor carries the scale, in place of the weights; with two dimensions that is :class:`SkellamSNMF`.
    method : {"em", "vb"}, default="em"
        The largest posterior by expectation-maximisation, or a distribution of the factors by variational Bayes.
    %(init)s
    solver : {"auto", "em", "squarem", "parabolic", "momentum"}, default="auto"
        How the objective is raised.
    replicates : int, float or "auto", default="auto"
        Draws of which a datum is the mean: 1 for differences of counts; "auto" for real data with noise, whose rates it bounds; infinity for
        real data without noise.
    real_data : bool, default=False
        Whether data that are no whole numbers are taken for a finite number of replicates, too.
    %(tol)s
    %(max_iter)s
    %(starts)s
    %(missing)s
    prior : dict or None, default=None
        Priors: ``"atoms"``, :math:`T^\pm`, and ``"factor_0"``, ``"factor_2"``, … as ``"dirichlet:A"``, ``"weights"``, or the factor that
        carries the scale, as ``"gamma:SHAPE,RATE"``, or objects of :mod:`plcakit.priors`.
    %(watch)s

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        What a component looks like: the products of the factors but the first. Of more dimensions, of shape
        ``(n_components, *X.shape[1:])``.
    %(weights_)s
    factors_ : list of ndarray of shape (X.shape[j], n_components)
        The factor of every dimension; that of `signed_mode` is :math:`T^+ - T^-`.
    factor_plus_, factor_minus_ : ndarray of shape (X.shape[signed_mode], n_components)
        Its sides.
    objective_ : float
        The log-posterior, or the lower bound of the log-evidence.
    %(cancellation_)s
    %(ended)s
    %(features)s

    References
    ----------
    B. Fuentes and G. Richard, "Probabilistic semi-nonnegative matrix factorization: a Skellam-based framework", 2021,
    https://arxiv.org/abs/2107.03317, which names the extension.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import SkellamCP
    >>> X = np.einsum("i,f,j->ifj", [1.0, 2.0], [3.0, -1.0], [1.0, 4.0])       # rank one, of either sign along the second dimension
    >>> model = SkellamCP(n_components=1, random_state=0).fit(X)
    >>> [factor.ravel().round(1).tolist() for factor in model.factors_]
    [[0.3, 0.7], [0.4, -0.1], [0.2, 0.8]]
    """

    _saved = {"skellam-cp": ("atoms",), "skellam-cp-vb": ("atoms", "atoms_shape")}
    components_: Array
    weights_: Array
    factors_: list[Array]
    factor_plus_: Array
    factor_minus_: Array

    signed_mode: int
    scale_mode: int | None

    _any_order = True
    _parameter_constraints = {
        **COMMON,
        **SIGNED,
        "method": [StrOptions({"em", "vb"})],
        "solver": [StrOptions(EXTRAPOLATED)],
        "signed_mode": [Interval(numbers.Integral, 0, None, closed="left")],
        "scale_mode": [Interval(numbers.Integral, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        signed_mode: int = 1,
        scale_mode: int | None = None,
        method: str = "em",
        init: str | None = None,
        solver: str = "auto",
        replicates: float | str = "auto",
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
        check_every: int = 10,
        time_limit: float | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self._take(locals())

    def _model(self) -> str:
        return "skellam-cp-vb" if self._vb else "skellam-cp"

    def _modes(self) -> dict[str, Any]:
        return {"signed_mode": int(self.signed_mode), "scale_mode": None if self.scale_mode is None else int(self.scale_mode)}

    def _options(self) -> dict[str, Any]:
        return {**self._modes(), **self._of_data()}

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        for name, mode in self._modes().items():
            if mode is not None and mode >= len(shape):
                raise ValueError(f"{name} is {mode}, but X has {len(shape)} dimensions, counted from 0")
        weights = {"weights": (k,)} if self.scale_mode is None else {}
        factors = {f"factor_{j}": (n, k) for j, n in enumerate(shape) if j != self.signed_mode}
        shapes: Shapes = {"atoms": (shape[self.signed_mode], k, 2), **weights, **factors}
        if not self._vb:
            return shapes
        scaled = self._scaled()
        of_shapes = {f"{name}_shape": size for name, size in shapes.items()}
        return {**of_shapes, f"{scaled}_rate": shapes[scaled]}

    def _scaled(self) -> str:
        """The block that carries the scale."""
        return "weights" if self.scale_mode is None else f"factor_{int(self.scale_mode)}"

    def _prior_shapes(self, shapes: Shapes) -> Shapes:
        named = {name.removesuffix("_shape"): size for name, size in shapes.items() if not name.endswith("_rate")}
        return {**named, self._scaled(): None}

    def _transform_options(self, shape: tuple[int, ...], along: int) -> dict[str, Any]:
        free = ("weights", "factor_0")
        priors = {name: prior for name, prior in (self.prior or {}).items() if name in free}
        return {**self._options(), "prior": self._priors_of(priors, self._block_shapes(shape, self.n_components_))}

    def _show(self, blocks: Blocks) -> None:
        plus, minus = blocks["atoms"][..., 0], blocks["atoms"][..., 1]
        self.factor_plus_, self.factor_minus_ = np.ascontiguousarray(plus), np.ascontiguousarray(minus)
        signed = self.factor_plus_ - self.factor_minus_
        order = len(self._shape)
        self.factors_ = [signed if j == self.signed_mode else blocks[f"factor_{j}"] for j in range(order)]
        self.weights_ = blocks.get("weights", np.ones(self._count(blocks), dtype=signed.dtype))
        self.components_ = outer(self.factors_[1:])

    def _answer(self, blocks: Blocks) -> Array:
        # Of samples that were explained each alone there is one of them.
        found = [blocks[name] for name in ("factor_0", "weights") if name in blocks]
        return found[0] if len(found) == 1 else found[0] * found[1]

    def _count(self, blocks: Blocks) -> int:
        return int(blocks["atoms"].shape[1])

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        modes = {"signed_mode": settings.get("signed_mode") or 0, "scale_mode": settings.get("scale_mode")}
        return {**modes, **super()._params_of(name, settings, blocks)}

    def _file_settings(self) -> dict[str, Any]:
        return {**self._modes(), **super()._file_settings()}
