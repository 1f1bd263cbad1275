//! `plca refit`: a model file says how it was made.

use serde_json::json;

use crate::Folder;

#[test]
fn a_fit_is_made_once_more_to_the_bit() {
    let folder = Folder::with_counts();
    folder.npy(
        "mask.npy",
        &[3, 4],
        &[1., 1., 0., 1., 1., 1., 1., 1., 1., 1., 1., 0.],
    );
    for fit in [
        "plca d.csv --rank 2 --seed 3 --restarts 2 --mask mask.npy --prior weights=dirichlet:2 --prior factor_0=entropic:-1",
        "nmf-kl d.csv -k 2 --update sequential --max-iter 7 --tol 0",
        "siplca d.csv --rank 2 --kernel 2x2 --domain valid,same --anneal .5,10 --header no",
        "tiplca d.csv --rank 1 --kernel 2x2 --angles -90,90 --mirror",
    ] {
        folder.ok(&format!(
            "fit {fit} --output a.npz --quiet --trace t.jsonl --threads 1"
        ));
        folder.ok("refit a.npz --output b.npz --quiet");
        assert!(folder.bytes("a.npz") == folder.bytes("b.npz"), "{fit}");
        // And from what it made.
        folder.ok("refit b.npz --output c.npz --quiet");
        assert!(folder.bytes("a.npz") == folder.bytes("c.npz"), "{fit}");
    }
    let request = folder.model("a.npz").metadata["request"].clone();
    let options =
        json!({ "rank": ["1"], "kernel": ["2x2"], "angles": ["-90", "90"], "mirror": [] });
    assert_eq!(request, json!({ "data": ["d.csv"], "options": options }));
}

#[test]
fn options_and_data_take_the_place_of_those_of_the_fit() {
    let folder = Folder::with_counts();
    folder.text("e.csv", "1,2\n3,4\n5,6\n");
    folder
        .ok("fit plca d.csv --rank 2 --seed 3 --prior weights=dirichlet:2 --output a.npz --quiet");
    folder.ok("refit a.npz --output b.npz -k 3 --seed=4 --prior weights=dirichlet:3 --quiet");
    folder
        .ok("fit plca d.csv --rank 3 --seed 4 --prior weights=dirichlet:3 --output c.npz --quiet");
    assert!(folder.bytes("b.npz") == folder.bytes("c.npz"));
    folder.ok("refit a.npz e.csv --output b.npz --quiet");
    let file = folder.model("b.npz");
    let warning = "e.csv holds other data than those of a.npz";
    assert_eq!(file.metadata["warnings"], json!([warning]));
    folder
        .ok("fit plca e.csv --rank 2 --seed 3 --prior weights=dirichlet:2 --output c.npz --quiet");
    assert_eq!(file.arrays, folder.model("c.npz").arrays);
    // Data that were changed since.
    folder.text("d.csv", "3,1,4,1\n1,5,9,2\n2,6,5,4\n");
    let out = folder.run("refit a.npz --output b.npz");
    let error = String::from_utf8(out.stderr).unwrap();
    assert_eq!(
        error,
        "warning: d.csv holds other data than those of a.npz\n"
    );
}

/// A file from elsewhere cannot make a refit write where it is not told to.
#[test]
fn a_file_asks_for_nothing_but_a_fit() {
    let folder = Folder::with_counts();
    folder.ok("fit plca d.csv --rank 2 --output a.npz --quiet");
    let mut file = folder.model("a.npz");
    file.metadata["request"]["options"]["trace"] = json!(["other.txt"]);
    plca_io::write_model(&folder.path("b.npz"), &file, false).unwrap();
    folder.fails(1, "refit b.npz --output c.npz", &["b.npz", "--trace"]);
    folder.fails(
        2,
        "refit a.npz --output a.npz",
        &["the same file as the model"],
    );
    folder.fails(2, "refit a.npz --rank 3", &["--output"]);
}
