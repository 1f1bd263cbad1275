//! Dirichlet priors on atoms of two sides, gamma priors on activations.

use nalgebra::DMatrix;
use plca_dist::ln_gamma;
use plca_priors::{Components, Gamma, PriorError, PriorRules, SimplexPrior, Step, check_counts};
use plca_tensor::{CompensatedSum, Real};

use crate::sides::{normalise, split, stack, views};
use crate::{Entries, Prior};

/// `ln Γ(Σ α) - Σ ln Γ(α)`, summed over columns whose shapes stand one after the other.
pub(crate) fn normalisers(rows: usize, columns: usize, shape: impl Fn(usize) -> f64) -> f64 {
    let gamma = |x: f64| ln_gamma(x).unwrap_or(f64::NAN);
    let mut sum = CompensatedSum::default();
    for z in 0..columns {
        let shapes = (z * rows..(z + 1) * rows).map(&shape);
        let total: f64 = shapes.clone().sum();
        // [SKELLAM eq. 26]
        sum += gamma(total);
        shapes.for_each(|shape| sum += -gamma(shape));
    }
    sum.value()
}

/// `ln p(T) = Σ (α - 1) ln T + ln Γ(Σ α) - Σ ln Γ(α)` for every atom, both sides together.
///
/// The M-step is `T ∝ max(c + α - 1, floor)`. Entries that a shape below 1 has clipped to 0 are left out of the density.
#[derive(Debug)]
pub(super) struct Sides {
    plus: Entries,
    minus: Entries,
    floor: f64,
}

impl Sides {
    /// The part of a checked prior that is of the atoms.
    pub(super) fn new(prior: Prior, floor: f64) -> Self {
        Self {
            plus: prior.plus,
            minus: prior.minus,
            floor,
        }
    }
}

impl PriorRules for Sides {
    fn pseudo_counts(&self, (both, columns): (usize, usize)) -> Option<DMatrix<f64>> {
        let (rows, sides) = (both / 2, [&self.plus, &self.minus]);
        let counts = DMatrix::from_fn(both, columns, |at, k| {
            sides[at / rows.max(1)].get(k * rows + at % rows, Components::Columns(rows)) - 1.0
        });
        let adds = self.floor <= 0.0 && counts.iter().all(|&count| count >= 0.0);
        adds.then_some(counts)
    }

    /// `ln Γ(Σ α) - Σ ln Γ(α)` of every atom.
    fn ln_constant(&self, (both, columns): (usize, usize)) -> f64 {
        let (rows, sides) = (both / 2, [&self.plus, &self.minus]);
        normalisers(both, columns, |at| {
            let (k, f) = (at / both, at % both);
            sides[f / rows].get(k * rows + f % rows, Components::Columns(rows))
        })
    }

    fn may_empty(&self) -> bool {
        let mut shapes = self.plus.as_slice().iter().chain(self.minus.as_slice());
        self.floor <= 0.0 && shapes.any(|&alpha| alpha < 1.0)
    }
}

impl<T: Real> SimplexPrior<T> for Sides {
    fn update(
        &self,
        counts: &DMatrix<T>,
        theta: &mut DMatrix<T>,
        _: &Step<'_>,
    ) -> Result<(), PriorError> {
        if counts.shape() != theta.shape() {
            check_counts(counts, theta)?;
        }
        let (axis, floor) = (Components::Columns(counts.nrows() / 2), T::lit(self.floor));
        let mut sides = split(counts);
        for (side, alpha) in sides.iter_mut().zip([&self.plus, &self.minus]) {
            alpha.for_each(side.as_mut_slice(), axis, |x, alpha| {
                // [SKELLAM 5] T± <- norm(T± ∘ G± Hᵀ + α± - 1), both sides together
                let new = *x + T::lit(alpha - 1.0);
                // What is no number shows as such.
                *x = if new <= floor { floor } else { new };
            });
        }
        let [plus, minus] = &sides;
        let mut new = stack(plus, minus);
        if let Some(at) = new.iter().position(|x| !x.is_finite()) {
            let column = at / new.nrows();
            return Err(PriorError::Overflow { column });
        }
        normalise(&mut new);
        for (mut old, new) in theta.column_iter_mut().zip(new.column_iter()) {
            // An atom that nothing is left of keeps its value.
            if new.amax() > T::zero() {
                old.copy_from(&new);
            }
        }
        Ok(())
    }

    fn ln_density(&self, theta: &DMatrix<T>, _: &Step<'_>) -> f64 {
        let rows = theta.nrows() / 2;
        let mut sum = CompensatedSum::default();
        let sides = views(theta);
        for k in 0..theta.ncols() {
            for (side, alpha) in sides.iter().zip([&self.plus, &self.minus]) {
                for f in 0..rows {
                    let alpha = alpha.get(k * rows + f, Components::Columns(rows));
                    let x = side[(f, k)].to_f64();
                    let power = match alpha == 1.0 || (alpha < 1.0 && x == 0.0) {
                        true => 0.0,
                        false => (alpha - 1.0) * x.ln(),
                    };
                    // [SKELLAM eq. 26]
                    sum += power;
                }
            }
        }
        sum.value()
    }
}

/// The part of a prior that is of the activations.
///
/// # Errors
///
/// [`PriorError::Domain`].
pub(super) fn gamma(prior: &Prior, floor: f64) -> Result<Gamma, PriorError> {
    Gamma::of(prior.shape.clone(), prior.rate.clone())?.with_floor(floor)
}
