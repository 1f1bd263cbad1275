//! A problem whose every iterate is known.

use plca_fit::{
    Algorithm, Checkpoint, FitError, Parameters, Run, Sense, Solver, Stop,
    blocks::{Axes, BlockSpec, Constraint},
    em::Stepped,
};

/// Two coordinates that approach 0 at their own rates; the objective is `±(a x² + b y²)`.
#[derive(Clone, Debug)]
pub(super) struct Toy {
    pub(super) rates: [f64; 2],
    pub(super) sense: Sense,
    /// `a` and `b`.
    pub(super) weights: [f64; 2],
    /// Every extrapolation goes far away: it is worse.
    pub(super) wild: bool,
    /// The objective of what went far away is not a number.
    pub(super) nan: bool,
    /// Of its coordinates, as rates.
    pub(super) unit: Option<f64>,
    pub(super) specs: [BlockSpec<f64>; 1],
}

pub(super) const START: [f64; 2] = [4.0, 1.0];

pub(super) fn toy(rates: [f64; 2]) -> Toy {
    Toy {
        rates,
        sense: Sense::Maximise,
        weights: [1.0, 1.0],
        wild: false,
        nan: false,
        unit: None,
        specs: [BlockSpec::values(
            "x",
            (2, 1),
            Axes::factor(0),
            Constraint::Free,
        )],
    }
}

/// Where a run stands: its point, and what its solver remembers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stand {
    pub(super) x: [f64; 2],
    pub(super) points: Vec<Vec<f64>>,
    pub(super) numbers: Vec<f64>,
}

impl Toy {
    pub(super) fn at(&self, x: [f64; 2]) -> Parameters<f64> {
        let block = nalgebra::DMatrix::from_column_slice(2, 1, &x);
        Parameters::new(&self.specs, vec![block]).unwrap()
    }

    pub(super) fn value(&self, x: &[f64]) -> f64 {
        let square: f64 = x.iter().zip(self.weights).map(|(x, w)| w * x * x).sum();
        match self.sense {
            _ if self.nan && square > 1e6 => f64::NAN,
            Sense::Maximise => -square,
            Sense::Minimise => square,
        }
    }

    /// So many plain steps from here.
    pub(super) fn powers(&self, mut x: [f64; 2], n: usize) -> [f64; 2] {
        for _ in 0..n {
            x.iter_mut().zip(self.rates).for_each(|(x, r)| *x *= r);
        }
        x
    }

    /// So many iterations more.
    pub(super) fn go_on(&self, from: Checkpoint<f64>, solver: Solver, n: usize) -> Checkpoint<f64> {
        let stop = Stop::default().max_iter(from.iteration() + n).tol(None);
        let run = Run::<Parameters<f64>>::new(Box::new(self.clone()));
        let fit = run.solver(solver).stop(stop).resume(from).unwrap();
        fit.checkpoint().clone()
    }

    /// Where a run from the start stands after so many iterations.
    pub(super) fn after(&self, solver: Solver, n: usize) -> Stand {
        Stand::of(self.go_on(Checkpoint::new(self.at(START)), solver, n))
    }
}

impl Stand {
    pub(super) fn of(mut at: Checkpoint<f64>) -> Self {
        let mut stand = Self {
            x: [0.0; 2],
            points: Vec::new(),
            numbers: Vec::new(),
        };
        for (name, values) in at.take_arrays() {
            match &*name {
                "block.x" => stand.x.copy_from_slice(values.as_slice()),
                "memory.numbers" => stand.numbers = values.as_slice().to_vec(),
                _ => stand.points.push(values.as_slice().to_vec()),
            }
        }
        stand
    }
}

impl Algorithm<f64> for Toy {
    fn blocks(&self) -> &[BlockSpec<f64>] {
        &self.specs
    }

    fn step(&self, at: &mut Parameters<f64>, measure: bool) -> Result<Stepped, FitError> {
        let value = measure.then(|| self.value(at.at(0).as_slice()));
        at.change(|_, x| x.iter_mut().zip(self.rates).for_each(|(x, r)| *x *= r));
        at.count();
        Ok(Stepped {
            value,
            restored: Vec::new(),
        })
    }

    fn objective(&self, at: &Parameters<f64>) -> Result<f64, FitError> {
        Ok(self.value(at.at(0).as_slice()))
    }

    fn sense(&self) -> Sense {
        self.sense
    }

    fn unit(&self) -> f64 {
        1.0
    }

    fn rate_unit(&self, _: usize) -> Option<f64> {
        self.unit
    }

    fn extrapolates(&self, _: &Parameters<f64>) -> Result<(), FitError> {
        Ok(())
    }

    fn extrapolated(&self, base: &Parameters<f64>, flat: &[f64], _: &[f64]) -> Parameters<f64> {
        let mut at = base.clone();
        at.change(|_, x| match self.wild {
            true => x.fill(1e9),
            false => x.copy_from_slice(flat),
        });
        at
    }
}
