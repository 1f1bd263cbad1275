//! Files whose size goes with the data, tables, and what is no file.

use plca_io::{Array, read_checkpoint, write_checkpoint, write_model};
use serde_json::{Value, json};

use crate::Folder;

/// Two entries in the first of `columns` columns.
fn one_column(folder: &Folder, columns: usize) {
    let banner = "%%MatrixMarket matrix coordinate real general";
    folder.text("v.mtx", &format!("{banner}\n2 {columns} 2\n1 1 5\n2 1 3\n"));
}

/// However many columns nobody has seen, what is said of them is short, and what is kept of each is in an array.
#[test]
fn metadata_do_not_grow_with_the_data() {
    let folder = Folder::new();
    one_column(&folder, 3000);
    for model in ["plca", "plsa", "pntf"] {
        let line = format!(
            "fit {model} v.mtx --missing unstored --rank 1 --max-iter 3 --tol 0 --output o.npz"
        );
        let err = String::from_utf8(folder.run(&line).stderr).unwrap();
        let what = "no observed cell in dimension 1 at 2999 indices, the first [1, 2, 3, 4, 5, 6, 7, 8]: the values written there are not identified";
        assert_eq!(err, format!("warning: {what}\n"), "{model}");
        let metadata = folder.model("o.npz").metadata;
        assert_eq!(metadata["warnings"], json!([what]), "{model}");
        let length = metadata.to_string().len();
        assert!(length < 4096, "{model}: {length}");
        folder.ok("inspect o.npz");
    }
}

/// Files of earlier versions have the scale of every index in the metadata.
#[test]
fn scales_are_an_array_and_were_a_list() {
    let folder = Folder::new();
    folder.text("v.csv", "5,nan,1\n3,2,4\nnan,1,1\n");
    folder.ok("fit plsa v.csv --missing nan --rank 2 --seed 3 --output new.npz --max-iter 20");
    folder.ok("reconstruct new.npz --output new.npy");
    let mut model = folder.model("new.npz");
    let scale = model.arrays.remove("scale").unwrap();
    assert_eq!(scale.shape, [3]);
    assert!(model.metadata["scale"].is_null());
    model.metadata["scale"] = json!(scale.values);
    write_model(folder.path("old.npz"), &model, false).unwrap();
    folder.ok("reconstruct old.npz --output old.npy");
    assert!(folder.bytes("old.npy") == folder.bytes("new.npy"));
    // A fit may start from either.
    for init in ["new.npz", "old.npz"] {
        let line = format!("fit plsa v.csv --missing nan --init {init} --max-iter 1");
        folder.ok(&format!("{line} --output {init}.again.npz"));
    }
    model.metadata["scale"] = Value::Null;
    for values in [vec![1.0; 2], vec![1.0, -1.0, 1.0], vec![1.0, f64::NAN, 1.0]] {
        let array = Array::new(vec![values.len()], values);
        model.arrays.insert("scale".into(), array);
        write_model(folder.path("bad.npz"), &model, false).unwrap();
        folder.refuses("1 | reconstruct bad.npz --output x.npy | bad.npz | `scale`");
    }
}

/// A stream whose blocks leave much unseen goes on from its checkpoint, also from one of an earlier version.
#[test]
fn what_a_stream_has_not_seen_is_in_arrays() {
    let folder = Folder::new();
    one_column(&folder, 3000);
    let line =
        "fit plsa v.mtx v.mtx --rank 1 --online average --passes 2 --missing unstored --quiet";
    folder.resumes(line, 3);
    let path = folder.path("c.npz");
    let mut state = read_checkpoint(&path).unwrap();
    assert!(state.metadata.to_string().len() < 4096);
    let modes: Vec<_> = (0..2)
        .map(|j| state.arrays.remove(&format!("unobserved_{j}")).unwrap())
        .collect();
    assert_eq!([modes[0].shape[0], modes[1].shape[0]], [0, 2 * 2999]);
    let lists = modes.iter().map(|a| a.values.iter().map(|&i| i as usize));
    let lists: Vec<Vec<usize>> = lists.map(Iterator::collect).collect();
    state.metadata["checkpoint"]["unobserved"] = json!(lists);
    write_checkpoint(&path, &state).unwrap();
    folder.ok(&format!("{line} --resume c.npz --output old.npz"));
    assert!(folder.bytes("old.npz") == folder.bytes("whole.npz"));
}

/// A checkpoint of an earlier version has the settings of all other models too.
#[test]
fn checkpoints_with_settings_of_other_models_go_on() {
    let folder = Folder::new();
    folder.text("d.csv", "3,1,4,2\n1,5,9,2\n2,6,5,3\n2,3,1,1\n");
    let line = "fit plca d.csv --rank 2 --max-iter 8 --tol 0 --quiet";
    folder.resumes(line, 3);
    let path = folder.path("c.npz");
    let mut file = read_checkpoint(&path).unwrap();
    let settings = file.metadata["settings"].as_object_mut().unwrap();
    for (name, value) in [
        ("angles", json!([])),
        ("given", json!(1)),
        ("m", json!("inf")),
        ("mirror", json!(false)),
        ("kernel", json!(null)),
    ] {
        assert!(settings.insert(name.into(), value).is_none(), "{name}");
    }
    write_checkpoint(&path, &file).unwrap();
    folder.ok(&format!("{line} --resume c.npz --output again.npz"));
    assert!(folder.bytes("again.npz") == folder.bytes("whole.npz"));
    // Those of the model itself still count.
    folder.fails(
        1,
        &format!("{line} --resume c.npz --missing-method imputation --output x.npz"),
        &["c.npz", "missing_method"],
    );
}

/// What is wrong in the settings of a file is said of the file: no option that was typed could mend it.
#[test]
fn wrong_settings_of_files_name_the_file() {
    let folder = Folder::new();
    folder.text("s.csv", "3,-1,4\n1,5,-9\n2,6,5\n");
    for (model, setting, value) in [
        ("skellam", "m", json!("foo")),
        ("skellam-cp", "m", json!(0.5)),
        ("skellam", "real_data", json!(3)),
    ] {
        folder.ok(&format!(
            "fit {model} s.csv --rank 2 --max-iter 2 --output o.npz"
        ));
        let mut file = folder.model("o.npz");
        file.metadata["settings"][setting] = value;
        write_model(folder.path("o.npz"), &file, false).unwrap();
        let expected = ["o.npz: settings.", setting];
        folder.fails(1, "transform o.npz s.csv --output x.npz", &expected);
        // Nothing else asks here for the draws of a cell.
        if (model, setting) == ("skellam", "m") {
            folder.fails(1, "reconstruct o.npz --output x.npy", &expected);
        }
    }
}

/// One matrix in many tables: the same parameters.
#[test]
fn tables_are_read_as_they_are_said_to_be() {
    let folder = Folder::new();
    folder.text("d.csv", "3,1,4\n1,5,9\n");
    let fit = |data: &str| {
        folder.ok(&format!(
            "fit plca {data} --rank 2 --max-iter 5 --output o.npz"
        ));
        folder.model("o.npz").arrays
    };
    let expected = fit("d.csv");
    #[rustfmt::skip]
    let cases = [
        ("years.csv", "2010,2011,2012\n3,1,4\n1,5,9\n", "--header"),
        ("years.csv", "2010,2011,2012\n3,1,4\n1,5,9\n", "--header yes"),
        ("d.csv", "3,1,4\n1,5,9\n", "--header no"),
        ("d.tsv", "a\tb\tc\n3\t1\t4\n1\t5\t9\n", ""),
        ("d.csv", "3;1;4\n1;5;9\n", "--delimiter ;"),
        ("tabs.csv", "3\t1\t4\n1\t5\t9\n", "--delimiter tab"),
        ("named.csv", "\"x, y\",3,1,4\nz,1,5,9\n", "--labels first-column --header no"),
    ];
    for (name, text, options) in cases {
        folder.text(name, text);
        assert_eq!(
            fit(&format!("{name} {options}")),
            expected,
            "{name} {options}"
        );
        let line = format!("transform o.npz {name} {options} --output n.npz");
        folder.ok(&line);
        let line =
            format!("select plca {name} {options} --ranks 1..2 --max-iter 2 --criterion bic");
        folder.ok(&line);
    }
    folder.refuses("
        1 | fit plca years.csv --header no --labels first-column --delimiter ; --rank 1 --output x.npz | years.csv | line 1 | label
        2 | fit plca d.csv --delimiter ;; --rank 1 --output x.npz | --delimiter
        2 | fit plca d.csv --header maybe --rank 1 --output x.npz | --header
    ");
}

/// Nobody writes to the pipe: whoever reads it waits for ever.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused() {
    let folder = Folder::with_counts();
    for name in ["v.npy", "v.npz", "v.csv"] {
        let mut make = std::process::Command::new("mkfifo");
        assert!(make.arg(folder.path(name)).status().unwrap().success());
    }
    folder.refuses(
        "
        1 | fit plca v.npy --rank 1 --output x.npz | is not a regular file
        1 | fit ntf-l2 v.csv --rank 1 --output x.npz | is not a regular file
        1 | fit plca d.csv --mask v.npy --rank 1 --output x.npz | is not a regular file
        1 | fit plca d.csv --init v.npz --rank 1 --output x.npz | is not a regular file
        1 | fit plca d.csv --resume v.npz --rank 1 --output x.npz | is not a regular file
        1 | fit plsa d.csv v.csv --online average --rank 1 --output x.npz | is not a regular file
        1 | inspect v.npz | is not a regular file
    ",
    );
}

/// An array of no value may have any size in the other dimension, and counting that far takes for ever.
#[test]
fn empty_blocks_are_refused_at_once() {
    let folder = Folder::with_counts();
    folder.ok("fit nmf-kl d.csv --rank 2 --max-iter 2 --output o.npz");
    let mut model = folder.model("o.npz");
    model
        .arrays
        .insert("w".into(), Array::new(vec![1 << 60, 0], vec![]));
    write_model(folder.path("bad.npz"), &model, false).unwrap();
    let what = "`w` is empty, of shape [1152921504606846976, 0]";
    folder.fails(1, "reconstruct bad.npz --output x.npy", &["bad.npz", what]);
    model.metadata = Value::Null;
    write_model(folder.path("init.npz"), &model, false).unwrap();
    folder.refuses("1 | fit nmf-kl d.csv --init init.npz --output x.npz | init.npz");
}

/// What is written to a pipe goes into it: the link of an open one leads to no path.
#[cfg(target_os = "linux")]
#[test]
fn a_trace_may_go_into_a_pipe() {
    let folder = Folder::with_counts();
    let line = "fit plca d.csv --rank 2 --tol 0 --max-iter 20 --quiet --output o.npz";
    folder.ok(&format!("{line} --trace t.jsonl"));
    let lines = |bytes: &[u8]| bytes.iter().filter(|&&b| b == b'\n').count();
    let expected = lines(&folder.bytes("t.jsonl"));
    std::os::unix::fs::symlink("/dev/stderr", folder.path("link")).unwrap();
    for trace in ["/dev/stderr", "link"] {
        let out = folder.run(&format!("{line} --trace {trace}"));
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{said}");
        assert!(said.starts_with(r#"{"iteration":"#), "{said}");
        assert_eq!(lines(&out.stderr), expected, "{said}");
    }
    // A log keeps what is in it, and what is said later stands after the trace.
    let line =
        "fit plca d.csv --rank 2 --tol 0 --max-iter 20 --output o.npz --trace /dev/stderr --seed 1";
    folder.text("log", "earlier\n");
    let log = std::fs::File::options()
        .append(true)
        .open(folder.path("log"));
    let mut command = folder.program(crate::folder::PROGRAM);
    let command = command.args(line.split_whitespace()).stderr(log.unwrap());
    let status = command
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let log = String::from_utf8(folder.bytes("log")).unwrap();
    assert!(log.starts_with("earlier\n{\"iteration\":"), "{log}");
    assert_eq!(lines(log.as_bytes()), 1 + expected, "{log}");
    // Ordinary files begin anew, those in memory too.
    let place = match std::path::Path::new("/dev/shm") {
        memory if memory.is_dir() => memory.to_path_buf(),
        _ => std::env::temp_dir(),
    };
    let kept = tempfile::NamedTempFile::new_in(place).unwrap();
    std::fs::write(kept.path(), "an older trace\n").unwrap();
    let line = "fit plca d.csv --rank 2 --tol 0 --max-iter 20 --quiet --output o.npz";
    folder.ok(&format!("{line} --trace {}", kept.path().display()));
    assert_eq!(lines(&std::fs::read(kept.path()).unwrap()), expected);
}

/// Whoever looks into a trace sees how far its run is, and a run that ends without a model leaves it.
#[cfg(target_os = "linux")]
#[test]
fn a_trace_is_written_as_the_run_goes() {
    let folder = Folder::with_counts();
    folder.text("t", "an older trace\n");
    let mut run = folder.start(
        "fit plca d.csv --rank 2 --tol 0 --max-iter 2000000000 --check-every 10000 --quiet --output o.npz --trace t",
    );
    let begun = || folder.bytes("t").starts_with(b"{") && folder.bytes("t").ends_with(b"\n");
    while !begun() && run.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    assert!(run.try_wait().unwrap().is_none() && begun());
    assert!(crate::folder::interrupt(&run));
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(folder.names(), ["d.csv", "t"]);
    for line in String::from_utf8(folder.bytes("t")).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["objective"].is_number(), "{line}");
    }
    // What fails before the first iteration has no trace.
    folder.refuses("1 | fit plca no.csv --rank 2 --output o.npz --trace t | no.csv");
}
