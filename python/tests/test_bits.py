"""The same bits as of the command, from the same seed."""

import json
import zipfile

import numpy as np
import pytest
from scipy import sparse

import plcakit
from plcakit import (
    NMF,
    PLCA,
    PLSA,
    PNTF,
    KMeans,
    SemiNMF,
    ShiftInvariantPLCA,
    ShiftInvariantSkellam,
    SkellamCP,
    SkellamSNMF,
    TransformInvariantPLCA,
)



def counts(shape=(40, 25), density=0.4, seed=0):
    draw = np.random.default_rng(seed)
    return draw.poisson(4.0, shape) * (draw.random(shape) < density).astype(float)


def fit_by_command(plca, folder, model, data, *options):
    path = folder / ("v.npz" if sparse.issparse(data) else "v.npy")
    sparse.save_npz(path, data) if sparse.issparse(data) else np.save(path, data)
    out = folder / "model.npz"
    plca("fit", model.split()[0], path, "--output", out, "--quiet", *options)
    return out


# Estimator, its parameters, the options of the command, the blocks, and whether the command has the samples in columns.
CASES = {
    "nmf-kl": (NMF, {}, [], ["w", "h"], False),
    "plsa": (PLSA, {}, ["--given", 0], ["basis", "mixture"], False),
    "plca": (PLCA, {}, [], ["weights", "factor_0", "factor_1"], False),
    "ntf-l2": (NMF, {"beta_loss": "frobenius"}, [], ["factor_0", "factor_1"], False),
    "pntf": (PNTF, {}, [], ["weights", "factor_0", "factor_1"], False),
    "pntf sparse": (
        PNTF,
        {"sparsity": {"factor_1": 1e-3, "weights": 1e-4}},
        ["--sparsity", "factor_1=1e-3", "--sparsity", "weights=1e-4"],
        ["weights", "factor_0", "factor_1"],
        False,
    ),
    "skellam": (SkellamSNMF, {}, [], ["atoms", "activations"], True),
    "skellam-vb": (SkellamSNMF, {"method": "vb"}, [], ["atoms_shape", "activations_shape", "activations_rate"], True),
    "lda": (PLSA, {"method": "vb"}, ["--samples", 0], ["basis_shape", "mixture_shape", "basis", "mixture"], False),
    "plsa-vb": (
        PLSA,
        {"method": "vb", "prior": {"basis": "dirichlet:0.2", "mixture": "dirichlet:1"}},
        ["--given", 0, "--prior", "basis=dirichlet:0.2"],
        ["basis_shape", "mixture_shape", "basis", "mixture"],
        False,
    ),
    "plca-vb": (PLCA, {"method": "vb"}, [], ["weights_shape", "factor_0_shape", "factor_1_shape", "factor_1"], False),
    "siplca": (ShiftInvariantPLCA, {"kernel": (3, 4)}, ["--kernel", "3x4"], ["weights", "kernels", "impulses"], False),
    "tiplca": (
        TransformInvariantPLCA,
        {"kernel": (3, 4), "rotations": 3, "scales": (1.0, 1.25), "positions": "full"},
        ["--kernel", "3x4", "--rotations", 3, "--scales", "1,1.25", "--positions", "full"],
        ["weights", "kernels", "impulses"],
        False,
    ),
    "siskellam": (ShiftInvariantSkellam, {"kernel": (3, 4)}, ["--kernel", "3x4"], ["atoms", "activations"], False),
    "siskellam-vb": (
        ShiftInvariantSkellam,
        {"kernel": (3, 4), "support": "full", "method": "vb"},
        ["--kernel", "3x4", "--domain", "full"],
        ["atoms_shape", "activations_shape", "activations_rate", "atoms"],
        False,
    ),
    "skellam-cp": (SkellamCP, {}, ["--signed-mode", 1], ["atoms", "weights", "factor_0"], False),
    "skellam-cp-vb": (
        SkellamCP,
        {"method": "vb", "scale_mode": 0},
        ["--signed-mode", 1, "--scale-mode", 0],
        ["atoms_shape", "factor_0_shape", "factor_0_rate"],
        False,
    ),
    "snmf-ding": (SemiNMF, {}, [], ["basis", "activations"], True),
    "kmeans": (KMeans, {"seeding": "random"}, ["--seeding", "random"], ["centres", "labels"], True),
}


def of_model(X, transposed):
    """The same data with the samples where the estimator has them."""
    return X.T if transposed else X


# Squared error has plain iterations alone.
PLAIN = ("ntf-l2", "snmf-ding", "kmeans")
RUNS = [(model, solver) for model in CASES for solver in ("auto", "em", "squarem") if not (model in PLAIN and solver == "squarem")]


@pytest.mark.parametrize(("model", "solver"), RUNS)
@pytest.mark.parametrize("form", ["C", "F", "csr"])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_bits_of_the_command(plca, tmp_path, model, solver, form, dtype, n_jobs):
    make, params, options, names, transposed = CASES[model]
    X = sparse.csr_matrix(counts()) if form == "csr" else np.asarray(counts(), order=form)
    how = ["--rank", 3, "--seed", 5, "--solver", solver, "--precision", dtype, "--max-iter", 200]
    out = fit_by_command(plca, tmp_path, model, X, *how, *options)
    X = X.astype({"f64": np.float64, "f32": np.float32}[dtype])
    if model not in PLAIN:
        params = {**params, "solver": solver}
    ours = make(3, random_state=5, max_iter=200, n_jobs=n_jobs, **params).fit(of_model(X, transposed))
    with np.load(out) as theirs:
        for name in names:
            assert theirs[name].dtype == ours._blocks[name].dtype
            assert np.array_equal(theirs[name], ours._blocks[name]), name


def test_starts_are_streams_of_the_seed(plca, tmp_path):
    X = counts()
    out = fit_by_command(plca, tmp_path, "nmf-kl", X, "--rank", 4, "--seed", 1, "--restarts", 3)
    ours = NMF(4, random_state=1, n_init=3).fit(X)
    with np.load(out) as theirs:
        assert np.array_equal(theirs["w"], ours._blocks["w"])


@pytest.mark.parametrize("model", CASES)
def test_each_side_reads_the_files_of_the_other(plca, tmp_path, model):
    make, params, options, names, transposed = CASES[model]
    X = counts()
    out = fit_by_command(plca, tmp_path, model, X, "--rank", 3, "--seed", 5, *options)
    X = of_model(X, transposed)
    ours = make(3, random_state=5, **params).fit(X)
    loaded = plcakit.load(out)
    saved = tmp_path / "ours.npz"
    ours.save(saved)
    again = plcakit.load(saved)
    names_of_objectives = [json.loads(zipfile.ZipFile(path).read("model.json"))["objective_name"] for path in (out, saved)]
    assert names_of_objectives[0] == names_of_objectives[1]
    assert type(again) is type(loaded) is make and again.get_params()["random_state"] == 5
    for other in (loaded, again):
        assert np.array_equal(other.reconstruct(), ours.reconstruct())
        assert other.get_params().get("sparsity") == params.get("sparsity")
        if hasattr(ours, "reconstruction_err_"):
            assert other.objective_ == ours.objective_
            assert np.isclose(other.reconstruction_err_, ours.reconstruction_err_, rtol=1e-9)
    model = model.split()[0]
    for other in (loaded, again):
        assert np.array_equal(other.transform(X), ours.transform(X))
    np.save(tmp_path / "v.npy", of_model(X, transposed))
    found = [tmp_path / f"{name}.npz" for name in ("by-theirs", "by-ours")]
    for path, to in zip((out, saved), found):
        along = ["--along", "0"] if model in ("nmf-kl", "ntf-l2", "plca", "plca-vb", "pntf") else []
        along += ["--each"] if model.startswith("skellam-cp") else []
        along += ["--tol", ours.transform_tol] if hasattr(ours, "transform_tol") else []
        plca("transform", path, tmp_path / "v.npy", "--output", to, "--quiet", *along)
    with np.load(found[0]) as a, np.load(found[1]) as b:
        for name in a.files:
            if name != "model.json":
                assert np.array_equal(a[name], b[name]), name
        name = {"nmf-kl": "w", "ntf-l2": "factor_0", "siplca": "impulses", "tiplca": "impulses", "plsa": "mixture", "plsa-vb": "mixture", "lda": "mixture", "pntf": "mixture"}
        name = name.get(model, "activations")
        if model == "skellam-cp":
            assert np.array_equal(a["weights"], ours.transform(X))
        elif model == "skellam-cp-vb":
            assert np.array_equal(a["factor_0"], ours.transform(X))
        elif model == "kmeans":
            assert np.array_equal(np.ravel(a["labels"]), ours.predict(X))
        elif not model.startswith("plca"):
            answer = a[name].T if name == "mixture" or model.startswith(("skellam", "snmf")) else a[name]
            assert np.array_equal(answer, ours.transform(X))


@pytest.mark.parametrize("make", [NMF, PLSA])
def test_a_sample_is_explained_whatever_is_beside_it(make):
    X = counts((60, 40))
    model = make(4, random_state=0, max_iter=30, tol=0).fit(X)
    W, gap = model.transform(X, return_gap=True)
    assert gap.max() <= model.transform_tol
    rows = [41, 7, 23]
    for some in (X[rows], sparse.csr_array(X[rows])):
        again, its_gap = model.transform(some, return_gap=True)
        assert np.array_equal(again, W[rows]) and np.array_equal(its_gap, gap[rows])


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


def test_settings_of_the_command_come_back(plca, tmp_path):
    X = counts()
    out = fit_by_command(plca, tmp_path, "siplca", X, "--rank", 2, "--kernel", "3x4", "--likelihood", "literal", "--domain", "same")
    assert plcakit.load(out).likelihood == "literal" and plcakit.load(out).support == ("same",)
    out = fit_by_command(plca, tmp_path, "plsa", X, "--rank", 2, "--temper", 0.8)
    assert plcakit.load(out).temper == 0.8
    for model in ("siplca", "siskellam"):
        out = fit_by_command(plca, tmp_path, model, X, "--rank", 2, "--kernel", "3x4", "--anneal", "0.7,9")
        assert plcakit.load(out).anneal == (0.7, 9.0)
