//! Variational Bayes.

use nalgebra::{DMatrix, dmatrix};
use plca_fit::engine::{FitError, Init, Model, Solver, State, Transform};
use plca_tensor::{DenseTensor, Order, Real};
use skellam_snmf::engine::{
    Snmf, SnmfVb, SnmfVbBuilder, SnmfVbState, select_components as select_now,
};
use skellam_snmf::{
    Entries, Hyperparameters, Learner, Posterior, Prior, Rate, Replicates, Sharing, Signed,
    SnmfState, VbInit, select_components,
};

use super::{ALL, ITERATIONS, exactly, new, old, reconstructs, refusal, resumes, rng, storages};

type Before = skellam_snmf::SnmfVbBuilder;

fn before() -> Before {
    skellam_snmf::SnmfVb::builder(3)
}

fn now<T: Real>() -> SnmfVbBuilder<T> {
    SnmfVb::builder(3)
}

/// Priors with a hyperparameter of every kind.
fn priors(shape: f64) -> Prior {
    Prior {
        plus: Entries::PerComponent(vec![0.5, 1.0, 2.0]),
        minus: Entries::Each(DMatrix::from_fn(7, 3, |i, z| {
            1.0 + 0.25 * (i * z % 3) as f64
        })),
        shape: Entries::Each(DMatrix::from_fn(3, 5, |z, n| {
            shape * (1.0 + 0.25 * (n * z % 4) as f64)
        })),
        rate: Entries::PerComponent(vec![0.5, 0.125, 0.25]),
    }
}

fn agree<T: Real>() {
    for (storage, data) in storages::<T>(&[7, 5]) {
        let one = Replicates::One;
        let three = Replicates::Finite(3);
        let cases: [(&str, Before, SnmfVbBuilder<T>); 5] = [
            ("plain", before(), now()),
            ("counts", before().replicates(one), now().replicates(one)),
            (
                "means",
                before().replicates(three).real_data(),
                now().replicates(three).real_data(),
            ),
            (
                "priors",
                before().prior(priors(1.5)),
                now().priors(priors(1.5)),
            ),
            // Rates so small that passes are made of logarithms.
            (
                "faint",
                before().prior(priors(1e-3)),
                now().priors(priors(1e-3)),
            ),
        ];
        for (case, before, now) in cases {
            let (before, now) = (before.build().unwrap(), now.build().unwrap());
            let cells = Signed::new(&*data).unwrap();
            for solver in ALL {
                let what = format!("{case}, {storage}, {solver}");
                let vb = before.on(&cells).unwrap();
                let start = VbInit::Random.state(&vb, &mut rng()).unwrap();
                let (state, objective) = old(vb, start, solver);
                let fit = new(&now, &*data, Init::default(), solver);
                assert!(fit.state().posterior() == state, "{what}");
                assert_eq!(fit.objective(), objective, "{what}");
                let vb = before.on(&cells).unwrap();
                let bound = now.bind(&*data).unwrap();
                let likelihood = bound.likelihood(fit.state().parameters()).unwrap();
                assert_eq!(likelihood, vb.log_fit(&state.means()), "{what}");
            }
        }
    }
}

#[test]
fn fits_are_as_before_f64() {
    agree::<f64>();
}

#[test]
fn fits_are_as_before_f32() {
    agree::<f32>();
}

/// What is frozen is what the start gives, to the bit, and the rest is as before.
#[test]
fn frozen_blocks_are_as_before() {
    for (storage, data) in storages::<f64>(&[7, 5]) {
        let cells = Signed::new(&*data).unwrap();
        let free = before().build().unwrap();
        let start = VbInit::Random.state(&free.on(&cells).unwrap(), &mut rng());
        let start = start.unwrap();
        let given = SnmfVbState::new(start.clone()).unwrap();
        let both = ["activations_shape", "activations_rate"];
        for (frozen, before) in [
            (&["atoms_shape"][..], before().freeze_atoms()),
            (&both[..], before().freeze_activations()),
        ] {
            let before = before.build().unwrap();
            let now = frozen.iter().fold(now(), |now, &name| now.freeze(name));
            let now = now.build().unwrap();
            for solver in ALL {
                let (state, objective) = old(before.on(&cells).unwrap(), start.clone(), solver);
                let fit = new(&now, &*data, &given, solver);
                assert!(fit.state().posterior() == state, "{storage}, {frozen:?}");
                assert_eq!(fit.objective(), objective, "{storage}, {frozen:?}");
                for name in frozen {
                    let at = |state: &SnmfVbState<f64>| state.parameters().block(name).cloned();
                    assert_eq!(at(fit.state()), at(&given));
                }
            }
        }
        let now = now().freeze_components("atoms_shape", [2]).build().unwrap();
        let fit = new(&now, &*data, &given, Solver::Squarem);
        let (end, start) = (fit.state().atoms_shape(), given.atoms_shape());
        assert_eq!(end.column(2), start.column(2));
        assert_ne!(end.column(1), start.column(1));
    }
}

/// All starts are as before.
#[test]
fn starts_are_as_before() {
    for (storage, data) in storages::<f64>(&[7, 5]) {
        let cells = Signed::new(&*data).unwrap();
        let before = before().prior(priors(1.5)).build().unwrap();
        let now = now().priors(priors(1.5)).build().unwrap();
        let vb = before.on(&cells).unwrap();
        for jitter in [0.0, 0.5] {
            let expected = VbInit::Prior { jitter }.state(&vb, &mut rng()).unwrap();
            let start = now.at_prior(&*data, jitter, &mut rng()).unwrap();
            assert!(start.posterior() == expected, "{storage}, {jitter}");
        }
        let point = Snmf::builder(3).build().unwrap();
        let point = new(&point, &*data, Init::default(), Solver::Em);
        let point = point.state();
        let means = VbInit::Means(SnmfState {
            plus: point.plus().into_owned(),
            minus: point.minus().into_owned(),
            activations: point.activations().clone(),
        });
        let expected = means.state(&vb, &mut rng()).unwrap();
        let start = now.at_means(&*data, point).unwrap();
        assert!(start.posterior() == expected, "{storage}");

        let drawn = VbInit::Random.state(&vb, &mut rng()).unwrap();
        let (plus, minus) = (drawn.plus.clone(), drawn.minus.clone());
        let expected = VbInit::Atoms { plus, minus }.state(&vb, &mut rng());
        let drawn = SnmfVbState::new(drawn).unwrap();
        let atoms = Init::default().block("atoms_shape", drawn.atoms_shape().clone());
        let start = now.init(&*data, atoms.clone(), &mut rng()).unwrap();
        assert!(start.posterior() == expected.unwrap(), "{storage}");
        // With something else given beside them the rest is drawn.
        let rate =
            dmatrix![2.0, 2.0, 2.0, 2.0, 2.0; 2.0, 2.0, 2.0, 2.0, 2.0; 2.0, 2.0, 2.0, 2.0, 2.0];
        let both = atoms.block("activations_rate", rate.clone());
        let start = now.init(&*data, both, &mut rng()).unwrap();
        assert_eq!(start.activations_shape(), drawn.activations_shape());
        assert_eq!(start.activations_rate(), &rate);
    }
}

/// Rates follow from the prior whatever a start gives: no solver extrapolates them.
#[test]
fn rates_follow() {
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(0);
    let vb = now().build().unwrap();
    let drawn = vb.init(&*data, Init::default(), &mut rng()).unwrap();
    let mut q = drawn.posterior();
    q.rate.fill(7.0);
    let start = SnmfVbState::new(q).unwrap();
    for solver in ALL {
        let fit = new(&vb, &*data, &start, solver);
        let rates = fit.state().activations_rate();
        assert!(rates.iter().all(|&b| b == 1.001), "{solver}");
    }
}

/// Hyperparameters learnt from one data set after another are those of before, to the bit.
#[test]
fn hyperparameters_are_learnt_as_before() {
    let start = Hyperparameters {
        alpha: vec![1.0],
        shape: vec![1.0; 3],
        rate: vec![0.1; 3],
    };
    let sharing = Sharing {
        plus: skellam_snmf::Groups::All,
        minus: skellam_snmf::Groups::All,
        ..Sharing::by_component(7, 3)
    };
    let learner = || Learner::new(sharing.clone(), start.clone(), Rate::AtLeast(0.4)).unwrap();
    let (mut before, mut after) = (learner(), learner());
    for (_, data) in storages::<f64>(&[7, 5]) {
        let cells = Signed::new(&*data).unwrap();
        let vb = skellam_snmf::SnmfVb::builder(3).prior(before.prior().unwrap());
        let vb = vb.build().unwrap();
        let stop = exactly(ITERATIONS).1;
        let fit = vb.fit(&cells, &VbInit::Random, &stop, &mut rng()).unwrap();
        before.learn(&fit.state).unwrap();

        let vb = now().priors(after.prior().unwrap()).build().unwrap();
        let fit = new(&vb, &*data, Init::default(), Solver::Em);
        after.learn(&fit.state().posterior()).unwrap();
        assert_eq!(after, before);
    }
    assert_ne!(before.hyperparameters(), &start);
}

#[test]
fn selection_is_as_before() {
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(1);
    let cells = Signed::new(&*data).unwrap();
    let (stop, old_stop) = exactly(ITERATIONS);
    let configure = |k| skellam_snmf::SnmfVb::builder(k).build();
    let old = select_components(&cells, 1..4, configure, 3, &old_stop, &mut rng()).unwrap();
    let configure = |k| SnmfVb::builder(k).build();
    let new = select_now(&*data, 1..4, configure, 3, &stop, &mut rng()).unwrap();
    assert_eq!(new.len(), 3);
    for (new, old) in new.iter().zip(&old) {
        assert_eq!((new.components, new.score), (old.components, old.score));
        assert!(new.fit.state().posterior() == old.outcome.state);
    }
    let error = refusal(select_now(&*data, 1..4, configure, 0, &stop, &mut rng()));
    assert_eq!(error.to_string(), "`starts` is 0, expected at least 1");
}

#[test]
fn checkpoints_carry_on() {
    for (_, data) in storages::<f64>(&[7, 5]) {
        for solver in ALL {
            resumes(&now().build().unwrap(), &*data, solver);
        }
    }
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(0);
    let fit = new(&now().build().unwrap(), &*data, Init::default(), Solver::Em);
    let mut saved = serde_json::to_value(fit.state()).unwrap();
    let read: SnmfVbState<f64> = serde_json::from_value(saved.clone()).unwrap();
    assert_eq!(&read, fit.state());
    saved["blocks"][2][0][1] = 0.0.into();
    let error = serde_json::from_value::<SnmfVbState<f64>>(saved).unwrap_err();
    assert!(error.to_string().contains("activations_rate"), "{error}");
}

#[test]
fn reconstructions() {
    for (_, data) in storages::<f64>(&[7, 5]) {
        let fit = new(&now().build().unwrap(), &*data, Init::default(), Solver::Em);
        reconstructs(fit.state(), &*data);
        let means = fit.state().means().unwrap();
        reconstructs(&means, &*data);
        let expected = fit.state().posterior().means().reconstruct();
        let cell = plca_fit::engine::Reconstruct::cell(fit.state(), &[3, 2]);
        assert!((cell - expected[(3, 2)]).abs() < 1e-12);
    }
}

/// New columns under the posterior of learnt atoms: as with frozen atoms before.
#[test]
fn new_columns_are_explained_as_before() {
    for (storage, data) in storages::<f64>(&[7, 5]) {
        let (_, other) = storages::<f64>(&[7, 9]).swap_remove(1);
        let now = now().build().unwrap();
        let learnt = new(&now, &*data, Init::default(), Solver::Em);
        let learnt = learnt.state();
        for solver in ALL {
            let how = Transform::default().stop(exactly(ITERATIONS).0);
            let how = how.solver(solver);
            let explained = now.transform(learnt, &*other, &how).unwrap();
            let cells = Signed::new(&*other).unwrap();
            let before = before().freeze_atoms().build().unwrap();
            let vb = before.on(&cells).unwrap();
            let Posterior { plus, minus, .. } = learnt.posterior();
            let start = VbInit::Atoms { plus, minus }.state(&vb, &mut rng());
            let (state, objective) = old(vb, start.unwrap(), solver);
            assert!(
                explained.fit.state().posterior() == state,
                "{storage}, {solver}"
            );
            assert_eq!(explained.fit.objective(), objective, "{storage}, {solver}");
        }
    }
}

/// What is refused says why and where.
#[test]
fn refusals() {
    let text = |error: FitError| error.to_string();
    let built = |builder: SnmfVbBuilder<f64>| text(refusal(builder.build()));
    let error = built(SnmfVb::builder(0));
    assert_eq!(error, "`components` is 0, expected at least 1");
    let error = built(now().priors(Prior::flat()));
    assert_eq!(
        error,
        "`prior rate` has 0 in row 0, column 0, expected a finite number > 0"
    );
    let error = built(now().freeze("activations_shape"));
    assert!(error.contains("frozen together"), "{error}");
    let values = vec![2.0, -1.0, 0.5, 3.0];
    let data = DenseTensor::new(vec![2, 2], values, Order::RowMajor).unwrap();
    let tiny = Prior {
        shape: Entries::All(1e-200),
        rate: Entries::All(1.0),
        ..Prior::flat()
    };
    let vb = now().priors(tiny).build().unwrap();
    let error = text(refusal(vb.on(&data)));
    assert!(error.starts_with("`prior shape` has 0.000"), "{error}");
    let vb = SnmfVb::builder(1).build().unwrap();
    let start = |shape: f64| {
        Init::default()
            .block("atoms_shape", dmatrix![1.0; 1.0; 1.0; 1.0])
            .block("activations_shape", dmatrix![1.0, shape])
    };
    let run = |init| vb.on(&data).unwrap().run(init, &mut rng());
    let error = refusal(run(start(1e-200)));
    let expected = |value| matches!(&error, FitError::Range { row: 0, column: 1, value: v, .. } if *v == value);
    assert!(expected(1e-200), "{error}");
    let error = refusal(run(start(0.0)));
    assert!(
        matches!(error, FitError::Range { value: 0.0, .. }),
        "{error}"
    );
    let error = refusal(vb.at_prior(&data, -1.0, &mut rng()));
    assert!(
        matches!(error, FitError::Setting { name: "jitter", .. }),
        "{error}"
    );
    let point = skellam_snmf::engine::SnmfState::new(
        &dmatrix![0.5; 0.5],
        &dmatrix![0.0; 0.0],
        dmatrix![1.0, 1.0],
    );
    let error = refusal(vb.at_means(&data, &point.unwrap()));
    let expected = FitError::Support {
        index: vec![0, 1],
        value: -1.0,
    };
    assert_eq!(error, expected);
}
