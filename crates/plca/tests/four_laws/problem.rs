//! Random problems.

use std::ops::RangeInclusive;

use plca::prelude::*;
use plca::tensor::DataError;
use plca::tensor::Real;
use plca::tensor::strategies::Table;
use proptest::prelude::*;

/// The data that a model takes.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) orders: RangeInclusive<usize>,
    /// Some cells may be hidden.
    pub(crate) masks: bool,
    /// Cells have either sign.
    pub(crate) signed: bool,
}

impl Kind {
    pub(crate) const fn counts(orders: RangeInclusive<usize>) -> Self {
        Self {
            orders,
            masks: true,
            signed: false,
        }
    }

    pub(crate) const fn signed(orders: RangeInclusive<usize>) -> Self {
        Self {
            signed: true,
            ..Self::counts(orders)
        }
    }

    pub(crate) const fn complete(mut self) -> Self {
        self.masks = false;
        self
    }
}

/// How data are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Storage {
    Dense,
    ColumnMajor,
    Sparse,
    Masked,
    StoredOnly,
    AllBut,
}

impl Storage {
    pub(crate) fn hides(self) -> bool {
        matches!(self, Self::Masked | Self::StoredOnly | Self::AllBut)
    }
}

/// A problem; every number of it shrinks to the plainest.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// In single precision.
    pub(crate) single: bool,
    /// The data in a unit of their own.
    pub(crate) table: Table<f64>,
    /// That unit: from -1, the smallest of the scalar, to 1, the largest.
    pub(crate) unit: f64,
    pub(crate) storage: Storage,
    pub(crate) components: usize,
    pub(crate) solver: Solver,
    pub(crate) iterations: usize,
    pub(crate) starts: u32,
    pub(crate) seed: u64,
    /// What a model makes its settings of; 0 is the default of each.
    choices: [u8; 8],
}

impl Problem {
    /// A number below `n` for the setting `which`.
    pub(crate) fn choice(&self, which: usize, n: usize) -> usize {
        usize::from(self.choices[which]) % n
    }

    /// The same problem with the default of some settings.
    pub(crate) fn without(&self, choices: &[usize]) -> Self {
        let mut plain = self.clone();
        choices.iter().for_each(|&which| plain.choices[which] = 0);
        plain
    }

    /// The same problem with this choice of a setting.
    pub(crate) fn with(mut self, which: usize, choice: u8) -> Self {
        self.choices[which] = choice;
        self
    }

    /// The unit that the data are in, at most this many powers of ten away from 1.
    pub(crate) fn power_of_ten(&self, most: [f64; 2]) -> f64 {
        10f64.powf(self.unit * most[usize::from(self.single)])
    }

    /// The data in a scalar, times a number.
    pub(crate) fn table<T: Real>(&self, unit: f64) -> Table<T> {
        let table = Table {
            shape: self.table.shape.clone(),
            values: self
                .table
                .values
                .iter()
                .map(|&v| T::lit(v * unit))
                .collect(),
            observed: self.table.observed.clone(),
        };
        match self.storage.hides() {
            true => table,
            false => table.unmasked(),
        }
    }
}

/// A table in the storage of a problem.
pub(crate) fn stored<T: Real>(
    table: &Table<T>,
    storage: Storage,
) -> Result<Box<dyn Data<T>>, DataError> {
    Ok(match storage {
        Storage::Dense => Box::new(table.dense(Order::RowMajor)?),
        Storage::ColumnMajor => Box::new(table.dense(Order::ColumnMajor)?),
        Storage::Sparse => Box::new(table.sparse()?),
        Storage::Masked => Box::new(table.masked(Order::RowMajor)?),
        Storage::StoredOnly => Box::new(table.stored_only()?),
        Storage::AllBut => Box::new(table.all_but()?),
    })
}

/// Often 0, a small count, a number near 1, or one many orders of magnitude away.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => Just(0.0),
        3 => (1..9u8).prop_map(f64::from),
        4 => 0.05..10.0,
        1 => (-6.0..6.0).prop_map(|e| 10f64.powf(e)),
    ]
}

fn shape(orders: RangeInclusive<usize>) -> impl Strategy<Value = Vec<usize>> {
    orders.prop_flat_map(|order| {
        let most = [16usize, 7, 4, 3][order - 1];
        prop_oneof![
            8 => prop::collection::vec(1..=most, order),
            // Longer than the lanes of a kernel.
            1 => (prop::collection::vec(1..=2usize, order - 1), 1..=40usize).prop_map(|(mut shape, n)| {
                shape.push(n);
                shape
            }),
        ]
    })
}

/// Data of a shape, of which an observed cell is not 0.
fn table(shape: Vec<usize>, signed: bool) -> impl Strategy<Value = Table<f64>> {
    let cells = shape.iter().product::<usize>();
    let values = prop_oneof![
        12 => prop::collection::vec(value(), cells),
        4 => prop::collection::vec((0..12u8).prop_map(f64::from), cells),
        1 => (1..4u8).prop_map(move |v| vec![f64::from(v); cells]),
        1 => (0..cells, value()).prop_map(move |(at, v)| {
            let mut one = vec![0.0; cells];
            one[at] = v;
            one
        }),
    ];
    let empty = prop::option::weighted(0.25, (0..shape.len(), 0..1000usize));
    (
        values,
        prop::collection::vec(prop::bool::weighted(0.25), cells),
        prop::collection::vec(prop::bool::weighted(if signed { 0.5 } else { 0.0 }), cells),
        empty,
        0..cells,
    )
        .prop_map(move |(values, hidden, negative, empty, positive)| {
            let mut table = Table {
                shape: shape.clone(),
                values,
                observed: hidden.into_iter().map(|hidden| !hidden).collect(),
            };
            if let Some((mode, at)) = empty {
                let at = at % shape[mode];
                for cell in 0..cells {
                    if table.index(cell)[mode] == at {
                        table.values[cell] = 0.0;
                    }
                }
            }
            let mut seen = table.values.iter().zip(&table.observed);
            if !seen.any(|(v, seen)| *seen && *v != 0.0) {
                table.values[positive] = 1.0;
                table.observed[positive] = true;
            }
            for (v, negative) in table.values.iter_mut().zip(negative) {
                if negative {
                    *v = 0.0 - *v;
                }
            }
            table
        })
}

/// Problems for a model of this kind.
pub(crate) fn problems(kind: Kind) -> impl Strategy<Value = Problem> {
    let storages = match kind.masks {
        true => 6,
        false => 3,
    };
    let storage = prop::sample::select(
        &[
            Storage::Dense,
            Storage::ColumnMajor,
            Storage::Sparse,
            Storage::Masked,
            Storage::StoredOnly,
            Storage::AllBut,
        ][..storages],
    );
    let run = (
        prop::sample::select(Solver::ALL),
        prop_oneof![6 => 0..8usize, 1 => 8..40usize],
        1..=3u32,
        any::<u64>(),
    );
    (
        prop::bool::weighted(0.35),
        shape(kind.orders).prop_flat_map(move |shape| table(shape, kind.signed)),
        prop_oneof![2 => Just(0.0), 1 => -1.0..1.0],
        storage,
        prop_oneof![5 => 1..=3usize, 1 => 4..=7usize],
        run,
        any::<[u8; 8]>(),
    )
        .prop_map(|(single, table, unit, storage, components, run, choices)| {
            let (solver, iterations, starts, seed) = run;
            Problem {
                single,
                table,
                unit,
                storage,
                components,
                solver,
                iterations,
                starts,
                seed,
                choices,
            }
        })
}
