//! `plca transform`: new data under learned factors, with a certified gap.

use std::time::Instant;

use nalgebra::DMatrix;
use plca_em::{Nmf, NmfInit, Outcome, Plca, PlcaInit, Plsa, PlsaInit, Stop};
use plca_io::{Array, ModelFile};
use plca_tensor::{Factor, Model, Observed};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::json;

use crate::args::TransformArgs;
use crate::blocks::{Arrays, matrix, take_matrix, vector};
use crate::data::{Data, load};
use crate::failure::Failure;
use crate::fit::{MODEL_FILES, on_threads, report, writable};

/// A fitted model as the kernels see it: a factor for every mode, and which modes may hold observations.
struct Learned {
    name: String,
    /// `I_j x K` of every mode of the training data; the one of the observations is only looked at for its absence.
    factors: Vec<Option<DMatrix<f64>>>,
    along: usize,
}

pub(crate) fn run(args: &TransformArgs) -> Result<(), Failure> {
    on_threads(args.threads, || transform(args))?
}

fn learned(args: &TransformArgs, mut file: ModelFile) -> Result<Learned, Failure> {
    let path = &args.model;
    let name = file.metadata["model"]
        .as_str()
        .unwrap_or_default()
        .to_string();
    let mut block = |name: &str| {
        take_matrix::<f64>(path, &mut file.arrays, name)?
            .ok_or_else(|| Failure::of(path, format!("has no `{name}`")))
    };
    let (factors, default) = match name.as_str() {
        "plca" => {
            let order = file.metadata["data"]["shape"]
                .as_array()
                .map_or(0, Vec::len);
            let factors: Vec<_> = (0..order)
                .map(|j| block(&format!("factor_{j}")).map(Some))
                .collect::<Result<_, _>>()?;
            (factors, order.saturating_sub(1))
        }
        "plsa" => {
            // The observations are what was given.
            let given = usize::from(file.metadata["settings"]["given"] != 0);
            let mut factors = vec![None, None];
            factors[1 - given] = Some(block("basis")?);
            (factors, given)
        }
        "nmf-kl" => (vec![Some(block("w")?), Some(block("h")?.transpose())], 1),
        other => {
            return Err(Failure::of(
                path,
                format!("holds the model `{other}`, which has no transform"),
            ));
        }
    };
    let along = args.along.unwrap_or(default);
    if along >= factors.len() || (name == "plsa" && along != default) {
        return Err(Failure::usage(format!(
            "--along {along}: this model explains observations along dimension {default}"
        )));
    }
    Ok(Learned {
        name,
        factors,
        along,
    })
}

fn transform(args: &TransformArgs) -> Result<(), Failure> {
    let started = Instant::now();
    writable(&args.output, MODEL_FILES)?;
    let model = learned(args, plca_io::read_model(&args.model)?)?;
    let mut factors = model.factors;
    factors[model.along] = None;

    // An observation that no component reaches is dropped, and its mass reported.
    let mut dropped = 0.0;
    let mut keep = |index: &[usize], x: f64| {
        let reached = factors
            .iter()
            .zip(index)
            .fold(None::<Vec<f64>>, |acc, (f, &i)| match f {
                Some(f) if i < f.nrows() => Some(match acc {
                    None => f.row(i).iter().copied().collect(),
                    Some(a) => a.iter().zip(&f.row(i)).map(|(a, b)| a * b).collect(),
                }),
                _ => acc,
            });
        if reached.is_none_or(|r| r.iter().any(|&p| p > 0.0)) {
            x
        } else {
            dropped += x;
            0.0
        }
    };
    let data: Data<f64> = load(&args.data, &args.hidden, Some(&mut keep))?;
    let shape = data.shape();
    let fits = shape.len() == factors.len()
        && factors
            .iter()
            .zip(shape)
            .all(|(f, &n)| f.as_ref().is_none_or(|f| f.nrows() == n));
    if !fits {
        let want: Vec<String> = factors
            .iter()
            .map(|f| f.as_ref().map_or("any".into(), |f| f.nrows().to_string()))
            .collect();
        return Err(Failure::of(
            &args.data,
            format!(
                "has shape {shape:?}, the model explains {}",
                want.join(" x ")
            ),
        ));
    }

    let stop = Stop {
        max_iter: args.max_iter,
        tol: args.tol,
        ..Stop::default()
    };
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let explained = match model.name.as_str() {
        "plsa" => mixtures(&*data, factors, model.along, &stop, &mut rng)?,
        "nmf-kl" => activations(&*data, factors, model.along, &stop, &mut rng)?,
        _ => joint(&*data, factors, model.along, &stop, &mut rng)?,
    };
    let Explained {
        mut arrays,
        iterations,
        reason,
        objective,
    } = explained;
    arrays.insert("dropped".into(), Array::new(vec![], vec![dropped]));
    let mut summary = json!({
        "model": model.name,
        "iterations": iterations,
        "stop_reason": reason,
        "objective": objective,
        "dropped": dropped,
    });
    let mut metadata = summary.clone();
    metadata["transform_of"] = json!(plca_io::sha256_file(&args.model)?);
    metadata["data"] = json!({ "shape": shape, "sha256": plca_io::sha256_file(&args.data)? });
    if dropped > 0.0 {
        metadata["warnings"] = json!([format!(
            "observations of mass {dropped} were dropped: no component reaches them"
        )]);
    }
    plca_io::write_model(&args.output, &ModelFile { arrays, metadata }, false)?;
    summary["seconds"] = json!(started.elapsed().as_secs_f64());
    report(args.json, args.quiet, &summary)
}

struct Explained {
    arrays: Arrays,
    iterations: usize,
    reason: String,
    objective: f64,
}

impl Explained {
    fn new<S>(outcome: &Outcome<S>, arrays: Arrays) -> Self {
        let reason = outcome.reason.to_string();
        Self {
            arrays,
            iterations: outcome.iterations,
            reason,
            objective: outcome.objective,
        }
    }
}

fn take(factors: &mut [Option<DMatrix<f64>>], j: usize) -> Result<DMatrix<f64>, Failure> {
    factors[j]
        .take()
        .ok_or_else(|| Failure::new("the model has no such factor"))
}

/// `max_z g_z - 1` for every observation: how far each mixture is from its optimum, certified.
///
/// `multiplier` and `reach` are laid out component by observation: `g = multiplier / reach`.
fn gaps(multiplier: &DMatrix<f64>, reach: &DMatrix<f64>) -> Array<f64> {
    let gap = |j: usize| {
        (multiplier.column(j).iter().zip(&reach.column(j)))
            .filter(|&(&m, &r)| m > 0.0 && r > 0.0)
            .fold(0.0, |worst: f64, (m, r)| worst.max(m / r - 1.0))
    };
    Array::new(
        vec![multiplier.ncols()],
        (0..multiplier.ncols()).map(gap).collect(),
    )
}

/// PLSA fold-in: `P(z | y)` of new observations.
fn mixtures(
    data: &dyn Observed<f64>,
    mut factors: Vec<Option<DMatrix<f64>>>,
    along: usize,
    stop: &Stop,
    rng: &mut ChaCha8Rng,
) -> Result<Explained, Failure> {
    let basis = take(&mut factors, 1 - along)?;
    let (k, n) = (basis.ncols(), data.shape()[along]);
    let given = if along == 0 {
        plca_em::Given::Rows
    } else {
        plca_em::Given::Columns
    };
    let plsa = Plsa::builder(k).given(given).freeze_basis().build()?;
    let init = PlsaInit {
        basis: Some(basis.clone()),
        mixture: Some(DMatrix::from_element(k, n, 1.0)),
    };
    let outcome = plsa.fit(data, &init, stop, rng)?;
    let mixture = &outcome.state.mixture;
    let (w, g) = (Factor::Columns(&outcome.state.basis), Factor::Rows(mixture));
    let in_order = if along == 0 { [g, w] } else { [w, g] };
    let model = Model {
        weights: None,
        factors: &in_order,
    };
    let multiplier = data.multiplier(&model, along);
    // At the optimum the multiplier of y is v_y times the mass of a component within what was observed of y.
    let seen = data.exposure(&model, &[along == 0, along == 1])[along]
        .take()
        .unwrap_or_else(|| mixture.clone());
    let marginal = data.marginal(along);
    let reach = DMatrix::from_fn(k, n, |z, y| {
        let mass = seen.column(y).sum();
        let share = if mixture[(z, y)] > 0.0 {
            seen[(z, y)] / mixture[(z, y)]
        } else {
            1.0
        };
        if mass > 0.0 {
            marginal[y] * share / mass
        } else {
            0.0
        }
    });
    let arrays = [
        ("mixture".to_string(), matrix(mixture)),
        ("gap".to_string(), gaps(&multiplier, &reach)),
    ]
    .into();
    Ok(Explained::new(&outcome, arrays))
}

/// NMF with one factor fixed: the activations of new observations.
fn activations(
    data: &dyn Observed<f64>,
    mut factors: Vec<Option<DMatrix<f64>>>,
    along: usize,
    stop: &Stop,
    rng: &mut ChaCha8Rng,
) -> Result<Explained, Failure> {
    let fixed = take(&mut factors, 1 - along)?;
    let (k, n) = (fixed.ncols(), data.shape()[along]);
    let uniform = data.total() / (fixed.sum() * n as f64);
    let (nmf, init) = if along == 1 {
        let h = Some(DMatrix::from_element(k, n, uniform));
        (
            Nmf::builder(k).freeze_w().build()?,
            NmfInit { w: Some(fixed), h },
        )
    } else {
        let w = Some(DMatrix::from_element(n, k, uniform));
        (
            Nmf::builder(k).freeze_h().build()?,
            NmfInit {
                w,
                h: Some(fixed.transpose()),
            },
        )
    };
    let outcome = nmf.fit(data, &init, stop, rng)?;
    let state = &outcome.state;
    let (w, h) = (Factor::Columns(&state.w), Factor::Rows(&state.h));
    let in_order = [w, h];
    let model = Model {
        weights: None,
        factors: &in_order,
    };
    let by_component = |m: DMatrix<f64>| if along == 1 { m } else { m.transpose() };
    let multiplier = by_component(data.multiplier(&model, along));
    let (free, name) = if along == 1 {
        (state.h.clone(), "h")
    } else {
        (state.w.clone(), "w")
    };
    let seen = data.exposure(&model, &[along == 0, along == 1])[along]
        .take()
        .unwrap_or_else(|| free.clone());
    let sums = model.factors[1 - along].component_sums();
    let (seen, value) = (by_component(seen), by_component(free.clone()));
    let reach = DMatrix::from_fn(k, n, |z, y| {
        if value[(z, y)] > 0.0 {
            seen[(z, y)] / value[(z, y)]
        } else {
            sums[z]
        }
    });
    let arrays = [
        (name.to_string(), matrix(&free)),
        ("gap".to_string(), gaps(&multiplier, &reach)),
    ]
    .into();
    Ok(Explained::new(&outcome, arrays))
}

/// PLCA with all factors but one fixed: `P(z)` and `P(x_D | z)` of the new data.
fn joint(
    data: &dyn Observed<f64>,
    factors: Vec<Option<DMatrix<f64>>>,
    along: usize,
    stop: &Stop,
    rng: &mut ChaCha8Rng,
) -> Result<Explained, Failure> {
    let k = factors.iter().flatten().next().map_or(1, DMatrix::ncols);
    let n = data.shape()[along];
    let mut builder = Plca::builder(k);
    for j in (0..factors.len()).filter(|&j| j != along) {
        builder = builder.freeze_factor(j);
    }
    let start = |f: Option<DMatrix<f64>>| f.or_else(|| Some(DMatrix::from_element(n, k, 1.0)));
    let init = PlcaInit {
        weights: None,
        factors: factors.into_iter().map(start).collect(),
    };
    let outcome = builder.build()?.fit(data, &init, stop, rng)?;
    let state = &outcome.state;
    let gap = state.with_model(|model| {
        let multiplier = data.multiplier(
            &Model {
                weights: None,
                factors: model.factors,
            },
            along,
        );
        let mut modes = vec![false; model.factors.len()];
        modes[along] = true;
        let seen = data.exposure(
            &Model {
                weights: None,
                factors: model.factors,
            },
            &modes,
        )[along]
            .take();
        let seen = seen.unwrap_or_else(|| state.factors[along].clone());
        let mass: f64 = (0..k)
            .map(|z| state.weights[z] * seen.column(z).sum())
            .sum();
        let mut worst: f64 = 0.0;
        for ((&g, &x), &f) in multiplier.iter().zip(&seen).zip(&state.factors[along]) {
            let share = if f > 0.0 { x / f } else { 1.0 };
            if share > 0.0 {
                worst = worst.max(g * mass / (data.total() * share) - 1.0);
            }
        }
        worst
    });
    let arrays = [
        ("weights".to_string(), vector(&state.weights)),
        (format!("factor_{along}"), matrix(&state.factors[along])),
        ("gap".to_string(), Array::new(vec![], vec![gap])),
    ];
    Ok(Explained::new(&outcome, arrays.into()))
}
