//! LV, figure 5: where the information sits, in kernels or in impulses, and how an entropic prior decides it.

use std::sync::Arc;

use plca_em::{Anneal, Prior, Shifted};
use plca_priors::Entropic;

use super::grid::{Grid, Runs, aligned, places, runs};
use super::support::{largest, rng, smallest};
use crate::Result;
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "lv_fig5",
    source: "[LV] figure 5",
    title: "Entropic priors on impulses and on kernels",
    criterion: "A weak prior on the impulses (0.1 per count) finds the sign from most starts (cosine > 0.8 from at least six of ten and from more than without a prior, > 0.9 at the best objective); a prior on the \
                kernel (0.3) moves the picture into the impulses: kernel entropy < 1, impulse entropy > 4.",
    data: &[],
    run,
    control: Some(control),
};

const SHAPE: [usize; 2] = [40, 40];
const KERNEL: [usize; 2] = [11, 11];
const SIGNS: usize = 10;
const SEEDS: u64 = 10;

/// One of the five ways to fit, and what came of it.
struct Way {
    name: &'static str,
    runs: Runs,
    /// Of each start: cosine of the kernel, entropies of kernel and impulse.
    results: Vec<[f64; 3]>,
}

impl Way {
    fn text(&self) -> String {
        let each: Vec<_> = (self.results.iter())
            .map(|[c, k, i]| format!("cosine {c:.3}, entropies {k:.2} and {i:.2}"))
            .collect();
        each.join("; ")
    }

    fn best(&self) -> [f64; 3] {
        self.results[self.runs.best]
    }
}

fn sign() -> Grid {
    Grid::from_fn(&[7, 7], |i| f64::from(u8::from(i[0] == 3 || i[1] == 3)))
}

fn fit(context: &Context, input: &Grid, name: &'static str) -> Result<Way> {
    // [SPEC 5.5] strengths relative to the component's expected count
    let prior = |rho: f64| -> Result<Prior<f64>> { Ok(Arc::new(Entropic::relative(rho)?)) };
    let model = Shifted::new(1, KERNEL.to_vec());
    let config = match name {
        "impulse, 0.1" => model.prior("impulses", prior(0.1)?),
        "impulse, 0.3" => model.prior("impulses", prior(0.3)?),
        "kernel, 0.3" => model.prior("kernels", prior(0.3)?),
        "annealed" => model.anneal(Anneal {
            alpha0: 0.7,
            over: 40.0,
        }),
        _ => model,
    };
    let seeds = context.starts(SEEDS);
    let runs = runs(&config, &input.tensor()?, seeds, 80)?;
    let mut truth = Grid::zeros(&KERNEL);
    truth.stamp(&sign(), &[2, 2], 1.0);
    let results = (runs.all.iter())
        .map(|run| {
            let kernel = Grid::of_block(run.state().kernels(), 0, &KERNEL);
            let (cosine, _) = aligned(&truth, &kernel, &[10, 10]);
            [
                cosine,
                kernel.entropy(),
                impulse(run.state().impulses()).entropy(),
            ]
        })
        .collect();
    Ok(Way {
        name,
        runs,
        results,
    })
}

fn impulse(block: &nalgebra::DMatrix<f64>) -> Grid {
    let room: Vec<usize> = (0..2).map(|d| SHAPE[d] - KERNEL[d] + 1).collect();
    Grid::of_block(block, 0, &room)
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, [0, 1, 2, 3, 4])
}

/// The ways to fit taken for one another.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let mut rows = measure(context, [0, 3, 2, 1, 4])?;
    // The weaker prior on the impulse for the stronger one.
    rows[5] = measure(context, [0, 2, 1, 3, 4])?.swap_remove(5);
    Ok(rows)
}

/// Rows of the five ways in this order.
fn measure(context: &Context, order: [usize; 5]) -> Result<Vec<Entry>> {
    let mut input = Grid::zeros(&SHAPE);
    // Corners in 2..=31, so that the window around every sign fits into the picture; the signs do not overlap.
    for at in places(SIGNS, &[2, 2], &[30, 30], 7, &mut rng(context.seed, 24)) {
        input.stamp(&sign(), &at, 1.0);
    }
    let names = [
        "no prior",
        "impulse, 0.1",
        "impulse, 0.3",
        "kernel, 0.3",
        "annealed",
    ];
    let ways: Vec<Way> = (names.into_iter())
        .map(|name| fit(context, &input, name))
        .collect::<Result<_>>()?;

    let mut panels = vec![input.image("input")];
    for way in &ways {
        let kernel = Grid::of_block(way.runs.best().kernels(), 0, &KERNEL);
        panels.push(kernel.image(way.name));
    }
    panels.push(input.image("input"));
    for way in &ways {
        let [_, k, i] = way.best();
        panels
            .push(impulse(way.runs.best().impulses()).image(&format!("entropies {k:.2}, {i:.2}")));
    }
    let files = context.picture(FIGURE.name, 6, (260.0, 275.0), panels)?;

    let data = Data::generated("40 x 40, ten plus signs of 7 x 7 that do not overlap");
    let [plain, weak, strong, kernel, annealed] = order.map(|at| &ways[at]);
    let all = |way: &Way, which: usize| -> Vec<f64> {
        way.results.iter().map(|result| result[which]).collect()
    };
    // The mean over the starts: where signs do not overlap, the best start has ten points whatever the prior.
    let mean = |way: &Way| way.results.iter().map(|r| r[2]).sum::<f64>() / SEEDS as f64;
    let finds = |way: &Way| all(way, 0).iter().filter(|&&c| c > 0.8).count() as f64;
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    let words = |what: &str, way: &Way| Entry::words(what, way.text(), &data, &files);
    Ok(vec![
        row(
            "prior 0.1 on the impulse: cosine of the best start",
            weak.best()[0],
        )
        .above(0.9)
        .detail(weak.text()),
        row(
            "prior 0.1 on the impulse: starts of ten with a cosine above 0.8",
            finds(weak),
        )
        .at_least(6.0),
        row(
            "such starts, less those without a prior",
            finds(weak) - finds(plain),
        )
        .above(0.0),
        row(
            "prior 0.3 on the kernel: largest entropy of a kernel",
            largest(all(kernel, 1)),
        )
        .below(1.0)
        .detail(kernel.text()),
        row(
            "prior 0.3 on the kernel: smallest entropy of an impulse",
            smallest(all(kernel, 2)),
        )
        .above(4.0),
        row(
            "mean impulse entropy under a prior of 0.3 less that under 0.1",
            mean(strong) - mean(weak),
        )
        .below(0.0)
        .detail(format!("{:.2} against {:.2}", mean(strong), mean(weak))),
        words("no prior (truth: entropies 2.56 and 2.30)", plain),
        words("annealing", annealed),
    ])
}
