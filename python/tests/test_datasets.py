"""The examples are what they say, and the models find what they were made of."""

import numpy as np
import pytest

from plcakit import NMF, PLSA, PNTF, ShiftInvariantPLCA, SkellamSNMF, datasets
from plcakit.sound import separate


def matched(found, made):
    """The largest correlation of every made component with a found one, each taken once."""
    k = len(made)
    table = np.corrcoef(np.vstack([found, made]))[k:, :k]
    assert len(set(table.argmax(axis=1))) == k
    return table.max(axis=1)


@pytest.mark.parametrize("name", [name for name in datasets.__all__ if name.startswith("make_")])
def test_a_seed_gives_the_same_data(name):
    make = getattr(datasets, name)
    first, same, other = make(random_state=1), make(random_state=1), make(random_state=2)
    data = [made.counts.toarray() if name == "make_corpus" else made[0] for made in (first, same, other)]
    assert np.array_equal(data[0], data[1], equal_nan=True) and not np.array_equal(data[0], data[2], equal_nan=True)


def test_topics_of_the_corpus():
    corpus = datasets.make_corpus()
    assert list(corpus.words) == sorted(set(corpus.words)) and np.allclose(corpus.topics.sum(axis=1), 1)
    model = PLSA(4, random_state=0, n_init=5).fit(corpus.counts)
    assert matched(model.components_, corpus.topics).min() > 0.97
    assert matched(model.transform(corpus.counts).T, corpus.mixtures.T).min() > 0.97


def test_notes_are_separated():
    notes = datasets.make_notes()
    assert np.abs(notes.sound).max() <= 1 and notes.spectrogram.shape == (len(notes.frequencies), len(notes.times))
    model = NMF(3, random_state=0, n_init=5).fit(notes.spectrogram.T)
    pitches = notes.frequencies[model.components_.argmax(axis=1)]
    np.testing.assert_allclose(np.sort(pitches), notes.pitches, atol=4)
    parts = separate(notes.spectrogram * 1j, model)
    np.testing.assert_allclose(parts.sum(axis=0), notes.spectrogram * 1j, atol=1e-9)
    # The same parts the other way round.
    turned = separate(notes.spectrogram.T, model).transpose(0, 2, 1)
    assert np.abs(turned - parts.imag).sum() < 0.02 * notes.spectrogram.sum()
    with pytest.raises(ValueError, match="S has 512 frequencies"):
        separate(notes.spectrogram[1:], model)


def test_missing_cells_are_filled():
    signed = datasets.make_signed()
    model = SkellamSNMF(3, missing="nan", random_state=0).fit(signed.X)
    filled = model.inverse_transform(model.transform(signed.X))
    hidden = np.isnan(signed.X)
    assert np.sqrt(np.mean((filled - signed.complete)[hidden] ** 2)) < 0.05


def test_shapes_are_found():
    shapes = datasets.make_shapes()
    np.testing.assert_allclose(shapes.image.sum(), shapes.impulses.sum())
    model = ShiftInvariantPLCA(2, kernel=(5, 5), prior={"impulses": "entropic:.2r"}, random_state=0, n_init=20)
    model.fit(shapes.image)
    assert matched(model.kernels_.reshape(2, -1), shapes.kernels.reshape(2, -1)).min() > 0.99
    assert matched(model.impulses_.reshape(2, -1), shapes.impulses.reshape(2, -1)).min() > 0.99
    with pytest.raises(ValueError, match="room for 4 shapes"):
        datasets.make_shapes(12, 12)


def test_mixtures_are_found():
    made = datasets.make_mixtures()
    model = PNTF(3, random_state=0, n_init=5).fit(made.X)
    assert matched(model.components_, made.spectra).min() > 0.99
    assert matched(model.transform(made.X).T, made.mixtures.T).min() > 0.99
