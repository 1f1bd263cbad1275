//! Priors from the command line and from files.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::Prior;
use plca_io::Element;
use plca_priors::{Dirichlet, Entropic};

use crate::args::FitArgs;
use crate::failure::Failure;

/// Priors of every block, from `--prior` and `--priors`.
pub(super) fn priors<T: Element>(
    args: &FitArgs,
    shapes: &[(String, (usize, usize))],
) -> Result<Vec<(String, Prior<T>)>, Failure> {
    let mut out: Vec<(String, Prior<T>)> = Vec::new();
    let known = || {
        shapes
            .iter()
            .map(|(n, _)| n.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    for spec in &args.prior {
        let bad = |what: String| Failure::usage(format!("--prior {spec}: {what}"));
        let (block, prior) = spec
            .split_once('=')
            .ok_or_else(|| bad("BLOCK=SPEC is needed".into()))?;
        if !shapes.iter().any(|(n, _)| n == block) {
            return Err(bad(format!(
                "no block `{block}` takes a prior; there are {}",
                known()
            )));
        }
        let (kind, value) = prior
            .split_once(':')
            .ok_or_else(|| bad("KIND:VALUE is needed".into()))?;
        out.push((block.to_string(), column_prior(kind, value).map_err(bad)?));
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
            let Some((_, (rows, columns))) = shapes.iter().find(|(n, _)| n == block) else {
                return Err(bad(format!(
                    "no block `{block}` takes a prior; there are {}",
                    known()
                )));
            };
            let alpha = broadcast(&array, *rows, *columns).ok_or_else(|| {
                bad(format!(
                    "shape {:?} does not broadcast to {rows} x {columns}",
                    array.shape
                ))
            })?;
            let prior = Dirichlet::per_entry(alpha).map_err(|e| bad(e.to_string()))?;
            out.push((block.to_string(), Arc::new(prior)));
        }
    }
    Ok(out)
}

/// A prior of the given kind that holds for every column of its block.
fn column_prior<T: Element>(kind: &str, value: &str) -> Result<Prior<T>, String> {
    let number = |s: &str| {
        s.parse::<f64>()
            .map_err(|_| format!("`{value}` is not a number"))
    };
    let prior: Prior<T> = match kind {
        "dirichlet" => Arc::new(Dirichlet::symmetric(number(value)?).map_err(|e| e.to_string())?),
        "entropic" => Arc::new(
            match value.strip_suffix('r') {
                None => Entropic::new(number(value)?),
                Some(rho) => Entropic::relative(number(rho)?),
            }
            .map_err(|e| e.to_string())?,
        ),
        _ => {
            return Err(format!(
                "unknown prior `{kind}`; there are dirichlet:A and entropic:BETA"
            ));
        }
    };
    Ok(prior)
}

/// An array of a shape that broadcasts to `rows x columns` (a block with one column may be a vector).
fn broadcast(array: &plca_io::Array<f64>, rows: usize, columns: usize) -> Option<DMatrix<f64>> {
    let (r, c) = match array.shape[..] {
        [] => (1, 1),
        [n] if columns == 1 => (n, 1),
        [n] => (1, n),
        [r, c] => (r, c),
        _ => return None,
    };
    if (r != 1 && r != rows) || (c != 1 && c != columns) {
        return None;
    }
    Some(DMatrix::from_fn(rows, columns, |i, j| {
        array.values[(i % r) * c + j % c]
    }))
}
