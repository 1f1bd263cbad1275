//! Numbers of files that single precision cannot hold.

use std::path::Path;

use plca_io::{DataFile, Element, ReadOptions};
use plca_tensor::{Data, DataError};

use crate::blocks::Arrays;
use crate::failure::Failure;
use crate::reading::DataArgs;

/// Why data were refused, with the value as it stands in the file where that is finite and only single precision is too small.
pub(crate) fn refused<T: Element>(path: &Path, args: &DataArgs, e: DataError) -> Failure {
    match in_the_file::<T>(path, args, &e) {
        Some(what) => Failure::of(path, what),
        None => Failure::by(path, e),
    }
}

fn in_the_file<T: Element>(path: &Path, args: &DataArgs, e: &DataError) -> Option<String> {
    if T::DESCR != f32::DESCR {
        return None;
    }
    let read = || {
        let options = ReadOptions {
            allow_negative: true,
            allow_infinite: true,
            ..args.reading()
        };
        let file = plca_io::read_data_with::<f64>(path, &options).ok()?;
        Some(args.turned(file))
    };
    match e {
        DataError::NotFinite { index, value } if value.is_infinite() => {
            let x = value_at(read()?, index);
            x.is_finite()
                .then(|| beyond(&format!("entry {index:?}"), x))
        }
        DataError::NoMass => first_below(read()?),
        _ => None,
    }
}

/// Refuses data of which single precision holds no digits: all of them are below its normal numbers, and some are not 0 in the file.
pub(crate) fn check_size<T: Element>(
    path: &Path,
    args: &DataArgs,
    data: &dyn Data<T>,
) -> Result<(), Failure> {
    if T::DESCR != f32::DESCR {
        return Ok(());
    }
    let (mut largest, mut first) = (0.0f64, None);
    data.visit(&mut |index, x| {
        largest = largest.max(x.abs());
        first.get_or_insert_with(|| below(index, x));
    })?;
    if largest >= f64::from(f32::MIN_POSITIVE) {
        return Ok(());
    }
    // What the file holds where cells are hidden does not count.
    let first = match data.is_complete() {
        true => in_the_file::<T>(path, args, &DataError::NoMass),
        false => first,
    };
    first.map_or(Ok(()), |what| Err(Failure::of(path, what)))
}

fn below(index: &[usize], x: f64) -> String {
    let least = f32::MIN_POSITIVE;
    format!("entry {index:?} is {x:?}, below f32, whose least normal number is {least:?}")
}

fn beyond(place: &str, x: f64) -> String {
    let largest = f32::MAX;
    format!("{place} is {x:?}, beyond f32, whose largest number is {largest:?}")
}

/// The value of a cell; entries of sparse data are summed.
fn value_at(file: DataFile<f64>, index: &[usize]) -> f64 {
    let mut sum = 0.0;
    visit(file, |at, x| sum += if at == index { x } else { 0.0 });
    sum
}

/// The first entry that single precision takes for 0, or for a number without all digits.
fn first_below(file: DataFile<f64>) -> Option<String> {
    let mut first = None;
    visit(file, |at, x| {
        if x != 0.0 && x.abs() < f64::from(f32::MIN_POSITIVE) {
            first.get_or_insert_with(|| below(at, x));
        }
    });
    first
}

fn visit(file: DataFile<f64>, mut visit: impl FnMut(&[usize], f64)) {
    match file {
        DataFile::Dense(array) => {
            for (at, x) in array.values.iter().enumerate() {
                visit(&array.index(at), *x);
            }
        }
        DataFile::Sparse(entries) => {
            let indices = entries.indices.chunks_exact(entries.shape.len());
            for (index, x) in indices.zip(entries.values) {
                let index: Vec<usize> = index.iter().map(|&i| i as usize).collect();
                visit(&index, x);
            }
        }
    }
}

/// Refuses initial values that single precision cannot hold.
pub(crate) fn check_single(path: &Path, arrays: &Arrays) -> Result<(), Failure> {
    let wide = |x: &f64| x.is_finite() && (*x as f32).is_infinite();
    for (name, array) in arrays {
        if let Some(at) = array.values.iter().position(wide) {
            let place = format!("`{name}` {:?}", array.index(at));
            return Err(Failure::of(path, beyond(&place, array.values[at])));
        }
    }
    Ok(())
}
