//! The updates.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::{
    Algorithm, FitError, Parameters, Progress, Sense,
    blocks::{Axis, BlockSpec, Frozen},
    em::Stepped,
    units::{components_in_unit, in_unit},
};
use plca_tensor::{CompensatedSum, Real, times_power_of_two};
use rand::Rng;

use super::scaled::{Scaled, exponent_of};
use crate::check::not_finite;

/// Semi-NMF in squared error on data.
///
/// It works on data and columns of the basis that are divided by powers of two, so that the largest entries are near 1, and on the activations that belong
/// to them: squares neither overflow nor underflow, and no bit depends on the units of any of them.
#[derive(Debug)]
pub(super) struct DingSteps<T: Real> {
    data: Scaled<T>,
    specs: Vec<BlockSpec<T>>,
    /// `Σ V²`.
    squares: f64,
}

impl<T: Real> DingSteps<T> {
    /// # Errors
    ///
    /// [`FitError::Beyond`] for data whose squares leave the range of numbers.
    pub(super) fn new(data: Scaled<T>, specs: Vec<BlockSpec<T>>) -> Result<Self, FitError> {
        Ok(Self {
            squares: data.squares()?,
            data,
            specs,
        })
    }

    /// The basis with columns near 1, the activations that belong to it, and the exponents of the columns.
    fn balanced(&self, at: &Parameters<T>) -> (DMatrix<T>, DMatrix<T>, Vec<i32>) {
        let exponents = at.at(0).column_iter().map(exponent_of);
        let exponents = exponents.map(|e| e.unwrap_or(self.data.exponent));
        let exponents: Vec<i32> = exponents.collect();
        let w = components_in_unit(at.at(0), Axis::Columns, |z| -exponents[z]);
        (w, self.to_balanced(at.at(1), &exponents), exponents)
    }

    /// The activations that belong to a basis without these exponents.
    fn to_balanced(&self, h: &DMatrix<T>, exponents: &[i32]) -> DMatrix<T> {
        components_in_unit(h, Axis::Rows, |z| exponents[z] - self.data.exponent)
    }

    /// The norm of the data over that of a basis, in the units of activations.
    pub(super) fn level(&self, basis: &DMatrix<T>) -> f64 {
        let e = exponent_of(basis).unwrap_or(0);
        let level = self.data.values.norm() / in_unit(basis, -e).norm();
        times_power_of_two(level.to_f64(), self.data.exponent - e)
    }

    fn is_free(&self, block: usize) -> bool {
        self.specs[block].frozen != Frozen::Whole
    }
}

/// `V Hᵀ (H Hᵀ)⁻¹ = V H⁺`, the pseudo-inverse where components depend on each other. From `Hᵀ P = Q R` and `Rᵀ = O U` it is
/// `V Q U⁻¹ Oᵀ Pᵀ`: `H Hᵀ` would square the condition of `H`, and half of the digits would be lost. Rows are scaled to near 1, so
/// that one of small numbers is not taken for a dependent one. (`svd` of `nalgebra` 0.35 has no correct digit for some matrices.)
fn left<T: Real>(data: &DMatrix<T>, h: &DMatrix<T>) -> Result<DMatrix<T>, FitError> {
    let exponents = h.row_iter().map(|row| exponent_of(row).unwrap_or(0));
    let exponents: Vec<i32> = exponents.collect();
    let h = components_in_unit(h, Axis::Rows, |z| -exponents[z]);
    let cutoff = h.amax() * T::lit(h.len() as f64) * T::EPSILON;
    if let Some(bad) = h.iter().find(|x| !x.is_finite()) {
        return Err(not_finite("activations", bad.to_f64()));
    }
    let (q, r, p) = h.transpose().col_piv_qr().unpack();
    let rank = (0..r.nrows()).take_while(|&i| r[(i, i)] > cutoff).count();
    if rank == 0 {
        return Ok(DMatrix::zeros(data.nrows(), h.nrows()));
    }
    let (o, u) = r.rows(0, rank).transpose().qr().unpack();
    let explained = (data * q.columns(0, rank)).transpose();
    let solved = u.tr_solve_upper_triangular(&explained);
    let solved = solved.ok_or_else(|| not_finite("basis", f64::NAN))?;
    let mut w = (o * solved).transpose();
    p.inv_permute_columns(&mut w);
    finite(components_in_unit(&w, Axis::Columns, |z| -exponents[z]))
}

/// A basis of numbers. One that belongs to very small activations may be none.
fn finite<T: Real>(w: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
    match w.iter().find(|x| !x.is_finite()) {
        Some(bad) => Err(not_finite("basis", bad.to_f64())),
        None => Ok(w),
    }
}

/// The next activations under `W`.
fn multiplied<T: Real>(data: &DMatrix<T>, w: &DMatrix<T>, old: &DMatrix<T>) -> DMatrix<T> {
    let positive = |m: &DMatrix<T>| m.map(|x| if x > T::zero() { x } else { T::zero() });
    let data = w.transpose() * data;
    let gram = w.transpose() * w;
    // [SKELLAM 12] H <- H √(((WᵀV)⁺ + (WᵀW)⁻ H) / ((WᵀV)⁻ + (WᵀW)⁺ H))
    let up = positive(&data) + positive(&-&gram) * old;
    let down = positive(&-&data) + positive(&gram) * old;
    let mut h = old.clone();
    for ((h, &up), &down) in h.iter_mut().zip(&up).zip(&down) {
        // Roots first: where h has vanished the quotient may be no number.
        *h = if down > T::zero() {
            *h * (up.sqrt() / down.sqrt())
        } else {
            T::zero()
        };
    }
    h
}

impl<T: Real> Algorithm<T> for DingSteps<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        let value = measure.then(|| self.objective(at)).transpose()?;
        let (mut w, mut h, exponents) = self.balanced(at);
        if self.is_free(1) {
            h = multiplied(&self.data.values, &w, &h);
        }
        let mut own = components_in_unit(&h, Axis::Rows, |z| self.data.exponent - exponents[z]);
        if self.is_free(1) {
            self.specs[1].keep_frozen(at.at(1), &mut own);
            h = self.to_balanced(&own, &exponents);
        }
        if self.is_free(0) {
            w = left(&self.data.values, &h)?;
        }
        let w = components_in_unit(&w, Axis::Columns, |z| exponents[z]);
        let (w, h) = (finite(w)?, own);
        if let Some(bad) = h.iter().find(|x| !x.is_finite()) {
            return Err(not_finite("activations", bad.to_f64()));
        }
        let new = [w, h];
        at.change(|j, block| block.copy_from(&new[j]));
        at.count();
        Ok(Stepped::of(value))
    }

    /// `‖V - W H‖²`.
    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let (w, h, _) = self.balanced(at);
        let mut sum = CompensatedSum::default();
        for (v, h) in self.data.values.column_iter().zip(h.column_iter()) {
            sum += (v - &w * h).norm_squared().to_f64();
        }
        Ok(self.data.square(sum.value()))
    }

    fn sense(&self) -> Sense {
        Sense::Minimise
    }

    /// `Σ V²`.
    fn unit(&self) -> f64 {
        self.squares
    }

    /// No step from any basis makes the error larger.
    fn extrapolates(&self, _: &Parameters<T>) -> Result<(), FitError> {
        Ok(())
    }

    /// The basis is left to [`complete`](Self::complete).
    fn draw(&self, rng: &mut dyn Rng, _: &mut Progress<'_>) -> Result<Vec<DMatrix<T>>, FitError> {
        let [basis, activations] = [self.specs[0].shape, self.specs[1].shape];
        let draw = |_, _| T::lit(random::uniform(rng));
        Ok(vec![
            DMatrix::zeros(basis.0, basis.1),
            DMatrix::from_fn(activations.0, activations.1, draw),
        ])
    }

    fn complete(
        &self,
        blocks: &mut [DMatrix<T>],
        given: &[bool],
        _: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        if !given[0] {
            let e = exponent_of(&blocks[1]).unwrap_or(0);
            let w = left(&self.data.values, &in_unit(&blocks[1], -e))?;
            blocks[0] = finite(in_unit(&w, self.data.exponent - e))?;
        }
        Ok(())
    }
}
