//! Expectation-maximisation of any model that says what to expect.

use std::fmt::Debug;

use nalgebra::DMatrix;
use plca_priors::Step;
use plca_tensor::Real;
use rand::Rng;

use super::anneal::{Annealing, raise};
use super::{
    Algorithm, Anneal, BlockSpec, Constraint, Exposure, FitError, Frozen, Parameters, Progress,
    Sense, Separable, Start, explain_given,
};

/// The parts of an E-step that the engine wants.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// For each block, whether its counts are wanted.
    pub blocks: &'a [bool],
    /// Whether the log-likelihood, or the divergence, is wanted.
    pub value: bool,
    /// The unit in which the counts are wanted: 1, or the model's own [`count_unit`](Expectation::count_unit).
    pub count_unit: f64,
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
    pub(super) old: &'a Parameters<T>,
    pub(super) new: &'a [Option<DMatrix<T>>],
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

    /// The E-step. The value of data that are impossible under the model is infinite.
    ///
    /// # Errors
    ///
    /// What makes the counts unusable, such as data that cannot be read, or a cell that is impossible.
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

    /// The first positive cell, in row-major order, to which the model gives the probability, or the mean, 0.
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
    fn draw(
        &self,
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<DMatrix<T>>, FitError> {
        let _ = progress;
        Ok(self.blocks().iter().map(|spec| spec.drawn(rng)).collect())
    }

    /// What a given value of a block stands for, as [`Algorithm::given`]. Default: [`BlockSpec::given`].
    ///
    /// # Errors
    ///
    /// Those of [`BlockSpec::given`].
    fn given(&self, block: usize, value: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        self.blocks()[block].given(value)
    }

    /// Completes a start, as [`Algorithm::complete`]. Default: as it is.
    ///
    /// # Errors
    ///
    /// As [`expect`](Self::expect).
    fn complete(
        &self,
        blocks: &mut [DMatrix<T>],
        given: &[bool],
        progress: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        let _ = (blocks, given, progress);
        Ok(())
    }

    /// Blocks in which all components are equal. Of a model that returns them, blocks that are not given start from them and are [fitted to the given ones](super::explain_given).
    /// Default: none, such blocks are drawn.
    ///
    /// # Errors
    ///
    /// As [`expect`](Self::expect).
    fn even(&self) -> Result<Option<Vec<DMatrix<T>>>, FitError> {
        Ok(None)
    }

    /// Fills the blocks that a start does not give, as [`Algorithm::fill`].
    ///
    /// # Errors
    ///
    /// [`FitError::NoStart`] (default) for a start that the model does not have.
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

    /// As [`Algorithm::rate_unit`]. Default: `None`.
    fn rate_unit(&self, block: usize) -> Option<f64> {
        let _ = block;
        None
    }

    /// The power of two by which counts are divided so that small ones do not underflow: counts of small entries would otherwise leave the range of numbers. A model
    /// that says another number than 1, the default, heeds [`Wanted::count_unit`].
    fn count_unit(&self) -> f64 {
        1.0
    }

    /// The sum of the data, if the model is one of distributions; default 1.
    fn mass(&self) -> f64 {
        1.0
    }

    /// Numbers that its parameters must remember besides their blocks.
    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        Vec::new()
    }

    /// The scale of the model, as [`Algorithm::scale`] says.
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

/// The objective from one without priors: their log-densities added, as in force at the next iteration, or taken from what is to fall. Their constants are not
/// in it.
#[doc(hidden)]
pub fn with_priors<T: Real>(
    value: f64,
    sense: Sense,
    specs: &[BlockSpec<T>],
    at: &Parameters<T>,
) -> f64 {
    with_densities(value, sense, specs.iter().zip(at.matrices()), at.next())
}

/// What the densities of the priors of blocks have that no parameter changes, as it stands in an objective of this sense.
pub(super) fn constant<T: Real>(specs: &[BlockSpec<T>], sense: Sense) -> f64 {
    let priors = specs
        .iter()
        .filter_map(|spec| Some((spec.prior.as_ref()?, spec.shape)));
    let sum = priors.fold(0.0, |sum, (prior, shape)| {
        sum + prior.rules().ln_constant(shape)
    });
    match sense {
        Sense::Maximise => sum,
        Sense::Minimise => -sum,
    }
}

/// The same from blocks under the priors of an iteration.
pub(super) fn with_densities<'a, T: Real>(
    value: f64,
    sense: Sense,
    blocks: impl Iterator<Item = (&'a BlockSpec<T>, &'a DMatrix<T>)>,
    next: usize,
) -> f64 {
    let step = Step::at(next);
    let densities =
        blocks.filter_map(|(spec, block)| Some(spec.prior.as_ref()?.ln_density(block, &step)));
    let sum = densities.fold(0.0, |sum, density| sum + density);
    match sense {
        Sense::Maximise => value + sum,
        Sense::Minimise => value - sum,
    }
}

/// The record of one iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stepped {
    /// The objective of the parameters before the iteration, without its [`constant`](super::Algorithm::constant), if it was to be measured.
    pub value: Option<f64>,
    /// The places of blocks to whose every entry 1e-12 was added, because their priors had emptied what positive cells need.
    pub restored: Vec<usize>,
}

impl Stepped {
    /// An iteration that restored nothing, with the objective before it if it was to be measured.
    pub fn of(value: Option<f64>) -> Self {
        let restored = Vec::new();
        Self { value, restored }
    }
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

/// The powers of the free blocks, each with its place.
fn powers<T: Real, E: Expectation<T>>(model: &E) -> impl Iterator<Item = (usize, Anneal)> {
    let specs = model.blocks().iter().enumerate();
    let free = specs.filter(|(_, spec)| spec.frozen != Frozen::Whole);
    free.filter_map(|(j, _)| Some((j, model.anneal(j)?)))
}

/// Whether the next step and those after it raise one and the same objective, as far as tempering and priors say so.
///
/// # Errors
///
/// [`FitError::Conflict`], [`FitError::Unsteady`].
pub(super) fn extrapolates<T: Real>(
    specs: &[BlockSpec<T>],
    at: &Parameters<T>,
) -> Result<(), FitError> {
    // [SPEC 1.4] at fixed b < 1 the monotone quantity is L_b, not L
    if at.power() != 1.0 {
        return Err(FitError::Conflict {
            what: "extrapolation cannot be combined with tempering: expected the solver `em`"
                .into(),
        });
    }
    let iteration = at.next();
    let unsteady = |spec: &&BlockSpec<T>| {
        let prior = spec.prior.as_ref();
        prior.is_some_and(|prior| !prior.rules().steady(iteration))
    };
    match specs.iter().find(unsteady) {
        Some(spec) => Err(FitError::Unsteady {
            block: spec.name.to_string(),
            iteration,
        }),
        None => Ok(()),
    }
}

impl<E> Em<E> {
    /// Makes blocks of their expected counts in a unit, one or `None` for every block, and counts an iteration; returns the places of those that got
    /// their support back.
    ///
    /// # Errors
    ///
    /// Those of [`BlockSpec::m_step`] and [`Expectation::unsupported`]; `at` is then as it was.
    #[doc(hidden)]
    pub fn m_step<T: Real>(
        &self,
        at: &mut Parameters<T>,
        mut counts: Vec<Option<DMatrix<T>>>,
        unit: f64,
    ) -> Result<Vec<usize>, FitError>
    where
        E: Expectation<T>,
    {
        let (specs, iteration) = (self.0.blocks(), at.next());
        let free = |(_, spec): &(usize, &BlockSpec<T>)| spec.frozen != Frozen::Whole;
        let mut new: Vec<Option<DMatrix<T>>> = vec![None; specs.len()];
        let mut emptied = Vec::new();
        for (j, spec) in specs.iter().enumerate().rev().filter(free) {
            let Some(counts) = counts[j].take() else {
                continue;
            };
            let renewed = Renewed { old: at, new: &new };
            let exposure = self.0.exposure(j, renewed);
            let (mut block, lost) = spec.m_step_in(counts, unit, at.at(j), exposure, iteration)?;
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
        Ok(restored)
    }
}

impl<T: Real, E: Expectation<T>> Algorithm<T> for Em<E> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        self.0.blocks()
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        let specs = self.0.blocks();
        let blocks: Vec<bool> = specs.iter().map(|s| s.frozen != Frozen::Whole).collect();
        let iteration = at.next();
        let wanted = Wanted {
            blocks: &blocks,
            value: measure && !powers::<T, E>(&self.0).any(|(_, power)| power.moves(iteration)),
            count_unit: self.0.count_unit(),
        };
        let counts = self.0.expect(at, &wanted)?;
        // Of hidden cells the value is a difference, which is no number where both terms are infinite.
        if counts.value.is_some_and(|value| !value.is_finite()) {
            self.check_start(at)?;
        }
        let value = counts
            .value
            .map(|value| with_priors(value, self.0.sense(), specs, at));
        let restored = self.m_step(at, counts.blocks, wanted.count_unit)?;
        Ok(Stepped { value, restored })
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let value = self.likelihood(at)?;
        Ok(with_priors(value, self.0.sense(), self.0.blocks(), at))
    }

    fn likelihood(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let none = vec![false; self.0.blocks().len()];
        let wanted = Wanted {
            blocks: &none,
            value: true,
            count_unit: 1.0,
        };
        Ok(self.0.expect(at, &wanted)?.value.unwrap_or(f64::NAN))
    }

    fn tempers(&self) -> bool {
        self.0.tempers()
    }

    fn sense(&self) -> Sense {
        self.0.sense()
    }

    fn unit(&self) -> f64 {
        self.0.unit()
    }

    fn draw(
        &self,
        rng: &mut dyn Rng,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<DMatrix<T>>, FitError> {
        self.0.draw(rng, progress)
    }

    fn given(&self, block: usize, value: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        self.0.given(block, value)
    }

    fn complete(
        &self,
        blocks: &mut [DMatrix<T>],
        given: &[bool],
        progress: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        if given.contains(&true)
            && let Some(even) = self.0.even()?
        {
            explain_given(self, blocks, given, even, progress)?;
        }
        self.0.complete(blocks, given, progress)
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
        match self.0.unsupported(at)? {
            Some((index, value)) => Err(FitError::Support { index, value }),
            None => Ok(()),
        }
    }

    fn separable(&self) -> Result<&dyn Separable<T>, FitError> {
        self.0.separable()
    }

    fn expectation(&self) -> Option<&dyn Expectation<T>> {
        Some(&self.0)
    }

    fn residual(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let specs = self.0.blocks();
        if let Some(spec) = specs.iter().find(|spec| spec.prior.is_some()) {
            return Err(FitError::NoResidual {
                why: format!("`{}` has a prior", spec.name),
            });
        }
        match Annealing::of(powers::<T, E>(&self.0), at.next()) {
            Annealing::Stays(j) => {
                return Err(FitError::NoResidual {
                    why: format!("`{}` is raised to a constant power", specs[j].name),
                });
            }
            Annealing::Moves(_) => return Ok(f64::INFINITY),
            Annealing::Done => {}
        }
        if let Some(residual) = self.0.residual(at) {
            return residual;
        }
        let mut next = at.clone();
        self.step(&mut next, false)?;
        // Not a number is the largest of all.
        let largest = |worst: f64, x: f64| match x <= worst || worst.is_nan() {
            true => worst,
            false => x,
        };
        let moves = specs.iter().enumerate().map(|(j, spec)| {
            let pairs = at.at(j).iter().zip(next.at(j));
            let moves = pairs.map(|(a, b)| (a.to_f64() - b.to_f64()).abs());
            let moved = moves.fold(0.0, largest);
            match spec.constraint {
                Constraint::Simplex => moved,
                // Rates have a unit: in parts of their sum.
                _ if moved > 0.0 => {
                    let sizes = next.at(j).iter().map(|x| x.to_f64().abs());
                    moved / sizes.sum::<f64>()
                }
                _ => moved,
            }
        });
        Ok(moves.fold(0.0, largest))
    }

    fn rate_unit(&self, block: usize) -> Option<f64> {
        self.0.rate_unit(block)
    }

    fn mass(&self) -> f64 {
        self.0.mass()
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        self.0.facts()
    }

    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        self.0.scale(at)
    }

    fn power(&self) -> f64 {
        self.0.power()
    }

    fn extrapolates(&self, at: &Parameters<T>) -> Result<(), FitError> {
        extrapolates(self.0.blocks(), at)?;
        let iteration = at.next();
        let name = |j: usize| self.0.blocks()[j].name.to_string();
        match Annealing::of(powers::<T, E>(&self.0), iteration) {
            Annealing::Done => Ok(()),
            Annealing::Moves(j) => Err(FitError::Annealing {
                block: name(j),
                iteration,
            }),
            Annealing::Stays(j) => Err(FitError::Conflict {
                what: format!(
                    "extrapolation cannot be combined with the constant power of `{}`: expected the solver `em`",
                    name(j)
                ),
            }),
        }
    }
}
