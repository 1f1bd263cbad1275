//! `skellam-cp`: tensors of either sign as sums of rank-one terms, one factor of which has two sides.

use std::path::Path;

use nalgebra::DMatrix;
use plca_fit::Reconstruct;
use plca_io::Element;
use skellam_snmf::{Entries, SignedCp, SignedCpBuilder, SignedCpState};

use super::broadcast::broadcast;
use super::priors::{Said, for_each};
use super::skellam::{prior_specs, refused, signed};
use super::{ModelKind, Takes, of_state};
use crate::approximation::{Approximation, Fitted};
use crate::args::{FitArgs, SignedArgs, TransformArgs};
use crate::failure::Failure;
use crate::given;
use crate::saved::Saved;
use crate::transform::{Answer, Found, along, explain};

/// The model `skellam-cp`.
pub(crate) struct SkellamCp;

impl ModelKind for SkellamCp {
    of_state!(SignedCpState<f64>, model);

    fn about(&self) -> &'static str {
        "Skellam factorization of a tensor of either sign with one signed mode, by EM"
    }

    fn options(&self) -> &'static str {
        "--m --real-data --signed-mode --scale-mode --prior --priors --fix --freeze-entries --accelerate"
    }

    fn priors(&self) -> String {
        "atoms=dirichlet:A, factor_J=dirichlet:A, weights=gamma:SHAPE,RATE".into()
    }

    fn takes(&self) -> Takes {
        Takes::Signed
    }

    // Its normaliser is in it without a prior too.
    fn objective(&self, _: bool) -> &'static str {
        "log_posterior"
    }

    fn transform(&self, file: Saved, args: &TransformArgs) -> Result<Found, Failure> {
        let (signed, specs) = (signed(&file)?, prior_specs(&file));
        let order = file.order()?;
        let learnt: SignedCpState<f64> = file.state()?;
        let form = Form {
            signed: learnt.signed_mode(),
            scale: learnt.scale_mode(),
        };
        let along = form.along(args, order)?;
        let k = learnt.components();
        let builder = builder::<f64>(&signed, form, k);
        let (dirichlet, [a, b]) = priors(&specs, None, form, &learnt.shape(), k, 0.0)?;
        let builder = dirichlet
            .into_iter()
            .fold(builder, |b, (block, shapes)| b.dirichlet(block, shapes));
        let model = builder.gamma(a, b).build()?;
        let factor = format!("factor_{along}");
        explain(
            self,
            args,
            (along, k),
            &["weights", &factor],
            |data, how| {
                let how = how.along(along);
                Ok(match args.each {
                    true => Answer::Each(model.transform_each(&learnt, data, &how)?),
                    false => model.transform(&learnt, data, &how)?.untyped().into(),
                })
            },
        )
    }

    fn approximation(&self, file: Saved) -> Result<Box<dyn Approximation>, Failure> {
        Ok(Fitted::lawless(file.state::<SignedCpState<f64>>()?))
    }
}

/// Which mode is signed, and which carries the scale.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) signed: usize,
    pub(super) scale: Option<usize>,
}

fn model<T: Element>(args: &FitArgs, rank: usize, shape: &[usize]) -> Result<SignedCp<T>, Failure> {
    let form = form(args, shape)?;
    let builder = builder(&args.signed, form, rank);
    let file = args.priors.as_deref();
    let (dirichlet, [a, b]) = priors(&args.prior, file, form, shape, rank, 0.0)?;
    let builder = dirichlet
        .into_iter()
        .fold(builder, |b, (block, shapes)| b.dirichlet(block, shapes));
    let builder = given::freeze(args, shape, builder.gamma(a, b))?;
    builder.build().map_err(|e| refused(args, e))
}

impl Form {
    /// The dimension of new observations of data of this order: that of the scale, or another one that is not signed.
    pub(super) fn along(self, args: &TransformArgs, order: usize) -> Result<usize, Failure> {
        let Self { signed, scale } = self;
        let last = (0..order).rev().find(|&d| d != signed).unwrap_or(0);
        let free = |d: usize| d < order && d != signed && scale.is_none_or(|scale| scale == d);
        along(args, scale.unwrap_or(last), free)
    }
}

/// That of a command line.
pub(super) fn form(args: &FitArgs, shape: &[usize]) -> Result<Form, Failure> {
    let form = Form {
        signed: args.signed_mode.unwrap_or(0),
        scale: args.scale_mode,
    };
    for (option, mode) in [
        ("--signed-mode", args.signed_mode),
        ("--scale-mode", args.scale_mode),
    ] {
        if let Some(mode) = mode.filter(|&mode| mode >= shape.len()) {
            let order = shape.len();
            return Err(Failure::usage(format!(
                "{option} {mode}: the data have {order} dimensions, counted from 0"
            )));
        }
    }
    Ok(form)
}

fn builder<T: Element>(signed: &SignedArgs, form: Form, rank: usize) -> SignedCpBuilder<T> {
    let builder = SignedCp::builder(rank).replicates(signed.m.unwrap_or_default());
    let builder = builder.signed_mode(form.signed).scale_mode(form.scale);
    let builder = builder.with_constants();
    match signed.real_data {
        true => builder.real_data(),
        false => builder,
    }
}

/// Dirichlet shapes by block, and gamma shapes and rates.
pub(super) type Priors = (Vec<(String, Entries)>, [Entries; 2]);

/// The priors that `--prior` and `--priors` name; without other word the gamma rate is `rate`.
pub(super) fn priors(
    specs: &[String],
    file: Option<&Path>,
    form: Form,
    shape: &[usize],
    k: usize,
    rate: f64,
) -> Result<Priors, Failure> {
    let scaled = match form.scale {
        Some(mode) => format!("factor_{mode}"),
        None => "weights".into(),
    };
    let mut gamma = [Entries::All(1.0), Entries::All(rate)];
    let mut dirichlet = Vec::new();
    for_each(specs, file, |name, said| {
        let mode = name.strip_prefix("factor_").and_then(|j| j.parse().ok());
        let mode = mode.filter(|&j: &usize| j < shape.len() && j != form.signed);
        if name != "atoms" && name != scaled && mode.is_none() {
            return Err(format!(
                "no block `{name}` takes a prior; there are atoms, {scaled} and factor_D of the other dimensions"
            ));
        }
        let is_rate = name == scaled;
        match said {
            Said::Spec(spec) => {
                let (kind, value) = spec.split_once(':').ok_or("KIND:VALUE is needed")?;
                let number = |s: &str| {
                    let number = s.parse::<f64>();
                    number.map_err(|_| format!("`{s}` is not a number"))
                };
                match (kind, is_rate) {
                    ("dirichlet", false) => {
                        dirichlet.push((name.to_string(), Entries::All(number(value)?)));
                    }
                    ("gamma", true) => {
                        let both = value.split_once(',');
                        let (a, b) =
                            both.ok_or_else(|| format!("`{value}`: SHAPE,RATE is needed"))?;
                        gamma = [Entries::All(number(a)?), Entries::All(number(b)?)];
                    }
                    _ => {
                        return Err(format!(
                            "{name} has no prior `{kind}`; there are dirichlet:A, and {scaled}=gamma:SHAPE,RATE"
                        ));
                    }
                }
            }
            Said::Array(kind, array) => match (kind, is_rate, mode) {
                ("dirichlet", false, Some(j)) => {
                    let values = broadcast(array, &[shape[j], k])?;
                    let shapes = DMatrix::from_row_slice(shape[j], k, &values);
                    dirichlet.push((name.to_string(), Entries::Each(shapes)));
                }
                ("dirichlet", false, None) => {
                    let rows = shape[form.signed];
                    let values = broadcast(array, &[rows, k, 2])?;
                    let shapes = DMatrix::from_fn(2 * rows, k, |i, z| {
                        values[2 * ((i % rows) * k + z) + i / rows]
                    });
                    dirichlet.push((name.to_string(), Entries::Each(shapes)));
                }
                ("gamma_shape" | "gamma_rate", true, mode) => {
                    let rows = mode.map_or(k, |j| shape[j]);
                    let entries = match mode {
                        None => DMatrix::from_row_slice(k, 1, &broadcast(array, &[k])?),
                        Some(_) => DMatrix::from_row_slice(rows, k, &broadcast(array, &[rows, k])?),
                    };
                    gamma[usize::from(kind == "gamma_rate")] = Entries::Each(entries);
                }
                _ => {
                    return Err(format!(
                        "unknown prior `{kind}`; there are BLOCK.dirichlet, {scaled}.gamma_shape and {scaled}.gamma_rate"
                    ));
                }
            },
        }
        Ok(name.to_string())
    })?;
    Ok((dirichlet, gamma))
}
