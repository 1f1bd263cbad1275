//! What users of the libraries meet: a short prelude, and model crates that are enough by themselves.

use syn::{Item, UseTree};

use super::formulas::blocks;
use crate::Result;

const PRELUDE: &str = "crates/plca/src/lib.rs";
/// Names that the prelude exports at most.
const NAMES: usize = 25;

/// Model crates: their folder, and their name in code.
const MODELS: [(&str, &str); 3] = [
    ("crates/plca-em/", "plca_em"),
    ("crates/skellam-snmf/", "skellam_snmf"),
    ("crates/pntf-l2/", "pntf_l2"),
];

/// What examples of a model crate take from the crate itself, so that who depends on it alone can run them.
const OTHERS: [&str; 8] = [
    "nalgebra",
    "plca_dist",
    "plca_em",
    "plca_fit",
    "plca_priors",
    "plca_tensor",
    "rand_chacha",
    "skellam_snmf",
];

fn names(tree: &UseTree) -> usize {
    match tree {
        UseTree::Path(path) => names(&path.tree),
        UseTree::Group(group) => group.items.iter().map(names).sum(),
        // Nobody knows how many.
        UseTree::Glob(_) => NAMES + 1,
        UseTree::Name(_) | UseTree::Rename(_) => 1,
    }
}

/// Everything wrong with the prelude.
fn prelude(content: &str) -> Result<Vec<String>> {
    let file = syn::parse_file(content).map_err(|e| format!("{PRELUDE}: {e}"))?;
    let modules = file.items.iter().filter_map(|item| match item {
        Item::Mod(module) if module.ident == "prelude" => module.content.as_ref(),
        _ => None,
    });
    let exports = modules.flat_map(|(_, items)| items).map(|item| match item {
        Item::Use(line) => names(&line.tree),
        _ => 1,
    });
    let count: usize = exports.sum();
    let wrong = (count == 0 || count > NAMES)
        .then(|| format!("{PRELUDE}: the prelude exports {count} names, expected 1 to {NAMES}"));
    Ok(wrong.into_iter().collect())
}

/// The first crate beside its own that an example needs.
fn other(code: &str, own: &str) -> Option<&'static str> {
    let needs = |name: &str| {
        code.match_indices(name).any(|(at, _)| {
            let before = &code[..at];
            let inside = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            !inside && !before.ends_with("::") && code[at + name.len()..].starts_with("::")
        })
    };
    // Macros for matrices write `nalgebra::` into the code that calls them.
    let matrices = ["matrix![", "vector!["]
        .iter()
        .any(|word| code.contains(word));
    let unseen = matrices && !code.contains("nalgebra::{self");
    let mut others = OTHERS.into_iter().filter(|name| *name != own);
    others.find(|name| needs(name) || *name == "nalgebra" && unseen)
}

/// Everything wrong with one tracked text file.
pub(super) fn wrong(path: &str, content: &str) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    if path == PRELUDE {
        wrong.extend(prelude(content)?);
    }
    let source = |folder: &str| path.starts_with(&format!("{folder}src/"));
    if let Some((_, own)) = MODELS.iter().find(|(folder, _)| source(folder)) {
        let examples = blocks(path, content);
        let examples = examples.iter().filter(|block| !block.is_formula());
        wrong.extend(examples.filter_map(|block| {
            let name = other(&block.text, own)?;
            Some(format!(
                "{path}:{}: an example needs {name}, expected {own} alone",
                block.from
            ))
        }));
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_prelude_is_found() {
        let of = |names: usize| {
            let names: Vec<String> = (1..names).map(|n| format!("N{n}")).collect();
            let uses = format!("pub use a::{{{}}}; pub use b::c::D;", names.join(", "));
            wrong(PRELUDE, &format!("pub mod prelude {{ {uses} }}")).unwrap()
        };
        assert_eq!(of(NAMES), [""; 0]);
        assert_eq!(of(NAMES + 1).len(), 1);
        let glob = "pub mod prelude { pub use a::*; }";
        assert_eq!(wrong(PRELUDE, glob).unwrap().len(), 1);
        assert_eq!(wrong(PRELUDE, "").unwrap().len(), 1);
    }

    #[test]
    fn examples_that_need_another_crate_are_found() {
        let of = |code: &str| {
            let source = format!("/// ```\n/// {code}\n/// ```\npub fn f() {{}}\n");
            wrong("crates/pntf-l2/src/a.rs", &source).unwrap()
        };
        for alone in [
            "use pntf_l2::tensor::Order;",
            "use pntf_l2::nalgebra::{self, dmatrix}; let v = dmatrix![1.0];",
            "let my_plca_tensor::X = 1;",
        ] {
            assert_eq!(of(alone), [""; 0], "{alone}");
        }
        for beside in [
            "use plca_tensor::Order;",
            "let v = nalgebra::DMatrix::zeros(1, 1);",
            "use pntf_l2::nalgebra::dmatrix; let v = dmatrix![1.0];",
            "# Ok::<(), plca_fit::FitError>(())",
        ] {
            assert_eq!(of(beside).len(), 1, "{beside}");
        }
        let prose = "/// See `plca_tensor::Data`.\npub fn f() {}\n";
        assert_eq!(wrong("crates/pntf-l2/src/a.rs", prose).unwrap(), [""; 0]);
    }
}
