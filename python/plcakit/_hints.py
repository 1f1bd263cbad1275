"""What parameters of other packages are here."""

from __future__ import annotations

import difflib
import functools
import inspect
from typing import Any

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
