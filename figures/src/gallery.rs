//! The gallery: one self-contained page, each figure beside its criteria.

use std::fmt::Write as _;

use crate::report::{Counts, Outcome, Report};

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
.pass{background:#1a7f37}.fail{background:#cf222e}.reported{background:#6e7781}.missing{color:#9a6700}
nav a{margin-right:.5rem}nav a.failed{color:#cf222e}
code{font-size:.85em;overflow-wrap:anywhere}a{color:#0969da}
";

/// Text that is safe between tags and in attributes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The whole page.
pub(crate) fn page(report: &Report) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>Reproduced figures</title><style>{STYLE}</style></head><body><main>\
         <h1>Reproduced figures</h1><p>{}.</p><p class=\"soft\">{}</p>\n",
        escape(&report.counts.text()),
        escape(&report.origin.text())
    );
    contents(&mut html, &report.figures);
    for figure in &report.figures {
        section(&mut html, figure);
    }
    html.push_str("</main></body></html>\n");
    html
}

/// What a source begins with, `SI` of `[SI] figure 1`.
fn paper(figure: &Outcome) -> &str {
    let tag = figure.source.strip_prefix('[').unwrap_or_default();
    tag.split([' ', ']']).next().unwrap_or_default()
}

/// Links to the figures, those of a paper on one line.
fn contents(html: &mut String, figures: &[Outcome]) {
    html.push_str("<nav>");
    for group in figures.chunk_by(|a, b| paper(a) == paper(b)) {
        let name = match paper(&group[0]) {
            "" => "others".into(),
            "EXT" => "[EXT] what the papers name as future work".into(),
            tag => format!("[{tag}]"),
        };
        let failed = |f: &&Outcome| Counts::of(&f.rows).failed > 0;
        let links = group.iter().map(|f| {
            let mark = if failed(&f) { " class=\"failed\"" } else { "" };
            format!("<a href=\"#{0}\"{mark}>{0}</a>", f.figure)
        });
        let links: Vec<String> = links.collect();
        let _ = writeln!(html, "<p>{}: {}</p>", escape(&name), links.join(" "));
    }
    html.push_str("</nav>\n");
}

fn section(html: &mut String, figure: &Outcome) {
    // Writing to a string cannot fail.
    let _ = write!(
        html,
        "<section id=\"{0}\"><h2>{1}</h2><p class=\"soft\">{2} &middot; <code>{0}</code> &middot; {3} &middot; {4:.1} s</p><p>{5}</p>",
        figure.figure,
        escape(figure.title),
        escape(figure.source),
        escape(&Counts::of(&figure.rows).text()),
        figure.seconds,
        escape(figure.criterion)
    );
    for file in &figure.not_found {
        let _ = write!(
            html,
            "<p class=\"missing\">not found: <code>{}</code>: generated data instead, or nothing</p>",
            escape(file)
        );
    }
    let mut files: Vec<&String> = Vec::new();
    for file in figure.rows.iter().flat_map(|row| &row.files) {
        if !files.contains(&file) {
            files.push(file);
        }
    }
    for stem in files.iter().filter_map(|f| f.strip_suffix(".png")) {
        let _ = write!(
            html,
            "<a href=\"{stem}.svg\"><img src=\"{stem}.png\" loading=\"lazy\" alt=\"{}\"></a>",
            escape(&format!("{}: {}", figure.source, figure.title))
        );
    }
    html.push_str(
        "<table><thead><tr><th>criterion</th><th>measured</th><th>must be</th><th>paper</th><th>data</th><th></th></tr></thead><tbody>",
    );
    for row in &figure.rows {
        let limit = row.condition.map(|c| c.text()).unwrap_or_default();
        let paper = row.reference.as_ref().map(|r| r.text());
        let sum = row.data.sha256.as_deref().unwrap_or_default();
        let _ = write!(
            html,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"soft\" title=\"sha256 {sum}\">{}</td>\
             <td><span class=\"b {5}\">{5}</span></td></tr>",
            escape(&row.criterion),
            escape(&row.measured()),
            escape(&limit),
            escape(&paper.unwrap_or_default()),
            escape(&row.data.origin()),
            row.verdict.name()
        );
    }
    let links: Vec<_> = (files.iter())
        .map(|f| format!("<a href=\"{f}\">{f}</a>"))
        .collect();
    let _ = writeln!(
        html,
        "</tbody></table><p class=\"soft\">{}</p></section>",
        links.join(" ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Data, Entry, Origin};
    use crate::reproduce::Size;

    #[test]
    fn markup_in_text_is_escaped() {
        assert_eq!(escape("a<b & \"c\""), "a&lt;b &amp; &quot;c&quot;");
    }

    #[test]
    fn rows_have_their_badges_and_a_picture_is_there_once() {
        let data = Data::generated("a & b");
        let files = ["f.png".to_owned(), "f.svg".to_owned()];
        let row = |x| Entry::number("c", x, &data, &files);
        let outcome = Outcome {
            figure: "f",
            source: "[X]",
            title: "t",
            criterion: "c",
            seconds: 1.0,
            not_found: vec!["set/file".into()],
            rows: vec![
                row(0.0).below(1.0).paper(0.5, "table 1"),
                row(2.0).below(1.0),
                row(3.0),
            ],
        };
        let report = Report {
            origin: Origin::here(Size::Quick, 3, true),
            counts: Counts::of(&outcome.rows),
            figures: vec![outcome],
        };
        let page = page(&report);
        for part in [
            "1 of 2 criteria",
            "b pass",
            "b fail",
            "b reported",
            "&lt; 1",
            "0.5, table 1",
            "generated: a &amp; b",
            "not found: <code>set/file",
            "quick run, seed 3",
            "<p>[X]: <a href=\"#f\" class=\"failed\">f</a></p>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert_eq!(page.matches("<img").count(), 1);
    }
}
