//! `pntf`: weights and factors on the simplex under squared error, any order.

use plca_io::Element;
use pntf_l2::{Pntf, PntfState};

use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{ConsensusArgs, FitArgs, TransformArgs};
use crate::consensus::Candidate;
use crate::failure::Failure;
use crate::saved::Saved;
use crate::transform::{Found, along, explain};

/// The model `pntf`.
pub(crate) struct OnSimplex;

impl ModelKind for OnSimplex {
    of_state!(PntfState<f64>, model);

    fn about(&self) -> &'static str {
        "Factorization on the simplex of any order, under squared error"
    }

    fn options(&self) -> &'static str {
        "--fix --accelerate --no-normalise"
    }

    fn takes(&self) -> Takes {
        Takes::Numbers
    }

    fn objective(&self, _: bool) -> &'static str {
        "squared_error"
    }

    fn consensus(&self, _: &ConsensusArgs, rank: usize) -> Result<Candidate, Failure> {
        Ok(Candidate::new(Pntf::builder(rank).build()?, "factor_0"))
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let order = file.order()?;
        let along = along(args, order - 1, |d| d < order)?;
        let state: PntfState<f64> = file.state()?;
        let k = state.weights().len();
        explain(self, args, (along, k), &["mixture"], |data, how| {
            Ok(state.transform(data, &how.along(along))?.untyped())
        })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::factored(file.state::<PntfState<f64>>()?))
    }
}

fn model<T: Element>(args: &FitArgs, rank: usize, _: &[usize]) -> Result<Pntf<T>, Failure> {
    let builder = Pntf::builder(rank).normalise(!args.no_normalise);
    let builder = args.fix.iter().fold(builder, |b, name| b.freeze(name));
    Ok(builder.build()?)
}
