//! What `plca-vb` and `plsa-vb` share: scores by the bound.

use plca_em::nominal_parameters;
use plca_fit::{FitError, Init, Model, Status};
use plca_tensor::Data;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::json;

use crate::args::{Criterion, SelectArgs};
use crate::data::{self, load_for};
use crate::failure::Failure;
use crate::limits::{ranks, reasonable};
use crate::named;
use crate::select::table::Table;

/// Scores by the bound, of the best of all starts; `make` makes the model with this number of components for data of a shape.
pub(super) fn scores<M: Model<f64>>(
    args: &SelectArgs,
    make: impl Fn(usize, &[usize]) -> Result<M, Failure>,
    ln_lik: impl Fn(&M::State, &dyn Data<f64>) -> Result<f64, FitError>,
) -> Result<Table, Failure> {
    let name = &args.called;
    if args.criterion.is_some_and(|c| c != Criterion::Elbo) {
        return Err(Failure::usage(format!(
            "{name} has no such criterion; there is --criterion elbo"
        )));
    }
    let data = load_for::<f64>(args.model, &args.data, &args.hidden)?;
    let about = |e| Failure::by(&args.data, e);
    let (mut rows, mut cut) = (Vec::new(), false);
    // As for skellam-vb: one start after the other, of all numbers of components, from one stream.
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    for rank in ranks(&args.ranks)? {
        reasonable("--ranks", rank, data.shape())?;
        let model = make(rank, data.shape())?;
        let run = model.on(&*data).map_err(about)?.stop(args.ends.stop());
        let run = run.restarts(u32::try_from(args.restarts).unwrap_or(u32::MAX));
        let fit = run.run(Init::default(), &mut rng).map_err(about)?;
        cut |= *fit.status() == Status::MaxIterations;
        // [EXT 3] ELBO + ln K!, of which smaller negatives are better
        let labels: f64 = (1..=rank).map(|k| (k as f64).ln()).sum();
        rows.push(json!({
            "rank": rank, "score": -(fit.objective() + labels),
            "log_likelihood": ln_lik(fit.state(), &*data).map_err(about)?,
            "parameters": nominal_parameters(data.shape(), rank), "elbo": fit.objective(),
        }));
    }
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
        rows,
        cut,
        warnings,
    })
}
