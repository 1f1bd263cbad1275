//! `pntf`: weights and factors on the simplex under squared error, any order.

use std::marker::PhantomData;
use std::path::Path;

use nalgebra::{DMatrix, DVector};
use plca_em::{EmError, Outcome, Progress};
use plca_fit::{Carried, Direction, Observer, Stop, StopReason};
use plca_io::{Array, Element};
use plca_tensor::Data;
use pntf_l2::{Pntf, PntfInit, PntfState};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use super::accelerated::accelerated;
use super::options::{refuse, refuse_signed, refuse_unsigned};
use super::{CommandModel, ModelKind, plca};
use crate::approximation::{Approximation, Product};
use crate::args::{Acceleration, FitArgs, Precision, TransformArgs};
use crate::before;
use crate::blocks::{Arrays, lacking, matrix, number, take_vector};
use crate::data::{Dataset, Loaded, load_any};
use crate::failure::Failure;
use crate::limits::describable;
use crate::saved::Saved;
use crate::transform::{Found, along};

/// The model `pntf`.
pub(crate) struct OnSimplex;

impl ModelKind for OnSimplex {
    fn name(&self) -> &'static str {
        "pntf"
    }

    fn about(&self) -> &'static str {
        "Factorization on the simplex of any order, under squared error"
    }

    fn blocks(&self, order: usize) -> Vec<String> {
        plca::Symmetric.blocks(order)
    }

    fn component_axis(&self, block: &str) -> usize {
        plca::Symmetric.component_axis(block)
    }

    fn normalises(&self) -> bool {
        true
    }

    fn fit(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => fit::<f64>(args),
            Precision::F32 => fit::<f32>(args),
        }
    }

    fn transform(&self, mut file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let order = file.order()?;
        let along = along(args, order - 1, |d| d < order)?;
        let factors = plca::factors(&mut file, order)?;
        let model = PntfState {
            weights: DVector::from_element(factors[0].ncols(), 1.0),
            factors,
            mass: 1.0,
        };
        let data = observations(args, &model.factors, along)?;
        let found = model.explain(&*data, along);
        let found = found.map_err(|e| Failure::by(&args.data, e))?;
        let mut warnings = data.warnings();
        if !found.empty.is_empty() {
            warnings.push(format!(
                "observations {:?} along dimension {along} do not sum to a positive number: what is written for them means nothing",
                found.empty
            ));
        }
        let block = ("mixture".to_string(), matrix(&found.weights));
        let solved = Found {
            warnings,
            ..explained(&*data, block, found.gaps, &found.squared_errors)
        };
        Ok(solved)
    }

    fn approximation(&self, mut file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let order = file.order()?;
        let weights = file.vector("weights")?;
        let factors = plca::factors(&mut file, order)?;
        file.agree([weights.len(), factors[0].ncols()])?;
        Ok(Box::new(Product {
            weights,
            factors,
            scale: file.metadata["scale"].as_f64().unwrap_or(1.0),
        }))
    }
}

/// New data for `plca transform`: of the learned factors' sizes but along one dimension.
pub(super) fn observations(
    args: &TransformArgs,
    factors: &[DMatrix<f64>],
    along: usize,
) -> Result<Loaded<f64>, Failure> {
    let data = load_any::<f64>(&args.data, &args.hidden)?;
    let (got, order) = (data.sizes(), factors.len());
    let rows = |d: usize| factors[d].nrows();
    if got.len() != order || (0..order).any(|d| d != along && got[d] != rows(d)) {
        let size = |d: usize| {
            if d == along {
                "any".into()
            } else {
                rows(d).to_string()
            }
        };
        let expected: Vec<String> = (0..order).map(size).collect();
        let (got, expected) = (got.to_vec(), expected.join(" x "));
        return Err(Failure::of(&args.data, EmError::Data { got, expected }));
    }
    describable(&args.data, factors[0].ncols(), got[along])?;
    Ok(data)
}

/// What `plca transform` writes of observations that were explained under squared error, one quadratic programme each.
pub(super) fn explained(
    data: &dyn Data<f64>,
    block: (String, Array<f64>),
    gaps: Vec<f64>,
    squared_errors: &[f64],
) -> Found {
    // Squared error can explain everything, more or less well.
    let dropped = 0.0;
    let arrays = [
        block,
        ("gap".into(), Array::new(vec![gaps.len()], gaps)),
        ("dropped".into(), Array::new(vec![], vec![dropped])),
    ];
    Found {
        arrays: arrays.into(),
        summary: json!({
            // The programmes are solved to their end.
            "iterations": 0,
            "stop_reason": StopReason::Stationary.to_string(),
            "objective": squared_errors.iter().sum::<f64>(),
            "dropped": dropped,
        }),
        shape: data.sizes().to_vec(),
        warnings: data.warnings(),
    }
}

fn fit<T: Element>(args: &FitArgs) -> Result<(), Failure> {
    let data = load_any::<T>(&args.data, &args.hidden)?;
    before::fit(args, &*data, |rank| PntfCommand::new(args, rank, &*data))
}

struct PntfCommand<T> {
    config: Pntf,
    order: usize,
    scalar: PhantomData<T>,
}

/// Where a checkpoint keeps what the model must be multiplied by to fit the observed cells.
const MASS: &str = "mass";

/// Refuses what models under squared error do not have.
pub(super) fn refuse_likelihoods(args: &FitArgs, model: &str) -> Result<(), Failure> {
    refuse_unsigned(args, model)?;
    refuse_signed(args, model)?;
    refuse(!args.prior.is_empty(), "--prior", model)?;
    refuse(args.priors.is_some(), "--priors", model)
}

impl<T: Element> PntfCommand<T> {
    fn new(args: &FitArgs, rank: usize, data: &dyn Data<T>) -> Result<Self, Failure> {
        refuse_likelihoods(args, "pntf")?;
        let mut builder = Pntf::builder(rank).normalise(!args.no_normalise);
        for name in &args.fix {
            builder = match plca::mode(name) {
                Some(j) => builder.freeze_factor(j),
                None => builder.freeze_weights(),
            };
        }
        let config = builder.build()?;
        // What is wrong with the data is said of them, whatever the start.
        let bound = config.on(data).map(drop);
        bound.map_err(|e| Failure::by(&args.data, e))?;
        Ok(Self {
            config,
            order: data.shape().len(),
            scalar: PhantomData,
        })
    }
}

impl<T: Element> CommandModel for PntfCommand<T> {
    type Data = dyn Data<T>;
    type State = PntfState<T>;
    const OBJECTIVE: &'static str = "squared_error";

    fn start(
        &self,
        data: &Self::Data,
        mut given: Arrays,
        path: &Path,
        rng: &mut ChaCha8Rng,
    ) -> Result<PntfState<T>, Failure> {
        let init = PntfInit {
            weights: take_vector(path, &mut given, "weights")?,
            factors: plca::take_factors(path, &mut given, self.order)?,
        };
        Ok(self.config.init(data, &init, rng)?)
    }

    fn restore(&self, mut arrays: Arrays, path: &Path) -> Result<PntfState<T>, Failure> {
        let lacks = |name: &str| lacking(path, name);
        let weights = take_vector(path, &mut arrays, "weights")?;
        let factors = plca::all_factors(path, &mut arrays, self.order)?;
        let mass = arrays.remove(MASS).map(|a| a.values);
        Ok(PntfState {
            weights: weights.ok_or_else(|| lacks("weights"))?,
            factors,
            mass: match mass.as_deref() {
                Some(&[mass]) => mass,
                _ => return Err(lacks(MASS)),
            },
        })
    }

    fn arrays(&self, _: &Self::Data, state: &PntfState<T>) -> Arrays {
        plca::written(&state.weights, &state.factors)
    }

    fn saved(&self, data: &Self::Data, state: &Self::State) -> Arrays {
        let mut arrays = self.arrays(data, state);
        arrays.insert(MASS.into(), Array::new(vec![1], vec![state.mass]));
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
        let sweep = self.config.on(data)?;
        accelerated(sweep, acceleration, from, stop, observer)
    }

    fn direction(&self) -> Direction {
        Direction::Minimise
    }

    fn scale(
        &self,
        data: &Self::Data,
        state: &PntfState<T>,
    ) -> Result<Option<Array<f64>>, Failure> {
        // The model has the mass of the data as they were fitted.
        let sweep = self.config.on(data)?;
        Ok(Some(number(state.mass / sweep.data_scale())))
    }
}
