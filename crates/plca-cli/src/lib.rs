//! The `plca` command as a library, for programs that run it on several processes.
//!
//! [`main`] is the command. [`on_ranks`] is `plca fit` of a folder of shards by several processes, whose communication the caller provides. The program
//! for MPI, `plca-mpi`, is in the folder `mpi` of the source.

mod approximation;
mod args;
mod arranged;
mod blocks;
mod checkpoint;
mod compare;
mod components;
mod consensus;
mod data;
mod export;
mod failure;
mod families;
mod fit;
mod fitted;
mod given;
mod help;
mod inspect;
mod interrupt;
mod learn;
mod limits;
mod models;
mod named;
mod online;
mod out_of_core;
mod outputs;
mod precision;
mod ranks;
mod reading;
mod refit;
mod report;
mod restored;
mod run;
mod saved;
mod select;
mod separate;
mod settings;
mod shards;
mod solver;
mod spectrogram;
mod streams;
mod table;
mod transform;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches};

use args::{Arguments, Command};
use failure::Failure;
use plca_run::ranks::World;
use streams::Streams;

pub use plca_run::ranks::Transport;

/// Does what the command line of the process says; the status to end with.
pub fn main() -> ExitCode {
    let line: Vec<_> = std::env::args_os().collect();
    let outcome = match help::asked(&line) {
        Some(chosen) => outputs::print(&help::of_model(&chosen)),
        None => run(line, None),
    };
    ended(outcome)
}

/// Does what the command line of the process says, `fit` of a folder of shards, together with the other ranks, which all call this; the status to
/// end with.
///
/// The result has the bits of [`main`] in one process, for any number of ranks up to that of the shards. Rank 0 writes and speaks; a failure of one
/// rank ends all of them.
pub fn on_ranks(ranks: impl Transport + 'static) -> ExitCode {
    let world = Arc::new(World::new(ranks));
    let line: Vec<_> = std::env::args_os().collect();
    if let Err(e) = help::command().try_get_matches_from(&line)
        && is_help(e.kind())
    {
        // Its status is 0 or 2.
        let status = ExitCode::from(e.exit_code() as u8);
        if world.leads() {
            let _ = e.print();
        }
        return status;
    }
    match world.outcome(run(line, Some(&world))) {
        Err(failure) if !world.leads() => ExitCode::from(failure.status()),
        outcome => ended(outcome),
    }
}

/// Does what a command line says.
fn run(line: Vec<OsString>, world: Option<&Arc<World>>) -> Result<(), Failure> {
    let (mut arguments, mut matches) = parsed(line)?;
    limits::set(arguments.unpack_limit)?;
    if let Some(world) = world {
        ranks::given(&mut arguments.command, world)?;
    }
    let mut again = None;
    if let Command::Refit(a) = &arguments.command {
        let line = refit::line(a)?;
        again = Some(a.model.clone());
        (arguments, matches) = parsed(line)?;
    }
    if let Some((name, of_command)) = matches.subcommand() {
        let by_rank = families::choose(&mut arguments.command, name, of_command)?;
        if let Command::Fit(a) = &mut arguments.command {
            a.request = refit::request(a, of_command);
            a.again = again;
            if by_rank {
                families::complete(a)?;
            }
        }
    }
    let given = args::given(&help::command(), &matches);
    interrupt::handle()?;
    let streams = Streams::of(&mut arguments)?;
    let outcome = obey(&arguments.command, &given);
    interrupt::over();
    let outcome = outcome.and_then(|()| streams.pass_on());
    outcome.map_err(|e| streams.named(e))
}

/// A command line and its parts; help and version are printed, and end the process.
fn parsed(line: Vec<OsString>) -> Result<(Arguments, ArgMatches), Failure> {
    let refused = |e: clap::Error| match e.kind() {
        kind if is_help(kind) => match e.print().and_then(|()| outputs::say("")) {
            Err(failed) if failed.kind() != std::io::ErrorKind::BrokenPipe => {
                Failure::by(Path::new("standard output"), failed)
            }
            _ => std::process::exit(e.exit_code()),
        },
        _ => help::refused(&line, e),
    };
    let matches = help::command().try_get_matches_from(&line);
    let matches = matches.map_err(refused)?;
    let arguments = Arguments::from_arg_matches(&matches).map_err(refused)?;
    Ok((arguments, matches))
}

fn is_help(kind: ErrorKind) -> bool {
    use ErrorKind as E;
    matches!(
        kind,
        E::DisplayHelp | E::DisplayVersion | E::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// Runs a command; `given` are the options that stand on the command line.
fn obey(command: &Command, given: &[String]) -> Result<(), Failure> {
    match command {
        Command::Fit(a) => fit::run(a, given),
        Command::Transform(a) => transform::run(a),
        Command::Reconstruct(a) => approximation::reconstruct(a),
        Command::Inspect(a) => inspect::inspect(a),
        Command::Export(a) => export::export(a),
        Command::Sample(a) => approximation::sample(a),
        Command::Select(a) => select::select(a, given),
        Command::Shard(a) => shards::run(a),
        Command::Learn(a) => limits::on_threads(a.threads, || learn::learn(a))?,
        Command::Consensus(a) => consensus::run(a, given),
        // The fit of a model file is a fit by now.
        Command::Refit(_) => Ok(()),
        Command::Compare(a) => compare::compare(a),
        Command::Report(a) => report::report(a),
        Command::Spectrogram(a) => spectrogram::run(a),
        Command::Separate(a) => separate::run(a),
        Command::Completions { shell } => outputs::print(&help::completions(*shell)),
        Command::Man { command } => outputs::print(&help::manual(command.as_deref())?),
    }
}

/// The exit status, and on standard error what went wrong.
fn ended(outcome: Result<(), Failure>) -> ExitCode {
    let failure = outcome.err().or_else(|| outputs::unheard().cloned());
    let Some(failure) = failure else {
        return ExitCode::SUCCESS;
    };
    outputs::cry(&format!("error: {failure}"));
    ExitCode::from(failure.status())
}
