//! Data of either sign.

use plca_fit::setting::{Named, SettingSpec, SettingValue};
use plca_fit::shards::Sharded;
use plca_fit::{FitError, Model as _, Reconstruct as _, State as _, Transform};
use plca_priors::PriorSpec;
use plca_tensor::Data;
pub(super) use skellam_snmf::{
    Ding, KMeans, ShiftedSnmf, ShiftedSnmfVb, SignedCp, SignedCpVb, Snmf, SnmfVb,
};
use skellam_snmf::{
    DingState, KMeansState, Prior, Replicates, ShiftedSnmfState, ShiftedSnmfVbState, SignedCpState,
    SignedCpVbState, SnmfState, SnmfVbState,
};

use crate::approximation::{Draws, Fitted};
use crate::explain::{along, whole, without_dimension};
use crate::kind::{Extents, Kind, named, of_file, of_settings};
use crate::options::{kernel_of, wrong_value};
use crate::{
    Answer, Approximation, Explainer, Law, Options, RunError, Saved, Scalar, Score, Takes,
};

impl Kind for Snmf {
    types!(SnmfState);
    // Its objective has the normalisers of its priors, of flat ones too.
    by_name!(k => Snmf::new(k).priors(Prior::flat()));
    priors!();
    explains!(|model, learnt, data, how| model.transform(learnt, data, how)?);
    sharded!();
    const ABOUT: &'static str = "Skellam semi-NMF of a matrix of either sign, by EM";
    const RUNS: &'static str = "transpose prior priors freeze freeze_entries accelerate shards";
    const TAKES: Takes = Takes::SignedMatrix;
    const LAWS: &'static [(&'static str, Law)] =
        &[("atoms", Law::Dirichlet), ("activations", Law::Gamma(0.0))];
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("m", "auto")];
    const OBJECTIVE: [&'static str; 2] = ["log_posterior"; 2];

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        along(asked, 1, |d| d == 1)?;
        let said = file.said();
        let learnt: SnmfState<f64> = file.state()?;
        let k = learnt.components();
        let model: Self = of_file(&said, (k, &learnt.shape()), &[])?;
        Ok(Explainer::new(model, learnt, (1, k), &["activations"]))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        let m = replicates(&file)?;
        Ok(rates(file.state()?, m))
    }
}

/// What describes an observation by its posterior.
const POSTERIOR: &[&str] = &["activations", "activations_shape", "activations_rate"];

/// The rate of a gamma law by variational Bayes that is not said.
const RATE: f64 = 1e-3;

/// How the model of a file took its data.
fn replicates(file: &Saved) -> Result<Replicates, RunError> {
    let specs = <Snmf as Named>::specs();
    let m = Options::of_json(file.settings(), &specs).get("m");
    let m = m.map_err(|e| of_settings(file, e))?;
    // Files of Python say nothing where it is the limit.
    Ok(m.unwrap_or(Replicates::Limit))
}

/// `L⁺ - L⁻`, and the sum of this number of matrices of the model: `Sk(draws L⁺, draws L⁻)`.
fn rates(state: SnmfState<f64>, replicates: Replicates) -> Box<dyn Approximation> {
    Fitted::new(state, move |state, draws| {
        if replicates.is_real() {
            let what = "of real data (--replicates auto or inf) has no distribution to sample from; a fit with --replicates 1 has one";
            return Err(RunError::Unable {
                model: "sample: a model",
                what: what.into(),
            });
        }
        let Draws { number, rng, into } = draws;
        let drawn = state.sample(number, replicates, rng);
        let drawn = drawn.map_err(|e| RunError::Draw(e.to_string()))?;
        // In row-major order.
        into.values.copy_from_slice(drawn.transpose().as_slice());
        Ok(())
    })
}

impl Kind for SnmfVb {
    types!(SnmfVbState);
    by_name!(k => SnmfVb::new(k));
    priors!();
    explains!(|model, learnt, data, how| model.transform(learnt, data, how)?);
    sharded!();
    const ABOUT: &'static str = "Skellam semi-NMF of a matrix of either sign, by variational Bayes";
    const RUNS: &'static str = "transpose prior priors freeze freeze_entries accelerate shards";
    const TAKES: Takes = Takes::SignedMatrix;
    const LAWS: &'static [(&'static str, Law)] =
        &[("atoms", Law::Dirichlet), ("activations", Law::Gamma(RATE))];
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("m", "inf")];
    const OBJECTIVE: [&'static str; 2] = ["elbo"; 2];

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        along(asked, 1, |d| d == 1)?;
        let said = file.said();
        let learnt: SnmfVbState<f64> = file.state()?;
        let k = learnt.components();
        let model: Self = of_file(&said, (k, &learnt.shape()), &[])?;
        Ok(Explainer::new(model, learnt, (1, k), POSTERIOR))
    }

    fn evidence(
        &self,
        learnt: &SnmfVbState<f64>,
        bound: f64,
        data: &dyn Data<f64>,
    ) -> Result<Option<Score>, FitError> {
        let k = self.components;
        let snmf = Snmf::new(k)
            .replicates(self.replicates)
            .real_data(self.real_data);
        let (snmf, means) = (snmf.bind(data)?, learnt.means()?);
        Ok(Some(Score {
            score: -self.score(bound),
            ln_lik: snmf.likelihood(means.parameters())?,
            parameters: k * (2 * data.shape()[0] - 1 + data.shape()[1]),
        }))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        let m = replicates(&file)?;
        Ok(rates(file.state::<SnmfVbState<f64>>()?.means()?, m))
    }
}

/// Laws of a model of tensors: of the atoms, of what carries the scale, and of the other factors.
fn cp_laws(order: usize, signed: usize, scale: Option<usize>, rate: f64) -> Vec<(String, Law)> {
    let atoms = ("atoms".to_string(), Law::Dirichlet);
    let weights = scale
        .is_none()
        .then(|| ("weights".to_string(), Law::Gamma(rate)));
    let others = (0..order).filter(|&j| j != signed);
    let factors = others.map(|j| {
        let law = match Some(j) == scale {
            true => Law::Gamma(rate),
            false => Law::Dirichlet,
        };
        (format!("factor_{j}"), law)
    });
    [atoms].into_iter().chain(weights).chain(factors).collect()
}

/// Refuses modes that the data do not have.
fn check_modes(options: &Options, order: usize) -> Result<(), RunError> {
    for name in ["signed_mode", "scale_mode"] {
        if let Some(mode) = options.get::<usize>(name)?
            && mode >= order
        {
            let what = format!("the data have {order} dimensions, counted from 0");
            return Err(wrong_value(name, mode.to_string(), what));
        }
    }
    Ok(())
}

impl Kind for SignedCp {
    types!(SignedCpState);
    priors!();
    explains!(
        |model, learnt, data, how| model.transform(learnt, data, how)?,
        each: model.transform_each(learnt, data, how)?
    );
    const ABOUT: &'static str =
        "Skellam factorization of a tensor of either sign with one signed mode, by EM";
    const RUNS: &'static str = "prior priors freeze freeze_entries accelerate";
    const TAKES: Takes = Takes::Signed;
    // Those without a mode of the scale.
    const LAWS: &'static [(&'static str, Law)] = &[
        ("atoms", Law::Dirichlet),
        ("factor_*", Law::Dirichlet),
        ("weights", Law::Gamma(0.0)),
    ];
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("m", "auto")];
    const OBJECTIVE: [&'static str; 2] = ["log_posterior"; 2];

    fn specs() -> Vec<SettingSpec> {
        <Self as Named>::specs()
    }

    fn build(k: usize, options: &Options, shape: &[usize]) -> Result<Self, RunError> {
        check_modes(options, shape.len())?;
        named(Self::new(k).with_constants(true), options)
    }

    fn laws(&self, order: usize) -> Vec<(String, Law)> {
        cp_laws(order, self.signed_mode, self.scale_mode, 0.0)
    }

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        let order = file.order()?;
        let said = file.said();
        let learnt: SignedCpState<f64> = file.state()?;
        let (signed, scale) = (learnt.signed_mode(), learnt.scale_mode());
        let along = along_of(asked, order, signed, scale)?;
        let k = learnt.components();
        let model: Self = of_file(&said, (k, &learnt.shape()), &modes(signed, scale))?;
        let factor = format!("factor_{along}");
        let blocks: Vec<String> = vec!["weights".to_string(), factor];
        let blocks: Vec<&str> = blocks.iter().map(String::as_str).collect();
        Ok(Explainer::new(model, learnt, (along, k), &blocks))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::lawless(file.state::<SignedCpState<f64>>()?))
    }
}

/// The dimension of new observations of data of this order: that of the scale, or another one that is not signed.
fn along_of(
    asked: Option<usize>,
    order: usize,
    signed: usize,
    scale: Option<usize>,
) -> Result<usize, RunError> {
    let last = (0..order).rev().find(|&d| d != signed).unwrap_or(0);
    let free = |d: usize| d < order && d != signed && scale.is_none_or(|scale| scale == d);
    along(asked, scale.unwrap_or(last), free)
}

/// The modes of a state as settings.
fn modes(signed: usize, scale: Option<usize>) -> Vec<(&'static str, SettingValue)> {
    let modes = [("signed_mode", Some(signed)), ("scale_mode", scale)].into_iter();
    let modes = modes.filter_map(|(name, mode)| Some((name, SettingValue::Number(mode? as f64))));
    modes.collect()
}

impl Kind for SignedCpVb {
    types!(SignedCpVbState);
    priors!();
    explains!(
        |model, learnt, data, how| model.transform(learnt, data, how)?,
        each: model.transform_each(learnt, data, how)?
    );
    const ABOUT: &'static str = "Skellam factorization of a tensor of either sign with one signed mode, by variational Bayes";
    const RUNS: &'static str = "prior priors freeze freeze_entries accelerate";
    const TAKES: Takes = Takes::Signed;
    const LAWS: &'static [(&'static str, Law)] = <SignedCp as Kind>::LAWS;
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("m", "inf")];
    const OBJECTIVE: [&'static str; 2] = ["elbo"; 2];

    fn specs() -> Vec<SettingSpec> {
        <Self as Named>::specs()
    }

    fn build(k: usize, options: &Options, shape: &[usize]) -> Result<Self, RunError> {
        check_modes(options, shape.len())?;
        named(Self::new(k), options)
    }

    fn laws(&self, order: usize) -> Vec<(String, Law)> {
        cp_laws(order, self.signed_mode, self.scale_mode, RATE)
    }

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        let order = file.order()?;
        let said = file.said();
        let learnt: SignedCpVbState<f64> = file.state()?;
        let (signed, scale) = (learnt.signed_mode(), learnt.scale_mode());
        let along = along_of(asked, order, signed, scale)?;
        let k = learnt.components();
        let model: Self = of_file(&said, (k, &learnt.shape()), &modes(signed, scale))?;
        let factor = format!("factor_{along}");
        let blocks: Vec<String> = ["weights", &factor]
            .iter()
            .flat_map(|block| ["", "_shape", "_rate"].map(|of| format!("{block}{of}")))
            .collect();
        let blocks: Vec<&str> = blocks.iter().map(String::as_str).collect();
        Ok(Explainer::new(model, learnt, (along, k), &blocks))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::lawless(file.state::<SignedCpVbState<f64>>()?))
    }
}

/// Extents of atoms, what adds and what takes away, and of their places.
fn signed_extents(kernel: &[usize], places: Vec<usize>) -> Extents {
    vec![("atoms", [kernel, &[2]].concat()), ("activations", places)]
}

impl Kind for ShiftedSnmf {
    types!(ShiftedSnmfState);
    by_name!(k => ShiftedSnmf::new(k, Vec::new()));
    priors!();
    explains!(|model, learnt, data, how| {
        model.transform(learnt, data, &without_dimension(how))?
    });
    const ABOUT: &'static str =
        "Shift-invariant Skellam semi-NMF of data of either sign and any order, by EM";
    const RUNS: &'static str = "prior priors freeze freeze_entries accelerate";
    const TAKES: Takes = Takes::Signed;
    const LAWS: &'static [(&'static str, Law)] =
        &[("atoms", Law::Dirichlet), ("activations", Law::Gamma(0.0))];
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("m", "auto")];
    const OBJECTIVE: [&'static str; 2] = ["log_posterior"; 2];
    const KERNELS: Option<&'static str> = Some("atoms");

    fn extents(&self, shape: &[usize]) -> Result<Extents, FitError> {
        Ok(signed_extents(&self.kernel, self.places(shape)?))
    }

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        whole(asked, "siskellam transforms the data as a whole")?;
        let said = file.said();
        let learnt: ShiftedSnmfState<f64> = file.state()?;
        let k = learnt.atoms().ncols();
        // New data may have other places: only priors that are one number hold for them.
        let kernel = [("kernel", kernel_of(learnt.kernel_shape()))];
        let model: Self = of_file(&said, (k, &learnt.shape()), &kernel)?;
        Ok(Explainer::new(model, learnt, (0, k), &["activations"]))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::lawless(file.state::<ShiftedSnmfState<f64>>()?))
    }
}

impl Kind for ShiftedSnmfVb {
    types!(ShiftedSnmfVbState);
    by_name!(k => ShiftedSnmfVb::new(k, Vec::new()));
    priors!();
    explains!(|model, learnt, data, how| {
        model.transform(learnt, data, &without_dimension(how))?
    });
    const ABOUT: &'static str = "Shift-invariant Skellam semi-NMF of data of either sign and any order, by variational Bayes";
    const RUNS: &'static str = "prior priors freeze accelerate";
    const TAKES: Takes = Takes::Signed;
    const LAWS: &'static [(&'static str, Law)] =
        &[("atoms", Law::Dirichlet), ("activations", Law::Gamma(RATE))];
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[("m", "inf")];
    const OBJECTIVE: [&'static str; 2] = ["elbo"; 2];
    const KERNELS: Option<&'static str> = Some("atoms_shape");

    fn extents(&self, shape: &[usize]) -> Result<Extents, FitError> {
        Ok(signed_extents(&self.kernel, self.places(shape)?))
    }

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        whole(asked, "siskellam-vb transforms the data as a whole")?;
        let said = file.said();
        let learnt: ShiftedSnmfVbState<f64> = file.state()?;
        let k = learnt.atoms_shape().ncols();
        // New data may have other places: only priors that are one number hold for them.
        let kernel = [("kernel", kernel_of(learnt.kernel_shape()))];
        let model: Self = of_file(&said, (k, &learnt.shape()), &kernel)?;
        Ok(Explainer::new(model, learnt, (0, k), POSTERIOR))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::lawless(file.state::<ShiftedSnmfVbState<f64>>()?))
    }
}

impl Kind for Ding {
    types!(DingState);
    by_name!(k => Ding::new(k));
    explains!(|_model, learnt, data, how| learnt.transform(data, how)?);
    const ABOUT: &'static str = "Semi-NMF of a matrix of either sign in squared error (Ding 2010)";
    const RUNS: &'static str = "transpose";
    const TAKES: Takes = Takes::SignedMatrix;
    // The basis follows from the activations.
    const FREE: Option<&'static [&'static str]> = Some(&["activations"]);
    const OBJECTIVE: [&'static str; 2] = ["squared_error"; 2];

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        along(asked, 1, |d| d == 1)?;
        let learnt: DingState<f64> = file.state()?;
        let k = learnt.components();
        Ok(Explainer::new(
            Self::new(k),
            learnt,
            (1, k),
            &["activations"],
        ))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::lawless(file.state::<DingState<f64>>()?))
    }
}

impl Kind for KMeans {
    types!(KMeansState);
    explains!(|_model, learnt, data, how| learnt.transform(data, how)?);
    const ABOUT: &'static str = "k-means clusters of the columns of a matrix of either sign";
    const RUNS: &'static str = "transpose";
    const TAKES: Takes = Takes::SignedMatrix;
    // Labels follow from the centres.
    const FREE: Option<&'static [&'static str]> = Some(&["centres"]);
    const OBJECTIVE: [&'static str; 2] = ["squared_error"; 2];

    fn specs() -> Vec<SettingSpec> {
        <Self as Named>::specs()
    }

    fn build(k: usize, options: &Options, shape: &[usize]) -> Result<Self, RunError> {
        match shape.get(1) {
            Some(&samples) if k > samples => Err(RunError::Shape(FitError::Conflict {
                what: format!(
                    "has {samples} columns, which are the samples: expected a rank of at most {samples}, not {k}"
                ),
            })),
            _ => named(Self::new(k), options),
        }
    }

    fn explainer(file: Saved, asked: Option<usize>) -> Result<Explainer, RunError> {
        along(asked, 1, |d| d == 1)?;
        let learnt: KMeansState<f64> = file.state()?;
        let k = learnt.centres().ncols();
        Ok(Explainer::new(Self::new(k), learnt, (1, k), &["labels"]))
    }

    fn approximation(file: Saved) -> Result<Box<dyn Approximation>, RunError> {
        Ok(Fitted::lawless(file.state::<KMeansState<f64>>()?))
    }
}
