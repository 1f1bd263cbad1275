"""Probabilistic latent component analysis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._docs import described
from ._mixtures import SHAPE, ProductModel, TopicModel
from ._types import Array, Blocks, Callback, Freeze, Priors, RandomState, Shapes

#: The blocks that every file has; of more dimensions there are more factors.
_BLOCKS = ("weights", "factor_0", "factor_1")


@described
class PLCA(TopicModel, ProductModel):
    r"""Probabilistic latent component analysis of data of any order: a mixture of products of distributions.

    .. math:: P(x) = \sum_z P(z) \prod_j P(x_j \mid z), \qquad \max \sum_x X_x \ln P(x)

    With ``method="vb"`` every distribution has a Dirichlet prior `p`, and Dirichlet laws `q` of shapes `a` (of :math:`P(z)`) and
    :math:`A_j` (of :math:`P(x_j \mid z)`) are fitted in its place,

    .. math:: \max \sum_x X_x \ln \sum_z \tilde a_z \prod_j \tilde A_j[x_j, z] - \sum \mathrm{KL}(q \,\Vert\, p),
              \qquad \tilde a = e^{\psi(a) - \psi(\sum a)}

    a lower bound of the log-evidence; what is shown are posterior means. It needs complete data.

    Samples lie along the first dimension.

    Parameters
    ----------
    %(n_components)s
    method : {"em", "vb"}, default="em"
        The largest likelihood or posterior, or a distribution of the parameters by variational Bayes, which knows no ``temper``.
    %(init)s
    solver : {"auto", "fast", "em", "squarem", "parabolic", "momentum"}, default="auto"
        How the likelihood is maximised.
    temper : float, default=1.0
        The power in (0, 1] that the factors are raised to in the E-step.
    temper_prior : bool, default=False
        Whether :math:`P(z)` is raised to it, too.
    %(tol)s
    %(max_iter)s
    %(transform_tol)s
    %(starts)s
    %(missing)s
    prior : dict or None, default=None
        Priors of ``"weights"``, ``"factor_0"``, ``"factor_1"``, …: texts of the command such as ``"entropic:2"``, or objects of
        :mod:`plcakit.priors`. With ``method="vb"`` Dirichlet priors alone, of positive shapes; of blocks without one they are 1.
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
    >>> PLCA(n_components=2, method="vb", random_state=0).fit(X).weights_.round(2).tolist()
    [0.56, 0.44]
    """

    _saved = {"plca": _BLOCKS, "plca-vb": (*_BLOCKS, *(name + SHAPE for name in _BLOCKS))}
    temper_prior: bool

    _own = ("weights", "factor_0")
    _streams_columns = True
    _parameter_constraints = {**TopicModel._parameter_constraints, "temper_prior": ["boolean"]}

    def __init__(
        self,
        n_components: int = 10,
        *,
        method: str = "em",
        init: str | None = None,
        solver: str = "auto",
        temper: float = 1.0,
        temper_prior: bool = False,
        tol: float = 1e-7,
        max_iter: int = 1000,
        transform_tol: float = 1e-3,
        random_state: RandomState = None,
        n_init: int = 1,
        n_jobs: int | None = None,
        warm_start: bool = False,
        missing: str | None = None,
        prior: Priors = None,
        freeze: Freeze = (),
        check_every: int = 10,
        time_limit: float | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self._take(locals())

    def _options(self) -> dict[str, Any]:
        if not self._vb:
            return {**super()._options(), "temper_prior": bool(self.temper_prior)}
        if self.temper_prior:
            raise ValueError("temper_prior is True, which method='vb' does not have: expected False")
        return super()._options()

    def _file_settings(self) -> dict[str, Any]:
        settings = super()._file_settings()
        return settings if self._vb else {**settings, "temper_prior": bool(self.temper_prior)}

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        params = super()._params_of(name, settings, blocks)
        return params if name.endswith("-vb") else {"temper_prior": bool(settings.get("temper_prior")), **params}

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        return self._shapes_of(super()._block_shapes(shape, k))

    def _model(self) -> str:
        return "plca-vb" if self._vb else "plca"

    def _answer(self, blocks: Blocks) -> Array:
        # Of samples that were explained each alone, the weights are those of the sample.
        joint = blocks.get("factor_0", 1) * blocks["weights"]
        mass = joint.sum(axis=1, keepdims=True)
        return np.divide(joint, mass, out=np.full_like(joint, 1 / joint.shape[1]), where=mass > 0)

    def _after_batch(self, known: Blocks, batch: Blocks) -> Blocks:
        # The samples of a batch are its second dimension.
        return {**batch, "weights": known["weights"], "factor_0": batch["factor_1"], "factor_1": known["factor_0"]}
