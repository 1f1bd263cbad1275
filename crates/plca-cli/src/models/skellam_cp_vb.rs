//! `skellam-cp-vb`: tensors of either sign as sums of rank-one terms, by variational Bayes.

use plca_fit::{Reconstruct, Settings};
use plca_priors::PriorSpec;
use skellam_snmf::{SignedCpVb, SignedCpVbState};

use super::priors::priors;
use super::skellam::{prior_specs, refused, signed};
use super::skellam_cp::{Form, form};
use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{FitArgs, SignedArgs, TransformArgs};
use crate::failure::Failure;
use crate::given;
use crate::saved::Saved;
use crate::transform::{Answer, Found, explain};

/// The model `skellam-cp-vb`.
pub(crate) struct SkellamCpVb;

/// The rate of what carries the scale without other word.
const RATE: f64 = 1e-3;

impl ModelKind for SkellamCpVb {
    of_state!(SignedCpVbState<f64>, model);

    fn about(&self) -> &'static str {
        "Skellam factorization of a tensor of either sign with one signed mode, by variational Bayes"
    }

    fn options(&self) -> &'static str {
        "--m --real-data --signed-mode --scale-mode --prior --priors --fix --freeze-entries --accelerate"
    }

    fn takes(&self) -> Takes {
        Takes::Signed
    }

    fn objective(&self, _: bool) -> &'static str {
        "elbo"
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let (signed, specs) = (signed(&file)?, prior_specs(&file));
        let order = file.order()?;
        let learnt: SignedCpVbState<f64> = file.state()?;
        let form = Form {
            signed: learnt.signed_mode(),
            scale: learnt.scale_mode(),
        };
        let along = form.along(args, order)?;
        let k = learnt.components();
        let priors = priors(&specs, None, &form.blocks(&learnt.shape(), k, RATE))?;
        let model = settings(&signed, form, k, priors).checked()?;
        let blocks = ["weights", &*format!("factor_{along}")]
            .map(|block| ["", "_shape", "_rate"].map(|of| format!("{block}{of}")));
        let blocks: Vec<&str> = blocks.iter().flatten().map(String::as_str).collect();
        explain(self, args, (along, k), &blocks, |data, how| {
            let how = how.along(along);
            Ok(match args.each {
                true => Answer::Each(model.transform_each(&learnt, data, &how)?),
                false => model.transform(&learnt, data, &how)?.untyped().into(),
            })
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::lawless(file.state::<SignedCpVbState<f64>>()?))
    }
}

fn model(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<SignedCpVb, Failure> {
    let form = form(args, shape)?;
    let file = args.priors.as_deref();
    let priors = priors(&args.prior, file, &form.blocks(shape, rank, RATE))?;
    let model = settings(&args.signed, form, rank, priors);
    let model = given::freeze(args, shape, model)?;
    model.checked().map_err(|e| refused(args, e))
}

fn settings(
    signed: &SignedArgs,
    form: Form,
    rank: usize,
    priors: Vec<(String, PriorSpec)>,
) -> SignedCpVb {
    let model = SignedCpVb::new(rank).replicates(signed.m.unwrap_or_default());
    let model = model.signed_mode(form.signed).scale_mode(form.scale);
    let priors = priors.into_iter();
    let model = priors.fold(model, |b, (block, prior)| b.prior(block, prior));
    model.real_data(signed.real_data)
}
