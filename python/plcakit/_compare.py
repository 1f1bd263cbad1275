"""Two models, component by component."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.utils.validation import check_is_fitted

from ._types import Array
from ._warn import warn

__all__ = ["Comparison", "compare"]

#: What is said of a pair of components.
PAIR: list[Any] = [("a", np.int64), ("b", np.int64), ("cosine", np.float64), ("difference", np.float64)]


class Comparison(NamedTuple):
    """The components of two models in pairs, as :func:`compare` returns them.

    Attributes
    ----------
    pairs : ndarray of records ``a``, ``b``, ``cosine``, ``difference``
        Of every pair the numbers of its components, counted from 0, their cosine similarity, and half the sum of the absolute differences of
        both, each divided by the sum of its absolute values: 0 for the same up to a factor, 1 for nothing in common.
    mean_cosine : float
        The mean of their cosines.
    least_cosine : float
        The least of them.
    """

    pairs: Array
    mean_cosine: float
    least_cosine: float


def compare(a: Any, b: Any) -> Comparison:
    r"""Match the components of two models so that the sum of their cosine similarities is largest.

    .. math:: \cos(x, y) = \frac{\sum_i x_i y_i}{\sqrt{\sum_i x_i^2} \sqrt{\sum_i y_i^2}}

    Compared are ``components_``, or ``kernels_``, without the mixtures of the samples: so the models may be of different samples. ``plca
    compare`` counts the mixtures, too, where both files have as many samples. Of a file of the command whose samples are columns, such as a
    spectrogram's, ``components_`` are the other factor.

    Parameters
    ----------
    a, b : estimator
        Fitted, of this package or of scikit-learn, to data with the same features. Of different numbers of components the fewer are matched.

    Returns
    -------
    comparison : Comparison
        The pairs, in the order of the components of `a`, and a summary.

    Examples
    --------
    >>> from plcakit import PLSA, compare
    >>> from plcakit.datasets import make_corpus
    >>> X = make_corpus().counts
    >>> one, other = (PLSA(4, n_init=3, random_state=seed).fit(X) for seed in (0, 1))
    >>> found = compare(one, other)
    >>> len(found.pairs), bool(found.least_cosine > 0.999)
    (4, True)
    """
    first, second = _components("a", a), _components("b", b)
    if first.shape[1:] != second.shape[1:]:
        raise ValueError(f"a has components of the shape {first.shape[1:]}, b of {second.shape[1:]}: expected models of the same features")
    names = [getattr(model, "feature_names_in_", None) for model in (a, b)]
    if names[0] is not None and names[1] is not None and list(names[0]) != list(names[1]):
        raise ValueError("a and b were fitted to features of other names, or in another order")
    if (names[0] is None) != (names[1] is None):
        warn(f"{'a' if names[1] is None else 'b'} has names of features, the other model has none: their order is taken for the same")
    flat = [cells.reshape(len(cells), -1).astype(np.float64) for cells in (first, second)]
    # Squares of the largest numbers would overflow.
    scaled = [_divided(cells, np.abs(cells).max(axis=1)) for cells in flat]
    units = [_divided(cells, np.linalg.norm(cells, axis=1)) for cells in scaled]
    shares = [_divided(cells, np.abs(cells).sum(axis=1)) for cells in scaled]
    cosines = units[0] @ units[1].T
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    pairs = np.empty(len(rows), dtype=PAIR)
    pairs["a"], pairs["b"], pairs["cosine"] = rows, columns, cosines[rows, columns]
    pairs["difference"] = np.abs(shares[0][rows] - shares[1][columns]).sum(axis=1) / 2
    return Comparison(pairs, float(pairs["cosine"].mean()), float(pairs["cosine"].min()))


def _components(name: str, model: Any) -> Array:
    if not hasattr(model, "fit"):
        raise TypeError(f"{name} is {model!r}, expected a fitted estimator")
    check_is_fitted(model)
    for attribute in ("components_", "kernels_"):
        if hasattr(model, attribute):
            return np.asarray(getattr(model, attribute))
    raise TypeError(f"{name} is {model!r}, which has no components_ or kernels_")


def _divided(cells: Array, by: Array) -> Array:
    """Rows divided by numbers; those of 0 stay as they are."""
    return cells / np.where(by > 0, by, 1)[:, np.newaxis]
