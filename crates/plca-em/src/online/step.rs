//! How much a batch weighs against all before it.

use plca_fit::FitError;

/// The weight `ρ_t` of the `t`-th batch, counted from 1, against everything learnt before.
///
/// ```math
/// s \gets (1 - \rho_t) \, s + \rho_t \, s_t
/// ```
///
/// `s` are the statistics so far and `s_t` those of the batch.
///
/// Stochastic approximation asks for `Σ ρ_t = ∞`, so that the start is forgotten, and `Σ ρ_t² < ∞`, so that noise averages out: a power
/// above 1/2 and at most 1. A small power forgets faster and is noisier. `[SPEC 13.2]`
///
/// ```
/// use plca_em::StepSize;
/// let rho = |step: StepSize, batch| step.rho(batch, 0.25);
/// assert_eq!(rho(StepSize::Power { kappa: 1.0, t0: 1.0 }, 3), 0.25);
/// assert_eq!(rho(StepSize::Constant(0.1), 3), 0.1);
/// assert_eq!(rho(StepSize::Average, 3), 0.25);                        // a batch of a quarter of the mass so far
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum StepSize {
    /// `(t + t0)^-kappa`, `kappa` in (1/2, 1], `t0 >= 0`. With `t0 = 0` the first batch replaces the start; the larger `t0`, the less the
    /// first batches count, and the longer a random start lasts.
    Power {
        /// The exponent.
        kappa: f64,
        /// Batches that the start counts for.
        t0: f64,
    },
    /// The same for all batches, in (0, 1]: old batches are forgotten for ever, for streams that change. 1 is batch EM on the last batch.
    Constant(f64),
    /// The batch's share of all mass so far: after one pass the statistics are the plain sum over all batches, each under the
    /// parameters of its time.
    Average,
}

impl Default for StepSize {
    /// `(t + 1)^-0.7`.
    fn default() -> Self {
        Self::Power {
            kappa: 0.7,
            t0: 1.0,
        }
    }
}

impl StepSize {
    /// The weight of a batch, counted from 1, that has this share of the mass of all batches so far, itself included.
    ///
    /// ```
    /// use plca_em::StepSize;
    /// assert!((StepSize::default().rho(1, 1.0) - 2f64.powf(-0.7)).abs() < 1e-15);
    /// ```
    pub fn rho(self, batch: u64, share: f64) -> f64 {
        match self {
            // [SPEC 13.2] rho_t = (t + t0)^-kappa
            Self::Power { kappa, t0 } => (batch as f64 + t0).powf(-kappa),
            Self::Constant(rho) => rho,
            // [SPEC 13.2] rho_t = v_t / (v_1 + ... + v_t)
            Self::Average => share,
        }
    }

    pub(super) fn check(self) -> Result<(), FitError> {
        match self {
            Self::Power { kappa, t0 } => {
                FitError::unless(kappa > 0.5 && kappa <= 1.0, "kappa", kappa, "(0.5, 1]")?;
                FitError::unless(t0.is_finite() && t0 >= 0.0, "t0", t0, "[0, ∞)")
            }
            Self::Constant(rho) => FitError::unless(rho > 0.0 && rho <= 1.0, "rho", rho, "(0, 1]"),
            Self::Average => Ok(()),
        }
    }
}
