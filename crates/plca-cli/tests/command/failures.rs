//! Every failure: its status, its one line, and nothing written.

use crate::Folder;

#[test]
fn wrong_command_lines_end_with_two() {
    let folder = Folder::with_counts();
    folder.text("o.npz", "must stay");
    for line in [
        "fit plca d.csv --rank -1",
        "fit plca d.csv --rank 2.5",
        "fit plca d.csv --rank 2 --tol nan",
        "fit plca d.csv --rank 2 --freeze nothing",
        "fit plca d.csv --rank 2 --freeze weights",
        "fit plca d.csv --rank 2 --prior weights=nothing:1",
        "fit plca d.csv --rank 2 --prior nothing=dirichlet:1",
        "fit plca d.csv --rank 2 --temper 0",
        "fit plca d.csv --rank 2 --given 0",
        "fit plca d.csv --rank 2 --update sequential",
        "fit nmf-kl d.csv --rank 2 --prior w=dirichlet:2",
        "fit nmf-kl d.csv --rank 2 --update sequential --missing-method imputation",
        "fit plca d.csv --rank 2 --kkt-tol 1e-3 --prior weights=dirichlet:2",
        "fit plsa d.csv --rank 2 --kkt-tol 1e-3 --priors p.npz",
        "fit plca d.csv --rank 2 --kkt-tol 1e-3 --temper 1,.9",
        "fit plsa d.csv --rank 2 --kkt-tol 1e-3 --temper 1,.9",
        "fit plca d.csv --rank 2 --kernel 3x8",
        "fit siplca d.csv --rank 2 --kernel 1x1 --replicates 2",
        "fit siplca d.csv --rank 2 --kernel 1x1 --real-data",
        "fit siplca d.csv --rank 2 --kernel 1x1 --floor 1",
        "fit siplca d.csv --rank 2 --kernel 1x1 --seeding k-means",
        "fit siplca d.csv --rank 2 --kernel 1x1 --temper-prior",
    ] {
        folder.fails(2, &format!("{line} --output o.npz"), &[]);
    }
}

#[test]
fn bad_data_end_with_one_and_name_the_place() {
    let folder = Folder::new();
    folder.text("o.npz", "must stay");
    folder.text("nan.csv", "1,2\n3,nan\n");
    folder.text("negative.csv", "1,2\n3,-4\n");
    folder.text("infinite.csv", "1,2\ninf,4\n");
    folder.text("word.csv", "1,2\n3,four\n");
    folder.text("ragged.csv", "1,2\n3\n");
    folder.text("zero.csv", "0,0\n0,0\n");
    folder.text("zero.tns", "0 1 3\n");
    folder.text("nan.tns", "1 1 3\n2 2 nan\n");
    folder.text("vast.tns", "4294967295 1 3\n");
    folder.npy("overflow.npy", &[2, 2], &[1e308; 4]);
    folder.text("d.xyz", "1,2\n");
    folder.text("empty.csv", "");
    folder.npy("scalar.npy", &[], &[1.0]);
    folder.npy("axis.npy", &[0, 3], &[]);
    folder.npy("cube.npy", &[2, 2, 2], &[1.0; 8]);
    for model in ["plca", "plsa", "nmf-kl"] {
        let how = "--rank 2 --output o.npz --quiet --json";
        folder.refuses(&format!(
            "
            1 | fit {model} nan.csv {how} | nan.csv | --missing nan
            1 | fit {model} negative.csv {how} | negative.csv | -4
            1 | fit {model} infinite.csv {how} | infinite.csv | inf
            1 | fit {model} word.csv {how} | word.csv | four | line 2
            1 | fit {model} ragged.csv {how} | ragged.csv | line 2
            1 | fit {model} zero.csv {how} | zero.csv
            1 | fit {model} zero.tns {how} | zero.tns | line 1
            1 | fit {model} nan.tns {how} | nan.tns | NaN
            1 | fit {model} vast.tns {how} | vast.tns | 4294967295
            1 | fit {model} overflow.npy {how} | overflow.npy | inf
            1 | fit {model} d.xyz {how} | d.xyz | extension
            1 | fit {model} absent.csv {how} | absent.csv
            1 | fit {model} empty.csv {how} | empty.csv
            1 | fit {model} scalar.npy {how} | scalar.npy
            1 | fit {model} axis.npy {how} | axis.npy
        "
        ));
    }
    folder.refuses(
        "
            1 | fit plsa cube.npy --rank 2 --output o.npz | cube.npy | [2, 2, 2]
            1 | fit nmf-kl cube.npy --rank 2 --output o.npz | cube.npy | [2, 2, 2]
        ",
    );
}

#[test]
fn bad_masks_and_starts_name_their_file() {
    let folder = Folder::with_counts();
    folder.npy("none.npy", &[3, 4], &[0.0; 12]);
    folder.npy("shape.npy", &[4, 3], &[1.0; 12]);
    for mask in ["none.npy", "shape.npy", "absent.npy"] {
        folder.fails(
            1,
            &format!("fit plca d.csv --rank 2 --mask {mask} --output o.npz"),
            &["error: "],
        );
    }
    folder
        .refuses("1 | fit plca d.csv --rank 2 --missing unstored --output o.npz | d.csv | sparse");
    let shape: &[usize] = &[3, 2];
    for (values, part) in [
        ([1.0, 1.0, -2.0, 1.0, 1.0, 1.0], "-2"),
        ([1.0, 1.0, f64::NAN, 1.0, 1.0, 1.0], "NaN"),
        ([1.0, 0.0, 1.0, 0.0, 1.0, 0.0], "column 1"),
        ([0.0, 0.0, 1.0, 1.0, 1.0, 1.0], "[0, 0] is 3"),
    ] {
        folder.arrays("i.npz", &[("factor_0", shape, &values)]);
        folder.refuses(&format!(
            "1 | fit plca d.csv --init i.npz --output o.npz | i.npz | {part}"
        ));
    }
    folder.arrays("i.npz", &[("factor_0", &[4, 2], &[1.0; 8])]);
    folder.refuses("1 | fit plca d.csv --init i.npz --output o.npz | i.npz | factor_0 | 4x2 | 3x2");
    folder.arrays("i.npz", &[("nothing", shape, &[1.0; 6])]);
    folder.refuses("1 | fit plca d.csv --init i.npz --rank 2 --output o.npz | i.npz | nothing");
    folder.arrays("i.npz", &[("factor_0", shape, &[1.0; 6])]);
    folder.refuses("2 | fit plca d.csv --init i.npz --rank 3 --output o.npz | 3 | 2");
    // Part of the blocks is enough.
    folder.ok("fit plca d.csv --init i.npz --output o.npz --quiet");
}

/// What only the algorithm finds out is said of the data.
#[test]
fn refusals_of_the_algorithm_name_the_data() {
    let folder = Folder::new();
    folder.text("d.tns", "1 1 1 3\n2 1 2 5\n2 2 2 1\n");
    folder.fails(
        1,
        "fit plca d.tns --rank 2 --missing unstored --missing-method multiplicative --output o.npz",
        &["error: d.tns: ", "matrices", "order 3"],
    );
}

#[test]
fn outputs_that_cannot_be_written_leave_nothing() {
    let folder = Folder::with_counts();
    folder.refuses(
        "
            1 | fit plca d.csv --rank 2 --output o.txt | o.txt | extension
            1 | fit plca d.csv --rank 2 --output absent/o.npz | absent/o.npz
            1 | fit plca d.csv --rank 2 --output o.npz --trace absent/t.jsonl | absent/t.jsonl
        ",
    );
    if cfg!(target_os = "linux") {
        // A full disk.
        folder.refuses("1 | fit plca d.csv --rank 2 --output o.npz --trace /dev/full | /dev/full");
    }
    folder.fails(1, "inspect d.csv", &["d.csv"]);
    folder.ok("fit plca d.csv --rank 2 --output o.npz --quiet");
    folder.refuses(
        "
            1 | reconstruct o.npz --output a.csv | a.csv | extension
            1 | sample o.npz --draws 3 --output a.txt | a.txt | extension
            1 | transform o.npz d.csv --output n.txt | n.txt | extension
        ",
    );
    folder.text("tall.csv", "1,2\n3,4\n5,6\n7,8\n");
    folder.refuses(
        "
            1 | transform o.npz tall.csv --output n.npz | tall.csv | 4 x 2
            2 | transform o.npz d.csv --along 7 --output n.npz | 7
        ",
    );
    let mut cut = folder.bytes("o.npz");
    cut.truncate(cut.len() / 2);
    std::fs::write(folder.path("cut.npz"), cut).unwrap();
    folder.fails(1, "inspect cut.npz", &["cut.npz"]);
}

/// Every output of every command, before any work: the data and the models named do not even exist.
#[test]
fn outputs_are_tried_before_any_work() {
    let folder = Folder::new();
    folder.text("file", "");
    std::fs::create_dir(folder.path("sealed")).unwrap();
    #[rustfmt::skip]
    let outputs = [
        ("fit plca no.csv --rank 2 --output", "npz"),
        ("fit plca no.csv --rank 2 --output", "safetensors"),
        ("fit plca no.csv --rank 2 --online .6,1 --output", "npz"),
        ("fit plca no.csv --rank 2 --output o.npz --trace", "jsonl"),
        ("fit plca no.csv --rank 2 --output o.npz --checkpoint-every 2 --checkpoint", "npz"),
        ("fit plca no.tns --rank 2 --output o.npz --out-of-core", "store"),
        ("transform no.npz no.csv --output", "npz"),
        ("reconstruct no.npz --output", "npy"),
        ("sample no.npz --draws 3 --output", "npy"),
        ("spectrogram no.wav --output", "npy"),
    ];
    let refused = |line: &str, target: &str, parts: &[&str]| {
        let parts: Vec<&str> = [target].iter().chain(parts).copied().collect();
        folder.fails(1, &format!("{line} {target}"), &parts);
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let sealed = std::fs::Permissions::from_mode(0o555);
        std::fs::set_permissions(folder.path("sealed"), sealed).unwrap();
    }
    // The superuser may write anywhere but where there are no files.
    let bound = std::fs::write(folder.path("sealed/trial"), "").is_err();
    let sealed = bound.then_some(("sealed", "denied"));
    let no_place = cfg!(target_os = "linux").then_some(("/proc", "No such file"));
    let sealed: Vec<_> = sealed.into_iter().chain(no_place).collect();
    let long = "a".repeat(300);
    for (line, extension) in outputs {
        let target = format!("taken.{extension}");
        std::fs::create_dir_all(folder.path(&target)).unwrap();
        let why = if extension == "store" {
            "folder"
        } else {
            "is a folder"
        };
        refused(line, &target, &[why]);
        refused(
            line,
            &format!("file/o.{extension}"),
            &["file is not a folder"],
        );
        refused(line, &format!("absent/o.{extension}"), &["does not exist"]);
        refused(line, &format!("{long}.{extension}"), &["too long"]);
        for (place, why) in &sealed {
            refused(line, &format!("{place}/o.{extension}"), &[why]);
        }
    }
    // A folder of sounds.
    let separate = "separate no.npz no.wav --output";
    refused(separate, "file", &["is not a folder"]);
    refused(separate, "file/parts", &["file is not a folder"]);
    refused(separate, "absent/parts", &["does not exist"]);
    std::fs::create_dir_all(folder.path("parts/component_0.wav")).unwrap();
    refused(separate, "parts", &["component_0.wav", "is a folder"]);
    for (place, why) in &sealed {
        refused(separate, place, &[why]);
        refused(separate, &format!("{place}/parts"), &[why]);
    }
}

#[test]
fn inputs_are_never_overwritten() {
    let folder = Folder::with_counts();
    folder.ok("fit plca d.csv --rank 2 --output m.npz --quiet --checkpoint c.npz --checkpoint-every 1 --max-iter 3");
    folder.ok("fit plca d.csv --rank 2 --output i.npz --quiet");
    let before = ["m.npz", "i.npz", "c.npz"].map(|name| folder.bytes(name));
    folder.refuses(
        "
            2 | transform m.npz d.csv --output m.npz | the same file
            2 | fit plca d.csv --init i.npz --output i.npz | the same file
            2 | fit plca d.csv --init i.npz --output o.npz --trace i.npz | the same file
            2 | fit plca d.csv --rank 2 --max-iter 3 --resume c.npz --output c.npz | the same file
        ",
    );
    let after = ["m.npz", "i.npz", "c.npz"].map(|name| folder.bytes(name));
    assert!(before == after);
}

/// Links to a file that is not there yet: it would be written twice, and the last one would stay.
#[cfg(unix)]
#[test]
fn outputs_do_not_meet_at_the_end_of_a_link() {
    let folder = Folder::with_counts();
    std::fs::create_dir(folder.path("inner")).unwrap();
    for (to, name) in [
        ("m.npz", "latest.npz"),
        ("../latest.npz", "inner/other.npz"),
    ] {
        std::os::unix::fs::symlink(to, folder.path(name)).unwrap();
    }
    let line = "fit plca d.csv --rank 2 --quiet --output";
    folder.refuses(&format!(
        "
            2 | {line} latest.npz --trace m.npz | the same file
            2 | {line} m.npz --trace latest.npz | the same file
            2 | {line} inner/other.npz --trace ./m.npz | the same file
            2 | {line} latest.npz --checkpoint inner/other.npz --checkpoint-every 1 | the same file
        "
    ));
    let out = folder.run(&format!("{line} inner/other.npz --trace t.jsonl"));
    assert!(out.status.success() && out.stderr.is_empty());
    assert_eq!(
        folder.names(),
        ["d.csv", "inner", "latest.npz", "m.npz", "t.jsonl"]
    );
}

#[test]
fn a_block_has_one_prior() {
    let folder = Folder::with_counts();
    folder.arrays("p.npz", &[("weights.dirichlet", &[2], &[2.0, 3.0])]);
    let line = "fit plca d.csv --rank 2 --output o.npz --prior weights=dirichlet:2";
    folder.refuses(&format!(
        "
            2 | {line} --prior weights=dirichlet:3 | weights | already
            1 | {line} --priors p.npz | p.npz | weights | already
        "
    ));
}

#[test]
fn a_checkpoint_beyond_the_last_iteration_is_refused() {
    let folder = Folder::with_counts();
    let line = "fit plca d.csv --rank 2 --tol 0 --quiet --output o.npz";
    folder.ok(&format!(
        "{line} --max-iter 6 --checkpoint c.npz --checkpoint-every 6"
    ));
    folder.refuses(&format!(
        "1 | {line} --max-iter 2 --resume c.npz | c.npz | 6 | 2"
    ));
}

/// What a terminal would obey is shown, by whatever way it comes out.
#[test]
fn names_from_files_are_escaped() {
    let folder = Folder::with_counts();
    let hostile = "a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\nb";
    folder.arrays("i.npz", &[(hostile, &[1], &[1.0])]);
    let mut file = folder.model("i.npz");
    file.metadata = serde_json::json!({ hostile: hostile });
    plca_io::write_model(folder.path("m.npz"), &file, false).unwrap();
    let text = folder.ok("inspect m.npz");
    assert_eq!(text.lines().count(), 2, "{text:?}");
    let json = folder.ok("inspect m.npz --json");
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read["metadata"][hostile], hostile);
    let refused = folder.run("fit plca d.csv --init i.npz --output o.npz");
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("unknown block"), "{error:?}");
    for said in [&text, &json, &error] {
        let obeyed = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!said.contains(obeyed), "{said:?}");
        assert!(
            said.contains("\\u001b[2J\\u009b31m\\u007f\\u202e"),
            "{said:?}"
        );
    }
}
