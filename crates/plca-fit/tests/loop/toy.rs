//! A problem whose every iterate is known.

use plca_fit::{Accelerate, Algorithm, Direction, Stop, StopError, StopReason};

/// Two coordinates that approach 0 at their own rates; the objective is `±(a x² + b y²)`.
#[derive(Clone, Copy)]
pub(crate) struct Toy {
    pub(crate) rates: [f64; 2],
    pub(crate) direction: Direction,
    /// `a` and `b`.
    pub(crate) weights: [f64; 2],
    /// `finished` once this many steps were taken.
    pub(crate) last: usize,
    /// `unpack` throws the state far away: every extrapolation is worse.
    pub(crate) wild: bool,
    /// The objective of thrown states is not a number.
    pub(crate) nan: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) x: [f64; 2],
    pub(crate) steps: usize,
    /// `finish` was called since the last step.
    pub(crate) ended: bool,
}

pub(crate) const TOY: Toy = Toy {
    rates: [0.5, 0.9],
    direction: Direction::Maximise,
    weights: [1.0, 1.0],
    last: usize::MAX,
    wild: false,
    nan: false,
};

pub(crate) const START: State = State {
    x: [4.0, 1.0],
    steps: 0,
    ended: false,
};

impl Toy {
    fn value(&self, s: &State) -> f64 {
        let square: f64 = s.x.iter().zip(self.weights).map(|(x, w)| w * x * x).sum();
        if self.nan && square > 1e6 {
            return f64::NAN;
        }
        match self.direction {
            Direction::Maximise => -square,
            Direction::Minimise => square,
        }
    }
}

impl Algorithm for Toy {
    type State = State;
    type Error = StopError;

    fn step(&self, s: &mut State, measure: bool) -> Result<Option<f64>, StopError> {
        let before = measure.then(|| self.value(s));
        s.x.iter_mut().zip(self.rates).for_each(|(x, r)| *x *= r);
        s.steps += 1;
        s.ended = false;
        Ok(before)
    }

    fn finish(&self, s: &mut State) -> Result<(), StopError> {
        s.ended = true;
        Ok(())
    }

    fn objective(&self, s: &State) -> Result<f64, StopError> {
        Ok(self.value(s))
    }

    fn direction(&self) -> Direction {
        self.direction
    }

    fn residual(&self, s: &State) -> Result<Option<f64>, StopError> {
        Ok(Some(s.x.iter().fold(0.0, |m, x| x.abs().max(m))))
    }

    fn finished(&self, s: &State) -> Option<StopReason> {
        (s.steps >= self.last).then_some(StopReason::HeldOut)
    }
}

impl Accelerate for Toy {
    fn pack(&self, s: &State) -> Vec<f64> {
        s.x.to_vec()
    }

    fn unpack(&self, template: &State, flat: &[f64], _: &[f64]) -> State {
        let x = if self.wild {
            [1e9, 1e9]
        } else {
            [flat[0], flat[1]]
        };
        State {
            x,
            steps: template.steps,
            ended: false,
        }
    }
}

pub(crate) fn exactly(max_iter: usize) -> Stop {
    Stop {
        max_iter,
        tol: 0.0,
        check_every: 3,
        ..Stop::default()
    }
}

/// Runs through a list of objectives and stays at the last.
pub(crate) struct Script(pub(crate) &'static [f64]);

impl Algorithm for Script {
    type State = usize;
    type Error = StopError;

    fn step(&self, at: &mut usize, measure: bool) -> Result<Option<f64>, StopError> {
        let before = measure.then(|| self.0[*at]);
        *at = (*at + 1).min(self.0.len() - 1);
        Ok(before)
    }

    fn objective(&self, at: &usize) -> Result<f64, StopError> {
        Ok(self.0[*at])
    }
}
