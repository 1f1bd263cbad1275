"""A sweep of restarts and ranks, ours and that of scikit-learn through joblib on all processors.

    python python/benches/consensus.py [--quick]

100 restarts of each of K = 5..9, 200 iterations of every fit, on counts of 3000 documents and 2000 words, 5 % filled. Ours is a whole
`ConsensusNMF`, the consensus included. Of scikit-learn, multiplicative updates under the Kullback-Leibler divergence, five runs a rank are timed
and multiplied; every process has one thread. Both make the same iterations, so that the mean divergence at their end tells whether they do the
same work.
"""

import argparse
import os
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.exceptions import ConvergenceWarning

from plcakit import ConsensusNMF

TIMED = 5


def counts(documents, words, topics, seed=0):
    """Tokens of a few topics per document, until 5 % of the cells are filled."""
    draw = np.random.default_rng(seed)
    of_words = draw.dirichlet(np.full(words, 0.1), size=topics)
    mixtures = draw.dirichlet(np.full(topics, 0.3), size=documents)
    means = mixtures @ of_words
    tokens = 0.05 * words
    while True:
        X = sparse.csr_matrix(draw.poisson(tokens * means).astype(float))
        if X.nnz >= 0.05 * documents * words:
            return X
        tokens *= 1.05


def scikit_learn(X, k, iterations, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SklearnNMF(
            k,
            init="random",
            solver="mu",
            beta_loss="kullback-leibler",
            max_iter=iterations,
            tol=0,
            random_state=seed,
        ).fit(X)
    return model.reconstruction_err_**2 / 2


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="a small case, to see that everything runs")
    quick = options.parse_args().quick
    documents, words, restarts, iterations = (300, 200, 10, 20) if quick else (3000, 2000, 100, 200)
    ranks = list(range(5, 10))
    X = counts(documents, words, 7)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{documents} x {words}, {X.nnz / documents / words:.1%} filled, {processors} processors")

    model = ConsensusNMF(
        ranks, n_runs=restarts, solver="em", tol=0, max_iter=iterations, threshold=2.0, random_state=0, n_jobs=-1
    )
    begin = time.perf_counter()
    model.fit(X)
    ours = time.perf_counter() - begin
    print(f"ours: {ours:.1f} s, {len(ranks) * restarts} fits and their consensus")
    print("  stability", dict(zip(ranks, model.stability_.round(3).tolist())))

    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    theirs = 0.0
    with Parallel(n_jobs=processors) as pool:
        # Processes are started before the clock is.
        pool(delayed(scikit_learn)(X, 2, 1, seed) for seed in range(processors))
        for k in ranks:
            begin = time.perf_counter()
            ends = pool(delayed(scikit_learn)(X, k, iterations, seed) for seed in range(TIMED))
            seconds = time.perf_counter() - begin
            theirs += seconds * restarts / TIMED
            note = ""
            if k == model.n_components_:
                note = f", divergence {np.mean(ends):.6g}, ours {model.objectives_.mean():.6g}"
            print(f"  scikit-learn, K = {k}: {seconds:.1f} s for {TIMED} fits{note}")
    print(f"scikit-learn: {theirs:.1f} s for all fits, by multiplication; {theirs / ours:.1f} times ours")


if __name__ == "__main__":
    main()
