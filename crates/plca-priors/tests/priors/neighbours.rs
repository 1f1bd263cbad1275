//! Laws of the prior of neighbouring columns.

use nalgebra::{DMatrix, DVector};
use plca_priors::{Neighbours, PriorError, PriorRules, SimplexPrior, Step};
use proptest::prelude::*;

/// Columns that are distributions without zeros.
fn columns(values: &[f64], rows: usize) -> DMatrix<f64> {
    let mut m = DMatrix::from_column_slice(rows, values.len() / rows, values);
    m.column_iter_mut().for_each(|mut c| c /= c.sum());
    m
}

/// `Σ n ln θ + ln p`.
fn objective(prior: &Neighbours, counts: &DMatrix<f64>, theta: &DMatrix<f64>) -> f64 {
    let fit = counts.zip_map(theta, |n, t| if n > 0.0 { n * t.ln() } else { 0.0 });
    fit.sum() + prior.ln_density(theta, &Step::at(1))
}

/// Counts, 0 among them, and columns to start from.
fn problem() -> impl Strategy<Value = (DMatrix<f64>, DMatrix<f64>)> {
    (2usize..6, 1usize..8).prop_flat_map(|(rows, times)| {
        let counts = prop::collection::vec(prop_oneof![Just(0.0), 0.01..50.0f64], rows * times);
        let start = prop::collection::vec(0.05..1.0f64, rows * times);
        (counts, start).prop_map(move |(counts, start)| {
            (
                DMatrix::from_vec(rows, times, counts),
                columns(&start, rows),
            )
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// No exact step lowers the posterior, and none of its last columns can be moved for the better. [EXT 7]
    #[test]
    fn exact_steps_are_monotone_and_exact((counts, start) in problem(), weight in -20.0..-0.01f64) {
        let prior = Neighbours::new(weight).unwrap().exact().unwrap();
        let mut theta = start;
        let mut last = objective(&prior, &counts, &theta);
        for step in 1..6 {
            prior.update(&counts, &mut theta, &Step::at(step)).unwrap();
            let now = objective(&prior, &counts, &theta);
            prop_assert!(now >= last - 1e-12 * last.abs().max(1.0), "{now} after {last}");
            last = now;
        }
        // Odd columns come last, given their neighbours; a single one has none.
        let first = usize::from(theta.ncols() > 1);
        for t in (first..theta.ncols()).step_by(2) {
            if counts.column(t).sum() == 0.0 {
                continue;
            }
            for i in 0..theta.nrows() {
                let mut moved = theta.clone();
                moved.column_mut(t).scale_mut(1.0 - 1e-4);
                moved[(i, t)] += 1e-4;
                prop_assert!(objective(&prior, &counts, &moved) <= last + 1e-9);
            }
        }
    }

    /// A step is the definition, even columns first, with what is asked of neighbours in counts or relative to those of a column. [EXT 7]
    #[test]
    fn steps_are_the_definition((counts, start) in problem(), weight in -20.0..20.0f64, relative in any::<bool>()) {
        let mut prior = Neighbours::new(weight).unwrap();
        let times = counts.ncols();
        let mut alpha = weight;
        if relative {
            prior = prior.relative();
            alpha = weight * counts.sum() / times as f64;
        }
        let mut want = start.clone();
        for t in (0..times).step_by(2).chain((1..times).step_by(2)) {
            let near = [t.wrapping_sub(1), t + 1].into_iter().filter(|&k| k < times);
            let pull = near.fold(DVector::zeros(counts.nrows()), |s, k| s + want.column(k) * alpha);
            let new = (counts.column(t) - pull).map(|x| x.max(0.0));
            if new.sum() > 0.0 {
                want.set_column(t, &(&new / new.sum()).column(0));
            }
        }
        let mut got = start;
        prior.update(&counts, &mut got, &Step::at(1)).unwrap();
        prop_assert!((got - want).amax() < 1e-12);
    }

    /// A single column has no neighbours: its counts, divided by their sum, and a density of 1.
    #[test]
    fn one_column_has_no_neighbours(counts in prop::collection::vec(0.1..9.0f64, 4), weight in -5.0..0.0f64) {
        let counts = DMatrix::from_vec(4, 1, counts);
        let plain = Neighbours::new(weight).unwrap();
        for prior in [plain, plain.relative(), plain.exact().unwrap()] {
            let mut theta = DMatrix::from_element(4, 1, 0.25);
            prior.update(&counts, &mut theta, &Step::at(1)).unwrap();
            prop_assert!((&theta - &counts / counts.sum()).amax() < 1e-15);
            prop_assert_eq!(prior.ln_density(&theta, &Step::at(1)), 0.0);
        }
        prop_assert!(PriorRules::has_density(&plain) && !PriorRules::has_density(&plain.relative()));
    }
}

/// One column has no neighbour: the prior would do nothing, without a word.
#[test]
fn a_single_column_is_refused() {
    for prior in [
        Neighbours::new(0.5).unwrap(),
        Neighbours::new(-0.5).unwrap().relative(),
    ] {
        assert_eq!(prior.check((4, 1)), Err(PriorError::Columns { columns: 1 }));
        assert_eq!(prior.check((4, 2)), Ok(()));
    }
}
