//! Coordinate descent with guarded extrapolation.

use std::sync::Arc;

use nalgebra::DMatrix;

use plca_em::{
    Algorithm, EmError, Fast, FastState, Given, NmfInit, Pace, PlcaInit, PlsaInit, Prior,
    Separable, Stop,
    before::{Nmf, Plca, PlcaState, Plsa},
    run,
};
use plca_fit::laws::check_threads;
use plca_priors::{Dirichlet, Entropic};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Counts drawn from a model of `k` components.
fn counts(shape: &[usize], k: usize, draws: usize, seed: u64) -> Coordinates<f64> {
    let cells = shape.iter().product();
    let ones = DenseTensor::new(shape.to_vec(), vec![1.0; cells], Order::RowMajor).unwrap();
    let plca = Plca::builder(k).build().unwrap();
    let truth = plca
        .init(&ones, &PlcaInit::default(), &mut rng(seed))
        .unwrap();
    truth.with_model(|m| plca_em::sample_counts(m, draws, &mut rng(seed + 1)).unwrap())
}

fn exactly(max_iter: usize) -> Stop {
    Stop {
        max_iter,
        tol: 0.0,
        ..Stop::default()
    }
}

/// With one factor fixed there is one optimum, and coordinate descent is nearer to it after as many iterations.
// [AG alg. 1] [SPEC 10.1]
#[test]
fn fewer_iterations_to_the_optimum() {
    let data = SparseTensor::new(counts(&[40, 30], 4, 4000, 3)).unwrap();
    let free = Plca::builder(4).build().unwrap();
    let start = free.init(&data, &PlcaInit::default(), &mut rng(0)).unwrap();
    let plca = Plca::builder(4).freeze_factor(0).build().unwrap();
    let em = plca.on(&data).unwrap();
    let fast = Fast::new(plca.on(&data).unwrap()).unwrap();
    for n in [5, 20] {
        let slow = run(&em, start.clone(), &exactly(n), ()).unwrap();
        let quick = run(&fast, FastState::new(start.clone()), &exactly(n), ()).unwrap();
        assert!(
            quick.objective > slow.objective,
            "{n}: {} {}",
            quick.objective,
            slow.objective
        );
    }
}

/// Runs end where the conditions hold.
// [SPEC 1.1] [SPEC 10.1]
#[test]
fn runs_end_stationary() {
    let data = SparseTensor::new(counts(&[12, 9], 3, 500, 6)).unwrap();
    let plca = Plca::builder(3).build().unwrap();
    let fast = Fast::new(plca.on(&data).unwrap()).unwrap();
    let start = plca.init(&data, &PlcaInit::default(), &mut rng(0)).unwrap();
    let end = run(&fast, FastState::new(start), &exactly(2000), ()).unwrap();
    let residual = fast.residual(&end.state).unwrap().unwrap();
    assert!(residual < 1e-6, "{residual}");
}

fn refused(error: EmError) -> String {
    assert!(matches!(error, EmError::NotSeparable { .. }), "{error}");
    error.to_string()
}

#[test]
fn what_does_not_separate_is_refused() {
    let data = SparseTensor::new(counts(&[6, 5], 2, 100, 1)).unwrap();
    let sparse: Prior<f64> = Arc::new(Entropic::new(1.0).unwrap());
    let clipping: Prior<f64> = Arc::new(Dirichlet::symmetric(0.5).unwrap());
    for (plca, what) in [
        (Plca::builder(2).temper(0.9), "tempering"),
        (Plca::builder(2).freeze_weights(), "weights"),
        (Plca::builder(2).factor_prior(1, sparse.clone()), "factor_1"),
        (Plca::builder(2).weights_prior(clipping.clone()), "weights"),
        (
            Plca::builder(2).freeze_factor(0).freeze_factor(1),
            "weights",
        ),
    ] {
        let plca = plca.build().unwrap();
        let message = refused(Fast::new(plca.on(&data).unwrap()).unwrap_err());
        assert!(
            message.contains(what) && message.contains("`em`"),
            "{message}"
        );
    }
    for (plsa, what) in [
        (Plsa::builder(2).temper(0.9), "tempering"),
        (Plsa::builder(2).freeze_mixture(), "mixture"),
        (Plsa::builder(2).basis_prior(clipping), "basis"),
        (Plsa::builder(2).mixture_prior(sparse), "mixture"),
    ] {
        let plsa = plsa.build().unwrap();
        let message = refused(Fast::new(plsa.on(&data).unwrap()).unwrap_err());
        assert!(
            message.contains(what) && message.contains("`em`"),
            "{message}"
        );
    }
    let nmf = Nmf::builder(2).freeze_w().freeze_h().build().unwrap();
    refused(Fast::<f64, _>::new(nmf.on(&data).unwrap()).unwrap_err());
}

/// Frozen blocks keep every bit.
#[test]
fn frozen_blocks_stay() {
    let data = SparseTensor::new(counts(&[6, 5, 4], 2, 300, 1)).unwrap();
    let free = Plca::builder(2).build().unwrap();
    let start = free.init(&data, &PlcaInit::default(), &mut rng(4)).unwrap();
    let plca = Plca::builder(2)
        .freeze_factor(0)
        .freeze_factor(2)
        .build()
        .unwrap();
    let fast = Fast::new(plca.on(&data).unwrap()).unwrap();
    let end = run(&fast, FastState::new(start.clone()), &exactly(30), ()).unwrap();
    let model = end.state.model();
    assert_eq!(
        (&model.factors[0], &model.factors[2]),
        (&start.factors[0], &start.factors[2])
    );
    assert_ne!(model.factors[1], start.factors[1]);

    let data = SparseTensor::new(counts(&[6, 5], 2, 300, 1)).unwrap();
    let start = Nmf::builder(2)
        .build()
        .unwrap()
        .init(&data, &NmfInit::default(), &mut rng(4))
        .unwrap();
    for frozen in 0..2 {
        let nmf = Nmf::builder(2);
        let nmf = if frozen == 0 {
            nmf.freeze_w()
        } else {
            nmf.freeze_h()
        };
        let nmf = nmf.build().unwrap();
        let (em, fast) = (
            nmf.on(&data).unwrap(),
            Fast::new(nmf.on(&data).unwrap()).unwrap(),
        );
        let end = run(&fast, FastState::new(start.clone()), &exactly(200), ()).unwrap();
        let model = end.state.model();
        assert_eq!(
            if frozen == 0 { &model.w } else { &model.h },
            if frozen == 0 { &start.w } else { &start.h }
        );
        // The problem is convex: there is one optimum.
        let slow = run(&em, start.clone(), &exactly(20_000), ()).unwrap();
        assert!((end.objective - slow.objective).abs() < 1e-9 * slow.objective);
    }
}

/// The same problem as PLCA, PLSA in both directions and NMF has the same path.
// [SPEC 2] [SPEC 3] [SPEC 10.1]
#[test]
fn models_that_are_equal_stay_so() {
    let data = SparseTensor::new(counts(&[12, 9], 3, 500, 6)).unwrap();
    let plca = Plca::builder(3).build().unwrap();
    let start = plca.init(&data, &PlcaInit::default(), &mut rng(2)).unwrap();
    let nmf = Nmf::builder(3).build().unwrap();
    let matched =
        plca_em::before::NmfState::from_plca(&start, &[1.0, 2.0, 0.5], data.total()).unwrap();
    let (a, b) = (
        Fast::new(plca.on(&data).unwrap()).unwrap(),
        Fast::new(nmf.on(&data).unwrap()).unwrap(),
    );
    let a = run(&a, FastState::new(start), &exactly(15), ()).unwrap();
    let b = run(&b, FastState::new(matched), &exactly(15), ()).unwrap();
    let product = b.state.model().to_plca().unwrap();
    for (x, y) in a.state.model().factors.iter().zip(&product.factors) {
        assert!((x - y).amax() < 1e-9, "{x} {y}");
    }
}

/// With priors of shape at least 1, on every block and on each alone, the posterior ends where EM's does.
// [SPEC 7] [SPEC 10.1]
#[test]
fn the_posterior_of_em() {
    let data = SparseTensor::new(counts(&[10, 8], 3, 400, 5)).unwrap();
    let prior = |alpha| -> Prior<f64> { Arc::new(Dirichlet::symmetric(alpha).unwrap()) };
    let apart = |a: &DMatrix<f64>, b: &DMatrix<f64>| (a - b).amax();
    for blocks in [
        [true; 3],
        [true, false, false],
        [false, true, false],
        [false, false, true],
    ] {
        let mut plca = Plca::builder(3);
        if blocks[0] {
            plca = plca.weights_prior(prior(3.0));
        }
        for (mode, alpha) in [1.2, 1.5]
            .into_iter()
            .enumerate()
            .filter(|&(m, _)| blocks[m + 1])
        {
            plca = plca.factor_prior(mode, prior(alpha));
        }
        let plca = plca.build().unwrap();
        let em = plca.on(&data).unwrap();
        let fast = Fast::new(plca.on(&data).unwrap()).unwrap();
        let start = plca.init(&data, &PlcaInit::default(), &mut rng(2)).unwrap();
        let slow = run(&em, start.clone(), &exactly(20_000), ()).unwrap();
        let stays = run(&fast, FastState::new(slow.state.clone()), &exactly(20), ()).unwrap();
        assert!((stays.objective - slow.objective).abs() < 1e-12 * slow.objective.abs());
        for (x, y) in stays.state.model().factors.iter().zip(&slow.state.factors) {
            assert!(apart(x, y) < 1e-8, "{blocks:?}");
        }
    }
    for (given, [basis, mixture]) in [Given::Rows, Given::Columns]
        .into_iter()
        .flat_map(|given| [[true; 2], [true, false], [false, true]].map(|blocks| (given, blocks)))
    {
        let mut plsa = Plsa::builder(3).given(given);
        if basis {
            plsa = plsa.basis_prior(prior(1.3));
        }
        if mixture {
            plsa = plsa.mixture_prior(prior(2.0));
        }
        let plsa = plsa.build().unwrap();
        let em = plsa.on(&data).unwrap();
        let fast = Fast::new(plsa.on(&data).unwrap()).unwrap();
        let start = plsa.init(&data, &PlsaInit::default(), &mut rng(2)).unwrap();
        let slow = run(&em, start.clone(), &exactly(20_000), ()).unwrap();
        let stays = run(&fast, FastState::new(slow.state.clone()), &exactly(20), ()).unwrap();
        assert!((stays.objective - slow.objective).abs() < 1e-12 * slow.objective.abs());
        let (x, y) = (stays.state.model(), &slow.state);
        let off = apart(&x.basis, &y.basis).max(apart(&x.mixture, &y.mixture));
        assert!(off < 1e-8, "{given:?} {basis} {mixture}: {off}");
        let quick = run(&fast, FastState::new(start), &exactly(500), ()).unwrap();
        let again = run(&em, quick.state.into_model(), &exactly(2000), ()).unwrap();
        // EM finds nothing left to gain.
        assert!((again.objective - quick.objective).abs() < 1e-9 * again.objective.abs());
    }
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
    let plca = Plca::builder(2).build().unwrap();
    let mut start = plca.init(&data, &PlcaInit::default(), &mut rng(1)).unwrap();
    start.factors[0][(1, 0)] = 0.0;
    let sum = start.factors[0].column(0).sum();
    start.factors[0].column_mut(0).unscale_mut(sum);
    let fast = Fast::new(plca.on(&data).unwrap()).unwrap();
    let end = run(&fast, FastState::new(start), &exactly(20), ()).unwrap();
    assert_eq!(end.state.model().factors[0][(1, 0)], 0.0);
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
    let plsa = Plsa::builder(3).build().unwrap();
    for data in [&sparse as &dyn Data<f64>, &masked] {
        let start = plsa.init(data, &PlsaInit::default(), &mut rng(3)).unwrap();
        let whole = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let fast = Fast::new(plsa.on(data).unwrap()).unwrap();
            pool.install(|| run(&fast, FastState::new(start.clone()), &exactly(12), ()).unwrap())
        };
        let one = whole(1);
        assert_eq!(one.state, whole(3).state);
        let fast = Fast::new(plsa.on(data).unwrap()).unwrap();
        let half = run(&fast, FastState::new(start.clone()), &exactly(5), ()).unwrap();
        // The last step of a run is none of those that a longer run takes.
        let (before, ..) = half.state.to_parts();
        assert!(fast.em().objective(before).unwrap() < half.objective);
        // A run of no iterations leaves a start and an end as they are.
        let again = run(&fast, half.state.clone(), &exactly(0), ()).unwrap();
        assert_eq!(
            (&again.state, again.objective),
            (&half.state, half.objective)
        );
        let mut ended = half.state.clone();
        fast.finish(&mut ended).unwrap();
        assert_eq!(ended, half.state);
        let none = run(&fast, FastState::new(start.clone()), &exactly(0), ()).unwrap();
        assert_eq!(none.state.model(), &start);
        let saved = serde_json::to_string(&half.state).unwrap();
        let half = serde_json::from_str(&saved).unwrap();
        let end = run(&fast, half, &exactly(7), ()).unwrap();
        assert_eq!(end.state, one.state);
        let (model, blocks, numbers) = one.state.to_parts();
        let other = plsa.on(data).unwrap().marginal();
        assert!(FastState::from_parts(model.clone(), blocks[1..].to_vec(), &numbers).is_none());
        assert!(FastState::from_parts(model.clone(), blocks, &other[..3]).is_none());
    }
}

/// Models of more rows and components than one thread takes at a time: the objective that follows from the row problems is that of
/// the model as written, and the bits are those of one thread.
fn parts_fit_together<T: Real, A: Separable<T>>(
    model: impl Fn() -> A + Sync,
    start: &A::State,
    tol: f64,
) where
    A::State: PartialEq + std::fmt::Debug + Send + Sync,
{
    let run = || {
        let fast = Fast::new(model()).unwrap();
        let mut state = FastState::new(start.clone());
        for _ in 0..4 {
            let is = fast.objective(&state).unwrap();
            let follows = fast.step(&mut state, true).unwrap().unwrap();
            assert!((follows - is).abs() <= tol * is.abs(), "{follows} {is}");
        }
        state
    };
    check_threads(run).unwrap();
}

fn all_models_in_parts<T: Real>(data: &dyn Data<T>, tol: f64) {
    let k = 9;
    for given in [Given::Columns, Given::Rows] {
        for alpha in [None, Some(1.5)] {
            let mut plsa = Plsa::builder(k).given(given);
            if let Some(alpha) = alpha {
                let prior: Prior<T> = Arc::new(Dirichlet::symmetric(alpha).unwrap());
                plsa = plsa.basis_prior(prior.clone()).mixture_prior(prior);
            }
            let plsa = plsa.build().unwrap();
            let start = plsa.init(data, &PlsaInit::default(), &mut rng(2)).unwrap();
            parts_fit_together(|| plsa.on(data).unwrap(), &start, tol);
        }
    }
    let plca = Plca::builder(k).build().unwrap();
    let start = plca.init(data, &PlcaInit::default(), &mut rng(2)).unwrap();
    parts_fit_together(|| plca.on(data).unwrap(), &start, tol);
    let nmf = Nmf::builder(k).build().unwrap();
    let start = nmf.init(data, &NmfInit::default(), &mut rng(2)).unwrap();
    parts_fit_together(|| nmf.on(data).unwrap(), &start, tol);
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
    let truth = Plca::builder(6).build().unwrap();
    for seed in 60..72 {
        let mut drawn = rng(seed);
        let truth = truth.init(&ones, &PlcaInit::default(), &mut drawn).unwrap();
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
        let plca = Plca::builder(4).build().unwrap();
        let start = plca
            .init(&data, &PlcaInit::default(), &mut rng(1000 + seed))
            .unwrap();
        let shares = |state: &PlcaState<f64>| -> Vec<f64> {
            let share = |z| (0..columns).filter(|&j| hidden(j)).map(move |j| (j, z));
            let factor = &state.factors[1];
            (0..4)
                .map(|z| share(z).map(|at| factor[at]).sum())
                .collect()
        };
        let before = shares(&start);
        let fast = Fast::new(plca.on(&data).unwrap()).unwrap();
        let end = run(&fast, FastState::new(start), &exactly(500), ()).unwrap();
        // Objectives, extrapolation, iterations, then the masses of the components in units of the data's.
        let (model, _, numbers) = end.state.to_parts();
        for (z, (share, was)) in shares(model).iter().zip(&before).enumerate() {
            assert!((share - was).abs() < 1e-12, "{seed} {z}: {share} {was}");
            let mass = numbers[5 + z];
            assert!(
                mass * (1.0 - was) <= 1.0 + 1e-12,
                "{seed} {z}: {mass} {was}"
            );
        }
    }
}

/// A model of other sizes is refused at the start and in the middle of a run, where all else fits.
fn refuses<A: Separable<f64>>(fast: &Fast<f64, A>, right: A::State, wrong: A::State) {
    let mut run = FastState::new(right);
    fast.step(&mut run, false).unwrap();
    let (_, blocks, numbers) = run.to_parts();
    let amid = FastState::from_parts(wrong.clone(), blocks, &numbers).unwrap();
    for mut state in [FastState::new(wrong), amid] {
        let refused = fast.step(&mut state, true);
        assert!(matches!(refused, Err(EmError::Shape { .. })), "{refused:?}");
    }
}

/// A state of other data is an error, no panic.
#[test]
fn a_state_of_other_data() {
    let data = SparseTensor::new(counts(&[6, 5], 2, 100, 1)).unwrap();
    let other = SparseTensor::new(counts(&[6, 4], 2, 100, 1)).unwrap();
    let plca = Plca::builder(2).build().unwrap();
    let fast = Fast::new(plca.on(&data).unwrap()).unwrap().pace(Pace {
        passes: 2,
        ..Pace::default()
    });
    let fits = plca.init(&data, &PlcaInit::default(), &mut rng(1)).unwrap();
    let wrong = plca
        .init(&other, &PlcaInit::default(), &mut rng(1))
        .unwrap();
    refuses(&fast, fits.clone(), wrong.clone());
    let mut state = FastState::new(wrong);
    Fast::new(plca.on(&other).unwrap())
        .unwrap()
        .step(&mut state, false)
        .unwrap();
    let (_, blocks, numbers) = state.to_parts();
    let mut mixed = FastState::from_parts(fits.clone(), blocks, &numbers).unwrap();
    let before = mixed.clone();
    for _ in 0..2 {
        assert!(matches!(
            fast.step(&mut mixed, true),
            Err(EmError::Shape { .. })
        ));
        assert_eq!(mixed, before);
    }
    let nmf = Nmf::builder(2).build().unwrap();
    let [right, wrong] =
        [&data, &other].map(|v| nmf.init(v, &NmfInit::default(), &mut rng(1)).unwrap());
    refuses(&Fast::new(nmf.on(&data).unwrap()).unwrap(), right, wrong);
    let plsa = Plsa::builder(2).build().unwrap();
    let [right, wrong] =
        [&data, &other].map(|v| plsa.init(v, &PlsaInit::default(), &mut rng(1)).unwrap());
    refuses(&Fast::new(plsa.on(&data).unwrap()).unwrap(), right, wrong);
    let tempered = PlcaState { power: 0.5, ..fits };
    assert!(matches!(
        fast.step(&mut FastState::new(tempered), true),
        Err(EmError::NotSeparable { .. })
    ));
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
    let start = PlcaState::<f32> {
        weights: [0.34292522, 0.59747434, 0.059600435].to_vec().into(),
        factors: vec![
            DMatrix::from_column_slice(5, 3, &first),
            DMatrix::from_element(1, 3, 1.0),
            DMatrix::from_column_slice(2, 3, &third),
            DMatrix::from_column_slice(2, 3, &fourth),
        ],
        power: 1.0,
        iteration: 0,
    };
    let plca = Plca::builder(3).build().unwrap();
    let fast = Fast::new(plca.on(&data).unwrap()).unwrap();
    let mut at = FastState::new(start);
    let mut last = f64::NEG_INFINITY;
    for iteration in 0..30 {
        let value = fast.step(&mut at, true).expect("finite entries");
        let value = value.expect("a measured step");
        assert!(
            value >= last - 1e-4 * value.abs(),
            "{iteration}: {last} to {value}"
        );
        last = value;
    }
}
