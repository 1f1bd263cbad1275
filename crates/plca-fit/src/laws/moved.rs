//! One problem, stated in two ways.

use std::fmt::Debug;

use plca_tensor::Real;

use super::{Claims, Law, Violation, Walk};
use crate::{Algorithm, Memory, Parameters, Solver};

/// The parts of a state that are compared: its objective, and its parameters block by block.
///
/// ```
/// use plca_fit::laws::Point;
/// let point = Point { objective: -3.0, blocks: vec![vec![0.25, 0.75]] };
/// assert_eq!(point.clone(), point);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The objective.
    pub objective: f64,
    /// Entries of one block each, which are as exact as its largest entry.
    pub blocks: Vec<Vec<f64>>,
}

/// The distance that two paths may be apart.
///
/// ```
/// use plca_fit::laws::Agreement;
/// let equal = Agreement { entries: 0.0, objective: 0.0 };
/// assert_eq!(equal.clone(), equal);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Difference of two entries, relative to the largest of their block.
    pub entries: f64,
    /// Difference of two objectives.
    pub objective: f64,
}

/// The blocks of parameters as they are: what [`check_moved`] compares where nothing else is to be compared.
pub fn blocks<T: Real>(at: &Parameters<T>) -> Vec<Vec<f64>> {
    let blocks = at.matrices().iter();
    let blocks = blocks.map(|block| block.iter().map(|x| x.to_f64()).collect());
    blocks.collect()
}

/// The points of plain iterations after 0, 1, …, `n` of them.
///
/// # Errors
///
/// [`Law::Accepts`] where a step fails, or an objective is not finite.
pub fn follow<T: Real>(
    algorithm: &dyn Algorithm<T>,
    start: &Parameters<T>,
    n: usize,
    blocks: impl Fn(&Parameters<T>) -> Vec<Vec<f64>>,
) -> Result<Vec<Point>, Violation> {
    let mut walk = Walk::new(algorithm, Solver::Em, (start, Memory::default(), 0))?;
    let points = (0..=n).map(|i| {
        if i > 0 {
            walk.step(false)?;
        }
        Ok(Point {
            objective: walk.objective()?,
            blocks: blocks(&walk.at),
        })
    });
    points.collect()
}

/// Whether two numbers differ by more than this. Infinities of one sign do not; NaN does from everything.
fn apart(a: f64, b: f64, limit: f64) -> bool {
    let distance = (a - b).abs();
    a != b && (distance.is_nan() || distance > limit)
}

/// Two paths agree: as many points, blocks and entries, each within what is allowed there.
///
/// # Errors
///
/// A [`Violation`] of the law that says they do.
///
/// # Examples
///
/// ```
/// use plca_fit::laws::{Agreement, Law, Point, agree};
/// let at = |x: f64| [Point { objective: -x, blocks: vec![vec![x, 8.0]] }];
/// let within = |_: &Point| Agreement { entries: 1e-3, objective: 0.1 };
/// assert!(agree(Law::Scale, &at(1.0), &at(1.001), within).is_ok());
/// let violation = agree(Law::Scale, &at(1.0), &at(1.01), within).unwrap_err();
/// assert_eq!(violation.law, Law::Scale);
/// ```
pub fn agree(
    law: Law,
    got: &[Point],
    want: &[Point],
    within: impl Fn(&Point) -> Agreement,
) -> Result<(), Violation> {
    agree_at(law, got, want, |_, point| within(point))
}

/// The same, of points, whose tolerance also depends on their index.
fn agree_at(
    law: Law,
    got: &[Point],
    want: &[Point],
    within: impl Fn(usize, &Point) -> Agreement,
) -> Result<(), Violation> {
    let broken = |details: String| Err(Violation::new(law, details));
    if got.len() != want.len() {
        return broken(format!("{} points instead of {}", got.len(), want.len()));
    }
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let allowed = within(i, want);
        let shape = |p: &Point| p.blocks.iter().map(Vec::len).collect::<Vec<_>>();
        if shape(got) != shape(want) {
            let (a, b) = (shape(got), shape(want));
            return broken(format!("blocks of {a:?} entries instead of {b:?}"));
        }
        for (block, (a, b)) in got.blocks.iter().zip(&want.blocks).enumerate() {
            let largest = b.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            let limit = allowed.entries * largest;
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                if apart(*a, *b, limit) {
                    return broken(format!(
                        "{a} instead of {b} at entry {at} of block {block} after {i} iterations, of which {limit:e} is rounding"
                    ));
                }
            }
        }
        let (a, b, limit) = (got.objective, want.objective, allowed.objective);
        if apart(a, b, limit) {
            return broken(format!(
                "objective {a} instead of {b} after {i} iterations, of which {limit:e} is rounding"
            ));
        }
    }
    Ok(())
}

/// Checks a method on two statements of one problem against [`Law::Permutation`] or [`Law::Scale`]: what `here` makes of a state,
/// `map`ped, is what `there` makes of the mapped state, and the objective of `there` is what `objective` makes of that of `here`: `|j| j` where it
/// stays, `|j| c * j` for a divergence of data times `c`, and `|j| c * j + ln(c) * total` for a log-likelihood of rates `Σ c v ln(c p) - c p`, in which the
/// sum of these data, `total`, counts too.
///
/// [`Claims::compared`] iterations are compared, and parameters may differ by [`Claims::entries`]. Set that to 0 where the map loses nothing:
/// a power of two, or a permutation that no sum sees.
///
/// # Errors
///
/// The [`Violation`].
pub fn check_moved<T: Real>(
    law: Law,
    [here, there]: [&dyn Algorithm<T>; 2],
    start: &Parameters<T>,
    map: impl Fn(&Parameters<T>) -> Parameters<T>,
    blocks: impl Fn(&Parameters<T>) -> Vec<Vec<f64>>,
    objective: impl Fn(f64) -> f64,
    claims: &Claims,
) -> Result<(), Violation> {
    let n = claims.compared;
    let mut want = follow(here, start, n, |at| blocks(&map(at)))?;
    // Rounding may move the objective of `here` so far.
    let rounded: Vec<f64> = want
        .iter_mut()
        .map(|point| {
            let here = point.objective;
            point.objective = objective(here);
            let moved = objective(here + claims.rounding.allowed(here)) - point.objective;
            // The objective there rounds, too, whatever is subtracted from it here.
            moved.abs() + claims.rounding.relative * point.objective.abs()
        })
        .collect();
    let got = follow(there, &map(start), n, blocks)?;
    agree_at(law, &got, &want, |i, _| Agreement {
        entries: claims.entries,
        objective: rounded[i],
    })
}

/// Checks what a closure builds and runs against [`Law::Threads`]: bit-identical in pools of one, two and three threads.
///
/// # Errors
///
/// The [`Violation`].
///
/// # Panics
///
/// If no pool of threads can be made.
///
/// # Examples
///
/// ```
/// use plca_fit::laws::{Law, check_threads};
/// assert!(check_threads(|| 1 + 1).is_ok());
/// assert_eq!(check_threads(rayon::current_num_threads).unwrap_err().law, Law::Threads);
/// ```
pub fn check_threads<R: PartialEq + Debug + Send>(
    run: impl Fn() -> R + Sync,
) -> Result<(), Violation> {
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build().expect("the machine has threads");
        pool.install(&run)
    };
    let one = with(1);
    for threads in [2, 3] {
        let many = with(threads);
        if many != one {
            let details = format!("{one:?} with one thread, {many:?} with {threads}");
            return Err(Violation::new(Law::Threads, details));
        }
    }
    Ok(())
}
