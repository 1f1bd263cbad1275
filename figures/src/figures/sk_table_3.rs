//! Skellam paper, table III: factors estimated under known hyperparameters.

use rayon::prelude::*;
use skellam_snmf::{Replicates, Sharing, Snmf, SnmfState, SnmfVb};

use super::sk_fit::{self, SQUAREM};
use super::sk_known::{F, K, SCENARIOS, counts, errors, factors, hyperparameters, prior_means};
use super::support::{Runs, rng};
use crate::Result;
use crate::plot::{Axis, Panel, Ranges};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "sk_table_3",
    source: "[SKELLAM] table III",
    title: "Squared error of estimated sources under known hyperparameters, in thousands",
    criterion: "In each of the four scenarios of table II (3 x 5000 counts, two components, hyperparameters of seed 10) no mean over \
                the runs differs from the paper's of 50 runs (Welch's test, 5 % for all 24 together). Run by run the estimates stand to Dummy as in the \
                paper, by the 95 % interval of the mean difference, where the paper's means and deviations let so many runs tell.",
    data: &[],
    run,
    control: Some(control),
};

/// Runs of the paper.
const RUNS: f64 = 50.0;
/// The probability that none of all 24 tests against the paper fails by chance is 95 % at least.
const LEVEL: f64 = 1.0 - 0.05 / 24.0;
const PLACE: &str = "[SKELLAM] table III, as its notebook has it";

/// The seed of table III.
const SEED: u64 = 10;
const ESTIMATES: [&str; 3] = ["Dummy", "Sk1", "Sk1-VB"];
const METRICS: [&str; 2] = ["mse_m", "mse_v"];

/// `PAPER[metric][estimate][scenario]`: mean and standard deviation over 50 runs, in thousands.
const PAPER: [[[(f64, f64); 4]; 3]; 2] = [
    [
        [(1.01, 0.54), (1.95, 0.52), (15.74, 6.76), (31.57, 8.33)],
        [(0.66, 0.49), (0.18, 0.03), (5.99, 12.25), (0.73, 0.97)],
        [(0.9, 0.68), (0.12, 0.03), (6.63, 13.23), (0.57, 1.34)],
    ],
    [
        [(1.75, 0.36), (1.98, 0.51), (25.42, 5.77), (32.63, 7.27)],
        [(3.09, 2.31), (0.2, 0.06), (13.79, 13.36), (1.38, 2.0)],
        [(2.84, 2.35), (0.13, 0.06), (13.45, 12.79), (1.43, 3.43)],
    ],
];

/// `[estimate][metric]` of one run.
fn one(
    scenario: usize,
    n: usize,
    max_iter: usize,
    seed: u64,
    wrong: bool,
) -> Result<[[f64; 2]; 3]> {
    let hyper = hyperparameters(SEED, scenario)?;
    let mut draws = rng(seed, 70 + scenario as u64);
    let truth = factors(&hyper, n, &mut draws)?;
    let data = counts(&truth, &mut draws)?;
    let priors = hyper.prior(&Sharing::by_component(F, K))?;

    let dummy = prior_means(&hyper, n, 0.0)?;
    let start = prior_means(&hyper, n, 1.0)?;
    let snmf = Snmf::new(K).replicates(Replicates::One);
    // Shapes below 1 leave the objective of EM unbounded.
    let snmf = snmf.priors(priors.clone()).floor(1e-20);
    let how = (SQUAREM, max_iter);
    let em = sk_fit::fit(&snmf, &data, &start, how, &mut draws)?;
    let vb = SnmfVb::new(K).replicates(Replicates::One);
    let vb = vb.priors(priors);
    let start = vb.at_prior(&data, 0.0, &mut draws)?;
    let vb = sk_fit::fit(&vb, &data, &start, how, &mut draws)?;
    let truth = match wrong {
        true => {
            let [plus, minus] = [truth.plus(), truth.minus()].map(|side| side.into_owned());
            SnmfState::new(&plus, &minus, truth.activations() * 3.0)?
        }
        false => truth,
    };
    let against = |found: &SnmfState<f64>| errors(&truth, found, &[0, 1]).map(|e| e / 1000.0);
    let means = vb.state().means()?;
    Ok([against(&dummy), against(em.state()), against(&means)])
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, false)
}

/// Estimates judged by activations three times as large as those that the data were drawn with; Dummy and estimates exchanged.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, true)
}

fn measure(context: &Context, wrong: bool) -> Result<Vec<Entry>> {
    let runs = context.sizes([12, 10, 50]) as u64;
    let n = context.size(5000, 1000);
    let max_iter = context.sizes([100, 300, 10_000]);
    let mut found = Vec::new();
    for scenario in 0..4 {
        let all = (0..runs).into_par_iter();
        let all = all.map(|r| one(scenario, n, max_iter, context.start(r), wrong));
        found.push(all.collect::<Result<Vec<_>>>()?);
    }
    let measured = |metric: usize, estimate: usize, scenario: usize| {
        let values = found[scenario].iter().map(|r| r[estimate][metric]);
        Runs::of(&values.collect::<Vec<_>>())
    };
    let mut panels = Vec::new();
    for (scenario, title) in SCENARIOS.iter().enumerate() {
        let names: Vec<String> = (METRICS.iter())
            .flat_map(|m| ESTIMATES.iter().map(move |e| format!("{e} {}", &m[4..])))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let each = || (0..2).flat_map(|m| (0..3).map(move |e| (m, e)));
        let theirs: Vec<_> = each().map(|(m, e)| Some(PAPER[m][e][scenario])).collect();
        let ours: Vec<_> = each()
            .map(|(m, e)| measured(m, e, scenario))
            .map(|runs| Some((runs.mean, runs.deviation)))
            .collect();
        let high = theirs
            .iter()
            .chain(&ours)
            .flatten()
            .map(|v| 1.3 * (v.0 + v.1));
        let y = Axis::from_zero("error, thousands", high);
        let series = [
            Ranges {
                name: "paper".into(),
                colour: 1,
                values: theirs,
            },
            Ranges {
                name: "here".into(),
                colour: 0,
                values: ours,
            },
        ];
        panels.push(Panel::ranges(title, &names, &series, &y));
    }
    let files = context.picture(FIGURE.name, 2, (660.0, 380.0), panels)?;
    let data = Data::generated(&format!(
        "counts under the hyperparameters of seed {SEED}, 3 x {n}"
    ));
    let mut entries = Vec::new();
    for (scenario, name) in SCENARIOS.iter().enumerate() {
        for (m, metric) in METRICS.iter().enumerate() {
            for (e, estimate) in ESTIMATES.iter().enumerate() {
                let paper = theirs(m, e, scenario);
                let ours = measured(m, e, scenario);
                let room = ours.half_against(&paper, LEVEL)?;
                let limits = (paper.mean - room).max(0.0)..=paper.mean + room;
                // Where the paper's own numbers, over as many runs as here, do not tell an estimate from Dummy, nothing is judged.
                let [of, dummy] = [e, 0].map(|e| theirs(m, e, scenario));
                let expected = Runs {
                    number: ours.number,
                    ..of
                };
                let room = expected.half_against(&paper, LEVEL)?;
                let tells = e == 0 || (dummy.mean - paper.mean).abs() > room;
                let what = format!("{name}: {metric} of {estimate}, thousands");
                let row = Entry::number(&what, ours.mean, &data, &files)
                    .paper_mean(PAPER[m][e][scenario], PLACE)
                    .detail(format!(
                        "standard deviation {:.2} over {runs} runs",
                        ours.deviation
                    ));
                entries.push(match tells {
                    true => row.within(*limits.start(), *limits.end()),
                    false => row,
                });
                if e > 0 {
                    let less = found[scenario].iter().map(|r| r[e][m] - r[0][m]);
                    let less = less.map(|d| if wrong { -d } else { d });
                    let less = Runs::of(&less.collect::<Vec<_>>());
                    let what = format!(
                        "{name}: {metric} of {estimate} less that of Dummy in the same run, thousands"
                    );
                    let [a, b] = [e, 0].map(|e| theirs(m, e, scenario));
                    entries.push(compared(&what, &less, [a, b], &data, &files)?);
                }
            }
        }
    }
    Ok(entries)
}

/// Mean and deviation in the paper.
fn theirs(metric: usize, estimate: usize, scenario: usize) -> Runs {
    let (mean, deviation) = PAPER[metric][estimate][scenario];
    Runs {
        mean,
        deviation,
        number: RUNS,
    }
}

/// The end of the 95 % interval of a mean difference that lies nearer to the other sign than the paper's. Judged if a difference such
/// as the paper's, of runs that spread as its do, is twice as large as half of the interval of this number of runs.
fn compared(
    what: &str,
    less: &Runs,
    [of, to]: [Runs; 2],
    data: &Data,
    files: &[String],
) -> Result<Entry> {
    let half = less.half(0.95)?;
    let paper = of.mean - to.mean;
    let expected = Runs {
        mean: paper,
        deviation: of.deviation.hypot(to.deviation),
        number: less.number,
    };
    let seen = paper.abs() > 2.0 * expected.half(0.95)?;
    let end = less.mean - half * paper.signum();
    let row = Entry::number(what, end, data, files);
    let row = row.paper(paper, PLACE);
    let row = row.detail(format!("{:.2} ± {half:.2}", less.mean));
    Ok(match (seen, paper < 0.0) {
        (true, true) => row.below(0.0),
        (true, false) => row.above(0.0),
        (false, _) => row,
    })
}
