//! `plca fit --out-of-core`: the same bytes as in memory, and what becomes of a harmed store.

use std::process::Child;
use std::time::Duration;

use crate::Folder;

/// A folder with the sparse matrix `d.tns`: enough entries for several groups, duplicates and zeros.
fn folder() -> Folder {
    let folder = Folder::new();
    let line = |n: usize| {
        let (i, j) = (n * 7 % 211, (n * n + 3 * n) % 83);
        format!("{} {} {}\n", i + 1, j + 1, n % 5)
    };
    let text: String = (0..36_000).map(line).collect();
    folder.text("d.tns", &text);
    folder
}

#[test]
fn outputs_are_those_of_a_run_in_memory() {
    let folder = folder();
    let basis: Vec<f64> = (0..422).map(|n| f64::from(1 + n * 7 % 11)).collect();
    folder.arrays("i.npz", &[("basis", &[211, 2], &basis)]);
    for model in [
        "plsa --rank 3",
        "plsa --rank 3 --given 0 --precision f32 --restarts 2",
        "plsa --init i.npz --freeze basis --kkt-tol 1e-3",
        "plca --rank 3 --prior factor_0=dirichlet:1.1 --accelerate squarem",
        "plca --rank 3 --temper 0.7 --prior weights=dirichlet:1.1",
        "nmf-kl --rank 3",
        "nmf-kl --rank 3 --update sequential --precision f32",
    ] {
        let (kind, options) = model.split_once(' ').unwrap();
        let line = |rest: &str| {
            format!(
                "fit {kind} d.tns {options} --solver em --max-iter 4 --tol 1e-300 --check-every 3 --quiet --checkpoint-every 2 {rest}"
            )
        };
        folder.ok(&line("--output memory.npz --checkpoint mc.npz --threads 2"));
        folder.ok(&line(
            "--output o.npz --checkpoint oc.npz --threads 1 --out-of-core d.store",
        ));
        assert!(
            folder.bytes("o.npz") == folder.bytes("memory.npz"),
            "{model}"
        );
        assert!(folder.bytes("oc.npz") == folder.bytes("mc.npz"), "{model}");
        // A run may go on in memory or out of it.
        folder.ok(&line(
            "--output r.npz --checkpoint mc.npz --resume mc.npz --threads 3 --out-of-core d.store",
        ));
        assert!(
            folder.bytes("r.npz") == folder.bytes("memory.npz"),
            "{model}"
        );
    }
}

#[test]
fn stores_are_used_again_by_the_same_data_only() {
    let folder = folder();
    let line = "fit plsa d.tns --rank 2 --max-iter 1 --quiet --output o.npz --out-of-core d.store";
    let made = |extra: &str| {
        folder.ok(&format!("{line} {extra}"));
        let changed = folder.path("d.store").metadata().unwrap();
        (folder.bytes("d.store"), changed.modified().unwrap())
    };
    let first = made("");
    assert!(made("") == first);
    let single = made("--precision f32");
    assert!(single.0.len() < first.0.len() && made("--precision f32") == single);
    assert!(made("").0 == first.0);
    let wider = made("--shape 300x90");
    assert!(wider.0 != first.0 && made("").0 == first.0);
    // Harmed between two runs.
    let mut harmed = first.0.clone();
    harmed[1000] ^= 1;
    for harmed in [&harmed[..], &first.0[..5000], &first.0[..20]] {
        std::fs::write(folder.path("d.store"), harmed).unwrap();
        assert!(made("").0 == first.0);
    }
    folder.text("d.tns", "1 1 1\n2 2 2\n");
    assert!(made("").0.len() < 1000);
    let names = folder.names();
    assert_eq!(names, ["d.store", "d.tns", "o.npz"]);
}

#[test]
fn why_a_store_is_made_anew_is_said() {
    let folder = folder();
    let line = "fit plsa d.tns --rank 2 --max-iter 1 --tol 0 --output o.npz --out-of-core d.store";
    let run = |rest: &str| {
        let out = folder.run(&format!("{line} {rest}"));
        assert_eq!(out.status.code(), Some(0));
        let said = String::from_utf8(out.stderr).unwrap();
        let others = said
            .lines()
            .filter(|line| !line.starts_with("warning: observations "));
        others.map(|line| format!("{line}\n")).collect::<String>()
    };
    let anew = |rest: &str, why: &str| {
        let said = format!("warning: d.store: {why}; the store is made again\n");
        assert_eq!(run(rest), said);
        // Nothing to be said of one that is used.
        assert_eq!(run(rest), "");
    };
    assert_eq!(run(""), "");
    let first = folder.bytes("d.store");
    assert_eq!(run(""), "");
    anew("--precision f32", "holds f64, f32 is needed");
    anew("", "holds f32, f64 is needed");
    anew(
        "--shape 300x90",
        "was made for the shape that the entries need",
    );
    anew("", "was made for the shape [300, 90]");
    let harm = |bytes: &[u8]| std::fs::write(folder.path("d.store"), bytes).unwrap();
    harm(&first[..20]);
    anew("", "the file was changed: its header has another checksum");
    let whole = first.len();
    harm(&first[..5000]);
    let why = format!("the file was changed: it has 5000 bytes, {whole} were written");
    anew("", &why);
    let mut bytes = first.clone();
    bytes[1000] ^= 1;
    harm(&bytes);
    let said = run("");
    let why = "warning: d.store: block 0: the file was changed: checksum ";
    assert!(said.starts_with(why), "{said}");
    folder.text("d.tns", "1 1 1\n2 2 2\n");
    // Said to a person: whom nobody listens to is quiet, and the model is the same.
    let memory = line.replace("--out-of-core d.store", "--solver em");
    folder.ok(&format!("{memory} --quiet"));
    let model = folder.found("o.npz");
    anew("", "was made from a file with other contents");
    assert_eq!(folder.found("o.npz"), model);
    harm(&first);
    assert_eq!(run("--quiet"), "");
}

/// A run that would not end by itself, once it has written a checkpoint.
fn running(folder: &Folder, line: &str) -> Child {
    let arguments = "--max-iter 1000000000 --output o.npz --checkpoint c.npz --checkpoint-every 2";
    let mut run = folder.start(&format!("{line} {arguments}"));
    while !folder.path("c.npz").exists() {
        if run.try_wait().unwrap().is_some() {
            let out = run.wait_with_output().unwrap();
            let err = String::from_utf8_lossy(&out.stderr);
            panic!("no checkpoint, {:?}: {err}", out.status.code());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    run
}

#[test]
#[should_panic(expected = "no checkpoint, Some(1): error: gone.tns: ")]
fn a_run_that_ends_too_early_is_not_waited_for() {
    let folder = folder();
    let mut run = running(&folder, "fit plsa gone.tns --rank 2 --out-of-core d.store");
    run.wait().unwrap();
}

#[test]
fn a_store_harmed_during_the_run_ends_it_and_the_checkpoint_continues_it() {
    let folder = folder();
    let line = "fit plsa d.tns --rank 2 --tol 0 --quiet --out-of-core d.store";
    let path = folder.path("d.store");
    let truncate = || {
        let file = std::fs::File::options().write(true).open(&path);
        file.unwrap().set_len(9000).unwrap();
    };
    let change = || {
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[9000] ^= 1;
        std::fs::write(folder.path("new"), bytes).unwrap();
        std::fs::rename(folder.path("new"), &path).unwrap();
    };
    let remove = || std::fs::remove_file(&path).unwrap();
    let harms: [(&dyn Fn(), &str); 3] = [
        (&truncate, "the file was changed: it "),
        (&change, "the file was changed: checksum"),
        (&remove, "No such file"),
    ];
    for (harm, why) in harms {
        let run = running(&folder, line);
        harm();
        let out = run.wait_with_output().unwrap();
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{err}");
        assert!(err.starts_with("error: d.store: block "), "{err}");
        assert!(
            err.contains(why) && err.ends_with("; c.npz continues the run\n"),
            "{err}"
        );
        let saved = plca_io::read_checkpoint(&folder.path("c.npz")).unwrap();
        let done = saved.metadata["checkpoint"]["progress"]["iteration"]
            .as_u64()
            .unwrap();
        let end = done + 3;
        folder.ok(&format!(
            "{line} --max-iter {end} --resume c.npz --output resumed.npz"
        ));
        let memory = line.replace("--out-of-core d.store", "");
        folder.ok(&format!("{memory} --max-iter {end} --output whole.npz"));
        assert!(
            folder.bytes("whole.npz") == folder.bytes("resumed.npz"),
            "{done}"
        );
        assert!(!folder.path("o.npz").exists());
        std::fs::remove_file(folder.path("c.npz")).unwrap();
    }
}

#[test]
fn what_needs_the_data_in_memory_is_refused_before_any_work() {
    let folder = folder();
    folder.text("thesis.txt", "It was a dark and stormy night.");
    folder.text("d.csv", "1,2\n3,4\n");
    folder.text("t.tns", "1 1 1 1\n");
    folder.text(
        "a.mtx",
        "%%MatrixMarket matrix array real general\n1 1\n1\n",
    );
    let line = |model: &str, data: &str, rest: &str| {
        format!("fit {model} {data} --rank 2 --output o.npz {rest}")
    };
    let store = "--out-of-core d.store";
    #[rustfmt::skip]
    let cases = [
        ("siplca", "d.tns", "--kernel 2x2", "siplca has no option --out-of-core"),
        ("skellam", "d.tns", "", "skellam has no option --out-of-core"),
        ("plsa", "d.tns", "--solver fast", "--solver fast cannot be combined with --out-of-core"),
        ("plsa", "d.tns", "--mask d.csv", "--mask"),
        ("plsa", "d.tns", "--missing unstored", "--missing"),
        ("plsa", "d.tns", "--online 0.6,1", "--online"),
        ("plsa", "d.tns", "--temper 0.8,0.9", "--temper"),
        ("plca", "d.csv", "", "d.csv: --out-of-core cannot be used with a table, which is read whole"),
    ];
    for (model, data, rest, why) in cases {
        folder.fails(2, &line(model, data, &format!("{rest} {store}")), &[why]);
    }
    let missing = line("plca", "d.tns", "--out-of-core no/d.store");
    folder.fails(1, &missing, &["no/d.store", "folder does not exist"]);
    for (data, why) in [
        ("a.mtx", "a.mtx: line 3: is dense"),
        ("t.tns", "t.tns: line 1: has 3 indices"),
        ("gone.tns", "gone.tns"),
    ] {
        folder.fails(1, &line("plca", data, store), &[why]);
    }
    let why = &["thesis.txt: exists and is not a store of sparse data: it is not overwritten"][..];
    folder.fails(1, &line("plca", "d.tns", "--out-of-core thesis.txt"), why);
    folder.fails(1, &line("plca", "d.tns", "--out-of-core d.tns"), &["d.tns"]);
    let same = line(
        "plca",
        "d.tns",
        "--checkpoint c --checkpoint-every 1 --out-of-core c",
    );
    folder.refuses(&format!(
        "2 | {same} | --out-of-core c: the same file as --checkpoint"
    ));
}
