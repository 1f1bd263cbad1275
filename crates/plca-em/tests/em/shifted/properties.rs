//! What must hold for any data, support, storage, arithmetic and scalar.

use nalgebra::DMatrix;
use plca_em::{
    Algorithm, EmError, Geometry, Likelihood, Shifted, ShiftedBuilder, ShiftedInit, ShiftedState,
    Squarem, Support,
};
use plca_fit::Direction;
use plca_fit::laws::{Claims, Rounding, check, never_worse};
use plca_priors::{Dirichlet, Entropic};
use plca_tensor::{Data, Real};
use proptest::prelude::*;
use std::sync::Arc;

use super::support::{EVALUATIONS, Storages, complete, masked, rng};

/// The largest side of data of so many dimensions: no problem has more than 300 cells.
const SIDES: [usize; 4] = [40, 17, 6, 4];

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
    let dimensions = (1..=4usize).prop_flat_map(move |order| {
        let dimension = (1..=SIDES[order - 1]).prop_flat_map(|n| (Just(n), 1..=n));
        prop::collection::vec((dimension, support.clone()), order)
    });
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
    pub(crate) fn hidden(&self) -> impl Fn(usize) -> bool {
        let cells = self.values.len();
        move |i| i != cells / 2 && i % 4 == 1
    }

    pub(crate) fn storages<T: Real>(&self) -> Storages<T> {
        let mut all = complete(&self.shape, &self.values);
        all.extend(masked(&self.shape, &self.values, self.hidden()));
        all
    }

    pub(crate) fn start<T: Real>(
        &self,
        shifted: &Shifted<T>,
        data: &dyn Data<T>,
    ) -> ShiftedState<T> {
        let em = shifted.on(data).unwrap();
        em.init(&ShiftedInit::default(), &mut rng(self.seed))
            .unwrap()
    }
}

/// `P(x)` by loops over every component, tap and place.
fn convolution<T: Real>(g: &Geometry, state: &ShiftedState<T>) -> Vec<f64> {
    let [data, kernel] = [g.data_shape(), g.kernel_shape()];
    let [impulse, offset] = [g.impulse_shape(), g.offset()];
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
                    p[at] += state.weights[z].to_f64() * k.to_f64() * h.to_f64();
                }
            }
        }
    }
    p
}

/// Steps succeed, measure what they were given and never lose, and the residual is none or a number. Returns where 12 of them end.
///
/// Beside `1 + |L|` stands the data's mass: `P` sums to 1 to a rounding error only, which moves the likelihood by that many
/// times `v`.
pub(crate) fn obeys<T: Real, A: Algorithm<State = ShiftedState<T>, Error = EmError>>(
    method: &A,
    mut state: ShiftedState<T>,
    mass: f64,
    what: &str,
) -> Result<ShiftedState<T>, TestCaseError> {
    let tolerance = if size_of::<T>() == 4 { 1e-6 } else { 1e-12 };
    let rounding = Rounding {
        relative: tolerance,
        absolute: tolerance * (1.0 + mass),
    };
    let failed = |e| TestCaseError::fail(format!("{what}: {e}"));
    let claims = Claims {
        iterations: 2,
        ..Claims::new(rounding)
    };
    check(method, &state, &claims).map_err(failed)?;
    let mut values = Vec::new();
    for _ in 0..12 {
        let measured = method.step(&mut state, true).unwrap();
        values.push((measured.expect("nothing anneals"), rounding));
    }
    never_worse(Direction::Maximise, &values).map_err(failed)?;
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
            on_the_simplex(&obeys(&em, start.clone(), data.total(), &what)?, &what)?;
            obeys(&Squarem(em), start, data.total(), &what)?;
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
            obeys(
                &shifted.on(&*data).unwrap(),
                p.start(&shifted, &*data),
                data.total(),
                &what,
            )?;
        }
    }
    Ok(())
}

/// `v P`, or `v P / Σ_obs P` where not all of the model is seen and the likelihood is conditional.
fn reconstructed<T: Real>(p: &Problem) -> Result<(), TestCaseError> {
    let tolerance = if size_of::<T>() == 4 { 1e-5 } else { 1e-12 };
    for likelihood in [Likelihood::Conditional, Likelihood::Literal] {
        for (storage, data) in p.storages::<T>() {
            let literal = likelihood == Likelihood::Literal;
            if literal && !data.is_complete() {
                continue;
            }
            let shifted = p.builder().likelihood(likelihood).build().unwrap();
            let em = shifted.on(&*data).unwrap();
            let state = p.start(&shifted, &*data);
            let mut want = convolution(em.geometry(), &state);
            let mass: f64 = want.iter().sum();
            prop_assert!((em.window_mass(&state) - mass).abs() <= tolerance);
            let hidden = p.hidden();
            let observed = |i: &usize| data.is_complete() || !hidden(*i);
            let seen: f64 = (0..want.len()).filter(observed).map(|i| want[i]).sum();
            let scale = data.total() / if literal { 1.0 } else { seen };
            want.iter_mut().for_each(|x| *x *= scale);
            let largest = want.iter().fold(0.0, |a: f64, &x| a.max(x));
            for (got, want) in em.reconstruct(&state).unwrap().iter().zip(&want) {
                let off = (got.to_f64() - want).abs();
                prop_assert!(
                    off <= tolerance * largest,
                    "{storage}: {got} instead of {want}"
                );
            }
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

fn frozen_stays<T: Real>(p: &Problem, frozen: [bool; 3]) -> Result<(), TestCaseError> {
    let [weights, kernels, impulses] = frozen;
    for (storage, data) in p.storages::<T>() {
        let start = p.start(&p.builder().build().unwrap(), &*data);
        let mut builder = p.builder();
        if weights {
            builder = builder.freeze_weights();
        }
        if kernels {
            builder = builder.freeze_kernels();
        }
        if impulses {
            builder = builder.freeze_impulses();
        }
        let shifted = builder.build().unwrap();
        let em = shifted.on(&*data).unwrap();
        let end = obeys(&em, start.clone(), data.total(), storage)?;
        prop_assert!(!weights || end.weights == start.weights);
        prop_assert!(!kernels || end.kernels == start.kernels);
        prop_assert!(!impulses || end.impulses == start.impulses);
    }
    Ok(())
}

/// A model of which nearly everything comes to lie in hidden cells: what is left to see must not be the difference of single numbers,
/// which let the posterior fall by 1e-3.
#[test]
fn the_posterior_where_nearly_all_is_hidden_f32() {
    let p = Problem {
        shape: vec![6],
        values: vec![0.0, 0.0, 0.0, 1.0, 15.970451946852856, 0.0],
        kernel: vec![1],
        supports: vec![Support::Same],
        components: 2,
        seed: 6270401646324951123,
    };
    for beta in [0.5621134009322629, 0.5621121009322629] {
        posterior::<f32>(&p, beta, 1.9789152937530279).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// `L(θ_{n+1}) >= L(θ_n)` given the window, from every storage, with hidden cells and without.
    // [SPEC 5.2]
    #[test]
    fn the_conditional_likelihood_never_falls_f64(p in problems()) {
        monotone::<f64>(&p, |b| b)?;
    }

    /// As for `f64`.
    // [SPEC 5.2]
    #[test]
    fn the_conditional_likelihood_never_falls_f32(p in problems()) {
        monotone::<f32>(&p, |b| b)?;
    }

    /// `Σ V ln P` of complete data.
    // [SPEC 5.2]
    #[test]
    fn the_literal_likelihood_never_falls(p in problems()) {
        literal::<f64>(&p)?;
        literal::<f32>(&p)?;
    }

    /// `L + Σ ln p(block)` with a prior on every block.
    // [SPEC 5.5]
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
    fn frozen_blocks_stay(p in problems(), frozen: [bool; 3]) {
        frozen_stays::<f64>(&p, frozen)?;
        frozen_stays::<f32>(&p, frozen)?;
    }

    /// The reconstruction is the convolution as it is written, in the mass of the data.
    // [SPEC 5.1] [SI eq. 6] [SI eq. 11]
    #[test]
    fn reconstruction_is_the_convolution(p in problems()) {
        reconstructed::<f64>(&p)?;
        reconstructed::<f32>(&p)?;
    }
}
