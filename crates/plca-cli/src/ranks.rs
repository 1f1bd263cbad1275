//! `plca fit` of a folder of shards by several processes, each of which holds a range of them.
//!
//! Every rank makes the same run: sums are joined and sent back to all, and the M-step of equal bits has equal bits. What a rank fails at travels with
//! the sums, so that all of them end.

use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use plca_fit::shards::{
    Ask, Elsewhere, Engine, Local, Merge, Partial, Place, Seed, Sharded, Shared, Stats, Survey,
    started,
};
use plca_fit::{Algorithm, Checkpoint, FitError, Iteration, Parameters, Run, Solver, Status};
use plca_io::{Manifest, ModelFile, ShardPart, write_atomically};
use plca_tensor::Data;
use serde_json::{Value, json};

use crate::args::{Command, FitArgs};
use crate::blocks::Arrays;
use crate::checkpoint::belongs;
use crate::data::sealed;
use crate::failure::Failure;
use crate::fitted::{described, leave, plain, summary, unfinished};
use crate::interrupt;
use crate::models::Scalar;
use crate::models::options::{first_given, has, schedule};
use crate::models::skellam;
use crate::outputs::{Trace, merge};
use crate::run::{PROGRESS, about_data, has_density, progress_bar, stop};
use crate::shards::{of_folder, settings_of, sharded};
use crate::solver;
use crate::world::{World, decode, encode};

/// Gives a command to this rank. Ranks share the cores of their machines: each has one thread unless it is told otherwise.
pub(crate) fn given(command: &mut Command, world: &Arc<World>) -> Result<(), Failure> {
    let Command::Fit(args) = command else {
        let what = "ranks run the command fit only: use plca for other commands";
        return Err(Failure::usage(what));
    };
    if world.ranks.count() > 1 {
        args.threads.get_or_insert(1);
    }
    args.quiet |= !world.leads();
    args.world = Some(Arc::clone(world));
    Ok(())
}

/// Refuses what ranks cannot do.
pub(crate) fn check(args: &FitArgs) -> Result<(), Failure> {
    let not_here = [
        ("--online", args.stream.online.is_some()),
        ("--init", args.init.is_some()),
        ("--restarts", args.restarts != 1),
        ("--resume", args.resume.is_some()),
        ("--time-limit", args.time_limit.is_some()),
        ("--temper B,ETA", schedule(args)?.is_some()),
    ];
    // Of the extrapolations one alone is made where the shards are.
    let squared = [args.solver, args.accelerate].contains(&Solver::Squarem);
    let option = first_given(&not_here).or(args.extrapolated().filter(|_| !squared));
    if let Some(option) = option {
        let more = match option {
            "--resume" => ": ranks continue from the folder of --checkpoint",
            _ => "",
        };
        return Err(Failure::usage(format!(
            "{option} cannot be used with ranks{more}"
        )));
    }
    match args.data.is_dir() {
        true => Ok(()),
        false => Err(Failure::of(
            &args.data,
            "is not a folder of shards: expected one that plca shard made",
        )),
    }
}

/// Fits a model to the shards of a folder.
pub(crate) fn fit<T: Scalar>(args: &FitArgs, world: &World) -> Result<(), Failure> {
    let opened = || -> Result<_, Failure> {
        let checksum = sealed(args)?.sha256()?.to_string();
        let manifest = Manifest::read(&args.data)?;
        let (model, _, rank) = of_folder::<T>(args, &manifest)?;
        let settings = settings_of(args, rank, manifest.shards.len() as u32)?;
        Ok((
            model,
            Own::<T>::of(args, world, &manifest)?,
            settings,
            checksum,
        ))
    };
    let (model, own, settings, checksum) = world.agreed(opened())?;
    let crew = Crew {
        args,
        world,
        model: sharded(args, &*model)?,
        own,
        key: json!({
            "model": args.model.name,
            "settings": settings,
            "data": { "sha256": checksum },
            "checkpoint": true,
        }),
        locals: RefCell::default(),
        saved: Cell::default(),
        failure: RefCell::default(),
        untold: RefCell::default(),
        interrupted: Cell::default(),
    };
    crew.run()
}

/// The shards of a rank.
#[derive(Debug)]
struct Own<T: Scalar> {
    shards: Vec<(Place, ShardPart<T>)>,
    /// The first shard of every rank, and the number of shards.
    firsts: Vec<usize>,
}

impl<T: Scalar> Own<T> {
    fn of(args: &FitArgs, world: &World, manifest: &Manifest) -> Result<Self, Failure> {
        let (count, ranks) = (manifest.shards.len(), world.ranks.count());
        if ranks > count {
            let what =
                format!("{ranks} ranks for {count} shards: at least one shard for each is needed");
            return Err(Failure::usage(what));
        }
        let firsts: Vec<usize> = (0..=ranks).map(|rank| count * rank / ranks).collect();
        let rank = world.ranks.rank();
        let range = firsts[rank]..firsts[rank + 1];
        let (mut shards, mut first) = (Vec::new(), 0);
        for (shard, entry) in manifest.shards.iter().enumerate() {
            if range.contains(&shard) {
                let shard = shard as u32;
                let place = Place {
                    shard,
                    shards: count as u32,
                    first,
                };
                shards.push((place, ShardPart::open(&args.data, shard)?));
            }
            first += entry.samples;
        }
        Ok(Self { shards, firsts })
    }

    /// Goes through the shards.
    fn each<O>(
        &self,
        mut of: impl FnMut(usize, Place, &dyn Data<T>) -> Result<O, FitError>,
    ) -> Result<Vec<O>, FitError> {
        let shards = self.shards.iter().enumerate();
        let all = shards.map(|(n, (place, shard))| shard.read(|data| of(n, *place, data))?);
        all.collect()
    }

    /// The joined statistics of the ranks, as far as the tree over all shards allows.
    fn sum<S: Merge>(
        &self,
        mut of: impl FnMut(usize, Place, &dyn Data<T>) -> Result<S, FitError>,
    ) -> Result<Partial<S>, FitError> {
        let count = self.shards.first().map_or(0, |(place, _)| place.shards);
        let mut sum = Partial::empty(count);
        self.each(|n, place, data| {
            let leaf = Partial::leaf(place.shard, place.shards, of(n, place, data)?)?;
            sum = std::mem::replace(&mut sum, Partial::empty(count)).join(leaf)?;
            Ok(())
        })?;
        Ok(sum)
    }
}

/// From where a run goes on, with what belongs to the samples of each shard.
type State<T> = (Shared<T>, Checkpoint<T>);

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
struct Crew<'a, T: Scalar> {
    args: &'a FitArgs,
    world: &'a World,
    model: &'a dyn Sharded<T>,
    own: Own<T>,
    /// What a checkpoint must agree with.
    key: Value,
    locals: RefCell<Vec<Local<T>>>,
    /// The iteration of the last checkpoint.
    saved: Cell<Option<usize>>,
    /// What has ended the run.
    failure: RefCell<Option<Failure>>,
    /// What this rank alone has failed at, of which the next pass tells the others.
    untold: RefCell<Option<Failure>>,
    /// Whether any rank was interrupted before the last pass.
    interrupted: Cell<bool>,
}

impl<T: Scalar> Engine<T> for Crew<'_, T> {
    fn pass(&self, shared: &Shared<T>, ask: Ask) -> Result<Stats, FitError> {
        self.passed(shared, ask).map_err(|e| {
            self.failure.replace(Some(e));
            FitError::Interrupted
        })
    }
}

impl<T: Scalar> Crew<'_, T> {
    fn about(&self, e: FitError) -> Failure {
        about_data::<T>(self.args, e)
    }

    /// What has ended the run: the engine knows it better.
    fn ended(&self, e: FitError) -> Failure {
        let known = self.failure.take();
        known.unwrap_or_else(|| Failure::from(e).about(&self.args.data))
    }

    fn joined<S: Merge>(&self, left: Partial<S>, right: Partial<S>) -> Result<Partial<S>, Failure> {
        left.join(right).map_err(|e| self.about(e.into()))
    }

    fn passed(&self, shared: &Shared<T>, ask: Ask) -> Result<Stats, Failure> {
        let mut locals = self.locals.borrow_mut();
        let own = self.own.sum(|n, _, data| {
            if ask.counts {
                return self.model.e_step(data, &mut locals[n], shared, ask);
            }
            // Without counts nobody goes on from here.
            self.model.e_step(data, &mut locals[n].clone(), shared, ask)
        });
        let own = own.map(|sum| (sum, interrupt::requested()));
        let own = match self.untold.take() {
            Some(e) => Err(e),
            None => own.map_err(|e| self.about(e)),
        };
        let (sum, interrupted) = self.world.all(own, |left, right| {
            Ok((self.joined(left.0, right.0)?, left.1 || right.1))
        })?;
        self.interrupted.set(interrupted);
        sum.root().map_err(|e| self.about(e.into()))
    }

    /// Where the run begins: where a checkpoint says, or at random.
    fn begin(&self) -> Result<State<T>, Failure> {
        if let Some(folder) = &self.args.checkpoint
            && let Some(state) = self.resumed(folder)?
        {
            return Ok(state);
        }
        let own = self
            .own
            .sum(|_, place, data| self.model.survey(data, place.first));
        let own = own.map_err(|e| self.about(e));
        let survey: Survey = (self.world)
            .all(own, |left, right| self.joined(left, right))?
            .root()
            .map_err(|e| self.about(e.into()))?;
        let seed = Seed {
            seed: self.args.seed,
            stream: 0,
        };
        // Equal on all ranks, and so is what is wrong.
        let shared = self.model.begin(&survey, seed);
        let mut shared = shared.map_err(|e| Failure::from(e).about(&self.args.data))?;
        let locals = self
            .own
            .each(|_, place, data| self.model.begin_local(data, place, &shared, seed));
        let locals = self.world.agreed(locals.map_err(|e| self.about(e)))?;
        self.locals.replace(locals);
        // What the solver refuses is refused before a start is learnt.
        let at = RefCell::new(shared.clone());
        let elsewhere = Elsewhere::new(self.model, self, &at).map_err(|e| self.ended(e))?;
        solver::of::<T>(self.args, &elsewhere)?;
        let stepwise = self.args.stepwise.map(|how| {
            (
                self.own.shards.first().map_or(0, |(place, _)| place.shards),
                how,
            )
        });
        started(self.model, self, &mut shared, stepwise).map_err(|e| self.ended(e))?;
        let from = Checkpoint::new(shared.parameters().clone());
        Ok((shared, from))
    }

    /// Where an earlier run stood that was ended.
    fn resumed(&self, folder: &Path) -> Result<Option<State<T>>, Failure> {
        let read = || -> Result<Option<(usize, Vec<u8>)>, Failure> {
            std::fs::create_dir_all(folder).map_err(|e| Failure::by(folder, e))?;
            let path = folder.join(CHECKPOINT);
            // Also removes what killed processes left half-written.
            interrupt::trying(|| plca_io::can_write(&path))?;
            if !path.try_exists().map_err(|e| Failure::by(&path, e))? {
                forget(folder, None).map_err(|e| Failure::by(folder, e))?;
                return Ok(None);
            }
            let bytes = read_file(&path)?;
            let ((key, iteration), state) = postcard::take_from_bytes::<(String, usize)>(&bytes)
                .map_err(|e| Failure::by(&path, e))?;
            let file = ModelFile {
                arrays: Arrays::new(),
                metadata: serde_json::from_str(&key).map_err(|e| Failure::by(&path, e))?,
            };
            let checksum = self.key["data"]["sha256"].as_str().unwrap_or_default();
            let (kind, settings) = (self.args.model, &self.key["settings"]);
            belongs(&path, &file, kind, settings, checksum)?;
            let most = self.args.max_iter;
            if iteration > most {
                let what = format!("stands at iteration {iteration}, beyond --max-iter {most}");
                return Err(Failure::of(&path, what));
            }
            forget(folder, Some(iteration)).map_err(|e| Failure::by(folder, e))?;
            Ok(Some((iteration, state.to_vec())))
        };
        let found = match self.world.leads() {
            true => read(),
            false => Ok(None),
        };
        let Some((iteration, state)) = self.world.all(found, |left, _| Ok(left))? else {
            return Ok(None);
        };
        let local = |place: &Place| -> Result<Local<T>, Failure> {
            let path = part(folder, place.shard, iteration);
            let bytes = read_file(&path)?;
            postcard::from_bytes(&bytes).map_err(|e| Failure::by(&path, e))
        };
        let read = || -> Result<(State<T>, Vec<Local<T>>), Failure> {
            let shards = self.own.shards.iter();
            let locals = shards
                .map(|(place, _)| local(place))
                .collect::<Result<_, _>>()?;
            let state = postcard::from_bytes(&state);
            Ok((
                state.map_err(|e| Failure::by(&folder.join(CHECKPOINT), e))?,
                locals,
            ))
        };
        let (state, locals) = self.world.agreed(read())?;
        self.locals.replace(locals);
        self.saved.set(Some(iteration));
        Ok(Some(state))
    }

    /// Saves where the run stands, and then forgets where it stood.
    fn save(&self, folder: &Path, shared: &Shared<T>, from: &Checkpoint<T>) -> Result<(), Failure> {
        let iteration = from.iteration();
        let written = || -> Result<(), Failure> {
            for local in self.locals.borrow().iter() {
                let bytes = encode(local)?;
                let path = part(folder, local.place().shard, iteration);
                write_atomically(&path, |w| w.write_all(&bytes))?;
            }
            Ok(())
        };
        self.world.agreed(written())?;
        let kept = || -> Result<(), Failure> {
            let mut bytes = encode(&(self.key.to_string(), iteration))?;
            bytes.extend(encode(&(shared, from))?);
            Ok(write_atomically(&folder.join(CHECKPOINT), |w| {
                w.write_all(&bytes)
            })?)
        };
        self.world.agreed(match self.world.leads() {
            true => kept(),
            false => Ok(()),
        })?;
        if let Some(before) = self
            .saved
            .replace(Some(iteration))
            .filter(|&n| n != iteration)
        {
            for (place, _) in &self.own.shards {
                // What stays is forgotten by the run that goes on from here.
                let _ = std::fs::remove_file(part(folder, place.shard, before));
            }
        }
        Ok(())
    }

    fn run(&self) -> Result<(), Failure> {
        let args = self.args;
        let stop = stop(args)?;
        let (shared, from) = self.begin()?;
        let at = RefCell::new(shared);
        let elsewhere = || Elsewhere::new(self.model, self, &at).map_err(|e| self.ended(e));
        let started = Instant::now();
        interrupt::iterating();
        let bar = progress_bar(args, PROGRESS);
        let path = args.trace.as_deref().filter(|_| self.world.leads());
        let mut trace = Trace::new(path, started);
        let observer = |it: &Iteration<'_, T>| {
            bar.set_position(it.done() as u64);
            if let Some(point) = it.measured {
                bar.set_message(format!("{:.6e}", point.objective));
                let point = (point.iteration, point.objective);
                if let Err(e) = trace.line(0, point) {
                    self.untold.replace(Some(e));
                }
            }
            let interrupted = self.interrupted.get();
            if let (Some(folder), Some(every)) = (&args.checkpoint, args.checkpoint_every)
                && (interrupted || (it.done() as u64).is_multiple_of(every))
            {
                let save = || self.save(folder, &at.borrow(), &it.checkpoint());
                if let Err(e) = interrupt::writing(save) {
                    self.failure.replace(Some(e));
                }
            }
            match interrupted || self.failure.borrow().is_some() {
                true => ControlFlow::Break(Status::Interrupted),
                false => ControlFlow::Continue(()),
            }
        };
        let solver = solver::of::<T>(args, &elsewhere()?)?;
        let run = Run::<Parameters<T>>::new(Box::new(elsewhere()?));
        let run = run.solver(solver).stop(stop).observe(observer);
        let fit = run.resume(from).map_err(|e| self.ended(e))?;
        bar.finish_and_clear();
        if let Some(e) = self.failure.take() {
            return Err(e);
        }
        let (iterations, objective) = (fit.iterations(), fit.objective());
        if *fit.status() == Status::Interrupted {
            let done = format!("{iterations} iterations");
            return Err(interrupt::after(&done, args.checkpoint.as_deref()));
        }
        let traced = match self.untold.take() {
            Some(e) => Err(e),
            None => trace.line(0, (iterations, objective)),
        };
        self.world.agreed(traced)?;
        if !objective.is_finite() {
            let what = format!("the objective became {objective} after {iterations} iterations");
            return Err(Failure::of(&args.data, what));
        }
        let mut summary = summary(args, iterations, fit.status(), objective);
        let whole = self.model.whole(at.borrow().survey());
        let blocks = whole.map_err(|e| self.about(e))?.blocks;
        let posterior = args.has_priors() && has_density(&blocks);
        if let Some(name) = plain(args).filter(|_| args.has_priors()) {
            let value = elsewhere()?.likelihood(at.borrow().parameters());
            summary[name] = json!(value.map_err(|e| self.ended(e))?);
        }
        let shared = at.borrow();
        let Some(locals) = self.finished(&shared)? else {
            return Ok(());
        };
        let best = self.model.gather(&shared, &locals);
        let best = best.map_err(|e| self.about(e))?;
        let survey = shared.survey();
        let (shape, total) = (&survey.shape, survey.total);
        let sha256 = &self.key["data"]["sha256"];
        let data = json!({ "shape": shape, "sha256": sha256, "total": total });
        let mut model = args.model.file(&best.widened());
        let settings = self.key["settings"].clone();
        merge(
            &mut model.metadata,
            described(args, settings, data, posterior),
        );
        let cut = *fit.status() == Status::MaxIterations;
        let mut warnings = Vec::from_iter(unfinished(cut, args.max_iter, args.tol));
        if has(args.model, "--replicates") {
            let told = skellam::told(args, survey.absolute, &mut model, &mut summary);
            warnings.extend(told);
        }
        leave(args, model, summary, warnings, &trace)
    }

    /// What belongs to the samples of all shards, on rank 0.
    fn finished(&self, shared: &Shared<T>) -> Result<Option<Vec<Local<T>>>, Failure> {
        let mut locals = self.locals.take();
        let done = self
            .own
            .each(|n, _, data| self.model.finish(data, &mut locals[n], shared));
        self.world.agreed(done.map_err(|e| self.about(e)))?;
        let ranks = &self.world.ranks;
        if !self.world.leads() {
            let messages = locals.iter().map(encode).collect::<Result<Vec<_>, _>>();
            for message in self.world.agreed(messages)? {
                ranks.send(0, &message);
            }
            return Ok(None);
        }
        self.world.agreed(Ok(()))?;
        // All are received, whatever is wrong with one of them: their ranks wait for it.
        let others = self.own.firsts.windows(2).enumerate().skip(1);
        let others = others.flat_map(|(rank, of)| (of[0]..of[1]).map(move |_| rank));
        let others: Vec<_> = others.map(|rank| decode(&ranks.receive(rank))).collect();
        for local in others {
            locals.push(local?);
        }
        Ok(Some(locals))
    }
}

/// The bytes of a regular file.
fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = plca_io::open_file(path)?.read_to_end(&mut bytes);
    read.map_err(|e| Failure::by(path, e))?;
    Ok(bytes)
}

/// Removes what a run that was killed left of other iterations than that of the checkpoint.
fn forget(folder: &Path, iteration: Option<usize>) -> std::io::Result<()> {
    // What others have put there is not touched.
    let of = |path: &Path| -> Option<usize> {
        let name = path.file_name()?.to_str()?;
        let (shard, iteration) = name.strip_prefix(PART)?.split_once('-')?;
        let (shard, iteration) = (shard.parse().ok()?, iteration.parse().ok()?);
        (part(folder, shard, iteration) == path).then_some(iteration)
    };
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if of(&path).is_some_and(|of| iteration != Some(of)) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}
