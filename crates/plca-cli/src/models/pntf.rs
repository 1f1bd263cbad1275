//! `pntf`: weights and factors on the simplex under squared error, any order.

use plca_fit::Settings;
use std::collections::BTreeSet;

use pntf_l2::{Pntf, PntfState};

use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{ConsensusArgs, FitArgs, TransformArgs};
use crate::consensus::Candidate;
use crate::failure::Failure;
use crate::given;
use crate::saved::Saved;
use crate::transform::{Found, along, explain};

/// The model `pntf`.
pub(crate) struct OnSimplex;

impl ModelKind for OnSimplex {
    of_state!(PntfState<f64>, model);

    fn about(&self) -> &'static str {
        "Factorization of any order under squared error, weights and factors on the simplex"
    }

    fn options(&self) -> &'static str {
        "--transpose --fix --accelerate --no-normalise --sparsity"
    }

    fn takes(&self) -> Takes {
        Takes::Numbers
    }

    fn objective(&self, sparse: bool) -> &'static str {
        match sparse {
            true => "penalised_squared_error",
            false => "squared_error",
        }
    }

    fn consensus(&self, _: &ConsensusArgs, rank: usize) -> Result<Candidate, Failure> {
        Ok(Candidate::new(Pntf::new(rank), "factor_0"))
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

fn model(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<Pntf, Failure> {
    let model = Pntf::new(rank).normalise(!args.no_normalise);
    let mut model = given::freeze(args, shape, model)?;
    let names = OnSimplex.blocks(shape.len());
    let mut given = BTreeSet::new();
    for spec in &args.sparsity {
        let bad = |what: &str| Failure::usage(format!("--sparsity {spec}: {what}"));
        let named = spec.split_once('=');
        let (name, mu) = named.ok_or_else(|| bad("BLOCK=MU is needed"))?;
        let mu: f64 = (mu.parse()).map_err(|_| bad(&format!("`{mu}` is not a number")))?;
        if !names.iter().any(|known| known == name) {
            let names = names.join(", ");
            return Err(bad(&format!("no block `{name}`; there are {names}")));
        }
        if !given.insert(name) {
            return Err(bad(&format!("`{name}` has a sparsity already")));
        }
        model = model.sparsity(name, mu);
    }
    Ok(model.checked()?)
}
