//! Runs: their starts, their ends, and what they tell.

use plca_fit::seed;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use nalgebra::{DMatrix, dmatrix};
use plca_fit::{
    Algorithm, Checkpoint, Event, Fit, FitError, Init, Iteration, Need, Observer, Parameters, Run,
    Solver, Status, Stop, StopError,
    blocks::{BlockSpec, Constraint, Draw, Frozen, Prior},
    em::{Em, Stepped},
};
use plca_priors::{Dirichlet, Entropic, SimplexPrior};
use plca_tensor::DenseTensor;

use super::counts::{PlcaCounts, data, scaled, solvers};

type Blocks = Parameters<f64>;

fn on(data: &DenseTensor<f64>) -> Run<'_, Blocks> {
    Run::new(Box::new(Em(PlcaCounts::new(data, 3))))
}

fn exactly(n: usize) -> Stop {
    Stop::default().max_iter(n).tol(None)
}

fn fit(run: Run<'_, Blocks>) -> Fit<Blocks> {
    run.run(Init::default(), &mut seed(8)).unwrap()
}

/// A run is the iterations of its algorithm from the drawn start; the last point of its trace is its end.
#[test]
fn a_run_is_its_iterations() {
    let data = data();
    let em = Em(PlcaCounts::new(&data, 3));
    let mut at = Init::default().parameters(&em, &mut seed(8)).unwrap();
    let end = fit(on(&data)
        .solver(Solver::Em)
        .stop(exactly(25).check_every(5)));
    let mut trace = Vec::new();
    for iteration in 0..25 {
        let value = em.step(&mut at, true).unwrap().value.unwrap();
        if iteration % 5 == 0 {
            trace.push((iteration, value));
        }
    }
    trace.push((25, em.objective(&at).unwrap()));
    assert_eq!(end.state(), &at);
    let points = end.trace().iter().map(|p| (p.iteration, p.objective));
    assert_eq!(points.collect::<Vec<_>>(), trace);
    assert_eq!(end.objective(), trace[5].1);
    assert_eq!(
        (end.iterations(), end.status()),
        (25, &Status::MaxIterations)
    );
    assert!(end.events().is_empty());
}

/// Interrupted anywhere, by an observer or by its limit, and resumed: the same bits, the same trace, the same end, for every solver.
#[test]
fn resumed_runs_have_the_same_bits_and_the_same_end() {
    let data = data();
    let stop = Stop::default()
        .tol(1e-5)
        .check_every(4)
        .patience(2)
        .max_iter(400);
    for solver in solvers() {
        let whole = fit(on(&data).solver(solver).stop(stop.clone()));
        assert_eq!(whole.status(), &Status::Converged, "{solver}");
        for cut in [1, 4, 6, whole.iterations() - 1, whole.iterations()] {
            let interrupt = move |it: &Iteration<'_, f64>| match it.done() == cut {
                true => ControlFlow::Break(Status::Interrupted),
                false => ControlFlow::Continue(()),
            };
            let run = || on(&data).solver(solver).stop(stop.clone());
            let part = fit(run().observe(interrupt));
            assert_eq!(
                (part.status(), part.iterations()),
                (&Status::Interrupted, cut)
            );
            let rest = run().resume(part.checkpoint().clone()).unwrap();
            assert_eq!(rest.state(), whole.state(), "{solver}, {cut}");
            assert_eq!(rest.status(), whole.status(), "{solver}, {cut}");
            assert_eq!(rest.iterations(), whole.iterations());
            let mut trace = part.trace().to_vec();
            // The end of a part is measured for its user, and again by the next part if it is a check.
            trace.pop();
            trace.extend(rest.trace());
            assert_eq!(trace, whole.trace(), "{solver}, {cut}");
            let short = fit(on(&data).solver(solver).stop(stop.clone().max_iter(cut)));
            let rest = run().resume(short.checkpoint().clone()).unwrap();
            assert_eq!(rest.state(), whole.state(), "{solver}, {cut}");
        }
    }
}

/// The tolerance is one of the change per iteration and unit: data ten times as large end after as many iterations, and so do checks
/// ten times as rare, up to the next check.
#[test]
fn the_tolerance_is_per_iteration_and_unit() {
    let (one, ten) = (data(), scaled(10.0));
    for tol in [1e-3, 1e-5, 1e-7] {
        let stop = Stop::default().tol(tol).check_every(1).max_iter(10_000);
        let iterations =
            |data, stop: &Stop| fit(on(data).solver(Solver::Em).stop(stop.clone())).iterations();
        let n = iterations(&one, &stop);
        assert!(n.abs_diff(iterations(&ten, &stop)) <= 1, "{tol}");
        let rare = iterations(&one, &stop.check_every(10));
        assert!(rare + 1 >= n && rare <= n + 20, "{tol}: {n}, {rare}");
    }
}

/// A check that finds a change ends a series of small ones: with patience, a run ends later and at a better state.
#[test]
fn patience_counts_checks_in_a_row() {
    let data = data();
    let ends = |patience: usize| {
        let stop = Stop::default().tol(1e-4).check_every(2).patience(patience);
        fit(on(&data).solver(Solver::Em).stop(stop)).iterations()
    };
    assert_eq!(ends(1) + 6, ends(4));
}

/// Each test ends a run alone, or all do at once.
#[test]
fn tests_end_a_run_alone_or_together() {
    let data = data();
    let stop = Stop::default().check_every(5).max_iter(20_000);
    let end = |stop: Stop| fit(on(&data).solver(Solver::Em).stop(stop));
    let near = end(stop.clone().tol(None).residual_tol(1e-4));
    let small = end(stop.clone().tol(1e-7));
    assert_eq!(near.status(), &Status::Stationary);
    assert_eq!(small.status(), &Status::Converged);
    let residual = |fit: &Fit<Blocks>| {
        let em = Em(PlcaCounts::new(&data, 3));
        em.residual(fit.state()).unwrap()
    };
    assert!(residual(&near) <= 1e-4 && near.iterations() > 5);
    let any = end(stop.clone().tol(1e-7).residual_tol(1e-4));
    assert_eq!(any.iterations(), near.iterations().min(small.iterations()));
    let all = end(stop.tol(1e-7).residual_tol(1e-4).need(Need::All));
    assert!(residual(&all) <= 1e-4);
    assert!(all.iterations() + 5 >= near.iterations().max(small.iterations()));
}

/// A limit of no time ends a run after one iteration, with a status that is a warning.
#[test]
fn the_time_limit_ends_a_run_between_iterations() {
    let data = data();
    let end = fit(on(&data).stop(exactly(1000).time_limit(Duration::ZERO)));
    assert_eq!((end.iterations(), end.status()), (1, &Status::TimeLimit));
    assert!(end.status().is_warning());
}

/// All observers see every iteration, also after one of them has ended the run; the first one's status counts.
#[test]
fn observers_see_every_iteration() {
    struct Seen<'a>(&'a RefCell<Vec<(usize, bool)>>);
    impl Observer<f64> for Seen<'_> {
        fn on_iteration(&mut self, it: &Iteration<'_, f64>) -> ControlFlow<Status> {
            self.0.borrow_mut().push((it.done(), it.measured.is_some()));
            assert_eq!(it.parameters(), it.checkpoint().parameters());
            assert_eq!(it.parameters().iteration(), it.done());
            assert_eq!(it.iteration + 1, it.done());
            if let Some(point) = it.measured {
                assert_eq!(point.iteration, it.iteration);
            }
            ControlFlow::Continue(())
        }
    }
    let data = data();
    let seen = RefCell::default();
    let at_three = |why: &'static str| {
        move |it: &Iteration<'_, f64>| match it.done() < 3 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(Status::Custom(why.into())),
        }
    };
    let run = on(&data).solver(Solver::Em).stop(exactly(9).check_every(2));
    let end = fit(run
        .observe(at_three("one"))
        .observe(at_three("two"))
        .observe(Seen(&seen)));
    assert_eq!(end.status().to_string(), "one");
    assert_eq!(seen.into_inner(), [(1, true), (2, false), (3, true)]);
}

/// What is given is taken, and changes nothing of what is drawn; a state is a start.
#[test]
fn starts_are_given_or_drawn() {
    let data = data();
    let em = Em(PlcaCounts::new(&data, 3));
    let start = |init: Init<f64>| init.parameters(&em, &mut seed(8)).unwrap();
    let drawn = start(Init::default());
    let given = DMatrix::from_fn(4, 3, |i, z| (1 + i + z) as f64);
    let init = start(Init::default().block("factor_1", given.clone()));
    for (name, block) in init.blocks().filter(|(name, _)| *name != "factor_1") {
        assert_eq!(Some(block), drawn.block(name), "{name}");
    }
    let mut shares = given.clone();
    plca_tensor::normalise_columns(&mut shares);
    assert!((init.block("factor_1").unwrap() - shares).amax() < 1e-15);
    assert_eq!(start(Init::from(&drawn)), drawn);
    let huge = start(Init::default().block("factor_1", given * 1e307));
    assert!((huge.at(2) - init.at(2)).amax() < 1e-15);

    let refused = |init: Init<f64>| init.parameters(&em, &mut seed(8)).unwrap_err().to_string();
    assert_eq!(
        refused(Init::default().block("w", dmatrix![1.0])),
        "no block is called `w`, expected weights, factor_0, factor_1, factor_2"
    );
    assert_eq!(
        refused(Init::default().block("weights", dmatrix![1.0])),
        "`weights` is 1x1, expected 3x1"
    );
    let mut empty = DMatrix::from_element(5, 3, 1.0);
    empty.column_mut(2).fill(0.0);
    let message = refused(Init::default().block("factor_0", empty));
    assert!(
        message.contains("`factor_0`") && message.contains("column 2"),
        "{message}"
    );
    let mut blind = DMatrix::from_element(5, 3, 1.0);
    blind.row_mut(1).fill(0.0);
    let message = refused(Init::default().block("factor_0", blind));
    assert!(message.contains("[1, 0, 0]"), "{message}");
}

/// What is frozen must be given; what sums to 1 then keeps its bits.
#[test]
fn frozen_blocks_are_given() {
    let data = data();
    let mut counts = PlcaCounts::new(&data, 3);
    counts.specs[1].frozen = Frozen::Whole;
    let em = Em(counts);
    let error = Init::default().parameters(&em, &mut seed(8)).unwrap_err();
    assert!(matches!(error, FitError::NotGiven { .. }) && error.to_string().contains("`factor_0`"));
    let mut given = DMatrix::from_fn(5, 3, |i, z| ((3 * i + z) as f64).sqrt() + 0.1);
    plca_tensor::normalise_columns(&mut given);
    let at = Init::default().block("factor_0", given.clone());
    assert_eq!(at.parameters(&em, &mut seed(8)).unwrap().at(1), &given);
}

/// `Even` is the same for all components; `Around` stays within a half of its value.
#[test]
fn draws_are_what_they_say() {
    let data = data();
    let mut counts = PlcaCounts::new(&data, 3);
    counts.specs[0].draw = Draw::Even;
    let at = Init::default()
        .parameters(&Em(counts), &mut seed(8))
        .unwrap();
    assert!(at.at(0).iter().all(|&x| x == 1.0 / 3.0));
    assert!(at.at(1).column(0) != at.at(1).column(1));
    let mut rates = PlcaCounts::new(&data, 3);
    for spec in &mut rates.specs {
        (spec.constraint, spec.draw) = (Constraint::NonNegative, Draw::Around(8.0));
    }
    let at = Init::default()
        .parameters(&Em(rates), &mut seed(8))
        .unwrap();
    let all = || at.blocks().flat_map(|(_, block)| block.iter());
    assert!(all().all(|&x| (4.0..=12.0).contains(&x)));
    assert!(all().any(|&x| x < 7.0) && all().any(|&x| x > 9.0));
}

/// Numbers that mean nothing are refused before the first step, and so is a residual that does not exist.
#[test]
fn impossible_rules_are_refused() {
    let data = data();
    let refused = |stop: Stop| {
        on(&data)
            .stop(stop)
            .run(Init::default(), &mut seed(8))
            .unwrap_err()
    };
    for (stop, name) in [
        (Stop::default().tol(-1.0), "tol"),
        (Stop::default().residual_tol(f64::NAN), "residual_tol"),
        (Stop::default().check_every(0), "check_every"),
        (Stop::default().patience(0), "patience"),
    ] {
        let error = refused(stop);
        let named = matches!(
            error,
            FitError::Stop(StopError::Tolerance { .. } | StopError::Zero { .. })
        );
        assert!(named && error.to_string().contains(name), "{error}");
    }
    let prior: Arc<dyn SimplexPrior<f64>> = Arc::new(Entropic::new(1.0).unwrap());
    let mut counts = PlcaCounts::new(&data, 3);
    counts.specs[2].prior = Some(Prior::Simplex(prior));
    let run = Run::<Blocks>::new(Box::new(Em(counts)));
    let run = run.stop(Stop::default().residual_tol(1e-3));
    let error = run.run(Init::default(), &mut seed(8)).unwrap_err();
    let no = matches!(error, FitError::NoResidual { .. });
    assert!(no && error.to_string().contains("`factor_1`"), "{error}");
}

/// A checkpoint of other blocks is not taken.
#[test]
fn checkpoints_of_other_blocks_are_refused() {
    let data = data();
    let other: Checkpoint<f64> = {
        let run = Run::<Blocks>::new(Box::new(Em(PlcaCounts::new(&data, 2))));
        fit(run.stop(exactly(2))).checkpoint().clone()
    };
    let error = on(&data).resume(other).unwrap_err();
    assert!(matches!(error, FitError::Checkpoint { .. }), "{error}");
}

/// A prior that empties what a positive cell needs: 1e-12 is added, and the run says so.
#[test]
fn restored_support_is_an_event() {
    // So few counts that some rows have less than one, which this prior takes away.
    let data = scaled(0.02);
    let prior: Arc<dyn SimplexPrior<f64>> = Arc::new(Dirichlet::symmetric(0.01).unwrap());
    let mut counts = PlcaCounts::new(&data, 1);
    counts.specs[1].prior = Some(Prior::Simplex(prior));
    let run = Run::<Blocks>::new(Box::new(Em(counts)));
    let end = fit(run.solver(Solver::Em).stop(exactly(10)));
    let Some(Event::SupportRestored { block, iteration }) = end.events().first() else {
        panic!("no event: {:?}", end.state());
    };
    assert_eq!(block, "factor_0");
    assert!((1..=10).contains(iteration));
}

/// An algorithm may say that nothing is left to do; the run then ends, and does not go on when resumed.
#[test]
fn settled_runs_end() {
    #[derive(Debug)]
    struct Settles<'a>(Em<PlcaCounts<'a>>);
    impl Algorithm<f64> for Settles<'_> {
        fn blocks(&self) -> &[BlockSpec<f64>] {
            Algorithm::blocks(&self.0)
        }
        fn step(&self, at: &mut Blocks, measure: bool) -> Result<Stepped, FitError> {
            self.0.step(at, measure)
        }
        fn objective(&self, at: &Blocks) -> Result<f64, FitError> {
            self.0.objective(at)
        }
        fn unit(&self) -> f64 {
            1.0
        }
        fn extrapolates(&self, _: &Blocks) -> Result<(), FitError> {
            Ok(())
        }
        fn settled(&self, at: &Blocks) -> bool {
            at.iteration() >= 4
        }
    }
    let data = data();
    let run = || Run::<Blocks>::new(Box::new(Settles(Em(PlcaCounts::new(&data, 3)))));
    let end = fit(run().solver(Solver::Em));
    assert_eq!((end.iterations(), end.status()), (4, &Status::Settled));
    let again = run()
        .solver(Solver::Em)
        .resume(end.checkpoint().clone())
        .unwrap();
    assert_eq!((again.iterations(), again.state()), (4, end.state()));
}

/// Starts are drawn one after the other from one generator; the result is the best of their ends, and observers know which start they see.
#[test]
fn the_best_of_several_starts_is_the_result() {
    let data = data();
    let run = || on(&data).solver(Solver::Em).stop(exactly(20));
    let mut draws = seed(8);
    let ends: Vec<_> = (0..4)
        .map(|_| run().run(Init::default(), &mut draws).unwrap())
        .collect();
    let best = ends
        .iter()
        .max_by(|a, b| a.objective().total_cmp(&b.objective()))
        .unwrap();
    let seen = RefCell::new(Vec::new());
    let note = |it: &Iteration<'_, f64>| {
        seen.borrow_mut().push((it.start, it.done()));
        ControlFlow::Continue(())
    };
    let fit = run()
        .restarts(4)
        .observe(note)
        .run(Init::default(), &mut seed(8))
        .unwrap();
    assert_eq!(fit.state(), best.state());
    assert_eq!(fit.trace(), best.trace());
    let all: Vec<_> = (0..4).flat_map(|s| (1..=20).map(move |i| (s, i))).collect();
    assert_eq!(*seen.borrow(), all);
    let error = run()
        .restarts(0)
        .run(Init::default(), &mut seed(8))
        .unwrap_err();
    assert!(error.to_string().contains("`restarts`"), "{error}");
    let stop = |it: &Iteration<'_, f64>| match it.start {
        1 => ControlFlow::Break(Status::Interrupted),
        _ => ControlFlow::Continue(()),
    };
    let cut = run()
        .restarts(4)
        .observe(stop)
        .run(Init::default(), &mut seed(8))
        .unwrap();
    assert_eq!(cut.state(), ends[0].state());
}

/// A run that ends while a later start is computed still has the best of the starts before it.
#[test]
fn a_start_that_is_cut_leaves_the_best_of_those_before() {
    struct Ending(u32);
    impl Observer<f64> for Ending {
        fn on_iteration(&mut self, _: &Iteration<'_, f64>) -> ControlFlow<Status> {
            ControlFlow::Continue(())
        }

        fn on_start(&mut self, _: usize, _: usize) -> ControlFlow<Status> {
            match self.0.checked_sub(1) {
                Some(rest) => self.0 = rest,
                None => return ControlFlow::Break(Status::Interrupted),
            }
            ControlFlow::Continue(())
        }
    }
    let data = data();
    let fit = |starts: u32, ending: u32| {
        let run = on(&data).solver(Solver::Em).stop(exactly(20));
        let run = run.restarts(starts).observe(Ending(ending));
        run.run(Init::default(), &mut seed(8))
    };
    let whole = fit(2, 2).unwrap();
    assert_eq!(fit(4, 2).unwrap().state(), whole.state());
    assert_eq!(fit(4, 0).map(drop), Err(FitError::Interrupted));
}
