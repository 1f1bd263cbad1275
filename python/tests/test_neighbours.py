"""What ``transform`` says of a sample does not depend on the others."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from plcakit import NMF, PLCA, PLSA, PNTF, SkellamCP, SkellamSNMF

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(2, (23, 8)).astype(float) + np.eye(23, 8)
SIGNED = (RNG.poisson(3, (23, 8)) - RNG.poisson(3, (23, 8))).astype(float)
PRIOR = {"mixture": "dirichlet:0.1", "basis": "dirichlet:0.1"}

MODELS = {
    "plsa": (PLSA(3, random_state=0), COUNTS),
    "plsa-vb": (PLSA(3, method="vb", prior=PRIOR, random_state=0), COUNTS),
    "plca": (PLCA(3, random_state=0), COUNTS),
    "plca-vb": (PLCA(3, method="vb", random_state=0), COUNTS),
    "nmf-kl": (NMF(3, random_state=0), COUNTS),
    "pntf": (PNTF(3, random_state=0), COUNTS),
    "skellam": (SkellamSNMF(3, random_state=0), SIGNED),
    "skellam-vb": (SkellamSNMF(3, method="vb", random_state=0), SIGNED),
    "skellam-cp": (SkellamCP(3, random_state=0), SIGNED),
    "skellam-cp-vb": (SkellamCP(3, method="vb", random_state=0), SIGNED),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("single", [False, True])
def test_samples_know_nothing_of_each_other(name, single):
    model, X = MODELS[name]
    X = X.astype(np.float32) if single else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = model.set_params(max_iter=30).fit(X)
        whole = model.transform(X)
        order = np.random.default_rng(1).permutation(len(X))
        assert np.array_equal(model.transform(X[order]), whole[order])
        assert np.array_equal(model.transform(sparse.csr_matrix(X)), whole)
        for y in (0, 11, 22):
            assert np.array_equal(model.transform(X[y : y + 1])[0], whole[y])


def test_shares_are_told_from_counts():
    shares = COUNTS / COUNTS.sum(axis=1, keepdims=True)
    for model in (PLSA, PLCA):
        with pytest.warns(UserWarning, match="shares"):
            model(2, method="vb", random_state=0).fit(shares)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model(2, method="vb", random_state=0).fit(COUNTS)


def test_probabilities_are_refused_as_shapes():
    topics = RNG.dirichlet(np.ones(8), 3).T
    model = PLSA(3, method="vb", freeze="basis_shape", prior=PRIOR, random_state=0)
    with pytest.raises(ValueError, match="expected shapes"):
        model.fit(COUNTS, start={"basis_shape": topics})
