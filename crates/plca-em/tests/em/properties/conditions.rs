//! What a method must satisfy: laws of the public kit, for all models behind one signature.

use plca_fit::Sense;
use plca_fit::laws::{self, Agreement, Law, Point, Rounding, never_worse};
use plca_tensor::strategies::{Start, Table};
use plca_tensor::{Data, Real};
use proptest::prelude::*;

use super::methods::{Block, Method, Step};
use super::storages::Storage;

/// Iterations of which every one is compared.
const STEPS: usize = 3;

/// The states that the first iterations begin with, as starts. From each of them one iteration is compared: a block is as exact as its largest
/// entry, and a later iteration may make much of the smallest.
pub(crate) fn path<T: Real>(
    method: &Method<T>,
    data: &dyn Data<T>,
    start: &Start<T>,
) -> Vec<Start<T>> {
    let steps = method(data, start, STEPS - 1);
    let later = steps.iter().skip(1).map(|step| step.start(start));
    std::iter::once(start.clone()).chain(later).collect()
}

/// Per scalar type: what rounding may do.
pub(crate) trait Precision: Real {
    /// Fall, relative to `1 + |L|`.
    const FALL: f64;
    /// Difference, relative to the largest entry of a block.
    const SAME: f64;
}

impl Precision for f64 {
    const FALL: f64 = 1e-12;
    const SAME: f64 = 1e-12;
}

impl Precision for f32 {
    const FALL: f64 = 1e-6;
    const SAME: f64 = 1e-4;
}

/// What rounding may do to the objective, of which `seen` is the share of the model within the observed cells.
///
/// `P` sums to 1 to a rounding error only, which moves the likelihood by that many times `v`, however small it is:
/// hence the data's mass beside `1 + |L|`. Where the observed mass is found by subtraction, it is known to a rounding
/// error of the whole: hence `v / seen`.
pub(crate) fn rounding<T: Precision>(mass: f64, seen: f64) -> Rounding {
    Rounding {
        relative: T::FALL,
        absolute: T::FALL * (1.0 + mass) + 4.0 * T::EPSILON.to_f64() / seen * mass,
    }
}

/// The objective never falls, beyond rounding, in `n` iterations.
pub(crate) fn rises<T: Precision>(
    method: &Method<T>,
    data: &dyn Data<T>,
    start: &Start<T>,
    n: usize,
) -> Result<(), TestCaseError> {
    let steps = method(data, start, n);
    let values = (steps.iter()).map(|s| (s.value, rounding::<T>(data.total(), s.seen)));
    Ok(never_worse(Sense::Maximise, &values.collect::<Vec<_>>())?)
}

/// Entries are non-negative and columns sum to 1 after every iteration.
pub(crate) fn stays_on_the_simplex<T: Real>(steps: &[Step<T>]) -> Result<(), TestCaseError> {
    for (i, step) in steps.iter().enumerate() {
        let rows = step
            .blocks
            .iter()
            .map(|b| b.values.nrows().max(b.values.ncols()))
            .max();
        let allowed = T::EPSILON.to_f64() * (4.0 + rows.unwrap_or(0) as f64);
        let off = step.simplex;
        prop_assert!(off <= allowed, "off by {off} after {i} iterations");
    }
    Ok(())
}

/// Two trajectories agree in every block and in the objective. `entries` is what blocks may differ by, relative to their largest entry.
fn agree_to<T: Precision>(
    law: Law,
    got: &[Step<T>],
    want: &[Step<T>],
    mass: f64,
    entries: f64,
) -> Result<(), TestCaseError> {
    let block = |b: &Block<T>| b.values.iter().map(|x| x.to_f64()).collect();
    let points = |steps: &[Step<T>]| -> Vec<Point> {
        let point = |step: &Step<T>| Point {
            objective: step.value,
            blocks: step.blocks.iter().map(block).collect(),
        };
        steps.iter().map(point).collect()
    };
    let within = |want: &Point| Agreement {
        entries,
        objective: T::SAME * (mass + want.objective.abs()),
    };
    Ok(laws::agree(law, &points(got), &points(want), within)?)
}

/// [`agree_to`] rounding.
pub(crate) fn agree<T: Precision>(
    law: Law,
    got: &[Step<T>],
    want: &[Step<T>],
    mass: f64,
) -> Result<(), TestCaseError> {
    agree_to(law, got, want, mass, T::SAME)
}

/// Renaming components renames the result.
pub(crate) fn components_are_alike<T: Precision>(
    method: &Method<T>,
    data: &dyn Data<T>,
    start: &Start<T>,
    order: &[usize],
) -> Result<(), TestCaseError> {
    let mut want = method(data, start, 1);
    for block in want.iter_mut().flat_map(|s| &mut s.blocks) {
        block.values = block.values.select_columns(order);
    }
    let got = method(data, &start.permute_components(order), 1);
    agree(Law::Permutation, &got, &want, data.total())
}

/// Renaming the indices of a mode renames them in the result.
pub(crate) fn rows_are_alike<T: Precision>(
    method: &Method<T>,
    storage: &Storage<T>,
    (table, start): (&Table<T>, &Start<T>),
    (mode, order): (usize, &[usize]),
) -> Result<(), TestCaseError> {
    let data = storage(table);
    let mut want = method(&*data, start, 1);
    for block in want.iter_mut().flat_map(|s| &mut s.blocks) {
        if block.mode == Some(mode) {
            block.values = block.values.select_rows(order);
        }
    }
    let permuted = storage(&table.permute_mode(mode, order));
    let got = method(&*permuted, &start.permute_mode(mode, order), 1);
    agree(Law::Permutation, &got, &want, data.total())
}

/// Exchanging modes exchanges factors.
pub(crate) fn modes_are_alike<T: Precision>(
    method: &Method<T>,
    storage: &Storage<T>,
    (table, start): (&Table<T>, &Start<T>),
    order: &[usize],
) -> Result<(), TestCaseError> {
    let data = storage(table);
    let mut want = method(&*data, start, 1);
    for step in &mut want {
        let of_mode = |j: Option<usize>| step.blocks.iter().find(|b| b.mode == j).cloned();
        let factors = order.iter().filter_map(|&m| of_mode(Some(m)));
        step.blocks = of_mode(None).into_iter().chain(factors).collect();
    }
    let permuted = storage(&table.permute_modes(order));
    let got = method(&*permuted, &start.permute_modes(order), 1);
    agree(Law::Permutation, &got, &want, data.total())
}

/// What `s V` gives, what it should give by the result for `V`, and the mass of `s V`.
fn scaled<T: Precision>(
    method: &Method<T>,
    storage: &Storage<T>,
    (table, start): (&Table<T>, &Start<T>),
    (scale, iterations): (T, usize),
) -> (Vec<Step<T>>, Vec<Step<T>>, f64) {
    let mut want = method(&*storage(table), start, iterations);
    for step in &mut want {
        step.value *= scale.to_f64();
        for block in step.blocks.iter_mut().filter(|b| b.scales) {
            block.values *= scale;
        }
    }
    let data = storage(&table.clone().scaled(scale));
    (method(&*data, start, iterations), want, data.total())
}

/// Whether the counts on the way are normal numbers in data times `unit`: each is a value of the data times a product of one entry
/// of every block; `scale` is that of the blocks which have one.
fn counts_are_normal<T: Real>(steps: &[Step<T>], table: &Table<T>, scale: f64, unit: f64) -> bool {
    let least = |values: &[T]| {
        let positive = values.iter().map(|x| x.to_f64()).filter(|&x| x > 0.0);
        positive.fold(f64::INFINITY, f64::min)
    };
    let value = least(&table.values) * unit;
    steps.iter().all(|step| {
        let entries = step.blocks.iter().map(|b| {
            let entry = least(b.values.as_slice());
            if b.scales { entry / scale } else { entry }
        });
        entries.product::<f64>() * value >= T::TINY.to_f64()
    })
}

/// `s V` instead of `V` changes no bit of a distribution if `s` is a power of two; `H` of NMF takes the scale. Counts that
/// are not normal numbers have lost bits of their own.
pub(crate) fn power_of_two_is_carried<T: Precision>(
    method: &Method<T>,
    storage: &Storage<T>,
    problem: (&Table<T>, &Start<T>),
    scale: T,
) -> Result<(), TestCaseError> {
    let (got, want, mass) = scaled(method, storage, problem, (scale, STEPS));
    // What is lost in one unit is seen in the other alone.
    let s = scale.to_f64();
    let normal = |unit: f64| {
        [&got, &want]
            .into_iter()
            .all(|run| counts_are_normal(run, problem.0, s, unit))
    };
    if !(normal(s) && normal(1.0)) {
        return stays_on_the_simplex(&got);
    }
    agree_to(Law::Scale, &got, &want, mass, 0.0)
}

/// As [`power_of_two_is_carried`] for any scale, to rounding.
pub(crate) fn any_scale_is_carried<T: Precision>(
    method: &Method<T>,
    storage: &Storage<T>,
    problem: (&Table<T>, &Start<T>),
    scale: T,
) -> Result<(), TestCaseError> {
    let (got, want, mass) = scaled(method, storage, problem, (scale, 1));
    agree(Law::Scale, &got, &want, mass)
}
