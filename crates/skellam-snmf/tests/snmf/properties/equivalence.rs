//! What must not matter: names, order, sign, scale, hidden values, threads.

use nalgebra::DMatrix;
use plca_fit::Init;
use plca_fit::laws::check_threads;
use proptest::prelude::*;
use skellam_snmf::{Factors, Replicates, Snmf, SnmfState, SnmfVb};

use super::problem::{Problem, apart, distance, fixed, problem, replicates};
use crate::support::{At, from_factors, listed, masked};

/// The state after some iterations from the given factors.
fn after(problem: &Problem, m: Replicates, start: Factors<f64>, steps: usize) -> Factors<f64> {
    let config = Snmf::new(problem.k).replicates(m).real_data(true);
    let data = problem.tensor();
    let mut at = At::start(&config, &data, from_factors(&start));
    for _ in 0..steps {
        at.step();
    }
    at.state().to_factors()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// `-V` swaps the sides, to the bit. [SKELLAM 1]
    #[test]
    fn sign_swaps_the_sides(problem in problem(), m in replicates()) {
        let start = problem.factors();
        let swapped = Factors { plus: start.minus.clone(), minus: start.plus.clone(), activations: start.activations.clone() };
        let flipped = Problem { values: -&problem.values, ..problem.clone() };
        let (a, b) = (after(&problem, m, start, 15), after(&flipped, m, swapped, 15));
        prop_assert!(distance(&a.plus, &b.minus) <= 1e-12 && distance(&a.minus, &b.plus) <= 1e-12);
        prop_assert!(distance(&a.activations, &b.activations) <= 1e-12);
    }

    /// In the limit and without a prior, `(c V, c H)` is a trajectory whenever `(V, H)` is; to the bit for powers of two.
    /// [SKELLAM eq. 32]
    #[test]
    fn scale_of_the_limit(problem in problem(), c in prop_oneof![Just(1e-90), 0.01..100.0f64, Just(1e90)]) {
        let start = problem.factors();
        let plain = after(&problem, Replicates::Limit, start.clone(), 15);
        for (c, tolerance) in [(c, 1e-11), (2f64.powi(200), 0.0), (2f64.powi(-200), 0.0)] {
            let scaled = Problem { values: &problem.values * c, ..problem.clone() };
            let first = Factors { activations: &start.activations * c, ..start.clone() };
            let got = after(&scaled, Replicates::Limit, first, 15);
            let want = Factors { activations: &plain.activations * c, ..plain.clone() };
            prop_assert!(apart(&got, &want) <= tolerance, "{c}: {}", apart(&got, &want));
        }
    }

    /// A list of the observed cells is the masked matrix, for both methods. [SKELLAM 5] [SKELLAM 6]
    #[test]
    fn a_list_of_cells_is_the_masked_matrix(problem in problem(), m in replicates()) {
        let data = problem.tensor();
        let list = listed(&data);
        let config = Snmf::new(problem.k).replicates(m).priors(problem.prior(1.0));
        let start = problem.factors();
        let (mut a, mut b) = (At::start(&config, &data, from_factors(&start)), At::start(&config, &list, from_factors(&start)));
        let vb = SnmfVb::new(problem.k).replicates(m).priors(problem.prior(0.1));
        let means = SnmfState::new(&start.plus, &start.minus, start.activations).unwrap();
        let mut c = At::start(&vb, &data, &vb.at_means(&data, &means).unwrap());
        let mut d = At::start(&vb, &list, &vb.at_means(&list, &means).unwrap());
        let size = 1.0 + problem.values.abs().sum();
        for _ in 0..10 {
            let (u, v) = (a.measured(), b.measured());
            prop_assert!((u - v).abs() <= 1e-11 * (size + u.abs()));
            let (u, v) = (c.measured(), d.measured());
            prop_assert!((u - v).abs() <= 1e-11 * (size + u.abs()));
        }
        prop_assert!(apart(&a.state().to_factors(), &b.state().to_factors()) <= 1e-10);
        prop_assert!(apart(&c.state().posterior().means(), &d.state().posterior().means()) <= 1e-10);
    }

    /// What lies under the mask decides nothing.
    #[test]
    fn hidden_values_are_never_read(problem in problem(), m in replicates()) {
        let mut other = problem.clone();
        for (x, &seen) in other.values.iter_mut().zip(problem.seen.iter()) {
            *x = if seen { *x } else { f64::NAN };
        }
        let start = problem.factors();
        prop_assert_eq!(after(&problem, m, start.clone(), 5), after(&other, m, start, 5));
    }

    /// Renamed components and reordered rows and columns give the same fit.
    #[test]
    fn order_does_not_matter(problem in problem(), m in replicates(), turn in 0..40usize) {
        let (f, n) = problem.values.shape();
        let k = problem.k;
        let turned = |m: &DMatrix<f64>, by: (usize, usize)| {
            DMatrix::from_fn(m.nrows(), m.ncols(), |i, j| m[((i + by.0) % m.nrows(), (j + by.1) % m.ncols())])
        };
        let start = problem.factors();
        let state = |s: &Factors<f64>| Factors {
            plus: turned(&s.plus, (turn % f, turn % k)),
            minus: turned(&s.minus, (turn % f, turn % k)),
            activations: turned(&s.activations, (turn % k, turn % n)),
        };
        let other = Problem {
            values: turned(&problem.values, (turn % f, turn % n)),
            seen: DMatrix::from_fn(f, n, |i, j| problem.seen[((i + turn) % f, (j + turn) % n)]),
            ..problem.clone()
        };
        let (a, b) = (after(&problem, m, start.clone(), 10), after(&other, m, state(&start), 10));
        prop_assert!(apart(&state(&a), &b) <= 1e-11, "{}", apart(&state(&a), &b));
    }

    /// Single precision follows double precision for some steps.
    #[test]
    fn single_precision(problem in problem(), m in replicates()) {
        let values = problem.values.map(|x| x as f32);
        let data = masked(&values, &problem.seen);
        let config = Snmf::new(problem.k).replicates(m);
        let start = problem.factors();
        let narrow = |m: &DMatrix<f64>| m.map(|x| x as f32);
        let first = Factors { plus: narrow(&start.plus), minus: narrow(&start.minus), activations: narrow(&start.activations) };
        let mut at = At::start(&config, &data, from_factors(&first));
        for _ in 0..3 {
            at.step();
        }
        let state = at.state().to_factors();
        let wide = |m: &DMatrix<f32>| m.map(f64::from);
        let state = Factors { plus: wide(&state.plus), minus: wide(&state.minus), activations: wide(&state.activations) };
        prop_assert!(apart(&state, &after(&problem, m, start, 3)) <= 1e-4);
    }
}

/// One thread and three give the same bits, for both methods, on data cut into several groups.
#[test]
fn threads_change_no_bit() {
    let problem = fixed(
        DMatrix::from_fn(40, 900, |i, j| ((i * 31 + j * 17) % 23) as f64 - 9.0),
        DMatrix::from_fn(40, 900, |i, j| (i + j) % 7 > 0),
        4,
        5,
    );
    let data = problem.tensor();
    let vb = SnmfVb::new(4);
    let run = || {
        let states =
            [Replicates::Limit, Replicates::One].map(|m| after(&problem, m, problem.factors(), 3));
        let mut at = At::start(&vb, &data, Init::default());
        let objective = at.measured();
        (states, at.state().posterior(), objective)
    };
    check_threads(run).unwrap();
}
