//! Components and entries that are frozen beside free ones.

use nalgebra::DMatrix;
use plca_em::{Given, Nmf, Plca, Plsa, Shifted, Update};
use plca_fit::{
    FitError, Init, Model, Solver,
    blocks::{Axes, BlockSpec, Frozen, Prior},
    setting::Freeze,
};
use plca_priors::{Dirichlet, Entropic, SimplexPrior};
use plca_tensor::{DenseTensor, Order};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;
use std::sync::Arc;

use crate::support::{cases, exactly, floats, near, whole};

const GOLDEN: &str = include_str!("../../../testdata/golden/frozen_components.json");

/// A block; one of more than two dimensions holds a component in every array.
fn block(v: &Value) -> DMatrix<f64> {
    match whole(&v["shape"])[..] {
        [rows] => DMatrix::from_row_slice(rows, 1, &floats(&v["data"])),
        [rows, columns] => DMatrix::from_row_slice(rows, columns, &floats(&v["data"])),
        [k, ref cells @ ..] => {
            DMatrix::from_column_slice(cells.iter().product(), k, &floats(&v["data"]))
        }
        [] => panic!("{v}"),
    }
}

fn flags(v: &Value) -> DMatrix<bool> {
    block(v).map(|x| x != 0.0)
}

/// The names of our blocks for those of the file.
fn ours(name: &str) -> &str {
    match name {
        "pz" => "weights",
        name => name,
    }
}

/// The blocks of a point or a start, by our names.
fn blocks(v: &Value) -> Vec<(String, DMatrix<f64>)> {
    let mut found = Vec::new();
    for (name, value) in v.as_object().unwrap() {
        match value.as_array() {
            Some(factors) => {
                let factors = factors.iter().enumerate();
                found.extend(factors.map(|(j, f)| (format!("factor_{j}"), block(f))));
            }
            None if value["data"].is_array() => found.push((ours(name).into(), block(value))),
            None => {}
        }
    }
    found
}

fn prior(v: &Value) -> Arc<dyn SimplexPrior<f64>> {
    match v["entropic"].as_f64() {
        Some(beta) => Arc::new(Entropic::new(beta).unwrap()),
        None => Arc::new(Dirichlet::per_entry(block(&v["dirichlet"])).unwrap()),
    }
}

fn frozen<B: Freeze>(mut model: B, case: &Value) -> B {
    for (name, mask) in case["frozen"].as_object().into_iter().flatten() {
        model = model.frozen(ours(name), Frozen::Entries(flags(mask)));
    }
    for (name, list) in [("w", "frozen_columns_w"), ("h", "frozen_rows_h")] {
        if case[list]["data"].is_array() {
            let kept = floats(&case[list]["data"]).into_iter().enumerate();
            let kept = kept.filter(|(_, x)| *x != 0.0).map(|(z, _)| z);
            model = model.frozen(name, Frozen::Components(kept.collect()));
        }
    }
    model
}

fn trajectory<M: Model<f64>>(model: &M, case: &Value, objective: &str) {
    let name = case["name"].as_str().unwrap();
    let data = DenseTensor::new(
        whole(&case["V"]["shape"]),
        floats(&case["V"]["data"]),
        Order::RowMajor,
    )
    .unwrap();
    let algorithm = model.bind(&data).unwrap();
    let given = blocks(&case["init"]).into_iter();
    let start = given.fold(Init::default(), |init, (name, block)| {
        init.block(name, block)
    });
    let mut at = start
        .parameters(&*algorithm, &mut ChaCha8Rng::seed_from_u64(0))
        .unwrap();
    let first = at.clone();
    let (tol, mut done) = (case["tolerance"].as_f64().unwrap_or(1e-11), 0);
    for point in case["trajectory"].as_array().unwrap() {
        while done < point["iter"].as_u64().unwrap() {
            algorithm.step(&mut at, false).unwrap();
            done += 1;
        }
        let what = format!("{name} after {done}");
        for (block, want) in blocks(point) {
            let got = at.block(&block).unwrap();
            assert_eq!(got.shape(), want.shape());
            for (got, want) in got.iter().zip(want.iter()) {
                near(&format!("{what}, {block}"), *got, *want, tol);
            }
        }
        near(
            &what,
            algorithm.objective(&at).unwrap(),
            point[objective].as_f64().unwrap(),
            tol,
        );
    }
    for (j, spec) in algorithm.blocks().iter().enumerate() {
        if let Frozen::Entries(flags) = &spec.frozen {
            let entries = first.at(j).iter().zip(at.at(j)).zip(flags);
            assert!(
                entries.filter(|(_, kept)| **kept).all(|((a, b), _)| a == b),
                "{name}"
            );
        }
    }
}

// [EXT 1]
#[test]
fn trajectories_match_the_reference() {
    let mut checked = 0;
    for case in cases(GOLDEN) {
        let k = case["K"].as_u64().unwrap_or(0) as usize;
        let priors = case["prior"].as_object().into_iter().flatten();
        match case["model"].as_str().unwrap() {
            "plca" => {
                let mut model = frozen(Plca::new(k), &case);
                for (name, spec) in priors {
                    model = model.prior(name, prior(spec));
                }
                trajectory(&model, &case, "log_posterior");
            }
            "plsa" => {
                let mut model = frozen(Plsa::new(k).given(Given::Columns), &case);
                for (name, spec) in priors {
                    model = model.prior(name, prior(spec));
                }
                trajectory(&model, &case, "log_posterior");
            }
            "siplca" => {
                let kernel = whole(&case["init"]["kernels"]["shape"])[1..].to_vec();
                let model = frozen(Shifted::new(k, kernel), &case);
                trajectory(&model, &case, "loglik");
            }
            "nmf-kl" => {
                let update = match case["update"].as_str().unwrap() {
                    "sequential" => Update::Sequential,
                    _ => Update::Simultaneous,
                };
                let model = frozen(Nmf::new(k).update(update), &case);
                trajectory(&model, &case, "kl");
            }
            _ => {
                let counts = block(&case["counts"]);
                let mut spec = BlockSpec::simplex("factor", counts.shape(), Axes::factor(0));
                spec.frozen = Frozen::Entries(flags(&case["frozen"]));
                if case["prior"].is_object() {
                    spec.prior = Some(Prior::Simplex(prior(&case["prior"])));
                }
                spec.check().unwrap();
                let theta = block(&case["theta"]);
                let (new, _) = spec.m_step(counts.clone(), &theta, None, 1).unwrap();
                let want = block(&case["theta_new"]);
                for (z, column) in new.column_iter().enumerate() {
                    if case["name"] == "mstep_entropic" && z == 0 {
                        // The stored column is stationary for a strength of 1.45395, not for 1.5 times the free mass, 1.28164: it is below the
                        // maximum of the objective that the file names.
                        let value = |theta: &[f64]| {
                            let entries = counts.column(0).into_iter().zip(theta);
                            entries.map(|(c, t)| (c + 1.5 * t) * t.ln()).sum::<f64>()
                        };
                        let gain = value(column.as_slice()) - value(want.column(0).as_slice());
                        assert!(gain > 3e-6, "{gain}");
                        continue;
                    }
                    for (got, want) in column.iter().zip(want.column(z).iter()) {
                        near(case["name"].as_str().unwrap(), *got, *want, 1e-12);
                    }
                }
            }
        }
        checked += 1;
    }
    assert_eq!(checked, 12);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// No step of any solver lowers the posterior, and frozen entries keep their bits, also where cells are hidden.
    #[test]
    fn steps_are_monotone(
        values in prop::collection::vec(0u8..6, 24),
        flags in prop::collection::vec(any::<bool>(), 3 * (4 + 3 + 2 + 1)),
        (dirichlet, hidden, seed) in (any::<bool>(), any::<bool>(), any::<u64>()),
    ) {
        let mut values: Vec<f64> = values.into_iter().map(|x| f64::from(x) + 0.5).collect();
        if hidden {
            values[5] = f64::NAN;
        }
        let data = DenseTensor::masked(vec![4, 3, 2], values, Order::RowMajor).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let start = Plca::new(3).init(&data, Init::default(), &mut rng).unwrap();
        let mut model = Plca::new(3);
        let (mut from, mut kept) = (0, Vec::new());
        for (name, rows, columns) in
            [("factor_0", 4, 3), ("factor_1", 3, 3), ("factor_2", 2, 3), ("weights", 3, 1)]
        {
            let size = rows * columns;
            let flags = DMatrix::from_column_slice(rows, columns, &flags[from..from + size]);
            from += size;
            if dirichlet {
                model = model.prior(name, Dirichlet::symmetric(1.5).unwrap());
            }
            model = model.freeze_entries(name, flags.clone());
            kept.push((name, flags));
        }
        for solver in [Solver::Em, Solver::Squarem, Solver::Parabolic, Solver::Momentum] {
            let mut last = f64::NEG_INFINITY;
            let run = model.on(&data).unwrap().solver(solver);
            let fit = run.stop(exactly(12).check_every(1)).run(&start, &mut rng).unwrap();
            for point in fit.trace() {
                prop_assert!(point.objective >= last - 1e-12 * last.abs(), "{solver}: {point:?}");
                last = point.objective;
            }
            for (name, flags) in &kept {
                let (old, new) = (plca_fit::State::parameters(&start), plca_fit::State::parameters(fit.state()));
                let entries = old.block(name).unwrap().iter().zip(new.block(name).unwrap());
                for ((old, new), &frozen) in entries.zip(flags) {
                    prop_assert!(!frozen || old == new, "{name} {solver}");
                }
                for column in new.block(name).unwrap().column_iter() {
                    prop_assert!((column.sum() - 1.0).abs() < 1e-12);
                }
            }
        }
    }
}

/// Flags of another shape than the block.
#[test]
fn flags_of_another_shape_are_refused() {
    let flags = DMatrix::from_column_slice(3, 1, &[true, false, false]);
    let data = DenseTensor::new(vec![3, 2], vec![1.0; 6], Order::RowMajor).unwrap();
    let other = Plca::new(2).freeze_entries("factor_0", flags);
    assert!(matches!(other.bind(&data), Err(FitError::Shape { .. })));
}

/// The start of a column: `given`, its frozen entries, and what comes of it beside a column that is partly frozen.
fn started(given: [f64; 3], frozen: [bool; 3]) -> Result<Vec<f64>, FitError> {
    let entries = DMatrix::from_fn(3, 2, |i, z| z == 0 && i == 0 || z == 1 && frozen[i]);
    let spec = BlockSpec::<f64> {
        frozen: Frozen::Entries(entries),
        ..BlockSpec::simplex("basis", (3, 2), Axes::factor(0))
    };
    let both = DMatrix::from_fn(3, 2, |i, z| {
        if z == 0 {
            [0.25, 0.5, 0.25][i]
        } else {
            given[i]
        }
    });
    let block = spec.given(both)?;
    assert_eq!(block[(0, 0)], 0.25);
    Ok(block.column(1).iter().copied().collect())
}

// [EXT 1]
#[test]
fn given_columns_are_filled_up() {
    // Frozen entries stay, the others share what they leave; without both the column is divided by its sum.
    assert_eq!(
        started([0.5, 3.0, 1.0], [true, false, false]).unwrap(),
        [0.5, 0.375, 0.125]
    );
    assert_eq!(
        started([1.0, 2.0, 1.0], [true; 3]).unwrap(),
        [0.25, 0.5, 0.25]
    );
    assert_eq!(
        started([1.0, 2.0, 1.0], [false; 3]).unwrap(),
        [0.25, 0.5, 0.25]
    );
    assert_eq!(
        started([0.5, 1e308, 1e308], [true, false, false]).unwrap(),
        [0.5, 0.25, 0.25]
    );
    // Nothing is left, or as good as nothing.
    assert_eq!(
        started([1.0, 0.0, 3.0], [true, false, false]).unwrap(),
        [1.0, 0.0, 0.0]
    );
    assert_eq!(
        started([1.0 - 1e-13, 0.0, 0.0], [true, false, false]).unwrap()[1..],
        [0.0, 0.0]
    );
    let error = started([0.75, 0.5, 0.1], [true, true, false]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("frozen entries of column 1 of `basis` sum to 1.25"),
        "{error}"
    );
    let empty = started([0.5, 0.0, 0.0], [true, false, false]);
    assert!(matches!(empty, Err(FitError::Empty { column: 1, .. })));
}
