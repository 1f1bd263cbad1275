//! `ntf-l2`: non-negative factors of any order under squared error, the baseline.

use plca_fit::Settings;
use plca_fit::Reconstruct as _;
use pntf_l2::{Ntf, NtfState, NtfUpdate};

use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{ConsensusArgs, FitArgs, TransformArgs, Update};
use crate::consensus::Candidate;
use crate::failure::Failure;
use crate::given;
use crate::models::options::unknown_update;
use crate::saved::Saved;
use crate::transform::{Found, along, explain};

/// The model `ntf-l2`.
pub(crate) struct LeeSeung;

impl ModelKind for LeeSeung {
    of_state!(NtfState<f64>, model);

    fn about(&self) -> &'static str {
        "Non-negative factorization of any order under squared error (Lee and Seung)"
    }

    fn options(&self) -> &'static str {
        "--transpose --fix --update"
    }

    fn takes(&self) -> Takes {
        Takes::Numbers
    }

    fn objective(&self, _: bool) -> &'static str {
        "squared_error"
    }

    fn consensus(&self, _: &ConsensusArgs, rank: usize) -> Result<Candidate, Failure> {
        Ok(Candidate::new(Ntf::new(rank), "factor_0"))
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let order = file.order()?;
        let along = along(args, order - 1, |d| d < order)?;
        let state: NtfState<f64> = file.state()?;
        let (factor, k) = (format!("factor_{along}"), state.components());
        explain(self, args, (along, k), &[&factor], |data, how| {
            Ok(state.transform(data, &how.along(along))?.untyped())
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::factored(file.state::<NtfState<f64>>()?))
    }
}

fn model(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<Ntf, Failure> {
    let mut model = given::freeze(args, shape, Ntf::new(rank))?;
    if let Some(update) = args.update {
        model = model.update(match update {
            Update::Multiplicative => NtfUpdate::Multiplicative,
            Update::Hals => NtfUpdate::Hals,
            other => return Err(unknown_update("ntf-l2", other, "multiplicative, hals")),
        });
    }
    Ok(model.checked()?)
}
