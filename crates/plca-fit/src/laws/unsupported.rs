//! Data that a state cannot explain.

use plca_tensor::{Data, DataError, Real, Summary};

use super::places::{frozen, raise};
use super::{Law, Violation, check_valid, refused};
use crate::{Algorithm, BlockSpec, Constraint, FitError, Frozen, Model, Parameters, State};

/// The cells of other data up to one, in row-major order; the same are observed.
#[derive(Debug)]
struct Upto<'a, T: Real> {
    data: &'a dyn Data<T>,
    last: &'a [usize],
    with_last: bool,
    summary: Summary,
}

impl<'a, T: Real> Upto<'a, T> {
    fn new(data: &'a dyn Data<T>, last: &'a [usize], with_last: bool) -> Result<Self, DataError> {
        let summary = data.summary().clone();
        let mut upto = Self {
            data,
            last,
            with_last,
            summary,
        };
        let of_these = Summary::of(upto.summary.mask, |each| upto.visit(each))?;
        upto.summary = of_these;
        Ok(upto)
    }
}

impl<T: Real> Data<T> for Upto<'_, T> {
    fn shape(&self) -> &[usize] {
        self.data.shape()
    }

    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn visit(&self, each: &mut dyn FnMut(&[usize], f64)) -> Result<(), DataError> {
        self.data.visit(&mut |index, value| {
            if index < self.last || self.with_last && index == self.last {
                each(index, value);
            }
        })
    }

    fn visit_mask(&self, each: &mut dyn FnMut(&[usize])) -> Result<(), DataError> {
        self.data.visit_mask(each)
    }
}

/// Whether a datum is impossible under these parameters, by the objective; `None` if it does not say.
fn impossible<T: Real>(algorithm: &dyn Algorithm<T>, at: &Parameters<T>) -> Option<bool> {
    match algorithm.likelihood(at) {
        Ok(value) => Some(!value.is_finite()),
        Err(FitError::Support { .. }) => Some(true),
        Err(_) => None,
    }
}

/// All of a few lines; of many the first, one in the middle and the last.
fn some(lines: usize) -> Vec<usize> {
    match lines {
        0..=16 => (0..lines).collect(),
        _ => vec![0, lines / 2, lines - 1],
    }
}

/// The start with lines of its blocks at 0: rows of factors, columns of activations, alone and beside a whole block of rates at 0.
fn probes<T: Real>(specs: &[BlockSpec<T>], start: &Parameters<T>) -> Vec<Parameters<T>> {
    let rates = (0..specs.len()).filter(|&j| specs[j].constraint == Constraint::NonNegative);
    let emptied = rates.map(|j| {
        let mut at = start.clone();
        at.change(|i, block| {
            if i == j {
                block.fill(T::zero());
            }
        });
        at
    });
    let bases: Vec<_> = std::iter::once(start.clone()).chain(emptied).collect();
    let mut probes = Vec::new();
    for base in &bases {
        for (j, spec) in specs.iter().enumerate() {
            let (rows, columns) = spec.shape;
            let signed = matches!(spec.constraint, Constraint::Free | Constraint::Positive);
            if signed || spec.frozen == Frozen::Whole || rows * columns == 0 {
                continue;
            }
            let row = |i: usize| (0..columns).map(|z| z * rows + i).collect::<Vec<_>>();
            let column = |z: usize| (z * rows..(z + 1) * rows).collect::<Vec<_>>();
            let mut lines: Vec<_> = some(rows).into_iter().map(row).collect();
            if spec.constraint == Constraint::NonNegative {
                lines.extend(some(columns).into_iter().map(column));
            }
            let kept = frozen(spec);
            for line in lines {
                let mut at = base.clone();
                at.change(|i, block| {
                    if i == j {
                        let free = line.iter().filter(|&&e| !kept[e]);
                        free.for_each(|&e| raise(spec, &kept, block, e, -1.0));
                    }
                });
                if check_valid(specs, &at, &at).is_ok() {
                    probes.push(at);
                }
            }
        }
        probes.push(base.clone());
    }
    probes
}

/// Checks a model on data against [`Law::Unsupported`]: where a datum is impossible, so that the likelihood is not finite,
/// [`Algorithm::check_start`] says so, which is [`Expectation::unsupported`](crate::Expectation::unsupported), and names the first such cell in
/// row-major order with its value; elsewhere it says nothing. States without support are made of the start: lines of its blocks are set to 0. The
/// cell that is named is right if the model explains the data before it, and not those with it.
///
/// # Errors
///
/// The [`Violation`].
pub fn check_unsupported<T: Real, M: Model<T>>(
    model: &M,
    data: &dyn Data<T>,
    start: &M::State,
) -> Result<(), Violation> {
    let algorithm = model.bind(data).map_err(|e| refused(0, &e))?;
    let broken = |details: String| Err(Violation::new(Law::Unsupported, details));
    let mut cells: Vec<(Vec<usize>, f64)> = Vec::new();
    let visited = data.visit(&mut |index, value| cells.push((index.to_vec(), value)));
    visited.map_err(|e| refused(0, &e.into()))?;
    cells.sort_by(|a, b| a.0.cmp(&b.0));
    for at in probes(algorithm.blocks(), start.parameters()) {
        let (Some(impossible_here), named) =
            (impossible(&*algorithm, &at), algorithm.check_start(&at))
        else {
            continue;
        };
        // Of the data up to a cell; of none there is nothing to explain.
        let upto = |cell: &[usize], with_it: bool| -> Option<bool> {
            let part = Upto::new(data, cell, with_it).ok()?;
            if part.summary.nnz == 0 {
                return Some(false);
            }
            impossible(&*model.bind(&part).ok()?, &at)
        };
        let first = || {
            let lost = |(index, _): &&(Vec<usize>, f64)| upto(index, true) == Some(true);
            cells.iter().find(lost)
        };
        match (impossible_here, named) {
            (false, Ok(())) => {}
            (true, Ok(())) => {
                let cell = match first() {
                    Some((index, value)) => format!("entry {index:?}, which is {value}"),
                    None => "no entry".into(),
                };
                return broken(format!(
                    "the likelihood is not finite, but nothing is named where it should be {cell}"
                ));
            }
            (false, Err(FitError::Support { index, value })) => {
                return broken(format!(
                    "entry {index:?}, which is {value}, is named, but the likelihood is finite"
                ));
            }
            (true, Err(FitError::Support { index, value })) => {
                let Some((_, datum)) = cells.iter().find(|(cell, _)| *cell == index) else {
                    return broken(format!(
                        "entry {index:?} is named, which is not a positive cell of the data"
                    ));
                };
                let near = (datum - value).abs() <= T::EPSILON.to_f64() * 4.0 * datum.abs();
                if !near {
                    return broken(format!(
                        "entry {index:?} is named as {value}, but is {datum}"
                    ));
                }
                let right = upto(&index, false) != Some(true) && upto(&index, true) == Some(true);
                if !right {
                    let cell = first().map(|(index, _)| index.clone()).unwrap_or_default();
                    return broken(format!(
                        "entry {index:?} is named, but the first without support is {cell:?}"
                    ));
                }
            }
            // Refused for another reason.
            (_, Err(_)) => {}
        }
    }
    Ok(())
}
