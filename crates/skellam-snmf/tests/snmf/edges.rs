//! Zeros, hidden cells, tiny shapes, refused input: every case of the specification's section 11.

use nalgebra::{DMatrix, dmatrix};
use plca_fit::{FitError, Init, Model, Settings, Solver, State, Stop, StopError, seed as rng};
use plca_tensor::arrange::Signed;
use plca_tensor::{DenseTensor, Real};
use skellam_snmf::{
    Entries, Factors, Hyperparameters, Learner, Posterior, Prior, Rate, Replicates, Sharing, Snmf,
    SnmfVb, SnmfVbState, Statistics,
};

use crate::support::{At, masked, stacked, tensor};

const METHODS: [Replicates; 3] = [Replicates::One, Replicates::Finite(2), Replicates::Limit];

fn start<T: Real>(plus: &DMatrix<T>, minus: &DMatrix<T>, h: DMatrix<T>) -> Init<T> {
    Init::default()
        .block("atoms", stacked(plus, minus))
        .block("activations", h)
}

fn snmf(k: usize) -> Snmf {
    Snmf::new(k).replicates(Replicates::Limit)
}

/// A rate of 0 gives a product of 0, never NaN; a zero stays where the shape is 1 and comes back where it is larger.
#[test]
fn zeros() {
    let v = tensor::<f64>(&dmatrix![3.0, 0.0, 0.0; 0.0, -2.0, 0.0]);
    let h = dmatrix![1.0, 1.0, 1.0];
    let init = start(&dmatrix![0.5; 0.0], &dmatrix![0.0; 0.5], h);
    for m in METHODS {
        for (alpha, stays) in [(1.0, true), (1.5, false)] {
            let prior = Prior {
                plus: Entries::All(alpha),
                ..Prior::flat()
            };
            let config = snmf(1).replicates(m).priors(prior);
            let mut at = At::start(&config, &v, init.clone());
            for _ in 0..3 {
                at.step();
            }
            assert!(at.objective().is_finite() || !stays, "{m:?}");
            let state = at.state().to_factors();
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
    let v = tensor(&dmatrix![0.0, 0.0; 1.0, 2.0]);
    let config = snmf(1);
    let init = start(&dmatrix![0.4; 0.4], &dmatrix![0.0; 0.2], dmatrix![1.0, 1.0]);
    let mut at = At::start(&config, &v, init);
    for _ in 0..3 {
        at.step();
    }
    let atoms = at.state().atoms().clone();
    assert_eq!((atoms[0], atoms[2]), (0.0, 0.0));
    assert!(at.objective().is_finite());
}

/// A start that makes a datum impossible is refused with its first cell; EM would stay at `-inf`.
#[test]
fn impossible_starts() {
    let v = tensor(&dmatrix![0.0, 1.0; -1.0, 1.0]);
    let config = snmf(1);
    let refused = |plus, minus, h| {
        let init = start(&plus, &minus, h);
        config.init(&v, init, &mut rng(0)).unwrap_err()
    };
    let support = |index: [usize; 2], value| FitError::Support {
        index: index.to_vec(),
        value,
    };
    let error = refused(dmatrix![0.5; 0.5], dmatrix![0.1; 0.0], dmatrix![1.0, 1.0]);
    assert_eq!(error, support([1, 0], -1.0));
    let error = refused(dmatrix![0.5; 0.5], dmatrix![0.1; 0.1], dmatrix![1.0, 0.0]);
    assert_eq!(error, support([0, 1], 1.0));
}

/// A component that explains nothing keeps its atom.
#[test]
fn empty_components_keep_their_atom() {
    let v = tensor(&dmatrix![2.0, -1.0; 1.0, 3.0]);
    for m in METHODS {
        let config = snmf(2).replicates(m);
        let init = start(
            &dmatrix![0.3, 0.1; 0.3, 0.2],
            &dmatrix![0.2, 0.3; 0.2, 0.4],
            dmatrix![1.0, 2.0; 0.0, 0.0],
        );
        let mut at = At::start(&config, &v, init);
        let before = at.state();
        at.step();
        let after = at.state();
        assert_eq!(after.atoms().column(1), before.atoms().column(1));
        assert_eq!(after.activations().row(1).amax(), 0.0);
    }
}

/// A hidden column with a flat prior leaves its activations alone; without any observed cell the likelihood is 0.
#[test]
fn hidden_columns_and_nothing_at_all() {
    let nan = f64::NAN;
    let v = tensor(&dmatrix![2.0, nan, -1.0; 1.0, nan, 3.0; nan, nan, nan]);
    for m in METHODS {
        let config = snmf(2).replicates(m);
        let mut at = At::start(&config, &v, Init::default());
        let before = at.state();
        for _ in 0..5 {
            at.step();
        }
        let after = at.state();
        let moved = after.activations().column(1) - before.activations().column(1);
        assert!(moved.amax() < 1e-13);
        let nothing = tensor(&DMatrix::from_element(3, 2, nan));
        let mut at = At::start(&config, &nothing, Init::default());
        assert_eq!((at.fit(), at.objective()), (0.0, 0.0));
        let before = at.state();
        at.step();
        let after = at.state();
        assert!((after.atoms() - before.atoms()).amax() < 1e-15);
        assert!((after.activations() - before.activations()).amax() < 1e-14);
    }
}

/// Shapes whose `e^ψ` underflows: everything stays finite and the bound rises.
#[test]
fn tiny_shapes() {
    let v = tensor(&dmatrix![2.0, 5.0, -1.0; 1.0, -4.0, 3.0]);
    for tiny in [1e-150, 1e-5, 1e-3, 0.02] {
        let prior = Prior {
            plus: Entries::All(tiny),
            minus: Entries::All(tiny),
            shape: Entries::All(tiny),
            rate: Entries::All(1e-3),
        };
        for m in METHODS {
            let config = SnmfVb::new(2).replicates(m).priors(prior.clone());
            let drawn = config.init(&v, Init::default(), &mut rng(0)).unwrap();
            let near = config.at_prior(&v, 1e-5, &mut rng(0)).unwrap();
            for init in [drawn, near] {
                let mut at = At::start(&config, &v, &init);
                let mut before = at.objective();
                for _ in 0..30 {
                    at.step();
                    let after = at.objective();
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
    let v = tensor(&dmatrix![-large, large; 0.0, 3.0]);
    let one = || snmf(1).replicates(Replicates::One);
    let config = one();
    let run = config.on(&v).unwrap().stop(Stop::default().max_iter(5));
    let fit = run.run(Init::default(), &mut rng(0)).unwrap();
    assert!(fit.objective().is_finite());
    let half = tensor(&dmatrix![1.0, 2.0; 0.5, 2.5]);
    let refused = config.on(&half).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "entry [1, 0] is 0.5, expected a whole number, because the number of replicates is finite"
    );
    assert!(one().real_data(true).on(&half).is_ok());
    // Two draws average to halves.
    let two = snmf(1).replicates(Replicates::Finite(2));
    assert!(two.on(&half).is_ok());
    let vb = SnmfVb::new(1).replicates(Replicates::One);
    assert!(vb.on(&half).is_err());
    // Hidden cells need not be whole.
    let seen = dmatrix![true, true; false, false];
    let hidden = masked(&dmatrix![1.0, 2.0; 0.5, f64::NAN], &seen);
    assert!(config.on(&hidden).is_ok());
}

/// Cells far below the largest datum have the ratios of double precision, where their squares are no numbers of single precision.
/// [SKELLAM 10]
#[test]
fn ratios_of_small_cells_in_single_precision() {
    fn stepped<T: Real>(
        data: &DenseTensor<T>,
        atoms: [&DMatrix<T>; 2],
        h: DMatrix<T>,
    ) -> DMatrix<T> {
        let config = Snmf::new(2).replicates(Replicates::Limit).freeze("atoms");
        let mut at = At::start(&config, data, start(atoms[0], atoms[1], h));
        at.step();
        at.state().activations().clone()
    }
    for small in [1e-18, 3e-20, 1e-22, 1e-24, 1e-30] {
        // Rates around the datum, on either side, and a datum of 0.
        let values = dmatrix![1.0, 0.0, 0.0; 0.0, small, -3.0 * small; 0.0, 0.0, 2.0 * small];
        let seen = DMatrix::from_fn(3, 3, |i, j| (i == 0) == (j == 0));
        let plus = dmatrix![0.5, 0.0; 0.0, 0.4; 0.0, 0.1];
        let minus = dmatrix![0.5, 0.0; 0.0, 0.2; 0.0, 0.3];
        let h = dmatrix![2.0, 0.0, 0.0; 0.0, 2.0 * small, 5.0 * small];
        let narrow = |m: &DMatrix<f64>| m.map(|x| x as f32);
        let single = masked(&narrow(&values), &seen);
        let got = stepped(&single, [&narrow(&plus), &narrow(&minus)], narrow(&h));
        let want = stepped(&masked(&values, &seen), [&plus, &minus], h);
        for (&got, &want) in got.iter().zip(&want) {
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
    let config = snmf(1);
    let huge = tensor(&dmatrix![1.0, -1e200]);
    let counts = snmf(1).replicates(Replicates::One);
    let refused = counts.on(&huge).unwrap_err();
    assert!(matches!(&refused, FitError::Entry { index, .. } if index == &[0, 1]));
    // The limit has no scale of its own.
    for size in [1e-140, 1e140] {
        let values = dmatrix![size, 2.0 * size; -size, -2.0 * size];
        let data = tensor(&values);
        let run = config.on(&data).unwrap().stop(Stop::default().tol(None));
        let fit = run.run(Init::default(), &mut rng(0)).unwrap();
        let state = fit.state();
        let error = state.signed_atoms() * state.activations() - values;
        assert!(error.amax() < 1e-2 * size, "{size}");
    }
}

#[test]
fn bad_settings() {
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        let refused = snmf(1).floor(bad).check().unwrap_err();
        assert!(matches!(refused, FitError::Setting { name: "floor", .. }));
    }
    let with = |change: &dyn Fn(&mut Prior)| {
        let mut prior = Prior {
            rate: Entries::All(1.0),
            ..Prior::flat()
        };
        change(&mut prior);
        (snmf(1).priors(prior.clone()), SnmfVb::new(1).priors(prior))
    };
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for change in [
            &(|p: &mut Prior| p.plus = Entries::All(bad)) as &dyn Fn(&mut Prior),
            &|p| p.minus = Entries::Each(dmatrix![1.0; bad]),
            &|p| p.shape = Entries::All(bad),
        ] {
            let (em, vb) = with(change);
            assert!(matches!(em.check(), Err(FitError::Range { .. })) && vb.check().is_err());
        }
        let (em, vb) = with(&|p| p.rate = Entries::All(bad));
        // A rate of 0 is for EM alone.
        assert!(em.check().is_ok() == (bad == 0.0) && vb.check().is_err());
    }
    let v = tensor(&dmatrix![1.0, 2.0]);
    let (em, vb) = with(&|p| p.shape = Entries::Each(DMatrix::from_element(2, 2, 1.0)));
    em.check().and(vb.check()).unwrap();
    assert!(matches!(
        em.on(&v),
        Err(FitError::Shape { got: (2, 2), .. })
    ));
    assert!(vb.on(&v).is_err());
}

#[test]
fn bad_starts() {
    let v = tensor(&dmatrix![1.0, 2.0; 3.0, -4.0]);
    let config = snmf(1);
    let good = || (dmatrix![0.2; 0.3], dmatrix![0.2; 0.3], dmatrix![1.0, 1.0]);
    let refused = |init| config.init(&v, init, &mut rng(0)).unwrap_err();
    let names = |error: &FitError, name: &str, at: (usize, usize)| matches!(error, FitError::Value { block, row, column, .. } if block == name && (*row, *column) == at);
    for bad in [-0.1, f64::NAN, f64::INFINITY] {
        let (p, m, mut h) = good();
        h[(0, 1)] = bad;
        assert!(names(&refused(start(&p, &m, h)), "activations", (0, 1)));
        let (p, mut m, h) = good();
        m[(1, 0)] = bad;
        assert!(names(&refused(start(&p, &m, h)), "atoms", (3, 0)));
    }
    let (_, _, h) = good();
    let nothing = dmatrix![0.0; 0.0];
    let empty = FitError::Empty {
        block: "atoms".into(),
        column: 0,
    };
    assert_eq!(refused(start(&nothing, &nothing, h.clone())), empty);
    let one = dmatrix![1.0];
    let shape = FitError::Shape {
        block: "atoms".into(),
        got: (2, 1),
        expected: (4, 1),
    };
    assert_eq!(refused(start(&one, &one, h)), shape);
    for name in ["atoms", "activations"] {
        let frozen = snmf(1).freeze(name);
        let error = frozen.init(&v, Init::default(), &mut rng(0)).unwrap_err();
        assert_eq!(error, FitError::NotGiven { block: name.into() });
    }
    let vb = SnmfVb::new(1).freeze("atoms_shape");
    assert!(vb.init(&v, Init::default(), &mut rng(0)).is_err());
    let run = config.on(&v).unwrap().stop(Stop::default().tol(-1.0));
    let error = run.run(Init::default(), &mut rng(0)).unwrap_err();
    let expected = StopError::Tolerance {
        name: "tol",
        value: -1.0,
    };
    assert_eq!(error, FitError::Stop(expected));
    for bad in [0.0, -1.0, f64::NAN] {
        let one = DMatrix::from_element(1, 2, 1.0);
        let posterior = Posterior {
            plus: dmatrix![1.0; bad],
            minus: dmatrix![1.0; 1.0],
            shape: one.clone(),
            rate: one,
        };
        let error = SnmfVbState::new(posterior).unwrap_err();
        assert!(matches!(error, FitError::Range { row: 1, .. }), "{error}");
    }
}

/// New data under fixed atoms: the atoms stay to the bit, for both methods.
#[test]
fn fixed_blocks_stay() {
    let v = tensor(&dmatrix![1.0, 2.0, 5.0; 3.0, -4.0, 1.0]);
    let stop = Stop::default().max_iter(20);
    let atoms = stacked(&dmatrix![0.2, 0.1; 0.3, 0.4], &dmatrix![0.2, 0.3; 0.3, 0.2]);
    let init = Init::default().block("atoms", atoms);
    let config = snmf(2).freeze("atoms");
    let first = config.init(&v, init.clone(), &mut rng(0)).unwrap();
    let run = config.on(&v).unwrap().stop(stop.clone());
    let fit = run.run(init, &mut rng(0)).unwrap();
    assert_eq!(fit.state().atoms(), first.atoms());
    assert_ne!(fit.state().activations(), first.activations());
    let h = Init::default().block("activations", first.activations().clone());
    let config = snmf(2).freeze("activations");
    let run = config.on(&v).unwrap().stop(stop.clone());
    let fit = run.run(h, &mut rng(0)).unwrap();
    assert_eq!(fit.state().activations(), first.activations());

    let vb = SnmfVb::new(2);
    let run = vb.on(&v).unwrap().stop(stop.clone());
    let learnt = run.run(Init::default(), &mut rng(0)).unwrap();
    let learnt = learnt.into_state();
    let new = tensor(&dmatrix![4.0; -2.0]);
    let vb = SnmfVb::new(2).freeze("atoms_shape");
    let init = Init::default().block("atoms_shape", learnt.atoms_shape().clone());
    let run = vb.on(&new).unwrap().stop(stop.clone());
    let fit = run.run(init, &mut rng(0)).unwrap();
    assert_eq!(fit.state().atoms_shape(), learnt.atoms_shape());
    assert_eq!(fit.state().activations_shape().shape(), (2, 1));
    let vb = SnmfVb::new(2).freeze("activations_shape");
    let vb = vb.freeze("activations_rate");
    let flat = DMatrix::from_element(4, 2, 1.0);
    let init = Init::from(&learnt).block("atoms_shape", flat.clone());
    let run = vb.on(&v).unwrap().stop(stop);
    let fit = run.run(init, &mut rng(0)).unwrap();
    let state = fit.state();
    assert_eq!(state.activations_shape(), learnt.activations_shape());
    assert_eq!(state.activations_rate(), learnt.activations_rate());
    assert_ne!(state.atoms_shape(), &flat);
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
    let factors = |h: f64| Factors {
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
        Err(FitError::Conflict { what }) if what.starts_with("0 of `rate` given")
    ));
}

/// Learners survive being written down.
#[test]
fn learners_are_written_down() {
    let v = tensor(&DMatrix::from_fn(5, 12, |i, j| {
        ((i * 5 + j * 3) % 7) as f64 - 2.0
    }));
    let hyper = Hyperparameters {
        alpha: vec![0.3],
        shape: vec![0.7],
        rate: vec![0.1],
    };
    let mut learner = Learner::new(Sharing::all(5, 2), hyper, Rate::Constant(0.3)).unwrap();
    let vb = SnmfVb::new(2).priors(learner.prior().unwrap());
    let run = vb.on(&v).unwrap().solver(Solver::Em);
    let run = run.stop(Stop::default().max_iter(10));
    let fit = run.run(Init::default(), &mut rng(0)).unwrap();
    let posterior = fit.state().posterior();
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
    let shape = |block: &str, got, expected| FitError::Shape {
        block: block.into(),
        got,
        expected,
    };
    #[rustfmt::skip]
    let cases = [
        (Posterior { minus: other(1, 1),..good.clone() }, shape("minus", (1, 1), (2, 1))),
        (Posterior { rate: other(1, 2),..good.clone() }, shape("rate", (1, 2), (1, 3))),
        (Posterior { plus: other(2, 2), minus: other(2, 2),..good.clone() }, shape("shape", (1, 3), (2, 3))),
    ];
    for (bad, refusal) in cases {
        let refused = Statistics::of(&bad, &sharing);
        assert_eq!(refused, Err(refusal.clone()));
        assert_eq!(bad.divergence(&prior), Err(refusal));
    }
    let known = Factors {
        plus: other(2, 1),
        minus: other(1, 1),
        activations: other(1, 3),
    };
    assert_eq!(
        Statistics::of_known(&known, &sharing),
        Err(shape("minus", (1, 1), (2, 1)))
    );
}

/// A step that fails leaves its parameters as they were, whatever it had computed of them.
#[test]
fn failing_steps_change_nothing() {
    fn fails<T: Real, M: Model<T>>(model: &M, data: &DenseTensor<T>, start: &M::State)
    where
        M::State: PartialEq + std::fmt::Debug,
    {
        let algorithm = model.bind(data).unwrap();
        for measure in [false, true] {
            let mut at = start.parameters().clone();
            let error = algorithm.step(&mut at, measure).unwrap_err();
            assert!(error.rejects_point(), "{error}");
            assert_eq!(&M::State::wrap(at).unwrap(), start);
        }
    }
    // The atoms have their update when the activations leave the numbers.
    let prior = Prior {
        shape: Entries::All(1e300),
        ..Prior::flat()
    };
    let single = tensor(&dmatrix![2.0f32, -1.0; 3.0, 1.0]);
    let config = Snmf::new(1).replicates(Replicates::Limit).priors(prior);
    let start = config.init(&single, Init::default(), &mut rng(0)).unwrap();
    fails(&config, &single, &start);
}
