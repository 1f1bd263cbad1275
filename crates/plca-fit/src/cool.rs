//! Tempered EM on a schedule, stopped and cooled by what held-out counts say.

use nalgebra::DMatrix;
use plca_tensor::{Data, Real};

use super::stop::setters;
use super::{Algorithm, FitError, Memory, Parameters, Status, Stepped, Steps};

/// A schedule of tempered EM: when the power of the E-step falls, and when a run is given up.
///
/// Iterations run at one power as long as each lowers the perplexity of the held-out counts. Then the power is multiplied by
/// `eta` and the run goes on from the best parameters so far. It ends when a lower power does not lower the perplexity at all.
///
/// ```
/// use plca_fit::Cooling;
/// let cooling = Cooling::default().start(0.95);
/// assert_eq!(cooling.eta, 0.9);
/// assert!(cooling.eta(1.0).check().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Cooling {
    /// The first power, in `(0, 1]` (default 1, plain EM).
    pub start: f64,
    /// The factor that the power is multiplied by, in `(0, 1)` (default 0.9).
    pub eta: f64,
    /// An iteration counts as an improvement if it lowers the perplexity by more than `tol` times its value (default 1e-6).
    /// With 0 the power falls for ever: the run ends with its iterations alone.
    pub tol: f64,
}

impl Default for Cooling {
    fn default() -> Self {
        Self {
            start: 1.0,
            eta: 0.9,
            tol: 1e-6,
        }
    }
}

setters! {
    Cooling:
    start: f64;
    eta: f64;
    tol: f64;
}

impl Cooling {
    /// Refuses invalid schedules.
    ///
    /// # Errors
    ///
    /// [`FitError::Setting`] with the offending value.
    pub fn check(&self) -> Result<(), FitError> {
        let Self { start, eta, tol } = *self;
        let good = start > 0.0 && start <= 1.0;
        FitError::unless(good, "start", start, "a power in (0, 1]")?;
        let good = eta > 0.0 && eta < 1.0;
        FitError::unless(good, "eta", eta, "a factor in (0, 1)")?;
        let good = tol >= 0.0 && tol.is_finite();
        FitError::unless(good, "tol", tol, "a finite number >= 0")
    }
}

/// A schedule with the counts that are learnt from and those that judge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held<'a, T: Real> {
    pub(super) cooling: Cooling,
    pub(super) train: &'a dyn Data<T>,
    pub(super) held: &'a dyn Data<T>,
}

/// Tempered iterations on the training counts. The parameters of the run are the best so far, its objective is theirs on all data.
#[derive(Debug)]
pub(super) struct Cooled<'a, T: Real> {
    pub(super) whole: &'a dyn Algorithm<T>,
    pub(super) train: Box<dyn Algorithm<T> + 'a>,
    pub(super) held: Box<dyn Algorithm<T> + 'a>,
    pub(super) cooling: Cooling,
    place: Option<Progress<T>>,
}

#[derive(Clone, Debug)]
struct Progress<T: Real> {
    /// The parameters that the next iteration starts from.
    current: Parameters<T>,
    /// Held-out perplexity of the best parameters.
    perplexity: f64,
    /// Whether the present power has lowered the perplexity, or is the first.
    improved: bool,
    ended: bool,
}

impl<'a, T: Real> Cooled<'a, T> {
    pub(super) fn new(
        whole: &'a dyn Algorithm<T>,
        [train, held]: [Box<dyn Algorithm<T> + 'a>; 2],
        cooling: Cooling,
        at: &Parameters<T>,
        memory: &Memory,
    ) -> Result<Self, FitError> {
        cooling.check()?;
        if !whole.tempers() {
            return Err(FitError::Conflict {
                what: "the model has no tempering, which cooling needs".into(),
            });
        }
        let place = match (&memory.points[..], &memory.numbers[..]) {
            ([], []) => None,
            ([flat], &[perplexity, improved, ended, power, iteration])
                if flat.len() == at.flat().len() =>
            {
                let mut current = at.clone().at_power(power).at_iteration(iteration as usize);
                let mut values = flat.iter();
                current.change(|_, block: &mut DMatrix<T>| {
                    let values = block.iter_mut().zip(values.by_ref());
                    values.for_each(|(x, &value)| *x = T::lit(value));
                });
                let checked = current.check(whole.blocks());
                checked.map_err(|e| FitError::Checkpoint {
                    what: format!("the memory of the cooling is not valid: {e}"),
                })?;
                Some(Progress {
                    current,
                    perplexity,
                    improved: improved > 0.0,
                    ended: ended > 0.0,
                })
            }
            _ => {
                return Err(FitError::Checkpoint {
                    what: "the memory of the cooling does not fit the model".into(),
                });
            }
        };
        Ok(Self {
            whole,
            train,
            held,
            cooling,
            place,
        })
    }

    fn perplexity(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        Ok((-self.held.likelihood(at)? / self.held.unit()).exp())
    }
}

impl<T: Real> Steps<T> for Cooled<'_, T> {
    fn step(&mut self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        let value = match measure {
            true => Some(self.whole.objective(at)?),
            false => None,
        };
        let (mut best, mut place) = match &self.place {
            Some(place) => (at.clone(), place.clone()),
            None => {
                let first = at.clone().at_power(self.cooling.start);
                let place = Progress {
                    perplexity: self.perplexity(&first)?,
                    current: first.clone(),
                    // The first power is no decrease that could fail to help.
                    improved: true,
                    ended: false,
                };
                (first, place)
            }
        };
        let restored = self.train.step(&mut place.current, false)?.restored;
        let perplexity = self.perplexity(&place.current)?;
        // [HOFMANN alg. TEM] [SPEC 1.4] stop early, cool while it helps, give up when it no longer does
        if perplexity < place.perplexity * (1.0 - self.cooling.tol) {
            best = place.current.clone();
            place.perplexity = perplexity;
            place.improved = true;
        } else if place.improved || self.cooling.tol == 0.0 {
            let power = place.current.power() * self.cooling.eta;
            // A power of 0 would forget the data.
            place.current = best.clone().at_power(power.max(f64::EPSILON));
            place.improved = false;
        } else {
            place.ended = true;
        }
        *at = best;
        self.place = Some(place);
        Ok(Stepped { value, restored })
    }

    fn memory(&self) -> Memory {
        let Some(place) = &self.place else {
            return Memory::default();
        };
        let flag = |yes: bool| f64::from(u8::from(yes));
        Memory {
            points: vec![place.current.flat()],
            numbers: vec![
                place.perplexity,
                flag(place.improved),
                flag(place.ended),
                place.current.power(),
                place.current.iteration() as f64,
            ],
        }
    }

    fn held_out_perplexity(&self) -> Option<f64> {
        self.place.as_ref().map(|place| place.perplexity)
    }

    fn ended(&self) -> Option<Status> {
        let ended = self.place.as_ref().is_some_and(|place| place.ended);
        ended.then_some(Status::HeldOut)
    }
}
