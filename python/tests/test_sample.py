"""Data drawn from learnt models."""

import numpy as np
import pytest
from scipy import sparse

from plcakit import NMF, PLCA, PLSA, PNTF, SkellamSNMF


@pytest.fixture
def X():
    draw = np.random.default_rng(0)
    return draw.poisson(draw.gamma(0.5, 4.0, (12, 2)) @ draw.gamma(0.5, 1.0, (2, 9)) + 0.5).astype(float)


@pytest.mark.parametrize("make", [NMF, PLSA, PLCA])
def test_counts_follow_the_model(X, make):
    model = make(2, random_state=0).fit(X)
    n = 200_000
    drawn = model.sample(n, random_state=3)
    assert drawn.shape == X.shape and drawn.sum() == n and (drawn == np.round(drawn)).all()
    share = model.reconstruct() / model.reconstruct().sum()
    # Five standard deviations, and cells without mass stay empty.
    assert (np.abs(drawn - n * share) <= 5 * np.sqrt(n * share) + 1e-9).all()
    as_sparse = model.sample(n, random_state=3, as_sparse=True)
    assert sparse.issparse(as_sparse) and np.array_equal(as_sparse.toarray(), drawn)
    assert not np.array_equal(model.sample(n, random_state=4), drawn)
    assert model.sample(0, random_state=0).sum() == 0


@pytest.mark.parametrize("make", [NMF, PLSA, PLCA])
def test_the_number_of_events_is_poisson(X, make):
    model = make(2, random_state=0).fit(X)
    sums = np.array([model.sample(random_state=s).sum() for s in range(200)])
    mass = model.reconstruct().sum()
    np.testing.assert_allclose(mass, X.sum(), rtol=1e-3)
    assert abs(sums.mean() - mass) < 5 * np.sqrt(mass / 200)
    assert 0.6 < sums.var() / mass < 1.6


def test_three_dimensions():
    X = np.random.default_rng(0).poisson(3.0, (4, 3, 2)).astype(float)
    model = PLCA(2, random_state=0).fit(X)
    drawn = model.sample(500, random_state=0)
    assert drawn.shape == X.shape and drawn.sum() == 500
    with pytest.raises(ValueError, match="3 dimensions"):
        model.sample(5, as_sparse=True)


@pytest.mark.parametrize("method", ["em", "vb"])
@pytest.mark.parametrize("replicates", [1, 4])
def test_differences_of_counts(method, replicates):
    draw = np.random.default_rng(1)
    X = (draw.poisson(4.0, (8, 5)) - draw.poisson(3.0, (8, 5))).astype(float)
    model = SkellamSNMF(2, method=method, replicates=replicates, random_state=0).fit(X)
    n = 40_000
    drawn = model.sample(n, random_state=2)
    assert drawn.shape == X.shape
    rates = model.transform(X) @ (model.components_plus_ + model.components_minus_)
    assert (drawn * replicates == np.round(drawn * replicates)).all()
    mean = model.reconstruct()
    # Activations of the fit, not those of `transform`: rates are those of the same size.
    assert (np.abs(drawn / n - mean) < 8 * np.sqrt((rates.max() + 1) / n)).all()
    assert np.array_equal(model.sample(n, random_state=2, as_sparse=True).toarray(), drawn)


def test_what_cannot_be_drawn(X):
    with pytest.raises(ValueError, match="no distribution"):
        SkellamSNMF(2, random_state=0).fit(X).sample()
    with pytest.raises(ValueError, match="kullback-leibler"):
        NMF(2, beta_loss="frobenius", random_state=0).fit(X).sample(3)
    model = PLSA(2, random_state=0).fit(X)
    for n in (-1, 2.5, "many"):
        with pytest.raises(ValueError, match="n is"):
            model.sample(n)
    with pytest.raises(MemoryError):
        model.sample(2**62)
    assert not hasattr(PNTF(2), "sample")
    with pytest.raises(ValueError, match="not fitted"):
        PLCA(2).sample(3)
