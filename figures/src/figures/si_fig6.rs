//! SI, figure 6: one shape that a colour photograph repeats.

use plca_dist::random::uniform;
use plca_em::{Anneal, Shifted};
use plca_media::{Image, read_image};

use super::grid::{Grid, Runs, aligned, noise, normal, places, runs};
use super::support::rng;
use crate::Result;
use crate::plot::Panel;
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "si_fig6",
    source: "[SI] figure 6",
    title: "The head that a group photograph repeats",
    criterion: "Generated: kernel cosine > 0.9, that of its colours > 0.99, impulse cosine > 0.7 after alignment. The group photograph and \
                the coloured sweets: as measured.",
    data: &[GROUP, SWEETS],
    run,
    control: Some(control),
};

const SHAPE: [usize; 3] = [50, 140, 3];
const KERNEL: [usize; 3] = [13, 9, 3];
const ROOM: [usize; 3] = [
    SHAPE[0] - KERNEL[0] + 1,
    SHAPE[1] - KERNEL[1] + 1,
    SHAPE[2] - KERNEL[2] + 1,
];
const COPIES: usize = 28;
const ITERATIONS: usize = 100;
const SEEDS: u64 = 5;
const GROUP: &str = "images/solvay_1927.jpg";
const SWEETS: &str = "images/smarties.png";

/// A head: hair, face, robe.
fn head() -> Grid {
    Grid::from_fn(&KERNEL, |i| {
        let (y, x) = (i[0] as f64, i[1] as f64 - 4.0);
        let disc = |cy: f64, ry: f64, rx: f64| {
            let r = ((y - cy) / ry).powi(2) + (x / rx).powi(2);
            1.0 / (1.0 + (6.0 * (r - 1.0)).exp())
        };
        let face = disc(5.0, 3.6, 2.6);
        let hair = (disc(3.0, 3.4, 3.4) - face).max(0.0);
        let robe = disc(12.0, 2.6, 4.2);
        let [f, h, r] = [[1.0, 0.75, 0.6], [0.35, 0.2, 0.1], [0.7, 0.1, 0.15]].map(|c| c[i[2]]);
        face * f + hair * h + robe * r
    })
}

fn fit(
    input: &Grid,
    components: usize,
    kernel: &[usize],
    seeds: std::ops::Range<u64>,
    iterations: usize,
) -> Result<Runs> {
    let config = Shifted::new(components, kernel.to_vec()).anneal(Anneal {
        alpha0: 0.7,
        over: 0.5 * iterations as f64,
    });
    runs(&config, &input.tensor()?, seeds, iterations)
}

/// Sums of the three colours.
fn colours(kernel: &Grid) -> Grid {
    Grid::from_fn(&[3], |c| kernel.values.iter().skip(c[0]).step_by(3).sum())
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let truth = head();
    let mut rng = rng(context.seed, 30);
    let mut impulse = Grid::zeros(&ROOM);
    let mut input = Grid::zeros(&SHAPE);
    for at in places(COPIES, &[0, 0, 0], &ROOM, 8, &mut rng) {
        let loud = 0.8 + 0.4 * uniform(&mut rng);
        input.stamp(&truth, &at, loud);
        impulse.stamp(&Grid::from_fn(&[1, 1, 1], |_| 1.0), &at, loud);
    }
    for x in &mut input.values {
        *x = (*x + 0.02) * (1.0 + 0.1 * normal(&mut rng)).max(0.0);
    }
    let mut entries = measure(context, &input, &impulse)?;
    entries.extend(group(context)?);
    entries.extend(sweets(context)?);
    Ok(entries)
}

/// Noise in place of the heads.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let mut rng = rng(context.seed, 30);
    let mut impulse = Grid::zeros(&ROOM);
    for at in places(COPIES, &[0, 0, 0], &ROOM, 8, &mut rng) {
        impulse.stamp(&Grid::from_fn(&[1, 1, 1], |_| 1.0), &at, 1.0);
    }
    measure(context, &noise(&SHAPE, context.seed), &impulse)
}

fn measure(context: &Context, input: &Grid, impulse: &Grid) -> Result<Vec<Entry>> {
    let truth = head();
    let runs = fit(input, 1, &KERNEL, context.starts(SEEDS), ITERATIONS)?;
    let state = runs.best();
    let kernel = Grid::of_block(state.kernels(), 0, &KERNEL);
    let (cosine, shift) = aligned(&truth, &kernel, &[KERNEL[0] - 1, KERNEL[1] - 1, 0]);
    let found = Grid::of_block(state.impulses(), 0, &ROOM).moved_back(&shift);
    let (colour, placed) = (
        colours(&truth).cosine(&colours(&kernel)),
        impulse.cosine(&found),
    );

    let panels = vec![
        input.colours("input", false),
        runs.model().colours("reconstruction", false),
        kernel.colours("kernel", false),
        Grid::of_block(state.impulses(), 0, &ROOM).image("impulse"),
    ];
    let files = context.picture(FIGURE.name, 2, (520.0, 260.0), panels)?;
    let data = Data::generated("50 x 140 x 3, 28 heads, 10 % noise and a floor");
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    Ok(vec![
        row("kernel cosine", cosine).above(0.9),
        row("cosine of the sums of colours", colour).above(0.99),
        row("impulse cosine after alignment", placed).above(0.7),
    ])
}

fn grid(image: &Image, value: impl Fn(f64) -> f64) -> Grid {
    Grid {
        shape: vec![image.height, image.width, image.channels],
        values: image.values.iter().map(|&x| value(x)).collect(),
    }
}

/// The faces of a group photograph: bright shapes of the size of a head.
fn group(context: &Context) -> Result<Option<Entry>> {
    let (Some(path), Some((_, data))) = (context.path(GROUP)?, context.file(GROUP)?) else {
        return Ok(None);
    };
    let image = read_image(&path)?;
    // The three rows of heads.
    let part = image.cropped(370, 0, 340, image.width);
    let input = grid(&part.resized(136, 136 * image.width / 340), |x| x);
    let kernel = [35, 25, 1];
    let runs = fit(&input, 1, &kernel, context.starts(1), context.size(100, 30))?;
    let state = runs.best();
    let room: Vec<usize> = (0..3).map(|d| input.shape[d] - kernel[d] + 1).collect();
    // Light on black, as a photograph is.
    let bright = |title: &str, grid: &Grid| {
        let rows = grid.rows_down();
        let pixels: Vec<Vec<[f64; 3]>> = rows
            .iter()
            .map(|r| r.iter().map(|&x| [x; 3]).collect())
            .collect();
        Panel::colours(title, &pixels, false)
    };
    let panels = vec![
        bright("input", &input),
        bright("reconstruction", runs.model()),
        bright("kernel", &Grid::of_block(state.kernels(), 0, &kernel)),
        Grid::of_block(state.impulses(), 0, &room).image("impulse"),
    ];
    let files = context.picture("si_fig6_group", 2, (620.0, 200.0), panels)?;
    let d = runs.divergence();
    Ok(Some(Entry::number(
        "group photograph, K = 1: D/v",
        d,
        &data,
        &files,
    )))
}

/// Sweets of several colours: one disc for each.
fn sweets(context: &Context) -> Result<Option<Entry>> {
    let (Some(path), Some((_, data))) = (context.path(SWEETS)?, context.file(SWEETS)?) else {
        return Ok(None);
    };
    let image = read_image(&path)?;
    let small = image.resized(image.height / 3, image.width / 3);
    // What the sweets take away from the white of the paper.
    let input = grid(&small, |x| (1.0 - x).max(0.0));
    let (components, kernel) = (6, [21, 21, 3]);
    let runs = fit(
        &input,
        components,
        &kernel,
        context.starts(1),
        context.size(150, 40),
    )?;
    let state = runs.best();
    let room: Vec<usize> = (0..3).map(|d| input.shape[d] - kernel[d] + 1).collect();
    let mut order: Vec<usize> = (0..components).collect();
    order.sort_by(|&a, &b| state.weights()[b].total_cmp(&state.weights()[a]));
    let mut panels = vec![input.colours("input", true)];
    for &z in &order {
        let title = format!("kernel, P(z) = {:.2}", state.weights()[z]);
        panels.push(Grid::of_block(state.kernels(), z, &kernel).colours(&title, true));
    }
    panels.push(runs.model().colours("reconstruction", true));
    for &z in &order {
        panels.push(Grid::of_block(state.impulses(), z, &room).image("impulse"));
    }
    let files = context.picture("si_fig6_sweets", components + 1, (260.0, 280.0), panels)?;
    let d = runs.divergence();
    Ok(Some(Entry::number(
        "coloured sweets, K = 6: D/v",
        d,
        &data,
        &files,
    )))
}
