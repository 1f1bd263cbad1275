//! What engines move: where shards are, what is known of them, and the statistics that travel.

use nalgebra::DMatrix;
use plca_tensor::{Data, DataError, Real};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::{Merge, Version};
use crate::{Exposure, FitError, Parameters};

/// The source of everything drawn: a seed, and a stream of its own for every start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed {
    /// The seed of ChaCha8.
    pub seed: u64,
    /// The stream, 0 for the first start.
    pub stream: u64,
}

impl Seed {
    /// The generator of a run on all data at once, at this word of its stream.
    pub(super) fn at(self, word: u128) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(self.stream);
        rng.set_word_pos(word);
        rng
    }
}

/// Where a shard is among all data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ShardId {
    /// Its number, from 0.
    pub shard: u32,
    /// How many shards there are.
    pub shards: u32,
    /// Its first sample, counted over all shards.
    pub first: usize,
}

/// Facts about data that are collected before a fit; those of all shards are sums over the shards.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Survey {
    pub(super) version: Version,
    /// The mode that is cut.
    pub along: usize,
    /// The size of each mode.
    pub shape: Vec<usize>,
    /// The sum of the observed cells.
    pub total: f64,
    /// The sum of their absolute values.
    pub absolute: f64,
    /// Whether every cell was observed.
    pub complete: bool,
    /// The number of observed cells, zeros included, where the model asks for it.
    pub observed: u64,
    /// The largest absolute value, where the model asks for it.
    pub largest: f64,
    /// The shape of the first shard that does not fit those before it.
    pub(super) odd: Option<Vec<usize>>,
}

impl Survey {
    /// The facts about a shard that is cut along a mode.
    pub fn of<T: Real>(shard: &dyn Data<T>, along: usize) -> Self {
        let summary = shard.summary();
        Self {
            version: Version,
            along,
            shape: shard.shape().to_vec(),
            total: summary.total,
            absolute: summary.absolute,
            complete: shard.is_complete(),
            observed: 0,
            largest: 0.0,
            odd: None,
        }
    }

    /// Whether shards of these sizes follow each other along the mode that is cut.
    fn fits(&self, right: &Self) -> bool {
        let same = |(mode, (a, b)): (usize, (&usize, &usize))| mode == self.along || a == b;
        let mut modes = self.shape.iter().zip(&right.shape).enumerate();
        (self.along, self.shape.len()) == (right.along, right.shape.len()) && modes.all(same)
    }

    /// Refuses data that cannot be fitted.
    ///
    /// # Errors
    ///
    /// [`FitError::DataShape`] for the first shard of other sizes than those before it, [`FitError::NotFinite`] for their sum,
    /// [`DataError::NoMass`] where all observed cells are 0.
    pub fn check(&self) -> Result<(), FitError> {
        if let Some(odd) = &self.odd {
            let size = |(mode, n): (usize, &usize)| match mode == self.along {
                true => "any".into(),
                false => n.to_string(),
            };
            return Err(FitError::DataShape {
                got: odd.clone(),
                expected: self.shape.iter().enumerate().map(size).collect(),
            });
        }
        if !self.absolute.is_finite() {
            return Err(FitError::NotFinite {
                what: "the sum of the data".into(),
                value: self.absolute,
            });
        }
        match self.absolute > 0.0 {
            true => Ok(()),
            false => Err(DataError::NoMass.into()),
        }
    }
}

impl Merge for Survey {
    fn merge(&mut self, right: &Self) {
        if self.odd.is_none() {
            self.odd = match self.fits(right) {
                true => right.odd.clone(),
                false => Some(right.shape.clone()),
            };
        }
        if self.odd.is_none() {
            self.shape[self.along] += right.shape[self.along];
        }
        self.total += right.total;
        self.absolute += right.absolute;
        self.complete &= right.complete;
        self.observed += right.observed;
        self.largest = self.largest.max(right.largest);
    }
}

/// The results that are wanted from a pass over a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassRequest {
    /// Counts, for a step.
    pub counts: bool,
    /// The objective.
    pub value: bool,
    /// Whether the model gives every positive cell a probability; asked of a start.
    pub support: bool,
}

impl PassRequest {
    /// A step; with `measure`, also the objective before it.
    pub fn step(measure: bool) -> Self {
        Self {
            counts: true,
            value: measure,
            support: false,
        }
    }

    /// The objective alone.
    pub fn objective() -> Self {
        Self {
            counts: false,
            value: true,
            support: false,
        }
    }

    /// The support alone.
    pub fn support() -> Self {
        Self {
            counts: false,
            value: false,
            support: true,
        }
    }
}

/// What a pass over the shards is for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Task {
    /// An iteration, or the objective.
    #[default]
    Iterate,
    /// To make a start of blocks that are drawn: a pass, from 0.
    Start(u32),
    /// The likelihood alone, whatever the objective is.
    Likelihood,
    /// An iteration before which a shard notes its point, the first of three.
    First,
    /// The same with the second.
    Second,
    /// To complete the last iteration and tell how far the three points are apart.
    Measure,
    /// To go to where the three points lead by this step length.
    Extrapolate(f64),
    /// An iteration from there, of which a shard may refuse the point.
    Trial,
    /// An iteration from where a shard's own blocks are near their optimum.
    Settle,
}

/// The parameters that all shards share, and what follows from sums over all of them.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Shared<T: Real> {
    pub(super) version: Version,
    pub(super) survey: Survey,
    pub(super) parameters: Parameters<T>,
    /// Of every block whose columns run across the shards, what they are to be divided by, or sum to; of others nothing.
    pub(super) sums: Vec<Vec<f64>>,
    /// What the model's mass in hidden cells is multiplied by.
    pub(super) scale: f64,
    pub(super) task: Task,
    /// Whether a shard is where it was before it was extrapolated.
    pub(super) back: bool,
}

impl<T: Real> Shared<T> {
    /// The blocks that all shards share, by name, and the iterations done.
    pub fn parameters(&self) -> &Parameters<T> {
        &self.parameters
    }

    /// The facts about all data.
    pub fn survey(&self) -> &Survey {
        &self.survey
    }

    /// Of a block whose columns run across the shards, their sums over all of them; of others nothing.
    pub fn sums(&self, block: usize) -> &[f64] {
        self.sums.get(block).map_or(&[], Vec::as_slice)
    }

    /// The same for a pass of this kind.
    pub(super) fn to(mut self, task: Task) -> Self {
        self.task = task;
        self
    }
}

/// What a shard has still to do when it is given the shared parameters of the next iteration.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "T: serde::Serialize",
        deserialize = "T: serde::Deserialize<'de>"
    ))
)]
pub(super) enum Pending<T: Real> {
    Nothing,
    /// To divide the counts of blocks whose columns run across the shards by their sums over all shards.
    Counts(#[cfg_attr(feature = "serde", serde(with = "crate::packed::matrices"))] Vec<DMatrix<T>>),
    /// To add to its own blocks what is imputed of hidden cells, in the scale of all data; then as `Counts`.
    Imputed(
        #[cfg_attr(feature = "serde", serde(with = "crate::packed::matrices"))] Vec<DMatrix<T>>,
        #[cfg_attr(feature = "serde", serde(with = "crate::packed::matrices"))] Vec<DMatrix<T>>,
    ),
    /// To renew its own blocks by a pass over its data.
    Pass,
}

/// What belongs to the samples of a shard: it never leaves its worker, except for a checkpoint.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Local<T: Real> {
    pub(super) version: Version,
    pub(super) place: ShardId,
    /// What the model read off the shard.
    pub(super) known: Vec<f64>,
    #[cfg_attr(feature = "serde", serde(with = "crate::packed::matrices"))]
    pub(super) blocks: Vec<DMatrix<T>>,
    pub(super) pending: Pending<T>,
    /// Where it was before, as far as an extrapolation needs it: the blocks of one point after those of the other.
    #[cfg_attr(feature = "serde", serde(with = "crate::packed::matrices"))]
    pub(super) points: Vec<DMatrix<T>>,
}

impl<T: Real> Local<T> {
    /// The parts of the blocks that belong to the samples, in the model's order. `finish` completes an iteration.
    pub fn blocks(&self) -> &[DMatrix<T>] {
        &self.blocks
    }

    /// Where the shard is.
    pub fn place(&self) -> ShardId {
        self.place
    }
}

/// The statistics of a block.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Statistic {
    /// None: it is frozen, or renewed within the shards.
    Nothing,
    /// Expected counts of distributions.
    Counts(#[cfg_attr(feature = "serde", serde(with = "crate::packed::matrix"))] DMatrix<f64>),
    /// Expected counts of rates, and what they are divided by.
    Rates(
        #[cfg_attr(feature = "serde", serde(with = "crate::packed::matrix"))] DMatrix<f64>,
        Exposure<f64>,
    ),
    /// What columns that run across the shards are divided by.
    Sums(Vec<f64>),
    /// One of these, of the observed cells and of the model's mass in hidden ones.
    Imputed(Box<[Self; 2]>),
    /// Those of different models were added.
    Unlike,
}

impl Statistic {
    fn merge(&mut self, right: &Self) {
        let like = |a: &DMatrix<f64>, b: &DMatrix<f64>| a.shape() == b.shape();
        match (&mut *self, right) {
            (Self::Nothing, Self::Nothing) => {}
            (Self::Counts(a), Self::Counts(b)) if like(a, b) => *a += b,
            (Self::Rates(a, x), Self::Rates(b, y)) if like(a, b) => {
                *a += b;
                match (x, y) {
                    (Exposure::PerComponent(x), Exposure::PerComponent(y))
                        if x.len() == y.len() =>
                    {
                        add(x, y);
                    }
                    (Exposure::PerEntry(x), Exposure::PerEntry(y)) if like(x, y) => *x += y,
                    _ => *self = Self::Unlike,
                }
            }
            (Self::Sums(x), Self::Sums(y)) if x.len() == y.len() => add(x, y),
            (Self::Imputed(x), Self::Imputed(y)) => {
                x.iter_mut().zip(y.iter()).for_each(|(x, y)| x.merge(y));
            }
            _ => *self = Self::Unlike,
        }
    }
}

impl Statistic {
    /// The term of the completed data, from a scale of what is hidden.
    pub(super) fn completed(self, scale: f64) -> Self {
        let Self::Imputed(parts) = self else {
            return self;
        };
        let [mut observed, hidden] = *parts;
        observed.merge(&hidden.times(scale));
        observed
    }

    fn times(self, scale: f64) -> Self {
        let all = |x: Vec<f64>| x.into_iter().map(|x| x * scale).collect();
        match self {
            Self::Counts(x) => Self::Counts(x * scale),
            Self::Rates(x, Exposure::PerComponent(each)) => {
                Self::Rates(x * scale, Exposure::PerComponent(all(each)))
            }
            Self::Sums(x) => Self::Sums(all(x)),
            Self::Nothing => Self::Nothing,
            Self::Rates(..) | Self::Imputed(_) | Self::Unlike => Self::Unlike,
        }
    }
}

fn add(x: &mut [f64], y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

/// The statistics of a pass over a shard; those of all shards are their sum. Doubles, whatever the scalar of the fit.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stats {
    pub(super) version: Version,
    /// Of every block of the model.
    pub(super) terms: Vec<Statistic>,
    /// The objective without priors.
    pub(super) value: Option<f64>,
    /// The mass of the model in the observed cells, where hidden ones are imputed.
    pub(super) seen: Option<f64>,
    /// The log-densities of blocks that belong to samples.
    pub(super) ln_density: f64,
    /// The first positive cell, in row-major order of all data, to which the model gives the probability 0.
    pub(super) unsupported: Option<(Vec<usize>, f64)>,
    /// `|r|²` and `|u|²` of an extrapolation.
    pub(super) squares: Option<[f64; 2]>,
    /// Whether a shard refuses an extrapolated point.
    pub(super) refused: bool,
}

impl Stats {
    /// Empty statistics of a model with this number of blocks.
    pub(super) fn none(blocks: usize) -> Self {
        Self {
            version: Version,
            terms: vec![Statistic::Nothing; blocks],
            value: None,
            seen: None,
            ln_density: 0.0,
            unsupported: None,
            squares: None,
            refused: false,
        }
    }

    /// The objective without priors, if it was asked for.
    pub fn value(&self) -> Option<f64> {
        self.value
    }

    /// Refuses a model that gives no probability to a positive cell, where that was asked for or the objective showed it.
    ///
    /// # Errors
    ///
    /// [`FitError::Support`] with the first such cell.
    pub fn check_support(&self) -> Result<(), FitError> {
        match self.unsupported.clone() {
            Some((index, value)) => Err(FitError::Support { index, value }),
            None => Ok(()),
        }
    }
}

impl Merge for Stats {
    fn merge(&mut self, right: &Self) {
        if self.terms.len() != right.terms.len() {
            self.terms = vec![Statistic::Unlike; right.terms.len()];
        }
        let both = self.terms.iter_mut().zip(&right.terms);
        both.for_each(|(a, b)| a.merge(b));
        self.value = self.value.zip(right.value).map(|(a, b)| a + b);
        self.seen = self.seen.zip(right.seen).map(|(a, b)| a + b);
        self.ln_density += right.ln_density;
        self.squares = (self.squares.zip(right.squares)).map(|([a, b], [c, d])| [a + c, b + d]);
        self.refused |= right.refused;
        let earlier = |(index, _): &&(Vec<usize>, f64)| {
            let first = self.unsupported.as_ref();
            first.is_none_or(|(first, _)| index < first)
        };
        if let Some(first) = right.unsupported.as_ref().filter(earlier) {
            self.unsupported = Some(first.clone());
        }
    }
}
