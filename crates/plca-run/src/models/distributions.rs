//! PLCA, PLSA and KL-NMF.

use nalgebra::{DMatrix, DVector};
use plca_em::{Given, NmfState, PlcaState, PlcaVbState, PlsaState, PlsaVbState};
pub(super) use plca_em::{Nmf, Plca, PlcaVb, Plsa, PlsaVb};
use plca_fit::shards::Sharded;
use plca_fit::{Explained, Named, SettingSpec, SettingValue};
use plca_priors::PriorSpec;

use crate::approximation::Fitted;
use crate::explain::along;
use crate::kind::{Kind, named, of_file, with_imputation};
use crate::{Answer, Approximation, Explainer, Law, Options, RunError, Saved, Scalar};

impl Kind for Plca {
    types!(PlcaState);
    by_name!(k => Plca::new(k));
    priors!();
    sharded!();
    const SPECTRA: Option<&'static str> = Some("factor_0");
    const ABOUT: &'static str = "Symmetric PLCA of any order";
    const RUNS: &'static str =
        "kkt_tol prior priors freeze freeze_entries accelerate out_of_core shards stepwise online";
    const LAWS: &'static [(&'static str, Law)] =
        &[("factor_*", Law::Simplex), ("weights", Law::Simplex)];
    const SEPARATES: bool = true;

    fn explainer(mut file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        let order = file.order()?;
        let along = along(asked, order - 1, |d| d < order)?;
        // A stream has no factor of what is looked for.
        let streamed = !file.settings()["online"].is_null();
        let learnt = (0..order).filter(|&j| j != along || !streamed);
        let learnt = learnt.map(|j| file.distributions(&format!("factor_{j}")));
        let mut factors = learnt.collect::<Result<Vec<_>, _>>()?;
        let k = match factors.first() {
            Some(factor) => factor.ncols(),
            None => file.block("weights")?.nrows(),
        };
        if streamed {
            factors.insert(along, DMatrix::from_element(1, k, 1.0));
        }
        let even = DVector::from_element(k, 1.0 / k as f64);
        let state = PlcaState::new(even, factors).map_err(|e| file.failure(e))?;
        let blocks = ["weights", &format!("factor_{along}"), "scale"];
        let explainer = Explainer::of_each((along, k), &blocks, move |data, how, each| {
            let how = how.along(along);
            Ok(match each {
                true => Answer::Each(state.transform_each(data, &how)?),
                false => state.transform(data, &how)?.untyped().into(),
            })
        });
        Ok(explainer.with_one_gap())
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::factored(file.state::<PlcaState<f64>>()?))
    }
}

impl Kind for Plsa {
    types!(PlsaState);
    priors!();
    sharded!();
    const SPECTRA: Option<&'static str> = Some("basis");
    const ABOUT: &'static str = "Asymmetric PLSA of a matrix";
    const RUNS: &'static str =
        "kkt_tol prior priors freeze freeze_entries accelerate out_of_core shards stepwise online";
    const LAWS: &'static [(&'static str, Law)] =
        &[("basis", Law::Simplex), ("mixture", Law::Simplex)];
    // The marginal and the scale always come from the data and the fit.
    const FREE: Option<&'static [&'static str]> = Some(&["basis", "mixture"]);
    const MATRIX: bool = true;
    const SEPARATES: bool = true;

    fn specs() -> Vec<SettingSpec> {
        with_imputation(<Self as Named>::specs())
    }

    fn build(k: usize, options: &Options, _: &[usize]) -> Result<Self, RunError> {
        named(Self::new(k), options)
    }

    fn explainer(mut file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        // The observations are what was given.
        let given = given(&file);
        let along = along(asked, given.mode(), |d| d == given.mode())?;
        let basis = file.distributions("basis")?;
        let k = basis.ncols();
        let one = DMatrix::from_element(k, 1, 1.0 / k as f64);
        let state = PlsaState::new(given, basis, one, vec![1.0]).map_err(|e| file.failure(e))?;
        let blocks = ["mixture", "scale"];
        Ok(Explainer::new((along, k), &blocks, move |data, how| {
            Ok(state.transform(data, &how)?.untyped())
        }))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::factored(file.state::<PlsaState<f64>>()?))
    }
}

/// The mode that is given in a file.
fn given(file: &Saved) -> Given {
    match file.settings()["given"].as_u64() {
        Some(0) => Given::Rows,
        _ => Given::Columns,
    }
}

impl Kind for PlcaVb {
    types!(PlcaVbState);
    by_name!(k => PlcaVb::new(k));
    priors!();
    sharded!();
    const ABOUT: &'static str = "Symmetric PLCA of any order, by variational Bayes";
    const RUNS: &'static str = "prior priors freeze accelerate shards";
    const LAWS: &'static [(&'static str, Law)] =
        &[("weights", Law::Dirichlet), ("factor_*", Law::Dirichlet)];
    const OBJECTIVE: [&'static str; 2] = ["elbo"; 2];

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        let order = file.order()?;
        let along = along(asked, order - 1, |d| d < order)?;
        let said = file.said();
        let learnt: PlcaVbState<f64> = file.state()?;
        let k = learnt.weights_shape().len();
        let shape: Vec<usize> = learnt.factors_shape().map(|f| f.nrows()).collect();
        let model: Self = of_file(&said, (k, &shape), &[])?;
        let (factor, means) = (format!("factor_{along}_shape"), format!("factor_{along}"));
        let blocks = ["weights_shape", "weights", &factor, &means];
        explainer!(model, learnt, along, k, &blocks)
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        let means = file.state::<PlcaVbState<f64>>()?.means();
        Ok(Fitted::factored(means?))
    }
}

impl Kind for PlsaVb {
    types!(PlsaVbState);
    by_name!(k => PlsaVb::new(k));
    priors!();
    sharded!();
    const ABOUT: &'static str = "Asymmetric PLSA of a matrix, by variational Bayes (LDA)";
    const RUNS: &'static str = "prior priors freeze accelerate shards online";
    const LAWS: &'static [(&'static str, Law)] =
        &[("basis", Law::Dirichlet), ("mixture", Law::Dirichlet)];
    const MATRIX: bool = true;
    const OBJECTIVE: [&'static str; 2] = ["elbo"; 2];

    fn explainer(mut file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        let given = given(&file);
        let along = along(asked, given.mode(), |d| d == given.mode())?;
        let basis = file.block("basis_shape")?;
        let (rows, k) = basis.shape();
        // Mixtures of what it was fitted to play no part: a file of --online has none.
        let one = DMatrix::from_element(k, 1, 1.0);
        let learnt = PlsaVbState::new(given, basis, one).map_err(|e| file.failure(e))?;
        let mut shape = [1; 2];
        shape[given.explained()] = rows;
        let mode = [("given", SettingValue::Number(given.mode() as f64))];
        let model: Self = of_file(&file, (k, &shape), &mode)?;
        let blocks = ["mixture_shape", "mixture"];
        let explainer = Explainer::new((along, k), &blocks, move |data, how| {
            let explained = model.transform(&learnt, data, &how)?.untyped();
            // Topics are not written, and may be large.
            let forget = |j: usize, block: &mut DMatrix<f64>| {
                if j == 0 {
                    *block = DMatrix::from_element(1, k, 1.0);
                }
            };
            Ok(Explained {
                fit: explained.fit.change(|at| at.change(forget))?,
                ..explained
            })
        });
        Ok(explainer.by_bounds())
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        let means = file.state::<PlsaVbState<f64>>()?.means();
        Ok(Fitted::factored(means?))
    }
}

impl Kind for Nmf {
    types!(NmfState);
    by_name!(k => Nmf::new(k));
    priors!();
    sharded!();
    const SPECTRA: Option<&'static str> = Some("w");
    const ABOUT: &'static str = "KL-NMF of a matrix";
    const RUNS: &'static str = "transpose kkt_tol prior priors freeze freeze_entries accelerate out_of_core shards stepwise";
    const LAWS: &'static [(&'static str, Law)] = &[("w", Law::Rates), ("h", Law::Rates)];
    const MATRIX: bool = true;
    const OBJECTIVE: [&'static str; 2] = ["kl_divergence", "penalised_divergence"];
    const SEPARATES: bool = true;

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        let along = along(asked, 1, |d| d < 2)?;
        let state: NmfState<f64> = file.state()?;
        let k = state.w().ncols();
        Ok(Explainer::new(
            (along, k),
            &[["w", "h"][along]],
            move |data, how| {
                let mut explained = state.transform(data, &how.along(along))?.untyped();
                // Activations of 0 explain what is 0.
                explained.empty.clear();
                Ok(explained)
            },
        ))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::factored(file.state::<NmfState<f64>>()?))
    }
}
