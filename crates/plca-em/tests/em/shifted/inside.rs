//! Models of which next to nothing lies inside the data, or was observed: what is said of them is what their arrays say.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector, dmatrix};
use plca_em::{
    Geometry, IndexMaps, Likelihood, MapEntry, Positions, Shifted, ShiftedState, Support,
    Transformation, Transformed, TransformedState,
};
use plca_fit::laws::{Rounding, never_worse};
use plca_fit::{
    Algorithm, FitError, Init, Model, Parameters, Reconstruct, Sense, Solver, State, Stop,
    Transform, solver::Memory,
};
use plca_priors::{Entropic, SimplexPrior, Step};
use plca_tensor::{Real, normalise_columns};
use proptest::prelude::*;

use super::properties::{Problem, convolution, obeys, problems};
use super::support::{EVALUATIONS, Storages, complete, dense, masked, rng};

/// Columns whose entries lie many orders of magnitude apart.
fn wild<T: Real>(rows: usize, columns: usize, orders: f64, seed: u64) -> DMatrix<T> {
    let mut rng = rng(seed);
    let mut uniform = || plca_dist::random::uniform(&mut rng);
    let mut block = DMatrix::from_fn(rows, columns, |_, _| {
        T::lit(10f64.powf(-orders * uniform()))
    });
    normalise_columns(&mut block);
    block
}

/// Orders of magnitude between entries.
fn orders<T: Real>() -> f64 {
    if size_of::<T>() == 4 { 6.0 } else { 40.0 }
}

fn tolerance<T: Real>() -> f64 {
    if size_of::<T>() == 4 { 2e-5 } else { 1e-10 }
}

/// The likelihood and the scale that these probabilities give to observed values: `Σ V ln P - v ln Σ P`, `v / Σ P`, and the sum of the absolute terms.
fn defined(values: &[f64], p: &[f64], observed: impl Fn(usize) -> bool) -> [f64; 3] {
    let cells = || (0..p.len()).filter(|&i| observed(i));
    let v: f64 = cells().map(|i| values[i]).sum();
    let seen: f64 = cells().map(|i| p[i]).sum();
    let terms = cells().filter(|&i| values[i] > 0.0);
    let terms: Vec<f64> = terms.map(|i| values[i] * p[i].ln()).collect();
    let size = terms.iter().map(|x| x.abs()).sum::<f64>() + (v * seen.ln()).abs();
    [terms.iter().sum::<f64>() - v * seen.ln(), v / seen, size]
}

/// What a model on data says of parameters, against their definition.
fn says<T: Real, S: State<Scalar = T> + Reconstruct>(
    on: &dyn Algorithm<T>,
    at: &Parameters<T>,
    (values, p): (&[f64], &[f64]),
    observed: impl Fn(usize) -> bool,
    what: &str,
) -> Result<(), TestCaseError> {
    let tolerance = tolerance::<T>();
    let [value, scale, size] = defined(values, p, &observed);
    let told = on.objective(at).unwrap();
    // The logarithm of a probability near 1 has the rounding of the probability.
    let allowed = tolerance * size + 8.0 * T::EPSILON.to_f64() * on.unit();
    prop_assert!(
        (told - value).abs() <= allowed,
        "{what}: {told} instead of {value}"
    );
    prop_assert!(told <= allowed, "{what}: {told}");
    let factor = on.scale(at).unwrap().unwrap()[0];
    prop_assert!(
        (factor / scale - 1.0).abs() <= tolerance,
        "{what}: a scale of {factor} instead of {scale}"
    );
    let mass: f64 = (0..p.len())
        .filter(|&i| observed(i))
        .map(|i| values[i])
        .sum();
    let mut states = vec![at.clone().with_fact("scale", vec![factor])];
    if (0..p.len()).all(&observed) {
        // Where the file of a state does not say it.
        states.push(at.clone());
    }
    for state in states {
        let state = S::wrap(state).unwrap();
        let cells = state.reconstruct().unwrap().into_parts().1;
        let seen = (0..p.len()).filter(|&i| observed(i));
        let sum: f64 = seen.map(|i| cells[i].to_f64()).sum();
        prop_assert!(
            (sum / mass - 1.0).abs() <= tolerance,
            "{what}: {sum} reconstructed of {mass}"
        );
    }
    Ok(())
}

/// Parameters of a problem with entries that lie far apart.
fn spread<T: Real>(p: &Problem, on: &dyn Algorithm<T>) -> Parameters<T> {
    let mut at = p.start::<T>(on);
    at.change(|j, block| {
        let (rows, columns) = block.shape();
        block.copy_from(&wild(rows, columns, orders::<T>(), p.seed ^ j as u64));
    });
    at
}

/// The same for kernels of which a single tap has nearly all, at places from which it lies outside, if there are any.
fn outside<T: Real>(p: &Problem, g: &Geometry, mut at: Parameters<T>) -> Parameters<T> {
    let few = T::lit(10f64.powf(-0.6 * orders::<T>()));
    let unravel = |mut i: usize, shape: &[usize]| {
        let mut index = vec![0; shape.len()];
        for (at, n) in index.iter_mut().zip(shape).rev() {
            *at = i % n;
            i /= n;
        }
        index
    };
    let tap = p.seed as usize % g.kernel_cells();
    let t = unravel(tap, g.kernel_shape());
    let is_outside = |place: usize| {
        let h = unravel(place, g.impulse_shape());
        let inside = |d: usize| {
            let x = (h[d] + t[d]).checked_sub(g.offset()[d]);
            x.is_some_and(|x| x < g.data_shape()[d])
        };
        !(0..t.len()).all(inside)
    };
    at.change(|j, block| {
        for (row, mut entries) in block.row_iter_mut().enumerate() {
            match j {
                1 if row == tap => entries.fill(T::one()),
                2 if is_outside(row) => entries.fill(T::one()),
                1 | 2 => entries *= few,
                _ => {}
            }
        }
        normalise_columns(block);
    });
    at
}

/// The problem with kernels that may leave the data wherever they can.
fn leaving(p: &Problem, support: Support) -> Problem {
    Problem {
        supports: vec![support],
        ..p.clone()
    }
}

fn definition<T: Real>(p: &Problem, support: Support) -> Result<(), TestCaseError> {
    let p = leaving(p, support);
    for (storage, data) in p.storages::<T>() {
        for evaluation in EVALUATIONS {
            let model = p.model().evaluation(evaluation);
            let on = model.bind(&*data).unwrap();
            let g = model.geometry(&p.shape).unwrap();
            let at = spread::<T>(&p, &*on);
            for at in [outside(&p, &g, at.clone()), at] {
                if on.scale(&at).unwrap().is_none() {
                    continue;
                }
                let hidden = p.hidden();
                let observed = |i: usize| data.is_complete() || !hidden(i);
                let cells = convolution(&g, &at);
                let what = format!("{storage}, {evaluation:?}, {support:?}");
                says::<T, ShiftedState<T>>(&*on, &at, (&p.values, &cells), observed, &what)?;
            }
        }
    }
    Ok(())
}

/// The same from a start far from everything, by solvers that ask for the objective.
fn rises(p: &Problem, support: Support) -> Result<(), TestCaseError> {
    let p = leaving(p, support);
    for (storage, data) in complete::<f64>(&p.shape, &p.values) {
        for evaluation in EVALUATIONS {
            let model = p.model().evaluation(evaluation);
            let on = model.bind(&*data).unwrap();
            let g = model.geometry(&p.shape).unwrap();
            let start = outside(&p, &g, spread::<f64>(&p, &*on));
            let what = format!("{storage}, {evaluation:?}, {support:?}");
            obeys(&*on, Solver::Em, &start, &what)?;
            let mut momentum = Solver::Momentum.on(&*on, Memory::default()).unwrap();
            let (mut at, mut values) = (start, Vec::new());
            for _ in 0..8 {
                let value = on.objective(&at).unwrap();
                let allowed = 1e-12 * (1.0 + on.unit());
                let rounding = Rounding {
                    relative: 1e-12,
                    absolute: allowed,
                };
                values.push((value, rounding));
                momentum.step(&mut at, false).unwrap();
            }
            let fell = never_worse(Sense::Maximise, &values);
            fell.map_err(|e| TestCaseError::fail(format!("{what}: {e}")))?;
        }
    }
    Ok(())
}

/// Maps of kernels of two cells to these cells that leave them at both ends.
fn maps(cells: usize) -> IndexMaps {
    let mut entries = Vec::new();
    for (map, place) in (-1..cells as isize).enumerate() {
        for from in 0..2 {
            for (step, weight) in [(0, 0.75), (1, 0.25)] {
                let to = usize::try_from(place + from as isize + step);
                entries.push(MapEntry {
                    map,
                    from,
                    to: to.ok().filter(|&x| x < cells),
                    weight,
                });
            }
        }
    }
    IndexMaps::from_entries(cells, 2, entries).unwrap()
}

/// Kernels of any turn that leave data of two dimensions, and maps of them.
fn turned(shape: &[usize], kernel: &[usize]) -> Vec<IndexMaps> {
    let turns = Transformation::product(&[0.0, 90.0, 30.0], &[1.0], false).unwrap();
    let mut all: Vec<_> = [Positions::Full, Positions::Centred]
        .into_iter()
        .filter_map(|positions| IndexMaps::placed(&turns, kernel, shape, positions).ok())
        .collect();
    all.push(maps(shape.iter().product()));
    all
}

fn transformed<T: Real>(p: &Problem) -> Result<(), TestCaseError> {
    for maps in turned(&p.shape, &p.kernel) {
        let model = Transformed::new(p.components, maps.clone());
        for (storage, data) in p.storages::<T>() {
            let on = model.bind(&*data).unwrap();
            let at = spread::<T>(p, &*on);
            if on.scale(&at).unwrap().is_none() {
                continue;
            }
            // Of a state without a scale, so that its cells are those of the model.
            let told = at.clone().with_fact("scale", vec![1.0]);
            let cells = TransformedState::wrap(told).unwrap().reconstruct().unwrap();
            let cells: Vec<f64> = cells.into_parts().1.iter().map(|x| x.to_f64()).collect();
            let hidden = p.hidden();
            let observed = |i: usize| data.is_complete() || !hidden(i);
            says::<T, TransformedState<T>>(
                &*on,
                &at,
                (&p.values, &cells),
                observed,
                &format!("{storage}, {} maps", maps.maps()),
            )?;
        }
    }
    Ok(())
}

/// `L + β Σ θ ln θ` of impulses with an entropic prior, by definition.
fn posterior(values: &[f64], g: &Geometry, at: &Parameters<f64>, prior: &Entropic) -> [f64; 2] {
    let [value, _, size] = defined(values, &convolution(g, at), |_| true);
    let prior: f64 = prior.ln_density(at.at(2), &Step::at(1));
    [value + prior, size + prior.abs()]
}

/// Values of a law without a mode, which are nearly never 0.
fn gamma(cells: usize, seed: u64) -> Vec<f64> {
    let mut rng = rng(seed);
    (0..cells)
        .map(|_| plca_dist::random::exponential(&mut rng).powf(1.3))
        .collect()
}

/// Under priors that drive the model out of the window, whatever a fit measures on its way is what its arrays say, no measured value is worse
/// than the one before, and of several starts the best is kept.
// [SPEC 5.2] [SPEC 5.5]
#[test]
fn fits_that_leave_the_window() {
    let mut outside = 0;
    for seed in 0..6 {
        let shape = [7, 9];
        let values = gamma(63, seed);
        let data = dense::<f64>(&shape, &values);
        let support = [Support::Full, Support::Same][seed as usize % 2];
        let prior = Arc::new(Entropic::new([3.0, 10.0, 30.0][seed as usize % 3]).unwrap());
        let model = Shifted::new(2, vec![3, 2])
            .support(support)
            .prior("impulses", prior.clone());
        let g = model.geometry(&shape).unwrap();
        for solver in [Solver::Momentum, Solver::Squarem, Solver::Em] {
            let run = |most| {
                let stop = Stop::default().max_iter(most).tol(None).check_every(1);
                model.on(&data).unwrap().solver(solver).stop(stop)
            };
            let mut draws = rng(seed);
            let mut best = f64::NEG_INFINITY;
            // Three drawn starts, and one beside the window: all impulses where only the last entry of a kernel reaches the data, and that is nearly 0.
            for start in 0..4 {
                let init = match (start, support) {
                    (3, Support::Full) => {
                        let drawn = model.init(&data, Init::default(), &mut draws).unwrap();
                        let beside = |name: &str, small: &dyn Fn(usize, usize) -> bool| {
                            let mut block = drawn.parameters().block(name).unwrap().clone();
                            let rows = block.nrows();
                            for mut column in block.column_iter_mut() {
                                let entries = column.iter_mut().enumerate();
                                let small = entries.filter(|&(i, _)| small(i, rows));
                                small.for_each(|(_, x)| *x *= 1e-20);
                            }
                            normalise_columns(&mut block);
                            block
                        };
                        let init =
                            Init::default().block("kernels", beside("kernels", &|i, n| i + 1 == n));
                        init.block("impulses", beside("impulses", &|i, _| i > 0))
                    }
                    (3, _) => continue,
                    _ => Init::default(),
                };
                let fit = run(80).run(init, &mut draws).unwrap();
                let at = fit.state().parameters();
                let [value, size] = posterior(&values, &g, at, &prior);
                let told = fit.objective();
                assert!(
                    (told - value).abs() <= 1e-10 * size,
                    "{seed} {solver:?}: {told} instead of {value}"
                );
                let rounding = Rounding {
                    relative: 1e-12,
                    absolute: 1e-12 * size,
                };
                let trace = fit.trace().iter().map(|p| (p.objective, rounding));
                let trace: Vec<_> = trace.collect();
                never_worse(Sense::Maximise, &trace)
                    .unwrap_or_else(|e| panic!("{seed} {solver:?}: {e}"));
                outside += usize::from(fit.state().window_mass() < 1e-12);
                if start < 3 {
                    best = best.max(value);
                }
            }
            let fit = run(80).restarts(3).run(Init::default(), &mut rng(seed));
            let fit = fit.unwrap();
            let [value, size] = posterior(&values, &g, fit.state().parameters(), &prior);
            assert!((value - best).abs() <= 1e-10 * size, "{value} {best}");
        }
    }
    assert!(outside > 0, "no fit left the window");
}

/// The default solver under the relative priors that pages advise.
// [SPEC 5.2] [SPEC 5.5]
#[test]
fn fits_under_relative_priors() {
    let mut outside = 0;
    for seed in 0..16 {
        let shape = [6 + seed as usize % 5, 8];
        let values = gamma(shape[0] * shape[1], 100 + seed);
        let data = dense::<f64>(&shape, &values);
        let prior = Arc::new(Entropic::relative([0.1, 0.2, 0.3][seed as usize % 3]).unwrap());
        let model = Shifted::new(1 + seed as usize % 3, vec![2, 3])
            .support([Support::Full, Support::Same][seed as usize % 2])
            .prior("impulses", prior);
        let stop = Stop::default().max_iter(600);
        let run = model.on(&data).unwrap().stop(stop);
        let fit = match run.run(Init::default(), &mut rng(seed)) {
            // The prior took all of a cell.
            Err(FitError::Support { .. }) => continue,
            fit => fit.unwrap(),
        };
        let g = model.geometry(&shape).unwrap();
        let at = fit.state().parameters();
        let [value, scale, size] = defined(&values, &convolution(&g, at), |_| true);
        let told = fit.objective();
        assert!(
            (told - value).abs() <= 1e-10 * size,
            "{seed}: {told} {value}"
        );
        let factor = at.fact("scale").unwrap()[0];
        assert!((factor / scale - 1.0).abs() <= 1e-10, "{factor} {scale}");
        outside += usize::from(fit.state().window_mass() < 1e-3);
    }
    assert!(outside > 0, "no fit left the window");
}

/// A single kernel, all of whose impulses lie outside but for next to nothing.
#[test]
fn the_edge_of_a_model() {
    let values = gamma(14 * 8, 5);
    let data = dense::<f64>(&[14, 8], &values);
    for eps in [1e-10, 1e-30, 1e-60] {
        let mut kernel = dmatrix![1.0; eps; eps; 2.0 * eps];
        let mut impulse = DMatrix::from_element(15 * 9, 1, eps);
        // Above the data, in the middle of a row.
        impulse[3] = 1.0;
        normalise_columns(&mut kernel);
        normalise_columns(&mut impulse);
        let g = Geometry::new(&[14, 8], &[2, 2], &[Support::Full]).unwrap();
        let model = Shifted::new(1, vec![2, 2]).support(Support::Full);
        let on = model.bind(&data).unwrap();
        let mut at = Init::default().parameters(&*on, &mut rng(0)).unwrap();
        at.change(|j, block| match j {
            0 => block.fill(1.0),
            1 => block.copy_from(&kernel),
            _ => block.copy_from(&impulse),
        });
        let cells = convolution(&g, &at);
        let what = format!("{eps}");
        says::<f64, ShiftedState<f64>>(&*on, &at, (&values, &cells), |_| true, &what).unwrap();
    }
}

/// The gap of new data, copies of which are observed in part: `max (g - 1)`, from the arrays.
// [SPEC 1.5]
#[test]
fn gaps_of_copies_that_are_hardly_seen() {
    let g = Geometry::new(&[6], &[3], &[Support::Full]).unwrap();
    let kernel = dmatrix![1e-25; 0.75; 0.25 - 1e-25];
    let even = DMatrix::from_element(8, 1, 0.125);
    let learnt = ShiftedState::new(
        g.clone(),
        Likelihood::Conditional,
        DVector::from_element(1, 1.0),
        kernel.clone(),
        even,
    );
    let learnt = learnt.unwrap();
    let values = [3.0, 0.5, 4.0, 1.0, 5.0, 2.0];
    let hidden = |i: usize| i == 2;
    let storages: Storages<f64> = complete(&[6], &values)
        .into_iter()
        .chain(masked(&[6], &values, hidden))
        .collect();
    for (storage, data) in storages {
        let observed = |i: usize| data.is_complete() || !hidden(i);
        let stop = Stop::default().max_iter(5).tol(None);
        let how = Transform::default().solver(Solver::Em).stop(stop);
        let found = learnt.transform(&*data, &how).unwrap();
        let at = found.fit.state().parameters();
        let p = convolution(&g, at);
        let seen: f64 = (0..6).filter(|&x| observed(x)).map(|x| p[x]).sum();
        let worst = (0..8).filter_map(|h: usize| {
            let copy = (0..3).filter_map(|t| {
                let x = (h + t).checked_sub(2)?;
                (x < 6 && observed(x)).then_some((x, kernel[t]))
            });
            let copy: Vec<_> = copy.collect();
            let share: f64 = copy.iter().map(|c| c.1).sum();
            let sum: f64 = copy.iter().map(|&(x, k)| k * values[x] / p[x]).sum();
            (share > 0.0).then_some(sum / share * seen / data.total() - 1.0)
        });
        let worst = worst.fold(0.0, f64::max);
        let gap = found.gap[0];
        assert!(
            (gap - worst).abs() <= 1e-9 * (1.0 + worst),
            "{storage}: {gap} instead of {worst}"
        );
    }
}

fn planes() -> impl Strategy<Value = Problem> {
    problems().prop_filter("two dimensions", |p| p.shape.len() == 2)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Objective, scale and reconstruction of parameters whose entries lie far apart, of every storage, arithmetic and support.
    // [SPEC 4] [SPEC 5.2]
    #[test]
    fn what_is_said_is_what_the_arrays_say(p in problems()) {
        for support in [Support::Full, Support::Same] {
            definition::<f64>(&p, support)?;
            definition::<f32>(&p, support)?;
        }
    }

    /// The likelihood never falls on the way of EM and of momentum from there.
    // [SPEC 5.2]
    #[test]
    fn the_likelihood_never_falls_from_far_away(p in problems()) {
        for support in [Support::Full, Support::Same] {
            rises(&p, support)?;
        }
    }

    /// The same of turned kernels, by maps and without.
    // [SPEC 5.7]
    #[test]
    fn what_is_said_of_turned_kernels(p in planes()) {
        transformed::<f64>(&p)?;
        transformed::<f32>(&p)?;
    }
}
