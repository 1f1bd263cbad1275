//! `plca`: symmetric, any order.

use std::path::Path;

use nalgebra::{DMatrix, DVector};
use plca_em::{
    Outcome, PlcaEm, PlcaInit, Progress,
    before::{Plca, PlcaState},
};
use plca_fit::{Carried, Direction, Observer, Stop};
use plca_io::{Array, Element};
use plca_tensor::Data;
use rand_chacha::ChaCha8Rng;

use super::accelerated::accelerated;
use super::options::{missing, refuse, refuse_signed, seen_mass, temper};
use super::priors::{Block, emptying, priors};
use super::tempered::{self, Bind};
use super::{CommandModel, ModelKind, fast};
use crate::approximation::{Approximation, Product};
use crate::args::{Acceleration, FitArgs, Precision, SelectArgs, TransformArgs};
use crate::blocks::{
    Arrays, ITERATION, count, keep_fixed, lacking, matrix, number, take_count, take_matrix,
    take_vector, vector,
};
use crate::data::Loaded;
use crate::failure::Failure;
use crate::online;
use crate::out_of_core::load;
use crate::saved::Saved;
use crate::select::{self, Table};
use crate::transform::{Found, along, fold_in};

/// The model `plca`.
pub(crate) struct Symmetric;

impl ModelKind for Symmetric {
    fn name(&self) -> &'static str {
        "plca"
    }

    fn about(&self) -> &'static str {
        "Symmetric PLCA of any order"
    }

    fn blocks(&self, order: usize) -> Vec<String> {
        std::iter::once("weights".into())
            .chain((0..order).map(factor))
            .collect()
    }

    fn component_axis(&self, block: &str) -> usize {
        usize::from(block != "weights")
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
        let order = file.order()?;
        let along = along(args, order - 1, |d| d < order)?;
        // A stream has no factor of what is looked for.
        let streamed = !file.metadata["settings"]["online"].is_null();
        let learned = (0..order).filter(|&j| j != along || !streamed);
        let learned = learned.map(|j| file.matrix(&factor(j)));
        let mut factors = learned.collect::<Result<Vec<_>, _>>()?;
        file.agree(factors.iter().map(DMatrix::ncols))?;
        let k = match factors.first() {
            Some(factor) => factor.ncols(),
            None => file.vector("weights")?.len(),
        };
        if streamed {
            factors.insert(along, DMatrix::zeros(0, k));
        }
        let model = PlcaState {
            weights: DVector::from_element(k, 1.0),
            factors,
            power: 1.0,
            iteration: 0,
        };
        let mut found = fold_in(
            args,
            along,
            k,
            |data, how| model.fold_in(data, along, how),
            |state| {
                [
                    ("weights".to_string(), vector(&state.weights)),
                    (factor(along), matrix(&state.factors[along])),
                ]
                .into()
            },
        )?;
        // There is one gap for all observations.
        if let Some(gap) = found.arrays.get_mut("gap") {
            gap.shape.clear();
        }
        Ok(found)
    }

    fn approximation(&self, mut file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let order = file.order()?;
        let weights = file.vector("weights")?;
        let factors = factors(&mut file, order)?;
        file.agree([weights.len(), factors[0].ncols()])?;
        // There is a scale in the file where cells were hidden.
        let scale = file.metadata["scale"].as_f64().unwrap_or(file.total());
        Ok(Box::new(Product {
            weights,
            factors,
            scale,
        }))
    }
}

/// Name of the block of dimension `j`.
pub(super) fn factor(j: usize) -> String {
    format!("factor_{j}")
}

/// The dimension whose block has this name.
pub(super) fn mode(name: &str) -> Option<usize> {
    name.strip_prefix("factor_")?.parse().ok()
}

/// The factors that are given.
pub(super) fn take_factors<T: Element>(
    path: &Path,
    arrays: &mut Arrays,
    order: usize,
) -> Result<Vec<Option<DMatrix<T>>>, Failure> {
    let take = |j| take_matrix(path, arrays, &factor(j));
    (0..order).map(take).collect()
}

/// As [`take_factors`] from a file that must have them all.
pub(super) fn all_factors<T: Element>(
    path: &Path,
    arrays: &mut Arrays,
    order: usize,
) -> Result<Vec<DMatrix<T>>, Failure> {
    let factors = take_factors(path, arrays, order)?.into_iter().enumerate();
    factors
        .map(|(j, f)| f.ok_or_else(|| lacking(path, &factor(j))))
        .collect()
}

/// The blocks by their names.
pub(super) fn written<T: Element>(weights: &DVector<T>, factors: &[DMatrix<T>]) -> Arrays {
    let factors = factors.iter().enumerate();
    let factors = factors.map(|(j, f)| (factor(j), matrix(f)));
    factors
        .chain([("weights".to_string(), vector(weights))])
        .collect()
}

/// `P(x_j | z)` of every dimension, of one number of components.
pub(super) fn factors(file: &mut Saved, order: usize) -> Result<Vec<DMatrix<f64>>, Failure> {
    let factors = (0..order).map(|j| file.matrix(&factor(j)));
    let factors = factors.collect::<Result<Vec<_>, _>>()?;
    file.agree(factors.iter().map(DMatrix::ncols))?;
    Ok(factors)
}

fn fit<T: Element>(args: &FitArgs) -> Result<(), Failure> {
    let data: Loaded<T> = load(args)?;
    let shape = data.shape();
    let make = |rank| PlcaCommand::new(args, rank, shape);
    fast::fit(args, &*data, make, || tempered::fit(args, &*data, make))
}

fn stream<T: Element>(args: &FitArgs) -> Result<(), Failure> {
    let make = |rank, shape: &[usize]| model::<T>(args, rank, shape);
    online::fit(args, factor, None, make)
}

/// The model of the command line, for data of this shape.
fn model<T: Element>(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<plca_em::Plca<T>, Failure> {
    refuse(args.given.is_some(), "--given", "plca")?;
    refuse_signed(args, "plca")?;
    refuse(args.update.is_some(), "--update", "plca")?;
    let mut builder = plca_em::Plca::builder(rank)
        .temper(temper(args)?.0)
        .temper_prior(args.temper_prior);
    for name in &args.fix {
        builder = builder.freeze(name);
    }
    let factors = shape.iter().enumerate();
    let factors = factors.map(|(j, &n)| Block::matrix(factor(j), n, rank));
    let blocks: Vec<_> = factors.chain([Block::vector("weights", rank)]).collect();
    for (name, prior) in priors(args, &blocks)? {
        builder = builder.prior(name, prior);
    }
    if let Some(missing) = missing(args) {
        builder = builder.missing(missing);
    }
    Ok(builder.build()?)
}

struct PlcaCommand<T: Element> {
    config: Plca<T>,
    order: usize,
    power: f64,
    priors: bool,
    /// Blocks whose priors may empty them.
    emptying: Vec<String>,
    fix: Vec<String>,
}

pub(super) fn as_column<T: Element>(v: &DVector<T>) -> DMatrix<T> {
    DMatrix::from_column_slice(v.len(), 1, v.as_slice())
}

impl<T: Element> PlcaCommand<T> {
    /// From the command line, for data of this shape.
    fn new(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<Self, Failure> {
        refuse(args.given.is_some(), "--given", "plca")?;
        refuse_signed(args, "plca")?;
        refuse(args.update.is_some(), "--update", "plca")?;
        let (power, _) = temper(args)?;
        let mut builder = Plca::builder(rank)
            .temper(power)
            .temper_prior(args.temper_prior);
        for name in &args.fix {
            builder = match mode(name) {
                Some(j) => builder.freeze_factor(j),
                None => builder.freeze_weights(),
            };
        }
        let factors = shape.iter().enumerate();
        let factors = factors.map(|(j, &n)| Block::matrix(factor(j), n, rank));
        let blocks: Vec<_> = factors.chain([Block::vector("weights", rank)]).collect();
        let priors = priors(args, &blocks)?;
        let (any, emptying) = (!priors.is_empty(), emptying(&priors));
        for (name, prior) in priors {
            builder = match mode(&name) {
                Some(j) => builder.factor_prior(j, prior),
                None => builder.weights_prior(prior),
            };
        }
        if let Some(missing) = missing(args) {
            builder = builder.missing(missing);
        }
        Ok(Self {
            config: builder.build()?,
            order: shape.len(),
            power,
            priors: any,
            emptying,
            fix: args.fix.clone(),
        })
    }
}

impl<T: Element> CommandModel for PlcaCommand<T> {
    type Data = dyn Data<T>;
    type State = PlcaState<T>;
    const OBJECTIVE: &'static str = "log_likelihood";

    fn start(
        &self,
        data: &Self::Data,
        mut given: Arrays,
        path: &Path,
        rng: &mut ChaCha8Rng,
    ) -> Result<PlcaState<T>, Failure> {
        let weights = take_vector(path, &mut given, "weights")?;
        let factors = take_factors(path, &mut given, self.order)?;
        let init = PlcaInit { weights, factors };
        let mut state = self.config.init(data, &init, rng)?;
        for name in &self.fix {
            match mode(name) {
                Some(j) => {
                    if let Some(given) = &init.factors[j] {
                        keep_fixed(&mut state.factors[j], given);
                    }
                }
                None => {
                    if let Some(given) = &init.weights {
                        let mut weights = as_column(&state.weights);
                        keep_fixed(&mut weights, &as_column(given));
                        state.weights = weights.column(0).into_owned();
                    }
                }
            }
        }
        Ok(state)
    }

    fn restore(&self, mut arrays: Arrays, path: &Path) -> Result<PlcaState<T>, Failure> {
        let lacks = |name: &str| lacking(path, name);
        let iteration = take_count(path, &mut arrays, ITERATION)?;
        let weights: DVector<T> =
            take_vector(path, &mut arrays, "weights")?.ok_or_else(|| lacks("weights"))?;
        Ok(PlcaState {
            weights,
            factors: all_factors(path, &mut arrays, self.order)?,
            power: self.power,
            iteration,
        })
    }

    fn arrays(&self, _: &Self::Data, state: &PlcaState<T>) -> Arrays {
        written(&state.weights, &state.factors)
    }

    fn restored(&self, state: &PlcaState<T>) -> Vec<String> {
        let restored = |name: &&String| match mode(name) {
            Some(j) => plca_em::restored(&state.factors[j]),
            None => plca_em::restored(&as_column(&state.weights)),
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
        state: &PlcaState<T>,
    ) -> Result<Option<Array<f64>>, Failure> {
        if data.is_complete() {
            return Ok(None);
        }
        // [SPEC 4] s = v_obs / Σ_obs P
        let seen = state.with_model(|model| seen_mass(data, model, 0));
        let seen: f64 = seen.map_err(plca_em::EmError::from)?.iter().sum();
        Ok(Some(number(data.total() / seen)))
    }

    fn ln_lik(&self, data: &Self::Data, state: &PlcaState<T>) -> Result<Option<f64>, Failure> {
        Ok(if self.priors {
            Some(self.config.on(data)?.ln_lik(state)?)
        } else {
            None
        })
    }
}

impl<T: Element> Bind<T> for PlcaCommand<T> {
    type Em<'a> = PlcaEm<'a, T>;

    fn on<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Self::Em<'a>, Failure> {
        Ok(self.config.on(data)?)
    }

    fn power(state: &mut Self::State) -> &mut f64 {
        &mut state.power
    }
}

impl<T: Element> fast::Separates<T> for PlcaCommand<T> {
    type Algorithm<'a> = PlcaEm<'a, T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Self::Algorithm<'a>, Failure> {
        Ok(self.config.on(data)?)
    }
}
