//! Transformation-invariant PLCA: two shapes, turned, enlarged and moved.

use plca_dist::random::below;
use plca_em::{
    Anneal, IndexMaps, Init, Model, Positions, Reconstruct, Shifted, ShiftedState, Solver, State,
    Stop, Transformation, Transformed, TransformedState,
};

use super::grid::{Grid, aligned, places, poisson};
use super::support::{best_matching, divergence, rng, smallest};
use crate::Result;
use crate::plot::Panel;
use crate::report::{Data, Entry};
use crate::reproduce::{Context, Figure, Size};

pub(crate) const FIGURE: Figure = Figure {
    name: "ext_turned_shapes",
    source: "[EXT 2]",
    title: "Two shapes at any place, turned, mirrored or enlarged",
    criterion: "Ten copies of F and Y, turned by multiples of 45 degrees, some enlarged by 1.5 (--quick: turned by quarters, some mirrored): the best start finds \
                both shapes (cosine > 0.8, up to a transformation and a shift), at less than 0.7 of the D/v that plain shifts reach with kernels of 13 x 13.",
    data: &[],
    run,
    control: Some(control),
};

const SIDE: usize = 64;
/// Copies of each shape.
const COPIES: usize = 5;
const KERNEL: usize = 9;
/// Kernels of plain shifts: large enough for an enlarged shape.
const PLAIN: usize = 13;
const COUNTS: f64 = 2500.0;
const ANNEAL: Anneal = Anneal {
    alpha0: 0.7,
    over: 60.0,
};
/// Raises impulses in the first phase, so that the information goes into the kernels.
const POWER: Anneal = Anneal {
    alpha0: 1.1,
    over: f64::INFINITY,
};
/// Iterations of the two phases.
const ITERATIONS: [usize; 2] = [90, 30];

/// Transformations of the copies and of the model.
struct Design {
    /// Degrees of a turn; all its multiples are taken.
    turn: f64,
    mirror: bool,
    scales: &'static [f64],
}

/// [EXT 2]
const WHOLE: Design = Design {
    turn: 45.0,
    mirror: false,
    scales: &[1.0, 1.5],
};
/// A table of 2 million shares in place of 30.
const QUICK: Design = Design {
    turn: 90.0,
    mirror: true,
    scales: &[1.0],
};

impl Design {
    fn of(context: &Context) -> &'static Self {
        match context.size {
            Size::Quick => &QUICK,
            _ => &WHOLE,
        }
    }

    fn angles(&self) -> Vec<f64> {
        let turns = (360.0 / self.turn) as u32;
        (0..turns).map(|i| self.turn * f64::from(i)).collect()
    }

    fn sides(&self) -> &'static [bool] {
        if self.mirror {
            &[false, true]
        } else {
            &[false]
        }
    }
}

type Stroke = [(f64, f64); 2];

/// Strokes from (row, column) to (row, column), from the centre.
fn strokes() -> [[Stroke; 3]; 2] {
    let f = [
        [(-3.0, -2.0), (3.0, -2.0)],
        [(-3.0, -2.0), (-3.0, 2.0)],
        [(0.0, -2.0), (0.0, 1.0)],
    ];
    let y = [
        [(-3.0, -2.0), (0.0, 0.0)],
        [(-3.0, 2.0), (0.0, 0.0)],
        [(0.0, 0.0), (3.0, 0.0)],
    ];
    [f, y]
}

/// Distance of a point from a stroke.
fn distance(p: (f64, f64), [a, b]: Stroke) -> f64 {
    let (d, r) = ((b.0 - a.0, b.1 - a.1), (p.0 - a.0, p.1 - a.1));
    let along = (d.0 * r.0 + d.1 * r.1) / (d.0 * d.0 + d.1 * d.1);
    let t = along.clamp(0.0, 1.0);
    (r.0 - t * d.0).hypot(r.1 - t * d.1)
}

/// A shape turned and enlarged, its ink per cell around a centre.
fn drawn(strokes: &[Stroke; 3], (degrees, scale, mirror): (f64, f64, bool), side: usize) -> Grid {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let sign = if mirror { -1.0 } else { 1.0 };
    let turn = |(r, c): (f64, f64)| {
        let c = sign * c;
        (scale * (cos * r - sin * c), scale * (sin * r + cos * c))
    };
    let turned = strokes.map(|[a, b]| [turn(a), turn(b)]);
    let centre = (side as f64 - 1.0) / 2.0;
    Grid::from_fn(&[side, side], |i| {
        let p = (i[0] as f64 - centre, i[1] as f64 - centre);
        let d = turned
            .iter()
            .map(|&s| distance(p, s))
            .fold(f64::INFINITY, f64::min);
        (-0.5 * (d / (0.7 * scale)).powi(2)).exp()
    })
}

fn picture(seed: u64, design: &Design) -> Grid {
    let mut draws = rng(seed, 2140);
    let room = [SIDE - 18; 2];
    let centres = places(2 * COPIES, &[9, 9], &room, 12, &mut draws);
    let mut rates = Grid::zeros(&[SIDE, SIDE]);
    // All ink of an enlarged copy, and no more than the border leaves room for.
    let side = 17;
    for (n, centre) in centres.iter().enumerate() {
        let mut one = |all: &[f64]| all[below(all.len() as u64, &mut draws) as usize];
        let (angle, scale) = (one(&design.angles()), one(design.scales));
        let mirror = design.mirror && below(2, &mut draws) == 1;
        let copy = drawn(&strokes()[n % 2], (angle, scale, mirror), side);
        let at = [centre[0] - side / 2, centre[1] - side / 2];
        rates.stamp(&copy, &at, COUNTS / copy.sum());
    }
    Grid::from_fn(&[SIDE, SIDE], |i| poisson(rates.get(i), &mut draws))
}

/// A state, its reconstruction and its `D/v`.
struct Fitted<S> {
    state: S,
    model: Grid,
    d: f64,
}

/// The best of some starts: a phase of the model under powers, and one without from where it ended.
fn best<M: Model<f64>>(
    context: &Context,
    input: &Grid,
    model: impl Fn(bool) -> Result<M>,
) -> Result<Fitted<M::State>>
where
    M::State: Reconstruct,
{
    let v = input.tensor()?;
    let seeds = context.starts(context.size(4, 3) as u64);
    let mut starts: Vec<Init<f64>> = seeds.clone().map(|_| Init::default()).collect();
    let mut fits = Vec::new();
    for (powers, iterations) in [true, false].into_iter().zip(ITERATIONS) {
        let model = model(powers)?;
        fits.clear();
        for (seed, start) in seeds.clone().zip(&mut starts) {
            let stop = Stop::default().max_iter(iterations).tol(None);
            let run = model.on(&v)?.solver(Solver::Em).stop(stop);
            let fit = run.run(std::mem::take(start), &mut rng(seed, 0))?;
            for (name, block) in fit.state().parameters().blocks() {
                *start = std::mem::take(start).block(name, block.clone());
            }
            // Without a prior the objective is the likelihood.
            fits.push((divergence(&v, fit.objective()), fit.into_state()));
        }
    }
    let least = fits.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let (d, state) = least.ok_or("no starts")?;
    let model = Grid {
        shape: input.shape.clone(),
        values: state.reconstruct()?.into_parts().1,
    };
    Ok(Fitted { state, model, d })
}

fn turned(context: &Context, input: &Grid) -> Result<Fitted<TransformedState<f64>>> {
    let design = Design::of(context);
    let set = Transformation::product(&design.angles(), design.scales, design.mirror)?;
    best(context, input, |powers| {
        let kernel = [KERNEL, KERNEL];
        let maps = IndexMaps::placed(&set, &kernel, &[SIDE, SIDE], Positions::Valid)?;
        let mut model = Transformed::new(2, maps);
        if powers {
            model = model.anneal(ANNEAL).impulse_power(POWER);
        }
        Ok(model)
    })
}

fn plain(context: &Context, input: &Grid) -> Result<Fitted<ShiftedState<f64>>> {
    best(context, input, |powers| {
        let mut model = Shifted::new(2, vec![PLAIN, PLAIN]);
        if powers {
            model = model.anneal(ANNEAL).impulse_power(POWER);
        }
        Ok(model)
    })
}

/// A shape as it was drawn in the direction of the kernel that stands for it, that kernel, and their cosine.
fn compared(design: &Design, state: &TransformedState<f64>) -> Vec<(Grid, Grid, f64)> {
    let kernel = |z: usize| Grid::of_block(state.kernels(), z, &[KERNEL, KERNEL]);
    let best = |t: usize, z: usize| {
        let sides = design.sides().iter();
        let all = sides.flat_map(|&side| design.angles().into_iter().map(move |a| (a, 1.0, side)));
        let each = all.map(|how| {
            let shape = drawn(&strokes()[t], how, KERNEL);
            let (cosine, shift) = aligned(&shape, &kernel(z), &[4, 4]);
            (shape, kernel(z).moved(&shift), cosine)
        });
        each.max_by(|a, b| a.2.total_cmp(&b.2))
    };
    let all: Vec<Vec<_>> = (0..2)
        .map(|t| (0..2).filter_map(|z| best(t, z)).collect())
        .collect();
    let order = best_matching(2, |t, z| -all[t][z].2);
    let both = order.into_iter().enumerate();
    both.map(|(t, z)| all[t][z].clone()).collect()
}

fn run(context: &Context) -> Result<Vec<Entry>> {
    measure(context, &picture(context.seed, Design::of(context)))
}

/// As many counts anywhere in the picture.
fn control(context: &Context) -> Result<Vec<Entry>> {
    let mut draws = rng(context.seed, 2141);
    let cells = (SIDE * SIDE) as f64;
    let mean = 2.0 * COPIES as f64 * COUNTS / cells;
    let noise = Grid::from_fn(&[SIDE, SIDE], |_| poisson(mean, &mut draws));
    measure(context, &noise)
}

fn measure(context: &Context, input: &Grid) -> Result<Vec<Entry>> {
    let design = Design::of(context);
    let (turned, plain) = (turned(context, input)?, plain(context, input)?);
    let compared = compared(design, &turned.state);
    let set = design.angles().len() * design.sides().len() * design.scales.len();
    let mut panels: Vec<Panel> = vec![
        input.image("the picture: counts"),
        (turned.model).image(&format!(
            "model, {set} transformations: D/v {:.3}",
            turned.d
        )),
        (plain.model).image(&format!("model, shifts alone: D/v {:.3}", plain.d)),
    ];
    for (z, (shape, kernel, cosine)) in compared.iter().enumerate() {
        let name = ["F", "Y"][z];
        panels.push(shape.image(&format!("{name}, turned like its kernel")));
        panels.push(kernel.image(&format!("kernel found for {name}: cosine {cosine:.3}")));
        let of_plain = Grid::of_block(plain.state.kernels(), z, &[PLAIN, PLAIN]);
        panels.push(of_plain.image(&format!("kernel {} of shifts alone", z + 1)));
    }
    let files = context.picture(FIGURE.name, 3, (400.0, 400.0), panels)?;
    let data = Data::generated(
        "64 x 64 counts, five copies of each shape under random transformations of the set",
    );
    let row = |what: &str, value: f64| Entry::number(what, value, &data, &files);
    let each: Vec<String> = compared.iter().map(|c| format!("{:.3}", c.2)).collect();
    let cosine = smallest(compared.iter().map(|c| c.2));
    let both = format!("{:.3} and {:.3}", turned.d, plain.d);
    Ok(vec![
        row("smaller cosine of a kernel with its shape", cosine)
            .above(0.8)
            .detail(each.join(", ")),
        row("D/v over that of plain shifts", turned.d / plain.d)
            .below(0.7)
            .detail(both),
    ])
}
