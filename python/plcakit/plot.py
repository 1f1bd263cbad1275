"""Pictures of models, drawn with matplotlib (``pip install plcakit[plot]``).

Functions of one picture take and return an axis, those of several a figure.

Examples
--------
>>> import matplotlib
>>> matplotlib.use("Agg")
>>> from plcakit import PLSA, plot
>>> from plcakit.datasets import make_corpus
>>> corpus = make_corpus()
>>> model = PLSA(4, random_state=0).fit(corpus.counts)
>>> figure = plot.topics(model, corpus.words, n_words=5)
>>> [len(axis.patches) for axis in figure.axes]
[5, 5, 5, 5]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._docs import described
from ._types import Array, Data
from .sound import separate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["components", "consensus_matrix", "kernels", "parts", "spectrogram", "stability_error", "topics", "trace"]

#: Of magnitudes, and of values of either sign.
COLOURS, SIGNED_COLOURS = "viridis", "RdBu_r"


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plcakit.plot needs matplotlib: pip install 'plcakit[plot]'") from error
    return pyplot


def _axis(ax: Axes | None) -> Any:
    return _pyplot().subplots(layout="constrained")[1] if ax is None else ax


def _grid(figure: Figure | None, rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """Axes of a figure, a new one of this size in inches if none is given."""
    if figure is None:
        figure = _pyplot().figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _image(ax: Any, cells: Array, **how: Any) -> Any:
    """An image, in colours around 0 where values have either sign."""
    if (cells < 0).any():
        most = float(np.abs(cells).max())
        how = {"cmap": SIGNED_COLOURS, "vmin": -most, "vmax": most, **how}
    return ax.imshow(cells, **{"cmap": COLOURS, "aspect": "auto", "interpolation": "nearest", **how})


@described
def components(model: Any, names: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
    """The components of a matrix model as an image, one row for each.

    Parameters
    ----------
    model : estimator
        Fitted; with ``components_`` of shape (n_components, n_features).
    names : sequence of str, default=None
        Names of the features; ``None``: those that `X` had, where there are at most 40.
    %(ax)s

    %(axis)s

    Examples
    --------
    >>> from plcakit import PNTF, plot
    >>> from plcakit.datasets import make_mixtures
    >>> plot.components(PNTF(3, random_state=0).fit(make_mixtures().X)).get_xlabel()
    'feature'
    """
    check_is_fitted(model)
    cells = np.asarray(model.components_)
    if cells.ndim != 2:
        raise ValueError(f"components_ has shape {cells.shape}, expected components by features")
    if names is None and cells.shape[1] <= 40:
        names = getattr(model, "feature_names_in_", None)
    if names is not None and len(names) != cells.shape[1]:
        raise ValueError(f"names has {len(names)} entries, expected {cells.shape[1]}")
    axis = _axis(ax)
    axis.figure.colorbar(_image(axis, cells), ax=axis)
    axis.set(xlabel="feature", ylabel="component", yticks=range(len(cells)))
    if names is not None:
        axis.set_xticks(range(len(names)), list(names), rotation=90)
    drawn: Axes = axis
    return drawn


@described
def stability_error(model: Any, *, ax: Axes | None = None) -> Axes:
    """Stability and squared error for every number of components, to choose one.

    Parameters
    ----------
    model : ConsensusNMF
        Fitted for several numbers of components.
    %(ax)s

    %(axis)s

    Examples
    --------
    >>> from plcakit import ConsensusNMF, plot
    >>> from plcakit.datasets import make_corpus
    >>> model = ConsensusNMF([3, 4, 5], n_runs=5, threshold=2.0, random_state=0).fit(make_corpus().counts)
    >>> plot.stability_error(model).get_xlabel()
    'components'
    """
    check_is_fitted(model)
    order = np.argsort(model.ranks_)
    ranks = np.asarray(model.ranks_)[order]
    axis = _axis(ax)
    other = axis.twinx()
    for side, values, colour, name in (
        (axis, model.stability_, "C0", "stability (mean silhouette)"),
        (other, model.prediction_error_, "C1", "squared error"),
    ):
        side.plot(ranks, np.asarray(values)[order], marker="o", color=colour)
        side.set_ylabel(name, color=colour)
        side.tick_params(axis="y", labelcolor=colour)
    axis.axvline(model.n_components_, color="0.7", linestyle=":", zorder=0)
    axis.set(xlabel="components", xticks=ranks)
    drawn: Axes = axis
    return drawn


@described
def consensus_matrix(model: Any, *, ax: Axes | None = None) -> Axes:
    """The distances between the components of all fits, those that are kept, cluster after cluster: dark squares along the diagonal are clusters.

    Parameters
    ----------
    model : ConsensusNMF
        Fitted.
    %(ax)s

    %(axis)s

    Examples
    --------
    >>> from plcakit import ConsensusNMF, plot
    >>> from plcakit.datasets import make_corpus
    >>> model = ConsensusNMF(4, n_runs=5, threshold=2.0, random_state=0).fit(make_corpus().counts)
    >>> plot.consensus_matrix(model).images[0].get_array().shape
    (20, 20)
    """
    check_is_fitted(model)
    spectra = model.spectra_[model.kept_]
    order = np.argsort(model.labels_, kind="stable")
    units = (spectra / np.linalg.norm(spectra, axis=1, keepdims=True))[order]
    # Of rounding alone a distance is not negative.
    distances = np.sqrt(np.maximum(2 - 2 * units @ units.T, 0))
    axis = _axis(ax)
    image = _image(axis, distances, aspect="equal", vmin=0)
    axis.figure.colorbar(image, ax=axis, label="distance")
    for edge in np.cumsum(np.bincount(model.labels_))[:-1] - 0.5:
        axis.axhline(edge, color="w", linewidth=0.5)
        axis.axvline(edge, color="w", linewidth=0.5)
    axis.set(xlabel="spectrum", ylabel="spectrum")
    drawn: Axes = axis
    return drawn


@described
def kernels(model: Any, *, figure: Figure | None = None) -> Figure:
    """The kernels of :class:`~plcakit.ShiftInvariantPLCA` or :class:`~plcakit.ShiftInvariantSkellam` and their impulses, one row for each component.

    Parameters
    ----------
    model : ShiftInvariantPLCA or ShiftInvariantSkellam
        Fitted to data of one or two dimensions.
    %(figure)s

    %(drawn)s

    Examples
    --------
    >>> from plcakit import ShiftInvariantPLCA, plot
    >>> from plcakit.datasets import make_shapes
    >>> model = ShiftInvariantPLCA(2, kernel=(5, 5), random_state=0).fit(make_shapes().image)
    >>> [axis.get_title() for axis in plot.kernels(model).axes[:2]]
    ['kernel 0, weight 0.32', 'impulses 0']
    """
    check_is_fitted(model)
    if not hasattr(model, "kernels_"):
        raise TypeError(f"model is {model!r}, expected a ShiftInvariantPLCA")
    order = model.kernels_.ndim - 1
    if order not in (1, 2):
        raise ValueError(f"kernels_ have {order} dimensions, expected 1 or 2")
    k = len(model.kernels_)
    name = "impulses" if hasattr(model, "impulses_") else "activations"
    places = getattr(model, f"{name}_")
    if places.ndim != model.kernels_.ndim:
        raise ValueError(f"{name}_ have {places.ndim - 1} dimensions, kernels_ have {order}: there is no picture of maps")
    figure, axes = _grid(figure, k, 2, (8, 2.4 * k))
    for z in range(k):
        for axis, cells in zip(axes[z], (model.kernels_[z], places[z])):
            if order == 1:
                axis.bar(range(len(cells)), cells, width=1.0)
            else:
                _image(axis, cells, aspect="equal")
        weight = f", weight {model.weights_[z]:.2f}" if hasattr(model, "weights_") else ""
        axes[z, 0].set_title(f"kernel {z}{weight}")
        axes[z, 1].set_title(f"{name} {z}")
    return figure


@described
def topics(
    model: Any, words: Sequence[str] | Array | None = None, *, n_words: int = 8, titles: Sequence[str] | None = None,
    figure: Figure | None = None,
) -> Figure:
    """The most probable words of every topic, as bars.

    Parameters
    ----------
    model : estimator
        Fitted; with ``components_`` of shape (n_topics, n_words).
    words : sequence of str, default=None
        The words; ``None``: the names of the features that `X` had.
    n_words : int, default=8
        How many of every topic.
    titles : sequence of str, default=None
        The names of the topics; ``None``: their numbers and, where the model has them, weights.
    %(figure)s

    %(drawn)s

    Examples
    --------
    >>> from plcakit import PLSA, plot
    >>> from plcakit.datasets import make_corpus
    >>> corpus = make_corpus()
    >>> figure = plot.topics(PLSA(4, random_state=0).fit(corpus.counts), corpus.words)
    >>> len(figure.axes)
    4
    """
    check_is_fitted(model)
    cells = np.asarray(model.components_)
    if words is None:
        words = getattr(model, "feature_names_in_", None)
    if words is None:
        raise ValueError("words is None, but the model was fitted to data without names of features")
    if cells.ndim != 2 or len(words) != cells.shape[1]:
        raise ValueError(f"words has {len(words)} entries, components_ the shape {cells.shape}")
    if titles is not None and len(titles) != len(cells):
        raise ValueError(f"titles has {len(titles)} entries, expected {len(cells)}")
    weights = getattr(model, "weights_", None)
    columns = min(len(cells), 4)
    rows = -(-len(cells) // columns)
    figure, axes = _grid(figure, rows, columns, (2.6 * columns, (0.28 * n_words + 0.6) * rows))
    for z, axis in enumerate(axes.ravel()):
        if z >= len(cells):
            axis.remove()
            continue
        best = np.argsort(cells[z], kind="stable")[::-1][:n_words]
        axis.barh(range(len(best)), cells[z, best])
        axis.set_yticks(range(len(best)), [str(words[w]) for w in best])
        axis.invert_yaxis()
        axis.spines[["top", "right"]].set_visible(False)
        share = "" if weights is None else f", {weights[z]:.0%}"
        axis.set_title(titles[z] if titles is not None else f"topic {z}{share}")
    return figure


@described
def trace(model: Any, *, ax: Axes | None = None, label: str | None = None) -> Axes:
    """The objective at every check of a fit.

    Parameters
    ----------
    model : estimator
        Fitted.
    ax : matplotlib Axes, default=None
        Where to, several models one after the other; ``None``: a new figure.
    label : str, default=None
        The name in a legend.

    %(axis)s

    Examples
    --------
    >>> from plcakit import NMF, plot
    >>> from plcakit.datasets import make_mixtures
    >>> axis = plot.trace(NMF(3, random_state=0).fit(make_mixtures().X), label="auto")
    >>> len(axis.lines)
    1
    """
    check_is_fitted(model)
    axis = _axis(ax)
    axis.plot(model.trace_["iteration"], model.trace_["objective"], marker=".", label=label)
    axis.set(xlabel="iteration", ylabel="objective")
    if label is not None:
        axis.legend(frameon=False)
    drawn: Axes = axis
    return drawn


@described
def spectrogram(
    S: Data, *, frequencies: Data = None, times: Data = None, decibels: float | None = 60.0, peak: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""A spectrogram in decibels, :math:`20 \log_{10} (|S| / \max |S|)`.

    Parameters
    ----------
    %(S)s
    frequencies : array-like of shape (n_frequencies,), default=None
        In Hz, evenly spaced; ``None``: their numbers.
    times : array-like of shape (n_frames,), default=None
        In seconds, evenly spaced; ``None``: their numbers.
    decibels : float or None, default=60.0
        The range that is shown; ``None``: magnitudes as they are.
    peak : float, default=None
        The magnitude of 0 dB; ``None``: the largest.
    %(ax)s

    %(axis)s

    Examples
    --------
    >>> from plcakit import plot
    >>> from plcakit.datasets import make_notes
    >>> notes = make_notes()
    >>> plot.spectrogram(notes.spectrogram, frequencies=notes.frequencies, times=notes.times).get_ylabel()
    'Hz'
    """
    cells = np.abs(np.asarray(S))
    if cells.ndim != 2:
        raise ValueError(f"S has {cells.ndim} dimensions, expected frequencies by frames")
    sides = []
    for name, ticks, n in (("times", times, cells.shape[1]), ("frequencies", frequencies, cells.shape[0])):
        at = np.arange(n) if ticks is None else np.asarray(ticks, dtype=np.float64)
        if at.shape != (n,):
            raise ValueError(f"{name} has shape {at.shape}, expected ({n},)")
        half = (at[-1] - at[0]) / (2 * (n - 1)) if n > 1 else 0.5
        sides += [float(at[0] - half), float(at[-1] + half)]
    how: dict[str, Any] = {"cmap": "magma", "vmin": 0, "vmax": peak}
    if decibels is not None:
        top = float(cells.max() if peak is None else peak)
        least = 10 ** (-decibels / 20)
        cells = 20 * np.log10(np.maximum(cells / top if top > 0 else cells, least))
        how = {"cmap": "magma", "vmin": -decibels, "vmax": 0}
    axis = _axis(ax)
    axis.imshow(cells, aspect="auto", origin="lower", interpolation="nearest", extent=sides, **how)
    axis.set(xlabel="frame" if times is None else "s", ylabel="bin" if frequencies is None else "Hz")
    drawn: Axes = axis
    return drawn


@described
def parts(S: Data, model: Any, *, figure: Figure | None = None, **how: Any) -> Figure:
    """A spectrogram and the part of it from each component, one below the other, in one scale.

    Parameters
    ----------
    %(S)s
    model : estimator
        Fitted to the frames as samples; see :func:`plcakit.sound.separate`.
    %(figure)s
    **how
        What :func:`spectrogram` takes.

    %(drawn)s

    Examples
    --------
    >>> from plcakit import NMF, plot
    >>> from plcakit.datasets import make_notes
    >>> S = make_notes().spectrogram
    >>> len(plot.parts(S, NMF(3, random_state=0).fit(S.T)).axes)
    4
    """
    check_is_fitted(model)
    pieces = separate(S, model)
    how = {"peak": float(np.abs(np.asarray(S)).max()), **how}
    figure, axes = _grid(figure, len(pieces) + 1, 1, (7, 1.7 * (len(pieces) + 1)))
    for n, axis in enumerate(axes.ravel()):
        spectrogram(S if n == 0 else pieces[n - 1], ax=axis, **how)
        axis.set_title("all" if n == 0 else f"component {n - 1}")
        if n < len(pieces):
            axis.set_xlabel("")
            axis.tick_params(labelbottom=False)
    return figure
