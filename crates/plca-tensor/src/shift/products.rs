//! Sums of products of spectra, in registers.

use crate::parallel::wide;

/// Numbers that are computed together at least; spectra are multiples of it.
pub(super) const LANES: usize = 8;
/// Numbers that are computed together where there are as many.
const BLOCK: usize = 3 * LANES;

/// Spectra one after the other: `len` real parts each, then `len` imaginary parts.
#[derive(Clone, Copy)]
pub(super) struct Spectra<'a> {
    pub(super) numbers: &'a [f64],
    pub(super) len: usize,
}

impl Spectra<'_> {
    /// `N` real and imaginary parts from number `at`.
    #[inline(always)]
    fn get<const N: usize>(&self, at: usize) -> Option<[&[f64; N]; 2]> {
        let part = |at: usize| self.numbers.get(at..)?.first_chunk();
        Some([part(at)?, part(at + self.len)?])
    }
}

/// Products to add up: `Σ_groups w Σ_terms a b`. A group tells its weight and the first two of its spectra, a term how many spectra
/// further its own are.
pub(super) struct Products<'a, G> {
    pub(super) a: Spectra<'a>,
    pub(super) b: Spectra<'a>,
    pub(super) groups: G,
    pub(super) terms: &'a [[usize; 2]],
}

impl<G: Iterator<Item = (f64, [usize; 2])> + Clone> Products<'_, G> {
    /// The sums from number `first` on, as many as there is room for, a multiple of [`LANES`]. With `CONJUGATE` of `a b*`.
    pub(super) fn sum<const CONJUGATE: bool>(&self, first: usize, re: &mut [f64], im: &mut [f64]) {
        wide(
            #[inline(always)]
            || {
                let (re_blocks, re_rest) = re.as_chunks_mut::<BLOCK>();
                let (im_blocks, im_rest) = im.as_chunks_mut::<BLOCK>();
                let mut at = first;
                for (re, im) in re_blocks.iter_mut().zip(im_blocks) {
                    [*re, *im] = self.block::<BLOCK, CONJUGATE>(at);
                    at += BLOCK;
                }
                let (re_rest, _) = re_rest.as_chunks_mut::<LANES>();
                let (im_rest, _) = im_rest.as_chunks_mut::<LANES>();
                for (re, im) in re_rest.iter_mut().zip(im_rest) {
                    [*re, *im] = self.block::<LANES, CONJUGATE>(at);
                    at += LANES;
                }
            },
        );
    }

    #[inline(always)]
    fn block<const N: usize, const CONJUGATE: bool>(&self, first: usize) -> [[f64; N]; 2] {
        let [mut re, mut im] = [[0.0; N]; 2];
        let steps = [2 * self.a.len, 2 * self.b.len];
        for (w, spectra) in self.groups.clone() {
            let [a0, b0] = [0, 1].map(|i| spectra[i] * steps[i] + first);
            let [mut group_re, mut group_im] = [[0.0; N]; 2];
            for term in self.terms {
                let a = self.a.get::<N>(a0 + term[0] * steps[0]);
                let b = self.b.get::<N>(b0 + term[1] * steps[1]);
                let Some(([a_re, a_im], [b_re, b_im])) = a.zip(b) else {
                    debug_assert!(false, "a term beyond the spectra");
                    continue;
                };
                for i in 0..N {
                    let b_im = if CONJUGATE { -b_im[i] } else { b_im[i] };
                    group_re[i] += a_re[i] * b_re[i] - a_im[i] * b_im;
                    group_im[i] += a_re[i] * b_im + a_im[i] * b_re[i];
                }
            }
            for i in 0..N {
                re[i] += w * group_re[i];
                im[i] += w * group_im[i];
            }
        }
        [re, im]
    }
}
