"""Shift-invariant probabilistic latent component analysis."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from sklearn.utils._param_validation import Interval, StrOptions

from ._base import GAP, supported
from ._docs import described
from ._placed import SHIFTED, KernelMixture, ShiftedModel
from ._types import Blocks, Callback, Data, Freeze, Mask, Priors, RandomState, Shapes

if TYPE_CHECKING:
    from collections.abc import Sequence


@described
class ShiftInvariantPLCA(KernelMixture, ShiftedModel):
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
    %(anneal)s
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

    _saved = {"siplca": ("weights", "kernels", "impulses")}
    likelihood: str
    impulse_power: float

    _parameter_constraints = {
        **SHIFTED,
        **GAP,
        "likelihood": [StrOptions({"conditional", "literal"})],
        "impulse_power": [Interval(numbers.Real, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        kernel: Sequence[int] | int | None = None,
        support: str | Sequence[str] = "valid",
        likelihood: str = "conditional",
        impulse_power: float = 1.0,
        anneal: tuple[float, float] | None = None,
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
        time_limit: float | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self._take(locals())

    def _model(self) -> str:
        return "siplca"

    def _options(self) -> dict[str, Any]:
        options = {"kernel": self._kernel(), "support": self._supports(), "likelihood": self.likelihood}
        options = {**options, **self._powers()}
        return {**options, "impulse_power": float(self.impulse_power)} if self.impulse_power != 1 else options

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        return {"weights": (k,), "kernels": (k, *self._extents(shape)), "impulses": (k, *self._places(shape))}

    def _order(self) -> tuple[str, dict[str, Any]]:
        self._plainly("prior", "freeze")
        return self._model(), self._options()

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        return {**super()._params_of(name, settings, blocks), **supported(settings)}

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
        return super().transform(X, observed=observed, return_gap=return_gap)
