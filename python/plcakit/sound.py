"""Separation of sounds: the parts of a spectrogram from the components of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._types import Array, Data

__all__ = ["separate"]


def separate(S: Data, model: Any) -> Array:
    r"""The parts of a spectrogram, by Wiener masks: they add up to it.

    .. math:: S_z = S \odot \frac{W_z H_z}{\sum_{z'} W_{z'} H_{z'}}

    Parameters
    ----------
    S : array-like of shape (n_frequencies, n_frames)
        Magnitudes, or the complex values of a short-time transform: the magnitudes are explained, and the parts have the phases.
    model : estimator
        Fitted to the frames as samples, that is to ``abs(S).T``: one with ``components_`` and mixtures of them, such as
        :class:`~plcakit.NMF`, :class:`~plcakit.PLSA`, :class:`~plcakit.PLCA` or :class:`~plcakit.PNTF`.

    Returns
    -------
    parts : ndarray of shape (n_components, n_frequencies, n_frames)
        A part for every component. What no component explains is shared evenly.

    Examples
    --------
    >>> import numpy as np
    >>> from plcakit import NMF
    >>> from plcakit.sound import separate
    >>> S = np.array([[3.0, 0.0, 3.0], [0.0, 2.0, 2.0]])
    >>> parts = separate(S, NMF(2, random_state=0).fit(S.T))
    >>> parts.shape, bool(np.allclose(parts.sum(axis=0), S))
    ((2, 2, 3), True)
    """
    check_is_fitted(model)
    S = np.asarray(S)
    if S.ndim != 2:
        raise ValueError(f"S has {S.ndim} dimensions, expected frequencies by frames")
    components = np.asarray(model.components_)
    if components.ndim != 2 or components.shape[1] != S.shape[0]:
        raise ValueError(f"S has {S.shape[0]} frequencies, the components of the model have the shape {components.shape[1:]}")
    W = np.asarray(model.transform(np.abs(S).T))
    parts = W.T[:, np.newaxis, :] * components[:, :, np.newaxis]
    whole = parts.sum(axis=0)
    parts = np.divide(parts, whole, out=np.full_like(parts, 1 / len(parts)), where=whole > 0)
    masked: Array = parts * S
    return masked
