//! What every storage obeys (feature `laws`): a test kit for storages of your own.

use std::collections::BTreeSet;
use std::fmt;

use nalgebra::DMatrix;

use crate::{
    CellLikelihood, Cp, Data, DataError, Factor, Mask, Modes, Real, Request, Rule, Summary,
    e_step_by_visits,
};

/// A law of storages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Law {
    /// The data can be read.
    Reads,
    /// Every visited cell is within the shape, finite, not 0, and visited once, in the same order every time.
    Visits,
    /// Every cell of the mask is within the shape and listed once; what is hidden is not visited, and what is visited is observed.
    Mask,
    /// The summary is that of the visits.
    Summary,
    /// Marginals, and `Σ V ln V`, are those of the visits.
    Marginals,
    /// The E-step is that of the visits, to rounding.
    EStep,
    /// Ratios and values of many cells are those of each.
    Cells,
    /// A cell of 0 has the ratio 0 and the value 0 where that is said.
    Inert,
    /// The ratios of numerator and denominator differ by the slope of the value.
    Slope,
}

/// Which law was broken, and how.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("law `{law:?}` is broken: {details}")]
pub struct Violation {
    /// The law.
    pub law: Law,
    /// Where, and the numbers.
    pub details: String,
}

fn broken<O>(law: Law, details: impl fmt::Display) -> Result<O, Violation> {
    let details = details.to_string();
    Err(Violation { law, details })
}

fn read<O>(read: Result<O, DataError>) -> Result<O, Violation> {
    read.or_else(|e| broken(Law::Reads, e))
}

/// Checks a storage against every [`Law`]. Its shape must have few cells: some laws go through all of them.
///
/// ```
/// use plca_tensor::{DenseTensor, Order, laws::check};
/// let v = DenseTensor::masked(vec![2, 3], vec![1.0, 0.0, f64::NAN, 2.5, 0.0, 4.0], Order::RowMajor)?;
/// assert_eq!(check(&v), Ok(()));
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
///
/// # Errors
///
/// The first [`Violation`] met.
pub fn check<T: Real>(data: &dyn Data<T>) -> Result<(), Violation> {
    let cells = visits(data)?;
    mask(data, &cells)?;
    summary(data)?;
    marginals(data, &cells)?;
    for components in 1..=3 {
        e_step(data, components)?;
    }
    Ok(())
}

type Cell = (Vec<usize>, f64);

fn inside(shape: &[usize], index: &[usize]) -> bool {
    index.len() == shape.len() && index.iter().zip(shape).all(|(i, n)| i < n)
}

fn visits<T: Real>(data: &dyn Data<T>) -> Result<Vec<Cell>, Violation> {
    let once = || {
        let mut cells = Vec::new();
        read(data.visit(&mut |index, value| cells.push((index.to_vec(), value))))?;
        Ok(cells)
    };
    let cells = once()?;
    let mut seen = BTreeSet::new();
    for (index, value) in &cells {
        let valid = inside(data.shape(), index) && value.is_finite() && *value != 0.0;
        if !valid || !seen.insert(index) {
            let what = format!("{value} at {index:?}, in a shape of {:?}", data.shape());
            return broken(Law::Visits, what);
        }
    }
    match once()? == cells {
        true => Ok(cells),
        false => broken(Law::Visits, "a second time they are others"),
    }
}

fn mask<T: Real>(data: &dyn Data<T>, cells: &[Cell]) -> Result<(), Violation> {
    let (mut listed, mut wrong) = (BTreeSet::new(), None);
    read(data.visit_mask(&mut |index| {
        if !inside(data.shape(), index) || !listed.insert(index.to_vec()) {
            wrong.get_or_insert_with(|| index.to_vec());
        }
    }))?;
    if let Some(index) = wrong {
        let what = format!("{index:?} is listed twice or outside the shape");
        return broken(Law::Mask, what);
    }
    let kind = data.summary().mask;
    if kind == Mask::Complete && !listed.is_empty() {
        let what = format!("complete data list {} cells", listed.len());
        return broken(Law::Mask, what);
    }
    let observed = |index: &Vec<usize>| match kind {
        Mask::Complete => true,
        Mask::Hidden => !listed.contains(index),
        Mask::Observed => listed.contains(index),
    };
    match cells.iter().find(|(index, _)| !observed(index)) {
        Some((index, _)) => broken(Law::Mask, format!("{index:?} is visited and hidden")),
        None => Ok(()),
    }
}

/// Whether two sums of terms as large as `size` differ by no more than rounding.
fn close<T: Real>(a: f64, b: f64, size: f64) -> bool {
    a == b || (a - b).abs() <= 1e3 * T::EPSILON.to_f64() * size
}

fn summary<T: Real>(data: &dyn Data<T>) -> Result<(), Violation> {
    let known = data.summary();
    let made = read(Summary::of(known.mask, |each| data.visit(each)))?;
    let sums = [
        (known.total, made.total, made.absolute),
        (known.absolute, made.absolute, made.absolute),
        (known.squares, made.squares, made.squares),
    ];
    let exact = |s: &Summary| (s.negative.clone(), s.nnz, s.integers);
    match exact(known) == exact(&made) && sums.iter().all(|&(a, b, size)| close::<T>(a, b, size)) {
        true => Ok(()),
        false => broken(Law::Summary, format!("{known:?}, of the visits {made:?}")),
    }
}

fn marginals<T: Real>(data: &dyn Data<T>, cells: &[Cell]) -> Result<(), Violation> {
    if data.summary().negative.is_none() {
        let own: f64 = cells.iter().map(|(_, v)| v * v.ln()).sum();
        let size: f64 = cells.iter().map(|(_, v)| (v * v.ln()).abs()).sum();
        let got = read(data.self_information())?;
        if !close::<T>(got, own, size) {
            return broken(Law::Marginals, format!("Σ V ln V is {got}, expected {own}"));
        }
    }
    for (mode, &size) in data.shape().iter().enumerate() {
        let mut sums = vec![0.0; size];
        cells
            .iter()
            .for_each(|(index, value)| sums[index[mode]] += value);
        let got = read(data.marginal(mode))?;
        let absolute = data.summary().absolute;
        let mut pairs = got.iter().zip(&sums);
        if got.len() != size || !pairs.all(|(&a, &b)| close::<T>(a, b, absolute)) {
            let what = format!("{got:?} of mode {mode}, expected {sums:?}");
            return broken(Law::Marginals, what);
        }
    }
    Ok(())
}

fn e_step<T: Real>(data: &dyn Data<T>, components: usize) -> Result<(), Violation> {
    let order = data.shape().len();
    // A row has a factor of 0 where two components or more share it.
    let entry = |j: usize, i: usize, z: usize| match components > 1 && (i + z) % 5 == 4 {
        true => T::zero(),
        false => T::lit(0.25 + ((7 * i + 3 * z + 5 * j) % 11) as f64 / 11.0),
    };
    let blocks: Vec<DMatrix<T>> = (data.shape().iter().enumerate())
        .map(|(j, &n)| DMatrix::from_fn(n, components, |i, z| entry(j, i, z)))
        .collect();
    let turned: Vec<DMatrix<T>> = blocks.iter().map(DMatrix::transpose).collect();
    let columns: Vec<_> = blocks.iter().map(Factor::Columns).collect();
    // The last one as a model keeps its mixtures.
    let mut mixed = columns.clone();
    mixed[order - 1] = Factor::Rows(&turned[order - 1]);
    let weights: Vec<T> = (0..components).map(|z| T::lit(1.0 + z as f64)).collect();
    let models = [(Some(&weights[..]), &columns), (None, &mixed)];
    let counts = data.summary().negative.is_none();
    for (weights, factors) in models {
        let model = Cp { weights, factors };
        for modes in [Modes::all(order), Modes::one(order - 1), Modes::NONE] {
            for rule in [Rule::Poisson, Rule::Gradient, Rule::Exposure] {
                if counts || matches!(rule, Rule::Exposure) {
                    answer(data, &model, &Request::counts(modes).value(true).rule(rule))?;
                }
            }
        }
    }
    Ok(())
}

/// Checks the answer to one request against that of the visits.
fn answer<T: Real>(
    data: &dyn Data<T>,
    model: &Cp<'_, T>,
    request: &Request<'_, T>,
) -> Result<(), Violation> {
    let rule = request.rule;
    let got = read(data.e_step(model, request))?;
    let want = read(e_step_by_visits(data, model, request))?;
    let size = want.value().abs() + data.summary().absolute;
    let (value, expected) = (got.value(), want.value());
    if !close::<T>(value, expected, size) {
        let what = format!("{rule:?}: the value is {value}, expected {expected}");
        return broken(Law::EStep, what);
    }
    for mode in 0..data.shape().len() {
        let (got, want) = (got.get(mode), want.get(mode));
        let same = match (got, want) {
            (Some(got), Some(want)) => {
                let largest = want
                    .iter()
                    .fold(0.0, |most: f64, x| most.max(x.to_f64().abs()));
                let near = |(a, b): (&T, &T)| close::<T>(a.to_f64(), b.to_f64(), largest);
                got.shape() == want.shape() && got.iter().zip(want).all(near)
            }
            (got, want) => got.is_none() && want.is_none(),
        };
        if !same {
            let what =
                format!("{rule:?}: the counts of mode {mode} are {got:?}, expected {want:?}");
            return broken(Law::EStep, what);
        }
    }
    Ok(())
}

/// Checks the two rules of a likelihood against [`Law::Cells`], [`Law::Inert`] and [`Law::Slope`]: the numerator of its multiplicative update, which
/// has the value, and the denominator. `cells` are values with rates `> 0`, at least one.
///
/// # Errors
///
/// The first [`Violation`] met.
pub fn check_likelihood(
    [numerator, denominator]: [&dyn CellLikelihood<f64>; 2],
    cells: &[(f64, f64)],
) -> Result<(), Violation> {
    if cells.is_empty() {
        return broken(Law::Cells, "there are none");
    }
    let (v, p): (Vec<f64>, Vec<f64>) = cells.iter().copied().unzip();
    for rule in [numerator, denominator] {
        let ratios = |v: &[f64], p: &[f64]| {
            let mut q = p.to_vec();
            rule.ratios(v, &mut q);
            q
        };
        let one_by_one = cells.iter().flat_map(|&(v, p)| ratios(&[v], &[p]));
        let one_by_one: Vec<f64> = one_by_one.collect();
        let values = cells.iter().map(|&(v, p)| rule.value(&[v], &[p]));
        let (sum, size) = (values.clone().sum(), values.map(f64::abs).sum());
        if ratios(&v, &p) != one_by_one || !close::<f64>(rule.value(&v, &p), sum, size) {
            return broken(Law::Cells, format!("{rule:?} differs from cell to cell"));
        }
        let inert = |&p: &f64| ratios(&[0.0], &[p]) == [0.0] && rule.value(&[0.0], &[p]) == 0.0;
        if rule.zero_is_inert() && !p.iter().all(inert) {
            return broken(Law::Inert, format!("a cell of 0 counts for {rule:?}"));
        }
    }
    for &(v, p) in cells {
        let step = p * f64::EPSILON.cbrt();
        let [low, high] = [p - step, p + step].map(|p| numerator.value(&[v], &[p]));
        let slope = (high - low) / (2.0 * step);
        let [mut n, mut d] = [[p], [p]];
        numerator.ratios(&[v], &mut n);
        denominator.ratios(&[v], &mut d);
        let (got, size) = (n[0] - d[0], n[0].abs() + d[0].abs());
        if (got - slope).abs() > 1e-4 * (size + slope.abs()) {
            let what =
                format!("ratios of {v} at the rate {p} differ by {got}, the slope is {slope}");
            return broken(Law::Slope, what);
        }
    }
    Ok(())
}
