//! Draws by algorithms of this crate alone, from any generator of 64-bit numbers.
//!
//! Every version takes the same words of the generator in the same order and computes the same from them, whatever the version of
//! `rand`. [`uniform`], [`below`] and [`Categorical`] are bit-identical on every platform. [`exponential`], and the counts that are drawn
//! by rejection, take logarithms, whose last bit is up to the platform's mathematics library.
//!
//! ```
//! use plca_dist::random;
//! use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//! let mut rng = ChaCha8Rng::seed_from_u64(0);
//! let u = random::uniform(&mut rng);
//! assert!(0.0 < u && u < 1.0);
//! ```

use rand::Rng;

use crate::{DistError, error::domain};

/// Draws a number uniform on the open interval `(0, 1)`: one of the odd multiples of `2^-53`.
///
/// ```
/// use plca_dist::random;
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let u = random::uniform(&mut ChaCha8Rng::seed_from_u64(0));
/// assert_eq!(u * 2f64.powi(53) % 2.0, 1.0);
/// ```
pub fn uniform<R: Rng + ?Sized>(rng: &mut R) -> f64 {
    ((rng.next_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

/// Draws a number of the exponential law with mean 1, by inversion.
///
/// ```math
/// E = - \ln U, \qquad U \sim \mathrm{Uniform}(0, 1), \qquad P(E > x) = e^{-x}
/// ```
///
/// Such draws, divided by their sum, are uniform on the simplex.
///
/// ```
/// use plca_dist::random;
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let u = random::uniform(&mut ChaCha8Rng::seed_from_u64(0));
/// assert_eq!(random::exponential(&mut ChaCha8Rng::seed_from_u64(0)), -u.ln());
/// ```
pub fn exponential<R: Rng + ?Sized>(rng: &mut R) -> f64 {
    -uniform(rng).ln()
}

/// Draws a whole number uniform on `0..n`, by multiplication with rejection (Lemire 2019): exactly uniform.
///
/// # Panics
///
/// If `n` is 0.
///
/// # Examples
///
/// ```
/// use plca_dist::random;
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let mut rng = ChaCha8Rng::seed_from_u64(0);
/// assert!((0..100).all(|_| random::below(6, &mut rng) < 6));
/// assert_eq!(random::below(1, &mut rng), 0);
/// ```
pub fn below<R: Rng + ?Sized>(n: u64, rng: &mut R) -> u64 {
    assert!(n > 0, "no number is below 0");
    let threshold = n.wrapping_neg() % n;
    loop {
        let wide = u128::from(rng.next_u64()) * u128::from(n);
        if wide as u64 >= threshold {
            return (wide >> 64) as u64;
        }
    }
}

/// A table of probabilities that indices are drawn with, by the alias method (Vose 1991): O(1) a draw.
///
/// ```math
/// P(i) = \frac{w_i}{\sum_j w_j}
/// ```
///
/// ```
/// use plca_dist::random::Categorical;
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let c = Categorical::new(&[0.0, 2.0, 0.0])?;
/// assert_eq!(c.sample(&mut ChaCha8Rng::seed_from_u64(1)), 1);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Categorical {
    /// Probability to keep the cell itself, and the index taken otherwise.
    cells: Vec<(f64, u32)>,
}

impl Categorical {
    /// The table of non-negative weights, not all zero, at most `u32::MAX` of them.
    ///
    /// # Errors
    ///
    /// [`DistError::Domain`] naming the first bad weight, or the sum if it is 0 or infinite.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_dist::{DistError, random::Categorical};
    /// let refused = |weights: &[f64]| Categorical::new(weights).unwrap_err();
    /// assert_eq!(refused(&[1.0, -2.0]), DistError::Domain { name: "weights", value: -2.0 });
    /// assert_eq!(refused(&[0.0]), DistError::Domain { name: "sum of weights", value: 0.0 });
    /// ```
    pub fn new(weights: &[f64]) -> Result<Self, DistError> {
        let checked = |w: &f64| domain("weights", *w, w.is_finite() && *w >= 0.0);
        weights.iter().try_for_each(checked)?;
        let total: f64 = weights.iter().sum();
        let good = total.is_finite() && total > 0.0 && weights.len() <= u32::MAX as usize;
        domain("sum of weights", total, good)?;
        let n = weights.len() as f64;
        let mut left: Vec<f64> = weights.iter().map(|w| w / total * n).collect();
        // A cell whose alias is never set keeps itself; a weight of 0 must then not keep any of it.
        let heaviest = (0..left.len())
            .max_by(|&a, &b| left[a].total_cmp(&left[b]))
            .unwrap_or(0);
        let mut cells: Vec<(f64, u32)> = left
            .iter()
            .enumerate()
            .map(|(i, &p)| {
                if p > 0.0 {
                    (1.0, i as u32)
                } else {
                    (0.0, heaviest as u32)
                }
            })
            .collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..left.len()).partition(|&i| left[i] < 1.0);
        while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
            small.pop();
            cells[s] = (left[s], l as u32);
            left[l] -= 1.0 - left[s];
            if left[l] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        Ok(Self { cells })
    }

    /// Draws one index.
    ///
    /// ```
    /// use plca_dist::random::Categorical;
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let (c, mut rng) = (Categorical::new(&[1.0, 0.0, 3.0])?, ChaCha8Rng::seed_from_u64(0));
    /// assert!((0..100).all(|_| c.sample(&mut rng) != 1));                 // an index of weight 0
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> usize {
        let cell = below(self.cells.len() as u64, rng) as usize;
        let (keep, alias) = self.cells[cell];
        if uniform(rng) < keep {
            cell
        } else {
            alias as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;

    /// Chi-square of 60000 draws over 6 cells: 5 degrees of freedom, 99.9 % point 20.5.
    #[test]
    fn categorical_follows_its_weights() {
        let weights = [1.0, 0.0, 3.0, 0.5, 2.0, 3.5];
        let c = Categorical::new(&weights).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut counts = [0usize; 6];
        (0..60_000).for_each(|_| counts[c.sample(&mut rng)] += 1);
        assert_eq!(counts[1], 0);
        let chi2: f64 = (counts.iter().zip(weights).filter(|c| c.1 > 0.0))
            .map(|(&n, w)| (n as f64 - 6000.0 * w).powi(2) / (6000.0 * w))
            .sum();
        assert!(chi2 < 20.5, "{chi2}");
    }
}
