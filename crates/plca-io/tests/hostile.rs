//! Files that lie, are cut short or are noise: an error with a place, never a panic or a large allocation.

use std::io::Write;
use std::path::Path;

use plca_io::{
    DataFile, ReadOptions, Store, StoreWriter, read_checkpoint, read_data, read_data_with,
    read_mask, read_model, sha256_file, write_checkpoint, write_model,
};
use proptest::prelude::*;

fn message(name: &str, bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let error = read_data::<f64>(&path, None).unwrap_err().to_string();
    let (_, after) = error.split_once(name).unwrap();
    after[2..].to_string()
}

fn npy(header: &str, values: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    bytes
}

fn floats(shape: &str, values: &[u8]) -> Vec<u8> {
    npy(
        &format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n"),
        values,
    )
}

#[test]
fn npy_headers_that_lie() {
    let absurd = message("v.npy", &floats("(1000000, 1000000000)", &[0; 80]));
    assert!(
        absurd.starts_with("header: shape [1000000, 1000000000] needs 8000000000000000 bytes"),
        "{absurd}"
    );
    let overflow = message("v.npy", &floats("(4294967296, 4294967296)", &[]));
    assert_eq!(
        overflow,
        "header: shape [4294967296, 4294967296] is too large"
    );
    #[rustfmt::skip]
    let cases = [
        (floats("(3,)", &[0; 16]), "entry 0: the file ends here, shape [3] needs 3 values"),
        (floats("(1,)", &[0; 9]), "bytes after the 1 values of shape [1]"),
        (floats("(-1,)", &[]), "header: size `-1` in the shape"),
        (floats("3", &[]), "header: the shape is not a tuple"),
        (npy("{}", &[]), "header: no field `descr`"),
        (b"\x93NUMPY\x04\x00aaaa".to_vec(), "unknown .npy version 4"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xffaaaa".to_vec(), "header: claims 4294967295 bytes, more than 65536"),
        (b"\x93NUMPY\x01\x00\xff\xffaaaa".to_vec(), "the file ends too early"),
        (b"NUMPY   ".to_vec(), "not a .npy file (wrong magic number)"),
        (b"".to_vec(), "the file ends too early"),
    ];
    for (bytes, why) in cases {
        assert_eq!(message("v.npy", &bytes), why);
    }
}

#[test]
fn text_errors_name_line_and_value() {
    let unknown = match cfg!(feature = "parquet") {
        true => {
            "unknown extension; known are .npy, .npz, .mat; .mtx, .mm, .tns, .csv, .tsv, .svmlight, .libsvm, .ldac and docword.*.txt, also with .gz; .parquet; a table of numbers is renamed to end in .csv or .tsv, documents of lda-c in .ldac"
        }
        false => {
            "unknown extension; known are .npy, .npz, .mat; .mtx, .mm, .tns, .csv, .tsv, .svmlight, .libsvm, .ldac and docword.*.txt, also with .gz; a table of numbers is renamed to end in .csv or .tsv, documents of lda-c in .ldac"
        }
    };
    let mtx = |rest: &str| format!("%%MatrixMarket matrix coordinate real general\n{rest}");
    let array = |rest: &str| format!("%%MatrixMarket matrix array real symmetric\n{rest}");
    #[rustfmt::skip]
    let cases = [
        ("v.tns", "1 1 1\n1 0 2\n".to_string(), "line 2: index 0 in mode 1 is below 1"),
        ("v.tns", "1 1 1\n1 1 nan\n".into(), "line 2: value nan is not a number"),
        ("v.tns", "1 1 1\n1 1 1e999\n".into(), "line 2: value 1e999 is not finite"),
        ("v.tns", "1 1 1\n1 2\n".into(), "line 2: has 2 numbers, the tensor needs 2 indices and a value"),
        ("v.tns", "1.5 1 1\n".into(), "line 1: index `1.5` in mode 0 is not a whole number"),
        ("v.tns", "99999999999 1 1\n".into(), "line 1: index 99999999999 in mode 0 is above 4294967295"),
        ("v.tns", "4294967295 1 1\n".into(), "has shape [4294967295, 1] with 1 entries; give the shape explicitly if this is intended"),
        ("v.tns", "# nothing\n".into(), "holds no entry"),
        (
            "v.mtx",
            mtx("4294967295 4294967295 1\n1 1 1\n"),
            "has shape [4294967295, 4294967295] with 1 entries; give the shape explicitly if this is intended",
        ),
        ("v.mtx", "1 1 1\n".into(), "line 1: not a Matrix Market banner"),
        ("v.mtx", mtx("2 2 1\n3 1 1\n"), "line 3: index 3 in mode 0 is above 2"),
        ("v.mtx", mtx("2 2 2\n1 1 1\n"), "1 entries, but the header announces 2"),
        ("v.mtx", mtx("2 2 1\n1 1 1\n2 2 1\n"), "line 4: more than the 1 entries that the header announces"),
        ("v.mtx", mtx("2 2 1\n1 1\n"), "line 3: 2 numbers, expected 3"),
        ("v.mtx", mtx("2 2 1\n1 1 1 1\n"), "line 3: 4 numbers, expected 3"),
        ("v.mtx", mtx("2 2 1\n1 1 x\n"), "line 3: `x` is not a number"),
        ("v.mtx", mtx("9999999999 2 1\n"), "line 2: size 9999999999 in mode 0 is above 4294967295"),
        ("v.mtx", mtx(""), "the file ends before the sizes"),
        ("v.mtx", array("18446744073709551615 18446744073709551615\n"), "line 2: 18446744073709551615 x 18446744073709551615 is too large"),
        ("v.mtx", array("4000000000 4000000000\n1\n"), "1 entries, but the header announces 8000000002000000000"),
        ("v.csv", "1,2\n3\n".into(), "line 2: has 1 cells, the lines before have 2"),
        ("v.csv", "a,b\n3,x\n".into(), "line 2: column 2: `x` is not a number"),
        ("v.csv", "1\n\n3\n".into(), "line 3: follows the empty line 2 in a single column, write nan for a missing value"),
        ("v.csv", "1,2\n3,\"4\n\n5,6\n".into(), "line 2: a quote is not closed"),
        ("v.csv", "\"a,b\",c\n1,2\n\"3\",x\n".into(), "line 3: column 2: `x` is not a number"),
        ("v.csv", "".into(), "holds no numbers"),
        ("v.csv", "1,inf\n".into(), "line 1: column 2: value inf is not finite"),
        ("v.txt", "1".into(), unknown),
        ("v.npy.gz", "1".into(), unknown),
        ("v.npz", "PK".into(), "not a .npz archive: invalid Zip archive: Could not find EOCD"),
    ];
    for (name, text, why) in cases {
        assert_eq!(message(name, text.as_bytes()), why);
    }
    // Matrix Market by another ending.
    assert_eq!(message("v.mm", b"1 2"), message("v.mtx", b"1 2"));
    assert!(!message("v.mm", b"1 2").contains("extension"));
}

#[test]
fn single_precision_overflow_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.tns");
    std::fs::write(&path, "1 1e39\n").unwrap();
    assert!(read_data::<f64>(&path, None).is_ok());
    let error = read_data::<f32>(&path, None).unwrap_err().to_string();
    assert!(
        error.ends_with("line 1: value 1e39 is beyond f32, whose largest number is 3.4028235e38")
    );
}

type Members<'a> = &'a [(&'a str, Vec<u8>)];

fn archive(members: Members<'_>) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn whole(values: &[i64]) -> Vec<u8> {
    let n = values.len();
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    npy(
        &format!("{{'descr': '<i8', 'fortran_order': False, 'shape': ({n},), }}"),
        &bytes,
    )
}

/// A 2 x 3 CSR matrix of three entries.
fn csr(pointers: &[i64], indices: &[i64], shape: &[i64]) -> Vec<u8> {
    let format = npy(
        "{'descr': '|S3', 'fortran_order': False, 'shape': (), }",
        b"csr",
    );
    archive(&[
        ("format.npy", format),
        ("shape.npy", whole(shape)),
        ("data.npy", whole(&[7, 8, 9])),
        ("indices.npy", whole(indices)),
        ("indptr.npy", whole(pointers)),
    ])
}

#[test]
fn sparse_archives_that_lie() {
    #[rustfmt::skip]
    let cases = [
        (vec![0, 2, 3], vec![0, 3, 1], vec![2, 3], "indices.npy: entry 1: index 3 is outside 0..3"),
        (vec![0, 2, 3], vec![0, -1, 1], vec![2, 3], "indices.npy: entry 1: -1 is below 0"),
        (vec![0, 2, 3], vec![0, 1], vec![2, 3], "indices.npy: has 2 entries, data.npy has 3"),
        (vec![0, 9, 3], vec![0, 1, 1], vec![2, 3], "indptr.npy: entry 1: 9 is above the 3 stored entries"),
        (vec![0, 3], vec![0, 1, 1], vec![2, 3], "indptr.npy: does not describe 2 runs of 3 entries"),
        (vec![1, 2, 3], vec![0, 1, 1], vec![2, 3], "indptr.npy: does not describe 2 runs of 3 entries"),
        (vec![0, 3, 1, 3], vec![0, 1, 1], vec![3, 3], "indptr.npy: entry 2: 1 after 3"),
        (vec![0, 3], vec![0, 1, 1], vec![i64::MAX, 3], "shape.npy: size 9223372036854775807 is above 4294967295"),
        (
            vec![0, 3],
            vec![0, 1, 1],
            vec![4_000_000_000, 3],
            "has shape [4000000000, 3] with 3 entries; give the shape explicitly if this is intended",
        ),
        (vec![0, 3], vec![0, 1, 1], vec![3], "shape.npy: 1 sizes, expected the two of a matrix"),
    ];
    for (pointers, indices, shape, why) in cases {
        assert_eq!(message("v.npz", &csr(&pointers, &indices, &shape)), why);
    }
    // The control: unsorted but sound.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.npz");
    std::fs::write(&path, csr(&[0, 2, 3], &[2, 0, 1], &[2, 3])).unwrap();
    assert!(read_data::<f64>(&path, None).is_ok());
}

#[test]
fn archives_that_lie() {
    // Both names have as many bytes: renaming the second keeps the archive whole.
    let two = archive(&[
        ("a.npy", floats("(1,)", &[0; 8])),
        ("b.npy", floats("(1,)", &[0; 8])),
    ]);
    let mut twice = two.clone();
    for at in 0..twice.len() - 5 {
        if &twice[at..at + 5] == b"b.npy" {
            twice[at] = b'a';
        }
    }
    assert_eq!(message("v.npz", &twice), "a name occurs twice");
    // The last two bytes are the length of a comment.
    let end = twice.len();
    twice[end - 2] = 1;
    twice.push(b'!');
    assert_eq!(message("v.npz", &twice), "a name occurs twice");
    // The second entry of the directory points at the bytes of the first.
    let mut shared = two.clone();
    let entry = (0..shared.len()).rfind(|&at| shared[at..].starts_with(b"PK\x01\x02"));
    shared[entry.unwrap() + 42..][..4].fill(0);
    assert_eq!(message("v.npz", &shared), "members overlap in the file");
    let bomb = archive(&[("a.npy", floats("(1000000000000,)", &[0; 1 << 16]))]);
    let error = message("v.npz", &bomb);
    assert!(
        error.starts_with("a.npy: header: shape [1000000000000] needs"),
        "{error}"
    );
}

/// Whole numbers have no fractions, whatever their values say.
#[test]
fn fields_are_what_their_first_line_says() {
    let file = |field: &str, value: &str| {
        format!("%%MatrixMarket matrix coordinate {field} general\n2 2 2\n1 1 {value}\n2 2 1\n")
    };
    for field in ["integer", "unsigned-integer"] {
        for value in ["1.5", "1e-3"] {
            let why = message("v.mtx", file(field, value).as_bytes());
            assert!(
                why.starts_with(&format!("line 3: value {value} is not whole")),
                "{why}"
            );
        }
        let whole = file(field, "3.0");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.mtx");
        std::fs::write(&path, whole).unwrap();
        assert!(read_data::<f64>(&path, None).is_ok());
    }
    let why = message("v.tns", b"1,1,3\n");
    assert!(why.contains("blanks"), "{why}");
}

/// A member that holds a million zeros in a thousand bytes: refused for its length where another is needed, read where it is right.
#[test]
fn members_are_as_long_as_they_need_to_be() {
    let zeros = whole(&[0; 1_000_000]);
    let format = npy(
        "{'descr': '|S3', 'fortran_order': False, 'shape': (), }",
        b"csr",
    );
    let sparse = |shape: Vec<u8>, indptr: Vec<u8>, of_one: bool| {
        let values = if of_one { whole(&[0]) } else { zeros.clone() };
        archive(&[
            ("format.npy", format.clone()),
            ("shape.npy", shape),
            ("data.npy", values.clone()),
            ("indices.npy", values),
            ("indptr.npy", indptr),
        ])
    };
    let matrix = || whole(&[1, 1]);
    let packed = sparse(zeros.clone(), whole(&[0, 1]), true);
    assert!(packed.len() < 20_000);
    assert_eq!(
        message("v.npz", &packed),
        "shape.npy: 1000000 sizes, expected the two of a matrix"
    );
    assert_eq!(
        message("v.npz", &sparse(matrix(), zeros.clone(), true)),
        "indptr.npy: does not describe 1 runs of 1 entries"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.npz");
    std::fs::write(&path, sparse(matrix(), whole(&[0, 1_000_000]), false)).unwrap();
    let Ok(DataFile::Sparse(v)) = read_data::<f64>(&path, None) else {
        panic!("entries")
    };
    assert_eq!(v.values.len(), 1_000_000);
    std::fs::write(&path, archive(&[("v.npy", zeros)])).unwrap();
    let Ok(DataFile::Dense(v)) = read_data::<f64>(&path, None) else {
        panic!("an array")
    };
    assert_eq!(v.values.len(), 1_000_000);
}

/// Work goes with the square of the number of modes.
#[test]
fn more_than_64_modes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let what = "65 modes, at most 64 are read";
    let ones = |n: usize| format!("{}\n", vec!["1"; n + 1].join(" "));
    assert_eq!(
        message("v.tns", ones(65).as_bytes()),
        format!("line 1: {what}")
    );
    let path = folder.path().join("v.tns");
    std::fs::write(&path, ones(64)).unwrap();
    assert!(read_data::<f64>(&path, None).is_ok());
    let shape = |n: usize| format!("({})", vec!["1"; n].join(", "));
    let array = |n| floats(&shape(n), &[0; 8]);
    assert_eq!(message("v.npy", &array(65)), format!("header: {what}"));
    let packed = archive(&[("v.npy", array(65))]);
    assert_eq!(message("v.npz", &packed), format!("v.npy: header: {what}"));
    let path = folder.path().join("m.npz");
    std::fs::write(&path, packed).unwrap();
    let error = read_model(&path).unwrap_err().to_string();
    assert!(error.ends_with(what), "{error}");
    let path = folder.path().join("m.safetensors");
    for (n, refused) in [(64, false), (65, true)] {
        let header = format!(
            r#"{{"w":{{"dtype":"F64","shape":[{}],"data_offsets":[0,8]}}}}"#,
            vec!["1"; n].join(",")
        );
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend([0; 8]);
        std::fs::write(&path, bytes).unwrap();
        let error = read_model(&path).err().map(|e| e.to_string());
        assert_eq!(error.is_some_and(|e| e.ends_with(what)), refused);
    }
}

/// A pipe that nobody writes to keeps its reader waiting for ever.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "v.npy",
        "v.npz",
        "v.mat",
        "v.csv",
        "v.mtx.gz",
        "v.safetensors",
    ] {
        let path = folder.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let errors = [
            read_data::<f64>(&path, None).err(),
            read_mask(&path, &[1], None).err(),
            read_model(&path).err(),
            read_checkpoint(&path).err(),
            sha256_file(&path).err(),
            Store::<f64>::open(&path).err(),
        ];
        let errors: Vec<_> = errors
            .into_iter()
            .flatten()
            .map(|e| e.to_string())
            .collect();
        assert_eq!(errors.len(), 6);
        let refused = errors
            .iter()
            .filter(|e| e.ends_with("is not a regular file"));
        // Some know the ending before the file.
        assert!(refused.count() >= 4, "{errors:?}");
    }
}

#[test]
fn safetensors_headers_that_lie() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let model = |header: &str, claimed: u64| {
        let mut bytes = claimed.to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        std::fs::write(&path, bytes).unwrap();
        read_model(&path).unwrap_err().to_string()
    };
    assert!(model("{}", u64::MAX).contains("header: claims 18446744073709551615 bytes"));
    for header in [
        r#"{"w":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,8]}}"#,
        r#"{"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}"#,
        r#"{"w":{"dtype":"F64","shape":[1],"data_offsets":[8,0]}}"#,
        "nonsense",
    ] {
        let error = model(header, header.len() as u64);
        assert!(error.contains("not a .safetensors file: "), "{error}");
    }
}

/// A sound file of every format.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let committed = |name| std::fs::read(testdata.join(name)).unwrap();
    let model = read_model(testdata.join("two_arrays.npz")).unwrap();
    let written = |name: &str| {
        let path = folder.path().join(name);
        match name {
            "state.npz" => write_checkpoint(&path, &model).unwrap(),
            _ => write_model(&path, &model, false).unwrap(),
        }
        std::fs::read(path).unwrap()
    };
    let mtx = b"%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 4\n3 3 5\n".to_vec();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    gz.write_all(&mtx).unwrap();
    vec![
        ("v.npy", committed("dense_f8_le.npy")),
        ("v.npy", committed("dense_version2.npy")),
        ("v.npy", committed("dense_i2_be.npy")),
        ("v.npz", committed("dense_stored.npz")),
        ("v.npz", committed("sparse_coo_stored.npz")),
        ("v.npz", committed("sparse_csr_stored.npz")),
        ("v.npz", committed("sparse_csc.npz")),
        ("v.npz", written("m.npz")),
        ("v.npz", written("state.npz")),
        ("v.mat", committed("dense_f8.mat")),
        ("v.mat", committed("dense_packed.mat")),
        ("v.mat", committed("sparse.mat")),
        ("v.mat", committed("sparse_packed.mat")),
        ("v.mat", committed("two_arrays.mat")),
        ("v.safetensors", written("m.safetensors")),
        ("v.mtx.gz", gz.finish().unwrap()),
        ("v.mtx", mtx),
        (
            "v.mtx",
            b"%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n".to_vec(),
        ),
        ("v.tns", b"# c\n1 2 1 2.5\n3 1 1 1e-3\n".to_vec()),
        ("v.csv", b"a,b\n1,\n2,3\n".to_vec()),
        ("v.tsv", b"\"a\nb\"\t\"\"\n1\t\n\"2\"\t3\n".to_vec()),
    ]
}

#[derive(Clone, Debug)]
enum Damage {
    Set(prop::sample::Index, u8),
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Repeat(prop::sample::Index, prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    use prop::sample::Index;
    // Digits and signs keep text well formed often enough to reach the checks behind the parser.
    let byte = prop_oneof![
        any::<u8>(),
        prop::sample::select(b"0123456789-.,() \n".to_vec())
    ];
    prop_oneof![
        6 => (any::<Index>(), byte).prop_map(|(at, b)| Damage::Set(at, b)),
        3 => (any::<Index>(), 0..8u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        1 => any::<Index>().prop_map(Damage::Cut),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(a, b)| Damage::Repeat(a, b)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let n = bytes.len();
    match damage {
        Damage::Set(at, b) => bytes[at.index(n)] = *b,
        Damage::Flip(at, bit) => bytes[at.index(n)] ^= 1 << bit,
        Damage::Cut(at) => bytes.truncate(at.index(n)),
        Damage::Repeat(a, b) => {
            let (a, b) = (a.index(n), b.index(n));
            let piece = bytes[a.min(b)..a.max(b)].to_vec();
            let at = a.max(b);
            bytes.splice(at..at, piece);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Whatever is done to a file, every reader returns, and an error is one line.
    #[test]
    fn damaged_files_never_panic(seed in prop::sample::select(seeds()),
                                 damage in prop::collection::vec(damage(), 1..6)) {
        let (name, mut bytes) = seed;
        damage.iter().for_each(|d| apply(&mut bytes, d));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes).unwrap();
        let errors = [
            read_data::<f64>(&path, None).err(),
            read_data::<f32>(&path, Some(&[2, 3])).err(),
            read_mask(&path, &[3, 4], None).err(),
            read_model(&path).err(),
            read_checkpoint(&path).err(),
        ];
        for error in errors.into_iter().flatten() {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}

#[test]
fn every_truncation_of_a_binary_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in seeds().iter().filter(|(name, _)| *name == "v.npy") {
        let path = folder.path().join(name);
        for n in 0..bytes.len() {
            std::fs::write(&path, &bytes[..n]).unwrap();
            assert!(read_data::<f64>(&path, None).is_err(), "{n} bytes");
        }
    }
}

/// One flipped bit anywhere: the same state or an error, never another state.
#[test]
fn a_flipped_checkpoint_is_the_same_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let model = read_model(testdata.join("two_arrays.npz")).unwrap();
    write_checkpoint(&path, &model).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        std::fs::write(&path, flipped).unwrap();
        if let Ok(state) = read_checkpoint(&path) {
            assert_eq!(state, model, "byte {at}");
        }
    }
}

/// A shape without modes, as that of an array of order 0.
#[test]
fn no_data_have_no_modes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.tns");
    std::fs::write(&path, "1 1 3\n").unwrap();
    let options = ReadOptions {
        shape: Some(vec![]),
        ..ReadOptions::default()
    };
    for error in [
        read_data::<f64>(&path, Some(&[])).unwrap_err(),
        read_data_with::<f64>(&path, &options).unwrap_err(),
        read_mask(&path, &[], None).unwrap_err(),
        StoreWriter::<f64>::read(&path, &options, folder.path()).unwrap_err(),
    ] {
        let error = error.to_string();
        assert!(
            error.ends_with("v.tns: no data have the shape []"),
            "{error}"
        );
    }
}

/// Archives whose arrays would take more than they may are refused before anything is allocated, with the number that is needed.
#[test]
fn archives_have_an_allowance() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros.npz");
    let zeros = plca_io::Array::new(vec![3000, 5000], vec![0.0; 15_000_000]);
    let plain = folder.path().join("plain.npy");
    plca_io::write_npy(&plain, &zeros).unwrap();
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let packed = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated);
    zip.start_file("x.npy", packed).unwrap();
    zip.write_all(&std::fs::read(&plain).unwrap()).unwrap();
    zip.finish().unwrap();
    let needs = |options: &ReadOptions| {
        read_data_with::<f64>(&path, options)
            .err()
            .map(|e| e.needs())
    };
    assert_eq!(needs(&ReadOptions::default()), Some(Some(120_000_000)));
    let within = |limit| ReadOptions {
        unpack_limit: Some(limit),
        ..ReadOptions::default()
    };
    assert_eq!(needs(&within(120_000_000)), None);
    assert_eq!(needs(&within(119_999_999)), Some(Some(120_000_000)));
    // Half as much in half the precision.
    assert!(read_data_with::<f32>(&path, &ReadOptions::default()).is_ok());
    assert_eq!(read_model(&path).unwrap_err().needs(), Some(120_000_000));
    assert!(plca_io::read_model_with(&path, Some(120_000_000)).is_ok());
    // Of a sparse one all that its entries need.
    let sparse = folder.path().join("sparse.npz");
    let stored = 3_000_000;
    let text = npy(
        "{'descr': '|S3', 'fortran_order': False, 'shape': (), }",
        b"csr",
    );
    let ones = whole(&vec![1; stored]);
    let members = [
        ("format.npy", text),
        ("shape.npy", whole(&[1, 2])),
        ("data.npy", ones.clone()),
        ("indices.npy", ones),
        ("indptr.npy", whole(&[0, stored as i64])),
    ];
    std::fs::write(&sparse, archive(&members)).unwrap();
    let told = read_data::<f64>(&sparse, None).unwrap_err().needs();
    let told = told.expect("a limit of memory");
    assert!(
        read_data_with::<f64>(&sparse, &within(told)).is_ok(),
        "{told}"
    );
    assert!(told < 40 * stored as u64, "{told}");
    // Of several arrays what all of them need is told at the first.
    let several = folder.path().join("several.npz");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&several).unwrap());
    for name in ["h.npy", "w.npy"] {
        zip.start_file(name, packed).unwrap();
        zip.write_all(&std::fs::read(&plain).unwrap()).unwrap();
    }
    zip.finish().unwrap();
    assert_eq!(read_model(&several).unwrap_err().needs(), Some(240_000_000));
    assert!(plca_io::read_model_with(&several, Some(240_000_000)).is_ok());
    // What is not packed may take what it takes.
    assert!(read_data_with::<f64>(&plain, &within(1)).is_ok());
}
