"""Probabilistic latent-variable factorization as scikit-learn estimators.

Every estimator runs the engine of the command ``plca``, bit for bit: from one seed both come to the same numbers with the same solver.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._baselines import KMeans, SemiNMF
from ._compare import Comparison, compare
from ._consensus import ConsensusNMF
from ._core import __version__
from ._long import from_long
from ._nmf import NMF
from ._plca import PLCA
from ._plsa import PLSA
from ._pntf import PNTF
from ._select import Selection, select
from ._shifted import ShiftInvariantPLCA
from ._shifted_signed import ShiftInvariantSkellam
from ._signed_cp import SkellamCP
from ._skellam import SkellamSNMF
from ._transformed import TransformInvariantPLCA
from .files import load

#: Modules that are imported when they are asked for: some need packages that are not always there.
_MODULES = {"ad", "dask", "datasets", "mpi", "plot", "priors", "shards", "sound"}

__all__ = [
    "Comparison",
    "ConsensusNMF",
    "KMeans",
    "NMF",
    "PLCA",
    "PLSA",
    "PNTF",
    "Selection",
    "SemiNMF",
    "ShiftInvariantPLCA",
    "ShiftInvariantSkellam",
    "SkellamCP",
    "SkellamSNMF",
    "TransformInvariantPLCA",
    "__version__",
    "compare",
    "from_long",
    "load",
    "select",
]


if TYPE_CHECKING:
    from . import ad, dask, datasets, mpi, plot, priors, shards, sound
else:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
