//! MATLAB files of level 5. The input's first byte says whether its elements are packed: mutations are of what is unpacked.

use std::io::Write;

use flate2::write::ZlibEncoder;
use plca_io::{DataFile, IoError, ReadOptions, read_data, read_data_with};

use super::{one_line, tensor};
use crate::{Target, scratch};

pub(super) const TARGET: Target = Target {
    name: "mat",
    asserts: "errors are one line; indices are within the shape",
    seeds,
    run,
};

fn element(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut out = [kind, body.len() as u32].map(u32::to_le_bytes).concat();
    out.extend(body);
    out.resize(out.len().next_multiple_of(8), 0);
    out
}

fn whole(values: &[u32]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    element(5, &bytes)
}

fn array(class: u32, shape: &[u32], name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    let flags = [class, 0].map(u32::to_le_bytes).concat();
    let head = [
        element(6, &flags),
        whole(shape),
        element(1, name.as_bytes()),
    ];
    element(14, &[head.concat(), parts.concat()].concat())
}

fn seeds() -> Vec<Vec<u8>> {
    let doubles: Vec<u8> = (0..60).flat_map(|n| f64::from(n).to_le_bytes()).collect();
    let each = |f: fn(u32) -> u32| whole(&(0..12).map(f).collect::<Vec<_>>());
    let sparse = [
        each(|n| n % 4),
        whole(&[0, 2, 4, 6, 8, 10, 12]),
        element(9, &doubles[..96]),
    ];
    let small = element(2, &[1, 2, 3, 4]);
    let dense = array(6, &[20, 3], "v", &[element(9, &doubles)]);
    let sparse = array(5, &[4, 6], "s", &sparse);
    let several = [
        array(9, &[2, 2], "v", &[small]),
        array(4, &[1, 2], "text", &[element(4, &[b'h', 0, b'i', 0])]),
    ];
    let kind = |packed: bool| if packed { b'p' } else { b's' };
    let mut seeds = Vec::new();
    for packed in [false, true] {
        for elements in [&dense, &sparse, &several.concat()] {
            seeds.push([&[kind(packed)][..], elements].concat());
        }
    }
    seeds
}

/// The file of an input. Elements are packed where their lengths are true, one after the other.
fn file(input: &[u8]) -> Vec<u8> {
    let mut out = b"MATLAB 5.0 MAT-file".to_vec();
    out.resize(124, b' ');
    out.extend(b"\x00\x01IM");
    let Some((b'p', mut rest)) = input.split_first() else {
        out.extend(input.get(1..).unwrap_or_default());
        return out;
    };
    while let Some(length) = rest.get(4..8).and_then(|n| n.first_chunk()) {
        let end = 8usize.saturating_add(u32::from_le_bytes(*length) as usize);
        let (one, others) = rest.split_at(end.min(rest.len()));
        let mut zlib = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(one).expect("written to memory");
        let body = zlib.finish().expect("written to memory");
        out.extend([15, body.len() as u32].map(u32::to_le_bytes).concat());
        out.extend(body);
        rest = others;
    }
    out
}

/// Whether an error is about more than a tag.
fn beyond(e: &IoError) -> bool {
    one_line(e);
    !e.place().starts_with("byte 128") && !e.to_string().contains("not a MATLAB file")
}

fn run(input: &[u8]) -> bool {
    let path = scratch::file("input.mat", &file(input));
    let options = ReadOptions {
        array: Some("v".into()),
        ..ReadOptions::default()
    };
    if let Err(e) = read_data_with::<f32>(&path, &options) {
        one_line(&e);
    }
    match read_data::<f64>(&path, None) {
        Ok(DataFile::Sparse(entries)) => {
            tensor::check(entries);
            true
        }
        Ok(DataFile::Dense(array)) => {
            assert_eq!(array.shape.iter().product::<usize>(), array.values.len());
            true
        }
        Err(e) => beyond(&e),
    }
}
