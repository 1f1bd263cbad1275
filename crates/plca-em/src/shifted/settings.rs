//! What shifted and transformed models have in common: three blocks, their M-steps, priors and powers.

use nalgebra::{DMatrix, DVector};
use plca_tensor::{Real, normalise_columns};
use rand::Rng;

use super::{Anneal, ShiftedInit, ShiftedState};
use crate::init::{random_columns, stochastic_block};
use crate::plca::Prior;
use crate::{EmError, ParamError};

/// Names of the blocks, as in errors. Arrays over blocks have this order.
const BLOCKS: [&str; 3] = ["weights", "kernels", "impulses"];

/// Checked settings of the M-step.
#[derive(Clone, Debug)]
pub(crate) struct Settings<T: Real> {
    pub(crate) components: usize,
    pub(crate) anneal: Option<Anneal>,
    pub(crate) impulse_power: Option<Anneal>,
    pub(crate) frozen: [bool; 3],
    pub(crate) priors: [Option<Prior<T>>; 3],
}

impl<T: Real> Settings<T> {
    pub(crate) fn new(components: usize) -> Self {
        Self {
            components,
            anneal: None,
            impulse_power: None,
            frozen: [false; 3],
            priors: [None, None, None],
        }
    }

    pub(crate) fn check(&self) -> Result<(), ParamError> {
        if self.components == 0 {
            return Err(ParamError::NoComponents);
        }
        self.anneal.map_or(Ok(()), |a| a.check(true))?;
        self.impulse_power.map_or(Ok(()), |a| a.check(false))
    }

    /// Refuses priors made for blocks of other shapes; `cells` are those of a kernel and of an impulse.
    pub(crate) fn check_priors(&self, cells: [usize; 2]) -> Result<(), EmError> {
        let k = self.components;
        let shapes = [(k, 1), (cells[0], k), (cells[1], k)];
        for ((block, prior), (rows, columns)) in BLOCKS.iter().zip(&self.priors).zip(shapes) {
            if let Some(prior) = prior {
                prior
                    .check(rows, columns)
                    .map_err(|source| EmError::Prior {
                        block: (*block).into(),
                        source,
                    })?;
            }
        }
        Ok(())
    }

    /// A start; every block consumes the same numbers of `rng` whether or not the others are given.
    pub(crate) fn init<R: Rng + ?Sized>(
        &self,
        cells: [usize; 2],
        init: &ShiftedInit<T>,
        rng: &mut R,
    ) -> Result<ShiftedState<T>, EmError> {
        let k = self.components;
        let missing = |block: usize| EmError::FixedWithoutValue {
            block: BLOCKS[block].into(),
        };
        let weights = match &init.weights {
            Some(w) => stochastic_block(BLOCKS[0], column(w), (k, 1))?,
            None if self.frozen[0] => return Err(missing(0)),
            None => DMatrix::from_element(k, 1, T::one() / T::lit(k as f64)),
        };
        let mut block = |at: usize, given: &Option<DMatrix<T>>, rows: usize| {
            let drawn = random_columns(rows, k, rng);
            match given {
                Some(m) => stochastic_block(BLOCKS[at], m.clone(), (rows, k)),
                None if self.frozen[at] => Err(missing(at)),
                None => Ok(drawn),
            }
        };
        Ok(ShiftedState {
            kernels: block(1, &init.kernels, cells[0])?,
            impulses: block(2, &init.impulses, cells[1])?,
            weights: DVector::from_column_slice(weights.as_slice()),
            iteration: 0,
        })
    }

    /// Which counts a step needs: those of free blocks, or any for the weights.
    pub(crate) fn wanted(&self) -> [bool; 2] {
        let free = [!self.frozen[1], !self.frozen[2]];
        if free == [false; 2] {
            [!self.frozen[0], false]
        } else {
            free
        }
    }

    /// The priors in force at an iteration.
    fn priors(&self, iteration: usize) -> [Option<Prior<T>>; 3] {
        self.priors.each_ref().map(|prior| {
            let prior = prior.as_ref()?;
            Some(prior.at(iteration).unwrap_or_else(|| prior.clone()))
        })
    }

    /// `Σ ln p(block)` under the priors in force at the next iteration.
    pub(crate) fn ln_prior(&self, state: &ShiftedState<T>) -> f64 {
        let [weights, kernels, impulses] = self.priors(state.iteration + 1);
        let density = |prior: Option<Prior<T>>, block: &DMatrix<T>| {
            prior.map_or(0.0, |prior| prior.ln_density(block))
        };
        density(weights, &column(&state.weights))
            + density(kernels, &state.kernels)
            + density(impulses, &state.impulses)
    }

    /// Whether a power still moves at an iteration, so that the likelihood may fall for no fault of the fit.
    pub(crate) fn annealing(&self, iteration: usize) -> bool {
        let moves = |anneal: Option<Anneal>| anneal.is_some_and(|a| a.moves(iteration));
        moves(self.anneal) || moves(self.impulse_power)
    }

    /// The M-step from the counts of kernels and impulses, column after column; empty where they were not wanted. Tells
    /// which blocks may have been emptied by their priors.
    pub(crate) fn maximise(
        &self,
        state: &mut ShiftedState<T>,
        kernels: Vec<T>,
        impulses: Vec<T>,
    ) -> Result<[bool; 3], EmError> {
        let (k, iteration) = (self.components, state.iteration + 1);
        let priors = self.priors(iteration);
        if !self.frozen[0] {
            let counts = if kernels.is_empty() {
                &impulses
            } else {
                &kernels
            };
            let columns = counts.chunks_exact(counts.len() / k);
            let n = columns.map(|column| column.iter().copied().sum::<T>());
            let mut weights = column(&state.weights);
            // [SPEC 5.1] P(z) <- n / v
            let n = DMatrix::from_iterator(k, 1, n);
            m_step(BLOCKS[0], priors[0].as_ref(), n, &mut weights)?;
            state.weights.copy_from_slice(weights.as_slice());
        }
        let powers = [self.anneal, self.impulse_power];
        let blocks = [
            (1, kernels, &mut state.kernels),
            (2, impulses, &mut state.impulses),
        ];
        for ((at, counts, block), power) in blocks.into_iter().zip(powers) {
            if !self.frozen[at] {
                let counts = DMatrix::from_vec(block.nrows(), k, counts);
                m_step(BLOCKS[at], priors[at].as_ref(), counts, block)?;
                raise(block, power.map_or(1.0, |a| a.power(iteration)));
            }
        }
        state.iteration = iteration;
        let may_empty = |at: usize| priors[at].as_ref().is_some_and(|prior| prior.may_empty());
        Ok(std::array::from_fn(|at| !self.frozen[at] && may_empty(at)))
    }

    /// `max |θ (g - 1)|` over the free blocks and live components, from their counts; `None` if that is no measure of optimality.
    pub(crate) fn residual(
        &self,
        state: &ShiftedState<T>,
        counts: impl FnOnce([bool; 2]) -> [Vec<T>; 2],
    ) -> Option<f64> {
        let mut powers = [self.anneal, self.impulse_power].into_iter().flatten();
        let raised = powers.any(|a| a.power(state.iteration + 1) != 1.0);
        if raised || self.priors.iter().any(Option::is_some) {
            return None;
        }
        let blocks = [&state.kernels, &state.impulses];
        let mut worst: f64 = 0.0;
        let counts = counts([!self.frozen[1], !self.frozen[2]]);
        for (counts, block) in counts.iter().zip(blocks).filter(|(c, _)| !c.is_empty()) {
            // With unseen cells the completed data have more mass than was observed.
            let total: f64 = counts.iter().map(|c| c.to_f64()).sum();
            let columns = counts.chunks_exact(block.nrows()).zip(block.column_iter());
            for ((counts, block), weight) in columns.zip(&state.weights) {
                let n = weight.to_f64() * total;
                for (c, x) in counts.iter().zip(&block).filter(|_| n > 0.0) {
                    // [SPEC 1.1] F g = C / (v P(z))
                    worst = worst.max((c.to_f64() / n - x.to_f64()).abs());
                }
            }
        }
        Some(worst)
    }

    pub(crate) fn unpack(
        &self,
        template: &ShiftedState<T>,
        flat: &[f64],
        fallback: &[f64],
    ) -> ShiftedState<T> {
        let mut state = template.clone();
        // [SPEC 10] an entry that left the orthant becomes a tenth of its last EM value
        let value = |at: usize| {
            T::lit(if flat[at] > 0.0 {
                flat[at]
            } else {
                0.1 * fallback[at]
            })
        };
        let mut first = 0;
        let mut fill = |at: usize, block: &mut [T]| {
            if !self.frozen[at] {
                (first..)
                    .zip(block.iter_mut())
                    .for_each(|(i, x)| *x = value(i));
            }
            first += block.len();
        };
        fill(0, state.weights.as_mut_slice());
        fill(1, state.kernels.as_mut_slice());
        fill(2, state.impulses.as_mut_slice());
        if !self.frozen[0] {
            let total = state.weights.sum();
            state.weights /= total;
        }
        if !self.frozen[1] {
            normalise_columns(&mut state.kernels);
        }
        if !self.frozen[2] {
            normalise_columns(&mut state.impulses);
        }
        state
    }
}

/// All parameters, block after block.
pub(crate) fn pack<T: Real>(state: &ShiftedState<T>) -> Vec<f64> {
    let blocks = [
        state.weights.as_slice(),
        state.kernels.as_slice(),
        state.impulses.as_slice(),
    ];
    blocks.into_iter().flatten().map(|x| x.to_f64()).collect()
}

/// Gives every column of the emptied blocks a trace of everything back: `q <- (q + 1e-12) / (1 + 1e-12 I)`. `[SPEC 8]`
pub(crate) fn restore<T: Real>(state: &mut ShiftedState<T>, emptied: [bool; 3]) {
    let mix = |block: &mut [T], rows: usize| {
        let whole = 1.0 + 1e-12 * rows as f64;
        for q in block {
            *q = T::lit((q.to_f64() + 1e-12) / whole);
        }
    };
    if emptied[0] {
        let rows = state.weights.len();
        mix(state.weights.as_mut_slice(), rows);
    }
    if emptied[1] {
        let rows = state.kernels.nrows();
        mix(state.kernels.as_mut_slice(), rows);
    }
    if emptied[2] {
        let rows = state.impulses.nrows();
        mix(state.impulses.as_mut_slice(), rows);
    }
}

fn column<T: Real>(v: &DVector<T>) -> DMatrix<T> {
    DMatrix::from_column_slice(v.len(), 1, v.as_slice())
}

/// The M-step of one block; a column without counts keeps its values.
fn m_step<T: Real>(
    block: &str,
    prior: Option<&Prior<T>>,
    mut counts: DMatrix<T>,
    theta: &mut DMatrix<T>,
) -> Result<(), EmError> {
    if let Some(prior) = prior {
        let updated = prior.update(&counts, theta);
        return updated.map_err(|source| EmError::Prior {
            block: block.into(),
            source,
        });
    }
    // [SI eq. 15] [SPEC 5.1] K <- CK / n, H <- CH / n
    let sums = normalise_columns(&mut counts);
    for (z, _) in sums.iter().enumerate().filter(|&(_, &s)| s <= T::zero()) {
        counts.set_column(z, &theta.column(z));
    }
    *theta = counts;
    Ok(())
}

/// Raises every column to a power and normalises it.
fn raise<T: Real>(block: &mut DMatrix<T>, power: f64) {
    if power == 1.0 {
        return;
    }
    for mut column in block.column_iter_mut() {
        // Relative to the largest entry, so that high powers do not underflow all of them.
        let largest = column.amax();
        if largest > T::zero() {
            // [SI eq. 16] [SPEC 5.3] K <- K^a / Σ K^a
            column.apply(|x| *x = T::lit((x.to_f64() / largest.to_f64()).powf(power)));
        }
    }
    normalise_columns(block);
}
