//! Samples as lists of indices and values, and numbers of half precision.

use plca_io::{DataFile, ReadOptions, StoreWriter, first_index, read_data, read_data_with};

fn read(name: &str, text: &str, shape: Option<&[usize]>) -> Result<[Vec<usize>; 3], String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let options = ReadOptions {
        shape: shape.map(<[usize]>::to_vec),
        ..ReadOptions::default()
    };
    match read_data_with::<f64>(&path, &options) {
        Ok(DataFile::Sparse(v)) => {
            let indices = v.indices.iter().map(|&i| i as usize).collect();
            let values = v.values.iter().map(|&x| x as usize).collect();
            Ok([v.shape, indices, values])
        }
        Ok(DataFile::Dense(_)) => panic!("dense"),
        Err(e) => Err(e.to_string().split_once(name).unwrap().1[2..].to_string()),
    }
}

#[test]
fn svmlight_begins_at_one_or_at_zero() {
    let one = Ok([vec![3, 4], vec![0, 0, 0, 3, 2, 1], vec![5, 6, 7]]);
    assert_eq!(
        read(
            "v.svmlight",
            "+1 qid:3 1:5 4:6 # first\n# none\n-1\n0 2:7\n",
            None
        ),
        one
    );
    let zero = Ok([vec![3, 4], vec![0, 0, 0, 3, 2, 1], vec![5, 6, 7]]);
    assert_eq!(read("v.libsvm", "1,2 0:5 3:6\n\n2\n0 1:7\n", None), zero);
    // Features that no sample has.
    let wide = read("v.svmlight", "1 1:5\n", Some(&[1, 9])).unwrap();
    assert_eq!(wide, [vec![1, 9], vec![0, 0], vec![5]]);
    let narrow = read("v.svmlight", "1 3:5\n", Some(&[1, 2])).unwrap_err();
    assert_eq!(narrow, "has shape [1, 3], not [1, 2]");
}

#[test]
fn the_first_index_may_be_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.svmlight");
    let read = |text: &str, first| {
        std::fs::write(&path, text).unwrap();
        let options = ReadOptions {
            first_index: first,
            ..ReadOptions::default()
        };
        match read_data_with::<f64>(&path, &options) {
            Ok(DataFile::Sparse(v)) => Ok((v.shape, v.indices)),
            Ok(DataFile::Dense(_)) => panic!("dense"),
            Err(e) => Err(e.to_string()),
        }
    };
    assert_eq!(
        read("1 1:5 3:6\n", None),
        Ok((vec![1, 3], vec![0, 0, 0, 2]))
    );
    assert_eq!(
        read("1 1:5 3:6\n", Some(1)),
        Ok((vec![1, 3], vec![0, 0, 0, 2]))
    );
    assert_eq!(
        read("1 1:5 3:6\n", Some(0)),
        Ok((vec![1, 4], vec![0, 1, 0, 3]))
    );
    let below = read("1 2:1\n1 0:5\n", Some(1)).unwrap_err();
    assert!(
        below.ends_with("line 2: index 0 is below 1, where the features begin"),
        "{below}"
    );
    assert_eq!(first_index(&path, None).unwrap(), Some(0));
    // Neither a label nor a comment is a feature; a line may have no label.
    std::fs::write(&path, "0 qid:0 2:1 # 0:1\n0 3:1\n").unwrap();
    assert_eq!(first_index(&path, None).unwrap(), Some(1));
    assert_eq!(
        read(" 1:1 3:1\n2 2:5\n", None),
        Ok((vec![2, 3], vec![0, 0, 0, 2, 1, 1]))
    );
    let empty = read(" 1:1 3:1\n\n2 2:5\n", None).unwrap_err();
    assert!(empty.contains("line 2: is empty"), "{empty}");
    assert!(read("1 1:1 3:1\n\n2 2:5\n# end\n", None).is_ok());
    std::fs::write(&path, "1 2:1\n0:1 3:1\n").unwrap();
    assert_eq!(first_index(&path, None).unwrap(), Some(0));
    assert_eq!(
        first_index(folder.path().join("v.csv"), None).unwrap(),
        None
    );
}

#[test]
fn lda_c_begins_at_zero() {
    let v = Ok([vec![3, 4], vec![0, 1, 0, 3, 2, 0], vec![5, 6, 7]]);
    assert_eq!(read("v.ldac", "2 1:5 3:6\n0\n1 0:7\n", None), v);
}

#[test]
fn bags_of_words_are_read_whole_and_entry_by_entry() {
    let text = "3\n4\n2\n1 4 5\n3 1 6\n";
    let v = Ok([vec![3, 4], vec![0, 3, 2, 0], vec![5, 6]]);
    assert_eq!(read("docword.kos.txt", text, None), v);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("docword.kos.txt");
    std::fs::write(&path, text).unwrap();
    let store = folder.path().join("store");
    let entries = StoreWriter::<f64>::read(&path, &ReadOptions::default(), folder.path()).unwrap();
    entries.write(&store).unwrap();
    assert!(store.exists());
}

#[test]
fn lists_that_are_none_name_line_and_word() {
    #[rustfmt::skip]
    let cases = [
        ("v.svmlight", "1 2:3\n1 2\n", "line 2: `2` is no index:value"),
        ("v.svmlight", "1 -2:3\n", "line 1: index `-2` is not a whole number below 2^32 - 1"),
        ("v.svmlight", "1 4294967295:3\n", "line 1: index `4294967295` is not a whole number below 2^32 - 1"),
        ("v.svmlight", "1 1:x\n", "line 1: `x` is not a number"),
        ("v.svmlight", "1 1:-3\n", "line 1: value -3 is negative; numbers >= 0 are needed"),
        ("v.svmlight", "1 1:nan\n", "line 1: value nan is not a number"),
        ("v.svmlight", "1\n", "holds no entry"),
        ("v.svmlight", "1 4294967294:3\n", "has shape [1, 4294967294] with 1 entries; give the shape explicitly if this is intended"),
        ("v.ldac", "2 1:5\n", "line 1: `2` announces other than 1 pairs"),
        ("v.ldac", "x 1:5\n", "line 1: `x` announces other than 1 pairs"),
        ("docword.a.txt", "3\n4\n", "the file ends before the sizes"),
        ("docword.a.txt", "3 4\n", "line 1: `3 4` is no number of documents"),
        ("docword.a.txt", "3\nx\n", "line 2: `x` is no number of words"),
        ("docword.a.txt", "3\n4\n1\n", "0 entries where 1 are announced"),
        ("docword.a.txt", "3\n4\n1\n1 1 1\n2 2 2\n", "line 5: more than the 1 entries announced"),
        ("docword.a.txt", "3\n4\n1\n0 1 1\n", "line 4: index 0 in mode 0 is below 1"),
        ("docword.a.txt", "3\n4\n1\n1 5 1\n", "line 4: index 5 in mode 1 is above 4"),
        ("docword.a.txt", "3\n4\n1\n1 5\n", "line 4: needs a document, a word and a count"),
        (
            "words.txt",
            "3\n",
            "unknown extension; known are .npy, .npz, .mat; .mtx, .mm, .tns, .csv, .tsv, .svmlight, .libsvm, .ldac and docword.*.txt, also with .gz; a table of numbers is renamed to end in .csv or .tsv, documents of lda-c in .ldac",
        ),
    ];
    for (name, text, why) in cases {
        assert_eq!(read(name, text, None).unwrap_err(), why, "{text}");
    }
}

#[test]
fn half_precision_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.npy");
    let header = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 2), }\n";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    // 1, the largest, the smallest above 0, and -0.1 as it is stored.
    for half in [0x3c00u16, 0x7bff, 0x0001, 0xae66] {
        bytes.extend(half.to_le_bytes());
    }
    std::fs::write(&path, &bytes).unwrap();
    let DataFile::Dense(v) = read_data::<f64>(&path, None).unwrap() else {
        panic!("sparse")
    };
    assert_eq!(v.values, [1.0, 65504.0, (-24f64).exp2(), -0.0999755859375]);
}
