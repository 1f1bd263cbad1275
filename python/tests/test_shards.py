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

from plcakit import NMF, PLCA, PLSA, SkellamSNMF, _core
from plcakit._shards import Ranks, load, sourced, surveyed
from plcakit.shards import fit

K = 4
SHARDS = 16
WORKERS = [1, 2, 3, *(pytest.param(many, marks=pytest.mark.long) for many in (7, 16))]
#: Kills of each kind, each at another moment.
KILLS = range(int(os.environ.get("PLCA_KILLS", 1)))


def data(seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(0.4, size=(70, K)) @ rng.gamma(0.3, size=(K, 31)) * 4.0).astype(np.float64)


def cut(X, many=SHARDS):
    ends = [X.shape[0] * n // many for n in range(many + 1)]
    return [X[a:b] for a, b in zip(ends, ends[1:])]


# Those whose samples are no mode of their own.
MIXTURES = ("plsa", "lda")
# Of factors alike, as the samples are the first mode or the last.
BY_BAYES = {"weights": "dirichlet:0.1", "factor_0": "dirichlet:0.5", "factor_1": "dirichlet:0.5"}


def models(**more):
    settings = {"random_state": 5, "max_iter": 23, "tol": 0, "n_jobs": 1, **more}
    return {
        "plsa": PLSA(K, **settings),
        "plca": PLCA(K, **settings),
        "lda": PLSA(K, method="vb", prior={"basis": "dirichlet:0.1"}, **settings),
        "plca by bayes": PLCA(K, method="vb", prior=BY_BAYES, **settings),
        "nmf": NMF(K, **settings),
        "penalised": NMF(K, alpha_W=0.01, l1_ratio=0.5, **settings),
    }


def every(**more):
    """With models of data of either sign, whose samples their estimator has first, and with extrapolated ones."""
    settings = {"random_state": 5, "max_iter": 23, "tol": 0, **more}
    return {
        **models(**more),
        "skellam": SkellamSNMF(K, **settings),
        "bayes": SkellamSNMF(K, method="vb", **settings),
        "extrapolated": PLCA(K, solver="squarem", **settings),
        "sample by sample": PLSA(K, solver="fast", **settings),
        "extrapolated bayes": SkellamSNMF(K, method="vb", solver="squarem", **settings),
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
    turned = X if name in MIXTURES else X.T
    whole = models(max_iter=100, solver="em")[name].fit(turned)
    model = fit(models(max_iter=100)[name], cut(X))
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-5 if form == "single" else 1e-12)
    assert model.components_.shape == (K, 31) and model.components_.dtype == X.dtype
    assert model.n_features_in_ == 31 and model.transform(X).shape == (70, K)
    both = model.reconstruct(), whole.reconstruct() if name in MIXTURES else whole.reconstruct().T
    tolerance = 1e-2 if form == "single" else 1e-8
    np.testing.assert_allclose(*both, rtol=tolerance, atol=tolerance)
    if name in ("nmf", "penalised"):
        assert model.reconstruction_err_ == pytest.approx(whole.reconstruction_err_, rel=1e-4 if form == "single" else 1e-10)


def test_data_of_either_sign():
    X = data() - 2.0
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.1] = np.nan
    for X, settings in [
        (np.nan_to_num(X), {}),
        (X, {"missing": "nan", "replicates": 1, "prior": {"atoms": "dirichlet:1.1", "activations": "gamma:1.5,0.1"}}),
    ]:
        settings = {"random_state": 5, "max_iter": 100, "tol": 0, **settings}
        whole = SkellamSNMF(K, solver="em", **settings).fit(X)
        sharded = fit(SkellamSNMF(K, **settings), cut(X))
        assert sharded.objective_ == pytest.approx(whole.objective_, rel=1e-12)
        assert sharded.components_.shape == (K, 31) and sharded.n_features_in_ == 31
        np.testing.assert_allclose(sharded.reconstruct(), whole.reconstruct(), rtol=1e-6, atol=1e-8)
        assert sharded.transform(X).shape == (70, K)
        whole = SkellamSNMF(K, method="vb", solver="em", **settings).fit(X)
        sharded = fit(SkellamSNMF(K, method="vb", **settings), cut(X))
        assert sharded.objective_ == pytest.approx(whole.objective_, rel=1e-12)
        np.testing.assert_allclose(sharded.reconstruct(), whole.reconstruct(), rtol=1e-6, atol=1e-8)
        assert sharded.transform(X).shape == (70, K)
    with pytest.raises(ValueError, match=r"shard 0: entry \[0, 0\] is inf, expected a finite number$"):
        fit(SkellamSNMF(K), [np.full((3, 4), np.inf)])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_file_of_annotated_data_is_cut_into_its_cells(form, tmp_path):
    anndata = pytest.importorskip("anndata")
    X = data()
    anndata.AnnData(form(X)).write_h5ad(tmp_path / "cells.h5ad")
    settings = {"random_state": 5, "max_iter": 9, "tol": 0}
    model = fit(PLSA(K, **settings), tmp_path / "cells.h5ad")
    assert bits(model) == bits(fit(PLSA(K, **settings), cut(form(X), 64)))
    for name, cells in [("none", anndata.AnnData(form(X)[:0])), ("without", anndata.AnnData(shape=(4, 3)))]:
        cells.write_h5ad(tmp_path / f"{name}.h5ad")
        with pytest.raises(ValueError, match=f"{name}.h5ad has no cells or no X"):
            fit(PLSA(K), tmp_path / f"{name}.h5ad")


def test_entries_of_a_cell_are_its_sum():
    X = sparse.coo_matrix(([3.0, -1.0, 5.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    settings = {"random_state": 5, "max_iter": 9, "tol": 0}
    assert bits(fit(PLSA(2, **settings), [X])) == bits(fit(PLSA(2, **settings), [X.tocsr()]))


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
        (NMF(2, solver="fast", alpha_W=0.1), "not supported by coordinate descent"),
        (PLSA(2, solver="momentum"), "solver is 'momentum', expected 'auto' or 'em' or 'squarem' or 'fast'"),
        (PLSA(2, n_init=2), "n_init is 2"),
        (NMF(2, beta_loss="frobenius"), "expected PLSA, PLCA, SkellamSNMF, or NMF"),
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
        _core.shard_known([b"\x07nonsense"])
    # More than any machine holds.
    with pytest.raises(MemoryError, match="`n_components` is 100000000000"):
        fit(PLSA(10**11), shards)
    # Settings are looked at before a folder is.
    with pytest.raises(ValueError, match="solver is 'momentum'"):
        fit(PLSA(2, solver="momentum"), "no such folder")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        fit(PLSA(2), "no such folder")


def test_errors_name_their_place(tmp_path):
    X = data()
    shards = cut(X, 3)
    # Samples of the shard first, also where the model has them last.
    for model in (PLSA, NMF):
        for value in (np.nan, np.inf, -1.0):
            bad = shards[1].copy()
            bad[5, 7] = value
            for form in (np.asarray, sparse.csr_matrix, sparse.coo_matrix):
                with pytest.raises(ValueError, match=rf"shard 1: entry \[5, 7\] is {value}, expected a finite number"):
                    fit(model(2), [shards[0], form(bad), shards[2]])
    torn = tmp_path / "torn.npz"
    sparse.save_npz(torn, sparse.csr_matrix(shards[1]))
    torn.write_bytes(torn.read_bytes()[:200])
    with pytest.raises(ValueError, match="shard 1: .*torn.npz is not a complete file"):
        fit(PLSA(2), [shards[0], torn])
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="manifest.json is not a manifest"):
        fit(PLSA(2), tmp_path)
    with pytest.raises(ValueError, match="prior on `basis` may set probabilities to 0"):
        fit(PLSA(2, prior={"basis": "dirichlet:0.5"}), shards)


def test_a_masked_array_hides_its_cells():
    X = data()
    hidden = np.random.default_rng(1).uniform(size=X.shape) < 0.1
    model = fit(PLSA(K, random_state=5, max_iter=9, tol=0), cut(np.ma.array(X, mask=hidden)))
    marked = fit(PLSA(K, random_state=5, max_iter=9, tol=0, missing="nan"), cut(np.where(hidden, np.nan, X)))
    assert bits(model) == bits(marked)


@pytest.mark.parametrize("name", models())
def test_a_shard_may_be_without_mass(name):
    X = data()
    X[20:30] = 0.0
    for form in (np.asarray, sparse.csr_matrix):
        whole = models(solver="em")[name].fit(form(X if name in MIXTURES else X.T))
        model = fit(models()[name], [form(X[a:b]) for a, b in ((0, 20), (20, 30), (30, 70))])
        assert model.objective_ == pytest.approx(whole.objective_, rel=1e-12)
        both = model.reconstruct(), whole.reconstruct() if name in MIXTURES else whole.reconstruct().T
        np.testing.assert_allclose(*both, rtol=1e-8, atol=1e-8)
    with pytest.raises(ValueError, match="no observed entry is positive"):
        fit(models()[name], [np.zeros((2, 5)), np.zeros((3, 5))])


def test_a_prior_on_the_samples_alone_makes_a_posterior():
    prior = {"mixture": "dirichlet:1.5"}
    model = fit(PLSA(K, prior=prior, random_state=0, max_iter=5, tol=0), cut(data()))
    whole = PLSA(K, prior=prior, random_state=0, max_iter=5, tol=0).fit(data())
    assert model._objective_name() == whole._objective_name() == "log_posterior"


def test_names_of_features_of_an_earlier_fit_are_forgotten():
    pandas = pytest.importorskip("pandas")
    model = PLSA(2, random_state=0, max_iter=3, tol=0)
    model.fit(pandas.DataFrame(data()[:, :3], columns=["a", "b", "c"]))
    assert len(model.feature_names_in_) == 3
    fit(model, cut(data()))
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 31
    fit(PLCA(2, max_iter=3, tol=0), [np.ones((2, 3, 4))])


def test_callback_and_stop():
    seen = []
    model = fit(PLSA(K, random_state=0, callback=lambda it, objective: seen.append(it) or it >= 10), cut(data()))
    assert model.stop_reason_ == "callback" and seen[-1] == 10
    assert fit(PLSA(K, random_state=0, tol=1e-4), cut(data())).converged_
    with pytest.raises(ZeroDivisionError):
        fit(PLSA(K, random_state=0, callback=lambda it, objective: 1 / 0), cut(data()))


def command():
    plca = os.environ.get("PLCA") or shutil.which("plca")
    if plca is None:
        pytest.skip("the command is not here")
    return plca


def test_one_part_of_a_folder_is_opened(tmp_path):
    np.save(tmp_path / "v.npy", data().T)
    subprocess.run([command(), "shard", tmp_path / "v.npy", "-o", tmp_path / "cut", "--shards", "3", "--json"], check=True)
    with pytest.raises(ValueError, match="missing is 'nan': the shards of `plca shard` have no hidden cells"):
        fit(PLSA(2, missing="nan"), tmp_path / "cut")
    sources, along = sourced(tmp_path / "cut")
    assert (len(sources), along) == (3, 1)
    # The others are not looked at.
    (tmp_path / "cut" / "shard-00001.npy").unlink()
    assert load(sources[0], None, True).digest != load(sources[2], None, True).digest
    with pytest.raises(OSError, match="shard-00001.npy"):
        load(sources[1], None, True)


def test_a_folder_of_the_command(tmp_path):
    plca = command()
    X = data()
    np.save(tmp_path / "v.npy", X.T)
    subprocess.run([plca, "shard", tmp_path / "v.npy", "-o", tmp_path / "cut", "--shards", "9", "--json"], check=True)
    for name, model in models().items():
        if name == "penalised":
            continue
        kind = {"plca by bayes": "plca-vb"}.get(name, name)
        out = tmp_path / f"{name}.npz"
        arguments = ["-k", str(K), "--seed", "5", "--max-iter", "23", "--tol", "0", "--quiet"]
        for block, prior in (model.prior or {}).items():
            arguments += ["--prior", f"{block}={prior}"]
        subprocess.run([plca, "fit", kind, tmp_path / "cut", "-o", out, *arguments], check=True)
        model = fit(model, tmp_path / "cut")
        blocks, _ = _core.read_model(out)
        if name in ("lda", "plca by bayes"):
            mine, theirs = {"lda": ("basis_shape",) * 2, "plca by bayes": ("factor_1_shape", "factor_0_shape")}[name]
            mine, theirs = model._blocks[mine], blocks[theirs]
        else:
            mine = model.components_ if name != "plca" else model.factors_[1].T
            theirs = blocks[{"plsa": "basis", "nmf": "w", "plca": "factor_0"}[name]].T
        assert np.ascontiguousarray(mine).tobytes() == np.ascontiguousarray(theirs).tobytes()


def test_a_prior_follows_its_factor():
    """The samples are the first factor of the estimator, and the last of the model of shards."""
    priors = {"weights": "dirichlet:0.3", "factor_0": "dirichlet:0.5", "factor_1": "dirichlet:2"}
    turned = {**priors, "factor_0": priors["factor_1"], "factor_1": priors["factor_0"]}
    settings = {"method": "vb", "random_state": 5, "max_iter": 30, "tol": 0}
    whole = PLCA(K, prior=turned, solver="em", **settings).fit(data().T)
    sharded = fit(PLCA(K, prior=priors, **settings), cut(data()))
    assert sharded.objective_ == pytest.approx(whole.objective_, rel=1e-12)
    other = fit(PLCA(K, prior=turned, **settings), cut(data()))
    assert abs(other.objective_ - whole.objective_) > 1.0


def with_dask():
    return pytest.importorskip("distributed", reason="Dask is not here")


def with_mpi():
    mpirun = shutil.which("mpirun")
    # Its module asks for a library of MPI.
    if mpirun is None or subprocess.run([sys.executable, "-c", "from mpi4py import MPI"], capture_output=True).returncode:
        pytest.skip("Open MPI or mpi4py is not here")
    return mpirun


@pytest.mark.parametrize("workers", WORKERS)
def test_dask_has_the_bits_of_one_process(workers):
    distributed = with_dask()
    from plcakit.dask import fit as on_dask

    shards = cut(data())
    cluster = distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        for name, model in every(max_iter=9).items():
            one = fit(every(max_iter=9)[name], shards)
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
        timers, seen = [], []

        def kill(iteration, objective):
            seen.append(iteration)
            if iteration == 3 + turn and not timers:
                pids = sorted(client.run(os.getpid).values())
                assert len(pids) == 2
                # While the tasks of the next iterations run.
                timers.append(threading.Timer(0.02 * turn, os.kill, (pids[turn % 2], signal.SIGKILL)))
                timers[0].start()

        folder = tmp_path / "state" if shared else None
        model = models(callback=kill, check_every=1)["nmf"]
        many = on_dask(model, shards, client=client, folder=folder, save_every=4)
        timers[0].join()
    # It went on after the kill.
    assert bits(many) == bits(one) and seen[-1] == one.n_iter_ - 1 > 3 + turn
    assert not shared or not list(folder.iterdir())


def test_dask_leaves_nothing_in_its_folder(tmp_path, monkeypatch):
    distributed = with_dask()
    from plcakit.dask import fit as on_dask

    monkeypatch.chdir(tmp_path)
    folder, seen = tmp_path / "state", []

    def end(iteration, objective):
        seen.append(len(list(folder.rglob("*-0"))))
        # As a worker that was lost while it wrote.
        for part in folder.iterdir():
            (part / "3-0.0123.part").touch()
        if iteration == 9:
            raise ZeroDivisionError

    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        # Workers have a folder of their own.
        (tmp_path / "else").mkdir()
        client.run(os.chdir, tmp_path / "else")
        model = models(callback=end, check_every=1)["nmf"]
        with pytest.raises(ZeroDivisionError):
            folder.mkdir()
            on_dask(model, cut(data()), client=client, folder="state", save_every=2)
    assert max(seen) > 0 and not list(folder.iterdir()) and not list((tmp_path / "else").iterdir())


def test_a_cluster_without_workers_ends_the_fit():
    distributed = with_dask()
    from plcakit.dask import fit as on_dask

    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        model = PLSA(K, random_state=5, callback=lambda iteration, objective: cluster.scale(0))
        with pytest.raises(RuntimeError, match="the cluster has had no worker for 0.5 s"):
            on_dask(model, cut(data()), client=client, timeout=0.5)


def test_a_cluster_is_idle_when_nothing_was_done_between_two_looks(monkeypatch):
    with_dask()
    from types import SimpleNamespace

    from plcakit import dask

    def gathered(looks):
        """What is asked of a cluster that shows at each look how many tasks run and how many are done."""
        looks, seen = iter(looks), []

        def processing():
            seen.append(next(looks))
            return {"worker": ["task"] * seen[-1][0]}

        def late(*arguments, **settings):
            raise TimeoutError

        futures = [SimpleNamespace(status="pending", done=lambda n=n: bool(seen) and n < seen[-1][1]) for n in range(4)]
        engine = SimpleNamespace(timeout=0.5, client=SimpleNamespace(processing=processing, sync=late, gather=print))
        with pytest.raises(OSError, match="no worker has done anything for 1 s"):
            dask._Dask._gathered(engine, futures)
        return len(seen)

    monkeypatch.setattr(dask, "_distributed", lambda: SimpleNamespace(wait=lambda *arguments, **settings: None))
    assert gathered([(0, 0), (0, 0)]) == 2
    # Busy between two looks, or something done meanwhile.
    assert gathered([(0, 0), (1, 0), (0, 0), (0, 0)]) == 4
    assert gathered([(0, 0), (0, 1), (0, 2), (0, 2)]) == 4


def test_an_iteration_may_take_longer_than_the_timeout():
    distributed = with_dask()
    from plcakit.dask import fit as on_dask

    def slow(X):
        time.sleep(3.0)
        return X

    dask = pytest.importorskip("dask")
    shards = [dask.delayed(slow)(X) for X in cut(data(), 2)]
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        model = on_dask(models()["nmf"], shards, client=client, timeout=1.0)
    assert bits(model) == bits(fit(models()["nmf"], cut(data(), 2)))


RANKS = textwrap.dedent(
    """
    import sys
    import numpy as np
    sys.path.insert(0, sys.argv[1])
    from test_shards import bits, cut, data, every
    from plcakit.mpi import fit
    import pickle
    found = {name: bits(fit(model, cut(data()))) for name, model in every().items()}
    from mpi4py import MPI
    found = MPI.COMM_WORLD.gather(found)
    if MPI.COMM_WORLD.rank == 0:
        assert all(one == found[0] for one in found)
        open(sys.argv[2], "wb").write(pickle.dumps(found[0]))
    """
)


@pytest.mark.parametrize("ranks", WORKERS)
def test_mpi_has_the_bits_of_one_process(tmp_path, ranks):
    import pickle

    mpirun = with_mpi()
    command = [mpirun, "--oversubscribe", "--allow-run-as-root", "-n", str(ranks), sys.executable, "-c", RANKS]
    out = tmp_path / "found"
    subprocess.run([*command, str(Path(__file__).parent), str(out)], check=True, timeout=300)
    one = {name: bits(fit(model, cut(data()))) for name, model in every().items()}
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
    from plcakit import mpi
    whole, told = mpi._Carrier.broadcast, []
    def until(self, own):
        told.append(own)
        if len(told) == at and self.rank == self.count - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(self, own)
    mpi._Carrier.broadcast = until
    model = fit(models(check_every=1)["plca"], cut(data()), checkpoint=sys.argv[3], save_every=4)
    if MPI.COMM_WORLD.rank == 0:
        open(sys.argv[2], "wb").write(pickle.dumps((bits(model), model.trace_)))
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

    def iterations():
        kept = (tmp_path / "state").glob("samples-00000-*")
        return [int(path.name.split("-")[2]) for path in kept]

    # Each is killed in the middle of a fit, after states were saved.
    assert run(3, 20 + turn) != 0 and not out.exists()
    first = iterations()
    assert run(2, 20) != 0 and not out.exists()
    second = iterations()
    assert 0 < max(first) < max(second) < 23
    # As a run that was killed while it wrote.
    left = tmp_path / "state" / "samples-00003-1"
    left.touch()
    assert run(4, -1) == 0 and not left.exists()
    found, trace = pickle.loads(out.read_bytes())
    model = fit(models(check_every=1)["plca"], cut(data()))
    one = bits(model)
    assert found[:3] == one[:3] and found[4] == one[4]
    # The trace begins where the last run did.
    begun = trace["iteration"][0]
    assert begun in second
    np.testing.assert_array_equal(trace, model.trace_[begun:])
    # One state: a file for every shard, and the checkpoint.
    assert len(list((tmp_path / "state").iterdir())) == SHARDS + 1


TOLD = textwrap.dedent(
    """
    import sys
    import numpy as np
    sys.path.insert(0, sys.argv[1])
    from test_shards import K, cut, data
    from plcakit import PLSA
    from plcakit.mpi import fit
    from mpi4py import MPI
    comm, folder = MPI.COMM_WORLD, sys.argv[2]

    def said(of, **settings):
        settings = {"random_state": 5, "max_iter": 23, "tol": 0, "n_jobs": 1, **settings}
        try:
            of(PLSA(K, **settings))
        except Exception as error:
            return comm.gather(f"{type(error).__name__}: {error}")
        return comm.gather(None)

    def show(name, found):
        if comm.rank == 0:
            print(name, "|".join(map(str, found)), sep="=")

    # A folder that only the first rank sees.
    show("folder", said(lambda model: fit(model, folder if comm.rank == 0 else folder + "-not")))
    bad = cut(data())
    bad[-1][0, 3] = np.nan
    show("cell", said(lambda model: fit(model, bad)))
    # A callback is called on the first rank alone, and ends all of them.
    called = []
    def end(iteration, objective):
        called.append(iteration)
        return iteration >= 3
    ended = []
    show("callback", said(lambda model: ended.append(fit(model, cut(data())).n_iter_), callback=end, check_every=1, verbose=2))
    found = comm.gather((ended, len(called)))
    show("ended", found or [])
    def fail(iteration, objective):
        return 1 / 0
    show("failed", said(lambda model: fit(model, cut(data())), callback=fail))
    # Checkpoints.
    state = folder + "/state"
    X = data()
    def at(**more):
        return lambda model: fit(model, more.pop("shards", cut(X)), checkpoint=more.pop("checkpoint", state), save_every=4)
    show("first", said(at()))
    show("again", said(at()))
    other = data(1)
    show("data", said(at(shards=[*cut(X)[:-1], cut(other)[-1]])))
    show("order", said(at(shards=cut(X)[:-2] + cut(X)[:-3:-1])))
    show("number", said(at(shards=cut(X, 8))))
    show("seed", said(at(), random_state=6))
    show("tol", said(at(), tol=1e-3))
    show("fewer", said(at(), max_iter=9))
    show("more", said(at(), max_iter=29))
    if comm.rank == 0:
        import os
        # No file can be renamed to it.
        os.makedirs(folder + "/full/checkpoint")
        os.mkdir(folder + "/old")
        with open(folder + "/old/checkpoint", "wb") as file:
            file.write(b"plcakit state 1\\n" + b"{}" * 99)
    show("full", said(at(checkpoint=folder + "/full")))
    show("old", said(at(checkpoint=folder + "/old")))
    if comm.rank == 0:
        show("left", sorted(os.listdir(folder + "/full")))
    """
)


def test_all_ranks_hear_of_an_error(tmp_path):
    mpirun = with_mpi()
    np.save(tmp_path / "a.npy", data()[:40])
    np.save(tmp_path / "b.npy", data()[40:])
    command = [mpirun, "--oversubscribe", "--allow-run-as-root", "-n", "2", sys.executable, "-c", TOLD]
    run = subprocess.run([*command, str(Path(__file__).parent), str(tmp_path)], timeout=300, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    lines = [line.partition("=") for line in run.stdout.splitlines()]
    found = {name: text.split("|") for name, _, text in lines if text}
    assert "rank 1 of MPI failed, FileNotFoundError" in found["folder"][0]
    assert found["folder"][1].startswith("FileNotFoundError")
    assert "shard 15: entry [0, 3] is nan" in found["cell"][0] and "shard 15" in found["cell"][1]
    assert found["callback"] == ["None", "None"] and found["ended"] == ["([4], 4)", "([4], 0)"]
    # Verbose on the first rank alone.
    assert sum("iteration 2," in line for line in run.stdout.splitlines()) == 1
    assert found["failed"][0].startswith("ZeroDivisionError") and "ZeroDivisionError" in found["failed"][1]
    assert found["first"] == found["again"] == found["more"] == ["None", "None"]
    for name, what in {
        "data": "differs in the data of shard 15:",
        "order": "differs in the order of the shards:",
        "number": "the number of shards, 16 and 8",
        "seed": "differs in random_state:",
        "tol": "differs in tol:",
        "fewer": "iteration 20, beyond max_iter=9",
        "full": "full/checkpoint",
        "old": "old/checkpoint is not a checkpoint of this version",
    }.items():
        assert all(what in text for text in found[name]), (name, found[name])
    assert found["left"] == ["checkpoint"]


@pytest.mark.parametrize("module, package", [("plcakit.dask", "dask"), ("plcakit.mpi", "mpi4py")])
def test_what_is_missing_is_said_in_one_line(module, package):
    code = f"import sys; sys.modules[{package!r}] = None\nimport {module} as m\nm.fit(None, [1])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = found.stderr.strip().splitlines()[-1]
    assert found.returncode == 1 and last.startswith("ImportError: plcakit.") and "pip install" in last


def test_traffic_does_not_depend_on_the_samples():
    def engine(times):
        shards = [load(X, None, False) for X in cut(np.tile(data(), (times, 1)))]
        return Ranks(shards, 0, len(shards))

    few, many = engine(1), engine(3)
    from plcakit._shards import fit as run

    of = [run(PLSA(K, random_state=0, max_iter=3, tol=0), engine).traffic_ for engine in (few, many)]
    for way in ("up", "down"):
        sizes = [traffic[way] for traffic in of]
        assert abs(sizes[0] - sizes[1]) < 16
        # Of an iteration: the shared block, and little besides.
        assert 0 <= sizes[0] - 8 * K * 31 < 200
    # Not of the whole fit, nor of all samples.
    longer = fit(PLSA(K, random_state=0, max_iter=30, tol=0), cut(data())).traffic_
    assert abs(longer["up"] - of[0]["up"]) < 16 and longer["passes"] > 30 - 1


def test_a_pass_without_counts_sends_no_samples():
    shard = load(data(), None, False)
    settings = {"model": "plsa", "components": 1, "options": PLSA(K)._options(), "threads": 1}
    found, _, single = surveyed(settings, [shard], 0, 1)
    sheet = {**settings, "components": K, "single": single}

    class Star:
        """As an engine of workers, of which there is one."""

        def begin(self, shared):
            self.locals = _core.shard_begin(sheet, [shard], [(0, 1, 0)], shared, 5)

        def __call__(self, shared, counts, value):
            partial, after = _core.shard_pass(sheet, [shard], self.locals, shared, counts, value)
            assert len(after) == (1 if counts else 0)
            self.locals = after or self.locals
            return [partial]

        def finish(self, shared):
            return _core.shard_finish(sheet, [shard], self.locals, shared)

    course = {"seed": 5, "solver": "em", "stop": {"max_iter": 9, "tol": 0.0}, "likelihood": True}
    course.update({"watch": None, "kept": None})
    result = _core.shard_fit(sheet, _core.shard_known([found])[0], Star(), course)
    one = fit(PLSA(K, random_state=5, max_iter=9, tol=0), [data()])
    assert result["objective"] == one.objective_ and (result["arrays"]["basis"] == one._blocks["basis"]).all()
