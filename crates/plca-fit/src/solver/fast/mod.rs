//! Coordinate descent with guarded extrapolation: the optima of EM's objective in a fraction of the time.
//!
//! With all factors but one fixed the likelihood falls apart into one problem of `K` numbers for every row of that factor
//! ([`Rows`]). An iteration improves them mode after mode by scalar Newton steps and carries every factor on in the direction in
//! which it moved. It is kept only if the objective did not get worse; otherwise it is repeated without the extrapolation.
//!
//! Zeros of the start stay. Other entries may fall to a rounding error of what they belong to, from where they come back if the
//! rest makes room. It may end at another local optimum than EM. A run ends with a step of EM if that is better: extrapolation goes
//! too far by what such a step gets back.

mod product;
mod sweep;

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_tensor::Real;
use plca_tensor::arrange::Rows;

use super::{BoxedSteps, Memory, Steps, function};
use crate::em::with_priors;
use crate::{Algorithm, FitError, Parameters, Sense, Separable, Stepped, refuse};
use sweep::Swept;

pub(crate) use sweep::floored;

pub use product::{Product, transpose_to};

/// Passes over the coordinates of a row before the next factor's turn.
const PASSES: usize = 1;
/// Extrapolation begins once an iteration gains less than this share of the divergence.
const BELOW: f64 = 0.2;
/// The first `β`; its growth and that of its bound where an iteration was accepted, its fall where not.
const FIRST: f64 = 0.5;
const GROWTH: f64 = 1.05;
const BOUND: f64 = 1.01;
const FALL: f64 = 1.5;

/// The solver at work.
#[derive(Debug)]
struct Fast<'a, T: Real> {
    algorithm: &'a dyn Algorithm<T>,
    model: &'a dyn Separable<T>,
    rows: Rows<'a, T>,
    /// `Σ V ln V` less what the best scale takes: minus the likelihood, the divergence.
    entropy: f64,
    /// `None` before the first iteration.
    place: Option<Progress<T>>,
}

/// Where a run stands.
#[derive(Clone, Debug)]
struct Progress<T: Real> {
    /// The parameters as a product.
    kept: Product<T>,
    /// Where the next iteration begins.
    ahead: Product<T>,
    /// The objective of the parameters, and the best so far.
    value: f64,
    best: f64,
    /// How far factors are carried on, 0 until that begins, and its bound.
    beta: f64,
    beta_max: f64,
}

/// Arranges the data; of a free mode whose rows cannot be read where they lie there is a copy.
pub(super) fn bind<T: Real>(algorithm: &dyn Algorithm<T>, memory: Memory) -> BoxedSteps<'_, T> {
    if algorithm.by_samples()? {
        return function(algorithm, memory, |algorithm, at, _, measure| {
            algorithm.step_by_samples(at, measure)
        });
    }
    let model = algorithm.separable()?;
    let (plan, data) = (model.plan(), model.data());
    let rows = Rows::new(data, plan.free.iter().copied().collect())?;
    let unit = data.unit();
    let x_ln_x = |&x: &f64| if x > 0.0 { x * (x / unit).ln() } else { 0.0 };
    let scales = match plan.given {
        Some(mode) => rows.totals(mode).iter().map(x_ln_x).sum(),
        None => x_ln_x(&data.total()),
    };
    let place = Progress::from_memory(memory, plan.components, data.shape())?;
    Ok(Box::new(Fast {
        algorithm,
        model,
        rows,
        entropy: model.self_information()? - scales,
        place,
    }))
}

impl<T: Real> Progress<T> {
    fn memory(&self) -> Memory {
        let both = [&self.kept, &self.ahead];
        let factors = both.into_iter().flat_map(|product| &product.factors);
        let factors = factors.map(|f| f.iter().map(|x| x.to_f64()).collect());
        let scales = both.into_iter().map(|product| product.scale.clone());
        Memory {
            points: factors.chain(scales).collect(),
            numbers: vec![self.value, self.best, self.beta, self.beta_max],
        }
    }

    /// Refuses what is none of this model on these data.
    fn from_memory(
        memory: Memory,
        components: usize,
        shape: &[usize],
    ) -> Result<Option<Self>, FitError> {
        if memory == Memory::default() {
            return Ok(None);
        }
        let read = || {
            let &[value, best, beta, beta_max] = &memory.numbers[..] else {
                return None;
            };
            let points = &memory.points;
            let (factors, scales) = points.split_at_checked(2 * shape.len())?;
            let [kept, ahead] = scales else { return None };
            let matrix = |(point, &size): (&Vec<f64>, &usize)| {
                let values = point.iter().map(|&x| T::lit(x));
                let fits = components.checked_mul(size) == Some(point.len());
                fits.then(|| Arc::new(DMatrix::from_iterator(components, size, values)))
            };
            let product = |factors: &[Vec<f64>], scale: &Vec<f64>| {
                let factors = factors.iter().zip(shape).map(matrix);
                let factors = factors.collect::<Option<Vec<_>>>()?;
                let values = || factors.iter().flat_map(|f| f.iter().map(|x| x.to_f64()));
                let good = values()
                    .chain(scale.iter().copied())
                    .all(|x| x >= 0.0 && x.is_finite());
                let scale = (good && scale.len() == components).then(|| scale.clone())?;
                Some(Product { factors, scale })
            };
            Some(Self {
                kept: product(&factors[..shape.len()], kept)?,
                ahead: product(&factors[shape.len()..], ahead)?,
                value,
                best,
                beta,
                beta_max,
            })
        };
        match read() {
            Some(place) => Ok(Some(place)),
            None => Err(FitError::Checkpoint {
                what: "the memory of coordinate descent does not fit the model".into(),
            }),
        }
    }
}

impl<T: Real> Fast<'_, T> {
    /// Where a run begins.
    fn begin(&self, at: &Parameters<T>) -> Result<Progress<T>, FitError> {
        let value = self.algorithm.objective(at)?;
        if !value.is_finite() {
            // A step names the cell that the model excludes.
            self.algorithm.step(&mut at.clone(), true)?;
        }
        let mut kept = self.model.product(at);
        self.settle(&mut kept)?;
        Ok(Progress {
            ahead: kept.clone(),
            kept,
            value,
            best: value,
            beta: 0.0,
            beta_max: 1.0,
        })
    }

    /// Whether an objective is not worse than the best so far, except for rounding: of the model's cells, in their scalar for every count, and
    /// of the terms that the objective is a sum or a small difference of. All of these are in the unit of the data.
    fn accepts(&self, value: f64, best: f64) -> bool {
        let cells = T::EPSILON.to_f64() * self.model.data().total();
        let terms = f64::EPSILON * (self.entropy.abs() + best.abs());
        // [SPEC 10.1]
        let slack = 8.0 * (cells + terms);
        match self.algorithm.sense() {
            Sense::Maximise => value >= best - slack,
            Sense::Minimise => value <= best + slack,
        }
    }

    /// Takes a sweep if it is not worse; whether it did.
    fn take(
        &self,
        at: &mut Parameters<T>,
        place: &mut Progress<T>,
        swept: Swept<T>,
    ) -> Result<bool, FitError> {
        let faint = swept.product.is_faint();
        let write = |at: &mut Parameters<T>| {
            self.model.write(&swept.product, at);
            at.count();
        };
        // The likelihood is known: only priors look at the new parameters.
        let new = (faint || self.model.plan().has_priors()).then(|| {
            let mut new = at.clone();
            write(&mut new);
            new
        });
        let value = match &new {
            // The E-step may take for 0 what the row problems do not.
            Some(new) if faint => self.algorithm.objective(new)?,
            new => {
                let (sense, specs) = (self.algorithm.sense(), self.algorithm.blocks());
                let value = self.model.value(swept.ln_lik);
                (new.as_ref()).map_or(value, |new| with_priors(value, sense, specs, new))
            }
        };
        if !self.accepts(value, place.best) {
            return Ok(false);
        }
        match new {
            Some(new) => *at = new,
            None => write(at),
        }
        let divergence = self.entropy - swept.ln_lik;
        if place.beta <= 0.0 && (value - place.value).abs() < BELOW * divergence {
            place.beta = FIRST;
        }
        place.kept = swept.product;
        place.ahead = swept.ahead;
        self.measured(place, value);
        Ok(true)
    }

    fn measured(&self, place: &mut Progress<T>, value: f64) {
        place.value = value;
        if self.algorithm.sense().not_worse(value, place.best) {
            place.best = value;
        }
    }

    /// One step of EM, unless rounding makes it worse.
    fn em_step(&self, at: &mut Parameters<T>, place: &mut Progress<T>) -> Result<(), FitError> {
        let mut new = at.clone();
        self.algorithm.step(&mut new, false)?;
        let value = self.algorithm.objective(&new)?;
        if self.accepts(value, place.best) {
            place.kept = self.model.product(&new);
            self.settle(&mut place.kept)?;
            *at = new;
            self.measured(place, value);
        }
        place.ahead = place.kept.clone();
        Ok(())
    }

    /// One iteration.
    fn advance(&self, at: &mut Parameters<T>, place: &mut Progress<T>) -> Result<(), FitError> {
        if place.beta > 0.0 {
            let beta = place.beta;
            let swept = self.sweep(&place.kept, place.ahead.clone(), beta)?;
            if self.take(at, place, swept)? {
                // [AG alg. 1] [SPEC 10.1] β <- min(1.05 β, β_max), β_max <- min(1.01 β_max, 1)
                place.beta = (GROWTH * beta).min(place.beta_max);
                place.beta_max = (BOUND * place.beta_max).min(1.0);
                return Ok(());
            }
            // [AG alg. 1] [SPEC 10.1] β_max <- β, β <- β / 1.5
            place.beta_max = beta;
            place.beta = beta / FALL;
        }
        let swept = self.sweep(&place.kept, place.kept.clone(), 0.0)?;
        match self.take(at, place, swept)? {
            true => Ok(()),
            false => self.em_step(at, place),
        }
    }
}

impl<T: Real> Steps<T> for Fast<'_, T> {
    fn step(&mut self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        // [SPEC 1.4] what tempered steps raise is not what the row problems are about
        refuse(at.power() != 1.0, "tempering")?;
        // A step that fails leaves the place as it was.
        let mut place = match &self.place {
            Some(place) => place.clone(),
            None => self.begin(at)?,
        };
        let value = measure.then_some(place.value);
        self.advance(at, &mut place)?;
        self.place = Some(place);
        Ok(Stepped::of(value))
    }

    fn memory(&self) -> Memory {
        self.place
            .as_ref()
            .map(Progress::memory)
            .unwrap_or_default()
    }

    fn finish(&self, at: &Parameters<T>) -> Result<Option<Parameters<T>>, FitError> {
        let mut end = at.clone();
        let value = match self.algorithm.step(&mut end, true) {
            Ok(Stepped {
                value: Some(value), ..
            }) => value,
            Ok(_) => self.algorithm.objective(at)?,
            // The parameters stand as they are.
            Err(error) if error.rejects_point() => return Ok(None),
            Err(error) => return Err(error),
        };
        // [SPEC 10.1] a step of EM, kept if it is better
        let reached = self.algorithm.objective(&end)?;
        let better = value != reached && self.algorithm.sense().not_worse(reached, value);
        Ok(better.then_some(end))
    }
}
