"""What lies at the edge: cells that are not to be read, settings that come back from files, formulas of docs that are filled in."""

import inspect
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import NMF as SklearnNMF
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import plcakit
from plcakit import (
    NMF,
    PLCA,
    PLSA,
    PNTF,
    ConsensusNMF,
    ShiftInvariantPLCA,
    ShiftInvariantSkellam,
    SkellamCP,
    SkellamSNMF,
    TransformInvariantPLCA,
    ad,
    plot,
    select,
    shards,
)
from plcakit.priors import CrossEntropy, Dirichlet, Entropic, Gamma, LogisticNormal, Penalty
from plcakit.sound import separate

KERNELS = [ShiftInvariantPLCA, TransformInvariantPLCA, ShiftInvariantSkellam]
ESTIMATORS = [NMF, PLSA, PLCA, PNTF, SkellamSNMF, SkellamCP, *KERNELS]


@pytest.fixture
def X():
    return np.random.default_rng(0).poisson(3.0, (20, 12)) + 0.5


def test_a_gap_in_every_sample_is_no_sample_without_mass(X):
    observed = np.ones(X.shape, bool)
    observed[0, 5] = False
    gaps = X.copy()
    gaps[np.arange(20), np.arange(20) % 12] = np.nan
    model = NMF(2, missing="nan", random_state=0).fit(gaps, observed=observed)
    assert (model.transform(gaps, observed=observed).sum(axis=1) > 0).all()
    with pytest.raises(ValueError, match="NaN, not a finite number"):
        NMF(2, random_state=0).fit(X).transform(gaps, observed=observed)
    with pytest.raises(ValueError, match="not a finite number >= 0"):
        NMF(2, random_state=0).fit(X).transform(-X, observed=observed)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.coo_matrix])
@pytest.mark.parametrize("make", [NMF, PLSA])
def test_hidden_mass_is_none(X, form, make):
    model = make(2, random_state=0).fit(X)
    X[1:] = 0
    observed = np.zeros(X.shape, bool)
    observed[1:] = True
    if make is NMF:
        assert not model.transform(form(X), observed=observed).any()
        return
    with pytest.warns(UserWarning, match="20 samples, the first .* have no observed sum above 0: the values returned for them have no meaning"):
        np.testing.assert_allclose(model.transform(form(X), observed=observed), [[0.5, 0.5]] * 20)


def tensor():
    X = np.random.default_rng(0).poisson(1.0, (7, 6, 5)).astype(float)
    at = np.nonzero(X)
    try:
        return X, sparse.coo_array((X[at], at), shape=X.shape)
    except (TypeError, ValueError):
        pytest.skip("this SciPy has matrices only")


def test_sparse_tensors_with_hidden_cells():
    X, of = tensor()
    observed = np.random.default_rng(1).random(X.shape) < 0.8
    model = PLCA(2, random_state=0, solver="em", tol=0, max_iter=20)
    dense = model.fit_transform(X, observed=observed)
    np.testing.assert_allclose(model.fit_transform(of, observed=observed), dense, rtol=1e-6)


def test_sparse_tensors_of_whole_numbers():
    X, of = tensor()
    model = ShiftInvariantPLCA(1, kernel=(2, 2, 2), random_state=0, solver="em", tol=0, max_iter=20)
    assert np.array_equal(model.fit(of.astype(np.int32)).kernels_, model.fit(of).kernels_)
    assert not hasattr(model, "n_features_in_")


def test_starts_by_singular_vectors_read_no_hidden_cell(X):
    observed = np.random.default_rng(1).random(X.shape) < 0.8

    def fit(data):
        return NMF(2, init="nndsvda", random_state=0).fit(data, observed=observed).components_

    expected = fit(X)
    assert np.array_equal(fit(np.where(observed, X, 7.0)), expected)
    assert np.array_equal(fit(np.ma.MaskedArray(X, ~observed)), expected)


def test_starts_may_be_lists_and_tell_the_number_of_components(X):
    start = {"h": np.full((3, 12), 0.5).tolist()}
    assert NMF(random_state=0).fit(X, start=start).n_components_ == 3
    assert NMF(4, random_state=0).fit(X).n_components_ == 4
    W, H = np.ones((20, 2)), np.linspace(1, 2, 24).reshape(2, 12)
    for loss in ("kullback-leibler", "frobenius"):
        assert NMF(init="custom", beta_loss=loss).fit(X, H=H).n_components_ == 2
        assert NMF(init="custom", beta_loss=loss).fit(X, W=W, H=H).components_.shape == (2, 12)


@pytest.mark.parametrize(
    ("which", "kept"), [(np.array([False, True, False]), [1]), ([2, 0], [0, 2]), (1, [1]), (True, [0, 1, 2]), (None, [])]
)
def test_components_are_frozen_by_number_or_flag(X, which, kept):
    basis = np.random.default_rng(2).random((12, 3))
    basis /= basis.sum(axis=0)
    model = PLSA(3, solver="em", freeze={"basis": which}, random_state=0).fit(X, start={"basis": basis})
    assert [z for z in range(3) if np.allclose(model.components_[z], basis[:, z], rtol=0, atol=1e-15)] == kept


def test_entries_are_frozen_by_flags_of_the_block(plca, tmp_path, X):
    draw = np.random.default_rng(2)
    basis, mixture = draw.random((12, 3)), draw.random((3, len(X)))
    basis, mixture = basis / basis.sum(axis=0), mixture / mixture.sum(axis=0)
    flags = draw.random((12, 3)) < 0.4
    start = {"basis": basis, "mixture": mixture}
    model = PLSA(3, solver="em", freeze={"basis": flags}, max_iter=30, tol=0, random_state=0).fit(X, start=start)
    assert np.array_equal(model.components_.T[flags], basis[flags])
    assert not np.any(model.components_.T[~flags] == basis[~flags])
    # By the command the same bits.
    np.save(tmp_path / "v.npy", X)
    np.savez(tmp_path / "start.npz", **start)
    np.savez(tmp_path / "flags.npz", basis=flags.astype(float))
    line = f"fit plsa {tmp_path}/v.npy --given 0 --rank 3 --solver em --init {tmp_path}/start.npz --freeze-entries {tmp_path}/flags.npz"
    plca(*line.split(), "--max-iter", 30, "--tol", 0, "--output", tmp_path / "m.npz", "--quiet")
    with np.load(tmp_path / "m.npz") as theirs:
        assert np.array_equal(theirs["basis"], model._blocks["basis"])
    model.save(tmp_path / "ours.npz")
    assert np.array_equal(plcakit.load(tmp_path / "ours.npz").freeze["basis"], flags)
    for which, message in (
        ({"basis": flags.T}, r"freeze of 'basis' has the shape \(3, 12\), expected that of the block, \(12, 3\)"),
        ({"bassis": flags}, "freeze: no block 'bassis', expected one of basis, mixture"),
        ({"basis": np.zeros(12, bool)}, "freeze of 'basis' has 12 flags, expected one for each of 3 components"),
        ({"basis": "all"}, "freeze of 'basis' is 'all', expected True"),
    ):
        with pytest.raises(ValueError, match=message):
            PLSA(3, freeze=which).fit(X, start=start)


def test_many_flags_are_saved(tmp_path):
    draw = np.random.default_rng(3)
    basis = draw.random((120_000, 20))
    basis /= basis.sum(axis=0)
    flags = draw.random(basis.shape) < 0.5
    X = sparse.random_array((3, len(basis)), density=0.001, rng=draw, format="csr")
    model = PLSA(20, solver="em", freeze={"basis": flags}, max_iter=1, tol=0).fit(X, start={"basis": basis})
    model.save(tmp_path / "m.npz")
    assert np.array_equal(plcakit.load(tmp_path / "m.npz").freeze["basis"], flags)


def test_entries_of_every_shape_are_frozen(X):
    fitted = TransformInvariantPLCA(2, kernel=(2, 2), rotations=2, positions="full", max_iter=3, tol=0, random_state=0).fit(X)
    for name in ("kernels", "impulses"):
        block = fitted._blocks[name]
        flags = np.random.default_rng(4).random(block.shape) < 0.3
        model = TransformInvariantPLCA(2, kernel=(2, 2), rotations=2, positions="full", freeze={name: flags}, max_iter=5, tol=0, random_state=0)
        model.fit(X, start={name: block})
        assert np.array_equal(model._blocks[name][flags], block[flags])
        assert not np.array_equal(model._blocks[name], block)


@pytest.mark.filterwarnings("ignore:.*made all")
@pytest.mark.parametrize("make", [*ESTIMATORS, lambda k, **how: NMF(k, beta_loss="frobenius", **how)])
@pytest.mark.parametrize(("dtype", "power"), [(np.float64, -60), (np.float64, 60), (np.float32, -30), (np.float32, 30)])
def test_units_change_no_fit(make, dtype, power, X):
    X = X.astype(dtype)
    how = {"max_iter": 200, "random_state": 0, **({"kernel": (2, 2)} if make in KERNELS else {})}
    model, other = make(2, **how).fit(X), make(2, **how).fit(X * dtype(2.0**power))
    assert other.n_iter_ == model.n_iter_
    np.testing.assert_allclose(other.reconstruct() / dtype(2.0**power), model.reconstruct(), rtol=1e-3)


def made(make):
    return make(2, max_iter=2, tol=0, random_state=0, **({"kernel": (2, 2)} if make in KERNELS else {}))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.coo_matrix, np.ndarray.tolist, np.ma.asarray])
@pytest.mark.parametrize("make", [*ESTIMATORS, ConsensusNMF])
def test_complex_numbers_are_refused(make, form, X):
    model = make(2, n_runs=4) if make is ConsensusNMF else made(make)
    with pytest.raises(ValueError) as error:
        model.fit(form(X + 1j))
    said = str(error.value)
    assert "\n" not in said and "Complex data not supported: X" in said and "np.abs(X)" in said and "np.real(X)" in said


def test_complex_numbers_are_refused_wherever_they_are_given(X):
    for call, name in (
        (lambda: NMF(2).fit(X, start={"w": X[:, :2] + 1j}), "start: 'w'"),
        (lambda: NMF(2, init="custom").fit(X, W=X[:, :2] + 1j), "W or H"),
        (lambda: NMF(2, random_state=0).fit(X).inverse_transform(X[:, :2] + 1j), "X"),
        (lambda: shards.fit(SkellamSNMF(2), [X, X + 1j]), "X"),
    ):
        with pytest.raises(ValueError, match=f"Complex data not supported: {name} is to have real numbers"):
            call()
    _, tensor_of = tensor()
    for model in (PLCA(2), PNTF(2), SkellamCP(2), ShiftInvariantPLCA(1, kernel=(2, 2, 2))):
        with pytest.raises(ValueError, match="Complex data not supported: X"):
            model.fit(tensor_of * 1j)


@pytest.mark.parametrize("model", [PNTF(2), PLSA(2, method="vb"), PLCA(2, method="vb", missing="nan"), NMF(2, beta_loss="frobenius"), ConsensusNMF(2, n_runs=4)], ids=repr)
def test_models_of_complete_data_name_the_others(model, X):
    X[2, 3] = np.nan
    name = type(model).__name__ + ("(method='vb')" if getattr(model, "method", None) == "vb" else "")
    name += "(beta_loss='frobenius')" if isinstance(model, NMF) else ""
    others = f"{name} needs complete data: NMF (Kullback-Leibler), PLSA and PLCA (method='em') and the Skellam models take hidden cells, "
    others += "missing='nan' or observed=mask"
    for wrong, said in ((X, f"X contains NaN, and {others}"), (np.ma.masked_invalid(X), others)):
        with pytest.raises(ValueError) as error:
            model.fit(wrong)
        assert str(error.value).endswith(said)
    if hasattr(model, "score"):
        X[2, 3] = 1
        model.set_params(max_iter=2, random_state=0).fit(X)
        for call in (model.transform, model.score):
            with pytest.raises(ValueError, match="needs complete data: NMF"):
                call(X, observed=X > 0)
    # What is named does.
    for other in (NMF(2), PLSA(2), PLCA(2), SkellamSNMF(2), SkellamCP(2)):
        X[2, 3] = np.nan
        assert other.set_params(missing="nan", max_iter=2, tol=0, random_state=0).fit(X).n_iter_ == 2


def test_negative_noise_is_taken_as_by_the_command(plca, tmp_path, X):
    X[::3, 4] = -0.01
    for form, dtype in ((np.asarray, np.float64), (np.asarray, np.float32), (sparse.csr_matrix, np.float64)):
        with pytest.warns(UserWarning, match="some values of X are negative: they are taken for noise") as caught:
            model = PNTF(2, max_iter=20, tol=0, random_state=0).fit(form(X.astype(dtype)))
        assert [one.filename for one in caught] == [__file__]
        np.save(tmp_path / "x.npy", X.astype(dtype))
        line = f"fit pntf x.npy --rank 2 --max-iter 20 --tol 0 --seed 0 --precision {'f64' if dtype == np.float64 else 'f32'} --output m.npz --quiet"
        plca(*line.split(), cwd=tmp_path)
        with np.load(tmp_path / "m.npz") as theirs:
            for block in ("weights", "factor_0", "factor_1"):
                np.testing.assert_allclose(model._blocks[block], theirs[block], rtol=1e-9 if dtype == np.float64 else 1e-5, atol=1e-12)
    with pytest.warns(UserWarning, match="are taken for noise"):
        assert np.allclose(model.transform(X).sum(axis=1), 1)
    with pytest.warns(UserWarning, match="[0-9]+% of X, by absolute values, are negative, too much for noise.* SkellamSNMF"):
        PNTF(2, random_state=0).fit(np.where(X > 4, -X, 3 * X))
    # Centred data have no sum but for rounding.
    for wrong in (-X, X - X.mean(), (X - X.mean()).astype(np.float32)):
        with pytest.raises(ValueError, match="Negative values in data passed to PNTF .*SkellamSNMF"):
            PNTF(2).fit(wrong)


@pytest.mark.parametrize("mu", [-1, np.nan, np.inf, "0.1", None, [1, 2], True])
def test_sparsity_is_a_number(X, mu):
    with pytest.raises(ValueError, match="sparsity of 'weights' is .*, expected a finite number >= 0"):
        PNTF(2, sparsity={"weights": mu}).fit(X)


def test_what_sparsity_takes_off(tmp_path, X):
    with pytest.raises(ValueError, match="sparsity: no block 'mixture', expected one of weights, factor_0, factor_1"):
        PNTF(2, sparsity={"mixture": 0.1}).fit(X)
    plain = PNTF(3, max_iter=20, tol=0, random_state=0).fit(X)
    for dtype, sparsity in ((np.float64, {"factor_1": 1e-3}), (np.float32, {"weights": 1e-2, "factor_0": 0.0})):
        model = PNTF(3, sparsity=sparsity, max_iter=20, tol=0, random_state=0).fit(X.astype(dtype))
        difference = X / X.sum() - model.reconstruct() / X.sum()
        assert np.isclose(model.reconstruction_err_, np.linalg.norm(difference), rtol=1e-4)
        assert model.objective_ < model.reconstruction_err_**2 and model.reconstruction_err_ > plain.reconstruction_err_
        model.save(tmp_path / "m.npz")
        again = plcakit.load(tmp_path / "m.npz")
        assert np.isclose(again.reconstruction_err_, model.reconstruction_err_, rtol=1e-6) and again.sparsity == sparsity


def test_more_that_is_wrong_is_named(X):
    model = NMF(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="no component -1: the model has 2"):
        model.component(-1)
    with pytest.raises(ValueError, match="X has 3 columns, expected one for each of 2"):
        model.inverse_transform(np.ones((2, 3)))
    with pytest.raises(ValueError, match="freeze of 'basis' is 0.5"):
        PLSA(2, freeze={"basis": 0.5}).fit(X)
    for name in ("n_components", "n_init"):
        with pytest.raises(ValueError, match=name):
            NMF(2).set_params(**{name: 2**70}).fit(X)
    for groups in ([[0], [2]], [[0, 1], [1]]):
        with pytest.raises(ValueError, match="groups is"):
            CrossEntropy(groups)


@pytest.mark.parametrize("make", ESTIMATORS)
def test_the_end_of_a_fit_is_warned_of_where_it_was_called(make, X):
    model = make(2, max_iter=2, random_state=0, **({"kernel": (2, 2)} if make in KERNELS else {}))
    for call in (model.fit, model.fit_transform):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(X)
        ends = [w.filename for w in caught if "raise max_iter or tol" in str(w.message)]
        assert len(ends) == 1 and (call == model.fit_transform or ends == [__file__])


def test_settings_come_back_from_files(X, tmp_path):
    basis = np.full((12, 2), 1 / 12)
    path = tmp_path / "m.npz"
    PLSA(2, temper=0.8, freeze={"basis": np.array([0])}, random_state=0).fit(X, start={"basis": basis}).save(path)
    again = plcakit.load(path)
    assert again.freeze == {"basis": [0]} and again.temper == 0.8
    ShiftInvariantPLCA(1, kernel=(2, 2), likelihood="literal", support="same", random_state=0).fit(X).save(path)
    again = plcakit.load(path)
    assert (again.likelihood, again.support) == ("literal", "same")
    TransformInvariantPLCA(1, kernel=(2, 2), rotations=(0.0, 30.0), mirror=True, positions="centred", random_state=0).fit(X).save(path)
    again = plcakit.load(path)
    assert (again.rotations, again.mirror, again.positions) == ((0.0, 30.0), True, "centred")
    PLSA(2, method="vb", prior={"basis": "dirichlet:0.5", "mixture": Dirichlet(np.full((2, 1), 0.2))}, random_state=0).fit(X).save(path)
    again = plcakit.load(path)
    assert again.method == "vb" and again.prior["basis"] == "dirichlet:0.5"
    assert np.array_equal(again.prior["mixture"].alpha, np.full((2, 1), 0.2))
    SkellamCP(2, scale_mode=0, method="vb", replicates=1, real_data=True, random_state=0).fit(X).save(path)
    again = plcakit.load(path)
    assert (again.scale_mode, again.signed_mode, again.method, again.replicates, again.real_data) == (0, 1, "vb", 1, True)


@pytest.mark.parametrize("make", ESTIMATORS)
def test_shared_parts_of_docstrings_are_filled_in(make):
    texts = [make.__doc__, *(m.__doc__ or "" for _, m in inspect.getmembers(make, inspect.isfunction))]
    assert not [text for text in texts if "%(" in text]
    for part in ("tol : float, default=1e-7\n", "    Number of threads. ``None``", "verbose : int", "stop_reason_ : str", "trace_ : "):
        assert part in inspect.getdoc(make)
    for part in ("X : {array-like", "y : Ignored", "observed : ", "start : ", "Returns\n-------\nself"):
        assert part in inspect.getdoc(make.fit)


@pytest.mark.parametrize(
    ("wrong", "error", "names"),
    [
        (lambda X: ShiftInvariantPLCA(2, kernel=(2.5, 2.9)).fit(X), ValueError, r"kernel is \(2.5, 2.9\)"),
        (lambda X: ShiftInvariantPLCA(2, kernel=(True, 2)).fit(X), ValueError, r"kernel is \(True, 2\)"),
        (lambda X: ShiftInvariantPLCA(2, kernel=("a", 2)).fit(X), ValueError, r"kernel is \('a', 2\)"),
        (lambda X: ShiftInvariantPLCA(2, kernel=(np.nan, 2)).fit(X), ValueError, r"kernel is \(nan, 2\)"),
        (lambda X: ShiftInvariantPLCA(2, kernel=(-1, 2)).fit(X), ValueError, r"kernel is \(-1, 2\)"),
        (lambda X: ShiftInvariantPLCA(2).fit(X), ValueError, "kernel.* None"),
        (lambda X: TransformInvariantPLCA(2, kernel=(2, 2), rotations=()).fit(X), ValueError, r"rotations is \(\)"),
        (lambda X: TransformInvariantPLCA(2, kernel=(2, 2), scales=(1, -1)).fit(X), ValueError, "scale"),
        (lambda X: TransformInvariantPLCA(2, kernel=(2,)).fit(X), ValueError, "expected 2 extents"),
        (lambda X: TransformInvariantPLCA(2, kernel=(2, 99)).fit(X), ValueError, "larger than X"),
        (lambda X: ShiftInvariantSkellam(2, kernel=(2, 2), prior={"atoms": "gamma:1,1"}).fit(X), ValueError, "`prior` of 'atoms': `gamma:1,1`: expected dirichlet:A"),
        (lambda X: ShiftInvariantSkellam(2, kernel=(2, 2), prior={"activations": "gamma:1"}).fit(X), ValueError, "`prior` of 'activations': `gamma:1`: expected gamma:SHAPE,RATE"),
        (lambda X: ShiftInvariantSkellam(2, kernel=(2, 2), method="vb", anneal=(0.5, 9)).fit(X), ValueError, "anneal is .*method='vb'"),
        (lambda X: ShiftInvariantSkellam(2, kernel=(2, 2), anneal=(0.5,)).fit(X), ValueError, "anneal is .*two finite numbers"),
        (lambda X: ShiftInvariantPLCA(2, kernel=(2, 2), anneal=(0.5, np.inf)).fit(X), ValueError, "anneal is .*two finite numbers"),
        (lambda X: ShiftInvariantPLCA(2, kernel=(2, 2), anneal=(1.5, 9)).fit(X), ValueError, r"`anneal` is 1.5, expected .*\(0, 1\]"),
        (lambda X: TransformInvariantPLCA(2, kernel=(2, 2), anneal=("a", 9)).fit(X), ValueError, "anneal is .*two finite numbers"),
        (lambda X: SkellamCP(2, signed_mode=2).fit(X), ValueError, "signed_mode is 2, but X has 2 dimensions"),
        (lambda X: SkellamCP(2, signed_mode=0).fit(X).transform(X), ValueError, "mode 0 is signed"),
        (lambda X: SkellamCP(2, signed_mode=0, method="vb").fit(X).transform(X), ValueError, "mode 0 is signed"),
        (lambda X: SkellamCP(2, prior={"factor_1": "dirichlet:1"}).fit(X), ValueError, "no block 'factor_1'"),
        (lambda X: PLSA(2, method="vb", temper=0.9).fit(X), ValueError, "temper is 0.9"),
        (lambda X: PLCA(2, method="vb", temper_prior=True).fit(X), ValueError, "temper_prior is True"),
        (lambda X: PLSA(2, method="vb", prior={"mixture": "entropic:1"}).fit(X), ValueError, "`prior` of 'mixture': `entropic:1`: expected dirichlet:A"),
        (lambda X: PLSA(2, method="vb", prior={"mixture": "dirichlet:0"}).fit(X), ValueError, "prior shape.* is 0"),
        (lambda X: PLSA(2, method="vb").fit(X, observed=X < 9), ValueError, "needs complete data"),
        (lambda X: PLCA(2, method="vb").partial_fit(X), AttributeError, "partial_fit"),
        (lambda X: PLSA(2).fit(X, start="a"), TypeError, "start is 'a'"),
        (lambda X: NMF(2).save("u.npz"), NotFittedError, "not fitted"),
        (lambda X: separate(X, NMF(2)), NotFittedError, "not fitted"),
        (lambda X: select(PNTF(2), X, None), TypeError, "n_components is None"),
        (lambda X: select(SklearnNMF(2), X, [1]), TypeError, "estimator is NMF"),
        (lambda X: ad.nmf(X, 3), TypeError, "adata is of ndarray"),
        (lambda X: plot.kernels(PLSA(2, random_state=0).fit(X)), TypeError, "expected a ShiftInvariantPLCA"),
        (lambda X: Entropic("a"), ValueError, "beta is 'a'"),
        (lambda X: Dirichlet(None), ValueError, "alpha is None"),
        (lambda X: Penalty(np.nan, 0), ValueError, "linear is nan"),
        (lambda X: Penalty(0, -1), ValueError, "quadratic is -1, expected a finite number >= 0"),
        (lambda X: Gamma(0, 1), ValueError, "shape is 0, expected a finite number > 0"),
        (lambda X: LogisticNormal(True), ValueError, "variance is True"),
        (lambda X: NMF(2).fit(np.where(X > 3, np.nan, X)), ValueError, "missing='nan', or observed="),
        (lambda X: ShiftInvariantPLCA(2, kernel=(2, 2)).fit(np.where(X > 3, np.nan, X)), ValueError, "missing='nan', or observed="),
        (lambda X: Dirichlet([np.nan, 1]), ValueError, "alpha is .*nan"),
        (lambda X: select(PLSA(2), X, True), ValueError, "n_components has True"),
        (lambda X: NMF(2).fit(X, observed=np.full(X.shape, 2.0)), ValueError, "observed: .* got .*2.0"),
        (lambda X: NMF(2, beta_loss="frobenius", prior={"w": "rate:1"}).fit(X), ValueError, "takes no priors"),
        (lambda X: ConsensusNMF(2, n_runs=3).fit(X), ValueError, "n_runs is 3, .* at least 4"),
    ],
)
def test_wrong_arguments_are_named(X, wrong, error, names):
    with pytest.raises(error, match=names):
        wrong(X)


def test_a_prior_of_many_numbers_is_named_shortly():
    prior = Dirichlet(np.full((500, 20), 0.5))
    assert repr(prior) == "Dirichlet(array of shape (500, 20))"
    assert len(repr(PLSA(20, method="vb", prior={"basis": prior}))) < 200
    assert repr(Dirichlet([1.5, 2.0])) == "Dirichlet(array([1.5, 2. ]))"


@pytest.mark.parametrize("make", [PLSA, PLCA])
def test_a_prior_that_is_too_strong_is_warned_of_once(make):
    block = "basis" if make is PLSA else "factor_1"
    # The prior takes nine tenths of a count, and there is half of one.
    X = np.array([[4.0, 0.5]])
    for prior in ("dirichlet:0.1", Dirichlet(0.1)):
        model = make(1, prior={block: prior}, random_state=0, tol=0, max_iter=5)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X)
        (said,) = [w for w in caught if "set entries to 0" in str(w.message)]
        assert "method='vb' fits such a prior, as latent Dirichlet allocation does" in str(said.message) and said.filename == __file__


def test_one_number_of_components_is_scored(X):
    assert select(PLSA(random_state=0), np.round(X), 2).best == 2
    assert select(PLSA(random_state=0), np.round(X), np.array(2)).best == 2


def test_rates_that_run_away_are_warned_of():
    rng = np.random.default_rng(0)
    bump = np.sin(np.pi * np.arange(60) / 60) ** 4
    X = 10 * np.outer(bump, rng.normal(size=8)) + rng.normal(size=(60, 8))
    settings = {"solver": "momentum", "tol": 1e-9, "max_iter": 600, "random_state": 0}
    for make, size in ((SkellamSNMF, {}), (SkellamCP, {}), (ShiftInvariantSkellam, {"kernel": (1, 8)})):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            bounded = make(n_components=3, **size, **settings).fit(X)
        assert 1 <= bounded.cancellation_ <= 6 + 1e-9
        with pytest.warns(UserWarning, match="both rates together sum to .* replicates='auto'"):
            away = make(n_components=3, replicates=np.inf, **size, **settings).fit(X)
        assert away.cancellation_ > 10
    with pytest.warns(UserWarning, match="the priors do not bound them"):
        SkellamSNMF(n_components=3, method="vb", random_state=0).fit(1e-9 * X)
    # What is hidden counts on neither side.
    seen = np.ones(X.shape, bool)
    seen[::7] = False
    assert SkellamSNMF(n_components=3, random_state=0).fit(X, observed=seen).cancellation_ > 0
