//! Variational Bayes.

use nalgebra::{DMatrix, dmatrix};
use plca_fit::{FitError, Init, Model, Reconstruct, Settings, Solver, State, Transform};
use plca_tensor::{DenseTensor, Order};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{Entries, Prior, SnmfState, SnmfVb, SnmfVbState};

use super::{
    ALL, ITERATIONS, columns, exactly, new, reconstructs, refusal, resumes, rng, storages,
};

fn now() -> SnmfVb {
    SnmfVb::new(3)
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

/// What is frozen is what the start gives, to the bit, under every solver.
#[test]
fn frozen_blocks() {
    for (storage, data) in storages::<f64>(&[7, 5]) {
        let free = now();
        let given = free.init(&*data, Init::default(), &mut rng()).unwrap();
        let both = ["activations_shape", "activations_rate"];
        for frozen in [&["atoms_shape"][..], &both[..]] {
            let now = frozen.iter().fold(now(), |now, &name| now.freeze(name));
            for solver in ALL {
                let fit = new(&now, &*data, &given, solver);
                for name in ["atoms_shape", "activations_shape"] {
                    let at = |state: &SnmfVbState<f64>| state.parameters().block(name).cloned();
                    let kept = at(fit.state()) == at(&given);
                    assert_eq!(kept, frozen.contains(&name), "{storage}, {name}, {solver}");
                }
            }
        }
        let now = now().freeze_components("atoms_shape", [2]);
        let fit = new(&now, &*data, &given, Solver::Squarem);
        let (end, start) = (fit.state().atoms_shape(), given.atoms_shape());
        assert_eq!(end.column(2), start.column(2));
        assert_ne!(end.column(1), start.column(1));
    }
}

/// A start is the prior or above it; what a start does not give is drawn, unless it gives the atoms alone.
#[test]
fn starts() {
    for (storage, data) in storages::<f64>(&[7, 5]) {
        let now = now().priors(priors(1.5));
        let prior = now.at_prior(&*data, 0.0, &mut rng()).unwrap();
        let raised = now.at_prior(&*data, 0.5, &mut rng()).unwrap();
        let shapes =
            |at: &SnmfVbState<f64>| [at.atoms_shape(), at.activations_shape()].map(|m| m.clone());
        for (prior, raised) in shapes(&prior).iter().zip(shapes(&raised)) {
            let jitter = raised - prior;
            assert!(
                jitter.min() >= 0.0 && jitter.max() < 0.5 && jitter.max() > 0.25,
                "{storage}"
            );
        }
        assert_eq!(prior.activations_rate(), raised.activations_rate());

        let drawn = now.init(&*data, Init::default(), &mut rng()).unwrap();
        let atoms = Init::default().block("atoms_shape", drawn.atoms_shape().clone());
        let start = now.init(&*data, atoms.clone(), &mut rng()).unwrap();
        assert_eq!(start.atoms_shape(), drawn.atoms_shape());
        assert_eq!(start.activations_rate(), prior.activations_rate());
        // What is given beside them stays, and the rest is explained again.
        let rate = DMatrix::from_element(3, 5, 2.0);
        let both = atoms.block("activations_rate", rate.clone());
        let start = now.init(&*data, both.clone(), &mut rng()).unwrap();
        let mut other = ChaCha8Rng::seed_from_u64(77);
        let again = now.init(&*data, both, &mut other).unwrap();
        assert_ne!(start.activations_shape(), drawn.activations_shape());
        assert_eq!(start.activations_shape(), again.activations_shape());
        assert_eq!(start.activations_rate(), &rate);
    }
}

/// Rates follow from the prior whatever a start gives: no solver extrapolates them.
#[test]
fn rates_follow() {
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(0);
    let vb = now();
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

#[test]
fn checkpoints_carry_on() {
    for (_, data) in storages::<f64>(&[7, 5]) {
        for solver in ALL {
            resumes(&now(), &*data, solver);
        }
    }
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(0);
    let fit = new(&now(), &*data, Init::default(), Solver::Em);
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
        let fit = new(&now(), &*data, Init::default(), Solver::Em);
        reconstructs(fit.state(), &*data);
        let means = fit.state().means().unwrap();
        reconstructs(&means, &*data);
        let q = fit.state().posterior().means();
        let expected = (q.plus - q.minus).row(3) * q.activations.column(2);
        assert!((fit.state().cell(&[3, 2]) - expected[0]).abs() < 1e-12);
    }
}

/// Each new column under the posterior of learnt atoms: as it alone with frozen atoms, from the prior of the activations.
#[test]
fn new_columns_are_explained() {
    for (storage, data) in storages::<f64>(&[7, 5]) {
        let (_, other) = storages::<f64>(&[7, 9]).swap_remove(1);
        let model = now();
        let learnt = new(&model, &*data, Init::default(), Solver::Em);
        let learnt = learnt.state();
        let frozen = now().freeze("atoms_shape");
        let start = Init::default().block("atoms_shape", learnt.atoms_shape().clone());
        for solver in ALL {
            let how = Transform::default().stop(exactly(ITERATIONS));
            let how = how.solver(solver);
            let explained = model.transform(learnt, &*other, &how).unwrap();
            for (y, column) in columns([7, 9]).into_iter().enumerate() {
                let prior = model.at_prior(&column, 0.0, &mut rng()).unwrap();
                let shape = prior.activations_shape().clone();
                let start = start.clone().block("activations_shape", shape);
                let start = start.block("activations_rate", prior.activations_rate().clone());
                let alone = new(&frozen, &column, start, solver);
                for block in [1, 2] {
                    let [all, own] =
                        [explained.fit.state(), alone.state()].map(|s| s.parameters().at(block));
                    assert_eq!(all.column(y), own.column(0), "{storage}, {solver}");
                }
            }
        }
    }
}

/// What is refused says why and where.
#[test]
fn refusals() {
    let text = |error: FitError| error.to_string();
    let checked = |vb: SnmfVb| text(refusal(vb.check()));
    let error = checked(SnmfVb::new(0));
    assert_eq!(error, "`components` is 0, expected at least 1");
    let error = checked(now().priors(Prior::flat()));
    assert_eq!(
        error,
        "`prior rate` has 0 in row 0, column 0, expected a finite number > 0"
    );
    let error = checked(now().freeze("activations_shape"));
    assert!(error.contains("frozen together"), "{error}");
    let values = vec![2.0, -1.0, 0.5, 3.0];
    let data = DenseTensor::new(vec![2, 2], values, Order::RowMajor).unwrap();
    let tiny = Prior {
        shape: Entries::All(1e-200),
        rate: Entries::All(1.0),
        ..Prior::flat()
    };
    let vb = now().priors(tiny);
    let error = text(refusal(vb.on(&data)));
    assert!(error.starts_with("`prior shape` has 0.000"), "{error}");
    let vb = SnmfVb::new(1);
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
    let point = SnmfState::new(&dmatrix![0.5; 0.5], &dmatrix![0.0; 0.0], dmatrix![1.0, 1.0]);
    let error = refusal(vb.at_means(&data, &point.unwrap()));
    let expected = FitError::Support {
        index: vec![0, 1],
        value: -1.0,
    };
    assert_eq!(error, expected);
}
