"""Held-out perplexity of scikit-learn's online LDA against passes; with --plca that of `plca fit plsa-vb --online`, too.

usage: python online_lda.py ap.dat.gz OUT.json [--topics 20] [--block 256] [--passes 20]
                            [--kappa 0.7] [--t0 10] [--seed 0] [--plca PATH [--judged 1,5,20]]

The corpus is in the format of lda-c: one document a line, `M i:c i:c ...`. Protocol:
every tenth document (9, 19, ...) is held out; its words in the order of the file, one after the other, go by turns to the
half that the mixture is found from and to the half that is scored; perplexity exp(-sum ln P(w | d) / n) over
the scored words, P(w | d) from the normalised topics and mixtures. Documents come in the order of the file.
Both have the same batches, step sizes, priors (1 / topics) and inner iterations (100 at most); their starts, and what ends inner iterations, are their own.
The command is run anew for every number of passes that is judged; its seconds are those of the process, with reading its files. scikit-learn's are those of
`partial_fit`. Both have one thread.
"""
import argparse
import gzip
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp
import sklearn
from sklearn.decomposition import LatentDirichletAllocation

parser = argparse.ArgumentParser()
parser.add_argument("corpus")
parser.add_argument("out")
parser.add_argument("--topics", type=int, default=20)
parser.add_argument("--block", type=int, default=256)
parser.add_argument("--passes", type=int, default=20)
parser.add_argument("--kappa", type=float, default=0.7)
parser.add_argument("--t0", type=float, default=10.0)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--plca", type=Path)
parser.add_argument("--judged", default="1,5,20")
args = parser.parse_args()

documents = []
with gzip.open(args.corpus, "rt") as lines:
    for line in lines:
        pairs = [field.split(":") for field in line.split()[1:]]
        documents.append([(int(i), int(c)) for i, c in pairs])
words = 1 + max(i for d in documents for i, _ in d)


def matrix(docs):
    rows = [y for y, d in enumerate(docs) for _ in d]
    pairs = [p for d in docs for p in d]
    cells = ([c for _, c in pairs], (rows, [i for i, _ in pairs]))
    return sp.csr_matrix(cells, shape=(len(docs), words), dtype=np.float64)


def halves(d):
    tokens = [i for i, c in d for _ in range(c)]
    return [(i, 1) for i in tokens[::2]], [(i, 1) for i in tokens[1::2]]


train = matrix([d for n, d in enumerate(documents) if n % 10 != 9])
held = [halves(d) for n, d in enumerate(documents) if n % 10 == 9]
known, scored = matrix([h[0] for h in held]), matrix([h[1] for h in held]).tocoo()



def perplexity(topics, mixtures):
    p = np.einsum("nk,nk->n", mixtures[scored.row], topics.T[scored.col])
    return float(np.exp(-(scored.data @ np.log(p)) / scored.data.sum()))


def ours(passes, folder):
    """Seconds and perplexity of the command after some passes over the batches in a folder."""
    model, answer = folder / "model.npz", folder / "mixtures.npz"
    prior = f"dirichlet:{1 / args.topics}"
    fit = [
        "fit", "plsa-vb", folder / "batches", "--rank", args.topics, "--online", f"{args.kappa},{args.t0}", "--local", "100,1e-3",
        "--passes", passes, "--prior", f"basis={prior}", "--prior", f"mixture={prior}", "--seed", args.seed, "--output", model]
    transform = ["transform", model, folder / "known.mtx", "--output", answer]
    start = time.perf_counter()
    for line in (fit, transform):
        subprocess.run([args.plca, *map(str, line), "--threads", "1", "--quiet"], check=True)
        if line is fit:
            seconds = time.perf_counter() - start
    with np.load(model) as file, np.load(answer) as found:
        return seconds, perplexity(file["basis"].T, found["mixture"].T)


def command():
    """The curve of the command."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "batches").mkdir()
        for n, at in enumerate(range(0, train.shape[0], args.block)):
            scipy.io.mmwrite(folder / "batches" / f"{n:04}.mtx", train[at:at + args.block].T)
        scipy.io.mmwrite(folder / "known.mtx", known.T)
        curve = []
        for passes in map(int, args.judged.split(",")):
            seconds, value = ours(passes, folder)
            curve.append({"pass": passes, "seconds": seconds, "perplexity": value})
            print("plca", passes, f"{seconds:.1f} s", round(value, 1), flush=True)
    return curve


model = LatentDirichletAllocation(
    args.topics, learning_method="online", learning_decay=args.kappa, learning_offset=args.t0,
    batch_size=args.block, total_samples=train.shape[0], random_state=args.seed)
curve, spent = [], 0.0
for n in range(1, args.passes + 1):
    start = time.perf_counter()
    for at in range(0, train.shape[0], args.block):
        model.partial_fit(train[at:at + args.block])
    spent += time.perf_counter() - start
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    mixtures = model.transform(known)
    value = perplexity(topics, mixtures)
    curve.append({"pass": n, "seconds": spent, "perplexity": value})
    print(n, f"{spent:.1f} s", round(value, 1), flush=True)

settings = {name: getattr(args, name) for name in ("topics", "block", "passes", "kappa", "t0", "seed")}
result = {"scikit-learn": sklearn.__version__, "settings": settings, "curve": curve}
if args.plca is not None:
    result["plca"] = command()
with open(args.out, "w") as out:
    json.dump(result, out, indent=1)
