//! Kernels that are turned, resized, mirrored and shifted: `tiplca`.

use plca::em::{IndexMaps, Likelihood, Positions, Transformation, Transformed, TransformedState};
use plca::fit::{Anneal, Explained, Parameters, Settings, Transform};
use plca::priors::{Dirichlet, PriorSpec, Priors};
use plca::tensor::Data;

use super::{Asked, Kind, Layout, annealing};
use crate::data::Scalar;
use crate::error::{Refused, wrong};
use crate::options::{Options, Setting};

pub(crate) struct TransformInvariant;

impl Kind for TransformInvariant {
    type State<T: Scalar> = TransformedState<T>;
    type Model<T: Scalar> = Transformed;

    fn build<T: Scalar>(Asked { options, k, shape }: Asked<'_>) -> Result<Self::Model<T>, Refused> {
        let Some(kernel) = options.counts("kernel")? else {
            return wrong("`kernel` is None, expected an extent for every dimension of X");
        };
        let angles = options.numbers("angles")?.unwrap_or_else(|| vec![0.0]);
        let scales = options.numbers("scales")?.unwrap_or_else(|| vec![1.0]);
        let set = Transformation::product(&angles, &scales, options.flag("mirror")?)?;
        let positions = [
            ("valid", Positions::Valid),
            ("full", Positions::Full),
            ("centred", Positions::Centred),
        ];
        let positions = options.choice("positions", &positions)?;
        let positions = positions.unwrap_or(Positions::Valid);
        let maps = IndexMaps::placed(&set, &kernel, shape, positions)?;
        let places = maps.maps();
        let mut model = Transformed::new(k, maps);
        let likelihoods = [
            ("conditional", Likelihood::Conditional),
            ("literal", Likelihood::Literal),
        ];
        if let Some(likelihood) = options.choice("likelihood", &likelihoods)? {
            model = model.likelihood(likelihood);
        }
        if let Some(power) = options.number("impulse_power")? {
            model = model.impulse_power(Anneal::constant(power));
        }
        if let Some(power) = annealing(options)? {
            model = model.anneal(power);
        }
        with_frozen!(model, options);
        with_priors!(model, options, {
            vec![
                ("weights".into(), (k, 1), Layout::Columns),
                (
                    "kernels".into(),
                    (kernel.iter().product(), k),
                    Layout::Columns,
                ),
                ("impulses".into(), (places, k), Layout::Columns),
            ]
        });
        Ok(model.checked()?)
    }

    explains!();
}
