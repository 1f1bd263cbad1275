//! Scores of several numbers of components.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use plca_em::{CrossValidation, OfFold, RankTable, Selection};
use plca_fit::{Fit, FitError, Init, Iteration, Run, Solver, State, Status, Stop};
use plca_tensor::Data;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::kind::{Kind, unable};
use crate::{AnyModel, ModelEntry, RunError, Saved, Scalar};

/// The score of a number of components, smaller is better, and what it follows from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// The score.
    pub score: f64,
    /// The log-likelihood.
    pub ln_lik: f64,
    /// The number of free parameters.
    pub parameters: usize,
}

/// A score, and the fit behind it.
#[derive(Clone, Debug)]
pub struct Scored {
    /// The number of components.
    pub components: usize,
    /// Their score.
    pub score: Score,
    /// The objective of the fit.
    pub objective: f64,
    /// How the fit ended.
    pub status: Status,
}

/// A model with several numbers of components, each fitted alike.
pub struct Sizes<'a> {
    /// One model for each number.
    pub models: &'a [Box<dyn AnyModel>],
    /// How the fits are made.
    pub solver: Solver,
    /// When they end.
    pub stop: Stop,
    /// Starts of each.
    pub restarts: u32,
    /// The seed of all.
    pub seed: u64,
    /// Whether all are to end.
    pub interrupted: &'a (dyn Fn() -> bool + Sync),
}

impl std::fmt::Debug for Sizes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sizes")
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

/// Cross-validated scores.
#[derive(Debug)]
pub struct Validated {
    /// The scores.
    pub table: RankTable,
    /// Seconds that the fits of a number of components took, one after the other.
    pub seconds: BTreeMap<usize, f64>,
}

impl Sizes<'_> {
    fn run<'r, S: State>(&'r self, run: Run<'r, S>) -> Run<'r, S> {
        let run = run.solver(self.solver).stop(self.stop.clone());
        run.observe(|_: &Iteration<'_, S::Scalar>| match (self.interrupted)() {
            true => ControlFlow::Break(Status::Interrupted),
            false => ControlFlow::Continue(()),
        })
    }

    fn going(&self) -> Result<(), FitError> {
        match (self.interrupted)() {
            true => Err(FitError::Interrupted),
            false => Ok(()),
        }
    }

    /// Scores by bounds of the evidence. All starts, of all numbers of components, draw from one stream of the seed.
    ///
    /// # Errors
    ///
    /// Those of fits; [`RunError::Unable`] for a model without such a bound.
    pub fn by_bound(&self, data: &dyn Data<f64>) -> Result<Vec<Scored>, RunError> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let all = self.models.iter().map(|model| {
            let run = self.run(f64::of(&**model).model().on(data)?);
            let fit = run.restarts(self.restarts).run(Init::default(), &mut rng)?;
            self.going()?;
            let (objective, status) = (fit.objective(), fit.status().clone());
            Ok(Scored {
                components: model.components(),
                score: model.evidence(fit.into_state(), objective, data)?,
                objective,
                status,
            })
        });
        all.collect()
    }

    /// Scores by likelihoods of what a selection fits, each the best of all starts: start `r` draws from stream `r` of the seed.
    ///
    /// # Errors
    ///
    /// Those of fits; [`RunError::Unable`] for models that are none of the entry, or whose likelihood chooses nothing.
    pub fn by_likelihood(
        &self,
        entry: &ModelEntry,
        selection: &Selection<'_, ChaCha8Rng>,
    ) -> Result<Vec<Scored>, RunError> {
        let train = selection.train();
        let start = |model: &dyn AnyModel, start: u32| -> Result<_, FitError> {
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            rng.set_stream(u64::from(start));
            let run = self.run(f64::of(model).model().on(train)?);
            let fit = run.run(Init::default(), &mut rng)?;
            self.going().map(|()| fit)
        };
        let all = self.models.iter().map(|model| {
            let mut best = start(&**model, 0)?;
            for other in 1..self.restarts {
                let fit = start(&**model, other)?;
                if fit.compared() > best.compared() {
                    best = fit;
                }
            }
            let parameters = model.free_parameters(train.shape())?;
            let (ln_lik, status) = (best.objective(), best.status().clone());
            let file = entry.file(best.state());
            let found = entry.approximation(Saved::new(Path::new("the model"), file))?;
            let total = train.total();
            let density = |index: &[usize]| found.cell(index) / total;
            Ok(Scored {
                components: model.components(),
                score: Score {
                    score: selection.score(ln_lik, parameters, &density)?,
                    ln_lik,
                    parameters,
                },
                objective: ln_lik,
                status,
            })
        });
        all.collect()
    }

    /// Scores by cross-validation; `starts` are those of the numbers of components that do not begin at random.
    ///
    /// # Errors
    ///
    /// Those of the division into folds, and of fits; [`RunError::Unable`] for models that are none of the entry.
    pub fn cross_validated(
        &self,
        entry: &ModelEntry,
        (data, how): (&dyn Data<f64>, &CrossValidation),
        starts: &BTreeMap<usize, Init<f64>>,
    ) -> Result<Validated, RunError> {
        (entry.validate)(self, (data, how), starts)
    }
}

/// What cross-validates a model.
pub(crate) type Validate = fn(
    &Sizes<'_>,
    (&dyn Data<f64>, &CrossValidation),
    &BTreeMap<usize, Init<f64>>,
) -> Result<Validated, RunError>;

/// The scores of a model of a type.
pub(crate) fn validate<K: Kind>(
    sizes: &Sizes<'_>,
    (data, how): (&dyn Data<f64>, &CrossValidation),
    starts: &BTreeMap<usize, Init<f64>>,
) -> Result<Validated, RunError> {
    let seconds = Mutex::new(BTreeMap::new());
    let ranks: Vec<usize> = sizes
        .models
        .iter()
        .map(|model| model.components())
        .collect();
    let typed = |rank: usize| {
        let mut all = sizes.models.iter();
        let model = all.find_map(|model| {
            model
                .any()
                .downcast_ref::<K>()
                .filter(|m| m.components() == rank)
        });
        let model = model.cloned().map(K::into_typed);
        model.ok_or_else(|| unable::<K>("is not the model of the table"))
    };
    let fit = |fold: OfFold, run: Run<'_, K::State<f64>>| -> Result<Fit<_>, RunError> {
        let begun = Instant::now();
        let init = starts.get(&fold.rank).cloned().unwrap_or_default();
        let fit = sizes.run(run).run(init, &mut fold.draws());
        sizes.going()?;
        let fit = fit.map_err(|source| RunError::Fold { fold, source })?;
        let mut seconds = seconds.lock().unwrap_or_else(PoisonError::into_inner);
        *seconds.entry(fold.rank).or_insert(0.0) += begun.elapsed().as_secs_f64();
        Ok(fit)
    };
    Ok(Validated {
        table: how.run(data, &ranks, &typed, &fit)?,
        seconds: seconds.into_inner().unwrap_or_else(PoisonError::into_inner),
    })
}
