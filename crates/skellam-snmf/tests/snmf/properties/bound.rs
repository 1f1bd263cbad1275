//! The evidence bound never falls: not by its own steps, not by those of the hyperparameters.

use nalgebra::DMatrix;
use plca_fit::{Init, Model, State};
use proptest::prelude::*;
use skellam_snmf::{Groups, Hyperparameters, Sharing, SnmfVb, Statistics};

use super::objective::{Claims, obeys};
use super::problem::{problem, replicates};
use crate::support::At;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// `ELBO` never falls, for shapes below 1 too. [SKELLAM 6] [SKELLAM 7]
    #[test]
    fn bound_never_falls(problem in problem(), m in replicates(), low in prop_oneof![Just(1e-3), Just(0.1), Just(1.0)]) {
        let config = SnmfVb::new(problem.k).replicates(m).priors(problem.prior(low));
        let data = problem.tensor();
        let start = config.init(&data, Init::default(), &mut problem.rng()).unwrap();
        let size = problem.values.abs().sum() + (problem.values.len() * problem.k) as f64;
        let claims = Claims { rounding: 1e-13, size, iterations: 20 };
        obeys(&config, &data, &start, [claims; 2])?;
    }

    /// With the posterior held fixed, learning the hyperparameters raises the bound: its divergence falls. [SKELLAM 8]
    /// [SKELLAM eq. 45] [SKELLAM eq. 46] [SKELLAM eq. 49]
    #[test]
    fn learning_raises_the_bound(problem in problem(), groups in 1..4usize) {
        let (f, n) = problem.values.shape();
        let mut seed = problem.seed;
        let mut group = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % groups
        };
        let mut map = |r, c| Groups::Each(DMatrix::from_fn(r, c, |_, _| group()));
        let sharing = Sharing { rows: f, components: problem.k, plus: map(f, problem.k), minus: map(f, problem.k), shape: map(problem.k, n), rate: map(problem.k, n) };
        let mut hyper = Hyperparameters { alpha: vec![0.7; groups], shape: vec![1.3; groups], rate: vec![0.2; groups] };
        let config = SnmfVb::new(problem.k).priors(hyper.prior(&sharing).unwrap());
        let data = problem.tensor();
        let start = config.init(&data, Init::default(), &mut problem.rng()).unwrap();
        let mut at = At::start(&config, &data, &start);
        for _ in 0..5 {
            at.step();
        }
        let fitted = at.state();
        let state = fitted.posterior();
        let statistics = Statistics::of(&state, &sharing).unwrap();
        let mut before = state.divergence(&hyper.prior(&sharing).unwrap()).unwrap();
        let first = before;
        for _ in 0..20 {
            hyper.improve(&sharing, &statistics).unwrap();
            let after = state.divergence(&hyper.prior(&sharing).unwrap()).unwrap();
            prop_assert!(after <= before + 1e-12 * (1.0 + first.abs()), "{before} {after}");
            before = after;
        }
        prop_assert!(before < first);
        // The bound itself moves by as much.
        let learnt = SnmfVb::new(problem.k).priors(hyper.prior(&sharing).unwrap());
        let learnt = learnt.bind(&data).unwrap().objective(fitted.parameters()).unwrap();
        let gain = learnt - at.objective();
        prop_assert!((gain - (first - before)).abs() <= 1e-11 * (first.abs() + problem.values.abs().sum()));
    }
}
