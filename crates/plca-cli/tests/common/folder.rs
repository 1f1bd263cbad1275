//! A folder of files, and the command run inside it.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_plca");

pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A folder with the matrix `d.csv`.
    pub(crate) fn with_counts() -> Self {
        let folder = Self::new();
        folder.text("d.csv", "3,1,4,1\n1,5,9,2\n2,6,5,3\n");
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn text(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Every name, and the bytes of what is a file.
    fn contents(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let read = |name: String| {
            // Nobody writes to a pipe.
            let bytes = self.path(&name).is_file().then(|| self.bytes(&name));
            (name, bytes)
        };
        self.names().into_iter().map(read).collect()
    }

    /// A program inside the folder, without an input.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Runs the command by a line, split at blanks.
    pub(crate) fn run(&self, line: &str) -> Output {
        let mut command = self.program(PROGRAM);
        command.args(line.split_whitespace()).output().unwrap()
    }

    /// Starts the command by a line, split at blanks.
    pub(crate) fn start(&self, line: &str) -> Child {
        let mut command = self.program(PROGRAM);
        command.args(line.split_whitespace());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Runs a line that must succeed, silent on standard error but for the warnings that a run was cut, that a kernel is a point or that no larger or smaller rank was tried, and change no file that it does
    /// not name.
    pub(crate) fn ok(&self, line: &str) -> String {
        let before = self.contents();
        let out = self.run(line);
        let err = String::from_utf8(out.stderr).unwrap();
        let known = [
            "warning: --max-iter ",
            "warning: kernels ",
            "warning: the proposed rank ",
        ];
        let known = |line: &&str| known.iter().any(|known| line.starts_with(known));
        let err: String = err.lines().filter(|line| !known(line)).collect();
        assert_eq!((out.status.code(), err.as_str()), (Some(0), ""), "{line}");
        let after = self.contents();
        let changed = after.iter().filter(|file| !before.contains(file));
        let gone = before.iter().filter(|(name, _)| !self.path(name).exists());
        for (name, _) in changed.chain(gone) {
            assert!(line.contains(name.as_str()), "{line}: {name} was changed");
        }
        String::from_utf8(out.stdout).unwrap()
    }

    /// What `run` does must fail with this status, name all of `parts` in its one error, and leave every file as it was.
    pub(crate) fn refused(
        &self,
        status: i32,
        line: &str,
        parts: &[&str],
        run: impl FnOnce() -> Output,
    ) {
        let before = self.contents();
        let out = run();
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(status), "{line}: {err}");
        assert!(err.starts_with("error: "), "{line}: {err}");
        assert_eq!(err.matches('\n').count(), 1, "{line}: {err}");
        for part in parts {
            assert!(err.contains(part), "{line}: `{part}` is not in: {err}");
        }
        assert!(before == self.contents(), "{line}: files changed");
        assert!(out.stdout.is_empty(), "{line}");
    }
}

/// Interrupts a process; whether it was still there.
pub(crate) fn interrupt(run: &Child) -> bool {
    let told = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status();
    told.unwrap().success()
}

/// Whether a process has come as far as to handle interruptions: bit 1 of its mask.
#[cfg(target_os = "linux")]
pub(crate) fn handles_interrupts(run: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.id())).unwrap();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
    u64::from_str_radix(mask.unwrap().trim(), 16).unwrap() & 2 != 0
}
