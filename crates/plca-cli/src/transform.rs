//! `plca transform`: new data under learned factors, with a certified gap.

use std::time::Instant;

use nalgebra::{DMatrix, DVector};
use plca_em::{EmError, Explained, FoldIn, Given, Impossible, NmfState, PlcaState, PlsaState};
use plca_io::{Array, ModelFile};
use plca_tensor::Observed;
use serde_json::{Value, json};

use crate::args::TransformArgs;
use crate::blocks::{Arrays, matrix, need_matrix, vector};
use crate::data::{Data, load, unobserved_warnings};
use crate::failure::Failure;
use crate::limits::on_threads;
use crate::outputs::{Leaving, MODEL_FILES, warn, writable};

/// The learned factors of a model file. Blocks that describe the old observations are not needed, nor read.
enum Learned {
    Plca(PlcaState<f64>),
    Plsa(PlsaState<f64>, Given),
    Nmf(NmfState<f64>),
}

pub(crate) fn run(args: &TransformArgs) -> Result<(), Failure> {
    on_threads(args.threads, || transform(args))?
}

/// The factors of a model file, and the dimension of the observations.
fn learned(args: &TransformArgs, mut file: ModelFile) -> Result<(Learned, usize), Failure> {
    let path = &args.model;
    let mut block = |name: &str| need_matrix(path, &mut file.arrays, name);
    let wrong = |along, default| {
        Failure::usage(format!(
            "--along {along}: this model explains observations along dimension {default}"
        ))
    };
    let metadata = &file.metadata;
    match metadata["model"].as_str().unwrap_or_default() {
        "plca" => {
            let order = metadata["data"]["shape"].as_array().map_or(0, Vec::len);
            if order == 0 {
                return Err(Failure::of(path, "does not say the shape of its data"));
            }
            let along = args.along.unwrap_or(order - 1);
            if along >= order {
                return Err(wrong(along, order - 1));
            }
            let factors: Vec<DMatrix<f64>> = (0..order)
                .map(|j| block(&format!("factor_{j}")))
                .collect::<Result<_, _>>()?;
            let k = factors[0].ncols();
            if let Some(other) = factors.iter().find(|f| f.ncols() != k) {
                let what = format!("blocks of {k} and {} components", other.ncols());
                return Err(Failure::of(path, what));
            }
            let weights = DVector::from_element(k, 1.0);
            let power = 1.0;
            let state = PlcaState {
                weights,
                factors,
                power,
                iteration: 0,
            };
            Ok((Learned::Plca(state), along))
        }
        "plsa" => {
            // The observations are what was given.
            let given = if metadata["settings"]["given"] == 0 {
                Given::Rows
            } else {
                Given::Columns
            };
            let along = args.along.unwrap_or(given.mode());
            if along != given.mode() {
                return Err(wrong(along, given.mode()));
            }
            let basis = block("basis")?;
            let mixture = DMatrix::zeros(basis.ncols(), 0);
            let power = 1.0;
            let state = PlsaState {
                basis,
                mixture,
                power,
                iteration: 0,
            };
            Ok((Learned::Plsa(state, given), along))
        }
        "nmf-kl" => {
            let along = args.along.unwrap_or(1);
            if along > 1 {
                return Err(wrong(along, 1));
            }
            let state = NmfState {
                w: block("w")?,
                h: block("h")?,
            };
            if state.w.ncols() != state.h.nrows() {
                let what = format!(
                    "blocks of {} and {} components",
                    state.w.ncols(),
                    state.h.nrows()
                );
                return Err(Failure::of(path, what));
            }
            Ok((Learned::Nmf(state), along))
        }
        other => Err(Failure::of(
            path,
            format!("holds the model `{other}`, which has no transform"),
        )),
    }
}

/// What was found, as the command writes it.
struct Found {
    arrays: Arrays,
    summary: Value,
    dropped: f64,
    empty: Vec<usize>,
}

fn found<S>(explained: Explained<S>, name: &str, blocks: impl FnOnce(&S) -> Arrays) -> Found {
    let Explained {
        outcome,
        gap,
        dropped,
        empty,
        ..
    } = explained;
    let mut arrays = blocks(&outcome.state);
    // PLCA has one gap for all observations.
    let shape = if name == "plca" {
        vec![]
    } else {
        vec![gap.len()]
    };
    arrays.insert("gap".into(), Array::new(shape, gap));
    arrays.insert("dropped".into(), Array::new(vec![], vec![dropped]));
    Found {
        arrays,
        summary: json!({
            "model": name,
            "iterations": outcome.iterations,
            "stop_reason": outcome.reason.to_string(),
            "objective": outcome.objective,
            "dropped": dropped,
        }),
        dropped,
        empty,
    }
}

fn explain(
    learned: &Learned,
    data: &dyn Observed<f64>,
    along: usize,
    how: &FoldIn,
) -> Result<Found, EmError> {
    Ok(match learned {
        Learned::Plca(model) => found(model.fold_in(data, along, how)?, "plca", |state| {
            [
                ("weights".to_string(), vector(&state.weights)),
                (format!("factor_{along}"), matrix(&state.factors[along])),
            ]
            .into()
        }),
        Learned::Plsa(model, given) => found(model.fold_in(data, *given, how)?, "plsa", |state| {
            [("mixture".to_string(), matrix(&state.mixture))].into()
        }),
        Learned::Nmf(model) => found(model.fold_in(data, along, how)?, "nmf-kl", |state| {
            let (name, block) = if along == 1 {
                ("h", &state.h)
            } else {
                ("w", &state.w)
            };
            [(name.to_string(), matrix(block))].into()
        }),
    })
}

fn transform(args: &TransformArgs) -> Result<(), Failure> {
    let started = Instant::now();
    writable(&args.output, MODEL_FILES)?;
    let (learned, along) = learned(args, plca_io::read_model(&args.model)?)?;
    let data: Data<f64> = load(&args.data, &args.hidden)?;
    let mut how = FoldIn {
        impossible: Impossible::Drop,
        ..FoldIn::default()
    };
    how.stop.max_iter = args.max_iter;
    // [SPEC 1.5] stop by the gap
    how.stop.residual_tol = Some(args.tol).filter(|&gap| gap > 0.0);
    if args.tol == 0.0 {
        how.stop.tol = 0.0;
    }
    let found = explain(&learned, &*data, along, &how).map_err(|e| match e {
        EmError::Value { .. } | EmError::ZeroColumn { .. } => Failure::of(&args.model, e),
        e => Failure::of(&args.data, e),
    })?;
    let mut warnings = unobserved_warnings(&*data);
    if found.dropped > 0.0 {
        warnings.push(format!(
            "observations of mass {} were dropped: no component reaches them",
            found.dropped
        ));
    }
    if !found.empty.is_empty() {
        warnings.push(format!(
            "observations {:?} along dimension {along} hold nothing: what is written for them means nothing",
            found.empty
        ));
    }
    let mut summary = found.summary;
    let mut metadata = summary.clone();
    metadata["transform_of"] = json!(plca_io::sha256_file(&args.model)?);
    metadata["data"] =
        json!({ "shape": data.shape(), "sha256": plca_io::sha256_file(&args.data)? });
    if !warnings.is_empty() {
        metadata["warnings"] = json!(warnings);
    }
    summary["seconds"] = json!(started.elapsed().as_secs_f64());
    let arrays = found.arrays;
    let leaving = Leaving {
        output: &args.output,
        model: &ModelFile { arrays, metadata },
        single: false,
        trace: None,
        summary: &summary,
        json: args.json,
        quiet: args.quiet,
    };
    leaving.leave()?;
    warn(args.quiet, &warnings);
    Ok(())
}
