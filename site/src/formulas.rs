//! Formulas: LaTeX of blocks ```` ```math ```` becomes MathML, which browsers draw without scripts.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
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
    let events = events
        .into_iter()
        .map(Ok::<_, std::convert::Infallible>);
    push_mathml(&mut html, events, config)?;
    Ok(html.split_whitespace().collect::<Vec<_>>().join(" "))
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

/// The style sheet and the fonts of the package that renders formulas, from where Cargo keeps it.
pub(crate) fn style(out: &Path) -> Result<()> {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
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
    std::fs::copy(folder.join("styles.css"), to.join("styles.css"))?;
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
    fn what_is_no_formula_is_named_with_its_place() {
        for page in ["b\n```math\n\\frac{a\n```\n", "b\n```math\na\n", "b\n$$ a $$\n"] {
            let error = render(Path::new("docs/A.md"), page).unwrap_err();
            assert!(format!("{error:#}").contains("docs/A.md:2"), "{error:#}");
        }
    }
}
