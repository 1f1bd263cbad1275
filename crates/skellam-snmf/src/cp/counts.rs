//! Expected counts.

use nalgebra::DMatrix;
use plca_fit::{
    BlockSpec, Constraint, Counts, Expectation, Exposure, FitError, Parameters, Renewed, Wanted,
};
use plca_tensor::{Real, SignedWanted};
use rand::Rng;

use super::unfold::Folding;
use crate::sides::split;
use crate::signed::{SignedData, unsupported};

/// Skellam factorization of a tensor.
#[derive(Debug)]
pub(super) struct CpCounts<T: Real> {
    pub(super) data: SignedData<T>,
    pub(super) folding: Folding,
    /// The mode whose factor carries the scale.
    pub(super) scale: Option<usize>,
    pub(super) specs: Vec<BlockSpec<T>>,
}

/// `w_k B[i,k] C[j,k] …`, `K` x (product of the other modes), of which the last runs fastest; without weights where a factor carries the scale.
pub(super) fn unfolded<T: Real>(matrices: &[DMatrix<T>], scale: Option<usize>) -> DMatrix<T> {
    let k = matrices[0].ncols();
    let (mut out, factors) = match scale {
        None => (matrices[1].clone(), &matrices[2..]),
        Some(_) => (DMatrix::from_element(k, 1, T::one()), &matrices[1..]),
    };
    for factor in factors {
        let n = factor.nrows();
        out = DMatrix::from_fn(k, out.ncols() * n, |z, at| {
            out[(z, at / n)] * factor[(at % n, z)]
        });
    }
    out
}

/// Counts `K x N` of activations as those of their factors, `I x K` each, in the order of the modes, of which the last runs fastest.
fn shared_out<T: Real>(counts: &DMatrix<T>, shape: &[usize]) -> Vec<DMatrix<T>> {
    let mut inner = 1;
    let factors = shape.iter().rev().map(|&n| {
        let mut sums = DMatrix::zeros(n, counts.nrows());
        for (at, column) in counts.column_iter().enumerate() {
            let mut row = sums.row_mut(at / inner % n);
            row.iter_mut()
                .zip(column.iter())
                .for_each(|(x, &c)| *x += c);
        }
        inner *= n;
        sums
    });
    let mut factors: Vec<_> = factors.collect();
    factors.reverse();
    factors
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
        let factors = [at.at(0), &unfolded(at.matrices(), self.scale)];
        let mut counts = self.data.counts(&self.specs, factors, pass)?;
        let shared = counts.blocks.pop().flatten();
        counts.blocks.resize(self.specs.len(), None);
        if let Some(shared) = shared {
            // [SKELLAM 5] with the activations' counts shared out over their factors
            let weights = shared.column_sum();
            let weights = DMatrix::from_column_slice(weights.len(), 1, weights.as_slice());
            let weights = self.scale.is_none().then_some(weights);
            let factors = shared_out(&shared, &self.folding.sizes());
            let all = weights.into_iter().chain(factors).enumerate();
            for (j, block) in all.filter(|(j, _)| wanted.blocks[1 + j]) {
                counts.blocks[1 + j] = Some(block);
            }
        }
        Ok(counts)
    }

    /// All else sums to 1, and hidden cells are counted: what carries the scale is exposed to 1.
    fn exposure(&self, block: usize, _: Renewed<'_, T>) -> Option<Exposure<T>> {
        let components = self.specs[0].shape.1;
        let rates = self.specs[block].constraint == Constraint::NonNegative;
        rates.then(|| Exposure::PerComponent(vec![T::one(); components]))
    }

    fn unsupported(&self, at: &Parameters<T>) -> Result<Option<(Vec<usize>, f64)>, FitError> {
        let [plus, minus] = split(at.at(0));
        let right = unfolded(at.matrices(), self.scale);
        let lost = unsupported(&self.data.cells, [&plus, &minus], &right);
        Ok(lost.map(|([row, column], value)| (self.folding.index(row, column), value)))
    }

    /// Weights, or the factor that carries the scale, explain the mean absolute value of the data.
    fn draw(&self, rng: &mut dyn Rng) -> Result<Vec<DMatrix<T>>, FitError> {
        let k = self.specs[0].shape.1;
        let atoms = self.data.atoms(k, rng);
        let weights = self.data.activations(k, rng).column_sum();
        let weights = DMatrix::from_column_slice(k, 1, weights.as_slice());
        let Some(scale) = self.scale else {
            let mut blocks = vec![atoms, weights];
            blocks.extend(self.specs[2..].iter().map(|spec| spec.drawn(rng)));
            return Ok(blocks);
        };
        let mut blocks = vec![atoms];
        for ((j, _), spec) in self.folding.others().zip(&self.specs[1..]) {
            let simplex = BlockSpec::simplex("", spec.shape, spec.components);
            let mut factor: DMatrix<T> = simplex.drawn(rng);
            if j == scale {
                let columns = factor.column_iter_mut().zip(weights.iter());
                columns.for_each(|(mut column, &w)| column *= w);
            }
            blocks.push(factor);
        }
        Ok(blocks)
    }

    fn facts(&self) -> Vec<(&'static str, Vec<f64>)> {
        let mode = |mode: usize| vec![mode as f64];
        let scale = self.scale.map(|scale| (SCALE_MODE, mode(scale)));
        let signed = (SIGNED_MODE, mode(self.folding.mode()));
        std::iter::once(signed).chain(scale).collect()
    }

    /// The sum of the absolute values.
    fn unit(&self) -> f64 {
        self.data.size
    }
}

/// The fact of a state that says which mode is signed.
pub(super) const SIGNED_MODE: &str = "signed_mode";
/// The fact of a state that says which factor carries the scale, if one does.
pub(super) const SCALE_MODE: &str = "scale_mode";
