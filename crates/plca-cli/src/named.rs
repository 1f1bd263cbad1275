//! Names of the entries of blocks: those that a model file keeps of its data.

use std::path::Path;

use plca_io::{Header, IoError};
use serde_json::{Value, json};

use crate::args::DataArgs;
use crate::data::LISTED;
use crate::models::Kind;
use crate::models::options::has;
use crate::outputs::printable;

fn number(settings: &Value, name: &str, default: u64) -> usize {
    settings[name].as_u64().unwrap_or(default) as usize
}

/// The dimension of the data whose indices the entries of a block are. Kernels are smaller than the data, impulses may be larger.
pub(crate) fn dimension(kind: Kind, settings: &Value, block: &str) -> Option<usize> {
    if has(kind, "--kernel") {
        return None;
    }
    let block = block.strip_suffix("_shape").unwrap_or(block);
    match block {
        "basis" if has(kind, "--given") => Some(1 - number(settings, "given", 1).min(1)),
        "mixture" | "gap" | "marginal" | "labels" => Some(number(settings, "given", 1).min(1)),
        "basis" | "w" | "centres" => Some(0),
        "coefficients" | "h" | "activations" => Some(1),
        "atoms" => Some(number(settings, "signed_mode", 0)),
        _ => block.strip_prefix("factor_")?.parse().ok(),
    }
}

/// What a model file says that the indices of a dimension are called.
pub(crate) fn of(metadata: &Value, d: usize) -> Option<Vec<String>> {
    let own = &metadata["names"][d.to_string()];
    // Python keeps the names of features, which are columns.
    let names = match own.is_null() && d == 1 {
        true => &metadata["python"]["feature_names_in"],
        false => own,
    };
    let text = |name: &Value| name.as_str().unwrap_or_default().to_string();
    Some(names.as_array()?.iter().map(text).collect())
}

/// Names in a sentence: the first of them, and how many more there are.
pub(crate) fn quoted(names: &[impl AsRef<str>]) -> String {
    let (first, others) = names.split_at(names.len().min(LISTED));
    let first: Vec<String> = (first.iter())
        .map(|name| format!("`{}`", printable(name.as_ref())))
        .collect();
    match others.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Numbers of a first line that grow from one to the next, as those of an axis do; there are fewer of them beside a column of names.
const AXIS: usize = 8;
const NAMED_AXIS: usize = 3;

/// Warnings where the first line or the first column of a table is taken for data and looks like names.
pub(crate) fn doubtful(
    path: &Path,
    names: &[Option<Vec<String>>],
    args: &DataArgs,
) -> Result<Vec<String>, IoError> {
    let mut warnings = Vec::new();
    let labels = args.table.labels();
    if let (Some(Some(columns)), None) = (names.get(1), labels)
        && let [first, others @ ..] = &columns[..]
        // Programs that number the rows write no name above the numbers.
        && first.is_empty()
        && !others.is_empty()
        && others.iter().all(|name| !name.is_empty())
    {
        warnings.push("the first column has no name and is taken for data: if it names or numbers the rows, --labels first-column".into());
    }
    if names.get(1) == Some(&None) && args.table.header.is_none() {
        let mut reading = args.reading();
        reading.table.header = Header::Yes;
        let mut first = plca_io::read_names(path, &reading)?;
        let numbers = first.pop().flatten().unwrap_or_default();
        let numbers: Vec<f64> = numbers.iter().map_while(|cell| cell.parse().ok()).collect();
        let least = if labels.is_some() { NAMED_AXIS } else { AXIS };
        if numbers.len() >= least && numbers.windows(2).all(|pair| pair[0] < pair[1]) {
            warnings.push(format!(
                "line 1 is taken for data, but its numbers grow from {} to {} as those of a header do: --header yes, or --header no",
                numbers[0],
                numbers[numbers.len() - 1]
            ));
        }
    }
    Ok(warnings)
}

/// Text of names that a model file keeps.
const MOST_NAMES: usize = 1 << 22;

/// The names of every dimension as the metadata of a model keep them, nothing where none has names; also warnings of those that are too long.
pub(crate) fn kept(names: Vec<Option<Vec<String>>>) -> (Value, Vec<String>) {
    let (mut all, mut warnings, mut room) = (serde_json::Map::new(), Vec::new(), MOST_NAMES);
    for (d, names) in names.into_iter().enumerate() {
        let Some(names) = names else { continue };
        let count = names.len();
        let names = json!(names);
        let length = names.to_string().len();
        if length <= room {
            room -= length;
            all.insert(d.to_string(), names);
        } else {
            warnings.push(format!(
                "the {count} names along dimension {d} are not kept: the model file has room for {MOST_NAMES} bytes of names, these have {length}"
            ));
        }
    }
    match all.is_empty() {
        true => (Value::Null, warnings),
        false => (Value::Object(all), warnings),
    }
}

/// The names of the entries of a block, of which a component has this number: those of its dimension, or those of the only dimension of this size.
pub(crate) fn names(
    kind: Option<Kind>,
    metadata: &Value,
    block: &str,
    entries: usize,
) -> Option<Vec<String>> {
    let of = |d: usize| -> Option<Vec<String>> {
        let names = of(metadata, d).filter(|names| names.len() == entries)?;
        Some(names.iter().map(|name| printable(name)).collect())
    };
    let place = match kind {
        Some(kind) => dimension(kind, &metadata["settings"], block)?,
        None if metadata["model"] == "consensus" => {
            let samples = number(&metadata["of"], "given", 1).min(1);
            match block.rsplit('.').next() {
                Some("consensus_spectra") => 1 - samples,
                _ => samples,
            }
        }
        None => return None,
    };
    let mut others = (0..2).filter(|&d| d != place).filter_map(of);
    of(place).or_else(|| others.next())
}
