//! What must hold for any data, support, storage, arithmetic and scalar.

use nalgebra::DMatrix;
use plca_em::{
    Algorithm, EmError, Evaluation, Likelihood, ParamError, Plca, PlcaInit, Shifted,
    ShiftedBuilder, ShiftedInit, ShiftedState, Squarem, Stop, Support, run,
};
use plca_priors::{Dirichlet, Entropic};
use plca_tensor::{Observed, Real};
use proptest::prelude::*;
use std::sync::Arc;

use crate::support::{EVALUATIONS, Storages, complete, dense, masked, rng};

/// A small problem of any order.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f64>,
    pub(crate) kernel: Vec<usize>,
    pub(crate) supports: Vec<Support>,
    pub(crate) components: usize,
    pub(crate) seed: u64,
}

pub(crate) fn problems() -> impl Strategy<Value = Problem> {
    let support = prop_oneof![
        Just(Support::Valid),
        Just(Support::Same),
        Just(Support::Full)
    ];
    let dimension = (1..=6usize).prop_flat_map(|n| (Just(n), 1..=n));
    let dimensions = prop::collection::vec((dimension, support), 1..=4);
    dimensions.prop_flat_map(|dimensions| {
        let shape: Vec<usize> = dimensions.iter().map(|d| d.0.0).collect();
        let kernel: Vec<usize> = dimensions.iter().map(|d| d.0.1).collect();
        let supports: Vec<Support> = dimensions.iter().map(|d| d.1).collect();
        let cells: usize = shape.iter().product();
        let value = prop_oneof![2 => Just(0.0), 5 => 0.05..20.0f64];
        (
            prop::collection::vec(value, cells),
            1..=3usize,
            any::<u64>(),
        )
            .prop_map(move |(mut values, components, seed)| {
                values[cells / 2] += 1.0;
                Problem {
                    shape: shape.clone(),
                    values,
                    kernel: kernel.clone(),
                    supports: supports.clone(),
                    components,
                    seed,
                }
            })
    })
}

impl Problem {
    pub(crate) fn builder<T: Real>(&self) -> ShiftedBuilder<T> {
        Shifted::builder(self.components, self.kernel.clone()).supports(self.supports.clone())
    }

    /// A cell in four is hidden, never the one that is surely positive.
    fn hidden(&self) -> impl Fn(usize) -> bool {
        let cells = self.values.len();
        move |i| i != cells / 2 && i % 4 == 1
    }

    fn storages<T: Real>(&self) -> Storages<T> {
        let mut all = complete(&self.shape, &self.values);
        all.extend(masked(&self.shape, &self.values, self.hidden()));
        all
    }

    fn start<T: Real, X: Observed<T> + ?Sized>(
        &self,
        shifted: &Shifted<T>,
        data: &X,
    ) -> ShiftedState<T> {
        let em = shifted.on(data).unwrap();
        em.init(&ShiftedInit::default(), &mut rng(self.seed))
            .unwrap()
    }
}

/// `P(x)` by loops over every component, tap and place.
fn convolution(em_shape: [&[usize]; 4], state: &ShiftedState<f64>) -> Vec<f64> {
    let [data, kernel, impulse, offset] = em_shape;
    let unravel = |mut i: usize, shape: &[usize]| {
        let mut index = vec![0; shape.len()];
        for (at, n) in index.iter_mut().zip(shape).rev() {
            *at = i % n;
            i /= n;
        }
        index
    };
    let mut p = vec![0.0; data.iter().product()];
    for z in 0..state.weights.len() {
        for (i, k) in state.kernels.column(z).iter().enumerate() {
            let t = unravel(i, kernel);
            for (j, h) in state.impulses.column(z).iter().enumerate() {
                let place = unravel(j, impulse);
                let x: Option<Vec<usize>> = (0..data.len())
                    .map(|d| {
                        let x = (place[d] + t[d]).checked_sub(offset[d])?;
                        (x < data[d]).then_some(x)
                    })
                    .collect();
                if let Some(x) = x {
                    let at = x.iter().zip(data).fold(0, |at, (x, n)| at * n + x);
                    p[at] += state.weights[z] * k * h;
                }
            }
        }
    }
    p
}

fn never_falls<T: Real, A: Algorithm<State = ShiftedState<T>, Error = EmError>>(
    method: &A,
    mut state: ShiftedState<T>,
    what: &str,
) -> Result<ShiftedState<T>, TestCaseError> {
    let tolerance = if size_of::<T>() == 4 { 1e-5 } else { 1e-12 };
    let mut last = f64::NEG_INFINITY;
    for iteration in 0..12 {
        let now = method
            .step(&mut state, true)
            .unwrap()
            .expect("nothing anneals");
        prop_assert!(
            now >= last - tolerance * (1.0 + last.abs()),
            "{what}: {last} fell to {now} in iteration {iteration}"
        );
        last = now;
    }
    Ok(state)
}

fn on_the_simplex<T: Real>(state: &ShiftedState<T>, what: &str) -> Result<(), TestCaseError> {
    let tolerance = if size_of::<T>() == 4 { 1e-5 } else { 1e-12 };
    let weights = DMatrix::from_column_slice(state.weights.len(), 1, state.weights.as_slice());
    for block in [&weights, &state.kernels, &state.impulses] {
        let error = plca_tensor::simplex_error(block);
        prop_assert!(error <= tolerance, "{what}: {error} off the simplex");
    }
    Ok(())
}

fn monotone<T: Real>(
    p: &Problem,
    adapt: impl Fn(ShiftedBuilder<T>) -> ShiftedBuilder<T>,
) -> Result<(), TestCaseError> {
    for (storage, data) in p.storages::<T>() {
        for evaluation in EVALUATIONS {
            let shifted = adapt(p.builder()).evaluation(evaluation).build().unwrap();
            let what = format!("{storage}, {evaluation:?}");
            let start = p.start(&shifted, &*data);
            let em = shifted.on(&*data).unwrap();
            on_the_simplex(&never_falls(&em, start.clone(), &what)?, &what)?;
            never_falls(&Squarem(em), start, &what)?;
        }
    }
    Ok(())
}

fn literal<T: Real>(p: &Problem) -> Result<(), TestCaseError> {
    for (storage, data) in complete::<T>(&p.shape, &p.values) {
        for evaluation in EVALUATIONS {
            let builder = p.builder().evaluation(evaluation);
            let shifted = builder.likelihood(Likelihood::Literal).build().unwrap();
            let what = format!("literal, {storage}, {evaluation:?}");
            never_falls(
                &shifted.on(&*data).unwrap(),
                p.start(&shifted, &*data),
                &what,
            )?;
        }
    }
    Ok(())
}

fn posterior<T: Real>(p: &Problem, beta: f64, alpha: f64) -> Result<(), TestCaseError> {
    let entropic = Arc::new(Entropic::new(beta).unwrap());
    let dirichlet = Arc::new(Dirichlet::symmetric(alpha).unwrap());
    monotone::<T>(p, |b| {
        let b = b.weights_prior(dirichlet.clone());
        b.kernels_prior(entropic.clone())
            .impulses_prior(entropic.clone())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// `L(θ_{n+1}) >= L(θ_n)` given the window, from every storage, with hidden cells and without.
    #[test]
    fn the_conditional_likelihood_never_falls_f64(p in problems()) {
        monotone::<f64>(&p, |b| b)?;
    }

    /// As for `f64`.
    #[test]
    fn the_conditional_likelihood_never_falls_f32(p in problems()) {
        monotone::<f32>(&p, |b| b)?;
    }

    /// `Σ V ln P` of complete data.
    #[test]
    fn the_literal_likelihood_never_falls(p in problems()) {
        literal::<f64>(&p)?;
        literal::<f32>(&p)?;
    }

    /// `L + Σ ln p(block)` with a prior on every block.
    #[test]
    fn the_posterior_never_falls(p in problems(), beta in -3.0..3.0f64, alpha in 1.0..2.0f64) {
        posterior::<f64>(&p, beta, alpha)?;
    }

    /// As for `f64`.
    #[test]
    fn the_posterior_never_falls_f32(p in problems(), beta in -3.0..3.0f64, alpha in 1.0..2.0f64) {
        posterior::<f32>(&p, beta, alpha)?;
    }

    /// What is frozen keeps its bits, the rest still rises.
    #[test]
    fn frozen_blocks_stay(p in problems(), weights: bool, kernels: bool, impulses: bool) {
        let data = dense::<f64>(&p.shape, &p.values);
        let start = p.start(&p.builder().build().unwrap(), &data);
        let mut builder = p.builder();
        if weights { builder = builder.freeze_weights(); }
        if kernels { builder = builder.freeze_kernels(); }
        if impulses { builder = builder.freeze_impulses(); }
        let shifted = builder.build().unwrap();
        let end = never_falls(&shifted.on(&data).unwrap(), start.clone(), "frozen")?;
        prop_assert!(!weights || end.weights == start.weights);
        prop_assert!(!kernels || end.kernels == start.kernels);
        prop_assert!(!impulses || end.impulses == start.impulses);
    }

    /// The reconstruction is the convolution as it is written, in the mass of the data.
    #[test]
    fn reconstruction_is_the_convolution(p in problems()) {
        let data = dense::<f64>(&p.shape, &p.values);
        let shifted = p.builder().build().unwrap();
        let em = shifted.on(&data).unwrap();
        let state = p.start(&shifted, &data);
        let g = em.geometry();
        let want = convolution(
            [g.data_shape(), g.kernel_shape(), g.impulse_shape(), g.offset()], &state,
        );
        let mass: f64 = want.iter().sum();
        prop_assert!((em.window_mass(&state) - mass).abs() <= 1e-12);
        let got = em.reconstruct(&state).unwrap();
        let largest = want.iter().fold(0.0, |a: f64, &x| a.max(x)) * data.total() / mass;
        for (got, want) in got.iter().zip(&want) {
            let want = want * data.total() / mass;
            prop_assert!((got - want).abs() <= 1e-12 * largest, "{got} instead of {want}");
        }
    }

    /// All arithmetics and storages give the same state after a few iterations.
    #[test]
    fn arithmetics_and_storages_agree(p in problems(), hidden: bool) {
        let storages = if hidden {
            masked::<f64>(&p.shape, &p.values, p.hidden())
        } else {
            complete::<f64>(&p.shape, &p.values)
        };
        let mut first: Option<(f64, ShiftedState<f64>)> = None;
        for (storage, data) in storages {
            for evaluation in EVALUATIONS {
                let shifted = p.builder().evaluation(evaluation).build().unwrap();
                let em = shifted.on(&*data).unwrap();
                let mut state = p.start(&shifted, &*data);
                for _ in 0..5 {
                    em.step(&mut state, false).unwrap();
                }
                let ln_lik = em.ln_lik(&state);
                let (want_ln_lik, want) = first.get_or_insert_with(|| (ln_lik, state.clone()));
                let difference = (&state.kernels - &want.kernels).amax()
                    .max((&state.impulses - &want.impulses).amax())
                    .max((&state.weights - &want.weights).amax());
                prop_assert!(difference <= 1e-10, "{storage}, {evaluation:?}: {difference}");
                prop_assert!((ln_lik - *want_ln_lik).abs() <= 1e-10 * want_ln_lik.abs().max(1.0));
            }
        }
    }

    /// One thread and three leave the same bits.
    #[test]
    fn threads_decide_nothing(p in problems()) {
        for (storage, data) in p.storages::<f64>() {
            for evaluation in EVALUATIONS {
                let shifted = p.builder().evaluation(evaluation).build().unwrap();
                let end = |threads| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| {
                        let mut state = p.start(&shifted, &*data);
                        let em = shifted.on(&*data).unwrap();
                        for _ in 0..3 {
                            em.step(&mut state, true).unwrap();
                        }
                        state
                    })
                };
                prop_assert_eq!(end(1), end(3), "{}, {:?}", storage, evaluation);
            }
        }
    }

    /// Kernels that cannot move make PLCA of the same factors.
    #[test]
    fn without_shifts_it_is_plca(
        shape in prop::collection::vec(2..=5usize, 2..=2), seed: u64, components in 1..=3usize,
    ) {
        let values: Vec<f64> = (0..shape[0] * shape[1]).map(|i| ((i * 31) % 7) as f64 + 0.5).collect();
        let data = dense::<f64>(&shape, &values);
        let plca = Plca::<f64>::builder(components).build().unwrap();
        let mut want = plca.init(&data, &PlcaInit::default(), &mut rng(seed)).unwrap();
        let init = ShiftedInit {
            weights: None,
            kernels: Some(want.factors[0].clone()),
            impulses: Some(want.factors[1].clone()),
        };
        run(&plca.on(&data).unwrap(), want.clone(), &exactly(7), ())
            .map(|outcome| want = outcome.state).unwrap();
        for evaluation in EVALUATIONS {
            let builder = Shifted::builder(components, vec![shape[0], 1]).evaluation(evaluation);
            let shifted = builder.build().unwrap();
            let em = shifted.on(&data).unwrap();
            let start = em.init(&init, &mut rng(0)).unwrap();
            let got = run(&em, start, &exactly(7), ()).unwrap().state;
            prop_assert!((&got.weights - &want.weights).amax() <= 1e-12);
            prop_assert!((&got.kernels - &want.factors[0]).amax() <= 1e-12);
            prop_assert!((&got.impulses - &want.factors[1]).amax() <= 1e-12);
        }
    }
}

fn exactly(iterations: usize) -> Stop {
    Stop {
        max_iter: iterations,
        tol: 0.0,
        ..Stop::default()
    }
}

/// Data and start moved by one cell within empty borders: the same kernels, impulses moved by one place.
#[test]
fn a_shift_of_the_data_shifts_the_impulse() {
    let (shape, kernel, places) = ([9, 12], [3, 4], [7, 9]);
    let moved = |values: &[f64], columns: usize| {
        let mut moved = vec![0.0; values.len()];
        moved[columns + 1..].copy_from_slice(&values[..values.len() - columns - 1]);
        moved
    };
    let value = |at: usize| {
        let (i, j) = (at / shape[1], at % shape[1]);
        let inside = (3..6).contains(&i) && (4..8).contains(&j);
        if inside {
            1.0 + ((i * 5 + j * 3) % 7) as f64
        } else {
            0.0
        }
    };
    let here: Vec<f64> = (0..shape[0] * shape[1]).map(value).collect();
    let start = |at: usize| {
        let (i, j) = (at / places[1], at % places[1]);
        let reaches = (1..=5).contains(&i) && (1..=7).contains(&j);
        if reaches {
            1.0 + ((i * 3 + j * 5) % 4) as f64
        } else {
            0.0
        }
    };
    let impulse: Vec<f64> = (0..places[0] * places[1]).map(start).collect();
    for evaluation in EVALUATIONS {
        let builder = Shifted::<f64>::builder(1, kernel.to_vec()).evaluation(evaluation);
        let shifted = builder.build().unwrap();
        let fit = |values: &[f64], impulse: &[f64]| {
            let data = dense::<f64>(&shape, values);
            let em = shifted.on(&data).unwrap();
            let init = ShiftedInit {
                weights: None,
                kernels: Some(DMatrix::from_fn(12, 1, |i, _| 1.0 + (i % 5) as f64)),
                impulses: Some(DMatrix::from_column_slice(impulse.len(), 1, impulse)),
            };
            let start = em.init(&init, &mut rng(0)).unwrap();
            run(&em, start, &exactly(30), ()).unwrap().state
        };
        let a = fit(&here, &impulse);
        let b = fit(&moved(&here, shape[1]), &moved(&impulse, places[1]));
        assert!((&a.kernels - &b.kernels).amax() <= 1e-10, "{evaluation:?}");
        let expected = moved(a.impulses.as_slice(), places[1]);
        for (got, want) in b.impulses.iter().zip(expected) {
            assert!(
                (got - want).abs() <= 1e-10,
                "{evaluation:?}: {got} instead of {want}"
            );
        }
    }
}

/// An event on the last sample of a record cut short: given the window its mass is found, the literal likelihood explains
/// it away (its optimum is known: 17.5 of 82.5 instead of 35 of 100).
#[test]
fn events_at_the_border_need_the_conditional_likelihood() {
    let (kernel, events) = ([0.5, 0.3, 0.2], [(2, 40.0), (9, 25.0), (19, 35.0)]);
    let mut values = vec![0.0; 20];
    for (at, height) in events {
        for (t, k) in kernel.iter().enumerate().filter(|(t, _)| at + t < 20) {
            values[at + t] += height * k;
        }
    }
    let data = dense::<f64>(&[20], &values);
    let fit = |likelihood| {
        let builder = Shifted::<f64>::builder(1, vec![3]).support(Support::Same);
        let shifted = builder
            .likelihood(likelihood)
            .freeze_kernels()
            .build()
            .unwrap();
        let em = shifted.on(&data).unwrap();
        let init = ShiftedInit {
            kernels: Some(DMatrix::from_column_slice(3, 1, &kernel)),
            ..ShiftedInit::default()
        };
        let start = em.init(&init, &mut rng(1)).unwrap();
        let state = run(&em, start, &exactly(3000), ()).unwrap().state;
        (state.impulses[19], em.window_mass(&state))
    };
    let (found, mass) = fit(Likelihood::Conditional);
    assert!((found - 0.35).abs() < 1e-3, "{found}");
    assert!((mass - 0.825).abs() < 1e-3, "{mass}");
    let (lost, _) = fit(Likelihood::Literal);
    assert!((lost - 17.5 / 82.5).abs() < 1e-3, "{lost}");
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let values = vec![1.0; 12];
    let data = dense::<f64>(&[3, 4], &values);
    let on = |kernel: Vec<usize>| {
        let shifted = Shifted::<f64>::builder(1, kernel).build().unwrap();
        shifted.on(&data).map(drop).unwrap_err()
    };
    assert_eq!(
        on(vec![3, 5]),
        EmError::Kernel {
            dimension: 1,
            extent: 5,
            size: 4
        }
    );
    assert_eq!(
        on(vec![3]),
        EmError::Order {
            expected: 1,
            got: 2
        }
    );
    let built = |b: ShiftedBuilder<f64>| b.build().map(drop).unwrap_err();
    let builder = || Shifted::<f64>::builder(1, vec![2, 2]);
    assert_eq!(
        built(Shifted::builder(1, vec![2, 0])),
        ParamError::Extent { dimension: 1 }
    );
    assert_eq!(
        built(Shifted::builder(0, vec![2, 2])),
        ParamError::NoComponents
    );
    assert_eq!(
        built(builder().supports(vec![Support::Full; 3])),
        ParamError::Supports {
            expected: 2,
            got: 3
        }
    );
    let anneal = |alpha0, over| plca_em::Anneal { alpha0, over };
    for (alpha0, over) in [(0.0, 5.0), (-0.5, 5.0), (1.5, 5.0), (f64::NAN, 5.0)] {
        assert!(matches!(
            built(builder().anneal(anneal(alpha0, over))),
            ParamError::AnnealPower { .. }
        ));
    }
    for over in [0.0, -1.0, f64::NAN] {
        assert!(matches!(
            built(builder().anneal(anneal(0.5, over))),
            ParamError::AnnealDuration(_)
        ));
    }
    for alpha0 in [0.9, f64::INFINITY, f64::NAN] {
        let refused = built(builder().impulse_power(anneal(alpha0, 5.0)));
        assert!(matches!(refused, ParamError::AnnealPower { .. }));
    }
    let (_, hidden) = masked::<f64>(&[3, 4], &values, |i| i == 3).swap_remove(0);
    let literal = builder()
        .support(Support::Same)
        .likelihood(Likelihood::Literal);
    assert_eq!(
        literal.build().unwrap().on(&*hidden).map(drop).unwrap_err(),
        EmError::LiteralWithHidden
    );
    // A kernel whose corner is 0 cannot explain the data's corner.
    let shifted = builder().evaluation(Evaluation::Fft).build().unwrap();
    let init = ShiftedInit {
        kernels: Some(DMatrix::from_column_slice(4, 1, &[0.0, 1.0, 1.0, 1.0])),
        ..ShiftedInit::default()
    };
    let refused = shifted
        .on(&data)
        .unwrap()
        .init(&init, &mut rng(0))
        .unwrap_err();
    assert_eq!(
        refused,
        EmError::Support {
            index: vec![0, 0],
            value: 1.0
        }
    );
}
