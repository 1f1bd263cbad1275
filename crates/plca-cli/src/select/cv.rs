//! `plca select --criterion cv`: cross-validated scores.

use std::collections::BTreeMap;
use std::path::Path;

use plca_em::{CrossValidation, EmError, RankRow, RankRule, RankTable};
use plca_fit::{FitError, Init, Solver};
use plca_run::{RunError, Validated as Found};
use plca_tensor::{DataError, Mask};
use serde_json::{Value, json};

use super::table::{cross_validates, models, plca, sizes};
use crate::args::{Rule, SelectArgs};
use crate::blocks::Arrays;
use crate::data::{self, load_for};
use crate::failure::Failure;
use crate::fitted::unfinished;
use crate::interrupt;
use crate::limits::ranks;
use crate::models::Kind;
use crate::models::options::{first_given, need_matrix, refuse};
use crate::named;
use crate::outputs::{print, warn};

/// Arrays of all cells that are held at once: the data, and what is left of them for a fit.
const COPIES: usize = 2;

/// What to do where the zeros of sparse data are too many.
const ZEROS: &str = "--zeros stored holds out only cells above 0, which sparse data list";

/// Columns of the picture of the scores.
const COLUMNS: usize = 48;

/// What cross-validation says of several numbers of components.
pub(crate) struct Validated {
    table: RankTable,
    /// Seconds that the fits of a rank took, one after the other.
    seconds: BTreeMap<usize, f64>,
    warnings: Vec<String>,
}

/// What is fitted. Unless an option says how, all models are fitted as PLCA, of which they are other forms, and have one table.
fn fitted_as(args: &SelectArgs) -> Result<Kind, Failure> {
    let how = &args.validation;
    let as_it_is = !matches!(how.solver, Solver::Auto | Solver::Fast)
        || args.ends.tol == 0.0
        || how.init.is_some()
        || args.options.has("update")
        || args.options.has("missing_method");
    match as_it_is {
        true => Ok(args.model),
        false => plca(),
    }
}

/// How cells are held out.
fn folds(args: &SelectArgs) -> Result<CrossValidation, Failure> {
    let how = &args.validation;
    let folds = CrossValidation::default()
        .folds(how.folds)
        .repeats(how.repeats)
        .starts(match how.init {
            Some(_) => 1,
            None => usize::try_from(args.restarts).unwrap_or(usize::MAX),
        })
        .seed(args.seed)
        .zeros(how.zeros.is_none())
        .smoothing(how.smooth)
        // Keys take the indices of the file.
        .turned(args.hidden.transpose);
    folds.check().map_err(refused)?;
    Ok(folds)
}

/// Cross-validated scores of a model.
pub(super) fn validated(args: &SelectArgs) -> Result<Validated, Failure> {
    let (name, how, path) = (&args.called, &args.validation, &args.data);
    if !cross_validates(args.model) {
        return Err(Failure::usage(format!(
            "{name} has no criterion cv, which is for the models plca, plsa and nmf"
        )));
    }
    let kind = fitted_as(args)?;
    refuse(!args.prior.is_empty(), "--prior for select", name)?;
    let (ranks, settings) = (ranks(&args.ranks)?, folds(args)?);
    let solver = solver(args)?;
    // What its settings refuse is refused before anything is read.
    models(kind, args, &ranks[..1], &[0, 0])?;
    let data = load_for::<f64>(args.model, path, &args.hidden)?;
    let data = &*data;
    if args.model.matrix {
        need_matrix(path, name, data.shape())?;
    }
    let models = models(kind, args, &ranks, data.shape())?;
    if how.zeros.is_none() && data.summary().mask != Mask::Observed {
        let cells = [&[COPIES], data.shape()].concat();
        plca_io::room::<f64>(&cells).map_err(|e| Failure::of(path, e).and(ZEROS))?;
    }
    let most = data.shape().iter().min().unwrap_or(&0);
    if data.shape().len() == 2 && ranks.iter().all(|rank| rank > most) {
        let what = format!(
            "--ranks: expected at most {most}, which is all that data of shape {:?} can have",
            data.shape()
        );
        return Err(Failure::usage(what));
    }
    let starts = match &how.init {
        Some(path) => starts(args, path, &ranks, data.shape().len())?,
        None => BTreeMap::new(),
    };
    interrupt::iterating();
    let fits = sizes(args, &models, solver, &interrupt::requested);
    let found = fits.cross_validated(kind, (data, &settings), &starts);
    let Found { table, seconds } = found.map_err(|e| match (e, &how.init) {
        (RunError::Fit(FitError::Interrupted), _) => interrupt::failure(),
        (RunError::Parts(e), _) => Failure::from(e).about(path),
        (RunError::Fold { fold, source }, init) => {
            let of = format!("rank {}, fold {}: ", fold.rank, fold.fold);
            let path = match (&source, init) {
                (FitError::Shape { .. }, Some(init)) => init,
                _ => path,
            };
            Failure::from(source).within(&of).about(path)
        }
        (e, _) => Failure::from(e).about(path),
    })?;
    let wrong = |row: &&RankRow| row.score.is_some_and(|score| !score.is_finite());
    if let Some(row) = table.rows().iter().find(wrong) {
        let what = format!("rank {}: the score cv is not finite", row.scores.rank);
        return Err(Failure::of(path, what));
    }
    let mut warnings = data::warnings(args.model, data);
    warnings.extend(named::doubts(path, &args.hidden, data)?);
    if !data.summary().integers {
        warnings.push(
            "the data are not counts: the scores have the unit of the data, the choice of the rank does not depend on it".into(),
        );
    }
    warnings.extend(doubts(args, &table, data.shape()));
    Ok(Validated {
        table,
        seconds,
        warnings,
    })
}

/// What a person should know of the choice.
fn doubts(args: &SelectArgs, table: &RankTable, shape: &[usize]) -> Vec<String> {
    let mut warnings = Vec::new();
    let rows = table.rows();
    let (fitted, unfitted): (Vec<&RankRow>, Vec<&RankRow>) =
        rows.iter().partition(|row| row.score.is_some());
    if !unfitted.is_empty() {
        let ranks: Vec<_> = unfitted
            .iter()
            .map(|row| row.scores.rank.to_string())
            .collect();
        let most = shape.iter().min().unwrap_or(&0);
        warnings.push(format!(
            "not fitted: ranks above {most}, which is all that data of shape {shape:?} can have: {}",
            ranks.join(", ")
        ));
    }
    if let Some(proposed) = table.choice(rule(args)) {
        let ranks = || rows.iter().map(|row| row.scores.rank);
        if ranks().max() == Some(proposed) {
            warnings.push(format!(
                "the proposed rank {proposed} is the largest that was tried: larger ones may be better"
            ));
        } else if ranks().min() == Some(proposed) {
            warnings.push(match proposed {
                1 => format!(
                    "the proposed rank 1 is the smallest that was tried: more components predicted no better; raise --restarts, now {}, and compare other criteria",
                    args.restarts
                ),
                _ => format!("the proposed rank {proposed} is the smallest that was tried: smaller ones may be better"),
            });
        }
    }
    let ranks = |of: &dyn Fn(&RankRow) -> bool| {
        let rows = fitted.iter().filter(|row| of(row));
        let ranks: Vec<_> = rows.map(|row| row.scores.rank.to_string()).collect();
        (!ranks.is_empty()).then(|| ranks.join(", "))
    };
    if let Some(ranks) = ranks(&|row| row.scores.far) {
        warnings.push(format!(
            "held-out cells that the other cells do not determine were predicted to be more than 10 times the largest of the data, and decide the score of these ranks: {ranks}; raise --folds, or try fewer components or fewer iterations, --max-iter"
        ));
    }
    let torn = |row: &RankRow| row.score.zip(row.se).is_some_and(|(m, se)| se > 0.5 * m);
    if let Some(ranks) = ranks(&|row| torn(row) && !row.scores.far) {
        warnings.push(format!(
            "a few cells decide the score of these ranks: {ranks}; raise --folds"
        ));
    }
    let unsettled = table.unsettled_folds();
    if unsettled > 0 {
        warnings.push(format!(
            "the model of independent dimensions, which has a share in every prediction, did not converge in {unsettled} of the folds: the held-out cells share too few rows and columns with the others, and scores may be of any size; raise --folds, or take another criterion than cv",
        ));
    }
    let cut = fitted.iter().any(|row| row.scores.cut);
    warnings.extend(unfinished(cut, args.ends.max_iter, args.ends.tol));
    warnings
}

fn rule(args: &SelectArgs) -> RankRule {
    match args.validation.rule {
        Rule::Best => RankRule::Best,
        Rule::OneSe => RankRule::OneStandardError,
        Rule::Paired => RankRule::Paired,
    }
}

/// Settings that make no sense, by the names of the options.
fn refused(e: EmError) -> Failure {
    Failure::usage(match e {
        EmError::Number { name, value, least } => {
            let option = if name == "starts" { "restarts" } else { name };
            format!("--{option} {value}: expected at least {least}")
        }
        EmError::Smoothing(value) => format!("--smooth {value}: expected a number between 0 and 1"),
        e => e.to_string(),
    })
}

/// The solver of every fit, by the rules of `plca fit`.
fn solver(args: &SelectArgs) -> Result<Solver, Failure> {
    let how = &args.validation;
    let of_em = first_given(&[
        ("--update", args.options.has("update")),
        ("--missing-method", args.options.has("missing_method")),
    ]);
    match (how.solver, of_em) {
        (Solver::Auto, Some(_)) => Ok(Solver::Em),
        (Solver::Auto, None) if args.ends.tol == 0.0 => Ok(Solver::Em),
        (Solver::Fast, Some(option)) => Err(Failure::usage(format!(
            "{option} cannot be combined with --solver fast: use --solver em"
        ))),
        (named, _) => Ok(named),
    }
}

/// The start of every rank.
fn starts(
    args: &SelectArgs,
    path: &Path,
    ranks: &[usize],
    order: usize,
) -> Result<BTreeMap<usize, Init<f64>>, Failure> {
    let arrays: Arrays = crate::saved::arrays(path)?.arrays;
    let of_rank = |&rank: &usize| {
        let mut init = Init::default();
        for block in args.model.free_blocks(order) {
            let name = format!("k{rank}.{block}");
            let Some(array) = arrays.get(&name) else {
                let what = format!("has no array `{name}`, the start of rank {rank}");
                return Err(Failure::of(path, what));
            };
            let value = args.model.block(&block, array);
            let value = value.map_err(|what| Failure::of(path, format!("`{name}`: {what}")))?;
            init = init.block(block, value);
        }
        Ok((rank, init))
    };
    ranks.iter().map(of_rank).collect()
}

impl From<EmError> for Failure {
    fn from(e: EmError) -> Self {
        match e {
            EmError::FewCells { .. } => Self::new(e).and("give fewer --folds"),
            EmError::Tensor(DataError::TooLarge { .. }) => Self::new(e).and(ZEROS),
            EmError::Fit(e) => Self::from(e),
            e => Self::new(e),
        }
    }
}

/// A number with six digits, or a dash.
fn digits(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(0.0) => "0".into(),
        Some(x) if (1e-4..1e7).contains(&x.abs()) => {
            let before = x.abs().log10().floor() as i64;
            format!("{x:.*}", (5 - before).max(0) as usize)
        }
        Some(x) => format!("{x:.5e}"),
    }
}

impl Validated {
    /// Prints the table, as JSON or for a person.
    pub(super) fn report(self, args: &SelectArgs) -> Result<(), Failure> {
        warn(args.quiet || args.json, &self.warnings);
        match args.json {
            true => print(&format!("{}\n", self.json(args))),
            false => print(&self.text(args)),
        }
    }

    fn json(&self, args: &SelectArgs) -> Value {
        let row = |row: &RankRow| {
            let (own, fitted) = (&row.scores, row.score.is_some());
            let seconds = self.seconds.get(&own.rank).filter(|_| fitted);
            json!({
                "rank": own.rank,
                "score": row.score,
                "se": row.se,
                "difference": row.difference,
                "difference_se": row.difference_se,
                "start_sd": own.start_sd,
                "seconds": seconds,
                "scores": fitted.then_some(&own.scores),
            })
        };
        let how = &args.validation;
        json!({
            "model": args.model.name,
            "criterion": "cv",
            "rule": self.rule(args),
            "folds": how.folds,
            "repeats": how.repeats,
            "zeros": if how.zeros.is_some() { "stored" } else { "all" },
            "smooth": how.smooth,
            "table": self.table.rows().iter().map(row).collect::<Vec<_>>(),
            "best": self.table.choice(RankRule::Best),
            "one_se": self.table.choice(RankRule::OneStandardError),
            "paired": self.table.choice(RankRule::Paired),
            "proposed": self.table.choice(rule(args)),
            "warnings": self.warnings,
        })
    }

    fn rule(&self, args: &SelectArgs) -> &'static str {
        match args.validation.rule {
            Rule::Best => "best",
            Rule::OneSe => "one-se",
            Rule::Paired => "paired",
        }
    }

    fn text(&self, args: &SelectArgs) -> String {
        let choices = [
            (RankRule::Best, "best"),
            (RankRule::OneStandardError, "1se"),
            (RankRule::Paired, "paired"),
        ];
        let choices = choices.map(|(rule, name)| (self.table.choice(rule), name));
        let proposed = self.table.choice(rule(args));
        let mut text = format!(
            "{:>5} {:>12} {:>12} {:>12} {:>12} {:>12} {:>9}\n",
            "rank", "cv", "se", "difference", "se", "start_sd", "seconds"
        );
        for row in self.table.rows() {
            let rank = row.scores.rank;
            let chosen = choices.iter().filter(|(choice, _)| *choice == Some(rank));
            let marks: Vec<_> = chosen.map(|(_, name)| *name).collect();
            let arrow = if proposed == Some(rank) { " <-" } else { "" };
            let marks = match marks.is_empty() {
                true => String::new(),
                false => format!("{arrow} {}", marks.join(", ")),
            };
            let seconds = self.seconds.get(&rank).filter(|_| row.score.is_some());
            text.push_str(&format!(
                "{rank:>5} {:>12} {:>12} {:>12} {:>12} {:>12} {:>9}{marks}\n",
                digits(row.score),
                digits(row.se),
                digits(row.difference),
                digits(row.difference_se),
                digits(row.scores.start_sd),
                seconds.map_or("-".into(), |s| format!("{s:.2}")),
            ));
        }
        text.push_str(&self.picture());
        let how = &args.validation;
        let cells = match how.zeros {
            Some(_) => "cells above 0",
            None => "cells",
        };
        let repeats = match how.repeats {
            1 => String::new(),
            n => format!(", {n} times"),
        };
        text.push_str(&format!(
            "criterion cv: {cells} in {} folds{repeats}, each predicted by fits to the others; mean deviance of a cell, smaller is better; rule {}\n",
            how.folds,
            self.rule(args),
        ));
        if args.criterion.is_none() {
            text.push_str(&format!(
                "cv is what select {} does without --criterion: the data need not be counts; with few counts a component it tends to choose too few components; {}\n",
                args.called,
                match args.model.name {
                    "plsa" => "for texts take --criterion held-out",
                    _ => "bic, aic and held-out are for counts",
                }
            ));
        }
        text
    }

    /// A line for each rank: its score, one standard error on both sides, and the limit of the rule one-se.
    fn picture(&self) -> String {
        let rows = self.table.rows();
        let ends = |row: &RankRow| {
            let (score, se) = (row.score?, row.se.unwrap_or(0.0));
            Some([score - se, score, score + se])
        };
        let all = || rows.iter().filter_map(ends).flatten();
        let low = all().fold(f64::INFINITY, f64::min);
        let high = all().fold(f64::NEG_INFINITY, f64::max);
        let column = |x: f64| match high > low {
            true => ((x - low) / (high - low) * (COLUMNS - 1) as f64).round() as usize,
            false => 0,
        };
        let mut text = String::new();
        for row in rows {
            let Some([from, at, to]) = ends(row) else {
                continue;
            };
            let mut line = [' '; COLUMNS];
            line[column(from)..=column(to)].fill('-');
            if let Some(limit) = self.table.limit() {
                line[column(limit)] = '|';
            }
            line[column(at)] = 'o';
            let line: String = line.iter().collect();
            text.push_str(&format!("{:>5} {}\n", row.scores.rank, line.trim_end()));
        }
        text
    }
}
