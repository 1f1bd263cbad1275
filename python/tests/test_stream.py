"""Learning batch by batch."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from plcakit import NMF, PLCA, PLSA


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


def test_a_fit_begins_anew():
    X = corpus()
    once = PLSA(3, random_state=0).partial_fit(X).components_
    again = PLSA(3, random_state=0).partial_fit(X[:100]).fit(X).partial_fit(X).components_
    assert np.array_equal(once, again)


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
    # A fit begins anew.
    again = NMF(3, random_state=0).partial_fit(X[:100]).fit(X).partial_fit(X).components_
    assert np.array_equal(again, NMF(3, random_state=0).partial_fit(X).components_)


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
