"""Frames and tensors of other libraries, and frames in long form."""

import numpy as np
import pytest
from scipy import sparse

from plcakit import NMF, PLCA, PLSA, ConsensusNMF, from_long


@pytest.fixture
def X():
    return np.random.default_rng(0).poisson(3.0, (20, 12)).astype(float)


def frame_of(library, columns):
    return pytest.importorskip(library).DataFrame(columns)


def test_polars(X):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({f"f{j}": X[:, j] for j in range(12)})
    model = NMF(3, random_state=0).set_output(transform="polars").fit(frame)
    assert list(model.feature_names_in_) == frame.columns
    np.testing.assert_allclose(model.components_, NMF(3, random_state=0).fit(X).components_, rtol=1e-6)
    out = model.transform(frame)
    assert isinstance(out, polars.DataFrame) and out.columns == list(model.get_feature_names_out())
    # scikit-learn reads numbers of its frames as float64, whatever they are.
    assert NMF(3, random_state=0).fit(frame.cast(polars.Float32)).components_.dtype == np.float64
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.select(frame.columns[::-1]))


def test_torch(X):
    torch = pytest.importorskip("torch")
    for dtype in (np.float32, np.float64):
        base = NMF(3, random_state=0).fit(X.astype(dtype))
        tensor = torch.from_numpy(X.astype(dtype))
        model = NMF(3, random_state=0).fit(tensor)
        assert model.components_.dtype == dtype and np.array_equal(model.components_, base.components_)
        assert np.array_equal(model.transform(tensor), base.transform(X.astype(dtype)))
    with pytest.raises(ValueError, match=r"detach\(\).cpu\(\)"):
        NMF(3).fit(tensor.clone().requires_grad_())


@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_tensors_of_torch(X):
    torch = pytest.importorskip("torch")
    X = X * (X > 2)
    base = NMF(3, random_state=0).fit(sparse.csr_array(X)).components_
    tensor = torch.from_numpy(X)
    for other in (tensor.to_sparse_csr(), tensor.to_sparse()):
        assert np.array_equal(NMF(3, random_state=0).fit(other).components_, base)
    of_columns = NMF(3, random_state=0).fit(sparse.csc_array(X)).components_
    assert np.array_equal(NMF(3, random_state=0).fit(tensor.to_sparse_csc()).components_, of_columns)


class Part:
    """An array of another library, with what a sparse tensor of torch has."""

    def __init__(self, array=None, **parts):
        self.array, self.parts = array, parts
        self.layout, self.shape = parts.get("layout"), parts.get("shape")

    def __getattr__(self, name):
        if name in self.__dict__.get("parts", ()):
            return lambda: Part(self.parts[name])
        raise AttributeError(name)

    def coalesce(self):
        return self

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_what_looks_like_a_sparse_tensor_of_torch(X):
    X = X * (X > 2)
    csr, csc, coo = sparse.csr_array(X), sparse.csc_array(X), sparse.coo_array(X)
    rows = Part(layout="torch.sparse_csr", shape=X.shape, crow_indices=csr.indptr, col_indices=csr.indices, values=csr.data)
    columns = Part(layout="torch.sparse_csc", shape=X.shape, ccol_indices=csc.indptr, row_indices=csc.indices, values=csc.data)
    places = Part(layout="torch.sparse_coo", shape=X.shape, indices=np.stack([coo.row, coo.col]), values=coo.data)
    for other, same in ((rows, csr), (columns, csc), (places, csr)):
        base = NMF(3, random_state=0).fit(same).components_
        assert np.array_equal(NMF(3, random_state=0).fit(other).components_, base)


def test_jax(X):
    jax = pytest.importorskip("jax")
    model = NMF(3, random_state=0).fit(jax.numpy.asarray(X, dtype="float32"))
    base = NMF(3, random_state=0).fit(X.astype(np.float32))
    assert model.components_.dtype == np.float32 and np.array_equal(model.components_, base.components_)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_long_frames(X, library):
    pytest.importorskip("narwhals")
    draw = np.random.default_rng(1)
    docs, words = np.nonzero(X)
    order = draw.permutation(len(docs))
    docs, words = docs[order], words[order]
    frame = frame_of(library, {"doc": docs, "word": [f"w{w:02}" for w in words], "count": X[docs, words].astype(int)})
    made, (rows, columns) = from_long(frame, ["doc", "word"], "count")
    assert made.format == "csr" and np.array_equal(made.toarray(), X)
    assert rows.tolist() == list(range(20)) and columns.tolist() == [f"w{w:02}" for w in range(12)]
    # Rows alone are counted, and equal labels add up.
    each = frame_of(library, {"doc": np.repeat(docs, 2), "word": np.repeat(words, 2)})
    assert np.array_equal(from_long(each, ["doc", "word"]).X.toarray(), 2 * (X > 0))
    assert PLSA(2, random_state=0).fit(made).transform(made).shape == (20, 2)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_what_was_meant_otherwise_is_named(library):
    pytest.importorskip("narwhals")
    frame = frame_of(library, {"doc": ["AP-000", "AP-001"], "word": ["sea", "sun"], "count": [2, 1]})
    long = from_long(frame, ["doc", "word"], "count")
    for model in (PLSA(2), NMF(2), ConsensusNMF(2)):
        with pytest.raises(TypeError, match="X is what from_long returns, an array and its labels: expected the array alone, its .X"):
            model.fit(long)
    with pytest.raises(ValueError, match="column 'doc' of X is not of numbers: it begins with 'AP-000'.* plcakit.from_long"):
        PLSA(2).fit(frame)
    with pytest.raises(ValueError, match="column 'word' of X is not of numbers"):
        PLSA(2).fit(frame[["count", "word"]])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_long_frames_of_three_dimensions(library):
    pytest.importorskip("narwhals")
    X = np.random.default_rng(0).poisson(1.0, (6, 5, 4)).astype(float)
    at = np.nonzero(X)
    try:
        sparse.coo_array((X[at], at), shape=X.shape)
    except (TypeError, ValueError):
        pytest.skip("this SciPy has matrices only")
    made, labels = from_long(frame_of(library, {**dict(zip("abc", at)), "n": X[at]}), "a b c".split(), "n")
    assert [len(of) for of in labels] == [6, 5, 4] and np.array_equal(made.toarray(), X)
    dense = PLCA(2, random_state=0, solver="em", tol=0, max_iter=20).fit(X)
    other = PLCA(2, random_state=0, solver="em", tol=0, max_iter=20).fit(made)
    np.testing.assert_allclose(other.components_, dense.components_, rtol=1e-8)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("columns", "how", "match"),
    [
        ({"a": [1], "b": [2]}, (["a", "c"],), "no column 'c' in the frame, expected one of a, b"),
        ({"a": [1], "b": [2]}, (["a"],), "two columns or more"),
        ({"a": [1], "b": [2]}, ("ab",), "two columns or more"),
        ({"a": ["x", None], "b": [2, 3]}, (["a", "b"],), "column 'a' has 1 rows without a value"),
        ({"a": [1], "b": [2], "n": [np.inf]}, (["a", "b"], "n"), "not finite numbers"),
    ],
)
def test_long_frames_that_are_wrong(library, columns, how, match):
    pytest.importorskip("narwhals")
    with pytest.raises(ValueError, match=match):
        from_long(frame_of(library, columns), *how)
