"""Topics of a corpus: words that go together, and what every document is about."""

import sys

from plcakit import PLSA
from plcakit.datasets import make_corpus

corpus = make_corpus()                                    # with your own texts: CountVectorizer().fit_transform(texts)
model = PLSA(n_components=4, n_init=5, random_state=0).fit(corpus.counts)

for topic, weight in zip(model.components_, model.weights_):
    print(f"{weight:4.0%}", *corpus.words[topic.argsort()[::-1][:8]])

mixtures = model.transform(corpus.counts)                 # P(topic | document)
print("the first document:", mixtures[0].round(2))
print("perplexity:", round(model.perplexity(corpus.counts), 1), "of", len(corpus.words), "words")

if len(sys.argv) > 1:                                     # a file for the picture
    from plcakit import plot

    plot.topics(model, corpus.words).savefig(sys.argv[1])
