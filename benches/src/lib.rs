//! Data and models of the benches: generated, with fixed seeds, no files.
//!
//! The shapes are those of common uses (spectrograms, face images, bags of words, order-3 counts); the values only
//! have to be positive and irregular, as no kernel's speed depends on more than the zero pattern.

use nalgebra::DMatrix;
use plca_dist::random::{self, Categorical};
use plca_tensor::{Coordinates, Cp, DenseTensor, Factor, Order, Real, SparseTensor};
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
/// use plca_tensor::Data;
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

/// Counts of words in documents: Zipf frequencies that differ by topic, a few topics a document, log-normal lengths around `length`.
///
/// # Panics
///
/// If there are no documents, words or topics.
///
/// ```
/// let v = plca_benches::topics([20, 30], 3, 10.0, 1);
/// assert_eq!(plca_tensor::Data::shape(&v), [20, 30]);
/// ```
pub fn topics(
    [documents, words]: [usize; 2],
    topics: usize,
    length: f64,
    seed: u64,
) -> SparseTensor<f64> {
    let mut rng = source(seed);
    // The words in an order that is not that of their frequencies.
    let stride = (words as f64 * 0.618) as usize | 1;
    let zipf = |word: usize| 1.0 / ((word * stride % words) as f64 + 10.0).powf(1.02);
    let table = |weights: Vec<f64>| Categorical::new(&weights).expect("positive weights");
    let tables: Vec<_> = (0..topics)
        .map(|_| {
            table(
                (0..words)
                    .map(|word| zipf(word) * gamma(0.25, &mut rng) + 1e-9)
                    .collect(),
            )
        })
        .collect();
    let mut indices = Vec::new();
    for document in 0..documents {
        let mixture = table((0..topics).map(|_| gamma(0.1, &mut rng) + 1e-12).collect());
        let drawn = length * (0.6 * normal(&mut rng) - 0.18).exp();
        for _ in 0..(drawn as usize).max(1) {
            let word = tables[mixture.sample(&mut rng)].sample(&mut rng);
            indices.extend([document as u32, word as u32]);
        }
    }
    let values = vec![1.0; indices.len() / 2];
    let shape = vec![documents, words];
    SparseTensor::new(Coordinates {
        shape,
        indices,
        values,
    })
    .expect("positive counts")
}

/// A standard normal number (Box and Muller).
fn normal(rng: &mut impl Rng) -> f64 {
    let angle = std::f64::consts::TAU * random::uniform(rng);
    (2.0 * random::exponential(rng)).sqrt() * angle.cos()
}

/// A gamma distributed number of mean `shape` (Marsaglia and Tsang).
fn gamma(shape: f64, rng: &mut impl Rng) -> f64 {
    if shape < 1.0 {
        return gamma(shape + 1.0, rng) * random::uniform(rng).powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    loop {
        let x = normal(rng);
        let v = (1.0 + x / (9.0 * d).sqrt()).powi(3);
        if v > 0.0 && -random::exponential(rng) < 0.5 * x * x + d * (1.0 - v + v.ln()) {
            return d * v;
        }
    }
}

/// A product of `k` spectra and activations with gamma distributed entries, noisy; the smaller `shape`, the sparser they are.
///
/// # Panics
///
/// If there are no cells or `shape` is not positive.
///
/// ```
/// assert!(plca_benches::spectrogram([3, 4], 2, 0.2, 1).get(&[2, 3]) > 0.0);
/// ```
pub fn spectrogram(
    [rows, columns]: [usize; 2],
    k: usize,
    shape: f64,
    seed: u64,
) -> DenseTensor<f64> {
    let mut rng = source(seed);
    let w = DMatrix::from_fn(rows, k, |_, _| gamma(shape, &mut rng));
    let h = DMatrix::from_fn(k, columns, |_, _| gamma(shape, &mut rng));
    let noisy = (w * h).map(|x| (x + 1e-6) * gamma(4.0, &mut rng) / 4.0);
    noisy.try_into().expect("positive cells")
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
pub fn with_model<T: Real, O>(factors: &[DMatrix<T>], work: impl FnOnce(&Cp<'_, T>) -> O) -> O {
    let factors: Vec<_> = factors.iter().map(Factor::Columns).collect();
    work(&Cp {
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
