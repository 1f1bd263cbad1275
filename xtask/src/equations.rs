//! `equations`: the index from equations to the lines that compute them and the tests that check them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use self::papers::{Equation, Papers};
use crate::{Result, root, tidy};

mod papers;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print files, functions and tests of one: `LV 17`, `HS alg. 1`, `SPEC 1.4`.
    #[arg(value_name = "EQUATION", conflicts_with = "check")]
    equation: Option<String>,
    /// Only compare; fail if the file is stale, an equation has no test, or a paper's list and the code disagree.
    #[arg(long)]
    check: bool,
}

const REFERENCES: &str = "docs/REFERENCES.md";
const INDEX: &str = "docs/EQUATIONS.md";

/// What a tag stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// A line that computes.
    Code,
    /// A test.
    Test,
    /// Documentation, which computes nothing.
    Doc,
}

/// Where a tag stands.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    file: String,
    line: usize,
    /// The function that it belongs to.
    function: String,
    at: At,
}

impl Place {
    /// As a link from the folder of documentation: lines move, functions keep their names.
    fn link(&self) -> String {
        format!("[{0} `{1}`](../{0})", self.file, self.function)
    }
}

/// `(key, what)`, for instance `("SI", "eq. 14")`.
type Tag = (String, String);

/// Keys are the headings `## [KEY]`.
fn keys(references: &str) -> Vec<String> {
    references
        .lines()
        .filter_map(|l| l.strip_prefix("## [")?.strip_suffix(']'))
        .map(str::to_owned)
        .collect()
}

/// The tags of one line: a key in capitals, then `eq. N`, `alg. N`, `prop. N` or the number of a section.
fn tags(line: &str) -> Vec<Tag> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices('[') {
        let Some((inside, _)) = line[at + 1..].split_once(']') else {
            continue;
        };
        let Some((key, what)) = inside.split_once(' ') else {
            continue;
        };
        let is_key = key.len() > 1 && key.chars().all(|c| c.is_ascii_uppercase());
        let number = ["eq. ", "alg. ", "prop. "]
            .iter()
            .find_map(|kind| what.strip_prefix(kind));
        let is_number = number.is_some_and(|n| n.starts_with(|c: char| c.is_ascii_alphanumeric()))
            || what.starts_with(|c: char| c.is_ascii_digit());
        if is_key && is_number {
            found.extend(singles(what).into_iter().map(|what| (key.to_owned(), what)));
        }
    }
    found
}

/// `eq. 10-12` as `eq. 10`, `eq. 11`, `eq. 12`: a reader looks for one number.
fn singles(what: &str) -> Vec<String> {
    let range = what.split_once(". ").and_then(|(kind, numbers)| {
        let (first, last) = numbers.split_once('-')?;
        let numbers = first.parse::<u32>().ok()?..=last.parse().ok()?;
        Some(numbers.map(|n| format!("{kind}. {n}")).collect())
    });
    range.unwrap_or_else(|| vec![what.to_owned()])
}

fn function_name(line: &str) -> Option<String> {
    let line = line.trim_start();
    let (before, rest) = line.split_once("fn ")?;
    let modifier =
        |word: &str| word.starts_with("pub(") || word.bytes().all(|b| b.is_ascii_lowercase());
    if !before.split_whitespace().all(modifier) {
        return None;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    Some(rest[..end].to_owned())
}

/// The function that line `at` belongs to: the next one if only comments and attributes lie between, else the last one.
fn owner(lines: &[&str], at: usize) -> String {
    let mut below = at;
    while lines.get(below).is_some_and(|l| {
        let l = l.trim_start();
        l.starts_with("//") || l.starts_with("#[")
    }) {
        below += 1;
    }
    let above = || lines[..at].iter().rev().find_map(|l| function_name(l));
    let next = lines.get(below).and_then(|l| function_name(l));
    next.or_else(above).unwrap_or_else(|| "(file)".into())
}

fn scan(file: &str, text: &str) -> Vec<(Tag, Place)> {
    let lines: Vec<&str> = text.lines().collect();
    // Not a file of tests that is named at the top, nor a function for tests among others.
    let opens = |l: &[&str]| {
        l[0].trim() == "#[cfg(test)]"
            && l[1].ends_with('{')
            && l[1].trim_start().starts_with("mod ")
    };
    let tests_from = lines.windows(2).position(opens).unwrap_or(lines.len());
    let test_file = file.contains("/tests/");
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let in_test = test_file || at > tests_from;
        for tag in tags(line) {
            let doc = ["///", "//!"].iter();
            let doc = doc.clone().any(|mark| line.trim_start().starts_with(mark));
            let place = Place {
                file: file.into(),
                line: at + 1,
                function: owner(&lines, at),
                at: match (in_test, doc) {
                    (true, _) => At::Test,
                    (_, true) => At::Doc,
                    _ => At::Code,
                },
            };
            found.push((tag, place));
        }
    }
    found
}

/// Every `.rs` file below `folder`, sorted.
pub(crate) fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder)
            .map_err(|e| format!("cannot list {}: {e}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// `eq. 9` before `eq. 10`, and section 1.4 before 10: runs of digits compare as numbers.
fn natural(text: &str) -> Vec<(u64, String)> {
    let mut parts = vec![(0, String::new())];
    for c in text.chars() {
        if let Some(digit) = c.to_digit(10) {
            match parts.last_mut() {
                Some((n, s)) if s.is_empty() => *n = *n * 10 + u64::from(digit),
                _ => parts.push((u64::from(digit), String::new())),
            }
        } else if let Some((_, s)) = parts.last_mut() {
            s.push(c);
        }
    }
    parts
}

/// Whether a file belongs to what is built from the libraries.
fn at_the_rim(file: &str) -> bool {
    file.split('/').any(|part| tidy::RIM.contains(&part))
}

/// The equations that code computes and no test names, each with its first place. Figures are tests themselves.
fn untested(found: &[(Tag, Place)]) -> Vec<String> {
    let tests = found.iter().filter(|(_, place)| place.at == At::Test);
    let mut seen: BTreeSet<&Tag> = tests.map(|(tag, _)| tag).collect();
    let in_crates = |place: &Place| place.at == At::Code && !place.file.starts_with("figures/");
    let code = found.iter().filter(|(_, place)| in_crates(place));
    code.filter(|(tag, _)| seen.insert(tag))
        .map(|((key, what), p)| format!("{}:{}: [{key} {what}]: no test names it", p.file, p.line))
        .collect()
}

/// Tags in the order of keys and numbers, each with its places.
type Table<'a> = BTreeMap<(String, Vec<(u64, String)>, String), Vec<&'a Place>>;

/// Every number of a paper and every tag.
fn table<'a>(found: &'a [(Tag, Place)], papers: &Papers) -> Table<'a> {
    let key = |(key, what): &Tag| (key.clone(), natural(what), what.clone());
    let mut table = Table::new();
    for tag in papers.tags() {
        table.entry(key(&tag)).or_default();
    }
    for (tag, place) in found {
        table.entry(key(tag)).or_default().push(place);
    }
    for places in table.values_mut() {
        places.sort_by_key(|p| at_the_rim(&p.file));
    }
    table
}

/// Code, or else documentation, and tests, each function once.
fn links(places: &[&Place], link: impl Fn(&Place) -> String) -> [Vec<String>; 2] {
    let of = |at: At, mark: &str| -> Vec<String> {
        let mut links: Vec<String> = Vec::new();
        for place in places.iter().filter(|place| place.at == at) {
            let link = format!("{mark}{}", link(place));
            if !links.contains(&link) {
                links.push(link);
            }
        }
        links
    };
    let mut code = of(At::Code, "");
    if code.is_empty() {
        code = of(At::Doc, "doc: ");
    }
    [code, of(At::Test, "")]
}

fn places_of<'a>(found: &'a [(Tag, Place)], tag: &Tag) -> Vec<&'a Place> {
    let places = found.iter().filter(|(t, _)| t == tag);
    places.map(|(_, place)| place).collect()
}

/// The code of the equations that one is a case of.
fn computing(
    found: &[(Tag, Place)],
    equation: &Equation,
    link: impl Fn(&Place) -> String + Copy,
) -> Vec<String> {
    let tags = equation.by_tags();
    let code = tags.iter().flat_map(|tag| {
        let [code, _] = links(&places_of(found, tag), link);
        code
    });
    code.collect()
}

fn index(found: &[(Tag, Place)], papers: &Papers) -> String {
    let mut out = String::from(
        "# Equations\n\nWritten by `cargo xtask equations`; do not edit. Keys: [REFERENCES.md](REFERENCES.md). `cargo xtask equations 'LV 17'` prints one.\n\
         Of the five papers every numbered equation is here: computed, an identity that a test shows, or text.\n\
         `doc:` marks what no line of code is tagged with, only documentation.\n\n\
         | key | equation or section | what | code | tests |\n|---|---|---|---|---|\n",
    );
    let table = table(found, papers);
    for ((key, _, what), places) in &table {
        let tag = (key.clone(), what.clone());
        let [mut code, mut tests] = links(places, Place::link);
        let listed = papers.get(&tag);
        if let Some(equation) = listed {
            code.extend(equation.notes());
            code.extend(computing(found, equation, Place::link));
            let test = equation.test();
            tests.extend(test.map(|(file, test)| format!("[{file} `{test}`](../{file})")));
        }
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "| {key} | {what} | {} | {} | {} |",
            listed.map_or("", |equation| &equation.what),
            code.join("<br>"),
            tests.join("<br>")
        );
    }
    out
}

/// The entry of one equation, for the terminal; `None` if there is none.
fn look_up(found: &[(Tag, Place)], papers: &Papers, asked: &str) -> Option<String> {
    let (key, what) = asked.trim().trim_matches(['[', ']']).split_once(' ')?;
    let whats = [what.to_owned(), format!("eq. {what}")];
    let table = table(found, papers);
    let rows = table
        .iter()
        .filter(|((k, _, w), _)| k == key && whats.contains(w));
    let mut out = String::new();
    for ((key, _, what), places) in rows {
        let tag = (key.clone(), what.clone());
        let plain = |p: &Place| format!("{}:{} {}", p.file, p.line, p.function);
        let [mut code, mut tests] = links(places, plain);
        let listed = papers.get(&tag);
        let note = listed.map_or(String::new(), |e| format!(": {}", e.what));
        if let Some(equation) = listed {
            code.extend(equation.notes());
            code.extend(computing(found, equation, plain));
            for tag in equation.by_tags() {
                tests.extend(links(&places_of(found, &tag), plain)[1].clone());
            }
            tests.extend(equation.test().map(|(file, test)| format!("{file} {test}")));
        }
        // Cases of one equation share their tests. Writing to a string cannot fail.
        let mut seen = BTreeSet::new();
        let _ = writeln!(out, "[{key} {what}]{note}");
        for line in code {
            let _ = writeln!(out, "  {line}");
        }
        for line in tests.into_iter().filter(|line| seen.insert(line.clone())) {
            let _ = writeln!(out, "  test: {line}");
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Runs the command; `false` if `--check` finds the index stale, an equation without a test, or a list that disagrees with the code.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let root = root();
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
    };
    let keys = keys(&read(&root.join(REFERENCES))?);
    let papers = Papers::read()?;
    let mut found = Vec::new();
    for folder in ["crates", "figures"] {
        for path in sources(&root.join(folder))? {
            let file = path
                .strip_prefix(&root)
                .unwrap_or(&path)
                .to_string_lossy()
                .replace('\\', "/");
            found.extend(scan(&file, &read(&path)?));
        }
    }
    if let Some(((key, what), place)) = found.iter().find(|((key, _), _)| !keys.contains(key)) {
        let (file, line) = (&place.file, place.line);
        return Err(
            format!("{file}:{line}: [{key} {what}]: no key `{key}` in {REFERENCES}").into(),
        );
    }
    if let Some(asked) = &args.equation {
        let answer = look_up(&found, &papers, asked);
        let answer = answer.ok_or_else(|| {
            format!("`{asked}`: no such equation; `LV 17`, `HS alg. 1` or `SPEC 1.4` is")
        })?;
        print!("{answer}");
        return Ok(true);
    }
    let new = index(&found, &papers);
    let path = root.join(INDEX);
    if args.check {
        let fresh = path.exists() && read(&path)? == new;
        if !fresh {
            eprintln!("{INDEX} is stale: run `cargo xtask equations`");
        }
        let mut wrong = untested(&found);
        wrong.extend(papers.wrong(&found, |file| read(&root.join(file)).ok()));
        wrong.iter().for_each(|line| eprintln!("{line}"));
        return Ok(fresh && wrong.is_empty());
    }
    std::fs::write(&path, new).map_err(|e| format!("cannot write {INDEX}: {e}"))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_and_other_brackets_are_not() {
        assert_eq!(
            tags("x; // [SI eq. 14], [SPEC 1.4] and [HS alg. 1]").len(),
            3
        );
        for line in [
            "a[W H]",
            "[SI]",
            "[Plca eq. 3]",
            "[SI figure 1]",
            "#[test]",
            "[SPEC",
        ] {
            let found = tags(line);
            assert!(found.is_empty(), "{line}: {found:?}");
        }
    }

    #[test]
    fn a_range_is_its_numbers() {
        let found = tags("// [SI eq. 9-11], [SPEC 5-8]");
        let whats: Vec<_> = found.iter().map(|(_, what)| what.as_str()).collect();
        assert_eq!(whats, ["eq. 9", "eq. 10", "eq. 11", "5-8"]);
    }

    #[test]
    fn a_tag_leads_to_its_code_and_to_its_test() {
        let text = "fn step() {\n    // [SI eq. 2]\n}\n#[cfg(test)]\nmod tests {\n    /// [SI eq. 2]\n    #[test]\n    \
                    fn holds() {\n        // [SI eq. 3]\n        let x = 1;\n    }\n}\n";
        let found = scan("crates/a/src/lib.rs", text);
        let places: Vec<_> = found.iter().map(|(_, p)| (p.at, &*p.function)).collect();
        let test = (At::Test, "holds");
        assert_eq!(places, [(At::Code, "step"), test, test]);
        let page = index(&found, &Papers::default());
        let file = "crates/a/src/lib.rs";
        assert!(page.contains(&format!(
            "| SI | eq. 2 |  | [{file} `step`](../{file}) | [{file} `holds`](../{file}) |"
        )));
        let above = [
            "#[cfg(test)]\nmod tests;\n",
            "#[cfg(test)]\nfn width() {}\n",
        ];
        for above in above {
            let found = scan("crates/a/src/lib.rs", &format!("{above}{text}"));
            assert_eq!(found[0].1.at, At::Code, "{above}");
        }
    }

    #[test]
    fn documentation_is_no_code() {
        let text =
            "//! [SI eq. 4]\n/// [SI eq. 2] [SI eq. 3]\nfn f() {\n    // [SI eq. 2]\n    g();\n}\n";
        let page = index(&scan("a.rs", text), &Papers::default());
        assert!(
            page.contains("| SI | eq. 2 |  | [a.rs `f`](../a.rs) |"),
            "{page}"
        );
        for (what, function) in [("eq. 3", "f"), ("eq. 4", "f")] {
            let row = format!("| SI | {what} |  | doc: [a.rs `{function}`](../a.rs) |");
            assert!(page.contains(&row), "{page}");
        }
    }

    #[test]
    fn an_equation_without_a_test_is_named() {
        let code =
            "/// [SI eq. 5]\nfn f() {\n    // [SI eq. 2-3] [HS alg. 1]\n    // [SI eq. 3]\n}\n";
        let test = "// [SI eq. 2] [SI eq. 4]\n#[test]\nfn holds() {}\n";
        let mut found = scan("crates/a/src/lib.rs", code);
        found.extend(scan("crates/a/tests/a.rs", test));
        let place = "crates/a/src/lib.rs:3:";
        let named = ["SI eq. 3", "HS alg. 1"].map(|w| format!("{place} [{w}]: no test names it"));
        assert_eq!(untested(&found), named);
        found.extend(scan("crates/a/tests/b.rs", "// [SI eq. 3] [HS alg. 1]\n"));
        assert!(untested(&found).is_empty());
    }

    #[test]
    fn libraries_come_before_what_is_built_from_them() {
        let line = "// [SI eq. 2]\n";
        let files = [
            "crates/plca-cli/src/a.rs",
            "crates/plca-em/src/z.rs",
            "crates/plca-fit/src/a.rs",
        ];
        let found: Vec<_> = files.iter().flat_map(|file| scan(file, line)).collect();
        let page = index(&found, &Papers::default());
        let at = files.map(|file| page.find(file).unwrap());
        assert!(at[1] < at[2] && at[2] < at[0], "{page}");
    }

    #[test]
    fn functions_of_every_kind_own_their_lines() {
        for line in [
            "fn f() {",
            "    pub fn f<T>(",
            "pub(super) fn f(",
            "pub(crate) const fn f(",
        ] {
            assert_eq!(function_name(line).as_deref(), Some("f"), "{line}");
        }
        for line in [
            "let f = |x| fn_of(x);",
            "run: fn(&Context) -> f64,",
            "// the fn f()",
        ] {
            assert_eq!(function_name(line), None, "{line}");
        }
    }

    #[test]
    fn one_equation_is_looked_up_with_what_computes_it() {
        let papers = Papers::parse(
            "paper,first,last,kind,by,what\nLV,1,1,computed,,the model\nLV,2,2,computed,LV eq. 1,of order 2\n",
        )
        .unwrap();
        let code = "fn step() {\n    // [LV eq. 1] [SPEC 1.4]\n}\n";
        let mut found = scan("crates/a/src/lib.rs", code);
        found.extend(scan("crates/a/tests/a.rs", "// [LV eq. 1]\nfn holds() {\n"));
        let answer = look_up(&found, &papers, "LV 2").unwrap();
        for part in [
            "[LV eq. 2]: of order 2",
            "crates/a/src/lib.rs:2 step",
            "test: crates/a/tests/a.rs:1 holds",
        ] {
            assert!(answer.contains(part), "{answer}");
        }
        assert!(
            look_up(&found, &papers, "[SPEC 1.4]")
                .unwrap()
                .contains("step")
        );
        assert_eq!(look_up(&found, &papers, "LV 3"), None);
        assert_eq!(look_up(&found, &papers, "LV"), None);
    }

    #[test]
    fn numbers_sort_as_numbers() {
        let mut all = ["eq. 10", "eq. 9", "eq. 9b"];
        all.sort_by_key(|t| natural(t));
        assert_eq!(all, ["eq. 9", "eq. 9b", "eq. 10"]);
    }

    #[test]
    fn keys_are_the_headings() {
        assert_eq!(keys("# R\n## [SI]\ntext [LV]\n## [LV]\n"), ["SI", "LV"]);
    }
}
