//! What an iteration would take on many threads, from its loops on one.
//!
//! `cargo bench -p plca-benches --bench threads`. The seconds of every task of every parallel loop are recorded on one thread and given, in
//! order, to the thread of so many that is free first; every loop waits for its last task, and costs as much as it takes to wake a thread. Nothing is known of
//! memory that threads share. A machine of two cores so tells what one of 64 would do.
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use plca_benches::{dense, source, sparse, uniform};
use plca_em::{Init, Model, Nmf, Plca, Shifted};
use plca_tensor::parallel::record::{self, Loop, Task};
use plca_tensor::{Data, DenseTensor};
use pntf_l2::Pntf;
use skellam_snmf::Snmf;

const THREADS: [usize; 6] = [2, 4, 8, 16, 32, 64];
/// Seconds until a thread that sleeps is at work.
const WAKE: f64 = 10e-6;
/// How long every model is watched.
const SPAN: Duration = Duration::from_secs(2);

fn total(of: &Loop) -> f64 {
    of.tasks.iter().map(|task| task.seconds).sum()
}

/// Seconds of a loop on so many threads: its tasks beside each other, or one after the other with their own loops spread.
fn spread(of: &Loop, threads: usize) -> f64 {
    let mut loads = vec![0.0; threads];
    for task in &of.tasks {
        if let Some(least) = loads.iter_mut().min_by(|a, b| f64::total_cmp(a, b)) {
            *least += task.seconds;
        }
    }
    let beside = WAKE + loads.into_iter().fold(0.0, f64::max);
    let within = of.tasks.iter().map(|task| spread_task(task, threads)).sum();
    total(of).min(beside).min(within)
}

/// Seconds of a task whose loops have so many threads.
fn spread_task(of: &Task, threads: usize) -> f64 {
    let saved = of
        .inner
        .iter()
        .map(|inner| total(inner) - spread(inner, threads));
    of.seconds - saved.sum::<f64>()
}

/// Loops of more than one task.
fn loops(of: &[Loop]) -> usize {
    let within = |of: &Loop| {
        of.tasks
            .iter()
            .map(|task| loops(&task.inner))
            .sum::<usize>()
    };
    of.iter()
        .map(|of| usize::from(of.tasks.len() > 1) + within(of))
        .sum()
}

/// Since the first call.
fn seconds() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Watches steps and prints the line of the quickest.
fn watch(name: &str, mut step: impl FnMut()) {
    step();
    let (start, mut best) = (Instant::now(), Task::default());
    while start.elapsed() < SPAN || best.inner.is_empty() {
        let task = record::of(seconds, &mut step);
        if best.inner.is_empty() || task.seconds < best.seconds {
            best = task;
        }
    }
    let serial = best.seconds - best.inner.iter().map(total).sum::<f64>();
    let gains = THREADS.map(|threads| {
        let gain = best.seconds / spread_task(&best, threads);
        format!("{gain:>7.2}")
    });
    println!(
        "{name:<28} {:>9.3} {:>7.0} % {:>6} {}",
        1e3 * best.seconds,
        100.0 * serial / best.seconds,
        loops(&best.inner),
        gains.concat()
    );
}

fn steps<M: Model<f64>>(name: &str, model: &M, data: &dyn Data<f64>) {
    let em = model.bind(data).expect("mass");
    let start = Init::default().parameters(&*em, &mut source(4));
    let mut at = start.expect("a start");
    watch(name, || {
        em.step(&mut at, false).expect("a step");
    });
}

fn matrix(name: &str, data: &dyn Data<f64>, k: usize) {
    steps(name, &Nmf::new(k), data);
}

fn tensor(name: &str, data: &dyn Data<f64>, k: usize) {
    steps(name, &Plca::new(k), data);
}

fn shifted(name: &str, shape: &[usize], kernel: &[usize], k: usize) {
    let data = dense::<f64>(shape);
    let shifted = Shifted::new(k, kernel.to_vec());
    steps(name, &shifted, &data);
}

fn squares(name: &str, shape: &[usize], k: usize) {
    let pntf = Pntf::new(k);
    steps(name, &pntf, &dense::<f64>(shape));
}

fn signed(name: &str, (features, columns, k): (usize, usize, usize)) {
    let mut rng = source(11);
    let v = nalgebra::DMatrix::from_fn(features, columns, |_, _| 60.0 * uniform(&mut rng) - 25.0);
    let data = DenseTensor::try_from(v).expect("finite cells");
    steps(
        name,
        &Snmf::new(k).replicates(skellam_snmf::Replicates::Limit),
        &data,
    );
}

fn main() {
    println!(
        "times one thread over times so many, {} us to wake a thread",
        WAKE * 1e6
    );
    let threads = THREADS.map(|threads| format!("{threads:>7}"));
    println!(
        "{:<28} {:>9} {:>9} {:>6} {}",
        "",
        "ms",
        "serial",
        "loops",
        threads.concat()
    );
    matrix(
        "spectrogram 1025x3000 k40",
        &dense::<f64>(&[1025, 3000]),
        40,
    );
    matrix("faces 361x2429 k50", &dense::<f64>(&[361, 2429]), 50);
    let text = sparse::<f64>(&[18_000, 10_000], 940_000);
    matrix("text 18000x10000 k20", &text, 20);
    matrix("text 18000x10000 k100", &text, 100);
    let ratings = sparse::<f64>(&[200_000, 5_000], 10_000_000);
    matrix("ratings 200000x5000 k20", &ratings, 20);
    tensor(
        "tensor 200x200x200 k20",
        &dense::<f64>(&[200, 200, 200]),
        20,
    );
    let counts = sparse::<f64>(&[5000, 4000, 500], 5_000_000);
    tensor("counts 5000x4000x500 k16", &counts, 16);
    shifted("image 136x511x3", &[136, 511, 3], &[35, 25, 3], 1);
    shifted("constant-q 234x317", &[234, 317], &[180, 1], 1);
    shifted("handwriting 81x113", &[81, 113], &[15, 15], 3);
    shifted("speech 513x938 k20", &[513, 938], &[513, 8], 20);
    squares("pntf 19x19x2429 k50", &[19, 19, 2429], 50);
    signed("skellam 200x5000 k5", (200, 5000, 5));
}
