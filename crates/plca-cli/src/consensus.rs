//! `plca consensus`: what many fits of one model agree on, for several numbers of components.

mod runs;
mod usage;

use std::path::Path;

use nalgebra::DMatrix;
use plca_fit::consensus::{ConsensusError, Spectra, neighbours, usage_order};
use plca_io::{Array, ModelFile, Sealed};
use plca_tensor::{DenseTensor, Order, check_counts};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use crate::args::ConsensusArgs;
use crate::blocks::{Arrays, lacking, matrix};
use crate::data::load_for;
use crate::failure::Failure;
use crate::fitted::unfinished;
use crate::interrupt;
use crate::limits::{on_threads, ranks, reasonable};
use crate::models::Kind;
use crate::models::options::{need_matrix, refuse_foreign};
use crate::named;
use crate::outputs::{MODEL_FILES, distinct, tell, warn, writable};
use crate::solver;
use runs::Runs;
use usage::{Source, least_divergence, least_squares};

/// Random numbers of the clusters, apart from those of any start and of what `fit` holds out.
const CLUSTER_STREAM: u64 = u64::MAX - 1;

/// Fits, or reads fits; `given` are the options that stand on the command line.
pub(crate) fn run(args: &ConsensusArgs, given: &[String]) -> Result<(), Failure> {
    writable(&args.output, MODEL_FILES)?;
    let inputs = [
        ("the data", args.data.as_ref()),
        ("--from", args.from.as_ref()),
    ];
    distinct(&inputs, &[("--output", Some(&args.output))])?;
    if args.threshold.is_nan() || args.threshold <= 0.0 {
        let threshold = args.threshold;
        return Err(Failure::usage(format!(
            "--threshold {threshold}: a number above 0 is needed"
        )));
    }
    on_threads(args.threads, || {
        match (args.model, &args.data, &args.from) {
            (Some(model), Some(data), None) => swept(args, model, data, given),
            (_, _, Some(path)) => read(args, path),
            _ => Err(Failure::usage("MODEL and DATA are needed, or --from")),
        }
    })?
}

/// The consensus of fits that are made.
fn swept(args: &ConsensusArgs, model: Kind, path: &Path, given: &[String]) -> Result<(), Failure> {
    refuse_foreign(model, &args.called, given)?;
    solver::known(args.solver, model, &args.called)?;
    let ranks = ranks(args.ranks.as_deref().unwrap_or_default())?;
    let restarts = args.restarts as usize;
    for &rank in &ranks {
        let spectra = restarts.saturating_mul(rank);
        neighbours(spectra, rank, args.neighbourhood).map_err(Failure::usage)?;
        let room = plca_io::room::<f64>(&[spectra, spectra]).map(drop);
        room.map_err(|e| Failure::usage(format!("--restarts {restarts}, rank {rank}: {e}")))?;
    }
    let sealed = Sealed::of(path)?;
    let data = load_for::<f64>(model, path, &args.hidden)?;
    need_matrix(path, "consensus", data.shape())?;
    check_counts(&*data).map_err(|e| Failure::by(path, e))?;
    if !data.is_complete() {
        let what = "has hidden cells: the least-squares usages of a consensus need complete data";
        return Err(Failure::of(path, what));
    }
    for &rank in &ranks {
        reasonable("--ranks", rank, data.shape())?;
    }
    let along = args.given.unwrap_or(1).into();
    let names = named::read(path, &args.hidden, data.shape(), along)?;
    let runs = Runs {
        args,
        model,
        path,
        data: &*data,
        ranks: &ranks,
        sha256: sealed.sha256()?,
    };
    let all = runs.all()?;
    let mut out = Outputs::default();
    out.warnings
        .extend(named::doubtful(path, &names, &args.hidden)?);
    let cut = all.iter().any(|of_rank| of_rank.cut);
    out.warnings
        .extend(unfinished(cut, args.ends.max_iter, args.ends.tol));
    for (&rank, of_rank) in ranks.iter().zip(all) {
        let source = Source {
            path,
            data: &*data,
            samples: of_rank.samples,
        };
        let prefix = format!("k{rank}.");
        let objective = Array::new(vec![restarts], of_rank.objectives);
        out.arrays.insert(format!("{prefix}objective"), objective);
        out.add(args, &source, of_rank.spectra, rank, &prefix)?;
    }
    let mut metadata = json!({
        "model": "consensus",
        "of": runs.settings(),
        "restarts": restarts,
        "data": { "shape": data.shape(), "sha256": runs.sha256 },
    });
    let (names, left_out) = named::kept(names);
    if !names.is_null() {
        metadata["names"] = names;
    }
    out.warnings.extend(left_out);
    out.leave(args, metadata)
}

/// The consensus of fits that a file holds.
fn read(args: &ConsensusArgs, path: &Path) -> Result<(), Failure> {
    let rank = args.rank.unwrap_or(0);
    let sealed = Sealed::of(path)?;
    let mut file = crate::saved::arrays(path)?;
    let mut take = |name: &str| {
        let array = file
            .arrays
            .remove(name)
            .ok_or_else(|| lacking(path, name))?;
        match array.shape[..] {
            [rows, columns] => Ok((rows, columns, array.values)),
            _ => {
                let shape = &array.shape;
                let what = format!("`{name}` has shape {shape:?}, expected a matrix");
                Err(Failure::of(path, what))
            }
        }
    };
    let (n, size, spectra) = take("spectra")?;
    let (samples, features, values) = take("X")?;
    if size != features {
        let what = format!("`spectra` has {size} columns, `X` has {features}");
        return Err(Failure::of(path, what));
    }
    let room = plca_io::room::<f64>(&[n, n]).map(drop);
    room.map_err(|e| Failure::by(path, e))?;
    let data = DenseTensor::new(vec![samples, features], values, Order::RowMajor);
    let data = data.map_err(|e| Failure::by(path, e))?;
    check_counts(&data).map_err(|e| Failure::by(path, e))?;
    let source = Source {
        path,
        data: &data,
        samples: 0,
    };
    let mut out = Outputs::default();
    // Rows of the file are columns here.
    let spectra = DMatrix::from_vec(size, n, spectra);
    out.add(args, &source, spectra, rank, "")?;
    let metadata = json!({
        "model": "consensus",
        "of": null,
        "data": { "shape": [samples, features], "sha256": sealed.sha256()? },
    });
    out.leave(args, metadata)
}

/// What the command writes and says, rank after rank.
#[derive(Default)]
struct Outputs {
    arrays: Arrays,
    summaries: Vec<Value>,
    warnings: Vec<String>,
}

impl Outputs {
    /// Adds the consensus of the spectra of one rank, columns of a matrix.
    fn add(
        &mut self,
        args: &ConsensusArgs,
        source: &Source<'_>,
        spectra: DMatrix<f64>,
        rank: usize,
        prefix: &str,
    ) -> Result<(), Failure> {
        let refused = |e: ConsensusError| match e {
            ConsensusError::Components | ConsensusError::Neighbours { .. } => Failure::usage(e),
            e => Failure::of(source.path, format_args!("rank {rank}: {e}")),
        };
        let spectra = Spectra::new(spectra, rank).map_err(refused)?;
        let density = spectra.local_density(args.neighbourhood).map_err(refused)?;
        let kept: Vec<bool> = density.iter().map(|&d| d < args.threshold).collect();
        let consensus = |kept: &[bool]| {
            let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
            rng.set_stream(CLUSTER_STREAM);
            spectra.consensus(kept, &mut rng).map_err(refused)
        };
        let found = consensus(&kept)?;
        let all = consensus(&vec![true; kept.len()])?;
        let (usage, squared_error) = least_squares(source, &found.spectra)?;
        let (_, of_all) = least_squares(source, &all.spectra)?;
        let kl = least_divergence(source, &found.spectra)?;
        let (share, order) = usage_order(&usage.transpose());
        let gap = kl.gap.iter().copied().fold(0.0, f64::max);
        if kl.dropped > 0.0 {
            self.warnings.push(format!(
                "rank {rank}: data with the sum {} are left out of kl and usage_kl: no component of the consensus is positive there",
                kl.dropped
            ));
        }
        self.summaries.push(json!({
            "rank": rank,
            "spectra": kept.len(),
            "kept": found.labels.len(),
            "inertia": found.inertia,
            "silhouette": found.silhouette,
            "squared_error": squared_error,
            "kl": kl.divergence,
            "dropped": kl.dropped,
            "gap": gap,
            "selection": {
                "inertia": all.inertia,
                "silhouette": all.silhouette,
                "squared_error": of_all,
            },
        }));
        let list = |values: Vec<f64>| Array::new(vec![values.len()], values);
        let whole = |values: &[usize]| list(values.iter().map(|&x| x as f64).collect());
        let flags = kept.iter().map(|&kept| f64::from(u8::from(kept)));
        for (name, array) in [
            ("local_density", list(density)),
            ("kept", list(flags.collect())),
            ("labels", whole(&found.labels)),
            ("consensus_spectra", matrix(&found.spectra.transpose())),
            ("usage", matrix(&usage)),
            ("usage_kl", matrix(&kl.usage)),
            ("gap", list(kl.gap)),
            ("share", list(share)),
            ("order", whole(&order)),
        ] {
            self.arrays.insert(format!("{prefix}{name}"), array);
        }
        Ok(())
    }

    fn leave(self, args: &ConsensusArgs, mut metadata: Value) -> Result<(), Failure> {
        metadata["settings"] = json!({
            "threshold": args.threshold,
            "neighbourhood": args.neighbourhood,
        });
        metadata["seed"] = json!(args.seed);
        metadata["version"] = json!(env!("CARGO_PKG_VERSION"));
        metadata["table"] = json!(self.summaries);
        if !self.warnings.is_empty() {
            metadata["warnings"] = json!(self.warnings);
        }
        let text = match (args.json, args.quiet) {
            (true, _) if args.from.is_some() => format!("{}\n", self.summaries[0]),
            (true, _) => format!("{}\n", json!(self.summaries)),
            (false, false) => table(&self.summaries),
            (false, true) => String::new(),
        };
        let file = ModelFile {
            arrays: self.arrays,
            metadata,
        };
        interrupt::writing(|| plca_io::write_model(&args.output, &file, false))?;
        warn(args.quiet, &self.warnings);
        tell(&text, &args.output)
    }
}

/// The table for a person.
fn table(summaries: &[Value]) -> String {
    let mut text = format!(
        "{:>5} {:>11} {:>10} {:>16} {:>16} {:>10}\n",
        "rank", "kept", "stability", "squared_error", "kl", "unfiltered"
    );
    let number = |value: &Value, digits: usize| match value.as_f64() {
        Some(x) => format!("{x:.digits$}"),
        None => "-".into(),
    };
    for row in summaries {
        text.push_str(&format!(
            "{:>5} {:>11} {:>10} {:>16} {:>16} {:>10}\n",
            row["rank"],
            format!("{}/{}", row["kept"], row["spectra"]),
            number(&row["silhouette"], 4),
            number(&row["squared_error"], 4),
            number(&row["kl"], 4),
            number(&row["selection"]["silhouette"], 4),
        ));
    }
    text
}
