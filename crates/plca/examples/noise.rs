//! How near to least squares the likelihoods of signed data come where there is noise:
//! `cargo run --release -p plca --features io --example noise -- MATRICES [TENSOR.npy]`.
//!
//! Made matrices have four components, whose activations are bumps in time, and the noise of a sensor in every cell. Printed is the relative error over that of
//! semi-NMF in squared error, each the best of five starts by its own objective. Of a tensor, R² by the number of components.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use std::error::Error;
use std::f64::consts::TAU;

use plca::io::{DataFile, read_data};
use plca::nalgebra::DMatrix;
use plca::prelude::*;
use plca::skellam::Ding;
use plca::skellam::{Replicates, SignedCp, SnmfVb};

type Found<T> = Result<T, Box<dyn Error>>;

const STARTS: u32 = 5;
const COMPONENTS: usize = 4;
/// Matrices on which every rule is measured.
const FEW: u64 = 8;

/// Patterns times bumps, and noise of variance 25.
fn made(rows: usize, columns: usize, seed: u64) -> DMatrix<f64> {
    let mut rng = plca::seed(seed);
    let mut uniform = || plca::dist::random::uniform(&mut rng);
    let mut activations = DMatrix::zeros(COMPONENTS, columns);
    for k in 0..COMPONENTS {
        for _ in 0..4 {
            let first = (uniform() * (columns - 40) as f64) as usize;
            // A gamma variable of shape 3 and scale 0.3.
            let size: f64 = (0..3).map(|_| -0.3 * uniform().ln()).sum();
            for t in 0..40 {
                let hann = 0.5 - 0.5 * (TAU * t as f64 / 39.0).cos();
                activations[(k, first + t)] += size * hann;
            }
        }
    }
    let mut normal = || (-2.0 * uniform().ln()).sqrt() * (TAU * uniform()).cos();
    let atoms = DMatrix::from_fn(rows, COMPONENTS, |_, _| 100.0 * normal());
    atoms * activations + DMatrix::from_fn(rows, columns, |_, _| 5.0 * normal())
}

fn relative(v: &DMatrix<f64>, product: &DMatrix<f64>) -> f64 {
    (v - product).norm() / v.norm()
}

fn least_squares(v: &DMatrix<f64>, data: &DenseTensor<f64>) -> Found<f64> {
    let model = Ding::new(COMPONENTS);
    let run = model.on(data)?.restarts(STARTS);
    let state = run.run(Init::default(), &mut plca::seed(1))?.into_state();
    Ok(relative(v, &(state.basis() * state.activations())))
}

fn error(
    v: &DMatrix<f64>,
    data: &DenseTensor<f64>,
    (replicates, solver): (Replicates, Solver),
) -> Found<f64> {
    let model = Snmf::new(COMPONENTS).replicates(replicates).real_data(true);
    let run = model.on(data)?.solver(solver).restarts(STARTS);
    let state = run.run(Init::default(), &mut plca::seed(1))?.into_state();
    Ok(relative(v, &(state.signed_atoms() * state.activations())))
}

fn bayes(v: &DMatrix<f64>, data: &DenseTensor<f64>, solver: Solver) -> Found<f64> {
    let model = SnmfVb::new(COMPONENTS);
    let run = model.on(data)?.solver(solver).restarts(STARTS);
    let state = run.run(Init::default(), &mut plca::seed(1))?.into_state();
    let means = state.means()?;
    Ok(relative(v, &(means.signed_atoms() * means.activations())))
}

/// Median, 95 % and largest of ratios.
fn told(name: &str, mut ratios: Vec<f64>) {
    ratios.sort_by(f64::total_cmp);
    let at = |part: f64| ratios[((ratios.len() - 1) as f64 * part) as usize];
    println!(
        "{name}: median {:.3}, 95 % {:.3}, largest {:.3}",
        at(0.5),
        at(0.95),
        at(1.0)
    );
}

fn matrices(count: u64) -> Found<()> {
    let solvers = [
        Solver::Auto,
        Solver::Squarem,
        Solver::Parabolic,
        Solver::Momentum,
    ];
    let rules = [
        Replicates::Auto,
        Replicates::Limit,
        Replicates::One,
        Replicates::Finite(100),
    ];
    let mut cases: Vec<_> = rules
        .iter()
        .flat_map(|&m| solvers.map(|s| (m, s)))
        .collect();
    // Slow, and told by two solvers.
    cases.retain(|(m, s)| m.is_real() || matches!(s, Solver::Auto | Solver::Momentum));
    let mut ratios = vec![Vec::new(); cases.len() + 1];
    for seed in 0..count {
        let v = match seed % 4 {
            3 => made(40, 400, seed),
            _ => made(20, 200, seed),
        };
        let data = DenseTensor::try_from(v.clone())?;
        let best = least_squares(&v, &data)?;
        // What is no default shows on a few.
        let measured = |case: &(Replicates, Solver)| seed < FEW || case.0 == Replicates::Auto;
        for (case, ratios) in cases.iter().zip(&mut ratios).filter(|(c, _)| measured(c)) {
            ratios.push(error(&v, &data, *case)? / best);
        }
        if seed < FEW {
            ratios[cases.len()].push(bayes(&v, &data, Solver::Momentum)? / best);
        }
    }
    let vb = ratios.pop().unwrap_or_default();
    for ((m, solver), ratios) in cases.iter().zip(ratios) {
        told(&format!("{m:?}, {solver}"), ratios);
    }
    told("variational Bayes, momentum", vb);
    Ok(())
}

fn tensor(path: &str) -> Found<()> {
    let DataFile::Dense(table) = read_data::<f64>(path, None)? else {
        return Err("a dense tensor was expected".into());
    };
    let all: f64 = table.values.iter().map(|v| v * v).sum();
    let data = DenseTensor::new(table.shape.clone(), table.values.clone(), Order::RowMajor)?;
    for replicates in [Replicates::Auto, Replicates::Limit] {
        for solver in [Solver::Auto, Solver::Momentum] {
            let mut line = format!("{replicates:?}, {solver}: R²");
            for rank in 1..=6 {
                let model = SignedCp::new(rank).replicates(replicates);
                let run = model.on(&data)?.solver(solver).restarts(STARTS);
                let fit = run.run(Init::default(), &mut plca::seed(1))?;
                let cells = fit.state().cells(None)?.into_parts().1;
                let rest = table
                    .values
                    .iter()
                    .zip(cells)
                    .map(|(v, y)| (v - y) * (v - y));
                line += &format!(" {:.4}", 1.0 - rest.sum::<f64>() / all);
            }
            println!("{line}");
        }
    }
    Ok(())
}

fn main() -> Found<()> {
    let mut args = std::env::args().skip(1);
    let count = args.next().map_or(Ok(8), |n| n.parse())?;
    if count > 0 {
        matrices(count)?;
    }
    args.next().map_or(Ok(()), |path| tensor(&path))
}
