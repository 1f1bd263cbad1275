//! Real transforms of boxes in one or two dimensions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use super::products::LANES;
use crate::parallel::{for_each_part, map_in_order, wide};

type C64 = Complex<f64>;

const ZERO: C64 = Complex::new(0.0, 0.0);
/// Columns of a spectrum, or rows of a box, that are transposed together.
const BLOCK: usize = 8;
/// Numbers of a plane worth a part of their own.
const PART: usize = 4096;
/// Numbers of lines worth a part of their own: most are sums of many products.
const LINES: usize = 1024;

/// A box within the transformed area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) first_row: usize,
    pub(super) first_column: usize,
    pub(super) width: usize,
}

/// Transforms of `rows x columns` real numbers that are 0 outside a box.
///
/// A spectrum is [`len`](Plan::len) real parts, then as many imaginary parts: of `columns/2 + 1` columns, one after the other,
/// and zeros.
pub(super) struct Plan {
    rows: usize,
    columns: usize,
    real: Arc<dyn RealToComplex<f64>>,
    back: Arc<dyn ComplexToReal<f64>>,
    column: Arc<dyn Fft<f64>>,
    column_back: Arc<dyn Fft<f64>>,
    spare: Mutex<Vec<Vec<C64>>>,
}

/// The length `>= n` of factors 2, 3, 5 and 7 that takes the least time.
pub(super) fn fast_length(n: usize, even: bool) -> usize {
    // Measured relative to a factor of 2.
    const FACTORS: [(usize, f64); 4] = [(2, 1.0), (3, 1.75), (5, 2.9), (7, 4.0)];
    let time = |length: usize| {
        let (mut rest, mut sum) = (length, 0.0);
        for (factor, cost) in FACTORS {
            while rest % factor == 0 {
                rest /= factor;
                sum += cost;
            }
        }
        (rest == 1).then_some(length as f64 * sum)
    };
    let candidates = n..=n.next_power_of_two().max(2);
    let timed = candidates
        .filter(|l| !even || l % 2 == 0)
        .filter_map(|l| Some((l, time(l)?)));
    timed
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(n, |best| best.0)
}

/// A transform of real numbers, and back.
pub type RealTransforms = (Arc<dyn RealToComplex<f64>>, Arc<dyn ComplexToReal<f64>>);

/// Transforms of `length` real numbers. Transforms take long to compile: no crate has others.
pub fn real_transforms(length: usize) -> RealTransforms {
    let mut planner = RealFftPlanner::new();
    (
        planner.plan_fft_forward(length),
        planner.plan_fft_inverse(length),
    )
}

impl Plan {
    /// `columns` must be even.
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        let mut complex = FftPlanner::new();
        let (real, back) = real_transforms(columns);
        Self {
            rows,
            columns,
            real,
            back,
            column: complex.plan_fft_forward(rows),
            column_back: complex.plan_fft_inverse(rows),
            spare: Mutex::default(),
        }
    }

    /// Real, and imaginary, parts of one spectrum, with zeros.
    pub(super) fn len(&self) -> usize {
        (self.rows * self.width()).next_multiple_of(LANES)
    }

    /// Real numbers of one transform.
    pub(super) fn cells(&self) -> usize {
        self.rows * self.columns
    }

    fn width(&self) -> usize {
        self.columns / 2 + 1
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Vec<C64>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, len: usize) -> Vec<C64> {
        let mut buffer = self.spare().pop().unwrap_or_default();
        buffer.resize(len, ZERO);
        buffer
    }

    /// Numbers of the columns of one part of a plane.
    fn part(&self) -> usize {
        (PART / self.rows).next_multiple_of(BLOCK).max(BLOCK) * self.rows
    }

    /// Lines of one part.
    fn lines(&self) -> usize {
        (LINES / self.width()).max(1)
    }

    /// The spectra of boxes of `cells` values in rows of `place.width`.
    pub(super) fn forward(&self, boxes: &[f64], cells: usize, place: Window, spectra: &mut [f64]) {
        let len = self.len();
        if self.rows > 1 {
            return for_each_part(spectra, 2 * len, |at, spectrum| {
                let (re, im) = spectrum.split_at_mut(len);
                self.forward_plane(&boxes[at * cells..][..cells], place, re, im);
            });
        }
        for_each_part(spectra, self.lines() * 2 * len, |part, spectra| {
            let mut row = Row::new(self, self.real.get_scratch_len());
            let mut line = vec![ZERO; self.width()];
            let boxes = boxes[part * self.lines() * cells..].chunks_exact(cells);
            for (spectrum, values) in spectra.chunks_exact_mut(2 * len).zip(boxes) {
                let (re, im) = spectrum.split_at_mut(len);
                row.forward(values, place, &mut line);
                split(&line, re, im);
            }
        });
    }

    fn forward_plane(&self, values: &[f64], place: Window, re: &mut [f64], im: &mut [f64]) {
        let width = self.width();
        let mut rows = self.take(values.len() / place.width * width);
        let per_part = (PART / width).max(1);
        for_each_part(&mut rows, per_part * width, |part, out| {
            let mut row = Row::new(self, self.real.get_scratch_len());
            let values = values[part * per_part * place.width..].chunks_exact(place.width);
            for (out, values) in out.chunks_exact_mut(width).zip(values) {
                row.forward(values, place, out);
            }
        });
        let numbers = self.rows * width;
        let parts =
            (re[..numbers].chunks_mut(self.part())).zip(im[..numbers].chunks_mut(self.part()));
        map_in_order(parts.enumerate().collect(), |(part, (re, im))| {
            let mut columns = vec![ZERO; BLOCK * self.rows];
            let mut scratch = vec![ZERO; self.column.get_inplace_scratch_len()];
            let first = part * self.part() / self.rows;
            let blocks = re
                .chunks_mut(columns.len())
                .zip(im.chunks_mut(columns.len()));
            for (block, (re, im)) in blocks.enumerate() {
                let (at, n) = (first + block * BLOCK, re.len() / self.rows);
                let columns = &mut columns[..re.len()];
                columns.fill(ZERO);
                for (y, row) in rows.chunks_exact(width).enumerate() {
                    for (j, &x) in row[at..at + n].iter().enumerate() {
                        columns[j * self.rows + place.first_row + y] = x;
                    }
                }
                self.column.process_with_scratch(columns, &mut scratch);
                split(columns, re, im);
            }
        });
        self.spare().push(rows);
    }

    /// Inverse transforms, each cut to its box of `cells` values at `place`. `fill` sets real and imaginary parts of a spectrum:
    /// that of the box with the given number, from the number given next.
    pub(super) fn inverse(
        &self,
        fill: impl Fn(usize, usize, &mut [f64], &mut [f64]) + Send + Sync,
        cells: usize,
        place: Window,
        boxes: &mut [f64],
    ) {
        if self.rows > 1 {
            return for_each_part(boxes, cells, |at, out| {
                self.inverse_plane(|first, re, im| fill(at, first, re, im), place, out);
            });
        }
        for_each_part(boxes, self.lines() * cells, |part, boxes| {
            let mut row = Row::new(self, self.back.get_scratch_len());
            let mut line = vec![ZERO; self.width()];
            let (mut re, mut im) = (vec![0.0; self.len()], vec![0.0; self.len()]);
            for (at, out) in (part * self.lines()..).zip(boxes.chunks_exact_mut(cells)) {
                fill(at, 0, &mut re, &mut im);
                join(&re, &im, &mut line);
                row.inverse(&mut line, place, out);
            }
        });
    }

    fn inverse_plane(
        &self,
        fill: impl Fn(usize, &mut [f64], &mut [f64]) + Send + Sync,
        place: Window,
        out: &mut [f64],
    ) {
        let width = self.width();
        let mut spectrum = self.take(self.rows * width);
        for_each_part(&mut spectrum, self.part(), |part, columns| {
            let len = columns.len().next_multiple_of(LANES);
            let (mut re, mut im) = (vec![0.0; len], vec![0.0; len]);
            fill(part * self.part(), &mut re, &mut im);
            join(&re, &im, columns);
            let mut scratch = vec![ZERO; self.column_back.get_inplace_scratch_len()];
            self.column_back.process_with_scratch(columns, &mut scratch);
        });
        for_each_part(out, BLOCK * place.width, |part, out| {
            let first = place.first_row + part * BLOCK;
            let n = out.len() / place.width;
            let mut lines = vec![ZERO; n * width];
            for (k, column) in spectrum.chunks_exact(self.rows).enumerate() {
                for (j, &x) in column[first..first + n].iter().enumerate() {
                    lines[j * width + k] = x;
                }
            }
            let mut row = Row::new(self, self.back.get_scratch_len());
            let rows = lines.chunks_exact_mut(width);
            for (line, out) in rows.zip(out.chunks_exact_mut(place.width)) {
                row.inverse(line, place, out);
            }
        });
        self.spare().push(spectrum);
    }
}

/// What transforms of rows need.
struct Row<'a> {
    plan: &'a Plan,
    line: Vec<f64>,
    scratch: Vec<C64>,
}

impl<'a> Row<'a> {
    fn new(plan: &'a Plan, scratch: usize) -> Self {
        Self {
            plan,
            line: vec![0.0; plan.columns],
            scratch: vec![ZERO; scratch],
        }
    }

    /// The spectrum of a row that is 0 outside a box.
    fn forward(&mut self, values: &[f64], place: Window, spectrum: &mut [C64]) {
        let (line, plan) = (&mut self.line, &self.plan.real);
        line.fill(0.0);
        line[place.first_column..][..place.width].copy_from_slice(values);
        let done = plan.process_with_scratch(line, spectrum, &mut self.scratch);
        debug_assert!(done.is_ok(), "lengths of the plan");
    }

    /// The part of a row that lies in a box; its spectrum is lost.
    fn inverse(&mut self, spectrum: &mut [C64], place: Window, out: &mut [f64]) {
        let (line, plan) = (&mut self.line, &self.plan.back);
        // Zero but for rounding, as the result is real.
        let last = spectrum.len() - 1;
        spectrum[0].im = 0.0;
        spectrum[last].im = 0.0;
        let done = plan.process_with_scratch(spectrum, line, &mut self.scratch);
        debug_assert!(done.is_ok(), "lengths of the plan");
        out.copy_from_slice(&line[place.first_column..][..place.width]);
    }
}

fn split(numbers: &[C64], re: &mut [f64], im: &mut [f64]) {
    wide(
        #[inline(always)]
        || {
            for ((x, re), im) in numbers.iter().zip(re).zip(im) {
                (*re, *im) = (x.re, x.im);
            }
        },
    );
}

fn join(re: &[f64], im: &[f64], numbers: &mut [C64]) {
    wide(
        #[inline(always)]
        || {
            for ((x, &re), &im) in numbers.iter_mut().zip(re).zip(im) {
                *x = Complex::new(re, im);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_products_of_small_primes() {
        for (n, want) in [
            (1, 2),
            (136, 144),
            (511, 512),
            (80, 80),
            (1000, 1024),
            (1025, 1050),
        ] {
            let got = fast_length(n, true);
            assert!(got >= n && got.is_multiple_of(2) && got <= n.next_power_of_two().max(2));
            if n != 1025 {
                assert_eq!(got, want, "{n}");
            }
        }
    }

    /// `IFFT(FFT(a) FFT(b))` is the circular convolution of the definition.
    #[test]
    fn products_of_spectra_are_convolutions() {
        for (rows, columns) in [(1, 2), (1, 12), (5, 6), (9, 30), (16, 2)] {
            let plan = Plan::new(rows, columns);
            let (n, m) = (rows.min(3), columns.min(4));
            let value = |i: usize| ((i * 7919) % 13) as f64 - 4.0;
            let a: Vec<f64> = (0..n * m).map(value).collect();
            let b: Vec<f64> = (0..rows * columns).map(|i| value(i + 3)).collect();
            let place = |width, first_row, first_column| Window {
                first_row,
                first_column,
                width,
            };
            let len = plan.len();
            let (mut fa, mut fb) = (vec![0.0; 2 * len], vec![0.0; 2 * len]);
            let (r0, c0) = (rows - n, columns - m);
            plan.forward(&a, n * m, place(m, r0, c0), &mut fa);
            plan.forward(&b, rows * columns, place(columns, 0, 0), &mut fb);
            let product = |_: usize, first: usize, re: &mut [f64], im: &mut [f64]| {
                let number = |f: &[f64], i: usize| Complex::new(f[first + i], f[len + first + i]);
                for (i, (re, im)) in re.iter_mut().zip(im).enumerate() {
                    let product = number(&fa, i) * number(&fb, i);
                    (*re, *im) = (product.re, product.im);
                }
            };
            let mut got = vec![0.0; n * m];
            plan.inverse(product, n * m, place(m, r0, c0), &mut got);
            for i in 0..n {
                for j in 0..m {
                    let mut want = 0.0;
                    for (at, x) in a.iter().enumerate() {
                        let (y, x_at) = (r0 + at / m, c0 + at % m);
                        let row = (r0 + i + rows - y) % rows;
                        want += x * b[row * columns + (c0 + j + columns - x_at) % columns];
                    }
                    let got = got[i * m + j] / plan.cells() as f64;
                    assert!((got - want).abs() < 1e-11, "{rows}x{columns}: {got} {want}");
                }
            }
        }
    }
}
