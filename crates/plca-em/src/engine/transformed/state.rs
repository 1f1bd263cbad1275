//! Fitted parameters, and what they say of data.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use nalgebra::{DMatrix, DVector};
use plca_fit::engine::{
    Em, Explained, FileLayout, FitError, Parameters, Reconstruct, State, Transform, begin, certify,
    reached,
};
use plca_tensor::{Data, DenseTensor, Mask, Order, Part, Real};

use super::super::placed::{
    Placed, Remembered, check_room, columns, position, specs, weights_block,
};
use super::{KERNEL, MAPS, SHAPE, Transformed, check_cells, facts};
use crate::shifted::model::Columns;
use crate::transformed::evaluator::Evaluator;
use crate::{IndexMaps, Likelihood, MapEntry};

/// Fitted parameters of [`Transformed`].
///
/// ```
/// use nalgebra::{dmatrix, dvector};
/// use plca_em::{IndexMaps, Likelihood, engine::TransformedState};
/// use plca_fit::engine::Reconstruct;
/// // The kernel 1 3, once as it is and once turned round.
/// let maps = IndexMaps::new(4, 2, &[0, 1,  3, 2])?;
/// let state = TransformedState::<f64>::new(
///     maps, &[4], Likelihood::Conditional, dvector![1.0], dmatrix![0.25; 0.75], dmatrix![0.5; 0.5])?;
/// assert_eq!(state.reconstruct()?.into_parts().1, [0.125, 0.375, 0.375, 0.125]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TransformedState<T: Real>(Parameters<T>, Arc<Frame>);

/// What follows from the facts of the parameters.
#[derive(Debug)]
struct Frame {
    maps: Arc<IndexMaps>,
    shape: Vec<usize>,
    remembered: Remembered,
    /// What `P` is multiplied by, once that was asked for.
    scale: OnceLock<f64>,
}

impl<T: Real> PartialEq for TransformedState<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

plca_fit::serialised!(TransformedState);

impl<T: Real> TransformedState<T> {
    /// The state of weights `P(z)`, kernels, a column of the kernel's cells for every component, and impulses, a column of the maps, for data of a
    /// shape.
    ///
    /// # Errors
    ///
    /// [`FitError::DataShape`] for another number of cells than the maps lead to, [`FitError::Shape`], [`FitError::Value`], [`FitError::Sum`].
    pub fn new(
        maps: IndexMaps,
        shape: &[usize],
        likelihood: Likelihood,
        weights: DVector<T>,
        kernels: DMatrix<T>,
        impulses: DMatrix<T>,
    ) -> Result<Self, FitError> {
        let specs = specs([maps.kernel_cells(), maps.maps()], weights.len());
        let blocks = vec![weights_block(&weights), kernels, impulses];
        let facts = facts(&maps, shape, likelihood).into_iter();
        let at = Parameters::new(&specs, blocks)?;
        Self::wrap(facts.fold(at, |at, (name, numbers)| at.with_fact(name, numbers)))
    }

    /// `P(z)`.
    pub fn weights(&self) -> &[T] {
        self.0.at(0).as_slice()
    }

    /// Kernels `K(u | z)`, a column of cells for every component.
    pub fn kernels(&self) -> &DMatrix<T> {
        self.0.at(1)
    }

    /// Impulses `H(s | z)`, a column of maps for every component.
    pub fn impulses(&self) -> &DMatrix<T> {
        self.0.at(2)
    }

    /// The maps.
    pub fn maps(&self) -> &IndexMaps {
        &self.1.maps
    }

    /// What was maximised.
    pub fn likelihood(&self) -> Likelihood {
        self.1.remembered.likelihood
    }

    /// Explains new data of as many cells by the learnt kernels: their `P(z)` and impulses. The problem is concave in `P(z) H(s | z)`, so that the
    /// start does not matter.
    ///
    /// # Errors
    ///
    /// [`FitError::DataShape`], [`FitError::Impossible`], [`FitError::Conflict`] for a mode to explain along, which there is not, and those of a
    /// run.
    pub fn transform(
        &self,
        data: &dyn Data<T>,
        how: &Transform,
    ) -> Result<Explained<Self>, FitError> {
        if how.along.is_some() {
            let what = "maps lead to all modes of the data: there is none to explain along";
            return Err(FitError::Conflict { what: what.into() });
        }
        let config = Transformed::under(self.weights().len(), self.1.maps.clone());
        let config = config.likelihood(self.likelihood());
        let config = config.freeze("kernels").build()?;
        check_cells(self.maps(), data.shape())?;
        let (part, dropped) = self.possible(data, how)?;
        let data = part.as_ref().map_or(data, |part| part);
        let bound = config.on_data(data)?;
        let blocks = bound.specs.iter().enumerate();
        let blocks = blocks.map(|(j, spec)| match j {
            1 => self.kernels().clone(),
            _ => spec.even(),
        });
        let em = Em(bound.clone());
        let start = begin(&em, blocks.collect())?;
        let shares = shares(self.maps(), data, start.at(1))?;
        let gap = |at: &Parameters<T>| Ok(vec![gap_of(&bound, at, &shares)]);
        let (fit, gap) = certify::<Self>(Box::new(em), start, how, gap)?;
        let keep = |j: usize, block: &mut DMatrix<T>| {
            if j == 1 {
                block.copy_from(self.kernels());
            }
        };
        Ok(Explained {
            fit: fit.change(|at| at.change(keep))?,
            gap,
            dropped,
            empty: Vec::new(),
        })
    }

    /// The part of the data that some kernel reaches under some map.
    fn possible<'a>(
        &self,
        data: &'a dyn Data<T>,
        how: &Transform,
    ) -> Result<(Option<Part<'a, T>>, f64), FitError> {
        let k = self.weights().len();
        let everywhere = self.maps().cells_of(Columns {
            weights: &vec![T::one(); k],
            kernels: self.kernels().as_slice(),
            impulses: &vec![T::one(); k * self.maps().maps()],
        });
        let shape = data.shape();
        let is_reached = |index: &[usize]| everywhere[position(index, shape)] > T::zero();
        reached(data, is_reached, how.impossible)
    }

    fn scale(&self) -> f64 {
        let Frame {
            maps,
            remembered,
            scale,
            ..
        } = &*self.1;
        let cells = || maps.cells_of(columns(&self.0));
        let inside = || cells().iter().map(|p| p.to_f64()).sum();
        *scale.get_or_init(|| remembered.scale(&self.0, maps.any_outside(), inside))
    }

    fn cells(&self, at: Columns<'_, T>) -> Result<DenseTensor<T>, FitError> {
        let shape = self.shape();
        check_room::<T>(&shape)?;
        let scale = T::lit(self.scale());
        let mut cells = self.maps().cells_of(at);
        cells.iter_mut().for_each(|p| *p *= scale);
        Ok(DenseTensor::new(shape, cells, Order::RowMajor)?)
    }
}

/// How much of the learnt kernels falls on observed cells and elsewhere, map by component.
fn shares<T: Real>(
    maps: &IndexMaps,
    data: &dyn Data<T>,
    kernels: &DMatrix<T>,
) -> Result<[DMatrix<f64>; 2], FitError> {
    let mut seen = vec![data.summary().mask != Mask::Observed; maps.cells()];
    data.visit_mask(&mut |index| {
        let at = position(index, data.shape());
        seen[at] = !seen[at];
    })?;
    let mut shares = [(); 2].map(|()| DMatrix::zeros(maps.maps(), kernels.ncols()));
    for e in maps.entries() {
        let hidden = e.to.is_none_or(|to| !seen[to]);
        for z in 0..kernels.ncols() {
            let part = e.weight * kernels[(e.from, z)].to_f64();
            shares[usize::from(hidden)][(e.map, z)] += part;
        }
    }
    Ok(shares)
}

/// `max (g - 1)` over components and maps, where with `a = P(z) H(s | z)`
///
/// ```text
/// g = S/v Σ_obs w Q / Σ_obs w,     w[x] = Σ_{u: T_s(u) = x} a(s,u) K(u | z),     S = Σ_obs P
/// ```
///
/// and without mass that could be hidden `g = Σ w Q / v`. Counts have `v/S` in place of `Q` where nothing was observed.
fn gap_of<T: Real>(
    bound: &Placed<'_, T, Evaluator<T>>,
    at: &Parameters<T>,
    [observed, other]: &[DMatrix<f64>; 2],
) -> f64 {
    let e = bound.expected(at, [false, true], false);
    if e.measured.lost {
        return f64::INFINITY;
    }
    let (total, seen) = (bound.data.total(), e.measured.seen);
    let mut worst: f64 = 0.0;
    for z in 0..observed.ncols() {
        for s in 0..observed.nrows() {
            let now = at.at(0)[z].to_f64() * at.at(2)[(s, z)].to_f64();
            let share = observed[(s, z)];
            if now <= 0.0 || share <= 0.0 {
                continue;
            }
            let ratio = e.impulses[z * observed.nrows() + s].to_f64() / e.scale / now;
            let g = match bound.evaluator.is_conditional() {
                true => (ratio - total / seen * other[(s, z)]) * seen / (total * share),
                false => ratio / total,
            };
            // [SPEC 1.5] L* - L <= v (max g - 1)
            worst = worst.max(g - 1.0);
        }
    }
    worst
}

impl<T: Real> Reconstruct for TransformedState<T> {
    fn shape(&self) -> Vec<usize> {
        self.1.shape.clone()
    }

    fn components(&self) -> usize {
        self.weights().len()
    }

    fn cell(&self, index: &[usize]) -> f64 {
        let at = position(index, &self.1.shape);
        self.scale() * self.maps().cell(columns(&self.0), at).to_f64()
    }

    /// Under the conditional likelihood scaled so that the observed cells have the sum of the data.
    fn reconstruct(&self) -> Result<DenseTensor<T>, FitError> {
        self.cells(columns(&self.0))
    }

    fn component(&self, z: usize) -> Result<DenseTensor<T>, FitError> {
        let components = self.components();
        if z >= components {
            return Err(FitError::NoComponent {
                component: z,
                components,
            });
        }
        self.cells(columns(&self.0).component(z))
    }
}

/// The maps that the facts of parameters tell.
fn read_maps<T: Real>(parameters: &Parameters<T>, cells: usize) -> Result<IndexMaps, FitError> {
    let refuse = |name: &'static str, got: String, expected: &str| FitError::Fact {
        name,
        got,
        expected: expected.into(),
    };
    let &[kernel] = &parameters.whole(KERNEL)?[..] else {
        return Err(refuse(KERNEL, "no number".into(), "one number of cells"));
    };
    let numbers = parameters.fact(MAPS).unwrap_or_default();
    let (entries, rest) = numbers.as_chunks::<4>();
    if !rest.is_empty() {
        let got = format!("{} numbers", numbers.len());
        return Err(refuse(MAPS, got, "four for every entry"));
    }
    let whole = |x: f64| (x >= 0.0 && x <= f64::from(u32::MAX) && x.fract() == 0.0).then_some(x);
    let read = |&[map, from, to, weight]: &[f64; 4]| {
        let outside = to == -1.0;
        Some(MapEntry {
            map: whole(map)? as usize,
            from: whole(from)? as usize,
            to: match outside {
                true => None,
                false => Some(whole(to)? as usize),
            },
            weight,
        })
    };
    let entries: Option<Vec<_>> = entries.iter().map(read).collect();
    let entries = entries.ok_or_else(|| {
        let got = "entries of other numbers".into();
        refuse(MAPS, got, "whole numbers, but for weights and -1 outside")
    })?;
    // Tables are made for all maps up to the last: no more than the impulses have.
    let places = parameters.matrices().get(2).map_or(0, |h| h.nrows());
    if let Some(map) = entries.iter().map(|e| e.map).find(|&m| m >= places) {
        let expected = format!("maps below {places}");
        return Err(refuse(MAPS, format!("map {map}"), &expected));
    }
    IndexMaps::from_entries(cells, kernel, entries)
        .map_err(|error| refuse(MAPS, error.to_string(), "maps from kernels to the data"))
}

impl<T: Real> State for TransformedState<T> {
    type Scalar = T;
    const NAME: &'static str = "tiplca";

    fn block_names(_: usize) -> Vec<Cow<'static, str>> {
        ["weights", "kernels", "impulses"].map(Cow::from).into()
    }

    fn layout(block: &str) -> FileLayout {
        match block {
            "weights" => FileLayout::Vector,
            "kernels" => FileLayout::Stack("kernel"),
            _ => FileLayout::Stack("places"),
        }
    }

    fn wrap(parameters: Parameters<T>) -> Result<Self, FitError> {
        let shape = parameters.whole(SHAPE)?;
        let cells = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        let maps = read_maps(&parameters, cells.unwrap_or(usize::MAX))?;
        check_cells(&maps, &shape)?;
        let k = parameters.matrices().first().map_or(0, |w| w.nrows());
        parameters.check(&specs([maps.kernel_cells(), maps.maps()], k))?;
        let remembered = Remembered::of(&parameters)?;
        parameters.check_scale(1)?;
        let frame = Frame {
            maps: Arc::new(maps),
            shape,
            remembered,
            scale: OnceLock::new(),
        };
        Ok(Self(parameters, Arc::new(frame)))
    }

    fn parameters(&self) -> &Parameters<T> {
        &self.0
    }
}
