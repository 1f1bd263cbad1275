//! `plca transform`: new data under learned factors, with a certified gap.

use std::time::Instant;

use plca_fit::{FitError, Impossible, Status, Transform, explain::Outcome};
use plca_io::{Array, ModelFile, Sealed};
use plca_run::{Answer, Explainer, RunError};
use serde_json::{Value, json};

use crate::args::TransformArgs;
use crate::arranged::{Arranged, Indices, arranged, places, widened};
use crate::blocks::{Arrays, matrix};
use crate::data::{self, Loaded, observed, read_for};
use crate::failure::Failure;
use crate::fitted::unfinished;
use crate::limits::{self, describable, on_threads};
use crate::models::Kind;
use crate::models::options::has;
use crate::named::{self, labels};
use crate::outputs::{Leaving, MODEL_FILES, distinct, writable};
use crate::saved;
use crate::solver;
use crate::spectrogram::{comparable, recorded};
use crate::table::Labels;

/// What was found, as the command writes it.
pub(crate) struct Transformed {
    /// The blocks that describe the new data.
    pub(crate) arrays: Arrays,
    /// What the summary says.
    pub(crate) summary: Value,
    /// Shape of the new data.
    pub(crate) shape: Vec<usize>,
    pub(crate) warnings: Vec<String>,
}

pub(crate) fn run(args: &TransformArgs) -> Result<(), Failure> {
    on_threads(args.threads, || transform(args))?
}

fn transform(args: &TransformArgs) -> Result<(), Failure> {
    let started = Instant::now();
    writable(&args.output, MODEL_FILES)?;
    let inputs = [
        ("the model", Some(&args.model)),
        ("the data", Some(&args.data)),
        ("--mask", args.hidden.mask.as_ref()),
    ];
    distinct(&inputs, &[("--output", Some(&args.output))])?;
    let (fitted, data) = (Sealed::of(&args.model)?, Sealed::of(&args.data)?);
    let (kind, file) = saved::model(&args.model)?;
    solver::known(args.solver, kind, &kind.called())?;
    let mut args = args.clone();
    let by_samples = args.hidden.samples.is_some();
    place_samples(&mut args, &file.metadata)?;
    let of_fit = file.metadata["data"]["first_index"].as_u64();
    let of_fit = of_fit.and_then(|first| u32::try_from(first).ok());
    let told = args.hidden.first_index.or(of_fit);
    let here = plca_io::first_index(&args.data, limits::unpack())?;
    let uncertain = told.is_none() && here == Some(1);
    if here.is_some() {
        args.hidden.first_index = told;
    }
    let sound = plca_io::read_metadata(&args.data, limits::unpack())?;
    // Metadata of others may be no object.
    let sound = sound.get("sound").cloned().unwrap_or_default();
    let here = recorded(&json!({ "sound": sound }));
    let there = recorded(&file.metadata);
    comparable(
        (&args.data, here),
        (&args.model, there),
        has(kind, "--kernel"),
    )?;
    let fitted_to = file.metadata["data"]["shape"]
        .as_array()
        .map_or(0, Vec::len);
    let mut names = args.hidden.read_names(&args.data)?;
    names.resize(fitted_to.max(names.len()), None);
    let mut warnings = named::doubtful(&args.data, &names, &args.hidden)?;
    if uncertain {
        warnings.push("no feature has the number 0: they are taken to begin at 1; --first-index 0 if those of the model begin at 0".into());
    }
    let mut indices = Indices::default();
    // Kernels are of any place.
    if !has(kind, "--kernel") {
        let settings = &file.metadata["settings"];
        let signed = settings["signed_mode"].as_u64();
        let last = (0..names.len())
            .rfind(|&d| Some(d as u64) != signed)
            .unwrap_or(0);
        let own = settings["given"]
            .as_u64()
            .or(settings["scale_mode"].as_u64());
        let along = args.along.or(own.map(|d| d as usize)).unwrap_or(last);
        let sizes = file.metadata["data"]["shape"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate();
        let sizes = sizes.map(|(d, n)| usize::try_from(n.as_u64()?).ok().filter(|_| d != along));
        indices.sizes = sizes.collect();
        if let Some(Labels::Names(path)) = &args.hidden.table.labels {
            // Those of a dimension of the model: how many indices it has in the new data is not known yet.
            let mut others = (0..names.len()).filter(|&d| d != along);
            let (Some(d), None) = (others.next(), others.next()) else {
                let what = "--labels FILE: new data of a matrix alone are named by a file";
                return Err(Failure::usage(what));
            };
            names[d] = Some(labels(path)?);
        }
        let unnamed;
        (indices.places, unnamed) =
            places(&args.data, &mut names, &args.hidden, &file.metadata, along)?;
        warnings.extend(unnamed);
        if args.hidden.mask.is_some() && indices.places.iter().any(Option::is_some) {
            let what =
                "its names are in another order than the model's, which --mask does not follow";
            return Err(Failure::of(&args.data, what));
        }
    }
    indices.names.clone_from(&names);
    let components = file.metadata["components"].clone();
    let explainer = kind.explainer(file, args.along).map_err(|e| match e {
        RunError::Setting { name, value, what } if by_samples && name == "along" => {
            let name = "samples".to_string();
            RunError::Setting { name, value, what }
        }
        e => e,
    })?;
    let found = explain(kind, &args, &indices, &explainer)?;
    let mut summary = found.summary;
    summary["model"] = json!(kind.name);
    let mut metadata = json!({
        "transform_of": fitted.sha256()?,
        "data": { "shape": found.shape, "sha256": data.sha256()? },
    });
    warnings.extend(found.warnings);
    let (names, left_out) = named::kept(names);
    warnings.extend(left_out);
    if !names.is_null() {
        metadata["names"] = names;
    }
    if components.is_array() {
        metadata["components"] = components;
    }
    if sound.is_object() {
        metadata["sound"] = sound;
    }
    let arrays = found.arrays;
    let leaving = Leaving {
        output: &args.output,
        model: ModelFile { arrays, metadata },
        single: false,
        trace: None,
        summary,
        warnings,
        started,
        json: args.json,
        quiet: args.quiet,
        piped: args.piped,
    };
    leaving.leave()
}

/// Turns a matrix whose samples lie along another dimension than those of the model; of a tensor, the dimension of the samples.
fn place_samples(args: &mut TransformArgs, metadata: &Value) -> Result<(), Failure> {
    let Some(d) = args.hidden.samples else {
        return Ok(());
    };
    let order = metadata["data"]["shape"].as_array().map_or(2, Vec::len);
    if d >= order {
        let last = order.saturating_sub(1);
        return Err(Failure::usage(format!(
            "--samples {d}: expected a dimension of the data of the model, from 0 to {last}"
        )));
    }
    match order {
        2 => args.hidden.transpose = d as u64 != samples_of(metadata),
        _ => {
            args.hidden.samples = None;
            args.along = Some(d);
        }
    }
    Ok(())
}

/// The dimension of a matrix along which a model takes samples.
pub(crate) fn samples_of(metadata: &Value) -> u64 {
    metadata["settings"]["given"].as_u64().unwrap_or(1)
}

/// Whether a matrix was refused that the model would take with its rows as columns.
fn fits_turned(e: &FitError) -> bool {
    let FitError::DataShape { got, expected } = e else {
        return false;
    };
    let mut sizes = got.iter().rev().zip(expected);
    (got.len(), expected.len()) == (2, 2)
        && sizes.all(|(n, expected)| expected.parse::<usize>().map_or(true, |size| size == *n))
}

/// Transforms new data.
fn explain(
    model: Kind,
    args: &TransformArgs,
    indices: &Indices,
    explainer: &Explainer,
) -> Result<Transformed, Failure> {
    if args.each && model.kernels.is_some() {
        return Err(Failure::usage(format!(
            "--each: a file is one recording for {}: transform every file by itself",
            model.name
        )));
    }
    let mut file = read_for(model, &args.data, &args.hidden)?;
    let mut warnings = widened(&args.data, &mut file, indices);
    let Arranged {
        file,
        left_out,
        warnings: of_names,
    } = arranged(model, &args.data, file, &indices.places)?;
    warnings.extend(of_names);
    let data: Loaded<f64> = observed(model, &args.data, &args.hidden, file)?;
    // Of another order it is refused below.
    let along = explainer.along;
    let observations = data.shape().get(along).copied().unwrap_or(0);
    describable(&args.data, explainer.numbers, observations)?;
    let mut how = Transform::default().impossible(Impossible::Drop);
    how.solver = solver::until(args.solver, args.tol);
    // [SPEC 1.5] stop by the gap
    how.stop.max_iter = args.max_iter;
    how.stop.residual_tol = Some(args.tol).filter(|&gap| gap > 0.0);
    if args.tol == 0.0 {
        how.stop.tol = None;
    }
    let hidden = !data.is_complete();
    let explained = explainer.explain(&*data, how, args.each).map_err(|e| {
        let frozen = matches!(e, FitError::Conflict { .. }) && hidden && ["pntf", "ntf-l2"].contains(&model.name);
        let turned = fits_turned(&e);
        match (Failure::by(&args.data, e), args.hidden.transpose) {
            (e, _) if frozen => e.and("plca fit pntf with --init MODEL and --freeze factor_D, D every dimension of no samples"),
            (e, false) if turned => e.and(format!("--samples {} turns the data", 1 - along)),
            (e, true) if turned => e.and(format!("without {} they fit", args.hidden.turned_by())),
            (e, _) => e,
        }
    })?;
    let (mut arrays, mut scale) = (Arrays::new(), None);
    let (gap, impossible, empty, ended, objective);
    let blocks = &explainer.blocks;
    match explained {
        Answer::Together(all) => {
            let fit = &all.fit;
            let file = model.file(fit.state());
            arrays = file.arrays;
            arrays.retain(|name, _| blocks.contains(name));
            scale = file.metadata["scale"].as_f64();
            scale = scale.filter(|_| blocks.iter().any(|name| name == "scale"));
            ended = Outcome {
                iterations: fit.iterations(),
                status: fit.status().clone(),
            };
            objective = fit.objective();
            (gap, impossible, empty) = (all.gap, all.dropped, all.empty);
        }
        Answer::Each(all) => {
            for (name, rows) in &all.blocks {
                arrays.insert(name.clone(), matrix(rows));
            }
            (gap, impossible, empty) = (all.gap, all.dropped, all.empty);
            (ended, objective) = (all.ended, all.objective);
        }
    }
    warnings.extend(data::warnings(model, &*data));
    let dropped = impossible + left_out;
    if impossible > 0.0 {
        warnings.push(format!(
            "data with the sum {impossible} were left out: no component has positive probability there"
        ));
    }
    warnings.extend(data::without_data(&empty, along, &indices.names));
    if !gap.is_empty() {
        let shape = match explainer.one_gap && !args.each {
            true => Vec::new(),
            false => vec![gap.len()],
        };
        arrays.insert("gap".into(), Array::new(shape, gap));
    }
    arrays.insert("dropped".into(), Array::new(vec![], vec![dropped]));
    let cut = ended.status == Status::MaxIterations;
    warnings.extend(unfinished(cut, args.max_iter, args.tol));
    let mut summary = json!({
        "iterations": ended.iterations,
        "stop_reason": ended.status.to_string(),
        "objective": objective,
        "dropped": dropped,
    });
    if let Some(scale) = scale {
        summary["scale"] = json!(scale);
    }
    if args.each {
        summary["each"] = json!(true);
    }
    if explainer.bounds {
        // [EXT 3] exp(-bound / v)
        summary["perplexity"] = json!((-objective / data.total()).exp());
    }
    Ok(Transformed {
        arrays,
        summary,
        shape: data.shape().to_vec(),
        warnings,
    })
}
