//! Expected counts: they keep the mass, and those of blocks add up.

use nalgebra::DMatrix;
use plca_tensor::strategies::{Start, Table, problems};
use plca_tensor::{Cp, Data, Expected, Factor, Modes, Order, Real, Request, SparseTensor};
use proptest::prelude::*;

use super::conditions::Precision;
use super::storages::{complete, masked};
use super::wide::wide_problems;

pub(crate) fn expect<T: Real>(data: &dyn Data<T>, start: &Start<T>) -> Expected<T> {
    let factors: Vec<_> = start.factors.iter().map(Factor::Columns).collect();
    let model = Cp {
        weights: Some(start.weights.as_slice()),
        factors: &factors,
    };
    let all = Request::counts(Modes::all(factors.len())).value(true);
    data.e_step(&model, &all).unwrap()
}

/// The counts, mode by mode.
pub(crate) fn blocks<T: Real>(e: &Expected<T>) -> impl Iterator<Item = &DMatrix<T>> {
    (0..).map_while(|mode| e.get(mode))
}

/// The counts as one list.
fn flat<T: Real>(e: &Expected<T>) -> Vec<f64> {
    let counts = blocks(e).flat_map(|c| c.iter().map(|x| x.to_f64()));
    counts.collect()
}

fn split<T: Real>(table: &Table<T>, first: &[bool]) -> [Table<T>; 2] {
    [true, false].map(|side| {
        let mut part = table.clone();
        part.values
            .iter_mut()
            .zip(first)
            .filter(|(_, f)| **f != side)
            .for_each(|(v, _)| *v = T::zero());
        part
    })
}

/// `Σ_i C_j[i,z]` of every mode.
fn sums<T: Real>(e: &Expected<T>) -> Vec<Vec<f64>> {
    blocks(e)
        .map(|c| {
            let columns = c.column_iter();
            columns
                .map(|column| column.iter().map(|x| x.to_f64()).sum())
                .collect()
        })
        .collect()
}

fn mass_is_kept<T: Precision>((table, start): &(Table<T>, Start<T>)) -> Result<(), TestCaseError> {
    for (name, data) in complete(table).into_iter().chain(masked(table)) {
        let allowed = T::SAME * data.total();
        let n = sums(&expect(&*data, start));
        let mass: f64 = n[0].iter().sum();
        prop_assert!((mass - data.total()).abs() <= allowed, "{name}");
        for (a, b) in n[1..].iter().flatten().zip(n[0].iter().cycle()) {
            prop_assert!((a - b).abs() <= allowed, "{name}: {a} and {b}");
        }
    }
    Ok(())
}

fn parts_merge<T: Precision>(
    (table, start): &(Table<T>, Start<T>),
    first: &[bool],
) -> Result<(), TestCaseError> {
    let parts = split(table, first);
    prop_assume!(
        parts
            .iter()
            .all(|p| p.values.iter().any(|&v| v > T::zero()))
    );
    let dense = |t: &Table<T>| expect(&t.dense(Order::RowMajor).unwrap(), start);
    let sparse = |t: &Table<T>| -> SparseTensor<T> { t.sparse().unwrap() };
    let total = sparse(table).total();
    let whole = dense(table);
    let mut merged = expect(&sparse(&parts[0]), start);
    merged.merge(&dense(&parts[1])).unwrap();
    for (a, b) in flat(&merged).iter().zip(flat(&whole)) {
        prop_assert!((a - b).abs() <= 0.1 * T::SAME * total, "{a} instead of {b}");
    }
    let allowed = T::FALL * (total + whole.value().abs());
    prop_assert!((merged.value() - whole.value()).abs() <= allowed);
    // One part has the statistics of its own cells, not of the whole.
    let missing = sparse(&parts[1]).total();
    let half = sums(&expect(&sparse(&parts[0]), start));
    let half: f64 = half[0].iter().sum();
    prop_assert!((total - half - missing).abs() <= T::SAME * total);
    Ok(())
}

/// Problems and a choice of cells.
fn halved<T: Real>() -> impl Strategy<Value = ((Table<T>, Start<T>), Vec<bool>)> {
    problems::<T>(1..=4, 2..=5, 1..=4).prop_flat_map(|p| {
        let cells = p.0.values.len();
        (Just(p), prop::collection::vec(any::<bool>(), cells))
    })
}

proptest! {
    /// `Σ_i C_j[i,z]` is the same for every mode, and `Σ_z` of it is `v`.
    // [SPEC 1.1]
    #[test]
    fn counts_conserve_mass_f64(p in problems::<f64>(1..=4, 1..=5, 1..=4)) {
        mass_is_kept(&p)?;
    }

    /// As for `f64`.
    // [SPEC 1.1]
    #[test]
    fn counts_conserve_mass_f32(p in problems::<f32>(1..=4, 1..=5, 1..=4)) {
        mass_is_kept(&p)?;
    }

    /// From starts whose entries differ by many orders of magnitude.
    // [SPEC 1.1]
    #[test]
    fn wide_starts_conserve_mass(
        p in wide_problems::<f64>(1..=4, 1..=5, 1..=4), q in wide_problems::<f32>(1..=4, 1..=5, 1..=4),
    ) {
        mass_is_kept(&p)?;
        mass_is_kept(&q)?;
    }

    /// Statistics of blocks of cells, merged, are those of the whole.
    #[test]
    fn blocks_merge_f64((p, first) in halved::<f64>()) {
        parts_merge(&p, &first)?;
    }

    /// As for `f64`.
    #[test]
    fn blocks_merge_f32((p, first) in halved::<f32>()) {
        parts_merge(&p, &first)?;
    }
}
