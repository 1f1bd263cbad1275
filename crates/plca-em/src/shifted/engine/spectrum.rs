//! Real transforms of boxes in one or two dimensions.

use std::sync::{Arc, Mutex, PoisonError};

use plca_tensor::parallel::for_each_part;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

pub(crate) type C64 = Complex<f64>;

const ZERO: C64 = Complex::new(0.0, 0.0);
/// Columns of a spectrum, or rows of a box, that are transposed together.
const BLOCK: usize = 8;
/// Values worth a part of their own.
const PART: usize = 4096;

/// A box within the transformed area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) first_row: usize,
    pub(crate) first_column: usize,
    pub(crate) width: usize,
}

/// Transforms of `rows x columns` real numbers that are 0 outside a box. A spectrum has `columns/2 + 1` columns, stored one
/// after the other.
pub(crate) struct Plan {
    rows: usize,
    columns: usize,
    real: Arc<dyn RealToComplex<f64>>,
    back: Arc<dyn ComplexToReal<f64>>,
    column: Arc<dyn Fft<f64>>,
    column_back: Arc<dyn Fft<f64>>,
    spare: Mutex<Vec<Vec<C64>>>,
}

/// The length `>= n` of factors 2, 3, 5 and 7 that takes the least time.
pub(crate) fn fast_length(n: usize, even: bool) -> usize {
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

impl Plan {
    /// `columns` must be even.
    pub(crate) fn new(rows: usize, columns: usize) -> Self {
        let (mut real, mut complex) = (RealFftPlanner::new(), FftPlanner::new());
        Self {
            rows,
            columns,
            real: real.plan_fft_forward(columns),
            back: real.plan_fft_inverse(columns),
            column: complex.plan_fft_forward(rows),
            column_back: complex.plan_fft_inverse(rows),
            spare: Mutex::default(),
        }
    }

    /// Numbers of one spectrum.
    pub(crate) fn len(&self) -> usize {
        self.rows * self.width()
    }

    /// Real numbers of one transform.
    pub(crate) fn cells(&self) -> usize {
        self.rows * self.columns
    }

    fn width(&self) -> usize {
        self.columns / 2 + 1
    }

    fn take(&self, len: usize) -> Vec<C64> {
        let spare = self
            .spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let mut buffer = spare.unwrap_or_default();
        buffer.resize(len, ZERO);
        buffer
    }

    fn give_back(&self, buffer: Vec<C64>) {
        self.spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(buffer);
    }

    /// Columns of a spectrum in one part.
    fn part(&self) -> usize {
        (PART / self.rows).next_multiple_of(BLOCK).max(BLOCK) * self.rows
    }

    /// The spectrum of a box of rows of `place.width` values.
    pub(crate) fn forward(&self, values: &[f64], place: Place, spectrum: &mut [C64]) {
        let width = self.width();
        let mut rows = self.take(values.len() / place.width * width);
        let per_part = (PART / width).max(1);
        for_each_part(&mut rows, per_part * width, |part, out| {
            let mut line = vec![0.0; self.columns];
            let mut scratch = self.real.make_scratch_vec();
            let values = values[part * per_part * place.width..].chunks_exact(place.width);
            for (out, values) in out.chunks_exact_mut(width).zip(values) {
                line.fill(0.0);
                line[place.first_column..][..place.width].copy_from_slice(values);
                let done = self.real.process_with_scratch(&mut line, out, &mut scratch);
                debug_assert!(done.is_ok(), "lengths of the plan");
            }
        });
        let per_part = self.part();
        for_each_part(spectrum, per_part, |part, columns| {
            let first = part * per_part / self.rows;
            columns.fill(ZERO);
            for (block, columns) in columns.chunks_mut(BLOCK * self.rows).enumerate() {
                let at = first + block * BLOCK;
                let n = columns.len() / self.rows;
                for (y, row) in rows.chunks_exact(width).enumerate() {
                    for (j, &x) in row[at..at + n].iter().enumerate() {
                        columns[j * self.rows + place.first_row + y] = x;
                    }
                }
            }
            self.along_columns(&*self.column, columns);
        });
        self.give_back(rows);
    }

    fn along_columns(&self, fft: &dyn Fft<f64>, columns: &mut [C64]) {
        if self.rows > 1 {
            let mut scratch = vec![ZERO; fft.get_inplace_scratch_len()];
            fft.process_with_scratch(columns, &mut scratch);
        }
    }

    /// The box at `place` of the inverse transform, times [`cells`](Self::cells). `fill` sets a part of the spectrum that starts
    /// at a given number.
    pub(crate) fn inverse(
        &self,
        fill: impl Fn(usize, &mut [C64]) + Send + Sync,
        place: Place,
        out: &mut [f64],
    ) {
        let width = self.width();
        let mut spectrum = self.take(self.len());
        let per_part = self.part();
        for_each_part(&mut spectrum, per_part, |part, columns| {
            fill(part * per_part, columns);
            self.along_columns(&*self.column_back, columns);
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
            let mut line = vec![0.0; self.columns];
            let mut scratch = self.back.make_scratch_vec();
            let rows = lines
                .chunks_exact_mut(width)
                .zip(out.chunks_exact_mut(place.width));
            for (spectrum, out) in rows {
                // Zero but for rounding, as the result is real.
                spectrum[0].im = 0.0;
                spectrum[width - 1].im = 0.0;
                let done = self
                    .back
                    .process_with_scratch(spectrum, &mut line, &mut scratch);
                debug_assert!(done.is_ok(), "lengths of the plan");
                out.copy_from_slice(&line[place.first_column..][..place.width]);
            }
        });
        self.give_back(spectrum);
    }
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
            let place = |width, first_row, first_column| Place {
                first_row,
                first_column,
                width,
            };
            let (mut fa, mut fb) = (vec![ZERO; plan.len()], vec![ZERO; plan.len()]);
            let (r0, c0) = (rows - n, columns - m);
            plan.forward(&a, place(m, r0, c0), &mut fa);
            plan.forward(&b, place(columns, 0, 0), &mut fb);
            let product = |first: usize, out: &mut [C64]| {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = fa[first + i] * fb[first + i];
                }
            };
            let mut got = vec![0.0; n * m];
            plan.inverse(product, place(m, r0, c0), &mut got);
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
