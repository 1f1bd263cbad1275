"""Probabilistic latent semantic analysis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._docs import described
from ._mixtures import TopicModel
from ._types import Array, Blocks, Shapes


@described
class PLSA(TopicModel):
    r"""Probabilistic latent semantic analysis: every sample is a mixture of a few distributions over the features.

    .. math:: P(x \mid y) = \sum_z P(x \mid z) \, P(z \mid y), \qquad \max \sum_{y,x} X_{yx} \ln P(x \mid y)

    Samples are rows, so that a file of the model is that of ``plca fit plsa --given 0``.

    Parameters
    ----------
    %(n_components)s
    %(init)s
    solver : {"auto", "fast", "em", "squarem", "parabolic", "momentum"}, default="auto"
        How the likelihood is maximised.
    temper : float, default=1.0
        The power in (0, 1] that both blocks are raised to in the E-step.
    %(tol)s
    %(max_iter)s
    %(transform_tol)s
    %(starts)s
    %(missing)s
    prior : dict or None, default=None
        Priors of ``"basis"`` and ``"mixture"``: texts of the command such as ``"entropic:2"``, or objects of :mod:`plcakit.priors`.
    %(watch)s

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        :math:`P(x \mid z)`; rows sum to 1.
    %(weights_)s
    %(objective_)s
    %(ended)s
    %(features)s

    References
    ----------
    T. Hofmann, "Unsupervised learning by probabilistic latent semantic analysis", Machine Learning 42, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import PLSA
    >>> X = np.array([[4.0, 4.0, 0.0], [0.0, 0.0, 6.0]])
    >>> topics = PLSA(n_components=2, random_state=0).fit_transform(X)
    >>> topics.round(3).max(axis=1)
    array([1., 1.])
    """

    def _model(self) -> str:
        return "plsa"

    def _options(self) -> dict[str, Any]:
        return {"given": "rows", **super()._options()}

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        return {"basis": (shape[1], k), "mixture": (k, shape[0])}

    def _show(self, blocks: Blocks) -> None:
        self.components_ = np.ascontiguousarray(blocks["basis"].T)
        self.weights_ = blocks["mixture"] @ blocks["marginal"]

    def _answer(self, blocks: Blocks) -> Array:
        return np.ascontiguousarray(blocks["mixture"].T)

    def _count(self, blocks: Blocks) -> int:
        return int(blocks["basis"].shape[1])

    def _adopt(self, blocks: Blocks, metadata: dict[str, Any]) -> tuple[Blocks, dict[str, Any]]:
        # The command's default has the samples in columns: the same blocks, of the other dimension.
        facts = metadata.setdefault("facts", {})
        given = facts.get("given", [(metadata.get("settings") or {}).get("given", 1)])
        if list(given) != [0]:
            facts["given"] = [0.0]
            metadata["data"]["shape"] = metadata["data"]["shape"][::-1]
        return blocks, metadata

    def _file_settings(self) -> dict[str, Any]:
        return {"given": 0, **super()._file_settings()}

    def _after_batch(self, known: Blocks, batch: Blocks) -> Blocks:
        return {**batch, "basis": known["factor_0"]}
