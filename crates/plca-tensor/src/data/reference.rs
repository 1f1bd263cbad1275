//! A single-threaded E-step that uses only a storage's visits.

use std::collections::HashSet;

use nalgebra::DMatrix;

use super::pass::{check_model, counts_only, wanted};
use super::{Data, Expected, Mask, Order, Request, Rule, position, unravel};
use crate::{CompensatedSum, Cp, DataError, Factor, Real};

/// Visits every observed cell, or every one that is 0. Cost: where the mask does not list them, the number of all cells, with a bit of memory
/// for each.
fn for_each_observed<T: Real, D: Data<T> + ?Sized>(
    data: &D,
    zeros_only: bool,
    each: &mut dyn FnMut(&[usize]),
) -> Result<(), DataError> {
    if data.summary().mask == Mask::Observed {
        let mut entries = HashSet::new();
        if zeros_only {
            data.visit(&mut |index, _| {
                entries.insert(index.to_vec());
            })?;
        }
        return data.visit_mask(&mut |index| {
            if !entries.contains(index) {
                each(index);
            }
        });
    }
    let shape = data.shape();
    let cells = shape.iter().product::<usize>();
    let mut skipped = vec![0u64; cells.div_ceil(64)];
    let mut skip = |index: &[usize]| {
        let at = position(index, shape, Order::RowMajor);
        skipped[at / 64] |= 1 << (at % 64);
    };
    data.visit_mask(&mut skip)?;
    if zeros_only {
        data.visit(&mut |index, _| skip(index))?;
    }
    for at in (0..cells).filter(|at| skipped[at / 64] >> (at % 64) & 1 == 0) {
        each(&unravel(at, shape, Order::RowMajor));
    }
    Ok(())
}

/// Sums `C_j[i,z]` of every requested mode.
struct Sums<'a, T> {
    model: &'a Cp<'a, T>,
    modes: Vec<Option<DMatrix<f64>>>,
    value: CompensatedSum,
    /// What each component gives to the cell at hand.
    joints: Vec<f64>,
}

impl<T: Real> Sums<'_, T> {
    /// Goes to a cell; returns its `P[x]`.
    fn go_to(&mut self, index: &[usize]) -> f64 {
        self.model.joints(index, &mut self.joints);
        self.joints.iter().sum()
    }

    /// Adds `term(w_z Π_m F_m)` of the cell at hand.
    fn add(&mut self, index: &[usize], term: impl Fn(f64) -> f64) {
        // A component without a share in the cell gets nothing, whatever the ratio.
        for (z, &joint) in (self.joints.iter().enumerate()).filter(|(_, joint)| **joint > 0.0) {
            for (sums, &i) in self.modes.iter_mut().zip(index) {
                if let Some(sums) = sums {
                    sums[(i, z)] += term(joint);
                }
            }
        }
    }

    /// Adds `q w_z Π_{m≠j} F_m`.
    fn add_gradient(&mut self, index: &[usize], q: f64) {
        for (mode, sums) in self.modes.iter_mut().enumerate() {
            let Some(sums) = sums else { continue };
            for z in 0..self.model.components() {
                let weight = self.model.weights.map_or(1.0, |w| w[z].to_f64());
                let others = (self.model.factors.iter().zip(index).enumerate())
                    .filter(|&(m, _)| m != mode)
                    .map(|(_, (factor, &i))| factor.get(i, z).to_f64());
                sums[(index[mode], z)] += q * weight * others.product::<f64>();
            }
        }
    }
}

/// The [E-step](Data::e_step) of any storage from its visits, on one thread: what a storage of your own answers where it has no kernel.
///
/// Cost: `O(N K)` for every cell visited. [`Rule::Exposure`] of complete data visits none; where the mask lists hidden cells it visits all
/// cells, and so does a [`CellLikelihood`](crate::CellLikelihood) for which zeros are not inert.
///
/// ```
/// use nalgebra::dmatrix;
/// use plca_tensor::{Cp, Data, DenseTensor, Factor, Modes, Order, Request, e_step_by_visits};
/// let (a, b) = (dmatrix![0.5, 1.0; 0.5, 0.0], dmatrix![0.25, 0.5; 0.75, 0.5]);
/// let model = Cp { weights: Some(&[0.5, 0.5]), factors: &[Factor::Columns(&a), Factor::Columns(&b)] };
/// let v = DenseTensor::new(vec![2, 2], vec![5.0, 1.0, 1.0, 3.0], Order::RowMajor)?;
/// let request = Request::counts(Modes::all(2));
/// let slow = e_step_by_visits(&v, &model, &request)?;
/// assert!((slow.counts(0) - v.e_step(&model, &request)?.counts(0)).amax() < 1e-12);
/// # Ok::<(), plca_tensor::DataError>(())
/// ```
///
/// # Errors
///
/// As [`Data::e_step`].
///
/// # Panics
///
/// As [`Data::e_step`].
pub fn e_step_by_visits<T: Real, D: Data<T> + ?Sized>(
    data: &D,
    model: &Cp<'_, T>,
    request: &Request<'_, T>,
) -> Result<Expected<T>, DataError> {
    check_model(data.shape(), model);
    let k = model.components();
    let modes = request.modes.flags(model.factors.len());
    if let (Rule::Exposure, true) = (request.rule, data.is_complete()) {
        return Ok(Expected {
            counts: model.exposures(&modes),
            value: request.value.then(|| model.mass()),
        });
    }
    let mut sums = Sums {
        model,
        modes: wanted(&modes, |j| DMatrix::zeros(model.factors[j].rows(), k)),
        value: CompensatedSum::default(),
        joints: Vec::new(),
    };
    if let Rule::Poisson | Rule::Gradient = request.rule {
        match counts_only::<T>(data.summary()) {
            // A part of data may be without mass: nothing is counted.
            Err(DataError::NoMass) => {}
            checked => checked?,
        }
    }
    let ln_unit = request.unit.ln();
    match request.rule {
        Rule::Poisson => data.visit(&mut |index, v| {
            let p = sums.go_to(index);
            sums.value += v * (p.ln() - ln_unit);
            let v = v / request.count_unit;
            sums.add(index, |joint| v * (joint / p));
        })?,
        Rule::Gradient => data.visit(&mut |index, v| {
            let p = sums.go_to(index);
            sums.value += v * (p.ln() - ln_unit);
            let v = v / request.count_unit;
            sums.add_gradient(index, v / p.max(f64::MIN_POSITIVE));
        })?,
        Rule::Exposure => for_each_observed(data, false, &mut |index| {
            let p = sums.go_to(index);
            sums.value += p;
            sums.add(index, |joint| joint);
        })?,
        Rule::Cell(rule) => {
            let mut cell = |index: &[usize], v: f64| {
                let (v, p) = ([T::lit(v)], [T::lit(sums.go_to(index))]);
                if request.value {
                    sums.value += rule.value(&v, &p);
                }
                let mut q = p;
                rule.ratios(&v, &mut q);
                sums.add(index, |joint| joint * q[0].to_f64());
            };
            data.visit(&mut cell)?;
            if !rule.zero_is_inert() {
                for_each_observed(data, true, &mut |index| cell(index, 0.0))?;
            }
        }
    }
    let in_layout = |(sums, factor): (Option<DMatrix<f64>>, &Factor<'_, T>)| {
        let sums = sums?.map(T::lit);
        Some(match factor {
            Factor::Columns(_) => sums,
            Factor::Rows(_) => sums.transpose(),
        })
    };
    let counts = sums.modes.into_iter().zip(model.factors).map(in_layout);
    Ok(Expected {
        counts: counts.collect(),
        value: request.value.then(|| sums.value.value()),
    })
}
