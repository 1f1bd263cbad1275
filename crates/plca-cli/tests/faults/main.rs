//! The command under faults: killed, interrupted, short of disk, file size or memory, and in each other's way.
#![cfg(target_os = "linux")]

#[path = "kills.rs"]
mod kills;

#[path = "../common/folder.rs"]
mod folder;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use folder::{Folder, PROGRAM, handles_interrupts, interrupt};

impl Folder {
    /// The command after some words of a shell.
    fn command(&self, limits: &str, line: &str) -> Command {
        let mut command = self.program("bash");
        command.args(["-c", &format!("{limits} exec '{PROGRAM}' {line}")]);
        command
    }

    fn limited(&self, limits: &str, line: &str) -> Output {
        self.command(limits, line).output().unwrap()
    }

    /// Runs a line that must end with status 1 and one line that has all `parts`, and change no file.
    fn fails(&self, limits: &str, line: &str, parts: &[&str]) {
        let whole = format!("{limits} {line}");
        self.refused(1, &whole, parts, || self.limited(limits, line));
    }
}

fn killed(kind: &str) -> kills::Tally {
    let folder = tempfile::tempdir().unwrap();
    kills::run(kind, Path::new(PROGRAM), folder.path(), 12, 7).unwrap()
}

#[test]
fn killed_with_checkpoints() {
    let tally = killed("checkpoints");
    assert!(tally.resumed > 0, "{tally:?}");
}

#[test]
fn killed_online() {
    let tally = killed("online");
    assert!(tally.resumed > 0, "{tally:?}");
}

/// A run from scratch has the bytes of one that went on: the tally tells them apart.
#[test]
fn whoever_ignores_checkpoints_is_seen() {
    let folder = Folder::new();
    let script = format!("#!/bin/bash\nargs=\"$*\"\nexec '{PROGRAM}' ${{args/--resume c/}}\n");
    folder.text("plca", &script);
    let program = folder.path("plca");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, executable).unwrap();
    let tally = kills::run("online", &program, &folder.path("runs"), 4, 7).unwrap();
    assert_eq!(tally.resumed, 0, "{tally:?}");
}

#[test]
fn killed_with_a_store() {
    killed("store");
}

#[test]
fn killed_in_transform() {
    killed("transform");
}

/// An interruption leaves nothing, not even for a moment: also while a store is sorted or written.
#[test]
fn interrupted_stores_leave_nothing() {
    let folder = Folder::with_counts();
    let line = |n: usize| format!("{} {} {}\n", n % 311 + 1, n * 7 % 203 + 1, n % 5 + 1);
    folder.text("d.tns", &(0..60_000).map(line).collect::<String>());
    let before = folder.names();
    let line = "fit plsa d.tns --rank 2 --max-iter 1 --quiet --output o.npz --out-of-core s.store";
    let mut interrupted = 0;
    for moment in 0..24 {
        let run = folder.start(line);
        std::thread::sleep(Duration::from_millis(10 * moment));
        let told = interrupt(&run);
        let out = run.wait_with_output().unwrap();
        let error = String::from_utf8(out.stderr).unwrap();
        match out.status.code() {
            Some(0) => {}
            Some(130) => {
                interrupted += 1;
                assert!(error.starts_with("error: interrupted"), "{error}");
                assert_eq!(error.lines().count(), 1, "{error}");
                assert!(!folder.path("o.npz").exists());
            }
            // The signal came before the program had anything to say about it.
            None if told && error.is_empty() => {}
            status => panic!("{status:?}: {error}"),
        }
        let written = ["o.npz", "s.store"];
        let mut left = folder.names();
        left.retain(|name| !written.contains(&name.as_str()));
        assert_eq!(left, before);
        for name in written {
            let _ = std::fs::remove_file(folder.path(name));
        }
    }
    assert!(interrupted > 0);
}

/// The array `o.npy` of 18 MB: the folder with its model, what is there, and the line that makes it.
fn large_array() -> (Folder, Vec<u8>, &'static str) {
    let folder = Folder::new();
    let ones = |shape: [usize; 2]| plca_io::Array::new(shape.to_vec(), vec![1.0; 1500]);
    let file = plca_io::ModelFile {
        arrays: [("w".into(), ones([1500, 1])), ("h".into(), ones([1, 1500]))].into(),
        metadata: serde_json::json!({ "model": "nmf-kl", "data": { "shape": [1500, 1500], "total": 1.0 } }),
    };
    plca_io::write_model(folder.path("m.npz"), &file, false).unwrap();
    let line = "reconstruct m.npz --output o.npy";
    folder.ok(line);
    let whole = folder.bytes("o.npy");
    folder.text("o.npy", "what was there before");
    (folder, whole, line)
}

/// Whether something of a file is written that has not its name yet.
fn is_writing(folder: &Folder) -> bool {
    let begun = |name: &String| {
        let size = std::fs::metadata(folder.path(name)).map_or(0, |file| file.len());
        name.starts_with(".plca-") && size > 0
    };
    folder.names().iter().any(begun)
}

/// Interrupted before, in and after the write of a large array: the file is the old one or the new one, and nothing is beside it.
#[test]
fn interrupted_arrays_are_whole() {
    let (folder, new, line) = large_array();
    let (before, old) = (folder.names(), folder.bytes("o.npy"));
    let mut within = 0;
    for moment in 0..12 {
        folder.text("o.npy", std::str::from_utf8(&old).unwrap());
        let mut run = folder.start(line);
        if moment % 2 == 0 {
            std::thread::sleep(Duration::from_millis(40 * moment));
        } else {
            while !is_writing(&folder) && run.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            within += usize::from(is_writing(&folder));
        }
        let told = interrupt(&run);
        let out = run.wait_with_output().unwrap();
        let error = String::from_utf8(out.stderr).unwrap();
        let found = folder.bytes("o.npy");
        match out.status.code() {
            Some(0) => assert!(found == new && error.is_empty(), "{error}"),
            Some(130) => {
                assert_eq!(error, "error: interrupted\n");
                assert!(found == old || found == new, "{} bytes", found.len());
            }
            // The signal came before the program had anything to say about it.
            None if told && error.is_empty() => assert!(found == old),
            status => panic!("{status:?}: {error}"),
        }
        assert_eq!(folder.names(), before);
    }
    assert!(within > 0);
}

/// A trace that cannot be written any more, here because nobody reads it, ends the run: there is no model without it.
#[test]
fn a_model_is_not_left_without_its_trace() {
    let folder = Folder::with_counts();
    let made = Command::new("mkfifo").arg(folder.path("t")).status();
    assert!(made.unwrap().success());
    let line =
        "fit nmf-kl d.csv --rank 2 --tol 0 --max-iter 2000000000 --quiet --output o.npz --trace t";
    let run = folder.start(line);
    let mut first = [0];
    let mut reader = std::fs::File::open(folder.path("t")).unwrap();
    reader.read_exact(&mut first).unwrap();
    drop(reader);
    let out = run.wait_with_output().unwrap();
    let error = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{error}");
    assert!(error.starts_with("error: t: "), "{error}");
    assert_eq!(folder.names(), ["d.csv", "t"]);
}

/// An interruption takes as long as it takes to say so, here to a pipe that is full: no write begins in the meantime, to be cut.
#[test]
fn nothing_is_written_while_an_interruption_is_told() {
    let (folder, new, line) = large_array();
    let (before, old) = (folder.names(), folder.bytes("o.npy"));
    let started = Instant::now();
    folder.ok(line);
    let whole = started.elapsed();
    for _ in 0..20 {
        folder.text("o.npy", std::str::from_utf8(&old).unwrap());
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut filler = writer.try_clone().unwrap();
        let mut command = folder.program(PROGRAM);
        command.args(line.split_whitespace()).stderr(writer);
        let mut run = command.spawn().unwrap();
        drop(command);
        // More than any pipe holds.
        let full = std::thread::spawn(move || filler.write_all(&vec![b'.'; 1 << 22]));
        while !handles_interrupts(&run) {
            assert!(run.try_wait().unwrap().is_none());
            std::thread::yield_now();
        }
        assert!(interrupt(&run));
        let told = Instant::now();
        while !is_writing(&folder) && told.elapsed() < 2 * whole {
            std::thread::yield_now();
        }
        // Where the pipe was not full in time there was nothing to wait for.
        let waits = run.try_wait().unwrap().is_none();
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        full.join().unwrap().unwrap();
        let status = run.wait().unwrap().code();
        assert_eq!(folder.names(), before);
        let found = folder.bytes("o.npy");
        if status == Some(130) && found == old {
            assert!(said.contains("error: interrupted\n"));
            if waits {
                return;
            }
            continue;
        }
        // It came while the output was tried, or after it was written.
        assert!(found == new, "{status:?}: {} bytes", found.len());
    }
    panic!("never interrupted");
}

/// A limit on the size of files, met by the second start's checkpoint, which also holds the best of the first one.
#[test]
fn a_limit_on_file_sizes_keeps_the_earlier_checkpoint() {
    let folder = Folder::with_counts();
    let line = "fit plca d.csv --rank 40 --tol 0 --max-iter 6 --quiet --output o.npz";
    let saved = "--checkpoint c --checkpoint-every 3";
    folder.ok(&format!("{line} {saved} --restarts 1"));
    let room = folder.bytes("c").len() / 1024 + 1;
    let first = folder.bytes("c");
    std::fs::remove_file(folder.path("c")).unwrap();
    std::fs::remove_file(folder.path("o.npz")).unwrap();
    let out = folder.limited(
        &format!("ulimit -f {room};"),
        &format!("{line} {saved} --restarts 2"),
    );
    let error = String::from_utf8(out.stderr).unwrap();
    assert_eq!(
        (out.status.code(), error.lines().count()),
        (Some(1), 1),
        "{error}"
    );
    assert!(error.starts_with("error: c: "), "{error}");
    assert_eq!(folder.names(), ["c", "d.csv"]);
    assert_eq!(folder.bytes("c").len(), first.len());
    // It continues the run.
    folder.ok(&format!("{line} --restarts 2 --resume c"));
    let resumed = folder.bytes("o.npz");
    folder.ok(&format!("{line} --restarts 2"));
    assert!(folder.bytes("o.npz") == resumed);
    // Every other output.
    let limit = "ulimit -f 1;";
    folder.fails(limit, line, &["o.npz"]);
    folder.fails(limit, "transform o.npz d.csv --output n.npz", &["n.npz"]);
    folder.text(
        "e.csv",
        &"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n".repeat(32),
    );
    folder.ok("fit plca e.csv --rank 2 --max-iter 2 --quiet --output e.npz");
    folder.fails(limit, "reconstruct e.npz --output a.npy", &["a.npy"]);
    folder.fails(limit, "sample e.npz --draws 9 --output a.npy", &["a.npy"]);
    let entries = (1..400).map(|n| format!("{} {} {n}\n", n % 19 + 1, n));
    folder.text("e.tns", &entries.collect::<String>());
    let store = "fit plca e.tns --rank 2 --max-iter 2 --quiet --output s.npz --out-of-core s.store";
    folder.fails(limit, store, &[]);
}

/// A disk of 64 kB; where there is no right to have one, files that are no longer than that.
#[test]
fn a_full_disk_changes_nothing() {
    let folder = Folder::with_counts();
    let disk = folder.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&disk)
        .stderr(Stdio::null())
        .status();
    let mounted = mounted.is_ok_and(|status| status.success());
    let limit = if mounted { "" } else { "ulimit -f 64;" };
    struct Unmount(PathBuf);
    impl Drop for Unmount {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.0).status();
        }
    }
    let _unmount = mounted.then(|| Unmount(disk.clone()));
    let line = "fit plca d.csv --quiet --max-iter 4 --tol 0 --output disk/o.npz";
    folder.ok(&format!(
        "{line} --rank 2 --checkpoint disk/c --checkpoint-every 2"
    ));
    let names = || {
        let entries = std::fs::read_dir(&disk).unwrap();
        entries
            .map(|e| e.unwrap().file_name())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let before = (names(), folder.bytes("disk/o.npz"), folder.bytes("disk/c"));
    let large = format!("{line} --rank 2000");
    folder.fails(limit, &large, &["disk/o.npz"]);
    let large = large.replace("disk/o.npz", "o.npz");
    folder.fails(
        limit,
        &format!("{large} --checkpoint disk/c --checkpoint-every 2"),
        &["disk/c"],
    );
    let after = (names(), folder.bytes("disk/o.npz"), folder.bytes("disk/c"));
    assert!(before == after);
}

/// Arrays beyond the memory that a process may have are refused by their sizes, wherever they come from.
#[test]
fn requests_beyond_the_memory_are_refused() {
    let folder = Folder::with_counts();
    let sound = plca_media::Sound::mono(8000, (0..9000).map(|n| (0.1 * n as f64).sin()).collect());
    plca_media::write_wav(folder.path("s.wav"), &sound).unwrap();
    let n = 20_000;
    // Distributions, whichever axis they lie along.
    let ones = |shape: &[usize]| {
        let each = 1.0 / (shape[0] * shape.get(2).unwrap_or(&1)) as f64;
        plca_io::Array::new(shape.to_vec(), vec![each; shape.iter().product()])
    };
    let model = |name: &str, model: &str, arrays: &[(&str, &[usize])]| {
        let arrays = arrays
            .iter()
            .map(|(n, s)| (n.to_string(), ones(s)))
            .collect();
        let metadata = serde_json::json!({
            "model": model, "data": { "shape": [n, n], "total": 1.0 },
            "settings": { "m": "1", "domain": ["valid"], "kernel": [1, 1] },
        });
        let file = plca_io::ModelFile { arrays, metadata };
        plca_io::write_model(folder.path(name), &file, false).unwrap();
    };
    model(
        "ding.npz",
        "snmf-ding",
        &[("basis", &[n, 1]), ("activations", &[1, n])],
    );
    model("nmf.npz", "nmf-kl", &[("w", &[n, 1]), ("h", &[1, n])]);
    model(
        "skellam.npz",
        "skellam",
        &[("atoms", &[n, 1, 2]), ("activations", &[1, n])],
    );
    let centres: &[(&str, &[usize])] = &[("centres", &[n, 2]), ("labels", &[n])];
    model("kmeans.npz", "kmeans", centres);
    let file = folder.path("kmeans.npz");
    let mut clusters = plca_io::read_model(&file).unwrap();
    clusters.arrays.get_mut("labels").unwrap().values.fill(0.0);
    plca_io::write_model(&file, &clusters, false).unwrap();
    let limit = "ulimit -v 2097152;";
    for line in [
        "spectrogram s.wav --frame 1048576 --hop 1 --output o.npy",
        "spectrogram s.wav --frame 65536 --hop 1 --output o.npy",
        "reconstruct ding.npz --output o.npy",
        "reconstruct nmf.npz --output o.npy",
        "reconstruct skellam.npz --output o.npy",
        "reconstruct kmeans.npz --output o.npy",
        "sample nmf.npz --draws 3 --output o.npy",
        "sample skellam.npz --draws 3 --output o.npy",
    ] {
        folder.fails(limit, line, &["numbers needs", "bytes"]);
        if line.contains("1048576") {
            folder.fails("", line, &["524289 x 1057575", "the limit is"]);
        }
    }
    for line in [
        "fit plca d.csv --rank 100000000 --output o.npz",
        "fit siplca d.csv --rank 1 --kernel 30000x30000 --support full --output o.npz",
        "select plca d.csv --ranks 90000000",
    ] {
        let out = folder.limited(limit, line);
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(
            matches!(out.status.code(), Some(1 | 2)),
            "{line}: {}: {error}",
            out.status
        );
        assert!(
            error.starts_with("error: ") && error.lines().count() == 1,
            "{line}: {error}"
        );
    }
}

/// Names and shapes of the blocks of a model.
type Blocks<'a> = &'a [(&'a str, &'a [usize])];

/// What would describe new data, and sparse data as the matrix that a model needs, are asked for before they are made.
#[test]
fn data_beyond_the_memory_are_refused() {
    let folder = Folder::with_counts();
    folder.text("wide.tns", "1 1 3\n2 20000 1\n");
    folder.text("one.tns", "1 1 3\n");
    let (limit, k) = ("ulimit -v 2097152;", 10_000);
    let file = |name: &str, arrays: Blocks<'_>| {
        let ones = |&(block, shape): &(&str, &[usize])| {
            // Distributions, whichever axes they lie along.
            let each = match shape {
                [_, 1, 1] => 1,
                [_, rows, columns] if *columns > 2 => rows * columns,
                [rows, _, 2] => 2 * rows,
                [rows, ..] => *rows,
                [] => 1,
            };
            let values = vec![1.0 / each as f64; shape.iter().product()];
            (
                block.to_string(),
                plca_io::Array::new(shape.to_vec(), values),
            )
        };
        let file = plca_io::ModelFile {
            arrays: arrays.iter().map(ones).collect(),
            metadata: serde_json::json!({ "model": name, "data": { "shape": [2, 3], "total": 1.0 } }),
        };
        plca_io::write_model(folder.path("m.npz"), &file, false).unwrap();
    };
    let factors: Blocks<'_> = &[
        ("weights", &[k]),
        ("factor_0", &[2, k]),
        ("factor_1", &[3, k]),
    ];
    let posterior: Blocks<'_> = &[
        ("atoms_shape", &[2, k, 2]),
        ("activations_shape", &[k, 3]),
        ("activations_rate", &[k, 3]),
    ];
    let shifted: Blocks<'_> = &[
        ("weights", &[k]),
        ("kernels", &[k, 1, 1]),
        ("impulses", &[k, 2, 3]),
    ];
    let models: [(&str, Blocks<'_>); 8] = [
        ("plca", factors),
        ("plsa", &[("basis", &[2, k])]),
        ("nmf-kl", &[("w", &[2, k]), ("h", &[k, 3])]),
        ("siplca", shifted),
        (
            "skellam",
            &[("atoms", &[2, k, 2]), ("activations", &[k, 3])],
        ),
        ("skellam-vb", posterior),
        ("pntf", factors),
        ("ntf-l2", factors),
    ];
    for (name, arrays) in models {
        file(name, arrays);
        let each = if name == "siplca" { 2 * k } else { k };
        let size = format!("20000 observations: an array of 4 x {each} x 20000 numbers needs");
        let line = "transform m.npz wide.tns --output o.npz";
        folder.fails(limit, line, &["wide.tns: ", &size]);
    }
    let fit = |rest: &str| format!("fit {rest} --rank 1 --output o.npz");
    let store = fit("plsa one.tns --shape 1x400000000 --out-of-core s.store");
    let part = "one.tns: data of shape [1, 400000000]: an array of 400000001 numbers needs";
    folder.fails(limit, &store, &[part]);
    for model in ["kmeans", "snmf-ding", "skellam"] {
        let dense = fit(&format!("{model} one.tns --shape 20000x20000"));
        folder.fails(limit, &dense, &["one.tns: ", "20000 x 20000 numbers needs"]);
        let listed = fit(&format!(
            "{model} one.tns --shape 1x400000000 --missing unstored"
        ));
        folder.fails(limit, &listed, &["one.tns: data of shape [1, 400000000]: "]);
    }
}

/// Sixty components of a spectrogram whose complex parts alone would be 470 MB.
#[test]
fn sounds_are_separated_in_little_memory() {
    let folder = Folder::with_counts();
    let samples: Vec<f64> = (0..60_000).map(|n| (0.01 * f64::from(n)).sin()).collect();
    let sound = plca_media::Sound::mono(8000, samples);
    plca_media::write_wav(folder.path("s.wav"), &sound).unwrap();
    let (bins, frames, k) = (513, (60_000usize + 960).div_ceil(64), 60);
    let block = |shape: [usize; 2]| {
        let values = (0..shape[0] * shape[1]).map(|n| 1.0 + (n % 7) as f64);
        plca_io::Array::new(shape.to_vec(), values.collect())
    };
    let file = plca_io::ModelFile {
        arrays: [
            ("w".into(), block([bins, k])),
            ("h".into(), block([k, frames])),
        ]
        .into(),
        metadata: serde_json::json!({ "model": "nmf-kl", "data": { "shape": [bins, frames] } }),
    };
    plca_io::write_model(folder.path("m.npz"), &file, false).unwrap();
    let line = "separate m.npz s.wav --hop 64 --output parts";
    let out = folder.limited("ulimit -v 262144;", line);
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && error.is_empty(), "{error}");
    let parts = std::fs::read_dir(folder.path("parts")).unwrap();
    assert_eq!(parts.count(), k);
}

/// Two runs write one target, again and again: whoever is last, the file is one of the two.
#[test]
fn two_writers_leave_one_whole_file() {
    let folder = Folder::with_counts();
    let line = |seed: usize, output: &str| {
        format!(
            "fit plca d.csv --rank 30 --tol 0 --max-iter 20 --quiet --seed {seed} --output {output} --checkpoint c --checkpoint-every 1"
        )
    };
    let whole = [1, 2].map(|seed| {
        folder.ok(&line(seed, "w.npz"));
        folder.bytes("w.npz")
    });
    for _ in 0..8 {
        let runs = [1, 2].map(|seed| folder.command("", &line(seed, "o.npz")).spawn().unwrap());
        for mut run in runs {
            while run.try_wait().unwrap().is_none() {
                // A reader in between finds a whole file.
                if let Ok(found) = std::fs::read(folder.path("o.npz")) {
                    assert!(whole.contains(&found));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(run.wait().unwrap().success());
        }
        assert!(whole.contains(&folder.bytes("o.npz")));
        plca_io::read_checkpoint(&folder.path("c")).unwrap();
        assert_eq!(folder.names(), ["c", "d.csv", "o.npz", "w.npz"]);
    }
}
