//! What rounding does to results of transforms, and its repair.

use super::direct::{Direct, cell};
use super::{Fft, Parts};
use crate::shifted::parallel::for_each_part;

/// `P` below this many times its error bound is recomputed: relative errors stay below 1e-10.
const GUARD: f64 = 1e9;
/// If more positive cells than one in this many are to be recomputed, all are.
const MANY: usize = 20;

impl Fft {
    /// Recomputes what rounding may have spoilt, and clears the rest of negative values.
    pub(super) fn guard(&self, model: &Parts<'_, f64>, p: &mut Vec<f64>) {
        let f = &self.folded;
        let cells = f.positions();
        let bounds = self.error_bounds(model);
        let small = |at: usize, p: f64| self.cells.values[at] > 0.0 && p < bounds[at / cells];
        let few = p
            .iter()
            .enumerate()
            .filter(|&(at, &p)| small(at, p))
            .count();
        if few * MANY > self.positive {
            *p = Direct::model(f, model);
            return;
        }
        const PART: usize = 1024;
        for_each_part(p, PART, |part, p| {
            for (at, p) in (part * PART..).zip(p) {
                if small(at, *p) {
                    *p = cell(
                        f,
                        model,
                        [at / cells / f.lanes, at / cells % f.lanes, at % cells],
                    );
                } else if *p < 0.0 {
                    *p = 0.0;
                }
            }
        });
    }

    /// [`GUARD`] times the error to be expected of `P`, for every channel and lane.
    fn error_bounds(&self, model: &Parts<'_, f64>) -> Vec<f64> {
        let f = &self.folded;
        let norms = |block: &[f64], cells: usize| -> Vec<f64> {
            let squares = block
                .chunks_exact(cells)
                .map(|b| b.iter().map(|x| x * x).sum::<f64>());
            squares.map(f64::sqrt).collect()
        };
        let kernels = norms(model.kernels, f.taps());
        let impulses = norms(model.impulses, f.places());
        // [SPEC 5.6] ε (1 + log2 L) Σ_z P(z) |K|_2 |H|_2
        let unit = GUARD * f64::EPSILON * (1.0 + (self.plan.cells() as f64).log2());
        let bound = |at: usize| {
            let (c, d) = (at / f.lanes, at % f.lanes);
            let of =
                |(z, w): (usize, &f64)| w * kernels[z * f.channels + c] * impulses[z * f.lanes + d];
            unit * model.weights.iter().enumerate().map(of).sum::<f64>()
        };
        (0..f.channels * f.lanes).map(bound).collect()
    }
}
