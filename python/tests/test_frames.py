"""Frames and tensors of other libraries, and frames in long form."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse

from plcakit import NMF, PLCA, PLSA, ConsensusNMF, from_long, load


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
def test_labels_are_those_of_the_command(library, plca, tmp_path):
    pytest.importorskip("narwhals")
    columns = {"doc": ["b", "a ", " a", "a"], "word": ["1", "x y", "1", " x y"], "n": [2.0, 1.0, 4.0, 3.0]}
    frame = frame_of(library, columns)
    made, labels = from_long(frame, ["doc", "word"], "n")
    (tmp_path / "e.csv").write_text("\n".join(["doc,word,n", *(",".join(map(str, row)) for row in zip(*columns.values()))]))
    plca(*"fit nmf-kl e.csv --labels entries --rank 1 --output m.npz --quiet".split(), cwd=tmp_path)
    with np.load(tmp_path / "m.npz") as blocks:
        theirs = blocks["w"] @ blocks["h"]
    names = load(tmp_path / "m.npz")._facts()["names"]
    assert [of.tolist() for of in labels] == [["a", "b"], ["1", "x y"]]
    # The command has them in the order of the file.
    assert [sorted(names[d]) for d in "01"] == [of.tolist() for of in labels]
    ours = NMF(1, random_state=0).fit(made).reconstruct()
    order = [[names[d].index(name) for name in of] for d, of in zip("01", labels)]
    np.testing.assert_allclose(theirs[np.ix_(*order)], ours, rtol=1e-5)


def test_labels_of_several_types_are_refused():
    pytest.importorskip("narwhals")
    column = np.array([1, "1", 2], dtype=object)
    frame = frame_of("pandas", {"doc": column, "word": ["x", "y", "x"]})
    with pytest.raises(ValueError, match=r"column 'doc' has texts and others, such as '1' and 1: make texts of all, frame\['doc'\].astype\(str\)"):
        from_long(frame, ["doc", "word"])
    assert from_long(frame.assign(doc=frame["doc"].astype(str)), ["doc", "word"]).labels[0].tolist() == ["1", "2"]
    with pytest.raises(ValueError, match="Complex data not supported: column 'n'"):
        from_long(frame_of("pandas", {"a": [1, 2], "b": [1, 2], "n": [1j, 2]}), ["a", "b"], "n")


def told(frame, model=None):
    """The warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (model or NMF(2, max_iter=2, tol=0, random_state=0)).fit(frame)
    assert all(one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]


IDS = [3, 1, 4, 9, 5, 2, 6, 8]
RUN = list(range(1, 9))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "columns, match",
    [
        ({"userId": IDS, "movieId": IDS[::-1], "rating": IDS}, r"plcakit.from_long\(frame, \['userId', 'movieId'\], 'rating'\).X"),
        ({"doc": IDS, "word": IDS[::-1], "n": IDS}, r"from_long\(frame, \['doc', 'word'\], 'n'\)"),
        ({"u": IDS, "i": IDS[::-1], "r": IDS, "t": [964982703 + x for x in IDS]}, r"from_long\(frame, \['u', 'i'\], 'r'\)"),
        ({"u": IDS, "i": IDS[::-1], "t": [964982703 + x for x in IDS]}, r"from_long\(frame, \['u', 'i'\]\)"),
        ({"i": [0, 0, 0, 1, 1, 2, 2, 2], "j": [0, 2, 3, 1, 3, 0, 1, 2], "n": IDS}, r"from_long\(frame, \['i', 'j'\], 'n'\)"),
        ({"j": [0, 2, 3, 1, 3, 0, 1, 2], "i": [0, 0, 0, 1, 1, 2, 2, 2], "n": IDS}, r"from_long\(frame, \['j', 'i'\], 'n'\)"),
        ({"a": RUN, "b": IDS}, r"column 'a' .* frame.set_index\('a'\) of pandas or frame.drop\('a'\) of polars"),
        ({"#OTU ID": IDS, "b": IDS[::-1]}, r"frame.set_index\('#OTU ID'\)"),
        ({"b": IDS, "row_id": RUN, "c": IDS}, r"frame.set_index\('row_id'\)"),
    ],
)
def test_columns_of_names_are_told(library, columns, match):
    frame = frame_of(library, columns)
    for model in (None, ConsensusNMF(2, n_runs=4, max_iter=2, random_state=0)):
        (said,) = told(frame, model)
        assert re.search(match, said), said


def test_rows_that_are_numbered_without_a_header_are_told():
    frame = frame_of("pandas", {0: RUN, 1: IDS})
    (said,) = told(frame)
    assert "frame.set_index(0)" in said
    assert not told(frame_of("pandas", {0: [x * x for x in RUN], 1: IDS}))
    # What is said of headers that are no texts works too.
    pytest.importorskip("narwhals")
    (said,) = told(frame_of("pandas", {1990: RUN, 1991: IDS}))
    assert "frame.set_index(1990)" in said
    frame = frame_of("pandas", {5: IDS, 6: IDS[::-1], 7: [964982703 + x for x in IDS]})
    (said,) = told(frame)
    made = re.search(r"from_long\(frame.rename\(columns=str\), (.*)\).X", said)
    assert eval(made[1]) == ["5", "6"] and from_long(frame.rename(columns=str), eval(made[1])).X.sum() == 8


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_ordinary_frames_are_silent(X, library):
    for names in ("abc", "abcdefghijkl", ["acid", "width", "liquid"], ["doc", "sea", "sun"], ["sea", "user", "id"]):
        assert not told(frame_of(library, {name: X[:, j] for j, name in enumerate(names)}))
    # Numbers of a header that is no name, in no order; and an index where there are others.
    assert not told(frame_of(library, {"a": IDS, "b": IDS[::-1], "n": RUN}))
    assert not told(frame_of(library, {"a": IDS, "user": [x + 0.5 for x in IDS], "n": RUN}))
    # Features that grow, large ones that are no times, and counts of words that are called as keys are.
    for grows in (np.sqrt(RUN), np.arange(8) / 2, [150, 151, 153, 155, 160, 161, 170, 180]):
        assert not told(frame_of(library, {"income": grows, "b": IDS}))
    assert not told(frame_of(library, {"staff": IDS, "sites": IDS[::-1], "revenue": [964982703.5 + x for x in IDS]}))
    assert not told(frame_of(library, {"staff": np.sqrt(IDS), "sites": IDS, "revenue": [964982703 + x for x in IDS]}))
    assert not told(frame_of(library, {"word": [0, 1] * 4, "user": [1, 1] * 4, "c": IDS}))
    # An array has no names.
    assert not told(np.array([RUN, IDS]).T)


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
        ({"a": [1], "b": [2], "n": ["x"]}, (["a", "b"], "n"), "column 'n' is not of numbers: .*'x'"),
        ({"a": [1.0, np.nan], "b": [2, 3]}, (["a", "b"],), "column 'a' has 1 rows without a value"),
        ({"a": ["x", " "], "b": [2, 3]}, (["a", "b"],), "column 'a' has an empty label"),
    ],
)
def test_long_frames_that_are_wrong(library, columns, how, match):
    pytest.importorskip("narwhals")
    with pytest.raises(ValueError, match=match):
        from_long(frame_of(library, columns), *how)
