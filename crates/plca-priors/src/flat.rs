//! No opinion: the M-step of maximum likelihood.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::{Real, normalise_columns};

use crate::table::{Parsed, refused};
use crate::{PriorError, PriorRules, SimplexPrior, Step, check_counts};

/// The flat prior of columns that are distributions: the M-step is that of maximum likelihood.
///
/// ```math
/// \theta_i \gets \frac{c_i}{\sum_k c_k}
/// ```
///
/// `θ` is a column and `c` are its counts; a column without counts keeps its value.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::{Flat, SimplexPrior, Step};
/// let mut theta = dmatrix![0.5, 0.5; 0.5, 0.5];
/// Flat.update(&dmatrix![1.0, 0.0; 3.0, 0.0], &mut theta, &Step::at(1))?;
/// assert_eq!(theta, dmatrix![0.25, 0.5; 0.75, 0.5]);
/// # Ok::<(), plca_priors::PriorError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flat;

/// Nothing.
pub(crate) fn parse<T: Real>(text: &str, _: (usize, usize)) -> Parsed<dyn SimplexPrior<T>> {
    match text {
        "" => Ok(Arc::new(Flat)),
        _ => Err(refused(text, "nothing")),
    }
}

impl PriorRules for Flat {
    fn pseudo_counts(&self, shape: (usize, usize)) -> Option<DMatrix<f64>> {
        Some(DMatrix::zeros(shape.0, shape.1))
    }

    fn shares_columns(&self) -> bool {
        true
    }
}

impl<T: Real> SimplexPrior<T> for Flat {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        step: &Step<'_>,
    ) -> Result<(), PriorError> {
        check_counts(counts, theta)?;
        let (mut new, rows) = (counts.clone(), counts.nrows());
        let left =
            |z: usize, theta: &DMatrix<T>| step.left(z, &theta.as_slice()[z * rows..][..rows]);
        for z in 0..new.ncols() {
            if let Some((frozen, _)) = left(z, theta) {
                let entries = new.column_mut(z).into_iter().zip(frozen);
                let frozen = entries.filter(|(_, frozen)| **frozen);
                frozen.for_each(|(x, _)| *x = T::zero());
            }
        }
        let sums = normalise_columns(&mut new);
        for (z, _) in sums.iter().enumerate().filter(|&(_, &s)| s > T::zero()) {
            let Some((frozen, mass)) = left(z, theta) else {
                theta.set_column(z, &new.column(z));
                continue;
            };
            let own = new.column(z);
            let entries = theta.column_mut(z).into_iter().zip(own.iter()).zip(frozen);
            for ((theta, &new), _) in entries.filter(|(_, frozen)| !**frozen) {
                *theta = T::lit(mass) * new;
            }
        }
        Ok(())
    }

    fn ln_density(&self, _theta: &DMatrix<T>, _: &Step<'_>) -> f64 {
        0.0
    }
}
