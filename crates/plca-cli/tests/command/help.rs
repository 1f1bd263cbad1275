//! The help of every model: one page, of what it takes and nothing else.

use std::collections::BTreeSet;

use crate::Folder;

/// The models that the command names.
pub(crate) fn models(folder: &Folder) -> Vec<String> {
    let help = folder.ok("fit --help");
    let known = help.split("Possible values:").nth(1).unwrap();
    let known = known.lines().skip(1);
    let known = known.take_while(|line| !line.trim().is_empty());
    let known = known.filter_map(|line| line.trim().strip_prefix("- "));
    known
        .map(|line| line.split(':').next().unwrap().to_string())
        .collect()
}

/// The options that a page explains, at the beginning of a line.
fn options(page: &str) -> BTreeSet<String> {
    let words = page.lines().filter_map(|line| {
        line.split_whitespace()
            .find(|word| !word.starts_with("-k") && !word.starts_with("-o"))
    });
    let long = words.filter(|word| word.starts_with("--"));
    long.map(str::to_string).collect()
}

#[test]
fn a_model_has_one_page() {
    let folder = Folder::new();
    let models = models(&folder);
    assert_eq!(models.len(), 12);
    let switched = [
        "nmf --loss l2",
        "plca --method vb",
        "plsa --method=vb",
        "skellam-cp --method vb",
        "siskellam --method vb",
        "plsa-vb",
        "ntf-l2",
    ];
    for model in models.iter().map(String::as_str).chain(switched) {
        let page = folder.ok(&format!("fit {model} --help"));
        assert_eq!(page, folder.ok(&format!("fit -h {model}")));
        let lines: Vec<&str> = page.lines().collect();
        assert!(lines.len() <= 60, "{model}: {} lines\n{page}", lines.len());
        for line in lines {
            assert!(line.chars().count() <= 100, "{model}: {line}");
        }
        for group in [
            "Model:",
            "Data:",
            "Start:",
            "Solver:",
            "Stopping:",
            "Output:",
            "Example:",
        ] {
            assert!(page.contains(group), "{model}: {group}\n{page}");
        }
        assert!(page.contains("[default: 1000]"), "{page}");
    }
}

/// What one page has and another has not is refused there, and what a page has is not.
#[test]
fn a_page_has_the_options_of_its_model_alone() {
    let folder = Folder::with_counts();
    let models = models(&folder);
    let page = |model: &String| folder.ok(&format!("fit {model} --help"));
    let taken: Vec<BTreeSet<String>> = models.iter().map(|m| options(&page(m))).collect();
    let all: BTreeSet<&String> = taken.iter().flatten().collect();
    assert!(all.len() > 50, "{all:?}");
    let values = |option: &str| match option {
        "--mirror" | "--real-data" | "--no-normalise" | "--temper-prior" | "--json" | "--quiet" => {
            ""
        }
        "--kernel" | "--shape" => "2x2",
        "--anneal" | "--online" => ".6,2",
        "--header" => "no",
        "--delimiter" => ";",
        "--labels" => "first-column",
        "--support" | "--positions" => "valid",
        "--likelihood" => "literal",
        "--missing" => "nan",
        "--missing-method" => "imputation",
        "--seeding" => "random",
        "--solver" => "em",
        "--precision" => "f64",
        "--update" => "sequential",
        _ => "1",
    };
    for (model, taken) in models.iter().zip(&taken) {
        // Every option is of the whole: an unknown one would be refused otherwise.
        for option in &all {
            let needed = match option.as_str() {
                "--passes" | "--local" => "--online .6,2",
                "--checkpoint" => "--checkpoint-every 1",
                "--checkpoint-every" => "--checkpoint c.npz",
                "--output" => "",
                _ => "--output o.npz",
            };
            let output = if needed.contains("--output") || *option == "--output" {
                ""
            } else {
                "--output o.npz"
            };
            let line = format!(
                "fit {model} absent.csv {option} {} {needed} {output}",
                values(option)
            );
            let out = folder.run(line.trim());
            let error = String::from_utf8(out.stderr).unwrap();
            let foreign = error.contains(&format!("{model} has no option"));
            // It has one method, which may be named.
            let known = taken.contains(*option) || (&**model, &***option) == ("lda", "--method");
            assert_eq!(foreign, !known, "{line}: {error}");
        }
    }
}

/// The example of a page runs as it stands where its data are there.
#[test]
fn examples_of_the_pages_run() {
    let folder = Folder::new();
    let rows: Vec<String> = (0..8)
        .map(|i| {
            let cells = (0..7).map(|j| ((i * i + 3 * j + i * j) % 11).to_string());
            cells.collect::<Vec<_>>().join(",")
        })
        .collect();
    folder.text("counts.csv", &rows.join("\n"));
    folder.text("numbers.csv", &rows.join("\n"));
    for model in models(&folder) {
        let page = folder.ok(&format!("fit {model} --help"));
        let example = page
            .lines()
            .find_map(|line| line.trim().strip_prefix("plca "));
        folder.ok(&format!("{} --quiet --max-iter 3", example.unwrap()));
        let in_files = match &*model {
            "nmf" => "nmf-kl",
            "lda" => "plsa-vb",
            model => model,
        };
        assert_eq!(folder.model("model.npz").metadata["model"], in_files);
    }
}

/// Options that some models lack say who has them.
#[test]
fn the_help_of_all_models_says_which_take_an_option() {
    let folder = Folder::new();
    let help = folder.ok("fit --help");
    for said in [
        "Models: tiplca",
        "Models: plca, plsa",
        "Not for: snmf-ding, kmeans, pntf",
    ] {
        assert!(help.contains(said), "{said}\n{help}");
    }
    // Of those that have a table of scores.
    let help = folder.ok("select --help");
    assert!(help.contains("Models: siplca\n"), "{help}");
    assert!(!help.contains("Models: siplca,"), "{help}");
    assert!(!help.contains("Not for: snmf-ding"), "{help}");
}
