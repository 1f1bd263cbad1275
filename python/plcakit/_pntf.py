"""Factors and weights on the simplex under squared error."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import StrOptions

from ._base import COMMON, EXTRAPOLATED
from ._docs import described
from ._mixtures import ProductModel
from ._types import Array, Blocks, Callback, Freeze, RandomState, Shapes
from ._warn import warn

#: Share of the data above which what is negative is hardly noise, as of the command.
_NOISE = 0.1


@described
class PNTF(ProductModel):
    r"""Probabilistic non-negative factorization of data of any order under squared error.

    .. math:: \min \sum_x \Bigl( G_x - \sum_z w_z \prod_j F_j[x_j, z] \Bigr)^2, \qquad w \text{ and the columns of } F_j \text{ on the simplex}

    `G` are the data divided by their sum. Samples lie along the first dimension. Values below 0 are taken for noise, with a warning; the sum is to be above 0.

    Parameters
    ----------
    %(n_components)s
    sparsity : dict or None, default=None
        Quadratic sparsity: a number >= 0 for each of ``"weights"``, ``"factor_0"``, ``"factor_1"`` ..., which is `mu_w`, `mu_0`, `mu_1` ... below. The
        larger it is, the fewer entries share the sum of a column. The fit minimises the squared error less
        `2 mu_w |w|^2 + 2 sum_j mu_j sum_z w_z |F_j[:, z]|^2`.
    init : {"random", "custom", "deflation"} or None, default=None
        The start: drawn, as by the command, given, or component after component from what the earlier ones leave over.
    solver : {"auto", "em", "squarem", "parabolic", "momentum"}, default="auto"
        Plain sweeps, or extrapolated ones.
    %(tol)s
    %(max_iter)s
    %(starts)s
    %(watch)s

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
        That squared error, less what ``sparsity`` takes off it.
    %(ended)s
    %(features)s

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

    _saved = {"pntf": ("weights", "factor_0", "factor_1")}
    reconstruction_err_: float

    _hides = False
    _minimised = True
    _shares = True
    _per = "observed"
    missing = None
    prior = None
    _parameter_constraints = {
        **{name: rule for name, rule in COMMON.items() if name not in ("missing", "prior")},
        "sparsity": [dict, None],
        "init": [StrOptions({"random", "custom", "deflation"}), None],
        "solver": [StrOptions(EXTRAPOLATED)],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        sparsity: dict[str, float] | None = None,
        init: str | None = None,
        solver: str = "auto",
        tol: float = 1e-7,
        max_iter: int = 1000,
        random_state: RandomState = None,
        n_init: int = 1,
        n_jobs: int | None = None,
        warm_start: bool = False,
        freeze: Freeze = (),
        check_every: int = 10,
        time_limit: float | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self._take(locals())

    def _model(self) -> str:
        return "pntf"

    def _check_signs(self, X: Any, whom: str) -> None:
        values = X.data if sparse.issparse(X) else X
        below = -float(values[values < 0].sum(dtype=float))
        if below:
            share = below / float(np.abs(values).sum(dtype=float))
            if whom == "fit" and share > 0.5 - 8 * np.finfo(values.dtype).eps:
                # Without a sum that is above 0, but for rounding, there are no shares of it.
                super()._check_signs(X, whom)
            warn(
                "some values of X are negative: they are taken for noise about what is >= 0"
                if share <= _NOISE
                else f"{share:.0%} of X, by absolute values, are negative, too much for noise about what is >= 0: {self._signed} is for data of either sign"
            )

    def _penalties(self, shapes: Shapes) -> dict[str, Any]:
        sparsity: dict[str, float] = {}
        for name, mu in (self.sparsity or {}).items():
            if name not in shapes:
                raise ValueError(f"sparsity: no block '{name}', expected one of {', '.join(shapes)}")
            if isinstance(mu, (bool, np.bool_)) or not isinstance(mu, (int, float, np.integer, np.floating)) or not 0 <= mu < np.inf:
                raise ValueError(f"sparsity of '{name}' is {mu!r}, expected a finite number >= 0")
            sparsity[name] = float(mu)
        return sparsity

    def _reward(self, blocks: Blocks) -> float:
        """What sparsity takes off the squared error."""
        sparsity = self._penalties(blocks)
        weights = np.ravel(blocks["weights"]).astype(float)
        squares = sparsity.pop("weights", 0.0) * weights
        squares = squares + sum(mu * np.sum(np.square(blocks[name], dtype=float), axis=0) for name, mu in sparsity.items())
        return 2 * float(weights @ squares)

    def _show(self, blocks: Blocks) -> None:
        super()._show(blocks)
        self.reconstruction_err_ = float(np.sqrt(max(self.objective_ + self._reward(blocks), 0.0)))

    def _answer(self, blocks: Blocks) -> Array:
        return np.ascontiguousarray(blocks["mixture"].T)

    def _objective_name(self) -> str:
        return "penalised_squared_error" if self.sparsity else "squared_error"

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        given = settings.get("sparsity") or []
        try:
            sparsity = {name: float(mu) for name, mu in (text.split("=", 1) for text in given)}
        except (AttributeError, TypeError, ValueError):
            raise ValueError(f"'sparsity' of its settings is {given!r}, expected texts such as 'factor_0=0.1'") from None
        return {"sparsity": sparsity or None, **super()._params_of(name, settings, blocks)}

    def _file_settings(self) -> dict[str, Any]:
        return {**super()._file_settings(), "sparsity": [f"{name}={float(mu):.17g}" for name, mu in (self.sparsity or {}).items()]}
