"""The model `communities` as an estimator: what `examples/extend/model` is for the command."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions

from ._base import COMMON
from ._docs import described
from ._mixtures import MixtureModel
from ._types import Blocks, Callback, Freeze, Priors, RandomState, Shapes


@described
class Communities(MixtureModel):
    r"""Communities of a graph: PLCA with one factor for both modes.

    .. math:: P(x, y) = \sum_z P(z) \, P(x \mid z) \, P(y \mid z)

    Parameters
    ----------
    %(n_components)s
    solver : {"em", "overrelaxed"}, default="em"
        How the likelihood is maximised.
    prior : dict or None, default=None
        Priors of ``"weights"`` and ``"members"``.
    %(init)s
    %(tol)s
    %(max_iter)s
    %(starts)s
    %(watch)s

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The share that every node has in a community.
    %(weights_)s
    %(objective_)s
    %(ended)s
    %(features)s
    """

    weights_: Any

    _saved = {"communities": ("weights", "members")}
    _hides = False
    missing = None
    _parameter_constraints = {
        **{name: rule for name, rule in COMMON.items() if name != "missing"},
        "solver": [StrOptions({"em", "overrelaxed"})],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        solver: str = "em",
        prior: Priors = None,
        init: str | None = None,
        tol: float = 1e-7,
        max_iter: int = 1000,
        random_state: RandomState = None,
        n_init: int = 1,
        n_jobs: int | None = None,
        warm_start: bool = False,
        freeze: Freeze = (),
        check_every: int = 10,
        time_limit: float | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self._take(locals())

    def _model(self) -> str:
        return "communities"

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        return {"weights": (k,), "members": (shape[0], k)}

    def _show(self, blocks: Blocks) -> None:
        self.weights_ = blocks["weights"]
        self.components_ = np.ascontiguousarray(blocks["members"].T)

    def _count(self, blocks: Blocks) -> int:
        return len(blocks["weights"])
