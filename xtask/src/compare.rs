//! `compare`: the `plca` command and its peers in turn, on the same workloads from the same starts.
//!
//! Nothing recorded enters the table: what cannot be run here is shown as missing.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use plca_io::{Array, DataFile, ModelFile, read_data, write_atomically, write_model};
use serde_json::{Value, json};

use crate::{Result, root};

/// A workload, the peers that can do it, and how long ours runs.
struct Workload {
    name: &'static str,
    peers: &'static [&'static str],
    iterations: usize,
    /// Seconds of a peer's run; the peers' slowest iterations need the longest.
    budget: f64,
    /// The ratio to the first peer that we hold ourselves to, where there is one.
    target: Option<f64>,
}

const MATRIX: &[&str] = &["sklearn-mu-kl", "torchnmf-nmf-kl"];
const TENSOR: &[&str] = &["pyttb-cp_apr-mu-1inner"];

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
    }
}

const WORKLOADS: &[Workload] = &[
    workload("dense-spectrogram", MATRIX, 60, 3.0, Some(4.5)),
    workload("dense-faces", MATRIX, 100, 3.0, None),
    workload("sparse-text-k20", MATRIX, 80, 3.0, Some(40.0)),
    workload("sparse-text-k100", MATRIX, 40, 8.0, Some(40.0)),
    workload("sparse-large", MATRIX, 40, 60.0, Some(60.0)),
    workload("tensor-3d", TENSOR, 40, 4.0, Some(11.0)),
    workload("tensor-sparse-3d", TENSOR, 40, 12.0, Some(60.0)),
];

/// Iterations between two marks of time. A mark computes the objective, which is part of our time, not of the peers'.
const CHECK_EVERY: usize = 20;

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

/// What one run of our command took.
#[derive(Clone, Copy, Debug)]
struct Ours {
    per_iteration: f64,
    objective: f64,
    peak_mb: Option<f64>,
}

/// What one run of a peer took.
#[derive(Clone, Copy, Debug)]
struct Theirs {
    per_iteration: f64,
    objective: Option<f64>,
}

/// Files of a workload as the command reads them.
struct Files {
    model: &'static str,
    data: PathBuf,
    init: PathBuf,
    shape: Option<String>,
    /// 1.25 times dense cells or 2.5 times the coordinates, plus 8 times the factors and 64 MiB.
    allowed_mb: f64,
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
        "{:<18} {:>8} {:<22} {:>11} {:>11} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "workload",
        "threads",
        "peer",
        "ours s/it",
        "peer s/it",
        "ratio",
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
        "times and ratios are medians of the rounds, a ratio that of neighbours in time; MB: our largest peak of resident memory, and what we allow ourselves"
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
                runs.push(run_peer(w.name, peer, args, folder, budget));
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
    let peers: Vec<Value> = peers
        .iter()
        .map(|(name, runs)| {
            let good = || ours.iter().zip(runs).filter_map(|(o, r)| Some((o, r.as_ref().ok()?)));
            let ratios = good().map(|(o, r)| r.per_iteration / o.per_iteration).collect();
            let times: Vec<_> = good().map(|(_, r)| r.per_iteration).collect();
            match good().next() {
                Some((_, first)) => json!({
                    "peer": name,
                    "s_per_iter": median(times.clone()),
                    "runs": times,
                    "objective": first.objective,
                    "ratio": median(ratios),
                }),
                None => {
                    let why = runs.iter().find_map(|r| r.as_ref().err());
                    json!({ "peer": name, "missing": why.map_or_else(String::new, ToString::to_string) })
                }
            }
        })
        .collect();
    Ok(json!({
        "workload": w.name,
        "target": { "peer": w.peers.first(), "ratio": w.target },
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
    let mut text = String::new();
    for peer in entry["peers"].as_array().into_iter().flatten() {
        let theirs = match peer["missing"].as_str() {
            Some(_) => "missing".to_string(),
            None => number(&peer["s_per_iter"], 5),
        };
        let _ = writeln!(
            text,
            "{:<18} {:>8} {:<22} {:>11} {:>11} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
            entry["workload"].as_str().unwrap_or_default(),
            entry["threads"].to_string(),
            peer["peer"].as_str().unwrap_or_default(),
            number(&entry["ours"]["s_per_iter"], 5),
            theirs,
            number(&peer["ratio"], 2),
            number(
                if peer["peer"] == entry["target"]["peer"] {
                    &entry["target"]["ratio"]
                } else {
                    &Value::Null
                },
                1
            ),
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

fn scripts() -> PathBuf {
    root().join("benches").join("peers")
}

fn make(name: &str, python: &Path, folder: &Path) -> Result<()> {
    let done = Command::new(python)
        .arg(scripts().join("make_workloads.py"))
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

fn run_peer(workload: &str, peer: &str, args: &Args, folder: &Path, budget: f64) -> Result<Theirs> {
    let done = Command::new(&args.python)
        .arg(scripts().join("run_peers.py"))
        .arg(folder)
        .args(["--workloads", workload, "--peers", peer])
        .args(["--threads", &args.threads.to_string()])
        .args(["--budget", &budget.to_string()])
        .output()
        .map_err(|e| format!("{}: {e}", args.python.display()))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let Some(line) = text.lines().rfind(|l| l.starts_with('{')) else {
        return Err(last_line(&done.stderr).into());
    };
    let result: Value = serde_json::from_str(line)?;
    match (result["s_per_iter_min"].as_f64(), result["error"].as_str()) {
        (Some(per_iteration), None) => Ok(Theirs {
            per_iteration,
            objective: result["objective"].as_f64(),
        }),
        (_, Some(error)) => Err(error.into()),
        _ => Err("the peer reported no time".into()),
    }
}

fn dense(path: &Path) -> Result<Array<f64>> {
    match read_data::<f64>(path, None)? {
        DataFile::Dense(array) => Ok(array),
        DataFile::Sparse(_) => Err(format!("{}: is not dense", path.display()).into()),
    }
}

/// A workload's arrays as data and initial values for the command. A converted list of entries stays until the workload changes.
fn convert(raw: &Path, to: &Path) -> Result<Files> {
    let meta: Value = serde_json::from_slice(&fs::read(raw.join("meta.json"))?)?;
    let matrix = meta["kind"] == "nmf";
    let sparse = meta["sparse"] == true;
    let shape: Option<Vec<u64>> = meta["shape"]
        .as_array()
        .map(|s| s.iter().filter_map(Value::as_u64).collect());
    fs::create_dir_all(to)?;
    let bytes = |name: &str| fs::metadata(raw.join(name)).map_or(0.0, |m| m.len() as f64);
    let factors = meta["shapes"].as_array().map_or(0, Vec::len);
    let factor_bytes: f64 = (0..factors).map(|i| bytes(&format!("F{i}.npy"))).sum();
    let data_bytes = if sparse {
        // An index of four bytes per mode and a value of eight.
        let entries = bytes(if matrix { "X_data.npy" } else { "X_vals.npy" }) / 8.0;
        2.5 * entries * (4.0 * factors as f64 + 8.0)
    } else {
        1.25 * bytes("X.npy")
    };
    let files = Files {
        allowed_mb: (data_bytes + 8.0 * factor_bytes) / 1e6 + 67.1,
        model: if matrix { "nmf-kl" } else { "plca" },
        data: if sparse {
            to.join("X.tns")
        } else {
            raw.join("X.npy")
        },
        init: to.join("init.npz"),
        shape: shape.map(|s| {
            let s: Vec<_> = s.iter().map(u64::to_string).collect();
            s.join("x")
        }),
    };
    if sparse && !newer(&files.data, &raw.join("meta.json")) {
        let entries = if matrix { rows_of(raw)? } else { list_of(raw)? };
        write_atomically(&files.data, |f| {
            std::io::Write::write_all(f, entries.as_bytes())
        })?;
    }
    let mut given = (0..factors)
        .map(|i| dense(&raw.join(format!("F{i}.npy"))))
        .collect::<Result<Vec<_>>>()?;
    let mut init = ModelFile::default();
    if matrix {
        for (name, factor) in ["w", "h"].into_iter().zip(given) {
            init.arrays.insert(name.into(), factor);
        }
    } else {
        // The command's factors are distributions: their sums are the weights.
        let k = given.first().map_or(0, |f| f.shape[1]);
        let mut weights = vec![1.0; k];
        for factor in &mut given {
            for (z, weight) in weights.iter_mut().enumerate() {
                let sum: f64 = factor.values.iter().skip(z).step_by(k).sum();
                *weight *= sum;
                (factor.values.iter_mut().skip(z).step_by(k)).for_each(|x| *x /= sum);
            }
        }
        let mass: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= mass);
        init.arrays
            .insert("weights".into(), Array::new(vec![k], weights));
        for (j, factor) in given.into_iter().enumerate() {
            init.arrays.insert(format!("factor_{j}"), factor);
        }
    }
    write_model(&files.init, &init, false)?;
    Ok(files)
}

/// Whether `made` is there and no older than what it was made from.
fn newer(made: &Path, from: &Path) -> bool {
    let time = |p: &Path| fs::metadata(p).and_then(|m| m.modified());
    matches!((time(made), time(from)), (Ok(made), Ok(from)) if made >= from)
}

/// Compressed rows as a list of entries counted from 1.
fn rows_of(raw: &Path) -> Result<String> {
    let pointers = dense(&raw.join("X_indptr.npy"))?.values;
    let columns = dense(&raw.join("X_indices.npy"))?.values;
    let values = dense(&raw.join("X_data.npy"))?.values;
    let mut text = String::new();
    for (row, range) in pointers.windows(2).enumerate() {
        for at in range[0] as usize..range[1] as usize {
            writeln!(text, "{} {} {}", row + 1, columns[at] + 1.0, values[at])?;
        }
    }
    Ok(text)
}

/// Coordinates as a list of entries counted from 1.
fn list_of(raw: &Path) -> Result<String> {
    let coordinates = dense(&raw.join("X_coords.npy"))?;
    let values = dense(&raw.join("X_vals.npy"))?.values;
    let mut text = String::new();
    for (index, value) in (coordinates.values.chunks_exact(coordinates.shape[1])).zip(values) {
        for i in index {
            write!(text, "{} ", i + 1.0)?;
        }
        writeln!(text, "{value}")?;
    }
    Ok(text)
}

/// One run of the command.
fn fit(
    program: &Path,
    files: &Files,
    iterations: usize,
    threads: usize,
    precision: &str,
    out: &Path,
) -> Result<Ours> {
    let trace = out.join("trace.jsonl");
    let mut command = Command::new(program);
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
        .args(["--check-every", &CHECK_EVERY.to_string()])
        .args(["--threads", &threads.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if let Some(shape) = files
        .shape
        .as_ref()
        .filter(|_| files.data.ends_with("X.tns"))
    {
        command.args(["--shape", shape]);
    }
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
    let objective = points.last().and_then(|p| p["objective"].as_f64());
    match objective {
        Some(objective) if per_iteration.is_finite() => Ok(Ours {
            per_iteration,
            objective,
            peak_mb,
        }),
        _ => Err("the trace has fewer than two marks".into()),
    }
}

/// `VmHWM` in megabytes, where the system tells.
fn high_water(status: &Path) -> Option<f64> {
    let text = fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}
