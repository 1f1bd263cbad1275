//! The table of scores by likelihoods, and the models of several sizes that it compares.

use plca_em::{Selection, not_counts};
use plca_fit::{Solver, Status};
use plca_run::{AnyModel, Options, Scored, Sizes};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use crate::args::{Criterion, SelectArgs};
use crate::data::{self, load_for};
use crate::failure::Failure;
use crate::families::priors_by_rank;
use crate::fit::{HELD_OUT_STREAM, SHARE};
use crate::limits::reasonable;
use crate::models::Kind;
use crate::models::made::{made, of_options, with_priors};
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

/// The models of several numbers of components, for data of this shape.
pub(super) fn models(
    kind: Kind,
    args: &SelectArgs,
    ranks: &[usize],
    shape: &[usize],
) -> Result<Vec<Box<dyn AnyModel>>, Failure> {
    let model = |&rank: &usize| {
        reasonable("--ranks", rank, shape)?;
        // Of the model that was asked for alone.
        let request = match kind.name == args.model.name {
            true => {
                let mut priors = args.prior.clone();
                if args.shapes_by_rank {
                    priors.extend(priors_by_rank(kind, rank, &args.prior));
                }
                with_priors(kind, of_options(&args.options, rank), &priors, shape)?
            }
            false => of_options(&Options::default(), rank),
        };
        made(kind, &request, shape)
    };
    ranks.iter().map(model).collect()
}

/// How models of several sizes are fitted.
pub(super) fn sizes<'a>(
    args: &SelectArgs,
    models: &'a [Box<dyn AnyModel>],
    solver: Solver,
    interrupted: &'a (dyn Fn() -> bool + Sync),
) -> Sizes<'a> {
    Sizes {
        models,
        solver,
        stop: args.ends.stop(),
        restarts: u32::try_from(args.restarts).unwrap_or(u32::MAX),
        seed: args.seed,
        interrupted,
    }
}

/// PLCA, of which PLSA and KL-NMF are other parameters.
pub(super) fn plca() -> Result<Kind, Failure> {
    plca_run::model("plca").ok_or_else(|| Failure::new("there is no plca"))
}

/// Models of several sizes, and what their rows of the table say of each: `rank`, perhaps `kernel`.
type Candidates = (Vec<Box<dyn AnyModel>>, Vec<Value>);

/// Scores by likelihoods of a model, in the sizes of which `candidates` has the models for data of a shape.
pub(crate) fn table(
    args: &SelectArgs,
    (model, solver): (Kind, Solver),
    candidates: impl FnOnce(&[usize]) -> Result<Candidates, Failure>,
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
    let (models, mut rows) = candidates(data.shape())?;
    let mut warnings = data::warnings(args.model, data);
    warnings.extend(named::doubts(&args.data, &args.hidden, data)?);
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    rng.set_stream(HELD_OUT_STREAM);
    let selection = Selection::new(data, criterion, SHARE, rng);
    let selection = selection.map_err(|e| Failure::by(&args.data, e))?;
    let found = sizes(args, &models, solver, &|| false).by_likelihood(model, &selection);
    let found = found.map_err(|e| Failure::from(e).about(&args.data))?;
    let cut = found.iter().any(|of| of.status == Status::MaxIterations);
    for (row, Scored { score, .. }) in rows.iter_mut().zip(&found) {
        row["score"] = json!(score.score);
        row["log_likelihood"] = json!(score.ln_lik);
        row["parameters"] = json!(score.parameters);
    }
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
        cut,
        warnings,
    })
}
