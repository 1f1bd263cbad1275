//! Priors from the command line and from files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nalgebra::DMatrix;
use plca_priors::{Entries, Lagged, PriorEntry, PriorSpec, Priors, RatePriors};

use plca_run::{Law, PriorBlock, broadcast};

use crate::failure::Failure;

/// The arrays of `--priors` that there are for a law.
fn kinds(law: Law) -> &'static str {
    match law {
        Law::Simplex | Law::Dirichlet => "there is BLOCK.dirichlet",
        Law::Rates | Law::Gamma(_) => "there are BLOCK.gamma_shape and BLOCK.gamma_rate",
    }
}

/// The forms of the priors of a model.
pub(crate) fn of_laws(laws: &[(&str, Law)]) -> String {
    let form = |law| match law {
        Law::Simplex => forms(Priors::<f64>::ALL),
        Law::Rates => forms(RatePriors::<f64>::ALL),
        Law::Dirichlet => "dirichlet:A".into(),
        Law::Gamma(_) => "gamma:SHAPE,RATE".into(),
    };
    match laws {
        [] => String::new(),
        [(_, first), others @ ..] if others.iter().all(|(_, law)| law == first) => form(*first),
        laws => {
            let all = laws.iter();
            let all = all.map(|(name, law)| format!("{}={}", name.replace('*', "J"), form(*law)));
            all.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Names and forms of priors.
pub(crate) fn forms<P: ?Sized>(all: &[PriorEntry<P>]) -> String {
    let form = |entry: &PriorEntry<P>| match entry.form {
        "" => entry.name.to_string(),
        // What may be left out may also begin a line.
        form => format!("{}:{}", entry.name, form.replace("][,", "] [,")),
    };
    all.iter().map(form).collect::<Vec<_>>().join(", ")
}

/// Priors of blocks, from `--prior` and `--priors`.
pub(crate) fn priors(
    texts: &[String],
    file: Option<&Path>,
    blocks: &[PriorBlock],
) -> Result<Vec<(String, PriorSpec)>, Failure> {
    let find = |name: &str| {
        blocks
            .iter()
            .find(|block| block.is_called(name))
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
        match (kind, block.law) {
            (kind, Law::Simplex) if kind.starts_with("lag_") && name.starts_with("factor_") => {
                let weights = broadcast(&array, &[k, k]).map_err(bad)?;
                let weights = DMatrix::from_row_slice(k, k, &weights);
                let lag = lag(kind).map_err(bad)?;
                lags.entry(name).or_default().push((lag, weights));
            }
            ("dirichlet", Law::Simplex | Law::Dirichlet) => {
                let prior = PriorSpec::Dirichlet(block.each(&array).map_err(bad)?);
                if block.law == Law::Simplex {
                    let checked = prior.simplex::<f64>(block.size);
                    checked.map_err(|e| bad(e.to_string()))?;
                }
                out.push((name.into(), prior));
            }
            ("gamma_shape" | "gamma_rate", Law::Rates | Law::Gamma(_)) => {
                let rate = match block.law {
                    Law::Gamma(rate) => rate,
                    _ => 0.0,
                };
                let usual = [Entries::All(1.0), Entries::All(rate)];
                let both = gammas.entry(name).or_insert(usual);
                both[usize::from(kind == "gamma_rate")] = block.each(&array).map_err(bad)?;
            }
            _ => return Err(bad(format!("unknown prior `{kind}`; {}", kinds(block.law)))),
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
        if block.law == Law::Rates {
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
