//! `skellam-cp-vb`: tensors of either sign as sums of rank-one terms, by variational Bayes.

use plca_io::Element;
use skellam_snmf::{SignedCpVb, SignedCpVbState};

use super::skellam::refused;
use super::skellam_cp::{form, priors};
use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::FitArgs;
use crate::failure::Failure;
use crate::given;
use crate::saved::Saved;

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

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::lawless(file.state::<SignedCpVbState<f64>>()?))
    }
}

fn model<T: Element>(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<SignedCpVb<T>, Failure> {
    let form = form(args, shape)?;
    let file = args.priors.as_deref();
    let (dirichlet, [a, b]) = priors(&args.prior, file, form, shape, rank, RATE)?;
    let builder = SignedCpVb::builder(rank).replicates(args.signed.m.unwrap_or_default());
    let builder = builder.signed_mode(form.signed).scale_mode(form.scale);
    let mut builder = builder.gamma(a, b);
    for (block, shapes) in dirichlet {
        builder = builder.dirichlet(block, shapes);
    }
    if args.signed.real_data {
        builder = builder.real_data();
    }
    let builder = given::freeze(args, shape, builder)?;
    builder.build().map_err(|e| refused(args, e))
}
