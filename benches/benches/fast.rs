//! What the pace of coordinate descent is decided by: seconds, and iterations, to what EM reaches.
//!
//! `cargo bench -p plca-benches --bench fast [-- full]`. Every kind of data is drawn with several seeds and fitted from a start of its
//! own; a line is one pace, its numbers are medians over the seeds (and the worst). One thread. Targets: the divergence after 30 and
//! after 200 iterations of EM. "end" is the divergence when the time of those 200 iterations is over, relative to EM's.
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::time::Instant;

use plca_benches::{spectrogram, topics};
use plca_em::{
    Algorithm, Fast, FastState, NmfInit, Pace,
    before::{Nmf, NmfState},
};
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

fn paces() -> Vec<(&'static str, Pace)> {
    let usual = Pace::default();
    vec![
        ("default", usual),
        (
            "extrapolation at once",
            Pace {
                below: f64::INFINITY,
                ..usual
            },
        ),
        (
            "below 20 %",
            Pace {
                below: 0.2,
                ..usual
            },
        ),
        (
            "below 5 %",
            Pace {
                below: 0.05,
                ..usual
            },
        ),
        (
            "below 1 %",
            Pace {
                below: 0.01,
                ..usual
            },
        ),
        (
            "no extrapolation",
            Pace {
                below: 0.0,
                ..usual
            },
        ),
        ("2 passes", Pace { passes: 2, ..usual }),
        ("4 passes", Pace { passes: 4, ..usual }),
        (
            "2 of EM first",
            Pace {
                em_first: 2,
                ..usual
            },
        ),
        (
            "6 of EM first",
            Pace {
                em_first: 6,
                ..usual
            },
        ),
    ]
}

/// Seconds and iterations to the targets, and the last objective over EM's.
struct Run {
    hits: [Option<(f64, usize)>; 2],
    end: f64,
}

/// EM's objectives after the targets' iterations, and its seconds.
fn em(nmf: &Nmf, data: &dyn Data<f64>, start: &NmfState<f64>) -> ([f64; 2], [f64; 2]) {
    let em = nmf.on(data).expect("a matrix");
    let (mut state, begun, mut done) = (start.clone(), Instant::now(), 0);
    let mut seconds = [0.0; 2];
    let values = std::array::from_fn(|target| {
        while done < TARGETS[target] {
            em.step(&mut state, false).expect("a step");
            done += 1;
        }
        seconds[target] = begun.elapsed().as_secs_f64();
        em.objective(&state).expect("an objective")
    });
    (values, seconds)
}

fn fast(
    nmf: &Nmf,
    data: &dyn Data<f64>,
    start: &NmfState<f64>,
    pace: Pace,
    targets: [f64; 2],
    most: f64,
) -> Run {
    let begun = Instant::now();
    // Arranging the data counts.
    let fast = Fast::new(nmf.on(data).expect("a matrix"))
        .expect("it separates")
        .pace(pace);
    let mut state = FastState::new(start.clone());
    let (mut hits, mut end, mut done) = ([None; 2], f64::INFINITY, 0);
    loop {
        let seconds = begun.elapsed().as_secs_f64();
        // What is measured belongs to the state before the step.
        let before = fast
            .step(&mut state, true)
            .expect("a step")
            .expect("asked for");
        for (hit, target) in hits.iter_mut().zip(targets) {
            if before <= target && hit.is_none() {
                *hit = Some((seconds, done));
            }
        }
        if seconds <= most {
            end = before;
        }
        done += 1;
        if seconds > most && (hits[1].is_some() || seconds > 3.0 * most) {
            return Run {
                hits,
                end: end / targets[1],
            };
        }
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
        let mut runs: Vec<Vec<Run>> = paces().iter().map(|_| Vec::new()).collect();
        let mut seconds = Vec::new();
        for seed in 0..SEEDS {
            let data = (kind.draw)(seed);
            let nmf = Nmf::builder(kind.k).build().expect("settings");
            let start = nmf
                .init(&*data, &NmfInit::default(), &mut plca_benches::source(seed))
                .expect("a start");
            let (targets, times) = em(&nmf, &*data, &start);
            seconds.push(times);
            for ((_, pace), runs) in paces().into_iter().zip(&mut runs) {
                runs.push(fast(&nmf, &*data, &start, pace, targets, times[1]));
            }
        }
        let of_em = |t: usize| median(seconds.iter().map(|s| s[t]).collect());
        println!("{}, EM {:.3} s and {:.3} s", kind.name, of_em(0), of_em(1));
        for ((name, _), runs) in paces().into_iter().zip(runs) {
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
                "  {name:<22} {}   {}   end {:.5}",
                column(0),
                column(1),
                median(ends)
            );
        }
    }
}
