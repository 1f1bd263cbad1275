//! What a method must satisfy, as functions that say where it does not.

use plca_tensor::strategies::{Start, Table};
use plca_tensor::{Observed, Real};

use super::methods::{Method, Step};
use super::storages::Storage;

/// Iterations after which two trajectories are compared: few, because iterations amplify rounding errors.
const STEPS: usize = 3;

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

/// Whether `x > limit`; NaN exceeds everything.
fn exceeds(x: f64, limit: f64) -> bool {
    x.is_nan() || x > limit
}

/// The objective never falls, beyond rounding, in `n` iterations.
///
/// `P` sums to 1 to a rounding error only, which moves the likelihood by that many times `v`, however small it is:
/// hence the data's mass beside `1 + |L|`. Where the observed mass is found by subtraction, it is known to a rounding
/// error of the whole: hence `v / seen`.
pub(crate) fn never_falls<T: Precision>(
    method: &Method<T>,
    data: &dyn Observed<T>,
    start: &Start<T>,
    n: usize,
) -> Result<(), String> {
    let steps = method(data, start, n);
    if !steps[0].value.is_finite() {
        return Err(format!("starts at {}", steps[0].value));
    }
    for (i, pair) in steps.windows(2).enumerate() {
        let (old, new) = (&pair[0], &pair[1]);
        let subtraction = T::EPSILON.to_f64() / old.seen.min(new.seen);
        let allowed =
            T::FALL * (1.0 + old.value.abs() + data.total()) + 4.0 * subtraction * data.total();
        if exceeds(old.value - new.value, allowed) {
            let i = i + 1;
            return Err(format!(
                "{} fell to {} in iteration {i}",
                old.value, new.value
            ));
        }
    }
    Ok(())
}

/// Entries are non-negative and columns sum to 1 after every iteration.
pub(crate) fn stays_on_the_simplex<T: Real>(steps: &[Step<T>]) -> Result<(), String> {
    for (i, step) in steps.iter().enumerate() {
        let rows = step
            .blocks
            .iter()
            .map(|b| b.values.nrows().max(b.values.ncols()))
            .max();
        let allowed = T::EPSILON.to_f64() * (4.0 + rows.unwrap_or(0) as f64);
        if exceeds(step.simplex, allowed) {
            return Err(format!("off by {} after {i} iterations", step.simplex));
        }
    }
    Ok(())
}

/// Two trajectories agree in every block and in the objective.
pub(crate) fn agree<T: Precision>(
    got: &[Step<T>],
    want: &[Step<T>],
    mass: f64,
) -> Result<(), String> {
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        for (a, b) in got.blocks.iter().zip(&want.blocks) {
            let limit = T::SAME * b.values.amax().to_f64();
            for (a, w) in a.values.iter().zip(&b.values) {
                if exceeds((a.to_f64() - w.to_f64()).abs(), limit) {
                    let mode = b.mode;
                    return Err(format!(
                        "{a} instead of {w} in {mode:?} after {i} iterations"
                    ));
                }
            }
        }
        let limit = T::SAME * (mass + want.value.abs());
        if exceeds((got.value - want.value).abs(), limit) {
            return Err(format!("objective {} instead of {}", got.value, want.value));
        }
    }
    Ok(())
}

/// Renaming components renames the result.
pub(crate) fn components_are_alike<T: Precision>(
    method: &Method<T>,
    data: &dyn Observed<T>,
    start: &Start<T>,
    order: &[usize],
) -> Result<(), String> {
    let mut want = method(data, start, STEPS);
    for block in want.iter_mut().flat_map(|s| &mut s.blocks) {
        block.values = block.values.select_columns(order);
    }
    let got = method(data, &start.permute_components(order), STEPS);
    agree(&got, &want, data.total())
}

/// Renaming the indices of a mode renames them in the result.
pub(crate) fn rows_are_alike<T: Precision>(
    method: &Method<T>,
    storage: &Storage<T>,
    (table, start): (&Table<T>, &Start<T>),
    (mode, order): (usize, &[usize]),
) -> Result<(), String> {
    let data = storage(table);
    let mut want = method(&*data, start, STEPS);
    for block in want.iter_mut().flat_map(|s| &mut s.blocks) {
        if block.mode == Some(mode) {
            block.values = block.values.select_rows(order);
        }
    }
    let permuted = storage(&table.permute_mode(mode, order));
    let got = method(&*permuted, &start.permute_mode(mode, order), STEPS);
    agree(&got, &want, data.total())
}

/// Exchanging modes exchanges factors.
pub(crate) fn modes_are_alike<T: Precision>(
    method: &Method<T>,
    storage: &Storage<T>,
    (table, start): (&Table<T>, &Start<T>),
    order: &[usize],
) -> Result<(), String> {
    let data = storage(table);
    let mut want = method(&*data, start, STEPS);
    for step in &mut want {
        let of_mode = |j: Option<usize>| step.blocks.iter().find(|b| b.mode == j).cloned();
        let factors = order.iter().filter_map(|&m| of_mode(Some(m)));
        step.blocks = of_mode(None).into_iter().chain(factors).collect();
    }
    let permuted = storage(&table.permute_modes(order));
    let got = method(&*permuted, &start.permute_modes(order), STEPS);
    agree(&got, &want, data.total())
}

/// What `s V` gives, what it should give by the result for `V`, and the mass of `s V`.
fn scaled<T: Precision>(
    method: &Method<T>,
    storage: &Storage<T>,
    (table, start): (&Table<T>, &Start<T>),
    scale: T,
) -> (Vec<Step<T>>, Vec<Step<T>>, f64) {
    let mut want = method(&*storage(table), start, STEPS);
    for step in &mut want {
        step.value *= scale.to_f64();
        for block in step.blocks.iter_mut().filter(|b| b.scales) {
            block.values *= scale;
        }
    }
    let data = storage(&table.clone().scaled(scale));
    (method(&*data, start, STEPS), want, data.total())
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
pub(crate) fn scale_is_carried<T: Precision>(
    method: &Method<T>,
    storage: &Storage<T>,
    problem: (&Table<T>, &Start<T>),
    scale: T,
) -> Result<(), String> {
    let (got, want, mass) = scaled(method, storage, problem, scale);
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
    for (got, want) in got.iter().zip(&want) {
        for (a, b) in got.blocks.iter().zip(&want.blocks) {
            if a.values != b.values {
                return Err(format!("{} instead of {}", a.values, b.values));
            }
        }
    }
    agree(&got, &want, mass)
}

/// As [`scale_is_carried`] for any scale, to rounding.
pub(crate) fn any_scale_is_carried<T: Precision>(
    method: &Method<T>,
    storage: &Storage<T>,
    problem: (&Table<T>, &Start<T>),
    scale: T,
) -> Result<(), String> {
    let (got, want, mass) = scaled(method, storage, problem, scale);
    agree(&got, &want, mass)
}

/// One and more threads give the same bits.
pub(crate) fn threads_do_not_matter<T: Real>(
    method: &Method<T>,
    data: &dyn Observed<T>,
    start: &Start<T>,
) -> Result<(), String> {
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build().unwrap();
        pool.install(|| method(data, start, STEPS))
    };
    let one = with(1);
    match [2, 3].into_iter().find(|&n| with(n) != one) {
        Some(n) => Err(format!("{n} threads differ from one")),
        None => Ok(()),
    }
}
