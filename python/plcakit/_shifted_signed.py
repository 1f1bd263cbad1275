"""Shift-invariant factorization of data of either sign under the Skellam law."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import StrOptions

from ._base import annealed, supported
from ._docs import described
from ._placed import SHIFTED, ShiftedModel
from ._skellam import SIGNED, SIGNED_BLOCKS, SIGNED_VB_BLOCKS, SignedModel
from ._types import Array, Blocks, Callback, Data, Freeze, Mask, Priors, RandomState, Shapes

if TYPE_CHECKING:
    from collections.abc import Sequence


@described
class ShiftInvariantSkellam(SignedModel, ShiftedModel):
    r"""Semi-NMF of one array of either sign and any order: every component is a signed kernel, placed wherever it is active.

    .. math:: X_x \sim \mathrm{Sk}(L^+_x, L^-_x), \qquad L^\pm_x = \sum_k \sum_t T^\pm_{kt} \, H_{k, x - t + o},
              \qquad \sum_t T^+_{kt} + T^-_{kt} = 1

    The law is that of the difference of two Poisson counts; the expectation of the data is that of the kernels :math:`T^+ - T^-`. What lies
    beyond the data is latent. The data are one array, such as a signal: there are no samples, and :meth:`transform` explains another one.
    An iteration costs about twice one of :class:`ShiftInvariantPLCA`.

    Parameters
    ----------
    n_components : int, default=1
        The number of components.
    kernel : sequence of int
        The extent of the kernels along every dimension: 1 does not shift, that of the data neither.
    support : {"valid", "same", "full"} or a sequence of them, default="valid"
        Where kernels may lie: within the data, or beyond their border; for all dimensions or for each.
    method : {"em", "vb"}, default="em"
        The largest posterior by expectation-maximisation, or a distribution of the factors by variational Bayes.
    anneal : (float, float) or None, default=None
        Of ``method="em"`` alone: both sides of a kernel are raised jointly to a power after every M-step, from the first number, in (0, 1],
        to 1 in as many iterations as the second says. The objective may fall until then.
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
        Priors: ``"atoms"`` as ``"dirichlet:A"``, ``"activations"`` as ``"gamma:SHAPE,RATE"``, or objects of :mod:`plcakit.priors`.
    %(watch)s

    Attributes
    ----------
    kernels_ : ndarray of shape (n_components, *kernel)
        :math:`T^+ - T^-`.
    kernels_plus_, kernels_minus_ : ndarray of shape (n_components, *kernel)
        Both sides; of a component they sum to 1 together.
    activations_ : ndarray of shape (n_components, ...)
        Where and how strongly the kernels lie, :math:`H`, in the units of the data.
    objective_ : float
        The log-posterior, or the lower bound of the log-evidence.
    %(cancellation_)s
    %(ended)s

    References
    ----------
    B. Fuentes and G. Richard, "Probabilistic semi-nonnegative matrix factorization: a Skellam-based framework", 2021,
    https://arxiv.org/abs/2107.03317, which names the extension.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import ShiftInvariantSkellam
    >>> X = np.array([0.0, 2.0, -3.0, 0.0, 0.0, 4.0, -6.0, 0.0])       # the wavelet 2 -3, twice
    >>> model = ShiftInvariantSkellam(1, kernel=(2,), random_state=0).fit(X)
    >>> model.kernels_.shape, model.activations_.shape
    ((1, 2), (1, 7))
    """

    _saved = {"siskellam": SIGNED_BLOCKS, "siskellam-vb": SIGNED_VB_BLOCKS}
    kernels_: Array
    kernels_plus_: Array
    kernels_minus_: Array
    activations_: Array

    _parameter_constraints = {**SHIFTED, **SIGNED, "method": [StrOptions({"em", "vb"})]}

    def __init__(
        self,
        n_components: int = 1,
        *,
        kernel: Sequence[int] | int | None = None,
        support: str | Sequence[str] = "valid",
        method: str = "em",
        anneal: tuple[float, float] | None = None,
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
        return "siskellam-vb" if self._vb else "siskellam"

    def _options(self) -> dict[str, Any]:
        if self._vb and self.anneal is not None:
            raise ValueError(f"anneal is {self.anneal!r}, which method='vb' does not have: expected None")
        return {"kernel": self._kernel(), "support": self._supports(), **self._powers(), **self._of_data()}

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        atoms, places = (k, *self._extents(shape), 2), (k, *self._places(shape))
        if self._vb:
            return {"atoms_shape": atoms, "activations_shape": places, "activations_rate": places}
        return {"atoms": atoms, "activations": places}

    def _prior_shapes(self, shapes: Shapes) -> Shapes:
        return {"atoms": shapes.get("atoms_shape", shapes.get("atoms")), "activations": None}

    def _transform_options(self, shape: tuple[int, ...], along: int) -> dict[str, Any]:
        priors = {name: prior for name, prior in (self.prior or {}).items() if name == "activations"}
        return {**self._options(), "prior": self._priors_of(priors, {})}

    def _show(self, blocks: Blocks) -> None:
        atoms = blocks["atoms"]
        self.kernels_plus_ = np.ascontiguousarray(atoms[..., 0])
        self.kernels_minus_ = np.ascontiguousarray(atoms[..., 1])
        self.kernels_ = self.kernels_plus_ - self.kernels_minus_
        self.activations_ = blocks["activations"]

    def _answer(self, blocks: Blocks) -> Array:
        return blocks["activations"]

    def _count(self, blocks: Blocks) -> int:
        return len(blocks["activations"])

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        kernel = {"kernel": tuple(int(n) for n in blocks["atoms"].shape[1:-1])}
        return {**kernel, **supported(settings), **annealed(settings), **super()._params_of(name, settings, blocks)}

    def _file_settings(self) -> dict[str, Any]:
        return {"kernel": self._kernel(), "domain": self._supports(), **super()._file_settings()}

    def transform(self, X: Data, *, observed: Mask = None, return_gap: bool = False) -> Any:
        """Explain new data by the learnt kernels.

        Parameters
        ----------
        X : array-like or sparse, of the order of the data that were fitted
            The data; of any size that holds a kernel.
        %(observed)s
        return_gap : bool, default=False
            Whether to return, too, how far the answer is from the best one, of which nothing is known here: an empty array.

        Returns
        -------
        activations : ndarray of shape (n_components, ...)
            Where and how strongly the kernels lie in `X`; with ``method="vb"`` the posterior means.
        gap : ndarray
            Empty. Only with ``return_gap``.
        """
        return super().transform(X, observed=observed, return_gap=return_gap)
