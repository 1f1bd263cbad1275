"""Samples as shares of a few spectra: python examples/spectra.py FOLDER, FOLDER for the model."""

import sys
from pathlib import Path

import numpy as np

from plcakit import PNTF

data = Path(__file__).parent / "data"
folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
X = np.loadtxt(data / "spectra.csv", delimiter=",")       # samples x wavelengths
model = PNTF(3, random_state=1).fit(X)
for z, (spectrum, weight) in enumerate(zip(model.components_, model.weights_)):
    print(f"spectrum {z}: {weight:.0%} of all, highest at {spectrum.argmax()}")
model.save(folder / "spectra.npz")
