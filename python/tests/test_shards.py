"""Shards: every engine finds the same bits, and almost the numbers of one piece."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from plcakit import NMF, PLCA, PLSA, _core
from plcakit._shards import OneProcess, load, surveyed
from plcakit.shards import fit

K = 4
SHARDS = 16
#: Kills of each kind, each at another moment.
KILLS = range(int(os.environ.get("PLCA_KILLS", 1)))


def data(seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(0.4, size=(70, K)) @ rng.gamma(0.3, size=(K, 31)) * 4.0).astype(np.float64)


def cut(X, many=SHARDS):
    ends = [X.shape[0] * n // many for n in range(many + 1)]
    return [X[a:b] for a, b in zip(ends, ends[1:])]


def models(**more):
    settings = {"random_state": 5, "max_iter": 23, "tol": 0, "n_jobs": 1, **more}
    return {
        "plsa": PLSA(K, **settings),
        "plca": PLCA(K, **settings),
        "nmf": NMF(K, **settings),
        "penalised": NMF(K, alpha_W=0.01, l1_ratio=0.5, **settings),
    }


def bits(model):
    blocks = {name: block.tobytes() for name, block in model._blocks.items()}
    return blocks, model.objective_, model.n_iter_, model.trace_.tobytes(), model._metadata


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("form", ["dense", "sparse", "single"])
def test_as_one_piece(name, form):
    X = data()
    X = {"dense": X, "sparse": sparse.csr_matrix(X), "single": X.astype(np.float32)}[form]
    # Of the model in shards the samples are the last mode, but of PLSA.
    turned = X if name == "plsa" else X.T
    whole = models(max_iter=100, solver="em")[name].fit(turned)
    model = fit(models(max_iter=100)[name], cut(X))
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-5 if form == "single" else 1e-12)
    assert model.components_.shape == (K, 31) and model.components_.dtype == X.dtype
    assert model.n_features_in_ == 31 and model.transform(X).shape == (70, K)
    both = model.reconstruct(), whole.reconstruct() if name == "plsa" else whole.reconstruct().T
    tolerance = 1e-2 if form == "single" else 1e-8
    np.testing.assert_allclose(*both, rtol=tolerance, atol=tolerance)
    if name in ("nmf", "penalised"):
        assert model.reconstruction_err_ == pytest.approx(whole.reconstruction_err_, rel=1e-4 if form == "single" else 1e-10)


def test_hidden_cells():
    X = data()
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.1] = np.nan
    for model in (PLSA, PLCA, NMF):
        settings = {"random_state": 5, "max_iter": 30, "tol": 0, "missing": "nan"}
        sharded = fit(model(K, **settings), cut(X))
        turned = X if model is PLSA else X.T
        whole = model(K, solver="em", **settings).fit(turned)
        assert sharded.objective_ == pytest.approx(whole.objective_, rel=1e-12)
        both = sharded.reconstruct(), whole.reconstruct() if model is PLSA else whole.reconstruct().T
        np.testing.assert_allclose(*both, rtol=1e-8, atol=1e-10)


def test_order_three():
    rng = np.random.default_rng(2)
    X = rng.poisson(2.0, size=(40, 5, 6)).astype(np.float64)
    model = fit(PLCA(3, random_state=0, max_iter=30, tol=0), cut(X, 7))
    assert [factor.shape for factor in model.factors_] == [(40, 3), (5, 3), (6, 3)]
    np.testing.assert_allclose(model.reconstruct().sum(axis=(1, 2)), X.sum(axis=(1, 2)), rtol=1e-9)


def test_a_shard_is_pickled_with_its_data():
    import pickle

    shard = load(sparse.csr_matrix(data()), None, True, sent=True)
    sheet = {"model": "nmf-kl", "components": 1, "options": {}, "threads": 1}
    again = pickle.loads(pickle.dumps(shard))
    assert surveyed(sheet, [again], 0, 1) == surveyed(sheet, [shard], 0, 1)
    # As a message of Dask has them: arrays at any address.
    buffers = []
    message = pickle.dumps(load(data(), None, True, sent=True), protocol=5, buffer_callback=buffers.append)
    moved = [np.frombuffer(b"\0" + bytes(buffer.raw()), dtype=np.uint8, offset=1) for buffer in buffers]
    assert buffers and moved[0].ctypes.data % 8
    moved = pickle.loads(message, buffers=moved)
    assert surveyed(sheet, [moved], 0, 1)[1:] == surveyed(sheet, [shard], 0, 1)[1:]
    assert sys.getsizeof(shard) > 8 * np.count_nonzero(data())


def test_what_shards_cannot_do_is_said():
    shards = cut(data(), 3)
    for model, what in [
        (PLSA(2, solver="fast"), "solver is 'fast'"),
        (PLSA(2, n_init=2), "n_init is 2"),
        (NMF(2, beta_loss="frobenius"), "expected PLSA, PLCA or NMF"),
        (PLSA(2, freeze="basis"), "freeze needs a start"),
    ]:
        with pytest.raises(ValueError, match=what):
            fit(model, shards)
    with pytest.raises(ValueError, match="no shards"):
        fit(PLSA(2), [])
    with pytest.raises(ValueError, match="shard 1: .*-1"):
        fit(PLSA(2), [shards[0], -np.ones((2, 31))])
    with pytest.raises(ValueError, match="expected"):
        fit(PLSA(2), [shards[0], np.ones((2, 30))])
    with pytest.raises(ValueError, match="message of shards"):
        _core.shard_join([b"\x07nonsense"])


def test_callback_and_stop():
    seen = []
    model = fit(PLSA(K, random_state=0, callback=lambda it, objective: seen.append(it) or it >= 10), cut(data()))
    assert model.stop_reason_ == "callback" and seen[-1] == 10
    assert fit(PLSA(K, random_state=0, tol=1e-4), cut(data())).converged_
    with pytest.raises(ZeroDivisionError):
        fit(PLSA(K, random_state=0, callback=lambda it, objective: 1 / 0), cut(data()))


def test_a_folder_of_the_command(tmp_path):
    plca = os.environ.get("PLCA") or shutil.which("plca")
    if plca is None:
        pytest.skip("the command is not here")
    X = data()
    np.save(tmp_path / "v.npy", X.T)
    subprocess.run([plca, "shard", tmp_path / "v.npy", "-o", tmp_path / "cut", "--shards", "9", "--json"], check=True)
    for name, model in models().items():
        if name == "penalised":
            continue
        kind = {"nmf": "nmf-kl"}.get(name, name)
        out = tmp_path / f"{name}.npz"
        arguments = ["-k", str(K), "--seed", "5", "--max-iter", "23", "--tol", "0", "--quiet"]
        subprocess.run([plca, "fit", kind, tmp_path / "cut", "-o", out, *arguments], check=True)
        model = fit(model, tmp_path / "cut")
        blocks, _ = _core.read_model(out)
        mine = model.components_ if name != "plca" else model.factors_[1].T
        theirs = blocks[{"plsa": "basis", "nmf": "w", "plca": "factor_0"}[name]].T
        assert mine.tobytes() == np.ascontiguousarray(theirs).tobytes()


def with_dask():
    return pytest.importorskip("distributed", reason="Dask is not here")


def with_mpi():
    mpirun = shutil.which("mpirun")
    # Its module asks for a library of MPI.
    if mpirun is None or subprocess.run([sys.executable, "-c", "from mpi4py import MPI"], capture_output=True).returncode:
        pytest.skip("Open MPI or mpi4py is not here")
    return mpirun


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7, 8, 16])
def test_dask_has_the_bits_of_one_process(workers):
    distributed = with_dask()
    from plcakit.dask import fit as on_dask

    shards = cut(data())
    cluster = distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        for name, model in models(max_iter=9).items():
            one = fit(models(max_iter=9)[name], shards)
            many = on_dask(model, shards, client=client, ranges=workers, save_every=4)
            assert bits(many) == bits(one), name
            assert many.traffic_["passes"] == one.traffic_["passes"]


def test_an_array_of_dask():
    distributed = with_dask()
    da = pytest.importorskip("dask.array")
    from plcakit.dask import fit as on_dask

    X = data()
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        model = on_dask(PLSA(K, random_state=5, max_iter=5, tol=0), da.from_array(X, chunks=(10, 8)), client=client)
    one = fit(PLSA(K, random_state=5, max_iter=5, tol=0), cut(X, 7))
    assert bits(model) == bits(one)


@pytest.mark.parametrize("turn", KILLS)
@pytest.mark.parametrize("shared", [False, True])
def test_a_lost_worker_changes_nothing(tmp_path, shared, turn):
    distributed = with_dask()
    from plcakit.dask import fit as on_dask

    shards = cut(data())
    one = fit(models(check_every=1)["nmf"], shards)
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        timers = []

        def kill(iteration, objective):
            if iteration == 3 + turn and not timers:
                pids = sorted(client.run(os.getpid).values())
                # While the tasks of the next iterations run.
                timers.append(threading.Timer(0.02 * turn, os.kill, (pids[turn % 2], signal.SIGKILL)))
                timers[0].start()

        folder = tmp_path / "state" if shared else None
        model = models(callback=kill, check_every=1)["nmf"]
        many = on_dask(model, shards, client=client, folder=folder, save_every=4)
        timers[0].join()
    assert bits(many) == bits(one)
    assert not shared or not list(folder.iterdir())


def test_a_cluster_without_workers_ends_the_fit():
    distributed = with_dask()
    from plcakit.dask import fit as on_dask

    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        model = PLSA(K, random_state=5, callback=lambda iteration, objective: cluster.scale(0))
        with pytest.raises(RuntimeError, match="the cluster has had no worker for 0.5 s"):
            on_dask(model, cut(data()), client=client, timeout=0.5)


def test_an_iteration_may_take_longer_than_the_timeout():
    distributed = with_dask()
    from plcakit.dask import fit as on_dask

    def slow(X):
        time.sleep(1.0)
        return X

    dask = pytest.importorskip("dask")
    shards = [dask.delayed(slow)(X) for X in cut(data(), 2)]
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        model = on_dask(models()["nmf"], shards, client=client, timeout=0.2)
    assert bits(model) == bits(fit(models()["nmf"], cut(data(), 2)))


RANKS = textwrap.dedent(
    """
    import sys
    import numpy as np
    sys.path.insert(0, sys.argv[1])
    from test_shards import bits, cut, data, models
    from plcakit.mpi import fit
    import pickle
    found = {name: bits(fit(model, cut(data()))) for name, model in models().items()}
    from mpi4py import MPI
    found = MPI.COMM_WORLD.gather(found)
    if MPI.COMM_WORLD.rank == 0:
        assert all(one == found[0] for one in found)
        open(sys.argv[2], "wb").write(pickle.dumps(found[0]))
    """
)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7, 8, 16])
def test_mpi_has_the_bits_of_one_process(tmp_path, ranks):
    import pickle

    mpirun = with_mpi()
    command = [mpirun, "--oversubscribe", "--allow-run-as-root", "-n", str(ranks), sys.executable, "-c", RANKS]
    out = tmp_path / "found"
    subprocess.run([*command, str(Path(__file__).parent), str(out)], check=True, timeout=300)
    one = {name: bits(fit(model, cut(data()))) for name, model in models().items()}
    assert pickle.loads(out.read_bytes()) == one


KILLED = textwrap.dedent(
    """
    import os, signal, sys
    sys.path.insert(0, sys.argv[1])
    from test_shards import bits, cut, data, models
    from plcakit.mpi import fit
    from mpi4py import MPI
    import pickle
    at = int(sys.argv[4])
    def kill(iteration, objective):
        if iteration == at and MPI.COMM_WORLD.rank == MPI.COMM_WORLD.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
    model = fit(models(callback=kill, check_every=1)["plca"], cut(data()), checkpoint=sys.argv[3], save_every=4)
    if MPI.COMM_WORLD.rank == 0:
        open(sys.argv[2], "wb").write(pickle.dumps(bits(model)))
    """
)


@pytest.mark.parametrize("turn", KILLS)
def test_mpi_goes_on_after_a_kill_with_other_ranks(tmp_path, turn):
    import pickle

    mpirun = with_mpi()
    out = tmp_path / "found"

    def run(ranks, at):
        command = [mpirun, "--oversubscribe", "--allow-run-as-root", "-n", str(ranks), sys.executable, "-c", KILLED]
        arguments = [str(Path(__file__).parent), str(out), str(tmp_path / "state"), str(at)]
        return subprocess.run([*command, *arguments], timeout=300, capture_output=True).returncode

    assert run(3, 1 + turn) != 0 and not out.exists()
    assert run(2, 12 + turn) != 0 and not out.exists()
    assert run(4, -1) == 0
    found, one = pickle.loads(out.read_bytes()), bits(fit(models(check_every=1)["plca"], cut(data())))
    # All but the trace, which begins where the last run did.
    assert found[:3] == one[:3] and found[4] == one[4]


@pytest.mark.parametrize("module, package", [("plcakit.dask", "dask"), ("plcakit.mpi", "mpi4py")])
def test_what_is_missing_is_said_in_one_line(module, package):
    code = f"import sys; sys.modules[{package!r}] = None\nimport {module} as m\nm.fit(None, [1])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = found.stderr.strip().splitlines()[-1]
    assert found.returncode == 1 and last.startswith("ImportError: plcakit.") and "pip install" in last


def test_traffic_does_not_depend_on_the_samples():
    few, many = (OneProcess([load(X, None, False) for X in cut(np.tile(data(), (n, 1)))]) for n in (1, 3))
    from plcakit._shards import fit as run

    of = [run(PLSA(K, random_state=0, max_iter=3, tol=0), engine).traffic_ for engine in (few, many)]
    for way in ("up", "down"):
        sizes = [traffic[way] / traffic["passes"] for traffic in of]
        assert abs(sizes[0] - sizes[1]) < 16
        assert sizes[0] < 8 * (K * 31 + K) + 200
