"""Shift-invariant probabilistic latent component analysis."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from ._base import COMMON, EXTRAPOLATED, GAP, Factorization
from ._docs import described
from ._types import Array, Blocks, Callback, Data, Freeze, Mask, Priors, RandomState, Shapes

if TYPE_CHECKING:
    from collections.abc import Sequence


@described
class ShiftInvariantPLCA(Factorization):
    r"""Shift-invariant PLCA of data of any order: every component is a kernel, placed wherever its impulse is positive.

    .. math:: P(x) = \sum_z P(z) \sum_t K(t \mid z) \, H(x - t + o \mid z), \qquad \max \sum_x X_x \ln P(x)

    The data are one array, such as a spectrogram: there are no samples, and :meth:`transform` explains another array by the kernels.

    Parameters
    ----------
    n_components : int, default=1
        The number of components.
    kernel : sequence of int
        The extent of the kernels along every dimension: 1 does not shift, that of the data neither.
    support : {"valid", "same", "full"} or a sequence of them, default="valid"
        Where kernels may lie: within the data, or beyond their border; for all dimensions or for each.
    likelihood : {"conditional", "literal"}, default="conditional"
        Whether what falls beyond the data is left out of account, or counts as 0.
    impulse_power : float, default=1.0
        Impulses are raised to this power, at least 1, after every M-step: above 1 they become sparse, and the likelihood may fall.
    %(init)s
    solver : {"auto", "em", "squarem", "parabolic", "momentum"}, default="auto"
        How the likelihood is maximised.
    %(tol)s
    %(max_iter)s
    %(transform_tol)s
    %(starts)s
    %(missing)s
    prior : dict or None, default=None
        Priors of ``"weights"``, ``"kernels"``, ``"impulses"``: texts of the command such as ``"entropic:2"``, or objects of
        :mod:`plcakit.priors`.
    %(watch)s

    Attributes
    ----------
    kernels_ : ndarray of shape (n_components, *kernel)
        The kernels; each sums to 1.
    impulses_ : ndarray of shape (n_components, ...)
        Where they lie; each sums to 1.
    %(weights_)s
    %(objective_)s
    %(ended)s

    References
    ----------
    P. Smaragdis and B. Raj, "Shift-invariant probabilistic latent component analysis", technical report TR2007-009, Mitsubishi
    Electric Research Laboratories, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import ShiftInvariantPLCA
    >>> X = np.array([0.0, 1.0, 3.0, 2.0, 6.0, 0.0])                  # the pattern 1 3, twice
    >>> model = ShiftInvariantPLCA(1, kernel=(2,), random_state=2).fit(X)
    >>> model.kernels_.shape, model.impulses_.shape
    ((1, 2), (1, 5))
    """

    kernels_: Array
    impulses_: Array
    weights_: Array
    kernel: Any
    support: str | Sequence[str]
    likelihood: str
    impulse_power: float

    _any_order = True
    _parameter_constraints = {
        **COMMON,
        **GAP,
        "kernel": ["array-like", Interval(numbers.Integral, 1, None, closed="left")],
        "support": [StrOptions({"valid", "same", "full"}), "array-like"],
        "likelihood": [StrOptions({"conditional", "literal"})],
        "impulse_power": [Interval(numbers.Real, 1, None, closed="left")],
        "solver": [StrOptions(EXTRAPOLATED)],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        kernel: Sequence[int] | int | None = None,
        support: str | Sequence[str] = "valid",
        likelihood: str = "conditional",
        impulse_power: float = 1.0,
        init: str | None = None,
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    def _model(self) -> str:
        return "siplca"

    def _validated(self, X: Data, reset: bool, how: dict[str, Any]) -> Any:
        # There are no features whose number or names could differ.
        return check_array(X, ensure_2d=False, input_name="X", **how)

    def _kernel(self) -> list[int]:
        extents: list[Any] = [self.kernel] if np.ndim(self.kernel) == 0 else list(self.kernel)
        whole = [isinstance(n, numbers.Integral) and not isinstance(n, (bool, np.bool_)) and 1 <= int(n) < 2**63 for n in extents]
        if not extents or not all(whole):
            raise ValueError(f"kernel is {self.kernel!r}, expected a whole number >= 1 for every dimension of X")
        return [int(n) for n in extents]

    def _supports(self) -> list[str]:
        return [self.support] if isinstance(self.support, str) else [str(s) for s in self.support]

    def _options(self) -> dict[str, Any]:
        options = {"kernel": self._kernel(), "support": self._supports(), "likelihood": self.likelihood}
        return {**options, "impulse_power": float(self.impulse_power)} if self.impulse_power != 1 else options

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        kernel, supports = self._kernel(), self._supports()
        if len(kernel) != len(shape):
            raise ValueError(f"kernel is {self.kernel!r}, expected {len(shape)} extents for X of shape {tuple(shape)}")
        if len(supports) == 1:
            supports = supports * len(kernel)
        if len(supports) != len(kernel):
            raise ValueError(f"support is {self.support!r}, expected one, or one for each of {len(kernel)} dimensions")
        places = []
        for n, extent, support in zip(shape, kernel, supports):
            if extent > n:
                raise ValueError(f"kernel is {self.kernel!r}, larger than X of shape {tuple(shape)}")
            places.append({"valid": n - extent + 1, "same": n, "full": n + extent - 1}.get(support, 0))
        return {"weights": (k,), "kernels": (k, *kernel), "impulses": (k, *places)}

    def _order(self) -> tuple[str, dict[str, Any]]:
        self._plainly("prior", "freeze")
        return self._model(), self._options()

    def _show(self, blocks: Blocks) -> None:
        self.weights_ = blocks["weights"]
        self.kernels_ = blocks["kernels"]
        self.impulses_ = blocks["impulses"]

    def _answer(self, blocks: Blocks) -> Array:
        return blocks["impulses"]

    def _answer_empty(self, samples: int, dtype: Any) -> Array:
        raise ValueError("X has no positive cell: there is nothing to fit")

    def _count(self, blocks: Blocks) -> int:
        return len(blocks["weights"])

    def _file_settings(self) -> dict[str, Any]:
        return {"kernel": self._kernel(), "likelihood": self.likelihood}

    def transform(self, X: Data, *, observed: Mask = None, return_gap: bool = False) -> Any:
        """Find the impulses of new data under the learnt kernels: positive deconvolution.

        Parameters
        ----------
        X : array-like or sparse, of the order of the data that were fitted
            The data; of any size that holds a kernel.
        %(observed)s
        return_gap : bool, default=False
            Whether to return, too, how far the answer is from the best one at most.

        Returns
        -------
        impulses : ndarray of shape (n_components, ...)
            Where the kernels lie in `X`.
        gap : ndarray
            The log-likelihood is at most the sum of the data times the gap below its maximum. Only with ``return_gap``.
        """
        check_is_fitted(self)
        X, observed = self._check(X, observed, False, "transform")
        answer, found = self._explain(X, observed)
        return (answer, found["gap"]) if return_gap else answer
