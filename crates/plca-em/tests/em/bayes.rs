//! Variational Bayes of PLCA and PLSA.

use nalgebra::DMatrix;
use plca_em::{Entries, Given, PlcaVb, Plsa, PlsaVb, PlsaVbState};
use plca_fit::{FitError, Init, Model, Settings, Solver, State, Stop, Transform};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;

use crate::support::{cases, exactly, floats, near, whole};

const GOLDEN: &str = include_str!("../../../testdata/golden/variational_bayes.json");

fn block<T: Real>(v: &Value) -> DMatrix<T> {
    let sizes = whole(&v["shape"]);
    let columns = sizes.get(1).copied().unwrap_or(1);
    let values: Vec<T> = floats(&v["data"]).into_iter().map(T::lit).collect();
    DMatrix::from_row_slice(sizes[0], columns, &values)
}

fn dense<T: Real>(v: &Value) -> DenseTensor<T> {
    let values = floats(&v["data"]).into_iter().map(T::lit).collect();
    DenseTensor::new(whole(&v["shape"]), values, Order::RowMajor).unwrap()
}

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(0)
}

/// Every point of a trajectory; in single precision the bounds of the first ones.
fn trajectory<T: Real, M: Model<T>>(model: &M, data: &dyn Data<T>, case: &Value) {
    let name = case["name"].as_str().unwrap();
    let single = size_of::<T>() == 4;
    let algorithm = model.bind(data).unwrap();
    let given = case["init"].as_object().unwrap().iter();
    let start = given.fold(Init::default(), |init, (name, v)| {
        init.block(name.clone(), block(v))
    });
    let mut at = start.parameters(&*algorithm, &mut rng()).unwrap();
    let mut done = 0;
    for point in case["trajectory"].as_array().unwrap() {
        let iter = point["iter"].as_u64().unwrap();
        while done < iter {
            algorithm.step(&mut at, false).unwrap();
            done += 1;
        }
        let what = format!("{name} after {done}");
        let elbo = algorithm.objective(&at).unwrap();
        let want = point["elbo"].as_f64().unwrap();
        if single {
            near(&what, elbo, want, if iter > 5 { 1e-2 } else { 1e-5 });
            continue;
        }
        near(&what, elbo, want, 1e-11);
        for (block_name, got) in at.blocks() {
            let want = block::<f64>(&point[block_name]);
            for (got, want) in got.iter().zip(want.iter()) {
                near(&format!("{what}, {block_name}"), got.to_f64(), *want, 1e-11);
            }
        }
    }
}

fn trajectories<T: Real>() -> usize {
    let mut checked = 0;
    for case in cases(GOLDEN)
        .iter()
        .filter(|case| case["trajectory"].is_array())
    {
        let data = dense::<T>(&case["V"]);
        let k = case["K"].as_u64().unwrap() as usize;
        let priors = case["prior"].as_object().unwrap().iter();
        let priors =
            priors.map(|(name, a)| (format!("{name}_shape"), Entries::All(a.as_f64().unwrap())));
        match case["model"].as_str().unwrap() {
            "plca-vb" => {
                let model = PlcaVb::new(k);
                let model = priors.fold(model, |b, (name, a)| b.prior(name, a));
                trajectory(&model, &data, case);
            }
            _ => {
                let model = PlsaVb::new(k);
                let model = priors.fold(model, |b, (name, a)| b.prior(name, a));
                trajectory(&model, &data, case);
            }
        }
        checked += 1;
    }
    checked
}

// [EXT 3]
#[test]
fn trajectories_match_the_reference() {
    assert_eq!(trajectories::<f64>(), 4);
    assert_eq!(trajectories::<f32>(), 4);
}

/// New documents under a learnt posterior of the topics.
// [EXT 3]
#[test]
fn held_out_bounds_match_the_reference() {
    let cases = cases(GOLDEN);
    let case = cases
        .iter()
        .find(|case| case["name"] == "held_out")
        .unwrap();
    let basis: DMatrix<f64> = block(&case["basis_shape"]);
    let even = DMatrix::from_element(basis.ncols(), 1, 1.0);
    let learnt = PlsaVbState::new(Given::Columns, basis.clone(), even).unwrap();
    let alpha = Entries::All(case["alpha"].as_f64().unwrap());
    let model = PlsaVb::new(basis.ncols()).prior("mixture_shape", alpha);
    let (data, tol) = (
        dense::<f64>(&case["V"]),
        case["tolerance"].as_f64().unwrap(),
    );
    let mut how = Transform::default().stop(exactly(3000));
    how.solver = Solver::Em;
    let found = model.transform(&learnt, &data, &how).unwrap();
    let want = case["document_bound"].as_f64().unwrap();
    near("bound", found.fit.objective(), want, tol);
    let perplexity = (-found.fit.objective() / data.total()).exp();
    near(
        "perplexity",
        perplexity,
        case["perplexity_bound"].as_f64().unwrap(),
        tol,
    );
    let state = found.fit.state();
    assert_eq!(state.basis_shape(), &basis);
    for (got, want) in state
        .mixture_shape()
        .iter()
        .zip(&block::<f64>(&case["mixture_shape"]))
    {
        near("mixture", *got, *want, 1e-7);
    }
    // [EXT 3] exp(-Σ V2 ln(E W E G) / v2)
    let means = state.means().unwrap();
    let rest = block::<f64>(&case["V_completion"]);
    let p = means.basis() * means.mixture();
    let ln_lik: f64 = rest.iter().zip(&p).map(|(v, p)| v * p.ln()).sum();
    let want = case["perplexity_completion"].as_f64().unwrap();
    near("completion", (-ln_lik / rest.sum()).exp(), want, tol);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No step lowers the bound, which is the same of sparse data and without what has no counts.
    #[test]
    fn steps_are_monotone(
        values in prop::collection::vec(0u8..7, 24),
        shapes in prop::collection::vec(prop_oneof![Just(0.01), 0.05..3.0f64], 4),
        (second, seed) in (any::<bool>(), any::<u64>()),
    ) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        prop_assume!(values.iter().sum::<f64>() > 0.0);
        let shape = if second { vec![6, 4] } else { vec![4, 3, 2] };
        let data = DenseTensor::new(shape, values, Order::RowMajor).unwrap();
        let mut entries = Coordinates { shape: data.shape().to_vec(), indices: vec![], values: vec![] };
        data.visit(&mut |index, value| {
            entries.indices.extend(index.iter().map(|&i| i as u32));
            entries.values.push(value);
        }).unwrap();
        let sparse = SparseTensor::new(entries).unwrap();
        let mut model = PlcaVb::new(3).prior("weights_shape", Entries::All(shapes[3]));
        for (j, &a) in shapes.iter().enumerate().take(data.shape().len()) {
            model = model.prior(format!("factor_{j}_shape"), Entries::All(a));
        }
        let lda = PlsaVb::new(3).prior("basis_shape", Entries::All(shapes[0]));
        let lda = lda.prior("mixture_shape", Entries::All(shapes[1]));
        let stop = Stop::default().max_iter(25).tol(None).check_every(1);
        let check = |trace: &[plca_fit::TracePoint]| {
            trace.windows(2).all(|w| w[1].objective >= w[0].objective - 1e-12 * w[0].objective.abs())
        };
        let run = model.on(&data).unwrap().solver(Solver::Em).stop(stop.clone());
        let fit = run.run(Init::default(), &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
        prop_assert!(check(fit.trace()), "{:?}", fit.trace());
        let bound = model.bind(&sparse).unwrap().objective(fit.state().parameters()).unwrap();
        prop_assert!((bound - fit.objective()).abs() < 1e-9 * bound.abs());
        if second {
            let run = lda.on(&data).unwrap().solver(Solver::Em).stop(stop);
            let fit = run.run(Init::default(), &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
            prop_assert!(check(fit.trace()), "{:?}", fit.trace());
        }
    }
}

/// What is frozen keeps its bits and has no divergence; parts of a column are refused, and so are hidden cells and shapes of 0.
#[test]
fn what_does_not_go_is_refused() {
    let data = DenseTensor::new(
        vec![2, 3],
        vec![3.0, 1.0, 0.0, 2.0, 4.0, 1.0],
        Order::RowMajor,
    );
    let data = data.unwrap();
    let fit = PlsaVb::new(2).fit(&data, &mut rng()).unwrap();
    let start = fit.state();
    let frozen = PlsaVb::new(2).freeze_components("basis_shape", [1]);
    let run = frozen.on(&data).unwrap().stop(exactly(3));
    let kept = run.run(start, &mut rng()).unwrap();
    assert_eq!(
        kept.state().basis_shape().column(1),
        start.basis_shape().column(1)
    );
    let none = PlsaVb::new(2).freeze("basis_shape").freeze("mixture_shape");
    let bound = none
        .bind(&data)
        .unwrap()
        .objective(start.parameters())
        .unwrap();
    assert!(bound > fit.objective());
    let parts = PlsaVb::new(2).freeze_components("mixture_shape", [0]);
    assert!(matches!(parts.bind(&data), Err(FitError::Conflict { .. })));
    let hidden = DenseTensor::masked(vec![2, 2], vec![1.0, f64::NAN, 2.0, 3.0], Order::RowMajor);
    let plain = PlcaVb::new(1);
    assert!(matches!(
        plain.bind(&hidden.unwrap()),
        Err(FitError::Conflict { .. })
    ));
    let zero = PlcaVb::new(1)
        .prior("weights_shape", Entries::All(0.0))
        .check();
    assert!(matches!(
        zero,
        Err(FitError::Setting {
            name: "prior shape",
            ..
        })
    ));
    let other = PlcaVb::new(1).prior("mixture", Entries::All(1.0));
    assert!(matches!(
        other.bind(&data),
        Err(FitError::UnknownBlock { .. })
    ));
}

/// The bits do not depend on the number of threads: dense data of more than one block of the kernel, sparse ones of more than one tile, and more shapes than one
/// part of the work.
#[test]
fn threads_change_no_bit() {
    let (rows, columns) = (900, 700);
    let value = |i: usize| ((i * 7 + i * i) % 5) as f64;
    let values = (0..rows * columns).map(value).collect();
    let dense = DenseTensor::new(vec![rows, columns], values, Order::RowMajor).unwrap();
    let mut entries = Coordinates::empty(&[rows, columns]);
    for at in (0..rows * columns).step_by(17) {
        entries.push(&[at / columns, at % columns], 1.0 + value(at));
    }
    let sparse = SparseTensor::new(entries).unwrap();
    let plsa = PlsaVb::new(8).prior("basis_shape", Entries::All(0.1));
    let plca = PlcaVb::new(8);
    fn fit<M: Model<f64>>(model: &M, data: &dyn Data<f64>) -> M::State {
        let run = model.on(data).unwrap().stop(exactly(3));
        run.run(Init::default(), &mut rng()).unwrap().into_state()
    }
    for data in [&dense as &dyn Data<f64>, &sparse] {
        plca_fit::laws::check_threads(|| fit(&plsa, data)).unwrap();
        plca_fit::laws::check_threads(|| fit(&plca, data)).unwrap();
    }
}

/// A random start is what EM has found: the means leave EM little to gain, where drawn distributions leave it nearly all.
#[test]
fn starts_are_found_by_em() {
    let (words, documents, topics) = (40, 60, 4);
    let value = |at: usize| {
        let (word, document) = (at / documents, at % documents);
        let of = |topic: usize| f64::from(u8::from(word % topics == topic));
        let share = |topic: usize| 1.0 + ((document * 7 + topic * 11) % 13) as f64;
        let rate: f64 = (0..topics).map(|z| of(z) * share(z)).sum();
        (rate + (at * 31 % 5) as f64).floor()
    };
    let values = (0..words * documents).map(value).collect();
    let v = DenseTensor::new(vec![words, documents], values, Order::RowMajor).unwrap();
    let shape = || Entries::All(0.1);
    let lda = PlsaVb::new(topics).prior("basis_shape", shape());
    let lda = lda.prior("mixture_shape", shape());
    let plsa = Plsa::new(topics);
    for seed in 0..5 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let start = lda.on(&v).unwrap().stop(exactly(0));
        let means = start.run(Init::default(), &mut rng).unwrap();
        let means = means.state().means().unwrap();
        let init = Init::default()
            .block("basis", means.basis().clone())
            .block("mixture", means.mixture().clone());
        let from = |init: Init<f64>, iterations: usize| {
            let run = plsa.on(&v).unwrap().solver(Solver::Em);
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            run.stop(exactly(iterations))
                .run(init, &mut rng)
                .unwrap()
                .objective()
        };
        let (drawn, found) = (from(Init::default(), 1), from(init.clone(), 0));
        let most = from(init, 300);
        assert!(
            most - found < 0.1 * (most - drawn),
            "{drawn} {found} {most}"
        );
    }
}

/// Counts of documents of `K` topics, each with a few words of its own, and the topics.
fn corpus() -> (DenseTensor<f64>, DMatrix<f64>, DMatrix<f64>) {
    let (words, topics, documents) = (40, 8, 30);
    let mut basis = DMatrix::from_fn(words, topics, |x, z| {
        0.02 + f64::from(u8::from(x % topics == z || x / 5 == z))
    });
    let mut mixture = DMatrix::from_fn(topics, documents, |z, d| {
        0.01 + f64::from(u8::from(z == d % topics))
            + 0.5 * f64::from(u8::from(z == (d * d + 1) % topics))
    });
    for block in [&mut basis, &mut mixture] {
        plca_tensor::normalise_columns(block);
    }
    let counts = (&basis * &mixture).map(|p| (300.0 * p).round());
    let data = DenseTensor::new(
        vec![words, documents],
        counts.as_slice().to_vec(),
        Order::ColumnMajor,
    );
    (data.unwrap(), basis, mixture)
}

fn lda(k: usize) -> PlsaVb {
    let lda = PlsaVb::new(k).prior("basis_shape", Entries::All(0.1));
    lda.prior("mixture_shape", Entries::All(0.1))
}

/// Blocks beside one that is given begin as new data are explained by it: from even counts. They end no lower than from there, whatever the seed, and no
/// lower than from both blocks.
// [EXT 3]
#[test]
fn what_is_given_explains_the_rest() {
    let (data, basis, mixture) = corpus();
    let (k, documents) = (basis.ncols(), mixture.ncols());
    let even = DMatrix::from_fn(k, documents, |_, d| {
        0.1 + data.marginal(1).unwrap()[d] / k as f64
    });
    let known = basis.map(|p| 1e4 * p + 0.1);
    let fixed = PlsaVb::new(k)
        .prior("mixture_shape", Entries::All(0.1))
        .freeze("basis_shape");
    let given = || Init::default().block("basis_shape", known.clone());
    let from_even = fixed
        .on(&data)
        .unwrap()
        .run(given().block("mixture_shape", even), &mut rng())
        .unwrap();
    for seed in 0..3 {
        for starts in [1, 3] {
            let run = fixed.on(&data).unwrap().restarts(starts);
            let fit = run
                .run(given(), &mut ChaCha8Rng::seed_from_u64(seed))
                .unwrap();
            assert!(
                fit.objective() >= from_even.objective() - 1e-7 * data.total(),
                "{seed} {}",
                fit.objective()
            );
        }
    }
    // Where it is free, it is no worse than knowing nothing.
    let start = basis.map(|p| 300.0 * documents as f64 / k as f64 * p + 0.1);
    let told = Init::default().block("basis_shape", start);
    let told = lda(k)
        .on(&data)
        .unwrap()
        .run(told, &mut rng())
        .unwrap()
        .objective();
    for seed in 0..3 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let drawn = lda(k).fit(&data, &mut rng).unwrap().objective();
        assert!(told >= drawn - 1e-6 * drawn.abs(), "{told} {seed} {drawn}");
    }
    // A factor of PLCA tells the others too, weights or columns that are all alike do not.
    let plca = |frozen: bool| {
        let plca = PlcaVb::new(k)
            .prior("weights_shape", Entries::All(0.1))
            .prior("factor_1_shape", Entries::All(0.1));
        if frozen {
            plca.freeze("factor_0_shape")
        } else {
            plca
        }
    };
    let fits: Vec<f64> = (0..3)
        .map(|seed| {
            let init = Init::default().block("factor_0_shape", known.clone());
            plca(true)
                .on(&data)
                .unwrap()
                .run(init, &mut ChaCha8Rng::seed_from_u64(seed))
                .unwrap()
                .objective()
        })
        .collect();
    assert!(fits.iter().all(|&fit| fit == fits[0]), "{fits:?}");
    let alike = DMatrix::from_element(basis.nrows(), k, 3.0);
    let init = Init::default().block("factor_0_shape", alike);
    let fit = plca(false)
        .on(&data)
        .unwrap()
        .run(init, &mut rng())
        .unwrap();
    let factor = fit.state().factor_shape(0);
    assert!(
        (1..k).any(|z| factor.column(z) != factor.column(0)),
        "all components are the same"
    );
}

/// Probabilities are not shapes.
// [EXT 3]
#[test]
fn probabilities_are_refused_as_shapes() {
    let (data, basis, _) = corpus();
    let k = basis.ncols();
    let rounded = basis.map(|p| (1e6 * p).round() / 1e6);
    let run = lda(k).on(&data).unwrap().run(
        Init::default().block("basis_shape", rounded.clone()),
        &mut rng(),
    );
    let error = run.unwrap_err();
    assert!(
        matches!(&error, FitError::Probabilities { block, .. } if block == "basis_shape"),
        "{error}"
    );
    assert!(error.to_string().contains("0.1 + 1000 times"), "{error}");
    let learnt = PlsaVbState::new(
        Given::Columns,
        rounded.clone(),
        DMatrix::from_element(k, 1, 1.0),
    )
    .unwrap();
    let explained = lda(k).transform(&learnt, &data, &Transform::default());
    assert!(matches!(
        explained.unwrap_err(),
        FitError::Probabilities { .. }
    ));
    let plca = PlcaVb::new(k);
    let run = plca
        .on(&data)
        .unwrap()
        .run(Init::default().block("factor_0_shape", rounded), &mut rng());
    assert!(matches!(run.unwrap_err(), FitError::Probabilities { .. }));
    // Shapes of a small prior may sum to 1.
    let prior = 1.0 / basis.nrows() as f64;
    let small = PlsaVb::new(k).prior("basis_shape", Entries::All(prior));
    let shapes = DMatrix::from_element(basis.nrows(), k, prior);
    assert!(
        small
            .on(&data)
            .unwrap()
            .run(Init::default().block("basis_shape", shapes), &mut rng())
            .is_ok()
    );
}

/// Words that no document has change nothing, except by their part of the topics' sums.
// [EXT 3]
#[test]
fn words_that_no_document_has_change_nothing() {
    let (k, words) = (3, 50);
    let shapes = DMatrix::from_fn(words, k, |x, z| 0.5 + ((x * 7 + z * 3) % 10) as f64);
    let mut other = shapes.clone();
    // The sums of the topics stay: 2^-10 is exact.
    for z in 0..k {
        let moved = other[(40, z)] * 0.25;
        (other[(40, z)], other[(41, z)]) = (other[(40, z)] - moved, other[(41, z)] + moved);
    }
    let cells = |order: &[u32]| Coordinates {
        shape: vec![words, 2],
        indices: order.iter().flat_map(|&x| [x, x % 2]).collect(),
        values: order.iter().map(|&x| f64::from(x % 4 + 1)).collect(),
    };
    let data = SparseTensor::new(cells(&[3, 9, 12, 17, 30, 4])).unwrap();
    let explained = |shapes: &DMatrix<f64>| {
        let learnt = PlsaVbState::new(
            Given::Columns,
            shapes.clone(),
            DMatrix::from_element(k, 1, 1.0),
        );
        let found = lda(k)
            .transform(&learnt.unwrap(), &data, &Transform::default())
            .unwrap();
        assert_eq!(found.fit.state().basis_shape(), shapes);
        found.fit.state().mixture_shape().clone()
    };
    assert_eq!(explained(&shapes), explained(&other));
    let joint = |shapes: &DMatrix<f64>| {
        let ones = DMatrix::from_element(k, 1, 1.0);
        let learnt =
            plca_em::PlcaVbState::new(ones, vec![shapes.clone(), DMatrix::from_element(2, k, 1.0)]);
        let plca = PlcaVb::new(k);
        let found = plca
            .transform(&learnt.unwrap(), &data, &Transform::default())
            .unwrap();
        assert_eq!(found.fit.state().factor_shape(0), shapes);
        (
            found.fit.state().weights_shape().to_vec(),
            found.fit.state().factor_shape(1).clone(),
        )
    };
    assert_eq!(joint(&shapes), joint(&other));
}
