//! What online learning asks of a model, and how a batch is explained.

use std::fmt::Debug;

use nalgebra::DMatrix;
use plca_fit::{
    BlockSpec, Counts, Em, Expectation, Exposure, FitError, Frozen, Model, Parameters, Renewed,
    State, Wanted,
};
use plca_tensor::{Data, Real};

use super::Local;

/// A model that can be learnt from batches: PLSA in both directions and PLCA of any order.
pub trait Streamed<T: Real>: Model<Scalar = T> + sealed::Sealed {
    /// The mode along which data of this order are cut into batches: that of PLSA's given index, the last of PLCA.
    fn streamed(&self, order: usize) -> usize;

    /// The blocks for data of this shape.
    #[doc(hidden)]
    fn specs(&self, shape: &[usize]) -> Result<Vec<BlockSpec<T>>, FitError>;

    /// Whether a block belongs to the batch.
    #[doc(hidden)]
    fn is_local(&self, block: usize, blocks: usize) -> bool;

    /// Refuses settings that have no meaning batch by batch.
    #[doc(hidden)]
    fn check_stream(&self) -> Result<(), FitError>;

    /// What was found of a batch under shared blocks.
    #[doc(hidden)]
    fn explain(
        &self,
        shared: Vec<DMatrix<T>>,
        batch: &dyn Data<T>,
        start: Option<&Self::State>,
        how: Turn,
    ) -> Result<Explanation<T, Self::State>, FitError>;
}

pub(crate) mod sealed {
    /// Implemented here alone.
    pub trait Sealed {}
}

/// The effort that the blocks of a batch are found with, and which batch it is, counted from 1.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub(super) local: Local,
    pub(super) batch: usize,
}

/// The explanation of a batch under shared blocks.
#[doc(hidden)]
#[derive(Debug)]
pub struct Explanation<T: Real, S> {
    /// Expected counts of the shared blocks.
    pub(super) counts: Vec<DMatrix<T>>,
    pub(super) state: S,
    pub(super) ln_lik: f64,
    pub(super) iterations: usize,
    pub(super) restored: Vec<String>,
}

/// A model whose shared blocks are frozen.
#[derive(Debug)]
struct Own<'a, T: Real, E> {
    model: &'a E,
    specs: Vec<BlockSpec<T>>,
}

impl<T: Real, E: Expectation<T>> Expectation<T> for Own<'_, T, E> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        self.model.expect(at, wanted)
    }

    fn exposure(&self, block: usize, renewed: Renewed<'_, T>) -> Option<Exposure<T>> {
        self.model.exposure(block, renewed)
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        self.model.unsupported(at)
    }

    fn unit(&self) -> f64 {
        self.model.unit()
    }
}

/// Finds the batch's own blocks of parameters under the shared ones, and counts for all.
///
/// `joint` gives `P(z, y)` of the batch.
pub(crate) fn explain<T: Real, E: Expectation<T>, S: State<Scalar = T>>(
    model: &E,
    is_local: impl Fn(usize) -> bool,
    joint: impl Fn(&Parameters<T>) -> Vec<f64>,
    at: Parameters<T>,
    Turn { local, batch: t }: Turn,
) -> Result<Explanation<T, S>, FitError> {
    let specs = model.blocks();
    // Schedules of priors go by batches.
    let mut at = at.at_iteration(t - 1);
    let em = Em(Own {
        model,
        specs: own(specs, &is_local),
    });
    let mut iterations = 1;
    while iterations < local.max_iter {
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
    let all: Vec<bool> = specs
        .iter()
        .map(|s| s.shape.0 > 0 && !is_fixed(s))
        .collect();
    let shared: Vec<bool> = (0..specs.len()).map(|j| !is_local(j)).collect();
    let wanted: Vec<bool> = all.iter().zip(&shared).map(|(a, s)| *a || *s).collect();
    let request = Wanted {
        blocks: &wanted,
        value: true,
    };
    let mut found = model.expect(&at, &request)?;
    let mut counts = Vec::new();
    let own = em.0.specs;
    let mut emptied = Vec::new();
    let mut new: Vec<Option<DMatrix<T>>> = vec![None; specs.len()];
    for (j, spec) in own.iter().enumerate() {
        let Some(c) = found.blocks[j].take() else {
            continue;
        };
        if shared[j] {
            counts.push(c);
            continue;
        }
        let (block, lost) = spec.m_step(c, at.at(j), None, t)?;
        new[j] = Some(block);
        if lost {
            emptied.push(j);
        }
    }
    let mut next = at.clone();
    next.change(|j, block| {
        if let Some(new) = &new[j] {
            block.copy_from(new);
        }
    });
    let mut restored = Vec::new();
    if !emptied.is_empty() && model.unsupported(&next)?.is_some() {
        next.change(|j, block| {
            if emptied.contains(&j) {
                own[j].restore(block);
                restored.push(own[j].name.to_string());
            }
        });
    }
    Ok(Explanation {
        counts,
        state: S::wrap(next.at_iteration(t))?,
        ln_lik: found.value.unwrap_or(f64::NAN),
        iterations,
        restored,
    })
}

fn is_fixed<T: Real>(spec: &BlockSpec<T>) -> bool {
    spec.frozen == Frozen::Whole
}

/// The blocks with those that are shared frozen, without their priors.
fn own<T: Real>(specs: &[BlockSpec<T>], is_local: impl Fn(usize) -> bool) -> Vec<BlockSpec<T>> {
    let of = |(j, spec): (usize, &BlockSpec<T>)| {
        let mut spec = spec.clone();
        if !is_local(j) {
            (spec.frozen, spec.prior) = (Frozen::Whole, None);
        }
        spec
    };
    specs.iter().enumerate().map(of).collect()
}
