//! The number of components from the evidence bound of PLCA and PLSA.

use nalgebra::DMatrix;
use plca_dist::{draw_poisson, random::uniform};
use plca_em::{Init, Model, Plca, PlcaVb, PlsaVb, Solver, Stop};
use plca_priors::Entries;
use plca_tensor::{DenseTensor, Order};
use rayon::prelude::*;

use super::grid::Grid;
use super::support::{dirichlet, rng};
use crate::Result;
use crate::plot::{Axis, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "ext_evidence",
    source: "[EXT 3]",
    title: "The number of components by variational Bayes: the bound has a maximum, the likelihood has none",
    criterion: "Counts of three components, 10 x 8 x 6: the bound, with ln K! for the order of the components, is largest at three in at least four of five data sets, and of \
                eight components three keep a count in as many. Documents of four topics, 40 words: the bound of PLSA is \
                largest at four in at least four of five.",
    data: &[],
    run,
    control: Some(control),
};

const SHAPE: [usize; 3] = [10, 8, 6];
const COUNTS: f64 = 3000.0;
const TRUTH: usize = 3;
const TOO_MANY: usize = 8;
const WORDS: usize = 40;
const DOCUMENTS: usize = 60;
/// Counts of a document.
const LENGTH: f64 = 60.0;
const TOPICS: usize = 4;
const SETS: u64 = 5;
const MOST: usize = 6;
/// Shapes of the Dirichlet laws that factors are drawn from, and of their priors.
const SPARSE: f64 = 0.5;

fn counts(
    shape: &[usize],
    means: impl Fn(&[usize]) -> f64,
    draws: &mut rand_chacha::ChaCha8Rng,
) -> Result<DenseTensor<f64>> {
    let means = Grid::from_fn(shape, means);
    let values = means
        .values
        .iter()
        .map(|&m| Ok(draw_poisson(m, draws)? as f64));
    let values = values.collect::<Result<Vec<f64>>>()?;
    Ok(DenseTensor::new(shape.to_vec(), values, Order::RowMajor)?)
}

/// Three components of about the same weight.
fn tensor(seed: u64, set: u64) -> Result<DenseTensor<f64>> {
    let mut draws = rng(seed, 2150 + set);
    let factors: Vec<DMatrix<f64>> = (SHAPE.iter())
        .map(|&n| dirichlet(n, TRUTH, SPARSE, &mut draws))
        .collect();
    let mut weights = DMatrix::from_fn(TRUTH, 1, |_, _| 1.0 + uniform(&mut draws));
    plca_tensor::normalise_columns(&mut weights);
    let term = |i: &[usize], z: usize| -> f64 {
        weights[z] * (0..3).map(|j| factors[j][(i[j], z)]).product::<f64>()
    };
    counts(
        &SHAPE,
        |i| COUNTS * (0..TRUTH).map(|z| term(i, z)).sum::<f64>(),
        &mut draws,
    )
}

/// Documents, columns, that mix four topics.
fn documents(seed: u64, set: u64) -> Result<DenseTensor<f64>> {
    let mut draws = rng(seed, 2160 + set);
    let topics = dirichlet(WORDS, TOPICS, 0.2, &mut draws);
    let means = LENGTH * topics * dirichlet(TOPICS, DOCUMENTS, 0.3, &mut draws);
    counts(&[WORDS, DOCUMENTS], |i| means[(i[0], i[1])], &mut draws)
}

fn stop() -> Stop {
    Stop::default().max_iter(400).tol(1e-9)
}

/// The best of some starts.
fn best<M: Model<f64>>(
    context: &Context,
    model: &M,
    v: &DenseTensor<f64>,
    set: u64,
) -> Result<(f64, M::State)> {
    let starts = context.size(6, 3) as u64;
    let mut best: Option<(f64, M::State)> = None;
    for n in 0..starts {
        let run = model.on(v)?.solver(Solver::Em).stop(stop());
        let fit = run.run(
            Init::default(),
            &mut rng(context.start(set * starts + n), 0),
        )?;
        let objective = fit.objective();
        if best.as_ref().is_none_or(|b| objective > b.0) {
            best = Some((objective, fit.into_state()));
        }
    }
    Ok(best.ok_or("no starts")?)
}

fn ln_orders(k: usize) -> f64 {
    (1..=k).map(|i| (i as f64).ln()).sum()
}

fn plca(k: usize, weights: f64) -> Result<PlcaVb> {
    let model = (0..3).fold(PlcaVb::new(k), |model, j| {
        model.prior(format!("factor_{j}_shape"), Entries::All(SPARSE))
    });
    Ok(model.prior("weights_shape", Entries::All(weights)))
}

/// What one data set gives: curves over the number of components, and which of too many keep a count.
struct Found {
    bound: Vec<f64>,
    likelihood: Vec<f64>,
    topics: Vec<f64>,
    alive: usize,
    counts: Vec<f64>,
}

fn found(context: &Context, set: u64) -> Result<Found> {
    let v = tensor(context.seed, set)?;
    let (mut bound, mut likelihood) = (Vec::new(), Vec::new());
    for k in 1..=MOST {
        bound.push(best(context, &plca(k, 1.0)?, &v, set)?.0 + ln_orders(k));
        likelihood.push(best(context, &Plca::new(k), &v, set)?.0);
    }
    let words = documents(context.seed, set)?;
    let mut topics = Vec::new();
    for k in 1..=MOST {
        let model = PlsaVb::new(k)
            .prior("basis_shape", Entries::All(0.2))
            .prior("mixture_shape", Entries::All(0.3));
        topics.push(best(context, &model, &words, set)?.0 + ln_orders(k));
    }
    // The shape of a weight is that of its prior and the component's counts.
    let prior = 0.01;
    let (_, state) = best(context, &plca(TOO_MANY, prior)?, &v, set)?;
    let mut counts: Vec<f64> = state.weights_shape().iter().map(|a| a - prior).collect();
    counts.sort_by(|a, b| b.total_cmp(a));
    let alive = counts.iter().filter(|&&n| n > 1.0).count();
    Ok(Found {
        bound,
        likelihood,
        topics,
        alive,
        counts,
    })
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, 0)
}

/// A component more taken for the truth.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, 1)
}

fn largest_at(curve: &[f64]) -> usize {
    let largest = (0..curve.len()).max_by(|&a, &b| curve[a].total_cmp(&curve[b]));
    largest.map_or(0, |at| at + 1)
}

fn measure(context: &Context, more: usize) -> Result<Vec<Entry>> {
    let sets = (0..SETS).into_par_iter().map(|set| found(context, set));
    let sets = sets.collect::<Result<Vec<Found>>>()?;
    let files = draw(context, &sets)?;
    let share = |right: &dyn Fn(&Found) -> bool| {
        sets.iter().filter(|s| right(s)).count() as f64 / sets.len() as f64
    };
    let listed = |of: &dyn Fn(&Found) -> usize| {
        let each: Vec<String> = sets.iter().map(|s| of(s).to_string()).collect();
        each.join(", ")
    };
    let arrays = Data::generated("five arrays of counts, 10 x 8 x 6, of three components");
    let documents = Data::generated("five times 60 documents of four topics");
    let row = |what: &str, of: &dyn Fn(&Found) -> usize, truth: usize, data: &Data, least: f64| {
        let value = share(&|s| of(s) == truth + more);
        Entry::number(what, value, data, &files)
            .at_least(least)
            .detail(listed(of))
    };
    Ok(vec![
        row(
            "PLCA: share of data sets whose bound is largest at three components",
            &|s| largest_at(&s.bound),
            TRUTH,
            &arrays,
            0.8,
        ),
        row(
            "PLCA: share of data sets of which three of eight components keep a count",
            &|s| s.alive,
            TRUTH,
            &arrays,
            0.8,
        ),
        row(
            "PLSA: share of data sets whose bound is largest at four topics",
            &|s| largest_at(&s.topics),
            TOPICS,
            &documents,
            0.8,
        ),
        Entry::words(
            "PLCA by EM: number of components with the largest likelihood",
            listed(&|s| largest_at(&s.likelihood)),
            &arrays,
            &files,
        ),
    ])
}

fn draw(context: &Context, sets: &[Found]) -> Result<Vec<String>> {
    let panel = |title: &str, label: &str, truth: usize, of: fn(&Found) -> &Vec<f64>| {
        // What the best number loses, so that data sets share an axis.
        let one = |(n, s): (usize, &Found)| {
            let top = of(s).iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let points = of(s).iter().enumerate();
            let points = points.map(|(i, x)| ((i + 1) as f64, (top - x + 1.0).log10()));
            Series::new(&format!("data set {}", n + 1), n, points.collect())
        };
        let mut series: Vec<Series> = sets.iter().enumerate().map(one).collect();
        let high = series
            .iter()
            .flat_map(|s| &s.points)
            .map(|p| p.1)
            .fold(0.0, f64::max);
        let x = truth as f64;
        series.push(Series::new("true number", 5, vec![(x, 0.0), (x, high)]).dashed());
        let x = Axis::linear("components fitted", 1.0, MOST as f64);
        Panel::lines(title, &series, &x, &Axis::linear(label, 0.0, 1.9 * high))
    };
    let bound = "log10(1 + loss of the bound), nats";
    let likelihood = "log10(1 + loss of the likelihood), nats";
    let one = |(n, s): (usize, &Found)| {
        let points = s.counts.iter().enumerate();
        let points = points.map(|(i, x)| ((i + 1) as f64, (x.max(0.0) + 1.0).log10()));
        Series::new(&format!("data set {}", n + 1), n, points.collect())
    };
    let alive: Vec<Series> = sets.iter().enumerate().map(one).collect();
    let x = Axis::linear("component, by its counts", 1.0, TOO_MANY as f64);
    let y = Axis::linear("log10(1 + counts)", 0.0, 4.0);
    let panels = vec![
        panel("PLCA, variational Bayes", bound, TRUTH, |s| &s.bound),
        panel("PLCA, maximum likelihood", likelihood, TRUTH, |s| {
            &s.likelihood
        }),
        panel("PLSA, variational Bayes", bound, TOPICS, |s| &s.topics),
        Panel::lines(
            "PLCA with eight components, weight shape 0.01",
            &alive,
            &x,
            &y,
        ),
    ];
    context.picture(FIGURE.name, 2, (520.0, 360.0), panels)
}
