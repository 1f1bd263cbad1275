//! `fuzz`: coverage-guided campaigns over the targets of the folder `fuzz`, on the stable toolchain.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args as Clap;
use serde_json::Value;

use crate::{Result, root, target};

/// What counts edges and shows the operands of comparisons to libFuzzer.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    // Libraries then skip checksums, which no mutation would pass.
    "--cfg fuzzing",
];
/// Limits on an input's length, time and memory; those on memory are what libFuzzer looks after, the targets are stricter.
const LIMITS: &[&str] = &[
    "-max_len=65536",
    "-timeout=5",
    "-rss_limit_mb=2048",
    "-malloc_limit_mb=64",
];

#[derive(Debug, Clap)]
pub(crate) struct Args {
    /// Only these targets; all without it.
    #[arg(long)]
    target: Vec<String>,
    /// Inputs at least for every target.
    #[arg(long, default_value_t = 2_000_000)]
    runs: u64,
    /// Inputs after the last one that found an edge.
    #[arg(long, default_value_t = 500_000)]
    still: u64,
    /// Ends every campaign after this number of seconds, whatever it has reached.
    #[arg(long)]
    seconds: Option<u64>,
    /// With AddressSanitizer, which looks for wrong accesses to memory at half the speed; it wants RUSTC_BOOTSTRAP=1.
    #[arg(long)]
    address: bool,
}

/// What the log of a campaign says of edges.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Edges {
    found: u64,
    /// The input that found the last of them.
    last: u64,
}

impl Edges {
    /// Takes in a line as `#4096  NEW  cov: 120 ft: 300 …`.
    fn read(&mut self, line: &str) {
        let number = |after: &str| {
            let (_, rest) = line.split_once(after)?;
            let end = rest.find(|c: char| !c.is_ascii_digit());
            rest[..end.unwrap_or(rest.len())].parse().ok()
        };
        if let (true, Some(input), Some(found)) =
            (line.starts_with('#'), number("#"), number("cov: "))
            && found > self.found
        {
            (self.found, self.last) = (found, input);
        }
    }
}

/// Builds the program; its path.
fn build(address: bool) -> Result<PathBuf> {
    let verbose = Command::new("rustc").arg("-vV").output()?.stdout;
    let verbose = String::from_utf8(verbose)?;
    let host = verbose.lines().find_map(|l| l.strip_prefix("host: "));
    let host = host.ok_or("rustc does not say its host")?;
    let mut flags = FLAGS.join(" ");
    if address {
        flags.push_str(" -Zsanitizer=address");
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Named, so that programs which run during the build are not instrumented.
    let status = Command::new(cargo)
        .current_dir(root())
        .env("RUSTFLAGS", flags)
        .args(["build", "--profile", "fuzz", "--package", "plca-fuzz"])
        .args(["--features", "libfuzzer", "--target", host])
        .status()?;
    if !status.success() {
        return Err("the fuzz targets do not build".into());
    }
    Ok(target().join(host).join("fuzz").join("plca-fuzz"))
}

/// Copies the log of a campaign into a file and takes in what it says of edges, until it ends.
fn follow(stderr: ChildStderr, mut log: File, edges: &Mutex<Edges>) -> std::io::Result<()> {
    for line in BufReader::new(stderr).lines().map_while(|l| l.ok()) {
        let mut edges = edges.lock().unwrap_or_else(PoisonError::into_inner);
        edges.read(&line);
        writeln!(log, "{line}")?;
    }
    Ok(())
}

/// Waits until enough was tried; whether the program ended by itself, which is a failure.
fn wait(child: &mut Child, args: &Args, edges: &Mutex<Edges>, counts: &Path) -> Result<bool> {
    let start = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(200));
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        let runs = read(counts)["runs"].as_u64().unwrap_or(0);
        let last = edges.lock().unwrap_or_else(PoisonError::into_inner).last;
        let enough = runs >= args.runs && runs >= last + args.still;
        let late = (args.seconds).is_some_and(|s| start.elapsed() >= Duration::from_secs(s));
        if enough || late {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
    }
}

fn read(counts: &Path) -> Value {
    let text = std::fs::read_to_string(counts).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Files that a campaign left: an input that failed, hung or took too much memory.
fn failures(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for file in folder.read_dir()? {
        let path = file?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if ["crash-", "timeout-", "oom-"]
            .iter()
            .any(|w| name.starts_with(w))
        {
            found.push(path);
        }
    }
    Ok(found)
}

/// Runs one target; whether nothing failed.
fn campaign(program: &Path, name: &str, args: &Args) -> Result<bool> {
    let folder = target().join("fuzz").join(name);
    let (corpus, seeds) = (folder.join("corpus"), folder.join("seeds"));
    for folder in [&corpus, &seeds] {
        std::fs::create_dir_all(folder)?;
    }
    let before = failures(&folder)?.len();
    // Readers take files: in memory, where there are such.
    let memory = Path::new("/dev/shm");
    let scratch = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    }?;
    let counts = folder.join("counts.json");
    let _ = std::fs::remove_file(&counts);
    let mut child = Command::new(program)
        .env("PLCA_FUZZ_TARGET", name)
        .env("PLCA_FUZZ_SEEDS", &seeds)
        .env("PLCA_FUZZ_COUNTS", &counts)
        .env("TMPDIR", scratch.path())
        .args(LIMITS)
        .arg(format!("-artifact_prefix={}/", folder.display()))
        .args([&corpus, &seeds])
        .stderr(Stdio::piped())
        .spawn()?;
    let stderr = child.stderr.take().ok_or("no standard error")?;
    let log = File::create(folder.join("log.txt"))?;
    let edges = Mutex::default();
    let ended = std::thread::scope(|threads| -> Result<bool> {
        let follower = threads.spawn(|| follow(stderr, log, &edges));
        let ended = wait(&mut child, args, &edges, &counts);
        follower.join().map_err(|_| "the log is lost")??;
        ended
    })?;
    let (counts, found) = (read(&counts), failures(&folder)?);
    let edges = edges.into_inner().unwrap_or_else(PoisonError::into_inner);
    let number = |key: &str| counts[key].as_f64().unwrap_or(0.0);
    println!(
        "{name:<16} {:>9} {:>6} {:>12} {:>6.1} % {:>8} {:>8.1} ms {:>6.1} MiB",
        number("runs"),
        edges.found,
        edges.last,
        100.0 * number("reached") / number("runs").max(1.0),
        found.len() - before,
        1e3 * number("slowest"),
        number("memory") / f64::from(1 << 20),
    );
    let ran = number("runs") > 0.0;
    if ended {
        eprintln!("{name}: the program ended, see {}", folder.display());
    } else if !ran {
        eprintln!("{name}: nothing was run, see {}", folder.display());
    }
    Ok(ran && !ended && found.len() == before)
}

/// Runs the command; `false` if an input failed.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let program = build(args.address)?;
    let table = Command::new(&program).output()?;
    if !table.status.success() || table.stdout.is_empty() {
        let why = String::from_utf8_lossy(&table.stderr).into_owned();
        return Err(format!("the program does not list its targets: {why}").into());
    }
    let table = String::from_utf8(table.stdout)?;
    let names = if args.target.is_empty() {
        table.lines().collect()
    } else {
        args.target.iter().map(String::as_str).collect::<Vec<_>>()
    };
    if let Some(name) = names.iter().find(|n| !table.lines().any(|t| t == **n)) {
        let known = table.lines().collect::<Vec<_>>().join(", ");
        return Err(format!("no target `{name}`; known are {known}").into());
    }
    println!(
        "target                runs  edges last new at  reached failures     slowest     memory"
    );
    let mut good = true;
    for name in names {
        good &= campaign(&program, name, args)?;
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_when_the_last_edge_was_found() {
        let mut edges = Edges::default();
        for line in [
            "INFO: seed corpus: files: 8 cov: 9999",
            "#9\tINITED cov: 120 ft: 121 corp: 8/1Kb exec/s: 0 rss: 40Mb",
            "#400\tNEW    cov: 125 ft: 140 corp: 9/1Kb lim: 4 exec/s: 0 rss: 40Mb",
            "#512\tNEW    cov: 125 ft: 141 corp: 10/1Kb lim: 4 exec/s: 0 rss: 40Mb",
            "#1024\tpulse  cov: 125 ft: 141 corp: 10/1Kb lim: 4 exec/s: 0 rss: 40Mb",
        ] {
            edges.read(line);
        }
        let expected = Edges {
            found: 125,
            last: 400,
        };
        assert_eq!(edges, expected);
    }
}
