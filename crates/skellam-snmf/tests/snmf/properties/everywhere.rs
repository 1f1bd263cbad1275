//! No objective ever falls: in both precisions, on matrices and on lists of cells, for every way to go faster.

use plca_fit::{Init, Model};
use plca_tensor::{Data, Real, SparseTensor};
use proptest::prelude::*;
use skellam_snmf::{Replicates, Snmf, SnmfVb};

use super::objective::{Claims, obeys};
use super::problem::{Problem, problem, replicates};
use crate::support::{from_factors, listed, masked};

fn on<T: Real>(
    data: &dyn Data<T>,
    problem: &Problem,
    m: Replicates,
    low: f64,
) -> Result<(), TestCaseError> {
    let rounding = if size_of::<T>() == 4 { 1e-6 } else { 1e-13 };
    let size = problem.values.abs().sum();
    let narrow = |m: &nalgebra::DMatrix<f64>| m.map(T::lit);
    let factors = problem.factors();
    let start = from_factors(&skellam_snmf::Factors {
        plus: narrow(&factors.plus),
        minus: narrow(&factors.minus),
        activations: narrow(&factors.activations),
    });
    let em = Snmf::new(problem.k).replicates(m);
    let em = em.priors(problem.prior(1.0));
    let claims = |size, iterations| Claims {
        rounding,
        size,
        iterations,
    };
    let start = em.init(data, start, &mut problem.rng()).unwrap();
    obeys(&em, data, &start, [25, 10].map(|n| claims(size, n)))?;
    let vb = SnmfVb::new(problem.k).replicates(m);
    let vb = vb.priors(problem.prior(low));
    let start = vb.init(data, Init::default(), &mut problem.rng()).unwrap();
    let size = size + (problem.values.len() * problem.k) as f64;
    obeys(&vb, data, &start, [25, 10].map(|n| claims(size, n)))
}

fn list<T: Real>(problem: &Problem) -> SparseTensor<T> {
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
