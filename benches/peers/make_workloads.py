"""Deterministic workloads for comparing PLCA / KL-NMF / tensor / shift-invariant codes.

usage: python make_workloads.py [--mtx] [--data FOLDER] DIR [name ...]        (no name: all but real data)

A name may end in .2, .3 and so on: the same kind of data and start from another seed (real data: another start). Workloads of
real data (ap-corpus) need the folder of the public data sets. Each workload NAME becomes DIR/NAME/:
  meta.json          kind, shapes, K, and the constant part of the objective
  dense kinds        X.npy                       float64, C order
  sparse matrices    X_indptr.npy X_indices.npy X_data.npy   (CSR; int64/int32/float64)
                     X.mtx (MatrixMarket, only with --mtx)
  sparse tensors     X_coords.npy (nnz, ndim) int32, X_vals.npy float64
  initial factors    F0.npy F1.npy ...           float64, see `kind` below

kinds (model, and the shapes of the initial factors)
  nmf      X[m,n]   ~ sum_k F0[m,k] F1[k,n]                       generalised KL
  cp       X[i,j,l] ~ sum_k F0[i,k] F1[j,k] F2[l,k]               generalised KL
  cpl2     the same model                                         1/2 squared error
  siplca   X[c,s..] ~ sum_k sum_t F0[c,k,t..] F1[k,s-t..]         generalised KL
           (full convolution: the size of F1 is size(X) - kernel + 1)
  skellam  X[f,n] real ~ sum_k (F0[f,k,0] - F0[f,k,1]) F1[k,n]    Skellam, the limit of many units; skellam-vb: variational
"""
import argparse
import json
import os
import sys
from functools import partial

import numpy as np


def save(d, kind, K, factors, seed, **arrays):
    os.makedirs(d, exist_ok=True)
    meta = dict(kind=kind, K=K, seed=seed, shapes=[list(f.shape) for f in factors])
    for k, v in arrays.items():
        if isinstance(v, np.ndarray):
            np.save(os.path.join(d, k + ".npy"), v)
        else:
            meta[k] = v
    for i, f in enumerate(factors):
        np.save(os.path.join(d, f"F{i}.npy"), np.ascontiguousarray(f, dtype=np.float64))
    with open(os.path.join(d, "meta.json"), "w") as fh:
        json.dump(meta, fh)


def nmf_init(rng, M, N, K, total):
    W, H = rng.uniform(0.5, 1.5, (M, K)), rng.uniform(0.5, 1.5, (K, N))
    s = np.sqrt(total / (W.sum(0) @ H.sum(1)))
    return W * s, H * s


def cp_init(rng, shape, K, total):
    fs = [rng.uniform(0.5, 1.5, (n, K)) for n in shape]
    s = (total / np.prod([f.sum(0) for f in fs], axis=0).sum()) ** (1 / len(fs))
    return [f * s for f in fs]


# ---------------------------------------------------------------- dense matrices
def dense_spectrogram(d, seed=1, M=1025, N=3000, K=40):
    """Harmonic combs with decaying partials, sparse decaying activations, gamma noise."""
    rng = np.random.default_rng(seed)
    f = np.arange(M)[:, None]
    f0 = rng.uniform(4, 90, K)
    W = np.full((M, K), 1e-4)
    for h in range(1, 30):
        W += np.exp(-0.5 * ((f - h * f0) / 1.5) ** 2) * np.exp(-h * rng.uniform(0.05, 0.4, K))
    H = np.zeros((K, N))
    onset = rng.random((K, N)) < 0.01
    level = rng.gamma(1.0, 1.0, (K, N))
    for t in range(N):
        H[:, t] = (0.93 * H[:, t - 1] if t else 0.0) + onset[:, t] * level[:, t]
    X = (W @ (H + 1e-3)) * rng.gamma(2.0, 0.5, (M, N))
    save(d, "nmf", K, nmf_init(rng, M, N, K, X.sum()), seed, X=X)


def faces(rng, side=19, n=2429, parts=49):
    y, x = np.mgrid[:side, :side]
    c = rng.uniform(0, side, (parts, 2))
    r = rng.uniform(1.0, 3.5, parts)
    W = np.stack([np.exp(-((y - a) ** 2 + (x - b) ** 2) / (2 * s * s))
                  for (a, b), s in zip(c, r)], -1)                    # side, side, parts
    H = rng.gamma(0.6, 1.0, (parts, n)) + 0.02
    return np.tensordot(W, H, 1) * rng.gamma(20.0, 1 / 20.0, (side, side, n)) + 1e-3


def dense_faces(d, seed=2, K=50):
    rng = np.random.default_rng(seed)
    X = faces(rng).reshape(361, 2429)
    save(d, "nmf", K, nmf_init(rng, 361, 2429, K, X.sum()), seed, X=X)


def pntf_faces(d, seed=2, K=50):
    rng = np.random.default_rng(seed)
    X = faces(rng)
    save(d, "cpl2", K, cp_init(rng, X.shape, K, X.sum()), seed, X=X)


# --------------------------------------------------------------- sparse matrices
def lda_counts(rng, docs, words, topics, mean_len, block=10000):
    """Topic-model counts: Zipf word frequencies, Dirichlet documents, log-normal lengths."""
    import scipy.sparse as sp
    zipf = 1.0 / (np.arange(words) + 10.0) ** 1.02
    beta = rng.permutation(zipf) * rng.gamma(0.25, 1.0, (topics, words)) + 1e-9
    cdf = np.cumsum(beta / beta.sum(1, keepdims=True), 1)
    out = []
    for lo in range(0, docs, block):
        nb = min(block, docs - lo)
        L = np.maximum(1, rng.lognormal(np.log(mean_len) - 0.18, 0.6, nb)).astype(int)
        row = np.repeat(np.arange(nb), L)
        theta = np.cumsum(rng.dirichlet(np.full(topics, 0.1), nb), 1)
        z = (rng.random(len(row))[:, None] > theta[row]).sum(1)
        u = rng.random(len(row))
        col = np.empty(len(row), np.int32)
        for t in range(topics):
            m = z >= topics - 1 if t == topics - 1 else z == t
            col[m] = np.minimum(np.searchsorted(cdf[t], u[m]), words - 1)
        out.append(sp.csr_matrix((np.ones(len(row)), (row, col)), (nb, words)))
    return sp.vstack(out).tocsr()


def save_csr(d, X, K, seed, rng, mtx):
    X.sum_duplicates()
    save(d, "nmf", K, nmf_init(rng, *X.shape, K, X.sum()), seed, shape=list(X.shape), sparse=True,
         nnz=int(X.nnz), X_indptr=X.indptr.astype(np.int64),
         X_indices=X.indices.astype(np.int32), X_data=X.data.astype(np.float64))
    if mtx:
        import scipy.io
        scipy.io.mmwrite(os.path.join(d, "X.mtx"), X, field="integer", symmetry="general")


def sparse_text(d, seed=4, K=20, mtx=False):
    rng = np.random.default_rng(seed)
    X = lda_counts(rng, 18000, 10000, 40, 56)
    save_csr(d, X, K, seed, np.random.default_rng([seed, K]), mtx)


def ap_corpus(d, seed=8, K=50, mtx=False, data=None):
    """Documents x words of the Associated Press corpus (lda-c: `M i:c i:c ...` a line)."""
    import gzip
    import scipy.sparse as sp
    if data is None:
        sys.exit("ap-corpus needs --data, the folder of the public data sets")
    indptr, indices, counts = [0], [], []
    with gzip.open(os.path.join(data, "ap_corpus", "ap.dat.gz"), "rt") as fh:
        for line in fh:
            pairs = [pair.split(":") for pair in line.split()[1:]]
            indices += [int(i) for i, _ in pairs]
            counts += [float(c) for _, c in pairs]
            indptr.append(len(indices))
    X = sp.csr_matrix((counts, indices, indptr))
    save_csr(d, X, K, seed, np.random.default_rng([seed, K]), mtx)


def sparse_large(d, seed=5, K=32, mtx=False):
    rng = np.random.default_rng(seed)
    X = lda_counts(rng, 200000, 30000, 50, 112)
    save_csr(d, X, K, seed, rng, mtx)


# ----------------------------------------------------------------------- tensors
def tensor_3d(d, seed=6, n=200, K=20):
    rng = np.random.default_rng(seed)
    A, B, C = (rng.gamma(0.4, 1.0, (n, K)) for _ in range(3))
    X = np.einsum("ik,jk,lk->ijl", A, B, C, optimize=True) * rng.gamma(4.0, 0.25, (n, n, n))
    save(d, "cp", K, cp_init(rng, X.shape, K, X.sum()), seed, X=X)


def tensor_sparse_3d(d, seed=7, shape=(5000, 4000, 500), K=16, events=5_005_000):
    rng = np.random.default_rng(seed)
    k = rng.integers(0, 30, events)
    idx = np.empty((events, 3), np.int64)
    for m, n in enumerate(shape):
        cdf = np.cumsum(rng.gamma(0.3, 1.0, (30, n)) + 1e-6, 1)
        for c in range(30):
            s = k == c
            idx[s, m] = np.searchsorted(cdf[c] / cdf[c, -1], rng.random(s.sum()))
    idx = np.minimum(idx, np.array(shape) - 1)
    flat, cnt = np.unique(np.ravel_multi_index(idx.T, shape), return_counts=True)
    coords = np.stack(np.unravel_index(flat, shape), 1).astype(np.int32)
    vals = cnt.astype(np.float64)
    save(d, "cp", K, cp_init(rng, shape, K, vals.sum()), seed, shape=list(shape), sparse=True,
         nnz=len(vals), X_coords=coords, X_vals=vals)


# ------------------------------------------------------------------ convolutive
def conv_full(W, H):
    """sum_k sum_t W[c,k,t..] H[k,s-t..], exact (no FFT rounding)."""
    ker = W.shape[2:]
    out = np.zeros((W.shape[0],) + tuple(h + k - 1 for h, k in zip(H.shape[1:], ker)), W.dtype)
    for t in np.ndindex(*ker):
        sl = (slice(None),) + tuple(slice(a, a + h) for a, h in zip(t, H.shape[1:]))
        out[sl] += np.tensordot(W[(slice(None), slice(None)) + t], H, 1)
    return out


def siplca(d, seed, C, size, ker, K, wgen, density, noise=8.0):
    rng = np.random.default_rng(seed)
    act = tuple(s - k + 1 for s, k in zip(size, ker))
    W = wgen(rng, (C, K) + ker)
    H = (rng.random((K,) + act) < density) * rng.gamma(1.0, 1.0, (K,) + act) + 1e-4
    X = conv_full(W, H) * rng.gamma(noise, 1 / noise, (C,) + size) + 1e-6
    W0, H0 = rng.uniform(0.5, 1.5, W.shape), rng.uniform(0.5, 1.5, H.shape)
    ax = tuple(range(2, W.ndim))
    s = np.sqrt(X.sum() / (W0.sum((0,) + ax) @ H0.reshape(K, -1).sum(1)))
    save(d, "siplca", K, (W0 * s, H0 * s), seed, X=X)


def blobs(rng, shape):
    W = rng.gamma(0.15, 1.0, shape)
    for ax in range(2, W.ndim):                       # light smoothing along the kernel axes
        W = (W + np.roll(W, 1, ax) + np.roll(W, -1, ax)) / 3
    return W + 1e-5


def comb(rng, shape):
    f = np.arange(shape[2], dtype=float)
    w = sum(np.exp(-0.5 * ((f - 36 * np.log2(h)) / 1.0) ** 2) / h for h in range(1, 24))
    return np.broadcast_to((w + 1e-4)[None, None, :, None], shape).copy()


# ------------------------------------------------------------------------- signed
def signed(d, seed, features, N, K, kind="skellam"):
    """Every column is mostly one atom, with Gaussian noise; atoms have both signs."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, K, N)
    A = rng.gamma(0.3, 0.2, (K, N))
    A[label, np.arange(N)] += rng.gamma(4.0, 0.25, N)
    X = (rng.normal(size=(features, K)) * 2) @ A + 0.5 * rng.normal(size=(features, N))
    atoms = rng.uniform(0.5, 1.5, (features, K, 2))
    atoms /= atoms.sum((0, 2), keepdims=True)
    activations = rng.uniform(0.5, 1.5, (K, N))
    activations *= np.abs(X).sum() / activations.sum()
    save(d, kind, K, (atoms, activations), seed, X=X)


WORKLOADS = {
    "dense-spectrogram": dense_spectrogram,
    "dense-faces": dense_faces,
    "sparse-text-k20": partial(sparse_text, K=20),
    "sparse-text-k100": partial(sparse_text, K=100),
    "sparse-large": sparse_large,
    "ap-corpus": ap_corpus,
    "tensor-3d": tensor_3d,
    "tensor-sparse-3d": tensor_sparse_3d,
    "siplca-speech": partial(siplca, seed=11, C=513, size=(938,), ker=(8,), K=20, wgen=blobs, density=0.02),
    "siplca-cqt": partial(siplca, seed=12, C=1, size=(234, 317), ker=(180, 1), K=1, wgen=comb, density=0.05),
    "siplca-image": partial(siplca, seed=13, C=3, size=(136, 511), ker=(35, 25), K=1, wgen=blobs, density=0.002),
    "siplca-handwriting": partial(siplca, seed=14, C=1, size=(81, 113), ker=(15, 15), K=3, wgen=blobs, density=0.01),
    "pntf-faces": pntf_faces,
    "skellam-21x5000": partial(signed, seed=22, features=21, N=5000, K=3),
    "skellam-9x14500": partial(signed, seed=23, features=9, N=14500, K=7),
    "skellam-vb-21x5000": partial(signed, seed=22, features=21, N=5000, K=3, kind="skellam-vb"),
}

if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--mtx", action="store_true")
    ap.add_argument("--data")
    ap.add_argument("dir")
    ap.add_argument("names", nargs="*")
    a = ap.parse_args()
    for name in a.names or [n for n in WORKLOADS if n != "ap-corpus" or a.data]:
        dest = os.path.join(a.dir, name)
        base, _, number = name.partition(".")
        make, options = WORKLOADS[base], {}
        if number:
            options["seed"] = 100 * int(number)
        if base.startswith("sparse-") or base == "ap-corpus":
            options["mtx"] = a.mtx
        if base == "ap-corpus":
            options["data"] = a.data
        make(dest, **options)
        with open(os.path.join(dest, "meta.json")) as fh:
            m = json.load(fh)
        print(name, {k: m[k] for k in ("kind", "K", "shapes", "nnz") if k in m}, flush=True)
