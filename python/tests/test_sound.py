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


def test_several_models_are_sources(sounds):
    trained, S, parts = sounds
    # Each alone: the spectra are known but for what the other has.
    draw = np.random.default_rng(1)
    alone = [np.outer(spectrum, draw.gamma(0.5, size=15)) for spectrum in SPECTRA]
    models = [NMF(2, random_state=0).fit(alone[0].T), PLCA(1, random_state=0).fit(alone[1])]
    for temper in (0.9, 1.0):
        found = separate(S * 1j, models, temper=temper)
        np.testing.assert_allclose(found.sum(axis=0), S * 1j)
        assert np.abs(found - parts * 1j).sum() < 1e-3 * np.abs(S).sum()
    # A frequency that no model has is shared evenly, and so is silence.
    more = S.copy()
    more[2] = 1.0
    only = separate(more, [models[0], models[0]], temper=1.0)
    np.testing.assert_allclose(only[0, 2], 0.5)
    assert separate(0 * S, models).shape == (2, *S.shape)
    with pytest.raises(ValueError, match="empty list"):
        separate(S, [])
    for wrong in (0, 1.5, np.nan):
        with pytest.raises(ValueError, match="temper"):
            separate(S, models, temper=wrong)
    with pytest.raises(TypeError, match="in a list"):
        separate(S, [ShiftInvariantPLCA(2, kernel=(7, 1), random_state=0, max_iter=2, tol=0).fit(S), models[0]])
    with pytest.raises(ValueError, match="frequencies"):
        separate(S[:-1], models)


@pytest.mark.filterwarnings("ignore:.*made all")
def test_broader_spectra_are_those_of_the_command(plca, tmp_path):
    from scipy.io import wavfile
    from scipy.signal import istft, stft

    draw = np.random.default_rng(2)
    times = np.arange(8000)

    def play(pitches):
        """Notes with five harmonics, which those of the other overlap, a vibrato that is wider in the second half, and noise."""
        sound = 0.02 * draw.standard_normal(8000)
        for pitch in pitches:
            phase = pitch * times + np.where(times < 4000, 1, 3) * np.sin(2 * np.pi * 5 / 8000 * times + draw.uniform(0, 6))
            sound += draw.gamma(0.5, size=16).repeat(500) * sum(np.sin(n * phase) / n for n in range(1, 6))
        return sound

    one, two = play([0.2, 0.25, 0.31]), play([0.22, 0.28, 0.36])
    files = {"one": one[:4000], "two": two[:4000], "mix": (one + two)[4000:]}
    for name, samples in files.items():
        wavfile.write(tmp_path / f"{name}.wav", 8000, samples)
    models = []
    for name in ("one", "two"):
        plca("spectrogram", f"{name}.wav", "--frame", "256", "--output", f"{name}_S.npz", cwd=tmp_path)
        plca("fit", "nmf-kl", f"{name}_S.npz", "--rank", "20", "--max-iter", "100", "--output", f"{name}.npz", "--quiet", cwd=tmp_path)
        models.append(plcakit.load(tmp_path / f"{name}.npz"))
    S = stft(files["mix"], 8000, nperseg=256, noverlap=192)[2]
    sounds = []
    # By default spectra are made broader.
    for temper in ({}, {"temper": 1}):
        options = [text for name, power in temper.items() for text in (f"--{name}", power)]
        plca("separate", "one.npz", "two.npz", "mix.wav", *options, "--output", "parts", "--quiet", cwd=tmp_path)
        for name, part in zip(("one", "two"), separate(S, models, along=1, **temper)):
            theirs = wavfile.read(tmp_path / "parts" / f"{name}.wav")[1]
            ours = istft(part, 8000, nperseg=256, noverlap=192)[1][: len(theirs)]
            sounds.append(ours[256:-256])
            assert np.linalg.norm(sounds[-1] - theirs[256:-256]) < 5e-3 * np.linalg.norm(theirs[256:-256])
    for broad, close in zip(sounds[:2], sounds[2:]):
        assert np.linalg.norm(broad - close) > 5e-2 * np.linalg.norm(broad)


def test_what_is_no_sound_is_refused(sounds):
    trained, S, _ = sounds
    model = NMF(2, random_state=0).fit(trained.T)
    hidden = np.zeros(S.shape, bool)
    hidden[1, 2] = True
    for one in (model, [model, model]):
        with pytest.raises(ValueError, match="masked cells"):
            separate(np.ma.masked_array(S, hidden), one)
        with pytest.raises(ValueError, match="negative values"):
            separate(20 * np.log10(S + 1e-3), one)
        # A mask that hides nothing.
        assert np.array_equal(separate(np.ma.masked_array(S, False), one), separate(S, one))
    with pytest.raises(ValueError, match="'h' has masked entries"):
        NMF(2, random_state=0).fit(trained.T, start={"h": np.ma.masked_array(SPECTRA + 1, SPECTRA == 9)})
