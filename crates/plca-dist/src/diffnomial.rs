//! The diffnomial law: hidden Poisson counts of either sign, given their total.
//!
//! ```math
//! \begin{aligned}
//! & s_k^+ \sim \mathrm{Poisson}(\lambda_k^+), \quad s_k^- \sim \mathrm{Poisson}(\lambda_k^-)
//!   \quad \text{given} \quad \sum_k (s_k^+ - s_k^-) = v,
//!   \qquad P = \sum_k \lambda_k^+, \quad Q = \sum_k \lambda_k^- \\
//! & p(s \mid v) = \frac{1}{Z} \prod_{k,\pm} \frac{(\lambda_k^\pm)^{s_k^\pm}}{s_k^\pm!},
//!   \qquad Z = e^{P+Q} \, \mathrm{Sk}(v; P, Q)
//! \end{aligned}
//! ```
//!
//! If all rates `λ_k⁻` are 0 it is the multinomial law. The smaller of `S⁺ = Σ s_k⁺` and `S⁻ = Σ s_k⁻` has a Bessel law; given
//! both, the counts of either side are multinomial. `[SKELLAM 2]`.

use rand::Rng;

use crate::{
    DistError,
    bessel::spread,
    counts::{LARGEST, log_concave, multinomial_of},
    error::{domain, same_length},
    hypergeometric::ln_0f1,
    skellam::{ln_pmf_of, ratios_of},
    stirling::{ln_gamma_of, poisson_ln_pmf_of},
};

/// The diffnomial law: independent Poisson counts on two sides, plus and minus, given that the two sums differ by `v`.
///
/// ```math
/// p(s \mid v) = \frac{1}{Z} \prod_{k,\pm} \frac{(\lambda_k^\pm)^{s_k^\pm}}{s_k^\pm!}
/// \qquad \text{where} \qquad \sum_k (s_k^+ - s_k^-) = v
/// ```
///
/// There are `K` components. Component `k` has the rate `λ_k⁺` on the plus side and `λ_k⁻` on the minus side. With `M` replicates every
/// component occurs `M` times with the same rates, so each side has `M K` counts, and `k` above runs over all of them. `Z` makes the
/// probabilities sum to 1. If all rates of one side are 0, this is the multinomial law.
///
/// Slices of counts have length `M K`: place `m K + k` belongs to component `k` of replicate `m`, both counted from 0. The rates are
/// borrowed, and no method allocates.
///
/// Cost: `O(1)` for a mean, `O(K)` for a variance or a marginal, `O(M K)` for [`ln_pmf`](Self::ln_pmf) and for a draw.
///
/// ```
/// use plca_dist::Diffnomial;
/// let law = Diffnomial::new(3, &[1.0, 2.0], &[0.0, 0.0])?;              // multinomial
/// assert_eq!(law.mean(1)?, (2.0, 0.0));
/// assert!((law.ln_pmf(&[1, 2], &[0, 0])?.exp() - 4.0 / 9.0).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diffnomial<'a> {
    v: f64,
    replicates: usize,
    plus: &'a [f64],
    minus: &'a [f64],
    /// `P` and `Q` over all replicates.
    totals: (f64, f64),
}

impl<'a> Diffnomial<'a> {
    /// The law of one replicate, `M = 1`: the sum of the plus counts is `v` more than that of the minus counts. `plus` and `minus` are the
    /// rates, one for every component.
    ///
    /// # Errors
    ///
    /// As [`replicated`](Self::replicated).
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_dist::Diffnomial;
    /// assert_eq!(Diffnomial::new(3, &[1.0, 2.0], &[0.5, 0.5])?.counts(), 2);
    /// assert!(Diffnomial::new(1, &[0.0], &[1.0]).is_err());               // the side of v is empty
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn new(v: i64, plus: &'a [f64], minus: &'a [f64]) -> Result<Self, DistError> {
        Self::replicated(v, 1, plus, minus)
    }

    /// The law of `replicates` copies of every component. `v` is the difference of the two sums over all copies.
    ///
    /// # Errors
    ///
    /// [`DistError::Length`] if `plus` and `minus` differ in length. [`DistError::Domain`] for 0 replicates or components; for a rate that
    /// is negative, NaN or infinite; if `|v|` or the sum of the rates of a side, over all replicates, is above 2^51; for `v > 0` if all
    /// plus rates are 0, and `v < 0` if all minus rates are: then no counts differ by `v`.
    ///
    /// # Examples
    ///
    /// ```
    /// let law = plca_dist::Diffnomial::replicated(2, 2, &[1.0], &[0.0])?;
    /// assert!((law.mean(0)?.0 - 1.0).abs() < 1e-15);                      // 2 counts shared by 2 replicates
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn replicated(
        v: i64,
        replicates: usize,
        plus: &'a [f64],
        minus: &'a [f64],
    ) -> Result<Self, DistError> {
        same_length("minus", minus.len(), plus.len())?;
        domain("replicates", replicates as f64, replicates > 0)?;
        domain("number of components", plus.len() as f64, !plus.is_empty())?;
        let total = |name, rates: &[f64]| {
            for &rate in rates {
                domain(name, rate, (0.0..=0.25 * LARGEST).contains(&rate))?;
            }
            let total = replicates as f64 * rates.iter().sum::<f64>();
            domain(name, total, total <= 0.25 * LARGEST).map(|()| total)
        };
        let totals = (total("plus", plus)?, total("minus", minus)?);
        let v = v as f64;
        let possible = (v <= 0.0 || totals.0 > 0.0) && (v >= 0.0 || totals.1 > 0.0);
        domain("v", v, possible && v.abs() <= 0.25 * LARGEST)?;
        Ok(Self {
            v,
            replicates,
            plus,
            minus,
            totals,
        })
    }

    /// The number of counts on each side, `M K`.
    ///
    /// ```
    /// let law = plca_dist::Diffnomial::replicated(-4, 3, &[1.0, 2.0], &[3.0, 0.5])?;
    /// assert_eq!(law.counts(), 6);
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn counts(&self) -> usize {
        self.replicates * self.plus.len()
    }

    /// The logarithm of the normaliser, `ln Z`.
    ///
    /// ```math
    /// Z = e^{P+Q} \, \mathrm{Sk}(v; P, Q), \qquad P = M \sum_k \lambda_k^+, \quad Q = M \sum_k \lambda_k^-
    /// ```
    ///
    /// `Sk` is the [Skellam](crate::Skellam) law, `k` runs over the `K` components. The absolute error is some eps (2^-52) times the
    /// largest of `|v| |ln P|`, `|v| |ln Q|`, `ln |v|!` and `2√(PQ)`.
    ///
    /// ```
    /// let law = plca_dist::Diffnomial::new(3, &[1.0, 2.0], &[0.0, 0.0])?;              // multinomial
    /// assert!((law.ln_normaliser().exp() - 4.5).abs() < 1e-13);           // P^v / v! = 27 / 6
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn ln_normaliser(&self) -> f64 {
        let (p, q) = self.totals;
        let power = |n: f64, rate: f64| if n > 0.0 { n * rate.ln() } else { 0.0 };
        let nu = self.v.abs();
        // [SKELLAM 2] Totals are below 2^51 each: their product is in the domain.
        let series = ln_0f1(nu, p * q).unwrap_or(f64::NAN);
        power(self.v, p) + power(-self.v, q) - ln_gamma_of(nu + 1.0) + series
    }

    /// The logarithm of the probability of the counts of both sides, `ln p(s | v)`; `-inf` if the sums of `plus` and `minus` do not differ
    /// by `v`.
    ///
    /// # Errors
    ///
    /// [`DistError::Length`] unless both slices hold [`counts`](Self::counts) elements.
    ///
    /// # Examples
    ///
    /// ```
    /// let law = plca_dist::Diffnomial::new(3, &[1.0, 2.0], &[0.0, 0.0])?;              // multinomial
    /// assert!((law.ln_pmf(&[0, 3], &[0, 0])?.exp() - 8.0 / 27.0).abs() < 1e-14);
    /// assert_eq!(law.ln_pmf(&[0, 2], &[0, 0])?, f64::NEG_INFINITY);
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn ln_pmf(&self, plus: &[u64], minus: &[u64]) -> Result<f64, DistError> {
        same_length("plus", plus.len(), self.counts())?;
        same_length("minus", minus.len(), self.counts())?;
        let sum = |s: &[u64]| s.iter().map(|&s| i128::from(s)).sum::<i128>();
        if sum(plus) - sum(minus) != self.v as i128 {
            return Ok(f64::NEG_INFINITY);
        }
        let side = |s: &[u64], rates: &[f64]| {
            (s.iter().zip(rates.iter().cycle()))
                .map(|(&s, &rate)| poisson_ln_pmf_of(s as f64, rate))
                .sum::<f64>()
        };
        // [SKELLAM eq. 9]
        Ok(side(plus, self.plus) + side(minus, self.minus)
            - ln_pmf_of(self.v, self.totals.0, self.totals.1))
    }

    /// The expected counts of component `k` in one replicate, `(E[s_k⁺ | v], E[s_k⁻ | v])`. They are the same for all replicates.
    ///
    /// ```math
    /// E[s_k^+ \mid v] = \lambda_k^+ \, G^+, \qquad E[s_k^- \mid v] = \lambda_k^- \, G^-
    /// ```
    ///
    /// `G⁺` and `G⁻` are the [`skellam_ratios`](crate::skellam_ratios) of `v`, `P` and `Q`, the sums of the rates over all replicates.
    ///
    /// # Errors
    ///
    /// [`DistError::Domain`] if there is no component `k`.
    ///
    /// # Examples
    ///
    /// ```
    /// let law = plca_dist::Diffnomial::new(2, &[1.0, 2.0], &[0.5, 0.5])?;
    /// let (a, b) = (law.mean(0)?, law.mean(1)?);
    /// assert!((a.0 + b.0 - a.1 - b.1 - 2.0).abs() < 1e-13);               // means differ by v
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn mean(&self, k: usize) -> Result<(f64, f64), DistError> {
        self.component(k)?;
        let (a, b) = ratios_of(self.v, self.totals.0, self.totals.1);
        // [SKELLAM eq. 7]
        Ok((self.plus[k] * a, self.minus[k] * b))
    }

    /// The variances of the counts of component `k` in one replicate, `(Var[s_k⁺ | v], Var[s_k⁻ | v])`.
    ///
    /// ```math
    /// \mathrm{Var}[s_k^+ \mid v] = \pi^2 \, \mathrm{Var}[S^+ \mid v] + \pi (1 - \pi) \, E[S^+ \mid v], \qquad \pi = \frac{\lambda_k^+}{P}
    /// ```
    ///
    /// `S⁺` is the sum of all plus counts and `P` that of their rates; the minus side is alike.
    ///
    /// # Errors
    ///
    /// [`DistError::Domain`] if there is no component `k`.
    ///
    /// # Examples
    ///
    /// ```
    /// let law = plca_dist::Diffnomial::new(3, &[1.0, 2.0], &[0.0, 0.0])?;              // multinomial
    /// assert!((law.variance(0)?.0 - 3.0 * (1.0 / 3.0) * (2.0 / 3.0)).abs() < 1e-14);
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn variance(&self, k: usize) -> Result<(f64, f64), DistError> {
        self.component(k)?;
        let (p, q) = self.totals;
        let (a, b) = ratios_of(self.v, p, q);
        let lesser = spread(self.v.abs(), 2.0 * p.sqrt() * q.sqrt());
        // [SKELLAM 2] π² Var m + π (1 - π) E[S]
        let side = |rate: f64, total: f64, others: f64, g: f64| {
            if rate > 0.0 {
                let share = rate / total;
                share * share * lesser + others / total * (rate * g)
            } else {
                0.0
            }
        };
        Ok((
            side(self.plus[k], p, self.others(self.plus, k), a),
            side(self.minus[k], q, self.others(self.minus, k), b),
        ))
    }

    /// The logarithm of the probability that the plus count of component `k` in one replicate is `j`, `ln P(s_k⁺ = j | v)`.
    ///
    /// # Errors
    ///
    /// [`DistError::Domain`] if there is no component `k`, and for `j` above 2^51.
    ///
    /// # Examples
    ///
    /// ```
    /// let law = plca_dist::Diffnomial::new(3, &[1.0, 2.0], &[0.0, 0.0])?;              // multinomial
    /// assert!((law.ln_marginal_plus(0, 1)?.exp() - 4.0 / 9.0).abs() < 1e-14);         // 3 (1/3) (2/3)²
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn ln_marginal_plus(&self, k: usize, j: u64) -> Result<f64, DistError> {
        self.ln_marginal(self.v, (self.plus, self.totals.0), self.totals.1, k, j)
    }

    /// The logarithm of the probability that the minus count of component `k` in one replicate is `j`, `ln P(s_k⁻ = j | v)`.
    ///
    /// # Errors
    ///
    /// As [`ln_marginal_plus`](Self::ln_marginal_plus).
    ///
    /// # Examples
    ///
    /// ```
    /// let law = plca_dist::Diffnomial::new(-3, &[0.0, 0.0], &[1.0, 2.0])?;
    /// assert!((law.ln_marginal_minus(0, 1)?.exp() - 4.0 / 9.0).abs() < 1e-14);        // 3 (1/3) (2/3)²
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn ln_marginal_minus(&self, k: usize, j: u64) -> Result<f64, DistError> {
        self.ln_marginal(-self.v, (self.minus, self.totals.1), self.totals.0, k, j)
    }

    /// The marginal of a count of the side of `rates`, for the difference `v` in favour of that side.
    fn ln_marginal(
        &self,
        v: f64,
        (rates, total): (&[f64], f64),
        opposite: f64,
        k: usize,
        j: u64,
    ) -> Result<f64, DistError> {
        self.component(k)?;
        let j = j as f64;
        domain("j", j, j <= 0.25 * LARGEST)?;
        let own = poisson_ln_pmf_of(j, rates[k]);
        // [SKELLAM 2]
        let rest = ln_pmf_of(v - j, self.others(rates, k), opposite);
        Ok(own + rest - ln_pmf_of(v, total, opposite))
    }

    /// Draws all counts from their joint law, exact up to rounding of the probabilities, and overwrites `plus` and `minus` with them.
    ///
    /// # Errors
    ///
    /// [`DistError::Length`] unless both slices hold [`counts`](Self::counts) elements; then nothing was drawn.
    ///
    /// # Examples
    ///
    /// ```
    /// # use plca_dist::Diffnomial;
    /// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
    /// let law = Diffnomial::replicated(-4, 2, &[1.0, 2.0], &[3.0, 0.5])?;
    /// let (mut plus, mut minus) = ([0; 4], [0; 4]);
    /// law.sample_into(&mut plus, &mut minus, &mut ChaCha8Rng::seed_from_u64(0))?;
    /// assert_eq!(plus.iter().sum::<u64>() + 4, minus.iter().sum());
    /// # Ok::<(), plca_dist::DistError>(())
    /// ```
    pub fn sample_into<R: Rng + ?Sized>(
        &self,
        plus: &mut [u64],
        minus: &mut [u64],
        rng: &mut R,
    ) -> Result<(), DistError> {
        same_length("plus", plus.len(), self.counts())?;
        same_length("minus", minus.len(), self.counts())?;
        let lesser = self.draw_lesser(rng);
        let side = |total: f64, rates: &[f64], out: &mut [u64], rng: &mut R| {
            let weight = |i: usize| rates[i % rates.len()];
            multinomial_of(total, out.len(), weight, |i, n| out[i] = n as u64, rng);
        };
        side(lesser + self.v.max(0.0), self.plus, plus, rng);
        side(lesser + (-self.v).max(0.0), self.minus, minus, rng);
        Ok(())
    }

    /// A draw of the lesser total, whose law is Bessel's: `P(m) ∝ (PQ)^m / (m! Γ(m+|v|+1))`, log-concave.
    fn draw_lesser<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        let (p, q) = self.totals;
        if p == 0.0 || q == 0.0 {
            return 0.0;
        }
        let nu = self.v.abs();
        let z = 2.0 * p.sqrt() * q.sqrt();
        let mode = (0.5 * z * (z / (nu.hypot(z) + nu))).floor();
        let ln_p = |m: f64| {
            poisson_ln_pmf_of(m + self.v.max(0.0), p) + poisson_ln_pmf_of(m + (-self.v).max(0.0), q)
        };
        let constant = ln_pmf_of(self.v, p, q);
        log_concave(mode, (0.0, 0.25 * LARGEST), |m| ln_p(m) - constant, rng)
    }

    /// Sum of the rates of a side but that of one count of component `k`.
    fn others(&self, rates: &[f64], k: usize) -> f64 {
        let rest = (rates.iter().enumerate())
            .filter(|&(i, _)| i != k)
            .map(|(_, rate)| rate)
            .sum::<f64>();
        self.replicates as f64 * rest + (self.replicates - 1) as f64 * rates[k]
    }

    fn component(&self, k: usize) -> Result<(), DistError> {
        domain("k", k as f64, k < self.plus.len())
    }
}
