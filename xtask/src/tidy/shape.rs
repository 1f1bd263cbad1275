//! Files of a crate that import one another in a circle, structs of many fields and long functions.

use std::collections::{BTreeMap, BTreeSet};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

use crate::Result;

/// Circles that are left, by the source folder of their crate: how many files each has. A circle that is gone goes from here too.
const CIRCLES: &[(&str, &[usize])] = &[
    ("crates/plca-em/src", &[2, 2, 2, 3, 4, 5]),
    ("crates/plca-fit/src", &[2, 2]),
    ("crates/plca-io/src", &[2, 11]),
    ("crates/plca-media/src", &[3]),
    ("crates/plca-priors/src", &[2, 2]),
    ("crates/plca-tensor/src", &[2, 3, 9]),
    ("crates/pntf-l2/src", &[2, 2, 2, 2]),
    ("crates/skellam-snmf/src", &[2, 4]),
];

/// Fields that a struct has at most.
const FIELDS: usize = 20;
/// Lines that a function has at most. Kernels may be longer.
const LINES: usize = 80;
const KERNELS: &str = "crates/plca-tensor/src/kernel/";

/// What is larger and still to be divided; what has become smaller goes from here.
const LARGE: &[(&str, &str)] = &[
    ("crates/plca-cli/src/args.rs", "FitArgs"),
    ("crates/plca-cli/src/arranged.rs", "places"),
    ("crates/plca-cli/src/export.rs", "table"),
    ("crates/plca-cli/src/inspect.rs", "components"),
    ("crates/plca-cli/src/models/priors.rs", "priors"),
    ("crates/plca-cli/src/report.rs", "page"),
    ("crates/plca-cli/src/run.rs", "start"),
    ("crates/plca-cli/src/separate.rs", "run"),
    ("crates/plca-cli/src/separate.rs", "sources"),
    ("crates/plca-cli/src/transform.rs", "transform"),
    ("crates/plca-cli/src/transform.rs", "explain"),
    ("crates/plca-em/src/bayes/plsa.rs", "transform"),
    ("crates/plca-em/src/nmf/state.rs", "as_they_are"),
    ("crates/plca-em/src/plsa/state.rs", "transform"),
    ("crates/plca-em/src/validation/mod.rs", "run"),
    ("crates/plca-fit/src/laws/counts.rs", "check_counts"),
    ("crates/plca-fit/src/laws/gradient.rs", "check_gradient"),
    ("crates/plca-fit/src/laws/units.rs", "check_units"),
    ("crates/plca-fit/src/solver/fast/sweep.rs", "terms"),
    ("crates/plca-io/src/data.rs", "read"),
    ("crates/plca-io/src/lists.rs", "read"),
    ("crates/plca-io/src/npy.rs", "read_header"),
    ("crates/plca-io/src/text.rs", "visit_matrix_market"),
    ("crates/plca-media/src/riff.rs", "found"),
    (
        "crates/plca-priors/src/cross_entropy.rs",
        "exact_similarity",
    ),
    ("crates/plca-priors/src/entropic/column.rs", "sparse"),
    ("crates/plca-run/src/entry.rs", "ModelEntry"),
    (
        "crates/plca-tensor/src/arrange/products.rs",
        "completed_mttkrp",
    ),
    ("crates/plca-tensor/src/arrange/rows.rs", "new"),
    ("crates/plca-tensor/src/arrange/rows.rs", "solve"),
    ("crates/plca-tensor/src/data/cut.rs", "cut"),
    (
        "crates/plca-tensor/src/data/reference.rs",
        "e_step_by_visits",
    ),
    ("crates/skellam-snmf/src/cp/slabs.rs", "new"),
    ("crates/skellam-snmf/src/cp/slabs.rs", "pass"),
];

/// What one file says of the others, and what is large in it.
#[derive(Default)]
struct Seen {
    /// Paths behind `use`, from the root of the crate.
    uses: Vec<Vec<String>>,
    /// Structs and functions that are too large, and how.
    large: Vec<(String, String)>,
    module: Vec<String>,
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let words = attribute.meta.require_list();
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && words.is_ok_and(|list| list.tokens.to_string().starts_with("test"))
    })
}

impl Seen {
    fn add(&mut self, before: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add(before, &path.tree);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add(before, tree);
                }
            }
            UseTree::Name(name) => self.end(before, &name.ident.to_string()),
            UseTree::Rename(name) => self.end(before, &name.ident.to_string()),
            UseTree::Glob(_) => self.end(before, "*"),
        }
    }

    /// A whole path. Without `crate`, `self` or `super` it starts in this module, if it is none of another crate.
    fn end(&mut self, before: &[String], last: &str) {
        let mut path = before.to_vec();
        path.push(last.to_string());
        let mut from = self.module.clone();
        let steps = path.iter().take_while(|step| {
            match step.as_str() {
                "crate" => from.clear(),
                "super" => drop(from.pop()),
                "self" => {}
                _ => return false,
            }
            true
        });
        let steps = steps.count();
        from.extend(path.into_iter().skip(steps));
        self.uses.push(from);
    }

    fn size(&mut self, name: &syn::Ident, size: usize, most: usize, unit: &str) {
        if size > most {
            let what = format!("{size} {unit}, expected at most {most}");
            self.large.push((name.to_string(), what));
        }
    }
}

fn lines(of: &impl Spanned) -> usize {
    let span = of.span();
    span.end().line + 1 - span.start().line
}

impl<'a> Visit<'a> for Seen {
    fn visit_item(&mut self, item: &'a Item) {
        let test = match item {
            Item::Mod(module) => is_test(&module.attrs),
            Item::Fn(function) => is_test(&function.attrs),
            Item::Use(line) => is_test(&line.attrs),
            _ => false,
        };
        if !test {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        self.module.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.module.pop();
    }

    fn visit_item_use(&mut self, line: &'a syn::ItemUse) {
        // What is passed on is not used here.
        if matches!(line.vis, syn::Visibility::Inherited) {
            self.add(&mut Vec::new(), &line.tree);
        }
    }

    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.size(&item.ident, item.fields.len(), FIELDS, "fields");
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.size(&function.sig.ident, lines(function), LINES, "lines");
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.size(&function.sig.ident, lines(function), LINES, "lines");
        visit::visit_impl_item_fn(self, function);
    }
}

/// The source folder of a crate that this rule is for, and the module of a file in it.
fn module(path: &str) -> Option<(&str, Vec<String>)> {
    let library = ["crates/", "python/src/", "tools/mpi/src/"];
    let (root, file) = path.split_once("/src/")?;
    if !library.iter().any(|start| path.starts_with(start)) || file.contains("tests") {
        return None;
    }
    let mut module: Vec<String> = (file.strip_suffix(".rs")?.split('/'))
        .map(ToString::to_string)
        .collect();
    if ["lib", "main", "mod"].contains(&module.last()?.as_str()) {
        module.pop();
    }
    Some((&path[..root.len() + "/src".len()], module))
}

/// Files that reach one another.
fn circles(edges: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>) -> Vec<Vec<String>> {
    let reached = |from: &Vec<String>| {
        let mut all = BTreeSet::new();
        let mut next: Vec<_> = edges[from].iter().collect();
        while let Some(file) = next.pop() {
            if all.insert(file) {
                next.extend(&edges[file]);
            }
        }
        all
    };
    let reached: BTreeMap<_, _> = edges.keys().map(|file| (file, reached(file))).collect();
    let mut found = BTreeSet::new();
    for (file, all) in &reached {
        let circle = all.iter().filter(|other| reached[**other].contains(*file));
        let circle: Vec<String> = circle.map(|file| file.join("/")).collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

/// What is wrong with the files of the workspace, by path and content.
pub(super) fn wrong<'a>(files: impl Iterator<Item = (&'a str, String)>) -> Result<Vec<String>> {
    let mut crates: BTreeMap<&str, BTreeMap<Vec<String>, Vec<Vec<String>>>> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut left: BTreeSet<_> = LARGE.iter().collect();
    for (path, content) in files {
        let Some((root, module)) = module(path) else {
            continue;
        };
        let mut seen = Seen {
            module: module.clone(),
            ..Seen::default()
        };
        let file = syn::parse_file(&content).map_err(|e| format!("{path}: {e}"))?;
        seen.visit_file(&file);
        for (name, what) in seen.large {
            if path.starts_with(KERNELS) {
                continue;
            }
            match LARGE.iter().find(|left| **left == (path, &*name)) {
                Some(known) => drop(left.remove(known)),
                None => wrong.push(format!("{path}: {name} has {what}")),
            }
        }
        crates.entry(root).or_default().insert(module, seen.uses);
    }
    // Of files that were looked at alone.
    left.retain(|(path, _)| {
        module(path).is_some_and(|(root, file)| {
            crates
                .get(root)
                .is_some_and(|files| files.contains_key(&file))
        })
    });
    wrong.extend(left.iter().map(|(path, name)| {
        format!("{path}: {name} is small enough, and goes from the list of what is too large")
    }));
    for (root, files) in crates {
        let file_of = |path: &[String]| {
            let mut parts = (1..=path.len()).rev().map(|n| &path[..n]);
            parts
                .find(|part| files.contains_key(*part))
                .map(<[String]>::to_vec)
        };
        let edges = files.iter().map(|(file, uses)| {
            let others = uses.iter().filter_map(|path| file_of(path));
            (file.clone(), others.filter(|other| other != file).collect())
        });
        let found = circles(&edges.collect());
        let mut sizes: Vec<usize> = found.iter().map(Vec::len).collect();
        sizes.sort_unstable();
        let known = CIRCLES.iter().find(|(of, _)| *of == root);
        let known = known.map_or(&[][..], |(_, sizes)| sizes);
        if sizes != known {
            wrong.push(format!(
                "{root}: circles of {sizes:?} files that import one another, expected {known:?}: {found:?}"
            ));
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&'static str, &str)]) -> Vec<String> {
        wrong(
            files
                .iter()
                .map(|(path, content)| (*path, content.to_string())),
        )
        .unwrap()
    }

    #[test]
    fn circles_are_found_outside_tests() {
        let [a, b] = ["crates/x/src/a.rs", "crates/x/src/b.rs"];
        assert!(of(&[(a, "use crate::b::B;"), (b, "use std::fmt;")]).is_empty());
        let found = of(&[
            (a, "use crate::b::B;"),
            (b, "fn f() { use super::a::{A, C}; }"),
        ]);
        assert!(found[0].contains(r#"[["a", "b"]]"#), "{found:?}");
        let test = "#[cfg(test)] mod tests { use crate::a::A; }";
        assert!(of(&[(a, "use crate::b::B;"), (b, test)]).is_empty());
        // A module and a file below it, over a third.
        let found = of(&[
            ("crates/x/src/m/mod.rs", "mod n; use n::N;"),
            ("crates/x/src/m/n.rs", "use crate::c::C;"),
            ("crates/x/src/c.rs", "use crate::m;"),
        ]);
        assert!(found[0].contains("circles of [3] files"), "{found:?}");
    }

    #[test]
    fn large_things_are_found() {
        let path = "crates/x/src/a.rs";
        let fields: String = (0..21).map(|i| format!("f{i}: u8,")).collect();
        assert_eq!(of(&[(path, &format!("struct S {{ {fields} }}"))]).len(), 1);
        let long = |n| format!("struct S; impl S {{ fn f() {{{}}} }}", "\n".repeat(n));
        assert_eq!([79, 80].map(|n| of(&[(path, &long(n))]).len()), [0, 1]);
    }
}
