"""As in librosa: its `decompose` takes any estimator of this package as its transformer.

With librosa: `components, activations = librosa.decompose.decompose(S, transformer=model, sort=True)`.
"""

import numpy as np

from plcakit import NMF, PLSA
from plcakit.datasets import make_notes


def decompose(S, transformer, sort=False):
    """Frequencies by frames as components times activations, with the conventions of librosa."""
    activations = transformer.fit_transform(S.T).T
    components = transformer.components_.T
    if sort:                                              # by the frequency of the peak
        order = components.argmax(axis=0).argsort(kind="stable")
        components, activations = components[:, order], activations[order]
    return components, activations


S = make_notes().spectrogram
for transformer in (NMF(3, n_init=5, random_state=0), PLSA(3, n_init=5, random_state=0)):
    components, activations = decompose(S, transformer, sort=True)
    if isinstance(transformer, PLSA):                     # its activations are shares of every frame
        activations = activations * S.sum(axis=0)
    error = np.linalg.norm(S - components @ activations) / np.linalg.norm(S)
    print(type(transformer).__name__, components.shape, activations.shape, f"relative error {error:.2f}")
