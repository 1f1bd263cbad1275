//! MATLAB files of level 5: those of scipy (`testdata/generate.py`), and bytes that are made here.

use std::io::Write;
use std::path::{Path, PathBuf};

use plca_io::{
    DataFile, Mask, ReadOptions, Store, StoreWriter, read_data_with, read_mask, sha256_file,
};
use plca_tensor::{Data, OutOfCore};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(name)
}

/// Shape and cells, those of a sparse array by their index.
#[derive(Debug, PartialEq)]
enum Read {
    Dense(Vec<usize>, Vec<f64>),
    Sparse(Vec<usize>, Vec<(Vec<u32>, f64)>),
}

fn read(path: &Path, array: Option<&str>) -> Result<Read, String> {
    let options = ReadOptions {
        array: array.map(str::to_string),
        ..ReadOptions::default()
    };
    let shown = path.display().to_string();
    match read_data_with::<f64>(path, &options) {
        Ok(DataFile::Dense(v)) => {
            assert!(v.fortran);
            Ok(Read::Dense(v.shape, v.values))
        }
        Ok(DataFile::Sparse(v)) => {
            let indices = v.indices.chunks(2).map(<[u32]>::to_vec);
            Ok(Read::Sparse(v.shape, indices.zip(v.values).collect()))
        }
        Err(e) => Err(e.to_string()[shown.len() + 2..].to_string()),
    }
}

/// What is read from bytes.
fn of(bytes: &[u8]) -> Result<Read, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.mat");
    std::fs::write(&path, bytes).unwrap();
    read(&path, None)
}

/// The matrix of the sparse files, column by column.
fn entries(values: [f64; 3]) -> Read {
    let cells = [[2, 0], [0, 1], [2, 3]].map(|cell| cell.to_vec());
    Read::Sparse(vec![3, 4], cells.into_iter().zip(values).collect())
}

#[test]
fn every_type_is_read() {
    for dtype in ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"] {
        let want = Read::Dense(vec![2, 3], vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert_eq!(read(&file(&format!("dense_{dtype}.mat")), None), Ok(want));
    }
    let packed = Read::Dense(vec![2, 3], vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(read(&file("dense_packed.mat"), None), Ok(packed));
    let flags = Read::Dense(vec![2, 3], vec![0.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(read(&file("dense_bool.mat"), None), Ok(flags));
    let cube = (0..24).map(|n| f64::from(n / 6 + 4 * (n / 2 % 3) + 12 * (n % 2)));
    let cube = Read::Dense(vec![2, 3, 4], cube.collect());
    assert_eq!(read(&file("dense_cube.mat"), None), Ok(cube));
    for name in ["sparse.mat", "sparse_packed.mat"] {
        assert_eq!(read(&file(name), None), Ok(entries([2.0, 1.5, 3.0])));
    }
    assert_eq!(read(&file("sparse_bool.mat"), None), Ok(entries([1.0; 3])));
}

#[test]
fn one_of_several_is_named() {
    let two = file("two_arrays.mat");
    let dense = Read::Dense(vec![2, 3], vec![0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(read(&two, Some("v")), Ok(dense));
    assert_eq!(read(&two, Some("w")), Ok(entries([2.0, 1.5, 3.0])));
    #[rustfmt::skip]
    let cases = [
        ("two_arrays.mat", None, "holds 2 arrays, expected one; of a file of data --array NAME chooses: v, w"),
        ("two_arrays.mat", Some("x"), "has no array `x`; it holds v, w"),
        ("two_arrays.mat", Some("note"), "`note` is text: save a numeric array, full or sparse"),
        ("bad_complex.mat", None, "holds no array of real numbers (`v` is complex): save a numeric array, full or sparse"),
        ("bad_struct.mat", None, "holds no array of real numbers (`v` is a struct, `note` is text): save a numeric array, full or sparse"),
        ("bad_level4.mat", None, "is not a MATLAB file of version 5 to 7: save it with `-v7`"),
        // The same way for archives, and not for files whose array has no name.
        ("two_arrays.npz", None, "holds 2 arrays, expected one; of a file of data --array NAME chooses: v, w"),
        ("two_arrays.npz", Some("x"), "has no array `x`; it holds v, w"),
        ("dense_f8_le.npy", Some("v"), "has no array `v`: only those of .npz and .mat files have names"),
    ];
    for (name, array, why) in cases {
        assert_eq!(read(&file(name), array), Err(why.into()), "{name}");
    }
    let options = ReadOptions {
        array: Some("w".into()),
        ..ReadOptions::default()
    };
    let Ok(DataFile::Dense(w)) = read_data_with::<f64>(file("two_arrays.npz"), &options) else {
        panic!("not read");
    };
    assert_eq!(w.values, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

/// Writes level 5 in either byte order.
#[derive(Clone, Copy)]
struct Writer {
    big_endian: bool,
}

const LITTLE: Writer = Writer { big_endian: false };

impl Writer {
    fn words(self, words: &[u32]) -> Vec<u8> {
        let order = |w: &u32| match self.big_endian {
            true => w.to_be_bytes(),
            false => w.to_le_bytes(),
        };
        words.iter().flat_map(order).collect()
    }

    fn element(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut out = self.words(&[kind, body.len() as u32]);
        out.extend(body);
        out.resize(out.len().next_multiple_of(8), 0);
        out
    }

    /// An array of this class and shape named `v`, with these elements behind the name.
    fn array(self, class: u32, shape: &[u32], parts: &[Vec<u8>]) -> Vec<u8> {
        let head = [
            self.element(6, &self.words(&[class, 0])),
            self.element(5, &self.words(shape)),
            self.element(1, b"v"),
        ];
        self.element(14, &[head.concat(), parts.concat()].concat())
    }

    fn file(self, elements: &[Vec<u8>]) -> Vec<u8> {
        let mut out = b"MATLAB 5.0 MAT-file".to_vec();
        out.resize(124, b' ');
        out.extend(match self.big_endian {
            true => *b"\x01\x00MI",
            false => *b"\x00\x01IM",
        });
        out.extend(elements.concat());
        out
    }
}

fn packed(element: &[u8]) -> Vec<u8> {
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
    zlib.write_all(element).unwrap();
    let body = zlib.finish().unwrap();
    [LITTLE.words(&[15, body.len() as u32]), body].concat()
}

#[test]
fn either_byte_order_is_read() {
    for big_endian in [false, true] {
        let w = Writer { big_endian };
        let order = |x: f64| match big_endian {
            true => x.to_be_bytes(),
            false => x.to_le_bytes(),
        };
        let values = w.element(9, &[1.5, -2.0].map(order).concat());
        let dense = w.file(&[w.array(6, &[1, 2], &[values])]);
        assert_eq!(of(&dense), Ok(Read::Dense(vec![1, 2], vec![1.5, -2.0])));
        // Numbers that share the eight bytes of their type and length, in a narrower type than that of the array.
        let mut short = w.words(&[2 << 16 | 2]);
        short.extend([7, 255, 0, 0]);
        let dense = w.file(&[w.array(6, &[1, 2], &[short])]);
        assert_eq!(of(&dense), Ok(Read::Dense(vec![1, 2], vec![7.0, 255.0])));
        // More room than entries, as MATLAB leaves it.
        let parts = [
            w.element(5, &w.words(&[2, 0, 2, 9])),
            w.element(5, &w.words(&[0, 1, 2, 2, 3])),
            w.element(9, &[2.0, 1.5, 3.0, f64::NAN].map(order).concat()),
        ];
        let sparse = w.file(&[w.array(5, &[3, 4], &parts)]);
        assert_eq!(of(&sparse), Ok(entries([2.0, 1.5, 3.0])));
    }
}

/// What MATLAB keeps of objects has no name, and no sizes.
#[test]
fn what_belongs_to_objects_is_passed_over() {
    let w = LITTLE;
    let number = w.array(9, &[1, 1], &[w.element(2, &[5])]);
    let object = [
        w.element(6, &w.words(&[17, 0])),
        w.element(1, b"o"),
        w.element(1, b"MCOS"),
    ];
    let object = w.element(14, &object.concat());
    let nameless = [
        w.element(6, &w.words(&[9, 0])),
        w.element(5, &w.words(&[1, 2])),
        w.element(1, b""),
        w.element(2, &[1, 2]),
    ];
    let nameless = w.element(14, &nameless.concat());
    let all = w.file(&[object.clone(), number, nameless]);
    assert_eq!(of(&all), Ok(Read::Dense(vec![1, 1], vec![5.0])));
    let why =
        "holds no array of real numbers (`o` is an object): save a numeric array, full or sparse";
    assert_eq!(of(&w.file(&[object])), Err(why.into()));
}

/// What is named at the first claim suffices for all that follow.
#[test]
fn sparse_arrays_say_what_all_of_them_needs() {
    let w = LITTLE;
    let ints = |words: &[u32]| w.element(5, &w.words(words));
    let columns = 100_000;
    let rows: Vec<u32> = (0..2 * columns).map(|at| at % 2).collect();
    let ends: Vec<u32> = (0..=columns).map(|at| 2 * at).collect();
    let values = w.element(2, &vec![1; rows.len()]);
    let array = w.array(5, &[2, columns], &[ints(&rows), ints(&ends), values]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.mat");
    std::fs::write(&path, w.file(&[packed(&array)])).unwrap();
    let within = |limit: u64| {
        let options = ReadOptions {
            unpack_limit: Some(limit),
            ..ReadOptions::default()
        };
        read_data_with::<f64>(&path, &options)
    };
    let told = within(1 << 18).unwrap_err().needs();
    let told = told.expect("a limit of memory");
    assert!(within(told).is_ok(), "{told}");
}

#[test]
fn files_that_lie_are_refused() {
    let w = LITTLE;
    let dense = |shape: &[u32], values: Vec<u8>| w.file(&[w.array(6, shape, &[values])]);
    let ints = |words: &[u32]| w.element(5, &w.words(words));
    let ones = |n: usize| w.element(2, &vec![1; n]);
    let sparse = |shape: [u32; 2], rows: &[u32], ends: &[u32], n: usize| {
        w.file(&[w.array(5, &shape, &[ints(rows), ints(ends), ones(n)])])
    };
    let mut hdf = w.file(&[]);
    hdf[124..126].copy_from_slice(&[0, 2]);
    let huge = w.words(&[2, 4_000_000_000]);
    let bomb = |length: u32| packed(&w.words(&[14, length]));
    #[rustfmt::skip]
    let cases = [
        (hdf, "is of version 7.3 (HDF5), expected 5 to 7: save it with `-v7`"),
        (b"\x89HDF\r\n\x1a\n".to_vec(), "is of version 7.3 (HDF5), expected 5 to 7: save it with `-v7`"),
        (vec![], "is not a MATLAB file of version 5 to 7: save it with `-v7`"),
        (vec![0; 200], "is not a MATLAB file of version 5 to 7: save it with `-v7`"),
        (w.file(&[]), "holds no array of real numbers (is empty): save a numeric array, full or sparse"),
        (w.file(&[w.element(9, &[0; 8])]), "byte 128: an element of type 9 where an array is expected"),
        (w.file(&[w.words(&[14, 100])]), "byte 128: claims 100 bytes, 0 follow"),
        (w.file(&[vec![0; 4]]), "byte 128: the file ends too early"),
        (w.file(&[w.words(&[15, 0])]), "byte 128: the file ends too early"),
        (w.file(&[bomb(4_000_000_000)]), "byte 128: claims 4000000000 bytes, at most 16640 can come"),
        (w.file(&[packed(&w.words(&[9, 8]))]), "byte 128: packs an element of type 9, not an array"),
        (w.file(&[w.element(14, &w.words(&[6, 100]))]), "byte 128: flags: claims 100 bytes, 0 follow"),
        (w.file(&[w.element(14, &[0; 4])]), "byte 128: flags: the array ends too early"),
        (dense(&[3], ones(3)), "byte 128: sizes: 4 bytes, expected two sizes or more"),
        (dense(&[u32::MAX, 1], ones(3)), "byte 128: sizes: -1 is below 0"),
        (dense(&[1; 65], ones(1)), "byte 128: sizes: 65 modes, at most 64 are read"),
        (dense(&[1; 1000], ones(1)), "byte 128: sizes: has 4000 bytes, more than 1024"),
        (dense(&[2, 3], ones(5)), "v: numbers: 5 numbers, shape [2, 3] needs 6"),
        (dense(&[1 << 30, 1 << 30, 1 << 30], ones(5)), "v: numbers: header: shape [1073741824, 1073741824, 1073741824] is too large"),
        (dense(&[2, 3], huge), "v: numbers: claims 4000000000 bytes, 0 follow"),
        (dense(&[1, 1], w.element(16, b"x")), "v: numbers: elements of type 16 are not numbers"),
        (dense(&[1, 1], w.words(&[5 << 16 | 2, 0])), "v: numbers: claims 5 bytes of four"),
        (sparse([3, 4], &[2, 3, 2], &[0, 1, 2, 2, 3], 3), "v: rows: entry 1: index 3 is outside 0..3"),
        (sparse([3, 4], &[2, 0, 2], &[0, 1, 2, 3], 3), "v: columns: does not describe 4 runs of 3 entries"),
        (sparse([3, 4], &[2, 0, 2], &[0, 1, 2, 2, 4], 3), "v: columns: entry 4: 4 is above the 3 stored entries"),
        (sparse([3, 4], &[2, 0, 2], &[0, 2, 1, 2, 3], 3), "v: columns: entry 2: 1 after 2"),
        (sparse([3, 4], &[2, 0, 2], &[1, 1, 2, 2, 3], 3), "v: columns: does not describe 4 runs of 3 entries"),
        (sparse([3, 4], &[2, 0, 2], &[0, 1, 2, 2, 3], 2), "v: numbers: 2 numbers, shape [3] needs 3"),
        (sparse([3, 1 << 30], &[2, 0, 2], &[0, 1], 3), "v: has shape [3, 1073741824] with 3 entries; give the shape explicitly if this is intended"),
        (w.file(&[w.array(5, &[1, 1, 1], &[ints(&[0]), ints(&[0, 1]), ones(1)])]), "v: sizes: 3 sizes, expected the two of a matrix"),
        (w.file(&[w.array(5, &[1, 1], &[w.element(9, &[0; 8]), ints(&[0, 1]), ones(1)])]), "v: rows: header: indices are of an integer type"),
        (w.file(&[w.array(9, &[1, 1], &[ones(1)]), w.array(9, &[1, 1], &[ones(1)])]), "an array's name occurs twice: `v`"),
    ];
    for (bytes, why) in cases {
        assert_eq!(of(&bytes), Err(why.into()));
    }
}

#[test]
fn every_truncation_is_refused() {
    for name in [
        "dense_f8.mat",
        "dense_packed.mat",
        "sparse.mat",
        "sparse_packed.mat",
    ] {
        let bytes = std::fs::read(file(name)).unwrap();
        for n in 0..bytes.len() {
            assert!(of(&bytes[..n]).is_err(), "{name}: {n} bytes");
        }
    }
}

/// One flipped bit of what is packed: the same array or an error, never another array.
#[test]
fn a_flipped_bit_of_what_is_packed_is_noticed() {
    for name in ["dense_packed.mat", "sparse_packed.mat"] {
        let bytes = std::fs::read(file(name)).unwrap();
        let whole = of(&bytes);
        for at in 128..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            let read = of(&flipped);
            assert!(
                read.is_err() || read == whole,
                "{name}: byte {at}: {read:?}"
            );
        }
    }
}

/// Entry by entry, and never for another array of the same file.
#[test]
fn stores_are_made_of_a_named_array() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.store");
    let named = |array: &str| ReadOptions {
        array: Some(array.into()),
        ..ReadOptions::default()
    };
    let two = file("two_arrays.mat");
    let sorted = StoreWriter::<f64>::read(&two, &named("w"), folder.path()).unwrap();
    sorted.write(&path).unwrap();
    let store = Store::<f64>::open(&path).unwrap();
    let sha256 = sha256_file(&two).unwrap();
    assert!(store.made_from(&two, &sha256, &named("w")).is_ok());
    let other = store.made_from(&two, &sha256, &named("v")).unwrap_err();
    assert!(other.to_string().ends_with("was made from the array `w`"));
    let data = OutOfCore::new(store).unwrap();
    assert_eq!(data.marginal(0).unwrap(), [1.5, 0.0, 5.0]);
    let dense = StoreWriter::<f64>::read(&two, &named("v"), folder.path()).unwrap_err();
    assert!(
        dense
            .to_string()
            .ends_with("is dense: only sparse data are read entry by entry")
    );
}

#[test]
fn masks_are_read() {
    let Ok(Mask::Dense(seen)) = read_mask(&file("dense_bool.mat"), &[2, 3], None) else {
        panic!("not dense");
    };
    assert_eq!(seen.values, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    let Ok(Mask::Hidden(cells)) = read_mask(&file("sparse.mat"), &[3, 4], None) else {
        panic!("not sparse");
    };
    assert_eq!(cells.indices, [2, 0, 0, 1, 2, 3]);
    assert!(read_mask(&file("sparse.mat"), &[4, 4], None).is_err());
}
