//! The bound finds the number of components that made the data, and single precision serves too.

use nalgebra::DMatrix;
use plca_dist::{Skellam, random};
use plca_fit::{FitError, Stop};
use rand::distr::Distribution;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{Entries, Prior, Replicates, SnmfVb, select_components};

use crate::support::tensor;

/// Counts drawn from three components whose atoms share no row.
fn data(seed: u64) -> DMatrix<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (f, n) = (9, 120);
    let mut v = DMatrix::zeros(f, n);
    for column in 0..n {
        let h: Vec<f64> = (0..3)
            .map(|_| 300.0 * random::exponential(&mut rng))
            .collect();
        for row in 0..f {
            let rate = h[row / 3] / 3.0;
            let (plus, minus) = if row % 2 == 0 {
                (rate, 0.0)
            } else {
                (0.0, rate)
            };
            let law = Skellam::new(plus, minus).unwrap();
            v[(row, column)] = law.sample(&mut rng) as f64;
        }
    }
    v
}

#[test]
fn the_bound_finds_the_number_of_components() {
    let prior = Prior {
        plus: Entries::All(0.3),
        minus: Entries::All(0.3),
        shape: Entries::All(1.0),
        rate: Entries::All(1.0 / 300.0),
    };
    let configure = |k| {
        SnmfVb::new(k)
            .replicates(Replicates::One)
            .priors(prior.clone())
    };
    let stop = Stop::default().max_iter(600).tol(1e-5);
    for seed in 0..3 {
        let v = tensor(&data(seed));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let ranked = select_components(&v, 1..=5, configure, 4, &stop, &mut rng).unwrap();
        let order: Vec<usize> = ranked.iter().map(|c| c.components).collect();
        assert_eq!(order[0], 3, "{order:?}");
        assert!(ranked.windows(2).all(|w| w[0].score >= w[1].score));
    }
    let v = tensor(&data(0));
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let refused = select_components(&v, [1], configure, 0, &stop, &mut rng);
    let expected = FitError::Setting {
        name: "starts",
        value: 0.0,
        expected: "at least 1",
    };
    assert_eq!(refused.unwrap_err(), expected);
}
