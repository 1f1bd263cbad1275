//! The extension module of the Python package `plcakit`: models over arrays, safe without the Python around it.

mod data;
mod error;
mod options;
mod outcome;
mod ranks;
mod run;
mod shards;
mod starts;
mod supervise;

use std::path::PathBuf;

use nalgebra::{DMatrix, DVector};
use numpy::{PyArray1, PyArrayMethods};
use plca::em::{Criterion, CrossValidation, OnlineState, RankRow, RankRule, best_rank};
use plca::fit::consensus::Spectra;
use plca::fit::{Impossible, Stop, Transform};
use plca::io::{Array, ModelFile};
use plca_run::{ModelEntry, Score, Stream};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use data::{Held, Input, Scalar, array_of, to_python};
use error::{Refused, bad};
use options::{Options, entry};
use run::{Arrays, Choice, Drawn};
use supervise::supervise;

/// A dict of arrays.
fn arrays(dict: &Bound<'_, PyDict>) -> PyResult<Arrays> {
    let named = dict.iter();
    let named = named.map(|(name, array)| Ok((name.extract()?, array_of(&array)?)));
    named.collect()
}

/// Arrays and what they are.
fn learnt(blocks: &Bound<'_, PyDict>, metadata: &str) -> PyResult<ModelFile> {
    let metadata = match serde_json::from_str(metadata) {
        Ok(metadata) => metadata,
        Err(e) => return bad(format!("`metadata`: {e}")),
    };
    Ok(ModelFile {
        arrays: arrays(blocks)?,
        metadata,
    })
}

/// Arrays for Python: what describes the fit is always in double precision.
fn to_dict<'py, T: Scalar>(py: Python<'py>, arrays: &Arrays) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, array) in arrays {
        match ModelFile::is_fact(name) {
            true => dict.set_item(name, to_python::<f64>(py, array)?)?,
            false => dict.set_item(name, to_python::<T>(py, array)?)?,
        }
    }
    Ok(dict)
}

/// How a run is made.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Plan<'py> {
    components: usize,
    options: Bound<'py, PyDict>,
    start: Bound<'py, PyDict>,
    init: String,
    seed: u64,
    starts: u32,
    solver: String,
    stop: Bound<'py, PyDict>,
    likelihood: bool,
    threads: usize,
}

impl Plan<'_> {
    fn of<T: Scalar>(&self) -> PyResult<run::Plan<T>> {
        Ok(run::Plan {
            components: self.components,
            options: Options::of(&self.options)?,
            start: arrays(&self.start)?,
            init: run::init(&self.init)?,
            seed: self.seed,
            starts: self.starts,
            solver: run::solver(&self.solver)?,
            stop: run::stop(&Options::of(&self.stop)?, Stop::default())?,
            likelihood: self.likelihood,
        })
    }
}

/// Fits a model; `plan` says how, `watch(start, iteration, objective)` may end a run by answering something true.
///
/// What a signal or `watch` raised is returned as `error`, beside the state that was reached.
#[pyfunction]
#[pyo3(signature = (model, data, plan, watch=None))]
fn fit<'py>(
    py: Python<'py>,
    model: &str,
    data: &Bound<'py, PyDict>,
    plan: Plan<'py>,
    watch: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    match Input::of(data)? {
        Input::Single(held) => fit_as(py, model, &held, plan, watch),
        Input::Double(held) => fit_as(py, model, &held, plan, watch),
    }
}

fn fit_as<'py, T: Scalar>(
    py: Python<'py>,
    model: &str,
    held: &Held<'py, T>,
    plan: Plan<'py>,
    watch: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (entry, data, made) = (entry(model)?, held.view()?, plan.of()?);
    let (fitted, failure) = supervise(py, plan.threads, watch, |control| {
        run::fit(entry, data, made, control)
    })?;
    let fitted = match (fitted, failure) {
        (Ok(fitted), failure) => {
            let result = PyDict::new(py);
            result.set_item("error", failure.map(|e| e.into_value(py)))?;
            (fitted, result)
        }
        (Err(_), Some(failure)) => return Err(failure),
        (Err(refused), None) => return Err(refused.into()),
    };
    let (fitted, result) = fitted;
    result.set_item("arrays", to_dict::<T>(py, &fitted.file.arrays)?)?;
    result.set_item("metadata", fitted.file.metadata.to_string())?;
    fitted.outcome.tell(&result)?;
    result.set_item("restored", fitted.restored)?;
    let far = fitted.far.map(|far| (far.index, far.value, far.largest));
    result.set_item("far", far)?;
    result.set_item("unobserved", fitted.unobserved)?;
    Ok(result)
}

/// Fits a model from every start of `plan`, as many at a time as there are threads; one block of each, the columns of all fits as rows of an
/// array, and the objectives.
#[pyfunction]
fn sweep<'py>(
    py: Python<'py>,
    model: &str,
    data: &Bound<'py, PyDict>,
    plan: Plan<'py>,
    block: &str,
) -> PyResult<Bound<'py, PyDict>> {
    match Input::of(data)? {
        Input::Single(held) => sweep_as(py, model, &held, plan, block),
        Input::Double(held) => sweep_as(py, model, &held, plan, block),
    }
}

fn sweep_as<'py, T: Scalar>(
    py: Python<'py>,
    model: &str,
    held: &Held<'py, T>,
    plan: Plan<'py>,
    block: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let (entry, data, made) = (entry(model)?, held.view()?, plan.of()?);
    let (swept, failure) = supervise(py, plan.threads, None, |control| {
        run::sweep(entry, data, (made, block), control)
    })?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let swept = swept?;
    let shape = [plan.starts as usize * plan.components, swept.size];
    let columns = PyArray1::from_vec(py, swept.columns).reshape(shape)?;
    let result = PyDict::new(py);
    result.set_item("spectra", columns)?;
    result.set_item("objectives", PyArray1::from_vec(py, swept.objectives))?;
    result.set_item("iterations", PyArray1::from_vec(py, swept.iterations))?;
    Ok(result)
}

/// Random numbers of the clusters, as of the command.
const CLUSTER_STREAM: u64 = u64::MAX - 1;

/// How a consensus is made.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Agreement {
    components: usize,
    threshold: f64,
    neighbourhood: f64,
    seed: u64,
    threads: usize,
}

/// The consensus of the rows of an array, spectra fit after fit: with those that lie apart left out, and with all.
#[pyfunction]
fn consensus<'py>(
    py: Python<'py>,
    spectra: &Bound<'py, PyAny>,
    how: Agreement,
) -> PyResult<Bound<'py, PyDict>> {
    let array = array_of(spectra)?;
    let [count, size] = array.shape[..] else {
        let shape = &array.shape;
        return bad(format!("`spectra` has shape {shape:?}, expected a matrix"));
    };
    plca::io::room::<f64>(&[count, count]).map_err(Refused::from)?;
    let (found, failure) = supervise(py, how.threads, None, |control| -> Result<_, Refused> {
        let go_on = || match control.interrupt().is_raised() {
            true => Err(Refused::Value("interrupted".into())),
            false => Ok(()),
        };
        // Rows become columns.
        let columns = DMatrix::from_vec(size, count, array.values);
        let spectra = Spectra::new(columns, how.components)?;
        let density = spectra.local_density(how.neighbourhood)?;
        let kept: Vec<bool> = density.iter().map(|&d| d < how.threshold).collect();
        let of = |kept: &[bool]| -> Result<_, Refused> {
            go_on()?;
            let mut rng = plca::seed(how.seed);
            rng.set_stream(CLUSTER_STREAM);
            Ok(spectra.consensus(kept, &mut rng)?)
        };
        let (some, all) = (of(&kept)?, of(&vec![true; count])?);
        Ok((density, kept, some, all))
    })?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let (density, kept, some, all) = found?;
    let result = PyDict::new(py);
    result.set_item("local_density", PyArray1::from_vec(py, density))?;
    result.set_item("kept", PyArray1::from_vec(py, kept))?;
    for (name, found) in [("filtered", some), ("all", all)] {
        let dict = PyDict::new(py);
        let labels = found.labels.iter().map(|&label| label as i64).collect();
        dict.set_item("labels", PyArray1::from_vec(py, labels))?;
        dict.set_item("inertia", found.inertia)?;
        dict.set_item("silhouette", found.silhouette)?;
        let (size, k) = found.spectra.shape();
        let components = PyArray1::from_slice(py, found.spectra.as_slice()).reshape([k, size])?;
        dict.set_item("components", components)?;
        result.set_item(name, dict)?;
    }
    Ok(result)
}

/// How new data are explained.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct How<'py> {
    components: usize,
    options: Bound<'py, PyDict>,
    along: usize,
    each: bool,
    solver: String,
    stop: Bound<'py, PyDict>,
    threads: usize,
}

/// Explains new data by the blocks of a fit.
#[pyfunction]
fn transform<'py>(
    py: Python<'py>,
    model: &str,
    blocks: &Bound<'py, PyDict>,
    metadata: &str,
    data: &Bound<'py, PyDict>,
    how: How<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let learnt = learnt(blocks, metadata)?;
    match Input::of(data)? {
        Input::Single(held) => transform_as(py, model, learnt, &held, how),
        Input::Double(held) => transform_as(py, model, learnt, &held, how),
    }
}

fn transform_as<'py, T: Scalar>(
    py: Python<'py>,
    model: &str,
    learnt: ModelFile,
    held: &Held<'py, T>,
    how: How<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let stop = run::stop(&Options::of(&how.stop)?, Transform::default().stop)?;
    let (entry, data, options) = (entry(model)?, held.view()?, Options::of(&how.options)?);
    let explain = Transform::default().impossible(Impossible::Drop);
    let explain = explain
        .solver(run::solver(&how.solver)?)
        .stop(stop)
        .along(how.along);
    let (components, each) = (how.components, how.each);
    let (found, failure) = supervise(py, how.threads, None, |control| {
        let explain = explain.interrupt(control.interrupt());
        run::explain(
            entry,
            learnt,
            data,
            (&options, components),
            (&explain, each),
        )
    })?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let found = found?;
    let result = PyDict::new(py);
    result.set_item("arrays", to_dict::<T>(py, &found.arrays)?)?;
    result.set_item("gap", PyArray1::from_vec(py, found.gap))?;
    result.set_item("dropped", found.dropped)?;
    result.set_item("empty", found.empty)?;
    result.set_item("objective", found.objective)?;
    result.set_item("iterations", found.iterations)?;
    result.set_item("status", found.status.to_string())?;
    result.set_item("total", found.total)?;
    result.set_item("observed", found.observed)?;
    Ok(result)
}

/// How a batch is learnt from.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct BatchSettings<'py> {
    components: usize,
    options: Bound<'py, PyDict>,
    seed: u64,
    threads: usize,
    total: Option<f64>,
    drawn: bool,
}

/// A matrix in C order as a block.
fn block<T: Scalar>(array: &Array<f64>) -> PyResult<DMatrix<T>> {
    match array.shape[..] {
        [rows, columns] => Ok(DMatrix::from_row_slice(rows, columns, &array.values).map(T::lit)),
        [rows] => Ok(DMatrix::from_row_slice(rows, 1, &array.values).map(T::lit)),
        _ => bad("`known`: expected vectors and matrices"),
    }
}

/// What the batches before have taught, as [`learn`] returned it.
fn known<T: Scalar>(dict: &Bound<'_, PyDict>) -> PyResult<OnlineState<T>> {
    let arrays = arrays(dict)?;
    let find = |name: &str| match arrays.get(name) {
        Some(array) => block::<T>(array),
        None => bad(format!("`known` has no `{name}`")),
    };
    let all = |name: &str| {
        let found = (0..).map_while(|j| arrays.get(&format!("{name}_{j}")));
        found.map(block::<T>).collect::<PyResult<Vec<_>>>()
    };
    let Some([batches, seen, pass, total]) = arrays
        .get("counts")
        .and_then(|array| <[f64; 4]>::try_from(&array.values[..]).ok())
    else {
        return bad("`known` has no `counts` of four numbers");
    };
    Ok(OnlineState {
        weights: DVector::from_column_slice(find("weights")?.as_slice()),
        factors: all("factor")?,
        statistics: all("statistics")?,
        batches: batches as u64,
        seen,
        pass,
        total,
    })
}

/// Learns from one more batch; `known` is what the last call returned under this name, `None` at the start of a stream.
#[pyfunction]
fn learn<'py>(
    py: Python<'py>,
    model: &str,
    data: &Bound<'py, PyDict>,
    lesson: BatchSettings<'py>,
    known: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    match Input::of(data)? {
        Input::Single(held) => learn_as(py, model, &held, lesson, known),
        Input::Double(held) => learn_as(py, model, &held, lesson, known),
    }
}

fn learn_as<'py, T: Scalar>(
    py: Python<'py>,
    model: &str,
    held: &Held<'py, T>,
    lesson: BatchSettings<'py>,
    before: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let known = before.map(known::<T>).transpose()?;
    let (entry, data, options) = (entry(model)?, held.view()?, Options::of(&lesson.options)?);
    let (components, seed) = (lesson.components, lesson.seed);
    let mut how = Stream {
        total: lesson.total,
        drawn: lesson.drawn,
        ..Stream::default()
    };
    let (learnt, failure) = supervise(py, lesson.threads, None, |control| {
        how.interrupt = Some(control.interrupt());
        run::learn(entry, data, (&options, components, seed), known, &how)
    })?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let (state, batch) = learnt?;
    let dict = PyDict::new(py);
    let counts = [state.batches as f64, state.seen, state.pass, state.total];
    dict.set_item("counts", PyArray1::from_slice(py, &counts))?;
    let weights = state.weights.as_slice().to_vec();
    dict.set_item("weights", PyArray1::from_vec(py, weights))?;
    for (name, blocks) in [
        ("factor", &state.factors),
        ("statistics", &state.statistics),
    ] {
        for (j, block) in blocks.iter().enumerate() {
            let shape = [block.nrows(), block.ncols()];
            let values = block.transpose().as_slice().to_vec();
            let array = PyArray1::from_vec(py, values).reshape(shape)?;
            dict.set_item(format!("{name}_{j}"), array)?;
        }
    }
    let result = PyDict::new(py);
    result.set_item("known", dict)?;
    let file = entry.file(&batch.state.widened());
    result.set_item("arrays", to_dict::<T>(py, &file.arrays)?)?;
    result.set_item("metadata", file.metadata.to_string())?;
    result.set_item("log_likelihood", batch.ln_lik)?;
    result.set_item("iterations", batch.iterations)?;
    result.set_item("restored", batch.restored)?;
    result.set_item("batches", state.batches)?;
    Ok(result)
}

/// How fits with several numbers of components are made.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Chosen<'py> {
    components: Vec<usize>,
    /// Of each number of components.
    options: Vec<Bound<'py, PyDict>>,
    seed: u64,
    starts: u32,
    solver: String,
    stop: Bound<'py, PyDict>,
    threads: usize,
}

impl Chosen<'_> {
    fn of(&self) -> PyResult<Choice> {
        Ok(Choice {
            components: self.components.clone(),
            options: self
                .options
                .iter()
                .map(Options::of)
                .collect::<Result<_, _>>()?,
            seed: self.seed,
            starts: self.starts,
            solver: run::solver(&self.solver)?,
            stop: run::stop(&Options::of(&self.stop)?, Stop::default())?,
        })
    }
}

/// Scores of several numbers of components by `"bic"`, `"aic"`, `"held_out"` or `"elbo"`, as of the command `select`; smaller is better.
///
/// The scores are of data in double precision.
#[pyfunction]
fn order<'py>(
    py: Python<'py>,
    model: &str,
    data: &Bound<'py, PyDict>,
    criterion: &str,
    choice: Chosen<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let Input::Double(held) = Input::of(data)? else {
        return bad("`values`: expected an array of float64");
    };
    let likely = match criterion {
        "bic" => Some(Criterion::Bic),
        "aic" => Some(Criterion::Aic),
        "held_out" => Some(Criterion::HeldOut),
        "elbo" => None,
        other => {
            return bad(format!(
                "`criterion` is '{other}', expected one of bic, aic, held_out, elbo"
            ));
        }
    };
    let (entry, data, chosen) = (entry(model)?, held.view()?, choice.of()?);
    let ranks = choice.components;
    let (table, failure) = supervise(py, choice.threads, None, |control| match likely {
        Some(criterion) => chosen.by_likelihood(entry, data, criterion, control),
        None => chosen.by_bound(entry, data, control),
    })?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let table = table?;
    let result = PyDict::new(py);
    let column = |of: fn(&Score) -> f64| {
        PyArray1::from_iter(py, table.rows.iter().map(|row| of(&row.score)))
    };
    result.set_item("score", column(|row| row.score))?;
    result.set_item("log_likelihood", column(|row| row.ln_lik))?;
    result.set_item("parameters", column(|row| row.parameters as f64))?;
    result.set_item("counts", table.counts)?;
    result.set_item("doubt", table.doubt.map(|why| why.to_string()))?;
    let scores = ranks.into_iter().zip(&table.rows);
    let scores: Vec<_> = scores.map(|(rank, row)| (rank, row.score.score)).collect();
    result.set_item("best", best_rank(&scores))?;
    Ok(result)
}

/// The sum of every sample, where data look like shares; `None` for counts and other data.
#[pyfunction]
fn shares(data: &Bound<'_, PyDict>) -> PyResult<Option<f64>> {
    fn of<T: Scalar>(held: &Held<'_, T>) -> PyResult<Option<f64>> {
        let view = held.view()?;
        let data = view.tensor()?;
        Ok(plca::em::shares(&*data).map_err(Refused::from)?)
    }
    Ok(match Input::of(data)? {
        Input::Double(held) => of(&held)?,
        Input::Single(held) => of(&held)?,
    })
}

/// How cells are divided into folds.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Folding {
    folds: usize,
    repeats: usize,
    zeros: bool,
    smoothing: f64,
}

/// Cross-validated scores of several numbers of components, as of the command `select --criterion cv`.
#[pyfunction]
fn validate<'py>(
    py: Python<'py>,
    model: &str,
    data: &Bound<'py, PyDict>,
    folding: Folding,
    choice: Chosen<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let Input::Double(held) = Input::of(data)? else {
        return bad("`values`: expected an array of float64");
    };
    let settings = CrossValidation::default()
        .folds(folding.folds)
        .repeats(folding.repeats)
        .starts(choice.starts as usize)
        .seed(choice.seed)
        .zeros(folding.zeros)
        .smoothing(folding.smoothing);
    let (entry, data, chosen) = (entry(model)?, held.view()?, choice.of()?);
    let (validated, failure) = supervise(py, choice.threads, None, |control| {
        chosen.cross_validated(entry, data, &settings, control)
    })?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let (validated, counts) = validated?;
    let (table, rows) = (&validated.table, validated.table.rows());
    let result = PyDict::new(py);
    let column = |of: &dyn Fn(&RankRow) -> Option<f64>| {
        PyArray1::from_iter(py, rows.iter().map(|row| of(row).unwrap_or(f64::NAN)))
    };
    result.set_item("score", column(&|row| row.score))?;
    result.set_item("se", column(&|row| row.se))?;
    result.set_item("difference", column(&|row| row.difference))?;
    result.set_item("difference_se", column(&|row| row.difference_se))?;
    result.set_item("start_sd", column(&|row| row.scores.start_sd))?;
    let seconds = |row: &RankRow| validated.seconds.get(&row.scores.rank).copied();
    result.set_item("seconds", column(&seconds))?;
    let of_row = |row: &RankRow| -> Vec<f64> {
        let scores = row.scores.scores.iter().flatten();
        let mut scores: Vec<f64> = scores.map(|score| score.unwrap_or(f64::NAN)).collect();
        scores.resize(folding.repeats * folding.folds, f64::NAN);
        scores
    };
    let scores = PyArray1::from_iter(py, rows.iter().flat_map(of_row));
    let shape = [rows.len(), folding.repeats, folding.folds];
    result.set_item("scores", scores.reshape(shape)?)?;
    for (name, rule) in [
        ("best", RankRule::Best),
        ("one_se", RankRule::OneStandardError),
        ("paired", RankRule::Paired),
    ] {
        result.set_item(name, table.choice(rule))?;
    }
    result.set_item("limit", table.limit())?;
    result.set_item("cut", rows.iter().any(|row| row.scores.cut))?;
    result.set_item("unsettled", table.unsettled_folds())?;
    let far = rows.iter().filter(|row| row.scores.far);
    let far: Vec<usize> = far.map(|row| row.scores.rank).collect();
    result.set_item("far", far)?;
    result.set_item("counts", counts)?;
    Ok(result)
}

/// The approximation of the data by the blocks of a fit, or what one component contributes.
#[pyfunction]
#[pyo3(signature = (model, blocks, metadata, single=false, component=None))]
fn reconstruct<'py>(
    py: Python<'py>,
    model: &str,
    blocks: &Bound<'py, PyDict>,
    metadata: &str,
    single: bool,
    component: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let (entry, file) = (entry(model)?, learnt(blocks, metadata)?);
    match single {
        true => cells::<f32>(py, entry, file, component),
        false => cells::<f64>(py, entry, file, component),
    }
}

fn cells<'py, T: Scalar>(
    py: Python<'py>,
    entry: &ModelEntry,
    file: ModelFile,
    component: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let (shape, values) = py
        .detach(|| T::cells(entry, file, component))
        .map_err(Refused::from)?;
    Ok(PyArray1::from_vec(py, values)
        .reshape(&shape[..])?
        .into_any())
}

/// Draws from the law of a fit: `shape`, and either the `indices` of events, one after the other, or a number for every cell as `values`.
#[pyfunction]
#[pyo3(signature = (model, blocks, metadata, options, draws, seed))]
fn sample<'py>(
    py: Python<'py>,
    model: &str,
    blocks: &Bound<'py, PyDict>,
    metadata: &str,
    options: &Bound<'py, PyDict>,
    draws: Option<u64>,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let (entry, file, options) = (
        entry(model)?,
        learnt(blocks, metadata)?,
        Options::of(options)?,
    );
    let drawn = py.detach(|| run::sample(entry, file, &options, (draws, seed)));
    let (shape, drawn) = drawn?;
    let result = PyDict::new(py);
    match drawn {
        Drawn::Events(indices) => {
            let events = indices.len() / shape.len();
            let indices = PyArray1::from_vec(py, indices).reshape([events, shape.len()])?;
            result.set_item("indices", indices)?;
        }
        Drawn::Cells(values) => {
            result.set_item(
                "values",
                PyArray1::from_vec(py, values).reshape(&shape[..])?,
            )?;
        }
    }
    result.set_item("shape", shape)?;
    Ok(result)
}

/// Reads a model file: its arrays, and its metadata as JSON.
#[pyfunction]
#[pyo3(signature = (path, unpack_limit=None))]
fn read_model(
    py: Python<'_>,
    path: PathBuf,
    unpack_limit: Option<u64>,
) -> PyResult<(Bound<'_, PyDict>, String)> {
    let file = py.detach(|| plca::io::read_model_with(&path, unpack_limit));
    let file = file.map_err(Refused::from)?;
    Ok((to_dict::<f64>(py, &file.arrays)?, file.metadata.to_string()))
}

/// Writes a model file, `.npz` or `.safetensors`, whole or not at all.
#[pyfunction]
#[pyo3(signature = (path, blocks, metadata, single=false))]
fn write_model(
    py: Python<'_>,
    path: PathBuf,
    blocks: &Bound<'_, PyDict>,
    metadata: &str,
    single: bool,
) -> PyResult<()> {
    let file = learnt(blocks, metadata)?;
    let written = py.detach(|| plca::io::write_model(&path, &file, single));
    Ok(written.map_err(Refused::from)?)
}

/// Models over arrays.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(fit, module)?)?;
    module.add_function(wrap_pyfunction!(sweep, module)?)?;
    module.add_function(wrap_pyfunction!(consensus, module)?)?;
    module.add_function(wrap_pyfunction!(transform, module)?)?;
    module.add_function(wrap_pyfunction!(learn, module)?)?;
    module.add_function(wrap_pyfunction!(order, module)?)?;
    module.add_function(wrap_pyfunction!(shares, module)?)?;
    module.add_function(wrap_pyfunction!(validate, module)?)?;
    module.add_function(wrap_pyfunction!(reconstruct, module)?)?;
    module.add_function(wrap_pyfunction!(sample, module)?)?;
    module.add_function(wrap_pyfunction!(read_model, module)?)?;
    module.add_function(wrap_pyfunction!(write_model, module)?)?;
    module.add_class::<shards::Shard>()?;
    module.add_function(wrap_pyfunction!(shards::shard_survey, module)?)?;
    module.add_function(wrap_pyfunction!(shards::shard_known, module)?)?;
    module.add_function(wrap_pyfunction!(shards::shard_begin, module)?)?;
    module.add_function(wrap_pyfunction!(shards::shard_pass, module)?)?;
    module.add_function(wrap_pyfunction!(shards::shard_finish, module)?)?;
    module.add_function(wrap_pyfunction!(shards::shard_fit, module)?)?;
    module.add_function(wrap_pyfunction!(ranks::ranks_fit, module)?)?;
    Ok(())
}
