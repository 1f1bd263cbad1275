"""Semi-NMF and k-means as estimators."""

import numpy as np
import pytest

from plcakit import KMeans, SemiNMF


def data():
    """Samples about three points, each its own distance away."""
    rng = np.random.default_rng(4)
    centres = np.array([[5.0, 0.0, -3.0], [-4.0, 6.0, 1.0], [0.0, -7.0, 2.0]])
    return centres[np.arange(30) % 3] + 0.1 * rng.standard_normal((30, 3)), np.arange(30) % 3


def test_clusters_are_those_of_nearest_centres():
    X, group = data()
    model = KMeans(3, random_state=0, n_init=4).fit(X)
    assert len({(a, b) for a, b in zip(model.labels_, group)}) == 3
    for label in range(3):
        np.testing.assert_allclose(model.components_[label], X[model.labels_ == label].mean(axis=0), rtol=1e-12)
    new = X + 0.2
    distances = ((new[:, np.newaxis] - model.components_) ** 2).sum(axis=2)
    assert np.array_equal(model.predict(new), distances.argmin(axis=1))
    assert np.array_equal(model.transform(new).argmax(axis=1), model.predict(new))
    np.testing.assert_allclose(model.objective_, ((X - model.inverse_transform(model.transform(X))) ** 2).sum(), rtol=1e-12)
    with pytest.raises(ValueError, match="at most 30"):
        KMeans(31).fit(X)


def test_semi_nmf_is_a_stationary_point():
    X, _ = data()
    model = SemiNMF(2, random_state=0, tol=0, max_iter=3000).fit(X)
    A = model.fit_transform(X)
    assert (A >= 0).all() and (model.components_ < 0).any()
    # The components are the least squares of their activations, and no activation can still gain.
    np.testing.assert_allclose(model.components_, np.linalg.lstsq(A, X, rcond=None)[0], rtol=1e-6, atol=1e-8)
    slope = (A @ model.components_ - X) @ model.components_.T
    assert slope.min() > -1e-3 and abs(A * slope).max() < 1e-3
    np.testing.assert_allclose(model.reconstruction_err_, np.linalg.norm(X - A @ model.components_), rtol=1e-9)
