"""Parts of docstrings that many classes and functions share: a line ``%(name)s`` stands for them."""

from __future__ import annotations

import re
import textwrap
from typing import Any, TypeVar

_Described = TypeVar("_Described")

_SHARED = r"""
n_components : int, default=10
    The number of components.
init : {"random", "custom"} or None, default=None
    The start: random, as in the command, for blocks that ``start`` of :meth:`fit` does not give.
tol : float, default=1e-7
    A fit ends when the objective changes by at most this per iteration and unit of data; 0: all iterations are made, with the
    same solver as for any other ``tol``. (For the command ``--tol 0`` is plain iterations of EM.)
max_iter : int, default=1000
    The largest number of iterations.
transform_tol : float, default=1e-3
    The gap that ends :meth:`transform`: a bound on what the log-likelihood can still gain, per count. 0: 1000 iterations are made. ``max_iter`` is for fits alone.
random_state : int, RandomState, Generator or None, default=None
    A whole number is the same seed as in the command. Start ``r`` of `n_init` uses stream ``r`` of it.
n_init : int, default=1
    The number of starts, of which the best is kept. As many run at once as there are threads, each with its own
    memory.
n_jobs : int or None, default=None
    Number of threads. ``None``: one, or as many as :func:`joblib.parallel_config` says. Negative, as in joblib: -1 is all processors, -2 all
    but one; not more than ``OMP_NUM_THREADS`` and threadpoolctl allow. Results do not depend on it.
warm_start : bool, default=False
    Whether a fit starts where the last one ended.
anneal : (float, float) or None, default=None
    The kernels are raised to a power after every M-step, from the first number, in (0, 1], to 1 in as many iterations as the second says:
    flat at first, sharp later. The objective may fall until then.
missing : {"nan", "unstored"} or None, default=None
    Which cells are hidden: those with NaN of a dense array, or those that a sparse array does not store.
freeze : str, sequence of str or dict, default=()
    Blocks that keep the values of the start. A dict says what is kept of each block: ``True`` for all of it, the numbers of components, a flag
    for each component, or a boolean array of the block's shape in ``start`` for single entries.
check_every : int, default=10
    Iterations between checks of the objective, by `tol` and by `callback`.
time_limit : float or None, default=None
    The seconds that a fit may take, all its starts together; then ``stop_reason_`` is ``"time_limit"``. The result depends on the machine.
callback : callable or None, default=None
    Called as ``callback(iteration, objective)`` at every check; a true return value ends the fit. While a start is computed that takes several steps,
    such as ``init="nndsvd"`` or that of ``method="vb"``, it is called before each with 0 and NaN. With `n_init` above 1 the calls of starts
    that are made at once are mixed; the answer ends the start that was called for, and all later ones, so that the result does not
    depend on their order.
verbose : int, default=0
    1: a progress bar of tqdm if it is installed, otherwise a line for every check. Larger: a line for every check.
weights_ : ndarray of shape (n_components,)
    :math:`P(z)`.
n_components_ : int
    The number of components.
n_iter_ : int
    Iterations made.
objective_ : float
    The log-likelihood, or the log-posterior, or the bound of variational Bayes.
cancellation_ : float
    What both rates sum to, divided by the sum of the absolute values of the data: 1 where nothing cancels. Above 10 without a bound there is a warning.
converged_ : bool
    Whether the stop rule ended the fit.
stop_reason_ : str
    Why the fit ended.
trace_ : ndarray of records ``iteration``, ``objective``
    The objective at every check.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of str
    Names of the features, if `X` has them.
X : {array-like, sparse matrix} of shape (n_samples, n_features)
    The data.
y : Ignored
    Not used, present by convention.
observed : array-like of bool of the shape of X, default=None
    False where a cell is hidden: its value is never read.
start : dict of str to array, default=None
    Blocks to start from, by name; the others are random.
ax : matplotlib Axes, default=None
    Where to draw; ``None``: a new figure.
figure : matplotlib Figure, default=None
    Where to draw; ``None``: a new figure.
S : array-like of shape (n_frequencies, n_frames)
    Magnitudes or complex values.
"""

#: Entries by name, and groups of them.
_PARTS = {entry.split(" ", 1)[0]: entry.rstrip() for entry in re.split(r"\n(?=\S)", _SHARED) if entry.strip()}


def _group(*names: str) -> str:
    return "\n".join(_PARTS[name] for name in names)


_PARTS.update(
    {
        "starts": _group("random_state", "n_init", "n_jobs", "warm_start"),
        "watch": _group("freeze", "check_every", "time_limit", "callback", "verbose"),
        "ended": _group("n_components_", "n_iter_", "converged_", "stop_reason_", "trace_"),
        "features": _group("n_features_in_", "feature_names_in_"),
        "fitted": "Returns\n-------\nself : object\n    The fitted estimator.",
        "axis": "Returns\n-------\nax : matplotlib Axes\n    The axis.",
        "drawn": "Returns\n-------\nfigure : matplotlib Figure\n    The figure.",
    }
)


def described(thing: _Described) -> _Described:
    """Fills in the docstring of a function, or of a class and its own methods."""
    of: list[Any] = [thing]
    if isinstance(thing, type):
        # A method that is there for some settings only is within what looks at them.
        methods = [getattr(method, "fn", method) for method in vars(thing).values()]
        of += [method for method in methods if callable(method) and hasattr(method, "__doc__")]
    for one in of:
        # Without docstrings where Python runs with -OO.
        if one.__doc__ and "%(" in one.__doc__:
            one.__doc__ = re.sub(r"^( *)%\((\w+)\)s$", _filled, one.__doc__, flags=re.MULTILINE)
    return thing


def _filled(line: re.Match[str]) -> str:
    return textwrap.indent(_PARTS[line[2]], line[1])
