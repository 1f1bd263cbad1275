//! Fitted parameters, and what they say of data.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};
use plca_fit::{Explained, FitError, Parameters, Reconstruct, State, Transform, blocks::Blocks};
use plca_tensor::{Data, DenseTensor, Mask, Real};

use super::evaluator::Mapped;
use super::set_model::Set;
use super::{KERNEL, MAPS, SET, SHAPE, Transformed, check_cells, facts};
use crate::placed::{
    Frame, Placement, explain, parameters, placed_state, position, possible, refuse_along,
};
use crate::{IndexMaps, Likelihood, MapEntry};

/// The fitted parameters of [`Transformed`]: weights, kernels, and how much each map is used.
///
/// ```math
/// P(x) = \sum_z P(z) \sum_s H(s \mid z) \sum_{u : T_s(u) = x} a(s,u) \, K(u \mid z)
/// ```
///
/// ```
/// use plca_em::nalgebra::{self, dmatrix, dvector};
/// use plca_em::{IndexMaps, Likelihood, Reconstruct, TransformedState};
/// // The kernel 1 3, once as it is and once turned round.
/// let maps = IndexMaps::new(4, 2, &[0, 1,  3, 2])?;
/// let state = TransformedState::<f64>::new(
///     maps, &[4], Likelihood::Conditional, dvector![1.0], dmatrix![0.25; 0.75], dmatrix![0.5; 0.5])?;
/// assert_eq!(state.reconstruct()?.into_parts().1, [0.125, 0.375, 0.375, 0.125]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TransformedState<T: Real>(Parameters<T>, Arc<Frame<Mapped>>);

placed_state!(
    TransformedState,
    "tiplca",
    kernels: "Kernels `K(u | z)`, a column of cells for every component.",
    impulses: "Impulses `H(s | z)`, a column of maps for every component."
);

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
        let facts = facts(&maps, shape, likelihood);
        let (sizes, blocks) = ([maps.kernel_cells(), maps.maps()], [kernels, impulses]);
        Self::wrap(parameters(sizes, &weights, blocks, facts)?)
    }

    /// Where the facts of parameters place the kernels.
    fn place(parameters: &Parameters<T>) -> Result<Mapped, FitError> {
        let shape = parameters.whole(SHAPE)?;
        let cells = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        let maps = read_maps(parameters, cells.unwrap_or(usize::MAX))?;
        check_cells(&maps, &shape)?;
        Ok(Mapped { maps, shape })
    }

    /// The maps that place the kernels on the data.
    pub fn maps(&self) -> &IndexMaps {
        &self.1.place.maps
    }

    /// Finds `P(z)` and impulses of new data with the same number of cells under the learnt kernels. The problem is concave in `P(z) H(s | z)`, so that the
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
        refuse_along(how)?;
        let (maps, shape) = (&self.1.place.maps, data.shape().to_vec());
        let config = Transformed::new(self.weights().len(), maps.clone());
        let config = config.likelihood(self.likelihood()).freeze("kernels");
        check_cells(maps, &shape)?;
        let maps = maps.clone();
        let place = Mapped { maps, shape };
        let (part, dropped) = possible(&place, self.kernels(), data, how)?;
        let data = part.as_ref().map_or(data, |part| part);
        let bound = config.on_data(data)?;
        let seen = |kernels: &DMatrix<T>| shares(self.maps(), data, kernels);
        explain(bound, self.kernels(), how, dropped, seen)
    }
}

/// How much of the learnt kernels falls on observed cells, map by component.
fn shares<T: Real>(
    maps: &IndexMaps,
    data: &dyn Data<T>,
    kernels: &DMatrix<T>,
) -> Result<DMatrix<f64>, FitError> {
    let mut seen = vec![data.summary().mask != Mask::Observed; maps.cells()];
    data.visit_mask(&mut |index| {
        let at = position(index, data.shape());
        seen[at] = !seen[at];
    })?;
    let mut shares = DMatrix::zeros(maps.maps(), kernels.ncols());
    for e in maps.entries().filter(|e| e.to.is_some_and(|to| seen[to])) {
        for z in 0..kernels.ncols() {
            shares[(e.map, z)] += e.weight * kernels[(e.from, z)].to_f64();
        }
    }
    Ok(shares)
}

/// The maps that the facts of parameters tell.
fn read_maps<T: Real>(parameters: &Parameters<T>, cells: usize) -> Result<IndexMaps, FitError> {
    let refuse = |name: &'static str, got: String, expected: &str| FitError::Fact {
        name,
        got,
        expected: expected.into(),
    };
    let kernel_shape = parameters.whole(KERNEL)?;
    let kernel = kernel_shape
        .iter()
        .try_fold(1usize, |n, &k| n.checked_mul(k));
    let Some(kernel) = kernel.filter(|_| !kernel_shape.is_empty()) else {
        let got = format!("{kernel_shape:?}");
        return Err(refuse(KERNEL, got, "the extents of a kernel"));
    };
    if let Some(numbers) = parameters.fact(SET) {
        let refused = |what: String| refuse(SET, what, "transformations and their positions");
        let set = Set::read(numbers).ok_or_else(|| refused("other numbers".into()))?;
        // Each has a map: no more than the impulses have.
        let places = parameters.matrices().get(2).map_or(0, |h| h.nrows());
        if set.0.len() > places {
            let (got, what) = (set.0.len(), "transformations of impulses with");
            return Err(refused(format!("{got} {what} {places} rows")));
        }
        let maps = IndexMaps::placed(&set.0, &kernel_shape, &parameters.whole(SHAPE)?, set.1);
        return maps.map_err(|error| refused(error.to_string()));
    }
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
    let maps = IndexMaps::from_entries(cells, kernel, entries).map_err(|error| match error {
        FitError::Data(_) => error,
        error => refuse(MAPS, error.to_string(), "maps from kernels to the data"),
    })?;
    Ok(maps.with_kernel_shape(kernel_shape))
}
