//! SI, figure 2: kernels that repeat along one dimension.

use plca_em::{Anneal, Shifted};

use super::grid::{Grid, Runs, matches, noise, runs, worst};
use super::support::rng;
use crate::Result;
use crate::plot::{Axis, LegendPosition, Panel, Series};
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};
use plca_dist::random::uniform;

pub(crate) const FIGURE: Figure = Figure {
    name: "si_fig2",
    source: "[SI] figure 2",
    title: "Two kernels that repeat along x",
    criterion: "The best of twenty starts finds both kernels: cosine > 0.9 with kernel annealing and without, D/v < 1e-3.",
    data: &[],
    run,
    control: Some(control),
};

const SHAPE: [usize; 2] = [30, 80];
const KERNEL: [usize; 2] = [30, 11];
const SEEDS: u64 = 20;
const ITERATIONS: usize = 200;

/// A Gaussian of the two deviations, turned by `angle` from the vertical.
fn bump(i: &[usize], centre: [f64; 2], deviations: [f64; 2], angle: f64) -> f64 {
    let (y, x) = (i[0] as f64 - centre[0], i[1] as f64 - centre[1]);
    let along = y * angle.cos() + x * angle.sin();
    let across = x * angle.cos() - y * angle.sin();
    (-0.5 * ((along / deviations[0]).powi(2) + (across / deviations[1]).powi(2))).exp()
}

/// A tilted Gaussian, and a wedge of two.
fn kernels() -> [Grid; 2] {
    let tilted = Grid::from_fn(&KERNEL, |i| bump(i, [20.0, 5.0], [3.5, 1.1], 0.5));
    let wedge = Grid::from_fn(&KERNEL, |i| {
        bump(i, [9.0, 3.2], [4.0, 0.9], 0.3) + bump(i, [9.0, 6.8], [4.0, 0.9], -0.3)
    });
    [tilted, wedge].map(|kernel| {
        let sum = kernel.sum();
        Grid::from_fn(&KERNEL, |i| kernel.get(i) / sum)
    })
}

/// Four smooth bumps for each kernel.
fn impulses(context: &Context) -> [Vec<f64>; 2] {
    let mut rng = rng(context.seed, 20);
    let places = SHAPE[1] - KERNEL[1] + 1;
    [0, 1].map(|_| {
        let centres: Vec<(f64, f64)> = (0..4)
            .map(|n| {
                let at = (n as f64 + 0.2 + 0.6 * uniform(&mut rng)) * places as f64 / 4.0;
                (at, 0.5 + uniform(&mut rng))
            })
            .collect();
        (0..places)
            .map(|h| {
                let bump = |c: &(f64, f64)| c.1 * (-0.5 * (h as f64 - c.0).powi(2)).exp();
                centres.iter().map(bump).sum()
            })
            .collect()
    })
}

fn fit(context: &Context, input: &Grid, anneal: bool) -> Result<Runs> {
    let mut model = Shifted::new(2, KERNEL.to_vec());
    if anneal {
        // [SI eq. 16] [SPEC 5.3]
        model = model.anneal(Anneal {
            alpha0: 0.8,
            over: 0.5 * ITERATIONS as f64,
        });
    }
    let seeds = context.starts(SEEDS);
    runs(&model, &input.tensor()?, seeds, ITERATIONS)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let mut input = Grid::zeros(&SHAPE);
    for (kernel, impulse) in kernels().iter().zip(impulses(context)) {
        for (h, weight) in impulse.iter().enumerate() {
            input.stamp(kernel, &[0, h], *weight);
        }
    }
    measure(context, &input)
}

/// Noise in place of the kernels.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, &noise(&SHAPE, context.seed))
}

fn measure(context: &Context, input: &Grid) -> Result<Vec<Entry>> {
    let truth = kernels();
    let (annealed, plain) = (fit(context, input, true)?, fit(context, input, false)?);
    let reach = [0, KERNEL[1] - 1];
    let cosines =
        [&annealed, &plain].map(|runs| worst(&matches(&truth, runs.best().kernels(), &reach)));

    let files = draw(context, input, &truth, &annealed)?;
    let data = Data::generated("30 x 80, two kernels 30 x 11, four smooth impulses each");
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    Ok(vec![
        row("annealed: smallest kernel cosine", cosines[0]).above(0.9),
        row("not annealed: smallest kernel cosine", cosines[1]).above(0.9),
        row("annealed: D/v", annealed.divergence()).below(1e-3),
        row("not annealed: D/v", plain.divergence()).below(1e-3),
    ])
}

fn draw(context: &Context, input: &Grid, truth: &[Grid; 2], runs: &Runs) -> Result<Vec<String>> {
    let state = runs.best();
    let found = matches(truth, state.kernels(), &[0, KERNEL[1] - 1]);
    let kernels: Vec<Grid> = (found.iter())
        .map(|m| Grid::of_block(state.kernels(), m.component, &KERNEL))
        .collect();
    let places = SHAPE[1] - KERNEL[1] + 1;
    let density = |title: &str, grid: &Grid| {
        let x = Axis::linear("x", 0.0, grid.shape[1] as f64);
        Panel::density(title, &grid.rows_up(), &x, &Axis::linear("y", 0.0, 30.0))
    };
    let impulses: Vec<Series> = (found.iter().enumerate())
        .map(|(t, m)| {
            let column = state.impulses().column(m.component);
            let points = (0..places).map(|h| (h as f64, column[h])).collect();
            Series::new(&format!("z = {}", t + 1), t, points)
        })
        .collect();
    let priors: Vec<_> = (found.iter().enumerate())
        .map(|(t, m)| ((t + 1).to_string(), state.weights()[m.component]))
        .collect();
    let highest = Axis::from_zero("probability", state.impulses().iter().copied());
    let panels = vec![
        density("input", input),
        density("kernel, z = 1", &kernels[0]),
        density("kernel, z = 2", &kernels[1]),
        density("reconstruction", runs.model()),
        Panel::lines(
            "impulses P(x | z)",
            &impulses,
            &Axis::linear("x", 0.0, places as f64),
            &highest,
        )
        .legend(LegendPosition::OutsideRightTop),
        Panel::bars("priors P(z)", &priors, "probability", 0),
    ];
    context.picture(FIGURE.name, 3, (420.0, 330.0), panels)
}
