//! Coordinate descent and the accelerated solvers: seconds, and iterations, to what EM reaches.
//!
//! `cargo bench -p plca-benches --bench fast [-- full]`. Every kind of data is drawn with several seeds and fitted from a start of its
//! own; a line is one solver, its numbers are medians over the seeds (and the worst). One thread. Targets: the divergence after 30 and
//! after 200 iterations of EM. "end" is the divergence when the time of those 200 iterations is over, relative to EM's.
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::ops::ControlFlow;
use std::time::Instant;

use plca_benches::{source, spectrogram, topics};
use plca_em::Nmf;
use plca_fit::{Init, Iteration, Model, Solver, Status, Stop};
use plca_tensor::Data;

/// Iterations of EM to either target.
const TARGETS: [usize; 2] = [30, 200];
const SEEDS: u64 = 5;

/// One kind of data: a name, the number of components, and the data of a seed.
struct Kind {
    name: &'static str,
    k: usize,
    draw: Box<dyn Fn(u64) -> Box<dyn Data<f64>>>,
}

fn kinds(full: bool) -> Vec<Kind> {
    let kind = |name, k, draw| Kind { name, k, draw };
    let (docs, words) = if full {
        (18_000, 10_000)
    } else {
        (1_800, 1_000)
    };
    let (rows, columns) = if full { (1025, 3000) } else { (205, 300) };
    vec![
        kind(
            "topics",
            20,
            Box::new(move |seed| Box::new(topics([docs, words], 40, 56.0, seed))),
        ),
        kind(
            "long documents",
            10,
            Box::new(move |seed| Box::new(topics([docs / 10, words], 20, 600.0, seed))),
        ),
        kind(
            "spectrogram",
            20,
            Box::new(move |seed| Box::new(spectrogram([rows, columns], 20, 0.2, seed))),
        ),
        kind(
            "smooth",
            10,
            Box::new(move |seed| Box::new(spectrogram([rows, columns / 2], 20, 2.0, seed))),
        ),
    ]
}

const SOLVERS: [Solver; 4] = [
    Solver::Fast,
    Solver::Momentum,
    Solver::Squarem,
    Solver::Parabolic,
];

/// Seconds and iterations to the targets, and the last objective over EM's.
struct Run {
    hits: [Option<(f64, usize)>; 2],
    end: f64,
}

/// EM's seconds and objective after so many iterations.
fn em(nmf: &Nmf, data: &dyn Data<f64>, seed: u64, iterations: usize) -> (f64, f64) {
    let begun = Instant::now();
    let run = nmf.on(data).expect("a matrix").solver(Solver::Em);
    let stop = Stop::default().max_iter(iterations).tol(None);
    let run = run.stop(stop.check_every(iterations));
    let fit = run.run(Init::default(), &mut source(seed)).expect("a run");
    (begun.elapsed().as_secs_f64(), fit.objective())
}

/// A run of another solver from the same start, until it has reached both targets or taken three times as long as EM.
fn race(
    nmf: &Nmf,
    data: &dyn Data<f64>,
    seed: u64,
    solver: Solver,
    [first, second]: [(f64, f64); 2],
) -> Run {
    let (targets, most) = ([first.1, second.1], second.0);
    let (mut hits, mut end, mut seconds) = ([None; 2], f64::INFINITY, 0.0);
    // Arranging the data counts.
    let begun = Instant::now();
    let note = |it: &Iteration<'_, f64>| {
        // What is measured belongs to the state before the iteration.
        if let Some(before) = it.measured {
            for (hit, target) in hits.iter_mut().zip(targets) {
                if before.objective <= target && hit.is_none() {
                    *hit = Some((seconds, before.iteration));
                }
            }
            if seconds <= most {
                end = before.objective;
            }
        }
        seconds = begun.elapsed().as_secs_f64();
        match seconds > most && (hits[1].is_some() || seconds > 3.0 * most) {
            true => ControlFlow::Break(Status::Interrupted),
            false => ControlFlow::Continue(()),
        }
    };
    let run = nmf.on(data).expect("a matrix").solver(solver).observe(note);
    let stop = Stop::default().max_iter(usize::MAX).tol(None);
    let run = run.stop(stop.check_every(1));
    let _ = run.run(Init::default(), &mut source(seed)).expect("a run");
    Run {
        hits,
        end: end / targets[1],
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let full = std::env::args().any(|a| a == "full");
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build_global()
        .expect("the first pool");
    for kind in kinds(full) {
        let mut runs: [Vec<Run>; SOLVERS.len()] = Default::default();
        let mut seconds = Vec::new();
        for seed in 0..SEEDS {
            let data = (kind.draw)(seed);
            let nmf = Nmf::new(kind.k);
            let ends = TARGETS.map(|iterations| em(&nmf, &*data, seed, iterations));
            seconds.push(ends.map(|end| end.0));
            for (solver, runs) in SOLVERS.into_iter().zip(&mut runs) {
                runs.push(race(&nmf, &*data, seed, solver, ends));
            }
        }
        let of_em = |t: usize| median(seconds.iter().map(|s| s[t]).collect());
        println!("{}, EM {:.3} s and {:.3} s", kind.name, of_em(0), of_em(1));
        for (solver, runs) in SOLVERS.into_iter().zip(runs) {
            let column = |t: usize| {
                let seconds: Vec<f64> = runs
                    .iter()
                    .map(|r| r.hits[t].map_or(f64::INFINITY, |h| h.0))
                    .collect();
                let done = median(
                    runs.iter()
                        .map(|r| r.hits[t].map_or(f64::INFINITY, |h| h.1 as f64))
                        .collect(),
                );
                let worst = seconds.iter().copied().fold(0.0, f64::max);
                format!("{:.3} s (worst {worst:.3}) in {done:>3}", median(seconds))
            };
            let ends: Vec<f64> = runs.iter().map(|r| r.end).collect();
            println!(
                "  {:<10} {}   {}   end {:.5}",
                solver.name(),
                column(0),
                column(1),
                median(ends)
            );
        }
    }
}
