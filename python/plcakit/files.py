"""Model files, which the command ``plca`` and this package share."""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._types import Blocks
from .priors import Dirichlet, Prior

if TYPE_CHECKING:
    from ._base import Factorization

__all__ = ["load"]

#: Before the name of an array: what a stream of batches goes on from.
STREAM = "fact.stream."
#: After the name of a block: the array of its Dirichlet prior, as of the command's ``--priors``.
DIRICHLET = ".dirichlet"


def _plain(value: Any) -> Any:
    """A setting as JSON holds it; what JSON has no form for is left out."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(item) for item in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return _plain(value.tolist())
    if isinstance(value, Prior):
        return str(value)
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return None


def _flags(which: Any) -> Any:
    """What is frozen of a block, as JSON: flags of entries as bits, since the metadata of a file may not be longer than 8 MB."""
    flags = np.asarray(which)
    if flags.dtype != bool or flags.ndim < 2:
        return which
    return {"shape": list(flags.shape), "bits": np.packbits(flags).tobytes().hex()}


def _unpacked(which: Any) -> Any:
    """What `_flags` made."""
    if not isinstance(which, dict):
        return which
    try:
        shape = [int(n) for n in which["shape"]]
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(which["bits"]), dtype=np.uint8)).astype(bool)
    except (KeyError, TypeError, ValueError):
        raise ValueError("'freeze' of its parameters has flags that are not a shape and bits") from None
    count = math.prod(shape)
    if min(shape, default=0) < 0 or not len(bits) - 8 < count <= len(bits):
        raise ValueError(f"'freeze' of its parameters has {len(bits)} bits for flags of the shape {shape}")
    return bits[:count].reshape(shape)


def write(model: Factorization, path: str | os.PathLike[str]) -> None:
    """Writes a fitted estimator to a model file."""
    metadata = model._facts()
    facts = metadata.setdefault("data", {})
    facts["shape"] = list(model._shape)
    settings = {
        "rank": model.n_components_,
        "max_iter": model.max_iter,
        "tol": model.tol,
        **model._file_settings(),
    }
    prior = model._laws(model.n_components_)
    arrays = {name: law.alpha for name, law in prior.items() if isinstance(law, Dirichlet) and isinstance(law.alpha, np.ndarray)}
    # Those of numbers are texts, those of arrays are arrays.
    laws = {name: str(law) for name, law in prior.items() if name not in arrays}
    settings["prior"] = [f"{name}={law}" for name, law in laws.items()]
    features = "0" if model._transposed else "1"
    # Those of the features are the estimator's; a file of the command may have others.
    names = {dimension: told for dimension, told in (metadata.get("names") or {}).items() if dimension != features}
    if (own := _plain(list(getattr(model, "feature_names_in_", [])))) and model.__sklearn_tags__().input_tags.two_d_array:
        names[features] = own
    metadata.pop("names", None)
    if names:
        metadata["names"] = names
    params = model.get_params(deep=False)
    if arrays:
        params["prior"] = laws
    if isinstance(model.freeze, dict):
        params["freeze"] = {name: _flags(which) for name, which in model.freeze.items()}
    metadata.update(
        {
            "settings": settings,
            "seed": model._seed,
            "version": _core.__version__,
            "iterations": model.n_iter_,
            "stop_reason": model.stop_reason_,
            "objective": model.objective_,
            "objective_name": model._objective_name(),
            "python": {
                "class": type(model).__name__,
                "params": _plain(params),
                "n_features_in": getattr(model, "n_features_in_", None),
                # Whether the names are those of a frame that was fitted.
                "fitted_names": not getattr(model, "_named", False),
            },
        }
    )
    stream = {STREAM + name: block for name, block in getattr(model, "_known", {}).items()}
    blocks = {**model._blocks, **{name + DIRICHLET: alpha for name, alpha in arrays.items()}, **stream}
    _core.write_model(os.fspath(path), blocks, json.dumps(metadata), model._single)


def load(path: str | os.PathLike[str], unpack_limit: int | None = None) -> Factorization:
    """Read a fitted estimator from a model file, of Python or of the command.

    Parameters
    ----------
    path : path-like
        The file, ``.npz`` or ``.safetensors``.
    unpack_limit : int, optional
        Bytes of memory that it may take, if not 64 MiB and 50 times the file: a small file can unpack to gigabytes.

    Returns
    -------
    model : estimator
        The fitted estimator: blocks, parameters, names of features and what a stream goes on from are those that were saved, the trace is not. Names of
        features are also those of the command's ``--labels``.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from plcakit import NMF, load
    >>> model = NMF(2, random_state=0).fit(np.array([[3.0, 1.0], [0.0, 2.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "m.npz"))
    ...     again = load(os.path.join(folder, "m.npz"))
    >>> again, bool((again.components_ == model.components_).all())
    (NMF(n_components=2, random_state=0), True)
    """
    path = os.fspath(path)
    blocks, text = _core.read_model(path, unpack_limit)
    metadata = json.loads(text) if text and text != "null" else {}
    name = metadata.get("model")
    readers = _readers()
    if name not in readers:
        raise ValueError(f"{path}: holds the model {name!r}, expected one of {', '.join(sorted(readers))}")
    settings = metadata.get("settings") or {}
    if settings.get("online"):
        raise ValueError(f"{path}: was fitted with --online and has no block of samples, which an estimator needs")
    cls = readers[name]
    _check(path, name, cls._saved[name], metadata, blocks)
    saved = metadata.get("python") or {}
    arrays = {block: blocks.pop(block) for block in list(blocks) if block.endswith(DIRICHLET)}
    known = {block.removeprefix(STREAM): blocks.pop(block) for block in list(blocks) if block.startswith(STREAM)}
    try:
        model = _restored(cls, cls._params_of(name, settings, blocks), saved, arrays, blocks, metadata)
        if known:
            model._known = known
        return model
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _restored(cls: Any, params: dict[str, Any], saved: dict[str, Any], arrays: Blocks, blocks: Blocks, metadata: dict[str, Any]) -> Factorization:
    """The estimator of a class from the parameters and the blocks of a file."""
    if saved.get("class") == cls.__name__:
        known = cls().get_params(deep=False)
        kept = {key: value for key, value in saved["params"].items() if key in known and key not in params}
        # JSON has one kind of sequence.
        params = {key: tuple(value) if isinstance(value, list) else value for key, value in kept.items()} | params
    elif params.get("tol") == 0:
        # Of the command, for which 0 stands for plain iterations, too.
        params["solver"] = "em"
    if arrays:
        laws = {block.removesuffix(DIRICHLET): Dirichlet(alpha) for block, alpha in arrays.items()}
        params["prior"] = {**(params.get("prior") or {}), **laws}
    if isinstance(params.get("freeze"), dict):
        params["freeze"] = {name: _unpacked(which) for name, which in params["freeze"].items()}
    model = cls(**params)
    model._load(blocks, metadata)
    # Earlier versions wrote them beside the parameters.
    names = saved.get("feature_names_in") or _named(metadata, model)
    if names:
        model._name_features(names)
        model._named = not saved.get("fitted_names", "feature_names_in" in saved)
    return model


def _named(metadata: dict[str, Any], model: Factorization) -> list[str] | None:
    """The names that a file has of the features of a matrix."""
    names = metadata.get("names")
    if not isinstance(names, dict) or len(model._shape) != 2:
        return None
    told = names.get("0" if model._transposed else "1")
    return told if isinstance(told, list) and len(told) == getattr(model, "n_features_in_", None) else None


def _check(path: str, name: str, needed: tuple[str, ...], metadata: dict[str, Any], blocks: Blocks) -> None:
    """Refuses a file without what an estimator is made of."""
    for block in needed:
        if block not in blocks:
            raise ValueError(f"{path}: has no array {block!r}, which the model {name} needs")
    data = metadata.get("data")
    shape = data.get("shape") if isinstance(data, dict) else None
    sizes = isinstance(shape, list) and len(shape) > 0 and all(isinstance(n, int) and n > 0 for n in shape)
    if not sizes:
        raise ValueError(f"{path}: 'data.shape' of its metadata is {shape!r}, expected the shape of the data that the model was fitted to")


def _readers() -> dict[str, type[Factorization]]:
    """The estimator of every model of a file."""
    from ._base import Factorization

    found, left = {}, [Factorization]
    while left:
        cls = left.pop()
        left += cls.__subclasses__()
        # Not those that a subclass of a user's own inherits.
        found.update({name: cls for name in vars(cls).get("_saved", ())})
    return found
