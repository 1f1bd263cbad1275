"""Callbacks, and Ctrl-C."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

from plcakit import NMF, PLCA, PLSA, PNTF, ShiftInvariantPLCA, SkellamSNMF


@pytest.fixture
def X():
    return np.random.default_rng(0).random((400, 300)) + 0.1


def test_a_callback_sees_every_check_and_ends_the_fit(X):
    seen = []

    def watch(iteration, objective):
        seen.append((iteration, objective))
        return iteration >= 30

    model = NMF(5, random_state=0, solver="em", callback=watch).fit(X)
    assert [i for i, _ in seen] == [0, 10, 20, 30]
    assert model.stop_reason_ == "callback" and model.n_iter_ == 31
    assert all(a > b for (_, a), (_, b) in zip(seen, seen[1:]))
    assert model.transform(X).shape == (400, 5)


def test_the_error_of_a_callback_is_raised_and_the_state_is_kept(X):
    def watch(iteration, objective):
        if iteration >= 20:
            raise KeyError("enough")

    model = NMF(5, random_state=0, solver="em", callback=watch)
    with pytest.raises(KeyError, match="enough"):
        model.fit(X)
    assert model.n_iter_ == 21 and not model.converged_
    assert model.transform(X).shape == (400, 5)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_control_c_ends_a_fit_and_leaves_what_was_reached(X, n_jobs):
    # Nothing else ends this fit.
    model = NMF(20, random_state=0, solver="em", tol=0, max_iter=10**7, n_jobs=n_jobs)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.stop_reason_ == "interrupted" and model.n_iter_ > 0
    more = model.set_params(max_iter=5, warm_start=True).fit(X)
    assert more.objective_ <= more.trace_["objective"][0]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_control_c_ends_a_transform(X):
    model = NMF(60, random_state=0, solver="em", tol=0, max_iter=3).fit(X)
    X = np.tile(X, (60, 1))
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.transform(X)
        pytest.skip("this machine explains the data before anybody can interrupt it")


# On a machine of which others have most, what listens still ends long before.
SECONDS = 60


def interrupted(call):
    """The seconds from Ctrl-C until the call has ended."""
    sent = []

    def press():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.5, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call()
        timer.cancel()
        pytest.skip("this machine is done before anybody can interrupt it")
    return time.perf_counter() - sent[0]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("make", [PLSA, PLCA])
def test_control_c_ends_a_batch_which_then_has_taught_nothing(make):
    draw = np.random.default_rng(0)
    large = draw.random((6000, 2000))
    small = draw.poisson(2.0, (20, 2000)).astype(float)
    model, other = make(100, random_state=0, n_jobs=1), make(100, random_state=0, n_jobs=1)
    assert interrupted(lambda: model.partial_fit(large)) < SECONDS
    assert not hasattr(model, "components_")
    model.partial_fit(small)
    assert interrupted(lambda: model.partial_fit(large)) < SECONDS
    assert model.n_iter_ == 1 and np.array_equal(model.components_, other.partial_fit(small).components_)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(
    "model", [PLSA(40), PLCA(40), NMF(80, beta_loss="frobenius"), PNTF(80), SkellamSNMF(40), ShiftInvariantPLCA(4, kernel=(12, 12))],
    ids=repr,
)
def test_control_c_ends_the_transform_of_every_model(X, model):
    model.set_params(random_state=0, solver="auto", tol=0, max_iter=2)
    if hasattr(model, "transform_tol"):
        # Without a gap to reach, all iterations are made.
        model.set_params(transform_tol=0)
    model.fit(X)
    many = X if isinstance(model, ShiftInvariantPLCA) else np.tile(X, (20, 1))
    # To their own end most would take minutes.
    assert interrupted(lambda: model.transform(many)) < SECONDS
    assert model.transform(X[:2, :] if many is not X else X[:30, :30]) is not None


def test_other_threads_of_python_run_meanwhile(X):
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    NMF(10, random_state=0, solver="em", tol=0, max_iter=200).fit(X)
    done.set()
    thread.join()
    assert max(np.diff(ticks)) < 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_comes_to_the_same(X):
    base = NMF(3, random_state=0, tol=0, max_iter=20).fit(X).components_
    child = os.fork()
    if child == 0:
        same = np.array_equal(NMF(3, random_state=0, tol=0, max_iter=20).fit(X).components_, base)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_progress_is_a_bar_where_tqdm_is_installed(X, capsys, monkeypatch):
    pytest.importorskip("tqdm")
    model = NMF(3, random_state=0, solver="em", tol=0, max_iter=40, n_init=2, verbose=1).fit(X)
    out, err = capsys.readouterr()
    assert not out and "NMF: 100%" in err and "40/40" in err and "objective" in err
    # The end is where the fit ended.
    NMF(3, random_state=0, solver="em", max_iter=4000, tol=1e-3, verbose=1).fit(X)
    err = capsys.readouterr().err
    assert "/4000" in err and "4000/4000" not in err
    plain = NMF(3, random_state=0, solver="em", tol=0, max_iter=40, n_init=2).fit(X)
    assert np.array_equal(plain.components_, model.components_)
    # Without it, and with more of it, every check is a line.
    model.set_params(verbose=2).fit(X)
    assert "NMF: start 1, iteration 30, objective" in capsys.readouterr().out
    monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    model.set_params(verbose=1).fit(X)
    assert "NMF: start 0, iteration 30, objective" in capsys.readouterr().out


def test_the_bar_ends_with_the_error_of_a_callback(X, capsys):
    pytest.importorskip("tqdm")

    def watch(iteration, objective):
        if iteration >= 20:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        NMF(5, random_state=0, solver="em", callback=watch, verbose=1).fit(X)
    assert capsys.readouterr().err.endswith("\n")


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(
    "model, steps",
    [(NMF(300, init="nndsvda"), 16), (NMF(300, init="nndsvda", beta_loss="frobenius"), 16), (PLSA(150, method="vb"), 50), (PNTF(200, init="deflation"), 200)],
    ids=repr,
)
def test_control_c_ends_a_start(model, steps):
    X = np.random.default_rng(0).poisson(1.0, (6000, 1500)).astype(float)
    times = []

    def third(iteration, objective):
        times.append(time.perf_counter())
        return len(times) == 3

    with pytest.raises(ValueError, match="there is no model yet"):
        model.set_params(random_state=0, max_iter=1, callback=third).fit(X)
    # To its own end the start takes all steps.
    whole = steps * (times[2] - times[0]) / 2
    assert interrupted(lambda: model.set_params(callback=None).fit(X)) < whole / 2
    assert not hasattr(model, "components_")


@pytest.mark.parametrize("model, steps", [(NMF(4, init="nndsvda"), 16), (PLSA(4, method="vb"), 50), (PNTF(4, init="deflation"), 4)], ids=repr)
def test_a_start_is_told(model, steps, capsys):
    X = np.random.default_rng(0).poisson(2.0, (60, 40)).astype(float)
    seen = []
    model.set_params(random_state=0, tol=0, max_iter=1, callback=lambda *told: seen.append(told)).fit(X)
    assert len(seen) == steps + 1 and all(i == 0 for i, _ in seen)
    assert all(np.isnan(o) for _, o in seen[:-1]) and np.isfinite(seen[-1][1])
    model.set_params(callback=None, verbose=2).fit(X)
    assert f"start 0, step {steps - 1} of {steps} before the first iteration" in capsys.readouterr().out


def test_a_callback_ends_a_start():
    X = np.random.default_rng(0).poisson(2.0, (60, 40)).astype(float)
    with pytest.raises(ValueError, match="there is no model yet"):
        PLSA(4, method="vb", random_state=0, callback=lambda *told: True).fit(X)
    with pytest.raises(KeyError, match="enough"):
        PLSA(4, method="vb", random_state=0, callback=lambda *told: {}["enough"]).fit(X)
    # The first start counts where a later one ends before there is a model.
    calls = []

    def second(iteration, objective):
        calls.append(objective)
        return len(calls) > 60 and np.isnan(objective)

    one = PLSA(4, method="vb", random_state=0, max_iter=3).fit(X)
    kept = PLSA(4, method="vb", random_state=0, max_iter=3, n_init=3, n_jobs=1, callback=second).fit(X)
    assert np.array_equal(one.components_, kept.components_)


def test_control_c_in_a_later_start_leaves_the_best_of_those_before():
    X = np.random.default_rng(0).poisson(2.0, (60, 40)).astype(float)
    model = PLSA(4, method="vb", max_iter=20, tol=0, random_state=0, n_jobs=1)
    alone = clone(model).fit(X)
    told = []

    def interrupt(iteration, objective):
        told.append(objective)
        if np.isnan(objective) and np.isfinite(told).any():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(n_init=3, callback=interrupt).fit(X)
    assert np.array_equal(model.components_, alone.components_)
