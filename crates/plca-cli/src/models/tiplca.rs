//! `tiplca`: invariant to rotations, scales, mirrors and shifts.

use plca_fit::Settings;
use plca_em::{IndexMaps, Likelihood, Positions, Transformation, Transformed, TransformedState};

use super::options::refuse;
use super::priors::{Block, priors};
use super::siplca::{draw, kernel, reasonable};
use super::{ModelKind, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{self, BoxPositions, FitArgs, MissingMethod, TransformArgs};
use crate::failure::Failure;
use crate::given;
use crate::saved::Saved;
use crate::solver::extrapolated;
use crate::transform::{Found, explain};

/// The model `tiplca`.
pub(crate) struct TransformInvariant;

impl ModelKind for TransformInvariant {
    of_state!(TransformedState<f64>, model);

    fn about(&self) -> &'static str {
        "PLCA invariant to rotations, scales, mirroring and shifts"
    }

    fn options(&self) -> &'static str {
        "--kernel --rotations --angles --scales --mirror --positions --likelihood --anneal --impulse-power --missing-method --kkt-tol --prior --priors --fix --freeze-entries --accelerate"
    }

    fn shifts(&self) -> bool {
        true
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        if args.along.is_some() {
            return Err(Failure::usage(
                "--along: tiplca transforms only data of the shape that it was fitted to",
            ));
        }
        let state: TransformedState<f64> = file.state()?;
        let k = state.weights().len();
        let found = explain(self, args, (0, k), &["weights", "impulses"], |data, how| {
            Ok(state.transform(data, &how)?.untyped())
        })?;
        Ok(found.with_one_gap())
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let state: TransformedState<f64> = file.state()?;
        Ok(Fitted::sum(state, draw))
    }
}

fn model(
    args: &FitArgs,
    rank: usize,
    shape: &[usize],
) -> Result<Transformed, Failure> {
    let multiplicative = args.missing_method == Some(MissingMethod::Multiplicative);
    refuse(multiplicative, "--missing-method multiplicative", "tiplca")?;
    let places = &args.shifts.places;
    let powers = places.anneal.is_some() || places.impulse_power.is_some();
    if let (Some(option), true) = (extrapolated(args), powers) {
        return Err(Failure::usage(format!(
            "{option} cannot be combined with --anneal or --impulse-power"
        )));
    }
    let kernel = kernel(args, shape)?;
    reasonable(rank, &kernel, shape)?;
    let turns = &args.turns;
    let angles = match (turns.rotations, &turns.angles[..]) {
        (Some(n), _) => (0..n)
            .map(|i| 360.0 * f64::from(i) / f64::from(n))
            .collect(),
        (None, []) => vec![0.0],
        (None, angles) => angles.to_vec(),
    };
    let scales: &[f64] = if turns.scales.is_empty() {
        &[1.0]
    } else {
        &turns.scales
    };
    let all = Transformation::product(&angles, scales, turns.mirror);
    let positions = match turns.positions {
        None | Some(BoxPositions::Valid) => Positions::Valid,
        Some(BoxPositions::Full) => Positions::Full,
        Some(BoxPositions::Centred) => Positions::Centred,
    };
    let all = all.map_err(Failure::usage)?;
    let maps = IndexMaps::placed(&all, &kernel, shape, positions);
    let maps = maps.map_err(|e| Failure::by(&args.data, e))?;
    let extents: [(&str, &[usize]); 2] = [("kernels", &kernel), ("impulses", &[maps.maps()])];
    given::stacks(args, shape.len(), rank, &extents)?;
    let blocks = [
        Block::vector("weights", rank),
        Block::stack("kernels", &kernel, rank),
        Block::stack("impulses", &[maps.maps()], rank),
    ];
    let mut model = Transformed::new(rank, maps);
    if places.likelihood == Some(args::Likelihood::Literal) {
        model = model.likelihood(Likelihood::Literal);
    }
    if let Some(anneal) = places.anneal {
        model = model.anneal(anneal);
    }
    if let Some(power) = places.impulse_power {
        model = model.impulse_power(power);
    }
    let mut model = given::freeze(args, shape, model)?;
    for (name, prior) in priors(&args.prior, args.priors.as_deref(), &blocks)? {
        model = model.prior(name, prior);
    }
    Ok(model.checked()?)
}
