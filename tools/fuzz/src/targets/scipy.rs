//! Sparse matrices of SciPy: five arrays in an archive.

use plca_io::{DataFile, IoError, read_data};
use plca_tensor::Coordinates;

use super::{members, npy, one_line, tensor};
use crate::{Target, scratch};

pub(super) const TARGET: Target = Target {
    name: "scipy",
    asserts: "errors are one line; indices are within the shape",
    seeds,
    run,
};

fn whole(values: &[i32]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    npy::typed("<i4", &format!("({},)", values.len()), &bytes)
}

fn seeds() -> Vec<Vec<u8>> {
    // Twelve entries of a matrix of 4 x 6, three in every row and two in every column.
    let data: Vec<u8> = (0..12).flat_map(|n| f64::from(n).to_le_bytes()).collect();
    let each = |f: fn(i32) -> i32| whole(&(0..12).map(f).collect::<Vec<_>>());
    let ends = |runs: i32| whole(&(0..=runs).map(|r| 12 / runs * r).collect::<Vec<_>>());
    let all = |format: &str| {
        let members = vec![
            ("format.npy", npy::typed("|S3", "()", format.as_bytes())),
            ("shape.npy", whole(&[4, 6])),
            ("data.npy", npy::typed("<f8", "(12,)", &data)),
        ];
        let indices = match format {
            "coo" => [("row.npy", each(|n| n / 3)), ("col.npy", each(|n| n % 6))],
            "csr" => [("indices.npy", each(|n| n % 6)), ("indptr.npy", ends(4))],
            _ => [("indices.npy", each(|n| n % 4)), ("indptr.npy", ends(6))],
        };
        members.into_iter().chain(indices).collect::<Vec<_>>()
    };
    vec![
        members::join(false, &all("coo")),
        members::join(false, &all("csr")),
        members::join(true, &all("csc")),
    ]
}

/// Whether an error is about more than the names, the format and the shape.
fn beyond(e: &IoError) -> bool {
    one_line(e);
    [
        "data.npy",
        "indices.npy",
        "indptr.npy",
        "row.npy",
        "col.npy",
    ]
    .iter()
    .any(|name| e.place().starts_with(name))
}

fn read(input: &[u8]) -> Result<Option<Coordinates<f64>>, IoError> {
    let path = scratch::file("input.npz", &members::archive(input));
    Ok(match read_data::<f64>(&path, None)? {
        DataFile::Sparse(entries) => Some(entries),
        DataFile::Dense(_) => None,
    })
}

fn run(input: &[u8]) -> bool {
    match read(input) {
        Ok(Some(entries)) => {
            tensor::check(entries);
            true
        }
        Ok(None) => false,
        Err(e) => beyond(&e),
    }
}
