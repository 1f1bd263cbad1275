//! Problems on which one of the laws was broken once.

use plca::l2::NtfUpdate;
use plca::nalgebra::DMatrix;
use plca::prelude::*;
use plca::priors::PriorSpec;
use plca::skellam::{Entries, Prior, Replicates, ShiftedSnmf, SignedCp, Snmf};
use plca::tensor::Order;
use plca::tensor::strategies::Table;
use plca::{
    priors::Gamma,
    skellam::{KMeans, SnmfVb},
    tensor::Real,
};

fn table<T: Real>(shape: &[usize], values: &[f64], hidden: &[usize], unit: f64) -> Table<T> {
    let value = |&v: &f64| T::lit(T::lit(v).to_f64() * unit);
    Table {
        shape: shape.to_vec(),
        values: values.iter().map(value).collect(),
        observed: (0..values.len()).map(|at| !hidden.contains(&at)).collect(),
    }
}

/// The objective after some iterations.
fn end<T: Real, M: Model<T>>(model: &M, data: &dyn Data<T>, run: (Solver, usize, u32, u64)) -> f64 {
    let (solver, iterations, starts, seed) = run;
    let run = model.on(data).unwrap().solver(solver).restarts(starts);
    let run = run.stop(Stop::default().max_iter(iterations));
    let fit = run.run(Init::default(), &mut plca::seed(seed)).unwrap();
    fit.compared()
}

/// Extrapolated runs go on behind their optimum, where the parts of a component drift apart without end: in single precision products of huge and tiny
/// parts are no numbers.
#[test]
fn parts_that_drift_apart_stay_a_product() {
    let values = [2.5828775444442447, 0.0, 0.15392533625872906, 0.0];
    let data = table::<f32>(&[1, 1, 2, 2], &values, &[], 1.0);
    let data = data.unmasked().sparse().unwrap();
    let ntf = Ntf::new(7).update(NtfUpdate::Hals);
    for seed in [16574272722586074187, 1, 2, 3, 4, 5, 6, 7] {
        for solver in [
            Solver::Em,
            Solver::Squarem,
            Solver::Parabolic,
            Solver::Momentum,
        ] {
            for iterations in [24, 26, 100] {
                let run = ntf.on(&data).unwrap().solver(solver);
                let run = run.stop(Stop::default().tol(None).max_iter(iterations));
                let fit = run.run(Init::default(), &mut plca::seed(seed)).unwrap();
                let end = fit.objective();
                assert!(end < 1e-10, "{seed}, {solver}, {iterations}: {end}");
            }
        }
    }
}

/// Coordinates that hardly show in any cell, and a floor in no unit.
#[test]
fn coordinates_without_a_slope_stay() {
    let values = [
        0.0, 0.0, 0.0, 0.05, 8.7, 2.0, 8.0, 0.0, 0.0, 7.0, 0.0, 6.8, 0.0, 1.4, 1.0, 0.0, 0.0, 5.0,
        2.0, 1.0, 7.2,
    ];
    let plsa = Plsa::new(5);
    for seed in 0..40 {
        let objective = |unit: f64| {
            let data = table::<f64>(&[3, 7], &values, &[1, 2, 12, 17, 19], unit);
            let run = (Solver::Fast, 15, 1, seed);
            end(&plsa, &data.stored_only().unwrap(), run) / unit
        };
        for unit in [1.1, 1.3, 1.5, 1.7, 1e150] {
            let (one, other) = (objective(1.0), objective(unit));
            assert!((one - other).abs() < 1e-9, "{seed}, {unit}: {one} {other}");
        }
    }
}

/// Components that were nearly all of a cell fall to almost nothing in the first iteration. What the others give the cell keeps its digits: the objective is
/// the same in every unit.
#[test]
fn what_falls_takes_no_digits_with_it() {
    let values = [
        0.0, 9.8, 8.9, 0.0, 0.0, 554.1, 4.6, 1.0, 0.0, 1.0, 0.0, 8.0, 27722.8, 2.0, 3.0, 9.8, 2.0,
        6.8,
    ];
    let plca = Plca::new(3);
    for seed in 0..40 {
        let objective = |unit: f64| {
            let data = table::<f64>(&[6, 3], &values, &[2, 16, 17], unit);
            let data = data.masked(Order::RowMajor).unwrap();
            end(&plca, &data, (Solver::Fast, 2, 1, seed)) / unit
        };
        let one = objective(1.0);
        for unit in [1.1, 1.3, 1.5, 1.7, 1e150] {
            let other = objective(unit);
            assert!(
                (one - other).abs() < 1e-12 * one.abs(),
                "{seed}, {unit}: {one} {other}"
            );
        }
    }
}

/// A slab without data, which rounding must not fill.
#[test]
fn what_rounding_leaves_is_nothing() {
    let mut values = vec![
        0.05, 0.0, 2.0, 1.0, 4.0, 2.0, 5.0, 0.0, 1.0, 4.0, 0.0, 3.2, 0.0, 0.0, 3.4, 0.0, 0.0, 0.0,
        6.8, 0.0, 6.0, 0.0, 10.0, 508.8, 6.3, 8.0, 0.0,
    ];
    values.resize(54, 0.0);
    let ntf = Ntf::new(6).update(NtfUpdate::Hals);
    for seed in 0..40 {
        let objective = |unit: f64| {
            let data = table::<f64>(&[2, 3, 3, 3], &values, &[], unit);
            end(&ntf, &data.sparse().unwrap(), (Solver::Em, 5, 1, seed)) / unit / unit
        };
        for unit in [1.1, 1.3, 1.5, 1.7] {
            let (one, other) = (objective(1.0), objective(unit));
            assert!((one - other).abs() < 1e-3, "{seed}, {unit}: {one} {other}");
        }
    }
}

/// What a model predicts in hidden cells may overflow single precision in a large unit: it must not enter the divergence.
#[test]
fn hidden_cells_do_not_overflow_the_mass() {
    let values = [
        0.0,
        0.0,
        9.40767456343187,
        3.695518612316799,
        4.040482144199279,
        0.012844794807099727,
        0.0,
        0.0,
        0.0,
        0.0,
        6.425358882257482,
        0.0,
        1.0,
        0.0,
        4.251444156544961,
        0.0006003404246979206,
        5.625872270731798,
        38.66129855414839,
        6.0,
        0.0,
        0.0,
        0.0,
        9.609032549478613,
        0.8441892469716824,
        9.398256884076302,
        0.0,
        0.0008735669070973821,
        0.0,
        0.0,
        3.438866536508248,
    ];
    let nmf = Nmf::new(2);
    let unit = 10f64.powf(0.925781701780615 * 30.0);
    let data = table::<f32>(&[5, 6], &values, &[8, 14, 19, 23, 25, 28], unit);
    let run = (Solver::default(), 60, 3, 10794160060888335309);
    let found = end(&nmf, &data.all_but().unwrap(), run) / unit;
    assert!((found - 13.594).abs() < 1e-2, "{found}");
}

/// Counts of hidden cells, which are a difference of sums, must not make a shape negative.
#[test]
fn posteriors_beside_hidden_cells_are_positive() {
    let shape = Entries::All(1.5);
    let prior = Prior {
        plus: shape.clone(),
        minus: shape,
        rate: Entries::All(0.5),
        ..Prior::flat()
    };
    let vb = SnmfVb::new(3).replicates(Replicates::Auto);
    let vb = vb.real_data(true).priors(prior);
    let data = table::<f64>(&[2, 2], &[0.0, -1.0, 0.0, 0.0], &[3], 1e20);
    let data = data.stored_only().unwrap();
    for seed in 0..40 {
        assert!(end(&vb, &data, (Solver::Squarem, 4, 1, seed)).is_finite());
    }
}

/// Where the model is nearly all in hidden cells, what it has in the others is a small difference.
#[test]
fn errors_beside_large_hidden_cells_keep_their_digits() {
    let pntf = Pntf::new(1).normalise(false);
    let values = [0.0, 5.0, 2.0, 0.0];
    let data = table::<f32>(&[2, 2], &values, &[0], 1.0);
    let data = data.all_but().unwrap();
    for seed in 0..40 {
        let run = pntf.on(&data).unwrap().solver(Solver::Momentum);
        let run = run.stop(Stop::default().tol(None).max_iter(37));
        let fit = run.run(Init::default(), &mut plca::seed(seed)).unwrap();
        let at = fit.state().parameters().widened();
        let [rows, columns] = ["factor_0", "factor_1"].map(|name| at.block(name).unwrap());
        let scale = at.block("mass").unwrap()[0] * at.block("weights").unwrap()[0];
        let error: f64 = (1..4)
            .map(|cell| values[cell] - scale * rows[cell / 2] * columns[cell % 2])
            .map(|apart| apart * apart)
            .sum();
        let apart = (fit.objective() - error).abs();
        assert!(apart < 2e-5 * 58.0, "{seed}: {} {error}", fit.objective());
    }
}
/// A small share of large rates, in a unit near the end of single precision.
#[test]
fn small_shares_in_large_units_keep_their_digits() {
    let model = SignedCp::new(4).replicates(Replicates::Auto);
    let model = model.real_data(true).signed_mode(2).scale_mode(Some(1));
    let atoms = DMatrix::from_element(2, 4, 0.5);
    let rows = DMatrix::from_fn(2, 4, |i, z| {
        let small = 0.3f32.powi(12 + z as i32);
        if i == 0 { small } else { 1.0 - small }
    });
    let step = |unit: f64| {
        let data = table::<f32>(&[2, 1, 1], &[0.0, -6e4], &[], unit);
        let data = data.sparse().unwrap();
        let algorithm = model.bind(&data).unwrap();
        let rates = DMatrix::from_fn(1, 4, |_, z| (1e4 * (z + 1) as f64 * unit) as f32);
        let blocks = [("atoms", &atoms), ("factor_0", &rows), ("factor_1", &rates)];
        let init = blocks
            .into_iter()
            .fold(Init::default(), |init, (name, block)| {
                init.block(name, block.clone())
            });
        let mut at = init.parameters(&*algorithm, &mut plca::seed(0)).unwrap();
        algorithm.step(&mut at, false).unwrap();
        at.block("factor_0").unwrap().clone()
    };
    assert_eq!(step(1.0), step(2f64.powi(92)));
}

/// The mass of a model that is nearly all in a hidden cell is fitted to the others: no iteration is worse.
#[test]
fn masses_beside_large_hidden_cells_are_fitted() {
    for storage in 0..2 {
        let table = table::<f64>(&[2, 2], &[0.0, 1.0, 1.0, 1e-8], &[0], 1.0);
        let data: Box<dyn Data<f64>> = match storage {
            0 => Box::new(table.all_but().unwrap()),
            _ => Box::new(table.masked(Order::RowMajor).unwrap()),
        };
        let pntf = Pntf::new(1).normalise(false);
        let column = DMatrix::from_column_slice(2, 1, &[1.0 - 1e-8, 1e-8]);
        let init = Init::default().block("factor_0", column.clone());
        let init = init.block("factor_1", column);
        let init = init.block("weights", DMatrix::from_element(1, 1, 1.0));
        let init = init.block("mass", DMatrix::from_element(1, 1, 1.3e8));
        let run = pntf.on(&*data).unwrap().solver(Solver::Em);
        let run = run.stop(Stop::default().tol(None).max_iter(20).check_every(1));
        let fit = run.run(init, &mut plca::seed(0)).unwrap();
        for pair in fit.trace().windows(2) {
            let [before, after] = [pair[0].objective, pair[1].objective];
            assert!(
                after <= before * (1.0 + 1e-6) + 1e-9,
                "{storage}: {before} {after}"
            );
        }
    }
}

/// A sample's nearest centre is that whatever other samples there are.
#[test]
fn labels_do_not_follow_from_other_samples() {
    let centres = |values: &[f64]| DMatrix::from_row_slice(1, values.len(), values);
    for (centres, samples, label) in [
        (centres(&[1e-20, 2e-20]), vec![2e-20, 1e150], 1.0),
        (centres(&[2e60, 1e60]), vec![1e-100, 1e-100], 1.0),
    ] {
        let model = KMeans::new(2).freeze("centres");
        let data = table::<f64>(&[1, samples.len()], &samples, &[], 1.0);
        let data = data.dense(Order::RowMajor).unwrap();
        let init = Init::default().block("centres", centres);
        let at = model.init(&data, init, &mut plca::seed(0)).unwrap();
        assert_eq!(at.parameters().block("labels").unwrap()[0], label);
    }
}

/// Of starts that are drawn alike the later ones count, too.
#[test]
fn starts_that_coincide_do_not_end_the_others() {
    let model = KMeans::new(1);
    let data = table::<f64>(&[1, 3], &[0.0, 0.0, 1.0], &[], 1.0);
    let data = data.dense(Order::RowMajor).unwrap();
    let run = |starts: u32| {
        let run = model.on(&data).unwrap().restarts(starts);
        run.stop(Stop::default().max_iter(0))
    };
    for seed in 0..40 {
        let mut rng = plca::seed(seed);
        let best = run(4).run(Init::default(), &mut rng).unwrap().objective();
        let mut rng = plca::seed(seed);
        let single = (0..4).map(|_| {
            let fit = run(1).run(Init::default(), &mut rng).unwrap();
            fit.objective()
        });
        assert_eq!(best, single.fold(f64::INFINITY, f64::min), "{seed}");
    }
}

/// Rates that run away under the limit law: a search that goes so far that no step leads on from there is not taken, and the fit goes on.
#[test]
fn rates_that_run_away_do_not_end_a_fit() {
    let data = table::<f32>(&[1, 2], &[6.0, -6.33696347454033], &[], 1.0);
    let data = data.dense(Order::RowMajor).unwrap();
    let snmf = Snmf::new(1).replicates(Replicates::Limit);
    let snmf = snmf.real_data(true);
    for solver in [
        Solver::Em,
        Solver::Squarem,
        Solver::Parabolic,
        Solver::Momentum,
    ] {
        let run = snmf.on(&data).unwrap().solver(solver);
        let run = run.stop(Stop::default().max_iter(60).tol(None));
        let fit = run.run(Init::default(), &mut plca::seed(2203165902244926822));
        let found = fit.unwrap().objective();
        assert!((0.0..1.0).contains(&-found), "{solver}: {found:e}");
    }
}

/// Under a penalty of `h` alone less of `h` and more of `w` is always better. Extrapolation takes `w` far up, and stays where the next steps, and those of
/// a transform by what was learnt, remain numbers.
#[test]
fn rates_that_nothing_holds_stay_numbers() {
    let (one, two) = ([11.0, 0.0], [0.082]);
    let problems = [
        (vec![1, 2], &one[..], vec![1]),
        (vec![1, 1], &two[..], vec![]),
    ];
    let mut largest = 0.0f32;
    for ((shape, values, hidden), prior) in problems.iter().zip(["rate:0.1,0.2", "rate:0.5,0"]) {
        let data = table::<f32>(shape, values, hidden, 0.32287628966238285);
        let data = data.all_but().unwrap();
        let prior: PriorSpec = prior.parse().unwrap();
        let nmf = Nmf::new(2).prior("h", prior);
        for solver in Solver::ALL.iter().filter(|solver| **solver != Solver::Fast) {
            for seed in 0..100 {
                let run = nmf.on(&data).unwrap().solver(*solver);
                let run = run.stop(Stop::default().max_iter(60).tol(None));
                let fit = run.run(Init::default(), &mut plca::seed(seed)).unwrap();
                largest = largest.max(fit.state().w().max());
                let how = Transform::default().along(0).solver(*solver);
                nmf.transform(fit.state(), &data, &how).unwrap();
            }
        }
    }
    assert!(largest > 1e15, "{largest}");
}

/// A datum that the prior of the activations drowns: its rate is not lost, and the fit goes on from its end.
#[test]
fn faint_data_keep_a_rate() {
    let values = [0.0, 6.987051795357397e-37];
    let data = table::<f64>(&[1, 1, 2], &values, &[], 1.0);
    let data = data.masked(Order::RowMajor).unwrap();
    let model = ShiftedSnmf::new(3, vec![1, 1, 2])
        .replicates(Replicates::Limit)
        .prior("activations", Gamma::new(1.5, 0.5).unwrap());
    for solver in [
        Solver::Em,
        Solver::Squarem,
        Solver::Parabolic,
        Solver::Momentum,
    ] {
        let run = |init: Init<f64>| {
            let run = model.on(&data).unwrap().solver(solver);
            let run = run.stop(Stop::default().max_iter(6).tol(None));
            run.run(init, &mut plca::seed(11238177390762092965))
                .unwrap()
        };
        let fit = run(Init::default());
        assert!(fit.objective().is_finite(), "{solver:?}");
        assert!(
            run(fit.state().into()).objective() >= fit.objective() - 1e-12,
            "{solver:?}"
        );
    }
}
