"""What scikit-learn demands of every estimator."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import plcakit
from plcakit import (
    NMF,
    PLCA,
    PLSA,
    PNTF,
    ConsensusNMF,
    KMeans,
    SemiNMF,
    ShiftInvariantPLCA,
    ShiftInvariantSkellam,
    SkellamCP,
    SkellamSNMF,
    TransformInvariantPLCA,
)


@parametrize_with_checks(
    [
        NMF(n_components=2),
        NMF(solver="em"),
        NMF(solver="mu"),
        NMF(n_components=2, n_init=3),
        NMF(n_components=2, init="nndsvda"),
        NMF(n_components=2, missing="nan"),
        NMF(n_components=2, alpha_W=0.001, l1_ratio=0.5),
        PLSA(n_components=2),
        PLSA(n_components=2, solver="em"),
        PLSA(n_components=2, prior={"mixture": "entropic:0.1"}),
        PLCA(n_components=2),
        PLCA(n_components=2, solver="em"),
        PLSA(n_components=2, method="vb"),
        PLCA(n_components=2, method="vb"),
        NMF(n_components=2, beta_loss="frobenius"),
        SkellamSNMF(n_components=2),
        SkellamSNMF(n_components=2, method="vb"),
        SkellamCP(n_components=2),
        SkellamCP(n_components=2, scale_mode=0),
        PNTF(n_components=2),
        SemiNMF(n_components=2),
        KMeans(n_components=2),
        ConsensusNMF(n_components=2, n_runs=4, threshold=2.0),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


# By nature these cannot pass all of them: `missing="unstored"`, whose dense data are refused, since a dense array stores every cell; starts by singular vectors
# with more components than samples or features, of which there are no more vectors; `warm_start=True`, with which a second fit is meant to find another end.
@pytest.mark.long
@parametrize_with_checks(
    [
        *(NMF(n_components=2, solver=solver) for solver in ("fast", "squarem", "parabolic", "momentum")),
        *(PLSA(n_components=2, solver=solver) for solver in ("fast", "squarem", "parabolic", "momentum")),
        *(PLCA(n_components=2, solver=solver) for solver in ("fast", "squarem", "parabolic", "momentum")),
        *(SkellamSNMF(n_components=2, solver=solver) for solver in ("em", "squarem", "parabolic", "momentum")),
        *(SkellamCP(n_components=2, solver=solver) for solver in ("em", "squarem", "parabolic", "momentum")),
        *(model(n_components=2, tol=0, max_iter=20) for model in (NMF, PLSA, PLCA, SkellamSNMF, SkellamCP, PNTF)),
        *(model(n_components=2, n_init=2, n_jobs=2) for model in (NMF, PLSA, PLCA, SkellamSNMF, SkellamCP, PNTF)),
        NMF(n_components=1, init="nndsvd"),
        NMF(n_components=1, init="nndsvdar"),
        NMF(n_components=2, alpha_W=0.1),
        NMF(n_components=2, alpha_W=0.1, beta_loss="frobenius"),
        NMF(n_components=2, beta_loss=1.0),
        NMF(n_components=2, prior={"w": "gamma:1.5,0.5"}),
        PLSA(n_components=2, temper=0.8),
        PLSA(n_components=2, prior={"basis": "dirichlet:1.1"}),
        PLSA(n_components=2, missing="nan"),
        PLCA(n_components=2, temper=0.8, temper_prior=True),
        PLCA(n_components=2, missing="nan"),
        PLSA(n_components=2, method="vb", prior={"basis": "dirichlet:0.1", "mixture": "dirichlet:0.1"}),
        SkellamSNMF(n_components=2, missing="nan"),
        SkellamSNMF(n_components=2, replicates=float("inf")),
        SkellamSNMF(n_components=2, replicates=2, real_data=True),
        SkellamSNMF(n_components=2, method="vb", solver="squarem"),
        SkellamCP(n_components=2, method="vb"),
        SkellamCP(n_components=2, method="vb", solver="squarem"),
        SkellamCP(n_components=2, replicates=float("inf")),
        PNTF(n_components=2, sparsity={"factor_0": 0.1}),
    ]
)
def test_scikit_learn_on_other_settings(estimator, check):
    check(estimator)


ALL = [
    NMF(3),
    NMF(3, beta_loss="frobenius"),
    PLSA(3),
    PLCA(3),
    PLSA(3, method="vb"),
    PLCA(3, method="vb"),
    SkellamSNMF(3),
    SkellamSNMF(3, method="vb"),
    SkellamCP(3),
    PNTF(3),
]


@pytest.fixture
def X():
    return np.random.default_rng(0).poisson(2.0, (30, 12)).astype(float) + 0.5


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_copies_say_the_same(model, X):
    model = clone(model).set_params(random_state=1).fit(X)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(other.transform(X), model.transform(X))


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_set_output(model, X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"f{j}" for j in range(12)])
    model = clone(model).set_params(random_state=1).set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert list(out.columns) == list(model.get_feature_names_out())
    assert list(model.feature_names_in_) == list(frame.columns)
    # No warning about names of features.
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.score(frame)


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_grid_search_in_a_pipeline(model, X):
    step = type(model).__name__.lower()
    search = GridSearchCV(
        make_pipeline(clone(model).set_params(random_state=0)), {f"{step}__n_components": [1, 2]}, cv=2
    )
    search.fit(X)
    assert np.isfinite(search.best_score_)


def test_at_its_end_a_fit_says_what_to_do(X):
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        NMF(3, max_iter=2, random_state=0).fit(X)


def test_reconstruction_error_is_that_of_scikit_learn(X):
    from sklearn.decomposition import NMF as Other

    draw = np.random.default_rng(1)
    W, H = draw.random((30, 3)) + 0.1, draw.random((3, 12)) + 0.1
    ours = NMF(3, init="custom", solver="mu", tol=0, max_iter=10).fit(X, W=W, H=H)
    theirs = Other(
        3, init="custom", solver="mu", beta_loss="kullback-leibler", tol=0, max_iter=10
    )
    V = theirs.fit_transform(X, W=W.copy(), H=H.copy())
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-10)
    np.testing.assert_allclose(ours._blocks["w"], V, rtol=1e-10)
    np.testing.assert_allclose(ours.reconstruction_err_, theirs.reconstruction_err_, rtol=1e-10)


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_warm_start_goes_on(model, X):
    model = clone(model).set_params(random_state=0, max_iter=20, tol=1e-12, warm_start=True)
    with pytest.warns(ConvergenceWarning):
        first = model.fit(X).objective_
    with pytest.warns(ConvergenceWarning):
        second = model.fit(X).objective_
    assert second < first if isinstance(model, (NMF, PNTF)) else second > first


def test_frozen_blocks_and_components_keep_their_values(X):
    basis = np.random.default_rng(2).random((12, 3))
    basis /= basis.sum(axis=0)
    model = PLSA(3, freeze="basis", random_state=0).fit(X, start={"basis": basis})
    assert np.array_equal(model.components_, basis.T)
    model = PLSA(3, solver="em", freeze={"basis": [1]}, random_state=0).fit(X, start={"basis": basis})
    assert np.allclose(model.components_[1], basis[:, 1], rtol=0, atol=1e-15)
    assert not np.allclose(model.components_[0], basis[:, 0])


def test_priors_as_texts_and_objects(X):
    from plcakit.priors import Dirichlet, Entropic

    by_text = PLSA(3, prior={"mixture": "entropic:2.0"}, random_state=0).fit(X)
    by_object = PLSA(3, prior={"mixture": Entropic(2.0)}, random_state=0).fit(X)
    assert np.array_equal(by_text.components_, by_object.components_)
    one = PLSA(3, prior={"basis": "dirichlet:1.5"}, random_state=0).fit(X)
    each = PLSA(3, prior={"basis": Dirichlet(np.full((12, 1), 1.5))}, random_state=0).fit(X)
    assert np.array_equal(one.components_, each.components_)


def test_data_of_three_dimensions():
    X = np.random.default_rng(0).poisson(3.0, (6, 5, 4)).astype(float)
    model = PLCA(2, random_state=0).fit(X)
    assert [f.shape for f in model.factors_] == [(6, 2), (5, 2), (4, 2)]
    assert model.components_.shape == (2, 5, 4)
    assert np.isclose(model.reconstruct().sum(), X.sum())
    parts = sum(model.component(z) for z in range(2))
    np.testing.assert_allclose(parts, model.reconstruct())
    mixtures = model.transform(X)
    assert mixtures.shape == (6, 2) and np.allclose(mixtures.sum(axis=1), 1)
    assert np.isfinite(model.perplexity(X))


def test_workers_of_joblib_come_to_the_same(X):
    grid = {"n_components": [1, 2, 3]}
    scores = [
        GridSearchCV(NMF(random_state=0), grid, cv=2, n_jobs=n_jobs).fit(X).cv_results_["mean_test_score"]
        for n_jobs in (1, 2)
    ]
    assert np.array_equal(*scores)


# Its data are one array without samples (tag `two_d_array`): the suite makes samples by features, and leaves the estimator alone.
@parametrize_with_checks(
    [
        ShiftInvariantPLCA(kernel=(1, 1)),
        TransformInvariantPLCA(kernel=(1, 1), rotations=4),
        ShiftInvariantSkellam(kernel=(1, 1)),
        ShiftInvariantSkellam(kernel=(1, 1), method="vb"),
    ]
)
def test_what_of_scikit_learn_applies_to_one_tensor(estimator, check):
    check(estimator)


def test_kernels_are_found_where_they_lie():
    X = np.zeros((12, 20))
    kernel = np.array([[3.0, 1.0], [0.0, 2.0], [1.0, 1.0]])
    for at in ((2, 3), (5, 11), (8, 7)):
        X[at[0] : at[0] + 3, at[1] : at[1] + 2] += kernel
    # Without a preference a kernel of one cell would do, and impulses in the shape of the data.
    prior = {"impulses": "entropic:8"}
    model = ShiftInvariantPLCA(1, kernel=(3, 2), prior=prior, random_state=0, n_init=5).fit(X)
    np.testing.assert_allclose(model.kernels_[0], kernel / kernel.sum(), atol=1e-3)
    impulses, gap = model.transform(X, return_gap=True)
    assert impulses.shape == (1, 10, 19) and gap.max() <= model.transform_tol
    assert np.allclose(impulses[0, 2, 3], 1 / 3, atol=1e-3)
    assert pickle.loads(pickle.dumps(clone(model).fit(X))).score(X) == clone(model).fit(X).score(X)
    np.testing.assert_allclose(model.reconstruct(), X, atol=0.1)


def test_every_public_name_has_a_docstring():
    for name in plcakit.__all__:
        if name != "__version__":
            assert getattr(plcakit, name).__doc__
