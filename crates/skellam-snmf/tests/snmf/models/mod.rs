//! What every model does: starts, solvers, frozen blocks, checkpoints, reconstructions, new data, refusals.

mod cp;
mod ding;
mod snmf;
mod vb;

use plca_fit::{Checkpoint, Fit, FitError, Init, Model, Reconstruct, Solver, State, Stop};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// Iterations of most runs.
pub(super) const ITERATIONS: usize = 12;
pub(super) const ALL: [Solver; 4] = [
    Solver::Em,
    Solver::Squarem,
    Solver::Parabolic,
    Solver::Momentum,
];

pub(super) fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(3)
}

/// Whole numbers of either sign: dense, with hidden cells, and as a list of the few that were observed.
pub(super) fn storages<T: Real>(shape: &[usize]) -> Vec<(&'static str, Box<dyn Data<T>>)> {
    let cells: usize = shape.iter().product();
    let value = |i: usize| T::lit(((i * i * 7 + 3 * i) % 11) as f64 - 4.0);
    let values: Vec<T> = (0..cells).map(value).collect();
    let hidden = |(i, v): (usize, &T)| if i % 7 == 3 { T::lit(f64::NAN) } else { *v };
    let masked = values.iter().enumerate().map(hidden).collect();
    let dense = DenseTensor::new(shape.to_vec(), values, Order::RowMajor).unwrap();
    let mut entries = Coordinates {
        shape: shape.to_vec(),
        indices: Vec::new(),
        values: Vec::new(),
    };
    let mut at = 0;
    let mut push = |index: &[usize], value: f64| {
        at += 1;
        if at % 3 != 0 {
            entries.indices.extend(index.iter().map(|&i| i as u32));
            entries.values.push(T::lit(value));
        }
    };
    dense.visit(&mut push).unwrap();
    let masked = DenseTensor::masked(shape.to_vec(), masked, Order::RowMajor).unwrap();
    vec![
        ("dense", Box::new(dense) as Box<dyn Data<T>>),
        ("masked", Box::new(masked)),
        (
            "listed",
            Box::new(SparseTensor::stored_only(entries).unwrap()),
        ),
    ]
}

/// The columns of the masked data of this shape, each as data of its own.
pub(super) fn columns(shape: [usize; 2]) -> Vec<DenseTensor<f64>> {
    let (_, whole) = storages::<f64>(&shape).swap_remove(1);
    let mut values = vec![vec![0.0; shape[0]]; shape[1]];
    let mut put = |index: &[usize], value: f64| values[index[1]][index[0]] = value;
    whole.visit(&mut put).unwrap();
    whole
        .visit_mask(&mut |index| values[index[1]][index[0]] = f64::NAN)
        .unwrap();
    let column = |values| DenseTensor::masked(vec![shape[0], 1], values, Order::RowMajor).unwrap();
    values.into_iter().map(column).collect()
}

pub(super) fn exactly(n: usize) -> Stop {
    Stop::default().max_iter(n).tol(None)
}

/// What the run of a model ends with.
pub(super) fn new<T: Real, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    init: impl Into<Init<T>>,
    solver: Solver,
) -> Fit<M::State> {
    let run = model.on(data).unwrap().solver(solver);
    let run = run.stop(exactly(ITERATIONS));
    run.run(init, &mut rng()).unwrap()
}

/// The error of what should be refused, which has no `Debug` otherwise.
pub(super) fn refusal<O>(result: Result<O, FitError>) -> FitError {
    result.err().expect("it is refused")
}

pub(super) fn near(now: &[f64], before: &[f64], most: f64, what: &str) {
    assert_eq!(now.len(), before.len(), "{what}");
    let pairs = now.iter().zip(before);
    let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst <= most, "{what}: {worst}");
}

/// A run that is cut, written, read and continued has the bits of one that is not.
pub(super) fn resumes<T: Real + serde::Serialize + serde::de::DeserializeOwned, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    solver: Solver,
) where
    M::State: PartialEq,
{
    let whole = new(model, data, Init::default(), solver);
    let run = model.on(data).unwrap().solver(solver);
    let half = run.stop(exactly(5)).run(Init::default(), &mut rng());
    let saved = serde_json::to_string(half.unwrap().checkpoint()).unwrap();
    let from: Checkpoint<T> = serde_json::from_str(&saved).unwrap();
    let run = model.on(data).unwrap().solver(solver);
    let rest = run.stop(exactly(ITERATIONS)).resume(from).unwrap();
    assert_eq!(rest.state(), whole.state(), "{solver}");
    assert_eq!(rest.objective(), whole.objective(), "{solver}");
}

/// A reconstruction has the cells of its state, and is the sum of its components.
pub(super) fn reconstructs<S: Reconstruct<Scalar = f64>>(state: &S, data: &dyn Data<f64>) {
    assert_eq!(state.shape(), data.shape());
    let (shape, whole, order) = state.reconstruct().unwrap().into_parts();
    assert_eq!((&shape[..], order), (data.shape(), Order::RowMajor));
    let parts = (0..state.components()).map(|z| state.component(z).unwrap().into_parts().1);
    let mut sums = vec![0.0; whole.len()];
    for part in parts {
        sums.iter_mut().zip(&part).for_each(|(s, x)| *s += x);
    }
    near(&whole, &sums, 1e-11, "components");
    let mut at = 0;
    let ones = DenseTensor::new(shape, vec![1.0; whole.len()], Order::RowMajor).unwrap();
    ones.visit(&mut |index, _| {
        assert!((state.cell(index) - whole[at]).abs() < 1e-11);
        at += 1;
    })
    .unwrap();
    assert_eq!(at, whole.len());
    let none = state.components();
    for refused in [state.component(none), state.cells(Some(none))] {
        let error = refusal(refused);
        assert!(matches!(error, FitError::NoComponent { .. }), "{error}");
    }
}

pub(super) fn block<S: State>(fit: &Fit<S>, name: &str) -> nalgebra::DMatrix<S::Scalar> {
    fit.state().parameters().block(name).unwrap().clone()
}
