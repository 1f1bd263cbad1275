//! `nmf-kl`: KL-NMF, never renormalised.

use std::path::Path;

use plca_em::{Nmf, NmfInit, NmfState, Outcome, Progress, Update};
use plca_fit::{Direction, Observer, Stop};
use plca_io::Element;
use plca_tensor::Observed;
use rand_chacha::ChaCha8Rng;

use super::CommandModel;
use super::tempered::accelerated;
use crate::args::{self, Acceleration, FitArgs};
use crate::blocks::{Arrays, matrix, take_matrix};
use crate::failure::Failure;

pub(crate) struct NmfCommand {
    config: Nmf,
}

impl NmfCommand {
    /// From the command line, for data of this shape.
    pub(crate) fn new(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<Self, Failure> {
        super::refuse(args.given.is_some(), "--given", "nmf-kl")?;
        super::refuse(args.temper.is_some(), "--temper", "nmf-kl")?;
        super::refuse(args.temper_prior, "--temper-prior", "nmf-kl")?;
        super::refuse(
            !args.prior.is_empty(),
            "--prior (its blocks are no distributions; use plca)",
            "nmf-kl",
        )?;
        super::refuse(
            args.priors.is_some(),
            "--priors (its blocks are no distributions; use plca)",
            "nmf-kl",
        )?;
        super::refuse(args.kkt_tol.is_some(), "--kkt-tol", "nmf-kl")?;
        super::need_matrix(&args.data, "nmf-kl", shape)?;
        let mut builder = Nmf::builder(rank);
        if let Some(update) = args.update {
            builder = builder.update(match update {
                args::Update::Simultaneous => Update::Simultaneous,
                args::Update::Sequential => Update::Sequential,
            });
        }
        if let Some(missing) = super::missing(args) {
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
        })
    }
}

impl<T: Element> CommandModel<T> for NmfCommand {
    type State = NmfState<T>;
    const OBJECTIVE: &'static str = "kl_divergence";

    fn start(
        &self,
        data: &dyn Observed<T>,
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
        let mut block = |name: &str| {
            take_matrix(path, &mut arrays, name)?
                .ok_or_else(|| Failure::of(path, format!("has no `{name}`")))
        };
        Ok(NmfState {
            w: block("w")?,
            h: block("h")?,
        })
    }

    fn arrays(&self, _: &dyn Observed<T>, state: &NmfState<T>) -> Arrays {
        [
            ("w".to_string(), matrix(&state.w)),
            ("h".to_string(), matrix(&state.h)),
        ]
        .into()
    }

    fn iterate(
        &self,
        data: &dyn Observed<T>,
        acceleration: Acceleration,
        from: (Self::State, Progress),
        stop: &Stop,
        observer: impl Observer<Self::State>,
    ) -> Result<Outcome<Self::State>, Failure> {
        accelerated(self.config.on(data)?, acceleration, from, stop, observer)
    }

    fn direction(&self) -> Direction {
        Direction::Minimise
    }
}
