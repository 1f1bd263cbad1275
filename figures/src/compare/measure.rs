//! One run of the command or of a peer, and what it took.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::files::Files;
use super::machine::Isa;
use crate::{Result, high_water, root};

/// Iterations between two marks of time. A mark computes the objective, which is part of our time, not of the peers'.
const CHECK_EVERY: usize = 20;

/// Our command.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// The instruction set that it is held to.
    pub(super) isa: Option<Isa>,
}

impl Program {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        if let Some(isa) = self.isa {
            command.env("PLCA_INSTRUCTION_SET", isa.name());
        }
        command
    }
}

/// What one run of our command took.
#[derive(Clone, Debug)]
pub(super) struct Ours {
    pub(super) per_iteration: f64,
    /// From the data in memory to the closing step.
    pub(super) seconds: f64,
    pub(super) objective: f64,
    /// Seconds and objectives at the marks.
    pub(super) marks: Vec<(f64, f64)>,
    pub(super) peak_mb: Option<f64>,
}

/// What one run of a peer took.
#[derive(Clone, Debug)]
pub(super) struct Theirs {
    pub(super) per_iteration: f64,
    pub(super) seconds: f64,
    /// Generalised Kullback-Leibler divergence, or half the squared error, after those seconds.
    pub(super) objective: Option<f64>,
    /// Seconds and objectives on the way there.
    pub(super) marks: Vec<(f64, f64)>,
}

/// One run of the command for about this number of seconds, with an objective after every iteration.
pub(super) fn follow(
    program: &Program,
    files: &Files,
    (solver, seconds): (&str, f64),
    threads: usize,
    out: &Path,
) -> Result<Ours> {
    let run = |iterations| run_solver(program, files, (solver, iterations), threads, out);
    const TRIAL: usize = 8;
    let trial = run(TRIAL)?;
    let span = match trial.marks[..] {
        [(begin, _), .., (end, _)] => end - begin,
        _ => return Ok(trial),
    };
    run((seconds * TRIAL as f64 / span) as usize + TRIAL)
}

/// One run by a solver, marked after every iteration.
pub(super) fn run_solver(
    program: &Program,
    files: &Files,
    (solver, iterations): (&str, usize),
    threads: usize,
    out: &Path,
) -> Result<Ours> {
    fit_by(program, files, (iterations, 1), threads, "f64", out, solver)
}

/// One run of the command.
pub(super) fn fit(
    program: &Program,
    files: &Files,
    iterations: usize,
    threads: usize,
    precision: &str,
    out: &Path,
) -> Result<Ours> {
    let often = (iterations, CHECK_EVERY);
    fit_by(program, files, often, threads, precision, out, "em")
}

/// This number of iterations, marked every `every`.
fn fit_by(
    program: &Program,
    files: &Files,
    (iterations, every): (usize, usize),
    threads: usize,
    precision: &str,
    out: &Path,
    solver: &str,
) -> Result<Ours> {
    let trace = out.join("trace.jsonl");
    let mut command = program.command();
    command
        .args(["fit", files.model])
        .arg(&files.data)
        .arg("--output")
        .arg(out.join("model.npz"))
        .arg("--init")
        .arg(&files.init)
        .arg("--trace")
        .arg(&trace)
        .args(["--tol", "0", "--quiet", "--precision", precision])
        .args(["--max-iter", &iterations.to_string()])
        .args(["--check-every", &every.to_string()])
        .args(["--threads", &threads.to_string()])
        .args(&files.options)
        .args(["--solver", solver])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut peak_mb = None;
    while child.try_wait()?.is_none() {
        // The high-water mark never falls: the last one that was seen is the peak.
        peak_mb = high_water(&status).or(peak_mb);
        sleep(Duration::from_millis(20));
    }
    let done = child.wait_with_output()?;
    if !done.status.success() {
        return Err(format!("plca fit: {}", last_line(&done.stderr)).into());
    }
    let points: Vec<Value> = fs::read_to_string(&trace)?
        .lines()
        .map(serde_json::from_str)
        .collect::<std::result::Result<_, _>>()?;
    let per_iteration = points
        .windows(2)
        .filter_map(|p| {
            let step = |name: &str| Some(p[1][name].as_f64()? - p[0][name].as_f64()?);
            let iterations = step("iteration").filter(|&n| n > 0.0)?;
            Some(step("seconds")? / iterations)
        })
        .fold(f64::INFINITY, f64::min);
    let mark = |p: &Value| Some((p["seconds"].as_f64()?, p["objective"].as_f64()?));
    let marks: Vec<(f64, f64)> = points.iter().filter_map(mark).collect();
    match marks.last() {
        Some(&(seconds, objective)) if per_iteration.is_finite() => Ok(Ours {
            per_iteration,
            seconds,
            objective,
            marks,
            peak_mb,
        }),
        _ => Err("the trace has fewer than two marks".into()),
    }
}

fn scripts() -> PathBuf {
    root().join("benches").join("peers")
}

pub(super) fn make(name: &str, python: &Path, data: Option<&Path>, folder: &Path) -> Result<()> {
    let data = data.into_iter();
    let done = Command::new(python)
        .arg(scripts().join("make_workloads.py"))
        .args(data.flat_map(|data| ["--data".as_ref(), data.as_os_str()]))
        .args([folder.as_os_str(), name.as_ref()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(|e| format!("{}: {e}", python.display()))?;
    if !done.status.success() {
        return Err(format!(
            "the workload is not there and cannot be made: {}",
            last_line(&done.stderr)
        )
        .into());
    }
    Ok(())
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.trim()
        .lines()
        .last()
        .unwrap_or("no output")
        .to_string()
}

/// One run of a peer, in its own process.
pub(super) fn run_peer(
    workload: &str,
    peer: &str,
    python: &Path,
    threads: u16,
    folder: &Path,
    budget: f64,
) -> Result<Theirs> {
    let done = Command::new(python)
        .arg(scripts().join("run_peers.py"))
        .arg(folder)
        .args(["--workloads", workload, "--peers", peer])
        .args(["--threads", &threads.to_string()])
        .args(["--budget", &budget.to_string()])
        .output()
        .map_err(|e| format!("{}: {e}", python.display()))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let Some(line) = text.lines().rfind(|l| l.starts_with('{')) else {
        return Err(last_line(&done.stderr).into());
    };
    let result: Value = serde_json::from_str(line)?;
    match (result["s_per_iter_min"].as_f64(), result["error"].as_str()) {
        (Some(per_iteration), None) => Ok(Theirs {
            per_iteration,
            seconds: result["seconds"].as_f64().unwrap_or(f64::NAN),
            objective: result["objective"].as_f64(),
            marks: (result["trace"].as_array().into_iter().flatten())
                .filter_map(|mark| Some((mark[1].as_f64()?, mark[3].as_f64()?)))
                .collect(),
        }),
        (_, Some(error)) => Err(error.into()),
        _ => Err("the peer reported no time".into()),
    }
}
