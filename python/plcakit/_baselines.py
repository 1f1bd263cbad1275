"""Baselines for data of either sign, in squared error: semi-NMF and k-means."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions

from ._base import COMMON
from ._docs import described
from ._mixtures import MixtureModel
from ._types import Array, Blocks, Callback, Data, Freeze, Mask, RandomState, Shapes


class Baseline(MixtureModel):
    """Models of a matrix of either sign in squared error, without priors and hidden cells."""

    reconstruction_err_: float

    #: The blocks of the features and of the samples.
    _features: str

    _counts = False
    _hides = False
    _minimised = True
    _transposed = True
    _along = 1
    _per = "observed"
    missing = None
    prior = None
    solver = "auto"
    _parameter_constraints = {name: rule for name, rule in COMMON.items() if name not in ("missing", "prior")}

    def _show(self, blocks: Blocks) -> None:
        self.components_ = np.ascontiguousarray(blocks[self._features].T)
        self.reconstruction_err_ = float(np.sqrt(max(self.objective_, 0.0)))

    def _count(self, blocks: Blocks) -> int:
        return int(blocks[self._features].shape[1])

    def _objective_name(self) -> str:
        return "squared_error"


@described
class SemiNMF(Baseline):
    r"""Semi-NMF of data of either sign in squared error: components of any sign, activations that are not negative.

    .. math:: \min \Vert X - A C \Vert^2, \qquad A \ge 0

    The updates of Ding, Li and Jordan: a baseline for :class:`SkellamSNMF`. The data are complete. It is ``plca fit snmf-ding --samples 0``.

    Parameters
    ----------
    %(n_components)s
    %(init)s
    %(tol)s
    %(max_iter)s
    %(starts)s
    %(watch)s

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The components, of any sign.
    reconstruction_err_ : float
        The root of the squared error.
    objective_ : float
        The squared error.
    %(ended)s
    %(features)s

    References
    ----------
    C. Ding, T. Li and M. Jordan, "Convex and semi-nonnegative matrix factorizations", IEEE Transactions on Pattern Analysis and Machine
    Intelligence 32, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import SemiNMF
    >>> X = np.array([[2.0, -1.0], [4.0, -2.0]])
    >>> model = SemiNMF(n_components=1, random_state=0).fit(X)
    >>> bool(abs(model.inverse_transform(model.transform(X)) - X).max() < 1e-3)
    True
    """

    _saved = {"snmf-ding": ("basis", "activations")}
    _features = "basis"

    def __init__(
        self,
        n_components: int = 10,
        *,
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
        return "snmf-ding"

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        return {"basis": (shape[0], k), "activations": (k, shape[1])}

    def _answer(self, blocks: Blocks) -> Array:
        return np.ascontiguousarray(blocks["activations"].T)


@described
class KMeans(Baseline):
    r"""k-means as a factorization: every sample is one of a few centres.

    .. math:: \min \sum_n \Vert x_n - c_{l(n)} \Vert^2

    A baseline for data of either sign, which are complete. It is ``plca fit kmeans --samples 0``.

    Parameters
    ----------
    n_components : int, default=10
        The number of clusters, at most that of the samples.
    seeding : {"plus-plus", "random"}, default="plus-plus"
        How the first centres are drawn from the samples: far from one another (k-means++), or all alike.
    %(init)s
    %(max_iter)s
    %(starts)s
    %(watch)s

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The centres.
    labels_ : ndarray of shape (n_samples,)
        The cluster of every sample of the fit.
    reconstruction_err_ : float
        The root of the squared error.
    objective_ : float
        The squared error.
    %(ended)s
    %(features)s

    References
    ----------
    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import KMeans
    >>> X = np.array([[0.0, 1.0], [9.0, -1.0], [1.0, 1.0]])
    >>> model = KMeans(n_components=2, random_state=0).fit(X)
    >>> bool(model.labels_[0] == model.labels_[2] != model.labels_[1])
    True
    >>> model.transform(X).sum(axis=1)
    array([1., 1., 1.])
    """

    labels_: Array

    _saved = {"kmeans": ("centres", "labels")}
    _features = "centres"
    tol = 0.0
    _parameter_constraints = {
        **{name: rule for name, rule in Baseline._parameter_constraints.items() if name != "tol"},
        "seeding": [StrOptions({"plus-plus", "random"})],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        seeding: str = "plus-plus",
        init: str | None = None,
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
        return "kmeans"

    def _options(self) -> dict[str, Any]:
        return {"seeding": self.seeding}

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        return {"centres": (shape[0], k)}

    def _show(self, blocks: Blocks) -> None:
        super()._show(blocks)
        self.labels_ = _labels(blocks)

    def _answer(self, blocks: Blocks) -> Array:
        memberships = np.zeros((len(blocks["labels"]), self.n_components_), dtype=blocks["centres"].dtype)
        memberships[np.arange(len(memberships)), _labels(blocks)] = 1
        return memberships

    def predict(self, X: Data, *, observed: Mask = None) -> Array:
        """The cluster of every sample: that of the nearest centre.

        Parameters
        ----------
        %(X)s
        %(observed)s

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Their numbers, from 0.
        """
        return self.transform(X, observed=observed).argmax(axis=1)

    def _file_settings(self) -> dict[str, Any]:
        return {**super()._file_settings(), "seeding": self.seeding}

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        params = super()._params_of(name, settings, blocks)
        params.pop("tol", None)
        return {**params, "seeding": settings.get("seeding") or "plus-plus"}


def _labels(blocks: Blocks) -> Array:
    return np.ravel(blocks["labels"]).astype(np.int64)
