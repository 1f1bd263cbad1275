//! CE, figure 3.2: time courses that exclude each other, or that are alike.

use std::sync::Arc;

use nalgebra::DMatrix;
use plca_em::{PlcaState, Prior};
use plca_priors::{CrossEntropy, Schedule, Scheduled, pair_divergences};

use super::ce_drums::{DRUMS, density, fit, generate};
use crate::Result;
use crate::plot::{Axis, Panel, Series};
use crate::reproduce::{Context, Entry, Figure, Measured};

pub(crate) const FIGURE: Figure = Figure {
    name: "ce_fig3_2",
    source: "[CE] figure 3.2",
    title: "Cross-entropy priors on the time courses of six components",
    criterion: "From dissimilar to similar the mean divergence of pairs falls strictly, entries vanish on one side only (> 0.5 at 0.03, \
                < 0.05 at -0.03), and D/v is least without a prior; a prior that fades out costs less.",
    run,
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
    let drums = generate(context);
    let v = drums.tensor()?;
    let groups: Vec<usize> = (0..DRUMS).collect();
    let measure = |weight: f64, decrease: bool| -> Result<Fitted> {
        let (mut pairs, mut zeros, mut d, mut first) = (0.0, 0.0, 0.0, None);
        for seed in context.seed..context.seed + SEEDS {
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
    let constant: Vec<Fitted> = (WEIGHTS.iter())
        .map(|&w| measure(w, false))
        .collect::<Result<_>>()?;
    let fading: Vec<Fitted> = ([WEIGHTS[1], WEIGHTS[3]].iter())
        .map(|&w| measure(w, true))
        .collect::<Result<_>>()?;

    let files = draw(context, drums.panel("drums"), &constant)?;
    let list = |values: &[f64]| {
        let each: Vec<_> = values.iter().map(|x| format!("{x:.4}")).collect();
        Measured::Text(each.join(", "))
    };
    let pairs: Vec<f64> = constant.iter().map(|f| f.pairs).collect();
    let zeros: Vec<f64> = constant.iter().map(|f| f.zeros).collect();
    let d: Vec<f64> = constant.iter().map(|f| f.d).collect();
    let least = d.iter().enumerate().all(|(i, &x)| i == 2 || x > d[2]);
    let faded = [fading[0].d, d[1], fading[1].d, d[3]];
    let entry = |what: &str, measured: Measured, pass: bool| {
        context.entry(what, measured, pass, &drums.data, &files)
    };
    Ok(vec![
        entry(
            "mean divergence of pairs falls from weight 0.1 to -0.1 (means of five seeds)",
            list(&pairs),
            pairs.windows(2).all(|w| w[0] > w[1]),
        ),
        entry(
            "entries below 1e-6: more than half at 0.03, less than 0.05 at -0.03",
            list(&zeros),
            zeros[1] > 0.5 && zeros[3] < 0.05,
        ),
        entry("D/v least without a prior", list(&d), least),
        entry(
            "D/v with a fading prior below that with a constant one, at 0.03 and at -0.03",
            list(&faded),
            faded[0] < faded[1] && faded[2] < faded[3],
        ),
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
