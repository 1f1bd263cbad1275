//! Where coordinate descent ends, beside EM from the same start.
//!
//! `cargo bench -p plca-benches --bench fast_ends`: two hundred problems of every kind, 2000 iterations of coordinate descent and 20000 of EM.
//! Lines have the numbers of problems in which the divergence of coordinate descent is lower than EM's by more than a share of it,
//! within that share, and higher, and the median and the extremes of its ratio to EM's. Small differences are EM on its way,
//! large ones two local optima, of which either may be the better one.
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use plca_benches::source;
use plca_em::{Plca, sample_counts};
use plca_fit::{Factored, Init, Model, Solver, Stop};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor};
use rayon::prelude::*;

const PROBLEMS: u64 = 200;
const K: usize = 4;

/// Counts of a random model of more components than are fitted; a seventh of the masked cells hidden.
fn draw(kind: &str, seed: u64) -> Box<dyn Data<f64>> {
    let shape = if kind == "order 3" {
        vec![12, 10, 8]
    } else {
        vec![40, 30]
    };
    let cells: usize = shape.iter().product();
    let mut rng = source(seed);
    let ones = DenseTensor::new(shape.clone(), vec![1.0; cells], Order::RowMajor).expect("data");
    let plca = Plca::new(K + 2);
    let truth = plca
        .init(&ones, Init::default(), &mut rng)
        .expect("a start");
    let draws = if kind == "sparse" {
        cells / 4
    } else {
        20 * cells
    };
    let counts = truth.with_model(|m| sample_counts(m, draws, &mut rng).expect("counts"));
    if kind == "sparse" {
        return Box::new(SparseTensor::new(counts).expect("counts"));
    }
    let Coordinates {
        indices, values, ..
    } = counts;
    let mut dense = vec![0.0; cells];
    for (index, value) in indices.chunks(shape.len()).zip(values) {
        let at = (index.iter().zip(&shape)).fold(0, |at, (&i, &n)| at * n + i as usize);
        dense[at] += value;
    }
    if kind == "masked" {
        (seed as usize % 7..cells)
            .step_by(7)
            .for_each(|i| dense[i] = f64::NAN);
        return Box::new(DenseTensor::masked(shape, dense, Order::RowMajor).expect("data"));
    }
    Box::new(DenseTensor::new(shape, dense, Order::RowMajor).expect("data"))
}

/// The divergence of coordinate descent over that of EM.
fn ratio(kind: &str, seed: u64) -> f64 {
    let data = draw(kind, seed);
    let plca = Plca::new(K);
    let end = |solver, iterations| {
        let run = plca.on(&*data).expect("data").solver(solver);
        let run = run.stop(Stop::default().max_iter(iterations).tol(None));
        let fit = run.run(Init::default(), &mut source(1000 + seed));
        fit.expect("a run").objective()
    };
    let v = data.total();
    let best = data.self_information().expect("data in memory") - v * v.ln();
    (best - end(Solver::Fast, 2000)) / (best - end(Solver::Em, 20_000))
}

fn main() {
    println!(
        "{:<10} {:>6} {:>7} {:>7} {:>7} {:>10} {:>10} {:>10}",
        "data", "share", "lower", "equal", "higher", "least", "median", "most"
    );
    for kind in ["dense", "sparse", "masked", "order 3"] {
        let mut ratios: Vec<f64> = (0..PROBLEMS)
            .into_par_iter()
            .map(|seed| ratio(kind, seed))
            .collect();
        ratios.sort_by(f64::total_cmp);
        let (least, median, most) = (
            ratios[0],
            ratios[ratios.len() / 2],
            ratios[ratios.len() - 1],
        );
        for share in [1e-9, 1e-3] {
            let lower = ratios.iter().filter(|&&r| r < 1.0 - share).count();
            let higher = ratios.iter().filter(|&&r| r > 1.0 + share).count();
            let equal = ratios.len() - lower - higher;
            println!(
                "{kind:<10} {share:>6.0e} {lower:>7} {equal:>7} {higher:>7} {least:>10.5} {median:>10.7} {most:>10.5}"
            );
        }
    }
}
