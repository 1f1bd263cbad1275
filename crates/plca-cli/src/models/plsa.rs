//! `plsa`: asymmetric, either direction.

use std::path::Path;

use nalgebra::{DMatrix, DVector};
use plca_em::{
    Given, Outcome, PlsaEm, PlsaInit, Progress,
    before::{Plsa, PlsaState},
};
use plca_fit::{Carried, Direction, Observer, Stop};
use plca_io::{Array, Element};
use plca_tensor::{Cp, Data, Factor};
use rand_chacha::ChaCha8Rng;

use super::accelerated::accelerated;
use super::options::{missing, need_matrix, refuse, refuse_signed, seen_mass, temper};
use super::priors::{Block, emptying, priors};
use super::tempered::{self, Bind};
use super::{CommandModel, ModelKind, fast};
use crate::approximation::{Approximation, Product};
use crate::args::{Acceleration, FitArgs, Precision, SelectArgs, TransformArgs};
use crate::blocks::{
    Arrays, ITERATION, SCALE, count, keep_fixed, lacking, matrix, take_count, take_matrix,
};
use crate::data::Loaded;
use crate::failure::Failure;
use crate::online;
use crate::out_of_core::load;
use crate::saved::Saved;
use crate::select::{self, Table};
use crate::transform::{Found, along, fold_in};

/// The model `plsa`.
pub(crate) struct Asymmetric;

impl ModelKind for Asymmetric {
    fn name(&self) -> &'static str {
        "plsa"
    }

    fn about(&self) -> &'static str {
        "Asymmetric PLSA of a matrix"
    }

    fn blocks(&self, _: usize) -> Vec<String> {
        ["basis", "mixture", "marginal", SCALE]
            .map(String::from)
            .to_vec()
    }

    fn free_blocks(&self, _: usize) -> Vec<String> {
        // The marginal and the scale always come from the data and the fit.
        ["basis", "mixture"].map(String::from).to_vec()
    }

    fn component_axis(&self, block: &str) -> usize {
        usize::from(block == "basis")
    }

    fn separates(&self) -> bool {
        true
    }

    fn out_of_core(&self) -> bool {
        true
    }

    fn fit(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => fit::<f64>(args),
            Precision::F32 => fit::<f32>(args),
        }
    }

    fn online(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => stream::<f64>(args),
            Precision::F32 => stream::<f32>(args),
        }
    }

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        select::likelihood(args)
    }

    fn transform(&self, mut file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        // The observations are what was given.
        let given = saved_direction(&file);
        let along = along(args, given.mode(), |d| d == given.mode())?;
        let basis = file.matrix("basis")?;
        let model = PlsaState {
            mixture: DMatrix::zeros(basis.ncols(), 0),
            basis,
            power: 1.0,
            iteration: 0,
        };
        fold_in(
            args,
            along,
            model.basis.ncols(),
            |data, how| model.fold_in(data, given, how),
            |state| [("mixture".to_string(), matrix(&state.mixture))].into(),
        )
    }

    fn approximation(&self, mut file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let basis = file.matrix("basis")?;
        let mixture = file.matrix("mixture")?;
        let marginal = file.vector("marginal")?;
        file.agree([basis.ncols(), mixture.nrows()])?;
        let count = mixture.ncols();
        if marginal.len() != count {
            let what = format!(
                "`marginal` has {} entries, `mixture` {count}",
                marginal.len()
            );
            return Err(file.failure(what));
        }
        let (shares, scale) = match file.scales(count)? {
            Some(scales) => (scales, 1.0),
            None => (marginal, file.total()),
        };
        let explained =
            DMatrix::from_fn(count, mixture.nrows(), |y, z| mixture[(z, y)] * shares[y]);
        let weights = DVector::from_element(basis.ncols(), 1.0);
        let factors = match saved_direction(&file) {
            Given::Rows => vec![explained, basis],
            Given::Columns => vec![basis, explained],
        };
        Ok(Box::new(Product {
            weights,
            factors,
            scale,
        }))
    }
}

fn fit<T: Element>(args: &FitArgs) -> Result<(), Failure> {
    let data: Loaded<T> = load(args)?;
    let shape = data.shape();
    let given = given(args.given);
    let marginal = match shape.len() {
        2 => data
            .marginal(given.mode())
            .map_err(plca_em::EmError::from)?,
        _ => Vec::new(),
    };
    let make = |rank| {
        let command = PlsaCommand::new(args, rank, shape)?;
        Ok(PlsaCommand {
            marginal: marginal.clone(),
            ..command
        })
    };
    fast::fit(args, &*data, make, || tempered::fit(args, &*data, make))
}

fn stream<T: Element>(args: &FitArgs) -> Result<(), Failure> {
    let make = |rank, shape: &[usize]| model::<T>(args, rank, shape);
    online::fit(args, |_| "basis".into(), Some("marginal"), make)
}

/// The direction that a model file was fitted in.
fn saved_direction(file: &Saved) -> Given {
    if file.metadata["settings"]["given"] == 0 {
        Given::Rows
    } else {
        Given::Columns
    }
}

/// The model of the command line, for data of this shape.
fn model<T: Element>(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<plca_em::Plsa<T>, Failure> {
    refuse(args.update.is_some(), "--update", "plsa")?;
    refuse_signed(args, "plsa")?;
    refuse(args.temper_prior, "--temper-prior", "plsa")?;
    need_matrix(&args.data, "plsa", shape)?;
    if missing(args) == Some(plca_em::Missing::Multiplicative) {
        return Err(Failure::usage(
            "--missing-method multiplicative: plsa treats missing cells by imputation only",
        ));
    }
    let given = given(args.given);
    let mut builder = plca_em::Plsa::builder(rank)
        .given(given)
        .temper(temper(args)?.0);
    for name in &args.fix {
        builder = builder.freeze(name);
    }
    let blocks = [
        Block::matrix("basis", shape[given.explained()], rank),
        Block::matrix("mixture", rank, shape[given.mode()]),
    ];
    for (name, prior) in priors(args, &blocks)? {
        builder = builder.prior(name, prior);
    }
    Ok(builder.build()?)
}

struct PlsaCommand<T: Element> {
    config: Plsa<T>,
    power: f64,
    priors: bool,
    /// Blocks whose priors may empty them.
    emptying: Vec<String>,
    fix: Vec<String>,
    /// The sum of each given index.
    marginal: Vec<f64>,
}

/// The direction of `--given`.
fn given(mode: Option<u8>) -> Given {
    if mode == Some(0) {
        Given::Rows
    } else {
        Given::Columns
    }
}

impl<T: Element> PlsaCommand<T> {
    /// From the command line, for data of this shape.
    fn new(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<Self, Failure> {
        refuse(args.update.is_some(), "--update", "plsa")?;
        refuse_signed(args, "plsa")?;
        refuse(args.temper_prior, "--temper-prior", "plsa")?;
        need_matrix(&args.data, "plsa", shape)?;
        if missing(args) == Some(plca_em::Missing::Multiplicative) {
            return Err(Failure::usage(
                "--missing-method multiplicative: plsa treats missing cells by imputation only",
            ));
        }
        let given = given(args.given);
        let (power, _) = temper(args)?;
        let mut builder = Plsa::builder(rank).given(given).temper(power);
        for name in &args.fix {
            builder = match name.as_str() {
                "basis" => builder.freeze_basis(),
                "mixture" => builder.freeze_mixture(),
                _ => builder,
            };
        }
        let blocks = [
            Block::matrix("basis", shape[given.explained()], rank),
            Block::matrix("mixture", rank, shape[given.mode()]),
        ];
        let priors = priors(args, &blocks)?;
        let (any, emptying) = (!priors.is_empty(), emptying(&priors));
        for (name, prior) in priors {
            builder = if name == "basis" {
                builder.basis_prior(prior)
            } else {
                builder.mixture_prior(prior)
            };
        }
        Ok(Self {
            marginal: Vec::new(),
            config: builder.build()?,
            power,
            priors: any,
            emptying,
            fix: args.fix.clone(),
        })
    }
}

impl<T: Element> CommandModel for PlsaCommand<T> {
    type Data = dyn Data<T>;
    type State = PlsaState<T>;
    const OBJECTIVE: &'static str = "log_likelihood";

    fn start(
        &self,
        data: &Self::Data,
        mut given: Arrays,
        path: &Path,
        rng: &mut ChaCha8Rng,
    ) -> Result<PlsaState<T>, Failure> {
        let init = PlsaInit {
            basis: take_matrix(path, &mut given, "basis")?,
            mixture: take_matrix(path, &mut given, "mixture")?,
        };
        let mut state = self.config.init(data, &init, rng)?;
        for name in &self.fix {
            let (block, given) = if name == "basis" {
                (&mut state.basis, &init.basis)
            } else {
                (&mut state.mixture, &init.mixture)
            };
            if let Some(given) = given {
                keep_fixed(block, given);
            }
        }
        Ok(state)
    }

    fn restore(&self, mut arrays: Arrays, path: &Path) -> Result<PlsaState<T>, Failure> {
        let iteration = take_count(path, &mut arrays, ITERATION)?;
        let mut block =
            |name: &str| take_matrix(path, &mut arrays, name)?.ok_or_else(|| lacking(path, name));
        Ok(PlsaState {
            basis: block("basis")?,
            mixture: block("mixture")?,
            power: self.power,
            iteration,
        })
    }

    fn arrays(&self, _: &Self::Data, state: &PlsaState<T>) -> Arrays {
        let total: f64 = self.marginal.iter().sum();
        let shares = self.marginal.iter().map(|s| s / total).collect();
        let marginal = Array::new(vec![self.marginal.len()], shares);
        [
            ("basis", matrix(&state.basis)),
            ("mixture", matrix(&state.mixture)),
            ("marginal", marginal),
        ]
        .map(|(name, array)| (name.to_string(), array))
        .into()
    }

    fn restored(&self, state: &PlsaState<T>) -> Vec<String> {
        let restored = |name: &&String| {
            plca_em::restored(match name.as_str() {
                "basis" => &state.basis,
                _ => &state.mixture,
            })
        };
        self.emptying.iter().filter(restored).cloned().collect()
    }

    fn saved(&self, data: &Self::Data, state: &Self::State) -> Arrays {
        let mut arrays = self.arrays(data, state);
        arrays.insert(ITERATION.into(), count(state.iteration));
        arrays
    }

    fn iterate(
        &self,
        data: &Self::Data,
        acceleration: Acceleration,
        from: (Carried<Self::State>, Progress),
        stop: &Stop,
        observer: impl Observer<Carried<Self::State>>,
    ) -> Result<Outcome<Carried<Self::State>>, Failure> {
        accelerated(self.config.on(data)?, acceleration, from, stop, observer)
    }

    fn direction(&self) -> Direction {
        Direction::Maximise
    }

    fn scale(
        &self,
        data: &Self::Data,
        state: &PlsaState<T>,
    ) -> Result<Option<Array<f64>>, Failure> {
        if data.is_complete() {
            return Ok(None);
        }
        let given = self.config.given();
        let (basis, mixture) = (Factor::Columns(&state.basis), Factor::Rows(&state.mixture));
        let mut factors = [basis, mixture];
        if given == Given::Rows {
            factors.reverse();
        }
        let model = Cp {
            weights: None,
            factors: &factors,
        };
        let seen = seen_mass(data, &model, given.mode()).map_err(plca_em::EmError::from)?;
        // [SPEC 4] s = v_obs / Σ_obs P, for every given index; 0 where nothing of it was observed
        let scales = self.marginal.iter().zip(seen);
        let scales = scales.map(|(&v, mass)| if v > 0.0 { v / mass } else { 0.0 });
        let scales: Vec<_> = scales.collect();
        Ok(Some(Array::new(vec![scales.len()], scales)))
    }

    fn ln_lik(&self, data: &Self::Data, state: &PlsaState<T>) -> Result<Option<f64>, Failure> {
        Ok(if self.priors {
            Some(self.config.on(data)?.ln_lik(state)?)
        } else {
            None
        })
    }
}

impl<T: Element> Bind<T> for PlsaCommand<T> {
    type Em<'a> = PlsaEm<'a, T>;

    fn on<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Self::Em<'a>, Failure> {
        Ok(self.config.on(data)?)
    }

    fn power(state: &mut Self::State) -> &mut f64 {
        &mut state.power
    }
}

impl<T: Element> fast::Separates<T> for PlsaCommand<T> {
    type Algorithm<'a> = PlsaEm<'a, T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Self::Algorithm<'a>, Failure> {
        Ok(self.config.on(data)?)
    }
}
