//! Random counts and blocks.

use std::ops::RangeInclusive;

use nalgebra::DMatrix;
use plca_tensor::{Real, normalise_columns, strategies::permutations};
use proptest::prelude::*;

/// Counts, a block that they are to update, and what the laws compare with.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_priors::laws::Case;
/// let case = Case::new(dmatrix![3.0; 1.0], dmatrix![0.5; 0.5]);
/// assert_eq!((case.rows, case.columns), (vec![1, 0], vec![0]));
/// assert_eq!(case.others[1], dmatrix![1.0; 0.0]);                     // a corner, after the uniform block
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Case<T: Real> {
    /// Expected counts.
    pub counts: DMatrix<T>,
    /// The block to be updated; its columns are distributions.
    pub theta: DMatrix<T>,
    /// Other blocks: they must not be better than the result, nor lead to another.
    pub others: Vec<DMatrix<T>>,
    /// Row `i` of permuted counts is this row of the counts.
    pub rows: Vec<usize>,
    /// Column `z` of permuted counts is this column of the counts.
    pub columns: Vec<usize>,
}

impl<T: Real> Case<T> {
    /// A case by hand: compared with the uniform block and the corners of the simplex, and under reversals.
    ///
    /// # Examples
    ///
    /// ```
    /// use nalgebra::dmatrix;
    /// use plca_priors::{Flat, laws};
    /// let case = laws::Case::new(dmatrix![3.0, 0.0; 1.0, 2.0], dmatrix![0.5, 0.5; 0.5, 0.5]);
    /// assert_eq!(case.others.len(), 3);
    /// laws::check(&Flat, &laws::Claims::default(), &case)?;
    /// # Ok::<(), laws::Violation>(())
    /// ```
    pub fn new(counts: DMatrix<T>, theta: DMatrix<T>) -> Self {
        let (rows, columns) = counts.shape();
        let uniform = DMatrix::from_element(rows, columns, T::lit(1.0 / rows as f64));
        let corner = |i: usize| {
            let mut corner = DMatrix::zeros(rows, columns);
            corner.row_mut(i).fill(T::one());
            corner
        };
        Self {
            counts,
            theta,
            others: std::iter::once(uniform)
                .chain((0..rows).map(corner))
                .collect(),
            rows: (0..rows).rev().collect(),
            columns: (0..columns).rev().collect(),
        }
    }
}

/// Blocks on the simplex, near its border and on it included.
fn blocks<T: Real>(rows: usize, columns: usize) -> impl Strategy<Value = DMatrix<T>> {
    let entry = prop_oneof![5 => 0.01..1.0, 1 => 1e-9..1e-3, 1 => Just(0.0)];
    let weights = prop::collection::vec(entry, rows * columns);
    (weights, prop::collection::vec(0..rows, columns)).prop_map(move |(weights, never_zero)| {
        let mut m = DMatrix::from_iterator(rows, columns, weights.into_iter().map(T::lit));
        for (z, &i) in never_zero.iter().enumerate() {
            m[(i, z)] += T::lit(0.5);
        }
        normalise_columns(&mut m);
        m
    })
}

/// Counts: zeros, ties, fractions and large numbers; sometimes a column of zeros.
fn counts<T: Real>(rows: usize, columns: usize) -> impl Strategy<Value = DMatrix<T>> {
    let entry = prop_oneof![
        2 => Just(0.0),
        2 => (0..4i32).prop_map(f64::from),
        4 => 0.0..20.0,
        1 => (-8.0..6.0f64).prop_map(|e| 10f64.powf(e)),
    ];
    let seen = prop::collection::vec(prop::bool::weighted(0.9), columns);
    (prop::collection::vec(entry, rows * columns), seen).prop_map(move |(values, seen)| {
        let kept = |(at, x): (usize, f64)| T::lit(if seen[at / rows] { x } else { 0.0 });
        DMatrix::from_iterator(rows, columns, values.into_iter().enumerate().map(kept))
    })
}

/// Cases of the given numbers of rows and columns, both at least 1.
///
/// ```
/// use plca_priors::laws;
/// use proptest::{strategy::{Strategy, ValueTree}, test_runner::TestRunner};
/// let case = laws::cases::<f64>(2..=4, 3..=3).new_tree(&mut TestRunner::default()).unwrap().current();
/// assert_eq!(case.theta.shape(), case.counts.shape());
/// assert!((case.theta.column(0).sum() - 1.0).abs() < 1e-15);
/// ```
pub fn cases<T: Real>(
    rows: RangeInclusive<usize>,
    columns: RangeInclusive<usize>,
) -> impl Strategy<Value = Case<T>> {
    (rows, columns).prop_flat_map(|(rows, columns)| {
        (
            counts::<T>(rows, columns),
            blocks::<T>(rows, columns),
            prop::collection::vec(blocks::<T>(rows, columns), 3),
            permutations(rows),
            permutations(columns),
        )
            .prop_map(|(counts, theta, others, rows, columns)| {
                let by_hand = Case::new(counts, theta);
                Case {
                    others: [others, by_hand.others].concat(),
                    rows,
                    columns,
                    ..by_hand
                }
            })
    })
}
