//! Models with planted mistakes: the law that catches each names the block.

mod gains;
mod known;
mod spoiled;

use nalgebra::DMatrix;
use plca_dist::random::{exponential, uniform};
use plca_fit::laws::{Claims, Law, Rounding, Violation};
use plca_fit::seed as rng;
use plca_fit::{
    Algorithm, FitError, Parameters,
    blocks::BlockSpec,
    em::{Expectation, Stepped},
};
use plca_tensor::{Data, DenseTensor, Order};
use rand_chacha::ChaCha8Rng;

/// What was found: the law and the block.
type Found = (Law, Option<String>);

fn found(violation: Violation) -> Found {
    (violation.law, violation.block)
}

/// The first violation of these problems by a checker, if there is one.
fn first(mut check: impl FnMut(u64) -> Result<(), Violation>) -> Option<Violation> {
    (0..12).find_map(|seed| check(seed).err())
}

/// The law and the block that are to be found.
fn is(law: Law, block: &str) -> Option<Found> {
    let block = Some(block.to_string()).filter(|block| !block.is_empty());
    Some((law, block))
}

/// A matrix of counts between 0 and 8, with a row and a column of which nothing is 0.
fn counts(rows: usize, columns: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let mut drawn = |at: usize| {
        let low = if at < columns || at.is_multiple_of(columns) {
            1.0
        } else {
            0.0
        };
        (low + 8.0 * uniform(rng)).floor()
    };
    (0..rows * columns).map(&mut drawn).collect()
}

fn dense(rows: usize, columns: usize, values: Vec<f64>) -> DenseTensor<f64> {
    DenseTensor::masked(vec![rows, columns], values, Order::RowMajor).unwrap()
}

/// Columns drawn from the simplex.
fn distributions(rows: usize, columns: usize, rng: &mut ChaCha8Rng) -> DMatrix<f64> {
    let mut drawn = DMatrix::from_fn(rows, columns, |_, _| exponential(rng));
    for mut column in drawn.column_iter_mut() {
        let sum = column.sum();
        column /= sum;
    }
    drawn
}

fn claims(data: &dyn Data<f64>, components: usize, more: f64) -> Claims {
    let longest = *data.shape().iter().max().unwrap();
    let size = 4.0 * data.total() + more;
    Claims::new(Rounding::derived(
        f64::EPSILON,
        components + 2 + longest,
        size,
    ))
}

/// What an M-step is spoiled by: the block, its old value and its new one.
type Spoil = fn(usize, &DMatrix<f64>, &mut DMatrix<f64>);

/// A right algorithm whose every step is spoiled.
#[derive(Debug)]
struct Spoiled<A>(A, Spoil);

impl<A: Algorithm<f64>> Algorithm<f64> for Spoiled<A> {
    fn blocks(&self) -> &[BlockSpec<f64>] {
        self.0.blocks()
    }

    fn step(&self, at: &mut Parameters<f64>, measure: bool) -> Result<Stepped, FitError> {
        let old = at.clone();
        let stepped = self.0.step(at, measure)?;
        at.change(|j, block| self.1(j, old.at(j), block));
        Ok(stepped)
    }

    fn objective(&self, at: &Parameters<f64>) -> Result<f64, FitError> {
        self.0.objective(at)
    }

    fn likelihood(&self, at: &Parameters<f64>) -> Result<f64, FitError> {
        self.0.likelihood(at)
    }

    fn unit(&self) -> f64 {
        self.0.unit()
    }

    fn extrapolates(&self, at: &Parameters<f64>) -> Result<(), FitError> {
        self.0.extrapolates(at)
    }

    fn check_start(&self, at: &Parameters<f64>) -> Result<(), FitError> {
        self.0.check_start(at)
    }

    fn expectation(&self) -> Option<&dyn Expectation<f64>> {
        self.0.expectation()
    }
}
