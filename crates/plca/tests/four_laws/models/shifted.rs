//! `siplca`, `tiplca`.

use plca::em::{IndexMaps, Likelihood, Positions, Transformation};
use plca::fit::laws::Terms;
use plca::nalgebra::DMatrix;
use plca::prelude::*;
use plca::tensor::strategies::Table;
use plca::{
    em::{Support, Transformed},
    fit::Parameters,
    tensor::Real,
};
use rand_chacha::rand_core::Rng;

use super::{SimplexLaw, block, bounded, hides, likelihood, unit, with_prior};
use crate::problem::{Kind, Problem};
use crate::table::{Measured, Subject};

const BLOCKS: &[&str] = &["impulses", "kernels", "weights"];

/// The extents of kernels.
pub(super) fn kernel(problem: &Problem) -> Vec<usize> {
    let sizes = problem.table.shape.iter().enumerate();
    sizes
        .map(|(d, &n)| 1 + problem.choice(3 + d, n.min(4)))
        .collect()
}

/// Where kernels lie: 0 inside, 1 beyond the far border, 2 beyond both.
pub(super) fn support(problem: &Problem) -> usize {
    problem.choice(6, 3)
}

fn literal(problem: &Problem) -> Likelihood {
    match problem.choice(7, 4) == 1 && !problem.storage.hides() {
        true => Likelihood::Literal,
        false => Likelihood::Conditional,
    }
}

/// The number of places of a kernel along a dimension, and the offset. `[SPEC 5.2]`
fn places(n: usize, k: usize, support: usize) -> (usize, usize) {
    [(n - k + 1, 0), (n, 0), (n + k - 1, k - 1)][support]
}

/// All indices of a box, row-major.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &n in shape {
        all = (all.into_iter())
            .flat_map(|index: Vec<usize>| (0..n).map(move |i| [&index[..], &[i]].concat()))
            .collect();
    }
    all
}

/// Which tap at which place falls on which cell: the cell in row-major order, the tap, the place.
pub(super) fn copies(shape: &[usize], kernel: &[usize], support: usize) -> Vec<[usize; 3]> {
    let all = shape
        .iter()
        .zip(kernel)
        .map(|(&n, &k)| places(n, k, support));
    let (extents, offsets): (Vec<_>, Vec<_>) = all.unzip();
    let mut copies = Vec::new();
    for (t, tap) in indices(kernel).iter().enumerate() {
        for (h, place) in indices(&extents).iter().enumerate() {
            let mut cell = Some(0);
            for d in 0..shape.len() {
                // x = h + t - o
                let x = (place[d] + tap[d]).checked_sub(offsets[d]);
                let x = x.filter(|&x| x < shape[d]);
                cell = cell.zip(x).map(|(at, x)| at * shape[d] + x);
            }
            copies.extend(cell.map(|x| [x, t, h]));
        }
    }
    copies
}

/// The extents of the places.
pub(super) fn spots(problem: &Problem) -> Vec<usize> {
    let sizes = problem.table.shape.iter().zip(kernel(problem));
    sizes
        .map(|(&n, k)| places(n, k, support(problem)).0)
        .collect()
}

/// In one of three problems, entries from 1 down to 1e-60, in single precision 1e-15, of the blocks that runs begin with, by name, rows and what columns sum to: most
/// of a model may lie outside of the data.
pub(super) fn scattered<T: Real>(problem: &Problem, blocks: [(&str, usize, f64); 2]) -> Init<T> {
    let mut init = Init::default();
    if problem.seed % 3 != 1 {
        return init;
    }
    let mut rng = plca::seed(problem.seed);
    let mut uniform = || f64::from(rng.next_u32()) / f64::from(u32::MAX);
    for (name, rows, size) in blocks {
        let most = if problem.single { 15.0 } else { 60.0 };
        let scattered = |_, _| 10f64.powf(-most * uniform());
        let mut block = DMatrix::from_fn(rows, problem.components, scattered);
        for mut column in block.column_iter_mut() {
            let sum = column.sum();
            column *= size / sum;
        }
        init = init.block(name, block.map(T::lit));
    }
    init
}

/// `P` of every cell, of shares of a tap's mass at a place: cell, tap, place, share.
fn placed(
    cells: usize,
    shares: impl IntoIterator<Item = ([usize; 3], f64)>,
    at: &Parameters<f64>,
) -> Vec<f64> {
    let [weights, kernels, impulses] = ["weights", "kernels", "impulses"].map(|b| block(at, b));
    let mut p = vec![0.0; cells];
    for ([x, t, h], share) in shares {
        let terms = (0..weights.len()).map(|z| weights[z] * kernels[(t, z)] * impulses[(h, z)]);
        p[x] += share * terms.sum::<f64>();
    }
    p
}

fn position(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |at, (&i, &n)| at * n + i)
}

pub(crate) struct Siplcas;

impl Subject for Siplcas {
    type Model<T: Real> = Shifted;

    fn kind() -> Kind {
        Kind::counts(1..=3)
    }

    fn unit(problem: &Problem) -> f64 {
        unit(problem, BLOCKS)
    }

    fn model<T: Real>(problem: &Problem) -> Result<Shifted, FitError> {
        let (k, extents) = (problem.components, kernel(problem));
        let support = [Support::Valid, Support::Same, Support::Full][support(problem)];
        let mut model = Shifted::new(k, extents);
        model = model.support(support).likelihood(literal(problem));
        if let Some((name, law)) = SimplexLaw::of(problem, BLOCKS) {
            model = model.prior(name, law.spec());
        }
        model.checked()
    }

    fn monotone(problem: &Problem) -> bool {
        bounded(problem, BLOCKS)
    }

    fn init<T: Real>(problem: &Problem) -> Init<T> {
        let [taps, places] = [kernel(problem), spots(problem)].map(|n| n.iter().product());
        scattered(problem, [("kernels", taps, 1.0), ("impulses", places, 1.0)])
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let copies = copies(&cells.shape, &kernel(problem), support(problem));
        let shares = copies.into_iter().map(|copy| (copy, 1.0));
        let p = placed(cells.values.len(), shares, at);
        let conditional = match literal(problem) {
            Likelihood::Literal => false,
            _ => support(problem) > 0 || hides(cells),
        };
        let p = |index: &[usize]| p[position(index, &cells.shape)];
        with_prior(likelihood(cells, conditional, p), problem, BLOCKS, at)
    }
}

pub(crate) struct Tiplcas;

/// Angles, scales, and whether there are mirrored copies.
fn turns(problem: &Problem) -> Result<Vec<Transformation>, FitError> {
    let angles: &[f64] = [
        &[0.0][..],
        &[0.0, 180.0],
        &[0.0, 90.0, 180.0, 270.0],
        &[0.0, 30.0],
    ][problem.choice(4, 4)];
    let scales: &[f64] = [&[1.0][..], &[1.0, 1.5]][problem.choice(5, 2)];
    Transformation::product(angles, scales, problem.choice(3, 3) == 1)
}

/// Extents of kernels, and their positions: those inside the data only where all fit.
fn boxes(problem: &Problem) -> Result<(Vec<usize>, Positions), FitError> {
    let shape = &problem.table.shape;
    let mut kernel = shape.clone();
    for d in 0..2 {
        kernel[d] = 1 + problem.choice(3 + d, shape[d].min(3));
    }
    let fits = |turn: &Transformation| {
        let (extents, _) = turn.shares([kernel[0], kernel[1]]);
        extents[0] <= shape[0] && extents[1] <= shape[1]
    };
    let positions = match support(problem) {
        0 if turns(problem)?.iter().all(fits) => Positions::Valid,
        1 => Positions::Centred,
        _ => Positions::Full,
    };
    Ok((kernel, positions))
}

/// Where the first cell of a box may lie along a dimension. `[EXT 2]`
fn corners(positions: Positions, n: usize, extent: usize) -> std::ops::Range<isize> {
    let (n, extent) = (n as isize, extent as isize);
    match positions {
        Positions::Valid => 0..n - extent + 1,
        Positions::Full => 1 - extent..n,
        Positions::Centred => -(extent / 2)..n - extent / 2,
        other => panic!("no definition of {other:?}"),
    }
}

fn maps(problem: &Problem) -> Result<IndexMaps, FitError> {
    let (kernel, positions) = boxes(problem)?;
    IndexMaps::placed(&turns(problem)?, &kernel, &problem.table.shape, positions)
}

impl Subject for Tiplcas {
    type Model<T: Real> = Transformed;

    fn kind() -> Kind {
        Kind::counts(2..=3)
    }

    fn unit(problem: &Problem) -> f64 {
        unit(problem, BLOCKS)
    }

    fn model<T: Real>(problem: &Problem) -> Result<Transformed, FitError> {
        let k = problem.components;
        let maps = maps(problem)?;
        let mut model = Transformed::new(k, maps).likelihood(literal(problem));
        if let Some((name, law)) = SimplexLaw::of(problem, BLOCKS) {
            model = model.prior(name, law.spec());
        }
        model.checked()
    }

    fn monotone(problem: &Problem) -> bool {
        bounded(problem, BLOCKS)
    }

    fn init<T: Real>(problem: &Problem) -> Init<T> {
        let sizes = maps(problem).map(|maps| [maps.kernel_cells(), maps.maps()]);
        let [taps, places] = sizes.unwrap_or([1, 1]);
        scattered(problem, [("kernels", taps, 1.0), ("impulses", places, 1.0)])
    }

    fn define(problem: &Problem, cells: &Table<f64>, at: &Parameters<f64>) -> Terms {
        let (kernel, positions) = boxes(problem).expect("a model was made of them");
        let shape = &cells.shape;
        let rest: usize = shape[2..].iter().product();
        let (mut shares, mut map, mut lost) = (Vec::new(), 0, false);
        for turn in turns(problem).expect("a model was made of them") {
            let (extents, entries) = turn.shares([kernel[0], kernel[1]]);
            for row in corners(positions, shape[0], extents[0]) {
                for column in corners(positions, shape[1], extents[1]) {
                    for &(from, to, weight) in &entries {
                        let x = row + (to / extents[1]) as isize;
                        let y = column + (to % extents[1]) as isize;
                        let inside = (0..shape[0] as isize).contains(&x)
                            && (0..shape[1] as isize).contains(&y);
                        lost |= !inside;
                        if !inside {
                            continue;
                        }
                        let cell = x as usize * shape[1] + y as usize;
                        let copy = |c| [cell * rest + c, from * rest + c, map];
                        shares.extend((0..rest).map(|c| (copy(c), weight)));
                    }
                    map += 1;
                }
            }
        }
        let p = placed(cells.values.len(), shares, at);
        let conditional = match literal(problem) {
            Likelihood::Literal => false,
            _ => lost || hides(cells),
        };
        let p = |index: &[usize]| p[position(index, shape)];
        with_prior(likelihood(cells, conditional, p), problem, BLOCKS, at)
    }
}

impl Measured for Siplcas {
    const POWER: i32 = 1;

    fn block(_: &Problem, name: &str, s: f64) -> f64 {
        if name == "scale" { s } else { 1.0 }
    }
}

impl Measured for Tiplcas {
    const POWER: i32 = 1;

    fn block(_: &Problem, name: &str, s: f64) -> f64 {
        if name == "scale" { s } else { 1.0 }
    }
}
