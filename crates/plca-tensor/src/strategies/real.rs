//! Data of either sign: for models of signed data, and for those under squared error.

use std::ops::RangeInclusive;

use proptest::prelude::*;

use super::{Start, Table, shapes, slices, starting, table_of_shape};
use crate::Real;

/// Whole numbers of either sign: about a quarter of the cells hidden, perhaps whole slices, perhaps all of them.
///
/// ```
/// use plca_tensor::strategies;
/// use proptest::{strategy::{Strategy, ValueTree}, test_runner::TestRunner};
/// let table = strategies::signed_table_of_shape::<f64>(vec![2, 3]).new_tree(&mut TestRunner::default()).unwrap().current();
/// assert!(table.values.iter().all(|v| v.fract() == 0.0 && (-30.0..40.0).contains(v)));
/// ```
pub fn signed_table_of_shape<T: Real>(shape: Vec<usize>) -> impl Strategy<Value = Table<T>> {
    let cells = shape.iter().product::<usize>();
    (
        prop::collection::vec(-30..40i32, cells),
        prop::collection::vec(prop::bool::weighted(0.25), cells),
        prop::collection::vec(slices(shape.clone()), 0..=2),
    )
        .prop_map(move |(values, hidden, slices)| {
            let mut table = Table {
                shape: shape.clone(),
                values: values.into_iter().map(|v| T::lit(v.into())).collect(),
                observed: hidden.into_iter().map(|hidden| !hidden).collect(),
            };
            for at in 0..cells {
                let index = table.index(at);
                table.observed[at] &= slices.iter().all(|&(mode, i)| index[mode] != i);
            }
            table
        })
}

/// Data for squared errors: those of [`table_of_shape`], some cells negative, the sums of all and of the observed cells positive.
///
/// ```
/// use plca_tensor::{Data, Order, strategies};
/// use proptest::{strategy::{Strategy, ValueTree}, test_runner::TestRunner};
/// let table = strategies::real_table_of_shape::<f64>(vec![2, 3]).new_tree(&mut TestRunner::default()).unwrap().current();
/// assert!(table.masked(Order::RowMajor).unwrap().total() > 0.0);
/// ```
pub fn real_table_of_shape<T: Real>(shape: Vec<usize>) -> impl Strategy<Value = Table<T>> {
    let cells = shape.iter().product::<usize>();
    let negative = prop::collection::vec(prop::bool::weighted(0.15), cells);
    (table_of_shape::<T>(shape), negative).prop_map(|(mut table, negative)| {
        let seen = table.values.iter().zip(&table.observed);
        let mass: f64 = seen
            .filter(|(_, seen)| **seen)
            .map(|(v, _)| v.to_f64())
            .sum();
        // What negative cells may take away.
        let mut left = mass / 2.0;
        for (v, _) in table.values.iter_mut().zip(negative).filter(|(_, n)| *n) {
            let lost = 2.0 * v.to_f64();
            if lost <= left {
                left -= lost;
                *v = T::zero() - *v;
            }
        }
        table
    })
}

/// Data for squared errors, of any shape, with a start for them; see [`shapes`], [`real_table_of_shape`] and [`starts`](super::starts).
///
/// ```
/// use plca_tensor::strategies;
/// use proptest::{strategy::{Strategy, ValueTree}, test_runner::TestRunner};
/// let (table, start) = strategies::real_problems::<f32>(2..=2, 1..=4, 3..=3).new_tree(&mut TestRunner::default()).unwrap().current();
/// assert_eq!(start.factors[1].shape(), (table.shape[1], 3));
/// ```
pub fn real_problems<T: Real>(
    orders: RangeInclusive<usize>,
    sizes: RangeInclusive<usize>,
    components: RangeInclusive<usize>,
) -> impl Strategy<Value = (Table<T>, Start<T>)> {
    starting(
        shapes(orders, sizes).prop_flat_map(real_table_of_shape),
        components,
    )
}

#[cfg(test)]
mod tests {
    use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};

    use super::*;
    use crate::{Data, Order};

    proptest! {
        /// Every storage of data for squared errors has a positive sum, and every storage of the observed cells the same.
        #[test]
        fn storages_have_positive_sums((table, _) in real_problems::<f64>(1..=3, 1..=4, 1..=2)) {
            let (whole, sparse) = (table.dense(Order::ColumnMajor).unwrap(), table.sparse().unwrap());
            let (masked, stored) = (table.masked(Order::RowMajor).unwrap(), table.stored_only().unwrap());
            for pair in [[&whole as &dyn Data<f64>, &sparse], [&masked, &stored]] {
                let [a, b] = pair.map(|x| x.total());
                prop_assert!(a > 0.0 && (a - b).abs() <= 1e-12 * a, "{} {}", a, b);
            }
        }
    }

    /// A failure comes down to the one cell that it needs.
    #[test]
    fn data_shrink() {
        let least = |shown: TestError<(Table<f64>, Start<f64>)>| match shown {
            TestError::Fail(_, (table, _)) => table,
            TestError::Abort(why) => panic!("{why}"),
        };
        let config = ProptestConfig {
            // The first failure is not among the first few, whatever the environment asks for.
            cases: 256,
            max_shrink_iters: 1 << 16,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let negative = |(table, _): (Table<f64>, Start<f64>)| {
            let none = table.values.iter().all(|&v| v >= 0.0);
            prop_assert!(none, "a negative cell");
            Ok(())
        };
        let real = real_problems::<f64>(2..=2, 1..=4, 1..=2);
        let table = least(runner.run(&real, negative).unwrap_err());
        // Nothing but the negative cell, and what keeps the sum positive.
        let others = table.values.iter().filter(|v| **v != 0.0).count();
        assert!(table.values.len() <= 4 && others <= 2, "{table:?}");
        let signed = starting(signed_table_of_shape::<f64>(vec![2, 3]), 1..=1);
        let table = least(runner.run(&signed, negative).unwrap_err());
        let sum: f64 = table.values.iter().sum();
        assert_eq!((sum, table.observed), (-1.0, vec![true; 6]));
    }
}
