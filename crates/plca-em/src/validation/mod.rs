//! Cross-validated numbers of components: cells are held out fold by fold, and predicted by fits to the others.

mod folds;
mod independent;
mod table;

use std::sync::atomic::{AtomicBool, Ordering};

use plca_dist::deviance;
use plca_dist::key::{Generator, Key, Purpose};
use plca_fit::{Fit, FitError, Model, Reconstruct, Run, Sense};
use plca_tensor::parallel::apart;
use plca_tensor::{CompensatedSum, Data};

use crate::EmError;
use independent::Independent;
use table::variance;

pub use folds::{Folds, Speckled};
pub use table::{RankRow, RankRule, RankScores, RankTable, best_rank};

/// Speckled cross-validation: how well a model predicts single cells that its fit did not see.
///
/// Every observed cell belongs to one of `F` folds, by a [key](plca_dist::key) of its index: other rows, columns, ranks or threads move no cell. Each fold is
/// hidden in turn, the model is fitted to the other cells, and what it expects of the hidden ones is compared with them:
///
/// ```math
/// s = \text{mean of } d(x, y'), \qquad d(x, y) = 2 \left( x \ln \frac{x}{y} - x + y \right), \qquad y' = (1 - E) \, y + E \, q
/// ```
///
/// `x` is a held-out value, `y` the model, `q` the model of independent dimensions of the same training data, and `E` the
/// [`smoothing`](field@Self::smoothing), by which no positive value is impossible. Of several starts the one with the best *training* objective is scored. Data need
/// not be counts: nothing is compared with a scale of its own.
///
/// Of every index all of whose positive cells come into one fold, the cell with the smallest key is always trained on, and never scored.
///
/// ```
/// use plca_em::{CrossValidation, EmError, Init, Plca, RankRule, Stop};
/// use plca_em::tensor::{DenseTensor, Order};
/// // Three blocks.
/// let cell = |n: usize| if n / 12 / 4 == n % 12 / 4 { 20.0 + (n % 5) as f64 } else { 1.0 };
/// let v = DenseTensor::<f64>::new(vec![12, 12], (0..144).map(cell).collect(), Order::RowMajor)?;
/// let table = CrossValidation::default().run(
///     &v,
///     &[1, 2, 3, 4, 5],
///     &|rank| Ok::<_, EmError>(Plca::new(rank)),
///     &|fold, run| Ok(run.stop(Stop::default().tol(1e-6)).run(Init::default(), &mut fold.draws())?),
/// )?;
/// assert_eq!(table.choice(RankRule::OneStandardError), Some(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CrossValidation {
    /// Number of folds `F` (default 5), at least 2.
    pub folds: usize,
    /// How often the data are divided anew (default 1). Costs as many fits, and brings no new data.
    pub repeats: usize,
    /// Starts of every fit (default 3).
    pub starts: usize,
    /// The seed of folds and starts (default 0).
    pub seed: u64,
    /// Whether cells that are 0 are in folds (default). Otherwise only positive cells are, and zeros are always trained on: for sparse data,
    /// whose zeros are too many to be held out.
    pub zeros: bool,
    /// The share `E` of the model of independent dimensions, in `(0, 1)` (default .01).
    pub smoothing: f64,
    /// Keys take the indices of a cell in reverse: for a matrix that was turned after it was read, whose folds are to be those of its file.
    pub turned: bool,
}

impl Default for CrossValidation {
    fn default() -> Self {
        Self {
            folds: 5,
            repeats: 1,
            starts: 3,
            seed: 0,
            zeros: true,
            smoothing: 0.01,
            turned: false,
        }
    }
}

/// Setters of fields, for a value that is handed on.
macro_rules! setters {
    ($($name:ident: $value:ty;)*) => {
        impl CrossValidation {
            $(
                #[doc = concat!("Sets [`", stringify!($name), "`](field@Self::", stringify!($name), ").")]
                #[must_use]
                pub fn $name(mut self, value: $value) -> Self {
                    self.$name = value;
                    self
                }
            )*
        }
    };
}

setters! {
    folds: usize;
    repeats: usize;
    starts: usize;
    seed: u64;
    zeros: bool;
    smoothing: f64;
    turned: bool;
}

/// One fit of a cross-validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfFold {
    /// The number of components.
    pub rank: usize,
    /// The repeat, counted from 0.
    pub repeat: usize,
    /// The fold that is held out, counted from 0.
    pub fold: usize,
    /// The start, counted from 0.
    pub start: usize,
    seed: u64,
}

impl OfFold {
    /// The random numbers of its start: the same for every fold.
    pub fn draws(&self) -> Generator {
        let words = [self.rank, self.start].map(|n| n as u64);
        let [rank, start] = words;
        Key::of(&[self.seed, Purpose::Starts.word(), rank, start]).generator()
    }
}

/// How many times the largest of the data a prediction is far from them.
const FAR: f64 = 10.0;

/// A fit that has been scored.
struct Scored {
    /// Larger is better.
    objective: f64,
    score: Option<f64>,
    /// The largest prediction of a cell that was scored.
    largest: f64,
    cut: bool,
}

/// What to do with a model that is bound to the training data of a fold: set the solver and the stop rule, and run it.
pub type FitFold<'f, S, E> = dyn Fn(OfFold, Run<'_, S>) -> Result<Fit<S>, E> + Sync + 'f;

impl CrossValidation {
    /// Refuses invalid numbers.
    ///
    /// # Errors
    ///
    /// [`EmError::Number`], [`EmError::Smoothing`].
    pub fn check(&self) -> Result<(), EmError> {
        let numbers = [
            ("folds", self.folds, 2),
            ("repeats", self.repeats, 1),
            ("starts", self.starts, 1),
        ];
        for (name, value, least) in numbers {
            if value < least {
                return Err(EmError::Number { name, value, least });
            }
        }
        match self.smoothing > 0.0 && self.smoothing < 1.0 {
            true => Ok(()),
            false => Err(EmError::Smoothing(self.smoothing)),
        }
    }

    /// The data with their folds.
    ///
    /// # Errors
    ///
    /// [`EmError`]: those of [`check`](Self::check), more folds than positive cells, data with negative values, or with more cells than memory
    /// holds where zeros are in folds.
    pub fn speckled(&self, data: &dyn Data<f64>) -> Result<Speckled, EmError> {
        Speckled::new(data, self.clone())
    }

    /// The scores of several numbers of components. `model` makes the model with a number of components, and `fit` runs it on the training data of a fold.
    ///
    /// A matrix has no more components than rows or columns: larger ranks are not fitted, and have no scores. The fits share nothing and are made side by
    /// side on the threads of the current pool. Results do not depend on their number.
    ///
    /// # Errors
    ///
    /// As [`speckled`](Self::speckled), and the first error of a fit. `E` may be [`EmError`].
    pub fn run<M, E>(
        &self,
        data: &dyn Data<f64>,
        ranks: &[usize],
        model: &(dyn Fn(usize) -> Result<M, E> + Sync),
        fit: &FitFold<'_, M::State, E>,
    ) -> Result<RankTable, E>
    where
        M: Model<f64, State: Reconstruct>,
        E: From<EmError> + From<FitError> + Send,
    {
        let speckled = self.speckled(data)?;
        let repeats: Vec<Folds<'_>> = (0..self.repeats).map(|r| speckled.folds(r)).collect();
        let per_rank = self.repeats * self.folds;
        let failed = AtomicBool::new(false);
        let unless_failed = |work: &dyn Fn() -> Result<Vec<Scored>, E>| {
            if failed.load(Ordering::Relaxed) {
                return Ok(Vec::new());
            }
            let done = work();
            failed.fetch_or(done.is_err(), Ordering::Relaxed);
            done
        };
        let bases = apart(per_rank, |task| -> Result<Independent, E> {
            let (folds, fold) = (&repeats[task / self.folds], task % self.folds);
            let train = speckled.train(folds, fold)?;
            Ok(Independent::of(&*train)?)
        });
        let bases = bases.into_iter().collect::<Result<Vec<_>, E>>()?;
        let unsettled = bases.iter().filter(|base| !base.settled).count();
        let fits = |&rank: &usize| match *data.shape() {
            [rows, columns] => rank <= rows.min(columns),
            _ => true,
        };
        let mut fitted: Vec<usize> = ranks.iter().copied().filter(fits).collect();
        // Those of most components first: no long one is begun when all others are done.
        fitted.sort_unstable_by(|a, b| b.cmp(a));
        fitted.dedup();
        let done = apart(fitted.len() * per_rank, |task| {
            let (rank, task) = (fitted[task / per_rank], task % per_rank);
            let (repeat, fold) = (task / self.folds, task % self.folds);
            unless_failed(&|| {
                let train = speckled.train(&repeats[repeat], fold)?;
                let model = model(rank)?;
                let start = |start| {
                    let of = OfFold {
                        rank,
                        repeat,
                        fold,
                        start,
                        seed: self.seed,
                    };
                    let run = model.on(&*train)?;
                    let sense = run.algorithm().sense();
                    let fit = fit(of, run)?;
                    let (score, largest) =
                        self.score(&repeats[repeat], fold, &bases[task], fit.state());
                    Ok(Scored {
                        objective: match sense {
                            Sense::Maximise => fit.compared(),
                            Sense::Minimise => -fit.compared(),
                        },
                        cut: fit.status().is_warning(),
                        score,
                        largest,
                    })
                };
                (0..self.starts).map(start).collect()
            })
        });
        let done = done.into_iter().collect::<Result<Vec<_>, E>>()?;
        let mut largest = 0.0f64;
        data.visit(&mut |_, x| largest = largest.max(x))
            .map_err(FitError::from)?;
        let rows = ranks.iter().map(|&rank| {
            let place = fitted.iter().position(|&fitted| fitted == rank);
            match place {
                Some(place) => {
                    let done = &done[place * per_rank..(place + 1) * per_rank];
                    self.row(rank, done, FAR * largest)
                }
                None => RankScores {
                    rank,
                    ..RankScores::default()
                },
            }
        });
        Ok(RankTable::new(rows.collect()).unsettled(unsettled))
    }

    /// The scores of the fits of one rank.
    fn row(&self, rank: usize, fits: &[Vec<Scored>], far: f64) -> RankScores {
        // Not a number is never the best; of equal ones the first.
        fn best(starts: &[Scored]) -> &Scored {
            let mut best = &starts[0];
            for start in &starts[1..] {
                if start.objective > best.objective || best.objective.is_nan() {
                    best = start;
                }
            }
            best
        }
        let bests: Vec<&Scored> = fits.iter().map(|starts| best(starts)).collect();
        let of_start = |start: usize| {
            let scores: Vec<f64> = fits
                .iter()
                .filter_map(|starts| starts[start].score)
                .collect();
            scores.iter().sum::<f64>() / scores.len() as f64
        };
        let of_starts: Vec<f64> = (0..self.starts).map(of_start).collect();
        RankScores {
            rank,
            scores: bests
                .chunks(self.folds)
                .map(|repeat| repeat.iter().map(|best| best.score).collect())
                .collect(),
            start_sd: variance(&of_starts).map(f64::sqrt),
            cut: bests.iter().any(|best| best.cut),
            far: bests.iter().any(|best| best.largest > far),
        }
    }

    /// The mean deviance of the cells of a fold, and the largest prediction of one.
    fn score<S: Reconstruct>(
        &self,
        folds: &Folds<'_>,
        fold: usize,
        base: &Independent,
        state: &S,
    ) -> (Option<f64>, f64) {
        let (mut sum, mut cells, mut largest) = (CompensatedSum::default(), 0u64, 0.0f64);
        folds.visit(|index, x, of| {
            if of != Some(fold) {
                return;
            }
            // [SEL 2] y' = (1-E) y + E q
            let y = (1.0 - self.smoothing) * state.cell(index) + self.smoothing * base.cell(index);
            // [SEL 2] d(x, y') = 2 (x log(x/y') - x + y')
            sum += 2.0 * deviance(x, y);
            cells += 1;
            largest = largest.max(y);
        });
        let score = (cells > 0).then(|| sum.value() / cells as f64);
        (score, largest)
    }
}
