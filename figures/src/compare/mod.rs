//! `compare`: the `plca` command and its peers in turn, on the same workloads from the same starts.
//!
//! Nothing recorded enters the table: what cannot be run here is shown as missing. What was measured is added to a file of all
//! comparisons of this checkout, `target/compare/history.jsonl`, and is a table of docs/PERFORMANCE.md in `target/compare/table.md`.

mod files;
mod machine;
mod measure;
mod race;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use plca_io::write_atomically;
use serde_json::{Value, json};

use self::files::{Files, convert};
use self::machine::{Isa, Machine};
use self::measure::{Ours, Program, Theirs, fit, follow, make, run_peer, run_solver};
use self::race::Race;
use crate::plot::Panel;
use crate::{Result, build, target};

/// What we hold ourselves to; 0 where there is nothing.
#[derive(Clone, Copy, Debug)]
struct Targets {
    /// The ratio to the first peer, by iteration.
    ratio: f64,
    /// The first peer's time over ours until its last objective.
    time: f64,
    /// The share of the rate of square products.
    share: f64,
}

const fn by_iteration(ratio: f64) -> Targets {
    Targets {
        ratio,
        time: 0.0,
        share: 0.0,
    }
}

const fn iterations(avx2: f64, avx512: f64) -> [Targets; 2] {
    [by_iteration(avx2), by_iteration(avx512)]
}

const fn and_time(ratio: f64, time: f64) -> Targets {
    Targets {
        time,
        ..by_iteration(ratio)
    }
}

/// A workload, the peers that can do it, and how long ours runs.
struct Workload {
    name: &'static str,
    /// What it is, in the tables of the documentation.
    about: &'static str,
    peers: &'static [&'static str],
    iterations: usize,
    /// Seconds of a peer's run; the peers' slowest iterations need the longest.
    budget: f64,
    /// What we hold ourselves to with AVX2 and with AVX-512.
    targets: [Targets; 2],
    /// An iteration on one thread over one on two, where the machine grants two cores.
    two_threads: f64,
    /// An iteration in double over one in single precision.
    single: f64,
    /// What ours runs by until that objective.
    solver: &'static str,
    /// Of the public data sets.
    real: bool,
}

const MATRIX: &[&str] = &["sklearn-mu-kl", "torchnmf-nmf-kl"];
const TENSOR: &[&str] = &["pyttb-cp_apr-mu-1inner"];
const SQUARED: &[&str] = &["tensorly-hals-l2", "tensorly-mu-l2"];
const SHIFTED: &[&str] = &["torchnmf-siplca", "torchnmf-nmfd"];
const SIGNED: &[&str] = &["wonterfact-em"];
const VARIATIONAL: &[&str] = &["wonterfact-vbem"];

const fn workload(
    [name, about]: [&'static str; 2],
    peers: &'static [&'static str],
    iterations: usize,
    budget: f64,
    targets: [Targets; 2],
) -> Workload {
    Workload {
        name,
        about,
        peers,
        iterations,
        budget,
        targets,
        two_threads: 1.7,
        single: 1.9,
        solver: "em",
        real: false,
    }
}

impl Workload {
    /// Runs by the fast solver until a peer's objective.
    const fn fast(self) -> Self {
        Self {
            solver: "fast",
            ..self
        }
    }

    /// Of the public data sets.
    const fn real(self) -> Self {
        Self { real: true, ..self }
    }

    /// With other targets of two threads and of single precision.
    const fn holds(self, two_threads: f64, single: f64) -> Self {
        Self {
            two_threads,
            single,
            ..self
        }
    }
}

const WORKLOADS: &[Workload] = &[
    workload(
        ["dense-spectrogram", "dense 1025 x 3000, K = 40"],
        MATRIX,
        60,
        9.0,
        SPECTROGRAM,
    )
    .fast(),
    workload(
        ["dense-faces", "dense 361 x 2429, K = 50"],
        MATRIX,
        100,
        10.0,
        [and_time(2.7, 6.5); 2],
    )
    .fast(),
    workload(
        [
            "sparse-text-k20",
            "sparse text 18000 x 10000, 0.5 % filled, K = 20",
        ],
        MATRIX,
        80,
        10.0,
        TEXT,
    )
    .fast()
    .holds(1.7, 1.3),
    workload(
        ["ap-corpus", "newspaper articles 2246 x 10473, K = 50"],
        MATRIX,
        80,
        10.0,
        [and_time(0.0, 10.0); 2],
    )
    .fast()
    .real()
    .holds(1.7, 1.3),
    workload(
        ["sparse-text-k100", "the text, K = 100"],
        MATRIX,
        40,
        8.0,
        iterations(14.0, 25.0),
    )
    .holds(1.7, 1.3),
    workload(
        ["sparse-large", "sparse 200000 x 30000, 2e7 entries, K = 32"],
        MATRIX,
        40,
        60.0,
        iterations(30.0, 80.0),
    )
    .holds(1.7, 1.3),
    workload(
        ["tensor-3d", "dense 200 x 200 x 200, K = 20"],
        TENSOR,
        40,
        4.0,
        iterations(15.0, 27.0),
    ),
    workload(
        [
            "tensor-sparse-3d",
            "sparse 5000 x 4000 x 500, 5e6 entries, K = 16",
        ],
        TENSOR,
        40,
        12.0,
        iterations(80.0, 190.0),
    )
    .holds(1.7, 1.3),
    // Transforms are in double precision whatever the data.
    workload(
        [
            "siplca-image",
            "shifted: colour image 136 x 511 x 3, kernel 35 x 25 x 3",
        ],
        SHIFTED,
        60,
        8.0,
        iterations(300.0, 300.0),
    )
    .holds(1.5, 0.0),
    workload(
        [
            "siplca-cqt",
            "shifted: constant-Q 234 x 317, kernel 180 x 1",
        ],
        SHIFTED,
        200,
        4.0,
        iterations(350.0, 350.0),
    )
    .holds(1.5, 0.0),
    workload(
        [
            "siplca-handwriting",
            "shifted: handwriting 81 x 113, three kernels 15 x 15",
        ],
        SHIFTED,
        200,
        4.0,
        iterations(160.0, 170.0),
    )
    .holds(1.5, 0.0),
    workload(
        [
            "siplca-speech",
            "shifted: speech 513 x 938, K = 20, kernel 513 x 8",
        ],
        SHIFTED,
        80,
        4.0,
        iterations(1.25, 1.3),
    ),
    workload(
        [
            "pntf-faces",
            "squared error: dense 19 x 19 x 2429, K = 50, `pntf`",
        ],
        SQUARED,
        80,
        8.0,
        FACES,
    )
    .holds(1.5, 0.0),
    workload(
        ["skellam-21x5000", "signed 21 x 5000, K = 3, `skellam`"],
        SIGNED,
        400,
        2.0,
        iterations(5.0, 5.0),
    )
    .holds(0.0, 0.0),
    workload(
        ["skellam-9x14500", "signed 9 x 14500, K = 7, `skellam`"],
        SIGNED,
        200,
        2.0,
        iterations(3.0, 3.0),
    )
    .holds(0.0, 0.0),
    workload(
        [
            "skellam-vb-21x5000",
            "signed 21 x 5000, K = 3, `skellam-vb`",
        ],
        VARIATIONAL,
        200,
        2.0,
        iterations(3.0, 3.0),
    )
    .holds(0.0, 0.0),
];

const SPECTROGRAM: [Targets; 2] = [
    Targets {
        share: 0.8,
        ..and_time(2.7, 4.5)
    },
    and_time(4.3, 4.5),
];
const TEXT: [Targets; 2] = [and_time(22.0, 20.0), and_time(35.0, 20.0)];
const FACES: [Targets; 2] = [and_time(12.0, 5.0), and_time(15.0, 5.0)];

/// Starts from which the time to a peer's objective is measured, where there is a target.
const STARTS: usize = 3;

/// A whole run of the fast solver on one thread over one on two.
const WHOLE_RUN: f64 = 1.6;
/// Work of two threads at once, over that of one, from which on we speak of two cores.
const TWO_CORES: f64 = 1.8;

/// Rounds of every workload: ours, each peer, then one thread, two threads and single precision.
const ROUNDS: u16 = 5;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of the workloads; those that are missing are made there.
    #[arg(long, value_name = "DIR")]
    workloads: Option<PathBuf>,
    /// Folder with the public data sets, for the workloads of real data.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Python with the packages of benches/peers/requirements.txt.
    #[arg(long, value_name = "PATH", default_value = "python3")]
    python: PathBuf,
    /// Threads of both sides.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// Holds our kernels to an instruction set, so that a machine of a wider one measures both.
    #[arg(long, value_enum)]
    isa: Option<Isa>,
    /// Only these workloads.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Rounds of every workload.
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Three rounds.
    #[arg(long, conflicts_with = "rounds")]
    quick: bool,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    if let Some(unknown) = (args.only.iter()).find(|n| WORKLOADS.iter().all(|w| w.name != **n)) {
        let known: Vec<_> = WORKLOADS.iter().map(|w| w.name).collect();
        return Err(format!("no workload `{unknown}`; there are {}", known.join(", ")).into());
    }
    let machine = Machine::measure(args.isa)?;
    let features = args.isa.map(|_| "instruction-sets");
    let program = Program {
        path: build(features.as_slice())?,
        isa: args.isa,
    };
    let out = target().join("compare");
    fs::create_dir_all(&out)?;
    let folder = (args.workloads.clone()).unwrap_or_else(|| out.join("workloads"));

    println!("{}", machine.line());
    println!(
        "{:<18} {:>8} {:<22} {:>11} {:>11} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "workload",
        "threads",
        "peer",
        "ours s/it",
        "peer s/it",
        "share",
        "ratio",
        "target",
        "score",
        "time",
        "target",
        "1t:2t",
        "run",
        "f64:f32",
        "MB",
        "limit"
    );
    let (mut report, mut panels) = (Vec::new(), Vec::new());
    for w in WORKLOADS {
        if !args.only.is_empty() && !args.only.iter().any(|n| n == w.name) {
            continue;
        }
        if w.real && args.data.is_none() {
            println!("{:<18} not run: it needs --data", w.name);
            continue;
        }
        let place = Place {
            program: &program,
            machine: &machine,
            folder: &folder,
            out: &out,
        };
        match compare(w, args, &place) {
            Ok((entry, panel)) => {
                print!("{}", rows(&entry));
                report.push(entry);
                panels.extend(panel);
            }
            Err(e) => {
                println!("{:<18} not run: {e}", w.name);
                report.push(json!({ "workload": w.name, "error": e.to_string() }));
            }
        }
        // After every workload, so that an interrupted comparison leaves what it has.
        let text = serde_json::to_vec_pretty(&json!({
            "machine": machine.json(), "threads": args.threads, "workloads": report
        }))?;
        write_atomically(&out.join("report.json"), |f| {
            std::io::Write::write_all(f, &text)
        })?;
    }
    if !panels.is_empty() {
        race::picture(panels, &out)?;
    }
    println!(
        "times and ratios are medians of the rounds, a ratio that of neighbours in time; share: our multiplications and additions a second over those of\n\
         the square product above; from the same start in the same time: score, our divergence or squared error over the peer's,\n\
         and time, the peer's seconds over ours until the peer's last objective, the worst of {STARTS} starts where there is a target, else of one, by the solver that race.png names;\n\
         1t:2t: an iteration on one thread over one on two; run: where there is a target of time, a whole run of the raced solver from the data in memory to the closing step,\n\
         the sooner of two on one thread over the sooner of two on two, the worst start;\n\
         MB: our largest peak of resident memory, and what we allow ourselves"
    );
    record(&out, &machine, &report)?;
    let text = page(&machine.line(), &report);
    write_atomically(&out.join("table.md"), |f| f.write_all(text.as_bytes()))?;
    let two_cores = machine.two_threads >= TWO_CORES;
    if !two_cores {
        println!("the machine grants less than two cores: targets of two threads are not held");
    }
    let missed: Vec<String> = (report.iter())
        .flat_map(|entry| missed(entry, two_cores))
        .collect();
    for what in &missed {
        println!("missed: {what}");
    }
    Ok(missed.is_empty())
}

/// Adds the comparison to those before it, one line each.
fn record(out: &Path, machine: &Machine, report: &[Value]) -> Result<()> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let line = json!({
        "unix_seconds": since.as_secs(), "machine": machine.json(), "workloads": report
    });
    let path = out.join("history.jsonl");
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?;
    Ok(writeln!(file, "{line}")?)
}

/// The least number of a list.
fn least(of: &Value) -> Value {
    let all = of.as_array().into_iter().flatten();
    all.filter_map(Value::as_f64).reduce(f64::min).into()
}

/// What is behind its target in a workload, in words; of two threads only where the machine grants `two_cores`.
fn missed(entry: &Value, two_cores: bool) -> Vec<String> {
    let name = entry["workload"].as_str().unwrap_or_default();
    if let Some(why) = entry["error"].as_str() {
        return vec![format!("{name}: {why}")];
    }
    let (ours, targets) = (&entry["ours"], &entry["target"]);
    let mut missed = Vec::new();
    let mut hold = |what: &str, got: &Value, wanted: &Value| {
        let Some(wanted) = wanted.as_f64().filter(|&w| w > 0.0) else {
            return;
        };
        match got.as_f64() {
            Some(got) if got >= wanted => {}
            Some(got) => missed.push(format!("{name}: {what} {got:.3}, not {wanted}")),
            None => missed.push(format!("{name}: {what} is not known")),
        }
    };
    let first = &entry["peers"][0];
    hold("ratio", &first["ratio"], &targets["ratio"]);
    hold("time", &first["time_to_equal_objective"], &targets["time"]);
    hold("f64:f32", &entry["f64_over_f32"], &targets["single"]);
    if !ours["share"].is_null() {
        hold("share", &ours["share"], &targets["share"]);
    }
    if two_cores {
        let two_threads = &entry["one_thread_over_two"];
        hold("1t:2t", two_threads, &targets["two_threads"]);
        let whole = least(&entry["raced"]["whole_one_thread_over_two"]);
        if !whole.is_null() && entry["raced"]["solver"] == "fast" {
            hold("run", &whole, &json!(WHOLE_RUN));
        }
    }
    // Where the system does not tell the peak, nothing is said of it.
    if let (Some(peak), Some(allowed)) = (ours["peak_mb"].as_f64(), ours["allowed_mb"].as_f64())
        && peak > allowed
    {
        missed.push(format!("{name}: {peak:.0} MB, not {allowed:.0}"));
    }
    missed
}

/// Where things are.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The command.
    program: &'a Program,
    machine: &'a Machine,
    /// The workloads.
    folder: &'a Path,
    out: &'a Path,
}

/// The workload's files, made where they are missing.
fn prepare(name: &str, args: &Args, place: &Place<'_>) -> Result<Files> {
    let raw = place.folder.join(name);
    if !raw.join("meta.json").exists() {
        make(name, &args.python, args.data.as_deref(), place.folder)?;
    }
    convert(&raw, &place.out.join(name))
}

/// Ours and the peers by turns, so that a change of the machine's pace meets both; a ratio is that of neighbours in time.
fn compare(w: &Workload, args: &Args, place: &Place<'_>) -> Result<(Value, Option<Panel>)> {
    let Place {
        program,
        machine,
        out,
        ..
    } = *place;
    let files = prepare(w.name, args, place)?;
    let none = by_iteration(0.0);
    let targets = machine.isa.map_or(none, |isa| w.targets[isa as usize]);
    let rounds = if args.quick { 3 } else { args.rounds };
    let iterations = w.iterations;
    let against = |peer: &str, workload: &str| {
        let (python, threads) = (&args.python, args.threads);
        run_peer(workload, peer, python, threads, place.folder, w.budget)
    };
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
                runs.push(against(peer, w.name));
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
    let share = mine
        .zip(files.flops)
        .zip(machine.product)
        .map(|((seconds, flops), [rate, _])| flops / seconds / rate);
    let (mut courses, mut whole_one_over_two) = (Vec::new(), Vec::new());
    let mut follow_all = |files: &Files, theirs: Vec<Option<Theirs>>| -> Result<Race> {
        let seconds = theirs.iter().flatten().map(|run| run.seconds);
        let longest = seconds.fold(0.0, f64::max);
        let course = follow(program, files, (w.solver, longest), threads, out)?;
        if let [(begin, _), .., (end, _)] = course.marks[..] {
            courses.push((end - begin) / (course.marks.len() - 1) as f64);
        }
        peaks.extend(course.peak_mb);
        if targets.time > 0.0 {
            // The sooner of two runs of each.
            let mut seconds = [f64::INFINITY; 2];
            for _ in 0..2 {
                for (threads, least) in (1..).zip(&mut seconds) {
                    let run = run_solver(program, files, (w.solver, iterations), threads, out)?;
                    *least = least.min(run.seconds);
                    peaks.extend(run.peak_mb);
                }
            }
            whole_one_over_two.push(seconds[0] / seconds[1]);
        }
        Ok(Race::new(&course, files, theirs))
    };
    let first = |(_, runs): &(&str, Vec<Result<Theirs>>)| runs.first()?.as_ref().ok().cloned();
    let mut races = vec![follow_all(&files, peers.iter().map(first).collect())?];
    let installed: Vec<bool> = peers.iter().map(|peer| first(peer).is_some()).collect();
    for start in 2..=if targets.time > 0.0 { STARTS } else { 1 } {
        let name = format!("{}.{start}", w.name);
        let files = prepare(&name, args, place)?;
        let pairs = w.peers.iter().zip(&installed);
        let runs = pairs.map(|(peer, &there)| there.then(|| against(peer, &name)).transpose());
        races.push(follow_all(&files, runs.collect::<Result<_>>()?)?);
    }
    let panel = (targets.time > 0.0).then(|| race::panel(w.name, w.solver, w.peers, &races));
    let peers: Vec<Value> = peers
        .iter()
        .enumerate()
        .map(|(at, (name, runs))| {
            let good = || ours.iter().zip(runs).filter_map(|(o, r)| Some((o, r.as_ref().ok()?)));
            let ratios = good().map(|(o, r)| r.per_iteration / o.per_iteration).collect();
            let times: Vec<_> = good().map(|(_, r)| r.per_iteration).collect();
            match good().next() {
                Some((_, first)) => {
                    let verdicts: Vec<_> = races.iter().filter_map(|r| r.verdict(at)).collect();
                    let scores: Vec<f64> = verdicts.iter().map(|v| v.score).collect();
                    let sooner: Vec<f64> = verdicts.iter().map(|v| v.sooner).collect();
                    json!({
                        "objective_at_equal_time": scores.iter().copied().reduce(f64::max),
                        "time_to_equal_objective": sooner.iter().copied().reduce(f64::min),
                        "of_starts": { "objective_at_equal_time": scores, "time_to_equal_objective": sooner },
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
    let entry = json!({
        "workload": w.name,
        "about": w.about,
        "target": {
            "peer": w.peers.first(), "ratio": targets.ratio, "time": targets.time, "share": targets.share,
            "two_threads": w.two_threads, "single": w.single,
        },
        "threads": threads,
        "rounds": rounds,
        "ours": {
            "s_per_iter": mine,
            "share": share,
            "runs": ours.iter().map(|r| r.per_iteration).collect::<Vec<_>>(),
            "iterations": iterations,
            "objective": ours[0].objective,
            "peak_mb": peaks.into_iter().max_by(f64::total_cmp),
            "allowed_mb": files.allowed_mb,
        },
        "peers": peers,
        "one_thread_over_two": median(one_over_two),
        "raced": {
            "solver": w.solver,
            "mean_s_per_iter": courses,
            "whole_one_thread_over_two": whole_one_over_two,
        },
        "f64_over_f32": median(double_over_single),
    });
    Ok((entry, panel))
}

/// The table of docs/PERFORMANCE.md: ratios and times are those to the first peer, targets in brackets.
fn page(machine: &str, report: &[Value]) -> String {
    let number = |v: &Value| match v.as_f64() {
        None => String::new(),
        Some(x) if x.abs() >= 100.0 => format!("{x:.0}"),
        Some(x) if x.abs() >= 10.0 => format!("{x:.1}"),
        Some(x) => format!("{x:.2}"),
    };
    let aimed = |v: &Value, target: &Value| match target.as_f64().filter(|&t| t > 0.0) {
        Some(t) if v.is_number() => format!("{} ({t})", number(v)),
        _ => number(v),
    };
    let mut text = format!(
        "{machine}\n\n| data | ms | share | ratio | time | 1t:2t | run | f64:f32 | MB |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    for entry in report.iter().filter(|entry| entry["error"].is_null()) {
        let (ours, peer, target) = (&entry["ours"], &entry["peers"][0], &entry["target"]);
        let ms = Value::from(ours["s_per_iter"].as_f64().map(|s| 1e3 * s));
        let whole = least(&entry["raced"]["whole_one_thread_over_two"]);
        let cells = [
            entry["about"].as_str().unwrap_or_default().to_string(),
            number(&ms),
            aimed(&ours["share"], &target["share"]),
            aimed(&peer["ratio"], &target["ratio"]),
            aimed(&peer["time_to_equal_objective"], &target["time"]),
            aimed(&entry["one_thread_over_two"], &target["two_threads"]),
            number(&whole),
            aimed(&entry["f64_over_f32"], &target["single"]),
            match (ours["peak_mb"].as_f64(), ours["allowed_mb"].as_f64()) {
                (Some(mb), Some(limit)) => format!("{mb:.0} of {limit:.0}"),
                _ => String::new(),
            },
        ];
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
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
        let of = entry["target"][what].as_f64().filter(|&x| x > 0.0);
        of.filter(|_| peer["peer"] == entry["target"]["peer"])
            .into()
    };
    let mut text = String::new();
    for peer in entry["peers"].as_array().into_iter().flatten() {
        let theirs = match peer["missing"].as_str() {
            Some(_) => "missing".to_string(),
            None => number(&peer["s_per_iter"], 5),
        };
        let _ = writeln!(
            text,
            "{:<18} {:>8} {:<22} {:>11} {:>11} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
            entry["workload"].as_str().unwrap_or_default(),
            entry["threads"].to_string(),
            peer["peer"].as_str().unwrap_or_default(),
            number(&entry["ours"]["s_per_iter"], 5),
            theirs,
            number(&entry["ours"]["share"], 2),
            number(&peer["ratio"], 2),
            number(&target(peer, "ratio"), 1),
            number(&peer["objective_at_equal_time"], 4),
            number(&peer["time_to_equal_objective"], 2),
            number(&target(peer, "time"), 1),
            number(&entry["one_thread_over_two"], 2),
            number(&least(&entry["raced"]["whole_one_thread_over_two"]), 2),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_row_for_every_workload_that_ran() {
        let entry = json!({
            "about": "dense", "target": { "ratio": 2.7, "time": 0.0, "share": 0.8, "two_threads": 1.7, "single": 0.0 },
            "ours": { "s_per_iter": 0.0161, "share": null, "peak_mb": 101.6, "allowed_mb": 108.0 },
            "peers": [{ "ratio": 3.456, "time_to_equal_objective": 214.4 }, { "ratio": 9.0 }],
            "one_thread_over_two": 1.999, "f64_over_f32": 1.5, "raced": { "whole_one_thread_over_two": [1.9, 1.8] },
        });
        let missing =
            json!({ "about": "signed", "peers": [{ "missing": "not installed" }], "ours": {} });
        let failed = json!({ "workload": "sparse", "error": "no data" });
        let text = page("a machine", &[entry, missing, failed]);
        let rows: Vec<&str> = text.lines().skip(4).collect();
        assert_eq!(
            rows,
            [
                "| dense | 16.1 |  | 3.46 (2.7) | 214 | 2.00 (1.7) | 1.80 | 1.50 | 102 of 108 |",
                "| signed |  |  |  |  |  |  |  |  |"
            ]
        );
    }
}
