//! What one plain step makes of every block.

use nalgebra::DMatrix;
use plca_tensor::Real;

use super::places::{
    Exactness, frozen, gain, largest_change, objective_at, parts, raise, row_column, some, steepest,
};
use super::{Claims, Law, Violation, Walk, refused};
use crate::{
    Algorithm, BlockSpec, Constraint, Expectation, FitError, Frozen, Memory, Parameters, Solver,
    Wanted,
};

/// How a plain step renews the blocks: what its new values promise by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renewal {
    /// Every block, and every column of one or rate by itself if an [`Expectation`](crate::Expectation) is behind it, from the old values of all
    /// others: EM whose blocks separate (default). The new value of one alone, the others as before, is not worse.
    #[default]
    Apart,
    /// One block after the other, the first of them first: the new values up to any block, the rest as before, are not worse than those up to
    /// the block before it.
    FirstToLast,
    /// The same, the last of them first.
    LastToFirst,
    /// All together: nothing is said of one block.
    Together,
    /// By steps that raise another objective than the one at hand, as under tempering: nothing is said of the objective.
    Otherwise,
}

/// Checks a step against [`Law::Valid`] and [`Law::Frozen`]: after it every block satisfies its constraint, columns of distributions sum to 1 up
/// to rounding, and what is frozen has kept its bits.
///
/// # Errors
///
/// The [`Violation`], with block and entry.
///
/// # Examples
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_fit::laws::{Law, check_valid};
/// use plca_fit::{blocks::{Axes, BlockSpec}, Parameters};
/// let specs = [BlockSpec::<f64>::simplex("theta", (2, 1), Axes::factor(0))];
/// let before = Parameters::new(&specs, vec![dmatrix![0.5; 0.5]])?;
/// let mut after = before.clone();
/// after.change(|_, theta| theta[0] += 0.25);
/// let violation = check_valid(&specs, &before, &after).unwrap_err();
/// assert_eq!((violation.law, violation.block.as_deref()), (Law::Valid, Some("theta")));
/// assert_eq!(violation.to_string(), "law `Valid` is broken by the step, in `theta`: column 0 sums to 1.25, expected 1");
/// # Ok::<(), plca_fit::FitError>(())
/// ```
pub fn check_valid<T: Real>(
    specs: &[BlockSpec<T>],
    before: &Parameters<T>,
    after: &Parameters<T>,
) -> Result<(), Violation> {
    for (j, spec) in specs.iter().enumerate() {
        let name = || spec.name.to_string();
        let (Some(old), Some(new)) = (before.matrices().get(j), after.matrices().get(j)) else {
            return Err(Violation::new(Law::Valid, "the block is missing").at(name(), None));
        };
        match spec.check_values(new) {
            Ok(()) => {}
            Err(
                FitError::Value {
                    row, column, value, ..
                }
                | FitError::Range {
                    row, column, value, ..
                },
            ) => {
                let expected = match spec.constraint {
                    Constraint::Simplex | Constraint::NonNegative => "a finite number >= 0",
                    Constraint::Positive => "a finite number > 0",
                    Constraint::Free => "a finite number",
                };
                let details = format!("{value:e}, expected {expected}");
                return Err(Violation::new(Law::Valid, details).at(name(), Some((row, column))));
            }
            Err(other) => return Err(Violation::new(Law::Valid, other).at(name(), None)),
        }
        let kept = frozen(spec);
        let changed = (0..new.len())
            .find(|&e| kept[e] && new[e].to_f64().to_bits() != old[e].to_f64().to_bits());
        if let Some(e) = changed {
            let details = format!("{} became {}, but is frozen", old[e], new[e]);
            return Err(Violation::new(Law::Frozen, details).at(name(), Some(row_column(new, e))));
        }
        if spec.constraint != Constraint::Simplex {
            continue;
        }
        for (z, (old, new)) in old.column_iter().zip(new.column_iter()).enumerate() {
            let sum: f64 = new.iter().map(|x| x.to_f64()).sum();
            // What was kept is as exact as it was given.
            let rows = z * new.len()..(z + 1) * new.len();
            let allowed = match old == new || kept[rows].contains(&true) {
                true => T::EPSILON.to_f64().sqrt(),
                false => 4.0 * (1 + new.len()) as f64 * T::EPSILON.to_f64(),
            };
            let right = (sum - 1.0).abs() <= allowed;
            if !right {
                let details = format!("column {z} sums to {sum}, expected 1");
                return Err(Violation::new(Law::Valid, details).at(name(), None));
            }
        }
    }
    Ok(())
}

/// Whether a step from here raises the objective at hand.
fn raises<T: Real>(algorithm: &dyn Algorithm<T>, at: &Parameters<T>, claims: &Claims) -> bool {
    let other = match algorithm.extrapolates(at) {
        Err(FitError::Annealing { .. }) => true,
        Err(FitError::Conflict { .. }) => !claims.monotone,
        _ => false,
    };
    !(other || at.power() != 1.0 || claims.renewal == Renewal::Otherwise)
}

/// The laws of a plain step from one place to another, of which the objectives are known.
pub(super) fn step_laws<T: Real>(
    algorithm: &dyn Algorithm<T>,
    [old, new]: [&Parameters<T>; 2],
    values: [f64; 2],
    claims: &Claims,
) -> Result<(), Violation> {
    check_valid(algorithm.blocks(), old, new)?;
    if !raises(algorithm, old, claims) {
        return Ok(());
    }
    let specs = algorithm.blocks();
    let free: Vec<usize> = (0..specs.len())
        .filter(|&j| specs[j].frozen != Frozen::Whole && !specs[j].follows)
        .collect();
    let follows = |j: usize| specs[j].follows;
    match claims.renewal {
        Renewal::Apart => {
            for &j in &free {
                let parts = match algorithm.expectation() {
                    Some(_) => some(&parts(&specs[j]), old.iteration()),
                    None => vec![(0..old.at(j).len()).collect()],
                };
                for part in parts {
                    let mut one = old.clone();
                    one.change(|i, x| {
                        if i == j {
                            part.iter().for_each(|&e| x[e] = new.at(j)[e]);
                        } else if follows(i) {
                            x.copy_from(new.at(i));
                        }
                    });
                    renewed(algorithm, [old, &one], values[0], (j, &part), claims)?;
                }
            }
            Ok(())
        }
        Renewal::FirstToLast | Renewal::LastToFirst => {
            let mut order = free;
            if claims.renewal == Renewal::LastToFirst {
                order.reverse();
            }
            let mut so_far = old.clone();
            so_far.change(|i, x| {
                if follows(i) {
                    x.copy_from(new.at(i));
                }
            });
            let mut value = values[0];
            for j in order {
                let before = so_far.clone();
                so_far.change(|i, x| {
                    if i == j {
                        x.copy_from(new.at(j));
                    }
                });
                let all: Vec<usize> = (0..old.at(j).len()).collect();
                value = renewed(algorithm, [&before, &so_far], value, (j, &all), claims)?;
            }
            Ok(())
        }
        Renewal::Together | Renewal::Otherwise => stands(algorithm, [old, new], values, claims),
    }
}

/// A renewed part of a block is not worse, and has no slope if it is not better; the objective with it.
fn renewed<T: Real>(
    algorithm: &dyn Algorithm<T>,
    [old, one]: [&Parameters<T>; 2],
    before: f64,
    (j, part): (usize, &[usize]),
    claims: &Claims,
) -> Result<f64, Violation> {
    let spec = &algorithm.blocks()[j];
    let kept = frozen(spec);
    let free = || part.iter().copied().filter(|&e| !kept[e]);
    if free().next().is_none() {
        return Ok(before);
    }
    let exact = Exactness::of(algorithm, claims, before);
    let after = match algorithm.objective(one) {
        Ok(after) if !after.is_nan() => after,
        other => {
            let details = format!("alone it leads to the objective {other:?}, from {before}");
            return Err(Violation::new(Law::Block, details).at(spec.name.to_string(), None));
        }
    };
    let gains = gain(algorithm.sense(), [before, after]);
    if gains < -exact.allowed {
        let largest = largest_change(old.at(j), one.at(j), free());
        let entry = largest.map(|e| row_column(old.at(j), e));
        let [x, y] = largest.map_or([0.0; 2], |e| [old.at(j)[e], one.at(j)[e]].map(T::to_f64));
        let details = format!(
            "renewed alone in iteration {}, from {x:e} to {y:e} at this entry, it makes the objective {after} of {before}, worse by {:e} where rounding explains {:e}",
            old.iteration() + 1,
            -gains,
            exact.allowed
        );
        return Err(Violation::new(Law::Block, details).at(spec.name.to_string(), entry));
    }
    if gains > exact.allowed {
        return Ok(after);
    }
    let entries: Vec<usize> = free().collect();
    let entries = some(&entries, old.iteration()).into_iter();
    flat(algorithm, old, entries.map(|e| (j, e)), gains, exact)?;
    Ok(after)
}

/// A step without gain leads nowhere only from a place without slopes.
pub(super) fn stands<T: Real>(
    algorithm: &dyn Algorithm<T>,
    [old, _]: [&Parameters<T>; 2],
    values: [f64; 2],
    claims: &Claims,
) -> Result<(), Violation> {
    if !raises(algorithm, old, claims) {
        return Ok(());
    }
    let exact = Exactness::of(algorithm, claims, values[0]);
    let gains = gain(algorithm.sense(), values);
    if gains > exact.allowed {
        return Ok(());
    }
    let free = algorithm.blocks().iter().enumerate();
    let free = free.filter(|(_, spec)| spec.frozen != Frozen::Whole && !spec.follows);
    let entries: Vec<(usize, usize)> = free
        .flat_map(|(j, spec)| {
            let kept = frozen(spec);
            let entries: Vec<usize> = (0..kept.len()).filter(|&e| !kept[e]).collect();
            some(&entries, old.iteration())
                .into_iter()
                .map(move |e| (j, e))
        })
        .collect();
    flat(algorithm, old, entries.into_iter(), gains, exact)
}

/// None of these entries has a slope. A column without counts, of which the data say nothing, keeps its values whatever its prior says.
fn flat<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &Parameters<T>,
    entries: impl Iterator<Item = (usize, usize)>,
    gains: f64,
    exact: Exactness,
) -> Result<(), Violation> {
    let limit = exact.without_gain();
    let steep = |entries: &[(usize, usize)]| {
        let found = steepest(algorithm, at, entries.iter().copied(), exact);
        found.filter(|(_, slope)| slope.abs() > limit)
    };
    let entries: Vec<_> = entries.collect();
    let mut found = steep(&entries);
    if found.is_some()
        && let Some(counts) = algorithm.expectation().and_then(|model| counted(model, at))
    {
        let known = |&(j, e): &(usize, usize)| {
            let Some(counts) = &counts[j] else {
                return true;
            };
            let column = e / counts.nrows();
            counts.column(column).iter().any(|c| *c > T::zero())
        };
        found = steep(&entries.into_iter().filter(known).collect::<Vec<_>>());
    }
    let Some(((j, e), slope)) = found else {
        return Ok(());
    };
    let details = format!(
        "its step gains {gains:e} in iteration {}, but at this entry, {:e}, the objective has the slope {slope:e} where {limit:e} may be left",
        at.iteration() + 1,
        at.at(j)[e].to_f64()
    );
    let name = algorithm.blocks()[j].name.to_string();
    Err(Violation::new(Law::Stuck, details).at(name, Some(row_column(at.at(j), e))))
}

/// The counts of the free blocks.
fn counted<T: Real>(
    model: &dyn Expectation<T>,
    at: &Parameters<T>,
) -> Option<Vec<Option<DMatrix<T>>>> {
    let blocks: Vec<bool> = (model.blocks().iter())
        .map(|spec| spec.frozen != Frozen::Whole)
        .collect();
    let wanted = Wanted {
        blocks: &blocks,
        value: false,
        count_unit: 1.0,
    };
    Some(model.expect(at, &wanted).ok()?.blocks)
}

/// Checks plain steps of an algorithm against [`Law::Valid`], [`Law::Frozen`], [`Law::Block`] and [`Law::Stuck`]: each of [`Claims::iterations`]
/// steps from `start`, steps from a border of every block, and the step that gains no more than rounding, if [`Claims::settles`] more lead to one.
///
/// # Errors
///
/// The first [`Violation`] met, with block and entry.
///
/// # Examples
///
/// ```
/// use nalgebra::{DMatrix, dmatrix};
/// use plca_fit::laws::{Claims, Law, Rounding, check_steps};
/// use plca_fit::{blocks::{Axes, BlockSpec}, em::Stepped, Algorithm, FitError, Parameters};
///
/// /// `Σ c ln θ`, whose maximum one step finds, or forgets to look for.
/// #[derive(Debug)]
/// struct Shares { looks: bool, counts: DMatrix<f64>, blocks: [BlockSpec<f64>; 1] }
///
/// impl Algorithm<f64> for Shares {
///     fn blocks(&self) -> &[BlockSpec<f64>] { &self.blocks }
///     fn step(&self, at: &mut Parameters<f64>, _: bool) -> Result<Stepped, FitError> {
///         at.change(|_, theta| if self.looks { *theta = &self.counts / self.counts.sum() });
///         at.count();
///         Ok(Stepped::default())
///     }
///     fn objective(&self, at: &Parameters<f64>) -> Result<f64, FitError> { Ok(self.counts.dot(&at.at(0).map(f64::ln))) }
///     fn unit(&self) -> f64 { 5.0 }
///     fn extrapolates(&self, _: &Parameters<f64>) -> Result<(), FitError> { Ok(()) }
/// }
///
/// let shares = |looks| Shares { looks, counts: dmatrix![4.0; 1.0], blocks: [BlockSpec::simplex("theta", (2, 1), Axes::factor(0))] };
/// let start = Parameters::new(&shares(true).blocks, vec![dmatrix![0.5; 0.5]])?;
/// let claims = Claims::new(Rounding::derived(f64::EPSILON, 4, 5.0));
/// assert!(check_steps(&shares(true), &start, &claims).is_ok());
/// let violation = check_steps(&shares(false), &start, &claims).unwrap_err();
/// assert_eq!((violation.law, violation.block.as_deref()), (Law::Stuck, Some("theta")));
/// # Ok::<(), FitError>(())
/// ```
pub fn check_steps<T: Real>(
    algorithm: &dyn Algorithm<T>,
    start: &Parameters<T>,
    claims: &Claims,
) -> Result<(), Violation> {
    let mut walk = Walk::new(algorithm, Solver::Em, (start, Memory::default(), 0))?;
    for i in 0..claims.iterations {
        if algorithm.settled(&walk.at) && i > 0 {
            return Ok(());
        }
        let old = walk.at.clone();
        walk.step(false)?;
        // Under one prior, where it changes on its way.
        let new = walk.at.clone().at_iteration(old.iteration());
        let values = [
            objective_at(algorithm, &old)?,
            objective_at(algorithm, &new)?,
        ];
        step_laws(algorithm, [&old, &walk.at], values, claims)?;
    }
    settles(walk, claims)?;
    borders(algorithm, start, claims)
}

/// Goes on until a step gains no more than rounding; there every block is to be without slope.
pub(super) fn settles<T: Real>(mut walk: Walk<'_, T>, claims: &Claims) -> Result<(), Violation> {
    let algorithm = walk.algorithm;
    let mut value = walk.objective()?;
    for _ in 0..claims.settles {
        if algorithm.settled(&walk.at) || !raises(algorithm, &walk.at, claims) {
            return Ok(());
        }
        let old = walk.at.clone();
        walk.step(false)?;
        let new = walk.at.clone().at_iteration(old.iteration());
        let values = [value, objective_at(algorithm, &new)?];
        value = walk.objective()?;
        let exact = Exactness::of(algorithm, claims, values[0]);
        if gain(algorithm.sense(), values) <= exact.allowed {
            check_valid(algorithm.blocks(), &old, &walk.at)?;
            return stands(algorithm, [&old, &walk.at], values, claims);
        }
    }
    Ok(())
}

/// From near a border of the domain, an entry of a block at 0 or close to it, a step that succeeds obeys the laws of steps.
pub(super) fn borders<T: Real>(
    algorithm: &dyn Algorithm<T>,
    start: &Parameters<T>,
    claims: &Claims,
) -> Result<(), Violation> {
    let specs = algorithm.blocks();
    for (j, spec) in specs.iter().enumerate() {
        let inside = matches!(
            spec.constraint,
            Constraint::Simplex | Constraint::NonNegative
        );
        if !inside || spec.frozen != Frozen::No || spec.follows || start.at(j).is_empty() {
            continue;
        }
        let last = start.at(j).len() - 1;
        for (entry, by) in [(0, -1.0), (0, -0.99), (last, -1.0), (last, -0.99)] {
            let mut at = start.clone();
            at.change(|i, block| {
                if i == j {
                    raise(spec, &frozen(spec), block, entry, by);
                }
            });
            if check_valid(specs, &at, &at).is_err() {
                continue;
            }
            // Without this entry the data may be impossible: what is said of that is another law.
            let Ok(before) = algorithm.objective(&at) else {
                continue;
            };
            if !before.is_finite() {
                continue;
            }
            let mut after = at.clone();
            match algorithm.step(&mut after, true) {
                Err(error) if error.rejects_point() => continue,
                Err(error) => return Err(refused(at.iteration(), &error)),
                Ok(_) => {}
            }
            let now = after.clone().at_iteration(at.iteration());
            let now = objective_at(algorithm, &now)?;
            step_laws(algorithm, [&at, &after], [before, now], claims)?;
        }
    }
    Ok(())
}
