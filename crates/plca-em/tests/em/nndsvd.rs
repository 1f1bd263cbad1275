//! Starts from the leading singular vectors.

use nalgebra::DMatrix;
use plca_dist::random::uniform;
use std::ops::ControlFlow;

use plca_em::{Nmf, NmfState, Plca, PlsaVb};
use plca_fit::{
    Fit, FitError, Init, Iteration, Model, Observer, Solver, State, Status, Stop, nndsvd::Fill,
};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor, times_power_of_two};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::Value;

use crate::support::{dense, matrix};

const FILLS: [Fill; 3] = [Fill::Zero, Fill::Mean, Fill::Random];

fn coordinates(m: &DMatrix<f64>, keep: impl Fn(f64) -> bool) -> Coordinates<f64> {
    let places = (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| (i, j)));
    let places: Vec<_> = places.filter(|&at| keep(m[at])).collect();
    Coordinates {
        shape: vec![m.nrows(), m.ncols()],
        indices: (places.iter().flat_map(|&(i, j)| [i as u32, j as u32])).collect(),
        values: places.iter().map(|&at| m[at]).collect(),
    }
}

/// A sum of a few products, each ahead of the next, and a little of everything.
fn table(rows: usize, columns: usize) -> DMatrix<f64> {
    DMatrix::from_fn(rows, columns, |i, j| {
        let products = (0..4).map(|z| {
            let wave = |n: usize| 1.0 + (((n + 1) * (z + 1)) as f64 * 0.7 + z as f64).sin();
            (1.0f64 / 3.0).powi(z as i32) * wave(i) * wave(3 * j)
        });
        products.sum::<f64>() + 0.01 * (((7 * i + 5 * j) % 13) as f64)
    })
}

fn start(data: &dyn Data<f64>, k: usize, fill: Fill, seed: u64) -> Result<NmfState<f64>, FitError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    Nmf::new(k).init(data, Init::nndsvd(fill), &mut rng)
}

fn near(a: &NmfState<f64>, b: &NmfState<f64>, tolerance: f64) -> bool {
    let size = b.w().amax().max(b.h().amax());
    let off = (a.w() - b.w()).amax().max((a.h() - b.h()).amax());
    off <= tolerance * size
}

#[test]
fn scikit_learn_starts_alike() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../testdata/golden/sklearn_nndsvd.json"
    );
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let (v, k) = (matrix(&case["V"]), case["K"].as_u64().unwrap() as usize);
        let want = NmfState::new(matrix(&case["nndsvda"]["W"]), matrix(&case["nndsvda"]["H"]));
        let want = want.unwrap();
        let sparse = SparseTensor::new(coordinates(&v, |x| x > 0.0)).unwrap();
        for data in [&dense(&v) as &dyn Data<f64>, &sparse] {
            for seed in [0, 7] {
                let got = start(data, k, Fill::Mean, seed).unwrap();
                assert!(near(&got, &want, 1e-11), "{}{}", got.w(), want.w());
            }
            // Its zeros leave cells without support, which is said.
            let zeros = matrix(&case["nndsvd"]["W"]).iter().any(|&x| x == 0.0);
            assert!(zeros);
            let plain = start(data, k, Fill::Zero, 0);
            match plain {
                Ok(plain) => assert_eq!(
                    plain.w().map(|x| x > 0.0),
                    matrix(&case["nndsvd"]["W"]).map(|x| x > 0.0)
                ),
                Err(error) => assert!(matches!(error, FitError::Support { .. }), "{error}"),
            }
        }
    }
}

/// A random subspace finds the vectors of an exact decomposition.
#[test]
fn few_directions_are_enough() {
    let v = table(60, 45);
    let [by_seed, other] = [1, 2].map(|seed| start(&dense(&v), 3, Fill::Mean, seed).unwrap());
    assert!(near(&by_seed, &other, 1e-9));
    let svd = v.clone().svd(true, true);
    let (u, vt) = (svd.u.unwrap(), svd.v_t.unwrap());
    let root = svd.singular_values[0].sqrt();
    let off = (by_seed.w().column(0) - u.column(0).abs() * root).amax();
    assert!(off < 1e-9 * root, "{off}");
    for z in 1..3 {
        // The larger side of the pair, as the definition says.
        let sides = [1.0, -1.0].map(|s| {
            let [a, b] = [
                u.column(z).map(|x| (s * x).max(0.0)),
                vt.row(z).transpose().map(|x| (s * x).max(0.0)),
            ];
            (a.norm() * b.norm(), a, b)
        });
        let (m, a, b) = sides.iter().max_by(|x, y| x.0.total_cmp(&y.0)).unwrap();
        let scale = (svd.singular_values[z] * m).sqrt();
        let filled = |x: f64| if x > 1e-6 * root { x } else { v.mean() };
        let w = a.map(|x| filled(x * scale / a.norm()));
        let h = b.map(|x| filled(x * scale / b.norm()));
        assert!((by_seed.w().column(z) - w).amax() < 1e-7 * root);
        assert!((by_seed.h().row(z).transpose() - h).amax() < 1e-7 * root);
    }
}

/// Hidden cells count as the mean of the others, in every storage.
#[test]
fn hidden_cells_count_as_the_mean() {
    let mut holed = table(20, 15);
    for n in 0..40 {
        holed[(7 * n % 20, (3 * n + n / 20) % 15)] = f64::NAN;
    }
    let observed: Vec<f64> = holed.iter().copied().filter(|x| !x.is_nan()).collect();
    let mean = observed.iter().sum::<f64>() / observed.len() as f64;
    let filled = holed.map(|x| if x.is_nan() { mean } else { x });
    let want = start(&dense(&filled), 3, Fill::Mean, 1).unwrap();
    let listed = coordinates(&holed, |x| !x.is_nan());
    let hidden = coordinates(&holed, f64::is_nan);
    let storages: [Box<dyn Data<f64>>; 3] = [
        Box::new(dense(&holed)),
        Box::new(SparseTensor::stored_only(listed.clone()).unwrap()),
        Box::new(
            SparseTensor::all_but(
                coordinates(&holed, |x| x > 0.0),
                Coordinates {
                    values: vec![0.0; hidden.values.len()],
                    ..hidden
                },
            )
            .unwrap(),
        ),
    ];
    for data in storages {
        let got = start(&*data, 3, Fill::Mean, 1).unwrap();
        assert!(near(&got, &want, 1e-9), "{data:?}");
    }
}

/// The fill is what is said, drawn from the seed alone, and the same on any number of threads.
#[test]
fn zeros_are_filled() {
    let v = table(50, 40).map(|x| (x - 1.0).max(0.0));
    let data = dense(&v);
    let [mean, random] = [Fill::Mean, Fill::Random].map(|f| start(&data, 4, f, 5).unwrap());
    let average = data.total() / 2000.0;
    let mut drawn = Vec::new();
    for (a, b) in [(mean.w(), random.w()), (mean.h(), random.h())] {
        for (&a, &b) in a.iter().zip(b) {
            if a == b {
                continue;
            }
            assert_eq!(a, average);
            assert!(b > 0.0 && b < 0.01 * average);
            drawn.push(b);
        }
    }
    assert!(drawn.len() > 20);
    drawn.sort_by(f64::total_cmp);
    drawn.dedup();
    assert!(drawn.len() > 20, "each is drawn");
    assert_ne!(start(&data, 4, Fill::Random, 6).unwrap(), random);
    for fill in FILLS.into_iter().skip(1) {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| start(&data, 4, fill, 5).unwrap())
        };
        assert_eq!(on(1), on(4));
    }
    // In single precision, too.
    let single = DenseTensor::new(
        vec![50, 40],
        v.iter().map(|&x| x as f32).collect(),
        Order::ColumnMajor,
    );
    let nmf = Nmf::new(4);
    let init = Init::nndsvd(Fill::Mean);
    let got = nmf
        .init(&single.unwrap(), init, &mut ChaCha8Rng::seed_from_u64(5))
        .unwrap();
    let off = (got.w().map(f64::from) * got.h().map(f64::from) - mean.w() * mean.h()).amax();
    assert!(off < 1e-2 * v.amax(), "{off}");
}

/// Blocks that are given stay, and fits go on from there.
#[test]
fn fits_start_from_it() {
    let v = table(30, 20);
    let data = dense(&v);
    let nmf = Nmf::new(3);
    let run = |init: Init<f64>, solver| {
        let run = nmf
            .on(&data)
            .unwrap()
            .solver(solver)
            .stop(Stop::default().max_iter(50));
        run.run(init, &mut ChaCha8Rng::seed_from_u64(0)).unwrap()
    };
    for solver in [Solver::Em, Solver::Fast] {
        let fit = run(Init::nndsvd(Fill::Mean), solver);
        let first = fit.trace()[0].objective;
        assert!(fit.objective() < first, "{first} {}", fit.objective());
    }
    let w = DMatrix::from_element(30, 3, 0.5);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let state = nmf
        .init(
            &data,
            Init::nndsvd(Fill::Mean).block("w", w.clone()),
            &mut rng,
        )
        .unwrap();
    let whole = start(&data, 3, Fill::Mean, 0).unwrap();
    assert_eq!((state.w(), state.h()), (&w, whole.h()));
}

#[test]
fn what_cannot_start_so_is_refused() {
    let data = dense(&table(5, 4));
    let refused = start(&data, 5, Fill::Mean, 0).unwrap_err();
    let sentence = "the start `nndsvd` has at most 4 components for a matrix of 5 x 4, not 5";
    assert_eq!(refused.to_string(), sentence);
    assert!(start(&data, 4, Fill::Mean, 0).is_ok());
    let plca = Plca::new(2);
    let refused = plca.init(
        &data,
        Init::nndsvd(Fill::Mean),
        &mut ChaCha8Rng::seed_from_u64(0),
    );
    assert!(matches!(refused, Err(FitError::NoStart { start }) if start.name() == "nndsvda"));
    // Each component of its own cells: zeros explain nothing of the noise.
    let blocks = DMatrix::from_fn(6, 6, |i, j| match (i < 3) == (j < 3) {
        true => 1.0 + i as f64,
        false => 0.0,
    });
    let plain = start(&dense(&blocks), 2, Fill::Zero, 0).unwrap();
    assert!((plain.w() * plain.h() - &blocks).amax() < 1e-9);
    assert!(plain.parameters().at(0).iter().any(|&x| x == 0.0));
}

/// Of data of low rank the subspace has more dimensions than there are directions: its small matrix has zero singular values, several of them.
#[test]
fn data_of_low_rank() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for case in 0..400 {
        let (rows, columns) = (30 + case % 7, 24 + case % 11);
        let mut draw = |rows, columns| DMatrix::from_fn(rows, columns, |_, _| uniform(&mut rng));
        let v: DMatrix<f64> = draw(rows, 2) * draw(2, columns);
        let start = start(&dense(&v), 2, Fill::Zero, case as u64).unwrap();
        // The first pair by its fixed point, what is left is the second.
        let mut right = DMatrix::from_element(columns, 1, 1.0);
        for _ in 0..60 {
            right = (v.transpose() * (&v * &right)).normalize();
        }
        let left = &v * &right;
        let root = left.norm().sqrt();
        let w = start.w().column(0) - &left / root;
        let h = start.h().row(0) - right.transpose() * root;
        assert!(w.amax().max(h.amax()) < 1e-10 * root, "{case}");
        // The positive entries of one sign of both vectors.
        let rest = &v - &left * right.transpose();
        let second = start.w().column(1) * start.h().row(1);
        assert!(second.amax() > 0.1 * rest.amax(), "{case}");
        for (&got, &want) in second.iter().zip(&rest) {
            assert!(
                got == 0.0 || (got - want).abs() < 1e-9 * root * root,
                "{case}"
            );
        }
    }
}

/// The start of data times `2^2n` is that of the data times `2^n`, bit for bit.
#[test]
fn starts_have_no_unit() {
    let v = table(20, 15);
    let one = start(&dense(&v), 4, Fill::Zero, 3).unwrap();
    assert!(one.w().iter().filter(|w| **w > 0.0).count() > 40);
    for exponent in [-1000, -600, -2, 4, 600, 940] {
        let unit = |e: i32| move |x: f64| times_power_of_two(x, e);
        let other = start(&dense(&v.map(unit(exponent))), 4, Fill::Zero, 3);
        let other = other.unwrap();
        let equal = |a: &DMatrix<f64>, b: &DMatrix<f64>| {
            let b = b.map(unit(-exponent / 2));
            assert_eq!(*a, b, "{exponent}");
        };
        equal(one.w(), other.w());
        equal(one.h(), other.h());
    }
}

/// Ends a start before its step number `end`, and counts what it is told.
struct Ending {
    end: usize,
    told: Vec<(usize, usize)>,
}

impl Observer<f64> for &mut Ending {
    fn on_iteration(&mut self, _: &Iteration<'_, f64>) -> ControlFlow<Status> {
        ControlFlow::Continue(())
    }

    fn on_start(&mut self, done: usize, of: usize) -> ControlFlow<Status> {
        self.told.push((done, of));
        match self.told.len() > self.end {
            true => ControlFlow::Break(Status::Interrupted),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Singular vectors, iterations of EM before variational Bayes, and blocks that are fitted to given ones, are told step by step, end when an
/// observer says so, and are the same when one listens.
#[test]
fn starts_are_told_and_end() {
    fn check<M: Model<f64>>(name: &str, model: &M, init: &Init<f64>, parts: &[usize]) {
        let data = dense(&table(12, 9).map(|x| (9.0 * x.abs()).round()));
        let stop = || Stop::default().tol(None).max_iter(1);
        let fit = |ending: &mut Ending| {
            let run = model.on(&data).unwrap().solver(Solver::Em).stop(stop());
            let run = run.observe(&mut *ending);
            run.run(init.clone(), &mut ChaCha8Rng::seed_from_u64(3))
        };
        let mut listening = Ending {
            end: usize::MAX,
            told: Vec::new(),
        };
        let heard = fit(&mut listening).unwrap();
        let run = model.on(&data).unwrap().solver(Solver::Em).stop(stop());
        let alone = run
            .run(init.clone(), &mut ChaCha8Rng::seed_from_u64(3))
            .unwrap();
        let blocks = |fit: &Fit<M::State>| fit.state().parameters().matrices().to_vec();
        assert_eq!(blocks(&heard), blocks(&alone), "{name}");
        let several: Vec<_> = listening.told.iter().filter(|told| told.1 > 1).collect();
        let expected = parts
            .iter()
            .flat_map(|&of| (0..of).map(move |done| (done, of)));
        let expected: Vec<_> = expected.collect();
        assert_eq!(several, expected.iter().collect::<Vec<_>>(), "{name}");
        for end in [0, 1, listening.told.len() - 1] {
            let mut ending = Ending {
                end,
                told: Vec::new(),
            };
            assert_eq!(
                fit(&mut ending).map(drop),
                Err(FitError::Interrupted),
                "{name}"
            );
            assert_eq!(ending.told.len(), end + 1, "{name}");
        }
    }
    let nmf = Nmf::new(3);
    check("nndsvd", &nmf, &Init::nndsvd(Fill::Mean), &[16]);
    let vb = PlsaVb::new(3);
    check("vb", &vb, &Init::default(), &[50]);
    let w = DMatrix::from_fn(12, 3, |i, z| 1.0 + ((i * (z + 1)) as f64).sin().abs());
    check(
        "given",
        &vb,
        &Init::default().block("basis_shape", w),
        &[50, 50],
    );
}
