"""What models share whose samples are mixtures of components."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from ._base import COMMON, GAP, HELD_OUT, SOLVERS, Factorization, laws_of
from ._data import coordinates, real
from ._docs import described
from ._types import Array, Blocks, Callback, Data, Freeze, Mask, Priors, RandomState, Shapes, available_if
from ._warn import warn
from .priors import Dirichlet

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
        X = check_array(real(X), dtype=[np.float64, np.float32])
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
    _shares = True
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
        time_limit: float | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
    ) -> None:
        self._take(locals())

    def _solver(self) -> str:
        # As of the command: tempering is of EM.
        return "em" if self.temper != 1 and self.solver == "auto" else self.solver

    def _validate_params(self) -> None:
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            if "'method'" in str(error):
                raise InvalidParameterError(f"{error} 'vb' is variational Bayes, which for PLSA is latent Dirichlet allocation (LDA).") from None
            raise

    def _instead(self, block: str) -> str:
        prior = (self.prior or {}).get(block)
        if not isinstance(prior, Dirichlet) and not str(prior).startswith("dirichlet:"):
            return ""
        return ". A Dirichlet prior of shapes below 1 has no largest posterior: method='vb' fits such a prior, as latent Dirichlet allocation does"

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
        priors = {name: prior for name, prior in self._laws(self.n_components_).items() if name in own}
        shapes = self._block_shapes(shape, self.n_components_)
        return {**self._options(), "prior": self._priors_of(priors, shapes)}

    def _file_settings(self) -> dict[str, Any]:
        return {} if self._vb else {"temper": self.temper}

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        params = super()._params_of(name, settings, blocks)
        if name.endswith("-vb"):
            return {"method": "vb", "prior": laws_of(settings), **params}
        # The command has it as a text, which may be a schedule; that is of its fit alone.
        try:
            return {"temper": float(settings.get("temper") or 1.0), **params}
        except ValueError:
            return params

    def _objective_name(self) -> str:
        return "elbo" if self._vb else super()._objective_name()

    def _order(self) -> tuple[str, dict[str, Any]]:
        if self._vb:
            self._plainly("freeze")
            return self._model(), {**self._options(), **({"prior": {}} if self._laws(1) else {})}
        self._plainly("prior", "freeze")
        return "plca", {}

    def _learnt(self) -> tuple[Array, Array, Array, float]:
        if self._vb:
            shapes = np.asarray(self._blocks["basis" + SHAPE])
            samples = self._shape[0]
            weights = shapes.sum(axis=0) / shapes.sum()
            return shapes, weights, np.maximum(shapes - self._alpha("basis"), 0) / samples, float(samples)
        shared = np.ascontiguousarray(self.components_.T)
        return shared, self.weights_, shared * self.weights_, float(self._facts()["data"]["total"])

    def _alpha(self, block: str) -> Any:
        """The shapes of the Dirichlet prior of a block."""
        prior: Any = self._laws(self.n_components_).get(block, 1.0)
        return prior.alpha if isinstance(prior, Dirichlet) else float(str(prior).removeprefix("dirichlet:"))

    @available_if(_learns)
    def partial_fit(self, X: Data, y: object = None, *, observed: Mask = None, total_samples: float | None = None) -> Self:
        """Learn from one more batch of samples; earlier batches have less and less weight.

        After :meth:`fit`, or from a file, it goes on from what was learnt: a fit of n samples counts as n / (samples of the first batch)
        earlier batches. With ``method="vb"`` this is online latent Dirichlet allocation, of `PLSA` alone.

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
            bound, `n_iter_` the number of batches,
            with those that a fit counts as; `trace_` has one entry for each batch since then.
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

    def perplexity(self, X: Data, y: object = None, *, known: Data = None, observed: Mask = None) -> float:
        r"""The perplexity of new data; smaller is better.

        .. math:: \exp\Bigl( -\frac{\sum_{y,x} X_{yx} \ln P(x \mid y)}{\sum_{y,x} X_{yx}} \Bigr),
                  \qquad P(x \mid y) = \sum_z P(x \mid z) P(z \mid y)

        With ``known``, document completion: the mixtures :math:`P(z \mid y)` are those of ``known``, such as one half of the words of each document, and
        `X` is what is scored, the other half. That is what models, and numbers of components, can be compared by.

        Without ``known`` it is the exponential of minus :meth:`score`, and not held-out perplexity: the mixtures are fitted to the words that are
        scored, which flatters models with many components and without priors. With ``method="vb"`` it is that of the bound, in which
        the divergence of the mixtures from their prior counts, too.

        Counts where no component has positive probability, such as words that were not seen in the fit, are left out of both sums, with a
        warning. A count that some component gives a positive probability, but not the mixture of its sample, makes the perplexity infinite, or
        huge where rounding has left some: this happens to maximum likelihood, not with ``method="vb"`` or priors that keep entries positive, such
        as ``"dirichlet:1.05"``. Samples without counts do not matter; without any counts the perplexity is NaN.

        Parameters
        ----------
        %(X)s
        %(y)s
        known : {array-like, sparse matrix} of the shape of X, default=None
            Other counts of the same samples, from which the mixtures are found: by :meth:`transform`.
        %(observed)s

        Returns
        -------
        perplexity : float
            Its value, at least 1.

        Examples
        --------
        >>> import numpy as np
        >>> from plcakit import PLSA
        >>> from plcakit.datasets import make_corpus
        >>> X = make_corpus().counts.toarray().astype(int)
        >>> known = np.random.default_rng(0).binomial(X[80:], 0.5)          # of every word about half
        >>> prior = {"basis": "dirichlet:0.1", "mixture": "dirichlet:0.5"}
        >>> found = [PLSA(k, method="vb", prior=prior, random_state=0).fit(X[:80]).perplexity(X[80:] - known, known=known) for k in (2, 4)]
        >>> bool(found[1] < found[0])
        True
        """
        if known is None:
            check_is_fitted(self)
            X, observed = self._check(X, observed, False, "perplexity")
            found = self._explain(X, observed)[1]
            return float(np.exp(-self._score(found))) if found["total"] > found["dropped"] else float("nan")
        check_is_fitted(self)
        known, _ = self._check(known, None, False, "perplexity")
        X, observed = self._check(X, observed, False, HELD_OUT)
        if known.shape != X.shape:
            raise ValueError(f"known has the shape {known.shape}, expected that of X, {X.shape}")
        counts, places = _entries(X, observed)
        likelihood, total = self._completed(counts, places, self._explained(known, None)[0].astype(np.float64))
        return float(np.exp(-likelihood / total)) if total > 0 else float("nan")

    def _completed(self, counts: Array, places: list[Array], mixtures: Array) -> tuple[float, float]:
        """The log-likelihood of counts under mixtures, and their sum; those that no component may have are left out."""
        factors = [factor.astype(np.float64) for factor in (self.factors_[1:] if isinstance(self, ProductModel) else [self.components_.T])]
        likelihood = total = left = impossible = 0.0
        # What is at work fits into a cache.
        step = max(1, 2**18 // self.n_components_)
        for first in range(0, len(counts), step):
            some, (rows, *cells) = counts[first:first + step], [place[first:first + step] for place in places]
            each = factors[0][cells[0]]
            for factor, cell in zip(factors[1:], cells[1:]):
                each = each * factor[cell]
            seen = each.any(axis=1)
            probabilities = (mixtures[rows] * each).sum(axis=1)[seen]
            impossible += float(some[seen][probabilities == 0].sum())
            with np.errstate(divide="ignore"):
                likelihood += float(some[seen] @ np.log(probabilities))
            total += float(some[seen].sum())
            left += float(some[~seen].sum())
        if left > 0:
            warn(f"data with the sum {left:g} were left out: no component has positive probability there")
        if impossible > 0:
            warn(
                f"data with the sum {impossible:g} have the probability 0 under the mixtures of their samples, so that the perplexity is infinite: "
                "method='vb', or priors such as 'dirichlet:1.05', keep probabilities positive"
            )
        return likelihood, total


def _entries(X: Data, observed: Array | None) -> tuple[Array, list[Array]]:
    """The positive cells that were observed, and where they are."""
    if sparse.issparse(X):
        X = X.tocoo(copy=False)
        values, places = X.data, coordinates(X)
    else:
        places = list(np.nonzero(X > 0))
        values = X[tuple(places)]
    kept = values > 0 if observed is None else (values > 0) & observed[tuple(places)]
    return values[kept].astype(np.float64), [place[kept] for place in places]
