"""Small examples, made from a seed: each comes with its true parts, so that a fit can be compared with them.

Nothing is downloaded. The same seed gives the same data.

Examples
--------
>>> from plcakit.datasets import make_corpus
>>> corpus = make_corpus()
>>> corpus.counts.shape, str(corpus.words[0])
((120, 54), 'anchor')
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ._types import Array

__all__ = [
    "Corpus",
    "Mixtures",
    "Notes",
    "Shapes",
    "Signed",
    "make_corpus",
    "make_mixtures",
    "make_notes",
    "make_shapes",
    "make_signed",
]

#: The subjects of the corpus and their words, the most frequent first.
SUBJECTS = {
    "harbour": "ship sail harbour wind anchor tide captain rope deck wave island storm",
    "kitchen": "bread oven flour butter salt knife onion soup spoon recipe pepper cake",
    "garden": "soil seed rose spade leaf root water bee apple hedge pruning compost",
    "orchestra": "violin drum concert conductor rhythm melody trumpet choir score flute opera rehearsal",
}
#: Words of all subjects.
COMMON = "day people time house evening friend"


class Corpus(NamedTuple):
    """Counts of words in documents, as :func:`make_corpus` returns them.

    Attributes
    ----------
    counts : csr_array of shape (n_documents, n_words)
        How often every word is in every document.
    words : ndarray of str
        The words, sorted.
    subjects : ndarray of str
        The names of the topics.
    topics : ndarray of shape (n_topics, n_words)
        :math:`P(w \\mid z)`; rows sum to 1.
    mixtures : ndarray of shape (n_documents, n_topics)
        :math:`P(z \\mid d)`; rows sum to 1.
    """

    counts: Any
    words: Array
    subjects: Array
    topics: Array
    mixtures: Array


class Notes(NamedTuple):
    """A melody and its spectrogram, as :func:`make_notes` returns them.

    Attributes
    ----------
    spectrogram : ndarray of shape (n_frequencies, n_frames)
        Magnitudes, in the orientation of librosa: its transpose has the frames as samples.
    frequencies : ndarray of shape (n_frequencies,)
        In Hz.
    times : ndarray of shape (n_frames,)
        The middles of the frames, in seconds.
    pitches : ndarray of shape (n_notes,)
        The frequency of every note, in Hz.
    played : ndarray of bool of shape (n_notes, n_frames)
        When every note sounds.
    sound : ndarray of shape (n_samples,)
        The wave, within -1 and 1.
    rate : int
        Its samples per second.
    """

    spectrogram: Array
    frequencies: Array
    times: Array
    pitches: Array
    played: Array
    sound: Array
    rate: int


class Signed(NamedTuple):
    """A signed matrix with missing cells, as :func:`make_signed` returns it.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data; NaN where a cell is missing.
    complete : ndarray of shape (n_samples, n_features)
        The same without noise and without gaps.
    activations : ndarray of shape (n_samples, n_components)
        Non-negative.
    components : ndarray of shape (n_components, n_features)
        Of either sign.
    """

    X: Array
    complete: Array
    activations: Array
    components: Array


class Shapes(NamedTuple):
    """An image of shapes that are repeated, as :func:`make_shapes` returns it.

    Attributes
    ----------
    image : ndarray of shape (height, width)
        The image.
    kernels : ndarray of shape (2, 5, 5)
        A cross and a ring; each sums to 1.
    impulses : ndarray of shape (2, height - 4, width - 4)
        The brightness of every shape at the place of its upper left corner.
    """

    image: Array
    kernels: Array
    impulses: Array


class Mixtures(NamedTuple):
    """Samples that are mixtures of a few spectra, as :func:`make_mixtures` returns them.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, non-negative.
    mixtures : ndarray of shape (n_samples, n_components)
        The shares of the spectra; rows sum to 1.
    spectra : ndarray of shape (n_components, n_features)
        Rows sum to 1.
    """

    X: Array
    mixtures: Array
    spectra: Array


def make_corpus(n_documents: int = 120, length: int = 80, *, random_state: int = 0) -> Corpus:
    r"""Documents about a harbour, a kitchen, a garden and an orchestra, as counts of words.

    .. math:: X_{d \cdot} \sim \mathrm{Multinomial}\Bigl(\ell, \sum_z P(z \mid d) \, P(\cdot \mid z)\Bigr)

    Words of a topic are the rarer the later they come in its list; a sixth of every document are words of all topics.

    Parameters
    ----------
    n_documents : int, default=120
        The number of documents.
    length : int, default=80
        The words of every document.
    random_state : int, default=0
        The seed.

    Returns
    -------
    corpus : Corpus
        ``counts`` (sparse), ``words``, ``subjects``, ``topics``, ``mixtures``.

    Examples
    --------
    >>> from plcakit.datasets import make_corpus
    >>> corpus = make_corpus(10)
    >>> int(corpus.counts.sum()), corpus.topics.shape
    (800, (4, 54))
    """
    draw = np.random.default_rng(random_state)
    lists = [text.split() for text in SUBJECTS.values()]
    common = COMMON.split()
    words = sorted({word for text in [*lists, common] for word in text})
    topics = np.zeros((len(lists), len(words)))
    for z, text in enumerate(lists):
        own = 1 / np.sqrt(1.0 + np.arange(len(text)))
        topics[z, [words.index(word) for word in text]] = own / own.sum() * 5 / 6
        topics[z, [words.index(word) for word in common]] = 1 / 6 / len(common)
    mixtures = draw.dirichlet(np.full(len(lists), 0.2), n_documents)
    counts = np.array([draw.multinomial(length, p / p.sum()) for p in mixtures @ topics], dtype=np.float64)
    return Corpus(sparse.csr_array(counts), np.array(words), np.array(list(SUBJECTS)), topics, mixtures)


def make_notes(*, random_state: int = 0) -> Notes:
    r"""A melody of three notes, alone and together, and its spectrogram.

    .. math:: s(t) = \sum_{\text{strokes}} e^{-3 (t - t_0)} \sum_{h=1}^{6} 0.6^{h - 1} \sin(2 \pi h f (t - t_0))

    with a little noise; 3.2 seconds at 8 kHz, frames of 1024 samples (Hann), a quarter of a frame apart.

    Parameters
    ----------
    random_state : int, default=0
        The seed of the noise.

    Returns
    -------
    notes : Notes
        ``spectrogram``, ``frequencies``, ``times``, ``pitches``, ``played``, ``sound``, ``rate``.

    Examples
    --------
    >>> from plcakit.datasets import make_notes
    >>> notes = make_notes()
    >>> notes.spectrogram.shape, notes.pitches.round(1).tolist()
    ((513, 97), [261.6, 329.6, 392.0])
    """
    draw = np.random.default_rng(random_state)
    rate, frame, hop, stroke = 8000, 1024, 256, 0.4
    pitches = 440.0 * 2.0 ** (np.array([-9, -5, -2]) / 12)
    melody = [(0,), (1,), (2,), (0, 1), (2,), (1, 2), (0,), (0, 1, 2)]
    t = np.arange(int(stroke * rate)) / rate
    rise = np.minimum(1.0, t / 0.01) * np.minimum(1.0, t[::-1] / 0.01)
    sounds = [
        rise * np.exp(-3 * t) * sum(0.6 ** (h - 1) * np.sin(2 * np.pi * h * f * t) for h in range(1, 7)) for f in pitches
    ]
    sound = np.concatenate([sum((sounds[n] for n in chord), np.zeros(len(t))) for chord in melody])
    sound = sound / np.abs(sound).max() + 1e-3 * draw.standard_normal(len(sound))
    starts = np.arange(0, len(sound) - frame + 1, hop)
    window = np.hanning(frame + 1)[:-1]
    frames = np.stack([sound[s : s + frame] * window for s in starts])
    times = (starts + frame / 2) / rate
    chords = [melody[int(time / stroke)] for time in times]
    played = np.array([[n in chord for chord in chords] for n in range(len(pitches))])
    spectrogram = np.ascontiguousarray(np.abs(np.fft.rfft(frames, axis=1)).T)
    frequencies = np.fft.rfftfreq(frame, 1 / rate)
    return Notes(spectrogram, frequencies, times, pitches, played, np.clip(sound, -1, 1), rate)


def make_signed(
    n_samples: int = 80, n_features: int = 24, *, missing: float = 0.2, noise: float = 0.05, random_state: int = 0
) -> Signed:
    r"""A matrix of either sign with missing cells: non-negative amounts of three signed waves.

    .. math:: X = W H + \varepsilon, \qquad W \ge 0, \quad \varepsilon \sim \mathcal N(0, \sigma^2)

    Parameters
    ----------
    n_samples, n_features : int, default=80, 24
        The size.
    missing : float, default=0.2
        The share of missing cells.
    noise : float, default=0.05
        The standard deviation :math:`\sigma` of the noise.
    random_state : int, default=0
        The seed.

    Returns
    -------
    signed : Signed
        ``X`` (NaN where missing), ``complete``, ``activations``, ``components``.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit.datasets import make_signed
    >>> signed = make_signed()
    >>> signed.X.shape, bool(np.nanmin(signed.X) < 0), int(np.isnan(signed.X).sum())
    ((80, 24), True, 384)
    """
    draw = np.random.default_rng(random_state)
    place = np.linspace(0, 2 * np.pi, n_features)
    components = np.stack([np.sin(place), np.cos(2 * place), np.exp(-((place - 4) ** 2)) - np.exp(-((place - 2) ** 2))])
    activations = draw.gamma(0.5, 2.0, (n_samples, 3))
    complete = activations @ components
    X = complete + noise * draw.standard_normal(complete.shape)
    X.flat[draw.permutation(X.size)[: round(missing * X.size)]] = np.nan
    return Signed(X, complete, activations, components)


def make_shapes(height: int = 28, width: int = 40, *, random_state: int = 0) -> Shapes:
    r"""An image of five crosses and five rings, none on another.

    .. math:: X(x) = \sum_z \sum_t K_z(t) \, H_z(x - t)

    Parameters
    ----------
    height, width : int, default=28, 40
        The size; it must hold ten squares of 6 by 6 cells, one for every shape.
    random_state : int, default=0
        The seed of places and brightness.

    Returns
    -------
    shapes : Shapes
        ``image``, ``kernels``, ``impulses``.

    Examples
    --------
    >>> from plcakit.datasets import make_shapes
    >>> shapes = make_shapes()
    >>> shapes.image.shape, (shapes.impulses > 0).sum(axis=(1, 2)).tolist()
    ((28, 40), [5, 5])
    """
    draw = np.random.default_rng(random_state)
    cross, ring = np.eye(5) + np.eye(5)[::-1], np.ones((5, 5))
    cross[2, 2], ring[1:4, 1:4] = 1, 0
    kernels = np.stack([cross / cross.sum(), ring / ring.sum()])
    # A place within every square of a grid, so that none is on another.
    squares = draw.permutation([(y, x) for y in range(height // 6) for x in range(width // 6)])
    if len(squares) < 10:
        raise ValueError(f"height and width are {height} and {width}: room for {len(squares)} shapes, expected 10")
    impulses = np.zeros((2, height - 4, width - 4))
    for n, (y, x) in enumerate(squares[:10]):
        at = 6 * y + draw.integers(2), 6 * x + draw.integers(2)
        impulses[(n % 2, *at)] = draw.uniform(20, 60)
    image = np.zeros((height, width))
    for z, y, x in zip(*np.nonzero(impulses)):
        image[y : y + 5, x : x + 5] += impulses[z, y, x] * kernels[z]
    return Shapes(image, kernels, impulses)


def make_mixtures(n_samples: int = 100, n_features: int = 60, *, random_state: int = 0) -> Mixtures:
    r"""Samples that are mixtures of three spectra of two peaks each, such as materials in the points of an image.

    .. math:: X = M S + \varepsilon, \qquad M_{i \cdot}, S_{z \cdot} \text{ on the simplex}

    Parameters
    ----------
    n_samples, n_features : int, default=100, 60
        The size.
    random_state : int, default=0
        The seed.

    Returns
    -------
    mixtures : Mixtures
        ``X``, ``mixtures``, ``spectra``.

    Examples
    --------
    >>> from plcakit.datasets import make_mixtures
    >>> made = make_mixtures()
    >>> made.X.shape, float(made.mixtures.sum(axis=1).max().round(6))
    ((100, 60), 1.0)
    """
    draw = np.random.default_rng(random_state)
    place = np.linspace(0, 1, n_features)
    peaks = np.array([[0.15, 0.55], [0.35, 0.9], [0.25, 0.72]])
    spectra = np.exp(-(((place - peaks[..., np.newaxis]) / 0.05) ** 2)).sum(axis=1)
    spectra /= spectra.sum(axis=1, keepdims=True)
    mixtures = draw.dirichlet(np.full(3, 0.3), n_samples)
    X = np.maximum(mixtures @ spectra + 5e-4 * draw.standard_normal((n_samples, n_features)), 0)
    return Mixtures(X, mixtures, spectra)
