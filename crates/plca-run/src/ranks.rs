//! Fits of data in shards by several processes, each of which holds a range of the shards.
//!
//! Every rank makes the same run: sums are joined and sent back to all, and the M-step of equal bits has equal bits. What a rank fails at travels with
//! the sums, so that all of them end.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use plca_fit::shards::{
    Elsewhere, Engine, Local, Merge, Partial, PassRequest, Seed, ShardId, Sharded, Shards, Shared,
    Stats, Survey, started,
};
use plca_fit::{
    Algorithm, Checkpoint, Fit, FitError, Iteration, Parameters, Run, Solver, Status, Stop,
};
use plca_io::{IoError, open_file, write_atomically};
use plca_tensor::Data;
use serde::Serialize;

use crate::world::{decode, encode};
use crate::{RunError, Scalar};

pub use crate::world::{Fault, Transport, World};

/// A program whose fits are those of ranks.
pub trait Program<T: Scalar>: Debug {
    /// Why it ends without a result.
    type Failure: Fault;

    /// What is wrong with a shard, or with what was asked for.
    fn failure(&self, e: FitError, shard: Option<u32>) -> Self::Failure;

    /// The solver of the run.
    ///
    /// # Errors
    ///
    /// One that the model does not have.
    fn solver(&self, of: &dyn Algorithm<T>) -> Result<Solver, Self::Failure>;

    /// Refuses a checkpoint that says so of its fit, after an iteration.
    ///
    /// # Errors
    ///
    /// How it differs from this fit.
    fn belongs(&self, path: &Path, known: &str, iteration: usize) -> Result<(), Self::Failure>;

    /// Looks at the run after every iteration, on rank 0 alone; whether to end it is asked where the objective was measured.
    ///
    /// # Errors
    ///
    /// What it could not tell of.
    fn after(&self, iteration: &Iteration<'_, T>) -> Result<bool, Self::Failure>;

    /// Whether somebody wants this rank to end.
    fn interrupted(&self) -> bool {
        false
    }

    /// Writes files, which nothing is to interrupt.
    fn writing<O>(&self, write: impl FnOnce() -> O) -> O {
        write()
    }
}

/// A folder of all ranks in which a run is kept, to go on from there.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The folder.
    pub folder: PathBuf,
    /// After how many iterations.
    pub every: Option<u64>,
    /// What is said of the fit: see [`Program::belongs`].
    pub known: String,
}

/// How a fit is made.
#[derive(Clone, Debug)]
pub struct RanksSettings {
    /// The source of everything drawn.
    pub seed: Seed,
    /// When it ends.
    pub stop: Stop,
    /// Where it is kept.
    pub kept: Option<Kept>,
    /// Whether [`Ranked::traffic`] is counted, which takes time.
    pub counts: bool,
}

/// What a rank gives and takes in an iteration, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Statistics that it gives.
    pub up: usize,
    /// The sum of those of all ranks.
    pub down: usize,
    /// Passes over the data.
    pub passes: u64,
}

/// Where a run stands: the parameters that all shards share, and what the run itself knows.
pub type At<T> = (Shared<T>, Checkpoint<T>);

/// A fit that has ended.
#[derive(Debug)]
pub struct FinishedFit<T: Scalar> {
    /// The run, of the blocks that all shards share.
    pub fit: Fit<Parameters<T>>,
    /// What all shards share.
    pub shared: RefCell<Shared<T>>,
}

/// The name of what says of a folder of checkpoints where the run stands.
const CHECKPOINT: &str = "checkpoint";
/// Before the names of what belongs to the samples of shards in it.
const PART: &str = "samples-";

/// The file of what belongs to the samples of a shard after an iteration.
fn part(folder: &Path, shard: u32, iteration: usize) -> PathBuf {
    folder.join(format!("{PART}{shard:05}-{iteration}"))
}

/// A rank at work: the engine of its run.
#[derive(Debug)]
pub struct Ranked<'a, T: Scalar, P: Program<T>> {
    program: &'a P,
    world: &'a World,
    model: &'a dyn Sharded<T>,
    shards: &'a dyn Shards<T>,
    /// Its shards.
    places: &'a [ShardId],
    course: &'a RanksSettings,
    locals: RefCell<Vec<Local<T>>>,
    /// The iteration of the last checkpoint.
    saved: Cell<Option<usize>>,
    /// What has ended the run.
    failure: RefCell<Option<P::Failure>>,
    /// Whether any rank was interrupted before the last pass.
    interrupted: Cell<bool>,
    traffic: Cell<Traffic>,
}

impl<T: Scalar, P: Program<T>> Engine<T> for Ranked<'_, T, P> {
    fn pass(&self, shared: &Shared<T>, ask: PassRequest) -> Result<Stats, FitError> {
        // What has ended the run is what all ranks say.
        if self.failure.borrow().is_some() {
            return Err(FitError::Interrupted);
        }
        self.passed(shared, ask).map_err(|e| {
            self.failure.replace(Some(e));
            FitError::Interrupted
        })
    }
}

impl<'a, T: Scalar, P: Program<T>> Ranked<'a, T, P> {
    /// A rank that has the shards at these places, which alone are read.
    pub fn new(
        (program, world): (&'a P, &'a World),
        model: &'a dyn Sharded<T>,
        (shards, places): (&'a dyn Shards<T>, &'a [ShardId]),
        course: &'a RanksSettings,
    ) -> Self {
        Self {
            program,
            world,
            model,
            shards,
            places,
            course,
            locals: RefCell::default(),
            saved: Cell::default(),
            failure: RefCell::default(),
            interrupted: Cell::default(),
            traffic: Cell::default(),
        }
    }

    /// What this rank gives and takes.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    /// What has ended the run: the engine knows it better.
    fn ended(&self, e: FitError) -> P::Failure {
        let known = self.failure.take();
        known.unwrap_or_else(|| self.program.failure(e, None))
    }

    fn joined<S: Merge>(
        &self,
        left: Partial<S>,
        right: Partial<S>,
    ) -> Result<Partial<S>, P::Failure> {
        left.join(right).map_err(|e| self.ended(e.into()))
    }

    /// Goes through the shards.
    fn each<O>(
        &self,
        mut of: impl FnMut(usize, ShardId, &dyn Data<T>) -> Result<O, FitError>,
    ) -> Result<Vec<O>, P::Failure> {
        let mut all = Vec::new();
        for (n, &place) in self.places.iter().enumerate() {
            let read = self.shards.read(place.shard, &mut |data| {
                all.push(of(n, place, data)?);
                Ok(())
            });
            read.map_err(|e| self.program.failure(e, Some(place.shard)))?;
        }
        Ok(all)
    }

    /// The joined statistics of this rank, as far as the tree over all shards allows.
    fn sum<S: Merge>(
        &self,
        mut of: impl FnMut(usize, ShardId, &dyn Data<T>) -> Result<S, FitError>,
    ) -> Result<Partial<S>, P::Failure> {
        let count = self.shards.count();
        let mut sum = Partial::empty(count);
        self.each(|n, place, data| {
            let leaf = Partial::leaf(place.shard, place.shards, of(n, place, data)?)?;
            sum = std::mem::replace(&mut sum, Partial::empty(count)).join(leaf)?;
            Ok(())
        })?;
        Ok(sum)
    }

    fn passed(&self, shared: &Shared<T>, ask: PassRequest) -> Result<Stats, P::Failure> {
        let mut locals = self.locals.borrow_mut();
        let own = self.sum(|n, _, data| {
            if ask.counts {
                return self.model.e_step(data, &mut locals[n], shared, ask);
            }
            // Without counts nobody goes on from here.
            self.model.e_step(data, &mut locals[n].clone(), shared, ask)
        });
        let own = own.map(|sum| (sum, self.program.interrupted()));
        let up = self.size(own.as_ref().ok())?;
        let all = self.world.all(own, |left, right| {
            Ok((self.joined(left.0, right.0)?, left.1 || right.1))
        })?;
        let (before, down) = (self.traffic.get(), self.size(Some(&all))?);
        self.traffic.set(Traffic {
            up: before.up.max(up),
            down: before.down.max(down),
            passes: before.passes + 1,
        });
        self.interrupted.set(all.1);
        all.0.root().map_err(|e| self.ended(e.into()))
    }

    /// The bytes of a message, if they are counted.
    fn size(&self, message: Option<&impl Serialize>) -> Result<usize, RunError> {
        match message.filter(|_| self.course.counts) {
            Some(message) => Ok(encode(message)?.len()),
            None => Ok(0),
        }
    }

    /// Where the run begins: where a checkpoint says, or at random. Facts about all data are collected where they are not known.
    ///
    /// # Errors
    ///
    /// Of any rank, those of the program; data and settings that are refused, and files that cannot be read.
    pub fn begin(&self, known: Option<Survey>) -> Result<At<T>, P::Failure> {
        if let Some(state) = self.resumed()? {
            return Ok(state);
        }
        let survey = match known {
            Some(survey) => survey,
            None => {
                let own = self.sum(|_, place, data| self.model.survey(data, place.first));
                let all = self
                    .world
                    .all(own, |left, right| self.joined(left, right))?;
                all.root().map_err(|e| self.ended(e.into()))?
            }
        };
        let seed = self.course.seed;
        // Equal on all ranks, and so is what is wrong.
        let shared = self.model.begin(&survey, seed);
        let mut shared = shared.map_err(|e| self.ended(e))?;
        let locals = self.each(|_, place, data| self.model.begin_local(data, place, &shared, seed));
        self.locals.replace(self.world.agreed(locals)?);
        // What the solver refuses is refused before a start is learnt.
        let at = RefCell::new(shared.clone());
        self.program.solver(&self.of(&at)?)?;
        started(self.model, self, &mut shared).map_err(|e| self.ended(e))?;
        let from = Checkpoint::new(shared.parameters().clone());
        Ok((shared, from))
    }

    fn of<'e>(&'e self, at: &'e RefCell<Shared<T>>) -> Result<Elsewhere<'e, T>, P::Failure> {
        Elsewhere::new(self.model, self, at).map_err(|e| self.ended(e))
    }

    /// Where an earlier run stood that was ended.
    fn resumed(&self) -> Result<Option<At<T>>, P::Failure> {
        let Some(Kept { folder, .. }) = &self.course.kept else {
            return Ok(None);
        };
        let path = folder.join(CHECKPOINT);
        let other = |e: &dyn std::fmt::Display| {
            let what =
                format!("is not a checkpoint of this version ({e}): expected another folder");
            RunError::from(IoError::new(&path, what))
        };
        let read = || -> Result<Option<(usize, Vec<u8>)>, P::Failure> {
            std::fs::create_dir_all(folder).map_err(|e| system(folder, e))?;
            // Also removes what killed processes left half-written.
            let writable = self.program.writing(|| plca_io::can_write(&path));
            writable.map_err(RunError::from)?;
            if !path.try_exists().map_err(|e| system(&path, e))? {
                forget(folder, None)?;
                return Ok(None);
            }
            let bytes = read_file(&path)?;
            let ((known, iteration), state) =
                postcard::take_from_bytes::<(String, usize)>(&bytes).map_err(|e| other(&e))?;
            self.program.belongs(&path, &known, iteration)?;
            forget(folder, Some(iteration))?;
            Ok(Some((iteration, state.to_vec())))
        };
        let found = match self.world.leads() {
            true => read(),
            false => Ok(None),
        };
        let Some((iteration, state)) = self.world.all(found, |left, _| Ok(left))? else {
            return Ok(None);
        };
        let local = |place: &ShardId| -> Result<Local<T>, RunError> {
            let path = part(folder, place.shard, iteration);
            let bytes = read_file(&path)?;
            postcard::from_bytes(&bytes).map_err(|e| IoError::new(&path, e).into())
        };
        let read = || -> Result<(At<T>, Vec<Local<T>>), RunError> {
            let locals = self.places.iter().map(local).collect::<Result<_, _>>()?;
            Ok((postcard::from_bytes(&state).map_err(|e| other(&e))?, locals))
        };
        let (state, locals) = self.world.agreed(read().map_err(P::Failure::from))?;
        self.locals.replace(locals);
        self.saved.set(Some(iteration));
        Ok(Some(state))
    }

    /// Saves where the run stands, and then forgets where it stood.
    fn save(&self, kept: &Kept, at: &Shared<T>, from: &Checkpoint<T>) -> Result<(), P::Failure> {
        let (folder, iteration) = (&kept.folder, from.iteration());
        let written = || -> Result<(), RunError> {
            for local in self.locals.borrow().iter() {
                let bytes = encode(local)?;
                let path = part(folder, local.place().shard, iteration);
                write_atomically(&path, |w| w.write_all(&bytes))?;
            }
            Ok(())
        };
        self.world.agreed(written().map_err(P::Failure::from))?;
        let whole = || -> Result<(), RunError> {
            let mut bytes = encode(&(&kept.known, iteration))?;
            bytes.extend(encode(&(at, from))?);
            Ok(write_atomically(&folder.join(CHECKPOINT), |w| {
                w.write_all(&bytes)
            })?)
        };
        self.world.agreed(match self.world.leads() {
            true => whole().map_err(P::Failure::from),
            false => Ok(()),
        })?;
        let before = self.saved.replace(Some(iteration));
        if let Some(before) = before.filter(|&n| n != iteration) {
            for place in self.places {
                // What stays is forgotten by the run that goes on from here.
                let _ = std::fs::remove_file(part(folder, place.shard, before));
            }
        }
        Ok(())
    }

    /// Looks at the run after an iteration: why it is to end, if it is.
    fn after(
        &self,
        it: &Iteration<'_, T>,
        at: &RefCell<Shared<T>>,
    ) -> Result<Option<Status>, P::Failure> {
        let mut ends = match self.world.leads() {
            true => self.program.after(it),
            false => Ok(false),
        };
        if it.measured.is_some() {
            ends = self.world.all(ends, |first, _| Ok(first));
        }
        let (ends, interrupted) = (ends?, self.interrupted.get());
        if let Some(kept) = &self.course.kept
            && let Some(every) = kept.every
            && (interrupted || (it.done() as u64).is_multiple_of(every))
        {
            let save = || self.save(kept, &at.borrow(), &it.checkpoint());
            self.program.writing(save)?;
        }
        Ok(match (interrupted, ends) {
            (true, _) => Some(Status::Interrupted),
            (_, true) => Some(Status::Custom("callback".into())),
            _ => None,
        })
    }

    /// Runs to the end.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn run(&self, (shared, from): At<T>) -> Result<FinishedFit<T>, P::Failure> {
        let shared = RefCell::new(shared);
        let solver = self.program.solver(&self.of(&shared)?)?;
        let observer = |it: &Iteration<'_, T>| match self.after(it, &shared) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(status)) => ControlFlow::Break(status),
            Err(e) => {
                self.failure.replace(Some(e));
                ControlFlow::Break(Status::Interrupted)
            }
        };
        let run = Run::<Parameters<T>>::new(Box::new(self.of(&shared)?)).solver(solver);
        let run = run.stop(self.course.stop.clone()).observe(observer);
        let fit = run.resume(from).map_err(|e| self.ended(e))?;
        match self.failure.take() {
            Some(e) => Err(e),
            None => Ok(FinishedFit { fit, shared }),
        }
    }

    /// The objective without priors.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn likelihood(&self, ended: &FinishedFit<T>) -> Result<f64, P::Failure> {
        let value = self
            .of(&ended.shared)?
            .likelihood(ended.shared.borrow().parameters());
        value.map_err(|e| self.ended(e))
    }

    /// The parameters of all data, with what belongs to their samples; on other ranks than the first only for `everyone`.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin).
    pub fn gathered(
        &self,
        ended: &FinishedFit<T>,
        everyone: bool,
    ) -> Result<Option<Parameters<T>>, P::Failure> {
        let shared = ended.shared.borrow();
        let mut locals = self.locals.take();
        let scales = self.each(|n, _, data| {
            self.model.finish(data, &mut locals[n], &shared)?;
            match shared.survey().complete {
                true => Ok(None),
                false => self.model.scale(data, &locals[n], &shared),
            }
        });
        let mut own: Vec<_> = locals.into_iter().zip(self.world.agreed(scales)?).collect();
        let ranks = self.world.ranks();
        if !self.world.leads() {
            let messages = own.iter().map(encode).collect::<Result<Vec<_>, _>>();
            for message in self.world.agreed(messages.map_err(P::Failure::from))? {
                ranks.send(0, &message);
            }
        } else {
            self.world.agreed(Ok::<_, P::Failure>(()))?;
            // All are received, whatever is wrong with one of them: their ranks wait for it.
            let count = self.shards.count() as usize;
            let others = (1..ranks.count()).flat_map(|rank| {
                let shards = self.world.range(rank, count);
                shards.map(move |_| decode::<(Local<T>, Option<Vec<f64>>)>(&ranks.receive(rank)))
            });
            for other in others.collect::<Vec<_>>() {
                own.push(other?);
            }
        }
        let whole = || -> Result<_, FitError> {
            let (locals, scales): (Vec<_>, Vec<_>) = own.into_iter().unzip();
            let at = self.model.gather(&shared, &locals)?;
            let own: Vec<f64> = scales.into_iter().flatten().flatten().collect();
            let scale = ended.fit.state().fact("scale").map_or(own, <[f64]>::to_vec);
            Ok(match scale.is_empty() {
                true => at,
                false => at.with_fact("scale", scale),
            })
        };
        let whole = match self.world.leads() {
            true => Some(whole().map_err(|e| self.ended(e))).transpose(),
            false => Ok(None),
        };
        match everyone {
            true => self.world.all(whole, |first, _| Ok(first)),
            false => whole,
        }
    }
}

/// The bytes of a regular file.
fn read_file(path: &Path) -> Result<Vec<u8>, RunError> {
    let mut bytes = Vec::new();
    let read = open_file(path)?.read_to_end(&mut bytes);
    read.map_err(|e| system(path, e))?;
    Ok(bytes)
}

/// Removes what a run that was killed left of other iterations than that of the checkpoint.
fn forget(folder: &Path, iteration: Option<usize>) -> Result<(), RunError> {
    // What others have put there is not touched.
    let of = |path: &Path| -> Option<usize> {
        let name = path.file_name()?.to_str()?;
        let (shard, iteration) = name.strip_prefix(PART)?.split_once('-')?;
        let (shard, iteration) = (shard.parse().ok()?, iteration.parse().ok()?);
        (part(folder, shard, iteration) == path).then_some(iteration)
    };
    let attempt = || {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if of(&path).is_some_and(|of| iteration != Some(of)) {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    };
    attempt().map_err(|e| system(folder, e))
}

/// What the system says of a file.
fn system(path: &Path, e: std::io::Error) -> RunError {
    IoError::new(path, e).into()
}
