//! Data cut into shards: the fits of one piece, with bits that do not depend on who holds which shard.

use std::cell::RefCell;

use nalgebra::DMatrix;
use plca_dist::random::{below, uniform};
use plca_em::{
    Cooling, Entries, Given, Init, Model, Nmf, Plca, PlcaVb, Plsa, PlsaVb, Settings, Solver, Stop,
    Update,
};
use plca_fit::shards::{
    Elsewhere, Engine, InProcess, Local, OnShards, Partial, PassRequest, Seed, ShardId, Sharded,
    Shared, Stats, Survey, started,
};
use plca_fit::{Algorithm, AnyModel, Checkpoint, FitError, Parameters, Run, blocks::Exposure};
use plca_priors::{Dirichlet, Entropic, Penalty};
use plca_tensor::{
    Coordinates, Data, DataError, DenseTensor, Order, Real, SparseTensor, cut, entries_along,
    even_ends, normalise_columns,
};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde::Serialize;
use serde::de::DeserializeOwned;

const SEED: Seed = Seed { seed: 7, stream: 3 };
const K: usize = 4;
/// Samples: enough for 64 shards, and no multiple of their number.
const SAMPLES: usize = 150;

fn rng() -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED.seed);
    rng.set_stream(SEED.stream);
    rng
}

/// Counts of which many are 0; samples along the last mode.
fn dense<T: Real>(shape: &[usize], hidden: f64) -> DenseTensor<T> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let cells = shape.iter().product::<usize>();
    let cell = |at: usize| match uniform(&mut rng) {
        u if u < hidden && !at.is_multiple_of(7) => T::lit(f64::NAN),
        u if u < 0.5 && !at.is_multiple_of(7) => T::zero(),
        _ => T::lit(below(9, &mut rng) as f64 + 0.25),
    };
    let values = (0..cells).map(cell).collect();
    DenseTensor::masked(shape.to_vec(), values, Order::RowMajor).unwrap()
}

/// The same cells as a sparse tensor; hidden ones are not stored.
fn sparse<T: Real>(v: &DenseTensor<T>) -> SparseTensor<T> {
    let mut entries = Coordinates::empty(v.shape());
    v.visit(&mut |index, x| entries.push(index, T::lit(x)))
        .unwrap();
    match v.is_complete() {
        true => SparseTensor::new(entries).unwrap(),
        false => SparseTensor::stored_only(entries).unwrap(),
    }
}

/// A model, its data in one piece and in 64.
struct Case<T: Real> {
    name: &'static str,
    model: Box<dyn Both<T>>,
    data: Box<dyn Data<T>>,
    shards: Vec<Box<dyn Data<T>>>,
}

/// A model of all data, and of shards.
trait Both<T: Real>: Sharded<T> + AnyModel<T> {
    fn sharded(&self) -> &dyn Sharded<T>;
    fn piece(&self) -> &dyn AnyModel<T>;
}

impl<T: Real, M: Sharded<T> + Model<T>> Both<T> for M {
    fn sharded(&self) -> &dyn Sharded<T> {
        self
    }

    fn piece(&self) -> &dyn AnyModel<T> {
        self
    }
}

fn case<T: Real>(
    name: &'static str,
    model: impl Both<T> + 'static,
    data: impl Data<T> + 'static,
) -> Case<T> {
    let along = Sharded::along(&model, data.shape().len());
    let ends = even_ends(&entries_along(&data, along).unwrap(), 64);
    assert_eq!(ends.len(), 64, "{name}");
    Case {
        name,
        shards: cut(&data, along, &ends).unwrap(),
        model: Box::new(model),
        data: Box::new(data),
    }
}

fn cases<T: Real>() -> Vec<Case<T>> {
    let matrix = |hidden| dense::<T>(&[23, SAMPLES], hidden);
    let rows = dense::<T>(&[SAMPLES, 23], 0.0);
    let plsa = || Plsa::new(K);
    let nmf = |update| Nmf::new(K).update(update);
    let penalty = || Penalty::new(0.3, 0.1).unwrap();
    let penalised = |update| {
        let nmf = Nmf::new(K).update(update);
        nmf.prior("w", penalty()).prior("h", penalty())
    };
    let plca = || Plca::new(K);
    let prior = || Dirichlet::symmetric(1.5).unwrap();
    let both = plsa().prior("basis", prior()).prior("mixture", prior());
    let weights = plca().prior("weights", prior()).prior("factor_0", prior());
    let lda = |given| {
        let lda = PlsaVb::new(K).given(given);
        let lda = lda.prior("basis_shape", Entries::All(0.3));
        let each = Entries::PerComponent(vec![0.5, 0.4, 1.0, 2.0]);
        lda.prior("mixture_shape", each)
    };
    let plca_vb = |order| {
        let last = format!("factor_{}_shape", order - 1);
        let each = Entries::PerComponent(vec![0.5, 0.4, 1.0, 2.0]);
        let plca = PlcaVb::new(K).prior(last, each);
        let first = DMatrix::from_fn(if order == 2 { 23 } else { 4 }, K, |i, z| {
            0.2 + 0.1 * (i + z) as f64
        });
        let plca = plca.prior("factor_0_shape", Entries::Each(first));
        plca.prior("weights_shape", Entries::All(0.1))
    };
    vec![
        case("plsa", plsa(), matrix(0.0)),
        case("plsa-vb", lda(Given::Columns), matrix(0.0)),
        case("plsa-vb, sparse", lda(Given::Columns), sparse(&matrix(0.0))),
        case("plsa-vb of rows", lda(Given::Rows), sparse(&rows)),
        case("plca-vb", plca_vb(2), sparse(&matrix(0.0))),
        case(
            "plca-vb of order 3",
            plca_vb(3),
            dense::<T>(&[4, 5, SAMPLES], 0.0),
        ),
        case("plsa, sparse", plsa(), sparse(&matrix(0.0))),
        case("plsa of rows", plsa().given(Given::Rows), sparse(&rows)),
        case("plsa, hidden", plsa(), matrix(0.2)),
        case("plsa, stored", plsa(), sparse(&matrix(0.2))),
        case("plsa, priors", both, matrix(0.0)),
        case("plsa, tempered", plsa().temper(0.9), matrix(0.0)),
        case("plca", plca(), sparse(&matrix(0.0))),
        case("plca, hidden", plca(), matrix(0.2)),
        case("plca, stored", plca(), sparse(&matrix(0.2))),
        case(
            "plca of order 3, hidden",
            plca(),
            dense::<T>(&[4, 5, SAMPLES], 0.2),
        ),
        case("nmf, imputed", nmf(Update::Simultaneous), matrix(0.2)),
        case("plca, priors", weights, matrix(0.0)),
        case("plca of order 3", plca(), dense::<T>(&[4, 5, SAMPLES], 0.0)),
        case("nmf", nmf(Update::Simultaneous), sparse(&matrix(0.0))),
        case("nmf in turn", nmf(Update::Sequential), matrix(0.0)),
        case(
            "nmf, penalties",
            penalised(Update::Simultaneous),
            matrix(0.0),
        ),
        case(
            "nmf in turn, penalties",
            penalised(Update::Sequential),
            matrix(0.0),
        ),
        case("nmf, hidden", Nmf::new(K), matrix(0.2)),
        case("nmf, stored", Nmf::new(K), sparse(&matrix(0.2))),
    ]
}

/// What is moved, moved.
fn moved<S: Serialize + DeserializeOwned>(x: &S) -> S {
    postcard::from_bytes(&postcard::to_stdvec(x).unwrap()).unwrap()
}

/// Groups of shards that know nothing of each other: messages are bytes, and arrive in any order.
struct Groups<'a> {
    model: &'a dyn Sharded<f64>,
    shards: &'a [Box<dyn Data<f64>>],
    groups: usize,
    rng: ChaCha8Rng,
}

impl Groups<'_> {
    fn sum<S>(&mut self, mut of: impl FnMut(u32) -> S) -> S
    where
        S: plca_fit::shards::Merge + Serialize + DeserializeOwned,
    {
        let count = self.shards.len() as u32;
        let mut sent = Vec::new();
        for group in 0..self.groups {
            let bound = |g: usize| (g * self.shards.len() / self.groups) as u32;
            let leaf = |shard| Partial::leaf(shard, count, of(shard)).unwrap();
            let leaves = (bound(group)..bound(group + 1)).map(leaf);
            let all = leaves.fold(Partial::empty(count), |sum, leaf| sum.join(leaf).unwrap());
            sent.push(moved(&all));
        }
        let mut sum = Partial::empty(count);
        while !sent.is_empty() {
            let next = below(sent.len() as u64, &mut self.rng) as usize;
            sum = sent.swap_remove(next).join(sum).unwrap();
        }
        sum.root().unwrap()
    }

    /// The state after some iterations, and the objectives before each and at the end.
    fn run(&mut self, iterations: usize) -> (Shared<f64>, Vec<Local<f64>>, Vec<f64>) {
        let (model, shards) = (self.model, self.shards);
        let along = model.along(shards[0].shape().len());
        let sizes = shards.iter().map(|shard| shard.shape()[along]);
        let firsts: Vec<usize> = sizes
            .scan(0, |sum, n| Some(std::mem::replace(sum, *sum + n)))
            .collect();
        let survey: Survey = self.sum(|s| {
            model
                .survey(&*shards[s as usize], firsts[s as usize])
                .unwrap()
        });
        let mut shared = model.begin(&survey, SEED).unwrap();
        let place = |shard: usize| ShardId {
            shard: shard as u32,
            shards: shards.len() as u32,
            first: firsts[shard],
        };
        let local = |s: usize| {
            model
                .begin_local(&*shards[s], place(s), &shared, SEED)
                .unwrap()
        };
        let mut locals: Vec<_> = (0..shards.len()).map(local).collect();
        let mut objectives = Vec::new();
        for _ in 0..model.start_passes() {
            let told = moved(&shared);
            let stats: Stats = self.sum(|s| {
                let (shard, local) = (&*shards[s as usize], &mut locals[s as usize]);
                model
                    .e_step(shard, local, &told, PassRequest::step(false))
                    .unwrap()
            });
            model.m_step(&mut shared, stats).unwrap();
        }
        for iteration in 0..=iterations {
            let ask = match iteration == iterations {
                true => PassRequest::objective(),
                false => PassRequest::step(true),
            };
            let told = moved(&shared);
            let stats: Stats = self.sum(|s| {
                let s = s as usize;
                locals[s] = moved(&locals[s]);
                model
                    .e_step(&*shards[s], &mut locals[s], &told, ask)
                    .unwrap()
            });
            objectives.extend(model.objective(&shared, &stats).unwrap());
            if ask.counts {
                let objective = model.m_step(&mut shared, stats).unwrap();
                assert_eq!(objective.as_ref(), objectives.last());
            }
        }
        (shared, locals, objectives)
    }
}

fn on_threads<O: Send>(threads: usize, work: impl FnOnce() -> O + Send) -> O {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(work)
}

fn stop(iterations: usize) -> Stop {
    Stop::default()
        .tol(None)
        .max_iter(iterations)
        .check_every(1)
}

fn in_process<T: Real>(
    case: &Case<T>,
    solver: Solver,
    iterations: usize,
) -> (Parameters<T>, Vec<f64>) {
    let algorithm = InProcess::new(case.model.sharded(), &case.shards).unwrap();
    let run = Run::<Parameters<T>>::new(Box::new(algorithm)).solver(solver);
    let fit = run
        .stop(stop(iterations))
        .run(Init::default(), &mut rng())
        .unwrap();
    let trace = fit.trace().iter().map(|point| point.objective).collect();
    (fit.into_state(), trace)
}

/// Any groups, any threads, any order of arrival, and the engine of one process: the same bits.
#[test]
fn bits_do_not_depend_on_groups_or_threads() {
    for case in cases::<f64>() {
        let run = |groups: usize, threads: usize| {
            let (model, shards) = (case.model.sharded(), &case.shards);
            let rng = ChaCha8Rng::seed_from_u64(groups as u64);
            on_threads(threads, || {
                Groups {
                    model,
                    shards,
                    groups,
                    rng,
                }
                .run(5)
            })
        };
        let first = run(1, 1);
        for (groups, threads) in [(2, 2), (7, 1), (64, 2)] {
            assert_eq!(
                run(groups, threads),
                first,
                "{} {groups} {threads}",
                case.name
            );
        }
        let (at, trace) = on_threads(2, || in_process(&case, Solver::Em, 5));
        assert_eq!(trace, first.2, "{}", case.name);
        let (shared, locals, _) = first;
        for (name, block) in shared.parameters().blocks() {
            assert_eq!(at.block(name), Some(block), "{} {name}", case.name);
        }
        // The last pass completed what belongs to the samples.
        let own = at.blocks();
        let own = own.filter(|(name, _)| shared.parameters().block(name).is_none());
        for (b, (_, block)) in own.enumerate() {
            let parts: Vec<&DMatrix<f64>> = locals.iter().map(|local| &local.blocks()[b]).collect();
            let stacked = match parts[0].nrows() == block.nrows() {
                true => parts
                    .iter()
                    .flat_map(|part| part.as_slice().to_vec())
                    .collect::<Vec<_>>(),
                false => (0..block.ncols())
                    .flat_map(|z| {
                        parts.iter().flat_map(move |part| {
                            part.column(z).iter().copied().collect::<Vec<_>>()
                        })
                    })
                    .collect(),
            };
            assert_eq!(block.as_slice(), stacked, "{} {b}", case.name);
        }
    }
}

fn agree<T: Real>(cases: Vec<Case<T>>, tolerance: f64) {
    for case in cases {
        let run = case
            .model
            .piece()
            .on(&*case.data)
            .unwrap()
            .solver(Solver::Em);
        let fit = run.stop(stop(20)).run(Init::default(), &mut rng()).unwrap();
        let (at, trace) = in_process(&case, Solver::Em, 20);
        assert_eq!(trace.len(), fit.trace().len());
        for (point, sharded) in fit.trace().iter().zip(&trace) {
            let error = (point.objective - sharded).abs() / point.objective.abs();
            assert!(error <= tolerance, "{} {point:?} {sharded}", case.name);
        }
        let names: Vec<_> = fit
            .state()
            .blocks()
            .map(|(name, _)| name.to_string())
            .collect();
        for name in names {
            let (one, other) = (fit.state().block(&name).unwrap(), at.block(&name).unwrap());
            let far = one.zip_map(other, |a, b| (a.to_f64() - b.to_f64()).abs());
            let largest = one.iter().fold(0.0, |m: f64, x| m.max(x.to_f64()));
            assert!(
                far.max() <= 1e3 * tolerance * largest,
                "{} {name} {}",
                case.name,
                far.max()
            );
        }
        let (one, other) = (fit.state(), &at);
        assert!((one.mass() - other.mass()).abs() <= tolerance * one.mass());
        let facts = |at: &Parameters<T>| {
            at.facts()
                .map(|(n, x)| (n.to_string(), x.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(facts(one), facts(other), "{}", case.name);
    }
}

#[test]
fn objectives_are_those_of_one_piece() {
    agree(cases::<f64>(), 1e-12);
}

#[test]
fn objectives_are_those_of_one_piece_in_single_precision() {
    agree(cases::<f32>(), 1e-5);
}

/// Data of which a whole shard has no mass, as columns in one piece may have none.
#[test]
fn a_shard_may_be_without_mass() {
    let matrix = |hidden| {
        let v = dense::<f64>(&[23, SAMPLES], hidden);
        let mut values = vec![0.0; 23 * SAMPLES];
        v.visit(&mut |at, x| {
            values[at[0] * SAMPLES + at[1]] = if at[1] / 40 == 1 { 0.0 } else { x }
        })
        .unwrap();
        v.visit_mask(&mut |at| values[at[0] * SAMPLES + at[1]] = f64::NAN)
            .unwrap();
        DenseTensor::masked(vec![23, SAMPLES], values, Order::RowMajor).unwrap()
    };
    fn empty(
        name: &'static str,
        model: impl Both<f64> + 'static,
        data: impl Data<f64> + 'static,
    ) -> Case<f64> {
        let shards = cut(&data, 1, &[40, 80, SAMPLES]).unwrap();
        assert_eq!((shards.len(), shards[1].total()), (3, 0.0), "{name}");
        Case {
            name,
            shards,
            model: Box::new(model),
            data: Box::new(data),
        }
    }
    let plsa = || Plsa::new(K);
    let plca = || Plca::new(K);
    let nmf = |update| Nmf::new(K).update(update);
    let cases = vec![
        empty("plsa", plsa(), matrix(0.0)),
        empty("plsa, sparse", plsa(), sparse(&matrix(0.0))),
        empty("plsa, hidden", plsa(), matrix(0.2)),
        empty("plca", plca(), sparse(&matrix(0.0))),
        empty("plca, hidden", plca(), matrix(0.2)),
        empty("nmf", nmf(Update::Simultaneous), matrix(0.0)),
        empty("nmf in turn", nmf(Update::Sequential), sparse(&matrix(0.0))),
        empty("nmf, imputed", nmf(Update::Simultaneous), matrix(0.2)),
    ];
    // A mixture that nothing is known of stays where it began.
    let (start, _) = in_process(&cases[0], Solver::Em, 0);
    let (end, _) = in_process(&cases[0], Solver::Em, 5);
    let mixture = |at: &Parameters<f64>| at.block("mixture").unwrap().columns(40, 40).into_owned();
    assert_eq!(mixture(&end), mixture(&start));
    let (end, _) = in_process(&cases[0], Solver::Fast, 5);
    assert_eq!(mixture(&end), mixture(&start));
    for case in &cases {
        let (end, trace) = in_process(case, Solver::Fast, 5);
        for (name, block) in end.blocks() {
            assert!(block.iter().all(|x| x.is_finite()), "{} {name}", case.name);
        }
        let sign = if case.name.starts_with("nmf") {
            -1.0
        } else {
            1.0
        };
        for pair in trace.windows(2) {
            let gain = sign * (pair[1] - pair[0]);
            assert!(gain > -1e-12 * trace[0].abs(), "{} {gain}", case.name);
        }
    }
    agree(cases, 1e-12);

    let none = dense::<f64>(&[23, SAMPLES], 0.0);
    let none = DenseTensor::new(
        none.shape().to_vec(),
        vec![0.0; 23 * SAMPLES],
        Order::RowMajor,
    );
    let shards = cut(&none.unwrap(), 1, &[40, SAMPLES]).unwrap();
    let error = InProcess::new(&plsa(), &shards).unwrap_err();
    assert_eq!(error, FitError::Data(DataError::NoMass));
}

/// Starts are drawn shard by shard, and have the bits of a start on all data.
#[test]
fn starts_are_those_of_one_piece() {
    let drawn = |case: &Case<f64>| case.model.sharded().start_passes() == 0;
    for case in cases::<f64>().into_iter().filter(drawn) {
        let run = case.model.piece().on(&*case.data).unwrap().stop(stop(0));
        let whole = run.run(Init::default(), &mut rng()).unwrap().into_state();
        let (model, shards) = (case.model.sharded(), &case.shards);
        let rng = ChaCha8Rng::seed_from_u64(0);
        let (shared, locals, _) = Groups {
            model,
            shards,
            groups: 64,
            rng,
        }
        .run(0);
        for (name, block) in shared.parameters().blocks() {
            assert_eq!(whole.block(name), Some(block), "{} {name}", case.name);
        }
        let drawn = match case
            .name
            .split_once(' ')
            .map_or(case.name, |(name, _)| name)
            .trim_end_matches(',')
        {
            "plsa" => "mixture",
            "plca" => whole.blocks().last().unwrap().0,
            _ => "h",
        };
        let block = whole.block(drawn).unwrap();
        for local in &locals {
            let (part, first) = (&local.blocks()[0], local.place().first);
            let expected = match drawn {
                "mixture" | "h" => block.columns(first, part.ncols()).into_owned(),
                _ => block.rows(first, part.nrows()).into_owned(),
            };
            assert_eq!(*part, expected, "{}", case.name);
        }
    }
}

/// Shards that only messages reach, with what belongs to their samples.
#[derive(Debug)]
struct Keeper<'a> {
    model: &'a dyn Sharded<f64>,
    shards: &'a [Box<dyn Data<f64>>],
    locals: RefCell<Vec<Local<f64>>>,
}

impl Engine<f64> for Keeper<'_> {
    fn pass(&self, shared: &Shared<f64>, ask: PassRequest) -> Result<Stats, FitError> {
        let (shared, count) = (moved(shared), self.shards.len() as u32);
        let mut sum = Partial::empty(count);
        for (s, shard) in self.shards.iter().enumerate().rev() {
            let mut local = moved(&self.locals.borrow()[s]);
            let stats = self.model.e_step(&**shard, &mut local, &shared, ask)?;
            sum = sum.join(moved(&Partial::leaf(s as u32, count, stats)?))?;
            if ask.counts {
                self.locals.borrow_mut()[s] = local;
            }
        }
        Ok(sum.root()?)
    }
}

/// A run whose shards an engine holds has the bits of one process, also if it goes on from a checkpoint; shards that are missing or not yet
/// finished are no parameters.
fn as_in_one_process(case: &Case<f64>, solver: Solver) -> usize {
    let (model, shards) = (case.model.sharded(), &case.shards);
    let survey = InProcess::new(model, shards).unwrap().survey().clone();
    let mut start = model.begin(&survey, SEED).unwrap();
    let (mut first, mut locals) = (0, Vec::new());
    for (s, shard) in shards.iter().enumerate() {
        let place = ShardId {
            shard: s as u32,
            shards: shards.len() as u32,
            first,
        };
        first += shard.shape()[survey.along];
        locals.push(model.begin_local(&**shard, place, &start, SEED).unwrap());
    }
    let locals = RefCell::new(locals);
    let keeper = Keeper {
        model,
        shards,
        locals,
    };
    started(model, &keeper, &mut start).unwrap();
    let at = RefCell::new(start.clone());
    let run = |iterations| {
        let elsewhere = Elsewhere::new(model, &keeper, &at).unwrap();
        let run = Run::<Parameters<f64>>::new(Box::new(elsewhere));
        run.solver(solver).stop(stop(iterations))
    };
    let start = Checkpoint::new(start.parameters().clone());
    let half = run(3).resume(start).unwrap();
    let fit = run(6).resume(moved(half.checkpoint())).unwrap();
    let (expected, trace) = in_process(case, solver, 6);
    assert_eq!(Some(&fit.objective()), trace.last(), "{}", case.name);

    let shared = at.borrow().clone();
    let mut locals = keeper.locals.borrow().clone();
    for (shard, local) in shards.iter().zip(&mut locals) {
        model.finish(&**shard, local, &shared).unwrap();
    }
    let gathered = model.gather(&shared, &locals).unwrap();
    for (name, block) in expected.blocks() {
        assert_eq!(gathered.block(name), Some(block), "{} {name}", case.name);
    }
    for (name, numbers) in gathered.facts() {
        assert_eq!(expected.fact(name), Some(numbers), "{} {name}", case.name);
    }
    let missing = model.gather(&shared, &locals[1..]).unwrap_err();
    assert!(matches!(missing, FitError::Conflict { .. }), "{missing}");
    expected.iteration()
}

#[test]
fn an_engine_elsewhere_has_the_bits_of_one_process() {
    for case in cases::<f64>() {
        assert_eq!(as_in_one_process(&case, Solver::Em), 6);
    }
}

/// So it has where points are extrapolated, whether they are kept or not.
#[test]
fn an_engine_extrapolates_with_the_bits_of_one_process() {
    let cases = cases::<f64>().into_iter();
    let cases = cases.filter(|case| !case.name.contains("tempered"));
    // Six times two steps, and one for every point that was kept.
    let kept = cases.map(|case| as_in_one_process(&case, Solver::Squarem) - 12);
    let kept: Vec<_> = kept.collect();
    assert!(kept.iter().any(|&n| n > 0), "{kept:?}");
    assert!(kept.iter().any(|&n| n < 6), "{kept:?}");
}

/// Coordinate descent: samples are near their optimum before every step. Bits are those of one process, no step makes the objective worse, and it is ahead
/// of EM. What shards cannot know is refused.
#[test]
fn samples_are_settled_before_every_step() {
    let mut refused = Vec::new();
    for case in cases::<f64>() {
        let algorithm = InProcess::new(case.model.sharded(), &case.shards).unwrap();
        match algorithm.by_samples() {
            Ok(settles) => assert!(settles),
            Err(FitError::NotSeparable { .. }) => {
                refused.push(case.name);
                continue;
            }
            Err(error) => panic!("{}: {error}", case.name),
        }
        assert_eq!(as_in_one_process(&case, Solver::Fast), 6);
        let (_, plain) = in_process(&case, Solver::Em, 12);
        let (_, trace) = in_process(&case, Solver::Fast, 12);
        let (name, sign) = match case.name.starts_with("nmf") {
            true => (case.name, -1.0),
            false => (case.name, 1.0),
        };
        for pair in trace.windows(2) {
            let gain = sign * (pair[1] - pair[0]);
            assert!(gain > -1e-12 * pair[0].abs(), "{name} {pair:?}");
        }
        let ahead = sign * (trace[trace.len() - 1] - plain[plain.len() - 1]);
        assert!(ahead > 0.0, "{name} {ahead}");
    }
    let expected = [
        "plsa-vb",
        "plsa-vb, sparse",
        "plsa-vb of rows",
        "plca-vb",
        "plca-vb of order 3",
        "plsa, priors",
        "plsa, tempered",
        "plca, priors",
        "nmf, penalties",
        "nmf in turn, penalties",
    ];
    assert_eq!(refused, expected);
}

/// Solvers that extrapolate work on shards in one process.
#[test]
fn squarem_climbs_on_shards() {
    for case in cases::<f64>()
        .into_iter()
        .filter(|case| !case.name.contains("tempered"))
    {
        let (_, plain) = in_process(&case, Solver::Em, 30);
        let (_, trace) = in_process(&case, Solver::Squarem, 30);
        let run = case.model.piece().on(&*case.data).unwrap();
        let run = run.solver(Solver::Squarem).stop(stop(3));
        let whole = run.run(Init::default(), &mut rng()).unwrap();
        for (point, sharded) in whole.trace().iter().zip(&trace).take(3) {
            let error = (point.objective - sharded).abs() / point.objective.abs();
            assert!(error <= 1e-10, "{} {point:?} {sharded}", case.name);
        }
        let sign = if case.name.starts_with("nmf") {
            -1.0
        } else {
            1.0
        };
        let better = sign * (trace[trace.len() - 1] - plain[plain.len() - 1]);
        assert!(better > -1e-9 * plain[0].abs(), "{} {better}", case.name);
    }
}

/// NMF of a small matrix in two shards, after an iteration.
struct Begun {
    nmf: Nmf,
    shards: Vec<Box<dyn Data<f64>>>,
    shared: Shared<f64>,
    locals: Vec<Local<f64>>,
}

fn begun() -> Begun {
    let nmf = Nmf::new(2);
    let shards = cut(&dense::<f64>(&[3, 6], 0.0), 1, &[2, 6]).unwrap();
    let (shared, mut locals, _) = Groups {
        model: &nmf,
        shards: &shards,
        groups: 1,
        rng: rng(),
    }
    .run(1);
    let model: &dyn Sharded<f64> = &nmf;
    for (data, local) in shards.iter().zip(&mut locals) {
        model.finish(&**data, local, &shared).unwrap();
    }
    Begun {
        nmf,
        shards,
        shared,
        locals,
    }
}

/// The same message, but for one number.
fn with<S: Serialize + DeserializeOwned>(message: &S, old: f64, new: f64) -> S {
    let mut bytes = postcard::to_stdvec(message).unwrap();
    let old = old.to_le_bytes();
    let at = bytes.windows(8).position(|window| window == old).unwrap();
    bytes[at..at + 8].copy_from_slice(&new.to_le_bytes());
    postcard::from_bytes(&bytes).unwrap()
}

/// `gather` refuses parameters that are not finite.
#[test]
fn what_is_gathered_is_finite() {
    let begun = begun();
    let model: &dyn Sharded<f64> = &begun.nmf;
    let gathered = |entry: f64| {
        let mut locals = begun.locals.clone();
        let old = locals[1].blocks()[0][0];
        locals[1] = with(&locals[1], old, entry);
        model.gather(&begun.shared, &locals)
    };
    assert!(gathered(2.0).is_ok());
    let bad = gathered(f64::INFINITY);
    assert!(
        matches!(&bad, Err(FitError::NotFinite { what, .. }) if what == "a value of `h`"),
        "{bad:?}"
    );
}

/// A shard refuses an extrapolated point from which the step leads its own block beyond half of the range of numbers from the unit; not one from which it
/// leads nearer.
#[test]
fn shards_refuse_points_beyond_half_of_the_range() {
    let begun = begun();
    let model: &dyn Sharded<f64> = &begun.nmf;
    for (power, refused) in [(500, false), (511, false), (512, true), (520, true)] {
        // The smaller `w`, the larger the `h` of the next step.
        let mut shared = begun.shared.clone();
        for &w in begun.shared.parameters().at(0) {
            shared = with(&shared, w, w * 2f64.powi(-power));
        }
        let told = serde_json::to_string(&shared).unwrap();
        let trial = told.replace("\"Iterate\"", "\"Trial\"");
        assert_ne!(told, trial);
        let trial: Shared<f64> = serde_json::from_str(&trial).unwrap();
        let mut local = begun.locals[1].clone();
        let stats = model.e_step(
            &*begun.shards[1],
            &mut local,
            &trial,
            PassRequest::step(true),
        );
        let stats = serde_json::to_value(stats.unwrap()).unwrap();
        let largest = local.blocks()[0].max();
        assert_eq!(stats["refused"], refused, "{power}: {largest}");
    }
}

/// What shards cannot do is said before any work, and where a datum is wrong its place is that among all data.
#[test]
fn what_shards_cannot_do_is_refused() {
    let v = dense::<f64>(&[5, 8], 0.0);
    let shards = cut(&v, 1, &[3, 8]).unwrap();
    let refused = |model: &dyn Sharded<f64>, shards: &Vec<Box<dyn Data<f64>>>| {
        InProcess::new(model, shards).unwrap_err()
    };
    let plsa = Plsa::new(2).prior("basis", Dirichlet::symmetric(0.5).unwrap());
    assert!(
        matches!(refused(&plsa, &shards), FitError::Conflict { what } if what.contains("`basis`"))
    );
    let plsa = Plsa::new(2).prior("mixture", Entropic::new(5.0).unwrap());
    assert!(
        matches!(refused(&plsa, &shards), FitError::Conflict { what } if what.contains("`mixture`"))
    );
    let prior = Dirichlet::symmetric(1.5).unwrap();
    let plca = Plca::new(2).prior("factor_1", prior);
    assert!(
        matches!(refused(&plca, &shards), FitError::Conflict { what } if what.contains("`factor_1`"))
    );
    let hidden = cut(&dense::<f64>(&[5, 8], 0.3), 1, &[3, 8]).unwrap();
    let tempered = Plca::new(2).temper(0.9);
    assert!(matches!(
        refused(&tempered, &hidden),
        FitError::Conflict { .. }
    ));
    let plca = Plca::new(2);

    let frozen = Plsa::new(2).freeze("basis");
    let frozen: &dyn Sharded<f64> = &frozen;
    let survey = InProcess::new(frozen, &shards).unwrap().survey().clone();
    assert_eq!(
        frozen.begin(&survey, SEED).unwrap_err(),
        FitError::NotGiven {
            block: "basis".into()
        }
    );

    let odd = vec![shards[0].shape().to_vec(), vec![4, 2]].into_iter();
    let odd = odd
        .map(|shape| Box::new(dense::<f64>(&shape, 0.0)) as Box<dyn Data<f64>>)
        .collect();
    let error = refused(&plca, &odd);
    assert_eq!(error.to_string(), "the data are 4 x 2, expected 5 x any");

    let mut negative = cut(&v, 1, &[3, 8]).unwrap();
    let mut values = vec![1.0; 25];
    values[7] = -2.0;
    negative[1] = Box::new(DenseTensor::new(vec![5, 5], values, Order::RowMajor).unwrap());
    let expected = DataError::Negative {
        index: vec![1, 5],
        value: -2.0,
    };
    assert_eq!(refused(&plca, &negative), FitError::Data(expected));
}

/// A cell without support is the first one of all data, wherever it lies.
#[test]
fn the_first_cell_without_support_is_found() {
    let ones = || vec![1.0; 12];
    let v = DenseTensor::new(vec![3, 4], ones(), Order::RowMajor).unwrap();
    let shards = cut(&v, 1, &[2, 4]).unwrap();
    let model = Plsa::new(1);
    let algorithm = InProcess::new(&model, &shards).unwrap();
    let start = Init::default().block("basis", DMatrix::from_column_slice(3, 1, &[1.0, 0.0, 0.0]));
    let run = Run::<Parameters<f64>>::new(Box::new(algorithm));
    let error = run.run(start, &mut rng()).unwrap_err();
    assert_eq!(
        error,
        FitError::Support {
            index: vec![1, 0],
            value: 1.0
        }
    );
}

/// Given and frozen blocks, and what runs models of any kind.
#[test]
fn frozen_blocks_stay() {
    let case = cases::<f64>().remove(0);
    let model = Plsa::new(K).freeze("basis");
    let model = OnShards::new(&model, &case.shards);
    let mut rng = rng();
    let mut basis = DMatrix::from_fn(23, K, |_, _| uniform(&mut rng) + 0.1);
    normalise_columns(&mut basis);
    let any: &dyn AnyModel<f64> = &model;
    let run = any.on(&*case.data).unwrap().stop(stop(3));
    let fit = run
        .run(Init::default().block("basis", basis.clone()), &mut rng)
        .unwrap();
    assert_eq!(fit.state().block("basis"), Some(&basis));
    assert_eq!(model.components(), K);
}

/// Shards do not read the data that cooling trains on, so cooling would train on what is held out.
#[test]
fn shards_refuse_cooling() {
    let case = cases::<f64>().remove(0);
    let model = Plca::new(K).temper(0.9);
    let model = OnShards::new(&model, &case.shards);
    let run = Model::on(&model, &*case.data).unwrap();
    let run = run.cool(Cooling::default(), &*case.data, &*case.data);
    let error = run.run(Init::default(), &mut rng()).unwrap_err();
    assert!(matches!(error, FitError::Conflict { .. }), "{error}");
}

/// Posteriors from shapes that are given, whose counts do not agree, and of which some columns are frozen: those of one piece. What shards cannot know is
/// refused.
#[test]
fn given_shapes_are_those_of_one_piece() {
    let v = dense::<f64>(&[23, SAMPLES], 0.0);
    let shards = cut(&v, 1, &[40, 97, SAMPLES]).unwrap();
    let plca = PlcaVb::new(K).freeze_components("factor_1_shape", [1]);
    let plca = plca.freeze_components("factor_0_shape", [0, 2]);
    let lda = PlsaVb::new(K).freeze_components("basis_shape", [3]);
    let whole = PlcaVb::new(K).freeze("factor_1_shape");
    let (rows, columns) = ("factor_0_shape", "factor_1_shape");
    /// A block that is given: its name, rows and columns.
    type Given = (&'static str, (usize, usize));
    let cases: [(Box<dyn Both<f64>>, [Given; 2]); 3] = [
        (Box::new(plca), [(rows, (23, K)), (columns, (SAMPLES, K))]),
        (
            Box::new(lda),
            [("basis_shape", (23, K)), ("mixture_shape", (K, SAMPLES))],
        ),
        (Box::new(whole), [(rows, (23, K)), (columns, (SAMPLES, K))]),
    ];
    for (model, blocks) in cases {
        let mut drawn = rng();
        let mut init = Init::default();
        if blocks[0].0 == rows {
            let weights = DMatrix::from_fn(K, 1, |_, _| 5.0 * uniform(&mut drawn) + 0.1);
            init = init.block("weights_shape", weights);
        }
        for (name, (rows, columns)) in blocks {
            let block = DMatrix::from_fn(rows, columns, |_, _| 3.0 * uniform(&mut drawn) + 0.1);
            init = init.block(name, block);
        }
        let fit = |run: Run<'_, Parameters<f64>>, solver| {
            let run = run.solver(solver).stop(stop(10));
            run.run(init.clone(), &mut rng()).unwrap()
        };
        for solver in [Solver::Em, Solver::Squarem] {
            let one = fit(model.piece().on(&v).unwrap(), solver);
            let algorithm = InProcess::new(model.sharded(), &shards).unwrap();
            let many = fit(Run::new(Box::new(algorithm)), solver);
            assert_eq!(one.trace().len(), many.trace().len());
            for (one, many) in one.trace().iter().zip(many.trace()) {
                let error = (one.objective - many.objective).abs() / one.objective.abs();
                assert!(error <= 1e-10, "{one:?} {many:?}");
            }
        }
    }
    let each = Entries::Each(DMatrix::from_element(K, SAMPLES, 1.0));
    let lda = PlsaVb::new(K).prior("mixture_shape", each);
    let error = InProcess::new(&lda, &shards).unwrap_err();
    assert!(
        matches!(&error, FitError::Conflict { what } if what.contains("`mixture_shape`")),
        "{error}"
    );
    let hidden = cut(&dense::<f64>(&[23, SAMPLES], 0.2), 1, &[40, SAMPLES]).unwrap();
    let plca = PlcaVb::new(K);
    let error = InProcess::new(&plca, &hidden).unwrap_err();
    assert!(
        matches!(&error, FitError::Conflict { what } if what.contains("complete")),
        "{error}"
    );
}

/// A posterior of which one block is given: on shards, too, the others explain it, and probabilities in place of shapes are refused.
#[test]
fn one_block_given_is_explained_as_in_one_piece() {
    let v = dense::<f64>(&[23, SAMPLES], 0.0);
    let shards = cut(&v, 1, &[40, 97, SAMPLES]).unwrap();
    let plca = PlcaVb::new(K).prior("factor_0_shape", Entries::All(0.5));
    let lda = PlsaVb::new(K).prior("mixture_shape", Entries::All(0.1));
    let lda: Box<dyn Both<f64>> = Box::new(lda);
    let plca: Box<dyn Both<f64>> = Box::new(plca);
    let cases = [
        (&lda, "basis_shape", (23, K)),
        (&lda, "mixture_shape", (K, SAMPLES)),
        (&plca, "factor_0_shape", (23, K)),
        (&plca, "factor_1_shape", (SAMPLES, K)),
    ];
    for (model, name, (rows, columns)) in cases {
        let mut drawn = rng();
        let mut block = DMatrix::from_fn(rows, columns, |_, _| 9.0 * uniform(&mut drawn) + 1.0);
        let init = Init::default().block(name, block.clone());
        let one = init.parameters(&*model.piece().bind(&v).unwrap(), &mut rng());
        let many = InProcess::new(model.sharded(), &shards).unwrap();
        let starts = [7, 8].map(|seed| {
            let seed = &mut ChaCha8Rng::seed_from_u64(seed);
            init.parameters(&many, seed).unwrap()
        });
        assert_eq!(starts[0].matrices(), starts[1].matrices(), "{name}");
        for (one, many) in one.unwrap().matrices().iter().zip(starts[0].matrices()) {
            assert!((one - many).amax() <= 1e-9 * one.amax(), "{name}");
        }
        normalise_columns(&mut block);
        let refused = Init::default().block(name, block);
        let refused = refused.parameters(&many, &mut rng()).unwrap_err();
        let is_right = matches!(&refused, FitError::Probabilities { block, .. } if block == name);
        assert!(is_right, "{refused}");
    }
}

/// Single entries of what all shards share are frozen as in one piece; those of what belongs to samples are refused.
#[test]
fn frozen_entries_are_those_of_one_piece() {
    let v = dense::<f64>(&[23, SAMPLES], 0.0);
    let shards = cut(&v, 1, &[40, 97, SAMPLES]).unwrap();
    let flags = DMatrix::from_fn(23, K, |x, z| (x + z) % 3 == 0);
    let plsa = Plsa::new(K).freeze_entries("basis", flags.clone());
    let plca = Plca::new(K).freeze_entries("factor_0", flags.clone());
    let nmf = Nmf::new(K).update(Update::Sequential);
    let nmf = nmf.freeze_entries("w", flags.clone());
    let cases: [(&str, Box<dyn Both<f64>>); 3] = [
        ("basis", Box::new(plsa)),
        ("factor_0", Box::new(plca)),
        ("w", Box::new(nmf)),
    ];
    for (name, model) in cases {
        let mut drawn = rng();
        let mut start = DMatrix::from_fn(23, K, |_, _| uniform(&mut drawn) + 0.1);
        normalise_columns(&mut start);
        let fit = |run: Run<'_, Parameters<f64>>| {
            let init = Init::default().block(name, start.clone());
            let run = run.solver(Solver::Em).stop(stop(20));
            run.run(init, &mut rng()).unwrap()
        };
        let one = fit(model.piece().on(&v).unwrap());
        let algorithm = InProcess::new(model.sharded(), &shards).unwrap();
        let many = fit(Run::new(Box::new(algorithm)));
        let error = (one.objective() - many.objective()).abs() / one.objective().abs();
        assert!(error <= 1e-12, "{name} {error}");
        let block = many.state().block(name).unwrap();
        for ((x, start), frozen) in block.iter().zip(&start).zip(&flags) {
            assert_eq!(x == start, *frozen, "{name}");
        }
    }
    let flags = DMatrix::from_element(K, SAMPLES, true);
    let plsa = Plsa::new(K).freeze_entries("mixture", flags);
    let error = InProcess::new(&plsa, &shards).unwrap_err();
    assert!(
        matches!(&error, FitError::Conflict { what } if what.contains("`mixture`") && what.contains("not entries")),
        "{error}"
    );
}

/// In binary formats a matrix is its sizes and its bytes, which are held against each other; in others it is as `nalgebra` writes it.
#[test]
fn matrices_travel_as_bytes() {
    fn check<T: Real + Serialize + DeserializeOwned>() {
        let size = size_of::<T>();
        let values = [0.1, -0.0, 5e-324, 1e300, f64::INFINITY, 2.0].map(T::lit);
        let matrix = Exposure::PerEntry(DMatrix::from_column_slice(3, 2, &values));
        let bytes = postcard::to_stdvec(&matrix).unwrap();
        // The variant, two sizes and the number of bytes.
        assert_eq!(bytes.len(), 4 + 6 * size);
        assert_eq!(bytes[..4], [1, 3, 2, 6 * size as u8]);
        let back: Exposure<T> = postcard::from_bytes(&bytes).unwrap();
        let Exposure::PerEntry(back) = back else {
            panic!("another variant")
        };
        let bits = |x: &T| (x.to_f64().to_bits(), x.to_f64().is_sign_negative());
        assert!(back.iter().map(bits).eq(values.iter().map(bits)));
        let text = serde_json::to_string(&Exposure::PerEntry(DMatrix::from_element(1, 2, 0.5)));
        assert_eq!(text.unwrap(), r#"{"PerEntry":[[0.5,0.5],1,2]}"#);
        for (at, other) in [(1, 4), (2, 1), (3, 5 * size as u8), (3, 6 * size as u8 - 1)] {
            let mut wrong = bytes.clone();
            wrong[at] = other;
            assert!(postcard::from_bytes::<Exposure<T>>(&wrong).is_err());
        }
        let mut beyond = [bytes, vec![0]].concat();
        beyond[3] += 1;
        assert!(postcard::from_bytes::<Exposure<T>>(&beyond).is_err());
    }
    check::<f64>();
    check::<f32>();
}

/// Bytes of another version, and those that are no statistics of the model, are refused.
#[test]
fn foreign_bytes_are_refused() {
    let case = cases::<f64>().remove(0);
    let model = case.model.sharded();
    let survey = model.survey(&*case.shards[0], 0).unwrap();
    let leaf = Partial::leaf(0, 2, survey.clone()).unwrap();
    let text = serde_json::to_string(&leaf).unwrap();
    let other = text.replace("\"version\":5", "\"version\":3");
    let error = serde_json::from_str::<Partial<Survey>>(&other).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("version 3 of shards, this program reads 5"),
        "{error}"
    );
    let beyond = text.replace("\"place\":0", "\"place\":5");
    let error = serde_json::from_str::<Partial<Survey>>(&beyond).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no node 5 at level 0 over 2 shards"),
        "{error}"
    );

    let mut shared = model.begin(&survey, SEED).unwrap();
    let place = ShardId {
        shard: 0,
        shards: 1,
        first: 0,
    };
    let nmf: &dyn Sharded<f64> = &Nmf::new(K);
    let theirs = nmf.begin(&survey, SEED).unwrap();
    let mut local = nmf
        .begin_local(&*case.shards[0], place, &theirs, SEED)
        .unwrap();
    let stats = nmf
        .e_step(
            &*case.shards[0],
            &mut local,
            &theirs,
            PassRequest::step(true),
        )
        .unwrap();
    let before = shared.clone();
    let error = model.m_step(&mut shared, stats).unwrap_err();
    assert!(matches!(error, FitError::Conflict { .. }), "{error}");
    assert_eq!(shared, before);

    // What belongs to another shard, and to another model.
    let larger = (0..64).find(|&s| case.shards[s].shape() != case.shards[0].shape());
    let other = &case.shards[larger.unwrap()];
    let other = model.begin_local(&**other, place, &shared, SEED).unwrap();
    for mut local in [other, local] {
        let kept = local.clone();
        let ask = PassRequest::step(false);
        let passed = model.e_step(&*case.shards[0], &mut local, &shared, ask);
        let error = passed.unwrap_err();
        assert!(matches!(error, FitError::Conflict { .. }), "{error}");
        assert_eq!(local, kept);
    }
}
