//! `plca select`: a table of scores per number of components.

use plca_em::{
    EmError, HeldOut, ModelOrder, Outcome, Plca, PlcaInit, Stop, effective_parameters, hold_out,
    perplexity,
};
use plca_fit::Direction;
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
    let (model, name) = (args.model, args.model.name());
    let kernel = (!args.kernel.is_empty()).then_some("--kernel");
    if let Some(option) = kernel.or_else(|| args.places.given()) {
        refuse(!model.shifts(), option, name)?;
    }
    stop(args).check().map_err(Failure::usage)?;
    let table = on_threads(args.threads, || args.model.select(args))??;
    report(args, table)
}

/// When every fit ends.
pub(crate) fn stop(args: &SelectArgs) -> Stop {
    Stop {
        max_iter: args.max_iter,
        tol: args.tol,
        ..Stop::default()
    }
}

/// The best of the starts that `run` makes from their random numbers.
pub(crate) fn best<S>(
    args: &SelectArgs,
    run: impl Fn(&mut ChaCha8Rng) -> Result<Outcome<S>, EmError>,
) -> Result<S, EmError> {
    let best = plca_em::best_of(args.restarts, Direction::Maximise, |start| {
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        rng.set_stream(start);
        run(&mut rng)
    })?;
    Ok(best.state)
}

/// A model of one size.
pub(crate) struct Candidate<'a> {
    /// What its row of the table says of it: `rank`, perhaps `kernel`.
    pub(crate) size: Value,
    pub(crate) parameters: usize,
    /// The log-likelihoods of some data under the best fit to others.
    pub(crate) fit: Box<Fit<'a>>,
}

type Fit<'a> = dyn Fn(&dyn Observed<f64>, &[&dyn Observed<f64>]) -> Result<Vec<f64>, EmError> + 'a;

impl Candidate<'_> {
    fn row(
        &self,
        criterion: Criterion,
        data: &dyn Observed<f64>,
        parts: Option<&HeldOut<'_, f64, dyn Observed<f64> + '_>>,
    ) -> Result<Value, EmError> {
        // The likelihood of the data as given, also where only a part of them was fitted.
        let ln_liks = match parts {
            None => (self.fit)(data, &[data])?,
            Some(parts) => (self.fit)(&parts.train, &[data, &parts.held])?,
        };
        let order = ModelOrder::with_parameters(ln_liks[0], self.parameters, data.total());
        let score = match (criterion, parts) {
            (_, Some(parts)) => perplexity(ln_liks[1], parts.held.total()),
            (Criterion::Aic, None) => order.aic,
            _ => order.bic,
        };
        let mut row = self.size.clone();
        row["score"] = json!(score);
        row["log_likelihood"] = json!(ln_liks[0]);
        row["parameters"] = json!(order.parameters);
        Ok(row)
    }
}

/// Scores from the likelihood of PLCA, of which PLSA and KL-NMF are other parameters. With hidden cells too: `s P(x, y)`,
/// `s(y) P(x | y)` and `W H` are all non-negative matrices of rank `K`, and the likelihoods the best over the scales, so their
/// maxima are one number.
pub(crate) fn likelihood<'a>(args: &'a SelectArgs) -> Result<Table, Failure> {
    let ranks = ranks(&args.ranks)?;
    table(args, |data| {
        let name = args.model.name();
        if name != "plca" {
            need_matrix(&args.data, name, data.shape())?;
        }
        let candidate = |&rank: &usize| -> Result<Candidate<'a>, Failure> {
            reasonable("--ranks", rank, data.shape())?;
            let plca = Plca::builder(rank).build()?;
            Ok(Candidate {
                size: json!({ "rank": rank }),
                parameters: effective_parameters(data.shape(), rank),
                fit: Box::new(move |train, judged| {
                    let init = PlcaInit::default();
                    let state = best(args, |rng| plca.fit(train, &init, &stop(args), rng))?;
                    let ln_lik = |&data: &&dyn Observed<f64>| plca.on(data)?.ln_lik(&state);
                    judged.iter().map(ln_lik).collect()
                }),
            })
        };
        ranks.iter().map(candidate).collect()
    })
}

/// Scores of the candidates for the data, by likelihoods.
pub(crate) fn table<'a>(
    args: &'a SelectArgs,
    candidates: impl FnOnce(&dyn Observed<f64>) -> Result<Vec<Candidate<'a>>, Failure>,
) -> Result<Table, Failure> {
    let name = args.model.name();
    refuse(args.signed.m.is_some(), "--m", name)?;
    refuse(args.signed.real_data, "--real-data", name)?;
    refuse(!args.prior.is_empty(), "--prior for select", name)?;
    let criterion = args.criterion.unwrap_or(Criterion::Bic);
    let label = match criterion {
        Criterion::Bic => "bic",
        Criterion::Aic => "aic",
        Criterion::HeldOut => "held-out",
        Criterion::Elbo => {
            return Err(Failure::usage(format!(
                "{name} has no criterion elbo; there are bic, aic, held-out"
            )));
        }
    };
    let data: Data<f64> = load(&args.data, &args.hidden)?;
    let data = &*data;
    let candidates = candidates(data)?;
    let mut parts = None;
    if criterion == Criterion::HeldOut {
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        rng.set_stream(HELD_OUT_STREAM);
        parts = Some(hold_out(data, SHARE, &mut rng).map_err(|e| Failure::of(&args.data, e))?);
    }
    let rows = (candidates.iter())
        .map(|c| c.row(criterion, data, parts.as_ref()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| Failure::of(&args.data, e))?;
    let mut counts = true;
    data.for_each(&mut |_, x| counts &= x.fract() == 0.0);
    let mut warnings = data.warnings();
    if !counts && criterion == Criterion::Bic {
        // [SPEC 9]
        warnings.push(
            "the data are no counts: their sum, which BIC takes for a sample size, is arbitrary"
                .into(),
        );
    }
    Ok(Table {
        criterion: label,
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
    let scored = (0..rows.len()).filter(|&at| rows[at]["score"].is_number());
    let best = scored.min_by(|&a, &b| {
        let value = |at: usize| rows[at]["score"].as_f64().unwrap_or(f64::NAN);
        value(a).total_cmp(&value(b))
    });
    let of_best = |name: &str| best.map_or(Value::Null, |at| rows[at][name].clone());
    let mut out = json!({
        "model": args.model.name(),
        "criterion": criterion,
        "sample_size": sample_size,
        "best": of_best("rank"),
        "table": rows,
    });
    let kernels = rows.iter().any(|row| row["kernel"].is_array());
    if kernels {
        out["best_kernel"] = of_best("kernel");
    }
    if !warnings.is_empty() {
        out["warnings"] = json!(warnings);
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
    for (at, row) in rows.iter().enumerate() {
        let mark = if best == Some(at) { " <- best" } else { "" };
        let extents = row["kernel"].as_array().into_iter().flatten();
        let extents: Vec<String> = extents.map(Value::to_string).collect();
        text.push_str(&format!(
            "{:>5}{} {:>16.4} {:>18.4} {:>11}{mark}\n",
            row["rank"],
            kernel(&extents.join("x")),
            row["score"].as_f64().unwrap_or(f64::INFINITY),
            row["log_likelihood"].as_f64().unwrap_or(f64::NEG_INFINITY),
            row["parameters"]
        ));
    }
    print(&text)
}
