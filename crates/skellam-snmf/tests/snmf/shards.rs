//! Data of either sign cut into shards: the fits of one piece, with bits that do not depend on who holds which shard.

use nalgebra::DMatrix;
use plca_dist::random::uniform;
use plca_fit::shards::{Ask, InProcess, OnShards, Partial, Place, Seed, Sharded};
use plca_fit::{Algorithm, AnyModel};
use plca_tensor::{Data, DenseTensor, Order, Real, cut, even_ends};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{Entries, FitError, Init, Model, Prior, Replicates, Snmf, Solver, Stop};

const SEED: Seed = Seed { seed: 7, stream: 3 };
const SHARDS: usize = 16;
const K: usize = 3;

fn rng() -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED.seed);
    rng.set_stream(SEED.stream);
    rng
}

/// Whole numbers of either sign, about a tenth of them hidden if asked for.
fn data<T: Real>(hidden: bool) -> DenseTensor<T> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let cell = |_| match uniform(&mut rng) {
        u if hidden && u < 0.1 => T::lit(f64::NAN),
        u => T::lit((u * 13.0 - 5.0).round()),
    };
    let values = (0..11 * 50).map(cell).collect();
    DenseTensor::masked(vec![11, 50], values, Order::RowMajor).unwrap()
}

fn shards<T: Real>(data: &DenseTensor<T>) -> Vec<Box<dyn Data<T>>> {
    let ends = even_ends(&vec![1; data.shape()[1]], SHARDS as u32);
    assert_eq!(ends.len(), SHARDS);
    cut(data, 1, &ends).unwrap()
}

fn models<T: Real>() -> Vec<(Snmf<T>, bool)> {
    let builder = || Snmf::<T>::builder(K);
    let prior = Prior {
        plus: Entries::All(1.2),
        minus: Entries::PerComponent(vec![1.1, 1.0, 1.3]),
        shape: Entries::PerComponent(vec![1.5, 1.0, 2.0]),
        rate: Entries::All(0.3),
    };
    let one = || builder().replicates(Replicates::One);
    [
        (builder(), false),
        (builder(), true),
        (builder().priors(prior.clone()), true),
        (one(), true),
        (one().priors(prior), false),
    ]
    .map(|(builder, hidden)| (builder.build().unwrap(), hidden))
    .into()
}

fn objective<T: Real>(model: &dyn AnyModel<T>, data: &dyn Data<T>) -> f64 {
    let run = model.on(data).unwrap().solver(Solver::Em);
    let run = run.stop(Stop::default().tol(0.0).max_iter(100));
    run.run(Init::default(), &mut rng()).unwrap().objective()
}

fn as_in_one_piece<T: Real>(tolerance: f64) {
    for (case, (model, hidden)) in models::<T>().iter().enumerate() {
        let data = data::<T>(*hidden);
        let shards = shards(&data);
        let whole = objective(model, &data);
        let cut = objective(&OnShards::new(model, &shards), &data);
        assert!(whole.is_finite());
        assert!(
            ((cut - whole) / whole).abs() <= tolerance,
            "{case}: {cut} {whole}"
        );
    }
}

#[test]
fn shards_are_fitted_as_one_piece() {
    as_in_one_piece::<f64>(1e-12);
    as_in_one_piece::<f32>(1e-5);
}

/// A start of an engine is that of one piece, and so is what comes of it, whoever joins which statistics first.
#[test]
fn no_order_of_shards_changes_a_bit() {
    for (model, hidden) in models::<f64>() {
        let data = data::<f64>(hidden);
        let shards = shards(&data);
        let places: Vec<Place> = (shards.iter().enumerate())
            .scan(0, |next, (i, shard)| {
                let first = *next;
                *next += shard.shape()[1];
                Some(Place {
                    shard: i as u32,
                    shards: SHARDS as u32,
                    first,
                })
            })
            .collect();
        let joined = |order: &[usize], stats: &dyn Fn(usize) -> _| {
            let empty = Partial::empty(SHARDS as u32);
            let sum = order.iter().try_fold(empty, |sum: Partial<_>, &i| {
                sum.join(Partial::leaf(i as u32, SHARDS as u32, stats(i))?)
            });
            sum.unwrap().root().unwrap()
        };
        let forward: Vec<usize> = (0..SHARDS).collect();
        // 5 has no divisor with 16.
        let others = [
            forward.iter().rev().copied().collect::<Vec<_>>(),
            forward.iter().map(|i| i * 5 % SHARDS).collect(),
        ];
        let mut results = Vec::new();
        for order in [&forward, &others[0], &others[1]] {
            let survey = {
                let parts = order.iter().map(|&i| {
                    let survey = model.survey(&*shards[i], places[i].first).unwrap();
                    Partial::leaf(i as u32, SHARDS as u32, survey).unwrap()
                });
                let empty = Partial::empty(SHARDS as u32);
                let sum = { parts }.try_fold(empty, |sum, part| sum.join(part));
                sum.unwrap().root().unwrap()
            };
            let mut shared = model.begin(&survey, SEED).unwrap();
            let mut locals: Vec<_> = (0..SHARDS)
                .map(|i| {
                    model
                        .begin_local(&*shards[i], places[i], &shared, SEED)
                        .unwrap()
                })
                .collect();
            let start = model.gather(&shared, &locals).unwrap();
            let piece = model.bind(&data).unwrap().draw(&mut rng()).unwrap();
            for (a, b) in start.matrices().iter().zip(&piece) {
                assert!((a - b).amax() <= 1e-13 * b.amax());
            }
            for _ in 0..5 {
                let mut stats = vec![None; SHARDS];
                for &i in order {
                    let ask = Ask::step(true);
                    let found = model.e_step(&*shards[i], &mut locals[i], &shared, ask);
                    stats[i] = Some(found.unwrap());
                }
                let sum = joined(order, &|i| stats[i].clone().unwrap());
                model.m_step(&mut shared, sum).unwrap();
            }
            for (shard, local) in shards.iter().zip(&mut locals) {
                model.finish(&**shard, local, &shared).unwrap();
            }
            results.push(model.gather(&shared, &locals).unwrap());
        }
        assert!(results[1] == results[0] && results[2] == results[0]);
        // The engine of one process too.
        let one = InProcess::new(&model, &shards).unwrap();
        let mut at = Init::default().parameters(&one, &mut rng()).unwrap();
        for _ in 0..5 {
            one.step(&mut at, true).unwrap();
        }
        assert_eq!(at.matrices(), results[0].matrices());
    }
}

#[test]
fn what_shards_cannot_do_is_refused_by_its_place() {
    let data = data::<f64>(false);
    let shards = shards(&data);
    let prior = |shape| Prior {
        shape,
        rate: Entries::All(1.0),
        ..Prior::flat()
    };
    let refused = |prior| {
        let model = Snmf::<f64>::builder(K).priors(prior).build().unwrap();
        InProcess::new(&model, &shards).unwrap_err()
    };
    let each = refused(prior(Entries::Each(DMatrix::from_element(K, 50, 2.0))));
    let sparse = refused(prior(Entries::All(0.5)));
    for error in [each, sparse] {
        let FitError::Conflict { what } = &error else {
            panic!("{error:?}")
        };
        assert!(what.contains("`activations`"), "{what}");
    }
    // The first of the last columns is no count.
    let mut values: Vec<f64> = vec![1.0; 2 * 50];
    values[49] = 0.5;
    let data = DenseTensor::new(vec![2, 50], values, Order::RowMajor).unwrap();
    let shards = self::shards(&data);
    let model = Snmf::<f64>::builder(K).replicates(Replicates::One);
    let error = InProcess::new(&model.build().unwrap(), &shards).unwrap_err();
    let FitError::Entry { index, value, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((&index[..], *value), (&[0, 49][..], 0.5));
}
