//! How runs end: interrupted, refused, on a full disk.

#[cfg(target_os = "linux")]
use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use crate::folder::{Folder, interrupt};
#[cfg(target_os = "linux")]
use crate::folder::{PROGRAM, handles_interrupts};

#[cfg(unix)]
#[test]
fn interrupted_runs_leave_a_checkpoint_that_continues_them() {
    let folder = Folder::with_counts();
    folder.text("o.npz", "must stay");
    let line = "fit plca d.csv --rank 2 --tol 0";
    let mut run = folder.start(&format!(
        "{line} --max-iter 1000000000 --output o.npz --checkpoint c.npz --checkpoint-every 997 --quiet"
    ));
    while !folder.path("c.npz").exists() {
        assert!(run.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    assert!(interrupt(&run));
    let out = run.wait_with_output().unwrap();
    let err = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(130), "{err}");
    assert!(
        err.starts_with("error: interrupted after ") && err.lines().count() == 1,
        "{err}"
    );
    assert!(err.contains("c.npz"), "{err}");
    assert_eq!(folder.bytes("o.npz"), b"must stay");
    assert_eq!(folder.names(), ["c.npz", "d.csv", "o.npz"]);
    let done: usize = err.split_whitespace().nth(3).unwrap().parse().unwrap();
    // It stands where the run was interrupted, not at the last multiple of 997.
    let saved = plca_io::read_checkpoint(&folder.path("c.npz")).unwrap();
    assert_eq!(saved.metadata["checkpoint"]["progress"]["iteration"], done);
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
    folder.refuses("
        2 | fit plca d.csv --rank 2 --output o.npz --trace o.npz | --trace | the same file
        2 | fit plca d.csv --rank 2 --output o.npz --trace ./o.npz | --trace | the same file
        2 | fit plca d.csv --rank 2 --output o.npz --checkpoint o.npz --checkpoint-every 2 | --checkpoint | the same file
        2 | fit plca d.csv --rank 2 --output o.npz --trace t --checkpoint t --checkpoint-every 2 | --checkpoint | the same file
        2 | fit plca d.csv --rank 2 --output o.npz --trace d.csv | --trace | the same file
    ");
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
    folder.refuses(
        "
            2 | fit plca d.csv --rank 4611686018427387904 --output o.npz | 4611686018427387904
            2 | fit plca d.csv --rank 18446744073709551615 --output o.npz | 18446744073709551615
        ",
    );
    folder.ok("fit plca d.csv --rank 1 --threads 100000 --output o.npz --quiet");
}

/// A summary that cannot be written, or that nobody reads, is a failure; what it is of stays. A text that is asked for may be read in part.
#[cfg(target_os = "linux")]
#[test]
fn standard_output_may_be_full_or_closed() {
    let folder = Folder::with_counts();
    let tone = (0..2000).map(|n| 0.5 * (f64::from(n) * 0.2).sin());
    let sound = plca_media::Sound {
        rate: 8000,
        channels: vec![tone.collect()],
    };
    plca_media::write_wav(folder.path("s.wav"), &sound).unwrap();
    folder.ok("fit plca d.csv --rank 2 --output o.npz --quiet");
    folder.text(
        "d.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 5\n2 2 3\n",
    );
    let before = folder.names();
    #[rustfmt::skip]
    let written = [
        ("fit plca d.csv --rank 2 --output p.npz", "p.npz"),
        ("fit nmf-kl d.csv --rank 2 --output p.safetensors --json --trace t.jsonl", "p.safetensors"),
        ("transform o.npz d.csv --output p.npz --json", "p.npz"),
        ("consensus nmf-kl d.csv --ranks 2 --restarts 9 --output p.npz", "p.npz"),
        ("shard d.mtx --shards 2 --output p", "p"),
        ("spectrogram s.wav --output p.npy", "p.npy"),
    ];
    let asked = [
        "inspect o.npz",
        "inspect o.npz --json",
        "select plca d.csv --ranks 1..2 --criterion bic",
        "select plca d.csv --ranks 1..2 --quiet",
        "--help",
        "--version",
        "fit --help",
        "fit plsa --help",
        "man",
        "completions bash",
    ];
    let run = |line: &str, stdout: Stdio| {
        let mut command = folder.program(PROGRAM);
        let out = command.args(line.split_whitespace()).stdout(stdout);
        let out = out.output().unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    for (line, file) in written {
        for stdout in [full(), closed()] {
            let (status, err) = run(line, stdout);
            assert_eq!((status, err.lines().count()), (Some(1), 1), "{line}: {err}");
            assert!(err.starts_with("error: standard output: "), "{line}: {err}");
            assert!(
                err.ends_with(&format!("; {file} is written\n")),
                "{line}: {err}"
            );
            let traced = line.contains("--trace").then_some("t.jsonl");
            for file in traced.into_iter().chain([file]) {
                let path = folder.path(file);
                match path.is_dir() {
                    true => std::fs::remove_dir_all(path).unwrap(),
                    false => std::fs::remove_file(path).unwrap(),
                }
            }
            assert_eq!(folder.names(), before, "{line}");
        }
    }
    for line in asked {
        let (status, err) = run(line, full());
        assert_eq!((status, err.lines().count()), (Some(1), 1), "{line}: {err}");
        assert!(err.starts_with("error: standard output: "), "{line}: {err}");
        assert_eq!(run(line, closed()), (Some(0), String::new()), "{line}");
    }
    assert_eq!(folder.names(), before);
}

#[cfg(target_os = "linux")]
fn full() -> Stdio {
    let full = std::fs::File::options().write(true).open("/dev/full");
    full.unwrap().into()
}

/// A warning that cannot be written ends with status 1 what otherwise ends well; files stay. A failure keeps its own status.
#[cfg(target_os = "linux")]
#[test]
fn standard_error_may_be_full() {
    let folder = Folder::with_counts();
    folder.text("e.csv", "3,0,4\n1,0,9\n");
    #[rustfmt::skip]
    let cases = [
        ("fit plca e.csv --rank 2 --max-iter 1 --output p.npz", 1),
        ("fit plca e.csv --rank 2 --max-iter 1 --output p.npz --quiet", 0),
        ("fit plca e.csv --rank 2 --max-iter 1 --output p.npz --json", 1),
        ("select plca e.csv --ranks 1..2 --criterion bic --max-iter 1", 1),
        ("fit plsa nosuch.csv --rank 2 --output p.npz", 1),
        ("fit plsa e.csv --rank two --output p.npz", 2),
        ("fit plsa e.csv --rank 2 --output p.npz --tol -1", 2),
    ];
    for (line, status) in cases {
        let mut command = folder.program(PROGRAM);
        let out = command
            .args(line.split_whitespace())
            .stderr(full())
            .output();
        assert_eq!(out.unwrap().status.code(), Some(status), "{line}");
        let finishes = line.starts_with("fit plca");
        assert_eq!(folder.path("p.npz").exists(), finishes, "{line}");
        let _ = std::fs::remove_file(folder.path("p.npz"));
    }
}

#[test]
fn checkpoints_of_other_settings_are_refused() {
    let folder = Folder::with_counts();
    let mut seen = [1.0; 12];
    seen[5] = 0.0;
    folder.npy("m.npy", &[3, 4], &seen);
    folder.arrays("p.npz", &[("weights.dirichlet", &[2], &[2.0, 3.0])]);
    let line = "fit plca d.csv --rank 2 --tol 0 --max-iter 9 --quiet --output o.npz";
    folder.ok(&format!("{line} --checkpoint c.npz --checkpoint-every 4"));
    std::fs::copy(folder.path("o.npz"), folder.path("i.npz")).unwrap();
    for (change, part) in [
        ("--seed 1", "seed"),
        ("--mask m.npy", "mask"),
        ("--init i.npz", "init"),
        ("--priors p.npz", "priors"),
        ("--prior weights=dirichlet:2", "prior"),
        ("--accelerate squarem", "accelerate"),
        ("--precision f32", "precision"),
    ] {
        folder.fails(
            1,
            &format!("{line} {change} --resume c.npz"),
            &["c.npz", &format!("{part} = ")],
        );
    }
    folder.refuses(&format!("1 | {line} --resume i.npz | i.npz | checkpoint"));
    folder.text("e.csv", "3,1,4,1\n1,5,9,2\n2,6,5,4\n");
    let other = line.replace("d.csv", "e.csv");
    folder.refuses(&format!("1 | {other} --resume c.npz | c.npz | other data"));
    let path = folder.path("c.npz");
    let mut state = plca_io::read_checkpoint(&path).unwrap();
    let place = state.metadata["checkpoint"].as_object_mut().unwrap();
    assert!(place.remove("run").is_some());
    plca_io::write_checkpoint(&path, &state).unwrap();
    folder.refuses(&format!(
        "1 | {line} --resume c.npz | c.npz | another version"
    ));
}

/// Every ordered pair of models, on data that all of them take; also a stream's checkpoint for a batch and the other way round.
#[test]
fn checkpoints_of_other_models_are_refused() {
    let folder = Folder::with_counts();
    let models = crate::lives::MODELS.map(|(name, extra, ..)| (name, extra));
    let line = |(model, extra): (&str, &str), iterations: usize| {
        format!(
            "fit {model} d.csv --rank 2 {extra} --tol 0 --max-iter {iterations} --quiet --output o.npz"
        )
    };
    for (model, extra) in models {
        let fit = line((model, extra), 4);
        folder.ok(&format!(
            "{fit} --checkpoint {model}.c --checkpoint-every 1"
        ));
    }
    std::fs::remove_file(folder.path("o.npz")).unwrap();
    for (then, _) in models {
        for (now, extra) in models {
            let resume = format!("{} --resume {then}.c", line((now, extra), 9));
            if then == now {
                folder.ok(&resume);
                std::fs::remove_file(folder.path("o.npz")).unwrap();
            } else {
                let parts = [&format!("{then}.c: "), then, now, "model"];
                folder.fails(1, &resume, &parts.map(|p: &str| p));
            }
        }
    }
    folder.ok("fit plsa d.csv --rank 2 --online .6,1 --quiet --output o.npz --checkpoint stream.c --checkpoint-every 1");
    folder.refuses("
        1 | fit plsa d.csv --rank 2 --quiet --output p.npz --resume stream.c | stream.c: was made with
        1 | fit plsa d.csv --rank 2 --online .6,1 --quiet --output p.npz --resume plsa.c | plsa.c: was made with
    ");
}

/// Commands that have nothing to save end at once, as a failure of one line; also where they were just trying their output.
#[cfg(target_os = "linux")]
#[test]
fn interruptions_end_other_commands_at_once() {
    let folder = Folder::with_counts();
    folder.ok("fit plca d.csv --rank 2 --output o.npz --quiet");
    let endless = "--tol 0 --max-iter 1000000000000";
    let select = format!("select plca d.csv --ranks 2,3 {endless}");
    let transform = format!("transform o.npz d.csv --output n.npz {endless}");
    let lines = [(&select, 10), (&transform, 200)];
    for (i, line) in lines
        .iter()
        .flat_map(|&(line, times)| (0..times).map(move |i| (i, line)))
    {
        let mut run = folder.start(line);
        while !handles_interrupts(&run) {
            assert!(run.try_wait().unwrap().is_none(), "{line} has ended");
        }
        std::thread::sleep(Duration::from_micros(i % 20 * 100));
        assert!(interrupt(&run));
        let told = Instant::now();
        while run.try_wait().unwrap().is_none() {
            if told.elapsed() > Duration::from_secs(60) {
                run.kill().unwrap();
                panic!("{line} goes on after an interruption");
            }
            std::thread::yield_now();
        }
        let out = run.wait_with_output().unwrap();
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!(
            (out.status.code(), err.as_str()),
            (Some(130), "error: interrupted\n"),
            "{line}"
        );
        assert!(out.stdout.is_empty());
        assert_eq!(folder.names(), ["d.csv", "o.npz"]);
    }
}
