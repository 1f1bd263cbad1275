//! What models of kernels that are placed on the data share: three blocks, their counts, and what their states remember.

mod state;

use std::fmt::Debug;

use nalgebra::DMatrix;
use plca_fit::{
    Anneal, FitError, Parameters,
    blocks::{Axes, BlockSpec, Draw, Frozen, Index},
    em::{Counts, Expectation, Wanted},
};
use plca_tensor::{Data, DataError, Real};

use crate::Likelihood;
use crate::blocks::{any_partly_frozen, is_free, largest, residual};
use crate::product::conflict;
use crate::shifted::evaluate::{self, Measured, Parts, sum_of};

pub(crate) use state::{
    Frame, Placement, explain, likelihood_fact, parameters, placed_state, possible, refuse_along,
};

/// The E-step of kernels that are placed on data.
pub(crate) trait Placing<T: Real>: Debug + Sync {
    /// Expected counts, with what lies outside the data imputed where the likelihood asks for it.
    fn expect(&self, at: Parts<'_, T>, wanted: evaluate::Wanted) -> evaluate::Counts<T>;

    /// The same by arithmetic in which every count has its own digits, if this one is not.
    fn unmixed(&self, data: &dyn Data<T>) -> Result<Option<Self>, DataError>
    where
        Self: Sized;

    /// `P` at one cell.
    fn cell(&self, at: Parts<'_, T>, index: &[usize]) -> f64;
}

/// The axes of kernels.
pub(crate) const KERNELS: Axes = Axes(Index::Kernel, Index::Component);
/// The axes of impulses.
pub(crate) const IMPULSES: Axes = Axes(Index::Places, Index::Component);

/// The blocks, from the numbers of cells of a kernel and of places of an impulse.
pub(crate) fn specs<T: Real>([cells, places]: [usize; 2], k: usize) -> Vec<BlockSpec<T>> {
    let mut weights = BlockSpec::simplex("weights", (k, 1), Axes::WEIGHTS);
    weights.draw = Draw::Even;
    vec![
        weights,
        BlockSpec::simplex("kernels", (cells, k), KERNELS),
        BlockSpec::simplex("impulses", (places, k), IMPULSES),
    ]
}

/// Kernels or impulses that are known leave one best answer for the others: a random start only takes longer, and leaves its traces where a run ends early.
pub(crate) fn even_where_convex<T: Real>(specs: &mut [BlockSpec<T>]) {
    for (known, other) in [(1, 2), (2, 1)] {
        if specs[known].frozen == Frozen::Whole {
            specs[other].draw = Draw::Even;
        }
    }
}

pub(crate) fn parts<T: Real>(at: &Parameters<T>) -> Parts<'_, T> {
    Parts {
        weights: at.at(0).as_slice(),
        kernels: at.at(1).as_slice(),
        impulses: at.at(2).as_slice(),
        window: None,
    }
}

/// Refuses powers of kernels and impulses that are out of range.
pub(crate) fn check_powers(
    anneal: Option<Anneal>,
    impulse_power: Option<Anneal>,
) -> Result<(), FitError> {
    anneal.map_or(Ok(()), |power| power.check_flat("anneal"))?;
    impulse_power.map_or(Ok(()), |power| power.check_sharp("impulse_power"))
}

/// Whether a likelihood is relative to the model's mass in the observed cells. Refuses hidden cells where mass is lost outside the data.
pub(crate) fn is_conditional<T: Real>(
    likelihood: Likelihood,
    outside: bool,
    data: &dyn Data<T>,
) -> Result<bool, FitError> {
    if likelihood == Likelihood::Literal && outside && !data.is_complete() {
        return conflict(
            "hidden cells need the conditional likelihood if kernels may extend beyond the data",
        );
    }
    Ok(outside && likelihood == Likelihood::Conditional || !data.is_complete())
}

/// A model of placed kernels on data.
#[derive(Clone, Debug)]
pub(crate) struct Placed<'a, T: Real, E> {
    pub(crate) data: &'a dyn Data<T>,
    pub(crate) evaluator: E,
    pub(crate) conditional: bool,
    pub(crate) specs: Vec<BlockSpec<T>>,
    /// The powers of kernels and impulses.
    pub(crate) powers: [Option<Anneal>; 2],
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
        blocks: [bool; 2],
        ln_lik: bool,
    ) -> evaluate::Counts<T> {
        let imputed = true;
        let wanted = evaluate::Wanted {
            blocks,
            ln_lik,
            imputed,
        };
        self.evaluator.expect(parts(at), wanted)
    }

    /// The positive cell that the model gives the least probability, the first of them in row-major order.
    fn least(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, DataError> {
        let mut least: Option<(f64, Vec<usize>, f64)> = None;
        self.data.visit(&mut |index, value| {
            let p = self.evaluator.cell(parts(at), index);
            let less = |(q, other, _): &(f64, Vec<usize>, f64)| {
                p < *q || p <= *q && index < other.as_slice()
            };
            if least.as_ref().is_none_or(less) {
                least = Some((p, index.to_vec(), value));
            }
        })?;
        Ok(least.map(|(_, index, value)| (index, value)))
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
        let Measured { ln_lik, seen, .. } = e.measured;
        let value = wanted.value.then(|| match self.conditional {
            // [SPEC 4] [SPEC 5.2] Σ V ln P - v ln Σ_obs P
            true => ln_lik - self.data.total() * seen.ln(),
            false => ln_lik,
        });
        let k = self.specs[0].shape.0;
        let mut blocks = vec![None, None, None];
        // Only a prior, which has counts of its own, asks for those of the data as they are.
        let counts = |j: usize, counts: DMatrix<T>| match self.specs[j].prior {
            Some(_) => counts / T::lit(e.scale),
            None => counts,
        };
        if wanted.blocks[0] {
            let any = &e.blocks[usize::from(e.blocks[0].is_empty())];
            let sums = any.chunks_exact(any.len() / k);
            // [SI eq. 8] [SI eq. 13] [SPEC 5.1] P(z) <- n / v
            let n = sums.map(|column| T::lit(sum_of(column, T::to_f64)));
            blocks[0] = Some(counts(0, DMatrix::from_iterator(k, 1, n)));
        }
        for (j, values) in (1..).zip(e.blocks) {
            if wanted.blocks[j] {
                let values = DMatrix::from_vec(self.specs[j].shape.0, k, values);
                blocks[j] = Some(counts(j, values));
            }
        }
        Ok(Counts { blocks, value })
    }

    fn anneal(&self, block: usize) -> Option<Anneal> {
        match block {
            1 => self.powers[0],
            2 => self.powers[1],
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
        if any_partly_frozen(&self.specs) {
            return None;
        }
        let free: Vec<bool> = self.specs.iter().map(is_free).collect();
        let e = self.expected(at, needed(&free), false);
        let weights = at.at(0).as_slice();
        let blocks = (1..).zip(e.blocks);
        let worst = blocks.filter(|(_, counts)| !counts.is_empty());
        let worst = worst.map(|(j, counts)| {
            let block = at.at(j);
            let counts = DMatrix::from_vec(block.nrows(), block.ncols(), counts);
            residual(&counts, block, weights, [free[0], free[j]])
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
        if !self.conditional {
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
