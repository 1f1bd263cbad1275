//! Nothing but the data decides: not names, not order, not scale, not storage, not threads.

use plca_fit::laws::{Law, check_threads};
use plca_tensor::strategies::{self, Start, Table, problems};
use plca_tensor::{Coordinates, Data, Order, Real, SparseTensor};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::conditions::{
    Precision, agree, any_scale_is_carried, components_are_alike, modes_are_alike, path,
    power_of_two_is_carried, rows_are_alike,
};
use super::setups::Setup;
use super::storages::{Storage, complete, masked};

/// One storage of each kind of kernel and mask.
fn storages<T: Real>() -> [(&'static str, Box<Storage<T>>); 5] {
    [
        (
            "dense",
            Box::new(|t| Box::new(t.dense(Order::RowMajor).unwrap())),
        ),
        ("sparse", Box::new(|t| Box::new(t.sparse().unwrap()))),
        (
            "masked",
            Box::new(|t| Box::new(t.masked(Order::ColumnMajor).unwrap())),
        ),
        (
            "all but hidden",
            Box::new(|t| Box::new(t.all_but().unwrap())),
        ),
        (
            "stored only",
            Box::new(|t| Box::new(t.stored_only().unwrap())),
        ),
    ]
}

fn failed(setup: Setup, storage: &str) -> impl Fn(TestCaseError) -> TestCaseError {
    move |e| TestCaseError::fail(format!("{setup:?}, {storage}: {e}"))
}

/// Problems with a permutation of components, a mode with a permutation of its indices, and one of the modes.
fn renamed<T: Real>() -> impl Strategy<Value = (Table<T>, Start<T>, Names)> {
    problems::<T>(1..=4, 1..=5, 1..=4).prop_flat_map(|(table, start)| {
        let shape = table.shape.clone();
        let order = shape.len();
        let rows = (0..order).prop_flat_map(move |m| (Just(m), strategies::permutations(shape[m])));
        let components = strategies::permutations(start.weights.len());
        let names = (components, rows, strategies::permutations(order));
        (Just(table), Just(start), names)
    })
}

type Names = (Vec<usize>, (usize, Vec<usize>), Vec<usize>);

fn names_do_not_matter<T: Precision>(
    table: &Table<T>,
    start: &Start<T>,
    (components, (mode, rows), modes): &Names,
) -> Result<(), TestCaseError> {
    for (name, storage) in storages::<T>() {
        let setups = Setup::all(table.shape.len()).into_iter();
        for setup in setups.filter(Setup::is_smooth) {
            let method = setup.method();
            let failed = failed(setup, name);
            let data = storage(table);
            for start in &path(&method, &*data, start) {
                components_are_alike(&method, &*data, start, components).map_err(&failed)?;
                rows_are_alike(&method, &*storage, (table, start), (*mode, rows))
                    .map_err(&failed)?;
                if setup.has_no_first_mode() {
                    modes_are_alike(&method, &*storage, (table, start), modes).map_err(&failed)?;
                }
            }
        }
    }
    Ok(())
}

fn scale_does_not_matter<T: Precision>(
    (table, start): &(Table<T>, Start<T>),
    power: T,
    any: T,
) -> Result<(), TestCaseError> {
    let problem = (table, start);
    for (name, storage) in storages::<T>() {
        let setups = Setup::all(table.shape.len()).into_iter();
        for setup in setups.filter(Setup::has_no_unit) {
            let method = setup.method();
            let failed = failed(setup, name);
            power_of_two_is_carried(&method, &*storage, problem, power).map_err(&failed)?;
            if setup.is_smooth() {
                for start in &path(&method, &*storage(table), start) {
                    any_scale_is_carried(&method, &*storage, (table, start), any)
                        .map_err(&failed)?;
                }
            }
        }
    }
    Ok(())
}

fn storages_agree<T: Precision>(
    (table, start): &(Table<T>, Start<T>),
) -> Result<(), TestCaseError> {
    let setups = Setup::all(table.shape.len()).into_iter();
    for setup in setups.filter(Setup::is_smooth) {
        for kinds in [complete(table), masked(table)] {
            for start in &path(&setup.method(), &*kinds[0].1, start) {
                let run = |data: &dyn Data<T>| setup.run(data, start, 1);
                let want = run(&*kinds[0].1);
                for (name, data) in &kinds[1..] {
                    agree(Law::Same, &run(&**data), &want, data.total())
                        .map_err(failed(setup, name))?;
                }
            }
        }
    }
    Ok(())
}

/// A problem that is cut into many groups; the same on every run.
fn large<T: Real>(shape: Vec<usize>, components: usize) -> (Table<T>, Start<T>) {
    let mut runner = TestRunner::deterministic();
    let start = strategies::starts(&shape, components).new_tree(&mut runner);
    let table = strategies::table_of_shape(shape).new_tree(&mut runner);
    (table.unwrap().current(), start.unwrap().current())
}

fn threads<T: Precision>() {
    for shape in [
        vec![320, 301],
        vec![23, 31, 29],
        vec![9001],
        vec![9, 11, 13, 15],
    ] {
        let (table, start) = large::<T>(shape, 5);
        for (name, storage) in storages::<T>() {
            let data = storage(&table);
            for setup in Setup::all(table.shape.len()) {
                check_threads(|| setup.run(&*data, &start, 3))
                    .unwrap_or_else(|e| panic!("{setup:?}, {name}: {e}"));
            }
        }
    }
}

#[test]
fn one_thread_is_many_f64() {
    threads::<f64>();
}

#[test]
fn one_thread_is_many_f32() {
    threads::<f32>();
}

/// Every entry in three parts that add up exactly, in some order.
fn in_parts<T: Real>(table: &Table<T>, order: &[usize]) -> Coordinates<T> {
    let whole = table.coordinates(|at| table.values[at] > T::zero());
    let modes = table.shape.len();
    let parts = [0.5, 0.25, 0.25].map(T::lit);
    let mut entries: Vec<(usize, T)> = (parts.iter())
        .flat_map(|&part| whole.values.iter().map(move |&v| v * part).enumerate())
        .collect();
    entries.sort_by_key(|&(at, _)| order[at]);
    Coordinates {
        indices: (entries.iter())
            .flat_map(|&(at, _)| whole.indices[at * modes..(at + 1) * modes].to_vec())
            .collect(),
        values: entries.iter().map(|e| e.1).collect(),
        shape: whole.shape,
    }
}

fn duplicates_add_up<T: Precision>(
    (table, start): &(Table<T>, Start<T>),
    order: &[usize],
) -> Result<(), TestCaseError> {
    let parts = SparseTensor::new(in_parts(table, order)).unwrap();
    let whole = table.sparse().unwrap();
    prop_assert_eq!(whole.summary().nnz, parts.summary().nnz);
    for setup in Setup::all(table.shape.len()) {
        let run = |data: &SparseTensor<T>| setup.run(data, start, 3);
        prop_assert_eq!(run(&whole), run(&parts), "{:?}", setup);
    }
    Ok(())
}

/// Problems with an order of their cells.
fn shuffled<T: Real>() -> impl Strategy<Value = ((Table<T>, Start<T>), Vec<usize>)> {
    problems::<T>(1..=4, 1..=5, 1..=4).prop_flat_map(|p| {
        let cells = p.0.values.len();
        (Just(p), strategies::permutations(cells))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Permuting components, indices or modes permutes the result.
    #[test]
    fn names_f64((table, start, names) in renamed::<f64>()) {
        names_do_not_matter(&table, &start, &names)?;
    }

    /// As for `f64`.
    #[test]
    fn names_f32((table, start, names) in renamed::<f32>()) {
        names_do_not_matter(&table, &start, &names)?;
    }

    /// `2^e V`, nearly subnormal to nearly overflowing, changes no bit; other scales, to rounding.
    // [SPEC 1.2]
    #[test]
    fn scale_f64(
        p in problems::<f64>(1..=4, 1..=5, 1..=4), power in strategies::scales(), any in 1e-3..1e3f64,
    ) {
        scale_does_not_matter(&p, power, any)?;
    }

    /// As for `f64`.
    // [SPEC 1.2]
    #[test]
    fn scale_f32(
        p in problems::<f32>(1..=4, 1..=5, 1..=4), power in strategies::scales(), any in 1e-3..1e3f32,
    ) {
        scale_does_not_matter(&p, power, any)?;
    }

    /// Dense = sparse = fully observed mask; the three ways to hide cells are one.
    // [SPEC 1.3]
    #[test]
    fn storages_f64(p in problems::<f64>(1..=4, 1..=6, 1..=4)) {
        storages_agree(&p)?;
    }

    /// As for `f64`.
    // [SPEC 1.3]
    #[test]
    fn storages_f32(p in problems::<f32>(1..=4, 1..=6, 1..=4)) {
        storages_agree(&p)?;
    }

    /// Stored entries of one cell add up.
    // [SPEC 1.3]
    #[test]
    fn duplicates_f64((p, order) in shuffled::<f64>()) {
        duplicates_add_up(&p, &order)?;
    }

    /// As for `f64`.
    // [SPEC 1.3]
    #[test]
    fn duplicates_f32((p, order) in shuffled::<f32>()) {
        duplicates_add_up(&p, &order)?;
    }
}
