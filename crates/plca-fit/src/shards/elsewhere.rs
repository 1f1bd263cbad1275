//! Shards that an engine outside of this crate holds.

use std::cell::RefCell;
use std::fmt::Debug;

use plca_tensor::Real;

use super::sharded::{checked, likelihood, settles};
use super::squared::squared;
use super::states::Task;
use super::stepwise::learn;
use super::{Ask, Sharded, Shared, Stats, Stepwise, Survey, Whole};
use crate::em::{constant, extrapolates};
use crate::{Algorithm, Axis, BlockSpec, FitError, Parameters, Sense, Stepped};

/// The holder of the shards and of the blocks that belong to their samples: Dask, MPI or others.
pub trait Engine<T: Real>: Debug {
    /// A pass over all shards under the shared parameters: each makes its `e_step`, and keeps what belongs to its samples
    /// where counts were asked for. The answer is the root of the [`Partial`](super::Partial) of their statistics.
    ///
    /// # Errors
    ///
    /// What the engine has met.
    fn pass(&self, shared: &Shared<T>, ask: Ask) -> Result<Stats, FitError>;
}

/// A model on shards that an engine holds: an [`Algorithm`] for a [`Run`](crate::Run) by [`Solver::Em`](crate::Solver::Em),
/// [`Solver::Squarem`](crate::Solver::Squarem) or [`Solver::Fast`](crate::Solver::Fast), whose parameters are the shared ones.
///
/// Results are bit-identical to those of [`InProcess`](super::InProcess) over the same shards. What belongs to the samples is with the engine:
/// at the end `finish` of [`Sharded`] completes it, and `gather` puts all together.
#[derive(Debug)]
pub struct Elsewhere<'a, T: Real> {
    model: &'a dyn Sharded<T>,
    engine: &'a dyn Engine<T>,
    whole: Whole<T>,
    blocks: Vec<BlockSpec<T>>,
    shared: &'a RefCell<Shared<T>>,
}

impl<'a, T: Real> Elsewhere<'a, T> {
    /// The model at shared parameters: those of a start, which every iteration replaces.
    ///
    /// # Errors
    ///
    /// [`FitError`]: settings that need all data at once.
    pub fn new(
        model: &'a dyn Sharded<T>,
        engine: &'a dyn Engine<T>,
        shared: &'a RefCell<Shared<T>>,
    ) -> Result<Self, FitError> {
        let whole = checked(model, shared.borrow().survey())?;
        let blocks = whole.blocks.iter().enumerate();
        let blocks = blocks.filter(|&(j, _)| model.sample_axis(&whole.blocks, j) == Axis::None);
        Ok(Self {
            blocks: blocks.map(|(_, spec)| spec.clone()).collect(),
            model,
            engine,
            whole,
            shared,
        })
    }

    fn survey(&self) -> Survey {
        self.shared.borrow().survey().clone()
    }

    fn advance(
        &self,
        at: &mut Parameters<T>,
        task: Task,
        measure: bool,
    ) -> Result<Stepped, FitError> {
        let mut shared = self.shared.borrow().clone();
        self.checked(&shared, at)?;
        // A start that is not made yet comes first.
        if !matches!(shared.task, Task::Start(_)) {
            shared = shared.to(task);
        }
        let stats = self.engine.pass(&shared, Ask::step(measure))?;
        let objective = self.model.m_step(&mut shared, stats)?;
        *at = shared.parameters().clone();
        self.shared.replace(shared);
        Ok(Stepped::of(objective))
    }

    /// The statistics of all shards. Parameters that are not those of the last iteration nobody can answer for: the shards have moved on.
    fn pass(&self, at: &Parameters<T>, ask: Ask) -> Result<(Shared<T>, Stats), FitError> {
        let shared = self.shared.borrow().clone();
        self.checked(&shared, at)?;
        let stats = self.engine.pass(&shared, ask)?;
        Ok((shared, stats))
    }

    fn checked(&self, shared: &Shared<T>, at: &Parameters<T>) -> Result<(), FitError> {
        if shared.parameters() != at {
            return Err(FitError::Conflict {
                what:
                    "shards on workers go from one iteration to the next: expected the solver `em`, `squarem` or `fast`"
                        .into(),
            });
        }
        Ok(())
    }
}

/// Makes a start of what `begin` and `begin_local` of [`Sharded`] have drawn: by stepwise EM over this number of shards, where that is asked for; and by
/// the [`Sharded::start_passes`] over all shards. Otherwise nothing.
///
/// # Errors
///
/// Those of the engine and of `m_step` of [`Sharded`]; [`FitError::Setting`], and [`FitError::Conflict`] for a model that has no stepwise start.
pub fn started<T: Real>(
    model: &dyn Sharded<T>,
    engine: &dyn Engine<T>,
    shared: &mut Shared<T>,
    stepwise: Option<(u32, Stepwise)>,
) -> Result<(), FitError> {
    if let Some((shards, how)) = stepwise {
        learn(model.learns().as_deref(), engine, shared, shards, how)?;
    }
    while matches!(shared.task, Task::Start(_)) {
        let stats = engine.pass(shared, Ask::step(false))?;
        model.m_step(shared, stats)?;
    }
    Ok(())
}

impl<T: Real> Algorithm<T> for Elsewhere<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.blocks
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        self.advance(at, Task::Iterate, measure)
    }

    fn by_samples(&self) -> Result<bool, FitError> {
        settles(self.model, &self.whole)
    }

    fn step_by_samples(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        self.advance(at, Task::Settle, measure)
    }

    fn squared(&self, at: &mut Parameters<T>, measure: bool) -> Option<Result<Stepped, FitError>> {
        let shared = self.shared.borrow().clone();
        let made = self.checked(&shared, at).and_then(|()| {
            let (shared, stepped) = squared(self.model, &self.whole, self.engine, shared, measure)?;
            *at = shared.parameters().clone();
            self.shared.replace(shared);
            Ok(stepped)
        });
        Some(made)
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let (shared, stats) = self.pass(at, Ask::objective())?;
        Ok(self.model.objective(&shared, &stats)?.unwrap_or(f64::NAN))
    }

    /// That of all blocks, of which those of the samples are elsewhere.
    fn constant(&self) -> f64 {
        constant(&self.whole.blocks, self.whole.sense)
    }

    fn likelihood(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let shared = self.shared.borrow().clone();
        self.checked(&shared, at)?;
        let shared = shared.to(Task::Likelihood);
        let stats = self.engine.pass(&shared, Ask::objective())?;
        Ok(likelihood(&self.whole, &shared, &stats).unwrap_or(f64::NAN))
    }

    /// That of a model whose hidden cells are imputed in one scale for all shards; others have one for every sample, which the shards know.
    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        let survey = self.survey();
        if survey.complete || !self.whole.conditional {
            return Ok(None);
        }
        let (_, stats) = self.pass(at, Ask::objective())?;
        // [SPEC 4] s = v_obs / Σ_obs P
        Ok(stats.seen.map(|seen| vec![survey.total / seen]))
    }

    fn check_start(&self, at: &Parameters<T>) -> Result<(), FitError> {
        let (_, stats) = self.pass(at, Ask::support())?;
        stats.check_support()
    }

    fn extrapolates(&self, at: &Parameters<T>) -> Result<(), FitError> {
        extrapolates(&self.blocks, at)
    }

    fn tempers(&self) -> bool {
        self.whole.power != 1.0
    }

    fn sense(&self) -> Sense {
        self.whole.sense
    }

    fn unit(&self) -> f64 {
        self.survey().absolute
    }

    fn mass(&self) -> f64 {
        self.whole.mass
    }

    fn power(&self) -> f64 {
        self.whole.power
    }
}
