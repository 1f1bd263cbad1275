//! One table: every model on every storage by every solver, in either precision, through the same lines. What does not go says why.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use plca::em::{IndexMaps, Sense};
use plca::prelude::*;
use plca::tensor::strategies::KeptBlocks;
use plca::tensor::{OutOfCore, Part};
use plca::{
    em::{
        NmfState, PlcaState, PlcaVb, PlcaVbState, PlsaState, PlsaVb, ShiftedState, Transformed,
        TransformedState,
    },
    fit::Status,
    l2::{ColumnNmf, ColumnNmfState, NtfState, PntfState},
    skellam::{
        Ding, DingState, KMeans, KMeansState, ShiftedSnmf, ShiftedSnmfVb, SignedCpState,
        SignedCpVb, SnmfState, SnmfVb, SnmfVbState,
    },
    tensor::Real,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

const SHAPE: [usize; 2] = [6, 5];
const ITERATIONS: usize = 6;

fn entries<T: Real>() -> Coordinates<T> {
    let cells = (0..SHAPE[0]).flat_map(|i| (0..SHAPE[1]).map(move |j| (i, j)));
    let cells = cells.map(|(i, j)| (i, j, (3 * i + 5 * j + i * j) % 7));
    let cells: Vec<_> = cells.filter(|&(_, _, v)| v > 0).collect();
    Coordinates {
        shape: SHAPE.to_vec(),
        indices: cells
            .iter()
            .flat_map(|&(i, j, _)| [i as u32, j as u32])
            .collect(),
        values: cells.iter().map(|&(_, _, v)| T::lit(v as f64)).collect(),
    }
}

/// The same data in every storage; of two of them a cell is hidden.
fn storages<T: Real>() -> Vec<(&'static str, Box<dyn Data<T>>)> {
    let mut values = vec![T::zero(); SHAPE[0] * SHAPE[1]];
    let sparse = entries::<T>();
    for (index, &value) in sparse.indices.chunks(2).zip(&sparse.values) {
        values[index[0] as usize * SHAPE[1] + index[1] as usize] = value;
    }
    let shape = SHAPE.to_vec();
    let mut masked = values.clone();
    masked[7] = T::lit(f64::NAN);
    let hidden = Coordinates {
        shape: shape.clone(),
        indices: vec![1, 2],
        values: vec![T::one()],
    };
    let whole: &'static _ = Box::leak(Box::new(SparseTensor::new(entries::<T>()).unwrap()));
    let blocks = KeptBlocks::cut(&sparse, 8).unwrap();
    vec![
        (
            "dense",
            Box::new(DenseTensor::new(shape.clone(), values, Order::RowMajor).unwrap()),
        ),
        (
            "masked",
            Box::new(DenseTensor::masked(shape, masked, Order::RowMajor).unwrap()),
        ),
        ("sparse", Box::new(SparseTensor::new(entries()).unwrap())),
        (
            "hidden",
            Box::new(SparseTensor::all_but(entries(), hidden).unwrap()),
        ),
        ("part", Box::new(Part::of(whole, |_, x| x).unwrap())),
        ("out of core", Box::new(OutOfCore::new(blocks).unwrap())),
    ]
}

/// The residual of a run that ends.
const NEAR: f64 = 1e-3;

/// What a model may be asked for.
type Asked<S> = fn(&S, &dyn Data<<S as State>::Scalar>) -> Result<(), FitError>;

/// Fits, resumes, changes threads, reconstructs, saves, loads and serialises; `Err` with what the model refuses.
fn through<T: Real, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    solver: Solver,
    ask: Asked<M::State>,
) -> Result<f64, FitError>
where
    M::State: Reconstruct + Serialize + DeserializeOwned + Sync,
{
    let run = || -> Result<_, FitError> {
        let stop = Stop::default()
            .tol(None)
            .max_iter(ITERATIONS)
            .check_every(2);
        Ok(model.on(data)?.solver(solver).stop(stop))
    };
    let start = model.init(data, Init::default(), &mut plca::seed(1))?;
    let half = RefCell::new(None);
    let keep = |it: &Iteration<'_, T>| {
        if it.done() == ITERATIONS / 2 {
            half.replace(Some(it.checkpoint()));
        }
        ControlFlow::Continue(())
    };
    let fit = run()?.observe(keep).run(&start, &mut plca::seed(2))?;
    let state = fit.state();
    let same = |other: &M::State, what: &str| {
        assert_eq!(other.parameters(), state.parameters(), "{what}");
    };
    assert!(fit.objective().is_finite());
    assert!(fit.iterations() == ITERATIONS || !fit.status().is_warning());
    let algorithm = model.bind(data)?;
    let (before, after) = (algorithm.objective(start.parameters())?, fit.objective());
    let slack = T::EPSILON.to_f64() * 1e3 * before.abs();
    let better = match algorithm.sense() {
        Sense::Maximise => after >= before - slack,
        Sense::Minimise => after <= before + slack,
    };
    assert!(better, "{before} became {after}");
    // A run that ends early is resumed from its end.
    let half = half.take().unwrap_or_else(|| fit.checkpoint().clone());
    let resumed = run()?.resume(half)?;
    same(resumed.state(), "resumed");
    assert_eq!(resumed.objective().to_bits(), fit.objective().to_bits());
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let other = pool.install(|| {
            let fit = run()?.run(&start, &mut plca::seed(2))?;
            Ok::<_, FitError>(fit.state().parameters().clone())
        })?;
        assert_eq!(&other, state.parameters(), "{threads} threads");
    }
    let whole = state.reconstruct()?;
    let parts = (0..Reconstruct::components(state)).map(|z| state.component(z));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let close = T::EPSILON.to_f64() * 1e3;
    for index in (0..SHAPE[0]).flat_map(|i| (0..SHAPE[1]).map(move |j| [i, j])) {
        let cell = whole.get(&index).to_f64();
        let sum: f64 = parts.iter().map(|part| part.get(&index).to_f64()).sum();
        let all: f64 = parts
            .iter()
            .map(|part| part.get(&index).to_f64().abs())
            .sum();
        assert!(
            (cell - state.cell(&index)).abs() <= close * (1.0 + all),
            "{index:?}"
        );
        assert!(
            (cell - sum).abs() <= close * (1.0 + all),
            "{index:?}: {cell} {sum}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["m.npz", "m.safetensors"] {
        let path = folder.path().join(name);
        plca::io::save(&path, state).unwrap();
        same(&plca::io::load(&path).unwrap(), name);
    }
    // What a run calls stationary is so by the file alone.
    if algorithm.residual(start.parameters()).is_ok() {
        let near = Stop::default().tol(None).residual_tol(NEAR).max_iter(400);
        let near = model.on(data)?.solver(solver).stop(near);
        let near = near.run(&start, &mut plca::seed(2))?;
        assert_eq!(near.status(), &Status::Stationary);
        let path = folder.path().join("near.npz");
        plca::io::save(&path, near.state()).unwrap();
        let read: M::State = plca::io::load(&path).unwrap();
        let residual = algorithm.residual(read.parameters())?;
        assert!(residual <= NEAR, "{residual}");
    }
    let text = serde_json::to_string(state).unwrap();
    same(&serde_json::from_str(&text).unwrap(), "serde");
    ask(state, data)?;
    Ok(after)
}

/// Runs a model in every way; what it refuses, by storage and solver. Storages of the same cells come to the same objective.
fn refusals<T: Real, M: Model<T>>(model: &M, ask: Asked<M::State>) -> BTreeSet<String>
where
    M::State: Reconstruct + Serialize + DeserializeOwned + Sync,
{
    let mut refused = BTreeSet::new();
    for &solver in Solver::ALL {
        // Of complete data and of data with a hidden cell.
        let mut reached = [None, None];
        for (storage, data) in storages::<T>() {
            match through(model, &*data, solver, ask) {
                Ok(objective) => {
                    let first = reached[usize::from(!data.is_complete())].get_or_insert(objective);
                    let allowed = T::EPSILON.to_f64().sqrt() * (1.0 + first.abs());
                    let apart = (objective - *first).abs();
                    assert!(
                        apart <= allowed,
                        "{storage}, {solver}: {objective} beside {first}"
                    );
                }
                Err(error) => {
                    refused.insert(format!("{storage}, {solver}: {error}"));
                }
            }
        }
    }
    refused
}

/// A transform with few iterations.
macro_rules! transform {
    ($state:ty) => {
        |state: &$state, data| {
            let stop = Stop::default().max_iter(4);
            let new = state.transform(data, &Transform::default().stop(stop))?;
            assert_eq!(
                Reconstruct::components(new.fit.state()),
                Reconstruct::components(state)
            );
            assert!(new.fit.objective().is_finite());
            Ok(())
        }
    };
}

macro_rules! table {
    ($($name:ident: $state:ident, $model:expr, $refused:expr;)*) => {
        $(
            #[test]
            fn $name() {
                fn of<T: Real + Serialize + DeserializeOwned>() -> BTreeSet<String> {
                    refusals(&$model, transform!($state<T>))
                }
                let expected: &[&str] = &$refused;
                for refused in [of::<f64>(), of::<f32>()] {
                    let missing: Vec<_> = expected
                        .iter()
                        .filter(|part| !refused.iter().any(|line| line.contains(**part)))
                        .collect();
                    let more: Vec<_> = refused
                        .iter()
                        .filter(|line| !expected.iter().any(|part| line.contains(*part)))
                        .collect();
                    assert!(missing.is_empty() && more.is_empty(), "not refused {missing:?}, refused {more:#?}");
                }
            }
        )*
    };
}

/// A kernel of a column, which may be any column of the data.
fn maps() -> IndexMaps {
    let columns = 0..SHAPE[1];
    let table = columns.flat_map(|j| (0..SHAPE[0]).map(move |i| (i * SHAPE[1] + j) as i64));
    IndexMaps::new(30, SHAPE[0], &table.collect::<Vec<_>>()).unwrap()
}

const NO_DESCENT: &str =
    "fast: the model is not supported by coordinate descent: expected the solver `em`";
const HIDDEN: &str =
    "entry [1, 2] is NaN, expected an observed cell: this model needs complete data";

table! {
    plca: PlcaState, Plca::new(2), [];
    plsa: PlsaState, Plsa::new(2), [];
    nmf: NmfState, Nmf::new(2), [];
    shifted: ShiftedState, Shifted::new(2, vec![3, 2]), [NO_DESCENT];
    transformed: TransformedState, Transformed::new(2, maps()), [NO_DESCENT];
    snmf: SnmfState, Snmf::new(2), [NO_DESCENT];
    snmf_vb: SnmfVbState, SnmfVb::new(2), [NO_DESCENT];
    signed_cp: SignedCpState, SignedCp::new(2), [NO_DESCENT];
    ding: DingState, Ding::new(2), [NO_DESCENT, HIDDEN];
    kmeans: KMeansState, KMeans::new(2), [
        "fast: k-means is not supported by coordinate descent: expected the solver `em`",
        "labels cannot be extrapolated: expected the solver `em`",
        HIDDEN,
    ];
    pntf: PntfState, Pntf::new(2), [
        NO_DESCENT,
        "explaining new data needs complete data, some cells are hidden: a fit by pNTF whose other factors are frozen takes these",
    ];
    ntf: NtfState, Ntf::new(2), [
        NO_DESCENT,
        "the unconstrained factorization needs complete data, some cells are hidden",
    ];
    column_nmf: ColumnNmfState, ColumnNmf::new(2), [
        NO_DESCENT,
        "the column-normalised factorization needs complete data, some cells are hidden",
    ];
}

#[test]
#[should_panic(expected = "one index for each mode")]
fn an_entry_has_an_index_for_each_mode() {
    let mut entries = Coordinates::empty(&[3, 3]);
    entries.push(&[0, 1], 1.0);
    entries.push(&[2], 1.0);
}

/// What a model says of a number of components that no memory holds: it is refused where it meets its data, and nothing panics or aborts.
#[test]
fn components_without_memory_are_refused() {
    fn refused<T: Real, M: Model<T>>(model: M, components: usize) {
        for (storage, data) in storages::<T>() {
            match model.bind(&*data).map(drop) {
                Err(FitError::Setting {
                    name: "components",
                    value,
                    ..
                }) => assert_eq!(value, components as f64),
                // Some models take no hidden cells, whatever their number of components is; k-means has no more clusters than samples.
                Err(FitError::Conflict { .. } | FitError::Entry { .. }) => {}
                other => panic!("{storage}, {components}: {other:?}"),
            }
        }
    }
    fn of<T: Real>() {
        for k in [
            usize::MAX,
            usize::MAX / 2,
            1 << 60,
            1 << 58,
            99_999_999_999_999,
        ] {
            refused::<T, _>(Plca::new(k), k);
            refused::<T, _>(Plsa::new(k), k);
            refused::<T, _>(Nmf::new(k), k);
            refused::<T, _>(Shifted::new(k, vec![3, 2]), k);
            refused::<T, _>(Transformed::new(k, maps()), k);
            refused::<T, _>(PlcaVb::new(k), k);
            refused::<T, _>(PlsaVb::new(k), k);
            refused::<T, _>(Snmf::new(k), k);
            refused::<T, _>(SnmfVb::new(k), k);
            refused::<T, _>(SignedCp::new(k), k);
            refused::<T, _>(SignedCpVb::new(k), k);
            refused::<T, _>(ShiftedSnmf::new(k, vec![3, 2]), k);
            refused::<T, _>(ShiftedSnmfVb::new(k, vec![3, 2]), k);
            refused::<T, _>(Ding::new(k), k);
            refused::<T, _>(KMeans::new(k), k);
            refused::<T, _>(Pntf::new(k), k);
            refused::<T, _>(Ntf::new(k), k);
            refused::<T, _>(ColumnNmf::new(k), k);
        }
        // Blocks that fit, and products of all components with each other that do not.
        refused::<T, _>(Pntf::new(1 << 23), 1 << 23);
        refused::<T, _>(Ntf::new(1 << 23), 1 << 23);
    }
    of::<f64>();
    of::<f32>();
}

/// A state needs a factor, and says which modes it has.
#[test]
fn states_have_factors() {
    let weights = || nalgebra::DVector::from_element(1, 1.0);
    let none = Err(FitError::Count {
        got: 0,
        expected: vec!["factor_0".into(), "…".into()],
    });
    assert_eq!(PlcaState::<f64>::new(weights(), Vec::new()).map(drop), none);
    assert_eq!(NtfState::<f64>::new(Vec::new()).map(drop), none);
    assert_eq!(PntfState::<f64>::new(weights(), Vec::new()).map(drop), none);
    let shapes = nalgebra::DMatrix::from_element(1, 1, 1.0);
    assert_eq!(PlcaVbState::<f64>::new(shapes, Vec::new()).map(drop), none);
}

#[test]
#[should_panic(expected = "there is no mode 18446744073709551615, the model has 2, counted from 0")]
fn a_factor_is_of_a_mode() {
    let factor = || nalgebra::DMatrix::from_element(1, 1, 1.0);
    let weights = nalgebra::DVector::from_element(1, 1.0);
    let state = PlcaState::<f64>::new(weights, vec![factor(), factor()]).unwrap();
    state.factor(usize::MAX);
}
