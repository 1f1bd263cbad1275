//! Data of either sign cut into shards: the fits of one piece, with bits that do not depend on who holds which shard.

use std::cell::RefCell;

use nalgebra::DMatrix;
use plca_dist::random::uniform;
use plca_fit::shards::{
    Elsewhere, Engine, InProcess, Local, OnShards, Partial, PassRequest, Seed, ShardId, Sharded,
    Shared, Stats, started,
};
use plca_fit::{Algorithm, AnyModel, Progress, Run};
use plca_tensor::{Data, DenseTensor, Order, Real, cut, even_ends};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{
    Checkpoint, Entries, FitError, Init, Model, Parameters, Prior, Replicates, Snmf, SnmfVb,
    Solver, Stop, TracePoint,
};

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

fn models() -> Vec<(Snmf, bool)> {
    let snmf = || Snmf::new(K).replicates(Replicates::Limit);
    let prior = Prior {
        plus: Entries::All(1.2),
        minus: Entries::PerComponent(vec![1.1, 1.0, 1.3]),
        shape: Entries::PerComponent(vec![1.5, 1.0, 2.0]),
        rate: Entries::All(0.3),
    };
    let one = || snmf().replicates(Replicates::One);
    [
        (snmf(), false),
        (snmf(), true),
        (snmf().priors(prior.clone()), true),
        (one(), true),
        (one().priors(prior), false),
    ]
    .into()
}

/// The same by variational Bayes; shapes of a hundredth give rates that single precision cannot hold.
fn bayesian() -> Vec<(SnmfVb, bool)> {
    let vb = || SnmfVb::new(K);
    let prior = |shape| Prior {
        plus: Entries::All(0.5),
        minus: Entries::Each(DMatrix::from_fn(11, K, |f, k| 0.2 + 0.1 * (f + k) as f64)),
        shape: Entries::PerComponent(vec![shape, 1.0, 2.0]),
        rate: Entries::PerComponent(vec![0.3, 0.01, 1.0]),
    };
    let one = || vb().replicates(Replicates::One);
    [
        (vb(), false),
        (vb(), true),
        (vb().priors(prior(1.5)), true),
        (one(), true),
        (one().priors(prior(0.01)), false),
    ]
    .into()
}

/// Objectives, at the end and of the likelihood alone.
fn objectives<T: Real>(model: &dyn AnyModel<T>, data: &dyn Data<T>) -> [f64; 2] {
    let run = model.on(data).unwrap().solver(Solver::Em);
    let run = run.stop(Stop::default().tol(0.0).max_iter(100));
    let fit = run.run(Init::default(), &mut rng()).unwrap();
    let algorithm = model.bind(data).unwrap();
    let likelihood = algorithm.likelihood(fit.state());
    [fit.objective(), likelihood.unwrap()]
}

fn as_in_one_piece<T: Real, M: Model<T> + Sharded<T>>(models: Vec<(M, bool)>, tolerance: f64) {
    for (case, (model, hidden)) in models.iter().enumerate() {
        let data = data::<T>(*hidden);
        let shards = shards(&data);
        let whole = objectives(model, &data);
        let cut = objectives(&OnShards::new(model, &shards), &data);
        for (whole, cut) in whole.into_iter().zip(cut) {
            assert!(whole.is_finite());
            assert!(
                ((cut - whole) / whole).abs() <= tolerance,
                "{case}: {cut} {whole}"
            );
        }
    }
}

#[test]
fn shards_are_fitted_as_one_piece() {
    as_in_one_piece::<f64, _>(models(), 1e-12);
    as_in_one_piece::<f32, _>(models(), 1e-5);
}

#[test]
fn shards_are_fitted_by_variational_bayes_as_one_piece() {
    as_in_one_piece::<f64, _>(bayesian(), 1e-12);
    as_in_one_piece::<f32, _>(bayesian(), 1e-5);
}

/// Shards that an engine holds, which is asked in some order.
#[derive(Debug)]
struct Keeper<'a> {
    model: &'a dyn Sharded<f64>,
    shards: &'a [Box<dyn Data<f64>>],
    order: &'a [usize],
    locals: RefCell<Vec<Local<f64>>>,
}

impl<'a> Keeper<'a> {
    /// With the shared parameters of a start.
    fn begin(
        model: &'a dyn Sharded<f64>,
        shards: &'a [Box<dyn Data<f64>>],
        order: &'a [usize],
    ) -> (Self, Shared<f64>) {
        let places: Vec<ShardId> = (shards.iter().enumerate())
            .scan(0, |next, (i, shard)| {
                let first = *next;
                *next += shard.shape()[1];
                Some(ShardId {
                    shard: i as u32,
                    shards: SHARDS as u32,
                    first,
                })
            })
            .collect();
        let mut sum = Partial::empty(SHARDS as u32);
        for &i in order {
            let survey = model.survey(&*shards[i], places[i].first).unwrap();
            let leaf = Partial::leaf(i as u32, SHARDS as u32, survey).unwrap();
            sum = sum.join(leaf).unwrap();
        }
        let shared = model.begin(&sum.root().unwrap(), SEED).unwrap();
        let local = |i: usize| model.begin_local(&*shards[i], places[i], &shared, SEED);
        let locals = (0..SHARDS).map(|i| local(i).unwrap()).collect();
        let keeper = Self {
            model,
            shards,
            order,
            locals: RefCell::new(locals),
        };
        (keeper, shared)
    }

    /// The parameters of all data.
    fn gathered(&self, shared: &Shared<f64>) -> Parameters<f64> {
        let mut locals = self.locals.borrow().clone();
        for (shard, local) in self.shards.iter().zip(&mut locals) {
            self.model.finish(&**shard, local, shared).unwrap();
        }
        self.model.gather(shared, &locals).unwrap()
    }
}

impl Engine<f64> for Keeper<'_> {
    fn pass(&self, shared: &Shared<f64>, ask: PassRequest) -> Result<Stats, FitError> {
        let mut sum = Partial::empty(SHARDS as u32);
        for &i in self.order {
            let mut local = self.locals.borrow()[i].clone();
            let stats = (self.model).e_step(&*self.shards[i], &mut local, shared, ask)?;
            sum = sum.join(Partial::leaf(i as u32, SHARDS as u32, stats)?)?;
            if ask.counts {
                self.locals.borrow_mut()[i] = local;
            }
        }
        Ok(sum.root()?)
    }
}

/// A start of an engine is that of one piece, and so is what comes of it, whoever joins which statistics first.
fn no_order_changes_a_bit<M: Model<f64> + Sharded<f64>>(models: Vec<(M, bool)>, solver: Solver) {
    for (model, hidden) in models {
        let data = data::<f64>(hidden);
        let shards = shards(&data);
        let forward: Vec<usize> = (0..SHARDS).collect();
        // 5 has no divisor with 16.
        let others = [
            forward.iter().rev().copied().collect::<Vec<_>>(),
            forward.iter().map(|i| i * 5 % SHARDS).collect(),
        ];
        let algorithm = || InProcess::new(&model, &shards).unwrap();
        let one = Run::<Parameters<f64>>::new(Box::new(algorithm()));
        let stop = || Stop::default().tol(None::<f64>).max_iter(5).check_every(1);
        let one = one.solver(solver).stop(stop());
        let one = one.run(Init::default(), &mut rng()).unwrap();
        let objectives = |points: &[TracePoint]| -> Vec<f64> {
            points.iter().map(|point| point.objective).collect()
        };
        for order in [&forward, &others[0], &others[1]] {
            let (keeper, mut shared) = Keeper::begin(&model, &shards, order);
            started(&model, &keeper, &mut shared).unwrap();
            let start = keeper.gathered(&shared);
            let piece = model
                .bind(&data)
                .unwrap()
                .draw(&mut rng(), &mut Progress::silent())
                .unwrap();
            for (a, b) in start.matrices().iter().zip(&piece) {
                assert!((a - b).amax() <= 1e-13 * b.amax());
            }
            let drawn = algorithm()
                .draw(&mut rng(), &mut Progress::silent())
                .unwrap();
            assert_eq!(start.matrices(), drawn);
            let from = Checkpoint::new(shared.parameters().clone());
            let at = RefCell::new(shared);
            let elsewhere = Elsewhere::new(&model, &keeper, &at).unwrap();
            let run = Run::<Parameters<f64>>::new(Box::new(elsewhere));
            let fit = run.solver(solver).stop(stop()).resume(from).unwrap();
            let end = keeper.gathered(&at.borrow());
            assert_eq!(end.matrices(), one.state().matrices());
            assert_eq!(objectives(fit.trace()), objectives(one.trace()));
            // Of another start it would be another.
            assert_ne!(end.matrices(), start.matrices());
        }
    }
}

#[test]
fn no_order_of_shards_changes_a_bit() {
    for solver in [Solver::Em, Solver::Squarem] {
        no_order_changes_a_bit(models(), solver);
        no_order_changes_a_bit(bayesian(), solver);
    }
}

/// A start that gives the atoms alone is explained as in one piece, and shapes that cannot be held are refused.
#[test]
fn given_starts_of_variational_bayes_are_those_of_one_piece() {
    let data = data::<f64>(true);
    let shards = shards(&data);
    let model = bayesian().remove(2).0;
    let on_shards = OnShards::new(&model, &shards);
    let atoms = DMatrix::from_fn(22, K, |f, k| 0.5 + (f * K + k) as f64 / 7.0);
    let objective = |model: &dyn AnyModel<f64>, atoms: &DMatrix<f64>| {
        let run = model.on(&data).unwrap().solver(Solver::Em);
        let run = run.stop(Stop::default().tol(0.0).max_iter(3));
        let start = Init::default().block("atoms_shape", atoms.clone());
        Ok::<_, FitError>(run.run(start, &mut rng())?.objective())
    };
    let whole = objective(&model, &atoms).unwrap();
    let cut = objective(&on_shards, &atoms).unwrap();
    assert!(((cut - whole) / whole).abs() <= 1e-12, "{cut} {whole}");
    let mut tiny = atoms;
    tiny[(3, 1)] = 1e-200;
    let (one, many) = (objective(&model, &tiny), objective(&on_shards, &tiny));
    assert_eq!(one.unwrap_err(), many.unwrap_err());
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
        let model = Snmf::new(K).replicates(Replicates::Limit).priors(prior);
        InProcess::new(&model, &shards).unwrap_err()
    };
    let columns = || prior(Entries::Each(DMatrix::from_element(K, 50, 2.0)));
    let bayesian = SnmfVb::new(K).priors(columns());
    let bayesian = InProcess::new(&bayesian, &shards).unwrap_err();
    let FitError::Conflict { what } = &bayesian else {
        panic!("{bayesian:?}")
    };
    assert!(what.contains("`activations_shape`"), "{what}");
    let each = refused(columns());
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
    let model = Snmf::new(K).replicates(Replicates::One);
    let error = InProcess::new(&model, &shards).unwrap_err();
    let FitError::Entry { index, value, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((&index[..], *value), (&[0, 49][..], 0.5));
}
