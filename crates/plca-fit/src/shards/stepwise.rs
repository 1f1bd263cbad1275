//! Starts that are learnt from the shards in rounds, by stepwise EM.

use std::fmt::Debug;

use nalgebra::DMatrix;
use plca_tensor::{Data, Real};

use super::states::Task;
use super::{Engine, Local, Merge, PassRequest, Shared, Stats};
use crate::{FitError, Parameters};

/// A start by stepwise EM: passes over all shards in rounds, after each of which the shared blocks are renewed.
///
/// ```
/// use plca_fit::shards::Stepwise;
/// let start = Stepwise::new(2).shards(16);
/// assert_eq!(start.rounds(64), 4);                                    // in a pass: shards 0, 4, 8, …; then 1, 5, 9, …
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Stepwise {
    /// Passes over all shards, at least 1.
    pub passes: u32,
    /// The shards of a round, at most (default 8, at least 1).
    pub shards: u32,
}

impl Stepwise {
    /// A start by this number of passes.
    pub fn new(passes: u32) -> Self {
        Self { passes, shards: 8 }
    }

    /// Sets the shards of a round.
    pub fn shards(mut self, shards: u32) -> Self {
        self.shards = shards;
        self
    }

    /// The rounds of a pass over this number of shards. With `R` rounds, round `r` takes the shards `r`, `r + R`, `r + 2 R`, …: all workers
    /// have some of them.
    pub fn rounds(self, shards: u32) -> u32 {
        shards.div_ceil(self.shards.max(1)).max(1)
    }

    pub(super) fn check(self) -> Result<(), FitError> {
        FitError::if_zero("passes", self.passes as usize)?;
        FitError::if_zero("shards", self.shards as usize)
    }
}

/// The shards that a round learns from: those whose number leaves the rest `place` after division by `rounds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Round {
    /// The rounds of a pass.
    pub rounds: u32,
    /// Which of them this is, from 0.
    pub place: u32,
    /// The number of the round among all that learnt something, from 1.
    pub number: u64,
}

impl Round {
    /// Whether the round learns from a shard.
    pub(super) fn has(self, shard: u32) -> bool {
        shard % self.rounds.max(1) == self.place
    }
}

/// What a round has learnt; that of all its shards is the sum.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Learnt {
    /// Expected counts of the shared factors.
    #[cfg_attr(feature = "serde", serde(with = "crate::packed::matrices"))]
    pub counts: Vec<DMatrix<f64>>,
    /// The sum of the data, hidden cells imputed.
    pub mass: f64,
}

impl Merge for Learnt {
    fn merge(&mut self, right: &Self) {
        let like = |(a, b): (&DMatrix<f64>, &DMatrix<f64>)| a.shape() == b.shape();
        if self.counts.len() != right.counts.len()
            || !self.counts.iter().zip(&right.counts).all(like)
        {
            // Refused by whoever reads the sum: no factor has no rows.
            self.counts.clear();
            return;
        }
        let both = self.counts.iter_mut().zip(&right.counts);
        both.for_each(|(a, b)| *a += b);
        self.mass += right.mass;
    }
}

/// A model that learns from shards in rounds.
pub trait Learns<T: Real>: Debug {
    /// What a shard teaches under the shared blocks, and its own blocks as they were found, in place of `own`; `None` of a shard without mass.
    ///
    /// # Errors
    ///
    /// [`FitError`]: a cell that frozen blocks exclude, data that cannot be read.
    fn learn(
        &self,
        shard: &dyn Data<T>,
        shared: &Shared<T>,
        round: Round,
        own: &mut [DMatrix<T>],
    ) -> Result<Option<Learnt>, FitError>;

    /// The state in which the rounds begin.
    ///
    /// # Errors
    ///
    /// [`FitError`] for settings with which there is nothing to learn in rounds.
    fn begin(&self, shared: &Shared<T>) -> Result<Box<dyn Learner<T>>, FitError>;
}

/// The state of rounds of learning.
pub trait Learner<T: Real>: Debug {
    /// Renews the shared blocks from what a round has learnt.
    ///
    /// # Errors
    ///
    /// [`FitError`] of the M-step; [`FitError::Conflict`] for what another model has learnt.
    fn renew(&mut self, learnt: Learnt, shared: &mut Parameters<T>) -> Result<(), FitError>;

    /// Makes the shared blocks those that the shards' own blocks, as they were found, belong to. Default: they are.
    fn complete(&self, shared: &mut Parameters<T>) {
        let _ = shared;
    }
}

/// Makes the start of a run by stepwise EM: rounds of [`Learns::learn`], and one pass of EM over all shards that completes it.
///
/// # Errors
///
/// [`FitError::Setting`]; [`FitError::Conflict`] for a model that does not learn in rounds; those of the engine and of M-steps.
pub(super) fn learn<T: Real>(
    learns: Option<&dyn Learns<T>>,
    engine: &dyn Engine<T>,
    shared: &mut Shared<T>,
    shards: u32,
    how: Stepwise,
) -> Result<(), FitError> {
    how.check()?;
    let Some(learns) = learns else {
        let what = "this model has no stepwise start: expected PLSA, PLCA or KL-NMF";
        return Err(FitError::Conflict { what: what.into() });
    };
    let mut learner = learns.begin(shared)?;
    let (rounds, mut number) = (how.rounds(shards), 0);
    for _ in 0..how.passes {
        for place in 0..rounds {
            let round = Round {
                rounds,
                place,
                number: number + 1,
            };
            let now = shared.clone().to(Task::Learn(round));
            // Shards without mass teach nothing.
            if let Some(learnt) = engine.pass(&now, PassRequest::step(false))?.learnt {
                learner.renew(*learnt, &mut shared.parameters)?;
                number += 1;
            }
        }
    }
    learner.complete(&mut shared.parameters);
    shared.task = Task::Start(0);
    Ok(())
}

/// What a shard of a round teaches; others nothing.
pub(super) fn taught<T: Real>(
    learns: Option<&dyn Learns<T>>,
    blocks: usize,
    shard: &dyn Data<T>,
    local: &mut Local<T>,
    (shared, round): (&Shared<T>, Round),
) -> Result<Stats, FitError> {
    let mut stats = Stats::none(blocks);
    if round.number == 0 {
        let what = "round 0 of a stepwise start: rounds are counted from 1";
        return Err(FitError::Conflict { what: what.into() });
    }
    if let Some(learns) = learns.filter(|_| round.has(local.place.shard)) {
        let mut own = local.blocks.clone();
        stats.learnt = learns.learn(shard, shared, round, &mut own)?.map(Box::new);
        local.blocks = own;
    }
    Ok(stats)
}
