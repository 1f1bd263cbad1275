"""Maps of turned kernels: what is said of a map is what it does."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from plcakit import TransformInvariantPLCA


def placed(kernel, shape, which, **how):
    """A model with one impulse, that of the map of this number: it says where that is, and draws it."""
    X = np.full(shape, 1.0)
    model = TransformInvariantPLCA(1, kernel=kernel.shape, max_iter=1, tol=0, solver="em", random_state=0, **how)
    maps = model.fit(X).impulses_.shape[1]
    model.set_params(freeze=("kernels", "impulses"))
    # All cells must be possible.
    impulses = np.full((1, maps), 1e-15)
    impulses[0, which % maps] = 1
    impulses /= impulses.sum()
    model.fit(X, start={"kernels": kernel[np.newaxis] / kernel.sum(), "impulses": impulses})
    (copy,) = model.copies()
    assert copy["component"] == 0 and copy["probability"] == pytest.approx(1)
    picture = model.reconstruct()
    return copy, picture / picture.sum(), maps


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("which", [0, 37, 60, 93, 130, -1])
@pytest.mark.parametrize("extents", [(2, 3), (4, 5)])
def test_quarter_turns_and_mirrors_are_where_they_are_said_to_be(which, extents):
    kernel = np.random.default_rng(0).random(extents) + 0.1
    copy, picture, _ = placed(kernel, (7, 9), which, rotations=4, mirror=True)
    assert copy["scale"] == 1
    turned = np.rot90(np.fliplr(kernel) if copy["mirrored"] else kernel, round(copy["angle"] / 90))
    rows, columns = turned.shape
    row, column = copy["row"] - (rows - 1) / 2, copy["column"] - (columns - 1) / 2
    expected = np.zeros((7, 9))
    expected[int(row):int(row) + rows, int(column):int(column) + columns] = turned / turned.sum()
    assert row == int(row) and column == int(column)
    np.testing.assert_allclose(picture, expected, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("positions", ["valid", "centred", "full"])
@pytest.mark.parametrize("extents", [(2, 3), (3, 3)])
def test_the_centre_is_the_middle_of_what_is_drawn(positions, extents):
    # Of an even kernel the middle stays where it is, however it is turned and resized.
    kernel = np.ones(extents)
    how = {"rotations": (0, 25, 360, 140), "scales": (1, 1.5, 0.6), "mirror": True, "positions": positions, "likelihood": "literal"}
    shaped = TransformInvariantPLCA(1, kernel=extents, max_iter=1, tol=0, random_state=0, **how).fit(np.ones((13, 12)))
    seen, first = set(), 0
    for *_, rows, columns in shaped._centres():
        copy, picture, _ = placed(kernel, (13, 12), first + rows // 2 * columns + columns // 2, **how)
        middle = [float((picture * at).sum()) for at in np.indices(picture.shape)]
        np.testing.assert_allclose(middle, [copy["row"], copy["column"]], atol=1e-9)
        seen.add((float(copy["angle"]), float(copy["scale"]), bool(copy["mirrored"])))
        first += rows * columns
    # 360 degrees are none.
    assert seen == {(angle, scale, mirrored) for angle in (0, 25, 140) for scale in (1, 1.5, 0.6) for mirrored in (False, True)}


def test_all_copies_add_up():
    X = np.random.default_rng(0).poisson(3.0, (12, 14)) + 0.1
    how = {"rotations": (0, 30, 360), "scales": (1, 1.6), "mirror": True, "positions": "full"}
    model = TransformInvariantPLCA(2, kernel=(2, 3), max_iter=3, tol=0, random_state=0, **how).fit(X)
    everything = model.copies(least=0)
    assert everything["probability"].sum() == pytest.approx(1)
    assert (np.diff(everything["probability"]) <= 0).all()
    shares = np.bincount(everything["component"], weights=everything["probability"])
    np.testing.assert_allclose(shares, model.weights_)
    # Of other data.
    other = model.transform(X[::-1])
    assert len(model.copies(other, least=0)) == (other * model.weights_[:, np.newaxis] > 0).sum()
    with pytest.raises(ValueError, match="impulses has the shape"):
        model.copies(other[:, 1:])
    with pytest.raises(ValueError, match="least is -1"):
        model.copies(least=-1)
    with pytest.raises(NotFittedError):
        TransformInvariantPLCA(1, kernel=(2, 2)).copies()


def test_copies_of_a_file_of_the_command(plca, tmp_path):
    import plcakit

    X = np.random.default_rng(0).poisson(3.0, (9, 10)).astype(float)
    np.save(tmp_path / "v.npy", X)
    line = "fit tiplca v.npy --rank 2 --kernel 2x3 --rotations 8 --scales 1,1.4 --mirror --max-iter 5 --tol 0 --seed 3 --output m.npz --quiet"
    plca(*line.split(), cwd=tmp_path)
    loaded = plcakit.load(tmp_path / "m.npz")
    own = TransformInvariantPLCA(2, kernel=(2, 3), rotations=8, scales=(1, 1.4), mirror=True, max_iter=5, tol=0, random_state=3).fit(X)
    assert np.array_equal(loaded.copies(), own.copies())
