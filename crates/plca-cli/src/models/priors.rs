//! Priors from the command line and from files.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::Prior;
use plca_io::Element;
use plca_priors::{Dirichlet, Priors};

use super::broadcast::broadcast;
use crate::args::FitArgs;
use crate::failure::Failure;

/// A block that may have a prior.
pub(super) struct Block {
    name: String,
    /// Rows and columns; every column is a distribution.
    size: (usize, usize),
    /// Shape of its array in files.
    shape: Vec<usize>,
    /// The array holds the columns one after the other.
    stacked: bool,
}

impl Block {
    /// A block whose array is the matrix itself.
    pub(super) fn matrix(name: impl Into<String>, rows: usize, columns: usize) -> Self {
        Self {
            name: name.into(),
            size: (rows, columns),
            shape: vec![rows, columns],
            stacked: false,
        }
    }

    /// A block of one column.
    pub(super) fn vector(name: impl Into<String>, rows: usize) -> Self {
        Self {
            name: name.into(),
            size: (rows, 1),
            shape: vec![rows],
            stacked: true,
        }
    }

    /// A block of so many columns, each of them an array of these extents.
    pub(super) fn stack(name: impl Into<String>, extents: &[usize], columns: usize) -> Self {
        Self {
            name: name.into(),
            size: (extents.iter().product(), columns),
            shape: [&[columns], extents].concat(),
            stacked: true,
        }
    }

    /// A matrix of the block's size from an array that broadcasts to its shape.
    fn spread(&self, array: &plca_io::Array<f64>) -> Option<DMatrix<f64>> {
        let (rows, columns) = self.size;
        let values = broadcast(array, &self.shape)?.into_iter();
        Some(if self.stacked {
            DMatrix::from_iterator(rows, columns, values)
        } else {
            DMatrix::from_row_iterator(rows, columns, values)
        })
    }
}

/// Priors of every block, from `--prior` and `--priors`.
pub(super) fn priors<T: Element>(
    args: &FitArgs,
    blocks: &[Block],
) -> Result<Vec<(String, Prior<T>)>, Failure> {
    let mut out: Vec<(String, Prior<T>)> = Vec::new();
    let find = |name: &str| {
        blocks.iter().find(|b| b.name == name).ok_or_else(|| {
            let known: Vec<&str> = blocks.iter().map(|b| b.name.as_str()).collect();
            let known = known.join(", ");
            format!("no block `{name}` takes a prior; there are {known}")
        })
    };
    for spec in &args.prior {
        let bad = |what: String| Failure::usage(format!("--prior {spec}: {what}"));
        let (block, prior) = spec
            .split_once('=')
            .ok_or_else(|| bad("BLOCK=SPEC is needed".into()))?;
        let size = find(block).map_err(bad)?.size;
        let prior = Priors::parse(prior, size).map_err(|e| bad(e.to_string()))?;
        if out.iter().any(|(n, _)| n == block) {
            return Err(bad(format!("`{block}` has a prior already")));
        }
        out.push((block.to_string(), prior));
    }
    if let Some(path) = &args.priors {
        for (name, array) in plca_io::read_model(path)?.arrays {
            let bad = |what: String| Failure::of(path, format!("`{name}`: {what}"));
            let (block, kind) = name
                .rsplit_once('.')
                .ok_or_else(|| bad("BLOCK.KIND is needed".into()))?;
            if kind != "dirichlet" {
                return Err(bad(format!(
                    "unknown prior `{kind}`; there is BLOCK.dirichlet"
                )));
            }
            let block = find(block).map_err(bad)?;
            let alpha = block.spread(&array).ok_or_else(|| {
                let (got, want) = (&array.shape, &block.shape);
                bad(format!("shape {got:?} does not broadcast to {want:?}"))
            })?;
            if out.iter().any(|(n, _)| *n == block.name) {
                return Err(bad(format!("`{}` has a prior already", block.name)));
            }
            let prior = Dirichlet::per_entry(alpha).map_err(|e| bad(e.to_string()))?;
            out.push((block.name.clone(), Arc::new(prior)));
        }
    }
    Ok(out)
}
