//! `.mtx`, `.tns`, `.csv` and lists of features, plain and compressed.

use std::io::Write;

use plca_io::{Array, DataFile, IoError, ReadOptions, read_data_with, read_mask};

use super::{one_line, tensor};
use crate::{Target, scratch};

const ASSERTS: &str = "errors are one line; what strict options take, free ones take with the same values; indices are within the shape";

pub(super) const MTX: Target = Target {
    name: "mtx",
    asserts: ASSERTS,
    seeds: || mtx().into_iter().map(String::into_bytes).collect(),
    run: |input| run("input.mtx", input, 3),
};

pub(super) const TNS: Target = Target {
    name: "tns",
    asserts: ASSERTS,
    seeds: || {
        strings(&[
            "# c\n1 2 1 2.5\n3 1 1 1e-3\n",
            "1 1 3\n2 3 0.5\n2 3 nan\n",
            "7 1\n",
        ])
    },
    run: |input| run("input.tns", input, 2),
};

pub(super) const CSV: Target = Target {
    name: "csv",
    asserts: ASSERTS,
    seeds: || {
        strings(&[
            "a,b\n1,\n2,3\n",
            "\u{feff}\"x\",\"y\"\r\n1e3,-2\r\nnan,inf\r\n",
            "1,2,3\n4,5,6\n",
            "0.5\n\n7\n",
        ])
    },
    run: |input| run("input.csv", input, 2),
};

pub(super) const SVMLIGHT: Target = Target {
    name: "svmlight",
    asserts: ASSERTS,
    seeds: || {
        strings(&[
            "1 1:3 2:4\n0 2:1.5 7:2\n",
            "# Column indices are zero-based\n1,2 qid:3 0:1 5:2 # one\n0:1\n",
            "+1 3:1e-3\n-1 1:2 9:1\n",
        ])
    },
    run: |input| run("input.svmlight", input, 2),
};

pub(super) const LDAC: Target = Target {
    name: "ldac",
    asserts: ASSERTS,
    seeds: || strings(&["2 0:1 3:2\n1 1:4\n0\n", "3 0:1 1:1 6:2\n2 2:1 3:1\n"]),
    run: |input| run("input.ldac", input, 2),
};

pub(super) const DOCWORD: Target = Target {
    name: "docword",
    asserts: ASSERTS,
    seeds: || strings(&["3\n5\n4\n1 2 1\n1 5 3\n2 1 2\n3 4 1\n"]),
    run: |input| run("docword.input.txt", input, 4),
};

pub(super) const GZ: Target = Target {
    name: "mtx_gz",
    asserts: ASSERTS,
    seeds: || {
        let packed = |text: String| {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            gz.write_all(text.as_bytes()).expect("written to memory");
            gz.finish().expect("written to memory")
        };
        mtx().into_iter().map(packed).collect()
    },
    run: |input| run("input.mtx.gz", input, 1),
};

/// Texts with more in their bodies than in their heads: most mutations then come past these.
fn mtx() -> Vec<String> {
    let body = |line: fn(usize) -> String| (0..24).map(line).collect::<String>();
    let banner = "%%MatrixMarket matrix";
    let triples = body(|n| format!("{} {} {n}.5e-3\n", n % 6 + 1, n / 6 + 1));
    let pairs = body(|n| format!("{} {}\n", n / 4 + 1, n % 4 + 1));
    let values = body(|n| format!("{n}\n"));
    vec![
        format!("{banner} coordinate real general\n% c\n6 4 24\n{triples}"),
        format!("{banner} coordinate real symmetric\n6 6 24\n{triples}"),
        format!("{banner} coordinate pattern general\n6 4 24\n{pairs}"),
        format!("{banner} array integer symmetric\n2 2\n1\n2\n3\n"),
        format!("{banner} array real general\n8 3\n{values}"),
    ]
}

pub(super) fn strings(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|t| t.as_bytes().to_vec()).collect()
}

pub(super) fn read(
    name: &str,
    input: &[u8],
    options: &ReadOptions,
) -> Result<DataFile<f64>, IoError> {
    read_data_with(scratch::file(name, input), options)
}

/// Shape, indices and bits of what was read.
fn parts(data: &DataFile<f64>) -> (&[usize], &[u32], Vec<u64>) {
    let (shape, indices, values) = match data {
        DataFile::Dense(Array { shape, values, .. }) => (shape, &[][..], values),
        DataFile::Sparse(entries) => (&entries.shape, &entries.indices[..], &entries.values),
    };
    (shape, indices, values.iter().map(|x| x.to_bits()).collect())
}

/// Reads a text; an error in an earlier line than `first` is one of the header.
fn run(name: &str, input: &[u8], first: usize) -> bool {
    let strict = read(name, input, &ReadOptions::default());
    let free = ReadOptions {
        allow_nan: true,
        allow_negative: true,
        allow_infinite: true,
        ..ReadOptions::default()
    };
    let free = read(name, input, &free);
    if let Ok(strict) = &strict {
        let free = free.as_ref().expect("what strict options take");
        assert_eq!(parts(strict), parts(free));
    }
    if let Err(e) = &strict {
        one_line(e);
    }
    let data = match free {
        Ok(data) => data,
        Err(e) => {
            one_line(&e);
            let line = e.place().strip_prefix("line ").unwrap_or_default();
            let end = line
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(line.len());
            return line[..end].parse().is_ok_and(|line: usize| line >= first);
        }
    };
    if let Err(e) = read_mask(&scratch::path(name), parts(&data).0, None) {
        one_line(&e);
    }
    match data {
        DataFile::Sparse(entries) => tensor::check(entries),
        DataFile::Dense(Array { shape, values, .. }) => {
            assert_eq!(shape.iter().product::<usize>(), values.len());
        }
    }
    true
}
