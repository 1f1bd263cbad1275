"""How much memory fits take beside the data: limits in bytes, each in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from /proc")

#: Fits one estimator to the data of one kind; prints the peak above what was resident before, and what the limit is made of.
CHILD = """
import json, re, sys
from pathlib import Path
import numpy as np
from scipy import sparse
from plcakit import NMF

kind, solver = sys.argv[1:]
draw = np.random.default_rng(0)


def csr(shape, stored, ordered, drawn=lambda n: draw.random(n) + 0.1):
    indices = draw.integers(0, shape[1], (shape[0], stored), dtype=np.int32)
    if ordered:
        # No index twice: one of every part of the row.
        width = shape[1] // stored
        indices %= width
        indices += np.arange(stored, dtype=np.int32) * width
    values = drawn(indices.size)
    ends = np.arange(0, indices.size + 1, stored, dtype=np.int32)
    return sparse.csr_matrix((values, indices.ravel(), ends), shape=shape)


def status(name):
    return int(re.search(name + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) << 10


X = {
    "c": lambda: draw.random((10000, 2600)),
    "f": lambda: np.asfortranarray(draw.random((2600, 10000))),
    "some zeros": lambda: np.maximum(draw.random((10000, 2600)) - 0.7, 0.0),
    "csr": lambda: csr((100_000, 20_000), 175, True),
    "wide csr": lambda: csr((20_000, 100_000), 875, True),
    "csr in any order": lambda: csr((100_000, 20_000), 175, False),
    "csc": lambda: csr((20_000, 100_000), 875, True).T,
    # As CountVectorizer makes them.
    "csr of int64": lambda: csr((100_000, 20_000), 175, True, lambda n: draw.integers(1, 9, n)),
}[kind]()
if sparse.issparse(X):
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
else:
    size = X.nbytes
model = NMF(8, solver=solver, tol=1e-9, max_iter=2, random_state=0, n_jobs=2)
# What is loaded and started once.
model.fit(np.ones((9, 8)) + np.eye(9, 8))
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
model.fit(X)
peak = status("VmHWM") - before
print(json.dumps({"peak": peak, "size": size, "factors": 8 * 8 * sum(X.shape)}))
"""


@pytest.mark.parametrize(
    "kind, solver, share",
    [
        ("c", "fast", 0.25),
        ("c", "em", 0.25),
        # Copied once into the order of the rows.
        ("f", "fast", 1.25),
        ("some zeros", "fast", 0.25),
        ("csr", "fast", 1.5),
        ("csr", "em", 1.5),
        # Its values become floating point.
        ("csr of int64", "em", 1.5),
        pytest.param("wide csr", "fast", 1.5, marks=pytest.mark.long),
        pytest.param("csr in any order", "fast", 1.5, marks=pytest.mark.long),
        ("csc", "em", 1.5),
    ],
)
def test_peak_above_the_data(kind, solver, share):
    command = [sys.executable, "-W", "ignore", "-c", CHILD, kind, solver]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["size"] >= 200e6
    limit = share * found["size"] + 8 * found["factors"] + (64 << 20)
    assert found["peak"] <= limit, f"{found['peak'] / 1e6:.0f} MB above the data, allowed are {limit / 1e6:.0f} MB: {found}"
    # The clock of the kernel went on: a peak of nothing would be no measurement.
    assert found["peak"] > 0
