//! Properties of the three projections.

use pntf_l2::{Projection, ProjectionError, project_onto_simplex, project_with};
use proptest::prelude::*;

const METHODS: [Projection; 3] = [
    Projection::Sort,
    Projection::ActiveSet,
    Projection::Threshold,
];

fn projected(b: &[f64], radius: f64, method: Projection) -> Vec<f64> {
    let mut x = b.to_vec();
    project_with(&mut x, radius, method).unwrap();
    x
}

/// Vectors of all sizes and magnitudes, with ties.
fn vectors() -> impl Strategy<Value = Vec<f64>> {
    let entry = prop_oneof![
        4 => -3.0..3.0f64,
        2 => (-4..5i32).prop_map(|i| f64::from(i) / 4.0),
        1 => (-1.0..1.0f64, -20..20i32).prop_map(|(x, e)| x * 10f64.powi(e)),
    ];
    prop::collection::vec(entry, 1..120)
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Vectors of several blocks, of which whole ones may lie below the bound: noise on a step, ties, powers of one number, and a point of the
/// simplex among zeros, whose threshold is 0.
fn long_vectors() -> impl Strategy<Value = Vec<f64>> {
    let noisy =
        (prop::collection::vec(-1.0..1.0f64, 250..1500), 0.0..30.0f64).prop_map(|(mut b, step)| {
            let half = b.len() / 2;
            b[half..].iter_mut().for_each(|x| *x -= step);
            b
        });
    let tied = (prop::collection::vec(-2..3i32, 250..1500), 1.0..1e6f64)
        .prop_map(|(b, unit)| b.into_iter().map(|x| f64::from(x) / unit).collect());
    let powers = (250..900usize, 1.001..1.15f64, any::<bool>()).prop_map(|(n, base, back)| {
        let mut b: Vec<f64> = (0..n).map(|i| -base.powi(i as i32 / 2)).collect();
        if back {
            b.reverse();
        }
        b
    });
    let among_zeros =
        (prop::collection::vec(0.01..1.0f64, 1..20), 250..3000usize).prop_map(|(b, n)| {
            let sum: f64 = b.iter().sum();
            let point = b.iter().map(|x| x / sum);
            point.chain(std::iter::repeat_n(0.0, n)).collect()
        });
    prop_oneof![noisy, tied, powers, among_zeros]
}

/// A radius without room is shared by the largest entries alone.
// [PNTF 2]
#[test]
fn ties_share_a_radius_without_room() {
    for method in METHODS {
        let x = projected(&[2.0, 1.0, 2.0], 1e-301, method);
        assert_eq!(x, [0.5e-301, 0.0, 0.5e-301]);
    }
}

/// A point of the simplex has the threshold 0. Rounding may put it just below, and then thousands of zeros have a share of the rounding.
// [PNTF 3]
#[test]
fn zeros_beside_a_point_of_the_simplex_take_no_mass() {
    for seed in 1..400 {
        let shares = (1..=7).map(|i| f64::from(seed * i % 101 + 1));
        let sum: f64 = shares.clone().sum();
        let b: Vec<f64> = shares
            .map(|x| x / sum)
            .chain(std::iter::repeat_n(0.0, 100_000))
            .collect();
        for method in METHODS {
            // The small ones first, or they are lost beside the large ones.
            let total: f64 = projected(&b, 1.0, method).iter().rev().sum();
            assert!((total - 1.0).abs() <= 1e-14, "{method:?}, {seed}: {total}");
        }
    }
}

proptest! {
    /// `x ≥ 0`, `Σ x = r`, and the three methods agree to `1e-14 (1 + |b|)`.
    // [PNTF 3]
    #[test]
    fn methods_agree_on_the_simplex(b in vectors(), radius in prop_oneof![Just(1.0), 1e-3..1e3f64]) {
        let reference = projected(&b, radius, Projection::Sort);
        for method in METHODS {
            let x = projected(&b, radius, method);
            let sum: f64 = x.iter().sum();
            prop_assert!((sum - radius).abs() <= 1e-15 * b.len() as f64 * radius);
            for ((x, want), b) in x.iter().zip(&reference).zip(&b) {
                prop_assert!(*x >= 0.0);
                prop_assert!((x - want).abs() <= 1e-14 * (radius + b.abs()), "{method:?} {x} {want}");
            }
        }
    }

    /// The same with bounds over several blocks, in `f32` too.
    // [PNTF 3]
    #[test]
    fn methods_agree_on_long_vectors(b in long_vectors(), radius in prop_oneof![Just(1.0), 1e-3..1e3f64]) {
        let reference = projected(&b, radius, Projection::Sort);
        for method in METHODS {
            let x = projected(&b, radius, method);
            let sum: f64 = x.iter().sum();
            prop_assert!((sum - radius).abs() <= 1e-15 * b.len() as f64 * radius, "{method:?}: {sum}");
            for ((x, want), b) in x.iter().zip(&reference).zip(&b) {
                prop_assert!(*x >= 0.0);
                prop_assert!((x - want).abs() <= 1e-14 * (radius + b.abs()), "{method:?} {x} {want}");
            }
            let mut narrow: Vec<f32> = b.iter().map(|&x| x as f32).collect();
            let wide: Vec<f64> = narrow.iter().map(|&x| f64::from(x)).collect();
            let want = projected(&wide, f64::from(radius as f32), method);
            project_with(&mut narrow, radius as f32, method).unwrap();
            for (x, want) in narrow.iter().zip(&want) {
                prop_assert!((f64::from(*x) - want).abs() <= 1e-6 * radius, "{method:?} {x} {want}");
            }
        }
    }

    /// The optimality conditions: `b - x` is `τ` on the support and at most `τ` elsewhere.
    // [HS alg. 1] [PNTF 3]
    #[test]
    fn optimality_conditions_hold(b in prop::collection::vec(-2.0..2.0f64, 1..60)) {
        for method in METHODS {
            let x = projected(&b, 1.0, method);
            let tau = b.iter().zip(&x).map(|(b, x)| b - x).fold(f64::NEG_INFINITY, f64::max);
            for (b, x) in b.iter().zip(&x).filter(|(_, x)| **x > 0.0) {
                prop_assert!((b - x - tau).abs() <= 1e-14);
            }
        }
    }

    /// `P(P(b)) = P(b)`.
    #[test]
    fn projecting_twice_changes_nothing(b in vectors()) {
        for method in METHODS {
            let x = projected(&b, 1.0, method);
            for (twice, once) in projected(&x, 1.0, method).iter().zip(&x) {
                prop_assert!((twice - once).abs() <= 1e-15 * b.len() as f64);
            }
        }
    }

    /// `|P(a) - P(b)| ≤ |a - b|`.
    #[test]
    fn projection_is_non_expansive(pairs in prop::collection::vec((-3.0..3.0f64, -0.5..0.5f64), 1..60)) {
        let a: Vec<f64> = pairs.iter().map(|p| p.0).collect();
        let b: Vec<f64> = pairs.iter().map(|p| p.0 + p.1).collect();
        for method in METHODS {
            let (x, y) = (projected(&a, 1.0, method), projected(&b, 1.0, method));
            let moved: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x - y).collect();
            let given: Vec<f64> = a.iter().zip(&b).map(|(x, y)| x - y).collect();
            prop_assert!(norm(&moved) <= norm(&given) + 1e-14 * a.len() as f64);
        }
    }

    /// `b_i ≤ b_j` gives `x_i ≤ x_j`; equal entries get equal shares.
    #[test]
    fn projection_keeps_the_order(b in vectors()) {
        for method in METHODS {
            let x = projected(&b, 1.0, method);
            for i in 0..b.len() {
                for j in 0..b.len() {
                    prop_assert!(b[i] > b[j] || x[i] <= x[j]);
                }
            }
        }
    }

    /// In `f32` the same point up to its rounding.
    #[test]
    fn single_precision_follows_double(b in prop::collection::vec(-3.0..3.0f32, 1..60)) {
        let wide: Vec<f64> = b.iter().map(|&x| f64::from(x)).collect();
        let mut narrow = b;
        project_onto_simplex(&mut narrow, 1.0f32).unwrap();
        for (x, want) in narrow.iter().zip(projected(&wide, 1.0, Projection::Sort)) {
            prop_assert!((f64::from(*x) - want).abs() <= 1e-7);
        }
    }
}

// [PNTF 2] [PNTF 3]
#[test]
fn extreme_entries_neither_overflow_nor_lose_the_sum() {
    for method in METHODS {
        assert_eq!(
            projected(&[1e308, -1e308, 0.0], 1.0, method),
            [1.0, 0.0, 0.0]
        );
        assert_eq!(projected(&[1e308, 1e308], 1.0, method), [0.5, 0.5]);
        assert_eq!(projected(&[-7.0], 1.0, method), [1.0]);
        assert_eq!(projected(&[5.0, 6.0], 0.0, method), [0.0, 0.0]);
        assert_eq!(projected(&[1.0, 2.0], 1e-320, method), [0.0, 1e-320]);
        let worst: Vec<f64> = (0..100).map(|i| -(200f64.powi(i))).collect();
        let x = projected(&worst, 1.0, method);
        assert_eq!((x[0], x[1]), (1.0, 0.0));
    }
}

#[test]
fn bad_input_is_named() {
    for method in METHODS {
        let refuse = |b: &[f64], radius| project_with(&mut b.to_vec(), radius, method).unwrap_err();
        assert_eq!(refuse(&[], 1.0), ProjectionError::Empty);
        assert!(matches!(
            refuse(&[0.0, f64::NAN], 1.0),
            ProjectionError::Value { index: 1, value } if value.is_nan()
        ));
        assert!(matches!(
            refuse(&[f64::INFINITY, 0.0], 1.0),
            ProjectionError::Value { index: 0, .. }
        ));
        for (len, bad) in [(1, f64::NAN), (11, f64::INFINITY), (300, f64::NEG_INFINITY)] {
            for place in 0..len {
                let mut b = vec![1.0; len];
                b[place] = bad;
                let refused = refuse(&b, 1.0);
                assert!(matches!(refused, ProjectionError::Value { index, .. } if index == place));
            }
        }
        assert_eq!(refuse(&[0.0], -1.0), ProjectionError::Radius(-1.0));
        assert!(matches!(
            refuse(&[0.0], f64::NAN),
            ProjectionError::Radius(_)
        ));
    }
}

/// Entries that lie exactly at the threshold share no rounding error.
#[test]
fn ties_with_the_threshold_stay_where_they_are() {
    let mut b = vec![0.0; 50];
    (b[11], b[16]) = (2.826767660710884, 3.805178955363906);
    for method in METHODS {
        let once = projected(&b, 1.0, method);
        for (twice, once) in projected(&once, 1.0, method).iter().zip(&once) {
            assert!((twice - once).abs() <= 2e-15, "{method:?} {twice} {once}");
        }
    }
}
