//! The built command against its contract.

mod compare;
mod consensus;
mod cross_validation;
mod emptied;
mod endings;
mod errors;
mod extensions;
mod failures;
mod fast;
mod files;
mod formats;
mod golden;
mod help;
mod inspect;
mod learn;
mod lives;
mod names;
mod neighbours;
mod newcomers;
mod numbers;
mod online;
mod options;
mod out_of_core;
mod packed;
mod readme;
mod reconstruction;
mod refit;
mod report;
mod scales;
mod shards;
mod siplca;
mod skellam;
mod sounds;
mod squared_error;
mod streams;
mod tables;
mod tempering;
mod transpose;
mod wrong_uses;

#[path = "../common/folder.rs"]
mod folder;

use folder::Folder;
use plca_io::{Array, ModelFile};
use serde_json::Value;

impl Folder {
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
        plca_io::write_model(self.path(name), &file, false).unwrap();
    }

    fn model(&self, name: &str) -> ModelFile {
        plca_io::read_model(self.path(name)).unwrap()
    }

    /// What a fit found, whatever the options and names that it was asked by.
    fn found(&self, name: &str) -> ModelFile {
        let mut file = self.model(name);
        file.metadata["request"].take();
        file
    }

    fn dense(&self, name: &str) -> Array<f64> {
        match plca_io::read_data(self.path(name), None).unwrap() {
            plca_io::DataFile::Dense(array) => array,
            sparse => panic!("{sparse:?}"),
        }
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

    /// Runs a line that must succeed; what it says on standard error.
    fn told(&self, line: &str) -> String {
        let out = self.run(line);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(0), "{line}: {said}");
        said
    }

    /// Runs a line that must fail with this status, name all of `parts` in its one error, and leave every file as it was.
    fn fails(&self, status: i32, line: &str, parts: &[&str]) {
        self.refused(status, line, parts, || self.run(line));
    }

    /// Runs the lines of a table, each as `fails` does: `STATUS | LINE | PART | PART`. A row that begins with `#` is a comment.
    fn refuses(&self, table: &str) {
        let rows = table.lines().map(str::trim);
        let rows: Vec<&str> = rows
            .filter(|row| !row.is_empty() && !row.starts_with('#'))
            .collect();
        assert!(!rows.is_empty());
        for row in rows {
            let cells: Vec<&str> = row.split(" | ").collect();
            let [status, line, parts @ ..] = &cells[..] else {
                panic!("{row}");
            };
            assert!(!parts.is_empty(), "{row}");
            self.fails(status.parse().unwrap(), line, parts);
        }
    }
}
