//! The documentation as a folder of pages, to open from disk or to serve: `cargo run --manifest-path tools/site/Cargo.toml`.
//!
//! `SUMMARY.md` lists the pages, which stay where they are in the repository: their links work on its host too. In the site a link to a file that
//! is no page of it leads to the host. A formula that cannot be rendered, a broken link and anything that would be loaded from a network end the
//! command with 1.

mod formulas;
mod links;
mod pages;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;

const USAGE: &str = "usage: plca-site [--out DIR] [--api DIR]

  --out DIR   where the site goes (target/site); an earlier site there is replaced
  --api DIR   pages of rustdoc to put into the site (what `cargo docs` writes: target/doc)";

struct Options {
    out: PathBuf,
    api: Option<PathBuf>,
}

fn options(root: &Path) -> Result<Options> {
    let mut options = Options {
        out: root.join("target/site"),
        api: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut folder = || arguments.next().map(PathBuf::from).context(USAGE);
        match name.as_str() {
            "--out" => options.out = std::path::absolute(folder()?)?,
            "--api" => options.api = Some(folder()?.canonicalize()?),
            _ => bail!(USAGE),
        }
    }
    Ok(options)
}

fn config(out: &Path) -> Result<Config> {
    let mut config = Config::default();
    let settings = serde_json::json!({
        "theme": "tools/site/theme",
        "default-theme": "light",
        "preferred-dark-theme": "navy",
        "additional-css": ["tools/site/theme/site.css"],
        "git-repository-url": env!("CARGO_PKG_REPOSITORY"),
        "smart-punctuation": false,
        "input-404": "",
        "no-section-label": true,
        "hash-files": false,
        "fold": { "enable": true, "level": 1 },
        "print": { "enable": false },
        "playground": { "runnable": false },
    });
    config.book.title = Some("plca".into());
    config.book.src = ".".into();
    config.build.build_dir = out.to_path_buf();
    config.build.create_missing = false;
    config.build.use_default_preprocessors = false;
    config.set("output.html", settings)?;
    config.set("preprocessor.index", serde_json::json!({}))?;
    Ok(config)
}

/// Removes the site that is there. A folder of anything else is left alone.
fn clear(out: &Path) -> Result<()> {
    if !out.exists() || out.read_dir()?.next().is_none() {
        return Ok(());
    }
    // The renderer puts it into every site.
    if !out.join(".nojekyll").is_file() {
        bail!(
            "{} is not an earlier site: expected an empty folder, or none",
            out.display()
        );
    }
    Ok(std::fs::remove_dir_all(out)?)
}

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let Options { out, api } = options(root)?;
    let summary = pages::summary(root)?;
    let mut book = MDBook::load_with_config_and_summary(root, config(&out)?, summary)?;
    let mut formulas = pages::prepare(root, &mut book)?;
    // Nothing but pages is copied by the renderer: what pages show is taken where links are followed.
    let empty = root.join("target/site-source");
    std::fs::create_dir_all(&empty)?;
    book.config.book.src = empty;
    clear(&out)?;
    book.build()?;
    formulas::style(&out)?;
    if let Some(api) = &api {
        formulas += pages::api(api, &out.join("api"), 1)?;
    }
    let report = links::follow(root, &out)?;
    println!(
        "{}: {} pages, {formulas} formulas, {} links within, {} to other places",
        out.join("index.html").display(),
        report.pages,
        report.within,
        report.elsewhere.len(),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_earlier_site_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("site");
        clear(&out).unwrap();
        std::fs::create_dir(&out).unwrap();
        clear(&out).unwrap();
        std::fs::write(out.join("thesis.txt"), "").unwrap();
        assert!(clear(&out).is_err() && out.join("thesis.txt").exists());
        std::fs::write(out.join(".nojekyll"), "").unwrap();
        clear(&out).unwrap();
        assert!(!out.exists());
    }
}
