//! Formulas: LaTeX of blocks ```` ```math ```` becomes MathML, which browsers draw without scripts.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use lol_html::html_content::ContentType;
use lol_html::{RewriteStrSettings, element, end_tag, rewrite_str, text};
use pulldown_latex::config::{DisplayMode, RenderConfig};
use pulldown_latex::{Parser, Storage, push_mathml};

/// One formula, in one line: in Markdown an empty line would end it.
fn mathml(latex: &str) -> Result<String> {
    let storage = Storage::new();
    let events = Parser::new(latex, &storage).collect::<Result<Vec<_>, _>>();
    let events = events.map_err(|error| anyhow::anyhow!("{error}"))?;
    let config = RenderConfig {
        display_mode: DisplayMode::Block,
        ..RenderConfig::default()
    };
    let mut html = String::new();
    let events = events.into_iter().map(Ok::<_, std::convert::Infallible>);
    push_mathml(&mut html, events, config)?;
    Ok(html.replace('\n', " "))
}

/// A page with its formulas rendered, and their number.
pub(crate) fn render(page: &Path, content: &str) -> Result<(String, usize)> {
    let mut rendered = String::with_capacity(content.len());
    let mut number = 0;
    // The first line of a formula, and its LaTeX; or whether another block is open.
    let mut formula: Option<(usize, String)> = None;
    let mut code = false;
    for (n, line) in (1..).zip(content.lines()) {
        let fence = line.trim_start().starts_with("```");
        match &mut formula {
            Some((from, latex)) if fence => {
                let made = mathml(latex)
                    .with_context(|| format!("{}:{from}: not rendered\n{latex}", page.display()))?;
                rendered.push_str(&format!("<div class=\"formula\">{made}</div>\n\n"));
                number += 1;
                formula = None;
            }
            Some((_, latex)) => {
                latex.push_str(line);
                latex.push('\n');
            }
            None if fence && !code && line.trim() == "```math" => {
                formula = Some((n, String::new()));
            }
            None => {
                code ^= fence;
                if !code && line.contains("$$") {
                    bail!("{}:{n}: formulas are blocks ```math", page.display());
                }
                rendered.push_str(line);
                rendered.push('\n');
            }
        }
    }
    if let Some((from, _)) = formula {
        bail!("{}:{from}: the formula does not end", page.display());
    }
    Ok((rendered, number))
}

/// Text of HTML as it is read.
fn unescaped(text: &str) -> String {
    let marks = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&amp;", "&"),
    ];
    marks.iter().fold(text.to_owned(), |text, (mark, read)| {
        text.replace(mark, read)
    })
}

/// A page of rustdoc with its formulas rendered, and without what would load a script for them; their number.
pub(crate) fn render_rustdoc(html: &str, depth: usize) -> Result<(String, usize)> {
    let style = format!(
        "<link rel=\"stylesheet\" href=\"{}formulas/styles.css\">",
        "../".repeat(depth)
    );
    let latex = Rc::new(RefCell::new(String::new()));
    let number = Rc::new(RefCell::new(0));
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(element!(
            "script[src^=https], link[href^=https]",
            |element| {
                element.remove();
                Ok(())
            }
        ))
        .append_element_content_handler(element!("head", |head| {
            head.append(&style, ContentType::Html);
            Ok(())
        }))
        .append_element_content_handler(text!("pre.language-math", |chunk| {
            latex.borrow_mut().push_str(chunk.as_str());
            chunk.remove();
            Ok(())
        }))
        .append_element_content_handler(element!("pre.language-math code", |code| {
            code.remove_and_keep_content();
            Ok(())
        }))
        .append_element_content_handler(element!("pre.language-math", |element| {
            element.remove_and_keep_content();
            let (latex, number) = (Rc::clone(&latex), Rc::clone(&number));
            element.on_end_tag(end_tag!(move |end| {
                let formula = mathml(&unescaped(&std::mem::take(&mut *latex.borrow_mut())))?;
                let formula = format!("<div class=\"formula\">{formula}</div>");
                end.before(&formula, ContentType::Html);
                *number.borrow_mut() += 1;
                Ok(())
            }))?;
            Ok(())
        }));
    let rendered = rewrite_str(html, settings)?;
    let number = *number.borrow();
    Ok((rendered, number))
}

/// The style sheet and the fonts of the package that renders formulas, from where Cargo keeps it.
pub(crate) fn style(out: &Path) -> Result<()> {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        // Packages of other platforms need not be here.
        .args(["--filter-platform", env!("TARGET")])
        .args([
            "--manifest-path",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        ])
        .output()?;
    if !metadata.status.success() {
        bail!("{}", String::from_utf8_lossy(&metadata.stderr));
    }
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == "pulldown-latex");
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let folder = PathBuf::from(manifest.context("pulldown-latex is not among the packages")?);
    let folder = folder.parent().context("a manifest lies in a folder")?;
    let to = out.join("formulas");
    std::fs::create_dir_all(to.join("font"))?;
    let mut style = std::fs::read_to_string(folder.join("styles.css"))?;
    // Aligned lines are formulas of their own: large sums, whole fractions. On a phone they scroll.
    style.push_str("\nmtable.menv-alignlike mtd { math-style: normal; }\n");
    style.push_str("mtext { white-space: nowrap; }\n");
    style.push_str(".formula { overflow-x: auto; overflow-y: hidden; margin: 1em 0; }\n");
    std::fs::write(to.join("styles.css"), style)?;
    for font in std::fs::read_dir(folder.join("font"))? {
        let font = font?;
        std::fs::copy(font.path(), to.join("font").join(font.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_rendered_and_code_is_not() {
        let page = "a\n\n```math\nP(x) = \\sum_z \\frac{a}{b}\n```\n\n```sh\n$$ ```math\n```\n";
        let (rendered, number) = render(Path::new("a.md"), page).unwrap();
        assert_eq!(number, 1);
        assert!(rendered.contains("<mfrac>") && !rendered.contains("\\frac"));
        assert!(rendered.contains("```sh\n$$ ```math\n```\n"));
    }

    #[test]
    fn pages_of_rustdoc_load_nothing() {
        let page = "<head><script src=\"https://a/b.js\"></script></head><pre class=\"language-math\"><code>a &lt; b</code></pre><pre>c</pre>";
        let (rendered, number) = render_rustdoc(page, 2).unwrap();
        assert_eq!(number, 1);
        assert!(
            rendered.contains("<math") && rendered.contains("<pre>c</pre>"),
            "{rendered}"
        );
        assert!(
            !rendered.contains("https://a") && !rendered.contains("language-math"),
            "{rendered}"
        );
        assert!(rendered.contains("href=\"../../formulas/styles.css\""));
    }

    #[test]
    fn what_is_no_formula_is_named_with_its_place() {
        for page in [
            "b\n```math\n\\frac{a\n```\n",
            "b\n```math\na\n",
            "b\n$$ a $$\n",
        ] {
            let error = render(Path::new("docs/A.md"), page).unwrap_err();
            assert!(format!("{error:#}").contains("docs/A.md:2"), "{error:#}");
        }
    }
}
