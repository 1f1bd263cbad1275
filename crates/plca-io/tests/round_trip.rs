//! What is written is read back, to the bit.

use std::io::Write;
use std::path::Path;

use plca_io::{
    Array, DataFile, Mask, ModelFile, ReadOptions, read_checkpoint, read_data, read_data_with,
    read_mask, read_model, write_atomically, write_checkpoint, write_model, write_npy,
};
use proptest::prelude::*;
use serde_json::json;

/// Any bits that are not NaN, in an array of up to three modes, empty ones included.
fn arrays() -> impl Strategy<Value = Array<f64>> {
    prop::collection::vec(0..5usize, 1..4).prop_flat_map(|shape| {
        let n = shape.iter().product::<usize>();
        let special = prop::sample::select(vec![-0.0, f64::INFINITY, f64::MIN_POSITIVE / 3.0]);
        let number = prop_oneof![4 => any::<u64>().prop_map(f64::from_bits), 1 => special];
        prop::collection::vec(number.prop_filter("a number", |x| !x.is_nan()), n)
            .prop_map(move |values| Array::new(shape.clone(), values))
    })
}

fn bits(array: &Array<f64>) -> Vec<u64> {
    array.values.iter().map(|x| x.to_bits()).collect()
}

fn some_model() -> ModelFile {
    let mut model = ModelFile {
        metadata: json!({ "model": "plca", "objective": -0.123_456_789_012_345_68 }),
        ..Default::default()
    };
    for (name, shape, values) in [
        ("weights", vec![2], vec![0.25, 0.75]),
        ("factor_0", vec![1, 2], vec![1.0, 1.0]),
        ("empty", vec![0, 3], vec![]),
    ] {
        model
            .arrays
            .insert(name.to_string(), Array::new(shape, values));
    }
    model
}

proptest! {
    #[test]
    fn npy(mut array in arrays(), fortran: bool) {
        array.fortran = fortran;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        write_npy(&path, &array).unwrap();
        let Ok(DataFile::Dense(back)) = read_data::<f64>(&path, None) else { panic!() };
        prop_assert_eq!(bits(&back), bits(&array));
        prop_assert_eq!((back.shape, back.fortran), (array.shape, fortran));
    }

    #[test]
    fn models_and_checkpoints(a in arrays(), b in arrays(), objective in -1e300..1e300f64) {
        let folder = tempfile::tempdir().unwrap();
        let mut model = ModelFile { metadata: json!({ "objective": objective }), ..Default::default() };
        model.arrays.insert("a".into(), a);
        model.arrays.insert("b".into(), b);
        let (npz, tensors, checkpoint) = (
            folder.path().join("m.npz"),
            folder.path().join("m.safetensors"),
            folder.path().join("state"),
        );
        write_model(&npz, &model, false).unwrap();
        write_model(&tensors, &model, false).unwrap();
        write_checkpoint(&checkpoint, &model).unwrap();
        for back in [read_model(&npz), read_model(&tensors), read_checkpoint(&checkpoint)] {
            let back = back.unwrap();
            prop_assert_eq!(&back, &model);
            for name in ["a", "b"] {
                prop_assert_eq!(bits(&back.arrays[name]), bits(&model.arrays[name]));
            }
        }
    }
}

/// Rows (1, 2) and (3, 4), whatever the order in memory.
#[test]
fn columns_first_are_read_as_the_same_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = some_model();
    let array = Array {
        shape: vec![2, 2],
        values: vec![1.0, 3.0, 2.0, 4.0],
        fortran: true,
    };
    model.arrays.insert("w".into(), array);
    let mut expected = model.clone();
    let rows = Array::new(vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]);
    expected.arrays.insert("w".into(), rows);
    for name in ["m.npz", "m.safetensors"] {
        let path = folder.path().join(name);
        write_model(&path, &model, false).unwrap();
        assert_eq!(read_model(&path).unwrap(), expected, "{name}");
    }
    let path = folder.path().join("state");
    write_checkpoint(&path, &model).unwrap();
    assert_eq!(read_checkpoint(&path).unwrap(), expected);
}

/// Nothing is written that cannot be read, and what was there stays.
#[test]
fn what_no_reader_takes_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["a.npy", "m.npz", "m.safetensors", "state"];
    let write = |name: &str, array: &Array<f64>| {
        let path = folder.path().join(name);
        let mut model = some_model();
        model.arrays.insert("w".into(), array.clone());
        match name {
            "a.npy" => write_npy(&path, array),
            "state" => write_checkpoint(&path, &model),
            _ => write_model(&path, &model, false),
        }
    };
    for name in names {
        write(name, &Array::new(vec![1], vec![7.0])).unwrap();
    }
    let content = || names.map(|name| std::fs::read(folder.path().join(name)).unwrap());
    let before = content();
    for (shape, what) in [
        (vec![2, 3], "shape [2, 3] does not fit 1 values"),
        (
            vec![1 << 40, 1 << 40],
            "shape [1099511627776, 1099511627776] does not fit 1 values",
        ),
        (vec![1; 65], "65 modes, at most 64 are read"),
    ] {
        let array = Array {
            shape,
            values: vec![1.0],
            fortran: false,
        };
        for name in names {
            let error = write(name, &array).unwrap_err().to_string();
            assert!(error.contains(name) && error.ends_with(what), "{error}");
        }
    }
    assert!(content() == before);
    assert_eq!(folder.path().read_dir().unwrap().count(), names.len());
}

/// As much as is read is written, and not a byte more.
#[test]
fn metadata_are_written_as_far_as_they_are_read() {
    const MOST: usize = 1 << 26;
    let folder = tempfile::tempdir().unwrap();
    for name in ["m.npz", "m.safetensors", "state"] {
        let path = folder.path().join(name);
        let mut outcomes = [0, 0];
        for length in [MOST - 400, MOST - 90, MOST - 2, MOST - 1] {
            let mut model = some_model();
            model.metadata = json!("x".repeat(length));
            let (written, read) = match name {
                "state" => (write_checkpoint(&path, &model), read_checkpoint(&path)),
                _ => (write_model(&path, &model, false), read_model(&path)),
            };
            outcomes[usize::from(written.is_ok())] += 1;
            match written {
                Ok(()) => assert!(read.unwrap() == model),
                Err(e) => assert!(e.to_string().contains("more than the 67108864"), "{e}"),
            }
        }
        // Quotes, and in two of them more, stand around the text.
        assert_eq!(outcomes[1], if name == "m.npz" { 3 } else { 1 }, "{name}");
        assert_eq!(outcomes[0] + outcomes[1], 4);
    }
}

#[cfg(unix)]
mod targets {
    use std::fs::{Permissions, metadata, read_link, read_to_string, set_permissions};
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use plca_io::write_atomically;

    fn write(path: &Path) -> Result<(), String> {
        write_atomically(path, |w| write!(w, "new")).map_err(|e| e.to_string())
    }

    #[test]
    fn a_file_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for mode in [0o600, 0o640, 0o755, 0o666, 0o200] {
            std::fs::write(&path, "old").unwrap();
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            write(&path).unwrap();
            let found = metadata(&path).unwrap().permissions().mode();
            assert_eq!(found & 0o7777, mode, "{found:o}");
            set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            assert_eq!(read_to_string(&path).unwrap(), "new");
        }
    }

    #[test]
    fn what_is_read_only_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "old").unwrap();
        set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
        let error = write(&path).unwrap_err();
        assert!(error.ends_with("a: is read-only"), "{error}");
        assert_eq!(read_to_string(&path).unwrap(), "old");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    /// A link stays one, and the file at its end is written, there or not.
    #[test]
    fn links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("inner")).unwrap();
        std::fs::write(at("there"), "old").unwrap();
        set_permissions(at("there"), Permissions::from_mode(0o600)).unwrap();
        symlink("there", at("one")).unwrap();
        symlink("../one", at("inner/two")).unwrap();
        symlink(at("inner/new"), at("dangling")).unwrap();
        symlink("round", at("round")).unwrap();
        for (link, target) in [
            ("one", "there"),
            ("inner/two", "there"),
            ("dangling", "inner/new"),
        ] {
            let leads = read_link(at(link)).unwrap();
            write(&at(link)).unwrap();
            assert_eq!(read_link(at(link)).unwrap(), leads);
            assert_eq!(read_to_string(at(target)).unwrap(), "new");
            std::fs::write(at("there"), "old").unwrap();
        }
        let mode = metadata(at("there")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let error = write(&at("round")).unwrap_err();
        assert!(error.ends_with("round: too many symbolic links"), "{error}");
    }
}

/// Its link, `pipe:[123]`, is no path.
#[cfg(target_os = "linux")]
#[test]
fn an_open_pipe_is_written_to() {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    let (mut reader, writer) = std::io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let path = Path::new(&path);
    plca_io::can_write(path).unwrap();
    write_atomically(path, |w| w.write_all(b"new")).unwrap();
    drop(writer);
    let mut found = String::new();
    reader.read_to_string(&mut found).unwrap();
    assert_eq!(found, "new");
}

#[test]
fn equal_models_are_equal_files() {
    let folder = tempfile::tempdir().unwrap();
    for extension in ["npz", "safetensors"] {
        let [one, two] = ["one", "two"].map(|n| folder.path().join(n).with_extension(extension));
        write_model(&one, &some_model(), false).unwrap();
        write_model(&two, &some_model(), false).unwrap();
        assert_eq!(std::fs::read(one).unwrap(), std::fs::read(two).unwrap());
    }
}

#[test]
fn single_precision_is_widened_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = ModelFile::default();
    model
        .arrays
        .insert("w".into(), Array::new(vec![1], vec![0.1]));
    for name in ["m.npz", "m.safetensors"] {
        let path = folder.path().join(name);
        write_model(&path, &model, true).unwrap();
        assert_eq!(
            read_model(&path).unwrap().arrays["w"].values,
            [f64::from(0.1f32)]
        );
    }
}

#[test]
fn a_changed_checkpoint_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.npz");
    write_checkpoint(&path, &some_model()).unwrap();
    let mut sealed = read_model(&path).unwrap();
    sealed.arrays.get_mut("weights").unwrap().values[0] = 0.25f64.next_up();
    write_model(&path, &sealed, false).unwrap();
    let error = read_checkpoint(&path).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");

    write_model(&path, &some_model(), false).unwrap();
    let error = read_checkpoint(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("expected a file that --checkpoint of a run wrote"),
        "{error}"
    );
}

#[test]
fn a_failed_write_changes_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.txt");
    std::fs::write(&path, "before").unwrap();
    let result = write_atomically(&path, |w| {
        w.write_all(&[0; 1 << 20])?;
        Err(std::io::Error::other("no space"))
    });
    assert!(
        result
            .unwrap_err()
            .to_string()
            .ends_with("out.txt: no space")
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"before");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(write_atomically(folder.path(), |_| Ok(())).is_err());
    assert!(write_atomically(&path.join("deeper"), |_| Ok(())).is_err());
}

fn sparse(path: &Path) -> (Vec<usize>, Vec<u32>, Vec<f64>) {
    match read_data::<f64>(path, None) {
        Ok(DataFile::Sparse(c)) => (c.shape, c.indices, c.values),
        other => panic!("{other:?}"),
    }
}

#[test]
fn text_formats_plain_and_zipped() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        if name.ends_with(".gz") {
            let file = std::fs::File::create(&path).unwrap();
            let mut gz = flate2::write::GzEncoder::new(file, Default::default());
            gz.write_all(text.as_bytes()).unwrap();
            gz.finish().unwrap();
        } else {
            std::fs::write(&path, text).unwrap();
        }
        path
    };
    for gz in ["", ".gz"] {
        let tns = write(
            &format!("v.tns{gz}"),
            "\u{feff}# order 3\n1 2 1 2.5\n\n3 1 1 1e-3\n1 2 1 1\n",
        );
        let want = (
            vec![3, 2, 1],
            vec![0, 1, 0, 2, 0, 0, 0, 1, 0],
            vec![2.5, 1e-3, 1.0],
        );
        assert_eq!(sparse(&tns), want);

        let banner = "%%MatrixMarket matrix coordinate";
        let mtx = write(
            &format!("v.mtx{gz}"),
            &format!("{banner} real symmetric\n% c\n3 3 2\n2 1 4\n3 3 5\n"),
        );
        let want = (vec![3, 3], vec![1, 0, 0, 1, 2, 2], vec![4.0, 4.0, 5.0]);
        assert_eq!(sparse(&mtx), want);
        let mtx = write(
            &format!("v.mtx{gz}"),
            &format!("{banner} pattern general\r\n2 3 1\r\n2 3\r\n"),
        );
        assert_eq!(sparse(&mtx), (vec![2, 3], vec![1, 2], vec![1.0]));

        let csv = write(&format!("v.csv{gz}"), "\u{feff}a,b\n1,\n 2 ,\"3\"\n");
        let Ok(DataFile::Dense(v)) = read_data::<f64>(&csv, None) else {
            panic!()
        };
        assert_eq!(v.shape, [2, 2]);
        assert!(v.values[1].is_nan());
        assert_eq!((v.values[0], v.values[2], v.values[3]), (1.0, 2.0, 3.0));
    }
    let symmetric = write(
        "s.mtx",
        "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n",
    );
    let Ok(DataFile::Dense(v)) = read_data::<f64>(&symmetric, None) else {
        panic!()
    };
    assert_eq!(v.values, [1.0, 2.0, 2.0, 3.0]);
    let array = write(
        "a.mtx",
        "%%MatrixMarket matrix array real general\n2 1\n1\n2\n",
    );
    let Ok(DataFile::Dense(v)) = read_data::<f64>(&array, Some(&[2, 1])) else {
        panic!()
    };
    assert_eq!((v.values, v.fortran), (vec![1.0, 2.0], true));
}

#[test]
fn masks() {
    let folder = tempfile::tempdir().unwrap();
    let npy = folder.path().join("m.npy");
    write_npy(&npy, &Array::new(vec![1, 3], vec![0.0, 1.0, -2.0])).unwrap();
    let Ok(Mask::Dense(mask)) = read_mask(&npy, &[1, 3], None) else {
        panic!()
    };
    assert_eq!(mask.values, [0.0, 1.0, -2.0]);
    let error = read_mask(&npy, &[3, 1], None).unwrap_err().to_string();
    assert!(error.ends_with("m.npy: the mask has shape [1, 3], the data [3, 1]"));
    for bad in [0.5, f64::NAN, f64::INFINITY] {
        write_npy(&npy, &Array::new(vec![2], vec![0.0, bad])).unwrap();
        let error = read_mask(&npy, &[2], None).unwrap_err().to_string();
        assert!(error.contains("m.npy: entry [1]: "), "{error}");
    }
    let tns = folder.path().join("m.tns");
    std::fs::write(&tns, "2 1 nan\n").unwrap();
    let Ok(Mask::Hidden(cells)) = read_mask(&tns, &[2, 5], None) else {
        panic!()
    };
    assert_eq!((cells.shape, cells.indices), (vec![2, 5], vec![1, 0]));
}

#[test]
fn options_refuse_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.csv");
    std::fs::write(&path, "1,2\n3,nan\n-1,4\n").unwrap();
    let read = |allow_nan, allow_negative| {
        let options = ReadOptions {
            shape: None,
            allow_nan,
            allow_negative,
            allow_infinite: false,
            ..ReadOptions::default()
        };
        read_data_with::<f64>(&path, &options).map_err(|e| (e.place().to_string(), e.to_string()))
    };
    assert!(read(true, true).is_ok());
    assert_eq!(read(false, true).unwrap_err().0, "line 2: column 2");
    let (place, error) = read(true, false).unwrap_err();
    assert_eq!(place, "line 3: column 1");
    assert!(
        error.ends_with("v.csv: line 3: column 1: value -1 is negative; numbers >= 0 are needed")
    );
    std::fs::write(&path, "1,inf\n").unwrap();
    let error = read(true, true).unwrap_err().1;
    assert!(error.ends_with("v.csv: line 1: column 2: value inf is not finite"));
    let all = ReadOptions {
        allow_infinite: true,
        ..ReadOptions::default()
    };
    let Ok(DataFile::Dense(array)) = read_data_with::<f64>(&path, &all) else {
        panic!()
    };
    assert_eq!(array.values, [1.0, f64::INFINITY]);
}
