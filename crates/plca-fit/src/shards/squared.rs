//! Squared extrapolation of parameters of which every shard has a part.
//!
//! What belongs to the samples is extrapolated where it is. Nobody has all of the three points, so that squares are added along the tree,
//! and columns that run across the shards are divided by sums over all of them. A shard keeps two points beside its own.

use nalgebra::DMatrix;
use plca_tensor::Real;

use super::sharded::{divides, sums};
use super::states::{Pending, Statistic, Survey, Task};
use super::{Engine, GlobalModel, Local, PassRequest, Sharded, Shared, Stats};
use crate::solver::squarem::{length, point, size, squares};
use crate::solver::unless_rejected;
use crate::{Axis, BlockSpec, Constraint, FitError, Frozen, Stepped};

/// One iteration of [`Solver::Squarem`](crate::Solver::Squarem), and the shared parameters after it.
///
/// # Errors
///
/// Those of the engine and of `m_step` of [`Sharded`].
pub(super) fn squared<T: Real>(
    model: &dyn Sharded<T>,
    whole: &GlobalModel<T>,
    engine: &dyn Engine<T>,
    shared: Shared<T>,
    measure: bool,
) -> Result<(Shared<T>, Stepped), FitError> {
    let x0 = shared.parameters.flat();
    let mut now = shared.to(Task::First);
    let stats = engine.pass(&now, PassRequest::step(measure))?;
    let stepped = Stepped::of(model.m_step(&mut now, stats)?);
    let x1 = now.parameters.flat();
    now = now.to(Task::Second);
    let stats = engine.pass(&now, PassRequest::step(true))?;
    let before = model.m_step(&mut now, stats)?;
    let x2 = now.parameters.flat();
    now = now.to(Task::Measure);
    let found = engine.pass(&now, PassRequest::step(false))?.squares;
    now = now.to(Task::Iterate);
    let specs = whole.blocks.iter().enumerate();
    let specs = specs.filter(|&(j, _)| model.sample_axis(&whole.blocks, j) == Axis::None);
    let specs: Vec<_> = specs.collect();
    let (mut of_blocks, mut own) = (points(&x0, &x1, &x2), [0.0; 2]);
    for &(j, spec) in &specs {
        let unit = model.rate_unit(&now.survey, j);
        let entries = of_blocks.by_ref().take(spec.shape.0 * spec.shape.1);
        let [r2, u2] = squares(entries, size(spec, unit));
        own = [own[0] + r2, own[1] + u2];
    }
    let both = found.map(|found| [own[0] + found[0], own[1] + found[1]]);
    let (Some(a), Some(before)) = (both.and_then(length), before) else {
        return Ok((now, stepped));
    };
    let mut trial = now.clone().to(Task::Extrapolate(a));
    let stats = engine.pass(&trial, PassRequest::step(false))?;
    let mut values = points(&x0, &x1, &x2);
    trial.parameters.change(|j, block| {
        let values = values.by_ref().take(block.len());
        specs[j]
            .1
            .extrapolate(block, values.map(|x| (point(x, a), x[2])));
    });
    let of_columns = |term| match term {
        Statistic::Sums(sums) => sums,
        _ => Vec::new(),
    };
    trial.sums = stats.terms.into_iter().map(of_columns).collect();
    trial = trial.to(Task::Trial);
    let stats = engine.pass(&trial, PassRequest::step(true))?;
    let reached = match stats.refused {
        true => None,
        false => unless_rejected(model.m_step(&mut trial, stats))?.flatten(),
    };
    match reached {
        // [SPEC 10] accepted only if the objective is not worse
        Some(new)
            if new.is_finite()
                && within_range(model, &trial, &specs)
                && whole.sense.not_worse(new, before) =>
        {
            Ok((trial, stepped))
        }
        _ => {
            now.back = true;
            Ok((now, stepped))
        }
    }
}

/// Whether the blocks that shards share can be taken; they tell of their own.
fn within_range<T: Real>(
    model: &dyn Sharded<T>,
    at: &Shared<T>,
    specs: &[(usize, &BlockSpec<T>)],
) -> bool {
    let mut blocks = specs.iter().zip(at.parameters.matrices());
    blocks.all(|(&(j, spec), block)| spec.within_range(block, Some(model.rate_unit(&at.survey, j))))
}

/// Three points, entry by entry.
fn points<'a>(x0: &'a [f64], x1: &'a [f64], x2: &'a [f64]) -> impl Iterator<Item = [f64; 3]> + 'a {
    let all = x0.iter().zip(x1).zip(x2);
    all.map(|((&x0, &x1), &x2)| [x0, x1, x2])
}

/// The same of a block that belongs to the samples of a shard.
fn of_block<'a, T: Real>(points: [&'a DMatrix<T>; 3]) -> impl Iterator<Item = [f64; 3]> + 'a {
    let [x0, x1, x2] = points;
    let all = x0.iter().zip(x1.iter()).zip(x2.iter());
    all.map(|((x0, x1), x2)| [x0.to_f64(), x1.to_f64(), x2.to_f64()])
}

/// The three points of a shard, block after block.
fn noted<T: Real>(local: &Local<T>) -> Result<Vec<[&DMatrix<T>; 3]>, FitError> {
    let (x0, x1) = local.points.split_at(local.points.len() / 2);
    let all = x0.iter().zip(x1).zip(&local.blocks);
    let all = all.map(|((x0, x1), x2)| [x0, x1, x2]);
    let like = |[x0, x1, x2]: &[&DMatrix<T>; 3]| [x0, x1].iter().all(|x| x.shape() == x2.shape());
    let all: Vec<_> = all.filter(like).collect();
    match local.points.len() == 2 * all.len() && all.len() == local.blocks.len() {
        true => Ok(all),
        false => Err(FitError::Conflict {
            what: "a shard has not the points of an extrapolation".into(),
        }),
    }
}

/// How far the three points of a shard are apart.
pub(super) fn measured<T: Real>(
    model: &dyn Sharded<T>,
    specs: &[BlockSpec<T>],
    local: &Local<T>,
    survey: &Survey,
) -> Result<Stats, FitError> {
    let own =
        (specs.iter().enumerate()).filter(|&(j, _)| model.sample_axis(specs, j) != Axis::None);
    let mut all = [0.0; 2];
    for ((j, spec), points) in own.zip(noted(local)?) {
        let unit = model.rate_unit(survey, j);
        let [r2, u2] = squares(of_block(points), size(spec, unit));
        all = [all[0] + r2, all[1] + u2];
    }
    Ok(Stats {
        squares: Some(all),
        ..Stats::none(specs.len())
    })
}

/// Takes a shard to where its three points lead, and notes the last of them.
pub(super) fn extrapolated<T: Real>(
    model: &dyn Sharded<T>,
    specs: &[BlockSpec<T>],
    local: &mut Local<T>,
    a: f64,
) -> Result<Stats, FitError> {
    let mut stats = Stats::none(specs.len());
    let (mut new, mut across) = (local.blocks.clone(), Vec::new());
    let lies = (0..specs.len()).map(|j| (j, model.sample_axis(specs, j)));
    let own = lies.filter(|&(_, lie)| lie != Axis::None);
    for ((j, lie), (points, block)) in own.zip(noted(local)?.into_iter().zip(&mut new)) {
        let spec = BlockSpec {
            shape: block.shape(),
            ..specs[j].clone()
        };
        let values = of_block(points).map(|x| (point(x, a), x[2]));
        if lie == Axis::Rows && !divides(&spec) {
            spec.extrapolate(block, values);
            stats.terms[j] = sums(block);
        } else if lie == Axis::Rows && spec.frozen != Frozen::Whole {
            let rates = BlockSpec {
                constraint: Constraint::NonNegative,
                ..spec
            };
            let mut counts = block.clone();
            rates.extrapolate(&mut counts, values);
            stats.terms[j] = sums(&counts);
            across.push(counts);
        } else {
            spec.extrapolate(block, values);
        }
    }
    local.points = std::mem::replace(&mut local.blocks, new);
    local.pending = match across.is_empty() {
        true => Pending::Nothing,
        false => Pending::Counts(across),
    };
    Ok(stats)
}
