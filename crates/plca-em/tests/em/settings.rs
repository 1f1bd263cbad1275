//! What settings make of a step and of its measures: hidden cells, frozen blocks, tempering with acceleration.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector, dmatrix};
use plca_em::{
    Algorithm, Carried, EmError, Missing, Momentum, Parabolic, ParamError, PlcaInit, PlsaInit,
    Prior, Shifted, ShiftedState, Squarem, Update,
    before::{Nmf, Plca, PlcaState, Plsa, PlsaState},
};
use plca_priors::{CrossEntropy, CrossEntropyOrder, Dirichlet, Entropic, Schedule, Scheduled};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

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
    PlcaState {
        weights: DVector::from_vec(vec![0.3, 0.7]),
        factors: vec![
            dmatrix![0.1, 0.3; 0.2, 0.4; 0.3, 0.2; 0.4, 0.1],
            dmatrix![0.2, 0.5; 0.3, 0.3; 0.5, 0.2],
        ],
        power: 1.0,
        iteration: 0,
    }
}

/// Masked updates do not depend on the unit of the data, and a row that was not seen keeps its place in the model: the first
/// update leaves it as it was, but for the common normalisation.
#[test]
fn masked_updates_have_no_scale() -> Result<(), EmError> {
    let plca = Plca::builder(2).missing(Missing::Multiplicative).build()?;
    let after = |data: &dyn Data<f64>, steps: usize| -> Result<_, EmError> {
        let mut state = state();
        let em = plca.on(data)?;
        for _ in 0..steps {
            em.step(&mut state, false)?;
        }
        Ok(state)
    };
    for steps in [1, 20] {
        let want = after(&*hidden(1.0)[0], steps)?;
        for scale in [1e-3, 1.0, 1e3] {
            for data in hidden(scale) {
                let got = after(&*data, steps)?;
                assert!((&got.weights - &want.weights).amax() <= 1e-12, "{scale}");
                for (got, want) in got.factors.iter().zip(&want.factors) {
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
    let p =
        &start.factors[0] * DMatrix::from_diagonal(&start.weights) * start.factors[1].transpose();
    let s = data.total() / cells(&|i, j| p[(i, j)]);
    let nmf = Nmf::builder(2).missing(Missing::Multiplicative).build()?;
    let em = nmf.on::<f64>(&**data)?;
    let mut product = plca_em::before::NmfState {
        w: &start.factors[0] * DMatrix::from_diagonal(&start.weights) * s,
        h: start.factors[1].transpose(),
    };
    for _ in 0..20 {
        em.step(&mut product, false)?;
    }
    let (image, got) = (product.to_plca()?, after(&**data, 20)?);
    for (image, got) in image.factors.iter().zip(&got.factors) {
        assert!((image - got).amax() <= 1e-12, "{image} {got}");
    }
    Ok(())
}

/// Whatever is frozen, the residual is far from 0 before EM and goes to 0 under it.
#[test]
fn residuals_of_frozen_blocks() -> Result<(), EmError> {
    let data = counts();
    for frozen in 0..7 {
        let mut builder = Plca::builder(2);
        if frozen & 1 != 0 {
            builder = builder.freeze_weights();
        }
        for j in (0..2).filter(|j| frozen & (2 << j) != 0) {
            builder = builder.freeze_factor(j);
        }
        let plca = builder.build()?;
        let em = plca.on(&data)?;
        let mut state = state();
        let before = em.residual(&state)?.unwrap();
        assert!(before > 1e-2, "frozen {frozen:b}: {before}");
        let mut after = before;
        for _ in 0..300 {
            for _ in 0..100 {
                em.step(&mut state, false)?;
            }
            after = em.residual(&state)?.unwrap();
            if after <= 1e-4 {
                break;
            }
        }
        assert!(after <= 1e-4, "frozen {frozen:b}: {after}");
    }
    Ok(())
}

/// With everything frozen nothing can be better.
#[test]
fn residual_without_freedom() -> Result<(), EmError> {
    let plca = Plca::builder(2).freeze_weights().freeze_factor(0);
    let plca = plca.freeze_factor(1).build()?;
    assert_eq!(plca.on(&counts())?.residual(&state())?, Some(0.0));
    Ok(())
}

/// The likelihood is no guard for tempered steps, which may lower it.
// [SPEC 1.4]
#[test]
fn tempered_steps_are_not_accelerated() -> Result<(), EmError> {
    let (data, mut rng) = (counts(), ChaCha8Rng::seed_from_u64(0));
    for (power, accelerable) in [(1.0, true), (0.9, false)] {
        let plca = Plca::builder(2).temper(power).build()?;
        let start = plca.init(&data, &PlcaInit::default(), &mut rng)?;
        let squarem = Squarem(plca.on(&data)?).step(&mut start.clone(), true);
        let parabolic = Parabolic(plca.on(&data)?).step(&mut Carried::new(start), true);
        let plsa = Plsa::builder(2).temper(power).build()?;
        let mut start = plsa.init(&data, &PlsaInit::default(), &mut rng)?;
        let of_plsa = Squarem(plsa.on(&data)?).step(&mut start, true);
        for step in [squarem, parabolic, of_plsa] {
            assert_eq!(step.is_ok(), accelerable);
            if let Err(e) = step {
                assert!(matches!(e, EmError::Param(ParamError::Conflict(_))), "{e}");
            }
        }
    }
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
        let built = Nmf::builder(2).update(update).missing(missing).build();
        assert_eq!(built.is_ok(), good, "{update:?}, {missing:?}");
    }
}

/// A prior that still changes, or whose step no objective guards, is refused acceleration by name; a settled one is not.
#[test]
fn unsteady_priors_are_not_accelerated() -> Result<(), EmError> {
    let data = counts();
    let fading = Schedule::Decreasing { over: 5.0 };
    let fading: Prior<f64> =
        Arc::new(Scheduled::new(Dirichlet::symmetric(3.0).unwrap(), fading).unwrap());
    let clipped: Prior<f64> = Arc::new(CrossEntropy::groups(&[0, 1], 1.0, 0.0).unwrap());
    let alternating: Prior<f64> = Arc::new(
        CrossEntropy::groups(&[0, 0], 0.0, 1.0)
            .unwrap()
            .order(CrossEntropyOrder::Parity),
    );
    let relative: Prior<f64> = Arc::new(Entropic::relative(0.5).unwrap());
    let alike: Prior<f64> = Arc::new(CrossEntropy::groups(&[0, 0], 0.0, 1.0).unwrap().relative());
    let steady: Prior<f64> = Arc::new(Dirichlet::symmetric(3.0).unwrap());
    let counted: Prior<f64> = Arc::new(Entropic::new(0.5).unwrap());
    for (prior, settles) in [
        (&steady, Some(0)),
        (&counted, Some(0)),
        (&relative, None),
        (&alike, None),
        (&fading, Some(5)),
        (&clipped, None),
        (&alternating, None),
    ] {
        let plca = Plca::builder(2).factor_prior(1, prior.clone()).build()?;
        let plsa = Plsa::builder(2).basis_prior(prior.clone()).build()?;
        let shifted = Shifted::builder(2, vec![4, 1]).impulses_prior(prior.clone());
        let shifted = shifted.build()?;
        for iteration in 0..8 {
            let mut of_plca = state();
            of_plca.iteration = iteration;
            let mut of_plsa = PlsaState {
                basis: of_plca.factors[0].clone(),
                mixture: of_plca.factors[1].transpose(),
                power: 1.0,
                iteration,
            };
            plca_tensor::normalise_columns(&mut of_plsa.mixture);
            let mut of_shifted = ShiftedState {
                weights: of_plca.weights.clone(),
                kernels: of_plca.factors[0].clone(),
                impulses: of_plca.factors[1].clone(),
                iteration,
            };
            let steps = [
                (
                    Squarem(plca.on(&data)?).step(&mut of_plca.clone(), true),
                    "factor_1",
                ),
                (
                    Parabolic(plca.on(&data)?).step(&mut Carried::new(of_plca.clone()), true),
                    "factor_1",
                ),
                (
                    Momentum(plca.on(&data)?).step(&mut Carried::new(of_plca), true),
                    "factor_1",
                ),
                (Squarem(plsa.on(&data)?).step(&mut of_plsa, true), "basis"),
                (
                    Squarem(shifted.on(&data)?).step(&mut of_shifted, true),
                    "impulses",
                ),
            ];
            for (step, block) in steps {
                let steady = settles.is_some_and(|settles| iteration >= settles);
                match step {
                    Ok(_) => assert!(steady, "{block} at {iteration}"),
                    Err(e) => {
                        assert!(!steady, "{block} at {iteration}");
                        let (block, iteration) = (block.into(), iteration + 1);
                        assert_eq!(e, EmError::Unsteady { block, iteration });
                    }
                }
            }
        }
    }
    Ok(())
}
