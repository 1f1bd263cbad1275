"""The number of components, chosen by a score."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from . import _core
from ._data import seed_of, threads
from ._docs import described
from ._types import Array, Data, Mask
from ._warn import warn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._base import Factorization

__all__ = ["Selection", "select"]

#: Criteria of models with a likelihood.
LIKELY = ("bic", "aic", "held_out")


class Selection(NamedTuple):
    """The scores of several numbers of components, as :func:`select` returns them.

    Attributes
    ----------
    best : int
        The number of the least score; of equal ones the first.
    table : ndarray of records ``n_components``, ``score``, ``log_likelihood``, ``parameters``
        One for every number, in the order in which they were given. Smaller scores are better.
    criterion : str
        What the scores are.
    """

    best: int
    table: Array
    criterion: str


@described
def select(
    estimator: Factorization,
    X: Data,
    n_components: int | Iterable[int],
    *,
    criterion: str | None = None,
    observed: Mask = None,
) -> Selection:
    r"""Score numbers of components, as ``plca select`` does; smaller scores are better.

    .. math:: \mathrm{AIC} = -2 L + 2 p, \qquad \mathrm{BIC} = -2 L + p \ln v, \qquad \text{perplexity} = e^{-L_\text{held} / v_\text{held}}

    `L` is the log-likelihood of the best of `n_init` fits, `p` the number of parameters that can be told apart, and `v` the sum of the
    data. KL-NMF and PLSA are scored as the PLCA whose parameters they have in another form: the maxima of their likelihoods are one number.
    Costs `n_init` fits for every number; Ctrl-C ends them.

    Parameters
    ----------
    estimator : PLCA, PLSA, NMF, ShiftInvariantPLCA or SkellamSNMF
        The model and how it is fitted: `solver`, `tol`, `max_iter`, `check_every`, `n_init`, `random_state`, `n_jobs`, `missing`, and what
        is its own. It is not changed. Neither priors (but of ``method="vb"``) nor frozen blocks nor tempering are taken, and
        callbacks are not called.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data.
    n_components : int or iterable of int
        The numbers to try.
    criterion : {"bic", "aic", "held_out", "elbo"} or None, default=None
        ``"bic"`` takes the sum of the data for a sample size, which it is of counts alone. It asks much of a component where counts
        are few: of texts, with thousands of words and some hundred counts a document, it tends to take the smallest number that is tried;
        ``"aic"`` and ``"held_out"`` ask less. ``"held_out"``: every count is held out with probability 0.1 from the fits, and the score is the
        perplexity of those that are: of cells, :math:`P(\text{sample}, \text{feature})`, and so not to be compared with that of words in their
        document, which papers on topic models report and ``PLSA.perplexity(X, known=...)`` returns. Of data that are not counts cells are held
        out, and the score is their divergence per unit. ``"elbo"``: minus the
        bound of the log-evidence, of ``method="vb"`` alone; of `PLSA` and `PLCA` with :math:`\ln K!` added, for the orders of components. ``None``: ``"bic"``; ``"held_out"`` of `PLSA`; ``"elbo"`` where there is one.
    %(observed)s

    Returns
    -------
    selection : Selection
        ``best``, ``table`` and ``criterion``.

    References
    ----------
    H. Akaike, "A new look at the statistical model identification", 1974; G. Schwarz, "Estimating the dimension of a model", 1978.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import PLSA, select
    >>> X = np.kron(np.eye(3), np.full((4, 5), 20.0))                      # three blocks
    >>> best, table, _ = select(PLSA(n_init=3, random_state=0), X, [1, 2, 3, 4])
    >>> best, table["parameters"].astype(int).tolist()
    (3, [25, 49, 71, 91])
    >>> model = PLSA(best, n_init=3, random_state=0).fit(X)
    """
    numbers_of: Any = n_components if np.iterable(n_components) else [n_components]
    if n_components is None or isinstance(n_components, str):
        raise TypeError(f"n_components is {n_components!r}, expected the numbers of components to try")
    components = [_whole(k) for k in numbers_of]
    if not components:
        raise ValueError("n_components is empty, expected the numbers of components to try")
    if not hasattr(estimator, "_order"):
        raise TypeError(f"estimator is {estimator!r}, expected PLCA, PLSA, NMF, ShiftInvariantPLCA or SkellamSNMF of plcakit")
    estimator = clone(estimator)
    name, options = estimator._order()
    known = ("elbo",) if name.endswith("-vb") else LIKELY
    if criterion is None:
        criterion = "held_out" if estimator._model() == "plsa" else known[0]
    if criterion not in known:
        raise ValueError(f"criterion is {criterion!r}, expected one of {', '.join(known)} for {type(estimator).__name__}")
    estimator.set_params(n_components=components[0])
    estimator._validate_params()
    X, observed = estimator._check(X, observed, True, "select")
    if X.dtype != np.float64:
        X = X.astype(np.float64)
    data = estimator._describe(X, observed)
    if "prior" in options:
        options["prior"] = estimator._priors(estimator._block_shapes(data["shape"], components[0]))
    choice = {
        "components": components,
        "options": options,
        "seed": seed_of(estimator.random_state),
        "starts": int(estimator.n_init),
        "solver": estimator._solver(),
        "stop": estimator._stop(),
        "threads": threads(estimator.n_jobs),
    }
    scores = _core.order(name, data, criterion, choice)
    if not scores["counts"] and criterion == "bic":
        warn("X does not hold counts: BIC uses its sum as the sample size, which depends on the unit of the data")
    if not scores["counts"] and criterion == "held_out":
        warn("X does not hold counts: cells are held out instead of counts, and the score is their divergence per unit of data")
    columns: list[Any] = [("n_components", np.int64), ("score", np.float64), ("log_likelihood", np.float64), ("parameters", np.int64)]
    table = np.empty(len(components), dtype=columns)
    table["n_components"] = components
    for column in ("score", "log_likelihood", "parameters"):
        table[column] = scores[column]
    return Selection(components[int(np.argmin(table["score"]))], table, criterion)


def _whole(k: Any) -> int:
    if isinstance(k, np.ndarray) and k.ndim == 0:
        k = k[()]
    if not isinstance(k, numbers.Integral) or isinstance(k, (bool, np.bool_)) or not 1 <= int(k) < 2**63:
        raise ValueError(f"n_components has {k!r}, expected whole numbers >= 1")
    return int(k)
