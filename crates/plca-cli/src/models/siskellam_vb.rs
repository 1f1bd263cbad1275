//! `siskellam-vb`: shift-invariant semi-NMF of data of either sign, by variational Bayes.

use plca_io::Element;
use skellam_snmf::{ShiftedSnmfVb, ShiftedSnmfVbBuilder, ShiftedSnmfVbState};

use super::siplca::reasonable;
use super::siskellam::{kernel, priors, reach};
use super::skellam::{prior_specs, refused, signed};
use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{Domain, FitArgs, SignedArgs, TransformArgs};
use crate::failure::Failure;
use crate::given;
use crate::saved::Saved;
use crate::transform::{Found, explain};

/// The model `siskellam-vb`.
pub(crate) struct ShiftedSkellamVb;

/// The rate of activations without other word.
const RATE: f64 = 1e-3;

impl ModelKind for ShiftedSkellamVb {
    of_state!(ShiftedSnmfVbState<f64>, model);

    fn about(&self) -> &'static str {
        "Shift-invariant Skellam semi-NMF of data of either sign and any order, by variational Bayes"
    }

    fn options(&self) -> &'static str {
        "--kernel --domain --m --real-data --prior --priors --fix --accelerate"
    }

    fn component_axis(&self, _: &str) -> usize {
        0
    }

    fn takes(&self) -> Takes {
        Takes::Signed
    }

    fn objective(&self, _: bool) -> &'static str {
        "elbo"
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        if args.along.is_some() {
            return Err(Failure::usage(
                "--along: siskellam-vb explains data as a whole",
            ));
        }
        let (signed, specs) = (signed(&file)?, prior_specs(&file));
        let learnt: ShiftedSnmfVbState<f64> = file.state()?;
        let k = learnt.atoms_shape().ncols();
        let sizes = [learnt.kernel_shape(), learnt.places()];
        let (shapes, [a, b]) = priors(&specs, None, sizes, k, RATE)?;
        let builder = builder::<f64>(&signed, k, learnt.kernel_shape().to_vec(), &[]);
        let model = builder.dirichlet(shapes).gamma(a, b).build()?;
        let blocks = ["activations", "activations_shape", "activations_rate"];
        explain(self, args, (0, k), &blocks, |data, how| {
            Ok(model.transform(&learnt, data, &how)?.untyped())
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::lawless(file.state::<ShiftedSnmfVbState<f64>>()?))
    }
}

fn model<T: Element>(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<ShiftedSnmfVb<T>, Failure> {
    let kernel = kernel(args, shape, "atoms_shape")?;
    reasonable(rank, &kernel, shape)?;
    let domain = &args.shifts.places.domain;
    let builder = builder(&args.signed, rank, kernel.clone(), domain);
    let places = builder
        .clone()
        .build()
        .and_then(|model| model.places(shape));
    let places = places.map_err(|e| Failure::by(&args.data, e))?;
    let file = args.priors.as_deref();
    let (shapes, [a, b]) = priors(&args.prior, file, [&kernel, &places], rank, RATE)?;
    let builder = builder.dirichlet(shapes).gamma(a, b);
    let builder = given::freeze(args, shape, builder)?;
    builder.build().map_err(|e| refused(args, e))
}

fn builder<T: Element>(
    signed: &SignedArgs,
    rank: usize,
    kernel: Vec<usize>,
    domain: &[Domain],
) -> ShiftedSnmfVbBuilder<T> {
    let builder = ShiftedSnmfVb::builder(rank, kernel).reach(reach(domain));
    let builder = builder.replicates(signed.m.unwrap_or_default());
    match signed.real_data {
        true => builder.real_data(),
        false => builder,
    }
}
