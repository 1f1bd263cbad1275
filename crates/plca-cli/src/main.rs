//! The `plca` command.

mod approximation;
mod args;
mod blocks;
mod checkpoint;
mod consensus;
mod data;
mod failure;
mod fit;
mod given;
mod help;
mod inspect;
mod interrupt;
mod limits;
mod models;
mod online;
mod out_of_core;
mod outputs;
mod precision;
mod restored;
mod saved;
mod select;
mod separate;
mod shards;
mod solver;
mod spectrogram;
mod table;
mod transform;

use std::process::ExitCode;

use clap::FromArgMatches;

use args::{Arguments, Command};
use failure::Failure;

fn main() -> ExitCode {
    let line: Vec<_> = std::env::args_os().collect();
    if let Some(model) = help::asked(&line) {
        return ended(outputs::print(&help::of_model(model)));
    }
    // clap itself ends the process with status 2 if the command line is wrong.
    let matches = help::command().get_matches_from(line);
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    let given = args::given(&matches);
    let outcome = interrupt::handle().and_then(|()| match &arguments.command {
        Command::Fit(a) => fit::run(a, &given),
        Command::Transform(a) => transform::run(a),
        Command::Reconstruct(a) => approximation::reconstruct(a),
        Command::Inspect(a) => inspect::inspect(a),
        Command::Sample(a) => approximation::sample(a),
        Command::Select(a) => select::select(a, &given),
        Command::Shard(a) => shards::run(a),
        Command::Consensus(a) => consensus::run(a, &given),
        Command::Spectrogram(a) => spectrogram::run(a),
        Command::Separate(a) => separate::run(a),
    });
    interrupt::over();
    ended(outcome)
}

/// The exit status, and on standard error what went wrong.
#[expect(
    clippy::print_stderr,
    reason = "the one place where the command reports a failure"
)]
fn ended(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.status())
        }
    }
}
