//! `compare`: the `plca` command and its peers in turn, on the same workloads from the same starts.
//!
//! Nothing recorded enters the table: what cannot be run here is shown as missing.

mod files;
mod measure;
mod race;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use plca_io::write_atomically;
use serde_json::{Value, json};

use self::files::convert;
use self::measure::{Ours, Theirs, fit, follow, make, run_peer};
use crate::{Result, root};

/// A workload, the peers that can do it, and how long ours runs.
struct Workload {
    name: &'static str,
    peers: &'static [&'static str],
    iterations: usize,
    /// Seconds of a peer's run; the peers' slowest iterations need the longest.
    budget: f64,
    /// The ratio to the first peer, by iteration, that we hold ourselves to, where there is one.
    target: Option<f64>,
    /// Likewise of the time until the first peer's last objective.
    time_target: Option<f64>,
    /// What ours runs by until that objective.
    solver: &'static str,
}

const MATRIX: &[&str] = &["sklearn-mu-kl", "torchnmf-nmf-kl"];
const TENSOR: &[&str] = &["pyttb-cp_apr-mu-1inner"];
const SQUARED: &[&str] = &["tensorly-hals-l2", "tensorly-mu-l2"];
const SHIFTED: &[&str] = &["torchnmf-siplca", "torchnmf-nmfd"];

const fn workload(
    name: &'static str,
    peers: &'static [&'static str],
    iterations: usize,
    budget: f64,
    target: Option<f64>,
) -> Workload {
    Workload {
        name,
        peers,
        iterations,
        budget,
        target,
        time_target: None,
        solver: "em",
    }
}

const WORKLOADS: &[Workload] = &[
    Workload {
        time_target: Some(2.5),
        solver: "fast",
        ..workload("dense-spectrogram", MATRIX, 60, 9.0, Some(4.5))
    },
    Workload {
        time_target: Some(5.0),
        solver: "fast",
        ..workload("dense-faces", MATRIX, 100, 10.0, None)
    },
    Workload {
        time_target: Some(15.0),
        solver: "fast",
        ..workload("sparse-text-k20", MATRIX, 80, 10.0, Some(40.0))
    },
    workload("sparse-text-k100", MATRIX, 40, 8.0, Some(40.0)),
    workload("sparse-large", MATRIX, 40, 60.0, Some(60.0)),
    workload("tensor-3d", TENSOR, 40, 4.0, Some(11.0)),
    workload("tensor-sparse-3d", TENSOR, 40, 12.0, Some(60.0)),
    workload("siplca-image", SHIFTED, 60, 8.0, Some(150.0)),
    workload("siplca-cqt", SHIFTED, 200, 4.0, Some(200.0)),
    workload("siplca-handwriting", SHIFTED, 200, 4.0, Some(100.0)),
    workload("siplca-speech", SHIFTED, 80, 4.0, Some(1.5)),
    Workload {
        time_target: Some(5.0),
        ..workload("pntf-faces", SQUARED, 80, 8.0, Some(5.0))
    },
];

/// Rounds of every workload: ours, each peer, then one thread, two threads and single precision.
const ROUNDS: usize = 5;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of the workloads; those that are missing are made there.
    #[arg(long, value_name = "DIR")]
    workloads: Option<PathBuf>,
    /// Python with the packages of benches/peers/requirements.txt.
    #[arg(long, value_name = "PATH", default_value = "python3")]
    python: PathBuf,
    /// Threads of both sides.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// Only these workloads.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Three rounds.
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    if let Some(unknown) = (args.only.iter()).find(|n| WORKLOADS.iter().all(|w| w.name != **n)) {
        let known: Vec<_> = WORKLOADS.iter().map(|w| w.name).collect();
        return Err(format!("no workload `{unknown}`; there are {}", known.join(", ")).into());
    }
    let program = build()?;
    let out = target().join("compare");
    fs::create_dir_all(&out)?;
    let folder = (args.workloads.clone()).unwrap_or_else(|| out.join("workloads"));

    println!(
        "{:<18} {:>8} {:<22} {:>11} {:>11} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "workload",
        "threads",
        "peer",
        "ours s/it",
        "peer s/it",
        "ratio",
        "target",
        "score",
        "time",
        "target",
        "1t:2t",
        "f64:f32",
        "MB",
        "limit"
    );
    let mut report = Vec::new();
    for w in WORKLOADS {
        if !args.only.is_empty() && !args.only.iter().any(|n| n == w.name) {
            continue;
        }
        match compare(w, args, &program, &folder, &out) {
            Ok(entry) => {
                print!("{}", rows(&entry));
                report.push(entry);
            }
            Err(e) => {
                println!("{:<18} not run: {e}", w.name);
                report.push(json!({ "workload": w.name, "error": e.to_string() }));
            }
        }
        // After every workload, so that an interrupted comparison leaves what it has.
        let text = serde_json::to_vec_pretty(&json!({
            "threads": args.threads, "quick": args.quick, "workloads": report
        }))?;
        write_atomically(&out.join("report.json"), |f| {
            std::io::Write::write_all(f, &text)
        })?;
    }
    println!(
        "times and ratios are medians of the rounds, a ratio that of neighbours in time; of one run: score, our divergence or squared error over the peer's, from the same start in the same time,\n\
         and time, the peer's seconds over ours until the peer's last objective, both by the solver fast where a picture says so; MB: our largest peak of resident memory, and what we allow ourselves"
    );
    Ok(report
        .iter()
        .all(|r| r["error"].is_null() && within_limit(r)))
}

/// Whether no run of ours took more memory than allowed; so too where the system does not tell.
fn within_limit(entry: &Value) -> bool {
    let of = |name: &str| entry["ours"][name].as_f64();
    of("peak_mb")
        .zip(of("allowed_mb"))
        .is_none_or(|(peak, allowed)| peak <= allowed)
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Builds the command; its path.
fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(root())
        .args(["build", "--release", "--quiet", "--package", "plca-cli"])
        .status()?;
    if !status.success() {
        return Err("the plca command does not build".into());
    }
    let name = format!("plca{}", std::env::consts::EXE_SUFFIX);
    Ok(target().join("release").join(name))
}

/// Ours and the peers by turns, so that a change of the machine's pace meets both; a ratio is that of neighbours in time.
fn compare(w: &Workload, args: &Args, program: &Path, folder: &Path, out: &Path) -> Result<Value> {
    let raw = folder.join(w.name);
    if !raw.join("meta.json").exists() {
        make(w.name, &args.python, folder)?;
    }
    let files = convert(&raw, &out.join(w.name))?;
    let rounds = if args.quick { 3 } else { ROUNDS };
    let (iterations, budget) = (w.iterations, w.budget);
    let threads = usize::from(args.threads);
    let mut ours: Vec<Ours> = Vec::new();
    let mut peers: Vec<(&str, Vec<Result<Theirs>>)> =
        w.peers.iter().map(|&p| (p, Vec::new())).collect();
    let (mut one_over_two, mut double_over_single) = (Vec::new(), Vec::new());
    let mut peaks = Vec::new();
    for _ in 0..rounds {
        ours.push(fit(program, &files, iterations, threads, "f64", out)?);
        for (peer, runs) in &mut peers {
            // What is not installed the first time is not asked for again.
            if !matches!(runs.first(), Some(Err(_))) {
                runs.push(run_peer(
                    w.name,
                    peer,
                    &args.python,
                    args.threads,
                    folder,
                    budget,
                ));
            }
        }
        let one = fit(program, &files, iterations, 1, "f64", out)?;
        let two = fit(program, &files, iterations, 2, "f64", out)?;
        let single = fit(program, &files, iterations, 1, "f32", out)?;
        one_over_two.push(one.per_iteration / two.per_iteration);
        double_over_single.push(one.per_iteration / single.per_iteration);
        peaks.extend([one, two, single].into_iter().filter_map(|run| run.peak_mb));
    }
    peaks.extend(ours.iter().filter_map(|run| run.peak_mb));
    let mine = median(ours.iter().map(|r| r.per_iteration).collect());
    // Our objective over theirs after their seconds, and their seconds over ours until their objective.
    let longest = (peers.iter().flat_map(|(_, runs)| runs))
        .filter_map(|run| Some(run.as_ref().ok()?.seconds))
        .fold(0.0, f64::max);
    let course = follow(program, &files, (w.solver, longest), threads, out)?;
    race::picture(w.name, w.solver, &course, &files, &peers, out)?;
    let race = |theirs: &Theirs| -> (Option<f64>, Option<f64>) {
        let Some(goal) = theirs.objective else {
            return (None, None);
        };
        let score = course.objective_within(theirs.seconds);
        let seconds = course.seconds_until(|objective| files.as_peers_do(objective) <= goal);
        (
            score.map(|objective| files.as_peers_do(objective) / goal),
            seconds.map(|seconds| theirs.seconds / seconds),
        )
    };
    let peers: Vec<Value> = peers
        .iter()
        .map(|(name, runs)| {
            let good = || ours.iter().zip(runs).filter_map(|(o, r)| Some((o, r.as_ref().ok()?)));
            let ratios = good().map(|(o, r)| r.per_iteration / o.per_iteration).collect();
            let times: Vec<_> = good().map(|(_, r)| r.per_iteration).collect();
            match good().next() {
                Some((_, first)) => {
                    let (score, time) = race(first);
                    json!({
                        "objective_at_equal_time": score,
                        "time_to_equal_objective": time,
                        "peer": name,
                        "s_per_iter": median(times.clone()),
                        "runs": times,
                        "objective": first.objective,
                        "ratio": median(ratios),
                    })
                }
                None => {
                    let why = runs.iter().find_map(|r| r.as_ref().err());
                    json!({ "peer": name, "missing": why.map_or_else(String::new, ToString::to_string) })
                }
            }
        })
        .collect();
    Ok(json!({
        "workload": w.name,
        "target": { "peer": w.peers.first(), "ratio": w.target, "time": w.time_target },
        "threads": threads,
        "ours": {
            "s_per_iter": mine,
            "runs": ours.iter().map(|r| r.per_iteration).collect::<Vec<_>>(),
            "iterations": iterations,
            "objective": ours[0].objective,
            "peak_mb": peaks.into_iter().max_by(f64::total_cmp),
            "allowed_mb": files.allowed_mb,
        },
        "peers": peers,
        "one_thread_over_two": median(one_over_two),
        "f64_over_f32": median(double_over_single),
    }))
}

fn median(mut of: Vec<f64>) -> Option<f64> {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied()
}

/// One line of the table for each peer.
fn rows(entry: &Value) -> String {
    let number = |v: &Value, digits: usize| {
        v.as_f64()
            .map_or_else(|| "-".to_string(), |x| format!("{x:.digits$}"))
    };
    let target = |peer: &Value, what: &str| -> Value {
        if peer["peer"] == entry["target"]["peer"] {
            entry["target"][what].clone()
        } else {
            Value::Null
        }
    };
    let mut text = String::new();
    for peer in entry["peers"].as_array().into_iter().flatten() {
        let theirs = match peer["missing"].as_str() {
            Some(_) => "missing".to_string(),
            None => number(&peer["s_per_iter"], 5),
        };
        let _ = writeln!(
            text,
            "{:<18} {:>8} {:<22} {:>11} {:>11} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
            entry["workload"].as_str().unwrap_or_default(),
            entry["threads"].to_string(),
            peer["peer"].as_str().unwrap_or_default(),
            number(&entry["ours"]["s_per_iter"], 5),
            theirs,
            number(&peer["ratio"], 2),
            number(&target(peer, "ratio"), 1),
            number(&peer["objective_at_equal_time"], 4),
            number(&peer["time_to_equal_objective"], 2),
            number(&target(peer, "time"), 1),
            number(&entry["one_thread_over_two"], 2),
            number(&entry["f64_over_f32"], 2),
            number(&entry["ours"]["peak_mb"], 0),
            number(&entry["ours"]["allowed_mb"], 0),
        );
        if let Some(why) = peer["missing"].as_str() {
            let _ = writeln!(text, "{:<18} {:>8} ({why})", "", "");
        }
    }
    text
}
