//! `plca reconstruct`, `inspect`, `sample`.

use std::path::Path;

use nalgebra::{DMatrix, DVector};
use plca_io::{Array, ModelFile};
use plca_tensor::{Factor, Model};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value, json};

use crate::args::{InspectArgs, ReconstructArgs, SampleArgs};
use crate::blocks::{need_matrix, need_vector};
use crate::failure::Failure;
use crate::interrupt;
use crate::outputs::{print, writable};

/// A model file as a sum of rank-one terms.
struct Product {
    weights: DVector<f64>,
    factors: Vec<DMatrix<f64>>,
    /// What the sum must be multiplied by to approximate the data.
    scale: f64,
}

impl Product {
    fn read(path: &Path) -> Result<Self, Failure> {
        let ModelFile {
            mut arrays,
            metadata,
        } = plca_io::read_model(path)?;
        let total = metadata["data"]["total"].as_f64().unwrap_or(1.0);
        // There is a scale in the file where cells were hidden.
        let scale = &metadata["scale"];
        let ones = |k| DVector::from_element(k, 1.0);
        match metadata["model"].as_str().unwrap_or_default() {
            "plca" => {
                let order = metadata["data"]["shape"].as_array().map_or(0, Vec::len);
                if order == 0 {
                    return Err(Failure::of(path, "does not say the shape of its data"));
                }
                let weights = need_vector(path, &mut arrays, "weights")?;
                let factors = (0..order)
                    .map(|j| need_matrix(path, &mut arrays, &format!("factor_{j}")))
                    .collect::<Result<_, _>>()?;
                Ok(Self {
                    weights,
                    factors,
                    scale: scale.as_f64().unwrap_or(total),
                })
            }
            "plsa" => {
                let basis = need_matrix(path, &mut arrays, "basis")?;
                let mixture = need_matrix(path, &mut arrays, "mixture")?;
                let marginal = need_vector(path, &mut arrays, "marginal")?;
                if marginal.len() != mixture.ncols() {
                    return Err(Failure::of(
                        path,
                        format!(
                            "`marginal` has {} entries, `mixture` {}",
                            marginal.len(),
                            mixture.ncols()
                        ),
                    ));
                }
                let (shares, total) = match scales(path, scale, marginal.len())? {
                    Some(scales) => (scales, 1.0),
                    None => (marginal, total),
                };
                let given = DMatrix::from_fn(mixture.ncols(), mixture.nrows(), |y, z| {
                    mixture[(z, y)] * shares[y]
                });
                let weights = ones(basis.ncols());
                let factors = if metadata["settings"]["given"] == 0 {
                    vec![given, basis]
                } else {
                    vec![basis, given]
                };
                Ok(Self {
                    weights,
                    factors,
                    scale: total,
                })
            }
            "nmf-kl" => {
                let w = need_matrix(path, &mut arrays, "w")?;
                let h = need_matrix(path, &mut arrays, "h")?;
                Ok(Self {
                    weights: ones(w.ncols()),
                    factors: vec![w, h.transpose()],
                    scale: 1.0,
                })
            }
            other => Err(Failure::of(
                path,
                format!("holds no model that can be reconstructed (`{other}`)"),
            )),
        }
        .and_then(|p| p.consistent(path))
    }

    fn consistent(self, path: &Path) -> Result<Self, Failure> {
        match self
            .factors
            .iter()
            .find(|f| f.ncols() != self.weights.len())
        {
            Some(f) => Err(Failure::of(
                path,
                format!(
                    "blocks of {} and {} components",
                    self.weights.len(),
                    f.ncols()
                ),
            )),
            None => Ok(self),
        }
    }

    fn with_model<O>(&self, f: impl FnOnce(&Model<'_, f64>) -> O) -> O {
        let factors: Vec<_> = self.factors.iter().map(Factor::Columns).collect();
        f(&Model {
            weights: Some(self.weights.as_slice()),
            factors: &factors,
        })
    }

    fn shape(&self) -> Vec<usize> {
        self.factors.iter().map(DMatrix::nrows).collect()
    }
}

/// One scale for each of `count` given indices, where the file has them.
fn scales(path: &Path, saved: &Value, count: usize) -> Result<Option<DVector<f64>>, Failure> {
    let Some(saved) = saved.as_array() else {
        return Ok(None);
    };
    let scales: Vec<f64> = saved.iter().filter_map(Value::as_f64).collect();
    if scales.len() != count || scales.iter().any(|&s| s < 0.0) {
        let what = format!("`scale` is no list of {count} numbers >= 0");
        return Err(Failure::of(path, what));
    }
    Ok(Some(DVector::from_vec(scales)))
}

/// An array of zeros of the model's shape, refused where it could not be held.
fn zeros(path: &Path, shape: &[usize]) -> Result<Vec<f64>, Failure> {
    let cells = shape
        .iter()
        .try_fold(1usize, |n, &m| n.checked_mul(m))
        .filter(|&n| n <= 1 << 34);
    let cells = cells.ok_or_else(|| {
        Failure::of(
            path,
            format!("an array of shape {shape:?} is too large to write"),
        )
    })?;
    let mut values = Vec::new();
    values
        .try_reserve_exact(cells)
        .map_err(|e| Failure::of(path, e))?;
    values.resize(cells, 0.0);
    Ok(values)
}

fn write(path: &Path, array: &Array<f64>) -> Result<(), Failure> {
    Ok(interrupt::writing(|| plca_io::write_npy(path, array))?)
}

pub(crate) fn reconstruct(args: &ReconstructArgs) -> Result<(), Failure> {
    writable(&args.output, &["npy"])?;
    let product = Product::read(&args.model)?;
    let shape = product.shape();
    let mut values = zeros(&args.model, &shape)?;
    product.with_model(|model| {
        crate::data::for_each_cell(&shape, false, &mut values, |index, x| {
            *x = product.scale * model.cell(index)
        });
    });
    write(&args.output, &Array::new(shape, values))
}

/// Events held in memory together.
const BATCH: u64 = 1 << 20;

pub(crate) fn sample(args: &SampleArgs) -> Result<(), Failure> {
    writable(&args.output, &["npy"])?;
    let product = Product::read(&args.model)?;
    let shape = product.shape();
    let mut values = zeros(&args.model, &shape)?;
    let mut rng = ChaCha8Rng::seed_from_u64(args.seed);
    let mut left = args.draws;
    while left > 0 {
        let draws = left.min(BATCH);
        left -= draws;
        let events = product
            .with_model(|model| plca_em::sample_counts(model, draws as usize, &mut rng))
            .map_err(|e| Failure::of(&args.model, e))?;
        for index in events.indices.chunks_exact(shape.len()) {
            values[index
                .iter()
                .zip(&shape)
                .fold(0, |at, (&i, &n)| at * n + i as usize)] += 1.0;
        }
    }
    write(&args.output, &Array::new(shape, values))
}

pub(crate) fn inspect(args: &InspectArgs) -> Result<(), Failure> {
    let file = plca_io::read_model(&args.model)?;
    if args.json {
        let arrays: serde_json::Map<String, Value> = file
            .arrays
            .iter()
            .map(|(name, a)| (name.clone(), json!({ "shape": a.shape })))
            .collect();
        let all = json!({ "arrays": arrays, "metadata": file.metadata });
        return print(&format!("{all}\n"));
    }
    let mut text = String::new();
    for (name, array) in &file.arrays {
        let (low, high) = array
            .values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| {
                (a.min(x), b.max(x))
            });
        let shape = format!("{:?}", array.shape);
        text.push_str(&format!("{name:<12} {shape:<16} {low:.6} .. {high:.6}\n"));
    }
    for (name, value) in file.metadata.as_object().into_iter().flatten() {
        let value = match value {
            Value::Array(values) if values.iter().all(Value::is_number) => {
                format!("{} numbers", values.len())
            }
            value => value.to_string(),
        };
        text.push_str(&format!("{name:<16} {value}\n"));
    }
    print(&text)
}
