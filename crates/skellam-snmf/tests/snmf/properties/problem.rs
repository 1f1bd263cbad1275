//! Random data, masks, priors and starts.

use nalgebra::DMatrix;
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{Entries, Prior, Replicates, SignedMatrix, SnmfInit, SnmfState};

#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) values: DMatrix<f64>,
    pub(crate) seen: DMatrix<bool>,
    pub(crate) k: usize,
    pub(crate) seed: u64,
}

impl Problem {
    pub(crate) fn data(&self) -> SignedMatrix<f64> {
        SignedMatrix::with_mask(&self.values, &self.seen).unwrap()
    }

    pub(crate) fn rng(&self) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(self.seed)
    }

    /// Positive factors.
    pub(crate) fn factors(&self) -> SnmfState<f64> {
        let config = skellam_snmf::Snmf::builder(self.k)
            .real_data()
            .build()
            .unwrap();
        let start = config.init(&self.data(), &SnmfInit::default(), &mut self.rng());
        start.unwrap()
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

/// Whole data of any sign, of which about a quarter is hidden; now and then a whole row and a whole column.
pub(crate) fn problem() -> impl Strategy<Value = Problem> {
    (1..8usize, 1..40usize, 1..4usize, any::<u64>()).prop_flat_map(|(f, n, k, seed)| {
        let values = prop::collection::vec(-30i32..40, f * n);
        let seen = prop::collection::vec(prop::bool::weighted(0.75), f * n);
        (values, seen, any::<bool>()).prop_map(move |(values, seen, lines)| Problem {
            values: DMatrix::from_iterator(f, n, values.into_iter().map(f64::from)),
            seen: DMatrix::from_fn(f, n, |i, j| {
                seen[i * n + j] && !(lines && (i == 2 || j == 3))
            }),
            k,
            seed,
        })
    })
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
pub(crate) fn apart(a: &SnmfState<f64>, b: &SnmfState<f64>) -> f64 {
    distance(&a.plus, &b.plus)
        .max(distance(&a.minus, &b.minus))
        .max(distance(&a.activations, &b.activations))
}
