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
    plca_io::write_model(folder.path("m.npz"), &ModelFile { arrays, metadata }, false).unwrap();
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

/// The means of a posterior lie as its shapes.
#[test]
fn topics_of_variational_bayes_have_words() {
    let folder = topics();
    folder.text("d.csv", "9,0\n0,8\n1,1\n");
    folder.ok("fit plsa-vb d.csv --rank 2 --seed 1 --output vb.npz --quiet");
    let topics = |array: &str| {
        folder.ok(&format!(
            "inspect vb.npz --array {array} --top 1 --labels words.txt"
        ))
    };
    let words = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.split_whitespace().nth(1));
        lines.map(|word| word.unwrap().to_string()).collect()
    };
    let mut found = words(&topics("basis"));
    assert_eq!(found, words(&topics("basis_shape")));
    found.sort();
    assert_eq!(found, ["sea", "ship"]);
    folder.ok("fit plca-vb d.csv --rank 2 --seed 1 --output p.npz --quiet");
    let weights = folder.ok("inspect p.npz --array weights --top 1");
    assert_eq!(weights.lines().count(), 2, "{weights}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = topics();
    let line = "inspect m.npz --array";
    folder.fails(1, &format!("{line} w"), &["--array w", "basis, gap, k2"]);
    folder.fails(1, &format!("{line} gap"), &["m.npz", "gap", "no dimension"]);
    folder.text("few.txt", "sea\nship\n");
    folder.refuses(&format!(
        "
            1 | {line} basis --labels few.txt | few.txt | 2 lines | expected 3
            1 | {line} kernels --labels words.txt | words.txt | a component has 2
            2 | inspect m.npz --top 3 | --array
        "
    ));
}

/// Names of rows and columns go from the data into the model, what is shown of it, and tables.
#[test]
fn names_are_kept() {
    let folder = Folder::new();
    folder.text("d.csv", "word,a.txt,b.txt\nsea,9,0\nship,8,1\nwind,0,7\n");
    let fit = "fit plsa d.csv --labels first-column --rank 2 --seed 1 --output m.npz --quiet";
    folder.ok(fit);
    let words = folder.ok("inspect m.npz --array basis --top 1");
    assert!(words.contains("sea ") && words.contains("wind "), "{words}");
    let documents = folder.ok("inspect m.npz --array mixture --top 1");
    assert!(
        documents.contains("a.txt ") && documents.contains("b.txt "),
        "{documents}"
    );
    folder.ok("export m.npz --array mixture --output t.csv");
    let table = String::from_utf8(folder.bytes("t.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "name,component_0,component_1");
    assert!(
        lines[1].starts_with("a.txt,") && lines[2].starts_with("b.txt,"),
        "{table}"
    );
    // What is written is read: every digit.
    folder.ok("fit plca t.csv --labels first-column --rank 1 --output o.npz --quiet");
    let mixture = &folder.model("m.npz").arrays["mixture"];
    let written: Vec<f64> = (lines[1..].iter())
        .flat_map(|line| line.split(',').skip(1).map(|x| x.parse().unwrap()))
        .collect();
    let read: Vec<f64> = [0, 2, 1, 3].iter().map(|&at| mixture.values[at]).collect();
    assert_eq!(written, read);
    folder.ok("export m.npz --array basis --output t.tsv");
    assert!(
        String::from_utf8(folder.bytes("t.tsv"))
            .unwrap()
            .contains("\nship\t")
    );
    folder.ok("export m.npz --array basis --output t.npy");
    assert_eq!(
        folder.dense("t.npy").values,
        folder.model("m.npz").arrays["basis"].values
    );
    folder.text("new.csv", "word,c.txt\nsea,1\nship,0\nwind,5\n");
    folder.ok("transform m.npz new.csv --labels first-column --output n.npz --quiet");
    assert!(
        folder
            .ok("inspect n.npz --array mixture --top 1")
            .contains("c.txt ")
    );
    folder.ok("report m.npz --output r.html");
    let page = String::from_utf8(folder.bytes("r.html")).unwrap();
    assert!(page.contains(">ship<") && page.contains(">a.txt<"));
    // Small numbers as people write them.
    folder.text("small.csv", "1,0.000000000000000001\n2,3\n");
    folder.ok("fit kmeans small.csv --rank 2 --output k.npz --quiet");
    folder.ok("export k.npz --array centres --output t.csv");
    assert!(
        String::from_utf8(folder.bytes("t.csv"))
            .unwrap()
            .contains("e-18")
    );
    // Places of a picture.
    folder
        .ok("fit siplca d.csv --labels first-column --rank 1 --kernel 1x1 --output i.npz --quiet");
    folder.ok("export i.npz --array impulses --output t.csv");
    let places = String::from_utf8(folder.bytes("t.csv")).unwrap();
    let lines: Vec<&str> = places.lines().collect();
    assert_eq!((lines[0], lines.len()), ("index_0,index_1,component_0", 7));
    let impulses = &folder.model("i.npz").arrays["impulses"].values;
    assert_eq!(lines[3], format!("1,0,{}", impulses[2]));
    folder.text("six.txt", "a\nb\nc\nd\ne\nf\n");
    let named = "export i.npz --array impulses --labels six.txt --output t.csv";
    folder.fails(1, named, &["labels name one dimension"]);
    // One number for each document.
    let table = |line: &str| {
        folder.ok(&format!("export {line} --output t.csv"));
        String::from_utf8(folder.bytes("t.csv")).unwrap()
    };
    assert!(table("m.npz --array marginal").starts_with("name,marginal\na.txt,0."));
    assert!(table("n.npz --array gap").starts_with("name,gap\nc.txt,"));
    folder.ok("consensus plsa d.csv --labels first-column --ranks 2 --restarts 8 --seed 1 --output c.npz --quiet");
    let spectra = table("c.npz --array k2.consensus_spectra");
    assert!(
        spectra.starts_with("name,component_0,component_1\nsea,"),
        "{spectra}"
    );
    assert!(table("c.npz --array k2.usage").contains("\nb.txt,"));
    let words = folder.ok("inspect c.npz --array k2.consensus_spectra --top 1");
    assert!(words.contains("sea ") && words.contains("wind "), "{words}");
    // The shares of pNTF, a component in each row.
    folder.ok("fit pntf d.csv --labels first-column --rank 3 --seed 1 --output p.npz --quiet");
    folder.ok("transform p.npz d.csv --labels first-column --output q.npz --quiet");
    let shares = table("q.npz --array mixture");
    assert!(
        shares.starts_with("name,component_0,component_1,component_2\na.txt,"),
        "{shares}"
    );
    // Over wavelengths a component is a curve.
    folder.text("w.csv", "name,400,410,420.5\na,1,2,3\nb,4,1,1\n");
    folder
        .ok("fit nmf-kl w.csv --labels first-column --header yes --rank 1 --output w.npz --quiet");
    folder.ok("report w.npz --output r.html");
    assert!(
        String::from_utf8(folder.bytes("r.html"))
            .unwrap()
            .contains("<svg")
    );
    folder.text("u.csv", "name,410.0,420.50,400\nc,2,3,1\n");
    folder.text("v.csv", "name,400,410,420.5\nc,1,2,3\n");
    let how = "--labels first-column --header yes --along 0 --quiet --output";
    let h = |data: &str| {
        folder.ok(&format!("transform w.npz {data} {how} o.npz"));
        folder.model("o.npz").arrays["w"].values.clone()
    };
    assert_eq!(h("u.csv"), h("v.csv"));
    folder.refuses(
        "1 | transform w.npz u.csv --labels first-column --header yes --output x.npz | `c` | `a`",
    );
    // Other names.
    folder.text("others.txt", "x\ny\nz\n");
    let table = "export m.npz --array basis --labels others.txt --output u.csv";
    folder.ok(table);
    assert!(
        String::from_utf8(folder.bytes("u.csv"))
            .unwrap()
            .contains("\nz,")
    );
    folder.text("others.txt", "x\n");
    folder.refuses(&format!(
        "
            1 | {table} | others.txt | 1 lines | expected 3
            1 | export m.npz --array nothing --output u.csv | nothing | basis
            1 | export m.npz --array basis --output u.xlsx | u.xlsx | .csv
        "
    ));
    folder.npy("c.npy", &[2, 2, 2], &[1.0; 8]);
    folder.ok("fit siplca c.npy --rank 1 --kernel 1x2x2 --max-iter 2 --output k.npz --quiet");
    folder.ok("export k.npz --array kernels --output u.csv");
    let header = String::from_utf8(folder.bytes("u.csv")).unwrap();
    assert!(
        header.starts_with("index_0,index_1,index_2,component_0\n0,0,0,"),
        "{header}"
    );
    folder.fails(1, "export m.npz --array scale --output u.csv", &["scale"]);
    // Numbers have no names.
    folder.text("e.csv", "9,0\n8,1\n");
    folder.ok("fit plsa e.csv --rank 2 --output e.npz --quiet");
    assert!(folder.model("e.npz").metadata["names"].is_null());
}

#[test]
fn sides_of_an_atom_have_their_sign() {
    let folder = topics();
    let atoms = Array::new(vec![3, 1, 2], vec![0.6, 0.0, 0.0, 0.1, 0.0, 0.3]);
    let file = ModelFile {
        arrays: BTreeMap::from([("atoms".into(), atoms)]),
        metadata: json!({ "model": "skellam" }),
    };
    plca_io::write_model(folder.path("s.npz"), &file, false).unwrap();
    assert_eq!(
        folder.ok("inspect s.npz --array atoms --top 3 --labels words.txt"),
        "0  sea + 0.6000  wind - 0.3000  ship - 0.1000\n"
    );
    assert_eq!(
        folder.ok("inspect s.npz --array atoms --top 2"),
        "0  0 + 0.6000  2 - 0.3000\n"
    );
    assert_eq!(
        folder.json("inspect s.npz --array atoms --top 1 --labels words.txt"),
        json!({ "array": "atoms", "components": [[{ "index": [0, 0], "label": "sea", "value": 0.6 }]] })
    );
}

/// Files of commas have names as they are, of several lines too; what a terminal shows, and lines of tabs, have no such characters.
#[test]
fn exported_names_are_read_again() {
    let folder = Folder::new();
    folder.text("v.csv", "n,\"a\nb\",c\n\"x\ty\",1,2\nz,3,4\n");
    folder.ok("fit nmf-kl v.csv --labels first-column -k 1 --output m.npz --quiet");
    folder.ok("export m.npz --array w --output w.csv");
    let w = String::from_utf8(folder.bytes("w.csv")).unwrap();
    assert!(w.starts_with("name,component_0\nx\ty,"), "{w}");
    folder.ok("export m.npz --array h --output h.csv");
    let h = String::from_utf8(folder.bytes("h.csv")).unwrap();
    assert!(h.starts_with("name,component_0\n\"a\nb\","), "{h}");
    folder.ok("export m.npz --array h --output h.tsv");
    let h = String::from_utf8(folder.bytes("h.tsv")).unwrap();
    assert!(h.starts_with("name\tcomponent_0\na\\u000ab\t"), "{h}");
    let shown = folder.run("inspect m.npz --array h").stdout;
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("a\\u000ab"), "{shown}");
}
