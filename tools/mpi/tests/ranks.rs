//! `plca-mpi` on real ranks against `plca` in one process: equal files, to the bit.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_plca-mpi");

struct Folder(tempfile::TempDir);

impl Folder {
    /// A folder with the shards of the sparse matrix `d.tns`, `d64` and `d32`, `t64`, those of the tensor `t.tns` of order 3, and `s64`, those of a matrix
    /// of either sign.
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        // Seven has no divisor with 60: every column has entries.
        let line = |n: usize| format!("{} {} {}\n", n / 60 + 1, n % 60 + 1, n % 5 + 1);
        let matrix: String = (0..40 * 60).step_by(7).map(line).collect();
        std::fs::write(folder.path("d.tns"), matrix).unwrap();
        let line = |n: usize| {
            let (i, j, k) = (n / 150 + 1, n / 30 % 5 + 1, n % 30 + 1);
            format!("{i} {j} {k} {}\n", n * n % 11 + 1)
        };
        let tensor: String = (0..4 * 5 * 30).map(line).collect();
        std::fs::write(folder.path("t.tns"), tensor).unwrap();
        let cell = |n: usize| match n % 30 {
            29 => format!("{}\n", n * n % 11),
            _ => format!("-{},", n % 7),
        };
        let rows: String = (0..8 * 30).map(cell).collect();
        std::fs::write(folder.path("s.csv"), rows).unwrap();
        for cut in [
            "s.csv -o s64 --signed",
            "d.tns -o d64",
            "d.tns -o d32 --precision f32",
            "t.tns -o t64",
        ] {
            folder.alone(&format!("shard {cut} --shards 7"));
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Runs a line, split at blanks, in one process: by the command that tests of the workspace build beside the program.
    fn alone(&self, line: &str) {
        let plca = Path::new(PROGRAM).with_file_name("plca");
        let mut command = Command::new(&plca);
        command.current_dir(self.0.path()).args(line.split(' '));
        let out = command.output();
        let out = out
            .unwrap_or_else(|e| panic!("{}: {e}; tests of the workspace build it", plca.display()));
        assert!(out.status.success(), "{line}: {}", told(&out));
    }

    /// The command that runs a line on ranks.
    fn ranks(&self, count: usize, line: &str) -> Command {
        let mut command = Command::new("mpirun");
        // Ranks that wait for each other are a failure.
        command.args(["--timeout", "120"]);
        command.args(["--oversubscribe", "--allow-run-as-root", "-n"]);
        command.arg(count.to_string()).arg(PROGRAM);
        command.current_dir(self.0.path()).args(line.split(' '));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn together(&self, count: usize, line: &str) -> String {
        let out = self.ranks(count, line).output().unwrap();
        assert!(out.status.success(), "{count}, {line}: {}", told(&out));
        String::from_utf8(out.stdout).unwrap()
    }
}

fn told(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn any_number_of_ranks_writes_the_file_of_one_process() {
    let folder = Folder::new();
    for (line, counts) in [
        ("plsa d64 --rank 3 --max-iter 25 --tol 0", &[1, 2, 3, 4][..]),
        (
            "plsa d32 --rank 3 --precision f32 --prior mixture=dirichlet:1.1 --tol 1e-5",
            &[3],
        ),
        ("plca t64 --rank 3 --temper 0.9 --max-iter 25", &[2, 7]),
        ("nmf-kl d64 --rank 3 --seed 5 --max-iter 25", &[4]),
        ("nmf-kl d64 --rank 3 --update sequential --tol 1e-4", &[2]),
        ("plsa d64 --rank 3 --solver fast --max-iter 15", &[2, 3]),
        ("plca t64 --rank 3 --max-iter 15", &[2, 7]),
        ("skellam s64 --rank 3 --max-iter 25", &[3, 4]),
        ("skellam-vb s64 --rank 3 --max-iter 25", &[2, 3]),
        (
            "plca d64 --rank 3 --accelerate squarem --max-iter 15",
            &[2, 3],
        ),
        (
            "skellam-vb s64 --rank 3 --accelerate squarem --max-iter 15",
            &[4],
        ),
    ] {
        let line = format!("fit {line} --json --output");
        folder.alone(&format!("{line} one.npz"));
        for &count in counts {
            let _ = std::fs::remove_file(folder.path("all.npz"));
            let summary = folder.together(count, &format!("{line} all.npz"));
            assert_eq!(summary.lines().count(), 1, "{summary}");
            assert!(
                folder.bytes("all.npz") == folder.bytes("one.npz"),
                "{count}, {line}"
            );
        }
    }
}

/// The processes that `mpirun` has started.
#[cfg(target_os = "linux")]
fn children(process: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let lists = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("children")));
    let lists: String = lists.map(Result::unwrap_or_default).collect();
    lists.split_whitespace().map(str::to_string).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_run_goes_on_with_other_ranks() {
    let folder = Folder::new();
    let line = "fit plsa d64 --rank 3 --max-iter 400 --tol 0 --solver em";
    folder.alone(&format!("{line} --output one.npz"));
    for (state, before, after) in [("a", 4, 3), ("b", 2, 1), ("c", 3, 7)] {
        let kept = format!("{line} --checkpoint {state} --checkpoint-every");
        // Names that are almost those of parts of a checkpoint.
        let others = ["samples-2024.csv", "samples-1-2", "samples-00001-x"]
            .map(|n| Path::new(state).join(n));
        std::fs::create_dir(folder.path(state)).unwrap();
        for other in &others {
            std::fs::write(folder.0.path().join(other), "mine").unwrap();
        }
        let mut run = folder.ranks(before, &format!("{kept} 2 --output lost.npz"));
        let mut run = run.spawn().unwrap();
        while !folder.path(state).join("checkpoint").exists() {
            assert!(run.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::sleep(Duration::from_millis(1));
        }
        let victim = children(run.id()).pop().unwrap();
        let killed = Command::new("kill").args(["-KILL", &victim]).status();
        assert!(killed.unwrap().success());
        assert!(!run.wait().unwrap().success());
        assert!(!folder.path("lost.npz").exists());
        let line = format!("{kept} 150 --output all.npz --trace {state}.jsonl");
        folder.together(after, &line);
        assert!(
            folder.bytes("all.npz") == folder.bytes("one.npz"),
            "{before}, {after}"
        );
        // It did not begin anew.
        let trace = std::fs::read_to_string(folder.path(&format!("{state}.jsonl"))).unwrap();
        assert!(!trace.contains("\"iteration\":0,"), "{trace}");
        // Seven shards and where the run stands: nothing stays of other iterations.
        let count = std::fs::read_dir(folder.path(state)).unwrap().count();
        assert_eq!(count, 8 + others.len());
    }
    // A checkpoint of another fit.
    let other = line.replace("--rank 3", "--rank 2");
    let other = format!("{other} --checkpoint a --checkpoint-every 9 --output all.npz");
    let out = folder.ranks(2, &other).output().unwrap();
    let error = "error: a/checkpoint: was made with rank = 3, not 2";
    assert!(told(&out).contains(error), "{}", told(&out));
}

/// A run on ranks ends, and says once why.
fn refused(folder: &Folder, count: usize, line: &str, error: &str) {
    let out = folder.ranks(count, line).output().unwrap();
    let told = told(&out);
    assert!(!out.status.success(), "{line}: {told}");
    let errors: Vec<&str> = told.lines().filter(|l| l.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{line}: {told}");
    assert!(errors[0].contains(error), "{line}: {told}");
}

#[test]
fn what_one_rank_fails_at_ends_all() {
    let folder = Folder::new();
    let fit = |rest: &str| format!("fit plsa {rest} --rank 2 --output m.npz");
    refused(
        &folder,
        3,
        &fit("d64 --restarts 2"),
        "--restarts cannot be used with ranks",
    );
    refused(
        &folder,
        2,
        &fit("d.tns"),
        "d.tns: is not a folder of shards",
    );
    refused(&folder, 8, &fit("d64"), "8 ranks for 7 shards");
    // Rank 0 alone writes, and fails at it.
    refused(&folder, 3, &fit("d64 --trace /dev/full"), "/dev/full");
    refused(
        &folder,
        2,
        "inspect m.npz",
        "ranks run the command fit only",
    );
    // Only the last rank looks at the last shard.
    let shard = folder.path("d64/shard-00006.store");
    std::fs::write(&shard, "no shard").unwrap();
    refused(&folder, 3, &fit("d64"), "shard-00006.store: was changed");
    assert!(!folder.path("m.npz").exists());
}
