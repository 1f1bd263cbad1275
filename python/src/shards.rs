//! Fits of data in shards: what is called on workers, with bytes between the calls, and the run of a driver.
//!
//! A worker holds [`Shard`]s and the bytes of what belongs to their samples. [`shard_survey`], [`shard_begin`], [`shard_pass`] and [`shard_finish`] are
//! all that it does; [`shard_fit`] is the run itself, wherever the driver is.

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::path::PathBuf;

use plca::fit::shards::{
    Elsewhere, Engine, Local, Merge, Partial, PassRequest, Seed, ShardId, Sharded, Shared, Stats,
    Survey, started,
};
use plca::fit::{
    Algorithm, Checkpoint, FitError, Iteration, Parameters, Run, Solver, Status, Stop,
};
use plca::io::{ModelFile, ShardPart};
use plca::tensor::Data;
use plca_run::ModelEntry;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyType};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::data::{Held, Scalar, item};
use crate::error::{Refused, wrong};
use crate::options::{Options, entry};
use crate::outcome::{Outcome, is_posterior};
use crate::run;
use crate::supervise::supervise;
use crate::to_dict;

/// The data of a shard.
#[derive(Debug)]
pub(crate) enum Content<T: Scalar> {
    Memory(Box<dyn Data<T>>),
    /// A file of a folder, which is read at every pass.
    File(ShardPart<T>),
}

impl<T: Scalar> Content<T> {
    pub(crate) fn read<O>(
        &self,
        each: &mut dyn FnMut(&dyn Data<T>) -> Result<O, FitError>,
    ) -> Result<O, FitError> {
        match self {
            Self::Memory(data) => each(&**data),
            Self::File(part) => part.read(each)?,
        }
    }
}

/// A shard of data: arrays as of `fit`, or `folder` and `shard`, a part of what the command `shard` has cut. Its pickle holds what it
/// was made of, which takes memory: only a shard that is to be sent keeps it.
#[pyclass(frozen, module = "plcakit._core")]
pub(crate) struct Shard {
    arrays: Option<Py<PyDict>>,
    /// Whether it is in single precision.
    #[pyo3(get)]
    single: bool,
    /// What tells its data from others: the checksum of its file, or that of its arrays where it was asked for.
    #[pyo3(get)]
    digest: Option<String>,
    bytes: usize,
    content: Box<dyn Any + Send + Sync>,
}

impl Shard {
    fn content<T: Scalar>(&self) -> Result<&Content<T>, Refused> {
        match self.content.downcast_ref() {
            Some(content) => Ok(content),
            None => wrong("shards: expected all of one precision"),
        }
    }
}

/// The digest of a file, the bytes of memory, and the data.
type Opened = (Option<String>, usize, Box<dyn Any + Send + Sync>);

fn content<T: Scalar>(py: Python<'_>, arrays: &Bound<'_, PyDict>) -> PyResult<Opened> {
    let content = match (item(arrays, "folder")?, item(arrays, "shard")?) {
        (Some(folder), Some(shard)) => {
            let (folder, shard): (PathBuf, u32) = (folder.extract()?, shard.extract()?);
            let opened = py.detach(|| ShardPart::<T>::open(&folder, shard));
            Content::File(opened.map_err(Refused::from)?)
        }
        _ => {
            let held = Held::<T>::typed(arrays)?;
            let view = held.view()?;
            Content::Memory(py.detach(|| view.owned())?)
        }
    };
    let (digest, bytes) = match &content {
        Content::Memory(data) => {
            let entries = data.summary().nnz as usize;
            (None, entries * (size_of::<T>() + 4 * 2))
        }
        Content::File(part) => (Some(part.sha256().to_string()), 0),
    };
    Ok((digest, bytes, Box::new(content)))
}

/// What a pickle of a shard is made of.
type Reduced<'py> = (
    Bound<'py, PyType>,
    (Bound<'py, PyDict>, bool, bool, Option<String>),
);

#[pymethods]
impl Shard {
    #[new]
    #[pyo3(signature = (arrays, single, sent, digest=None))]
    fn new(
        py: Python<'_>,
        arrays: Bound<'_, PyDict>,
        single: bool,
        sent: bool,
        digest: Option<String>,
    ) -> PyResult<Self> {
        let (of_file, bytes, content) = match single {
            true => content::<f32>(py, &arrays)?,
            false => content::<f64>(py, &arrays)?,
        };
        Ok(Self {
            arrays: sent.then(|| arrays.unbind()),
            single,
            digest: of_file.or(digest),
            bytes,
            content,
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let shard = slf.get();
        match &shard.arrays {
            Some(arrays) => {
                let arrays = arrays.bind(slf.py()).clone();
                let digest = shard.digest.clone();
                Ok((slf.get_type(), (arrays, shard.single, true, digest)))
            }
            None => Err(PyTypeError::new_err(
                "this shard cannot be pickled: it does not hold its arrays",
            )),
        }
    }

    fn __sizeof__(&self) -> usize {
        // With the arrays that it was made of, where it keeps them.
        let held = 1 + usize::from(self.arrays.is_some());
        size_of::<Self>() + held * self.bytes
    }
}

/// The model of all shards.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ModelSettings<'py> {
    model: String,
    components: usize,
    options: Bound<'py, PyDict>,
    pub(crate) single: bool,
    pub(crate) threads: usize,
}

/// The same without Python.
pub(crate) struct OwnedSettings {
    model: String,
    components: usize,
    options: Options,
}

impl ModelSettings<'_> {
    pub(crate) fn known(&self) -> PyResult<OwnedSettings> {
        Ok(OwnedSettings {
            model: self.model.clone(),
            components: self.components,
            options: Options::of(&self.options)?,
        })
    }
}

impl OwnedSettings {
    /// Does something with the model of data of this shape.
    pub(crate) fn on<T: Scalar, O>(
        self,
        shape: &[usize],
        then: impl FnOnce(&dyn Sharded<T>, &ModelEntry) -> Result<O, Refused>,
    ) -> Result<O, Refused> {
        let entry = entry(&self.model)?;
        let model = self.options.model(entry, self.components, shape)?;
        match T::of(&*model).sharded() {
            Some(sharded) => then(sharded, entry),
            None => wrong(format!(
                "the model {} cannot be fitted to shards",
                entry.name
            )),
        }
    }
}

/// A message into the memory of a Python object, without a copy: it can have the size of a model. It holds the interpreter's lock.
fn to_python<'py>(py: Python<'py>, what: &impl Serialize) -> PyResult<Bound<'py, PyBytes>> {
    let failed = |e| Refused::Value(format!("a message of shards: {e}"));
    let length = postcard::experimental::serialized_size(what).map_err(failed)?;
    PyBytes::new_with(py, length, |bytes| {
        postcard::to_slice(what, bytes).map_err(failed)?;
        Ok(())
    })
}

fn encode(what: &impl Serialize) -> Result<Vec<u8>, Refused> {
    let bytes = postcard::to_stdvec(what);
    bytes.map_err(|e| Refused::Value(format!("a message of shards: {e}")))
}

fn decode<S: DeserializeOwned>(bytes: &[u8]) -> Result<S, Refused> {
    let what = postcard::from_bytes(bytes);
    what.map_err(|e| Refused::Value(format!("a message of shards: {e}")))
}

/// Shards one after the other, with what `of_each` has of each, on the threads that are asked for: what `begun` finds, and `of` of every shard. A
/// signal ends it between two shards, and an error names the one that it is of.
fn each<'py, T: Scalar, B, I, O: Send>(
    py: Python<'py>,
    sheet: &ModelSettings<'py>,
    shards: &[PyRef<'py, Shard>],
    of_each: impl ExactSizeIterator<Item = Result<(ShardId, I), Refused>> + Send,
    begun: impl FnOnce(&Content<T>) -> Result<(B, Vec<usize>), Refused> + Send,
    mut of: impl FnMut((&dyn Sharded<T>, &B), (ShardId, I), &dyn Data<T>) -> Result<O, Refused> + Send,
) -> PyResult<Vec<O>> {
    let contents = contents::<T>(shards)?;
    let known = sheet.known()?;
    let (found, failure) = supervise(py, sheet.threads, None, |control| {
        let stop = control.interrupt();
        if contents.len() != of_each.len() {
            let (shards, places) = (contents.len(), of_each.len());
            return wrong(format!("{shards} shards of {places} places"));
        }
        let Some(first) = contents.first() else {
            return wrong("shards: expected at least one");
        };
        let (begun, shape) = begun(first)?;
        known.on::<T, _>(&shape, |model, _| {
            let one = |(content, item): (&&Content<T>, Result<(ShardId, I), Refused>)| {
                let (place, item) = item?;
                if stop.is_raised() {
                    return Err(FitError::Interrupted.into());
                }
                let mut item = Some((place, item));
                let found = content
                    .read(&mut |data| Ok(item.take().map(|item| of((model, &begun), item, data))));
                let found = found.map_err(Refused::from).and_then(|found| match found {
                    Some(found) => found,
                    None => wrong("read twice"),
                });
                found.map_err(|refused| refused.of(&format!("shard {}", place.shard)))
            };
            contents.iter().zip(of_each).map(one).collect()
        })
    })?;
    match failure {
        Some(failure) => Err(failure),
        None => Ok(found?),
    }
}

pub(crate) fn contents<'a, T: Scalar>(
    shards: &'a [PyRef<'_, Shard>],
) -> PyResult<Vec<&'a Content<T>>> {
    let contents = shards.iter().map(|shard| shard.content::<T>());
    Ok(contents.collect::<Result<_, _>>()?)
}

/// Shared parameters, and the shape of the data that they are of.
fn shared<T: Scalar>(bytes: &[u8]) -> Result<(Shared<T>, Vec<usize>), Refused> {
    let shared: Shared<T> = decode(bytes)?;
    let shape = shared.survey().shape.clone();
    Ok((shared, shape))
}

/// What belongs to the samples of shards, one after the other.
fn decoded<T: Scalar>(
    bytes: &[PyBackedBytes],
) -> impl ExactSizeIterator<Item = Result<(ShardId, Local<T>), Refused>> {
    bytes.iter().map(|bytes| {
        let local = decode::<Local<T>>(bytes)?;
        Ok((local.place(), local))
    })
}

/// A sum with one more shard, which holds a few nodes of the tree and not all of its leaves.
fn added<S: Merge>(sum: &mut Option<Partial<S>>, place: ShardId, stats: S) -> Result<(), Refused> {
    let before = sum.take().unwrap_or_else(|| Partial::empty(place.shards));
    let leaf = Partial::leaf(place.shard, place.shards, stats).map_err(FitError::from)?;
    *sum = Some(before.join(leaf).map_err(FitError::from)?);
    Ok(())
}

/// A place as Python has it: the number of a shard, how many there are, and its first sample.
pub(crate) type Spot = (u32, u32, usize);

pub(crate) fn place((shard, shards, first): Spot) -> ShardId {
    ShardId {
        shard,
        shards,
        first,
    }
}

/// The bytes of a list of messages, each of which is let go as it is copied.
fn messages(py: Python<'_>, all: Vec<Vec<u8>>) -> Vec<Bound<'_, PyBytes>> {
    let all = all.into_iter();
    all.map(|bytes| PyBytes::new(py, &bytes)).collect()
}

macro_rules! by_scalar {
    ($sheet:ident, $of:ident($($argument:expr),*)) => {
        match $sheet.single {
            true => $of::<f32>($($argument),*),
            false => $of::<f64>($($argument),*),
        }
    };
}
pub(crate) use by_scalar;

/// What is known of shards: a partial sum as bytes, and the number of samples of each.
#[pyfunction]
pub(crate) fn shard_survey<'py>(
    py: Python<'py>,
    sheet: ModelSettings<'py>,
    shards: Vec<PyRef<'py, Shard>>,
    places: Vec<Spot>,
) -> PyResult<(Bound<'py, PyBytes>, Vec<usize>)> {
    by_scalar!(sheet, survey(py, &sheet, &shards, &places))
}

fn survey<'py, T: Scalar>(
    py: Python<'py>,
    sheet: &ModelSettings<'py>,
    shards: &[PyRef<'py, Shard>],
    places: &[Spot],
) -> PyResult<(Bound<'py, PyBytes>, Vec<usize>)> {
    let places = places.iter().map(|&spot| Ok((place(spot), ())));
    let shape = |first: &Content<T>| Ok(((), first.read(&mut |data| Ok(data.shape().to_vec()))?));
    let mut sum = None;
    let sizes = each(
        py,
        sheet,
        shards,
        places,
        shape,
        |(model, ()), (place, ()), data| {
            let found = model.survey(data, place.first)?;
            let size = found.shape[found.along];
            added(&mut sum, place, found)?;
            Ok(size)
        },
    )?;
    Ok((to_python(py, &sum)?, sizes))
}

/// The facts about all shards as bytes, the shape of all data and the mode that is cut, from what is known of ranges of them.
#[pyfunction]
pub(crate) fn shard_known(
    py: Python<'_>,
    partials: Vec<PyBackedBytes>,
) -> PyResult<(Bound<'_, PyBytes>, Vec<usize>, usize)> {
    let survey: Survey = joined(&partials)?;
    survey.check().map_err(Refused::from)?;
    Ok((to_python(py, &survey)?, survey.shape, survey.along))
}

/// The sum over all shards of sums over ranges of them, which come in any order.
fn joined<S: Merge + DeserializeOwned>(partials: &[PyBackedBytes]) -> Result<S, Refused> {
    let mut sum = None;
    for bytes in partials {
        // A range is never without a shard.
        let Some(next) = decode::<Option<Partial<S>>>(bytes)? else {
            continue;
        };
        sum = Some(match sum {
            Some(sum) => Partial::join(sum, next).map_err(FitError::from)?,
            None => next,
        });
    }
    match sum {
        Some(sum) => Ok(sum.root().map_err(FitError::from)?),
        None => wrong("shards: expected at least one"),
    }
}

/// What belongs to the samples of shards at the start that shared parameters are of.
#[pyfunction]
pub(crate) fn shard_begin<'py>(
    py: Python<'py>,
    sheet: ModelSettings<'py>,
    shards: Vec<PyRef<'py, Shard>>,
    places: Vec<Spot>,
    shared: &[u8],
    seed: u64,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    by_scalar!(sheet, begin(py, &sheet, &shards, &places, shared, seed))
}

fn begin<'py, T: Scalar>(
    py: Python<'py>,
    sheet: &ModelSettings<'py>,
    shards: &[PyRef<'py, Shard>],
    places: &[Spot],
    bytes: &[u8],
    seed: u64,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let places = places.iter().map(|&spot| Ok((place(spot), ())));
    let of = |_: &Content<T>| shared::<T>(bytes);
    let locals = each(
        py,
        sheet,
        shards,
        places,
        of,
        |(model, at), (place, ()), data| {
            encode(&model.begin_local(data, place, at, first_start(seed))?)
        },
    )?;
    Ok(messages(py, locals))
}

/// The stream of random numbers of a first start, as of the command.
pub(crate) fn first_start(seed: u64) -> Seed {
    Seed { seed, stream: 0 }
}

/// A pass over shards: the partial sum of their statistics, and what belongs to their samples afterwards, where counts were asked for.
#[pyfunction]
pub(crate) fn shard_pass<'py>(
    py: Python<'py>,
    sheet: ModelSettings<'py>,
    shards: Vec<PyRef<'py, Shard>>,
    locals: Vec<PyBackedBytes>,
    shared: &[u8],
    counts: bool,
    value: bool,
) -> PyResult<(Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>)> {
    let ask = PassRequest {
        counts,
        value,
        support: false,
    };
    by_scalar!(sheet, pass(py, &sheet, &shards, &locals, shared, ask))
}

fn pass<'py, T: Scalar>(
    py: Python<'py>,
    sheet: &ModelSettings<'py>,
    shards: &[PyRef<'py, Shard>],
    locals: &[PyBackedBytes],
    bytes: &[u8],
    ask: PassRequest,
) -> PyResult<(Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>)> {
    let mut sum = None;
    let (own, of) = (decoded::<T>(locals), |_: &Content<T>| shared::<T>(bytes));
    let locals = each(
        py,
        sheet,
        shards,
        own,
        of,
        |(model, at), (place, mut local), data| {
            added(&mut sum, place, model.e_step(data, &mut local, at, ask)?)?;
            ask.counts.then(|| encode(&local)).transpose()
        },
    )?;
    let locals = locals.into_iter().flatten().collect();
    Ok((to_python(py, &sum)?, messages(py, locals)))
}

/// Completes the last iteration of shards: what belongs to their samples, and the scale of every sample where cells are hidden.
#[pyfunction]
pub(crate) fn shard_finish<'py>(
    py: Python<'py>,
    sheet: ModelSettings<'py>,
    shards: Vec<PyRef<'py, Shard>>,
    locals: Vec<PyBackedBytes>,
    shared: &[u8],
) -> PyResult<(Vec<Bound<'py, PyBytes>>, Vec<f64>)> {
    by_scalar!(sheet, finish(py, &sheet, &shards, &locals, shared))
}

fn finish<'py, T: Scalar>(
    py: Python<'py>,
    sheet: &ModelSettings<'py>,
    shards: &[PyRef<'py, Shard>],
    locals: &[PyBackedBytes],
    bytes: &[u8],
) -> PyResult<(Vec<Bound<'py, PyBytes>>, Vec<f64>)> {
    let (own, of) = (decoded::<T>(locals), |_: &Content<T>| shared::<T>(bytes));
    let mut scales = Vec::new();
    let locals = each(
        py,
        sheet,
        shards,
        own,
        of,
        |(model, at), (_, mut local), data| {
            model.finish(data, &mut local, at)?;
            if !at.survey().complete {
                scales.extend(model.scale(data, &local, at)?.into_iter().flatten());
            }
            encode(&local)
        },
    )?;
    Ok((messages(py, locals), scales))
}

/// How a run is made.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RanksSettings<'py> {
    seed: u64,
    solver: String,
    stop: Bound<'py, PyDict>,
    pub(crate) likelihood: bool,
    /// `watch(start, iteration, objective)`, as of `fit`.
    pub(crate) watch: Option<Bound<'py, PyAny>>,
    /// A folder in which it is kept, after how many iterations, and what is known of it as JSON.
    pub(crate) kept: Option<(PathBuf, u64, String)>,
}

/// The same without Python.
pub(crate) struct Plan {
    pub(crate) seed: Seed,
    pub(crate) solver: Solver,
    pub(crate) stop: Stop,
}

impl RanksSettings<'_> {
    pub(crate) fn plan(&self) -> PyResult<Plan> {
        Ok(Plan {
            seed: first_start(self.seed),
            solver: self.solver.parse().map_err(Refused::from)?,
            stop: run::stop(&Options::of(&self.stop)?, Stop::default())?,
        })
    }
}

/// Facts about all shards, from `shard_known`, if there can be as many components.
pub(crate) fn surveyed(known: &OwnedSettings, bytes: &[u8]) -> Result<Survey, Refused> {
    let survey: Survey = decode(bytes)?;
    run::reasonable(known.components, &survey.shape)?;
    Ok(survey)
}

/// What a fit has found, for Python.
pub(crate) fn answer<'py, T: Scalar>(
    py: Python<'py>,
    outcome: &Outcome,
    file: &ModelFile,
) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("arrays", to_dict::<T>(py, &file.arrays)?)?;
    result.set_item("metadata", file.metadata.to_string())?;
    outcome.tell(&result)?;
    Ok(result)
}

/// An engine in Python: `engine.begin(shared)` makes what belongs to the samples of all shards, `engine(shared, counts, value)` answers with partial
/// sums over all of them, `engine.finish(shared)` with the samples and their scales.
#[derive(Debug)]
struct Caller<'a, 'py> {
    engine: &'a Bound<'py, PyAny>,
    failure: RefCell<Option<PyErr>>,
}

impl Caller<'_, '_> {
    /// What the engine answers; what it raises is kept.
    fn asked<O>(&self, ask: impl FnOnce(Python<'_>) -> PyResult<O>) -> Result<O, FitError> {
        ask(self.engine.py()).map_err(|e| {
            self.failure.replace(Some(e));
            FitError::Interrupted
        })
    }
}

impl<T: Scalar> Engine<T> for Caller<'_, '_> {
    fn pass(&self, shared: &Shared<T>, ask: PassRequest) -> Result<Stats, FitError> {
        self.asked(|py| {
            let shared = to_python(py, shared)?;
            let answer = self.engine.call1((shared, ask.counts, ask.value))?;
            Ok(joined(&answer.extract::<Vec<PyBackedBytes>>()?)?)
        })
    }
}

/// A run whose shards an engine holds.
#[pyfunction]
pub(crate) fn shard_fit<'py>(
    py: Python<'py>,
    sheet: ModelSettings<'py>,
    survey: &[u8],
    engine: &Bound<'py, PyAny>,
    course: RanksSettings<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let caller = Caller {
        engine,
        failure: RefCell::default(),
    };
    let fitted = by_scalar!(sheet, fit(py, &sheet, survey, &caller, &course));
    match caller.failure.take() {
        Some(failure) => Err(failure),
        None => fitted,
    }
}

fn fit<'py, T: Scalar>(
    py: Python<'py>,
    sheet: &ModelSettings<'py>,
    survey: &[u8],
    caller: &Caller<'_, 'py>,
    course: &RanksSettings<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let (known, plan) = (sheet.known()?, course.plan()?);
    let survey = surveyed(&known, survey)?;
    let observer = |it: &Iteration<'_, T>| {
        let watch = course.watch.as_ref().zip(it.measured);
        let answer = caller.asked(|_| match watch {
            Some((watch, point)) => watch
                .call1((0, point.iteration, point.objective))?
                .is_truthy(),
            None => Ok(false),
        });
        match answer {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(Status::Custom("callback".into())),
            Err(_) => ControlFlow::Break(Status::Interrupted),
        }
    };
    let (outcome, file) = known.on::<T, _>(&survey.shape, |model, entry| {
        let at = RefCell::new(model.begin(&survey, plan.seed)?);
        caller.asked(|py| {
            let shared = to_python(py, &*at.borrow())?;
            caller.engine.call_method1("begin", (shared,)).map(drop)
        })?;
        // What the solver refuses is refused before a start is learnt.
        if plan.solver == Solver::Fast {
            Elsewhere::new(model, caller, &at)?.by_samples()?;
        }
        started(model, caller, &mut at.borrow_mut())?;
        let from = Checkpoint::new(at.borrow().parameters().clone());
        let elsewhere = || Elsewhere::new(model, caller, &at);
        let run = Run::<Parameters<T>>::new(Box::new(elsewhere()?));
        let run = run.solver(plan.solver).stop(plan.stop).observe(observer);
        let fit = run.resume(from)?;
        // All blocks: the algorithm itself has the shared ones alone.
        let mut outcome = Outcome::of(&fit, is_posterior(&model.whole(&survey)?.blocks))?;
        if course.likelihood {
            outcome.likelihood = Some(elsewhere()?.likelihood(at.borrow().parameters())?);
        }
        let (locals, scales): (Vec<PyBackedBytes>, Vec<f64>) = caller.asked(|py| {
            let shared = to_python(py, &*at.borrow())?;
            caller.engine.call_method1("finish", (shared,))?.extract()
        })?;
        let locals = decoded::<T>(&locals).map(|found| Ok(found?.1));
        let locals = locals.collect::<Result<Vec<_>, Refused>>()?;
        let scale = fit.state().fact("scale").map_or(scales, <[f64]>::to_vec);
        let whole = model.gather(&at.borrow(), &locals)?.widened();
        let whole = match scale.is_empty() {
            true => whole,
            false => whole.with_fact("scale", scale),
        };
        Ok((outcome, entry.file(&whole)))
    })?;
    answer::<T>(py, &outcome, &file)
}
