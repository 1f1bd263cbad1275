//! Properties of the quadratic programme over the simplex.

use nalgebra::{DMatrix, DVector};
use plca_dist::random;
use pntf_l2::{QpError, SimplexSolution, simplex_qp};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// `½ lᵀ H l - fᵀ l`.
fn value(h: &DMatrix<f64>, f: &[f64], l: &[f64]) -> f64 {
    let l = DVector::from_column_slice(l);
    0.5 * (h * &l).dot(&l) - l.dot(&DVector::from_column_slice(f))
}

/// `H = Aᵀ A` of size `k` and rank at most `rank`, and `f` in its range or not.
fn problem(k: usize, rank: usize, in_range: bool, seed: u64) -> (DMatrix<f64>, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = |rows, columns| {
        DMatrix::from_fn(rows, columns, |_, _| 2.0 * random::uniform(&mut rng) - 1.0)
    };
    let a = draw(rank, k);
    let f = if in_range {
        a.transpose() * draw(rank, 1)
    } else {
        draw(k, 1)
    };
    let h = a.transpose() * a;
    ((&h + h.transpose()) * 0.5, f.as_slice().to_vec())
}

fn check(h: &DMatrix<f64>, f: &[f64], qp: &SimplexSolution) -> Result<(), TestCaseError> {
    let scale = h.amax().max(f.iter().fold(0.0, |a: f64, x| a.max(x.abs())));
    let sum: f64 = qp.weights.iter().sum();
    prop_assert!((sum - 1.0).abs() <= 1e-15 * f.len() as f64);
    prop_assert!(qp.weights.iter().all(|&l| l >= 0.0));
    prop_assert!(
        qp.kkt_residual <= 1e-12 * scale,
        "residual {}",
        qp.kkt_residual
    );
    let l = DVector::from_column_slice(&qp.weights);
    let slopes = h * &l - DVector::from_column_slice(f);
    let mean = slopes.dot(&l);
    for (&l, &slope) in qp.weights.iter().zip(&slopes) {
        prop_assert!(slope >= mean - 1e-12 * scale, "{slope} {mean}");
        prop_assert!(l == 0.0 || slope <= mean + 1e-12 * scale, "{slope} {mean}");
    }
    prop_assert!((0.0..=1e-12 * scale).contains(&qp.gap), "gap {}", qp.gap);
    prop_assert!((qp.objective - value(h, f, &qp.weights)).abs() <= 1e-13 * scale * f.len() as f64);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The KKT conditions hold for every rank, from a vertex and from a warm start, to the same objective.
    // [PNTF 4]
    #[test]
    fn optimality_conditions_hold(k in 1..26usize, rank in 1..30usize, in_range: bool, seed: u64) {
        let (h, f) = problem(k, rank, in_range, seed);
        let cold = simplex_qp(&h, &f, None).unwrap();
        check(&h, &f, &cold)?;
        let warm = simplex_qp(&h, &f, Some(&vec![1.0; k])).unwrap();
        check(&h, &f, &warm)?;
        prop_assert!((cold.objective - warm.objective).abs() <= 1e-12 * (1.0 + h.amax()));
    }

    /// Duplicate unknowns: the minimum is that of the problem without them.
    #[test]
    fn duplicates_do_not_change_the_minimum(k in 1..8usize, seed: u64) {
        let (h, f) = problem(k, k + 1, true, seed);
        let twice = DMatrix::from_fn(2 * k, 2 * k, |i, j| h[(i % k, j % k)]);
        let both: Vec<f64> = f.iter().chain(&f).copied().collect();
        let (once, qp) = (simplex_qp(&h, &f, None).unwrap(), simplex_qp(&twice, &both, Some(&vec![1.0; 2 * k])).unwrap());
        check(&twice, &both, &qp)?;
        prop_assert!((once.objective - qp.objective).abs() <= 1e-13 * (1.0 + h.amax()));
    }

    /// Permuting the unknowns permutes the solution.
    #[test]
    fn permutation_of_unknowns(k in 2..12usize, shift in 1..11usize, seed: u64) {
        let (h, f) = problem(k, k + 3, true, seed);
        let to = |i: usize| (i + shift) % k;
        let moved = DMatrix::from_fn(k, k, |i, j| h[(to(i), to(j))]);
        let g: Vec<f64> = (0..k).map(|i| f[to(i)]).collect();
        let (a, b) = (simplex_qp(&h, &f, None).unwrap(), simplex_qp(&moved, &g, None).unwrap());
        for i in 0..k {
            prop_assert!((a.weights[to(i)] - b.weights[i]).abs() <= 1e-9);
        }
    }

    /// `(s H, s f)` has the solution of `(H, f)`; powers of two change no bit.
    #[test]
    fn scaling_changes_nothing(k in 1..12usize, exponent in -800..800i32, seed: u64) {
        let (h, f) = problem(k, k, true, seed);
        let s = 2f64.powi(exponent);
        let scaled: Vec<f64> = f.iter().map(|x| x * s).collect();
        let (a, b) = (simplex_qp(&h, &f, None).unwrap(), simplex_qp(&(&h * s), &scaled, None).unwrap());
        prop_assert_eq!(a.weights, b.weights);
    }
}

/// Faces of rank 4 with five unknowns, whose last pivot is as large as what rounding left of the others.
#[test]
fn faces_all_but_singular_are_solved() {
    for seed in [5087493173020751059, 33811253291959446] {
        for k in [22, 18] {
            let (h, f) = problem(k, 4, false, seed);
            for start in [None, Some(&vec![1.0; k][..])] {
                check(&h, &f, &simplex_qp(&h, &f, start).unwrap()).unwrap();
            }
        }
    }
}

/// No feasible point among ten thousand is better, and the gap is a bound.
// [PNTF 4]
#[test]
fn random_feasible_points_are_no_better() {
    for (k, rank) in [(3, 3), (8, 5), (8, 12), (20, 9)] {
        let (h, f) = problem(k, rank, false, k as u64);
        let qp = simplex_qp(&h, &f, None).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let mut near = qp.weights.clone();
        for trial in 0..10_000 {
            let mut l: Vec<f64> = (0..k).map(|_| random::exponential(&mut rng)).collect();
            let sum: f64 = l.iter().sum();
            l.iter_mut().for_each(|x| *x /= sum);
            if trial % 2 == 1 {
                // Points near the solution are the harder half.
                let step = 1e-3;
                near.iter_mut()
                    .zip(&qp.weights)
                    .zip(&l)
                    .for_each(|((n, q), l)| *n = q + step * (l - q));
                l.clone_from(&near);
            }
            assert!(value(&h, &f, &l) >= qp.objective - qp.gap - 1e-14);
        }
    }
}

/// The warm start survives where nothing is to be gained.
#[test]
fn degenerate_solution_stays_at_the_start() {
    let h = DMatrix::from_element(3, 3, 1.0);
    let start = [0.2, 0.5, 0.3];
    let qp = simplex_qp(&h, &[1.0; 3], Some(&start)).unwrap();
    for (l, s) in qp.weights.iter().zip(start) {
        assert!((l - s).abs() < 1e-15);
    }
    // Only differences of `f` count when `H` is constant: a linear programme, solved at a vertex.
    let qp = simplex_qp(&h, &[1.0, 2.0, 0.0], Some(&start)).unwrap();
    assert_eq!(qp.weights, [0.0, 1.0, 0.0]);
}

/// At the minimiser nothing is solved, though the gradient is not 0 there.
#[test]
fn nothing_is_solved_at_the_minimiser() {
    let h = DMatrix::identity(4, 4);
    let start = [0.25; 4];
    let qp = simplex_qp(&h, &[1.0; 4], Some(&start)).unwrap();
    assert_eq!((&qp.weights[..], qp.iterations), (&start[..], 0));
    assert_eq!(qp.multiplier, -0.75);
}

#[test]
fn bad_input_is_named() {
    let h = DMatrix::<f64>::identity(2, 2);
    assert_eq!(
        simplex_qp(&DMatrix::zeros(0, 0), &[], None),
        Err(QpError::Empty)
    );
    assert!(matches!(
        simplex_qp(&h, &[1.0], None),
        Err(QpError::Shape { name: "h", .. })
    ));
    assert!(matches!(
        simplex_qp(&h, &[1.0, f64::NAN], None),
        Err(QpError::Value { name: "f", .. })
    ));
    assert!(matches!(
        simplex_qp(&(&h * f64::INFINITY), &[1.0, 0.0], None),
        Err(QpError::Value { name: "h", .. })
    ));
    assert!(matches!(
        simplex_qp(&h, &[1.0, 0.0], Some(&[1.0])),
        Err(QpError::Shape { name: "start", .. })
    ));
    assert!(matches!(
        simplex_qp(&h, &[1.0, 0.0], Some(&[1.0, -1.0])),
        Err(QpError::Value { name: "start", .. })
    ));
    let skew = DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 0.0, 1.0]);
    assert!(matches!(
        simplex_qp(&skew, &[1.0, 0.0], None),
        Err(QpError::Asymmetric { .. })
    ));
    // Rounding beside the largest entry is none, whatever the units.
    for unit in [1e9, 1.0, 1e-9] {
        let with = |off| DMatrix::from_row_slice(2, 2, &[1.0, 0.5, 0.5 + off, 1.0]) * unit;
        let solve = |off| simplex_qp(&with(off), &[0.0; 2], None);
        assert!(solve(1e-13).is_ok());
        assert!(matches!(solve(1e-11), Err(QpError::Asymmetric { .. })));
    }
    // Huge and tiny problems are problems like others.
    let qp = simplex_qp(&(&h * 1e300), &[1e300, 0.0], None).unwrap();
    assert_eq!(qp.weights, [1.0, 0.0]);
    assert_eq!(
        simplex_qp(&DMatrix::zeros(2, 2), &[0.0; 2], None)
            .unwrap()
            .gap,
        0.0
    );
}

/// What is said of weights that are no minimiser is the definition, and the gap bounds what is still to be gained.
// [PNTF 4]
#[test]
fn certificates_away_from_the_minimiser() {
    for (k, rank) in [(2, 2), (5, 3), (8, 12), (20, 9)] {
        let (h, f) = problem(k, rank, true, 31 + k as u64);
        let best = simplex_qp(&h, &f, None).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(k as u64);
        for trial in 0..200 {
            let mut l: Vec<f64> = (0..k).map(|_| random::exponential(&mut rng)).collect();
            // Some on the border, and of any sum.
            (0..trial % k).for_each(|i| l[i] = 0.0);
            let at = SimplexSolution::at(&h, &f, &l).unwrap();
            let sum: f64 = l.iter().sum();
            let l: Vec<f64> = l.iter().map(|x| x / sum).collect();
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-13 * (1.0 + h.amax()) * k as f64;
            assert!(at.weights.iter().zip(&l).all(|(a, b)| near(*a, *b)) && at.iterations == 0);
            let g = &h * DVector::from_column_slice(&l) - DVector::from_column_slice(&f);
            let nu: f64 = g.iter().zip(&l).map(|(g, l)| g * l).sum();
            let on_support = g.iter().zip(&l).filter(|(_, l)| **l > 0.0);
            let spread = on_support.map(|(g, _)| (g - nu).abs()).fold(0.0, f64::max);
            assert!(near(at.objective, value(&h, &f, &l)) && near(at.multiplier, nu));
            assert!(near(at.gap, nu - g.min()) && near(at.kkt_residual, spread.max(nu - g.min())));
            assert!(
                at.gap >= at.objective - best.objective - 1e-12 && at.gap > 1e-6,
                "{}",
                at.gap
            );
        }
    }
}

/// A matrix that curves downwards along the simplex is refused with a direction along which it does; one that does so only across
/// the simplex is solved.
// [PNTF 4]
#[test]
fn indefinite_matrices_are_refused() {
    for seed in 0..20 {
        for k in [2, 3, 6, 15] {
            let (h, f) = problem(k, k, true, seed);
            // Downwards along (1, -1, 0, ...).
            let mut d = DVector::zeros(k);
            (d[0], d[1]) = (1.0, -1.0);
            let much = (&h * &d).dot(&d) / 4.0 + 1e-3;
            let bent = &h - &d * d.transpose() * much;
            let size = 2f64.powi(40 * (seed as i32 % 3 - 1));
            let refused = simplex_qp(&(&bent * size), &f, None).unwrap_err();
            assert_eq!(
                Err(&refused),
                SimplexSolution::at(
                    &(&bent * size),
                    &f,
                    &f.iter().map(|x| x.abs()).collect::<Vec<_>>()
                )
                .as_ref()
            );
            let QpError::Indefinite {
                direction,
                curvature,
            } = refused
            else {
                panic!("{refused}")
            };
            let direction = DVector::from_vec(direction);
            assert!((direction.norm() - 1.0).abs() < 1e-12 && direction.sum().abs() < 1e-12);
            let along = (&bent * &direction).dot(&direction) * size;
            assert!(
                curvature < 0.0 && (along - curvature).abs() <= 1e-9 * size * bent.amax(),
                "{along} {curvature}"
            );
            // A multiple of 1 1ᵀ adds a constant on the simplex.
            let across = h.add_scalar(-3.0 * h.amax() - 1.0);
            let (a, b) = (
                simplex_qp(&h, &f, None).unwrap(),
                simplex_qp(&across, &f, None).unwrap(),
            );
            let constant = 0.5 * (-3.0 * h.amax() - 1.0);
            assert!((a.objective + constant - b.objective).abs() <= 1e-11 * (1.0 + h.amax()));
            assert!(b.gap <= 1e-11 * (1.0 + h.amax()));
        }
    }
    let refused = simplex_qp(
        &DMatrix::from_row_slice(2, 2, &[0.0, 1.0, 1.0, 0.0]),
        &[0.0; 2],
        None,
    )
    .unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("`h` is not positive semidefinite on the simplex: dᵀ H d = -"),
        "{refused}"
    );
}
