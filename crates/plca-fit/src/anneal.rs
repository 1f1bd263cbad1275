//! Powers that blocks are raised to after the M-step.

use nalgebra::DMatrix;
use plca_tensor::{Real, normalise_columns};

use super::{BlockSpec, FitError};

/// A power that the columns of a block are raised to after every M-step, before they are normalised again. `[SI eq. 16]` `[SPEC 5.3]`
///
/// ```math
/// q_i \gets \frac{q_i^{a}}{\sum_k q_k^{a}}, \qquad a = a_0 + (1 - a_0) \, \frac{it - 1}{T}
/// ```
///
/// `it` is the iteration, counted from 1; the power is 1 from iteration `T + 1` on.
///
/// Powers below 1 make columns flat at first and sharp later; powers above 1, the mirror image, make them sparse at first. While the power
/// is not 1 an iteration is no M-step of anything, and the likelihood may fall.
///
/// ```
/// use plca_fit::Anneal;
/// let anneal = Anneal { alpha0: 0.6, over: 20.0 };
/// assert_eq!([1, 11, 21, 99].map(|it| anneal.power(it)), [0.6, 0.8, 1.0, 1.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Anneal {
    /// The power at the first iteration, `a0`: positive.
    pub alpha0: f64,
    /// Iterations until the power is 1, `T`; infinite for a power that stays.
    pub over: f64,
}

impl Anneal {
    /// A constant power.
    ///
    /// ```
    /// use plca_fit::Anneal;
    /// assert_eq!([1, 1000].map(|it| Anneal::constant(1.3).power(it)), [1.3, 1.3]);
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
    /// use plca_fit::Anneal;
    /// assert_eq!(Anneal { alpha0: 0.5, over: 10.0 }.power(6), 0.75);
    /// ```
    pub fn power(self, iteration: usize) -> f64 {
        let done = iteration.saturating_sub(1) as f64 / self.over;
        if done >= 1.0 {
            return 1.0;
        }
        // [SI eq. 16] [SPEC 5.3] a(it) = min(1, a0 + (1-a0)(it-1)/T)
        self.alpha0 + (1.0 - self.alpha0) * done
    }

    /// Whether the power still changes at an iteration, counted from 1.
    ///
    /// ```
    /// use plca_fit::Anneal;
    /// let anneal = Anneal { alpha0: 0.6, over: 20.0 };
    /// assert!(anneal.moves(20) && !anneal.moves(21) && !Anneal::constant(0.6).moves(1));
    /// ```
    pub fn moves(self, iteration: usize) -> bool {
        self.over.is_finite() && self.power(iteration) != 1.0
    }

    /// Refuses a first power outside `(0, 1]`, and a duration that is not positive.
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] of this name with the offending value.
    pub fn check_flat(self, name: &'static str) -> Result<(), FitError> {
        let good = self.alpha0 > 0.0 && self.alpha0 <= 1.0;
        self.check(name, good, "a first power in (0, 1]")
    }

    /// Refuses a first power below 1 or without end, and a duration that is not positive.
    ///
    /// # Errors
    ///
    /// As [`check_flat`](Self::check_flat).
    pub fn check_sharp(self, name: &'static str) -> Result<(), FitError> {
        let good = self.alpha0 >= 1.0 && self.alpha0.is_finite();
        self.check(name, good, "a finite first power >= 1")
    }

    fn check(self, name: &'static str, good: bool, expected: &'static str) -> Result<(), FitError> {
        FitError::unless(good, name, self.alpha0, expected)?;
        FitError::unless(self.over > 0.0, name, self.over, "more than 0 iterations")
    }
}

/// What the powers of a model do at an iteration, with the place of the first such block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Annealing {
    /// None is other than 1.
    Done,
    /// One moves, and none stays.
    Moves(usize),
    /// One that is not 1 stays.
    Stays(usize),
}

impl Annealing {
    /// From the powers of blocks, each with its place.
    pub(super) fn of(powers: impl Iterator<Item = (usize, Anneal)>, iteration: usize) -> Self {
        let mut found = Self::Done;
        for (block, anneal) in powers.filter(|(_, a)| a.power(iteration) != 1.0) {
            if !anneal.moves(iteration) {
                return Self::Stays(block);
            }
            if found == Self::Done {
                found = Self::Moves(block);
            }
        }
        found
    }
}

/// Raises every column of a new block to a power and normalises it; what is frozen has the values of the old one.
pub(super) fn raise<T: Real>(
    spec: &BlockSpec<T>,
    old: &DMatrix<T>,
    block: &mut DMatrix<T>,
    power: f64,
) {
    if power == 1.0 {
        return;
    }
    for mut column in block.column_iter_mut() {
        // Relative to the largest entry, so that high powers do not underflow all of them.
        let largest = column.amax();
        if largest > T::zero() {
            // [SI eq. 16] [SPEC 5.3] K <- K^a / Σ K^a
            column.apply(|x| *x = T::lit((x.to_f64() / largest.to_f64()).powf(power)));
        }
    }
    normalise_columns(block);
    spec.keep_frozen(old, block);
}
