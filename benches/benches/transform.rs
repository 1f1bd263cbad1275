//! New data under learnt blocks: seconds of fits of 100 iterations, and of the explanation of the same data by what it learnt.
//!
//! `cargo bench -p plca-benches --bench transform`. The observations are the rows, as those of the Python package. One thread.
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::time::Instant;

use plca_benches::{source, sparse, spectrogram, topics};
use plca_em::Nmf;
use plca_fit::{Init, Model, Solver, Stop, Transform};
use plca_tensor::Data;

fn main() {
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build_global()
        .expect("the first pool");
    let kinds: [(&str, usize, Box<dyn Data<f64>>); 4] = [
        (
            "spectrogram",
            40,
            Box::new(spectrogram([1025, 3000], 40, 0.5, 1)),
        ),
        (
            "smooth",
            40,
            Box::new(spectrogram([1025, 3000], 40, 2.0, 1)),
        ),
        (
            "topics",
            20,
            Box::new(topics([18_000, 10_000], 40, 70.0, 1)),
        ),
        (
            "no structure",
            20,
            Box::new(sparse(&[18_000, 10_000], 1_600_000)),
        ),
    ];
    for (name, k, data) in kinds {
        let nmf = Nmf::new(k);
        let begun = Instant::now();
        let run = nmf.on(&*data).expect("a matrix");
        let stop = Stop::default().max_iter(100).tol(None);
        let fit = run.stop(stop).run(Init::default(), &mut source(1));
        let state = fit.expect("a run").into_state();
        let fitted = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let run = nmf.on(&*data).expect("a matrix").solver(Solver::Em);
        let stop = Stop::default().max_iter(100).tol(None);
        let fit = run.stop(stop).run(Init::default(), &mut source(1));
        let _ = fit.expect("a run");
        let em = begun.elapsed().as_secs_f64();
        println!("{name}, fit {fitted:.2} s, by EM {em:.2} s");
        for tol in [1e-2, 1e-3, 1e-6] {
            let how = Transform::default().along(0);
            let stop = how.stop.clone().residual_tol(tol);
            let begun = Instant::now();
            let found = state.transform(&*data, &how.stop(stop)).expect("a run");
            let seconds = begun.elapsed().as_secs_f64();
            let worst = found.gap.iter().copied().fold(0.0, f64::max);
            println!(
                "  gap {tol:.0e}: {seconds:.2} s, {:.2} of the fit, {:.2} of EM's, {} iterations, {worst:.1e}, {}",
                seconds / fitted,
                seconds / em,
                found.fit.iterations(),
                found.fit.status(),
            );
        }
    }
}
