//! CE, figure 3.2: time courses that exclude each other, or that are alike.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::{PlcaState, Prior};
use plca_priors::{CrossEntropy, Schedule, Scheduled, pair_divergences};

use super::ce_drums::{DRUMS, density, fit, generate};
use super::support::smallest;
use crate::Result;
use crate::plot::{Axis, Panel, Series};
use crate::report::Entry;
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "ce_fig3_2",
    source: "[CE] figure 3.2",
    title: "Cross-entropy priors on the time courses of six components",
    criterion: "From dissimilar to similar the mean divergence of pairs falls strictly, entries vanish on one side only (> 0.5 at 0.03, \
                < 0.05 at -0.03), and D/v is least without a prior; a prior that fades out costs less.",
    data: &[],
    run,
    control: Some(control),
};

/// In units of `v / K`; positive keeps components apart.
const WEIGHTS: [f64; 5] = [0.1, 0.03, 0.0, -0.03, -0.1];
const SEEDS: u64 = 5;
const ITERATIONS: usize = 200;

/// Means over the seeds, and the first state.
struct Fitted {
    pairs: f64,
    zeros: f64,
    d: f64,
    state: PlcaState<f64>,
}

fn prior(weight: f64, decrease: bool) -> Result<Prior<f64>> {
    let pairs = DMatrix::from_fn(DRUMS, DRUMS, |i, k| if i == k { 0.0 } else { weight });
    let prior = CrossEntropy::pairs(pairs)?.relative().floor(1e-9)?;
    Ok(if decrease {
        let over = 0.75 * ITERATIONS as f64;
        Arc::new(Scheduled::new(prior, Schedule::Decreasing { over })?)
    } else {
        Arc::new(prior)
    })
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, false)
}

/// The weights of the fits shuffled, and constant priors exchanged with fading ones.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, true)
}

fn measure(context: &Context, wrong: bool) -> Result<Vec<Entry>> {
    let drums = generate(context);
    let v = drums.tensor()?;
    let groups: Vec<usize> = (0..DRUMS).collect();
    let measure = |weight: f64, decrease: bool| -> Result<Fitted> {
        let (mut pairs, mut zeros, mut d, mut first) = (0.0, 0.0, 0.0, None);
        for seed in context.starts(SEEDS) {
            let (state, now) = fit(&v, DRUMS, Some(prior(weight, decrease)?), ITERATIONS, seed)?;
            let times = state.factor(1);
            let small = times.iter().filter(|&&x| x < 1e-6).count();
            pairs += pair_divergences(times, &groups).1 / SEEDS as f64;
            zeros += small as f64 / (times.len() as f64 * SEEDS as f64);
            d += now / SEEDS as f64;
            first.get_or_insert(state);
        }
        Ok(Fitted {
            pairs,
            zeros,
            d,
            state: first.ok_or("no seeds")?,
        })
    };
    let mut constant: Vec<Fitted> = (WEIGHTS.iter())
        .map(|&w| measure(w, false))
        .collect::<Result<_>>()?;
    let fading: Vec<Fitted> = ([WEIGHTS[1], WEIGHTS[3]].iter())
        .map(|&w| measure(w, true))
        .collect::<Result<_>>()?;

    // What a fading prior costs beyond a constant one.
    let mut dearer = [1, 3].map(|at| fading[at / 2].d - constant[at].d);
    if wrong {
        constant.rotate_left(2);
        dearer = dearer.map(|x| -x);
    }

    let files = draw(context, drums.panel("drums"), &constant)?;
    let list = |values: &[f64]| {
        let each: Vec<_> = values.iter().map(|x| format!("{x:.4}")).collect();
        each.join(", ")
    };
    let pairs: Vec<f64> = constant.iter().map(|f| f.pairs).collect();
    let zeros: Vec<f64> = constant.iter().map(|f| f.zeros).collect();
    let d: Vec<f64> = constant.iter().map(|f| f.d).collect();
    let falls = pairs.windows(2).map(|w| w[0] - w[1]);
    let others = d.iter().enumerate().filter(|(i, _)| *i != 2);
    let row = |what: &str, value: f64| Entry::number(what, value, &drums.data, &files);
    Ok(vec![
        row(
            "least fall of the mean divergence of pairs from one weight to the next, 0.1 to -0.1",
            smallest(falls),
        )
        .above(0.0)
        .detail(list(&pairs)),
        row("share of entries below 1e-6, weight 0.03", zeros[1])
            .above(0.5)
            .detail(list(&zeros)),
        row("share of entries below 1e-6, weight -0.03", zeros[3]).below(0.05),
        row(
            "least D/v with a prior less that without",
            smallest(others.map(|(_, x)| x - d[2])),
        )
        .above(0.0)
        .detail(list(&d)),
        row(
            "D/v with a fading prior less that with a constant one, 0.03",
            dearer[0],
        )
        .below(0.0),
        row(
            "D/v with a fading prior less that with a constant one, -0.03",
            dearer[1],
        )
        .below(0.0),
    ])
}

fn draw(context: &Context, drums: Panel, fitted: &[Fitted]) -> Result<Vec<String>> {
    let mut panels = vec![drums];
    for (weight, fit) in WEIGHTS.iter().zip(fitted) {
        panels.push(density(
            &format!("P(f | z), weight {weight}"),
            fit.state.factor(0),
            "component",
            "frequency",
        ));
    }
    let curve = |f: fn(&Fitted) -> f64| -> Vec<(f64, f64)> {
        WEIGHTS
            .iter()
            .zip(fitted)
            .map(|(&w, fit)| (w, f(fit)))
            .collect()
    };
    let pairs = curve(|f| f.pairs);
    let height = Axis::from_zero("nats", pairs.iter().map(|p| p.1));
    panels.push(Panel::lines(
        "mean divergence of pairs",
        &[Series::new("", 0, pairs)],
        &Axis::linear("weight", -0.1, 0.1),
        &height,
    ));
    for fit in fitted {
        panels.push(density(
            "P(t | z)",
            &fit.state.factor(1).transpose(),
            "frame",
            "component",
        ));
    }
    context.picture(FIGURE.name, 6, (290.0, 290.0), panels)
}
