"""Separation of sounds: the parts of a spectrogram from the components of a model."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from . import _core
from ._nmf import NMF
from ._plca import PLCA
from ._plsa import PLSA
from ._pntf import PNTF
from ._shifted import ShiftInvariantPLCA
from ._types import Array, Data

__all__ = ["separate"]

#: Iterations of tempered EM; from twice as many the spectra hardly differ.
_TEMPERED = 40


def separate(S: Data, model: Any, *, along: int | None = None, temper: float = 0.9) -> Array:
    r"""The parts of a spectrogram, by Wiener masks: they add up to it.

    .. math:: S_z = S \odot \frac{W_z H_z}{\sum_{z'} W_{z'} H_{z'}}

    The spectra of the model stay as they are, and their activations in `S` are found anew: so `S` may be another sound than the one that the
    model was fitted to. Of several models, each of a source that was learnt alone, the parts are those of the sources.

    Parameters
    ----------
    S : array-like of shape (n_frequencies, n_frames)
        Magnitudes, or the complex values of a short-time transform: the magnitudes are explained, and the parts have the phases.
    model : estimator
        :class:`~plcakit.NMF`, :class:`~plcakit.PLSA`, :class:`~plcakit.PLCA` or :class:`~plcakit.PNTF`, fitted to the frames as samples, that is to
        ``abs(S).T``, or one that :func:`plcakit.load` read from a file of the command, where the frequencies are rows. Or a
        :class:`~plcakit.ShiftInvariantPLCA`, fitted to ``abs(S)``. Others need ``components_``, and a ``transform`` of frames as samples.
        A list of models of the first four kinds: the spectra of all explain `S` together, and a part is what one model explains.
    along : {0, 1} or None, default=None
        The dimension of the data of the fit along which the frames lie: 0 for ``abs(S).T``, 1 for ``abs(S)``. ``None``: the one that is not
        as long as there are frequencies; where both are, that of `ShiftInvariantPLCA` is 1, and of others it must be given.
    temper : float, default=0.9
        For a list of models: the power, in (0, 1], of the tempered EM by which each is first learnt again from its own approximation, from a start half-way between its components and
        their mean. Spectra that fit one recording as closely as they can explain another one of the same source worse; 1 takes them as they are.

    Returns
    -------
    parts : ndarray of shape (n_components, n_frequencies, n_frames)
        A part for every component, of a list for every model. What none explains is shared evenly.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import NMF
    >>> from plcakit.sound import separate
    >>> S = np.array([[3.0, 0.0, 3.0], [0.0, 2.0, 2.0]])
    >>> parts = separate(S, NMF(2, random_state=0).fit(S.T))
    >>> parts.shape, bool(np.allclose(parts.sum(axis=0), S))
    ((2, 2, 3), True)

    Two sources whose spectra were learnt alone, and their mixture:

    >>> piano, drums = np.array([[3.0, 3.0], [1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 0.0], [2.0, 4.0]])
    >>> models = [NMF(1, random_state=0).fit(source.T) for source in (piano, drums)]
    >>> parts = separate(piano + drums, models)
    >>> bool(np.allclose(parts, [piano, drums]))
    True
    """
    models = list(model) if isinstance(model, (list, tuple)) else None
    for one in [model] if models is None else models:
        check_is_fitted(one)
    if models is not None and not models:
        raise ValueError("model is an empty list, expected at least one model")
    if not 0 < temper <= 1:
        raise ValueError(f"temper is {temper!r}, expected a number in (0, 1]")
    if np.ma.is_masked(S):
        raise ValueError("S has masked cells: expected all of them, such as S.filled(0)")
    S = np.asarray(S)
    if S.dtype.kind in "iuf" and (S < 0).any():
        raise ValueError("S has negative values: expected magnitudes, or the complex values of a transform")
    if S.ndim != 2:
        raise ValueError(f"S has {S.ndim} dimensions, expected frequencies by frames")
    if along not in (None, 0, 1):
        raise ValueError(f"along is {along!r}, expected 0, 1 or None")
    magnitudes = check_array(np.abs(S), dtype=[np.float64, np.float32], input_name="S")
    if models is not None:
        parts = _sources(magnitudes, models, along, float(temper))
    elif isinstance(model, ShiftInvariantPLCA):
        parts = _shifted(magnitudes, model, along)
    else:
        parts = _mixed(magnitudes, model, along)
    whole = parts.sum(axis=0)
    parts = np.divide(parts, whole, out=np.full_like(parts, 1 / len(parts)), where=whole > 0)
    masked: Array = parts * S
    return masked


def _mixed(S: Array, model: Any, along: int | None) -> Array:
    """What spectra explain of magnitudes, up to a factor for every frame."""
    if not hasattr(model, "components_") or not hasattr(model, "transform"):
        raise TypeError(f"model is {model!r}, expected NMF, PLSA, PLCA, PNTF or ShiftInvariantPLCA")
    along = _along(S, model, along)
    components = np.asarray(model.components_)
    if not S.any():
        return np.zeros((len(components), *S.shape))
    if along == 0:
        return np.asarray(model.transform(S.T)).T[:, np.newaxis, :] * components[:, :, np.newaxis]
    found = model._find(S, None, 1)["arrays"]
    spectra = found["w" if "w" in found else "factor_0"] * found.get("weights", 1)
    frames = found["factor_1"].T if "factor_1" in found else found["h" if "h" in found else "mixture"]
    parts: Array = spectra.T[:, :, np.newaxis] * frames[:, np.newaxis, :]
    return parts


def _along(S: Array, model: Any, along: int | None) -> int:
    """The dimension of the data of the fit along which the frames lie."""
    components = np.asarray(model.components_)
    # Those whose spectra may be of either dimension.
    either = isinstance(model, (NMF, PLCA, PNTF)) and components.ndim == 2
    shape = model._shape if either else (0, *components.shape[1:])
    fitting = [mode for mode in (0, 1) if len(shape) == 2 and shape[1 - mode] == len(S) and (mode == 0 or either)]
    if along is None and len(fitting) == 2:
        raise ValueError(
            f"S has {len(S)} frequencies, and the model was fitted to data of the shape {tuple(shape)}: along=0 if that was abs(S).T, "
            "along=1 if it was abs(S), as of the command"
        )
    along = fitting[0] if along is None and fitting else along
    if along not in fitting:
        was = f"was fitted to data of the shape {tuple(shape)}" if either else f"has components of the shape {components.shape[1:]}"
        raise ValueError(f"S has {len(S)} frequencies, the model {was}: fit it to abs(S).T, frames by frequencies")
    return int(along)


def _sources(S: Array, models: list[Any], along: int | None, temper: float) -> Array:
    """What each of several models explains of magnitudes, all together."""
    spectra = [_spectra(S, model, along, temper) for model in models]
    w = np.concatenate(spectra, axis=1)
    parts = np.zeros((len(models), *S.shape))
    # No spectrum has anything elsewhere.
    known = w.any(axis=1)
    if not S[known].any():
        return parts
    h = NMF(w.shape[1], freeze="h", random_state=0).fit_transform(S[known].T, start={"h": w[known].T})
    first = 0
    for part, own in zip(parts, spectra):
        last = first + own.shape[1]
        part[:] = own @ h[:, first:last].T
        first = last
    return parts


def _spectra(S: Array, model: Any, along: int | None, temper: float) -> Array:
    """The spectra of a source, in columns, made broader by tempered EM."""
    if not isinstance(model, (NMF, PLSA, PLCA, PNTF)):
        raise TypeError(f"model is {model!r} in a list, expected NMF, PLSA, PLCA or PNTF")
    along = _along(S, model, along)
    text = json.dumps(model._facts())
    whole: Any = 0
    w, h = [], []
    for z in range(model.n_components_):
        cells = np.asarray(_core.reconstruct(model._model(), model._blocks, text, False, z))
        cells = cells if along == 1 else cells.T
        whole = whole + cells
        w.append(cells.sum(axis=1))
        h.append(cells.sum(axis=0))
    W, H = np.array(w, dtype=float).T, np.array(h, dtype=float).T
    mass = W.sum(axis=0)
    heard = mass > 0
    if temper == 1 or not heard.any():
        return W
    W, H, mass = W[:, heard] / mass[heard], H[:, heard] / mass[heard], mass[heard] / mass.sum()
    start = {"weights": mass, "factor_0": (W + (W @ mass)[:, np.newaxis]) / 2, "factor_1": (H + (H @ mass)[:, np.newaxis]) / 2}
    broad = PLCA(len(mass), temper=temper, solver="em", tol=0, max_iter=_TEMPERED, random_state=0).fit(whole, start=start)
    spectra: Array = np.asarray(broad._blocks["factor_0"], dtype=float)
    return spectra


def _shifted(S: Array, model: ShiftInvariantPLCA, along: int | None) -> Array:
    """What shifted kernels explain of magnitudes."""
    shape = model._shape
    fitting = [mode for mode in (1, 0) if len(shape) == 2 and shape[1 - mode] == len(S)]
    along = fitting[0] if along is None and fitting else along
    if along not in fitting:
        raise ValueError(f"S has {len(S)} frequencies, the model was fitted to data of the shape {shape}: fit it to abs(S), frequencies by frames")
    if not S.any():
        return np.zeros((model.n_components_, *S.shape))
    X = S if along == 1 else S.T
    found = model._explain(X, None)[1]["arrays"]
    metadata = model._facts()
    metadata["facts"] |= {"shape": X.shape, "places": found["impulses"].shape[1:]}
    text = json.dumps(metadata)
    parts = np.stack([_core.reconstruct(model._model(), found, text, False, z) for z in range(model.n_components_)])
    return parts if along == 1 else parts.transpose(0, 2, 1)
