//! What models of kernels that are placed on the data share: three blocks, their counts, and what their states remember.

mod state;

use std::fmt::Debug;

use nalgebra::{DMatrix, DVector};
use plca_fit::{
    Anneal, Axis, BlockSpec, Counts, Draw, Expectation, FitError, Frozen, Parameters, Wanted,
};
use plca_tensor::{Data, DataError, Real};

use crate::Likelihood;
use crate::blocks::{Free, largest, residual};
use crate::shifted::evaluate::{self, Measured, sum_of};
use crate::shifted::model::Columns;

pub(crate) use state::{
    Frame, Place, explain, likelihood_fact, parameters, placed_state, possible, refuse_along,
};

/// The E-step of kernels that are placed on data.
pub(crate) trait Placing<T: Real>: Debug + Sync {
    /// Expected counts, with what lies outside the data imputed where the likelihood asks for it.
    fn expect(&self, at: Columns<'_, T>, wanted: evaluate::Wanted) -> evaluate::Counts<T>;

    /// The sum of the data.
    fn total(&self) -> f64;

    /// Whether the likelihood is relative to the model's mass in the observed cells.
    fn is_conditional(&self) -> bool;

    fn ln_lik(&self, measured: &Measured) -> f64 {
        let Measured { ln_lik, seen, .. } = *measured;
        if self.is_conditional() {
            // [SPEC 4] [SPEC 5.2] Σ V ln P - v ln Σ_obs P
            ln_lik - self.total() * seen.ln()
        } else {
            ln_lik
        }
    }

    /// `P` at one cell of data of a shape.
    fn cell(&self, at: Columns<'_, T>, index: &[usize], shape: &[usize]) -> f64;
}

/// The blocks, from the numbers of cells of a kernel and of places of an impulse.
pub(crate) fn specs<T: Real>([cells, places]: [usize; 2], k: usize) -> Vec<BlockSpec<T>> {
    let mut weights = BlockSpec::simplex("weights", (k, 1), Axis::Rows);
    weights.draw = Draw::Even;
    vec![
        weights,
        BlockSpec::simplex("kernels", (cells, k), Axis::Columns),
        BlockSpec::simplex("impulses", (places, k), Axis::Columns),
    ]
}

pub(crate) fn columns<T: Real>(at: &Parameters<T>) -> Columns<'_, T> {
    Columns {
        weights: at.at(0).as_slice(),
        kernels: at.at(1).as_slice(),
        impulses: at.at(2).as_slice(),
    }
}

/// The powers of kernels and impulses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Powers {
    pub(crate) kernels: Option<Anneal>,
    pub(crate) impulses: Option<Anneal>,
}

impl Powers {
    pub(crate) fn check(self) -> Result<(), FitError> {
        if let Some(anneal) = self.kernels {
            anneal.check_flat("anneal")?;
        }
        match self.impulses {
            Some(power) => power.check_sharp("impulse_power"),
            None => Ok(()),
        }
    }
}

/// The setters that builders of such models share.
macro_rules! placed_setters {
    ($builder:ident) => {
        impl<T: Real> $builder<T> {
            /// Sets what is maximised where mass of the model can lie outside the data (default: the likelihood given the data's window).
            pub fn likelihood(mut self, likelihood: Likelihood) -> Self {
                self.0.likelihood = likelihood;
                self
            }

            /// Raises the kernels to a power that grows to 1 (default: no). `[SPEC 5.3]`
            pub fn anneal(mut self, anneal: Anneal) -> Self {
                self.0.powers.kernels = Some(anneal);
                self
            }

            /// Raises the impulses to a power of at least 1 (default: no). `[SPEC 5.3]`
            pub fn impulse_power(mut self, power: Anneal) -> Self {
                self.0.powers.impulses = Some(power);
                self
            }
        }
    };
}

pub(crate) use placed_setters;

/// Refuses hidden cells where mass is lost outside the data.
pub(crate) fn check_literal<T: Real>(
    likelihood: Likelihood,
    outside: bool,
    data: &dyn Data<T>,
) -> Result<(), FitError> {
    if likelihood == Likelihood::Literal && outside && !data.is_complete() {
        let what = "hidden cells need the conditional likelihood where kernels may leave the data";
        return Err(FitError::Conflict { what: what.into() });
    }
    Ok(())
}

/// A model of placed kernels on data.
#[derive(Clone, Debug)]
pub(crate) struct Placed<'a, T: Real, E> {
    pub(crate) data: &'a dyn Data<T>,
    pub(crate) evaluator: E,
    pub(crate) specs: Vec<BlockSpec<T>>,
    pub(crate) powers: Powers,
    pub(crate) facts: Vec<(&'static str, Vec<f64>)>,
}

/// Which counts the blocks need: those of kernels and impulses, or any for the weights.
fn needed(blocks: &[bool]) -> [bool; 2] {
    match [blocks[1], blocks[2]] {
        [false, false] => [blocks[0], false],
        free => free,
    }
}

impl<T: Real, E: Placing<T>> Placed<'_, T, E> {
    pub(crate) fn expected(
        &self,
        at: &Parameters<T>,
        [kernels, impulses]: [bool; 2],
        ln_lik: bool,
    ) -> evaluate::Counts<T> {
        let wanted = evaluate::Wanted {
            kernels,
            impulses,
            ln_lik,
        };
        self.evaluator.expect(columns(at), wanted)
    }

    /// The positive cell that the model gives the least probability, the first of them in row-major order.
    fn least(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, DataError> {
        let mut least: Option<(f64, Vec<usize>, f64)> = None;
        let shape = self.data.shape();
        self.data.visit(&mut |index, value| {
            let p = self.evaluator.cell(columns(at), index, shape);
            let less = |(q, other, _): &(f64, Vec<usize>, f64)| {
                p < *q || p <= *q && index < other.as_slice()
            };
            if least.as_ref().is_none_or(less) {
                least = Some((p, index.to_vec(), value));
            }
        })?;
        Ok(least.map(|(_, index, value)| (index, value)))
    }

    fn is_free(&self, block: usize) -> bool {
        self.specs[block].frozen != Frozen::Whole
    }
}

impl<T: Real, E: Placing<T>> Expectation<T> for Placed<'_, T, E> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let needed = needed(wanted.blocks);
        let e = self.expected(at, needed, wanted.value);
        if e.measured.lost && needed != [false; 2] {
            // Counts of nothing; the probability may be too small for its scalar rather than 0.
            if let Some((index, value)) = self.least(at)? {
                return Err(FitError::Support { index, value });
            }
        }
        let value = wanted.value.then(|| self.evaluator.ln_lik(&e.measured));
        let k = self.specs[0].shape.0;
        let mut blocks = vec![None, None, None];
        // Only a prior, which has counts of its own, asks for those of the data as they are.
        let counts = |j: usize, counts: DMatrix<T>| match self.specs[j].prior {
            Some(_) => counts / T::lit(e.scale),
            None => counts,
        };
        if wanted.blocks[0] {
            let any = match e.kernels.is_empty() {
                true => &e.impulses,
                false => &e.kernels,
            };
            let sums = any.chunks_exact(any.len() / k);
            // [SI eq. 8] [SI eq. 13] [SPEC 5.1] P(z) <- n / v
            let n = sums.map(|column| T::lit(sum_of(column, T::to_f64)));
            blocks[0] = Some(counts(0, DMatrix::from_iterator(k, 1, n)));
        }
        for (j, values) in [(1, e.kernels), (2, e.impulses)] {
            if wanted.blocks[j] {
                let values = DMatrix::from_vec(self.specs[j].shape.0, k, values);
                blocks[j] = Some(counts(j, values));
            }
        }
        Ok(Counts { blocks, value })
    }

    fn anneal(&self, block: usize) -> Option<Anneal> {
        match block {
            1 => self.powers.kernels,
            2 => self.powers.impulses,
            _ => None,
        }
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        let positive = |block: &DMatrix<T>| block.iter().all(|&x| x > T::zero());
        if at.matrices().iter().all(positive) {
            return Ok(None);
        }
        match self.expected(at, [false; 2], true).measured.lost {
            true => Ok(self.least(at)?),
            false => Ok(None),
        }
    }

    /// `max |θ (g - 1)|` over the free blocks and live components, a probability; 0 exactly at a stationary point of the likelihood. From the
    /// counts `C` of a block `θ` under weights `P(z)`: `θ g = C / (v P(z))`, or `C / n` where the weights are frozen, and `|n / v - P(z)|` for
    /// the weights. With frozen components it is the largest change that an iteration makes. `[SPEC 1.1]`
    fn residual(&self, at: &Parameters<T>) -> Option<Result<f64, FitError>> {
        let some = |spec: &BlockSpec<T>| matches!(spec.frozen, Frozen::Components(_));
        if self.specs.iter().any(some) {
            return None;
        }
        let free = [0, 1, 2].map(|j| self.is_free(j));
        let e = self.expected(at, needed(&free), false);
        let weights = DVector::from_column_slice(at.at(0).as_slice());
        let blocks = [(1, e.kernels), (2, e.impulses)].into_iter();
        let worst = blocks.filter(|(_, counts)| !counts.is_empty());
        let worst = worst.map(|(j, counts)| {
            let block = at.at(j);
            let counts = DMatrix::from_vec(block.nrows(), block.ncols(), counts);
            let free = Free {
                weights: free[0],
                block: free[j],
            };
            residual(&counts, block, &weights, free)
        });
        Some(Ok(worst.fold(0.0, largest)))
    }

    fn unit(&self) -> f64 {
        self.data.total()
    }

    fn mass(&self) -> f64 {
        self.data.total()
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        self.facts.clone()
    }

    fn scale(&self, at: &Parameters<T>) -> Result<Option<Vec<f64>>, FitError> {
        if !self.evaluator.is_conditional() {
            return Ok(None);
        }
        let seen = self.expected(at, [false; 2], false).measured.seen;
        // [SPEC 4] [SPEC 5.2] s = v / Σ_obs P
        Ok(Some(vec![self.data.total() / seen]))
    }
}

pub(crate) fn numbers(whole: &[usize]) -> Vec<f64> {
    whole.iter().map(|&n| n as f64).collect()
}

/// The position of a cell in row-major order.
pub(crate) fn position(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |at, (&i, n)| at * n + i)
}
