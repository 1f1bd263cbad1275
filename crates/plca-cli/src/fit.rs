//! `plca fit`.

use plca_em::hold_out;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use crate::args::{FitArgs, Precision};
use crate::checkpoint::settings;
use crate::data::sealed;
use crate::failure::Failure;
use crate::given::start;
use crate::limits::on_threads;
use crate::models::Scalar;
use crate::models::made::of_line;
use crate::models::options::{self, schedule};
use crate::online;
use crate::out_of_core::{self, load};
use crate::outputs::{MODEL_FILES, distinct, writable};
use crate::ranks;
use crate::run::fit_on;
use crate::shards;
use crate::solver;

/// Random numbers of what is held out, apart from those of any start.
pub(crate) const HELD_OUT_STREAM: u64 = u64::MAX;
/// A count, or a cell, is held out with this probability.
pub(crate) const SHARE: f64 = 0.1;

/// Fits; `given` are the options that stand on the command line.
pub(crate) fn run(args: &FitArgs, given: &[String]) -> Result<(), Failure> {
    // Of several ranks one writes, and their checkpoint is a folder.
    if args.world.as_ref().is_none_or(|world| world.leads()) {
        writable(&args.output, MODEL_FILES)?;
        let checkpoint = args.checkpoint.as_ref().filter(|_| args.world.is_none());
        for path in args.trace.iter().chain(checkpoint) {
            writable(path, &[])?;
        }
    }
    options::check(args, given)?;
    out_of_core::check(args)?;
    let mut inputs = vec![
        ("the data", Some(&args.data)),
        ("--mask", args.hidden.mask.as_ref()),
        ("--priors", args.priors.as_ref()),
        ("--init", args.init.as_ref()),
        ("--freeze", args.freeze_entries.as_ref()),
        ("the model", args.again.as_ref()),
    ];
    inputs.extend(args.blocks.iter().map(|block| ("the data", Some(block))));
    distinct(
        &inputs,
        &[
            ("--output", Some(&args.output)),
            ("--trace", args.trace.as_ref()),
            ("--checkpoint", args.checkpoint.as_ref()),
            ("--out-of-core", args.out_of_core.as_ref()),
        ],
    )?;
    // A run may go on writing to the checkpoint that it resumes.
    distinct(
        &[("--resume", args.resume.as_ref())],
        &[
            ("--output", Some(&args.output)),
            ("--trace", args.trace.as_ref()),
            ("--out-of-core", args.out_of_core.as_ref()),
        ],
    )?;
    if args.kkt_tol.is_some() && args.has_priors() {
        return Err(Failure::usage(
            "--kkt-tol cannot be combined with priors: the residual is defined for the likelihood alone",
        ));
    }
    if args.kkt_tol.is_some() && args.tol == 0.0 {
        return Err(Failure::usage(
            "--kkt-tol cannot be combined with --tol 0, which runs all iterations",
        ));
    }
    solver::known(args.solver, args.model, &args.called)?;
    if args.stream.online.is_some() {
        online::check(args, given)?;
    }
    if args.world.is_some() {
        ranks::check(args)?;
    }
    on_threads(args.threads, || match args.stream.online {
        Some(_) => match args.precision {
            Precision::F64 => online::run::<f64>(args),
            Precision::F32 => online::run::<f32>(args),
        },
        None if shards::asked(args) => {
            shards::check(args)?;
            match args.precision {
                Precision::F64 => on_shards::<f64>(args),
                Precision::F32 => on_shards::<f32>(args),
            }
        }
        None if args.blocks.is_empty() => {
            sealed(args)?;
            match args.precision {
                Precision::F64 => fit::<f64>(args),
                Precision::F32 => fit::<f32>(args),
            }
        }
        None => Err(Failure::usage(
            "several files of data need --online, which learns from one after the other",
        )),
    })?
}

/// Fits a model, and leaves its files and its summary.
fn fit<T: Scalar>(args: &FitArgs) -> Result<(), Failure> {
    let data = load::<T>(args)?;
    let (given, rank) = start(args, data.shape())?;
    let model = of_line(args, rank, data.shape())?;
    let cooling = match schedule(args)? {
        None => None,
        Some(cooling) => {
            let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
            rng.set_stream(HELD_OUT_STREAM);
            let parts = hold_out(&*data, SHARE, &mut rng);
            Some((cooling, parts.map_err(|e| Failure::by(&args.data, e))?))
        }
    };
    let model = T::of(&*model).model();
    fit_on(args, &*data, model, given, cooling, settings(args, rank)?)
}

/// Fits a model to shards, those of a folder by several ranks where there are any.
fn on_shards<T: Scalar>(args: &FitArgs) -> Result<(), Failure> {
    match &args.world {
        Some(world) => ranks::fit::<T>(args, world),
        None => shards::fit::<T>(args),
    }
}
