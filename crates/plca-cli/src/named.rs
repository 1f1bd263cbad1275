//! Names of the entries of blocks: those that a model file keeps of its data.

use serde_json::Value;

use crate::models::Kind;
use crate::models::options::has;
use crate::outputs::printable;

/// The dimension of the data whose indices the entries of a block are. Kernels are smaller than the data, impulses may be larger.
pub(crate) fn dimension(kind: Kind, settings: &Value, block: &str) -> Option<usize> {
    if has(kind, "--kernel") {
        return None;
    }
    let number = |name: &str, default: u64| settings[name].as_u64().unwrap_or(default) as usize;
    let block = block.strip_suffix("_shape").unwrap_or(block);
    match block {
        "basis" if has(kind, "--given") => Some(1 - number("given", 1).min(1)),
        "mixture" => Some(number("given", 1).min(1)),
        "basis" | "w" | "centres" => Some(0),
        "coefficients" | "h" | "activations" => Some(1),
        "atoms" => Some(number("signed_mode", 0)),
        _ => block.strip_prefix("factor_")?.parse().ok(),
    }
}

/// The names of the entries of a block, of which a component has this number: those of its dimension, or those of the only dimension of this size.
pub(crate) fn names(
    kind: Option<Kind>,
    metadata: &Value,
    block: &str,
    entries: usize,
) -> Option<Vec<String>> {
    // Python keeps the names of features, which are columns.
    let features = &metadata["python"]["feature_names_in"];
    let of = |d: usize| -> Option<Vec<String>> {
        let own = &metadata["names"][d.to_string()];
        let names = if own.is_null() && d == 1 {
            features
        } else {
            own
        }
        .as_array()?;
        let text = |name: &Value| printable(name.as_str().unwrap_or_default());
        (names.len() == entries).then(|| names.iter().map(text).collect())
    };
    let place = dimension(kind?, &metadata["settings"], block)?;
    let mut others = (0..2).filter(|&d| d != place).filter_map(of);
    of(place).or_else(|| others.next())
}
