//! Stepwise EM of PLSA written out in loops, posterior by posterior.

use nalgebra::{DMatrix, DVector};
use plca_em::{Local, Online, OnlineState, Plca, Plsa, StepSize};
use proptest::prelude::*;

use super::documents;

/// Statistics and basis after some blocks of documents; `documents[y][x]` are counts.
struct Loops {
    s: Vec<Vec<f64>>,
    w: Vec<Vec<f64>>,
    seen: f64,
}

impl Loops {
    fn new(w: &DMatrix<f64>) -> Self {
        let (n, k) = w.shape();
        let w: Vec<Vec<f64>> = (0..n)
            .map(|x| (0..k).map(|z| w[(x, z)]).collect())
            .collect();
        let s = w
            .iter()
            .map(|row| row.iter().map(|w| w / k as f64).collect())
            .collect();
        Self { s, w, seen: 0.0 }
    }

    /// Sum over the block of the posteriors of every word, and of every document.
    fn counts(&self, block: &[Vec<f64>], g: &[Vec<f64>]) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let k = self.w[0].len();
        let mut of_words = vec![vec![0.0; k]; self.w.len()];
        let mut of_documents = vec![vec![0.0; k]; block.len()];
        for (y, document) in block.iter().enumerate() {
            for (x, &n) in document.iter().enumerate().filter(|(_, n)| **n > 0.0) {
                let p: f64 = (0..k).map(|z| self.w[x][z] * g[y][z]).sum();
                for z in 0..k {
                    let posterior = self.w[x][z] * g[y][z] / p;
                    of_words[x][z] += n * posterior;
                    of_documents[y][z] += n * posterior;
                }
            }
        }
        (of_words, of_documents)
    }

    fn learn(&mut self, block: &[Vec<f64>], iterations: usize, rho: impl Fn(f64) -> f64) {
        let k = self.w[0].len();
        let mut g = vec![vec![1.0 / k as f64; k]; block.len()];
        let mut of_words = Vec::new();
        for _ in 0..iterations {
            let (words, documents) = self.counts(block, &g);
            of_words = words;
            for (g, n) in g.iter_mut().zip(documents) {
                let sum: f64 = n.iter().sum();
                if sum > 0.0 {
                    *g = n.iter().map(|n| n / sum).collect();
                }
            }
        }
        let mass: f64 = block.iter().flatten().sum();
        self.seen += mass;
        let rho = rho(mass / self.seen);
        for (s, c) in self.s.iter_mut().flatten().zip(of_words.iter().flatten()) {
            *s = (1.0 - rho) * *s + rho * c / mass;
        }
        for z in 0..k {
            let sum: f64 = self.s.iter().map(|row| row[z]).sum();
            for (w, s) in self.w.iter_mut().zip(&self.s) {
                w[z] = s[z] / sum;
            }
        }
    }
}

const WORDS: usize = 5;

/// Some blocks of documents of counts, each block with a positive one.
fn blocks() -> impl Strategy<Value = Vec<Vec<Vec<f64>>>> {
    let count = prop_oneof![2 => Just(0.0), 3 => (1..9u32).prop_map(f64::from)];
    let document = prop::collection::vec(count, WORDS);
    let block = prop::collection::vec(document, 1..4)
        .prop_filter("mass", |b| b.iter().flatten().any(|&n| n > 0.0));
    prop::collection::vec(block, 1..5)
}

fn start() -> impl Strategy<Value = DMatrix<f64>> {
    prop::collection::vec(0.05..1.0f64, WORDS * 2).prop_map(|v| {
        let mut w = DMatrix::from_vec(WORDS, 2, v);
        plca_tensor::normalise_columns(&mut w);
        w
    })
}

fn laws() -> impl Strategy<Value = StepSize> {
    prop_oneof![
        Just(StepSize::Average),
        (0.01..1.0f64).prop_map(StepSize::Constant),
        (0.51..1.0f64, 0.0..20.0f64).prop_map(|(kappa, t0)| StepSize::Power { kappa, t0 }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// [SPEC 13.1] [SPEC 13.2] Statistics and basis after every block are those of the loops; PLCA's are those of PLSA, and its
    /// weights the sums of its statistics.
    #[test]
    fn blocks_are_learnt_as_written(
        blocks in blocks(), start in start(), law in laws(), iterations in 1..5usize,
    ) {
        let local = Local { max_iter: iterations, tol: 0.0 };
        let plsa = Online::new(Plsa::new(2));
        let plsa = plsa.step(law).local(local);
        let plca = Online::new(Plca::new(2));
        let plca = plca.step(law).local(local);
        let even = DVector::from_element(2, 0.5);
        let mut a = OnlineState::new(even.clone(), vec![start.clone()]).unwrap();
        let mut b = a.clone();
        let mut loops = Loops::new(&start);
        for (t, block) in blocks.iter().enumerate() {
            // A word of which nothing is left is another matter.
            let gone = |x: usize| loops.w[x].iter().all(|&w| w == 0.0);
            if block.iter().any(|d| (0..WORDS).any(|x| d[x] > 0.0 && gone(x))) {
                break;
            }
            let data = documents(WORDS, block);
            let learnt = plsa.partial_fit(&mut a, &data).unwrap();
            plca.partial_fit(&mut b, &data).unwrap();
            let rho = |share: f64| match law {
                StepSize::Power { kappa, t0 } => ((t + 1) as f64 + t0).powf(-kappa),
                StepSize::Constant(rho) => rho,
                StepSize::Average => share,
            };
            loops.learn(block, iterations, rho);
            prop_assert!((learnt.rho - rho(learnt.mass / loops.seen)).abs() < 1e-15);
            for x in 0..WORDS {
                for z in 0..2 {
                    for state in [&a, &b] {
                        prop_assert!((state.statistics[0][(x, z)] - loops.s[x][z]).abs() < 1e-12);
                        prop_assert!((state.factors[0][(x, z)] - loops.w[x][z]).abs() < 1e-11);
                    }
                }
            }
            for z in 0..2 {
                let sum: f64 = loops.s.iter().map(|row| row[z]).sum();
                prop_assert!((b.weights[z] - sum).abs() < 1e-12);
            }
        }
    }

    /// [SPEC 13.2] One component, weights by mass: after a pass the basis is that of all data together, whatever the blocks.
    #[test]
    fn averages_over_a_pass_are_plain_sums(blocks in blocks(), start in start()) {
        let learner = Online::new(Plsa::new(1));
        let learner = learner.step(StepSize::Average);
        let basis = start.columns(0, 1).into_owned();
        let mut state = OnlineState::new(nalgebra::dvector![1.0], vec![basis]).unwrap();
        let data = blocks.iter().map(|b| Ok::<_, ()>(documents(WORDS, b)));
        let pass = learner.fit_stream(&mut state, data).unwrap();
        let total: f64 = blocks.iter().flatten().flatten().sum();
        prop_assert_eq!((pass.mass, state.total, state.pass), (total, total, 0.0));
        for x in 0..WORDS {
            let of_word: f64 = blocks.iter().flatten().map(|d| d[x]).sum();
            prop_assert!((state.factors[0][(x, 0)] - of_word / total).abs() < 1e-14);
        }
    }
}
