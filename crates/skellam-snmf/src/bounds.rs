//! A bound on the sums of what carries the scale of noisy real data.

use std::borrow::Cow;

use nalgebra::DMatrix;
use plca_fit::blocks::{Axis, BlockSpec, Frozen};
use plca_tensor::Real;

/// What free entries of a block sum to at most.
#[derive(Clone, Debug, Default)]
pub(crate) enum Bounds {
    #[default]
    None,
    /// All of them.
    All(f64),
    /// Those of every column.
    Columns(Vec<f64>),
    /// Those of every row.
    Rows(Vec<f64>),
}

impl Bounds {
    /// Scales down what sums to more: applied to counts, the M-step under the bound; applied to a point, the nearest allowed multiple of it. Frozen entries are left alone.
    ///
    /// ```math
    /// h \gets h \min \left( 1, \frac{B}{\sum h} \right)
    /// ```
    pub(crate) fn hold<T: Real>(&self, block: &mut DMatrix<T>, spec: &BlockSpec<T>) {
        self.hold_in(1.0, block, spec);
    }

    /// The same of counts in this unit.
    pub(crate) fn hold_in<T: Real>(&self, unit: f64, block: &mut DMatrix<T>, spec: &BlockSpec<T>) {
        let (rows, columns) = block.shape();
        let is_free = |i: usize, j: usize| match &spec.frozen {
            Frozen::No => true,
            Frozen::Whole => false,
            Frozen::Entries(flags) => !flags[(i, j)],
            Frozen::Components(components) => !components.contains(match spec.axes.components() {
                Axis::Rows => &i,
                Axis::Columns | Axis::None => &j,
            }),
        };
        let most = match self {
            Self::None => return,
            Self::All(most) => std::slice::from_ref(most),
            Self::Columns(most) | Self::Rows(most) => most,
        };
        let group = |i: usize, j: usize| match self {
            Self::Columns(_) => j,
            Self::Rows(_) => i,
            _ => 0,
        };
        let mut sums = vec![0.0; most.len()];
        for j in 0..columns {
            for i in (0..rows).filter(|&i| is_free(i, j)) {
                sums[group(i, j)] += block[(i, j)].to_f64();
            }
        }
        // What was scaled down may be above by rounding: of every entry in its scalar, of the sum in double precision.
        let slack = 1.0 + 4.0 * T::EPSILON.to_f64() + (rows * columns) as f64 * f64::EPSILON;
        let parts = sums.iter().zip(most).map(|(&sum, &most)| {
            let most = most / unit;
            // [SKELLAM 13] h <- h min(1, B / Σ h)
            if sum > most * slack { most / sum } else { 1.0 }
        });
        let parts: Vec<f64> = parts.collect();
        if parts.iter().all(|&part| part == 1.0) {
            return;
        }
        for j in 0..columns {
            for i in (0..rows).filter(|&i| is_free(i, j)) {
                block[(i, j)] *= T::lit(parts[group(i, j)]);
            }
        }
    }

    /// A point within the bound.
    pub(crate) fn held<'a, T: Real>(
        &self,
        block: &'a DMatrix<T>,
        spec: &BlockSpec<T>,
    ) -> Cow<'a, DMatrix<T>> {
        if matches!(self, Self::None) {
            return Cow::Borrowed(block);
        }
        let mut held = block.clone();
        self.hold(&mut held, spec);
        Cow::Owned(held)
    }

    /// The bounds of sums of absolute values, each over this number of observed cells of `all`.
    pub(crate) fn of(sums: &[f64], observed: &[usize], all: usize, most: f64) -> Vec<f64> {
        let each = sums.iter().zip(observed);
        let each = each.map(|(&sum, &observed)| match observed {
            0 => f64::INFINITY,
            _ => most * sum * (all as f64 / observed as f64),
        });
        each.collect()
    }
}

/// What a state remembers of the noise and the bound that were taken.
pub(crate) fn facts(noise: f64, bounds: &Bounds, most: f64) -> Vec<(&'static str, Vec<f64>)> {
    let bound = (!matches!(bounds, Bounds::None)).then(|| ("bound", vec![most]));
    let noise = (noise > 0.0).then(|| ("noise", vec![noise]));
    bound.into_iter().chain(noise).collect()
}
