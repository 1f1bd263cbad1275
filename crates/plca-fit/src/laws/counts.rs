//! Expected counts and exposures beside finite differences of the value.

use nalgebra::DMatrix;
use plca_tensor::Real;

use super::places::{Exactness, frozen, moved, row_column, slope};
use super::{Claims, Law, Violation, refused};
use crate::{
    Algorithm, Axis, BlockSpec, Constraint, Expectation, Exposure, FitError, Frozen, Parameters,
    Renewed, Wanted,
};

/// Expected counts of a block, and what its old entries were exposed to: `None` for a block that counts renew in another way.
struct Side {
    counts: DMatrix<f64>,
    exposed: DMatrix<f64>,
}

/// The sides of all free blocks at these parameters.
fn sides<T: Real>(
    model: &dyn Expectation<T>,
    at: &Parameters<T>,
) -> Result<Vec<Option<Side>>, FitError> {
    let specs = model.blocks();
    let blocks: Vec<bool> = specs.iter().map(|s| s.frozen != Frozen::Whole).collect();
    let wanted = Wanted {
        blocks: &blocks,
        value: false,
        count_unit: 1.0,
    };
    let counts = model.expect(at, &wanted)?.blocks;
    let none = vec![None; specs.len()];
    let renewed = Renewed {
        old: at,
        new: &none,
    };
    let sides = specs
        .iter()
        .zip(counts)
        .enumerate()
        .map(|(j, (spec, counts))| {
            let counts = counts.filter(|c| blocks[j] && c.shape() == spec.shape)?;
            let counts = counts.map(T::to_f64);
            let old = at.at(j).map(T::to_f64);
            let exposed = match spec.constraint {
                Constraint::Simplex => of_distributions(spec, &counts, &old),
                Constraint::NonNegative => match model.exposure(j, renewed)? {
                    Exposure::PerEntry(x) => x.map(T::to_f64),
                    Exposure::PerComponent(x) => {
                        DMatrix::from_fn(old.nrows(), old.ncols(), |row, column| {
                            let z = match spec.axes.components() {
                                Axis::Rows => row,
                                Axis::Columns | Axis::None => column,
                            };
                            x[z].to_f64() * old[(row, column)]
                        })
                    }
                },
                // Shapes of posteriors and the like: what an E-step gives them is no slope.
                Constraint::Positive | Constraint::Free => return None,
            };
            Some(Side { counts, exposed })
        });
    Ok(sides.collect())
}

/// `n θ`, with the sum `n` of the counts of a column; of the free entries alone, in parts of what these share.
fn of_distributions<T: Real>(
    spec: &BlockSpec<T>,
    counts: &DMatrix<f64>,
    old: &DMatrix<f64>,
) -> DMatrix<f64> {
    let (frozen, rows) = (frozen(spec), old.nrows());
    DMatrix::from_fn(rows, old.ncols(), |row, column| {
        let free = (0..rows).filter(|i| !frozen[column * rows + i]);
        let (n, share) = free.fold((0.0, 0.0), |(n, share), i| {
            (n + counts[(i, column)], share + old[(i, column)])
        });
        if share > 0.0 {
            n * old[(row, column)] / share
        } else {
            0.0
        }
    })
}

/// An entry whose slope is not what counts and exposure say.
#[derive(Clone, Copy, Debug)]
struct Wrong {
    place: (usize, usize),
    slope: f64,
    expected: f64,
    /// How far it is off, in units of what is forgiven.
    off: f64,
}

/// Checks the E-step behind an algorithm against [`Law::Expectation`], [`Law::Value`] and [`Law::Exposure`] at a state: the slope of the
/// log-likelihood along the way of every free entry is what its counts `c` and its exposure `x` say,
///
/// ```math
/// \theta \frac{\partial L}{\partial \theta} = c - x \theta, \qquad
/// \text{of a distribution} \quad c - n \theta, \quad n = \sum c
/// ```
///
/// (of a divergence with the other sign). Slopes are central differences of [`Algorithm::likelihood`], so the law knows no formula of the model.
/// Where they disagree it says which of the three is wrong: counts and exposures of a right E-step are slopes of one function, so their own
/// differences are symmetric. Where these are not, counts are wrong. If they are symmetric, the exposure is wrong if only the subtracted part is off, the counts are wrong if at least one block agrees; otherwise the value is wrong, or all counts are of other data. The likelihood is not to depend on the
/// number of iterations.
///
/// An algorithm without [`Algorithm::expectation`] is only checked for a likelihood that does not change with the iteration counter, and that only without
/// priors. Counts of a column of a distribution may have a unit of their own where no
/// prior gives them one: only their shares matter.
///
/// # Errors
///
/// The [`Violation`], with block and entry; [`Law::Accepts`] where it has none.
///
/// # Examples
///
/// ```
/// use nalgebra::{DMatrix, dmatrix};
/// use plca_fit::laws::{Claims, Law, Rounding, check_counts};
/// use plca_fit::{blocks::{Axes, BlockSpec, Constraint, Exposure}, em::{Counts, Em, Expectation, Renewed, Wanted}, FitError, Parameters};
///
/// /// Two counts of a rate, `Σ v ln θ - 2 θ`: right, or with a mistake.
/// #[derive(Debug)]
/// struct Rate { counted: f64, exposed: f64, valued: f64, blocks: [BlockSpec<f64>; 1] }
///
/// impl Expectation<f64> for Rate {
///     fn blocks(&self) -> &[BlockSpec<f64>] { &self.blocks }
///     fn expect(&self, at: &Parameters<f64>, wanted: &Wanted<'_>) -> Result<Counts<f64>, FitError> {
///         let rate = at.at(0)[0];
///         let counts = DMatrix::from_element(1, 1, 7.0 + self.counted * rate.sqrt());
///         Ok(Counts { blocks: vec![Some(counts)], value: wanted.value.then_some(self.valued * (7.0 * rate.ln() - 2.0 * rate)) })
///     }
///     fn exposure(&self, _: usize, _: Renewed<'_, f64>) -> Option<Exposure<f64>> { Some(Exposure::PerComponent(vec![self.exposed])) }
///     fn unsupported(&self, _: &Parameters<f64>) -> Result<Option<(Vec<usize>, f64)>, FitError> { Ok(None) }
///     fn unit(&self) -> f64 { 7.0 }
/// }
///
/// let blocks = || [BlockSpec::values("rate", (1, 1), Axes::factor(0), Constraint::NonNegative)];
/// let at = Parameters::new(&blocks(), vec![dmatrix![2.0]])?;
/// let claims = Claims::new(Rounding::derived(f64::EPSILON, 4, 14.0));
/// let law = |counted, exposed, valued| {
///     let model = Em(Rate { counted, exposed, valued, blocks: blocks() });
///     check_counts(&model, &at, &claims).err().map(|violation| violation.law)
/// };
/// assert_eq!(law(0.0, 2.0, 1.0), None);
/// assert_eq!(law(0.0, 1.0, 1.0), Some(Law::Exposure));
/// # Ok::<(), FitError>(())
/// ```
pub fn check_counts<T: Real>(
    algorithm: &dyn Algorithm<T>,
    at: &Parameters<T>,
    claims: &Claims,
) -> Result<(), Violation> {
    let iteration = at.iteration();
    let value = |at: &Parameters<T>| algorithm.likelihood(at);
    let refused = |e: FitError| refused(iteration, &e);
    let here = value(at).map_err(refused)?;
    let exact = Exactness::of(algorithm, claims, here);
    let later = at.clone().at_iteration(iteration + 7);
    let there = value(&later).map_err(refused)?;
    if here.is_nan() && algorithm.expectation().is_some() {
        let details = format!("the likelihood is {here} after {iteration} iterations");
        return Err(Violation::new(Law::Value, details));
    }
    let near = there == here || (there - here).abs() <= exact.allowed || here.is_nan();
    // Without an E-step the likelihood may be the objective with its priors, and these may change.
    let steady =
        algorithm.expectation().is_some() || algorithm.blocks().iter().all(|s| s.prior.is_none());
    if steady && !near {
        let details = format!(
            "the likelihood is {here} after {iteration} iterations and {there} of the same blocks after {}",
            later.iteration()
        );
        return Err(Violation::new(Law::Value, details));
    }
    let Some(model) = algorithm.expectation() else {
        return Ok(());
    };
    if !claims.counts || at.power() != 1.0 {
        return Ok(());
    }
    asked_for(model, at)?;
    let all = sides(model, at).map_err(refused)?;
    // Counts that are kept of one state must not be those of another.
    for (j, spec) in model.blocks().iter().enumerate() {
        let kept = frozen(spec);
        let free = (0..kept.len()).filter(|&e| !kept[e]);
        let size = |&e: &usize| at.at(j)[e].to_f64();
        if let Some(e) = free.max_by(|a, b| size(a).total_cmp(&size(b))) {
            let _ = sides(model, &moved(model.blocks(), at, (j, e), 1.0));
        }
    }
    let again = sides(model, at).map_err(refused)?;
    for (j, pair) in all.iter().zip(&again).enumerate() {
        let (Some(once), Some(twice)) = pair else {
            continue;
        };
        let bits = |x: &f64| x.to_bits();
        let pairs = once.counts.iter().zip(&twice.counts);
        if let Some(e) = pairs.clone().position(|(a, b)| bits(a) != bits(b)) {
            let details = format!(
                "two E-steps of one state count {:e} and {:e}",
                once.counts[e], twice.counts[e]
            );
            let name = model.blocks()[j].name.to_string();
            let entry = Some(row_column(at.at(j), e));
            return Err(Violation::new(Law::Expectation, details).at(name, entry));
        }
    }
    let forgiven = exact.of_slopes();
    let mut wrong: Vec<Vec<Wrong>> = Vec::new();
    for (j, side) in all.iter().enumerate() {
        let spec = &model.blocks()[j];
        let mut found: Vec<Wrong> = Vec::new();
        if let Some(side) = side {
            let kept = frozen(spec);
            let rows = spec.shape.0.max(1);
            let entries = (0..kept.len()).filter(|&e| !kept[e]);
            let slopes: Vec<(usize, f64, f64)> = entries
                .filter_map(|e| {
                    let slope = slope(algorithm, value, at, (j, e), exact.h)?;
                    Some((e, slope, side.counts[e] - side.exposed[e]))
                })
                .collect();
            for column in slopes.chunk_by(|a, b| a.0 / rows == b.0 / rows) {
                let unit = unit_of(spec, column, forgiven);
                let off = column.iter().map(|&(e, slope, expected)| Wrong {
                    place: (j, e),
                    slope,
                    expected,
                    off: (slope - unit * expected).abs()
                        / (forgiven + T::EPSILON.to_f64() * 16.0 * side.counts[e].abs() * unit),
                });
                found.extend(off.filter(|w| w.off > 1.0 || w.off.is_nan()));
            }
        }
        wrong.push(found);
    }
    let Some(&worst) = wrong
        .iter()
        .flatten()
        .max_by(|a, b| a.off.total_cmp(&b.off))
    else {
        return Ok(());
    };
    let law = told_apart(algorithm, model, at, (&all, &wrong, worst), exact);
    let (j, e) = worst.place;
    let side = all[j].as_ref().expect("it has counts");
    let details = format!(
        "the slope of the value is {:e}, but counts of {:e} less {:e}, the exposure times the entry, say {:e}; {forgiven:e} is the error of differences",
        worst.slope, side.counts[e], side.exposed[e], worst.expected
    );
    let name = model.blocks()[j].name.to_string();
    Err(Violation::new(law, details).at(name, Some(row_column(at.at(j), e))))
}

/// Checks that every block that is asked for is counted, in its shape, and that what else is asked for changes no count.
fn asked_for<T: Real>(model: &dyn Expectation<T>, at: &Parameters<T>) -> Result<(), Violation> {
    let specs = model.blocks();
    // Posteriors are not counts.
    let counts = |s: &BlockSpec<T>| {
        s.frozen != Frozen::Whole
            && matches!(s.constraint, Constraint::Simplex | Constraint::NonNegative)
    };
    let free: Vec<bool> = specs.iter().map(counts).collect();
    let counted = |blocks: &[bool]| {
        let wanted = Wanted {
            blocks,
            value: false,
            count_unit: 1.0,
        };
        let counts = model.expect(at, &wanted);
        counts.map_err(|e| refused(at.iteration(), &e))
    };
    let broken = |j: usize, details: String, entry| {
        let violation = Violation::new(Law::Expectation, details);
        Err(violation.at(specs[j].name.to_string(), entry))
    };
    let all = counted(&free)?.blocks;
    for j in (0..specs.len()).filter(|&j| free[j]) {
        let mut alone = vec![false; specs.len()];
        alone[j] = true;
        let own = counted(&alone)?.blocks;
        let [Some(all), Some(own)] = [&all, &own].map(|blocks| blocks.get(j)?.as_ref()) else {
            return broken(j, "it is asked for and not counted".into(), None);
        };
        if let Some(odd) = [all, own].into_iter().find(|c| c.shape() != specs[j].shape) {
            let details = format!("{:?} counts of {:?} entries", odd.shape(), specs[j].shape);
            return broken(j, details, None);
        }
        let rounding = 1024.0 * T::EPSILON.to_f64() * all.amax().to_f64();
        let apart = |(a, b): (&T, &T)| (a.to_f64() - b.to_f64()).abs() > rounding;
        if let Some(e) = all.iter().zip(own.iter()).position(apart) {
            let details = format!("a count of {} with all blocks is {} alone", all[e], own[e]);
            return broken(j, details, Some(row_column(at.at(j), e)));
        }
    }
    Ok(())
}

/// The unit of the counts of a column: 1, unless it is that of a distribution whose M-step sees shares alone.
fn unit_of<T: Real>(spec: &BlockSpec<T>, column: &[(usize, f64, f64)], forgiven: f64) -> f64 {
    let right = |unit: f64| {
        let mut all = column.iter();
        all.all(|(_, slope, expected)| (slope - unit * expected).abs() <= forgiven)
    };
    if spec.constraint != Constraint::Simplex || spec.prior.is_some() || right(1.0) {
        return 1.0;
    }
    let product: f64 = column.iter().map(|(_, s, e)| s * e).sum();
    let square: f64 = column.iter().map(|(_, _, e)| e * e).sum();
    match product / square {
        unit if unit > 0.0 && unit.is_finite() && right(unit) => unit,
        _ => 1.0,
    }
}

/// Which law is broken where slopes and counts disagree.
fn told_apart<T: Real>(
    algorithm: &dyn Algorithm<T>,
    model: &dyn Expectation<T>,
    at: &Parameters<T>,
    (sides, wrong, worst): (&[Option<Side>], &[Vec<Wrong>], Wrong),
    exact: Exactness,
) -> Law {
    let specs = model.blocks();
    // 1. Slopes of one function: the change of one along the way of the other is that of the other along the way of the one.
    let slopes = |at: &Parameters<T>, (j, e): (usize, usize)| {
        let sides = self::sides(model, at).ok()?;
        let side = sides[j].as_ref()?;
        Some(side.counts[e] - side.exposed[e])
    };
    let change = |of: (usize, usize), along: (usize, usize)| {
        let [behind, ahead] = [-exact.h, exact.h].map(|t| slopes(&moved(specs, at, along, t), of));
        Some((ahead? - behind?) / (2.0 * exact.h))
    };
    let largest = sides.iter().flatten().flat_map(|side| side.counts.iter());
    let largest = largest.fold(0.0, |most: f64, c| most.max(c.abs()));
    let forgiven = 8.0 * exact.of_slopes() + 64.0 * T::EPSILON.to_f64() * largest / exact.h;
    let bad: Vec<(usize, usize)> = wrong
        .iter()
        .filter_map(|of| of.iter().max_by(|a, b| a.off.total_cmp(&b.off)))
        .map(|w| w.place)
        .collect();
    for &one in &bad {
        for (j, side) in sides.iter().enumerate().filter(|(_, side)| side.is_some()) {
            let kept = frozen(&specs[j]);
            let all = side.as_ref().map_or(0, |side| side.counts.len());
            for other in (0..all).filter(|&e| !kept[e] && at.at(j)[e] > T::zero()) {
                if (j, other) == one {
                    continue;
                }
                let pair = (change(one, (j, other)), change((j, other), one));
                if let (Some(a), Some(b)) = pair
                    && (a - b).abs() > forgiven
                {
                    return Law::Expectation;
                }
            }
        }
    }
    // 2. Only what is subtracted from the counts is off, by one number for all entries of a component.
    let rates = |j: usize| specs[j].constraint == Constraint::NonNegative;
    let counted = |j: &usize| sides[*j].is_some();
    let is_wrong = |j: usize| !wrong[j].is_empty();
    let all = |of: &dyn Fn(usize) -> bool| {
        (0..specs.len())
            .filter(counted)
            .filter(|&j| of(j))
            .all(is_wrong)
    };
    let only_rates = (0..specs.len()).all(|j| !is_wrong(j) || rates(j));
    let (j, e) = worst.place;
    let implied = |at: &Parameters<T>| {
        let sides = self::sides(model, at).ok()?;
        let side = sides[j].as_ref()?;
        let value = |at: &Parameters<T>| algorithm.likelihood(at);
        let slope = slope(algorithm, value, at, (j, e), exact.h)?;
        Some((side.counts[e] - slope) / at.at(j)[e].to_f64())
    };
    let error = 8.0 * exact.of_slopes() / at.at(j)[e].to_f64();
    if only_rates
        && let (Some(here), Some(there)) = (implied(at), implied(&moved(specs, at, (j, e), 1.0)))
        && (here - there).abs() <= error
    {
        // An implied exposure of 0 or less means that the value lacks the model's mass, or has it with the wrong sign.
        return match here <= error {
            true => Law::Value,
            false => Law::Exposure,
        };
    }
    // 3. A wrong value is wrong for every block.
    match all(&|_| true) {
        true => Law::Value,
        false => Law::Expectation,
    }
}
