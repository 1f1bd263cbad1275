//! `siskellam`: shift-invariant semi-NMF of data of either sign.

use plca_fit::Settings;
use skellam_snmf::{Reach, ShiftedSnmf, ShiftedSnmfState};

use super::priors::{Block, Laws, priors};
use super::siplca::{check_order, reasonable};
use super::skellam::{prior_specs, refused, signed};
use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{Domain, FitArgs, SignedArgs, TransformArgs};
use crate::failure::Failure;
use crate::given;
use crate::saved::Saved;
use crate::solver::extrapolated;
use crate::transform::{Found, explain};

/// `model` and `settings` of a shifted model of signed data: its types, the block of the kernels, the rate of activations without other word, and what else its model
/// is told.
macro_rules! shifted {
    ($model:ident, $atoms:literal, $rate:expr, $more:expr) => {
        fn model(
            args: &FitArgs,
            rank: usize,
            shape: &[usize],
        ) -> Result<$model, Failure> {
            let kernel = kernel(args, shape, $atoms)?;
            reasonable(rank, &kernel, shape)?;
            let domain = &args.shifts.places.domain;
            let model = settings(&args.signed, rank, kernel.clone(), domain);
            let places = model
                .clone()
                .checked()
                .and_then(|model| model.places(shape));
            let places = places.map_err(|e| Failure::by(&args.data, e))?;
            // What adds and what takes away.
            let atoms = [&kernel[..], &[2]].concat();
            let extents: [(&str, &[usize]); 2] = [("atoms", &atoms), ("activations", &places)];
            given::stacks(args, shape.len(), rank, &extents)?;
            let file = args.priors.as_deref();
            let blocks = blocks([&kernel, &places], rank, $rate);
            let priors = priors(&args.prior, file, &blocks)?.into_iter();
            let model = priors.fold(model, |b, (block, prior)| b.prior(block, prior));
            let model = $more(args, given::freeze(args, shape, model)?)?;
            model.checked().map_err(|e| refused(args, e))
        }

        fn settings(
            signed: &SignedArgs,
            rank: usize,
            kernel: Vec<usize>,
            domain: &[Domain],
        ) -> $model {
            let model = $model::new(rank, kernel).reach(reach(domain));
            let model = model.replicates(signed.m.unwrap_or_default());
            model.real_data(signed.real_data)
        }
    };
}
pub(super) use shifted;

/// The model `siskellam`.
pub(crate) struct ShiftedSkellam;

impl ModelKind for ShiftedSkellam {
    of_state!(ShiftedSnmfState<f64>, model);

    fn about(&self) -> &'static str {
        "Shift-invariant Skellam semi-NMF of data of either sign and any order, by EM"
    }

    fn options(&self) -> &'static str {
        "--kernel --domain --anneal --m --real-data --prior --priors --fix --freeze-entries --accelerate"
    }

    fn priors(&self) -> String {
        "atoms=dirichlet:A, activations=gamma:SHAPE,RATE".into()
    }

    fn takes(&self) -> Takes {
        Takes::Signed
    }

    // Its normaliser is in it without a prior too.
    fn objective(&self, _: bool) -> &'static str {
        "log_posterior"
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        if args.along.is_some() {
            return Err(Failure::usage(
                "--along: siskellam transforms the data as a whole",
            ));
        }
        let (signed, specs) = (signed(&file)?, prior_specs(&file));
        let learnt: ShiftedSnmfState<f64> = file.state()?;
        let k = learnt.atoms().ncols();
        // New data may have other places: only priors that are one number hold for them.
        let sizes = [learnt.kernel_shape(), learnt.places()];
        let priors = priors(&specs, None, &blocks(sizes, k, 0.0))?.into_iter();
        let model = settings(&signed, k, learnt.kernel_shape().to_vec(), &[]);
        let model = priors.fold(model, |b, (block, prior)| b.prior(block, prior));
        let model = model.checked()?;
        explain(self, args, (0, k), &["activations"], |data, how| {
            Ok(model.transform(&learnt, data, &how)?.untyped())
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::lawless(file.state::<ShiftedSnmfState<f64>>()?))
    }
}

shifted!(ShiftedSnmf, "atoms", 0.0, annealed);

/// With the power of the kernels.
fn annealed(
    args: &FitArgs,
    model: ShiftedSnmf,
) -> Result<ShiftedSnmf, Failure> {
    let Some(anneal) = args.shifts.places.anneal else {
        return Ok(model);
    };
    if let Some(option) = extrapolated(args) {
        return Err(Failure::usage(format!(
            "{option} cannot be combined with --anneal"
        )));
    }
    anneal.check_flat("anneal").map_err(Failure::usage)?;
    Ok(model.anneal(anneal))
}

/// Extents of the kernels, from `--kernel` or from the atoms in `--init`.
pub(super) fn kernel(args: &FitArgs, shape: &[usize], atoms: &str) -> Result<Vec<usize>, Failure> {
    let kernel = match &args.shifts.kernel {
        Some(sizes) => sizes.0.clone(),
        None => {
            let (given, _) = given::blocks(args, shape.len())?;
            let atoms = given.get(atoms).map(|array| &array.shape[..]);
            match atoms {
                Some([_, extents @ .., 2]) => extents.to_vec(),
                _ => {
                    return Err(Failure::usage(
                        "--kernel is needed where --init gives no atoms",
                    ));
                }
            }
        }
    };
    check_order(&kernel, shape)?;
    Ok(kernel)
}

/// Where kernels may lie.
pub(super) fn reach(domain: &[Domain]) -> Vec<Reach> {
    let reach = domain.iter().map(|domain| match domain {
        Domain::Valid => Reach::Valid,
        Domain::Same => Reach::Same,
        Domain::Full => Reach::Full,
    });
    reach.collect()
}

/// The blocks that take priors; of the activations the rate is this unless it is said.
pub(super) fn blocks([kernel, places]: [&[usize]; 2], k: usize, rate: f64) -> [Block; 2] {
    let atoms = [kernel, &[2]].concat();
    [
        Block::stack("atoms", &atoms, k).under(Laws::Dirichlet),
        Block::stack("activations", places, k).under(Laws::Gamma(rate)),
    ]
}
