//! `plsa`: asymmetric, either direction.

use plca_fit::Settings;
use nalgebra::DMatrix;
use plca_em::{Given, Plsa, PlsaState};

use super::options::{missing, need_matrix, temper};
use super::priors::{Block, priors};
use super::{ModelKind, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{ConsensusArgs, FitArgs, MissingMethod, Precision, SelectArgs, TransformArgs};
use crate::consensus::Candidate;
use crate::failure::Failure;
use crate::given;
use crate::online::{self, Beside};
use crate::saved::Saved;
use crate::select::{self, Table, Validated};
use crate::shards;
use crate::transform::{Found, along, explain};

/// The model `plsa`.
pub(crate) struct Asymmetric;

impl ModelKind for Asymmetric {
    of_state!(PlsaState<f64>, model);

    fn about(&self) -> &'static str {
        "Asymmetric PLSA of a matrix"
    }

    fn options(&self) -> &'static str {
        "--given --temper --missing-method --kkt-tol --prior --priors --fix --freeze-entries --accelerate --out-of-core --shards --stepwise --online"
    }

    fn free_blocks(&self, _: usize) -> Vec<String> {
        // The marginal and the scale always come from the data and the fit.
        ["basis", "mixture"].map(String::from).to_vec()
    }

    fn shards(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => shards::fit::<f64, _>(args, model),
            Precision::F32 => shards::fit::<f32, _>(args, model),
        }
    }

    fn separates(&self) -> bool {
        true
    }

    fn online(&self, args: &FitArgs) -> Result<(), Failure> {
        let name = |_| "basis".into();
        match args.precision {
            Precision::F64 => online::fit::<f64, _>(args, name, Beside::Marginal, model),
            Precision::F32 => online::fit::<f32, _>(args, name, Beside::Marginal, model),
        }
    }

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        select::likelihood(args)
    }

    fn cross_validates(&self) -> bool {
        true
    }

    fn cross_validate(&self, args: &SelectArgs) -> Result<Validated, Failure> {
        select::validated(args, |rank| {
            imputes(args.validation.missing_method)?;
            let given = given_by(args.given.unwrap_or(1).into());
            Ok(Plsa::new(rank).given(given))
        })
    }

    fn consensus(&self, args: &ConsensusArgs, rank: usize) -> Result<Candidate, Failure> {
        let given = given_by(args.given.unwrap_or(1).into());
        let plsa = Plsa::new(rank).given(given);
        Ok(Candidate {
            samples: given.mode(),
            ..Candidate::new(plsa, "basis")
        })
    }

    fn transform(&self, mut file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        // The observations are what was given.
        let given = given_by(file.metadata["settings"]["given"].as_u64().unwrap_or(1));
        let along = along(args, given.mode(), |d| d == given.mode())?;
        let basis = file.distributions("basis")?;
        let k = basis.ncols();
        let one = DMatrix::from_element(k, 1, 1.0 / k as f64);
        let state = PlsaState::new(given, basis, one, vec![1.0]).map_err(|e| file.failure(e))?;
        explain(
            self,
            args,
            (along, k),
            &["mixture", "scale"],
            |data, how| Ok(state.transform(data, &how)?.untyped()),
        )
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::factored(file.state::<PlsaState<f64>>()?))
    }
}

fn model(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<Plsa, Failure> {
    need_matrix(&args.data, "plsa", shape)?;
    imputes(args.missing_method)?;
    let given = given_by(args.given.unwrap_or(1).into());
    let model = Plsa::new(rank).given(given).temper(temper(args)?.0);
    let mut model = given::freeze(args, shape, model)?;
    let blocks = [
        Block::matrix("basis", shape[given.explained()], rank),
        Block::matrix("mixture", rank, shape[given.mode()]),
    ];
    for (name, prior) in priors(&args.prior, args.priors.as_deref(), &blocks)? {
        model = model.prior(name, prior);
    }
    Ok(model.checked()?)
}

/// Refuses a treatment of missing cells that the model does not have.
fn imputes(method: Option<MissingMethod>) -> Result<(), Failure> {
    match missing(method) {
        Some(plca_em::Missing::Multiplicative) => Err(Failure::usage(
            "--missing-method multiplicative: plsa supports imputation of missing cells only",
        )),
        _ => Ok(()),
    }
}

/// The direction in which this mode is given.
pub(super) fn given_by(mode: u64) -> Given {
    match mode {
        0 => Given::Rows,
        _ => Given::Columns,
    }
}
