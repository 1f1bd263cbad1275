//! Priors from the command line and from files.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::Prior;
use plca_io::Element;
use plca_priors::{CrossEntropy, Dirichlet, Entropic, PriorError, Schedule, Scheduled};

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
        let columns = find(block).map_err(bad)?.size.1;
        let (kind, value) = prior
            .split_once(':')
            .ok_or_else(|| bad("KIND:VALUE is needed".into()))?;
        let prior = match kind {
            "cross-entropy" => cross_entropy(value, columns),
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

/// Whether any prior has a density, which then stands in the objective: those relative to counts have none. `[SPEC 5.5]`
pub(crate) fn any_density(args: &FitArgs) -> bool {
    let relative = |spec: &String| {
        let prior = spec.split_once('=').and_then(|(_, p)| p.split_once(':'));
        match prior {
            Some(("entropic", beta)) => beta.ends_with('r'),
            Some(("cross-entropy", spec)) => Settings::parse(spec).is_ok_and(|s| {
                let weights = [("between", s.between), ("within", s.within)];
                let weights = weights.map(|(name, value)| weight(name, value));
                weights.iter().flatten().any(|&(w, r)| r && w != 0.0)
            }),
            _ => false,
        }
    };
    args.priors.is_some() || !args.prior.iter().all(relative)
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
