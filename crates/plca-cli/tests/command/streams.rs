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
    folder.text(
        "d.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 3\n2 2 4\n",
    );
    for data in ["d.csv", "d.npy", "d.mtx"] {
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
    for (line, part) in [
        (
            "fit plca - --rank 2 --output o.npz",
            "standard input: is empty",
        ),
        ("transform - - --output o.npz", "standard input once"),
        (
            "fit plca d.csv --rank 2 --json --output -",
            "--output - does not go with --json",
        ),
    ] {
        let (_, out, error) = piped(
            &folder,
            line,
            if line.starts_with('t') { b"x" } else { b"" },
        );
        assert!(out.is_empty() && error.contains(part), "{line}: {error}");
    }
    assert_eq!(folder.names(), ["d.csv"]);
}
