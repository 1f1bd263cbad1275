//! `plsa-vb`: PLSA by variational Bayes, which is latent Dirichlet allocation.

use std::path::Path;

use nalgebra::DMatrix;
use plca_em::{Given, Plsa, PlsaVb, PlsaVbState};
use plca_fit::{Settings, Explained, Model, State};
use serde_json::json;

use super::bayes::{self, refused};
use super::options::need_matrix;
use super::plsa::given_by;
use super::priors::{Block, Laws, priors};
use super::skellam::prior_specs;
use super::{ModelKind, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{FitArgs, Precision, SelectArgs, TransformArgs};
use crate::failure::Failure;
use crate::given;
use crate::online::{self, Beside};
use crate::saved::Saved;
use crate::select::Table;
use crate::shards;
use crate::transform::{Found, along, explain};

/// The model `plsa-vb`.
pub(crate) struct AsymmetricVb;

impl ModelKind for AsymmetricVb {
    of_state!(PlsaVbState<f64>, model);

    fn about(&self) -> &'static str {
        "Asymmetric PLSA of a matrix, by variational Bayes (LDA)"
    }

    fn options(&self) -> &'static str {
        "--given --prior --priors --fix --accelerate --shards --online"
    }

    fn priors(&self) -> String {
        "dirichlet:A".into()
    }

    fn objective(&self, _: bool) -> &'static str {
        "elbo"
    }

    fn shards(&self, args: &FitArgs) -> Result<(), Failure> {
        match args.precision {
            Precision::F64 => shards::fit::<f64, _>(args, model),
            Precision::F32 => shards::fit::<f32, _>(args, model),
        }
    }

    fn online(&self, args: &FitArgs) -> Result<(), Failure> {
        let name = |_| "basis_shape".into();
        match args.precision {
            Precision::F64 => online::fit::<f64, _>(args, name, Beside::Means, model),
            Precision::F32 => online::fit::<f32, _>(args, name, Beside::Means, model),
        }
    }

    fn select(&self, args: &SelectArgs) -> Result<Table, Failure> {
        let given = given_by(args.given.unwrap_or(1).into());
        let make = |rank, shape: &[usize]| {
            need_matrix(&args.data, "plsa-vb", shape)?;
            let model = settings(&args.prior, None, (rank, given), shape)?.checked();
            model.map_err(Failure::usage)
        };
        bayes::scores(args, make, |state, data| {
            let plsa = Plsa::new(state.basis_shape().ncols());
            let plsa = plsa.given(given).checked()?;
            let means = state.means()?;
            plsa.bind(data)?.likelihood(means.parameters())
        })
    }

    fn transform(&self, mut file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let given = given_by(file.metadata["settings"]["given"].as_u64().unwrap_or(1));
        let along = along(args, given.mode(), |d| d == given.mode())?;
        let specs = prior_specs(&file);
        let basis = file.block("basis_shape")?;
        let (rows, k) = basis.shape();
        // Mixtures of what it was fitted to play no part: a file of --online has none.
        let one = DMatrix::from_element(k, 1, 1.0);
        let learnt = PlsaVbState::new(given, basis, one).map_err(|e| file.failure(e))?;
        let mut shape = [1; 2];
        shape[given.explained()] = rows;
        let model = settings(&specs, None, (k, given), &shape)?.checked()?;
        let mut perplexity = f64::NAN;
        let found = explain(
            self,
            args,
            (along, k),
            &["mixture_shape", "mixture"],
            |data, how| {
                let explained = model.transform(&learnt, data, &how)?;
                // [EXT 3] exp(-bound / v)
                perplexity = (-explained.fit.objective() / data.total()).exp();
                // Topics are not written, and may be large.
                let explained = explained.untyped();
                let forget = |j: usize, block: &mut DMatrix<f64>| {
                    if j == 0 {
                        *block = DMatrix::from_element(1, k, 1.0);
                    }
                };
                Ok(Explained {
                    fit: explained.fit.change(|at| at.change(forget))?,
                    ..explained
                })
            },
        )?;
        let mut summary = found.summary;
        summary["perplexity"] = json!(perplexity);
        Ok(Found { summary, ..found })
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        let means = file.state::<PlsaVbState<f64>>()?.means();
        Ok(Fitted::factored(means?))
    }
}

fn settings(
    specs: &[String],
    file: Option<&Path>,
    (rank, given): (usize, Given),
    shape: &[usize],
) -> Result<PlsaVb, Failure> {
    let blocks = [
        Block::matrix("basis", shape[given.explained()], rank),
        Block::matrix("mixture", rank, shape[given.mode()]),
    ];
    let blocks = blocks.map(|b| b.under(Laws::Dirichlet));
    let priors = priors(specs, file, &blocks)?.into_iter();
    let model = PlsaVb::new(rank).given(given);
    Ok(priors.fold(model, |b, (name, prior)| b.prior(name, prior)))
}

fn model(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<PlsaVb, Failure> {
    need_matrix(&args.data, "plsa-vb", shape)?;
    let (file, given) = (
        args.priors.as_deref(),
        given_by(args.given.unwrap_or(1).into()),
    );
    let model = settings(&args.prior, file, (rank, given), shape)?;
    let model = given::freeze(args, shape, model)?;
    model.checked().map_err(|e| refused(file, e))
}
