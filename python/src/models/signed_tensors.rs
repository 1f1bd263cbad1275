//! Tensors of either sign, one factor of which has two sides: `skellam-cp` and `skellam-cp-vb`.

use plca::fit::{Each, Explained, Parameters, Settings, Transform};
use plca::priors::{Entries, PriorSpec};
use plca::skellam::{Reconstruct, SignedCp, SignedCpState, SignedCpVb, SignedCpVbState};
use plca::tensor::Data;

use super::skellam::{gamma, replicates};
use super::{Asked, Kind, Layout, dirichlet};
use crate::data::Scalar;
use crate::error::{Refused, wrong};
use crate::options::Options;

/// What a model is made of.
struct Given {
    signed: usize,
    scale: Option<usize>,
    dirichlet: Vec<(String, Entries)>,
    gamma: [Entries; 2],
}

impl Given {
    /// Takes them out; `rate` is that of what carries the scale without other word.
    fn of(options: &mut Options, k: usize, shape: &[usize], rate: f64) -> Result<Self, Refused> {
        let (signed, scale) = (options.count("signed_mode")?, options.count("scale_mode")?);
        for (name, mode) in [("signed_mode", signed), ("scale_mode", scale)] {
            if let Some(mode) = mode.filter(|&mode| mode >= shape.len()) {
                let order = shape.len();
                return wrong(format!(
                    "`{name}` is {mode}, but X has {order} dimensions, counted from 0"
                ));
            }
        }
        let mut settings = Self {
            signed: signed.unwrap_or(0),
            scale,
            dirichlet: Vec::new(),
            gamma: [Entries::All(1.0), Entries::All(rate)],
        };
        let scaled = match scale {
            Some(mode) => format!("factor_{mode}"),
            None => "weights".into(),
        };
        for (name, setting) in options.named("prior")? {
            let refused = |what: String| Refused::Value(format!("`prior` of '{name}': {what}"));
            if name == scaled {
                settings.gamma = gamma(&setting).map_err(refused)?;
                continue;
            }
            let mode = name.strip_prefix("factor_").and_then(|j| j.parse().ok());
            let mode = mode.filter(|&j: &usize| j < shape.len() && j != settings.signed);
            let shapes = match (name.as_str(), mode) {
                ("atoms", _) => sides(&setting, shape[settings.signed], k),
                (_, Some(j)) => dirichlet(&setting, (shape[j], k), Layout::Rows),
                _ => Err(format!(
                    "no such block, expected atoms, {scaled} or factor_D of the other dimensions"
                )),
            };
            settings
                .dirichlet
                .push((name.clone(), shapes.map_err(refused)?));
        }
        Ok(settings)
    }
}

/// Shapes of the atoms: of an array `F x K x 2` both sides one above the other.
fn sides(setting: &crate::options::Setting, rows: usize, k: usize) -> Result<Entries, String> {
    let both = (rows.saturating_mul(k), 2);
    Ok(match dirichlet(setting, both, Layout::Rows)? {
        Entries::Each(each) => {
            let side = |i: usize, z: usize| each[((i % rows) * k + z, i / rows)];
            Entries::Each(nalgebra::DMatrix::from_fn(2 * rows, k, side))
        }
        other => other,
    })
}

/// `build` of a model, with the rate of what carries the scale without other word, and what else its model is told.
macro_rules! builds {
    ($model:ident, $rate:expr, $more:expr) => {
        fn build<T: Scalar>(
            Asked { options, k, shape }: Asked<'_>,
        ) -> Result<Self::Model<T>, Refused> {
            let settings = Given::of(options, k, shape, $rate)?;
            let [a, b] = settings.gamma;
            let mut model = $more($model::new(k));
            model = model.replicates(replicates(options)?);
            model = model.signed_mode(settings.signed);
            let carrier = settings.scale.map(|mode| format!("factor_{mode}"));
            let carrier = carrier.unwrap_or("weights".into());
            model = model.scale_mode(settings.scale);
            model = model.prior(carrier, PriorSpec::Gamma(a, b));
            for (name, shapes) in settings.dirichlet {
                model = model.prior(name, shapes);
            }
            if options.flag("real_data")? {
                model = model.real_data(true);
            }
            with_frozen!(model, options);
            Ok(Settings::checked(model)?)
        }
    };
}

pub(crate) struct SignedTensor;

impl Kind for SignedTensor {
    type State<T: Scalar> = SignedCpState<T>;
    type Model<T: Scalar> = SignedCp;

    builds!(SignedCp, 0.0, |cp: SignedCp| cp.with_constants(true));
    explains_each_by_model!();
}

pub(crate) struct SignedTensorVb;

impl Kind for SignedTensorVb {
    type State<T: Scalar> = SignedCpVbState<T>;
    type Model<T: Scalar> = SignedCpVb;

    builds!(SignedCpVb, 1e-3, std::convert::identity);
    explains_each_by_model!();
}
