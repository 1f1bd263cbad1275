"""What the package has beside its estimators, and what it does with settings of other packages."""

import json
import os
import re
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import plcakit
from plcakit import (
    NMF,
    PLCA,
    PLSA,
    PNTF,
    ConsensusNMF,
    ShiftInvariantPLCA,
    ShiftInvariantSkellam,
    SkellamCP,
    SkellamSNMF,
    TransformInvariantPLCA,
    _data,
    ad,
)
from plcakit._data import threads
from plcakit.priors import Dirichlet


@pytest.fixture
def X():
    return np.random.default_rng(0).poisson(3.0, (20, 12)).astype(float)


def run(code, **environment):
    """What a new process prints as JSON."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    return json.loads(done.stdout)


def test_modules_that_pages_name_are_there():
    found = run("import json, plcakit; print(json.dumps([m for m in ('plot', 'sound', 'datasets', 'ad', 'shards', 'priors') if getattr(plcakit, m).__name__ == f'plcakit.{m}']))")
    assert found == ["plot", "sound", "datasets", "ad", "shards", "priors"]
    assert {"plot", "dask", "mpi", "NMF"} <= set(dir(plcakit))
    with pytest.raises(AttributeError, match="no attribute 'plots'"):
        plcakit.plots


OTHERS = [NMF, PLSA, PLCA, PNTF, SkellamSNMF, SkellamCP, ShiftInvariantPLCA, ShiftInvariantSkellam, TransformInvariantPLCA, ConsensusNMF]


HINTS = [
    ("n_topics", "here it is 'n_components'", OTHERS),
    ("rank", "here it is 'n_components'", OTHERS),
    ("seed", "here it is 'random_state'", OTHERS),
    ("workers", "here it is 'n_jobs'", OTHERS),
    ("passes", "here it is 'max_iter'", OTHERS),
    ("n_component", "did you mean 'n_components'?", OTHERS),
    ("Max_Iter", "did you mean 'max_iter'?", OTHERS),
    ("zzz", "expected one of n_components, ", OTHERS),
    ("doc_topic_prior", "here it is 'prior'", [PLSA, PLCA, NMF]),
    ("alpha", "here it is 'prior'", [PLSA, PLCA, SkellamSNMF]),
    ("alpha", "here it is 'alpha_W'", [NMF]),
    ("alpha_h", "did you mean 'alpha_H'?", [NMF]),
    ("beta", "here it is 'beta_loss'", [NMF]),
    ("mask", "hidden cells are given to fit(X, observed=mask)", [NMF, PLSA, SkellamSNMF]),
    ("learning_method", "partial_fit learns batch by batch", [PLSA, PLCA]),
]


@pytest.mark.parametrize("make, name, hint", [(make, name, hint) for name, hint, which in HINTS for make in which])
def test_parameters_of_other_packages_are_named(make, name, hint):
    with pytest.raises(TypeError, match=f"^{make.__name__} has no parameter '{name}': {re.escape(hint)}"):
        make(**{name: 1})


def test_classes_of_users_may_hand_arguments_on():
    class My(PLSA):
        def __init__(self, n_components=3, *, extra=1, **more):
            super().__init__(n_components, **more)
            self.extra = extra

    assert My(4, tol=1e-3).tol == 1e-3


@pytest.mark.parametrize("name, beta", [("kullback-leibler", 1), ("kullback-leibler", 1.0), ("frobenius", 2.0)])
def test_losses_by_their_beta(X, tmp_path, name, beta):
    model = NMF(2, beta_loss=beta, random_state=0).fit(X)
    assert np.array_equal(model.components_, NMF(2, beta_loss=name, random_state=0).fit(X).components_)
    model.save(tmp_path / "m.npz")
    assert plcakit.load(tmp_path / "m.npz").beta_loss == name


def test_seeds_have_64_bits(X, plca, tmp_path):
    np.save(tmp_path / "x.npy", X)
    for seed in (2**33, 2**64 - 1):
        plca("fit", "nmf-kl", tmp_path / "x.npy", "--rank", 2, "--seed", seed, "--output", tmp_path / "m.npz")
        theirs, ours = plcakit.load(tmp_path / "m.npz"), NMF(2, random_state=seed).fit(X)
        assert np.array_equal(theirs.components_, ours.components_)
        ours.save(tmp_path / "again.npz")
        assert plcakit.load(tmp_path / "again.npz").random_state == seed


@pytest.mark.parametrize("make", [NMF, PLSA, PLCA])
def test_no_tolerance_is_no_other_solver(X, make):
    """``tol=0`` makes all iterations of the solver that is there without it."""
    zero, small = (make(3, random_state=0, tol=tol, max_iter=7).fit(X) for tol in (0, 1e-300))
    assert zero.n_iter_ == small.n_iter_ == 7
    assert np.array_equal(zero.components_, small.components_)
    plain = make(3, random_state=0, tol=0, max_iter=7, solver="em").fit(X)
    assert zero.objective_ != plain.objective_


@pytest.mark.parametrize("model, blocks, array", [("nmf-kl", "rows", "h"), ("plsa", "columns", "basis"), ("plca", "rows", "factor_1")])
def test_names_of_the_command_are_those_of_features(X, plca, tmp_path, model, blocks, array):
    words = [f"word {j}" for j in range(12)]
    data = X if blocks == "rows" else X.T
    np.save(tmp_path / "x.npy", data)
    (tmp_path / "words.txt").write_text("\n".join(words))
    plca("fit", model, tmp_path / "x.npy", "--rank", 2, "--seed", 0, "--labels", tmp_path / "words.txt", "--output", tmp_path / "m.npz")
    ours = plcakit.load(tmp_path / "m.npz")
    assert ours.feature_names_in_.tolist() == words
    # An array has no names, and no warning says so: nobody has fitted a frame.
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "X does not have valid feature names")
        ours.transform(X)
        ours.partial_fit(X)
    # And back: the command shows them.
    ours.save(tmp_path / "again.npz")
    assert plcakit.load(tmp_path / "again.npz").feature_names_in_.tolist() == words
    assert "word 7" in plca("inspect", "--array", array, "--top", 12, tmp_path / "again.npz")


def test_names_of_frames_are_asked_for_after_a_file(X, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"word {j}" for j in range(12)])
    model = NMF(2, random_state=0).fit(frame)
    model.save(tmp_path / "m.npz")
    for one in (model, plcakit.load(tmp_path / "m.npz")):
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            one.transform(X)
        with pytest.raises(ValueError, match="feature names"):
            one.transform(frame.rename(columns={"word 3": "another"}))


def test_names_of_frames_are_those_of_the_command(X, plca, tmp_path):
    pandas = pytest.importorskip("pandas")
    for model, array in ((NMF(2, random_state=0), "h"), (PLSA(2, random_state=0), "basis")):
        model.fit(pandas.DataFrame(X, columns=[f"word {j}" for j in range(12)])).save(tmp_path / "m.npz")
        assert "word 7" in plca("inspect", "--array", array, "--top", 12, tmp_path / "m.npz")


def test_annotated_data_keep_names_priors_and_seed(X, tmp_path):
    prior = {"basis": Dirichlet(1 + np.linspace(0.1, 1, 12)[:, np.newaxis]), "mixture": "dirichlet:1.5"}
    cells = SimpleNamespace(X=X, layers={}, obsm={}, varm={}, uns={}, var_names=[f"gene {j}" for j in range(12)])
    model = ad.plsa(cells, 2, prior=prior)
    told = cells.uns["plsa"]
    assert model.feature_names_in_.tolist() == cells.var_names
    assert np.array_equal(told["params"]["prior"]["basis"], prior["basis"].alpha) and told["params"]["prior"]["mixture"] == "dirichlet:1.5"
    again = PLSA(2, prior=prior, random_state=told["seed"]).fit(X)
    assert np.array_equal(again.components_.T, cells.varm["plsa"])
    h = np.random.default_rng(1).random((2, 12)) + 0.1
    known = ad.nmf(cells, np.int64(2), random_state=np.int64(3), tol=np.float32(1e-4), freeze={"h": [0], "w": None}, start={"h": h}, solver="em")
    assert np.allclose(known.components_[0], h[0])
    told = cells.uns["nmf"]["params"]
    assert told["freeze"]["h"].tolist() == [0] and "w" not in told["freeze"] and "prior" not in told
    assert (told["n_components"], told["random_state"], told["tol"]) == (2, 3, float(np.float32(1e-4)))


def test_plain_iterations_of_the_command_stay_plain(X, plca, tmp_path):
    np.save(tmp_path / "x.npy", X)
    plca("fit", "nmf-kl", tmp_path / "x.npy", "--rank", 2, "--seed", 5, "--tol", 0, "--max-iter", 9, "--output", tmp_path / "m.npz")
    theirs = plcakit.load(tmp_path / "m.npz")
    again = clone(theirs).set_params(random_state=5).fit(X)
    assert theirs.solver == "em" and np.array_equal(theirs.components_, again.components_)


def test_annotated_data_in_files(X, tmp_path):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(sparse.csr_matrix(X)).write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(TypeError, match=r"in a file: pass X.to_memory\(\)"):
        NMF(2).fit(backed.X)
    with pytest.raises(TypeError, match=r"annotated data: pass one of its arrays, .*plcakit.ad.nmf"):
        NMF(2).fit(backed)
    model = ad.nmf(backed, 2, random_state=0)
    assert np.array_equal(model.components_, NMF(2, random_state=0).fit(sparse.csr_matrix(X)).components_)


def test_annotated_data_are_written(X, tmp_path):
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(X)
    ad.plsa(cells, 2, prior={"basis": Dirichlet(np.full((12, 1), 1.5)), "mixture": "dirichlet:1.5"})
    cells.write_h5ad(tmp_path / "cells.h5ad")
    told = anndata.read_h5ad(tmp_path / "cells.h5ad").uns["plsa"]
    assert told["params"]["prior"]["mixture"] == "dirichlet:1.5" and told["seed"] == cells.uns["plsa"]["seed"]


def test_threads_are_those_of_joblib(monkeypatch):
    from joblib import parallel_config

    monkeypatch.setattr(_data, "cpu_count", lambda: 6)
    monkeypatch.setattr(_data, "_openmp_effective_n_threads", lambda **_: 6)
    assert [threads(n) for n in (None, 1, 5, 1000, -1, -2, -6, -7, -100)] == [1, 1, 5, 1000, 6, 5, 1, 1, 1]
    with parallel_config("threading", n_jobs=4):
        assert threads(None) == 4
    # Of a cluster joblib counts the processors of all machines.
    monkeypatch.setattr(_data, "effective_n_jobs", lambda _: 512)
    assert threads(None) == 6
    # What OpenMP may have is a limit, but of a number that was asked for.
    monkeypatch.setattr(_data, "_openmp_effective_n_threads", lambda **_: 2)
    assert [threads(n) for n in (None, 3, -1, -3)] == [2, 3, 2, 2]
    # OpenMP may be missing.
    monkeypatch.setattr(_data, "_openmp_parallelism_enabled", lambda: False)
    assert [threads(n) for n in (None, 3, -1, -3)] == [6, 3, 6, 4]


def test_threads_are_limited():
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        assert threads(-1) == 1
    told = "import json; from plcakit._data import threads; print(json.dumps([threads(n) for n in (None, -1, 3)]))"
    assert run(told, OMP_NUM_THREADS="1") == [1, 1, 3]


THREADS = """
import json
from pathlib import Path
import numpy as np
from plcakit import NMF
X = np.random.default_rng(0).random((200, 100))
def many():
    return sum(1 for _ in Path("/proc/self/task").iterdir())
NMF(2, random_state=0, n_jobs=2).fit(X)
before, most = many(), 0
for n_jobs in range(3, 20):
    NMF(2, random_state=0, n_jobs=n_jobs).fit(X)
    most = max(most, many())
NMF(2, random_state=0, n_jobs=2).fit(X)
import time
# Threads that were told to end do so by themselves.
for _ in range(600):
    if many() <= before:
        break
    time.sleep(0.1)
print(json.dumps([before, most, many()]))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted in /proc")
def test_pools_end():
    before, most, after = run(THREADS)
    assert most >= before + 17 and after <= before


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, bool])
def test_whole_numbers_of_sparse_matrices(X, form, dtype):
    given = form(X.astype(dtype))
    kept = given.copy()
    model = NMF(2, random_state=0).fit(given)
    assert np.array_equal(model.components_, NMF(2, random_state=0).fit(form(X.astype(dtype).astype(float))).components_)
    assert given.dtype == kept.dtype and (given != kept).nnz == 0


def test_frames_that_are_not_there_yet(X):
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"LazyFrame of polars, .*: pass X.collect\(\)"):
        NMF(2).fit(polars.DataFrame(X).lazy())
