//! How runs end: interrupted, refused, on a full disk.

use std::process::{Command, Stdio};

use crate::Folder;

#[cfg(unix)]
#[test]
fn interrupted_runs_leave_a_checkpoint_that_continues_them() {
    let folder = Folder::with_counts();
    folder.text("o.npz", "must stay");
    let line = "fit plca d.csv --rank 2 --tol 0";
    let arguments =
        "--max-iter 1000000000 --output o.npz --checkpoint c.npz --checkpoint-every 3 --quiet";
    let run = Command::new(env!("CARGO_BIN_EXE_plca"))
        .current_dir(folder.path("."))
        .args(line.split_whitespace().chain(arguments.split_whitespace()))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !folder.path("c.npz").exists() {
        std::thread::yield_now();
    }
    let told = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status()
        .unwrap();
    assert!(told.success());
    let out = run.wait_with_output().unwrap();
    let err = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(
        err.starts_with("error: interrupted after ") && err.lines().count() == 1,
        "{err}"
    );
    assert!(err.contains("c.npz"), "{err}");
    assert_eq!(folder.bytes("o.npz"), b"must stay");
    assert_eq!(folder.names(), ["c.npz", "d.csv", "o.npz"]);
    let done: usize = err.split_whitespace().nth(3).unwrap().parse().unwrap();
    let end = done + 5;
    folder.ok(&format!(
        "{line} --max-iter {end} --resume c.npz --output resumed.npz --quiet"
    ));
    folder.ok(&format!(
        "{line} --max-iter {end} --output whole.npz --quiet"
    ));
    assert!(
        folder.bytes("whole.npz") == folder.bytes("resumed.npz"),
        "{done}"
    );
}

#[test]
fn outputs_over_each_other_or_the_data_are_refused() {
    let folder = Folder::with_counts();
    folder.npy("d.npy", &[1, 2], &[1.0, 2.0]);
    for (options, part) in [
        ("--output o.npz --trace o.npz", "--trace"),
        ("--output o.npz --trace ./o.npz", "--trace"),
        (
            "--output o.npz --checkpoint o.npz --checkpoint-every 2",
            "--checkpoint",
        ),
        (
            "--output o.npz --trace t --checkpoint t --checkpoint-every 2",
            "--checkpoint",
        ),
        ("--output o.npz --trace d.csv", "--trace"),
    ] {
        folder.fails(
            2,
            &format!("fit plca d.csv --rank 2 {options}"),
            &[part, "the same file"],
        );
    }
}

#[test]
fn the_fast_solver_is_refused_with_a_way_out() {
    let folder = Folder::with_counts();
    folder.fails(
        2,
        "fit plca d.csv --rank 2 --solver fast --output o.npz",
        &["fast", "--solver em"],
    );
    folder.ok("fit plca d.csv --rank 2 --solver auto --output o.npz --quiet");
}

/// The archive writer must not add a line of its own.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_line() {
    let folder = Folder::with_counts();
    folder.ok("fit plca d.csv --rank 2 --output o.npz --quiet");
    for name in ["full.npz", "full.safetensors", "full.npy"] {
        std::os::unix::fs::symlink("/dev/full", folder.path(name)).unwrap();
    }
    for line in [
        "fit plca d.csv --rank 2 --output full.npz",
        "fit plca d.csv --rank 2 --output full.safetensors",
        "fit plca d.csv --rank 2 --output p.npz --checkpoint full.npz --checkpoint-every 2",
        "transform o.npz d.csv --output full.npz",
        "reconstruct o.npz --output full.npy",
        "sample o.npz --draws 3 --output full.npy",
    ] {
        let out = folder.run(line);
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{line}: {err}");
        assert!(
            err.starts_with("error: ") && err.contains("full.") && err.lines().count() == 1,
            "{line}: {err}"
        );
    }
    assert!(!folder.path("p.npz").exists());
}

#[test]
fn ranks_that_cannot_be_held_are_refused() {
    let folder = Folder::with_counts();
    for rank in ["4611686018427387904", "18446744073709551615"] {
        folder.fails(
            2,
            &format!("fit plca d.csv --rank {rank} --output o.npz"),
            &[rank],
        );
    }
    folder.ok("fit plca d.csv --rank 1 --threads 100000 --output o.npz --quiet");
}
