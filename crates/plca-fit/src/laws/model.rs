//! A model on data.

use plca_tensor::{Data, Real};

use super::{
    Claims, Violation, check, check_counts, check_resumed, check_threads, check_unsupported,
    refused,
};
use crate::{Checkpoint, FitError, Model, Run, Solver, State, Stop};

/// Checks a model on data from a start against [`check_counts`] at the start, against [`check`] and [`check_resumed`] under every
/// solver that it takes, and against [`check_unsupported`] and [`check_threads`]. Returns these solvers; plain EM is always one of them.
///
/// The data are to be small: slopes take two objectives for each entry of the parameters.
///
/// # Errors
///
/// The first [`Violation`] met; its details name the solver.
pub fn check_model<T: Real, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    start: &M::State,
    claims: &Claims,
) -> Result<Vec<Solver>, Violation> {
    let algorithm = model.bind(data).map_err(|e| refused(0, &e))?;
    let state = start;
    let start = start.parameters();
    check_counts(&*algorithm, start, claims)?;
    let mut held = Vec::new();
    for &solver in Solver::ALL {
        let stops = |e: &FitError| {
            use FitError::{Conflict, NotSeparable, Unsteady};
            matches!(e, Conflict { .. } | NotSeparable { .. } | Unsteady { .. })
        };
        let mut one = start.clone();
        let tried = solver.on(&*algorithm, Default::default());
        if tried
            .and_then(|mut steps| steps.step(&mut one, false))
            .is_err_and(|e| stops(&e) && solver != Solver::Em)
        {
            continue;
        }
        let halves = [claims.iterations / 2, claims.iterations];
        check(&*algorithm, solver, start, claims)
            .and_then(|()| check_resumed(&*algorithm, solver, start, halves, |saved| saved))
            .map_err(|violation| Violation {
                details: format!("{solver}: {}", violation.details),
                ..violation
            })?;
        held.push(solver);
    }
    check_unsupported(model, data, state)?;
    let run = || {
        let stop = Stop::default().tol(None).max_iter(claims.iterations);
        let run = Run::<M::State>::new(model.bind(data)?).stop(stop);
        let fit = run.resume(Checkpoint::new(start.clone()))?;
        let entries = fit.state().parameters().flat();
        let numbers = entries.into_iter().chain([fit.objective()]);
        Ok::<_, FitError>(numbers.map(f64::to_bits).collect::<Vec<_>>())
    };
    run().map_err(|e| refused(claims.iterations, &e))?;
    check_threads(|| run().map_err(|e| e.to_string()))?;
    Ok(held)
}
