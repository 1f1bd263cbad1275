//! What the coverage-guided program does besides: it says which targets there are, writes the seeds and counts.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::{MAX_INPUT, TARGETS, Target};

/// The target's name; without it the program lists the targets and ends.
const TARGET: &str = "PLCA_FUZZ_TARGET";
/// A folder for the seeds.
const SEEDS: &str = "PLCA_FUZZ_SEEDS";
/// A file for the counts.
const COUNTS: &str = "PLCA_FUZZ_COUNTS";
/// The file of counts is written after this number of runs.
const EVERY: u64 = 1000;

#[derive(Debug, Default)]
struct Counts {
    runs: u64,
    reached: u64,
    memory: u64,
    slowest: Duration,
}

#[derive(Debug)]
struct Campaign {
    target: &'static Target,
    file: Option<PathBuf>,
    counts: Mutex<Counts>,
}

static CAMPAIGN: OnceLock<Campaign> = OnceLock::new();

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

fn campaign() -> &'static Campaign {
    CAMPAIGN.get_or_init(|| {
        let name = std::env::var(TARGET).unwrap_or_default();
        let target = crate::target(&name).unwrap_or_else(|| panic!("no target `{name}`"));
        let (file, counts) = (variable(COUNTS), Mutex::default());
        Campaign {
            target,
            file,
            counts,
        }
    })
}

/// Writes every seed that is not there yet.
fn write_seeds(target: &Target, folder: &Path) -> std::io::Result<()> {
    for (n, seed) in target.seeds().iter().enumerate() {
        assert!(seed.len() <= MAX_INPUT, "seed {n} is too long");
        std::fs::write(folder.join(format!("seed-{n}")), seed)?;
    }
    Ok(())
}

/// Before the first run: the table on standard output where no target is named, the seeds of the target otherwise.
#[allow(clippy::print_stdout, reason = "the program talks to its caller")]
pub fn begin() {
    if std::env::var_os(TARGET).is_none() {
        TARGETS.iter().for_each(|t| println!("{}", t.name));
        std::process::exit(0);
    }
    // A panic in somebody else's decoder becomes an error of the file, and ends no campaign. One in our own code does, guarded or not.
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let file = panic.location().map_or("", |place| place.file());
        let is_ours = ["crates/", "tools/fuzz/"]
            .iter()
            .any(|folder| file.starts_with(folder));
        if is_ours || !plca_io::is_guarded() {
            end(panic);
        }
    }));
    if let Some(folder) = variable(SEEDS) {
        write_seeds(campaign().target, &folder).expect("seeds are written");
    }
}

/// Changes the first `size` bytes of `data` to at most `max` others, whose number is returned: three times of four a number in them, which
/// a text survives more often than what `usual` does.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    max: usize,
    seed: u32,
    usual: impl FnOnce(&mut [u8], usize, usize) -> usize,
) -> usize {
    let number = || crate::mutate::number(seed, &data[..size], max);
    if !seed.is_multiple_of(4)
        && let Some(input) = number()
    {
        data[..input.len()].copy_from_slice(&input);
        return input.len();
    }
    usual(data, size, max)
}

/// Of inputs that end in the header, all but one in this number are not built on: nearly all would be such otherwise.
const KEPT: u32 = 8;

/// Runs an input and counts it; whether it is one to build on, if it found an edge.
pub fn run(input: &[u8]) -> bool {
    let campaign = campaign();
    let start = Instant::now();
    let run = campaign.target.run(input);
    let took = start.elapsed();
    let mut counts = campaign
        .counts
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    counts.runs += 1;
    counts.reached += u64::from(run.reached);
    counts.memory = counts.memory.max(run.memory);
    counts.slowest = counts.slowest.max(took);
    if let (Some(file), 0) = (&campaign.file, counts.runs % EVERY) {
        let text = json!({
            "runs": counts.runs, "reached": counts.reached, "memory": counts.memory,
            "slowest": counts.slowest.as_secs_f64(),
        });
        // Renamed, as the program may end at any moment. The next one comes soon.
        let beside = file.with_extension("new");
        let _ =
            std::fs::write(&beside, text.to_string()).and_then(|()| std::fs::rename(&beside, file));
    }
    run.reached || crc32fast::hash(input).is_multiple_of(KEPT)
}
