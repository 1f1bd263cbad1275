//! What does not matter: arithmetic, storage, threads, the unit of the data, the names of components.

use nalgebra::DMatrix;
use plca_em::Support;
use plca_fit::laws::check_threads;
use plca_fit::{Model, Parameters};
use plca_tensor::{Data, Real, strategies};
use proptest::prelude::*;

use super::properties::{Problem, problems};
use super::support::{EVALUATIONS, complete, dense, masked};

/// The largest difference of two points.
fn difference<T: Real>(a: &Parameters<T>, b: &Parameters<T>) -> f64 {
    let blocks = a.matrices().iter().zip(b.matrices());
    let each = blocks.map(|(a, b)| (a - b).amax().to_f64());
    each.fold(0.0, f64::max)
}

fn agreement<T: Real>(p: &Problem, hidden: bool, tolerance: f64) -> Result<(), TestCaseError> {
    let storages = if hidden {
        masked::<T>(&p.shape, &p.values, p.hidden())
    } else {
        complete::<T>(&p.shape, &p.values)
    };
    let mut first: Option<(f64, Parameters<T>)> = None;
    for (storage, data) in storages {
        for evaluation in EVALUATIONS {
            let shifted = p.model().evaluation(evaluation);
            let em = shifted.bind(&*data).unwrap();
            let mut state = p.start(&*em);
            for _ in 0..5 {
                em.step(&mut state, false).unwrap();
            }
            let ln_lik = em.objective(&state).unwrap();
            let (want_ln_lik, want) = first.get_or_insert_with(|| (ln_lik, state.clone()));
            let difference = difference(&state, want);
            prop_assert!(
                difference <= tolerance,
                "{storage}, {evaluation:?}: {difference}"
            );
            let off = (ln_lik - *want_ln_lik).abs();
            prop_assert!(off <= tolerance * want_ln_lik.abs().max(1.0));
        }
    }
    Ok(())
}

fn threads<T: Real>(p: &Problem) -> Result<(), TestCaseError> {
    for (storage, data) in p.storages::<T>() {
        for evaluation in EVALUATIONS {
            let shifted = p.model().evaluation(evaluation);
            let end = || {
                let em = shifted.bind(&*data).unwrap();
                let mut state = p.start(&*em);
                for _ in 0..3 {
                    em.step(&mut state, true).unwrap();
                }
                state
            };
            check_threads(end)
                .map_err(|e| TestCaseError::fail(format!("{storage}, {evaluation:?}: {e}")))?;
        }
    }
    Ok(())
}

/// `2^e V` gives the bits of `V`.
fn scale<T: Real>(p: &Problem, exponent: i32) -> Result<(), TestCaseError> {
    let by = 2f64.powi(exponent);
    let mut plain = p.clone();
    // Values that the scalar holds exactly.
    (plain.values.iter_mut()).for_each(|x| *x = T::lit(*x).to_f64());
    let mut scaled = plain.clone();
    scaled.values.iter_mut().for_each(|x| *x *= by);
    for ((storage, a), (_, b)) in plain
        .storages::<T>()
        .into_iter()
        .zip(scaled.storages::<T>())
    {
        for evaluation in EVALUATIONS {
            let shifted = p.model().evaluation(evaluation);
            let end = |data: &dyn Data<T>| {
                let em = shifted.bind(data).unwrap();
                let mut state = p.start(&*em);
                for _ in 0..3 {
                    em.step(&mut state, false).unwrap();
                }
                (em.objective(&state).unwrap(), state)
            };
            let (want, got) = (end(&*a), end(&*b));
            // All but the sum of the data, which the unit is of.
            let same = got.1.matrices() == want.1.matrices();
            prop_assert!(same, "{storage}, {evaluation:?}");
            let off = (got.0 / by - want.0).abs();
            prop_assert!(off <= 1e-12 * (want.0.abs() + a.total()));
        }
    }
    Ok(())
}

/// Two cells far apart leave impulses of rounding noise, next to the least number of single precision.
#[test]
fn the_unit_keeps_the_smallest_impulses() {
    let mut values = vec![0.0; 30];
    (values[3], values[15]) = (0.05, 1.0);
    let p = Problem {
        shape: vec![6, 5],
        values,
        kernel: vec![1, 2],
        supports: vec![Support::Full, Support::Same],
        components: 1,
        seed: 131_407_498_806_534_021,
    };
    scale::<f32>(&p, -37).unwrap();
}

/// Components under other names are the same components.
fn components<T: Real>(p: &Problem, order: &[usize], tolerance: f64) -> Result<(), TestCaseError> {
    let data = dense::<T>(&p.shape, &p.values);
    let rename = |at: &Parameters<T>| {
        let mut renamed = at.clone();
        renamed.change(|j, block: &mut DMatrix<T>| {
            *block = match j {
                0 => block.select_rows(order),
                _ => block.select_columns(order),
            }
        });
        renamed
    };
    for evaluation in EVALUATIONS {
        let shifted = p.model().evaluation(evaluation);
        let em = shifted.bind(&data).unwrap();
        let mut state = p.start(&*em);
        let mut renamed = rename(&state);
        for _ in 0..3 {
            em.step(&mut state, false).unwrap();
            em.step(&mut renamed, false).unwrap();
        }
        let difference = difference(&rename(&state), &renamed);
        prop_assert!(difference <= tolerance, "{evaluation:?}: {difference}");
    }
    Ok(())
}

/// Problems with an order of their components.
fn renamed() -> impl Strategy<Value = (Problem, Vec<usize>)> {
    problems().prop_flat_map(|p| {
        let k = p.components;
        (Just(p), strategies::permutations(k))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// All arithmetics and storages give the same state after a few iterations.
    // [SPEC 5.1] [SPEC 5.6]
    #[test]
    fn arithmetics_and_storages_agree(p in problems(), hidden: bool) {
        agreement::<f64>(&p, hidden, 1e-10)?;
        agreement::<f32>(&p, hidden, 1e-4)?;
    }

    /// One thread and three leave the same bits.
    #[test]
    fn threads_decide_nothing(p in problems()) {
        threads::<f64>(&p)?;
        threads::<f32>(&p)?;
    }

    /// The unit of the data is no part of the model.
    // [SPEC 1.2]
    #[test]
    fn powers_of_two_change_no_bit(p in problems(), exponent in -100..100i32) {
        scale::<f64>(&p, exponent)?;
        scale::<f32>(&p, exponent)?;
    }

    /// Permuted components permute the result.
    #[test]
    fn names_of_components_do_not_matter((p, order) in renamed()) {
        components::<f64>(&p, &order, 1e-10)?;
        components::<f32>(&p, &order, 1e-4)?;
    }
}
