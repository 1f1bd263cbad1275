//! Quadratic sparsity of factors on the simplex under squared error.

use nalgebra::DMatrix;
use plca_tensor::{DenseTensor, Order};
use pntf_l2::{Init, Model, Pntf, PntfState, Stop};
use rayon::prelude::*;

use super::grid::Grid;
use super::support::{best_matching, cosine, gamma, normal, rng, smallest};
use crate::Result;
use crate::plot::{Axis, Panel, Ranges};
use crate::report::{Data, Entry, number};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "ext_sparsity",
    source: "[EXT 8]",
    title: "Parts of pictures with ever fewer cells, by the weight of quadratic sparsity",
    criterion: "Six parts in 60 noisy pictures of 12 x 12: from weight to weight more cells of the parts are exactly 0. At the weight 0.0003 the cells of the \
                parts are found (F score > 0.7, without sparsity below half of it), all cosines are above 0.98, and the error is at most 1.2 times that \
                without.",
    data: &[],
    run,
    control: Some(control),
};

const SIDE: usize = 12;
const PICTURES: usize = 60;
const K: usize = 6;
const WEIGHTS: [f64; 6] = [0.0, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3];
const NAMES: [&str; 6] = ["0", "3e-5", "1e-4", "3e-4", "1e-3", "3e-3"];
/// The weight that is judged.
const CHOSEN: usize = 3;

/// Angles of two bars that overlap, one a column: distributions over the cells of a picture.
fn parts() -> DMatrix<f64> {
    let corner = |k: usize| (6 * (k / 3), 4 * (k % 3));
    let inside = |cell: usize, k: usize| {
        let ((row, column), (r, c)) = ((cell / SIDE, cell % SIDE), corner(k));
        let block = (r + 1..r + 5).contains(&row) && (c..c + 4).contains(&column);
        let bar = (r..r + 5).contains(&row) && (c.max(1) - 1..c + 1).contains(&column);
        f64::from(u8::from(block)) + f64::from(u8::from(bar))
    };
    let mut parts = DMatrix::from_fn(SIDE * SIDE, K, inside);
    plca_tensor::normalise_columns(&mut parts);
    parts
}

/// Pictures, one a column, with noise of half their mean.
fn pictures(seed: u64) -> DMatrix<f64> {
    let mut draws = rng(seed, 2170);
    let strengths = DMatrix::from_fn(K, PICTURES, |_, _| 0.05 + gamma(0.5, &mut draws));
    let clean = parts() * strengths;
    let noise = 0.5 * clean.mean();
    clean.map(|x| (x + noise * normal(&mut draws)).max(0.0))
}

/// What the best of some starts gives under one weight.
struct Fitted {
    /// Share of the cells of the parts that are 0.
    zeros: f64,
    /// Norm of the data less the model, over that of the data.
    error: f64,
    /// Harmonic mean of precision and recall of the cells that parts have.
    f_score: f64,
    /// The smallest cosine of a part with the planted one.
    cosine: f64,
    /// Parts in the order of the planted ones.
    parts: DMatrix<f64>,
}

fn fit(context: &Context, pictures: &DMatrix<f64>, weight: f64) -> Result<Fitted> {
    let values = pictures.as_slice().to_vec();
    let g = DenseTensor::new(vec![SIDE * SIDE, PICTURES], values, Order::ColumnMajor)?;
    let pntf = Pntf::new(K).sparsity("factor_0", weight);
    let mut best: Option<(f64, PntfState<f64>)> = None;
    for start in context.starts(context.size(6, 3) as u64) {
        let stop = Stop::default().max_iter(100).tol(None);
        let fit = pntf
            .on(&g)?
            .stop(stop)
            .run(Init::default(), &mut rng(start, 0))?;
        let objective = fit.objective();
        if best.as_ref().is_none_or(|b| objective < b.0) {
            best = Some((objective, fit.into_state()));
        }
    }
    let (_, state) = best.ok_or("no starts")?;
    let truth = parts();
    let found = state.factor(0);
    let order = best_matching(K, |t, z| -cosine(truth.column(t), found.column(z)));
    let matched = DMatrix::from_fn(SIDE * SIDE, K, |i, k| found[(i, order[k])]);
    let weights = DMatrix::from_fn(K, 1, |k, _| state.weights()[k]);
    let model = found * DMatrix::from_diagonal(&weights.column(0)) * state.factor(1).transpose();
    let data = pictures / pictures.sum();
    let both = truth.iter().zip(&matched);
    let hits = both.filter(|(t, f)| **t > 0.0 && **f > 0.0).count() as f64;
    let cells = |m: &DMatrix<f64>| m.iter().filter(|x| **x > 0.0).count() as f64;
    Ok(Fitted {
        zeros: 1.0 - cells(found) / found.len() as f64,
        error: (&data - model).norm() / data.norm(),
        f_score: 2.0 * hits / (cells(&truth) + cells(&matched)),
        cosine: smallest((0..K).map(|k| cosine(truth.column(k), matched.column(k)))),
        parts: matched,
    })
}

fn fits(context: &Context) -> Result<Vec<Fitted>> {
    let pictures = pictures(context.seed);
    WEIGHTS
        .into_par_iter()
        .map(|w| fit(context, &pictures, w))
        .collect()
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let fits = fits(context)?;
    let files = draw(context, &fits)?;
    Ok(rows(&fits, CHOSEN, &files))
}

/// The weights in reverse order, and a weight ten times as large as the one that is judged.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let mut fits = fits(context)?;
    let mut entries = rows(&fits, WEIGHTS.len() - 1, &[]);
    fits.reverse();
    entries[0] = rows(&fits, CHOSEN, &[]).swap_remove(0);
    // Of what comes without sparsity, the wrong one is what comes with it.
    let first = WEIGHTS.len() - 1 - CHOSEN;
    fits.swap(0, first);
    entries.pop();
    entries.extend(rows(&fits, CHOSEN, &[]).pop());
    Ok(entries)
}

fn rows(fits: &[Fitted], chosen: usize, files: &[String]) -> Vec<Entry> {
    let data = Data::generated("60 pictures of 12 x 12, six parts, noise of half the mean");
    let all = |of: fn(&Fitted) -> f64| {
        let each: Vec<String> = fits.iter().map(|f| number(of(f))).collect();
        format!("weights {}: {}", NAMES.join(", "), each.join(", "))
    };
    let rises = smallest(fits.windows(2).map(|f| f[1].zeros - f[0].zeros));
    let (none, fit) = (&fits[0], &fits[chosen]);
    let row = |what: &str, value: f64, of: fn(&Fitted) -> f64| {
        Entry::number(what, value, &data, files).detail(all(of))
    };
    vec![
        row(
            "smallest rise of the share of zeros from weight to weight",
            rises,
            |f| f.zeros,
        )
        .above(0.0),
        row(
            "error at the weight 0.0003 over that without",
            fit.error / none.error,
            |f| f.error,
        )
        .below(1.2),
        row(
            "smallest cosine of a part at the weight 0.0003",
            fit.cosine,
            |f| f.cosine,
        )
        .above(0.98),
        row(
            "F score of the cells of the parts at the weight 0.0003",
            fit.f_score,
            |f| f.f_score,
        )
        .above(0.7),
        row("F score without sparsity", none.f_score, |f| f.f_score).below(0.4),
    ]
}

fn draw(context: &Context, fits: &[Fitted]) -> Result<Vec<String>> {
    // Three parts above three parts, black what is largest in each.
    let sheet = |title: &str, parts: &DMatrix<f64>| {
        let cell = |i: &[usize]| {
            let (k, gap) = (3 * (i[0] / (SIDE + 1)) + i[1] / (SIDE + 1), SIDE);
            let (row, column) = (i[0] % (SIDE + 1), i[1] % (SIDE + 1));
            if row == gap || column == gap {
                return 0.3;
            }
            parts[(row * SIDE + column, k)] / parts.column(k).max()
        };
        Grid::from_fn(&[2 * SIDE + 1, 3 * SIDE + 2], cell).image(title)
    };
    let mut panels = vec![sheet("the six parts, planted", &parts())];
    let pictures = pictures(context.seed).columns(0, K).into_owned();
    panels.push(sheet("six of the 60 noisy pictures", &pictures));
    for w in [0, 2, 3, 4] {
        let zeros = 100.0 * fits[w].zeros;
        let title = format!("found, weight {}: {zeros:.0} % zeros", NAMES[w]);
        panels.push(sheet(&title, &fits[w].parts));
    }
    type Curve = (&'static str, &'static str, fn(&Fitted) -> f64);
    let curves: [Curve; 3] = [
        ("zeros by weight", "share of the cells", |f| f.zeros),
        ("error by weight", "norm over that of the data", |f| f.error),
        ("cells found by weight", "F score", |f| f.f_score),
    ];
    for (title, label, of) in curves {
        let values: Vec<Option<(f64, f64)>> = fits.iter().map(|f| Some((of(f), 0.0))).collect();
        let high = fits.iter().map(of).fold(0.0, f64::max);
        let y = Axis::linear(label, 0.0, 1.1 * high);
        let series = Ranges {
            name: String::new(),
            colour: 0,
            values,
        };
        panels.push(Panel::ranges(title, &NAMES, &[series], &y));
    }
    context.picture(FIGURE.name, 3, (430.0, 320.0), panels)
}
