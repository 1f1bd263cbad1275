//! `ntf-l2`: non-negative factors of any order under squared error, the baseline.

use std::marker::PhantomData;
use std::path::Path;

use nalgebra::DVector;
use plca_fit::{Carried, Direction, Observer, Outcome, Progress, Stop};
use plca_io::Element;
use plca_tensor::Data;
use pntf_l2::{Ntf, NtfState};
use rand_chacha::ChaCha8Rng;

use super::accelerated::plainly;
use super::options::refuse;
use super::pntf::{explained, observations, refuse_likelihoods};
use super::{CommandModel, ModelKind, plca};
use crate::approximation::{Approximation, Product};
use crate::args::{Acceleration, FitArgs, Precision, TransformArgs};
use crate::before;
use crate::blocks::{Arrays, matrix};
use crate::data::load_any;
use crate::failure::Failure;
use crate::saved::Saved;
use crate::transform::{Found, along};

/// The model `ntf-l2`.
pub(crate) struct LeeSeung;

impl ModelKind for LeeSeung {
    fn name(&self) -> &'static str {
        "ntf-l2"
    }

    fn about(&self) -> &'static str {
        "Non-negative factors of any order under squared error (Lee and Seung)"
    }

    fn blocks(&self, order: usize) -> Vec<String> {
        (0..order).map(plca::factor).collect()
    }

    fn component_axis(&self, _: &str) -> usize {
        1
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
        let data = observations(args, &factors, along)?;
        let found = NtfState { factors }.explain(&*data, along);
        let found = found.map_err(|e| Failure::by(&args.data, e))?;
        let block = (plca::factor(along), matrix(&found.factor));
        Ok(explained(&*data, block, found.gaps, &found.squared_errors))
    }

    fn approximation(&self, mut file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let order = file.order()?;
        let factors = plca::factors(&mut file, order)?;
        Ok(Box::new(Product {
            weights: DVector::from_element(factors[0].ncols(), 1.0),
            factors,
            scale: 1.0,
        }))
    }
}

fn fit<T: Element>(args: &FitArgs) -> Result<(), Failure> {
    let data = load_any::<T>(&args.data, &args.hidden)?;
    before::fit(args, &*data, |rank| NtfCommand::new(args, rank, &*data))
}

struct NtfCommand<T> {
    config: Ntf,
    order: usize,
    scalar: PhantomData<T>,
}

impl<T: Element> NtfCommand<T> {
    fn new(args: &FitArgs, rank: usize, data: &dyn Data<T>) -> Result<Self, Failure> {
        refuse_likelihoods(args, "ntf-l2")?;
        refuse(
            args.accelerate != Acceleration::None,
            "--accelerate",
            "ntf-l2",
        )?;
        let fixed = args.fix.iter().filter_map(|name| plca::mode(name));
        let builder = fixed.fold(Ntf::builder(rank), |builder, j| builder.freeze_factor(j));
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

impl<T: Element> CommandModel for NtfCommand<T> {
    type Data = dyn Data<T>;
    type State = NtfState<T>;
    const OBJECTIVE: &'static str = "squared_error";

    fn start(
        &self,
        data: &Self::Data,
        mut given: Arrays,
        path: &Path,
        rng: &mut ChaCha8Rng,
    ) -> Result<NtfState<T>, Failure> {
        let init = plca::take_factors(path, &mut given, self.order)?;
        Ok(self.config.init(data, &init, rng)?)
    }

    fn restore(&self, mut arrays: Arrays, path: &Path) -> Result<NtfState<T>, Failure> {
        let factors = plca::all_factors(path, &mut arrays, self.order)?;
        Ok(NtfState { factors })
    }

    fn arrays(&self, _: &Self::Data, state: &NtfState<T>) -> Arrays {
        let factors = state.factors.iter().enumerate();
        factors.map(|(j, f)| (plca::factor(j), matrix(f))).collect()
    }

    fn iterate(
        &self,
        data: &Self::Data,
        _: Acceleration,
        from: (Carried<Self::State>, Progress),
        stop: &Stop,
        observer: impl Observer<Carried<Self::State>>,
    ) -> Result<Outcome<Carried<Self::State>>, Failure> {
        let sweep = self.config.on(data)?;
        plainly(sweep, from, stop, observer)
    }

    fn direction(&self) -> Direction {
        Direction::Minimise
    }
}
