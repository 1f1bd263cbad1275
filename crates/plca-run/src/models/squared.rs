//! Squared error.

use std::collections::BTreeMap;

use plca_fit::setting::{Named, SettingSpec};
use plca_fit::{FitError, Reconstruct as _, State as _, Transform};
use plca_priors::PriorSpec;
use plca_tensor::Data;
pub(super) use pntf_l2::{Ntf, Pntf};
use pntf_l2::{NtfState, PntfState};

use crate::approximation::Fitted;
use crate::explain::along;
use crate::kind::{Kind, named};
use crate::options::wrong_value;
use crate::{Answer, Approximation, Explainer, Options, RunError, Saved, Scalar, Takes};

impl Kind for Pntf {
    types!(PntfState);
    explains!(|_model, learnt, data, how| learnt.transform(data, how)?);
    const SPECTRA: Option<&'static str> = Some("factor_0");
    const ABOUT: &'static str =
        "Factorization of any order under squared error, weights and factors on the simplex";
    const RUNS: &'static str = "transpose freeze accelerate";
    const TAKES: Takes = Takes::Numbers;
    const OBJECTIVE: [&'static str; 2] = ["squared_error", "penalised_squared_error"];

    fn specs() -> Vec<SettingSpec> {
        <Self as Named>::specs()
    }

    fn build(k: usize, options: &Options, shape: &[usize]) -> Result<Self, RunError> {
        let mut known = PntfState::<f64>::block_names(shape.len());
        known.retain(|name| name != "mass");
        let sparse = options.get::<BTreeMap<String, f64>>("sparsity")?;
        if let Some(other) = sparse
            .iter()
            .flat_map(|all| all.iter())
            .find(|(name, _)| !known.contains(name))
        {
            let (name, mu) = other;
            let what = format!("no block `{name}`; there are {}", known.join(", "));
            return Err(wrong_value("sparsity", format!("{name}={mu}"), what));
        }
        named(Self::new(k), options)
    }

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        let order = file.order()?;
        let along = along(asked, order - 1, |d| d < order)?;
        let state: PntfState<f64> = file.state()?;
        let k = state.weights().len();
        Ok(Explainer::new(
            Self::new(k),
            state,
            (along, k),
            &["mixture"],
        ))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::factored(file.state::<PntfState<f64>>()?))
    }
}

impl Kind for Ntf {
    types!(NtfState);
    explains!(|model, learnt, data, how| model.transform(learnt, data, how)?);
    by_name!(k => Ntf::new(k));
    priors!();
    const PENALTIES: bool = true;
    const SPECTRA: Option<&'static str> = Some("factor_0");
    const ABOUT: &'static str =
        "Non-negative factorization of any order under squared error (Lee and Seung)";
    const RUNS: &'static str = "transpose freeze";
    const TAKES: Takes = Takes::Numbers;
    const OBJECTIVE: [&'static str; 2] = ["squared_error"; 2];

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        let order = file.order()?;
        let along = along(asked, order - 1, |d| d < order)?;
        let state: NtfState<f64> = file.state()?;
        let (factor, k) = (format!("factor_{along}"), state.components());
        Ok(Explainer::new(Self::new(k), state, (along, k), &[&factor]))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::factored(file.state::<NtfState<f64>>()?))
    }
}
