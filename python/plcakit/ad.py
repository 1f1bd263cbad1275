"""Annotated data of single cells, with results in the places that scanpy uses.

.. math:: X \\approx W H: \\quad W \\text{ in obsm}, \\ H^\\top \\text{ in varm}

Nothing is imported for it: any object with ``X``, ``layers``, ``obsm``, ``varm`` and ``uns`` will do.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ._nmf import NMF
from ._plsa import PLSA
from ._types import Start
from .priors import Dirichlet, Prior

__all__ = ["nmf", "plsa"]

_Model = TypeVar("_Model", NMF, PLSA)


def nmf(adata: Any, n_components: int = 10, *, layer: str | None = None, key_added: str = "nmf", start: Start = None, **params: Any) -> NMF:
    """Fit :class:`~plcakit.NMF` to annotated data.

    Parameters
    ----------
    adata : AnnData
        Cells in rows. Gains ``obsm["X_" + key_added]``, the activations; ``varm[key_added]``, the components; and
        ``uns[key_added]``: `params`, those of the estimator that are set, `seed`, the one that was taken, `n_iter`, `objective` and `stop_reason`.
    n_components : int, default=10
        The number of components.
    layer : str or None, default=None
        The layer to fit; ``None``: ``adata.X``.
    key_added : str, default="nmf"
        The name of the results.
    start : dict of str to array, default=None
        Blocks to start from, by name, such as known components that ``freeze`` keeps.
    **params
        Other parameters of the estimator.

    Returns
    -------
    model : NMF
        The fitted estimator.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from plcakit import ad
    >>> X = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 4.0]])
    >>> cells = SimpleNamespace(X=X, layers={}, obsm={}, varm={}, uns={})        # or an AnnData
    >>> model = ad.nmf(cells, 2, random_state=0)
    >>> cells.obsm["X_nmf"].shape, cells.varm["nmf"].shape, cells.uns["nmf"]["params"]["beta_loss"]
    ((2, 2), (3, 2), 'kullback-leibler')
    """
    return _annotate(adata, NMF(n_components, **params), layer, key_added, start)


def plsa(adata: Any, n_components: int = 10, *, layer: str | None = None, key_added: str = "plsa", start: Start = None, **params: Any) -> PLSA:
    """Fit :class:`~plcakit.PLSA` to annotated data, as :func:`nmf` does.

    Parameters
    ----------
    adata : AnnData
        Cells in rows.
    n_components : int, default=10
        The number of components.
    layer : str or None, default=None
        The layer to fit; ``None``: ``adata.X``.
    key_added : str, default="plsa"
        The name of the results.
    start : dict of str to array, default=None
        Blocks to start from, by name, such as known components that ``freeze`` keeps.
    **params
        Other parameters of the estimator.

    Returns
    -------
    model : PLSA
        The fitted estimator.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from plcakit import ad
    >>> X = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 4.0]])
    >>> cells = SimpleNamespace(X=None, layers={"counts": X}, obsm={}, varm={}, uns={})
    >>> model = ad.plsa(cells, 2, layer="counts", random_state=0)
    >>> cells.obsm["X_plsa"].sum(axis=1).round(6).tolist()
    [1.0, 1.0]
    """
    return _annotate(adata, PLSA(n_components, **params), layer, key_added, start)


def _annotate(adata: Any, model: _Model, layer: str | None, key: str, start: Start) -> _Model:
    if not hasattr(adata, "obsm"):
        raise TypeError(f"adata is of {type(adata).__name__}, expected annotated data, with X, obsm, varm and uns; of an array fit {type(model).__name__}")
    X = adata.X if layer is None else adata.layers[layer]
    # Where it is read from its file.
    X = X.to_memory() if hasattr(X, "to_memory") else X
    adata.obsm[f"X_{key}"] = model.fit_transform(X, start=start)
    adata.varm[key] = model.components_.T
    if hasattr(adata, "var_names"):
        model._name_features(adata.var_names)
    adata.uns[key] = {
        "params": {name: told for name, value in model.get_params().items() if (told := _told(value)) is not None},
        # The one that was drawn where none was given.
        "seed": model._seed,
        "n_iter": model.n_iter_,
        "objective": model.objective_,
        "stop_reason": model.stop_reason_,
    }
    return model


def _told(value: Any) -> Any:
    """A setting in a form that files of annotated data hold; ``None`` where it is not set, or has no such form."""
    if isinstance(value, (bool, int, float, str, np.ndarray)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Dirichlet) and isinstance(value.alpha, np.ndarray):
        return value.alpha
    if isinstance(value, Prior):
        return str(value)
    if isinstance(value, (tuple, list, set)):
        return np.asarray(list(value)) if value else None
    if isinstance(value, dict):
        told = {name: _told(item) for name, item in value.items()}
        return {name: item for name, item in told.items() if item is not None} or None
    return None
