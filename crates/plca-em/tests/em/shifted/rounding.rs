//! Many iterations by transforms, where most of the model falls far below rounding.

use nalgebra::DMatrix;
use plca_em::{Evaluation, Shifted};
use plca_fit::{Init, Model};

use super::support::{dense, rng};

/// A record of few events, long compared to its kernel: what impulses are to be 0 go down to 1e-300 and below.
fn record() -> Vec<f64> {
    let mut values = vec![0.0; 4096];
    for (event, at) in [(5.0, 17), (2.0, 900), (9.0, 905), (1.0, 3000), (4.0, 4060)] {
        for t in 0..30 {
            values[at + t] += event * 0.8f64.powi(t as i32);
        }
    }
    values
}

/// 200 iterations by transforms and by direct sums end at the same parameters: never negative, never NaN, zeros kept.
// [SPEC 5.6]
#[test]
fn transforms_follow_direct_sums() {
    let data = dense::<f64>(&[4096], &record());
    let end = |evaluation| {
        let shifted = Shifted::builder(1, vec![30]).evaluation(evaluation);
        let shifted = shifted.build().unwrap();
        let em = shifted.bind(&data).unwrap();
        let mut impulses = DMatrix::from_fn(4067, 1, |i, _| 1.0 + ((i * 7919) % 13) as f64);
        impulses.rows_mut(1500, 200).fill(0.0);
        let init = Init::default().block("impulses", impulses);
        let mut at = init.parameters(&*em, &mut rng(4)).unwrap();
        let mut last = f64::NEG_INFINITY;
        for _ in 0..200 {
            let now = em.step(&mut at, true).unwrap().value.unwrap();
            assert!(now >= last - 1e-12 * (1.0 + now.abs()), "{last} {now}");
            last = now;
        }
        at
    };
    let (direct, fft) = (end(Evaluation::Direct), end(Evaluation::Fft));
    for ((name, got), (_, want)) in fft.blocks().zip(direct.blocks()) {
        assert!(got.iter().all(|&x| x >= 0.0 && x.is_finite()), "{name}");
        let off = (got - want).amax();
        assert!(off <= 1e-10, "{name}: {off}");
    }
    assert!(fft.at(2).rows(1500, 200).iter().all(|&h| h == 0.0));
    // The case is what it is meant to be: most impulses are beyond the reach of a transform.
    let small = fft.at(2).iter().filter(|&&h| h < 1e-17).count();
    assert!(small > 2000, "{small}");
}
