//! Maximum a posteriori.

use nalgebra::{DMatrix, dmatrix};
use plca_fit::{
    FitError, Impossible, Init, Model, Reconstruct, Settings, Solver, State, Status, Stop,
    Transform,
};
use plca_priors::{Dirichlet, Entropic, Gamma};
use plca_tensor::{Data, DenseTensor, Order};
use skellam_snmf::{Entries, Prior, Replicates, Snmf, SnmfState};

use super::{
    ALL, ITERATIONS, block, columns, exactly, near, new, reconstructs, refusal, resumes, rng,
    storages,
};

fn now() -> Snmf {
    Snmf::new(3).replicates(Replicates::Limit)
}

/// What is frozen is what the start gives, to the bit, under every solver.
#[test]
fn frozen_blocks() {
    for (storage, data) in storages::<f64>(&[7, 5]) {
        let free = now();
        let start = free.init(&*data, Init::default(), &mut rng()).unwrap();
        let names = ["atoms", "activations"];
        for name in names {
            let frozen = now().freeze(name);
            for solver in ALL {
                let fit = new(&frozen, &*data, &start, solver);
                for other in names {
                    let kept = start.parameters().block(other) == Some(&block(&fit, other));
                    assert_eq!(kept, name == other, "{storage}, {name}, {other}, {solver}");
                }
            }
        }
        let some = now().freeze_components("atoms", [1]);
        let fit = new(&some, &*data, &start, Solver::Squarem);
        let atoms = block(&fit, "atoms");
        assert_eq!(atoms.column(1), start.atoms().column(1));
        assert_ne!(atoms.column(0), start.atoms().column(0));
    }
}

/// Priors of one block are those of the crate of priors; a smooth one is the same as that of both blocks.
#[test]
fn priors_by_block() {
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(1);
    let both = Prior {
        plus: Entries::All(1.5),
        minus: Entries::All(1.5),
        shape: Entries::All(2.0),
        rate: Entries::All(0.5),
    };
    let both = now().priors(both);
    let by_block = now()
        .prior("atoms", Dirichlet::symmetric(1.5).unwrap())
        .prior("activations", Gamma::new(2.0, 0.5).unwrap());
    for solver in ALL {
        let both = new(&both, &*data, Init::default(), solver);
        let by_block = new(&by_block, &*data, Init::default(), solver);
        for name in ["atoms", "activations"] {
            let (both, by_block) = (block(&both, name), block(&by_block, name));
            near(by_block.as_slice(), both.as_slice(), 1e-10, name);
        }
    }
}

/// A sparse prior that takes away what a datum needs gives it back, and says so; nothing guards an extrapolation under it.
#[test]
fn support_is_restored() {
    let data = DenseTensor::new(vec![2, 1], vec![0.25, -9.0], Order::RowMajor).unwrap();
    let priors = Prior {
        plus: Entries::All(0.1),
        minus: Entries::All(0.1),
        ..Prior::flat()
    };
    let snmf = Snmf::new(1).replicates(Replicates::Limit).priors(priors);
    let fit = new(&snmf, &data, Init::default(), Solver::Em);
    assert!(!fit.events().is_empty() && fit.objective().is_finite());
    let run = snmf.on(&data).unwrap().solver(Solver::Squarem);
    let error = refusal(run.run(Init::default(), &mut rng()));
    assert!(matches!(error, FitError::Unsteady { .. }), "{error}");
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
    let saved = serde_json::to_string(fit.state()).unwrap();
    let read: SnmfState<f64> = serde_json::from_str(&saved).unwrap();
    assert_eq!(&read, fit.state());
    let broken = saved.replace("\"atoms\"", "\"basis\"");
    let error = serde_json::from_str::<SnmfState<f64>>(&broken).unwrap_err();
    assert!(error.to_string().contains("atoms, activations"), "{error}");
}

#[test]
fn reconstructions() {
    for (_, data) in storages::<f64>(&[7, 5]) {
        let fit = new(&now(), &*data, Init::default(), Solver::Em);
        reconstructs(fit.state(), &*data);
        let state = fit.state();
        let cell = (state.plus() - state.minus()).row(3) * state.activations().column(2);
        assert!((state.cell(&[3, 2]) - cell[0]).abs() < 1e-12);
    }
}

/// Each new column under learnt atoms: as it alone with frozen atoms, from equal activations.
#[test]
fn new_columns_are_explained() {
    for (storage, data) in storages::<f64>(&[7, 5]) {
        let (_, other) = storages::<f64>(&[7, 9]).swap_remove(1);
        let priors = Prior {
            shape: Entries::All(1.5),
            rate: Entries::All(0.5),
            ..Prior::flat()
        };
        let model = now().priors(priors.clone());
        let learnt = new(&model, &*data, Init::default(), Solver::Em);
        let learnt = learnt.state();
        let frozen = now().priors(priors).freeze("atoms");
        for solver in ALL {
            let how = Transform::default().stop(exactly(ITERATIONS));
            let how = how.solver(solver);
            let explained = model.transform(learnt, &*other, &how).unwrap();
            for (y, column) in columns([7, 9]).into_iter().enumerate() {
                let even = DMatrix::from_element(3, 1, column.summary().absolute / 3.0);
                let start = Init::from(learnt).block("activations", even);
                let alone = new(&frozen, &column, start, solver);
                let [all, own] = [explained.fit.state(), alone.state()].map(|s| s.activations());
                assert_eq!(all.column(y), own.column(0), "{storage}, {solver}");
            }
            assert!((explained.dropped, &explained.empty[..]) == (0.0, &[]));
        }
    }
}

/// What no atom reaches is refused with its place, or hidden and counted.
#[test]
fn impossible_data_are_named_or_hidden() {
    let learnt = SnmfState::new(&dmatrix![0.5; 0.0], &dmatrix![0.0; 0.5], dmatrix![1.0]).unwrap();
    let values = vec![3.0, 6.0, 0.0, -3.0, 2.0, 0.0];
    let data = DenseTensor::new(vec![2, 3], values, Order::RowMajor).unwrap();
    let snmf = Snmf::new(1).replicates(Replicates::Limit);
    let how = Transform::default();
    let error = refusal(snmf.transform(&learnt, &data, &how));
    let expected = FitError::Impossible {
        index: vec![1, 1],
        value: 2.0,
    };
    assert_eq!(error, expected);
    let explained = snmf.transform(&learnt, &data, &how.clone().impossible(Impossible::Drop));
    let explained = explained.unwrap();
    assert_eq!((explained.dropped, explained.empty), (2.0, vec![2]));
    let activations = explained.fit.state().activations();
    near(&activations.as_slice()[..2], &[6.0, 12.0], 1e-6, "dropped");
    let error = refusal(snmf.transform(&learnt, &data, &how.clone().along(0)));
    assert!(matches!(error, FitError::Conflict { .. }), "{error}");
    let tall = DenseTensor::new(vec![3, 1], vec![1.0; 3], Order::RowMajor).unwrap();
    let error = refusal(snmf.transform(&learnt, &tall, &how));
    assert_eq!(error.to_string(), "the data are 3 x 1, expected 2 x any");
}

/// What is refused says why and where.
#[test]
fn refusals() {
    let text = |error: FitError| error.to_string();
    let checked = |snmf: Snmf| text(refusal(snmf.check()));
    assert_eq!(
        checked(Snmf::new(0).replicates(Replicates::Limit)),
        "`components` is 0, expected at least 1"
    );
    assert_eq!(
        checked(now().replicates(Replicates::Finite(0))),
        "`replicates` is 0, expected at least 1"
    );
    assert_eq!(
        checked(now().floor(-1.0)),
        "`floor` is -1, expected a finite number >= 0"
    );
    let bad = Prior {
        shape: Entries::Each(dmatrix![2.0, -1.0]),
        ..Prior::flat()
    };
    assert_eq!(
        checked(now().priors(bad)),
        "`prior shape` has -1 in row 0, column 1, expected a finite number > 0"
    );
    let sparse = Entropic::new(2.0).unwrap();
    for snmf in [now().floor(0.1), now().priors(Prior::flat())] {
        let error = checked(snmf.prior("atoms", sparse));
        assert!(error.contains("both blocks"), "{error}");
    }
    let data = |values| DenseTensor::new(vec![2, 2], values, Order::RowMajor).unwrap();
    let on = |snmf: Snmf, values| {
        let data = data(values);
        let error = snmf.on(&data).err().map(text);
        error.expect("it is refused")
    };
    let half = vec![2.0, -1.0, 0.5, 3.0];
    let error = on(now().replicates(Replicates::One), half.clone());
    assert!(error.starts_with("entry [1, 0] is 0.5, expected a whole number"));
    assert!(
        now()
            .replicates(Replicates::Finite(2))
            .on(&data(half))
            .is_ok()
    );
    let counts = now().replicates(Replicates::One);
    let error = on(counts, vec![2.0, -1e200, 5.0, 3.0]);
    assert!(error.starts_with("entry [0, 1] is -1"), "{error}");
    let error = on(now().freeze("atom"), vec![1.0; 4]);
    assert_eq!(
        error,
        "no block is called `atom`, expected atoms, activations"
    );
    let narrow = Prior {
        shape: Entries::PerComponent(vec![1.0; 2]),
        ..Prior::flat()
    };
    let error = on(now().priors(narrow), vec![1.0; 4]);
    assert_eq!(error, "`prior shape` is 2x1, expected 3x1");
    let cube = DenseTensor::<f64>::new(vec![2, 1, 2], vec![1.0; 4], Order::RowMajor).unwrap();
    let snmf = now();
    assert!(matches!(refusal(snmf.on(&cube)), FitError::Data(_)));

    let signed = data(vec![2.0, -1.0, 0.5, 3.0]);
    let snmf = Snmf::new(1).replicates(Replicates::Limit).freeze("atoms");
    let run = |init| snmf.on(&signed).unwrap().run(init, &mut rng());
    let error = text(refusal(run(Init::default())));
    assert_eq!(error, "`atoms` is frozen, but the start does not give it");
    let one_sided = Init::default().block("atoms", dmatrix![0.5; 0.5; 0.0; 0.0]);
    let expected = FitError::Support {
        index: vec![0, 1],
        value: -1.0,
    };
    assert_eq!(refusal(run(one_sided)), expected);
}

/// Runs end by themselves, with the solver that suits the model.
#[test]
fn runs_converge() {
    let (_, data) = storages::<f64>(&[7, 5]).swap_remove(0);
    let snmf = now();
    let run = snmf.on(&*data).unwrap().stop(Stop::default().tol(1e-4));
    let fit = run.run(Init::default(), &mut rng()).unwrap();
    assert_eq!(fit.status(), &Status::Converged);
    let trace = fit.trace().windows(2);
    assert!(trace.clone().count() > 3);
    assert!(trace.into_iter().all(|w| w[1].objective >= w[0].objective));
}
