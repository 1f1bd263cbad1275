//! A prior of your own: `ln p(θ) = A Σ_z ln θ_0z`, that is, A more counts in the first row of every column.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_priors::{Flat, PriorError, PriorRules, SimplexPrior, Step, check_counts};
use plca_tensor::Real;

/// A more counts in the first row.
#[derive(Clone, Copy, Debug)]
pub struct FirstRow(f64);

impl FirstRow {
    /// The prior with this many counts, `>= 0`.
    ///
    /// # Errors
    ///
    /// [`PriorError::Domain`] for a number that is negative or not finite.
    pub fn new(counts: f64) -> Result<Self, PriorError> {
        match counts.is_finite() && counts >= 0.0 {
            true => Ok(Self(counts)),
            false => Err(PriorError::Domain {
                name: "counts",
                value: counts,
            }),
        }
    }
}

/// What stands behind `first-row:` on the command line.
#[allow(dead_code, reason = "the table of priors calls it")]
pub(crate) fn parse<T: Real>(
    text: &str,
    _: (usize, usize),
) -> Result<Arc<dyn SimplexPrior<T>>, PriorError> {
    let counts = text.parse().map_err(|_| PriorError::Text {
        got: text.into(),
        expected: "a number".into(),
    });
    Ok(Arc::new(FirstRow::new(counts?)?))
}

impl PriorRules for FirstRow {}

impl<T: Real> SimplexPrior<T> for FirstRow {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        check_counts(counts, theta)?;
        let mut counts = counts.clone();
        counts.row_mut(0).add_scalar_mut(T::lit(self.0));
        Flat.update(&counts, theta, step)
    }

    fn ln_density(&self, theta: &DMatrix<T>, _: &Step<'_>) -> f64 {
        theta.row(0).iter().map(|x| self.0 * x.to_f64().ln()).sum()
    }
}

#[cfg(test)]
mod tests {
    use plca_priors::laws::{Claims, cases, check, check_promises};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn it_obeys_the_laws(case in cases::<f64>(2..=5, 1..=3), counts in 0.1..4.0f64) {
            let prior = FirstRow::new(counts).unwrap();
            let claims = Claims { rows_alike: false, ..Claims::default() };
            check(&prior, &claims, &case)?;
            check_promises(&prior, &[1, 2], &claims, &case)?;
        }
    }

    #[test]
    fn text_makes_it() {
        assert!(parse::<f32>("2.5", (3, 2)).is_ok());
        assert!(parse::<f64>("-1", (3, 2)).is_err());
        assert_eq!(
            parse::<f64>("many", (3, 2)).unwrap_err().to_string(),
            "`many`: expected a number"
        );
    }
}
