//! Iterations that renew one block after the other.

use nalgebra::DMatrix;
use plca_fit::{
    Algorithm, FitError, Parameters, Progress, Sense, Start,
    blocks::BlockSpec,
    em::{Em, Expectation, Stepped},
    separable::Separable,
};
use plca_tensor::Real;
use rand::Rng;

/// A model whose blocks can be renewed one after the other.
pub(crate) trait Sweep<T: Real>: Expectation<T> {
    /// Renews every free block once; with `measure`, the objective before that.
    fn sweep(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError>;
}

/// Iterations that are sweeps; all else is as under EM.
#[derive(Debug)]
pub(crate) struct Sequential<E>(pub(crate) Em<E>);

impl<T: Real, E: Sweep<T>> Algorithm<T> for Sequential<E> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        self.0.0.blocks()
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        // Half an iteration is none.
        let mut new = at.clone();
        let stepped = self.0.0.sweep(&mut new, measure)?;
        new.count();
        *at = new;
        Ok(stepped)
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        self.0.objective(at)
    }

    fn likelihood(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        self.0.likelihood(at)
    }

    fn sense(&self) -> Sense {
        self.0.0.sense()
    }

    fn unit(&self) -> f64 {
        self.0.0.unit()
    }

    fn rate_unit(&self, block: usize) -> Option<f64> {
        self.0.rate_unit(block)
    }

    fn mass(&self) -> f64 {
        self.0.0.mass()
    }

    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        self.0.0.scale(at)
    }

    fn extrapolates(&self, at: &Parameters<T>) -> Result<(), FitError> {
        self.0.extrapolates(at)
    }

    fn fill(
        &self,
        start: Start,
        blocks: &mut [Option<DMatrix<T>>],
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        self.0.fill(start, blocks, rng, progress)
    }

    fn check_start(&self, at: &Parameters<T>) -> Result<(), FitError> {
        self.0.check_start(at)
    }

    fn residual(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        self.0.residual(at)
    }

    fn expectation(&self) -> Option<&dyn Expectation<T>> {
        self.0.expectation()
    }

    fn separable(&self) -> Result<&dyn Separable<T>, FitError> {
        self.0.0.separable()
    }
}
