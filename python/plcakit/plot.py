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

__all__ = ["components", "consensus_matrix", "copies", "kernels", "parts", "spectrogram", "stability_error", "topics", "trace"]

#: Of magnitudes, and of values of either sign.
COLOURS, SIGNED_COLOURS = "viridis", "RdBu_r"
#: Of outlines over an image, one component after the other.
OUTLINES = ("w", "C1", "C3", "C6", "C9")


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
def components(model: Any, names: Sequence[Any] | Array | None = None, *, lines: bool = False, ax: Axes | None = None) -> Axes:
    """The components of a matrix model as an image, one row for each, or as curves, such as spectra.

    Parameters
    ----------
    model : estimator
        Fitted; with ``components_`` of shape (n_components, n_features).
    names : sequence of str, default=None
        Names of the features; ``None``: those that `X` had, where there are at most 40. With `lines` they may be numbers, such as wavelengths:
        where the features lie along the axis.
    lines : bool, default=False
        Whether every component is a curve.
    %(ax)s

    %(axis)s

    Examples
    --------
    >>> from plcakit import PNTF, plot
    >>> from plcakit.datasets import make_mixtures
    >>> plot.components(PNTF(3, random_state=0).fit(make_mixtures().X)).get_xlabel()
    'feature'
    >>> len(plot.components(PNTF(3, random_state=0).fit(make_mixtures().X), lines=True).lines)
    3
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
    axis.set_xlabel("feature")
    if lines:
        places = np.arange(cells.shape[1]) if names is None else np.asarray(names)
        numbered = places.dtype.kind in "iuf"
        for z, component in enumerate(cells):
            axis.plot(places if numbered else range(len(component)), component, label=f"component {z}")
        axis.legend(frameon=False)
        names = None if numbered else names
    else:
        axis.figure.colorbar(_image(axis, cells), ax=axis)
        axis.set(ylabel="component", yticks=range(len(cells)))
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
def kernels(model: Any, *, origin: str | None = None, decibels: float | None = None, figure: Figure | None = None) -> Figure:
    r"""The kernels of a model and where they lie, one row for each component.

    What extends along one dimension alone is a curve, three colours (a third dimension of 3) are a colour picture, anything else is an image; an
    image of which one side is more than 4 times the other fills its axis. Of :class:`~plcakit.TransformInvariantPLCA` the approximation by
    the component is shown with the outlines of its copies, as by :func:`copies`.

    Parameters
    ----------
    model : ShiftInvariantPLCA, ShiftInvariantSkellam or TransformInvariantPLCA
        Fitted to data of one or two dimensions, or to a colour picture.
    origin : {"upper", "lower"} or None, default=None
        Where the first row of an image is. ``None``: at the bottom, as low frequencies are, with `decibels` and where kernels are not
        shifted along the rows of the data, such as those of all frequencies of a spectrogram; else at the top.
    decibels : float or None, default=None
        The range in which kernels are shown, :math:`20 \log_{10} (K / \max K)`; ``None``: as they are.
    %(figure)s

    %(drawn)s

    Examples
    --------
    >>> from plcakit import ShiftInvariantPLCA, plot
    >>> from plcakit.datasets import make_notes, make_shapes
    >>> model = ShiftInvariantPLCA(2, kernel=(5, 5), random_state=0).fit(make_shapes().image)
    >>> [axis.get_title() for axis in plot.kernels(model).axes[:2]]
    ['kernel 0, weight 0.32', 'impulses 0']
    >>> S = make_notes().spectrogram
    >>> model = ShiftInvariantPLCA(3, kernel=(len(S), 8), max_iter=20, tol=0, random_state=0).fit(S)
    >>> figure = plot.kernels(model, decibels=60)               # kernels in decibels, impulses as curves
    """
    check_is_fitted(model)
    if not hasattr(model, "kernels_"):
        raise TypeError(f"model is {model!r}, expected a ShiftInvariantPLCA, ShiftInvariantSkellam or TransformInvariantPLCA")
    shape = model.kernels_.shape[1:]
    colours = len(shape) == 3 and shape[2] == 3 and bool((model.kernels_ >= 0).all())
    if len(shape) not in (1, 2) and not colours:
        raise ValueError(f"kernels_ have the shape {shape}, expected one or two dimensions, or a third one of 3 colours that are not negative")
    if origin not in (None, "upper", "lower"):
        raise ValueError(f"origin is {origin!r}, expected 'upper', 'lower' or None")
    if decibels is not None and (colours or not decibels > 0 or (model.kernels_ < 0).any()):
        raise ValueError(f"decibels is {decibels!r}, expected None, or a number > 0 for kernels of one channel that are not negative")
    if origin is None:
        unshifted = len(shape) == 2 and shape[0] > 1 and shape[0] == model._shape[0]
        origin = "lower" if decibels is not None or unshifted else "upper"
    k = len(model.kernels_)
    name = "impulses" if hasattr(model, "impulses_") else "activations"
    placed = getattr(model, f"{name}_")
    turned = hasattr(model, "copies")
    figure, axes = _grid(figure, k, 2, (8, 2.4 * k))
    for z in range(k):
        cells = np.asarray(model.kernels_[z])
        how: dict[str, Any] = {"origin": origin}
        if decibels is not None:
            top = cells.max()
            cells = 20 * np.log10(np.maximum(cells / top if top > 0 else cells, 10 ** (-decibels / 20)))
            how = {**how, "cmap": "magma", "vmin": -decibels, "vmax": 0}
        _cells(axes[z, 0], cells, **how)
        if turned:
            found = model.copies()
            _copies(axes[z, 1], model, model.component(z), found[found["component"] == z], origin)
        else:
            # Along colours there is no shift.
            _cells(axes[z, 1], placed[z][..., 0] if colours else placed[z], origin=origin)
        weight = f", weight {model.weights_[z]:.2f}" if hasattr(model, "weights_") else ""
        axes[z, 0].set_title(f"kernel {z}{weight}")
        axes[z, 1].set_title(f"copies {z}" if turned else f"{name} {z}")
    return figure


@described
def copies(model: Any, X: Data = None, *, least: float = 0.01, ax: Axes | None = None) -> Axes:
    """Where the kernels of :class:`~plcakit.TransformInvariantPLCA` lie: the outline of every copy over the data.

    Components have different colours, mirrored copies dashed outlines. A line leads from the centre of a copy to the middle of the first row of
    its kernel.

    Parameters
    ----------
    model : TransformInvariantPLCA
        Fitted.
    X : array-like of the shape of the data, default=None
        The data; ``None``: their approximation, :meth:`~plcakit.TransformInvariantPLCA.reconstruct`.
    least : float, default=0.01
        Copies of a smaller probability are left out; see :meth:`~plcakit.TransformInvariantPLCA.copies`.
    %(ax)s

    %(axis)s

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import TransformInvariantPLCA, plot
    >>> X = np.zeros((12, 12))
    >>> X[1:4, 1:3] += [[4, 1], [3, 0], [2, 0]]                 # as it is
    >>> X[7:9, 5:8] += [[1, 0, 0], [4, 3, 2]]                   # turned by 90 degrees
    >>> model = TransformInvariantPLCA(1, kernel=(3, 2), rotations=4, n_init=5, random_state=0).fit(X)
    >>> axis = plot.copies(model, X)
    """
    check_is_fitted(model)
    if not hasattr(model, "copies"):
        raise TypeError(f"model is {model!r}, expected a TransformInvariantPLCA")
    cells = model.reconstruct() if X is None else np.asarray(X)
    if cells.shape != model._shape:
        raise ValueError(f"X has the shape {cells.shape}, expected {model._shape}")
    axis = _axis(ax)
    _copies(axis, model, cells, model.copies(least=least), "upper")
    drawn: Axes = axis
    return drawn


def _cells(ax: Any, cells: Array, **how: Any) -> None:
    """A curve, an image or a colour picture."""
    shown = cells
    if cells.ndim == 2 and 1 in cells.shape:
        shown = cells.ravel()
    if shown.ndim == 1:
        # Few values are bars.
        if len(shown) <= 64:
            floor = min(how.get("vmin", 0), 0)
            ax.bar(range(len(shown)), shown - floor, width=1.0, bottom=floor)
        else:
            ax.plot(shown, linewidth=1)
        ax.margins(x=0)
        ax.locator_params(axis="x", integer=True, nbins=6, min_n_ticks=1)
        if cells.ndim == 2:
            ax.set_xlabel("row" if cells.shape[1] == 1 and cells.shape[0] > 1 else "column")
        return
    rows, columns = cells.shape[:2]
    aspect = "auto" if max(rows, columns) > 4 * min(rows, columns) else "equal"
    if cells.ndim == 3:
        top = cells.max()
        ax.imshow(cells / top if top > 0 else cells, aspect=aspect, interpolation="nearest", origin=how["origin"])
    else:
        _image(ax, cells, aspect=aspect, **how)
    ax.locator_params(integer=True, nbins=4, min_n_ticks=1)


def _copies(ax: Any, model: Any, cells: Array, found: Array, origin: str) -> None:
    """An image and the outlines of copies, of which the model says where they are."""
    from ._transformed import Turn

    if cells.ndim == 3 and cells.shape[2] != 3:
        cells = cells.sum(axis=2)
    _cells(ax, cells if cells.ndim == 3 else np.atleast_2d(cells), origin=origin)
    rows, columns = (extent / 2 for extent in model.kernels_.shape[1:3])
    # Corners of the kernel around its centre, and the middle of its first row.
    points = np.array([[-rows, -columns], [-rows, columns], [rows, columns], [rows, -columns], [-rows, -columns], [0, 0], [-rows, 0]]).T
    for copy in found:
        turn = Turn(float(copy["angle"]), float(copy["scale"]), bool(copy["mirrored"]))
        down, right = turn.matrix() @ points + np.array([[copy["row"]], [copy["column"]]])
        look = {"color": OUTLINES[copy["component"] % len(OUTLINES)], "linewidth": 1.2, "linestyle": "--" if turn.mirrored else "-"}
        ax.plot(right[:5], down[:5], **look)
        ax.plot(right[5:], down[5:], **look)
    edges = [-0.5, len(cells) - 0.5]
    ax.set(xlim=(-0.5, cells.shape[1] - 0.5), ylim=edges if origin == "lower" else edges[::-1])


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
        One that :func:`plcakit.sound.separate` takes.
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
