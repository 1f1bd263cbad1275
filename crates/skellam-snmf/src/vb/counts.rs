//! The posteriors that a pass gives, and their bound.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_fit::{
    FitError, Parameters, Progress,
    blocks::BlockSpec,
    em::{Counts, Expectation, Wanted},
};
use plca_priors::Components;
use plca_tensor::{CompensatedSum, Real, SignedSums, SignedWanted};
use rand::Rng;

use super::NAMES;
use super::state::posterior;
use crate::check::{not_finite, scaled};
use crate::faint::{self, Logs, Watch};
use crate::sides::{split, stack};
use crate::signed::SignedData;
use crate::{Entries, Factors, Posterior, Prior};

/// Variational Bayes on data: what is expected of a block is its new posterior.
#[derive(Debug)]
pub(super) struct VbCounts<T: Real> {
    pub(super) prior: Prior,
    pub(super) data: SignedData<T>,
    pub(super) specs: Vec<BlockSpec<T>>,
    /// Whether the data are a shard: the prior of the atoms is then for all shards together.
    pub(super) is_shard: bool,
    /// What is known of atoms that stay as they are.
    pub(super) held: Option<Arc<Held<T>>>,
}

/// Atoms that stay as they are.
#[derive(Debug)]
pub(super) struct Held<T: Real> {
    /// Their geometric means.
    plus: DMatrix<T>,
    minus: DMatrix<T>,
    /// How far they are from their prior.
    divergence: f64,
}

impl<T: Real> Held<T> {
    pub(super) fn new(q: &Posterior<T>, prior: &Prior) -> Result<Self, FitError> {
        let [plus, minus] = q.geometric_atoms()?;
        Ok(Self {
            plus,
            minus,
            divergence: q.dirichlet_terms(prior)?,
        })
    }
}

const NOTHING: SignedWanted = SignedWanted {
    left: false,
    right: false,
    value: false,
};

/// Sum of the entries.
fn total<'a, T: Real>(x: impl IntoIterator<Item = &'a T>) -> f64 {
    let terms = x.into_iter().map(|x| x.to_f64());
    terms.collect::<CompensatedSum>().value()
}

/// Counts under a prior: the posterior shapes of the block `name`.
pub(crate) fn shapes<T: Real>(
    counts: &mut DMatrix<T>,
    prior: &Entries,
    components: Components,
    name: &str,
) -> Result<(), FitError> {
    let counts = counts.as_mut_slice();
    prior.for_each(counts, components, |x, c| *x += T::lit(c));
    // Without a way out of the loop it is compiled for vectors.
    match counts.iter().fold(true, |all, x| all & x.is_finite()) {
        true => Ok(()),
        false => Err(not_finite(name, f64::NAN)),
    }
}

/// Counts of both sides of the atoms under their prior.
pub(super) fn atoms_shapes<T: Real>(
    [plus, minus]: [&mut DMatrix<T>; 2],
    prior: &Prior,
) -> Result<(), FitError> {
    // [SKELLAM 6] α̂ <- α + T̃ ∘ G̃ H̃ᵀ
    let atoms = Components::Columns(plus.nrows());
    shapes(plus, &prior.plus, atoms, NAMES[0])?;
    shapes(minus, &prior.minus, atoms, NAMES[0])
}

/// `b̂ = b + 1` of activations of this shape.
pub(super) fn rates<T: Real>(prior: &Prior, (k, n): (usize, usize)) -> DMatrix<T> {
    let mut rates = DMatrix::zeros(k, n);
    let (each, rows) = (rates.as_mut_slice(), Components::Rows(k));
    (prior.rate).for_each(each, rows, |x, b| *x = T::lit(b + 1.0));
    rates
}

impl<T: Real> VbCounts<T> {
    /// The expected counts under geometric means, whose logarithms are asked for where the numbers do not do.
    fn pass(
        &self,
        means: &Factors<T>,
        logs: impl FnOnce() -> Result<Logs, FitError>,
        wanted: SignedWanted,
    ) -> Result<SignedSums<T>, FitError> {
        let SignedData { cells, split, .. } = &self.data;
        let model = means.model();
        let atoms = [means.plus.as_slice(), means.minus.as_slice()];
        let h = means.activations.as_slice();
        let (terms, largest) = (means.plus.ncols(), faint::largest(h));
        let mut sums = match Watch::over(*split, atoms, h, terms, largest) {
            None => cells.pass(&model, split, wanted),
            Some(watch) => {
                let sums = cells.pass(&model, &watch, wanted);
                if watch.met() {
                    return Ok(faint::pass(cells, split.replicates, &logs()?));
                }
                sums
            }
        };
        // What hidden cells add is a difference of sums, and may come out below 0.
        if wanted.left {
            scaled(NAMES[0], &mut sums.plus, &means.plus)?;
            scaled(NAMES[0], &mut sums.minus, &means.minus)?;
        }
        if wanted.right {
            scaled(NAMES[1], &mut sums.right, &means.activations)?;
        }
        Ok(sums)
    }

    /// One update from geometric means: the posterior of atoms and activations, each as wanted, and the likelihood term.
    fn update(
        &self,
        means: &Factors<T>,
        logs: impl FnOnce() -> Result<Logs, FitError>,
        wanted: SignedWanted,
    ) -> Result<(Posterior<T>, f64), FitError> {
        let mut sums = self.pass(means, logs, wanted)?;
        let prior = &self.prior;
        if wanted.left && !self.is_shard {
            atoms_shapes([&mut sums.plus, &mut sums.minus], prior)?;
        }
        if wanted.right {
            // [SKELLAM 6] ŝ <- a + H̃ ∘ (T̃⁺ᵀ G̃⁺ + T̃⁻ᵀ G̃⁻), b̂ <- b + 1
            let activations = Components::Rows(means.plus.ncols());
            shapes(&mut sums.right, &prior.shape, activations, NAMES[1])?;
        }
        let posterior = Posterior {
            rate: rates(prior, sums.right.shape()),
            plus: sums.plus,
            minus: sums.minus,
            shape: sums.right,
        };
        Ok((posterior, sums.value))
    }

    /// The bound from its likelihood term: `Lfit(L̃) + Σ (L̃⁺ + L̃⁻) - Σ ŝ/b̂ - KL`, the second sum over all cells.
    fn bound(&self, state: &Posterior<T>, means: &Factors<T>, fit: f64) -> Result<f64, FitError> {
        let columns = means.plus.column_iter().zip(means.minus.column_iter());
        let mass = columns
            .zip(means.activations.row_iter())
            .map(|((p, m), h)| {
                // [SKELLAM 7] hidden cells included
                (total(p.iter()) + total(m.iter())) * total(h.iter())
            });
        let mass = mass.collect::<CompensatedSum>().value();
        let terms = match &self.held {
            _ if self.is_shard => state.activations_terms(&self.prior)?,
            Some(held) => state.activations_terms(&self.prior)? - held.divergence,
            None => state.bound_terms(&self.prior)?,
        };
        Ok(fit + mass + terms)
    }

    /// The blocks of an update from geometric means, and its likelihood term.
    pub(super) fn counted(
        &self,
        means: &Factors<T>,
        logs: impl FnOnce() -> Result<Logs, FitError>,
        wanted: &Wanted<'_>,
    ) -> Result<Counts<T>, FitError> {
        let pass = SignedWanted {
            left: wanted.blocks[0],
            right: wanted.blocks[1],
            value: wanted.value,
        };
        let (next, fit) = self.update(means, logs, pass)?;
        let new = blocks(next).into_iter().zip(wanted.blocks);
        let new = new.map(|(block, &wanted)| wanted.then_some(block));
        Ok(Counts {
            blocks: new.collect(),
            value: wanted.value.then_some(fit),
        })
    }

    /// The update from factors, taken for the geometric means.
    pub(super) fn updated(&self, means: &Factors<T>) -> Result<Posterior<T>, FitError> {
        let wanted = SignedWanted {
            left: true,
            right: true,
            ..NOTHING
        };
        Ok(self.update(means, || Ok(Logs::of(means)), wanted)?.0)
    }

    /// `Lfit` of the posterior means.
    pub(super) fn ln_lik(&self, at: &Parameters<T>) -> f64 {
        let wanted = SignedWanted {
            value: true,
            ..NOTHING
        };
        let means = posterior(at).means();
        let SignedData { cells, split, .. } = &self.data;
        cells.pass(&means.model(), split, wanted).value
    }
}

/// Factors of atoms with the positive side above the negative one.
pub(super) fn factors<T: Real>(atoms: &DMatrix<T>, activations: DMatrix<T>) -> Factors<T> {
    let [plus, minus] = split(atoms);
    Factors {
        plus,
        minus,
        activations,
    }
}

/// The blocks of a posterior.
pub(super) fn blocks<T: Real>(q: Posterior<T>) -> Vec<DMatrix<T>> {
    vec![stack(&q.plus, &q.minus), q.shape, q.rate]
}

impl<T: Real> Expectation<T> for VbCounts<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let (q, means) = match &self.held {
            None => {
                let q = posterior(at);
                let means = q.geometric()?;
                (q, means)
            }
            Some(held) => {
                let none = DMatrix::zeros(0, at.shape(1).0);
                let q = Posterior {
                    plus: none.clone(),
                    minus: none,
                    shape: at.at(1).clone(),
                    rate: at.at(2).clone(),
                };
                let means = Factors {
                    plus: held.plus.clone(),
                    minus: held.minus.clone(),
                    activations: q.geometric_activations()?,
                };
                (q, means)
            }
        };
        let counts = self.counted(&means, || posterior(at).ln_geometric(), wanted)?;
        let bound = counts.value.map(|fit| self.bound(&q, &means, fit));
        Ok(Counts {
            value: bound.transpose()?,
            ..counts
        })
    }

    /// Under a posterior everything has some probability.
    fn unsupported(&self, _: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        Ok(None)
    }

    /// The update from factors as EM draws them.
    fn draw(&self, rng: &mut dyn Rng, _: &mut Progress<'_>) -> Result<Vec<DMatrix<T>>, FitError> {
        let [atoms, activations] = [0, 1].map(|j| self.specs[j].drawn(rng));
        Ok(blocks(self.updated(&factors(&atoms, activations))?))
    }

    /// The sum of the absolute values.
    fn unit(&self) -> f64 {
        self.data.unit()
    }
}
