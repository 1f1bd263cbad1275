//! Files written by numpy and scipy, see `testdata/generate.py`.

use std::path::{Path, PathBuf};

use plca_io::{DataFile, read_data};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(name)
}

fn dense(name: &str) -> (Vec<usize>, Vec<f64>, bool) {
    match read_data::<f64>(&file(name), None) {
        Ok(DataFile::Dense(a)) => (a.shape, a.values, a.fortran),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn every_dtype_and_byte_order() {
    for dtype in [
        "f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8",
    ] {
        for order in ["le", "be"] {
            let want = (vec![2, 3], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0], false);
            assert_eq!(dense(&format!("dense_{dtype}_{order}.npy")), want);
        }
    }
    assert_eq!(dense("dense_bool.npy").1, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
}

#[test]
fn every_version_and_order() {
    let row_major = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    for name in [
        "dense_version2.npy",
        "dense_version3.npy",
        "dense_stored.npz",
        "dense_deflated.npz",
    ] {
        assert_eq!(dense(name), (vec![2, 3], row_major.to_vec(), false));
    }
    let column_major = vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0];
    assert_eq!(dense("dense_fortran.npy"), (vec![2, 3], column_major, true));
}

#[test]
fn every_sparse_format() {
    for name in [
        "coo",
        "csr",
        "csc",
        "coo_stored",
        "csr_stored",
        "csc_stored",
        "csr_int64",
    ] {
        let path = file(&format!("sparse_{name}.npz"));
        let Ok(DataFile::Sparse(c)) = read_data::<f32>(&path, None) else {
            panic!("{name}")
        };
        let mut cells: Vec<_> = c.indices.chunks(2).zip(&c.values).collect();
        cells.sort_by_key(|(index, _)| index.to_vec());
        let want: [(&[u32], &f32); 3] = [(&[0, 1], &1.5), (&[2, 0], &2.0), (&[2, 3], &3.0)];
        assert_eq!(c.shape, [3, 4]);
        assert_eq!(cells, want);
    }
}

#[test]
fn what_is_no_array_of_real_numbers_is_refused() {
    #[rustfmt::skip]
    let cases = [
        ("bad_order0.npy", "an array of order 0 has no cells"),
        ("bad_complex.npy", "header: type `<c16` is not a real number; of complex numbers save the absolute values"),
        ("bad_text.npy", "header: text where numbers are needed"),
        ("bad_object.npy", "header: type `|O` is not a real number"),
        ("bad_structured.npy", "header: structured types are not numbers"),
        ("bad_dia.npz", "format.npy: `dia` is none of coo, csr, csc"),
        ("two_arrays.npz", "holds 2 arrays, expected one; of a file of data --array NAME chooses: v, w"),
    ];
    for (name, why) in cases {
        let error = read_data::<f64>(&file(name), None).unwrap_err().to_string();
        assert!(error.ends_with(&format!("{name}: {why}")), "{error}");
    }
}
