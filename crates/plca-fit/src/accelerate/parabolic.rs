//! Parabolic extrapolation (Berlinet & Roland 2009).

use super::{Accelerate, Carried};
use crate::engine::solver::parabolic::trials;
use crate::{Algorithm, Direction, Failure, StopReason};

/// A geometric search along the parabola through the last three states, and two EM steps from its best point.
///
/// ```text
/// x(t) = (1-t)² x0 + 2 t (1-t) x1 + t² x2,     x(1) = x2,     t = 1 + 0.1, 1 + 0.1·1.5, 1 + 0.1·1.5², …
/// x3 = EM(EM(x(t))),     (x0, x1, x2) <- (x1, x2, x3)
/// ```
///
/// The search goes on while the objective improves, so no iteration is worse than the state before it; the first two are one EM step each.
/// [`Momentum`](super::Momentum) needs one objective where this search takes about seven.
#[derive(Clone, Copy, Debug)]
pub struct Parabolic<A>(pub A);

impl<A: Accelerate> Parabolic<A> {
    /// The best state along the parabola, not worse than `x2`, whose objective is `best`.
    fn search(
        &self,
        x2: &A::State,
        x0: &[f64],
        x1: &[f64],
        flat: &[f64],
        mut best: f64,
    ) -> Result<A::State, A::Error> {
        let mut found = x2.clone();
        for point in trials(x0, x1, flat) {
            let candidate = self.0.unpack(x2, &point, flat);
            // A point that the algorithm refuses ends the search like one that is worse.
            let reached = A::Error::unless_rejected(self.0.objective(&candidate))?;
            let Some(reached) = reached else {
                break;
            };
            if !(reached.is_finite()
                && reached != best
                && self.0.direction().not_worse(reached, best))
            {
                break;
            }
            best = reached;
            found = candidate;
        }
        Ok(found)
    }
}

impl<A: Accelerate> Algorithm for Parabolic<A> {
    type State = Carried<A::State>;
    type Error = A::Error;

    fn step(&self, carried: &mut Self::State, measure: bool) -> Result<Option<f64>, A::Error> {
        self.0.accelerable(&carried.state)?;
        carried.numbers.clear();
        let flat = self.0.pack(&carried.state);
        let [x0, x1] = match &carried.points[..] {
            [x0, x1] if x0.len() == flat.len() && x1.len() == flat.len() => {
                [x0.clone(), x1.clone()]
            }
            known => {
                let mut points = known.to_vec();
                points.retain(|x| x.len() == flat.len());
                points.truncate(1);
                points.push(flat);
                let before = self.0.step(&mut carried.state, true)?;
                // Without an objective for now there is nothing to search by.
                carried.points = if before.is_some() { points } else { Vec::new() };
                return Ok(before);
            }
        };
        let value = self.0.objective(&carried.state)?;
        let mut new = self.search(&carried.state, &x0, &x1, &flat, value)?;
        self.0.step(&mut new, false)?;
        self.0.step(&mut new, false)?;
        carried.state = new;
        carried.points = vec![x1, flat];
        Ok(measure.then_some(value))
    }

    fn objective(&self, carried: &Self::State) -> Result<f64, A::Error> {
        self.0.objective(&carried.state)
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
