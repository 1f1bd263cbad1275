//! How much of a model lies within the window of the data.
//!
//! Next to nothing may lie inside, or outside: a difference of larger sums would be rounding then. All sums here are of numbers that are not
//! negative, so that each has its own digits.

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
        let k = weights.len();
        let shares = [(0, impulses), (1, kernels)].map(|(side, others)| {
            let others = others.chunks_exact(others.len() / k);
            let inside = others.map(|others| boxes(f, side, others, false).0);
            inside.flatten().collect::<Vec<_>>()
        });
        let nt = f.taps();
        let parts = kernels.chunks_exact(f.channels * nt).zip(weights);
        let parts = parts.zip(shares[0].chunks_exact(nt));
        let mass = parts.map(|((kernel, weight), shares)| {
            let taps = summed(kernel, nt);
            let inside: f64 = taps.iter().zip(shares).map(|(k, s)| k * s).sum();
            weight.to_f64() * inside
        });
        Self {
            mass: mass.sum(),
            shares,
        }
    }
}

/// Adds `s` times the model's counts outside the window, where nothing was observed, to those of kernels (side 0) or impulses.
pub(crate) fn impute_outside<T: Real>(
    f: &Folded,
    side: usize,
    counts: &mut [T],
    model: &Parts<'_, T>,
    s: f64,
) {
    let (block, others) = (model.blocks()[side], model.blocks()[1 - side]);
    let k = model.weights.len();
    let (per_component, per_other) = (block.len() / k, others.len() / k);
    let others = others.chunks_exact(per_other).zip(model.weights);
    let columns = counts.chunks_exact_mut(per_component);
    let columns = columns.zip(block.chunks_exact(per_component));
    for ((counts, block), (others, weight)) in columns.zip(others) {
        let scale = s * weight.to_f64();
        let outside = boxes(f, side, others, true).1;
        let lines = counts.chunks_exact_mut(outside.len());
        for (counts, block) in lines.zip(block.chunks_exact(outside.len())) {
            for ((c, &b), outside) in counts.iter_mut().zip(block).zip(&outside) {
                // [SPEC 4] [SPEC 5.2] V = s P where nothing was observed
                *c += T::lit(scale * b.to_f64() * outside);
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

/// What a component has of the other side, summed over its lines: for every tap (side 0) over the places that bring it into the window,
/// `0 <= t + h - o < I` in every dimension, and, if it is asked for, over those that do not; for every place the same over the taps.
fn boxes<T: Real>(f: &Folded, side: usize, others: &[T], beyond: bool) -> (Vec<f64>, Vec<f64>) {
    let (to, from) = (f.side(side).shape, f.side(1 - side).shape);
    let mut inside = summed(others, from.iter().product());
    let mut outside = vec![0.0];
    let mut line = Line::default();
    for d in 0..from.len() {
        let outer: usize = to[..d].iter().product();
        let inner: usize = from[d + 1..].iter().product();
        let (n, m, o, size) = (from[d], to[d], f.offset[d], f.size[d]);
        let mut next = vec![0.0; outer * m * inner];
        // Outside along an earlier dimension, or inside along those and outside along this one.
        let mut lost: Vec<f64> = (outside.iter())
            .flat_map(|&x| std::iter::repeat_n(x, m))
            .collect();
        for a in 0..outer {
            for c in 0..inner {
                line.fill((0..n).map(|i| inside[(a * n + i) * inner + c]), size);
                for b in 0..m {
                    let (low, high) = (o.saturating_sub(b), (size + o).saturating_sub(b).min(n));
                    next[(a * m + b) * inner + c] = line.within(low, high);
                    if beyond {
                        lost[a * m + b] += line.without(low, high);
                    }
                }
            }
        }
        (inside, outside) = (next, lost);
    }
    (inside, outside)
}

/// Sums of a line of numbers over ranges of at most one length, cut at its multiples: a range is the end of one piece and the beginning of the next.
#[derive(Debug, Default)]
struct Line {
    length: usize,
    /// From the beginning of the piece, and from that of the line, to before `i`.
    behind: [Vec<f64>; 2],
    /// From `i` to the end of the piece, and to that of the line.
    ahead: [Vec<f64>; 2],
}

impl Line {
    fn fill(&mut self, values: impl ExactSizeIterator<Item = f64> + Clone, length: usize) {
        let n = values.len();
        self.length = length;
        for sums in self.behind.iter_mut().chain(&mut self.ahead) {
            sums.clear();
            sums.resize(n + 1, 0.0);
        }
        let [piece, all] = &mut self.behind;
        let [rest, left] = &mut self.ahead;
        for (i, x) in values.enumerate() {
            let first = i.is_multiple_of(length);
            piece[i + 1] = x + if first { 0.0 } else { piece[i] };
            all[i + 1] = x + all[i];
            rest[i] = x;
        }
        for i in (0..n).rev() {
            left[i] = rest[i] + left[i + 1];
            if !(i + 1).is_multiple_of(length) {
                rest[i] += rest[i + 1];
            }
        }
    }

    /// Over `low..high`, which is as long as a piece unless it is cut off at an end of the line.
    fn within(&self, low: usize, high: usize) -> f64 {
        if low >= high {
            return 0.0;
        }
        let [behind, ahead] = [self.behind[0][high], self.ahead[0][low]];
        match low / self.length == (high - 1) / self.length {
            true if low.is_multiple_of(self.length) => behind,
            true => ahead,
            false => ahead + behind,
        }
    }

    /// Over all else.
    fn without(&self, low: usize, high: usize) -> f64 {
        match low < high {
            true => self.behind[1][low] + self.ahead[1][high],
            false => self.ahead[1][0],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plca_tensor::shift::advance;

    /// Shares and their complements are the sums as they are written, relative to themselves, whatever the sizes and however far the entries lie apart.
    #[test]
    fn shares_have_their_own_digits() {
        let number = |i: usize| 10f64.powi(-((i * 7919 % 61) as i32 * 3));
        let mut apart = 0;
        for (data, kernel) in [
            (vec![7], vec![3]),
            (vec![2], vec![2]),
            (vec![5, 4], vec![2, 3]),
            (vec![4, 4], vec![4, 4]),
            (vec![3, 2, 5], vec![2, 2, 5]),
        ] {
            for kind in 0..3usize {
                let pairs = || data.iter().zip(&kernel);
                let (impulse, offset): (Vec<usize>, Vec<usize>) = pairs()
                    .map(|(&i, &k)| [(i - k + 1, 0), (i, 0), (i + k - 1, k - 1)][kind])
                    .unzip();
                let f = Folded::new([&data, &kernel, &impulse, &offset]);
                let blocks = [0, 1].map(|side| {
                    let (s, k) = (f.side(side), 2);
                    (0..k * s.lines * s.cells).map(number).collect::<Vec<_>>()
                });
                for side in [0, 1] {
                    let (own, other) = (f.side(side), f.side(1 - side));
                    let others = &blocks[1 - side][..other.lines * other.cells];
                    let (inside, outside) = boxes(&f, side, others, true);
                    let (mut b, mut at) = (vec![0usize; own.shape.len()], 0);
                    loop {
                        let (mut want, mut cell) = ([0.0; 2], 0);
                        let mut a = vec![0usize; b.len()];
                        loop {
                            let met = (0..b.len()).all(|d| {
                                let x = (a[d] + b[d]).checked_sub(f.offset[d]);
                                x.is_some_and(|x| x < f.size[d])
                            });
                            let all = (0..other.lines).map(|l| others[l * other.cells + cell]);
                            want[usize::from(!met)] += all.sum::<f64>();
                            cell += 1;
                            if !advance(&mut a, other.shape) {
                                break;
                            }
                        }
                        for (got, want) in [inside[at], outside[at]].into_iter().zip(want) {
                            assert!((got - want).abs() <= 1e-14 * want, "{got} {want}");
                        }
                        apart += usize::from(want[0] > 0.0 && want[0] < 1e-20 * want[1]);
                        at += 1;
                        if !advance(&mut b, own.shape) {
                            break;
                        }
                    }
                }
                let (weights, [kernels, impulses]) = ([0.25, 1e-30], &blocks);
                let window = Window::new(&f, &weights, kernels, impulses);
                let linear = plca_tensor::shift::Parts {
                    weights: &weights,
                    kernels,
                    impulses,
                };
                let mass: f64 = plca_tensor::shift::direct::model(&f, &linear).iter().sum();
                assert!((window.mass - mass).abs() <= 1e-13 * mass);
            }
        }
        assert!(
            apart > 0,
            "no share so small that a difference would lose it"
        );
    }
}
