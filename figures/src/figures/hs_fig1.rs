//! HS, figure 1: a block under noise, by maximum likelihood and under squared error.

use std::ops::Range;

use nalgebra::DMatrix;
use plca_dist::random::uniform;
use plca_tensor::{DenseTensor, Order};
use pntf_l2::{Init, Model, Pntf, Stop};

use super::hs_methods::best;
use super::support::{matrix_rows, rng};
use crate::Result;
use crate::plot::{Axis, Panel};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "hs_fig1",
    source: "[HS] figure 1",
    title: "A block under one-sided noise: rank-one fits by likelihood and under squared error",
    criterion: "In four settings the squared-error fit keeps the gap between block and rest (ratio to the data's in [0.95, 1.05]) \
                and its contrast (within 10 %); the likelihood fit loses both (gap <= 0.75, contrast below 0.65), and lies \
                further from the block without noise.",
    data: &[],
    run,
    control: Some(control),
};

/// Size, size of the block, height of the noise.
const SETTINGS: [(usize, usize, f64); 4] = [
    (50, 15, 0.2),
    (100, 30, 0.2),
    (100, 20, 0.1),
    (200, 30, 0.1),
];
const SWEEPS: usize = 300;
const STARTS: u64 = 5;

/// How a matrix shows its block.
struct Block {
    gap: f64,
    contrast: f64,
}

fn look(p: &DMatrix<f64>, block: usize) -> Block {
    let cells = (block * block) as f64;
    let inside = p.view((0, 0), (block, block)).sum();
    let rest = (p.sum() - inside) / (p.len() as f64 - cells);
    let inside = inside / cells;
    Block {
        gap: inside - rest,
        contrast: inside / rest,
    }
}

/// The best rank-one model under relative entropy: the product of the marginals.
fn likelihood(g: &DMatrix<f64>) -> DMatrix<f64> {
    // [HS prop. 2]
    g.column_sum() * g.row_sum()
}

fn squared_error(g: &DMatrix<f64>, starts: Range<u64>) -> Result<DMatrix<f64>> {
    let shape = vec![g.nrows(), g.ncols()];
    let data = DenseTensor::new(shape, g.as_slice().to_vec(), Order::ColumnMajor)?;
    let stop = Stop::default().max_iter(SWEEPS).tol(None);
    let pntf = Pntf::new(1);
    let fit = best(starts.map(|start| {
        let run = pntf.on(&data)?.stop(stop.clone());
        Ok(run.run(Init::default(), &mut rng(start, 1))?)
    }))?;
    let state = fit.state();
    Ok(state.factor(0) * state.factor(1).transpose())
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, false)
}

/// The two fits exchanged.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, true)
}

fn measure(context: &Context, exchanged: bool) -> Result<Vec<Entry>> {
    let mut panels = Vec::new();
    let mut measured = Vec::new();
    for (nth, (n, block, low)) in SETTINGS.into_iter().enumerate() {
        let mut draws = rng(context.seed, 20 + nth as u64);
        let inside = |i, j| i < block && j < block;
        let raw = DMatrix::from_fn(n, n, |i, j| {
            let noise = low * uniform(&mut draws);
            if inside(i, j) { 1.0 } else { noise }
        });
        let mass = raw.sum();
        let g = raw / mass;
        let clean = DMatrix::from_fn(n, n, |i, j| if inside(i, j) { 1.0 / mass } else { 0.0 });
        let (mut ml, mut l2) = (likelihood(&g), squared_error(&g, context.starts(STARTS))?);
        if exchanged {
            std::mem::swap(&mut ml, &mut l2);
        }
        let name = Data::generated(&format!(
            "{n} x {n}, block {block} x {block} of 1, the rest uniform up to {low}"
        ));
        let (data, by_ml, by_l2) = (look(&g, block), look(&ml, block), look(&l2, block));
        measured.push((
            name,
            [by_l2.gap / data.gap, by_ml.gap / data.gap],
            [
                by_l2.contrast / data.contrast,
                by_ml.contrast / data.contrast,
            ],
            [(&l2 - &clean).amax(), (&ml - &clean).amax()],
        ));
        // Two settings tell the story; all are in the report.
        if nth == 0 || nth == 3 {
            let axis = Axis::bare("", n);
            let shown = [("data", &g), ("likelihood", &ml), ("squared error", &l2)];
            panels.extend(shown.map(|(what, p)| {
                let title = format!("{what}, {n} x {n}");
                Panel::density(&title, &matrix_rows(p), &axis, &axis).without_numbers()
            }));
        }
    }
    let files = context.picture(FIGURE.name, 3, (400.0, 400.0), panels)?;
    let mut entries = Vec::new();
    for (data, gap, contrast, error) in measured {
        let name: Vec<&str> = data.name.split(',').take(2).collect();
        let name = name.join(",");
        let row = |what: &str, value: f64| {
            Entry::number(&format!("{name}: {what}"), value, &data, &files)
        };
        let [l2, ml] = error;
        entries.extend([
            row("gap over the data's, squared error", gap[0]).within(0.95, 1.05),
            row("gap over the data's, likelihood", gap[1]).at_most(0.75),
            row("contrast over the data's, squared error", contrast[0]).within(0.9, 1.1),
            row("contrast over the data's, likelihood", contrast[1]).below(0.65),
            row(
                "largest distance from the block without noise, squared error less likelihood",
                l2 - ml,
            )
            .below(0.0)
            .detail(format!("{l2:.2e} and {ml:.2e}")),
        ]);
    }
    Ok(entries)
}
