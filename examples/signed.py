"""A signed matrix with missing cells, filled: python examples/signed.py FOLDER, FOLDER for the model."""

import sys
from pathlib import Path

import numpy as np

from plcakit import SkellamSNMF

data = Path(__file__).parent / "data"
folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
X = np.genfromtxt(data / "signed.csv", delimiter=",").T   # samples x variables; empty cells are NaN
model = SkellamSNMF(3, missing="nan", solver="squarem", random_state=1).fit(X)
model.save(folder / "signed.npz")
filled = model.inverse_transform(model.transform(X))
print("the first sample, its missing cells filled:", filled[0].round(3))
