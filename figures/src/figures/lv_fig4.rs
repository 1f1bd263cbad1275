//! LV, figure 4: coloured digits anywhere in a picture.

use plca_em::{Anneal, Shifted};

use super::grid::{Grid, matches, noise, places, runs, worst};
use super::support::rng;
use crate::Result;
use crate::plot::Panel;
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "lv_fig4",
    source: "[LV] figure 4",
    title: "Three coloured digits anywhere in a picture",
    criterion: "The best of sixteen starts finds all three digits with their colours: every kernel cosine > 0.95.",
    data: &[],
    run,
    control: Some(control),
};

const SHAPE: [usize; 3] = [50, 60, 3];
const KERNEL: [usize; 3] = [9, 9, 3];
const ROOM: [usize; 3] = [
    SHAPE[0] - KERNEL[0] + 1,
    SHAPE[1] - KERNEL[1] + 1,
    SHAPE[2] - KERNEL[2] + 1,
];
const COPIES: usize = 5;
const SEEDS: u64 = 16;

/// Red, green and blue of the digits.
const COLOURS: [[f64; 3]; 3] = [[1.0, 0.25, 0.1], [0.1, 0.8, 0.3], [0.2, 0.3, 1.0]];

fn digits() -> [Grid; 3] {
    let one = [
        ".........",
        "....##...",
        "...###...",
        "....##...",
        "....##...",
        "....##...",
        "....##...",
        "...####..",
        ".........",
    ];
    let two = [
        ".........",
        "..####...",
        ".##..##..",
        ".....##..",
        "....##...",
        "...##....",
        "..##.....",
        ".######..",
        ".........",
    ];
    let three = [
        ".........",
        "..####...",
        ".##..##..",
        ".....##..",
        "...###...",
        ".....##..",
        ".##..##..",
        "..####...",
        ".........",
    ];
    let coloured = |lines: &[&str], colour: [f64; 3]| {
        let ink = Grid::drawing(lines);
        Grid::from_fn(&KERNEL, |i| ink.get(&i[..2]) * colour[i[2]])
    };
    let [a, b, c] = COLOURS;
    [coloured(&one, a), coloured(&two, b), coloured(&three, c)]
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let truth = digits();
    let number = COPIES * truth.len();
    let all = places(number, &[0, 0, 0], &ROOM, 6, &mut rng(context.seed, 23));
    let mut input = Grid::zeros(&SHAPE);
    for (n, at) in all.iter().enumerate() {
        input.stamp(&truth[n % 3], at, 1.0);
    }
    measure(context, &input)
}

/// Noise in place of the digits.
fn control(context: &Context) -> Result<Vec<Entry>> {
    measure(context, &noise(&SHAPE, context.seed))
}

fn measure(context: &Context, input: &Grid) -> Result<Vec<Entry>> {
    let truth = digits();
    let config = Shifted::new(3, KERNEL.to_vec()).anneal(Anneal {
        alpha0: 0.7,
        over: 60.0,
    });
    let seeds = context.starts(SEEDS);
    let runs = runs(&config, &input.tensor()?, seeds, 120)?;
    let reach = [KERNEL[0] - 1, KERNEL[1] - 1, 0];
    let found = matches(&truth, runs.best().kernels(), &reach);

    let state = runs.best();
    let mut panels = vec![
        input.colours("input", false),
        runs.model().colours("reconstruction", false),
    ];
    let priors: Vec<_> = (found.iter().enumerate())
        .map(|(t, m)| ((t + 1).to_string(), state.weights()[m.component]))
        .collect();
    panels.push(Panel::bars("priors P(z)", &priors, "probability", 0));
    for (t, m) in found.iter().enumerate() {
        let kernel = Grid::of_block(state.kernels(), m.component, &KERNEL);
        panels.push(kernel.colours(&format!("kernel {}", t + 1), false));
    }
    for (t, m) in found.iter().enumerate() {
        let impulse = Grid::of_block(state.impulses(), m.component, &ROOM);
        panels.push(impulse.image(&format!("impulse {}", t + 1)));
    }
    let files = context.picture(FIGURE.name, 3, (330.0, 320.0), panels)?;
    let data = Data::generated("50 x 60 x 3, three coloured digits, five copies each");
    let cosine = worst(&found);
    let what = "best of sixteen starts: smallest kernel cosine";
    Ok(vec![Entry::number(what, cosine, &data, &files).above(0.95)])
}
