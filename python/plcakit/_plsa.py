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

    ``method="vb"`` is latent Dirichlet allocation: every distribution has a Dirichlet prior `p`, and Dirichlet laws `q` of shapes
    :math:`\lambda` (of :math:`P(x \mid z)`) and :math:`\gamma` (of :math:`P(z \mid y)`) are fitted in its place,

    .. math:: \max \sum_{y,x} X_{yx} \ln \sum_z \tilde\lambda_{xz} \tilde\gamma_{zy} - \sum \mathrm{KL}(q \,\Vert\, p),
              \qquad \tilde\lambda = e^{\psi(\lambda) - \psi(\sum \lambda)}

    a lower bound of the log-evidence; what is shown are posterior means. It needs complete data.

    Samples are rows, so that a file of the model is that of ``plca fit plsa --samples 0``.

    Parameters
    ----------
    %(n_components)s
    method : {"em", "vb"}, default="em"
        The largest likelihood or posterior, or a distribution of the parameters by variational Bayes, which knows no ``temper``.
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
        With ``method="vb"`` Dirichlet priors alone, of positive shapes; of blocks without one they are ``1 / n_components``, as of
        scikit-learn's ``LatentDirichletAllocation`` and of the command's model ``lda``.
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
    T. Hofmann, "Unsupervised learning by probabilistic latent semantic analysis", Machine Learning 42, 2001; D. Blei, A. Ng and M.
    Jordan, "Latent Dirichlet allocation", Journal of Machine Learning Research 3, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import PLSA
    >>> X = np.array([[4.0, 4.0, 0.0], [0.0, 0.0, 6.0]])
    >>> topics = PLSA(n_components=2, random_state=0).fit_transform(X)
    >>> topics.round(3).max(axis=1)
    array([1., 1.])
    >>> prior = {"basis": "dirichlet:0.1", "mixture": "dirichlet:0.1"}
    >>> lda = PLSA(n_components=2, method="vb", prior=prior, random_state=0).fit(X)
    >>> lda.transform(X).round(2).max(axis=1)                   # (8 + 0.1) / (8 + 0.2), (6 + 0.1) / (6 + 0.2)
    array([0.99, 0.98])
    """

    _saved = {"plsa": ("basis", "mixture"), "plsa-vb": ("basis", "mixture", "basis_shape", "mixture_shape")}
    _own = ("mixture",)
    _streams_vb = True

    def _model(self) -> str:
        return "plsa-vb" if self._vb else "plsa"

    def _options(self) -> dict[str, Any]:
        return {"given": "rows", **super()._options()}

    def _laws(self, k: int) -> dict[str, Any]:
        usual = {block: f"dirichlet:{1 / k}" for block in ("basis", "mixture")} if self._vb else {}
        return {**usual, **super()._laws(k)}

    def _priors(self, shapes: Shapes) -> dict[str, Any]:
        _, k = next(iter(shapes.values()))
        return self._priors_of(self._laws(k), shapes)

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        return self._shapes_of({"basis": (shape[1], k), "mixture": (k, shape[0])})

    def _show(self, blocks: Blocks) -> None:
        self.components_ = np.ascontiguousarray(blocks["basis"].T)
        if self._vb:
            totals = self._remembered("totals")
            marginal = (totals / totals.sum()).astype(blocks["mixture"].dtype)
        else:
            marginal = blocks["marginal"]
        self.weights_ = blocks["mixture"] @ marginal

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
            if isinstance(metadata.get("names"), dict):
                metadata["names"] = {{"0": "1", "1": "0"}.get(dimension, dimension): told for dimension, told in metadata["names"].items()}
        return blocks, metadata

    def _file_settings(self) -> dict[str, Any]:
        return {"given": 0, **super()._file_settings()}

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        params = super()._params_of(name, settings, blocks)
        if name == "plsa":
            return params
        # What a file does not say is 1.
        return {**params, "prior": {"basis": "dirichlet:1", "mixture": "dirichlet:1", **(params["prior"] or {})}}

    def _after_batch(self, known: Blocks, batch: Blocks) -> Blocks:
        if self._vb:
            shapes = known["factor_0"]
            return {**batch, "basis_shape": shapes, "basis": shapes / shapes.sum(axis=0)}
        return {**batch, "basis": known["factor_0"]}
