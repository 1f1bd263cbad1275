//! Properties of the models: descent, simplices, equivariance, storages, threads.

use std::cell::RefCell;
use std::ops::ControlFlow;

use nalgebra::{DMatrix, DVector};
use plca_dist::random;
use plca_fit::laws::{
    Claims, Law, Renewal, Rounding, check, check_failure, check_moved, check_rate, check_threads,
};
use plca_fit::{
    Checkpoint, FitError, Init, Iteration, Model, Parameters, Solver, State, Stop, Transform,
    solver::Memory,
};
use plca_tensor::strategies::{self, Table, real_problems};
use plca_tensor::{Data, DataError, DenseTensor, Order, Real};
use pntf_l2::*;
use proptest::prelude::*;

use crate::support::{after, best, exactly, objective, residual, rng};

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
    let state = PntfState::new(start.weights.clone(), start.factors.clone()).unwrap();
    (Pntf::new(start.weights.len()), state)
}

/// A state as the start of a run on these data.
fn place<T: Real, M: Model<T>>(model: &M, data: &dyn Data<T>, state: &M::State) -> Parameters<T> {
    let state = model.init(data, state, &mut rng(0)).unwrap();
    state.parameters().clone()
}

fn pntf_of(at: &Parameters<f64>) -> PntfState<f64> {
    PntfState::wrap(at.clone()).unwrap()
}

/// Factors, every component times its weight: of one without weight nothing is known.
fn show(at: &Parameters<f64>) -> Vec<Vec<f64>> {
    let state = pntf_of(at);
    let weights = DMatrix::from_diagonal(&DVector::from_column_slice(state.weights()));
    let factors = state.factors().iter();
    factors
        .map(|f| (f * &weights).as_slice().to_vec())
        .collect()
}

/// What the model says of every cell. Rounding decides how components that are nearly equal share their weight.
fn cells(at: &Parameters<f64>) -> Vec<Vec<f64>> {
    let state = pntf_of(at);
    let shape: Vec<usize> = state.factors().iter().map(DMatrix::nrows).collect();
    let number = shape.iter().product();
    let cell = |mut at: usize| -> f64 {
        let mut terms = DVector::from_column_slice(state.weights());
        for (f, &n) in state.factors().iter().zip(&shape) {
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
    pntf.init(data, Init::default(), &mut rng(seed)).unwrap()
}

fn deflated<T: Real>(pntf: &Pntf, data: &dyn Data<T>) -> PntfState<T> {
    pntf.init(data, Init::deflation(), &mut rng(0)).unwrap()
}

/// Every column of these blocks is on its simplex.
fn on_simplices<T: Real>(blocks: &[DMatrix<T>]) -> Result<(), TestCaseError> {
    // Below 1e-15 in double precision.
    let eps = T::EPSILON.to_f64() * 4.5;
    let check = |column: &[T]| {
        let sum: f64 = column.iter().map(|x| x.to_f64()).sum();
        (sum - 1.0).abs() <= eps * column.len() as f64 && column.iter().all(|&x| x >= T::zero())
    };
    for block in blocks {
        prop_assert!(block.as_slice().chunks(block.nrows()).all(check));
    }
    Ok(())
}

/// The blocks of [`Pntf`] that lie on simplices: all but the mass.
fn simplices<T: Real>(at: &Parameters<T>) -> &[DMatrix<T>] {
    let blocks = at.matrices();
    &blocks[..blocks.len() - 1]
}

/// Sweeps obey the laws, the objective rising by no more than rounding, and all stays on its simplex; so do extrapolated sweeps.
fn descends<T: Real>(
    pntf: &Pntf,
    data: &dyn Data<T>,
    state: &PntfState<T>,
    sweeps: usize,
) -> Result<(), TestCaseError> {
    let algorithm = pntf.bind(data).unwrap();
    let rounding = 20.0 * T::EPSILON.to_f64() * algorithm.unit();
    let mut at = place(pntf, data, state);
    for (solver, iterations) in [(Solver::Em, sweeps), (Solver::Squarem, sweeps / 4)] {
        let claims = Claims {
            iterations,
            // Factors, then weights, then the mass.
            renewal: Renewal::Together,
            settles: 0,
            ..within(rounding, 0, 0.0)
        };
        check(&*algorithm, solver, &at, &claims)?;
        let mut sweep = solver.on(&*algorithm, Memory::default()).unwrap();
        for _ in 0..iterations {
            sweep.step(&mut at, false).unwrap();
            on_simplices(simplices(&at))?;
        }
    }
    Ok(())
}

/// The column-normalised model and the baselines, in one storage.
fn others_descend<T: Real>(data: &dyn Data<T>, k: usize, seed: u64) -> Result<(), TestCaseError> {
    let eps = T::EPSILON.to_f64();
    let columns = data.shape()[1] as f64;
    let claims = |rounding| Claims {
        iterations: 8,
        renewal: Renewal::FirstToLast,
        settles: 20,
        ..within(rounding, 0, 0.0)
    };
    let nmf = ColumnNmf::new(k);
    let first = nmf.init(data, Init::default(), &mut rng(seed)).unwrap();
    let sweep = nmf.bind(data).unwrap();
    check(
        &*sweep,
        Solver::Em,
        first.parameters(),
        &claims(450.0 * eps * columns),
    )?;
    let mut at = first.parameters().clone();
    for _ in 0..8 {
        sweep.step(&mut at, false).unwrap();
        on_simplices(at.matrices())?;
    }
    for update in [NtfUpdate::Multiplicative, NtfUpdate::Hals] {
        let ntf = Ntf::new(k).update(update);
        let first = ntf.init(data, Init::default(), &mut rng(seed)).unwrap();
        let sweep = ntf.bind(data).unwrap();
        let rounding = 45.0 * eps * data.summary().squares;
        check(&*sweep, Solver::Em, first.parameters(), &claims(rounding))?;
    }
    Ok(())
}

/// In every storage, with hidden cells too.
fn every_storage_descends<T: Real>((table, start): &Problem<T>) -> Result<(), TestCaseError> {
    let (pntf, state) = setup(start);
    for data in storages(table) {
        descends(&pntf, &*data, &state, 8)?;
    }
    Ok(())
}

/// Two ways to hide cells give the same sweeps.
fn hidden_values_play_no_part((table, start): &Problem<f64>) -> Result<(), TestCaseError> {
    let (pntf, first) = setup(start);
    let [_, masked, stored] = storages(table);
    let three = |data: &dyn Data<f64>| after(&pntf, data, &first, 3).into_state();
    let (a, b) = (three(&*masked), three(&*stored));
    prop_assert!(
        (a.mass() - b.mass()).abs() <= 1e-9 * a.mass(),
        "{a:?} {b:?}"
    );
    for (a, b) in cells(a.parameters()).iter().zip(&cells(b.parameters())) {
        prop_assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-7));
    }
    Ok(())
}

/// Dense and sparse data give the same sweeps up to rounding.
fn storages_agree((table, start): &Problem<f64>) -> Result<(), TestCaseError> {
    let (pntf, state) = setup(start);
    let (data, [sparse, ..]) = (dense(table), storages(table));
    let (a, b) = (pntf.bind(&data).unwrap(), pntf.bind(&*sparse).unwrap());
    let claims = within(1e-11, 3, 1e-7);
    Ok(check_moved(
        Law::Same,
        [&*a, &*b],
        &place(&pntf, &data, &state),
        Clone::clone,
        cells,
        |objective| objective,
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
    let drawn = start(&Pntf::new(1), &dense(&table), seed);
    let problem = (
        table,
        strategies::Start {
            weights: DVector::from_column_slice(drawn.weights()),
            factors: drawn.factors().to_vec(),
        },
    );
    every_storage_descends(&problem).unwrap();
    hidden_values_play_no_part(&problem).unwrap();
    storages_agree(&problem).unwrap();
}

/// Data that are all but of rank 1, and three components: how these share it is left to rounding.
#[test]
fn nearly_equal_components_are_not_compared() {
    let values = [
        1.0,
        2.0228429202482934,
        0.0,
        9.123855139926332e-6,
        0.0,
        4.319349968602857e-6,
    ];
    let start = strategies::Start {
        weights: DVector::from_vec(vec![
            0.3733423311039961,
            0.08887335049596785,
            0.537784318400036,
        ]),
        factors: vec![
            DMatrix::from_column_slice(
                2,
                3,
                &[
                    0.0698598716875537,
                    0.9301401283124462,
                    0.8877939187155359,
                    0.11220608128446409,
                    0.7591260932943741,
                    0.24087390670562592,
                ],
            ),
            DMatrix::from_column_slice(
                3,
                3,
                &[
                    0.4067677628343661,
                    0.516163026644582,
                    0.07706921052105187,
                    0.4496731681535021,
                    0.36388845939448844,
                    0.1864383724520096,
                    0.6492617544166527,
                    0.20875084944027983,
                    0.1419873961430675,
                ],
            ),
        ],
    };
    let problem = (whole(&[2, 3], values.to_vec()), start);
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
        fn reviving<T: Real>((table, start): &Problem<T>, revive: bool) -> Result<(), TestCaseError> {
            let pntf = Pntf::new(start.weights.len()).revive(revive);
            descends(&pntf, &dense(table), &setup(start).1, 12)
        }
        reviving(&(table, start), revive)?;
        reviving(&single, revive)?;
    }

    /// Nor over any single block: one factor free, or the weights alone.
    #[test]
    fn every_block_descends((table, start) in problems::<f64>()) {
        let (data, order) = (dense(&table), table.shape.len());
        let drawn = setup(&start).1;
        for free in 0..=order {
            let mut pntf = Pntf::new(drawn.weights().len());
            for mode in (0..order).filter(|&m| m != free) {
                pntf = pntf.freeze(format!("factor_{mode}"));
            }
            if free < order {
                pntf = pntf.freeze("weights");
            }
            descends(&pntf, &data, &drawn, 2)?;
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
        let (a, b) = (pntf.bind(&data).unwrap(), pntf.bind(&other).unwrap());
        prop_assert!((a.mass() - total).abs() <= 1e-14 * total);
        prop_assert!((b.mass() - total * 2f64.powi(exponent)).abs() <= 1e-14 * b.mass());
        let at = place(&pntf, &data, &state);
        check_moved(Law::Scale, [&*a, &*b], &at, Clone::clone, show, |objective| objective, &within(0.0, 5, 0.0))?;
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
        let permuted = |at: &Parameters<f64>| {
            let mut at = at.clone();
            at.change(|j, block| {
                if j == mode + 1 {
                    *block = block.select_rows(&order);
                }
            });
            at
        };
        let (a, b) = (pntf.bind(&data).unwrap(), pntf.bind(&other).unwrap());
        let at = place(&pntf, &data, &state);
        check_moved(Law::Permutation, [&*a, &*b], &at, permuted, cells, |objective| objective, &within(1e-11, 1, 1e-9))?;
    }

    /// Permuting modes, or components where one component moves at a time, permutes the model: same objective, same step.
    #[test]
    fn permutation_of_modes_and_components((table, start) in real_problems::<f64>(2..=4, 1..=5, 3..=3)) {
        let n = table.shape.len();
        let turned: Vec<usize> = (0..n).rev().collect();
        let (data, other) = (dense(&table), dense(&table.permute_modes(&turned)));
        // Only mode 0 of the one and the last of the other move.
        let frozen = |free: usize| {
            let others = (0..n).filter(|&m| m != free);
            others.fold(Pntf::new(3), |pntf, m| pntf.freeze(format!("factor_{m}")))
        };
        let a = setup(&start).1;
        let factors: Vec<_> = a.factors().iter().rev().cloned().collect();
        let b = PntfState::new(DVector::from_column_slice(a.weights()), factors).unwrap();
        let a = after(&frozen(0), &data, &a, 1).into_state();
        let b = after(&frozen(n - 1), &other, &b, 1).into_state();
        prop_assert!((a.factor(0) - b.factor(n - 1)).amax() <= 1e-8);
        // Components: the objective and the weight problem do not depend on their order.
        let mut factors = a.factors().to_vec();
        factors.iter_mut().for_each(|f| f.swap_columns(0, 2));
        let mut weights = DVector::from_column_slice(a.weights());
        weights.swap_rows(0, 2);
        let c = PntfState::new(weights, factors).unwrap();
        let weigh = frozen(n);
        let alike = |a: &_, c: &_| (objective(&weigh, &data, a) - objective(&weigh, &data, c)).abs() <= 1e-13;
        prop_assert!(alike(&a, &c));
        let weighed = |state: &PntfState<f64>| after(&weigh, &data, state, 1).into_state();
        prop_assert!(alike(&weighed(&a), &weighed(&c)));
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
    let nmf = ColumnNmf::new(2);
    for data in [&dense(&table) as &dyn Data<f64>, &sparse] {
        for error in [1e-3, 1e-4, 1e-6, 1e-8, 1e-10] {
            let (mut u_moved, mut v_moved) = (u.clone(), v.clone());
            // In a cell of the model, and outside.
            u_moved[(0, 0)] -= error;
            u_moved[(5, 0)] += error;
            v_moved[(0, 1)] += error;
            v_moved[(1, 1)] -= error;
            let want = (&product - &u_moved * &v_moved).norm_squared();
            let state = ColumnNmfState::new(u_moved, v_moved).unwrap();
            let got = objective(&nmf, data, &state);
            // What rounding makes of a cell, in units of its residual.
            let allowed = (1e-14 / error).max(1e-10) * want;
            assert!((got - want).abs() <= allowed, "{error}: {got} {want}");
            let step = nmf
                .bind(data)
                .unwrap()
                .step(&mut state.parameters().clone(), true);
            let measured = step.unwrap().value.unwrap();
            assert!(
                (measured - want).abs() <= allowed,
                "{error}: {measured} {want}"
            );
        }
        let exact = ColumnNmfState::new(u.clone(), v.clone()).unwrap();
        let got = objective(&nmf, data, &exact);
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
    for error in [1e-4, 1e-6, 1e-8, 1e-10] {
        let mut moved = factors.clone();
        moved[1][(0, 0)] += error;
        moved[1][(2, 0)] -= error;
        let want: f64 = values
            .iter()
            .zip(model(&moved))
            .map(|(a, b)| (a - b).powi(2))
            .sum();
        let weights = DVector::from_element(2, 0.5);
        let state = PntfState::new(weights, moved.clone()).unwrap();
        let pntf = Pntf::new(2);
        let got = objective(&pntf, &data, &state);
        let allowed = (1e-14 / error).max(1e-10) * want;
        assert!((got - want).abs() <= allowed, "{error}: {got} {want}");
        moved[0] *= 0.5;
        let ntf = Ntf::new(2);
        let got = objective(&ntf, &data, &NtfState::new(moved).unwrap());
        assert!((got - want).abs() <= allowed, "{error}: {got} {want}");
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
    let pntf = Pntf::new(2);
    let (first, other) = (deflated(&pntf, &masked), deflated(&pntf, &zeros));
    for (a, b) in first.factors().iter().zip(other.factors()) {
        assert!((a - b).amax() < 1e-12);
    }
    descends(&pntf, &masked, &first, 30).unwrap();
    // The hidden cells' own values decide nothing, and zeros do.
    let a = after(&pntf, &masked, &first, 1).into_state();
    let b = after(&pntf, &zeros, &first, 1).into_state();
    assert!((a.factor(0) - b.factor(0)).amax() > 1e-3);
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
    let pntf = Pntf::new(2);
    let fits = (0..4).map(|seed| after(&pntf, &data, &start(&pntf, &data, seed), 3000));
    let best = best(fits);
    let state = best.state();
    let weights = DMatrix::from_diagonal(&DVector::from_column_slice(state.weights()));
    let scale = state.mass() * data.total();
    let got = state.factor(0) * weights * state.factor(1).transpose() * scale;
    assert!((got - &p).amax() < 1e-3, "{}", best.objective());
    // The state knows the scale by itself.
    for (at, want) in p.iter().enumerate() {
        assert!((state.cell(&[at % 8, at / 8]) - want).abs() < 1e-3);
    }
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
    let pntf = Pntf::new(2);
    let best = best((0..3).map(|nth| {
        let first = start(&pntf, &data, 1000 * nth + seed);
        after(&pntf, &data, &first, 1000)
    }));
    let state = best.state();
    [[0, 1], [1, 0]].iter().any(|order| {
        let pairs = state.factors().iter().zip(&factors);
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
    let fits = |first: f64, columns: [DMatrix<f64>; 2]| {
        let data = dense(&whole(&[2, 2], vec![first, 0.0, 0.0, 1.0]));
        let weights = DVector::from_vec(vec![1.0, 0.0]);
        let dead = PntfState::new(weights, columns.to_vec()).unwrap();
        [false, true].map(|revive| {
            let pntf = Pntf::new(2).revive(revive);
            after(&pntf, &data, &dead, 30)
        })
    };
    // By symmetry nothing moves.
    let half = DMatrix::from_element(2, 2, 0.5);
    let [kept, revived] = fits(1.0, [half.clone(), half]);
    assert_eq!(kept.state().weights()[1], 0.0);
    assert!(revived.objective() <= kept.objective());
    // Here the dead component lies where the data are 0.
    let above = DMatrix::from_row_slice(2, 2, &[1.0, 1.0, 0.0, 0.0]);
    let [kept, revived] = fits(4.0, [above, DMatrix::identity(2, 2)]);
    assert_eq!(kept.state().weights()[1], 0.0);
    assert!(revived.state().weights()[1] > 0.0);
    assert!(revived.objective() < 0.5 * kept.objective());
}

/// Continuing from a saved run, through JSON, is the same run to the bit under every solver; and the saved text holds every digit.
#[test]
fn a_run_can_be_interrupted() {
    let data = table(&[5, 4, 3], 4).masked(Order::RowMajor).unwrap();
    let pntf = Pntf::new(3);
    for solver in [
        Solver::Em,
        Solver::Squarem,
        Solver::Parabolic,
        Solver::Momentum,
    ] {
        let run = || {
            pntf.on(&data)
                .unwrap()
                .solver(solver)
                .stop(exactly(9).check_every(2))
        };
        let saved = RefCell::new(String::new());
        let keep = |it: &Iteration<'_, f64>| {
            if it.done() == 4 {
                *saved.borrow_mut() = serde_json::to_string(&it.checkpoint()).unwrap();
            }
            ControlFlow::Continue(())
        };
        let whole = run().observe(keep);
        let whole = whole.run(Init::default(), &mut rng(1)).unwrap();
        let from: Checkpoint<f64> = serde_json::from_str(&saved.into_inner()).unwrap();
        assert_eq!(from.iteration(), 4);
        let rest = run().resume(from).unwrap();
        assert_eq!(rest.state(), whole.state());
        assert_eq!(rest.checkpoint(), whole.checkpoint());
        assert_eq!(rest.objective().to_bits(), whole.objective().to_bits());
        let later = whole.trace().iter().filter(|t| t.iteration >= 4);
        assert!(rest.trace().iter().eq(later), "{solver}");
        let text = serde_json::to_string(rest.state()).unwrap();
        assert_eq!(
            &serde_json::from_str::<PntfState<f64>>(&text).unwrap(),
            rest.state()
        );
    }
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
            let pntf = Pntf::new(k);
            let fit = after(&pntf, data, &start(&pntf, data, 2), 4);
            let mixture = fit.state().transform(data, &Transform::default().along(0));
            let mixture = mixture.unwrap();
            let objective = fit.objective().to_bits();
            (
                fit.into_state(),
                objective,
                mixture.gap,
                mixture.fit.into_state(),
            )
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
    let weights = DVector::from_element(3, 1.0 / 3.0);
    let state = PntfState::new(weights, vec![topics.clone(), random(4, 3)]).unwrap();
    let product = &topics * &mix;
    let mut values: Vec<f64> = product.iter().map(|x| x * 5.0).collect();
    values.extend([0.0; 12]);
    let data = DenseTensor::new(vec![12, 8], values, Order::ColumnMajor).unwrap();
    let found = state.transform(&data, &Transform::default()).unwrap();
    let mixture = found.fit.state();
    assert_eq!(found.empty, [7]);
    assert!((mixture.mixture().columns(0, 7) - mix).amax() < 1e-12);
    assert!(found.gap.iter().all(|&g| g < 1e-14));
    assert!(
        mixture.squared_errors().unwrap()[..7]
            .iter()
            .all(|&e| e < 1e-14)
    );
}

/// Deflation starts near the data: better than the random start, and it draws nothing.
#[test]
fn deflation_starts_better_than_chance() {
    let data = dense(&table(&[9, 8, 7], 5));
    let pntf = Pntf::new(4);
    let at = |init: Init<f64>, seed| {
        let state = pntf.init(&data, init, &mut rng(seed)).unwrap();
        (objective(&pntf, &data, &state), state)
    };
    let (deflated, state) = at(Init::deflation(), 1);
    assert_eq!(state, at(Init::deflation(), 2).1);
    for seed in 0..10 {
        assert!(deflated < at(Init::default(), seed).0);
    }
    // What is given stays, and what is frozen must be given; other models have no such start.
    let given = state.factor(1);
    let frozen = Pntf::new(4).freeze("factor_1");
    let init = Init::deflation().block("factor_1", given.clone());
    let other = frozen.init(&data, init, &mut rng(0)).unwrap();
    assert_eq!(other.factor(1), given);
    let refused = frozen.init(&data, Init::deflation(), &mut rng(0));
    assert!(matches!(refused, Err(FitError::NotGiven { .. })));
    let ntf = Ntf::new(4);
    let refused = ntf.init(&data, Init::deflation(), &mut rng(0));
    assert!(matches!(refused, Err(FitError::NoStart { .. })));
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
    let deflated = |m: &DMatrix<f64>, k| deflated(&Pntf::new(k), &dense(m));
    let svd = g.clone().svd(true, true);
    let first = svd.u.unwrap().column(0) * svd.v_t.unwrap().row(0) * svd.singular_values[0];
    let (both, one, rest) = (deflated(&g, 2), deflated(&g, 1), deflated(&(&g - first), 1));
    for mode in 0..2 {
        let columns = both.factor(mode).column_iter();
        let expected = (one.factor(mode).column_iter()).chain(rest.factor(mode).column_iter());
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
    let state = deflated(&Pntf::new(2), &data);
    let near = |got: f64, wanted: f64| assert!((got - wanted).abs() <= 1e-12, "{got} {wanted}");
    for t in 0..2 {
        for (i, &x) in state.factor(0).column(t).iter().enumerate() {
            near(
                x,
                if i / 4 == t { 0.95 * a[i % 4] } else { 0.0 } + 0.05 / 8.0,
            );
        }
        for (j, &x) in state.factor(1).column(t).iter().enumerate() {
            near(
                x,
                if j / 3 == t { 0.95 * b[j % 3] } else { 0.0 } + 0.05 / 6.0,
            );
        }
    }
    // The weights are the best ones of these factors, before their part is mixed in.
    let term = |t: usize| state.factor(0).column(t) * state.factor(1).column(t).transpose();
    let (first, difference) = (term(0), term(0) - term(1));
    let best = 1.0 - (first - apart).dot(&difference) / difference.norm_squared();
    near(state.weights()[0], 0.95 * best + 0.05 / 2.0);
    near(state.weights().iter().sum(), 1.0);
}

/// A mass that would be 0 is not taken: nothing would come back from it.
#[test]
fn a_model_beside_the_data_keeps_its_mass() {
    let values = vec![1.0, 0.0, 0.0, f64::NAN];
    let data = DenseTensor::masked(vec![2, 2], values, Order::RowMajor).unwrap();
    let frozen = Pntf::new(1)
        .freeze("factor_0")
        .freeze("factor_1")
        .freeze("weights");
    let column = |first| DMatrix::from_vec(2, 1, vec![first, 1.0 - first]);
    let start = Init::default()
        .block("weights", DMatrix::from_element(1, 1, 1.0))
        .block("factor_0", column(0.0))
        .block("factor_1", column(1.0))
        .block("mass", DMatrix::from_element(1, 1, 0.5));
    assert_eq!(after(&frozen, &data, start.clone(), 1).state().mass(), 0.5);
    // One that is 0 from the start is refused.
    let nothing = start.block("mass", DMatrix::from_element(1, 1, 0.0));
    let refused = frozen.init(&data, nothing, &mut rng(0));
    assert!(matches!(
        refused,
        Err(FitError::Setting { name: "mass", .. })
    ));
}

/// Extrapolated sweeps never end worse than plain ones of which they consist began.
#[test]
fn acceleration_is_monotone() {
    let data = dense(&table(&[12, 11], 6));
    let pntf = Pntf::new(4);
    let sweep = pntf.bind(&data).unwrap();
    let mut squarem = Solver::Squarem.on(&*sweep, Memory::default()).unwrap();
    let mut at = start(&pntf, &data, 1).parameters().clone();
    let mut before = sweep.objective(&at).unwrap();
    for _ in 0..30 {
        squarem.step(&mut at, false).unwrap();
        let after = sweep.objective(&at).unwrap();
        assert!(after <= before + 1e-16, "{before} {after}");
        on_simplices(simplices(&at)).unwrap();
        before = after;
    }
}

/// At the end of a long run the residual of the optimality conditions is small; at the start it is not.
#[test]
fn residual_vanishes_at_a_stationary_point() {
    let data = dense(&table(&[6, 5], 9));
    let pntf = Pntf::new(2);
    let first = start(&pntf, &data, 1);
    assert!(residual(&pntf, &data, &first) > 1e-3);
    let fit = after(&pntf, &data, &first, 5000);
    let end = residual(&pntf, &data, fit.state());
    assert!(end < 1e-6, "{end}");
}

/// A step that fails leaves its state as it was: here the factors have their update when the weights leave the numbers.
#[test]
fn failing_steps_change_nothing() {
    let data = dense(&table(&[3, 4], 1));
    let pntf = Pntf::new(2);
    let mut at = start(&pntf, &data, 1).parameters().clone();
    at.change(|j, block| {
        if j == 3 {
            block.fill(1e200);
        }
    });
    check_failure(&*pntf.bind(&data).unwrap(), Solver::Em, &at).unwrap();
    let nmf = ColumnNmf::new(2);
    let first = nmf.init(&data, Init::default(), &mut rng(1)).unwrap();
    let mut at = first.parameters().clone();
    at.change(|j, block| {
        if j == 1 {
            block[(0, 1)] = f64::INFINITY;
        }
    });
    check_failure(&*nmf.bind(&data).unwrap(), Solver::Em, &at).unwrap();
    // Products of these factors overflow.
    let ntf = Ntf::new(2);
    let first = ntf.init(&data, Init::default(), &mut rng(1)).unwrap();
    let mut at = first.parameters().clone();
    at.change(|_, block| block.fill(1e200));
    check_failure(&*ntf.bind(&data).unwrap(), Solver::Em, &at).unwrap();
}

/// A frozen component of zeros says nothing of the data: distributions refuse it, amounts of it are 0.
#[test]
fn a_frozen_column_of_zeros_is_no_distribution_and_has_no_amounts() {
    let data = dense(&whole(&[2, 3], vec![1.0, 2.0, 3.0, 2.0, 1.0, 5.0]));
    let library = || DMatrix::from_row_slice(2, 2, &[1.0, 0.0, 2.0, 0.0]);
    let init = || Init::default().block("factor_0", library());
    let empty = || FitError::Empty {
        block: "factor_0".into(),
        column: 1,
    };
    let refused = |pntf: Pntf| pntf.init(&data, init(), &mut rng(0)).map(drop);
    let pntf = || Pntf::new(2);
    assert_eq!(refused(pntf()), Ok(()));
    let whole = pntf().freeze("factor_0");
    assert_eq!(refused(whole), Err(empty()));
    let one = pntf().freeze_components("factor_0", [1]);
    assert_eq!(refused(one), Err(empty()));
    for update in [NtfUpdate::Multiplicative, NtfUpdate::Hals] {
        let ntf = Ntf::new(2).update(update);
        let ntf = ntf.freeze("factor_0");
        let fit = ntf.on(&data).unwrap().run(init(), &mut rng(0)).unwrap();
        let amounts = fit.state().factor(1);
        assert_eq!(amounts.column(1).amax(), 0.0, "{update:?}");
        assert!(amounts.column(0).amin() > 0.0, "{update:?}");
    }
    // Without, column by column, a component that is 0 on one side begins again.
    let hals = Ntf::new(2).update(NtfUpdate::Hals);
    let fit = hals.on(&data).unwrap().run(init(), &mut rng(0)).unwrap();
    assert!(fit.state().factor(1).column(1).amax() > 0.0);
}

/// Whatever the sizes beside it, an entry of a frozen component has the bits that it was given, in single precision too.
#[test]
fn frozen_entries_survive_components_of_any_size() {
    let values = (1..=12).map(|x| x as f32).collect();
    let data = DenseTensor::new(vec![3, 4], values, Order::RowMajor).unwrap();
    for update in [NtfUpdate::Multiplicative, NtfUpdate::Hals] {
        for power in [0, 30, 42, 60] {
            let s = 2f32.powi(power);
            let h =
                DMatrix::from_column_slice(4, 2, &[1e-30, 2.0 * s, s, 3.0 * s, 1.0, 1.0, 2.0, 0.5]);
            let ntf = Ntf::new(2).update(update);
            let ntf = ntf.freeze_components("factor_1", [0]);
            let init = Init::default().block("factor_1", h.clone());
            let run = ntf
                .on(&data)
                .unwrap()
                .stop(Stop::default().tol(None).max_iter(20));
            let fit = run.run(init, &mut rng(0)).unwrap();
            let found = fit.state().factor(1).column(0).into_owned();
            assert_eq!(found, h.column(0), "{update:?}, {power}");
        }
    }
}

#[test]
fn bad_input_is_named() {
    let pntf = Pntf::new(2);
    let refuse =
        |data: &dyn Data<f64>, init: Init<f64>| pntf.init(data, init, &mut rng(0)).unwrap_err();
    let none = || FitError::Setting {
        name: "components",
        value: 0.0,
        expected: "at least 1",
    };
    assert_eq!(Pntf::new(0).check().unwrap_err(), none());
    assert_eq!(Ntf::new(0).check().unwrap_err(), none());
    assert_eq!(ColumnNmf::new(0).check().unwrap_err(), none());
    let some = dense(&whole(&[2, 2], vec![1.0, 2.0, 3.0, 0.5]));
    let learnt = NtfState::new(vec![DMatrix::from_element(2, 1, 1.0); 2]).unwrap();
    let explained = Ntf::new(0).transform(&learnt, &some, &Transform::default().along(1));
    assert_eq!(explained.unwrap_err(), none());
    assert_eq!(Pntf::new(0).fit(&some, &mut rng(0)).unwrap_err(), none());
    assert_eq!(Ntf::new(0).fit(&some, &mut rng(0)).unwrap_err(), none());
    let columns = ColumnNmf::new(0).fit(&some, &mut rng(0));
    assert_eq!(columns.unwrap_err(), none());
    for values in [vec![1.0, -1.0], vec![0.0, 0.0]] {
        let error = refuse(&dense(&whole(&[2, 1], values)), Init::default());
        let (column, total) = (None, 0.0);
        assert_eq!(error, FitError::Total { column, total });
    }
    let data = dense(&whole(&[2, 2], vec![1.0, 2.0, 3.0, -0.5]));
    assert!(data.summary().negative.is_some());
    let given = |m: DMatrix<f64>| Init::default().block("factor_0", m);
    let error = refuse(&data, given(DMatrix::zeros(3, 2)));
    assert!(matches!(error, FitError::Shape { .. }), "{error}");
    let error = refuse(&data, given(DMatrix::from_element(2, 2, f64::NAN)));
    assert!(matches!(error, FitError::Range { .. }), "{error}");
    let many = Init::default().block("factor_2", DMatrix::zeros(2, 2));
    let error = refuse(&data, many);
    assert!(matches!(error, FitError::UnknownBlock { .. }), "{error}");
    let weights = Init::default().block("weights", DMatrix::from_vec(2, 1, vec![1.0, -1.0]));
    let error = refuse(&data, weights);
    assert!(matches!(error, FitError::Value { row: 1, .. }), "{error}");
    let frozen = Pntf::new(2).freeze("factor_5");
    let error = frozen.bind(&data).unwrap_err();
    assert!(matches!(error, FitError::UnknownBlock { .. }), "{error}");
    let frozen = Pntf::new(2).freeze("factor_1");
    let error = frozen
        .init(&data, Init::default(), &mut rng(0))
        .unwrap_err();
    assert!(matches!(error, FitError::NotGiven { .. }), "{error}");
    // Columns that are no distributions are projected, zeros become uniform.
    let init = given(DMatrix::from_row_slice(2, 2, &[0.0, 3.0, 0.0, -1.0]));
    let state = pntf.init(&data, init, &mut rng(0)).unwrap();
    let want = DMatrix::from_row_slice(2, 2, &[0.5, 1.0, 0.5, 0.0]);
    assert_eq!(state.factor(0), &want);
    // Frozen weights stay, the others share what is left.
    let fixed = Pntf::new(3).freeze_components("weights", [1]);
    let weights =
        |w: [f64; 3]| Init::default().block("weights", DMatrix::from_vec(3, 1, w.to_vec()));
    let init = weights([0.5, 0.25, 0.75]);
    let state = fixed.init(&data, init, &mut rng(0)).unwrap();
    assert_eq!(state.weights(), [0.25, 0.25, 0.5]);
    let error = fixed.init(&data, weights([0.0, 1.5, 0.0]), &mut rng(0));
    let error = error.unwrap_err();
    assert!(matches!(error, FitError::Conflict { .. }), "{error}");
    let ntf = Ntf::new(1);
    let error = ntf.bind(&data).unwrap_err();
    let (index, value) = (vec![1, 1], -0.5);
    assert_eq!(error, FitError::Data(DataError::Negative { index, value }));
    let hals = Ntf::new(1).update(NtfUpdate::Hals);
    assert!(hals.bind(&data).is_ok());
    let hidden = DenseTensor::masked(vec![1, 2], vec![1.0, f64::NAN], Order::RowMajor).unwrap();
    let nmf = ColumnNmf::new(1);
    for error in [
        hals.bind(&hidden).unwrap_err(),
        nmf.bind(&hidden).unwrap_err(),
    ] {
        assert!(matches!(error, FitError::Conflict { .. }), "{error}");
    }
    let error = nmf.bind(&dense(&whole(&[1, 1, 1], vec![1.0]))).unwrap_err();
    assert!(matches!(error, FitError::Conflict { .. }), "{error}");
    let empty_column = dense(&whole(&[2, 2], vec![1.0, 0.0, 3.0, 0.0]));
    let error = nmf.bind(&empty_column).unwrap_err();
    let (column, total) = (Some(1), 0.0);
    assert_eq!(error, FitError::Total { column, total });
    // The total is one of the data, whatever they are stored as.
    let negative = dense(&whole(&[2, 2], vec![3e307, 3e307, 3e307, -4.5e307]));
    let error = nmf.bind(&negative).unwrap_err();
    let (column, total) = (Some(1), 3e307 - 4.5e307);
    assert_eq!(error, FitError::Total { column, total });
    let huge = dense(&whole(&[2, 2], vec![5e307, 5e307, 5e307, 0.0]));
    let fit = pntf.fit(&huge, &mut rng(1)).unwrap();
    assert!(fit.objective().is_finite());
    for size in [4e307, 1e160, 1e-160, 1e-300] {
        let error = ntf
            .bind(&dense(&whole(&[2, 2], vec![size; 4])))
            .unwrap_err();
        assert!(matches!(error, FitError::Beyond { .. }), "{error}");
        assert!(error.to_string().ends_with("scale the data"), "{error}");
    }
    let stop = Stop::default().tol(f64::NAN);
    let run = pntf.on(&data).unwrap().stop(stop);
    let error = run.run(Init::default(), &mut rng(0)).unwrap_err();
    assert!(matches!(error, FitError::Stop(_)), "{error}");
}

/// No run goes on from a state that cannot be combined with the data.
#[test]
fn states_that_do_not_fit_are_refused() {
    fn refuses<M: Model<f64>>(model: &M, data: &dyn Data<f64>, state: &M::State) {
        let from = Checkpoint::new(state.parameters().clone());
        let error = model.on(data).unwrap().resume(from).unwrap_err();
        assert!(matches!(error, FitError::Checkpoint { .. }), "{error}");
    }
    let g: DenseTensor<f64> = dense(&whole(&[2, 3], vec![1.0, 0.0, 2.0, 0.5, 1.0, 3.0]));
    let even = |rows: usize, k| DMatrix::from_element(rows, k, 1.0 / rows as f64);
    let wrong = [
        vec![even(2, 2)],
        vec![even(2, 2), even(3, 2), even(3, 2)],
        vec![even(3, 2), even(2, 2)],
    ];
    let (pntf, ntf) = (Pntf::new(2), Ntf::new(2));
    for factors in wrong {
        refuses(&ntf, &g, &NtfState::new(factors.clone()).unwrap());
        let weights = DVector::from_element(2, 0.5);
        refuses(&pntf, &g, &PntfState::new(weights, factors).unwrap());
    }
    let weights = DVector::from_element(3, 1.0 / 3.0);
    let more = PntfState::new(weights, vec![even(2, 3), even(3, 3)]).unwrap();
    refuses(&pntf, &g, &more);
    let nmf = ColumnNmf::new(2);
    for (u, v) in [
        (even(3, 2), even(2, 3)),
        (even(2, 2), even(2, 2)),
        (even(2, 3), even(3, 3)),
    ] {
        refuses(&nmf, &g, &ColumnNmfState::new(u, v).unwrap());
    }
    // Factors of other numbers of components are no state.
    let mixed = NtfState::new(vec![even(2, 2), even(3, 1)]).unwrap_err();
    assert!(matches!(mixed, FitError::Shape { .. }), "{mixed}");
    let none = NtfState::<f64>::new(Vec::new()).unwrap_err();
    assert!(matches!(none, FitError::Count { got: 0, .. }), "{none}");
}

/// Entries of a start are uniform between half and one and a half times the level at which the model has the mean of the data; a
/// measured step measures whatever is frozen.
#[test]
fn starts_of_ntf_have_the_mean_of_the_data() {
    let data = dense(&table(&[20, 15, 10], 3));
    let ntf = Ntf::new(4);
    let state = ntf.init(&data, Init::default(), &mut rng(3)).unwrap();
    let mean = data.total() / 3000.0;
    let level = (mean / 4.0).cbrt();
    for factor in state.factors() {
        let over = factor / level;
        assert!(over.iter().all(|x| (0.5..1.5).contains(x)), "{over}");
        // Of uniform draws on an interval of length 1.
        let error = 5.0 / (12.0 * over.len() as f64).sqrt();
        assert!((over.mean() - 1.0).abs() < error, "{over}");
    }
    for frozen in 0..3 {
        let ntf = Ntf::new(4).freeze(format!("factor_{frozen}"));
        let before = objective(&ntf, &data, &state);
        let mut after = state.parameters().clone();
        let step = ntf.bind(&data).unwrap().step(&mut after, true);
        let measured = step.unwrap().value.unwrap();
        assert!((measured - before).abs() <= 1e-12 * data.summary().squares);
        assert_eq!(after.at(frozen), state.factor(frozen));
    }
}

/// Frozen components keep their bits in every block, what is left obeys the laws, and no solver moves them.
#[test]
fn frozen_components_keep_their_bits() {
    fn keeps<M: Model<f64>>(model: &M, data: &dyn Data<f64>, frozen: &[(&str, bool)]) {
        let algorithm = model.bind(data).unwrap();
        let claims = Claims {
            renewal: Renewal::Together,
            settles: 0,
            ..within(1e-13 * algorithm.unit(), 0, 0.0)
        };
        let first = model.init(data, Init::default(), &mut rng(2));
        // They must be given.
        assert!(matches!(first, Err(FitError::NotGiven { .. })));
        let specs = algorithm.blocks();
        let given = specs.iter().map(|spec| {
            let mut draws = rng(7);
            (spec.name.to_string(), spec.drawn(&mut draws))
        });
        let init = given.fold(Init::default(), |init, (name, block)| {
            init.block(name, block)
        });
        let first = model.init(data, init, &mut rng(2)).unwrap();
        for solver in [Solver::Em, Solver::Squarem, Solver::Momentum] {
            let mut at = first.parameters().clone();
            check(&*algorithm, solver, &at, &claims).unwrap();
            let mut steps = solver.on(&*algorithm, Memory::default()).unwrap();
            for _ in 0..10 {
                steps.step(&mut at, false).unwrap();
            }
            for &(name, is_row) in frozen {
                let (old, new) = (first.parameters().block(name), at.block(name));
                let (old, new) = (old.unwrap(), new.unwrap());
                match is_row {
                    true => assert_eq!(old.row(1), new.row(1), "{solver} {name}"),
                    false => assert_eq!(old.column(1), new.column(1), "{solver} {name}"),
                }
                assert_ne!(old, new, "{solver} {name}");
            }
        }
    }
    let mut table = table(&[6, 5], 4);
    table.values.iter_mut().for_each(|x| *x += 0.1);
    let data = dense(&table);
    let pntf = Pntf::new(3)
        .freeze_components("weights", [1])
        .freeze_components("factor_0", [1]);
    keeps(&pntf, &data, &[("weights", true), ("factor_0", false)]);
    table.observed[7] = false;
    let masked = table.masked(Order::RowMajor).unwrap();
    keeps(&pntf, &masked, &[("weights", true), ("factor_0", false)]);
    let nmf = ColumnNmf::new(3)
        .freeze_components("u", [1])
        .freeze_components("v", [1]);
    keeps(&nmf, &data, &[("u", false), ("v", true)]);
    for update in [NtfUpdate::Multiplicative, NtfUpdate::Hals] {
        let ntf = Ntf::new(3).update(update);
        let ntf = ntf.freeze_components("factor_1", [1]);
        keeps(&ntf, &data, &[("factor_1", false)]);
    }
}
