//! What must hold for any data, support, storage, arithmetic and scalar.

use plca_em::{Geometry, Likelihood, Shifted, ShiftedState, Support};
use plca_fit::laws::{Rounding, never_worse};
use plca_fit::{
    Algorithm, Init, Model, Parameters, Reconstruct, Sense, Solver, State, solver::Memory,
};
use plca_priors::{Dirichlet, Entropic};
use plca_tensor::Real;
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
    pub(crate) fn model(&self) -> Shifted {
        Shifted::new(self.components, self.kernel.clone()).supports(self.supports.clone())
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

    /// The start that this seed draws.
    pub(crate) fn start<T: Real>(&self, algorithm: &dyn Algorithm<T>) -> Parameters<T> {
        let init = Init::default();
        init.parameters(algorithm, &mut rng(self.seed)).unwrap()
    }
}

/// `P(x)` by loops over every component, tap and place.
pub(crate) fn convolution<T: Real>(g: &Geometry, at: &Parameters<T>) -> Vec<f64> {
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
    for z in 0..at.at(0).len() {
        for (i, k) in at.at(1).column(z).iter().enumerate() {
            let t = unravel(i, kernel);
            for (j, h) in at.at(2).column(z).iter().enumerate() {
                let place = unravel(j, impulse);
                let x: Option<Vec<usize>> = (0..data.len())
                    .map(|d| {
                        let x = (place[d] + t[d]).checked_sub(offset[d])?;
                        (x < data[d]).then_some(x)
                    })
                    .collect();
                if let Some(x) = x {
                    let cell = x.iter().zip(data).fold(0, |cell, (x, n)| cell * n + x);
                    p[cell] += at.at(0)[z].to_f64() * k.to_f64() * h.to_f64();
                }
            }
        }
    }
    p
}

/// Steps of a solver succeed, measure what they were given and never lose, whether they are measured or not. Returns where 12 of them end.
///
/// Beside `1 + |L|` stands the data's mass: `P` sums to 1 to a rounding error only, which moves the likelihood by that many
/// times `v`.
pub(crate) fn obeys<T: Real>(
    algorithm: &dyn Algorithm<T>,
    solver: Solver,
    start: &Parameters<T>,
    what: &str,
) -> Result<Parameters<T>, TestCaseError> {
    let tolerance = if size_of::<T>() == 4 { 1e-6 } else { 1e-12 };
    prop_assert_eq!(algorithm.sense(), Sense::Maximise);
    let rounding = Rounding {
        relative: tolerance,
        absolute: tolerance * (1.0 + algorithm.unit()),
    };
    let steps = || solver.on(algorithm, Memory::default()).unwrap();
    let (mut measured, mut silent) = (steps(), steps());
    let (mut at, mut unmeasured) = (start.clone(), start.clone());
    let mut values = Vec::new();
    for _ in 0..12 {
        let before = algorithm.objective(&at).unwrap();
        let value = measured.step(&mut at, true).unwrap().value;
        let value = value.expect("nothing anneals");
        let allowed = rounding.absolute + rounding.relative * before.abs();
        prop_assert!(
            (value - before).abs() <= allowed,
            "{what}: {value} {before}"
        );
        values.push((value, rounding));
        prop_assert!(silent.step(&mut unmeasured, false).unwrap().value.is_none());
        prop_assert_eq!(&at, &unmeasured, "{}", what);
        let residual = algorithm.residual(&at);
        prop_assert!(
            residual.is_err() || residual.is_ok_and(|r| r >= 0.0),
            "{what}"
        );
    }
    let failed = |e| TestCaseError::fail(format!("{what}: {e}"));
    never_worse(Sense::Maximise, &values).map_err(failed)?;
    Ok(at)
}

fn on_the_simplex<T: Real>(at: &Parameters<T>, what: &str) -> Result<(), TestCaseError> {
    let tolerance = if size_of::<T>() == 4 { 1e-5 } else { 1e-12 };
    for (name, block) in at.blocks() {
        let error = plca_tensor::simplex_error(block);
        prop_assert!(error <= tolerance, "{what}: {name} {error} off the simplex");
    }
    Ok(())
}

fn monotone<T: Real>(p: &Problem, adapt: impl Fn(Shifted) -> Shifted) -> Result<(), TestCaseError> {
    for (storage, data) in p.storages::<T>() {
        for evaluation in EVALUATIONS {
            let shifted = adapt(p.model()).evaluation(evaluation);
            let what = format!("{storage}, {evaluation:?}");
            let em = shifted.bind(&*data).unwrap();
            let start = p.start(&*em);
            on_the_simplex(&obeys(&*em, Solver::Em, &start, &what)?, &what)?;
            obeys(&*em, Solver::Squarem, &start, &what)?;
        }
    }
    Ok(())
}

fn literal<T: Real>(p: &Problem) -> Result<(), TestCaseError> {
    for (storage, data) in complete::<T>(&p.shape, &p.values) {
        for evaluation in EVALUATIONS {
            let shifted = p
                .model()
                .evaluation(evaluation)
                .likelihood(Likelihood::Literal);
            let what = format!("literal, {storage}, {evaluation:?}");
            let em = shifted.bind(&*data).unwrap();
            obeys(&*em, Solver::Em, &p.start(&*em), &what)?;
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
            let shifted = p.model().likelihood(likelihood);
            let em = shifted.bind(&*data).unwrap();
            let mut at = p.start(&*em);
            if let Some(scale) = em.scale(&at).unwrap() {
                at = at.with_fact("scale", scale);
            }
            let state = ShiftedState::wrap(at.clone()).unwrap();
            let mut want = convolution(state.geometry(), &at);
            let mass: f64 = want.iter().sum();
            prop_assert!((state.window_mass() - mass).abs() <= tolerance);
            let hidden = p.hidden();
            let observed = |i: &usize| data.is_complete() || !hidden(*i);
            let seen: f64 = (0..want.len()).filter(observed).map(|i| want[i]).sum();
            let scale = data.total() / if literal { 1.0 } else { seen };
            want.iter_mut().for_each(|x| *x *= scale);
            let largest = want.iter().fold(0.0, |a: f64, &x| a.max(x));
            let got = state.reconstruct().unwrap().into_parts().1;
            for (got, want) in got.iter().zip(&want) {
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
        let b = b.prior("weights", dirichlet.clone());
        b.prior("kernels", entropic.clone())
            .prior("impulses", entropic.clone())
    })
}

fn frozen_stays<T: Real>(p: &Problem, frozen: [bool; 3]) -> Result<(), TestCaseError> {
    let names = ["weights", "kernels", "impulses"];
    for (storage, data) in p.storages::<T>() {
        let free = p.model();
        let start = p.start(&*free.bind(&*data).unwrap());
        let of = |on: bool| names.into_iter().zip(frozen).filter(move |f| f.1 == on);
        let shifted = of(true).fold(p.model(), |b, (name, _)| b.freeze(name));
        let em = shifted.bind(&*data).unwrap();
        let end = obeys(&*em, Solver::Em, &start, storage)?;
        for (name, _) in of(true) {
            prop_assert_eq!(end.block(name), start.block(name));
        }
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
    #![proptest_config(ProptestConfig::with_cases(16))]

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
