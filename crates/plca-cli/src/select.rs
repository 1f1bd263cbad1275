//! `plca select`: a table of scores per number of components.

mod bound;
mod cv;
mod kernels;
mod table;

use plca_em::best_rank;
use plca_fit::Solver;
use plca_run::ModelEntry;
use serde_json::{Value, json};

use crate::args::{Criterion, SelectArgs};
use crate::failure::Failure;
use crate::fitted::unfinished;
use crate::limits::{on_threads, ranks};
use crate::models::SCORED;
use crate::models::options::{need_matrix, refuse_foreign};

use crate::outputs::{print, warn};

use cv::validated;
use table::{Table, cross_validates, models, plca, table};

/// Options of `--criterion cv` alone.
const OF_CV: &[&str] = &[
    "--folds",
    "--repeats",
    "--rule",
    "--zeros",
    "--smooth",
    "--init",
    "--solver",
    "--update",
    "--missing-method",
];

/// Prints the table; `given` are the options that stand on the command line.
pub(crate) fn select(args: &SelectArgs, given: &[String]) -> Result<(), Failure> {
    if args.restarts == 0 {
        return Err(Failure::usage("--restarts 0: at least one start is needed"));
    }
    refuse_foreign(args.model, &args.called, given)?;
    args.ends.stop().check().map_err(Failure::usage)?;
    let cv = match args.criterion {
        Some(criterion) => criterion == Criterion::Cv,
        None => cross_validates(args.model),
    };
    if cv {
        return on_threads(args.threads, || validated(args))??.report(args);
    }
    if let Some(option) = given.iter().find(|option| OF_CV.contains(&&***option)) {
        return Err(Failure::usage(format!("{option} is for --criterion cv")));
    }
    let mut table = on_threads(args.threads, || scores(args))??;
    let wrong = |row: &&Value| !row["score"].is_number() || !row["log_likelihood"].is_number();
    if let Some(row) = table.rows.iter().find(wrong) {
        // Numbers that are none are null in JSON.
        let (rank, what) = (&row["rank"], table.criterion);
        let what = format!("rank {rank}: the score {what} is not finite");
        return Err(Failure::of(&args.data, what));
    }
    let unfinished = unfinished(table.cut, args.ends.max_iter, args.ends.tol);
    table.warnings.extend(unfinished);
    report(args, table)
}

/// The scores of a model.
fn scores(args: &SelectArgs) -> Result<Table, Failure> {
    match args.model.name {
        "plca" | "plsa" | "nmf-kl" => likelihood(args),
        "siplca" => kernels::scores(args),
        "plca-vb" | "plsa-vb" | "skellam-vb" => bound::scores(args),
        _ => {
            let scored = plca_run::models().iter();
            let scored = scored.filter(|model| SCORED.contains(&model.name));
            let scored: Vec<String> = scored.map(ModelEntry::called).collect();
            Err(Failure::usage(format!(
                "{} has no table of scores; expected one of {}; plca consensus compares numbers of components by what many fits agree on",
                args.called,
                scored.join(", ")
            )))
        }
    }
}

/// Scores from the likelihood of PLCA, of which PLSA and KL-NMF are other parameters. With hidden cells too: `s P(x, y)`,
/// `s(y) P(x | y)` and `W H` are all non-negative matrices of rank `K`, and the likelihoods the best over the scales, so their
/// maxima are one number.
fn likelihood(args: &SelectArgs) -> Result<Table, Failure> {
    let (ranks, plca) = (ranks(&args.ranks)?, plca()?);
    table(args, (plca, Solver::Auto), |shape| {
        let name = args.model.name;
        if name != "plca" {
            need_matrix(&args.data, name, shape)?;
        }
        let labels = ranks.iter().map(|rank| json!({ "rank": rank })).collect();
        Ok((models(plca, args, &ranks, shape)?, labels))
    })
}

/// Prints a table, as JSON or for a person.
fn report(args: &SelectArgs, table: Table) -> Result<(), Failure> {
    let Table {
        criterion,
        sample_size,
        rows,
        warnings,
        ..
    } = table;
    let value = |at: usize, name: &str| rows[at][name].as_f64().unwrap_or(f64::NAN);
    let rank = |row: &Value| {
        row["rank"]
            .as_u64()
            .map_or(usize::MAX, |rank| rank as usize)
    };
    let scores = rows.iter().enumerate();
    let scores: Vec<_> = scores
        .map(|(at, row)| (rank(row), value(at, "score")))
        .collect();
    let best = best_rank(&scores);
    let of_best = |name: &str| best.map_or(Value::Null, |at| rows[at][name].clone());
    let mut out = json!({
        "model": args.model.name,
        "criterion": criterion,
        "sample_size": sample_size,
        "rule": "best",
        "best": of_best("rank"),
        "proposed": of_best("rank"),
        "table": rows,
        "warnings": warnings,
    });
    let kernels = rows.iter().any(|row| row["kernel"].is_array());
    if kernels {
        out["best_kernel"] = of_best("kernel");
    }
    warn(args.quiet || args.json, &warnings);
    if args.json {
        return print(&format!("{out}\n"));
    }
    let kernel = |text: &str| {
        if kernels {
            format!(" {text:>12}")
        } else {
            String::new()
        }
    };
    let mut text = format!(
        "{:>5}{} {criterion:>16} {:>18} {:>11}\n",
        "rank",
        kernel("kernel"),
        "log_likelihood",
        "parameters"
    );
    // Scores of data that are fitted nearly exactly are small.
    let small = (0..rows.len()).any(|at| value(at, "score").abs() < 0.1);
    let digits = if small { 8 } else { 4 };
    for (at, row) in rows.iter().enumerate() {
        let mark = if best == Some(at) { " <- best" } else { "" };
        let extents = row["kernel"].as_array().into_iter().flatten();
        let extents: Vec<String> = extents.map(Value::to_string).collect();
        text.push_str(&format!(
            "{:>5}{} {:>16.digits$} {:>18.4} {:>11}{mark}\n",
            row["rank"],
            kernel(&extents.join("x")),
            value(at, "score"),
            value(at, "log_likelihood"),
            row["parameters"]
        ));
    }
    print(&text)
}
