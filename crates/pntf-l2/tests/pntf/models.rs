//! Properties of the models: descent, simplices, equivariance, storages, threads.

use nalgebra::{DMatrix, DVector};
use plca_dist::random;
use plca_fit::laws::{
    Claims, Law, Rounding, check, check_failure, check_moved, check_rate, check_resumed,
    check_threads,
};
use plca_tensor::arrange::Products;
use plca_tensor::strategies::{self, Table, real_problems};
use plca_tensor::{Data, DenseTensor, Order, Real};
use pntf_l2::*;
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Cells of which a third are 0, all observed.
fn table(shape: &[usize], seed: u64) -> Table<f64> {
    let mut rng = rng(seed);
    let mut values: Vec<f64> = (0..shape.iter().product::<usize>())
        .map(|_| {
            let (u, x) = (random::uniform(&mut rng), random::exponential(&mut rng));
            if u < 0.33 { 0.0 } else { x }
        })
        .collect();
    values[0] += 0.5;
    whole(shape, values)
}

fn whole<T: Real>(shape: &[usize], values: Vec<T>) -> Table<T> {
    Table {
        shape: shape.to_vec(),
        observed: vec![true; values.len()],
        values,
    }
}

fn dense<T: Real>(table: &Table<T>) -> DenseTensor<T> {
    table.dense(Order::RowMajor).unwrap()
}

/// Sparse, and with hidden cells both ways.
fn storages<T: Real>(table: &Table<T>) -> [Box<dyn Data<T>>; 3] {
    [
        Box::new(table.sparse().unwrap()),
        Box::new(table.masked(Order::RowMajor).unwrap()),
        Box::new(table.stored_only().unwrap()),
    ]
}

/// Data of order 1 to 4 with 1 to 4 components.
fn problems<T: Real>() -> impl Strategy<Value = Problem<T>> {
    real_problems(1..=4, 1..=5, 1..=4)
}

type Problem<T> = (Table<T>, strategies::Start<T>);

/// The settings for as many components as a start has, and the start as a state.
fn setup<T: Real>(start: &strategies::Start<T>) -> (Pntf, PntfState<T>) {
    let state = PntfState {
        weights: start.weights.clone(),
        factors: start.factors.clone(),
        mass: 1.0,
    };
    (Pntf::builder(start.weights.len()).build().unwrap(), state)
}

/// Factors, every component times its weight: of one without weight nothing is known.
fn show(state: &PntfState<f64>) -> Vec<Vec<f64>> {
    let weights = DMatrix::from_diagonal(&state.weights);
    let factors = state
        .factors
        .iter()
        .map(|f| (f * &weights).as_slice().to_vec());
    factors.collect()
}

/// What the model says of every cell. Rounding decides how components that are nearly equal share their weight.
fn cells(state: &PntfState<f64>) -> Vec<Vec<f64>> {
    let shape: Vec<usize> = state.factors.iter().map(DMatrix::nrows).collect();
    let number = shape.iter().product();
    let cell = |mut at: usize| -> f64 {
        let mut terms = state.weights.clone();
        for (f, &n) in state.factors.iter().zip(&shape) {
            terms.component_mul_assign(&f.row(at % n).transpose());
            at /= n;
        }
        terms.sum()
    };
    vec![(0..number).map(cell).collect()]
}

/// Objectives and parameters within what is claimed here, after so many iterations.
fn within(absolute: f64, compared: usize, entries: f64) -> Claims {
    Claims {
        compared,
        entries,
        ..Claims::new(Rounding {
            relative: 0.0,
            absolute,
        })
    }
}

fn start<T: Real>(pntf: &Pntf, data: &dyn Data<T>, seed: u64) -> PntfState<T> {
    pntf.init(data, &PntfInit::default(), &mut rng(seed))
        .unwrap()
}

fn on_simplices<T: Real>(state: &PntfState<T>) -> Result<(), TestCaseError> {
    // Below 1e-15 in double precision.
    let eps = T::EPSILON.to_f64() * 4.5;
    let check = |column: &[T]| {
        let sum: f64 = column.iter().map(|x| x.to_f64()).sum();
        (sum - 1.0).abs() <= eps * column.len() as f64 && column.iter().all(|&x| x >= T::zero())
    };
    prop_assert!(check(state.weights.as_slice()));
    for factor in &state.factors {
        prop_assert!(factor.as_slice().chunks(factor.nrows()).all(check));
    }
    Ok(())
}

/// Sweeps obey the laws, the objective rising by no more than rounding, and all stays on its simplex; so do extrapolated sweeps.
fn descends<T: Real>(
    pntf: &Pntf,
    data: &dyn Data<T>,
    mut state: PntfState<T>,
    sweeps: usize,
) -> Result<(), TestCaseError> {
    let sweep = pntf.on(data).unwrap();
    let held = Products::new(data).unwrap();
    let scale = sweep.data_scale() / held.scale();
    let rounding = 20.0 * T::EPSILON.to_f64() * held.squared_norm() * scale * scale;
    let claims = |iterations| Claims {
        iterations,
        ..within(rounding, 0, 0.0)
    };
    check(&sweep, &state, &claims(sweeps))?;
    for _ in 0..sweeps {
        sweep.step(&mut state, false).unwrap();
        on_simplices(&state)?;
    }
    let fast = Squarem(sweep);
    check(&fast, &state, &claims(sweeps / 4))?;
    for _ in 0..sweeps / 4 {
        fast.step(&mut state, false).unwrap();
        on_simplices(&state)?;
    }
    Ok(())
}

/// The column-normalised model and the baselines, in one storage.
fn others_descend<T: Real>(data: &dyn Data<T>, k: usize, seed: u64) -> Result<(), TestCaseError> {
    let eps = T::EPSILON.to_f64();
    let columns = data.shape()[1] as f64;
    let claims = |rounding| Claims {
        iterations: 8,
        ..within(rounding, 0, 0.0)
    };
    let nmf = ColumnNmf::builder(k).build().unwrap();
    let mut state = nmf
        .init(data, &ColumnNmfInit::default(), &mut rng(seed))
        .unwrap();
    let sweep = nmf.on(data).unwrap();
    check(&sweep, &state, &claims(450.0 * eps * columns))?;
    for _ in 0..8 {
        sweep.step(&mut state, false).unwrap();
        let sums = |c: &[T]| (c.iter().map(|x| x.to_f64()).sum::<f64>() - 1.0).abs();
        for m in [&state.u, &state.v] {
            let mut columns = m.as_slice().chunks(m.nrows());
            prop_assert!(
                columns.all(|c| sums(c) <= 45.0 * eps && c.iter().all(|&x| x >= T::zero()))
            );
        }
    }
    for update in [NtfUpdate::Multiplicative, NtfUpdate::Hals] {
        let ntf = Ntf::builder(k).update(update).build().unwrap();
        let state = ntf.init(data, &[], &mut rng(seed)).unwrap();
        let sweep = ntf.on(data).unwrap();
        check(&sweep, &state, &claims(45.0 * eps * data.summary().squares))?;
    }
    Ok(())
}

/// In every storage, with hidden cells too.
fn every_storage_descends<T: Real>((table, start): &Problem<T>) -> Result<(), TestCaseError> {
    let (pntf, state) = setup(start);
    for data in storages(table) {
        descends(&pntf, &*data, state.clone(), 8)?;
    }
    Ok(())
}

/// Two ways to hide cells give the same sweeps.
fn hidden_values_play_no_part((table, start): &Problem<f64>) -> Result<(), TestCaseError> {
    let (pntf, first) = setup(start);
    let [_, masked, stored] = storages(table);
    let (mut a, mut b) = (first.clone(), first);
    for _ in 0..3 {
        pntf.on(&*masked).unwrap().step(&mut a, false).unwrap();
        pntf.on(&*stored).unwrap().step(&mut b, false).unwrap();
    }
    prop_assert!((a.mass - b.mass).abs() <= 1e-9 * a.mass, "{a:?} {b:?}");
    for (a, b) in show(&a).iter().zip(&show(&b)) {
        prop_assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-7));
    }
    Ok(())
}

/// Dense and sparse data give the same sweeps up to rounding.
fn storages_agree((table, start): &Problem<f64>) -> Result<(), TestCaseError> {
    let (pntf, state) = setup(start);
    let (data, [sparse, ..]) = (dense(table), storages(table));
    let (a, b) = (pntf.on(&data).unwrap(), pntf.on(&*sparse).unwrap());
    let claims = within(1e-11, 3, 1e-7);
    Ok(check_moved(
        Law::Same,
        &a,
        &b,
        &state,
        Clone::clone,
        cells,
        1.0,
        &claims,
    )?)
}

/// A problem that failed once.
#[test]
fn a_problem_found_before() {
    let seed = 2205826930509943406;
    let mut table = table(&[2, 2], seed);
    let mut draws = rng(seed ^ 1);
    let seen = |at: usize| at == 0 || random::uniform(&mut draws) < 0.7;
    table.observed = (0..4).map(seen).collect();
    let drawn = start(&Pntf::builder(1).build().unwrap(), &dense(&table), seed);
    let problem = (
        table,
        strategies::Start {
            weights: drawn.weights,
            factors: drawn.factors,
        },
    );
    every_storage_descends(&problem).unwrap();
    hidden_values_play_no_part(&problem).unwrap();
    storages_agree(&problem).unwrap();
}

/// A component whose weight the first step takes to a rounding error above 0: its columns are noise.
#[test]
fn columns_without_weight_are_not_compared() {
    let mut table = whole(&[4, 2, 1], vec![0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 3.0, 0.0]);
    table.observed[6] = false;
    let start = strategies::Start {
        weights: DVector::from_vec(vec![
            0.37067110901820943,
            0.5342393928480498,
            0.06563344940620595,
            0.029456048727534788,
        ]),
        factors: vec![
            DMatrix::from_column_slice(
                4,
                4,
                &[
                    0.1321762748673924,
                    0.1321762748673924,
                    0.1321762748673924,
                    0.6034711753978228,
                    0.8134262877673324,
                    0.06219123741088916,
                    0.06219123741088916,
                    0.06219123741088916,
                    0.2711393328790569,
                    0.0931162675065458,
                    0.0931162675065458,
                    0.5426281321078515,
                    0.14006862074743134,
                    0.14006862074743134,
                    0.579794137757706,
                    0.14006862074743134,
                ],
            ),
            DMatrix::from_column_slice(
                2,
                4,
                &[
                    0.9488032496347583,
                    0.05119675036524168,
                    0.925347466878716,
                    0.07465253312128384,
                    0.35979767816099906,
                    0.6402023218390008,
                    0.5,
                    0.5,
                ],
            ),
            DMatrix::from_element(1, 4, 1.0),
        ],
    };
    storages_agree(&(table, start)).unwrap();
}

/// Nearly all of the data is one cell, on which all components come to lie: only rounding says how they share the weight.
#[test]
fn equal_components_are_compared_by_their_sum() {
    let values = vec![
        0.0,
        6.841071063879248,
        5.05e-6,
        0.0,
        0.0,
        4.671219515572116e-5,
    ];
    let mut table = whole(&[1, 2, 3, 1], values);
    table.observed[2] = false;
    let columns = [
        0.17220265548762806,
        0.4385465096997865,
        0.3892508348125855,
        0.029010173186836567,
        0.48732723070200445,
        0.4836625961111589,
        0.654874084074325,
        0.30503391614378056,
        0.0400919997818943,
    ];
    let start = strategies::Start {
        weights: DVector::from_vec(vec![
            0.5855421875225374,
            0.029664285939425373,
            0.3847935265380372,
        ]),
        factors: vec![
            DMatrix::from_element(1, 3, 1.0),
            DMatrix::from_element(2, 3, 0.5),
            DMatrix::from_column_slice(3, 3, &columns),
            DMatrix::from_element(1, 3, 1.0),
        ],
    };
    storages_agree(&(table, start)).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The objective never rises over a sweep, in any order and either precision.
    #[test]
    fn sweeps_descend((table, start) in problems::<f64>(), single in problems::<f32>(), revive: bool) {
        let settings = |k| Pntf::builder(k).revive(revive).build().unwrap();
        let state = setup(&start).1;
        descends(&settings(state.weights.len()), &dense(&table), state, 12)?;
        let state = setup(&single.1).1;
        descends(&settings(state.weights.len()), &dense(&single.0), state, 12)?;
    }

    /// Nor over any single block: one factor free, or the weights alone.
    #[test]
    fn every_block_descends((table, start) in problems::<f64>()) {
        let (data, order) = (dense(&table), table.shape.len());
        let drawn = setup(&start).1;
        for free in 0..=order {
            let mut builder = Pntf::builder(drawn.weights.len());
            for mode in (0..order).filter(|&m| m != free) {
                builder = builder.freeze_factor(mode);
            }
            if free < order {
                builder = builder.freeze_weights();
            }
            let pntf = builder.build().unwrap();
            let init = PntfInit::from(drawn.clone());
            let state = pntf.init(&data, &init, &mut rng(0)).unwrap();
            descends(&pntf, &data, state, 2)?;
        }
    }

    /// In every storage, with hidden cells too, in either precision.
    #[test]
    fn storages_descend(problem in problems::<f64>(), single in problems::<f32>()) {
        every_storage_descends(&problem)?;
        every_storage_descends(&single)?;
    }

    /// Hidden values play no part: two ways to hide cells give the same sweeps.
    #[test]
    fn hidden_values(problem in real_problems::<f64>(2..=3, 2..=5, 1..=3)) {
        hidden_values_play_no_part(&problem)?;
    }

    /// Dense, sparse and fully seen data give the same sweeps up to rounding.
    #[test]
    fn storages_are_alike(problem in problems::<f64>()) {
        storages_agree(&problem)?;
    }

    /// A power of two times the data: the same bits.
    #[test]
    fn scale_of_the_data_does_not_matter((table, start) in problems::<f64>(), exponent in -200..200i32) {
        let (pntf, state) = setup(&start);
        let total: f64 = table.values.iter().sum();
        let (data, other) = (dense(&table), dense(&table.scaled(2f64.powi(exponent))));
        let (a, b) = (pntf.on(&data).unwrap(), pntf.on(&other).unwrap());
        prop_assert!((a.data_scale() * total - 1.0).abs() <= 1e-14);
        prop_assert!((b.data_scale() * total * 2f64.powi(exponent) - 1.0).abs() <= 1e-14);
        check_moved(Law::Scale, &a, &b, &state, Clone::clone, show, 1.0, &within(0.0, 5, 0.0))?;
    }

    /// Permuting the indices of a mode permutes the rows of its factor.
    #[test]
    fn permutation_of_indices(
        ((table, start), (mode, order)) in problems::<f64>().prop_flat_map(|p| {
            let shape = p.0.shape.clone();
            let rows = (0..shape.len()).prop_flat_map(move |m| (Just(m), strategies::permutations(shape[m])));
            (Just(p), rows)
        }),
    ) {
        let (pntf, state) = setup(&start);
        let (data, other) = (dense(&table), dense(&table.permute_mode(mode, &order)));
        let permuted = |state: &PntfState<f64>| {
            let mut state = state.clone();
            state.factors[mode] = state.factors[mode].select_rows(&order);
            state
        };
        let (a, b) = (pntf.on(&data).unwrap(), pntf.on(&other).unwrap());
        check_moved(Law::Permutation, &a, &b, &state, permuted, cells, 1.0, &within(1e-11, 1, 1e-9))?;
    }

    /// Permuting modes, or components where one component moves at a time, permutes the model: same objective, same step.
    #[test]
    fn permutation_of_modes_and_components((table, start) in real_problems::<f64>(2..=4, 1..=5, 3..=3)) {
        let n = table.shape.len();
        let turned: Vec<usize> = (0..n).rev().collect();
        let (data, other) = (dense(&table), dense(&table.permute_modes(&turned)));
        // Only mode 0 of the one and the last of the other move.
        let frozen = |free: usize| {
            let builder = (0..n).filter(|&m| m != free).fold(Pntf::builder(3), PntfBuilder::freeze_factor);
            builder.build().unwrap()
        };
        let mut a = setup(&start).1;
        let mut b = a.clone();
        b.factors.reverse();
        frozen(0).on(&data).unwrap().step(&mut a, false).unwrap();
        frozen(n - 1).on(&other).unwrap().step(&mut b, false).unwrap();
        prop_assert!((&a.factors[0] - &b.factors[n - 1]).amax() <= 1e-8);
        // Components: the objective and the weight problem do not depend on their order.
        let mut c = a.clone();
        c.factors.iter_mut().for_each(|f| f.swap_columns(0, 2));
        c.weights.swap_rows(0, 2);
        let all = (0..n).fold(Pntf::builder(3), PntfBuilder::freeze_factor).build().unwrap();
        let weigh = all.on(&data).unwrap();
        prop_assert!((weigh.objective(&a).unwrap() - weigh.objective(&c).unwrap()).abs() <= 1e-13);
        weigh.step(&mut a, false).unwrap();
        weigh.step(&mut c, false).unwrap();
        prop_assert!((weigh.objective(&a).unwrap() - weigh.objective(&c).unwrap()).abs() <= 1e-13);
    }

    /// The column-normalised model and the baselines descend as well.
    #[test]
    fn other_models_descend(rows in 1..7usize, columns in 1..7usize, k in 1..4usize, seed: u64) {
        let mut table = table(&[rows, columns], seed);
        table.values.iter_mut().take(columns).for_each(|x| *x += 0.1);
        let single = whole(&table.shape, table.values.iter().map(|&x| x as f32).collect());
        others_descend(&dense(&table), k, seed)?;
        others_descend(&table.sparse().unwrap(), k, seed)?;
        others_descend(&dense(&single), k, seed)?;
        others_descend(&single.sparse().unwrap(), k, seed)?;
    }
}

/// Where nearly all cancels, the objective is still the sum of squares, cell by cell.
// [PNTF 5]
#[test]
fn small_errors_are_summed_cell_by_cell() {
    let (rows, columns) = (6, 7);
    let u = DMatrix::from_fn(rows, 2, |i, z| {
        if i / 3 == z {
            (1 + i % 3) as f64 / 6.0
        } else {
            0.0
        }
    });
    let v = DMatrix::from_fn(2, columns, |z, j| {
        if j % 3 == 2 {
            0.5
        } else if j % 3 == z {
            1.0
        } else {
            0.0
        }
    });
    let totals: Vec<f64> = (0..columns).map(|j| 1.0 + j as f64).collect();
    let product = &u * &v;
    let values: Vec<f64> = (0..rows * columns)
        .map(|at| product[(at / columns, at % columns)] * totals[at % columns])
        .collect();
    let table = whole(&[rows, columns], values);
    let sparse = table.sparse().unwrap();
    let nmf = ColumnNmf::builder(2).build().unwrap();
    for data in [&dense(&table) as &dyn Data<f64>, &sparse] {
        for error in [1e-3, 1e-6, 1e-8, 1e-10] {
            let mut state = ColumnNmfState {
                u: u.clone(),
                v: v.clone(),
            };
            // In a cell of the model, and outside.
            state.u[(0, 0)] += error;
            state.u[(5, 0)] -= error;
            state.v[(0, 1)] += error;
            let want = (&product - &state.u * &state.v).norm_squared();
            let sweep = nmf.on(data).unwrap();
            let got = sweep.objective(&state).unwrap();
            assert!((got - want).abs() <= 1e-4 * want, "{error}: {got} {want}");
            let measured = sweep.step(&mut state, true).unwrap().unwrap();
            assert!(
                (measured - want).abs() <= 1e-4 * want,
                "{error}: {measured} {want}"
            );
        }
        let exact = ColumnNmfState {
            u: u.clone(),
            v: v.clone(),
        };
        let got = nmf.on(data).unwrap().objective(&exact).unwrap();
        assert!((0.0..1e-30).contains(&got), "{got}");
    }
}

/// The same for weights and factors on the simplex, and for factors without constraint.
// [PNTF 5]
#[test]
fn small_errors_of_any_order_are_summed_cell_by_cell() {
    let shape = [3, 4, 2];
    let factors: Vec<DMatrix<f64>> = (shape.iter())
        .map(|&n| DMatrix::from_fn(n, 2, |i, z| (1 + (i + z) % 3) as f64))
        .map(|mut f| {
            f.column_iter_mut().for_each(|mut c| c /= c.sum());
            f
        })
        .collect();
    let model = |factors: &[DMatrix<f64>]| -> Vec<f64> {
        let cell = |at| {
            let index = whole(&shape, vec![0.0; 24]).index(at);
            (0..2)
                .map(|z| 0.5 * (0..3).map(|m| factors[m][(index[m], z)]).product::<f64>())
                .sum()
        };
        (0..24).map(cell).collect()
    };
    let values = model(&factors);
    let data = dense(&whole(&shape, values.clone()));
    for error in [1e-6, 1e-8, 1e-10] {
        let mut moved = factors.clone();
        moved[1][(0, 0)] += error;
        moved[1][(2, 0)] -= error;
        let want: f64 = values
            .iter()
            .zip(model(&moved))
            .map(|(a, b)| (a - b).powi(2))
            .sum();
        let state = PntfState {
            weights: DVector::from_element(2, 0.5),
            factors: moved.clone(),
            mass: 1.0,
        };
        let pntf = Pntf::builder(2).build().unwrap();
        let got = pntf.on(&data).unwrap().objective(&state).unwrap();
        assert!((got - want).abs() <= 1e-4 * want, "{error}: {got} {want}");
        moved[0] *= 0.5;
        let ntf = Ntf::builder(2).build().unwrap();
        let got = ntf
            .on(&data)
            .unwrap()
            .objective(&NtfState { factors: moved })
            .unwrap();
        assert!((got - want).abs() <= 1e-4 * want, "{error}: {got} {want}");
    }
}

/// A deflated start takes hidden cells for zeros, and the sweeps from it do not.
#[test]
fn deflation_with_hidden_cells() {
    let mut table = table(&[6, 8], 5);
    (0..48).for_each(|at| table.observed[at] = at % 7 != 3);
    let masked = table.masked(Order::RowMajor).unwrap();
    let cells = table.values.iter().zip(&table.observed);
    let zeros = cells.map(|(&x, &seen)| if seen { x } else { 0.0 });
    let zeros = dense(&whole(&[6, 8], zeros.collect()));
    let pntf = Pntf::builder(2).start(Start::Deflation).build().unwrap();
    let first = start(&pntf, &masked, 0);
    let other = start(&pntf, &zeros, 0);
    for (a, b) in first.factors.iter().zip(&other.factors) {
        assert!((a - b).amax() < 1e-12);
    }
    descends(&pntf, &masked, first.clone(), 30).unwrap();
    // The hidden cells' own values decide nothing, and zeros do.
    let sweep = pntf.on(&masked).unwrap();
    let (mut a, mut b) = (first.clone(), first);
    sweep.step(&mut a, false).unwrap();
    pntf.on(&zeros).unwrap().step(&mut b, false).unwrap();
    assert!((&a.factors[0] - &b.factors[0]).amax() > 1e-3);
}

/// Data of an exact model with hidden cells: the hidden cells are recovered.
#[test]
fn hidden_cells_are_recovered() {
    let (u, v) = (
        DMatrix::from_fn(8, 2, |i, z| if i / 4 == z { 1.0 + i as f64 } else { 0.0 }),
        DMatrix::from_fn(9, 2, |i, z| if i % 2 == z { 2.0 } else { 0.5 }),
    );
    let p = &u * v.transpose();
    let values: Vec<f64> = p
        .iter()
        .enumerate()
        .map(|(at, &x)| if at % 5 == 2 { f64::NAN } else { x })
        .collect();
    let data = DenseTensor::masked(vec![8, 9], values, Order::ColumnMajor).unwrap();
    let pntf = Pntf::builder(2).build().unwrap();
    let stop = Stop {
        max_iter: 3000,
        tol: 1e-15,
        ..Stop::default()
    };
    let best = best_of(4, Direction::Minimise, |seed| {
        pntf.fit(&data, &PntfInit::default(), &stop, &mut rng(seed))
    })
    .unwrap();
    let scale = best.state.mass * data.total();
    let got = &best.state.factors[0]
        * DMatrix::from_diagonal(&best.state.weights)
        * best.state.factors[1].transpose()
        * scale;
    assert!((got - p).amax() < 1e-3, "{}", best.objective);
}

/// Three factors of two components with random columns. The components of an exact tensor of order 3 are unique.
fn recovered(seed: u64, read: impl Fn(&mut Table<f64>)) -> bool {
    let mut draws = rng(seed);
    let shape = [6, 5, 4];
    let factors = shape.map(|n| {
        let mut m = DMatrix::from_fn(n, 2, |_, _| random::exponential(&mut draws));
        plca_tensor::normalise_columns(&mut m);
        m
    });
    let mut table = whole(&shape, vec![0.0; 120]);
    for at in 0..120 {
        let index = table.index(at);
        let term = |z| (0..3).map(|m| factors[m][(index[m], z)]).product::<f64>();
        table.values[at] = 0.4 * term(0) + 0.6 * term(1);
    }
    read(&mut table);
    let data = dense(&table);
    let pntf = Pntf::builder(2).build().unwrap();
    let stop = Stop {
        max_iter: 1000,
        tol: 0.0,
        ..Stop::default()
    };
    let best = best_of(3, Direction::Minimise, |start| {
        let mut draws = rng(1000 * start + seed);
        pntf.fit(&data, &PntfInit::default(), &stop, &mut draws)
    });
    let state = best.unwrap().state;
    [[0, 1], [1, 0]].iter().any(|order| {
        let pairs = state.factors.iter().zip(&factors);
        pairs
            .into_iter()
            .all(|(got, want)| (got.select_columns(order) - want).amax() <= 0.05)
    })
}

/// For 95 of 100 random models the best of 3 fits has the factors to within 0.05; a reader that takes 0 for every seventh cell is caught.
#[test]
fn planted_factors_are_found() {
    check_rate(0.95, 100, |seed| recovered(seed, |_| ())).unwrap();
    let holes = |table: &mut Table<f64>| {
        let every_seventh = table.values.iter_mut().step_by(7);
        every_seventh.for_each(|x| *x = 0.0);
    };
    let violation = check_rate(0.95, 20, |seed| recovered(seed, holes)).unwrap_err();
    assert_eq!(violation.law, Law::Rate, "{violation}");
}

/// A dead component stays dead, unless it is revived; then the fit gets better.
#[test]
fn revival_of_a_dead_component() {
    let data = dense(&whole(&[2, 2], vec![1.0, 0.0, 0.0, 1.0]));
    let half = DMatrix::from_element(2, 2, 0.5);
    let init = PntfInit {
        weights: Some(DVector::from_vec(vec![1.0, 0.0])),
        factors: vec![Some(half.clone()), Some(half)],
    };
    let stop = Stop {
        max_iter: 30,
        tol: 0.0,
        ..Stop::default()
    };
    let fit = |revive| {
        Pntf::builder(2)
            .revive(revive)
            .build()
            .unwrap()
            .fit(&data, &init, &stop, &mut rng(0))
            .unwrap()
    };
    assert!(fit(false).state.weights[1] >= 0.0);
    assert!(fit(true).objective <= fit(false).objective);
}

/// Continuing from a saved state, through JSON, is the same run to the bit; and the saved text holds every digit.
#[test]
fn a_run_can_be_interrupted() {
    let data = dense(&table(&[5, 4, 3], 4));
    let pntf = Pntf::builder(3).build().unwrap();
    let sweep = pntf.on(&data).unwrap();
    let stop = Stop {
        max_iter: 9,
        tol: 0.0,
        ..Stop::default()
    };
    let copy = |saved: &_| {
        let text = serde_json::to_string(saved).unwrap();
        let back = serde_json::from_str(&text).unwrap();
        assert_eq!(saved, &back);
        back
    };
    check_resumed(&sweep, &start(&pntf, &data, 1), &stop, 4, copy).unwrap();
}

#[test]
fn threads_change_no_bit() {
    let table = table(&[31, 24, 13], 8);
    // Tall enough for its products to be cut.
    let tall = self::table(&[2100, 30], 8);
    let (whole, sparse, tall) = (dense(&table), table.sparse().unwrap(), dense(&tall));
    let storages: [(&dyn Data<f64>, usize); 3] = [(&whole, 6), (&sparse, 6), (&tall, 24)];
    for (data, k) in storages {
        let run = || {
            let stop = Stop {
                max_iter: 4,
                tol: 0.0,
                ..Stop::default()
            };
            let fit = Pntf::builder(k)
                .build()
                .unwrap()
                .fit(data, &PntfInit::default(), &stop, &mut rng(2))
                .unwrap();
            let mixture = fit.state.explain(data, 0).unwrap();
            (fit.state, fit.objective.to_bits(), mixture)
        };
        check_threads(run).unwrap();
    }
}

/// The weights of new data are the global optimum: slices of the model itself are explained exactly.
#[test]
fn explaining_the_model_itself() {
    let mut next = rng(3);
    let mut random = |rows, k| {
        let mut m = DMatrix::from_fn(rows, k, |_, _| random::exponential(&mut next));
        m.column_iter_mut().for_each(|mut c| {
            let s = c.sum();
            c /= s;
        });
        m
    };
    let (topics, mix) = (random(12, 3), random(3, 7));
    let state = PntfState {
        weights: DVector::from_element(3, 1.0 / 3.0),
        factors: vec![topics.clone(), random(4, 3)],
        mass: 1.0,
    };
    let product = &topics * &mix;
    let mut values: Vec<f64> = product.iter().map(|x| x * 5.0).collect();
    values.extend([0.0; 12]);
    let data = DenseTensor::new(vec![12, 8], values, Order::ColumnMajor).unwrap();
    let mixture = state.explain(&data, 1).unwrap();
    assert_eq!(mixture.empty, [7]);
    assert!((mixture.weights.columns(0, 7) - mix).amax() < 1e-12);
    assert!(
        mixture.gaps.iter().all(|&g| g < 1e-14)
            && mixture.squared_errors[..7].iter().all(|&e| e < 1e-14)
    );
}

/// Deflation starts near the data: better than the random start, and it draws nothing.
#[test]
fn deflation_starts_better_than_chance() {
    let data = dense(&table(&[9, 8, 7], 5));
    let at = |kind, seed| {
        let pntf = Pntf::builder(4).start(kind).build().unwrap();
        let state = start(&pntf, &data, seed);
        (pntf.on(&data).unwrap().objective(&state).unwrap(), state)
    };
    let (deflated, state) = at(Start::Deflation, 1);
    assert_eq!(state, at(Start::Deflation, 2).1);
    for seed in 0..10 {
        assert!(deflated < at(Start::Random, seed).0);
    }
}

/// The second component of deflation is the first one of what the best rank-one term leaves over.
// [PNTF 5]
#[test]
fn deflation_goes_on_with_what_is_left() {
    let mut draws = rng(12);
    let shape = [7, 6];
    // The first one is far ahead, so that alternation converges; both share rows and columns.
    let mut column = |n: usize| DVector::from_fn(n, |_, _| random::exponential(&mut draws) + 0.1);
    let g = column(7) * column(6).transpose() + column(7) * column(6).transpose() * 0.01;
    let dense = |m: &DMatrix<f64>| {
        DenseTensor::new(shape.to_vec(), m.as_slice().to_vec(), Order::ColumnMajor).unwrap()
    };
    let deflated = |m: &DMatrix<f64>, k| {
        let pntf = Pntf::builder(k).start(Start::Deflation).build().unwrap();
        start(&pntf, &dense(m), 0)
    };
    let svd = g.clone().svd(true, true);
    let first = svd.u.unwrap().column(0) * svd.v_t.unwrap().row(0) * svd.singular_values[0];
    let (both, one, rest) = (deflated(&g, 2), deflated(&g, 1), deflated(&(&g - first), 1));
    for mode in 0..2 {
        let columns = both.factors[mode].column_iter();
        let expected = one.factors[mode]
            .column_iter()
            .chain(rest.factors[mode].column_iter());
        for (got, want) in columns.zip(expected) {
            assert!((got - want).amax() <= 1e-9, "{got} {want}");
        }
    }
}

/// A deflated start lies inside the simplices: one part in twenty of every block is uniform.
// [PNTF 5]
#[test]
fn deflation_leaves_nothing_at_zero() {
    let (a, b) = ([0.5, 0.25, 0.25, 0.0], [0.0, 0.75, 0.25]);
    // Two blocks without a common row or column, one far ahead: the terms of deflation.
    let apart = DMatrix::from_fn(8, 6, |i, j| match (i / 4, j / 3) {
        (0, 0) => 0.95 * a[i] * b[j],
        (1, 1) => 0.05 * a[i - 4] * b[j - 3],
        _ => 0.0,
    });
    let values = apart.as_slice().to_vec();
    let data = DenseTensor::new(vec![8, 6], values, Order::ColumnMajor).unwrap();
    let pntf = Pntf::builder(2).start(Start::Deflation).build().unwrap();
    let state: PntfState<f64> = start(&pntf, &data, 0);
    let near = |got: f64, wanted: f64| assert!((got - wanted).abs() <= 1e-12, "{got} {wanted}");
    for t in 0..2 {
        for (i, &x) in state.factors[0].column(t).iter().enumerate() {
            near(
                x,
                if i / 4 == t { 0.95 * a[i % 4] } else { 0.0 } + 0.05 / 8.0,
            );
        }
        for (j, &x) in state.factors[1].column(t).iter().enumerate() {
            near(
                x,
                if j / 3 == t { 0.95 * b[j % 3] } else { 0.0 } + 0.05 / 6.0,
            );
        }
    }
    // The weights are the best ones of these factors, before their part is mixed in.
    let term = |t: usize| state.factors[0].column(t) * state.factors[1].column(t).transpose();
    let (first, difference) = (term(0), term(0) - term(1));
    let best = 1.0 - (first - apart).dot(&difference) / difference.norm_squared();
    near(state.weights[0], 0.95 * best + 0.05 / 2.0);
    near(state.weights.sum(), 1.0);
}

/// A mass that would be 0 is not taken: nothing would come back from it.
#[test]
fn a_model_beside_the_data_keeps_its_mass() {
    let values = vec![1.0, 0.0, 0.0, f64::NAN];
    let data = DenseTensor::masked(vec![2, 2], values, Order::RowMajor).unwrap();
    let frozen = Pntf::builder(1)
        .freeze_factor(0)
        .freeze_factor(1)
        .freeze_weights()
        .build()
        .unwrap();
    let column = |first| DMatrix::from_vec(2, 1, vec![first, 1.0 - first]);
    let mut state = PntfState {
        weights: DVector::from_element(1, 1.0),
        factors: vec![column(0.0), column(1.0)],
        mass: 0.5,
    };
    frozen.on(&data).unwrap().step(&mut state, false).unwrap();
    assert_eq!(state.mass, 0.5);
}

/// Extrapolated sweeps never end worse than plain ones of which they consist began.
#[test]
fn acceleration_is_monotone() {
    let data = dense(&table(&[12, 11], 6));
    let pntf = Pntf::builder(4).build().unwrap();
    let sweep = Squarem(pntf.on(&data).unwrap());
    let mut state = start(&pntf, &data, 1);
    let mut before = sweep.objective(&state).unwrap();
    for _ in 0..30 {
        sweep.step(&mut state, false).unwrap();
        let after = sweep.objective(&state).unwrap();
        assert!(after <= before + 1e-16, "{before} {after}");
        on_simplices(&state).unwrap();
        before = after;
    }
}

/// At the end of a long run the residual of the optimality conditions is small; at the start it is not.
#[test]
fn residual_vanishes_at_a_stationary_point() {
    let data = dense(&table(&[6, 5], 9));
    let pntf = Pntf::builder(2).build().unwrap();
    let sweep = pntf.on(&data).unwrap();
    let first = start(&pntf, &data, 1);
    assert!(sweep.residual(&first).unwrap().unwrap() > 1e-3);
    let stop = Stop {
        max_iter: 5000,
        tol: 0.0,
        ..Stop::default()
    };
    let fit = run(&sweep, first, &stop, ()).unwrap();
    let end = sweep.residual(&fit.state).unwrap().unwrap();
    assert!(end < 1e-6, "{end}");
}

/// A step that fails leaves its state as it was: here the factors have their update when the weights leave the numbers.
#[test]
fn failing_steps_change_nothing() {
    let data = dense(&table(&[3, 4], 1));
    let pntf = Pntf::builder(2).build().unwrap();
    let state = PntfState {
        mass: 1e200,
        ..start(&pntf, &data, 1)
    };
    check_failure(&pntf.on(&data).unwrap(), &state).unwrap();
    let nmf = ColumnNmf::builder(2).build().unwrap();
    let init = ColumnNmfInit::default();
    let mut state = nmf.init(&data, &init, &mut rng(1)).unwrap();
    state.v[(0, 1)] = f64::INFINITY;
    check_failure(&nmf.on(&data).unwrap(), &state).unwrap();
}

#[test]
fn bad_input_is_named() {
    let pntf = Pntf::builder(2).build().unwrap();
    let refuse = |data: &dyn Data<f64>, init: &PntfInit<f64>| {
        pntf.init(data, init, &mut rng(0)).unwrap_err()
    };
    let none = PntfInit::default();
    assert_eq!(
        Pntf::builder(0).build().unwrap_err(),
        ParamError::NoComponents
    );
    assert_eq!(
        refuse(&dense(&whole(&[2, 1], vec![1.0, -1.0])), &none),
        PntfError::Total(0.0)
    );
    assert_eq!(
        refuse(&dense(&whole(&[2, 1], vec![0.0, 0.0])), &none),
        PntfError::Total(0.0)
    );
    let data = dense(&whole(&[2, 2], vec![1.0, 2.0, 3.0, -0.5]));
    assert!(data.summary().negative.is_some());
    let given = |m: DMatrix<f64>| PntfInit {
        weights: None,
        factors: vec![Some(m)],
    };
    assert!(matches!(
        refuse(&data, &given(DMatrix::zeros(3, 2))),
        PntfError::Shape { .. }
    ));
    assert!(matches!(
        refuse(&data, &given(DMatrix::from_element(2, 2, f64::NAN))),
        PntfError::Value { .. }
    ));
    let many = PntfInit {
        weights: None,
        factors: vec![None, None, None],
    };
    assert!(matches!(
        refuse(&data, &many),
        PntfError::Factors { got: 3, .. }
    ));
    let weights = PntfInit {
        weights: Some(DVector::from_vec(vec![1.0, -1.0])),
        factors: vec![],
    };
    assert!(matches!(refuse(&data, &weights), PntfError::Value { .. }));
    let frozen = Pntf::builder(2).freeze_factor(5).build().unwrap();
    assert!(matches!(
        frozen.on(&data),
        Err(PntfError::Mode { mode: 5, order: 2 })
    ));
    let frozen = Pntf::builder(2).freeze_factor(1).build().unwrap();
    assert!(matches!(
        frozen.init(&data, &none, &mut rng(0)),
        Err(PntfError::FixedWithoutValue { .. })
    ));
    // Columns that are no distributions are projected, zeros become uniform.
    let state = pntf
        .init(
            &data,
            &given(DMatrix::from_row_slice(2, 2, &[0.0, 3.0, 0.0, -1.0])),
            &mut rng(0),
        )
        .unwrap();
    assert_eq!(
        state.factors[0],
        DMatrix::from_row_slice(2, 2, &[0.5, 1.0, 0.5, 0.0])
    );
    assert_eq!(
        Ntf::builder(1).build().unwrap().on(&data).unwrap_err(),
        PntfError::Negative
    );
    let empty_column = dense(&whole(&[2, 2], vec![1.0, 0.0, 3.0, 0.0]));
    let nmf = ColumnNmf::builder(1).build().unwrap();
    assert!(matches!(
        nmf.on(&empty_column),
        Err(PntfError::ColumnTotal { column: 1, .. })
    ));
    // The total is one of the data, whatever they are stored as.
    let negative = dense(&whole(&[2, 2], vec![3e307, 3e307, 3e307, -4.5e307]));
    let refused = nmf.on(&negative).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "column 1 sums to {}, not to a positive number",
            3e307 - 4.5e307
        )
    );
    let huge = dense(&whole(&[2, 2], vec![5e307, 5e307, 5e307, 0.0]));
    assert!(
        pntf.fit(&huge, &none, &Stop::default(), &mut rng(1))
            .unwrap()
            .objective
            .is_finite()
    );
    assert_eq!(
        Ntf::builder(1).build().unwrap().on(&huge).unwrap_err(),
        PntfError::Overflow
    );
    let stop = Stop {
        tol: f64::NAN,
        ..Stop::default()
    };
    assert!(matches!(
        pntf.fit(&data, &none, &stop, &mut rng(0)),
        Err(PntfError::Stop(_))
    ));
}

/// A state that does not go with the data is an error of every entry point, and stays as it is.
#[test]
fn states_that_do_not_fit_are_refused() {
    fn refuses<A>(sweep: &A, state: A::State)
    where
        A: Algorithm<Error = PntfError>,
        A::State: Clone + PartialEq + std::fmt::Debug,
    {
        check_failure(sweep, &state).unwrap();
        let error = sweep.step(&mut state.clone(), true).unwrap_err();
        assert!(
            matches!(error, PntfError::Factors { .. } | PntfError::Shape { .. }),
            "{error}"
        );
        assert_eq!(sweep.objective(&state), Err(error.clone()));
        assert!(matches!(sweep.residual(&state), Ok(None) | Err(_)));
    }
    let g: DenseTensor<f64> = dense(&whole(&[2, 3], vec![1.0, 0.0, 2.0, 0.5, 1.0, 3.0]));
    let (rows, columns) = (
        DMatrix::from_element(2, 2, 0.5),
        DMatrix::from_element(3, 2, 0.25),
    );
    let wrong = [
        vec![],
        vec![rows.clone()],
        vec![rows.clone(), columns.clone(), columns.clone()],
        vec![columns.clone(), rows.clone()],
        vec![rows.clone(), DMatrix::from_element(3, 1, 0.25)],
    ];
    let (pntf, ntf) = (
        Pntf::builder(2).build().unwrap(),
        Ntf::builder(2).build().unwrap(),
    );
    let (pntf, ntf) = (pntf.on(&g).unwrap(), ntf.on(&g).unwrap());
    for factors in wrong {
        let (weights, mass) = (DVector::from_element(2, 0.5), 1.0);
        refuses(
            &ntf,
            NtfState {
                factors: factors.clone(),
            },
        );
        refuses(
            &pntf,
            PntfState {
                weights,
                factors,
                mass,
            },
        );
    }
    let (weights, factors) = (
        DVector::from_element(3, 0.25),
        vec![rows.clone(), columns.clone()],
    );
    refuses(
        &pntf,
        PntfState {
            weights,
            factors,
            mass: 1.0,
        },
    );
    let nmf = ColumnNmf::builder(2).build().unwrap();
    let nmf = nmf.on(&g).unwrap();
    let v = columns.transpose();
    refuses(
        &nmf,
        ColumnNmfState {
            u: columns,
            v: v.clone(),
        },
    );
    refuses(
        &nmf,
        ColumnNmfState {
            u: rows.clone(),
            v: rows.clone(),
        },
    );
    refuses(
        &nmf,
        ColumnNmfState {
            u: rows,
            v: v.columns(0, 2).into_owned(),
        },
    );
}

/// Entries of a start are uniform between half and one and a half times the level at which the model has the mean of the data; a
/// measured step measures whatever is frozen.
#[test]
fn starts_of_ntf_have_the_mean_of_the_data() {
    let data = dense(&table(&[20, 15, 10], 3));
    let ntf = Ntf::builder(4).build().unwrap();
    let state = ntf.init(&data, &[], &mut rng(3)).unwrap();
    let mean = data.total() / 3000.0;
    let level = (mean / 4.0).cbrt();
    for factor in &state.factors {
        let over = factor / level;
        assert!(over.iter().all(|x| (0.5..1.5).contains(x)), "{over}");
        // Of uniform draws on an interval of length 1.
        let error = 5.0 / (12.0 * over.len() as f64).sqrt();
        assert!((over.mean() - 1.0).abs() < error, "{over}");
    }
    for frozen in 0..3 {
        let ntf = Ntf::builder(4).freeze_factor(frozen).build().unwrap();
        let sweep = ntf.on(&data).unwrap();
        let (mut after, before) = (state.clone(), sweep.objective(&state).unwrap());
        let measured = sweep.step(&mut after, true).unwrap().unwrap();
        assert!((measured - before).abs() <= 1e-12 * data.summary().squares);
        assert_eq!(after.factors[frozen], state.factors[frozen]);
    }
}
