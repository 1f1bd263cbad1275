//! Shifted models by Fourier transforms, always in double precision. Counts are products with the old parameters, whose exact zeros stay.

use plca_tensor::shift::{Folded, Transforms, direct};
use plca_tensor::{Data, DataError, Real};

use super::cells::Cells;
use super::{Counts, Engine, Parts, Wanted};

/// Relative error of `Σ P` over the observed cells that is allowed.
const SOUND: f64 = 1e-12;

/// Data as transforms need them.
#[derive(Debug)]
pub(crate) struct Fft {
    folded: Folded,
    transforms: Transforms,
    cells: Cells<f64>,
    /// Number of positive cells.
    positive: usize,
}

impl Fft {
    pub(crate) fn new<T: Real>(
        folded: &Folded,
        transformed: usize,
        data: &dyn Data<T>,
    ) -> Result<Self, DataError> {
        let cells = Cells::new(folded, data)?;
        Ok(Self {
            folded: folded.clone(),
            positive: cells.values.iter().filter(|v| **v > 0.0).count(),
            cells,
            transforms: Transforms::new(folded, transformed),
        })
    }

    /// The error that transforms make of the sum of `P` over all cells.
    fn error_of_sum(&self, model: &Parts<'_, f64>) -> f64 {
        let (k, f) = (model.weights.len(), &self.folded);
        let norm = |block: &[f64]| block.iter().map(|x| x * x).sum::<f64>().sqrt();
        // [SPEC 5.6] ε (1 + log2 L) Σ_z P(z) |K|_2 |H|_2 for every cell of a channel and lane
        let parts = model.kernels.chunks_exact(model.kernels.len() / k);
        let parts = parts.zip(model.impulses.chunks_exact(model.impulses.len() / k));
        let terms = parts.zip(model.weights).map(|((kernels, impulses), w)| {
            let norms = |block: &[f64], cells| block.chunks_exact(cells).map(norm).sum::<f64>();
            w * norms(kernels, f.taps()) * norms(impulses, f.places())
        });
        // Lengths with what must not wrap around, and the next fast ones.
        let sizes = (0..f.size.len()).map(|d| 2 * (f.size[d] + f.kernel[d] + f.impulse[d]));
        let length = sizes.map(|n| n as f64).product::<f64>();
        f64::EPSILON * (1.0 + length.log2()) * f.positions() as f64 * terms.sum::<f64>()
    }

    fn expect_f64(&self, model: &Parts<'_, f64>, wanted: Wanted) -> Counts<f64> {
        let (cells, linear) = (&self.cells, model.linear());
        let mut b = self.transforms.take();
        let positive = |v| v > 0.0;
        self.transforms
            .model(&linear, &cells.values, positive, self.positive, &mut b);
        // Cells without data are not recomputed one by one, and where little of the model was observed their rounding is all that they have.
        let seen = cells.seen(&b.p);
        if seen.is_some_and(|seen| self.error_of_sum(model) > SOUND * seen) {
            b.p = direct::model(&self.folded, &linear);
        }
        let measured = cells.ratios(&mut b.p, wanted, model.window_mass());
        if wanted.blocks != [false; 2] {
            self.transforms
                .prepare(&linear, cells.total * cells.scale, &mut b);
        }
        let sums = |side| self.transforms.sums(&linear, &b, side, false);
        let counts = Counts::assemble(model, wanted, cells.scale, measured, sums);
        self.transforms.give(b);
        counts
    }
}

impl<T: Real> Engine<T> for Fft {
    fn mixes(&self) -> bool {
        true
    }

    fn expect(&self, model: &Parts<'_, T>, wanted: Wanted) -> Counts<T> {
        let double = |block: &[T]| -> Vec<f64> { block.iter().map(|x| x.to_f64()).collect() };
        let single = |block: Vec<f64>| -> Vec<T> { block.into_iter().map(T::lit).collect() };
        let (weights, kernels) = (double(model.weights), double(model.kernels));
        let impulses = double(model.impulses);
        let counts = self.expect_f64(
            &Parts {
                weights: &weights,
                kernels: &kernels,
                impulses: &impulses,
                window: model.window,
            },
            wanted,
        );
        Counts {
            scale: counts.scale,
            blocks: counts.blocks.map(single),
            measured: counts.measured,
        }
    }
}
