//! What the documentation of models and statistics promises: which entries count as nothing, and what is refused.

use nalgebra::{DMatrix, dmatrix};
use plca_tensor::arrange::Products;
use plca_tensor::strategies::KeptBlocks;
use plca_tensor::{
    Coordinates, Cp, Data, DataError, DenseTensor, Factor, Modes, Order, OutOfCore, Real, Request,
    Rule, SparseTensor,
};

/// One cell with a count, beside one without, in every storage.
fn storages<T: Real>() -> Vec<Box<dyn Data<T>>> {
    let values = vec![T::lit(3.0), T::zero()];
    let mut hidden = values.clone();
    hidden[1] = T::lit(f64::NAN);
    let (shape, entries) = (
        vec![1, 2],
        Coordinates {
            shape: vec![1, 2],
            indices: vec![0, 0],
            values: vec![T::lit(3.0)],
        },
    );
    vec![
        Box::new(DenseTensor::new(shape.clone(), values, Order::RowMajor).unwrap()),
        Box::new(DenseTensor::masked(shape, hidden, Order::RowMajor).unwrap()),
        Box::new(SparseTensor::new(entries.clone()).unwrap()),
        Box::new(SparseTensor::stored_only(entries.clone()).unwrap()),
        Box::new(OutOfCore::new(KeptBlocks::cut(&entries, 1).unwrap()).unwrap()),
    ]
}

/// An entry below the root of the smallest number counts as 0 beside the largest of its row, for the E-step and for the cells of a model.
fn small_entries<T: Real>() {
    let least = T::TINY.sqrt().to_f64();
    for (small, counts) in [
        (0.5 * least, false),
        (0.999 * least, false),
        (1.001 * least, true),
    ] {
        let tiny = T::lit(small);
        let (one, zero) = (T::one(), T::zero());
        let even = DMatrix::from_row_slice(1, 2, &[one, one]);
        let (w, h) = (
            DMatrix::from_row_slice(1, 2, &[one, tiny]),
            DMatrix::from_row_slice(2, 2, &[zero, one, one, one]),
        );
        // The same where the weight is what is small.
        let weights = [T::lit(0.25), T::lit(0.25 * small)];
        let columns = h.transpose();
        let factors = [
            [Factor::Columns(&w), Factor::Rows(&h)],
            [Factor::Columns(&w), Factor::Columns(&columns)],
            [Factor::Columns(&even), Factor::Rows(&h)],
        ];
        for (at, factors) in factors.iter().enumerate() {
            let weights = (at == 2).then_some(&weights[..]);
            let model = Cp { weights, factors };
            let p = model.cell(&[0, 0]);
            assert_eq!(p > 0.0, counts, "{small:e}");
            assert_eq!(p, model.joint(&[0, 0], 1));
            for data in storages::<T>() {
                let request = Request::counts(Modes::all(2)).value(true);
                let e = data.e_step(&model, &request).unwrap();
                let first = e.counts(0);
                if counts {
                    assert!((e.value() - 3.0 * p.ln()).abs() < 1e-3, "{small:e}");
                    assert!((first[(0, 1)].to_f64() - 3.0).abs() < 1e-5);
                } else {
                    assert_eq!(e.value(), f64::NEG_INFINITY);
                    assert_eq!(first[(0, 1)], zero);
                }
            }
        }
    }
}

/// A cell that the model gives no more than `√TINY` of its rows' largest entries, in a row that is as small: its ratios are near the
/// largest number, and many of them are added up.
fn large_ratios<T: Real>() {
    let (least, rows) = (T::lit(2f64.powi(2 - T::MAX_EXPONENT / 2)), 64);
    let a = DMatrix::from_fn(rows, 2, |_, z| T::lit(z as f64));
    let b = DMatrix::from_row_slice(2, 2, &[T::one(), T::one(), least, least * least]);
    let model = Cp {
        weights: None,
        factors: &[Factor::Columns(&a), Factor::Columns(&b)],
    };
    let indices = (0..rows as u32).flat_map(|i| [i, 1]).collect();
    let entries = Coordinates {
        shape: vec![rows, 2],
        indices,
        values: vec![T::one(); rows],
    };
    let dense: Vec<T> = (0..2 * rows).map(|i| T::lit((i % 2) as f64)).collect();
    let storages: [Box<dyn Data<T>>; 2] = [
        Box::new(DenseTensor::new(vec![rows, 2], dense, Order::RowMajor).unwrap()),
        Box::new(SparseTensor::new(entries).unwrap()),
    ];
    for data in storages {
        let request = Request::counts(Modes::all(2)).value(true);
        let expected = data.e_step(&model, &request).unwrap();
        let ln_lik = 2.0 * rows as f64 * least.to_f64().ln();
        assert!((expected.value() / ln_lik - 1.0).abs() < 1e-6);
        let counts = expected.counts(1);
        assert_eq!(counts[(1, 1)].to_f64(), rows as f64);
        assert_eq!(counts.sum().to_f64(), rows as f64);
    }
}

#[test]
fn large_ratios_are_added_up() {
    large_ratios::<f32>();
    large_ratios::<f64>();
}

#[test]
fn small_entries_count_as_nothing_everywhere() {
    small_entries::<f32>();
    small_entries::<f64>();
}

fn panics(what: &str, f: impl Fn()) {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    assert!(caught.is_err(), "{what}");
}

/// Every storage refuses a model of another shape or without components, and requests for modes that it does not have.
#[test]
fn models_that_do_not_fit_are_refused() {
    let (a, b) = (dmatrix![0.5, 0.5], dmatrix![0.25, 0.5; 0.75, 0.5]);
    let (fits, none) = (
        [Factor::Columns(&a), Factor::Columns(&b)],
        DMatrix::zeros(1, 0),
    );
    let none_b = DMatrix::zeros(2, 0);
    let empty = [Factor::Columns(&none), Factor::Columns(&none_b)];
    let turned = [Factor::Columns(&b), Factor::Columns(&a)];
    let all = Request::counts(Modes::all(2));
    for data in storages::<f64>() {
        for (what, factors, request) in [
            ("no components", &empty[..], all),
            ("another shape", &turned, all),
            ("a mode too few", &fits[..1], Request::counts(Modes::one(0))),
            ("another mode", &fits, Request::counts(Modes::one(2))),
        ] {
            let model = Cp {
                weights: None,
                factors,
            };
            for rule in [Rule::Poisson, Rule::Exposure, Rule::Gradient] {
                panics(what, || drop(data.e_step(&model, &request.rule(rule))));
            }
        }
        // Control.
        let model = Cp {
            weights: None,
            factors: &fits,
        };
        data.e_step(&model, &all).unwrap();
    }
    let real = DenseTensor::new(vec![1, 2], vec![1.0, 2.0], Order::RowMajor).unwrap();
    let real = Products::new(&real).unwrap();
    panics("no components", || {
        real.mttkrp(&[none.clone(), none_b.clone()], 0);
    });
}

#[test]
fn statistics_of_different_modes_do_not_merge() {
    let (a, b) = (dmatrix![0.5, 0.5], dmatrix![0.25, 0.5; 0.75, 0.5]);
    let model = Cp {
        weights: None,
        factors: &[Factor::Columns(&a), Factor::Columns(&b)],
    };
    let data = DenseTensor::new(vec![1, 2], vec![1.0, 2.0], Order::RowMajor).unwrap();
    let of = |modes| data.e_step(&model, &Request::counts(modes)).unwrap();
    let line = DenseTensor::new(vec![1], vec![1.0], Order::RowMajor).unwrap();
    let short = Cp {
        weights: None,
        factors: &[Factor::Columns(&a)],
    };
    let (one, both) = (of(Modes::one(0)), of(Modes::all(2)));
    let short = line
        .e_step(&short, &Request::counts(Modes::one(0)))
        .unwrap();
    for (a, b) in [(&one, &both), (&one, &short), (&short, &one)] {
        assert_eq!(a.clone().merge(b), Err(DataError::Merge));
    }
    let mut twice = one.clone();
    twice.merge(&one).unwrap();
    assert_eq!(twice.counts(0), &(one.counts(0) * 2.0));
}
