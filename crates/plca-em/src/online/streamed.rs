//! What online learning asks of a model, and how a batch is explained.

use nalgebra::DMatrix;
use plca_fit::{
    Algorithm as _, FitError, Interrupt, Model, Parameters, State,
    blocks::{Axes, Axis, BlockSpec, Frozen},
    em::{Em, Expectation, Wanted},
};
use plca_tensor::{Data, Real};

use super::Local;
use crate::blocks::is_free;

/// A model that can be learnt from batches: PLSA in both directions, by EM or variational Bayes, PLCA of any order, and KL-NMF.
pub trait Streamed<T: Real>: Model<T> + sealed::Sealed {
    /// The mode along which data of this order are cut into batches: that of PLSA's given index, the last of PLCA and NMF.
    fn streamed(&self, order: usize) -> usize;

    /// The blocks for data of this shape.
    #[doc(hidden)]
    fn specs(&self, shape: &[usize]) -> Result<Vec<BlockSpec<T>>, FitError>;

    /// Whether a block of parameters belongs to the batch, of data with this number of modes. Default: one that has an entry or a column for every sample.
    #[doc(hidden)]
    fn is_local(&self, block: Axes, order: usize) -> bool {
        block.samples(self.streamed(order)) != Axis::None
    }

    /// The block that a random start of a stream draws for a mode of this size. Default: distributions.
    #[doc(hidden)]
    fn drawn(&self, size: usize) -> BlockSpec<T> {
        BlockSpec::simplex("factor", (size, self.components()), Axes::factor(0))
    }

    /// How much of the data a batch is, of this sum. Default: the sum.
    #[doc(hidden)]
    fn amount(&self, batch: &dyn Data<T>, mass: f64) -> f64 {
        let _ = batch;
        mass
    }

    /// A shared block after a batch. Default: the M-step of the statistics in the amount of all data.
    #[doc(hidden)]
    fn renewed(
        &self,
        spec: &BlockSpec<T>,
        after: After<'_, T>,
        turn: usize,
    ) -> Result<DMatrix<T>, FitError> {
        let [_, now] = after.statistics;
        // [SPEC 13.1] F_j <- M-step of v s_j
        let (block, _) = spec.m_step(now * T::lit(after.amounts[1]), after.block, None, turn)?;
        Ok(block)
    }

    /// What was found of a batch under shared blocks.
    #[doc(hidden)]
    fn explain(
        &self,
        shared: Vec<DMatrix<T>>,
        batch: &dyn Data<T>,
        start: Option<&Self::State>,
        how: BatchStep<'_>,
    ) -> Result<Explanation<T, Self::State>, FitError>;
}

pub(crate) mod sealed {
    use plca_fit::{FitError, Settings};

    /// What a stream asks of the settings of a model. Implemented here alone.
    pub trait Sealed: Settings {
        /// Refuses settings that have no meaning batch by batch.
        fn check_stream(&self) -> Result<(), FitError>;
    }
}

/// What a batch of this weight has changed.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct After<'a, T: Real> {
    /// The block that the batch met.
    pub(crate) block: &'a DMatrix<T>,
    /// The statistics of the block before and after.
    pub(crate) statistics: [&'a DMatrix<T>; 2],
    /// The amount of all data that they stand for, before and after.
    pub(crate) amounts: [f64; 2],
    pub(crate) rho: f64,
}

/// The effort that the blocks of a batch are found with, which batch it is, counted from 1, and what ends it from outside.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct BatchStep<'a> {
    pub(super) local: Local,
    pub(super) batch: usize,
    /// By variational Bayes: whether by means of the posteriors, which is EM.
    pub(crate) by_means: bool,
    pub(super) interrupt: Option<&'a Interrupt>,
}

impl BatchStep<'_> {
    /// Between two E-steps.
    fn check(&self) -> Result<(), FitError> {
        match self.interrupt {
            Some(interrupt) if interrupt.is_raised() => Err(FitError::Interrupted),
            _ => Ok(()),
        }
    }
}

/// The explanation of a batch under shared blocks.
#[doc(hidden)]
#[derive(Debug)]
pub struct Explanation<T: Real, S> {
    /// Expected counts of the shared blocks.
    pub(crate) counts: Vec<DMatrix<T>>,
    pub(crate) state: S,
    pub(crate) ln_lik: f64,
    pub(crate) iterations: usize,
    pub(crate) restored: Vec<String>,
}

/// Finds the batch's own blocks of parameters under the shared ones, which are frozen, and counts for all.
///
/// `joint` gives `P(z, y)` of the batch.
pub(crate) fn explain<T: Real, E: Expectation<T>, S: State<Scalar = T>>(
    em: &Em<E>,
    is_local: impl Fn(Axes) -> bool,
    joint: impl Fn(&Parameters<T>) -> Vec<f64>,
    at: Parameters<T>,
    turn: BatchStep<'_>,
) -> Result<Explanation<T, S>, FitError> {
    let (local, t) = (turn.local, turn.batch);
    // Schedules of priors go by batches.
    let mut at = at.at_iteration(t - 1);
    let mut iterations = 1;
    while iterations < local.max_iter {
        turn.check()?;
        let before = joint(&at);
        em.step(&mut at, false)?;
        at = at.at_iteration(t - 1);
        iterations += 1;
        // [SPEC 13.1] Σ |P_new(z, y) - P(z, y)| / 2, the share of the counts that changed its component
        let now = joint(&at);
        let moved: f64 = now.iter().zip(&before).map(|(a, b)| (a - b).abs()).sum();
        if moved <= 2.0 * local.tol {
            break;
        }
    }
    turn.check()?;
    let specs = em.0.blocks();
    let is_found = |spec: &BlockSpec<T>| spec.shape.0 > 0 && is_free(spec);
    let wanted = specs.iter();
    let wanted = wanted.map(|spec| !is_local(spec.axes) || is_found(spec));
    let wanted: Vec<bool> = wanted.collect();
    let request = Wanted {
        blocks: &wanted,
        value: true,
        count_unit: em.0.count_unit(),
    };
    let mut found = em.0.expect(&at, &request)?;
    let shared = (0..specs.len()).filter(|&j| !is_local(specs[j].axes));
    let counts = shared.filter_map(|j| found.blocks[j].take());
    // Batches are added up in no unit.
    let counts = counts
        .map(|counts| counts * T::lit(request.count_unit))
        .collect();
    let restored = em
        .m_step(&mut at, found.blocks, request.count_unit)?
        .into_iter();
    Ok(Explanation {
        counts,
        state: S::wrap(at)?,
        ln_lik: found.value.unwrap_or(f64::NAN),
        iterations,
        restored: restored.map(|j| specs[j].name.to_string()).collect(),
    })
}

/// Freezes the blocks that all batches share, without their priors: a batch finds its own.
pub(crate) fn freeze_shared<T: Real>(specs: &mut [BlockSpec<T>], is_local: impl Fn(Axes) -> bool) {
    for spec in specs {
        if !is_local(spec.axes) {
            (spec.frozen, spec.prior) = (Frozen::Whole, None);
        }
    }
}
