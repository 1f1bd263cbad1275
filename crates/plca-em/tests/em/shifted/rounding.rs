//! Many iterations by transforms, where most of the model falls far below rounding.

use nalgebra::DMatrix;
use plca_em::{Evaluation, Shifted};
use plca_fit::laws::{Rounding, never_worse};
use plca_fit::{Init, Model, Sense, Solver, Stop};
use plca_tensor::{Coordinates, Real, SparseTensor};

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
        let shifted = Shifted::new(1, vec![30]).evaluation(evaluation);
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

/// The only place of a small datum is not lost in the rounding of all others.
// [SPEC 5.6]
#[test]
fn transforms_lose_no_small_datum() {
    let values: Vec<f64> = (0..4096)
        .map(|at| match at {
            0 => 1e-18,
            1..64 => 0.0,
            _ => 1.0,
        })
        .collect();
    let data = dense::<f64>(&[4096], &values);
    let model = Shifted::new(1, vec![64]).evaluation(Evaluation::Fft);
    for seed in 0..16 {
        let run = model.on(&data).unwrap().solver(Solver::Em);
        let run = run.stop(Stop::default().max_iter(4).tol(None));
        let fit = run.run(Init::default(), &mut rng(seed)).unwrap();
        assert!(fit.objective().is_finite(), "{seed}");
    }
}

fn listed<T: Real>(small: f64) {
    let cells = Coordinates {
        shape: vec![6],
        indices: vec![0, 1, 4, 5],
        values: [1.0, 1.0, small, small].map(T::lit).to_vec(),
    };
    let data = SparseTensor::stored_only(cells).unwrap();
    let model = Shifted::new(1, vec![2]).evaluation(Evaluation::Sparse);
    let run = model.on(&data).unwrap().solver(Solver::Em);
    let run = run.stop(Stop::default().max_iter(60).tol(None).check_every(1));
    let half = DMatrix::from_element(2, 1, T::lit(0.5));
    let even = DMatrix::from_element(5, 1, T::lit(0.2));
    let init = Init::default()
        .block("kernels", half)
        .block("impulses", even);
    let fit = run.run(init, &mut rng(0)).unwrap();
    let rounding = Rounding {
        relative: 64.0 * T::EPSILON.to_f64(),
        absolute: 0.0,
    };
    let trace = fit.trace().iter().map(|p| (p.objective, rounding));
    never_worse(Sense::Maximise, &trace.collect::<Vec<_>>()).unwrap();
}

/// Nor is it where few cells are observed, whose ratios are far below what hidden cells have.
#[test]
fn lists_lose_no_small_datum() {
    for small in [1e-20, 1e-60, 1e-200] {
        listed::<f64>(small);
    }
    listed::<f32>(1e-9);
    listed::<f32>(1e-20);
}
