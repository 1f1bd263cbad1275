//! A step of the engine is that of its blocks, and keeps what is frozen.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_fit::{
    Algorithm as _, FitError, Parameters, Solver,
    blocks::{Frozen, Prior},
    em::{Em, Expectation as _, Wanted},
    solver::Memory,
};
use plca_priors::{Dirichlet, Entropic, LogisticNormal, Schedule, Scheduled, SimplexPrior, Step};

use super::counts::{PlcaCounts, data, solvers, start};

/// An iteration is the M-step of every block by its prior, or the normalised counts, at its iteration; the value has the log-densities.
/// What is frozen stays, and what is restored has 1e-12 more.
#[test]
fn an_iteration_is_the_steps_of_its_blocks() {
    let data = data();
    let sparse: Arc<dyn SimplexPrior<f64>> = Arc::new(Entropic::new(3.0).unwrap());
    let clipping: Arc<dyn SimplexPrior<f64>> = Arc::new(Dirichlet::symmetric(0.4).unwrap());
    let fading = Scheduled::new(
        Entropic::new(2.0).unwrap(),
        Schedule::Decreasing { over: 9.0 },
    );
    let fading: Arc<dyn SimplexPrior<f64>> = Arc::new(fading.unwrap());
    let mut cases = vec![None];
    for prior in [sparse, clipping, fading] {
        cases.extend((0..4).map(|j| Some((j, prior.clone()))));
    }
    for (case, prior) in cases.iter().enumerate() {
        for frozen in [None, Some(0), Some(2)] {
            let mut counts = PlcaCounts::new(&data, 3);
            if let Some((j, prior)) = prior {
                counts.specs[*j].prior = Some(Prior::Simplex(prior.clone()));
            }
            if let Some(j) = frozen {
                counts.specs[j].frozen = Frozen::Whole;
            }
            let em = Em(counts);
            let mut at = start(&data, 3);
            for iteration in 1..=15 {
                let step = Step::at(iteration);
                let wanted = Wanted {
                    blocks: &[true; 4],
                    value: true,
                    count_unit: 1.0,
                };
                let mut expected = em.0.expect(&at, &wanted).unwrap();
                let before = at.clone();
                let stepped = em.step(&mut at, true).unwrap();
                for j in 0..4 {
                    let mut counts = expected.blocks[j].take().unwrap();
                    let prior = prior.as_ref().filter(|(of, _)| *of == j);
                    let mut want = before.at(j).clone();
                    if let Some((_, prior)) = prior {
                        expected.value = expected.value.map(|v| v + prior.ln_density(&want, &step));
                    }
                    match prior {
                        _ if frozen == Some(j) => {}
                        Some((_, prior)) => prior.update(&counts, &mut want, &step).unwrap(),
                        None => {
                            plca_tensor::normalise_columns(&mut counts);
                            want = counts;
                        }
                    }
                    if stepped.restored.contains(&j) {
                        let sum = 1.0 + 1e-12 * want.nrows() as f64;
                        want.apply(|q| *q = (*q + 1e-12) / sum);
                    }
                    assert_eq!(
                        at.at(j),
                        &want,
                        "case {case}, frozen {frozen:?}, {iteration}"
                    );
                }
                assert_eq!(stepped.value, expected.value, "case {case}");
            }
            assert_eq!(at.iteration(), 15);
        }
    }
}

/// Extrapolation stays within the simplex, and leaves frozen blocks and components their bits.
#[test]
fn solvers_keep_what_is_frozen() {
    let data = data();
    let mut counts = PlcaCounts::new(&data, 3);
    counts.specs[0].frozen = Frozen::Components(vec![1]);
    counts.specs[1].frozen = Frozen::Whole;
    counts.specs[2].frozen = Frozen::Components(vec![0]);
    let em = Em(counts);
    let first = start(&data, 3);
    for solver in solvers() {
        let mut at = first.clone();
        let mut steps = solver.on(&em, Memory::default()).unwrap();
        let (mut before, mut free) = (f64::NEG_INFINITY, false);
        for _ in 0..12 {
            steps.step(&mut at, false).unwrap();
            let now = em.objective(&at).unwrap();
            assert!(
                now >= before - 1e-12 * now.abs(),
                "{solver}: {before} became {now}"
            );
            before = now;
            assert_eq!(at.at(0)[1], first.at(0)[1], "{solver}");
            assert_eq!(at.at(1), first.at(1), "{solver}");
            assert_eq!(at.at(2).column(0), first.at(2).column(0), "{solver}");
            free |= at.at(2).column(1) != first.at(2).column(1);
            for (name, block) in at.blocks() {
                let sums = block.row_sum();
                let near = sums.iter().all(|s| (s - 1.0).abs() < 1e-13);
                assert!(
                    near && block.iter().all(|&x| x >= 0.0),
                    "{solver}, {name}: {sums}"
                );
            }
        }
        assert!(free, "{solver}");
    }
}

/// A prior that still changes is named with its block; a name that no solver has, with those that there are.
#[test]
fn solvers_say_why_they_refuse() {
    let data = data();
    let mut counts = PlcaCounts::new(&data, 3);
    let fading = Scheduled::new(
        Entropic::new(2.0).unwrap(),
        Schedule::Decreasing { over: 9.0 },
    );
    counts.specs[2].prior = Some(Prior::Simplex(Arc::new(fading.unwrap())));
    let em = Em(counts);
    let first = start(&data, 3);
    for solver in solvers() {
        let mut at = first.clone();
        let mut steps = solver.on(&em, Memory::default()).unwrap();
        let stepped = steps.step(&mut at, true);
        if matches!(solver, Solver::Em | Solver::Auto) {
            assert!(stepped.is_ok());
            continue;
        }
        let expected = FitError::Unsteady {
            block: "factor_1".into(),
            iteration: 1,
        };
        assert_eq!(stepped, Err(expected), "{solver}");
        assert_eq!(at, first, "{solver}");
    }
    // Not that it changes: there may be no density at all.
    let refused = FitError::Unsteady {
        block: "factor_1".into(),
        iteration: 1,
    };
    assert_eq!(
        refused.to_string(),
        "the prior on `factor_1` is no constant density from iteration 1 on, so that solvers cannot extrapolate: expected one that is, or the solver em"
    );
    let impossible = FitError::Impossible {
        index: vec![1, 2],
        value: 3.0,
    };
    assert!(
        impossible.to_string().contains("`Impossible::Drop`"),
        "{impossible}"
    );
    let fast = Solver::Fast.on(&em, Memory::default()).unwrap_err();
    assert!(matches!(fast, FitError::NotSeparable { .. }), "{fast}");
    let error = "newton".parse::<Solver>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "no solver is called `newton`, expected em, squarem, parabolic, momentum, fast, auto"
    );
}

/// Frozen components keep their bits in every block; the others are learnt and the columns stay distributions. The likelihood rises.
#[test]
fn frozen_components_keep_their_bits() {
    let data = data();
    let mut counts = PlcaCounts::new(&data, 3);
    counts.specs[0].frozen = Frozen::Components(vec![1]);
    counts.specs[1].frozen = Frozen::Components(vec![0, 2]);
    counts.specs[1].prior = Some(Prior::Simplex(Arc::new(Dirichlet::symmetric(1.5).unwrap())));
    counts.specs[3].frozen = Frozen::Components(vec![2]);
    let em = Em(counts);
    let first = start(&data, 3);
    let mut at = first.clone();
    let mut before = f64::NEG_INFINITY;
    for _ in 0..20 {
        let value = em.step(&mut at, true).unwrap().value.unwrap();
        assert!(
            value >= before - 1e-12 * before.abs(),
            "{before} became {value}"
        );
        before = value;
    }
    assert_eq!(at.at(0)[1], first.at(0)[1]);
    for z in [0, 2] {
        assert_eq!(at.at(1).column(z), first.at(1).column(z));
    }
    assert_eq!(at.at(3).column(2), first.at(3).column(2));
    assert!(at.at(1).column(1) != first.at(1).column(1) && at.at(0)[0] != first.at(0)[0]);
    for (name, block) in at.blocks() {
        let sums = block.row_sum();
        assert!(
            sums.iter().all(|s| (s - 1.0).abs() < 1e-14),
            "{name}: {sums}"
        );
    }
}

/// A prior that fails in the middle of an iteration leaves the parameters as they were.
#[test]
fn a_step_that_fails_changes_nothing() {
    use plca_priors::{PriorError, PriorRules};
    #[derive(Debug)]
    struct FailsAt(usize);
    impl PriorRules for FailsAt {}
    impl SimplexPrior<f64> for FailsAt {
        fn update(
            &self,
            _: &DMatrix<f64>,
            theta: &mut DMatrix<f64>,
            step: &Step<'_>,
        ) -> Result<(), PriorError> {
            theta.fill(0.0);
            match step.iteration == self.0 {
                true => Err(PriorError::Overflow { column: 0 }),
                false => {
                    theta.row_mut(0).fill(1.0);
                    Ok(())
                }
            }
        }
        fn ln_density(&self, _: &DMatrix<f64>, _: &Step<'_>) -> f64 {
            0.0
        }
    }
    let data = data();
    for block in 0..4 {
        let mut counts = PlcaCounts::new(&data, 2);
        counts.specs[block].prior = Some(Prior::Simplex(Arc::new(FailsAt(1))));
        let em = Em(counts);
        let first = start(&data, 2);
        let mut at = first.clone();
        let error = em.step(&mut at, false).unwrap_err();
        assert!(error.rejects_point(), "{error}");
        assert_eq!(at, first);
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let data = data();
    let specs = PlcaCounts::new(&data, 2).specs;
    let good: Vec<DMatrix<f64>> = specs
        .iter()
        .map(|s| DMatrix::from_element(s.shape.0, s.shape.1, 1.0 / s.shape.0 as f64))
        .collect();
    assert!(Parameters::new(&specs, good.clone()).is_ok());
    let says = |blocks: Vec<DMatrix<f64>>| Parameters::new(&specs, blocks).unwrap_err().to_string();
    let with = |at: usize, block: DMatrix<f64>| {
        let mut blocks = good.clone();
        blocks[at] = block;
        says(blocks)
    };
    assert_eq!(
        says(good[..3].to_vec()),
        "3 blocks, expected weights, factor_0, factor_1, factor_2"
    );
    assert_eq!(with(1, good[2].clone()), "`factor_0` is 4x2, expected 5x2");
    let mut bad = good[1].clone();
    (bad[(4, 0)], bad[(2, 1)]) = (-1.0, f64::NAN);
    assert_eq!(
        with(1, bad),
        "`factor_0` has NaN in row 2, column 1, expected a finite number >= 0"
    );
    assert_eq!(
        with(0, DMatrix::from_element(2, 1, 0.6)),
        "column 0 of `weights` sums to 1.2, expected 1"
    );
    let mut spec = specs[0].clone();
    spec.frozen = Frozen::Components(vec![2]);
    assert_eq!(
        spec.check().unwrap_err().to_string(),
        "there is no component 2 in `weights`, which has 2, counted from 0"
    );
    spec.frozen = Frozen::Components(vec![1]);
    assert!(spec.check().is_ok());
    spec.prior = Some(Prior::Simplex(Arc::new(Dirichlet::symmetric(2.0).unwrap())));
    assert!(spec.check().is_ok());
    let zeros = nalgebra::dvector![0.0, 0.0];
    let whole = LogisticNormal::independent(zeros.clone(), &zeros.add_scalar(1.0)).unwrap();
    spec.prior = Some(Prior::Simplex(Arc::new(whole)));
    assert!(matches!(
        spec.check(),
        Err(FitError::FrozenUnderPrior { .. })
    ));
}
