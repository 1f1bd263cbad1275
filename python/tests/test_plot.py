"""Pictures show the numbers of the model, and land where they are asked to."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

from plcakit import (  # noqa: E402
    NMF,
    PLCA,
    PLSA,
    ConsensusNMF,
    ShiftInvariantPLCA,
    ShiftInvariantSkellam,
    SkellamSNMF,
    TransformInvariantPLCA,
    plot,
)
from plcakit.datasets import make_corpus, make_mixtures, make_notes, make_shapes, make_signed  # noqa: E402


@pytest.fixture(autouse=True)
def close():
    yield
    # Every picture can be drawn.
    for number in pyplot.get_fignums():
        pyplot.figure(number).canvas.draw()
    pyplot.close("all")


def test_components():
    model = SkellamSNMF(3, missing="nan", random_state=0).fit(make_signed().X)
    axis = plot.components(model)
    image = axis.images[0]
    assert np.array_equal(image.get_array(), model.components_)
    assert axis.get_yticks().tolist() == [0, 1, 2]
    # Of either sign: 0 is in the middle of the colours.
    assert image.norm.vmin == -image.norm.vmax
    own = pyplot.figure().subplots()
    assert plot.components(model, [f"f{j}" for j in range(24)], ax=own) is own
    assert [t.get_text() for t in own.get_xticklabels()][:2] == ["f0", "f1"]
    curves = plot.components(model, np.linspace(400, 700, 24), lines=True)
    assert [np.array_equal(line.get_ydata(), row) for line, row in zip(curves.lines, model.components_)] == [True] * 3
    assert curves.lines[0].get_xdata()[-1] == 700
    with pytest.raises(ValueError, match="names has 2 entries, expected 24"):
        plot.components(model, ["a", "b"])
    with pytest.raises(ValueError, match="components by features"):
        plot.components(PLCA(2, random_state=0).fit(np.ones((3, 4, 5))))


def test_names_come_from_the_data():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[3.0, 1.0], [1.0, 2.0]], columns=["bread", "ship"])
    axis = plot.components(NMF(1, random_state=0).fit(frame))
    assert [t.get_text() for t in axis.get_xticklabels()] == ["bread", "ship"]
    axis = plot.topics(PLSA(1, random_state=0).fit(frame)).axes[0]
    assert [t.get_text() for t in axis.get_yticklabels()] == ["bread", "ship"]


@pytest.mark.parametrize("order", [1, 2])
def test_kernels(order):
    image = make_shapes().image
    X, kernel = (image, (5, 5)) if order == 2 else (image[8] + 0.1, (5,))
    model = ShiftInvariantPLCA(2, kernel=kernel, random_state=0).fit(X)
    axes = plot.kernels(model).axes
    assert len(axes) == 4
    if order == 2:
        assert np.array_equal(axes[3].images[0].get_array(), model.impulses_[1])
    else:
        assert [bar.get_height() for bar in axes[0].patches] == model.kernels_[0].tolist()
    figure = pyplot.figure()
    assert plot.kernels(model, figure=figure) is figure


def test_signed_kernels_and_maps():
    X = make_shapes().image
    model = ShiftInvariantSkellam(1, kernel=(5, 5), max_iter=20, tol=0, random_state=0).fit(X - X.mean())
    axes = plot.kernels(model).axes
    assert [axis.get_title() for axis in axes[:2]] == ["kernel 0", "activations 0"]
    assert np.array_equal(axes[1].images[0].get_array(), model.activations_[0])
    with pytest.raises(ValueError, match="decibels is 60"):
        plot.kernels(model, decibels=60)


def test_kernels_of_a_spectrogram():
    S = make_notes().spectrogram
    model = ShiftInvariantPLCA(2, kernel=(len(S), 8), max_iter=20, tol=0, random_state=0).fit(S)
    left, right = plot.kernels(model).axes[:2]
    # Tall and narrow: it fills its axis, low frequencies are at the bottom, and the impulses are a curve.
    assert left.get_aspect() == "auto" and left.images[0].origin == "lower"
    assert np.array_equal(left.images[0].get_array(), model.kernels_[0])
    assert np.array_equal(right.lines[0].get_ydata(), model.impulses_[0, 0]) and not right.images
    left.figure.canvas.draw()
    for axis in (left, right):
        # No two labels overlap.
        for side in (axis.xaxis, axis.yaxis):
            boxes = [label.get_window_extent() for label in side.get_ticklabels() if label.get_text()]
            assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])
    image = plot.kernels(model, decibels=40, origin="upper").axes[0].images[0]
    assert (image.get_array().min(), image.get_array().max()) == (-40, 0) and image.origin == "upper"
    shapes = ShiftInvariantPLCA(1, kernel=(5, 5), max_iter=5, tol=0, random_state=0).fit(make_shapes().image)
    image = plot.kernels(shapes).axes[0]
    assert image.images[0].origin == "upper" and image.get_aspect() in (1, "equal")
    with pytest.raises(ValueError, match="origin is 'top'"):
        plot.kernels(model, origin="top")
    with pytest.raises(ValueError, match="decibels is 0"):
        plot.kernels(model, decibels=0)


def test_kernels_in_colour():
    X = make_shapes().image[..., np.newaxis] * [1.0, 0.5, 0.25]
    shifted = ShiftInvariantPLCA(1, kernel=(5, 5, 3), max_iter=5, tol=0, random_state=0).fit(X)
    turned = TransformInvariantPLCA(1, kernel=(5, 5, 3), rotations=2, max_iter=5, tol=0, random_state=0).fit(X)
    for model in (shifted, turned):
        picture = plot.kernels(model).axes[0].images[0].get_array()
        np.testing.assert_allclose(picture, model.kernels_[0] / model.kernels_[0].max())
    assert np.array_equal(plot.kernels(shifted).axes[1].images[0].get_array(), shifted.impulses_[0, :, :, 0])
    two = ShiftInvariantPLCA(1, kernel=(5, 5, 2), max_iter=5, tol=0, random_state=0).fit(X[..., :2])
    with pytest.raises(ValueError, match=r"kernels_ have the shape \(5, 5, 2\)"):
        plot.kernels(two)


def test_copies_are_outlined():
    X = np.zeros((12, 12))
    X[1:4, 1:3] += [[40, 10], [30, 0], [20, 0]]
    X[7:9, 5:8] += [[10, 0, 0], [40, 30, 20]]
    model = TransformInvariantPLCA(1, kernel=(3, 2), rotations=4, prior={"impulses": "entropic:50"}, n_init=20, random_state=0).fit(X)
    assert len(model.copies()) == 2
    axis = plot.copies(model, X)
    assert np.array_equal(axis.images[0].get_array(), X)
    corners = [(line.get_xdata(), line.get_ydata()) for line in axis.lines if len(line.get_xdata()) == 5]
    boxes = sorted(tuple(float(edge) for way in (y, x) for edge in (way.min(), way.max())) for x, y in corners)
    np.testing.assert_allclose(boxes, [(0.5, 3.5, 0.5, 2.5), (6.5, 8.5, 4.5, 7.5)], atol=1e-12)
    assert len(plot.kernels(model).axes[1].lines) == 4
    assert len(plot.copies(model, least=0.99).lines) == 0
    with pytest.raises(ValueError, match=r"X has the shape \(3, 3\), expected \(12, 12\)"):
        plot.copies(model, np.ones((3, 3)))
    with pytest.raises(TypeError, match="expected a TransformInvariantPLCA"):
        plot.copies(NMF(1, random_state=0).fit(X))


def test_topics():
    corpus = make_corpus()
    model = PLSA(5, random_state=0).fit(corpus.counts)
    figure = plot.topics(model, corpus.words, n_words=6, titles="abcde")
    assert [axis.get_title() for axis in figure.axes] == list("abcde")
    for topic, axis in zip(model.components_, figure.axes):
        best = topic.argsort()[::-1][:6]
        assert [bar.get_width() for bar in axis.patches] == topic[best].tolist()
        assert [t.get_text() for t in axis.get_yticklabels()] == corpus.words[best].tolist()
    with pytest.raises(ValueError, match="without names of features"):
        plot.topics(model)
    with pytest.raises(ValueError, match="words has 2 entries"):
        plot.topics(model, ["a", "b"])
    with pytest.raises(ValueError, match="titles has 1 entries, expected 5"):
        plot.topics(model, corpus.words, titles=["a"])


def test_trace():
    X = make_mixtures().X
    axis = None
    for solver in ("em", "squarem"):
        model = NMF(3, solver=solver, max_iter=50, tol=1e-5, random_state=0).fit(X)
        axis = plot.trace(model, ax=axis, label=solver)
    assert np.array_equal(axis.lines[1].get_ydata(), model.trace_["objective"])
    assert [t.get_text() for t in axis.get_legend().get_texts()] == ["em", "squarem"]


def test_consensus():
    counts = make_corpus().counts
    model = ConsensusNMF([5, 3, 4], n_runs=5, threshold=2.0, random_state=0).fit(counts)
    axis = plot.stability_error(model)
    other = axis.figure.axes[1]
    assert axis.get_xticks().tolist() == [3, 4, 5]
    assert axis.lines[0].get_ydata().tolist() == model.stability_[[1, 2, 0]].tolist()
    assert other.lines[0].get_ydata().tolist() == model.prediction_error_[[1, 2, 0]].tolist()
    axis = plot.consensus_matrix(model)
    cells = axis.images[0].get_array()
    assert cells.shape == (5 * model.n_components_,) * 2
    # Spectra of one cluster lie closer together than those of different ones.
    own = np.equal.outer(np.sort(model.labels_), np.sort(model.labels_))
    assert cells[own].mean() < cells[~own].mean()
    # A line before every cluster but the first, both ways.
    assert len(axis.lines) == 2 * (model.n_components_ - 1)


def test_spectrogram_and_its_parts():
    notes = make_notes()
    S = notes.spectrogram
    axis = plot.spectrogram(S, frequencies=notes.frequencies, times=notes.times)
    image = axis.images[0]
    assert image.get_array().max() == 0 and image.get_array().min() == -60
    left, right, low, high = image.get_extent()
    assert low < 0 < 3999 < high and left < notes.times[0] and right > notes.times[-1]
    plain = plot.spectrogram(S * 1j, decibels=None)
    assert np.allclose(plain.images[0].get_array(), S) and plain.get_ylabel() == "bin"
    plot.spectrogram(np.zeros((3, 1)))
    model = NMF(3, random_state=0).fit(S.T)
    figure = plot.parts(S, model, decibels=None, frequencies=notes.frequencies)
    pieces = [axis.images[0].get_array() for axis in figure.axes]
    np.testing.assert_allclose(sum(pieces[1:]), pieces[0])
    # One scale for all.
    assert len({axis.images[0].norm.vmax for axis in figure.axes}) == 1
    with pytest.raises(ValueError, match="times has shape"):
        plot.spectrogram(S, times=[1.0])
    with pytest.raises(ValueError, match="expected frequencies by frames"):
        plot.spectrogram(S[0])


def test_without_a_fit_there_is_no_picture():
    from sklearn.exceptions import NotFittedError

    for picture in (plot.components, plot.topics, plot.kernels, plot.trace):
        with pytest.raises(NotFittedError):
            picture(NMF(2))
    for picture in (plot.stability_error, plot.consensus_matrix):
        with pytest.raises(NotFittedError):
            picture(ConsensusNMF(2))
