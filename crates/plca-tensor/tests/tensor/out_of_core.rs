//! Blocks that are read when they are needed give the bits of data in memory, or say why not.

use nalgebra::DMatrix;
use plca_tensor::strategies::KeptBlocks;
use plca_tensor::{
    Block, BlockSource, Coordinates, Cp, Data, DataError, Factor, Modes, OutOfCore, Real, Request,
    Rule, SourceError, SparseTensor, TileCounts, Tiling, check_counts,
};
use proptest::prelude::*;

use crate::support::noise;

/// Entries with duplicates and zeros, crowded at small indices, nothing in the last rows; values near `size`.
fn entries<T: Real>(shape: [usize; 2], n: usize, size: f64) -> Coordinates<T> {
    let mut next = noise(7);
    let mut at = |n: usize| (next().powi(3) * n as f64 * 0.9) as u32;
    let indices = (0..n).flat_map(|_| [at(shape[0]), at(shape[1])]).collect();
    let value = |i: usize| {
        if i.is_multiple_of(11) {
            0.0
        } else {
            size * next()
        }
    };
    let values = (0..n).map(value).map(T::lit).collect();
    Coordinates {
        shape: shape.into(),
        indices,
        values,
    }
}

/// Every number that models ask for.
fn bits<T: Real>(data: &dyn Data<T>, k: usize, least: f64, threads: usize) -> Vec<u64> {
    let shape = data.shape().to_vec();
    let mut next = noise(3);
    let w = DMatrix::from_fn(shape[0], k, |i, _| {
        // Rows so small that they need exponents of their own.
        T::lit(if i.is_multiple_of(3) {
            least * next()
        } else {
            next()
        })
    });
    let h = DMatrix::from_fn(k, shape[1], |_, j| {
        T::lit(if j.is_multiple_of(2) {
            least * next()
        } else {
            next()
        })
    });
    let weights: Vec<T> = (0..k).map(|_| T::lit(next())).collect();
    let factors = [Factor::Columns(&w), Factor::Rows(&h)];
    let model = Cp {
        weights: Some(&weights),
        factors: &factors,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(|| {
        let mut found = vec![data.total(), data.self_information().unwrap()];
        found.extend((0..2).flat_map(|mode| data.marginal(mode).unwrap()));
        let cells = &mut |index: &[usize], x| found.extend([index[0] as f64, index[1] as f64, x]);
        data.visit(cells).unwrap();
        let requests = [
            (Modes::all(2), true),
            (Modes::all(2), false),
            (Modes::one(0), false),
            (Modes::one(1), true),
            (Modes::NONE, true),
        ];
        let requests = requests.map(|(modes, value)| Request::counts(modes).value(value));
        let gradients = [0, 1].map(|mode| Request::counts(Modes::one(mode)).rule(Rule::Gradient));
        for (at, request) in requests.iter().chain(&gradients).enumerate() {
            let e = data.e_step(&model, request).unwrap();
            if [0, 3, 4].contains(&at) {
                found.push(e.value());
            }
            let counts = (0..2).filter_map(|mode| e.get(mode));
            found.extend(counts.flatten().map(|x| x.to_f64()));
        }
        assert!(found.iter().all(|x| x.is_finite()));
        found.iter().map(|x| x.to_bits()).collect()
    })
}

fn check<T: Real>(shape: [usize; 2], n: usize, size: f64, least: f64) {
    let v = entries::<T>(shape, n, size);
    let memory = SparseTensor::new(v.clone()).unwrap();
    let mut counts = Vec::new();
    for k in [3, 40, 140] {
        let expected = bits(&memory, k, least, 2);
        for (limit, threads) in [(1, 2), (100, 1), (5000, 3), (usize::MAX, 2)] {
            let blocks = KeptBlocks::cut(&v, limit).unwrap();
            counts.push(blocks.count());
            let cut = OutOfCore::new(blocks).unwrap();
            assert_eq!(cut.summary(), memory.summary());
            assert!(
                bits(&cut, k, least, threads) == expected,
                "{shape:?}, {k} components, blocks of {limit}, {threads} threads"
            );
        }
    }
    assert!(counts[0] > 20 * counts[2] && counts[2] >= counts[3]);
}

/// Tall, wide, several lanes, small (one tile), and data and factors at the ends of the range.
#[test]
fn blocks_of_any_size_give_the_bits_of_memory() {
    check::<f64>([700, 300], 60_000, 1.0, 1.0);
    check::<f64>([200, 500], 40_000, 1e-300, 1.0);
    check::<f64>([20, 2500], 60_000, 1.0, 1.0);
    check::<f64>([60, 40], 900, 1.0, 1e-170);
    check::<f32>([500, 300], 40_000, 1e-30, 1.0);
    check::<f32>([60, 90], 900, 1.0, 1e-20);
}

/// In memory, and accepted by models of counts.
fn counts(v: Coordinates<f64>) -> Result<SparseTensor<f64>, DataError> {
    let memory = SparseTensor::new(v)?;
    check_counts(&memory)?;
    Ok(memory)
}

proptest! {
    #[test]
    fn any_small_matrix_gives_the_bits_of_memory(
        shape in [1usize..9, 1usize..9],
        cells in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..4), 1..40),
        limit in 1usize..9,
    ) {
        let v = Coordinates {
            shape: shape.into(),
            indices: cells.iter().flat_map(|c| [c.0.index(shape[0]) as u32, c.1.index(shape[1]) as u32]).collect(),
            values: cells.iter().map(|c| f64::from(c.2)).collect(),
        };
        match (counts(v.clone()), KeptBlocks::cut(&v, limit).and_then(OutOfCore::new)) {
            (Ok(memory), Ok(cut)) => prop_assert_eq!(bits(&cut, 2, 1.0, 1), bits(&memory, 2, 1.0, 1)),
            (memory, cut) => prop_assert_eq!(cut.err(), memory.err()),
        }
    }
}

/// The refusals of memory, by the same errors.
#[test]
fn what_memory_refuses_is_refused() {
    let v = |shape: &[usize], index: [u32; 2], value: f64| Coordinates {
        shape: shape.into(),
        indices: index.into(),
        values: vec![value],
    };
    for refused in [
        v(&[2, 2], [0, 1], -1.0),
        v(&[2, 2], [0, 1], f64::NAN),
        v(&[2, 2], [0, 2], 1.0),
        v(&[2, 0], [0, 0], 1.0),
        v(&[2, 2], [0, 0], 0.0),
        v(&[2, 2], [0, 0], f64::MAX),
    ] {
        let memory = counts(refused.clone()).unwrap_err();
        let cut = KeptBlocks::cut(&refused, 1).and_then(OutOfCore::new);
        // NaN is no equal of itself.
        assert_eq!(
            format!("{:?}", cut.map(|_| ()).unwrap_err()),
            format!("{memory:?}")
        );
    }
}

/// Whichever read fails, the call that read says so.
#[test]
fn a_failing_source_is_named_by_the_call_that_read() {
    let v = entries::<f64>([60, 40], 900, 1.0);
    let count = KeptBlocks::cut(&v, 100).unwrap().count();
    assert!(count > 3);
    let w = DMatrix::from_element(60, 2, 0.5);
    let h = DMatrix::from_element(40, 2, 0.5);
    let model = Cp {
        weights: None,
        factors: &[Factor::Columns(&w), Factor::Columns(&h)],
    };
    let request = Request::counts(Modes::all(2)).value(true);
    for reads in 0..=2 * count {
        let blocks = KeptBlocks::cut(&v, 100).unwrap().fail_after(reads);
        let data = match OutOfCore::new(blocks) {
            Err(e) => {
                assert!(reads < count);
                let what = format!("block {reads} is gone");
                assert_eq!(e, DataError::Source(SourceError::new(what)));
                continue;
            }
            Ok(data) => data,
        };
        let e = data.e_step(&model, &request);
        match e {
            Ok(e) => assert!(reads == 2 * count && e.value().is_finite()),
            Err(e) => assert_eq!(e.to_string(), format!("block {} is gone", reads % count)),
        }
        // The source stays as it is: so does every later call.
        let gradient = request.rule(Rule::Gradient);
        let failures = [
            data.self_information().err(),
            data.e_step(&model, &gradient).err(),
            data.visit(&mut |_, _| {}).err(),
        ];
        assert!(
            failures
                .iter()
                .all(|e| matches!(e, Some(DataError::Source(_))))
        );
    }
}

/// One block, whatever it is.
#[derive(Debug)]
struct One(Tiling<f64>, Block<f64>);

impl BlockSource<f64> for One {
    type Error = std::convert::Infallible;
    fn tiling(&self) -> &Tiling<f64> {
        &self.0
    }
    fn blocks(&self, _: usize) -> std::ops::Range<usize> {
        0..1
    }
    fn read(&self, _: usize, into: &mut Block<f64>) -> Result<(), Self::Error> {
        into.clone_from(&self.1);
        Ok(())
    }
}

/// Blocks that are none of the matrix are refused before any arithmetic; a matrix of 4 x 3 has the first one.
#[test]
fn foreign_blocks_are_refused() {
    let good = Block {
        runs: vec![[0, 1], [3, 3]],
        columns: vec![2, 0, 1],
        values: vec![1.0, 2.0, 3.0],
    };
    let read = |change: &dyn Fn(&mut Block<f64>)| {
        let mut block = good.clone();
        change(&mut block);
        let tiling = TileCounts::new(&[4, 3]).unwrap().tiling();
        OutOfCore::new(One(tiling, block)).map(|data| data.total())
    };
    assert_eq!(read(&|_| ()), Ok(6.0));
    let refused = |change: &dyn Fn(&mut Block<f64>), why: &str| {
        let what = format!("block 0: {why}");
        let error = read(change).unwrap_err();
        assert!(matches!(error, DataError::Source(_)));
        assert_eq!(error.to_string(), what);
    };
    refused(&|b| b.runs[1][0] = 4, "row 4 is outside 0..4");
    refused(&|b| b.runs[1][1] = 4, "row 3 ends at entry 4 of 3");
    refused(&|b| b.runs[0][1] = 4, "row 0 ends at entry 4 of 3");
    refused(&|b| b.runs[1][1] = 2, "3 entries, rows end at 2");
    refused(
        &|b| b.runs = vec![[0, 2], [1, 1]],
        "row 1 ends at entry 1 of 3",
    );
    refused(&|b| b.columns[1] = 3, "column 3 is outside 0..3");
    refused(&|b| b.columns.truncate(2), "2 columns, 3 values");
    refused(
        &|b| b.values[1] = f64::NAN,
        "value NaN is not a finite number >= 0",
    );
    refused(
        &|b| b.values[1] = -1.0,
        "value -1 is not a finite number >= 0",
    );
}

/// A source that fails for a reason of its own.
#[derive(Debug)]
struct Torn(Tiling<f64>);

#[derive(Debug)]
struct Unread(usize, std::io::Error);

impl std::fmt::Display for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "block {} cannot be read", self.0)
    }
}

impl std::error::Error for Unread {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.1)
    }
}

impl BlockSource<f64> for Torn {
    type Error = Unread;
    fn tiling(&self) -> &Tiling<f64> {
        &self.0
    }
    fn blocks(&self, _: usize) -> std::ops::Range<usize> {
        3..4
    }
    fn read(&self, block: usize, _: &mut Block<f64>) -> Result<(), Unread> {
        Err(Unread(block, std::io::Error::other("the tape is torn")))
    }
}

/// What a source says arrives with all that caused it, every link once.
#[test]
fn the_chain_of_a_failure_is_kept() {
    let tiling = TileCounts::new(&[4, 3]).unwrap().tiling();
    let error = OutOfCore::new(Torn(tiling)).err().unwrap();
    let mut chain = vec![error.to_string()];
    let mut link = std::error::Error::source(&error);
    while let Some(cause) = link {
        chain.push(cause.to_string());
        link = cause.source();
    }
    assert_eq!(chain, ["block 3 cannot be read", "the tape is torn"]);
    let DataError::Source(source) = &error else {
        panic!("{error}")
    };
    assert!(source.get_ref().is::<Unread>());
    assert_eq!(error.clone(), error);
}
