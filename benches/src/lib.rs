//! Data and models of the benches: generated, with fixed seeds, no files.
//!
//! The shapes are those of common uses (spectrograms, face images, bags of words, order-3 counts); the values only
//! have to be positive and irregular, as no kernel's speed depends on more than the zero pattern.

use nalgebra::DMatrix;
use plca_tensor::{Coordinates, DenseTensor, Factor, Model, Order, Real, SparseTensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A source of numbers, the same for the same seed.
pub fn source(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Uniform on `[0, 1)`.
pub fn uniform(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A dense tensor with cells from 0.1 to 10.1, in C order.
///
/// # Panics
///
/// If the shape is empty.
///
/// ```
/// let v = plca_benches::dense::<f64>(&[3, 4]);
/// assert!(v.get(&[2, 3]) > 0.0);
/// ```
pub fn dense<T: Real>(shape: &[usize]) -> DenseTensor<T> {
    let mut rng = source(1);
    let values = (0..shape.iter().product())
        .map(|_| T::lit(0.1 + 10.0 * uniform(&mut rng)))
        .collect();
    DenseTensor::new(shape.to_vec(), values, Order::RowMajor).expect("positive cells")
}

/// `draws` counts at indices whose frequencies fall like those of words: `P(i) ~ 1 / (i + const)`.
///
/// Draws of one cell are added up, so the stored cells are somewhat fewer.
///
/// # Panics
///
/// If the shape is empty or a mode does not fit in 32 bits.
///
/// ```
/// let v = plca_benches::sparse::<f64>(&[300, 200], 500);
/// assert_eq!(v.total(), 500.0);
/// ```
pub fn sparse<T: Real>(shape: &[usize], draws: usize) -> SparseTensor<T> {
    let mut rng = source(2);
    let mut indices = Vec::with_capacity(draws * shape.len());
    for _ in 0..draws {
        for (mode, &size) in shape.iter().enumerate() {
            let u = uniform(&mut rng);
            // The first mode (documents) is even; the others by the inverse of the distribution function.
            let offset = size as f64 / 20.0;
            let i = if mode == 0 {
                u * size as f64
            } else {
                offset * ((size as f64 / offset + 1.0).powf(u) - 1.0)
            };
            indices.push((i as usize).min(size - 1) as u32);
        }
    }
    let values = vec![T::one(); draws];
    let entries = Coordinates {
        shape: shape.to_vec(),
        indices,
        values,
    };
    SparseTensor::new(entries).expect("positive counts")
}

/// Factors of `k` components, every column a distribution.
pub fn factors<T: Real>(shape: &[usize], k: usize) -> Vec<DMatrix<T>> {
    let mut rng = source(3);
    (shape.iter())
        .map(|&size| {
            DMatrix::from_fn(size, k, |_, _| {
                T::lit((0.5 + uniform(&mut rng)) / size as f64)
            })
        })
        .collect()
}

/// Lends the factors to a model without weights.
pub fn with_model<T: Real, O>(factors: &[DMatrix<T>], work: impl FnOnce(&Model<'_, T>) -> O) -> O {
    let factors: Vec<_> = factors.iter().map(Factor::Columns).collect();
    work(&Model {
        weights: None,
        factors: &factors,
    })
}

/// Flops of an E-step on dense data: `2 K` per cell for `P`, and as many for each mode's counts.
pub fn flops(shape: &[usize], k: usize) -> usize {
    2 * (1 + shape.len()) * k * shape.iter().product::<usize>()
}

/// The shape and the number of components in the name of a bench: `1025x3000-k40`.
pub fn name(shape: &[usize], k: usize) -> String {
    let sizes: Vec<_> = shape.iter().map(usize::to_string).collect();
    format!("{}-k{k}", sizes.join("x"))
}
