//! SI, section 5: what too few, too many, too small and too large components do.

use plca_em::{Anneal, Shifted};

use super::grid::{Grid, runs};
use super::si_fig3::{SHAPE, letters, sheet};
use crate::Result;
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure};

pub(crate) const FIGURE: Figure = Figure {
    name: "si_sizes",
    source: "[SI] section 5",
    title: "Too few, too many, too small and too large kernels for two letters",
    criterion: "Kernels and impulses are shown for each choice; divergences are as measured. A small divergence is not a sign of the right size: what \
                kernels do not hold, impulses do.",
    data: &[],
    run,
    control: None,
};

/// Name, number of kernels, side of a kernel.
const CASES: [(&str, usize, usize); 5] = [
    ("two, 9 x 9", 2, 9),
    ("too few", 1, 9),
    ("too many", 4, 9),
    ("too small", 2, 5),
    ("too large", 2, 15),
];
const SEEDS: u64 = 3;
const COLUMNS: usize = 6;

fn run(context: &Context) -> Result<Vec<Entry>> {
    let input = sheet(context, &letters());
    let (mut panels, mut measured) = (Vec::new(), Vec::new());
    for (name, components, side) in CASES {
        let config = Shifted::new(components, vec![side, side]).anneal(Anneal {
            alpha0: 0.7,
            over: 60.0,
        });
        let seeds = context.starts(SEEDS);
        let runs = runs(&config, &input.tensor()?, seeds, 120)?;
        let state = runs.best();
        measured.push(runs.divergence());
        panels.push(
            runs.model()
                .image(&format!("{name}: D/v {:.4}", runs.divergence())),
        );
        for z in 0..components {
            let kernel = Grid::of_block(state.kernels(), z, &[side, side]);
            panels.push(kernel.image(&format!("kernel, P(z) = {:.2}", state.weights()[z])));
        }
        let room = [SHAPE[0] - side + 1, SHAPE[1] - side + 1];
        for z in 0..components.min(COLUMNS - 1 - components) {
            let impulse = Grid::of_block(state.impulses(), z, &room);
            panels.push(impulse.image(&format!("impulse {}", z + 1)));
        }
        while panels.len() % COLUMNS > 0 {
            panels.push(Grid::zeros(&[1, 1]).image(""));
        }
    }
    let files = context.picture(FIGURE.name, COLUMNS, (250.0, 260.0), panels)?;
    let data = Data::generated("60 x 60, two blurred 9 x 9 letters, seven copies each");
    let list: Vec<_> = (CASES.iter().zip(&measured))
        .map(|((name, ..), d)| format!("{name} {d:.4}"))
        .collect();
    let what = "D/v of each choice";
    Ok(vec![Entry::words(what, list.join(", "), &data, &files)])
}
