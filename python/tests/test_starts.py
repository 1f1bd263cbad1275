"""Several starts, made side by side: what is kept is what one after the other would leave."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from plcakit import NMF, PLCA, PLSA, PNTF, ShiftInvariantPLCA, SkellamSNMF

ALL = [
    NMF(3), NMF(3, beta_loss="frobenius"), PLSA(3), PLCA(3), PNTF(3), SkellamSNMF(3), SkellamSNMF(3, method="vb"),
    ShiftInvariantPLCA(2, kernel=(3, 2)),
]


@pytest.fixture
def X():
    return np.random.default_rng(0).poisson(3.0, (40, 25)) + 0.5


def fitted(model, X, seed=4, **params):
    from sklearn.base import clone

    return clone(model).set_params(random_state=seed, max_iter=60, tol=0, **params).fit(X)


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_the_number_of_threads_changes_no_bit(model, X):
    one = fitted(model, X, n_init=5, n_jobs=1)
    for n_jobs in (2, 3, 8, -1, None):
        other = fitted(model, X, n_init=5, n_jobs=n_jobs)
        assert other.objective_ == one.objective_ and np.array_equal(other.trace_, one.trace_)
        for name, block in one._blocks.items():
            assert np.array_equal(block, other._blocks[name]), (n_jobs, name)


@pytest.mark.parametrize("model", [NMF(3), PLSA(3)], ids=repr)
def test_the_best_start_is_kept(model, X):
    sign, better = 1 if isinstance(model, NMF) else -1, 0
    for seed in range(6):
        found = [sign * fitted(model, X, seed, n_init=n, n_jobs=n_jobs).objective_ for n, n_jobs in ((6, 3), (5, 2), (1, 1))]
        assert found == sorted(found)
        better += found[0] < found[-1]
    # Of six seeds some have a better start than their first.
    assert better


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_a_callback_ends_its_start_and_those_after_it(X, n_jobs):
    # The objective tells the starts apart, whatever their order.
    objectives = {}

    def note(iteration, objective):
        if iteration == 0:
            objectives[objective] = len(objectives)

    NMF(3, random_state=4, solver="em", tol=0, max_iter=40, n_init=6, n_jobs=1, callback=note).fit(X)
    starts = list(objectives)
    assert len(starts) == 6
    # Ends the third start at once: the best of the first three is left, the last of which made one iteration.
    model = NMF(3, random_state=4, solver="em", tol=0, max_iter=40, n_init=6, n_jobs=n_jobs)
    model.set_params(callback=lambda iteration, objective: objective == starts[2]).fit(X)
    two = NMF(3, random_state=4, solver="em", tol=0, max_iter=40, n_init=2, n_jobs=1).fit(X)
    assert np.array_equal(model.components_, two.components_) and model.n_iter_ == 40
    # Ends the first one: what it reached is the result.
    model.set_params(callback=lambda iteration, objective: objective == starts[0]).fit(X)
    assert model.n_iter_ == 1 and model.stop_reason_ == "callback"


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_what_a_callback_raises_ends_all_starts(X, n_jobs):
    calls = []

    def watch(iteration, objective):
        calls.append(iteration)
        if len(calls) == 10:
            raise KeyError("enough")

    model = NMF(3, random_state=0, solver="em", tol=0, max_iter=10**7, n_init=1000, n_jobs=n_jobs, callback=watch)
    with pytest.raises(KeyError, match="enough"):
        model.fit(X)
    assert len(calls) == 10 and not model.converged_ and model.transform(X).shape == (40, 3)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_control_c_ends_all_starts(X, n_jobs):
    sent = []

    def press():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    model = NMF(3, random_state=0, solver="em", tol=0, max_iter=10**7, n_init=10**6, n_jobs=n_jobs)
    timer = threading.Timer(0.5, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    # All starts would take days.
    assert time.perf_counter() - sent[0] < 60
    assert model.stop_reason_ == "interrupted" and model.n_iter_ > 0


def test_a_start_that_is_refused_is_named(X):
    with pytest.raises(ValueError, match="no component 7 in `h`, which has 3"):
        NMF(3, n_init=3, n_jobs=3, solver="em", freeze={"h": [7]}).fit(X, start={"h": np.ones((3, 25))})


def test_check_every_is_the_distance_of_checks(X):
    seen = []
    model = PLSA(3, random_state=0, solver="em", tol=0, max_iter=12, check_every=4, callback=lambda i, x: seen.append(i))
    model.fit(X)
    assert seen == [0, 4, 8] and model.trace_["iteration"].tolist() == [0, 4, 8, 12]
    with pytest.raises(ValueError, match="check_every"):
        model.set_params(check_every=0).fit(X)


def test_no_job_is_none(X):
    model = PLSA(2, random_state=0).fit(X)
    for call in (model.fit, model.transform, model.score, model.partial_fit):
        with pytest.raises(ValueError, match="n_jobs is 0: expected None for one thread"):
            model.set_params(n_jobs=0)
            call(X)
    assert np.array_equal(model.set_params(n_jobs=10**9).fit(X).components_, PLSA(2, random_state=0).fit(X).components_)


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_a_time_limit_ends_all_starts(model, X):
    from sklearn.base import clone

    plain, patient = fitted(model, X, n_init=2), fitted(model, X, n_init=2, time_limit=1e6)
    assert plain.objective_ == patient.objective_
    endless = clone(model).set_params(tol=0, max_iter=10**9, n_init=4, time_limit=1e-9)
    with pytest.warns(UserWarning, match="time_limit"):
        endless.fit(X)
    assert endless.stop_reason_ == "time_limit" and not endless.converged_


@pytest.mark.parametrize("limit", [0, -1.0, np.nan, "soon"])
def test_a_time_limit_is_above_0(X, limit):
    with pytest.raises(ValueError, match="time_limit"):
        NMF(3, time_limit=limit).fit(X)
