//! Which arithmetic should be fastest: operation counts over measured rates.

#[cfg(feature = "fft")]
use super::fft::lengths;
use super::{Folded, Stack};
use crate::Real;

/// Operations per second of plain loops with a long inner axis.
const DIRECT: f64 = 6e9;
/// What a row of a plain loop costs besides, in operations.
const ROW: f64 = 60.0;
/// Operations per second of loops over a list, whose rows are no longer than a kernel's.
const LISTED: f64 = 2e9;
/// Operations per second of the tiles of matrices.
const MATRIX: f64 = 38e9;
/// Rows and columns that fill the tiles.
const TILE: [f64; 2] = [24.0, 8.0];
/// Seconds for a number that is stacked, packed and added back.
const STACKED: f64 = 4e-9;
/// Operations per second of transforms, counted as `2.5 L log2 L`.
#[cfg(feature = "fft")]
const TRANSFORM: f64 = 8e9;
/// Seconds for a product of two numbers of a spectrum, summed in registers.
#[cfg(feature = "fft")]
const PRODUCT: f64 = 0.5e-9;
/// Seconds for a cell's ratio, wherever it is computed by itself.
const RATIO: f64 = 2e-9;

/// Single precision does twice as much at once, except in transforms.
fn speed<T: Real>() -> f64 {
    8.0 / size_of::<T>() as f64
}

/// Multiplications and additions of the sums as they are written.
fn operations(f: &Folded, components: usize) -> f64 {
    let cells = f.channels as f64 * f.lanes as f64 * components as f64;
    6.0 * cells * f.taps() as f64 * f.places() as f64
}

fn cells(f: &Folded) -> f64 {
    f.channels as f64 * f.lanes as f64 * f.positions() as f64
}

/// Seconds of plain loops.
pub fn direct<T: Real>(f: &Folded, components: usize) -> f64 {
    let [_, k, m, _] = f.inner();
    let longest = k.max(m) as f64;
    let rows = operations(f, components) / longest;
    (operations(f, components) + ROW * rows) / (DIRECT * speed::<T>()) + RATIO * cells(f)
}

/// Seconds of loops over a list of cells.
pub fn sparse<T: Real>(f: &Folded, components: usize, listed: usize) -> f64 {
    let [_, kernel, _, _] = f.inner();
    let row = 6.0 * (kernel as f64) + ROW;
    let rows = (f.taps() / kernel * components) as f64;
    listed as f64 * (rows * row / (LISTED * speed::<T>()) + RATIO)
}

/// The stack that takes less time, and its seconds.
pub fn stack<T: Real>(f: &Folded, components: usize) -> (f64, Stack) {
    let stacks = [Stack::Impulses, Stack::Kernels];
    cheaper(stacks.map(|stack| (matrix::<T>(f, components, stack), stack)))
}

/// How many of the last shifted dimensions are worth transforming, one or two, and the seconds.
#[cfg(feature = "fft")]
pub fn transformed(f: &Folded, components: usize) -> (f64, usize) {
    let dimensions = [2, 1].map(|n| n.min(f.size.len()));
    cheaper(dimensions.map(|n| (fft(f, components, n), n)))
}

/// The one that takes less time, the first if they take the same.
fn cheaper<X>([a, b]: [(f64, X); 2]) -> (f64, X) {
    if a.0 <= b.0 { a } else { b }
}

/// Seconds of a product of matrices with one of the stacks.
fn matrix<T: Real>(f: &Folded, components: usize, stack: Stack) -> f64 {
    let [c, d, x, k] = [f.channels, f.lanes, f.positions(), components].map(|n| n as f64);
    let [t, h] = [f.taps(), f.places()].map(|n| n as f64);
    let (rows, columns, inner, stacked) = match stack {
        Stack::Impulses => (c, d * x, k * t, d * x),
        Stack::Kernels => (c * x, d, k * h, c * x),
    };
    let full = |n: f64, tile: f64| (n / tile).ceil() * tile;
    let tiles = full(rows, TILE[0] * speed::<T>()) * full(columns, TILE[1]);
    6.0 * tiles * inner / (MATRIX * speed::<T>()) + STACKED * inner * stacked
}

/// Seconds of transforms along the last `transformed` shifted dimensions.
#[cfg(feature = "fft")]
fn fft(f: &Folded, components: usize, transformed: usize) -> f64 {
    let ([rows, columns], outer) = lengths(f, transformed);
    let length = rows as f64 * columns as f64;
    let product = |s: &Vec<usize>| s[..outer].iter().map(|&n| n as f64).product::<f64>();
    let [t, h, x] = [&f.kernel, &f.impulse, &f.size].map(product);
    let [c, d, k] = [f.channels, f.lanes, components].map(|n| n as f64);
    let transforms = 2.0 * (k * c * t + k * d * h + c * d * x);
    // Places that a tap can have within the window, summed over the taps.
    let products = 3.0 * k * c * d * t * h.min(x);
    let one = 2.5 * length * length.log2() / TRANSFORM;
    transforms * one + products * length / 2.0 * PRODUCT + RATIO * cells(f)
}

#[cfg(all(test, feature = "fft"))]
mod tests {
    use super::*;

    /// One problem, counted by hand: 2 channels, 5 lanes, data of 30 x 6, kernels of 4 x 3, impulses of 27 x 4, 7 components.
    #[test]
    fn estimates_are_counts_over_rates() {
        let f = Folded::new([&[2, 5, 30, 6], &[2, 1, 4, 3], &[1, 5, 27, 4], &[0; 4]]);
        let near = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 1e-14, "{got} {want}");
        // A sum of 7 · 12 taps · 108 places for each of 10 planes, thrice, in rows of 4; 1800 cells.
        let loops = (544_320.0 + 60.0 * 136_080.0) / 6e9;
        near(direct::<f64>(&f, 7), loops + 3.6e-6);
        near(direct::<f32>(&f, 7), loops / 2.0 + 3.6e-6);
        // 28 rows of 3 for each of 100 cells.
        let rows = 28.0 * (6.0 * 3.0 + 60.0) / 2e9;
        near(sparse::<f64>(&f, 7, 100), 100.0 * (rows + 2e-9));
        near(sparse::<f32>(&f, 7, 100), 100.0 * (rows / 2.0 + 2e-9));
        // 2 x 84 times 84 x 900 in tiles of 24 x 8 and 48 x 8; 360 x 756 times 756 x 5.
        let stacked = 4e-9 * 84.0 * 900.0;
        let tiles = 24.0 * 904.0;
        near(
            matrix::<f64>(&f, 7, Stack::Impulses),
            6.0 * tiles * 84.0 / 38e9 + stacked,
        );
        near(
            matrix::<f32>(&f, 7, Stack::Impulses),
            12.0 * tiles * 84.0 / 76e9 + stacked,
        );
        let (tiles, stacked) = (360.0 * 8.0, 4e-9 * 756.0 * 360.0);
        near(
            matrix::<f64>(&f, 7, Stack::Kernels),
            6.0 * tiles * 756.0 / 38e9 + stacked,
        );
        // Along the last dimension: 14 · 4 lines of kernels, 35 · 27 of impulses, 10 · 30 of data, there and back.
        let ([rows, columns], outer) = lengths(&f, 1);
        assert_eq!((rows, outer), (1, 1));
        let length = columns as f64;
        let there = 2602.0 * 2.5 * length * length.log2() / 8e9;
        near(
            fft(&f, 7, 1),
            there + 22_680.0 * length / 2.0 * 0.5e-9 + 3.6e-6,
        );
    }
}
