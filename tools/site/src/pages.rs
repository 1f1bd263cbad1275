//! Which pages there are, and what becomes of their text before it is rendered.

use std::path::Path;

use anyhow::{Context, Result, bail};
use mdbook_driver::MDBook;
use mdbook_driver::book::BookItem;
use mdbook_summary::{Summary, parse_summary};

use crate::formulas;

/// `SUMMARY.md`, whose links are from its own folder, as seen from the root.
pub(crate) fn summary(root: &Path) -> Result<Summary> {
    let file = root.join("tools/site/SUMMARY.md");
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    parse_summary(&text.replace("](../../", "]("))
}

/// A script of Python as a page: what it says of itself, its picture if there is one, and itself.
fn script(root: &Path, path: &Path, source: &str) -> Result<String> {
    let name = path.file_stem().and_then(|name| name.to_str());
    let name = name.with_context(|| path.display().to_string())?;
    let said = source
        .strip_prefix("\"\"\"")
        .and_then(|rest| rest.split_once("\"\"\""));
    let Some((said, _)) = said else {
        bail!("{}: a script begins with what it shows", path.display());
    };
    let (title, what) = said.split_once(':').unwrap_or((said, ""));
    let up = "../".repeat(path.components().count() - 1);
    let picture = format!("docs/figures/{name}.png");
    let picture = if root.join(&picture).exists() {
        format!("![{title}]({up}{picture})\n\n")
    } else {
        String::new()
    };
    // What follows the colon of its first line begins a sentence here.
    let mut letters = what.trim().chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let what: String = first.chain(letters).collect();
    let file = path.display();
    let argument = if source.contains("sys.argv") {
        " picture.png"
    } else {
        ""
    };
    Ok(format!(
        "# {title}\n\n{what}\n\n{picture}`python {file}{argument}`\n\n```python\n{source}```\n"
    ))
}

/// Scripts become pages, formulas are rendered; their number.
pub(crate) fn prepare(root: &Path, book: &mut MDBook) -> Result<usize> {
    let mut number = 0;
    let mut fault = None;
    book.book.for_each_chapter_mut(|chapter| {
        let Some(path) = chapter.path.clone() else {
            return;
        };
        if path.extension().is_some_and(|extension| extension == "py") {
            match script(root, &path, &chapter.content) {
                Ok(page) => chapter.content = page,
                Err(error) => fault = fault.take().or(Some(error)),
            }
        }
        match formulas::render(&path, &chapter.content) {
            Ok((content, formulas)) => {
                chapter.content = content;
                number += formulas;
            }
            Err(error) => fault = fault.take().or(Some(error)),
        }
    });
    let pages = book
        .iter()
        .filter(|item| matches!(item, BookItem::Chapter(_)));
    anyhow::ensure!(pages.count() > 0, "no pages");
    fault.map_or(Ok(number), Err)
}

/// The pages of rustdoc, `depth` folders below the site's root; the number of their formulas, which are rendered too.
pub(crate) fn api(from: &Path, to: &Path, depth: usize) -> Result<usize> {
    let mut number = 0;
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let from = entry?.path();
        let to = to.join(from.file_name().unwrap_or_default());
        if from.is_dir() {
            number += api(&from, &to, depth + 1)?;
        } else if from
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            let html = std::fs::read_to_string(&from)?;
            let (html, formulas) = formulas::render_rustdoc(&html, depth)
                .with_context(|| from.display().to_string())?;
            std::fs::write(to, html)?;
            number += formulas;
        } else {
            std::fs::copy(from, to)?;
        }
    }
    Ok(number)
}
