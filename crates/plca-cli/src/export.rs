//! `plca export`: an array of a model file as a table for other programs.

use std::io::Write;

use plca_io::Array;

use crate::args::ExportArgs;
use crate::failure::Failure;
use crate::inspect::labels;
use crate::interrupt;
use crate::models::MODELS;
use crate::named::names;
use crate::outputs::{distinct, writable};
use crate::saved;

pub(crate) fn export(args: &ExportArgs) -> Result<(), Failure> {
    writable(&args.output, &["csv", "tsv", "npy"])?;
    let inputs = [
        ("the model", Some(&args.model)),
        ("--labels", args.labels.as_ref()),
    ];
    distinct(&inputs, &[("--output", Some(&args.output))])?;
    let file = saved::read(&args.model)?;
    let array = saved::array(&args.model, &file, &args.array)?;
    if args
        .output
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("npy"))
    {
        return Ok(interrupt::writing(|| {
            plca_io::write_npy(&args.output, array)
        })?);
    }
    let text = table(args, &file.metadata, array)?;
    let write = |w: &mut dyn Write| w.write_all(&text);
    Ok(interrupt::writing(|| {
        plca_io::write_atomically(&args.output, |w| write(w))
    })?)
}

/// A line for every entry, a column for every component; names in the first column, if there are any.
fn table(
    args: &ExportArgs,
    metadata: &serde_json::Value,
    array: &Array<f64>,
) -> Result<Vec<u8>, Failure> {
    let kind = metadata["model"].as_str().unwrap_or_default();
    let kind = MODELS.iter().find(|known| known.name() == kind).copied();
    let axis = match array.shape.len() {
        // A number for every component.
        1 => 0,
        2 => kind.map_or(1, |kind| kind.component_axis(&args.array)),
        order => {
            let what = format!(
                "--array {} has {order} dimensions: expected at most 2, or an output .npy",
                args.array
            );
            return Err(Failure::of(&args.model, what));
        }
    };
    let count = array.shape[axis];
    let entries = array.values.len() / count.max(1);
    let labels = match &args.labels {
        Some(path) => {
            let labels = labels(path)?;
            if labels.len() != entries {
                let what = format!(
                    "has {} lines; expected {entries}, one for each entry of a component",
                    labels.len()
                );
                return Err(Failure::of(path, what));
            }
            Some(labels)
        }
        None => names(kind, metadata, &args.array, entries),
    };
    let mut places = vec![Vec::with_capacity(entries); count];
    for at in 0..array.values.len() {
        places[array.index(at)[axis]].push(at);
    }
    // In the order of the index.
    for (z, places) in places.iter_mut().enumerate() {
        let other = |&at: &usize| {
            let index = array.index(at);
            index
                .iter()
                .enumerate()
                .find(|(d, _)| *d != axis)
                .map_or(z, |(_, &i)| i)
        };
        places.sort_by_key(other);
    }
    let tsv = args
        .output
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("tsv"));
    let delimiter = if tsv { b'\t' } else { b',' };
    let mut table = csv::WriterBuilder::new()
        .delimiter(delimiter)
        .from_writer(Vec::new());
    let components = (0..count).map(|z| format!("component_{z}"));
    let first = labels.as_ref().map(|_| "name".to_string());
    let failed = |e: csv::Error| Failure::by(&args.output, e);
    table
        .write_record(first.into_iter().chain(components))
        .map_err(failed)?;
    for entry in 0..entries {
        let name = labels.as_ref().map(|labels| labels[entry].clone());
        let values = places
            .iter()
            .map(|places| array.values[places[entry]].to_string());
        table
            .write_record(name.into_iter().chain(values))
            .map_err(failed)?;
    }
    table
        .into_inner()
        .map_err(|e| Failure::of(&args.output, e.error()))
}
