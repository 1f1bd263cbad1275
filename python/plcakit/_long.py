"""Sparse arrays from frames in long form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ._data import real
from ._types import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Long", "from_long"]


#: What is said where an array is expected.
LONG = "X is what from_long returns, an array and its labels: expected the array alone, its .X"


class Long(NamedTuple):
    """A sparse array and the labels of its dimensions, as :func:`from_long` returns them.

    Attributes
    ----------
    X : csr_array, or coo_array of more than two dimensions
        The values.
    labels : list of ndarray
        For every dimension the label of every index, sorted.
    """

    X: Any
    labels: list[Array]


def from_long(frame: Any, columns: Sequence[str], value: str | None = None) -> Long:
    r"""A frame of one row per entry as a sparse array: of pandas, polars or any other that narwhals reads.

    .. math:: X_{i j \dots} = \sum_{\text{rows } r \text{ of the labels } i, j, \dots} v_r

    Parameters
    ----------
    frame : DataFrame
        The rows.
    columns : sequence of str
        The columns of the labels, one for each dimension: the first is that of the samples. Blanks around texts are no part of them.
    value : str or None, default=None
        The column of the values; those of the same labels are added up. ``None``: rows are counted.

    Returns
    -------
    long : Long
        ``X``, of float64, and ``labels``.

    Examples
    --------
    >>> import pandas
    >>> from plcakit import from_long
    >>> frame = pandas.DataFrame({"doc": ["b", "a", "a"], "word": ["sea", "sea", "sun"], "count": [2, 1, 4]})
    >>> X, (docs, words) = from_long(frame, ["doc", "word"], "count")
    >>> X.toarray(), docs.tolist(), words.tolist()
    (array([[1., 4.],
           [2., 0.]]), ['a', 'b'], ['sea', 'sun'])
    """
    try:
        import narwhals as nw
    except ImportError as error:
        raise ImportError("from_long needs narwhals: pip install 'plcakit[frames]'") from error
    if isinstance(columns, str) or len(columns) < 2:
        raise ValueError(f"columns is {columns!r}, expected the names of two columns or more")
    table = nw.from_native(frame, eager_only=True)
    wanted = [*columns] if value is None else [*columns, value]
    for name in wanted:
        if name not in table.columns:
            raise ValueError(f"no column {name!r} in the frame, expected one of {', '.join(map(str, table.columns))}")
        if table[name].null_count():
            raise ValueError(f"column {name!r} has {table[name].null_count()} rows without a value")
    labels, coords = [], []
    for name in columns:
        found, places = _labels(name, table[name].to_numpy())
        labels.append(found)
        coords.append(places.astype(np.int64, copy=False).ravel())
    rows = len(coords[0])
    values = np.ones(rows) if value is None else _numbers(value, table[value].to_numpy())
    if not np.isfinite(values).all():
        raise ValueError(f"column {value!r} has values that are not finite numbers")
    X = sparse.coo_array((values, tuple(coords)), shape=tuple(len(found) for found in labels))
    if X.ndim == 2:
        return Long(X.tocsr(), labels)
    X.sum_duplicates()
    return Long(X, labels)


def _labels(name: str, column: Array) -> tuple[Array, Array]:
    """The labels of a column, and which of them every row has; texts without blanks around them, as of the command."""
    if column.dtype.kind == "f" and np.isnan(column).any():
        raise ValueError(f"column {name!r} has {np.isnan(column).sum()} rows without a value")
    if column.dtype.kind not in "OUT":
        return np.unique(column, return_inverse=True)
    texts = [isinstance(label, str) for label in column]
    if any(texts) and not all(texts):
        text, other = column[texts.index(True)], column[texts.index(False)]
        raise ValueError(f"column {name!r} has texts and others, such as {text!r} and {other!r}: make texts of all, frame[{name!r}].astype(str)")
    found, places = np.unique(column, return_inverse=True)
    if any(texts):
        found, merged = np.unique(np.array([label.strip() for label in found], dtype=object), return_inverse=True)
        places = merged[places]
        if not found[0]:
            raise ValueError(f"column {name!r} has an empty label, expected a name in every row")
    return found, places


def _numbers(name: str, column: Array) -> Array:
    real(column, f"column {name!r}")
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {name!r} is not of numbers: {error}") from error
