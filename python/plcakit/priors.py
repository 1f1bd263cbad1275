"""Priors of blocks, as objects whose text is a prior of the command.

``prior={"mixture": Entropic(2.0)}`` and ``prior={"mixture": "entropic:2.0"}`` mean the same.

Examples
--------
>>> from plcakit.priors import Dirichlet, Entropic
>>> str(Entropic(2.0)), str(Dirichlet(1.5))
('entropic:2.0', 'dirichlet:1.5')
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Prior",
    "Dirichlet",
    "Entropic",
    "CrossEntropy",
    "Lagged",
    "Neighbours",
    "LogisticNormal",
    "Flat",
    "Gamma",
    "Penalty",
]


def _number(name: str, value: Any, least: float = -np.inf, *, above: bool = False) -> float:
    """A finite number, at least or above a limit."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)):
        number = float(value)
        if np.isfinite(number) and (number > least if above else number >= least):
            return number
    limit = "" if least == -np.inf else f" {'>' if above else '>='} {least:g}"
    raise ValueError(f"{name} is {value!r}, expected a finite number{limit}")


def _groups(groups: Sequence[Sequence[int]]) -> str:
    """The number of the group of every component."""
    members = sorted(z for group in groups for z in group)
    if members != list(range(len(members))):
        raise ValueError(f"groups is {groups!r}, expected each component, counted from 0, in exactly one group")
    of = {z: g for g, members in enumerate(groups) for z in members}
    return "/".join(str(of[z]) for z in sorted(of))


class Prior:
    """A prior of a block: its text is ``str(prior)``.

    Priors of the same text are equal.

    Examples
    --------
    >>> from plcakit.priors import Flat, Prior
    >>> isinstance(Flat(), Prior), Flat() == Flat()
    (True, True)
    """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def setting(self, shape: tuple[int, ...] | None) -> str | NDArray[np.float64]:
        """What the extension module takes, for a block of this shape."""
        return str(self)


class Dirichlet(Prior):
    r"""Pseudo-counts :math:`\alpha - 1` for every entry, :math:`\ln p(\theta) = \sum_i (\alpha_i - 1) \ln \theta_i`.

    Parameters
    ----------
    alpha : float or array
        One number for all entries, or an array that broadcasts to the shape of the block.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import PLSA
    >>> from plcakit.priors import Dirichlet
    >>> X = np.array([[4.0, 4.0, 0.0], [0.0, 0.0, 6.0]])
    >>> model = PLSA(2, prior={"basis": Dirichlet(1.5)}, random_state=0).fit(X)
    >>> bool(model.components_.min() > 0)                       # half a count more in every entry
    True
    """

    def __init__(self, alpha: float | ArrayLike) -> None:
        one = np.ndim(alpha) == 0
        self.alpha: Any = _number("alpha", alpha) if one else np.asarray(alpha, dtype=np.float64)
        if not np.isfinite(self.alpha).all():
            raise ValueError(f"alpha is {alpha!r}, expected finite numbers")

    def __str__(self) -> str:
        if not isinstance(self.alpha, np.ndarray):
            return f"dirichlet:{float(self.alpha)!r}"
        return f"dirichlet:array of shape {self.alpha.shape}"

    def __repr__(self) -> str:
        many = isinstance(self.alpha, np.ndarray) and self.alpha.size > 10
        return f"Dirichlet(array of shape {self.alpha.shape})" if many else f"Dirichlet({self.alpha!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dirichlet) and np.array_equal(self.alpha, other.alpha)

    __hash__ = Prior.__hash__

    def setting(self, shape: tuple[int, ...] | None) -> str | NDArray[np.float64]:
        if not isinstance(self.alpha, np.ndarray):
            return str(self)
        if shape is None:
            raise ValueError(f"prior: alpha has shape {self.alpha.shape}, but this block takes one number")
        try:
            return np.ascontiguousarray(np.broadcast_to(self.alpha, shape))
        except ValueError:
            raise ValueError(
                f"prior: alpha of shape {self.alpha.shape} does not broadcast to a block of shape {shape}"
            ) from None


class Entropic(Prior):
    r"""Sparse where ``beta > 0``, flat where ``beta < 0``: :math:`\ln p(\theta) = \beta \sum_i \theta_i \ln \theta_i`.

    Parameters
    ----------
    beta : float
        Its strength in counts, or relative to the counts of every column.
    relative : bool, default=False
        Whether ``beta`` is relative.

    References
    ----------
    M. Shashanka, B. Raj and P. Smaragdis, "Probabilistic latent variable models as nonnegative factorizations", Computational
    Intelligence and Neuroscience, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import PLSA
    >>> from plcakit.priors import Entropic
    >>> X = np.array([[9.0, 5.0, 1.0], [1.0, 4.0, 8.0], [3.0, 3.0, 3.0]])
    >>> plain, sparse = (PLSA(2, prior=prior, random_state=0).fit(X) for prior in (None, {"mixture": Entropic(5.0)}))
    >>> bool(sparse._blocks["mixture"].max(axis=0).min() > plain._blocks["mixture"].max(axis=0).min())
    True
    """

    def __init__(self, beta: float, *, relative: bool = False) -> None:
        self.beta = _number("beta", beta)
        self.relative = relative

    def __str__(self) -> str:
        return f"entropic:{float(self.beta)!r}{'r' if self.relative else ''}"

    def __repr__(self) -> str:
        return f"Entropic({self.beta!r}, relative={self.relative!r})"


class CrossEntropy(Prior):
    r"""Makes columns of different groups differ, and columns of one group alike.

    .. math:: \ln p = \sum_{i < k} A_{ik} \bigl( H(q_i, q_k) + H(q_k, q_i) \bigr), \qquad H(a, b) = -\sum_j a_j \ln b_j

    `q_i` is column `i`; `A_ik` is ``between`` for columns of different groups, minus ``within`` for those of one group.

    Parameters
    ----------
    groups : list of list of int
        The components of every group.
    between, within : float, default=0.0
        Strength between groups and within them, in counts.
    relative : bool, default=False
        Whether both are relative to the counts.
    decrease : int, default=None
        The number of iterations within which the prior fades.
    floor : float, default=None
        The least value that logarithms are taken of.

    References
    ----------
    P. Smaragdis, M. Shashanka, B. Raj and G. J. Mysore, "Probabilistic factorization of non-negative data with entropic
    co-occurrence constraints", ICA 2009.

    Examples
    --------
    >>> from plcakit.priors import CrossEntropy
    >>> str(CrossEntropy([[0, 1], [2]], between=0.1, relative=True, decrease=50))
    'cross-entropy:groups=0/0/1,between=0.1r,within=0.0r,decrease=50'
    """

    def __init__(
        self,
        groups: Sequence[Sequence[int]],
        *,
        between: float = 0.0,
        within: float = 0.0,
        relative: bool = False,
        decrease: int | None = None,
        floor: float | None = None,
    ) -> None:
        _groups(groups)
        self.groups = groups
        self.between = _number("between", between)
        self.within = _number("within", within)
        self.relative = relative
        self.decrease = decrease
        self.floor = floor

    def __str__(self) -> str:
        unit = "r" if self.relative else ""
        text = f"cross-entropy:groups={_groups(self.groups)},between={float(self.between)!r}{unit},within={float(self.within)!r}{unit}"
        if self.decrease is not None:
            text += f",decrease={self.decrease}"
        if self.floor is not None:
            text += f",floor={float(self.floor)!r}"
        return text

    def __repr__(self) -> str:
        names = ("between", "within", "relative", "decrease", "floor")
        return f"CrossEntropy({self.groups!r}, {', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class Lagged(Prior):
    r"""Columns in time: makes each differ from those of other groups, and like those of its own group, as they were some samples before.

    .. math:: S_i[t] = \sum_\ell w_\ell \sum_k A_{ik} q_k[t - \ell], \qquad
       q_i \gets \frac{\max(n_i - S_i, 0)}{\text{sum of the numerators}}

    `q_i` is column `i` and `n_i` are its counts; `A_ik` is ``between`` for columns of different groups, minus ``within`` for those of one group, a
    column itself among them. The step is a heuristic without a density: the likelihood of a fit may fall.

    Parameters
    ----------
    groups : list of list of int
        The components of every group.
    lags : dict of int to float
        The weight of every lag, in samples; a negative lag looks ahead.
    between, within : float, default=0.0
        Strength between groups and within them, in counts.
    relative : bool, default=False
        Whether both are relative to the counts.
    decrease : int, default=None
        The number of iterations within which the prior fades.

    Examples
    --------
    >>> from plcakit.priors import Lagged
    >>> str(Lagged([[0], [1]], {1: 1.0, 2: 0.5}, within=0.25, relative=True))
    'lagged:groups=0/1,between=0.0r,within=0.25r,lags=1:1.0/2:0.5'
    """

    def __init__(
        self,
        groups: Sequence[Sequence[int]],
        lags: Mapping[int, float],
        *,
        between: float = 0.0,
        within: float = 0.0,
        relative: bool = False,
        decrease: int | None = None,
    ) -> None:
        _groups(groups)
        if not lags:
            raise ValueError("lags is empty, expected the weight of a lag, such as {1: 1.0}")
        self.groups = groups
        self.lags = {int(lag): _number("a weight in lags", weight) for lag, weight in lags.items()}
        self.between = _number("between", between)
        self.within = _number("within", within)
        self.relative = relative
        self.decrease = decrease

    def __str__(self) -> str:
        unit = "r" if self.relative else ""
        lags = "/".join(f"{lag}:{weight!r}" for lag, weight in self.lags.items())
        text = f"lagged:groups={_groups(self.groups)},between={self.between!r}{unit},within={self.within!r}{unit},lags={lags}"
        return text if self.decrease is None else f"{text},decrease={self.decrease}"

    def __repr__(self) -> str:
        names = ("between", "within", "relative", "decrease")
        return f"Lagged({self.groups!r}, {self.lags!r}, {', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class Neighbours(Prior):
    r"""Makes neighbouring columns alike where ``alpha < 0``, different where ``alpha > 0``: for mixtures of samples in time.

    .. math:: \ln p = \sum_t \alpha \bigl( H(g_t, g_{t+1}) + H(g_{t+1}, g_t) \bigr), \qquad H(a, b) = -\sum_j a_j \ln b_j

    Parameters
    ----------
    alpha : float
        Strength, in counts.
    relative : bool, default=False
        Whether ``alpha`` is relative to the counts of a column.
    exact : bool, default=False
        Whether the step for similar columns is the exact one, which never lowers the objective.

    Examples
    --------
    >>> from plcakit.priors import Neighbours
    >>> str(Neighbours(-0.3, relative=True))
    'neighbours:-0.3r'
    """

    def __init__(self, alpha: float, *, relative: bool = False, exact: bool = False) -> None:
        self.alpha = _number("alpha", alpha)
        self.relative = relative
        self.exact = exact

    def __str__(self) -> str:
        return f"neighbours:{self.alpha!r}{'r' if self.relative else ''}{',exact' if self.exact else ''}"

    def __repr__(self) -> str:
        return f"Neighbours({self.alpha!r}, relative={self.relative!r}, exact={self.exact!r})"


class LogisticNormal(Prior):
    r"""The logarithms of the entries are normal, with the logarithms of equal entries as means.

    .. math:: \theta = \frac{e^\eta}{\sum_i e^{\eta_i}}, \qquad \eta_i \sim \mathcal N(0, \sigma^2)

    Parameters
    ----------
    variance : float
        Their variance :math:`\sigma^2`; no entry is 0.

    Examples
    --------
    >>> from plcakit.priors import LogisticNormal
    >>> str(LogisticNormal(0.5))
    'logistic-normal:0.5'
    """

    def __init__(self, variance: float) -> None:
        self.variance = _number("variance", variance, 0, above=True)

    def __str__(self) -> str:
        return f"logistic-normal:{float(self.variance)!r}"

    def __repr__(self) -> str:
        return f"LogisticNormal({self.variance!r})"


class Flat(Prior):
    r"""No preference: :math:`\ln p(\theta) = 0`.

    Examples
    --------
    >>> from plcakit.priors import Flat
    >>> str(Flat())
    'flat:'
    """

    def __str__(self) -> str:
        return "flat:"

    def __repr__(self) -> str:
        return "Flat()"


class Gamma(Prior):
    r"""A gamma prior of rates, such as the activations of :class:`~plcakit.SkellamSNMF` and the factors of :class:`~plcakit.NMF`: :math:`\ln p(\theta) = (a - 1) \ln \theta - b \theta`.

    Parameters
    ----------
    shape, rate : float
        ``a > 0`` and ``b >= 0``.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import SkellamSNMF
    >>> from plcakit.priors import Gamma
    >>> X = np.array([[2.0, -1.0], [4.0, -2.0]])
    >>> plain, drawn = (SkellamSNMF(1, prior=prior, random_state=0).fit(X) for prior in (None, {"activations": Gamma(1.0, 1.0)}))
    >>> bool(drawn.transform(X).sum() < plain.transform(X).sum())
    True
    """

    def __init__(self, shape: float, rate: float) -> None:
        self.shape = _number("shape", shape, 0, above=True)
        self.rate = _number("rate", rate, 0)

    def __str__(self) -> str:
        return f"gamma:{float(self.shape)!r},{float(self.rate)!r}"

    def __repr__(self) -> str:
        return f"Gamma({self.shape!r}, {self.rate!r})"


class Penalty(Prior):
    r"""A penalty on rates, the factors of :class:`~plcakit.NMF`: :math:`-\ln p(\theta) = \lambda \theta + \mu \theta^2 / 2`.

    ``alpha_W``, ``alpha_H`` and ``l1_ratio`` of :class:`~plcakit.NMF` are such penalties, with weights that grow with the data.

    Parameters
    ----------
    linear, quadratic : float, default=0.0
        The weights :math:`\lambda` and :math:`\mu`, at least 0.
    lagged : bool, default=False
        Whether the slope of the squares is taken at the old values, as of scikit-learn: the objective may rise on the way.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import NMF
    >>> from plcakit.priors import Penalty
    >>> X = np.array([[3.0, 1.0], [0.0, 2.0]])
    >>> plain, small = (NMF(2, prior=prior, random_state=0).fit(X) for prior in (None, {"w": Penalty(0.1), "h": Penalty(0.1)}))
    >>> bool(small.reconstruct().sum() < plain.reconstruct().sum())
    True
    """

    def __init__(self, linear: float = 0.0, quadratic: float = 0.0, *, lagged: bool = False) -> None:
        self.linear = _number("linear", linear, 0)
        self.quadratic = _number("quadratic", quadratic, 0)
        self.lagged = lagged

    def __str__(self) -> str:
        return f"rate:{float(self.linear)!r},{float(self.quadratic)!r}{',lagged' if self.lagged else ''}"

    def __repr__(self) -> str:
        return f"Penalty({self.linear!r}, {self.quadratic!r}, lagged={self.lagged!r})"
