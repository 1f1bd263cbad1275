"""What parameters of other packages are here."""

from __future__ import annotations

import difflib
import functools
import inspect
from typing import Any

#: By the name elsewhere: parameters here, of which a class has one or none.
_ELSEWHERE = {
    **dict.fromkeys(("n_topics", "num_topics", "k", "rank", "n_factors"), ("n_components",)),
    **dict.fromkeys(("seed", "random_seed"), ("random_state",)),
    **dict.fromkeys(("n_iter", "max_iterations", "passes", "iterations"), ("max_iter",)),
    **dict.fromkeys(("n_threads", "workers", "threads"), ("n_jobs",)),
    **dict.fromkeys(("tolerance", "mean_change_tol", "eps"), ("tol",)),
    **dict.fromkeys(("doc_topic_prior", "topic_word_prior", "eta", "regularization"), ("prior",)),
    **dict.fromkeys(("learning_method", "algorithm", "update"), ("solver",)),
    "alpha": ("alpha_W", "prior"),
    "beta": ("beta_loss", "prior"),
    "loss": ("beta_loss",),
    "mask": ("missing",),
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
                meant = [*(here for here in _ELSEWHERE.get(name, ()) if here in known), *difflib.get_close_matches(name, known, 1)]
                hint = f"here it is {meant[0]!r}" if meant else f"expected one of {', '.join(known)}"
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}: {hint}")
        init(self, *args, **settings)

    return __init__
