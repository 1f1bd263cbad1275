//! Parabolic extrapolation (Berlinet & Roland 2009).

use super::Accelerate;
use crate::{Algorithm, Direction, StopReason};

/// Two EM steps, then a geometric search along the parabola through the three points.
///
/// ```text
/// x(t) = (1-t)² x0 + 2 t (1-t) x1 + t² x2,     x(1) = x2,     t = 1 + 0.1, 1 + 0.1·1.5, 1 + 0.1·1.5², …
/// ```
///
/// The search goes on while the objective improves; the best point is kept if it is better than `x2`, so no iteration
/// is worse than two EM steps.
#[derive(Clone, Copy, Debug)]
pub struct Parabolic<A>(pub A);

/// First excess of `t` over 1, and its growth from trial to trial.
const FIRST: f64 = 0.1;
const GROWTH: f64 = 1.5;
/// Trials at most: `t` then is near 200.
const TRIALS: i32 = 20;

impl<A: Accelerate> Algorithm for Parabolic<A> {
    type State = A::State;
    type Error = A::Error;

    fn step(&self, state: &mut A::State, measure: bool) -> Result<Option<f64>, A::Error> {
        self.0.accelerable(state)?;
        let x0 = self.0.pack(state);
        let before = self.0.step(state, measure)?;
        let x1 = self.0.pack(state);
        if self.0.step(state, true)?.is_none() {
            // Without an objective for now there is nothing to search by.
            return Ok(before);
        }
        let x2 = self.0.pack(state);
        let template = state.clone();
        let mut best = self.0.objective(state)?;
        for trial in 0..TRIALS {
            let t = 1.0 + FIRST * GROWTH.powi(trial);
            let flat: Vec<f64> = (x0.iter().zip(&x1).zip(&x2))
                .map(|((&x0, &x1), &x2)| {
                    // [PARABOLIC alg. P-EM] [SPEC 10] (1-t)² x0 + 2 t (1-t) x1 + t² x2
                    (1.0 - t) * (1.0 - t) * x0 + 2.0 * t * (1.0 - t) * x1 + t * t * x2
                })
                .collect();
            let candidate = self.0.unpack(&template, &flat, &x2);
            // A point that the algorithm refuses ends the search like one that is worse.
            let Ok(reached) = self.0.objective(&candidate) else {
                break;
            };
            if !(reached.is_finite()
                && reached != best
                && self.0.direction().not_worse(reached, best))
            {
                break;
            }
            best = reached;
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
