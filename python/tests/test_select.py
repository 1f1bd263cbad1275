"""The number of components: scores are those of the command, and find what data were made of."""

import json
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from scipy import sparse
from plcakit import NMF, PLCA, PLSA, PNTF, ShiftInvariantPLCA, SkellamSNMF, select



def counts(shape):
    draw = np.random.default_rng(0)
    return draw.poisson(4.0, shape) * (draw.random(shape) < 0.4).astype(float)


CASES = {
    "plca": (PLCA(), [], False),
    "plsa": (PLSA(), [], False),
    "nmf-kl": (NMF(), [], False),
    "siplca": (ShiftInvariantPLCA(kernel=(3, 4)), ["--kernel", "3x4"], False),
    "skellam-vb": (SkellamSNMF(method="vb", replicates=1), ["--m", "1"], True),
    "plca-vb": (PLCA(method="vb", prior={"weights": "dirichlet:0.5"}), ["--prior", "weights=dirichlet:0.5"], False),
}
CRITERIA = [(model, c) for model in CASES for c in ("bic", "aic", "held_out", "elbo") if model.endswith("-vb") == (c == "elbo")]
VALIDATED = ("plca", "plsa", "nmf-kl")


def by_command(plca, folder, model, data, *options):
    path = folder / ("v.npz" if sparse.issparse(data) else "v.npy")
    sparse.save_npz(path, data) if sparse.issparse(data) else np.save(path, data)
    return json.loads(plca("select", model, path, "--json", *options))


@pytest.mark.parametrize(("model", "criterion"), CRITERIA)
@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_scores_are_those_of_the_command(plca, tmp_path, model, criterion, n_jobs, form):
    estimator, options, transposed = CASES[model]
    X = form(counts((20, 15)))
    how = ["--ranks", "1,3,2", "--seed", 5, "--restarts", 2, "--max-iter", 60, "--criterion", criterion.replace("_", "-")]
    theirs = by_command(plca, tmp_path, model, X, *how, *options)
    estimator.set_params(random_state=5, n_init=2, max_iter=60, n_jobs=n_jobs)
    ours = select(estimator, X.T if transposed else X, [1, 3, 2], criterion=criterion)
    assert ours.best == theirs["best"] and ours.criterion == criterion == theirs["criterion"].replace("-", "_")
    # The command may list the evidence by its numbers.
    rows = sorted(ours.table, key=lambda row: row["n_components"])
    for row, other in zip(rows, sorted(theirs["table"], key=lambda row: row["rank"])):
        names = {"n_components": "rank", "score": "score", "log_likelihood": "log_likelihood", "parameters": "parameters"}
        for name, of_theirs in names.items():
            assert row[name] == other[of_theirs], name


@pytest.mark.parametrize("model", CASES)
def test_defaults_are_those_of_the_command(plca, tmp_path, model):
    estimator, options, transposed = CASES[model]
    X = counts((20, 15))
    theirs = by_command(plca, tmp_path, model, X, "--ranks", "1..2", "--max-iter", 9, *options)
    estimator.set_params(random_state=0, n_init=3, max_iter=9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = select(estimator, X.T if transposed else X, [1, 2])
    assert ours.criterion == theirs["criterion"].replace("-", "_") and ours.best == theirs["best"] == ours.proposed
    assert ours.table["score"].tolist() == [row["score"] for row in sorted(theirs["table"], key=lambda row: row["rank"])]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("model", VALIDATED)
def test_cross_validation_is_that_of_the_command(plca, tmp_path, model, form):
    estimator = {"plca": PLCA(), "plsa": PLSA(), "nmf-kl": NMF()}[model]
    X = form(counts((20, 15)))
    how = ["--ranks", "1,3,2,16", "--seed", 5, "--restarts", 2, "--criterion", "cv", "--folds", 3, "--repeats", 2, "--rule", "one-se", "--smooth", 0.05]
    # The second solver makes plain steps, each model its own.
    for solver in ("auto", "em"):
        given = ["--solver", solver, *(["--given", 0] if model == "plsa" else [])]
        estimator.set_params(random_state=5, n_init=2, solver=solver, n_jobs=2)
        for zeros in ("all", "stored"):
            theirs = by_command(plca, tmp_path, model, X, *how, *given, *(["--zeros", "stored"] if zeros == "stored" else []))
            with pytest.warns(UserWarning, match=r"\[16\]"):
                ours = select(estimator, X, [1, 3, 2, 16], criterion="cv", n_folds=3, n_repeats=2, rule="one-se", smooth=0.05, zeros=zeros)
            assert (ours.best, ours.one_se, ours.paired, ours.proposed) == tuple(theirs[name] for name in ("best", "one_se", "paired", "proposed"))
            assert ours.scores.shape == (4, 2, 3) and np.isnan(ours.scores[3]).all() and np.isnan(ours.table["score"][3])
            for at, row in enumerate(theirs["table"][:3]):
                assert ours.scores[at].tolist() == row["scores"]
                for name in ("score", "se", "difference", "difference_se", "start_sd"):
                    assert ours.table[name][at] == row[name], name
            assert (ours.table["seconds"][:3] > 0).all()


@pytest.mark.parametrize("make", [PLCA, PLSA, NMF])
def test_no_tolerance_is_no_other_model(make):
    X = counts((20, 15))
    zero, small = (select(make(random_state=0, tol=tol, max_iter=5), X, [2, 3], criterion="cv") for tol in (0, 1e-300))
    assert zero.scores.tolist() == small.scores.tolist()


def test_shares_and_counts_have_one_number_of_blocks():
    X = np.random.default_rng(0).poisson(np.kron(np.eye(3), np.full((8, 9), 6.0)) + 0.05).astype(float)
    per_million = 1e6 * X / X.sum(axis=1, keepdims=True)
    for data in (X, per_million.round()):
        found = select(PLSA(n_init=2, random_state=0), data, range(1, 5), rule="one-se")
        assert found.proposed == 3 and found.criterion == "cv" and found.warnings == []
    with pytest.warns(UserWarning, match="not hold counts"):
        assert select(PLSA(n_init=2, random_state=0), per_million, range(1, 5), rule="one-se").proposed == 3
    with pytest.warns(UserWarning, match="criterion='cv'"):
        found = select(PLSA(random_state=0), per_million.round(), [1, 2], criterion="held_out")
    assert len(found.warnings) == 1


def test_scores_are_drawn():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    X = np.random.default_rng(0).poisson(np.kron(np.eye(3), np.full((8, 9), 6.0)) + 0.05)
    for criterion in ("cv", "bic"):
        found = select(PLCA(random_state=0), X, [4, 2, 3], criterion=criterion)
        ax = found.plot()
        line = next(line for line in ax.lines if len(line.get_xdata()) == 3)
        assert line.get_xdata().tolist() == [2, 3, 4] and line.get_ydata().tolist() == found.table["score"][[1, 2, 0]].tolist()
        assert len(ax.patches) == (criterion == "cv") and ax.get_ylabel() == criterion
        assert found.plot(ax) is ax
        pyplot.close("all")


def test_what_cross_validation_does_not_take_is_named():
    X = counts((8, 6)) + 1
    for how, sentence in (
        ({"rule": "worst"}, "rule is 'worst', expected one of best, one-se, paired"),
        ({"n_folds": 1}, "n_folds is 1"),
        ({"n_folds": 2.5}, "n_folds is 2.5"),
        ({"n_repeats": 0}, "n_repeats is 0"),
        ({"zeros": "none"}, "zeros is 'none'"),
        ({"smooth": 1.0}, "smooth is 1.0"),
        ({"n_folds": 49}, "49 folds of 48 positive cells"),
        ({"criterion": "bic", "n_folds": 3}, "criterion is 'bic'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            select(PLSA(), X, [1], **how)
    with pytest.raises(ValueError, match="expected one of bic, aic, held_out for ShiftInvariantPLCA"):
        select(ShiftInvariantPLCA(kernel=(2, 2)), X, [1], criterion="cv")
    with pytest.raises(ValueError, match="can have none"):
        select(PLSA(), X, [7, 8])


def test_scores_of_what_is_hidden_and_of_no_counts(plca, tmp_path):
    X = counts((20, 15)) / 4
    X[3, 4] = X[7, 1] = np.nan
    how = ["--ranks", "1..3", "--missing", "nan", "--criterion"]
    estimator = PLCA(missing="nan", random_state=0, n_init=3)
    for criterion, sentence in (("held_out", "cells are held out"), ("bic", "sample size")):
        theirs = by_command(plca, tmp_path, "plca", X, *how, criterion.replace("_", "-"))
        with pytest.warns(UserWarning, match=sentence):
            ours = select(estimator, X, range(1, 4), criterion=criterion)
        assert ours.table["score"].tolist() == [row["score"] for row in theirs["table"]]


def test_the_bound_of_topics_finds_their_number():
    X = np.random.default_rng(0).poisson(np.kron(np.eye(3), np.full((8, 9), 6.0)) + 0.05)
    found = select(PLSA(method="vb", random_state=0, n_init=3), X, range(1, 6))
    assert found.best == 3 and found.criterion == "elbo"


@pytest.mark.parametrize("estimator", [PLCA(), PLSA(), NMF()], ids=repr)
def test_the_number_of_blocks_is_found(estimator):
    X = np.random.default_rng(0).poisson(np.kron(np.eye(3), np.full((8, 9), 6.0)) + 0.05)
    estimator.set_params(random_state=0, n_init=3)
    before = estimator.get_params()
    for criterion in ("bic", "aic", "held_out"):
        found = select(estimator, X.astype(np.float32), (k for k in range(1, 6)), criterion=criterion)
        assert found.best == 3 and found.table["n_components"].tolist() == [1, 2, 3, 4, 5]
    assert estimator.get_params() == before and not hasattr(estimator, "n_components_")
    k, n = found.table["n_components"], found.table["parameters"]
    assert np.array_equal(n, k * (24 + 27 - k) - 1)


def test_what_has_no_score_is_named():
    X = counts((8, 6)) + 1
    for estimator, sentence in (
        (PNTF(), "PNTF has no likelihood"),
        (NMF(beta_loss="frobenius"), "squared error is not a likelihood"),
        (SkellamSNMF(), "only with method='vb'"),
        (PLSA(prior={"basis": "dirichlet:1.5"}), "prior is .* which select does not support"),
        (PLSA(freeze="basis"), "freeze is 'basis'"),
        (PLCA(temper=0.9), "temper is 0.9"),
        (NMF(init="nndsvda"), "init is 'nndsvda'"),
        (NMF(alpha_W=0.1) if "alpha_W" in NMF().get_params() else PLSA(init="custom"), "which select does not support"),
    ):
        with pytest.raises(ValueError, match=sentence):
            select(estimator, X, [1, 2])
    with pytest.raises(ValueError, match="criterion is 'elbo', expected one of cv, bic, aic, held_out for PLSA"):
        select(PLSA(), X, [1], criterion="elbo")
    with pytest.raises(ValueError, match="criterion is 'bic', expected one of elbo for PLSA"):
        select(PLSA(method="vb"), X, [1], criterion="bic")
    with pytest.raises(ValueError, match="n_components is empty"):
        select(PLSA(), X, [])
    for wrong in (0, 1.5, "2"):
        with pytest.raises(ValueError, match="n_components has"):
            select(PLSA(), X, [1, wrong])
    with pytest.raises(MemoryError):
        select(PLSA(), X, [2**60])
    with pytest.raises(ValueError, match="too few data"):
        select(PLSA(), np.eye(3), [1], criterion="held_out")


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("estimator", [PLSA(), SkellamSNMF(method="vb")], ids=repr)
def test_control_c_ends_it(estimator):
    X = counts((300, 200)) + 1
    sent = []

    def press():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.5, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        select(estimator.set_params(tol=0, max_iter=10**7, n_init=3, random_state=0), X, [3, 4])
    assert time.perf_counter() - sent[0] < 2
