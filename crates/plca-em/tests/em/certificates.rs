//! Steps, residuals and gaps away from the optimum, against their formulas written out cell by cell.

#![allow(
    clippy::needless_range_loop,
    reason = "the formulas have these indices"
)]

use nalgebra::{DMatrix, DVector};
use plca_em::{
    Anneal, Given, IndexMaps, Nmf, NmfState, Plca, PlcaState, Plsa, PlsaState, Shifted,
    Transformed, Update,
};
use plca_fit::{FitError, Init, Model, Parameters, Solver, Status, Stop, Transform, seed as rng};
use plca_tensor::{Data, DenseTensor, Order};

use super::support::{exactly, residual, solvers};

const SHAPE: [usize; 2] = [4, 3];

fn values() -> Vec<f64> {
    vec![3., 1., 4., 1., 5., 9., 2., 6., 5., 3., 5., 8.]
}

/// Complete data, and the same with hidden cells.
fn both() -> [(Vec<f64>, Box<dyn Data<f64>>); 2] {
    let complete = DenseTensor::new(SHAPE.to_vec(), values(), Order::RowMajor).unwrap();
    let mut hidden = values();
    for at in [2, 3, 10] {
        hidden[at] = f64::NAN;
    }
    let masked = DenseTensor::masked(SHAPE.to_vec(), hidden.clone(), Order::RowMajor).unwrap();
    [(values(), Box::new(complete)), (hidden, Box::new(masked))]
}

fn random(rows: usize, columns: usize, seed: u64) -> DMatrix<f64> {
    let mut rng = rng(seed);
    let mut uniform = || 0.05 + plca_dist::random::uniform(&mut rng);
    DMatrix::from_fn(rows, columns, |_, _| uniform())
}

fn stochastic(rows: usize, columns: usize, seed: u64) -> DMatrix<f64> {
    let mut m = random(rows, columns, seed);
    plca_tensor::normalise_columns(&mut m);
    m
}

/// Counts of the terms `w_z f[i,z] h[j,z]` in completed data: a hidden cell holds its share of the model.
fn counts(v: &[f64], w: &[f64], f: &DMatrix<f64>, h: &DMatrix<f64>) -> [DMatrix<f64>; 2] {
    let joint = |i: usize, j: usize, z: usize| w[z] * f[(i, z)] * h[(j, z)];
    let cells = || (0..SHAPE[0]).flat_map(|i| (0..SHAPE[1]).map(move |j| (i, j)));
    let p = |i, j| (0..w.len()).map(|z| joint(i, j, z)).sum::<f64>();
    let value = |i: usize, j: usize| v[i * SHAPE[1] + j];
    let seen = || cells().filter(|&(i, j)| !value(i, j).is_nan());
    let mass: f64 = seen().map(|(i, j)| value(i, j)).sum();
    let scale = mass / seen().map(|(i, j)| p(i, j)).sum::<f64>();
    let mut counts = [
        DMatrix::zeros(SHAPE[0], w.len()),
        DMatrix::zeros(SHAPE[1], w.len()),
    ];
    for (i, j) in cells() {
        let ratio = match value(i, j) {
            v if v.is_nan() => scale,
            v => v / p(i, j),
        };
        for z in 0..w.len() {
            counts[0][(i, z)] += ratio * joint(i, j, z);
            counts[1][(j, z)] += ratio * joint(i, j, z);
        }
    }
    counts
}

fn column_sum(m: &DMatrix<f64>, z: usize) -> f64 {
    m.column(z).sum()
}

fn close(got: f64, want: f64, what: &str) {
    assert!(
        (got - want).abs() < 1e-13,
        "{what}: {got} instead of {want}"
    );
    // No vacuous case.
    assert!(want > 1e-6, "{what}: {want}");
}

/// `max |n / v - P(z)|`, `|C_j / (v P(z)) - F_j|`, or `|C_j / n - F_j|` where the weights are frozen.
// [SPEC 1.1]
#[test]
fn of_plca() {
    for (v, data) in both() {
        for seed in 0..4 {
            let weights = DVector::from_vec(stochastic(2, 1, seed).as_slice().to_vec());
            let factors = vec![stochastic(4, 2, 10 + seed), stochastic(3, 2, 20 + seed)];
            let state = PlcaState::new(weights, factors).unwrap();
            let w = state.weights();
            let c = counts(&v, w, state.factor(0), state.factor(1));
            let total = c[0].sum();
            for frozen in 0..7 {
                let free = |block: usize| frozen >> block & 1 == 0;
                let mut config = Plca::new(2);
                let mut worst: f64 = 0.0;
                if free(2) {
                    for (z, w) in w.iter().enumerate() {
                        worst = worst.max((column_sum(&c[0], z) / total - w).abs());
                    }
                } else {
                    config = config.freeze("weights");
                }
                for j in 0..2 {
                    if !free(j) {
                        config = config.freeze(format!("factor_{j}"));
                        continue;
                    }
                    for z in 0..2 {
                        let n = match free(2) {
                            true => total * w[z],
                            false => column_sum(&c[j], z),
                        };
                        let change = c[j].column(z) / n - state.factor(j).column(z);
                        worst = worst.max(change.amax());
                    }
                }
                let residual = residual(&config, &*data, &state).unwrap();
                close(residual, worst, &format!("frozen {frozen:b}"));
            }
        }
    }
}

/// `max |θ_new - θ|`.
// [SPEC 2]
#[test]
fn of_plsa() {
    let data = DenseTensor::new(SHAPE.to_vec(), values(), Order::RowMajor).unwrap();
    for seed in 0..4 {
        let (w, g) = (stochastic(4, 2, seed), stochastic(2, 3, 9 + seed));
        let q = DMatrix::from_row_slice(4, 3, &values()).component_div(&(&w * &g));
        let mut new_w = (&q * g.transpose()).component_mul(&w);
        plca_tensor::normalise_columns(&mut new_w);
        let mut new_g = (w.transpose() * &q).component_mul(&g);
        plca_tensor::normalise_columns(&mut new_g);
        let (of_w, of_g) = ((&new_w - &w).amax(), (&new_g - &g).amax());
        let given = Given::Columns;
        let state = PlsaState::new(given, w, g, vec![1.0 / 3.0; 3]).unwrap();
        let of = |config: Plsa| residual(&config, &data, &state).unwrap();
        let plain = || Plsa::new(2);
        close(of(plain()), of_w.max(of_g), "both");
        close(of(plain().freeze("basis")), of_g, "mixture");
        close(of(plain().freeze("mixture")), of_w, "basis");
    }
}

/// A step from hidden cells that are filled with what the model expects, tempered or not.
// [SPEC 1.1] [SPEC 1.4] [SPEC 4]
#[test]
fn steps_of_plca() {
    for (v, data) in both() {
        for (power, too) in [(1.0, false), (0.7, false), (0.7, true)] {
            let weights = DVector::from_vec(stochastic(2, 1, 1).as_slice().to_vec());
            let factors = vec![stochastic(4, 2, 2), stochastic(3, 2, 3)];
            let state = PlcaState::new(weights, factors).unwrap();
            let of_weight = |w: &f64| if too { w.powf(power) } else { *w };
            let w: Vec<f64> = state.weights().iter().map(of_weight).collect();
            let [f, h] = [0, 1].map(|j| state.factor(j).map(|x| x.powf(power)));
            let plca = Plca::new(2).temper(power).temper_prior(too);
            let run = plca.on(&*data).unwrap().solver(Solver::Em);
            let fit = run.stop(exactly(1)).run(&state, &mut rng(0)).unwrap();
            let [c0, c1] = counts(&v, &w, &f, &h);
            for (z, &weight) in fit.state().weights().iter().enumerate() {
                assert!((weight - column_sum(&c0, z) / c0.sum()).abs() < 1e-14);
            }
            for (j, mut c) in [c0, c1].into_iter().enumerate() {
                plca_tensor::normalise_columns(&mut c);
                assert!((fit.state().factor(j) - &c).amax() < 1e-14);
                assert!((state.factor(j) - c).amax() > 1e-2);
            }
        }
    }
}

/// Every given index has its own scale, in which its hidden cells are filled.
// [SPEC 2] [SPEC 1.4] [SPEC 4]
#[test]
fn steps_of_plsa() {
    for (v, data) in both() {
        for power in [1.0, 0.7] {
            let (basis, mixture) = (stochastic(4, 2, 2), stochastic(2, 3, 3));
            let (w, g) = (basis.map(|x| x.powf(power)), mixture.map(|x| x.powf(power)));
            let p = &w * &g;
            let (mut of_basis, mut of_mixture) = (w.map(|_| 0.0), g.map(|_| 0.0));
            for y in 0..3 {
                let value = |x: usize| v[x * 3 + y];
                let seen = || (0..4).filter(|&x| !value(x).is_nan());
                let mass: f64 = seen().map(value).sum();
                let scale = mass / seen().map(|x| p[(x, y)]).sum::<f64>();
                for (x, z) in (0..4).flat_map(|x| [(x, 0), (x, 1)]) {
                    let ratio = match value(x) {
                        v if v.is_nan() => scale,
                        v => v / p[(x, y)],
                    };
                    of_basis[(x, z)] += ratio * w[(x, z)] * g[(z, y)];
                    of_mixture[(z, y)] += ratio * w[(x, z)] * g[(z, y)];
                }
            }
            plca_tensor::normalise_columns(&mut of_basis);
            plca_tensor::normalise_columns(&mut of_mixture);
            let plsa = Plsa::new(2).temper(power);
            let run = plsa.on(&*data).unwrap().solver(Solver::Em);
            let start = Init::default().block("basis", basis.clone());
            let start = start.block("mixture", mixture);
            let fit = run.stop(exactly(1)).run(start, &mut rng(0)).unwrap();
            assert!((fit.state().basis() - &of_basis).amax() < 1e-14);
            assert!((fit.state().mixture() - of_mixture).amax() < 1e-14);
            assert!((basis - of_basis).amax() > 1e-2);
        }
    }
}

/// Both factors from one ratio: `H` by the sums of `W`, `W` by those of the new `H`; hidden cells are filled in the scale of the data.
// [SPEC 3] [SPEC 4]
#[test]
fn simultaneous_steps_of_nmf() {
    for (v, data) in both() {
        let (w, h) = (random(4, 2, 1), random(2, 3, 7));
        let [of_w, of_h] = counts(&v, &[1.0, 1.0], &w, &h.transpose());
        let new_h = DMatrix::from_fn(2, 3, |z, j| of_h[(j, z)] / w.column(z).sum());
        let new_w = DMatrix::from_fn(4, 2, |i, z| of_w[(i, z)] / new_h.row(z).sum());
        let nmf = Nmf::new(2).update(Update::Simultaneous);
        let run = nmf.on(&*data).unwrap().solver(Solver::Em).stop(exactly(1));
        let start = NmfState::new(w.clone(), h).unwrap();
        let fit = run.run(&start, &mut rng(0)).unwrap();
        assert!((fit.state().w() - &new_w).amax() < 1e-13);
        assert!((fit.state().h() - new_h).amax() < 1e-13);
        assert!((w - new_w).amax() > 1e-2);
    }
}

/// That of the image, whose weights are masses beside the mass of the data: `max |n / v - q|`, `|C / (v q) - F|`.
// [SPEC 1.1] [SPEC 3]
#[test]
fn of_nmf() {
    for (v, data) in both() {
        for (seed, scale) in [(0, 1.0), (1, 0.2), (2, 30.0)] {
            let (w, h) = (random(4, 2, seed) * scale, random(2, 3, 7 + seed));
            let (f, g) = {
                let (mut f, mut g) = (w.clone(), h.transpose());
                plca_tensor::normalise_columns(&mut f);
                plca_tensor::normalise_columns(&mut g);
                (f, g)
            };
            let mass = [0, 1].map(|z| w.column(z).sum() * h.row(z).sum());
            let c = counts(&v, &mass, &f, &g);
            let total = c[0].sum();
            let state = NmfState::new(w, h).unwrap();
            for frozen in 0..3 {
                let blocks = [(&c[0], &f, 1), (&c[1], &g, 2)];
                let mut worst: f64 = 0.0;
                for (c, f, _) in blocks.iter().filter(|b| b.2 != frozen) {
                    for z in 0..2 {
                        let q = mass[z] / total;
                        worst = worst.max((column_sum(c, z) / total - q).abs());
                        worst = worst.max((c.column(z) / (total * q) - f.column(z)).amax());
                    }
                }
                let config = match frozen {
                    0 => Nmf::new(2),
                    1 => Nmf::new(2).freeze("w"),
                    _ => Nmf::new(2).freeze("h"),
                };
                let of = |state: &NmfState<f64>| residual(&config, &*data, state).unwrap();
                let residual = of(&state);
                assert!(
                    (residual - worst).abs() < 1e-12 * (1.0 + worst),
                    "{residual}, {worst}"
                );
                assert!(worst > 1e-3);
                // However the scale is shared.
                let shared = NmfState::new(state.w() * 8.0, state.h() / 8.0);
                assert_eq!(of(&shared.unwrap()), residual);
            }
        }
    }
}

/// Where a run of NMF ends by its residual the conditions hold: `W ∘ (Q Hᵀ) = W diag(H 1)`, `H ∘ (Wᵀ Q) = diag(1ᵀ W) H`.
// [SPEC 3]
#[test]
fn nmf_ends_where_its_conditions_hold() {
    let data = DenseTensor::new(SHAPE.to_vec(), values(), Order::RowMajor).unwrap();
    let v = DMatrix::from_row_slice(4, 3, &values());
    for update in [Update::Simultaneous, Update::Sequential] {
        let nmf = Nmf::new(2).update(update);
        let run = nmf.on(&data).unwrap().solver(Solver::Em);
        let run = run.stop(exactly(100_000).residual_tol(1e-9));
        let fit = run.run(Init::default(), &mut rng(3)).unwrap();
        assert_eq!(fit.status(), &Status::Stationary, "{update:?}");
        let (w, h) = (fit.state().w(), fit.state().h());
        let q = v.component_div(&(w * h));
        let of_w =
            (&q * h.transpose()).component_mul(w) - w * DMatrix::from_diagonal(&h.column_sum());
        let of_h = (w.transpose() * &q).component_mul(h)
            - DMatrix::from_diagonal(&w.row_sum().transpose()) * h;
        assert!(of_w.amax() < 1e-6 && of_h.amax() < 1e-6, "{update:?}");
    }
}

/// `θ g = C / (v P(z))` is what a step makes of a block, times what it makes of the weight beside what that was.
fn of_blocks<M: Model<f64>>(model: &M, data: &dyn Data<f64>, seed: u64, frozen: bool) {
    let em = model.bind(data).unwrap();
    let blocks = em.blocks().iter().zip([seed, 10 + seed, 20 + seed]);
    let blocks = blocks.map(|(spec, seed)| stochastic(spec.shape.0, spec.shape.1, seed));
    let at = Parameters::new(em.blocks(), blocks.collect()).unwrap();
    let mut next = at.clone();
    em.step(&mut next, false).unwrap();
    let mut worst: f64 = 0.0;
    for z in 0..2 {
        let share = next.at(0)[z] / at.at(0)[z];
        worst = worst.max((next.at(0)[z] - at.at(0)[z]).abs());
        for block in 1..3 {
            let (new, old) = (next.at(block).column(z), at.at(block).column(z));
            worst = worst.max((new * share - old).amax());
        }
    }
    assert_eq!(frozen, next.at(0) == at.at(0));
    close(em.residual(&at).unwrap(), worst, "shifted");
}

// [SPEC 1.1] [SPEC 5.1]
#[test]
fn of_shifted_and_transformed() {
    for (_, data) in both() {
        for seed in 0..4 {
            let config = Shifted::new(2, vec![2, 2]);
            of_blocks(&config, &*data, seed, false);
            let config = config.freeze("weights");
            of_blocks(&config, &*data, seed, true);
            let corners = [0, 1, 3, 4, 6, 7];
            let table: Vec<i64> = corners
                .iter()
                .flat_map(|c| [*c, c + 1, c + 3, if *c == 0 { -1 } else { c + 4 }])
                .collect();
            let maps = IndexMaps::new(12, 4, &table).unwrap();
            let config = Transformed::new(2, maps);
            of_blocks(&config, &*data, seed, false);
        }
    }
}

/// No state is stationary while a power moves; where it stays there is no measure.
#[test]
fn while_a_power_moves() {
    let (_, data) = &both()[0];
    let ended = |anneal| {
        let config = Shifted::new(2, vec![2, 2]).anneal(anneal);
        let run = config.on(&**data).unwrap().solver(Solver::Em);
        let stop = Stop::default().tol(None).check_every(1).residual_tol(1e9);
        run.stop(stop).run(Init::default(), &mut rng(1))
    };
    let fit = ended(Anneal {
        alpha0: 0.5,
        over: 6.0,
    });
    let fit = fit.unwrap();
    assert_eq!((fit.iterations(), fit.status()), (6, &Status::Stationary));
    let refused = ended(Anneal::constant(0.5)).unwrap_err();
    assert!(matches!(refused, FitError::NoResidual { .. }), "{refused}");
}

/// A prior takes the residual away: to stop by it is refused, and nothing else is done.
#[test]
fn with_a_prior() {
    let (_, data) = &both()[0];
    let prior = std::sync::Arc::new(plca_priors::Dirichlet::symmetric(2.0).unwrap());
    fn refused<M: Model<f64>>(model: &M, data: &dyn Data<f64>, block: &str) {
        let em = model.bind(data).unwrap();
        for solver in solvers(&*em) {
            let run = model.on(data).unwrap().solver(solver);
            let run = run.stop(Stop::default().residual_tol(1e-3));
            let refused = run.run(Init::default(), &mut rng(0)).unwrap_err();
            let no = matches!(refused, FitError::NoResidual { .. });
            assert!(no && refused.to_string().contains(block), "{refused}");
        }
    }
    let plca = Plca::new(2).prior("factor_0", prior.clone());
    refused(&plca, &**data, "`factor_0`");
    let plsa = Plsa::new(2).prior("mixture", prior.clone());
    refused(&plsa, &**data, "`mixture`");
    let shifted = Shifted::new(2, vec![2, 2]).prior("kernels", prior);
    refused(&shifted, &**data, "`kernels`");
}

/// `max_z g_z - 1` in units in which the model has the mass of the observation: `g_z = Σ V/P f_z / Σ_obs f_z`.
fn gap(v: &[f64], terms: &[Vec<f64>], free: &[f64]) -> f64 {
    let seen = || (0..v.len()).filter(|&x| !v[x].is_nan());
    let p = |x: usize| (0..free.len()).map(|z| free[z] * terms[z][x]).sum::<f64>();
    let mass: f64 = seen().map(p).sum();
    let total: f64 = seen().map(|x| v[x]).sum();
    let g = |term: &Vec<f64>| {
        let gradient: f64 = seen().map(|x| v[x] / p(x) * term[x]).sum();
        gradient / seen().map(|x| term[x]).sum::<f64>()
    };
    terms.iter().map(g).fold(0.0, f64::max) * mass / total - 1.0
}

/// Gaps after few iterations, far from 0.
// [SPEC 1.5]
#[test]
fn of_fold_ins() {
    let how = |n| {
        let how = Transform::default().solver(Solver::Em).along(1);
        how.stop(exactly(n))
    };
    let learned = stochastic(4, 2, 5);
    for (v, data) in both() {
        for n in [1, 3] {
            let column = |y: usize| (0..4).map(|x| v[x * 3 + y]).collect::<Vec<f64>>();
            let terms: Vec<Vec<f64>> = (0..2)
                .map(|z| learned.column(z).iter().copied().collect())
                .collect();
            let mixture = DMatrix::from_element(2, 3, 0.5);
            let plsa = PlsaState::new(Given::Columns, learned.clone(), mixture, vec![1.0 / 3.0; 3]);
            let found = plsa.unwrap().transform(&*data, &how(n)).unwrap();
            let mixture = found.fit.state().mixture();
            for (y, &got) in found.gap.iter().enumerate() {
                let free: Vec<f64> = mixture.column(y).iter().copied().collect();
                close(got, gap(&column(y), &terms, &free), "plsa");
            }
            let nmf = NmfState::new(&learned * 3.0, DMatrix::zeros(2, 3)).unwrap();
            let found = nmf.transform(&*data, &how(n)).unwrap();
            let h = found.fit.state().h();
            for (y, &got) in found.gap.iter().enumerate() {
                let free: Vec<f64> = h.column(y).iter().copied().collect();
                close(got, gap(&column(y), &terms, &free), "nmf");
            }
            let factors = vec![learned.clone(), stochastic(3, 2, 6)];
            let plca = PlcaState::new(DVector::from_element(2, 0.5), factors).unwrap();
            let found = plca.transform(&*data, &how(n)).unwrap();
            let state = found.fit.state();
            let pairs = || (0..2).flat_map(|z| (0..3).map(move |y| (z, y)));
            let term = |(z, y): (usize, usize)| {
                let cell = |at: usize| {
                    if at % 3 == y {
                        learned[(at / 3, z)]
                    } else {
                        0.0
                    }
                };
                (0..12).map(cell).collect::<Vec<f64>>()
            };
            let all: Vec<Vec<f64>> = pairs().map(term).collect();
            let free: Vec<f64> = pairs()
                .map(|(z, y)| state.weights()[z] * state.factor(1)[(y, z)])
                .collect();
            close(found.gap[0], gap(&v, &all, &free), "plca");
        }
    }
}
