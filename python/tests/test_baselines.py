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


def test_semi_nmf_finds_signed_components():
    rng = np.random.default_rng(4)
    components = np.array([[2.0, -1.0, 0.5], [-1.0, 3.0, 1.0]])
    X = rng.uniform(size=(40, 2)) @ components + 0.01 * rng.standard_normal((40, 3))
    model = SemiNMF(2, random_state=0, tol=0, max_iter=2000).fit(X)
    A = model._blocks["activations"].T
    assert (A >= 0).all() and (model.components_ < 0).any()
    # The components are the least squares of their activations.
    np.testing.assert_allclose(model.components_, np.linalg.lstsq(A, X, rcond=None)[0], rtol=1e-8)
    np.testing.assert_allclose(model.reconstruct(), A @ model.components_, rtol=1e-12)
    np.testing.assert_allclose(model.reconstruction_err_, np.linalg.norm(X - A @ model.components_), rtol=1e-9)
    # Components of the right sign leave a tenth of the data at most; samples that are explained anew fit no worse than in the fit.
    W = model.transform(X)
    errors = [np.linalg.norm(X - V @ model.components_) for V in (A, W)]
    assert (W >= 0).all() and errors[1] <= errors[0] * (1 + 1e-3) and errors[0] < 0.1 * np.linalg.norm(X)
