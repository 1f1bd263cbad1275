"""What models share whose components are kernels, placed all over one array."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from ._base import COMMON, EXTRAPOLATED, Factorization, annealed
from ._types import Array, Blocks, Data, Mask

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Settings that models of kernels have.
PLACED: dict[str, Any] = {
    **COMMON,
    "kernel": ["array-like", Interval(numbers.Integral, 1, None, closed="left")],
    "solver": [StrOptions(EXTRAPOLATED)],
    "anneal": ["array-like", None],
}

#: Those of kernels that are shifted along any dimensions.
SHIFTED: dict[str, Any] = {**PLACED, "support": [StrOptions({"valid", "same", "full"}), "array-like"]}


class PlacedModel(Factorization):
    """Models of one array without samples, whose components are kernels that lie anywhere in it."""

    kernel: Any
    anneal: tuple[float, float] | None

    _any_order = True
    _signed = "ShiftInvariantSkellam"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    def _validated(self, X: Data, reset: bool, how: dict[str, Any]) -> Any:
        # There are no features whose number or names could differ.
        return check_array(X, ensure_2d=False, input_name="X", **how)

    def _kernel(self) -> list[int]:
        extents: list[Any] = [self.kernel] if np.ndim(self.kernel) == 0 else list(self.kernel)
        whole = [isinstance(n, numbers.Integral) and not isinstance(n, (bool, np.bool_)) and 1 <= int(n) < 2**63 for n in extents]
        if not extents or not all(whole):
            raise ValueError(f"kernel is {self.kernel!r}, expected a whole number >= 1 for every dimension of X")
        return [int(n) for n in extents]

    def _powers(self) -> dict[str, Any]:
        """The power of the kernels, if there is one."""
        if self.anneal is None:
            return {}
        both = np.asarray(self.anneal)
        if both.shape != (2,) or both.dtype.kind not in "iuf" or not np.isfinite(both).all():
            raise ValueError(f"anneal is {self.anneal!r}, expected two finite numbers: the first power, and the iterations until it is 1")
        return {"anneal": [float(x) for x in both]}

    def _extents(self, shape: tuple[int, ...]) -> list[int]:
        """The extents of a kernel, one for every dimension of data of this shape."""
        kernel = self._kernel()
        if len(kernel) != len(shape):
            raise ValueError(f"kernel is {self.kernel!r}, expected {len(shape)} extents for X of shape {tuple(shape)}")
        if any(extent > n for n, extent in zip(shape, kernel)):
            raise ValueError(f"kernel is {self.kernel!r}, larger than X of shape {tuple(shape)}")
        return kernel

    def _answer_empty(self, samples: int, dtype: Any) -> Array:
        raise ValueError("X has no positive cell: there is nothing to fit")

    def transform(self, X: Data, *, observed: Mask = None, return_gap: bool = False) -> Any:
        check_is_fitted(self)
        X, observed = self._check(X, observed, False, "transform")
        answer, found = self._explain(X, observed)
        return (answer, found["gap"]) if return_gap else answer


class ShiftedModel(PlacedModel):
    """Models of kernels that are shifted along any dimensions."""

    support: str | Sequence[str]

    def _supports(self) -> list[str]:
        return [self.support] if isinstance(self.support, str) else [str(s) for s in self.support]

    def _places(self, shape: tuple[int, ...]) -> list[int]:
        """The extents of the places of kernels on data of this shape."""
        kernel, supports = self._extents(shape), self._supports()
        if len(supports) == 1:
            supports = supports * len(kernel)
        if len(supports) != len(kernel):
            raise ValueError(f"support is {self.support!r}, expected one, or one for each of {len(kernel)} dimensions")
        sizes = zip(shape, kernel, supports)
        return [{"valid": n - extent + 1, "same": n, "full": n + extent - 1}.get(support, 0) for n, extent, support in sizes]


class KernelMixture(PlacedModel):
    """Kernels that are distributions, and impulses that say where they lie."""

    kernels_: Array
    impulses_: Array
    weights_: Array

    def _show(self, blocks: Blocks) -> None:
        self.weights_ = blocks["weights"]
        self.kernels_ = blocks["kernels"]
        self.impulses_ = blocks["impulses"]

    def _answer(self, blocks: Blocks) -> Array:
        return blocks["impulses"]

    def _transform_options(self, shape: tuple[int, ...], along: int) -> dict[str, Any]:
        # The kernels that were learnt, whatever the settings are now.
        return {"kernel": list(self._blocks["kernels"].shape[1:])}

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        kernel = {"kernel": tuple(int(n) for n in blocks["kernels"].shape[1:])}
        params = {**kernel, **annealed(settings), **super()._params_of(name, settings, blocks)}
        if settings.get("likelihood"):
            params["likelihood"] = settings["likelihood"]
        power = settings.get("impulse_power")
        # One that falls to 1 is of its fit alone.
        if power and power[1] is None:
            params["impulse_power"] = power[0]
        return params

    def _count(self, blocks: Blocks) -> int:
        return len(blocks["weights"])
