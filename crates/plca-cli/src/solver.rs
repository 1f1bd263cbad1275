//! The solver of a run, from the command line.

use plca_fit::{Algorithm, Solver};
use plca_io::Element;

use crate::args::FitArgs;
use crate::failure::Failure;
use crate::models::Kind;
use crate::models::options::first_given;

/// Refuses a solver that the model does not have.
pub(crate) fn known(solver: Solver, model: Kind, called: &str) -> Result<(), Failure> {
    if solver != Solver::Fast || model.separates {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{called} has no --solver fast: use --solver em"
    )))
}

/// A solver until this tolerance: `--tol 0` asks for plain iterations, where no solver is named.
pub(crate) fn until(solver: Solver, tol: f64) -> Solver {
    match solver {
        Solver::Auto if tol == 0.0 => Solver::Em,
        named => named,
    }
}

/// The solver asked for: `auto` leaves the choice to the model only where no option says that it is EM.
pub(crate) fn asked(args: &FitArgs) -> Solver {
    match args.solver {
        Solver::Auto if is_em(args) || args.out_of_core.is_some() => Solver::Em,
        named => named,
    }
}

/// Whether `auto` is EM wherever the data are.
fn is_em(args: &FitArgs) -> bool {
    of_em(args).is_some() || until(Solver::Auto, args.tol) == Solver::Em || !args.model.separates
}

/// Whether a run is one of EM only because its data are on the disk.
pub(crate) fn of_the_store(args: &FitArgs) -> bool {
    args.out_of_core.is_some() && args.solver == Solver::Auto && !is_em(args)
}

/// The solver of a run on data.
pub(crate) fn of<T: Element>(
    args: &FitArgs,
    algorithm: &dyn Algorithm<T>,
) -> Result<Solver, Failure> {
    match asked(args) {
        Solver::Em => Ok(args.accelerate),
        Solver::Fast => {
            if let Some(option) = of_em(args) {
                return Err(Failure::usage(format!(
                    "{option} cannot be combined with --solver fast: use --solver em"
                )));
            }
            let separates = match algorithm.by_samples() {
                Ok(false) => algorithm.separable().map(drop),
                settles => settles.map(drop),
            };
            separates.map_err(|e| Failure::usage(format!("--solver fast: {e}")))?;
            Ok(Solver::Fast)
        }
        solver if args.accelerate == Solver::Em => Ok(solver),
        solver => Err(Failure::usage(format!(
            "--accelerate cannot be combined with --solver {solver}"
        ))),
    }
}

/// The first option that says how EM is to work.
fn of_em(args: &FitArgs) -> Option<&'static str> {
    first_given(&[
        ("--temper", args.options.has("temper")),
        ("--accelerate", args.accelerate != Solver::Em),
        ("--update", args.options.has("update")),
        ("--missing-method", args.options.has("missing_method")),
    ])
}
