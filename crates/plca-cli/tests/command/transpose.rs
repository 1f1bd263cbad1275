//! `--transpose`: files whose rows are the samples.

use crate::Folder;

/// Three wavelengths and four samples: the rows of `samples.csv` are samples, the columns of `wavelengths.csv`.
fn spectra() -> Folder {
    let folder = Folder::new();
    folder.text(
        "samples.csv",
        "sample,400,410,420\na,3,-1,4\nb,1,5,-9\nc,2,6,5\nd,-3,5,8\n",
    );
    folder.text(
        "wavelengths.csv",
        "nm,a,b,c,d\n400,3,1,2,-3\n410,-1,5,6,5\n420,4,-9,5,8\n",
    );
    folder
}

const IN_ROWS: &str = "samples.csv --labels first-column --header yes --transpose";
const IN_COLUMNS: &str = "wavelengths.csv --labels first-column";

#[test]
fn a_file_and_its_transpose_have_one_fit() {
    let folder = spectra();
    // Sample b at 420 is hidden: no place of the diagonal, which turning would leave where it is.
    folder.text("seen_of_samples.csv", "1,1,1\n1,1,0\n1,1,1\n1,1,1\n");
    folder.text("seen_of_wavelengths.csv", "1,1,1,1\n1,1,1,1\n1,0,1,1\n");
    folder.text("hidden_of_samples.tns", "2 3 1\n");
    #[rustfmt::skip]
    let cases = [
        ("skellam", "", ""),
        ("skellam-vb --precision f32", "", ""),
        ("kmeans", "", ""),
        ("snmf-ding", "", ""),
        ("skellam", "--mask seen_of_samples.csv", "--mask seen_of_wavelengths.csv"),
        ("skellam", "--mask hidden_of_samples.tns", "--mask seen_of_wavelengths.csv"),
    ];
    for (model, rows, columns) in cases {
        let fit = |data: &str, output: &str| {
            folder.json(&format!(
                "fit {model} {data} --rank 2 --max-iter 30 --output {output}"
            ))
        };
        let turned = fit(&format!("{IN_ROWS} {rows}"), "r.npz");
        let usual = fit(&format!("{IN_COLUMNS} {columns}"), "c.npz");
        for name in ["objective", "samples", "shape", "iterations"] {
            assert_eq!(turned[name], usual[name], "{model} {rows}: {name}");
        }
        assert_eq!(turned["samples"], 4, "{model}");
        let (turned, usual) = (folder.model("r.npz"), folder.model("c.npz"));
        assert_eq!(turned.arrays, usual.arrays, "{model} {rows}");
        assert_eq!(turned.metadata["names"], usual.metadata["names"]);
    }
}

#[test]
fn sparse_data_are_turned() {
    let folder = Folder::new();
    let header = "%%MatrixMarket matrix coordinate real general\n";
    folder.text(
        "rows.mtx",
        &format!("{header}4 2 3\n1 1 5\n4 2 3\n2 1 -1\n"),
    );
    folder.text(
        "columns.mtx",
        &format!("{header}2 4 3\n1 1 5\n2 4 3\n1 2 -1\n"),
    );
    folder.ok("fit skellam rows.mtx --transpose --rank 2 --output r.npz --quiet");
    folder.ok("fit skellam columns.mtx --rank 2 --output c.npz --quiet");
    assert_eq!(folder.model("r.npz").arrays, folder.model("c.npz").arrays);
    // The rows of this format are always samples.
    folder.text("v.svmlight", "1 1:5\n1 1:-1\n1 2:0\n1 2:3\n");
    let said = folder.told("fit skellam v.svmlight --rank 2 --output o.npz");
    assert!(said.contains("--samples 0 takes the rows"), "{said}");
    folder.ok("fit skellam v.svmlight --transpose --rank 2 --output o.npz");
    assert_eq!(folder.model("o.npz").arrays, folder.model("c.npz").arrays);
}

#[test]
fn new_samples_and_a_second_fit_are_turned_too() {
    let folder = spectra();
    folder.ok(&format!(
        "fit skellam {IN_ROWS} --rank 2 --output m.npz --quiet"
    ));
    folder.ok(&format!("transform m.npz {IN_ROWS} --output r.npz --quiet"));
    folder.ok(&format!(
        "transform m.npz {IN_COLUMNS} --output c.npz --quiet"
    ));
    assert_eq!(folder.model("r.npz").arrays, folder.model("c.npz").arrays);
    folder.ok("refit m.npz --output again.npz --quiet");
    assert_eq!(
        folder.model("m.npz").arrays,
        folder.model("again.npz").arrays
    );
    let forgotten = "transform m.npz samples.csv --labels first-column --header yes --output o.npz";
    folder.fails(
        1,
        forgotten,
        &["they are those of the other dimension of the data: --samples 0 turns the table"],
    );
}

#[test]
fn a_consensus_is_of_samples_in_rows() {
    let folder = Folder::new();
    folder.text("rows.csv", "9,1,0\n1,8,3\n0,2,7\n8,1,1\n");
    folder.text("columns.csv", "9,1,0,8\n1,8,2,1\n0,3,7,1\n");
    for (data, output) in [("rows.csv --transpose", "r.npz"), ("columns.csv", "c.npz")] {
        folder.ok(&format!(
            "consensus nmf-kl {data} --ranks 2 --restarts 4 --output {output} --quiet"
        ));
    }
    assert_eq!(folder.model("r.npz").arrays, folder.model("c.npz").arrays);
}

#[test]
fn what_cannot_be_turned_is_refused() {
    let folder = spectra();
    folder.npy("cube.npy", &[2, 3, 2], &[1.0; 12]);
    folder.text("v.tns", "1 1 1\n2 2 1\n");
    folder.refuses("
        1 | fit pntf cube.npy --transpose --rank 2 --output o.npz | --transpose needs a matrix, these data have shape [2, 3, 2]
        2 | fit plsa v.tns --transpose --rank 2 --output o.npz | plsa has no option --transpose
        2 | fit nmf-kl v.tns --transpose --out-of-core v.store --rank 2 --output o.npz | --transpose cannot be combined with --out-of-core
    ");
}

/// A model of a long table takes new documents from a table with a column for every word.
#[test]
fn documents_of_the_other_orientation_are_turned() {
    let folder = Folder::new();
    folder.text(
        "long.csv",
        "word,document,count\nsea,a,5\nship,a,2\nwind,b,4\nship,b,1\nsea,c,3\n",
    );
    folder.text("rows.csv", "id,wind,sea,ship\nd,0,4,1\ne,6,0,1\n");
    folder.text("columns.csv", "word,d,e\nsea,4,0\nship,1,1\nwind,0,6\n");
    folder.ok("fit plsa long.csv --labels entries --rank 2 --output m.npz --quiet");
    let transform = |data: &str| format!("transform m.npz {data} --labels first-column --output");
    folder.ok(&format!(
        "{} r.npz --transpose --quiet",
        transform("rows.csv")
    ));
    folder.ok(&format!("{} c.npz --quiet", transform("columns.csv")));
    assert_eq!(folder.model("r.npz").arrays, folder.model("c.npz").arrays);
    let forgotten = format!("{} o.npz", transform("rows.csv"));
    folder.fails(1, &forgotten, &["--samples 0 turns the table"]);
    let superfluous = format!("{} o.npz --transpose", transform("columns.csv"));
    folder.fails(1, &superfluous, &["leave --transpose out"]);
}

/// What a model of a turned file says has the orientation of the file.
#[test]
fn reconstructions_are_turned_back() {
    let folder = Folder::new();
    folder.text("v.csv", "3,0,4,1\n1,5,9,2\n2,6,5,0\n");
    folder.text("turned.csv", "3,1,2\n0,5,6\n4,9,5\n1,2,0\n");
    folder.ok("fit nmf-kl v.csv --rank 2 --max-iter 20 --output v.npz --quiet");
    folder.ok("fit nmf-kl turned.csv --transpose --rank 2 --max-iter 20 --output t.npz --quiet");
    assert_eq!(folder.model("v.npz").arrays, folder.model("t.npz").arrays);
    for line in [
        "reconstruct MODEL --output OUT",
        "sample MODEL --draws 100 --seed 3 --output OUT",
    ] {
        let read = |model: &str, turn: bool| {
            folder.ok(&line.replace("MODEL", model).replace("OUT", "x.npy"));
            let data = plca_io::read_data::<f64>(folder.path("x.npy"), None).unwrap();
            let data = if turn { data.transposed() } else { data };
            let data = data.into_data().unwrap();
            let mut cells = vec![(data.shape().to_vec(), 0.0)];
            data.visit(&mut |index, value| cells.push((index.to_vec(), value)))
                .unwrap();
            cells.sort_by(|a, b| a.0.cmp(&b.0));
            cells
        };
        let (usual, turned) = (read("v.npz", false), read("t.npz", true));
        assert!(
            usual == turned && usual.iter().any(|(shape, _)| shape == &[3, 4]),
            "{line}"
        );
    }
}

/// New data with rows and columns exchanged: the message has the option with which the command works.
#[test]
fn new_data_that_lie_the_other_way_are_told_so() {
    let folder = Folder::new();
    folder.text("v.csv", "1,2,3,7\n4,5,6,1\n7,8,1,2\n");
    folder.text("new.csv", "1,4,7\n2,5,8\n3,6,1\n7,1,2\n9,1,2\n");
    folder.text("fits.csv", "1,2\n4,5\n7,8\n");
    folder.text("other.csv", "1,2\n4,5\n");
    for model in ["nmf-kl", "plca", "pntf", "ntf-l2"] {
        folder.ok(&format!(
            "fit {model} v.csv --header no -k 2 --output {model}.npz --quiet"
        ));
        let line =
            |data: &str| format!("transform {model}.npz {data} --header no --output t.npz --quiet");
        let new = line("new.csv");
        folder.fails(1, &new, &["new.csv", "3 x any", "; --samples 0 turns"]);
        folder.ok(&format!("{new} --transpose"));
        let turned = format!("{} --transpose", line("fits.csv"));
        folder.fails(1, &turned, &["; without --transpose they fit"]);
        folder.ok(&line("fits.csv"));
        let other = folder.run(&line("other.csv")).stderr;
        let other = String::from_utf8(other).unwrap();
        assert!(!other.contains("--samples"), "{other}");
    }
}
