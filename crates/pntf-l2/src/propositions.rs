//! What the paper proves of additive noise, as functions that can be run.
//!
//! A model `P0` is observed as `P0 + E`. Propositions 1 to 3 and the corollary compare how far the squared-error fit and the
//! maximum-likelihood fit are drawn away from `P0`. Each function says where the text had to be corrected.

use nalgebra::DMatrix;
use plca_dist::random;
use rand::Rng;

/// The reason why a proposition does not apply.
///
/// ```
/// use nalgebra::dmatrix;
/// let p0 = dmatrix![0.25, 0.25; 0.25, 0.25];
/// let error = pntf_l2::propositions::rank_one_relative_entropy(&p0, &(-2.0 * &p0)).unwrap_err();
/// assert_eq!(error.to_string(), "model plus noise is -0.25 at (0, 0), not a finite number >= 0");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PropositionError {
    /// Model and noise of different shapes.
    #[error("noise is {}x{}, the model {}x{}", got.0, got.1, expected.0, expected.1)]
    Shape {
        /// Rows and columns of the noise.
        got: (usize, usize),
        /// Rows and columns of the model.
        expected: (usize, usize),
    },
    /// `P0 + E` negative or not a number somewhere: no likelihood exists.
    #[error("model plus noise is {value} at ({row}, {column}), not a finite number >= 0")]
    Data {
        /// Row.
        row: usize,
        /// Column.
        column: usize,
        /// The value.
        value: f64,
    },
    /// `P0 + E` without mass.
    #[error("model plus noise sum to {0}, not to a positive number")]
    Total(f64),
}

/// Proposition 1: how far a fit by squared error can be drawn away from the true model by noise.
///
/// ```math
/// \lVert P_0 - P^* \rVert_\infty \le 2 \sqrt{\varepsilon}, \qquad \varepsilon = \lVert E \rVert_\infty
/// ```
///
/// `P*` minimises the squared error to `P0 + E` in the model set, `P0` is the true model and `E` the noise.
///
/// The proof only uses that `P*` fits `P0 + E` no worse than `P0` does, so it holds for every descent that starts at `P0` itself, and
/// not only for the global minimum that the text speaks of. For a descent that starts elsewhere it says nothing.
///
/// ```
/// assert_eq!(pntf_l2::propositions::l2_deviation_bound(1e-4), 0.02);
/// ```
pub fn l2_deviation_bound(epsilon: f64) -> f64 {
    // [HS prop. 1] [PNTF 6]
    2.0 * epsilon.sqrt()
}

/// The rank-one fit by relative entropy and its distance from the truth; see [`rank_one_relative_entropy`].
///
/// ```
/// use nalgebra::dmatrix;
/// use pntf_l2::propositions::rank_one_relative_entropy;
/// let d = rank_one_relative_entropy(&dmatrix![0.25, 0.25; 0.25, 0.25], &dmatrix![0.25, 0.25; 0.0, 0.0])?;
/// let drawn = d.alpha[0] - d.gamma / (1.0 + d.gamma) * d.truth[0];
/// assert!((d.fit[0] - d.truth[0] - drawn).abs() < 1e-15);             // 2/3 - 1/2 = 1/3 - 1/3 · 1/2
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RankOneDeviation {
    /// The mass that the noise added, `γ = 1ᵀ E 1 > -1`.
    pub gamma: f64,
    /// The true marginal of the rows, `p0 = P0 1 / 1ᵀ P0 1`.
    pub truth: Vec<f64>,
    /// The fitted marginal of the rows, `p*`.
    pub fit: Vec<f64>,
    /// What the noise of its own row adds to an entry, `α_i = e_i / (1 + γ)` with `e = E 1`.
    pub alpha: Vec<f64>,
}

impl RankOneDeviation {
    /// The largest deviation of an entry, `‖p0 - p*‖∞`.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use pntf_l2::propositions::rank_one_relative_entropy;
    /// let d = rank_one_relative_entropy(&dmatrix![0.25, 0.25; 0.25, 0.25], &dmatrix![0.25, 0.25; 0.0, 0.0])?;
    /// assert!((d.deviation() - 1.0 / 6.0).abs() < 1e-15);                 // (1/2, 1/2) was fitted as (2/3, 1/3)
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deviation(&self) -> f64 {
        largest(self.truth.iter().zip(&self.fit).map(|(p, q)| p - q))
    }

    /// The largest deviation relative to the largest entry, `‖p0 - p*‖∞ / ‖p0‖∞`.
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use pntf_l2::propositions::rank_one_relative_entropy;
    /// let d = rank_one_relative_entropy(&dmatrix![0.25, 0.25; 0.25, 0.25], &dmatrix![0.25, 0.25; 0.0, 0.0])?;
    /// assert!((d.relative_deviation() - 1.0 / 3.0).abs() < 1e-15);        // 1/6 of 1/2
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn relative_deviation(&self) -> f64 {
        self.deviation() / largest(self.truth.iter().copied())
    }

    /// Proposition 2: a lower and an upper bound of [`deviation`](Self::deviation), the lower one at least 0.
    ///
    /// ```math
    /// \frac{|\gamma|}{1 + \gamma} \lVert p_0 \rVert_\infty \mp \lVert \alpha \rVert_\infty, \qquad
    /// p^*_i - p_{0,i} = \alpha_i - \frac{\gamma}{1 + \gamma} \, p_{0,i}
    /// ```
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use pntf_l2::propositions::rank_one_relative_entropy;
    /// let d = rank_one_relative_entropy(&dmatrix![0.25, 0.25; 0.25, 0.25], &dmatrix![0.25, 0.25; 0.0, 0.0])?;
    /// let (low, high) = d.bounds();
    /// assert!(low <= d.deviation() && d.deviation() <= high);             // 0 <= 1/6 <= 1/2
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bounds(&self) -> (f64, f64) {
        let shrunk = self.gamma.abs() / (1.0 + self.gamma) * largest(self.truth.iter().copied());
        let own = largest(self.alpha.iter().copied());
        ((shrunk - own).max(0.0), shrunk + own)
    }
}

fn largest(x: impl Iterator<Item = f64>) -> f64 {
    x.fold(0.0, |a, x| a.max(x.abs()))
}

/// Proposition 2: the row marginal of the best rank-one model of `P0 + E` under relative entropy, in closed form, if `P0` sums to 1.
///
/// ```math
/// p^* = \frac{(P_0 + E) \, 1}{1 + \gamma}, \qquad \gamma = 1^\top E \, 1
/// ```
///
/// Corrected: the contribution of a row's own noise is `e_i / (1 + γ)`; the proof divides by `γ`.
///
/// # Errors
///
/// [`PropositionError`]: another shape, `P0 + E` negative somewhere or without mass.
///
/// # Examples
///
/// ```
/// use nalgebra::DMatrix;
/// let p0 = DMatrix::from_element(2, 2, 0.25);
/// let noise = DMatrix::from_row_slice(2, 2, &[0.25, 0.25, 0.0, 0.0]);
/// let d = pntf_l2::propositions::rank_one_relative_entropy(&p0, &noise)?;
/// assert_eq!((d.gamma, &d.fit[..]), (0.5, &[2.0 / 3.0, 1.0 / 3.0][..]));
/// # Ok::<(), pntf_l2::propositions::PropositionError>(())
/// ```
pub fn rank_one_relative_entropy(
    p0: &DMatrix<f64>,
    noise: &DMatrix<f64>,
) -> Result<RankOneDeviation, PropositionError> {
    if p0.shape() != noise.shape() {
        return Err(PropositionError::Shape {
            got: noise.shape(),
            expected: p0.shape(),
        });
    }
    for row in 0..p0.nrows() {
        for column in 0..p0.ncols() {
            let value = p0[(row, column)] + noise[(row, column)];
            if !(value.is_finite() && value >= 0.0) {
                return Err(PropositionError::Data { row, column, value });
            }
        }
    }
    let mass = p0.sum();
    let gamma = noise.sum() / mass;
    if !(mass > 0.0 && 1.0 + gamma > 0.0) {
        return Err(PropositionError::Total(mass + noise.sum()));
    }
    let rows = |m: &DMatrix<f64>| -> Vec<f64> { m.row_iter().map(|r| r.sum() / mass).collect() };
    let (truth, own) = (rows(p0), rows(noise));
    // [HS prop. 2] [PNTF 6] p* = (P0 + E) 1 / (1 + γ), α_i = e_i / (1 + γ)
    let fit = (truth.iter().zip(&own))
        .map(|(p, e)| (p + e) / (1.0 + gamma))
        .collect();
    let alpha = own.iter().map(|e| e / (1.0 + gamma)).collect();
    Ok(RankOneDeviation {
        gamma,
        truth,
        fit,
        alpha,
    })
}

/// Proposition 3: a bound of what the noise of its own row adds to an entry.
///
/// ```math
/// \alpha_i \le \frac{\varepsilon \min(\beta, n)}{\varepsilon \beta + 1}
/// ```
///
/// The noise is that of [`one_sided_noise`], and `β` entries of the `n x n` model are below `ε`.
///
/// Corrected: this bounds expectations; the largest of `n` rows exceeds it by fluctuations, by a factor below
/// `1 + 3 √(ln n / n)` with high probability. It needs `β ≥ n^1.5` (for `β = 0` it would claim that zero-mean noise adds nothing), and
/// uniform noise, or at least a known mean: independence alone is not enough.
///
/// ```
/// use pntf_l2::propositions::row_noise_bound;
/// assert!((row_noise_bound(1e-3, 1e6, 1000) - 1.0 / 1001.0).abs() < 1e-15);
/// ```
pub fn row_noise_bound(epsilon: f64, beta: f64, n: usize) -> f64 {
    // [HS prop. 3] [PNTF 6]
    epsilon * beta.min(n as f64) / (epsilon * beta + 1.0)
}

/// The corollary: the limit of the relative deviation under noise of [`one_sided_noise`].
///
/// ```math
/// \frac{\lVert p_0 - p^* \rVert_\infty}{\lVert p_0 \rVert_\infty} \to 1 - \text{fraction}
/// ```
///
/// `fraction` of the rows hold the mass.
///
/// Corrected: the text lets it tend to 1. That needs three things more: a super-linear number of entries *below* `ε`, `ε β → ∞`, and
/// `‖p0‖∞` much larger than `n / β`, so that the mass sits in a vanishing fraction of the rows.
///
/// ```
/// assert_eq!(pntf_l2::propositions::limiting_relative_deviation(0.1), 0.9);
/// ```
pub fn limiting_relative_deviation(fraction: f64) -> f64 {
    // [HS cor. 1] [PNTF 6]
    1.0 - fraction
}

/// Draws the noise of proposition 3, entry by entry uniform.
///
/// ```math
/// E[x] \sim \mathrm{Uniform}[-\min(P_0[x], \varepsilon), \; \varepsilon]
/// ```
///
/// So `P0 + E ≥ 0`; the mean of the noise is positive where `P0 < ε`.
///
/// ```
/// use nalgebra::dmatrix;
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let p0 = dmatrix![0.5, 0.0; 0.001, 0.499];
/// let noise = pntf_l2::propositions::one_sided_noise(&p0, 0.01, &mut ChaCha8Rng::seed_from_u64(0));
/// assert!((&p0 + &noise).min() >= 0.0 && noise.amax() <= 0.01);
/// ```
pub fn one_sided_noise<R: Rng + ?Sized>(
    p0: &DMatrix<f64>,
    epsilon: f64,
    rng: &mut R,
) -> DMatrix<f64> {
    p0.map(|p| {
        let below = p.min(epsilon);
        (-below + (epsilon + below) * random::uniform(rng)).max(-p)
    })
}
