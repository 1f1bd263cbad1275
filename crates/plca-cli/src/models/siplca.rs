//! `siplca`: kernels shifted along any dimensions, any order.

use plca_dist::random::Categorical;
use plca_em::{Likelihood, Shifted, ShiftedState, Support};
use plca_fit::{Settings, FitError, Impossible, Reconstruct, Transform};
use plca_tensor::Data;
use serde_json::Value;

use super::options::refuse;
use super::priors::{Block, priors};
use super::{ModelKind, of_state, siplca_select};
use crate::approximation::{Approximation, Draws, Fitted};
use crate::args::{self, FitArgs, MissingMethod, PlaceArgs, SelectArgs, TransformArgs};
use crate::failure::Failure;
use crate::given;
use crate::limits::parameters;
use crate::saved::Saved;
use crate::select::Table;
use crate::separate::told;
use crate::solver::extrapolated;
use crate::transform::{Found, along, explain};

/// The model `siplca`.
pub(crate) struct ShiftInvariant;

impl ModelKind for ShiftInvariant {
    of_state!(ShiftedState<f64>, model);

    fn about(&self) -> &'static str {
        "Shift-invariant PLCA of any order"
    }

    fn options(&self) -> &'static str {
        "--kernel --domain --likelihood --anneal --impulse-power --missing-method --kkt-tol --prior --priors --fix --freeze-entries --accelerate"
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
        let blocks = ["weights", "impulses", "scale"];
        let found = explain(self, args, (along, each), &blocks, |data, how| {
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
            Ok(state.transform(data, &how)?.untyped())
        })?;
        Ok(found.with_one_gap())
    }

    fn explained(
        &self,
        file: Saved,
        data: &dyn Data<f64>,
    ) -> Result<(Box<dyn Approximation>, Value), Failure> {
        let state: ShiftedState<f64> = file.state()?;
        let how = Transform::default().impossible(Impossible::Drop);
        let fit = state.transform(data, &how)?.fit;
        let told = told(&fit);
        Ok((Fitted::sum(fit.into_state(), draw), told))
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let state: ShiftedState<f64> = file.state()?;
        Ok(Fitted::sum(state, draw))
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
        "--kernel: {} extents {kernel:?} for data of shape {shape:?}; expected {}, one for each dimension",
        kernel.len(),
        shape.len()
    )))
}

/// Where and how the kernels are shifted.
pub(super) fn placed(
    mut model: Shifted,
    places: &PlaceArgs,
) -> Shifted {
    if places.likelihood == Some(args::Likelihood::Literal) {
        model = model.likelihood(Likelihood::Literal);
    }
    if !places.domain.is_empty() {
        model = model.supports(places.domain.iter().copied().map(support).collect());
    }
    if let Some(anneal) = places.anneal {
        model = model.anneal(anneal);
    }
    if let Some(power) = places.impulse_power {
        model = model.impulse_power(power);
    }
    model
}

fn model(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<Shifted, Failure> {
    let multiplicative = args.missing_method == Some(MissingMethod::Multiplicative);
    refuse(multiplicative, "--missing-method multiplicative", "siplca")?;
    let shifts = &args.shifts;
    let powers = shifts.places.anneal.is_some() || shifts.places.impulse_power.is_some();
    if let (Some(option), true) = (extrapolated(args), powers) {
        return Err(Failure::usage(format!(
            "{option} cannot be combined with --anneal or --impulse-power"
        )));
    }
    let kernel = kernel(args, shape)?;
    reasonable(rank, &kernel, shape)?;
    let model = placed(Shifted::new(rank, kernel), &shifts.places);
    let mut model = given::freeze(args, shape, model)?;
    let geometry = model.clone().checked()?.geometry(shape);
    let geometry = geometry.map_err(|e| Failure::by(&args.data, e))?;
    let extents = [
        ("kernels", geometry.kernel_shape()),
        ("impulses", geometry.impulse_shape()),
    ];
    given::stacks(args, shape.len(), rank, &extents)?;
    let blocks = [
        Block::vector("weights", rank),
        Block::stack("kernels", geometry.kernel_shape(), rank),
        Block::stack("impulses", geometry.impulse_shape(), rank),
    ];
    for (name, prior) in priors(&args.prior, args.priors.as_deref(), &blocks)? {
        model = model.prior(name, prior);
    }
    Ok(model.checked()?)
}

/// Extents of the kernels, from `--kernel` or from the kernels in `--init`.
pub(super) fn kernel(args: &FitArgs, shape: &[usize]) -> Result<Vec<usize>, Failure> {
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
    if kernel.iter().zip(shape).any(|(k, n)| k > n) {
        let sizes: Vec<_> = shape.iter().map(usize::to_string).collect();
        let least: Vec<_> = kernel.iter().map(|k| format!("at least {k}")).collect();
        let what = format!(
            "the data are {}, expected {}, the extents of --kernel",
            sizes.join(" x "),
            least.join(" x ")
        );
        return Err(Failure::of(&args.data, what));
    }
    Ok(kernel)
}

/// Draws events of `s P(x)`.
pub(super) fn draw<S: Reconstruct<Scalar = f64>>(
    state: &S,
    draws: Draws<'_>,
) -> Result<(), Failure> {
    // What falls outside of the data is not seen: events are drawn among those that do not.
    let cells = state.reconstruct()?.into_parts().1;
    let cells = Categorical::new(&cells).map_err(Failure::new)?;
    for _ in 0..draws.number {
        draws.into.values[cells.sample(draws.rng)] += 1.0;
    }
    Ok(())
}
