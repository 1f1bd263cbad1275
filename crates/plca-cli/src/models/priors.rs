//! Priors from the command line and from files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nalgebra::DMatrix;
use plca_fit::FileLayout;
use plca_io::Array;
use plca_priors::{Entries, Lagged, PriorEntry, PriorError, PriorSpec, Priors, RatePriors};

use super::broadcast::broadcast;
use crate::failure::Failure;

/// What priors a block may have.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Laws {
    /// All on distributions.
    Simplex,
    /// All on rates.
    Rates,
    /// A Dirichlet law.
    Dirichlet,
    /// A gamma law, of which the rate is this unless it is said.
    Gamma(f64),
}

/// A block that may have a prior.
pub(super) struct Block {
    /// Its name, without `_shape`.
    name: String,
    size: (usize, usize),
    layout: FileLayout,
    /// Of a component in a file.
    extents: Vec<usize>,
    laws: Laws,
}

impl Block {
    /// A block of distributions whose array is the matrix itself.
    pub(super) fn matrix(name: impl Into<String>, rows: usize, columns: usize) -> Self {
        Self {
            name: name.into(),
            size: (rows, columns),
            layout: FileLayout::Matrix,
            extents: Vec::new(),
            laws: Laws::Simplex,
        }
    }

    /// A block of one column.
    pub(super) fn vector(name: impl Into<String>, rows: usize) -> Self {
        Self {
            layout: FileLayout::Vector,
            ..Self::matrix(name, rows, 1)
        }
    }

    /// A block with this number of columns, each of them an array of these extents.
    pub(super) fn stack(name: impl Into<String>, extents: &[usize], columns: usize) -> Self {
        Self {
            layout: FileLayout::Stack(""),
            extents: extents.to_vec(),
            ..Self::matrix(name, extents.iter().product(), columns)
        }
    }

    /// A block of two sides, each of them with this number of rows.
    pub(super) fn sides(name: impl Into<String>, rows: usize, columns: usize) -> Self {
        Self {
            layout: FileLayout::Sides,
            ..Self::matrix(name, 2 * rows, columns)
        }
    }

    /// The same with other priors.
    pub(super) fn under(self, laws: Laws) -> Self {
        Self { laws, ..self }
    }

    /// An entry each, from an array that broadcasts to the shape of the block.
    fn each(&self, array: &Array<f64>) -> Result<Entries, String> {
        let shape = self.layout.shape(self.size, &self.extents);
        let values = broadcast(array, &shape)?;
        let block = self.layout.block(&shape, &values);
        Ok(Entries::Each(block.ok_or("has no entry")?))
    }

    /// The prior of a text.
    fn read(&self, text: &str) -> Result<PriorSpec, PriorError> {
        match self.laws {
            Laws::Simplex => drop(Priors::<f64>::parse(text, self.size)?),
            Laws::Rates => drop(RatePriors::<f64>::parse(text, self.size)?),
            Laws::Dirichlet | Laws::Gamma(_) => {}
        }
        let prior: PriorSpec = text.parse()?;
        match self.laws {
            Laws::Dirichlet => drop(prior.shapes()?),
            Laws::Gamma(_) => drop(prior.gamma()?),
            _ => {}
        }
        Ok(prior)
    }

    /// The arrays of `--priors` that there are for it.
    fn kinds(&self) -> &'static str {
        match self.laws {
            Laws::Simplex | Laws::Dirichlet => "there is BLOCK.dirichlet",
            Laws::Rates | Laws::Gamma(_) => "there are BLOCK.gamma_shape and BLOCK.gamma_rate",
        }
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

/// Priors of blocks, from `--prior` and `--priors`.
pub(super) fn priors(
    texts: &[String],
    file: Option<&Path>,
    blocks: &[Block],
) -> Result<Vec<(String, PriorSpec)>, Failure> {
    let find = |name: &str| {
        let own = name.trim_end_matches("_shape");
        blocks
            .iter()
            .find(|block| block.name == own)
            .ok_or_else(|| {
                let known: Vec<&str> = blocks.iter().map(|b| b.name.as_str()).collect();
                let known = known.join(", ");
                format!("no block `{name}` takes a prior; expected one of {known}")
            })
    };
    let (mut out, mut said) = (Vec::new(), BTreeSet::new());
    for text in texts {
        let bad = |what: String| Failure::usage(format!("--prior {text}: {what}"));
        let named = text.split_once('=');
        let (name, law) =
            named.ok_or_else(|| bad("BLOCK=SPEC is needed, such as weights=dirichlet:2".into()))?;
        let block = find(name).map_err(bad)?;
        let prior = block.read(law).map_err(|e| bad(e.to_string()))?;
        if !said.insert(block.name.as_str()) {
            return Err(bad(format!("`{name}` has a prior already")));
        }
        out.push((block.name.clone(), prior));
    }
    let Some(path) = file else {
        return Ok(out);
    };
    let mut lags: BTreeMap<&str, Vec<(isize, DMatrix<f64>)>> = BTreeMap::new();
    let mut gammas: BTreeMap<&str, [Entries; 2]> = BTreeMap::new();
    for (name, array) in crate::saved::arrays(path)?.arrays {
        let bad = |what: String| Failure::of(path, format!("`{name}`: {what}"));
        let named = name.rsplit_once('.');
        let (block, kind) =
            named.ok_or_else(|| bad("BLOCK.KIND is needed, such as weights.dirichlet".into()))?;
        let block = find(block).map_err(bad)?;
        let (name, k) = (block.name.as_str(), block.size.1);
        if said.contains(name) {
            return Err(bad(format!("`{name}` has a prior already")));
        }
        match (kind, block.laws) {
            (kind, Laws::Simplex) if kind.starts_with("lag_") && name.starts_with("factor_") => {
                let weights = broadcast(&array, &[k, k]).map_err(bad)?;
                let weights = DMatrix::from_row_slice(k, k, &weights);
                let lag = lag(kind).map_err(bad)?;
                lags.entry(name).or_default().push((lag, weights));
            }
            ("dirichlet", Laws::Simplex | Laws::Dirichlet) => {
                let prior = PriorSpec::Dirichlet(block.each(&array).map_err(bad)?);
                if block.laws == Laws::Simplex {
                    let checked = prior.simplex::<f64>(block.size);
                    checked.map_err(|e| bad(e.to_string()))?;
                }
                out.push((name.into(), prior));
            }
            ("gamma_shape" | "gamma_rate", Laws::Rates | Laws::Gamma(_)) => {
                let rate = match block.laws {
                    Laws::Gamma(rate) => rate,
                    _ => 0.0,
                };
                let usual = [Entries::All(1.0), Entries::All(rate)];
                let both = gammas.entry(name).or_insert(usual);
                both[usize::from(kind == "gamma_rate")] = block.each(&array).map_err(bad)?;
            }
            _ => return Err(bad(format!("unknown prior `{kind}`; {}", block.kinds()))),
        }
    }
    let bad = |name: &str, what: String| Failure::of(path, format!("`{name}`: {what}"));
    for (name, lags) in lags {
        if out.iter().any(|(other, _)| other == name) {
            return Err(bad(name, "has a prior already".into()));
        }
        let prior = Lagged::new(lags).map_err(|e| bad(name, e.to_string()))?;
        out.push((name.into(), prior.into()));
    }
    for (name, [shape, rate]) in gammas {
        let prior = PriorSpec::Gamma(shape, rate);
        let block = find(name).map_err(|e| bad(name, e))?;
        if block.laws == Laws::Rates {
            let checked = prior.rate::<f64>(block.size);
            checked.map_err(|e| bad(name, e.to_string()))?;
        }
        out.push((name.into(), prior));
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
