//! Formulas of the documentation: what is marked as mathematics must be LaTeX that can be rendered.

use pulldown_latex::{Parser, Storage};

use super::documentation;

/// Commands that LaTeX and KaTeX know and GitHub refuses.
const REFUSED: [&str; 3] = [r"\mbox", r"\operatorname", r"\phantom"];

/// What is wrong with one formula. The parser knows some symbols that KaTeX does not: a page shows those in red.
fn fault(latex: &str) -> Option<String> {
    if let Some(command) = REFUSED.iter().find(|command| latex.contains(**command)) {
        return Some(format!("GitHub does not render {command}"));
    }
    let storage = Storage::new();
    let error = Parser::new(latex, &storage).find_map(Result::err)?;
    // The other lines draw where it is.
    error.to_string().lines().next().map(str::to_owned)
}

/// A block between fences.
pub(super) struct Block {
    /// The line that it begins in.
    pub(super) from: usize,
    formula: bool,
    pub(super) text: String,
    closed: bool,
}

impl Block {
    pub(super) fn is_formula(&self) -> bool {
        self.formula
    }
}

pub(super) fn blocks(path: &str, content: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (n, line) in (1..).zip(content.lines()) {
        let Some(text) = documentation(path, line) else {
            open = false;
            continue;
        };
        let last = blocks.last_mut().filter(|_| open);
        match (text.trim().strip_prefix("```"), last) {
            (None, Some(block)) => {
                block.text.push_str(text);
                block.text.push('\n');
            }
            (None, None) => {}
            (Some(""), Some(block)) => {
                block.closed = true;
                open = false;
            }
            (Some(language), _) => {
                blocks.push(Block {
                    from: n,
                    formula: language == "math",
                    text: String::new(),
                    closed: false,
                });
                open = true;
            }
        }
    }
    blocks
}

/// Everything wrong with the formulas of one tracked text file.
pub(super) fn wrong(path: &str, content: &str) -> Vec<String> {
    let formulas = blocks(path, content).into_iter().filter(|b| b.formula);
    let faulty = formulas.filter_map(|block| {
        let fault = match block.closed {
            true => fault(&block.text)?,
            false => "a formula without an end".into(),
        };
        Some(format!("{path}:{}: {fault}", block.from))
    });
    faulty.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A doc comment with a block of this language.
    fn commented(language: &str, lines: &[&str]) -> String {
        let lines = lines.iter().map(|line| format!("    /// {line}\n"));
        let lines: String = lines.collect();
        format!("/// A function.\n    /// ```{language}\n{lines}    /// ```\nfn f() {{}}\n")
    }

    fn in_source(content: &str) -> Vec<String> {
        wrong("crates/a/src/b.rs", content)
    }

    #[test]
    fn sound_formulas_pass() {
        let lines = [
            r"\begin{aligned}",
            r"P(x) &= \sum_z P(z) \prod_j P(x_j \mid z) \\",
            r"T^\pm &\gets \mathrm{norm} \left( T^\pm \circ G^\pm H^\top \right), \qquad L_\text{old} \le \tfrac{1}{2} \lVert \hat\alpha \rVert^2",
            r"\end{aligned}",
        ];
        assert_eq!(in_source(&commented("math", &lines)), [""; 0]);
        let document = format!("# A\n\n```math\n{}\n```\n", lines.join("\n"));
        assert_eq!(wrong("docs/A.md", &document), [""; 0]);
    }

    #[test]
    fn broken_formulas_are_found() {
        for broken in [
            r"\frac{a}{b",
            r"\frac{a}",
            r"a}",
            r"a^b^c",
            r"\summ_z P(z)",
            r"\begin{aligned} a &= b",
            r"\begin{aligned} a &= b \end{align}",
            r"\left( a",
            r"a &= b",
            r"a \\ b",
            r"\operatorname{Sk}(v)",
        ] {
            let found = in_source(&commented("math", &[broken]));
            assert_eq!(found.len(), 1, "{broken}: {found:?}");
            assert!(found[0].starts_with("crates/a/src/b.rs:2: "), "{found:?}");
            let document = format!("```sh\nls\n```\n\n```math\n{broken}\n```\n");
            let found = wrong("docs/A.md", &document);
            assert_eq!(found.len(), 1, "{broken}: {found:?}");
            assert!(found[0].starts_with("docs/A.md:5: "), "{found:?}");
        }
    }

    #[test]
    fn formulas_without_an_end_are_found() {
        let sound = commented("math", &["a"]);
        let open = sound.replacen("    /// ```\n", "", 1);
        let found = in_source(&format!("{open}{sound}"));
        assert_eq!(found, ["crates/a/src/b.rs:2: a formula without an end"]);
        assert_eq!(wrong("docs/A.md", "```math\na\n").len(), 1);
        assert_eq!(
            wrong("docs/A.md", "```math\na\n\n```sh\nls\n```\n").len(),
            1
        );
    }

    #[test]
    fn other_blocks_are_not_read() {
        let broken = [r"\frac{a"];
        assert_eq!(in_source(&commented("text", &broken)), [""; 0]);
        assert_eq!(in_source(&commented("", &broken)), [""; 0]);
        let code = "let s = \"\n```math\n}\n```\n\";\n// ```math\n// }\n// ```\n";
        assert_eq!(in_source(code), [""; 0]);
    }
}
