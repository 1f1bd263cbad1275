"""Pictures of the chapters: python docs/figures/make.py [NAME ...]

Those of the gallery are drawn by the scripts of `python/examples`; the others here, from what the command finds. `PLCA` names the command. Needs
plcakit with the extra `plot`, and Pillow.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from plcakit import load, plot  # noqa: E402

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DATA = ROOT / "examples" / "data"


def plca(line, folder):
    done = subprocess.run([os.environ.get("PLCA", "plca"), *line.split()], capture_output=True, text=True, cwd=folder, check=True)
    return done.stdout


def evidence(folder):
    """The bound of LDA of the example's corpus for several numbers of topics."""
    ranks = range(2, 9)
    bounds = []
    for rank in ranks:
        plca(f"fit plsa --method vb {DATA}/corpus.mtx --rank {rank} --restarts 5 --seed 1 --max-iter 3000 --output m.npz --quiet", folder)
        shown = plca("inspect m.npz", folder)
        bounds.append(next(float(line.split()[1]) for line in shown.splitlines() if line.split()[:1] == ["objective"]))
    figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    ax.plot(ranks, bounds, "o-")
    ax.set(xlabel="topics", ylabel="bound of the log-evidence", title="120 documents about four subjects")
    return figure


def turned_shapes(folder):
    """A letter in four directions, the one kernel that explains all copies, and where these were found."""
    letter = np.array([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0]], float)
    letter = np.pad(letter, ((0, 0), (0, 1)))
    image = np.zeros((26, 40))
    draw = np.random.default_rng(3)
    for n, (row, column) in enumerate((r, c) for r in (2, 10, 18) for c in (2, 10, 18, 26, 33)):
        row, column = row + draw.integers(-1, 2), min(column + draw.integers(-1, 2), 34)
        image[row:row + 5, column:column + 5] += 20 * np.rot90(letter, draw.integers(4))
    image = draw.poisson(image)
    np.savetxt(Path(folder) / "image.csv", image, fmt="%g", delimiter=",")
    plca("fit tiplca image.csv --rank 1 --kernel 5x5 --rotations 4 --prior impulses=entropic:100 --anneal .7,60 --restarts 20 --seed 1 --output m.npz --quiet", folder)
    model = load(Path(folder) / "m.npz")
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.9), layout="constrained", width_ratios=(3, 1))
    plot.copies(model, image, ax=left)
    left.set_title("data, and the copies found")
    right.imshow(model.kernels_[0])
    right.set_title("kernel")
    for ax in (left, right):
        ax.set_axis_off()
    return figure


def wavelets(folder):
    """A wavelet at a few places of a signal, and what is found of it."""
    time = np.arange(24)
    wavelet = np.exp(-((time - 8) / 5.0) ** 2) * np.sin(time / 1.7)
    draw = np.random.default_rng(1)
    places = np.zeros(300 - 23)
    places[[12, 57, 70, 118, 171, 196, 250]] = draw.uniform(1, 3, 7)
    signal = np.convolve(places, wavelet) + 0.05 * draw.standard_normal(300)
    np.save(Path(folder) / "signal.npy", signal)
    plca(
        "fit siskellam --method vb signal.npy --rank 1 --kernel 24 --prior activations=gamma:0.05,0.1 --solver momentum --restarts 10 "
        "--seed 1 --output m.npz --quiet",
        folder,
    )
    model = np.load(Path(folder) / "m.npz")
    shapes = model["atoms_shape"].reshape(24, 2) / model["atoms_shape"].sum()
    found = shapes[:, 0] - shapes[:, 1]
    where = (model["activations_shape"] / model["activations_rate"]).ravel()
    figure, axes = plt.subplot_mosaic([["signal", "signal"], ["atom", "places"]], figsize=(7, 3.4), layout="constrained", width_ratios=(1, 2))
    axes["signal"].plot(signal, linewidth=1)
    axes["signal"].set_title("data", fontsize=10)
    axes["atom"].plot(found, color="C1")
    axes["atom"].axhline(0, color="grey", linewidth=0.5)
    axes["atom"].set_title("atom", fontsize=10)
    axes["places"].vlines(np.arange(len(where)), 0, where, color="C1")
    axes["places"].set_title("activations", fontsize=10)
    return figure


DRAWN = {"evidence": evidence, "turned_shapes": turned_shapes, "wavelets": wavelets}
SCRIPTS = [path.stem for path in sorted((ROOT / "python" / "examples").glob("*.py")) if "sys.argv" in path.read_text()]


def main(names):
    for name in names or [*DRAWN, *SCRIPTS]:
        picture = HERE / f"{name}.png"
        if name in DRAWN:
            with tempfile.TemporaryDirectory() as folder:
                DRAWN[name](folder).savefig(picture, dpi=110)
        else:
            script = ROOT / "python" / "examples" / f"{name}.py"
            subprocess.run([sys.executable, script, picture], check=True, cwd=HERE, env={**os.environ, "MPLBACKEND": "Agg"}, stdout=subprocess.DEVNULL)
        # Few colours are enough, and a third of the size.
        Image.open(picture).convert("RGB").quantize(128).save(picture, optimize=True)
        print(picture.relative_to(ROOT), picture.stat().st_size)


main(sys.argv[1:])
