"""Probabilistic latent component analysis."""

from __future__ import annotations

import numpy as np

from ._docs import described
from ._mixtures import ProductModel, TopicModel
from ._types import Array, Blocks


@described
class PLCA(TopicModel, ProductModel):
    r"""Probabilistic latent component analysis of data of any order: a mixture of products of distributions.

    .. math:: P(x) = \sum_z P(z) \prod_j P(x_j \mid z), \qquad \max \sum_x X_x \ln P(x)

    Samples lie along the first dimension.

    Parameters
    ----------
    %(n_components)s
    %(init)s
    solver : {"auto", "fast", "em", "squarem", "parabolic", "momentum"}, default="auto"
        How the likelihood is maximised.
    temper : float, default=1.0
        The power in (0, 1] that the factors are raised to in the E-step.
    %(tol)s
    %(max_iter)s
    %(transform_tol)s
    %(starts)s
    %(missing)s
    prior : dict or None, default=None
        Priors of ``"weights"``, ``"factor_0"``, ``"factor_1"``, …: texts of the command such as ``"entropic:2"``, or objects of
        :mod:`plcakit.priors`.
    %(watch)s

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        :math:`P(x_1 \mid z)`; rows sum to 1. Of more dimensions, of shape ``(n_components, *X.shape[1:])``.
    %(weights_)s
    factors_ : list of ndarray of shape (X.shape[j], n_components)
        :math:`P(x_j \mid z)` of every dimension; columns sum to 1.
    %(objective_)s
    %(ended)s
    %(features)s

    References
    ----------
    M. Shashanka, B. Raj and P. Smaragdis, "Probabilistic latent variable models as nonnegative factorizations", 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import PLCA
    >>> X = np.array([[4.0, 4.0, 0.0], [0.0, 0.0, 6.0]])
    >>> model = PLCA(n_components=2, random_state=0).fit(X)
    >>> sorted(model.weights_.round(3).tolist())
    [0.429, 0.571]
    """

    _streams_columns = True

    def _model(self) -> str:
        return "plca"

    def _answer(self, blocks: Blocks) -> Array:
        joint = blocks["factor_0"] * blocks["weights"]
        mass = joint.sum(axis=1, keepdims=True)
        return np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)

    def _after_batch(self, known: Blocks, batch: Blocks) -> Blocks:
        # The samples of a batch are its second dimension.
        return {**batch, "weights": known["weights"], "factor_0": batch["factor_1"], "factor_1": known["factor_0"]}
