"""What models share whose samples are mixtures of components."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from ._base import COMMON, GAP, SOLVERS, Factorization
from ._docs import described
from ._types import Array, Blocks, Callback, Data, Freeze, Mask, Priors, RandomState, Shapes, available_if

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing_extensions import Self


class MixtureModel(Factorization):
    """Models with ``components_`` and, of every sample, a mixture of them."""

    components_: Array

    def inverse_transform(self, X: Data) -> Array:
        """The approximation of the data by mixtures: weighted sums of the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Mixtures.

        Returns
        -------
        X_original : ndarray of shape (n_samples, ...)
            The data; of models of distributions and of shares, what the sum of a sample is to be multiplied by.
        """
        check_is_fitted(self)
        X = check_array(X, dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_components_:
            raise ValueError(f"X has {X.shape[1]} columns, expected one for each of {self.n_components_} components")
        return np.tensordot(X, self.components_, axes=1)


class ProductModel(MixtureModel):
    """Mixtures of products: weights, and a factor for every dimension of the data."""

    weights_: Array
    factors_: list[Array]

    _any_order = True

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        return {"weights": (k,), **{f"factor_{j}": (n, k) for j, n in enumerate(shape)}}

    def _show(self, blocks: Blocks) -> None:
        self.weights_ = blocks["weights"]
        self.factors_ = [blocks[f"factor_{j}"] for j in range(len(self._shape))]
        self.components_ = outer(self.factors_[1:])

    def _count(self, blocks: Blocks) -> int:
        return len(blocks["weights"])


def outer(factors: Sequence[Array]) -> Array:
    """The outer product of the columns of factors, one array for every component."""
    product = factors[0].T
    for factor in factors[1:]:
        product = product[..., np.newaxis] * factor.T.reshape(factor.shape[1], *[1] * (product.ndim - 1), -1)
    return np.ascontiguousarray(product)


#: After the names of blocks of shapes.
SHAPE = "_shape"


def _learns(model: TopicModel) -> bool:
    """Whether the model learns batch by batch."""
    if model._vb and not model._streams_vb:
        raise AttributeError("method is 'vb': partial_fit of PLCA is for 'em'")
    return True


@described
class TopicModel(MixtureModel):
    """Mixtures of distributions, fitted by maximum likelihood, from all data at once or batch by batch, or by variational Bayes."""

    weights_: Array
    method: str
    temper: float

    #: Blocks that new data have of their own.
    _own: tuple[str, ...] = ()
    #: Whether it learns batch by batch by variational Bayes, too.
    _streams_vb = False
    _parameter_constraints = {
        **COMMON,
        **GAP,
        "method": [StrOptions({"em", "vb"})],
        "solver": [StrOptions(SOLVERS)],
        "temper": [Interval(numbers.Real, 0, 1, closed="right")],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        method: str = "em",
        init: str | None = None,
        solver: str = "auto",
        temper: float = 1.0,
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
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self._take(locals())

    def _solver(self) -> str:
        # As of the command: tempering is of EM.
        return "em" if self.temper != 1 and self.solver == "auto" else self.solver

    @property
    def _vb(self) -> bool:
        return self.method == "vb"

    def _options(self) -> dict[str, Any]:
        if not self._vb:
            return {"temper": float(self.temper)}
        if self.temper != 1:
            raise ValueError(f"temper is {self.temper}, which method='vb' does not have: expected 1")
        return {}

    def _shapes_of(self, shapes: Shapes) -> Shapes:
        """The blocks of a fit: parameters, or the Dirichlet shapes of them."""
        return {name + SHAPE: size for name, size in shapes.items()} if self._vb else shapes

    def _prior_shapes(self, shapes: Shapes) -> Shapes:
        return {name.removesuffix(SHAPE): size for name, size in shapes.items()}

    def _transform_options(self, shape: tuple[int, ...], along: int) -> dict[str, Any]:
        if not self._vb:
            return {}
        own = [name.replace("factor_0", f"factor_{along}") for name in self._own]
        priors = {name: prior for name, prior in (self.prior or {}).items() if name in own}
        shapes = self._block_shapes(shape, self.n_components_)
        return {**self._options(), "prior": self._priors_of(priors, shapes)}

    def _file_settings(self) -> dict[str, Any]:
        return {} if self._vb else {"temper": self.temper}

    def _objective_name(self) -> str:
        return "elbo" if self._vb else super()._objective_name()

    def _order(self) -> tuple[str, dict[str, Any]]:
        if self._vb:
            self._plainly("freeze")
            return self._model(), {**self._options(), **({"prior": {}} if self.prior else {})}
        self._plainly("prior", "freeze")
        return "plca", {}

    @available_if(_learns)
    def partial_fit(self, X: Data, y: object = None, *, observed: Mask = None, total_samples: float | None = None) -> Self:
        """Learn from one more batch of samples; earlier batches have less and less weight.

        The first call begins anew, and so does the first one after :meth:`fit`: what was fitted is not gone on from. With
        ``method="vb"`` this is online latent Dirichlet allocation, of `PLSA` alone.

        Parameters
        ----------
        %(X)s
        %(y)s
        %(observed)s
        total_samples : float or None, default=None
            With ``method="vb"`` the number of all samples, which the counts of a batch are scaled to: give it where it is known. ``None``:
            that of the samples so far, so that the first batches count for little beside the random start.

        Returns
        -------
        self : object
            The estimator. `objective_` is the log-likelihood of the batch under the components that it met, with ``method="vb"`` its
            bound, `n_iter_` the number of batches, `trace_` has one entry for each.
        """
        if total_samples is not None:
            if not self._vb:
                raise ValueError("total_samples is for method='vb'")
            if not (isinstance(total_samples, numbers.Real) and 0 < total_samples < np.inf):
                raise ValueError(f"total_samples is {total_samples!r}, expected a finite number > 0")
        self._partial_fit(X, observed, total_samples)
        return self

    def sample(self, n: int | None = None, *, random_state: RandomState = None, as_sparse: bool = False) -> Any:
        """Draw counts from the learnt model; of ``method="vb"`` from that of the posterior means.

        Parameters
        ----------
        n : int, default=None
            How many events are drawn, each in the cell that the model gives it. ``None``: a Poisson number with the sum of the model as
            its mean, so that cells are independent Poisson counts with the means of :meth:`reconstruct`.
        random_state : int, RandomState, Generator or None, default=None
            A whole number is the seed of the command ``plca sample``.
        as_sparse : bool, default=False
            Whether to return a sparse matrix (CSR), of data of two dimensions.

        Returns
        -------
        X : ndarray or sparse matrix of the shape of the data
            The counts.
        """
        return self._sample(n, random_state, as_sparse, {})

    def perplexity(self, X: Data, y: object = None, *, observed: Mask = None) -> float:
        """The perplexity of new data, the exponential of minus the score: of the log-likelihood per count, or of its bound; smaller is better.

        Parameters
        ----------
        %(X)s
        %(y)s
        %(observed)s

        Returns
        -------
        perplexity : float
            Its value.
        """
        return float(np.exp(-self.score(X, observed=observed)))
