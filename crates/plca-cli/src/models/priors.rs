//! Priors from the command line and from files.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::Prior;
use plca_io::Element;
use plca_priors::{CrossEntropy, Dirichlet, Entropic, PriorError, Schedule, Scheduled};

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
        let Some((_, (_, columns))) = shapes.iter().find(|(n, _)| n == block) else {
            return Err(bad(format!(
                "no block `{block}` takes a prior; there are {}",
                known()
            )));
        };
        let (kind, value) = prior
            .split_once(':')
            .ok_or_else(|| bad("KIND:VALUE is needed".into()))?;
        let prior = match kind {
            "cross-entropy" => cross_entropy(value, *columns),
            _ => column_prior(kind, value),
        };
        if out.iter().any(|(n, _)| n == block) {
            return Err(bad(format!("`{block}` has a prior already")));
        }
        out.push((block.to_string(), prior.map_err(bad)?));
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
            if out.iter().any(|(n, _)| n == block) {
                return Err(bad(format!("`{block}` has a prior already")));
            }
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
                "unknown prior `{kind}`; there are dirichlet:A, entropic:BETA and cross-entropy:groups=…"
            ));
        }
    };
    Ok(prior)
}

/// Settings `NAME=VALUE,…` of a cross-entropy prior, each at most once.
#[derive(Default)]
struct Settings<'a> {
    groups: Option<&'a str>,
    between: Option<&'a str>,
    within: Option<&'a str>,
    decrease: Option<&'a str>,
    floor: Option<&'a str>,
}

impl<'a> Settings<'a> {
    fn parse(spec: &'a str) -> Result<Self, String> {
        let mut settings = Self::default();
        for part in spec.split(',') {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}`: NAME=VALUE is needed"))?;
            let slot = match name {
                "groups" => &mut settings.groups,
                "between" => &mut settings.between,
                "within" => &mut settings.within,
                "decrease" => &mut settings.decrease,
                "floor" => &mut settings.floor,
                _ => {
                    return Err(format!(
                        "unknown setting `{name}`; there are groups, between, within, decrease, floor"
                    ));
                }
            };
            if slot.replace(value).is_some() {
                return Err(format!("`{name}` is given twice"));
            }
        }
        Ok(settings)
    }
}

/// A weight, and whether it is in multiples of `v/K`.
fn weight(name: &str, value: Option<&str>) -> Result<(f64, bool), String> {
    let value = value.ok_or_else(|| format!("`{name}` is needed"))?;
    let (digits, relative) = match value.strip_suffix('r') {
        Some(digits) => (digits, true),
        None => (value, false),
    };
    Ok((number(name, digits)?, relative))
}

fn number(name: &str, value: &str) -> Result<f64, String> {
    let number = value.parse();
    number.map_err(|_| format!("{name}: `{value}` is not a number"))
}

/// `groups=0/0/1/1,between=A,within=B[,decrease=T][,floor=E]` for a block of this many columns.
fn cross_entropy<T: Element>(spec: &str, columns: usize) -> Result<Prior<T>, String> {
    let settings = Settings::parse(spec)?;
    let groups = settings.groups.ok_or("`groups` is needed")?.split('/');
    let groups: Vec<usize> = groups
        .map(|g| {
            g.parse()
                .map_err(|_| format!("groups: `{g}` is not a whole number"))
        })
        .collect::<Result<_, _>>()?;
    if groups.len() != columns {
        return Err(format!(
            "{} groups for a block of {columns} columns",
            groups.len()
        ));
    }
    let between = weight("between", settings.between)?;
    let within = weight("within", settings.within)?;
    // A weight of 0 is 0 in any unit.
    if between.1 != within.1 && between.0 != 0.0 && within.0 != 0.0 {
        return Err(
            "between and within are in different units: an r behind both, or neither".into(),
        );
    }
    let text = |e: PriorError| e.to_string();
    let mut prior = CrossEntropy::groups(&groups, between.0, within.0).map_err(text)?;
    if [between, within]
        .iter()
        .any(|&(w, relative)| relative && w != 0.0)
    {
        prior = prior.relative();
    }
    if let Some(floor) = settings.floor {
        prior = prior.floor(number("floor", floor)?).map_err(text)?;
    }
    Ok(match settings.decrease {
        None => Arc::new(prior),
        Some(over) => {
            let over = number("decrease", over)?;
            Arc::new(Scheduled::new(prior, Schedule::Decreasing { over }).map_err(text)?)
        }
    })
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
