//! How much of a model lies within the window of the data.

use plca_tensor::Real;
use plca_tensor::shift::Folded;

use super::evaluate::Parts;

/// Shares of kernels and impulses that fall into the window.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// `Σ_h H[z,·,h]` over the places that bring tap `t` into the window, `[z][t]`, and `Σ_t K[z,·,t]` over the taps that place `h` brings
    /// into it, `[z][h]`.
    pub(crate) shares: [Vec<f64>; 2],
    /// `Σ P` over the window.
    pub(crate) mass: f64,
}

impl Window {
    pub(crate) fn new<T: Real>(f: &Folded, weights: &[T], kernels: &[T], impulses: &[T]) -> Self {
        let (nt, nh) = (f.taps(), f.places());
        let (mut taps, mut places, mut mass) = (Vec::new(), Vec::new(), 0.0);
        for (z, weight) in weights.iter().enumerate() {
            let kernel = summed(&kernels[z * f.channels * nt..][..f.channels * nt], nt);
            let impulse = summed(&impulses[z * f.lanes * nh..][..f.lanes * nh], nh);
            let t = boxes(f, &impulse, &f.impulse, &f.kernel);
            let h = boxes(f, &kernel, &f.kernel, &f.impulse);
            let inside: f64 = kernel.iter().zip(&t).map(|(k, s)| k * s).sum();
            mass += weight.to_f64() * inside;
            taps.extend(t);
            places.extend(h);
        }
        let shares = [taps, places];
        Self { shares, mass }
    }

    /// Adds `s` times the model's counts outside the window, where nothing was observed, to those of kernels (side 0) or impulses.
    pub(crate) fn impute_outside<T: Real>(
        &self,
        side: usize,
        counts: &mut [T],
        model: &Parts<'_, T>,
        s: f64,
    ) {
        let (block, shares) = (model.blocks()[side], &self.shares[side]);
        let k = model.weights.len();
        let (cells, per_component) = (shares.len() / k, block.len() / k);
        let weights = model.weights.iter().zip(shares.chunks_exact(cells));
        let columns = counts.chunks_exact_mut(per_component);
        let columns = columns.zip(block.chunks_exact(per_component));
        for ((counts, block), (weight, inside)) in columns.zip(weights) {
            let scale = s * weight.to_f64();
            let lines = counts.chunks_exact_mut(cells);
            for (counts, block) in lines.zip(block.chunks_exact(cells)) {
                for ((c, &b), &inside) in counts.iter_mut().zip(block).zip(inside) {
                    // [SPEC 4] [SPEC 5.2] V = s P where nothing was observed
                    *c += T::lit(scale * b.to_f64() * (1.0 - inside).max(0.0));
                }
            }
        }
    }
}

/// Sum over channels or lanes.
fn summed<T: Real>(block: &[T], cells: usize) -> Vec<f64> {
    let mut sums = vec![0.0; cells];
    for part in block.chunks_exact(cells) {
        sums.iter_mut()
            .zip(part)
            .for_each(|(s, x)| *s += x.to_f64());
    }
    sums
}

/// `out[b] = Σ_a values[a]` over `0 <= a + b - o < I` in every dimension, one dimension after the other.
fn boxes(f: &Folded, values: &[f64], from: &[usize], to: &[usize]) -> Vec<f64> {
    let mut now = values.to_vec();
    for d in 0..from.len() {
        let outer: usize = to[..d].iter().product();
        let inner: usize = from[d + 1..].iter().product();
        let (n, m, o, size) = (from[d], to[d], f.offset[d], f.size[d]);
        let mut next = vec![0.0; outer * m * inner];
        let mut prefix = vec![0.0; n + 1];
        for a in 0..outer {
            for c in 0..inner {
                for i in 0..n {
                    prefix[i + 1] = prefix[i] + now[(a * n + i) * inner + c];
                }
                for b in 0..m {
                    let (low, high) = (o.saturating_sub(b), (size + o).saturating_sub(b).min(n));
                    if low < high {
                        next[(a * m + b) * inner + c] = prefix[high] - prefix[low];
                    }
                }
            }
        }
        now = next;
    }
    now
}
