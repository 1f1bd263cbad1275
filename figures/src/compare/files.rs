//! A workload's arrays as files of the command.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use plca_io::{Array, DataFile, ModelFile, read_data, write_atomically, write_model};
use serde_json::Value;

use crate::Result;

/// Files of a workload as the command reads them.
pub(super) struct Files {
    pub(super) model: &'static str,
    pub(super) data: PathBuf,
    pub(super) init: PathBuf,
    objective: Objective,
    /// What the command must be told besides.
    pub(super) options: Vec<String>,
    /// Multiplications and additions of an iteration where they are all but everything: three products of dense data.
    pub(super) flops: Option<f64>,
    /// What we allow ourselves: the data with room to work, 8 times the factors and 64 MiB.
    pub(super) allowed_mb: f64,
}

/// Counts that an atom's posterior is as sure as.
const ATOM_COUNTS: f64 = 1000.0;

/// How the command's objective is turned into the peers'.
#[derive(Clone, Copy)]
enum Objective {
    /// It is theirs.
    Same,
    /// A log-likelihood, which differs from their divergence by `Σ v ln (v / Σ v)`.
    LogLikelihood { entropy: f64 },
    /// A squared error of data that sum to 1; theirs is half that of the data as given.
    OfShares { half_square: f64 },
}

/// The models of the workloads, by the word that stands in their description.
#[derive(Clone, Copy)]
enum Kind {
    /// `W H`.
    Matrix,
    /// Factors of one mode each.
    Tensor,
    /// The same under squared error; ours with weights and factors on the simplex.
    SquaredError,
    /// Kernels `(channel, k, ...)` and impulses `(k, ...)`, all channels at once.
    Shifted,
    /// Atoms `(feature, k, sign)` and activations `(k, column)` of signed data.
    Signed,
    /// The same by variational Bayes.
    SignedVariational,
}

impl Kind {
    fn of(meta: &Value) -> Result<Self> {
        match meta["kind"].as_str() {
            Some("nmf") => Ok(Self::Matrix),
            Some("cp") => Ok(Self::Tensor),
            Some("cpl2") => Ok(Self::SquaredError),
            Some("siplca") => Ok(Self::Shifted),
            Some("skellam") => Ok(Self::Signed),
            Some("skellam-vb") => Ok(Self::SignedVariational),
            other => Err(format!("a workload of unknown kind {other:?}").into()),
        }
    }

    fn model(self) -> &'static str {
        match self {
            Self::Matrix => "nmf-kl",
            Self::Tensor => "plca",
            Self::SquaredError => "pntf",
            Self::Shifted => "siplca",
            Self::Signed => "skellam",
            Self::SignedVariational => "skellam-vb",
        }
    }

    /// Initial values under the names of the command.
    fn init(self, given: Vec<Array<f64>>) -> ModelFile {
        let mut init = ModelFile::default();
        let mut put = |name: String, array| init.arrays.insert(name, array);
        match self {
            Self::Matrix => {
                for (name, factor) in ["w", "h"].into_iter().zip(given) {
                    put(name.into(), factor);
                }
            }
            Self::Signed => {
                for (name, block) in ["atoms", "activations"].into_iter().zip(given) {
                    put(name.into(), block);
                }
            }
            Self::SignedVariational => {
                let mut given = given.into_iter();
                if let (Some(mut atoms), Some(activations)) = (given.next(), given.next()) {
                    let rates = vec![1.0; activations.values.len()];
                    let rates = Array::new(activations.shape.clone(), rates);
                    atoms.values.iter_mut().for_each(|x| *x *= ATOM_COUNTS);
                    put("atoms_shape".into(), atoms);
                    put("activations_shape".into(), activations);
                    put("activations_rate".into(), rates);
                }
            }
            Self::Tensor | Self::SquaredError => {
                let (weights, factors) = distributions(given);
                put("weights".into(), weights);
                for (j, factor) in factors.into_iter().enumerate() {
                    put(format!("factor_{j}"), factor);
                }
            }
            Self::Shifted => {
                // Components first and last alike: a block of distributions is one of columns here.
                let shapes: Vec<_> = given.iter().map(|a| a.shape.clone()).collect();
                let (channels, k) = (shapes[0][0], shapes[0][1]);
                let taps: usize = shapes[0][2..].iter().product();
                let cells: usize = shapes[1][1..].iter().product();
                let kernels = (0..channels * taps * k)
                    .map(|at| {
                        let (cell, z) = (at / k, at % k);
                        given[0].values[(cell / taps * k + z) * taps + cell % taps]
                    })
                    .collect();
                let impulses = (0..cells * k)
                    .map(|at| given[1].values[at % k * cells + at / k])
                    .collect();
                let blocks = vec![
                    Array::new(vec![channels * taps, k], kernels),
                    Array::new(vec![cells, k], impulses),
                ];
                let (weights, blocks) = distributions(blocks);
                put("weights".into(), weights);
                let by_component = |block: &Array<f64>, shape: Vec<usize>| {
                    let rows = block.values.len() / k;
                    let of = |at: usize| block.values[at % rows * k + at / rows];
                    Array::new(shape, (0..rows * k).map(of).collect())
                };
                let shape = |first: usize, rest: &[usize]| [&[k, first], rest].concat();
                put(
                    "kernels".into(),
                    by_component(&blocks[0], shape(channels, &shapes[0][2..])),
                );
                put(
                    "impulses".into(),
                    by_component(&blocks[1], shape(1, &shapes[1][1..])),
                );
            }
        }
        init
    }
}

/// The command's factors have columns that are distributions: the columns' sums are the weights.
fn distributions(mut given: Vec<Array<f64>>) -> (Array<f64>, Vec<Array<f64>>) {
    let k = given.first().map_or(0, |f| f.shape[1]);
    let mut weights = vec![1.0; k];
    for factor in &mut given {
        for (z, weight) in weights.iter_mut().enumerate() {
            let sum: f64 = factor.values.iter().skip(z).step_by(k).sum();
            *weight *= sum;
            (factor.values.iter_mut().skip(z).step_by(k)).for_each(|x| *x /= sum);
        }
    }
    let mass: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= mass);
    (Array::new(vec![k], weights), given)
}

fn dense(path: &Path) -> Result<Array<f64>> {
    match read_data::<f64>(path, None)? {
        DataFile::Dense(array) => Ok(array),
        DataFile::Sparse(_) => Err(format!("{}: is not dense", path.display()).into()),
    }
}

/// `3x35x25`.
fn sizes(of: impl IntoIterator<Item = usize>) -> String {
    let of: Vec<_> = of.into_iter().map(|n| n.to_string()).collect();
    of.join("x")
}

/// A workload's arrays as data and initial values for the command. A converted list of entries stays until the workload changes.
pub(super) fn convert(raw: &Path, to: &Path) -> Result<Files> {
    let meta: Value = serde_json::from_slice(&fs::read(raw.join("meta.json"))?)?;
    let kind = Kind::of(&meta)?;
    let sparse = meta["sparse"] == true;
    fs::create_dir_all(to)?;
    let count = meta["shapes"].as_array().map_or(0, Vec::len);
    let given = (0..count)
        .map(|i| dense(&raw.join(format!("F{i}.npy"))))
        .collect::<Result<Vec<_>>>()?;
    let data = if sparse {
        to.join("X.tns")
    } else {
        raw.join("X.npy")
    };
    if sparse && !newer(&data, &raw.join("meta.json")) {
        let entries = match kind {
            Kind::Matrix => rows_of(raw)?,
            _ => list_of(raw)?,
        };
        write_atomically(&data, |f| std::io::Write::write_all(f, entries.as_bytes()))?;
    }

    let mut options = Vec::new();
    if let (true, Some(shape)) = (sparse, meta["shape"].as_array()) {
        let shape = shape.iter().filter_map(Value::as_u64).map(|n| n as usize);
        options.extend(["--shape".into(), sizes(shape)]);
    }
    if let Kind::Shifted = kind {
        let kernel = &given[0].shape;
        let extents = [kernel[0]].into_iter().chain(kernel[2..].iter().copied());
        options.extend(["--kernel".into(), sizes(extents)]);
    }

    let bytes = |name: &str| fs::metadata(raw.join(name)).map_or(0.0, |m| m.len() as f64);
    let data_bytes = match kind {
        // An index of four bytes per mode and a value of eight.
        Kind::Matrix if sparse => 2.5 * bytes("X_data.npy") / 8.0 * (4.0 * count as f64 + 8.0),
        Kind::Tensor if sparse => 2.5 * bytes("X_vals.npy") / 8.0 * (4.0 * count as f64 + 8.0),
        Kind::Matrix | Kind::Tensor | Kind::SquaredError => 1.25 * bytes("X.npy"),
        Kind::Signed | Kind::SignedVariational => 1.25 * bytes("X.npy"),
        // Transforms of the data, padded so that nothing wraps round.
        Kind::Shifted => 4.0 * bytes("X.npy"),
    };
    let factor_bytes: f64 = given.iter().map(|f| 8.0 * f.values.len() as f64).sum();
    let values = ["X.npy", "X_vals.npy"].map(|name| raw.join(name));
    let values = values.iter().find(|path| path.exists());
    let objective = match (kind, values) {
        (Kind::Matrix | Kind::Signed | Kind::SignedVariational, _) | (_, None) => Objective::Same,
        (Kind::SquaredError, Some(path)) => {
            let total: f64 = dense(path)?.values.iter().sum();
            let half_square = 0.5 * total * total;
            Objective::OfShares { half_square }
        }
        (Kind::Tensor | Kind::Shifted, Some(path)) => {
            let entropy = entropy(&dense(path)?.values);
            Objective::LogLikelihood { entropy }
        }
    };
    let flops = match kind {
        Kind::Matrix | Kind::Tensor if !sparse => {
            Some(6.0 * bytes("X.npy") / 8.0 * given[0].shape[1] as f64)
        }
        _ => None,
    };
    let init = to.join("init.npz");
    write_model(&init, &kind.init(given), false)?;
    Ok(Files {
        model: kind.model(),
        data,
        init,
        objective,
        options,
        flops,
        allowed_mb: (data_bytes + 8.0 * factor_bytes) / 1e6 + 67.1,
    })
}

/// `Σ v ln (v / Σ v)`.
fn entropy(values: &[f64]) -> f64 {
    let total: f64 = values.iter().sum();
    let positive = values.iter().filter(|v| **v > 0.0);
    positive.map(|v| v * (v / total).ln()).sum()
}

impl Files {
    /// What an objective of the command is in the peers' terms; smaller is better.
    pub(super) fn as_peers_do(&self, objective: f64) -> f64 {
        match self.objective {
            Objective::Same => objective,
            Objective::LogLikelihood { entropy } => entropy - objective,
            Objective::OfShares { half_square } => half_square * objective,
        }
    }
}

/// Whether `made` is there and no older than what it was made from.
fn newer(made: &Path, from: &Path) -> bool {
    let time = |p: &Path| fs::metadata(p).and_then(|m| m.modified());
    matches!((time(made), time(from)), (Ok(made), Ok(from)) if made >= from)
}

/// Compressed rows as a list of entries counted from 1.
fn rows_of(raw: &Path) -> Result<String> {
    let pointers = dense(&raw.join("X_indptr.npy"))?.values;
    let columns = dense(&raw.join("X_indices.npy"))?.values;
    let values = dense(&raw.join("X_data.npy"))?.values;
    let mut text = String::new();
    for (row, range) in pointers.windows(2).enumerate() {
        for at in range[0] as usize..range[1] as usize {
            writeln!(text, "{} {} {}", row + 1, columns[at] + 1.0, values[at])?;
        }
    }
    Ok(text)
}

/// Coordinates as a list of entries counted from 1.
fn list_of(raw: &Path) -> Result<String> {
    let coordinates = dense(&raw.join("X_coords.npy"))?;
    let values = dense(&raw.join("X_vals.npy"))?.values;
    let mut text = String::new();
    for (index, value) in (coordinates.values.chunks_exact(coordinates.shape[1])).zip(values) {
        for i in index {
            write!(text, "{} ", i + 1.0)?;
        }
        writeln!(text, "{value}")?;
    }
    Ok(text)
}
