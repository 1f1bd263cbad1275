//! `plca select`: a table of scores per number of components.

use plca_em::{
    HeldOut, ModelOrder, Outcome, Plca, PlcaInit, PlcaState, Stop, hold_out, perplexity,
};
use plca_tensor::Observed;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use crate::args::{Criterion, SelectArgs};
use crate::data::{Data, Dataset, load};
use crate::failure::Failure;
use crate::fit::HELD_OUT_STREAM;
use crate::limits::{on_threads, reasonable};
use crate::models::options::{need_matrix, refuse};
use crate::outputs::{print, warn};

/// A count is held out with this probability.
const SHARE: f64 = 0.1;
/// More ranks than anyone can wait for.
const MOST_RANKS: usize = 100_000;

/// `2..12`, both ends included, or `2,4,8`.
pub(crate) fn ranks(spec: &str) -> Result<Vec<usize>, Failure> {
    let bad = || {
        Failure::usage(format!(
            "--ranks {spec}: A..B or A,B,C is needed, with 1 <= A <= B <= {MOST_RANKS}"
        ))
    };
    let number = |s: &str| {
        let n = s.trim().parse::<usize>().ok();
        n.filter(|n| (1..=MOST_RANKS).contains(n)).ok_or_else(bad)
    };
    let ranks: Vec<usize> = match spec.split_once("..") {
        Some((a, b)) => (number(a)?..=number(b.trim_start_matches('='))?).collect(),
        None => spec.split(',').map(number).collect::<Result<_, _>>()?,
    };
    if ranks.is_empty() {
        Err(bad())
    } else {
        Ok(ranks)
    }
}

/// Scores of a model for several numbers of components.
pub(crate) struct Table {
    pub(crate) criterion: &'static str,
    /// What the criterion takes for the number of observations.
    pub(crate) sample_size: f64,
    /// Objects with `rank`, `score` (smaller is better), `log_likelihood` and `parameters`.
    pub(crate) rows: Vec<Value>,
    pub(crate) warnings: Vec<String>,
}

pub(crate) fn select(args: &SelectArgs) -> Result<(), Failure> {
    if args.restarts == 0 {
        return Err(Failure::usage("--restarts 0: at least one start is needed"));
    }
    let table = on_threads(args.threads, || args.model.select(args))??;
    report(args, table)
}

/// The best of the starts with `rank` components.
fn best<X: Observed<f64> + ?Sized>(
    args: &SelectArgs,
    rank: usize,
    data: &X,
) -> Result<Outcome<PlcaState<f64>>, Failure> {
    let stop = Stop {
        max_iter: args.max_iter,
        tol: args.tol,
        ..Stop::default()
    };
    // PLSA and KL-NMF are other parameters of PLCA of order 2. With hidden cells too: s P(x, y), s(y) P(x | y) and W H are
    // all non-negative matrices of rank K, and the likelihoods the best over the scales, so their maxima are one number.
    let plca = Plca::builder(rank).build()?;
    let best = plca_em::best_of(args.restarts, plca_fit::Direction::Maximise, |start| {
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        rng.set_stream(start);
        plca.fit(data, &PlcaInit::default(), &stop, &mut rng)
    })?;
    Ok(best)
}

fn row(
    args: &SelectArgs,
    rank: usize,
    data: &dyn Observed<f64>,
    parts: Option<&HeldOut<'_, f64, dyn Observed<f64> + '_>>,
) -> Result<Value, Failure> {
    let plca = Plca::builder(rank).build()?;
    let (fit, score) = match parts {
        None => (best(args, rank, data)?, None),
        Some(parts) => {
            let fit = best(args, rank, &parts.train)?;
            let ln_lik = plca.on(&parts.held)?.ln_lik(&fit.state);
            (fit, Some(perplexity(ln_lik, parts.held.total())))
        }
    };
    // The likelihood of the data as given, also where only a part of them was fitted.
    let ln_lik = plca.on(data)?.ln_lik(&fit.state);
    let order = ModelOrder::new(ln_lik, data.shape(), rank, data.total());
    let score = match args.criterion {
        Criterion::Aic => order.aic,
        _ => score.unwrap_or(order.bic),
    };
    Ok(json!({
        "rank": rank, "score": score, "log_likelihood": ln_lik, "parameters": order.parameters,
    }))
}

/// Scores from the likelihood of PLCA, of which PLSA and KL-NMF are other parameters.
pub(crate) fn likelihood(args: &SelectArgs) -> Result<Table, Failure> {
    let name = args.model.name();
    refuse(args.signed.m.is_some(), "--m", name)?;
    refuse(args.signed.real_data, "--real-data", name)?;
    refuse(!args.prior.is_empty(), "--prior for select", name)?;
    let criterion = match args.criterion {
        Criterion::Bic => "bic",
        Criterion::Aic => "aic",
        Criterion::HeldOut => "held-out",
        Criterion::Elbo => {
            return Err(Failure::usage(format!(
                "{name} has no criterion elbo; there are bic, aic, held-out"
            )));
        }
    };
    let ranks = ranks(&args.ranks)?;
    let data: Data<f64> = load(&args.data, &args.hidden)?;
    let data = &*data;
    if name != "plca" {
        need_matrix(&args.data, name, data.shape())?;
    }
    for &rank in &ranks {
        reasonable("--ranks", rank, data.shape())?;
    }
    let mut parts = None;
    if args.criterion == Criterion::HeldOut {
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        rng.set_stream(HELD_OUT_STREAM);
        parts = Some(hold_out(data, SHARE, &mut rng).map_err(|e| Failure::of(&args.data, e))?);
    }
    let rows = (ranks.into_iter())
        .map(|rank| row(args, rank, data, parts.as_ref()))
        .collect::<Result<Vec<_>, Failure>>()
        .map_err(|e| e.about(&args.data))?;
    let mut counts = true;
    data.for_each(&mut |_, x| counts &= x.fract() == 0.0);
    let mut warnings = data.warnings();
    if !counts && args.criterion == Criterion::Bic {
        // [SPEC 9]
        warnings.push(
            "the data are no counts: their sum, which BIC takes for a sample size, is arbitrary"
                .into(),
        );
    }
    Ok(Table {
        criterion,
        sample_size: data.total(),
        rows,
        warnings,
    })
}

/// Prints a table, as JSON or for a person.
fn report(args: &SelectArgs, table: Table) -> Result<(), Failure> {
    let Table {
        criterion,
        sample_size,
        rows,
        warnings,
    } = table;
    // A score that is no number is null, and never the best.
    let scored = rows.iter().filter(|row| row["score"].is_number());
    let best = scored.min_by(|a, b| {
        let value = |row: &Value| row["score"].as_f64().unwrap_or(f64::NAN);
        value(a).total_cmp(&value(b))
    });
    let best = best.map_or(Value::Null, |row| row["rank"].clone());
    let mut out = json!({
        "model": args.model.name(),
        "criterion": criterion,
        "sample_size": sample_size,
        "best": best,
        "table": rows,
    });
    if !warnings.is_empty() {
        out["warnings"] = json!(warnings);
    }
    warn(args.quiet || args.json, &warnings);
    if args.json {
        return print(&format!("{out}\n"));
    }
    let mut text = format!(
        "{:>5} {criterion:>16} {:>18} {:>11}\n",
        "rank", "log_likelihood", "parameters"
    );
    for row in out["table"].as_array().into_iter().flatten() {
        let mark = if row["rank"] == out["best"] {
            " <- best"
        } else {
            ""
        };
        text.push_str(&format!(
            "{:>5} {:>16.4} {:>18.4} {:>11}{mark}\n",
            row["rank"],
            row["score"].as_f64().unwrap_or(f64::INFINITY),
            row["log_likelihood"].as_f64().unwrap_or(f64::NEG_INFINITY),
            row["parameters"]
        ));
    }
    print(&text)
}
