//! The E-step from a storage's visits alone: slow and right.

use std::collections::{HashMap, HashSet};

use nalgebra::DMatrix;

use super::pass::{check_model, counts_only};
use super::{Data, Expected, Mask, Request, Rule};
use crate::{CompensatedSum, Cp, DataError, Factor, Real};

/// Every observed cell, zeros included.
fn for_each_observed<T: Real, D: Data<T> + ?Sized>(
    data: &D,
    each: &mut dyn FnMut(&[usize], f64),
) -> Result<(), DataError> {
    let (mut values, mut listed) = (HashMap::new(), HashSet::new());
    data.visit(&mut |index, value| {
        values.insert(index.to_vec(), value);
    })?;
    data.visit_mask(&mut |index| {
        listed.insert(index.to_vec());
    })?;
    let seen = data.summary().mask == Mask::Observed;
    let shape = data.shape();
    let mut index = vec![0; shape.len()];
    loop {
        if data.is_complete() || listed.contains(&index) == seen {
            each(&index, values.get(&index).copied().unwrap_or(0.0));
        }
        let next = |mode: usize| {
            index[mode] = (index[mode] + 1) % shape[mode];
            index[mode] == 0
        };
        if (0..shape.len()).rev().all(next) {
            return Ok(());
        }
    }
}

/// Sums `C_j[i,z]` of every requested mode.
struct Sums<'a, T> {
    model: &'a Cp<'a, T>,
    modes: Vec<Option<DMatrix<f64>>>,
    value: CompensatedSum,
}

impl<T: Real> Sums<'_, T> {
    fn add(&mut self, index: &[usize], q: f64) {
        for z in 0..self.model.components() {
            let term = q * self.model.joint(index, z);
            for (sums, &i) in self.modes.iter_mut().zip(index) {
                if let Some(sums) = sums {
                    sums[(i, z)] += term;
                }
            }
        }
    }

    /// `q w_z Π_{m≠j} F_m` in place of `q w_z Π_m F_m`.
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

pub(super) fn e_step<T: Real, D: Data<T> + ?Sized>(
    data: &D,
    model: &Cp<'_, T>,
    request: &Request<'_, T>,
) -> Result<Expected<T>, DataError> {
    check_model(data.shape(), model);
    let k = model.components();
    let wanted = request.modes.flags(model.factors.len());
    let modes = (wanted.iter().zip(model.factors))
        .map(|(wanted, f)| wanted.then(|| DMatrix::zeros(f.rows(), k)));
    let mut sums = Sums {
        model,
        modes: modes.collect(),
        value: CompensatedSum::default(),
    };
    if let Rule::Poisson | Rule::Gradient = request.rule {
        counts_only::<T>(data.summary())?;
    }
    match request.rule {
        Rule::Poisson => data.visit(&mut |index, v| {
            let p = model.cell(index);
            sums.value += v * p.ln();
            sums.add(index, v / p.max(T::TINY.to_f64()));
        })?,
        Rule::Gradient => data.visit(&mut |index, v| {
            let p = model.cell(index);
            sums.value += v * p.ln();
            sums.add_gradient(index, v / p.max(T::TINY.to_f64()));
        })?,
        Rule::Exposure => for_each_observed(data, &mut |index, _| {
            sums.value += model.cell(index);
            sums.add(index, 1.0);
        })?,
        Rule::Cell(rule) => {
            let mut cell = |index: &[usize], v: f64| {
                let (v, p) = ([T::lit(v)], [T::lit(model.cell(index))]);
                if request.value {
                    sums.value += rule.value(&v, &p);
                }
                let mut q = p;
                rule.ratios(&v, &mut q);
                sums.add(index, q[0].to_f64());
            };
            match rule.zero_is_inert() {
                true => data.visit(&mut cell)?,
                false => for_each_observed(data, &mut cell)?,
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
