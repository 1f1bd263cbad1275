//! `faults`: the command is killed at random moments; files are whole, runs go on bit-identically, nothing is left behind.

use std::path::PathBuf;

use crate::{Result, build};

#[path = "../../crates/plca-cli/tests/faults/kills.rs"]
mod kills;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Processes killed, over all kinds of run together.
    #[arg(long, default_value_t = 1000)]
    kills: usize,
    /// Seed of the moments.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The program [default: built from the sources as they stand].
    #[arg(long)]
    program: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let program = match &args.program {
        Some(program) => program.canonicalize()?,
        None => build(&[])?,
    };
    let folder = tempfile::tempdir()?;
    println!(
        "| run | kills | ended before | left a file being written | resumed | target new after the kill |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    for kind in kills::KINDS {
        let each = args.kills.div_ceil(kills::KINDS.len());
        let tally = kills::run(kind, &program, folder.path(), each, args.seed)?;
        println!(
            "| {kind} | {} | {} | {} | {} | {} |",
            tally.kills, tally.late, tally.litter, tally.resumed, tally.renamed
        );
    }
    println!(
        "every target old or new and whole, every run that ended the same bytes, nothing left behind"
    );
    Ok(true)
}
