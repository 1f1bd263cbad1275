"""Every container gives the same numbers, and what is wrong is refused by name."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import plcakit
from plcakit import NMF, PLCA, PLSA, PNTF, ShiftInvariantPLCA, SkellamSNMF


@pytest.fixture
def X():
    draw = np.random.default_rng(0)
    return draw.poisson(3.0, (20, 12)) * (draw.random((20, 12)) < 0.6).astype(float)


def fitted(X, **params):
    return NMF(3, random_state=0, tol=0, max_iter=30, **params).fit(X).components_


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("array", [True, False])
def test_sparse_formats(X, form, array):
    base = fitted(sparse.csr_matrix(X))
    of = (sparse.csr_array if array else sparse.csr_matrix)(X).asformat(form)
    # The order of the entries within a run is that of memory: sums of one cell alone depend on it.
    assert np.array_equal(fitted(of), base)


def test_wide_indices(X):
    of = sparse.csr_matrix(X)
    base = fitted(of)
    of.indices, of.indptr = of.indices.astype(np.int64), of.indptr.astype(np.int64)
    assert np.array_equal(fitted(of), base)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float16, ">f8", bool])
def test_other_numbers_are_converted(X, dtype):
    X = np.minimum(X, 1) if dtype is bool else X
    assert np.array_equal(fitted(X.astype(dtype)), fitted(X))


def test_views_lists_and_frames(X):
    pandas = pytest.importorskip("pandas")
    wide = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)
    base = fitted(X)
    assert np.array_equal(fitted(wide[::2, ::3]), base)
    assert np.array_equal(fitted(X.tolist()), base)
    assert np.array_equal(fitted(pandas.DataFrame(X)), np.asarray(fitted(pandas.DataFrame(X).to_numpy())))
    np.testing.assert_allclose(fitted(np.asfortranarray(X)), base, rtol=1e-9)


@pytest.mark.parametrize("make", [NMF, PLSA, PLCA])
def test_hidden_cells_are_never_read(X, make):
    X = X + 0.5
    observed = np.random.default_rng(1).random(X.shape) < 0.8
    model = make(2, random_state=0)
    base = model.fit(X, observed=observed).transform(X, observed=observed)
    for junk in (np.nan, np.inf, -1.0):
        other = np.where(observed, X, junk)
        again = model.fit(other, observed=observed).transform(other, observed=observed)
        assert np.array_equal(again, base)
    by_nan = make(2, random_state=0, missing="nan").fit(np.where(observed, X, np.nan))
    assert np.array_equal(by_nan.transform(np.where(observed, X, np.nan)), base)
    masked = np.ma.MaskedArray(X, ~observed)
    assert np.array_equal(model.fit(masked).transform(masked), base)


def test_unstored_cells_are_hidden(X):
    stored = sparse.csr_matrix(X)
    model = NMF(2, random_state=0, missing="unstored").fit(stored)
    same = NMF(2, random_state=0).fit(X, observed=X != 0)
    np.testing.assert_allclose(model.objective_, same.objective_, rtol=1e-4)
    with pytest.raises(ValueError, match="missing='unstored' needs a sparse X"):
        NMF(2, missing="unstored").fit(X)
    with pytest.raises(ValueError, match="missing='nan' needs a dense X"):
        NMF(2, missing="nan").fit(stored)


def test_sparse_mask(X):
    X, observed = X + 0.5, np.random.default_rng(1).random(X.shape) < 0.8
    dense = NMF(2, random_state=0, tol=0, max_iter=20, solver="em").fit(X, observed=observed)
    of = NMF(2, random_state=0, tol=0, max_iter=20, solver="em").fit(sparse.csr_matrix(X), observed=observed)
    np.testing.assert_allclose(of.components_, dense.components_, rtol=1e-8)


def test_sparse_tensor():
    if not hasattr(sparse, "coo_array"):
        pytest.skip("no arrays of any order")
    draw = np.random.default_rng(0)
    X = draw.poisson(1.0, (7, 6, 5)).astype(float)
    coords = np.nonzero(X)
    try:
        of = sparse.coo_array((X[coords], coords), shape=X.shape)
    except (TypeError, ValueError):
        pytest.skip("this SciPy has matrices only")
    dense = PLCA(2, random_state=0, solver="em", tol=0, max_iter=20).fit(X)
    other = PLCA(2, random_state=0, solver="em", tol=0, max_iter=20).fit(of)
    np.testing.assert_allclose(other.components_, dense.components_, rtol=1e-8)


@pytest.mark.filterwarnings("error")
def test_samples_without_mass(X):
    X[3] = 0
    # Nothing is an answer, too.
    assert not NMF(2, random_state=0).fit(X).transform(X)[3].any()
    for model in (PLSA(2), PLSA(2, method="vb"), PLCA(2), PNTF(2)):
        model.set_params(random_state=0).fit(X)
        for call in (model.fit_transform, model.transform):
            with pytest.warns(UserWarning, match=r"samples \[3\] have no observed sum above 0: the values returned for them have no meaning") as caught:
                np.testing.assert_allclose(call(X)[3], [0.5, 0.5])
            assert len(caught) == 1 and caught[0].filename == __file__
        with pytest.warns(UserWarning, match=r"samples \[0, 1\] have no observed sum above 0"):
            np.testing.assert_allclose(model.transform(np.zeros((2, 12))), [[0.5, 0.5]] * 2)
        # They do not count.
        if not isinstance(model, PNTF):
            assert np.isclose(model.score(X), model.score(np.delete(X, 3, axis=0)))
            assert np.isnan(model.perplexity(X[3:4]))


@pytest.mark.parametrize("line", ["plsa --given 0", "plsa-vb --given 0"])
def test_samples_without_mass_by_the_command(plca, tmp_path, X, line):
    X[3] = 0
    np.save(tmp_path / "v.npy", X)
    name, *options = line.split()
    plca("fit", name, "v.npy", *options, *"--rank 3 --seed 0 --output m.npz --quiet".split(), cwd=tmp_path)
    plca(*"transform m.npz v.npy --output t.npz --quiet".split(), cwd=tmp_path)
    with pytest.warns(UserWarning, match="no meaning"):
        ours = plcakit.load(tmp_path / "m.npz").transform(X)
    np.testing.assert_array_equal(ours[3], np.load(tmp_path / "t.npz")["mixture"][:, 3])


def test_cells_out_of_reach_are_left_out():
    X = np.array([[3.0, 1.0, 0.0], [2.0, 5.0, 0.0]])
    model = PLSA(1, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="no component has positive probability"):
        model.transform([[1.0, 1.0, 1.0]])


WRONG = {
    "negative": (lambda X: NMF(2).fit(-X - 1), r"Negative values in data.*\(fit\): .*SkellamSNMF .* is for data of either sign"),
    "negative picture": (lambda X: ShiftInvariantPLCA(kernel=(2, 2)).fit(-X - 1), "ShiftInvariantSkellam is for data of either sign"),
    "nan": (
        lambda X: NMF(2).fit(np.full_like(X, np.nan)),
        "^X contains NaN, which NMF takes for a mistake. If it marks hidden cells, say so: missing='nan', or observed=mask$",
    ),
    "inf": (lambda X: NMF(2).fit(np.full_like(X, np.inf)), "infinity"),
    "empty": (lambda X: NMF(2).fit(X[:0]), "0 sample"),
    "one dimension": (lambda X: NMF(2).fit(X[0]), "Expected 2D"),
    "three dimensions": (lambda X: NMF(2).fit(X[None]), "dim 3"),
    "strings": (lambda X: NMF(2).fit([["a", "b"], ["c", "d"]]), "could not convert"),
    "words": (lambda X: PLSA(2).fit([["a", "b"], ["c"]]), "X has lists of words: .*CountVectorizer.analyzer=list."),
    "as many words": (lambda X: PLSA(2).fit([["a", "b"], ["c", "d"]]), "X has lists of words: .*CountVectorizer.analyzer=list."),
    "bags": (lambda X: PLSA(2).fit([[(0, 1), (3, 2)], [(1, 2)]]), "X has pairs of a word and its count: .*corpus2csc"),
    "dictionaries": (lambda X: NMF(2).fit([{"a": 1}, {"b": 2}]), "X has dictionaries: .*DictVectorizer"),
    "ragged": (lambda X: NMF(2).fit([[1, 2], [3]]), "Rows of X have between 1 and 2 values: expected as many in each"),
    "texts": (lambda X: PLSA(2).fit(["the cat", "the dog"]), "could not convert string to float: 'the cat'. X has texts: count their words first, .*CountVectorizer"),
    "a text": (lambda X: PLSA(2).fit(np.array([["a", 1.0], ["b", 2.0]], dtype=object)), "could not convert string to float: 'a'. X has a column of texts: leave it out"),
    "objects": (lambda X: NMF(2).fit(np.array([[object()] * 2] * 2)), "float"),
    "complex": (lambda X: NMF(2).fit(X + 1j), r"^Complex data not supported: X is to have real numbers, .*np.abs\(X\), or real parts, np.real\(X\)$"),
    "lda": (lambda X: PLSA(2, method="lda").fit(X), "'vb' is variational Bayes, which for PLSA is latent Dirichlet allocation"),
    "no mass": (lambda X: NMF(2).fit(X * 0), "no observed entry is positive"),
    "n_components 0": (lambda X: NMF(0).fit(X), "n_components"),
    "n_components 2.5": (lambda X: NMF(2.5).fit(X), "n_components"),
    "n_components text": (lambda X: NMF("many").fit(X), "n_components"),
    "tol": (lambda X: NMF(2, tol=-1).fit(X), "tol"),
    "tol nan": (lambda X: NMF(2, tol=np.nan).fit(X), "tol"),
    "max_iter": (lambda X: NMF(2, max_iter=0).fit(X), "max_iter"),
    "solver": (lambda X: NMF(2, solver="cd").fit(X), "solver"),
    "init": (lambda X: NMF(2, init="best").fit(X), "init"),
    "beta_loss": (lambda X: NMF(2, beta_loss=0).fit(X), "beta_loss"),
    "seed": (lambda X: NMF(2, random_state=-1).fit(X), "random_state"),
    "seed of more bits": (lambda X: NMF(2, random_state=2**64).fit(X), "random_state"),
    "seed text": (lambda X: NMF(2, random_state="a").fit(X), "random_state"),
    "n_init": (lambda X: NMF(2, n_init=0).fit(X), "n_init"),
    "n_jobs": (lambda X: NMF(2, n_jobs="all").fit(X), "n_jobs"),
    "missing": (lambda X: NMF(2, missing="zero").fit(X), "missing"),
    "prior text": (lambda X: PLSA(2, prior={"basis": "gauss:1"}).fit(X), "gauss"),
    "prior value": (lambda X: PLSA(2, prior={"basis": "dirichlet:-1"}).fit(X), "-1"),
    "prior block": (lambda X: PLSA(2, prior={"w": "dirichlet:2"}).fit(X), "no block 'w'"),
    "prior number": (lambda X: PLSA(2, prior={"basis": 2}).fit(X), "prior of 'basis' is 2"),
    "prior list": (lambda X: PLSA(2, prior=["dirichlet:2"]).fit(X), "prior"),
    "prior of rates": (lambda X: NMF(2, prior={"w": "dirichlet:2"}).fit(X), "prior"),
    "freeze block": (lambda X: PLSA(2, freeze="topics").fit(X), "topics"),
    "freeze not given": (lambda X: PLSA(2, freeze="basis").fit(X), "basis"),
    "freeze component": (
        lambda X: PLSA(2, freeze={"basis": [7]}).fit(X, start={"basis": np.full((12, 2), 1 / 12)}),
        "7",
    ),
    "start block": (lambda X: NMF(2).fit(X, start={"basis": np.ones((12, 2))}), "no block 'basis'"),
    "start shape": (lambda X: NMF(2).fit(X, start={"w": np.ones((3, 2))}), "'w' has shape"),
    "start negative": (lambda X: NMF(2).fit(X, start={"w": -np.ones((20, 2))}), "`w` has -1"),
    "start nan": (lambda X: NMF(2).fit(X, start={"w": np.full((20, 2), np.nan)}), "`w` has NaN"),
    "custom without": (lambda X: NMF(2, init="custom").fit(X), "neither W nor H"),
    "W without custom": (lambda X: NMF(2).fit(X, W=np.ones((20, 2))), "init"),
    "mask shape": (lambda X: NMF(2).fit(X, observed=np.ones((2, 2), bool)), "observed has shape"),
    "mask values": (lambda X: NMF(2).fit(X, observed=X + 5), "observed"),
    "mask of all": (lambda X: NMF(2).fit(X, observed=np.zeros(X.shape, bool)), "observed"),
    "observed nan": (
        lambda X: NMF(2).fit(np.full_like(X, np.nan), observed=np.eye(20, 12, dtype=bool)),
        "not a finite number",
    ),
    "observed negative": (
        lambda X: NMF(2).fit(-X - 1, observed=np.eye(20, 12, dtype=bool)),
        "not a finite number >= 0",
    ),
    "temper": (lambda X: PLSA(2, temper=2.0).fit(X), "temper"),
    "temper and fast": (lambda X: PLSA(2, temper=0.5, solver="fast").fit(X), "solver"),
    "features": (lambda X: NMF(2).fit(X).transform(X[:, :5]), "features"),
    "nndsvd rank": (lambda X: NMF(15, init="nndsvda").fit(X), "n_components"),
    "huge rank": (lambda X: NMF(2**45).fit(X), None),
    "text": (lambda X: NMF(2).fit("X"), "could not convert"),
    "nothing": (lambda X: NMF(2).fit(None), "None|NoneType|Expected 2D"),
    "ragged": (lambda X: NMF(2).fit([[1.0], [1.0, 2.0]]), "sequence|inhomogeneous"),
    "no features": (lambda X: NMF(2).fit(X[:, :0]), "0 feature"),
    "not fitted": (lambda X: NMF(2).transform(X), "not fitted yet"),
    "callback": (lambda X: NMF(2, callback=3).fit(X), "callback"),
    "method": (lambda X: SkellamSNMF(2, method="map").fit(X), "method"),
    "replicates": (lambda X: SkellamSNMF(2, replicates=0).fit(X), "replicates"),
    "counts that are none": (lambda X: SkellamSNMF(2, replicates=1).fit(X + 0.5), "expected a whole number"),
    "kernel missing": (lambda X: ShiftInvariantPLCA(1).fit(X), "kernel"),
    "kernel order": (lambda X: ShiftInvariantPLCA(1, kernel=(2,)).fit(X), "kernel"),
    "kernel too large": (lambda X: ShiftInvariantPLCA(1, kernel=(50, 2)).fit(X), "kernel"),
    "kernel 0": (lambda X: ShiftInvariantPLCA(1, kernel=(0, 2)).fit(X), "kernel"),
    "support": (lambda X: ShiftInvariantPLCA(1, kernel=(2, 2), support=["valid", "around"]).fit(X), "support"),
    "hidden cells": (lambda X: PNTF(2).fit(X, observed=X > 0), r"PNTF needs complete data: NMF \(Kullback-Leibler\), PLSA"),
    "component": (lambda X: PLCA(2, random_state=0).fit(X).component(2), "no component 2"),
    "file of nobody": (lambda X: plcakit.load("there-is-no-such-file.npz"), "there-is-no-such-file"),
    "extension": (lambda X: NMF(2).fit(X).save("model.txt"), "extension"),
    "csr with indices outside": (lambda X: NMF(2).fit(_broken("indices")), "outside 0..12"),
    "csr with falling indptr": (lambda X: NMF(2).fit(_broken("indptr")), "must increase"),
}


def _broken(what):
    of = sparse.csr_matrix(np.ones((4, 12)))
    if what == "indices":
        of.indices[3] = 77
    else:
        of.indptr[2] = 1
    return of


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(X, case):
    wrong, match = WRONG[case]
    kind = (MemoryError, OverflowError) if match is None else (ValueError, TypeError, OSError)
    with pytest.raises(kind, match=match):
        wrong(X)


class Foreign:
    """An array of another library."""

    def __init__(self, array, device=None):
        self.array, self.device = array, device

    def __dlpack__(self, **how):
        if self.device is not None:
            raise BufferError("lies on another device")
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries(X):
    model = NMF(3, random_state=0).fit(Foreign(X.astype(np.float32)))
    assert model.components_.dtype == np.float32
    with pytest.raises(ValueError, match=r"detach\(\).cpu\(\)"):
        NMF(3).fit(Foreign(X, device=1))


def test_annotated_data(X):
    from types import SimpleNamespace

    from plcakit import ad

    cells = SimpleNamespace(X=sparse.csr_matrix(X), layers={"counts": X}, obsm={}, varm={}, uns={})
    ad.nmf(cells, 3, random_state=0)
    ad.plsa(cells, 3, layer="counts", key_added="topics", random_state=0)
    assert cells.obsm["X_nmf"].shape == (20, 3) and cells.varm["nmf"].shape == (12, 3)
    assert cells.obsm["X_topics"].shape == (20, 3) and cells.uns["topics"]["n_iter"] > 0


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_annotated_data_of_anndata(X, form, tmp_path):
    anndata = pytest.importorskip("anndata")
    from plcakit import ad

    cells = anndata.AnnData(form(X))
    cells.layers["counts"] = form(X)
    model = ad.nmf(cells, 3, random_state=0)
    ad.plsa(cells[:15].copy(), 2, layer="counts", random_state=0)
    assert np.array_equal(cells.varm["nmf"], model.components_.T)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert np.array_equal(again.obsm["X_nmf"], model.transform(form(X)))
    assert again.uns["nmf"]["n_iter"] == model.n_iter_ and again.uns["nmf"]["params"]["random_state"] == 0


def test_read_only_arrays(X):
    X.setflags(write=False)
    fitted(X)


def test_arrays_within_bytes():
    """Where a message or a file has them, whatever stands before."""

    def within(array):
        return np.frombuffer(b"\0" + array.tobytes(), dtype=array.dtype, offset=1).reshape(array.shape)

    X = np.random.default_rng(0).poisson(2.0, size=(6, 5)).astype(np.float64)
    rows = sparse.csr_matrix(X)
    inside = sparse.csr_matrix(rows.shape, dtype=rows.dtype)
    inside.data, inside.indices, inside.indptr = (within(part) for part in (rows.data, rows.indices, rows.indptr))
    assert not within(X).flags.aligned
    for there, here in [(within(X), X), (within(X).T, X.T), (inside, rows)]:
        models = [NMF(2, random_state=0, max_iter=5, tol=0).fit(data) for data in (there, here)]
        np.testing.assert_array_equal(models[0].components_, models[1].components_)


@pytest.mark.parametrize("make", [PLCA, NMF])
def test_an_approximation_far_from_all_data_is_told(make):
    X = np.array([[np.nan, 1, 3], [1, 0, 0], [2, 0, 0]])
    # Beside the hidden cell all is 0 but in its own row and column: it may be as large as it likes.
    with pytest.warns(UserWarning, match=r"hidden cell \(0, 0\).*fewer components"):
        make(1, missing="nan", random_state=0, solver="fast").fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(1, missing="nan", random_state=0).fit(np.array([[np.nan, 2, 3], [2, 4, 6], [3, 6, 9.0]]))


@pytest.mark.parametrize("make", [NMF, PLSA, PLCA])
def test_what_was_never_observed_is_told(X, make):
    X = X.astype(float)
    seen = np.ones(X.shape, dtype=bool)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen[0, 0] = False
        make(2, random_state=0, max_iter=500).fit(X, observed=seen)
    seen[:, 2] = False
    with pytest.warns(UserWarning, match=r"no observed cell along axis 1 of X at \[2\]"):
        make(2, random_state=0, max_iter=500).fit(X, observed=seen)
    seen[:, 2], seen[1] = True, False
    with pytest.warns(UserWarning, match=r"no observed cell along axis 0 of X at \[1\]"):
        make(2, random_state=0, max_iter=500).fit(np.where(seen, X, np.nan), observed=seen)


@pytest.mark.parametrize("make", [NMF, SkellamSNMF])
def test_hidden_samples_that_are_explained_are_told(make):
    X = np.array([[4.0, 1, 0], [1, 3, 2], [5, 2, 1], [0, 2, 2]])
    model = make(2, random_state=0, missing="nan").fit(X)
    new = np.array([[np.nan] * 3, [4, 1, np.nan], [4, 1, 0]])
    with pytest.warns(UserWarning, match=r"samples \[0\] are hidden: the values returned for them have no meaning"):
        model.transform(new)
    seen = np.array([[True] * 3, [False] * 3])
    with pytest.warns(UserWarning, match=r"samples \[1\] are hidden"):
        make(2, random_state=0).fit(X).transform(X[:2], observed=seen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(new[1:])


def test_negative_noise_is_told_what_to_do_with():
    X = np.random.default_rng(0).random((8, 6))
    X[2, 3] = -0.01
    with pytest.raises(ValueError, match=r"np.maximum\(X, 0\).*SkellamSNMF"):
        PLCA(2).fit(X)
