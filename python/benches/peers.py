"""Time to the final objective of other packages, from the same start, side by side in one process.

    python python/benches/peers.py [--quick] [--threads N] [--repeat N]

Every peer that is installed makes its iterations from a start that is given. Then ours goes from the same start until its objective is as
good, and what it ends with is judged by the same formula as the peer's end, in double precision. The time of both is that of the whole
call of `fit`; the least of the repetitions counts. Packages beside scikit-learn: `pip install torch torchnmf enstop`.

The exit status is 1 if ours did not get there.
"""

import argparse
import sys
import time
import warnings
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.decomposition import NMF as SklearnNMF
from threadpoolctl import threadpool_limits

from plcakit import NMF, PLCA, PLSA, ShiftInvariantPLCA

# Data, each from a seed ---------------------------------------------------------------------------------------------------------------


def dense(rows, columns, k):
    draw = np.random.default_rng(0)
    W, H = draw.gamma(0.5, size=(rows, k)), draw.gamma(0.5, size=(k, columns))
    return draw.poisson(5 * W @ H) + 1e-3


def corpus(documents, words, per_document):
    """Words by a law of Zipf, topics of a tenth of them."""
    draw = np.random.default_rng(0)
    n = documents * per_document
    topic = draw.integers(20, size=documents).repeat(per_document)
    rank = np.minimum(words * draw.random(n) ** 3, words - 1).astype(int)
    column = np.where(draw.random(n) < 0.5, rank, (rank * 7 + topic * 131) % words)
    row = np.arange(documents).repeat(per_document)
    return sparse.csr_matrix((np.ones(n), (row, column)), shape=(documents, words))


def shifted(shape, kernel, k):
    """Patterns in many places, and a little everywhere."""
    draw = np.random.default_rng(0)
    patterns = draw.gamma(0.3, size=(k, *kernel))
    places = tuple(n - m + 1 for n, m in zip(shape, kernel))
    impulses = draw.gamma(1.0, size=(k, *places)) * (draw.random((k, *places)) < 0.02)
    return convolved(patterns, impulses) + 1e-3


# Objectives, in double precision ------------------------------------------------------------------------------------------------------


def convolved(kernels, impulses):
    kernels, impulses = np.float64(kernels), np.float64(impulses)
    out = np.zeros([n + m - 1 for n, m in zip(kernels.shape[1:], impulses.shape[1:])])
    for t in np.ndindex(*kernels.shape[1:]):
        part = tuple(slice(i, i + n) for i, n in zip(t, impulses.shape[1:]))
        out[part] += np.tensordot(kernels[(slice(None), *t)], impulses, axes=1)
    return out


def at_entries(X, W, H):
    """The values of `X` that are not 0, and those of `W H` there."""
    W, H = np.float64(W), np.float64(H)
    if not sparse.issparse(X):
        return X, W @ H
    X = X.tocoo()
    parts = np.array_split(np.arange(X.nnz), X.nnz // 2**18 + 1)
    Y = [np.einsum("nk,nk->n", W[X.row[part]], H.T[X.col[part]]) for part in parts]
    return np.float64(X.data), np.concatenate(Y)


def log_likelihood(V, P):
    return float((V * np.log(np.maximum(P, 1e-300))).sum())


def divergence(X, W, H):
    V, Y = at_entries(X, W, H)
    return float((V * np.log(V)).sum() - log_likelihood(V, Y) - V.sum() + np.float64(W).sum(axis=0) @ np.float64(H).sum(axis=1))


# What is fitted: a start, what it is worth, and how ours is called ----------------------------------------------------------------------


class Problem(NamedTuple):
    """A model of data with a start, a dict of the blocks of our estimator; larger values are better."""

    model: object
    X: object
    start: dict
    value: object


def distribution(x, axes):
    return x / x.sum(axis=axes, keepdims=True)


def nmf(X, k):
    draw = np.random.default_rng(1)
    scale = np.sqrt(X.mean() / k)
    w, h = (scale * (0.5 + draw.random(shape)) for shape in ((X.shape[0], k), (k, X.shape[1])))
    return Problem(NMF(k), X, {"w": w, "h": h}, lambda w, h: -divergence(X, w, h))


def plca(X, k):
    draw = np.random.default_rng(1)
    factors = {f"factor_{j}": distribution(0.5 + draw.random((n, k)), 0) for j, n in enumerate(X.shape)}
    start = {"weights": np.full(k, 1 / k), **factors}
    return Problem(PLCA(k), X, start, lambda weights, factor_0, factor_1: log_likelihood(*at_entries(X, factor_0 * weights, factor_1.T)))


def plsa(X, k):
    # The peer has single precision: so has ours.
    X = X.astype(np.float32)
    draw = np.random.default_rng(1)
    shapes = {"basis": (X.shape[1], k), "mixture": (k, X.shape[0])}
    start = {name: distribution(0.5 + draw.random(shape), 0).astype(np.float32) for name, shape in shapes.items()}
    return Problem(PLSA(k), X, start, lambda basis, mixture, **_: log_likelihood(*at_entries(X, mixture.T, basis.T)))


def siplca(X, k, kernel):
    draw = np.random.default_rng(1)
    shapes = {"kernels": (k, *kernel), "impulses": (k, *(n - m + 1 for n, m in zip(X.shape, kernel)))}
    start = {name: distribution(0.5 + draw.random(shape), (1, 2)) for name, shape in shapes.items()}

    def value(weights, kernels, impulses):
        return log_likelihood(X, convolved(weights[:, None, None] * kernels, impulses))

    return Problem(ShiftInvariantPLCA(k, kernel=kernel), X, {"weights": np.full(k, 1 / k), **start}, value)


# Peers: a function that makes the call, and one that gives its end as our blocks ----------------------------------------------------------


def scikit_learn(problem, iterations, threads):
    w, h = problem.start.values()
    model = SklearnNMF(w.shape[1], init="custom", solver="mu", beta_loss="kullback-leibler", max_iter=iterations, tol=0)
    W = model.fit_transform(problem.X, W=w.copy(), H=h.copy())
    return lambda: {"w": W, "h": model.components_}


def _torch(threads, *arrays):
    import torch

    torch.set_num_threads(threads)
    # Of the values that torchnmf makes for sparse data.
    torch.set_default_dtype(torch.float64)
    return torch, [torch.from_numpy(np.ascontiguousarray(array)) for array in arrays]


def _arrays(*tensors):
    return [tensor.detach().numpy() for tensor in tensors]


def torchnmf_nmf(problem, iterations, threads):
    from torchnmf.nmf import NMF as TorchNMF

    X = problem.X
    torch, (w, h) = _torch(threads, problem.start["w"], problem.start["h"].T)
    if sparse.issparse(X):
        X = X.tocoo()
        at = torch.from_numpy(np.stack([X.row, X.col]).astype(np.int64))
        V = torch.sparse_coo_tensor(at, torch.from_numpy(X.data), X.shape).coalesce()
    else:
        V = torch.from_numpy(X)
    model = TorchNMF(W=h, H=w)
    model.fit(V, beta=1, tol=-np.inf, max_iter=iterations)

    def end():
        h, w = _arrays(model.W, model.H)
        return {"w": w, "h": h.T}

    return end


def torchnmf_plca(problem, iterations, threads):
    from torchnmf.plca import PLCA as TorchPLCA

    _, (z, h, w, V) = _torch(threads, *problem.start.values(), problem.X)
    model = TorchPLCA(W=w, H=h, Z=z)
    model.fit(V, tol=-np.inf, max_iter=iterations)
    return lambda: dict(zip(problem.start, _arrays(model.Z, model.H, model.W)))


def torchnmf_siplca(problem, iterations, threads):
    from torchnmf import plca as peers

    kernels, impulses = problem.start["kernels"], problem.start["impulses"]
    _, (z, V) = _torch(threads, problem.start["weights"], problem.X)
    one = impulses.shape[1] == 1
    if one:
        # One dimension does not shift: (frequencies, components, window) and (1, components, places).
        _, (W, H) = _torch(threads, kernels.transpose(1, 0, 2), impulses.transpose(1, 0, 2))
        model, V = peers.SIPLCA(W=W, H=H, Z=z), V[None]
    else:
        _, (W, H) = _torch(threads, kernels[None], impulses[None])
        model, V = peers.SIPLCA2(W=W, H=H, Z=z), V[None, None]
    model.fit(V, tol=-np.inf, max_iter=iterations)

    def end():
        weights, W, H = _arrays(model.Z, model.W, model.H)
        kernels, impulses = (W.transpose(1, 0, 2), H.transpose(1, 0, 2)) if one else (W[0], H[0])
        return {"weights": weights, "kernels": kernels, "impulses": impulses}

    return end


def enstop_plsa(problem, iterations, threads):
    # The function behind its class, which knows types of NumPy that are gone.
    from enstop.plsa import plsa_fit

    basis, mixture = problem.start["basis"], problem.start["mixture"]
    weights = np.ones(problem.X.shape[0], np.float32)
    start = (mixture.T.copy(), basis.T.copy())
    U, V = plsa_fit(problem.X, basis.shape[1], weights, init=start, n_iter=iterations, tolerance=0.0)
    return lambda: {"basis": V.T, "mixture": U.T}


def imported(name):
    """Why a package cannot be used, if it cannot; compiled code of it is compiled here."""
    try:
        __import__(name)
    except Exception as error:
        return f"{name} is not installed or cannot be imported: {type(error).__name__}: {error}"
    return None


def ours(problem, target, threads):
    """Goes from the start of the problem until the objective is as good."""
    sign = -1 if isinstance(problem.model, NMF) else 1
    model = problem.model.set_params(
        # As good as no tolerance, under which the default solver stays what it is by default.
        tol=1e-15, max_iter=1_000_000, n_jobs=threads, check_every=2,
        callback=lambda iteration, objective: sign * objective >= target,
    )
    model.fit(problem.X, start=problem.start)
    return lambda: {name: model._blocks[name] for name in problem.start}


def timed(repeat, run, *arguments):
    seconds = []
    for _ in range(repeat):
        begin = time.perf_counter()
        end = run(*arguments)
        seconds.append(time.perf_counter() - begin)
    return min(seconds), end()


def rows(quick):
    """Data, model, the peer with its package, and its iterations."""
    if quick:
        names = "dense 200 x 300, K = 10", "sparse 1000 x 800, K = 10", "spectrogram 65 x 120, kernel 65 x 6, K = 4", "image 40 x 50, kernel 6 x 7, K = 3"
        square, texts = dense(200, 300, 10), corpus(1000, 800, 40)
        sound, image = (shifted((65, 120), (65, 6), 4), 4, (65, 6)), (shifted((40, 50), (6, 7), 3), 3, (6, 7))
        ranks, iterations = (10, 10), (30, 30, 30, 20)
    else:
        names = "dense 1025 x 3000, K = 40", "sparse 18000 x 10000, K = 20", "spectrogram 513 x 800, kernel 513 x 10, K = 10", "image 256 x 320, kernel 16 x 16, K = 4"
        square, texts = dense(1025, 3000, 40), corpus(18000, 10000, 90)
        sound, image = (shifted((513, 800), (513, 10), 10), 10, (513, 10)), (shifted((256, 320), (16, 16), 4), 4, (16, 16))
        ranks, iterations = (40, 20), (200, 100, 100, 50)
    of_square, of_texts = nmf(square, ranks[0]), nmf(texts, ranks[1])
    yield names[0], of_square, "scikit-learn NMF, mu", "sklearn", scikit_learn, iterations[0]
    yield names[1], of_texts, "scikit-learn NMF, mu", "sklearn", scikit_learn, iterations[1]
    yield names[0], of_square, "torchnmf NMF", "torchnmf.nmf", torchnmf_nmf, iterations[2]
    yield names[1], of_texts, "torchnmf NMF", "torchnmf.nmf", torchnmf_nmf, iterations[3]
    yield names[0], plca(square, ranks[0]), "torchnmf PLCA", "torchnmf.plca", torchnmf_plca, iterations[2]
    yield names[2], siplca(*sound), "torchnmf SIPLCA", "torchnmf.plca", torchnmf_siplca, iterations[3]
    yield names[3], siplca(*image), "torchnmf SIPLCA2", "torchnmf.plca", torchnmf_siplca, iterations[3]
    yield names[1], plsa(texts, ranks[1]), "enstop PLSA", "enstop.plsa", enstop_plsa, iterations[2]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--quick", action="store_true", help="small data, few iterations")
    arguments.add_argument("--threads", type=int, default=1, help="of both sides [default: 1]")
    arguments.add_argument("--repeat", type=int, default=1, help="runs of both sides, of which the fastest counts [default: 1]")
    given = arguments.parse_args()
    missing, unreached = {}, 0
    print("| data | peer | its iterations | its seconds | our seconds | our iterations | times sooner | its objective | ours |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for data, problem, peer, package, run, iterations in rows(given.quick):
        wrong = imported(package)
        if wrong is not None:
            missing[package] = wrong
            continue
        with warnings.catch_warnings(), threadpool_limits(given.threads):
            warnings.simplefilter("ignore")
            theirs, blocks = timed(given.repeat, run, problem, iterations, given.threads)
            target = problem.value(**blocks)
            mine, blocks = timed(given.repeat, ours, problem, target, given.threads)
        value, model = problem.value(**blocks), problem.model
        # Rounding of sums aside, in the precision of the data.
        reached = value >= target - max(1e-9, 16 * np.finfo(problem.X.dtype).eps) * abs(target)
        unreached += not reached
        note = "" if reached else f" NOT REACHED ({model.stop_reason_})"
        print(
            f"| {data} | {peer} | {iterations} | {theirs:.2f} | {mine:.2f} | {model.n_iter_} | {theirs / mine:.1f} "
            f"| {target:.8g} | {value:.8g}{note} |",
            flush=True,
        )
    for why in missing.values():
        print(f"Not measured: {why}")
    return 1 if unreached else 0


if __name__ == "__main__":
    sys.exit(main())
