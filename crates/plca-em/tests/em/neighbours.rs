//! What a transform says of an observation does not depend on the others: by any solver, in any storage, with hidden cells, the bits are those of the observation
//! alone.

use nalgebra::DMatrix;
use plca_em::{
    Entries, Given, Nmf, NmfState, PlcaState, PlcaVb, PlcaVbState, PlsaState, PlsaVb, PlsaVbState,
};
use plca_fit::{Factored, Impossible, Solver, Transform};
use plca_priors::Penalty;
use plca_tensor::strategies::permutations;
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor, normalise_columns};
use proptest::prelude::*;

/// New observations in columns, `I x J`, and learnt numbers, `I x K`.
#[derive(Clone, Debug)]
struct Problem {
    v: DMatrix<f64>,
    learnt: DMatrix<f64>,
    hidden: DMatrix<bool>,
}

prop_compose! {
    fn problem()(rows in 2..=12usize, columns in 1..=70usize, k in 1..=4usize)(
        v in prop::collection::vec(prop_oneof![2 => Just(0.0), 2 => 0.5..20.0f64], rows * columns),
        learnt in prop::collection::vec(0.05..1.0f64, rows * k),
        hidden in prop::collection::vec(prop::bool::weighted(0.2), rows * columns),
        rows in Just(rows), columns in Just(columns), k in Just(k),
    ) -> Problem {
        let mut v = DMatrix::from_column_slice(rows, columns, &v);
        let mut hidden = DMatrix::from_column_slice(rows, columns, &hidden);
        // Of every observation something was seen: one alone without counts is refused.
        for y in 0..columns {
            (v[(y % rows, y)], hidden[(y % rows, y)]) = (3.0, false);
        }
        Problem { v, learnt: DMatrix::from_column_slice(rows, k, &learnt), hidden }
    }
}

/// How the same cells are held.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Storage {
    Dense,
    Sparse,
    Masked,
    SparseMasked,
    Listed,
}

fn data<T: Real>(p: &Problem, order: &[usize], storage: Storage) -> Box<dyn Data<T>> {
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
    let is_filled = |i: usize, y: usize| p.v[(i, order[y])] > 0.0;
    match storage {
        Storage::Dense => {
            let values = cells().map(|(i, y)| cell(i, y)).collect();
            Box::new(DenseTensor::new(shape.clone(), values, Order::ColumnMajor).unwrap())
        }
        Storage::Sparse => Box::new(SparseTensor::new(list(&is_filled)).unwrap()),
        Storage::Masked => {
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
        Storage::SparseMasked => {
            let filled = list(&|i, y| is_filled(i, y) && !hidden(i, y));
            Box::new(SparseTensor::all_but(filled, list(&hidden)).unwrap())
        }
        Storage::Listed => {
            Box::new(SparseTensor::stored_only(list(&|i, y| !hidden(i, y))).unwrap())
        }
    }
}

fn bits<T: Real>(values: impl IntoIterator<Item = T>) -> Vec<u64> {
    values.into_iter().map(|x| x.to_f64().to_bits()).collect()
}

/// What a model finds of every column, bit by bit.
type Found = Vec<Vec<u64>>;

fn columns<T: Real>(block: &DMatrix<T>, gap: &[f64]) -> Found {
    let column = |y: usize| {
        let mut found = bits(block.column(y).iter().copied());
        found.extend(gap.get(y).map(|gap| gap.to_bits()));
        found
    };
    (0..block.ncols()).map(column).collect()
}

fn how(solver: Solver) -> Transform {
    let mut how = Transform::default()
        .impossible(Impossible::Drop)
        .solver(solver);
    how.stop.max_iter = 40;
    how
}

/// A model by its number.
fn found<T: Real>(model: usize, p: &Problem, data: &dyn Data<T>, solver: Solver) -> Found {
    let k = p.learnt.ncols();
    let how = how(solver);
    let mut basis = p.learnt.map(T::lit);
    normalise_columns(&mut basis);
    let shapes = p.learnt.map(|x| T::lit(50.0 * x + 0.3));
    let ones = DMatrix::from_element(k, 1, T::one());
    match model {
        0 => {
            let mixture = ones.map(|_| T::one() / T::lit(k as f64));
            let plsa = PlsaState::new(Given::Columns, basis, mixture, vec![T::one()]).unwrap();
            let e = plsa.transform(data, &how).unwrap();
            let state = e.fit.state();
            let mut all = columns(state.mixture(), &e.gap);
            for (y, own) in all.iter_mut().enumerate() {
                own.push(state.scale(y).to_bits());
            }
            all
        }
        1 | 2 => {
            let learnt = NmfState::new(p.learnt.map(|x| T::lit(3.0 * x)), ones).unwrap();
            let mut nmf = Nmf::new(k);
            if model == 2 {
                nmf = nmf.prior("h", Penalty::new(0.5, 0.1).unwrap());
            }
            let e = nmf.transform(&learnt, data, &how).unwrap();
            columns(e.fit.state().h(), &e.gap)
        }
        3 => {
            let learnt = PlsaVbState::new(Given::Columns, shapes, ones).unwrap();
            let lda = PlsaVb::new(k).prior("mixture_shape", Entries::All(0.2));
            let e = lda.transform(&learnt, data, &how).unwrap();
            columns(e.fit.state().mixture_shape(), &[])
        }
        4 => {
            let row = DMatrix::from_element(1, k, T::one());
            let even = ones.map(|_| T::one() / T::lit(k as f64));
            let plca = PlcaState::new(even.column(0).into_owned(), vec![basis, row]).unwrap();
            let e = plca.transform_each(data, &how).unwrap();
            rows_of(&e.blocks, &e.gap)
        }
        _ => {
            let row = DMatrix::from_element(1, k, T::one());
            let learnt = PlcaVbState::new(ones, vec![shapes, row]).unwrap();
            let vb = PlcaVb::new(k).prior("weights_shape", Entries::All(0.2));
            let e = vb.transform_each(&learnt, data, &how).unwrap();
            rows_of(&e.blocks, &[])
        }
    }
}

fn rows_of(blocks: &[(String, DMatrix<f64>)], gap: &[f64]) -> Found {
    let row = |y: usize| {
        let rows = blocks
            .iter()
            .flat_map(|(_, block)| bits(block.row(y).iter().copied()));
        rows.chain(gap.get(y).map(|gap| gap.to_bits())).collect()
    };
    (0..blocks[0].1.nrows()).map(row).collect()
}

const MODELS: usize = 6;
/// Those that need complete data.
const COMPLETE: [usize; 2] = [3, 5];

fn alone<T: Real>(
    p: &Problem,
    order: &[usize],
    model: usize,
    solver: Solver,
) -> Result<(), TestCaseError> {
    let all: Vec<usize> = (0..p.v.ncols()).collect();
    let storages = match COMPLETE.contains(&model) {
        true => vec![vec![Storage::Dense, Storage::Sparse]],
        false => vec![
            vec![Storage::Dense, Storage::Sparse],
            vec![Storage::Masked, Storage::SparseMasked, Storage::Listed],
        ],
    };
    for same in storages {
        let whole = found::<T>(model, p, &*data(p, &all, same[0]), solver);
        let y = order[0];
        for &storage in &same {
            for order in [order, &order[..order.len().min(3)], &[y]] {
                let some = data::<T>(p, order, storage);
                // Of a batch without hidden cells no scale is written: it is the share of an observation in the sum, which has the scalar's digits alone.
                let left_out = usize::from(model == 0 && some.is_complete());
                let kept = |own: &[u64]| own[..own.len() - left_out].to_vec();
                let some = found::<T>(model, p, &*some, solver);
                for (at, &y) in order.iter().enumerate() {
                    prop_assert_eq!(
                        kept(&some[at]),
                        kept(&whole[y]),
                        "model {} {:?} {} {:?}",
                        model,
                        storage,
                        y,
                        solver
                    );
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    // [SPEC 1.5] [EXT 3]
    #[test]
    fn observations_know_nothing_of_each_other(
        (p, order) in problem().prop_flat_map(|p| { let n = p.v.ncols(); (Just(p), permutations(n)) }),
        solver in prop_oneof![3 => Just(Solver::Auto), 1 => Just(Solver::Em), 1 => Just(Solver::Squarem)],
        single: bool,
    ) {
        for model in 0..MODELS {
            match single {
                true => alone::<f32>(&p, &order, model, solver)?,
                false => alone::<f64>(&p, &order, model, solver)?,
            }
        }
    }

    /// A batch of one is what each observation is explained as.
    // [SPEC 1.5] [EXT 3]
    #[test]
    fn each_is_a_batch_of_one(p in problem()) {
        let (k, y) = (p.learnt.ncols(), p.v.ncols() / 2);
        let one = data::<f64>(&p, &[y], Storage::Dense);
        let all: Vec<usize> = (0..p.v.ncols()).collect();
        let whole = found::<f64>(5, &p, &*data(&p, &all, Storage::Sparse), Solver::Auto);
        let ones = DMatrix::from_element(k, 1, 1.0);
        let shapes = p.learnt.map(|x| 50.0 * x + 0.3);
        let learnt = PlcaVbState::new(ones.clone(), vec![shapes, ones.transpose()]).unwrap();
        let vb = PlcaVb::new(k).prior("weights_shape", Entries::All(0.2));
        let found = vb.transform(&learnt, &*one, &how(Solver::Auto)).unwrap();
        let own = bits(found.fit.state().weights_shape().iter().copied());
        prop_assert_eq!(&whole[y][..k], &own[..]);
    }
}

/// By variational Bayes no solver ends lower than plain iterations, and all of them near where a thousand iterations more would.
// [EXT 3]
#[test]
fn plain_iterations_are_never_left_behind() {
    let (rows, columns, k) = (30, 20, 6);
    let basis = DMatrix::from_fn(rows, k, |i, z| {
        2000.0 * (0.05 + f64::from(u8::from((i + 7 * z) % 5 == 0))) / rows as f64
    });
    let v = DenseTensor::new(
        vec![rows, columns],
        (0..rows * columns)
            .map(|at| ((at * at + 3 * at) % 11 / 4) as f64)
            .collect(),
        Order::ColumnMajor,
    )
    .unwrap();
    let ones = DMatrix::from_element(k, 1, 1.0);
    let learnt = PlsaVbState::new(Given::Columns, basis.clone(), ones.clone()).unwrap();
    let lda = PlsaVb::new(k).prior("mixture_shape", Entries::All(0.1));
    let joint =
        PlcaVbState::new(ones, vec![basis, DMatrix::from_element(columns, k, 1.0)]).unwrap();
    let plca = PlcaVb::new(k)
        .prior("weights_shape", Entries::All(0.1))
        .prior("factor_1_shape", Entries::All(0.1));
    let bound = |solver: Solver, iterations: usize, tol: Option<f64>| {
        let mut how = Transform::default().solver(solver);
        (how.stop.max_iter, how.stop.tol) = (iterations, tol);
        [
            lda.transform(&learnt, &v, &how).unwrap().fit.objective(),
            plca.transform(&joint, &v, &how).unwrap().fit.objective(),
        ]
    };
    let long = bound(Solver::Em, 5000, None);
    let plain = bound(Solver::Em, 1000, Some(1e-12));
    assert_eq!(bound(Solver::Auto, 1000, Some(1e-12)), plain);
    for solver in [
        Solver::Em,
        Solver::Squarem,
        Solver::Parabolic,
        Solver::Momentum,
    ] {
        let found = bound(solver, 1000, Some(1e-12));
        for model in 0..2 {
            assert!(
                found[model] >= plain[model],
                "{solver}: {found:?} {plain:?}"
            );
            assert!(
                found[model] >= long[model] - 1e-9 * long[model].abs(),
                "{solver}: {found:?} {long:?}"
            );
        }
    }
}
