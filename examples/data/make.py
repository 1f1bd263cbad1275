"""Writes the data of the examples from their seeds: python examples/data/make.py"""

from pathlib import Path

import numpy as np
from scipy.io import mmwrite, wavfile

from plcakit import datasets

folder = Path(__file__).parent
corpus = datasets.make_corpus()
mmwrite(folder / "corpus.mtx", corpus.counts.T.astype(int).tocoo(), comment=" counts of words (rows) in documents (columns)")
(folder / "words.txt").write_text("\n".join(corpus.words) + "\n")
notes = datasets.make_notes()
wavfile.write(folder / "notes.wav", notes.rate, np.round(notes.sound * 32767).astype(np.int16))
# A column per sample; a cell that is missing is empty.
rows = [["" if np.isnan(x) else f"{x:.3f}" for x in row] for row in datasets.make_signed().X.T]
(folder / "signed.csv").write_text("\n".join(map(",".join, rows)) + "\n")
mixtures = datasets.make_mixtures()
np.savetxt(folder / "spectra.csv", mixtures.X, fmt="%.4g", delimiter=",")
np.savetxt(folder / "shapes.csv", datasets.make_shapes().image, fmt="%.4g", delimiter=",")
