//! New data whose rows or columns have names, in the order of those of a model.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use plca_io::{Array, DataFile, Element};
use plca_tensor::Coordinates;
use serde_json::Value;

use crate::failure::Failure;
use crate::models::{Kind, Takes};
use crate::named::{self, quoted, twice};
use crate::reading::DataArgs;
use crate::table::Labels;

/// Where the indices of a dimension go.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// For every index of the new data that of the model; `None` for a name that the model does not have.
    to: Vec<Option<u32>>,
    /// The names of the model.
    known: Vec<String>,
    /// Those names of the new data that the model does not have.
    others: Vec<String>,
}

/// The indices of new data, dimension by dimension.
#[derive(Debug, Default)]
pub(crate) struct Indices {
    /// How many the data of the fit have, those of observations left out.
    pub(crate) sizes: Vec<Option<usize>>,
    /// Where those go that have the names of the model.
    pub(crate) places: Vec<Option<Places>>,
    /// What they are called.
    pub(crate) names: Vec<Option<Vec<String>>>,
}

/// For every dimension where its indices go, `None` where they stay; also warnings. `names` are those of the new data, and become those of the model.
pub(crate) fn places(
    path: &Path,
    names: &mut [Option<Vec<String>>],
    args: &DataArgs,
    metadata: &Value,
    along: usize,
) -> Result<(Vec<Option<Places>>, Vec<String>), Failure> {
    let (mut all, mut warnings) = (Vec::new(), Vec::new());
    // Where the names of the dimension of the observations are those of the model.
    let turned = names.get(along).cloned().flatten().filter(|own| {
        named::of(metadata, along).is_some_and(|known| own.iter().any(|name| known.contains(name)))
    });
    let turned = turned.map(|_| along);
    // Where the names of one dimension of the data are those of the other one of the model.
    let crossed = match &*names {
        [a, b] => [b, a].map(|own| {
            let own = own.as_ref();
            own.map(|own| own.iter().cloned().collect::<HashSet<String>>())
        }),
        _ => [None, None],
    };
    for (d, own) in names.iter_mut().enumerate() {
        let known = named::of(metadata, d);
        let turned = turned.filter(|_| d != along);
        all.push(match (own, known) {
            _ if d == along => None,
            (Some(own), None) if args.table.labels != Some(Labels::Entries) => {
                warnings.push(format!(
                    "the model has no names along dimension {d}: the order of {} is taken for its own, whatever they are called there",
                    quoted(own)
                ));
                None
            }
            (Some(_), None) => {
                let what = format!(
                    "its indices along dimension {d} are names, and the model has no names there: expected data whose indices are those of the model, such as .mtx"
                );
                return Err(Failure::of(path, what));
            }
            (None, Some(_)) => {
                warnings.push(format!(
                    "the data have no names along dimension {d}, where the model has: their order is taken for that of the model (--header yes, --labels first-column or --labels FILE give them)"
                ));
                None
            }
            (Some(own), Some(known)) if *own != known => {
                if let Some(name) = twice(own).or(twice(&known)) {
                    let what = format!(
                        "its names along dimension {d} are not those of the model, and {} occurs more than once: expected names that differ",
                        quoted(&[name])
                    );
                    return Err(Failure::of(path, what));
                }
                let [here, there] = named::keys(own, &known);
                let numbers: HashMap<&String, u32> = there.iter().zip(0..).collect();
                let to: Vec<Option<u32>> =
                    here.iter().map(|name| numbers.get(name).copied()).collect();
                let others = own.iter().zip(&to).filter(|(_, to)| to.is_none());
                let others: Vec<String> = others.map(|(name, _)| name.clone()).collect();
                if others.len() == own.len() {
                    let what = format!(
                        "no name along dimension {d} is one of the model's: the first is {} here, {} there",
                        quoted(&own[..1]),
                        quoted(&known[..1]),
                    );
                    let e = Failure::of(path, what);
                    let crossed = crossed.get(d).and_then(Option::as_ref);
                    let crossed = crossed.is_some_and(|own| known.iter().any(|name| own.contains(name)));
                    return Err(match turned {
                        None if crossed && args.transpose => e.and(format!("they are those of the other dimension of the data: leave {} out", args.turned_by())),
                        None if crossed => e.and(format!("they are those of the other dimension of the data: --samples {} turns the table", 1 - along)),
                        Some(other) => e.and(format!("if the samples lie along dimension {d}, a fit with them there, --samples {d}, explains them: the names of dimension {other} of the data are those of the model")),
                        None => e,
                    });
                }
                own.clone_from(&known);
                Some(Places { to, known, others })
            }
            _ => None,
        });
    }
    Ok((all, warnings))
}

/// Gives sparse data the indices that none of their entries has: those that are named, or those of the model. A warning where the format of the file says how many there are.
pub(crate) fn widened<T>(path: &Path, file: &mut DataFile<T>, of: &Indices) -> Vec<String> {
    let mut warnings = Vec::new();
    let DataFile::Sparse(entries) = file else {
        return warnings;
    };
    if entries.shape.len() != of.sizes.len() {
        return warnings;
    }
    for (d, (n, size)) in entries.shape.iter_mut().zip(&of.sizes).enumerate() {
        let named = of.places.get(d).and_then(Option::as_ref);
        let Some(size) = named
            .map(|places| places.to.len())
            .or(*size)
            .filter(|size| size > n)
        else {
            continue;
        };
        if named.is_none() && !plca_io::lists_samples(path) {
            warnings.push(format!(
                "the data have {n} of the {size} indices of the model along dimension {d}: they are taken for the first ones, and the others for 0"
            ));
        }
        *n = size;
    }
    warnings
}

/// Data in the order of a model.
pub(crate) struct Arranged<T> {
    pub(crate) file: DataFile<T>,
    /// The sum of what has names that the model does not have, of absolute values.
    pub(crate) left_out: f64,
    pub(crate) warnings: Vec<String>,
}

/// The data with their indices in these places. Entries that they do not have are 0; a table that does not hold counts must have all names.
pub(crate) fn arranged<T: Element>(
    model: Kind,
    path: &Path,
    file: DataFile<T>,
    places: &[Option<Places>],
) -> Result<Arranged<T>, Failure> {
    let (DataFile::Dense(Array { shape, .. }) | DataFile::Sparse(Coordinates { shape, .. })) =
        &file;
    let (mut left_out, mut warnings) = (0.0, Vec::new());
    // Data of another order are refused by the model.
    if places.iter().all(Option::is_none) || shape.len() != places.len() {
        return Ok(Arranged {
            file,
            left_out,
            warnings,
        });
    }
    for (d, places) in places.iter().enumerate() {
        let names = places.as_ref().map(|places| places.to.len());
        if let Some(names) = names.filter(|&n| shape.get(d) != Some(&n)) {
            let what = format!(
                "is of shape {shape:?}, expected {names} indices along dimension {d}, as many as names"
            );
            return Err(Failure::of(path, what));
        }
    }
    let sum = |values: &[T]| -> f64 {
        let known = values.iter().map(|x| x.to_f64().abs());
        known.filter(|x| !x.is_nan()).sum()
    };
    let (total, kept);
    let file = match file {
        DataFile::Sparse(entries) => {
            total = sum(&entries.values);
            let entries = entries_in(entries, places);
            kept = sum(&entries.values);
            DataFile::Sparse(entries)
        }
        DataFile::Dense(table) => {
            total = sum(&table.values);
            let zeros = model.takes == Takes::Counts;
            let table = table_in(path, table, places, zeros, &mut warnings)?;
            kept = sum(&table.values);
            DataFile::Dense(table)
        }
    };
    for (d, places) in places.iter().enumerate() {
        if let Some(others) = places.as_ref().map(|p| &p.others).filter(|o| !o.is_empty()) {
            left_out = total - kept;
            warnings.push(format!(
                "{left_out} of {total} were left out: the model does not have these names along dimension {d}: {}",
                quoted(others)
            ));
        }
    }
    Ok(Arranged {
        file,
        left_out,
        warnings,
    })
}

fn entries_in<T: Copy>(entries: Coordinates<T>, places: &[Option<Places>]) -> Coordinates<T> {
    let mut shape = entries.shape;
    for (size, places) in shape.iter_mut().zip(places) {
        if let Some(places) = places {
            *size = places.known.len();
        }
    }
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for (index, &value) in entries
        .indices
        .chunks_exact(shape.len())
        .zip(&entries.values)
    {
        let moved = index.iter().zip(places).map(|(&i, places)| match places {
            Some(places) => places.to[i as usize],
            None => Some(i),
        });
        if let Some(index) = moved.collect::<Option<Vec<u32>>>() {
            indices.extend(index);
            values.push(value);
        }
    }
    Coordinates {
        shape,
        indices,
        values,
    }
}

/// Data whose names are known have rows and columns. Of counts `zeros` may stand for what they do not have.
fn table_in<T: Element>(
    path: &Path,
    table: Array<T>,
    places: &[Option<Places>],
    zeros: bool,
    warnings: &mut Vec<String>,
) -> Result<Array<T>, Failure> {
    let mut from: [Vec<Option<usize>>; 2] = [0, 1].map(|d| (0..table.shape[d]).map(Some).collect());
    for (d, places) in places.iter().enumerate() {
        let Some(Places { to, known, .. }) = places else {
            continue;
        };
        let mut found = vec![None; known.len()];
        for (here, there) in to.iter().enumerate() {
            if let Some(there) = there {
                found[*there as usize] = Some(here);
            }
        }
        let lacks = known.iter().zip(&found).filter(|(_, here)| here.is_none());
        let lacks: Vec<&String> = lacks.map(|(name, _)| name).collect();
        let what = || {
            format!(
                "has {} of the {} names of the model along dimension {d}, not {}",
                known.len() - lacks.len(),
                known.len(),
                quoted(&lacks)
            )
        };
        match lacks.is_empty() {
            true => {}
            false if zeros => {
                warnings.push(format!("{} {}: they count as 0", path.display(), what()))
            }
            false => return Err(Failure::of(path, what())),
        }
        from[d] = found;
    }
    let [height, width] = [table.shape[0], table.shape[1]];
    let [rows, columns] = &from;
    let cells = rows
        .iter()
        .flat_map(|row| columns.iter().map(move |column| (row, column)));
    let value = |(row, column): (&Option<usize>, &Option<usize>)| match (row, column) {
        (Some(row), Some(column)) if table.fortran => table.values[column * height + row],
        (Some(row), Some(column)) => table.values[row * width + column],
        _ => T::zero(),
    };
    Ok(Array {
        shape: vec![rows.len(), columns.len()],
        values: cells.map(value).collect(),
        fortran: false,
    })
}
