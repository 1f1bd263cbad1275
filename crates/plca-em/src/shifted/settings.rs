//! What shifted and transformed models have in common: three blocks, their M-steps, priors and powers.

use nalgebra::{DMatrix, DVector};
use plca_priors::Step;
use plca_tensor::{Real, normalise_columns};
use rand::Rng;

use super::engine::sum_of;
use super::{Anneal, ShiftedInit, ShiftedState};
use crate::blocks::{
    Extrapolated, Free, check_prior, check_steady, column, following, largest, m_step, residual,
    restore, whole_or_not,
};
use crate::init::{random_columns, stochastic_block};
use crate::{EmError, ParamError, Prior};

/// Names of the blocks, as in errors. Arrays over blocks have this order.
pub(super) const BLOCKS: [&str; 3] = ["weights", "kernels", "impulses"];

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
        self.anneal.map_or(Ok(()), |a| check_anneal(a, true))?;
        self.impulse_power
            .map_or(Ok(()), |a| check_anneal(a, false))
    }

    /// Refuses priors made for blocks of other shapes; `cells` are those of a kernel and of an impulse.
    pub(crate) fn check_priors(&self, cells: [usize; 2]) -> Result<(), EmError> {
        let k = self.components;
        let shapes = [(k, 1), (cells[0], k), (cells[1], k)];
        for ((block, prior), shape) in BLOCKS.iter().zip(&self.priors).zip(shapes) {
            check_prior(block, prior.as_ref(), shape)?;
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

    /// `Σ ln p(block)` under the priors in force at the next iteration.
    pub(crate) fn ln_prior(&self, state: &ShiftedState<T>) -> f64 {
        let [weights, kernels, impulses] = &self.priors;
        let step = Step::at(following(state.iteration));
        let density = |prior: &Option<Prior<T>>, block: &DMatrix<T>| {
            prior
                .as_ref()
                .map_or(0.0, |prior| prior.ln_density(block, &step))
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

    /// Whether a power other than 1 is there to stay.
    fn stays(&self, iteration: usize) -> bool {
        let mut powers = [self.anneal, self.impulse_power].into_iter().flatten();
        powers.any(|a| a.power(iteration) != 1.0 && !a.moves(iteration))
    }

    /// Refuses accelerated steps that no objective guards: with priors that still change or have none, or with a power that
    /// stays. While a power moves there is no objective, and no extrapolation is kept.
    pub(crate) fn check_accelerable(&self, iteration: usize) -> Result<(), EmError> {
        for (block, prior) in BLOCKS.iter().zip(&self.priors) {
            check_steady(block, prior.as_ref(), iteration)?;
        }
        if self.stays(iteration) {
            let conflict = "acceleration does not go with a power that stays";
            return Err(ParamError::Conflict(conflict).into());
        }
        Ok(())
    }

    /// The M-step from the counts of kernels and impulses times `scale`, column after column; empty where they were not
    /// wanted. Tells which blocks were emptied of something by their priors; a prior that fails leaves the state as it was.
    pub(crate) fn maximise(
        &self,
        state: &mut ShiftedState<T>,
        counts: [Vec<T>; 2],
        scale: f64,
    ) -> Result<[bool; 3], EmError> {
        let priors = self.priors.iter().any(Option::is_some);
        whole_or_not(state, priors, |state| self.m_steps(state, counts, scale))
    }

    fn m_steps(
        &self,
        state: &mut ShiftedState<T>,
        [kernels, impulses]: [Vec<T>; 2],
        scale: f64,
    ) -> Result<[bool; 3], EmError> {
        let (k, iteration) = (self.components, following(state.iteration));
        // Only a prior, which has counts of its own, asks for those of the data as they are.
        let m_step = |at: usize, counts: DMatrix<T>, block: &mut DMatrix<T>| {
            let prior = self.priors[at].as_ref();
            let counts = match prior {
                Some(_) => counts / T::lit(scale),
                None => counts,
            };
            m_step(BLOCKS[at], prior, counts, block, iteration)
        };
        let mut emptied = [false; 3];
        if !self.frozen[0] {
            let counts = if kernels.is_empty() {
                &impulses
            } else {
                &kernels
            };
            let columns = counts.chunks_exact(counts.len() / k);
            let n = columns.map(|column| T::lit(sum_of(column, T::to_f64)));
            let mut weights = column(&state.weights);
            // [SI eq. 8] [SI eq. 13] [SPEC 5.1] P(z) <- n / v
            let n = DMatrix::from_iterator(k, 1, n);
            emptied[0] = m_step(0, n, &mut weights)?;
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
                emptied[at] = m_step(at, counts, block)?;
                raise(block, power.map_or(1.0, |a| a.power(iteration)));
            }
        }
        state.iteration = iteration;
        Ok(emptied)
    }

    /// The residual over the free blocks, from the counts of kernels and impulses; infinite while a power moves, `None` if there will be
    /// no measure of optimality.
    pub(crate) fn residual(
        &self,
        state: &ShiftedState<T>,
        counts: impl FnOnce([bool; 2]) -> [Vec<T>; 2],
    ) -> Option<f64> {
        if self.stays(following(state.iteration)) || self.priors.iter().any(Option::is_some) {
            return None;
        }
        if self.annealing(following(state.iteration)) {
            return Some(f64::INFINITY);
        }
        let counts = counts(self.wanted()).into_iter();
        let blocks = [(1, &state.kernels), (2, &state.impulses)];
        let of_block = |(counts, (at, block)): (Vec<T>, (usize, &DMatrix<T>))| {
            if counts.is_empty() {
                return 0.0;
            }
            let counts = DMatrix::from_vec(block.nrows(), block.ncols(), counts);
            let free = Free {
                weights: !self.frozen[0],
                block: !self.frozen[at],
            };
            residual(&counts, block, &state.weights, free)
        };
        Some(counts.zip(blocks).map(of_block).fold(0.0, largest))
    }

    pub(crate) fn unpack(
        &self,
        template: &ShiftedState<T>,
        flat: &[f64],
        fallback: &[f64],
    ) -> ShiftedState<T> {
        let mut state = template.clone();
        let mut values = Extrapolated::new(flat, fallback);
        values.take_weights(&mut state.weights, self.frozen[0]);
        values.take_columns(&mut state.kernels, self.frozen[1]);
        values.take_columns(&mut state.impulses, self.frozen[2]);
        state
    }
}

fn check_anneal(anneal: Anneal, below_one: bool) -> Result<(), ParamError> {
    let Anneal { alpha0, over } = anneal;
    let range = if below_one {
        alpha0 > 0.0 && alpha0 <= 1.0
    } else {
        alpha0 >= 1.0 && alpha0.is_finite()
    };
    if !range {
        return Err(ParamError::AnnealPower {
            value: alpha0,
            domain: if below_one { "(0, 1]" } else { "[1, inf)" },
        });
    }
    if over > 0.0 {
        Ok(())
    } else {
        Err(ParamError::AnnealDuration(over))
    }
}

/// All parameters, block after block.
pub(crate) fn pack<T: Real>(state: &ShiftedState<T>) -> Vec<f64> {
    let [kernels, impulses] = [&state.kernels, &state.impulses].map(DMatrix::as_slice);
    crate::blocks::pack([state.weights.as_slice(), kernels, impulses])
}

/// [`restore`] for the blocks that were emptied.
pub(crate) fn restore_blocks<T: Real>(state: &mut ShiftedState<T>, emptied: [bool; 3]) {
    let rows = [
        state.weights.len(),
        state.kernels.nrows(),
        state.impulses.nrows(),
    ];
    let blocks = [
        state.weights.as_mut_slice(),
        state.kernels.as_mut_slice(),
        state.impulses.as_mut_slice(),
    ];
    let emptied = blocks.into_iter().zip(rows).zip(emptied).filter(|b| b.1);
    emptied.for_each(|((block, rows), _)| restore(block, rows));
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
