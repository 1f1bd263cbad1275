//! Fits of data in shards on ranks, whose messages Python carries; one process is a rank by itself.

use std::ops::ControlFlow;
use std::path::Path;

use plca::fit::shards::{ShardId, Shards, Visit};
use plca::fit::{Algorithm, FitError, Interrupt, Iteration, Solver, Status};
use plca_run::ranks::{self, Kept, Program, Ranked, Transport, World};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use serde_json::Value;

use crate::data::Scalar;
use crate::error::{Refused, wrong};
use crate::outcome::{Outcome, is_posterior};
use crate::shards::{
    Content, ModelSettings, RanksSettings, Shard, Spot, answer, by_scalar, contents, place,
    surveyed,
};
use crate::supervise::{Control, supervise};

/// A process alone.
#[derive(Debug)]
struct Alone;

impl Transport for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn count(&self) -> usize {
        1
    }

    fn send(&self, _: usize, _: &[u8]) {}

    fn receive(&self, _: usize) -> Vec<u8> {
        Vec::new()
    }

    fn broadcast(&self, message: Vec<u8>) -> Vec<u8> {
        message
    }
}

/// An object of Python: `rank`, `count`, `send(to, message)`, `receive(source)`, `broadcast(message)`, and `abort()`, which ends all ranks.
#[derive(Debug)]
struct Carrier {
    rank: usize,
    count: usize,
    carries: Py<PyAny>,
}

impl Carrier {
    /// What Python answers. The others would wait for a rank that raises something: all end.
    fn asked(
        &self,
        ask: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> Vec<u8> {
        Python::attach(|py| {
            let carries = self.carries.bind(py);
            let answer = ask(carries).and_then(|answer| match answer.is_none() {
                true => Ok(Vec::new()),
                false => Ok(answer.extract::<PyBackedBytes>()?.to_vec()),
            });
            answer.unwrap_or_else(|e| {
                e.print(py);
                let _ = carries.call_method0("abort");
                panic!("a message between ranks failed");
            })
        })
    }
}

impl Transport for Carrier {
    fn rank(&self) -> usize {
        self.rank
    }

    fn count(&self) -> usize {
        self.count
    }

    fn send(&self, to: usize, message: &[u8]) {
        self.asked(|all| all.call_method1("send", (to, PyBytes::new(all.py(), message))));
    }

    fn receive(&self, from: usize) -> Vec<u8> {
        self.asked(|all| all.call_method1("receive", (from,)))
    }

    fn broadcast(&self, message: Vec<u8>) -> Vec<u8> {
        self.asked(|all| all.call_method1("broadcast", (PyBytes::new(all.py(), &message),)))
    }
}

/// The shards of this rank.
#[derive(Debug)]
struct Own<'a, T: Scalar> {
    places: Vec<ShardId>,
    contents: Vec<&'a Content<T>>,
    /// What ends the reading between two shards.
    stop: Interrupt,
}

impl<T: Scalar> Shards<T> for Own<'_, T> {
    fn count(&self) -> u32 {
        self.places.first().map_or(0, |place| place.shards)
    }

    fn read(&self, shard: u32, each: &mut Visit<'_, T>) -> Result<(), FitError> {
        if self.stop.is_raised() {
            return Err(FitError::Interrupted);
        }
        let first = self.places.first().map_or(0, |place| place.shard);
        self.contents[(shard - first) as usize].read(each)
    }
}

/// A fit that Python watches.
#[derive(Debug)]
struct Watched<'a> {
    rank: usize,
    solver: Solver,
    max_iter: usize,
    control: &'a Control,
    /// What is known of it as JSON.
    known: Option<&'a str>,
}

impl<T: Scalar> Program<T> for Watched<'_> {
    type Failure = Refused;

    fn failure(&self, e: FitError, shard: Option<u32>) -> Refused {
        match (e, shard) {
            (FitError::Interrupted, _) => {
                Refused::Rank(format!("rank {} of MPI was interrupted", self.rank))
            }
            (e, Some(shard)) => Refused::from(e).of(&format!("shard {shard}")),
            (e, None) => e.into(),
        }
    }

    fn solver(&self, of: &dyn Algorithm<T>) -> Result<Solver, Refused> {
        if self.solver == Solver::Fast {
            of.by_samples()?;
        }
        Ok(self.solver)
    }

    fn belongs(&self, path: &Path, known: &str, iteration: usize) -> Result<(), Refused> {
        let parsed = |text| serde_json::from_str::<Value>(text);
        let both = parsed(known).and_then(|old| Ok((old, parsed(self.known.unwrap_or("{}"))?)));
        let path = path.display();
        let differs = match &both {
            Ok((old, new)) => differing(old, new),
            Err(e) => {
                return wrong(format!(
                    "{path} is not a checkpoint of this version ({e}): expected another folder"
                ));
            }
        };
        if !differs.is_empty() {
            return wrong(format!(
                "{path} is of another fit, which differs in {}: expected the same fit, or another folder",
                differs.join(", ")
            ));
        }
        let most = self.max_iter;
        match iteration > most {
            true => wrong(format!(
                "{path} is of iteration {iteration}, beyond max_iter={most}"
            )),
            false => Ok(()),
        }
    }

    fn after(&self, iteration: &Iteration<'_, T>) -> Result<bool, Refused> {
        match (self.control.after(0, iteration), self.control.raised()) {
            (_, Some(raised)) => {
                let rank = self.rank;
                Err(Refused::Rank(format!(
                    "rank {rank} of MPI failed, {raised}"
                )))
            }
            (ControlFlow::Break(Status::Custom(_)), _) => Ok(true),
            // An interruption ends the next pass.
            _ => Ok(false),
        }
    }
}

/// What two fits differ in, in words.
fn differing(old: &Value, new: &Value) -> Vec<String> {
    let names = new.as_object().into_iter().flat_map(serde_json::Map::keys);
    let other = names.filter(|&name| name != "data" && old[name] != new[name]);
    let mut found: Vec<String> = other.cloned().collect();
    let digests = |of: &Value| of["data"].as_array().cloned().unwrap_or_default();
    let (old, new) = (digests(old), digests(new));
    let sorted = |of: &[Value]| {
        let mut texts: Vec<String> = of.iter().map(Value::to_string).collect();
        texts.sort();
        texts
    };
    if old.len() != new.len() {
        found.push(format!(
            "the number of shards, {} and {}",
            old.len(),
            new.len()
        ));
    } else if let Some(first) = old.iter().zip(&new).position(|(a, b)| a != b) {
        found.push(match sorted(&old) == sorted(&new) {
            true => "the order of the shards".into(),
            false => format!("the data of shard {first}"),
        });
    }
    found
}

/// A run on ranks, of which this one holds some shards; `carries` is what their messages go by, nothing of a process alone.
#[pyfunction]
pub(crate) fn ranks_fit<'py>(
    py: Python<'py>,
    sheet: ModelSettings<'py>,
    survey: &[u8],
    shards: Vec<PyRef<'py, Shard>>,
    places: Vec<Spot>,
    carries: Option<Bound<'py, PyAny>>,
    course: RanksSettings<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let world = match carries {
        None => World::new(Alone),
        Some(carries) => World::new(Carrier {
            rank: carries.getattr("rank")?.extract()?,
            count: carries.getattr("count")?.extract()?,
            carries: carries.unbind(),
        }),
    };
    by_scalar!(
        sheet,
        fit(py, &sheet, survey, &shards, &places, &world, &course)
    )
}

fn fit<'py, T: Scalar>(
    py: Python<'py>,
    sheet: &ModelSettings<'py>,
    survey: &[u8],
    shards: &[PyRef<'py, Shard>],
    places: &[Spot],
    world: &World,
    course: &RanksSettings<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let (known, plan) = (sheet.known()?, course.plan()?);
    let survey = surveyed(&known, survey)?;
    let contents = contents::<T>(shards)?;
    let (likelihood, max_iter) = (course.likelihood, plan.stop.max_iter);
    let kept = course.kept.as_ref().map(|(folder, every, known)| Kept {
        folder: folder.clone(),
        every: Some((*every).max(1)),
        known: known.clone(),
    });
    let of_run = ranks::RanksSettings {
        seed: plan.seed,
        stop: plan.stop,
        kept,
        counts: true,
    };
    let work = |control: &Control| {
        let own = Own {
            places: places.iter().copied().map(place).collect(),
            contents,
            stop: control.interrupt(),
        };
        let program = Watched {
            rank: world.ranks().rank(),
            solver: plan.solver,
            max_iter,
            control,
            known: of_run.kept.as_ref().map(|kept| &*kept.known),
        };
        known.on::<T, _>(&survey.shape, |model, entry| {
            let at = (&own as &dyn Shards<T>, &own.places[..]);
            let ranked = Ranked::new((&program, world), model, at, &of_run);
            let ended = ranked.run(ranked.begin(Some(survey.clone()))?)?;
            // All blocks: the run itself has the shared ones alone.
            let blocks = model.whole(&survey)?.blocks;
            let mut outcome = Outcome::of(&ended.fit, is_posterior(&blocks))?;
            if likelihood {
                outcome.likelihood = Some(ranked.likelihood(&ended)?);
            }
            match ranked.gathered(&ended, true)? {
                Some(whole) => Ok((outcome, entry.file(&whole.widened()), ranked.traffic())),
                None => wrong("a rank was not told the result"),
            }
        })
    };
    let (found, failure) = supervise(py, sheet.threads, course.watch.as_ref(), work)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let (outcome, file, traffic) = found?;
    let result = answer::<T>(py, &outcome, &file)?;
    let traffic = (traffic.up, traffic.down, traffic.passes);
    result.set_item("traffic", traffic)?;
    Ok(result)
}
