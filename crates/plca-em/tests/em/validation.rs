//! Cross-validated ranks against the reference vectors, and what must not change them.

use nalgebra::DMatrix;
use plca_dist::draw_poisson;
use plca_dist::key::Key;
use plca_em::{
    CrossValidation, EmError, FitError, Init, Model, Nmf, Plca, Plsa, RankRule, RankScores,
    RankTable, Reconstruct, Run, Solver, Stop, Update, best_rank,
};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;

fn cases(kind: &str) -> Vec<Value> {
    let text = include_str!("../../../testdata/golden/selection/folds.json");
    let file: Value = serde_json::from_str(text).unwrap();
    let cases = file["cases"].as_array().unwrap().iter();
    let cases: Vec<Value> = cases.filter(|case| case["kind"] == kind).cloned().collect();
    assert!(!cases.is_empty(), "no case of the kind {kind}");
    cases
}

fn numbers(v: &Value) -> Vec<f64> {
    let list = v["data"].as_array().or(v.as_array()).unwrap().iter();
    list.map(|x| x.as_f64().unwrap()).collect()
}

fn shape(v: &Value) -> Vec<usize> {
    let sizes = v["shape"].as_array().unwrap().iter();
    sizes.map(|n| n.as_u64().unwrap() as usize).collect()
}

fn matrix(v: &Value) -> DMatrix<f64> {
    let shape = shape(v);
    DMatrix::from_row_slice(shape[0], shape[1], &numbers(v))
}

fn close(got: f64, want: f64, what: &str) {
    let error = (got - want).abs() / want.abs().max(1.0);
    assert!(error <= 1e-9, "{what}: {got} {want}");
}

/// The same observed cells in every storage.
fn storages(shape: &[usize], values: &[f64], observed: &[bool]) -> Vec<Box<dyn Data<f64>>> {
    let all = |keep: &dyn Fn(usize) -> bool| {
        let mut cells = Coordinates::empty(shape);
        // From the end: no storage has to keep the order.
        for at in (0..values.len()).rev().filter(|&at| keep(at)) {
            cells.push(&[at / shape[1], at % shape[1]], values[at]);
        }
        cells
    };
    let hidden: Vec<f64> = values
        .iter()
        .zip(observed)
        .map(|(&x, &seen)| if seen { x } else { f64::NAN })
        .collect();
    let turned = (0..values.len()).map(|at| hidden[at % shape[0] * shape[1] + at / shape[0]]);
    let turned = turned.collect();
    vec![
        Box::new(DenseTensor::masked(shape.to_vec(), hidden.clone(), Order::RowMajor).unwrap()),
        Box::new(DenseTensor::masked(shape.to_vec(), turned, Order::ColumnMajor).unwrap()),
        Box::new(SparseTensor::stored_only(all(&|at| observed[at])).unwrap()),
        Box::new(
            SparseTensor::all_but(
                all(&|at| observed[at] && values[at] > 0.0),
                all(&|at| !observed[at]),
            )
            .unwrap(),
        ),
    ]
}

fn check_table(table: &RankTable, case: &Value) {
    let rows = table.rows().iter();
    let of = |name: &str| numbers(&case[name]);
    let [mean, se, difference, difference_se] =
        ["mean", "se", "difference", "difference_se"].map(of);
    for (at, row) in rows.enumerate() {
        close(row.score.unwrap(), mean[at], "mean");
        close(row.se.unwrap(), se[at], "se");
        close(row.difference.unwrap(), difference[at], "difference");
        close(row.difference_se.unwrap(), difference_se[at], "its se");
    }
    for (rule, name) in [
        (RankRule::Best, "best"),
        (RankRule::OneStandardError, "one_se"),
        (RankRule::Paired, "paired"),
    ] {
        let choice = table.choice(rule).map(|rank| rank as u64);
        assert_eq!(choice, case[name].as_u64(), "{name}");
    }
}

// [SEL 2]
#[test]
fn rules_match_the_reference() {
    for case in cases("rule") {
        let (shape, scores) = (shape(&case["scores"]), numbers(&case["scores"]));
        let ranks = numbers(&case["ranks"]);
        let of_rank = scores.chunks_exact(shape[1] * shape[2]).zip(ranks);
        let rows = of_rank.map(|(scores, rank)| RankScores {
            rank: rank as usize,
            scores: scores
                .chunks_exact(shape[2])
                .map(|folds| folds.iter().copied().map(Some).collect())
                .collect(),
            ..RankScores::default()
        });
        check_table(&RankTable::new(rows.collect()), &case);
    }
}

/// The folds of a repeat, and what was kept of an index, as the reference has them.
fn check_folds(case: &Value, settings: &CrossValidation, data: &dyn Data<f64>, repeat: usize) {
    let speckled = settings.speckled(data).unwrap();
    let folds = speckled.folds(repeat);
    let of_repeat = |name: &str| match &case[name] {
        Value::Array(repeats) => numbers(&repeats[repeat]),
        one => numbers(one),
    };
    let columns = data.shape()[1];
    let mut of_cell = vec![-1.0; of_repeat("fold_of_cell").len()];
    folds.visit(|index, _, fold| {
        if let Some(fold) = fold {
            of_cell[index[0] * columns + index[1]] = fold as f64;
        }
    });
    assert_eq!(of_cell, of_repeat("fold_of_cell"));
    let mut kept = vec![0.0; of_cell.len()];
    for cell in folds.kept_for_an_index() {
        kept[cell[0] * columns + cell[1]] = 1.0;
    }
    assert_eq!(kept, of_repeat("kept_for_its_index"));
}

fn settings(case: &Value) -> CrossValidation {
    let number = |name: &str| case[name].as_u64().unwrap();
    CrossValidation::default()
        .folds(number("folds") as usize)
        .seed(number("seed"))
        .zeros(case["zeros"].as_bool().unwrap())
}

// [SEL 2]
#[test]
fn folds_match_the_reference() {
    for case in cases("fold_table") {
        let (shape, values) = (shape(&case["v"]), numbers(&case["v"]));
        let repeat = case["repeat"].as_u64().unwrap() as usize;
        for data in storages(&shape, &values, &vec![true; values.len()]) {
            check_folds(&case, &settings(&case), &*data, repeat);
        }
    }
}

// [SEL 2]
#[test]
fn scores_match_the_reference() {
    for case in cases("speckled") {
        let (shape, values) = (shape(&case["v"]), numbers(&case["v"]));
        let observed = match case.get("observed") {
            Some(seen) => numbers(seen).iter().map(|&x| x > 0.0).collect(),
            None => vec![true; values.len()],
        };
        let repeats = case["repeats"].as_u64().unwrap() as usize;
        let smoothing = case["smoothing"].as_f64().unwrap();
        let settings = settings(&case);
        let settings = settings.repeats(repeats).smoothing(smoothing).starts(1);
        let ranks: Vec<usize> = numbers(&case["ranks"])
            .iter()
            .map(|&k| k as usize)
            .collect();
        let stop = Stop::default()
            .tol(None)
            .max_iter(case["iterations"].as_u64().unwrap() as usize);
        for data in storages(&shape, &values, &observed) {
            (0..repeats).for_each(|repeat| check_folds(&case, &settings, &*data, repeat));
            let model = |rank| Ok::<_, EmError>(Nmf::new(rank).update(Update::Sequential));
            let table = settings.run(&*data, &ranks, &model, &|fold, run| {
                let start = &case["starts"][fold.rank.to_string()];
                let init = Init::default()
                    .block("w", matrix(&start["w"]))
                    .block("h", matrix(&start["h"]));
                let run = run.solver(Solver::Em).stop(stop.clone());
                run.run(init, &mut fold.draws()).map_err(EmError::from)
            });
            let table = table.unwrap();
            let mut want = numbers(&case["scores"]).into_iter();
            for row in table.rows() {
                for score in row.scores.scores.iter().flatten() {
                    close(score.unwrap(), want.next().unwrap(), "score");
                }
            }
            assert_eq!(want.next(), None);
            check_table(&table, &case);
        }
    }
}

/// Counts of three blocks.
fn blocks(shape: &[usize], scale: f64) -> DenseTensor<f64> {
    let mut rng = Key::of(&[5]).generator();
    let cells: usize = shape.iter().product();
    let value = |at: usize| {
        let mut rest = at;
        let mut thirds = shape.iter().rev().map(|&n| {
            let i = rest % n;
            rest /= n;
            3 * i / n
        });
        let first = thirds.next().unwrap();
        let mean = if thirds.all(|third| third == first) {
            24.0
        } else {
            2.0
        };
        scale * draw_poisson(mean, &mut rng).unwrap() as f64
    };
    let values = (0..cells).map(value).collect();
    DenseTensor::new(shape.to_vec(), values, Order::RowMajor).unwrap()
}

fn scored<M>(
    settings: &CrossValidation,
    data: &dyn Data<f64>,
    ranks: &[usize],
    model: &(dyn Fn(usize) -> Result<M, FitError> + Sync),
) -> RankTable
where
    M: Model<f64, State: Reconstruct>,
{
    let model = |rank| model(rank).map_err(EmError::from);
    let fit = |fold: plca_em::OfFold, run: Run<'_, M::State>| {
        run.run(Init::default(), &mut fold.draws())
            .map_err(EmError::from)
    };
    settings.run(data, ranks, &model, &fit).unwrap()
}

/// The models of one likelihood find the same number, and tensors theirs, on any number of threads.
#[test]
fn every_model_finds_the_number_of_blocks() {
    let settings = CrossValidation::default().seed(3);
    let ranks = [1, 2, 3, 4];
    let data = blocks(&[18, 15], 1.0);
    let by_plca = || scored(&settings, &data, &ranks, &|rank| Ok(Plca::new(rank)));
    let tables = [
        by_plca(),
        scored(&settings, &data, &ranks, &|rank| Ok(Plsa::new(rank))),
        scored(&settings, &data, &ranks, &|rank| Ok(Nmf::new(rank))),
    ];
    for table in &tables {
        assert_eq!(table.choice(RankRule::Best), Some(3), "{table:?}");
        assert!(table.rows().iter().all(|row| row.scores.start_sd.is_some()));
    }
    // In a tensor what is between the blocks is a component of its own.
    let tensor = scored(
        &settings,
        &blocks(&[9, 9, 6], 1.0),
        &[1, 2, 3, 4, 5],
        &|rank| Ok(Plca::new(rank)),
    );
    assert_eq!(tensor.choice(RankRule::Best), Some(4), "{tensor:?}");
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let again = pool.build().unwrap().install(by_plca);
        assert_eq!(again, tables[0], "{threads} threads");
    }
}

/// In another unit all scores are those in the other unit, and the choices are the same.
#[test]
fn choices_do_not_depend_on_the_unit() {
    let settings = CrossValidation::default();
    let table = |scale| {
        let table = settings.run(
            &blocks(&[18, 15], scale),
            &[1, 2, 3, 4],
            &|rank| Ok::<_, EmError>(Nmf::new(rank)),
            &|fold, run| {
                let run = run.solver(Solver::Em);
                let run = run.stop(Stop::default().tol(None).max_iter(100));
                Ok(run.run(Init::default(), &mut fold.draws())?)
            },
        );
        table.unwrap()
    };
    let one = table(1.0);
    for scale in [2f64.powi(-400), 2f64.powi(300), 1e-7, 1e5] {
        let other = table(scale);
        for rule in [RankRule::Best, RankRule::OneStandardError, RankRule::Paired] {
            assert_eq!(one.choice(rule), other.choice(rule), "{scale}");
        }
        for (one, other) in one.rows().iter().zip(other.rows()) {
            let ratio = other.score.unwrap() / scale / one.score.unwrap();
            assert!((ratio - 1.0).abs() < 1e-9, "{scale}: {ratio}");
        }
    }
}

/// A matrix that was turned has the folds of its file, and other rows, folds, ranks or repeats move nothing.
#[test]
fn folds_belong_to_cells() {
    let data = blocks(&[12, 10], 1.0);
    let (shape, values, _) = data.clone().into_parts();
    let turned = (0..120).map(|at| values[at % 12 * 10 + at / 12]).collect();
    let turned = DenseTensor::new(vec![10, 12], turned, Order::RowMajor).unwrap();
    let more: Vec<f64> = values.iter().chain(&values).copied().collect();
    let more = DenseTensor::new(vec![24, 10], more, Order::RowMajor).unwrap();
    let settings = CrossValidation::default().seed(11);
    let folds = |data: &dyn Data<f64>, turned: bool| {
        let speckled = settings.clone().turned(turned).speckled(data).unwrap();
        let mut found = std::collections::BTreeMap::new();
        speckled.folds(2).visit(|index, _, fold| {
            let index = match turned {
                true => [index[1], index[0]],
                false => [index[0], index[1]],
            };
            found.insert(index, fold);
        });
        found
    };
    let own = folds(&data, false);
    assert_eq!(own.len(), shape.iter().product::<usize>());
    assert_eq!(own, folds(&turned, true));
    assert_ne!(own, folds(&data, true));
    let mut longer = folds(&more, false);
    longer.retain(|index, _| index[0] < 12);
    assert_eq!(own, longer);
}

/// Sparse data whose cells are listed have the tables of an array of all cells.
#[test]
fn listed_cells_have_the_folds_of_an_array() {
    let mut cells = Coordinates::empty(&[40, 30]);
    for n in 0..150usize {
        cells.push(&[n * n * 7 % 40, n * 13 % 30], (n % 4 + 1) as f64);
    }
    let sparse = SparseTensor::new(cells).unwrap();
    let mut values = vec![0.0; 1200];
    sparse
        .visit(&mut |index, value| values[index[0] * 30 + index[1]] = value)
        .unwrap();
    let dense = DenseTensor::new(vec![40, 30], values, Order::RowMajor).unwrap();
    for zeros in [true, false] {
        let settings = CrossValidation::default().zeros(zeros).starts(1);
        let table =
            |data: &dyn Data<f64>| scored(&settings, data, &[1, 2], &|rank| Ok(Nmf::new(rank)));
        assert_eq!(table(&sparse), table(&dense), "{zeros}");
        // What is not held out is what is left.
        let speckled = settings.speckled(&sparse).unwrap();
        let folds = speckled.folds(0);
        for fold in 0..5 {
            let (mut held, train) = (0.0, speckled.train(&folds, fold).unwrap());
            folds.visit(|_, value, of| held += if of == Some(fold) { value } else { 0.0 });
            assert_eq!(train.total() + held, sparse.total());
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let data = blocks(&[6, 5], 1.0);
    let refused = |settings: CrossValidation, data: &dyn Data<f64>| {
        let table = settings.run(
            data,
            &[1],
            &|rank| Ok::<_, EmError>(Nmf::new(rank)),
            &|fold, run| {
                run.run(Init::default(), &mut fold.draws())
                    .map_err(EmError::from)
            },
        );
        table.unwrap_err().to_string()
    };
    let usual = CrossValidation::default;
    for (settings, parts) in [
        (usual().folds(1), ["`folds` is 1", "at least 2"]),
        (usual().repeats(0), ["`repeats` is 0", "at least 1"]),
        (usual().starts(0), ["`starts` is 0", "at least 1"]),
        (usual().smoothing(0.0), ["`smoothing` is 0", "(0, 1)"]),
        (
            usual().smoothing(f64::NAN),
            ["`smoothing` is NaN", "(0, 1)"],
        ),
        (usual().folds(31), ["31 folds", "positive cells"]),
    ] {
        let e = refused(settings, &data);
        assert!(parts.iter().all(|part| e.contains(part)), "{e}");
    }
    let negative = DenseTensor::new(vec![2, 2], vec![1.0, -2.0, 3.0, 4.0], Order::RowMajor);
    let e = refused(usual().folds(2), &negative.unwrap());
    assert!(e.contains("[0, 1] is -2"), "{e}");
    let mut few = Coordinates::empty(&[100_000; 4]);
    (0..10).for_each(|n| few.push(&[n, n % 3, n, n], 1.0));
    let few = SparseTensor::new(few).unwrap();
    let e = refused(usual(), &few);
    assert!(e.contains("too large"), "{e}");
    // An error of any fit is that of the table.
    let data = blocks(&[6, 5], 1.0);
    let table = usual().run(
        &data,
        &[1, 2],
        &|rank| Ok::<_, EmError>(Plca::new(rank)),
        &|fold, run| {
            let init = match fold.fold {
                3 => Init::default().block("no block", DMatrix::zeros(1, 1)),
                _ => Init::default(),
            };
            run.run(init, &mut fold.draws()).map_err(EmError::from)
        },
    );
    assert!(matches!(
        table,
        Err(EmError::Fit(FitError::UnknownBlock { .. }))
    ));
}

/// A rank beyond those of a matrix has no scores, the others have; of a tensor all have.
#[test]
fn ranks_beyond_a_matrix_are_passed_over() {
    let settings = CrossValidation::default().starts(1);
    let table = scored(&settings, &blocks(&[12, 4], 1.0), &[5, 2, 4], &|rank| {
        Ok(Nmf::new(rank))
    });
    let [beyond, two, four] = table.rows() else {
        panic!("three rows");
    };
    assert_eq!(
        (beyond.score, beyond.se, beyond.difference),
        (None, None, None)
    );
    assert!(beyond.scores.scores.is_empty() && beyond.scores.rank == 5);
    assert!(two.score.is_some() && four.score.is_some());
    let none = RankTable::new(vec![RankScores::default()]);
    assert_eq!(none.choice(RankRule::Best), None);
}

/// The start that is scored is the best on the training data, whatever it predicts.
#[test]
fn starts_are_chosen_by_the_training_data() {
    let data = blocks(&[9, 8], 1.0);
    // The second start is left where it begins, at even factors, which predict better than any fit of so many components.
    let stop = |start: usize| match start {
        1 => Stop::default().max_iter(0),
        _ => Stop::default().tol(1e-9),
    };
    let run = |starts: usize, first: usize| {
        let settings = CrossValidation::default().starts(starts);
        settings
            .run(
                &data,
                &[6],
                &|rank| Ok::<_, EmError>(Plca::new(rank)),
                &|fold, run| {
                    let start = fold.start + first;
                    let mut rng = ChaCha8Rng::seed_from_u64(start as u64);
                    let run = run.stop(stop(start));
                    run.run(Init::default(), &mut rng).map_err(EmError::from)
                },
            )
            .unwrap()
    };
    let [one, left, both] = [run(1, 0), run(1, 1), run(2, 0)];
    let score = |table: &RankTable| table.rows()[0].score.unwrap();
    assert_eq!(score(&both), score(&one));
    let sd = both.rows()[0].scores.start_sd.unwrap();
    let apart = (score(&one) - score(&left)).abs() / 2f64.sqrt();
    assert!((sd / apart - 1.0).abs() < 1e-9, "{sd} {apart}");
    assert_eq!(one.rows()[0].scores.start_sd, None);
}

/// Scores within a relative 1e-9 of the least are equal, and the smallest rank is taken, in whatever order they come; beyond it they are not.
#[test]
fn of_equal_scores_the_smallest_rank_is_best() {
    let scores = |third: f64| [(4, 2.0), (3, 2.0 * (1.0 + 5e-10)), (2, 2.0 * (1.0 + third))];
    assert_eq!(best_rank(&scores(2e-9)), Some(1));
    assert_eq!(best_rank(&scores(8e-10)), Some(2));
    assert_eq!(best_rank(&[(2, f64::NAN), (3, 1.0)]), Some(1));
    assert_eq!(best_rank(&[(2, f64::NAN)]), None);
}

/// Of a diagonal matrix the model of independent dimensions has no maximum where all cells from some rows to the columns of others are hidden, and one of
/// those back is seen to be 0: the weight of these rows can rise without end.
#[test]
fn folds_without_a_model_of_independent_dimensions_are_counted() {
    let cells = (0..9).map(|n| if n % 4 == 0 { 5.0 } else { 0.0 }).collect();
    let data = DenseTensor::<f64>::new(vec![3, 3], cells, Order::RowMajor).unwrap();
    let (mut counted, mut all) = (0, 0);
    for seed in 0..20 {
        let settings = CrossValidation::default().folds(2).starts(1).seed(seed);
        let speckled = settings.speckled(&data).unwrap();
        let mut folds = [[None; 3]; 3];
        speckled
            .folds(0)
            .visit(|index, _, of| folds[index[0]][index[1]] = of);
        let rises = |fold: &usize| {
            (1..7u32).any(|set| {
                let within = |i: usize| set >> i & 1 == 1;
                let across = (0..9)
                    .map(|n| (n / 3, n % 3))
                    .filter(|&(i, j)| within(i) && !within(j));
                let hidden = |i: usize, j: usize| folds[i][j] == Some(*fold);
                across.clone().all(|(i, j)| hidden(i, j))
                    && across.clone().any(|(i, j)| !hidden(j, i))
            })
        };
        let expected = (0..2).filter(rises).count();
        let table = settings.run(
            &data,
            &[1],
            &|rank| Ok::<_, EmError>(Plca::new(rank)),
            &|fold, run| {
                let run = run.stop(Stop::default().max_iter(5));
                Ok(run.run(Init::default(), &mut fold.draws())?)
            },
        );
        assert_eq!(table.unwrap().unsettled_folds(), expected, "seed {seed}");
        (counted, all) = (counted + expected, all + 2);
    }
    assert!(counted > 0 && counted < all, "{counted} of {all}");
}
