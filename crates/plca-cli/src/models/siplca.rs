//! `siplca`: kernels shifted along any dimensions, any order.

use plca_dist::random::Categorical;
use plca_em::{Likelihood, Shifted, ShiftedBuilder, ShiftedState, Support};
use plca_fit::{AnyModel, FitError, Reconstruct};
use plca_io::{Array, Element};
use rand_chacha::ChaCha8Rng;

use super::options::refuse;
use super::priors::{Block, priors};
use super::{ModelKind, of_state, siplca_select};
use crate::approximation::Approximation;
use crate::args::{self, FitArgs, MissingMethod, PlaceArgs, SelectArgs, TransformArgs};
use crate::failure::Failure;
use crate::given;
use crate::limits::parameters;
use crate::saved::Saved;
use crate::select::Table;
use crate::solver::extrapolated;
use crate::transform::{Found, along, explain};

/// The model `siplca`.
pub(crate) struct ShiftInvariant;

impl ModelKind for ShiftInvariant {
    of_state!(ShiftedState<f64>, boxed);

    fn about(&self) -> &'static str {
        "Shift-invariant PLCA of any order"
    }

    fn component_axis(&self, _: &str) -> usize {
        0
    }

    fn shifts(&self) -> bool {
        true
    }

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        siplca_select::scores(args)
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let state: ShiftedState<f64> = file.state()?;
        let geometry = state.geometry();
        let places = geometry.impulse_shape();
        let order = places.len();
        let along = along(args, order - 1, |d| d < order)?;
        let others = places.iter().enumerate().filter(|&(d, _)| d != along);
        let each = others.fold(state.weights().len(), |n, (_, &m)| n.saturating_mul(m));
        let learnt = state.shape();
        let mut found = explain(&ShiftInvariant, args, along, each, |data, how| {
            let got = data.shape();
            let other = |d: usize| d != along && got[d] != learnt[d];
            if got.len() != order || (0..order).any(other) {
                let size = |d: usize| match d == along {
                    true => "any".into(),
                    false => learnt[d].to_string(),
                };
                return Err(FitError::DataShape {
                    got: got.to_vec(),
                    expected: (0..order).map(size).collect(),
                });
            }
            let explained = state.transform(data, &how)?.untyped();
            let mut arrays = self.file(explained.fit.state()).arrays;
            arrays.retain(|name, _| name == "weights" || name == "impulses");
            Ok((explained, arrays))
        })?;
        // There is one gap for all observations.
        if let Some(gap) = found.arrays.get_mut("gap") {
            gap.shape.clear();
        }
        Ok(found)
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Box::new(Convolution(file.state()?)))
    }
}

fn support(domain: args::Domain) -> Support {
    match domain {
        args::Domain::Valid => Support::Valid,
        args::Domain::Same => Support::Same,
        args::Domain::Full => Support::Full,
    }
}

/// Refuses kernels that could not be held.
pub(super) fn reasonable(rank: usize, kernel: &[usize], shape: &[usize]) -> Result<(), Failure> {
    let sizes = shape.iter().zip(kernel);
    let cells = sizes.fold(rank, |n, (i, k)| n.saturating_mul(i.saturating_add(*k)));
    parameters(cells, || {
        format!("{rank} kernels of {kernel:?} are too many for data of shape {shape:?}")
    })
}

/// Refuses a kernel of another order than the data.
pub(super) fn check_order(kernel: &[usize], shape: &[usize]) -> Result<(), Failure> {
    if kernel.len() == shape.len() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "a kernel of {} extents {kernel:?} does not fit data of shape {shape:?}",
        kernel.len()
    )))
}

/// Where and how the kernels are shifted.
pub(super) fn placed<T: Element>(
    mut builder: ShiftedBuilder<T>,
    places: &PlaceArgs,
) -> ShiftedBuilder<T> {
    if places.likelihood == Some(args::Likelihood::Literal) {
        builder = builder.likelihood(Likelihood::Literal);
    }
    if !places.domain.is_empty() {
        builder = builder.supports(places.domain.iter().copied().map(support).collect());
    }
    if let Some(anneal) = places.anneal {
        builder = builder.anneal(anneal);
    }
    if let Some(power) = places.impulse_power {
        builder = builder.impulse_power(power);
    }
    builder
}

/// The model of the command line, for data of this shape.
fn boxed<T: Element>(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<Box<dyn AnyModel<T>>, Failure> {
    refuse(args.given.is_some(), "--given", "siplca")?;
    refuse(args.update.is_some(), "--update", "siplca")?;
    let tempered = args.temper.is_some() || args.temper_prior;
    refuse(tempered, "--temper", "siplca")?;
    let multiplicative = args.missing_method == Some(MissingMethod::Multiplicative);
    refuse(multiplicative, "--missing-method multiplicative", "siplca")?;
    let shifts = &args.shifts;
    let powers = shifts.places.anneal.is_some() || shifts.places.impulse_power.is_some();
    if let (Some(option), true) = (extrapolated(args), powers) {
        return Err(Failure::usage(format!(
            "{option} goes with neither --anneal nor --impulse-power"
        )));
    }
    let kernel = kernel(args, shape)?;
    reasonable(rank, &kernel, shape)?;
    let mut builder = placed(Shifted::builder(rank, kernel), &shifts.places);
    for name in &args.fix {
        builder = builder.freeze(name);
    }
    let geometry = builder.clone().build()?.geometry(shape);
    let geometry = geometry.map_err(|e| Failure::by(&args.data, e))?;
    let blocks = [
        Block::vector("weights", rank),
        Block::stack("kernels", geometry.kernel_shape(), rank),
        Block::stack("impulses", geometry.impulse_shape(), rank),
    ];
    for (name, prior) in priors(args, &blocks)? {
        builder = builder.prior(name, prior);
    }
    Ok(Box::new(builder.build()?))
}

/// Extents of the kernels, from `--kernel` or from the kernels in `--init`.
fn kernel(args: &FitArgs, shape: &[usize]) -> Result<Vec<usize>, Failure> {
    let kernel = match &args.shifts.kernel {
        Some(sizes) => sizes.0.clone(),
        None => {
            let (given, _) = given::blocks(args, shape.len())?;
            let given = given.get("kernels").map(|array| array.shape.iter().skip(1));
            let need = "--kernel is needed where --init gives no kernels";
            given
                .ok_or_else(|| Failure::usage(need))?
                .copied()
                .collect()
        }
    };
    check_order(&kernel, shape)?;
    Ok(kernel)
}

/// `s P(x)`
struct Convolution(ShiftedState<f64>);

impl Approximation for Convolution {
    fn shape(&self) -> Vec<usize> {
        self.0.shape()
    }

    fn evaluate(&self, into: &mut Array<f64>) -> Result<(), Failure> {
        into.values = self.0.reconstruct()?.into_parts().1;
        Ok(())
    }

    fn components(&self) -> usize {
        self.0.components()
    }

    fn component(&self, z: usize) -> Result<Vec<f64>, Failure> {
        Ok(self.0.component(z)?.into_parts().1)
    }

    fn sample(
        &self,
        draws: u64,
        rng: &mut ChaCha8Rng,
        into: &mut Array<f64>,
    ) -> Result<(), Failure> {
        // What falls outside of the data is not seen: events are drawn among those that do not.
        let cells = self.0.reconstruct()?.into_parts().1;
        let cells = Categorical::new(&cells).map_err(Failure::new)?;
        for _ in 0..draws {
            into.values[cells.sample(rng)] += 1.0;
        }
        Ok(())
    }
}
