//! Scores by the bound of the evidence.

use plca_fit::{Solver, Status};
use plca_run::Scored;
use serde_json::json;

use super::table::{Table, models, sizes};
use crate::args::{Criterion, SelectArgs};
use crate::data::{self, load_for};
use crate::failure::Failure;
use crate::limits::ranks;
use crate::models::options::need_matrix;
use crate::named;

/// Scores by the bound, of the best of all starts.
pub(super) fn scores(args: &SelectArgs) -> Result<Table, Failure> {
    let name = &args.called;
    if args.criterion.is_some_and(|c| c != Criterion::Elbo) {
        return Err(Failure::usage(format!(
            "{name} has no such criterion; there is --criterion elbo"
        )));
    }
    let data = load_for::<f64>(args.model, &args.data, &args.hidden)?;
    if args.model.matrix {
        need_matrix(&args.data, name, data.shape())?;
    }
    let models = models(args.model, args, &ranks(&args.ranks)?, data.shape())?;
    let found = sizes(args, &models, Solver::Auto, &|| false).by_bound(&*data);
    let found = found.map_err(|e| Failure::from(e).about(&args.data))?;
    let cut = found.iter().any(|of| of.status == Status::MaxIterations);
    let row = |of: Scored| {
        json!({
            "rank": of.components, "score": of.score.score, "log_likelihood": of.score.ln_lik,
            "parameters": of.score.parameters, "elbo": of.objective,
        })
    };
    let mut warnings = data::warnings(args.model, &*data);
    warnings.extend(named::doubts(&args.data, &args.hidden, &*data)?);
    warnings.extend(data::transposed(
        args.model,
        &args.data,
        args.options.get("given")?,
        &args.hidden,
    ));
    Ok(Table {
        criterion: "elbo",
        sample_size: data.observed().map_err(|e| Failure::by(&args.data, e))?,
        rows: found.into_iter().map(row).collect(),
        cut,
        warnings,
    })
}
