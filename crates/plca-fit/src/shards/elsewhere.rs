//! Shards that an engine outside of this crate holds.

use std::borrow::Cow;
use std::cell::{Ref, RefCell};
use std::fmt::Debug;

use plca_tensor::Real;

use super::sharded::{checked, likelihood, settles};
use super::squared::squared;
use super::states::Task;
use super::{GlobalModel, PassRequest, Sharded, Shared, Stats};
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
    fn pass(&self, shared: &Shared<T>, ask: PassRequest) -> Result<Stats, FitError>;
}

/// A model on shards that an engine holds: an [`Algorithm`] for a [`Run`](crate::Run) by [`Solver::Em`](crate::Solver::Em),
/// [`Solver::Squarem`](crate::Solver::Squarem) or [`Solver::Fast`](crate::Solver::Fast), whose parameters are the shared ones.
///
/// Results are bit-identical to those of [`InProcess`](super::InProcess) over the same shards, which is an engine of this one. What belongs to the
/// samples is with the engine: at the end `finish` of [`Sharded`] completes it, and `gather` puts all together.
#[derive(Debug)]
pub struct Elsewhere<'a, T: Real> {
    model: &'a dyn Sharded<T>,
    engine: &'a dyn Engine<T>,
    whole: Cow<'a, GlobalModel<T>>,
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
        Ok(Self::of(model, engine, Cow::Owned(whole), shared))
    }

    /// The same of a model that was checked.
    pub(super) fn of(
        model: &'a dyn Sharded<T>,
        engine: &'a dyn Engine<T>,
        whole: Cow<'a, GlobalModel<T>>,
        shared: &'a RefCell<Shared<T>>,
    ) -> Self {
        let blocks = whole.blocks.iter().enumerate();
        let blocks = blocks.filter(|&(j, _)| model.sample_axis(&whole.blocks, j) == Axis::None);
        Self {
            blocks: blocks.map(|(_, spec)| spec.clone()).collect(),
            model,
            engine,
            whole,
            shared,
        }
    }

    /// An iteration; where it fails, the shared parameters are as they were.
    pub(super) fn iterate(&self, task: Task, measure: bool) -> Result<Stepped, FitError> {
        let before = self.shared.borrow().task;
        // A start that is not made yet comes first.
        if !matches!(before, Task::Start(_)) {
            self.shared.borrow_mut().task = task;
        }
        let stats = self
            .engine
            .pass(&self.shared.borrow(), PassRequest::step(measure));
        let made = stats.and_then(|stats| {
            let mut shared = self.shared.borrow_mut();
            self.model.m_step(&mut shared, stats)
        });
        if made.is_err() {
            self.shared.borrow_mut().task = before;
        }
        Ok(Stepped::of(made?))
    }

    /// Takes parameters to where an iteration takes the shared ones.
    fn advance(
        &self,
        at: &mut Parameters<T>,
        step: impl FnOnce() -> Result<Stepped, FitError>,
    ) -> Result<Stepped, FitError> {
        self.checked(at)?;
        let stepped = step()?;
        *at = self.shared.borrow().parameters().clone();
        Ok(stepped)
    }

    /// Parameters that are not those of the last iteration nobody can answer for: the shards have moved on.
    fn checked(&self, at: &Parameters<T>) -> Result<(), FitError> {
        let shared = self.shared.borrow();
        let own = &shared.parameters;
        // Numbers that are none are those of the last iteration too.
        let like = |(a, b): (&T, &T)| a == b || a.to_f64().is_nan() && b.to_f64().is_nan();
        let mut both = own.matrices().iter().zip(at.matrices());
        let same = both.all(|(a, b)| a.shape() == b.shape() && a.iter().zip(b).all(like));
        if same && own.iteration() == at.iteration() {
            return Ok(());
        }
        Err(FitError::Conflict {
            what:
                "shards on workers go from one iteration to the next: expected the solver `em`, `squarem` or `fast`"
                    .into(),
        })
    }

    /// Statistics of parameters, and the shared ones that these are.
    fn pass(
        &self,
        at: &Parameters<T>,
        ask: PassRequest,
    ) -> Result<(Ref<'_, Shared<T>>, Stats), FitError> {
        self.checked(at)?;
        let shared = self.shared.borrow();
        let stats = self.engine.pass(&shared, ask)?;
        Ok((shared, stats))
    }
}

/// Makes a start of what `begin` and `begin_local` of [`Sharded`] have drawn, by the [`Sharded::start_passes`] over all shards.
///
/// # Errors
///
/// Those of the engine and of `m_step` of [`Sharded`].
pub fn started<T: Real>(
    model: &dyn Sharded<T>,
    engine: &dyn Engine<T>,
    shared: &mut Shared<T>,
) -> Result<(), FitError> {
    while matches!(shared.task, Task::Start(_)) {
        let stats = engine.pass(shared, PassRequest::step(false))?;
        model.m_step(shared, stats)?;
    }
    Ok(())
}

impl<T: Real> Algorithm<T> for Elsewhere<'_, T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.blocks
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        self.advance(at, || self.iterate(Task::Iterate, measure))
    }

    fn by_samples(&self) -> Result<bool, FitError> {
        settles(self.model, &self.whole)
    }

    fn step_by_samples(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        self.advance(at, || self.iterate(Task::Settle, measure))
    }

    fn squared(&self, at: &mut Parameters<T>, measure: bool) -> Option<Result<Stepped, FitError>> {
        Some(self.advance(at, || {
            let shared = self.shared.borrow().clone();
            let (shared, stepped) = squared(self.model, &self.whole, self.engine, shared, measure)?;
            self.shared.replace(shared);
            Ok(stepped)
        }))
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let (shared, stats) = self.pass(at, PassRequest::objective())?;
        Ok(self.model.objective(&shared, &stats)?.unwrap_or(f64::NAN))
    }

    /// That of all blocks, of which those of the samples are elsewhere.
    fn constant(&self) -> f64 {
        constant(&self.whole.blocks, self.whole.sense)
    }

    fn likelihood(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        self.checked(at)?;
        let shared = self.shared.borrow().clone().to(Task::Likelihood);
        let stats = self.engine.pass(&shared, PassRequest::objective())?;
        Ok(likelihood(&self.whole, &shared, &stats).unwrap_or(f64::NAN))
    }

    /// That of a model whose hidden cells are imputed in one scale for all shards; others have one for every sample, which the shards know.
    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        if self.shared.borrow().survey.complete || !self.whole.conditional {
            return Ok(None);
        }
        let (shared, stats) = self.pass(at, PassRequest::objective())?;
        // [SPEC 4] s = v_obs / Σ_obs P
        Ok(stats.seen.map(|seen| vec![shared.survey.total / seen]))
    }

    fn check_start(&self, at: &Parameters<T>) -> Result<(), FitError> {
        self.pass(at, PassRequest::support())?.1.check_support()
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
        self.shared.borrow().survey.absolute
    }

    fn mass(&self) -> f64 {
        self.whole.mass
    }

    fn power(&self) -> f64 {
        self.whole.power
    }
}
