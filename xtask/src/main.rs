//! Project chores: `cargo xtask <command>`, one file per command.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program talks to its terminal"
)]

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod dist;
mod equations;
mod fuzz;
mod recipes;
mod soak;
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
    #[command(disable_help_flag = true)]
    ReproduceFigures(Rest),
    /// Download the public data sets that the figures use, and verify their checksums.
    #[command(disable_help_flag = true)]
    FetchData(Rest),
    /// Check the layering, the manifests and the sources' manners.
    Tidy,
    /// Write docs/EQUATIONS.md, the index from equations to code and tests, or look one up.
    Equations(equations::Args),
    /// Time the plca command and its peers in turn on the same workloads.
    #[command(disable_help_flag = true)]
    Compare(Rest),
    /// Fit a matrix of 2e7 entries in memory and out of it: the same bytes, and what both take.
    #[command(disable_help_flag = true)]
    OutOfCore(Rest),
    /// Feed the readers of files, and algorithms that must agree, with inputs that look for new paths through them.
    Fuzz(fuzz::Args),
    /// Kill the plca command at random moments and look at what it leaves.
    #[command(disable_help_flag = true)]
    Faults(Rest),
    /// Run two builds of the plca command over its models and activities: the same arrays, summaries and settings.
    #[command(disable_help_flag = true)]
    Same(Rest),
    /// Do what the examples of extension say to a copy of the workspace: the command there knows the new prior, solver and model.
    Recipes {
        /// An interpreter of Python with what plcakit needs: the package knows them, too.
        #[arg(long)]
        python: Option<PathBuf>,
    },
    /// Build what a release is made of: command, wheel, lists of components, checksums.
    Dist(dist::Args),
    /// Run every property of the workspace on new problems for as long as asked; shrunk failures, cases and seeds.
    Soak(soak::Args),
}

/// The options of a command of `plca-figures`, which knows them.
#[derive(Debug, clap::Args)]
struct Rest {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<OsString>,
}

/// Root of the workspace.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// Where builds are.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Builds `plca-figures`, which has every model and the plots, as this program was built, and runs one of its commands.
fn hand_over(command: &str, rest: &Rest) -> Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut run = std::process::Command::new(cargo);
    run.args(["run", "--quiet", "--locked", "--package", "plca-figures"]);
    if !cfg!(debug_assertions) {
        run.arg("--release");
    }
    // Whatever folder it is called from, paths in the options are of that folder.
    run.arg("--manifest-path").arg(root().join("Cargo.toml"));
    let status = run.arg("--").arg(command).args(&rest.options).status()?;
    match status.code() {
        Some(0) => Ok(true),
        // Its own status, which may say more than that something is wrong.
        code => std::process::exit(code.unwrap_or(1)),
    }
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::ReproduceFigures(rest) => hand_over("reproduce-figures", &rest),
        Command::FetchData(rest) => hand_over("fetch-data", &rest),
        Command::Tidy => tidy::run(),
        Command::Equations(args) => equations::run(&args),
        Command::Compare(rest) => hand_over("compare", &rest),
        Command::OutOfCore(rest) => hand_over("out-of-core", &rest),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Faults(rest) => hand_over("faults", &rest),
        Command::Same(rest) => hand_over("same", &rest),
        Command::Recipes { python } => recipes::run(python.as_deref()),
        Command::Dist(args) => dist::run(&args),
        Command::Soak(args) => soak::run(&args),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_handed_over_as_they_are() {
        let line = "xtask reproduce-figures --help --figure si_fig1 -- x";
        let Command::ReproduceFigures(rest) = Cli::parse_from(line.split(' ')).command else {
            panic!("another command");
        };
        assert_eq!(rest.options, ["--help", "--figure", "si_fig1", "--", "x"]);
        let Command::FetchData(rest) = Cli::parse_from(["xtask", "fetch-data", "DIR"]).command
        else {
            panic!("another command");
        };
        assert_eq!(rest.options, ["DIR"]);
    }
}
