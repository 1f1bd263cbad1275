//! Shifted atoms, and tensors whose scale is in a factor.

use nalgebra::{DMatrix, DVector};
use plca_fit::laws::check_threads;
use plca_fit::seed as rng;
use plca_fit::{
    Algorithm, FitError, Impossible, Init, Model, Parameters, Reconstruct, Settings, State,
    Transform, blocks::Frozen, setting::Freeze,
};
use plca_priors::{Gamma, PriorSpec};
use plca_tensor::{Coordinates, Data, DataError, DenseTensor, Order, Real, SparseTensor};
use proptest::prelude::*;
use skellam_snmf::{
    Entries, Prior, Reach, Replicates, ShiftedSnmf, ShiftedSnmfState, ShiftedSnmfVb, SignedCp,
    SignedCpState, SignedCpVb, Snmf, SnmfVb,
};

fn tensor<T: Real>(shape: &[usize], values: &[f64]) -> DenseTensor<T> {
    let values = values.iter().map(|&x| T::lit(x)).collect();
    DenseTensor::masked(shape.to_vec(), values, Order::RowMajor).unwrap()
}

/// Whether entries agree to a part of the largest; none may be NaN.
fn agree(got: &DMatrix<f64>, want: &DMatrix<f64>, part: f64) -> bool {
    let most = part * want.amax();
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < most;
    got.shape() == want.shape() && got.iter().zip(want).all(near)
}

fn double<T: Real>(m: &DMatrix<T>) -> DMatrix<f64> {
    m.map(|x| x.to_f64())
}

/// The objectives of so many steps, each of which may lower it by rounding alone.
fn rises<T: Real>(algorithm: &dyn Algorithm<T>, seed: u64, steps: usize) -> Parameters<T> {
    rises_from(algorithm, &Init::default(), seed, steps)
}

fn rises_from<T: Real>(
    algorithm: &dyn Algorithm<T>,
    init: &Init<T>,
    seed: u64,
    steps: usize,
) -> Parameters<T> {
    let mut at = init.parameters(algorithm, &mut rng(seed)).unwrap();
    let mut last = f64::NEG_INFINITY;
    for step in 0..steps {
        let value = algorithm.step(&mut at, true).unwrap().value.unwrap();
        let rounding = 64.0 * T::EPSILON.to_f64() * (1.0 + algorithm.unit() + last.abs());
        // Of the first step the rounding is infinite.
        assert!(value >= last - rounding, "step {step}: {last} {value}");
        last = value;
    }
    at
}

fn faint<T: Real>(unit: f64) {
    // Loops, products of matrices and transforms.
    for (shape, kernel, steps) in [
        (vec![7], vec![2], 12),
        (vec![9, 8], vec![4, 3], 12),
        (vec![3000], vec![60], 4),
    ] {
        for reach in [Reach::Valid, Reach::Same, Reach::Full] {
            for hidden in [false, true] {
                let cells = shape.iter().product::<usize>();
                let values = (0..cells).map(|at| match (hidden, at % 11) {
                    (true, 4) => f64::NAN,
                    (_, rest) => unit * (1 + at % 7 + rest) as f64,
                });
                let data = tensor::<T>(&shape, &values.collect::<Vec<_>>());
                let model = ShiftedSnmf::new(3, kernel.clone())
                    .reach(vec![reach])
                    .replicates(Replicates::Limit);
                let model = model.prior("activations", Gamma::new(1.5, 0.5).unwrap());
                // Without a negative side nothing else holds the rates up.
                let taps = kernel.iter().product::<usize>();
                let mut draw = rng(7);
                let atoms = DMatrix::from_fn(2 * taps, 3, |row, _| match row % 2 {
                    0 => T::lit(draw.random_range(0.1..1.0)),
                    _ => T::zero(),
                });
                let init = Init::default().block("atoms", atoms);
                rises_from(&*model.bind(&data).unwrap(), &init, 3, steps);
            }
        }
    }
}

/// Where a prior wants rates far above the data, what the data say of atoms and activations keeps its digits.
// [EXT 5]
#[test]
fn data_far_below_the_rates_are_not_forgotten() {
    faint::<f64>(1e-30);
    faint::<f32>(1e-15);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// No step lowers the objective, in every support, with hidden cells and priors.
    #[test]
    fn steps_are_monotone(
        values in prop::collection::vec(-5i8..6, 20),
        (reach, one, hidden, priors, seed) in (0usize..3, any::<bool>(), 0usize..20, any::<bool>(), any::<u64>()),
    ) {
        let mut values: Vec<f64> = values.into_iter().map(f64::from).collect();
        prop_assume!(values.iter().enumerate().any(|(at, v)| at != hidden && *v != 0.0));
        values[hidden] = f64::NAN;
        let replicates = if one { Replicates::One } else { Replicates::Limit };
        let reach = [Reach::Valid, Reach::Same, Reach::Full][reach];
        let (a, b) = if priors { (1.5, 0.2) } else { (1.0, 0.0) };
        let shifted = ShiftedSnmf::new(2, vec![2, 2]).replicates(Replicates::Limit).reach(vec![reach]).replicates(replicates);
        let shifted = shifted.prior("atoms", Entries::All(a)).prior("activations", Gamma::new(a, b).unwrap());
        let data = tensor::<f64>(&[4, 5], &values);
        rises(&*shifted.bind(&data).unwrap(), seed, 15);
        let single = ShiftedSnmf::new(2, vec![2, 2]).replicates(Replicates::Limit).reach(vec![reach]).replicates(replicates);
        rises(&*single.bind(&tensor::<f32>(&[4, 5], &values)).unwrap(), seed, 15);
        for scale in [None, Some(0), Some(2)] {
            let cp = SignedCp::new(2).replicates(Replicates::Limit).signed_mode(1).scale_mode(scale).replicates(replicates);
            let carrier = scale.map_or("weights".into(), |mode| format!("factor_{mode}"));
            let cp = cp.prior("atoms", Entries::All(a)).prior(carrier, Gamma::new(a, b).unwrap());
            let data = tensor::<f64>(&[2, 5, 2], &values);
            rises(&*cp.bind(&data).unwrap(), seed, 15);
        }
    }
}

/// With kernels of whole columns the model is that of a matrix, and so is a tensor of two modes whose other factor has the scale.
// [EXT 5] [EXT 6]
#[test]
fn matrices_are_a_special_case() {
    let (f, n, k) = (4, 6, 2);
    let values: Vec<f64> = (0..f * n)
        .map(|i| ((i * i * 7 + 3 * i) % 13) as f64 - 5.5)
        .collect();
    let data = tensor::<f64>(&[f, n], &values);
    let prior = Prior {
        plus: Entries::All(1.2),
        minus: Entries::All(1.2),
        shape: Entries::All(1.5),
        rate: Entries::All(0.1),
    };
    let snmf = Snmf::new(k).replicates(Replicates::Limit).priors(prior);
    let (shapes, gamma) = (Entries::All(1.2), [Entries::All(1.5), Entries::All(0.1)]);
    let [a, b] = gamma.clone();
    let shifted = ShiftedSnmf::new(k, vec![f, 1])
        .replicates(Replicates::Limit)
        .prior("atoms", shapes.clone())
        .prior("activations", PriorSpec::Gamma(a, b));
    let [a, b] = gamma;
    let cp = SignedCp::new(k)
        .replicates(Replicates::Limit)
        .scale_mode(Some(1))
        .prior("atoms", shapes)
        .prior("factor_1", PriorSpec::Gamma(a, b));
    let start = snmf.init(&data, Init::default(), &mut rng(7)).unwrap();
    let (atoms, h) = (
        start.parameters().at(0).clone(),
        start.activations().clone(),
    );
    let interleaved = DMatrix::from_fn(2 * f, k, |i, z| atoms[(i / 2 + f * (i % 2), z)]);
    let by = [snmf.bind(&data), shifted.bind(&data), cp.bind(&data)].map(Result::unwrap);
    let starts = [
        Init::from(&start),
        Init::default()
            .block("atoms", interleaved)
            .block("activations", h.transpose()),
        Init::default()
            .block("atoms", atoms)
            .block("factor_1", h.transpose()),
    ];
    let starts = by.iter().zip(starts);
    let mut at: Vec<_> = starts
        .map(|(algorithm, init)| init.parameters(&**algorithm, &mut rng(0)).unwrap())
        .collect();
    for _ in 0..30 {
        let values: Vec<f64> = by
            .iter()
            .zip(&mut at)
            .map(|(algorithm, at)| algorithm.step(at, true).unwrap().value.unwrap())
            .collect();
        for other in &values[1..] {
            assert!(
                (other - values[0]).abs() < 1e-10 * values[0].abs(),
                "{values:?}"
            );
        }
    }
    let want = at[0].at(1).transpose();
    for other in &at[1..] {
        assert!(agree(other.at(1), &want, 1e-10));
    }
}

/// Sums of components are the reconstruction, and threads change no bit.
#[test]
fn shifted_states_are_sums() {
    let values: Vec<f64> = (0..48)
        .map(|i| ((i * 5 + i * i) % 9) as f64 - 4.0)
        .collect();
    let data = tensor::<f64>(&[6, 8], &values);
    let model = ShiftedSnmf::new(3, vec![2, 3])
        .replicates(Replicates::Limit)
        .reach(vec![Reach::Full]);
    let fit = || model.fit(&data, &mut rng(1)).unwrap();
    check_threads(|| fit().state().clone()).unwrap();
    let fit = fit();
    let state = fit.state();
    let whole = state.cells(None).unwrap().into_parts().1;
    let mut sum = vec![0.0; whole.len()];
    for z in 0..3 {
        let part = state.cells(Some(z)).unwrap().into_parts().1;
        sum.iter_mut().zip(part).for_each(|(s, x)| *s += x);
    }
    assert!(
        whole
            .iter()
            .zip(&sum)
            .all(|(a, b)| (a - b).abs() < 1e-12 * (1.0 + a.abs()))
    );
    assert_eq!(state.cell(&[2, 3]), whole[2 * 8 + 3]);
    let too_large = ShiftedSnmf::new(1, vec![7, 1]).replicates(Replicates::Limit);
    assert!(matches!(
        too_large.bind(&data),
        Err(FitError::Conflict { .. })
    ));
}

/// New data ten times as large: the scale is found again where a factor carries it, and no other mode is explained without it.
#[test]
fn new_data_are_explained_along_the_scale() {
    let values: Vec<f64> = (0..24)
        .map(|i| ((i * i * 5 + i) % 11) as f64 - 5.0)
        .collect();
    let data = tensor::<f64>(&[3, 2, 4], &values);
    let model = SignedCp::new(2)
        .replicates(Replicates::Limit)
        .scale_mode(Some(1));
    let fit = model.fit(&data, &mut rng(3)).unwrap();
    let ten: Vec<f64> = values.iter().map(|x| 10.0 * x).collect();
    let ten = tensor::<f64>(&[3, 2, 4], &ten);
    let along = |data, mode| model.transform(fit.state(), data, &Transform::default().along(mode));
    let (one, ten) = (along(&data, 1).unwrap(), along(&ten, 1).unwrap());
    let (one, ten) = (one.fit.state().factor(1), ten.fit.state().factor(1));
    assert!(agree(&(10.0 * one), ten, 1e-6));
    let Err(FitError::Conflict { what }) = along(&data, 2) else {
        panic!("explained without its scale");
    };
    assert!(what.contains("mode 1"), "{what}");
}

/// Of an atom without a minus side no negative cell comes.
#[test]
fn cells_that_no_atom_reaches_are_refused_or_dropped() {
    let atom = DMatrix::from_row_slice(4, 1, &[0.5, 0.0, 0.5, 0.0]);
    let places = DMatrix::from_element(2, 1, 1.0);
    let learnt = ShiftedSnmfState::new(&[3], &[2], &[Reach::Valid], atom, places).unwrap();
    let model = ShiftedSnmf::new(1, vec![2]).replicates(Replicates::Limit);
    let data = tensor::<f64>(&[3], &[1.0, -2.0, 3.0]);
    let how = Transform::default();
    let error = model.transform(&learnt, &data, &how).unwrap_err();
    let FitError::Impossible { index, value } = error else {
        panic!("{error}");
    };
    assert_eq!((index, value), (vec![1], -2.0));
    let found = model.transform(&learnt, &data, &how.impossible(Impossible::Drop));
    let found = found.unwrap();
    assert_eq!(found.dropped, 2.0);
    let hidden = tensor::<f64>(&[3], &[1.0, f64::NAN, 3.0]);
    let without = model
        .transform(&learnt, &hidden, &Transform::default())
        .unwrap();
    assert_eq!(found.fit.state(), without.fit.state());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// No step lowers the bound, in every support, with hidden cells; frozen components keep every bit, and threads change none.
    #[test]
    fn bounds_of_shifted_atoms_are_monotone(
        values in prop::collection::vec(-5i8..6, 20),
        (reach, hidden, seed, freezes) in (0usize..3, 0usize..20, any::<u64>(), any::<bool>()),
    ) {
        let mut values: Vec<f64> = values.into_iter().map(f64::from).collect();
        prop_assume!(values.iter().enumerate().any(|(at, v)| at != hidden && *v != 0.0));
        values[hidden] = f64::NAN;
        let reach = [Reach::Valid, Reach::Same, Reach::Full][reach];
        let model = ShiftedSnmfVb::new(2, vec![2, 2]).reach(vec![reach]);
        let model = match freezes {
            true => model.frozen("atoms_shape", Frozen::Components(vec![1])),
            false => model,
        };
        let data = tensor::<f64>(&[4, 5], &values);
        let shapes = DMatrix::from_fn(8, 2, |i, z| 1.0 + (3 * i + z) as f64 / 4.0);
        let init = match freezes {
            true => Init::default().block("atoms_shape", shapes.clone()),
            false => Init::default(),
        };
        let end = |steps| rises_from(&*model.bind(&data).unwrap(), &init, seed, steps);
        if freezes {
            let end = end(15);
            prop_assert_eq!(end.at(0).column(1), shapes.column(1));
            prop_assert!(end.at(0).column(0) != shapes.column(0));
        }
        check_threads(|| end(15)).unwrap();
        let single = ShiftedSnmfVb::new(2, vec![2, 2]).reach(vec![reach]);
        rises(&*single.bind(&tensor::<f32>(&[4, 5], &values)).unwrap(), seed, 15);
    }
}

/// A part of a law cannot stay while the rest moves.
#[test]
fn parts_of_laws_are_not_frozen() {
    let flags = DMatrix::from_fn(8, 2, |i, _| i == 0);
    let entries = || Frozen::Entries(flags.clone());
    let data = tensor::<f64>(&[4, 5], &[1.0; 20]);
    let shifted = ShiftedSnmfVb::new(2, vec![2, 2]).frozen("atoms_shape", entries());
    let refused = shifted.bind(&data).map(drop);
    assert!(matches!(refused, Err(FitError::Conflict { .. })));
    let matrix = SnmfVb::new(2).frozen("atoms_shape", entries());
    assert!(matches!(matrix.check(), Err(FitError::Conflict { .. })));
    let rates = SnmfVb::new(2).frozen("activations_rate", Frozen::Whole);
    assert!(matches!(rates.check(), Err(FitError::Conflict { .. })));
}

/// `G±` of the limit.
fn multipliers(v: f64, [p, q]: [f64; 2]) -> [f64; 2] {
    let w = (v * v + 4.0 * p * q).sqrt();
    [(w + v) / (2.0 * p), (w - v) / (2.0 * q)]
}

/// Loops, products of matrices with either stack and transforms along one and two dimensions make the step that is written in the definition. [EXT 5]
#[test]
fn shifted_steps_are_the_definition() {
    let cases: [(&[usize], &[usize], usize); 6] = [
        (&[5, 6], &[2, 3], 2),
        (&[40, 30], &[40, 6], 2),
        (&[30, 40], &[12, 1], 1),
        (&[40, 36], &[11, 9], 2),
        (&[700], &[64], 2),
        (&[12, 14, 3], &[5, 4, 3], 1),
    ];
    for (shape, kernel, k) in cases {
        for reach in [Reach::Valid, Reach::Same, Reach::Full] {
            // Dimensions that kernels cover stay covered.
            let reach: Vec<Reach> = shape
                .iter()
                .zip(kernel)
                .map(|(n, k)| if n == k { Reach::Valid } else { reach })
                .collect();
            let cells: usize = shape.iter().product();
            let mut values: Vec<f64> = (0..cells)
                .map(|i| ((i * i * 7 + 5 * i) % 17) as f64 - 7.5)
                .collect();
            values[cells / 2] = f64::NAN;
            let data = tensor::<f64>(shape, &values);
            let model = ShiftedSnmf::new(k, kernel.to_vec())
                .replicates(Replicates::Limit)
                .reach(reach.clone());
            let algorithm = model.bind(&data).unwrap();
            let start = Init::default()
                .parameters(&*algorithm, &mut rng(5))
                .unwrap();
            let (atoms, activations) = (start.at(0), start.at(1));
            let found = shape.iter().zip(kernel).zip(&reach);
            let (places, offset): (Vec<usize>, Vec<usize>) =
                found.map(|((&n, &k), r)| r.places(n, k).unwrap()).unzip();
            let index = |mut at: usize, sizes: &[usize]| {
                let mut index = vec![0; sizes.len()];
                for (i, n) in index.iter_mut().zip(sizes).rev() {
                    (*i, at) = (at % n, at / n);
                }
                index
            };
            // The cell where a tap of a copy at a place falls, if it is one of the data.
            let meets = |tap: usize, place: usize| {
                let (t, h) = (index(tap, kernel), index(place, &places));
                (0..shape.len()).try_fold(0, |at, d| {
                    let x = (h[d] + t[d]).checked_sub(offset[d])?;
                    (x < shape[d]).then_some(at * shape[d] + x)
                })
            };
            let (taps, spots) = (atoms.nrows() / 2, activations.nrows());
            let all = |f: &mut dyn FnMut(usize, usize, Option<usize>)| {
                for tap in 0..taps {
                    for place in 0..spots {
                        f(tap, place, meets(tap, place));
                    }
                }
            };
            let mut rates = vec![[0.0; 2]; cells];
            all(&mut |tap, place, cell| {
                let Some(cell) = cell else { return };
                for z in 0..k {
                    for side in 0..2 {
                        rates[cell][side] += atoms[(2 * tap + side, z)] * activations[(place, z)];
                    }
                }
            });
            let cells = values.iter().zip(&rates);
            let g: Vec<[f64; 2]> = cells
                .map(|(&v, &rates)| {
                    if v.is_nan() {
                        [1.0; 2]
                    } else {
                        multipliers(v, rates)
                    }
                })
                .collect();
            let (mut theta, mut lambda) = (atoms * 0.0, activations * 0.0);
            all(&mut |tap, place, cell| {
                let g = cell.map_or([1.0; 2], |cell| g[cell]);
                for z in 0..k {
                    for (side, g) in g.iter().enumerate() {
                        let i = 2 * tap + side;
                        let count = atoms[(i, z)] * activations[(place, z)] * g;
                        theta[(i, z)] += count;
                        lambda[(place, z)] += count;
                    }
                }
            });
            theta.column_iter_mut().for_each(|mut c| c /= c.sum());
            let mut at = start.clone();
            algorithm.step(&mut at, false).unwrap();
            for (got, want) in [(at.at(0), &theta), (at.at(1), &lambda)] {
                assert!(
                    agree(got, want, 1e-9),
                    "{shape:?} {kernel:?} {reach:?}: {}",
                    (got - want).amax()
                );
            }
        }
    }
}

/// Tensors whose activations do not exist as a whole: the step that is written in the definition, from dense data and from a list of the observed cells, on any
/// number of threads. [EXT 6]
#[test]
fn many_columns_are_taken_some_at_a_time() {
    is_the_definition([130, 20, 150], 44);
}

/// The same where the second mode stands in rows, beside the signed one. [EXT 6]
#[test]
fn a_mode_stands_beside_the_signed_one() {
    is_the_definition([3, 40, 2000], 2);
    // Cells there are found again.
    let values: Vec<f64> = (0..240)
        .map(|at| if at == 205 { -4.0 } else { 1.0 })
        .collect();
    let data = tensor::<f64>(&[2, 3, 40], &values);
    let [half, none] = [0.5, 0.0].map(|x| DMatrix::from_element(2, 1, x));
    let factors = [3, 40].map(|n| DMatrix::from_element(n, 1, 1.0 / n as f64));
    let weights = DVector::from_element(1, 1.0);
    let learnt = SignedCpState::new(&half, &none, &weights, factors.to_vec(), 0).unwrap();
    // Noise would explain them.
    let model = SignedCp::new(1).replicates(Replicates::Limit);
    let refused = model.transform(&learnt, &data, &Transform::default().along(2));
    let Err(FitError::Impossible { index, value }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((index, value), (vec![1, 2, 5], -4.0));
    let how = Transform::default().impossible(Impossible::Drop);
    let explained = model.transform(&learnt, &data, &how.along(2)).unwrap();
    assert_eq!(explained.dropped, 4.0);
    assert!((explained.fit.state().weights()[0] - 240.0).abs() < 1e-2);
}

fn is_the_definition(shape: [usize; 3], k: usize) {
    let index = |at: usize| {
        let [_, m, n] = shape;
        [at / n / m, at / n % m, at % n]
    };
    let seen = |at: usize| at.is_multiple_of(11);
    let value = |at: usize| ((at / 11 * 7 + at) % 13) as f64 - 5.5;
    let cells: usize = shape.iter().product();
    let values: Vec<f64> = (0..cells)
        .map(|at| if seen(at) { value(at) } else { f64::NAN })
        .collect();
    let dense = tensor::<f64>(&shape, &values);
    let mut list = Coordinates::empty(&shape);
    for at in (0..cells).filter(|&at| seen(at)) {
        list.push(&index(at), value(at));
    }
    let list = SparseTensor::stored_only(list).unwrap();
    let model = SignedCp::new(k).replicates(Replicates::Limit);
    let step = |data: &dyn Data<f64>| {
        let algorithm = model.bind(data).unwrap();
        let start = Init::default()
            .parameters(&*algorithm, &mut rng(8))
            .unwrap();
        let mut at = start.clone();
        algorithm.step(&mut at, false).unwrap();
        (start, at)
    };
    check_threads(|| step(&dense).1.matrices().to_vec()).unwrap();
    let (start, got) = step(&dense);
    let [atoms, weights, b, c] = start.matrices() else {
        panic!("four blocks");
    };
    let mut want = [atoms * 0.0, weights * 0.0, b * 0.0, c * 0.0];
    for (at, &v) in values.iter().enumerate() {
        let [f, i, j] = index(at);
        let part = |z: usize, side: usize| {
            atoms[(f + shape[0] * side, z)] * weights[z] * b[(i, z)] * c[(j, z)]
        };
        let rates = [0, 1].map(|side| (0..k).map(|z| part(z, side)).sum::<f64>());
        let g = if v.is_nan() {
            [1.0; 2]
        } else {
            multipliers(v, rates)
        };
        for z in 0..k {
            for side in 0..2 {
                let count = part(z, side) * g[side];
                want[0][(f + shape[0] * side, z)] += count;
                want[1][z] += count;
                want[2][(i, z)] += count;
                want[3][(j, z)] += count;
            }
        }
    }
    for j in [0, 2, 3] {
        want[j].column_iter_mut().for_each(|mut c| c /= c.sum());
    }
    for (got, want) in got.matrices().iter().zip(&want) {
        assert!(agree(got, want, 1e-11));
    }
    for (one, other) in got.matrices().iter().zip(step(&list).1.matrices()) {
        assert!(agree(other, one, 1e-11));
    }
}

/// No step of variational Bayes lowers the bound, with either likelihood, either form and any signed mode. [EXT 6]
#[test]
fn bounds_of_tensors_never_fall() {
    let values: Vec<f64> = (0..24)
        .map(|i| ((i * i * 5 + i) % 11) as f64 - 5.0)
        .map(|v| if v == 3.0 { f64::NAN } else { v })
        .collect();
    let data = tensor::<f64>(&[3, 2, 4], &values);
    for replicates in [Replicates::Limit, Replicates::One] {
        for (mode, scale) in [(0, None), (1, Some(2)), (2, Some(0)), (2, None)] {
            let model = SignedCpVb::new(2).signed_mode(mode).scale_mode(scale);
            let model = model
                .replicates(replicates)
                .prior("atoms", Entries::All(0.7));
            rises(&*model.bind(&data).unwrap(), 3, 25);
            let single = SignedCpVb::new(2).signed_mode(mode);
            let single = single.scale_mode(scale).replicates(replicates);
            let narrow = tensor::<f32>(&[3, 2, 4], &values);
            rises(&*single.bind(&narrow).unwrap(), 3, 25);
            let fit = model.fit(&data, &mut rng(4)).unwrap();
            let means = fit.state().means().unwrap();
            assert!((means.atoms().column(0).sum() - 1.0).abs() < 1e-12);
            assert_eq!((means.signed_mode(), means.scale_mode()), (mode, scale));
            assert_eq!(fit.state().cell(&[1, 1, 2]), means.cell(&[1, 1, 2]));
        }
    }
    let refused = |model: SignedCpVb| model.bind(&data).err();
    let cp = || SignedCpVb::new(1);
    for model in [
        cp().prior("weights", Entries::All(1.0)),
        cp().prior("weights", Gamma::new(1.0, 0.0).unwrap()),
        cp().freeze("weights_rate"),
        cp().scale_mode(Some(0)),
    ] {
        assert!(refused(model).is_some());
    }
}

/// Geometric means of small shapes are below the numbers of single precision, and products of several modes sooner: no datum is lost. [EXT 6]
#[test]
fn tensors_of_small_shapes_lose_no_datum() {
    let values: Vec<f64> = (0..24)
        .map(|i| ((i * i * 5 + i) % 11) as f64 - 5.0)
        .map(|v| if v == 3.0 { f64::NAN } else { v })
        .collect();
    fn step<T: Real>(
        values: &[f64],
        (scale, replicates): (Option<usize>, Replicates),
        shapes: [f64; 3],
    ) -> (f64, Vec<DMatrix<f64>>) {
        let model = SignedCpVb::new(2).scale_mode(scale).replicates(replicates);
        let data = tensor::<T>(&[3, 2, 4], values);
        let algorithm = model.bind(&data).unwrap();
        let init = algorithm.blocks().iter().fold(Init::default(), |init, s| {
            let shape = match &*s.name {
                "atoms_shape" => shapes[0],
                name if name.ends_with("_rate") => 1.001,
                "weights_shape" => shapes[2],
                _ => shapes[1],
            };
            let ((rows, columns), name) = (s.shape, s.name.to_string());
            let part = |i: usize, z: usize| 1.0 + ((3 * i + z) % 5) as f64 / 1e3;
            let block = DMatrix::from_fn(rows, columns, |i, z| T::lit(shape * part(i, z)));
            init.block(name, block)
        });
        let mut at = init.parameters(&*algorithm, &mut rng(0)).unwrap();
        let value = algorithm.step(&mut at, true).unwrap().value.unwrap();
        (value, at.matrices().iter().map(double).collect())
    }
    for law in [
        (None, Replicates::Limit),
        (None, Replicates::One),
        (Some(2), Replicates::Limit),
    ] {
        // Atoms alone, and three modes of which each has numbers.
        for shapes in [[0.005, 1.0, 1.0], [0.05, 0.03, 0.03]] {
            let (got, want) = (
                step::<f32>(&values, law, shapes),
                step::<f64>(&values, law, shapes),
            );
            assert!(
                (got.0 - want.0).abs() < 1e-4 * want.0.abs(),
                "{got:?} {want:?}"
            );
            for (got, want) in got.1.iter().zip(&want.1) {
                assert!(agree(got, want, 1e-4), "{got} {want}");
            }
        }
        // Below those of double precision too: every datum is in the shapes.
        let (value, blocks) = step::<f64>(&values, law, [5e-4, 5e-4, 5e-4]);
        let size: f64 = values.iter().filter(|v| !v.is_nan()).map(|v| v.abs()).sum();
        assert!(
            value.is_finite() && blocks[0].sum() - 12.0 > size - 1e-6,
            "{blocks:?}"
        );
    }
}

/// Tensors of two modes whose factor carries the scale are matrices: by variational Bayes too. [EXT 6]
#[test]
fn bounds_of_tensors_of_two_modes_are_those_of_matrices() {
    let (f, n, k) = (4, 6, 2);
    let values: Vec<f64> = (0..f * n)
        .map(|i| ((i * i * 7 + 3 * i) % 13) as f64 - 5.5)
        .map(|v| if v == 2.5 { f64::NAN } else { v })
        .collect();
    let data = tensor::<f64>(&[f, n], &values);
    let prior = Prior {
        plus: Entries::All(1.2),
        minus: Entries::All(0.8),
        shape: Entries::All(1.5),
        rate: Entries::All(0.1),
    };
    let snmf = SnmfVb::new(k).priors(prior);
    let shapes = DMatrix::from_fn(2 * f, k, |i, _| if i < f { 1.2 } else { 0.8 });
    let cp = SignedCpVb::new(k)
        .scale_mode(Some(1))
        .prior("atoms", Entries::Each(shapes))
        .prior("factor_1", Gamma::new(1.5, 0.1).unwrap());
    let by = [snmf.bind(&data).unwrap(), cp.bind(&data).unwrap()];
    let start = Init::default().parameters(&*by[0], &mut rng(7)).unwrap();
    let same = Init::default()
        .block("atoms_shape", start.at(0).clone())
        .block("factor_1_shape", start.at(1).transpose())
        .block("factor_1_rate", start.at(2).transpose());
    let same = same.parameters(&*by[1], &mut rng(0)).unwrap();
    let mut at = [start, same];
    for _ in 0..30 {
        let [matrix, tensor] = [0, 1].map(|i| by[i].step(&mut at[i], true).unwrap().value.unwrap());
        assert!(
            (tensor - matrix).abs() < 1e-10 * matrix.abs(),
            "{tensor} {matrix}"
        );
    }
    assert!(agree(at[1].at(0), at[0].at(0), 1e-10));
    for j in [1, 2] {
        assert!(agree(at[1].at(j), &at[0].at(j).transpose(), 1e-10));
    }
}

/// Shapes below what numbers hold, by loops, products of matrices and transforms: no datum is lost. [EXT 5]
#[test]
fn shifted_atoms_of_small_shapes_lose_no_datum() {
    /// The value before a step, and the blocks after it.
    fn step<T: Real>(
        (shape, kernel, values): (&[usize], &[usize], &[f64]),
        (reach, replicates): (Reach, Replicates),
        small: [f64; 2],
    ) -> (f64, Vec<DMatrix<f64>>) {
        let model = ShiftedSnmfVb::new(2, kernel.to_vec()).replicates(replicates);
        let model = model.reach(vec![reach]);
        let data = tensor::<T>(shape, values);
        let algorithm = model.bind(&data).unwrap();
        let init = algorithm.blocks().iter().fold(Init::default(), |init, s| {
            let size = match &*s.name {
                "atoms_shape" => small[0],
                "activations_shape" => small[1],
                _ => 1.001,
            };
            let part = |i: usize, z: usize| 1.0 + ((3 * i + z) % 5) as f64 / 1e3;
            let (rows, columns) = s.shape;
            let block = DMatrix::from_fn(rows, columns, |i, z| T::lit(size * part(i, z)));
            init.block(s.name.to_string(), block)
        });
        let mut at = init.parameters(&*algorithm, &mut rng(0)).unwrap();
        let value = algorithm.step(&mut at, true).unwrap().value.unwrap();
        (value, at.matrices().iter().map(double).collect())
    }
    let cases: [(&[usize], &[usize]); 5] = [
        (&[5, 6], &[2, 3]),
        (&[20, 30], &[20, 6]),
        (&[30, 40], &[12, 1]),
        (&[40, 36], &[11, 9]),
        (&[700], &[64]),
    ];
    for (shape, kernel) in cases {
        let cells: usize = shape.iter().product();
        let values: Vec<f64> = (0..cells)
            .map(|i| ((i * i * 7 + 5 * i) % 17) as f64 - 8.0)
            .map(|v| if v == 3.0 { f64::NAN } else { v })
            .collect();
        let size: f64 = values.iter().filter(|v| !v.is_nan()).map(|v| v.abs()).sum();
        let problem = (shape, kernel, &values[..]);
        for law in [
            (Reach::Valid, Replicates::Limit),
            (Reach::Valid, Replicates::One),
            (Reach::Full, Replicates::Limit),
        ] {
            // Below the numbers of single precision.
            let small = [0.005, 1.0];
            let (got, want) = (
                step::<f32>(problem, law, small),
                step::<f64>(problem, law, small),
            );
            assert!(
                (got.0 - want.0).abs() < 1e-4 * want.0.abs(),
                "{shape:?} {law:?} {} {}",
                got.0,
                want.0
            );
            for (got, want) in got.1.iter().zip(&want.1) {
                assert!(agree(got, want, 1e-4), "{shape:?} {law:?}");
            }
            // Below those of double precision too: every datum is in the shapes.
            let (value, blocks) = step::<f64>(problem, law, [5e-4, 5e-4]);
            let counts = [0, 1].map(|j| blocks[j].sum() - blocks[j].len() as f64);
            assert!(
                value.is_finite() && counts.iter().all(|c| *c > size * (1.0 - 1e-9)),
                "{shape:?} {law:?} {value} {counts:?} {size}"
            );
        }
    }
}

/// Priors of another shape than their blocks are refused with the shape that they should have.
#[test]
fn priors_have_the_shapes_of_blocks() {
    let values: Vec<f64> = (0..24).map(|i| (i % 7) as f64 - 3.0).collect();
    let data = tensor::<f64>(&[3, 2, 4], &values);
    let each = |rows, columns| Entries::Each(DMatrix::from_element(rows, columns, 1.5));
    let cp = || SignedCpVb::new(2);
    let one = || Entries::All(1.0);
    #[rustfmt::skip]
    let cases = [
        (cp().prior("atoms", each(3, 2)), (6, 2)),
        (cp().prior("atoms", each(6, 1)), (6, 2)),
        (cp().prior("factor_1", each(2, 3)), (2, 2)),
        (cp().prior("weights", PriorSpec::Gamma(each(1, 2), one())), (2, 1)),
        (cp().scale_mode(Some(2)).prior("factor_2", PriorSpec::Gamma(one(), each(2, 4))), (4, 2)),
    ];
    for (model, want) in cases {
        match model.bind(&data).map(drop) {
            Err(FitError::Shape { expected, .. }) => assert_eq!(expected, want),
            other => panic!("{other:?}, expected {want:?}"),
        }
    }
    let fitting = cp().prior("atoms", each(6, 2));
    rises(&*fitting.bind(&data).unwrap(), 2, 5);
    let matrix = tensor::<f64>(&[4, 6], &values);
    let shifted = || ShiftedSnmfVb::new(2, vec![2, 2]);
    let cases = [
        (shifted().prior("atoms", each(4, 2)), (8, 2)),
        (
            shifted().prior("activations", PriorSpec::Gamma(each(2, 15), one())),
            (15, 2),
        ),
        (
            shifted().prior("activations", PriorSpec::Gamma(one(), each(15, 1))),
            (15, 2),
        ),
    ];
    for (model, want) in cases {
        match model.bind(&matrix).map(drop) {
            Err(FitError::Shape { expected, .. }) => assert_eq!(expected, want),
            other => panic!("{other:?}, expected {want:?}"),
        }
    }
}

/// Shapes of priors that variational Bayes cannot hold are refused by every model.
#[test]
fn priors_too_small_to_be_held_are_refused() {
    let data = tensor::<f64>(&[2, 2], &[1.0, -2.0, 3.0, -4.0]);
    let least = || Entries::All(1e-200);
    let shifted = || ShiftedSnmfVb::new(1, vec![2, 1]);
    let tensors = || SignedCpVb::new(1);
    let rate = || Entries::All(1.0);
    for model in [
        shifted().prior("atoms", least()),
        shifted().prior("activations", PriorSpec::Gamma(least(), rate())),
    ] {
        let refused = model.bind(&data).map(drop);
        assert!(
            matches!(refused, Err(FitError::Range { .. })),
            "{refused:?}"
        );
    }
    for model in [
        tensors().prior("atoms", least()),
        tensors().prior("weights", PriorSpec::Gamma(least(), rate())),
    ] {
        let refused = model.bind(&data).map(drop);
        assert!(
            matches!(refused, Err(FitError::Range { .. })),
            "{refused:?}"
        );
    }
}

/// So are shapes of starts.
#[test]
fn starts_too_small_to_be_held_are_refused() {
    let data = tensor::<f64>(&[2, 2], &[1.0, -2.0, 3.0, -4.0]);
    let matrix = SnmfVb::new(1);
    let shifted = ShiftedSnmfVb::new(1, vec![2, 1]);
    let tensors = SignedCpVb::new(1);
    for algorithm in [
        matrix.bind(&data).unwrap(),
        shifted.bind(&data).unwrap(),
        tensors.bind(&data).unwrap(),
    ] {
        let init = Init::default().block("atoms_shape", DMatrix::from_element(4, 1, 1e-200));
        let refused = init.parameters(&*algorithm, &mut rng(0)).map(drop);
        assert!(
            matches!(refused, Err(FitError::Range { .. })),
            "{refused:?}"
        );
    }
}

/// Kernels have a place inside the data, and numbers of taps and places are numbers.
#[test]
fn extents_of_kernels_are_checked() {
    let reaches = [Reach::Valid, Reach::Same, Reach::Full];
    for reach in reaches {
        for (size, extent) in [(0, 1), (0, 3), (4, 0), (4, 5), (4, usize::MAX)] {
            assert_eq!(
                reach.places(size, extent),
                None,
                "{reach:?} {size} {extent}"
            );
        }
        assert!(reach.places(usize::MAX, 1).is_some(), "{reach:?}");
        let window = |n: usize, k: usize| {
            let one = |rows| DMatrix::from_element(rows, 1, 0.5);
            ShiftedSnmfState::new(&[n, n], &[k, k], &[reach], one(2), one(1)).unwrap_err()
        };
        assert!(matches!(window(0, 1), FitError::Conflict { .. }));
        assert!(matches!(window(4, 5), FitError::Conflict { .. }));
        for (n, k) in [(1 << 40, 1 << 40), (1 << 40, 1), (usize::MAX, 1)] {
            let error = window(n, k);
            let large = matches!(error, FitError::Data(DataError::TooLarge { .. }));
            assert!(large, "{error}");
        }
    }
}

/// Sums of 300,000 terms, which added up one by one in single precision are a part in a hundred off.
#[test]
fn long_sums_keep_their_digits_in_single_precision() {
    const N: usize = 300_000;
    fn shifted<T: Real>() -> f64 {
        let mut values = vec![f64::NAN; N];
        values[N / 2] = 3.0;
        let data = tensor::<T>(&[N], &values);
        let model = ShiftedSnmfVb::new(1, vec![2]);
        let algorithm = model.bind(&data).unwrap();
        let init = Init::default()
            .block("atoms_shape", DMatrix::from_element(4, 1, T::lit(20.0)))
            .block(
                "activations_shape",
                DMatrix::from_element(N - 1, 1, T::lit(0.5)),
            )
            .block(
                "activations_rate",
                DMatrix::from_element(N - 1, 1, T::lit(1.25)),
            );
        let mut at = init.parameters(&*algorithm, &mut rng(0)).unwrap();
        algorithm.step(&mut at, false).unwrap();
        double(at.at(0)).sum() - 4.0
    }
    fn tensors<T: Real>() -> [f64; 2] {
        let values: Vec<f64> = (0..N).map(|i| 0.1 + (i % 3) as f64 * 1e-3).collect();
        let data = tensor::<T>(&[1, 1, N], &values);
        let model = SignedCp::new(1).replicates(Replicates::Limit);
        let algorithm = model.bind(&data).unwrap();
        let start = Init::default();
        let mut at = start.parameters(&*algorithm, &mut rng(6)).unwrap();
        let drawn = at.at(1)[0].to_f64();
        algorithm.step(&mut at, false).unwrap();
        [drawn, at.at(1)[0].to_f64()]
    }
    let near = |single: f64, double: f64| (single - double).abs() < 1e-6 * double;
    let (single, double) = (shifted::<f32>(), shifted::<f64>());
    assert!(near(single, double), "{single} {double}");
    for (single, double) in tensors::<f32>().into_iter().zip(tensors::<f64>()) {
        assert!(near(single, double), "{single} {double}");
    }
}

/// Of absurd sizes no list is made.
#[test]
fn tensors_beyond_all_measure_are_refused() {
    let shape = [2, 1 << 24, 1 << 24, 2];
    let mut list = Coordinates::empty(&shape);
    list.push(&[0, 1, 2, 1], -3.0);
    let data = SparseTensor::stored_only(list).unwrap();
    let em = SignedCp::new(1).replicates(Replicates::Limit);
    let vb = SignedCpVb::new(1);
    for refused in [em.bind(&data).map(drop), vb.bind(&data).map(drop)] {
        let large = matches!(refused, Err(FitError::Data(DataError::TooLarge { .. })));
        assert!(large, "{refused:?}");
    }
}
