//! Powers that blocks are raised to after the M-step.

use crate::ParamError;

/// A power `a(it) = a0 + (1 - a0) (it - 1)/T`, which is 1 from iteration `T + 1` on. `[SI eq. 16]` `[SPEC 5.3]`
///
/// Kernels are raised to powers below 1: flat at first, sharp later. Impulses are raised to powers above 1, the mirror
/// image: sparse at first. While the power is not 1 an iteration is no M-step of anything and the likelihood may fall.
///
/// ```
/// let anneal = plca_em::Anneal { alpha0: 0.6, over: 20.0 };
/// assert_eq!([1, 11, 21, 99].map(|it| anneal.power(it)), [0.6, 0.8, 1.0, 1.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Anneal {
    /// The power at the first iteration, `a0`: in `(0, 1]` for kernels, at least 1 for impulses.
    pub alpha0: f64,
    /// Iterations until the power is 1, `T`; infinite for a power that stays.
    pub over: f64,
}

impl Anneal {
    /// A power that stays.
    ///
    /// ```
    /// assert_eq!([1, 1000].map(|it| plca_em::Anneal::constant(1.3).power(it)), [1.3, 1.3]);
    /// ```
    pub fn constant(power: f64) -> Self {
        Self {
            alpha0: power,
            over: f64::INFINITY,
        }
    }

    /// The power at an iteration, counted from 1.
    ///
    /// ```
    /// assert_eq!(plca_em::Anneal { alpha0: 0.5, over: 10.0 }.power(6), 0.75);
    /// ```
    pub fn power(self, iteration: usize) -> f64 {
        let done = iteration.saturating_sub(1) as f64 / self.over;
        if done >= 1.0 {
            return 1.0;
        }
        // [SI eq. 16] [SPEC 5.3] a(it) = min(1, a0 + (1-a0)(it-1)/T)
        self.alpha0 + (1.0 - self.alpha0) * done
    }

    /// Whether the power still moves at an iteration.
    pub(crate) fn moves(self, iteration: usize) -> bool {
        self.over.is_finite() && self.power(iteration) != 1.0
    }

    pub(crate) fn check(self, below_one: bool) -> Result<(), ParamError> {
        let Self { alpha0, over } = self;
        let range = if below_one {
            alpha0 > 0.0 && alpha0 <= 1.0
        } else {
            alpha0 >= 1.0 && alpha0.is_finite()
        };
        if !range {
            return Err(ParamError::AnnealPower {
                value: alpha0,
                domain: if below_one { "(0, 1]" } else { "[1, inf)" },
            });
        }
        if over > 0.0 {
            Ok(())
        } else {
            Err(ParamError::AnnealDuration(over))
        }
    }
}
