"""The examples beside what people use today for the same: seconds of a whole fit, and how good its end is.

    python python/benches/gallery.py [--repeat N]

Both sides fit the data of an example on one thread, ours as the example does, the peer as it does by default; both from one start, but for the
shapes, of which the example makes 20. The least time of the repetitions counts. Where the peer has another model its end is judged by the same number of both: what the example is for. Less is
better in every row. Packages beside scikit-learn: `pip install torch torchnmf`.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.signal import correlate
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from threadpoolctl import threadpool_limits

from plcakit import NMF, PLSA, PNTF, ShiftInvariantPLCA, SkellamSNMF
from plcakit.datasets import make_corpus, make_mixtures, make_notes, make_shapes, make_signed


def perplexity(X, mixtures, topics):
    """Of the words of the corpus, under mixtures and topics that sum to 1."""
    X = X.tocoo()
    p = (mixtures @ topics)[X.row, X.col]
    return float(np.exp(-(X.data * np.log(p)).sum() / X.data.sum()))


def corpus():
    X = make_corpus().counts

    def ours():
        model = PLSA(4, random_state=0, n_jobs=1).fit(X)
        return lambda: perplexity(X, model.transform(X), model.components_)

    def theirs():
        model = LatentDirichletAllocation(4, random_state=0).fit(X)
        return lambda: perplexity(X, model.transform(X), model.components_ / model.components_.sum(axis=1, keepdims=True))

    return "perplexity of the corpus", "scikit-learn LatentDirichletAllocation", ours, theirs


def notes():
    S = make_notes().spectrogram.T

    def fit(model):
        W = model.fit_transform(S)
        Y = W @ model.components_
        positive = S > 0
        return lambda: float((S[positive] * np.log(S[positive] / Y[positive])).sum() - S.sum() + Y.sum())

    def ours():
        return fit(NMF(3, random_state=0, n_jobs=1))

    def theirs():
        return fit(SklearnNMF(3, solver="mu", beta_loss="kullback-leibler", init="nndsvda", max_iter=1000))

    return "divergence of the spectrogram", "scikit-learn NMF, mu", ours, theirs


def signed():
    made = make_signed()
    hidden = np.isnan(made.X)

    def fit(filled):
        return lambda: float(np.sqrt(np.mean((filled - made.complete)[hidden] ** 2)))

    def ours():
        model = SkellamSNMF(3, missing="nan", solver="squarem", random_state=0, n_jobs=1).fit(made.X)
        return fit(model.inverse_transform(model.transform(made.X)))

    def theirs():
        return fit(IterativeImputer(random_state=0).fit_transform(made.X))

    return "error of the missing cells", "scikit-learn IterativeImputer", ours, theirs


def shapes():
    made = make_shapes()
    X = made.image

    def distance(kernels):
        """1 minus the largest correlation, wherever a kernel lies in its window, of the better of both orders."""

        def one(kernel, shape):
            return 1 - correlate(kernel, shape).max() / np.linalg.norm(kernel) / np.linalg.norm(shape)

        return lambda: min(np.mean([one(k, s) for k, s in zip(kernels, order)]) for order in (made.kernels, made.kernels[::-1]))

    def ours():
        model = ShiftInvariantPLCA(2, kernel=(5, 5), prior={"impulses": "entropic:30"}, n_init=20, random_state=0, n_jobs=1)
        return distance(model.fit(X).kernels_)

    def theirs():
        import torch
        from torchnmf.plca import SIPLCA2

        torch.set_num_threads(1)
        torch.manual_seed(0)
        V = torch.from_numpy(X)[None, None].float()
        model = SIPLCA2(V.shape, rank=2, kernel_size=(5, 5))
        model.fit(V)
        return distance(model.W.detach().numpy()[0])

    return "distance of the kernels from the shapes", "torchnmf SIPLCA2", ours, theirs


def mixtures():
    made = make_mixtures()

    def error(model):
        W = model.fit_transform(made.X)
        W = W * model.components_.sum(axis=1)
        order = [(model.components_ @ spectrum / np.linalg.norm(model.components_, axis=1)).argmax() for spectrum in made.spectra]
        shares = (W / W.sum(axis=1, keepdims=True))[:, order]
        return lambda: float(np.abs(shares - made.mixtures).mean())

    def ours():
        return error(PNTF(3, random_state=0, n_jobs=1))

    def theirs():
        return error(SklearnNMF(3))

    return "mean error of the shares", "scikit-learn NMF", ours, theirs


EXAMPLES = {
    "topics_of_a_corpus": corpus,
    "separated_notes": notes,
    "signed_matrix_with_gaps": signed,
    "shifted_shapes": shapes,
    "mixtures_on_the_simplex": mixtures,
}


def best(repeat, run):
    ends = []
    for _ in range(repeat):
        begin = time.perf_counter()
        end = run()
        ends.append((time.perf_counter() - begin, end))
    seconds, end = min(ends, key=lambda both: both[0])
    return seconds, end()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--repeat", type=int, default=3, help="runs of both sides, of which the fastest counts [default: 3]")
    repeat = arguments.parse_args().repeat
    print("| example | peer | its seconds | our seconds | what is compared | of the peer | of ours |")
    print("|---|---|--:|--:|---|--:|--:|")
    for name, example in EXAMPLES.items():
        what, peer, ours, theirs = example()
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            mine, value = best(repeat, ours)
            try:
                seconds, other = best(repeat, theirs)
                beside = f"{seconds:.3f}", f"{other:.4g}"
            except ImportError as error:
                beside = "-", str(error)
        print(f"| {name} | {peer} | {beside[0]} | {mine:.3f} | {what} | {beside[1]} | {value:.4g} |", flush=True)


if __name__ == "__main__":
    main()
