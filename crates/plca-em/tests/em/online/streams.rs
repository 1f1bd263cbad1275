//! Streams of a known model: what is learnt, and what does not matter.

use std::sync::Arc;

use plca_em::{Given, Local, Online, OnlineState, Plca, Plsa, StepSize, Streamed};
use plca_priors::Dirichlet;
use plca_tensor::{Coordinates, Real, SparseTensor};
use rand::{Rng, RngExt};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::documents;

const WORDS: usize = 60;
const TOPICS: usize = 3;

/// Topic `z` has the words `x` with `x % 3 == z`, more of the first ones, and a few of all others.
fn truth(z: usize) -> Vec<f64> {
    let raw = |x: usize| {
        let own = if x % TOPICS == z {
            1.0 / (1.0 + x as f64 / 10.0)
        } else {
            0.01
        };
        own + 0.002
    };
    let sum: f64 = (0..WORDS).map(raw).sum();
    (0..WORDS).map(|x| raw(x) / sum).collect()
}

fn draw<R: Rng>(p: &[f64], rng: &mut R) -> usize {
    let mut u: f64 = rng.random();
    for (i, &p) in p.iter().enumerate() {
        u -= p;
        if u < 0.0 {
            return i;
        }
    }
    p.len() - 1
}

/// Blocks of 20 documents of 60 words; every document is mostly of one topic.
fn stream(blocks: usize, seed: u64) -> Vec<Vec<Vec<f64>>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let topics: Vec<_> = (0..TOPICS).map(truth).collect();
    let mut document = |_| {
        let main = draw(&[1.0 / 3.0; 3], &mut rng);
        let mixture: Vec<_> = (0..TOPICS)
            .map(|z| if z == main { 0.8 } else { 0.1 })
            .collect();
        let mut counts = vec![0.0; WORDS];
        for _ in 0..60 {
            counts[draw(&topics[draw(&mixture, &mut rng)], &mut rng)] += 1.0;
        }
        counts
    };
    (0..blocks)
        .map(|_| (0..20).map(&mut document).collect())
        .collect()
}

/// The mean over the topics of the best cosine, the least one of a permutation being no larger.
fn recovered<T: Real>(state: &OnlineState<T>) -> f64 {
    let cosine = |z: usize, of: usize| {
        let (a, b) = (truth(of), state.factors[0].column(z));
        let dot: f64 = a.iter().zip(b.iter()).map(|(a, b)| a * b.to_f64()).sum();
        let norms = (a.iter().map(|a| a * a).sum::<f64>())
            * (b.iter().map(|b| b.to_f64() * b.to_f64()).sum::<f64>());
        dot / norms.sqrt()
    };
    let best = |of: usize| (0..TOPICS).map(|z| cosine(z, of)).fold(0.0, f64::max);
    (0..TOPICS).map(best).fold(1.0, f64::min)
}

fn pass<M: Streamed<f64>>(
    learner: &Online<M>,
    state: &mut OnlineState<f64>,
    blocks: &[Vec<Vec<f64>>],
) {
    let blocks = blocks.iter().map(|b| Ok::<_, ()>(documents(WORDS, b)));
    learner.fit_stream(state, blocks).unwrap();
}

fn learner(step: StepSize) -> Online<Plsa> {
    let plsa = Plsa::new(TOPICS);
    Online::new(plsa).step(step)
}

/// A single pass over 60 blocks finds the topics, whatever the start, forwards and backwards; the start did not have them.
#[test]
fn a_known_model_is_found_in_any_order() {
    let blocks = stream(60, 1);
    let backwards: Vec<_> = blocks.iter().rev().cloned().collect();
    let learner = learner(StepSize::default());
    for seed in 0..5 {
        let start = learner
            .init(&[WORDS], &mut ChaCha8Rng::seed_from_u64(seed))
            .unwrap();
        assert!(recovered(&start) < 0.9, "{}", recovered(&start));
        for blocks in [&blocks, &backwards] {
            let mut state = start.clone();
            pass(&learner, &mut state, blocks);
            assert!(
                recovered(&state) > 0.97,
                "seed {seed}: {}",
                recovered(&state)
            );
        }
    }
}

/// Negative control: a weight of 1 keeps the last block alone, and where that is of one topic it is all that is known. One such
/// block under a falling law does no harm.
#[test]
fn a_weight_of_one_forgets_what_was_before() {
    let learner = learner(StepSize::default());
    let mut state = learner
        .init(&[WORDS], &mut ChaCha8Rng::seed_from_u64(0))
        .unwrap();
    pass(&learner, &mut state, &stream(60, 1));
    let document: Vec<_> = truth(0).iter().map(|p| (100.0 * p).round()).collect();
    let one = vec![document; 5];
    pass(&learner, &mut state, std::slice::from_ref(&one));
    assert!(recovered(&state) > 0.97, "{}", recovered(&state));
    let forgetful = self::learner(StepSize::Constant(1.0));
    for _ in 0..20 {
        pass(&forgetful, &mut state, std::slice::from_ref(&one));
    }
    assert!(recovered(&state) < 0.5, "{}", recovered(&state));
}

/// Blocks of rows are blocks of columns of the transposed data, to the bit.
#[test]
fn rows_stream_as_columns_do() {
    let blocks = stream(6, 2);
    let plsa = Plsa::new(TOPICS).given(Given::Rows);
    let (rows, columns) = (Online::new(plsa), learner(StepSize::default()));
    let start = columns
        .init(&[WORDS], &mut ChaCha8Rng::seed_from_u64(3))
        .unwrap();
    let (mut a, mut b) = (start.clone(), start);
    for block in &blocks {
        let dense = |order| {
            let values = block.iter().flatten().copied().collect();
            let shape = match order {
                plca_tensor::Order::RowMajor => vec![block.len(), WORDS],
                plca_tensor::Order::ColumnMajor => vec![WORDS, block.len()],
            };
            plca_tensor::DenseTensor::new(shape, values, order).unwrap()
        };
        rows.partial_fit(&mut a, &dense(plca_tensor::Order::RowMajor))
            .unwrap();
        columns
            .partial_fit(&mut b, &dense(plca_tensor::Order::ColumnMajor))
            .unwrap();
    }
    let off = (&a.factors[0] - &b.factors[0]).amax();
    assert!(off < 1e-12, "{off}");
}

/// A block of many documents in the scalar asked for.
fn large<T: Real>(seed: u64) -> SparseTensor<T> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (words, documents) = (900u32, 300u32);
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for y in 0..documents {
        for _ in 0..60 {
            indices.extend([rng.random_range(0..words), y]);
            values.push(T::lit(f64::from(rng.random_range(1..5u32))));
        }
    }
    let shape = vec![words as usize, documents as usize];
    SparseTensor::new(Coordinates {
        shape,
        indices,
        values,
    })
    .unwrap()
}

/// A learner with a prior, its state and the next block, from the JSON of before.
fn resumed<T, M>(model: M)
where
    T: Real + serde::Serialize + serde::de::DeserializeOwned,
    M: Streamed<T> + Clone + Sync,
{
    let learner = Online::new(model).local(Local {
        max_iter: 4,
        tol: 0.0,
    });
    let blocks: Vec<_> = (0..3).map(|seed| large::<T>(seed)).collect();
    let run = |threads: usize, cut: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let mut state = learner
                .init(&[900], &mut ChaCha8Rng::seed_from_u64(1))
                .unwrap();
            for (t, block) in blocks.iter().enumerate() {
                if t == cut {
                    state = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
                }
                learner.partial_fit(&mut state, block).unwrap();
            }
            state
        })
    };
    let whole = run(1, usize::MAX);
    assert_eq!(run(4, usize::MAX), whole);
    for cut in 0..3 {
        assert_eq!(run(2, cut), whole, "cut at {cut}");
    }
}

/// A run cut in two by way of a file, and on other threads, has the bits of the whole.
#[test]
fn resumed_streams_and_threads() {
    let prior = Arc::new(Dirichlet::symmetric(1.01).unwrap());
    let plsa = Plsa::new(7).prior("basis", prior.clone());
    resumed::<f64, _>(plsa);
    resumed::<f32, _>(Plsa::new(7));
    resumed::<f64, _>(Plca::new(7));
    resumed::<f32, _>(Plca::new(7).prior("factor_0", prior));
}
