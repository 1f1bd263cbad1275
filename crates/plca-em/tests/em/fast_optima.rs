//! Where coordinate descent ends, beside EM: forty problems of every kind of data.

use plca_em::{Plca, PlcaState};
use plca_fit::{Factored, Init, Model, Solver, State, Stop};
use plca_tensor::{Coordinates, Data, DenseTensor, Order, SparseTensor, normalise_columns};
use rand_chacha::{ChaCha8Rng, rand_core::Rng, rand_core::SeedableRng};

use super::support::{after, residual};

const PROBLEMS: u64 = 40;
/// Problems that EM is run on to its end.
const ENDED: u64 = 50;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Dense,
    Sparse,
    Masked,
    Order3,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Dense, Self::Sparse, Self::Masked, Self::Order3];

    /// Counts of a random model plus noise that it does not explain; a fifth of the masked cells hidden.
    fn draw(self, seed: u64) -> Box<dyn Data<f64>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let shape = match self {
            Self::Order3 => vec![5, 4, 3],
            _ => vec![8, 6],
        };
        let cells = shape.iter().product();
        let ones = DenseTensor::new(shape.clone(), vec![1.0; cells], Order::RowMajor).unwrap();
        let plca = Plca::new(3);
        let truth = plca.init(&ones, Init::default(), &mut rng).unwrap();
        let draws = if matches!(self, Self::Sparse) {
            40
        } else {
            400
        };
        let Coordinates {
            indices, values, ..
        } = truth.with_model(|m| plca_em::sample_counts(m, draws, &mut rng).unwrap());
        if matches!(self, Self::Sparse) {
            let entries = Coordinates {
                shape,
                indices,
                values,
            };
            return Box::new(SparseTensor::new(entries).unwrap());
        }
        let mut dense = vec![0.0; cells];
        for (index, value) in indices.chunks(shape.len()).zip(values) {
            let at = index
                .iter()
                .zip(&shape)
                .fold(0, |at, (&i, &n)| at * n + i as usize);
            dense[at] += value;
        }
        let noise = |x: &mut f64| *x += f64::from(rng.next_u32() % 3);
        dense.iter_mut().for_each(noise);
        if matches!(self, Self::Masked) {
            (0..cells)
                .filter(|i| (i + seed as usize).is_multiple_of(5))
                .for_each(|i| dense[i] = f64::NAN);
            return Box::new(DenseTensor::masked(shape, dense, Order::RowMajor).unwrap());
        }
        Box::new(DenseTensor::new(shape, dense, Order::RowMajor).unwrap())
    }
}

/// A model of three components, all factors but the last frozen if `convex`; its data and a start.
fn problem(kind: Kind, seed: u64, convex: bool) -> (Plca, Box<dyn Data<f64>>, PlcaState<f64>) {
    let data = kind.draw(seed);
    let free = Plca::new(3);
    let mut rng = ChaCha8Rng::seed_from_u64(1000 + seed);
    let start = free.init(&*data, Init::default(), &mut rng).unwrap();
    let frozen = if convex { data.shape().len() - 1 } else { 0 };
    let plca = (0..frozen).fold(Plca::new(3), |plca, j| plca.freeze(format!("factor_{j}")));
    (plca, data, start)
}

/// Where there is one optimum, the end is never worse than EM's by more than 1e-9, and the same conditions hold at both.
// [SPEC 1.1] [SPEC 10.1]
#[test]
fn one_optimum_is_the_one_of_em() {
    for kind in Kind::ALL {
        let mut stationary = 0;
        for seed in 0..PROBLEMS {
            let (plca, data, start) = problem(kind, seed, true);
            let slow = after(&plca, &*data, &start, Solver::Em, 500).unwrap();
            let quick = after(&plca, &*data, &start, Solver::Fast, 300).unwrap();
            let scale = 1.0 + slow.objective().abs();
            assert!(
                quick.objective() >= slow.objective() - 1e-9 * scale,
                "{kind:?} {seed}: {} {}",
                quick.objective(),
                slow.objective()
            );
            let residual = residual(&plca, &*data, quick.state()).unwrap();
            // The columns of a component that is going out have no counts to agree with, for EM neither.
            let weights = quick.state().weights();
            let going = weights.iter().any(|&w| w < 1e-12);
            assert!(going || residual < 1e-6, "{kind:?} {seed}: {residual}");
            stationary += u64::from(!going);
        }
        assert!(stationary > PROBLEMS / 2, "{kind:?}: {stationary}");
    }
}

/// Where EM has converged, coordinate descent gains nothing, and loses nothing.
// [SPEC 10.1]
#[test]
fn optima_of_em_are_kept() {
    for kind in Kind::ALL {
        let mut converged = 0;
        for seed in 0..ENDED {
            let (plca, data, start) = problem(kind, seed, false);
            // Near an optimum first: EM alone takes tens of thousands of iterations.
            let near = after(&plca, &*data, &start, Solver::Fast, 400).unwrap();
            let end = after(&plca, &*data, near.state(), Solver::Em, 2000).unwrap();
            if residual(&plca, &*data, end.state()).unwrap() > 1e-10 {
                continue;
            }
            converged += 1;
            let stays = after(&plca, &*data, end.state(), Solver::Fast, 20).unwrap();
            let moved = (stays.objective() - end.objective()).abs();
            assert!(
                moved <= 1e-12 * (1.0 + end.objective().abs()),
                "{kind:?} {seed}: {moved}"
            );
        }
        assert!(converged > ENDED / 2, "{kind:?}: {converged}");
    }
}

/// What EM gains in nats a count, on average, where the entries of the ends of a solver are lifted by a ten-thousandth.
fn left_behind(solver: Solver) -> f64 {
    let gain = |seed: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let cells = (0..20 * 15).map(|_| f64::from((rng.next_u32() % 8).saturating_sub(5)));
        let data = DenseTensor::new(vec![20, 15], cells.collect(), Order::RowMajor).unwrap();
        let plca = Plca::new(3);
        let stop = Stop::default().tol(1e-10).max_iter(5000);
        let run = plca.on(&data).unwrap().solver(solver).stop(stop.clone());
        let end = run.run(Init::default(), &mut rng).unwrap();
        let lifted =
            end.state()
                .parameters()
                .blocks()
                .fold(Init::default(), |init, (name, block)| {
                    let mut block = block.add_scalar(1e-4 * block.amax());
                    normalise_columns(&mut block);
                    init.block(name, block)
                });
        let run = plca.on(&data).unwrap().solver(Solver::Em).stop(stop);
        let again = run.run(lifted, &mut rng).unwrap();
        (again.objective() - end.objective()).max(0.0) / data.total()
    };
    (0..PROBLEMS).map(gain).sum::<f64>() / PROBLEMS as f64
}

/// No solver leaves more entries near 0 that EM would raise than EM itself: what extrapolation brings there takes many steps to come back.
// [SPEC 10]
#[test]
fn extrapolation_leaves_nothing_behind() {
    let of_em = left_behind(Solver::Em);
    for solver in [Solver::Squarem, Solver::Parabolic, Solver::Momentum] {
        let left = left_behind(solver);
        assert!(
            left <= 2.0 * of_em + 1e-3,
            "{solver}: {left:e}, EM {of_em:e}"
        );
    }
}
