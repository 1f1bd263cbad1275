//! What a fitted model says of its data.

use plca_dist::draw_poisson;
use plca_fit::{Factored, Reconstruct};
use plca_io::Array;
use plca_tensor::Cp;
use rand_chacha::ChaCha8Rng;

use crate::RunError;

/// What a model says of its data.
pub trait Approximation {
    /// Their shape.
    fn shape(&self) -> Vec<usize>;
    /// Every cell, in row-major order.
    ///
    /// # Errors
    ///
    /// Arrays that no memory holds.
    fn cells(&self) -> Result<Vec<f64>, RunError>;
    /// One cell.
    fn cell(&self, index: &[usize]) -> f64;

    /// Draws events of its law, this number or a Poisson number with its sum as the mean: the index of each. `None` where its law is not one of events.
    ///
    /// # Errors
    ///
    /// [`RunError::Room`] for more than any memory holds, [`RunError::Parts`] for a model without mass.
    fn events(
        &self,
        number: Option<u64>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Option<Vec<u32>>, RunError>;

    /// Draws from its law.
    ///
    /// # Errors
    ///
    /// [`RunError::Unable`] for real data, [`RunError::Draw`] for another model without one.
    fn sample(&self, draws: Draws<'_>) -> Result<(), RunError>;
    /// Number of components that can be told apart; 0 if they are not sums of non-negative arrays.
    fn components(&self) -> usize;
    /// What one component adds, in any unit that is the same for all.
    ///
    /// # Errors
    ///
    /// As [`cells`](Self::cells).
    fn component(&self, z: usize) -> Result<Vec<f64>, RunError>;
}

/// Draws that were asked for.
#[derive(Debug)]
pub struct Draws<'a> {
    /// How many.
    pub number: u64,
    /// Where random numbers come from.
    pub rng: &'a mut ChaCha8Rng,
    /// Zeros, in the shape of the model, to which they are added.
    pub into: &'a mut Array<f64>,
}

impl Draws<'_> {
    /// Draws this number of events of a sum of products of factors.
    pub(crate) fn of(self, model: &Cp<'_, f64>) -> Result<(), RunError> {
        let Self { number, rng, into } = self;
        let mut left = number;
        while left > 0 {
            let draws = left.min(BATCH);
            left -= draws;
            let events = plca_em::sample_counts(model, draws as usize, rng)?;
            for index in events.indices.chunks_exact(into.shape.len()) {
                let place = index.iter().zip(&into.shape);
                into.values[place.fold(0, |at, (&i, &n)| at * n + i as usize)] += 1.0;
            }
        }
        Ok(())
    }
}

/// A fitted state and its law.
pub(crate) struct Fitted<S> {
    state: S,
    /// Whether its components are non-negative and add up to it.
    additive: bool,
    law: Box<Law<S>>,
    events: Events<S>,
}

/// What draws events: this number, or a Poisson number.
type Events<S> = fn(&S, Option<u64>, &mut ChaCha8Rng) -> Result<Option<Vec<u32>>, RunError>;

type Law<S> = dyn Fn(&S, Draws<'_>) -> Result<(), RunError>;

impl<S: Reconstruct<Scalar = f64>> Fitted<S> {
    /// A state whose components are not told apart.
    pub(crate) fn new(
        state: S,
        law: impl Fn(&S, Draws<'_>) -> Result<(), RunError> + 'static,
    ) -> Box<Self> {
        Box::new(Self {
            state,
            additive: false,
            law: Box::new(law),
            events: |_, _, _| Ok(None),
        })
    }

    /// A state without a law to draw from.
    pub(crate) fn lawless(state: S) -> Box<Self> {
        Self::new(state, |_, _| {
            let what = "the model has no distribution to sample from: expected a fit of counts, such as one of plca";
            Err(RunError::Draw(what.into()))
        })
    }

    /// A state that is the sum of its components.
    pub(crate) fn sum(
        state: S,
        law: impl Fn(&S, Draws<'_>) -> Result<(), RunError> + 'static,
    ) -> Box<Self> {
        let mut fitted = Self::new(state, law);
        fitted.additive = true;
        fitted
    }
}

impl<S: Factored<Scalar = f64>> Fitted<S> {
    /// A state whose law is a distribution of events.
    pub(crate) fn factored(state: S) -> Box<Self> {
        let law = |state: &S, draws: Draws<'_>| state.with_scaled(|cp, _| draws.of(cp));
        let mut fitted = Self::sum(state, law);
        fitted.events = events;
        fitted
    }
}

fn events<S: Factored<Scalar = f64>>(
    state: &S,
    number: Option<u64>,
    rng: &mut ChaCha8Rng,
) -> Result<Option<Vec<u32>>, RunError> {
    state.with_scaled(|cp, scale| {
        let number = match number {
            Some(number) => number,
            None => {
                let drawn = draw_poisson(scale * cp.mass(), rng);
                drawn.map_err(|e| RunError::Draw(e.to_string()))?
            }
        };
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        plca_io::room::<u32>(&[number, cp.factors.len()])?;
        Ok(Some(plca_em::sample_counts(cp, number, rng)?.indices))
    })
}

impl<S: Reconstruct<Scalar = f64>> Approximation for Fitted<S> {
    fn shape(&self) -> Vec<usize> {
        self.state.shape()
    }

    fn cells(&self) -> Result<Vec<f64>, RunError> {
        Ok(self.state.reconstruct()?.into_parts().1)
    }

    fn cell(&self, index: &[usize]) -> f64 {
        self.state.cell(index)
    }

    fn events(
        &self,
        number: Option<u64>,
        rng: &mut ChaCha8Rng,
    ) -> Result<Option<Vec<u32>>, RunError> {
        (self.events)(&self.state, number, rng)
    }

    fn sample(&self, draws: Draws<'_>) -> Result<(), RunError> {
        (self.law)(&self.state, draws)
    }

    fn components(&self) -> usize {
        match self.additive {
            true => self.state.components(),
            false => 0,
        }
    }

    fn component(&self, z: usize) -> Result<Vec<f64>, RunError> {
        Ok(self.state.component(z)?.into_parts().1)
    }
}

/// Events held in memory together.
const BATCH: u64 = 1 << 20;
