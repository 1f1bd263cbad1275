"""Learning batch by batch."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from plcakit import NMF, PLCA, PLSA, load, shards


#: Latent Dirichlet allocation.
LDA = partial(PLSA, method="vb", prior={"basis": "dirichlet:0.1", "mixture": "dirichlet:0.2"})


def corpus(documents=400, words=30, seed=0):
    draw = np.random.default_rng(seed)
    topics = draw.dirichlet(np.full(words, 0.1), 3)
    mixtures = draw.dirichlet(np.full(3, 0.2), documents)
    return draw.poisson(mixtures @ topics * 80).astype(float)


@pytest.mark.parametrize("make", [PLSA, PLCA, LDA])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_batches_teach_what_all_data_do(make, form):
    X = corpus()
    stream = make(3, random_state=0)
    for _ in range(6):
        for batch in np.split(X, 8):
            stream.partial_fit(form(batch))
    whole = make(3, random_state=0, n_init=5).fit(X)
    assert stream.n_iter_ == 48 and len(stream.trace_) == 48
    assert np.allclose(stream.components_.sum(axis=1), 1)
    assert stream.perplexity(X) < 1.02 * whole.perplexity(X)


@pytest.mark.parametrize("make", [PLSA, PLCA, NMF, LDA])
def test_copies_of_a_stream_go_on_alike(make):
    first, second = np.split(corpus(), 2)
    stream = make(3, random_state=0).partial_fit(first)
    others = [pickle.loads(pickle.dumps(stream)), copy.deepcopy(stream)]
    stream.partial_fit(second)
    for other in others:
        assert np.array_equal(other.partial_fit(second).components_, stream.components_)


def test_shapes_of_topics_are_counts_and_their_prior():
    X = corpus()
    stream = LDA(3, random_state=0)
    for batch in np.split(X, 8):
        stream.partial_fit(batch)
    shapes = stream._blocks["basis_shape"]
    # The counts of all documents so far, as its batches tell them, what the prior adds and what is left of the start.
    assert abs(shapes.sum() / X.sum() - 1) < 0.1 and shapes.min() > 0
    assert np.allclose(stream.components_, shapes.T / shapes.sum(axis=0)[:, np.newaxis])
    assert np.allclose(stream.weights_.sum(), 1) and stream.objective_ < 0
    assert stream.transform(X).shape == (400, 3)


def test_the_number_of_samples_scales_counts():
    first, second = np.split(corpus(), 2)
    sums = [LDA(3, random_state=0).partial_fit(first, total_samples=n)._blocks["basis_shape"].sum() for n in (200, 400, 800)]
    # lam <- (1 - r) lam + r (eta + D / |B| C_B)
    rate = 2**-0.7
    assert np.allclose(np.diff(sums), rate * first.sum() * np.array([1.0, 2.0]))
    once = LDA(3, random_state=0).partial_fit(first, total_samples=400).partial_fit(second, total_samples=400)
    assert once.perplexity(second) < LDA(3, random_state=0).partial_fit(first, total_samples=400).perplexity(second)
    for wrong, model in [(0, LDA(3)), (-1.0, LDA(3)), ("a", LDA(3)), (np.nan, LDA(3)), (400, PLSA(3))]:
        with pytest.raises(ValueError, match="total_samples"):
            model.partial_fit(first, total_samples=wrong)


@pytest.mark.parametrize("make", [PLSA, PLCA, NMF, LDA])
def test_a_stream_goes_on_from_a_fit(make, tmp_path):
    X, new = np.split(corpus(440), [400])
    fit = make(3, random_state=0, n_init=3).fit(X)
    before = fit.score(new)
    fit.save(tmp_path / "fit.npz")
    loaded = load(tmp_path / "fit.npz")
    # Of 400 samples one fit is ten batches of 40.
    learnt = fit.components_ / fit.components_.sum(axis=1, keepdims=True)
    components = fit.partial_fit(new).components_
    assert fit.n_iter_ == 11 and len(fit.trace_) == 1
    assert np.array_equal(loaded.partial_fit(new).components_, components)
    # What was learnt stays, but for what a batch of ten adds to it: nearly nothing from more of the same, and much from other topics.
    moved = np.abs(components / components.sum(axis=1, keepdims=True) - learnt).max()
    assert 0 < moved < 0.05 and fit.score(new) > before - 0.01 * abs(before)
    other = corpus(440, seed=1)
    scores = [fit.score(other)]
    for _ in range(3):
        fit.partial_fit(other)
        scores.append(fit.score(other))
    assert scores == sorted(scores) and scores[-1] > scores[0]
    # A fit itself begins anew.
    assert np.array_equal(fit.fit(X).components_, make(3, random_state=0, n_init=3).fit(X).components_)


@pytest.mark.parametrize("make", [PLSA, PLCA, NMF])
def test_a_stream_goes_on_from_shards_and_from_hidden_cells(make):
    X, new = np.split(corpus(440), [400])
    fits = [shards.fit(make(3, random_state=0), [X[:150], X[150:]])]
    hidden = X.copy()
    hidden[::7, 3] = np.nan
    fits.append(make(3, random_state=0, missing="nan").fit(hidden))
    for fit in fits:
        learnt, mixture = fit.components_, fit.transform(new)
        masses = fit._blocks["w"].sum(axis=0) * learnt.sum(axis=1) if make is NMF else fit.weights_
        joint = learnt.T * (masses / masses.sum() / learnt.sum(axis=1))
        # What the batch tells of words and topics: its expected counts.
        batch = learnt.T * ((new / np.maximum(mixture @ learnt, 1e-300)).T @ mixture)
        components = fit.partial_fit(new).components_
        # s <- (1 - r) s + r C_B / v_B, of the eleventh batch, as those that the fit counts as are ten.
        rate = 12**-0.7
        assert fit.n_iter_ == 11
        assert np.abs(fit._known["statistics_0"] - (1 - rate) * joint - rate * batch / new.sum()).sum() < 0.003
        np.testing.assert_allclose(components.sum(axis=1), 1)
        # Hidden cells are few.
        np.testing.assert_allclose(fit._known["counts"], [11, *3 * [X.sum() + new.sum()]], rtol=0.01)
        other = corpus(440, seed=1)
        before = fit.score(other)
        assert fit.partial_fit(other).score(other) > before


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", ["npz", "safetensors"])
@pytest.mark.parametrize("make", [PLSA, PLCA, NMF, LDA])
def test_a_stream_goes_on_from_a_file(make, form, dtype, tmp_path):
    batches = np.split(corpus(), 8)
    batches = [batch.astype(dtype) for batch in batches]
    stream = make(3, random_state=0)
    for batch in batches[:4]:
        stream.partial_fit(batch)
    path = tmp_path / f"stream.{form}"
    stream.save(path)
    other = load(path)
    for batch in batches[4:]:
        stream.partial_fit(batch)
        other.partial_fit(batch)
        assert np.array_equal(other.components_, stream.components_)
        assert np.array_equal(other._known["counts"], stream._known["counts"])
    assert other.n_iter_ == 8 and [int(n) for n in other.trace_["iteration"]] == [5, 6, 7, 8]
    fitted = make(3, random_state=0).fit(batches[0]).partial_fit(batches[1])
    fitted.save(path)
    assert np.array_equal(load(path).partial_fit(batches[2]).components_, fitted.partial_fit(batches[2]).components_)


@pytest.mark.parametrize(
    "make, model, given", [(PLSA, "plsa", ["--given", 0]), (PLCA, "plca", []), (NMF, "nmf-kl", []), (LDA, "plsa-vb", ["--given", 0])]
)
def test_the_command_starts_from_the_file_of_a_stream(make, model, given, tmp_path, plca):
    X, path = corpus(), tmp_path / "stream.npz"
    make(3, random_state=0).partial_fit(X).save(path)
    plca("inspect", path)
    np.save(tmp_path / "x.npy", X)
    plca("fit", model, tmp_path / "x.npy", "--rank", 3, *given, "--init", path, "--max-iter", 2, "--output", tmp_path / "on.npz")


@pytest.mark.parametrize("make", [PLSA, PLCA, NMF, LDA])
def test_what_a_stream_cannot_go_on_from_is_refused(make):
    X = corpus()
    with pytest.raises(ValueError, match="what was learnt has 3, which a stream cannot change: to begin anew"):
        make(3, random_state=0).fit(X).set_params(n_components=4).partial_fit(X)
    with pytest.raises(ValueError, match="features"):
        make(3, random_state=0).fit(X).partial_fit(corpus(words=20))
    if make is PLCA:
        with pytest.raises(ValueError, match="fitted to data of 3 dimensions"):
            PLCA(2, random_state=0).fit(np.ones((4, 5, 6))).partial_fit(np.ones((4, 5)))


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "made, other", [(PLSA(3), {"method": "vb"}), (LDA(3), {"method": "em"}), (NMF(3, beta_loss="frobenius"), {"beta_loss": 1})]
)
def test_a_stream_stays_the_model_that_it_is(made, other, how):
    model = clone(made).set_params(random_state=0, max_iter=20)
    if not hasattr(model, how):
        pytest.skip("this model does not learn batch by batch")
    model = getattr(model, how)(corpus()).set_params(prior=None, **other)
    with pytest.raises(ValueError, match="cannot go on: to begin anew take a new estimator"):
        model.partial_fit(corpus())


def test_the_number_of_components_is_that_of_what_was_learnt():
    X = corpus()
    draw = np.random.default_rng(1)
    model = NMF(init="custom", random_state=0).fit(X, W=draw.random((400, 3)) + 0.1, H=draw.random((3, 30)) + 0.1)
    assert model.partial_fit(X).components_.shape == (3, 30)


def test_a_batch_of_other_features_is_refused():
    with pytest.raises(ValueError, match="features"):
        PLSA(3, random_state=0).partial_fit(corpus()).partial_fit(corpus(words=20))
    with pytest.raises(ValueError, match="3 dimensions"):
        PLCA(3).partial_fit(np.ones((3, 4, 5)))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_batches_teach_nmf_what_they_teach_plsa(form):
    X = corpus()
    stream, other = NMF(3, random_state=0), PLSA(3, random_state=0)
    for _ in range(6):
        for batch in np.split(X, 8):
            stream.partial_fit(form(batch))
            other.partial_fit(form(batch))
    # The sum of a topic is 1 in one of them, and 1 but for rounding in the other.
    assert np.allclose(stream.components_, other.components_, rtol=1e-9, atol=1e-12)
    assert stream.n_iter_ == 48 and len(stream.trace_) == 48
    # The divergence of the last batch, an iteration short of what was found of it.
    W = stream._blocks["w"]
    assert W.shape == (50, 3)
    np.testing.assert_allclose(stream.transform(X).sum(axis=1), X.sum(axis=1), rtol=1e-9)
    whole = NMF(3, random_state=0, n_init=5).fit(X)
    assert stream.score(X) > 1.1 * whole.score(X)
    np.testing.assert_allclose(stream.reconstruction_err_, np.sqrt(2 * stream.objective_))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"beta_loss": "frobenius"}, "partial_fit is for 'kullback-leibler'"),
        ({"alpha_W": 0.1}, "does not support penalties"),
        ({"prior": {"h": "rate:1"}}, "cannot have priors"),
        ({"freeze": "h"}, "does not support freeze"),
    ],
)
def test_streams_of_nmf_that_are_none(settings, message):
    model = NMF(3, **settings)
    with pytest.raises((AttributeError, ValueError)) as error:
        model.partial_fit(corpus())
    assert message in str(error.value.__cause__ or error.value)
    # What cannot learn in this way has no such method, as scikit-learn expects.
    assert hasattr(model, "partial_fit") == (error.type is ValueError)
