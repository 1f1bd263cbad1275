//! Hyperparameters of tensors and of shifted atoms, new data of tensors, and annealed atoms.

use nalgebra::DMatrix;
use plca_em::{Shifted, ShiftedState};
use plca_fit::laws::check_threads;
use plca_fit::{
    Anneal, FitError, Init, Model, Reconstruct, Settings, Solver, State, Stop, Transform,
    seed as rng,
};
use plca_priors::PriorSpec;
use plca_tensor::{Data, DenseTensor, Order};
use proptest::prelude::*;
use skellam_snmf::{
    Entries, Groups, Hyperparameters, Learner, Posterior, Prior, Rate, Reach, Replicates, Sharing,
    ShiftedSnmf, ShiftedSnmfVb, SignedCpVb, SignedCpVbState, SnmfVb, Statistics,
};

use crate::support::{At, stacked};

fn tensor(shape: &[usize], values: &[f64]) -> DenseTensor<f64> {
    DenseTensor::masked(shape.to_vec(), values.to_vec(), Order::RowMajor).unwrap()
}

/// Whole numbers of either sign, one of which is hidden.
fn values(cells: usize, seed: usize) -> Vec<f64> {
    let mut values: Vec<f64> = (0..cells)
        .map(|i| ((i * i * (5 + seed) + i + 3 * seed) % 11) as f64 - 5.0)
        .collect();
    values[cells / 3] = f64::NAN;
    values
}

/// The largest difference, relative to each entry.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let parts = a.iter().zip(b).map(|(a, b)| (a - b).abs() / a.abs());
    parts.fold(0.0, f64::max)
}

fn hyper(groups: usize) -> Hyperparameters {
    Hyperparameters {
        alpha: vec![0.7; groups],
        shape: vec![1.3; groups],
        rate: vec![0.2; groups],
    }
}

/// Maps of entries to so many groups, drawn at random.
fn maps(rows: usize, columns: usize, k: usize, groups: usize, seed: u64) -> Sharing {
    let mut seed = seed;
    let mut map = |rows, columns| {
        let group = |_, _| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % groups
        };
        Groups::Each(DMatrix::from_fn(rows, columns, group))
    };
    Sharing {
        rows,
        components: k,
        plus: map(rows, k),
        minus: map(rows, k),
        shape: map(k, columns),
        rate: map(k, columns),
    }
}

/// So many iterations of learning: none raises the divergence. Returns by how much they lower it.
fn learn(q: &Posterior<f64>, sharing: &Sharing, hyper: &mut Hyperparameters) -> f64 {
    let statistics = Statistics::of(q, sharing).unwrap();
    let divergence = |h: &Hyperparameters| q.divergence(&h.prior(sharing).unwrap()).unwrap();
    let first = divergence(hyper);
    let mut before = first;
    for _ in 0..20 {
        hyper.improve(sharing, &statistics).unwrap();
        let after = divergence(hyper);
        assert!(
            after <= before + 1e-12 * (1.0 + first.abs()),
            "{before} {after}"
        );
        before = after;
    }
    first - before
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// With the posterior held fixed, learning raises the bound of a tensor by as much as the divergences fall, of every factor. [EXT 6] [SKELLAM 8]
    #[test]
    fn learning_raises_the_bound_of_tensors(
        (mode, scaled, one) in (0usize..3, any::<bool>(), any::<bool>()),
        (groups, seed) in (1usize..4, any::<u64>()),
    ) {
        let (shape, k) = ([3, 2, 4], 2);
        let data = tensor(&shape, &values(24, 0));
        let scale = scaled.then_some(if mode == 0 { 2 } else { 0 });
        let columns = scale.map_or(1, |j| shape[j]);
        let replicates = if one { Replicates::One } else { Replicates::Limit };
        let main = maps(shape[mode], columns, k, groups, seed);
        let factors = (0..3).filter(|&j| j != mode && Some(j) != scale);
        let factors = factors.map(|j| (j, Sharing { plus: main.plus.clone(), ..Sharing::factor(shape[j], k) }));
        // Maps are of one size: of factors a group for each row and component.
        let each = |n: usize| Groups::Each(DMatrix::from_fn(n, k, |i, z| (i + z) % groups));
        let mut factors: Vec<_> = factors
            .map(|(j, sharing)| (j, Sharing { plus: each(shape[j]), ..sharing }, hyper(groups)))
            .collect();
        let mut learnt = hyper(groups);
        let model = |learnt: &Hyperparameters, factors: &[(usize, Sharing, Hyperparameters)]| {
            let cp = SignedCpVb::new(k).signed_mode(mode).scale_mode(scale).replicates(replicates);
            let cp = cp.priors(learnt.prior(&main).unwrap());
            factors.iter().fold(cp, |cp, (j, sharing, hyper)| {
                cp.prior(format!("factor_{j}"), hyper.prior(sharing).unwrap().plus)
            })
        };
        let config = model(&learnt, &factors);
        let start = config.init(&data, Init::default(), &mut rng(seed)).unwrap();
        let mut at = At::start(&config, &data, &start);
        (0..5).for_each(|_| at.step());
        let state = at.state();
        let mut gain = learn(&state.posterior(), &main, &mut learnt);
        for (j, sharing, hyper) in &mut factors {
            gain += learn(&state.factor_posterior(*j).unwrap(), sharing, hyper);
        }
        prop_assert!(gain > 0.0);
        let after = model(&learnt, &factors).bind(&data).unwrap().objective(state.parameters()).unwrap();
        let raised = after - at.objective();
        prop_assert!((raised - gain).abs() < 1e-10 * (1.0 + after.abs()), "{raised} {gain}");
    }

    /// The same of shifted atoms, in every support. [EXT 5] [SKELLAM 8]
    #[test]
    fn learning_raises_the_bound_of_shifted_atoms(
        (reach, one) in (0usize..3, any::<bool>()),
        (groups, seed) in (1usize..4, any::<u64>()),
    ) {
        let reach = [Reach::Valid, Reach::Same, Reach::Full][reach];
        let replicates = if one { Replicates::One } else { Replicates::Limit };
        let data = tensor(&[4, 5], &values(20, 1));
        let shifted = || ShiftedSnmfVb::new(2, vec![2, 2]).reach(vec![reach]).replicates(replicates);
        let places = shifted().places(&[4, 5]).unwrap();
        let sharing = maps(4, places.iter().product(), 2, groups, seed);
        let mut learnt = hyper(groups);
        let model = |learnt: &Hyperparameters| shifted().priors(learnt.prior(&sharing).unwrap());
        let config = model(&learnt);
        let start = config.init(&data, Init::default(), &mut rng(seed)).unwrap();
        let mut at = At::start(&config, &data, &start);
        (0..5).for_each(|_| at.step());
        let state = at.state();
        let gain = learn(&state.posterior(), &sharing, &mut learnt);
        prop_assert!(gain > 0.0);
        let after = model(&learnt).bind(&data).unwrap().objective(state.parameters()).unwrap();
        let raised = after - at.objective();
        prop_assert!((raised - gain).abs() < 1e-10 * (1.0 + after.abs()), "{raised} {gain}");
    }
}

/// What three data sets teach, ten iterations each, is the same of a matrix, of a tensor of two modes whose second has the scale, and of atoms that are not
/// shifted. [EXT 5] [EXT 6]
#[test]
fn matrices_teach_the_same_in_every_form() {
    let (f, n, k) = (4, 6, 2);
    let start = || Hyperparameters {
        alpha: (0..2 * f * k).map(|i| 0.5 + 0.1 * i as f64).collect(),
        shape: vec![0.7, 2.0],
        rate: vec![0.3, 0.1],
    };
    for sharing in [Sharing::by_component(f, k), maps(f, n, k, 2, 9)] {
        let rate = Rate::AtLeast(0.5);
        let mut learners = [0; 3].map(|_| Learner::new(sharing.clone(), start(), rate).unwrap());
        for round in 0..3 {
            let data = tensor(&[f, n], &values(f * n, round));
            let [of_matrix, of_tensor, of_shifted] =
                learners.each_ref().map(|l| l.prior().unwrap());
            let matrix = SnmfVb::new(k).priors(of_matrix);
            let cp = SignedCpVb::new(k).priors(of_tensor);
            let cp = cp.scale_mode(Some(1));
            let shifted = ShiftedSnmfVb::new(k, vec![f, 1]).priors(of_shifted);
            let begin = matrix.init(&data, Init::default(), &mut rng(round as u64));
            let q = begin.unwrap().posterior();
            let both = |init: Init<f64>, block: &str| {
                init.block(format!("{block}_shape"), q.shape.transpose())
                    .block(format!("{block}_rate"), q.rate.transpose())
            };
            let interleaved =
                DMatrix::from_fn(2 * f, k, |i, z| [&q.plus, &q.minus][i % 2][(i / 2, z)]);
            let atoms = |block| Init::default().block("atoms_shape", block);
            let stacked = atoms(stacked(&q.plus, &q.minus));
            let inits = [
                both(stacked, "factor_1"),
                both(atoms(interleaved), "activations"),
            ];
            let [of_tensor, of_shifted] = inits;
            let activations = Init::default()
                .block("atoms_shape", crate::support::stacked(&q.plus, &q.minus))
                .block("activations_shape", q.shape.clone())
                .block("activations_rate", q.rate.clone());
            let mut at = At::start(&matrix, &data, activations);
            let mut of_tensor = At::start(&cp, &data, of_tensor);
            let mut of_shifted = At::start(&shifted, &data, of_shifted);
            for _ in 0..10 {
                at.step();
                of_tensor.step();
                of_shifted.step();
            }
            let posteriors = [
                at.state().posterior(),
                of_tensor.state().posterior(),
                of_shifted.state().posterior(),
            ];
            assert!(of_tensor.state().factor_posterior(1).is_none());
            for (learner, q) in learners.iter_mut().zip(&posteriors) {
                learner.learn(q).unwrap();
            }
        }
        let [want, others @ ..] = learners.each_ref().map(Learner::hyperparameters);
        assert!(apart(&want.alpha, &start().alpha) > 0.1);
        for got in others {
            for (got, want) in [
                (&got.alpha, &want.alpha),
                (&got.shape, &want.shape),
                (&got.rate, &want.rate),
            ] {
                assert!(apart(want, got) < 1e-9, "{got:?} {want:?}");
            }
        }
    }
}

/// Factors of one side: shapes that all entries share are found again from columns that were drawn with them, and other data are refused.
#[test]
fn shapes_of_factors_are_found_again() {
    let (n, k, shape) = (40, 50, 2.0);
    let mut rng = rng(3);
    // Of shape 2 are sums of two exponential numbers.
    let mut known = DMatrix::from_fn(n, k, |_, _| {
        let mut draw = || plca_dist::random::exponential(&mut rng);
        draw() + draw()
    });
    plca_tensor::normalise_columns(&mut known);
    let nothing = |alpha| Hyperparameters {
        alpha,
        shape: Vec::new(),
        rate: Vec::new(),
    };
    let factors = skellam_snmf::Factors {
        plus: known,
        minus: DMatrix::zeros(0, k),
        activations: DMatrix::zeros(k, 0),
    };
    for plus in [Groups::All, Groups::PerComponent] {
        let alpha = vec![1.0; if plus == Groups::All { 1 } else { k }];
        let sharing = Sharing {
            plus,
            ..Sharing::factor(n, k)
        };
        let mut learner = Learner::new(sharing, nothing(alpha), Rate::Average).unwrap();
        learner.learn_known(&factors).unwrap();
        let alpha = &learner.hyperparameters().alpha;
        let mean = alpha.iter().sum::<f64>() / alpha.len() as f64;
        assert!((mean - shape).abs() < 0.15, "{alpha:?}");
        let prior = learner.prior().unwrap();
        assert_eq!(
            (prior.minus, prior.shape, prior.rate),
            (Entries::All(1.0), Entries::All(1.0), Entries::All(0.0))
        );
    }
    let mut learner =
        Learner::new(Sharing::factor(n, k), nothing(vec![1.0]), Rate::Average).unwrap();
    let untouched = learner.clone();
    // A negative side, and activations, that a factor has not.
    let sided = skellam_snmf::Factors {
        minus: factors.plus.clone(),
        ..factors.clone()
    };
    let active = skellam_snmf::Factors {
        activations: DMatrix::from_element(k, 3, 1.0),
        ..factors.clone()
    };
    for refused in [&sided, &active] {
        let error = learner.learn_known(refused).unwrap_err();
        assert!(matches!(error, FitError::Shape { .. }), "{error}");
    }
    // One of shape and rate alone.
    let half = Sharing {
        shape: Groups::All,
        ..Sharing::factor(n, k)
    };
    let mut one = nothing(vec![1.0]);
    one.shape.push(1.0);
    let mut half = Learner::new(half, one, Rate::Average).unwrap();
    assert!(half.learn_known(&active).is_err());
    assert_eq!(learner, untouched);
}

/// Priors in the layout of posteriors are those in the layout of blocks, to the bit; a part that is set afterwards takes their place.
#[test]
fn priors_are_laid_out_as_posteriors() {
    let data = tensor(&[3, 2, 4], &values(24, 2));
    let (f, k, n) = (3, 2, 4);
    let each = |rows, columns, low: f64| {
        DMatrix::from_fn(rows, columns, |i, z| low + 0.1 * (3 * i + z) as f64)
    };
    let (plus, minus) = (each(f, k, 0.6), each(f, k, 1.4));
    let (shape, rate) = (each(k, n, 1.1), each(k, n, 0.2));
    let prior = |plus, minus| Prior {
        plus,
        minus,
        shape: Entries::Each(shape.clone()),
        rate: Entries::Each(rate.clone()),
    };
    let both = prior(Entries::Each(plus.clone()), Entries::Each(minus.clone()));
    let cp = || SignedCpVb::new(k).scale_mode(Some(2));
    let end = |cp: SignedCpVb| {
        let mut at = At::start(&cp, &data, Init::default());
        (0..3).for_each(|_| at.step());
        (at.objective(), at.state())
    };
    let block = |plus: &DMatrix<f64>, minus: &DMatrix<f64>| Entries::Each(stacked(plus, minus));
    let turned = |m: &DMatrix<f64>| Entries::Each(m.transpose());
    let by_blocks = |cp: SignedCpVb, atoms| {
        let cp = cp.prior("atoms", atoms);
        cp.prior("factor_2", PriorSpec::Gamma(turned(&shape), turned(&rate)))
    };
    let want = end(by_blocks(cp(), block(&plus, &minus)));
    assert_eq!(end(cp().priors(both.clone())), want);
    assert_ne!(end(cp()), want);
    // Sides of different kinds.
    let mixed = prior(Entries::All(0.7), Entries::PerComponent(vec![1.5, 2.0]));
    let as_block = DMatrix::from_fn(2 * f, k, |i, z| match i < f {
        true => 0.7,
        false => [1.5, 2.0][z],
    });
    let mixed = end(cp().priors(mixed));
    assert_eq!(mixed, end(by_blocks(cp(), Entries::Each(as_block))));
    // The last word counts.
    let later = by_blocks(
        cp().priors(Prior {
            rate: Entries::All(1.0),
            ..Prior::flat()
        }),
        block(&plus, &minus),
    );
    assert_eq!(end(later), want);
    let earlier = by_blocks(cp(), Entries::All(9.0)).priors(both.clone());
    assert_eq!(end(earlier), want);
    let improper = cp().priors(Prior::flat());
    assert!(matches!(
        improper.bind(&data).map(drop),
        Err(FitError::Range { .. })
    ));
    for wrong in [
        Prior {
            plus: Entries::Each(each(2, k, 1.0)),
            ..both.clone()
        },
        Prior {
            minus: Entries::PerComponent(vec![1.0]),
            ..both.clone()
        },
        Prior {
            shape: Entries::Each(each(k, 3, 1.0)),
            ..both.clone()
        },
    ] {
        let refused = cp().priors(wrong).bind(&data).map(drop);
        assert!(
            matches!(refused, Err(FitError::Shape { .. })),
            "{refused:?}"
        );
    }
    // Shifted atoms of three taps at four places.
    let line = tensor(&[6], &values(6, 2));
    let shifted = || ShiftedSnmfVb::new(k, vec![3]);
    let end = |shifted: ShiftedSnmfVb| {
        let mut at = At::start(&shifted, &line, Init::default());
        (0..3).for_each(|_| at.step());
        (at.objective(), at.state())
    };
    let interleaved = DMatrix::from_fn(2 * f, k, |i, z| [&plus, &minus][i % 2][(i / 2, z)]);
    let by_blocks = |shifted: ShiftedSnmfVb| {
        let shifted = shifted.prior("atoms", Entries::Each(interleaved.clone()));
        shifted.prior(
            "activations",
            PriorSpec::Gamma(turned(&shape), turned(&rate)),
        )
    };
    let want = end(by_blocks(shifted()));
    assert_eq!(end(shifted().priors(both.clone())), want);
    assert_ne!(end(shifted()), want);
    let vague = Prior {
        rate: Entries::All(1.0),
        ..Prior::flat()
    };
    assert_eq!(end(by_blocks(shifted().priors(vague.clone()))), want);
    assert_ne!(end(shifted().priors(vague)), want);
    let wrong = Prior {
        plus: Entries::Each(each(2, k, 1.0)),
        ..both
    };
    let refused = shifted().priors(wrong).bind(&line).map(drop);
    assert!(
        matches!(refused, Err(FitError::Shape { .. })),
        "{refused:?}"
    );
}

fn stop() -> Stop {
    Stop::default().tol(1e-15).max_iter(20_000)
}

fn fitted(model: &SignedCpVb, data: &dyn Data<f64>) -> SignedCpVbState<f64> {
    let run = model.on(data).unwrap().stop(stop()).solver(Solver::Squarem);
    run.run(Init::default(), &mut rng(4))
        .unwrap()
        .state()
        .clone()
}

fn along(mode: usize) -> Transform {
    let mut how = Transform::default().along(mode);
    how.stop = stop();
    how
}

/// The data that were fitted have their own factor, along every mode that is not signed; of some of them, in another order, it has the rows in that order;
/// learnt blocks keep every bit. [EXT 6]
#[test]
fn training_data_have_their_own_factor() {
    // Two components that are far apart, beside noise.
    let shape = [4, 3, 5];
    let cell = |f: usize, i: usize, j: usize| {
        let first = [9.0, -4.0, 0.0, 2.0][f] * [1.0, 3.0, 0.5][i] * [4.0, 1.0, 0.0, 2.0, 1.0][j];
        let second = [0.0, 3.0, -8.0, 1.0][f] * [2.0, 0.0, 1.0][i] * [0.0, 3.0, 5.0, 1.0, 2.0][j];
        first + second + [0.3, -0.2, 0.1][(f + 2 * i + j) % 3]
    };
    let part = |mode: usize, order: &[usize]| {
        let mut shape = shape;
        shape[mode] = order.len();
        let mut values = Vec::new();
        for f in 0..shape[0] {
            for i in 0..shape[1] {
                for j in 0..shape[2] {
                    let mut at = [f, i, j];
                    at[mode] = order[at[mode]];
                    values.push(cell(at[0], at[1], at[2]));
                }
            }
        }
        tensor(&shape, &values)
    };
    let data = part(0, &[0, 1, 2, 3]);
    for (scale, modes) in [(None, vec![1, 2]), (Some(1), vec![1]), (Some(2), vec![2])] {
        let model = SignedCpVb::new(2).scale_mode(scale);
        let learnt = fitted(&model, &data);
        for mode in modes {
            let found = model.transform(&learnt, &data, &along(mode)).unwrap();
            let found = found.fit.state();
            for ((name, got), want) in found
                .parameters()
                .blocks()
                .zip(learnt.parameters().matrices())
            {
                let free =
                    name.starts_with("weights_") || name.starts_with(&format!("factor_{mode}_"));
                match free {
                    true => assert!(
                        (got - want).amax() < 1e-4 * want.amax(),
                        "{name} {got} {want}"
                    ),
                    false => assert_eq!(got, want),
                }
            }
            let turned: Vec<usize> = (0..shape[mode]).rev().collect();
            let found = model
                .transform(&learnt, &part(mode, &turned), &along(mode))
                .unwrap();
            let (got, want) = (found.fit.state().means().unwrap(), learnt.means().unwrap());
            for (i, &j) in turned.iter().enumerate() {
                let gap = (got.factor(mode).row(i) - want.factor(mode).row(j)).amax();
                assert!(gap < 1e-4 * want.factor(mode).amax());
            }
            // Fewer observations than were learnt from, on any number of threads.
            let two = part(mode, &[1, 0]);
            let explained = || {
                model
                    .transform(&learnt, &two, &along(mode))
                    .unwrap()
                    .fit
                    .state()
                    .clone()
            };
            assert_eq!(explained().shape()[mode], 2);
            check_threads(explained).unwrap();
        }
    }
    let model = SignedCpVb::new(2);
    let learnt = fitted(&model, &data);
    let refused = model.transform(&learnt, &data, &Transform::default().along(0));
    assert!(matches!(refused, Err(FitError::Conflict { .. })));
    let refused = model.transform(&learnt, &data, &Transform::default().along(3));
    assert!(matches!(refused, Err(FitError::Mode { .. })));
    let refused = model.transform(&learnt, &part(1, &[0, 1]), &Transform::default().along(2));
    assert!(matches!(refused, Err(FitError::DataShape { .. })));
    let scaled = SignedCpVb::new(2).scale_mode(Some(1));
    let refused = scaled.transform(&fitted(&scaled, &data), &data, &along(2));
    let Err(FitError::Conflict { what }) = refused else {
        panic!("explained without its scale");
    };
    assert!(what.contains("mode 1"), "{what}");
    // Observations without data are told.
    let mut silent = part(2, &[0, 1, 2, 3, 4]).into_parts().1;
    silent.iter_mut().skip(4).step_by(5).for_each(|v| *v = 0.0);
    let silent = tensor(&shape, &silent);
    let found = learnt.transform(&silent, &Transform::default()).unwrap();
    assert_eq!(found.empty, [4]);
}

/// New columns of a matrix have the posterior that they have as a tensor of two modes. [EXT 6]
#[test]
fn new_columns_are_explained_alike() {
    let (f, n, k) = (4, 6, 2);
    let prior = Prior {
        plus: Entries::All(1.2),
        minus: Entries::All(0.8),
        shape: Entries::All(1.5),
        rate: Entries::All(0.1),
    };
    let cp = SignedCpVb::new(k).scale_mode(Some(1)).priors(prior.clone());
    let matrix = SnmfVb::new(k).priors(prior);
    let learnt = cp
        .fit(&tensor(&[f, n], &values(f * n, 0)), &mut rng(5))
        .unwrap();
    let learnt = learnt.state();
    let new = tensor(&[f, 3], &values(f * 3, 4));
    let same = skellam_snmf::SnmfVbState::new(learnt.posterior()).unwrap();
    let want = matrix.transform(&same, &new, &along(1)).unwrap();
    let got = cp.transform(learnt, &new, &along(1)).unwrap();
    let (got, want) = (got.fit, want.fit);
    let (gap, most) = (got.objective() - want.objective(), want.objective().abs());
    assert!(gap.abs() < 1e-9 * most, "{gap} {most}");
    let (got, want) = (got.state().posterior(), want.state().posterior());
    assert_eq!(got.plus, want.plus);
    assert!(
        (&got.shape - &want.shape).amax() < 1e-4 * want.shape.amax(),
        "{} {}",
        got.shape,
        want.shape
    );
}

/// An annealed iteration is a plain one, of which both sides of an atom are then raised to the power and divided by their common sum; from the end of the
/// schedule on the iterations are plain. [EXT 5]
#[test]
fn sides_are_annealed_jointly() {
    let data = tensor(&[4, 5], &values(20, 3));
    let shifted = || {
        ShiftedSnmf::new(2, vec![2, 2])
            .replicates(Replicates::Limit)
            .reach(vec![Reach::Full])
    };
    let anneal = Anneal {
        alpha0: 0.6,
        over: 4.0,
    };
    let (plain, annealed) = (shifted(), shifted().anneal(anneal));
    let mut at = At::start(&annealed, &data, Init::default());
    let mut last = f64::NEG_INFINITY;
    for iteration in 1..20 {
        let before = at.state();
        let mut next = At::start(&plain, &data, &before);
        next.step();
        let value = at.objective();
        at.step();
        let power = anneal.power(iteration);
        let mut want = next.state().atoms().map(|x| x.powf(power));
        want.column_iter_mut()
            .for_each(|mut atom| atom /= atom.sum());
        let after = at.state();
        assert!((after.atoms() - want).amax() < 1e-14);
        let activations = next.state().activations().clone();
        assert_eq!(after.activations(), &activations);
        assert_eq!(power < 1.0, iteration <= 4);
        if iteration > 6 {
            assert!(value >= last - 1e-12 * last.abs());
        }
        last = value;
    }
    for bad in [
        Anneal {
            alpha0: 0.0,
            over: 5.0,
        },
        Anneal {
            alpha0: 1.5,
            over: 5.0,
        },
        Anneal {
            alpha0: 0.5,
            over: 0.0,
        },
        Anneal {
            alpha0: f64::NAN,
            over: 5.0,
        },
    ] {
        let refused = shifted().anneal(bad).check();
        assert!(
            matches!(refused, Err(FitError::Setting { name: "anneal", .. })),
            "{refused:?}"
        );
    }
    // New data do not move the atoms, and are explained as without the schedule.
    let learnt = at.state();
    let [with, without] = [&annealed, &plain].map(|model| {
        model
            .transform(&learnt, &data, &Transform::default())
            .unwrap()
    });
    assert_eq!(with.fit.state(), without.fit.state());
    // Solvers that extrapolate wait until the power is 1.
    let run = annealed
        .on(&data)
        .unwrap()
        .solver(Solver::Squarem)
        .stop(Stop::default().max_iter(200));
    let fit = run.run(Init::default(), &mut rng(1)).unwrap();
    assert!(fit.objective() >= last - 1.0 && fit.iterations() > 4);
}

/// On data without a sign, of atoms without a negative side, annealing is that of shift-invariant PLCA. [EXT 5]
#[test]
fn annealing_is_that_of_plca() {
    let counts: Vec<f64> = (0..30).map(|i| ((i * i * 7 + 3 * i) % 13) as f64).collect();
    let total: f64 = counts.iter().sum();
    let data = tensor(&[5, 6], &counts);
    let (k, taps, anneal) = (
        2,
        6,
        Anneal {
            alpha0: 0.5,
            over: 12.0,
        },
    );
    let plca = Shifted::new(k, vec![2, 3]).anneal(anneal);
    let signed = ShiftedSnmf::new(k, vec![2, 3])
        .replicates(Replicates::Limit)
        .anneal(anneal);
    let start: ShiftedState<f64> = plca.init(&data, Init::default(), &mut rng(2)).unwrap();
    let atoms = |kernels: &DMatrix<f64>| {
        DMatrix::from_fn(2 * taps, k, |i, z| {
            if i % 2 == 0 { kernels[(i / 2, z)] } else { 0.0 }
        })
    };
    let activations = |state: &ShiftedState<f64>| {
        DMatrix::from_fn(state.impulses().nrows(), k, |h, z| {
            total * state.weights()[z] * state.impulses()[(h, z)]
        })
    };
    let init = Init::default()
        .block("atoms", atoms(start.kernels()))
        .block("activations", activations(&start));
    let mut of_plca = At::start(&plca, &data, &start);
    let mut of_signed = At::start(&signed, &data, init);
    for _ in 0..30 {
        of_plca.step();
        of_signed.step();
        let (want, got) = (of_plca.state(), of_signed.state());
        assert!((got.atoms() - atoms(want.kernels())).amax() < 1e-12);
        let want = activations(&want);
        assert!((got.activations() - &want).amax() < 1e-12 * want.amax());
    }
}
