//! No objective ever falls: in both precisions, on matrices and on lists of cells, for every way to go faster.

use plca_tensor::Real;
use proptest::prelude::*;
use skellam_snmf::{Replicates, Signed, Snmf, SnmfState, SnmfVb, VbInit};

use super::objective::{claims, obeys};
use super::problem::{Problem, problem, replicates};
use crate::support::{listed, masked};

fn on<T: Real>(
    data: &Signed<T>,
    problem: &Problem,
    m: Replicates,
    low: f64,
) -> Result<(), TestCaseError> {
    let rounding = if size_of::<T>() == 4 { 1e-6 } else { 1e-13 };
    let size = problem.values.abs().sum();
    let narrow = |m: &nalgebra::DMatrix<f64>| m.map(T::lit);
    let SnmfState {
        plus,
        minus,
        activations,
    } = problem.factors();
    let start = SnmfState {
        plus: narrow(&plus),
        minus: narrow(&minus),
        activations: narrow(&activations),
    };
    let em = Snmf::builder(problem.k)
        .replicates(m)
        .prior(problem.prior(1.0))
        .build()
        .unwrap();
    let each = [25, 10].map(|n| claims(rounding, size, n));
    obeys(&em.on(data).unwrap(), &start, each.each_ref())?;
    let vb = SnmfVb::builder(problem.k)
        .replicates(m)
        .prior(problem.prior(low))
        .build()
        .unwrap();
    let start = VbInit::Random
        .state(&vb.on(data).unwrap(), &mut problem.rng())
        .unwrap();
    let size = size + (problem.values.len() * problem.k) as f64;
    let each = [25, 10].map(|n| claims(rounding, size, n));
    obeys(&vb.on(data).unwrap(), &start, each.each_ref())?;
    Ok(())
}

fn list<T: Real>(problem: &Problem) -> Signed<T> {
    listed(&masked(&problem.values.map(T::lit), &problem.seen))
}

fn low() -> impl Strategy<Value = f64> {
    prop_oneof![Just(1e-3), Just(0.1), Just(1.0)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    // [SKELLAM 5] [SKELLAM 6]
    #[test]
    fn matrices_f32(problem in problem(), m in replicates(), low in low()) {
        let values = problem.values.map(|x| x as f32);
        on(&masked(&values, &problem.seen), &problem, m, low)?;
    }

    // [SKELLAM 5] [SKELLAM 6]
    #[test]
    fn lists_f64(problem in problem(), m in replicates(), low in low()) {
        on::<f64>(&list(&problem), &problem, m, low)?;
    }

    // [SKELLAM 5] [SKELLAM 6]
    #[test]
    fn lists_f32(problem in problem(), m in replicates(), low in low()) {
        on::<f32>(&list(&problem), &problem, m, low)?;
    }
}
