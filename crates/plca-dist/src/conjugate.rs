//! Gamma and Dirichlet laws as variational posteriors: expectations of logarithms and divergences.

use crate::{
    DistError, digamma,
    digamma::digamma_of,
    error::{domain, same_length},
    stirling::ln_gamma_of,
};

fn positive(name: &'static str, x: f64) -> Result<(), DistError> {
    domain(name, x, x > 0.0 && x.is_finite())
}

/// The expected logarithm of a gamma variable with shape `s` and rate `b`.
///
/// ```math
/// E[\ln X] = \psi(s) - \ln b, \qquad X \sim \mathrm{Gamma}(s, \text{rate } b)
/// ```
///
/// `ψ` is the [`digamma`](crate::digamma) function.
///
/// # Errors
///
/// [`DistError::Domain`] unless both are positive and finite.
///
/// ```
/// let half = plca_dist::gamma_mean_ln(1.0, 2.0)? - plca_dist::gamma_mean_ln(1.0, 1.0)?;
/// assert!((half + 2f64.ln()).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn gamma_mean_ln(shape: f64, rate: f64) -> Result<f64, DistError> {
    positive("rate", rate)?;
    Ok(digamma(shape)? - rate.ln())
}

/// The Kullback-Leibler divergence of one gamma law from another, each given as shape and rate.
///
/// ```math
/// \begin{aligned}
/// & \mathrm{KL}(\mathrm{Gamma}(s, \text{rate } r) \,\Vert\, \mathrm{Gamma}(a, \text{rate } b)) \\
/// & \quad = (s - a) \, \psi(s) - \ln \Gamma(s) + \ln \Gamma(a) + a \ln \frac{r}{b} + s \, \frac{b - r}{r}
/// \end{aligned}
/// ```
///
/// The error is some eps times the largest term.
///
/// # Errors
///
/// [`DistError::Domain`] unless all are positive and finite.
///
/// ```
/// let of_exponentials = 2f64.ln() + 0.5 - 1.0;
/// assert!((plca_dist::gamma_kl((1.0, 2.0), (1.0, 1.0))? - of_exponentials).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn gamma_kl(
    (shape, rate): (f64, f64),
    (prior_shape, prior_rate): (f64, f64),
) -> Result<f64, DistError> {
    positive("shape", shape)?;
    positive("rate", rate)?;
    positive("prior_shape", prior_shape)?;
    positive("prior_rate", prior_rate)?;
    // [SKELLAM 7] KLG
    Ok(
        (shape - prior_shape) * digamma_of(shape) - ln_gamma_of(shape)
            + ln_gamma_of(prior_shape)
            + prior_shape * (rate.ln() - prior_rate.ln())
            + shape * ((prior_rate - rate) / rate),
    )
}

/// The expected logarithms of the entries of a Dirichlet variable, written into `out`.
///
/// ```math
/// E[\ln \theta_i] = \psi(\alpha_i) - \psi \left( \sum_j \alpha_j \right), \qquad \theta \sim \mathrm{Dirichlet}(\alpha)
/// ```
///
/// `ψ` is the [`digamma`](crate::digamma) function.
///
/// # Errors
///
/// [`DistError::Length`] for slices of different lengths; [`DistError::Domain`] for the first shape that is not positive and
/// finite, and for a sum that is not finite; then `out` is untouched.
///
/// ```
/// let mut ln = [0.0; 2];
/// plca_dist::dirichlet_mean_ln(&[1.0, 1.0], &mut ln)?;
/// assert!((ln[0] + 1.0).abs() < 1e-15);          // ∫ ln x dx over (0, 1)
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn dirichlet_mean_ln(alpha: &[f64], out: &mut [f64]) -> Result<(), DistError> {
    same_length("out", out.len(), alpha.len())?;
    let total = digamma_of(total("alpha", alpha)?);
    for (out, &a) in out.iter_mut().zip(alpha) {
        *out = digamma_of(a) - total;
    }
    Ok(())
}

/// The Kullback-Leibler divergence of one Dirichlet law from another, `α̂` from `α`.
///
/// ```math
/// \begin{aligned}
/// & \mathrm{KL}(\mathrm{Dirichlet}(\hat\alpha) \,\Vert\, \mathrm{Dirichlet}(\alpha)) \\
/// & \quad = \ln \frac{\Gamma \left( \sum \hat\alpha \right)}{\Gamma \left( \sum \alpha \right)}
///   + \sum_i \left[ \ln \frac{\Gamma(\alpha_i)}{\Gamma(\hat\alpha_i)}
///   + (\hat\alpha_i - \alpha_i) \left( \psi(\hat\alpha_i) - \psi \left( \sum \hat\alpha \right) \right) \right]
/// \end{aligned}
/// ```
///
/// The error is some eps times the largest term.
///
/// # Errors
///
/// [`DistError::Length`] for slices of different lengths; [`DistError::Domain`] for the first shape that is not positive and
/// finite, and for sums that are not finite.
///
/// ```
/// assert_eq!(plca_dist::dirichlet_kl(&[0.5, 2.0], &[0.5, 2.0])?, 0.0);
/// let tilted = plca_dist::dirichlet_kl(&[2.0, 1.0], &[1.0, 1.0])?;          // ∫ 2x ln 2x dx
/// assert!((tilted - (2f64.ln() - 0.5)).abs() < 1e-15);
/// # Ok::<(), plca_dist::DistError>(())
/// ```
pub fn dirichlet_kl(alpha: &[f64], prior: &[f64]) -> Result<f64, DistError> {
    same_length("prior", prior.len(), alpha.len())?;
    let (whole, prior_whole) = (total("alpha", alpha)?, total("prior", prior)?);
    let psi = digamma_of(whole);
    let mut sum = ln_gamma_of(whole) - ln_gamma_of(prior_whole);
    for (&a, &p) in alpha.iter().zip(prior) {
        // [SKELLAM 7] KLD
        sum += ln_gamma_of(p) - ln_gamma_of(a) + (a - p) * (digamma_of(a) - psi);
    }
    Ok(sum)
}

/// Sum of checked shapes.
fn total(name: &'static str, alpha: &[f64]) -> Result<f64, DistError> {
    alpha.iter().try_for_each(|&a| positive(name, a))?;
    let total = alpha.iter().sum();
    positive(name, total)?;
    Ok(total)
}
