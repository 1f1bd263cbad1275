//! Reading reference values.

use std::marker::PhantomData;

use nalgebra::DMatrix;
use plca_fit::{Algorithm, Init, Model, Parameters, State};
use plca_tensor::arrange::Signed;
use plca_tensor::{Coordinates, Data, DenseTensor, Order, Real, SparseTensor};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;
use skellam_snmf::Factors;

/// A model on data, at some parameters.
pub(crate) struct At<'a, T: Real, S> {
    algorithm: Box<dyn Algorithm<T> + 'a>,
    parameters: Parameters<T>,
    state: PhantomData<S>,
}

impl<'a, T: Real, S: State<Scalar = T>> At<'a, T, S> {
    pub(crate) fn start(
        model: &'a impl Model<T, State = S>,
        data: &'a dyn Data<T>,
        init: impl Into<Init<T>>,
    ) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let algorithm = model.bind(data).unwrap();
        Self {
            parameters: init.into().parameters(&*algorithm, &mut rng).unwrap(),
            algorithm,
            state: PhantomData,
        }
    }

    pub(crate) fn state(&self) -> S {
        S::wrap(self.parameters.clone()).unwrap()
    }

    pub(crate) fn objective(&self) -> f64 {
        self.algorithm.objective(&self.parameters).unwrap() + self.algorithm.constant()
    }

    /// The objective without priors.
    pub(crate) fn fit(&self) -> f64 {
        self.algorithm.likelihood(&self.parameters).unwrap()
    }

    pub(crate) fn step(&mut self) {
        let stepped = self.algorithm.step(&mut self.parameters, false);
        assert_eq!(stepped.unwrap().value, None);
    }

    /// A step, and the objective before it.
    pub(crate) fn measured(&mut self) -> f64 {
        let stepped = self.algorithm.step(&mut self.parameters, true).unwrap();
        stepped.value.unwrap() + self.algorithm.constant()
    }
}

/// A start from factors.
pub(crate) fn from_factors<T: Real>(factors: &Factors<T>) -> Init<T> {
    Init::default()
        .block("atoms", stacked(&factors.plus, &factors.minus))
        .block("activations", factors.activations.clone())
}

/// A matrix as data.
pub(crate) fn tensor<T: Real>(values: &DMatrix<T>) -> DenseTensor<T> {
    let shape = vec![values.nrows(), values.ncols()];
    DenseTensor::masked(shape, values.as_slice().to_vec(), Order::ColumnMajor).unwrap()
}

/// Both sides of atoms as one block.
pub(crate) fn stacked<T: Real>(plus: &DMatrix<T>, minus: &DMatrix<T>) -> DMatrix<T> {
    let f = plus.nrows();
    DMatrix::from_fn(2 * f, plus.ncols(), |i, z| match i < f {
        true => plus[(i, z)],
        false => minus[(i - f, z)],
    })
}

/// A matrix of which some cells were observed.
pub(crate) fn masked<T: Real>(values: &DMatrix<T>, seen: &DMatrix<bool>) -> DenseTensor<T> {
    let (shape, values) = (vec![values.nrows(), values.ncols()], values.as_slice());
    let seen = seen.as_slice();
    DenseTensor::with_mask(shape, values.to_vec(), Order::ColumnMajor, seen).unwrap()
}

/// The observed cells of a matrix as a list.
pub(crate) fn listed<T: Real>(data: &dyn Data<T>) -> SparseTensor<T> {
    let mut cells = Coordinates {
        shape: data.shape().to_vec(),
        indices: Vec::new(),
        values: Vec::new(),
    };
    Signed::new(data)
        .unwrap()
        .for_each(&mut |row, column, value| {
            cells.indices.extend([row as u32, column as u32]);
            cells.values.push(T::lit(value));
        });
    SparseTensor::stored_only(cells).unwrap()
}

pub(crate) fn number(v: &Value) -> f64 {
    v.as_f64()
        .unwrap_or_else(|| v.as_str().unwrap().parse().unwrap())
}

/// Rows of numbers.
pub(crate) fn matrix(v: &Value) -> DMatrix<f64> {
    let rows = v.as_array().unwrap();
    let columns = rows[0].as_array().unwrap().len();
    DMatrix::from_fn(rows.len(), columns, |i, j| number(&v[i][j]))
}

/// One side of an `F x K x 2` array.
pub(crate) fn side(v: &Value, s: usize) -> DMatrix<f64> {
    let rows = v.as_array().unwrap();
    let columns = rows[0].as_array().unwrap().len();
    DMatrix::from_fn(rows.len(), columns, |i, j| number(&v[i][j][s]))
}

/// Relative to each entry; zeros must be zeros.
pub(crate) fn assert_near(got: &DMatrix<f64>, want: &DMatrix<f64>, rtol: f64, what: &str) {
    assert_eq!(got.shape(), want.shape(), "{what}");
    for (got, want) in got.iter().zip(want) {
        assert!(
            (got - want).abs() <= rtol * want.abs(),
            "{what}: {got:e} instead of {want:e}"
        );
    }
}
