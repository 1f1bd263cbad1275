//! New data under learnt blocks: what is said of an observation, alone and among others.

use crate::Folder;

/// The rows of a table as text.
fn table(rows: usize, cell: impl Fn(usize, usize) -> f64, columns: &[usize]) -> String {
    let row = |i: usize| {
        let cells: Vec<String> = columns.iter().map(|&y| cell(i, y).to_string()).collect();
        cells.join(",") + "\n"
    };
    (0..rows).map(row).collect()
}

fn count(i: usize, y: usize) -> f64 {
    ((i * i + 5 * y + i * y) % 9) as f64
}

/// A model of every kind explains one column as it does among all: by itself, or told to by `--each`.
// [SPEC 1.5] [EXT 3] [SKELLAM 5] [PNTF 8]
#[test]
fn a_column_alone_is_explained_as_among_others() {
    let all: Vec<usize> = (0..11).collect();
    let folder = Folder::new();
    folder.text("d.csv", &table(7, count, &all));
    folder.text("one.csv", &table(7, count, &[4]));
    #[rustfmt::skip]
    let cases = [
        ("plsa", "mixture", ""),
        ("plsa-vb", "mixture_shape", ""),
        ("nmf-kl", "h", ""),
        ("skellam --replicates inf", "activations", ""),
        ("skellam-vb --replicates inf", "activations_shape", ""),
        ("plca", "weights", "--each"),
        ("plca-vb", "weights_shape", "--each"),
        ("skellam-cp --replicates inf --signed-mode 0", "weights", "--each"),
        ("skellam-cp-vb --replicates inf --signed-mode 0", "weights_shape", "--each"),
        ("pntf", "mixture", ""),
        ("ntf-l2", "factor_1", ""),
    ];
    for (model, array, each) in cases {
        folder.json(&format!(
            "fit {model} d.csv --rank 3 --max-iter 40 --output m.npz --quiet"
        ));
        let found = |file: &str| {
            folder.json(&format!(
                "transform m.npz {file} {each} --output t.npz --quiet"
            ));
            folder.model("t.npz").arrays[array].clone()
        };
        let (whole, one) = (found("d.csv"), found("one.csv"));
        assert_eq!((whole.values.len(), one.values.len()), (33, 3), "{model}");
        let by_column = whole.shape == [3, 11];
        let own: Vec<f64> = (0..3)
            .map(|z| whole.values[if by_column { 11 * z + 4 } else { 3 * 4 + z }])
            .collect();
        assert_eq!(own, one.values, "{model}");
    }
}

/// Without word transforms by variational Bayes make plain iterations, and no solver ends lower; one that was cut off says so.
// [EXT 3]
#[test]
fn the_default_of_variational_bayes_is_plain() {
    let all: Vec<usize> = (0..12).collect();
    let folder = Folder::new();
    folder.text("d.csv", &table(9, count, &all));
    for model in ["plsa-vb", "plca-vb"] {
        let prior = match model {
            "plsa-vb" => "--prior mixture=dirichlet:0.1 --prior basis=dirichlet:0.1",
            _ => "--prior weights=dirichlet:0.1 --prior factor_1=dirichlet:0.1",
        };
        folder.json(&format!(
            "fit {model} d.csv --rank 5 {prior} --output m.npz --quiet"
        ));
        let objective = |solver: &str| {
            let line = format!("transform m.npz d.csv {solver} --output t.npz --quiet");
            folder.json(&line)["objective"].as_f64().unwrap()
        };
        let plain = objective("--solver em");
        assert_eq!(objective(""), plain, "{model}");
        for solver in ["squarem", "parabolic", "momentum"] {
            assert!(
                objective(&format!("--solver {solver}")) >= plain,
                "{model} {solver}"
            );
        }
        let cut = folder.json("transform m.npz d.csv --max-iter 2 --output t.npz --quiet");
        assert_eq!(cut["stop_reason"], "max_iterations");
        let warnings = folder.model("t.npz").metadata["warnings"].to_string();
        assert!(warnings.contains("before it converged"), "{warnings}");
    }
}

/// Shares are told from counts, probabilities from shapes.
// [EXT 3]
#[test]
fn shares_and_probabilities_are_not_counts() {
    let folder = Folder::new();
    folder.text("shares.csv", "0.5,0.25,0.4\n0.25,0.5,0.1\n0.25,0.25,0.5\n");
    folder.text("counts.csv", "5,2,4\n2,5,1\n2,2,5\n");
    folder.text("one-word.csv", "1,0,0\n0,1,0\n0,0,1\n");
    let warned = |file: &str, model: &str| {
        folder.json(&format!(
            "fit {model} {file} --rank 2 --output m.npz --quiet"
        ));
        folder.model("m.npz").metadata["warnings"]
            .to_string()
            .contains("the data look like shares")
    };
    for model in ["plsa-vb", "plca-vb"] {
        assert!(warned("shares.csv", model), "{model}");
        assert!(
            !warned("counts.csv", model) && !warned("one-word.csv", model),
            "{model}"
        );
    }
    assert!(!warned("shares.csv", "plsa"));
    folder.text("b.csv", "0.7,0.1\n0.2,0.3\n0.1,0.6\n");
    let line = "fit plsa-vb counts.csv --init b.csv --freeze basis_shape --output m.npz";
    folder.refuses(&format!(
        "1 | {line} | `basis_shape` | expected shapes | 1 + 1000 times"
    ));
    // Means beside no shapes, and blocks of which none starts a fit, are not passed over.
    folder.arrays(
        "means.npz",
        &[("basis", &[3, 2], &[0.7, 0.1, 0.2, 0.3, 0.1, 0.6])],
    );
    let line = "fit plsa-vb counts.csv --rank 2 --init means.npz --output m.npz";
    folder.refuses(&format!(
        "1 | {line} | means.npz | `basis` is the mean of `basis_shape`"
    ));
    folder.arrays("facts.npz", &[("marginal", &[3], &[0.2, 0.3, 0.5])]);
    let line = "fit plsa counts.csv --rank 2 --init facts.npz --output m.npz";
    folder.fails(1, line, &["facts.npz", "no block", "basis, mixture"]);
    folder.ok("fit siplca counts.csv --rank 1 --kernel 1x1 --output s.npz --quiet");
    let line = "transform s.npz counts.csv --each --output t.npz";
    folder.fails(2, line, &["--each", "siplca", "every file by itself"]);
}
