//! What happens by chance, held against how often it was promised.

use super::{Law, Violation};

/// How unlikely a number of successes must be under the rate that was claimed before the claim is called broken.
const SURPRISE: f64 = 1e-6;

/// Checks a rate of successes against [`Law::Rate`]: of the seeds `0, 1, …, trials - 1`, as many succeed as a true `rate` makes
/// believable. The law breaks only where so few successes or fewer have a probability below 1e-6 under `rate`, so one test in a
/// million fails without cause; with 100 trials and a rate of 0.95 it breaks below 82 successes.
///
/// For recovery, a success is a fit that finds the planted parts; for coverage, an interval of nominal level `rate` that holds the truth
/// it was drawn from.
///
/// # Errors
///
/// The [`Violation`], with the first seeds that failed.
///
/// # Panics
///
/// Unless `rate` is within `(0, 1)`.
///
/// # Examples
///
/// ```
/// use plca_fit::laws::{Law, check_rate};
/// assert!(check_rate(0.95, 100, |seed| seed % 9 != 0).is_ok());          // 88 of 100
/// let violation = check_rate(0.95, 100, |seed| seed % 5 != 0).unwrap_err();
/// assert_eq!(violation.law, Law::Rate);                                    // 80 of 100
/// ```
pub fn check_rate(
    rate: f64,
    trials: u64,
    mut succeeds: impl FnMut(u64) -> bool,
) -> Result<(), Violation> {
    assert!(
        rate > 0.0 && rate < 1.0,
        "a rate is a probability, not {rate}"
    );
    let failed: Vec<u64> = (0..trials).filter(|&seed| !succeeds(seed)).collect();
    let successes = trials - failed.len() as u64;
    let believable = at_most(successes, trials, rate);
    if believable >= SURPRISE {
        return Ok(());
    }
    let first = &failed[..failed.len().min(10)];
    let details = format!(
        "{successes} of {trials} where {rate} was claimed, under which so few have the probability {believable:e}; seeds {first:?} failed"
    );
    Err(Violation::new(Law::Rate, details))
}

/// `P(X <= k)` of a binomial law: its terms from their logarithms, which no number of trials makes vanish.
fn at_most(k: u64, n: u64, p: f64) -> f64 {
    let (ln_p, ln_q) = (p.ln(), (-p).ln_1p());
    let mut ln_choices = 0.0;
    let mut sum = 0.0;
    for j in 0..=k {
        if j > 0 {
            ln_choices += ((n - j + 1) as f64).ln() - (j as f64).ln();
        }
        sum += (ln_choices + j as f64 * ln_p + (n - j) as f64 * ln_q).exp();
    }
    sum
}
