//! Shifted models in the layout of their blocks: a column for each component.

use std::sync::Arc;

use plca_tensor::{Data, DataError, Real};

use super::evaluate::{self, Counts, Direct, Engine, Parts, Wanted};
use super::folded::Folded;
use super::geometry::{Geometry, advance};
use super::window::Window;
use super::{Evaluation, Likelihood};
use crate::placed::Placing;

/// Weights, kernels and impulses, component after component.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns<'a, T> {
    pub(crate) weights: &'a [T],
    pub(crate) kernels: &'a [T],
    pub(crate) impulses: &'a [T],
}

impl<'a, T: Real> Columns<'a, T> {
    /// The same of one component.
    pub(crate) fn component(self, z: usize) -> Self {
        let k = self.weights.len();
        let of = |block: &'a [T]| {
            let cells = block.len() / k;
            &block[z * cells..][..cells]
        };
        Self {
            weights: of(self.weights),
            kernels: of(self.kernels),
            impulses: of(self.impulses),
        }
    }

    /// The blocks as they are, for a model that has no other layout.
    pub(crate) fn parts(self) -> Parts<'a, T> {
        Parts {
            weights: self.weights,
            kernels: self.kernels,
            impulses: self.impulses,
            window: None,
        }
    }
}

/// A shifted model on data of one shape.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) geometry: Geometry,
    folded: Folded,
}

/// Folded copies of kernels and impulses, and how much of the model is in the window.
struct Folds<'a, T> {
    weights: &'a [T],
    kernels: Vec<T>,
    impulses: Vec<T>,
    window: Option<Window>,
}

impl<T> Folds<'_, T> {
    fn parts(&self) -> Parts<'_, T> {
        Parts {
            weights: self.weights,
            kernels: &self.kernels,
            impulses: &self.impulses,
            window: self.window.as_ref(),
        }
    }
}

impl Layout {
    pub(crate) fn new(geometry: Geometry) -> Self {
        Self {
            folded: Folded::new(&geometry),
            geometry,
        }
    }

    fn fold<'a, T: Real>(&self, at: Columns<'a, T>) -> Folds<'a, T> {
        let kernels = self.folded.fold_kernels(at.kernels);
        let impulses = self.folded.fold_impulses(at.impulses);
        let outside = !self.geometry.is_valid();
        let window = || Window::new(&self.folded, at.weights, &kernels, &impulses);
        Folds {
            window: outside.then(window),
            weights: at.weights,
            kernels,
            impulses,
        }
    }

    /// `Σ_x P(x)` over the window of the data: 1 if all supports are valid.
    pub(crate) fn window_mass<T: Real>(&self, at: Columns<'_, T>) -> f64 {
        self.fold(at).parts().window_mass()
    }

    /// `P` of all cells, in row-major order.
    pub(crate) fn cells<T: Real>(&self, at: Columns<'_, T>) -> Vec<T> {
        let f = &self.folded;
        let folds = self.fold(at);
        let p = Direct::model(f, &folds.parts());
        let shape = self.geometry.data_shape();
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

    /// `P` at one cell, as the model is written.
    pub(crate) fn cell<T: Real>(&self, at: Columns<'_, T>, index: &[usize]) -> f64 {
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
    pub(crate) layout: Layout,
    pub(crate) likelihood: Likelihood,
    engine: Arc<dyn Engine<T>>,
    complete: bool,
    total: f64,
}

impl<T: Real> Evaluator<T> {
    pub(crate) fn new(
        geometry: Geometry,
        likelihood: Likelihood,
        evaluation: Evaluation,
        components: usize,
        data: &dyn Data<T>,
    ) -> Result<Self, DataError> {
        let layout = Layout::new(geometry);
        let engine = evaluate::choose(&layout.folded, components, evaluation, data)?;
        Ok(Self {
            layout,
            likelihood,
            engine: engine.into(),
            complete: data.is_complete(),
            total: data.total(),
        })
    }
}

impl<T: Real> Placing<T> for Evaluator<T> {
    fn total(&self) -> f64 {
        self.total
    }

    fn is_conditional(&self) -> bool {
        let outside =
            !self.layout.geometry.is_valid() && self.likelihood == Likelihood::Conditional;
        outside || !self.complete
    }

    fn cell(&self, at: Columns<'_, T>, index: &[usize], _: &[usize]) -> f64 {
        self.layout.cell(at, index)
    }

    fn expect(&self, at: Columns<'_, T>, wanted: Wanted) -> Counts<T> {
        let folds = self.layout.fold(at);
        let mut counts = self.engine.expect(&folds.parts(), wanted);
        if let (Some(window), Likelihood::Conditional) = (&folds.window, self.likelihood) {
            // [SPEC 4] [SPEC 5.2] s = v / Σ_obs P
            let s = self.total * counts.scale / counts.measured.seen;
            let Counts {
                kernels, impulses, ..
            } = &mut counts;
            if wanted.kernels {
                Window::impute_outside(kernels, &folds.kernels, at.weights, &window.taps, s);
            }
            if wanted.impulses {
                Window::impute_outside(impulses, &folds.impulses, at.weights, &window.places, s);
            }
        }
        let folded = &self.layout.folded;
        Counts {
            kernels: folded.unfold_kernels(counts.kernels),
            impulses: folded.unfold_impulses(counts.impulses),
            ..counts
        }
    }
}
