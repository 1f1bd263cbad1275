//! The factors of all modes but the signed one. The products of some of them are rows of an unfolded tensor, beside the signed one; those of the rest are its
//! activations: some of its columns at a time.

use std::ops::Range;

use nalgebra::DMatrix;
use plca_tensor::Real;
use plca_tensor::parallel::{for_each_part, map_in_order};

use crate::faint::largest;

/// Runs of the last mode that are added up together.
const RUNS: usize = 16;

/// Weights and factors, a column of `K` numbers for every index.
#[derive(Debug)]
pub(super) struct Others<T> {
    k: usize,
    /// 1 where a factor carries the scale.
    weights: Vec<T>,
    factors: Vec<DMatrix<T>>,
    /// How many of the first ones are rows.
    merged: usize,
}

/// Counts of such factors, from those of activations: sums of many, in double precision.
#[derive(Debug)]
pub(super) struct Shares(Vec<DMatrix<f64>>);

impl<T: Real> Others<T> {
    /// Of the blocks of a state.
    pub(super) fn new(matrices: &[DMatrix<T>], scale: Option<usize>) -> Self {
        let k = matrices[0].ncols();
        let (weights, factors) = match scale {
            None => (matrices[1].as_slice().to_vec(), &matrices[2..]),
            Some(_) => (vec![T::one(); k], &matrices[1..]),
        };
        Self {
            k,
            weights,
            factors: factors.iter().map(DMatrix::transpose).collect(),
            merged: 0,
        }
    }
    /// With the first factors as rows.
    pub(super) fn merging(self, merged: usize) -> Self {
        Self { merged, ..self }
    }

    /// Rows beside the signed one: `x_k B_i[i,k] …` for every row `x` of a matrix, one after the other.
    pub(super) fn rows(&self, side: &DMatrix<T>, join: impl Fn(T, T) -> T) -> DMatrix<T> {
        let mut all = side.clone();
        for factor in &self.factors[..self.merged] {
            let (rows, n) = (all.nrows(), factor.ncols());
            let row = |at: usize, z: usize| join(all[(at / n, z)], factor[(z, at % n)]);
            all = DMatrix::from_fn(rows * n, self.k, row);
        }
        all
    }

    /// Adds up the counts of such rows: what is left of them for the matrix, and for the factors.
    pub(super) fn share_rows(
        &self,
        counts: &DMatrix<T>,
        rows: usize,
        into: Option<&mut Shares>,
    ) -> DMatrix<T> {
        let each = counts.nrows() / rows;
        let mut own = DMatrix::<f64>::zeros(rows, self.k);
        let mut others = DMatrix::<f64>::zeros(self.k, each);
        for (z, column) in counts.column_iter().enumerate() {
            for (at, count) in column.iter().enumerate() {
                own[(at / each, z)] += count.to_f64();
                others[(z, at % each)] += count.to_f64();
            }
        }
        if let Some(Shares(factors)) = into {
            for (at, counts) in others.as_slice().chunks_exact(self.k).enumerate() {
                for (j, i) in self.indices(0..self.merged, at) {
                    let to = &mut factors[j].as_mut_slice()[i * self.k..][..self.k];
                    to.iter_mut().zip(counts).for_each(|(s, &c)| *s += c);
                }
            }
        }
        own.map(T::lit)
    }

    /// Of the logarithms of such blocks.
    pub(super) fn of_logs(matrices: &[DMatrix<T>], scale: Option<usize>) -> Self {
        let mut logs = Self::new(matrices, scale);
        if scale.is_some() {
            logs.weights.fill(T::zero());
        }
        logs
    }

    /// What products of entries, or of some of them, are at most, or 1.
    pub(super) fn largest(&self) -> f64 {
        let factors = self.factors.iter().map(DMatrix::as_slice);
        factors.map(largest).product::<f64>() * largest(&self.weights)
    }

    /// Columns that differ in the index of the last mode alone.
    fn run(&self) -> usize {
        self.factors.last().map_or(1, DMatrix::ncols)
    }

    /// The modes of columns but the last.
    fn outer(&self) -> Range<usize> {
        self.merged..self.factors.len().saturating_sub(1)
    }

    /// The indices of some modes at a place, the last of them first.
    fn indices(&self, modes: Range<usize>, at: usize) -> impl Iterator<Item = (usize, usize)> {
        let mut rest = at;
        modes.rev().map(move |j| {
            let n = self.factors[j].ncols();
            let index = rest % n;
            rest /= n;
            (j, index)
        })
    }

    /// `w_k B[i,k] C[j,k] …` of `n` columns, `K x n`, from the first of a run on to the end of one.
    pub(super) fn columns(&self, first: usize, n: usize) -> DMatrix<T> {
        self.joined(first, n, |x, y| x * y)
    }

    /// The logarithms of such columns, from those of the blocks.
    pub(super) fn ln_columns(&self, first: usize, n: usize) -> DMatrix<T> {
        self.joined(first, n, |x, y| x + y)
    }

    fn joined(&self, first: usize, n: usize, join: impl Fn(T, T) -> T + Sync) -> DMatrix<T> {
        let (k, run) = (self.k, self.run());
        let mut out = DMatrix::zeros(k, n);
        for_each_part(out.as_mut_slice(), k * run, |part, columns| {
            let mut indices: Vec<_> = self.indices(self.outer(), first / run + part).collect();
            indices.reverse();
            // [EXT 6] w_k Π_{j != m} B_j[i_j,k]
            let mut product = self.weights.clone();
            for (j, i) in indices {
                let row = &self.factors[j].as_slice()[i * k..][..k];
                product
                    .iter_mut()
                    .zip(row)
                    .for_each(|(p, &x)| *p = join(*p, x));
            }
            let last = self.factors.last().map_or(&[][..], DMatrix::as_slice);
            for (column, row) in columns.chunks_exact_mut(k).zip(last.chunks_exact(k)) {
                for ((to, &p), &x) in column.iter_mut().zip(&product).zip(row) {
                    *to = join(p, x);
                }
            }
        });
        out
    }

    /// No counts.
    pub(super) fn shares(&self) -> Shares {
        let none = |factor: &DMatrix<T>| DMatrix::zeros(self.k, factor.ncols());
        Shares(self.factors.iter().map(none).collect())
    }

    /// Adds the counts of columns, as many as [`columns`](Self::columns) makes from there on, to those of the factors.
    pub(super) fn share_out(&self, counts: &DMatrix<T>, first: usize, into: &mut Shares) {
        let (k, run) = (self.k, self.run());
        let parts = counts.as_slice().chunks(RUNS * run * k).collect();
        let parts = map_in_order(parts, |columns: &[T]| {
            let mut last = vec![0.0; run * k];
            let add = |sums: &mut [f64], terms: &[T]| {
                sums.iter_mut()
                    .zip(terms)
                    .for_each(|(s, c)| *s += c.to_f64());
            };
            // [EXT 6] C_j = w B_j * (MTTKRP_j(G+) + MTTKRP_j(G-)): what others than mode j share
            let sums = columns.chunks_exact(run * k).map(|columns| {
                add(&mut last, columns);
                let mut sum = vec![0.0; k];
                columns.chunks_exact(k).for_each(|c| add(&mut sum, c));
                sum
            });
            let sums: Vec<Vec<f64>> = sums.collect();
            (last, sums)
        });
        let Some((own, outer)) = into.0.split_last_mut() else {
            return;
        };
        let mut at = first / run;
        for (last, sums) in parts {
            own.iter_mut().zip(last).for_each(|(s, c)| *s += c);
            for sum in sums {
                for (j, i) in self.indices(self.outer(), at) {
                    let to = &mut outer[j].as_mut_slice()[i * k..][..k];
                    to.iter_mut().zip(&sum).for_each(|(s, &c)| *s += c);
                }
                at += 1;
            }
        }
    }
}

impl Shares {
    /// Of the weights, `K x 1`.
    pub(super) fn weights<T: Real>(&self) -> DMatrix<T> {
        let last = self.0.last().map(|last| last.column_sum());
        // [EXT 6] n = sum_i (p + q)
        let sums = last.map_or(Vec::new(), |sums| sums.iter().map(|&n| T::lit(n)).collect());
        DMatrix::from_vec(sums.len(), 1, sums)
    }

    /// Of the factors, each its size `x K`.
    pub(super) fn factors<T: Real>(self) -> impl Iterator<Item = DMatrix<T>> {
        self.0
            .into_iter()
            .map(|factor| factor.transpose().map(T::lit))
    }
}
