//! Project chores: `cargo xtask <command>`, one file per command.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program talks to its terminal"
)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod compare;
mod equations;
mod fetch_data;
mod figures;
mod files;
mod gallery;
mod plot;
mod reproduce;
mod tidy;

/// What commands return: any error, its text for the terminal.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Project chores")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Recompute the papers' figures and check them against their criteria.
    ReproduceFigures(reproduce::Args),
    /// Check the layering, the manifests and the sources' manners.
    Tidy,
    /// Write docs/EQUATIONS.md, the index from equations to code and tests.
    Equations(equations::Args),
    /// Time the plca command and its peers in turn on the same workloads.
    Compare(compare::Args),
    /// Download the public data sets and verify their checksums.
    FetchData(fetch_data::Args),
}

/// Root of the workspace.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::ReproduceFigures(args) => reproduce::run(&args),
        Command::Tidy => tidy::run(),
        Command::Equations(args) => equations::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::FetchData(args) => fetch_data::run(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
