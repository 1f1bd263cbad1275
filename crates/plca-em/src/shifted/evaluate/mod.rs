//! The E-step of shifted models, by different arithmetic.

mod cells;
mod direct;
#[cfg(feature = "fft")]
mod fft;
mod list;
mod matrix;
mod sparse;

use plca_tensor::parallel::both;
pub(crate) use plca_tensor::shift::sum_of;
use plca_tensor::shift::{self, Folded, cost};
use plca_tensor::{Data, DataError, Real};

use super::Evaluation;
use super::window::Window;

pub(crate) use cells::Cells;
pub(crate) use direct::Direct;
#[cfg(feature = "fft")]
pub(crate) use fft::Fft;
pub(crate) use matrix::Matrix;
pub(crate) use sparse::Sparse;

/// Weights, kernels and impulses, component after component.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a, T> {
    /// `P(z)`.
    pub(crate) weights: &'a [T],
    /// Of a folded model `[z][c][t]`.
    pub(crate) kernels: &'a [T],
    /// Of a folded model `[z][d][h]`.
    pub(crate) impulses: &'a [T],
    /// What of a folded model lies in the data's window; `None` if all of it does.
    pub(crate) window: Option<&'a Window>,
}

impl<'a, T> Parts<'a, T> {
    /// Kernels and impulses.
    pub(crate) fn blocks(&self) -> [&'a [T]; 2] {
        [self.kernels, self.impulses]
    }

    /// What sums are made of.
    pub(crate) fn linear(&self) -> shift::Parts<'a, T> {
        shift::Parts {
            weights: self.weights,
            kernels: self.kernels,
            impulses: self.impulses,
        }
    }

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
            window: None,
        }
    }

    /// `Σ P` over the window.
    pub(crate) fn window_mass(&self) -> f64 {
        self.window.map_or(1.0, |w| w.mass)
    }
}

/// What an E-step shall return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Counts of kernels and of impulses.
    pub(crate) blocks: [bool; 2],
    pub(crate) ln_lik: bool,
    /// Whether counts are those of complete data, what is hidden or outside being as the model has it; of the observed cells alone otherwise.
    pub(crate) imputed: bool,
}

/// What a model makes of the observed cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// `Σ V ln P` over observed positive cells; `-inf` if one of them has `P = 0`; 0 if not asked for.
    pub(crate) ln_lik: f64,
    /// `Σ P` over the observed cells.
    pub(crate) seen: f64,
    /// An observed positive cell has `P = 0`, so that the counts mean nothing.
    pub(crate) lost: bool,
}

/// Expected counts over the window, hidden cells imputed, in the layout of [`Parts`].
pub(crate) struct Counts<T> {
    /// The counts are those of the data times this power of two, so that the unit of the data loses none of them.
    pub(crate) scale: f64,
    /// Of kernels and of impulses; empty if not wanted.
    pub(crate) blocks: [Vec<T>; 2],
    pub(crate) measured: Measured,
}

impl<T: Real> Counts<T> {
    /// Counts from the sums over the ratios of kernels (side 0) and impulses (side 1), each computed where it is wanted; `scale` is that of the
    /// ratios.
    pub(crate) fn assemble(
        model: &Parts<'_, T>,
        wanted: Wanted,
        scale: f64,
        measured: Measured,
        sums: impl Fn(usize) -> Vec<T> + Sync,
    ) -> Self {
        let counts = |side: usize| {
            let (mut counts, block) = (sums(side), model.blocks()[side]);
            let cells = block.len() / model.weights.len();
            let blocks = block.chunks_exact(cells).zip(model.weights);
            for (counts, (block, &w)) in counts.chunks_exact_mut(cells).zip(blocks) {
                // [SI eq. 7] [SI eq. 12] [SPEC 5.1] C = P(z) K ∘ sums, P(z) H ∘ sums
                counts.iter_mut().zip(block).for_each(|(c, &b)| *c *= w * b);
            }
            counts
        };
        let blocks: [Vec<T>; 2] = match wanted.blocks {
            [true, true] => both(|| counts(0), || counts(1)).into(),
            [true, false] => [counts(0), Vec::new()],
            [false, true] => [Vec::new(), counts(1)],
            [false, false] => [Vec::new(), Vec::new()],
        };
        Self {
            scale,
            blocks,
            measured,
        }
    }
}

/// One way to compute the E-step
///
/// ```math
/// \begin{aligned}
/// \mathit{CK}[z,c,t] &= P(z) \, K[z,c,t] \sum_{d,x} Q[c,d,x] \, H[z,d,x-t+o] \\
/// \mathit{CH}[z,d,h] &= P(z) \, H[z,d,h] \sum_{c,t} K[z,c,t] \, Q[c,d,h+t-o]
/// \end{aligned}
/// ```
///
/// with `Q = V/P` where `V > 0`, 0 where `V = 0`, and `v_obs / Σ_obs P` where hidden, if that is imputed.
pub(crate) trait Engine<T: Real>: std::fmt::Debug + Send + Sync {
    fn expect(&self, model: &Parts<'_, T>, wanted: Wanted) -> Counts<T>;

    /// Whether small counts have the rounding of large ones.
    fn mixes(&self) -> bool {
        false
    }
}

/// The engine asked for, which must be available, or the one that should be fastest.
pub(crate) fn choose<T: Real>(
    folded: &Folded,
    components: usize,
    evaluation: Evaluation,
    data: &dyn Data<T>,
) -> Result<Box<dyn Engine<T>>, DataError> {
    let f = folded;
    let less = |a: &(f64, _), b: &(f64, _)| a.0.total_cmp(&b.0);
    let (by_matrix, stack) = cost::stack::<T>(f, components);
    #[cfg(feature = "fft")]
    let (by_fft, transformed) = cost::transformed(f, components);
    let listed = list::listed(data)?;
    let fastest = [
        (cost::sparse::<T>(f, components, listed), Evaluation::Sparse),
        (cost::direct::<T>(f, components), Evaluation::Direct),
        (by_matrix, Evaluation::Matrix),
        #[cfg(feature = "fft")]
        (by_fft, Evaluation::Fft),
    ];
    let evaluation = match evaluation {
        Evaluation::Auto => (fastest.into_iter().min_by(less)).map_or(Evaluation::Direct, |f| f.1),
        given => given,
    };
    let engine: Option<Box<dyn Engine<T>>> = match evaluation {
        Evaluation::Matrix => Matrix::new(f, stack, data)?.map(|m| Box::new(m) as _),
        #[cfg(feature = "fft")]
        Evaluation::Fft => Some(Box::new(Fft::new(f, transformed, data)?)),
        Evaluation::Sparse => Some(Box::new(Sparse::new(f, data)?)),
        _ => None,
    };
    Ok(match engine {
        Some(engine) => engine,
        None => Box::new(Direct::new(f, data)?),
    })
}
