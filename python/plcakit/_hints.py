"""What parameters of other packages are here."""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ._types import Array
from ._warn import warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: By the name elsewhere: parameters here, of which the first that a class has is named.
_ELSEWHERE = {
    **dict.fromkeys(("n_topics", "num_topics", "k", "rank", "n_factors"), ("n_components",)),
    **dict.fromkeys(("seed", "random_seed"), ("random_state",)),
    **dict.fromkeys(("n_iter", "max_iterations", "passes", "iterations"), ("max_iter",)),
    **dict.fromkeys(("n_threads", "workers", "threads"), ("n_jobs",)),
    **dict.fromkeys(("tolerance", "mean_change_tol", "eps"), ("tol",)),
    **dict.fromkeys(("doc_topic_prior", "topic_word_prior", "eta", "regularization"), ("prior",)),
    **dict.fromkeys(("algorithm", "update"), ("solver",)),
    "alpha": ("alpha_W", "prior"),
    "beta": ("beta_loss", "prior"),
    "loss": ("beta_loss",),
}
#: The same where no parameter takes it; the second is one that a class must have for it to hold.
_OTHERWISE = {
    **dict.fromkeys(("mask", "observed"), ("hidden cells are given to fit(X, observed=mask)", "missing")),
    **dict.fromkeys(
        ("learning_method", "learning_decay", "learning_offset", "batch_size", "total_samples"),
        ("partial_fit learns batch by batch, method='vb' by variational Bayes", "method"),
    ),
}


def hinted(init: Any) -> Any:
    """A constructor that names the class, and the parameter that comes nearest, where an argument is unknown."""
    parameters = list(inspect.signature(init).parameters.values())
    if any(one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) for one in parameters):
        # It hands arguments on.
        return init
    known = [one.name for one in parameters[1:]]

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **settings: Any) -> None:
        for name in settings:
            if name not in known:
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}: {_hint(name, known)}")
        init(self, *args, **settings)

    return __init__


def _hint(name: str, known: list[str]) -> str:
    for here in _ELSEWHERE.get(name, ()):
        if here in known:
            return f"here it is {here!r}"
    said, of = _OTHERWISE.get(name, ("", ""))
    if of in known:
        return said
    lowered = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), lowered, 1)
    return f"did you mean {lowered[near[0]]!r}?" if near else f"expected one of {', '.join(known)}"


def lists_hint(X: Any) -> str | None:
    """What makes numbers of lists that are none, such as documents."""
    if not isinstance(X, (list, tuple)) or not X:
        return None
    text = "sklearn.feature_extraction"
    if all(isinstance(row, dict) for row in X):
        return f"X has dictionaries: make a matrix of them first, X = {text}.DictVectorizer().fit_transform(X)"
    if not all(isinstance(row, (list, tuple)) for row in X):
        return None
    cells = [cell for row in X for cell in row]
    if cells and all(isinstance(cell, str) for cell in cells):
        return f"X has lists of words: count them first, X = {text}.text.CountVectorizer(analyzer=list).fit_transform(X)"
    if cells and all(isinstance(cell, (list, tuple)) and len(cell) == 2 for cell in cells):
        return "X has pairs of a word and its count: make a matrix of them first, such as X = gensim.matutils.corpus2csc(X).T"
    lengths = sorted({len(row) for row in X})
    if len(lengths) > 1:
        return f"Rows of X have between {lengths[0]} and {lengths[-1]} values: expected as many in each"
    return None


def complex_hint(name: str) -> str:
    return f"Complex data not supported: {name} is to have real numbers, such as the magnitudes of a spectrogram, np.abs(X), or real parts, np.real(X)"


def complete(name: str) -> str:
    """What an estimator needs that takes no hidden cells."""
    return (
        f"{name} needs complete data: NMF (Kullback-Leibler), PLSA and PLCA (method='em') and the Skellam models take hidden cells, "
        "missing='nan' or observed=mask"
    )


@contextlib.contextmanager
def mended(X: Any, name: str, hides: bool) -> Iterator[None]:
    """Within it, what scikit-learn refuses of the data of an estimator is told with what to do."""
    try:
        yield
    except (TypeError, ValueError) as error:
        what = _mended(X, str(error), name, hides)
        if what == str(error):
            raise
        raise ValueError(what) from error


def _mended(X: Any, what: str, name: str, hides: bool) -> str:
    if "contains NaN" in what and not hides:
        return f"X contains NaN, and {complete(name)}"
    if "contains NaN" in what:
        return f"X contains NaN, which {name} takes for a mistake. If it marks hidden cells, say so: missing='nan', or observed=mask"
    if "Complex data not supported" in what or "not 'complex'" in what:
        return complex_hint("X")
    lists = lists_hint(X)
    if lists is not None:
        return f"{what.rstrip('.')}. {lists}"
    if "could not convert string to float" in what and not hasattr(X, "columns"):
        if not isinstance(X, str) and np.size(X) == len(X):
            return f"{what}. X has texts: count their words first, X = sklearn.feature_extraction.text.CountVectorizer().fit_transform(texts)"
        return f"{what}. X has a column of texts: leave it out, or encode it as numbers"
    if "could not convert string to float" in what and hasattr(X, "columns"):
        for column in X.columns:
            try:
                np.asarray(X[column]).astype(np.float64)
            except (TypeError, ValueError):
                (first,) = np.asarray(X[column])[:1].tolist()
                return (
                    f"column {column!r} of X is not of numbers: it begins with {first!r}. Leave it out, or, where rows are single entries, "
                    "make an array of them by plcakit.from_long"
                )
    return what


#: Headers of columns of names, as of the command.
_KEYS = {"index", "idx", "user", "item", "product", "doc", "document", "word", "gene", "sample", "key"}
#: The fewest rows of which columns are doubted, and those from which on growing numbers look like an index.
_NAMED, _AXIS = 3, 8


def doubt(frame: Any, X: Any, names: Sequence[str]) -> None:
    """Warns where columns of a frame, of these names or of none, seem to be names of rows or keys of entries."""
    if hasattr(frame, "columns") and isinstance(X, np.ndarray):
        hint = _columns_hint(X, list(names) or list(frame.columns))
        if hint is not None:
            warn(hint)


def _columns_hint(X: Array, names: Sequence[Any]) -> str | None:
    rows, columns = X.shape
    if rows < _NAMED:
        return None
    keys = [isinstance(name, str) and _is_of_names(name) for name in names]
    times = bool(_are_times(X[:, -1]).all())
    if 3 <= columns <= 5 and (times or keys[:2] == [True, True]) and _are_pairs(X[:, :2]) or columns == 3 and _are_keys(X[:, 0], X[:, 1]):
        # What follows two keys or more is the value, but for a time.
        *of, value = map(str, names[: columns - times]) if columns - times > 2 else (*map(str, names[:2]), None)
        said = f"{of}" if value is None else f"{of}, {value!r}"
        source = "frame" if all(isinstance(name, str) for name in names) else "frame.rename(columns=str)"
        return f"every column of X is taken for data, and they look like entries, keys and then a value: if they are, give plcakit.from_long({source}, {said}).X"
    for at, (name, key) in enumerate(zip(names, keys)):
        if at > 0 and not key:
            continue
        steps = np.diff(X[:, at])
        if at == 0:
            whole = (X[:, 0] % 1 == 0).all()
            even = (steps == steps[0]).all()
            is_name = rows >= _AXIS and whole and even and bool(steps[0])
            is_name = is_name or key and whole and len(np.unique(X[:, 0])) == rows
        else:
            is_name = key and (steps == 1).all()
        if is_name:
            way = f"by frame.set_index({name!r}) of pandas"
            if isinstance(name, str):
                way += f" or frame.drop({name!r}) of polars"
            elif not isinstance(name, (int, np.integer)):
                way = f"by frame.drop(columns=frame.columns[{at}]) of pandas"
            return f"column {name!r} of X is taken for data, and its numbers look like names or an index of the rows: if they are, leave it out, {way}"
    return None


def _is_of_names(header: str) -> bool:
    """Whether a header says that its column names something, such as `userId`, `#OTU ID` or `Unnamed: 0`."""
    header = header.strip()
    lower = header.lower()
    return lower in _KEYS or lower.startswith("unnamed:") or re.search(r"(^|[\W_])(id|ID)$|Id$|[a-z]ID$", header) is not None


def _are_times(x: Array) -> Array:
    """Which numbers may be times in seconds or milliseconds since 1970."""
    times: Array = ((x >= 3e8) & (x < 4e9) | (x >= 3e11) & (x < 4e12)) & (x % 1 == 0)
    return times


def _are_pairs(keys: Array) -> bool:
    """Whether two columns are whole numbers >= 0, no two rows of which are alike, as of entries."""
    return bool((keys % 1 == 0).all() and (keys >= 0).all()) and len(np.unique(keys, axis=0)) == len(keys)


def _are_keys(first: Array, second: Array) -> bool:
    """Whether two columns are whole numbers sorted by one and then the other, as keys of a sparse matrix are."""
    if len(first) < _AXIS or not all((x % 1 == 0).all() and (x >= 0).all() for x in (first, second)):
        return False
    a, b = np.diff(first), np.diff(second)
    return any(bool(((x > 0) | (x == 0) & (y > 0)).all() and (x == 0).any()) for x, y in ((a, b), (b, a)))
