"""Containers as what the extension module reads."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs
from scipy import sparse
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads, _openmp_parallelism_enabled

from ._hints import complex_hint
from ._types import Array, Data, Mask, RandomState


def threads(n_jobs: int | None) -> int:
    """How many threads ``n_jobs`` stands for, as of joblib; results do not depend on it."""
    if n_jobs == 0:
        raise ValueError(
            "n_jobs is 0: expected None for one thread, or as joblib.parallel_config says, a number of threads >= 1, or a negative one, such "
            "as -1 for all processors and -2 for all but one"
        )
    if n_jobs is not None and n_jobs > 0:
        # More than any machine has.
        return min(n_jobs, 2**16)
    # A backend of joblib may count the processors of other machines, too.
    many = min(effective_n_jobs(None), cpu_count()) if n_jobs is None else max(1, cpu_count() + 1 + n_jobs)
    # OMP_NUM_THREADS, threadpoolctl and joblib in its workers say how many threads a process may have by those of OpenMP.
    return min(many, int(_openmp_effective_n_threads(only_physical_cores=False))) if _openmp_parallelism_enabled() else many


def seed_of(random_state: RandomState) -> int:
    """The seed of the generator in Rust: a whole number is the seed itself, anything else draws one."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if random_state is None:
        return int(np.random.mtrand._rand.randint(2**31 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(random_state)


def contiguous(array: Array) -> Array:
    """The array itself where its values lie one beside the other in C or F order, at addresses of their size."""
    if not array.flags.aligned:
        # A view into the bytes of a message or of a file.
        return array.copy(order="F" if array.flags.f_contiguous else "C")
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return array
    return np.ascontiguousarray(array)


def real(array: Any, name: str = "X") -> Any:
    """The array itself: complex numbers are refused."""
    if getattr(getattr(array, "dtype", None), "kind", None) == "c":
        raise ValueError(complex_hint(name))
    return array


def unpacked(X: Data) -> Any:
    """An array of NumPy on the memory of an array of another library; scikit-learn's own conversion would widen its numbers."""
    return real(_unpacked(X))


def _unpacked(X: Data) -> Any:
    if isinstance(X, np.ndarray):
        return X
    if sparse.issparse(X):
        return _of_numbers(X)
    if type(X).__module__.startswith("polars") and type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame of polars, whose values are not there yet: pass X.collect()")
    if hasattr(X, "obsm") and hasattr(X, "layers"):
        raise TypeError("X is annotated data: pass one of its arrays, X.X or X.layers[name], or call plcakit.ad.nmf(X)")
    if hasattr(X, "to_memory"):
        raise TypeError(f"X is of {type(X).__name__}, whose values are in a file: pass X.to_memory(), or the file to plcakit.shards.fit")
    if not hasattr(X, "__dlpack__"):
        return X
    try:
        # Of torch: its sparse layouts are arrays of their own.
        layout = str(getattr(X, "layout", ""))
        if layout in ("torch.sparse_csr", "torch.sparse_csc"):
            csr = layout == "torch.sparse_csr"
            runs = (X.crow_indices(), X.col_indices()) if csr else (X.ccol_indices(), X.row_indices())
            indptr, indices, values = (np.from_dlpack(part) for part in (*runs, X.values()))
            return (sparse.csr_array if csr else sparse.csc_array)((values, indices, indptr), shape=tuple(X.shape))
        if layout == "torch.sparse_coo":
            X = X.coalesce()
            coords, values = np.from_dlpack(X.indices()), np.from_dlpack(X.values())
            return sparse.coo_array((values, tuple(coords)), shape=tuple(X.shape))
        return np.from_dlpack(X)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"X is of {type(X).__module__}.{type(X).__name__} and cannot be read where it lies ({error}): "
            "pass an array without gradients in the memory of the processor, such as X.detach().cpu()"
        ) from error


def _of_numbers(X: Any) -> Any:
    """Whole numbers of a sparse matrix as floating point; scikit-learn's own conversion would copy the indices, too."""
    if X.format not in ("csr", "csc") or X.dtype.kind not in "iub":
        return X
    return type(X)((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)


def unmasked(X: Data, observed: Mask) -> tuple[Any, Mask]:
    """The values of a masked array, and which of them were observed besides ``observed``."""
    if not isinstance(X, np.ma.MaskedArray):
        return X, observed
    shown = ~np.ma.getmaskarray(X)
    if observed is not None:
        shown &= np.asarray(observed, dtype=bool)
    return X.data, shown


def check_mask(observed: Mask, shape: tuple[int, ...]) -> Array | None:
    """The mask as flags of the shape of the data."""
    if observed is None:
        return None
    if sparse.issparse(observed):
        observed = observed.toarray()
    observed = np.asarray(observed)
    if observed.dtype != bool:
        wrong = observed[~np.isin(observed, (0, 1))]
        if wrong.size:
            value = wrong.flat[0]
            raise ValueError(f"observed: expected True where a cell was observed and False where it is hidden, got {value!r}")
    if observed.shape != tuple(shape):
        raise ValueError(f"observed has shape {observed.shape}, expected that of X, {tuple(shape)}")
    return observed.astype(bool, copy=False)


def describe(X: Data, observed: Mask = None, missing: str | None = None, transpose: bool = False) -> dict[str, Any]:
    """What the extension module reads of an array or a sparse matrix: no copy of its values is made."""
    observed = check_mask(observed, X.shape)
    if sparse.issparse(X):
        return _sparse(X, observed, missing, transpose)
    if missing == "unstored":
        raise ValueError("missing='unstored' needs a sparse X, this one is dense")
    X = contiguous(X)
    if transpose:
        X = X.T
        observed = None if observed is None else observed.T
    data = {"values": X, "shape": X.shape, "missing": missing}
    if observed is not None and not observed.all():
        data["observed"] = np.ascontiguousarray(observed) if X.flags.c_contiguous else np.asfortranarray(observed)
    return data


def _sparse(X: Data, observed: Mask, missing: str | None, transpose: bool) -> dict[str, Any]:
    if missing == "nan":
        raise ValueError("missing='nan' needs a dense X, this one is sparse")
    hide = observed is not None and not observed.all()
    if hide and missing == "unstored":
        # Hidden by either: what is stored and observed is left.
        X = X.tocoo(copy=False)
        coords = coordinates(X)
        keep = observed[tuple(coords)]
        values, coords = X.data[keep], [c[keep] for c in coords]
        data = {"values": values, "coordinates": coords}
    elif X.format in ("csr", "csc"):
        data = {
            "values": contiguous(X.data),
            "indptr": contiguous(X.indptr),
            "indices": contiguous(X.indices),
            "outer": int((X.format == "csc") != transpose),
        }
    else:
        X = X.tocoo(copy=False)
        data = {"values": np.ascontiguousarray(X.data), "coordinates": coordinates(X)}
    if hide and missing is None:
        data["hidden"] = [np.ascontiguousarray(c) for c in np.nonzero(~observed)]
    if transpose:
        for name in ("coordinates", "hidden"):
            if name in data:
                data[name] = data[name][::-1]
    shape = tuple(int(n) for n in X.shape)
    data["shape"] = shape[::-1] if transpose else shape
    data["missing"] = missing
    return data


def coordinates(X: Data) -> list[Array]:
    """The indices of a sparse array of any order, a contiguous array for every dimension."""
    coords = X.coords if hasattr(X, "coords") else (X.row, X.col)
    whole = [c if c.dtype in (np.int32, np.int64) else c.astype(np.int64) for c in coords]
    return [np.ascontiguousarray(c) for c in whole]


def has_mass(X: Data, observed: Array | None, missing: str | None) -> bool:
    """Whether any cell that is read is other than 0; one that is not a count is, so that it gets to where it is refused."""
    if sparse.issparse(X):
        values = X.data
        if observed is not None:
            X = X.tocoo(copy=False)
            values = X.data[observed[tuple(coordinates(X))]]
        return bool((values != 0).any())
    if X.ndim == 1:
        X, observed = X[np.newaxis], None if observed is None else observed[np.newaxis]
    # Row by row: the first one ends it, and nothing is copied as a whole.
    for n, row in enumerate(X):
        values = row if observed is None else row[observed[n]]
        if missing == "nan":
            values = values[~np.isnan(values)]
        if (values != 0).any():
            return True
    return False
