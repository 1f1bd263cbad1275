//! What a solver asks of a model that is bound to data.

use std::fmt::Debug;

use nalgebra::DMatrix;
use plca_tensor::{Real, normalise_columns};
use rand::Rng;

use super::anneal::Annealing;
use super::{
    BlockSpec, Constraint, Em, Expectation, FitError, Frozen, Parameters, Separable, Start, Stepped,
};

/// The direction in which an objective is improved: up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// It rises: a likelihood, a posterior, a bound.
    Maximise,
    /// It falls: a divergence, a squared error.
    Minimise,
}

impl Sense {
    /// Whether `new` is at least as good as `old`; never for NaN.
    pub fn not_worse(self, new: f64, old: f64) -> bool {
        match self {
            Self::Maximise => new >= old,
            Self::Minimise => new <= old,
        }
    }
}

/// A model bound to data: its blocks and its iterations.
pub trait Algorithm<T: Real>: Debug {
    /// The blocks, in the order of [`Parameters`].
    fn blocks(&self) -> &[BlockSpec<T>];

    /// One iteration; with `measure`, also the objective of the parameters before it.
    ///
    /// # Errors
    ///
    /// [`FitError`]; `at` is then as it was.
    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError>;

    /// The objective.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError>;

    /// The objective without priors. Default: the objective.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    fn likelihood(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        self.objective(at)
    }

    /// Whether its steps heed the tempering power; default: no.
    fn tempers(&self) -> bool {
        false
    }

    /// Whether the objective is to rise (default) or to fall.
    fn sense(&self) -> Sense {
        Sense::Maximise
    }

    /// The unit of the objective, which a tolerance is relative to.
    fn unit(&self) -> f64;

    /// The sum of the data, if the model is one of distributions; default 1.
    fn mass(&self) -> f64 {
        1.0
    }

    /// Numbers that its parameters must remember besides their blocks.
    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        Vec::new()
    }

    /// What the model at these parameters must be multiplied by to approximate data of which something is hidden, or not in its reach: one
    /// number, or one for each given index. Default: nothing is hidden, and [`mass`](Self::mass) says it all.
    ///
    /// # Errors
    ///
    /// Data that cannot be read.
    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        let _ = at;
        Ok(None)
    }

    /// The tempering power that a run begins with; default 1, none.
    fn power(&self) -> f64 {
        1.0
    }

    /// Whether the next step and those after it raise one and the same objective, so that it can guard extrapolation.
    ///
    /// # Errors
    ///
    /// [`FitError::Unsteady`] with what changes, [`FitError::Conflict`] under tempering and with a power that stays, and
    /// [`FitError::Annealing`] while one moves: solvers then make plain iterations.
    fn extrapolates(&self, at: &Parameters<T>) -> Result<(), FitError>;

    /// Parameters from extrapolated values `flat`, which stand one block after the other, each by columns. Default: a value that left the
    /// orthant becomes a tenth of that of `last`, columns on the simplex are normalised, and what is frozen keeps the values of `base`.
    fn extrapolated(&self, base: &Parameters<T>, flat: &[f64], last: &[f64]) -> Parameters<T> {
        extrapolated(self.blocks(), base, flat, last)
    }

    /// What a given value of a block stands for, the block told by its place. Default: [`BlockSpec::given`].
    ///
    /// # Errors
    ///
    /// Those of [`BlockSpec::given`].
    fn given(&self, block: usize, value: DMatrix<T>) -> Result<DMatrix<T>, FitError> {
        self.blocks()[block].given(value)
    }

    /// Fills the blocks that a start does not give, from the data and those that it gives.
    ///
    /// # Errors
    ///
    /// [`FitError::NoStart`] (default) for a start that the model does not have; and as [`step`](Self::step).
    fn fill(&self, start: Start, blocks: &mut [Option<DMatrix<T>>]) -> Result<(), FitError> {
        let _ = blocks;
        Err(FitError::NoStart { start })
    }

    /// The blocks of a start that gives none, in the order of [`blocks`](Self::blocks). Default: each as its [`Draw`](super::Draw) says.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    fn draw(&self, rng: &mut dyn Rng) -> Result<Vec<DMatrix<T>>, FitError> {
        Ok(self.blocks().iter().map(|spec| spec.drawn(rng)).collect())
    }

    /// Completes a start by blocks that follow from those that are given, of which there is a flag for every block. Default: as they are.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    fn complete(&self, blocks: &mut [DMatrix<T>], given: &[bool]) -> Result<(), FitError> {
        let _ = (blocks, given);
        Ok(())
    }

    /// Refuses a start from which no iteration can go on. Default: none.
    ///
    /// # Errors
    ///
    /// [`FitError::Support`] and its like.
    fn check_start(&self, at: &Parameters<T>) -> Result<(), FitError> {
        let _ = at;
        Ok(())
    }

    /// How far the parameters are from stationary, `>= 0`.
    ///
    /// # Errors
    ///
    /// [`FitError::NoResidual`] (default) with the reason why there is none; and as [`step`](Self::step).
    fn residual(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let _ = at;
        Err(FitError::NoResidual {
            why: "the model has no conditions of optimality".into(),
        })
    }

    /// The model as one that separates.
    ///
    /// # Errors
    ///
    /// [`FitError::NotSeparable`] (default) with what is in the way.
    fn separable(&self) -> Result<&dyn Separable<T>, FitError> {
        Err(FitError::NotSeparable {
            what: "the model".into(),
        })
    }

    /// Whether nothing is left to do. Asked after every iteration.
    fn settled(&self, at: &Parameters<T>) -> bool {
        let _ = at;
        false
    }
}

impl<T: Real, E: Expectation<T>> Algorithm<T> for Em<E> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        self.0.blocks()
    }

    fn step(&self, at: &mut Parameters<T>, measure: bool) -> Result<Stepped, FitError> {
        Em::step(self, at, measure)
    }

    fn objective(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        Em::objective(self, at)
    }

    fn likelihood(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        Em::likelihood(self, at)
    }

    fn tempers(&self) -> bool {
        self.0.tempers()
    }

    fn sense(&self) -> Sense {
        self.0.sense()
    }

    fn unit(&self) -> f64 {
        self.0.unit()
    }

    fn draw(&self, rng: &mut dyn Rng) -> Result<Vec<DMatrix<T>>, FitError> {
        self.0.draw(rng)
    }

    fn check_start(&self, at: &Parameters<T>) -> Result<(), FitError> {
        self.check_support(at)
    }

    fn separable(&self) -> Result<&dyn Separable<T>, FitError> {
        self.0.separable()
    }

    fn residual(&self, at: &Parameters<T>) -> Result<f64, FitError> {
        let specs = self.0.blocks();
        if let Some(spec) = specs.iter().find(|spec| spec.prior.is_some()) {
            return Err(FitError::NoResidual {
                why: format!("`{}` has a prior", spec.name),
            });
        }
        match self.annealing(at.next()) {
            Annealing::Stays(j) => {
                return Err(FitError::NoResidual {
                    why: format!("`{}` is raised to a power that stays", specs[j].name),
                });
            }
            Annealing::Moves(_) => return Ok(f64::INFINITY),
            Annealing::Done => {}
        }
        if let Some(residual) = self.0.residual(at) {
            return residual;
        }
        let mut next = at.clone();
        Em::step(self, &mut next, false)?;
        // Not a number is the largest of all.
        let largest = |worst: f64, x: f64| match x <= worst || worst.is_nan() {
            true => worst,
            false => x,
        };
        let moves = specs.iter().enumerate().map(|(j, spec)| {
            let pairs = at.at(j).iter().zip(next.at(j));
            let moves = pairs.map(|(a, b)| (a.to_f64() - b.to_f64()).abs());
            let moved = moves.fold(0.0, largest);
            match spec.constraint {
                Constraint::Simplex => moved,
                // Rates have a unit: in parts of their sum.
                _ if moved > 0.0 => {
                    let sizes = next.at(j).iter().map(|x| x.to_f64().abs());
                    moved / sizes.sum::<f64>()
                }
                _ => moved,
            }
        });
        Ok(moves.fold(0.0, largest))
    }

    fn mass(&self) -> f64 {
        self.0.mass()
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        self.0.facts()
    }

    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        self.0.scale(at)
    }

    fn power(&self) -> f64 {
        self.0.power()
    }

    fn extrapolates(&self, at: &Parameters<T>) -> Result<(), FitError> {
        // [SPEC 1.4] at fixed b < 1 the monotone quantity is L_b, not L
        if at.power() != 1.0 {
            return Err(FitError::Conflict {
                what: "extrapolation does not go with tempering: expected the solver `em`".into(),
            });
        }
        let iteration = at.next();
        let unsteady = |spec: &&BlockSpec<T>| {
            let prior = spec.prior.as_ref();
            prior.is_some_and(|prior| !prior.steady(iteration))
        };
        if let Some(spec) = self.0.blocks().iter().find(unsteady) {
            return Err(FitError::Unsteady {
                block: spec.name.to_string(),
                iteration,
            });
        }
        let name = |j: usize| self.0.blocks()[j].name.to_string();
        match self.annealing(iteration) {
            Annealing::Done => Ok(()),
            Annealing::Moves(j) => Err(FitError::Annealing {
                block: name(j),
                iteration,
            }),
            Annealing::Stays(j) => Err(FitError::Conflict {
                what: format!(
                    "extrapolation does not go with the power of `{}`, which stays: expected the solver `em`",
                    name(j)
                ),
            }),
        }
    }
}

/// Parameters from extrapolated values `flat`, which stand one block after the other. A value that left its domain is brought back, by that of `last`;
/// columns on the simplex are normalised; what is frozen, or follows from the rest, keeps the values of `base`.
fn extrapolated<T: Real>(
    specs: &[BlockSpec<T>],
    base: &Parameters<T>,
    flat: &[f64],
    last: &[f64],
) -> Parameters<T> {
    let mut at = base.clone();
    let mut values = flat.iter().zip(last);
    at.change(|j, block| {
        let spec = &specs[j];
        let values = values.by_ref().take(block.len());
        if spec.frozen == Frozen::Whole || spec.follows {
            return values.for_each(drop);
        }
        let old = block.clone();
        for (x, (&new, &last)) in block.iter_mut().zip(values) {
            *x = T::lit(spec.constraint.bring_back(new, last));
        }
        if spec.constraint == Constraint::Simplex {
            normalise_columns(block);
        }
        spec.keep_frozen(&old, block);
    });
    at
}
