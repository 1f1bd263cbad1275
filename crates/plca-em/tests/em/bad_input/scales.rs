//! Subnormal, huge and mixed scales: parameters as if the data had been near 1, likelihoods in the scale as given.

use plca_tensor::{DataError, DenseTensor, Order, check_counts};

use super::models::{Fit, MODELS, Model, storages};

const COUNTS: [f64; 6] = [3.0, 0.0, 1.0, 4.0, 2.0, 7.0];

/// The blocks are those of `COUNTS`, `H` of NMF times the scale; likelihoods take the scale.
fn check(scale: f64, tolerance: f64) {
    let plain = storages(&[2, 3], &COUNTS);
    let scaled = storages(&[2, 3], &COUNTS.map(|v| v * scale));
    for ((name, a), (_, b)) in plain.into_iter().zip(scaled) {
        let (a, b) = (a.unwrap(), b.unwrap());
        assert!(
            (b.total() / scale - a.total()).abs() <= tolerance * a.total(),
            "{name}"
        );
        for model in MODELS {
            let want = model.run(&*a, 2, [None, None], 10).unwrap();
            let fit = model.run(&*b, 2, [None, None], 10).unwrap();
            for (x, w) in fit.blocks.iter().zip(&want.blocks) {
                // Both factors of a drawn start take half of the scale; only the product is compared.
                if matches!(model, Model::Nmf(_)) {
                    continue;
                }
                assert!(
                    (x - w).amax() <= tolerance,
                    "{model:?}, {name} times {scale:e}"
                );
            }
            let product = |f: &Fit<f64>| &f.blocks[0] * f.blocks[1].transpose();
            let (x, w) = (product(&fit), product(&want));
            let largest = x.amax() / w.amax();
            for (x, w) in x.iter().zip(&w) {
                let error = (x / largest - w).abs();
                assert!(
                    error <= 10.0 * tolerance * 7.0,
                    "{model:?}, {name} times {scale:e}: {x} {w}"
                );
            }
            if !matches!(model, Model::Nmf(_)) {
                let error = (fit.objective / scale - want.objective).abs();
                assert!(
                    error <= 20.0 * tolerance * want.objective.abs(),
                    "{model:?}, {name} times {scale:e}"
                );
            }
        }
    }
}

#[test]
fn huge() {
    check(1e300, 1e-14);
    check(1e200, 1e-14);
}

#[test]
fn small() {
    check(1e-300, 1e-14);
}

/// Values near 1e-310 have 45 bits left, and so have sums of them.
#[test]
fn subnormal() {
    check(1e-310, 1e-12);
}

/// From 1e-310 to 1e300 in one tensor: what is small beside the largest vanishes, nothing breaks.
#[test]
fn mixed() {
    let values = [1e300f64, 1e-310, 0.0, 1.0, 1e299, 1e-5];
    for (name, data) in storages(&[2, 3], &values) {
        let data = data.unwrap();
        for model in MODELS {
            let fit = model.run(&*data, 2, [None, None], 10).unwrap();
            assert!(fit.objective.is_finite(), "{model:?}, {name}");
            assert!(
                fit.blocks
                    .iter()
                    .all(|b| b.iter().all(|x| x.is_finite() && *x >= 0.0)),
                "{model:?}, {name}: {:?}",
                fit.blocks
            );
        }
        let fit = Model::Plca.run(&*data, 1, [None, None], 1).unwrap();
        assert!(
            (fit.blocks[0][(0, 0)] - 10.0 / 11.0).abs() <= 1e-14,
            "{name}"
        );
    }
}

/// A sum that the scalar type cannot hold is refused, not turned into NaN.
#[test]
fn overflow() {
    for (name, result) in storages(&[1, 3], &[1.5e308, 1.5e308, 1.0]) {
        assert_eq!(
            result.err(),
            Some(DataError::Overflow {
                total: f64::INFINITY
            }),
            "{name}"
        );
    }
    for (name, result) in storages::<f32>(&[1, 3], &[3e38, 3e38, 1.0]) {
        // It is one of doubles, and too large for counts.
        let refused = check_counts(&*result.unwrap()).unwrap_err();
        assert!(
            matches!(refused, DataError::Overflow { total } if total > 5.9e38),
            "{name}"
        );
    }
    for (name, result) in storages::<f32>(&[1, 3], &[1e37, 2e38, 1.0]) {
        let data = result.unwrap();
        for model in MODELS {
            let fit = model.run(&*data, 2, [None, None], 5).unwrap();
            assert!(
                fit.blocks.iter().all(|b| b.iter().all(|x| x.is_finite())),
                "{model:?}, {name}"
            );
        }
    }
    assert!(DenseTensor::new(vec![1], vec![1e305], Order::RowMajor).is_ok());
}
