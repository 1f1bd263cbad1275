//! The same data in another unit.

use std::fmt;

use plca_tensor::Real;

use super::{Law, Violation};
use crate::{Fit, Parameters, State};

/// What becomes of a fit where the data are multiplied by a number.
pub struct Units<'a> {
    /// By what a block, or a fact such as `scale`, is multiplied; it is told by its name.
    pub block: Box<dyn Fn(&str) -> f64 + 'a>,
    /// By what the objective is multiplied; its constant has no unit. A log-likelihood of rates, to which a unit also adds, is no such objective: take its logarithms in a unit of the
    /// data, such as [`Data::unit`](plca_tensor::Data::unit).
    pub objective: f64,
    /// What the objective sums over, in the first unit: see [`Algorithm::unit`](crate::Algorithm::unit).
    pub size: f64,
    /// How far the objectives may be apart by rounding, relative to that.
    pub apart: f64,
}

impl fmt::Debug for Units<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Units")
            .field("objective", &self.objective)
            .field("size", &self.size)
            .field("apart", &self.apart)
            .finish_non_exhaustive()
    }
}

/// Checks two fits from one seed, of data and of the data times a number that rounds nothing, a power of two, against [`Law::Scale`]: they are the
/// same model bit for bit, except for the unit, in iterations, status, blocks and facts; the objectives pass [`check_per_unit`]. Where an entry leaves
/// the range of normal numbers in one of the units, or is below `√TINY` of the largest of its block and so counts as 0, it has fewer digits: blocks and facts
/// are then not compared.
///
/// That holds for models that put no absolute number beside their data.
///
/// # Errors
///
/// The [`Violation`], with the block and the entry.
///
/// # Examples
///
/// ```
/// use nalgebra::{DMatrix, dmatrix};
/// use plca_fit::laws::{Law, Units, check_per_unit, check_units};
/// use plca_fit::{blocks::*, em::*, *};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
///
/// /// The mean of data; with a guard it is kept from 0.
/// #[derive(Debug)]
/// struct Mean { data: DMatrix<f64>, guard: f64, blocks: [BlockSpec<f64>; 1] }
///
/// impl Algorithm<f64> for Mean {
///     fn blocks(&self) -> &[BlockSpec<f64>] { &self.blocks }
///     fn step(&self, at: &mut Parameters<f64>, _: bool) -> Result<Stepped, FitError> {
///         at.change(|_, x| x[0] = self.data.mean() + self.guard);
///         at.count();
///         Ok(Stepped::default())
///     }
///     fn objective(&self, at: &Parameters<f64>) -> Result<f64, FitError> {
///         Ok(-self.data.add_scalar(-at.at(0)[0]).norm_squared())
///     }
///     fn unit(&self) -> f64 { self.data.norm_squared() }
///     fn extrapolates(&self, _: &Parameters<f64>) -> Result<(), FitError> { Ok(()) }
/// }
///
/// let fit = |unit: f64, guard| {
///     let blocks = [BlockSpec::values("mean", (1, 1), Axes::SINGLE, Constraint::Free)];
///     let mean = Mean { data: dmatrix![2.0, 5.0] * unit, guard, blocks };
///     let run = Run::<Parameters<f64>>::new(Box::new(mean)).stop(Stop::default().max_iter(2));
///     run.run(Init::default(), &mut ChaCha8Rng::seed_from_u64(0))
/// };
/// let s = 2f64.powi(-40);
/// let units = Units { block: Box::new(|_| s), objective: s * s, size: 29.0, apart: 1e-12 };
/// assert!(check_units(&fit(1.0, 0.0)?, &fit(s, 0.0)?, &units).is_ok());
/// let violation = check_units(&fit(1.0, 1e-12)?, &fit(s, 1e-12)?, &units).unwrap_err();
/// assert_eq!(violation.law, Law::Scale);                              // 1e-12 stands beside the data
/// assert_eq!(check_per_unit(&fit(1.0, 1e-12)?, &fit(s, 1e-12)?, &units).unwrap_err().law, Law::Scale);
/// # Ok::<(), FitError>(())
/// ```
pub fn check_units<S: State>(
    here: &Fit<S>,
    there: &Fit<S>,
    units: &Units<'_>,
) -> Result<(), Violation> {
    let broken = |details: String| Err(Violation::new(Law::Scale, details));
    let ends = [here, there].map(|fit| (fit.iterations(), fit.status().clone()));
    if ends[0] != ends[1] {
        return broken(format!("{:?} becomes {:?}", ends[0], ends[1]));
    }
    let [one, other] = [here, there].map(|fit| fit.state().parameters());
    let names = [one, other].map(|at| {
        let blocks = at
            .blocks()
            .map(|(name, block)| format!("{name} {:?}", block.shape()));
        let facts = at
            .facts()
            .map(|(name, numbers)| format!("{name} {}", numbers.len()));
        blocks.chain(facts).collect::<Vec<_>>()
    });
    if names[0] != names[1] {
        return broken(format!("{:?} becomes {:?}", names[0], names[1]));
    }
    if lose_digits(one, other, units) {
        return check_per_unit(here, there, units);
    }
    for ((name, before), (_, after)) in one.blocks().zip(other.blocks()) {
        let factor = (units.block)(name);
        for (at, (x, y)) in before.iter().zip(after.iter()).enumerate() {
            let (x, y) = (x.to_f64(), y.to_f64());
            let expected = x * factor;
            if expected != y {
                let (row, column) = (at % before.nrows(), at / before.nrows());
                let details = format!(
                    "{x:e} is {y:e} in the other unit instead of {expected:e} after {} iterations",
                    here.iterations()
                );
                let violation = Violation::new(Law::Scale, details);
                return Err(violation.at(name.into(), Some((row, column))));
            }
        }
    }
    for ((name, before), (_, after)) in one.facts().zip(other.facts()) {
        let factor = (units.block)(name);
        let before = before.iter().map(|x| x * factor);
        if !before.clone().eq(after.iter().copied()) {
            let before: Vec<f64> = before.collect();
            return broken(format!("`{name}` is {after:?} instead of {before:?}"));
        }
    }
    check_per_unit(here, there, units)
}

/// Whether an entry has fewer digits in one of the units: it is subnormal there, or has become 0, or counts as 0 beside the largest of its block.
fn lose_digits<T: Real>(one: &Parameters<T>, other: &Parameters<T>, units: &Units<'_>) -> bool {
    one.blocks().zip(other.blocks()).any(|((name, a), (_, b))| {
        let factor = (units.block)(name);
        let share = T::TINY.sqrt().to_f64();
        let [most_a, most_b] = [a, b].map(|block| block.amax().to_f64());
        let few = |x: f64, there: f64, most: f64| {
            let least = x.abs().min(there.abs());
            x != 0.0 && (least < T::TINY.to_f64() || x.abs() < share * most)
        };
        a.iter().zip(b.iter()).any(|(a, b)| {
            let (a, b) = (a.to_f64(), b.to_f64());
            few(a, a * factor, most_a) || few(b, b / factor, most_b)
        })
    })
}

/// Checks two fits from one seed, of data and of the data times any number, against [`Law::Scale`]: their objectives are the same per unit.
///
/// ```math
/// \left| \frac{J_s}{u} - J \right| \le \text{apart} \cdot \text{size}
/// ```
///
/// `J` is the objective without its constant, [`Fit::compared`], and `u` is [`Units::objective`]. A number that is not a power of two
/// rounds the data, and iterations amplify that: compare after a few iterations, equally many in both fits.
///
/// # Errors
///
/// The [`Violation`].
///
/// # Examples
///
/// See [`check_units`].
pub fn check_per_unit<S: State>(
    here: &Fit<S>,
    there: &Fit<S>,
    units: &Units<'_>,
) -> Result<(), Violation> {
    let u = units.objective;
    let [a, b] = [here, there].map(|fit| fit.compared());
    let off = (b / u - a).abs();
    if off <= units.apart * units.size {
        return Ok(());
    }
    let details = format!(
        "the value {a:e} becomes {b:e} instead of {:e} after {} and {} iterations: {:e} per unit, of which {:e} is rounding",
        u * a,
        here.iterations(),
        there.iterations(),
        off / units.size,
        units.apart
    );
    Err(Violation::new(Law::Scale, details))
}
