//! The built command against its contract.

mod emptied;
mod endings;
mod errors;
mod failures;
mod fast;
mod files;
mod formats;
mod golden;
mod online;
mod options;
mod out_of_core;
mod readme;
mod reconstruction;
mod scales;
mod siplca;
mod skellam;
mod skellam_golden;
mod sounds;
mod squared_error;
mod tempering;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use plca_io::{Array, ModelFile};
use serde_json::Value;

/// A folder of files, and the command run inside it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A folder with the matrix `d.csv`.
    fn with_counts() -> Self {
        let folder = Self::new();
        folder.text("d.csv", "3,1,4,1\n1,5,9,2\n2,6,5,3\n");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn npy(&self, name: &str, shape: &[usize], values: &[f64]) {
        let array = Array::new(shape.to_vec(), values.to_vec());
        plca_io::write_npy(&self.path(name), &array).unwrap();
    }

    fn arrays(&self, name: &str, arrays: &[(&str, &[usize], &[f64])]) {
        let arrays = arrays
            .iter()
            .map(|(n, s, v)| (n.to_string(), Array::new(s.to_vec(), v.to_vec())))
            .collect();
        let file = ModelFile {
            arrays,
            metadata: serde_json::json!({}),
        };
        plca_io::write_model(&self.path(name), &file, false).unwrap();
    }

    fn model(&self, name: &str) -> ModelFile {
        plca_io::read_model(&self.path(name)).unwrap()
    }

    fn dense(&self, name: &str) -> Array<f64> {
        match plca_io::read_data(&self.path(name), None).unwrap() {
            plca_io::DataFile::Dense(array) => array,
            sparse => panic!("{sparse:?}"),
        }
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.0.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Every file, but for those in folders.
    fn contents(&self) -> Vec<(Vec<u8>, String)> {
        let files = self.names().into_iter().filter(|n| self.path(n).is_file());
        files.map(|n| (self.bytes(&n), n)).collect()
    }

    /// Runs the command line, split at blanks.
    fn run(&self, line: &str) -> Output {
        Command::new(Path::new(env!("CARGO_BIN_EXE_plca")))
            .current_dir(self.0.path())
            .args(line.split_whitespace())
            .output()
            .unwrap()
    }

    /// Runs a line that must succeed, silent on standard error.
    fn ok(&self, line: &str) -> String {
        let out = self.run(line);
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!((out.status.code(), err.as_str()), (Some(0), ""), "{line}");
        String::from_utf8(out.stdout).unwrap()
    }

    /// Runs a fit whole, whole with a checkpoint every so many iterations, and resumed from the last of them: three times the
    /// same bytes. The checkpoint is left as `c.npz`.
    fn resumes(&self, fit: &str, every: usize) {
        self.ok(&format!("{fit} --output whole.npz --threads 1"));
        self.ok(&format!(
            "{fit} --output o.npz --checkpoint c.npz --checkpoint-every {every}"
        ));
        self.ok(&format!("{fit} --output resumed.npz --resume c.npz"));
        for other in ["o.npz", "resumed.npz"] {
            assert!(
                self.bytes("whole.npz") == self.bytes(other),
                "{fit}: {other}"
            );
        }
    }

    /// Runs a line with `--json` and checks that the answer is one line.
    fn json(&self, line: &str) -> Value {
        let out = self.ok(&format!("{line} --json"));
        assert_eq!(out.matches('\n').count(), 1, "{out}");
        serde_json::from_str(&out).unwrap()
    }

    /// Runs a line that must fail with this status, name all of `parts` in its one error, and leave every file as it was.
    fn fails(&self, status: i32, line: &str, parts: &[&str]) {
        let before = self.contents();
        let out = self.run(line);
        let err = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(status), "{line}: {err}");
        assert!(err.starts_with("error: "), "{line}: {err}");
        if status == 1 {
            assert_eq!(err.matches('\n').count(), 1, "{line}: {err}");
        }
        for part in parts {
            assert!(err.contains(part), "{line}: `{part}` is not in: {err}");
        }
        let after = self.contents();
        assert!(before == after, "{line}: files changed");
        assert!(out.stdout.is_empty(), "{line}");
    }
}
