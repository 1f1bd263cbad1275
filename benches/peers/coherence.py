"""Coherence of topics that are learnt batch by batch, against the same model of all documents at once, by the command alone.

usage: python coherence.py ap.dat.gz --plca PATH [--model plsa-vb|plsa] [--topics 20,50] [--seeds 5]
                           [--block 256] [--passes 5] [--online KAPPA,T0] [--shape 1/K] [--out OUT.json]

The corpus is in the format of lda-c: one document a line, `M i:c i:c ...`. Every fifth document (4, 9, ...) is held out, its words in the order of the
file going by turns to the half that its mixture is found from and to the half that is scored; the others are learnt from, in the order of the file.
NPMI is the mean over topics and over pairs of their ten most probable words of log((p_ij + e) / (p_i p_j)) / -log(p_ij + e), where p_i is the share
of the documents learnt from that have a word, p_ij of those that have both, and e is 1e-12. Perplexity is exp(-sum ln P(w | d) / n) over the scored words,
P(w | d) with a thousandth of an even distribution. All numbers are means over the seeds.
"""
import argparse
import gzip
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("corpus")
parser.add_argument("--plca", type=Path, required=True)
parser.add_argument("--model", choices=["plsa-vb", "plsa"], default="plsa-vb")
parser.add_argument("--topics", default="20,50")
parser.add_argument("--seeds", type=int, default=5)
parser.add_argument("--block", type=int, default=256)
parser.add_argument("--passes", type=int, default=5)
parser.add_argument("--online", default="0.7,1")
parser.add_argument("--shape", type=float, help="of both priors by variational Bayes")
parser.add_argument("--out")
args = parser.parse_args()

TOP, SMALL = 10, 1e-12

documents = []
with gzip.open(args.corpus, "rt") as lines:
    for line in lines:
        pairs = [field.split(":") for field in line.split()[1:]]
        documents.append([(int(i), int(c)) for i, c in pairs])
words = 1 + max(i for d in documents for i, _ in d)
train = [d for n, d in enumerate(documents) if n % 5 != 4]
tokens = [[i for i, c in d for _ in range(c)] for n, d in enumerate(documents) if n % 5 == 4]
known = [[(i, 1) for i in d[::2]] for d in tokens if len(d) > 1]
scored = [(j, i) for j, d in enumerate(d for d in tokens if len(d) > 1) for i in d[1::2]]
has = np.zeros((len(train), words), bool)
for y, d in enumerate(train):
    has[y, [i for i, _ in d]] = True


def write(path, docs):
    """A matrix of words by documents, in Matrix Market coordinates."""
    cells = {}
    for y, d in enumerate(docs):
        for i, c in d:
            cells[i, y] = cells.get((i, y), 0) + c
    with open(path, "w") as out:
        out.write(f"%%MatrixMarket matrix coordinate integer general\n{words} {len(docs)} {len(cells)}\n")
        out.writelines(f"{i + 1} {y + 1} {c}\n" for (i, y), c in cells.items())


def npmi(basis):
    scores = []
    for topic in basis.T:
        top = np.argsort(-topic, kind="stable")[:TOP]
        part = has[:, top].astype(float)
        joint = part.T @ part / len(train)
        single = np.diag(joint)
        met = np.array([(a, b) for a in range(TOP) for b in range(a) if single[a] * single[b] > 0])
        if len(met):
            a, b = met.T
            p = joint[a, b] + SMALL
            scores.append(np.mean(np.log(p / (single[a] * single[b])) / -np.log(p)))
    return float(np.mean(scores))


def perplexity(basis, mixture):
    j, i = np.array(scored).T
    p = np.einsum("nk,kn->n", basis[i], mixture[:, j])
    return float(np.exp(-np.mean(np.log(0.999 * p + 0.001 / words))))


def run(*line):
    subprocess.run([args.plca, *map(str, line), "--quiet"], check=True)


def judged(folder, k, seed, online):
    prior = f"dirichlet:{args.shape or 1 / k}"
    line = ["fit", args.model, folder / ("batches" if online else "all.mtx"), "--rank", k, "--seed", seed, "--output", folder / "model.npz"]
    if args.model == "plsa-vb":
        line += ["--prior", f"basis={prior}", "--prior", f"mixture={prior}"]
    if online:
        line += ["--online", args.online, "--passes", args.passes]
    elif args.model == "plsa-vb":
        line += ["--max-iter", 20, "--tol", 0]
    else:
        line += ["--max-iter", 100, "--tol", 0]
    run(*line)
    run("transform", folder / "model.npz", folder / "known.mtx", "--output", folder / "mixtures.npz")
    with np.load(folder / "model.npz") as model, np.load(folder / "mixtures.npz") as found:
        return npmi(model["basis"]), perplexity(model["basis"], found["mixture"])


result = []
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "batches").mkdir()
    for n, at in enumerate(range(0, len(train), args.block)):
        write(folder / "batches" / f"{n:04}.mtx", train[at:at + args.block])
    write(folder / "all.mtx", train)
    write(folder / "known.mtx", known)
    for k in map(int, args.topics.split(",")):
        for online in (False, True):
            each = [judged(folder, k, seed, online) for seed in range(args.seeds)]
            mean = np.mean(each, axis=0)
            how = "online" if online else "all at once"
            result.append({"model": args.model, "topics": k, "how": how, "npmi": mean[0], "perplexity": mean[1], "each": each})
            print(f"{args.model} K = {k}, {how}: NPMI {mean[0]:.3f}, perplexity {mean[1]:.0f}", flush=True)
if args.out:
    with open(args.out, "w") as out:
        json.dump({"settings": {n: str(v) for n, v in vars(args).items()}, "results": result}, out, indent=1)
