//! Extrapolation along the way that the parameters come, with a monotone guard (Ang & Gillis 2019).

use super::{Accelerate, Carried};
use crate::engine::solver::momentum::{FIRST, STEPS, extrapolate, next};
use crate::{Algorithm, Direction, Failure, StopReason};

/// Four EM steps, each from where the last two points lead.
///
/// ```text
/// y = x + β (x - x'),     (x', x) <- (x, EM(y))
/// ```
///
/// The fourth point is kept if its objective is not worse than that of the first `x`, and `β` grows; otherwise it shrinks and the
/// iteration is four plain steps. So no iteration is worse than the state before it, and the objective, which often takes as long as
/// a step, is asked for once in four. An iteration that is given up costs twice that. One copy of the parameters is remembered, and
/// three more are at work.
///
/// ```
/// use plca_fit::{Accelerate, Algorithm, Carried, Momentum, Stop, StopError, run};
///
/// /// Approaches (3, 3) by a hundredth and a tenth of the distance.
/// struct Slow;
/// impl Algorithm for Slow {
///     type State = [f64; 2];
///     type Error = StopError;
///     fn step(&self, x: &mut [f64; 2], measure: bool) -> Result<Option<f64>, StopError> {
///         let before = if measure { Some(self.objective(x)?) } else { None };
///         *x = [x[0] + (3.0 - x[0]) / 100.0, x[1] + (3.0 - x[1]) / 10.0];
///         Ok(before)
///     }
///     fn objective(&self, x: &[f64; 2]) -> Result<f64, StopError> {
///         Ok(-(x[0] - 3.0).powi(2) - (x[1] - 3.0).powi(2))
///     }
/// }
/// impl Accelerate for Slow {
///     fn pack(&self, x: &[f64; 2]) -> Vec<f64> { x.to_vec() }
///     fn unpack(&self, _: &[f64; 2], flat: &[f64], _: &[f64]) -> [f64; 2] { [flat[0], flat[1]] }
/// }
///
/// let stop = |max_iter| Stop { max_iter, tol: 0.0, ..Stop::default() };
/// let plain = run(&Slow, [0.0; 2], &stop(80), ())?.objective;
/// let fast = run(&Momentum(Slow), Carried::new([0.0; 2]), &stop(20), ())?.objective;
/// assert!(fast > 1e-2 * plain);
/// # Ok::<(), StopError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Momentum<A>(pub A);

impl<A: Accelerate> Momentum<A> {
    /// Four steps, the packed point before the last, and the objective; `None` if the algorithm refuses a point.
    fn ahead(
        &self,
        x: &A::State,
        flat: &[f64],
        before: &[f64],
        beta: f64,
    ) -> Result<Option<Reached<A::State>>, A::Error> {
        let (mut state, mut now, mut before) = (x.clone(), flat.to_vec(), before.to_vec());
        for step in 0..STEPS {
            if step > 0 {
                before = std::mem::replace(&mut now, self.0.pack(&state));
            }
            extrapolate(&mut before, &now, beta);
            state = self.0.unpack(&state, &before, &now);
            let step = self.0.step(&mut state, false);
            if A::Error::unless_rejected(step)?.is_none() {
                return Ok(None);
            }
        }
        let value = A::Error::unless_rejected(self.0.objective(&state))?;
        let before = now;
        let value = value.filter(|value| value.is_finite());
        Ok(value.map(|value| Reached {
            state,
            before,
            value,
        }))
    }

    /// Four plain steps.
    fn plain(&self, x: &A::State) -> Result<Reached<A::State>, A::Error> {
        let (mut state, mut before) = (x.clone(), Vec::new());
        for step in 1..=STEPS {
            if step == STEPS {
                before = self.0.pack(&state);
            }
            self.0.step(&mut state, false)?;
        }
        let value = self.0.objective(&state)?;
        Ok(Reached {
            state,
            before,
            value,
        })
    }
}

impl<S> Carried<S> {
    /// What the next iteration needs: nothing where there is no number that its point could be compared to.
    fn remember(&mut self, before: Vec<f64>, [value, beta, most]: [f64; 3]) {
        self.forget();
        if value.is_finite() {
            self.points = vec![before];
            self.numbers = vec![value, beta, most];
        }
    }
}

/// Where an iteration leads.
struct Reached<S> {
    state: S,
    /// The point before it.
    before: Vec<f64>,
    value: f64,
}

impl<A: Accelerate> Algorithm for Momentum<A> {
    type State = Carried<A::State>;
    type Error = A::Error;

    fn step(&self, carried: &mut Self::State, measure: bool) -> Result<Option<f64>, A::Error> {
        self.0.accelerable(&carried.state)?;
        let flat = self.0.pack(&carried.state);
        let (points, numbers) = (&carried.points[..], &carried.numbers[..]);
        let ([before], &[value, beta, most]) = (points, numbers) else {
            return self.begin(carried, flat);
        };
        if before.len() != flat.len() {
            return self.begin(carried, flat);
        }
        let ahead = self.ahead(&carried.state, &flat, before, beta)?;
        let kept = ahead.filter(|new| self.0.direction().not_worse(new.value, value));
        let (beta, most) = next(kept.is_some(), beta, most);
        let new = kept.map_or_else(|| self.plain(&carried.state), Ok)?;
        carried.state = new.state;
        carried.remember(new.before, [new.value, beta, most]);
        Ok(measure.then_some(value))
    }

    fn objective(&self, carried: &Self::State) -> Result<f64, A::Error> {
        match (&carried.points[..], &carried.numbers[..]) {
            ([_], &[value, _, _]) => Ok(value),
            _ => self.0.objective(&carried.state),
        }
    }

    fn direction(&self) -> Direction {
        self.0.direction()
    }

    fn residual(&self, carried: &Self::State) -> Result<Option<f64>, A::Error> {
        self.0.residual(&carried.state)
    }

    fn finished(&self, carried: &Self::State) -> Option<StopReason> {
        self.0.finished(&carried.state)
    }
}

impl<A: Accelerate> Momentum<A> {
    /// A plain step; without an objective for now nothing is remembered.
    fn begin(
        &self,
        carried: &mut Carried<A::State>,
        flat: Vec<f64>,
    ) -> Result<Option<f64>, A::Error> {
        carried.forget();
        let before = self.0.step(&mut carried.state, true)?;
        if before.is_some() {
            let value = self.0.objective(&carried.state)?;
            carried.remember(flat, [value, FIRST, 1.0]);
        }
        Ok(before)
    }
}
