//! Shifted models in the layout of their blocks: a column for each component.

use std::sync::Arc;

use plca_tensor::shift::{Folded, advance, direct};
use plca_tensor::{Data, DataError, Real};

use super::evaluate::{self, Counts, Engine, Parts, Wanted};
use super::geometry::Geometry;
use super::window::{Window, impute_outside};
use super::{Evaluation, Likelihood};
use crate::placed::{Placement, Placing};

/// A shifted model on data of one shape.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) geometry: Geometry,
    folded: Folded,
}

impl Layout {
    pub(crate) fn new(geometry: Geometry) -> Self {
        Self {
            folded: geometry.folded(),
            geometry,
        }
    }

    /// For blocks under which every copy with a share lies inside the data.
    pub(crate) fn inside(geometry: Geometry) -> Self {
        let mut layout = Self::new(geometry);
        layout.folded.inside = true;
        layout
    }

    /// Calls `f` with the model in folded blocks.
    fn with_folded<T: Real, O>(&self, at: Parts<'_, T>, f: impl FnOnce(&Parts<'_, T>) -> O) -> O {
        let kernels = self.folded.fold(0, at.kernels);
        let impulses = self.folded.fold(1, at.impulses);
        let window = || Window::new(&self.folded, at.weights, &kernels, &impulses);
        let window = self.leaves().then(window);
        f(&Parts {
            weights: at.weights,
            kernels: &kernels,
            impulses: &impulses,
            window: window.as_ref(),
        })
    }
}

impl Placement for Layout {
    fn shape(&self) -> &[usize] {
        self.geometry.data_shape()
    }

    fn sizes(&self) -> [usize; 2] {
        self.geometry.cells()
    }

    fn leaves(&self) -> bool {
        !(self.folded.inside || self.geometry.is_valid())
    }

    fn inside<T: Real>(&self, at: Parts<'_, T>) -> f64 {
        self.with_folded(at, |model| model.window_mass())
    }

    fn cells<T: Real>(&self, at: Parts<'_, T>) -> Vec<T> {
        let f = &self.folded;
        let p = self.with_folded(at, |model| direct::model(f, &model.linear()));
        let shape = self.shape();
        let mut index = vec![0; shape.len()];
        let mut out = Vec::with_capacity(p.len());
        loop {
            let [c, d, x] = f.cell(&index);
            out.push(p[(c * f.lanes + d) * f.positions() + x]);
            if !advance(&mut index, shape) {
                return out;
            }
        }
    }

    /// As the model is written.
    fn cell<T: Real>(&self, at: Parts<'_, T>, index: &[usize]) -> f64 {
        let g = &self.geometry;
        let (taps, places) = (g.kernel_cells(), g.impulse_cells());
        let mut t = vec![0; index.len()];
        let mut p = 0.0;
        for tap in 0..taps {
            // [SI eq. 6] [SI eq. 11] [SPEC 5.1] h = x - t + o
            let place = (0..t.len()).try_fold(0, |place, d| {
                let h = (index[d] + g.offset()[d]).checked_sub(t[d])?;
                (h < g.impulse_shape()[d]).then(|| place * g.impulse_shape()[d] + h)
            });
            if let Some(place) = place {
                for (z, w) in at.weights.iter().enumerate() {
                    let kernel = at.kernels[z * taps + tap].to_f64();
                    p += w.to_f64() * (kernel * at.impulses[z * places + place].to_f64());
                }
            }
            advance(&mut t, g.kernel_shape());
        }
        p
    }
}

/// The E-step of shifted models on data.
#[derive(Clone, Debug)]
pub(crate) struct Evaluator<T: Real> {
    layout: Layout,
    likelihood: Likelihood,
    engine: Arc<dyn Engine<T>>,
    total: f64,
}

impl<T: Real> Evaluator<T> {
    pub(crate) fn new(
        layout: Layout,
        likelihood: Likelihood,
        evaluation: Evaluation,
        components: usize,
        data: &dyn Data<T>,
    ) -> Result<Self, DataError> {
        let engine = evaluate::choose(&layout.folded, components, evaluation, data)?;
        Ok(Self {
            layout,
            likelihood,
            engine: engine.into(),
            total: data.total(),
        })
    }
}

impl<T: Real> Placing<T> for Evaluator<T> {
    fn unmixed(&self, data: &dyn Data<T>) -> Result<Option<Self>, DataError> {
        let direct = || {
            let layout = self.layout.clone();
            Self::new(layout, self.likelihood, Evaluation::Direct, 1, data)
        };
        self.engine.mixes().then(direct).transpose()
    }

    fn cell(&self, at: Parts<'_, T>, index: &[usize]) -> f64 {
        self.layout.cell(at, index)
    }

    fn expect(&self, at: Parts<'_, T>, wanted: Wanted) -> Counts<T> {
        let counts = self.layout.with_folded(at, |model| {
            let mut counts = self.engine.expect(model, wanted);
            let outside = model.window.is_some() && self.likelihood == Likelihood::Conditional;
            if wanted.imputed && outside {
                // [SPEC 4] [SPEC 5.2] s = v / Σ_obs P
                let s = self.total * counts.scale / counts.measured.seen;
                for (side, counts) in counts.blocks.iter_mut().enumerate() {
                    impute_outside(&self.layout.folded, side, counts, model, s);
                }
            }
            counts
        });
        let (folded, [kernels, impulses]) = (&self.layout.folded, counts.blocks);
        Counts {
            blocks: [folded.unfold(0, kernels), folded.unfold(1, impulses)],
            ..counts
        }
    }
}
