"""Mixtures on the simplex: samples as shares of a few spectra, by PNTF and by PLCA."""

import sys

import numpy as np

from plcakit import PLCA, PNTF
from plcakit.datasets import make_mixtures

made = make_mixtures()
for model in (PNTF(3, n_init=5, random_state=0), PLCA(3, n_init=5, random_state=0)):
    shares = model.fit(made.X).transform(made.X)          # rows sum to 1
    order = [np.abs(model.components_ - spectrum).sum(axis=1).argmin() for spectrum in made.spectra]
    error = np.abs(shares[:, order] - made.mixtures).mean()
    print(f"{type(model).__name__}: mean error of the shares {error:.4f}, weights {model.weights_[order].round(2)}")

if len(sys.argv) > 1:                                     # a file for the picture
    from plcakit import plot

    plot.components(model).figure.savefig(sys.argv[1])
