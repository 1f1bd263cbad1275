//! Stores of sparse data, with checksums that are right whatever a mutation did.

use nalgebra::DMatrix;
use plca_io::{Element, IoError, ReadOptions, Store, StoreWriter};
use plca_tensor::{BlockSource, Cp, Data, Factor, Modes, OutOfCore, Request};
use serde_json::{Value, json};

use super::one_line;
use crate::{Target, scratch};

pub(super) const TARGET: Target = Target {
    name: "store",
    asserts: "errors are one line; a store that is taken has positive mass, and marginals and counts that add up to it",
    seeds,
    run,
};

/// Bytes before the first block.
const HEADER: usize = 40;
/// Shapes whose sizes add up to no more are read: memory is proportional to the sizes.
const INDICES: usize = 1 << 18;

fn seeds() -> Vec<Vec<u8>> {
    let text = "1 1 3\n2 3 0.5\n2 1 2\n3 2 1\n5 1 7\n";
    let input = scratch::file("seed.tns", text.as_bytes());
    let folder = scratch::path("");
    let options = ReadOptions {
        shape: Some(vec![6, 4]),
        ..ReadOptions::default()
    };
    let inferred = ReadOptions::default();
    vec![
        store::<f64>(&input, &inferred, &folder),
        store::<f64>(&input, &options, &folder),
        store::<f32>(&input, &inferred, &folder),
    ]
}

fn store<T: Element>(
    input: &std::path::Path,
    options: &ReadOptions,
    folder: &std::path::Path,
) -> Vec<u8> {
    scratch::written("seed.store", |path| {
        let writer = StoreWriter::<T>::read(input, options, folder).expect("a sparse text");
        writer.write(path).expect("a store is written");
    })
}

/// The eight bytes at a place as a number.
fn number(bytes: &[u8], at: usize) -> usize {
    let word = bytes.get(at..at + 8).and_then(|b| b.first_chunk());
    word.map_or(0, |&b| u64::from_le_bytes(b) as usize)
}

/// Gives every block that lies within the file its checksum.
fn seal_blocks(footer: &mut Value, bytes: &[u8]) {
    let size = 4 + number(bytes, 12) % (1 << 32);
    let blocks = footer.get_mut("blocks").and_then(Value::as_array_mut);
    for block in blocks.into_iter().flatten() {
        let part = |n: usize| Some(block.get(n)?.as_u64()? as usize);
        let range = || {
            let length = part(1)?
                .checked_mul(8)?
                .checked_add(part(2)?.checked_mul(size)?)?;
            bytes.get(part(0)?..part(0)?.checked_add(length)?)
        };
        if let Some(sum) = range().map(crc32fast::hash)
            && let Some(place) = block.get_mut(3)
        {
            *place = json!(sum);
        }
    }
}

/// A footer that can be read, with the numbers of one that cannot: the first ones and the last two, where it has them.
fn footer_of(text: &[u8]) -> Value {
    let digits = text.split(|b| !b.is_ascii_digit());
    let numbers: Vec<u64> = digits
        .filter_map(|d| std::str::from_utf8(d).ok()?.parse().ok())
        .collect();
    let mut footer = json!({
        "blocks": [[HEADER, 4, 5, 0]], "bounds": [[0, 5], [0, 3]], "ends": [1],
        "input": { "format": "tns", "sha256": "", "shape": null }, "scale": 1.0, "shape": [5, 3],
    });
    let first = ["/blocks/0/0", "/blocks/0/1", "/blocks/0/2", "/blocks/0/3"];
    let then = [
        "/bounds/0/0",
        "/bounds/0/1",
        "/bounds/1/0",
        "/bounds/1/1",
        "/ends/0",
    ];
    let last = ["/shape/1", "/shape/0"];
    let places = first.into_iter().chain(then).zip(&numbers);
    for (place, &number) in places.chain(last.into_iter().zip(numbers.iter().rev())) {
        *footer.pointer_mut(place).expect("written above") = json!(number);
    }
    footer
}

/// The same store with lengths and checksums that are right.
fn sealed(input: &[u8]) -> Vec<u8> {
    if input.len() < HEADER {
        return input.to_vec();
    }
    let offset = number(input, 16).clamp(HEADER, input.len());
    let mut footer = match serde_json::from_slice(&input[offset..]) {
        Ok(footer) => footer,
        Err(_) => footer_of(&input[offset..]),
    };
    seal_blocks(&mut footer, &input[..offset]);
    let footer = footer.to_string().into_bytes();
    let mut bytes = input[..16].to_vec();
    bytes.extend((offset as u64).to_le_bytes());
    bytes.extend((footer.len() as u64).to_le_bytes());
    bytes.extend(crc32fast::hash(&footer).to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(&input[HEADER..offset]);
    bytes.extend(footer);
    bytes
}

fn read<T: Element>(bytes: &[u8]) -> Result<(), IoError> {
    let store = Store::<T>::open(&scratch::file("input.store", bytes))?;
    let shape = store.tiling().shape();
    if shape.iter().sum::<usize>() > INDICES {
        return Ok(());
    }
    match OutOfCore::new(store) {
        Err(e) => one_line(&e),
        Ok(data) => {
            let total = data.total();
            assert!(total > 0.0 && total.is_finite());
            for mode in 0..2 {
                let sum: f64 = data.marginal(mode).expect("sums").iter().sum();
                assert!((sum - total).abs() <= 1e-6 * total, "{sum} is not {total}");
            }
            assert!(!data.self_information().expect("read before").is_nan());
            let factors = shape.map(|size| DMatrix::from_element(size, 1, T::one()));
            let factors = [0, 1].map(|mode| Factor::Columns(&factors[mode]));
            let model = Cp {
                weights: None,
                factors: &factors,
            };
            let both = Request::counts(Modes::all(2));
            let e = data.e_step(&model, &both).expect("read before");
            for mode in 0..2 {
                let sum: f64 = e.counts(mode).iter().map(|x| x.to_f64()).sum();
                assert!((sum - total).abs() <= 1e-4 * total, "{sum} is not {total}");
            }
        }
    }
    Ok(())
}

fn run(input: &[u8]) -> bool {
    let bytes = sealed(input);
    let mut opened = false;
    for result in [read::<f64>(input), read::<f64>(&bytes), read::<f32>(&bytes)] {
        match result {
            Ok(()) => opened = true,
            Err(e) => one_line(&e),
        }
    }
    opened
}
