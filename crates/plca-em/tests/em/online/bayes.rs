//! Online latent Dirichlet allocation.

use std::collections::BTreeMap;

use nalgebra::{DMatrix, DVector, DVectorView, dmatrix};
use plca_em::{Entries, Given, Local, Online, OnlineState, PlsaVb, PlsaVbState, StepSize};
use plca_fit::{FitError, Init, Model, Settings};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;

use crate::support::{cases, floats, whole};

const GOLDEN: &str = include_str!("../../../../testdata/golden/variational_bayes.json");

const ETA: f64 = 0.3;
const ALPHA: f64 = 0.5;

fn block(v: &Value) -> DMatrix<f64> {
    let sizes = whole(&v["shape"]);
    DMatrix::from_row_slice(sizes[0], sizes[1], &floats(&v["data"]))
}

fn lda(k: usize) -> PlsaVb {
    PlsaVb::new(k)
        .prior("basis_shape", Entries::All(ETA))
        .prior("mixture_shape", Entries::All(ALPHA))
}

fn near(what: &str, got: &DMatrix<f64>, want: &DMatrix<f64>, tol: f64) {
    assert_eq!(got.shape(), want.shape(), "{what}");
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() <= tol * want, "{what}: {got} {want}");
    }
}

/// Counts of four documents, in batches of two.
fn documents() -> Vec<DenseTensor<f64>> {
    let batch = |values: &[f64]| {
        let values = values.to_vec();
        DenseTensor::new(vec![3, 2], values, Order::RowMajor).unwrap()
    };
    vec![
        batch(&[5.0, 0.0, 1.0, 2.0, 0.0, 7.0]),
        batch(&[0.0, 3.0, 4.0, 1.0, 2.0, 2.0]),
    ]
}

fn start() -> DMatrix<f64> {
    DMatrix::from_row_slice(3, 2, &[1.4, 0.7, 0.2, 1.1, 0.9, 0.8])
}

// [EXT 3]
#[test]
fn minibatches_match_the_reference() {
    let cases = cases(GOLDEN);
    let case = cases.iter().find(|c| c["name"] == "minibatch").unwrap();
    let number = |name: &str| case[name].as_f64().unwrap();
    assert_eq!((number("eta"), number("alpha")), (ETA, ALPHA));
    let begin = block(&case["init_basis_shape"]);
    let learnt = |documents: f64| {
        let step = StepSize::Power {
            kappa: number("kappa"),
            t0: number("tau0"),
        };
        let local = Local {
            max_iter: 1 + number("inner_iterations") as usize,
            tol: 0.0,
        };
        let learner = Online::new(lda(begin.ncols()));
        let learner = learner.step(step).local(local).total(documents);
        let mut state = OnlineState::of_shapes(vec![begin.clone()]).unwrap();
        let batches = case["batches"].as_array().unwrap().iter();
        let after = batches.map(|v| {
            let values = floats(&v["data"]);
            let batch = DenseTensor::new(whole(&v["shape"]), values, Order::RowMajor).unwrap();
            let rho = learner.partial_fit(&mut state, &batch).unwrap().rho;
            (rho, state.factors[0].clone())
        });
        after.collect::<Vec<_>>()
    };
    let steps = case["steps"].as_array().unwrap();
    let after = learnt(number("documents"));
    assert_eq!((after.len(), steps.len()), (3, 3));
    for ((rho, basis), step) in after.iter().zip(steps) {
        assert!((rho - step["rate"].as_f64().unwrap()).abs() < 1e-15);
        near("basis", basis, &block(&step["basis_shape"]), 4e-12);
    }
    // Another number of documents is another posterior.
    let other = &learnt(99.0)[0].1;
    assert!((other - block(&steps[0]["basis_shape"])).amax() > 1e-3);
}

/// All documents as one batch of weight 1, in which mixtures move once: variational Bayes of all data.
// [EXT 3]
#[test]
fn one_batch_of_all_documents_is_an_iteration() {
    for given in [Given::Columns, Given::Rows] {
        let data = &documents()[0];
        let values = vec![4.0, 1.0, 0.0, 2.0, 6.0, 3.0];
        let turned = DenseTensor::new(vec![2, 3], values, Order::RowMajor).unwrap();
        let data: &dyn Data<f64> = match given {
            Given::Columns => data,
            Given::Rows => &turned,
        };
        let model = lda(2).given(given);
        let learner = Online::new(model.clone()).step(StepSize::Constant(1.0));
        let local = Local {
            max_iter: 1,
            tol: 0.0,
        };
        let learner = learner.local(local);
        let mixture = DMatrix::from_row_slice(2, 2, &[2.0, 3.0, 1.0, 4.0]);
        let mut last = PlsaVbState::new(given, start(), mixture).unwrap();
        let mut state = OnlineState::of_shapes(vec![start()]).unwrap();
        let all = model.bind(data).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut at = Init::from(&last).parameters(&*all, &mut rng).unwrap();
        for _ in 0..5 {
            all.step(&mut at, false).unwrap();
            last = learner
                .partial_fit_from(&mut state, data, &last)
                .unwrap()
                .state;
            state.end_pass();
            near("basis", &state.factors[0], at.at(0), 1e-13);
            near("mixture", last.mixture_shape(), at.at(1), 1e-13);
        }
    }
}

/// The mixtures of a batch have their optimum under the topics that it met, and the bound is that of `transform`.
#[test]
fn a_batch_is_explained_as_new_documents_are() {
    let model = lda(2);
    let local = Local {
        max_iter: 3000,
        tol: 0.0,
    };
    let learner = Online::new(model.clone()).local(local);
    let mut state = OnlineState::of_shapes(vec![start()]).unwrap();
    let batch = &documents()[0];
    let learnt = learner.partial_fit(&mut state, batch).unwrap();
    let topics =
        PlsaVbState::new(Given::Columns, start(), DMatrix::from_element(2, 1, 1.0)).unwrap();
    let how = plca_fit::Transform::default().stop(crate::support::exactly(3000));
    let found = model.transform(&topics, batch, &how).unwrap().fit;
    assert!((found.objective() - learnt.ln_lik).abs() < 1e-10);
    let mixture = found.state().mixture_shape();
    near("mixture", learnt.state.mixture_shape(), mixture, 1e-9);
}

/// Where the number of documents is not given it grows with the first pass: what was learnt is scaled with it, start and prior are not.
#[test]
fn an_unknown_number_of_documents_grows() {
    let learner = Online::new(lda(2));
    let mut state = OnlineState::of_shapes(vec![start()]).unwrap();
    let (mut left, mut seen) = (1.0, 0.0);
    for pass in 0..2 {
        for batch in &documents() {
            left *= 1.0 - learner.partial_fit(&mut state, batch).unwrap().rho;
            seen = if pass == 0 { seen + 2.0 } else { 4.0 };
            let prior = DMatrix::from_element(3, 2, (1.0 - left) * ETA);
            // [EXT 3] w lam_0 + (1 - w) eta + D s, w the product of all 1 - r
            let want = start() * left + prior + &state.statistics[0] * seen;
            near("basis", &state.factors[0], &want, 1e-13);
            assert_eq!(state.total, seen);
        }
        state.end_pass();
    }
    assert_eq!((state.seen, state.batches), (8.0, 4));
    let n = state.statistics[0].row_sum().transpose();
    assert!((&state.weights - &n / n.sum()).amax() < 1e-15);
}

/// Random starts are positive, of this seed alone, and two topics that documents do not share come apart.
#[test]
fn topics_are_learnt() {
    let learner = Online::new(lda(2));
    let begin = |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        learner.init(&[4], &mut rng).unwrap()
    };
    let mut state = begin(3);
    assert_eq!(state, begin(3));
    assert_ne!(state, begin(4));
    assert!(state.factors[0].iter().all(|x| (0.5..1.5).contains(x)));
    for _ in 0..100 {
        for words in [
            [[9.0, 0.0], [7.0, 0.0], [0.0, 8.0], [0.0, 9.0]],
            [[0.0, 6.0], [0.0, 9.0], [8.0, 0.0], [8.0, 0.0]],
        ] {
            let batch = DenseTensor::new(vec![4, 2], words.concat(), Order::RowMajor).unwrap();
            learner.partial_fit(&mut state, &batch).unwrap();
        }
    }
    let topic = state.factors[0].column(0);
    let first = (topic[0] + topic[1]) / topic.sum();
    assert!(!(0.05..0.95).contains(&first), "{topic}");
}

/// A frozen topic keeps its bits.
#[test]
fn frozen_topics_stay() {
    let model = lda(2).freeze_components("basis_shape", [1]);
    let learner = Online::new(model);
    let mut state = OnlineState::of_shapes(vec![start()]).unwrap();
    for batch in &documents() {
        learner.partial_fit(&mut state, batch).unwrap();
    }
    assert_eq!(state.factors[0].column(1), start().column(1));
    assert_ne!(state.factors[0].column(0), start().column(0));
}

#[test]
fn what_no_stream_can_have_is_refused() {
    let refused = |model: PlsaVb| {
        let refused = Online::new(model).check();
        assert!(matches!(refused, Err(FitError::Conflict { .. })));
    };
    refused(lda(2).freeze("basis_shape"));
    refused(lda(2).freeze("mixture_shape"));
    // A prior of the mixtures of two documents is none of those of three.
    let each = Entries::Each(DMatrix::from_element(2, 2, 1.0));
    let learner = lda(2).prior("mixture_shape", each);
    let learner = Online::new(learner);
    let mut state = OnlineState::of_shapes(vec![start()]).unwrap();
    assert!(learner.partial_fit(&mut state, &documents()[0]).is_ok());
    let three = DenseTensor::new(vec![3, 3], vec![1.0; 9], Order::RowMajor).unwrap();
    let learnt = learner.partial_fit(&mut state, &three);
    assert!(matches!(learnt, Err(FitError::Shape { got: (2, 2), .. })));
    for bad in [0.0, -1.0, f64::NAN] {
        let mut shapes = start();
        shapes[(1, 1)] = bad;
        let state = OnlineState::of_shapes(vec![shapes]);
        assert!(matches!(state, Err(FitError::Range { row: 1, .. })));
    }
    let none = OnlineState::<f64>::of_shapes(Vec::new());
    assert!(matches!(none, Err(FitError::Setting { .. })));
    // Hidden cells; nothing has changed.
    let learner = Online::new(lda(2));
    let mut state = OnlineState::of_shapes(vec![start()]).unwrap();
    let before = state.clone();
    let hidden = vec![1.0, f64::NAN, 2.0, 3.0, 0.0, 1.0];
    let hidden = DenseTensor::masked(vec![3, 2], hidden, Order::RowMajor).unwrap();
    let learnt = learner.partial_fit(&mut state, &hidden);
    assert!(matches!(learnt, Err(FitError::Conflict { .. })));
    assert_eq!(state, before);
    // A distribution with a zero is no posterior.
    let zero = DMatrix::from_row_slice(3, 2, &[1.0, 0.5, 0.0, 0.5, 0.0, 0.0]);
    let mut state = OnlineState::new(DVector::from_element(2, 0.5), vec![zero]).unwrap();
    assert!(learner.partial_fit(&mut state, &documents()[0]).is_err());
}

/// Words that a corpus has, of which one half is common to all topics and the other divided among them.
const WORDS: usize = 1000;
const TOPICS: usize = 20;
const DOCUMENTS: usize = 800;

/// `P(word | topic)` of a topic of the corpus.
fn planted(topic: usize) -> Vec<f64> {
    let (half, own) = (WORDS / 2, WORDS / 2 / TOPICS);
    let of = |word: usize| match word.checked_sub(half) {
        None => 0.4 / half as f64,
        Some(word) if word / own == topic => 0.6 / own as f64,
        Some(_) => 0.0,
    };
    (0..WORDS).map(of).collect()
}

/// Batches of 100 documents of 40 words, two thirds of one topic and a third of another.
fn corpus(seed: u64) -> Vec<SparseTensor<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut uniform = || plca_dist::random::uniform(&mut rng);
    let mut batch = || {
        let mut counts = BTreeMap::<(u32, u32), f64>::new();
        for document in 0..100 {
            let topics = [(); 2].map(|()| planted((uniform() * TOPICS as f64) as usize));
            for n in 0..40 {
                let mut left = uniform();
                let reached = |p: &f64| {
                    left -= p;
                    left < 0.0
                };
                let word = topics[usize::from(n % 3 == 2)].iter().position(reached);
                *counts
                    .entry((word.unwrap_or(0) as u32, document))
                    .or_default() += 1.0;
            }
        }
        SparseTensor::new(Coordinates {
            shape: vec![WORDS, 100],
            indices: counts.keys().flat_map(|&(w, d)| [w, d]).collect(),
            values: counts.into_values().collect(),
        })
        .unwrap()
    };
    (0..DOCUMENTS / 100).map(|_| batch()).collect()
}

/// Planted topics that a learnt one is like, cosine .9.
fn found(basis: &DMatrix<f64>) -> usize {
    let is_found = |topic: &usize| {
        let of = DVector::from_vec(planted(*topic));
        let cosine = |c: DVectorView<'_, f64>| c.dot(&of) / c.norm() / of.norm();
        basis.column_iter().any(|c| cosine(c) > 0.9)
    };
    (0..TOPICS).filter(is_found).count()
}

/// From a start that is drawn five passes find most topics of a corpus with many; without EM at the beginning, the negative control, they find few.
#[test]
fn drawn_topics_come_apart() {
    let vb = PlsaVb::new(TOPICS)
        .prior("basis_shape", Entries::All(0.05))
        .prior("mixture_shape", Entries::All(0.05));
    let learner = || Online::new(vb.clone()).total(DOCUMENTS as f64);
    let mut of = [0; 2];
    for seed in 0..3 {
        let batches = corpus(100 + seed);
        let learners = [learner().drawn(true), learner()];
        for (found_by, learner) in of.iter_mut().zip(learners) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut state = learner.init(&[WORDS], &mut rng).unwrap();
            for _ in 0..5 {
                let pass = batches.iter().map(|batch| Ok::<_, ()>(batch.clone()));
                learner.fit_stream(&mut state, pass).unwrap();
            }
            *found_by += found(&state.factors[0]);
        }
    }
    let [drawn, plain] = of;
    assert!(drawn > 3 * TOPICS / 2, "{drawn} of {}", 3 * TOPICS);
    assert!(plain < 3 * TOPICS / 2, "{plain} without EM");
}

/// After the first 200 documents for every component a learner of a drawn start is the same as any other, and so it is for a model without shapes.
#[test]
fn only_the_beginning_is_by_em() {
    let vb = lda(2);
    let start = OnlineState::of_shapes(vec![dmatrix![1.2, 0.9; 0.8, 1.1; 1.0, 1.3; 0.7, 1.0]]);
    let batch = DenseTensor::new(
        vec![4, 2],
        vec![3.0, 1.0, 0.0, 2.0, 5.0, 0.0, 1.0, 1.0],
        Order::RowMajor,
    );
    let batch = batch.unwrap();
    for (seen, same) in [(0.0, false), (399.0, false), (400.0, true)] {
        let learners = [
            Online::new(vb.clone()).total(900.0),
            Online::new(vb.clone()).total(900.0).drawn(true),
        ];
        let [a, b] = learners.map(|learner| {
            let mut state = start.clone().unwrap();
            (state.seen, state.batches) = (seen, 3);
            let learnt = learner.partial_fit(&mut state, &batch).unwrap();
            // A bound either way.
            assert!(learnt.ln_lik < 0.0);
            state
        });
        assert_eq!(a == b, same, "{seen}");
    }
}
