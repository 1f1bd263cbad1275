//! `plca fit` of a folder of shards by several processes, each of which holds a range of them.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use indicatif::ProgressBar;
use plca_fit::shards::{Seed, ShardId, Sharded, Shards, Visit};
use plca_fit::{Algorithm, FitError, Iteration, Solver, Status};
use plca_io::{ModelFile, ShardManifest, ShardPart};
use plca_run::ranks::{FinishedFit, Kept, Program, Ranked, RanksSettings, World};
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

/// Gives a command to this rank. Ranks share the cores of their machines: each has one thread unless it is told otherwise.
pub(crate) fn given(command: &mut Command, world: &Arc<World>) -> Result<(), Failure> {
    let Command::Fit(args) = command else {
        let what = "ranks run the command fit only: use plca for other commands";
        return Err(Failure::usage(what));
    };
    if world.ranks().count() > 1 {
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
        let manifest = ShardManifest::read(&args.data)?;
        let (model, _, rank) = of_folder::<T>(args, &manifest)?;
        let settings = settings_of(args, rank, manifest.shards.len() as u32)?;
        let shards = Own::<T>::of(args, world, &manifest)?;
        Ok((model, shards, settings, checksum))
    };
    let (model, shards, settings, checksum) = world.agreed(opened())?;
    let model = sharded::<T>(args, &*model)?;
    let key = json!({
        "model": args.model.name,
        "settings": settings,
        "data": { "sha256": checksum },
        "checkpoint": true,
    });
    let course = RanksSettings {
        seed: Seed {
            seed: args.seed,
            stream: 0,
        },
        stop: stop(args)?,
        kept: args.checkpoint.as_ref().map(|folder| Kept {
            folder: folder.clone(),
            every: args.checkpoint_every,
            known: key.to_string(),
        }),
        counts: false,
    };
    let path = args.trace.as_deref().filter(|_| world.leads());
    let crew = Crew {
        args,
        key,
        bar: progress_bar(args, PROGRESS),
        trace: RefCell::new(Trace::new(path, Instant::now())),
    };
    let at = (&shards as &dyn Shards<T>, &shards.places[..]);
    let ranked = Ranked::new((&crew, world), model, at, &course);
    let from = ranked.begin(None)?;
    interrupt::iterating();
    let ended = ranked.run(from)?;
    crew.bar.finish_and_clear();
    crew.leave(world, model, &ranked, &ended)
}

/// The shards of a rank.
#[derive(Debug)]
struct Own<T: Scalar> {
    places: Vec<ShardId>,
    parts: Vec<ShardPart<T>>,
}

impl<T: Scalar> Own<T> {
    fn of(args: &FitArgs, world: &World, manifest: &ShardManifest) -> Result<Self, Failure> {
        let (count, ranks) = (manifest.shards.len(), world.ranks().count());
        if ranks > count {
            let what =
                format!("{ranks} ranks for {count} shards: at least one shard for each is needed");
            return Err(Failure::usage(what));
        }
        let (mut places, mut parts, mut first) = (Vec::new(), Vec::new(), 0);
        for (shard, entry) in manifest.shards.iter().enumerate() {
            if world.range(world.ranks().rank(), count).contains(&shard) {
                let (shard, shards) = (shard as u32, count as u32);
                places.push(ShardId {
                    shard,
                    shards,
                    first,
                });
                parts.push(ShardPart::open(&args.data, shard)?);
            }
            first += entry.samples;
        }
        Ok(Self { places, parts })
    }
}

impl<T: Scalar> Shards<T> for Own<T> {
    fn count(&self) -> u32 {
        self.places.first().map_or(0, |place| place.shards)
    }

    fn read(&self, shard: u32, each: &mut Visit<'_, T>) -> Result<(), FitError> {
        let first = self.places.first().map_or(0, |place| place.shard);
        self.parts[(shard - first) as usize].read(each)?
    }
}

/// What the command says of a run, on one of its ranks.
#[derive(Debug)]
struct Crew<'a> {
    args: &'a FitArgs,
    /// What a checkpoint must agree with.
    key: Value,
    bar: ProgressBar,
    trace: RefCell<Trace<'a>>,
}

impl<T: Scalar> Program<T> for Crew<'_> {
    type Failure = Failure;

    fn failure(&self, e: FitError, shard: Option<u32>) -> Failure {
        match shard {
            Some(_) => about_data::<T>(self.args, e),
            None => Failure::from(e).about(&self.args.data),
        }
    }

    fn solver(&self, of: &dyn Algorithm<T>) -> Result<Solver, Failure> {
        solver::of(self.args, of)
    }

    fn belongs(&self, path: &Path, known: &str, iteration: usize) -> Result<(), Failure> {
        let file = ModelFile {
            arrays: Arrays::new(),
            metadata: serde_json::from_str(known).map_err(|e| Failure::by(path, e))?,
        };
        let checksum = self.key["data"]["sha256"].as_str().unwrap_or_default();
        belongs(
            path,
            &file,
            self.args.model,
            &self.key["settings"],
            checksum,
        )?;
        let most = self.args.max_iter;
        if iteration > most {
            let what = format!("stands at iteration {iteration}, beyond --max-iter {most}");
            return Err(Failure::of(path, what));
        }
        Ok(())
    }

    fn after(&self, it: &Iteration<'_, T>) -> Result<bool, Failure> {
        self.bar.set_position(it.done() as u64);
        if let Some(point) = it.measured {
            self.bar.set_message(format!("{:.6e}", point.objective));
            let line = (point.iteration, point.objective);
            self.trace.borrow_mut().line(0, line)?;
        }
        Ok(false)
    }

    fn interrupted(&self) -> bool {
        interrupt::requested()
    }

    fn writing<O>(&self, write: impl FnOnce() -> O) -> O {
        interrupt::trying(write)
    }
}

impl Crew<'_> {
    /// Leaves the files of a fit and its summary, on rank 0.
    fn leave<T: Scalar>(
        &self,
        world: &World,
        model: &dyn Sharded<T>,
        ranked: &Ranked<'_, T, Self>,
        ended: &FinishedFit<T>,
    ) -> Result<(), Failure> {
        let (args, fit) = (self.args, &ended.fit);
        let (iterations, objective) = (fit.iterations(), fit.objective());
        if *fit.status() == Status::Interrupted {
            let done = format!("{iterations} iterations");
            return Err(interrupt::after(&done, args.checkpoint.as_deref()));
        }
        let mut trace = self.trace.borrow_mut();
        world.agreed(trace.line(0, (iterations, objective)))?;
        if !objective.is_finite() {
            let what = format!("the objective became {objective} after {iterations} iterations");
            return Err(Failure::of(&args.data, what));
        }
        let mut summary = summary(args, iterations, fit.status(), objective);
        let survey = ended.shared.borrow().survey().clone();
        let posterior = args.has_priors() && has_density(&model.whole(&survey)?.blocks);
        if let Some(name) = plain(args).filter(|_| args.has_priors()) {
            summary[name] = json!(ranked.likelihood(ended)?);
        }
        let Some(best) = ranked.gathered(ended, false)? else {
            return Ok(());
        };
        let data = json!({
            "shape": survey.shape,
            "sha256": self.key["data"]["sha256"],
            "total": survey.total,
        });
        let mut file = args.model.file(&best.widened());
        let settings = self.key["settings"].clone();
        merge(
            &mut file.metadata,
            described(args, settings, data, posterior),
        );
        let cut = *fit.status() == Status::MaxIterations;
        let mut warnings = Vec::from_iter(unfinished(cut, args.max_iter, args.tol));
        if has(args.model, "--replicates") {
            let told = skellam::describe(args, survey.absolute, &mut file, &mut summary);
            warnings.extend(told);
        }
        leave(args, file, summary, warnings, &trace)
    }
}
