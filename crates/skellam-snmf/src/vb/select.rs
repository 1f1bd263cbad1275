//! The number of components, chosen by the evidence bound.

use plca_fit::{Fit, FitError, Init, Model, Stop};
use plca_tensor::{Data, Real};
use rand::Rng;

use super::{SnmfVb, SnmfVbState};

impl SnmfVb {
    /// The score of a fit, `(ELBO + ln K!) / M` in nats, from its objective `ELBO / M`; greater is better. See [`select_components`].
    ///
    /// ```
    /// use skellam_snmf::{Replicates, SnmfVb};
    /// let three = SnmfVb::new(3).replicates(Replicates::One);
    /// assert_eq!(three.score(-8.0), 2f64.ln() + 3f64.ln() - 8.0);
    /// # Ok::<(), skellam_snmf::FitError>(())
    /// ```
    pub fn score(&self, objective: f64) -> f64 {
        let ln_factorial: f64 = (1..=self.components).map(|i| (i as f64).ln()).sum();
        // The limit has no room for a choice among finitely many modes.
        objective + ln_factorial / self.replicates.number()
    }
}

/// The best fit with one number of components, and its score: what [`select_components`] returns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Candidate<T: Real> {
    /// The number of components, `K`.
    pub components: usize,
    /// The score, `(ELBO + ln K!) / M` in nats; greater is better. `M` is the number of [`Replicates`](crate::Replicates): in the limit
    /// `ln K! / M` is 0.
    pub score: f64,
    /// The fit; its objective is `ELBO / M`.
    pub fit: Fit<SnmfVbState<T>>,
}

/// Fits a model for each of several numbers of components, scores each by its evidence bound, and returns them with the best first.
///
/// ```math
/// \text{score}(K) = \frac{\mathrm{ELBO} + \ln K!}{M}
/// ```
///
/// `data` is a matrix. For each `K` in `components`, `configure(K)` makes the model, and the best fit of `starts` random starts is kept;
/// each ends by the rule `stop`. `M` is the number of [`Replicates`](crate::Replicates).
///
/// Swapping components changes nothing, so the posterior has `K!` equal modes, and a fit finds one of them: `ln K!` makes up for the
/// others.
///
/// Every component adds to the bound's divergence from the prior. So unlike the likelihood the bound can fall as `K` grows. The result
/// depends on the prior: give every `K` the same one.
///
/// Cost: `starts` fits for every `K`, one after the other; the best of every `K` stays in memory.
///
/// # Errors
///
/// [`FitError::Setting`] for 0 starts; the errors of [`on`](Model::on) and of [`run`](plca_fit::Run::run).
///
/// # Examples
///
/// ```
/// use skellam_snmf::Stop;
/// use skellam_snmf::tensor::{DenseTensor, Order};
/// use skellam_snmf::{SnmfVb, select_components};
/// let values = vec![20.0, 40.0, 10.0, -10.0, -20.0, -5.0, 30.0, 60.0, 15.0];                        // rank one
/// let v = DenseTensor::<f64>::new(vec![3, 3], values, Order::RowMajor)?;
/// let mut rng = skellam_snmf::seed(0);
/// let ranked = select_components(&v, 1..=3, SnmfVb::new, 3, &Stop::default(), &mut rng)?;
/// assert_eq!(ranked[0].components, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn select_components<T: Real>(
    data: &dyn Data<T>,
    components: impl IntoIterator<Item = usize>,
    configure: impl Fn(usize) -> SnmfVb,
    starts: u32,
    stop: &Stop,
    rng: &mut dyn Rng,
) -> Result<Vec<Candidate<T>>, FitError> {
    FitError::if_zero("starts", starts as usize)?;
    let mut candidates = Vec::new();
    for k in components {
        let vb = configure(k);
        let run = vb.on(data)?.stop(stop.clone()).restarts(starts);
        let fit = run.run(Init::default(), rng)?;
        candidates.push(Candidate {
            components: vb.components,
            score: vb.score(fit.objective()),
            fit,
        });
    }
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok(candidates)
}
