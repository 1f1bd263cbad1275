//! The solver of a run, from the command line.

use plca_fit::engine::{self, Algorithm};
use plca_io::Element;

use crate::args::{Acceleration, FitArgs, Solver};
use crate::failure::Failure;

/// The solver asked for: `auto` leaves the choice to the model only where no option says that it is EM.
pub(crate) fn asked(args: &FitArgs) -> Solver {
    let em = of_em(args).is_some()
        || args.tol() == 0.0
        || args.out_of_core.is_some()
        || !args.model.separates();
    match args.solver {
        Solver::Auto if em => Solver::Em,
        named => named,
    }
}

/// The solver of a run on data.
pub(crate) fn of<T: Element>(
    args: &FitArgs,
    algorithm: &dyn Algorithm<T>,
) -> Result<engine::Solver, Failure> {
    Ok(match (asked(args), args.accelerate) {
        (Solver::Fast, _) => {
            if let Some(option) = of_em(args) {
                return Err(Failure::usage(format!(
                    "{option} does not go with --solver fast: use --solver em"
                )));
            }
            let separable = algorithm.separable();
            separable.map_err(|e| Failure::usage(format!("--solver fast: {e}")))?;
            engine::Solver::Fast
        }
        (Solver::Auto, _) => engine::Solver::Auto,
        (Solver::Em, Acceleration::None) => engine::Solver::Em,
        (Solver::Em, Acceleration::Squarem) => engine::Solver::Squarem,
        (Solver::Em, Acceleration::Parabolic) => engine::Solver::Parabolic,
        (Solver::Em, Acceleration::Momentum) => engine::Solver::Momentum,
    })
}

/// The first option that says how EM is to work.
fn of_em(args: &FitArgs) -> Option<&'static str> {
    let options = [
        (args.temper.is_some(), "--temper"),
        (args.accelerate != Acceleration::None, "--accelerate"),
        (args.update.is_some(), "--update"),
        (args.missing_method.is_some(), "--missing-method"),
    ];
    let mut given = options.into_iter().filter(|(given, _)| *given);
    given.next().map(|(_, name)| name)
}
