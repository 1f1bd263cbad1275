//! What an iteration of an extension costs, over one of the model that it extends.
//!
//! `cargo bench -p plca-benches --bench extensions [-- NAME]`. Every pair takes turns on one thread; a line has the median time of each, the median
//! ratio of neighbouring turns, and what we hold ourselves to. Only lines whose name contains one of the arguments are measured.
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use std::time::{Duration, Instant};

use nalgebra::DMatrix;
use plca_benches::{dense, source, sparse, uniform};
use plca_em::{
    IndexMaps, Init, Model, Plca, PlcaVb, Plsa, PlsaVb, Positions, Shifted, Transformation,
    Transformed,
};
use plca_priors::Neighbours;
use plca_tensor::{Data, DenseTensor, Order};
use pntf_l2::Pntf;
use rayon::ThreadPoolBuilder;
use skellam_snmf::{ShiftedSnmf, ShiftedSnmfVb, SignedCp, SignedCpVb};

/// Turns of a pair.
const TURNS: usize = 21;
/// How long a turn takes at least.
const SPAN: Duration = Duration::from_millis(15);

type Step<'a> = Box<dyn FnMut() + 'a>;

/// Seconds of one step, the mean of a turn.
fn turn(step: &mut Step<'_>) -> f64 {
    let (start, mut steps) = (Instant::now(), 0);
    while start.elapsed() < SPAN {
        step();
        steps += 1;
    }
    start.elapsed().as_secs_f64() / f64::from(steps)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The step of a model, from a start that is drawn as far as it is not given.
fn step<'a, M: Model<f64>>(model: &'a M, data: &'a dyn Data<f64>, given: &Init<f64>) -> Step<'a> {
    let em = model.bind(data).expect("data of the model");
    let start = given.parameters(&*em, &mut source(4));
    let mut at = start.expect("a start");
    Box::new(move || {
        em.step(&mut at, false).expect("a step");
    })
}

/// Measures an extension and what it extends, in turn.
fn pair<M: Model<f64>, P: Model<f64>>(
    name: &str,
    limit: f64,
    (extended, data, given): (&M, &dyn Data<f64>, &Init<f64>),
    (plain, counts): (&P, &dyn Data<f64>),
) {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut wanted = wanted.iter().filter(|arg| !arg.starts_with('-')).peekable();
    if wanted.peek().is_some() && !wanted.any(|wanted| name.contains(wanted.as_str())) {
        return;
    }
    let mut extended = step(extended, data, given);
    let mut plain = step(plain, counts, &Init::default());
    extended();
    plain();
    let turns = (0..TURNS).map(|_| [turn(&mut extended), turn(&mut plain)]);
    let turns: Vec<[f64; 2]> = turns.collect();
    let of = |number: &dyn Fn(&[f64; 2]) -> f64| median(turns.iter().map(number).collect());
    println!(
        "| {name:<50} | {:>8.3} | {:>8.3} | {:>5.2} | {limit:>5.2} |",
        1e3 * of(&|turn| turn[0]),
        1e3 * of(&|turn| turn[1]),
        of(&|turn| turn[0] / turn[1])
    );
}

/// Some columns frozen, and some entries of others.
fn frozen(name: &str, data: &dyn Data<f64>, k: usize) {
    let rows = data.shape()[0];
    let plain = Plca::new(k);
    let start = {
        let em = plain.bind(data).expect("counts");
        let start = Init::default().parameters(&*em, &mut source(4));
        let start = start.expect("a start");
        Init::default().block("factor_0", start.at(1).clone())
    };
    let flags = DMatrix::from_fn(rows, k, |i, z| z % 2 == 0 || z % 3 == 0 && i % 4 == 0);
    let entries = Plca::new(k).freeze_entries("factor_0", flags);
    let columns = Plca::new(k).freeze_components("factor_0", (0..k).step_by(2));
    let name = |what| format!("frozen {what}, {name}");
    pair(
        &name("entries"),
        1.05,
        (&entries, data, &start),
        (&plain, data),
    );
    pair(
        &name("components"),
        1.05,
        (&columns, data, &start),
        (&plain, data),
    );
}

/// Variational Bayes, and continuity in time.
fn bayes(name: &str, data: &dyn Data<f64>, k: usize) {
    let start = Init::default();
    let plca = Plca::new(k);
    let plca_vb = PlcaVb::new(k);
    let called = format!("plca-vb, {name}");
    pair(&called, 1.3, (&plca_vb, data, &start), (&plca, data));
    if data.shape().len() > 2 {
        return;
    }
    let plsa = Plsa::new(k);
    let plsa_vb = PlsaVb::new(k);
    let called = format!("plsa-vb, {name}");
    pair(&called, 1.3, (&plsa_vb, data, &start), (&plsa, data));
    let continuity = Neighbours::new(-0.3).expect("finite");
    for (called, prior) in [
        ("neighbours", continuity.relative()),
        (
            "exact neighbours",
            Neighbours::new(-3.0)
                .and_then(Neighbours::exact)
                .expect("similarity"),
        ),
    ] {
        let near = Plsa::new(k).prior("mixture", prior);
        let called = format!("{called}, {name}");
        pair(&called, 1.3, (&near, data, &start), (&plsa, data));
    }
}

fn sparsity(name: &str, shape: &[usize], k: usize) {
    let data = dense::<f64>(shape);
    let plain = Pntf::new(k);
    let rewarded = (0..shape.len()).fold(Pntf::new(k).sparsity("weights", 1e-9), |b, mode| {
        b.sparsity(format!("factor_{mode}"), 1e-8)
    });
    let name = format!("sparsity of pntf, {name}");
    pair(
        &name,
        1.3,
        (&rewarded, &data, &Init::default()),
        (&plain, &data),
    );
}

/// Numbers of either sign, and their absolute values.
fn signed(shape: &[usize]) -> [DenseTensor<f64>; 2] {
    let mut rng = source(11);
    let values: Vec<f64> = (0..shape.iter().product())
        .map(|_| 60.0 * uniform(&mut rng) - 25.0)
        .collect();
    let sizes = values.iter().map(|v: &f64| v.abs()).collect();
    [values, sizes].map(|values| {
        DenseTensor::new(shape.to_vec(), values, Order::RowMajor).expect("finite cells")
    })
}

fn shifts(name: &str, shape: &[usize], kernel: &[usize], k: usize) {
    let [data, counts] = signed(shape);
    let plain = Shifted::new(k, kernel.to_vec());
    let both = ShiftedSnmf::new(k, kernel.to_vec()).replicates(skellam_snmf::Replicates::Limit);
    let vb = ShiftedSnmfVb::new(k, kernel.to_vec());
    let (vb, start) = (vb, Init::default());
    let called = format!("siskellam, {name}");
    pair(&called, 2.6, (&both, &data, &start), (&plain, &counts));
    let called = format!("siskellam-vb, {name}");
    pair(&called, 1.3, (&vb, &data, &start), (&both, &data));
}

fn tensors(name: &str, shape: &[usize], mode: usize, k: usize) {
    let [data, counts] = signed(shape);
    let plain = Plca::new(k);
    let both = SignedCp::new(k)
        .replicates(skellam_snmf::Replicates::Limit)
        .signed_mode(mode);
    let vb = SignedCpVb::new(k).signed_mode(mode);
    let (vb, start) = (vb, Init::default());
    let called = format!("skellam-cp, {name}, mode {mode} signed");
    pair(&called, 2.6, (&both, &data, &start), (&plain, &counts));
    let called = format!("skellam-cp-vb, {name}, mode {mode} signed");
    pair(&called, 1.3, (&vb, &data, &start), (&both, &data));
}

/// Turned copies, beside as many kernels as there are copies, of the extents of the largest.
fn turned(
    name: &str,
    shape: &[usize],
    [kernel, largest]: [&[usize]; 2],
    (turns, k): (usize, usize),
) {
    let data = dense::<f64>(shape);
    let angles: Vec<f64> = (0..turns)
        .map(|i| 360.0 * i as f64 / turns as f64)
        .collect();
    let set = Transformation::product(&angles, &[1.0], false).expect("angles");
    let maps = IndexMaps::placed(&set, kernel, shape, Positions::Valid).expect("room");
    let all = Transformed::new(k, maps);
    let plain = Shifted::new(k * turns, largest.to_vec());
    let name = format!("tiplca, {name}");
    pair(&name, 1.3, (&all, &data, &Init::default()), (&plain, &data));
}

fn all() {
    println!(
        "| {:<50} | {:>8} | {:>8} | {:>5} | {:>5} |",
        "iteration", "ms", "plain", "ratio", "limit"
    );
    println!("|---|--:|--:|--:|--:|");
    let sound = dense::<f64>(&[1025, 600]);
    let text = sparse::<f64>(&[2000, 10_000], 200_000);
    let tensor = dense::<f64>(&[200, 200, 50]);
    for (name, data) in [
        ("1025x600 k20", &sound as &dyn Data<f64>),
        ("sparse 2000x10000 k20", &text),
        ("200x200x50 k20", &tensor),
    ] {
        frozen(name, data, 20);
        bayes(name, data, 20);
    }
    sparsity("19x19x2429 k50", &[19, 19, 2429], 50);
    sparsity("1025x600 k20", &[1025, 600], 20);
    shifts("257x300 k10, kernels 257x10", &[257, 300], &[257, 10], 10);
    shifts("234x317 k1, kernels 180x1", &[234, 317], &[180, 1], 1);
    shifts("81x113 k3, kernels 15x15", &[81, 113], &[15, 15], 3);
    shifts("20000 k4, kernels 64", &[20_000], &[64], 4);
    tensors("200x200x50 k20", &[200, 200, 50], 0, 20);
    tensors("200x200x50 k20", &[200, 200, 50], 2, 20);
    tensors("3x400x400 k10", &[3, 400, 400], 0, 10);
    tensors("1025x600 k20", &[1025, 600], 0, 20);
    turned(
        "64x64 k2, 8 turns of 9x9",
        &[64, 64],
        [&[9, 9], &[15, 15]],
        (8, 2),
    );
    turned(
        "48x48 k1, 4 turns of 7x7",
        &[48, 48],
        [&[7, 7], &[7, 7]],
        (4, 1),
    );
}

fn main() {
    let one = ThreadPoolBuilder::new().num_threads(1).build();
    one.expect("a thread").install(all);
}
