//! `.npy` arrays.

use plca_io::{Array, DataFile, Element, IoError, read_data, read_mask, write_npy};

use super::{members, one_line};
use crate::{Target, scratch};

pub(super) const TARGET: Target = Target {
    name: "npy",
    asserts: "errors are one line; what is read is written and read again with the same bits",
    seeds,
    run,
};

/// An array as the writer writes it.
fn written<T: Element>(array: &Array<T>) -> Vec<u8> {
    scratch::written("seed.npy", |path| {
        write_npy(path, array).expect("an array is written");
    })
}

/// A file of version 1 with this type and shape, in C order.
pub(super) fn typed(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    ordered(descr, false, shape, data)
}

/// The same in Fortran order if asked for.
pub(super) fn ordered(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let header = format!(
        "{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}          \n"
    );
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

/// Numbers of all kinds, more of them than a header has bytes: most mutations then come past it.
fn values(n: usize) -> Vec<f64> {
    let kinds = [0.0, 1.5, -2.0, f64::NAN, 1e300, 5e-324, f64::INFINITY];
    (0..n).map(|i| kinds[i % kinds.len()]).collect()
}

fn seeds() -> Vec<Vec<u8>> {
    let mut all = vec![
        written(&Array::new(vec![20, 3], values(60))),
        written(&Array::new(vec![90], vec![0.5f32; 90])),
        written(&Array {
            fortran: true,
            ..Array::new(vec![5, 3, 4], values(60))
        }),
        typed("<i8", "(0,)", &[]),
        typed("|b1", "(1, 1)", &[1]),
        typed(">f4", "(2L, 50)", &[0x3f, 0x80, 0, 0].repeat(100)),
    ];
    for descr in ["<i2", ">u2", "<u1", ">i8"] {
        let size = usize::from(descr.as_bytes()[2] - b'0');
        let data = [255, 1, 128, 0].repeat(50 * size);
        all.push(typed(descr, "(200,)", &data));
    }
    all
}

/// Whether two arrays are bit-identical.
pub(super) fn same<T: Element>(a: &Array<T>, b: &Array<T>) -> bool {
    let bits = |array: &Array<T>| -> Vec<u64> {
        let value = |x: &T| x.to_f64().to_bits();
        array.values.iter().map(value).collect()
    };
    (&a.shape, a.fortran, bits(a)) == (&b.shape, b.fortran, bits(b))
}

/// Reads as `T`, and what was read once more.
fn read<T: Element>(input: &[u8]) -> Result<Array<T>, IoError> {
    let path = scratch::file("input.npy", input);
    let DataFile::Dense(array) = read_data::<T>(&path, None)? else {
        panic!("an array is dense");
    };
    write_npy(&path, &array).expect("what was read is written");
    match read_data::<T>(&path, None) {
        Ok(DataFile::Dense(again)) => assert!(same(&array, &again), "other bits"),
        other => panic!("what was written is not read: {other:?}"),
    }
    Ok(array)
}

fn run(input: &[u8]) -> bool {
    match (read::<f64>(input), read::<f32>(input)) {
        (Ok(double), Ok(single)) => {
            assert_eq!(double.shape, single.shape);
            let path = scratch::file("mask.npy", input);
            if let Err(e) = read_mask(&path, &double.shape, None) {
                one_line(&e);
            }
            true
        }
        (Err(double), Err(_)) => members::beyond_header(&double),
        (double, single) => panic!("read in one precision alone: {double:?} {single:?}"),
    }
}
