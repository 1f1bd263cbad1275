//! `plca report`, the manual and the completions.

use plca_io::{Array, write_model};

use crate::Folder;

#[test]
fn a_page_shows_the_fit_and_needs_nothing_else() {
    let folder = Folder::with_counts();
    folder.text("words.txt", "sea\n<ship> & co\nwind\n");
    folder
        .ok("fit plca d.csv --rank 2 --restarts 2 --seed 7 --output m.npz --trace t.jsonl --quiet");
    folder.ok("report m.npz --labels words.txt --top 2 --trace t.jsonl --output r.html");
    let page = String::from_utf8(folder.bytes("r.html")).unwrap();
    let objective = folder.model("m.npz").metadata["objective"].to_string();
    for part in [
        "<!doctype html>",
        "prefers-color-scheme:dark",
        "Symmetric PLCA",
        &objective,
        "log_likelihood",
        "<td>restarts</td><td>2</td>",
        "<td>seed</td><td>7</td>",
        "<td>start 1</td>",
        "&lt;ship&gt; &amp; co",
        "<h2>weights</h2>",
        "<h2>factor_1 <span class=\"soft\">4 × 2</span></h2>",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    // Two components with two words each; a curve of each start, and of the other factor's components.
    assert_eq!(page.matches("title=\"").count(), 4, "{page}");
    assert_eq!(page.matches("<path ").count(), 4, "{page}");
    for outside in ["http", "src=", "<link", "<script", "NaN", "Infinity"] {
        assert!(!page.contains(outside), "{outside}\n{page}");
    }
    let largest = folder.ok("inspect m.npz --array factor_0 --top 1 --labels words.txt");
    let first = largest
        .split_whitespace()
        .nth(1)
        .unwrap()
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let at = page.find("<h2>factor_0").unwrap();
    let words = &page[at..];
    let shown = words.find("<span>").map(|at| &words[at + 6..]).unwrap();
    assert!(shown.starts_with(&first), "{first}: {shown}");
}

/// Kernels are pictures, signed ones in two colours; every model has a page.
#[test]
fn every_model_has_a_page() {
    let folder = Folder::new();
    folder.text("d.csv", "3,1,4,1,5\n1,5,9,2,6\n2,6,5,3,5\n8,9,7,9,3\n");
    for model in crate::help::models(&folder) {
        let kernel = if model.starts_with("si") || model == "tiplca" {
            "--kernel 3x3"
        } else {
            ""
        };
        folder.ok(&format!(
            "fit {model} d.csv --rank 2 {kernel} --max-iter 5 --quiet --output m.npz"
        ));
        folder.ok("report m.npz --output r.html");
        let page = String::from_utf8(folder.bytes("r.html")).unwrap();
        let drawn = if kernel.is_empty() {
            "<path "
        } else {
            "<rect "
        };
        assert!(
            page.contains(drawn) && !page.contains("NaN"),
            "{model}\n{page}"
        );
    }
}

#[test]
fn the_manual_and_completions_know_every_command() {
    let folder = Folder::new();
    let help = folder.ok("--help");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let manual = folder.ok("man");
    assert!(manual.contains(".TH plca 1"), "{manual}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let text = folder.ok(&format!("completions {shell}"));
        for name in ["fit", "transform", "compare", "refit", "report", "max-iter"] {
            assert!(text.contains(name), "{shell}: {name}");
        }
    }
    for name in ["fit", "transform", "compare"] {
        assert!(names.contains(&name), "{names:?}");
        let page = folder.ok(&format!("man {name}"));
        assert!(page.contains(&format!(".TH plca-{name} 1")), "{page}");
    }
}

/// A run that did not converge says so, and what to do; not where all iterations were asked for.
#[test]
fn a_run_that_is_cut_says_so() {
    let folder = Folder::with_counts();
    folder.ok("fit plca d.csv --rank 2 --output m.npz --quiet");
    for line in [
        "fit plca d.csv --rank 2 --max-iter 2 --output o.npz",
        "transform m.npz d.csv --tol 1e-300 --max-iter 2 --output o.npz",
    ] {
        let out = folder.run(line);
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(0));
        assert!(
            error.starts_with(
                "warning: --max-iter 2 ended the run before it converged: raise --max-iter"
            ),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
        let warnings = &folder.model("o.npz").metadata["warnings"];
        assert!(warnings[0].as_str().unwrap().contains("--max-iter 2"));
        assert!(folder.run(&format!("{line} --quiet")).stderr.is_empty());
    }
    for line in [
        "fit plca d.csv --rank 2 --tol 0 --max-iter 2 --output o.npz",
        "transform m.npz d.csv --tol 0 --max-iter 2 --output o.npz",
    ] {
        let out = folder.run(line);
        assert!(out.status.success() && out.stderr.is_empty(), "{line}");
    }
}

#[test]
fn empty_arrays_have_no_page() {
    let folder = Folder::with_counts();
    folder.ok("fit siplca d.csv --rank 2 --kernel 2x2 --max-iter 2 --tol 0 --output m.npz --quiet");
    let mut model = folder.model("m.npz");
    let empty = Array::new(vec![2, 2, 5, 0], vec![]);
    model.arrays.insert("kernels".into(), empty);
    write_model(folder.path("bad.npz"), &model, false).unwrap();
    let what = "`kernels` is empty, of shape [2, 2, 5, 0]";
    folder.fails(1, "report bad.npz --output r.html", &["bad.npz", what]);
    folder.fails(1, "compare m.npz bad.npz", &["bad.npz", what]);
}

/// The headings of the arrays whose entries have names on the page of a fit.
fn named(folder: &Folder, model: &str) -> Vec<String> {
    folder.ok(&format!(
        "fit {model} --max-iter 3 --tol 0 --quiet --output m.npz"
    ));
    folder.ok("report m.npz --labels words.txt --output r.html");
    let page = String::from_utf8(folder.bytes("r.html")).unwrap();
    let blocks = page.split("<h2>").filter(|part| part.contains(">sea<"));
    blocks
        .map(|part| part.split(['<', ' ']).next().unwrap().to_string())
        .collect()
}

/// Rows and columns are as many: names are those of the basis, or of the rows, whatever the sizes.
#[test]
fn labels_name_the_basis_or_the_rows() {
    let folder = Folder::new();
    folder.text("d.csv", "3,1,4\n1,5,9\n2,6,5\n");
    folder.text("words.txt", "sea\nship\nwind\n");
    for (model, expected) in [
        ("plca d.csv --rank 2", &["factor_0"][..]),
        ("plsa d.csv --rank 2", &["basis"]),
        ("plsa d.csv --rank 2 --given 0", &["basis"]),
        ("plsa-vb d.csv --rank 2", &["basis", "basis_shape"]),
        ("nmf-kl d.csv --rank 2", &["w"]),
        ("skellam d.csv --rank 2", &["atoms"]),
        ("skellam-vb d.csv --rank 2", &["atoms", "atoms_shape"]),
        ("skellam-cp d.csv --rank 2", &["atoms"]),
        ("skellam-cp d.csv --rank 2 --signed-mode 1", &["factor_0"]),
        ("snmf-ding d.csv --rank 2", &["basis"]),
        ("kmeans d.csv --rank 2", &["centres"]),
    ] {
        assert_eq!(named(&folder, model), expected, "{model}");
    }
    folder.ok("fit siplca d.csv --rank 2 --kernel 3x1 --max-iter 3 --tol 0 --output m.npz --quiet");
    folder.refuses("1 | report m.npz --labels words.txt --output no.html | words.txt | 3 lines");
}

/// A list of another length than the rows names what it fits.
#[test]
fn labels_name_what_they_fit() {
    let folder = Folder::new();
    folder.text("d.csv", "3,1,4\n1,5,9\n2,6,5\n1,1,1\n");
    folder.text("words.txt", "sea\nship\nwind\n\n");
    for (model, expected) in [
        ("plsa d.csv --rank 2 --given 0", &["basis"][..]),
        ("plca d.csv --rank 2", &["factor_1"]),
    ] {
        assert_eq!(named(&folder, model), expected, "{model}");
    }
}

/// Which models have signs does not follow from a shape; pictures keep the short axis; small numbers are no zeros.
#[test]
fn pages_show_what_is_there() {
    let folder = Folder::with_counts();
    folder.ok("fit siplca d.csv --rank 2 --kernel 3x2 --max-iter 3 --tol 0 --output m.npz --quiet");
    let page = |name: &str| {
        folder.ok(&format!("report {name} --output r.html"));
        String::from_utf8(folder.bytes("r.html")).unwrap()
    };
    let kernels = |page: &str| {
        page.split("<h2>")
            .find(|part| part.starts_with("kernels"))
            .map(str::to_string)
    };
    let drawn = kernels(&page("m.npz")).unwrap();
    assert!(
        !drawn.contains("<path") && drawn.contains("<rect"),
        "{drawn}"
    );
    let mut model = folder.model("m.npz");
    let long = Array::new(vec![2, 3, 2000], vec![1.0; 12000]);
    model.arrays.insert("kernels".into(), long);
    let small = Array::new(vec![2], vec![1.25e-9, 1.0 - 1.25e-9]);
    model.arrays.insert("weights".into(), small);
    write_model(folder.path("long.npz"), &model, false).unwrap();
    let page = page("long.npz");
    assert!(page.contains("0: 1.250e-9"), "{page}");
    let drawn = kernels(&page).unwrap();
    assert!(drawn.contains("viewBox=\"0 0 48 3\""), "{drawn}");
}

/// Nothing was there to converge, or nobody asked for more.
#[test]
fn a_run_without_a_choice_is_not_cut() {
    let folder = Folder::with_counts();
    folder.ok("fit plca d.csv --rank 2 --output m.npz --quiet");
    for line in [
        "fit plca d.csv --rank 2 --max-iter 0 --output o.npz",
        "transform m.npz d.csv --max-iter 0 --output o.npz",
        "fit plca d.csv --init m.npz --freeze weights,factor_0,factor_1 --max-iter 2 --output o.npz",
    ] {
        let out = folder.run(line);
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!((out.status.code(), error.as_str()), (Some(0), ""), "{line}");
    }
}

/// Of many runs it is said once.
#[test]
fn a_sweep_that_is_cut_says_so() {
    let folder = Folder::with_counts();
    for sweep in [
        "select plca d.csv --ranks 1..3 --criterion bic",
        "select siplca d.csv --ranks 1,2 --kernel 2x2",
        "select plca-vb d.csv --ranks 1,2",
        "select skellam-vb d.csv --ranks 1,2",
        "consensus plca d.csv --ranks 2 --restarts 4 --threshold 9 --output o.npz --runs kept",
        // From what was kept.
        "consensus plca d.csv --ranks 2 --restarts 4 --threshold 9 --output o.npz --runs kept",
    ] {
        let out = folder.run(&format!("{sweep} --max-iter 2 --tol 1e-300"));
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(0), "{sweep}: {error}");
        assert!(
            error.starts_with("warning: --max-iter 2 ended") && error.lines().count() == 1,
            "{sweep}: {error}"
        );
    }
    for sweep in [
        "select plca d.csv --ranks 1..3 --criterion bic --max-iter 2 --tol 0",
        "select plca d.csv --ranks 1..3 --criterion bic",
        "consensus plca d.csv --ranks 2 --restarts 4 --threshold 9 --output o.npz --max-iter 2 --tol 0",
    ] {
        let out = folder.run(sweep);
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!(
            (out.status.code(), error.as_str()),
            (Some(0), ""),
            "{sweep}"
        );
    }
}
