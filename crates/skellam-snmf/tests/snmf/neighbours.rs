//! What a transform says of a column does not depend on the others: by any solver, with hidden cells, the bits are those of the column alone.

use nalgebra::DMatrix;
use plca_fit::{Impossible, Model, Solver, State, Transform};
use plca_tensor::strategies::permutations;
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor};
use proptest::prelude::*;
use skellam_snmf::{
    Entries, Posterior, Prior, Replicates, SignedCp, SignedCpState, Snmf, SnmfState, SnmfVb,
    SnmfVbState,
};

#[derive(Clone, Debug)]
struct Problem {
    v: DMatrix<f64>,
    /// Both sides, one above the other.
    atoms: DMatrix<f64>,
    hidden: DMatrix<bool>,
}

prop_compose! {
    fn problem()(rows in 1..=20usize, columns in 1..=70usize, k in 1..=4usize)(
        v in prop::collection::vec(prop_oneof![1 => Just(0), 4 => -6..7i32], rows * columns),
        atoms in prop::collection::vec(prop_oneof![1 => Just(0.0), 5 => 0.05..1.0f64], 2 * rows * k),
        hidden in prop::collection::vec(prop::bool::weighted(0.2), rows * columns),
        rows in Just(rows), columns in Just(columns), k in Just(k),
    ) -> Problem {
        let v: Vec<f64> = v.into_iter().map(f64::from).collect();
        let mut atoms = DMatrix::from_column_slice(2 * rows, k, &atoms);
        // An atom has some mass; other rows may have none.
        atoms.row_mut(0).apply(|x| *x += 0.1);
        plca_tensor::normalise_columns(&mut atoms);
        let hidden = DMatrix::from_column_slice(rows, columns, &hidden);
        Problem { v: DMatrix::from_column_slice(rows, columns, &v), atoms, hidden }
    }
}

/// The columns in this order: dense, sparse, or with hidden cells as NaN, as a list of them, or as one of the others.
fn data<T: Real>(p: &Problem, order: &[usize], storage: usize) -> Box<dyn Data<T>> {
    let (rows, columns) = (p.v.nrows(), order.len());
    let shape = vec![rows, columns];
    let cell = |i: usize, y: usize| T::lit(p.v[(i, order[y])]);
    let hidden = |i: usize, y: usize| p.hidden[(i, order[y])];
    let cells = || (0..columns).flat_map(|y| (0..rows).map(move |i| (i, y)));
    let list = |keep: &dyn Fn(usize, usize) -> bool| {
        let mut list = Coordinates::empty(&shape);
        for (i, y) in cells().filter(|&(i, y)| keep(i, y)) {
            list.push(&[i, y], cell(i, y));
        }
        list
    };
    let filled = |i: usize, y: usize| p.v[(i, order[y])] != 0.0;
    match storage {
        0 => {
            let values = cells().map(|(i, y)| cell(i, y)).collect();
            Box::new(DenseTensor::new(shape.clone(), values, Order::ColumnMajor).unwrap())
        }
        1 => Box::new(SparseTensor::new(list(&filled)).unwrap()),
        2 => {
            let value = |(i, y)| {
                if hidden(i, y) {
                    T::lit(f64::NAN)
                } else {
                    cell(i, y)
                }
            };
            let values = cells().map(value).collect();
            Box::new(DenseTensor::masked(shape.clone(), values, Order::ColumnMajor).unwrap())
        }
        3 => {
            let seen = list(&|i, y| filled(i, y) && !hidden(i, y));
            Box::new(SparseTensor::all_but(seen, list(&hidden)).unwrap())
        }
        _ => Box::new(SparseTensor::stored_only(list(&|i, y| !hidden(i, y))).unwrap()),
    }
}

fn bits<T: Real>(values: impl IntoIterator<Item = T>) -> Vec<u64> {
    values.into_iter().map(|x| x.to_f64().to_bits()).collect()
}

fn how(solver: Solver) -> Transform {
    let mut how = Transform::default()
        .impossible(Impossible::Drop)
        .solver(solver);
    how.stop.max_iter = 30;
    how
}

/// What a model finds of every column.
fn found<T: Real>(model: usize, p: &Problem, data: &dyn Data<T>, solver: Solver) -> Vec<Vec<u64>> {
    let (rows, k) = (p.v.nrows(), p.atoms.ncols());
    let [plus, minus] = [0, rows].map(|first| p.atoms.rows(first, rows).map(T::lit));
    let one = DMatrix::from_element(k, 1, T::one());
    let replicates = [Replicates::Limit, Replicates::One][model % 2];
    let how = how(solver);
    let priors = Prior {
        shape: Entries::All(0.5),
        rate: Entries::All(0.1),
        ..Prior::flat()
    };
    match model {
        0 | 1 => {
            let learnt = SnmfState::new(&plus, &minus, one).unwrap();
            let snmf = Snmf::new(k).replicates(replicates);
            let e = snmf.transform(&learnt, data, &how).unwrap();
            let block = e.fit.state().activations().clone();
            (0..block.ncols())
                .map(|y| bits(block.column(y).iter().copied()))
                .collect()
        }
        _ => {
            let shapes = [plus, minus].map(|side| side.map(|x| x * T::lit(40.0) + T::lit(0.2)));
            let [plus, minus] = shapes;
            let q = Posterior {
                plus,
                minus,
                shape: one.clone(),
                rate: one,
            };
            let learnt = SnmfVbState::new(q).unwrap();
            let vb = SnmfVb::new(k).replicates(replicates).priors(priors);
            let e = vb.transform(&learnt, data, &how).unwrap();
            let (shape, rate) = (
                e.fit.state().activations_shape().clone(),
                e.fit.state().activations_rate().clone(),
            );
            (0..shape.ncols())
                .map(|y| bits(shape.column(y).iter().chain(rate.column(y).iter()).copied()))
                .collect()
        }
    }
}

fn alone<T: Real>(
    p: &Problem,
    order: &[usize],
    model: usize,
    solver: Solver,
) -> Result<(), TestCaseError> {
    let all: Vec<usize> = (0..p.v.ncols()).collect();
    for storages in [&[0, 1][..], &[2, 3, 4]] {
        let whole = found::<T>(model, p, &*data(p, &all, storages[0]), solver);
        for &storage in storages {
            for order in [order, &order[..order.len().min(3)]] {
                let some = found::<T>(model, p, &*data(p, order, storage), solver);
                for (at, &y) in order.iter().enumerate() {
                    prop_assert_eq!(
                        &some[at],
                        &whole[y],
                        "model {} storage {} column {} {}",
                        model,
                        storage,
                        y,
                        solver
                    );
                }
            }
        }
        // One alone must have something that was seen.
        for &y in order
            .iter()
            .filter(|&&y| (0..p.v.nrows()).any(|i| !p.hidden[(i, y)]))
            .take(2)
        {
            let one = found::<T>(model, p, &*data(p, &[y], storages[0]), solver);
            prop_assert_eq!(
                &one[0],
                &whole[y],
                "model {} column {} {}",
                model,
                y,
                solver
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    // [SKELLAM 5] [SKELLAM 6]
    #[test]
    fn columns_know_nothing_of_each_other(
        (p, order) in problem().prop_flat_map(|p| { let n = p.v.ncols(); (Just(p), permutations(n)) }),
        solver in prop_oneof![3 => Just(Solver::Auto), 1 => Just(Solver::Em), 1 => Just(Solver::Momentum)],
        single: bool,
    ) {
        for model in 0..4 {
            match single {
                true => alone::<f32>(&p, &order, model, solver)?,
                false => alone::<f64>(&p, &order, model, solver)?,
            }
        }
    }

    /// A column alone is held along its rows: its pass is that of the same column among others.
    // [SKELLAM 5]
    #[test]
    fn a_column_alone_is_that_of_a_batch(p in problem()) {
        let [plus, minus] = [0, p.v.nrows()].map(|first| p.atoms.rows(first, p.v.nrows()).into_owned());
        let learnt = SnmfState::new(&plus, &minus, DMatrix::from_element(plus.ncols(), p.v.ncols(), 2.0)).unwrap();
        let whole = data::<f64>(&p, &(0..p.v.ncols()).collect::<Vec<_>>(), 2);
        // Noise would be that of the batch.
        let snmf = Snmf::new(plus.ncols()).replicates(Replicates::Limit);
        let bound = snmf.bind(&*whole).unwrap();
        let mut at = learnt.parameters().clone();
        let tried = bound.step(&mut at, false);
        for y in (0..p.v.ncols()).filter(|&y| (0..p.v.nrows()).any(|i| !p.hidden[(i, y)])).take(5) {
            let one = data::<f64>(&p, &[y], 2);
            let alone = snmf.bind(&*one).unwrap();
            let state = SnmfState::new(&plus, &minus, DMatrix::from_element(plus.ncols(), 1, 2.0)).unwrap();
            let mut own = state.parameters().clone();
            if alone.step(&mut own, false).is_ok() && tried.is_ok() {
                for z in 0..plus.ncols() {
                    let (a, b) = (own.at(1)[z], at.at(1)[(z, y)]);
                    prop_assert!((a - b).abs() <= 1e-12 * (a.abs() + b.abs()), "{} {}", a, b);
                }
            }
        }
    }

    /// Weights of a tensor's observations are those of a batch of one.
    // [SKELLAM 6]
    #[test]
    fn each_is_a_batch_of_one(p in problem()) {
        let (rows, k, y) = (p.v.nrows(), p.atoms.ncols(), p.v.ncols() / 2);
        let [plus, minus] = [0, rows].map(|first| p.atoms.rows(first, rows).into_owned());
        let weights = nalgebra::DVector::from_element(k, 1.0);
        let n = p.v.ncols();
        let row = DMatrix::from_element(n, k, 1.0 / n as f64);
        let learnt = SignedCpState::new(&plus, &minus, &weights, vec![row], 0).unwrap();
        let all: Vec<usize> = (0..n).collect();
        let (whole, one) = (data::<f64>(&p, &all, 0), data::<f64>(&p, &[y], 0));
        let cp = SignedCp::new(k);
        let each = cp.transform_each(&learnt, &*whole, &how(Solver::Auto)).unwrap();
        let single = cp.transform(&learnt, &*one, &how(Solver::Auto)).unwrap();
        prop_assert_eq!(each.blocks.len(), 1);
        prop_assert_eq!(each.blocks[0].1.row(y).iter().copied().collect::<Vec<_>>(), single.fit.state().weights().to_vec());
    }
}
