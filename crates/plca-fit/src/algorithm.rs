//! What a solver asks of a model that is bound to data.

use std::fmt::Debug;

use nalgebra::DMatrix;
use plca_tensor::Real;
use rand::Rng;

use super::em::constant;
use super::{BlockSpec, Expectation, FitError, Parameters, Progress, Separable, Start, Stepped};

/// The direction in which an objective improves: up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// It rises: a likelihood, a posterior, a bound.
    Maximise,
    /// It falls: a divergence, a squared error.
    Minimise,
}

impl Sense {
    /// Whether `new` is at least as good as `old`; never for NaN.
    pub fn not_worse(self, new: f64, old: f64) -> bool {
        match self {
            Self::Maximise => new >= old,
            Self::Minimise => new <= old,
        }
    }
}

/// A model bound to data: its blocks and its iterations.
pub trait Algorithm<T: Real>: Debug {
    /// The blocks, in the order of [`Parameters`].
    fn blocks(&self) -> &[BlockSpec<T>];

    /// One iteration; with `measure`, also the objective of the parameters before it.
    ///
    /// # Errors
    ///
    /// [`FitError`]; `at` is then as it was.
    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError>;

    /// The objective without its [`constant`](Self::constant).
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError>;

    /// The part of the objective that is the same for all parameters. Runs report it, and compare points without it: data in small units change the
    /// objective by less than the last bit of a constant that has no unit. Default: the constants of the priors.
    fn constant(&self) -> f64 {
        constant(self.blocks(), self.sense())
    }

    /// The objective without priors. Default: [`objective`](Self::objective).
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    fn likelihood(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        self.objective(at)
    }

    /// Whether its steps heed the tempering power; default: no.
    fn tempers(&self) -> bool {
        false
    }

    /// Whether the objective is to rise (default) or to fall.
    fn sense(&self) -> Sense {
        Sense::Maximise
    }

    /// The unit of the objective, which a tolerance is relative to.
    fn unit(&self) -> f64;

    /// What the rates of a block are measured in. Changes of rates are divided by it before they are added to changes of distributions, where the length of
    /// an extrapolated step depends on both; and no extrapolated point is taken whose rates are beyond half of the range of numbers from it. `None`, the
    /// default: changes are divided by the sum of the absolute rates, and any rate that is a number is taken.
    fn rate_unit(&self, block: usize) -> Option<f64> {
        let _ = block;
        None
    }

    /// The sum of the data, if the model is one of distributions; default 1.
    fn mass(&self) -> f64 {
        1.0
    }

    /// Numbers that its parameters must remember besides their blocks.
    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        Vec::new()
    }

    /// What the model at these parameters must be multiplied by to approximate data of which something is hidden, or not in its reach: one
    /// number, or one for each given index. Default: nothing is hidden, and [`mass`](Self::mass) says it all.
    ///
    /// # Errors
    ///
    /// Data that cannot be read.
    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        let _ = at;
        Ok(None)
    }

    /// The tempering power that a run begins with; default 1, none.
    fn power(&self) -> f64 {
        1.0
    }

    /// Whether the next step and those after it raise one and the same objective, so that it can guard extrapolation.
    ///
    /// # Errors
    ///
    /// [`FitError::Unsteady`] with what changes, [`FitError::Conflict`] under tempering and with a power that stays, and
    /// [`FitError::Annealing`] while one moves: solvers then make plain iterations.
    fn extrapolates(&self, at: &Parameters<T>) -> Result<(), FitError>;

    /// One iteration of squared extrapolation, as of [`Solver::Squarem`](super::Solver::Squarem), by an algorithm that has not all parameters at
    /// hand. Default, `None`: the solver makes it of plain iterations.
    fn squared(&self, at: &mut Parameters<T>, measure: bool) -> Option<Result<Stepped, FitError>> {
        let _ = (at, measure);
        None
    }

    /// Whether [`step_by_samples`](Self::step_by_samples) is the algorithm's own form of [`Solver::Fast`](super::Solver::Fast), in place of row problems over all
    /// data. Default: no.
    ///
    /// # Errors
    ///
    /// [`FitError::NotSeparable`] for settings with which it cannot be made.
    fn by_samples(&self) -> Result<bool, FitError> {
        Ok(false)
    }

    /// One iteration that brings what belongs to the samples near its optimum first; what it measures is the objective from there, which is not worse than that of
    /// the parameters before. Default: [`step`](Self::step).
    ///
    /// # Errors
    ///
    /// As there.
    fn step_by_samples(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        self.step(at, measure)
    }

    /// Parameters from extrapolated values `flat`, which stand one block after the other, each by columns. Default: a value that left the
    /// orthant becomes a tenth of that of `last`, columns on the simplex are normalised, and what is frozen, or follows from the rest, keeps the
    /// values of `base`.
    fn extrapolated(&self, base: &Parameters<T>, flat: &[f64], last: &[f64]) -> Parameters<T> {
        let mut at = base.clone();
        let mut values = flat.iter().zip(last);
        at.change(|j, block| {
            let values = values.by_ref().take(block.len());
            self.blocks()[j].extrapolate(block, values.map(|(&new, &last)| (new, last)));
        });
        at
    }

    /// What a given value of a block stands for, the block told by its place. Default: [`BlockSpec::given`].
    ///
    /// # Errors
    ///
    /// Those of [`BlockSpec::given`].
    fn given(&self, block: usize, value: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        self.blocks()[block].given(value)
    }

    /// Fills the blocks that a start does not give, from the data and those that it gives.
    ///
    /// # Errors
    ///
    /// [`FitError::NoStart`] (default) for a start that the model does not have; and as [`step`](Self::step).
    fn fill(
        &self,
        start: Start,
        blocks: &mut [Option<DMatrix<T>>],
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        let _ = (blocks, rng, progress);
        Err(FitError::NoStart { start })
    }

    /// The blocks of a start that gives none, in the order of [`blocks`](Self::blocks). Default: each as its [`Draw`](super::Draw) says.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    fn draw(
        &self,
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<DMatrix<T>>, FitError> {
        let _ = progress;
        Ok(self.blocks().iter().map(|spec| spec.drawn(rng)).collect())
    }

    /// Completes a start by blocks that follow from those that are given, of which there is a flag for every block. Default: as they are.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    fn complete(
        &self,
        blocks: &mut [DMatrix<T>],
        given: &[bool],
        progress: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        let _ = (blocks, given, progress);
        Ok(())
    }

    /// Refuses a start from which no iteration can go on. Default: none.
    ///
    /// # Errors
    ///
    /// [`FitError::Support`] and its like.
    fn check_start(&self, at: &Parameters<T>) -> Result<(), FitError> {
        let _ = at;
        Ok(())
    }

    /// How far the parameters are from stationary, `>= 0`.
    ///
    /// # Errors
    ///
    /// [`FitError::NoResidual`] (default) with the reason why there is none; and as [`step`](Self::step).
    fn residual(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let _ = at;
        Err(FitError::NoResidual {
            why: "the model measures no conditions of optimality".into(),
        })
    }

    /// The model as one that separates.
    ///
    /// # Errors
    ///
    /// [`FitError::NotSeparable`] (default) with what is in the way.
    fn separable(&self) -> Result<&dyn Separable<T>, FitError> {
        Err(FitError::NotSeparable {
            what: "the model".into(),
        })
    }

    /// The E-step behind its steps, if they are expectation-maximisation: laws hold its counts against the objective. Default: none.
    fn expectation(&self) -> Option<&dyn Expectation<T>> {
        None
    }

    /// Whether nothing is left to do. Asked after every iteration.
    fn settled(&self, at: &Parameters<T>) -> bool {
        let _ = at;
        false
    }
}

/// An algorithm that is lent.
impl<T: Real, A: Algorithm<T> + ?Sized> Algorithm<T> for &A {
    fn blocks(&self) -> &[BlockSpec<T>] {
        (**self).blocks()
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        (**self).step(at, measure)
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        (**self).objective(at)
    }

    fn constant(&self) -> f64 {
        (**self).constant()
    }

    fn likelihood(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        (**self).likelihood(at)
    }

    fn tempers(&self) -> bool {
        (**self).tempers()
    }

    fn sense(&self) -> Sense {
        (**self).sense()
    }

    fn unit(&self) -> f64 {
        (**self).unit()
    }

    fn rate_unit(&self, block: usize) -> Option<f64> {
        (**self).rate_unit(block)
    }

    fn mass(&self) -> f64 {
        (**self).mass()
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        (**self).facts()
    }

    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        (**self).scale(at)
    }

    fn power(&self) -> f64 {
        (**self).power()
    }

    fn extrapolates(&self, at: &Parameters<T>) -> Result<(), FitError> {
        (**self).extrapolates(at)
    }

    fn squared(&self, at: &mut Parameters<T>, measure: bool) -> Option<Result<Stepped, FitError>> {
        (**self).squared(at, measure)
    }

    fn by_samples(&self) -> Result<bool, FitError> {
        (**self).by_samples()
    }

    fn step_by_samples(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        (**self).step_by_samples(at, measure)
    }

    fn extrapolated(&self, base: &Parameters<T>, flat: &[f64], last: &[f64]) -> Parameters<T> {
        (**self).extrapolated(base, flat, last)
    }

    fn given(&self, block: usize, value: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        (**self).given(block, value)
    }

    fn fill(
        &self,
        start: Start,
        blocks: &mut [Option<DMatrix<T>>],
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        (**self).fill(start, blocks, rng, progress)
    }

    fn draw(
        &self,
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<DMatrix<T>>, FitError> {
        (**self).draw(rng, progress)
    }

    fn complete(
        &self,
        blocks: &mut [DMatrix<T>],
        given: &[bool],
        progress: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        (**self).complete(blocks, given, progress)
    }

    fn check_start(&self, at: &Parameters<T>) -> Result<(), FitError> {
        (**self).check_start(at)
    }

    fn residual(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        (**self).residual(at)
    }

    fn separable(&self) -> Result<&dyn Separable<T>, FitError> {
        (**self).separable()
    }

    fn expectation(&self) -> Option<&dyn Expectation<T>> {
        (**self).expectation()
    }

    fn settled(&self, at: &Parameters<T>) -> bool {
        (**self).settled(at)
    }
}
