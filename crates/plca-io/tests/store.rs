//! Stores of sparse data: the bits of memory, and a name for everything that happens to the file.

use std::path::{Path, PathBuf};

use plca_io::{
    DataFile, Element, IoError, ReadOptions, Store, StoreWriter, read_data_with, sha256_file,
};
use plca_tensor::{Data, OutOfCore, SparseTensor};

/// A folder with a text in it, and the path of a store beside it.
fn folder(name: &str, text: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (input, store) = (folder.path().join(name), folder.path().join("v.store"));
    std::fs::write(&input, text).unwrap();
    (folder, input, store)
}

fn make<T: Element>(input: &Path, store: &Path, options: &ReadOptions) {
    let folder = store.parent().unwrap();
    let writer = StoreWriter::<T>::read(input, options, folder).unwrap();
    writer.write(store).unwrap();
}

fn open(store: &Path) -> OutOfCore<f64, Store<f64>> {
    OutOfCore::new(Store::open(store).unwrap()).unwrap()
}

fn entries<T: Element>(data: &dyn Data<T>) -> Vec<(Vec<usize>, u64)> {
    let mut found = Vec::new();
    data.visit(&mut |index, x| found.push((index.to_vec(), x.to_bits())))
        .unwrap();
    found
}

/// Entries in no order, some twice and three times, some zero, the larger part of them in the first column.
fn text(rows: usize, columns: usize, count: usize) -> String {
    let mut state = 1u64;
    let mut next = |n: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(99);
        (state >> 33) as usize % n
    };
    let line = |at: usize| {
        let column = if at.is_multiple_of(3) {
            next(columns)
        } else {
            0
        };
        format!(
            "{} {} {}\n",
            1 + next(rows),
            1 + column,
            next(9) as f64 / 7.0
        )
    };
    (0..count).map(line).collect()
}

fn check<T: Element>(input: &Path, store: &Path, options: &ReadOptions) {
    make::<T>(input, store, options);
    let Ok(DataFile::Sparse(memory)) = read_data_with::<T>(input, options) else {
        panic!("sparse");
    };
    let memory = SparseTensor::new(memory).unwrap();
    let read = OutOfCore::new(Store::<T>::open(store).unwrap()).unwrap();
    assert_eq!(
        (read.shape(), read.summary()),
        (memory.shape(), memory.summary())
    );
    assert_eq!(read.total().to_bits(), memory.total().to_bits());
    assert!(entries(&read) == entries(&memory));
}

#[test]
fn stores_hold_what_memory_holds() {
    let options = ReadOptions::default();
    for (rows, columns, count) in [(900, 50, 70_000), (40, 800, 40_000), (5, 5, 9)] {
        let text = text(rows, columns, count);
        let (_folder, input, store) = folder("v.tns", &text);
        check::<f64>(&input, &store, &options);
        check::<f32>(&input, &store, &options);
        let shape = Some(vec![rows + 3, columns + 1]);
        let wider = ReadOptions {
            shape,
            ..options.clone()
        };
        check::<f64>(&input, &store, &wider);
        let banner = "%%MatrixMarket matrix coordinate real general";
        let (_folder, input, store) = folder(
            "v.mtx",
            &format!("{banner}\n{rows} {columns} {count}\n{text}"),
        );
        check::<f64>(&input, &store, &options);
    }
    let banner = "%%MatrixMarket matrix coordinate pattern symmetric";
    let (_folder, input, store) = folder("v.mtx", &format!("{banner}\n3 3 3\n2 1\n3 3\n2 1\n"));
    check::<f64>(&input, &store, &options);
}

/// What scipy wrote, in its three forms.
/// `testdata/earlier.store` was written by the command before its footer had a type.
#[test]
fn stores_of_earlier_versions_are_read_and_written_alike() {
    let text = "3 4 2\n1 2 1.5\n3 1 0.375\n1 2 0.25\n2 4 1e-3\n";
    let (_folder, input, store) = folder("v.tns", text);
    let options = ReadOptions {
        shape: Some(vec![3, 4]),
        ..ReadOptions::default()
    };
    check::<f64>(&input, &store, &options);
    let earlier = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/earlier.store");
    assert!(entries(&open(&earlier)) == entries(&open(&store)));
    assert_eq!(
        std::fs::read(&earlier).unwrap(),
        std::fs::read(&store).unwrap()
    );
}

#[test]
fn archives_of_scipy_are_read_entry_by_entry() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    for name in ["coo_stored", "csr_stored", "csc"] {
        let bytes = std::fs::read(testdata.join(format!("sparse_{name}.npz"))).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (input, store) = (folder.path().join("v.npz"), folder.path().join("v.store"));
        std::fs::write(&input, bytes).unwrap();
        check::<f64>(&input, &store, &ReadOptions::default());
    }
}

/// Values at the ends of the range, whose sums need a scale.
#[test]
fn extreme_values_keep_their_bits() {
    for (x, y) in [("3e-310", "5e-324"), ("1e300", "7e299")] {
        let (_folder, input, store) = folder("v.tns", &format!("1 1 {x}\n2 2 {y}\n1 1 {y}\n"));
        check::<f64>(&input, &store, &ReadOptions::default());
    }
}

/// Nothing but the store is left, whatever happens.
#[test]
fn inputs_are_refused_as_memory_refuses_them() {
    let refused = |name: &str, text: &str, why: &str| {
        let (folder, input, _) = folder(name, text);
        let options = ReadOptions::default();
        let e = StoreWriter::<f64>::read(&input, &options, folder.path()).unwrap_err();
        assert_eq!(e.path(), input);
        let e = e.to_string();
        assert!(e.ends_with(why), "{e}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    };
    refused(
        "v.tns",
        "1 1 1\n1 2 -1\n",
        "v.tns: line 2: value -1 is negative; numbers >= 0 are needed",
    );
    refused(
        "v.tns",
        "1 1 1 2\n",
        "v.tns: line 1: has 3 indices, expected the two of a matrix",
    );
    refused("v.tns", "", "v.tns: holds no entry");
    let far = "v.tns: has shape [4000000000, 1] with 1 entries; give the shape explicitly if this is intended";
    refused("v.tns", "4000000000 1 1\n", far);
    let dense = "is dense: only sparse data are read entry by entry";
    let banner = "%%MatrixMarket matrix array real general\n";
    refused("v.mtx", &format!("{banner}1 1\n1\n"), dense);
    refused("v.mtx", &format!("{banner}0 0\n"), dense);
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    refused(
        "v.mtx",
        &format!("{banner}0 2 0\n"),
        "v.mtx: mode 0 is empty (shape [0, 2])",
    );
    refused(
        "v.mtx",
        &format!("{banner}2 2 1\n"),
        "0 entries, but the header announces 1",
    );
    refused(
        "v.csv",
        "1,2\n",
        "cannot be read entry by entry; expected .mtx, .tns or docword.*.txt, also with .gz, .npz or .mat",
    );
}

/// Every single byte of the file, the whole file, its end, and another file of the same length.
#[test]
fn whatever_happens_to_the_file_is_named() {
    let (_folder, input, store) = folder("v.tns", "1 1 3\n2 3 0.5\n2 1 2\n");
    make::<f64>(&input, &store, &ReadOptions::default());
    let data = open(&store);
    let good = std::fs::read(&store).unwrap();
    let blocks = 40..40 + 2 * 8 + 3 * 12;
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 4;
        std::fs::write(&store, bytes).unwrap();
        let opened = Store::<f64>::open(&store);
        if blocks.contains(&at) {
            let e = OutOfCore::new(opened.unwrap()).unwrap_err().to_string();
            assert!(
                e.contains("v.store: block 0: the file was changed: checksum"),
                "{at}: {e}"
            );
        } else {
            let e = opened.unwrap_err();
            assert_eq!(e.path(), store);
            let e = e.to_string();
            assert!(
                ["changed", "is not a store"].iter().any(|w| e.contains(w)),
                "{at}: {e}"
            );
        }
    }
    for length in 0..good.len() {
        std::fs::write(&store, &good[..length]).unwrap();
        let e = Store::<f64>::open(&store).unwrap_err().to_string();
        let why = if length < 8 {
            "is not a store"
        } else {
            "the file was changed"
        };
        assert!(e.contains(why), "{length}: {e}");
    }
    // While it is in use: what it was when it was opened is what it must be.
    std::fs::write(&store, &good).unwrap();
    assert!(data.self_information().unwrap().is_finite());
    let failing = |why: &str| {
        let data = {
            let now = std::fs::read(&store).ok();
            std::fs::write(&store, &good).unwrap();
            let data = open(&store);
            match now {
                Some(now) => std::fs::write(&store, now).unwrap(),
                None => std::fs::remove_file(&store).unwrap(),
            }
            data
        };
        let e = data.self_information().unwrap_err().to_string();
        assert!(e.contains("v.store: block 0: ") && e.contains(why), "{e}");
        // It can be read again if the file comes back.
        std::fs::write(&store, &good).unwrap();
        assert!(data.self_information().is_ok());
    };
    std::fs::write(&store, &good[..good.len() - 1]).unwrap();
    failing("bytes, ");
    std::fs::remove_file(&store).unwrap();
    failing("No such file");
    let (_other, input, _) = folder("v.tns", "1 1 4\n2 3 0.5\n2 1 2\n");
    make::<f64>(&input, &store, &ReadOptions::default());
    failing("changed");
}

#[test]
fn stores_of_something_else_are_not_taken() {
    let (folder, input, store) = folder("v.tns", "1 1 3\n2 3 0.5\n");
    let options = ReadOptions::default();
    make::<f64>(&input, &store, &options);
    let e = Store::<f32>::open(&store).unwrap_err().to_string();
    assert!(e.ends_with("v.store: holds f64, f32 is needed"), "{e}");
    let (sum, read) = (
        sha256_file(&input).unwrap(),
        Store::<f64>::open(&store).unwrap(),
    );
    assert_eq!(read.made_from(&input, &sum, &options), Ok(()));
    let refused = |read: &Store<f64>, input: &Path, sum: &str, options: &ReadOptions, why: &str| {
        let e = read.made_from(input, sum, options).unwrap_err();
        assert_eq!(e, IoError::new(&store, why));
    };
    refused(
        &read,
        &input,
        "other",
        &options,
        "was made from a file with other contents",
    );
    let renamed = folder.path().join("v.mtx");
    refused(&read, &renamed, &sum, &options, "was made from a .tns file");
    let shape = Some(vec![2, 3]);
    let wide = ReadOptions {
        shape,
        ..options.clone()
    };
    let why = "was made for the shape that the entries need";
    refused(&read, &input, &sum, &wide, why);
    make::<f64>(&input, &store, &wide);
    let read = Store::<f64>::open(&store).unwrap();
    refused(
        &read,
        &input,
        &sum,
        &options,
        "was made for the shape [2, 3]",
    );
    // A later version.
    let mut bytes = std::fs::read(&store).unwrap();
    bytes[8] += 1;
    let sum = crc32(&bytes[..36]);
    bytes[36..40].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&store, bytes).unwrap();
    let e = Store::<f64>::open(&store).unwrap_err().to_string();
    assert!(e.ends_with("store version 3, this program reads 2"), "{e}");
}

/// A store with right checksums whose footer is another, and what is said of it.
fn with_footer(store: &Path, good: &[u8], change: impl Fn(String) -> String) -> String {
    let offset = u64::from_le_bytes(good[16..24].try_into().unwrap()) as usize;
    let footer = change(String::from_utf8(good[offset..].to_vec()).unwrap());
    let mut bytes = good[..offset].to_vec();
    bytes[24..32].copy_from_slice(&(footer.len() as u64).to_le_bytes());
    bytes[32..36].copy_from_slice(&crc32(footer.as_bytes()).to_le_bytes());
    let sum = crc32(&bytes[..36]);
    bytes[36..40].copy_from_slice(&sum.to_le_bytes());
    bytes.extend(footer.as_bytes());
    std::fs::write(store, bytes).unwrap();
    let opened = Store::<f64>::open(store);
    opened.map_or_else(|e| e.to_string(), |_| "opened".into())
}

/// Zeros explain no index of a store, where they are left out; a shape that was asked for needs no explanation.
#[test]
fn what_would_not_be_believed_is_not_written() {
    let zeros = "1 1 0\n".repeat(99);
    let (folder, input, store) = folder("v.tns", &format!("{zeros}16783000 1 1\n"));
    let options = ReadOptions::default();
    let writer = StoreWriter::<f64>::read(&input, &options, folder.path()).unwrap();
    let e = writer.write(&store).unwrap_err().to_string();
    let why = "v.store: has shape [16783000, 1] with 1 entries; give the shape explicitly if this is intended";
    assert!(e.ends_with(why), "{e}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let shape = Some(vec![16_783_000, 1]);
    make::<f64>(&input, &store, &ReadOptions { shape, ..options });
    assert_eq!(open(&store).summary().nnz, 1);
}

/// All checksums are right: what is described is what cannot be.
#[test]
fn footers_that_lie_are_refused() {
    let (_folder, input, store) = folder("v.tns", "1 1 3\n2 3 0.5\n2 1 2\n");
    make::<f64>(&input, &store, &ReadOptions::default());
    let good = std::fs::read(&store).unwrap();
    let said = |from: &str, to: &str| {
        with_footer(&store, &good, |footer| {
            assert_eq!(footer.matches(from).count(), 1, "{from} in {footer}");
            footer.replace(from, to)
        })
    };
    assert_eq!(said("\"scale\":1.0", "\"scale\":2.0"), "opened");
    let wide = |rows: &str, columns: &str, asked: &str| {
        with_footer(&store, &good, |footer| {
            let footer = footer.replace("\"shape\":null", &format!("\"shape\":{asked}"));
            let footer =
                footer.replace("\"shape\":[2,3]", &format!("\"shape\":[{rows},{columns}]"));
            footer.replace("[[0,3],[0,2]]", &format!("[[0,{columns}],[0,{rows}]]"))
        })
    };
    assert_eq!(wide("2", "16777214", "null"), "opened");
    let far = "footer: has shape [2, 16777407] with 3 entries; give the shape explicitly if this is intended";
    let e = wide("2", "16777407", "null");
    assert!(e.ends_with(far), "{e}");
    assert_eq!(wide("2", "16777406", "null"), "opened");
    assert_eq!(wide("2", "16777407", "[2,16777407]"), "opened");
    let all = "4294967295";
    let e = wide(all, all, "null");
    assert!(
        e.ends_with("entries; give the shape explicitly if this is intended"),
        "{e}"
    );
    for (from, to) in [
        ("\"shape\":null", "\"shape\":[2,4]"),
        ("\"ends\":[1]", "\"ends\":[0]"),
        ("\"ends\":[1]", "\"ends\":[1,1]"),
        ("\"blocks\":[[40,", "\"blocks\":[[40,0,0,0],[40,"),
        ("\"blocks\":[[40,2,3,", "\"blocks\":[[40,5,1,"),
        ("\"blocks\":[[40,2,3,", "\"blocks\":[[40,-2,3,"),
        ("\"scale\":1.0", "\"scale\":0.0"),
        ("\"scale\":1.0", "\"scale\":1e999"),
        ("[0,3]", "[0,2]"),
        ("\"bounds\"", "\"bonds\""),
        ("{\"blocks\"", "[{\"blocks\""),
    ] {
        let e = said(from, to);
        assert!(e.contains("v.store: footer: "), "{from} -> {to}: {e}");
    }
}

/// A file that is all holes takes no room on a disk, however long it is: what it claims is refused before it is read.
#[cfg(unix)]
#[test]
fn claims_of_hollow_files_are_not_read() {
    use std::fs::File;
    use std::io::{Seek, SeekFrom, Write};
    let (_folder, input, store) = folder("v.tns", "1 1 3\n2 3 0.5\n2 1 2\n");
    make::<f64>(&input, &store, &ReadOptions::default());
    let good = std::fs::read(&store).unwrap();
    let hollow = |offset: u64, footer: &[u8], length: u64| {
        let mut header = good[..16].to_vec();
        header.extend(offset.to_le_bytes());
        header.extend(length.to_le_bytes());
        header.extend(crc32(footer).to_le_bytes());
        header.extend(crc32(&header).to_le_bytes());
        std::fs::write(&store, header).unwrap();
        let mut file = File::options().write(true).open(&store).unwrap();
        file.set_len(offset + length).unwrap();
        file.seek(SeekFrom::Start(offset)).unwrap();
        file.write_all(footer).unwrap();
        Store::<f64>::open(&store).unwrap_err().to_string()
    };
    let e = hollow(40, b"{}", 1 << 40);
    let why = "v.store: footer: claims 1099511627776 bytes, more than 65536";
    assert!(e.ends_with(why), "{e}");
    // A row of two columns has two entries at most, and no block goes on after 65536.
    let footer = String::from_utf8(good[92..].to_vec()).unwrap();
    assert_eq!(footer.matches("[[40,2,3,").count(), 1);
    for entries in [1 << 31, 65_538] {
        let footer = footer.replace("[[40,2,3,", &format!("[[40,2,{entries},"));
        let length = footer.len() as u64;
        let e = hollow(40 + 16 + 12 * entries, footer.as_bytes(), length);
        assert!(e.ends_with("footer: does not describe the blocks"), "{e}");
    }
}

/// CRC-32 by its definition.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xEDB8_8320 & 0u32.wrapping_sub(crc & 1));
    let byte = |crc: u32, &b: &u8| (0..8).fold(crc ^ u32::from(b), step);
    !bytes.iter().fold(!0, byte)
}
