//! Shifted models by Fourier transforms, always in double precision. Counts are products with the old parameters, whose exact zeros stay.

use plca_tensor::shift::{Folded, Transforms};
use plca_tensor::{Data, DataError, Real};

use super::cells::Cells;
use super::{Counts, Engine, Parts, Wanted};

/// Data as transforms need them.
#[derive(Debug)]
pub(crate) struct Fft {
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
            positive: cells.values.iter().filter(|v| **v > 0.0).count(),
            cells,
            transforms: Transforms::new(folded, transformed),
        })
    }

    fn expect_f64(&self, model: &Parts<'_, f64>, wanted: Wanted) -> Counts<f64> {
        let (cells, linear) = (&self.cells, model.linear());
        let mut b = self.transforms.take();
        let positive = |v| v > 0.0;
        self.transforms
            .model(&linear, &cells.values, positive, self.positive, &mut b);
        let measured = cells.ratios(&mut b.p, wanted.ln_lik, model.window_mass());
        if wanted.blocks != [false; 2] {
            self.transforms
                .prepare(&linear, cells.total * cells.scale, &mut b);
        }
        let sums = |side| self.transforms.sums(&linear, &b, side, 0.0);
        let counts = Counts::assemble(model, wanted, cells.scale, measured, sums);
        self.transforms.give(b);
        counts
    }
}

impl<T: Real> Engine<T> for Fft {
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
