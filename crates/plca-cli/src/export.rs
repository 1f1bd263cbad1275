//! `plca export`: an array of a model file as a table for other programs.

use std::io::Write;

use plca_io::Array;
use serde_json::Value;

use crate::args::ExportArgs;
use crate::components::{Components, axis_of};
use crate::failure::Failure;
use crate::interrupt;
use crate::models::known;
use crate::named::{self, labels_of, names, printed};
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
    let extension = args.output.extension().unwrap_or_default();
    let delimiter = match &*extension.to_string_lossy().to_lowercase() {
        "npy" => {
            return Ok(interrupt::writing(|| {
                plca_io::write_npy(&args.output, array)
            })?);
        }
        "tsv" => b'\t',
        _ => b',',
    };
    let text = table(args, &file.metadata, array, delimiter)?;
    Ok(interrupt::writing(|| {
        plca_io::write_atomically(&args.output, |w| w.write_all(&text))
    })?)
}

/// Every digit that is needed, and no more zeros than a person reads.
fn shortest(x: f64) -> String {
    match x == 0.0 || (1e-5..1e16).contains(&x.abs()) || !x.is_finite() {
        true => x.to_string(),
        false => format!("{x:e}"),
    }
}

/// A line for every entry, a column for every component; names in the first column, if there are any.
fn table(
    args: &ExportArgs,
    metadata: &Value,
    array: &Array<f64>,
    delimiter: u8,
) -> Result<Vec<u8>, Failure> {
    let kind = known(metadata);
    if array.shape.is_empty() {
        let what = format!(
            "--array {} is one number: expected an output .npy",
            args.array
        );
        return Err(Failure::of(&args.model, what));
    }
    let mut extents = array.shape.clone();
    let (columns, header): (Vec<Vec<f64>>, Vec<String>) = match axis_of(kind, &args.array, array) {
        // A number for every observation.
        None => (vec![array.values.clone()], vec![args.array.clone()]),
        Some(axis) => {
            let components = Components {
                array,
                axis,
                signed: false,
            };
            extents = components.extents();
            let all = 0..array.shape[axis];
            let called = |z| named::component(metadata, z).unwrap_or(format!("component_{z}"));
            all.map(|z| (components.get(z), called(z))).unzip()
        }
    };
    let entries = columns.first().map_or(0, Vec::len);
    let labels = match &args.labels {
        Some(path) => Some(labels_of(path, &extents)?),
        None => names(kind, metadata, &args.array, entries),
    };
    // Between tabs there are no names of several lines.
    let labels = if delimiter == b'\t' {
        labels.map(printed)
    } else {
        labels
    };
    let mut table = csv::WriterBuilder::new()
        .delimiter(delimiter)
        .from_writer(Vec::new());
    let failed = |e: csv::Error| Failure::by(&args.output, e);
    // Of several dimensions every line says its place.
    let several = extents.len() > 1;
    let places = Array {
        shape: extents.clone(),
        values: Vec::<f64>::new(),
        fortran: false,
    };
    let called = named::places(kind, metadata, &args.array, &extents);
    let first: Vec<String> = match (several, &labels) {
        (true, _) => {
            let indices = (0..extents.len()).map(|d| format!("index_{d}"));
            let names = called
                .iter()
                .enumerate()
                .filter(|(_, names)| names.is_some());
            indices
                .chain(names.map(|(d, _)| format!("name_{d}")))
                .collect()
        }
        (false, Some(_)) => vec!["name".into()],
        (false, None) => Vec::new(),
    };
    let header = first.into_iter().chain(header);
    table.write_record(header).map_err(failed)?;
    for entry in 0..entries {
        let first: Vec<String> = match (several, &labels) {
            (true, _) => {
                let index = places.index(entry);
                let names = called
                    .iter()
                    .zip(&index)
                    .filter_map(|(names, &i)| names.as_ref()?.get(i).cloned());
                index.iter().map(usize::to_string).chain(names).collect()
            }
            (false, Some(labels)) => vec![labels[entry].clone()],
            (false, None) => Vec::new(),
        };
        let values = columns.iter().map(|column| shortest(column[entry]));
        let line = first.into_iter().chain(values);
        table.write_record(line).map_err(failed)?;
    }
    table
        .into_inner()
        .map_err(|e| Failure::of(&args.output, e.error()))
}
