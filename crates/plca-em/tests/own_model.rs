//! The example of `docs/TESTING.md`: a model and a prior of your own under the public test kit.
#![allow(missing_docs, reason = "a test")]

use nalgebra::{DMatrix, DVector};
use plca_dist::random;
use plca_fit::laws::{
    Claims, Law, Rounding, check, check_accelerated, check_failure, check_moved, check_rate,
    check_resumed,
};
use plca_fit::{Accelerate, Algorithm, Failure, Stop, StopError, run};
use plca_priors::laws::{cases, check as check_prior, check_promises};
use plca_priors::{Flat, PriorError, PriorRules, SimplexPrior, Step, check_counts};
use plca_tensor::strategies::{permutations, stochastic};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// The prior: `ln p(θ) = a ln θ_0`, that is, `a` more counts in the first row.
#[derive(Clone, Debug)]
struct FirstRow(f64);

impl PriorRules for FirstRow {}

impl SimplexPrior<f64> for FirstRow {
    fn update(
        &self,
        counts: &DMatrix<f64>,
        theta: &mut DMatrix<f64>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        check_counts(counts, theta)?;
        let mut counts = counts.clone();
        counts.row_mut(0).add_scalar_mut(self.0);
        Flat.update(&counts, theta, step)
    }

    fn ln_density(&self, theta: &DMatrix<f64>, _: &Step<'_>) -> f64 {
        theta.row(0).iter().map(|x| self.0 * x.ln()).sum()
    }
}

/// Why the model has no step.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum MixError {
    #[error(transparent)]
    Stop(#[from] StopError),
    #[error(transparent)]
    Prior(#[from] PriorError),
}

impl Failure for MixError {}

/// The model: counts `v` are drawn from `W θ`, a mixture of known columns `W` with unknown shares `θ`.
struct Mixture<'a> {
    columns: &'a DMatrix<f64>,
    counts: &'a DVector<f64>,
    prior: &'a dyn SimplexPrior<f64>,
}

impl Algorithm for Mixture<'_> {
    type State = DMatrix<f64>;
    type Error = MixError;

    fn step(&self, theta: &mut DMatrix<f64>, measure: bool) -> Result<Option<f64>, MixError> {
        let before = measure.then(|| self.objective(theta)).transpose()?;
        let ratio = DMatrix::from_column_slice(self.counts.len(), 1, self.counts.as_slice())
            .component_div(&(self.columns * &*theta));
        let counts = theta.component_mul(&(self.columns.transpose() * ratio));
        // A prior that fails leaves the state alone: it is given a copy.
        let mut new = theta.clone();
        self.prior.update(&counts, &mut new, &Step::at(1))?;
        *theta = new;
        Ok(before)
    }

    fn objective(&self, theta: &DMatrix<f64>) -> Result<f64, MixError> {
        let model = self.columns * theta;
        let terms = self.counts.iter().zip(&model).map(|(v, p)| v * p.ln());
        Ok(terms.sum::<f64>() + self.prior.ln_density(theta, &Step::at(1)))
    }
}

impl Accelerate for Mixture<'_> {
    fn pack(&self, theta: &DMatrix<f64>) -> Vec<f64> {
        theta.as_slice().to_vec()
    }

    fn unpack(&self, _: &DMatrix<f64>, flat: &[f64], fallback: &[f64]) -> DMatrix<f64> {
        let inside = flat.iter().zip(fallback);
        let inside = inside.map(|(&x, &last)| if x > 0.0 { x } else { 0.1 * last });
        let mut theta = DMatrix::from_iterator(flat.len(), 1, inside);
        theta /= theta.sum();
        theta
    }
}

/// A prior that writes and then fails: a step with it must change nothing.
#[derive(Debug)]
struct Fails;

impl PriorRules for Fails {}

impl SimplexPrior<f64> for Fails {
    fn update(
        &self,
        _: &DMatrix<f64>,
        theta: &mut DMatrix<f64>,
        _: &Step<'_>,
    ) -> Result<(), PriorError> {
        theta.fill(0.0);
        Err(PriorError::Overflow { column: 0 })
    }

    fn ln_density(&self, _: &DMatrix<f64>, _: &Step<'_>) -> f64 {
        0.0
    }
}

/// Behind one term of the objective: 3 products are added up, each of 2 factors, and 3 shares are normalised. The terms are as large
/// as the mass of the data and the 2 counts of the prior.
fn claims(counts: &DVector<f64>) -> Claims {
    Claims::new(Rounding::derived(
        f64::EPSILON,
        3 + 2 + 3,
        counts.sum() + 2.0,
    ))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_prior_obeys(case in cases::<f64>(2..=5, 1..=3), a in 0.1..4.0f64) {
        let claims = plca_priors::laws::Claims { rows_alike: false, ..Default::default() };
        check_prior(&FirstRow(a), &claims, &case)?;
        check_promises(&FirstRow(a), &[1, 2], &claims, &case)?;
    }

    #[test]
    fn the_model_obeys(
        columns in stochastic::<f64>(5, 3), theta in stochastic::<f64>(3, 1),
        counts in prop::collection::vec(0.1..50.0f64, 5), order in permutations(5),
    ) {
        let counts = DVector::from_vec(counts);
        let claims = claims(&counts);
        let prior = FirstRow(2.0);
        let on = |prior| Mixture { columns: &columns, counts: &counts, prior };
        check(&on(&prior), &theta, &claims)?;
        check_accelerated(&on(&prior), &theta, &claims)?;
        check_failure(&on(&Fails), &theta)?;
        let stop = Stop { max_iter: 7, tol: 0.0, ..Stop::default() };
        check_resumed(&on(&prior), &theta, &stop, 3, Clone::clone)?;
        // Another order of the rows of data and columns: the same shares.
        let (columns, counts) = (columns.select_rows(&order), counts.select_rows(&order));
        let moved = Mixture { columns: &columns, counts: &counts, prior: &prior };
        let show = |theta: &DMatrix<f64>| vec![theta.as_slice().to_vec()];
        check_moved(Law::Permutation, &on(&prior), &moved, &theta, Clone::clone, show, 1.0, &claims)?;
    }
}

/// For 95 of 100 random `W`, the fit finds the planted shares to within 0.1.
#[test]
fn planted_shares_are_found() {
    let found = |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut columns = DMatrix::from_fn(6, 3, |_, _| random::exponential(&mut rng));
        plca_tensor::normalise_columns(&mut columns);
        let planted = DMatrix::from_vec(3, 1, vec![0.2, 0.3, 0.5]);
        let counts = DVector::from_column_slice((&columns * &planted * 1e4).as_slice());
        let model = Mixture {
            columns: &columns,
            counts: &counts,
            prior: &Flat,
        };
        let stop = Stop {
            max_iter: 2000,
            tol: 0.0,
            ..Stop::default()
        };
        let fit = run(&model, DMatrix::from_element(3, 1, 1.0 / 3.0), &stop, ());
        fit.is_ok_and(|fit| (fit.state - planted).amax() < 0.1)
    };
    check_rate(0.95, 100, found).unwrap();
}

// So far the page.

#[test]
fn the_page_shows_this_file() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/TESTING.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (shown, _) = include_str!("own_model.rs")
        .split_once("\n// So far the page.")
        .unwrap();
    assert!(
        page.contains(shown),
        "docs/TESTING.md shows another example"
    );
}
