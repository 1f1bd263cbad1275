//! The table of scores by likelihoods, and the models of several sizes that it compares.

use plca_em::{Selection, not_counts};
use plca_fit::{Init, Model, Reconstruct, Solver, Status};
use plca_tensor::Data;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use crate::args::{Criterion, SelectArgs};
use crate::data::{self, load_for};
use crate::failure::Failure;
use crate::fit::{HELD_OUT_STREAM, SHARE};
use crate::models::Kind;
use crate::models::options::refuse;
use crate::named;

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

/// Whether `plca select` knows the criterion `cv` of a model, which is then the usual one.
pub(crate) fn cross_validates(model: Kind) -> bool {
    ["plca", "plsa", "nmf-kl"].contains(&model.name)
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

/// Scores of the candidates for the data, by likelihoods.
pub(crate) fn table<'a>(
    args: &'a SelectArgs,
    candidates: impl FnOnce(&dyn Data<f64>) -> Result<Vec<Candidate<'a>>, Failure>,
) -> Result<Table, Failure> {
    let name = &args.called;
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
