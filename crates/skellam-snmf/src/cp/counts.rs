//! Expected counts.

use std::borrow::Cow;

use nalgebra::DMatrix;
use plca_dist::random;
use plca_fit::{
    FitError, Parameters, Progress,
    blocks::{BlockSpec, Constraint, Exposure},
    em::{Counts, Expectation, Renewed, Wanted},
};
use plca_tensor::{Real, SignedWanted};
use rand::Rng;

use super::others::Others;
use super::slabs::Slabs;
use super::unfold::Folding;
use crate::Replicates;
use crate::bounds::{self, Bounds};
use crate::rule::Split;
use crate::sides::{split, tame};
use crate::signed::{atoms_spec, mean_activation};

/// Skellam factorization of a tensor.
#[derive(Debug)]
pub(super) struct CpCounts<T: Real> {
    pub(super) cells: Slabs<T>,
    pub(super) split: Split,
    /// The sum of the absolute values.
    pub(super) size: f64,
    /// The mode whose factor carries the scale.
    pub(super) scale: Option<usize>,
    pub(super) specs: Vec<BlockSpec<T>>,
    /// The rate of noise.
    pub(super) noise: f64,
    /// Of the block that carries the scale.
    pub(super) bounds: Bounds,
}

impl<T: Real> CpCounts<T> {
    /// The factors beside the atoms, for data of about 1.
    fn scaled(&self, at: &Parameters<T>) -> Others<T> {
        let (place, scale) = (carrier(&self.specs), self.split.scale());
        let mut matrices = Cow::Borrowed(at.matrices());
        if scale != 1.0 || !matches!(self.bounds, Bounds::None) {
            let own = &mut matrices.to_mut()[place];
            self.bounds.hold(own, &self.specs[place]);
            // Rates first: a small share of the unit of the data might be no normal number.
            *own *= T::lit(scale);
        }
        self.cells.others(Others::new(&matrices, self.scale))
    }
}

impl<T: Real> Expectation<T> for CpCounts<T> {
    fn blocks(&self) -> &[BlockSpec<T>] {
        &self.specs
    }

    fn expect(&self, at: &Parameters<T>, wanted: &Wanted<'_>) -> Result<Counts<T>, FitError> {
        let pass = SignedWanted {
            left: wanted.blocks[0],
            right: wanted.blocks[1..].contains(&true),
            value: wanted.value,
        };
        let [plus, minus] = split(at.at(0));
        let others = self.scaled(at);
        let names = [0, 1].map(|j: usize| &*self.specs[j].name);
        let atoms = (at.at(0), [&plus, &minus]);
        let passed = self.cells.pass(
            self.split.of_scaled_rates(),
            atoms,
            &others,
            pass,
            names,
            None,
        )?;
        let mut blocks = vec![None; self.specs.len()];
        let unit = T::lit(self.count_unit() / wanted.count_unit);
        blocks[0] = passed.atoms.map(|mut counts| {
            counts *= unit;
            if self.specs[0].prior.is_none() {
                tame(&mut counts);
            }
            counts
        });
        if let Some(shares) = passed.shares {
            let weights = self.scale.is_none().then(|| shares.weights());
            let all = weights.into_iter().chain(shares.factors()).enumerate();
            for (j, block) in all.filter(|(j, _)| wanted.blocks[1 + j]) {
                blocks[1 + j] = Some(block * unit);
            }
        }
        let place = carrier(&self.specs);
        if let Some(counts) = &mut blocks[place] {
            self.bounds
                .hold_in(wanted.count_unit, counts, &self.specs[place]);
        }
        Ok(Counts {
            blocks,
            value: wanted.value.then_some(passed.value),
        })
    }

    /// All else sums to 1, and hidden cells are counted: what carries the scale is exposed to 1.
    fn exposure(&self, block: usize, _: Renewed<'_, T>) -> Option<Exposure<T>> {
        let components = self.specs[0].shape.1;
        let rates = self.specs[block].constraint == Constraint::NonNegative;
        rates.then(|| Exposure::PerComponent(vec![T::one(); components]))
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        if self.split.is_noisy() {
            return Ok(None);
        }
        let [plus, minus] = split(at.at(0));
        let others = self.scaled(at);
        let lost = self.cells.unsupported([&plus, &minus], &others);
        Ok(lost.map(|([row, column], value)| (self.cells.folding.index(row, column), value)))
    }

    fn draw(&self, rng: &mut dyn Rng, _: &mut Progress<'_>) -> Result<Vec<DMatrix<T>>, FitError> {
        Ok(drawn(&self.cells, self.size, &self.specs, self.scale, rng))
    }

    /// A start beyond the bound is brought within it, so that what is written is what was measured.
    fn complete(
        &self,
        blocks: &mut [DMatrix<T>],
        _: &[bool],
        _: &mut Progress<'_>,
    ) -> Result<(), FitError> {
        let place = carrier(&self.specs);
        self.bounds.hold(&mut blocks[place], &self.specs[place]);
        Ok(())
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        let mut all = facts(&self.cells.folding, self.scale);
        all.extend(bounds::facts(self.noise, &self.bounds, Replicates::BOUND));
        all
    }

    fn rate_unit(&self, _: usize) -> Option<f64> {
        Some(self.split.replicates.rate_unit(self.size))
    }

    fn count_unit(&self) -> f64 {
        1.0 / self.split.scale()
    }

    /// The sum of the absolute values, 1 of data that are all 0.
    fn unit(&self) -> f64 {
        if self.size > 0.0 { self.size } else { 1.0 }
    }
}

/// The place of the block that carries the scale: the weights, or a factor.
pub(super) fn carrier<T: Real>(specs: &[BlockSpec<T>]) -> usize {
    let rates = |spec: &BlockSpec<T>| spec.constraint == Constraint::NonNegative;
    specs.iter().position(rates).unwrap_or(1)
}

/// The fact of a state that says which mode is signed.
pub(super) const SIGNED_MODE: &str = "signed_mode";
/// The fact of a state that says which factor carries the scale, if one does.
pub(super) const SCALE_MODE: &str = "scale_mode";

/// Random blocks: weights, or the factor that carries the scale, explain the mean absolute value of the data.
pub(super) fn drawn<T: Real>(
    cells: &Slabs<T>,
    size: f64,
    specs: &[BlockSpec<T>],
    scale: Option<usize>,
    rng: &mut dyn Rng,
) -> Vec<DMatrix<T>> {
    let (rows, k) = (cells.folding.rows(), specs[0].shape.1);
    let atoms = atoms_spec(rows, k).drawn(rng);
    let each = mean_activation(size, cells.observed(), rows, k);
    let mut weights = DMatrix::<f64>::zeros(k, 1);
    for _ in 0..cells.columns() {
        for w in weights.iter_mut() {
            *w += each * (0.5 + random::uniform(rng));
        }
    }
    let weights: DMatrix<T> = weights.map(T::lit);
    let Some(scale) = scale else {
        let mut blocks = vec![atoms, weights];
        blocks.extend(specs[2..].iter().map(|spec| spec.drawn(rng)));
        return blocks;
    };
    let mut blocks = vec![atoms];
    for ((j, _), spec) in cells.folding.others().zip(&specs[1..]) {
        let simplex = BlockSpec::simplex("", spec.shape, spec.axes);
        let mut factor: DMatrix<T> = simplex.drawn(rng);
        if j == scale {
            let columns = factor.column_iter_mut().zip(weights.iter());
            columns.for_each(|(mut column, &w)| column *= w);
        }
        blocks.push(factor);
    }
    blocks
}

/// What a state remembers.
pub(super) fn facts(folding: &Folding, scale: Option<usize>) -> Vec<(&'static str, Vec<f64>)> {
    let mode = |mode: usize| vec![mode as f64];
    let scale = scale.map(|scale| (SCALE_MODE, mode(scale)));
    let signed = (SIGNED_MODE, mode(folding.mode()));
    std::iter::once(signed).chain(scale).collect()
}

/// The signed mode and that of the scale, as parameters remember them.
pub(super) fn modes<T: Real>(
    parameters: &Parameters<T>,
) -> Result<(usize, Option<usize>), FitError> {
    let mode = match parameters.whole(SIGNED_MODE)?[..] {
        [mode] => mode,
        ref other => {
            return Err(FitError::Fact {
                name: SIGNED_MODE,
                got: format!("{} numbers", other.len()),
                expected: "one".into(),
            });
        }
    };
    let scale = match parameters.fact(SCALE_MODE) {
        None => None,
        Some(_) => parameters.whole(SCALE_MODE)?.first().copied(),
    };
    Ok((mode, scale))
}
