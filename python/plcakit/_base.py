"""What all estimators share: validation, the run, and what is kept of it."""

from __future__ import annotations

import copy
import json
import numbers
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from . import _core
from ._data import check_mask, describe, has_mass, real, seed_of, threads, unmasked, unpacked
from ._docs import described
from ._hints import complete, doubt, hinted, mended
from ._long import LONG, Long
from ._types import Array, Blocks, Callback, Data, Freeze, Mask, Priors, RandomState, Shapes, Start
from ._warn import warn
from ._watch import Watch
from .priors import Prior

if TYPE_CHECKING:
    from typing_extensions import Self

#: The data of a call that only scores them, under what is known of their samples.
HELD_OUT = "held-out counts"
#: What a block of ``freeze`` may have.
_KEPT = "expected True, the numbers of components, a flag for each component, or a boolean array of the block's shape"

#: Settings that every estimator has.
COMMON: dict[str, Any] = {
    "n_components": [Interval(numbers.Integral, 1, 2**63 - 1, closed="both")],
    "init": [StrOptions({"random", "custom"}), None],
    "tol": [Interval(numbers.Real, 0, None, closed="left")],
    "max_iter": [Interval(numbers.Integral, 1, None, closed="left")],
    # Seeds of the command have 64 bits.
    "random_state": [Interval(numbers.Integral, 0, 2**64 - 1, closed="both"), np.random.RandomState, np.random.Generator, None],
    "n_init": [Interval(numbers.Integral, 1, 2**32 - 1, closed="both")],
    "n_jobs": [numbers.Integral, None],
    "warm_start": ["boolean"],
    "missing": [StrOptions({"nan", "unstored"}), None],
    "prior": [dict, None],
    "freeze": [str, tuple, list, set, dict],
    "check_every": [Interval(numbers.Integral, 1, None, closed="left")],
    "time_limit": [Interval(numbers.Real, 0, None, closed="neither"), None],
    "callback": [callable, None],
    "verbose": ["verbose"],
}

#: The setting of models whose transform is certified.
GAP: dict[str, Any] = {"transform_tol": [Interval(numbers.Real, 0, None, closed="left")]}

#: Solvers of all models, and of those that separate.
EXTRAPOLATED = {"auto", "em", "squarem", "parabolic", "momentum"}
SOLVERS = EXTRAPOLATED | {"fast"}


@described
class Factorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of all estimators: a model of the extension module, its settings and its blocks.

    A subclass says which model it is (:meth:`_model`), which settings it gives it (:meth:`_options`), what shapes its blocks have
    (:meth:`_block_shapes`), and what it shows of them (:meth:`_show`).
    """

    #: The models whose files it reads, and the blocks that those have.
    _saved: dict[str, tuple[str, ...]] = {}
    #: Whether data must be counts.
    _counts = True
    #: The estimators for data that are none.
    _signed = "SkellamSNMF (a matrix) or SkellamCP (of any order)"
    #: Whether the model has the samples in its columns.
    _transposed = False
    #: The mode of the samples, as the model sees them.
    _along = 0
    #: Whether data may have more than two dimensions.
    _any_order = False
    #: Whether batches go to the model with the samples in its columns.
    _streams_columns = False
    #: Whether hidden cells are taken.
    _hides = True
    #: Whether the objective is minimised.
    _minimised = False
    #: Whether the objective without priors is wanted where there are some.
    _wants_likelihood = False
    #: Whether a sample is explained by shares, which one without counts does not tell.
    _shares = False
    #: What a score is per: counts, "total", or cells, "observed".
    _per = "total"
    _parameter_constraints: dict[str, Any] = COMMON

    n_components: Any
    init: str | None
    tol: float
    max_iter: int
    random_state: RandomState
    n_init: int
    n_jobs: int | None
    warm_start: bool
    missing: str | None
    prior: Priors
    freeze: Freeze
    check_every: int
    time_limit: float | None
    callback: Callback | None
    verbose: int
    solver: str

    n_iter_: int
    objective_: float
    converged_: bool
    stop_reason_: str
    trace_: Array
    n_components_: int
    n_features_in_: int
    feature_names_in_: Array
    _blocks: Blocks
    _known: Blocks
    _metadata: str
    _shape: tuple[int, ...]
    _seed: int

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "__init__" in vars(cls):
            cls.__init__ = hinted(cls.__init__)  # type: ignore[method-assign]

    def _take(self, settings: dict[str, Any]) -> None:
        """Keeps the arguments of a constructor, its ``locals()``, as they are."""
        for name, value in settings.items():
            if name != "self":
                setattr(self, name, value)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # NaN marks a cell of a dense array alone.
        tags.input_tags.sparse = getattr(self, "missing", None) != "nan"
        tags.input_tags.positive_only = self._counts
        tags.input_tags.allow_nan = getattr(self, "missing", None) == "nan"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    # What a subclass says -------------------------------------------------------------------------------------------------------

    def _model(self) -> str:
        raise NotImplementedError

    def _options(self) -> dict[str, Any]:
        return {}

    def _solver(self) -> str:
        return self.solver

    def _start_name(self) -> str:
        """Where blocks come from that a start does not give."""
        return "random" if self.init is None or self.init == "custom" else self.init

    def _components(self, shape: tuple[int, ...], start: Start) -> int:
        return int(self.n_components)

    def _block_shapes(self, shape: tuple[int, ...], k: int) -> Shapes:
        """The shape of every block that may be given, frozen or have a prior, for the shape of the data as the model sees them."""
        raise NotImplementedError

    def _show(self, blocks: Blocks) -> None:
        raise NotImplementedError

    def _answer(self, blocks: Blocks) -> Array:
        """What new data are explained by, samples in rows."""
        raise NotImplementedError

    def _answer_empty(self, samples: int, dtype: Any) -> Array:
        """What samples without mass are explained by, as by the command: equal shares, or nothing."""
        return np.full((samples, self.n_components_), 1 / self.n_components_ if self._shares else 0, dtype=dtype)

    # Data -----------------------------------------------------------------------------------------------------------------------

    def _check(self, X: Data, observed: Mask, reset: bool, whom: str) -> tuple[Any, Array | None]:
        if isinstance(X, Long):
            raise TypeError(LONG)
        given = X
        X, observed = unmasked(unpacked(X), observed)
        needing = {"ntf-l2": "(beta_loss='frobenius')", "plsa-vb": "(method='vb')", "plca-vb": "(method='vb')"}
        # What is only scored may have hidden cells under any model.
        how = "" if whom == HELD_OUT else needing.get(self._model(), "")
        hides, name = self._hides and not how, type(self).__name__ + how
        if observed is not None and not hides:
            raise ValueError(f"observed: {complete(name)}")
        if sparse.issparse(X) and X.ndim > 2 and self._any_order:
            if X.dtype not in (np.float32, np.float64):
                X = X.astype(np.float64)
            if reset and self.__sklearn_tags__().input_tags.two_d_array:
                self.n_features_in_ = X.shape[1]
        else:
            # Values of hidden cells are never read; Rust refuses those that were observed, by their place.
            finite: bool | str = True
            if observed is not None:
                finite = False
            elif self.missing == "nan" and hides:
                finite = "allow-nan"
            taken = {"accept_sparse": ("csr", "csc"), "dtype": [np.float64, np.float32], "ensure_all_finite": finite}
            with mended(given, name, hides):
                X = self._validated(X, reset, {**taken, "allow_nd": self._any_order})
        if reset:
            doubt(given, X, getattr(self, "feature_names_in_", ()))
        if self._counts and observed is None:
            self._check_signs(X, whom)
        return X, check_mask(observed, X.shape)

    def _check_signs(self, X: Any, whom: str) -> None:
        try:
            check_non_negative(X, f"{type(self).__name__} ({whom})")
        except ValueError as error:
            noise = "small negative noise may be set to 0, np.maximum(X, 0)"
            raise ValueError(f"{str(error).rstrip('.')}: {noise}; {self._signed} is for data of either sign") from error

    def _validated(self, X: Data, reset: bool, how: dict[str, Any]) -> Any:
        """The data as arrays, checked by scikit-learn."""
        checked = self
        if reset:
            self.__dict__.pop("_named", None)
        elif getattr(self, "_named", False) and not hasattr(X, "columns"):
            # Nobody has fitted a frame: that an array has no names is no mistake.
            checked = copy.copy(self)
            del checked.feature_names_in_
        return validate_data(checked, X, reset=reset, **how)

    def _name_features(self, names: Any) -> None:
        """Takes names of features that the data themselves do not have."""
        self.feature_names_in_ = np.asarray(names, dtype=object)
        self._named = True

    def _describe(self, X: Data, observed: Mask) -> dict[str, Any]:
        return describe(X, observed, self.missing, self._transposed)

    # Settings -------------------------------------------------------------------------------------------------------------------

    def _frozen(self, shapes: Shapes, k: int | None = None) -> dict[str, Any]:
        freeze: Any = self.freeze
        if isinstance(freeze, str):
            freeze = (freeze,)
        if not isinstance(freeze, dict):
            return {name: True for name in freeze}
        components: dict[str, Any] = {}
        for name, which in freeze.items():
            if isinstance(which, (bool, np.bool_)) and which:
                components[name] = True
            elif which is not None and not isinstance(which, (bool, np.bool_)):
                places = np.atleast_1d(np.asarray(which))
                if places.dtype == bool and places.ndim > 1:
                    if shapes and name not in shapes:
                        raise ValueError(f"freeze: no block '{name}', expected one of {', '.join(shapes)}")
                    size = shapes.get(name)
                    if size is not None and places.shape != tuple(size):
                        raise ValueError(f"freeze of '{name}' has the shape {places.shape}, expected that of the block, {tuple(size)}")
                    components[name] = np.ascontiguousarray(places, dtype=float)
                    continue
                if places.dtype == bool:
                    if k is not None and len(places) != k:
                        raise ValueError(f"freeze of '{name}' has {len(places)} flags, expected one for each of {k} components")
                    places = np.flatnonzero(places)
                if places.ndim != 1 or places.size and places.dtype.kind not in "iu":
                    raise ValueError(f"freeze of '{name}' is {which!r}, {_KEPT}")
                components[name] = places.tolist()
        return components

    def _prior_shapes(self, shapes: Shapes) -> Shapes:
        """The blocks that may have a prior."""
        return shapes

    def _laws(self, k: int) -> dict[str, Any]:
        """The priors of a model of `k` components, also those that are not asked for."""
        return dict(self.prior or {})

    def _priors(self, shapes: Shapes) -> dict[str, Any]:
        return self._priors_of(self.prior, shapes)

    def _priors_of(self, given: Priors, shapes: Shapes) -> dict[str, Any]:
        """These priors as the extension module takes them, for blocks of these shapes."""
        priors: dict[str, Any] = {}
        prior: Any
        shapes = self._prior_shapes(shapes)
        for name, prior in (given or {}).items():
            if name not in shapes:
                known = f"expected one of {', '.join(shapes)}" if shapes else "this model takes no priors"
                raise ValueError(f"prior: no block '{name}', {known}")
            if isinstance(prior, Prior):
                prior = prior.setting(shapes[name])
            elif not isinstance(prior, str):
                raise ValueError(
                    f"prior of '{name}' is {prior!r}, expected a text such as 'dirichlet:1.1' or an object of plcakit.priors"
                )
            priors[name] = prior
        return priors

    def _penalties(self, shapes: Shapes) -> dict[str, Any]:
        """Penalties of blocks that are not priors."""
        return {}

    def _start(self, start: Start, shapes: Shapes, X: Data, observed: Mask) -> Blocks:
        if start is not None and not hasattr(start, "items"):
            raise TypeError(f"start is {start!r}, expected a dict of blocks, {', '.join(shapes)}")
        blocks = {}
        for name, block in (start or {}).items():
            if name not in shapes:
                known = ", ".join(shapes)
                raise ValueError(f"start: no block '{name}', expected one of {known}")
            if np.ma.is_masked(block):
                raise ValueError(f"start: '{name}' has masked entries, expected all of them")
            block = real(np.asarray(block), f"start: '{name}'")
            if block.dtype not in (np.float32, np.float64):
                block = block.astype(np.float64)
            # Where the size follows from the data, the model looks at it.
            if shapes[name] is not None and block.shape != tuple(shapes[name]):
                raise ValueError(f"start: '{name}' has shape {block.shape}, expected {tuple(shapes[name])}")
            blocks[name] = block
        if self.warm_start and hasattr(self, "_blocks"):
            for name, block in self._blocks.items():
                if name in shapes and (shapes[name] is None or block.shape == tuple(shapes[name])):
                    blocks.setdefault(name, block)
        return blocks

    # Fit ------------------------------------------------------------------------------------------------------------------------

    def fit(self, X: Data, y: object = None, *, observed: Mask = None, start: Start = None) -> Self:
        """Fit the model to data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data. Not to be changed by other threads meanwhile.
        %(y)s
        %(observed)s
        %(start)s

        %(fitted)s
        """
        self._fit(X, observed, start)
        return self

    def _fit(self, X: Data, observed: Mask = None, start: Start = None) -> tuple[Any, Array | None]:
        self._validate_params()
        X, observed = self._check(X, observed, True, "fit")
        data = self._describe(X, observed)
        shape = data["shape"]
        k = self._components(shape, start)
        shapes = self._block_shapes(shape, k)
        blocks = {"freeze": self._frozen(shapes, k), "prior": self._priors(shapes), "penalty": self._penalties(shapes)}
        options = {**self._options(), **{name: given for name, given in blocks.items() if given}}
        start = self._start(start, shapes, X, observed)
        seed = seed_of(self.random_state)
        plan = {
            "components": k,
            "options": options,
            "start": start,
            "init": self._start_name(),
            "seed": seed,
            # With every block given all starts are the same.
            "starts": 1 if all(name in start for name in shapes) else int(self.n_init),
            "solver": self._solver(),
            "stop": self._stop(),
            "likelihood": self._wants_likelihood and bool(blocks["prior"] or blocks["penalty"]),
            "threads": threads(self.n_jobs),
        }
        watch, ended = self._watch(), {}
        try:
            result = _core.fit(self._model(), data, plan, watch)
            ended = {"iterations": result["iterations"], "objective": result["objective"]}
        finally:
            if watch is not None:
                watch.close(**ended)
        self._keep(result, shape, k, seed)
        if result["error"] is not None:
            self.converged_ = False
            self.stop_reason_ = "interrupted"
            raise result["error"]
        self._warn(result)
        if self._model() in ("plca-vb", "plsa-vb") and (sum_of_each := _core.shares(data)) is not None:
            warn(
                f"X looks like shares: it has fractions, and all rows or all columns sum to {sum_of_each:.3g}, which method='vb' takes for numbers "
                "of counts beside the priors: give counts, or multiply every sample by its number of counts"
            )
        return X, observed

    def _stop(self) -> dict[str, float]:
        limit = {} if self.time_limit is None else {"time_limit": float(self.time_limit)}
        return {"tol": float(self.tol), "max_iter": int(self.max_iter), "check_every": int(self.check_every), **limit}

    def _watch(self) -> Watch | None:
        if self.callback is None and not self.verbose:
            return None
        return Watch(type(self).__name__, self.callback, self.verbose, int(self.max_iter))

    def _keep(self, result: dict[str, Any], shape: tuple[int, ...], k: int, seed: int) -> None:
        # A fit ends a stream.
        self.__dict__.pop("_known", None)
        self._blocks = result["arrays"]
        self._metadata = result["metadata"]
        self._shape = tuple(int(n) for n in shape)
        self._seed = seed
        self._posterior = result["posterior"]
        self._likelihood = result.get("likelihood")
        self._single = any(
            block.dtype == np.float32 for name, block in self._blocks.items() if name != "scale"
        )
        self.n_components_ = k
        self.n_iter_ = result["iterations"]
        self.objective_ = result["objective"]
        self.converged_ = result["converged"]
        self.stop_reason_ = result["status"]
        iterations, objectives = result["trace"]
        trace = np.empty(len(iterations), dtype=[("iteration", np.int64), ("objective", np.float64)])
        trace["iteration"], trace["objective"] = iterations, objectives
        self.trace_ = trace
        self._show(self._blocks)

    def _warn(self, result: dict[str, Any]) -> None:
        name = type(self).__name__
        # Of every iteration in which it did.
        for block in dict.fromkeys(result["restored"]):
            warn(
                f"the prior of '{block}' set entries to 0 that the data need: 1e-12 was added to every entry, so the "
                f"objective may have fallen{self._instead(block)}"
            )
        hidden = result.get("unobserved") or []
        for axis, indices in enumerate(hidden[::-1] if self._transposed else hidden):
            if indices:
                # As the command lists them.
                listed = f"{len(indices)} indices, the first {indices[:8]}" if len(indices) > 8 else str(indices)
                warn(f"no observed cell along axis {axis} of X at {listed}: nothing is known of the values there")
        if far := result.get("far"):
            index, value, largest = far
            where = tuple(index[::-1] if self._transposed else index)
            warn(
                f"the approximation of the hidden cell {where} is {value:.3g}, {abs(value) / largest:.0f} times the largest of the data: the observed cells do "
                "not determine it, so take it for unknown; a prior, fewer components or fewer iterations, max_iter, keep it nearer"
            )
        if result["status"] == "max_iterations" and self.tol > 0:
            warn(
                f"{name} made all {self.max_iter} iterations and its objective still changes by more than tol={self.tol} "
                "per unit of data and iteration: raise max_iter or tol, or take another solver",
                ConvergenceWarning,
            )
        if result["status"] == "time_limit":
            warn(f"{name} reached time_limit={self.time_limit} after {self.n_iter_} iterations, before it converged", ConvergenceWarning)

    def _instead(self, block: str) -> str:
        """What there is in the place of a prior that is too strong for the data."""
        return ""

    def fit_transform(self, X: Data, y: object = None, *, observed: Mask = None, start: Start = None) -> Any:
        """Fit the model and transform the same data: ``fit(X).transform(X)``.

        Parameters
        ----------
        %(X)s
        %(y)s
        %(observed)s
        %(start)s

        Returns
        -------
        W : ndarray of shape (n_samples, n_components)
            What every sample is made of.
        """
        X, observed = self._fit(X, observed, start)
        return self._explained(X, observed)[0]

    # Batches --------------------------------------------------------------------------------------------------------------------

    def _partial_fit(self, X: Data, observed: Mask, total: float | None = None) -> None:
        first = not hasattr(self, "_blocks")
        self._validate_params()
        if self.freeze:
            raise ValueError(f"freeze is {self.freeze!r}: partial_fit does not support freeze")
        X, observed = self._check(X, observed, first, "partial_fit")
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions: partial_fit needs a matrix")
        data = describe(X, observed, self.missing, self._streams_columns)
        k = self._components(X.shape, None)
        known = getattr(self, "_known", None)
        streams = first or known is not None
        if first:
            self._seed = seed_of(self.random_state)
        else:
            self._check_stream()
            # Of "auto" that of what was learnt.
            k = self.n_components_
        if not streams:
            known = self._resumed(X.shape[0])
        priors = self._priors(self._block_shapes(X.shape, k))
        if self._streams_columns:
            other = {"factor_0": "factor_1", "factor_1": "factor_0"}
            priors = {other.get(name, name): prior for name, prior in priors.items()}
        options = {**self._options(), "prior": priors} if priors else self._options()
        fitted = {"fitted": known["fitted"]} if known and "fitted" in known else {}
        lesson = {
            "components": k,
            "options": options,
            "seed": self._seed,
            "threads": threads(self.n_jobs),
            "total": total,
            "drawn": not fitted,
        }
        learnt = _core.learn(self._model(), data, lesson, known)
        known = {**learnt["known"], **fitted}
        objective = (-1 if self._minimised else 1) * learnt["log_likelihood"]
        trace = list(zip(self.trace_["iteration"], self.trace_["objective"])) if streams and not first else []
        trace.append((learnt["batches"], objective))
        result = {
            "arrays": self._after_batch(known, learnt["arrays"]),
            "metadata": learnt["metadata"],
            "iterations": learnt["batches"],
            "objective": objective,
            "converged": False,
            "status": "batch",
            "posterior": False,
            "restored": learnt["restored"],
            "trace": tuple(zip(*trace)),
        }
        self._keep(result, X.shape, k, self._seed)
        self._known = known
        self._warn(result)

    def _check_stream(self) -> None:
        """Refuses what has other components, or is another model, than what was learnt."""
        remedy = "to begin anew take a new estimator, such as sklearn.base.clone makes"
        k = self.n_components
        if isinstance(k, numbers.Integral) and k != self.n_components_:
            raise ValueError(f"n_components is {k}, but what was learnt has {self.n_components_}, which a stream cannot change: {remedy}")
        learnt = self._facts()["model"]
        if learnt != self._model():
            raise ValueError(f"what was learnt is of the model {learnt!r}, from which {self._model()!r} cannot go on: {remedy}")

    def _resumed(self, samples: int) -> Blocks:
        """What a stream goes on from after a fit, in batches of so many samples: the fit counts as the batches that its data would have been."""
        if len(self._shape) != 2:
            raise ValueError(f"the model was fitted to data of {len(self._shape)} dimensions: partial_fit needs a matrix")
        shared, weights, joint, amount = self._learnt()
        batches = max(1, round(self._shape[1 if self._transposed else 0] / samples))
        counts = np.array([batches, amount, amount, amount], dtype=np.float64)
        return {"counts": counts, "weights": weights, "factor_0": shared, "statistics_0": joint, "fitted": np.ones(1)}

    def _learnt(self) -> tuple[Array, Array, Array, float]:
        """What batches share after a fit: the block of the features, the weights, the joint distribution of both, and the amount of the data."""
        raise NotImplementedError

    # Transform ------------------------------------------------------------------------------------------------------------------

    def transform(self, X: Data, *, observed: Mask = None, return_gap: bool = False) -> Any:
        """Find the mixtures or activations of new data under the learnt components.

        Every sample is explained alone, as a batch of one: its values do not depend on the others of `X`.

        Parameters
        ----------
        %(X)s
        %(observed)s
        return_gap : bool, default=False
            Whether to return, too, how far the answer is from the best one at most.

        Returns
        -------
        W : ndarray of shape (n_samples, n_components)
            What every sample is made of.
        gap : ndarray
            The certificates, of every sample: its log-likelihood is at most its sum times the gap below its maximum. Only with
            ``return_gap``.
        """
        check_is_fitted(self)
        X, observed = self._check(X, observed, False, "transform")
        answer, found = self._explained(X, observed)
        return (answer, found["gap"]) if return_gap else answer

    def _explained(self, X: Data, observed: Mask) -> tuple[Array, dict[str, Any]]:
        """What new data are explained by; of samples that say nothing about it there is a warning."""
        answer, found = self._explain(X, observed, each=True)
        empty = [int(n) for n in found["empty"]]
        if self._shares and empty:
            listed = f"samples {empty}" if len(empty) <= 10 else f"{len(empty)} samples, the first {empty[:10]},"
            warn(f"{listed} have no observed sum above 0: the values returned for them have no meaning")
        hidden = [] if self._shares else _hidden_samples(X, observed, self.missing)
        if len(hidden):
            listed = f"samples {list(hidden)}" if len(hidden) <= 10 else f"{len(hidden)} samples, the first {list(hidden[:10])},"
            warn(f"{listed} are hidden: the values returned for them have no meaning")
        return answer, found

    def _explain(self, X: Data, observed: Mask, each: bool = False) -> tuple[Array, dict[str, Any]]:
        """What new data are explained by, every sample as a batch of one or all of them together, which matters to models that normalise over a batch."""
        found: dict[str, Any]
        if self._counts:
            if not has_mass(X, observed, self.missing):
                # Nothing to explain.
                found = {"gap": np.zeros(X.shape[0]), "objective": 0.0, "total": 0.0, "observed": 0.0, "dropped": 0.0}
                found["empty"] = range(X.shape[0])
                return self._answer_empty(X.shape[0], X.dtype), found
        found = self._find(X, observed, self._along, each)
        return self._answer(found["arrays"]), found

    def _find(self, X: Data, observed: Mask, along: int, each: bool = False) -> dict[str, Any]:
        """What new data are explained by that extend the data of the fit along this mode."""
        data = self._describe(X, observed)
        how = {
            "components": self.n_components_,
            "options": self._transform_options(data["shape"], along),
            "along": along,
            "each": each,
            "solver": "auto",
            "stop": self._transform_stop(),
            "threads": threads(self.n_jobs),
        }
        found = _core.transform(self._model(), self._blocks, self._metadata, data, how)
        if found["dropped"] > 0:
            warn(f"data with the sum {found['dropped']:g} were left out: no component has positive probability there")
        if found["status"] == "max_iterations" and getattr(self, "transform_tol", 1) > 0:
            warn(
                f"{type(self).__name__} explained the data by {found['iterations']} iterations, the largest number, before all samples converged: "
                "their values may still change",
                ConvergenceWarning,
            )
        return found

    def _transform_options(self, shape: tuple[int, ...], along: int) -> dict[str, Any]:
        """Settings that hold for new data, of this shape as the model sees them."""
        return {}

    def _transform_stop(self) -> dict[str, float]:
        tol = getattr(self, "transform_tol", None)
        if tol is None:
            return {}
        # As of the command: without a gap to reach, all iterations are made.
        return {"residual_tol": float(tol)} if tol > 0 else {"residual_tol": 0.0, "tol": 0.0}

    def score(self, X: Data, y: object = None, *, observed: Mask = None) -> float:
        """How well the model fits new data; larger is better.

        Parameters
        ----------
        %(X)s
        %(y)s
        %(observed)s

        Returns
        -------
        score : float
            The log-likelihood per count, or minus the divergence or squared error per observed cell. Counts where no component has positive
            probability, such as words that were not seen, are left out, with a warning, and so are samples without any others.
        """
        check_is_fitted(self)
        X, observed = self._check(X, observed, False, "score")
        return self._score(self._explain(X, observed)[1])

    def _score(self, found: dict[str, Any]) -> float:
        # What was left out is not in the objective.
        many = found["total"] - found["dropped"] if self._per == "total" else found["observed"]
        return float((-1 if self._minimised else 1) * found["objective"] / many) if many > 0 else 0.0

    def reconstruct(self) -> Array:
        """The approximation of the data that the model was fitted to.

        Returns
        -------
        Y : ndarray of the shape of the data
            Hidden cells are filled.
        """
        return self._reconstruct(None)

    def component(self, z: int) -> Array:
        """The part of the approximation that one component contributes.

        Parameters
        ----------
        z : int
            The component, counted from 0.

        Returns
        -------
        Y : ndarray of the shape of the data
            Its part; the parts of all components add up to :meth:`reconstruct`.
        """
        if not 0 <= int(z) < getattr(self, "n_components_", np.inf):
            raise ValueError(f"no component {z}: the model has {self.n_components_}, counted from 0")
        return self._reconstruct(int(z))

    def _sample(self, n: int | None, random_state: RandomState, as_sparse: bool, options: dict[str, Any]) -> Any:
        check_is_fitted(self)
        if n is not None and not (isinstance(n, numbers.Integral) and n >= 0):
            raise ValueError(f"n is {n!r}, expected a whole number >= 0")
        draws = None if n is None else int(n)
        drawn = _core.sample(self._model(), self._blocks, self._metadata, options, draws, seed_of(random_state))
        if "values" in drawn:
            cells = drawn["values"].T if self._transposed else drawn["values"]
            return sparse.csr_matrix(cells) if as_sparse else np.ascontiguousarray(cells)
        places, shape = drawn["indices"].T, tuple(drawn["shape"])
        if as_sparse and len(shape) != 2:
            raise ValueError(f"as_sparse: the model is of {len(shape)} dimensions, a sparse matrix has two")
        if as_sparse:
            # What occurs twice is added up.
            return sparse.csr_matrix((np.ones(places.shape[1]), (places[0], places[1])), shape=shape)
        flat = np.ravel_multi_index(tuple(places), shape)
        return np.bincount(flat, minlength=int(np.prod(shape))).astype(np.float64).reshape(shape)

    def _reconstruct(self, component: int | None) -> Array:
        check_is_fitted(self)
        cells = _core.reconstruct(self._model(), self._blocks, self._metadata, self._single, component)
        return cells.T if self._transposed else cells

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file that the command ``plca`` reads: ``.npz`` or ``.safetensors``.

        Pickles are for one environment, files are for good.

        Parameters
        ----------
        path : path-like
            The file; it is written whole or not at all.
        """
        from .files import write

        check_is_fitted(self)
        write(self, path)

    def _load(self, blocks: Blocks, metadata: dict[str, Any]) -> None:
        """Takes what a file holds, as if it had been fitted here."""
        blocks, metadata = self._adopt(blocks, metadata)
        shape = metadata["data"]["shape"]
        k = self._count(blocks)
        if self.n_components != k:
            self.n_components = k
        result = {
            "arrays": blocks,
            "metadata": json.dumps(metadata),
            "iterations": metadata.get("iterations", 0),
            "objective": metadata.get("objective", float("nan")),
            "converged": metadata.get("stop_reason") in ("converged", "stationary", "settled"),
            "status": metadata.get("stop_reason", "unknown"),
            "posterior": metadata.get("objective_name") in ("log_posterior", "penalised_divergence"),
            "trace": ([], []),
        }
        self._keep(result, shape, k, metadata.get("seed", 0))
        if self.__sklearn_tags__().input_tags.two_d_array:
            self.n_features_in_ = int(self._shape[0] if self._transposed else self._shape[1])

    def _adopt(self, blocks: Blocks, metadata: dict[str, Any]) -> tuple[Blocks, dict[str, Any]]:
        """Blocks and metadata of a file as this estimator has them."""
        return blocks, metadata

    def _count(self, blocks: Blocks) -> int:
        """The number of components that blocks of a file have."""
        raise NotImplementedError

    def _file_settings(self) -> dict[str, Any]:
        """Settings that the command looks for in the metadata."""
        return {}

    @classmethod
    def _params_of(cls, name: str, settings: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
        """The parameters that follow from the settings of a file of this model."""
        params = {key: settings.get(key) for key in ("tol", "max_iter", "check_every")}
        return {key: value for key, value in params.items() if value is not None}

    def _order(self) -> tuple[str, dict[str, Any]]:
        """The model whose likelihood chooses the number of components of this one, and its settings."""
        raise ValueError(f"select: {type(self).__name__} has no likelihood, which select needs")

    def _plainly(self, *names: str) -> None:
        """Refuses settings that scores do not know of."""
        wrong = [name for name in names if getattr(self, name)]
        if self.init not in (None, "random"):
            wrong.append("init")
        if getattr(self, "temper", 1) != 1:
            wrong.append("temper")
        if wrong:
            raise ValueError(f"select: {wrong[0]} is {getattr(self, wrong[0])!r}, which select does not support: leave it out")

    def _objective_name(self) -> str:
        return "log_posterior" if self._posterior else "log_likelihood"

    def _facts(self) -> dict[str, Any]:
        return json.loads(self._metadata)

    def _remembered(self, name: str) -> Array:
        """Numbers that a state remembers beside its blocks: many are an array, a few are metadata."""
        many = self._blocks.get(f"fact.{name}")
        return np.asarray(self._facts()["facts"][name] if many is None else many, dtype=np.float64)


def laws_of(settings: dict[str, Any]) -> dict[str, str] | None:
    """The priors that the settings of a file say."""
    prior = dict(text.split("=", 1) for text in settings.get("prior") or [])
    return {name.removesuffix("_shape"): law for name, law in prior.items()} or None


def annealed(settings: dict[str, Any]) -> dict[str, Any]:
    """The annealing that the settings of a file say; one without an end the command alone has."""
    power = settings.get("anneal")
    return {"anneal": tuple(power)} if power and power[1] is not None else {}


def supported(settings: dict[str, Any]) -> dict[str, Any]:
    """The supports that the settings of a file say."""
    return {"support": tuple(settings["domain"])} if settings.get("domain") else {}


def _hidden_samples(X: Any, observed: Array | None, missing: str | None) -> list[int]:
    """The samples of which no cell was observed."""
    seen = None if observed is None else observed.reshape(len(observed), -1).any(axis=1)
    if sparse.issparse(X):
        if missing == "unstored" and X.ndim == 2:
            stored = np.diff(sparse.csr_array(X).indptr) > 0
            seen = stored if seen is None else seen & stored
    elif missing == "nan":
        cells = ~np.isnan(X) if observed is None else ~np.isnan(X) & observed
        seen = cells.reshape(len(cells), -1).any(axis=1)
    return [] if seen is None else [int(n) for n in np.flatnonzero(~seen)]
