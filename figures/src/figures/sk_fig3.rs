//! Skellam paper, figure 3: how the Skellam law and its limit judge the rates of one datum.

use plca_dist::{skellam_divergence, skellam_ln_pmf};

use crate::Result;
use crate::plot::{Axis, LegendPosition, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "sk_fig3",
    source: "[SKELLAM] figure 3",
    title: "Fit of the datum 1 as a function of its two rates: ln Sk(1; p, q) and -D(1 | p, q)",
    criterion: "Along the ridge p - q = 1 the divergence is 0 to rounding, while the law prefers small rates: it falls by more than 0.5 \
                between q = 0.1 and q = 6. Nowhere is the divergence negative.",
    data: &[],
    run,
    control: Some(control),
};

/// Axes of the paper: both rates from 0.1 to 7.
const RANGE: (f64, f64) = (0.1, 7.0);

fn law(p: f64, q: f64) -> f64 {
    skellam_ln_pmf(1.0, p, q).unwrap_or(f64::NAN)
}

fn limit(p: f64, q: f64) -> f64 {
    -skellam_divergence(1.0, p, q).unwrap_or(f64::NAN)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, law, limit)
}

/// The law and its limit taken for one another; a divergence of the wrong sign.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let mut rows = measure(context, limit, law)?;
    rows.pop();
    rows.extend(measure(context, law, |p, q| -limit(p, q))?.pop());
    Ok(rows)
}

fn measure(
    context: &Context,
    law: fn(f64, f64) -> f64,
    limit: fn(f64, f64) -> f64,
) -> Result<Vec<Entry>> {
    let ridge: Vec<(f64, f64)> = (0..=100)
        .map(|i| RANGE.0 + (RANGE.1 - 1.0 - RANGE.0) * f64::from(i) / 100.0)
        .map(|q| (1.0 + q, q))
        .collect();
    let line = Series::new("p - q = 1", 1, ridge.clone());
    let axis = |name| Axis::linear(name, RANGE.0, RANGE.1);
    // The paper cuts both surfaces off below.
    let panel = |title: &str, f: &dyn Fn(f64, f64) -> f64, low: f64, high: f64| {
        let levels: Vec<f64> = (0..=14)
            .map(|i| low + (high - low) * f64::from(i) / 14.0)
            .collect();
        let cut = |p: f64, q: f64| f(p, q).max(low);
        Panel::contours(title, cut, &levels, &line, &axis("p"), &axis("q"))
            .legend(LegendPosition::InsideTopLeft)
    };
    let panels = vec![
        panel("ln Sk(1; p, q)", &law, -4.5, -0.9),
        panel("-D(1 | p, q)", &limit, -3.5, 0.0),
    ];
    let files = context.picture(FIGURE.name, 2, (560.0, 500.0), panels)?;
    let grid = (0..=200).flat_map(|i| (0..=200).map(move |j| (i, j)));
    let at = |i: i32| RANGE.0 + (RANGE.1 - RANGE.0) * f64::from(i) / 200.0;
    let highest = grid
        .map(|(i, j)| limit(at(i), at(j)))
        .fold(f64::NEG_INFINITY, f64::max);
    let worst = ridge
        .iter()
        .map(|&(p, q)| limit(p, q).abs())
        .fold(0.0, f64::max);
    let along: Vec<f64> = ridge.iter().map(|&(p, q)| law(p, q)).collect();
    let fall = along.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b))
        - along.iter().fold(f64::INFINITY, |a, &b| a.min(b));
    let data = Data::generated("a datum of 1");
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    Ok(vec![
        row("largest |D| along the ridge", worst).below(1e-14),
        row("by how much ln Sk varies along the ridge", fall).above(0.5),
        row("largest -D on a grid of 201 x 201", highest).below(1e-14),
    ])
}
