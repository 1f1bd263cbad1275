//! Kernels that are placed on the data.

use plca_dist::random::Categorical;
use plca_em::{
    IndexMaps, Likelihood, Positions, ShiftedState, Transformation, TransformedState,
    shifted_parameters,
};
pub(super) use plca_em::{Shifted, Transformed};
use plca_fit::setting::{Named, SettingSpec};
use plca_fit::{Anneal, FitError, Reconstruct, Transform};
use plca_priors::PriorSpec;
use plca_tensor::Data;

use crate::approximation::{Draws, Fitted};
use crate::explain::{along, whole, without_dimension};
use crate::kind::{Extents, Kind, named, with_imputation};
use crate::options::{wrong, wrong_value};
use crate::{Answer, Approximation, Explainer, Law, Options, RunError, Saved, Scalar};

impl Kind for Shifted {
    types!(ShiftedState);
    priors!();
    explains!(|_model, learnt, data, how| learnt.transform(data, &without_dimension(how))?);
    const ABOUT: &'static str = "Shift-invariant PLCA of any order";
    const RUNS: &'static str = "kkt_tol prior priors freeze freeze_entries accelerate";
    const LAWS: &'static [(&'static str, Law)] = &[
        ("weights", Law::Simplex),
        ("kernels", Law::Simplex),
        ("impulses", Law::Simplex),
    ];
    const KERNELS: Option<&'static str> = Some("kernels");

    fn specs() -> Vec<SettingSpec> {
        with_imputation(<Self as Named>::specs())
    }

    fn build(k: usize, options: &Options, _: &[usize]) -> Result<Self, RunError> {
        named(Self::new(k, Vec::new()), options)
    }

    fn extents(&self, shape: &[usize]) -> Result<Extents, FitError> {
        let geometry = self.geometry(shape)?;
        Ok(vec![
            ("kernels", geometry.kernel_shape().to_vec()),
            ("impulses", geometry.impulse_shape().to_vec()),
        ])
    }

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        let state: ShiftedState<f64> = file.state()?;
        let geometry = state.geometry();
        let places = geometry.impulse_shape();
        let order = places.len();
        let along = along(asked, order - 1, |d| d < order)?;
        let others = places.iter().enumerate().filter(|&(d, _)| d != along);
        let each = others.fold(state.weights().len(), |n, (_, &m)| n.saturating_mul(m));
        let (k, blocks) = (state.weights().len(), ["weights", "impulses", "scale"]);
        let model = Self::new(k, geometry.kernel_shape().to_vec());
        let shape = state.shape();
        let explainer = Explainer::new(model, state, (along, each), &blocks);
        Ok(explainer.with_one_gap().with_shape(shape))
    }

    fn free_parameters(&self, shape: &[usize]) -> Result<Option<usize>, FitError> {
        let geometry = self.geometry(shape)?;
        let cells = [geometry.kernel_cells(), geometry.impulse_cells()];
        let all = shape.iter().fold(1usize, |all, &n| all.saturating_mul(n));
        // Never more than the cells less one.
        let parameters = shifted_parameters(cells, self.components, false);
        Ok(Some(parameters.min(all - 1)))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::sum(file.state::<ShiftedState<f64>>()?, draw))
    }
}

/// Settings of transformed kernels, from which their maps follow once the shape of the data is known.
#[derive(Debug, Default)]
struct Turned {
    kernel: Vec<usize>,
    rotations: Option<usize>,
    angles: Vec<f64>,
    scales: Vec<f64>,
    mirror: bool,
    positions: Positions,
    likelihood: Likelihood,
    anneal: Option<Anneal>,
    impulse_power: Option<Anneal>,
}

plca_fit::by_name!(Turned {
    kernel: plca_em::KERNEL_EXTENTS;
    rotations: ["rotations", "N", "Model", "Rotations by 360 i/N degrees [default: 1]"];
    angles: ["angles", "A,B,…", "Model", "Rotations by these angles in degrees, in place of --rotations"];
    scales: ["scales", "S,T,…", "Model", "Scales, as multiples of the size of the kernel [default: 1]"];
    mirror: ["mirror", "", "Model", "Also mirrors the kernels"];
    positions: ["positions", "WHERE", "Model", "Where kernels may lie: valid, full or centred [default: valid]"];
    likelihood: plca_em::LIKELIHOOD;
    anneal: plca_em::ANNEAL;
    impulse_power: plca_em::IMPULSE_POWER;
});

impl Turned {
    fn maps(&self, shape: &[usize]) -> Result<IndexMaps, RunError> {
        let angles = match (self.rotations, &self.angles[..]) {
            (Some(_), [_, ..]) => {
                return Err(wrong("angles", "cannot be used with rotations"));
            }
            (Some(n @ 1..=65535), _) => (0..n).map(|i| 360.0 * i as f64 / n as f64).collect(),
            (Some(n), _) => {
                return Err(wrong_value(
                    "rotations",
                    n.to_string(),
                    "expected 1 to 65535",
                ));
            }
            (None, []) => vec![0.0],
            (None, angles) => angles.to_vec(),
        };
        let scales: &[f64] = match &self.scales[..] {
            [] => &[1.0],
            scales => scales,
        };
        let all = Transformation::product(&angles, scales, self.mirror)?;
        let maps = IndexMaps::placed(&all, &self.kernel, shape, self.positions);
        maps.map_err(RunError::Shape)
    }
}

/// Draws events of `s P(x)`.
fn draw<S: Reconstruct<Scalar = f64>>(state: &S, draws: Draws<'_>) -> Result<(), RunError> {
    // What falls outside of the data is not seen: events are drawn among those that do not.
    let cells = state.reconstruct()?.into_parts().1;
    let cells = Categorical::new(&cells).map_err(|e| RunError::Draw(e.to_string()))?;
    for _ in 0..draws.number {
        draws.into.values[cells.sample(draws.rng)] += 1.0;
    }
    Ok(())
}

impl Kind for Transformed {
    types!(TransformedState);
    priors!();
    explains!(|_model, learnt, data, how| learnt.transform(data, &without_dimension(how))?);
    const ABOUT: &'static str = "PLCA invariant to rotations, scales, mirroring and shifts";
    const RUNS: &'static str = "kkt_tol prior priors freeze freeze_entries accelerate";
    const LAWS: &'static [(&'static str, Law)] = <Shifted as Kind>::LAWS;
    const KERNELS: Option<&'static str> = Some("kernels");

    fn specs() -> Vec<SettingSpec> {
        with_imputation(<Turned as Named>::specs())
    }

    fn build(k: usize, options: &Options, shape: &[usize]) -> Result<Self, RunError> {
        let turned = named(Turned::default(), options)?;
        let mut model = Self::new(k, turned.maps(shape)?).likelihood(turned.likelihood);
        (model.anneal, model.impulse_power) = (turned.anneal, turned.impulse_power);
        Ok(model)
    }

    fn extents(&self, _: &[usize]) -> Result<Extents, FitError> {
        Ok(vec![
            ("kernels", self.maps.kernel_shape().to_vec()),
            ("impulses", vec![self.maps.maps()]),
        ])
    }

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        whole(
            asked,
            "tiplca transforms only data of the shape that it was fitted to",
        )?;
        let state: TransformedState<f64> = file.state()?;
        let k = state.weights().len();
        let blocks = ["weights", "impulses"];
        let model = Self::new(k, state.maps().clone());
        Ok(Explainer::new(model, state, (0, k), &blocks).with_one_gap())
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::sum(file.state::<TransformedState<f64>>()?, draw))
    }
}
