//! Expectation-maximisation of any model that says what to expect.

use std::fmt::Debug;

use nalgebra::DMatrix;
use plca_priors::Step;
use plca_tensor::Real;
use rand::Rng;

use super::anneal::{Annealing, raise};
use super::{Anneal, BlockSpec, Exposure, FitError, Frozen, Parameters, Sense, Separable};

/// The parts of an E-step that the engine wants.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// For each block, whether its counts are wanted.
    pub blocks: &'a [bool],
    /// Whether the log-likelihood, or the divergence, is wanted.
    pub value: bool,
}

/// The answer of an E-step: expected counts, and the objective without priors.
#[derive(Clone, Debug)]
pub struct Counts<T: Real> {
    /// Expected counts of each wanted block, in its shape.
    pub blocks: Vec<Option<DMatrix<T>>>,
    /// The log-likelihood or the divergence, without priors, if it was wanted.
    pub value: Option<f64>,
}

/// The blocks of a step as far as they are known: those already renewed, and the old ones.
#[derive(Clone, Copy, Debug)]
pub struct Renewed<'a, T: Real> {
    old: &'a Parameters<T>,
    new: &'a [Option<DMatrix<T>>],
}

impl<'a, T: Real> Renewed<'a, T> {
    /// A block by its place.
    pub fn at(&self, block: usize) -> &'a DMatrix<T> {
        self.new[block]
            .as_ref()
            .unwrap_or_else(|| self.old.at(block))
    }
}

/// A model under expectation-maximisation: its blocks, and the counts that it expects of them.
///
/// M-steps, priors, frozen blocks and components, and steps that happen as a whole or not at all are [`Em`]'s.
pub trait Expectation<T: Real>: Debug + Sync {
    /// The blocks, in the order of [`Parameters`].
    fn blocks(&self) -> &[BlockSpec<T>];

    /// The E-step.
    ///
    /// # Errors
    ///
    /// What makes the counts unusable, such as data that cannot be read.
    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError>;

    /// The divisor of the counts of a block of rates. Blocks are renewed from the last to the first.
    fn exposure(&self, block: usize, renewed: Renewed<'_, T>) -> Option<Exposure<T>> {
        let _ = (block, renewed);
        None
    }

    /// The power that every column of a new block is raised to before it is normalised again. Default: none.
    fn anneal(&self, block: usize) -> Option<Anneal> {
        let _ = block;
        None
    }

    /// The first positive cell, in row-major order, to which the model gives the probability 0.
    ///
    /// # Errors
    ///
    /// Data that cannot be read.
    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError>;

    /// The blocks of a start that gives none. Default: each as its [`Draw`](super::Draw) says.
    ///
    /// # Errors
    ///
    /// Data that cannot be read.
    fn draw(&self, rng: &mut dyn Rng) -> Result<Vec<DMatrix<T>>, FitError> {
        Ok(self.blocks().iter().map(|spec| spec.drawn(rng)).collect())
    }

    /// The distance of the parameters from a stationary point, `>= 0`. Default, `None`: the largest change that an iteration makes, of
    /// rates in parts of their sum.
    fn residual(&self, at: &Parameters<T>) -> Option<Result<f64, FitError>> {
        let _ = at;
        None
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

    /// Whether the objective is to rise (default) or to fall.
    fn sense(&self) -> Sense {
        Sense::Maximise
    }

    /// The unit of the objective, which a tolerance is relative to: the sum of the data for a likelihood.
    fn unit(&self) -> f64;

    /// The sum of the data, if the model is one of distributions; default 1.
    fn mass(&self) -> f64 {
        1.0
    }

    /// Numbers that its parameters must remember besides their blocks.
    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        Vec::new()
    }

    /// The scale of the model, as [`Algorithm::scale`](super::Algorithm::scale) says.
    ///
    /// # Errors
    ///
    /// Data that cannot be read.
    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        let _ = at;
        Ok(None)
    }

    /// Whether its E-step heeds the tempering power; default: no.
    fn tempers(&self) -> bool {
        false
    }

    /// The tempering power that a run begins with; default 1, none.
    fn power(&self) -> f64 {
        1.0
    }
}

/// The objective from one without priors: their log-densities added, as in force at the next iteration, or taken from what is to fall.
pub(super) fn with_priors<T: Real>(
    value: f64,
    sense: Sense,
    specs: &[BlockSpec<T>],
    at: &Parameters<T>,
) -> f64 {
    let step = Step::at(at.next());
    let blocks = specs.iter().enumerate();
    let densities =
        blocks.filter_map(|(j, spec)| Some(spec.prior.as_ref()?.ln_density(at.at(j), &step)));
    let sum = densities.fold(0.0, |sum, density| sum + density);
    match sense {
        Sense::Maximise => value + sum,
        Sense::Minimise => value - sum,
    }
}

/// The record of one iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stepped {
    /// The objective of the parameters before the iteration, if it was to be measured.
    pub value: Option<f64>,
    /// The places of blocks to whose every entry 1e-12 was added, because their priors had emptied what positive cells need.
    pub restored: Vec<usize>,
}

/// Expectation-maximisation of a model: its E-step, then the M-step of every block.
///
/// ```math
/// \begin{aligned}
/// & \text{E-step:} & C &= E[\text{counts of each block} \mid V, \theta] \\
/// & \text{M-step:} & \theta &\gets \mathrm{argmax}_{\theta} \; \sum C \ln \theta + \ln p(\theta)
/// \end{aligned}
/// ```
///
/// `V` is the data and `θ` a block of distributions. The E-step is that of the [`Expectation`], the M-step [`BlockSpec::m_step`]; blocks of
/// rates are divided by their exposure.
#[derive(Clone, Debug)]
pub struct Em<E>(pub E);

impl<E> Em<E> {
    /// Makes one iteration; with `measure`, also gives the objective of the parameters before it. It is not measured while a power moves
    /// towards 1: such iterations are no EM, and must not end a run.
    ///
    /// # Errors
    ///
    /// [`FitError`]; `at` is then as it was.
    pub fn step<T: Real>(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError>
    where
        E: Expectation<T>,
    {
        let specs = self.0.blocks();
        let blocks: Vec<bool> = specs.iter().map(|s| s.frozen != Frozen::Whole).collect();
        let iteration = at.next();
        let wanted = Wanted {
            blocks: &blocks,
            value: measure && !self.powers().any(|(_, power)| power.moves(iteration)),
        };
        let counts = self.0.expect(at, &wanted)?;
        if counts.value.is_some_and(f64::is_infinite) {
            self.check_support(at)?;
        }
        let value = counts.value.map(|value| self.with_priors(value, at));
        let mut counts = counts.blocks;
        let mut new: Vec<Option<DMatrix<T>>> = vec![None; specs.len()];
        let mut emptied = Vec::new();
        for (j, spec) in specs.iter().enumerate().rev().filter(|(j, _)| blocks[*j]) {
            let Some(counts) = counts[j].take() else {
                continue;
            };
            let renewed = Renewed { old: at, new: &new };
            let exposure = self.0.exposure(j, renewed);
            let (mut block, lost) = spec.m_step(counts, at.at(j), exposure, iteration)?;
            if let Some(anneal) = self.0.anneal(j) {
                raise(spec, at.at(j), &mut block, anneal.power(iteration));
            }
            new[j] = Some(block);
            if lost {
                emptied.push(j);
            }
        }
        let mut restored = Vec::new();
        if !emptied.is_empty() {
            let mut next = at.clone();
            next.advance(new.clone());
            if self.0.unsupported(&next)?.is_some() {
                emptied.sort_unstable();
                for &j in &emptied {
                    if let Some(block) = &mut new[j] {
                        specs[j].restore(block);
                    }
                }
                restored = emptied;
            }
        }
        at.advance(new);
        Ok(Stepped { value, restored })
    }

    /// The objective of the parameters: the log-likelihood and the log-densities of all priors.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn objective<T: Real>(&self, at: &Parameters<T>) -> Result<f64, FitError>
    where
        E: Expectation<T>,
    {
        Ok(self.with_priors(self.likelihood(at)?, at))
    }

    /// What the powers of the free blocks do at an iteration.
    pub(super) fn annealing<T: Real>(&self, iteration: usize) -> Annealing
    where
        E: Expectation<T>,
    {
        Annealing::of(self.powers(), iteration)
    }

    /// The powers of the free blocks, each with its place.
    fn powers<T: Real>(&self) -> impl Iterator<Item = (usize, Anneal)>
    where
        E: Expectation<T>,
    {
        let specs = self.0.blocks().iter().enumerate();
        let free = specs.filter(|(_, spec)| spec.frozen != Frozen::Whole);
        free.filter_map(|(j, _)| Some((j, self.0.anneal(j)?)))
    }

    pub(super) fn likelihood<T: Real>(&self, at: &Parameters<T>) -> Result<f64, FitError>
    where
        E: Expectation<T>,
    {
        let none = vec![false; self.0.blocks().len()];
        let wanted = Wanted {
            blocks: &none,
            value: true,
        };
        Ok(self.0.expect(at, &wanted)?.value.unwrap_or(f64::NAN))
    }

    fn with_priors<T: Real>(&self, value: f64, at: &Parameters<T>) -> f64
    where
        E: Expectation<T>,
    {
        with_priors(value, self.0.sense(), self.0.blocks(), at)
    }

    pub(super) fn check_support<T: Real>(&self, at: &Parameters<T>) -> Result<(), FitError>
    where
        E: Expectation<T>,
    {
        match self.0.unsupported(at)? {
            Some((index, value)) => Err(FitError::Support { index, value }),
            None => Ok(()),
        }
    }
}
