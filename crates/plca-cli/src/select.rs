//! `plca select`: a table of scores per number of components.

mod bound;
mod cv;
mod kernels;
mod signed;

use plca_em::{
    Nmf, Plca, PlcaVb, Plsa, PlsaVb, Selection, best_rank, effective_parameters, not_counts,
};
use plca_fit::{Init, Model, Reconstruct, Solver, State as _, Status};
use plca_tensor::Data;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use crate::args::{Criterion, SelectArgs};
use crate::data::{self, load_for};
use crate::failure::Failure;
use crate::fit::{HELD_OUT_STREAM, SHARE};
use crate::fitted::unfinished;
use crate::limits::{on_threads, reasonable};
use crate::models::made::{of_options, typed, with_priors};
use crate::models::options::{need_matrix, refuse, refuse_foreign};
use crate::models::{Kind, SCORED};
use crate::named;
use crate::outputs::{print, warn};

use cv::{Validated, validated};

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

/// More ranks than anyone can wait for.
const MOST_RANKS: usize = 100_000;

/// `2..12`, both ends included, or `2,4,8`.
pub(crate) fn ranks(spec: &str) -> Result<Vec<usize>, Failure> {
    let bad = || {
        Failure::usage(format!(
            "--ranks {spec}: expected A..B or A,B,C with 1 <= A <= B <= {MOST_RANKS}"
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
    (!ranks.is_empty()).then_some(ranks).ok_or_else(bad)
}

/// Scores of a model for several numbers of components.
pub(crate) struct Table {
    pub(crate) criterion: &'static str,
    /// What the criterion takes for the number of observations.
    pub(crate) sample_size: f64,
    /// Objects with `rank`, `score` (smaller is better), `log_likelihood` and `parameters`.
    pub(crate) rows: Vec<Value>,
    /// A fit was ended by `--max-iter`.
    pub(crate) cut: bool,
    pub(crate) warnings: Vec<String>,
}

/// Prints the table; `given` are the options that stand on the command line.
pub(crate) fn select(args: &SelectArgs, given: &[String]) -> Result<(), Failure> {
    if args.restarts == 0 {
        return Err(Failure::usage("--restarts 0: at least one start is needed"));
    }
    refuse_foreign(args.model, given)?;
    args.ends.stop().check().map_err(Failure::usage)?;
    let cv = match args.criterion {
        Some(criterion) => criterion == Criterion::Cv,
        None => cross_validates(args.model),
    };
    if cv {
        return on_threads(args.threads, || cross_validate(args))??.report(args);
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
    let model = args.model;
    let request = |rank, shape: &[usize]| {
        with_priors(model, of_options(&args.options, rank), &args.prior, shape)
    };
    match model.name {
        "plca" | "plsa" | "nmf-kl" => likelihood(args),
        "siplca" => kernels::scores(args),
        "plca-vb" => {
            let make =
                |rank, shape: &[usize]| typed::<PlcaVb>(model, &request(rank, shape)?, shape);
            bound::scores(args, make, |state, data| {
                let plca = Plca::new(state.weights_shape().len());
                let means = state.means()?;
                plca.bind(data)?.likelihood(means.parameters())
            })
        }
        "plsa-vb" => {
            let make = |rank, shape: &[usize]| {
                need_matrix(&args.data, "plsa-vb", shape)?;
                typed::<PlsaVb>(model, &request(rank, shape)?, shape)
            };
            bound::scores(args, make, |state, data| {
                let plsa = Plsa::new(state.basis_shape().ncols()).given(state.given());
                let means = state.means()?;
                plsa.bind(data)?.likelihood(means.parameters())
            })
        }
        "skellam-vb" => signed::select(args),
        name => Err(Failure::usage(format!(
            "{name} has no table of scores; expected one of {}; plca consensus compares numbers of components by what many fits agree on",
            SCORED.join(", ")
        ))),
    }
}

/// Whether `plca select` knows the criterion `cv` of a model, which is then the usual one.
fn cross_validates(model: Kind) -> bool {
    ["plca", "plsa", "nmf-kl"].contains(&model.name)
}

/// The scores of `--criterion cv`.
fn cross_validate(args: &SelectArgs) -> Result<Validated, Failure> {
    let model = args.model;
    let request = |rank| of_options(&args.options, rank);
    match model.name {
        "plca" => validated(args, |rank| typed::<Plca>(model, &request(rank), &[0, 0])),
        "plsa" => validated(args, |rank| typed::<Plsa>(model, &request(rank), &[0, 0])),
        "nmf-kl" => validated(args, |rank| typed::<Nmf>(model, &request(rank), &[0, 0])),
        name => Err(Failure::usage(format!(
            "{name} has no criterion cv, which is for the models plca, plsa and nmf-kl"
        ))),
    }
}

/// The best fit of a model, by its likelihood, from all starts.
pub(crate) fn fitted<M>(
    args: &SelectArgs,
    model: &M,
    solver: Solver,
    data: &dyn Data<f64>,
) -> Result<Fitted, Failure>
where
    M: Model<f64, State: Reconstruct + 'static>,
{
    let start = |start| {
        let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
        rng.set_stream(start);
        let run = model.on(data)?.solver(solver).stop(args.ends.stop());
        run.run(Init::default(), &mut rng)
    };
    let mut best = start(0)?;
    for other in 1..args.restarts {
        let fit = start(other)?;
        if fit.compared() > best.compared() {
            best = fit;
        }
    }
    Ok(Fitted {
        ln_lik: best.objective(),
        cut: *best.status() == Status::MaxIterations,
        density: density(best.into_state(), data),
    })
}

/// A model of one size.
pub(crate) struct Candidate<'a> {
    /// What its row of the table says of it: `rank`, perhaps `kernel`.
    pub(crate) size: Value,
    pub(crate) parameters: usize,
    /// The best fit to some data.
    pub(crate) fit: Box<Best<'a>>,
}

type Best<'a> = dyn Fn(&dyn Data<f64>) -> Result<Fitted, Failure> + 'a;

/// A fit, as far as scores need it.
pub(crate) struct Fitted {
    /// Log-likelihood of the data that were fitted.
    pub(crate) ln_lik: f64,
    /// It was ended by `--max-iter`.
    pub(crate) cut: bool,
    /// Probability of a cell among those that were observed.
    pub(crate) density: Box<Density>,
}

type Density = dyn Fn(&[usize]) -> f64;

/// The density of a fitted state.
fn density(state: impl Reconstruct + 'static, data: &dyn Data<f64>) -> Box<Density> {
    let total = data.total();
    Box::new(move |index| state.cell(index) / total)
}

impl Candidate<'_> {
    /// A row of the table, and whether its fit was cut.
    fn row(&self, selection: &Selection<'_, ChaCha8Rng>) -> Result<(Value, bool), Failure> {
        let fitted = (self.fit)(selection.train())?;
        let score = selection.score(fitted.ln_lik, self.parameters, &fitted.density)?;
        let mut row = self.size.clone();
        row["score"] = json!(score);
        row["log_likelihood"] = json!(fitted.ln_lik);
        row["parameters"] = json!(self.parameters);
        Ok((row, fitted.cut))
    }
}

/// Scores from the likelihood of PLCA, of which PLSA and KL-NMF are other parameters. With hidden cells too: `s P(x, y)`,
/// `s(y) P(x | y)` and `W H` are all non-negative matrices of rank `K`, and the likelihoods the best over the scales, so their
/// maxima are one number.
pub(crate) fn likelihood<'a>(args: &'a SelectArgs) -> Result<Table, Failure> {
    let ranks = ranks(&args.ranks)?;
    table(args, |data| {
        let name = args.model.name;
        if name != "plca" {
            need_matrix(&args.data, name, data.shape())?;
        }
        let candidate = |&rank: &usize| -> Result<Candidate<'a>, Failure> {
            reasonable("--ranks", rank, data.shape())?;
            let plca = Plca::new(rank);
            Ok(Candidate {
                size: json!({ "rank": rank }),
                parameters: effective_parameters(data.shape(), rank),
                fit: Box::new(move |data| fitted(args, &plca, Solver::Auto, data)),
            })
        };
        ranks.iter().map(candidate).collect()
    })
}

/// Scores of the candidates for the data, by likelihoods.
pub(crate) fn table<'a>(
    args: &'a SelectArgs,
    candidates: impl FnOnce(&dyn Data<f64>) -> Result<Vec<Candidate<'a>>, Failure>,
) -> Result<Table, Failure> {
    let name = args.model.name;
    refuse(!args.prior.is_empty(), "--prior for select", name)?;
    let data = load_for::<f64>(args.model, &args.data, &args.hidden)?;
    let data = &*data;
    let counts = data.summary().integers;
    let (criterion, label) = match args.criterion.unwrap_or(Criterion::Bic) {
        Criterion::Bic => (plca_em::Criterion::Bic, "bic"),
        Criterion::Aic => (plca_em::Criterion::Aic, "aic"),
        Criterion::HeldOut => (plca_em::Criterion::HeldOut, "held-out"),
        other @ (Criterion::Elbo | Criterion::Cv) => {
            let other = format!("{other:?}").to_lowercase();
            let cv = if cross_validates(args.model) {
                "cv, "
            } else {
                ""
            };
            return Err(Failure::usage(format!(
                "{name} has no criterion {other}; its criteria are {cv}bic, aic, held-out"
            )));
        }
    };
    let candidates = candidates(data)?;
    let mut warnings = data::warnings(args.model, data);
    warnings.extend(named::doubts(&args.data, &args.hidden, data)?);
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    rng.set_stream(HELD_OUT_STREAM);
    let selection = Selection::new(data, criterion, SHARE, rng);
    let selection = selection.map_err(|e| Failure::by(&args.data, e))?;
    let rows = (candidates.iter().map(|c| c.row(&selection)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| e.about(&args.data))?;
    let (rows, cut): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    if let Some(why) = not_counts(data).map_err(|e| Failure::by(&args.data, e))? {
        let remedy = match cross_validates(args.model) {
            true => "; --criterion cv, which holds out cells, is for them",
            false => "",
        };
        warnings.push(format!(
            "the data are {why}; {label} takes them for counts{remedy}"
        ));
    }
    let remedy = match cross_validates(args.model) {
        true => "; --criterion cv does not",
        false => "; --criterion held-out does not",
    };
    match criterion {
        plca_em::Criterion::HeldOut if !counts => warnings.push(
            "the data are not counts: cells are held out instead of counts, and the score is their divergence per unit of data"
                .into(),
        ),
        plca_em::Criterion::Aic if !counts => warnings.push(
            "the data are not counts: AIC weighs their sum against the number of parameters, which depends on the unit of the data".to_string() + remedy,
        ),
        // [SPEC 9]
        plca_em::Criterion::Bic if !counts => warnings.push(
            "the data are not counts: BIC uses their sum as the sample size, which depends on the unit of the data".to_string() + remedy,
        ),
        _ => {}
    }
    Ok(Table {
        criterion: label,
        sample_size: data.total(),
        rows,
        cut: cut.contains(&true),
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
