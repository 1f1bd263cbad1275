//! What `cargo xtask` runs models for: the papers' figures, their data, and measurements of the command.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program talks to its terminal"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod compare;
mod faults;
mod fetch_data;
mod figures;
mod files;
mod gallery;
mod known;
mod out_of_core;
mod plot;
mod report;
mod reproduce;
mod same;

/// What commands return: any error, its text for the terminal.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Project chores that run models")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Recompute the papers' figures and check them against their criteria.
    ReproduceFigures(reproduce::Args),
    /// Download the public data sets that the figures use, and verify their checksums.
    FetchData(fetch_data::Args),
    /// Time the plca command and its peers in turn on the same workloads.
    Compare(compare::Args),
    /// Fit a matrix of 2e7 entries in memory and out of it: the same bytes, and what both take.
    OutOfCore(out_of_core::Args),
    /// Kill the plca command at random moments and look at what it leaves.
    Faults(faults::Args),
    /// Run two builds of the command over its models and activities: the same arrays, summaries and settings.
    Same(same::Args),
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

/// Builds the command as it stands now, with features of `plca-cli`; its path.
fn build(features: &[&str]) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = std::process::Command::new(cargo)
        .current_dir(root())
        .args([
            "build",
            "--release",
            "--quiet",
            "--locked",
            "--package",
            "plca-cli",
            "--features",
            &features.join(","),
        ])
        .status()?;
    if !status.success() {
        return Err("the plca command does not build".into());
    }
    let name = format!("plca{}", std::env::consts::EXE_SUFFIX);
    Ok(target().join("release").join(name))
}

/// Peak memory of a process in megabytes, from its `/proc/…/status`, where the system tells.
fn high_water(status: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::ReproduceFigures(args) => reproduce::run(&args),
        Command::FetchData(args) => fetch_data::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::OutOfCore(args) => out_of_core::run(&args),
        Command::Faults(args) => faults::run(&args),
        Command::Same(args) => same::run(&args),
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
