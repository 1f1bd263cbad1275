//! A run that was interrupted, saved and resumed is the run that was not.

use std::cell::RefCell;
use std::ops::ControlFlow;

use plca_em::{Nmf, Plca, Plsa};
use plca_fit::{Checkpoint, Init, Iteration, Model, Solver, State, Stop};
use plca_tensor::strategies::{Table, tables};
use plca_tensor::{Data, Order, Real};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde::{Serialize, de::DeserializeOwned};

/// From the JSON of what a checkpoint keeps after `cut` iterations, under every solver.
fn resumes<T: Real + Serialize + DeserializeOwned, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    stop: &Stop,
    cut: usize,
) -> Result<(), TestCaseError> {
    for &solver in Solver::ALL {
        let run = || model.on(data).unwrap().solver(solver).stop(stop.clone());
        let saved = RefCell::new(None);
        let keep = |it: &Iteration<'_, T>| {
            if it.done() == cut {
                let json = serde_json::to_string(&it.checkpoint()).unwrap();
                *saved.borrow_mut() = Some(json);
            }
            ControlFlow::Continue(())
        };
        let whole = run().observe(keep);
        let whole = whole.run(Init::default(), &mut ChaCha8Rng::seed_from_u64(5));
        let whole = whole.unwrap();
        let Some(saved) = saved.into_inner() else {
            // It ended earlier and has nothing to resume.
            prop_assert!(whole.iterations() < cut);
            continue;
        };
        let from: Checkpoint<T> = serde_json::from_str(&saved).unwrap();
        let rest = run().resume(from).unwrap();
        prop_assert_eq!(rest.state().parameters(), whole.state().parameters());
        prop_assert_eq!(rest.checkpoint(), whole.checkpoint());
        prop_assert_eq!(rest.status(), whole.status());
        prop_assert_eq!(rest.objective().to_bits(), whole.objective().to_bits());
        let later = whole.trace().iter().filter(|t| t.iteration >= cut);
        prop_assert!(rest.trace().iter().eq(later), "{}", solver);
    }
    Ok(())
}

fn every_model<T: Real + Serialize + DeserializeOwned>(
    table: &Table<T>,
    stop: &Stop,
    cut: usize,
) -> Result<(), TestCaseError> {
    let data = table.masked(Order::RowMajor).unwrap();
    resumes(&Plca::new(2), &data, stop, cut)?;
    resumes(&Plsa::new(2), &data, stop, cut)?;
    resumes(&Nmf::new(2), &data, stop, cut)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Same bits, same trace, same end, wherever the cut and whatever ends the run.
    #[test]
    fn resumed_is_uninterrupted_f64(
        table in tables::<f64>(2..=2, 2..=5), check_every in 1..5usize, cut in 1..20usize,
        tol in prop_oneof![Just(None), Just(Some(1e-3))],
    ) {
        every_model(&table, &Stop::default().max_iter(20).tol(tol).check_every(check_every), cut)?;
    }

    /// As for `f64`.
    #[test]
    fn resumed_is_uninterrupted_f32(table in tables::<f32>(2..=2, 2..=5), cut in 1..20usize) {
        every_model(&table, &Stop::default().max_iter(20).tol(None).check_every(3), cut)?;
    }
}

/// Most of a column is hidden, and extrapolation takes what is seen of it below the smallest probability of single precision.
#[test]
fn a_run_stays_where_its_objective_is_a_number() {
    let seen = "0101100001011110011101111";
    let at = [
        (11, 0.004_781_437_6),
        (12, 0.032_890_107),
        (14, 9.910_254),
        (18, 3.0),
        (19, 7.0),
        (21, 5.367_900_3e-5),
        (24, 9.159_839),
    ];
    let mut values = vec![0.0f32; 25];
    at.iter().for_each(|&(cell, value)| values[cell] = value);
    let observed: Vec<bool> = seen.chars().map(|c| c == '1').collect();
    let shape = vec![5, 5];
    let table = Table {
        shape,
        values,
        observed,
    };
    let stop = Stop::default().max_iter(20).tol(None).check_every(3);
    every_model(&table, &stop, 18).unwrap();
}
