//! The E-step of every storage against plain loops over the definition.

use nalgebra::DMatrix;
use plca_tensor::{
    CellLikelihood, Coordinates, Cp, Data, DataError, DenseTensor, Factor, Modes, Order, Real,
    Request, Rule, SparseTensor, Summary,
};
use proptest::prelude::*;

use crate::support::noise;

struct Problem<T> {
    shape: Vec<usize>,
    values: Vec<T>,
    seen: Vec<bool>,
    weights: Vec<T>,
    factors: Vec<DMatrix<T>>,
}

fn problem<T: Real>(shape: &[usize], k: usize, seed: u64) -> Problem<T> {
    let mut next = noise(seed);
    let cells = shape.iter().product();
    let mut values: Vec<T> = (0..cells)
        .map(|_| T::lit(if next() < 0.4 { 0.0 } else { 5.0 * next() }))
        .collect();
    values[0] = T::one();
    let mut seen: Vec<bool> = (0..cells).map(|_| next() < 0.7).collect();
    seen[0] = true;
    let weights = (0..k).map(|_| T::lit(next())).collect();
    let factors = shape
        .iter()
        .map(|&n| DMatrix::from_fn(n, k, |_, _| T::lit(next())))
        .collect();
    Problem {
        shape: shape.to_vec(),
        values,
        seen,
        weights,
        factors,
    }
}

/// The same with rows of factors between 1 and `10^-decades` times what they were.
fn small_rows<T: Real>(shape: &[usize], k: usize, seed: u64, decades: f64) -> Problem<T> {
    let mut p = problem::<T>(shape, k, seed);
    let mut next = noise(seed ^ 1);
    for mut row in p.factors.iter_mut().flat_map(|f| f.row_iter_mut()) {
        row *= T::lit(10f64.powf(-decades * next()));
    }
    p
}

fn index(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut out = vec![0; shape.len()];
    for m in (0..shape.len()).rev() {
        out[m] = position % shape[m];
        position /= shape[m];
    }
    out
}

/// Counts, exposures and likelihood from the definitions, in f64.
fn by_definition<T: Real>(
    p: &Problem<T>,
    masked: bool,
) -> (Vec<DMatrix<f64>>, Vec<DMatrix<f64>>, f64) {
    let k = p.weights.len();
    let zeros = || {
        p.shape
            .iter()
            .map(|&n| DMatrix::zeros(n, k))
            .collect::<Vec<_>>()
    };
    let (mut counts, mut exposures, mut ln_lik) = (zeros(), zeros(), 0.0);
    for (position, v) in p.values.iter().enumerate() {
        if masked && !p.seen[position] {
            continue;
        }
        let index = index(position, &p.shape);
        let joint: Vec<f64> = (0..k)
            .map(|z| {
                (0..index.len()).fold(p.weights[z].to_f64(), |a, m| {
                    a * p.factors[m][(index[m], z)].to_f64()
                })
            })
            .collect();
        let total: f64 = joint.iter().sum();
        let v = v.to_f64();
        if v > 0.0 {
            ln_lik += v * total.ln();
        }
        for m in 0..index.len() {
            for z in 0..k {
                counts[m][(index[m], z)] += v * joint[z] / total;
                exposures[m][(index[m], z)] += joint[z];
            }
        }
    }
    (counts, exposures, ln_lik)
}

fn close<T: Real>(
    got: &DMatrix<T>,
    want: &DMatrix<f64>,
    tolerance: f64,
    whole: f64,
) -> Result<(), TestCaseError> {
    // What the scalar cannot hold may be missing, and what is left of a `whole` is known to some thirty of its digits.
    let allowed = tolerance * want.amax() + T::TINY.to_f64() + 1e-28 * whole;
    for (g, w) in got.iter().zip(want) {
        prop_assert!(
            (g.to_f64() - w).abs() <= allowed,
            "{} instead of {w}",
            g.to_f64()
        );
    }
    Ok(())
}

fn coordinates<T: Real>(p: &Problem<T>, keep: impl Fn(usize) -> bool) -> Coordinates<T> {
    let kept: Vec<usize> = (0..p.values.len()).filter(|&i| keep(i)).collect();
    Coordinates {
        shape: p.shape.clone(),
        indices: kept
            .iter()
            .flat_map(|&i| index(i, &p.shape))
            .map(|i| i as u32)
            .collect(),
        values: kept.iter().map(|&i| p.values[i]).collect(),
    }
}

fn reversed<T: Real>(p: &Problem<T>) -> Vec<T> {
    let mut out = p.values.clone();
    let strides: Vec<usize> = (0..p.shape.len())
        .map(|m| p.shape[..m].iter().product())
        .collect();
    for (position, &v) in p.values.iter().enumerate() {
        out[index(position, &p.shape)
            .iter()
            .zip(&strides)
            .map(|(i, s)| i * s)
            .sum::<usize>()] = v;
    }
    out
}

fn check<T: Real>(p: &Problem<T>, tolerance: f64) -> Result<(), TestCaseError> {
    let shape = &p.shape;
    let factors: Vec<_> = p.factors.iter().map(Factor::Columns).collect();
    let model = Cp {
        weights: Some(&p.weights),
        factors: &factors,
    };
    let nan = |i: usize| {
        if p.seen[i] {
            p.values[i]
        } else {
            T::lit(f64::NAN)
        }
    };
    let complete: Vec<Box<dyn Data<T>>> = vec![
        Box::new(DenseTensor::new(p.shape.clone(), p.values.clone(), Order::RowMajor).unwrap()),
        Box::new(DenseTensor::new(p.shape.clone(), reversed(p), Order::ColumnMajor).unwrap()),
        Box::new(SparseTensor::new(coordinates(p, |_| true)).unwrap()),
        Box::new(DenseTensor::masked(p.shape.clone(), p.values.clone(), Order::RowMajor).unwrap()),
    ];
    let masked: Vec<Box<dyn Data<T>>> = vec![
        Box::new(
            DenseTensor::masked(
                p.shape.clone(),
                (0..p.values.len()).map(nan).collect(),
                Order::RowMajor,
            )
            .unwrap(),
        ),
        Box::new(SparseTensor::stored_only(coordinates(p, |i| p.seen[i])).unwrap()),
        Box::new(
            SparseTensor::all_but(coordinates(p, |_| true), coordinates(p, |i| !p.seen[i]))
                .unwrap(),
        ),
    ];
    for (kinds, hidden) in [(complete, false), (masked, true)] {
        let (counts, exposures, ln_lik) = by_definition(p, hidden);
        let (_, whole, _) = by_definition(p, false);
        for data in kinds {
            let visited = Visited(&*data);
            // What follows from the visits has no scale of its own, but the range of `f64`; a rule of one's own sees rates of the scalar.
            let (mut kernels_only, mut no_rule) = (false, false);
            data.visit(&mut |index, _| {
                kernels_only |= model.cell(index) < f64::MIN_POSITIVE * 1e6;
                no_rule |= model.cell(index) < T::TINY.to_f64() * 1e6;
            })
            .unwrap();
            let both = [&*data, &visited];
            for data in &both[..if kernels_only { 1 } else { 2 }] {
                let all = Request::counts(Modes::all(shape.len())).value(true);
                let e = data.e_step(&model, &all).unwrap();
                let x = data.e_step(&model, &all.rule(Rule::Exposure)).unwrap();
                let mut g = data.e_step(&model, &all.rule(Rule::Gradient)).unwrap();
                let own = if no_rule {
                    all
                } else {
                    all.rule(Rule::Cell(&Poisson))
                };
                let own = data.e_step(&model, &own).unwrap();
                for m in 0..shape.len() {
                    close(e.counts(m), &counts[m], tolerance, 0.0)?;
                    close(own.counts(m), &counts[m], tolerance, 0.0)?;
                    close(x.counts(m), &exposures[m], tolerance, whole[m].amax())?;
                    let mut g = g.take(m);
                    g.component_mul_assign(&p.factors[m]);
                    close(&g, &counts[m], tolerance, 0.0)?;
                }
                let mass: f64 = exposures[0].iter().map(|x| x.to_f64()).sum();
                prop_assert!(no_rule || (x.value() - mass).abs() <= tolerance * mass);
                for e in [&e, &own] {
                    let allowed = tolerance * (1.0 + ln_lik.abs());
                    prop_assert!(
                        (e.value() - ln_lik).abs() <= allowed,
                        "{} {ln_lik}",
                        e.value()
                    );
                }
                let none = data
                    .e_step(&model, &Request::counts(Modes::NONE).value(true))
                    .unwrap();
                prop_assert!((0..shape.len()).all(|m| none.get(m).is_none()));
                prop_assert_eq!(none.value(), e.value());
            }
        }
    }
    Ok(())
}

/// Data that offer their visits and nothing else: all that follows is provided.
#[derive(Debug)]
struct Visited<'a, T>(&'a dyn Data<T>);

impl<T: Real> Data<T> for Visited<'_, T> {
    fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    fn summary(&self) -> &Summary {
        self.0.summary()
    }

    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) -> Result<(), DataError> {
        self.0.visit(each)
    }

    fn visit_mask(&self, each: &mut dyn FnMut(&[usize])) -> Result<(), DataError> {
        self.0.visit_mask(each)
    }
}

/// The rule that is built in, from outside.
#[derive(Debug)]
struct Poisson;

impl<T: Real> CellLikelihood<T> for Poisson {
    fn ratios(&self, v: &[T], q: &mut [T]) {
        q.iter_mut()
            .zip(v)
            .for_each(|(q, &v)| *q = if v > T::zero() { v / *q } else { T::zero() });
    }

    fn value(&self, v: &[T], p: &[T]) -> f64 {
        let positive = v.iter().zip(p).filter(|(v, _)| **v > T::zero());
        positive.map(|(v, p)| v.to_f64() * p.to_f64().ln()).sum()
    }

    fn zero_is_inert(&self) -> bool {
        true
    }
}

proptest! {
    /// Dense in both orders, sparse, masked dense and masked sparse all equal the definition.
    // [SPEC 0] [SPEC 1.1] [SPEC 1.3]
    #[test]
    fn every_storage_equals_the_definition(
        shape in prop::collection::vec(1..7usize, 1..5), k in 1..12usize, seed: u64,
    ) {
        check::<f64>(&problem(&shape, k, seed), 1e-13)?;
        check::<f32>(&problem(&shape, k, seed), 1e-4)?;
    }

    /// With many modes and small rows the products of all entries of a cell are far below the smallest number of the scalar; counts
    /// and likelihoods do not suffer.
    // [SPEC 0] [SPEC 1.1]
    #[test]
    fn small_rows_underflow_nowhere(
        shape in prop::collection::vec(1..4usize, 1..=6), k in 1..12usize, seed: u64,
    ) {
        check::<f64>(&small_rows(&shape, k, seed, 40.0), 1e-13)?;
        check::<f32>(&small_rows(&shape, k, seed, 18.0), 1e-4)?;
    }
}

/// Counts told in the unit of the data, of a component of which products leave the range of numbers in most units.
fn counts_in<T: Real>(small: f64, power: i32) -> Vec<Vec<u64>> {
    let values = [4.0, 0.0, 3.5, 209.7, 0.7, 1.3].map(|v: f64| T::lit(v * 2f64.powi(power)));
    let weights = [T::lit(small), T::one()];
    let factors = [
        DMatrix::from_row_slice(2, 2, &[0.3, 0.5, 0.7, 0.5]),
        DMatrix::from_row_slice(3, 2, &[10.0 * small, 0.2, small, 0.3, 1.0, 0.5]),
    ];
    let factors = factors.map(|f: DMatrix<f64>| f.map(T::lit));
    let cp = Cp {
        weights: Some(&weights),
        factors: &factors.each_ref().map(Factor::Columns),
    };
    let dense = || DenseTensor::new(vec![2, 3], values.to_vec(), Order::RowMajor).unwrap();
    let indices = (0..6).flat_map(|at: u32| [at / 3, at % 3]).collect();
    let sparse = SparseTensor::new(Coordinates {
        shape: vec![2, 3],
        indices,
        values: values.to_vec(),
    });
    let stored: [Box<dyn Data<T>>; 2] = [Box::new(dense()), Box::new(sparse.unwrap())];
    let bits = |data: &dyn Data<T>| {
        let request = Request::counts(Modes::all(2)).count_unit(data.unit());
        let counts = data.e_step(&cp, &request).unwrap();
        let all = (0..2).flat_map(|mode| counts.counts(mode).iter());
        all.map(|c| c.to_f64().to_bits()).collect()
    };
    stored.iter().map(|data| bits(&**data)).collect()
}

/// Small data times a power of two have the same counts in their unit, bit for bit.
#[test]
fn counts_of_small_entries_have_no_unit() {
    let (single, double) = (counts_in::<f32>(1e-18, 0), counts_in::<f64>(1e-153, 0));
    for power in -60..60 {
        assert_eq!(counts_in::<f32>(1e-18, power), single, "{power}");
        assert_eq!(counts_in::<f64>(1e-153, 14 * power), double, "{power}");
    }
}

/// Sizes beyond one panel, tile, chunk and component block, with every kind of remainder.
// [SPEC 0] [SPEC 1.1] [SPEC 1.3]
#[test]
fn large_shapes_equal_the_definition() {
    for (shape, k) in [
        (vec![531, 203], 9),
        (vec![203, 531], 11),
        (vec![203, 101], 50),
        (vec![4100, 17], 9),
        (vec![70, 1], 3),
        (vec![1, 70], 21),
        (vec![5, 6, 200], 13),
        (vec![40, 30, 3], 8),
        (vec![700], 5),
        (vec![9, 8, 7, 6], 33),
    ] {
        check::<f64>(&problem(&shape, k, 7), 1e-13).unwrap();
        check::<f32>(&problem(&shape, k, 7), 2e-4).unwrap();
    }
}
