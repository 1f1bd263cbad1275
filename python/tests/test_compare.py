"""Components of two models are matched whatever their order, and told apart where they differ."""

import json

import numpy as np
import pytest
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.exceptions import NotFittedError

from plcakit import NMF, PLSA, PNTF, ShiftInvariantPLCA, SkellamSNMF, compare, load
from plcakit.datasets import make_corpus, make_shapes, make_signed


def with_components(components, names=None):
    model = SklearnNMF(len(components))
    model.components_ = np.asarray(components)
    if names is not None:
        model.feature_names_in_ = np.asarray(names, dtype=object)
    return model


def test_the_order_and_the_scale_do_not_matter():
    draw = np.random.default_rng(0)
    for make in (NMF(4, random_state=0), PNTF(4, random_state=0), SkellamSNMF(3, missing="nan", random_state=0)):
        X = make_signed().X if isinstance(make, SkellamSNMF) else make_corpus().counts
        model = make.fit(X)
        order = draw.permutation(model.n_components_)
        other = with_components(model.components_[order] * 10.0 ** draw.integers(-200, 200, (len(order), 1)))
        found = compare(model, other)
        assert found.pairs["a"].tolist() == list(range(len(order))) and order[found.pairs["b"]].tolist() == found.pairs["a"].tolist()
        np.testing.assert_allclose(found.pairs["cosine"], 1)
        np.testing.assert_allclose(found.pairs["difference"], 0, atol=1e-12)
        assert found.mean_cosine == pytest.approx(1) and found.least_cosine == pytest.approx(1)


def test_what_differs_is_told():
    a, b = with_components([[1.0, 1, 0, 0], [0, 0, 3, 1]]), with_components([[0.0, 0, 1, 3], [2, 2, 0, 0], [0, 0, 0, 0]])
    found = compare(a, b)
    assert found.pairs[["a", "b"]].tolist() == [(0, 1), (1, 0)]
    np.testing.assert_allclose(found.pairs["cosine"], [1, 0.6])
    np.testing.assert_allclose(found.pairs["difference"], [0, 0.5])
    assert (found.mean_cosine, found.least_cosine) == (pytest.approx(0.8), pytest.approx(0.6))
    # The best sum, not the best first.
    greedy = compare(with_components([[1.0, 1.0], [1.0, 0.0]]), with_components([[1.0, 0.9], [0.2, 1.0]]))
    assert greedy.pairs["b"].tolist() == [1, 0]


def test_kernels_are_compared():
    image = make_shapes().image
    one, other = (ShiftInvariantPLCA(2, kernel=(5, 5), max_iter=30, tol=0, random_state=seed).fit(image) for seed in (0, 0))
    assert compare(one, other).pairs[["a", "b"]].tolist() == [(0, 0), (1, 1)] and compare(one, other).least_cosine == pytest.approx(1)


def test_topics_are_matched_as_by_the_command(plca, tmp_path):
    X = make_corpus().counts.toarray()
    np.save(tmp_path / "v.npy", X)
    for seed, name in ((1, "a.npz"), (2, "b.npz")):
        plca(*f"fit plsa v.npy --given 0 --rank 4 --seed {seed} --max-iter 20 --quiet --output {name}".split(), cwd=tmp_path)
    theirs = json.loads(plca("compare", "a.npz", "b.npz", "--json", cwd=tmp_path))
    ours = compare(load(tmp_path / "a.npz"), load(tmp_path / "b.npz"))
    # It counts the mixtures, too: of each pair the cosine of the topics is one of two.
    cosines = {(pair["a"], pair["b"]): pair["blocks"]["basis"] for pair in theirs["pairs"]}
    for pair in ours.pairs:
        assert cosines[pair["a"], pair["b"]] == pytest.approx(pair["cosine"])


def test_what_cannot_be_compared_is_named():
    a = with_components([[1.0, 2.0]], ["x", "y"])
    for b, error, message in (
        (with_components([[1.0, 2.0, 3.0]]), ValueError, r"a has components of the shape \(2,\), b of \(3,\)"),
        (with_components([[1.0, 2.0]], ["y", "x"]), ValueError, "other names, or in another order"),
        (np.ones((1, 2)), TypeError, "b is .*, expected a fitted estimator"),
        (PLSA(2), NotFittedError, "not fitted"),
    ):
        with pytest.raises(error, match=message):
            compare(a, b)
    assert compare(a, with_components([[1.0, 2.0]])).least_cosine == pytest.approx(1)


def test_a_comparison_without_names_is_told():
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).poisson(3, (20, 4)).astype(float)
    named = NMF(2, random_state=0).fit(pd.DataFrame(X, columns=list("abcd")))
    plain = NMF(2, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="a has names of features, the other model has none"):
        compare(named, plain)
    with pytest.warns(UserWarning, match="b has names of features"):
        compare(plain, named)
