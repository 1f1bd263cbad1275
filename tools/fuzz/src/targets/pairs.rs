//! Pairs of ways to the same numbers, on problems made from the bytes of an input.

use std::ops::Range;

use arbitrary::{Result, Unstructured};
use nalgebra::DMatrix;
use plca_em::{Given, PlsaState};
use plca_fit::{Solver, Stop, Transform};
use plca_tensor::strategies::KeptBlocks;
use plca_tensor::{
    Coordinates, Cp, Data, DenseTensor, Expected, Factor, Modes, Order, OutOfCore, Real, Request,
    SparseTensor, normalise_columns,
};

use crate::Target;

pub(super) const ESTEP: Target = Target {
    name: "estep",
    asserts: "dense, sparse and the definition give the same counts and likelihood up to rounding, in both precisions",
    seeds,
    run: |input| estep(&mut Unstructured::new(input)).unwrap_or(false),
};

pub(super) const FAST: Target = Target {
    name: "fast_em",
    asserts: "new data explained by fast and by EM: each likelihood is within the other's certified gap",
    seeds,
    run: |input| fast(&mut Unstructured::new(input)).unwrap_or(false),
};

pub(super) const BLOCKS: Target = Target {
    name: "out_of_core",
    asserts: "data in blocks of any size have the bits of memory, in both precisions",
    seeds,
    run: |input| blocks(&mut Unstructured::new(input)).unwrap_or(false),
};

/// Bytes in which nothing repeats soon.
fn seeds() -> Vec<Vec<u8>> {
    let noise = |n: u32| {
        let word = |i: u32| (i.wrapping_mul(2_654_435_761) >> (7 + n)).to_le_bytes()[1];
        (1..400 + 100 * n).map(word).collect()
    };
    (0..6).map(noise).collect()
}

/// A size of at least 1.
fn size(u: &mut Unstructured<'_>, most: usize) -> Result<usize> {
    u.int_in_range(1..=most)
}

/// A number that is 0 about as often as it is ordinary, and now and then small or large.
fn number<T: Real>(u: &mut Unstructured<'_>, zeros: bool) -> Result<T> {
    let byte: u8 = u.arbitrary()?;
    let low = f64::from(byte & 31) + 1.0;
    Ok(T::lit(match byte >> 5 {
        0..3 if zeros => 0.0,
        6 => low * 1e-9,
        7 => low * 1e6,
        _ => low / 8.0,
    }))
}

/// Data of some shape, cell by cell in row-major order; at least one is positive.
fn table<T: Real>(u: &mut Unstructured<'_>, orders: Range<usize>) -> Result<(Vec<usize>, Vec<T>)> {
    let order = u.int_in_range(orders.start..=orders.end - 1)?;
    let shape = (0..order).map(|_| size(u, 7)).collect::<Result<Vec<_>>>()?;
    let cells = shape.iter().product::<usize>();
    let mut values = (0..cells)
        .map(|_| number(u, true))
        .collect::<Result<Vec<T>>>()?;
    values[0] = values[0].max(T::one());
    Ok((shape, values))
}

/// A block without zeros, so that the model explains every cell.
fn block<T: Real>(u: &mut Unstructured<'_>, rows: usize, columns: usize) -> Result<DMatrix<T>> {
    let values = (0..rows * columns)
        .map(|_| number(u, false))
        .collect::<Result<Vec<T>>>()?;
    Ok(DMatrix::from_vec(rows, columns, values))
}

/// The cells that are not 0 as a file lists them.
fn entries<T: Real>(shape: &[usize], values: &[T]) -> Coordinates<T> {
    let mut entries = Coordinates {
        shape: shape.to_vec(),
        indices: Vec::new(),
        values: Vec::new(),
    };
    for (mut at, &x) in values.iter().enumerate() {
        if x > T::zero() {
            let mut index = vec![0; shape.len()];
            for (i, &n) in index.iter_mut().zip(shape).rev() {
                *i = (at % n) as u32;
                at /= n;
            }
            entries.indices.extend(index);
            entries.values.push(x);
        }
    }
    entries
}

/// A problem for the E-step.
struct Problem<T> {
    shape: Vec<usize>,
    values: Vec<T>,
    weights: Vec<T>,
    factors: Vec<DMatrix<T>>,
}

impl<T: Real> Problem<T> {
    fn new(u: &mut Unstructured<'_>, orders: Range<usize>) -> Result<Self> {
        let (shape, values) = table::<T>(u, orders)?;
        let k = size(u, 5)?;
        let weights = block(u, k, 1)?.as_slice().to_vec();
        let factors = shape
            .iter()
            .map(|&n| block(u, n, k))
            .collect::<Result<_>>()?;
        Ok(Self {
            shape,
            values,
            weights,
            factors,
        })
    }

    fn expect(&self, data: &dyn Data<T>) -> Expected<T> {
        let factors: Vec<_> = self.factors.iter().map(Factor::Columns).collect();
        let model = Cp {
            weights: Some(&self.weights),
            factors: &factors,
        };
        let all = Request::counts(Modes::all(factors.len())).value(true);
        data.e_step(&model, &all).expect("data that can be read")
    }

    /// `F_j[i, z]` of all components, the weights in the first mode; what is below `√TINY` of the largest counts as 0.
    fn row(&self, j: usize, i: u32) -> Vec<f64> {
        let weight = |z: usize| {
            if j == 0 {
                self.weights[z].to_f64()
            } else {
                1.0
            }
        };
        let row =
            (0..self.weights.len()).map(|z| self.factors[j][(i as usize, z)].to_f64() * weight(z));
        let least = T::TINY.sqrt().to_f64() * row.clone().fold(0.0, f64::max);
        row.map(|x| if x < least { 0.0 } else { x }).collect()
    }

    /// Counts and likelihood as they are defined, and the sum of what was added up for the likelihood, signs left out; `None` if a cell
    /// has a probability of which the scalar has not all digits.
    fn by_definition(&self) -> Option<(Vec<DMatrix<f64>>, f64, f64)> {
        let zeros = |f: &DMatrix<T>| DMatrix::zeros(f.nrows(), f.ncols());
        let mut counts: Vec<DMatrix<f64>> = self.factors.iter().map(zeros).collect();
        let (mut ln_lik, mut size) = (0.0, 0.0);
        let all = entries(&self.shape, &self.values);
        for (index, x) in all.indices.chunks_exact(self.shape.len()).zip(&all.values) {
            let rows: Vec<_> = index
                .iter()
                .enumerate()
                .map(|(j, &i)| self.row(j, i))
                .collect();
            let largest = rows
                .iter()
                .map(|row| row.iter().copied().fold(0.0, f64::max));
            let joint = |z| rows.iter().map(|row| row[z]).product::<f64>();
            let joint: Vec<f64> = (0..self.weights.len()).map(joint).collect();
            let (total, x) = (joint.iter().sum::<f64>(), x.to_f64());
            let least = T::TINY.sqrt().to_f64();
            if total < least * largest.product::<f64>() {
                return None;
            }
            ln_lik += x * total.ln();
            size += (x * total.ln()).abs() + x;
            for (count, &i) in counts.iter_mut().zip(index) {
                for (z, p) in joint.iter().enumerate() {
                    count[(i as usize, z)] += x * p / total;
                }
            }
        }
        Some((counts, ln_lik, size))
    }
}

/// Compares with the definition; `tolerance` is relative, of the row's mass.
fn close<T: Real>(
    got: &Expected<T>,
    (counts, ln_lik, size): &(Vec<DMatrix<f64>>, f64, f64),
    tolerance: f64,
    which: &str,
) {
    let off = (got.value() - ln_lik).abs();
    assert!(
        off <= tolerance * size,
        "{which}: {} is not {ln_lik}",
        got.value()
    );
    for (mode, expected) in counts.iter().enumerate() {
        let got = got.counts(mode);
        for (i, row) in expected.row_iter().enumerate() {
            for (z, &x) in row.iter().enumerate() {
                let found = got[(i, z)].to_f64();
                let off = (found - x).abs();
                assert!(
                    off <= tolerance * row.sum(),
                    "{which}: mode {mode}, ({i}, {z}): {found} is not {x}"
                );
            }
        }
    }
}

fn estep_in<T: Real>(u: &mut Unstructured<'_>, tolerance: f64) -> Result<bool> {
    let problem = Problem::<T>::new(u, 1..5)?;
    let (shape, values) = (problem.shape.clone(), problem.values.clone());
    let sparse = SparseTensor::new(entries(&shape, &values)).expect("good data");
    let dense = DenseTensor::new(shape, values, Order::RowMajor).expect("good data");
    let [dense, sparse] = [&dense as &dyn Data<T>, &sparse].map(|data| problem.expect(data));
    let Some(expected) = problem.by_definition() else {
        return Ok(false);
    };
    close(&dense, &expected, tolerance, "dense");
    close(&sparse, &expected, tolerance, "sparse");
    Ok(true)
}

fn estep(u: &mut Unstructured<'_>) -> Result<bool> {
    if u.arbitrary()? {
        estep_in::<f64>(u, 1e-12)
    } else {
        estep_in::<f32>(u, 1e-4)
    }
}

fn fast(u: &mut Unstructured<'_>) -> Result<bool> {
    let (shape, values) = table::<f64>(u, 2..3)?;
    let k = size(u, 5)?;
    let mut basis = block::<f64>(u, shape[0], k)?;
    normalise_columns(&mut basis);
    let mixture = DMatrix::from_element(k, 1, 1.0 / k as f64);
    let state = PlsaState::new(Given::Columns, basis, mixture, vec![1.0]).expect("a good state");
    let data = DenseTensor::new(shape.clone(), values, Order::RowMajor).expect("good data");
    let stop = Stop::default().max_iter(300).tol(None).residual_tol(1e-6);
    let by = |solver| {
        let how = Transform::default().stop(stop.clone()).solver(solver);
        let explained = state.transform(&data, &how);
        explained.expect("every cell is explained")
    };
    let (em, fast) = (by(Solver::Em), by(Solver::Fast));
    let v = data.marginal(1).expect("data in memory");
    let within = |gap: &[f64]| gap.iter().zip(&v).map(|(g, v)| g * v).sum::<f64>();
    let (a, b) = (em.fit.objective(), fast.fit.objective());
    let rounding = 1e-9 * (a.abs() + data.total());
    assert!(
        b >= a - within(&fast.gap) - rounding,
        "fast {b} is below EM {a}: {:?}",
        fast.gap
    );
    assert!(
        a >= b - within(&em.gap) - rounding,
        "EM {a} is below fast {b}: {:?}",
        em.gap
    );
    Ok(true)
}

/// The bits of every number that models ask for.
fn bits<T: Real>(data: &dyn Data<T>, problem: &Problem<T>) -> Vec<u64> {
    let read = "data that can be read";
    let mut found = vec![data.total(), data.self_information().expect(read)];
    found.extend((0..2).flat_map(|mode| data.marginal(mode).expect(read)));
    let expected = problem.expect(data);
    found.push(expected.value());
    let counts = [0, 1].map(|mode| expected.counts(mode));
    found.extend(counts.into_iter().flatten().map(|x| x.to_f64()));
    found.iter().map(|x| x.to_bits()).collect()
}

fn blocks_in<T: Real>(u: &mut Unstructured<'_>) -> Result<bool> {
    let problem = Problem::<T>::new(u, 2..3)?;
    let mut all = entries(&problem.shape, &problem.values);
    // Some are listed twice.
    for at in 0..all.values.len() {
        if u.ratio(1, 8)? {
            let index = all.indices[2 * at..2 * at + 2].to_vec();
            all.indices.extend(index);
            all.values.push(all.values[at]);
        }
    }
    let blocks = KeptBlocks::cut(&all, size(u, 9)?).expect("good data");
    let cut = OutOfCore::new(blocks).expect("a source that does not fail");
    let memory = SparseTensor::new(all).expect("good data");
    assert_eq!(cut.summary(), memory.summary());
    assert_eq!(bits(&cut, &problem), bits(&memory, &problem));
    Ok(true)
}

fn blocks(u: &mut Unstructured<'_>) -> Result<bool> {
    if u.arbitrary()? {
        blocks_in::<f64>(u)
    } else {
        blocks_in::<f32>(u)
    }
}
