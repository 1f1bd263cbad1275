"""Perplexity of words that a document's mixture was not fitted to, and of those that it was."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from plcakit import PLCA, PLSA
from plcakit.datasets import make_corpus


@pytest.fixture(scope="module")
def corpus():
    """Documents to learn from, and the halves of others."""
    counts = make_corpus().counts.toarray().astype(int)
    known = np.random.default_rng(0).binomial(counts[80:], 0.5)
    return counts[:80].astype(float), known.astype(float), (counts[80:] - known).astype(float)


MODELS = [PLSA(3), PLSA(3, method="vb"), PLCA(3), PLCA(3, method="vb")]


def by_definition(model, known, scored):
    """The definition, cell by cell."""
    words = model.transform(known) @ model.components_
    return np.exp(-(scored * np.log(words)).sum() / scored.sum())


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_documents_are_completed(corpus, model):
    train, known, scored = corpus
    # No probability is 0.
    prior = {("basis" if isinstance(model, PLSA) else "factor_1"): "dirichlet:1.5"}
    model.set_params(random_state=0, prior=prior).fit(train)
    expected = by_definition(model, known, scored)
    for form in (np.asarray, sparse.csr_array, sparse.csc_matrix, lambda X: X.astype(np.float32)):
        assert model.perplexity(form(scored), known=form(known)) == pytest.approx(expected, rel=1e-5)
    # Cells that were not observed are not scored.
    observed = np.random.default_rng(1).random(scored.shape) < 0.7
    expected = by_definition(model, known, scored * observed)
    for form in (np.asarray, sparse.csr_array):
        assert model.perplexity(form(scored), known=known, observed=observed) == pytest.approx(expected, rel=1e-12)
    # Documents without words to be scored do not count.
    scored[3] = 0
    assert model.perplexity(scored, known=known) == pytest.approx(by_definition(model, known, scored))


def test_completion_of_arrays_of_three_dimensions():
    X = np.random.default_rng(0).poisson(2.0, (12, 5, 4)).astype(float)
    model = PLCA(2, random_state=0).fit(X)
    known, scored = X[::2], X[1::2]
    cells = np.tensordot(model.transform(known), model.components_, axes=1)
    expected = np.exp(-(scored * np.log(cells)).sum() / scored.sum())
    assert model.perplexity(scored, known=known) == pytest.approx(expected)


def test_many_cells_are_taken_in_parts(corpus, monkeypatch):
    train, known, scored = corpus
    model = PLSA(400, method="vb", max_iter=3, tol=0, random_state=0).fit(train)
    assert (scored > 0).sum() > 2**18 // 400
    assert model.perplexity(scored, known=known) == pytest.approx(by_definition(model, known, scored))


def test_more_topics_than_there_are_do_not_look_better(corpus):
    train, known, scored = corpus
    priors = {"basis": "dirichlet:1.05", "mixture": "dirichlet:1.05"}
    few, many = (PLSA(k, prior=priors, random_state=0, n_init=3).fit(train) for k in (4, 25))
    assert few.perplexity(scored, known=known) < many.perplexity(scored, known=known)
    # Fitted to what is scored they do.
    assert few.perplexity(scored) > many.perplexity(scored)
    assert few.perplexity(scored) == np.exp(-few.score(scored))


def test_words_that_were_not_seen_do_not_count(corpus):
    train, known, scored = corpus
    wide = np.hstack([train, np.zeros((80, 1))])
    model = PLSA(3, random_state=0, prior={"basis": "dirichlet:1"}).fit(wide)
    assert model.components_[:, -1].max() == 0
    new, none = (np.hstack([scored, np.full((len(scored), 1), n)]) for n in (5.0, 0.0))
    plain = np.hstack([known, np.zeros((len(known), 1))])
    dropped = f"data with the sum {5 * len(scored)} were left out"
    # Of mixtures that know all words, so that none is impossible.
    smooth = (0.01 + plain) * (np.arange(55) < 54)
    for how in ({}, {"known": smooth}):
        with pytest.warns(UserWarning, match=dropped):
            assert model.perplexity(new, **how) == pytest.approx(model.perplexity(none, **how))
    with pytest.warns(UserWarning, match=dropped):
        assert model.score(new) == pytest.approx(model.score(none))


def test_impossible_words_are_infinitely_surprising():
    X = np.kron(np.eye(2), np.full((3, 4), 5.0))
    model = PLSA(2, random_state=0).fit(X)
    assert model.perplexity(X[3:], known=X[:3]) > 1e12
    # Where not even rounding is left.
    apart = {"basis": np.kron(np.eye(2), np.full((4, 1), 0.25)), "mixture": np.kron(np.eye(2), np.ones((1, 3)))}
    model = PLSA(2, solver="em", tol=0, max_iter=1).fit(X, start=apart)
    model._explain = lambda known, observed, each: (apart["mixture"].T[:3], {"empty": []})
    with pytest.warns(UserWarning, match="data with the sum 15 have the probability 0 .* 'dirichlet:1.05'"):
        assert model.perplexity(X[3:] * [0, 0, 0, 0, 0, 0, 0, 1], known=X[:3]) == np.inf
    smooth = PLSA(2, method="vb", random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 8 < smooth.perplexity(X[3:], known=X[:3]) < np.inf


def test_what_is_wrong_with_completion_is_named(corpus):
    train, known, scored = corpus
    model = PLSA(3, random_state=0).fit(train)
    with pytest.raises(ValueError, match=r"known has the shape \(39, 54\), expected that of X, \(40, 54\)"):
        model.perplexity(scored, known=known[1:])
    with pytest.raises(ValueError, match="has 53 features"):
        model.perplexity(scored, known=known[:, 1:])
    with pytest.raises(ValueError, match="Negative values"):
        model.perplexity(scored, known=-known)
    with pytest.warns(UserWarning, match=r"samples \[2\] have no observed sum above 0"):
        known[2] = 0
        model.perplexity(scored, known=known)
    assert np.isnan(model.perplexity(0 * scored, known=train[:40]))
