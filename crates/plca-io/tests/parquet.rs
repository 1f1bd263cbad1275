//! Long tables in Parquet, as pyarrow writes them (`testdata/generate.py`).
#![cfg(feature = "parquet")]

use std::path::{Path, PathBuf};

use plca_io::{DataFile, ReadOptions, read_data, read_data_with};
use proptest::prelude::*;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(name)
}

/// Shape and cells in the order of the rows, or what is said from the place on.
type Table = Result<(Vec<usize>, Vec<(Vec<u32>, f64)>), String>;

fn read(path: &Path, shape: Option<&[usize]>) -> Table {
    let shown = path.display().to_string();
    let options = ReadOptions {
        shape: shape.map(<[usize]>::to_vec),
        ..ReadOptions::default()
    };
    match read_data_with::<f64>(path, &options) {
        Ok(DataFile::Sparse(v)) => {
            let indices = v.indices.chunks(v.shape.len()).map(<[u32]>::to_vec);
            Ok((v.shape, indices.zip(v.values).collect()))
        }
        Ok(DataFile::Dense(_)) => panic!("dense"),
        Err(e) => Err(e.to_string()[shown.len() + 2..].to_string()),
    }
}

fn entries(values: [f64; 3]) -> Vec<(Vec<u32>, f64)> {
    let cells = [[0, 1], [2, 0], [2, 3]].map(|cell| cell.to_vec());
    cells.into_iter().zip(values).collect()
}

#[test]
fn tables_of_every_kind_are_read() {
    for (name, values) in [
        ("long_none", [1.5, 2.0, 3.0]),
        ("long_snappy", [1.5, 2.0, 3.0]),
        ("long_gzip", [1.5, 2.0, 3.0]),
        ("long_zstd", [1.5, 2.0, 3.0]),
        ("long_version2", [1.5, 2.0, 3.0]),
        ("long_i4_f4", [1.5, 2.0, 3.0]),
        ("long_u1_u8", [1.0, 2.0, 3.0]),
        // Other columns, in any order.
        ("long_more", [1.5, 2.0, 3.0]),
    ] {
        let path = file(&format!("{name}.parquet"));
        let want = (vec![3, 4], entries(values));
        assert_eq!(read(&path, None), Ok(want), "{name}");
    }
    let cube = read(&file("long_order3.parquet"), None).unwrap();
    let cells = [vec![0, 1, 0], vec![2, 0, 1], vec![2, 3, 0]];
    let cells = cells.into_iter().zip([1.5, 2.0, 3.0]).collect();
    assert_eq!(cube, (vec![3, 4, 2], cells));
    let wide = read(&file("long_snappy.parquet"), Some(&[5, 6])).unwrap();
    assert_eq!(wide, (vec![5, 6], entries([1.5, 2.0, 3.0])));
}

#[test]
fn other_tables_are_refused() {
    #[rustfmt::skip]
    let cases = [
        ("bad_text", None, "column index_0: expected whole numbers from 0: number the labels, as `from_long` of plcakit does"),
        ("bad_date", None, "column index_0: expected whole numbers from 0: number the labels, as `from_long` of plcakit does"),
        ("bad_null", None, "column value: has a row without a number"),
        ("bad_negative", None, "row 1: column index_0: index -1 is outside 0..4294967295"),
        ("bad_columns", None, "has the columns index_1, value; expected index_0, index_1 and so on, each once, and value"),
        ("bad_lz4", None, "column index_0: Parquet error: packed by LZ4_RAW, expected snappy, gzip, zstd or nothing"),
        ("long_snappy", Some(&[2, 4][..]), "row 1: column index_0: index 2 is outside 0..2"),
        ("long_snappy", Some(&[3, 4, 1]), "has 2 indices, not the 3 of the shape [3, 4, 1]"),
    ];
    for (name, shape, why) in cases {
        let path = file(&format!("{name}.parquet"));
        assert_eq!(read(&path, shape), Err(why.into()), "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.parquet");
    for bytes in [&b""[..], b"PAR1", b"PAR1\0\0\0\0PAR1", &[0xff; 300]] {
        std::fs::write(&path, bytes).unwrap();
        let error = read(&path, None).unwrap_err();
        assert!(error.starts_with("is not a Parquet file: "), "{error}");
    }
}

#[test]
fn every_truncation_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.parquet");
    let bytes = std::fs::read(file("long_version2.parquet")).unwrap();
    for n in 0..bytes.len() {
        std::fs::write(&path, &bytes[..n]).unwrap();
        assert!(read_data::<f64>(&path, None).is_err(), "{n} bytes");
    }
}

const WHOLE: [&str; 5] = ["none", "snappy", "gzip", "zstd", "version2"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// A good file with some bytes overwritten is read or refused, in one line and in memory that it explains.
    #[test]
    fn damaged_files_do_no_harm(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), which in 0usize..5) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.parquet");
        let mut bytes = std::fs::read(file(&format!("long_{}.parquet", WHOLE[which]))).unwrap();
        let length = bytes.len();
        for (at, byte) in changes {
            bytes[at.index(length)] = byte;
        }
        std::fs::write(&path, &bytes).unwrap();
        let memory = allocation_counter::measure(|| {
            if let Err(error) = read_data::<f64>(&path, None) {
                assert_eq!(error.to_string().lines().count(), 1);
            }
        });
        prop_assert!(memory.bytes_max < 64 << 20, "{} bytes of memory", memory.bytes_max);
    }
}
