//! Options that several models share.

use std::path::Path;

use plca_fit::Cooling;

use crate::args::{FitArgs, MissingMethod};
use crate::failure::Failure;
use crate::solver::extrapolated;

/// Refuses data that are not a matrix.
pub(crate) fn need_matrix(path: &Path, model: &str, shape: &[usize]) -> Result<(), Failure> {
    if shape.len() == 2 {
        return Ok(());
    }
    Err(Failure::of(
        path,
        format!("{model} needs a matrix, these data have shape {shape:?}"),
    ))
}

/// The treatment of missing cells that was asked for.
pub(crate) fn missing(args: &FitArgs) -> Option<plca_em::Missing> {
    args.missing_method.map(|m| match m {
        MissingMethod::Multiplicative => plca_em::Missing::Multiplicative,
        MissingMethod::Imputation => plca_em::Missing::Imputation,
    })
}

/// Refuses an option that the model does not have.
pub(crate) fn refuse(given: bool, option: &str, model: &str) -> Result<(), Failure> {
    if given {
        Err(Failure::usage(format!("{model} has no option {option}")))
    } else {
        Ok(())
    }
}

/// Refuses the options of models of signed data.
pub(super) fn refuse_signed(args: &FitArgs, model: &str) -> Result<(), Failure> {
    refuse(args.signed.m.is_some(), "--m", model)?;
    refuse(args.signed.real_data, "--real-data", model)?;
    refuse(args.floor.is_some(), "--floor", model)?;
    refuse(args.seeding.is_some(), "--seeding", model)
}

/// Refuses the options of models of non-negative data.
pub(super) fn refuse_unsigned(args: &FitArgs, model: &str) -> Result<(), Failure> {
    refuse(args.given.is_some(), "--given", model)?;
    refuse(args.update.is_some(), "--update", model)?;
    refuse(args.temper.is_some(), "--temper", model)?;
    refuse(args.temper_prior, "--temper-prior", model)?;
    refuse(args.missing_method.is_some(), "--missing-method", model)?;
    refuse(args.kkt_tol.is_some(), "--kkt-tol", model)
}

/// First power and factor of `--temper B[,ETA]`.
pub(crate) fn temper(args: &FitArgs) -> Result<(f64, Option<f64>), Failure> {
    let Some(spec) = &args.temper else {
        if args.temper_prior {
            return Err(Failure::usage(
                "--temper-prior means nothing without --temper",
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
        None => (number(spec)?, None),
    };
    let mut schedule = Cooling::default().start(power);
    schedule.eta = eta.unwrap_or(schedule.eta);
    schedule
        .check()
        .map_err(|e| Failure::usage(format!("--temper: {e}")))?;
    Ok((power, eta))
}

/// The schedule of `--temper B,ETA`.
pub(crate) fn schedule(args: &FitArgs) -> Result<Option<Cooling>, Failure> {
    let (start, eta) = temper(args)?;
    if let (true, Some(option)) = (start != 1.0 || eta.is_some(), extrapolated(args)) {
        return Err(Failure::usage(format!(
            "{option} does not go with --temper"
        )));
    }
    let Some(eta) = eta else {
        return Ok(None);
    };
    if args.kkt_tol.is_some() {
        return Err(Failure::usage(
            "--kkt-tol does not go with the schedule of --temper, which has its own stop rule",
        ));
    }
    if args.missing_method == Some(MissingMethod::Multiplicative) {
        return Err(Failure::usage(
            "--missing-method multiplicative does not go with --temper",
        ));
    }
    Ok(Some(
        Cooling::default().start(start).eta(eta).tol(args.tol()),
    ))
}
