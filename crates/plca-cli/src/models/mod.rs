//! What the command needs of a model; one file per model.

pub(crate) mod nmf_kl;
pub(crate) mod plca;
pub(crate) mod plsa;
pub(crate) mod tempered;

use std::path::Path;
use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::{Outcome, Prior, Progress, Schedule, Stop};
use plca_fit::{Direction, Observer};
use plca_io::Element;
use plca_priors::Dirichlet;
use plca_tensor::Observed;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::args::{Acceleration, FitArgs, MissingMethod};
use crate::blocks::Arrays;
use crate::failure::Failure;

/// A model that the command can fit, save and continue.
pub(crate) trait CommandModel<T: Element>: Sized {
    /// Its parameters.
    type State: Clone;
    /// Name of the objective in the summary.
    const OBJECTIVE: &'static str;
    /// A start; blocks that are not given are drawn.
    fn start(
        &self,
        data: &dyn Observed<T>,
        given: Arrays,
        path: &Path,
        rng: &mut ChaCha8Rng,
    ) -> Result<Self::State, Failure>;
    /// A state saved by [`arrays`](Self::arrays), bit for bit.
    fn restore(&self, arrays: Arrays, path: &Path) -> Result<Self::State, Failure>;
    /// The blocks by their names.
    fn arrays(&self, data: &dyn Observed<T>, state: &Self::State) -> Arrays;
    /// What a checkpoint holds: more than the blocks where the state is more.
    fn saved(&self, data: &dyn Observed<T>, state: &Self::State) -> Arrays {
        self.arrays(data, state)
    }
    /// Runs the algorithm on from a state and where it stands.
    fn iterate(
        &self,
        data: &dyn Observed<T>,
        acceleration: Acceleration,
        from: (Self::State, Progress),
        stop: &Stop,
        observer: impl Observer<Self::State>,
    ) -> Result<Outcome<Self::State>, Failure>;
    /// Whether the score of the best start is the largest or the smallest.
    fn direction(&self) -> Direction;
    /// What starts are compared by.
    fn score(&self, outcome: &Outcome<Self::State>) -> f64 {
        outcome.objective
    }
    /// What else the summary says.
    fn remarks(&self, _state: &Self::State) -> Value {
        json!({})
    }
    /// Log-likelihood without priors, where the objective is another number.
    fn ln_lik(
        &self,
        _data: &dyn Observed<T>,
        _state: &Self::State,
    ) -> Result<Option<f64>, Failure> {
        Ok(None)
    }
}

/// Names of the blocks of a model of this order.
pub(crate) fn block_names(model: crate::args::ModelName, order: usize) -> Vec<String> {
    use crate::args::ModelName;
    match model {
        ModelName::Plca => std::iter::once("weights".into())
            .chain((0..order).map(|j| format!("factor_{j}")))
            .collect(),
        ModelName::Plsa => ["basis", "mixture", "marginal"].map(String::from).to_vec(),
        ModelName::NmfKl => ["w", "h"].map(String::from).to_vec(),
    }
}

/// Refuses data that are not a matrix.
pub(crate) fn need_matrix(path: &Path, model: &str, shape: &[usize]) -> Result<(), Failure> {
    if shape.len() == 2 {
        return Ok(());
    }
    Err(Failure::of(
        path,
        format!("{model} needs a matrix, these data have shape {shape:?}"),
    ))
}

/// The treatment of missing cells that was asked for.
pub(crate) fn missing(args: &FitArgs) -> Option<plca_em::Missing> {
    args.missing_method.map(|m| match m {
        MissingMethod::Multiplicative => plca_em::Missing::Multiplicative,
        MissingMethod::Imputation => plca_em::Missing::Imputation,
    })
}

/// Refuses an option that the model does not have.
pub(crate) fn refuse(given: bool, option: &str, model: &str) -> Result<(), Failure> {
    if given {
        Err(Failure::usage(format!("{model} has no option {option}")))
    } else {
        Ok(())
    }
}

/// First power and factor of `--temper B[,ETA]`.
pub(crate) fn temper(args: &FitArgs) -> Result<(f64, Option<f64>), Failure> {
    let Some(spec) = &args.temper else {
        return Ok((1.0, None));
    };
    let number = |s: &str| {
        s.parse::<f64>()
            .map_err(|_| Failure::usage(format!("--temper: `{s}` is not a number")))
    };
    let (power, eta) = match spec.split_once(',') {
        Some((power, eta)) => (number(power)?, Some(number(eta)?)),
        None => (number(spec)?, None),
    };
    let schedule = Schedule {
        start: power,
        eta: eta.unwrap_or(Schedule::default().eta),
        ..Schedule::default()
    };
    schedule
        .check()
        .map_err(|e| Failure::usage(format!("--temper: {e}")))?;
    Ok((power, eta))
}

/// The schedule of `--temper B,ETA`.
pub(crate) fn schedule(args: &FitArgs) -> Result<Option<Schedule>, Failure> {
    let (start, Some(eta)) = temper(args)? else {
        return Ok(None);
    };
    if args.accelerate != Acceleration::None {
        return Err(Failure::usage(
            "--accelerate does not go with the schedule of --temper",
        ));
    }
    if args.missing_method == Some(MissingMethod::Multiplicative) {
        return Err(Failure::usage(
            "--missing-method multiplicative does not go with --temper",
        ));
    }
    Ok(Some(Schedule {
        start,
        eta,
        tol: args.tol,
        ..Schedule::default()
    }))
}

/// Priors of every block, from `--prior` and `--priors`.
pub(crate) fn priors<T: Element>(
    args: &FitArgs,
    shapes: &[(String, (usize, usize))],
) -> Result<Vec<(String, Prior<T>)>, Failure> {
    let mut out: Vec<(String, Prior<T>)> = Vec::new();
    let known = || {
        shapes
            .iter()
            .map(|(n, _)| n.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    for spec in &args.prior {
        let bad = |what: String| Failure::usage(format!("--prior {spec}: {what}"));
        let (block, prior) = spec
            .split_once('=')
            .ok_or_else(|| bad("BLOCK=SPEC is needed".into()))?;
        if !shapes.iter().any(|(n, _)| n == block) {
            return Err(bad(format!(
                "no block `{block}` takes a prior; there are {}",
                known()
            )));
        }
        let (kind, value) = prior
            .split_once(':')
            .ok_or_else(|| bad("KIND:VALUE is needed".into()))?;
        if kind != "dirichlet" {
            return Err(bad(format!("unknown prior `{kind}`; there is dirichlet:A")));
        }
        let alpha: f64 = value
            .parse()
            .map_err(|_| bad(format!("`{value}` is not a number")))?;
        let prior = Dirichlet::symmetric(alpha).map_err(|e| bad(e.to_string()))?;
        out.push((block.to_string(), Arc::new(prior)));
    }
    if let Some(path) = &args.priors {
        for (name, array) in plca_io::read_model(path)?.arrays {
            let bad = |what: String| Failure::of(path, format!("`{name}`: {what}"));
            let (block, kind) = name
                .rsplit_once('.')
                .ok_or_else(|| bad("BLOCK.KIND is needed".into()))?;
            if kind != "dirichlet" {
                return Err(bad(format!(
                    "unknown prior `{kind}`; there is BLOCK.dirichlet"
                )));
            }
            let Some((_, (rows, columns))) = shapes.iter().find(|(n, _)| n == block) else {
                return Err(bad(format!(
                    "no block `{block}` takes a prior; there are {}",
                    known()
                )));
            };
            let alpha = broadcast(&array, *rows, *columns).ok_or_else(|| {
                bad(format!(
                    "shape {:?} does not broadcast to {rows} x {columns}",
                    array.shape
                ))
            })?;
            let prior = Dirichlet::per_entry(alpha).map_err(|e| bad(e.to_string()))?;
            out.push((block.to_string(), Arc::new(prior)));
        }
    }
    Ok(out)
}

/// An array of a shape that broadcasts to `rows x columns` (a block with one column may be a vector).
fn broadcast(array: &plca_io::Array<f64>, rows: usize, columns: usize) -> Option<DMatrix<f64>> {
    let (r, c) = match array.shape[..] {
        [] => (1, 1),
        [n] if columns == 1 => (n, 1),
        [n] => (1, n),
        [r, c] => (r, c),
        _ => return None,
    };
    if (r != 1 && r != rows) || (c != 1 && c != columns) {
        return None;
    }
    Some(DMatrix::from_fn(rows, columns, |i, j| {
        array.values[(i % r) * c + j % c]
    }))
}
