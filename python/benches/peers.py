"""Time to the final objective of other packages, from the same start, side by side in one process.

    python python/benches/peers.py [--quick]

For every peer that is installed: it runs its iterations; then ours runs from the same `W` and `H` until its objective, the Kullback-Leibler
divergence as scikit-learn computes it, is as small. `OMP_NUM_THREADS` limits the threads of both.
"""

import argparse
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.exceptions import ConvergenceWarning

from plcakit import NMF


def dense(rows, columns, k, seed=0):
    draw = np.random.default_rng(seed)
    W, H = draw.gamma(0.5, size=(rows, k)), draw.gamma(0.5, size=(k, columns))
    return draw.poisson(5 * W @ H) + 1e-3


def corpus(documents, words, per_document, seed=0):
    """Words by a law of Zipf, topics of a tenth of them."""
    draw = np.random.default_rng(seed)
    n = documents * per_document
    topic = draw.integers(20, size=documents).repeat(per_document)
    rank = np.minimum(words * draw.random(n) ** 3, words - 1).astype(int)
    column = np.where(draw.random(n) < 0.5, rank, (rank * 7 + topic * 131) % words)
    row = np.arange(documents).repeat(per_document)
    return sparse.csr_matrix((np.ones(n), (row, column)), shape=(documents, words))


def start(X, k, seed=0):
    draw = np.random.default_rng(seed)
    scale = np.sqrt(X.mean() / k)
    return [scale * (0.5 + draw.random(shape)) for shape in ((X.shape[0], k), (k, X.shape[1]))]


def scikit_learn(X, W, H, iterations):
    model = SklearnNMF(
        W.shape[1], init="custom", solver="mu", beta_loss="kullback-leibler", max_iter=iterations, tol=0
    )
    model.fit_transform(X, W=W.copy(), H=H.copy())
    return model.reconstruction_err_**2 / 2


def torchnmf(X, W, H, iterations):
    import torch
    from torchnmf.nmf import NMF as TorchNMF

    if sparse.issparse(X):
        return None
    model = TorchNMF(W=torch.tensor(H.T.copy()), H=torch.tensor(W.copy()))
    V = torch.tensor(X)
    model.fit(V, beta=1, tol=0, max_iter=iterations)
    Y = model().detach().numpy()
    return float((X * np.log(X / Y) - X + Y).sum())


PEERS = {"scikit-learn mu": scikit_learn, "torchnmf": torchnmf}


def ours(X, W, H, target):
    """The seconds until the objective is as small, of the default solver."""
    begin, reached = time.perf_counter(), []

    def watch(iteration, objective):
        if objective <= target:
            reached.append(time.perf_counter() - begin)
        return bool(reached)

    model = NMF(W.shape[1], init="custom", tol=0, solver="fast", max_iter=100_000, callback=watch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, W=W, H=H)
    return reached[0], model.n_iter_


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="small data")
    quick = arguments.parse_args().quick
    if quick:
        data = {"dense 200 x 300, K = 10": (dense(200, 300, 10), 10), "sparse 1000 x 800, K = 10": (corpus(1000, 800, 40), 10)}
    else:
        data = {
            "dense 1025 x 3000, K = 40": (dense(1025, 3000, 40), 40),
            "sparse 18000 x 10000, K = 20": (corpus(18000, 10000, 90), 20),
        }
    print(f"{'data':32} {'peer':18} {'iterations':>10} {'seconds':>9} {'ours':>9} {'ratio':>7}")
    for name, (X, k) in data.items():
        W, H = start(X, k)
        for peer, run in PEERS.items():
            iterations = 200
            begin = time.perf_counter()
            try:
                target = run(X, W, H, iterations)
            except ImportError:
                print(f"{name:32} {peer:18} is not installed")
                continue
            seconds = time.perf_counter() - begin
            if target is None:
                print(f"{name:32} {peer:18} takes no such data")
                continue
            mine, _ = ours(X, W, H, target)
            print(f"{name:32} {peer:18} {iterations:10} {seconds:9.2f} {mine:9.2f} {seconds / mine:7.1f}", flush=True)


if __name__ == "__main__":
    main()
