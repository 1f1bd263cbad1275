//! `skellam-vb`: data of either sign as a difference of rates, by variational Bayes.

use std::marker::PhantomData;
use std::path::Path;

use plca_fit::{Carried, Direction, Observer, Outcome, Progress, Stop};
use plca_io::{Array, Element};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::json;
use skellam_snmf::{Entries, Posterior, Prior, SnmfVb, VbInit, select_components};

use super::accelerated::accelerated;
use super::options::{refuse, refuse_unsigned};
use super::skellam::{Rates, no_draws, reachable, replicates, saved_prior, stop};
use super::skellam_priors::prior;
use super::{CommandModel, ModelKind};
use crate::approximation::Approximation;
use crate::args::{
    Acceleration, Criterion, FitArgs, Precision, SelectArgs, SignedArgs, TransformArgs,
};
use crate::before;
use crate::blocks::{Arrays, lacking, matrix, take_matrix};
use crate::data::Dataset;
use crate::failure::Failure;
use crate::limits::reasonable;
use crate::saved::Saved;
use crate::select::{Table, ranks};
use crate::signed::{SignedData, join, load, sides};
use crate::transform::{Found, along};

/// The model `skellam-vb`.
pub(crate) struct SkellamVb;

/// Blocks of a state; the posterior means `atoms` and `activations` are written beside them.
const FREE: [&str; 3] = ["atoms_shape", "activations_shape", "activations_rate"];

/// Without other word: shapes 1, rates 0.001.
fn vague() -> Prior {
    Prior {
        rate: Entries::All(1e-3),
        ..Prior::flat()
    }
}

impl ModelKind for SkellamVb {
    fn name(&self) -> &'static str {
        "skellam-vb"
    }

    fn about(&self) -> &'static str {
        "Skellam semi-NMF of a matrix of either sign, by variational Bayes"
    }

    fn blocks(&self, _: usize) -> Vec<String> {
        let all = FREE.into_iter().chain(["atoms", "activations"]);
        all.map(String::from).collect()
    }

    fn free_blocks(&self, _: usize) -> Vec<String> {
        FREE.map(String::from).to_vec()
    }

    fn component_axis(&self, block: &str) -> usize {
        usize::from(block.starts_with("atoms"))
    }

    fn fit(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => fit::<f64>(args),
            Precision::F32 => fit::<f32>(args),
        }
    }

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        if args.criterion.is_some_and(|c| c != Criterion::Elbo) {
            return Err(Failure::usage(
                "skellam-vb has no such criterion; there is --criterion elbo",
            ));
        }
        let data = load::<f64>(&args.data, &args.hidden, "skellam-vb")?;
        let ranks = ranks(&args.ranks)?;
        for &rank in &ranks {
            reasonable("--ranks", rank, data.sizes())?;
        }
        scores(args, &data, &ranks)
    }

    fn transform(&self, mut file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        along(args, 1, |d| d == 1)?;
        let (plus, minus) = file.sides("atoms_shape")?;
        let (data, dropped) = reachable(args, &plus, &minus)?;
        let (k, n) = (plus.ncols(), data.sizes()[1]);
        let (replicates, real) = replicates(&file)?;
        let prior = saved_prior(&file, vague(), (plus.nrows(), k, n))?;
        let mut builder = SnmfVb::builder(k)
            .replicates(replicates)
            .prior(prior)
            .freeze_atoms();
        if real {
            builder = builder.real_data();
        }
        let vb = builder.build().map_err(|e| file.failure(e))?;
        let init = VbInit::Atoms { plus, minus };
        let outcome = vb.fit(&data.cells, &init, &stop(args), &mut no_draws());
        let outcome = outcome.map_err(|e| Failure::by(&args.data, e))?;
        let mut arrays = written(&outcome.state);
        arrays.retain(|name, _| name.starts_with("activations"));
        arrays.insert("dropped".into(), Array::new(vec![], vec![dropped]));
        let mut warnings = data.warnings();
        if dropped > 0.0 {
            warnings.push(format!(
                "observations of absolute mass {dropped} were dropped: no component reaches them"
            ));
        }
        Ok(Found {
            arrays,
            summary: json!({
                "iterations": outcome.iterations,
                "stop_reason": outcome.reason.to_string(),
                "objective": outcome.objective,
                "dropped": dropped,
            }),
            shape: data.sizes().to_vec(),
            warnings,
        })
    }

    fn approximation(&self, mut file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Box::new(Rates::of(&mut file)?))
    }
}

/// Blocks of a posterior and its means.
fn written<T: Element>(state: &Posterior<T>) -> Arrays {
    let means = state.means();
    [
        ("atoms_shape".to_string(), join(&state.plus, &state.minus)),
        ("activations_shape".to_string(), matrix(&state.shape)),
        ("activations_rate".to_string(), matrix(&state.rate)),
        ("atoms".to_string(), join(&means.plus, &means.minus)),
        ("activations".to_string(), matrix(&means.activations)),
    ]
    .into()
}

/// The configuration of a command line.
fn config(signed: &SignedArgs, prior: Prior, k: usize) -> Result<SnmfVb, skellam_snmf::ParamError> {
    let builder = SnmfVb::builder(k).replicates(signed.m.unwrap_or_default());
    let builder = if signed.real_data {
        builder.real_data()
    } else {
        builder
    };
    builder.prior(prior).build()
}

fn scores(args: &SelectArgs, data: &SignedData<f64>, ranks: &[usize]) -> Result<Table, Failure> {
    let (f, n) = data.shape();
    let prior = prior(vague(), &args.prior, None, (f, 1, n))?;
    // Refused here, where it is the command line's fault.
    config(&args.signed, prior.clone(), 1)?;
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let configure = |k| config(&args.signed, prior.clone(), k);
    let found = select_components(
        &data.cells,
        ranks.iter().copied(),
        configure,
        args.restarts,
        &Stop {
            max_iter: args.max_iter,
            tol: args.tol,
            ..Stop::default()
        },
        &mut rng,
    );
    let mut found = found.map_err(|e| Failure::by(&args.data, e))?;
    found.sort_by_key(|c| c.components);
    let rows = found.iter().map(|c| {
        let vb = configure(c.components)?;
        let means = c.outcome.state.means();
        let ln_lik = vb.on(&data.cells)?.log_fit(&means);
        // Smaller is better.
        let score = -c.score;
        let parameters = c.components * (2 * f - 1 + n);
        Ok(json!({
            "rank": c.components, "score": score, "log_likelihood": ln_lik, "parameters": parameters,
            "elbo": c.outcome.objective,
        }))
    });
    Ok(Table {
        criterion: "elbo",
        sample_size: data.cells.observed() as f64,
        rows: rows.collect::<Result<_, Failure>>()?,
        warnings: data.warnings(),
    })
}

fn fit<T: Element>(args: &FitArgs) -> Result<(), Failure> {
    let data = load::<T>(&args.data, &args.hidden, "skellam-vb")?;
    let sizes = data.shape();
    before::fit(args, &data, |rank| VbCommand::<T>::new(args, rank, sizes))
}

struct VbCommand<T> {
    config: SnmfVb,
    /// The same with nothing fixed, for what is drawn.
    free: SnmfVb,
    scalar: PhantomData<T>,
}

impl<T> VbCommand<T> {
    fn new(args: &FitArgs, k: usize, (f, n): (usize, usize)) -> Result<Self, Failure> {
        refuse_unsigned(args, "skellam-vb")?;
        refuse(args.seeding.is_some(), "--seeding", "skellam-vb")?;
        refuse(args.floor.is_some(), "--floor", "skellam-vb")?;
        let prior = prior(vague(), &args.prior, args.priors.as_deref(), (f, k, n))?;
        let mut builder = SnmfVb::builder(k)
            .replicates(args.signed.m.unwrap_or_default())
            .prior(prior);
        if args.signed.real_data {
            builder = builder.real_data();
        }
        let refused = |e| match &args.priors {
            Some(path) => Failure::by(path, e),
            None => Failure::usage(e),
        };
        let free = builder.clone().build().map_err(refused)?;
        let fixed = |name: &str| args.fix.iter().any(|n| n == name);
        if fixed(FREE[1]) != fixed(FREE[2]) {
            return Err(Failure::usage(
                "--fix: activations_shape and activations_rate stay or change together",
            ));
        }
        if fixed(FREE[0]) {
            builder = builder.freeze_atoms();
        }
        if fixed(FREE[1]) {
            builder = builder.freeze_activations();
        }
        Ok(Self {
            config: builder.build().map_err(refused)?,
            free,
            scalar: PhantomData,
        })
    }
}

impl<T: Element> CommandModel for VbCommand<T> {
    type Data = SignedData<T>;
    type State = Posterior<T>;
    const OBJECTIVE: &'static str = "elbo";
    const WITH_PRIORS: &'static str = "elbo";

    fn start(
        &self,
        data: &Self::Data,
        mut given: Arrays,
        path: &Path,
        rng: &mut ChaCha8Rng,
    ) -> Result<Posterior<T>, Failure> {
        let bound = self.free.on(&data.cells)?;
        let atoms = given.remove(FREE[0]);
        let atoms = atoms.map(|a| sides::<T>(path, FREE[0], a)).transpose()?;
        let mut block = |name| take_matrix(path, &mut given, name);
        let (shape, rate) = (block(FREE[1])?, block(FREE[2])?);
        Ok(match (atoms, shape, rate) {
            (Some((plus, minus)), Some(shape), Some(rate)) => {
                let whole = Posterior {
                    plus,
                    minus,
                    shape,
                    rate,
                };
                VbInit::Posterior(whole).state(&bound, rng)?
            }
            (Some((plus, minus)), None, None) => {
                VbInit::Atoms { plus, minus }.state(&bound, rng)?
            }
            (atoms, shape, rate) => {
                let drawn = VbInit::Random.state(&bound, rng)?;
                let (plus, minus) = atoms.unwrap_or((drawn.plus, drawn.minus));
                let mixed = Posterior {
                    plus,
                    minus,
                    shape: shape.unwrap_or(drawn.shape),
                    rate: rate.unwrap_or(drawn.rate),
                };
                VbInit::Posterior(mixed).state(&bound, rng)?
            }
        })
    }

    fn restore(&self, mut arrays: Arrays, path: &Path) -> Result<Posterior<T>, Failure> {
        let none = |name: &str| lacking(path, name);
        let atoms = arrays.remove(FREE[0]).ok_or_else(|| none(FREE[0]))?;
        let (plus, minus) = sides(path, FREE[0], atoms)?;
        let mut block =
            |name: &str| take_matrix(path, &mut arrays, name)?.ok_or_else(|| none(name));
        Ok(Posterior {
            plus,
            minus,
            shape: block(FREE[1])?,
            rate: block(FREE[2])?,
        })
    }

    fn arrays(&self, _: &Self::Data, state: &Posterior<T>) -> Arrays {
        written(state)
    }

    fn iterate(
        &self,
        data: &Self::Data,
        acceleration: Acceleration,
        from: (Carried<Self::State>, Progress),
        stop: &Stop,
        observer: impl Observer<Carried<Self::State>>,
    ) -> Result<Outcome<Carried<Self::State>>, Failure> {
        let vb = self.config.on(&data.cells)?;
        accelerated(vb, acceleration, from, stop, observer)
    }

    fn direction(&self) -> Direction {
        Direction::Maximise
    }
}
