//! `plca inspect`: what is in a model file.

use plca_io::Array;
use serde_json::{Value, json};

use crate::args::InspectArgs;
use crate::components::axis_of;
use crate::failure::{Failure, printable};
use crate::models::known;
use crate::models::options::has;
use crate::named::{self, labels, labels_of, names, printed};
use crate::outputs::print;
use crate::saved;

pub(crate) fn inspect(args: &InspectArgs) -> Result<(), Failure> {
    let file = saved::read(&args.model)?;
    if let Some(name) = &args.array {
        let array = saved::array(&args.model, &file, name)?;
        return components(args, &file.metadata, (name, array));
    }
    if args.json {
        let arrays = file.arrays.iter();
        let arrays = arrays.map(|(name, a)| (name.clone(), json!({ "shape": a.shape })));
        let arrays: serde_json::Map<_, _> = arrays.collect();
        let all = json!({ "arrays": arrays, "metadata": file.metadata });
        return print(&format!("{}\n", printable(&all.to_string())));
    }
    let mut text = String::new();
    for (name, array) in &file.arrays {
        let low = array.values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = array
            .values
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        let shape = format!("{:?}", array.shape);
        let name = printable(name);
        text.push_str(&format!("{name:<12} {shape:<16} {low:.6} .. {high:.6}\n"));
    }
    for (name, value) in file.metadata.as_object().into_iter().flatten() {
        let value = match value {
            Value::Array(values) if values.iter().all(Value::is_number) => {
                format!("{} numbers", values.len())
            }
            value => printable(&value.to_string()),
        };
        let name = printable(name);
        text.push_str(&format!("{name:<16} {value}\n"));
    }
    print(&text)
}

/// Prints the largest entries of every component of an array of a model.
fn components(
    args: &InspectArgs,
    metadata: &Value,
    (name, array): (&str, &Array<f64>),
) -> Result<(), Failure> {
    let model = known(metadata);
    let Some(axis) = axis_of(model, name, array).filter(|&axis| axis < array.shape.len()) else {
        let shape = &array.shape;
        let what = format!("--array {name}: its shape {shape:?} has no dimension of components");
        return Err(Failure::of(&args.model, printable(&what)));
    };
    let count = array.shape[axis];
    let rest: Vec<usize> = (0..array.shape.len()).filter(|j| *j != axis).collect();
    let sizes: Vec<usize> = rest.iter().map(|&j| array.shape[j]).collect();
    // Both sides of an atom, of which the second is subtracted.
    let signed = name.starts_with("atoms") && sizes.last() == Some(&2) && sizes.len() > 1;
    let places = &sizes[..sizes.len() - usize::from(signed)];
    let labels = match (&args.labels, places) {
        (Some(path), sizes) => Some(labels_of(path, sizes).map_err(|e| {
            let lines = labels(path).map_or(0, |labels| labels.len());
            let given = model.is_some_and(|model| has(model, "--given"));
            let turned = given
                && metadata["data"]["shape"].as_array().is_some_and(|shape| {
                    shape.iter().any(|size| size.as_u64() == Some(lines as u64))
                });
            match turned {
                true => e.and("if the data have documents in rows, fit with --samples 0"),
                false => e,
            }
        })?),
        (None, &[entries]) => names(model, metadata, name, entries),
        (None, _) => None,
    };
    let labels = labels.map(printed);
    let called = match labels {
        None => named::places(model, metadata, name, &sizes),
        Some(_) => Vec::new(),
    };
    let mut positions = vec![Vec::new(); count];
    for at in 0..array.values.len() {
        positions[array.index(at)[axis]].push(at);
    }
    let mut text = String::new();
    let mut all = Vec::new();
    for (z, mut positions) in positions.into_iter().enumerate() {
        // Of equal ones the first stays in front.
        positions.sort_by(|&a, &b| array.values[b].total_cmp(&array.values[a]));
        positions.truncate(args.top);
        let entries = positions.into_iter().map(|at| {
            let index = array.index(at);
            let index: Vec<usize> = rest.iter().map(|&j| index[j]).collect();
            (index, array.values[at])
        });
        if args.json {
            let entries = entries.map(|(index, value)| match &labels {
                Some(labels) => {
                    json!({ "index": index, "value": value, "label": labels[index[0]] })
                }
                None => json!({ "index": index, "value": value }),
            });
            all.push(Value::Array(entries.collect()));
            continue;
        }
        text.push_str(&z.to_string());
        if let Some(name) = named::component(metadata, z) {
            text.push_str(&format!(" {name}"));
        }
        for (index, value) in entries {
            let (place, side) = index.split_at(places.len());
            let numbers = place.iter().enumerate().map(|(d, &i)| match called.get(d) {
                Some(Some(names)) => names[i].clone(),
                _ => i.to_string(),
            });
            let numbers: Vec<String> = numbers.collect();
            let mut label = match &labels {
                Some(labels) => labels[index[0]].clone(),
                None => numbers.join(","),
            };
            if let Some(side) = side.first() {
                label.push_str([" +", " -"][*side]);
            }
            let separator = if label.is_empty() { "" } else { " " };
            text.push_str(&format!("  {label}{separator}{value:.4}"));
        }
        text.push('\n');
    }
    match args.json {
        true => print(&format!(
            "{}\n",
            json!({ "array": name, "components": all })
        )),
        false => print(&text),
    }
}
