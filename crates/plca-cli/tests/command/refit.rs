//! `plca refit`: a model file says how it was made.

use serde_json::json;

use crate::Folder;

#[test]
fn a_fit_is_made_once_more_to_the_bit() {
    let folder = Folder::with_counts();
    folder.npy(
        "mask.npy",
        &[3, 4],
        &[1., 1., 0., 1., 1., 1., 1., 1., 1., 1., 1., 0.],
    );
    for fit in [
        "plca d.csv --rank 2 --seed 3 --restarts 2 --mask mask.npy --prior weights=dirichlet:2 --prior factor_0=entropic:-1",
        "nmf-kl d.csv -k 2 --update sequential --max-iter 7 --tol 0",
        "siplca d.csv --rank 2 --kernel 2x2 --support valid,same --anneal .5,10 --header no",
        "tiplca d.csv --rank 1 --kernel 2x2 --angles -90,90 --mirror",
    ] {
        folder.ok(&format!(
            "fit {fit} --output a.npz --quiet --trace t.jsonl --threads 1"
        ));
        folder.ok("refit a.npz --output b.npz --quiet");
        assert!(folder.bytes("a.npz") == folder.bytes("b.npz"), "{fit}");
        // And from what it made.
        folder.ok("refit b.npz --output c.npz --quiet");
        assert!(folder.bytes("a.npz") == folder.bytes("c.npz"), "{fit}");
    }
    let request = folder.model("a.npz").metadata["request"].clone();
    let options =
        json!({ "rank": ["1"], "kernel": ["2x2"], "angles": ["-90", "90"], "mirror": [] });
    assert_eq!(request, json!({ "data": ["d.csv"], "options": options }));
}

#[test]
fn options_and_data_take_the_place_of_those_of_the_fit() {
    let folder = Folder::with_counts();
    folder.text("e.csv", "1,2\n3,4\n5,6\n");
    folder
        .ok("fit plca d.csv --rank 2 --seed 3 --prior weights=dirichlet:2 --output a.npz --quiet");
    folder.ok("refit a.npz --output b.npz -k 3 --seed=4 --prior weights=dirichlet:3 --quiet");
    folder
        .ok("fit plca d.csv --rank 3 --seed 4 --prior weights=dirichlet:3 --output c.npz --quiet");
    assert!(folder.bytes("b.npz") == folder.bytes("c.npz"));
    folder.ok("refit a.npz e.csv --output b.npz --quiet");
    let file = folder.model("b.npz");
    let warning = "e.csv: not the data of a.npz";
    assert_eq!(file.metadata["warnings"], json!([warning]));
    folder
        .ok("fit plca e.csv --rank 2 --seed 3 --prior weights=dirichlet:2 --output c.npz --quiet");
    assert_eq!(file.arrays, folder.model("c.npz").arrays);
    // Data that were changed since.
    folder.text("d.csv", "3,1,4,1\n1,5,9,2\n2,6,5,4\n");
    let out = folder.run("refit a.npz --output b.npz");
    let error = String::from_utf8(out.stderr).unwrap();
    assert_eq!(error, "warning: d.csv: not the data of a.npz\n");
}

/// A file from elsewhere cannot make a refit write where it is not told to.
#[test]
fn a_file_asks_for_nothing_but_a_fit() {
    let folder = Folder::with_counts();
    folder.ok("fit plca d.csv --rank 2 --output a.npz --quiet");
    let mut file = folder.model("a.npz");
    file.metadata["request"]["options"]["trace"] = json!(["other.txt"]);
    plca_io::write_model(folder.path("b.npz"), &file, false).unwrap();
    folder.refuses(
        "
            1 | refit b.npz --output c.npz | b.npz | --trace
            2 | refit a.npz --output a.npz | the same file as the model
            2 | refit a.npz --rank 3 | --output
        ",
    );
}

/// Data on the disk are fitted by EM, which a refit in memory does too.
#[test]
fn a_fit_out_of_core_is_made_once_more() {
    let folder = Folder::new();
    folder.text("d.tns", "1 1 3\n1 2 1\n2 2 5\n2 3 4\n3 1 2\n3 3 6\n4 2 2\n");
    for solver in ["", "--solver auto"] {
        folder.ok(&format!(
            "fit plca d.tns --rank 2 {solver} --out-of-core d.store --output a.npz --quiet"
        ));
        folder.ok("refit a.npz --output b.npz --quiet");
        let (a, b) = (folder.model("a.npz"), folder.model("b.npz"));
        assert_eq!(a.arrays, b.arrays, "{solver}");
        assert!(folder.bytes("a.npz") == folder.bytes("b.npz"), "{solver}");
    }
}

/// What is wrong with standard error of a line.
fn said(folder: &Folder, line: &str) -> String {
    let out = folder.run(line);
    assert_eq!(out.status.code(), Some(0), "{line}");
    String::from_utf8(out.stderr).unwrap()
}

/// A refit says of every file that it was another one.
#[test]
fn files_that_were_changed_since_are_named() {
    let folder = Folder::with_counts();
    folder.npy("mask.npy", &[3, 4], &[1.0; 12]);
    let mut flags = vec![0.0; 6];
    flags[1] = 1.0;
    folder.arrays("flags.npz", &[("factor_0", &[3, 2], &flags)]);
    folder.arrays(
        "init.npz",
        &[("factor_0", &[3, 2], &[0.5, 0.2, 0.2, 0.4, 0.3, 0.4])],
    );
    folder.arrays("priors.npz", &[("factor_1.dirichlet", &[4, 2], &[1.5; 8])]);
    folder.ok("fit plca d.csv --mask mask.npy --init init.npz --freeze flags.npz --priors priors.npz --output a.npz");
    assert_eq!(said(&folder, "refit a.npz --output b.npz"), "");
    let mut seen = vec![1.0; 12];
    seen[3] = 0.0;
    folder.npy("mask.npy", &[3, 4], &seen);
    folder.arrays(
        "init.npz",
        &[("factor_0", &[3, 2], &[0.4, 0.2, 0.3, 0.4, 0.3, 0.4])],
    );
    flags[1] = 0.0;
    folder.arrays("flags.npz", &[("factor_0", &[3, 2], &flags)]);
    folder.arrays("priors.npz", &[("factor_1.dirichlet", &[4, 2], &[1.6; 8])]);
    let error = said(&folder, "refit a.npz --output b.npz");
    let expected: Vec<String> = ["--freeze", "--init", "--mask", "--priors"]
        .iter()
        .map(|option| format!("warning: {option}: not the file that a.npz was fitted with"))
        .collect();
    let mut lines: Vec<&str> = error.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, expected);
    let kept = &folder.model("b.npz").metadata["warnings"];
    assert_eq!(kept.as_array().map(Vec::len), Some(4), "{kept}");
    // Blocks of a stream are data as well.
    folder.text("e.csv", "1,2,3,4\n5,6,7,8\n2,2,1,1\n");
    folder.ok("fit plsa d.csv e.csv --rank 2 --online average --output s.npz");
    assert_eq!(said(&folder, "refit s.npz --output b.npz"), "");
    folder.text("e.csv", "1,2,3,4\n5,6,7,8\n2,2,1,9\n");
    assert_eq!(
        said(&folder, "refit s.npz --output b.npz"),
        "warning: d.csv, e.csv: not the data of s.npz\n"
    );
}

/// A checkpoint is of the run, whatever the names of what it reads.
#[test]
fn checkpoints_do_not_keep_the_command_line() {
    let folder = Folder::with_counts();
    folder.text("e.csv", "3,1,4,1\n1,5,9,2\n2,6,5,3\n");
    for data in ["d.csv", "e.csv"] {
        folder.ok(&format!(
            "fit plca {data} --rank 2 --tol 0 --max-iter 5 --checkpoint {data}.c --checkpoint-every 5 --output {data}.npz"
        ));
    }
    assert!(folder.bytes("d.csv.c") == folder.bytes("e.csv.c"));
    let request = &folder.model("e.csv.npz").metadata["request"];
    assert_eq!(request["data"], json!(["e.csv"]));
}

#[test]
fn names_of_data_may_begin_like_options() {
    let folder = Folder::with_counts();
    folder.text("-d.csv", "3,1,4,1\n1,5,9,2\n2,6,5,4\n");
    folder.ok("fit plca --rank 2 --output a.npz --quiet -- -d.csv");
    folder.ok("refit a.npz --output b.npz --quiet");
    assert!(folder.bytes("a.npz") == folder.bytes("b.npz"));
    // In place of other data.
    folder.ok("fit plca d.csv --rank 2 --output c.npz --quiet");
    folder.ok("refit c.npz --output b.npz --quiet -- -d.csv");
    assert_eq!(folder.model("a.npz").arrays, folder.model("b.npz").arrays);
}

/// Files are data wherever they stand.
#[test]
fn data_may_stand_behind_options() {
    let folder = Folder::with_counts();
    folder.text("e.csv", "3,1,4,1\n1,5,9,2\n2,6,5,4\n");
    folder.ok("fit plca d.csv --rank 2 --output a.npz --quiet");
    folder.ok("refit a.npz --seed 1 e.csv --output b.npz -k3 --quiet");
    folder.ok("fit plca e.csv --rank 3 --seed 1 --output c.npz --quiet");
    assert_eq!(folder.found("b.npz").arrays, folder.found("c.npz").arrays);
    let request = &folder.model("b.npz").metadata["request"];
    assert_eq!(request["data"], json!(["e.csv"]));
}

#[test]
fn options_can_be_left_out() {
    let folder = Folder::with_counts();
    folder.ok("fit tiplca d.csv --rank 1 --kernel 2x2 --rotations 2 --mirror --seed 3 --output a.npz --quiet");
    folder.ok("fit tiplca d.csv --rank 1 --kernel 2x2 --angles 0,90 --output c.npz --quiet");
    for line in [
        "refit a.npz --without rotations,mirror,seed --angles 0,90 --output b.npz --quiet",
        "refit a.npz --angles 0,90 --output b.npz --without rotations --quiet --without=mirror,seed",
    ] {
        folder.ok(line);
        assert!(folder.bytes("b.npz") == folder.bytes("c.npz"), "{line}");
    }
    let asked = "--without prior: a.npz was fitted with kernel, mirror, rank, rotations, seed";
    folder.fails(2, "refit a.npz --without prior --output b.npz", &[asked]);
    assert!(folder.ok("refit --help").contains("--without"));
}

/// A path of the system need not be text: it is taken as it is, or refused with one line.
#[cfg(target_os = "linux")]
#[test]
fn names_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::with_counts();
    let name = |text: &str| {
        OsStr::from_bytes(
            &text
                .bytes()
                .map(|b| if b == b'?' { 0xff } else { b })
                .collect::<Vec<_>>(),
        )
        .to_os_string()
    };
    let run = |line: &str| {
        let mut command = folder.program(crate::folder::PROGRAM);
        command.args(line.split_whitespace().map(name));
        let out = command.output().unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    for (old, new) in [("d.csv", "?.csv"), ("d.csv", "-?.csv")] {
        std::fs::copy(folder.path(old), folder.path("").join(name(new))).unwrap();
    }
    folder.text("d.tns", "1 1 3\n1 2 1\n2 2 5\n2 3 4\n");
    std::fs::copy(folder.path("d.tns"), folder.path("").join(name("?.tns"))).unwrap();
    for line in [
        "fit plca ?.csv --rank 2 --output ?.npz --trace ?.jsonl --checkpoint ?.c --checkpoint-every 5 --quiet",
        "fit plca --rank 2 --output o.npz --quiet -- -?.csv",
        "fit plca ?.csv --init ?.npz --output o.npz --quiet",
        "fit plsa ?.tns --rank 2 --out-of-core ?.store --output o.npz --quiet",
        "fit plsa ?.tns --rank 2 --out-of-core ?.store --output o.npz --quiet",
        "fit plsa ?.csv ?.csv --rank 2 --online average --output o.npz --quiet",
        "transform ?.npz ?.csv --output ?.safetensors --quiet",
        "reconstruct ?.npz --output ?.npy",
        "sample ?.npz --draws 3 --output ?.npy",
        "inspect ?.npz",
        "compare ?.npz ?.npz",
        "report ?.npz --trace ?.jsonl --output ?.html",
        "select plca ?.csv --ranks 1,2 --criterion bic",
        "consensus plca ?.csv --ranks 2 --restarts 4 --threshold 9 --output o.npz --runs ?runs",
        "shard ?.tns --output ?shards",
        "fit plsa ?shards --rank 2 --output o.npz --quiet",
    ] {
        assert_eq!(run(line), (Some(0), String::new()), "{line}");
    }
    #[rustfmt::skip]
    let cases = [
        (1, "refit ?.npz --output o.npz", "names in UTF-8"),
        (1, "inspect ??.npz", "??.npz"),
        (1, "fit plca ??.csv --rank 2 --output o.npz", "??.csv"),
        (1, "fit plca d.csv --rank 2 --output ??/o.npz", "its folder does not exist"),
        (2, "fit plca d.csv --rank ? --output o.npz", "arguments: '?'; see plca fit --help"),
        (2, "fit ? d.csv --rank 2 --output o.npz", "plca fit --help"),
        (2, "fit plca d.csv --rank 2 --output o.npz --?", "plca fit --help"),
        (2, "refit ?.npz --without ? --output o.npz", "arguments: '?.npz', '?'; see"),
        (2, "completions ?", "plca completions --help"),
        (2, "man ?", "help"),
        (2, "?", "plca --help"),
    ];
    for (status, line, part) in cases {
        let (found, error) = run(line);
        assert_eq!(found, Some(status), "{line}: {error}");
        assert!(
            error.starts_with("error: ") && error.matches('\n').count() == 1,
            "{line}: {error}"
        );
        let part = part.replace('?', "\u{fffd}");
        assert!(error.contains(&part), "{line}: {error}");
    }
}
