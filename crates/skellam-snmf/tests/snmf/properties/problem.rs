//! Random data, masks, priors and starts.

use nalgebra::DMatrix;
use plca_tensor::DenseTensor;
use plca_tensor::strategies::{Start, Table, signed_table_of_shape, starts};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{Entries, Factors, Prior, Replicates};

use crate::support::masked;

#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) values: DMatrix<f64>,
    pub(crate) seen: DMatrix<bool>,
    pub(crate) k: usize,
    /// Of a matrix of twice the rows: both sides of an atom are one distribution.
    pub(crate) start: Start<f64>,
    pub(crate) seed: u64,
}

impl Problem {
    pub(crate) fn tensor(&self) -> DenseTensor<f64> {
        masked(&self.values, &self.seen)
    }

    pub(crate) fn rng(&self) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(self.seed)
    }

    /// Positive factors; the activations have the mass of the data.
    pub(crate) fn factors(&self) -> Factors<f64> {
        let [atoms, shares] = &self.start.factors[..] else {
            panic!("a matrix has two modes");
        };
        let rows = self.values.nrows();
        let mass = self.values.abs().sum().max(1.0);
        Factors {
            plus: atoms.rows(0, rows).into_owned(),
            minus: atoms.rows(rows, rows).into_owned(),
            activations: DMatrix::from_fn(self.k, self.values.ncols(), |z, n| {
                mass * self.start.weights[z] * shares[(n, z)]
            }),
        }
    }

    /// A prior with shapes from `low` to `low + 2`.
    pub(crate) fn prior(&self, low: f64) -> Prior {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed ^ 1);
        let (f, n) = self.values.shape();
        let mut block = |r, c, low: f64| {
            Entries::Each(DMatrix::from_fn(r, c, |_, _| {
                low + 2.0 * plca_dist::random::uniform(&mut rng)
            }))
        };
        Prior {
            plus: block(f, self.k, low),
            minus: block(f, self.k, low),
            shape: block(self.k, n, low),
            rate: block(self.k, n, 0.01),
        }
    }
}

fn new((table, start): (Table<f64>, Start<f64>), seed: u64) -> Problem {
    let (f, n) = (table.shape[0], table.shape[1]);
    Problem {
        values: DMatrix::from_row_slice(f, n, &table.values),
        seen: DMatrix::from_row_slice(f, n, &table.observed),
        k: start.weights.len(),
        start,
        seed,
    }
}

/// Whole data of any sign, of which about a quarter is hidden; now and then a whole row or column.
pub(crate) fn problem() -> impl Strategy<Value = Problem> {
    (1..8usize, 1..40usize, 1..4usize).prop_flat_map(|(f, n, k)| {
        let problem = (
            signed_table_of_shape(vec![f, n]),
            starts::<f64>(&[2 * f, n], k),
        );
        (problem, any::<u64>()).prop_map(|(problem, seed)| new(problem, seed))
    })
}

/// These data with a start that is always the same.
pub(crate) fn fixed(values: DMatrix<f64>, seen: DMatrix<bool>, k: usize, seed: u64) -> Problem {
    let (f, n) = values.shape();
    let start = starts(&[2 * f, n], k).new_tree(&mut TestRunner::deterministic());
    Problem {
        values,
        seen,
        k,
        start: start.unwrap().current(),
        seed,
    }
}

pub(crate) fn replicates() -> impl Strategy<Value = Replicates> {
    prop_oneof![
        Just(Replicates::One),
        Just(Replicates::Finite(3)),
        Just(Replicates::Limit)
    ]
}

/// The largest difference of the entries, relative to the largest entry of either.
pub(crate) fn distance(a: &DMatrix<f64>, b: &DMatrix<f64>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    (a - b).amax() / a.amax().max(b.amax()).max(f64::MIN_POSITIVE)
}

/// That of whole states.
pub(crate) fn apart(a: &Factors<f64>, b: &Factors<f64>) -> f64 {
    distance(&a.plus, &b.plus)
        .max(distance(&a.minus, &b.minus))
        .max(distance(&a.activations, &b.activations))
}
