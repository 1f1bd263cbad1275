//! `plca report`: a fit as one page of HTML.

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::args::ReportArgs;
use crate::components::{Components, Fit};
use crate::failure::Failure;
use crate::interrupt;
use crate::models::options::takes;
use crate::named::{self, is_axis, labels, names, printed};
use crate::outputs::{distinct, writable};

/// Components that a page shows.
const MOST_COMPONENTS: usize = 64;
/// Points of a curve: of more, the largest of each stretch.
const MOST_POINTS: usize = 500;
/// Rows and columns of a picture: larger ones are averaged.
const MOST_PIXELS: usize = 48;
/// Extent of a curve.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 80.0;

const STYLE: &str = ":root{color-scheme:light dark;--ink:#1b1b1f;--soft:#6b6b76;--line:#d8d8de;--paper:#fff;--mark:#2563a8;--other:#b4521c}
@media(prefers-color-scheme:dark){:root{--ink:#e7e7ea;--soft:#9b9ba6;--line:#3a3a42;--paper:#17171a;--mark:#7db4ee;--other:#f0a274}}
body{background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif;max-width:68rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;border-bottom:1px solid var(--line);margin-top:2rem}h3{font-size:.95rem;margin:0 0 .3rem}
table{border-collapse:collapse}td{padding:.1rem .8rem .1rem 0;vertical-align:top;overflow-wrap:anywhere}td:first-child{color:var(--soft);white-space:nowrap}
.all{display:grid;grid-template-columns:repeat(auto-fill,minmax(19rem,1fr));gap:1rem}.one{border:1px solid var(--line);border-radius:6px;padding:.6rem .8rem}
svg{width:100%;height:auto;display:block}path{fill:none;stroke:var(--mark);stroke-width:1.2;vector-effect:non-scaling-stroke}path.other{stroke:var(--other)}rect.bar{fill:var(--mark)}rect.on{fill:var(--mark)}rect.off{fill:var(--other)}
.soft{color:var(--soft);font-size:.85rem}.word{display:grid;grid-template-columns:9rem 1fr;gap:.5rem;align-items:center;font-size:.88rem}.word span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.word i{display:block;height:.6rem;background:var(--mark);border-radius:2px}.word i.other{background:var(--other)}";

pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    writable(&args.output, &["html"])?;
    let inputs = [
        ("the model", Some(&args.model)),
        ("--labels", args.labels.as_ref()),
        ("--trace", args.trace.as_ref()),
    ];
    distinct(&inputs, &[("--output", Some(&args.output))])?;
    let fit = Fit::read(&args.model)?;
    let labels = args.labels.as_deref().map(labels).transpose()?.map(printed);
    let page = page(args, &fit, labels.as_deref())?;
    let write = |w: &mut dyn std::io::Write| w.write_all(page.as_bytes());
    Ok(interrupt::writing(|| {
        plca_io::write_atomically(&args.output, |w| write(w))
    })?)
}

fn page(args: &ReportArgs, fit: &Fit, labels: Option<&[String]>) -> Result<String, Failure> {
    let metadata = &fit.file.metadata;
    let (name, about) = (fit.kind.name, fit.kind.about);
    let title = format!("{name}, {} components", fit.rank);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1><p>{}</p>\n",
        escaped(about)
    );
    let facts = [
        "objective_name",
        "objective",
        "iterations",
        "stop_reason",
        "seed",
        "version",
    ];
    let facts = facts.iter().map(|&name| (name, &metadata[name]));
    let data = ["shape", "total", "sha256"];
    let data = data.iter().map(|&name| (name, &metadata["data"][name]));
    page.push_str("<h2>Fit</h2>");
    page.push_str(&table(facts));
    for warning in metadata["warnings"].as_array().into_iter().flatten() {
        _ = write!(page, "<p>Warning: {}</p>", shown(warning));
    }
    page.push_str("<h2>Data</h2>");
    page.push_str(&table(data));
    page.push_str("<h2>Configuration</h2>");
    let settings = metadata["settings"].as_object().into_iter().flatten();
    let own = |name: &str| takes(fit.kind, &format!("--{}", name.replace('_', "-")));
    let settings = settings.map(|(name, value)| (name.as_str(), value));
    page.push_str(&table(settings.filter(|(name, _)| own(name))));
    if let Some(path) = &args.trace {
        page.push_str("<h2>Trace</h2>");
        page.push_str(&trace(path)?);
    }
    let mut used = false;
    let named = labels.and_then(|labels| fit.named(labels.len()));
    let own = |name: &str, entries: &[usize]| match *entries {
        [n] if labels.is_none() => names(Some(fit.kind), &fit.file.metadata, name, n).map(printed),
        _ => None,
    };
    // The shapes of a posterior and its means have the same entries.
    let stem = |name: &str| name.strip_suffix("_shape").unwrap_or(name).to_string();
    for (name, array) in &fit.file.arrays {
        let Some(components) = fit.components(name) else {
            continue;
        };
        let extents = components.extents();
        if extents.is_empty() {
            _ = write!(page, "<h2>{}</h2>{}", escaped(name), bars(&array.values));
            continue;
        }
        let entries: &[usize] = match components.signed {
            true => &extents[..extents.len() - 1],
            false => &extents,
        };
        let of = |named: &String| stem(named) == stem(name) && *entries == [extents[0]];
        let words = labels.filter(|_| named.as_ref().is_some_and(of));
        used |= words.is_some();
        let kept = own(name, entries);
        let words = words.or(kept.as_deref());
        let shape: Vec<String> = array.shape.iter().map(usize::to_string).collect();
        _ = write!(
            page,
            "<h2>{} <span class=\"soft\">{}</span></h2><div class=\"all\">",
            escaped(name),
            shape.join(" × ")
        );
        for z in 0..fit.rank.min(MOST_COMPONENTS) {
            let drawn = component(&components, z, words, args.top);
            let called = named::component(metadata, z).map(|name| format!(" {}", escaped(&name)));
            let called = called.unwrap_or_default();
            _ = write!(page, "<div class=\"one\"><h3>{z}{called}</h3>{drawn}</div>");
        }
        page.push_str("</div>");
        if fit.rank > MOST_COMPONENTS {
            _ = write!(
                page,
                "<p class=\"soft\">The first {MOST_COMPONENTS} of {}.</p>",
                fit.rank
            );
        }
    }
    if let (Some(path), Some(labels), false) = (&args.labels, labels, used) {
        let what = format!(
            "has {} lines, which fits no block of {name}: expected one line for each row of the data, or for each word of a topic",
            labels.len()
        );
        return Err(Failure::of(path, what));
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

/// Names and values; what is not set is left out.
fn table<'a>(rows: impl Iterator<Item = (&'a str, &'a Value)>) -> String {
    let set = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(values) => !values.is_empty(),
        _ => true,
    };
    let rows = rows.filter(|(_, value)| set(value));
    let rows = rows.map(|(name, value)| {
        format!(
            "<tr><td>{}</td><td>{}</td></tr>",
            escaped(name),
            shown(value)
        )
    });
    format!("<table>{}</table>", rows.collect::<String>())
}

fn shown(value: &Value) -> String {
    escaped(&value.as_str().map_or(value.to_string(), str::to_string))
}

/// A text without what HTML would obey.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// One component: its largest entries by name, a curve, or a picture.
fn component(all: &Components<'_>, z: usize, words: Option<&[String]>, top: usize) -> String {
    let mut values = all.get(z);
    let mut extents = all.extents();
    let mut sides = vec![values.clone()];
    if all.signed {
        extents.pop();
        let side = |s| values.iter().skip(s).step_by(2).copied().collect();
        sides = vec![side(0), side(1)];
        let pairs = values.chunks_exact(2);
        values = pairs.map(|pair| pair[0] - pair[1]).collect();
    }
    // Over an axis, such as one of wavelengths, a component is a curve.
    if let Some(words) = words.filter(|words| !is_axis(words)) {
        return largest(&values, words, top);
    }
    extents.retain(|&n| n > 1);
    match extents[..] {
        [] | [_] => curves(&sides),
        [rows, ref rest @ ..] => picture(&values, (rows, rest.iter().product())),
    }
}

/// The largest entries by name, negative ones in another colour.
fn largest(values: &[f64], words: &[String], top: usize) -> String {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].abs().total_cmp(&values[a].abs()));
    let most = order.first().map_or(0.0, |&at| values[at].abs());
    let rows = order.into_iter().take(top).map(|at| {
        let (word, value) = (escaped(&words[at]), values[at]);
        let width = if most > 0.0 { 100.0 * value.abs() / most } else { 0.0 };
        let class = if value < 0.0 { " class=\"other\"" } else { "" };
        format!(
            "<div class=\"word\" title=\"{value:.4e}\"><span>{word}</span><i{class} style=\"width:{width:.1}%\"></i></div>"
        )
    });
    rows.collect()
}

/// A number of few characters, whatever its size.
fn short(x: f64) -> String {
    match x == 0.0 || (1e-3..1e5).contains(&x.abs()) {
        true => format!("{x:.4}"),
        false => format!("{x:.3e}"),
    }
}

/// Horizontal bars, one per component.
fn bars(values: &[f64]) -> String {
    let labels: Vec<String> = (0..values.len())
        .map(|z| format!("{z}: {}", short(values[z])))
        .collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.truncate(MOST_COMPONENTS);
    let most = values.iter().copied().fold(0.0, f64::max);
    let rows = order.into_iter().map(|z| {
        let width = if most > 0.0 {
            100.0 * values[z].max(0.0) / most
        } else {
            0.0
        };
        format!(
            "<div class=\"word\"><span>{}</span><i style=\"width:{width:.1}%\"></i></div>",
            labels[z]
        )
    });
    rows.collect()
}

/// Curves over an index, in one scale.
fn curves(all: &[Vec<f64>]) -> String {
    let points: Vec<Vec<(f64, f64)>> = all.iter().map(|values| thinned(values)).collect();
    drawn(&points, &["", "other"])
}

/// Index and value; of more than fit on a page the largest of each stretch.
fn thinned(values: &[f64]) -> Vec<(f64, f64)> {
    let stretch = values.len().div_ceil(MOST_POINTS).max(1);
    let parts = values.chunks(stretch).enumerate();
    let largest = |part: &[f64]| part.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    parts
        .map(|(at, part)| ((at * stretch) as f64, largest(part)))
        .collect()
}

/// Curves through points, as large as they fit.
fn drawn(curves: &[Vec<(f64, f64)>], classes: &[&str]) -> String {
    let finite = || {
        curves
            .iter()
            .flatten()
            .filter(|(x, y)| x.is_finite() && y.is_finite())
    };
    let range = |of: fn(&(f64, f64)) -> f64| {
        let ends = finite().map(of);
        ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| {
            (a.min(x), b.max(x))
        })
    };
    let ((left, right), (low, high)) = (range(|p| p.0), range(|p| p.1));
    let place = |x: f64, (a, b): (f64, f64), extent: f64| match b > a {
        true => (x - a) / (b - a) * extent,
        false => extent / 2.0,
    };
    let mut svg = format!(
        "<svg viewBox=\"0 -2 {WIDTH} {}\" role=\"img\">",
        HEIGHT + 4.0
    );
    for (at, curve) in curves.iter().enumerate() {
        let mut path = String::new();
        for &(x, y) in curve.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
            let x = place(x, (left, right), WIDTH);
            let y = HEIGHT - place(y, (low, high), HEIGHT);
            let command = if path.is_empty() { 'M' } else { 'L' };
            _ = write!(path, "{command}{x:.1} {y:.1}");
        }
        let class = classes[at % classes.len()];
        _ = write!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
    }
    svg.push_str("</svg>");
    if low.is_finite() {
        _ = write!(
            svg,
            "<div class=\"soft\">{} to {}</div>",
            short(low),
            short(high)
        );
    }
    svg
}

/// A picture: the stronger a cell, the more opaque; negative ones in another colour.
fn picture(values: &[f64], (rows, columns): (usize, usize)) -> String {
    let (down, across) = (rows.div_ceil(MOST_PIXELS), columns.div_ceil(MOST_PIXELS));
    let (height, width) = (rows.div_ceil(down), columns.div_ceil(across));
    let cell = |i: usize, j: usize| {
        let rows = i * down..((i + 1) * down).min(rows);
        let columns_of = || j * across..((j + 1) * across).min(columns);
        let cells = rows.flat_map(|i| columns_of().map(move |j| values[i * columns + j]));
        let cells: Vec<f64> = cells.collect();
        cells.iter().sum::<f64>() / cells.len() as f64
    };
    let cells: Vec<f64> = (0..height)
        .flat_map(|i| (0..width).map(move |j| (i, j)))
        .map(|(i, j)| cell(i, j))
        .collect();
    let most = cells.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" shape-rendering=\"crispEdges\" style=\"max-height:16rem\">"
    );
    for (at, &value) in cells.iter().enumerate() {
        let strength = if most > 0.0 { value.abs() / most } else { 0.0 };
        if strength >= 0.01 {
            let class = if value < 0.0 { "off" } else { "on" };
            _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"1\" height=\"1\" opacity=\"{strength:.2}\"/>",
                at % width,
                at / width
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

/// The objective by iteration, a curve for each start.
fn trace(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = plca_io::open_file(path)?.read_to_string(&mut text);
    read.map_err(|e| Failure::by(path, e))?;
    let mut starts: Vec<(Value, Vec<(f64, f64)>)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let point: Value = serde_json::from_str(line).unwrap_or_default();
        let number = |name: &str| point[name].as_f64();
        let (Some(x), Some(y)) = (number("iteration"), number("objective")) else {
            let what = format!(
                "line {}: expected a JSON line with iteration and objective, as plca fit --trace writes it",
                at + 1
            );
            return Err(Failure::of(path, what));
        };
        if starts
            .last()
            .is_none_or(|(start, _)| *start != point["start"])
        {
            starts.push((point["start"].clone(), Vec::new()));
        }
        if let Some((_, points)) = starts.last_mut() {
            points.push((x, y));
        }
    }
    let mut ends = String::new();
    for (start, points) in &starts {
        if let Some((iteration, objective)) = points.last() {
            let start = shown(start);
            _ = write!(
                ends,
                "<tr><td>start {start}</td><td>{iteration} iterations</td><td>{objective}</td></tr>"
            );
        }
    }
    let curves: Vec<_> = starts.into_iter().map(|(_, points)| points).collect();
    let curves = drawn(&curves, &[""]);
    Ok(format!(
        "<div style=\"max-width:36rem\">{curves}</div><table>{ends}</table>"
    ))
}
