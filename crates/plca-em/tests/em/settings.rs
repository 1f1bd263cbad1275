//! What settings make of a step and of its measures: hidden cells, frozen blocks, tempering with acceleration.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector, dmatrix};
use plca_em::{
    Geometry, Given, Likelihood, Missing, Nmf, NmfState, Plca, PlcaState, Plsa, PlsaState, Shifted,
    ShiftedState, Support, Update,
};
use plca_fit::{Checkpoint, FitError, Init, Model, Settings, Solver, State, solver::Memory};
use plca_priors::{CrossEntropy, CrossEntropyOrder, Dirichlet, Entropic, Schedule, Scheduled};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::support::{Prior, after, residual};

const COUNTS: [f64; 12] = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0, 8.0];

fn counts() -> DenseTensor<f64> {
    DenseTensor::new(vec![4, 3], COUNTS.to_vec(), Order::RowMajor).unwrap()
}

/// `COUNTS` times a scale without its row 2 and one more cell, in every masked storage.
fn hidden(scale: f64) -> Vec<Box<dyn Data<f64>>> {
    let seen: Vec<bool> = (0..12).map(|at| at / 3 != 2 && at != 4).collect();
    let values = COUNTS.map(|v| v * scale);
    let coordinates = |keep: &dyn Fn(usize) -> bool| Coordinates {
        shape: vec![4, 3],
        indices: (0..12u32)
            .filter(|&at| keep(at as usize))
            .flat_map(|at| [at / 3, at % 3])
            .collect(),
        values: (0..12)
            .filter(|&at| keep(at))
            .map(|at| values[at])
            .collect(),
    };
    let dense = DenseTensor::with_mask(vec![4, 3], values.to_vec(), Order::RowMajor, &seen);
    let listed = SparseTensor::all_but(coordinates(&|_| true), coordinates(&|at| !seen[at]));
    let stored = SparseTensor::stored_only(coordinates(&|at| seen[at]));
    vec![
        Box::new(dense.unwrap()),
        Box::new(listed.unwrap()),
        Box::new(stored.unwrap()),
    ]
}

fn state() -> PlcaState<f64> {
    let weights = DVector::from_vec(vec![0.3, 0.7]);
    let factors = vec![
        dmatrix![0.1, 0.3; 0.2, 0.4; 0.3, 0.2; 0.4, 0.1],
        dmatrix![0.2, 0.5; 0.3, 0.3; 0.5, 0.2],
    ];
    PlcaState::new(weights, factors).unwrap()
}

/// The same with a kernel as high as the data.
fn shifted_state() -> Result<ShiftedState<f64>, FitError> {
    let plca = state();
    ShiftedState::new(
        Geometry::new(&[4, 3], &[4, 1], &[Support::Valid])?,
        Likelihood::Conditional,
        DVector::from_column_slice(plca.weights()),
        plca.factor(0).clone(),
        plca.factor(1).clone(),
    )
}

/// Masked updates do not depend on the unit of the data, and a row that was not seen keeps its place in the model: the first
/// update leaves it as it was, but for the common normalisation.
#[test]
fn masked_updates_have_no_scale() -> Result<(), FitError> {
    let plca = Plca::new(2).missing(Missing::Multiplicative);
    let after_steps = |data: &dyn Data<f64>, n| {
        Ok::<_, FitError>(after(&plca, data, &state(), Solver::Em, n)?.into_state())
    };
    for steps in [1, 20] {
        let want = after_steps(&*hidden(1.0)[0], steps)?;
        for scale in [1e-3, 1.0, 1e3] {
            for data in hidden(scale) {
                let got = after_steps(&*data, steps)?;
                let (got, want) = (got.parameters(), want.parameters());
                for (got, want) in got.matrices().iter().zip(want.matrices()) {
                    assert!((got - want).amax() <= 1e-12, "{scale}: {got} {want}");
                }
            }
        }
    }
    // The same updates on W = F_1 diag(P(z)) s and H = F_2^T, where a row of W that was not seen is kept to the bit.
    let data = &hidden(1.0)[0];
    let start = state();
    let cells = |f: &dyn Fn(usize, usize) -> f64| -> f64 {
        let seen = (0..12).filter(|at| at / 3 != 2 && *at != 4);
        seen.map(|at| f(at / 3, at % 3)).sum()
    };
    let weights = DMatrix::from_diagonal(&DVector::from_column_slice(start.weights()));
    let p = start.factor(0) * &weights * start.factor(1).transpose();
    let s = data.total() / cells(&|i, j| p[(i, j)]);
    let nmf = Nmf::new(2).missing(Missing::Multiplicative);
    let product = NmfState::new(start.factor(0) * &weights * s, start.factor(1).transpose())?;
    let product = after(&nmf, &**data, &product, Solver::Em, 20)?;
    let (image, got) = (product.state().to_plca()?, after_steps(&**data, 20)?);
    for (image, got) in image.factors().iter().zip(got.factors()) {
        assert!((image - got).amax() <= 1e-12, "{image} {got}");
    }
    Ok(())
}

/// Whatever is frozen, the residual is far from 0 before EM and goes to 0 under it.
#[test]
fn residuals_of_frozen_blocks() -> Result<(), FitError> {
    let data = counts();
    for frozen in 0..7 {
        let mut plca = Plca::new(2);
        for (at, block) in ["weights", "factor_0", "factor_1"].into_iter().enumerate() {
            if frozen >> at & 1 == 1 {
                plca = plca.freeze(block);
            }
        }
        let before = residual(&plca, &data, &state())?;
        assert!(before > 1e-2, "frozen {frozen:b}: {before}");
        let (mut at, mut near) = (state(), before);
        for _ in 0..300 {
            at = after(&plca, &data, &at, Solver::Em, 100)?.into_state();
            near = residual(&plca, &data, &at)?;
            if near <= 1e-4 {
                break;
            }
        }
        assert!(near <= 1e-4, "frozen {frozen:b}: {near}");
    }
    Ok(())
}

/// With everything frozen nothing can be better.
#[test]
fn residual_without_freedom() -> Result<(), FitError> {
    let plca = Plca::new(2).freeze("weights").freeze("factor_0");
    let plca = plca.freeze("factor_1");
    assert_eq!(residual(&plca, &counts(), &state())?, 0.0);
    Ok(())
}

/// The likelihood is no guard for tempered steps, which may lower it; without a solver that is named, plain steps are taken.
// [SPEC 1.4]
#[test]
fn tempered_steps_are_not_accelerated() -> Result<(), FitError> {
    fn check<M: Model<f64>>(model: &M, good: bool) {
        let data = counts();
        for &solver in Solver::ALL {
            let mut rng = ChaCha8Rng::seed_from_u64(0);
            let run = model.on(&data).unwrap().solver(solver);
            let ran = run.run(Init::default(), &mut rng);
            let plain = matches!(solver, Solver::Em | Solver::Auto);
            assert_eq!(ran.is_ok(), good || plain, "{solver}");
            if let Err(error) = ran {
                assert!(error.to_string().contains("tempering"), "{solver}: {error}");
            }
        }
    }
    for (power, good) in [(1.0, true), (0.9, false)] {
        check(&Plca::new(2).temper(power), good);
        check(&Plsa::new(2).temper(power), good);
    }
    Ok(())
}

/// What does not go together is refused with its reason.
#[test]
fn settings_that_do_not_go_together() -> Result<(), FitError> {
    let multiplicative = || Plca::new(2).missing(Missing::Multiplicative);
    let prior: Prior<f64> = Arc::new(Dirichlet::symmetric(1.5).unwrap());
    for plca in [
        multiplicative().temper(0.9),
        multiplicative().prior("factor_0", prior),
        multiplicative().freeze("weights"),
        multiplicative().freeze("factor_0").freeze("factor_1"),
        multiplicative().freeze_components("factor_1", [0]),
    ] {
        assert!(matches!(plca.check(), Err(FitError::Conflict { .. })));
    }
    let mut values = vec![1.0; 8];
    values[3] = f64::NAN;
    let data = DenseTensor::masked(vec![2; 3], values, Order::RowMajor).unwrap();
    let error = multiplicative().on(&data).err().unwrap();
    assert!(error.to_string().contains("order 3"), "{error}");
    let plca = Plca::new(2).freeze("factor_3");
    let error = plca.on(&data).err().unwrap();
    assert_eq!(
        error.to_string(),
        "no block is called `factor_3`, expected weights, factor_0, factor_1, factor_2"
    );
    Ok(())
}

/// Each treatment of hidden cells has one form of the update.
#[test]
fn forms_of_masked_updates() {
    for (update, missing, good) in [
        (Update::Sequential, Missing::Multiplicative, true),
        (Update::Simultaneous, Missing::Imputation, true),
        (Update::Sequential, Missing::Imputation, false),
        (Update::Simultaneous, Missing::Multiplicative, false),
    ] {
        let built = Nmf::new(2).update(update).missing(missing).check();
        assert_eq!(built.is_ok(), good, "{update:?}, {missing:?}");
    }
}

/// Priors, each with the iteration from which it is steady, if there is one.
fn priors() -> [(Prior<f64>, Option<usize>); 7] {
    let fading = Schedule::Decreasing { over: 5.0 };
    let fading = Scheduled::new(Dirichlet::symmetric(3.0).unwrap(), fading);
    let clipped = CrossEntropy::groups(&[0, 1], 1.0, 0.0);
    let alike = || CrossEntropy::groups(&[0, 0], 0.0, 1.0).unwrap();
    [
        (Arc::new(Dirichlet::symmetric(3.0).unwrap()), Some(0)),
        (Arc::new(Entropic::new(0.5).unwrap()), Some(0)),
        (Arc::new(Entropic::relative(0.5).unwrap()), None),
        (Arc::new(alike().relative()), None),
        (Arc::new(fading.unwrap()), Some(5)),
        (Arc::new(clipped.unwrap()), None),
        (Arc::new(alike().order(CrossEntropyOrder::Parity)), None),
    ]
}

/// A prior that still changes, or whose step no objective guards, is refused acceleration by name; a settled one is not.
#[test]
fn unsteady_priors_are_not_accelerated() -> Result<(), FitError> {
    fn check<M: Model<f64>>(model: &M, state: &M::State, block: &str, settles: Option<usize>) {
        let data = counts();
        let em = model.bind(&data).unwrap();
        for iteration in 0..8 {
            let at = state.parameters().clone().at_iteration(iteration);
            for solver in [Solver::Squarem, Solver::Parabolic, Solver::Momentum] {
                let mut steps = solver.on(&*em, Memory::default()).unwrap();
                let refused = steps.step(&mut at.clone(), true).err();
                let steady = settles.is_some_and(|settles| iteration >= settles);
                let expected = (!steady).then(|| FitError::Unsteady {
                    block: block.into(),
                    iteration: iteration + 1,
                });
                assert_eq!(refused, expected, "{solver}");
                let run = model.on(&data).unwrap().solver(solver);
                let refused = run.resume(Checkpoint::new(at.clone())).err();
                assert!(steady || refused == expected, "{solver}");
            }
        }
    }
    for (prior, settles) in priors() {
        let plca = Plca::new(2).prior("factor_1", prior.clone());
        check(&plca, &state(), "factor_1", settles);
        let plsa = Plsa::new(2).prior("basis", prior.clone());
        let (basis, mut mixture) = (state().factor(0).clone(), state().factor(1).transpose());
        plca_tensor::normalise_columns(&mut mixture);
        let state = PlsaState::new(Given::Columns, basis, mixture, vec![1.0 / 3.0; 3])?;
        check(&plsa, &state, "basis", settles);
        let shifted = Shifted::new(2, vec![4, 1]).prior("impulses", prior);
        check(&shifted, &shifted_state()?, "impulses", settles);
    }
    Ok(())
}
