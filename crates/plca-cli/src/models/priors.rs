//! Priors from the command line and from files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::Prior;
use plca_io::{Array, Element};
use plca_priors::{Dirichlet, Entries, Gamma, Lagged, PriorEntry, Priors, RatePrior, RatePriors};

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

    /// A block with this number of columns, each of them an array of these extents.
    pub(super) fn stack(name: impl Into<String>, extents: &[usize], columns: usize) -> Self {
        Self {
            name: name.into(),
            size: (extents.iter().product(), columns),
            shape: [&[columns], extents].concat(),
            stacked: true,
        }
    }

    /// A matrix of the block's size from an array that broadcasts to its shape.
    fn spread(&self, array: &Array<f64>) -> Result<DMatrix<f64>, String> {
        let (rows, columns) = self.size;
        let values = broadcast(array, &self.shape)?.into_iter();
        Ok(if self.stacked {
            DMatrix::from_iterator(rows, columns, values)
        } else {
            DMatrix::from_row_iterator(rows, columns, values)
        })
    }
}

/// Names and forms of priors.
pub(super) fn forms<P: ?Sized>(all: &[PriorEntry<P>]) -> String {
    let form = |entry: &PriorEntry<P>| match entry.form {
        "" => entry.name.to_string(),
        // What may be left out may also begin a line.
        form => format!("{}:{}", entry.name, form.replace("][,", "] [,")),
    };
    all.iter().map(form).collect::<Vec<_>>().join(", ")
}

/// What the command line says of a block's prior.
#[derive(Clone, Copy)]
pub(super) enum Said<'a> {
    /// `--prior BLOCK=SPEC`.
    Spec(&'a str),
    /// An array of `--priors`, by its kind.
    Array(&'a str, &'a Array<f64>),
}

/// Calls `set` with every block that `--prior` and `--priors` name, and with what they say of it; it returns the block's own name.
pub(super) fn for_each(
    specs: &[String],
    file: Option<&Path>,
    mut set: impl FnMut(&str, Said<'_>) -> Result<String, String>,
) -> Result<(), Failure> {
    let mut given = BTreeSet::new();
    for spec in specs {
        let bad = |what: String| Failure::usage(format!("--prior {spec}: {what}"));
        let named = spec.split_once('=');
        let (block, law) =
            named.ok_or_else(|| bad("BLOCK=SPEC is needed, such as weights=dirichlet:2".into()))?;
        let block = set(block, Said::Spec(law)).map_err(bad)?;
        if given.contains(&block) {
            return Err(bad(format!("`{block}` has a prior already")));
        }
        given.insert(block);
    }
    let Some(path) = file else {
        return Ok(());
    };
    for (name, array) in crate::saved::arrays(path)?.arrays {
        let bad = |what: String| Failure::of(path, format!("`{name}`: {what}"));
        let named = name.rsplit_once('.');
        let (block, kind) =
            named.ok_or_else(|| bad("BLOCK.KIND is needed, such as weights.dirichlet".into()))?;
        let block = set(block, Said::Array(kind, &array)).map_err(bad)?;
        if given.contains(&block) {
            return Err(bad(format!("`{block}` has a prior already")));
        }
    }
    Ok(())
}

/// The block of a name.
fn find<'a>(blocks: &'a [Block], name: &str) -> Result<&'a Block, String> {
    blocks.iter().find(|b| b.name == name).ok_or_else(|| {
        let known: Vec<&str> = blocks.iter().map(|b| b.name.as_str()).collect();
        let known = known.join(", ");
        format!("no block `{name}` takes a prior; expected one of {known}")
    })
}

/// Priors of every block, from `--prior` and `--priors`.
pub(super) fn priors<T: Element>(
    args: &FitArgs,
    blocks: &[Block],
) -> Result<Vec<(String, Prior<T>)>, Failure> {
    let mut out: Vec<(String, Prior<T>)> = Vec::new();
    let mut lags: BTreeMap<String, Vec<(isize, DMatrix<f64>)>> = BTreeMap::new();
    for_each(&args.prior, args.priors.as_deref(), |name, said| {
        let block = find(blocks, name)?;
        let prior: Prior<T> = match said {
            Said::Array(kind, array) if kind.starts_with("lag_") && name.starts_with("factor_") => {
                let (lag, k) = (lag(kind)?, block.size.1);
                let weights = broadcast(array, &[k, k])?;
                let weights = DMatrix::from_row_slice(k, k, &weights);
                lags.entry(name.into()).or_default().push((lag, weights));
                return Ok(name.to_string());
            }
            Said::Spec(spec) => Priors::parse(spec, block.size).map_err(|e| e.to_string())?,
            Said::Array("dirichlet", array) => {
                let prior = Dirichlet::per_entry(block.spread(array)?);
                Arc::new(prior.map_err(|e| e.to_string())?)
            }
            Said::Array(kind, _) => {
                return Err(format!("unknown prior `{kind}`; there is BLOCK.dirichlet"));
            }
        };
        out.push((name.to_string(), prior));
        Ok(name.to_string())
    })?;
    for (name, lags) in lags {
        let path = args.priors.as_deref().unwrap_or(Path::new("--priors"));
        let bad = |what: String| Failure::of(path, format!("`{name}`: {what}"));
        if out.iter().any(|(other, _)| *other == name) {
            return Err(bad("has a prior already".into()));
        }
        let prior = Lagged::new(lags).map_err(|e| bad(e.to_string()))?;
        out.push((name, Arc::new(prior)));
    }
    Ok(out)
}

/// `lag_2`, or `lag_m2` for -2.
fn lag(kind: &str) -> Result<isize, String> {
    let digits = kind.trim_start_matches("lag_");
    let (sign, digits) = match digits.strip_prefix('m') {
        Some(digits) => (-1, digits),
        None => (1, digits),
    };
    let number = digits.parse::<u32>();
    let number = number.map_err(|_| format!("`{kind}` is not a lag: lag_1, lag_m1 for -1"))?;
    Ok(sign * number as isize)
}

/// Priors on rates, by the name of their block.
type RatePriorsOf<T> = Vec<(String, Arc<dyn RatePrior<T>>)>;

/// Priors on every block of rates, from `--prior` and `--priors`.
pub(super) fn rate_priors<T: Element>(
    args: &FitArgs,
    blocks: &[Block],
) -> Result<RatePriorsOf<T>, Failure> {
    let mut out = RatePriorsOf::new();
    let mut arrays: BTreeMap<String, [Entries; 2]> = BTreeMap::new();
    for_each(&args.prior, args.priors.as_deref(), |name, said| {
        let block = find(blocks, name)?;
        match said {
            Said::Spec(spec) => {
                let prior = RatePriors::parse(spec, block.size).map_err(|e| e.to_string())?;
                out.push((name.to_string(), prior));
            }
            Said::Array(kind @ ("gamma_shape" | "gamma_rate"), array) => {
                let none = [Entries::All(1.0), Entries::All(0.0)];
                let both = arrays.entry(name.to_string()).or_insert(none);
                both[usize::from(kind == "gamma_rate")] = Entries::Each(block.spread(array)?);
            }
            Said::Array(kind, _) => {
                return Err(format!(
                    "unknown prior `{kind}`; there are BLOCK.gamma_shape and BLOCK.gamma_rate"
                ));
            }
        }
        Ok(name.to_string())
    })?;
    for (name, [shape, rate]) in arrays {
        let path = args.priors.as_deref().unwrap_or(Path::new("--priors"));
        let gamma = Gamma::of(shape, rate);
        let gamma = gamma.map_err(|e| Failure::of(path, format!("`{name}`: {e}")))?;
        out.push((name, Arc::new(gamma)));
    }
    Ok(out)
}
