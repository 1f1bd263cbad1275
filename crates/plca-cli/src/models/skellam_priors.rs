//! Dirichlet priors of atoms and gamma priors of activations, from the command line and from files.

use std::path::Path;

use nalgebra::DMatrix;
use skellam_snmf::{Entries, Prior};

use super::broadcast::broadcast;
use crate::failure::Failure;

/// The prior that `--prior` and `--priors` make of `prior`, for `F x N` data and `K` components.
pub(super) fn prior(
    mut prior: Prior,
    specs: &[String],
    file: Option<&Path>,
    (f, k, n): (usize, usize, usize),
) -> Result<Prior, Failure> {
    let mut given = Vec::new();
    for spec in specs {
        let bad = |what: String| Failure::usage(format!("--prior {spec}: {what}"));
        let block = set(&mut prior, spec).map_err(bad)?;
        if given.contains(&block) {
            return Err(bad(format!("`{}` has a prior already", block.name())));
        }
        given.push(block);
    }
    let Some(path) = file else {
        return Ok(prior);
    };
    for (name, array) in plca_io::read_model(path)?.arrays {
        let bad = |what: String| Failure::of(path, format!("`{name}`: {what}"));
        let wide = |shape: &[usize]| {
            broadcast(&array, shape).ok_or_else(|| {
                let got = &array.shape;
                bad(format!("shape {got:?} does not broadcast to {shape:?}"))
            })
        };
        let (block, kind) = name.rsplit_once('.').unwrap_or((&name, ""));
        if let Some(block) = block_of(block).filter(|b| given.contains(b)) {
            return Err(bad(format!("`{}` has a prior already", block.name())));
        }
        match (block_of(block), kind) {
            (Some(Block::Atoms), "dirichlet") => {
                let values = wide(&[f, k, 2])?;
                let side = |s| DMatrix::from_fn(f, k, |i, z| values[2 * (i * k + z) + s]);
                (prior.plus, prior.minus) = (Entries::Each(side(0)), Entries::Each(side(1)));
            }
            (Some(Block::Activations), "gamma_shape" | "gamma_rate") => {
                let entries = Entries::Each(DMatrix::from_row_slice(k, n, &wide(&[k, n])?));
                if kind == "gamma_shape" {
                    prior.shape = entries;
                } else {
                    prior.rate = entries;
                }
            }
            _ => {
                return Err(bad(
                    "unknown prior; there are atoms.dirichlet, activations.gamma_shape and activations.gamma_rate".into(),
                ));
            }
        }
    }
    Ok(prior)
}

#[derive(Clone, Copy, PartialEq)]
enum Block {
    Atoms,
    Activations,
}

impl Block {
    fn name(self) -> &'static str {
        match self {
            Self::Atoms => "atoms",
            Self::Activations => "activations",
        }
    }
}

fn block_of(name: &str) -> Option<Block> {
    match name {
        "atoms" | "atoms_shape" => Some(Block::Atoms),
        "activations" | "activations_shape" => Some(Block::Activations),
        _ => None,
    }
}

/// One `BLOCK=SPEC`; which block it is for.
fn set(prior: &mut Prior, spec: &str) -> Result<Block, String> {
    let (name, law) = spec.split_once('=').ok_or("BLOCK=SPEC is needed")?;
    let block = block_of(name)
        .ok_or_else(|| format!("no block `{name}` takes a prior; there are atoms, activations"))?;
    let (kind, value) = law.split_once(':').ok_or("KIND:VALUE is needed")?;
    let number = |s: &str| {
        s.parse::<f64>()
            .map_err(|_| format!("`{s}` is not a number"))
    };
    match (block, kind) {
        (Block::Atoms, "dirichlet") => {
            let alpha = Entries::All(number(value)?);
            (prior.plus, prior.minus) = (alpha.clone(), alpha);
        }
        (Block::Activations, "gamma") => {
            let (shape, rate) = (value.split_once(','))
                .ok_or_else(|| format!("`{value}`: SHAPE,RATE is needed"))?;
            prior.shape = Entries::All(number(shape)?);
            prior.rate = Entries::All(number(rate)?);
        }
        _ => {
            return Err(format!(
                "{name} has no prior `{kind}`; there are atoms=dirichlet:A and activations=gamma:SHAPE,RATE"
            ));
        }
    }
    Ok(block)
}
