"""Parts of a sound by models that were fitted either way round, here or by the command."""

import numpy as np
import pytest

import plcakit
from plcakit import NMF, PLCA, PLSA, PNTF, ShiftInvariantPLCA, ShiftInvariantSkellam, TransformInvariantPLCA
from plcakit.sound import separate

SPECTRA = np.array([[9.0, 1, 0, 3, 0, 0, 0], [0, 0, 5, 0, 0, 2, 6]])


@pytest.fixture
def sounds():
    """Two sounds of the same spectra, of 12 and 20 frames, and the parts of the second."""
    draw = np.random.default_rng(0)
    first, second = (draw.gamma(0.5, size=(2, n)) for n in (12, 20))
    # Either is alone for a while, so that the spectra can be told apart.
    first[0, :4] = first[1, 4:8] = 0
    parts = SPECTRA[:, :, np.newaxis] * second[:, np.newaxis, :]
    return SPECTRA.T @ first, parts.sum(axis=0), parts


def error(found, parts):
    """How far the parts found, in whatever order, are from those that there are."""
    assert found.shape == parts.shape
    return min(np.abs(order - parts).sum() for order in (found, found[::-1])) / np.abs(parts).sum()


MODELS = {
    "nmf-kl": NMF(2, n_init=5, random_state=0),
    "ntf-l2": NMF(2, beta_loss="frobenius", n_init=5, tol=1e-12, max_iter=3000, random_state=0),
    "plca": PLCA(2, n_init=5, random_state=0),
    "plca-vb": PLCA(2, method="vb", prior={"factor_1": "dirichlet:0.1", "factor_0": "dirichlet:0.1"}, n_init=5, random_state=0),
    "pntf": PNTF(2, n_init=5, tol=1e-12, max_iter=3000, random_state=0),
}


@pytest.mark.filterwarnings("ignore:.*made all")
@pytest.mark.parametrize("name", MODELS)
def test_frames_are_samples_or_features(sounds, name):
    trained, S, parts = sounds
    for data in (trained.T, trained):
        found = separate(S * 1j, MODELS[name].fit(data))
        np.testing.assert_allclose(found.sum(axis=0), S * 1j)
        assert error(found, parts * 1j) < 0.02


@pytest.mark.parametrize("line", ["nmf-kl", "ntf-l2", "plca", "plsa", "pntf", "siplca --kernel 7x1"])
def test_models_of_the_command(plca, tmp_path, sounds, line):
    trained, S, parts = sounds
    np.save(tmp_path / "S.npy", trained)
    name, *options = line.split()
    plca("fit", name, "S.npy", *options, *"--rank 2 --restarts 5 --tol 1e-12 --max-iter 3000 --seed 1 --output m.npz --quiet".split(), cwd=tmp_path)
    found = separate(S, plcakit.load(tmp_path / "m.npz"))
    np.testing.assert_allclose(found.sum(axis=0), S)
    assert error(found, parts) < 0.02


def test_shifted_kernels():
    draw = np.random.default_rng(1)
    S = draw.gamma(1.0, size=(9, 20))
    for support in ("valid", "same", "full"):
        how = {"kernel": (9, 3), "support": ("valid", support), "transform_tol": 1e-9, "max_iter": 4000, "tol": 1e-11, "random_state": 0}
        model = ShiftInvariantPLCA(2, **how).fit(S)
        own = np.stack([model.component(z) for z in range(2)])
        # What explains the data of the fit is what the fit found.
        assert error(separate(S, model), own / own.sum(axis=0) * S) < 0.02
        assert separate(np.tile(S, 2), model).shape == (2, 9, 40)
    turned = ShiftInvariantPLCA(2, **{**how, "kernel": (3, 9), "support": "valid"}).fit(S.T)
    upright = ShiftInvariantPLCA(2, **{**how, "support": "valid"}).fit(S)
    assert separate(S, turned).shape == separate(S, upright).shape
    own = np.stack([turned.component(z).T for z in range(2)])
    assert error(separate(S, turned), own / own.sum(axis=0) * S) < 0.02


def test_silence_has_silent_parts(sounds):
    trained, S, _ = sounds
    for model in (NMF(2, random_state=0).fit(trained), ShiftInvariantPLCA(2, kernel=(7, 2), random_state=0).fit(trained)):
        assert not separate(0 * S, model).any()


def test_sizes_that_do_not_tell(sounds):
    trained, S, _ = sounds
    square = trained[:, :7]
    for data, along in ((square.T, 0), (square, 1)):
        model = NMF(2, random_state=0).fit(data)
        with pytest.raises(ValueError, match=r"along=0 if that was abs\(S\).T, along=1 if it was abs\(S\)"):
            separate(S, model)
        np.testing.assert_allclose(separate(S, model, along=along).sum(axis=0), S)
    # Mixtures are of samples alone, and kernels lie in the spectrogram as it is.
    assert separate(S, PLSA(2, random_state=0).fit(square)).shape == (2, 7, 20)
    assert separate(S, ShiftInvariantPLCA(2, kernel=(7, 2), random_state=0).fit(square)).shape == (2, 7, 20)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NMF(2), r"S has 7 frequencies, the model was fitted to data of the shape \(5, 6\): fit it to abs\(S\).T"),
        (PLSA(2), r"S has 7 frequencies, the model has components of the shape \(6,\): fit it to abs\(S\).T"),
        (ShiftInvariantPLCA(2, kernel=(2, 2)), r"the model was fitted to data of the shape \(5, 6\): fit it to abs\(S\)"),
        (ShiftInvariantSkellam(2, kernel=(2, 2)), "expected NMF, PLSA, PLCA, PNTF or ShiftInvariantPLCA"),
        (TransformInvariantPLCA(2, kernel=(2, 2)), "expected NMF, PLSA, PLCA, PNTF or ShiftInvariantPLCA"),
    ],
    ids=str,
)
def test_models_of_other_data_are_named(sounds, model, message):
    model.set_params(max_iter=2, tol=0).fit(np.random.default_rng(0).random((5, 6)) + 1)
    with pytest.raises((ValueError, TypeError), match=message):
        separate(sounds[1], model)
    with pytest.raises(ValueError, match="along is 2"):
        separate(sounds[1], model, along=2)
