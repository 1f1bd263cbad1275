"""Shifted shapes: kernels that lie anywhere in an image, and where they lie."""

import sys

from plcakit import ShiftInvariantPLCA
from plcakit.datasets import make_shapes

shapes = make_shapes()
# A few places are preferred to many: without that one bright cell would do as a kernel.
prior = {"impulses": "entropic:.2r"}
model = ShiftInvariantPLCA(2, kernel=(5, 5), prior=prior, n_init=20, random_state=0).fit(shapes.image)

for kernel, impulses in zip(model.kernels_, model.impulses_):
    print(f"{(impulses > 0.01).sum()} times")
    for row in kernel:
        print("   ", "".join("#" if cell > 0.02 else "." for cell in row))

if len(sys.argv) > 1:                                     # a file for the picture
    from plcakit import plot

    plot.kernels(model).savefig(sys.argv[1])
