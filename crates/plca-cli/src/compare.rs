//! `plca compare`: two fits of one model, component by component.

use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;
use serde_json::{Map, Value, json};

use crate::args::CompareArgs;
use crate::components::Fit;
use crate::failure::{Failure, printable};
use crate::named::{self, dimension};
use crate::outputs::{print, warn};

/// Cosines as whole numbers, which the assignment adds without rounding.
const UNIT: f64 = (1u64 << 40) as f64;

/// Compares two fits. Components are matched so that the sum of their cosines is largest.
pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let (a, b) = (Fit::read(&args.a)?, Fit::read(&args.b)?);
    let of_a = |what: String| Failure::of(&args.a, what);
    let other = args.b.display();
    if a.kind.name != b.kind.name {
        let (here, there) = (a.kind.name, b.kind.name);
        return Err(of_a(format!(
            "is a fit of {here}, {other} of {there}: expected two fits of one model"
        )));
    }
    let (blocks, left_out) = blocks(&a, &b);
    let named = [&a, &b].map(|fit| {
        blocks
            .iter()
            .find(|block| names(fit, &block.name).is_some())
    });
    let alone = match named {
        [Some(block), None] => Some((&args.a, &args.b, block)),
        [None, Some(block)] => Some((&args.b, &args.a, block)),
        _ => None,
    };
    if let Some((with, without, block)) = alone {
        let what = format!(
            "the entries of {} have names in {}, but not in {}: their order is taken for the same",
            block.name,
            with.display(),
            without.display()
        );
        warn(false, &[what]);
    }
    if blocks.is_empty() {
        return Err(of_a(format!(
            "no block has components of the same size and names as {other}: expected two fits of data of one shape"
        )));
    }
    let similar = |z: usize, y: usize| {
        let cosines = blocks.iter().map(|block| cosine(&block.a[z], &block.b[y]));
        cosines.sum::<f64>() / blocks.len() as f64
    };
    let pairs = matched(a.rank, b.rank, similar).map_err(Failure::new)?;
    let cosines: Vec<f64> = pairs.iter().map(|&(z, y)| similar(z, y)).collect();
    let described = pairs.iter().zip(&cosines).map(|(&(z, y), whole)| {
        let each = blocks.iter();
        let each = each.map(|block| {
            let cosine = cosine(&block.a[z], &block.b[y]);
            (block.name.clone(), json!(cosine))
        });
        json!({ "a": z, "b": y, "cosine": whole, "blocks": each.collect::<Map<_, _>>() })
    });
    let (then, now) = (&a.file.metadata, &b.file.metadata);
    let objective = [then, now].map(|of| of["objective"].as_f64());
    let summary = json!({
        "model": a.kind.name,
        "rank": [a.rank, b.rank],
        "objective_name": [then["objective_name"], now["objective_name"]],
        "objective": objective,
        "objective_difference": objective[0].zip(objective[1]).map(|(a, b)| b - a),
        "iterations": [then["iterations"], now["iterations"]],
        "left_out": left_out,
        "same_data": then["data"]["sha256"] == now["data"]["sha256"],
        "settings": other_settings(&then["settings"], &now["settings"]),
        "mean_cosine": cosines.iter().sum::<f64>() / cosines.len() as f64,
        "least_cosine": cosines.iter().copied().fold(f64::INFINITY, f64::min),
        "pairs": described.collect::<Vec<_>>(),
    });
    match args.json {
        true => print(&format!("{}\n", printable(&summary.to_string()))),
        false => print(&text(&summary)),
    }
}

/// A block of both files, component by component.
struct Both {
    name: String,
    a: Vec<Vec<f64>>,
    b: Vec<Vec<f64>>,
}

/// The blocks whose components can be compared: of the same names, where both files have names, otherwise of one shape, and more than a number each. Also
/// those that cannot.
fn blocks(a: &Fit, b: &Fit) -> (Vec<Both>, Vec<String>) {
    let (mut both, mut left_out) = (Vec::new(), Vec::new());
    for name in a.kind.blocks(a.order()) {
        let (Some(left), Some(right)) = (a.components(&name), b.components(&name)) else {
            continue;
        };
        let (extents, others) = (left.extents(), right.extents());
        if extents.iter().product::<usize>() <= 1 {
            continue;
        }
        // The places in `b` of the entries of `a`.
        let places = match (names(a, &name), names(b, &name)) {
            (Some(here), Some(there)) if here != there => named::order(&here, &there).ok(),
            _ => Some((0..extents[0]).collect()),
        };
        let places = places.filter(|places| extents == others && places.len() == extents[0]);
        let Some(places) = places else {
            left_out.push(name);
            continue;
        };
        let inner: usize = extents[1..].iter().product();
        let placed = |component: Vec<f64>| -> Vec<f64> {
            let rows = places
                .iter()
                .map(|&i| &component[i * inner..(i + 1) * inner]);
            rows.flatten().copied().collect()
        };
        both.push(Both {
            a: (0..a.rank).map(|z| left.get(z)).collect(),
            b: (0..b.rank).map(|y| placed(right.get(y))).collect(),
            name,
        });
    }
    (both, left_out)
}

/// What the entries of a block are called.
fn names(fit: &Fit, block: &str) -> Option<Vec<String>> {
    let metadata = &fit.file.metadata;
    named::of(metadata, dimension(fit.kind, &metadata["settings"], block)?)
}

/// The cosine of two components; 0 where one of them is zero.
fn cosine(a: &[f64], b: &[f64]) -> f64 {
    // Squares of the largest numbers would overflow.
    let scaled = |x: &[f64]| -> Vec<f64> {
        let largest = x.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let scale = if largest > 0.0 { largest } else { 1.0 };
        x.iter().map(|x| x / scale).collect()
    };
    let (a, b) = (scaled(a), scaled(b));
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let length = (dot(&a, &a) * dot(&b, &b)).sqrt();
    if length > 0.0 {
        dot(&a, &b) / length
    } else {
        0.0
    }
}

/// Pairs of components, each in one pair at most, with the largest sum of similarities.
fn matched(
    a: usize,
    b: usize,
    similar: impl Fn(usize, usize) -> f64,
) -> Result<Vec<(usize, usize)>, String> {
    let (few, many) = (a.min(b), a.max(b));
    let cells = (0..few).flat_map(|z| (0..many).map(move |y| (z, y)));
    let weights = cells.map(|(z, y)| {
        let cosine = if a <= b { similar(z, y) } else { similar(y, z) };
        (cosine * UNIT).round() as i64
    });
    let weights = Matrix::from_vec(few, many, weights.collect());
    let (_, partners) = kuhn_munkres(&weights.map_err(|e| e.to_string())?);
    let pairs = partners.into_iter().enumerate();
    let mut pairs: Vec<_> = pairs
        .map(|(z, y)| if a <= b { (z, y) } else { (y, z) })
        .collect();
    pairs.sort_unstable();
    Ok(pairs)
}

/// Settings that differ, with both values.
fn other_settings(a: &Value, b: &Value) -> Value {
    let names = a.as_object().into_iter().chain(b.as_object());
    let names = names.flat_map(Map::keys).filter(|&name| a[name] != b[name]);
    let settings = names.map(|name| (name.clone(), json!([a[name], b[name]])));
    Value::Object(settings.collect())
}

/// The comparison for a person.
fn text(summary: &Value) -> String {
    let mut text = String::new();
    for (name, value) in summary.as_object().into_iter().flatten() {
        if let "pairs" | "settings" = name.as_str() {
            continue;
        }
        let value = match value {
            Value::Array(values) if values.is_empty() => continue,
            Value::Array(values) => {
                let values: Vec<String> = values.iter().map(shown).collect();
                values.join("  ")
            }
            value => shown(value),
        };
        text.push_str(&format!("{name:>20}  {value}\n"));
    }
    for (name, values) in summary["settings"].as_object().into_iter().flatten() {
        let (a, b) = (shown(&values[0]), shown(&values[1]));
        text.push_str(&format!("{:>20}  {a}  {b}\n", printable(name)));
    }
    for pair in summary["pairs"].as_array().into_iter().flatten() {
        let blocks = pair["blocks"].as_object().into_iter().flatten();
        let blocks: Vec<String> = blocks
            .map(|(name, cosine)| format!("{name} {:.4}", cosine.as_f64().unwrap_or(f64::NAN)))
            .collect();
        let (a, b, cosine) = (&pair["a"], &pair["b"], &pair["cosine"]);
        let cosine = cosine.as_f64().unwrap_or(f64::NAN);
        let pair = format!("component {a} is {b}");
        text.push_str(&format!(
            "{pair:>20}  cosine {cosine:.4}: {}\n",
            blocks.join(", ")
        ));
    }
    text
}

/// A value of the metadata for a person.
fn shown(value: &Value) -> String {
    printable(&value.as_str().map_or(value.to_string(), str::to_string))
}
