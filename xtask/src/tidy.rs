//! `tidy`: the rules that the compiler does not know.
//!
//! Layers (internal normal and build dependencies), packages that the core must not use, the one file that may hold
//! code the compiler cannot check, manifests, paths of somebody's machine in tracked text, found cases that no test reads, words
//! that the glossary replaces, formulas that cannot be rendered, a prelude that grows, examples of a model
//! crate that need another crate, files that import one another in a circle, and what is too large.

mod api;
mod formulas;
mod shape;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Result, root};

/// Internal dependencies that a crate of the core may have.
const LAYERS: &[(&str, &[&str])] = &[
    ("plca-tensor", &["plca-dist"]),
    ("plca-dist", &[]),
    ("plca-fit", &["plca-tensor", "plca-dist", "plca-priors"]),
    ("plca-priors", &["plca-tensor", "plca-dist"]),
    (
        "plca-em",
        &["plca-tensor", "plca-dist", "plca-fit", "plca-priors"],
    ),
    (
        "skellam-snmf",
        &["plca-tensor", "plca-dist", "plca-fit", "plca-priors"],
    ),
    (
        "pntf-l2",
        &["plca-tensor", "plca-dist", "plca-priors", "plca-fit"],
    ),
];

/// Packages that a crate is built from at most, itself among them, where no feature is asked for: what a user who picks one crate compiles.
const PACKAGES: &[(&str, usize)] = &[
    ("plca-tensor", 33),
    ("plca-em", 40),
    ("skellam-snmf", 39),
    ("pntf-l2", 39),
    // The command as it is by default, eleven of them for the decoder of sounds.
    ("plca-cli", 157),
];

/// Internal dependencies of the libraries at the rim, which may use what is [`FORBIDDEN`] in the core.
const RIM_LIBRARIES: &[(&str, &[&str])] = &[
    ("plca-mpi", &["plca-cli"]),
    ("plca-io", &["plca-fit", "plca-tensor"]),
    ("plca-media", &["plca-io", "plca-tensor"]),
    (
        "plca-run",
        &[
            "plca-dist",
            "plca-em",
            "plca-fit",
            "plca-io",
            "plca-priors",
            "plca-tensor",
            "pntf-l2",
            "skellam-snmf",
        ],
    ),
    (
        "plca",
        &[
            "plca-dist",
            "plca-em",
            "plca-fit",
            "plca-io",
            "plca-media",
            "plca-priors",
            "plca-tensor",
            "pntf-l2",
            "skellam-snmf",
        ],
    ),
];

/// What is built from all of these may use every library; nothing knows it.
pub(crate) const RIM: &[&str] = &[
    "plca-cli",
    "plca-benches",
    "plca-extend",
    "plca-figures",
    "plca-fuzz",
    "plca-python",
    "xtask",
];

/// Files, clocks, pictures, sound, terminals, networks: never in the core.
const FORBIDDEN: &[&str] = &[
    "chrono",
    "clap",
    "claxon",
    "console",
    "crossterm",
    "csv",
    "ctrlc",
    "env_logger",
    "flate2",
    "hound",
    "image",
    "indicatif",
    "kuva",
    "memmap2",
    "npyz",
    "plotters",
    "png",
    "reqwest",
    "rodio",
    "safetensors",
    "serde_json",
    "symphonia",
    "tempfile",
    "time",
    "tokio",
    "toml",
    "ureq",
    "walkdir",
    "zip",
];

/// The same in the standard library.
const FORBIDDEN_PATHS: &[&str] = &[
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::time",
];

/// The one file of the core that reads the environment and starts programs, for tests alone: the instruction set of a process.
const ENVIRONMENT_ALLOWED: &str = "crates/plca-dist/src/simd.rs";

/// The file of the core that knows of time: the limit of a run.
const TIME_ALLOWED: &str = "crates/plca-fit/src/stop.rs";

/// The module of hand-written tiles.
const UNCHECKED_ALLOWED: &str = "crates/plca-tensor/src/kernel/tiles.rs";

// In two parts, so that this file passes its own checks.
const UNCHECKED: &str = concat!("un", "safe");
const MACHINE_PATHS: [&str; 3] = [
    concat!("/t", "mp/"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
];

fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Everything wrong with the packages of `cargo metadata --no-deps`.
fn packages(metadata: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let all: Vec<&Value> = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let internal: Vec<&str> = all.iter().map(|p| field(p, "name")).collect();
    for package in &all {
        let name = field(package, "name");
        let edges_of = |table: &[(&str, &'static [&str])]| {
            let row = table.iter().find(|l| l.0 == name);
            row.map(|l| l.1)
        };
        let core = edges_of(LAYERS);
        let allowed = core.or(edges_of(RIM_LIBRARIES));
        if allowed.is_none() && !RIM.contains(&name) {
            wrong.push(format!(
                "{name}: not in the table of layers in xtask/src/tidy.rs"
            ));
        }
        if field(package, "license").is_empty() && field(package, "license_file").is_empty() {
            wrong.push(format!("{name}: no licence"));
        }
        let description = field(package, "description").trim();
        if description.is_empty() || description == "TBD" {
            wrong.push(format!("{name}: no description"));
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // Tests may reach across the layers.
            if field(dependency, "kind") == "dev" {
                continue;
            }
            let to = field(dependency, "name");
            let refused = match allowed {
                Some(edges) if internal.contains(&to) => !edges.contains(&to),
                Some(_) => core.is_some() && FORBIDDEN.contains(&to),
                None => RIM.contains(&to),
            };
            if refused {
                wrong.push(format!("{name}: must not depend on {to}"));
            }
            let exact = format!("={}", field(package, "version"));
            if internal.contains(&to) && field(dependency, "req") != exact {
                wrong.push(format!("{name}: must depend on {to} in version {exact}"));
            }
        }
    }
    wrong
}

/// The different packages in what `cargo tree --prefix none` prints.
fn count_packages(tree: &str) -> usize {
    let package = |line: &str| {
        let mut words = line.split_whitespace();
        words
            .next()
            .zip(words.next())
            .map(|(name, version)| format!("{name} {version}"))
    };
    let packages: BTreeSet<String> = tree.lines().filter_map(package).collect();
    packages.len()
}

/// Crates that are built from too much.
fn heavy(root: &Path, cargo: &str) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (name, most) in PACKAGES {
        let what = [
            "tree",
            "--locked",
            "--no-default-features",
            "--edges",
            "normal",
            "--prefix",
            "none",
        ];
        let tree = output(root, cargo, &[&what[..], &["--package", name]].concat())?;
        let count = count_packages(&String::from_utf8(tree)?);
        if count > *most {
            wrong.push(format!(
                "{name}: built from {count} packages without features, at most {most}"
            ));
        }
    }
    Ok(wrong)
}

/// Folders of the libraries whose own tests are not built.
fn untested(metadata: &Value) -> Vec<PathBuf> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.filter_map(|p| p["targets"].as_array()).flatten();
    (targets.filter(|t| t["kind"][0] == "lib" && t["test"] == false))
        .filter_map(|t| Some(Path::new(t["src_path"].as_str()?).parent()?.to_path_buf()))
        .collect()
}

/// Whether a source has tests that its manifest leaves out.
fn has_idle_tests(path: &Path, content: &str, untested: &[PathBuf]) -> bool {
    untested.iter().any(|folder| path.starts_with(folder))
        && content.lines().any(|l| l.trim() == "#[cfg(test)]")
}

/// Whether a manifest takes the workspace's lints.
fn inherits_lints(manifest: &str) -> bool {
    let mut section = "";
    manifest.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            section = line;
        }
        let spaceless: String = line.split_whitespace().collect();
        (section == "[lints]" && spaceless == "workspace=true")
            || spaceless == "lints.workspace=true"
    })
}

/// Lines of a source whose code, comments aside, has the keyword.
fn unchecked_lines(source: &str) -> Vec<usize> {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let has = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        code.match_indices(UNCHECKED).any(|(at, word)| {
            !code[..at].ends_with(part_of_name)
                && !code[at + word.len()..].starts_with(part_of_name)
        })
    };
    (1..)
        .zip(source.lines())
        .filter(|(_, l)| has(l))
        .map(|(n, _)| n)
        .collect()
}

/// Whether a file is source, not a test, of a crate of the core.
fn in_core(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates")
        && parts
            .next()
            .is_some_and(|name| LAYERS.iter().any(|l| l.0 == name))
        && parts.next() == Some("src")
}

/// Everything wrong with one tracked text file.
fn text(path: &str, content: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (n, line) in (1..).zip(content.lines()) {
        for word in MACHINE_PATHS.iter().filter(|w| line.contains(*w)) {
            wrong.push(format!("{path}:{n}: the machine path {word}"));
        }
    }
    if path.ends_with(".rs") && in_core(path) {
        for (n, line) in (1..).zip(content.lines()) {
            let code = line.split("//").next().unwrap_or_default();
            let allowed = |word: &str| match word {
                "std::env" | "std::process" => path == ENVIRONMENT_ALLOWED,
                "std::time" => path == TIME_ALLOWED,
                _ => false,
            };
            for word in (FORBIDDEN_PATHS.iter()).filter(|w| code.contains(**w) && !allowed(w)) {
                wrong.push(format!("{path}:{n}: {word} in the core"));
            }
        }
    }
    if path.ends_with(".rs") && path != UNCHECKED_ALLOWED {
        for n in unchecked_lines(content) {
            wrong.push(format!(
                "{path}:{n}: {UNCHECKED} code, allowed in {UNCHECKED_ALLOWED} alone"
            ));
        }
    }
    wrong
}

/// The words that the glossary replaces: those of the last columns of its tables.
fn replaced_words(glossary: &str) -> Vec<String> {
    let rows = glossary.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix('|')?.split('|').collect();
        cells.get(2).map(|cell| cell.trim())
    });
    let words = rows.filter(|cell| *cell != "not" && !cell.starts_with("---"));
    let words = words.flat_map(|cell| cell.split(','));
    let words = words.map(|word| word.trim().to_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

/// Documents, and doc comments of libraries. `None` for what is neither.
fn documentation<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    match path.strip_suffix(".rs") {
        Some(_) if path.contains("/src/") => {
            let line = line.trim_start();
            line.strip_prefix("///").or(line.strip_prefix("//!"))
        }
        None if path.ends_with(".md") => Some(line),
        _ => None,
    }
}

/// The prose of the documentation in a line.
fn prose(path: &str, line: &str) -> Option<String> {
    let text = documentation(path, line)?;
    // Every second part is code.
    Some(
        text.split('`')
            .step_by(2)
            .collect::<String>()
            .to_lowercase(),
    )
}

/// Words in the prose of a file that the glossary replaces.
fn replaced(path: &str, content: &str, words: &[String]) -> Vec<String> {
    const FREE: [&str; 3] = ["docs/GLOSSARY.md", "docs/EQUATIONS.md", "CHANGELOG.md"];
    if FREE.contains(&path) {
        return Vec::new();
    }
    let in_word = |c: char| c.is_alphanumeric();
    let lines = (1..).zip(content.lines());
    let found = lines.flat_map(|(n, line)| {
        let text = prose(path, line).unwrap_or_default();
        let stands = |word: &&String| {
            text.match_indices(word.as_str()).any(|(at, word)| {
                !text[..at].ends_with(in_word) && !text[at + word.len()..].starts_with(in_word)
            })
        };
        let words: Vec<_> = words.iter().filter(stands).collect();
        words.into_iter().map(move |word| {
            format!("{path}:{n}: \"{word}\", for which docs/GLOSSARY.md has another word")
        })
    });
    found.collect()
}

/// Where proptest reads the found cases of a source file: beside the folder above it that has a `lib.rs` or `main.rs`, or beside the file
/// where there is none.
fn found_cases(source: &str, tracked: &[&str]) -> PathBuf {
    const FOLDER: &str = "proptest-regressions";
    let source = Path::new(source);
    let is_root = |folder: &&Path| {
        let roots = ["lib.rs", "main.rs"].map(|file| folder.join(file));
        roots
            .iter()
            .any(|root| tracked.iter().any(|path| Path::new(path) == root))
    };
    let folder = source.ancestors().skip(1).find(is_root);
    match folder.and_then(|folder| Some((folder.parent()?, source.strip_prefix(folder).ok()?))) {
        Some((beside, name)) => beside.join(FOLDER).join(name).with_extension("txt"),
        None => source.with_extension(FOLDER),
    }
}

/// Found cases that no test would run.
fn stray_cases(tracked: &[&str]) -> Vec<String> {
    let are_cases = |path: &&&str| path.contains("proptest-regressions");
    let sources = tracked.iter().filter(|path| path.ends_with(".rs"));
    let read: Vec<PathBuf> = sources.map(|source| found_cases(source, tracked)).collect();
    let cases = tracked.iter().filter(are_cases);
    let strays = cases.filter(|path| !read.iter().any(|read| read == Path::new(path)));
    strays
        .map(|path| format!("{path}: proptest looks elsewhere for the cases of any source"))
        .collect()
}

pub(crate) fn output(root: &Path, program: &str, arguments: &[&str]) -> Result<Vec<u8>> {
    let line = format!("{program} {}", arguments.join(" "));
    let done = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|e| format!("cannot run `{line}`: {e}"))?;
    if !done.status.success() {
        let message = String::from_utf8_lossy(&done.stderr);
        return Err(format!("`{line}` failed: {}", message.trim()).into());
    }
    Ok(done.stdout)
}

/// Runs the command; `false` if a rule is broken.
pub(crate) fn run() -> Result<bool> {
    let root = root();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let metadata = output(
        &root,
        &cargo,
        &["metadata", "--locked", "--no-deps", "--format-version", "1"],
    )?;
    let metadata: Value = serde_json::from_slice(&metadata)?;
    let mut wrong = packages(&metadata);
    wrong.extend(heavy(&root, &cargo)?);
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let path = field(package, "manifest_path");
        let manifest =
            std::fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"))?;
        if !inherits_lints(&manifest) {
            wrong.push(format!(
                "{}: no `[lints] workspace = true`",
                field(package, "name")
            ));
        }
    }
    let untested = untested(&metadata);
    let tracked = String::from_utf8(output(&root, "git", &["ls-files", "-z"])?)?;
    let tracked: Vec<&str> = tracked.split('\0').filter(|p| !p.is_empty()).collect();
    wrong.extend(stray_cases(&tracked));
    let glossary = root.join("docs/GLOSSARY.md");
    let words = replaced_words(&std::fs::read_to_string(glossary)?);
    let sources = tracked.iter().filter(|path| path.ends_with(".rs"));
    let sources =
        sources.filter_map(|path| Some((*path, std::fs::read_to_string(root.join(path)).ok()?)));
    wrong.extend(shape::wrong(sources)?);
    for path in tracked {
        // Pictures and archives are not text; a tracked file may be deleted in the work tree.
        if let Ok(content) = std::fs::read_to_string(root.join(path)) {
            wrong.extend(text(path, &content));
            wrong.extend(replaced(path, &content, &words));
            wrong.extend(formulas::wrong(path, &content));
            wrong.extend(api::wrong(path, &content)?);
            if has_idle_tests(&root.join(path), &content, &untested) {
                wrong.push(format!(
                    "{path}: tests of a library that has `test = false`"
                ));
            }
        }
    }
    for line in &wrong {
        eprintln!("{line}");
    }
    Ok(wrong.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(name: &str, dependencies: &[(&str, Option<&str>)]) -> Vec<String> {
        let dependencies: Vec<_> = dependencies
            .iter()
            .map(|(name, kind)| json!({"name": name, "kind": kind, "req": "=0.1.0"}))
            .collect();
        let names = [
            "plca-tensor",
            "plca-em",
            "pntf-l2",
            "plca-io",
            "plca-media",
            "plca-cli",
        ];
        let mut all: Vec<_> = names
            .iter()
            .filter(|other| **other != name)
            .map(|n| json!({"name": n, "license": "MIT", "description": "d", "dependencies": []}))
            .collect();
        all.push(json!({"name": name, "version": "0.1.0", "license": "MIT", "description": "d", "dependencies": dependencies}));
        packages(&json!({ "packages": all }))
    }

    #[test]
    fn replaced_words_are_found_in_prose_alone() {
        let glossary = "| say | meaning | not |\n|---|---|---|\n| gap | a bound | Still Missing, other |\n| a | b | |\n";
        let words = replaced_words(glossary);
        assert_eq!(words, ["still missing", "other"]);
        let found = |path, line| replaced(path, line, &words).len();
        assert_eq!(found("docs/X.md", "What is still missing, and others."), 1);
        assert_eq!(found("docs/X.md", "`still missing`"), 0);
        assert_eq!(found("crates/a/src/b.rs", "    /// Other things"), 1);
        assert_eq!(found("crates/a/src/b.rs", "let other = 1; // other"), 0);
        assert_eq!(found("docs/GLOSSARY.md", "other"), 0);
    }

    #[test]
    fn packages_are_counted_once() {
        let tree = "a v1.0.0 (/x)\nb v2.1.0 (proc-macro)\nb v2.1.0 (*)\n\nb v1.9.0\n";
        assert_eq!(count_packages(tree), 3);
    }

    #[test]
    fn crates_of_the_workspace_ask_for_one_version_of_each_other() {
        let asks = |name: &str, req: &str| {
            let edge = json!({"name": name, "kind": null, "req": req});
            let all = json!({ "packages": [
                {"name": "plca-dist", "version": "0.1.0", "license": "MIT", "description": "d", "dependencies": []},
                {"name": "plca-tensor", "version": "0.1.0", "license": "MIT", "description": "d", "dependencies": [edge]},
            ]});
            packages(&all)
        };
        assert_eq!(asks("plca-dist", "=0.1.0"), [""; 0]);
        assert_eq!(asks("rand", "^0.10"), [""; 0]);
        let refused = asks("plca-dist", "^0.1.0");
        assert_eq!(
            refused,
            ["plca-tensor: must depend on plca-dist in version =0.1.0"]
        );
    }

    #[test]
    fn edges_of_the_table_pass() {
        assert!(one("plca-em", &[("plca-tensor", None), ("nalgebra", None)]).is_empty());
        assert!(
            one(
                "plca-cli",
                &[("plca-io", None), ("plca-em", None), ("clap", None)]
            )
            .is_empty()
        );
        assert!(one("plca-media", &[("plca-io", None), ("image", None)]).is_empty());
        assert!(one("plca-cli", &[("plca-media", None)]).is_empty());
    }

    #[test]
    fn other_edges_are_refused() {
        assert_eq!(
            one("plca-em", &[("pntf-l2", None)]),
            ["plca-em: must not depend on pntf-l2"]
        );
        assert_eq!(one("plca-tensor", &[("plca-em", None)]).len(), 1);
        assert_eq!(one("plca-em", &[("plca-io", None)]).len(), 1);
        assert_eq!(one("plca-io", &[("plca-cli", None)]).len(), 1);
        assert_eq!(one("plca-io", &[("plca-media", None)]).len(), 1);
        assert_eq!(one("plca-io", &[("plca-em", None)]).len(), 1);
        assert_eq!(one("xtask", &[("plca-cli", None)]).len(), 1);
        assert_eq!(one("plca-em", &[("plca-media", None)]).len(), 1);
        assert_eq!(one("plca-em", &[("image", None)]).len(), 1);
        assert_eq!(one("plca-em", &[("csv", None)]).len(), 1);
        assert_eq!(one("plca-em", &[("csv", Some("build"))]).len(), 1);
        assert_eq!(one("stranger", &[]).len(), 1);
    }

    #[test]
    fn tests_may_reach_across() {
        assert!(
            one(
                "plca-em",
                &[("pntf-l2", Some("dev")), ("serde_json", Some("dev"))]
            )
            .is_empty()
        );
    }

    #[test]
    fn licence_and_description_are_required() {
        let package =
            json!({"name": "xtask", "license": null, "description": "TBD", "dependencies": []});
        assert_eq!(packages(&json!({ "packages": [package] })).len(), 2);
    }

    #[test]
    fn lints_are_inherited_only_by_their_section() {
        assert!(inherits_lints("[lints]\nworkspace = true\n"));
        assert!(!inherits_lints(
            "[lints]\n[dependencies]\nworkspace = true\n"
        ));
    }

    #[test]
    fn unchecked_code_is_found_outside_its_module() {
        let code = format!("fn f() {{\n    {UNCHECKED} {{ g() }}\n}}\n");
        assert_eq!(text("crates/a/src/lib.rs", &code).len(), 1);
        assert!(text(UNCHECKED_ALLOWED, &code).is_empty());
        let harmless = format!("// {UNCHECKED} in words\n#![forbid({UNCHECKED}_code)]\n");
        assert!(text("crates/a/src/lib.rs", &harmless).is_empty());
    }

    #[test]
    fn the_core_touches_no_file_and_no_clock() {
        let code = "use std::time::Instant;\n// std::fs in words\n";
        let found = text("crates/plca-em/src/nmf.rs", code);
        assert_eq!(
            found,
            ["crates/plca-em/src/nmf.rs:1: std::time in the core"]
        );
        assert!(text(TIME_ALLOWED, code).is_empty());
        let code = code.replace("time::Instant", "env");
        assert_eq!(text("crates/plca-em/src/nmf.rs", &code).len(), 1);
        assert!(text(ENVIRONMENT_ALLOWED, &code).is_empty());
        for path in [
            "crates/plca-em/tests/golden.rs",
            "crates/plca-io/src/npy.rs",
        ] {
            assert!(text(path, &code).is_empty());
        }
    }

    #[test]
    fn tests_that_nothing_builds_are_found() {
        let target = |kind: &str, test: bool| json!({"kind": [kind], "test": test, "src_path": "a/src/lib.rs"});
        let of = |target| untested(&json!({"packages": [{"targets": [target]}]}));
        assert!(of(target("lib", true)).is_empty() && of(target("bin", false)).is_empty());
        let idle = of(target("lib", false));
        let code = "fn f() {}\n\n#[cfg(test)]\nmod tests {}\n";
        assert!(has_idle_tests(Path::new("a/src/b.rs"), code, &idle));
        assert!(!has_idle_tests(Path::new("b/src/b.rs"), code, &idle));
        assert!(!has_idle_tests(
            Path::new("a/src/b.rs"),
            "fn f() {}\n",
            &idle
        ));
    }

    #[test]
    fn machine_paths_are_found() {
        let line = format!("see {}notes", MACHINE_PATHS[0]);
        assert_eq!(
            text("README.md", &line),
            [format!(
                "README.md:1: the machine path {}",
                MACHINE_PATHS[0]
            )]
        );
        assert!(text("README.md", "see docs/NOTES.md").is_empty());
    }

    #[test]
    fn found_cases_lie_where_they_are_read() {
        let mut tracked = vec![
            "crates/a/src/lib.rs",
            "crates/a/src/kernel/deep.rs",
            "crates/a/tests/all/main.rs",
            "crates/a/tests/all/laws/scale.rs",
            "crates/a/tests/alone.rs",
        ];
        let read = [
            "crates/a/proptest-regressions/kernel/deep.txt",
            "crates/a/tests/proptest-regressions/laws/scale.txt",
            "crates/a/tests/alone.proptest-regressions",
        ];
        tracked.extend(read);
        assert_eq!(stray_cases(&tracked), [""; 0]);
        let strays = [
            "crates/a/tests/all/laws/scale.proptest-regressions",
            "crates/a/tests/all/proptest-regressions/laws/scale.txt",
            "crates/a/tests/proptest-regressions/laws/gone.txt",
            "crates/a/tests/proptest-regressions/alone.txt",
            "proptest-regressions/kernel/deep.txt",
        ];
        tracked.extend(strays);
        let refused = stray_cases(&tracked);
        assert_eq!(refused.len(), strays.len());
        assert!(
            refused
                .iter()
                .zip(strays)
                .all(|(line, path)| line.starts_with(path))
        );
    }
}
