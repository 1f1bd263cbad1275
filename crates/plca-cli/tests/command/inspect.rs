//! What `plca inspect` shows of one array.

use std::collections::BTreeMap;

use plca_io::{Array, ModelFile};
use serde_json::json;

use crate::Folder;

/// A model of two components over three words and four documents.
fn topics() -> Folder {
    let folder = Folder::new();
    let array = |shape: &[usize], values: &[f64]| Array::new(shape.to_vec(), values.to_vec());
    let fortran = Array {
        fortran: true,
        ..array(&[2, 2], &[0.1, 0.2, 0.3, 0.4])
    };
    let arrays = BTreeMap::from([
        (
            "basis".into(),
            array(&[3, 2], &[0.5, 0.1, 0.25, 0.7, 0.25, 0.2]),
        ),
        (
            "mixture".into(),
            array(&[2, 3], &[1.0, 0.25, 0.5, 0.0, 0.75, 0.5]),
        ),
        ("kernels".into(), array(&[1, 2, 2], &[0.1, 0.2, 0.3, 0.4])),
        ("k2.consensus_spectra".into(), fortran),
        ("gap".into(), array(&[], &[0.0])),
    ]);
    let metadata = json!({ "model": "plsa" });
    plca_io::write_model(
        &folder.path("m.npz"),
        &ModelFile { arrays, metadata },
        false,
    )
    .unwrap();
    folder.text("words.txt", "sea\nship\r\nwind\n");
    folder
}

#[test]
fn largest_entries_of_every_component() {
    let folder = topics();
    assert_eq!(
        folder.ok("inspect m.npz --array basis --top 2 --labels words.txt"),
        "0  sea 0.5000  ship 0.2500\n1  ship 0.7000  wind 0.2000\n"
    );
    // Here components come first; of equal entries the earlier one is in front.
    assert_eq!(
        folder.ok("inspect m.npz --array mixture --top 1"),
        "0  0 1.0000\n1  1 0.7500\n"
    );
    assert_eq!(
        folder.ok("inspect m.npz --array kernels --top 3"),
        "0  1,1 0.4000  1,0 0.3000  0,1 0.2000\n"
    );
    assert_eq!(
        folder.ok("inspect m.npz --array k2.consensus_spectra"),
        "0  1 0.3000  0 0.1000\n1  1 0.4000  0 0.2000\n"
    );
    assert_eq!(
        folder.json("inspect m.npz --array basis --top 1 --labels words.txt"),
        json!({ "array": "basis", "components": [
            [{ "index": [0], "label": "sea", "value": 0.5 }],
            [{ "index": [1], "label": "ship", "value": 0.7 }],
        ] })
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = topics();
    let line = "inspect m.npz --array";
    folder.fails(1, &format!("{line} w"), &["--array w", "basis, gap, k2"]);
    folder.fails(1, &format!("{line} gap"), &["m.npz", "gap", "no dimension"]);
    folder.text("few.txt", "sea\nship\n");
    folder.fails(
        1,
        &format!("{line} basis --labels few.txt"),
        &["few.txt", "2 lines", "expected 3"],
    );
    folder.fails(
        1,
        &format!("{line} kernels --labels words.txt"),
        &["words.txt", "a component has 2"],
    );
    folder.fails(2, "inspect m.npz --top 3", &["--array"]);
}
