//! The table of ranks, and the rules that choose from it.

/// Scores that differ by less, relative to the larger one, are equal.
const TIE: f64 = 1e-9;

/// Whether a score is no worse than another, smaller ones being better: smaller, or equal to a relative 1e-9.
fn not_worse(score: f64, than: f64) -> bool {
    score <= than || score - than <= TIE * score.abs().max(than.abs())
}

/// The place of the best of several ranks, given as pairs of rank and score: of the smallest score; of scores that are equal to a relative 1e-9 that of
/// the smallest rank, and of equal ranks the first. Scores that are not numbers are passed over.
///
/// ```
/// use plca_em::best_rank;
/// assert_eq!(best_rank(&[(1, 7.0), (3, 5.0 - 1e-11), (2, 5.0)]), Some(2));
/// assert_eq!(best_rank(&[(1, f64::NAN)]), None);
/// ```
pub fn best_rank(scores: &[(usize, f64)]) -> Option<usize> {
    let numbers = || scores.iter().filter(|(_, score)| !score.is_nan());
    let least = numbers().map(|&(_, score)| score).fold(f64::NAN, f64::min);
    let rank = numbers()
        .filter(|&&(_, score)| not_worse(score, least))
        .map(|&(rank, _)| rank)
        .min()?;
    let is_best = |&(r, score): &(usize, f64)| r == rank && not_worse(score, least);
    scores.iter().position(is_best)
}

/// The rule by which a number of components is chosen from cross-validated scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RankRule {
    /// The smallest mean score.
    #[default]
    Best,
    /// The smallest rank whose mean is at most one standard error above the best: that of the best.
    OneStandardError,
    /// The smallest rank whose differences from the best, fold by fold, have a mean of at most their own standard error.
    Paired,
}

/// The scores of one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankScores {
    /// The number of components.
    pub rank: usize,
    /// The score of every fold of every repeat, smaller is better; `None` for a fold without cells to score. Empty for a rank that could not be fitted.
    pub scores: Vec<Vec<Option<f64>>>,
    /// Standard deviation over the starts of the mean score that each of them has; `None` with one start.
    pub start_sd: Option<f64>,
    /// Whether a fit was ended by its largest number of iterations.
    pub cut: bool,
    /// Whether a held-out cell was predicted to be more than 10 times the largest of the data: the other cells do not determine it, and it decides the
    /// score.
    pub far: bool,
}

/// A row of a [`RankTable`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RankRow {
    /// What it was made of.
    pub scores: RankScores,
    /// The mean over repeats and folds, where the rank was fitted.
    pub score: Option<f64>,
    /// Its standard error; none of a single fold.
    pub se: Option<f64>,
    /// The mean of the differences from the best rank, fold by fold.
    pub difference: Option<f64>,
    /// Their standard error.
    pub difference_se: Option<f64>,
}

/// Cross-validated scores of several numbers of components.
///
/// ```math
/// m_K = \text{mean over repeats and folds}, \qquad
/// \text{se} = \sqrt{\frac{1}{F} \, \text{mean over repeats of} \, \mathrm{var}_f(s)}
/// ```
///
/// The variance over the `F` folds of a repeat has `F - 1` in its divisor. Repeats bring no new data and so do not shrink a standard error.
///
/// ```
/// use plca_em::{RankRule, RankScores, RankTable};
/// let row = |rank, scores: [f64; 3]| RankScores { rank, scores: vec![scores.map(Some).to_vec()], ..RankScores::default() };
/// let table = RankTable::new(vec![row(1, [3.0, 4.0, 5.0]), row(2, [2.1, 2.9, 4.1]), row(3, [2.0, 3.0, 4.0])]);
/// assert_eq!(table.choice(RankRule::Best), Some(3));
/// assert_eq!(table.choice(RankRule::OneStandardError), Some(2));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RankTable {
    rows: Vec<RankRow>,
    best: Option<usize>,
    unsettled: usize,
}

/// The numbers among some scores.
fn numbers(scores: &[Vec<Option<f64>>]) -> Vec<f64> {
    scores.iter().flatten().flatten().copied().collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The square of the standard deviation, with the number less one in the divisor.
pub(super) fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (values.len() > 1).then(|| squares / (values.len() - 1) as f64)
}

/// The standard error of a mean over folds.
fn standard_error(scores: &[Vec<Option<f64>>]) -> Option<f64> {
    let of_repeat = |folds: &Vec<Option<f64>>| {
        let folds: Vec<f64> = folds.iter().flatten().copied().collect();
        // [SEL 2] var_f(s; F - 1 in the divisor) / F
        variance(&folds).map(|variance| variance / folds.len() as f64)
    };
    let repeats: Vec<f64> = scores.iter().filter_map(of_repeat).collect();
    mean(&repeats).map(f64::sqrt)
}

impl RankTable {
    /// The table of these scores.
    pub fn new(scores: Vec<RankScores>) -> Self {
        let means: Vec<Option<f64>> = scores.iter().map(|of| mean(&numbers(&of.scores))).collect();
        let pairs = scores.iter().zip(&means);
        let pairs: Vec<_> = pairs
            .map(|(of, mean)| (of.rank, mean.unwrap_or(f64::NAN)))
            .collect();
        let best = best_rank(&pairs);
        let of_best = best.map(|at| scores[at].scores.clone());
        let row = |(scores, score): (RankScores, Option<f64>)| {
            let paired = |(own, best): (&Vec<Option<f64>>, &Vec<Option<f64>>)| {
                let folds = own.iter().zip(best);
                folds.map(|(own, best)| Some((*own)? - (*best)?)).collect()
            };
            let repeats = scores.scores.iter().zip(of_best.iter().flatten());
            let differences: Vec<Vec<Option<f64>>> = repeats.map(paired).collect();
            RankRow {
                score,
                se: standard_error(&scores.scores),
                difference: mean(&numbers(&differences)),
                difference_se: standard_error(&differences),
                scores,
            }
        };
        Self {
            rows: scores.into_iter().zip(means).map(row).collect(),
            best,
            unsettled: 0,
        }
    }

    pub(super) fn unsettled(self, unsettled: usize) -> Self {
        Self { unsettled, ..self }
    }

    /// The number of folds, of all repeats, whose model of independent dimensions did not converge in 10000 iterations: few cells join those held out to the
    /// others; or none do, and the likelihood rises as the predictions of hidden cells grow without end, that of a fit, too. Scores may be of any size then.
    pub fn unsettled_folds(&self) -> usize {
        self.unsettled
    }

    /// The rows, in the order of the ranks as they were given.
    pub fn rows(&self) -> &[RankRow] {
        &self.rows
    }

    /// The row of the best rank: that with the smallest mean; of means that are equal to a relative 1e-9 the smallest rank.
    pub fn best(&self) -> Option<&RankRow> {
        self.best.map(|at| &self.rows[at])
    }

    /// The score up to which a rank is as good as the best by [`RankRule::OneStandardError`].
    pub fn limit(&self) -> Option<f64> {
        let best = self.best()?;
        Some(best.score? + best.se.unwrap_or(0.0))
    }

    /// The number of components that a rule chooses; none if no rank was fitted.
    pub fn choice(&self, rule: RankRule) -> Option<usize> {
        let limit = self.limit()?;
        let within = |row: &&RankRow| match rule {
            RankRule::Best => false,
            // [SEL 2] m_K <= m_best + se_best
            RankRule::OneStandardError => row.score.is_some_and(|score| not_worse(score, limit)),
            // [SEL 2] the mean of the differences is at most their own standard error
            RankRule::Paired => match (row.difference, row.difference_se) {
                (Some(difference), se) => difference <= se.unwrap_or(0.0),
                (None, _) => false,
            },
        };
        let chosen = self.rows.iter().filter(within).map(|row| row.scores.rank);
        let best = self.best()?.scores.rank;
        Some(chosen.min().map_or(best, |chosen| chosen.min(best)))
    }
}
