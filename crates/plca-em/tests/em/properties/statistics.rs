//! Expected counts: they keep the mass, and those of blocks add up.

use plca_tensor::strategies::{Start, Table, problems};
use plca_tensor::{Expected, Factor, Model, Observed, Order, SparseTensor, Wanted};
use proptest::prelude::*;

use super::storages::{complete, masked};

fn expect(data: &dyn Observed<f64>, start: &Start<f64>) -> Expected<f64> {
    let factors: Vec<_> = start.factors.iter().map(Factor::Columns).collect();
    let model = Model {
        weights: Some(start.weights.as_slice()),
        factors: &factors,
    };
    let modes = vec![true; factors.len()];
    data.expect(
        &model,
        Wanted {
            modes: &modes,
            ln_lik: true,
        },
    )
}

/// The counts as one list.
fn flat(e: &Expected<f64>) -> Vec<f64> {
    e.counts
        .iter()
        .flatten()
        .flat_map(|c| c.iter().copied())
        .collect()
}

fn split(table: &Table<f64>, first: &[bool]) -> [Table<f64>; 2] {
    [true, false].map(|side| {
        let mut part = table.clone();
        part.values
            .iter_mut()
            .zip(first)
            .filter(|(_, f)| **f != side)
            .for_each(|(v, _)| *v = 0.0);
        part
    })
}

proptest! {
    /// `Σ_i C_j[i,z]` is the same for every mode, and `Σ_z` of it is `v`.
    // [SPEC 1.1]
    #[test]
    fn counts_conserve_mass((table, start) in problems::<f64>(1..=4, 1..=5, 1..=4)) {
        for (name, data) in complete(&table).into_iter().chain(masked(&table)) {
            let e = expect(&*data, &start);
            let n: Vec<_> = e.counts.iter().flatten().map(|c| c.row_sum()).collect();
            prop_assert!((n[0].sum() - data.total()).abs() <= 1e-12 * data.total(), "{name}");
            for other in &n[1..] {
                prop_assert!((other - &n[0]).amax() <= 1e-12 * data.total(), "{name}");
            }
        }
    }

    /// Statistics of blocks of cells, merged, are those of the whole.
    #[test]
    fn blocks_merge(
        ((table, start), first) in problems::<f64>(1..=4, 2..=5, 1..=4).prop_flat_map(|(t, s)| {
            let cells = t.values.len();
            (Just((t, s)), prop::collection::vec(any::<bool>(), cells))
        }),
    ) {
        let parts = split(&table, &first);
        prop_assume!(parts.iter().all(|p| p.values.iter().any(|&v| v > 0.0)));
        let (whole, total) = (expect(&table.dense(Order::RowMajor).unwrap(), &start), table.values.iter().sum::<f64>());
        let sparse = |t: &Table<f64>| -> SparseTensor<f64> { t.sparse().unwrap() };
        let mut merged = expect(&sparse(&parts[0]), &start);
        merged.merge(&expect(&parts[1].dense(Order::RowMajor).unwrap(), &start));
        for (a, b) in flat(&merged).iter().zip(flat(&whole)) {
            prop_assert!((a - b).abs() <= 1e-13 * total, "{a} instead of {b}");
        }
        prop_assert!((merged.ln_lik - whole.ln_lik).abs() <= 1e-12 * (total + whole.ln_lik.abs()));
        // Half of the data has not the statistics of the whole.
        let half = expect(&sparse(&parts[0]), &start);
        prop_assert!((flat(&half).iter().sum::<f64>() - flat(&whole).iter().sum::<f64>()).abs() > 1e-9);
    }
}
