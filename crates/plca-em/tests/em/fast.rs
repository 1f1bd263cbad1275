//! Coordinate descent with guarded extrapolation.

use plca_fit::seed as rng;
use std::sync::Arc;

use nalgebra::DMatrix;

use plca_dist::random::exponential;
use plca_em::{Given, Nmf, NmfState, Plca, PlcaState, Plsa, PlsaState};
use plca_fit::laws::check_threads;
use plca_fit::{
    Checkpoint, Factored, Fit, FitError, Init, Model, Solver, State, Stop, solver::Memory,
};
use plca_priors::{Dirichlet, Entropic};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor};

use super::support::{Prior, after, exactly, residual};

/// Counts drawn from a model of `k` components.
fn counts(shape: &[usize], k: usize, draws: usize, seed: u64) -> Coordinates<f64> {
    let cells = shape.iter().product();
    let ones = DenseTensor::new(shape.to_vec(), vec![1.0; cells], Order::RowMajor).unwrap();
    let plca = Plca::new(k);
    let truth = plca.init(&ones, Init::default(), &mut rng(seed)).unwrap();
    truth.with_model(|m| plca_em::sample_counts(m, draws, &mut rng(seed + 1)).unwrap())
}

/// With one factor fixed there is one optimum, and coordinate descent is nearer to it after as many iterations.
// [AG alg. 1] [SPEC 10.1]
#[test]
fn fewer_iterations_to_the_optimum() {
    let data = SparseTensor::new(counts(&[40, 30], 4, 4000, 3)).unwrap();
    let free = Plca::new(4);
    let start = free.init(&data, Init::default(), &mut rng(0)).unwrap();
    let plca = Plca::new(4).freeze("factor_0");
    for n in [5, 20] {
        let end = |solver| after(&plca, &data, &start, solver, n).unwrap().objective();
        let (slow, quick) = (end(Solver::Em), end(Solver::Fast));
        assert!(quick > slow, "{n}: {quick} {slow}");
    }
}

/// Runs end where the conditions hold.
// [SPEC 1.1] [SPEC 10.1]
#[test]
fn runs_end_stationary() {
    let data = SparseTensor::new(counts(&[12, 9], 3, 500, 6)).unwrap();
    let plca = Plca::new(3);
    let start = plca.init(&data, Init::default(), &mut rng(0)).unwrap();
    let end = after(&plca, &data, &start, Solver::Fast, 2000).unwrap();
    let residual = residual(&plca, &data, end.state()).unwrap();
    assert!(residual < 1e-6, "{residual}");
}

/// A fit that names no solver is one of coordinate descent where that is exact, and one of EM where it is not.
#[test]
fn the_default_takes_what_is_exact() {
    let data = SparseTensor::new(counts(&[12, 9], 3, 500, 6)).unwrap();
    let free = Plca::new(3);
    let sparse = Plca::new(3).prior("factor_0", Entropic::new(0.1).unwrap());
    for (plca, solver) in [(&free, Solver::Fast), (&sparse, Solver::Em)] {
        let default = plca.fit(&data, &mut rng(0)).unwrap();
        let on = plca.on(&data).unwrap().solver(solver);
        let named = on.run(Init::default(), &mut rng(0)).unwrap();
        assert_eq!(default.state(), named.state());
        assert_eq!(default.iterations(), named.iterations());
    }
}

fn refused<M: Model<f64>>(model: &M, what: &str) {
    let data = SparseTensor::new(counts(&[6, 5], 2, 100, 1)).unwrap();
    let algorithm = model.bind(&data).unwrap();
    let error = Solver::Fast.on(&*algorithm, Memory::default()).unwrap_err();
    assert!(matches!(error, FitError::NotSeparable { .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.contains(what) && message.contains("`em`"),
        "{message}"
    );
}

#[test]
fn what_does_not_separate_is_refused() {
    let sparse: Prior<f64> = Arc::new(Entropic::new(1.0).unwrap());
    let clipping: Prior<f64> = Arc::new(Dirichlet::symmetric(0.5).unwrap());
    let plca = || Plca::new(2);
    for (plca, what) in [
        (plca().temper(0.9), "tempering"),
        (plca().freeze("weights"), "weights"),
        (plca().prior("factor_1", sparse.clone()), "factor_1"),
        (plca().prior("weights", clipping.clone()), "weights"),
        (plca().freeze("factor_0").freeze("factor_1"), "weights"),
        (plca().freeze_components("factor_1", [0]), "factor_1"),
    ] {
        refused(&plca, what);
    }
    let plsa = || Plsa::new(2);
    for (plsa, what) in [
        (plsa().temper(0.9), "tempering"),
        (plsa().freeze("mixture"), "mixture"),
        (plsa().prior("basis", clipping), "basis"),
        (plsa().prior("mixture", sparse), "mixture"),
    ] {
        refused(&plsa, what);
    }
    refused(&Nmf::new(2).freeze("w").freeze("h"), "free");
}

/// Frozen blocks keep every bit.
#[test]
fn frozen_blocks_stay() {
    let data = SparseTensor::new(counts(&[6, 5, 4], 2, 300, 1)).unwrap();
    let free = Plca::new(2);
    let start = free.init(&data, Init::default(), &mut rng(4)).unwrap();
    let plca = Plca::new(2).freeze("factor_0").freeze("factor_2");
    let end = after(&plca, &data, &start, Solver::Fast, 30).unwrap();
    for mode in 0..3 {
        let stays = end.state().factor(mode) == start.factor(mode);
        assert_eq!(stays, mode != 1, "{mode}");
    }

    let data = SparseTensor::new(counts(&[6, 5], 2, 300, 1)).unwrap();
    let nmf = Nmf::new(2);
    let start = nmf.init(&data, Init::default(), &mut rng(4)).unwrap();
    for frozen in ["w", "h"] {
        let nmf = Nmf::new(2).freeze(frozen);
        let end = after(&nmf, &data, &start, Solver::Fast, 200).unwrap();
        let block = |state: &NmfState<f64>| state.parameters().block(frozen).cloned();
        assert_eq!(block(end.state()), block(&start));
        // The problem is convex: there is one optimum.
        let slow = after(&nmf, &data, &start, Solver::Em, 20_000).unwrap();
        assert!((end.objective() - slow.objective()).abs() < 1e-9 * slow.objective());
    }
}

/// The same problem as PLCA, PLSA in both directions and NMF has the same path.
// [SPEC 2] [SPEC 3] [SPEC 10.1]
#[test]
fn models_that_are_equal_stay_so() {
    let data = SparseTensor::new(counts(&[12, 9], 3, 500, 6)).unwrap();
    let plca = Plca::new(3);
    let start = plca.init(&data, Init::default(), &mut rng(2)).unwrap();
    let nmf = Nmf::new(3);
    let matched = NmfState::from_plca(&start, &[1.0, 2.0, 0.5], data.total()).unwrap();
    let a = after(&plca, &data, &start, Solver::Fast, 15).unwrap();
    let b = after(&nmf, &data, &matched, Solver::Fast, 15).unwrap();
    let product = b.state().to_plca().unwrap();
    for (x, y) in a.state().factors().iter().zip(product.factors()) {
        assert!((x - y).amax() < 1e-9, "{x} {y}");
    }
}

/// With priors of shape at least 1, on every block and on each alone, the posterior ends where EM's does.
// [SPEC 7] [SPEC 10.1]
#[test]
fn the_posterior_of_em() {
    let data = SparseTensor::new(counts(&[10, 8], 3, 400, 5)).unwrap();
    let prior = |alpha| -> Prior<f64> { Arc::new(Dirichlet::symmetric(alpha).unwrap()) };
    for blocks in 1..8 {
        let mut plca = Plca::new(3);
        for (at, (block, alpha)) in [("weights", 3.0), ("factor_0", 1.2), ("factor_1", 1.5)]
            .into_iter()
            .enumerate()
        {
            if blocks >> at & 1 == 1 {
                plca = plca.prior(block, prior(alpha));
            }
        }
        stays_with_em(&plca, &data);
    }
    for given in [Given::Rows, Given::Columns] {
        for blocks in 1..4 {
            let mut plsa = Plsa::new(3).given(given);
            if blocks & 1 == 1 {
                plsa = plsa.prior("basis", prior(1.3));
            }
            if blocks & 2 == 2 {
                plsa = plsa.prior("mixture", prior(2.0));
            }
            let start = stays_with_em(&plsa, &data);
            let quick = after(&plsa, &data, &start, Solver::Fast, 500).unwrap();
            let again = after(&plsa, &data, quick.state(), Solver::Em, 2000).unwrap();
            // EM finds nothing left to gain.
            let (quick, again) = (quick.objective(), again.objective());
            assert!((again - quick).abs() < 1e-9 * again.abs());
        }
    }
}

/// Coordinate descent stays where EM ends; the start.
fn stays_with_em<M: Model<f64>>(model: &M, data: &dyn Data<f64>) -> M::State {
    let start = model.init(data, Init::default(), &mut rng(2)).unwrap();
    let slow = after(model, data, &start, Solver::Em, 20_000).unwrap();
    let stays = after(model, data, slow.state(), Solver::Fast, 20).unwrap();
    assert!((stays.objective() - slow.objective()).abs() < 1e-12 * slow.objective().abs());
    let pairs = stays.state().parameters().matrices().iter();
    for (x, y) in pairs.zip(slow.state().parameters().matrices()) {
        let apart = |x: &DMatrix<f64>, y: &DMatrix<f64>| (x - y).amax();
        assert!(apart(x, y) < 1e-8, "{model:?}");
    }
    start
}

/// Zeros that a start gives are structure: they stay.
#[test]
fn zeros_of_the_start_stay() {
    let data = DenseTensor::new(
        vec![3, 3],
        vec![5.0, 1.0, 2.0, 1.0, 4.0, 3.0, 2.0, 2.0, 9.0],
        Order::RowMajor,
    )
    .unwrap();
    let plca = Plca::new(2);
    let mut first = plca
        .init(&data, Init::default(), &mut rng(1))
        .unwrap()
        .factor(0)
        .clone();
    first[(1, 0)] = 0.0;
    let start = Init::default().block("factor_0", first);
    let start = plca.init(&data, start, &mut rng(1)).unwrap();
    let end = after(&plca, &data, &start, Solver::Fast, 20).unwrap();
    assert_eq!(end.state().factor(0)[(1, 0)], 0.0);
}

/// A run cut in two, by way of a file, and on other threads, has the bits of the whole.
#[test]
fn resumed_runs_and_threads() {
    let sparse = SparseTensor::new(counts(&[400, 300], 4, 40_000, 5)).unwrap();
    let mut values: Vec<f64> = (0..60 * 50).map(|i| ((i * 7919) % 23) as f64).collect();
    (0..values.len())
        .step_by(7)
        .for_each(|i| values[i] = f64::NAN);
    let masked = DenseTensor::masked(vec![60, 50], values, Order::RowMajor).unwrap();
    let plsa = Plsa::new(3);
    for data in [&sparse as &dyn Data<f64>, &masked] {
        let start = plsa.init(data, Init::default(), &mut rng(3)).unwrap();
        let whole = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| after(&plsa, data, &start, Solver::Fast, 12).unwrap())
        };
        let one = whole(1);
        let ends = |fit: &Fit<PlsaState<f64>>| (fit.state().clone(), fit.checkpoint().clone());
        assert_eq!(ends(&one), ends(&whole(3)));
        let half = after(&plsa, data, &start, Solver::Fast, 5).unwrap();
        // The last step of a run is none of those that a longer run takes.
        let algorithm = plsa.bind(data).unwrap();
        let before = algorithm.objective(half.checkpoint().parameters());
        assert!(before.unwrap() < half.objective());
        // A run of no iterations leaves a start and an end as they are.
        let resume = |from: Checkpoint<f64>, n| {
            let run = plsa.on(data).unwrap().solver(Solver::Fast);
            run.stop(exactly(n)).resume(from)
        };
        let again = resume(half.checkpoint().clone(), 5).unwrap();
        assert_eq!(ends(&again), ends(&half));
        assert_eq!(again.objective(), half.objective());
        let none = after(&plsa, data, &start, Solver::Fast, 0).unwrap();
        let matrices = |state: &PlsaState<f64>| state.parameters().matrices().to_vec();
        assert_eq!(matrices(none.state()), matrices(&start));
        let saved = serde_json::to_value(half.checkpoint()).unwrap();
        let read = |saved| serde_json::from_value(saved).unwrap();
        assert_eq!(ends(&resume(read(saved.clone()), 12).unwrap()), ends(&one));
        // What is remembered must be whole, and of the right sizes.
        for kind in ["points", "numbers"] {
            let mut less = saved.clone();
            less["memory"][kind].as_array_mut().unwrap().pop();
            let error = resume(read(less), 12).unwrap_err();
            assert!(matches!(error, FitError::Checkpoint { .. }), "{error}");
        }
    }
}

/// Models of more rows and components than one thread takes at a time: the objective that follows from the row problems is that of
/// the model as written, and the bits are those of one thread.
fn parts_fit_together<T: Real, M: Model<T>>(model: &M, data: &dyn Data<T>, tol: f64) {
    let start = model.init(data, Init::default(), &mut rng(2)).unwrap();
    let start = start.parameters();
    let run = || {
        let algorithm = model.bind(data).unwrap();
        let mut fast = Solver::Fast.on(&*algorithm, Memory::default()).unwrap();
        let mut at = start.clone();
        for _ in 0..4 {
            let is = algorithm.objective(&at).unwrap();
            let follows = fast.step(&mut at, true).unwrap().value.unwrap();
            assert!((follows - is).abs() <= tol * is.abs(), "{follows} {is}");
        }
        (at, fast.memory())
    };
    check_threads(run).unwrap();
}

fn all_models_in_parts<T: Real>(data: &dyn Data<T>, tol: f64) {
    let k = 9;
    for given in [Given::Columns, Given::Rows] {
        for alpha in [None, Some(1.5)] {
            let mut plsa = Plsa::new(k).given(given);
            if let Some(alpha) = alpha {
                let prior = Dirichlet::symmetric(alpha).unwrap();
                plsa = plsa.prior("basis", prior.clone()).prior("mixture", prior);
            }
            parts_fit_together(&plsa, data, tol);
        }
    }
    parts_fit_together(&Plca::new(k), data, tol);
    parts_fit_together(&Nmf::new(k), data, tol);
}

#[test]
fn many_parts_fit_together() {
    let shape = [1300, 1100];
    let sparse = SparseTensor::new(counts(&shape, 5, 60_000, 5)).unwrap();
    all_models_in_parts(&sparse, 1e-11);
    let values = |i: usize| {
        if i % 7 == 3 {
            f64::NAN
        } else {
            ((i * 7919) % 23) as f64
        }
    };
    let narrow = [1300, 30];
    let values: Vec<f64> = (0..narrow[0] * narrow[1]).map(values).collect();
    let single: Vec<f32> = values.iter().map(|&v| v as f32).collect();
    let masked = DenseTensor::masked(narrow.to_vec(), values, Order::RowMajor).unwrap();
    all_models_in_parts(&masked, 1e-11);
    let masked = DenseTensor::masked(narrow.to_vec(), single, Order::RowMajor).unwrap();
    all_models_in_parts(&masked, 1e-5);
}

/// Columns without an observed cell: nothing says what they are, so they keep their share of every component, and the masses of the
/// components cannot grow: what was seen of one is at most all data, and its share stays what it was.
// [SPEC 10.1]
#[test]
fn hidden_columns_keep_their_share() {
    let columns = 30;
    let ones = DenseTensor::new(vec![40, columns], vec![1.0; 40 * columns], Order::RowMajor);
    let ones = ones.unwrap();
    let truth = Plca::new(6);
    for seed in 60..72 {
        let mut drawn = rng(seed);
        let truth = truth.init(&ones, Init::default(), &mut drawn).unwrap();
        let drawn = truth.with_model(|m| plca_em::sample_counts(m, 24_000, &mut drawn).unwrap());
        let mut values = vec![0.0; 40 * columns];
        for index in drawn.indices.chunks(2) {
            values[index[0] as usize * columns + index[1] as usize] = 1.0;
        }
        let hidden = |column: usize| column % 5 == seed as usize % 5;
        let cells = values.iter_mut().enumerate();
        let unseen = cells.filter(|(at, _)| hidden(at % columns));
        unseen.for_each(|(_, v)| *v = f64::NAN);
        let data = DenseTensor::<f64>::masked(vec![40, columns], values, Order::RowMajor).unwrap();
        let plca = Plca::new(4);
        let drawn = &mut rng(1000 + seed);
        let start = plca.init(&data, Init::default(), drawn).unwrap();
        let shares = |factor: &DMatrix<f64>| -> Vec<f64> {
            let share = |z| (0..columns).filter(|&j| hidden(j)).map(move |j| (j, z));
            (0..4)
                .map(|z| share(z).map(|at| factor[at]).sum())
                .collect()
        };
        let before = shares(start.factor(1));
        let end = after(&plca, &data, &start, Solver::Fast, 500).unwrap();
        let mut at = end.checkpoint().clone();
        let reached = shares(at.parameters().at(2));
        // Two products of two factors each, then the masses of the components in units of the data's.
        let arrays = at.take_arrays();
        let masses = arrays.iter().find(|(name, _)| name == "memory.4").unwrap();
        for (z, (share, was)) in reached.iter().zip(&before).enumerate() {
            assert!((share - was).abs() < 1e-12, "{seed} {z}: {share} {was}");
            let mass = masses.1[z];
            assert!(
                mass * (1.0 - was) <= 1.0 + 1e-12,
                "{seed} {z}: {mass} {was}"
            );
        }
    }
}

/// Parameters of other data are refused at the start of a run, and amid one in which all else fits; so is a memory of other data.
fn refuses<M: Model<f64>>(model: &M, data: &dyn Data<f64>, other: &dyn Data<f64>) {
    let end = |data| {
        let start = model.init(data, Init::default(), &mut rng(1)).unwrap();
        after(model, data, &start, Solver::Fast, 1).unwrap()
    };
    let (right, wrong) = (end(data), end(other));
    let json = |fit: &Fit<M::State>| serde_json::to_value(fit.checkpoint()).unwrap();
    let mixed = |part: &str| {
        let mut mixed = json(&right);
        mixed[part] = json(&wrong)[part].clone();
        serde_json::from_value(mixed).unwrap()
    };
    let start = Checkpoint::new(wrong.state().parameters().clone());
    for from in [start, mixed("parameters"), mixed("memory")] {
        let run = model.on(data).unwrap().solver(Solver::Fast);
        let refused = run.resume(from).unwrap_err();
        assert!(matches!(refused, FitError::Checkpoint { .. }), "{refused}");
    }
}

/// A state of other data is an error, no panic.
#[test]
fn a_state_of_other_data() {
    let data = SparseTensor::new(counts(&[6, 5], 2, 100, 1)).unwrap();
    let other = SparseTensor::new(counts(&[6, 4], 2, 100, 1)).unwrap();
    refuses(&Plca::new(2), &data, &other);
    refuses(&Plsa::new(2), &data, &other);
    refuses(&Nmf::new(2), &data, &other);
    // One that is tempered, too.
    let tempered = Plca::new(2).temper(0.5);
    let tempered = tempered.init(&data, Init::default(), &mut rng(1)).unwrap();
    let plca = Plca::new(2);
    let refused = after(&plca, &data, &tempered, Solver::Fast, 1).unwrap_err();
    assert!(
        matches!(refused, FitError::NotSeparable { .. }),
        "{refused}"
    );
}

/// An entry that is seen to no digit, because what it is multiplied by has almost left the observed cells, counts as hidden: it
/// would grow without bound.
#[test]
fn entries_that_almost_nothing_observes_stay_finite() {
    let shape = vec![5, 1, 2, 2];
    let hidden = [4, 5, 7, 18, 19];
    let values = [
        5.0,
        8.342513,
        0.0,
        0.44929662,
        0.0,
        2.4594884,
        0.68719274,
        1.8316221,
        1.0,
        4.3782983,
        3.0,
        0.0,
        3.0,
        2.7722833,
        0.1457124,
        0.0,
        0.0,
        0.69796216,
        0.018350195,
        4.6320457,
    ];
    let cells = values.iter().enumerate();
    let seen = |(c, &v): (usize, &f32)| if hidden.contains(&c) { f32::NAN } else { v };
    let data = DenseTensor::masked(shape, cells.map(seen).collect(), Order::RowMajor).unwrap();
    let first = [
        0.077952586,
        0.6881896,
        0.077952586,
        0.077952586,
        0.077952586,
        0.41885674,
        0.4052856,
        0.05861921,
        0.05861921,
        0.05861921,
        0.23300657,
        0.16196315,
        0.15247963,
        0.24194992,
        0.21060076,
    ];
    let third = [
        0.5236728, 0.47632718, 0.8639541, 0.13604586, 0.47887242, 0.5211276,
    ];
    let fourth = [
        0.74780136, 0.25219864, 0.16838023, 0.8316198, 0.3393933, 0.66060674,
    ];
    let start = PlcaState::<f32>::new(
        vec![0.34292522, 0.59747434, 0.059600435].into(),
        vec![
            DMatrix::from_column_slice(5, 3, &first),
            DMatrix::from_element(1, 3, 1.0),
            DMatrix::from_column_slice(2, 3, &third),
            DMatrix::from_column_slice(2, 3, &fourth),
        ],
    );
    let plca = Plca::new(3);
    let algorithm = plca.bind(&data).unwrap();
    let mut fast = Solver::Fast.on(&*algorithm, Memory::default()).unwrap();
    let mut at = start.unwrap().parameters().clone();
    let mut last = f64::NEG_INFINITY;
    for iteration in 0..30 {
        let stepped = fast.step(&mut at, true).expect("finite entries");
        let value = stepped.value.expect("a measured step");
        assert!(
            value >= last - 1e-4 * value.abs(),
            "{iteration}: {last} to {value}"
        );
        last = value;
    }
}

/// What a run from the seed's start looks like: its objectives, and its model.
fn looked_at<T: Real, M: Model<T>>(
    model: &M,
    data: &DenseTensor<T>,
    solver: Solver,
) -> (Vec<f64>, Vec<DMatrix<T>>) {
    let run = model.on(data).unwrap().solver(solver);
    let stop = Stop::default().max_iter(120).check_every(1).tol(1e-9);
    let fit = run.stop(stop).run(Init::default(), &mut rng(5)).unwrap();
    let blocks = fit.state().parameters().matrices().to_vec();
    (fit.trace().iter().map(|p| p.objective).collect(), blocks)
}

/// Data times a power of two: the same run in the other unit, bit for bit. Shares are as they were, rates have the unit.
fn has_no_unit<T: Real, M: Model<T>>(
    model: &M,
    values: &[f64],
    hidden: bool,
    (solver, e): (Solver, i32),
) {
    let data = |e: i32| {
        let value = |(at, x): (usize, &f64)| match hidden && at % 7 == 3 {
            true => T::lit(f64::NAN),
            // Rounded before it is scaled.
            false => T::lit(T::lit(*x).to_f64() * 2f64.powi(e)),
        };
        let values = values.iter().enumerate().map(value).collect();
        DenseTensor::masked(vec![12, 9], values, Order::RowMajor).unwrap()
    };
    let (one, other) = (
        looked_at(model, &data(0), solver),
        looked_at(model, &data(e), solver),
    );
    let unit = 2f64.powi(e);
    let scaled: Vec<f64> = one.0.iter().map(|x| x * unit).collect();
    assert_eq!(scaled, other.0, "{solver} {e}");
    for (a, b) in one.1.iter().zip(&other.1) {
        // Of rates a power of two, of which each block has its own part.
        let by = b.amax().to_f64() / a.amax().to_f64();
        assert!(by.log2().fract() == 0.0, "{solver} {e} {by}");
        assert_eq!(a.map(|x| T::lit(x.to_f64() * by)), *b, "{solver} {e}");
    }
}

fn all_have_no_unit<T: Real>(exponents: &[i32]) {
    let values = gamma_like(12 * 9);
    for &e in exponents {
        for hidden in [false, true] {
            for solver in [
                Solver::Em,
                Solver::Fast,
                Solver::Momentum,
                Solver::Parabolic,
                Solver::Squarem,
            ] {
                let of = (solver, e);
                has_no_unit::<T, _>(&Plca::new(3), &values, hidden, of);
                has_no_unit::<T, _>(&Plsa::new(3), &values, hidden, of);
                has_no_unit::<T, _>(&Nmf::new(3), &values, hidden, of);
            }
        }
    }
}

/// Skewed positive numbers.
fn gamma_like(n: usize) -> Vec<f64> {
    let mut rng = rng(3);
    (0..n)
        .map(|_| exponential(&mut rng) * exponential(&mut rng))
        .collect()
}

// [SPEC 10.1] [SPEC 1.2]
#[test]
fn powers_of_two_change_no_bit() {
    all_have_no_unit::<f64>(&[-301, -50, -1, 77, 300]);
    // Of entries that all but vanish, counts and rates are subnormal in single precision, sooner in one unit than in another.
    all_have_no_unit::<f32>(&[-4, -1]);
}

/// However small the unit, no iteration is worse than the one before by more than rounding.
// [SPEC 10.1]
#[test]
fn no_iteration_is_worse_in_small_units() {
    fn in_units<T: Real>(units: &[f64], rounding: f64) {
        let values = gamma_like(12 * 9);
        let total: f64 = values.iter().sum();
        for unit in units {
            let data = values.iter().map(|x| T::lit(x * unit)).collect();
            let data = DenseTensor::new(vec![12, 9], data, Order::RowMajor).unwrap();
            let ends = [
                (1.0, looked_at(&Plca::new(3), &data, Solver::Fast)),
                (1.0, looked_at(&Plsa::new(3), &data, Solver::Fast)),
                (-1.0, looked_at(&Nmf::new(3), &data, Solver::Fast)),
            ];
            for (sense, (trace, _)) in ends {
                for pair in trace.windows(2) {
                    let worse = sense * (pair[0] - pair[1]) / (total * unit);
                    assert!(worse <= rounding, "{unit:e}: {worse:e}");
                }
            }
        }
    }
    in_units::<f64>(&[1e6, 1.0, 1e-12, 1e-15, 1e-200], 1e-13);
    in_units::<f32>(&[1e6, 1.0, 1e-3, 1e-8, 1e-25], 5e-6);
}
