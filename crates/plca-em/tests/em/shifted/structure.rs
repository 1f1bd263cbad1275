//! What shifted models share with their definition and with PLCA, for any order, support, arithmetic and scalar.

use nalgebra::{DMatrix, dmatrix};
use plca_em::{Evaluation, Likelihood, Plca, Shifted, Support};
use plca_fit::{FitError, Init, Model, Parameters};
use plca_tensor::{Coordinates, Real, SparseTensor};
use proptest::prelude::*;

use super::support::{EVALUATIONS, complete, dense, rng};

fn tolerance<T: Real>() -> f64 {
    if size_of::<T>() == 4 { 1e-4 } else { 1e-10 }
}

/// The multi-index of a cell in row-major order.
fn unravel(mut cell: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (i, n) in index.iter_mut().zip(shape).rev() {
        *i = cell % n;
        cell /= n;
    }
    index
}

fn ravel(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i)
}

/// Content of some cells along every dimension, kernels and a shift that fit into the data with room for all copies that touch it.
#[derive(Clone, Debug)]
struct Moved {
    content: Vec<usize>,
    kernel: Vec<usize>,
    shift: Vec<usize>,
    support: Support,
    seed: usize,
}

fn moved() -> impl Strategy<Value = Moved> {
    let dimension = (1..=3usize, 1..=3usize, 0..=2usize);
    let supports = prop_oneof![
        Just(Support::Valid),
        Just(Support::Same),
        Just(Support::Full)
    ];
    let all = (
        prop::collection::vec(dimension, 1..=4),
        supports,
        0..1000usize,
    );
    all.prop_map(|(dimensions, support, seed)| Moved {
        content: dimensions.iter().map(|d| d.0).collect(),
        kernel: dimensions.iter().map(|d| d.1).collect(),
        shift: dimensions.iter().map(|d| d.2).collect(),
        support,
        seed,
    })
}

impl Moved {
    /// Room for a shift of 2 and for copies that hang over.
    fn shape(&self) -> Vec<usize> {
        let extents = self.content.iter().zip(&self.kernel);
        extents.map(|(n, k)| n + 2 * (k - 1) + 2).collect()
    }

    /// A box of `extents` from `first` on in zeros of `shape`.
    fn boxed(&self, shape: &[usize], first: &[usize], extents: &[usize], salt: usize) -> Vec<f64> {
        let mut values = vec![0.0; shape.iter().product()];
        for cell in 0..extents.iter().product() {
            let index = unravel(cell, extents);
            let at: Vec<usize> = index.iter().zip(first).map(|(i, f)| i + f).collect();
            values[ravel(&at, shape)] = 1.0 + ((cell * 31 + self.seed + salt) % 11) as f64;
        }
        values
    }

    /// The state after some iterations, data and start moved by `shift`.
    fn end<T: Real>(&self, evaluation: Evaluation, shift: &[usize]) -> (Vec<usize>, Parameters<T>) {
        let shape = self.shape();
        let shifted = Shifted::new(2, self.kernel.clone())
            .support(self.support)
            .evaluation(evaluation);
        let g = shifted.geometry(&shape).unwrap();
        let hang: Vec<usize> = self.kernel.iter().map(|k| k - 1).collect();
        let first: Vec<usize> = hang.iter().zip(shift).map(|(a, b)| a + b).collect();
        let values = self.boxed(&shape, &first, &self.content, 0);
        let data = dense::<T>(&shape, &values);
        // Every copy that touches the content begins at most `k - 1` cells before it.
        let begin: Vec<usize> = g.offset().iter().zip(shift).map(|(o, s)| o + s).collect();
        let places: Vec<usize> = self.content.iter().zip(&hang).map(|(n, a)| n + a).collect();
        let of = |salt| self.boxed(g.impulse_shape(), &begin, &places, salt);
        let columns: Vec<T> = (of(3).into_iter().chain(of(7))).map(T::lit).collect();
        let kernels = DMatrix::from_fn(g.kernel_cells(), 2, |i, z| {
            T::lit(1.0 + ((i * (5 + z) + self.seed) % 7) as f64)
        });
        let impulses = DMatrix::from_vec(g.impulse_cells(), 2, columns);
        let init = Init::default()
            .block("weights", dmatrix![T::lit(0.3); T::lit(0.7)])
            .block("kernels", kernels)
            .block("impulses", impulses);
        let em = shifted.bind(&data).unwrap();
        let mut state = init.parameters(&*em, &mut rng(0)).unwrap();
        for _ in 0..4 {
            em.step(&mut state, false).unwrap();
        }
        (g.impulse_shape().to_vec(), state)
    }

    fn shifts<T: Real>(&self) -> Result<(), TestCaseError> {
        let none = vec![0; self.shift.len()];
        for evaluation in EVALUATIONS {
            let (shape, here) = self.end::<T>(evaluation, &none);
            let (_, there) = self.end::<T>(evaluation, &self.shift);
            let close = |a: T, b: T| (a.to_f64() - b.to_f64()).abs() <= tolerance::<T>();
            let kernels = here.at(1).iter().zip(there.at(1));
            prop_assert!(
                kernels.clone().all(|(&a, &b)| close(a, b)),
                "{evaluation:?}"
            );
            for (a, b) in here.at(2).column_iter().zip(there.at(2).column_iter()) {
                for (at, &h) in a.iter().enumerate() {
                    let index = unravel(at, &shape);
                    let to: Vec<usize> =
                        index.iter().zip(&self.shift).map(|(i, s)| i + s).collect();
                    let inside = to.iter().zip(&shape).all(|(i, n)| i < n);
                    let moved = if inside {
                        b[ravel(&to, &shape)]
                    } else {
                        T::zero()
                    };
                    prop_assert!(close(h, moved), "{evaluation:?}: {h} became {moved}");
                }
            }
        }
        Ok(())
    }
}

/// Iterations of a shifted model without shifts and of PLCA on the matrix of its kernel cells by its impulse cells.
fn extent_one<T: Real>(
    shape: &[usize],
    of_kernel: &[bool],
    components: usize,
    seed: u64,
) -> Result<(), TestCaseError> {
    let cells: usize = shape.iter().product();
    let values: Vec<f64> = (0..cells).map(|i| ((i * 31) % 7) as f64 + 0.5).collect();
    let kinds = |kernel: bool| -> Vec<usize> {
        let dimensions = shape.iter().zip(of_kernel);
        dimensions
            .map(|(&n, &k)| if k == kernel { n } else { 1 })
            .collect()
    };
    let [kernel, impulse] = [true, false].map(kinds);
    let [rows, columns] = [&kernel, &impulse].map(|s| s.iter().product::<usize>());
    let mut matrix = vec![0.0; cells];
    for (cell, &value) in values.iter().enumerate() {
        let index = unravel(cell, shape);
        let part = |extents: &[usize]| {
            let own: Vec<usize> = index
                .iter()
                .zip(extents)
                .map(|(&i, &n)| i.min(n - 1))
                .collect();
            ravel(&own, extents)
        };
        matrix[part(&kernel) * columns + part(&impulse)] = value;
    }
    let plca = Plca::new(components);
    let data = dense::<T>(&[rows, columns], &matrix);
    let em = plca.bind(&data).unwrap();
    let start = Init::default().parameters(&*em, &mut rng(seed)).unwrap();
    let (mut want, mut objectives) = (start.clone(), Vec::new());
    for _ in 0..6 {
        objectives.push(em.step(&mut want, true).unwrap().value.unwrap());
    }
    let init = Init::default()
        .block("kernels", start.at(1).clone())
        .block("impulses", start.at(2).clone());
    for (storage, data) in complete::<T>(shape, &values) {
        for evaluation in EVALUATIONS {
            let what = format!("{storage}, {evaluation:?}");
            let shifted = Shifted::new(components, kernel.clone()).evaluation(evaluation);
            let em = shifted.bind(&*data).unwrap();
            let mut state = init.parameters(&*em, &mut rng(0)).unwrap();
            for want in &objectives {
                let got = em.step(&mut state, true).unwrap().value.unwrap();
                prop_assert!(
                    (got - want).abs() <= tolerance::<T>() * (1.0 + want.abs()),
                    "{what}: {got} {want}"
                );
            }
            for (got, want) in state.matrices().iter().zip(want.matrices()) {
                let off = (got - want).amax().to_f64();
                prop_assert!(off <= tolerance::<T>(), "{what}");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Data and start moved within empty borders: the same kernels, impulses moved as far.
    #[test]
    fn a_shift_of_the_data_shifts_the_impulses(case in moved()) {
        case.shifts::<f64>()?;
        case.shifts::<f32>()?;
    }

    /// Where every dimension belongs to the kernels or to the impulses alone, it is PLCA of the two groups of dimensions.
    // [SPEC 5.1]
    #[test]
    fn extents_of_one_make_plca(
        dimensions in prop::collection::vec((1..=4usize, any::<bool>()), 1..=4),
        components in 1..=3usize,
        seed: u64,
    ) {
        let shape: Vec<usize> = dimensions.iter().map(|d| d.0).collect();
        let of_kernel: Vec<bool> = dimensions.iter().map(|d| d.1).collect();
        extent_one::<f64>(&shape, &of_kernel, components, seed)?;
        extent_one::<f32>(&shape, &of_kernel, components, seed)?;
    }
}

/// `2 10^5 x 2 10^5` cells, of which 3000 are not 0: time and memory are those of the list, and the choice is made by itself.
#[test]
fn sparse_data_are_never_laid_out() {
    let (n, events) = (200_000u32, 1000u32);
    let at = |event: u32| [event * 7919 % n, 2 + event * 104_729 % (n - 4)];
    let cells = (0..events).flat_map(|event| {
        let [row, column] = at(event);
        [0, 1, 2].map(|t| ([row, column + t], f64::from([4, 2, 1][t as usize])))
    });
    let (indices, values): (Vec<[u32; 2]>, Vec<f64>) = cells.unzip();
    let data = SparseTensor::new(Coordinates {
        shape: vec![n as usize; 2],
        indices: indices.concat(),
        values,
    })
    .unwrap();
    // Rows belong to the impulses of one event each, columns shift.
    let shifted = Shifted::new(1, vec![n as usize, 3]);
    let shifted = shifted.likelihood(Likelihood::Literal);
    let em = shifted.bind(&data).unwrap();
    let mut state = Init::default().parameters(&*em, &mut rng(5)).unwrap();
    let mut last = f64::NEG_INFINITY;
    for _ in 0..5 {
        let now = em.step(&mut state, true).unwrap().value.unwrap();
        assert!(now >= last - 1e-12 * (1.0 + now.abs()), "{last} {now}");
        last = now;
    }
    // Rows without data have lost their kernel cells after the first step.
    let seen = state.at(1).iter().filter(|k| **k > 0.0).count();
    assert!(seen <= 3 * events as usize && seen > 0, "{seen}");
}

/// Blocks of more cells than can be numbered are refused before they are allocated.
#[test]
fn absurd_extents_are_refused() {
    let values = Coordinates {
        shape: vec![1 << 20, 1 << 20],
        indices: vec![5, 7],
        values: vec![1.0],
    };
    let data = SparseTensor::<f64>::new(values).unwrap();
    for kernel in [vec![2, 2], vec![1 << 20, 1 << 19]] {
        let shifted = Shifted::new(1, kernel);
        let refused = shifted.on(&data).map(drop).unwrap_err();
        assert!(matches!(refused, FitError::Data(_)), "{refused}");
    }
}
