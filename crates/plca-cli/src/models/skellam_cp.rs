//! `skellam-cp`: tensors of either sign as sums of rank-one terms, one factor of which has two sides.

use plca_fit::{Reconstruct, Settings};
use skellam_snmf::{SignedCp, SignedCpState};

use super::priors::{Block, Laws, priors};
use super::skellam::{prior_specs, refused, signed};
use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{FitArgs, SignedArgs, TransformArgs};
use crate::failure::Failure;
use crate::given;
use crate::saved::Saved;
use crate::transform::{Answer, Found, along, explain};

/// The model `skellam-cp`.
pub(crate) struct SkellamCp;

impl ModelKind for SkellamCp {
    of_state!(SignedCpState<f64>, model);

    fn about(&self) -> &'static str {
        "Skellam factorization of a tensor of either sign with one signed mode, by EM"
    }

    fn options(&self) -> &'static str {
        "--m --real-data --signed-mode --scale-mode --prior --priors --fix --freeze-entries --accelerate"
    }

    fn priors(&self) -> String {
        "atoms=dirichlet:A, factor_J=dirichlet:A, weights=gamma:SHAPE,RATE".into()
    }

    fn takes(&self) -> Takes {
        Takes::Signed
    }

    // Its normaliser is in it without a prior too.
    fn objective(&self, _: bool) -> &'static str {
        "log_posterior"
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let (signed, specs) = (signed(&file)?, prior_specs(&file));
        let order = file.order()?;
        let learnt: SignedCpState<f64> = file.state()?;
        let form = Form {
            signed: learnt.signed_mode(),
            scale: learnt.scale_mode(),
        };
        let along = form.along(args, order)?;
        let k = learnt.components();
        let model = settings(&signed, form, k);
        let priors = priors(&specs, None, &form.blocks(&learnt.shape(), k, 0.0))?;
        let priors = priors.into_iter();
        let model = priors.fold(model, |b, (block, prior)| b.prior(block, prior));
        let model = model.checked()?;
        let factor = format!("factor_{along}");
        explain(
            self,
            args,
            (along, k),
            &["weights", &factor],
            |data, how| {
                let how = how.along(along);
                Ok(match args.each {
                    true => Answer::Each(model.transform_each(&learnt, data, &how)?),
                    false => model.transform(&learnt, data, &how)?.untyped().into(),
                })
            },
        )
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::lawless(file.state::<SignedCpState<f64>>()?))
    }
}

/// Which mode is signed, and which carries the scale.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) signed: usize,
    pub(super) scale: Option<usize>,
}

fn model(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<SignedCp, Failure> {
    let form = form(args, shape)?;
    let model = settings(&args.signed, form, rank);
    let file = args.priors.as_deref();
    let priors = priors(&args.prior, file, &form.blocks(shape, rank, 0.0))?;
    let priors = priors.into_iter();
    let model = priors.fold(model, |b, (block, prior)| b.prior(block, prior));
    let model = given::freeze(args, shape, model)?;
    model.checked().map_err(|e| refused(args, e))
}

impl Form {
    /// The blocks that take priors, of data of this shape; of what carries the scale the rate is this unless it is said.
    pub(super) fn blocks(self, shape: &[usize], k: usize, rate: f64) -> Vec<Block> {
        let atoms = Block::sides("atoms", shape[self.signed], k).under(Laws::Dirichlet);
        let weights = Block::vector("weights", k).under(Laws::Gamma(rate));
        let weights = self.scale.is_none().then_some(weights);
        let others = (0..shape.len()).filter(|&j| j != self.signed);
        let factors = others.map(|j| {
            let factor = Block::matrix(format!("factor_{j}"), shape[j], k);
            factor.under(match Some(j) == self.scale {
                true => Laws::Gamma(rate),
                false => Laws::Dirichlet,
            })
        });
        [atoms].into_iter().chain(weights).chain(factors).collect()
    }

    /// The dimension of new observations of data of this order: that of the scale, or another one that is not signed.
    pub(super) fn along(self, args: &TransformArgs, order: usize) -> Result<usize, Failure> {
        let Self { signed, scale } = self;
        let last = (0..order).rev().find(|&d| d != signed).unwrap_or(0);
        let free = |d: usize| d < order && d != signed && scale.is_none_or(|scale| scale == d);
        along(args, scale.unwrap_or(last), free)
    }
}

/// That of a command line.
pub(super) fn form(args: &FitArgs, shape: &[usize]) -> Result<Form, Failure> {
    let form = Form {
        signed: args.signed_mode.unwrap_or(0),
        scale: args.scale_mode,
    };
    for (option, mode) in [
        ("--signed-mode", args.signed_mode),
        ("--scale-mode", args.scale_mode),
    ] {
        if let Some(mode) = mode.filter(|&mode| mode >= shape.len()) {
            let order = shape.len();
            return Err(Failure::usage(format!(
                "{option} {mode}: the data have {order} dimensions, counted from 0"
            )));
        }
    }
    Ok(form)
}

fn settings(signed: &SignedArgs, form: Form, rank: usize) -> SignedCp {
    let model = SignedCp::new(rank).replicates(signed.m.unwrap_or_default());
    let model = model.signed_mode(form.signed).scale_mode(form.scale);
    let model = model.with_constants(true);
    model.real_data(signed.real_data)
}
