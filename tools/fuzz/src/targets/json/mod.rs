//! States and settings from JSON, and their use: the first byte of an input chooses the type, the rest is the text.

mod em;
mod l2;
mod snmf;
mod tensor;

use std::ops::ControlFlow;

use nalgebra::DMatrix;
use plca_fit::{Checkpoint, FitError, Iteration, Model, Run, Solver, State, Stop};
use plca_tensor::Data;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::one_line;

pub(super) use em::TARGET as EM;
pub(super) use l2::TARGET as L2;
pub(super) use snmf::TARGET as SNMF;
pub(super) use tensor::TARGET as TENSOR;

const ASSERTS: &str =
    "what is read is written and read again alike; errors are one line; good states stay good";

/// A type: a good text and what is done with any; `None` if the text is none of it, or an algorithm takes no such settings.
struct Kind {
    seed: fn() -> String,
    run: fn(&str) -> Option<()>,
}

fn seeds(kinds: &[Kind]) -> Vec<Vec<u8>> {
    let seed = |(n, kind): (usize, &Kind)| {
        let mut input = vec![n as u8];
        input.extend((kind.seed)().as_bytes());
        input
    };
    kinds.iter().enumerate().map(seed).collect()
}

fn run(kinds: &[Kind], input: &[u8]) -> bool {
    let Some((&which, text)) = input.split_first() else {
        return false;
    };
    let text = std::str::from_utf8(text).ok();
    let kind = &kinds[usize::from(which) % kinds.len()];
    // The header of a text is its syntax: what its type refuses came past it.
    text.is_some_and(|text| {
        let composite = |value: Value| value.is_object() || value.is_array();
        (kind.run)(text).is_some() || serde_json::from_str(text).is_ok_and(composite)
    })
}

fn text<S: Serialize>(value: &S) -> String {
    serde_json::to_string(value).expect("a value that has a text")
}

/// The value of a text, which is that of its own text too.
fn read<S: Serialize + DeserializeOwned>(input: &str) -> Option<S> {
    let value: S = serde_json::from_str(input).ok()?;
    let written = text(&value);
    let again: S = serde_json::from_str(&written).expect("the text of a value");
    assert_eq!(text(&again), written);
    Some(value)
}

/// Goes on from a checkpoint by every solver, as far as the model on these data does; what is good stays so.
fn resume<M: Model<f64>>(
    model: Result<M, FitError>,
    data: &dyn Data<f64>,
    from: &Checkpoint<f64>,
) -> Option<()> {
    let model = model.map_err(|e| one_line(&e)).ok()?;
    for &solver in Solver::ALL {
        let run = model.on(data).map_err(|e| one_line(&e)).ok()?;
        few(run.solver(solver), from);
    }
    Some(())
}

/// A few iterations of a run from a checkpoint.
fn few<S: State<Scalar = f64>>(run: Run<'_, S>, from: &Checkpoint<f64>) {
    let specs = run.algorithm().blocks().to_vec();
    let good = |it: &Iteration<'_, f64>| {
        assert!(it.parameters().check(&specs).is_ok(), "{it:?}");
        ControlFlow::Continue(())
    };
    let last = from.iteration().saturating_add(3);
    let stop = Stop::default().max_iter(last).tol(None);
    let run = run.stop(stop.check_every(1)).observe(good);
    if let Err(e) = run.resume(from.clone()) {
        one_line(&e);
    }
}

/// Reads every entry of a block, of which there must be as many as its shape says.
fn whole(block: &DMatrix<f64>) {
    assert_eq!(Some(block.len()), block.nrows().checked_mul(block.ncols()));
    assert_eq!(block.iter().count(), block.len());
    assert!(!block.iter().any(|x| x.is_nan()));
}
