//! Zeros, hidden cells, tiny shapes, refused input: every case of the specification's section 11.

use nalgebra::{DMatrix, DVector, dmatrix};
use plca_fit::Algorithm;
use plca_fit::laws::check_failure;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{
    CpState, Ding, DingState, Entries, Hyperparameters, Learner, ParamError, Posterior, Prior,
    Rate, Replicates, Sharing, Signed, SignedCp, Snmf, SnmfError, SnmfInit, SnmfState, SnmfVb,
    Statistics, Stop, StopError, VbInit,
};

use crate::support::masked;

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

const METHODS: [Replicates; 3] = [Replicates::One, Replicates::Finite(2), Replicates::Limit];

fn data(m: DMatrix<f64>) -> Signed<f64> {
    Signed::from_matrix(m).unwrap()
}

fn start(plus: DMatrix<f64>, minus: DMatrix<f64>, h: DMatrix<f64>) -> SnmfInit<f64> {
    SnmfInit {
        atoms: Some((plus, minus)),
        activations: Some(h),
    }
}

/// A rate of 0 gives a product of 0, never NaN; a zero stays where the shape is 1 and comes back where it is larger.
#[test]
fn zeros() {
    let v = data(dmatrix![3.0, 0.0, 0.0; 0.0, -2.0, 0.0]);
    let init = start(
        dmatrix![0.5; 0.0],
        dmatrix![0.0; 0.5],
        dmatrix![1.0, 1.0, 1.0],
    );
    for m in METHODS {
        for (alpha, stays) in [(1.0, true), (1.5, false)] {
            let prior = Prior {
                plus: Entries::All(alpha),
                ..Prior::flat()
            };
            let config = Snmf::builder(1).replicates(m).prior(prior).build().unwrap();
            let em = config.on(&v).unwrap();
            let mut state = config.init(&v, &init, &mut rng(0)).unwrap();
            for _ in 0..3 {
                em.step(&mut state, false).unwrap();
            }
            assert!(em.objective(&state).unwrap().is_finite() || !stays, "{m:?}");
            assert_eq!(state.plus[(1, 0)] == 0.0, stays, "{m:?}");
            assert_eq!(state.minus[(0, 0)], 0.0);
            let all = state
                .plus
                .iter()
                .chain(&state.minus)
                .chain(&state.activations);
            assert!(all.into_iter().all(|x| x.is_finite()), "{m:?} {state:?}");
        }
    }
}

/// Both sides of a cell without data may become exact zeros in the limit, and stay.
#[test]
fn the_limit_makes_zeros() {
    let v = data(dmatrix![0.0, 0.0; 1.0, 2.0]);
    let config = Snmf::builder(1).build().unwrap();
    let em = config.on(&v).unwrap();
    let init = start(dmatrix![0.4; 0.4], dmatrix![0.0; 0.2], dmatrix![1.0, 1.0]);
    let mut state = config.init(&v, &init, &mut rng(0)).unwrap();
    for _ in 0..3 {
        em.step(&mut state, false).unwrap();
    }
    assert_eq!((state.plus[(0, 0)], state.minus[(0, 0)]), (0.0, 0.0));
    assert!(em.objective(&state).unwrap().is_finite());
}

/// A start that makes a datum impossible is refused with its first cell; EM would stay at `-inf`.
#[test]
fn impossible_starts() {
    let v = data(dmatrix![0.0, 1.0; -1.0, 1.0]);
    let config = Snmf::builder(1).build().unwrap();
    let refused = |plus, minus, h| {
        config
            .init(&v, &start(plus, minus, h), &mut rng(0))
            .unwrap_err()
    };
    let error = refused(dmatrix![0.5; 0.5], dmatrix![0.1; 0.0], dmatrix![1.0, 1.0]);
    let expected = SnmfError::Support {
        side: "minus",
        row: 1,
        column: 0,
        value: -1.0,
    };
    assert_eq!(error, expected);
    assert_eq!(
        error.to_string(),
        "initial support: the minus rate is 0 at [1, 0] where the data are -1"
    );
    let error = refused(dmatrix![0.5; 0.5], dmatrix![0.1; 0.1], dmatrix![1.0, 0.0]);
    assert!(matches!(
        error,
        SnmfError::Support {
            side: "plus",
            row: 0,
            column: 1,
            ..
        }
    ));
    let vb = SnmfVb::builder(1).build().unwrap();
    let means = SnmfState {
        plus: dmatrix![0.5; 0.0],
        minus: dmatrix![0.1; 0.1],
        activations: dmatrix![1.0, 1.0],
    };
    let refused = VbInit::Means(means).state(&vb.on(&v).unwrap(), &mut rng(0));
    assert!(matches!(
        refused,
        Err(SnmfError::Support {
            row: 1,
            column: 1,
            ..
        })
    ));
}

/// A component that explains nothing keeps its atom.
#[test]
fn empty_components_keep_their_atom() {
    let v = data(dmatrix![2.0, -1.0; 1.0, 3.0]);
    for m in METHODS {
        let config = Snmf::builder(2).replicates(m).build().unwrap();
        let em = config.on(&v).unwrap();
        let init = start(
            dmatrix![0.3, 0.1; 0.3, 0.2],
            dmatrix![0.2, 0.3; 0.2, 0.4],
            dmatrix![1.0, 2.0; 0.0, 0.0],
        );
        let mut state = config.init(&v, &init, &mut rng(0)).unwrap();
        let atom = (
            state.plus.column(1).clone_owned(),
            state.minus.column(1).clone_owned(),
        );
        em.step(&mut state, false).unwrap();
        assert_eq!(
            (state.plus.column(1), state.minus.column(1)),
            (atom.0.column(0), atom.1.column(0))
        );
        assert_eq!(state.activations.row(1).amax(), 0.0);
    }
}

/// A hidden column with a flat prior leaves its activations alone; without any observed cell the likelihood is 0.
#[test]
fn hidden_columns_and_nothing_at_all() {
    let nan = f64::NAN;
    let v = data(dmatrix![2.0, nan, -1.0; 1.0, nan, 3.0; nan, nan, nan]);
    for m in METHODS {
        let config = Snmf::builder(2).replicates(m).build().unwrap();
        let em = config.on(&v).unwrap();
        let mut state = config.init(&v, &SnmfInit::default(), &mut rng(0)).unwrap();
        let before = state.activations.column(1).clone_owned();
        for _ in 0..5 {
            em.step(&mut state, false).unwrap();
        }
        assert!((state.activations.column(1) - before).amax() < 1e-13);
        let nothing = data(DMatrix::from_element(3, 2, nan));
        let em = config.on(&nothing).unwrap();
        let mut state = config
            .init(&nothing, &SnmfInit::default(), &mut rng(0))
            .unwrap();
        assert_eq!(em.log_fit(&state), 0.0);
        let before = state.clone();
        em.step(&mut state, false).unwrap();
        assert!((&state.plus - before.plus).amax() < 1e-15);
        assert!((&state.activations - before.activations).amax() < 1e-14);
    }
}

/// Shapes whose `e^ψ` underflows: everything stays finite and the bound rises.
#[test]
fn tiny_shapes() {
    let v = data(dmatrix![2.0, 5.0, -1.0; 1.0, -4.0, 3.0]);
    for tiny in [1e-150, 1e-5, 1e-3, 0.02] {
        let prior = Prior {
            plus: Entries::All(tiny),
            minus: Entries::All(tiny),
            shape: Entries::All(tiny),
            rate: Entries::All(1e-3),
        };
        for m in METHODS {
            let config = SnmfVb::builder(2)
                .replicates(m)
                .prior(prior.clone())
                .build()
                .unwrap();
            let vb = config.on(&v).unwrap();
            for init in [VbInit::Random, VbInit::Prior { jitter: 1e-5 }] {
                let mut state = init.state(&vb, &mut rng(0)).unwrap();
                let mut before = vb.objective(&state).unwrap();
                for _ in 0..30 {
                    vb.step(&mut state, false).unwrap();
                    let after = vb.objective(&state).unwrap();
                    assert!(
                        after.is_finite() && after >= before - 1e-10 * before.abs(),
                        "{tiny} {m:?} {before} {after}"
                    );
                    before = after;
                }
            }
        }
    }
}

/// Counts to 2^53 are exact; what is not whole needs to be asked for, and the message names it.
#[test]
fn whole_data() {
    let large = 2f64.powi(53);
    let v = data(dmatrix![-large, large; 0.0, 3.0]);
    let one = Snmf::builder(1).replicates(Replicates::One);
    let config = one.clone().build().unwrap();
    let fit = config.fit(
        &v,
        &SnmfInit::default(),
        &Stop {
            max_iter: 5,
            ..Stop::default()
        },
        &mut rng(0),
    );
    assert!(fit.unwrap().objective.is_finite());
    let half = data(dmatrix![1.0, 2.0; 0.5, 2.5]);
    let refused = config.on(&half).unwrap_err();
    assert_eq!(
        refused,
        SnmfError::NotWhole {
            row: 1,
            column: 0,
            value: 0.5
        }
    );
    assert_eq!(
        refused.to_string(),
        "entry [1, 0] is 0.5: with finitely many replicates the data must be whole numbers"
    );
    assert!(one.real_data().build().unwrap().on(&half).is_ok());
    // Two draws average to halves.
    let two = Snmf::builder(1)
        .replicates(Replicates::Finite(2))
        .build()
        .unwrap();
    assert!(two.on(&half).is_ok());
    assert!(
        SnmfVb::builder(1)
            .replicates(Replicates::One)
            .build()
            .unwrap()
            .on(&half)
            .is_err()
    );
    // Hidden cells need not be whole.
    let seen = dmatrix![true, true; false, false];
    let hidden = masked(&dmatrix![1.0, 2.0; 0.5, f64::NAN], &seen);
    assert!(config.on(&hidden).is_ok());
}

/// Cells far below the largest datum have the ratios of double precision, where their squares are no numbers of single precision.
/// [SKELLAM 10]
#[test]
fn ratios_of_small_cells_in_single_precision() {
    for small in [1e-18, 3e-20, 1e-22, 1e-24, 1e-30] {
        // Rates around the datum, on either side, and a datum of 0.
        let values = dmatrix![1.0, 0.0, 0.0; 0.0, small, -3.0 * small; 0.0, 0.0, 2.0 * small];
        let seen = DMatrix::from_fn(3, 3, |i, j| (i == 0) == (j == 0));
        let plus = dmatrix![0.5, 0.0; 0.0, 0.4; 0.0, 0.1];
        let minus = dmatrix![0.5, 0.0; 0.0, 0.2; 0.0, 0.3];
        let h = dmatrix![2.0, 0.0, 0.0; 0.0, 2.0 * small, 5.0 * small];
        let config = Snmf::builder(2).freeze_atoms().build().unwrap();
        let v = masked(&values, &seen);
        let narrow = |m: &DMatrix<f64>| m.map(|x| x as f32);
        let single = masked(&narrow(&values), &seen);
        let mut want = SnmfState {
            plus,
            minus,
            activations: h,
        };
        let mut got = SnmfState {
            plus: narrow(&want.plus),
            minus: narrow(&want.minus),
            activations: narrow(&want.activations),
        };
        config.on(&v).unwrap().step(&mut want, false).unwrap();
        config.on(&single).unwrap().step(&mut got, false).unwrap();
        for (&got, &want) in got.activations.iter().zip(&want.activations) {
            let error = (f64::from(got) - want).abs();
            assert!(error <= 1e-6 * want, "{small}: {got} {want}");
        }
    }
}

#[test]
fn bad_data() {
    for bad in [f64::INFINITY, f64::NEG_INFINITY] {
        assert!(Signed::from_matrix(dmatrix![1.0, bad]).is_err());
    }
    let huge = data(dmatrix![1.0, -1e200]);
    let refused = Snmf::builder(1).build().unwrap().on(&huge).unwrap_err();
    assert!(matches!(
        refused,
        SnmfError::TooLarge {
            row: 0,
            column: 1,
            ..
        }
    ));
    // The limit has no scale of its own.
    for size in [1e-140, 1e140] {
        let values = dmatrix![size, 2.0 * size; -size, -2.0 * size];
        let stop = Stop {
            tol: 0.0,
            ..Stop::default()
        };
        let config = Snmf::builder(1).build().unwrap();
        let fit = config.fit(
            &data(values.clone()),
            &SnmfInit::default(),
            &stop,
            &mut rng(0),
        );
        let error = fit.unwrap().state.reconstruct() - values;
        assert!(error.amax() < 1e-2 * size, "{size}");
    }
}

#[test]
fn bad_settings() {
    assert_eq!(Snmf::builder(0).build(), Err(ParamError::NoComponents));
    assert_eq!(SnmfVb::builder(0).build(), Err(ParamError::NoComponents));
    assert_eq!(
        Snmf::builder(1).replicates(Replicates::Finite(0)).build(),
        Err(ParamError::NoReplicates)
    );
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            Snmf::builder(1).floor(bad).build(),
            Err(ParamError::Floor(_))
        ));
    }
    let with = |change: &dyn Fn(&mut Prior)| {
        let mut prior = Prior {
            rate: Entries::All(1.0),
            ..Prior::flat()
        };
        change(&mut prior);
        (
            Snmf::builder(1).prior(prior.clone()).build(),
            SnmfVb::builder(1).prior(prior).build(),
        )
    };
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for change in [
            &(|p: &mut Prior| p.plus = Entries::All(bad)) as &dyn Fn(&mut Prior),
            &|p| p.minus = Entries::Each(dmatrix![1.0; bad]),
            &|p| p.shape = Entries::All(bad),
        ] {
            let (em, vb) = with(change);
            assert!(matches!(em, Err(ParamError::Prior { .. })) && em.is_err() == vb.is_err());
        }
        let (em, vb) = with(&|p| p.rate = Entries::All(bad));
        // A rate of 0 is for EM alone.
        assert!(em.is_ok() == (bad == 0.0) && vb.is_err());
    }
    let (em, _) = with(&|p| p.minus = Entries::Each(dmatrix![1.0; -2.0]));
    let message = em.unwrap_err().to_string();
    assert_eq!(
        message,
        "prior `minus` is -2 at (1, 0), not a finite number > 0"
    );
    let v = data(dmatrix![1.0, 2.0]);
    let (em, vb) = with(&|p| p.shape = Entries::Each(DMatrix::from_element(2, 2, 1.0)));
    assert!(matches!(
        em.unwrap().on(&v),
        Err(SnmfError::Shape { block: "shape", .. })
    ));
    assert!(vb.unwrap().on(&v).is_err());
}

#[test]
fn bad_starts() {
    let v = data(dmatrix![1.0, 2.0; 3.0, -4.0]);
    let config = Snmf::builder(1).build().unwrap();
    let good = || (dmatrix![0.2; 0.3], dmatrix![0.2; 0.3], dmatrix![1.0, 1.0]);
    let refused = |init: SnmfInit<f64>| config.init(&v, &init, &mut rng(0)).unwrap_err();
    for bad in [-0.1, f64::NAN, f64::INFINITY] {
        let (p, m, mut h) = good();
        h[(0, 1)] = bad;
        let error = refused(start(p, m, h));
        assert!(matches!(
            error,
            SnmfError::Value {
                block: "activations",
                row: 0,
                column: 1,
                ..
            }
        ));
        let (mut p, m, h) = good();
        p[(1, 0)] = bad;
        assert!(matches!(
            refused(start(p, m, h)),
            SnmfError::Value {
                block: "plus",
                row: 1,
                ..
            }
        ));
    }
    let (_, _, h) = good();
    assert_eq!(
        refused(start(dmatrix![0.0; 0.0], dmatrix![0.0; 0.0], h.clone())),
        SnmfError::ZeroAtom { component: 0 }
    );
    let error = refused(start(dmatrix![1.0], dmatrix![1.0], h));
    assert!(matches!(
        error,
        SnmfError::Shape {
            block: "plus",
            got: (1, 1),
            expected: (2, 1)
        }
    ));
    let frozen = Snmf::builder(1).freeze_atoms().build().unwrap();
    let error = frozen
        .init(&v, &SnmfInit::default(), &mut rng(0))
        .unwrap_err();
    assert_eq!(error, SnmfError::FixedWithoutValue { block: "atoms" });
    let frozen = Snmf::builder(1).freeze_activations().build().unwrap();
    assert!(frozen.init(&v, &SnmfInit::default(), &mut rng(0)).is_err());
    let vb = SnmfVb::builder(1).freeze_atoms().build().unwrap();
    assert!(
        VbInit::Random
            .state(&vb.on(&v).unwrap(), &mut rng(0))
            .is_err()
    );
    let stop = Stop {
        tol: -1.0,
        ..Stop::default()
    };
    let error = config
        .fit(&v, &SnmfInit::default(), &stop, &mut rng(0))
        .unwrap_err();
    assert_eq!(error, SnmfError::Stop(StopError::Tolerance(-1.0)));
    let vb = SnmfVb::builder(1).build().unwrap();
    let bound = vb.on(&v).unwrap();
    for bad in [0.0, -1.0, f64::NAN] {
        let one = DMatrix::from_element(1, 2, 1.0);
        let atoms = dmatrix![1.0; bad];
        let posterior = Posterior {
            plus: atoms,
            minus: dmatrix![1.0; 1.0],
            shape: one.clone(),
            rate: one,
        };
        assert!(
            VbInit::Posterior(posterior)
                .state(&bound, &mut rng(0))
                .is_err()
        );
        assert!(
            bad == 0.0
                || VbInit::Prior { jitter: bad }
                    .state(&bound, &mut rng(0))
                    .is_err()
        );
    }
}

/// New data under fixed atoms: the atoms stay to the bit, for both methods.
#[test]
fn fixed_blocks_stay() {
    let v = data(dmatrix![1.0, 2.0, 5.0; 3.0, -4.0, 1.0]);
    let stop = Stop {
        max_iter: 20,
        ..Stop::default()
    };
    let atoms = (dmatrix![0.2, 0.1; 0.3, 0.4], dmatrix![0.2, 0.3; 0.3, 0.2]);
    let init = SnmfInit {
        atoms: Some(atoms),
        activations: None,
    };
    let config = Snmf::builder(2).freeze_atoms().build().unwrap();
    let first = config.init(&v, &init, &mut rng(0)).unwrap();
    let fit = config.fit(&v, &init, &stop, &mut rng(0)).unwrap();
    assert_eq!(
        (&fit.state.plus, &fit.state.minus),
        (&first.plus, &first.minus)
    );
    assert_ne!(fit.state.activations, first.activations);
    let h = SnmfInit {
        atoms: None,
        activations: Some(first.activations.clone()),
    };
    let config = Snmf::builder(2).freeze_activations().build().unwrap();
    let fit = config.fit(&v, &h, &stop, &mut rng(0)).unwrap();
    assert_eq!(fit.state.activations, first.activations);
    let learnt = SnmfVb::builder(2)
        .build()
        .unwrap()
        .fit(&v, &VbInit::Random, &stop, &mut rng(0))
        .unwrap()
        .state;
    let new = data(dmatrix![4.0; -2.0]);
    let vb = SnmfVb::builder(2).freeze_atoms().build().unwrap();
    let init = VbInit::Atoms {
        plus: learnt.plus.clone(),
        minus: learnt.minus.clone(),
    };
    let fit = vb.fit(&new, &init, &stop, &mut rng(0)).unwrap();
    assert_eq!(
        (fit.state.plus, fit.state.minus),
        (learnt.plus.clone(), learnt.minus.clone())
    );
    assert_eq!(fit.state.shape.shape(), (2, 1));
    let vb = SnmfVb::builder(2).freeze_activations().build().unwrap();
    assert!(vb.fit(&v, &VbInit::Random, &stop, &mut rng(0)).is_err());
    let flat = DMatrix::from_element(2, 2, 1.0);
    let init = VbInit::Posterior(Posterior {
        plus: flat.clone(),
        minus: flat.clone(),
        ..learnt.clone()
    });
    let fit = vb.fit(&v, &init, &stop, &mut rng(0)).unwrap();
    assert_eq!(
        (fit.state.shape, fit.state.rate),
        (learnt.shape, learnt.rate)
    );
    assert_ne!(fit.state.plus, flat);
}

/// Groups without entries keep their value; statistics without spread stop at the cap; bad ones change nothing.
#[test]
fn hyperparameters_at_the_border() {
    let sharing = Sharing::all(2, 1);
    let start = Hyperparameters {
        alpha: vec![1.0, 7.0],
        shape: vec![1.0, 7.0],
        rate: vec![1.0, 7.0],
    };
    let factors = |h: f64| SnmfState {
        plus: dmatrix![0.25; 0.25],
        minus: dmatrix![0.25; 0.25],
        activations: dmatrix![h, h],
    };
    let mut learner = Learner::new(sharing.clone(), start.clone(), Rate::Average)
        .unwrap()
        .iterations(2000);
    learner.learn_known(&factors(2.0)).unwrap();
    let learnt = learner.hyperparameters();
    assert_eq!(
        (learnt.alpha[1], learnt.shape[1], learnt.rate[1]),
        (7.0, 7.0, 7.0)
    );
    // No spread at all: the shapes grow, and with them the rate, whose quotient is the mean.
    assert!(learnt.shape[0] > 100.0 && learnt.shape[0] <= 1e12 && learnt.alpha[0] > 100.0);
    assert!((learnt.shape[0] / learnt.rate[0] - 2.0).abs() < 1e-9);
    let mut zero = Statistics::of_known(&factors(2.0), &sharing).unwrap();
    zero.activations[0] = 0.0;
    let mut hyper = start.clone();
    hyper.improve(&sharing, &zero).unwrap();
    assert_eq!(hyper.rate[0], 1e12);
    let before = learner.clone();
    assert!(learner.learn_known(&factors(0.0)).is_err());
    assert_eq!(learner, before);
    for rate in [0.0, 1.5, f64::NAN] {
        assert!(Learner::new(sharing.clone(), start.clone(), Rate::Constant(rate)).is_err());
    }
    let bad = Hyperparameters {
        alpha: vec![0.0, 1.0],
        ..start.clone()
    };
    assert!(Learner::new(sharing.clone(), bad, Rate::Average).is_err());
    let short = Hyperparameters {
        rate: vec![],
        ..start
    };
    assert!(matches!(
        short.prior(&sharing),
        Err(SnmfError::Hyperparameters {
            block: "rate",
            got: 0,
            needed: 1,
        })
    ));
}

/// A run cut in two is the run; states and learners survive being written down.
#[test]
fn resumption_and_serialisation() {
    let v = data(DMatrix::from_fn(5, 12, |i, j| {
        ((i * 5 + j * 3) % 7) as f64 - 2.0
    }));
    let config = Snmf::builder(2).build().unwrap();
    let em = config.on(&v).unwrap();
    let first = config.init(&v, &SnmfInit::default(), &mut rng(0)).unwrap();
    let stop = |max_iter| Stop {
        max_iter,
        tol: 0.0,
        ..Stop::default()
    };
    let whole = skellam_snmf::run(&em, first.clone(), &stop(20), ()).unwrap();
    let half = skellam_snmf::run(&em, first, &stop(8), ()).unwrap();
    let text = serde_json::to_string(&half.state).unwrap();
    let state: SnmfState<f64> = serde_json::from_str(&text).unwrap();
    assert_eq!(state, half.state);
    let rest = skellam_snmf::run(&em, state, &stop(12), ()).unwrap();
    assert_eq!((rest.state, rest.objective), (whole.state, whole.objective));
    let hyper = Hyperparameters {
        alpha: vec![0.3],
        shape: vec![0.7],
        rate: vec![0.1],
    };
    let mut learner = Learner::new(Sharing::all(5, 2), hyper, Rate::Constant(0.3)).unwrap();
    let vb = SnmfVb::builder(2)
        .prior(learner.prior().unwrap())
        .build()
        .unwrap();
    let posterior = vb
        .fit(&v, &VbInit::Random, &stop(10), &mut rng(0))
        .unwrap()
        .state;
    learner.learn(&posterior).unwrap();
    let text = serde_json::to_string(&(&learner, &posterior)).unwrap();
    let (mut again, posterior): (Learner, Posterior<f64>) = serde_json::from_str(&text).unwrap();
    learner.learn(&posterior).unwrap();
    again.learn(&posterior).unwrap();
    assert_eq!(again, learner);
}

/// Blocks that do not belong together are refused, not cut.
#[test]
fn blocks_of_a_posterior_belong_together() {
    let hyper = Hyperparameters {
        alpha: vec![1.0],
        shape: vec![2.0],
        rate: vec![0.5],
    };
    let sharing = Sharing::all(2, 1);
    let good = Posterior {
        plus: DMatrix::from_element(2, 1, 1.0),
        minus: DMatrix::from_element(2, 1, 2.0),
        shape: DMatrix::from_element(1, 3, 3.0),
        rate: DMatrix::from_element(1, 3, 4.0),
    };
    let prior = hyper.prior(&sharing).unwrap();
    Statistics::of(&good, &sharing).unwrap();
    good.divergence(&prior).unwrap();
    let other = |rows, columns| DMatrix::from_element(rows, columns, 1.0);
    let shape = |block, got, expected| SnmfError::Shape {
        block,
        got,
        expected,
    };
    let cases = [
        (
            Posterior {
                minus: other(1, 1),
                ..good.clone()
            },
            shape("minus", (1, 1), (2, 1)),
        ),
        (
            Posterior {
                rate: other(1, 2),
                ..good.clone()
            },
            shape("rate", (1, 2), (1, 3)),
        ),
        (
            Posterior {
                plus: other(2, 2),
                minus: other(2, 2),
                ..good.clone()
            },
            shape("shape", (1, 3), (2, 3)),
        ),
    ];
    for (bad, refusal) in cases {
        let refused = Statistics::of(&bad, &sharing);
        assert_eq!(refused, Err(refusal.clone()));
        assert_eq!(bad.divergence(&prior), Err(refusal));
    }
    let known = SnmfState {
        plus: other(2, 1),
        minus: other(1, 1),
        activations: other(1, 3),
    };
    assert_eq!(
        Statistics::of_known(&known, &sharing),
        Err(shape("minus", (1, 1), (2, 1)))
    );
}

/// A step that fails leaves its state as it was, whatever it had computed of it.
#[test]
fn failing_steps_change_nothing() {
    // The atoms have their update when the activations leave the numbers.
    let prior = Prior {
        shape: Entries::All(1e300),
        ..Prior::flat()
    };
    let single = Signed::from_matrix(dmatrix![2.0f32, -1.0; 3.0, 1.0]).unwrap();
    let config = Snmf::builder(1).prior(prior).build().unwrap();
    let start = config.init(&single, &SnmfInit::default(), &mut rng(0));
    check_failure(&config.on(&single).unwrap(), &start.unwrap()).unwrap();
    // The updated H is finite, and H Hᵀ is not.
    let v = dmatrix![2e10, 3e10];
    let state = DingState {
        w: dmatrix![1e-150],
        h: dmatrix![1e160, 1e160],
    };
    let ding = Ding::new(1).unwrap();
    check_failure(&ding.on(&v).unwrap(), &state).unwrap();
}

/// States with public fields: one of another size than the data is an error of every step and objective, and stays as it was.
#[test]
fn states_of_other_sizes_are_refused() {
    fn refuses<A: Algorithm<Error = SnmfError>>(steps: &A, state: A::State)
    where
        A::State: Clone + PartialEq + std::fmt::Debug,
    {
        let is_shape = |e: &SnmfError| matches!(e, SnmfError::Shape { .. });
        assert!(steps.objective(&state).is_err_and(|e| is_shape(&e)));
        let mut after = state.clone();
        assert!(steps.step(&mut after, true).is_err_and(|e| is_shape(&e)));
        assert_eq!(after, state);
    }
    let data = Signed::from_matrix(dmatrix![2.0, 4.0; -1.0, -2.0]).unwrap();
    let block = |rows, columns| DMatrix::from_element(rows, columns, 0.25);
    let (em, vb) = (Snmf::builder(1).build(), SnmfVb::builder(1).build());
    let (em, vb) = (em.unwrap(), vb.unwrap());
    let cp = SignedCp::new(1, Replicates::Limit).unwrap();
    // (rows of plus, rows of minus, components, columns)
    for (f, g, k, n) in [
        (3, 3, 1, 2),
        (2, 3, 1, 2),
        (2, 2, 2, 2),
        (2, 2, 1, 3),
        (2, 2, 0, 2),
    ] {
        let (plus, minus, activations) = (block(f, k), block(g, k), block(k, n));
        let state = SnmfState {
            plus: plus.clone(),
            minus: minus.clone(),
            activations,
        };
        refuses(&em.on(&data).unwrap(), state);
        let (shape, rate) = (block(k, n), block(k, n));
        let posterior = Posterior {
            plus: plus.clone(),
            minus: minus.clone(),
            shape,
            rate,
        };
        refuses(&vb.on(&data).unwrap(), posterior);
        let weights = DVector::from_element(k, 8.0);
        let factors = vec![block(n, k)];
        refuses(
            &cp.on(&data, &[2]).unwrap(),
            CpState {
                plus,
                minus,
                weights,
                factors,
            },
        );
    }
}
