//! One data set in every format, complete and with hidden cells.

use serde_json::json;

use crate::Folder;

#[rustfmt::skip]
const SPARSE: [(&str, &[u8]); 8] = [
    ("csr.npz", include_bytes!("../../../plca-io/testdata/sparse_csr.npz")),
    ("csr64.npz", include_bytes!("../../../plca-io/testdata/sparse_csr_int64.npz")),
    ("csc.npz", include_bytes!("../../../plca-io/testdata/sparse_csc.npz")),
    ("csc_stored.npz", include_bytes!("../../../plca-io/testdata/sparse_csc_stored.npz")),
    ("coo.npz", include_bytes!("../../../plca-io/testdata/sparse_coo.npz")),
    ("coo_stored.npz", include_bytes!("../../../plca-io/testdata/sparse_coo_stored.npz")),
    ("sparse.mat", include_bytes!("../../../plca-io/testdata/sparse.mat")),
    ("packed.mat", include_bytes!("../../../plca-io/testdata/sparse_packed.mat")),
];
/// `v` is dense, `w` the matrix of the sparse files; there are also `note` and `cells`.
const TWO: &[u8] = include_bytes!("../../../plca-io/testdata/two_arrays.mat");
const TWO_NPZ: &[u8] = include_bytes!("../../../plca-io/testdata/two_arrays.npz");
const MTX: &str =
    "%%MatrixMarket matrix coordinate real general\n% a comment\n3 4 3\n1 2 1.5\n3 1 2\n3 4 3\n";

/// The matrix of the reference files of `plca-io`, in every format.
fn folder() -> (Folder, Vec<String>) {
    let folder = Folder::new();
    folder.text("d.csv", "0,1.5,0,0\n0,0,0,0\n2,0,0,3\n");
    folder.text("d.mtx", MTX);
    folder.text("d.tns", "1 2 1.5\n3 1 2\n3 4 3\n");
    let mut lines = vec!["d.mtx".to_string(), "d.tns --shape 3x4".to_string()];
    for (name, bytes) in SPARSE {
        std::fs::write(folder.path(name), bytes).unwrap();
        lines.push(name.to_string());
    }
    (folder, lines)
}

fn objective(folder: &Folder, line: &str) -> f64 {
    let s = folder.json(&format!(
        "fit {line} --rank 2 --tol 0 --max-iter 12 --output o.npz --quiet"
    ));
    s["objective"].as_f64().unwrap()
}

fn close(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() <= 1e-10 * (1.0 + b.abs()), "{what}: {a} {b}");
}

#[test]
fn every_format_is_one_data_set() {
    let (folder, lines) = folder();
    for model in ["plca", "plsa", "nmf-kl"] {
        let want = objective(&folder, &format!("{model} d.csv"));
        for data in &lines {
            close(objective(&folder, &format!("{model} {data}")), want, data);
        }
    }
    let want =
        folder.json("select plca d.csv --ranks 1,2 --criterion aic")["table"][0]["score"].clone();
    for data in &lines {
        let got = folder.json(&format!("select plca {data} --ranks 1,2 --criterion aic"));
        let (got, want) = (got["table"][0]["score"].as_f64(), want.as_f64());
        close(got.unwrap(), want.unwrap(), data);
    }
}

/// One array of several, by its name: in every command that reads data, and noted where it matters.
#[test]
fn an_array_of_several_is_named() {
    let (folder, _) = folder();
    std::fs::write(folder.path("two.mat"), TWO).unwrap();
    std::fs::write(folder.path("two.npz"), TWO_NPZ).unwrap();
    folder.text("v.csv", "0,1,2\n3,4,5\n");
    let (v, w) = (
        objective(&folder, "plca v.csv"),
        objective(&folder, "plca d.csv"),
    );
    close(objective(&folder, "plca two.mat --array v"), v, "v");
    close(objective(&folder, "plca two.npz --array w"), v, "w of .npz");
    close(objective(&folder, "plca two.mat --array w"), w, "w");
    let array = folder.model("o.npz").metadata["settings"]["array"].clone();
    assert_eq!(array, "w");
    folder.ok("refit o.npz --seed 3 --output again.npz --quiet");
    folder.ok("transform o.npz two.mat --array w --output n.npz --quiet");
    folder.ok("shard two.mat --array w --shards 2 --output s");
    folder.ok("fit plca s --rank 2 --output p.npz --quiet");
    // The store of one array is not that of another.
    let line = "fit plca two.mat --rank 2 --out-of-core w.store --output p.npz --array";
    folder.ok(&format!("{line} w --quiet"));
    folder.ok(&format!("{line} w"));
    folder.refuses("
        1 | fit plca two.mat --rank 2 --output p.npz | two.mat | holds 2 arrays | --array NAME | : v, w
        1 | fit plca two.npz --rank 2 --output p.npz | two.npz | holds 2 arrays | --array NAME
        1 | fit plca two.mat --array x --rank 2 --output p.npz | two.mat | no array `x` | v, w
        1 | fit plca two.mat --array note --rank 2 --output p.npz | two.mat | `note` is text | save a numeric array
        1 | fit plca two.mat --array cells --rank 2 --output p.npz | two.mat | `cells` is a cell array
        1 | fit plca d.csv --array v --rank 2 --output p.npz | d.csv | no array `v` | .npz and .mat
    ");
    let of_shards = "fit plca s --array w --rank 2 --output p.npz";
    folder.fails(2, of_shards, &["--array", "shards"]);
}

/// As for other decoders that not everybody needs.
#[cfg(not(feature = "parquet"))]
#[test]
fn what_reads_parquet_is_said() {
    let folder = Folder::new();
    let long = include_bytes!("../../../plca-io/testdata/long_snappy.parquet");
    std::fs::write(folder.path("v.parquet"), long).unwrap();
    let line = "fit plca v.parquet --rank 2 --output o.npz";
    folder.refuses(&format!(
        "1 | {line} | v.parquet | .npy | a build with the feature `parquet` reads it"
    ));
}

/// The table of the sparse files, one row for an entry.
#[cfg(feature = "parquet")]
#[test]
fn long_tables_are_one_data_set() {
    let (folder, _) = folder();
    let long = include_bytes!("../../../plca-io/testdata/long_snappy.parquet");
    std::fs::write(folder.path("v.parquet"), long).unwrap();
    let want = objective(&folder, "plca d.csv");
    close(objective(&folder, "plca v.parquet"), want, "v.parquet");
}

/// A dense mask on sparse data, a list of hidden cells, and NaN say the same.
#[test]
fn masks_of_every_kind_hide_the_same_cells() {
    let (folder, lines) = folder();
    folder.text("nan.csv", "nan,1.5,0,0\n0,0,nan,0\n2,0,0,3\n");
    let mut seen = [1.0; 12];
    (seen[0], seen[6]) = (0.0, 0.0);
    folder.npy("mask.npy", &[3, 4], &seen);
    folder.text("hidden.tns", "1 1 1\n2 3 1\n");
    folder.text(
        "hidden.mtx",
        "%%MatrixMarket matrix coordinate pattern general\n3 4 2\n1 1\n2 3\n",
    );
    for model in ["plca", "plsa", "nmf-kl"] {
        let want = objective(&folder, &format!("{model} nan.csv --missing nan"));
        let plain = objective(&folder, &format!("{model} d.csv"));
        assert!(
            (plain - want).abs() > 1e-6,
            "{model}: the mask does nothing"
        );
        for data in lines.iter().map(String::as_str).chain(["d.csv"]) {
            for mask in ["mask.npy", "hidden.tns", "hidden.mtx"] {
                let line = format!("{model} {data} --mask {mask}");
                close(objective(&folder, &line), want, &line);
            }
        }
    }
}

/// Unstored cells and masked ones are hidden together.
#[test]
fn a_mask_adds_to_unstored_cells() {
    let (folder, lines) = folder();
    folder.text(
        "nan.csv",
        "nan,1.5,nan,nan\nnan,nan,nan,nan\nnan,nan,nan,3\n",
    );
    let mut seen = [1.0; 12];
    seen[8] = 0.0;
    folder.npy("mask.npy", &[3, 4], &seen);
    folder.text("hidden.tns", "3 1 1\n");
    for model in ["plca", "nmf-kl"] {
        let want = objective(&folder, &format!("{model} nan.csv --missing nan"));
        for data in &lines {
            for mask in ["mask.npy", "hidden.tns"] {
                let line = format!("{model} {data} --missing unstored --mask {mask}");
                close(objective(&folder, &line), want, &line);
            }
        }
    }
}

#[test]
fn wholly_hidden_slices_are_flagged() {
    let folder = Folder::new();
    folder.text("d.csv", "1,nan,3\n4,nan,6\nnan,nan,nan\n");
    for model in ["plca", "plsa", "nmf-kl"] {
        let line = format!("fit {model} d.csv --missing nan --rank 2 --output o.npz");
        let err = String::from_utf8(folder.run(&line).stderr).unwrap();
        let lines: Vec<&str> = err.lines().collect();
        assert_eq!(lines.len(), 2, "{err}");
        assert!(
            lines[0].starts_with("warning: ") && lines[0].contains("dimension 0 at [2]"),
            "{err}"
        );
        assert!(lines[1].contains("dimension 1 at [1]"), "{err}");
        folder.ok(&format!("{line} --quiet"));
        let warnings = folder.model("o.npz").metadata["warnings"].clone();
        assert_eq!(warnings.as_array().unwrap().len(), 2);
        folder.ok(&format!(
            "fit {model} d.csv --missing nan --rank 2 --output o.npz --quiet --max-iter 0"
        ));
    }
}

/// A row without an observed cell, in every model and however it was hidden: flagged, and its entries are numbers.
#[test]
fn a_wholly_masked_row_is_flagged_by_every_model() {
    let folder = Folder::new();
    folder.text("d.csv", "1,2,5\n1e9,1e9,1e9\n4,2,6\n");
    folder.text(
        "d.tns",
        "1 1 1\n1 2 2\n1 3 3\n2 2 1e9\n3 1 4\n3 2 2\n3 3 6\n",
    );
    folder.text("stored.tns", "1 1 1\n1 2 2\n1 3 3\n3 1 4\n3 2 2\n3 3 6\n");
    let mut seen = [1.0; 9];
    seen[3..6].fill(0.0);
    folder.npy("mask.npy", &[3, 3], &seen);
    folder.text("hidden.tns", "2 1 1\n2 2 1\n2 3 1\n");
    for model in [
        "plca",
        "plca --missing-method multiplicative",
        "plsa",
        "plsa --given 0",
        "nmf-kl",
        "nmf-kl --missing-method imputation",
        "siplca --kernel 3x2",
        "siplca --kernel 3x2 --support valid,full",
        "skellam --replicates 1",
        "skellam",
        "skellam-vb",
        "pntf",
    ] {
        for data in [
            "d.csv --mask mask.npy",
            "d.csv --mask hidden.tns",
            "d.tns --mask mask.npy",
            "d.tns --mask hidden.tns",
            "stored.tns --missing unstored",
        ] {
            let line = format!("fit {model} {data} --rank 2 --max-iter 20 --tol 0 --output o.npz");
            let out = folder.run(&line);
            let err = String::from_utf8(out.stderr).unwrap();
            assert_eq!(out.status.code(), Some(0), "{line}: {err}");
            let flagged = err.starts_with("warning: ") && err.contains("dimension 0 at [1]");
            assert!(flagged && err.lines().count() == 1, "{line}: {err}");
            folder.ok(&format!("{line} --quiet"));
            let file = folder.model("o.npz");
            let kept = file.metadata["warnings"][0].as_str().unwrap();
            assert_eq!(format!("warning: {kept}\n"), err, "{line}");
            for (name, block) in &file.arrays {
                // Hidden values are never read.
                let usable = |x: &f64| x.is_finite() && *x < 1e6;
                assert!(block.values.iter().all(usable), "{line}: {name}");
            }
        }
    }
    // Of a tensor, one slice.
    let mut cube = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    cube[4..].fill(f64::NAN);
    folder.npy("cube.npy", &[2, 2, 2], &cube);
    for model in ["plca", "pntf"] {
        folder.ok(&format!(
            "fit {model} cube.npy --missing nan --rank 2 --output o.npz --quiet"
        ));
        let warnings = folder.model("o.npz").metadata["warnings"].clone();
        let all = warnings.as_array().unwrap();
        assert!(all.len() == 1 && all[0].as_str().unwrap().contains("dimension 0 at [1]"));
    }
}

/// No accelerated iteration lowers the objective, and after as many iterations it is at most a thousandth below that of plain EM:
/// an extrapolation may lead to another, nearly as good optimum.
#[test]
fn accelerated_runs_are_monotone() {
    let folder = Folder::with_counts();
    for model in ["plca", "plsa", "nmf-kl"] {
        let sign = if model == "nmf-kl" { -1.0 } else { 1.0 };
        for kind in ["squarem", "parabolic", "momentum"] {
            folder.ok(&format!(
                "fit {model} d.csv --rank 2 --tol 0 --max-iter 60 --check-every 1 --accelerate {kind} --trace t.jsonl --output o.npz --quiet"
            ));
            let text = String::from_utf8(folder.bytes("t.jsonl")).unwrap();
            let values: Vec<f64> = text
                .lines()
                .map(|l| {
                    serde_json::from_str::<serde_json::Value>(l).unwrap()["objective"]
                        .as_f64()
                        .unwrap()
                })
                .map(|x| sign * x)
                .collect();
            assert_eq!(values.len(), 61);
            for pair in values.windows(2) {
                assert!(
                    pair[1] >= pair[0] - 1e-12 * (1.0 + pair[0].abs()),
                    "{model} {kind} {pair:?}"
                );
            }
            let line = format!("fit {model} d.csv --rank 2 --tol 0 --max-iter 60 --output p.npz");
            let plain = sign * folder.json(&line)["objective"].as_f64().unwrap();
            assert!(
                *values.last().unwrap() >= plain - 1e-3 * plain.abs(),
                "{model} {kind}"
            );
        }
    }
}

/// Every kind of Matrix Market file, with packed ones, duplicates and a header line.
#[test]
fn text_formats_of_every_kind() {
    let folder = Folder::new();
    let market = |kind: &str, body: &str| format!("%%MatrixMarket matrix {kind}\n%\n{body}");
    folder.text("d.csv", "1,2,0\n2,0,3\n0,3,4\n");
    folder.text("ones.csv", "1,1,0\n1,0,1\n0,1,1\n");
    let symmetric = market(
        "coordinate real symmetric",
        "3 3 4\n1 1 1\n2 1 2\n3 2 3\n3 3 4\n",
    );
    let pattern = market(
        "coordinate pattern symmetric",
        "3 3 4\n1 1\n2 1\n3 2\n3 3\n",
    );
    #[rustfmt::skip]
    let files = [
        ("symmetric.mtx", symmetric.clone()),
        ("general.mtx", market("coordinate integer general", "3 3 6\n3 3 4\n1 1 1\n2 1 2\n1 2 2\n3 2 3\n2 3 3\n")),
        ("array.mtx", market("array real general", "3 3\n1\n2\n0\n2\n0\n3\n0\n3\n4\n")),
        ("half.mtx", market("array integer symmetric", "3 3\n1\n2\n0\n0\n3\n4\n")),
        ("twice.tns", "1 1 .5\n1 2 2\n2 1 2\n2 3 3\n3 2 3\n3 3 4\n1 1 .5\n".into()),
        ("header.csv", "a,b,c\n1,2,0\n2,0,3\n0,3,4\n".into()),
    ];
    for (name, text) in &files {
        folder.text(name, text);
    }
    folder.text("pattern.mtx", &pattern);
    for (name, text) in [
        ("packed.mtx.gz", &symmetric),
        ("packed.tns.gz", &files[4].1),
    ] {
        let file = std::fs::File::create(folder.path(name)).unwrap();
        let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
        packed.finish().unwrap();
    }
    for model in ["plca", "plsa", "nmf-kl"] {
        let want = objective(&folder, &format!("{model} d.csv"));
        let packed = ["packed.mtx.gz", "packed.tns.gz"];
        for data in files.iter().map(|(name, _)| *name).chain(packed) {
            close(objective(&folder, &format!("{model} {data}")), want, data);
        }
        let want = objective(&folder, &format!("{model} ones.csv"));
        close(
            objective(&folder, &format!("{model} pattern.mtx")),
            want,
            "pattern",
        );
    }
}

/// Hidden values are never read, whatever they are and in whatever format; observed ones are refused as ever.
#[test]
fn hidden_values_may_be_anything() {
    let (folder, _) = folder();
    folder.text("hidden.tns", "1 1 1\n2 3 1\n");
    let mtx = "%%MatrixMarket matrix coordinate real general\n3 4 5\n1 2 1.5\n3 1 2\n3 4 3\n";
    for (x, y) in [("-4", "inf"), ("nan", "-inf"), ("1e300", "-1e300")] {
        folder.text("x.csv", &format!("{x},1.5,0,0\n0,0,{y},0\n2,0,0,3\n"));
        folder.text("x.mtx", &format!("{mtx}1 1 {x}\n2 3 {y}\n"));
        folder.text(
            "x.tns",
            &format!("1 1 {x}\n1 2 1.5\n2 3 {y}\n3 1 2\n3 4 3\n"),
        );
        for model in ["plca --precision f32", "plsa", "nmf-kl"] {
            for format in ["csv", "mtx", "tns"] {
                let line = |name| format!("{model} {name}.{format} --mask hidden.tns");
                let want = objective(&folder, &line("d"));
                assert_eq!(objective(&folder, &line("x")), want, "{}", line("x"));
            }
        }
    }
    folder.text("first.tns", "1 1 1\n");
    folder.text("x.csv", "-4,1.5,0,0\n0,0,-7,0\n2,0,0,3\n");
    folder.refuses(
        "1 | fit plca x.csv --mask first.tns --rank 2 --output p.npz | x.csv | [1, 2] | -7",
    );
}

/// A table of words says which option reads it.
#[test]
fn tables_that_are_read_otherwise_say_how() {
    let folder = Folder::new();
    folder.text("names.csv", "doc,sea,ship\na,1,2\nb,3,4\n");
    folder.text("semicolon.csv", "1;2\n3;4\n");
    folder.text("mixed.csv", "1,two\n3,4\n");
    folder.text("sentence.csv", "1,2\n3,four\n");
    for (file, option) in [
        ("names.csv", "--labels first-column"),
        ("semicolon.csv", "--delimiter ';'"),
        ("mixed.csv", "--header yes"),
    ] {
        let fit = format!("fit plca {file} --rank 1 --output o.npz --quiet");
        folder.fails(1, &fit, &[file, option]);
        folder.ok(&format!("{fit} {option}").replace('\'', ""));
    }
    folder.text("long.csv", "doc,word,count\na,sea,1\nb,sun,2\n");
    let long = "fit plca long.csv --rank 1 --output o.npz --quiet --labels";
    folder.refuses(&format!(
        "1 | {long} first-column | line 2: column 2 | --labels entries"
    ));
    folder.ok(&format!("{long} entries"));
    let error = folder.run("fit plca sentence.csv --rank 1 --output o.npz");
    let error = String::from_utf8(error.stderr).unwrap();
    assert!(
        error.contains("line 2: column 2") && !error.contains("--"),
        "{error}"
    );
}

/// Formats that list documents have them as rows: the models of documents say so, and new documents need not have every word.
#[test]
fn lists_of_documents_are_rows() {
    let folder = Folder::new();
    folder.text("d.ldac", "2 0:3 1:1\n2 1:2 3:5\n1 2:4\n");
    folder.text("new.ldac", "1 0:2\n1 1:3\n");
    let told = |line: &str| String::from_utf8(folder.run(line).stderr).unwrap();
    let fit = "fit plsa d.ldac --rank 2 --seed 1 --output m.npz";
    assert!(told(fit).contains("--samples 0"));
    assert!(!told(&format!("{fit} --given 0")).contains("--samples"));
    let summary = folder.json("transform m.npz new.ldac --output t.npz --quiet");
    assert_eq!(summary["shape"], serde_json::json!([2, 4]));
    assert_eq!(folder.model("t.npz").arrays["mixture"].shape, [2, 2]);
    let select = "select plsa-vb d.ldac --ranks 1..2";
    assert!(told(select).contains("--samples 0"));
    assert!(!told(&format!("{select} --given 0")).contains("--samples"));
    let rows = folder.json(&format!("{select} --given 0"));
    folder.text("t.csv", "3,0,0\n1,2,0\n0,0,4\n0,5,0\n");
    let columns = folder.json("select plsa-vb t.csv --ranks 1..2");
    close(
        rows["table"][1]["elbo"].as_f64().unwrap(),
        columns["table"][1]["elbo"].as_f64().unwrap(),
        "elbo",
    );
}

/// New data with names are taken by them, whatever their order.
#[test]
fn new_data_are_in_the_order_of_their_names() {
    let folder = Folder::new();
    folder.text(
        "long.csv",
        "word,doc,count\nsea,1,5\nship,1,3\nsun,2,6\nsky,2,2\nship,2,1\nsea,10,4\nsun,10,1\n",
    );
    folder.ok("fit plsa long.csv --labels entries --rank 2 --seed 1 --output m.npz --quiet");
    let names = |file: &str| folder.model(file).metadata["names"].clone();
    let words = ["sea", "ship", "sky", "sun"];
    assert_eq!(names("m.npz"), json!({ "0": words, "1": ["1", "2", "10"] }));
    let mixture = |data: &str| {
        let line = format!("transform m.npz {data} --output t.npz");
        let told = folder.run(&line).stderr;
        let values = folder.model("t.npz").arrays["mixture"].values.clone();
        (values, String::from_utf8(told).unwrap())
    };

    // The same counts by the words' places in the model, in another order, with a word more, and as a table of all words.
    folder.text("places.tns", "1 1 2\n4 1 1\n2 2 3\n");
    let (expected, _) = mixture("places.tns --shape 4x2");
    folder.text("new.csv", "sun,x,1\nship,y,3\nzebra,y,7\nsea,x,2\n");
    let (found, told) = mixture("new.csv --labels entries");
    assert_eq!(found, expected);
    assert!(
        told.contains("7 of 13 were left out") && told.contains("dimension 0: `zebra`"),
        "{told}"
    );
    let dropped = |file: &str| folder.model(file).arrays["dropped"].values[0];
    assert_eq!(dropped("t.npz"), 7.0);
    assert_eq!(names("t.npz"), json!({ "0": words, "1": ["x", "y"] }));
    folder.text("wide.csv", ",x,y\nsun,1,0\nsky,0,0\nsea,2,0\nship,0,3\n");
    let (found, told) = mixture("wide.csv --labels first-column");
    assert_eq!(found, expected);
    assert!(!told.contains("warning"), "{told}");

    // Words that a table of counts does not have are not in its documents; of other data nobody knows.
    folder.text("few.csv", ",x,y\nsun,1,0\nsea,2,0\nship,0,3\n");
    let (found, told) = mixture("few.csv --labels first-column");
    assert_eq!(found, expected);
    assert!(
        told.contains("`sky`") && told.contains("count as 0"),
        "{told}"
    );
    folder.text(
        "all.csv",
        ",a,b,c\nsun,1,0,3\nsky,2,1,0\nsea,2,0,1\nship,0,3,2\n",
    );
    folder.ok("fit skellam all.csv --labels first-column --rank 2 --output s.npz --quiet");
    folder.refuses("1 | transform s.npz few.csv --labels first-column --output t.npz | few.csv | 3 of the 4 names | `sky`");
    // Without names their order is taken, which is said; of entries there is no order.
    folder.text("plain.csv", "2,0\n0,3\n0,0\n1,0\n");
    let (found, told) = mixture("plain.csv");
    assert_eq!(found, expected);
    assert!(told.contains("no names along dimension 0"), "{told}");
    folder.ok("fit plsa plain.csv --rank 2 --output plain.npz --quiet");
    folder.refuses("1 | transform plain.npz new.csv --labels entries --output t.npz | new.csv | the model has no names");
    folder.text("none.csv", "cat,x,1\ndog,x,1\n");
    folder.text("seen.csv", "1,1\n1,1\n1,1\n1,0\n");
    folder.refuses("
        1 | transform m.npz none.csv --labels entries --output t.npz | `cat` | `sea`
        1 | transform m.npz wide.csv --labels first-column --mask seen.csv --output t.npz | wide.csv | --mask
    ");
}

/// Files of which each would number its names anew are refused.
#[test]
fn names_of_several_files_are_refused() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("batches")).unwrap();
    folder.text("batches/a.csv", "sea,x,1\nsun,y,2\n");
    folder.text("batches/b.csv", "sky,x,1\nsun,z,2\n");
    folder.refuses("
        2 | fit plsa batches --online .6,1 --rank 1 --labels entries --output o.npz | --labels entries | of its own
        2 | learn skellam-vb batches/a.csv batches/b.csv --rank 1 --labels entries --output o.npz | --labels entries | of its own
    ");
}

/// Names of megabytes are kept, so that new data find their places.
#[test]
fn large_vocabularies_are_kept() {
    let folder = Folder::new();
    let word = |i: u32| format!("word-with-a-long-name-{i:010}");
    let line = |i: u32| format!("{}\td{}\t{}\n", word(i), i % 3, i % 7 + 1);
    folder.text("v.tsv", &(0..200_000).map(line).collect::<String>());
    folder
        .ok("fit plsa v.tsv --labels entries --rank 2 --max-iter 2 --tol 0 --output m.npz --quiet");
    folder.text(
        "new.tsv",
        &format!("{}\tnew\t4\n{}\tnew\t1\n", word(199_999), word(7)),
    );
    let found = folder.json("transform m.npz new.tsv --labels entries --output t.npz --quiet");
    assert_eq!(
        (&found["dropped"], &found["shape"]),
        (&json!(0.0), &json!([200_000, 1]))
    );
}

/// Names that a model file has no room for do not cost the fit.
#[test]
fn too_many_names_are_left_out() {
    let folder = Folder::new();
    let long = "x".repeat(1 << 15);
    let row = |i: usize| format!("{long}{i},{}\n", i + 1);
    let rows: String = (0..1 << 10).map(row).collect();
    folder.text("v.csv", &format!("name,only\n{rows}"));
    let line = "fit plca v.csv --labels first-column --rank 1 --max-iter 2 --output m.npz";
    let told = String::from_utf8(folder.run(line).stderr).unwrap();
    assert!(
        told.contains("the 1024 names along dimension 0 are not kept"),
        "{told}"
    );
    assert_eq!(
        folder.model("m.npz").metadata["names"],
        json!({ "1": ["only"] })
    );
}

/// Names that are taken for data are doubted.
#[test]
fn names_among_the_data_are_doubted() {
    let folder = Folder::new();
    let told = |data: &str| {
        let line = format!("fit nmf-kl {data} --rank 1 --max-iter 2 --output m.npz");
        String::from_utf8(folder.run(&line).stderr).unwrap()
    };
    folder.text("numbered.csv", ",sea,ship\n0,9,1\n1,1,9\n");
    folder.text("axis.csv", "sample,300,305,310\na,1,2,3\nb,3,2,1\n");
    folder.text("bare.csv", "1,2,3,4,5,6,7,8.5\n1,2,2,1,1,2,1,1\n");
    folder.text("plain.csv", "1,2,4\n1,2,2\n");
    for (doubted, option) in [
        ("numbered.csv", "--labels first-column"),
        ("axis.csv --labels first-column", "--header yes"),
        ("bare.csv", "--header yes"),
    ] {
        assert!(
            told(doubted).contains(option),
            "{doubted}: {}",
            told(doubted)
        );
        let quiet = told(&format!("{doubted} {option}"));
        assert!(
            !quiet.contains("--header") && !quiet.contains("--labels"),
            "{quiet}"
        );
    }
    for plain in [
        "plain.csv",
        "bare.csv --header no",
        "axis.csv --labels first-column --header no",
    ] {
        assert!(
            !told(plain).contains("--header"),
            "{plain}: {}",
            told(plain)
        );
    }
    folder.text("decimal.csv", "1;2,5\n2;3\n");
    folder.text("gaps.csv", "1,2\nNA,3\n");
    folder.text("line.csv", "sun,a,1\nsea,a,NA\n");
    folder.text("comma.csv", "word,doc\n\"sea, deep\",3\n");
    folder.text("cut.csv", "a;1;2\n");
    folder.text("noise.wav", "RIFF");
    folder.text("noise.png", "PNG");
    folder.refuses(
        "
            1 | fit nmf-kl decimal.csv --delimiter ; --rank 1 --output o.npz | decimal point
            1 | fit nmf-kl gaps.csv --rank 1 --output o.npz | --missing nan
            1 | fit nmf-kl line.csv --labels entries --rank 1 --output o.npz | leave the line
            1 | fit nmf-kl comma.csv --rank 1 --output o.npz | --labels first-column
            1 | fit nmf-kl cut.csv --labels first-column --rank 1 --output o.npz | --delimiter ';'
            1 | fit nmf-kl cut.csv --labels entries --rank 1 --output o.npz | --delimiter ';'
            1 | fit nmf-kl noise.wav --rank 1 --output o.npz | plca spectrogram
            1 | fit nmf-kl noise.png --rank 1 --output o.npz | .npy
        ",
    );
}

/// Data of any format have the names of a file; names on one side only, or twice, are said.
#[test]
fn names_come_from_files_and_are_on_both_sides() {
    let folder = Folder::new();
    let matrix = "%%MatrixMarket matrix coordinate integer general\n";
    folder.text(
        "d.mtx",
        &format!("{matrix}4 3 6\n1 1 5\n2 1 3\n4 2 6\n3 2 2\n1 3 4\n4 3 1\n"),
    );
    folder.text(
        "new.mtx",
        &format!("{matrix}3 2 4\n1 1 1\n3 1 2\n2 2 3\n1 2 0\n"),
    );
    folder.text("words.txt", "sea\nship\nsky\nsun\n");
    folder.text("others.txt", "sun\nship\nsea\n");
    folder.text("five.txt", "a\nb\nc\nd\ne\n");
    folder.text("short.txt", "sun\nship\n");
    let fit = "fit plsa d.mtx --rank 2 --seed 1 --quiet --output";
    folder.ok(&format!("{fit} m.npz --labels words.txt"));
    folder.ok(&format!("{fit} bare.npz"));
    let words = ["sea", "ship", "sky", "sun"];
    assert_eq!(
        folder.model("m.npz").metadata["names"],
        json!({ "0": words })
    );
    folder.text("places.tns", "1 1 2\n4 1 1\n2 2 3\n");
    let mixture = |line: &str| {
        let told = folder
            .run(&format!("transform {line} --output t.npz"))
            .stderr;
        let values = folder.model("t.npz").arrays["mixture"].values.clone();
        (values, String::from_utf8(told).unwrap())
    };
    let (expected, _) = mixture("bare.npz places.tns --shape 4x2");
    let (found, told) = mixture("m.npz new.mtx --labels others.txt");
    assert_eq!(found, expected);
    assert!(!told.contains("warning"), "{told}");
    // A column after the other, as in Fortran, and a row after the other.
    folder.text(
        "array.mtx",
        "%%MatrixMarket matrix array integer general\n3 2\n1\n0\n2\n0\n3\n0\n",
    );
    assert_eq!(mixture("m.npz array.mtx --labels others.txt").0, expected);
    folder.text("rows.csv", "1,0\n0,3\n2,0\n");
    assert_eq!(mixture("m.npz rows.csv --labels others.txt").0, expected);
    // Data of another order are refused, not cut.
    folder.text("cube.tns", "1 1 1 1\n3 1 1 2\n2 2 1 3\n");
    folder.refuses(
        "
        1 | transform m.npz cube.tns --labels others.txt --output o.npz | cube.tns | 3 x 2 x 1
        1 | fit plsa d.mtx --rank 1 --labels five.txt --output o.npz | 5 lines
        1 | transform m.npz new.mtx --labels short.txt --output o.npz | 2 indices along dimension 0
        2 | fit plsa d.mtx --rank 1 --labels none --output o.npz | first-column | a file
    ",
    );

    // One side alone.
    folder.text("named.csv", ",x,y\nsea,2,0\nship,0,3\nsky,0,0\nsun,1,0\n");
    let (found, told) = mixture("bare.npz named.csv --labels first-column");
    assert_eq!(found, expected);
    assert!(
        told.contains("the model has no names along dimension 0"),
        "{told}"
    );
    let (_, told) = mixture("m.npz places.tns --shape 4x2");
    assert!(
        told.contains("the data have no names along dimension 0"),
        "{told}"
    );

    // A name twice.
    folder.text("twice.csv", ",x,y\nsun,2,0\nship,0,3\nsun,0,1\nsea,1,0\n");
    let told = folder.run("fit plsa twice.csv --labels first-column --rank 1 --output w.npz");
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(told.contains("`sun` occurs more than once"), "{told}");
    folder.ok("transform w.npz twice.csv --labels first-column --output o.npz --quiet");
    for line in ["w.npz named.csv", "m.npz twice.csv"] {
        let line = format!("transform {line} --labels first-column --output o.npz");
        folder.fails(1, &line, &["`sun` occurs more than once"]);
    }
}

/// Numbers are one name however they are written, but only where all names are numbers: words that a number could be read from stay apart.
#[test]
fn names_are_numbers_where_all_are() {
    let folder = Folder::new();
    folder.text(
        "words.csv",
        "7,x,5\n07,x,1\n07,y,4\ninf,y,3\ninfinity,z,2\n7,z,6\n",
    );
    folder.ok("fit plsa words.csv --labels entries --rank 2 --seed 1 --output w.npz --quiet");
    folder.text("same.csv", "infinity,x,2\n07,x,1\n");
    folder.ok("transform w.npz same.csv --labels entries --output t.npz --quiet");
    folder.text("same.tns", "1 1 1\n4 1 2\n");
    folder.ok("transform w.npz same.tns --shape 4x1 --output u.npz --quiet");
    assert_eq!(
        folder.model("w.npz").metadata["names"]["0"],
        json!(["07", "7", "inf", "infinity"])
    );
    let mixture = |file: &str| folder.model(file).arrays["mixture"].values.clone();
    assert_eq!(mixture("t.npz"), mixture("u.npz"));
}

/// What has no counts, or numbers rows, is said by a fit.
#[test]
fn fits_say_what_has_no_meaning() {
    let folder = Folder::new();
    let rows: String = (0..8)
        .map(|i| format!("{},{},1\n", 1001 + 3 * i, i % 3))
        .collect();
    folder.text("ids.csv", &format!("doc_id,sea,ship\n{rows}"));
    folder.text("empty.csv", "3,0,1\n2,0,4\n");
    let told = |line: &str| {
        let line = format!("fit {line} --rank 1 --max-iter 2 --output m.npz");
        String::from_utf8(folder.run(&line).stderr).unwrap()
    };
    assert!(told("plca ids.csv").contains("`doc_id`, grow from row to row"));
    assert!(!told("plca ids.csv --labels first-column").contains("from row to row"));
    let falling: String = (0..8)
        .map(|i| format!("{},1,{}\n", 900 - 7 * i, i))
        .collect();
    folder.text("falling.csv", &format!("nm,a,b\n{falling}"));
    assert!(told("plca falling.csv").contains("`nm`, fall from row to row"));
    let none = "nothing above 0";
    assert!(
        told("plsa empty.csv").contains(&format!("observations [1] along dimension 1 have {none}"))
    );
    assert!(!told("plsa empty.csv --given 0").contains(none));
    folder.text("named.csv", ",sea,ship\nx,3,0\ny,2,0\n");
    assert!(told("plsa named.csv --labels first-column").contains("observations `ship` along"));
    // A mixture of nothing has no meaning; the activations of silence are 0.
    for (model, said) in [("plsa", true), ("nmf-kl", false)] {
        folder.text("full.csv", "3,1\n2,4\n");
        folder.ok(&format!(
            "fit {model} full.csv --rank 1 --output f.npz --quiet"
        ));
        let line = "transform f.npz empty.csv --output t.npz";
        let told = String::from_utf8(folder.run(line).stderr).unwrap();
        assert_eq!(told.contains(none), said, "{told}");
    }
}

/// Beside names of rows the first line is one of names where its first cell is empty, or where words are more than numbers.
#[test]
fn first_lines_beside_names_of_rows() {
    let folder = Folder::new();
    let columns = |first: &str| {
        folder.text("v.csv", &format!("{first}\nr1,1,2,0\nr2,3,0,1\n"));
        folder.ok(
            "fit plca v.csv --labels first-column --rank 1 --max-iter 2 --output m.npz --quiet",
        );
        folder.model("m.npz").metadata["names"]["1"].clone()
    };
    assert_eq!(
        columns("doc,Müller,1848,king"),
        json!(["Müller", "1848", "king"])
    );
    assert_eq!(columns(",4000,3930,3860"), json!(["4000", "3930", "3860"]));
    // Three numbers beside a word may be data, also where cells are missing.
    assert_eq!(columns("r0,3,2,1"), json!(null));
    folder.text("v.csv", "r0,NA,NA,1\nr1,1,2,0\n");
    folder.refuses("1 | fit plca v.csv --labels first-column --rank 1 --output m.npz | NA");
    folder.text(
        "axis.csv",
        "Wavenumber,4000,3930,3860,3790\nr1,1,2,0,1\nr2,3,0,1,1\n",
    );
    let line = "fit plca axis.csv --labels first-column --rank 1 --max-iter 2 --output m.npz";
    let told = String::from_utf8(folder.run(line).stderr).unwrap();
    assert!(
        told.contains("its numbers fall from 4000 to 3790"),
        "{told}"
    );
}

#[test]
fn new_samples_have_the_features_of_the_fit() {
    let folder = Folder::new();
    folder.text("v.svmlight", "1 0:5 1:1\n1 2:4 3:2\n1 1:3 2:1\n");
    folder.text("new.svmlight", "1 1:3 2:1\n1 2:6 3:3\n");
    folder.text("new.csv", "0,3,1,0\n0,0,6,3\n");
    folder.ok("fit plsa v.svmlight --given 0 --rank 2 --output m.npz");
    folder.ok("transform m.npz new.svmlight --output a.npz");
    folder.ok("transform m.npz new.csv --output b.npz");
    assert_eq!(folder.model("a.npz").arrays, folder.model("b.npz").arrays);
    // A file that begins at 1 with a model of one that does.
    folder.text("one.svmlight", "1 1:5 2:1\n1 3:4 4:2\n1 2:3 3:1\n");
    folder.ok("fit plsa one.svmlight --given 0 --rank 2 --output one.npz");
    assert_eq!(folder.model("one.npz").arrays, folder.model("m.npz").arrays);
    folder.ok("transform one.npz one.svmlight --output c.npz");
    folder.refuses("1 | transform one.npz v.svmlight --output o.npz | v.svmlight: line 1: index 0 is below 1, where the features begin; --first-index");
    folder.ok("transform one.npz new.svmlight --first-index 0 --output d.npz");
    assert_eq!(folder.model("d.npz").arrays, folder.model("a.npz").arrays);
    // A model of another format does not say where features begin.
    folder.text("v.csv", "5,1,0,0\n0,0,4,2\n0,3,1,0\n");
    folder.ok("fit plsa v.csv --given 0 --rank 2 --output m.npz");
    let said = folder.told("transform m.npz new.svmlight --output o.npz");
    assert!(
        said.contains("they are taken to begin at 1; --first-index 0 if"),
        "{said}"
    );
    folder.refuses(
        "2 | fit plsa v.svmlight --given 0 --first-index 2 --rank 2 --output o.npz | --first-index",
    );
}

#[test]
fn counts_in_the_place_of_names_are_warned_of() {
    let folder = Folder::new();
    let fit = "fit plsa v.csv --labels first-column --given 0 --rank 2 --output o.npz";
    folder.text("v.csv", "and,sea,ship\n3,1,5\n2,4,0\n3,1,1\n");
    let warned =
        "the first column is taken for names of rows, and holds numbers of which some occur again";
    assert!(folder.told(fit).contains(warned), "{}", folder.told(fit));
    // Numbers that differ may be names.
    folder.text("v.csv", "id,sea,ship\n3,1,5\n2,4,0\n7,1,1\n");
    assert!(!folder.told(fit).contains(warned), "{}", folder.told(fit));
}

#[test]
fn tables_of_other_programs_are_explained() {
    let folder = Folder::new();
    folder.text("v.csv", "barn,came,1984\n3,1,5\n2,4,0\n");
    let fit = "fit plsa v.csv --given 0 --rank 1 --output o.npz";
    folder.refuses(&format!(
        "1 | {fit} | line 1 | `barn` is not a number | --header yes"
    ));
    folder.ok(&format!("{fit} --header yes"));
    // One word and numbers: the name of a row.
    folder.text("v.csv", "barn,3,1,5\ncame,2,4,0\n");
    folder.fails(1, fit, &["line 1", "--labels first-column"]);
    folder.text("v.csv", "barn,came\n3,\n,4\n");
    folder.fails(
        1,
        fit,
        &["entry [0, 1] is NaN, as an empty cell or `NA` is: write 0 if that is its value; --missing nan"],
    );
}

#[test]
fn rows_that_are_numbered_from_zero_are_warned_of() {
    let folder = Folder::new();
    let row = |i: usize| format!("{i},{},{}\n", i % 3 + 1, i * i % 5);
    let table = |rows: usize| {
        (0..rows)
            .map(row)
            .fold("doc_id,sea,ship\n".to_string(), |text, row| text + &row)
    };
    let said = |rows: usize| {
        folder.text("v.csv", &table(rows));
        folder.told("fit plsa v.csv --given 0 --rank 2 --output o.npz")
    };
    assert!(
        said(9).contains("the numbers of the first column, `doc_id`, grow from row to row"),
        "{}",
        said(9)
    );
    // Too few to tell by the numbers, but not by their name.
    assert!(
        said(5).contains("the first column, `doc_id`, is taken for data"),
        "{}",
        said(5)
    );
    folder.text("v.csv", &table(5).replace("doc_id", "width"));
    let width = folder.told("fit plsa v.csv --given 0 --rank 2 --output o.npz");
    assert!(!width.contains("the first column"), "{width}");
}

/// Programs write as many words as the last that occurs.
#[test]
fn new_documents_may_lack_the_last_words() {
    let folder = Folder::new();
    folder.text("words.txt", "sea\nship\nwind\nrain\n");
    let head = "%%MatrixMarket matrix coordinate real general\n";
    folder.text(
        "v.mm",
        &format!("{head}3 4 6\n1 1 5\n1 2 2\n2 3 4\n2 4 1\n3 2 1\n3 4 3\n"),
    );
    folder.text("new.mm", &format!("{head}2 2 3\n1 1 3\n1 2 1\n2 2 6\n"));
    folder.text("wide.mm", &format!("{head}2 4 3\n1 1 3\n1 2 1\n2 2 6\n"));
    folder.text("docword.new.txt", "2\n2\n3\n1 1 3\n1 2 1\n2 2 6\n");
    folder.text("new.ldac", "2 0:3 1:1\n1 1:6\n");
    for labels in ["", "--labels words.txt"] {
        folder.ok(&format!(
            "fit plsa v.mm --given 0 --rank 2 {labels} --output m.npz"
        ));
        folder.ok(&format!("transform m.npz wide.mm {labels} --output w.npz"));
        for data in ["new.mm", "docword.new.txt", "new.ldac"] {
            let out = folder.run(&format!("transform m.npz {data} {labels} --output n.npz"));
            let said = String::from_utf8(out.stderr).unwrap();
            assert_eq!(out.status.code(), Some(0), "{said}");
            let told =
                said.contains("the data have 2 of the 4 indices of the model along dimension 1");
            assert_eq!(told, data == "new.mm", "{said}");
            assert_eq!(folder.model("n.npz").arrays, folder.model("w.npz").arrays);
        }
    }
    // More words than the model has are none of its.
    folder.text("docword.more.txt", "1\n5\n1\n1 5 3\n");
    folder.refuses("1 | transform m.npz docword.more.txt --output o.npz | docword.more.txt: the data are 1 x 5, expected any x 4");
    // A list with new words behind those of the model.
    folder.text("more.txt", "sea\nship\nwind\nrain\nsnow\nhail\n");
    folder.text("more.ldac", "3 0:3 1:1 4:2\n");
    folder.text("less.ldac", "2 0:3 1:1\n");
    let said = folder.told("transform m.npz more.ldac --labels more.txt --output n.npz");
    assert!(said.contains("2 of 6 were left out"), "{said}");
    folder.ok("transform m.npz less.ldac --labels words.txt --output w.npz");
    assert_eq!(
        folder.model("n.npz").arrays["mixture"],
        folder.model("w.npz").arrays["mixture"]
    );
}
