//! `plca report`, the manual and the completions.

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
            error.starts_with("warning: --max-iter 2 ended the run before it converged: raise it"),
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
