//! HS, figure 1: a block under noise, by maximum likelihood and under squared error.

use nalgebra::DMatrix;
use plca_dist::random::uniform;
use plca_tensor::{DenseTensor, Order};
use pntf_l2::{Init, Model, Pntf, Stop};

use super::hs_methods::best;
use super::support::{matrix_rows, rng};
use crate::Result;
use crate::plot::{Axis, Panel};
use crate::reproduce::{Context, Data, Entry, Figure, Measured};

pub(crate) const FIGURE: Figure = Figure {
    name: "hs_fig1",
    source: "[HS] figure 1",
    title: "A block under one-sided noise: rank-one fits by likelihood and under squared error",
    criterion: "In four settings the squared-error fit keeps the gap between block and rest (ratio to the data's in [0.95, 1.05]) \
                and its contrast (within 10 %); the likelihood fit loses both (gap <= 0.75, contrast below 0.65), and lies \
                further from the block without noise.",
    run,
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

fn squared_error(g: &DMatrix<f64>, seed: u64) -> Result<DMatrix<f64>> {
    let shape = vec![g.nrows(), g.ncols()];
    let data = DenseTensor::new(shape, g.as_slice().to_vec(), Order::ColumnMajor)?;
    let stop = Stop::default().max_iter(SWEEPS).tol(None);
    let pntf = Pntf::builder(1).build()?;
    let fit = best((0..STARTS).map(|start| {
        let run = pntf.on(&data)?.stop(stop.clone());
        Ok(run.run(Init::default(), &mut rng(seed + start, 1))?)
    }))?;
    let state = fit.state();
    Ok(state.factor(0) * state.factor(1).transpose())
}

fn run(context: &Context) -> Result<Vec<Entry>> {
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
        let (ml, l2) = (likelihood(&g), squared_error(&g, context.seed)?);
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
        let mut add = |what: &str, [l2, ml]: [f64; 2], pass: bool| {
            let text = Measured::Text(format!("{l2:.3} and {ml:.3}"));
            entries.push(context.entry(what, text, pass, &data, &files));
        };
        let kept = (0.95..=1.05).contains(&gap[0]) && gap[1] <= 0.75;
        add(
            "gap, relative to the data's: squared error in [0.95, 1.05], likelihood <= 0.75",
            gap,
            kept,
        );
        let kept = (contrast[0] - 1.0).abs() <= 0.1 && contrast[1] < 0.65;
        add(
            "contrast, relative to the data's: squared error within 10 %, likelihood < 0.65",
            contrast,
            kept,
        );
        let closer = error[0] < error[1];
        let text = Measured::Text(format!("{:.2e} and {:.2e}", error[0], error[1]));
        let what = "largest distance from the block without noise: squared error below likelihood";
        entries.push(context.entry(what, text, closer, &data, &files));
    }
    Ok(entries)
}
