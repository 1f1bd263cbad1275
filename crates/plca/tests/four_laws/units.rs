//! Data in another unit give the same model in that unit.

use plca::fit::laws::{Units, check_per_unit, check_units};
use plca::prelude::*;
use plca::tensor::Real;
use plca::tensor::strategies::Table;
use proptest::prelude::*;

use super::models::*;
use super::problem::{Problem, problems, stored};
use super::table::{Measured, StateOf, Subject, few, fitted, holds, in_one_thread, stop};

/// How far apart objectives per unit may be where data are rounded.
fn apart<T: Real>() -> f64 {
    match T::MAX_EXPONENT < 1000 {
        true => 1e-4,
        false => 1e-9,
    }
}

/// A fit, and the unit of its objective.
type Found<M, T> = (Fit<StateOf<M, T>>, f64);

/// A fit by a solver and a stop rule, from the seed of the problem.
fn fit_of<M: Measured, T: Real>(
    problem: &Problem,
    table: &Table<T>,
    stop: &Stop,
) -> Result<Found<M, T>, TestCaseError> {
    let data = stored(table, problem.storage).map_err(|e| TestCaseError::fail(e.to_string()))?;
    fitted::<M, T, _>(problem, &*data, |run| {
        let unit = run.algorithm().unit();
        let run = run.stop(stop.clone()).restarts(problem.starts);
        let fit = run.run(Init::default(), &mut plca::seed(problem.seed))?;
        Ok((fit, unit))
    })
}

fn of<M: Measured, T: Real>(problem: &Problem, factor: f64, way: u8) -> Result<(), TestCaseError> {
    let most = M::most(problem)[usize::from(problem.single)];
    let mut problem = M::plain(problem);
    let s = match way {
        // A power of two, of which blocks that share the unit can have equal parts.
        0 => {
            let root = M::root(&problem);
            let most = most * std::f64::consts::LOG2_10 / f64::from(root);
            2f64.powi((factor * most) as i32 * root)
        }
        _ => 10f64.powf(factor * most),
    };
    let stop = match way {
        0 if problem.choice(7, 2) == 1 => Stop::default().max_iter(60),
        0 => stop(&problem),
        1 => {
            problem.solver = Solver::Em;
            stop(&problem)
        }
        _ => {
            problem.solver = Solver::default();
            Stop::default().max_iter(200)
        }
    };
    let s_of = T::lit(s);
    let table = problem.table::<T>(1.0);
    let (there, _) = fit_of::<M, T>(&problem, &table.clone().scaled(s_of), &stop)?;
    let (here, size) = fit_of::<M, T>(&problem, &table, &stop)?;
    let s = s_of.to_f64();
    let units = Units {
        block: Box::new(|name| M::block(&problem, name, s)),
        objective: s.powi(M::POWER),
        size,
        apart: apart::<T>(),
    };
    if way == 0 {
        let checked = check_units(&here, &there, &units);
        if checked.is_err() && loses_digits::<M, T>(&problem, s, &stop, &units)? {
            return Ok(());
        }
        return holds(checked);
    }
    let checked = check_per_unit(&here, &there, &units);
    if checked.is_ok() {
        return Ok(());
    }
    // A run may branch where rounding decides. Then it also branches in one unit, if every value is changed by a few roundings. Changes by one rounding
    // would be too few: small data have a handful of values.
    let mut rng = TestRng::of(problem.seed);
    // The largest of a few differences need not be as large as the first.
    let apart = apart::<T>() / 10.0;
    let branches = |other: &Found<M, T>, s: f64| {
        let units = Units {
            block: Box::new(|name| M::block(&problem, name, s)),
            objective: s.powi(M::POWER),
            size,
            apart,
        };
        check_per_unit(&here, &other.0, &units).is_err()
    };
    let mut is_branch = false;
    for _ in 0..200 {
        let mut moved = table.clone();
        for v in &mut moved.values {
            *v *= T::one() + T::EPSILON * T::lit(f64::from(rng.roundings()));
        }
        is_branch = branches(&fit_of::<M, T>(&problem, &moved, &stop)?, 1.0);
        if is_branch {
            break;
        }
    }
    // Values that divide each other without a remainder still do when they are changed, but not in other units.
    let is_branch = is_branch
        || comes_and_goes(|s| {
            let s = T::lit(s);
            let other = fit_of::<M, T>(&problem, &table.clone().scaled(s), &stop)?;
            Ok::<_, TestCaseError>(branches(&other, s.to_f64()))
        })?;
    if is_branch {
        #[expect(clippy::print_stdout, reason = "`cargo xtask soak` counts them")]
        {
            println!("branch point of {}", std::any::type_name::<M>());
        }
        return Ok(());
    }
    holds(checked)
}

/// Whether the result of some unit between 1 and 2 is that of the unit 1 although that of a smaller one differs. What depends on the unit by mistake grows with it;
/// what rounding decides comes and goes.
pub(crate) fn comes_and_goes<E>(
    mut differs: impl FnMut(f64) -> Result<bool, E>,
) -> Result<bool, E> {
    let mut differed = false;
    for nth in 1..17 {
        let now = differs(1.0 + f64::from(nth) / 17.0)?;
        if differed && !now {
            return Ok(true);
        }
        differed = now;
    }
    Ok(false)
}

/// Whether the first entries that differ between the two units have left the range of normal numbers in one of them.
fn loses_digits<M: Measured, T: Real>(
    problem: &Problem,
    s: f64,
    stop: &Stop,
    units: &Units<'_>,
) -> Result<bool, TestCaseError> {
    let table = problem.table::<T>(1.0);
    for iterations in 0..=stop.max_iter {
        let stop = stop.clone().max_iter(iterations);
        let scaled = table.clone().scaled(T::lit(s));
        let ((here, _), (there, _)) = (
            fit_of::<M, T>(problem, &table, &stop)?,
            fit_of::<M, T>(problem, &scaled, &stop)?,
        );
        let blocks = here.state().parameters().blocks();
        let pairs = blocks.zip(there.state().parameters().blocks());
        let mut apart = pairs
            .flat_map(|((name, one), (_, other))| {
                let factor = (units.block)(name);
                let both = one.iter().zip(other.iter());
                both.map(move |(x, y)| [x.to_f64() * factor, x.to_f64(), y.to_f64()])
            })
            .filter(|[expected, _, y]| expected != y)
            .peekable();
        if apart.peek().is_some() {
            let tiny = T::TINY.to_f64();
            return Ok(
                apart.all(|[expected, x, y]| [expected, x, y].iter().any(|x| x.abs() < tiny))
            );
        }
    }
    Ok(false)
}

/// Whole numbers near 0 from a seed.
struct TestRng(u64);

impl TestRng {
    fn of(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// From -4 to 4.
    fn roundings(&mut self) -> i8 {
        // The high bits of a linear congruential generator.
        self.0 = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        (self.0 >> 57) as i8 % 9 - 4
    }
}

fn units<M: Measured>(problem: &Problem, factor: f64, way: u8) -> Result<(), TestCaseError> {
    in_one_thread(|| match problem.single {
        true => of::<M, f32>(problem, factor, way),
        false => of::<M, f64>(problem, factor, way),
    })
}

proptest! {
    #![proptest_config(few(18))]

    #[test]
    fn plca(problem in problems(Plcas::kind()), factor in -1.0..1.0, way in 0..3u8) {
        units::<Plcas>(&problem, factor, way)?;
    }

    #[test]
    fn plsa(problem in problems(Plsas::kind()), factor in -1.0..1.0, way in 0..3u8) {
        units::<Plsas>(&problem, factor, way)?;
    }

    #[test]
    fn nmf_kl(problem in problems(Nmfs::kind()), factor in -1.0..1.0, way in 0..3u8) {
        units::<Nmfs>(&problem, factor, way)?;
    }

    #[test]
    fn siplca(problem in problems(Siplcas::kind()), factor in -1.0..1.0, way in 0..3u8) {
        units::<Siplcas>(&problem, factor, way)?;
    }

    #[test]
    fn tiplca(problem in problems(Tiplcas::kind()), factor in -1.0..1.0, way in 0..3u8) {
        units::<Tiplcas>(&problem, factor, way)?;
    }

    #[test]
    fn pntf(problem in problems(Pntfs::kind()), factor in -1.0..1.0, way in 0..3u8) {
        units::<Pntfs>(&problem, factor, way)?;
    }

    #[test]
    fn ntf_l2(problem in problems(Ntfs::kind()), factor in -1.0..1.0, way in 0..3u8) {
        units::<Ntfs>(&problem, factor, way)?;
    }

    #[test]
    fn skellam(problem in problems(Snmfs::kind()), factor in -1.0..1.0, way in 0..3u8) {
        units::<Snmfs>(&problem, factor, way)?;
    }

    #[test]
    fn skellam_cp(problem in problems(Cps::kind()), factor in -1.0..1.0, way in 0..3u8) {
        units::<Cps>(&problem, factor, way)?;
    }

    #[test]
    fn siskellam(problem in problems(Shifts::kind()), factor in -1.0..1.0, way in 0..3u8) {
        units::<Shifts>(&problem, factor, way)?;
    }

    #[test]
    fn snmf_ding(problem in problems(Dings::kind()), factor in -1.0..1.0, way in 0..3u8) {
        units::<Dings>(&problem, factor, way)?;
    }

    #[test]
    fn kmeans(problem in problems(KMeanss::kind()), factor in -1.0..1.0, way in 0..3u8) {
        units::<KMeanss>(&problem, factor, way)?;
    }
}
