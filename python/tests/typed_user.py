"""What a user writes, with types: checked by ``mypy --strict``, and run."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import plcakit
from plcakit import (
    NMF,
    PLCA,
    PLSA,
    PNTF,
    ConsensusNMF,
    ShiftInvariantPLCA,
    ShiftInvariantSkellam,
    SkellamCP,
    SkellamSNMF,
    TransformInvariantPLCA,
    ad,
    compare,
    datasets,
    from_long,
    load,
    plot,
    select,
    sound,
)
from plcakit.priors import CrossEntropy, Dirichlet, Entropic, Flat, Gamma, LogisticNormal, Prior


def enough(iteration: int, objective: float) -> bool:
    return iteration > 20 and objective < 0


def main() -> None:
    draw = np.random.default_rng(0)
    X: NDArray[Any] = draw.poisson(3.0, (20, 12)) + 0.5
    version: str = plcakit.__version__
    print(version)

    nmf = NMF(3, init="random", random_state=0, n_jobs=1, callback=enough).fit(X)
    H: NDArray[Any] = nmf.components_
    error: float = nmf.reconstruction_err_
    W: NDArray[Any] = nmf.transform(X)
    print(H.shape, error, W.shape, nmf.inverse_transform(W).shape, nmf.score(X), nmf.n_iter_, nmf.converged_)
    print(nmf.trace_["objective"][-1], nmf.stop_reason_, nmf.n_components_, nmf.n_features_in_, nmf.objective_)
    print(nmf.reconstruct().shape, nmf.component(0).shape)
    W = NMF(3, init="custom", solver="mu").fit_transform(X, W=W + 0.1, H=H + 0.1)

    consensus = ConsensusNMF([2, 3], n_runs=4, threshold=2.0, random_state=0).fit(X)
    stability: NDArray[Any] = consensus.stability_
    print(stability, consensus.prediction_error_, consensus.components_.shape, consensus.transform(X).shape)
    print(consensus.usage(X).shape, consensus.n_components_, consensus.silhouette_)

    priors: dict[str, str | Prior] = {"mixture": Entropic(0.1, relative=False), "basis": "dirichlet:1.1"}
    plsa = PLSA(3, prior=priors, random_state=0).fit(X, observed=X < 9)
    print(plsa.weights_.sum(), plsa.perplexity(X), PLSA(3, random_state=0).partial_fit(X).partial_fit(X).n_iter_)
    again = PLSA(3, freeze={"basis": [0]}, solver="em").fit(X, start={"basis": plsa.components_.T})
    print(again.components_.shape)
    for prior in (Dirichlet(1.5), CrossEntropy([[0], [1, 2]], between=1.0), LogisticNormal(1.0), Flat(), Gamma(1.0, 2.0)):
        print(str(prior), repr(prior))

    chosen = select(PLSA(n_init=2, random_state=0, check_every=5), X, range(1, 3), criterion="aic")
    number: int = chosen.best
    print(number, chosen.table["score"], chosen.criterion)

    plca = PLCA(2, random_state=np.random.default_rng(1), temper_prior=False).fit(X)
    factors: list[NDArray[Any]] = plca.factors_
    pairs: NDArray[Any] = compare(plsa, plca).pairs
    print(pairs["cosine"], plsa.perplexity(X, known=X, observed=X < 9))
    print(len(factors), plca.weights_, plca.perplexity(X))
    pntf = PNTF(2, init="deflation", random_state=0).fit(X)
    print(pntf.factors_[0].shape, pntf.reconstruction_err_)
    signed = SkellamSNMF(2, method="vb", random_state=0).fit(X - 3.0)
    print(signed.components_plus_.shape, signed.components_minus_.shape)
    shifted = ShiftInvariantPLCA(1, kernel=(2, 3), support=["valid", "same"], random_state=0).fit(X)
    print(shifted.kernels_.shape, shifted.impulses_.shape, shifted.weights_)
    turned = TransformInvariantPLCA(1, kernel=(2, 3), rotations=[0, 90], scales=1.0, mirror=True, random_state=0).fit(X)
    print(turned.kernels_.shape, turned.impulses_.shape, turned.weights_, turned.copies(least=0.1)["angle"])
    wavelets = ShiftInvariantSkellam(1, kernel=(2, 3), support="same", method="vb", random_state=0).fit(X - 3.0)
    print(wavelets.kernels_plus_.shape, wavelets.kernels_minus_.shape, wavelets.kernels_, wavelets.activations_.shape)
    tensor = SkellamCP(2, signed_mode=1, scale_mode=None, random_state=0).fit(X - 3.0)
    print(tensor.components_.shape, tensor.weights_, len(tensor.factors_), tensor.factor_plus_.shape, tensor.factor_minus_.shape)
    print(PLSA(2, method="vb", random_state=0).fit(X).perplexity(X), PLCA(2, method="vb", random_state=0).fit(X).weights_)

    cells = SimpleNamespace(X=X, layers={}, obsm={}, varm={}, uns={})
    of_cells: NMF = ad.nmf(cells, 2, random_state=0)
    topics: PLSA = ad.plsa(cells, 2, random_state=0)
    print(of_cells.n_iter_, topics.n_iter_)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.npz"
        nmf.save(path)
        print(load(path).n_components_)

    try:
        pandas: Any = importlib.import_module("pandas")
        long = from_long(pandas.DataFrame({"doc": ["a", "b"], "word": ["x", "x"], "n": [1, 2]}), ["doc", "word"], "n")
        labels: list[NDArray[Any]] = long.labels
        print(long.X.shape, labels)
    except ImportError:
        print("no pandas or no narwhals")
    corpus = datasets.make_corpus()
    words = PLSA(2, random_state=0).fit(corpus.counts)
    notes, image = datasets.make_notes(), datasets.make_shapes().image
    magnitudes: NDArray[Any] = notes.spectrogram
    heard = NMF(3, random_state=0).fit(magnitudes.T)
    print(sound.separate(magnitudes, heard, along=0).shape, datasets.make_signed().X.shape, datasets.make_mixtures().spectra.shape)
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    figure = plot.topics(words, corpus.words, n_words=4, titles=["a", "b"])
    figure.clear()
    axis = plot.components(words)
    print(plot.trace(words, ax=axis, label="EM").get_xlabel())
    plot.spectrogram(magnitudes, frequencies=notes.frequencies, times=notes.times, decibels=40)
    plot.parts(magnitudes, heard)
    plot.kernels(ShiftInvariantPLCA(1, kernel=(5, 5), random_state=0).fit(image), origin="upper", decibels=40, figure=figure)
    print(plot.copies(turned, X).get_title(), plot.components(words, np.arange(54), lines=True).get_xlabel())


if __name__ == "__main__":
    main()
