//! KL-NMF learnt from batches of columns.
//!
//! Of a column `y` of sum `v_y` the divergence is least where `W H` sums to `v_y` too, and what is left of it is the likelihood of PLSA:
//!
//! ```math
//! W = P(x \mid z), \quad H[z,y] = v_y \, P(z \mid y),
//! \qquad D = \sum V \ln V - \sum_y v_y \ln v_y - \sum V \ln P(x \mid y)
//! ```
//!
//! So batches are explained, and their counts blended, as by [`Plsa`]; the scale is with `H`. `[SPEC 3]` `[SPEC 13]`

use nalgebra::DMatrix;
use plca_fit::{
    Factored, FitError,
    blocks::{Axes, BlockSpec, Constraint, Frozen},
};
use plca_tensor::{Data, Real, normalise_columns};

use super::{Nmf, NmfState};
use crate::online::{BatchStep, Explanation, Streamed, sealed};
use crate::product::{conflict, seen_mass};
use crate::{Given, Plsa, PlsaState};

impl sealed::Sealed for Nmf {
    fn check_stream(&self) -> Result<(), FitError> {
        let frozen = ["w", "h"].map(|name| *self.blocks.frozen(name) != Frozen::No);
        if self.blocks.has_priors() {
            return conflict("the factors of an online fit have no scale: they cannot have priors");
        }
        match frozen {
            [true, _] => {
                conflict("with a frozen `w` there is nothing to learn online: use transform")
            }
            [_, true] => conflict("`h` of a stream belongs to its batches: it cannot be frozen"),
            _ => Ok(()),
        }
    }
}

impl<T: Real> Streamed<T> for Nmf {
    fn streamed(&self, _: usize) -> usize {
        1
    }

    fn specs(&self, shape: &[usize]) -> Result<Vec<BlockSpec<T>>, FitError> {
        let k = self.components;
        Ok(vec![
            BlockSpec::simplex("w", (shape[0], k), Axes::factor(0)),
            BlockSpec::values(
                "h",
                (k, shape[1]),
                Axes::coefficients(1),
                Constraint::NonNegative,
            ),
        ])
    }

    fn explain(
        &self,
        shared: Vec<DMatrix<T>>,
        batch: &dyn Data<T>,
        start: Option<&NmfState<T>>,
        how: BatchStep,
    ) -> Result<Explanation<T, NmfState<T>>, FitError> {
        let plsa = Plsa::new(self.components).given(Given::Columns);
        let start = start.map(|state| as_mixtures(state, &shared)).transpose()?;
        let found = plsa.explain(shared, batch, start.as_ref(), how)?;
        let sums = batch.marginal(1)?;
        // [SPEC 4] hidden cells: v_y / Σ_obs P(x | y)
        let mut scale = sums.clone();
        let mixtures = &found.state;
        if !batch.is_complete() {
            let seen = mixtures.with_model(|cp| seen_mass(batch, cp, 1))?;
            for (scale, &seen) in scale.iter_mut().zip(&seen) {
                *scale = if seen > 0.0 { *scale / seen } else { 0.0 };
            }
        }
        let mut h = mixtures.mixture().clone();
        for (mut column, &scale) in h.column_iter_mut().zip(&scale) {
            column *= T::lit(scale);
        }
        let unit = batch.unit();
        let x_ln_x = |&x: &f64| if x > 0.0 { x * (x / unit).ln() } else { 0.0 };
        let of_sums: f64 = sums.iter().map(x_ln_x).sum();
        Ok(Explanation {
            state: NmfState::new(mixtures.basis().clone(), h)?,
            counts: found.counts,
            // [SPEC 3] -D at the best scale of every column
            ln_lik: found.ln_lik + of_sums - batch.self_information_in(unit)?,
            iterations: found.iterations,
            restored: found.restored,
        })
    }
}

/// The mixtures that the columns of `H` are multiples of; even ones where a column is 0.
fn as_mixtures<T: Real>(
    state: &NmfState<T>,
    shared: &[DMatrix<T>],
) -> Result<PlsaState<T>, FitError> {
    let mut mixture = state.h().clone();
    let (k, n) = mixture.shape();
    let sums = normalise_columns(&mut mixture);
    for (y, _) in sums.iter().enumerate().filter(|&(_, &s)| s <= T::zero()) {
        mixture.column_mut(y).fill(T::one() / T::lit(k as f64));
    }
    let even = vec![T::one() / T::lit(n as f64); n];
    PlsaState::new(Given::Columns, shared[0].clone(), mixture, even)
}
