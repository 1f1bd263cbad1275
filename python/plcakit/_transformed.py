"""Probabilistic latent component analysis that is invariant to rotations, scales, mirrors and shifts."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ._base import GAP
from ._docs import described
from ._placed import PLACED, KernelMixture
from ._types import Array, Blocks, Callback, Data, Freeze, Mask, Priors, RandomState, Shapes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: What :meth:`TransformInvariantPLCA.copies` says of a copy.
COPY: list[Any] = [
    ("component", np.int64),
    ("angle", np.float64),
    ("scale", np.float64),
    ("mirrored", np.bool_),
    ("row", np.float64),
    ("column", np.float64),
    ("probability", np.float64),
]


class Turn(NamedTuple):
    """A transformation of the first two dimensions of a kernel."""

    angle: float
    scale: float
    mirrored: bool

    def matrix(self) -> Array:
        """The matrix `A` that acts on rows and columns."""
        turned = math.radians(self.angle)
        # Quarter turns are exact.
        quarters = {0.0: (0.0, 1.0), 90.0: (1.0, 0.0), 180.0: (0.0, -1.0), 270.0: (-1.0, 0.0)}
        sin, cos = quarters.get(self.angle % 360, (math.sin(turned), math.cos(turned)))
        side = -1.0 if self.mirrored else 1.0
        # [EXT 2] A = s R(angle) diag(1, ±1)
        return self.scale * np.array([[cos, -sin * side], [sin, cos * side]])

    def box(self, kernel: Sequence[int]) -> list[int]:
        """The extents of the box that holds a kernel of these extents transformed."""
        A = np.abs(self.matrix())
        plain = bool(np.isin(A, (0.0, 1.0)).all() and (A.sum(axis=1) == 1).all())
        # [EXT 2] r x r points a cell
        r = 1.0 if plain else 4.0 * max(1.0, math.ceil(self.scale - 1e-9))
        extents = []
        for d in (0, 1):
            like = 1 - d if A[d, 1 - d] > A[d, d] + 1e-12 else d
            p = 0.0 if kernel[like] % 2 else 0.5
            reach = float(A[d] @ [(kernel[0] - 1) / 2, (kernel[1] - 1) / 2]) + float(A[d].sum()) * (0.5 - 0.5 / r)
            # [EXT 2] 2 (p + n) + 1
            extents.append(int(2 * (p + max(math.ceil(reach + 1 - p - 1e-9) - 1, 0)) + 1))
        return extents


@described
class TransformInvariantPLCA(KernelMixture):
    r"""PLCA of images whose components appear turned, in several sizes, mirrored, and anywhere.

    .. math:: P(x) = \sum_z P(z) \sum_s H(s \mid z) \sum_{u : T_s(u) = x} a(s, u) \, K(u \mid z), \qquad \max \sum_x X_x \ln P(x)

    A map :math:`T_s` is one of the transformations with one of its positions, and takes the share `a` of cell `u` of a kernel to cell
    `x` of the data. The first two dimensions are transformed (rows downwards), others, such as colour,
    are carried along. The data are one array: there are no samples, and :meth:`transform` explains another one of its shape. An
    iteration costs what one of :class:`ShiftInvariantPLCA` does with a kernel for every component and transformation.

    Parameters
    ----------
    n_components : int, default=1
        The number of components.
    kernel : sequence of int
        The extents of the kernels along every dimension; those beyond the second are of the data. No larger than the smallest copy needs.
    rotations : int or sequence of float, default=1
        So many rotations by equal parts of a full turn, or their angles in degrees, positive as of :func:`numpy.rot90`.
    scales : float or sequence of float, default=1.0
        Sizes, in multiples of the kernel's own.
    mirror : bool, default=False
        Whether there are mirrored copies, too.
    positions : {"valid", "full", "centred"}, default="valid"
        Whether copies lie within the data, overlap them anywhere, or have their centre within.
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
    impulses_ : ndarray of shape (n_components, n_maps)
        How much every map is used; each sums to 1. Maps run over rotations, scales and mirrors, the last fastest, and for each of them
        over its positions, row after row; :meth:`copies` says which map is which.
    %(weights_)s
    %(objective_)s
    %(ended)s

    References
    ----------
    P. Smaragdis and B. Raj, "Shift-invariant probabilistic latent component analysis", technical report TR2007-009, Mitsubishi
    Electric Research Laboratories, 2007, which names the extension.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import TransformInvariantPLCA
    >>> shape = np.array([[4.0, 1.0], [0.0, 2.0]])
    >>> X = np.zeros((6, 6))
    >>> X[0:2, 0:2] += shape                                            # as it is
    >>> X[3:5, 3:5] += np.rot90(shape)                                  # and turned
    >>> prior = {"impulses": "entropic:5"}                              # few places
    >>> model = TransformInvariantPLCA(1, kernel=(2, 2), rotations=4, prior=prior, n_init=20, random_state=0).fit(X)
    >>> model.kernels_.shape, model.impulses_.shape                     # 4 rotations, 5 x 5 positions
    ((1, 2, 2), (1, 100))
    >>> one, other = np.sort(model.copies(), order="row")               # the kernel itself may come out turned
    >>> one["row"].item(), other["row"].item(), (other["angle"] - one["angle"]).item() % 360
    (0.5, 3.5, 90.0)
    """

    _saved = {"tiplca": ("weights", "kernels", "impulses")}
    rotations: int | Sequence[float]
    scales: float | Sequence[float]
    mirror: bool
    positions: str
    likelihood: str
    impulse_power: float

    _parameter_constraints = {
        **PLACED,
        **GAP,
        "rotations": [Interval(numbers.Integral, 1, 2**16 - 1, closed="both"), "array-like"],
        "scales": [Interval(numbers.Real, 0, None, closed="neither"), "array-like"],
        "mirror": ["boolean"],
        "positions": [StrOptions({"valid", "full", "centred"})],
        "likelihood": [StrOptions({"conditional", "literal"})],
        "impulse_power": [Interval(numbers.Real, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        kernel: Sequence[int] | int | None = None,
        rotations: int | Sequence[float] = 1,
        scales: float | Sequence[float] = 1.0,
        mirror: bool = False,
        positions: str = "valid",
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
        return "tiplca"

    def _angles(self) -> list[float]:
        given: Any = self.rotations
        if np.ndim(given) == 0:
            return [360.0 * i / int(given) for i in range(int(given))]
        return _numbers("rotations", given)

    def _sizes(self) -> list[float]:
        given: Any = self.scales
        return _numbers("scales", [given] if np.ndim(given) == 0 else given)

    def _options(self) -> dict[str, Any]:
        options = {
            "kernel": self._kernel(),
            "angles": self._angles(),
            "scales": self._sizes(),
            "mirror": bool(self.mirror),
            "positions": self.positions,
            "likelihood": self.likelihood,
        }
        options = {**options, **self._powers()}
        return {**options, "impulse_power": float(self.impulse_power)} if self.impulse_power != 1 else options

    def _turns(self) -> list[Turn]:
        """The transformations in the order of the maps: the last factor varies fastest, and equal ones are taken once."""
        turns: list[Turn] = []
        for angle in self._angles():
            for scale in self._sizes():
                for mirrored in (False, True) if self.mirror else (False,):
                    turn = Turn(angle, scale, mirrored)
                    if not any(np.allclose(turn.matrix(), other.matrix(), rtol=0, atol=1e-12) for other in turns):
                        turns.append(turn)
        return turns

    def _centres(self) -> Iterator[tuple[Turn, float, float, int, int]]:
        """For every transformation, in the order of the maps: the place of the centre of its first copy, and how many places there are each way."""
        kernel, shape = self._kernel(), self._shape
        for turn in self._turns():
            box = turn.box(kernel)
            first, many = [], []
            for n, extent in zip(shape[:2], box):
                # [EXT 2] valid 0..I - box, full -(box - 1)..I - 1, centred -floor(box/2)..I - 1 - floor(box/2)
                start = {"valid": 0, "full": 1 - extent}.get(self.positions, -(extent // 2))
                first.append(start + (extent - 1) / 2)
                many.append({"valid": n - extent + 1, "full": n + extent - 1}.get(self.positions, n))
            yield turn, first[0], first[1], many[0], many[1]

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        # How many maps there are the model alone knows.
        return {"weights": (k,), "kernels": (k, *self._extents(shape)), "impulses": None}

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        turns = {"rotations": tuple(settings.get("angles") or ()) or settings.get("rotations") or 1}
        turns["scales"] = tuple(settings.get("scales") or (1.0,))
        turns["positions"] = settings.get("positions") or "valid"
        return {**super()._params_of(name, settings, blocks), **turns, "mirror": bool(settings.get("mirror"))}

    def _file_settings(self) -> dict[str, Any]:
        given: Any = self.rotations
        turns = {"rotations": int(given)} if np.ndim(given) == 0 else {"angles": self._angles()}
        sizes = {"scales": self._sizes(), "mirror": bool(self.mirror), "positions": self.positions}
        return {"kernel": self._kernel(), **turns, **sizes, "likelihood": self.likelihood}

    def transform(self, X: Data, *, observed: Mask = None, return_gap: bool = False) -> Any:
        """Explain new data by the learnt kernels: positive deconvolution.

        Parameters
        ----------
        X : array-like or sparse, of the shape of the data that were fitted
            The data.
        %(observed)s
        return_gap : bool, default=False
            Whether to return, too, how far the answer is from the best one at most.

        Returns
        -------
        impulses : ndarray of shape (n_components, n_maps)
            How much every map is used.
        gap : ndarray
            The log-likelihood is at most the sum of the data times the gap below its maximum. Only with ``return_gap``.
        """
        return super().transform(X, observed=observed, return_gap=return_gap)

    def copies(self, impulses: Data = None, *, least: float = 0.01) -> Array:
        r"""Where the kernels lie, and how they are transformed there: the impulses, map by map.

        :func:`plcakit.plot.copies` draws them.

        Parameters
        ----------
        impulses : array-like of shape (n_components, n_maps), default=None
            What :meth:`transform` returned for other data; ``None``: ``impulses_``, of the data that were fitted.
        least : float, default=0.01
            Copies of a smaller probability are left out.

        Returns
        -------
        copies : ndarray of records ``component``, ``angle``, ``scale``, ``mirrored``, ``row``, ``column``, ``probability``
            One for every copy, the most probable first. A kernel is mirrored (its columns reversed), then resized by ``scale``, then rotated by
            ``angle``, in degrees, positive as of :func:`numpy.rot90`. ``row`` and ``column`` are the place of its centre, in cells of the data,
            counted from 0: a half where the centre is between two cells. ``probability`` is :math:`P(z) H(s \mid z)`, the share of the data that the copy
            explains; over all copies it sums to 1.
        """
        check_is_fitted(self)
        shares = np.asarray(self.impulses_ if impulses is None else impulses)
        if shares.shape != self.impulses_.shape:
            raise ValueError(f"impulses has the shape {shares.shape}, expected {self.impulses_.shape}")
        if not isinstance(least, numbers.Real) or not least >= 0:
            raise ValueError(f"least is {least!r}, expected a number >= 0")
        shares = shares * self.weights_[:, np.newaxis]
        found = []
        first = 0
        for turn, row, column, rows, columns in self._centres():
            for z, place in np.argwhere(shares[:, first:first + rows * columns] > least):
                at = (row + place // columns, column + place % columns)
                found.append((z, turn.angle, turn.scale, turn.mirrored, *at, shares[z, first + place]))
            first += rows * columns
        copies = np.array(found, dtype=COPY)
        return copies[np.argsort(-copies["probability"], kind="stable")]


def _numbers(name: str, given: Sequence[float]) -> list[float]:
    """Finite numbers, at least one."""
    found = np.asarray(given)
    if found.ndim != 1 or not found.size or found.dtype.kind not in "iuf" or not np.isfinite(found).all():
        raise ValueError(f"{name} is {given!r}, expected finite numbers")
    return [float(x) for x in found]
