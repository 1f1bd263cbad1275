"""A signed matrix with missing cells: non-negative amounts of signed patterns, and the cells filled."""

import sys

import numpy as np

from plcakit import SkellamSNMF
from plcakit.datasets import make_signed

signed = make_signed()                                    # NaN where a cell is missing
# By plain EM it ends farther off, after six times the iterations.
model = SkellamSNMF(n_components=3, missing="nan", solver="squarem", random_state=0).fit(signed.X)

amounts = model.transform(signed.X)
filled = model.inverse_transform(amounts)
hidden = np.isnan(signed.X)
error = np.sqrt(np.mean((filled - signed.complete)[hidden] ** 2))
print(f"{hidden.mean():.0%} of the cells are missing; error there {error:.3f}, spread {signed.complete[hidden].std():.3f}")
print("smallest amount:", amounts.min(), " smallest entry of a pattern:", model.components_.min().round(3))

if len(sys.argv) > 1:                                     # a file for the picture
    from plcakit import plot

    plot.components(model).figure.savefig(sys.argv[1])
