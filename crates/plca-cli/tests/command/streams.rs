//! `-` in place of files.

use std::io::Write;
use std::process::Stdio;

use crate::Folder;
use crate::folder::PROGRAM;

/// Runs a line with an input; status, standard output and standard error.
fn piped(folder: &Folder, line: &str, input: &[u8]) -> (Option<i32>, Vec<u8>, String) {
    let mut command = folder.program(PROGRAM);
    command.args(line.split_whitespace()).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    // Whoever refuses its line does not read on.
    let _ = to.write_all(input);
    drop(to);
    let out = child.wait_with_output().unwrap();
    let error = String::from_utf8(out.stderr).unwrap();
    (out.status.code(), out.stdout, error)
}

#[test]
fn data_and_models_go_through_pipes() {
    let folder = Folder::with_counts();
    folder.text("d.tns", "1 1 3\n2 2 5\n3 1 2\n");
    folder.npy("d.npy", &[2, 3], &[1., 2., 3., 4., 5., 6.]);
    let mat = include_bytes!("../../../plca-io/testdata/sparse_packed.mat");
    std::fs::write(folder.path("d.mat"), mat).unwrap();
    folder.text(
        "d.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 3\n2 2 4\n",
    );
    for data in ["d.csv", "d.npy", "d.mat", "d.mtx"] {
        let arrays = |name: &str| folder.model(name).arrays;
        let line = "--rank 2 --quiet --output";
        folder.ok(&format!("fit plca {data} {line} a.npz"));
        let (status, model, error) = piped(
            &folder,
            &format!("fit plca - {line} -"),
            &folder.bytes(data),
        );
        assert_eq!((status, error.as_str()), (Some(0), ""), "{data}");
        std::fs::write(folder.path("b.npz"), &model).unwrap();
        assert_eq!(arrays("a.npz"), arrays("b.npz"), "{data}");
        assert_eq!(
            folder.model("b.npz").metadata["request"]["data"],
            serde_json::json!(["-"])
        );
        folder.ok("reconstruct a.npz --output r.npy");
        let (status, cells, _) = piped(&folder, "reconstruct - --output -", &model);
        assert!(
            status == Some(0) && cells == folder.bytes("r.npy"),
            "{data}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_stream_is_said_of_it() {
    let folder = Folder::with_counts();
    let (status, out, error) = piped(&folder, "fit plca - --rank 2 --output o.npz", b"1,2\n3,x\n");
    assert_eq!((status, out.len()), (Some(1), 0));
    assert_eq!(
        error,
        "error: standard input: line 2: column 2: `x` is not a number\n"
    );
    #[rustfmt::skip]
    let cases = [
        ("fit plca - --rank 2 --output o.npz", "standard input: is empty"),
        ("transform - - --output o.npz", "standard input only once"),
        ("fit plca d.csv --rank 2 --json --output -", "--output - cannot be combined with --json"),
    ];
    for (line, part) in cases {
        let (_, out, error) = piped(
            &folder,
            line,
            if line.starts_with('t') { b"x" } else { b"" },
        );
        assert!(out.is_empty() && error.contains(part), "{line}: {error}");
    }
    assert_eq!(folder.names(), ["d.csv"]);
}

/// Standard output is taken, standard error is not.
#[test]
fn what_is_to_be_warned_of_is_said_beside_a_stream() {
    let folder = Folder::with_counts();
    folder.ok("fit plca d.csv --rank 2 --output m.npz --quiet");
    for line in [
        "fit plca d.csv --rank 2 --max-iter 2 --output -",
        "transform m.npz d.csv --tol 1e-300 --max-iter 2 --output -",
    ] {
        let (status, model, error) = piped(&folder, line, b"");
        assert_eq!(status, Some(0), "{line}: {error}");
        assert!(
            error.starts_with("warning: --max-iter 2") && error.lines().count() == 1,
            "{line}: {error}"
        );
        std::fs::write(folder.path("o.npz"), &model).unwrap();
        assert!(!folder.model("o.npz").arrays.is_empty());
        let (_, _, error) = piped(&folder, &format!("{line} --quiet"), b"");
        assert_eq!(error, "", "{line}");
    }
}

/// A refit reads a stream where it is told to, and names it as it was.
#[test]
fn a_stream_may_take_the_place_of_the_data() {
    let folder = Folder::with_counts();
    folder.text("e.csv", "3,1,4,1\n1,5,9,2\n2,6,5,4\n");
    folder.ok("fit plca d.csv --rank 2 --output a.npz --quiet");
    for (input, expected) in [("d.csv", ""), ("e.csv", "-: not the data of a.npz")] {
        let (status, _, error) = piped(
            &folder,
            "refit a.npz - --output b.npz",
            &folder.bytes(input),
        );
        let said = error.trim_end().trim_start_matches("warning: ");
        assert_eq!((status, said), (Some(0), expected));
        let warnings = &folder.model("b.npz").metadata["warnings"];
        assert_eq!(warnings[0].as_str().unwrap_or_default(), expected);
    }
}
