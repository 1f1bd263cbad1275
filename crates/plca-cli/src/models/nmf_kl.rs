//! `nmf-kl`: KL-NMF, never renormalised.

use std::marker::PhantomData;
use std::path::Path;

use nalgebra::DVector;
use plca_em::{
    NmfEm, NmfInit, Outcome, Progress, Update,
    before::{Nmf, NmfState},
};
use plca_fit::{Carried, Direction, Observer, Stop};
use plca_io::Element;
use plca_tensor::Data;
use rand_chacha::ChaCha8Rng;

use super::accelerated::accelerated;
use super::options::{missing, need_matrix, refuse, refuse_signed};
use super::{CommandModel, ModelKind, fast};
use crate::approximation::{Approximation, Product};
use crate::args::{self, Acceleration, FitArgs, Precision, SelectArgs, TransformArgs};
use crate::blocks::{Arrays, lacking, matrix, take_matrix};
use crate::data::Loaded;
use crate::failure::Failure;
use crate::fit;
use crate::out_of_core::load;
use crate::saved::Saved;
use crate::select::{self, Table};
use crate::transform::{Found, along, fold_in};

/// The model `nmf-kl`.
pub(crate) struct Unnormalised;

impl ModelKind for Unnormalised {
    fn name(&self) -> &'static str {
        "nmf-kl"
    }

    fn about(&self) -> &'static str {
        "KL-NMF of a matrix"
    }

    fn blocks(&self, _: usize) -> Vec<String> {
        ["w", "h"].map(String::from).to_vec()
    }

    fn component_axis(&self, block: &str) -> usize {
        usize::from(block == "w")
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

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        select::likelihood(args)
    }

    fn transform(&self, mut file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let along = along(args, 1, |d| d < 2)?;
        let model = state(&mut file)?;
        fold_in(
            args,
            along,
            model.w.ncols(),
            |data, how| model.fold_in(data, along, how),
            |state| {
                let (name, block) = [("w", &state.w), ("h", &state.h)][along];
                [(name.to_string(), matrix(block))].into()
            },
        )
    }

    fn approximation(&self, mut file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let NmfState { w, h } = state(&mut file)?;
        Ok(Box::new(Product {
            weights: DVector::from_element(w.ncols(), 1.0),
            factors: vec![w, h.transpose()],
            scale: 1.0,
        }))
    }
}

fn state(file: &mut Saved) -> Result<NmfState<f64>, Failure> {
    let (w, h) = (file.matrix("w")?, file.matrix("h")?);
    file.agree([w.ncols(), h.nrows()])?;
    Ok(NmfState { w, h })
}

fn fit<T: Element>(args: &FitArgs) -> Result<(), Failure> {
    refuse(args.temper.is_some(), "--temper", "nmf-kl")?;
    let data: Loaded<T> = load(args)?;
    let shape = data.shape();
    let make = |rank| NmfCommand::<T>::new(args, rank, shape);
    fast::fit(args, &*data, make, || fit::fit(args, &*data, make))
}

struct NmfCommand<T> {
    config: Nmf,
    scalar: PhantomData<T>,
}

impl<T> NmfCommand<T> {
    /// From the command line, for data of this shape.
    fn new(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<Self, Failure> {
        refuse(args.given.is_some(), "--given", "nmf-kl")?;
        refuse_signed(args, "nmf-kl")?;
        refuse(args.temper_prior, "--temper-prior", "nmf-kl")?;
        refuse(
            !args.prior.is_empty(),
            "--prior (its blocks are no distributions; use plca)",
            "nmf-kl",
        )?;
        refuse(
            args.priors.is_some(),
            "--priors (its blocks are no distributions; use plca)",
            "nmf-kl",
        )?;
        need_matrix(&args.data, "nmf-kl", shape)?;
        let mut builder = Nmf::builder(rank);
        if let Some(update) = args.update {
            builder = builder.update(match update {
                args::Update::Simultaneous => Update::Simultaneous,
                args::Update::Sequential => Update::Sequential,
            });
        }
        if let Some(missing) = missing(args) {
            builder = builder.missing(missing);
        }
        for name in &args.fix {
            builder = if name == "w" {
                builder.freeze_w()
            } else {
                builder.freeze_h()
            };
        }
        Ok(Self {
            config: builder.build()?,
            scalar: PhantomData,
        })
    }
}

impl<T: Element> CommandModel for NmfCommand<T> {
    type Data = dyn Data<T>;
    type State = NmfState<T>;
    const OBJECTIVE: &'static str = "kl_divergence";

    fn start(
        &self,
        data: &Self::Data,
        mut given: Arrays,
        path: &Path,
        rng: &mut ChaCha8Rng,
    ) -> Result<NmfState<T>, Failure> {
        let init = NmfInit {
            w: take_matrix(path, &mut given, "w")?,
            h: take_matrix(path, &mut given, "h")?,
        };
        Ok(self.config.init(data, &init, rng)?)
    }

    fn restore(&self, mut arrays: Arrays, path: &Path) -> Result<NmfState<T>, Failure> {
        let mut block =
            |name: &str| take_matrix(path, &mut arrays, name)?.ok_or_else(|| lacking(path, name));
        Ok(NmfState {
            w: block("w")?,
            h: block("h")?,
        })
    }

    fn arrays(&self, _: &Self::Data, state: &NmfState<T>) -> Arrays {
        [
            ("w".to_string(), matrix(&state.w)),
            ("h".to_string(), matrix(&state.h)),
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
        accelerated(self.config.on(data)?, acceleration, from, stop, observer)
    }

    fn direction(&self) -> Direction {
        Direction::Minimise
    }
}

impl<T: Element> fast::Separates<T> for NmfCommand<T> {
    type Algorithm<'a> = NmfEm<'a, T>;

    fn bind<'a>(&'a self, data: &'a dyn Data<T>) -> Result<Self::Algorithm<'a>, Failure> {
        Ok(self.config.on(data)?)
    }
}
