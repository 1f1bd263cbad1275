//! Whether whole numbers are counts.

use plca_dist::ln_gamma;
use plca_tensor::{Data, DataError, Mask, Real};

/// Values from here on are not tabulated: each of them is rare.
const TABULATED: usize = 1000;
/// Standard deviations by which a number of cells may be off.
const DEVIATIONS: f64 = 4.0;
/// The probability that counts have sums as even as these, below which they are none.
const RARE: f64 = 1e-6;
/// Least mean of sums that are looked at: shares are printed per hundred or more, and small sums of counts may be even for many reasons.
const FEW: f64 = 90.0;
/// How many times more cells with the next value there would have to be at least.
const MORE: f64 = 1.5;

/// Why whole numbers are hardly counts: no independent Poisson counts look like this, whatever their means are and however much these vary.
///
/// ```
/// use plca_em::NotCounts;
/// let why = NotCounts::Values { value: 5 };
/// assert!(why.to_string().contains("5"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum NotCounts {
    /// Too many cells have this value for how few have the next one, as ratings and levels do.
    Values {
        /// Which.
        value: u64,
    },
    /// The sums along this mode are nearly, but not quite, the same for all of its indices, as those of rounded shares are.
    Sums {
        /// Which mode, counted from 0.
        mode: usize,
        /// Their mean.
        mean: f64,
    },
}

impl std::fmt::Display for NotCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Values { value } => write!(
                f,
                "whole numbers, but hardly counts: {value} is frequent and {} is rare, as in ratings or levels",
                value + 1
            ),
            Self::Sums { mode, mean } => write!(
                f,
                "whole numbers, but hardly counts: all sums along dimension {mode} are about {mean:.0}, as of rounded shares"
            ),
        }
    }
}

/// Says whether whole numbers are hardly counts. `None` says nothing of them: they may be counts, or data with fractions, which
/// [`Summary::integers`](plca_tensor::Summary::integers) tells.
///
/// If cells are independent Poisson counts with any means `λ`, the probabilities `p_k` of a value are the moments of a distribution of `λ`, up to
/// `k!`, and so
///
/// ```math
/// p_{k+1} \ge \frac{k}{k+1} \, \frac{p_k^2}{p_{k-1}}, \qquad
/// \mathrm{Var}\Bigl( \sum_i V_{ij} \Bigr) \ge E \Bigl( \sum_i V_{ij} \Bigr)
/// ```
///
/// Both hold for counts that vary more than Poisson counts do, too. Data are doubted where the first fails for a value `k` by a factor of 1.5 beyond what four standard
/// deviations of the three numbers of cells explain; or where the sums of the samples vary so little that Poisson counts do with a
/// probability below 1e-6, and are 90 or more. Sums that are all exactly the same are no sign: counts are sampled to equal depth. Nor are zeros and ones where less than a tenth are ones,
/// as the words of titles. Sums are those of complete data alone.
///
/// # Errors
///
/// Data that cannot be read.
///
/// # Examples
///
/// ```
/// use plca_em::{NotCounts, not_counts};
/// use plca_em::tensor::{DenseTensor, Order};
/// // Each of 1 to 5 as often as the others.
/// let ratings = (0..600).map(|n| f64::from(n * n % 7 % 5 + 1)).collect();
/// let ratings = DenseTensor::<f64>::new(vec![30, 20], ratings, Order::RowMajor)?;
/// assert!(matches!(not_counts(&ratings)?, Some(NotCounts::Values { .. })));
/// # Ok::<(), plca_em::tensor::DataError>(())
/// ```
pub fn not_counts(data: &dyn Data<f64>) -> Result<Option<NotCounts>, DataError> {
    if !data.summary().integers {
        return Ok(None);
    }
    if let Some(value) = crowded(data)? {
        return Ok(Some(NotCounts::Values { value }));
    }
    if !data.is_complete() {
        return Ok(None);
    }
    for mode in 0..data.shape().len() {
        let mut sums = data.marginal(mode)?;
        // Of samples without counts no share was taken.
        sums.retain(|&sum| sum > 0.0);
        if let Some(mean) = even(&sums) {
            return Ok(Some(NotCounts::Sums { mode, mean }));
        }
    }
    Ok(None)
}

/// Difference of sums, relative to their mean, up to which they are those of shares that were printed with a few digits.
const PRINTED: f64 = 1e-3;

/// The sum of every sample, where data look like shares: numbers with fractions of which all samples along some mode have about the same sum. A model by variational Bayes
/// takes that sum for a number of counts, which says how much the data weigh beside its priors. `None` for other data, and where cells are hidden.
///
/// # Errors
///
/// Data that cannot be read.
///
/// # Examples
///
/// ```
/// use plca_em::tensor::{DenseTensor, Order};
/// let data = |values: Vec<f64>| DenseTensor::new(vec![2, 2], values, Order::RowMajor);
/// assert_eq!(plca_em::shares(&data(vec![0.25, 0.75, 0.5, 0.5])?)?, Some(1.0));
/// assert_eq!(plca_em::shares(&data(vec![1.0, 3.0, 2.0, 2.0])?)?, None);
/// # Ok::<(), plca_em::tensor::DataError>(())
/// ```
pub fn shares<T: Real>(data: &dyn Data<T>) -> Result<Option<f64>, DataError> {
    if data.summary().integers || !data.is_complete() {
        return Ok(None);
    }
    for mode in (0..data.shape().len()).rev() {
        let mut sums = data.marginal(mode)?;
        sums.retain(|&sum| sum > 0.0);
        let mean = sums.iter().sum::<f64>() / sums.len() as f64;
        let near = |sum: &f64| (sum - mean).abs() <= PRINTED * mean;
        if sums.len() > 1 && sums.iter().all(near) {
            return Ok(Some(mean));
        }
    }
    Ok(None)
}

/// A value that too many cells have.
fn crowded(data: &dyn Data<f64>) -> Result<Option<u64>, DataError> {
    let mut cells = vec![0.0f64; TABULATED + 1];
    let (mut positive, mut listed) = (0.0, 0.0);
    data.visit(&mut |_, value| {
        positive += 1.0;
        if value < cells.len() as f64 {
            cells[value as usize] += 1.0;
        }
    })?;
    data.visit_mask(&mut |_| listed += 1.0)?;
    let all: f64 = data.shape().iter().map(|&n| n as f64).product();
    cells[0] = match data.summary().mask {
        Mask::Complete => all - positive,
        Mask::Hidden => all - listed - positive,
        Mask::Observed => listed - positive,
    };
    let fewest = |n: f64| (n - DEVIATIONS * n.sqrt()).max(0.0);
    let most = |n: f64| n + DEVIATIONS * n.sqrt() + DEVIATIONS;
    let is_crowded = |&k: &usize| {
        let [before, own, after] = [cells[k - 1], cells[k], cells[k + 1]];
        let k = k as f64;
        let expected = k / (k + 1.0) * fewest(own) * fewest(own) / most(before);
        // Zeros that were never stored cannot be told from those that were not observed.
        before > 0.0 && (k > 1.0 || 10.0 * own > before) && MORE * most(after) < expected
    };
    Ok((1..TABULATED).find(is_crowded).map(|k| k as u64))
}

/// The mean of sums that vary less than those of counts.
fn even(sums: &[f64]) -> Option<f64> {
    let n = sums.len() as f64;
    let mean = sums.iter().sum::<f64>() / n;
    let squares: f64 = sums.iter().map(|sum| (sum - mean) * (sum - mean)).sum();
    if sums.len() < 2 || mean < FEW || sums.iter().all(|&sum| sum == sums[0]) {
        return None;
    }
    // Of Poisson counts a chi-square of n - 1 degrees of freedom at least: P(χ² <= x) <= (x/2)^(ν/2) / Γ(ν/2 + 1).
    let half = 0.5 * (n - 1.0);
    let ln_p = half * (0.5 * squares / mean).ln() - ln_gamma(half + 1.0).unwrap_or(f64::NAN);
    (ln_p < RARE.ln()).then_some(mean)
}

#[cfg(test)]
mod tests {
    use plca_dist::draw_poisson;
    use plca_dist::key::Key;
    use plca_dist::random::{below, exponential};
    use plca_tensor::{Coordinates, DenseTensor, Order, SparseTensor};

    use super::*;

    fn dense(shape: [usize; 2], values: Vec<f64>) -> DenseTensor<f64> {
        DenseTensor::new(shape.to_vec(), values, Order::RowMajor).unwrap()
    }

    /// Counts of every kind of mean: even, of a low rank, with more variance than Poisson counts, few and many.
    #[test]
    fn counts_are_not_doubted() {
        for (at, mean) in [0.01, 0.1, 0.5, 2.0, 8.0, 40.0, 3000.0]
            .into_iter()
            .enumerate()
        {
            for spread in [false, true] {
                for seed in 0..10 {
                    let mut rng = Key::of(&[at as u64, u64::from(spread), seed]).generator();
                    let cell = |_| {
                        let mean = match spread {
                            false => mean,
                            true => mean * exponential(&mut rng),
                        };
                        draw_poisson(mean, &mut rng).unwrap() as f64
                    };
                    let values: Vec<f64> = (0..6000).map(cell).collect();
                    let data = dense([100, 60], values);
                    assert_eq!(not_counts(&data).unwrap(), None, "{mean} {spread} {seed}");
                }
            }
        }
        // Sampled to one depth, and titles of a few words that do not repeat.
        let mut rng = Key::of(&[1]).generator();
        let mut depth = vec![0.0; 50 * 40];
        let mut titles = vec![0.0; 500 * 300];
        for sample in 0..40 {
            (0..1000).for_each(|_| depth[below(50, &mut rng) as usize * 40 + sample] += 1.0);
        }
        for title in 0..300 {
            (0..7).for_each(|n| titles[(n * 71 + title * title % 71) % 500 * 300 + title] = 1.0);
        }
        for data in [dense([50, 40], depth), dense([500, 300], titles)] {
            assert_eq!(not_counts(&data).unwrap(), None);
        }
    }

    #[test]
    fn ratings_and_rounded_shares_are_doubted() {
        let mut rng = Key::of(&[2]).generator();
        // Ratings of any shape: even, in the middle, at both ends, and on a scale of ten.
        let scales: [&[u64]; 4] = [
            &[1, 2, 3, 4, 5],
            &[1, 2, 3, 3, 3, 4, 4, 4, 5],
            &[1, 1, 1, 2, 4, 5, 5, 5],
            &[3, 4, 5, 6, 6, 7, 7, 7, 8, 8, 8, 9, 10],
        ];
        for scale in scales {
            let mut ratings = Coordinates::empty(&[80, 50]);
            for user in 0..80 {
                for item in (0..50).filter(|item| (user * 7 + item * 3) % 5 < 2) {
                    let rating = scale[below(scale.len() as u64, &mut rng) as usize];
                    ratings.push(&[user, item], rating as f64);
                }
            }
            let data = SparseTensor::stored_only(ratings).unwrap();
            let doubt = not_counts(&data).unwrap();
            assert!(matches!(doubt, Some(NotCounts::Values { .. })), "{scale:?}");
        }
        // Samples in rows or columns; shares of a million, of ten thousand, of a hundred.
        for (samples, unit) in [(6, 1e6), (40, 1e4), (40, 100.0)] {
            let mut shares = vec![0.0; 60 * samples];
            for sample in shares.chunks_exact_mut(60) {
                sample
                    .iter_mut()
                    .for_each(|x| *x = exponential(&mut rng).powi(2));
                let total: f64 = sample.iter().sum();
                sample
                    .iter_mut()
                    .for_each(|x| *x = (unit * *x / total).round());
            }
            let rows = dense([samples, 60], shares.clone());
            let columns = DenseTensor::new(vec![60, samples], shares, Order::ColumnMajor).unwrap();
            for (data, samples) in [(&rows, 0), (&columns, 1)] {
                let doubt = not_counts(data).unwrap();
                assert!(
                    matches!(doubt, Some(NotCounts::Sums { mode, mean }) if mode == samples && (mean / unit - 1.0).abs() < 0.1),
                    "{samples} {unit}: {doubt:?}"
                );
            }
        }
    }
}
