//! What a fit leaves, and what it says of itself.

use plca_fit::Status;
use plca_io::ModelFile;
use serde_json::{Value, json};

use crate::args::{FitArgs, Precision};
use crate::failure::Failure;
use crate::named;
use crate::outputs::{Leaving, Trace};
use crate::refit;
use crate::saved;

/// What a fit says of itself.
pub(crate) fn summary(args: &FitArgs, iterations: usize, status: &Status, objective: f64) -> Value {
    json!({
        "model": args.model.name,
        "iterations": iterations,
        "stop_reason": status.to_string(),
        "objective": objective,
    })
}

/// The name of the objective without priors, where it is one of its own.
pub(crate) fn plain(args: &FitArgs) -> Option<&'static str> {
    match args.model.objective(false) {
        name if name.starts_with("log_") => Some("log_likelihood"),
        name @ ("kl_divergence" | "squared_error") => Some(name),
        _ => None,
    }
}

/// The metadata of a file of a fit. The objective is a posterior where a prior has a density.
pub(crate) fn described(
    args: &FitArgs,
    mut settings: Value,
    data: Value,
    posterior: bool,
) -> Value {
    // What the checks of a checkpoint leave aside.
    settings["max_iter"] = json!(args.max_iter);
    metadata(args, settings, data, args.model.objective(posterior))
}

/// What to do where a run was cut before it was done; nothing where all that was asked for was done.
pub(crate) fn unfinished(cut: bool, max_iter: usize, tol: f64) -> Option<String> {
    let what = || {
        format!(
            "--max-iter {max_iter} ended the run before it converged: raise --max-iter or --tol (--tol 0 runs all iterations without this warning)"
        )
    };
    (cut && max_iter > 0 && tol > 0.0).then(what)
}

/// The metadata of any file of a run.
pub(crate) fn metadata(args: &FitArgs, settings: Value, data: Value, objective: &str) -> Value {
    json!({
        "model": args.model.name,
        "settings": settings,
        "seed": args.seed,
        "version": env!("CARGO_PKG_VERSION"),
        "data": data,
        "objective_name": objective,
    })
}

/// Leaves the files of a fit, and says what it is.
pub(crate) fn leave(
    args: &FitArgs,
    mut model: ModelFile,
    mut summary: Value,
    mut warnings: Vec<String>,
    trace: &Trace<'_>,
) -> Result<(), Failure> {
    if let Some(path) = &args.again {
        let fitted = saved::read(path)?.metadata;
        warnings.extend(refit::changed(
            path,
            &fitted,
            &model.metadata,
            &args.request,
        ));
    }
    if model.metadata["data"]["first_index"].is_null()
        && let Some(first) = args.hidden.first_index_of(&args.data)?
    {
        model.metadata["data"]["first_index"] = json!(first);
    }
    // Here alone: checkpoints are the same whatever the names of what is read.
    model.metadata["request"] = args.request.clone();
    let (settings, shape) = (
        &model.metadata["settings"],
        &model.metadata["data"]["shape"],
    );
    if let Some(along) = named::along(args.model, settings) {
        summary["samples"] = shape[along].clone();
    }
    let leaving = Leaving {
        output: &args.output,
        model,
        single: args.precision == Precision::F32,
        trace: Some(trace),
        summary,
        warnings,
        started: trace.started,
        json: args.json,
        quiet: args.quiet,
        piped: args.piped,
    };
    leaving.leave()
}
