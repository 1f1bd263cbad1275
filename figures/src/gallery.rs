//! The gallery: one self-contained page, each figure beside its criteria.

use std::fmt::Write as _;

use crate::figures::FIGURES;
use crate::reproduce::{Entry, Measured, Size};

const STYLE: &str = "
:root{color-scheme:light dark;--line:#d0d7de;--soft:#59636e;--card:#fff;--page:#f6f8fa;--ink:#1f2328}
@media(prefers-color-scheme:dark){:root{--line:#3d444d;--soft:#9198a1;--card:#151b23;--page:#0d1117;--ink:#f0f6fc}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:1180px;margin:0 auto;padding:2rem 1.2rem}
h1{margin:0 0 .2rem;font-size:1.7rem}h2{margin:0;font-size:1.2rem}
p{margin:.3rem 0}.soft{color:var(--soft)}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:1.2rem;margin:1.4rem 0}
img{display:block;width:100%;height:auto;margin:1rem 0;background:#fff;border-radius:6px}
table{width:100%;border-collapse:collapse}th,td{text-align:left;padding:.45rem .6rem;border-top:1px solid var(--line);vertical-align:top}
td.n{font-variant-numeric:tabular-nums}
.b{display:inline-block;padding:0 .6rem;border-radius:1rem;font-weight:600;font-size:.85rem;color:#fff}
.pass{background:#1a7f37}.fail{background:#cf222e}
code{font-size:.85em;overflow-wrap:anywhere}a{color:#0969da}
";

/// Text that is safe between tags and in attributes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A measured value for people.
pub(crate) fn text(measured: &Measured) -> String {
    match measured {
        Measured::Text(text) => text.clone(),
        Measured::Number(x) if *x != 0.0 && (x.abs() < 1e-3 || x.abs() >= 1e5) => {
            format!("{x:.2e}")
        }
        Measured::Number(0.0) => "0".into(),
        Measured::Number(x) => format!("{x:.4}"),
    }
}

/// The whole page.
pub(crate) fn page(entries: &[Entry], size: Size) -> String {
    let passed = entries.iter().filter(|e| e.pass).count();
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>Reproduced figures</title><style>{STYLE}</style></head><body><main>\
         <h1>Reproduced figures</h1><p class=\"soft\">{passed} of {} criteria hold{}.</p>\n",
        entries.len(),
        match size {
            Size::Quick => " (quick run)",
            Size::Usual => "",
            Size::Full => " (full run)",
        }
    );
    for figure in FIGURES {
        let mine: Vec<_> = entries.iter().filter(|e| e.figure == figure.name).collect();
        let Some(first) = mine.first() else { continue };
        // Writing to a string cannot fail.
        let _ = write!(
            html,
            "<section id=\"{0}\"><h2>{1}</h2><p class=\"soft\">{2} &middot; <code>{0}</code></p><p>{3}</p>",
            figure.name,
            escape(figure.title),
            escape(figure.source),
            escape(figure.criterion)
        );
        for picture in first.files.iter().filter(|f| f.ends_with(".png")) {
            let stem = picture.trim_end_matches(".png");
            let _ = write!(
                html,
                "<a href=\"{stem}.svg\"><img src=\"{picture}\" loading=\"lazy\" alt=\"{}\"></a>",
                escape(&format!("{}: {}", figure.source, figure.title))
            );
        }
        html.push_str(
            "<table><thead><tr><th>criterion</th><th>measured</th><th></th></tr></thead><tbody>",
        );
        for entry in &mine {
            let (class, word) = if entry.pass {
                ("pass", "pass")
            } else {
                ("fail", "fail")
            };
            let _ = write!(
                html,
                "<tr><td>{}</td><td class=\"n\">{}</td><td><span class=\"b {class}\">{word}</span></td></tr>",
                escape(&entry.criterion),
                escape(&text(&entry.measured))
            );
        }
        let links: Vec<_> = first
            .files
            .iter()
            .map(|f| format!("<a href=\"{f}\">{f}</a>"))
            .collect();
        let origin = match &first.data.sha256 {
            Some(sum) => format!("{} (sha256 <code>{sum}</code>)", escape(&first.data.name)),
            None => format!("generated: {}", escape(&first.data.name)),
        };
        let _ = writeln!(
            html,
            "</tbody></table><p class=\"soft\">data: {origin} &middot; seed {} &middot; {:.1} s &middot; {}</p></section>",
            first.seed,
            first.seconds,
            links.join(" ")
        );
    }
    html.push_str("</main></body></html>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_is_escaped() {
        assert_eq!(escape("a<b & \"c\""), "a&lt;b &amp; &quot;c&quot;");
    }

    #[test]
    fn small_numbers_are_not_rounded_to_zero() {
        assert_eq!(text(&Measured::Number(3.2e-10)), "3.20e-10");
        assert_eq!(text(&Measured::Number(2.0064)), "2.0064");
    }
}
