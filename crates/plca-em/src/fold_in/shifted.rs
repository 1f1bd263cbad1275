//! Shift-invariant models with known kernels.

use nalgebra::{DMatrix, DVector};
use plca_fit::{Algorithm as _, Failure as _};
use plca_tensor::{Data, Part, Real};

use super::{Explained, FoldIn, Impossible, Solver, certify_as_it_is};
use crate::init::stochastic_block;
use crate::shifted::shares::shares;
use crate::{EmError, Shifted, ShiftedEm, ShiftedState};

impl<T: Real> Shifted<T> {
    /// `P(z)` and the impulses of new data under known kernels, a column for each component: positive deconvolution. Shapes and
    /// likelihood are those of this configuration; its priors, powers and frozen blocks have no part in it. The start is uniform;
    /// the problem is concave in `P(z) H(h | z)`, so that the start does not matter. `[SPEC 5.4]`
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on); [`EmError`]: kernels of another shape or that cannot be normalised, an impossible observation.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_em::{FoldIn, Shifted};
    /// use plca_tensor::{DenseTensor, Order};
    /// let kernel = dmatrix![0.25f64; 0.75];
    /// let new = DenseTensor::new(vec![4], vec![1.0, 3.0, 2.0, 6.0], Order::RowMajor)?;
    /// let explained = Shifted::builder(1, vec![2]).build()?.fold_in(&new, &kernel, &FoldIn::default())?;
    /// let impulse = &explained.outcome.state.impulses;
    /// assert!((impulse[0] - 4.0 / 12.0).abs() < 1e-3 && (impulse[2] - 8.0 / 12.0).abs() < 1e-3);
    /// assert!(explained.gap[0] <= 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fold_in(
        &self,
        data: &dyn Data<T>,
        kernels: &DMatrix<T>,
        how: &FoldIn,
    ) -> Result<Explained<ShiftedState<T>>, EmError> {
        let config = self.deconvolution();
        let (part, dropped) = config.possible(data, kernels, how.impossible)?;
        match &part {
            Some(part) => config.explain(part, kernels, how, dropped),
            None => config.explain(data, kernels, how, dropped),
        }
    }

    /// What of the data some kernel reaches, and the mass of the rest; `None` for the part that is everything.
    fn possible<'a>(
        &self,
        data: &'a dyn Data<T>,
        kernels: &DMatrix<T>,
        impossible: Impossible,
    ) -> Result<(Option<Part<'a, T>>, f64), EmError> {
        let em = self.on(data)?;
        let (cells, k) = (em.geometry().kernel_cells(), self.components());
        if kernels.shape() != (cells, k) || kernels.iter().all(|&x| x > T::zero()) {
            // Another shape is refused by what follows.
            return Ok((None, 0.0));
        }
        let places = em.geometry().impulse_cells();
        let everywhere = em.reconstruct(&ShiftedState {
            weights: DVector::from_element(k, T::one()),
            kernels: kernels.clone(),
            impulses: DMatrix::from_element(places, k, T::one()),
            iteration: 0,
        })?;
        let shape = data.shape();
        let reached = |index: &[usize]| {
            let at = (index.iter().zip(shape)).fold(0, |at, (&i, n)| at * n + i);
            everywhere[at] > T::zero()
        };
        let (mut dropped, mut first) = (0.0, None);
        data.visit(&mut |index, value| {
            if !reached(index) {
                dropped += value;
                first.get_or_insert_with(|| (index.to_vec(), value));
            }
        })?;
        match (first, impossible) {
            (None, _) => Ok((None, 0.0)),
            (Some((index, value)), Impossible::Refuse) => Err(EmError::Impossible { index, value }),
            (Some(_), Impossible::Drop) => {
                let part = Part::of(data, |index, x| if reached(index) { x } else { 0.0 })?;
                Ok((Some(part), dropped))
            }
        }
    }

    fn explain(
        &self,
        data: &dyn Data<T>,
        kernels: &DMatrix<T>,
        how: &FoldIn,
        dropped: f64,
    ) -> Result<Explained<ShiftedState<T>>, EmError> {
        if how.solver == Solver::Fast {
            let what = "a model of shifted kernels".into();
            return Err(EmError::NotSeparable { what });
        }
        let (em, k) = (self.on(data)?, self.components());
        let (cells, places) = (em.geometry().kernel_cells(), em.geometry().impulse_cells());
        let share = |n: usize| T::one() / T::lit(n as f64);
        let state = ShiftedState {
            weights: DVector::from_element(k, share(k)),
            kernels: stochastic_block("kernels", kernels.clone(), (cells, k))?,
            impulses: DMatrix::from_element(places, k, share(places)),
            iteration: 0,
        };
        // [SPEC 5.4] only P(z) and the impulses move
        let shares = shares(em.geometry(), data, &state.kernels)?;
        let measured = self.on(data)?;
        let gap = |state: &ShiftedState<T>| Ok(vec![gap(&measured, state, &shares)?]);
        let (mut outcome, gap) = certify_as_it_is(em, state, &how.stop, gap)?;
        outcome.state.kernels.clone_from(kernels);
        Ok(Explained {
            outcome,
            gap,
            dropped,
            empty: Vec::new(),
        })
    }
}

/// `max (g - 1)` over components and places. With `a = P(z) H(h | z)` one EM step multiplies `a` by `r = 1 + e (g - 1)`, what is
/// hidden or outside being imputed as the model has it.
fn gap<T: Real>(
    em: &ShiftedEm<'_, T>,
    state: &ShiftedState<T>,
    shares: &DMatrix<f64>,
) -> Result<f64, EmError> {
    let mut next = state.clone();
    if EmError::unless_rejected(em.step(&mut next, false))?.is_none() {
        return Ok(f64::INFINITY);
    }
    let free = |s: &ShiftedState<T>, h: usize, z: usize| {
        s.weights[z].to_f64() * s.impulses[(h, z)].to_f64()
    };
    let mut worst: f64 = 0.0;
    for z in 0..shares.ncols() {
        for h in 0..shares.nrows() {
            let (now, share) = (free(state, h, z), shares[(h, z)]);
            if now > 0.0 && share > 0.0 {
                // [SPEC 1.5] L* - L <= v (max g - 1)
                worst = worst.max((free(&next, h, z) / now - 1.0) / share);
            }
        }
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use plca_fit::Stop;
    use plca_tensor::{DenseTensor, Order};

    use super::*;
    use crate::Support;

    fn how(max_iter: usize) -> FoldIn {
        FoldIn {
            stop: Stop {
                max_iter,
                tol: 0.0,
                ..Stop::default()
            },
            impossible: Impossible::Drop,
            solver: Solver::Em,
        }
    }

    /// `L* - L <= v gap` at every point of a run, `L*` from a much longer one: inside the data, beyond them and with hidden cells.
    // [SPEC 1.5]
    #[test]
    fn the_gap_bounds_what_is_left() {
        let kernels = DMatrix::from_column_slice(3, 2, &[0.5, 0.3, 0.2, 0.1, 0.1, 0.8]);
        let values = vec![1.0, 4.0, 2.0, f64::NAN, 3.0, 9.0, 2.0, 0.0, 5.0, 1.0];
        let complete: Vec<f64> = values
            .iter()
            .map(|x| if x.is_nan() { 7.0 } else { *x })
            .collect();
        let complete = DenseTensor::new(vec![10], complete, Order::RowMajor).unwrap();
        let masked = DenseTensor::masked(vec![10], values, Order::RowMajor).unwrap();
        for data in [&complete as &dyn Data<f64>, &masked] {
            for support in [Support::Valid, Support::Same, Support::Full] {
                let config = Shifted::builder(2, vec![3])
                    .support(support)
                    .build()
                    .unwrap();
                let run = |n| config.fold_in(data, &kernels, &how(n)).unwrap();
                let optimum = run(30_000).outcome.objective;
                for n in [1, 5, 40, 300] {
                    let found = run(n);
                    let left = optimum - found.outcome.objective;
                    let bound = data.total() * found.gap[0];
                    assert!(left <= bound + 1e-9, "{support:?}, {n}: {left} > {bound}");
                    // It is no vacuous bound either.
                    assert!(found.gap[0] < 10.0);
                    assert_eq!(found.outcome.state.kernels, kernels);
                }
            }
        }
    }

    #[test]
    fn what_no_kernel_reaches_is_dropped_or_refused() {
        let kernel = DMatrix::from_column_slice(2, 1, &[0.0, 1.0]);
        let data =
            DenseTensor::<f64>::new(vec![4], vec![2.0, 1.0, 1.0, 3.0], Order::RowMajor).unwrap();
        let config = Shifted::builder(1, vec![2]).build().unwrap();
        let found = config.fold_in(&data, &kernel, &how(20)).unwrap();
        assert_eq!(found.dropped, 2.0);
        assert!((found.outcome.state.impulses[2] - 0.6).abs() < 1e-12);
        let refused = config
            .fold_in(&data, &kernel, &FoldIn::default())
            .unwrap_err();
        assert_eq!(
            refused,
            EmError::Impossible {
                index: vec![0],
                value: 2.0
            }
        );
        let wrong = DMatrix::from_element(3, 1, 1.0);
        assert!(config.fold_in(&data, &wrong, &FoldIn::default()).is_err());
    }
}
