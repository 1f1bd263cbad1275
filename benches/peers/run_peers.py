"""Run existing KL-NMF and tensor codes on the workloads of make_workloads.py.

usage: python run_peers.py DIR [--workloads a,b] [--peers x,y] [--threads N]
                           [--dtype float64|float32] [--budget SECONDS] [--max-iters N] [--list]

One JSON line per (peer, workload) on stdout. Every pair runs in its own process.
Each peer starts from the same initial factors (files F0, F1, ...; `init` says if the peer's
API allowed it), runs in chunks of iterations until the budget is spent, and only the chunks
are timed; after each chunk ONE common function evaluates the objective in float64.

  s_per_iter   median over chunks of (chunk seconds / iterations); s_per_iter_min the least
  cpu_per_iter the same median in processor seconds: with one thread this is the figure that a
               busy machine disturbs least
  trace        [iterations, seconds, processor seconds, objective] after each chunk
  objective    generalised KL (nmf, cp, siplca), 1/2 squared error (cpl2), none (skellam, skellam-vb)
  rss_data_mb / rss_peak_mb   resident memory with the data and factors loaded / at the peak

Peers that are not importable are reported with "error".
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import time

THREAD_VARS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
               "NUMBA_NUM_THREADS", "RCPP_PARALLEL_NUM_THREADS")

import numpy as np  # noqa: E402  (a worker gets its thread counts from the environment)


# ---------------------------------------------------------------------- workloads
class Workload:
    def __init__(self, root, name, dtype):
        d = os.path.join(root, name)
        self.name = name
        self.__dict__.update(json.load(open(os.path.join(d, "meta.json"))))
        self.sparse = self.__dict__.get("sparse", False)
        get = lambda f: np.load(os.path.join(d, f + ".npy"))  # noqa: E731
        self.dtype = np.dtype(dtype)
        if self.sparse and self.kind == "nmf":
            import scipy.sparse as sp
            p, i, v = get("X_indptr"), get("X_indices"), get("X_data")
            self.X = sp.csr_matrix((v.astype(dtype), i, p.astype(np.int32)), shape=self.shape)
        elif self.sparse:
            self.coords, self.vals = get("X_coords"), get("X_vals").astype(dtype)
        else:
            self.X = get("X").astype(dtype)
        self.F = [get(f"F{i}") for i in range(len(self.shapes))]

    def factors(self):
        return [f.astype(self.dtype) for f in self.F]


def gkl(x, y):
    """sum of x log(x/y) - x + y in float64."""
    x, y = np.asarray(x, np.float64), np.maximum(np.asarray(y, np.float64), 1e-300)
    return float(np.sum(y) - np.sum(x) + np.sum(x * np.log(np.where(x > 0, x / y, 1.0))))


def conv_full(W, H):
    ker = W.shape[2:]
    out = np.zeros((W.shape[0],) + tuple(h + k - 1 for h, k in zip(H.shape[1:], ker)))
    for t in np.ndindex(*ker):
        sl = (slice(None),) + tuple(slice(a, a + h) for a, h in zip(t, H.shape[1:]))
        out[sl] += np.tensordot(W[(slice(None), slice(None)) + t], H, 1)
    return out


def objective(w, F):
    """The one objective all peers are judged by."""
    F = [np.asarray(f, np.float64) for f in F]
    if w.kind == "siplca":
        return gkl(w.X, conv_full(*F))
    if w.kind == "nmf":
        W, H = F
        if not w.sparse:
            return sum(gkl(w.X[i:i + 128], W[i:i + 128] @ H) for i in range(0, len(W), 128))
        X, Ht, s = w.X, np.ascontiguousarray(H.T), float(W.sum(0) @ H.sum(1))
        for i in range(0, X.shape[0], 2000):
            b = X[i:i + 2000].tocoo()
            for j in range(0, b.nnz, 1 << 18):
                c = slice(j, j + (1 << 18))
                x = b.data[c].astype(np.float64)
                y = np.einsum("nk,nk->n", W[i + b.row[c]], Ht[b.col[c]])
                s += float(np.sum(x * np.log(x / np.maximum(y, 1e-300)) - x))
        return s
    if w.sparse:                                              # cp, sparse
        s = float(np.prod([f.sum(0) for f in F], axis=0).sum())
        for j in range(0, len(w.vals), 1 << 18):
            c, x = w.coords[j:j + (1 << 18)], w.vals[j:j + (1 << 18)].astype(np.float64)
            y = np.prod([f[c[:, m]] for m, f in enumerate(F)], axis=0).sum(1)
            s += float(np.sum(x * np.log(x / np.maximum(y, 1e-300)) - x))
        return s
    A, B, C = F
    s = 0.0
    for i in range(len(A)):
        y = (B * A[i]) @ C.T
        s += gkl(w.X[i], y) if w.kind == "cp" else 0.5 * float(np.sum((w.X[i] - y) ** 2))
    return s


# -------------------------------------------------------------------------- peers
# A peer is a class: __init__(workload, threads), run(n) -> seconds or None, factors().
PEERS = {}


def peer(name, *kinds, sparse=(False,), init=True, f32=True, max_k=None):
    def deco(cls):
        cls.kinds, cls.sparse, cls.init, cls.f32, cls.max_k = kinds, sparse, init, f32, max_k
        PEERS[name] = cls
        return cls
    return deco


class Sklearn:
    opts = {}

    def __init__(self, w, threads):
        self.X, (self.W, self.H), self.K = w.X, w.factors(), w.K

    def run(self, n):
        from sklearn.decomposition import non_negative_factorization as nnf
        self.W, self.H, _ = nnf(self.X, W=self.W, H=self.H, n_components=self.K, init="custom",
                                tol=0, max_iter=n, **self.opts)

    def factors(self):
        return self.W, self.H


@peer("sklearn-mu-kl", "nmf", sparse=(False, True))
class SklearnMu(Sklearn):
    opts = dict(solver="mu", beta_loss="kullback-leibler")


class Torch:
    def setup(self, w, threads):
        import torch
        torch.set_num_threads(threads)
        torch.set_default_dtype(torch.float64 if w.dtype == np.float64 else torch.float32)
        self.w = w
        return torch, [torch.from_numpy(np.ascontiguousarray(f)) for f in w.factors()]

    def run(self, n):
        self.m.fit(self.V, max_iter=n, tol=float("-inf"), **self.opts)

    def pull(self, p):
        return p.detach().numpy().astype(np.float64)

    opts = {}


@peer("torchnmf-nmf-kl", "nmf", sparse=(False, True))
class TorchNMF(Torch):
    opts = dict(beta=1)

    def __init__(self, w, threads):
        torch, (W, H) = self.setup(w, threads)
        from torchnmf.nmf import NMF
        if w.sparse:
            c = w.X.tocoo()
            ij = torch.from_numpy(np.stack([c.row, c.col]).astype(np.int64))
            self.V = torch.sparse_coo_tensor(ij, torch.from_numpy(c.data), c.shape).coalesce()
        else:
            self.V = torch.from_numpy(w.X)
        self.m = NMF(W=H.T.contiguous(), H=W)

    def factors(self):
        return self.pull(self.m.H), self.pull(self.m.W).T


class TorchConv(Torch):
    def __init__(self, w, threads):
        torch, (W, H) = self.setup(w, threads)
        import torchnmf.nmf as N
        import torchnmf.plca as P
        one = w.X.ndim == 2
        self.V = torch.from_numpy(w.X)[None]
        self.total = float(w.X.sum(dtype=np.float64))
        if self.plca:
            z = W.sum([0] + list(range(2, W.ndim))) * H.reshape(H.shape[0], -1).sum(1)
            self.m = (P.SIPLCA if one else P.SIPLCA2)(W=W, H=H[None], Z=z)
        else:
            self.m = (N.NMFD if one else N.NMF2D)(W=W, H=H[None])

    def factors(self):
        W, H = self.pull(self.m.W), self.pull(self.m.H)[0]
        if self.plca:
            z = self.pull(self.m.Z) * self.total
            W = W * z.reshape((1, -1) + (1,) * (W.ndim - 2))
        return W, H


@peer("torchnmf-siplca", "siplca")
class TorchSIPLCA(TorchConv):
    plca = True


@peer("torchnmf-nmfd", "siplca")
class TorchNMFD(TorchConv):
    plca, opts = False, dict(beta=1)


class Tensorly:
    def __init__(self, w, threads):
        self.X, self.F, self.K = w.X, w.factors(), w.K

    def run(self, n):
        import tensorly.decomposition as td
        from tensorly.cp_tensor import CPTensor
        cp = CPTensor((np.ones(self.K, self.X.dtype), [f.copy() for f in self.F]))
        wt, fs = getattr(td, self.fn)(self.X, self.K, n_iter_max=n, init=cp, tol=0)
        self.F = [fs[0] * wt] + list(fs[1:])

    def factors(self):
        return self.F


@peer("tensorly-mu-l2", "cpl2")
class TensorlyMu(Tensorly):
    fn = "non_negative_parafac"


@peer("tensorly-hals-l2", "cpl2")
class TensorlyHals(Tensorly):
    fn = "non_negative_parafac_hals"


class Pyttb:
    def __init__(self, w, threads):
        import pyttb as ttb
        if w.sparse:
            self.X = ttb.sptensor(w.coords.astype(np.int64), w.vals[:, None], tuple(w.shape))
        else:
            self.X = ttb.tensor(w.X)
        self.M = ttb.ktensor([np.asfortranarray(f) for f in w.factors()])
        self.K, self.inner, self.shape = w.K, 0, None

    def run(self, n):
        import pyttb as ttb
        self.M, _, out = ttb.cp_apr(self.X, self.K, algorithm=self.alg, init=self.M, maxiters=n,
                                    printitn=0, stoptol=1e-9, **self.opts)
        self.inner += int(np.sum(out["nInnerIters"])) if "nInnerIters" in out else 0
        return float(out["totalTime"])

    def factors(self):
        f = [np.asarray(x) for x in self.M.factor_matrices]
        return [f[0] * self.M.weights] + f[1:]

    opts = {}


@peer("pyttb-cp_apr-mu", "cp", sparse=(False, True), f32=False)
class PyttbMu(Pyttb):                         # an iteration is 10 inner updates of each mode
    alg = "mu"


@peer("pyttb-cp_apr-mu-1inner", "cp", sparse=(False, True), f32=False)
class PyttbMu1(Pyttb):                        # 1 inner update per mode: comparable with EM
    alg, opts = "mu", dict(maxinneriters=1)


class Wonterfact:
    warm = 3                                  # its first iteration only makes what it starts from
    update = "regular"

    def __init__(self, w, threads):
        import wonterfact as wtf
        if not hasattr(np, "float_"):
            np.float_ = np.float64
        atoms, activations = w.factors()
        rate = 1e-3 if self.mode == "VBEM" else 1e-9
        self.atoms = wtf.LeafDirichlet(name="atoms", index_id="kis", norm_axis=(1, 2),
                                       tensor=np.ascontiguousarray(atoms.transpose(1, 0, 2)),
                                       init_type="custom", prior_shape=1)
        self.act = wtf.LeafGamma(name="act", index_id="jk", tensor=np.ascontiguousarray(activations.T),
                                 init_type="custom", prior_rate=rate, prior_shape=1)
        self.mul = wtf.Multiplier(name="mul", index_id="jis")
        self.mul.new_parents(self.atoms, self.act)
        self.obs = wtf.RealObserver(name="obs", index_id="ji", tensor=np.ascontiguousarray(w.X.T),
                                    limit_skellam_update=True)
        self.mul.new_child(self.obs)
        self.root = wtf.Root(inference_mode=self.mode, update_type=self.update,
                             stop_estim_threshold=0, cost_computation_iter=0)
        self.obs.new_child(self.root)

    def run(self, n):
        self.root.estimate_param(n_iter=n)

    def factors(self):
        return None                           # the release has a start of its own: times alone are compared


@peer("wonterfact-em", "skellam", init=False, f32=False)
class WonterfactEm(Wonterfact):
    mode = "EM"


@peer("wonterfact-vbem", "skellam-vb", init=False, f32=False)
class WonterfactVb(Wonterfact):
    mode = "VBEM"


# ------------------------------------------------------------------------- driver
def rss_mb(who=resource.RUSAGE_SELF):
    return resource.getrusage(who).ru_maxrss / 1024


def cpu_s():
    u = resource.getrusage(resource.RUSAGE_SELF)
    k = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime + k.ru_utime + k.ru_stime


def worker(a):
    w = Workload(a.dir, a.workloads, a.dtype)
    cls = PEERS[a.peers]
    out = dict(peer=a.peers, workload=w.name, threads=a.threads, dtype=a.dtype, kind=w.kind,
               init=cls.init)
    p = cls(w, a.threads)
    data = rss_mb()
    t0 = time.perf_counter()
    p.run(getattr(p, "warm", 1))                  # warm-up: imports, JIT, thread pools
    first = time.perf_counter() - t0
    out.update(rss_data_mb=data, rss_peak_mb=rss_mb(), warmup_s=first)
    if first < max(30.0, a.budget):
        p = cls(w, a.threads)
    f = p.factors()
    trace = [[0, 0.0, 0.0, None if f is None else objective(w, f)]]
    per, cpu, total, cputot, done = [], [], 0.0, 0.0, 0
    sched = [1, 1, 3, 5, 10, 10, 20, 20, 20, 50]
    while total < a.budget and done < a.max_iters:
        n = sched.pop(0) if len(sched) > 1 else sched[0]
        if per:                                   # keep a chunk within a sixth of the budget
            n = max(1, min(n, int(a.budget / 6 / per[-1]), a.max_iters - done))
        t0, c0 = time.perf_counter(), cpu_s()
        s = p.run(n)
        c = cpu_s() - c0
        s = time.perf_counter() - t0 if s is None else s
        total, cputot, done = total + s, cputot + c, done + n
        per.append(s / n)
        cpu.append(c / n)
        f = p.factors()
        trace.append([done, total, cputot, None if f is None else objective(w, f)])
        out["rss_end_mb"] = rss_mb()
        if getattr(p, "inner", 0):
            out["inner_iters"] = p.inner
        report(out, per, cpu, trace)


def report(out, per, cpu, trace):
    """Prints what is known so far: the last line is what a run that is stopped has reached."""
    keep = slice(3, None) if len(per) > 6 else slice(-2, None)
    per, cpu = np.array(per)[keep], np.array(cpu)[keep]
    out.update(s_per_iter=float(np.median(per)), s_per_iter_min=float(np.min(per)),
               cpu_per_iter=float(np.median(cpu)), cpu_per_iter_min=float(np.min(cpu)),
               iters=trace[-1][0], seconds=trace[-1][1], objective=trace[-1][3],
               trace=[[i, round(t, 5), round(c, 5), o] for i, t, c, o in trace])
    print(json.dumps(out), flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("dir")
    ap.add_argument("--workloads")
    ap.add_argument("--peers")
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--dtype", default="float64", choices=["float64", "float32"])
    ap.add_argument("--budget", type=float, default=20.0)
    ap.add_argument("--max-iters", type=int, default=2000)
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--worker", action="store_true")
    a = ap.parse_args()
    if a.worker:
        return worker(a)
    names = a.workloads.split(",") if a.workloads else sorted(os.listdir(a.dir))
    for name in names:
        m = json.load(open(os.path.join(a.dir, name, "meta.json")))
        for pname, cls in PEERS.items():
            if (m["kind"] not in cls.kinds or m.get("sparse", False) not in cls.sparse
                    or (a.peers and pname not in a.peers.split(","))
                    or (a.dtype == "float32" and not cls.f32)
                    or (cls.max_k and m["K"] > cls.max_k and not a.peers)):
                continue
            if a.list:
                print(pname, name)
                continue
            env = dict(os.environ, **{v: str(a.threads) for v in THREAD_VARS})
            cmd = [sys.executable, os.path.abspath(__file__), a.dir, "--worker", "--peers", pname,
                   "--workloads", name, "--threads", str(a.threads), "--dtype", a.dtype,
                   "--budget", str(a.budget), "--max-iters", str(a.max_iters)]
            try:
                r = subprocess.run(cmd, env=env, capture_output=True, text=True,
                                   timeout=3 * a.budget + 60)
                text, err = r.stdout, (r.stderr.strip().splitlines() or ["no output"])[-1][:300]
            except subprocess.TimeoutExpired as stopped:
                # What it had finished counts.
                text, err = (stopped.stdout or b"").decode(), "no iteration was finished in time"
            lines = [l for l in text.splitlines() if l.startswith("{") and l.endswith("}")]
            print(lines[-1] if lines else json.dumps(dict(
                peer=pname, workload=name, threads=a.threads, dtype=a.dtype, error=err)), flush=True)


if __name__ == "__main__":
    main()
