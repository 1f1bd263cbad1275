//! EM with the posterior written out: `R(z, t | x)` of every component and tap at every cell, as the equations are.

use nalgebra::{DMatrix, dvector};
use plca_em::{
    Evaluation, Geometry, IndexMaps, Likelihood, Shifted, ShiftedState, Support, Transformed,
};
use plca_fit::{Init, Model, Parameters, Stop, Transform};
use plca_tensor::Data;
use proptest::prelude::*;

use super::properties::problems;
use super::support::{EVALUATIONS, complete, rng};

type State = Parameters<f64>;

/// One way to explain a cell: a kernel cell and the impulse cell that puts it there.
struct Way {
    tap: usize,
    place: usize,
}

/// One step of EM. `mass` turns the value of a cell into what its posterior is weighed with: the value itself.
fn explicit(
    data: &dyn Data<f64>,
    old: &State,
    ways: impl Fn(&[usize]) -> Vec<Way>,
    mass: impl Fn(f64) -> f64,
) -> State {
    let [weights, kernel, impulse] = [0, 1, 2].map(|j| old.at(j));
    let k = weights.len();
    let mut n = DMatrix::<f64>::zeros(k, 1);
    let mut kernels = DMatrix::zeros(kernel.nrows(), k);
    let mut impulses = DMatrix::zeros(impulse.nrows(), k);
    data.visit(&mut |index, value| {
        let ways = ways(index);
        let joint = |w: &Way, z: usize| weights[z] * kernel[(w.tap, z)] * impulse[(w.place, z)];
        // P(x) = Σ_z P(z) Σ_t K(t | z) H(x - t | z)
        let p: f64 = (0..k)
            .flat_map(|z| ways.iter().map(move |w| (w, z)))
            .map(|(w, z)| joint(w, z))
            .sum();
        for z in 0..k {
            for w in &ways {
                let r = joint(w, z) / p;
                // Σ_x V(x) R(x, t, z), kept for its component, its tap and its place
                n[z] += mass(value) * r;
                kernels[(w.tap, z)] += mass(value) * r;
                impulses[(w.place, z)] += mass(value) * r;
            }
        }
    })
    .unwrap();
    for z in 0..k {
        kernels.column_mut(z).scale_mut(1.0 / n[z]);
        impulses.column_mut(z).scale_mut(1.0 / n[z]);
    }
    let mut blocks = [&n / n.sum(), kernels, impulses].into_iter();
    let mut new = old.clone();
    new.change(|_, block| *block = blocks.next().unwrap());
    new
}

fn difference(a: &State, b: &State) -> f64 {
    let blocks = a.matrices().iter().zip(b.matrices());
    blocks.map(|(a, b)| (a - b).amax()).fold(0.0, f64::max)
}

/// Error of a count that the Fourier transforms promise, relative to the mass of the data: their rounding is that of the largest ratio.
// [SPEC 5.6]
const BY_TRANSFORMS: f64 = 1e-10;

fn may_transform(evaluation: Evaluation) -> bool {
    matches!(evaluation, Evaluation::Auto | Evaluation::Fft)
}

/// The smallest share of the data that a component has, by which its counts are divided.
fn rarest(state: &State) -> f64 {
    state.at(0).min()
}

/// The impulse cells `x - t + o` that every tap meets.
fn shifts(g: &Geometry, index: &[usize]) -> Vec<Way> {
    let unravel = |mut cell: usize| {
        let mut tap = vec![0; index.len()];
        for (t, n) in tap.iter_mut().zip(g.kernel_shape()).rev() {
            *t = cell % n;
            cell /= n;
        }
        tap
    };
    let way = |tap: usize| {
        let place = unravel(tap).iter().enumerate().try_fold(0, |at, (d, t)| {
            let h = (index[d] + g.offset()[d]).checked_sub(*t)?;
            (h < g.impulse_shape()[d]).then(|| at * g.impulse_shape()[d] + h)
        })?;
        Some(Way { tap, place })
    };
    (0..g.kernel_cells()).filter_map(way).collect()
}

/// Maps of a kernel onto a line of cells, the first cell of one map on every cell.
fn maps() -> impl Strategy<Value = (Vec<f64>, usize, Vec<i64>)> {
    (2..=6usize, 1..=3usize).prop_flat_map(|(cells, kernel)| {
        let others = prop::collection::vec(-1..cells as i64, (cells + 2) * kernel);
        let values = prop::collection::vec(0.05..20.0f64, cells);
        (values, Just(kernel), others).prop_map(move |(values, kernel, mut table)| {
            for map in 0..cells {
                table[map * kernel] = map as i64;
            }
            (values, kernel, table)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Posterior, priors, kernels and impulses of one step, by every arithmetic and from every storage.
    // [SI eq. 6-15] [LV eq. 15-19] [SPEC 5.1]
    #[test]
    fn a_step_is_that_of_the_posterior(p in problems()) {
        for (storage, data) in complete::<f64>(&p.shape, &p.values) {
            for evaluation in EVALUATIONS {
                let shifted = p.model().evaluation(evaluation).likelihood(Likelihood::Literal);
                let em = shifted.bind(&*data).unwrap();
                let geometry = shifted.geometry(&p.shape).unwrap();
                let mut state = p.start(&*em);
                let want = explicit(&*data, &state, |x| shifts(&geometry, x), |v| v);
                em.step(&mut state, false).unwrap();
                let off = difference(&state, &want);
                let allowed = if may_transform(evaluation) { BY_TRANSFORMS / rarest(&want) } else { 1e-12 };
                prop_assert!(off <= allowed, "{storage}, {evaluation:?}: {off} {allowed}");
            }
        }
    }

    /// The same for maps in the place of shifts.
    // [SPEC 5.7]
    #[test]
    fn a_step_of_maps_is_that_of_the_posterior((values, kernel, table) in maps(), k in 1..=3usize, seed: u64) {
        let maps = IndexMaps::new(values.len(), kernel, &table).unwrap();
        let transformed = Transformed::new(k, maps).likelihood(Likelihood::Literal);
        let ways = |index: &[usize]| -> Vec<Way> {
            let meets = table.iter().enumerate().filter(|(_, to)| **to == index[0] as i64);
            let way = |(at, _): (usize, &i64)| Way { tap: at % kernel, place: at / kernel };
            meets.map(way).collect()
        };
        for (storage, data) in complete::<f64>(&[values.len()], &values) {
            let em = transformed.bind(&*data).unwrap();
            let mut state = Init::default().parameters(&*em, &mut rng(seed)).unwrap();
            let want = explicit(&*data, &state, ways, |v| v);
            em.step(&mut state, false).unwrap();
            let off = difference(&state, &want);
            prop_assert!(off <= 1e-12, "{storage}: {off}");
        }
    }
}

/// Known kernels: `a <- a ∘ Kᵀ (V / K a) / v` for `a = P(z) H(h | z)`, from `a` the same everywhere; the kernels stay.
// [SPEC 5.4]
#[test]
fn known_kernels_are_deconvolved() {
    let (cells, taps, places) = (7, 3, 5);
    let values = [1.0, 4.0, 2.0, 6.0, 3.0, 9.0, 2.0];
    // Divided by their sums, which are 1, they would differ in the last bits.
    let kernels = DMatrix::from_column_slice(taps, 2, &[0.55, 0.2, 0.25, 0.05, 0.15, 0.8]);
    let stop = Stop::default().max_iter(6).tol(None);
    let how = Transform::default().stop(stop);
    let ways =
        || (0..2).flat_map(|z| (0..places).flat_map(move |h| (0..taps).map(move |t| (z, h, t))));
    let mut a = DMatrix::from_element(places, 2, 0.1);
    for _ in 0..how.stop.max_iter {
        let mut p = vec![0.0; cells];
        for (z, h, t) in ways() {
            p[h + t] += kernels[(t, z)] * a[(h, z)];
        }
        let mut next = DMatrix::zeros(places, 2);
        for (z, h, t) in ways() {
            next[(h, z)] += a[(h, z)] * kernels[(t, z)] * values[h + t] / p[h + t];
        }
        a = next / values.iter().sum::<f64>();
    }
    let geometry = Geometry::new(&[cells], &[taps], &[Support::Valid]).unwrap();
    let learnt = ShiftedState::new(
        geometry,
        Likelihood::Conditional,
        dvector![0.5, 0.5],
        kernels.clone(),
        DMatrix::from_element(places, 2, 0.2),
    );
    let learnt = learnt.unwrap();
    for (storage, data) in complete::<f64>(&[cells], &values) {
        let found = learnt.transform(&*data, &how).unwrap();
        let state = found.fit.state();
        assert_eq!(state.kernels(), &kernels, "{storage}");
        let weights = nalgebra::DVector::from_column_slice(state.weights());
        let joint = state.impulses() * DMatrix::from_diagonal(&weights);
        assert!((&joint - &a).amax() <= 1e-12, "{storage}: {joint} {a}");
    }
}

/// The control: integrals of the posterior alone, as one of the papers prints them, are another step.
// [LV eq. 17]
#[test]
fn the_posterior_is_weighed_with_the_data() {
    let values = [1.0, 7.0, 2.0, 0.5, 4.0, 9.0];
    for (storage, data) in complete::<f64>(&[6], &values) {
        let shifted = Shifted::new(2, vec![2]);
        let em = shifted.bind(&*data).unwrap();
        let geometry = shifted.geometry(&[6]).unwrap();
        let mut state = Init::default().parameters(&*em, &mut rng(3)).unwrap();
        let step = |mass: fn(f64) -> f64| explicit(&*data, &state, |x| shifts(&geometry, x), mass);
        let (right, wrong) = (step(|v| v), step(|_| 1.0));
        em.step(&mut state, false).unwrap();
        assert!(difference(&state, &right) <= 1e-12, "{storage}");
        assert!(difference(&state, &wrong) > 1e-2, "{storage}");
    }
}
