//! Fits of data in shards: what engines call, on whichever machine, with bytes between the calls.
//!
//! A worker holds [`Shard`]s and the bytes of what belongs to their samples. [`shard_step`] makes their statistics of the shared parameters,
//! [`shard_join`] adds statistics up along the one tree, and [`shard_fit`] is the run itself, wherever the driver is.

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::path::PathBuf;

use plca::fit::shards::{
    Ask, Elsewhere, Engine, Local, Merge, Partial, Place, Seed, Sharded, Shared, Stats, Stepwise,
    Survey, started,
};
use plca::fit::{
    Algorithm, Checkpoint, FitError, Iteration, Parameters, Run, Solver, Status, Stop,
};
use plca::io::ShardPart;
use plca::tensor::Data;
use plca_run::Entry;
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
enum Content<T: Scalar> {
    Memory(Box<dyn Data<T>>),
    /// A file of a folder, which is read at every pass.
    File(ShardPart<T>),
}

impl<T: Scalar> Content<T> {
    fn read<O>(
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
pub(crate) struct Sheet<'py> {
    model: String,
    components: usize,
    options: Bound<'py, PyDict>,
    single: bool,
    threads: usize,
}

/// The same without Python.
struct Known {
    model: String,
    components: usize,
    options: Options,
}

impl Sheet<'_> {
    fn known(&self) -> PyResult<Known> {
        Ok(Known {
            model: self.model.clone(),
            components: self.components,
            options: Options::of(&self.options)?,
        })
    }
}

impl Known {
    /// Does something with the model of data of this shape.
    fn on<T: Scalar, O>(
        self,
        shape: &[usize],
        then: impl FnOnce(&dyn Sharded<T>, &Entry) -> Result<O, Refused>,
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

fn encode(what: &impl Serialize) -> Result<Vec<u8>, Refused> {
    let bytes = postcard::to_stdvec(what);
    bytes.map_err(|e| Refused::Value(format!("a message of shards: {e}")))
}

/// As `encode`, but into the memory of a Python object, without a copy: messages can have the size of a model. It holds the interpreter's lock.
fn to_python<'py>(py: Python<'py>, what: &impl Serialize) -> PyResult<Bound<'py, PyBytes>> {
    let failed = |e| Refused::Value(format!("a message of shards: {e}"));
    let length = postcard::experimental::serialized_size(what).map_err(failed)?;
    PyBytes::new_with(py, length, |bytes| {
        postcard::to_slice(what, bytes).map_err(failed)?;
        Ok(())
    })
}

fn decode<S: DeserializeOwned>(bytes: &[u8]) -> Result<S, Refused> {
    let what = postcard::from_bytes(bytes);
    what.map_err(|e| Refused::Value(format!("a message of shards: {e}")))
}

/// Work on this number of threads, which a signal ends between two shards.
fn worked<O: Send>(
    py: Python<'_>,
    sheet: &Sheet<'_>,
    work: impl FnOnce(Known, &dyn Fn() -> bool) -> Result<O, Refused> + Send,
) -> PyResult<O> {
    let known = sheet.known()?;
    let (found, failure) = supervise(py, sheet.threads, None, |control| {
        let stop = control.interrupt();
        work(known, &|| stop.is_raised())
    })?;
    match failure {
        Some(failure) => Err(failure),
        None => Ok(found?),
    }
}

/// Shards one after the other, with the data of each; an error names the one that it is of.
fn each<T: Scalar, I, O>(
    shards: &[&Content<T>],
    of_each: impl ExactSizeIterator<Item = Result<(Place, I), Refused>>,
    ended: &dyn Fn() -> bool,
    mut of: impl FnMut(I, Place, &dyn Data<T>) -> Result<O, Refused>,
) -> Result<Vec<O>, Refused> {
    if shards.len() != of_each.len() {
        let (shards, places) = (shards.len(), of_each.len());
        return wrong(format!("{shards} shards of {places} places"));
    }
    let one = |(content, item): (&&Content<T>, Result<(Place, I), Refused>)| {
        let (place, item) = item?;
        if ended() {
            return Err(FitError::Interrupted.into());
        }
        let mut item = Some(item);
        let found = content.read(&mut |data| Ok(item.take().map(|item| of(item, place, data))));
        let found = found.map_err(Refused::from).and_then(|found| match found {
            Some(found) => found,
            None => wrong("read twice"),
        });
        found.map_err(|refused| refused.of(&format!("shard {}", place.shard)))
    };
    shards.iter().zip(of_each).map(one).collect()
}

/// Nothing but the places of shards.
fn bare(places: &[Place]) -> impl ExactSizeIterator<Item = Result<(Place, ()), Refused>> {
    places.iter().map(|&place| Ok((place, ())))
}

fn contents<'a, T: Scalar>(shards: &'a [PyRef<'_, Shard>]) -> PyResult<Vec<&'a Content<T>>> {
    let contents = shards.iter().map(|shard| shard.content::<T>());
    Ok(contents.collect::<Result<_, _>>()?)
}

/// The sum of statistics as they come, which holds a few nodes of the tree and not all of its leaves.
struct Sum<S>(Option<Partial<S>>);

impl<S: Merge> Sum<S> {
    fn add(&mut self, place: Place, stats: S) -> Result<(), Refused> {
        let leaf = Partial::leaf(place.shard, place.shards, stats).map_err(FitError::from)?;
        let sum = match self.0.take() {
            Some(sum) => sum.join(leaf).map_err(FitError::from)?,
            None => leaf,
        };
        self.0 = Some(sum);
        Ok(())
    }

    fn all(self) -> Result<Partial<S>, Refused> {
        match self.0 {
            Some(sum) => Ok(sum),
            None => wrong("shards: expected at least one"),
        }
    }
}

/// Where shards are: the number of each, how many there are, and its first sample.
fn placed(all: Vec<(u32, u32, usize)>) -> Vec<Place> {
    let places = all.into_iter().map(|(shard, shards, first)| Place {
        shard,
        shards,
        first,
    });
    places.collect()
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

/// What is known of shards: a partial sum as bytes, and the number of samples of each.
#[pyfunction]
pub(crate) fn shard_survey<'py>(
    py: Python<'py>,
    sheet: Sheet<'py>,
    shards: Vec<PyRef<'py, Shard>>,
    places: Vec<(u32, u32, usize)>,
) -> PyResult<(Bound<'py, PyBytes>, Vec<usize>)> {
    by_scalar!(sheet, survey(py, &sheet, &shards, &placed(places)))
}

fn survey<'py, T: Scalar>(
    py: Python<'py>,
    sheet: &Sheet<'py>,
    shards: &[PyRef<'py, Shard>],
    places: &[Place],
) -> PyResult<(Bound<'py, PyBytes>, Vec<usize>)> {
    let contents = contents::<T>(shards)?;
    let (sum, sizes) = worked(py, sheet, |known, ended| {
        let shape = match contents.first() {
            Some(content) => content.read(&mut |data| Ok(data.shape().to_vec()))?,
            None => return wrong("shards: expected at least one"),
        };
        known.on::<T, _>(&shape, |model, _| {
            let mut sum = Sum(None);
            let sizes = each(&contents, bare(places), ended, |(), place, data| {
                let found = model.survey(data, place.first)?;
                let size = found.shape[found.along];
                sum.add(place, found)?;
                Ok(size)
            })?;
            Ok((sum.all()?, sizes))
        })
    })?;
    Ok((to_python(py, &sum)?, sizes))
}

/// The shape and the cut mode of all data.
#[pyfunction]
pub(crate) fn shard_known(survey: &[u8]) -> PyResult<(Vec<usize>, usize)> {
    let survey = surveyed(survey)?;
    Ok((survey.shape, survey.along))
}

fn surveyed(bytes: &[u8]) -> Result<Survey, Refused> {
    let survey = decode::<Partial<Survey>>(bytes)?.root();
    let survey = survey.map_err(FitError::from)?;
    survey.check()?;
    Ok(survey)
}

/// The shared parameters of a random start.
#[pyfunction]
pub(crate) fn shard_begin<'py>(
    py: Python<'py>,
    sheet: Sheet<'py>,
    survey: &[u8],
    seed: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let seed = start(seed);
    let shared = by_scalar!(sheet, begin(sheet.known()?, surveyed(survey)?, seed))?;
    Ok(PyBytes::new(py, &shared))
}

/// The stream of random numbers of a first start, as of the command.
fn start(seed: u64) -> Seed {
    Seed { seed, stream: 0 }
}

fn begin<T: Scalar>(known: Known, survey: Survey, seed: Seed) -> Result<Vec<u8>, Refused> {
    let shape = survey.shape.clone();
    run::reasonable(known.components, &shape)?;
    known.on::<T, _>(&shape, |model, _| encode(&model.begin(&survey, seed)?))
}

/// What belongs to the samples of shards at that start.
#[pyfunction]
pub(crate) fn shard_begin_local<'py>(
    py: Python<'py>,
    sheet: Sheet<'py>,
    shards: Vec<PyRef<'py, Shard>>,
    places: Vec<(u32, u32, usize)>,
    shared: &[u8],
    seed: u64,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let seed = start(seed);
    by_scalar!(
        sheet,
        begin_local(py, &sheet, &shards, &placed(places), shared, seed)
    )
}

fn begin_local<'py, T: Scalar>(
    py: Python<'py>,
    sheet: &Sheet<'py>,
    shards: &[PyRef<'py, Shard>],
    places: &[Place],
    shared: &[u8],
    seed: Seed,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let contents = contents::<T>(shards)?;
    let locals = worked(py, sheet, |known, ended| {
        let shared: Shared<T> = decode(shared)?;
        known.on::<T, _>(&shared.survey().shape, |model, _| {
            each(&contents, bare(places), ended, |(), place, data| {
                encode(&model.begin_local(data, place, &shared, seed)?)
            })
        })
    })?;
    Ok(messages(py, locals))
}

/// A pass over shards: the partial sum of their statistics, and what belongs to their samples afterwards, where counts were asked for.
#[pyfunction]
pub(crate) fn shard_step<'py>(
    py: Python<'py>,
    sheet: Sheet<'py>,
    shards: Vec<PyRef<'py, Shard>>,
    locals: Vec<PyBackedBytes>,
    shared: &[u8],
    counts: bool,
    value: bool,
) -> PyResult<(Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>)> {
    let ask = Ask {
        counts,
        value,
        support: false,
    };
    by_scalar!(sheet, step(py, &sheet, &shards, &locals, shared, ask))
}

fn step<'py, T: Scalar>(
    py: Python<'py>,
    sheet: &Sheet<'py>,
    shards: &[PyRef<'py, Shard>],
    locals: &[PyBackedBytes],
    shared: &[u8],
    ask: Ask,
) -> PyResult<(Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>)> {
    let contents = contents::<T>(shards)?;
    let (sum, locals) = worked(py, sheet, |known, ended| {
        let shared: Shared<T> = decode(shared)?;
        known.on::<T, _>(&shared.survey().shape, |model, _| {
            let mut sum = Sum(None);
            let locals = each(
                &contents,
                decoded::<T>(locals),
                ended,
                |mut local, place, data| {
                    sum.add(place, model.e_step(data, &mut local, &shared, ask)?)?;
                    ask.counts.then(|| encode(&local)).transpose()
                },
            )?;
            let locals: Vec<_> = locals.into_iter().flatten().collect();
            Ok((sum.all()?, locals))
        })
    })?;
    Ok((to_python(py, &sum)?, messages(py, locals)))
}

/// What belongs to the samples of shards, one after the other.
fn decoded<T: Scalar>(
    bytes: &[PyBackedBytes],
) -> impl ExactSizeIterator<Item = Result<(Place, Local<T>), Refused>> {
    bytes.iter().map(|bytes| {
        let local = decode::<Local<T>>(bytes)?;
        Ok((local.place(), local))
    })
}

/// Completes the last iteration of shards: what belongs to their samples, and the scale of every sample where cells are hidden.
#[pyfunction]
pub(crate) fn shard_finish<'py>(
    py: Python<'py>,
    sheet: Sheet<'py>,
    shards: Vec<PyRef<'py, Shard>>,
    locals: Vec<PyBackedBytes>,
    shared: &[u8],
) -> PyResult<(Vec<Bound<'py, PyBytes>>, Vec<f64>)> {
    by_scalar!(sheet, finish(py, &sheet, &shards, &locals, shared))
}

fn finish<'py, T: Scalar>(
    py: Python<'py>,
    sheet: &Sheet<'py>,
    shards: &[PyRef<'py, Shard>],
    locals: &[PyBackedBytes],
    shared: &[u8],
) -> PyResult<(Vec<Bound<'py, PyBytes>>, Vec<f64>)> {
    let contents = contents::<T>(shards)?;
    let (locals, scales) = worked(py, sheet, |known, ended| {
        let shared: Shared<T> = decode(shared)?;
        known.on::<T, _>(&shared.survey().shape, |model, _| {
            let complete = shared.survey().complete;
            let mut scales = Vec::new();
            let locals = each(
                &contents,
                decoded::<T>(locals),
                ended,
                |mut local, _, data| {
                    model.finish(data, &mut local, &shared)?;
                    if !complete {
                        scales.extend(model.scale(data, &local, &shared)?.into_iter().flatten());
                    }
                    encode(&local)
                },
            )?;
            Ok((locals, scales))
        })
    })?;
    Ok((messages(py, locals), scales))
}

/// Adds partial sums up, in any order: of surveys, or of statistics.
#[pyfunction]
#[pyo3(signature = (partials, survey=false))]
pub(crate) fn shard_join<'py>(
    py: Python<'py>,
    partials: Vec<PyBackedBytes>,
    survey: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    match survey {
        true => to_python(py, &py.detach(|| join::<Survey>(&partials))?),
        false => to_python(py, &py.detach(|| join::<Stats>(&partials))?),
    }
}

fn join<S: Merge + DeserializeOwned>(partials: &[PyBackedBytes]) -> Result<Partial<S>, Refused> {
    let mut partials = partials.iter().map(|bytes| decode::<Partial<S>>(bytes));
    let Some(first) = partials.next() else {
        return wrong("`partials` is empty");
    };
    partials.try_fold(first?, |sum, next| {
        Ok(sum.join(next?).map_err(FitError::from)?)
    })
}

/// An engine in Python: `engine(shared, counts, value)` answers with the partial sum over all shards.
#[derive(Debug)]
struct Caller<'a, 'py> {
    engine: &'a Bound<'py, PyAny>,
    failure: RefCell<Option<PyErr>>,
}

impl<T: Scalar> Engine<T> for Caller<'_, '_> {
    fn pass(&self, shared: &Shared<T>, ask: Ask) -> Result<Stats, FitError> {
        let attempt = || -> PyResult<Stats> {
            let shared = to_python(self.engine.py(), shared)?;
            let answer = self.engine.call1((shared, ask.counts, ask.value))?;
            let answer: PyBackedBytes = answer.extract()?;
            let sum = decode::<Partial<Stats>>(&answer)?.root();
            Ok(sum.map_err(|e| Refused::from(FitError::from(e)))?)
        };
        attempt().map_err(|e| {
            self.failure.replace(Some(e));
            FitError::Interrupted
        })
    }
}

/// How a run is made that an engine answers, and goes on after an end before its time.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Course<'py> {
    solver: String,
    stop: Bound<'py, PyDict>,
    likelihood: bool,
    /// `watch(start, iteration, objective)`, as of `fit`.
    watch: Option<Bound<'py, PyAny>>,
    /// `save(iteration, state)` after each such number of iterations.
    save: Option<(usize, Bound<'py, PyAny>)>,
    /// Such a state, of shards that are as they were then.
    resume: Option<PyBackedBytes>,
    /// The number of shards, and of a stepwise start the passes and the shards of a round.
    stepwise: Option<(u32, u32, u32)>,
}

/// A run whose shards an engine holds.
#[pyfunction]
pub(crate) fn shard_fit<'py>(
    py: Python<'py>,
    sheet: Sheet<'py>,
    shared: &[u8],
    engine: &Bound<'py, PyAny>,
    course: Course<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let caller = Caller {
        engine,
        failure: RefCell::default(),
    };
    let fitted = by_scalar!(sheet, fit(&sheet, shared, &caller, &course));
    let fitted = match (caller.failure.take(), fitted) {
        (Some(failure), _) => return Err(failure),
        (None, fitted) => fitted?,
    };
    let result = PyDict::new(py);
    result.set_item("shared", PyBytes::new(py, &fitted.shared))?;
    result.set_item("scale", fitted.scale)?;
    fitted.outcome.tell(&result)?;
    Ok(result)
}

struct Ran {
    shared: Vec<u8>,
    scale: Vec<f64>,
    outcome: Outcome,
}

fn fit<T: Scalar>(
    sheet: &Sheet<'_>,
    shared: &[u8],
    caller: &Caller<'_, '_>,
    course: &Course<'_>,
) -> PyResult<Ran> {
    let stop = run::stop(&Options::of(&course.stop)?, Stop::default())?;
    let solver: Solver = course.solver.parse().map_err(Refused::from)?;
    let (mut shared, from) = match &course.resume {
        Some(state) => {
            let (shared, from) = decode::<(Shared<T>, Checkpoint<T>)>(state)?;
            (shared, Some(from))
        }
        None => (decode(shared)?, None),
    };
    let shape = shared.survey().shape.clone();
    let ran = sheet.known()?.on::<T, _>(&shape, |model, _| {
        let from = match from {
            Some(from) => from,
            None => {
                // What the solver refuses is refused before a start is learnt.
                let at = RefCell::new(shared.clone());
                if solver == Solver::Fast {
                    Elsewhere::new(model, caller, &at)?.by_samples()?;
                }
                let stepwise = course
                    .stepwise
                    .map(|(count, passes, shards)| (count, Stepwise::new(passes).shards(shards)));
                started(model, caller, &mut shared, stepwise)?;
                Checkpoint::new(shared.parameters().clone())
            }
        };
        let at = RefCell::new(shared);
        let elsewhere = || Elsewhere::new(model, caller, &at);
        let observer = |it: &Iteration<'_, T>| {
            let attempt = || -> PyResult<bool> {
                if let Some((every, save)) = &course.save
                    && it.done().is_multiple_of((*every).max(1))
                {
                    let state = to_python(save.py(), &(&*at.borrow(), it.checkpoint()))?;
                    save.call1((it.done(), state))?;
                }
                match (&course.watch, it.measured) {
                    (Some(watch), Some(point)) => {
                        let answer = watch.call1((0, point.iteration, point.objective))?;
                        answer.is_truthy()
                    }
                    _ => Ok(false),
                }
            };
            match attempt() {
                Ok(false) => ControlFlow::Continue(()),
                Ok(true) => ControlFlow::Break(Status::Custom("callback".into())),
                Err(e) => {
                    caller.failure.replace(Some(e));
                    ControlFlow::Break(Status::Interrupted)
                }
            }
        };
        let run = Run::<Parameters<T>>::new(Box::new(elsewhere()?));
        let run = run.solver(solver).stop(stop).observe(observer);
        let fit = run.resume(from)?;
        // All blocks: the algorithm itself has the shared ones alone.
        let blocks = model.whole(at.borrow().survey())?.blocks;
        let mut outcome = Outcome::of(&fit, is_posterior(&blocks))?;
        if course.likelihood {
            outcome.likelihood = Some(elsewhere()?.likelihood(at.borrow().parameters())?);
        }
        Ok(Ran {
            scale: fit.state().fact("scale").unwrap_or_default().to_vec(),
            outcome,
            shared: encode(&*at.borrow())?,
        })
    });
    Ok(ran?)
}

/// The blocks of all data, and their metadata as JSON, from what belongs to the samples of all shards in their order.
#[pyfunction]
pub(crate) fn shard_gather<'py>(
    py: Python<'py>,
    sheet: Sheet<'py>,
    shared: &[u8],
    locals: Vec<PyBackedBytes>,
    scale: Vec<f64>,
) -> PyResult<(Bound<'py, PyDict>, String)> {
    by_scalar!(sheet, gather(py, &sheet, shared, &locals, scale))
}

fn gather<'py, T: Scalar>(
    py: Python<'py>,
    sheet: &Sheet<'py>,
    shared: &[u8],
    locals: &[PyBackedBytes],
    scale: Vec<f64>,
) -> PyResult<(Bound<'py, PyDict>, String)> {
    let shared: Shared<T> = decode(shared)?;
    let locals = decoded::<T>(locals).map(|found| Ok(found?.1));
    let locals = locals.collect::<Result<Vec<_>, Refused>>()?;
    let shape = shared.survey().shape.clone();
    let file = sheet.known()?.on::<T, _>(&shape, |model, entry| {
        let at = model.gather(&shared, &locals)?.widened();
        Ok(entry.file(&match scale.is_empty() {
            true => at,
            false => at.with_fact("scale", scale),
        }))
    })?;
    Ok((to_dict::<T>(py, &file.arrays)?, file.metadata.to_string()))
}
