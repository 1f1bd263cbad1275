//! Squared extrapolation (SQUAREM; Varadhan & Roland 2008).

use super::Accelerate;
use crate::engine::solver::squarem::extrapolation;
use crate::{Algorithm, Direction, Failure, StopReason};

/// Two EM steps, a squared extrapolation along them, and a stabilising EM step from where it leads.
///
/// ```text
/// r = x1 - x0,   u = (x2 - x1) - r,   a = min(-1, -|r| / |u|),   x' = x0 - 2 a r + a² u
/// ```
///
/// `x'` is kept if its objective is not worse than that of `x1`; otherwise the iteration ends at `x2`. So every
/// iteration is at least as good as one plain EM step, and costs three at most, with two copies of the parameters.
#[derive(Clone, Copy, Debug)]
pub struct Squarem<A>(pub A);

impl<A: Accelerate> Algorithm for Squarem<A> {
    type State = A::State;
    type Error = A::Error;

    fn step(&self, state: &mut A::State, measure: bool) -> Result<Option<f64>, A::Error> {
        self.0.accelerable(state)?;
        let x0 = self.0.pack(state);
        let before = self.0.step(state, measure)?;
        let x1 = self.0.pack(state);
        let objective1 = self.0.step(state, true)?;
        let x2 = self.0.pack(state);
        let Some(flat) = extrapolation(&x0, &x1, &x2) else {
            return Ok(before);
        };
        let mut candidate = self.0.unpack(state, &flat, &x2);
        // A point that the algorithm refuses is rejected like one that is worse.
        let reached = A::Error::unless_rejected(self.0.step(&mut candidate, true))?.flatten();
        // [SPEC 10] accepted only if the objective is not worse
        if let (Some(new), Some(old)) = (reached, objective1)
            && new.is_finite()
            && self.0.direction().not_worse(new, old)
        {
            *state = candidate;
        }
        Ok(before)
    }

    fn objective(&self, state: &A::State) -> Result<f64, A::Error> {
        self.0.objective(state)
    }

    fn direction(&self) -> Direction {
        self.0.direction()
    }

    fn residual(&self, state: &A::State) -> Result<Option<f64>, A::Error> {
        self.0.residual(state)
    }

    fn finished(&self, state: &A::State) -> Option<StopReason> {
        self.0.finished(state)
    }
}
