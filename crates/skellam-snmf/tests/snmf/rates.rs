//! What happens by chance, as often as claimed: the fit finds planted parts, and intervals of the posterior cover the truth.

use nalgebra::DMatrix;
use plca_dist::{Skellam, random};
use plca_fit::laws::{Law, Violation, check_rate};
use plca_fit::{Init, Model, Solver, Stop};
use rand::distr::Distribution;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use skellam_snmf::{Entries, Posterior, Prior, Replicates, Snmf, SnmfState, SnmfVb};
use statrs::distribution::{Beta, ContinuousCDF, Gamma};

use crate::support::tensor;

/// Counts with the expectation of these factors.
fn draw(truth: &SnmfState<f64>, rng: &mut ChaCha8Rng) -> DMatrix<f64> {
    let [plus, minus] = [truth.plus(), truth.minus()].map(|side| side * truth.activations());
    plus.zip_map(&minus, |p, m| {
        Skellam::new(p, m).unwrap().sample(rng) as f64
    })
}

/// Both sides of an atom sum to 1.
fn normalised(mut plus: DMatrix<f64>, mut minus: DMatrix<f64>) -> [DMatrix<f64>; 2] {
    for (mut p, mut m) in plus.column_iter_mut().zip(minus.column_iter_mut()) {
        let sum = p.sum() + m.sum();
        p /= sum;
        m /= sum;
    }
    [plus, minus]
}

fn stop(max_iter: usize) -> Stop {
    Stop::default().max_iter(max_iter).tol(None)
}

/// Two atoms of 8 rows, each entry of a random sign, and 30 columns; every third column is of the one alone, every third of the other.
fn planted(rng: &mut ChaCha8Rng) -> SnmfState<f64> {
    let signs = DMatrix::from_fn(8, 2, |_, _| random::uniform(rng) < 0.5);
    let sizes = DMatrix::from_fn(8, 2, |_, _| random::exponential(rng));
    let side = |sign| sizes.zip_map(&signs, |x, s| if s == sign { x } else { 0.0 });
    let [plus, minus] = normalised(side(true), side(false));
    let activations = DMatrix::from_fn(2, 30, |z, n| {
        let size = 1000.0 * random::exponential(rng);
        if n % 3 == z { 0.0 } else { size }
    });
    SnmfState::new(&plus, &minus, activations).unwrap()
}

/// Whether the better of 2 fits of 500 accelerated iterations has the planted atoms, in either order, each of unit length to within 0.2.
fn found(seed: u64, read: impl Fn(f64) -> f64) -> bool {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let truth = planted(&mut rng);
    let data = tensor(&draw(&truth, &mut rng).map(read));
    let config = Snmf::new(2).replicates(Replicates::One);
    let fits = (0..2).map(|start| {
        let mut rng = ChaCha8Rng::seed_from_u64(1000 * start + seed);
        let run = config.on(&data).unwrap().solver(Solver::Squarem);
        let run = run.stop(stop(500));
        run.run(Init::default(), &mut rng).unwrap()
    });
    let best = fits.max_by(|a, b| a.objective().total_cmp(&b.objective()));
    let [want, got] = [truth, best.unwrap().into_state()].map(|state| {
        let mut atoms = state.signed_atoms();
        let norms = atoms.column_iter_mut();
        norms.for_each(|mut atom| atom /= atom.norm());
        atoms
    });
    [[0, 1], [1, 0]].iter().any(|order| {
        let got = got.select_columns(order);
        let pairs = want.column_iter().zip(got.column_iter());
        pairs.into_iter().all(|(w, g)| (g - w).norm() <= 0.2)
    })
}

/// Of 400 other seeds 363 found them: the others end in a local maximum.
// [SKELLAM 5]
#[test]
fn planted_atoms_are_found() {
    check_rate(0.9, 100, |seed| found(seed, |v| v)).unwrap();
}

/// A reader that loses the sign is caught.
#[test]
fn lost_signs_are_caught() {
    let violation = check_rate(0.9, 20, |seed| found(seed, f64::abs)).unwrap_err();
    assert_eq!(violation.law, Law::Rate, "{violation}");
}

/// Nominal level of the intervals: from the 5 % to the 95 % quantile.
const LEVEL: f64 = 0.9;

/// Seeds that are tried.
const TRIALS: u64 = 400;

/// A gamma variate of a whole shape.
fn gamma(shape: usize, rate: f64, rng: &mut ChaCha8Rng) -> f64 {
    (0..shape).map(|_| random::exponential(rng)).sum::<f64>() / rate
}

/// Shape of an entry that is surely 0.
const NONE: f64 = 1e-9;

/// Two rows for each of two atoms, a positive and a negative one. So every count is known to be of one atom and one side, the
/// posterior has independent blocks, and variational Bayes is exact. Of one atom with both sides in each row it is not.
fn prior(known: bool) -> Prior {
    let side = |sign: usize| {
        if !known {
            return DMatrix::from_element(4, 1, 2.0);
        }
        DMatrix::from_fn(4, 2, |f, z| if f == 2 * z + sign { 2.0 } else { NONE })
    };
    Prior {
        plus: Entries::Each(side(0)),
        minus: Entries::Each(side(1)),
        shape: Entries::All(2.0),
        rate: Entries::All(0.2),
    }
}

/// Factors drawn from the prior, and the posterior of data drawn from them.
fn trial(known: bool, seed: u64) -> (SnmfState<f64>, Posterior<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let prior = prior(known);
    let [plus, minus] = [&prior.plus, &prior.minus].map(|side| {
        let Entries::Each(shapes) = side else {
            panic!("one shape for each entry")
        };
        shapes.map(|shape| gamma(shape as usize, 1.0, &mut rng))
    });
    let [plus, minus] = normalised(plus, minus);
    let k = plus.ncols();
    let activations = DMatrix::from_fn(k, 3, |_, _| gamma(2, 0.2, &mut rng));
    let truth = SnmfState::new(&plus, &minus, activations).unwrap();
    let data = tensor(&draw(&truth, &mut rng));
    let vb = SnmfVb::new(k).replicates(Replicates::One).priors(prior);
    let start = vb.at_prior(&data, 0.0, &mut rng).unwrap();
    let run = vb.on(&data).unwrap().solver(Solver::Em).stop(stop(200));
    let fit = run.run(&start, &mut rng).unwrap();
    (truth, fit.state().posterior())
}

/// Of all trials: whether the interval of the first activation holds the truth, and that of the first entry of the first atom.
fn covered(known: bool, change: impl Fn(&mut Posterior<f64>)) -> [Vec<bool>; 2] {
    let inside = |p: f64| (p - 0.5).abs() <= LEVEL / 2.0;
    let each = (0..TRIALS).map(|seed| {
        let (truth, mut q) = trial(known, seed);
        change(&mut q);
        let activation = Gamma::new(q.shape[0], q.rate[0]).unwrap();
        let others = q.plus.column(0).sum() + q.minus.column(0).sum() - q.plus[0];
        let entry = Beta::new(q.plus[0], others).unwrap();
        (
            inside(activation.cdf(truth.activations()[0])),
            inside(entry.cdf(truth.plus()[0])),
        )
    });
    let (activations, entries) = each.unzip();
    [activations, entries]
}

/// Intervals cover as often as their level says: no less often, and miss no less often.
fn calibrated(covered: &[bool]) -> Result<(), Violation> {
    let covers = |seed: u64| covered[seed as usize];
    check_rate(LEVEL, TRIALS, covers)?;
    check_rate(1.0 - LEVEL, TRIALS, |seed| !covers(seed))
}

// [SKELLAM 6]
#[test]
fn intervals_cover_where_the_sides_are_known() {
    for covered in covered(true, |_| ()) {
        calibrated(&covered).unwrap();
    }
}

/// Posteriors of half and of twice the width are caught.
#[test]
fn wrong_widths_are_caught() {
    for factor in [4.0, 0.25] {
        let change = |q: &mut Posterior<f64>| {
            let blocks = [&mut q.plus, &mut q.minus, &mut q.shape, &mut q.rate];
            blocks.into_iter().for_each(|block| *block *= factor);
        };
        for covered in covered(true, change) {
            let violation = calibrated(&covered).unwrap_err();
            assert_eq!(violation.law, Law::Rate, "{violation}");
        }
    }
}

/// Where both sides of one atom compete in every row, the intervals of activations are too narrow: the factorised posterior takes the
/// sides' counts for independent of the activation.
#[test]
fn intervals_are_too_narrow_where_the_sides_compete() {
    let [activations, _] = covered(false, |_| ());
    let violation = calibrated(&activations).unwrap_err();
    assert_eq!(violation.law, Law::Rate, "{violation}");
}
