//! Where parameters differ, and the ways along which their entries may move.

use nalgebra::DMatrix;
use plca_tensor::Real;

use super::{Claims, Law, Violation, objective};
use crate::{Algorithm, Axis, BlockSpec, Constraint, FitError, Frozen, Parameters, Sense};

/// How many entries of a block are looked at in one iteration; the next looks at others.
const MOST: usize = 48;

/// An entry of a block by its place in columns.
pub(super) fn row_column<T: Real>(block: &DMatrix<T>, entry: usize) -> (usize, usize) {
    (entry % block.nrows(), entry / block.nrows())
}

/// The first entry in which two parameters differ in a bit, with both values.
pub(super) fn difference<T: Real>(
    a: &Parameters<T>,
    b: &Parameters<T>,
) -> Option<(String, (usize, usize), [f64; 2])> {
    for ((name, a), (_, b)) in a.blocks().zip(b.blocks()) {
        if a.shape() != b.shape() {
            return Some((name.into(), (0, 0), [f64::NAN; 2]));
        }
        let differs = |(a, b): (&T, &T)| a.to_f64().to_bits() != b.to_f64().to_bits();
        if let Some(entry) = a.iter().zip(b).position(differs) {
            let values = [a[entry].to_f64(), b[entry].to_f64()];
            return Some((name.into(), row_column(a, entry), values));
        }
    }
    None
}

/// Two parameters that are to be equal are not: the first entry that differs, or that something besides the blocks does.
pub(super) fn unequal<T: Real>(
    law: Law,
    [a, b]: [&Parameters<T>; 2],
    [first, second]: [&str; 2],
) -> Violation {
    match difference(a, b) {
        Some((block, entry, [x, y])) => {
            let details = format!("{x:e} {first}, {y:e} {second}");
            Violation::new(law, details).at(block, Some(entry))
        }
        None if a != b => Violation::new(
            law,
            format!("iterations, power or facts differ: {first} and {second}"),
        ),
        None => Violation::new(
            law,
            format!("the memory of the solver differs: {first} and {second}"),
        ),
    }
}

/// A flag for each entry of a block, column after column: whether it is frozen.
pub(super) fn frozen<T: Real>(spec: &BlockSpec<T>) -> Vec<bool> {
    let (rows, columns) = spec.shape;
    match (&spec.frozen, spec.axes.components()) {
        (Frozen::Entries(flags), _) => flags.as_slice().to_vec(),
        (Frozen::Whole, _) => vec![true; rows * columns],
        (Frozen::Components(_), Axis::Rows) => spec.frozen_components().repeat(columns),
        (Frozen::Components(_), Axis::Columns) => {
            let columns = spec.frozen_components().into_iter();
            columns
                .flat_map(|frozen| std::iter::repeat_n(frozen, rows))
                .collect()
        }
        (Frozen::No | Frozen::Components(_), _) => vec![false; rows * columns],
    }
}

/// The sets of entries that are renewed by themselves: columns of distributions, single rates, all of another block.
pub(super) fn parts<T: Real>(spec: &BlockSpec<T>) -> Vec<Vec<usize>> {
    let (rows, columns) = spec.shape;
    match spec.constraint {
        Constraint::Simplex => (0..columns)
            .map(|z| (z * rows..(z + 1) * rows).collect())
            .collect(),
        Constraint::NonNegative => (0..rows * columns).map(|entry| vec![entry]).collect(),
        Constraint::Positive | Constraint::Free => vec![(0..rows * columns).collect()],
    }
}

/// At most this number of them, evenly, others in every iteration.
pub(super) fn some<I: Clone>(all: &[I], iteration: usize) -> Vec<I> {
    let stride = all.len().div_ceil(MOST).max(1);
    let chosen = all.iter().skip(iteration % stride).step_by(stride);
    chosen.cloned().collect()
}

/// Moves an entry by `t` along its way: a positive entry is multiplied by `1 + t`, and the free entries of a distribution are then rescaled; a value of any
/// sign in parts of the largest of its block. An entry at 0 that may not be negative stays.
pub(super) fn raise<T: Real>(
    spec: &BlockSpec<T>,
    frozen: &[bool],
    block: &mut DMatrix<T>,
    entry: usize,
    t: f64,
) {
    let rows = block.nrows();
    if spec.constraint != Constraint::Simplex {
        let scale = match spec.constraint {
            Constraint::Free => match block.amax().to_f64() {
                largest if largest > 0.0 => largest,
                _ => 1.0,
            },
            _ => block[entry].to_f64(),
        };
        block[entry] = T::lit(block[entry].to_f64() + t * scale);
        return;
    }
    let column = entry / rows;
    let free: Vec<usize> = (column * rows..(column + 1) * rows)
        .filter(|&at| !frozen[at])
        .collect();
    let before: f64 = free.iter().map(|&at| block[at].to_f64()).sum();
    let moved = |&at: &usize| {
        let x = block[at].to_f64();
        if at == entry { x * (1.0 + t) } else { x }
    };
    let moved: Vec<f64> = free.iter().map(moved).collect();
    // Their own sum: of what is left beside an entry near 1, a difference from 1 would know a few digits only, and the column would not be a distribution.
    let raised: f64 = moved.iter().sum();
    for (&at, x) in free.iter().zip(moved) {
        block[at] = T::lit(x * (before / raised));
    }
}

/// The parameters with an entry moved.
pub(super) fn moved<T: Real>(
    specs: &[BlockSpec<T>],
    at: &Parameters<T>,
    (block, entry): (usize, usize),
    t: f64,
) -> Parameters<T> {
    let mut new = at.clone();
    let frozen = frozen(&specs[block]);
    new.change(|j, values| {
        if j == block {
            raise(&specs[j], &frozen, values, entry, t);
        }
    });
    new
}

/// How exactly an objective is known near a value, and what follows for slopes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exactness {
    /// What rounding may do to the objective.
    pub(super) allowed: f64,
    /// The size of the objective's terms: its curvature along a way is no larger.
    pub(super) size: f64,
    /// The step of differences.
    pub(super) h: f64,
}

impl Exactness {
    pub(super) fn of<T: Real>(algorithm: &dyn Algorithm<T>, claims: &Claims, value: f64) -> Self {
        let allowed = claims.rounding.allowed(value);
        let of_terms = match claims.rounding.relative {
            relative if relative > 0.0 => allowed / relative,
            _ => 0.0,
        };
        let size = algorithm.unit().abs().max(value.abs()).max(of_terms);
        let relative = (allowed / size).max(T::EPSILON.to_f64());
        let relative = if relative.is_finite() {
            relative
        } else {
            T::EPSILON.to_f64()
        };
        // The step is at most 0.05.
        let h = relative.cbrt().min(0.05);
        Self { allowed, size, h }
    }

    /// What rounding and curvature do to a slope: the same at this step.
    pub(super) fn of_slopes(&self) -> f64 {
        2.0 * self.allowed.max(self.h.powi(3) * self.size) / self.h
    }

    /// The slope below which a step need not gain more than rounding. A step to the maximum along a way of slope `s` gains `s²/(2 c)` or
    /// more, with `c`, the curvature, at most the size; a step with an eighth of that gain still passes.
    pub(super) fn without_gain(&self) -> f64 {
        // The claimed rounding may be 0: at least one epsilon of `f64` is assumed.
        let allowed = self.allowed.max(f64::EPSILON * self.size);
        4.0 * (self.size * allowed).sqrt() + self.of_slopes()
    }
}

/// The entry of these that moves most.
pub(super) fn largest_change<T: Real>(
    old: &DMatrix<T>,
    new: &DMatrix<T>,
    entries: impl Iterator<Item = usize>,
) -> Option<usize> {
    let change = |e: usize| (new[e].to_f64() - old[e].to_f64()).abs();
    entries.max_by(|&a, &b| change(a).total_cmp(&change(b)))
}

/// What an objective gains from one value to another.
pub(super) fn gain(sense: Sense, [old, new]: [f64; 2]) -> f64 {
    match sense {
        Sense::Maximise => new - old,
        Sense::Minimise => old - new,
    }
}

/// The slope of a value along the way of an entry, positive where it improves; `None` for an entry that cannot move.
pub(super) fn slope<T: Real>(
    algorithm: &dyn Algorithm<T>,
    value: impl Fn(&Parameters<T>) -> Result<f64, FitError>,
    at: &Parameters<T>,
    (block, entry): (usize, usize),
    h: f64,
) -> Option<f64> {
    let specs = algorithm.blocks();
    if specs[block].constraint != Constraint::Free && at.at(block)[entry] <= T::zero() {
        return None;
    }
    let [behind, ahead] = [-h, h].map(|t| value(&moved(specs, at, (block, entry), t)));
    let slope = gain(algorithm.sense(), [behind.ok()?, ahead.ok()?]) / (2.0 * h);
    slope.is_finite().then_some(slope)
}

/// Whether a value jumps along the way of an entry, as it does along a label: what differences say is no slope then.
fn jumps<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &Parameters<T>,
    (block, entry): (usize, usize),
    (slope, h, size): (f64, f64, f64),
) -> bool {
    let specs = algorithm.blocks();
    let values = [-h, 0.0, h].map(|t| algorithm.objective(&moved(specs, at, (block, entry), t)));
    let [Ok(behind), Ok(here), Ok(ahead)] = values else {
        return false;
    };
    // Of a curve the second difference is `h²` times the curvature, which is at most the size.
    (behind - 2.0 * here + ahead).abs() > 0.5 * h * slope.abs() + 8.0 * h * h * size
}

/// The free entry of these with the largest slope of the objective.
pub(super) fn steepest<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &Parameters<T>,
    entries: impl Iterator<Item = (usize, usize)>,
    exact: Exactness,
) -> Option<((usize, usize), f64)> {
    let h = exact.h;
    let mut steepest: Option<((usize, usize), f64)> = None;
    for place in entries {
        let Some(s) = slope(algorithm, |at| algorithm.objective(at), at, place, h) else {
            continue;
        };
        let more = steepest.is_none_or(|(_, most)| s.abs() > most.abs());
        if more && !jumps(algorithm, at, place, (s, h, exact.size)) {
            steepest = Some((place, s));
        }
    }
    steepest
}

/// An objective that is to be finite, of parameters of which a part was renewed.
pub(super) fn objective_at<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &Parameters<T>,
) -> Result<f64, Violation> {
    objective(algorithm, at, at.iteration())
}
