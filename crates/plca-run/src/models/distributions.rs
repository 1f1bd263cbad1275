//! PLCA, PLSA and KL-NMF.

use nalgebra::{DMatrix, DVector};
use plca_em::{
    Given, NmfState, PlcaState, PlcaVbState, PlsaState, PlsaVbState, effective_parameters,
    nominal_parameters,
};
pub(super) use plca_em::{Nmf, Plca, PlcaVb, Plsa, PlsaVb};
use plca_fit::setting::{Named, SettingSpec, SettingValue};
use plca_fit::shards::Sharded;
use plca_fit::{FitError, Model as _, State as _, Transform};
use plca_priors::PriorSpec;
use plca_tensor::Data;

use crate::approximation::Fitted;
use crate::explain::{along, without_dimension};
use crate::kind::{Kind, named, of_file, with_imputation};
use crate::{
    Answer, Approximation, Explainer, Law, Learner, Options, RunError, Saved, Scalar, Score, Stream,
};

impl Kind for Plca {
    types!(PlcaState);
    by_name!(k => Plca::new(k));
    priors!();
    sharded!();
    streamed!();
    explains!(
        |_model, learnt, data, how| learnt.transform(data, how)?,
        each: learnt.transform_each(data, how)?
    );
    const SPECTRA: Option<&'static str> = Some("factor_0");
    const ABOUT: &'static str = "Symmetric PLCA of any order";
    const RUNS: &'static str =
        "kkt_tol prior priors freeze freeze_entries accelerate out_of_core shards online";
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
        Ok(Explainer::new(Self::new(k), state, (along, k), &blocks).with_one_gap())
    }

    fn free_parameters(&self, shape: &[usize]) -> Result<Option<usize>, FitError> {
        Ok(Some(effective_parameters(shape, self.components)))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::factored(file.state::<PlcaState<f64>>()?))
    }
}

impl Kind for Plsa {
    types!(PlsaState);
    priors!();
    sharded!();
    streamed!();
    explains!(|_model, learnt, data, how| learnt.transform(data, &without_dimension(how))?);
    const SPECTRA: Option<&'static str> = Some("basis");
    const ABOUT: &'static str = "Asymmetric PLSA of a matrix";
    const RUNS: &'static str =
        "kkt_tol prior priors freeze freeze_entries accelerate out_of_core shards online";
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
        Ok(Explainer::new(Self::new(k), state, (along, k), &blocks))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::factored(file.state::<PlsaState<f64>>()?))
    }
}

/// [EXT 3] ELBO + ln K!, of which smaller negatives are better.
fn of_bound(components: usize, bound: f64, ln_lik: f64, shape: &[usize]) -> Score {
    let labels: f64 = (1..=components).map(|k| (k as f64).ln()).sum();
    Score {
        score: -(bound + labels),
        ln_lik,
        parameters: nominal_parameters(shape, components),
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
    explains!(
        |model, learnt, data, how| model.transform(learnt, data, how)?,
        each: model.transform_each(learnt, data, how)?
    );
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
        let shape: Vec<usize> = learnt.factors_shape().iter().map(|f| f.nrows()).collect();
        let model: Self = of_file(&said, (k, &shape), &[])?;
        let (factor, means) = (format!("factor_{along}_shape"), format!("factor_{along}"));
        let blocks = ["weights_shape", "weights", &factor, &means];
        Ok(Explainer::new(model, learnt, (along, k), &blocks))
    }

    fn evidence(
        &self,
        learnt: &PlcaVbState<f64>,
        bound: f64,
        data: &dyn Data<f64>,
    ) -> Result<Option<Score>, FitError> {
        let (plca, means) = (Plca::new(self.components), learnt.means()?);
        let ln_lik = plca.bind(data)?.likelihood(means.parameters())?;
        Ok(Some(of_bound(self.components, bound, ln_lik, data.shape())))
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
    streamed!();
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
        Ok(Explainer::new(model, learnt, (along, k), &blocks).by_bounds())
    }

    fn explain<T: Scalar>(
        &self,
        learnt: &PlsaVbState<T>,
        data: &dyn Data<T>,
        how: &Transform,
        _each: bool,
    ) -> Result<Answer<T>, FitError> {
        let mut explained = self.transform(learnt, data, how)?.untyped();
        // Topics are not part of the answer, and may be large.
        let forget = |j: usize, block: &mut DMatrix<T>| {
            if j == 0 {
                *block = DMatrix::from_element(1, self.components, T::one());
            }
        };
        explained.fit = explained.fit.change(|at| at.change(forget))?;
        Ok(explained.into())
    }

    fn evidence(
        &self,
        learnt: &PlsaVbState<f64>,
        bound: f64,
        data: &dyn Data<f64>,
    ) -> Result<Option<Score>, FitError> {
        let plsa = Plsa::new(self.components).given(learnt.given());
        let ln_lik = plsa.bind(data)?.likelihood(learnt.means()?.parameters())?;
        Ok(Some(of_bound(self.components, bound, ln_lik, data.shape())))
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
    streamed!();
    explains!(|model, learnt, data, how| {
        let mut explained = model.transform(learnt, data, how)?;
        // Activations of 0 explain what is 0.
        explained.empty.clear();
        explained
    });
    const SPECTRA: Option<&'static str> = Some("w");
    const ABOUT: &'static str = "KL-NMF of a matrix";
    const RUNS: &'static str =
        "transpose kkt_tol prior priors freeze freeze_entries accelerate out_of_core shards";
    const LAWS: &'static [(&'static str, Law)] = &[("w", Law::Rates), ("h", Law::Rates)];
    const MATRIX: bool = true;
    const OBJECTIVE: [&'static str; 2] = ["kl_divergence", "penalised_divergence"];
    const SEPARATES: bool = true;

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        let along = along(asked, 1, |d| d < 2)?;
        let state: NmfState<f64> = file.state()?;
        let k = state.w().ncols();
        let blocks = [["w", "h"][along]];
        Ok(Explainer::new(Self::new(k), state, (along, k), &blocks))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::factored(file.state::<NmfState<f64>>()?))
    }
}
