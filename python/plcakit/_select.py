"""The number of components, chosen by a score."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from . import _core
from ._data import seed_of, threads
from ._docs import described
from ._types import Array, Data, Mask
from ._warn import warn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes

    from ._base import Factorization

__all__ = ["Selection", "select"]

#: Criteria of models with a likelihood.
LIKELY = ("bic", "aic", "held_out")
#: Of those that have cross-validation.
VALIDATED = ("cv", *LIKELY)
RULES = ("best", "one-se", "paired")


@dataclass(frozen=True)
class Selection:
    """The scores of several numbers of components, as :func:`select` returns them.

    Attributes
    ----------
    best : int
        The number of the smallest score; of scores that are equal to a relative 1e-9 the smallest number.
    table : ndarray of records
        One for every number, in the order in which they were given. Of ``"cv"``: ``n_components``, ``score``, ``se``, ``difference`` (from the best) and
        ``difference_se``, ``start_sd`` (over the starts), ``seconds``; NaN where there is no number. Of others: ``n_components``, ``score``, ``log_likelihood``,
        ``parameters``. Smaller scores are better.
    criterion : str
        What the scores are.
    rule : str
        What chooses `proposed`.
    proposed : int
        The number that the rule chooses.
    one_se, paired : int or None
        What these rules choose, of ``"cv"``.
    scores : ndarray of shape (n_numbers, n_repeats, n_folds) or None
        The score of every fold, of ``"cv"``.
    warnings : list of str
        The sentences of the warnings that were given.
    """

    best: int
    table: Array
    criterion: str
    rule: str
    proposed: int
    one_se: int | None
    paired: int | None
    scores: Array | None
    warnings: list[str]

    @described
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the scores; of ``"cv"`` with their standard errors and the band of one standard error above the best.

        Parameters
        ----------
        %(ax)s

        %(axis)s

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> import numpy as np
        >>> from plcakit import PLSA, select
        >>> X = np.kron(np.eye(3), np.full((4, 5), 20.0))
        >>> ax = select(PLSA(random_state=0), X, [2, 3, 4]).plot()
        >>> ax.get_ylabel()
        'cv'
        """
        from .plot import _axis

        ax = _axis(ax)
        order = np.argsort(self.table["n_components"], kind="stable")
        rows = self.table[order]
        if self.criterion == "cv":
            at = rows[rows["n_components"] == self.best][0]
            least, error = float(at["score"]), float(np.nan_to_num(at["se"]))
            ax.axhspan(least, least + error, color="C0", alpha=0.15, linewidth=0)
            ax.errorbar(rows["n_components"], rows["score"], yerr=np.nan_to_num(rows["se"]), marker="o", capsize=3)
        else:
            ax.plot(rows["n_components"], rows["score"], marker="o")
        ax.axvline(self.proposed, color="0.5", linestyle=":")
        ax.set(xlabel="components", ylabel=self.criterion)
        return ax


@described
def select(
    estimator: Factorization,
    X: Data,
    n_components: int | Iterable[int],
    *,
    criterion: str | None = None,
    rule: str = "best",
    n_folds: int = 5,
    n_repeats: int = 1,
    zeros: str = "all",
    smooth: float = 0.01,
    observed: Mask = None,
) -> Selection:
    r"""Score numbers of components, as ``plca select`` does; smaller scores are better.

    .. math:: \mathrm{cv} = \text{mean of } 2 \left( x \ln \tfrac{x}{y} - x + y \right) \text{ over held-out cells}, \qquad \mathrm{AIC} = -2 L + 2 p, \qquad \mathrm{BIC} = -2 L + p \ln v, \qquad \text{perplexity} = e^{-L_\text{held} / v_\text{held}}

    `x` is a cell and `y` what a fit to the other folds says of it, `L` the log-likelihood of the best of `n_init` fits, `p` the number of parameters that can be told apart, and `v` the sum of the
    data. KL-NMF and PLSA are scored as the PLCA whose parameters they have in another form: the maxima of their likelihoods are one number.
    Costs `n_init` fits for every number, with ``"cv"`` as many for every fold; Ctrl-C ends them.

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
    criterion : {"cv", "bic", "aic", "held_out", "elbo"} or None, default=None
        ``"cv"``, of `PLCA`, `PLSA` and `NMF`, predicts single cells that are held out fold by fold. The data need not be counts. The others take whole numbers for
        counts. ``"bic"`` takes the sum of the data for a sample size. It asks much of a component where counts
        are few: of texts, with thousands of words and some hundred counts a document, it tends to take the smallest number that is tried;
        ``"aic"`` and ``"held_out"`` ask less. ``"held_out"``: every count is held out with probability 0.1 from the fits, and the score is the
        perplexity of those that are: of cells, :math:`P(\text{sample}, \text{feature})`, and so not to be compared with that of words in their
        document, which papers on topic models report and ``PLSA.perplexity(X, known=...)`` returns. Of data with fractions cells are held
        out, and the score is their divergence per unit. ``"elbo"``: minus the
        bound of the log-evidence, of ``method="vb"`` alone; of `PLSA` and `PLCA` with :math:`\ln K!` added, for the orders of components. ``None``: ``"cv"`` where there is one; ``"elbo"`` of
        ``method="vb"``; ``"bic"``.
    rule : {"best", "one-se", "paired"}, default="best"
        What chooses `proposed` from cross-validated scores: the smallest one; the smallest number of components within one standard error of it; or the smallest number whose differences from
        it, fold by fold, are on average within their own standard error.
    n_folds, n_repeats : int, default=5 and 1
        Of ``"cv"``: folds of the cells, and how often they are made anew.
    zeros : {"all", "stored"}, default="all"
        Of ``"cv"``: ``"stored"`` holds out only cells above 0, for sparse data whose zeros are too many.
    smooth : float, default=0.01
        Of ``"cv"``: share of the model of independent dimensions in every prediction, so that none is 0.
    %(observed)s

    Returns
    -------
    selection : Selection
        ``best``, ``table``, ``criterion``, and of ``"cv"`` what other rules choose and the scores of all folds.

    References
    ----------
    H. Akaike, "A new look at the statistical model identification", 1974; G. Schwarz, "Estimating the dimension of a model", 1978.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import PLSA, select
    >>> X = np.kron(np.eye(3), np.full((4, 5), 20.0))                      # three blocks
    >>> found = select(PLSA(n_init=3, random_state=0), X, [1, 2, 3, 4], rule="one-se")
    >>> found.criterion, found.proposed
    ('cv', 3)
    >>> model = PLSA(found.proposed, n_init=3, random_state=0).fit(X)
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
    known: tuple[str, ...] = ("elbo",) if name.endswith("-vb") else VALIDATED if name == "plca" else LIKELY
    criterion = known[0] if criterion is None else criterion
    if criterion not in known:
        raise ValueError(f"criterion is {criterion!r}, expected one of {', '.join(known)} for {type(estimator).__name__}")
    folding = _folding(criterion, rule, n_folds, n_repeats, zeros, smooth)
    estimator.set_params(n_components=components[0])
    estimator._validate_params()
    X, observed = estimator._check(X, observed, True, "select")
    if X.dtype != np.float64:
        X = X.astype(np.float64)
    data = estimator._describe(X, observed)
    if criterion == "cv" and estimator._solver() not in ("auto", "fast"):
        # As of the command: a solver that is named makes the steps of the model itself.
        name, options = estimator._model(), estimator._options()

    def of(k: int) -> dict[str, Any]:
        priors = estimator._priors(estimator._block_shapes(data["shape"], k)) if "prior" in options else {}
        return {**options, **({"prior": priors} if priors else {})}

    choice = {
        "components": components,
        "options": [of(k) for k in components],
        "seed": seed_of(estimator.random_state),
        "starts": int(estimator.n_init),
        "solver": estimator._solver(),
        "stop": estimator._stop(),
        "threads": threads(estimator.n_jobs),
    }
    if criterion == "cv":
        return _validated(estimator, _core.validate(name, data, folding, choice), components, rule)
    scores = _core.order(name, data, criterion, choice)
    sentences = []
    if scores["doubt"] is not None:
        remedy = "; criterion='cv', which holds out cells, is right for them" if "cv" in known else ""
        sentences.append(f"X holds {scores['doubt']}; {criterion} takes them for counts{remedy}")
    if not scores["counts"] and criterion == "bic":
        sentences.append("X does not hold counts: BIC uses its sum as the sample size, which depends on the unit of the data")
    if not scores["counts"] and criterion == "held_out":
        sentences.append("X does not hold counts: cells are held out instead of counts, and the score is their divergence per unit of data")
    table = _table(components, scores, ("score", "log_likelihood", "parameters"))
    if scores["best"] is None:
        raise ValueError("X: no score is a number")
    best = components[scores["best"]]
    return _told(Selection(best, table, criterion, rule="best", proposed=best, one_se=None, paired=None, scores=None, warnings=sentences))


def _folding(criterion: str, rule: str, n_folds: int, n_repeats: int, zeros: str, smooth: float) -> dict[str, Any]:
    """How cells are divided into folds."""
    usual = (rule, n_folds, n_repeats, zeros, smooth) == ("best", 5, 1, "all", 0.01)
    if criterion != "cv" and not usual:
        raise ValueError(f"rule, n_folds, n_repeats, zeros and smooth are of criterion='cv', criterion is {criterion!r}")
    if rule not in RULES:
        raise ValueError(f"rule is {rule!r}, expected one of {', '.join(RULES)}")
    if zeros not in ("all", "stored"):
        raise ValueError(f"zeros is {zeros!r}, expected 'all' or 'stored'")
    for name, value, least in (("n_folds", n_folds, 2), ("n_repeats", n_repeats, 1)):
        if not isinstance(value, numbers.Integral) or isinstance(value, (bool, np.bool_)) or not least <= int(value) < 2**31:
            raise ValueError(f"{name} is {value!r}, expected a whole number >= {least}")
    if not isinstance(smooth, numbers.Real) or not 0 < smooth < 1:
        raise ValueError(f"smooth is {smooth!r}, expected a number between 0 and 1")
    return {"folds": int(n_folds), "repeats": int(n_repeats), "zeros": zeros == "all", "smoothing": float(smooth)}


def _table(components: list[int], scores: dict[str, Any], names: tuple[str, ...]) -> Array:
    columns: list[Any] = [("n_components", np.int64), *((name, np.int64 if name == "parameters" else np.float64) for name in names)]
    table = np.empty(len(components), dtype=columns)
    table["n_components"] = components
    for name in names:
        table[name] = scores[name]
    return table


def _validated(estimator: Factorization, found: dict[str, Any], components: list[int], rule: str) -> Selection:
    """What cross-validation says, with what is to be known of it."""
    if found["best"] is None:
        raise ValueError(f"n_components is {components}, of which X can have none: expected at most the smaller number of rows and columns")
    table = _table(components, found, ("score", "se", "difference", "difference_se", "start_sd", "seconds"))
    proposed = found[{"best": "best", "one-se": "one_se", "paired": "paired"}[rule]]
    sentences = []
    if not found["counts"]:
        sentences.append("X does not hold counts: the score, a deviance, has its unit; numbers of components are compared all the same")
    beyond = [k for k, score in zip(components, table["score"]) if np.isnan(score)]
    if beyond:
        sentences.append(f"not fitted: {beyond} components, more than X has rows or columns")
    if proposed == max(components):
        sentences.append(f"the proposed number, {proposed}, is the largest that was tried: larger ones may be better")
    elif proposed == min(components):
        sentences.append(f"the proposed number, {proposed}, is the smallest that was tried")
    if found["far"]:
        sentences.append(
            "held-out cells that the other cells do not determine were predicted to be more than 10 times the largest of X, and decide the score of "
            f"{found['far']} components: raise n_folds, or try fewer components or fewer iterations, max_iter"
        )
    torn = [k for k, score, se in zip(components, table["score"], table["se"]) if se > 0.5 * score and k not in found["far"]]
    if torn:
        sentences.append(f"a few cells decide the score of {torn} components: raise n_folds")
    if found["unsettled"]:
        sentences.append(
            f"the model of independent dimensions, which has a share in every prediction, did not converge in {found['unsettled']} of the folds: few cells or"
            " none join those held out to the others, and scores may be of any size: raise n_folds, or take another criterion than 'cv'"
        )
    if found["cut"] and estimator.max_iter > 0 and estimator.tol > 0:
        sentences.append(f"max_iter={estimator.max_iter} ended fits before they converged: raise max_iter or tol")
    return _told(
        Selection(
            best=found["best"],
            table=table,
            criterion="cv",
            rule=rule,
            proposed=proposed,
            one_se=found["one_se"],
            paired=found["paired"],
            scores=found["scores"],
            warnings=sentences,
        )
    )


def _told(selection: Selection) -> Selection:
    for sentence in selection.warnings:
        warn(sentence)
    return selection


def _whole(k: Any) -> int:
    if isinstance(k, np.ndarray) and k.ndim == 0:
        k = k[()]
    if not isinstance(k, numbers.Integral) or isinstance(k, (bool, np.bool_)) or not 1 <= int(k) < 2**63:
        raise ValueError(f"n_components has {k!r}, expected whole numbers >= 1")
    return int(k)
