//! CE, figure 4.3: components in groups, alike within them and apart between them.

use std::sync::Arc;

use plca_em::{PlcaState, Prior};
use plca_priors::{CrossEntropy, Schedule, Scheduled, pair_divergences};

use super::ce_drums::{LOOP, Spectrogram, density, fit, generate, noise, read};
use crate::Result;
use crate::report::Entry;
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "ce_fig4_3",
    source: "[CE] figure 4.3",
    title: "Twelve components in six pairs: no prior, alike within pairs, apart between pairs, both",
    criterion: "Within pairs the prior brings the time courses together (divergence < 0.2 of that without), between pairs apart (> 3 times); \
                both at once give a ratio above 5 (without: below 1.3) at D/v < 0.05 (without: < 0.003).",
    data: &[LOOP],
    run,
    control: Some(control),
};

const COMPONENTS: usize = 12;
const ITERATIONS: usize = 200;
const SEEDS: u64 = 5;
/// Name, weight between pairs, weight within, in units of `v / K`.
const RUNS: [(&str, f64, f64); 4] = [
    ("none", 0.0, 0.0),
    ("within", 0.0, 0.3),
    ("between", 0.02, 0.0),
    ("both", 0.02, 0.3),
];

/// Means over the seeds, and the first state.
struct Fitted {
    within: f64,
    between: f64,
    d: f64,
    state: PlcaState<f64>,
}

fn groups() -> Vec<usize> {
    (0..COMPONENTS).map(|z| z / 2).collect()
}

fn prior(between: f64, within: f64) -> Result<Prior<f64>> {
    let prior = CrossEntropy::groups(&groups(), between, within)?
        .relative()
        .floor(1e-9)?;
    // [SPEC 8] weights fall to zero within three quarters of the run
    let schedule = Schedule::Decreasing { over: 150.0 };
    Ok(Arc::new(Scheduled::new(prior, schedule)?))
}

fn measure(context: &Context, drums: &Spectrogram, seeds: u64) -> Result<Vec<Fitted>> {
    let v = drums.tensor()?;
    let one = |&(_, between, within): &(&str, f64, f64)| -> Result<Fitted> {
        let (mut means, mut first) = ([0.0; 3], None);
        for seed in context.starts(seeds) {
            let prior = Some(prior(between, within)?);
            let (state, d) = fit(&v, COMPONENTS, prior, ITERATIONS, seed)?;
            let (inside, outside) = pair_divergences(state.factor(1), &groups());
            for (mean, x) in means.iter_mut().zip([inside, outside, d]) {
                *mean += x / seeds as f64;
            }
            first.get_or_insert(state);
        }
        let [within, between, d] = means;
        let state = first.ok_or("no seeds")?;
        Ok(Fitted {
            within,
            between,
            d,
            state,
        })
    };
    RUNS.iter().map(one).collect()
}

fn draw(context: &Context, name: &str, fitted: &[Fitted]) -> Result<Vec<String>> {
    let mut panels = Vec::new();
    for ((how, ..), fit) in RUNS.iter().zip(fitted) {
        panels.push(density(
            &format!("{how}: P(f | z)"),
            fit.state.factor(0),
            "component",
            "frequency",
        ));
    }
    for fit in fitted {
        let title = format!(
            "P(t | z): within {:.2}, between {:.2}",
            fit.within, fit.between
        );
        let times = fit.state.factor(1).transpose();
        panels.push(density(&title, &times, "frame", "component"));
    }
    context.picture(name, 4, (380.0, 320.0), panels)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let drums = generate(context);
    let fitted = measure(context, &drums, SEEDS)?;
    let files = draw(context, FIGURE.name, &fitted)?;
    let mut entries = rows(&fitted, [0, 1, 2, 3], &drums, &files);
    entries.extend(drum_loop(context)?);
    Ok(entries)
}

/// The runs taken for one another; for what a prior costs, noise in place of the drums.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let drums = generate(context);
    let fitted = measure(context, &drums, SEEDS)?;
    let mut entries = rows(&fitted, [3, 2, 1, 0], &drums, &[]);
    entries.truncate(4);
    let noise = noise(context);
    let fitted = measure(context, &noise, 1)?;
    entries.extend(rows(&fitted, [0, 1, 2, 3], &noise, &[]).drain(4..));
    Ok(entries)
}

/// Rows of the four runs in this order.
fn rows(fitted: &[Fitted], order: [usize; 4], drums: &Spectrogram, files: &[String]) -> Vec<Entry> {
    let [none, within, between, both] = order.map(|at| &fitted[at]);
    let row = |what: &str, value: f64| Entry::number(what, value, &drums.data, files);
    let ratio = |f: &Fitted| f.between / f.within;
    vec![
        row(
            "divergence within pairs, prior within over none",
            within.within / none.within,
        )
        .below(0.2),
        row(
            "divergence between pairs, prior between over none",
            between.between / none.between,
        )
        .above(3.0),
        row("both: divergence between over within", ratio(both)).above(5.0),
        row("none: divergence between over within", ratio(none)).below(1.3),
        row("both: D/v", both.d).below(0.05),
        row("none: D/v", none.d).below(0.003),
    ]
}

/// The same four runs on a real drum loop, from one start.
fn drum_loop(context: &Context) -> Result<Option<Entry>> {
    let Some(drums) = read(context)? else {
        return Ok(None);
    };
    let fitted = measure(context, &drums, 1)?;
    let files = draw(context, "ce_fig4_3_loop", &fitted)?;
    let each: Vec<_> = (RUNS.iter().zip(&fitted))
        .map(|((name, ..), f)| format!("{name} {:.2}, {:.2}, {:.3}", f.within, f.between, f.d))
        .collect();
    let what = "drum loop: divergence within and between pairs and D/v of each run";
    Ok(Some(Entry::words(
        what,
        each.join("; "),
        &drums.data,
        &files,
    )))
}
