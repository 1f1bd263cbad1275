//! The cross-entropy prior of mixtures that follow each other in time.

use nalgebra::{DMatrix, DVectorView};
use plca_dist::{draw_poisson, random::uniform};
use plca_em::{Init, Model, Plsa, Solver, State, Stop};
use plca_priors::Neighbours;
use plca_tensor::{DenseTensor, Order};
use rayon::prelude::*;

use super::grid::Grid;
use super::support::{
    best_matching, cosine, dirichlet, divergence, largest, mean_sd, rng, smallest,
};
use crate::Result;
use crate::plot::{Axis, Panel, Ranges, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "ext_neighbours",
    source: "[EXT 7]",
    title: "Mixtures over time from sparse counts, by the weight of the prior of neighbours",
    criterion: "Four slow envelopes in 30 x 200 sparse counts, weights from 0.1 (neighbours apart) to -3 (neighbours alike), means of five data sets: \
                at each step the divergence of neighbouring mixtures falls and the correlation with the true mixtures rises; the \
                divergence from the data is smallest without the prior.",
    data: &[],
    run,
    control: Some(control),
};

const FEATURES: usize = 30;
const TIMES: usize = 200;
const K: usize = 4;
/// Mean counts of a time.
const COUNTS: f64 = 3.0;
const ITERATIONS: usize = 200;
const SETS: u64 = 5;
/// In units of the mean counts of a time.
const WEIGHTS: [f64; 7] = [0.1, 0.03, 0.0, -0.1, -0.3, -1.0, -3.0];
const NAMES: [&str; 7] = ["0.1", "0.03", "0", "-0.1", "-0.3", "-1", "-3"];
/// Mixtures below this count as this in divergences.
const FLOOR: f64 = 1e-9;

/// The true mixtures, and counts of them.
fn generate(seed: u64, set: u64) -> Result<(DMatrix<f64>, DMatrix<f64>)> {
    let mut draws = rng(seed, 2120 + set);
    let spectra = dirichlet(FEATURES, K, 0.5, &mut draws);
    let phase: Vec<[f64; 2]> = (0..K)
        .map(|_| [uniform(&mut draws), uniform(&mut draws)])
        .collect();
    // Each envelope swells once or twice.
    let envelope = |z: usize, t: usize| {
        let [at, cycles] = phase[z];
        let turn = (1.0 + cycles) * t as f64 / TIMES as f64 + at;
        (2.5 * (std::f64::consts::TAU * turn).sin()).exp()
    };
    let mut mixtures = DMatrix::from_fn(K, TIMES, envelope);
    plca_tensor::normalise_columns(&mut mixtures);
    let means = COUNTS * spectra * &mixtures;
    let mut counts = DMatrix::zeros(FEATURES, TIMES);
    for (v, &mean) in counts.iter_mut().zip(&means) {
        *v = draw_poisson(mean, &mut draws)? as f64;
    }
    Ok((mixtures, counts))
}

/// What one fit gives.
struct Fitted {
    /// Mean divergence of neighbouring mixtures, in both directions.
    neighbours: f64,
    /// `D/v`.
    d: f64,
    /// Correlation of all entries with the true mixtures.
    correlation: f64,
    /// In the order of the true ones.
    mixtures: DMatrix<f64>,
}

fn fit(truth: &DMatrix<f64>, counts: &DMatrix<f64>, weight: f64, start: u64) -> Result<Fitted> {
    let values = counts.as_slice().to_vec();
    let v = DenseTensor::new(vec![FEATURES, TIMES], values, Order::ColumnMajor)?;
    let prior = Neighbours::new(weight)?.relative();
    let plsa = Plsa::new(K).prior("mixture", prior);
    let stop = Stop::default().max_iter(ITERATIONS).tol(None);
    let run = plsa.on(&v)?.solver(Solver::Em).stop(stop);
    let state = run.run(Init::default(), &mut rng(start, 0))?.into_state();
    // The likelihood is that of the features given their times.
    let ln_lik = plsa.bind(&v)?.likelihood(state.parameters())?;
    let times: f64 = (counts.row_sum().iter())
        .filter(|&&n| n > 0.0)
        .map(|n| n * (n / counts.sum()).ln())
        .sum();
    let d = divergence(&v, ln_lik + times);
    let found = state.mixture();
    let floored = found.map(|x| x.max(FLOOR));
    let pair = |t: usize| -> f64 {
        let (now, next) = (floored.column(t), floored.column(t + 1));
        let both = now.iter().zip(next.iter());
        both.map(|(a, b)| (a - b) * (a / b).ln()).sum()
    };
    let neighbours = (0..TIMES - 1).map(pair).sum::<f64>() / (TIMES - 1) as f64;
    let row = |m: &DMatrix<f64>, z: usize| m.row(z).transpose().add_scalar(-1.0 / K as f64);
    let rows = |t: usize, z: usize| row(truth, t).dot(&row(found, z));
    let order = best_matching(K, |t, z| -rows(t, z));
    let mixtures = DMatrix::from_fn(K, TIMES, |z, t| found[(order[z], t)]);
    let centred = [truth, &mixtures].map(|m| m.add_scalar(-1.0 / K as f64));
    let [a, b] = centred
        .each_ref()
        .map(|m| DVectorView::from_slice(m.as_slice(), K * TIMES));
    let correlation = cosine(a, b);
    Ok(Fitted {
        neighbours,
        d,
        correlation,
        mixtures,
    })
}

/// For every data set its true mixtures and the fits of all weights.
type Sets = Vec<(DMatrix<f64>, DMatrix<f64>, Vec<Fitted>)>;

fn sets(context: &Context) -> Result<Sets> {
    let one = |set: u64| -> Result<_> {
        let (truth, counts) = generate(context.seed, set)?;
        let start = context.start(set);
        let fits = WEIGHTS.iter().map(|&w| fit(&truth, &counts, w, start));
        let fits = fits.collect::<Result<Vec<_>>>()?;
        Ok((truth, counts, fits))
    };
    (0..SETS).into_par_iter().map(one).collect()
}

/// Mean and standard deviation over the data sets, for every weight.
fn over_sets(sets: &Sets, of: fn(&Fitted) -> f64) -> Vec<(f64, f64)> {
    let all = |w: usize| sets.iter().map(|s| of(&s.2[w])).collect::<Vec<_>>();
    (0..WEIGHTS.len()).map(|w| mean_sd(&all(w))).collect()
}

/// The same for the three measures.
fn measured(sets: &Sets) -> [Vec<(f64, f64)>; 3] {
    let of: [fn(&Fitted) -> f64; 3] = [|f| f.neighbours, |f| f.correlation, |f| f.d];
    of.map(|of| over_sets(sets, of))
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let sets = sets(context)?;
    let measured = measured(&sets);
    let files = draw(context, &sets, &measured)?;
    Ok(rows(&measured, &files))
}

/// Every run taken for that of the next weight.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let mut measured = measured(&sets(context)?);
    measured.iter_mut().for_each(|values| values.rotate_left(1));
    Ok(rows(&measured, &[]))
}

fn rows(measured: &[Vec<(f64, f64)>; 3], files: &[String]) -> Vec<Entry> {
    let data = Data::generated("30 x 200 sparse counts of four slow envelopes, five data sets");
    let [neighbours, correlation, d] = measured;
    let ratios = largest(neighbours.windows(2).map(|w| w[1].0 / w[0].0));
    let rises = smallest(correlation.windows(2).map(|w| w[1].0 - w[0].0));
    let none = WEIGHTS.iter().position(|&w| w == 0.0).unwrap_or(0);
    let others = (0..d.len()).filter(|&w| w != none).map(|w| d[w].0);
    let less = smallest(others) - d[none].0;
    let text = |of: &[(f64, f64)]| {
        let each: Vec<String> = of.iter().map(|x| crate::report::number(x.0)).collect();
        format!("weights {}: {}", NAMES.join(", "), each.join(", "))
    };
    let row = |what: &str, value: f64, of: &[(f64, f64)]| {
        Entry::number(what, value, &data, files).detail(text(of))
    };
    let what = "largest ratio of the divergence of neighbours to that of the weight before";
    vec![
        row(what, ratios, neighbours).below(1.0),
        row(
            "smallest rise of the correlation with the truth",
            rises,
            correlation,
        )
        .above(0.0),
        row("smallest D/v with the prior less that without", less, d).above(0.0),
    ]
}

fn draw(context: &Context, sets: &Sets, measured: &[Vec<(f64, f64)>; 3]) -> Result<Vec<String>> {
    let (truth, counts, fits) = sets.first().ok_or("no data sets")?;
    let courses = |title: &str, m: &DMatrix<f64>| {
        let one = |z: usize| {
            let points = (0..TIMES).map(|t| (t as f64, m[(z, t)])).collect();
            Series::new("", z, points)
        };
        let all: Vec<Series> = (0..K).map(one).collect();
        let (x, y) = (
            Axis::linear("time", 0.0, TIMES as f64),
            Axis::linear("P(z | t)", 0.0, 1.0),
        );
        Panel::lines(title, &all, &x, &y)
    };
    let grid = Grid::from_fn(&[FEATURES, TIMES], |i| counts[(i[0], i[1])]);
    let (x, y) = (
        Axis::linear("time", 0.0, TIMES as f64),
        Axis::linear("feature", 0.0, FEATURES as f64),
    );
    let mut panels = vec![
        Panel::density("the counts", &grid.rows_up(), &x, &y),
        courses("true mixtures", truth),
    ];
    for w in [0, 2, 4, 6] {
        let title = match w {
            2 => "found, weight 0: no prior".to_string(),
            _ => format!("found, weight {}", NAMES[w]),
        };
        panels.push(courses(&title, &fits[w].mixtures));
    }
    let titles = [
        "divergence of neighbours by weight",
        "correlation with the truth by weight",
        "divergence from the data by weight",
    ];
    let labels = ["nats", "correlation", "D/v, nats per count"];
    for (at, (values, (title, label))) in measured.iter().zip(titles.iter().zip(labels)).enumerate()
    {
        let logs = |x: f64| if at == 0 { x.log10() } else { x };
        let spread = |(m, sd): (f64, f64)| {
            if at == 0 {
                (logs(m), std::f64::consts::LOG10_E * sd / m)
            } else {
                (m, sd)
            }
        };
        let values: Vec<Option<(f64, f64)>> = values.iter().map(|&v| Some(spread(v))).collect();
        let ends = |sign: f64| values.iter().flatten().map(move |(m, sd)| m + sign * sd);
        let low = ends(-1.0).fold(f64::INFINITY, f64::min);
        let high = ends(1.0).fold(f64::NEG_INFINITY, f64::max);
        let room = 0.08 * (high - low);
        let y = match at {
            0 => Axis::log(label, 10f64.powf(low), 10f64.powf(high)),
            _ => Axis::linear(label, low - room, high + room),
        };
        let series = Ranges {
            name: String::new(),
            colour: 0,
            values,
        };
        panels.push(Panel::ranges(title, &NAMES, &[series], &y));
    }
    context.picture(FIGURE.name, 3, (430.0, 320.0), panels)
}
