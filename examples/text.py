"""Topics of a corpus: python examples/text.py FOLDER, FOLDER for the model."""

import sys
from pathlib import Path

from scipy.io import mmread

from plcakit import PLSA

data = Path(__file__).parent / "data"
folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
words = (data / "words.txt").read_text().split()
counts = mmread(data / "corpus.mtx").T.tocsr()            # documents x words
model = PLSA(4, random_state=1).fit(counts)
for topic in model.components_:
    print(*[words[i] for i in topic.argsort()[::-1][:8]])
model.save(folder / "topics.npz")
print("the first document:", model.transform(counts)[0].round(2))
