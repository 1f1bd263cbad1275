//! The `plca` command.

mod args;
mod blocks;
mod checkpoint;
mod data;
mod failure;
mod fit;
mod interrupt;
mod limits;
mod models;
mod other;
mod outputs;
mod select;
mod transform;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command, Precision};

#[expect(
    clippy::print_stderr,
    reason = "the one place where the command reports a failure"
)]
fn main() -> ExitCode {
    // clap itself ends the process with status 2 if the command line is wrong.
    let arguments = Arguments::parse();
    let outcome = interrupt::handle().and_then(|()| match &arguments.command {
        Command::Fit(a) => match a.precision {
            Precision::F64 => fit::run::<f64>(a),
            Precision::F32 => fit::run::<f32>(a),
        },
        Command::Transform(a) => transform::run(a),
        Command::Reconstruct(a) => other::reconstruct(a),
        Command::Inspect(a) => other::inspect(a),
        Command::Sample(a) => other::sample(a),
        Command::Select(a) => select::select(a),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.status())
        }
    }
}
