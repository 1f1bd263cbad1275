//! The commands of the README and of the documentation run as they stand.

use std::io::Write;
use std::path::Path;

use crate::Folder;

/// A block of code of a page.
struct Block {
    /// Page and line.
    place: String,
    language: String,
    text: String,
    /// Why the block is not run, as a comment above it says.
    not_run: Option<String>,
}

const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The README and everything below `docs`, by their paths from the root.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_string()];
    for folder in ["docs", "docs/models"] {
        let files = std::fs::read_dir(Path::new(PAGES).join(folder)).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let names = names.filter(|name| name.ends_with(".md"));
        pages.extend(names.map(|name| format!("{folder}/{name}")));
    }
    pages.sort();
    pages
}

fn blocks(page: &str) -> Vec<Block> {
    let content = std::fs::read_to_string(Path::new(PAGES).join(page)).unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    let mut above = "";
    for (n, line) in (1..).zip(content.lines()) {
        match (line.trim_start().strip_prefix("```"), open) {
            (Some(_), true) => open = false,
            (Some(language), false) => {
                open = true;
                let why = above.strip_prefix("<!-- not run: ");
                blocks.push(Block {
                    place: format!("{page}:{n}"),
                    language: language.into(),
                    text: String::new(),
                    not_run: why
                        .and_then(|why| why.strip_suffix(" -->"))
                        .map(str::to_owned),
                });
            }
            (None, true) => blocks.last_mut().unwrap().text += &format!("{line}\n"),
            (None, false) => {}
        }
        above = line;
    }
    assert!(!open, "{page}: a block does not end");
    blocks
}

/// Every block is run, by a test that is named here, or says why it is not.
#[test]
fn every_block_of_the_documentation_is_run() {
    let doctests =
        std::fs::read_to_string(Path::new(PAGES).join("crates/plca/src/lib.rs")).unwrap();
    let mut not_run = Vec::new();
    for page in pages() {
        for Block {
            place,
            language,
            text,
            not_run: why,
        } in blocks(&page)
        {
            if let Some(why) = why {
                assert!(!why.trim().is_empty(), "{place}: why?");
                not_run.push(place);
                continue;
            }
            match language.as_str() {
                // `the_commands_of_pages_run`
                "sh" => {
                    let mut lines = text.lines().filter(|line| !line.is_empty());
                    let other = lines.find(|line| !line.starts_with("plca "));
                    assert_eq!(
                        other, None,
                        "{place}: no command `plca`, and no word of why it is not run"
                    );
                }
                // Doctests of the crate `plca`.
                "rust" => {
                    let line = format!("include_str!(\"../../../{page}\")");
                    assert!(
                        doctests.contains(&line),
                        "{place}: not among the doctests of the crate plca"
                    );
                }
                // `python/tests/test_pages.py`
                "python" => {}
                // `xtask tidy`
                "math" => {}
                "text" => {}
                other => panic!("{place}: `{other}` is of no language that is known here"),
            }
        }
    }
    assert!(
        not_run.len() <= 10,
        "{} blocks are not run: {not_run:?}",
        not_run.len()
    );
}

/// Signs of a few cells, now and then, on a floor.
fn scattered(rows: usize, columns: usize, sign: &[(usize, usize)]) -> Vec<f64> {
    let mut values = vec![0.0; rows * columns];
    for n in 0..9 {
        let (y, x) = (n * 17 % (rows - 9), n * 23 % (columns - 9));
        for (at, (dy, dx)) in sign.iter().enumerate() {
            values[(y + dy) * columns + x + dx] += (5 + (at + n) % 3) as f64;
        }
    }
    values
}

/// What a reader has: the data of the examples, and files of the names and kinds that pages speak of.
fn reader() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("examples/data")).unwrap();
    for file in std::fs::read_dir(Path::new(PAGES).join("examples/data")).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        std::fs::copy(file.path(), folder.path(&format!("examples/data/{name}"))).unwrap();
    }
    let values: Vec<f64> = (0..60).map(|i| f64::from(i * i % 7)).collect();
    folder.npy("V.npy", &[3, 4, 5], &values);
    let cells = |n: usize| (0..n).map(|i| format!("{} {} {}\n", i % 9 + 1, i % 8 + 1, i % 5 + 1));
    let matrix = |n: usize| {
        let head = format!("%%MatrixMarket matrix coordinate integer general\n9 8 {n}\n");
        cells(n).fold(head, |text, cell| text + &cell)
    };
    let counts = std::fs::File::create(folder.path("counts.mtx.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(counts, flate2::Compression::fast());
    packed.write_all(matrix(72).as_bytes()).unwrap();
    packed.finish().unwrap();
    folder.text("new.mtx", &matrix(30));
    folder.text("ratings.tns", &cells(40).collect::<String>());
    let signed = "1,-2,3,5\n-4,6,0,-1\n2,2,-7,1\n";
    for name in ["signed.csv", "counts.csv", "new.csv", "samples.csv"] {
        folder.text(name, signed);
    }
    let signed: Vec<f64> = (0..15).map(|i| f64::from(i * 7 % 11) - 5.5).collect();
    folder.npy("v.npy", &[3, 5], &signed);

    let chord = [(0, 0), (0, 1), (3, 0), (3, 1), (7, 0), (7, 2)];
    folder.npy("S.npy", &[64, 100], &scattered(64, 100, &chord));
    let plus: Vec<_> = (0..7).flat_map(|i| [(i, 3), (3, i)]).collect();
    folder.npy("P.npy", &[40, 40], &scattered(40, 40, &plus));
    let cells = (0..2000).map(|n| format!("{} {} {}\n", n * n % 37 + 1, n % 80 + 1, n % 3 + 1));
    let head = "%%MatrixMarket matrix coordinate integer general\n37 80 2000\n";
    let counts = cells.fold(String::from(head), |text, cell| text + &cell);
    folder.text("counts.mtx", &counts);
    folder.text("documents.mtx", &counts);
    std::fs::create_dir(folder.path("days")).unwrap();
    for day in ["1", "2", "3"] {
        folder.text(&format!("days/{day}.mtx"), &counts);
    }
    folder
}

#[test]
fn the_commands_of_pages_run() {
    let mut run = 0;
    for page in pages() {
        let folder = reader();
        for block in blocks(&page) {
            if block.language != "sh" || block.not_run.is_some() {
                continue;
            }
            for line in block.text.lines() {
                let command = line.strip_prefix("plca ").unwrap_or_default();
                folder.ok(command.split(" #").next().unwrap());
                run += 1;
            }
        }
        if page == "README.md" {
            for output in [
                "model.npz",
                "topics.npz",
                "m.npz",
                "signed.npz",
                "mixtures.npz",
            ] {
                assert!(!folder.model(output).arrays.is_empty());
            }
        }
    }
    assert!(run >= 60, "{run} commands");
}

/// Draws are whole counts of the asked number, equal for equal seeds, and near the model.
#[test]
fn samples_are_counts_of_the_model() {
    let folder = Folder::with_counts();
    for model in ["plca", "plsa", "nmf-kl"] {
        folder.ok(&format!(
            "fit {model} d.csv --rank 2 --output o.npz --quiet"
        ));
        folder.ok("reconstruct o.npz --output r.npy");
        for (name, seed) in [("a.npy", 1), ("b.npy", 1), ("c.npy", 2)] {
            folder.ok(&format!(
                "sample o.npz --draws 20000 --seed {seed} --output {name}"
            ));
        }
        assert!(folder.bytes("a.npy") == folder.bytes("b.npy"));
        assert!(folder.bytes("a.npy") != folder.bytes("c.npy"));
        let read = |name| match plca_io::read_data::<f64>(&folder.path(name), None).unwrap() {
            plca_io::DataFile::Dense(array) => array.values,
            _ => panic!("a dense array was written"),
        };
        let (sample, model) = (read("a.npy"), read("r.npy"));
        assert_eq!(sample.iter().sum::<f64>(), 20000.0);
        let total: f64 = model.iter().sum();
        for (&n, p) in sample.iter().zip(model.iter().map(|x| x / total)) {
            assert!(n.fract() == 0.0);
            // Six standard errors.
            assert!(
                (n - 20000.0 * p).abs() <= 6.0 * (20000.0 * p).sqrt().max(1.0),
                "{n} {p}"
            );
        }
    }
    folder.ok("sample o.npz --draws 0 --output z.npy");
}

/// Models whose numbers are no model, each with its file, block, place and value.
#[test]
fn hostile_models_are_refused() {
    type Block<'a> = (&'a str, &'a [usize], &'a [f64]);
    type Case<'a> = (&'a [Block<'a>], serde_json::Value, &'a [&'a str]);
    let folder = Folder::with_counts();
    let shape = [3, 4];
    let plca = serde_json::json!({ "model": "plca", "data": { "shape": shape, "total": 1.0 } });
    let nmf = serde_json::json!({ "model": "nmf-kl", "data": { "shape": shape } });
    let bare = |model: &str| serde_json::json!({ "model": model });
    let one: Block<'_> = ("weights", &[1], &[1.0]);
    let w: Block<'_> = ("w", &[3, 1], &[1.0; 3]);
    #[rustfmt::skip]
    let cases: [Case<'_>; 9] = [
        (&[("w", &[3, 1], &[1.0, -2.0, 1.0]), ("h", &[1, 4], &[1.0; 4])], nmf.clone(), &["`w`", "-2", "row 1, column 0"]),
        (&[w, ("h", &[1, 4], &[1.0, f64::NAN, 1.0, 1.0])], nmf.clone(), &["`h`", "NaN", "row 0, column 1"]),
        (&[w, ("h", &[2, 4], &[1.0; 8])], nmf.clone(), &["`h` is", "2x4"]),
        (&[w], nmf, &["`h`"]),
        (&[one], bare("plca"), &["shape"]),
        (&[one, ("factor_0", &[3, 1], &[1.0; 3])], plca.clone(), &["`factor_1`"]),
        (&[one], bare("nothing"), &["nothing"]),
        (&[one], serde_json::Value::Null, &[]),
        (&[("weights", &[0], &[]), ("factor_0", &[3, 0], &[]), ("factor_1", &[4, 0], &[])], plca, &["empty"]),
    ];
    let all = |parts: &[&str]| {
        for line in [
            "reconstruct m.npz --output a.npy",
            "sample m.npz --draws 5 --output a.npy",
            "transform m.npz d.csv --output n.npz",
        ] {
            folder.fails(1, line, &[&["m.npz"], parts].concat());
        }
    };
    for (blocks, metadata, parts) in cases {
        folder.arrays("m.npz", blocks);
        let mut file = folder.model("m.npz");
        file.metadata = metadata;
        plca_io::write_model(folder.path("m.npz"), &file, false).unwrap();
        all(parts);
    }
    folder.text("m.npz", "PK");
    all(&[]);
}
