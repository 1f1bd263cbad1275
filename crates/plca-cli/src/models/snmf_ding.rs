//! `snmf-ding`: semi-NMF in squared error, the baseline.

use std::marker::PhantomData;
use std::path::Path;

use nalgebra::DMatrix;
use plca_fit::{Carried, Direction, Observer, Outcome, Progress, Stop};
use plca_io::{Array, Element};
use rand_chacha::ChaCha8Rng;
use skellam_snmf::{Ding, DingState};

use super::accelerated::plainly;
use super::options::{refuse, refuse_signed, refuse_unsigned};
use super::{CommandModel, ModelKind};
use crate::approximation::{Approximation, multiply};
use crate::args::{Acceleration, FitArgs, Precision};
use crate::before;
use crate::blocks::{Arrays, lacking, matrix, take_matrix};
use crate::failure::Failure;
use crate::saved::Saved;
use crate::signed::{Complete, load_complete};

/// The model `snmf-ding`.
pub(crate) struct DingSemiNmf;

impl ModelKind for DingSemiNmf {
    fn name(&self) -> &'static str {
        "snmf-ding"
    }

    fn about(&self) -> &'static str {
        "Semi-NMF of a matrix of either sign in squared error (Ding 2010)"
    }

    fn blocks(&self, _: usize) -> Vec<String> {
        ["basis", "activations"].map(String::from).to_vec()
    }

    /// The basis follows from the activations.
    fn free_blocks(&self, _: usize) -> Vec<String> {
        vec!["activations".into()]
    }

    fn component_axis(&self, block: &str) -> usize {
        usize::from(block == "basis")
    }

    fn fit(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => fit::<f64>(args),
            Precision::F32 => fit::<f32>(args),
        }
    }

    fn approximation(&self, mut file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let (w, h) = (file.real_matrix("basis")?, file.matrix("activations")?);
        file.agree([w.ncols(), h.nrows()])?;
        Ok(Box::new(Cells { w, h }))
    }
}

fn fit<T: Element>(args: &FitArgs) -> Result<(), Failure> {
    let data = load_complete::<T>(&args.data, &args.hidden, "snmf-ding")?;
    before::fit(args, &data, |rank| DingCommand::<T>::new(args, rank))
}

/// Refuses what the baselines do not have.
pub(super) fn refuse_all(args: &FitArgs, model: &str) -> Result<(), Failure> {
    refuse_unsigned(args, model)?;
    refuse(!args.prior.is_empty(), "--prior", model)?;
    refuse(args.priors.is_some(), "--priors", model)?;
    refuse(!args.fix.is_empty(), "--fix", model)?;
    refuse(args.accelerate != Acceleration::None, "--accelerate", model)
}

struct DingCommand<T> {
    config: Ding,
    scalar: PhantomData<T>,
}

impl<T> DingCommand<T> {
    fn new(args: &FitArgs, k: usize) -> Result<Self, Failure> {
        refuse_all(args, "snmf-ding")?;
        refuse_signed(args, "snmf-ding")?;
        Ok(Self {
            config: Ding::new(k)?,
            scalar: PhantomData,
        })
    }
}

impl<T: Element> CommandModel for DingCommand<T> {
    type Data = Complete<T>;
    type State = DingState<T>;
    const OBJECTIVE: &'static str = "squared_error";

    fn start(
        &self,
        data: &Self::Data,
        mut given: Arrays,
        path: &Path,
        rng: &mut ChaCha8Rng,
    ) -> Result<DingState<T>, Failure> {
        let steps = self.config.on(&data.values)?;
        Ok(match take_matrix(path, &mut given, "activations")? {
            Some(h) => steps.start(h)?,
            None => steps.random(rng)?,
        })
    }

    fn restore(&self, mut arrays: Arrays, path: &Path) -> Result<DingState<T>, Failure> {
        let mut block =
            |name: &str| take_matrix(path, &mut arrays, name)?.ok_or_else(|| lacking(path, name));
        Ok(DingState {
            w: block("basis")?,
            h: block("activations")?,
        })
    }

    fn arrays(&self, _: &Self::Data, state: &DingState<T>) -> Arrays {
        [
            ("basis".to_string(), matrix(&state.w)),
            ("activations".to_string(), matrix(&state.h)),
        ]
        .into()
    }

    fn iterate(
        &self,
        data: &Self::Data,
        _: Acceleration,
        from: (Carried<Self::State>, Progress),
        stop: &Stop,
        observer: impl Observer<Carried<Self::State>>,
    ) -> Result<Outcome<Carried<Self::State>>, Failure> {
        let steps = self.config.on(&data.values)?;
        plainly(steps, from, stop, observer)
    }

    fn direction(&self) -> Direction {
        Direction::Minimise
    }
}

/// `W H`, which has no law.
struct Cells {
    w: DMatrix<f64>,
    h: DMatrix<f64>,
}

impl Approximation for Cells {
    fn shape(&self) -> Vec<usize> {
        vec![self.w.nrows(), self.h.ncols()]
    }

    fn evaluate(&self, into: &mut Array<f64>) -> Result<(), Failure> {
        multiply(&self.w, &self.h, into);
        Ok(())
    }
}
