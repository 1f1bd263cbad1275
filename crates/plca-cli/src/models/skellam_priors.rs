//! Dirichlet priors of atoms and gamma priors of activations, from the command line and from files.

use std::path::Path;

use nalgebra::DMatrix;
use skellam_snmf::{Entries, Prior};

use super::broadcast::broadcast;
use super::priors::{Said, for_each};
use crate::failure::Failure;

const UNKNOWN: &str =
    "unknown prior; there are atoms.dirichlet, activations.gamma_shape and activations.gamma_rate";

/// The prior that `--prior` and `--priors` make of `prior`, for `F x N` data and `K` components.
pub(super) fn prior(
    mut prior: Prior,
    specs: &[String],
    file: Option<&Path>,
    (f, k, n): (usize, usize, usize),
) -> Result<Prior, Failure> {
    for_each(specs, file, |name, said| {
        let block = match name {
            "atoms" | "atoms_shape" => Some("atoms"),
            "activations" | "activations_shape" => Some("activations"),
            _ => None,
        };
        let unknown = || match said {
            Said::Spec(_) => {
                format!("no block `{name}` takes a prior; expected one of atoms, activations")
            }
            Said::Array(..) => UNKNOWN.to_string(),
        };
        let block = block.ok_or_else(unknown)?;
        match said {
            Said::Spec(spec) => set(&mut prior, block, spec)?,
            Said::Array(kind, array) => match (block, kind) {
                ("atoms", "dirichlet") => {
                    let values = broadcast(array, &[f, k, 2])?;
                    let side = |s| DMatrix::from_fn(f, k, |i, z| values[2 * (i * k + z) + s]);
                    (prior.plus, prior.minus) = (Entries::Each(side(0)), Entries::Each(side(1)));
                }
                ("activations", "gamma_shape" | "gamma_rate") => {
                    let values = broadcast(array, &[k, n])?;
                    let entries = Entries::Each(DMatrix::from_row_slice(k, n, &values));
                    if kind == "gamma_shape" {
                        prior.shape = entries;
                    } else {
                        prior.rate = entries;
                    }
                }
                _ => return Err(UNKNOWN.into()),
            },
        }
        Ok(block.to_string())
    })?;
    Ok(prior)
}

/// Takes one `SPEC` for a block.
fn set(prior: &mut Prior, block: &str, spec: &str) -> Result<(), String> {
    let (kind, value) = spec.split_once(':').ok_or("KIND:VALUE is needed")?;
    let number = |s: &str| {
        s.parse::<f64>()
            .map_err(|_| format!("`{s}` is not a number"))
    };
    match (block, kind) {
        ("atoms", "dirichlet") => {
            let alpha = Entries::All(number(value)?);
            (prior.plus, prior.minus) = (alpha.clone(), alpha);
        }
        ("activations", "gamma") => {
            let (shape, rate) = (value.split_once(','))
                .ok_or_else(|| format!("`{value}`: SHAPE,RATE is needed"))?;
            prior.shape = Entries::All(number(shape)?);
            prior.rate = Entries::All(number(rate)?);
        }
        _ => {
            return Err(format!(
                "{block} has no prior `{kind}`; there are atoms=dirichlet:A and activations=gamma:SHAPE,RATE"
            ));
        }
    }
    Ok(())
}
