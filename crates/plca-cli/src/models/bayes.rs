//! What `plca-vb` and `plsa-vb` share: priors, and scores by the bound.

use std::path::Path;

use nalgebra::DMatrix;
use plca_em::{Entries, nominal_parameters};
use plca_fit::{FitError, Init, Model, Status};
use plca_tensor::Data;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::json;

use super::broadcast::broadcast;
use super::priors::{Said, for_each};
use crate::args::{Criterion, SelectArgs};
use crate::data::{self, load_for};
use crate::failure::Failure;
use crate::limits::reasonable;
use crate::select::{Table, ranks};

/// After the names of blocks of shapes.
const SHAPE: &str = "_shape";

/// A block of shapes: its name and its rows and columns; a single column is a vector in files.
pub(super) type Size = (String, (usize, usize));

/// The Dirichlet shapes of priors that `--prior` and `--priors` name, by the blocks of the model.
pub(super) fn priors(
    specs: &[String],
    file: Option<&Path>,
    blocks: &[Size],
) -> Result<Vec<(String, Entries)>, Failure> {
    let mut found = Vec::new();
    for_each(specs, file, |name, said| {
        let full = match name.ends_with(SHAPE) {
            true => name.to_string(),
            false => format!("{name}{SHAPE}"),
        };
        let (_, (rows, columns)) = blocks.iter().find(|(b, _)| *b == full).ok_or_else(|| {
            let known = blocks.iter().map(|(b, _)| b.trim_end_matches(SHAPE));
            let known = known.collect::<Vec<_>>().join(", ");
            format!("no block `{name}` takes a prior; there are {known}")
        })?;
        let entries = match said {
            Said::Spec(spec) => {
                let shape = spec.strip_prefix("dirichlet:");
                let shape = shape.ok_or("expected dirichlet:A, such as dirichlet:0.1")?;
                let bad = |_| format!("`{shape}` is not a number");
                Entries::All(shape.parse().map_err(bad)?)
            }
            Said::Array("dirichlet", array) => {
                let shape = [*rows, *columns];
                let shape = if *columns == 1 && full.starts_with("weights") {
                    &shape[..1]
                } else {
                    &shape[..]
                };
                let values = broadcast(array, shape)?;
                Entries::Each(DMatrix::from_row_slice(*rows, *columns, &values))
            }
            Said::Array(kind, _) => {
                return Err(format!("unknown prior `{kind}`; there is BLOCK.dirichlet"));
            }
        };
        found.push((full.clone(), entries));
        Ok(full)
    })?;
    Ok(found)
}

/// Why there is no such model: priors come from a file where there is one.
pub(super) fn refused(file: Option<&Path>, e: FitError) -> Failure {
    match file {
        Some(path) => Failure::by(path, e),
        None => Failure::usage(e),
    }
}

/// Scores by the bound, of the best of all starts; `make` makes the model with this number of components for data of a shape.
pub(super) fn scores<M: Model<Scalar = f64>>(
    args: &SelectArgs,
    make: impl Fn(usize, &[usize]) -> Result<M, Failure>,
    ln_lik: impl Fn(&M::State, &dyn Data<f64>) -> Result<f64, FitError>,
) -> Result<Table, Failure> {
    let name = args.model.name();
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
    warnings.extend(args.hidden.doubts(&args.data, &*data)?);
    warnings.extend(data::transposed(
        args.model,
        &args.data,
        args.given,
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
