"""The same bits as of the command, from the same seed."""

import os
import shutil
import subprocess

import numpy as np
import pytest
from scipy import sparse

import plcakit
from plcakit import NMF, PLCA, PLSA

COMMAND = os.environ.get("PLCA") or shutil.which("plca")
needs_command = pytest.mark.skipif(not COMMAND, reason="no command `plca` on the path, nor named by PLCA")


def counts(shape=(40, 25), density=0.4, seed=0):
    draw = np.random.default_rng(seed)
    return draw.poisson(4.0, shape) * (draw.random(shape) < density).astype(float)


def fit_by_command(folder, model, data, *options):
    path = folder / ("v.npz" if sparse.issparse(data) else "v.npy")
    sparse.save_npz(path, data) if sparse.issparse(data) else np.save(path, data)
    out = folder / "model.npz"
    call = [COMMAND, "fit", model, path, "--output", out, "--quiet", *map(str, options)]
    subprocess.run(list(map(str, call)), check=True, capture_output=True)
    return out


CASES = {
    "nmf-kl": (NMF, {}, [], ["w", "h"]),
    "plsa": (PLSA, {}, ["--given", 0], ["basis", "mixture"]),
    "plca": (PLCA, {}, [], ["weights", "factor_0", "factor_1"]),
}


@needs_command
@pytest.mark.parametrize("model", CASES)
@pytest.mark.parametrize("solver", ["auto", "em", "squarem"])
@pytest.mark.parametrize("form", ["C", "F", "csr"])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_bits_of_the_command(tmp_path, model, solver, form, dtype, n_jobs):
    make, params, options, names = CASES[model]
    X = counts()
    if form == "csr":
        X = sparse.csr_matrix(X)
    else:
        X = np.asarray(X, order=form)
    out = fit_by_command(
        tmp_path, model, X, "--rank", 3, "--seed", 5, "--solver", solver, "--precision", dtype, *options
    )
    X = X.astype(np.float32 if dtype == "f32" else np.float64, order="K") if form != "csr" else X.astype(
        np.float32 if dtype == "f32" else np.float64
    )
    ours = make(3, random_state=5, solver=solver, n_jobs=n_jobs, **params).fit(X)
    with np.load(out) as theirs:
        for name in names:
            assert theirs[name].dtype == ours._blocks[name].dtype
            assert np.array_equal(theirs[name], ours._blocks[name]), name


@needs_command
def test_starts_are_streams_of_the_seed(tmp_path):
    X = counts()
    out = fit_by_command(tmp_path, "nmf-kl", X, "--rank", 4, "--seed", 1, "--restarts", 3)
    ours = NMF(4, random_state=1, n_init=3).fit(X)
    with np.load(out) as theirs:
        assert np.array_equal(theirs["w"], ours._blocks["w"])


@needs_command
@pytest.mark.parametrize("model", CASES)
def test_each_side_reads_the_files_of_the_other(tmp_path, model):
    make, params, options, names = CASES[model]
    X = counts()
    out = fit_by_command(tmp_path, model, X, "--rank", 3, "--seed", 5, *options)
    ours = make(3, random_state=5, **params).fit(X)
    loaded = plcakit.load(out)
    assert np.array_equal(loaded.transform(X), ours.transform(X))
    saved = tmp_path / "ours.npz"
    ours.save(saved)
    again = plcakit.load(saved)
    assert type(again) is make and again.get_params()["random_state"] == 5
    assert np.array_equal(again.transform(X), ours.transform(X))
    np.save(tmp_path / "v.npy", X)
    found = [tmp_path / f"{name}.npz" for name in ("by-theirs", "by-ours")]
    for path, to in zip((out, saved), found):
        along = [] if model == "plsa" else ["--along", "0"]
        call = [COMMAND, "transform", path, tmp_path / "v.npy", "--output", to, "--quiet", *along]
        subprocess.run(list(map(str, call)), check=True, capture_output=True)
    with np.load(found[0]) as a, np.load(found[1]) as b:
        for name in a.files:
            if name != "model.json":
                assert np.array_equal(a[name], b[name]), name
        rows = {"nmf-kl": "w", "plsa": "mixture"}.get(model)
        if rows:
            answer = a[rows] if model == "nmf-kl" else a[rows].T
            assert np.array_equal(answer, ours.transform(X))


@pytest.mark.parametrize("make", [NMF, PLSA, PLCA])
def test_threads_change_no_bit(make):
    X = counts((300, 200))
    one = make(5, random_state=0, n_jobs=1, max_iter=30, tol=0).fit(X)
    two = make(5, random_state=0, n_jobs=2, max_iter=30, tol=0).fit(X)
    for name, block in one._blocks.items():
        assert np.array_equal(block, two._blocks[name]), name


def test_two_fits_at_once_are_two_fits():
    from concurrent.futures import ThreadPoolExecutor

    X = counts((100, 60))
    models = [NMF(4, random_state=s, tol=0, max_iter=200) for s in range(4)]
    alone = [m.fit(X).components_.copy() for m in models]
    with ThreadPoolExecutor(4) as pool:
        together = [m.components_ for m in pool.map(lambda m: m.fit(X), models)]
    for a, b in zip(alone, together):
        assert np.array_equal(a, b)
