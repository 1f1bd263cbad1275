//! `out-of-core`: a matrix of 2e7 entries fitted in memory and out of it: the same bytes, the memory and the time of both.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::Value;

use crate::{Result, build, high_water};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program [default: built from the sources as they stand].
    #[arg(long)]
    program: Option<PathBuf>,
    /// Folder for the data, which are kept, and the outputs.
    #[arg(long, default_value = "target/out-of-core")]
    out: PathBuf,
    /// Rows of the matrix.
    #[arg(long, default_value_t = 200_000)]
    rows: u32,
    /// Columns of the matrix.
    #[arg(long, default_value_t = 30_000)]
    columns: u32,
    /// Entries, of which a few fall on the same cell.
    #[arg(long, default_value_t = 20_000_000)]
    entries: u64,
    /// Components.
    #[arg(long, default_value_t = 32)]
    rank: usize,
    /// Iterations.
    #[arg(long, default_value_t = 6)]
    iterations: usize,
    /// Threads of both runs.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// MiB that a run out of core may take.
    #[arg(long, default_value_t = 200.0)]
    limit: f64,
    /// Models.
    #[arg(long, value_delimiter = ',', default_values = ["plsa", "plca", "nmf-kl"])]
    models: Vec<String>,
}

/// What a run took.
struct Run {
    mib: f64,
    seconds: f64,
    /// Of the quickest iteration between two marks of the trace.
    iteration: f64,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    std::fs::create_dir_all(&args.out)?;
    let program = match &args.program {
        Some(program) => program.clone(),
        None => build(&[])?,
    };
    let (rows, columns, entries) = (args.rows, args.columns, args.entries);
    let data = args.out.join(format!("{rows}x{columns}x{entries}.mtx"));
    if !data.exists() {
        println!("writing {}", data.display());
        plca_io::write_atomically(&data, |w| generate(w, rows, columns, entries))?;
    }
    println!("limit of a run out of core: {} MiB", args.limit);
    println!("| model | run | peak MiB | seconds | per iteration |");
    println!("|---|---|---|---|---|");
    let mut good = true;
    for model in &args.models {
        // Empty: no store of an earlier run is used.
        let folder = tempfile::tempdir_in(&args.out)?;
        let store = folder.path().join("data.store");
        let fit = |name: &str, store: Option<&Path>| -> Result<(Run, PathBuf, PathBuf)> {
            let [output, checkpoint] =
                ["npz", "checkpoint"].map(|e| args.out.join(format!("{model}-{name}.{e}")));
            let run = measure(&program, args, model, &data, (&output, &checkpoint), store)?;
            let Run {
                mib,
                seconds,
                iteration,
            } = &run;
            println!("| {model} | {name} | {mib:.1} | {seconds:.1} | {iteration:.3} |");
            Ok((run, output, checkpoint))
        };
        let (_, output, checkpoint) = fit("in memory", None)?;
        let mut made = None;
        for name in ["store made", "store used"] {
            let (run, own_output, own_checkpoint) = fit(name, Some(&store))?;
            let same = |a: &Path, b: &Path| -> Result<bool> {
                Ok(plca_io::sha256_file(a)? == plca_io::sha256_file(b)?)
            };
            if !same(&own_output, &output)? || !same(&own_checkpoint, &checkpoint)? {
                println!("{model}, {name}: other bytes than in memory");
                good = false;
            }
            if run.mib > args.limit {
                println!("{model}, {name}: more than {} MiB", args.limit);
                good = false;
            }
            let written = store.metadata()?.modified()?;
            if *made.get_or_insert(written) != written {
                println!("{model}, {name}: the store was made anew");
                good = false;
            }
        }
    }
    Ok(good)
}

/// Counts from 1 to 4, crowded at small indices of both modes, in the order in which they are drawn.
fn generate(
    w: &mut BufWriter<&mut std::fs::File>,
    rows: u32,
    columns: u32,
    entries: u64,
) -> std::io::Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut skewed = |n: u32| {
        let share = f64::from(rng.next_u32()) / 2f64.powi(32);
        1 + (share.powf(1.5) * f64::from(n)) as u32
    };
    writeln!(w, "%%MatrixMarket matrix coordinate integer general")?;
    writeln!(w, "{rows} {columns} {entries}")?;
    for at in 0..entries {
        let (i, j) = (skewed(rows), skewed(columns));
        writeln!(w, "{i} {j} {}", 1 + at % 4)?;
    }
    Ok(())
}

fn measure(
    program: &Path,
    args: &Args,
    model: &str,
    data: &Path,
    (output, checkpoint): (&Path, &Path),
    store: Option<&Path>,
) -> Result<Run> {
    let trace = args.out.join("trace.jsonl");
    let started = Instant::now();
    let mut command = Command::new(program);
    command
        .args(["fit", model])
        .arg(data)
        .arg("--output")
        .arg(output);
    command
        .arg("--checkpoint")
        .arg(checkpoint)
        .arg("--trace")
        .arg(&trace);
    command.args([
        "--checkpoint-every",
        "4",
        "--check-every",
        "1",
        "--tol",
        "0",
        "--quiet",
    ]);
    command.args(["--rank", &args.rank.to_string()]);
    command.args(["--max-iter", &args.iterations.to_string()]);
    command.args(["--threads", &args.threads.to_string()]);
    if let Some(store) = store {
        command.arg("--out-of-core").arg(store);
    }
    let mut child = command.stdout(Stdio::null()).spawn()?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut peak = None;
    let ended = loop {
        // The high-water mark never falls: the last one that was seen is the peak.
        peak = high_water(&status).or(peak);
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        sleep(Duration::from_millis(2));
    };
    if !ended.success() {
        return Err(format!("plca fit {model}: {ended}").into());
    }
    let peak = peak.ok_or("the system does not say how much memory a run took")?;
    let marks = std::fs::read_to_string(&trace)?;
    let marks = marks.lines().map(serde_json::from_str::<Value>);
    let marks = marks.collect::<std::result::Result<Vec<_>, _>>()?;
    let seconds = |mark: &Value| mark["seconds"].as_f64().unwrap_or(f64::NAN);
    let steps = marks.windows(2).map(|m| seconds(&m[1]) - seconds(&m[0]));
    Ok(Run {
        mib: peak * 1e6 / f64::from(1 << 20),
        seconds: started.elapsed().as_secs_f64(),
        iteration: steps.fold(f64::INFINITY, f64::min),
    })
}
