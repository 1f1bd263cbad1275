//! Quadratic sparsity.

use nalgebra::DMatrix;
use plca_fit::{FitError, Init, Model};
use plca_tensor::strategies::{Table, real_table_of_shape};
use plca_tensor::{Data, DenseTensor, Order, Real};
use pntf_l2::{Pntf, PntfState, Settings};
use proptest::prelude::*;

use crate::support::{exactly, objective, residual, rng};

/// `F` by its definition, from all observed cells.
fn by_definition(table: &Table<f64>, total: f64, state: &PntfState<f64>, mu: &[f64]) -> f64 {
    let cell = |index: &[usize]| {
        let products = (0..state.weights().len()).map(|z| {
            let factors = state.factors().iter().zip(index);
            state.weights()[z] * factors.map(|(u, &i)| u[(i, z)]).product::<f64>()
        });
        state.mass() * products.sum::<f64>()
    };
    let seen = (0..table.values.len()).filter(|&at| table.observed[at]);
    let errors = seen.map(|at| (table.values[at] / total - cell(&table.index(at))).powi(2));
    let columns = state.factors().iter().zip(&mu[1..]).map(|(u, mu)| {
        let columns = u.column_iter().zip(state.weights());
        mu * columns.map(|(u, w)| w * u.norm_squared()).sum::<f64>()
    });
    let weights: f64 = state.weights().iter().map(|w| w * w).sum();
    errors.sum::<f64>() - 2.0 * (columns.sum::<f64>() + mu[0] * weights)
}

fn model(k: usize, mu: &[f64], kept: bool) -> Pntf {
    let mut pntf = Pntf::new(k).sparsity("weights", mu[0]);
    for (j, &mu) in mu[1..].iter().enumerate() {
        pntf = pntf.sparsity(format!("factor_{j}"), mu);
    }
    if kept {
        pntf = pntf.freeze_components("weights", [0]);
        pntf = pntf.freeze_components("factor_1", [1]);
    }
    pntf
}

/// `F` after every sweep.
fn objectives<T: Real>(data: &dyn Data<T>, model: &Pntf, seed: u64) -> (Vec<f64>, PntfState<T>) {
    let algorithm = model.bind(data).unwrap();
    let free = Pntf::new(model.components());
    let start = free.init(data, Init::default(), &mut rng(seed)).unwrap();
    let mut at = Init::from(&start)
        .parameters(&*algorithm, &mut rng(seed))
        .unwrap();
    let mut values = vec![algorithm.objective(&at).unwrap()];
    for _ in 0..12 {
        let measured = algorithm.step(&mut at, true).unwrap().value.unwrap();
        assert!((measured - values.last().unwrap()).abs() < 1e3 * T::EPSILON.to_f64());
        values.push(algorithm.objective(&at).unwrap());
    }
    (values, plca_fit::State::wrap(at).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// No sweep raises `F`, which is its definition, with hidden cells and frozen components too.
    #[test]
    fn no_sweep_raises_the_objective(
        table in real_table_of_shape::<f64>(vec![4, 3, 2]),
        mu in prop::collection::vec(prop_oneof![Just(0.0), 0.0..0.05f64, Just(0.3)], 4),
        (hidden, kept, seed) in (any::<bool>(), any::<bool>(), any::<u64>()),
    ) {
        let mut table = table;
        if !hidden {
            table.observed.fill(true);
        }
        let data = table.masked(Order::RowMajor).unwrap();
        prop_assume!(data.total() > 0.0);
        let (values, state) = objectives(&data, &model(3, &mu, kept), seed);
        for pair in values.windows(2) {
            prop_assert!(pair[1] <= pair[0] + 1e-13, "{pair:?}");
        }
        let want = by_definition(&table, data.total(), &state, &mu);
        prop_assert!((values[12] - want).abs() < 1e-12, "{} {want}", values[12]);
        let single = Table {
            shape: table.shape.clone(),
            values: table.values.iter().map(|&x| x as f32).collect(),
            observed: table.observed.clone(),
        };
        let single = single.masked(Order::RowMajor).unwrap();
        let (values, _) = objectives(&single, &model(3, &mu, kept), seed);
        for pair in values.windows(2) {
            prop_assert!(pair[1] <= pair[0] + 2e-5, "{pair:?}");
        }
    }
}

/// A fit ends where a projected step leads nowhere, and frozen components keep their bits.
#[test]
fn the_residual_is_small_where_nothing_moves() {
    let values = (0..30).map(|n| f64::from((7 * n) % 11) + 0.5);
    let data = DenseTensor::new(vec![6, 5], values.collect(), Order::RowMajor).unwrap();
    let model = model(3, &[0.001, 0.002, 0.0], true);
    let run = model.on(&data).unwrap().stop(exactly(4000));
    let free = Pntf::new(3);
    let start = free.init(&data, Init::default(), &mut rng(3)).unwrap();
    let start = Init::from(&start).block(
        "weights",
        DMatrix::from_column_slice(3, 1, &[0.2, 0.3, 0.5]),
    );
    let fit = run.run(start, &mut rng(3)).unwrap();
    assert_eq!(fit.state().weights()[0], 0.2);
    assert!(residual(&model, &data, fit.state()) < 1e-9);
    assert_eq!(objective(&model, &data, fit.state()), fit.objective());
}

#[test]
fn other_blocks_and_weights_are_refused() {
    let data = DenseTensor::new(vec![2, 2], vec![1.0, 2.0, 3.0, 4.0], Order::RowMajor).unwrap();
    for name in ["mass", "factor_2", "w"] {
        let pntf = Pntf::new(1).sparsity(name, 0.1);
        let refused = pntf.bind(&data).map(drop).unwrap_err();
        assert!(matches!(refused, FitError::UnknownBlock { name: n, .. } if n == name));
    }
    for mu in [-1.0, f64::NAN, f64::INFINITY] {
        let refused = Pntf::new(1).sparsity("factor_0", mu).check();
        assert!(matches!(
            refused,
            Err(FitError::Setting {
                name: "sparsity",
                ..
            })
        ));
    }
}
