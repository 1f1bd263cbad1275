//! Options that several models share.

use std::path::Path;

use plca_fit::Cooling;

use super::{Kind, models};
use crate::args::FitArgs;
use crate::failure::Failure;

/// Refuses data that are not a matrix.
pub(crate) fn need_matrix(path: &Path, model: &str, shape: &[usize]) -> Result<(), Failure> {
    if shape.len() == 2 {
        return Ok(());
    }
    let what = format!("{model} needs a matrix, these data have shape {shape:?}");
    let failure = Failure::of(path, what);
    // Tables have two dimensions unless every line is an entry.
    Err(match plca_io::is_table(path) && shape.len() == 3 {
        true => failure.and("the last cell of every line is its value, and those before it are names: a column that is none, such as a time, must be left out"),
        false => failure,
    })
}

/// Refuses an option that the model does not have.
pub(crate) fn refuse(given: bool, option: &str, model: &str) -> Result<(), Failure> {
    match given {
        true => Err(Failure::usage(format!(
            "{model} has no option {option}; `plca fit {model} --help` lists its options"
        ))),
        false => Ok(()),
    }
}

/// An option, and whether it was given.
pub(crate) type Given = (&'static str, bool);

/// The first of some options that was given.
pub(crate) fn first_given(options: &[Given]) -> Option<&'static str> {
    options.iter().find(|(_, given)| *given).map(|o| o.0)
}

/// Whether a model has one of the options that not every model has.
pub(crate) fn has(model: Kind, option: &str) -> bool {
    model.has(&option.trim_start_matches("--").replace('-', "_"))
}

/// Whether a model takes an option, as every model does or as it alone.
pub(crate) fn takes(model: Kind, option: &str) -> bool {
    has(model, option) || !models().iter().any(|other| has(other, option))
}

/// Refuses what was given of the options that only some models have, where this model is none of them.
pub(crate) fn refuse_foreign(model: Kind, called: &str, given: &[String]) -> Result<(), Failure> {
    let foreign = given.iter().find(|option| {
        // Its value may ask for nothing.
        let special = *option != "--accelerate" && models().iter().any(|other| has(other, option));
        special && !has(model, option)
    });
    foreign.map_or(Ok(()), |option| refuse(true, option, called))
}

/// Refuses the options of `fit` that the model does not have.
pub(crate) fn check(args: &FitArgs, given: &[String]) -> Result<(), Failure> {
    refuse_foreign(args.model, &args.called, given)?;
    match args.extrapolated() {
        Some(option) if !has(args.model, "--accelerate") => refuse(true, option, &args.called),
        _ => Ok(()),
    }
}

/// First power and factor of `--temper B[,ETA]`.
pub(crate) fn temper(args: &FitArgs) -> Result<(f64, Option<f64>), Failure> {
    let Some(spec) = args.options.get::<String>("temper")? else {
        if args.options.has("temper_prior") {
            return Err(Failure::usage(
                "--temper-prior needs --temper B, the power that P(z) is raised to",
            ));
        }
        return Ok((1.0, None));
    };
    let number = |s: &str| {
        s.parse::<f64>()
            .map_err(|_| Failure::usage(format!("--temper: `{s}` is not a number")))
    };
    let (power, eta) = match spec.split_once(',') {
        Some((power, eta)) => (number(power)?, Some(number(eta)?)),
        None => (number(&spec)?, None),
    };
    let mut schedule = Cooling::default().start(power);
    schedule.eta = eta.unwrap_or(schedule.eta);
    let checked = schedule.check();
    checked.map_err(|e| Failure::usage(format!("--temper: {e}")))?;
    Ok((power, eta))
}

/// The schedule of `--temper B,ETA`.
pub(crate) fn schedule(args: &FitArgs) -> Result<Option<Cooling>, Failure> {
    let (start, eta) = temper(args)?;
    if let (true, Some(option)) = (start != 1.0 || eta.is_some(), args.extrapolated()) {
        return Err(Failure::usage(format!(
            "{option} cannot be combined with --temper"
        )));
    }
    let Some(eta) = eta else {
        return Ok(None);
    };
    if args.kkt_tol.is_some() {
        return Err(Failure::usage(
            "--kkt-tol cannot be combined with the schedule of --temper, which has its own stop rule",
        ));
    }
    if args.options.get::<String>("missing_method")?.as_deref() == Some("multiplicative") {
        return Err(Failure::usage(
            "--missing-method multiplicative cannot be combined with --temper",
        ));
    }
    Ok(Some(Cooling::default().start(start).eta(eta).tol(args.tol)))
}
