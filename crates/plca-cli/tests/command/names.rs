//! Names of models and of options: new ones do what older ones do, to the byte.

use serde_json::{Value, json};

use crate::Folder;

/// Words after which the same words of before follow.
type Pair = (&'static str, &'static str);

#[rustfmt::skip]
const FITS: &[Pair] = &[
    ("nmf d.csv -k 2", "nmf-kl d.csv -k 2"),
    ("nmf --loss kl d.csv -k 2", "nmf-kl d.csv -k 2"),
    ("nmf d.csv -k 2 --loss=l2", "ntf-l2 d.csv -k 2"),
    ("plca --method em d.csv -k 2", "plca d.csv -k 2"),
    ("plca --method vb d.csv -k 2", "plca-vb d.csv -k 2"),
    ("plsa --method vb d.csv -k 2", "plsa-vb d.csv -k 2"),
    ("skellam --method vb d.csv -k 2", "skellam-vb d.csv -k 2"),
    ("skellam-cp --method vb d.csv -k 2", "skellam-cp-vb d.csv -k 2"),
    ("siskellam --method vb d.csv -k 1 --kernel 2x2", "siskellam-vb d.csv -k 1 --kernel 2x2"),
    ("siplca d.csv -k 1 --kernel 2x2 --support same", "siplca d.csv -k 1 --kernel 2x2 --domain same"),
    ("skellam d.csv -k 2 --replicates inf", "skellam d.csv -k 2 --m inf"),
    ("plsa d.csv -k 2 --samples rows", "plsa d.csv -k 2 --given 0"),
    ("plsa d.csv -k 2 --samples 1", "plsa d.csv -k 2 --given 1"),
    ("nmf d.csv -k 2 --samples 0", "nmf-kl d.csv -k 2 --transpose"),
    ("nmf d.csv -k 2 --samples columns", "nmf-kl d.csv -k 2"),
    ("nmf d.csv --init i.npz --freeze w:0", "nmf-kl d.csv --init i.npz --fix w:0"),
    ("nmf d.csv --init i.npz --freeze f.npz", "nmf-kl d.csv --init i.npz --freeze-entries f.npz"),
    ("nmf d.csv --init i.npz --freeze h,f.npz", "nmf-kl d.csv --init i.npz --fix h --freeze-entries f.npz"),
    ("lda d.csv -k 3", "plsa-vb d.csv -k 3 --prior basis=dirichlet:0.3333333333333333 --prior mixture=dirichlet:0.3333333333333333"),
    (
        "lda --method vb d.csv -k 2 --prior mixture=dirichlet:1 --samples 0",
        "plsa-vb d.csv -k 2 --prior mixture=dirichlet:1 --prior basis=dirichlet:0.5 --given 0",
    ),
    ("lda d.csv -k 2 --priors p.npz", "plsa-vb d.csv -k 2 --priors p.npz --prior mixture=dirichlet:0.5"),
    ("lda d.csv --init t.npz", "plsa-vb d.csv --init t.npz --prior basis=dirichlet:0.5 --prior mixture=dirichlet:0.5"),
    ("lda d.csv d.csv --online average -k 2", "plsa-vb d.csv d.csv --online average -k 2 --prior basis=dirichlet:0.5 --prior mixture=dirichlet:0.5"),
    ("lda d.csv --shards 2 -k 2", "plsa-vb d.csv --shards 2 -k 2 --prior basis=dirichlet:0.5 --prior mixture=dirichlet:0.5"),
];

fn folder() -> Folder {
    let folder = Folder::with_counts();
    let w = [0.5, 1.0, 2.0, 0.25, 1.0, 3.0];
    folder.arrays("i.npz", &[("w", &[3, 2], &w), ("h", &[2, 4], &[1.0; 8])]);
    folder.arrays("f.npz", &[("w", &[3, 2], &[1.0, 0.0, 0.0, 0.0, 0.0, 1.0])]);
    folder.arrays("p.npz", &[("basis.dirichlet", &[1], &[0.7])]);
    folder.arrays("t.npz", &[("basis_shape", &[3, 2], &w)]);
    folder
}

#[test]
fn new_names_make_the_files_of_older_ones() {
    let folder = folder();
    for (new, old) in FITS {
        for (line, output) in [(new, "new.npz"), (old, "old.npz")] {
            folder.ok(
                &format!("fit {line} --max-iter 20 --quiet --output {output}").replace(
                    if line.contains("--online") {
                        "--max-iter 20"
                    } else {
                        ""
                    },
                    "",
                ),
            );
        }
        let (now, before) = (folder.found("new.npz"), folder.found("old.npz"));
        assert_eq!(now.arrays, before.arrays, "{new}");
        let mut said = [now.metadata, before.metadata];
        for metadata in &mut said {
            // Their order follows that of the line.
            if let Some(priors) = metadata["settings"]["prior"].as_array_mut() {
                priors.sort_by_key(ToString::to_string);
            }
        }
        assert_eq!(said[0], said[1], "{new}");
        // What was asked for is repeated, and by the names of before.
        folder.ok("refit new.npz --output again.npz --quiet");
        assert!(
            folder.bytes("new.npz") == folder.bytes("again.npz"),
            "{new}"
        );
    }
}

/// Files keep the names that options have had first, so that every version reads them.
#[test]
fn files_keep_their_words() {
    let folder = folder();
    folder.ok("fit siplca d.csv -k 1 --kernel 2x2 --support same --output a.npz --quiet");
    let options = json!({ "rank": ["1"], "kernel": ["2x2"], "domain": ["same"] });
    assert_eq!(
        folder.model("a.npz").metadata["request"]["options"],
        options
    );
    folder.ok("refit a.npz --without support --output b.npz --quiet");
    folder.ok("refit a.npz --without domain --output c.npz --quiet");
    assert!(folder.bytes("b.npz") == folder.bytes("c.npz"));
    // One way to say where the samples lie takes the place of another.
    folder.ok("fit plsa d.csv -k 2 --given 0 --output a.npz --quiet");
    folder.ok("refit a.npz --samples columns --output b.npz --quiet");
    folder.ok("fit plsa d.csv -k 2 --samples columns --output c.npz --quiet");
    assert!(folder.bytes("b.npz") == folder.bytes("c.npz"));
    folder.ok("fit lda d.csv -k 2 --output a.npz --quiet");
    let file = folder.model("a.npz");
    assert_eq!(file.metadata["model"], "plsa-vb");
    let priors = json!(["basis=dirichlet:0.5", "mixture=dirichlet:0.5"]);
    assert_eq!(file.metadata["settings"]["prior"], priors);
    folder.ok("fit nmf d.csv -k 2 --output b.npz --quiet");
    folder.ok("refit b.npz --loss l2 --output c.npz --quiet");
    assert_eq!(folder.model("c.npz").metadata["model"], "ntf-l2");
}

#[test]
fn lda_is_resumed_and_explains_new_documents_under_its_shapes() {
    let folder = folder();
    folder.resumes("fit lda d.csv -k 2 --max-iter 20 --tol 0 --quiet", 5);
    folder.ok(
        "fit plsa --method vb d.csv -k 2 --prior mixture=dirichlet:.5 --prior basis=dirichlet:.5 --max-iter 20 --tol 0 --quiet --output p.npz",
    );
    for model in ["whole.npz", "p.npz"] {
        folder.ok(&format!(
            "transform {model} d.csv --output t{model} --quiet"
        ));
    }
    let [lda, plsa] = ["twhole.npz", "tp.npz"].map(|name| folder.model(name).arrays);
    assert_eq!(lda, plsa);
}

/// What a line of `select` prints, but for the seconds.
fn scores(folder: &Folder, line: &str) -> Value {
    let mut all = folder.json(line);
    for row in all["table"].as_array_mut().unwrap() {
        row["seconds"].take();
    }
    all
}

#[test]
fn other_commands_take_the_names() {
    let folder = folder();
    #[rustfmt::skip]
    let cases = [
        ("select nmf d.csv --ranks 1,2", "select nmf-kl d.csv --ranks 1,2"),
        ("select skellam --method vb d.csv --ranks 1,2 --samples 0 --replicates inf", "select skellam-vb d.csv --ranks 1,2 --transpose --m inf"),
        ("select plsa d.csv --ranks 1,2 --samples 0", "select plsa d.csv --ranks 1,2 --given 0"),
    ];
    for (new, old) in cases {
        assert_eq!(scores(&folder, new), scores(&folder, old), "{new}");
    }
    // The shapes are those of each number of components.
    let table = |line: &str| folder.json(line)["table"].clone();
    let both = table("select lda d.csv --ranks 1,2 --restarts 1 --seed 3");
    let one = table(
        "select plsa-vb d.csv --ranks 1,2 --restarts 1 --seed 3 --prior basis=dirichlet:1 --prior mixture=dirichlet:1",
    );
    assert_eq!(both[0], one[0]);
    assert_ne!(both[1], one[1]);
    folder.ok("consensus nmf d.csv --ranks 2 --restarts 8 --samples 0 --output a.npz --quiet");
    folder.ok("consensus nmf-kl d.csv --ranks 2 --restarts 8 --transpose --output b.npz --quiet");
    assert!(folder.bytes("a.npz") == folder.bytes("b.npz"));
    folder.ok("consensus plsa d.csv --ranks 2 --restarts 8 --samples 0 --output a.npz --quiet");
    folder.ok("consensus plsa d.csv --ranks 2 --restarts 8 --given 0 --output b.npz --quiet");
    assert!(folder.bytes("a.npz") == folder.bytes("b.npz"));
    folder.ok("learn skellam --method vb d.csv -k 2 --output a.npz --quiet");
    folder.ok("learn skellam-vb d.csv -k 2 --output b.npz --quiet");
    assert!(folder.bytes("a.npz") == folder.bytes("b.npz"));
    folder.ok("shard d.csv --shards 2 --samples columns --output s");
    folder.ok("shard d.csv --shards 2 --along 1 --output t");
    assert_eq!(
        folder.bytes("s/manifest.json"),
        folder.bytes("t/manifest.json")
    );
    folder.ok("fit lda s -k 2 --output a.npz --quiet");
    folder.ok("fit lda d.csv --shards 2 -k 2 --output b.npz --quiet");
    assert_eq!(folder.model("a.npz").arrays, folder.model("b.npz").arrays);
}

#[test]
fn samples_of_new_data_lie_along_a_dimension_of_their_file() {
    let folder = folder();
    folder.text("rows.csv", "3,1,2\n1,5,6\n4,9,5\n1,2,3\n");
    for model in ["nmf", "plca", "plsa", "lda", "pntf"] {
        folder.ok(&format!("fit {model} d.csv -k 2 --output c.npz --quiet"));
        folder.ok(&format!(
            "fit {model} rows.csv --samples rows -k 2 --output r.npz --quiet"
        ));
        let (columns, rows) = (folder.model("c.npz"), folder.model("r.npz"));
        if model != "plsa" {
            // PLSA draws both in the order of its blocks.
            assert_eq!(columns.arrays, rows.arrays, "{model}");
        }
        let explained = |file: &str, data: &str, samples: &str| {
            folder.ok(&format!(
                "transform {file} {data} {samples} --output x.npz --quiet"
            ));
            folder.model("x.npz").arrays
        };
        for file in ["c.npz", "r.npz"] {
            let one = explained(file, "d.csv", "--samples 1");
            assert_eq!(
                one,
                explained(file, "rows.csv", "--samples 0"),
                "{model} {file}"
            );
        }
        assert_eq!(
            explained("c.npz", "d.csv", ""),
            explained("c.npz", "d.csv", "--samples 1")
        );
    }
    let cells: Vec<f64> = (0..24).map(|n| f64::from(n * n % 7)).collect();
    folder.npy("cube.npy", &[2, 3, 4], &cells);
    folder.ok("fit plca cube.npy -k 2 --samples 2 --output m.npz --quiet");
    folder.ok("transform m.npz cube.npy --samples 1 --output a.npz --quiet");
    folder.ok("transform m.npz cube.npy --along 1 --output b.npz --quiet");
    assert!(folder.bytes("a.npz") == folder.bytes("b.npz"));
}

#[test]
fn wrong_names_say_what_was_expected() {
    let folder = folder();
    folder.npy("cube.npy", &[3, 3, 3], &[1.0; 27]);
    folder.ok("fit plca cube.npy -k 2 --output m.npz --quiet");
    #[rustfmt::skip]
    let cases = [
        (2, "fit pntf d.csv -k 2 --method vb", &["pntf has no option --method", "plca, plsa, lda, skellam"][..]),
        (2, "fit plca d.csv -k 2 --loss l2", &["plca has no option --loss", "a model that has it: nmf"]),
        (2, "fit plsa-vb d.csv -k 2 --method em", &["plsa-vb has no option --method"]),
        (2, "fit plsa d.csv -k 2 --method mcmc", &["--method mcmc", "plsa has em or vb"]),
        (2, "fit lda d.csv -k 2 --method em", &["--method em", "lda has vb"]),
        (2, "fit nmf d.csv -k 2 --loss is", &["--loss is", "nmf has kl or l2"]),
        (2, "fit nmf --loss l2 d.csv -k 2 --update simultaneous", &["--update simultaneous", "multiplicative"]),
        (2, "fit nmf --loss l2 d.csv -k 2 --kkt-tol 1", &["nmf --loss l2 has no option --kkt-tol", "plca fit nmf --loss l2 --help"]),
        (2, "fit plca --method vb d.csv -k 2 --init i.npz --freeze f.npz", &["plca --method vb has no option --freeze FILE"]),
        (2, "fit nmf d.csv -k 2 --init i.npz --freeze f.npz,g.npz", &["--freeze g.npz", "f.npz", "expected one file"]),
        (2, "fit plsa d.csv -k 2 --samples 2", &["--samples 2", "expected 0 or 1"]),
        (2, "fit plsa d.csv -k 2 --samples last", &["'last'", "--samples <D>", "rows or columns"]),
        (2, "fit plsa d.csv -k 2 --samples 0 --given 0", &["--samples", "cannot be used with"]),
        (2, "fit nmf d.csv -k 2 --samples 0 --transpose", &["--samples", "cannot be used with"]),
        (1, "fit nmf d.csv -k 2 --samples 2", &["d.csv", "--samples 2", "expected 0 or 1"]),
        (1, "fit plca cube.npy -k 2 --samples 0", &["cube.npy", "--samples 0", "expected 2, the last dimension"]),
        (2, "transform m.npz cube.npy --samples 3", &["--samples 3", "from 0 to 2"]),
        (2, "select skellam d.csv --ranks 2", &["skellam has no table of scores", "nmf, ", "skellam --method vb"]),
        (2, "consensus skellam d.csv --ranks 2", &["skellam has no consensus", "nmf --loss l2"]),
        (2, "learn skellam d.csv -k 2", &["skellam has no hyperparameters", "skellam --method vb"]),
    ];
    for (status, line, parts) in cases {
        let output = if line.starts_with("select") {
            ""
        } else {
            " --output o.npz"
        };
        folder.fails(status, &format!("{line}{output}"), parts);
    }
}
