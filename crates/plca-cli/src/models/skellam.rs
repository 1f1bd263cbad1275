//! `skellam`: data of either sign as a difference of rates, by EM.

use plca_fit::{AnyModel, Reconstruct};
use plca_io::{Array, Element};
use rand_chacha::ChaCha8Rng;
use skellam_snmf::{Prior, Replicates, Snmf, SnmfState};

use super::options::{refuse, refuse_unsigned};
use super::skellam_priors::prior;
use super::{ModelKind, Takes, of_state};
use crate::approximation::Approximation;
use crate::args::{FitArgs, TransformArgs};
use crate::failure::Failure;
use crate::saved::Saved;
use crate::transform::{Found, along, explain};

/// The model `skellam`.
pub(crate) struct SkellamEm;

impl ModelKind for SkellamEm {
    of_state!(SnmfState<f64>, boxed);

    fn about(&self) -> &'static str {
        "Skellam semi-NMF of a matrix of either sign, by EM"
    }

    fn component_axis(&self, block: &str) -> usize {
        usize::from(block == "atoms")
    }

    fn takes(&self) -> Takes {
        Takes::SignedMatrix
    }

    // Its normaliser is in it without a prior too.
    fn objective(&self, _: bool) -> &'static str {
        "log_posterior"
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        along(args, 1, |d| d == 1)?;
        let (replicates, real) = replicates(&file)?;
        let saved = SavedPrior::of(&file, Prior::flat());
        let learnt: SnmfState<f64> = file.state()?;
        let [f, n] = [learnt.atoms().nrows() / 2, learnt.activations().ncols()];
        let k = learnt.components();
        let mut builder = Snmf::builder(k)
            .replicates(replicates)
            .priors(saved.prior((f, k, n))?);
        if real {
            builder = builder.real_data();
        }
        let model = builder.build()?;
        explain(&SkellamEm, args, 1, k, |data, how| {
            let explained = model.transform(&learnt, data, &how)?.untyped();
            let mut arrays = self.file(explained.fit.state()).arrays;
            arrays.retain(|name, _| name == "activations");
            Ok((explained, arrays))
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let (replicates, _) = replicates(&file)?;
        let state = file.state()?;
        Ok(Box::new(Rates { state, replicates }))
    }
}

/// The model of the command line, for data of this shape.
fn boxed<T: Element>(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<Box<dyn AnyModel<T>>, Failure> {
    refuse_unsigned(args, "skellam")?;
    refuse(args.seeding.is_some(), "--seeding", "skellam")?;
    let shape = (shape[0], rank, shape[1]);
    let prior = prior(Prior::flat(), &args.prior, args.priors.as_deref(), shape)?;
    let mut builder = Snmf::builder(rank)
        .replicates(args.signed.m.unwrap_or_default())
        .priors(prior)
        .floor(args.floor.unwrap_or(0.0));
    if args.signed.real_data {
        builder = builder.real_data();
    }
    for name in &args.fix {
        builder = builder.freeze(name);
    }
    // Priors come from a file where there is one.
    Ok(Box::new(builder.build().map_err(
        |e| match &args.priors {
            Some(path) => Failure::by(path, e),
            None => Failure::usage(e),
        },
    )?))
}

/// Number of replicates, and whether data need not be whole, of a model file.
pub(super) fn replicates(file: &Saved) -> Result<(Replicates, bool), Failure> {
    let settings = &file.metadata["settings"];
    let m = settings["m"].as_str().unwrap_or("inf");
    let replicates = crate::args::replicates(m).map_err(|e| file.failure(e))?;
    Ok((replicates, settings["real_data"] == true))
}

/// The prior that a model was fitted under, as far as it holds for new columns.
pub(super) struct SavedPrior {
    default: Prior,
    specs: Vec<String>,
}

impl SavedPrior {
    pub(super) fn of(file: &Saved, default: Prior) -> Self {
        let specs = file.metadata["settings"]["prior"].as_array();
        let specs = specs.into_iter().flatten();
        Self {
            default,
            specs: specs.filter_map(|s| s.as_str().map(String::from)).collect(),
        }
    }

    pub(super) fn prior(self, shape: (usize, usize, usize)) -> Result<Prior, Failure> {
        prior(self.default, &self.specs, None, shape)
    }
}

/// `L⁺ - L⁻`, and counts drawn from both.
pub(super) struct Rates {
    pub(super) state: SnmfState<f64>,
    pub(super) replicates: Replicates,
}

impl Approximation for Rates {
    fn shape(&self) -> Vec<usize> {
        self.state.shape()
    }

    fn evaluate(&self, into: &mut Array<f64>) -> Result<(), Failure> {
        into.values = self.state.reconstruct()?.into_parts().1;
        Ok(())
    }

    /// The sum of `draws` matrices of the model: `Sk(draws L⁺, draws L⁻)`.
    fn sample(
        &self,
        draws: u64,
        rng: &mut ChaCha8Rng,
        into: &mut Array<f64>,
    ) -> Result<(), Failure> {
        let m = self.replicates.number();
        if m.is_infinite() {
            return Err(Failure::usage(
                "sample: a model of real data (--m inf) has no law to draw from",
            ));
        }
        let draw = |rate: f64, rng: &mut ChaCha8Rng| {
            let count = plca_dist::draw_poisson(draws as f64 * m * rate, rng);
            count.map(|n| n as f64 / m).map_err(Failure::new)
        };
        let h = self.state.activations();
        let rows = into.values.chunks_exact_mut(h.ncols().max(1));
        for (i, out) in rows.enumerate() {
            let [plus, minus] =
                [self.state.plus(), self.state.minus()].map(|side| side.row(i).transpose());
            for (x, column) in out.iter_mut().zip(h.column_iter()) {
                *x = draw(plus.dot(&column), rng)? - draw(minus.dot(&column), rng)?;
            }
        }
        Ok(())
    }
}
