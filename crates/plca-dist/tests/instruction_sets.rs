//! The bits of loops over slices do not depend on the instruction set. A program of its own: the choice is the process's.

use plca_dist::simd::{instruction_sets, on_instruction_set};
use plca_dist::{
    exp_digamma_slice, gamma_shape_kl_slice, skellam_divergence_slice, skellam_ratios_slice,
};

/// Numbers from `10^low` to `10^high`, in an order that mixes small and large in every register.
fn numbers(n: usize, step: usize, (low, high): (f64, f64)) -> Vec<f64> {
    let at = |i: usize| (i * step % n) as f64 / (n - 1) as f64;
    (0..n)
        .map(|i| 10f64.powf(low + (high - low) * at(i)))
        .collect()
}

#[test]
fn slices_have_the_same_bits_on_all() {
    // Neither whole registers nor whole rounds of a loop.
    let n = 1009;
    let (a, b) = (numbers(n, 389, (-8.0, 6.0)), numbers(n, 577, (-7.0, 5.0)));
    let counts: Vec<f64> = (0..n).map(|i| (i * 211 % n) as f64 - 300.0).collect();
    let results = |index: usize| {
        on_instruction_set(index, || {
            let mut out = vec![vec![0.0; n]; 5];
            let [exp, kl, divergence, plus, minus] = &mut out[..] else {
                unreachable!("five")
            };
            exp_digamma_slice(&a, exp).unwrap();
            gamma_shape_kl_slice(&a, &b, kl).unwrap();
            skellam_divergence_slice(&counts, &a, &b, divergence).unwrap();
            skellam_ratios_slice(&counts, &a, &b, plus, minus).unwrap();
            out
        })
    };
    let sets = instruction_sets();
    let scalar = results(0);
    for (index, (name, _)) in sets.iter().enumerate().skip(1) {
        for (function, (x, y)) in scalar.iter().zip(&results(index)).enumerate() {
            for (i, (x, y)) in x.iter().zip(y).enumerate() {
                assert!(
                    x.to_bits() == y.to_bits(),
                    "{name}, function {function}, {i}: {x} {y}"
                );
            }
        }
    }
    assert!(scalar.iter().flatten().all(|x| x.is_finite()));
}
