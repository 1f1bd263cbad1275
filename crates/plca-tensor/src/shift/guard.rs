//! What rounding does to results of transforms, and its repair.

use super::direct::{self, cell};
use super::{Parts, Transforms, sum_of};
use crate::parallel::{map_in_order, wide};

/// `P` below this many times its error bound is recomputed: relative errors stay below 1e-9, and below
/// 1e-10 in all that was tried, for the bound is wide.
const GUARD: f64 = 1e9;
/// Error of a count that is allowed, relative to the mass of the data.
const COUNT: f64 = 1e-10;
/// Cells of one part.
const PART: usize = 4096;
/// If more guarded cells than one in this many are to be recomputed, all are.
const MANY: usize = 20;

/// Some cells of one channel and lane.
struct Part<'a> {
    plane: usize,
    first: usize,
    p: &'a mut [f64],
    values: &'a [f64],
    bound: f64,
}

impl Transforms {
    /// Recomputes what rounding may have spoilt of the cells whose value is `guarded`, of which there are `many`, and clears the rest of negative values.
    pub(super) fn guard(
        &self,
        model: &Parts<'_, f64>,
        p: &mut Vec<f64>,
        values: &[f64],
        guarded: impl Fn(f64) -> bool + Copy + Sync,
        many: usize,
    ) {
        let f = &self.folded;
        let bounds = self.error_bounds(model);
        let small = map_in_order(self.parts(p, values, &bounds), |part| {
            wide(|| clear(part.p, part.values, guarded, part.bound))
        });
        let few: usize = small.iter().sum();
        if few * MANY > many {
            *p = direct::model(f, model);
            return;
        }
        let parts = self.parts(p, values, &bounds).into_iter().zip(small);
        let spoilt = parts.filter(|(_, small)| *small > 0).map(|(part, _)| part);
        map_in_order(spoilt.collect(), |part: Part<'_>| {
            let cells = (part.first..).zip(part.p.iter_mut().zip(part.values));
            for (x, (p, &value)) in cells {
                if guarded(value) && *p < part.bound {
                    let plane = [part.plane / f.lanes, part.plane % f.lanes];
                    *p = cell(f, model, [plane[0], plane[1], x]);
                }
            }
        });
    }

    /// Cells with the bound of their channel and lane.
    fn parts<'a>(&self, p: &'a mut [f64], values: &'a [f64], bounds: &[f64]) -> Vec<Part<'a>> {
        let cells = self.folded.positions();
        let planes = p.chunks_mut(cells).zip(values.chunks(cells));
        let planes = planes.zip(bounds).enumerate();
        let parts = planes.flat_map(|(plane, ((p, values), &bound))| {
            let parts = p.chunks_mut(PART).zip(values.chunks(PART)).enumerate();
            parts.map(move |(part, (p, values))| Part {
                plane,
                first: part * PART,
                p,
                values,
                bound,
            })
        });
        parts.collect()
    }

    /// `ε (1 + log2 L)`: what a transform of length `L` leaves of a result, relative to the norms of what went in.
    fn unit(&self) -> f64 {
        f64::EPSILON * (1.0 + (self.plan.cells() as f64).log2())
    }

    /// [`GUARD`] times the error to be expected of `P`, for every channel and lane.
    fn error_bounds(&self, model: &Parts<'_, f64>) -> Vec<f64> {
        let f = &self.folded;
        let kernels = norms(model.kernels, f.taps());
        let impulses = norms(model.impulses, f.places());
        // [SPEC 5.6] ε (1 + log2 L) Σ_z P(z) |K|_2 |H|_2
        let unit = GUARD * self.unit();
        let bound = |at: usize| {
            let (c, d) = (at / f.lanes, at % f.lanes);
            let of =
                |(z, w): (usize, &f64)| w * kernels[z * f.channels + c] * impulses[z * f.lanes + d];
            unit * model.weights.iter().enumerate().map(of).sum::<f64>()
        };
        (0..f.channels * f.lanes).map(bound).collect()
    }

    /// The error to be expected of sums over the ratios `q`, for every component.
    pub(super) fn rounding_of_sums(
        &self,
        model: &Parts<'_, f64>,
        q: &[f64],
        side: usize,
    ) -> Vec<f64> {
        let other = model.blocks()[1 - side];
        // [SPEC 5.6] ε (1 + log2 L) |Q|_2 |K|_2
        let unit = self.unit() * norms(q, q.len())[0];
        let norms = norms(other, other.len() / model.weights.len());
        norms.into_iter().map(|norm| unit * norm).collect()
    }

    /// Whether counts from transforms of the ratios `q` are within [`COUNT`] of `mass`. They are not where the data have much and the
    /// model next to nothing: one such ratio drowns all others.
    pub(super) fn sums_are_sound(&self, model: &Parts<'_, f64>, q: &[f64], mass: f64) -> bool {
        let components = model.weights.len();
        let blocks = model.blocks().map(|block| {
            let cells = block.len() / components;
            let largest = block
                .chunks_exact(cells)
                .map(|b| b.iter().fold(0.0, |a: f64, &x| a.max(x)));
            (largest.collect::<Vec<f64>>(), norms(block, cells))
        });
        let [(k_max, k), (h_max, h)] = blocks;
        // CK = P(z) K Σ Q H is off by P(z) K ε (1 + log2 L) |Q|_2 |H|_2, and CH likewise.
        let of = |(z, w): (usize, &f64)| w * (k_max[z] * h[z]).max(h_max[z] * k[z]);
        let largest = model.weights.iter().enumerate().map(of).fold(0.0, f64::max);
        let error = self.unit() * norms(q, q.len())[0] * largest;
        error <= COUNT * mass
    }
}

/// How many values are below the bound where they are guarded; negative ones become 0 where they are not.
#[inline(always)]
fn clear(p: &mut [f64], values: &[f64], guarded: impl Fn(f64) -> bool, bound: f64) -> usize {
    let mut small = 0;
    for (p, &value) in p.iter_mut().zip(values) {
        let guarded = guarded(value);
        small += usize::from(guarded & (*p < bound));
        *p = if guarded { *p } else { p.max(0.0) };
    }
    small
}

/// `|·|_2` of every part of `cells` numbers.
fn norms(block: &[f64], cells: usize) -> Vec<f64> {
    let squares = block.chunks_exact(cells).map(|b| sum_of(b, |x| x * x));
    squares.map(f64::sqrt).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Buffers, Folded};
    use super::*;

    /// Numbers over some orders of magnitude, normalised; the last of `tail` parts is `1e-20` of that.
    fn wild(n: usize, magnitudes: usize, tail: usize) -> Vec<f64> {
        let raw = |i: usize| {
            let x = 10f64.powi(-((i * 7919 % magnitudes) as i32));
            if i >= n - n / tail { 1e-20 * x } else { x }
        };
        let total: f64 = (0..n).map(raw).sum();
        (0..n).map(|i| raw(i) / total).collect()
    }

    /// Places and offset along a dimension.
    type Support = fn(usize, usize) -> (usize, usize);
    const VALID: Support = |size, extent| (size - extent + 1, 0);
    const SAME: Support = |size, _| (size, 0);
    const FULL: Support = |size, extent| (size + extent - 1, extent - 1);

    struct Case {
        folded: Folded,
        values: Vec<f64>,
        kernels: Vec<f64>,
        impulses: Vec<f64>,
    }

    impl Case {
        /// One cell in six is observed, the others are 0; a part in `tail` of the impulses is far below rounding.
        fn new(shape: &[usize], kernel: &[usize], supports: &[Support], tail: usize) -> Self {
            let dimensions = shape.iter().zip(kernel).zip(supports.iter().cycle());
            let (impulse, offset): (Vec<usize>, Vec<usize>) =
                dimensions.map(|((&n, &k), support)| support(n, k)).unzip();
            let folded = Folded::new([shape, kernel, &impulse, &offset]);
            let [k, m] = [kernel, &impulse].map(|s| s.iter().product::<usize>());
            let value = |i: usize| if i.is_multiple_of(6) { 1.0 } else { 0.0 };
            Self {
                values: (0..shape.iter().product()).map(value).collect(),
                kernels: folded.fold(0, &wild(k, 3, k + 1)),
                impulses: folded.fold(1, &wild(m, 4, tail)),
                folded,
            }
        }

        fn model(&self) -> Parts<'_, f64> {
            Parts {
                weights: &[1.0],
                kernels: &self.kernels,
                impulses: &self.impulses,
            }
        }

        fn mass(&self) -> f64 {
            self.values.iter().sum()
        }

        /// `P` with the guard.
        fn guarded(&self, fft: &Transforms) -> Buffers {
            let mut b = fft.take();
            let many = self.values.iter().filter(|v| **v > 0.0).count();
            fft.model(&self.model(), &self.values, |v| v > 0.0, many, &mut b);
            b
        }

        /// `V/P`.
        fn ratios(&self, p: &mut [f64]) {
            for (p, &v) in p.iter_mut().zip(&self.values) {
                *p = if v > 0.0 { v / *p } else { 0.0 };
            }
        }

        /// The largest relative error over cells with data where `P > 0`.
        fn worst(&self, p: &[f64]) -> f64 {
            let exact = direct::model(&self.folded, &self.model());
            let cells = self.values.iter().zip(p.iter().zip(&exact));
            let positive = cells.filter(|(v, (_, exact))| **v > 0.0 && **exact > 0.0);
            let errors = positive.map(|(_, (p, exact))| ((p - exact) / exact).abs());
            errors.fold(
                0.0,
                |worst: f64, e| if e > worst || e.is_nan() { e } else { worst },
            )
        }

        /// Counts of kernels and impulses from their sums.
        fn counts(&self, sums: impl Fn(usize) -> Vec<f64>) -> [Vec<f64>; 2] {
            [0, 1].map(|side| {
                let counts = sums(side).into_iter().zip(self.model().blocks()[side]);
                counts.map(|(s, x)| s * x).collect()
            })
        }
    }

    /// A few hard cells, which are recomputed one by one, and more than are worth that.
    fn cases() -> Vec<Case> {
        let mut all = Vec::new();
        for few in [true, false] {
            let tail = |of_few, of_many| if few { of_few } else { of_many };
            all.push(Case::new(&[4096], &[60], &[VALID], tail(50, 2)));
            all.push(Case::new(&[40, 50], &[9, 12], &[FULL], tail(5, 2)));
            // A lane for each of the first dimension, a channel for each of the last.
            let (shape, kernel) = ([6, 20, 30, 2], [1, 7, 9, 2]);
            let same_but_last = [SAME, SAME, SAME, VALID];
            all.push(Case::new(&shape, &kernel, &same_but_last, tail(15, 7)));
        }
        all
    }

    /// `|P - P_direct| <= 1e-10 P_direct` where there are data, `P >= 0` everywhere; not so without the guard.
    #[test]
    fn small_probabilities_are_recomputed() {
        let mut negative = 0;
        for case in cases() {
            let fft = Transforms::new(&case.folded, 2);
            let mut b = case.guarded(&fft);
            let with = case.worst(&b.p);
            assert!(with <= 1e-10, "{:?}: {with}", case.folded.size);
            assert!(b.p.iter().all(|&p| p >= 0.0));
            fft.convolve(&case.model(), &mut b);
            let without = case.worst(&b.p);
            assert!(without > 1e-10, "nothing to guard: {without}");
            negative += b.p.iter().filter(|p| **p < 0.0).count();
        }
        assert!(
            negative > 100,
            "{negative} negative values without the guard"
        );
    }

    /// Counts of transforms are finite, not negative, and those of direct sums to `1e-10` of the mass of the data: by
    /// transforms of tame ratios and, where the tail of the impulses makes ratios of 1e20, by direct sums, without
    /// which they are not.
    #[test]
    fn counts_survive_rounding() {
        let off = |a: &[f64], b: &[f64]| {
            let pairs = a.iter().zip(b);
            pairs.fold(0.0, |off: f64, (a, b)| off.max((a - b).abs()))
        };
        let (mut sound, mut unsound) = (0, 0);
        let tame = Case::new(&[40, 50], &[9, 12], &[FULL], 5000);
        // More columns of a spectrum than one part has.
        let large = Case::new(&[100, 120], &[9, 12], &[FULL], 50_000);
        for case in cases().into_iter().chain([tame, large]) {
            let (f, model) = (&case.folded, case.model());
            let mut q = direct::model(f, &model);
            case.ratios(&mut q);
            let want = case.counts(|side| direct::sums(f, &model, &q, side));
            let fft = Transforms::new(f, 2);
            let mut b = case.guarded(&fft);
            case.ratios(&mut b.p);
            fft.prepare(&model, case.mass(), &mut b);
            let got = case.counts(|side| fft.sums(&model, &b, side, false));
            let allowed = 1e-10 * case.mass();
            for (got, want) in got.iter().zip(&want) {
                assert!(got.iter().all(|&c| c >= 0.0 && c.is_finite()));
                assert!(off(got, want) <= allowed, "{:?}", f.size);
            }
            if fft.sums_are_sound(&model, &q, case.mass()) {
                sound += 1;
                continue;
            }
            unsound += 1;
            fft.prepare(&model, f64::INFINITY, &mut b);
            let trusting = case.counts(|side| fft.sums(&model, &b, side, false));
            assert!(off(&trusting[1], &want[1]) > allowed, "{:?}", f.size);
        }
        assert!(sound > 0 && unsound > 0, "{sound} {unsound}");
    }
}
