//! Shift-invariant Skellam factorization of a long record: wavelets of either sign, at places that nobody tells.

use plca_dist::{
    draw_poisson,
    random::{below, exponential, uniform},
};
use plca_fit::{Anneal, Init, Model, Reconstruct, Solver, State, Stop};
use plca_priors::Gamma;
use plca_tensor::{DenseTensor, Order};
use rayon::prelude::*;
use skellam_snmf::{Replicates, ShiftedSnmf, ShiftedSnmfState};

use super::grid::{Grid, aligned, places};
use super::support::{best_matching, rng, smallest};
use crate::Result;
use crate::plot::{Axis, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "ext_signed_kernels",
    source: "[EXT 5]",
    title: "Three signed wavelets found anywhere in a record of signed counts",
    criterion: "The best of twelve starts finds all three wavelets (cosine > 0.9), three quarters of their 48 events within two samples, and predicts the \
                means of hidden samples, one in ten, with less than half of the error of predicting 0.",
    data: &[],
    run,
    control: Some(control),
};

const RECORD: usize = 3000;
const TAPS: usize = 32;
const K: usize = 3;
/// Events of every wavelet.
const EVENTS: usize = 16;
/// Counts at the peak of an event of strength 1.
const PEAK: f64 = 20.0;
const ITERATIONS: usize = 200;
/// What the picture shows of the record.
const SHOWN: std::ops::Range<usize> = 600..1100;

/// A bell curve: place, middle, width.
type Bell<'a> = &'a dyn Fn(f64, f64, f64) -> f64;

/// The wavelets, their largest absolute value 1.
fn wavelets() -> Vec<Grid> {
    let bell = |t: f64, at: f64, width: f64| (-0.5 * ((t - at) / width).powi(2)).exp();
    let shapes: [fn(f64, Bell<'_>) -> f64; K] = [
        |t, b| b(t, 10.0, 3.0) - 0.8 * b(t, 18.0, 4.0),
        |t, b| b(t, 16.0, 6.0) * (std::f64::consts::TAU * (t - 16.0) / 8.0).cos(),
        |t, b| 0.5 * b(t, 20.0, 5.0) + 0.35 * b(t, 7.0, 2.0) - b(t, 12.0, 2.5),
    ];
    let one = |shape: &fn(f64, Bell<'_>) -> f64| {
        let grid = Grid::from_fn(&[TAPS], |i| shape(i[0] as f64, &bell));
        let largest = grid.values.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
        grid.map(|x| x / largest)
    };
    shapes.iter().map(one).collect()
}

/// The record, its means, and where the wavelets begin in it.
struct Record {
    means: Grid,
    /// Hidden samples are NaN.
    seen: Grid,
    /// Wavelet, place, strength.
    events: Vec<(usize, usize, f64)>,
}

fn record(seed: u64) -> Result<Record> {
    let mut draws = rng(seed, 2110);
    let wavelets = wavelets();
    let all = places(K * EVENTS, &[0], &[RECORD - TAPS], 10, &mut draws);
    let strength = |draws: &mut _| 0.6 + 0.6 * exponential(draws);
    let events: Vec<(usize, usize, f64)> = (all.iter().enumerate())
        .map(|(n, at)| (n % K, at[0], strength(&mut draws)))
        .collect();
    let side = |sign: f64| {
        let mut rates = Grid::zeros(&[RECORD]);
        for &(k, at, strength) in &events {
            let part = wavelets[k].map(|x| (sign * x).max(0.0));
            rates.stamp(&part, &[at], PEAK * strength);
        }
        rates
    };
    let (plus, minus) = (side(1.0), side(-1.0));
    let mut seen = Grid::zeros(&[RECORD]);
    for ((v, &p), &q) in seen.values.iter_mut().zip(&plus.values).zip(&minus.values) {
        *v = draw_poisson(p, &mut draws)? as f64 - draw_poisson(q, &mut draws)? as f64;
        if uniform(&mut draws) < 0.1 {
            *v = f64::NAN;
        }
    }
    let means = Grid::from_fn(&[RECORD], |i| plus.get(i) - minus.get(i));
    Ok(Record {
        means,
        seen,
        events,
    })
}

/// The start whose model is the likeliest.
fn fit(context: &Context, seen: &Grid) -> Result<ShiftedSnmfState<f64>> {
    let data = DenseTensor::masked(vec![RECORD], seen.values.clone(), Order::RowMajor)?;
    // Few events: a prior that favours activations of 0.
    let model = ShiftedSnmf::new(K, vec![TAPS])
        .replicates(Replicates::One)
        .prior("activations", Gamma::new(0.5, 0.0)?)
        .anneal(Anneal {
            alpha0: 0.8,
            over: 80.0,
        });
    let one = |start: u64| -> Result<(f64, ShiftedSnmfState<f64>)> {
        let stop = Stop::default().max_iter(ITERATIONS).tol(None);
        let run = model.on(&data)?.solver(Solver::Em).stop(stop);
        let state = run.run(Init::default(), &mut rng(start, 0))?.into_state();
        Ok((model.bind(&data)?.likelihood(state.parameters())?, state))
    };
    let starts: Vec<u64> = context.starts(12).collect();
    let all = starts
        .into_par_iter()
        .map(one)
        .collect::<Result<Vec<_>>>()?;
    let best = all.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    Ok(best.ok_or("no starts")?.1)
}

/// A wavelet as it was found, and what it does in the record.
struct Found {
    cosine: f64,
    kernel: Grid,
    /// Moved so that its places are those of the planted wavelet.
    activations: Grid,
}

fn found(state: &ShiftedSnmfState<f64>) -> Vec<Found> {
    let truth = wavelets();
    let kernel = |z: usize| {
        Grid::from_fn(&[TAPS], |i| {
            let side = |s: usize| state.atoms()[(2 * i[0] + s, z)];
            side(0) - side(1)
        })
    };
    let all: Vec<Vec<(f64, Vec<isize>)>> = (truth.iter())
        .map(|t| (0..K).map(|z| aligned(t, &kernel(z), &[16])).collect())
        .collect();
    let order = best_matching(K, |t, z| -all[t][z].0);
    let one = |(t, z): (usize, usize)| {
        let (cosine, shift) = &all[t][z];
        let places = Grid::of_block(state.activations(), z, state.places());
        Found {
            cosine: *cosine,
            kernel: kernel(z).moved(shift),
            activations: places.moved_back(shift),
        }
    };
    order.into_iter().enumerate().map(one).collect()
}

/// Share of the events that are within two samples of one of the strongest local maxima, of which as many count as there are events.
fn share_found(found: &[Found], events: &[(usize, usize, f64)]) -> f64 {
    let mut hits = 0;
    for (k, f) in found.iter().enumerate() {
        let n = f.activations.values.len();
        let near = |i: usize, by: usize| i.saturating_sub(by)..(i + by + 1).min(n);
        let mass: Vec<f64> = (0..n)
            .map(|i| f.activations.values[near(i, 1)].iter().sum())
            .collect();
        let top =
            |&i: &usize| near(i, 4).all(|j| mass[j] < mass[i] || j >= i && mass[j] == mass[i]);
        let mut peaks: Vec<usize> = (0..n).filter(|&i| mass[i] > 0.0).filter(top).collect();
        peaks.sort_by(|&a, &b| mass[b].total_cmp(&mass[a]));
        peaks.truncate(EVENTS);
        let mine = events.iter().filter(|e| e.0 == k);
        hits += mine
            .filter(|e| peaks.iter().any(|&p| p.abs_diff(e.1) <= 2))
            .count();
    }
    hits as f64 / events.len() as f64
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, &record(context.seed)?)
}

/// The samples in disorder, the hidden ones where they are.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let mut record = record(context.seed)?;
    let mut draws = rng(context.seed, 2111);
    let all = || record.seen.values.iter();
    let mut values: Vec<f64> = all().copied().filter(|x| !x.is_nan()).collect();
    for i in (1..values.len()).rev() {
        values.swap(i, below(i as u64 + 1, &mut draws) as usize);
    }
    let cells = record.seen.values.iter_mut().filter(|x| !x.is_nan());
    cells.zip(values).for_each(|(cell, x)| *cell = x);
    measure(context, &record)
}

fn measure(context: &Context, record: &Record) -> Result<Vec<Entry>> {
    let state = fit(context, &record.seen)?;
    let found = found(&state);
    let model = state.cells(None)?.into_parts().1;
    let rms = |of: &dyn Fn(usize) -> f64| {
        let hidden = (0..RECORD).filter(|&i| record.seen.values[i].is_nan());
        let squares: Vec<f64> = hidden.map(|i| of(i).powi(2)).collect();
        (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
    };
    let truth = &record.means.values;
    let error = rms(&|i| model[i] - truth[i]) / rms(&|i| truth[i]);
    let files = draw(context, record, &found, &model)?;
    let data = Data::generated(
        "3000 signed counts, three wavelets of 32 samples, 16 events each, one sample in ten hidden",
    );
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    let each: Vec<String> = found.iter().map(|f| format!("{:.3}", f.cosine)).collect();
    Ok(vec![
        row(
            "smallest cosine of a kernel with its wavelet",
            smallest(found.iter().map(|f| f.cosine)),
        )
        .above(0.9)
        .detail(each.join(", ")),
        row(
            "share of the events found at their place",
            share_found(&found, &record.events),
        )
        .above(0.75),
        row("hidden samples: error over that of predicting 0", error).below(0.5),
    ])
}

fn draw(context: &Context, record: &Record, found: &[Found], model: &[f64]) -> Result<Vec<String>> {
    let line = |values: &[f64]| -> Vec<(f64, f64)> {
        let shown = SHOWN.filter(|&i| !values[i].is_nan());
        shown.map(|i| (i as f64, values[i])).collect()
    };
    let x = || Axis::linear("sample", SHOWN.start as f64, SHOWN.end as f64);
    let around = |label: &str, series: &[Series], room: f64| {
        let all = || series.iter().flat_map(|s| &s.points).map(|p| p.1);
        let (low, high) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
        Axis::linear(label, 1.1 * low, room * high)
    };
    let seen = [Series::new("", 0, line(&record.seen.values))];
    let both = [
        Series::new("model", 1, line(model)),
        Series::new("means of the data", 0, line(&record.means.values)).dashed(),
    ];
    // Up: found; down: planted.
    let mut stems = Vec::new();
    for (k, f) in found.iter().enumerate() {
        let norm = |g: &Grid| g.values.iter().map(|x| x * x).sum::<f64>().sqrt();
        let unit = norm(&f.kernel) / norm(&wavelets()[k]);
        let mut points = vec![(SHOWN.start as f64, 0.0)];
        for i in SHOWN {
            let a = f.activations.values.get(i).copied().unwrap_or(0.0) * unit;
            let planted = record.events.iter().filter(|e| (e.0, e.1) == (k, i));
            let strength: f64 = planted.map(|e| PEAK * e.2).sum();
            let at = i as f64;
            points.extend([(at, 0.0), (at, a), (at, -strength), (at, 0.0)]);
        }
        stems.push(Series::new(&format!("wavelet {}", k + 1), k, points));
    }
    let mut panels = vec![
        Panel::lines(
            "500 of 3000 samples, as seen",
            &seen,
            &x(),
            &around("counts", &seen, 1.1),
        ),
        Panel::lines(
            "the same samples, modelled",
            &both,
            &x(),
            &around("counts", &both, 1.9),
        ),
        Panel::lines(
            "events: up found, down planted",
            &stems,
            &x(),
            &around("counts at the peak", &stems, 2.6),
        ),
    ];
    for (k, (f, truth)) in found.iter().zip(wavelets()).enumerate() {
        let points = |g: &Grid| {
            let norm = g.values.iter().map(|x| x * x).sum::<f64>().sqrt();
            let points = g.values.iter().enumerate();
            points.map(|(i, x)| (i as f64, x / norm)).collect()
        };
        let both = [
            Series::new("found", k, points(&f.kernel)),
            Series::new("planted", 3, points(&truth)).dashed(),
        ];
        panels.push(Panel::lines(
            &format!("wavelet {}: cosine {:.3}", k + 1, f.cosine),
            &both,
            &Axis::linear("sample", 0.0, (TAPS - 1) as f64),
            &around("value / norm", &both, 2.0),
        ));
    }
    context.picture(FIGURE.name, 3, (430.0, 320.0), panels)
}
