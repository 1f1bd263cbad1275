//! `siskellam-vb`: shift-invariant semi-NMF of data of either sign, by variational Bayes.

use plca_fit::Settings;
use skellam_snmf::{ShiftedSnmfVb, ShiftedSnmfVbState};

use super::priors::priors;
use super::siplca::reasonable;
use super::siskellam::{blocks, kernel, reach, shifted};
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

    fn priors(&self) -> String {
        "atoms=dirichlet:A, activations=gamma:SHAPE,RATE".into()
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
                "--along: siskellam-vb transforms the data as a whole",
            ));
        }
        let (signed, specs) = (signed(&file)?, prior_specs(&file));
        let learnt: ShiftedSnmfVbState<f64> = file.state()?;
        let k = learnt.atoms_shape().ncols();
        let sizes = [learnt.kernel_shape(), learnt.places()];
        let priors = priors(&specs, None, &blocks(sizes, k, RATE))?.into_iter();
        let model = settings(&signed, k, learnt.kernel_shape().to_vec(), &[]);
        let model = priors.fold(model, |b, (block, prior)| b.prior(block, prior));
        let model = model.checked()?;
        let blocks = ["activations", "activations_shape", "activations_rate"];
        explain(self, args, (0, k), &blocks, |data, how| {
            Ok(model.transform(&learnt, data, &how)?.untyped())
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::lawless(file.state::<ShiftedSnmfVbState<f64>>()?))
    }
}

shifted!(
    ShiftedSnmfVb,
    "atoms_shape",
    RATE,
    |_, model| Ok::<_, Failure>(model)
);
