//! Observations explained one by one, each as a batch of one: what is found of one does not depend on the others.

use nalgebra::DMatrix;
use plca_tensor::arrange::Observations;
use plca_tensor::parallel::apart;
use plca_tensor::{CompensatedSum, Data, DataError, Real, check_counts};

use super::init::scaled;
use super::{
    Algorithm, Checkpoint, Explained, Fit, FitError, Impossible, Parameters, State, Status,
    TracePoint, Transform,
};

/// Explains every observation along a mode alone: `one` is given its number, it as data of size 1 along the mode, and how. Of an observation of which nothing was
/// observed, and where `one` answers so, there is nothing. Observations are shared out among the threads.
///
/// What `one` is given follows from the observation's own cells alone, so that what it finds is bit-identical in any batch, in any storage and for any number of
/// threads. A time limit is for all observations together.
///
/// ```
/// use plca_fit::{explain::each, Transform};
/// use plca_tensor::{DenseTensor, Order};
/// let v = DenseTensor::<f64>::new(vec![2, 3], vec![3.0, 1.0, 2.0, 0.0, 4.0, 2.0], Order::RowMajor)?;
/// let sums = each(&v, 1, &Transform::default(), |_, column, _| Ok(Some(column.total())))?;
/// assert_eq!(sums, [Some(3.0), Some(5.0), Some(4.0)]);
/// # Ok::<(), plca_fit::FitError>(())
/// ```
///
/// # Errors
///
/// The first one in the order of the observations: those of `one`, with the observation's number in their indices, and data that cannot be read.
pub fn each<T: Real, O: Send>(
    data: &dyn Data<T>,
    along: usize,
    how: &Transform,
    one: impl Fn(usize, &dyn Data<T>, &Transform) -> Result<Option<O>, FitError> + Sync,
) -> Result<Vec<Option<O>>, FitError> {
    let deadline = how.stop.deadline();
    let observations = Observations::new(data, along)?;
    let found = apart(observations.count(), |y| {
        if !observations.is_seen(y) {
            return Ok(None);
        }
        let mut how = how.clone();
        how.stop.time_limit = deadline.left();
        let found = observations.at(y).map_err(FitError::from);
        let found = found.and_then(|observation| one(y, &*observation, &how));
        found.map_err(|e| of_observation(e, along, y))
    });
    found.into_iter().collect()
}

/// What was wrong with an observation, said of the batch.
fn of_observation(mut error: FitError, along: usize, y: usize) -> FitError {
    if let FitError::Entry { index, .. }
    | FitError::Impossible { index, .. }
    | FitError::Support { index, .. }
    | FitError::Data(DataError::NotFinite { index, .. } | DataError::Negative { index, .. }) =
        &mut error
        && let Some(place) = index.get_mut(along)
    {
        *place = y;
    }
    error
}

/// How the explanations of many observations ended: with the status of the observation that got least far.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The most iterations of an observation.
    pub iterations: usize,
    /// Why the one that came least far ended.
    pub status: Status,
}

/// How far a run came, the larger the less far.
fn rank(status: &Status) -> u8 {
    match status {
        Status::Settled => 0,
        Status::Stationary => 1,
        Status::Converged | Status::HeldOut => 2,
        Status::MaxIterations => 3,
        Status::TimeLimit => 4,
        Status::Interrupted | Status::Custom(_) => 5,
    }
}

impl Default for Outcome {
    /// Of no observation.
    fn default() -> Self {
        Self {
            iterations: 0,
            status: Status::Settled,
        }
    }
}

impl Outcome {
    /// With one more.
    pub fn and(&mut self, iterations: usize, status: &Status) {
        self.iterations = self.iterations.max(iterations);
        if rank(status) > rank(&self.status) {
            self.status = status.clone();
        }
    }

    /// Of explained observations.
    pub fn of<'a, O: 'a>(all: impl IntoIterator<Item = &'a Alone<O>>) -> Self {
        let mut ended = Self::default();
        for one in all {
            ended.and(one.iterations, &one.status);
        }
        ended
    }

    /// The fit that ends with these parameters.
    ///
    /// # Errors
    ///
    /// Those of the objective, and of [`State::wrap`].
    pub fn fit<S: State>(
        &self,
        algorithm: &dyn Algorithm<S::Scalar>,
        at: Parameters<S::Scalar>,
    ) -> Result<Fit<S>, FitError> {
        let compared = algorithm.objective(&at)?;
        self.fit_compared(algorithm, at, compared)
    }

    /// The same with another objective than that of the algorithm, without its constant.
    ///
    /// # Errors
    ///
    /// Those of [`State::wrap`].
    pub fn fit_compared<S: State>(
        &self,
        algorithm: &dyn Algorithm<S::Scalar>,
        at: Parameters<S::Scalar>,
        compared: f64,
    ) -> Result<Fit<S>, FitError> {
        let mut fit = self.fit_of(scaled(algorithm, at)?, compared + algorithm.constant())?;
        fit.compared = compared;
        Ok(fit)
    }

    /// The same of parameters whose objective is known, and has no constant.
    ///
    /// # Errors
    ///
    /// Those of [`State::wrap`].
    pub fn fit_of<S: State>(
        &self,
        at: Parameters<S::Scalar>,
        objective: f64,
    ) -> Result<Fit<S>, FitError> {
        let at = at.at_iteration(self.iterations);
        let end = TracePoint {
            iteration: self.iterations,
            objective,
        };
        Ok(Fit {
            state: S::wrap(at.clone())?,
            status: self.status.clone(),
            objective,
            compared: objective,
            held_out_perplexity: None,
            trace: vec![end],
            events: Vec::new(),
            checkpoint: Checkpoint {
                iteration: self.iterations,
                ..Checkpoint::new(at)
            },
        })
    }
}

/// What is kept of an observation that was explained alone: what describes it, without what was learnt, which would be there once for every observation.
#[derive(Clone, Debug)]
pub struct Alone<O> {
    /// What describes it.
    pub own: O,
    /// Its gap, if one is certified.
    pub gap: Option<f64>,
    /// The sum of its counts that were left out.
    pub dropped: f64,
    /// Whether it has no count.
    pub is_empty: bool,
    /// Its objective.
    pub objective: f64,
    iterations: usize,
    status: Status,
}

impl<O> Alone<O> {
    /// Of a batch of one, which `own` describes.
    pub fn of<S: State>(found: &Explained<S>, own: impl FnOnce(&S) -> O) -> Self {
        Self {
            own: own(found.fit.state()),
            gap: found.gap.first().copied(),
            dropped: found.dropped,
            is_empty: !found.empty.is_empty(),
            objective: found.fit.objective(),
            iterations: found.fit.iterations(),
            status: found.fit.status().clone(),
        }
    }
}

/// Observations explained each as a batch of one, of a model that normalises over a batch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Each {
    /// What describes an observation, by its name: a row for every observation.
    pub blocks: Vec<(String, DMatrix<f64>)>,
    /// The gap of every observation, where there are any.
    pub gap: Vec<f64>,
    /// The sum of the counts that were left out.
    pub dropped: f64,
    /// Observations without a count.
    pub empty: Vec<usize>,
    /// The sum of the objectives, each of an observation alone.
    pub objective: f64,
    /// How the observations ended.
    pub ended: Outcome,
}

/// Explains every observation along a mode by `one` as a batch of one, so that it is bit-identical in any batch. `row` describes an observation by its state. It is given `None` for an observation with no observed cell, or, with `counts`, with no count.
///
/// # Errors
///
/// As [`each`].
pub fn explain_each<S: State + Send>(
    data: &dyn Data<S::Scalar>,
    (along, counts): (usize, bool),
    how: &Transform,
    one: impl Fn(&dyn Data<S::Scalar>, &Transform) -> Result<Explained<S>, FitError> + Sync,
    row: impl Fn(Option<&S>) -> Result<Vec<(String, Vec<f64>)>, FitError> + Sync,
) -> Result<Each, FitError> {
    how.stop.check()?;
    if counts {
        check_counts(data)?;
    }
    // What no component can explain, of an observation that has nothing else.
    let lost = |observation: &dyn Data<S::Scalar>| (None, observation.total());
    let found = each(data, along, how, |_, observation, how| {
        if counts && observation.total() <= 0.0 {
            return Ok(None);
        }
        match one(observation, how) {
            Ok(found) => {
                let found = Alone::of(&found, |state| row(Some(state)));
                Ok(Some((Some(found), 0.0)))
            }
            Err(FitError::Data(DataError::NoMass)) if how.impossible == Impossible::Drop => {
                Ok(Some(lost(observation)))
            }
            Err(e) => Err(e),
        }
    })?;
    let runs = || {
        found
            .iter()
            .map(|one| one.as_ref().and_then(|(run, _)| run.as_ref()))
    };
    let nothing = row(None)?;
    let mut blocks: Vec<(String, DMatrix<f64>)> = (nothing.iter())
        .map(|(name, row)| (name.clone(), DMatrix::zeros(found.len(), row.len())))
        .collect();
    for (y, run) in runs().enumerate() {
        let rows = match run {
            Some(run) => run.own.as_ref().map_err(Clone::clone)?,
            None => &nothing,
        };
        for ((_, block), (_, row)) in blocks.iter_mut().zip(rows) {
            let entries = block.row_mut(y).into_iter().zip(row);
            entries.for_each(|(x, &value)| *x = value);
        }
    }
    let gapped = runs().flatten().any(|run| run.gap.is_some());
    let unexplained = found.iter().flatten().map(|(_, lost)| lost).sum::<f64>();
    let is_empty = |run: Option<&Alone<_>>| run.is_none_or(|run| run.is_empty);
    Ok(Each {
        gap: match gapped {
            true => runs()
                .map(|run| run.and_then(|run| run.gap).unwrap_or(0.0))
                .collect(),
            false => Vec::new(),
        },
        dropped: runs().flatten().map(|run| run.dropped).sum::<f64>() + unexplained,
        empty: runs()
            .enumerate()
            .filter(|(_, run)| is_empty(*run))
            .map(|(y, _)| y)
            .collect(),
        objective: runs()
            .flatten()
            .map(|run| run.objective)
            .collect::<CompensatedSum>()
            .value(),
        ended: Outcome::of(runs().flatten()),
        blocks,
    })
}
