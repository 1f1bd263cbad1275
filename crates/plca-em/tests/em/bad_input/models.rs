//! All models behind one signature.

use nalgebra::{DMatrix, DVector};
use plca_em::{Given, Nmf, Plca, Plsa, Update};
use plca_fit::{FitError, Init, Parameters};
use plca_tensor::{Coordinates, Data, DataError, DenseTensor, Order, Real, SparseTensor};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// A model of matrices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Model {
    Plca,
    Plsa(Given),
    Nmf(Update),
}

pub(crate) const MODELS: [Model; 5] = [
    Model::Plca,
    Model::Plsa(Given::Columns),
    Model::Plsa(Given::Rows),
    Model::Nmf(Update::Simultaneous),
    Model::Nmf(Update::Sequential),
];

/// Two blocks by the data's modes, each `I x K`, and `P(z)` where the model has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fit<T: Real> {
    pub(crate) weights: Option<DVector<T>>,
    pub(crate) blocks: [DMatrix<T>; 2],
    pub(crate) objective: f64,
}

pub(crate) fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(3)
}

fn steps<T: Real, M: plca_fit::Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    init: Init<T>,
    n: usize,
) -> Result<(Parameters<T>, f64), FitError> {
    let algorithm = model.bind(data)?;
    let mut at = init.parameters(&*algorithm, &mut rng())?;
    for _ in 0..n {
        algorithm.step(&mut at, false)?;
    }
    let objective = algorithm.objective(&at)?;
    Ok((at, objective))
}

impl Model {
    /// Names of the blocks of mode 0 and 1, in the model's words.
    pub(crate) fn blocks(self) -> [&'static str; 2] {
        match self {
            Self::Plca => ["factor_0", "factor_1"],
            Self::Plsa(Given::Columns) => ["basis", "mixture"],
            Self::Plsa(Given::Rows) => ["mixture", "basis"],
            Self::Nmf(_) => ["w", "h"],
        }
    }

    /// Whether the block of this mode is stored `K x I`.
    pub(crate) fn lies(self, mode: usize) -> bool {
        self.blocks()[mode] == "mixture" || self.blocks()[mode] == "h"
    }

    /// `n` iterations with `K` components from the given blocks (`I x K`, by mode); others are drawn.
    pub(crate) fn run<T: Real>(
        self,
        data: &dyn Data<T>,
        k: usize,
        start: [Option<DMatrix<T>>; 2],
        n: usize,
    ) -> Result<Fit<T>, FitError> {
        let mut init = Init::default();
        for (mode, block) in start.into_iter().enumerate() {
            let Some(block) = block else { continue };
            let lies = self.lies(mode);
            let block = if lies { block.transpose() } else { block };
            init = init.block(self.blocks()[mode], block);
        }
        let (at, objective) = match self {
            Self::Plca => steps(&Plca::new(k), data, init, n)?,
            Self::Plsa(given) => {
                let plsa = Plsa::new(k).given(given);
                steps(&plsa, data, init, n)?
            }
            Self::Nmf(update) => {
                let nmf = Nmf::new(k).update(update);
                steps(&nmf, data, init, n)?
            }
        };
        let block = |mode: usize| {
            let block = at.block(self.blocks()[mode]).unwrap();
            if self.lies(mode) {
                block.transpose()
            } else {
                block.clone()
            }
        };
        let weights = at.block("weights");
        Ok(Fit {
            weights: weights.map(|w| DVector::from_column_slice(w.as_slice())),
            blocks: [block(0), block(1)],
            objective,
        })
    }
}

/// A storage's name, and what it made of the values.
type Stored<T> = (&'static str, Result<Box<dyn Data<T>>, DataError>);

/// Every storage's name, and what it makes of row-major values (all of them observed and, where sparse, stored).
pub(crate) fn storages<T: Real>(shape: &[usize], values: &[T]) -> Vec<Stored<T>> {
    fn boxed<T: Real>(
        data: Result<impl Data<T> + 'static, DataError>,
    ) -> Result<Box<dyn Data<T>>, DataError> {
        data.map(|d| Box::new(d) as Box<dyn Data<T>>)
    }
    let s = || shape.to_vec();
    let by_column = || match *shape {
        [rows, columns] => (0..values.len())
            .map(|at| values[at % rows * columns + at / rows])
            .collect(),
        _ => values.to_vec(),
    };
    let seen = vec![true; values.len()];
    let last = *shape.last().unwrap_or(&1);
    let indices: Vec<u32> = (0..values.len())
        .flat_map(|at| [at / last, at % last])
        .map(|i| i as u32)
        .collect();
    let coordinates = || Coordinates {
        shape: s(),
        indices: indices.clone(),
        values: values.to_vec(),
    };
    let none = Coordinates {
        shape: s(),
        indices: vec![],
        values: vec![],
    };
    vec![
        (
            "dense by row",
            boxed(DenseTensor::new(s(), values.to_vec(), Order::RowMajor)),
        ),
        (
            "dense by column",
            boxed(DenseTensor::new(s(), by_column(), Order::ColumnMajor)),
        ),
        (
            "masked",
            boxed(DenseTensor::with_mask(
                s(),
                values.to_vec(),
                Order::RowMajor,
                &seen,
            )),
        ),
        ("sparse", boxed(SparseTensor::new(coordinates()))),
        (
            "stored only",
            boxed(SparseTensor::stored_only(coordinates())),
        ),
        (
            "all but none",
            boxed(SparseTensor::all_but(coordinates(), none)),
        ),
    ]
}
