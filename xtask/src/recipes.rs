//! `recipes`: everything that the examples of extension say, done to a copy of the workspace. Each is one file or folder and one line; the command
//! that is built there knows them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tidy::output;
use crate::{Result, root, target};

/// One thing more: what is copied, where to, and which line goes behind which.
struct Recipe {
    name: &'static str,
    from: &'static str,
    to: &'static str,
    file: &'static str,
    behind: &'static str,
    line: &'static str,
}

const RECIPES: [Recipe; 6] = [
    Recipe {
        name: "prior",
        from: "prior.rs",
        to: "crates/plca-priors/src/first_row.rs",
        file: "crates/plca-priors/src/lib.rs",
        behind: "priors! {",
        line: r#"first_row::{FirstRow} = "first-row", "A", "A more counts in the first row.";"#,
    },
    Recipe {
        name: "storage",
        from: "storage.rs",
        to: "crates/plca-tensor/src/bytes.rs",
        file: "crates/plca-tensor/src/lib.rs",
        behind: "pub mod arrange;",
        line: "mod bytes; pub use bytes::Bytes;",
    },
    Recipe {
        name: "likelihood",
        from: "likelihood.rs",
        to: "crates/plca-tensor/src/negative_binomial.rs",
        file: "crates/plca-tensor/src/lib.rs",
        behind: "pub mod arrange;",
        line: "pub mod negative_binomial;",
    },
    Recipe {
        name: "solver",
        from: "solver.rs",
        to: "crates/plca-fit/src/solver/overrelaxed.rs",
        file: "crates/plca-fit/src/solver/mod.rs",
        behind: "solvers! {",
        line: r#"Overrelaxed = "overrelaxed", "Steps of EM, half as far again where that is not worse.", overrelaxed;"#,
    },
    Recipe {
        name: "model",
        from: "model",
        to: "crates/plca-run/src/models/communities",
        file: "crates/plca-run/src/models/mod.rs",
        behind: "models! {",
        line: "communities: Communities;",
    },
    Recipe {
        name: "estimator",
        from: "estimator.py",
        to: "python/plcakit/_communities.py",
        file: "python/plcakit/__init__.py",
        behind: "from ._pntf import PNTF",
        line: "from ._communities import Communities",
    },
];

/// What the estimator must be able to do: the bits of the command, with the prior and the solver that are new, and its files.
const BY_PYTHON: &str = r#"
import numpy as np
import plcakit
from plcakit import Communities
graph = np.loadtxt("graph.csv", delimiter=",")
model = Communities(2, prior={"members": "first-row:0.5"}, solver="overrelaxed", random_state=0).fit(graph)
with np.load("m.npz") as theirs:
    assert np.array_equal(theirs["members"], model._blocks["members"]), "other bits than those of the command"
model.save("p.npz")
assert all(type(plcakit.load(name)) is Communities for name in ("m.npz", "p.npz"))
"#;

/// Writes a file where its content is another, so that what is built from it is built once.
fn put(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, content)?)
}

/// The files of a recipe, with their names behind the place that they are copied to.
fn files(from: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    if from.is_file() {
        return Ok(vec![(from.to_path_buf(), PathBuf::new())]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        files.push((entry.path(), PathBuf::from(entry.file_name())));
    }
    Ok(files)
}

/// The content with a line behind one that is there once.
fn with_line(content: &str, recipe: &Recipe) -> Result<String> {
    let mut lines: Vec<&str> = content.lines().collect();
    let mut places = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.trim() == recipe.behind);
    let (Some((at, _)), None) = (places.next(), places.next()) else {
        return Err(format!("{}: not one line `{}`", recipe.file, recipe.behind).into());
    };
    lines.insert(at + 1, recipe.line);
    Ok(lines.join("\n") + "\n")
}

/// Runs the command; `false` if what was added is not known there. With an interpreter that has what plcakit needs, the package too.
pub(crate) fn run(python: Option<&Path>) -> Result<bool> {
    let root = root();
    let copy = target().join("recipes");
    let tracked = String::from_utf8(output(&root, "git", &["ls-files", "-z"])?)?;
    let mut sources: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for path in tracked.split('\0').filter(|path| !path.is_empty()) {
        if let Ok(content) = fs::read(root.join(path)) {
            sources.push((path.into(), content));
        }
    }
    for recipe in &RECIPES {
        let files = files(&root.join("examples/extend").join(recipe.from))?;
        println!(
            "{}: {} and one line of {}",
            recipe.name,
            counted(files.len()),
            recipe.file
        );
        for (from, name) in files {
            // `join` of nothing would end with a slash.
            let to = match name.as_os_str().is_empty() {
                true => PathBuf::from(recipe.to),
                false => Path::new(recipe.to).join(name),
            };
            sources.push((to, fs::read(from)?));
        }
        let edited = sources
            .iter_mut()
            .find(|(path, _)| path == Path::new(recipe.file));
        let (_, content) = edited.ok_or_else(|| format!("there is no {}", recipe.file))?;
        *content = with_line(std::str::from_utf8(content)?, recipe)?.into_bytes();
    }
    for (path, content) in &sources {
        put(&copy.join(path), content)?;
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--locked", "--quiet", "--package", "plca-cli"])
        .args(python.map_or(&[][..], |_| &["--package", "plca-python"]))
        // It fits a graph of six nodes: nothing is worth optimising.
        .args(["--config", "profile.dev.opt-level=0"])
        .args(["--config", "profile.dev.package.'*'.opt-level=0"])
        .args(["--config", "profile.dev.package.plca-tensor.opt-level=0"])
        .current_dir(&copy)
        .env("CARGO_TARGET_DIR", copy.join("target"))
        .status()?;
    if !built.success() {
        return Err("the copy of the workspace does not build".into());
    }
    let command = known(&copy)?;
    let Some(python) = python else {
        return Ok(command);
    };
    let built = copy.join("target/debug");
    let modules = ["lib_core.so", "lib_core.dylib"].map(|name| built.join(name));
    let module = modules.iter().find(|path| path.exists());
    let module = module.ok_or("the extension module was not built")?;
    fs::copy(module, copy.join("python/plcakit/_core.abi3.so"))?;
    let ran = Command::new(python)
        .args(["-c", BY_PYTHON])
        .current_dir(&copy)
        .env("PYTHONPATH", copy.join("python"))
        .status()?;
    Ok(command && ran.success())
}

fn counted(files: usize) -> String {
    match files {
        1 => "one file".into(),
        n => format!("a folder of {n} files"),
    }
}

/// Whether the command of the copy shows in its help and its files what was added.
fn known(copy: &Path) -> Result<bool> {
    let plca = copy.join("target/debug/plca");
    let plca = plca.to_str().ok_or("the path of the copy is not text")?;
    let call = |line: &str| -> Result<String> {
        let arguments: Vec<&str> = line.split(' ').collect();
        Ok(String::from_utf8(output(copy, plca, &arguments)?)?)
    };
    let edges = "0,9,8,1,0,0\n9,0,7,0,1,0\n8,7,0,0,0,1\n1,0,0,0,9,6\n0,1,0,9,0,8\n0,0,1,6,8,0\n";
    put(&copy.join("graph.csv"), edges.as_bytes())?;
    call(
        "fit communities graph.csv --rank 2 --prior members=first-row:0.5 --solver overrelaxed --output m.npz --quiet",
    )?;
    let (help, file) = (call("fit --help")?, call("inspect m.npz --json")?);
    let mut all = true;
    for (text, what) in [(&help, "the help"), (&file, "the model file")] {
        for name in ["communities", "first-row", "overrelaxed"] {
            if !text.contains(name) {
                eprintln!("{what} does not name {name}");
                all = false;
            }
        }
    }
    call("reconstruct m.npz --output r.npy")?;
    Ok(all)
}
