"""How many topics a corpus has, and which: what many fits from different starts agree on."""

import sys

from plcakit import ConsensusNMF
from plcakit.datasets import make_corpus

corpus = make_corpus()
model = ConsensusNMF(range(2, 8), n_runs=20, random_state=0).fit(corpus.counts)

for k, stability, error in zip(model.ranks_, model.stability_, model.prediction_error_):
    print(f"{k} components: stability {stability:.3f}, error {error:.0f}", "<- taken" if k == model.n_components_ else "")
for component in model.components_:
    print("   ", *corpus.words[component.argsort()[::-1][:6]])
usage = model.transform(corpus.counts)
print("documents that use each component most:", [int((usage.argmax(axis=1) == k).sum()) for k in range(usage.shape[1])])

if len(sys.argv) > 1:                                     # a file for the picture
    from plcakit import plot

    plot.stability_error(model).figure.savefig(sys.argv[1])
