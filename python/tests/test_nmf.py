"""What NMF shares with scikit-learn beyond its contract: penalties and starts."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import NMF as Other
from sklearn.decomposition._nmf import _initialize_nmf

import plcakit
from plcakit import NMF
from plcakit.priors import Gamma, Penalty


@pytest.fixture
def X():
    draw = np.random.default_rng(0)
    return draw.poisson(draw.gamma(0.5, 4.0, (20, 3)) @ draw.gamma(0.5, 1.0, (3, 12))).astype(float) + 0.25


def start(seed=1):
    draw = np.random.default_rng(seed)
    return draw.random((20, 3)) + 0.1, draw.random((3, 12)) + 0.1


@pytest.mark.parametrize("ratio", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
@pytest.mark.parametrize("alphas", [(0.05, "same"), (0.02, 0.1), (0.0, 0.03)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_penalties_are_those_of_scikit_learn(X, ratio, loss, alphas, form):
    W, H = start()
    settings = {"alpha_W": alphas[0], "alpha_H": alphas[1], "l1_ratio": ratio, "beta_loss": loss}
    settings |= {"init": "custom", "solver": "mu", "tol": 0, "max_iter": 10}
    ours = NMF(3, **settings).fit(form(X), W=W, H=H)
    theirs = Other(3, **settings)
    V = theirs.fit_transform(form(X), W=W.copy(), H=H.copy())
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(ours._answer(ours._blocks), V, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(ours.reconstruction_err_, theirs.reconstruction_err_, rtol=1e-9)


def objective(X, W, H, settings):
    """That of the documentation."""
    Y = W @ H
    r, n, m = settings["l1_ratio"], *X.shape
    logs = X * np.log(np.where(X > 0, X, 1) / Y)
    D = (logs - X + Y).sum()
    each = [(m * settings["alpha_W"], W), (n * settings["alpha_H"], H)]
    return D + sum(alpha * (r * F.sum() + (1 - r) / 2 * (F**2).sum()) for alpha, F in each)


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("solver", ["auto", "em", "squarem", "mu"])
def test_solvers_come_to_one_end(X, ratio, solver):
    settings = {"alpha_W": 0.02, "alpha_H": 0.05, "l1_ratio": ratio}
    W, H = start()
    # Close to scikit-learn's end, from where there is one optimum.
    theirs = Other(3, **settings, init="custom", solver="mu", beta_loss="kullback-leibler", tol=0, max_iter=2000)
    W = theirs.fit_transform(X, W=W, H=H)
    model = NMF(3, **settings, init="custom", solver=solver, tol=1e-12, max_iter=20000)
    model.fit(X, W=W, H=theirs.components_)
    best = objective(X, W, theirs.components_, settings)
    assert model.objective_ <= best * (1 + 1e-7)
    np.testing.assert_allclose(model.objective_, best, rtol=1e-3)
    np.testing.assert_allclose(
        model.objective_, objective(X, model._blocks["w"], model._blocks["h"], settings), rtol=1e-10
    )
    if solver != "mu":
        assert (np.diff(model.trace_["objective"]) <= 1e-9 * best).all()


def test_coordinate_descent_has_no_penalties(X):
    with pytest.raises(ValueError, match="prior on `w` is not supported by coordinate descent"):
        NMF(3, alpha_W=0.1, solver="fast").fit(X)


@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
def test_new_data_meet_the_penalty_on_W_alone(X, loss):
    model = NMF(3, beta_loss=loss, alpha_W=0.05, alpha_H=0.02, l1_ratio=0.5, random_state=0, max_iter=5000).fit(X)
    W, gap = model.transform(X, return_gap=True)
    assert len(gap) == 0
    H, m = model.components_, X.shape[1]
    for row, x in zip(W, X):
        y = row @ H
        slope = H @ (1 - x / y) if loss == "kullback-leibler" else H @ (y - x)
        slope = slope + m * 0.05 * (0.5 + 0.5 * row)
        assert (slope > -1e-3).all() and (np.abs(slope * row) < 1e-3).all()
    # The penalty has no part in the score.
    Y = W @ H
    D = (X * np.log(X / Y) - X + Y).sum() if loss == "kullback-leibler" else ((X - Y) ** 2).sum()
    np.testing.assert_allclose(model.score(X), -D / X.size, rtol=1e-9)
    # A penalty on H alone leaves the certificates.
    free = NMF(3, beta_loss=loss, alpha_H=0.02, random_state=0, max_iter=5000).fit(X)
    assert len(free.transform(X, return_gap=True)[1]) == len(X)


def test_penalties_as_priors(X):
    n, m = X.shape
    settings = {"random_state": 0, "tol": 0, "max_iter": 30}
    by_alpha = NMF(3, alpha_W=0.02, alpha_H=0.05, l1_ratio=0.5, **settings).fit(X)
    linear = [m * 0.02 * 0.5, n * 0.05 * 0.5]
    prior = {"w": Penalty(linear[0], linear[0]), "h": f"rate:{linear[1]!r},{linear[1]!r}"}
    by_prior = NMF(3, prior=prior, **settings).fit(X)
    assert np.array_equal(by_alpha.components_, by_prior.components_)
    assert by_alpha.objective_ == by_prior.objective_
    assert by_alpha.reconstruction_err_ == by_prior.reconstruction_err_
    gamma = NMF(3, prior={"h": Gamma(1.0, 0.5)}, **settings).fit(X)
    rate = NMF(3, prior={"h": Penalty(0.5)}, **settings).fit(X)
    assert np.array_equal(gamma.components_, rate.components_)


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha_W": 0.1, "prior": {"w": "rate:1"}},
        {"beta_loss": "frobenius", "prior": {"factor_0": "rate:1"}},
        {"prior": {"w": "rate:-1"}},
        {"prior": {"w": "rate:nan"}},
        {"alpha_W": -1.0},
        {"alpha_H": "other"},
        {"l1_ratio": 1.5},
    ],
)
def test_penalties_that_are_none(X, settings):
    with pytest.raises(ValueError, match="prior|alpha|l1_ratio"):
        NMF(3, **settings).fit(X)


@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
def test_penalised_models_come_back_from_files(X, loss, tmp_path):
    model = NMF(3, beta_loss=loss, alpha_W=0.05, l1_ratio=0.5, random_state=0).fit(X)
    model.save(tmp_path / "m.npz")
    again = plcakit.load(tmp_path / "m.npz")
    assert np.array_equal(again.transform(X), model.transform(X))
    np.testing.assert_allclose(again.reconstruction_err_, model.reconstruction_err_, rtol=1e-9)
    assert again._objective_name() == model._objective_name() != "kl_divergence"


def blocks(seed=0):
    """Data of a few products, each ahead of the next."""
    draw = np.random.default_rng(seed)
    return sum(3.0**-z * np.outer(draw.gamma(0.5, 1.0, 30), draw.gamma(0.5, 1.0, 20)) for z in range(4)) + 0.01


@pytest.mark.parametrize("loss", ["kullback-leibler", "frobenius"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_nndsvd_is_that_of_scikit_learn(loss, form):
    X = blocks()
    settings = {"beta_loss": loss, "solver": "mu", "init": "nndsvda", "tol": 0, "max_iter": 5}
    ours = NMF(3, **settings, random_state=0).fit(form(X))
    theirs = Other(3, **settings, random_state=0)
    V = theirs.fit_transform(X)
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours._answer(ours._blocks), V, rtol=1e-6, atol=1e-9)


def test_nndsvd_with_zeros():
    X = blocks()
    frobenius = NMF(3, beta_loss="frobenius", init="nndsvd", random_state=0, tol=0, max_iter=5).fit(X)
    theirs = Other(3, init="nndsvd", solver="mu", random_state=0, tol=0, max_iter=5).fit(X)
    np.testing.assert_allclose(frobenius.components_, theirs.components_, rtol=1e-6, atol=1e-9)
    with pytest.warns(UserWarning, match="filled as with 'nndsvda'"):
        plain = NMF(3, init="nndsvd", random_state=0).fit(X)
    assert np.array_equal(plain.components_, NMF(3, init="nndsvda", random_state=0).fit(X).components_)
    one, two = (NMF(3, init="nndsvdar", random_state=s, tol=0, max_iter=1).fit(X).components_ for s in (0, 1))
    assert not np.array_equal(one, two)


def test_nndsvd_takes_hidden_cells_for_the_mean():
    X = blocks()
    observed = np.random.default_rng(5).random(X.shape) < 0.8
    filled = np.where(observed, X, X[observed].mean())
    settings = {"init": "nndsvda", "random_state": 0, "tol": 0, "max_iter": 1, "solver": "mu"}
    masked = NMF(3, **settings).fit(X, observed=observed)
    nan = NMF(3, **settings, missing="nan").fit(np.where(observed, X, np.nan))
    assert np.array_equal(masked.components_, nan.components_)
    # An iteration from the start of the filled data.
    W, H = _initialize_nmf(filled, 3, init="nndsvda", random_state=0)
    from_it = NMF(3, **{**settings, "init": "custom"}).fit(X, observed=observed, W=W, H=H)
    np.testing.assert_allclose(masked.components_, from_it.components_, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="n_components <= min"):
        NMF(21, init="nndsvda").fit(X)
