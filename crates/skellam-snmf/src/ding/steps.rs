//! The updates.

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::{Algorithm, BlockSpec, FitError, Frozen, Parameters, Sense, Stepped};
use plca_tensor::{CompensatedSum, Real};
use rand::Rng;

use crate::check::not_finite;

/// Semi-NMF in squared error on data.
#[derive(Debug)]
pub(super) struct DingSteps<T: Real> {
    pub(super) data: DMatrix<T>,
    specs: Vec<BlockSpec<T>>,
    /// `Σ V²`.
    squares: f64,
}

impl<T: Real> DingSteps<T> {
    pub(super) fn new(data: DMatrix<T>, specs: Vec<BlockSpec<T>>) -> Self {
        let squares = data.iter().map(|v| v.to_f64() * v.to_f64());
        Self {
            squares: squares.collect::<CompensatedSum>().value(),
            data,
            specs,
        }
    }

    fn is_free(&self, block: usize) -> bool {
        self.specs[block].frozen != Frozen::Whole
    }
}

/// `V Hᵀ (H Hᵀ)⁻¹ = V H⁺`, the pseudo-inverse where components depend on each other. From `Hᵀ = Q R` it is
/// `V Q (Rᵀ)⁺`: `H Hᵀ` would square the condition of `H`, and half of the digits would be lost.
fn left<T: Real>(data: &DMatrix<T>, h: &DMatrix<T>) -> Result<DMatrix<T>, FitError> {
    let cutoff = h.amax() * T::lit(h.len() as f64) * T::EPSILON;
    if !cutoff.is_finite() {
        return Err(not_finite("activations", f64::NAN));
    }
    let (q, r) = h.transpose().qr().unpack();
    let inverse = r.transpose().pseudo_inverse(cutoff);
    let w = inverse.map(|inverse| data * q * inverse);
    match w {
        Ok(w) if w.iter().all(|x| x.is_finite()) => Ok(w),
        _ => Err(not_finite("basis", f64::NAN)),
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
        let (mut w, mut h) = (at.at(0).clone(), at.at(1).clone());
        if self.is_free(1) {
            h = multiplied(&self.data, &w, &h);
            self.specs[1].keep_frozen(at.at(1), &mut h);
        }
        if self.is_free(0) {
            w = left(&self.data, &h)?;
        }
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
        let mut sum = CompensatedSum::default();
        for (v, h) in self.data.column_iter().zip(at.at(1).column_iter()) {
            sum += (v - at.at(0) * h).norm_squared().to_f64();
        }
        Ok(sum.value())
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
    fn draw(&self, rng: &mut dyn Rng) -> Result<Vec<DMatrix<T>>, FitError> {
        let [basis, activations] = [self.specs[0].shape, self.specs[1].shape];
        let draw = |_, _| T::lit(random::uniform(rng));
        Ok(vec![
            DMatrix::zeros(basis.0, basis.1),
            DMatrix::from_fn(activations.0, activations.1, draw),
        ])
    }

    fn complete(&self, blocks: &mut [DMatrix<T>], given: &[bool]) -> Result<(), FitError> {
        if !given[0] {
            blocks[0] = left(&self.data, &blocks[1])?;
        }
        Ok(())
    }
}
