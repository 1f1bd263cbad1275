//! Data drawn from a fitted model.

use nalgebra::{DMatrix, DVector};
use plca_dist::draw_poisson;
use plca_fit::FitError;
use plca_tensor::Real;
use rand::Rng;

use super::SnmfState;
use crate::Replicates;
use crate::sides::split;

impl<T: Real> SnmfState<T> {
    /// Draws from the law of the data: the sum of this number of `F x N` matrices, each the mean of `M` differences of counts.
    ///
    /// ```math
    /// X = \frac{A - B}{M}, \qquad A \sim \mathrm{Poisson}(n M \, T^+ H), \quad B \sim \mathrm{Poisson}(n M \, T^- H), \qquad n = \text{draws}
    /// ```
    ///
    /// Cells are drawn row after row, each its `A` and then its `B`. Cost: `O(F N K)` and two draws a cell.
    ///
    /// # Errors
    ///
    /// [`FitError::Conflict`] for [`Replicates::Limit`], which has no law, [`FitError::Setting`] for a number of draws so large that a rate exceeds 2^52.
    ///
    /// # Examples
    ///
    /// ```
    /// use skellam_snmf::nalgebra::{self, dmatrix};
    /// use skellam_snmf::{Replicates, SnmfState};
    /// let state = SnmfState::new(&dmatrix![0.75], &dmatrix![0.25], dmatrix![4.0])?;
    /// let mut rng = skellam_snmf::seed(0);
    /// let sum = state.sample(1_000_000, Replicates::One, &mut rng)?[0];
    /// assert!((sum / 1e6 - 2.0).abs() < 0.01);                            // 3 - 1
    /// assert!(state.sample(1, Replicates::Limit, &mut rng).is_err());
    /// # Ok::<(), skellam_snmf::FitError>(())
    /// ```
    pub fn sample(
        &self,
        draws: u64,
        replicates: Replicates,
        rng: &mut dyn Rng,
    ) -> Result<DMatrix<f64>, FitError> {
        let m = replicates.number();
        if m.is_infinite() {
            return Err(FitError::Conflict {
                what:
                    "a model of real data (infinitely many replicates) has no distribution to sample from"
                        .into(),
            });
        }
        let h = self.activations();
        let [plus, minus] = split(self.atoms());
        let mut draw = |side: &DVector<T>, n: usize| {
            let rate = draws as f64 * m * side.dot(&h.column(n)).to_f64();
            let count = draw_poisson(rate, rng).map_err(|_| FitError::Setting {
                name: "draws",
                value: draws as f64,
                expected: "so few that no cell has a rate above 2^52",
            });
            Ok::<_, FitError>(count? as f64 / m)
        };
        let mut drawn = DMatrix::zeros(plus.nrows(), h.ncols());
        for i in 0..plus.nrows() {
            let [plus, minus] = [&plus, &minus].map(|side| side.row(i).transpose());
            for n in 0..h.ncols() {
                drawn[(i, n)] = draw(&plus, n)? - draw(&minus, n)?;
            }
        }
        Ok(drawn)
    }
}
