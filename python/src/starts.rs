//! Fits from several starts, side by side.
//!
//! Start `r` is that of the command: stream `r` of the seed. What is kept is the best of them as if they were made one after the other, so
//! that it does not depend on the number of threads.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use plca::fit::far::FarCell;
use plca::fit::{
    AnyModel, Checkpoint, Deadline, Event, Fit, FitError, Init, Iteration, Parameters, Progress,
    Sense, Solver, Status, Stop,
};
use plca::io::ModelFile;
use plca::tensor::Data;
use plca_run::ModelEntry;
use rayon::ThreadPoolBuilder;

use crate::data::Scalar;
use crate::error::{Refused, wrong};
use crate::outcome::{Outcome, is_posterior};
use crate::supervise::Control;

/// How a model is fitted, and from how many starts.
pub(crate) struct Starts<'a, T: Scalar> {
    pub(crate) init: Init<T>,
    pub(crate) seed: u64,
    pub(crate) count: u32,
    pub(crate) solver: Solver,
    pub(crate) stop: Stop,
    /// Whether the objective without priors is asked for, too.
    pub(crate) likelihood: bool,
    pub(crate) control: &'a Control,
}

/// What a fit found.
pub(crate) struct Fitted {
    pub(crate) file: ModelFile,
    pub(crate) outcome: Outcome,
    pub(crate) restored: Vec<String>,
    /// A hidden cell that is approximated by far more than any datum.
    pub(crate) far: Option<FarCell>,
    /// Indices of every dimension of which no cell was observed.
    pub(crate) unobserved: Vec<Vec<usize>>,
    maximised: bool,
}

impl Fitted {
    fn of<T: Scalar>(
        entry: &ModelEntry,
        fit: &Fit<Parameters<T>>,
        outcome: Outcome,
        maximised: bool,
    ) -> Self {
        let events = fit.events().iter().filter_map(|event| match event {
            Event::SupportRestored { block, .. } => Some(block.clone()),
            _ => None,
        });
        Self {
            outcome,
            restored: events.collect(),
            far: None,
            unobserved: Vec::new(),
            maximised,
            file: entry.file(&fit.state().widened()),
        }
    }

    fn is_better_than(&self, other: &Self) -> bool {
        match self.maximised {
            true => self.outcome.compared > other.outcome.compared,
            false => self.outcome.compared < other.outcome.compared,
        }
    }
}

/// The ends of starts, as they come.
#[derive(Default)]
struct Ends {
    /// Those that are better than all of the starts before them.
    better: BTreeMap<u32, Fitted>,
    refused: BTreeMap<u32, Refused>,
}

impl Ends {
    fn enter(&mut self, start: u32, end: Result<Fitted, Refused>) {
        let end = match end {
            Ok(end) => end,
            Err(refused) => return drop(self.refused.insert(start, refused)),
        };
        let before = self.better.range(..start).next_back();
        if before.is_none_or(|(_, before)| end.is_better_than(before)) {
            let stays =
                |&other: &u32, kept: &mut Fitted| other < start || kept.is_better_than(&end);
            self.better.retain(stays);
            self.better.insert(start, end);
        }
    }

    /// The best of the starts up to the last one that counts.
    fn best(mut self, last: u32) -> Result<Fitted, Refused> {
        let refused = self.refused.pop_first();
        if let Some((start, refused)) = refused
            && start <= last
        {
            return Err(refused);
        }
        self.better.retain(|&start, _| start <= last);
        match self.better.pop_last() {
            Some((_, best)) => Ok(best),
            None => wrong("X: no start came to an end"),
        }
    }
}

impl<T: Scalar> Starts<'_, T> {
    /// The best end of all starts. Where a callback ends one, those after it do not count.
    pub(crate) fn best(
        &self,
        entry: &ModelEntry,
        model: &dyn AnyModel<T>,
        data: &dyn Data<T>,
    ) -> Result<Fitted, Refused> {
        let ends = Mutex::new(Ends::default());
        let last = AtomicU32::new(u32::MAX);
        let (stop, limit) = (self.control.interrupt(), self.stop.deadline());
        side_by_side(self.count.max(1), |start| {
            // Where all is to end the first start still says where it would have begun.
            let late = start > 0 && (stop.is_raised() || limit.is_past());
            if last.load(Relaxed) < start || late {
                return false;
            }
            let end = self.end((start, &last, limit), entry, model, data);
            if end.is_err() {
                last.fetch_min(start, Relaxed);
            }
            let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
            ends.enter(start, end);
            true
        })?;
        let ends = ends.into_inner().unwrap_or_else(PoisonError::into_inner);
        ends.best(last.into_inner())
    }

    fn end(
        &self,
        (start, last, limit): (u32, &AtomicU32, Deadline),
        entry: &ModelEntry,
        model: &dyn AnyModel<T>,
        data: &dyn Data<T>,
    ) -> Result<Fitted, Refused> {
        let run = model.on(data)?;
        let algorithm = run.algorithm();
        let maximised = algorithm.sense() == Sense::Maximise;
        let posterior = is_posterior(algorithm.blocks());
        let mut rng = plca::seed(self.seed);
        rng.set_stream(u64::from(start));
        let mut ended = false;
        let mut told = |done, of| {
            if last.load(Relaxed) < start {
                return ControlFlow::Break(Status::Interrupted);
            }
            let answer = self.control.before(start, done, of);
            ended = matches!(answer, ControlFlow::Break(Status::Custom(_)));
            answer
        };
        let mut progress = Progress::to(&mut told);
        let at = self
            .init
            .parameters_with(algorithm, &mut rng, &mut progress);
        if ended || at == Err(FitError::Interrupted) {
            // The starts before it count.
            last.fetch_min(start.saturating_sub(1), Relaxed);
            if start == 0 && ended {
                return wrong(
                    "the callback ended the fit while its start was computed: there is no model yet",
                );
            }
        }
        let at = at?;
        let observer = |it: &Iteration<'_, T>| {
            if last.load(Relaxed) < start {
                return ControlFlow::Break(Status::Interrupted);
            }
            let answer = self.control.after(start, it);
            if let ControlFlow::Break(Status::Custom(_)) = answer {
                last.fetch_min(start, Relaxed);
            }
            answer
        };
        let mut stop = self.stop.clone();
        stop.time_limit = limit.left();
        let run = run.solver(self.solver).stop(stop);
        let fit = run.observe(observer).resume(Checkpoint::new(at))?;
        let mut outcome = Outcome::of(&fit, posterior)?;
        if self.likelihood {
            outcome.likelihood = Some(model.bind(data)?.likelihood(fit.state())?);
        }
        Ok(Fitted::of(entry, &fit, outcome, maximised))
    }
}

/// Calls `each` with 0, 1, … below `count`, as many at once as there are threads, which are shared out among them; one that answers false
/// ends the work.
fn side_by_side(count: u32, each: impl Fn(u32) -> bool + Sync) -> Result<(), Refused> {
    let threads = rayon::current_num_threads();
    let workers = threads.min(count as usize);
    let next = AtomicU64::new(0);
    let work = || {
        while let Some(start) = u32::try_from(next.fetch_add(1, Relaxed)).ok()
            && start < count
            && each(start)
        {}
    };
    if workers == 1 {
        work();
        return Ok(());
    }
    // A pool for each: in one of them all, a thread that waits for a part of its start would begin another start within it.
    let pool = |worker: usize| {
        let share = threads / workers + usize::from(worker < threads % workers);
        ThreadPoolBuilder::new().num_threads(share).build()
    };
    let pools: Result<Vec<_>, _> = (0..workers).map(pool).collect();
    let pools = pools.map_err(|e| Refused::Memory(format!("{threads} threads for starts: {e}")))?;
    thread::scope(|scope| {
        for pool in &pools {
            scope.spawn(|| pool.install(work));
        }
    });
    Ok(())
}
