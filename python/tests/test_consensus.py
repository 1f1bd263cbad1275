"""The consensus of many fits: golden values, the numbers of the command, and what is refused."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from plcakit import ConsensusNMF, _core
from plcakit.datasets import make_corpus

GOLDEN = Path(__file__).parents[2] / "crates" / "testdata" / "golden" / "consensus.json"


def counts():
    draw = np.random.default_rng(0)
    return draw.poisson(4.0, (40, 25)) * (draw.random((40, 25)) < 0.4).astype(float)


def array(stored):
    return np.array(stored["data"]).reshape(stored["shape"])


def cases():
    return json.loads(GOLDEN.read_text())["cases"] if GOLDEN.exists() else []


def close(got, expected):
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
def test_golden(case):
    spectra, X = array(case["spectra"]), array(case["X"])
    how = {
        "components": case["K"],
        "threshold": case["threshold"],
        "neighbourhood": case["neighbourhood"],
        "seed": 0,
        "threads": 2,
    }
    found = _core.consensus(spectra, how)
    close(found["local_density"], array(case["local_density"]))
    assert np.array_equal(found["kept"], array(case["kept"]))
    for name, expected in (("filtered", case), ("all", case["selection"])):
        assert np.array_equal(found[name]["labels"], array(expected["labels"]))
        close(found[name]["inertia"], expected["inertia"])
        close(found[name]["silhouette"], expected["silhouette"])
    model = ConsensusNMF()
    model.n_features_in_ = X.shape[1]
    runs = np.ones(case["restarts"])
    model._keep(found, {"spectra": spectra, "objectives": runs, "iterations": runs})
    close(model.components_, array(case["consensus_spectra"]))
    close(model.usage(X), array(case["usage_least_squares"]))
    W, gap = model.transform(X, return_gap=True)
    # Of 20000 multiplicative steps, which have not come to an end everywhere.
    U, S = array(case["usage_kl"]), model.components_
    ratio = np.divide(X, U @ S, out=np.zeros_like(X), where=X > 0)
    settled = (np.abs(U * (ratio @ S.T / S.sum(axis=1) - 1)) < 1e-10).all(axis=1)
    assert settled.sum() >= len(X) - 1
    close(W[settled], U[settled])
    assert (gap <= 1e-6).all()
    close(model._squared_error(X, model.components_), case["squared_error"])
    close(model._squared_error(X, found["all"]["components"]), case["selection"]["squared_error"])


@pytest.mark.parametrize("name", ["nmf-kl", "plsa", "plca", "pntf", "ntf-l2"])
def test_bits_of_the_command(plca, tmp_path, name):
    X = counts()
    np.save(tmp_path / "v.npy", X.T)
    call = ["consensus", name, "v.npy", "--ranks", "2,3", "--restarts", "5", "--threshold", "2"]
    call += ["--seed", "7", "--max-iter", "60", "--output", "o.npz", "--json"]
    rows = json.loads(plca(*call, cwd=tmp_path))
    model = ConsensusNMF([2, 3], n_runs=5, model=name, threshold=2.0, max_iter=60, random_state=7).fit(X)
    assert model.stability_.tolist() == [row["selection"]["silhouette"] for row in rows]
    close(model.prediction_error_, [row["selection"]["squared_error"] for row in rows])
    file = np.load(tmp_path / "o.npz")
    prefix = f"k{model.n_components_}."
    for attribute, stored in [
        ("components_", "consensus_spectra"),
        ("local_density_", "local_density"),
        ("labels_", "labels"),
        ("objectives_", "objective"),
    ]:
        assert np.array_equal(getattr(model, attribute), file[prefix + stored]), attribute
    close(model.usage(X), file[prefix + "usage"])
    W, gap = model.transform(X, return_gap=True)
    close(W, file[prefix + "usage_kl"])
    assert gap.shape == (len(X),)


@pytest.mark.parametrize("form", [np.asfortranarray, sparse.csr_matrix, sparse.csc_array])
def test_neither_threads_nor_storage_count(form):
    X = counts()
    fit = ConsensusNMF([2, 3], n_runs=4, threshold=2.0, solver="em", max_iter=30, random_state=1, n_jobs=1).fit
    one = fit(form(X))
    other = ConsensusNMF([2, 3], n_runs=4, threshold=2.0, solver="em", max_iter=30, random_state=1, n_jobs=3)
    other.fit(form(X))
    assert np.array_equal(one.spectra_, other.spectra_)
    assert np.array_equal(one.components_, other.components_)
    close(one.components_, fit(X).components_)


def test_the_most_stable_number_is_taken():
    corpus = make_corpus()
    model = ConsensusNMF([5, 2, 3], n_runs=8, threshold=2.0, random_state=0).fit(corpus.counts)
    assert model.n_components_ == model.ranks_[model.stability_.argmax()]
    assert model.components_.shape == (model.n_components_, corpus.counts.shape[1])
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    assert model.labels_.max() == model.n_components_ - 1 and model.kept_.all()
    # More components leave less over.
    errors = dict(zip(model.ranks_, model.prediction_error_))
    assert errors[5] < errors[2]
    # One component has no silhouette.
    one = ConsensusNMF(1, n_runs=4, random_state=0).fit(corpus.counts)
    assert np.isnan(one.stability_).all() and np.isnan(one.silhouette_) and one.n_components_ == 1


def test_what_is_refused():
    X = counts()
    for settings, message in [
        ({"n_components": []}, "n_components is"),
        ({"n_components": [2, 0]}, "n_components is"),
        ({"n_components": [2.5]}, "n_components is"),
        ({"n_runs": 3}, "n_runs is 3, .* at least 4"),
        ({"n_components": 2, "n_runs": 4, "threshold": 1e-300}, "spectra are kept"),
    ]:
        with pytest.raises(ValueError, match=message):
            ConsensusNMF(**settings, random_state=0).fit(X)
    with pytest.raises(ValueError, match="Negative values"):
        ConsensusNMF(2).fit(-X)


def test_what_no_component_reaches_is_left_out():
    X = counts()
    X[:, 3] = 0
    model = ConsensusNMF(2, n_runs=4, threshold=2.0, random_state=0).fit(X)
    assert (model.components_[:, 3] == 0).all()
    X[0, 3] = 5.0
    X[1] = 0
    with pytest.warns(UserWarning, match="data with the sum 5 were left out"):
        W = model.transform(X)
    assert (W[1] == 0).all() and (W[0] > 0).any()
    assert (model.transform(np.zeros((2, X.shape[1]))) == 0).all()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_control_c_ends_a_sweep():
    X = np.random.default_rng(0).random((400, 300)) + 0.1

    def press():
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        ConsensusNMF(5, n_runs=10_000, tol=0, max_iter=10_000, random_state=0).fit(X)
    thread.join()


def test_masked_cells_are_refused():
    X = np.random.default_rng(0).poisson(3, (12, 8)).astype(float)
    hidden = np.zeros(X.shape, bool)
    hidden[0, 0] = True
    masked = np.ma.masked_array(np.where(hidden, 1e6, X), hidden)
    model = ConsensusNMF(2, n_runs=5, random_state=0)
    with pytest.raises(ValueError, match="masked cells"):
        model.fit(masked)
    with pytest.raises(ValueError, match="masked cells"):
        model.fit(X).transform(masked)
    assert np.array_equal(model.fit(np.ma.masked_array(X, False)).components_, model.fit(X).components_)
