//! Dirichlet priors of atoms and gamma priors of activations, from the command line and from files.

use std::path::Path;

use nalgebra::DMatrix;
use plca_io::Array;
use skellam_snmf::{Entries, Prior};

use crate::failure::Failure;

/// The prior that `--prior` and `--priors` make of `prior`, for `F x N` data and `K` components.
pub(super) fn prior(
    mut prior: Prior,
    specs: &[String],
    file: Option<&Path>,
    (f, k, n): (usize, usize, usize),
) -> Result<Prior, Failure> {
    for spec in specs {
        set(&mut prior, spec).map_err(|what| Failure::usage(format!("--prior {spec}: {what}")))?;
    }
    let Some(path) = file else {
        return Ok(prior);
    };
    for (name, array) in plca_io::read_model(path)?.arrays {
        let bad = |what: String| Failure::of(path, format!("`{name}`: {what}"));
        let wide = |shape: [usize; 3]| {
            broadcast(&array, shape).ok_or_else(|| {
                let shape = if shape[0] == 1 {
                    &shape[1..]
                } else {
                    &shape[..]
                };
                bad(format!(
                    "shape {:?} does not broadcast to {shape:?}",
                    array.shape
                ))
            })
        };
        let (block, kind) = name.rsplit_once('.').unwrap_or((&name, ""));
        match (block_of(block), kind) {
            (Some(Block::Atoms), "dirichlet") => {
                let values = wide([f, k, 2])?;
                let side = |s| DMatrix::from_fn(f, k, |i, z| values[2 * (i * k + z) + s]);
                (prior.plus, prior.minus) = (Entries::Each(side(0)), Entries::Each(side(1)));
            }
            (Some(Block::Activations), "gamma_shape" | "gamma_rate") => {
                let entries = Entries::Each(DMatrix::from_row_slice(k, n, &wide([1, k, n])?));
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

fn block_of(name: &str) -> Option<Block> {
    match name {
        "atoms" | "atoms_shape" => Some(Block::Atoms),
        "activations" | "activations_shape" => Some(Block::Activations),
        _ => None,
    }
}

/// One `BLOCK=SPEC`.
fn set(prior: &mut Prior, spec: &str) -> Result<(), String> {
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
    Ok(())
}

/// The values of an array broadcast to a shape, in C order: dimensions are aligned at their end, those of size 1 repeated.
fn broadcast(array: &Array<f64>, shape: [usize; 3]) -> Option<Vec<f64>> {
    let missing = shape.len().checked_sub(array.shape.len())?;
    let mut strides = [0; 3];
    let mut stride = 1;
    for d in (missing..3).rev() {
        let size = array.shape[d - missing];
        if size != shape[d] && size != 1 {
            return None;
        }
        strides[d] = if size == 1 { 0 } else { stride };
        stride *= size;
    }
    let mut values = Vec::with_capacity(shape.iter().product());
    for i in 0..shape[0] {
        for j in 0..shape[1] {
            let at = i * strides[0] + j * strides[1];
            values.extend((0..shape[2]).map(|l| array.values[at + l * strides[2]]));
        }
    }
    Some(values)
}
