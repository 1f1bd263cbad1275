//! `skellam`: data of either sign as a difference of rates, by EM.

use std::marker::PhantomData;
use std::path::Path;

use nalgebra::DMatrix;
use plca_fit::{Carried, Direction, Observer, Outcome, Progress, Squarem, Stop};
use plca_io::{Array, Element};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::json;
use skellam_snmf::{Prior, Replicates, Snmf, SnmfInit, SnmfState};

use super::accelerated::accelerated;
use super::options::{refuse, refuse_unsigned};
use super::skellam_priors::prior;
use super::{CommandModel, ModelKind};
use crate::approximation::{Approximation, multiply};
use crate::args::{Acceleration, FitArgs, Precision, TransformArgs};
use crate::before;
use crate::blocks::{Arrays, keep_fixed, lacking, matrix, take_matrix};
use crate::data::Dataset;
use crate::failure::Failure;
use crate::limits::describable;
use crate::saved::Saved;
use crate::signed::{SignedData, join, load, sides};
use crate::transform::{Found, along};

/// The model `skellam`.
pub(crate) struct SkellamEm;

impl ModelKind for SkellamEm {
    fn name(&self) -> &'static str {
        "skellam"
    }

    fn about(&self) -> &'static str {
        "Skellam semi-NMF of a matrix of either sign, by EM"
    }

    fn blocks(&self, _: usize) -> Vec<String> {
        ["atoms", "activations"].map(String::from).to_vec()
    }

    fn component_axis(&self, block: &str) -> usize {
        usize::from(block == "atoms")
    }

    fn fit(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => fit::<f64>(args),
            Precision::F32 => fit::<f32>(args),
        }
    }

    fn transform(&self, mut file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let (plus, minus) = file.sides("atoms")?;
        let explained = explain(&file, args, plus, minus)?;
        let arrays = [(
            "activations".to_string(),
            matrix(&explained.state.activations),
        )];
        Ok(explained.found(arrays.into()))
    }

    fn approximation(&self, mut file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Box::new(Rates::of(&mut file)?))
    }
}

fn fit<T: Element>(args: &FitArgs) -> Result<(), Failure> {
    let data = load::<T>(&args.data, &args.hidden, "skellam")?;
    let sizes = data.shape();
    before::fit(args, &data, |rank| {
        SkellamCommand::<T>::new(args, rank, sizes)
    })
}

struct SkellamCommand<T> {
    config: Snmf,
    fixed_atoms: bool,
    scalar: PhantomData<T>,
}

impl<T> SkellamCommand<T> {
    fn new(args: &FitArgs, k: usize, (f, n): (usize, usize)) -> Result<Self, Failure> {
        refuse_unsigned(args, "skellam")?;
        refuse(args.seeding.is_some(), "--seeding", "skellam")?;
        let prior = prior(
            Prior::flat(),
            &args.prior,
            args.priors.as_deref(),
            (f, k, n),
        )?;
        let mut builder = Snmf::builder(k)
            .replicates(args.signed.m.unwrap_or_default())
            .prior(prior)
            .floor(args.floor.unwrap_or(0.0));
        if args.signed.real_data {
            builder = builder.real_data();
        }
        for name in &args.fix {
            builder = if name == "atoms" {
                builder.freeze_atoms()
            } else {
                builder.freeze_activations()
            };
        }
        let config = builder.build();
        Ok(Self {
            // Priors come from a file where there is one.
            config: config.map_err(|e| match &args.priors {
                Some(path) => Failure::by(path, e),
                None => Failure::usage(e),
            })?,
            fixed_atoms: args.fix.iter().any(|name| name == "atoms"),
            scalar: PhantomData,
        })
    }
}

impl<T: Element> CommandModel for SkellamCommand<T> {
    type Data = SignedData<T>;
    type State = SnmfState<T>;
    // Its normaliser is in it without a prior too.
    const OBJECTIVE: &'static str = "log_posterior";

    fn start(
        &self,
        data: &Self::Data,
        mut given: Arrays,
        path: &Path,
        rng: &mut ChaCha8Rng,
    ) -> Result<SnmfState<T>, Failure> {
        let atoms = given.remove("atoms");
        let init = SnmfInit {
            atoms: atoms.map(|a| sides(path, "atoms", a)).transpose()?,
            activations: take_matrix(path, &mut given, "activations")?,
        };
        let mut state = self.config.init(&data.cells, &init, rng)?;
        if let (true, Some((plus, minus))) = (self.fixed_atoms, &init.atoms) {
            let f = plus.nrows();
            let stack = |plus: &DMatrix<T>, minus: &DMatrix<T>| {
                DMatrix::from_fn(2 * f, plus.ncols(), |i, z| {
                    if i < f {
                        plus[(i, z)]
                    } else {
                        minus[(i - f, z)]
                    }
                })
            };
            let mut both = stack(&state.plus, &state.minus);
            keep_fixed(&mut both, &stack(plus, minus));
            state.plus = both.rows(0, f).into_owned();
            state.minus = both.rows(f, f).into_owned();
        }
        Ok(state)
    }

    fn restore(&self, mut arrays: Arrays, path: &Path) -> Result<SnmfState<T>, Failure> {
        let none = |name: &str| lacking(path, name);
        let atoms = arrays.remove("atoms").ok_or_else(|| none("atoms"))?;
        let (plus, minus) = sides(path, "atoms", atoms)?;
        let activations = take_matrix(path, &mut arrays, "activations")?;
        Ok(SnmfState {
            plus,
            minus,
            activations: activations.ok_or_else(|| none("activations"))?,
        })
    }

    fn arrays(&self, _: &Self::Data, state: &SnmfState<T>) -> Arrays {
        [
            ("atoms".to_string(), join(&state.plus, &state.minus)),
            ("activations".to_string(), matrix(&state.activations)),
        ]
        .into()
    }

    fn iterate(
        &self,
        data: &Self::Data,
        acceleration: Acceleration,
        from: (Carried<Self::State>, Progress),
        stop: &Stop,
        observer: impl Observer<Carried<Self::State>>,
    ) -> Result<Outcome<Carried<Self::State>>, Failure> {
        let em = self.config.on(&data.cells)?;
        accelerated(em, acceleration, from, stop, observer)
    }

    fn direction(&self) -> Direction {
        Direction::Maximise
    }

    fn ln_lik(&self, data: &Self::Data, state: &SnmfState<T>) -> Result<Option<f64>, Failure> {
        Ok(Some(self.config.on(&data.cells)?.log_fit(state)))
    }
}

/// New data under the atoms of a model.
pub(super) struct Explained {
    pub(super) state: SnmfState<f64>,
    pub(super) data: SignedData<f64>,
    pub(super) dropped: f64,
    iterations: usize,
    reason: String,
    objective: f64,
}

impl Explained {
    pub(super) fn found(self, mut arrays: Arrays) -> Found {
        arrays.insert("dropped".into(), Array::new(vec![], vec![self.dropped]));
        let mut warnings = self.data.warnings();
        if self.dropped > 0.0 {
            let dropped = self.dropped;
            warnings.push(format!(
                "observations of absolute mass {dropped} were dropped: no component reaches them"
            ));
        }
        Found {
            arrays,
            summary: json!({
                "iterations": self.iterations,
                "stop_reason": self.reason,
                "objective": self.objective,
                "dropped": self.dropped,
            }),
            shape: self.data.sizes().to_vec(),
            warnings,
        }
    }
}

/// Data without the cells that no atom reaches, and the absolute sum of these.
pub(super) fn reachable(
    args: &TransformArgs,
    plus: &DMatrix<f64>,
    minus: &DMatrix<f64>,
) -> Result<(SignedData<f64>, f64), Failure> {
    let reached = |m: &DMatrix<f64>| -> Vec<bool> {
        m.row_iter()
            .map(|row| row.iter().any(|&x| x > 0.0))
            .collect()
    };
    let (up, down) = (reached(plus), reached(minus));
    let mut dropped = 0.0;
    let mut data = load::<f64>(&args.data, &args.hidden, "this model")?;
    data.cells.hide(|row, _, v| {
        let side = if v > 0.0 { &up } else { &down };
        let lost = v != 0.0 && side.get(row) == Some(&false);
        dropped += if lost { v.abs() } else { 0.0 };
        lost
    });
    let rows = data.sizes()[0];
    if rows != plus.nrows() {
        let what = format!("has {rows} rows, the model {}", plus.nrows());
        return Err(Failure::of(&args.data, what));
    }
    describable(&args.data, plus.ncols(), data.sizes()[1])?;
    Ok((data, dropped))
}

/// Number of replicates, and whether data need not be whole, of a model file.
pub(super) fn replicates(file: &Saved) -> Result<(Replicates, bool), Failure> {
    let settings = &file.metadata["settings"];
    let m = settings["m"].as_str().unwrap_or("inf");
    let replicates = crate::args::replicates(m).map_err(|e| file.failure(e))?;
    Ok((replicates, settings["real_data"] == true))
}

/// The prior that a model was fitted under, as far as it holds for new columns.
pub(super) fn saved_prior(
    file: &Saved,
    default: Prior,
    shape: (usize, usize, usize),
) -> Result<Prior, Failure> {
    let specs = file.metadata["settings"]["prior"]
        .as_array()
        .into_iter()
        .flatten();
    let specs: Vec<String> = specs.filter_map(|s| s.as_str().map(String::from)).collect();
    prior(default, &specs, None, shape).map_err(|e| file.failure(e))
}

/// Stop rule of `plca transform`.
pub(super) fn stop(args: &TransformArgs) -> Stop {
    Stop {
        max_iter: args.max_iter,
        tol: args.tol,
        ..Stop::default()
    }
}

/// Activations of new data by EM, from uniform values.
fn explain(
    file: &Saved,
    args: &TransformArgs,
    plus: DMatrix<f64>,
    minus: DMatrix<f64>,
) -> Result<Explained, Failure> {
    along(args, 1, |d| d == 1)?;
    let (data, dropped) = reachable(args, &plus, &minus)?;
    let (k, n) = (plus.ncols(), data.sizes()[1]);
    let (replicates, real) = replicates(file)?;
    let prior = saved_prior(file, Prior::flat(), (plus.nrows(), k, n))?;
    let mut builder = Snmf::builder(k)
        .replicates(replicates)
        .prior(prior)
        .freeze_atoms();
    if real {
        builder = builder.real_data();
    }
    let snmf = builder.build().map_err(|e| file.failure(e))?;
    let about = |e| Failure::by(&args.data, e);
    let em = snmf.on(&data.cells).map_err(about)?;
    let size = data.absolute_sum();
    let each = if size > 0.0 {
        size / (k * n) as f64
    } else {
        1.0
    };
    let state = SnmfState {
        plus,
        minus,
        activations: DMatrix::from_element(k, n, each),
    };
    let outcome = plca_fit::run(&Squarem(em), state, &stop(args), ()).map_err(about)?;
    Ok(Explained {
        state: outcome.state,
        data,
        dropped,
        iterations: outcome.iterations,
        reason: outcome.reason.to_string(),
        objective: outcome.objective,
    })
}

/// `L⁺ - L⁻`, and counts drawn from both.
pub(super) struct Rates {
    state: SnmfState<f64>,
    replicates: Replicates,
}

impl Rates {
    pub(super) fn of(file: &mut Saved) -> Result<Self, Failure> {
        let (plus, minus) = file.sides("atoms")?;
        let activations = file.matrix("activations")?;
        file.agree([plus.ncols(), activations.nrows()])?;
        let (replicates, _) = replicates(file)?;
        let state = SnmfState {
            plus,
            minus,
            activations,
        };
        Ok(Self { state, replicates })
    }
}

impl Approximation for Rates {
    fn shape(&self) -> Vec<usize> {
        vec![self.state.plus.nrows(), self.state.activations.ncols()]
    }

    fn evaluate(&self, into: &mut Array<f64>) -> Result<(), Failure> {
        multiply(&self.state.atoms(), &self.state.activations, into);
        Ok(())
    }

    /// The sum of `draws` matrices of the model: `Sk(draws L⁺, draws L⁻)`.
    fn sample(
        &self,
        draws: u64,
        rng: &mut ChaCha8Rng,
        into: &mut Array<f64>,
    ) -> Result<(), Failure> {
        let m = self.replicates.number();
        if m.is_infinite() {
            return Err(Failure::usage(
                "sample: a model of real data (--m inf) has no law to draw from",
            ));
        }
        let draw = |rate: f64, rng: &mut ChaCha8Rng| {
            let count = plca_dist::draw_poisson(draws as f64 * m * rate, rng);
            count.map(|n| n as f64 / m).map_err(Failure::new)
        };
        let h = &self.state.activations;
        let rows = into.values.chunks_exact_mut(h.ncols().max(1));
        for (i, out) in rows.enumerate() {
            let [plus, minus] =
                [&self.state.plus, &self.state.minus].map(|side| side.row(i).transpose());
            for (x, column) in out.iter_mut().zip(h.column_iter()) {
                *x = draw(plus.dot(&column), rng)? - draw(minus.dot(&column), rng)?;
            }
        }
        Ok(())
    }
}

/// Random numbers of a command whose start needs none.
pub(super) fn no_draws() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(0)
}
