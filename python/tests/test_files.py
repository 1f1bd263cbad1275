"""Model files: what was set comes back, and what is missing is named."""

import json
import zipfile

import numpy as np
import pytest

import plcakit
from plcakit import NMF, PLCA, PLSA, PNTF, ShiftInvariantPLCA, ShiftInvariantSkellam, SkellamSNMF
from plcakit.priors import CrossEntropy, Dirichlet, Entropic


MODELS = {
    "nmf-kl": NMF(2),
    "ntf-l2": NMF(2, beta_loss="frobenius"),
    "plsa": PLSA(2),
    "plca": PLCA(2),
    "pntf": PNTF(2),
    "skellam": SkellamSNMF(2),
    "skellam-vb": SkellamSNMF(2, method="vb"),
    "siplca": ShiftInvariantPLCA(2, kernel=(2, 2)),
}
ENDINGS = ["npz", "safetensors"]


@pytest.fixture
def X():
    return np.random.default_rng(0).poisson(3.0, (20, 12)) + 0.5


def rewritten(path, change, drop=()):
    """The file with other metadata, and without some arrays."""
    other = path.with_name(f"other-{path.name}")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            if name == "model.json":
                metadata = json.loads(old.read(name))
                change(metadata)
                new.writestr(name, json.dumps(metadata))
            elif name.removesuffix(".npy") not in drop:
                new.writestr(name, old.read(name))
    return other


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("make", [PLSA, PLCA])
def test_priors_of_arrays_come_back(tmp_path, X, make, ending, dtype):
    # No number of single precision, and of a shape that broadcasts.
    basis, mixture = ("basis", "mixture") if make is PLSA else ("factor_1", "factor_0")
    prior = {basis: Dirichlet(1 + np.linspace(0.1, 1, 12)[:, np.newaxis]), mixture: Entropic(0.5)}
    model = make(2, prior=prior, random_state=0).fit(X.astype(dtype))
    path = tmp_path / f"m.{ending}"
    model.save(path)
    again = plcakit.load(path)
    assert again.prior[basis] == prior[basis] and again.prior[basis].alpha.dtype == np.float64
    assert again.prior[mixture] == str(prior[mixture])
    assert np.array_equal(again.transform(X), model.transform(X))
    assert np.array_equal(again.fit(X.astype(dtype)).components_, model.components_)
    # A second time, from what was loaded.
    again.save(path)
    assert plcakit.load(path).prior == again.prior


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_command_reads_files_with_priors_of_arrays(plca, tmp_path, X, ending):
    prior = {"basis": Dirichlet(1 + np.linspace(0.1, 1, 12)[:, np.newaxis])}
    model = PLSA(2, prior=prior, random_state=3).fit(X)
    path, data, out = tmp_path / f"m.{ending}", tmp_path / "v.npy", tmp_path / "out.npz"
    model.save(path)
    np.save(data, X)
    plca("transform", path, data, "--output", out, "--quiet", "--tol", model.transform_tol)
    with np.load(out) as found:
        assert np.array_equal(found["mixture"].T, model.transform(X))
    plca("fit", "plsa", data, "--given", 0, "--init", path, "--max-iter", 1, "--tol", 0, "--output", out, "--quiet")
    # The same prior by the command, from a file of its own, makes the same model.
    np.savez(tmp_path / "priors.npz", **{"basis.dirichlet": prior["basis"].alpha})
    fit = ["fit", "plsa", data, "--given", 0, "--rank", 2, "--seed", 3, "--priors", tmp_path / "priors.npz"]
    plca(*fit, "--output", out, "--quiet")
    with np.load(out) as theirs:
        assert np.array_equal(theirs["basis"], model._blocks["basis"])


def test_other_priors_come_back_as_their_texts(tmp_path, X):
    prior = {"basis": CrossEntropy([[0], [1]], between=0.1), "mixture": Dirichlet(1.5)}
    PLSA(2, prior=prior, solver="em", random_state=0).fit(X).save(tmp_path / "m.npz")
    assert plcakit.load(tmp_path / "m.npz").prior == {name: str(law) for name, law in prior.items()}


@pytest.mark.parametrize("sparsity", [["factor_9=1"], ["weights"], ["weights=x"], ["weights=nan"], [3], 7])
def test_a_sparsity_that_no_fit_has_is_refused(tmp_path, X, sparsity):
    path = tmp_path / "m.npz"
    PNTF(2, sparsity={"weights": 0.01}, random_state=0).fit(X).save(path)
    other = rewritten(path, lambda metadata: metadata["settings"].update(sparsity=sparsity))
    with pytest.raises(ValueError, match="other-m.npz: .*sparsity"):
        plcakit.load(other)


@pytest.mark.parametrize(
    "flags", [{"shape": [12, 2]}, {"bits": "ff"}, {"shape": [10**6, 10**6], "bits": "ff"}, {"shape": [-12, -2], "bits": "ffffff"}, {"shape": [12, 2], "bits": "fffffff0"}]
)
def test_flags_that_no_fit_has_are_refused(tmp_path, X, flags):
    path = tmp_path / "m.npz"
    basis = np.full((12, 2), 1 / 12)
    PLSA(2, freeze={"basis": basis > 1}, solver="em", random_state=0).fit(X, start={"basis": basis}).save(path)
    other = rewritten(path, lambda metadata: metadata["python"]["params"]["freeze"].update(basis=flags))
    with pytest.raises(ValueError, match="other-m.npz: 'freeze' of its parameters has"):
        plcakit.load(other)


@pytest.mark.parametrize("name", MODELS)
def test_what_a_file_lacks_is_named(tmp_path, X, name):
    path = tmp_path / "m.npz"
    model = MODELS[name].set_params(random_state=0, max_iter=20).fit(X)
    model.save(path)
    for change in (
        lambda metadata: metadata["data"].pop("shape"),
        lambda metadata: metadata.pop("data"),
        lambda metadata: metadata["data"].update(shape=None),
        lambda metadata: metadata["data"].update(shape=["a", 3]),
        lambda metadata: metadata.update(data=7),
    ):
        other = rewritten(path, change)
        with pytest.raises(ValueError, match="other-m.npz: 'data.shape' of its metadata is .*, expected the shape"):
            plcakit.load(other)
    for block in MODELS[name]._saved[name]:
        with pytest.raises(ValueError, match=f"other-m.npz: has no array '{block}', which the model {name} needs"):
            plcakit.load(rewritten(path, lambda _: None, drop=[block]))
    bare = rewritten(path, lambda metadata: [metadata.pop(key) for key in ("seed", "python", "iterations", "stop_reason", "objective")])
    assert np.array_equal(plcakit.load(bare).transform(X), model.transform(X))


def test_settings_that_the_engine_has_come_back(tmp_path, X):
    for model in (
        PLCA(2, temper=0.9, temper_prior=True, check_every=3),
        ShiftInvariantPLCA(2, kernel=(2, 2), impulse_power=1.2),
        ShiftInvariantPLCA(2, kernel=(2, 2), anneal=(0.5, 200)),
        ShiftInvariantSkellam(2, kernel=(2, 2), anneal=(0.5, 200)),
        SkellamSNMF(2, prior={"atoms": "dirichlet:0.9"}, floor=1e-6),
    ):
        plain = {"temper_prior": False, "impulse_power": 1.0, "anneal": None, "floor": 0.0}
        model.set_params(random_state=0, solver="em", max_iter=30, tol=0).fit(X)
        model.save(tmp_path / "m.npz")
        again = plcakit.load(tmp_path / "m.npz")
        for name, value in model.get_params().items():
            if name in plain or name == "check_every":
                assert getattr(again, name) == value
            if name in plain and value != plain[name]:
                # It does something.
                other = type(model)(**{**model.get_params(), name: plain[name]}).fit(X)
                assert not any(np.array_equal(other._blocks[b], block) for b, block in model._blocks.items() if block.size > 2)


@pytest.mark.parametrize(
    ("name", "model", "options", "blocks"),
    [
        ("plca", PLCA(2, temper=0.9, temper_prior=True), ["--temper", 0.9, "--temper-prior"], ["weights", "factor_0"]),
        ("siplca", ShiftInvariantPLCA(2, kernel=(2, 2), impulse_power=1.2), ["--kernel", "2x2", "--impulse-power", 1.2], ["impulses"]),
        ("skellam", SkellamSNMF(2, prior={"atoms": "dirichlet:0.9"}, floor=1e-6), ["--prior", "atoms=dirichlet:0.9", "--floor", 1e-6],
         ["atoms"]),
    ],
)
def test_settings_that_the_engine_has_are_those_of_the_command(plca, tmp_path, X, name, model, options, blocks):
    X = X.T if name == "skellam" else X
    data, out = tmp_path / "v.npy", tmp_path / "out.npz"
    np.save(data, X)
    how = ["--rank", 2, "--seed", 5, "--solver", "em", "--max-iter", 40, "--tol", 0, "--check-every", 7]
    plca("fit", name, data, *how, *options, "--output", out, "--quiet")
    model.set_params(random_state=5, solver="em", max_iter=40, tol=0, check_every=7).fit(X.T if name == "skellam" else X)
    with np.load(out) as theirs:
        for block in blocks:
            assert np.array_equal(theirs[block], model._blocks[block])
    loaded = plcakit.load(out)
    for setting in ("temper", "temper_prior", "impulse_power", "floor", "check_every"):
        if hasattr(model, setting):
            assert getattr(loaded, setting) == getattr(model, setting), setting


def test_the_floor_is_of_em(X):
    with pytest.raises(ValueError, match="floor is 0.1, which method='vb' does not have"):
        SkellamSNMF(2, method="vb", floor=0.1).fit(X)


def test_packed_files_have_an_allowance(tmp_path, X):
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, basis=np.zeros((3000, 5000)))
    with pytest.raises(OSError, match=r"needs about 120000000 bytes.*: unpack_limit=120000000 allows it"):
        plcakit.load(path)
    # What is there is no model, which is said next.
    with pytest.raises(ValueError, match="holds the model None"):
        plcakit.load(path, unpack_limit=120_000_000)
    NMF(2, random_state=0).fit(X).save(tmp_path / "m.npz")
    assert plcakit.load(tmp_path / "m.npz", unpack_limit=1 << 20).n_components == 2
