//! SI, figure 3: kernels that repeat along two dimensions, with and without annealing.

use plca_em::{Anneal, Shifted};

use super::grid::{Grid, Runs, matches, noise, places, runs, worst};
use super::support::{largest, rng};
use crate::Result;
use crate::plot::Panel;
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "si_fig3",
    source: "[SI] figure 3",
    title: "Two letters anywhere in a picture",
    criterion: "With kernel annealing both letters are found (cosine > 0.95) from at least three of five starts, three more than \
                without it; the best impulses have the entropy of seven places within 0.8.",
    data: &[],
    run,
    control: Some(control),
};

pub(super) const SHAPE: [usize; 2] = [60, 60];
const KERNEL: [usize; 2] = [9, 9];
const COPIES: usize = 7;
const SEEDS: u64 = 5;
const ITERATIONS: usize = 150;

pub(super) fn letters() -> [Grid; 2] {
    let a = Grid::drawing(&[
        ".........",
        "....#....",
        "...#.#...",
        "...#.#...",
        "..#...#..",
        "..#####..",
        ".#.....#.",
        ".#.....#.",
        ".........",
    ]);
    let x = Grid::drawing(&[
        ".........",
        ".#.....#.",
        "..#...#..",
        "...#.#...",
        "....#....",
        "...#.#...",
        "..#...#..",
        ".#.....#.",
        ".........",
    ]);
    [a, x].map(|letter| letter.blurred())
}

fn fit(context: &Context, input: &Grid, anneal: bool) -> Result<Runs> {
    let mut model = Shifted::new(2, KERNEL.to_vec());
    if anneal {
        // [SI eq. 16] [SPEC 5.3]
        model = model.anneal(Anneal {
            alpha0: 0.7,
            over: 75.0,
        });
    }
    let seeds = context.starts(SEEDS);
    runs(&model, &input.tensor()?, seeds, ITERATIONS)
}

/// Seven copies of each letter.
pub(super) fn sheet(context: &Context, truth: &[Grid; 2]) -> Grid {
    let room: Vec<usize> = (0..2).map(|d| SHAPE[d] - KERNEL[d] + 1).collect();
    let all = places(2 * COPIES, &[0, 0], &room, 5, &mut rng(context.seed, 21));
    let mut input = Grid::zeros(&SHAPE);
    for (n, at) in all.iter().enumerate() {
        input.stamp(&truth[n % 2], at, 1.0);
    }
    input
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    let truth = letters();
    let input = sheet(context, &truth);
    let (annealed, plain) = (fit(context, &input, true)?, fit(context, &input, false)?);
    measure(context, &input, &annealed, &plain)
}

/// The two ways to fit exchanged; for the impulses, noise in place of the letters.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let input = sheet(context, &letters());
    let (annealed, plain) = (fit(context, &input, true)?, fit(context, &input, false)?);
    let mut rows = measure(context, &input, &plain, &annealed)?;
    rows.truncate(2);
    let noise = noise(&SHAPE, context.seed);
    let fitted = fit(context, &noise, true)?;
    rows.extend(measure(context, &noise, &fitted, &fitted)?.drain(2..));
    Ok(rows)
}

fn measure(context: &Context, input: &Grid, annealed: &Runs, plain: &Runs) -> Result<Vec<Entry>> {
    let truth = letters();
    let room: Vec<usize> = (0..2).map(|d| SHAPE[d] - KERNEL[d] + 1).collect();
    let reach = [KERNEL[0] - 1, KERNEL[1] - 1];
    let cosines = |runs: &Runs| -> Vec<f64> {
        let states = runs.all.iter().map(|run| run.state());
        states
            .map(|state| worst(&matches(&truth, state.kernels(), &reach)))
            .collect()
    };
    let (with, without) = (cosines(annealed), cosines(plain));
    let room_of = |z: usize| Grid::of_block(annealed.best().impulses(), z, &room);
    let entropies = [0, 1].map(|z| room_of(z).entropy());

    let mut panels = row(input, &truth, annealed, annealed.best);
    // Of the starts without annealing, the one that fares worst.
    let unlucky = (0..without.len()).min_by(|&a, &b| without[a].total_cmp(&without[b]));
    panels.extend(row(input, &truth, plain, unlucky.unwrap_or(0)));
    let files = context.picture(FIGURE.name, 6, (270.0, 285.0), panels)?;

    let data = Data::generated("60 x 60, two blurred 9 x 9 letters, seven copies each");
    let list = |values: &[f64]| {
        let each: Vec<_> = values.iter().map(|x| format!("{x:.3}")).collect();
        each.join(" ")
    };
    let found = |cosines: &[f64]| cosines.iter().filter(|&&c| c > 0.95).count() as f64;
    let off = largest(entropies.map(|h| (h - (COPIES as f64).ln()).abs()));
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    Ok(vec![
        row(
            "annealed: starts of five whose kernel cosines are above 0.95",
            found(&with),
        )
        .at_least(3.0)
        .detail(list(&with)),
        row(
            "annealed: such starts, less those of runs that are not annealed",
            found(&with) - found(&without),
        )
        .at_least(3.0)
        .detail(list(&without)),
        row(
            "annealed, best start: distance of the impulses' entropies from ln 7",
            off,
        )
        .below(0.8)
        .detail(list(&entropies)),
    ])
}

/// Input, two kernels, two impulses and the reconstruction of one run.
fn row(input: &Grid, truth: &[Grid; 2], runs: &Runs, at: usize) -> Vec<Panel> {
    let room: Vec<usize> = (0..2).map(|d| SHAPE[d] - KERNEL[d] + 1).collect();
    let state = runs.all[at].state();
    let found = matches(truth, state.kernels(), &[KERNEL[0] - 1, KERNEL[1] - 1]);
    let mut panels = vec![input.image("input")];
    for (t, m) in found.iter().enumerate() {
        let title = format!(
            "kernel {}, P(z) = {:.2}",
            t + 1,
            state.weights()[m.component]
        );
        panels.push(Grid::of_block(state.kernels(), m.component, &KERNEL).image(&title));
    }
    for (t, m) in found.iter().enumerate() {
        let impulse = Grid::of_block(state.impulses(), m.component, &room);
        panels.push(impulse.image(&format!("impulse {}", t + 1)));
    }
    panels.push(runs.models[at].image("reconstruction"));
    panels
}
