//! Hyperparameters by group: what groups cost, and data sets of different sizes.

use nalgebra::{DMatrix, dmatrix};
use plca_dist::random;
use plca_fit::{FitError, Init, Model, Settings, seed as rng};
use plca_tensor::DataError;
use skellam_snmf::{
    Entries, Factors, Groups, Hyperparameters, Learner, Posterior, Prior, Rate, Sharing, Snmf,
    SnmfVb, Statistics,
};

use crate::support::{At, tensor};

fn draw(rows: usize, columns: usize, seed: u64) -> DMatrix<f64> {
    let mut rng = rng(seed);
    DMatrix::from_fn(rows, columns, |_, _| 0.2 + random::exponential(&mut rng))
}

fn known(n: usize, seed: u64) -> Factors<f64> {
    let (mut plus, mut minus) = (draw(3, 2, seed), draw(3, 2, seed + 1));
    for (mut p, mut m) in plus.column_iter_mut().zip(minus.column_iter_mut()) {
        let sum = p.sum() + m.sum();
        p /= sum;
        m /= sum;
    }
    Factors {
        plus,
        minus,
        activations: draw(2, n, seed + 2),
    }
}

fn start() -> Hyperparameters {
    Hyperparameters {
        alpha: (0..12).map(|i| 0.5 + 0.1 * f64::from(i)).collect(),
        shape: vec![0.7, 2.0],
        rate: vec![0.3, 0.1],
    }
}

/// The same groups, entry by entry.
fn mapped(sharing: &Sharing, n: usize) -> Sharing {
    let (f, k) = (sharing.rows, sharing.components);
    let each = |groups: &Groups, rows, columns, component: fn(usize, usize) -> usize| {
        Groups::Each(match groups {
            Groups::All => DMatrix::zeros(rows, columns),
            Groups::PerComponent => DMatrix::from_fn(rows, columns, component),
            Groups::Each(map) => map.clone(),
            other => return other.clone(),
        })
    };
    Sharing {
        plus: each(&sharing.plus, f, k, |_, z| z),
        minus: each(&sharing.minus, f, k, |_, z| z),
        shape: each(&sharing.shape, k, n, |z, _| z),
        rate: each(&sharing.rate, k, n, |z, _| z),
        ..*sharing
    }
}

fn near(a: &[f64], b: &[f64], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= 1e-12 * a.abs(), "{what}: {a} {b}");
    }
}

/// Groups by component and for all are the maps that they stand for: statistics, steps, priors and fits under them.
/// [SKELLAM eq. 45] [SKELLAM eq. 46] [SKELLAM eq. 49]
#[test]
fn groups_are_their_maps() {
    let n = 5;
    let groups = [Groups::All, Groups::PerComponent];
    for (at, sharing) in (groups.iter())
        .flat_map(|a| groups.iter().map(move |b| (a.clone(), b.clone())))
        .map(|(a, b)| Sharing {
            plus: a.clone(),
            minus: b.clone(),
            shape: a,
            rate: b,
            ..Sharing::all(3, 2)
        })
        .chain([Sharing::by_component(3, 2)])
        .enumerate()
    {
        let (maps, what) = (mapped(&sharing, n), format!("{at}"));
        let hyper = start();
        let (a, b) = (
            Statistics::of_prior(&sharing, &hyper, n).unwrap(),
            Statistics::of_prior(&maps, &hyper, n).unwrap(),
        );
        near(&a.ln_activations, &b.ln_activations, &what);
        near(&a.activations, &b.activations, &what);
        near(&a.ln_atoms, &b.ln_atoms, &what);
        let (a, b) = (
            Statistics::of_known(&known(n, 7), &sharing).unwrap(),
            Statistics::of_known(&known(n, 7), &maps).unwrap(),
        );
        assert_eq!(a, b);
        let (mut x, mut y) = (hyper.clone(), hyper.clone());
        for _ in 0..5 {
            x.improve(&sharing, &a).unwrap();
            y.improve(&maps, &b).unwrap();
        }
        assert_ne!(x, hyper);
        near(&x.alpha, &y.alpha, &what);
        near(&x.shape, &y.shape, &what);
        near(&x.rate, &y.rate, &what);
        // Under the priors, both methods to the bit.
        let v = tensor(&DMatrix::from_fn(3, n, |i, j| {
            ((i * 5 + j * 3) % 7) as f64 - 2.0
        }));
        let (p, q) = (hyper.prior(&sharing).unwrap(), hyper.prior(&maps).unwrap());
        assert_ne!(p.shape, q.shape);
        let vb = [&p, &q].map(|p| {
            let config = SnmfVb::new(2).priors(p.weakened(0.5));
            let start = config.at_prior(&v, 0.5, &mut rng(3)).unwrap();
            let mut at = At::start(&config, &v, &start);
            at.step();
            let q = at.state().posterior();
            (q.divergence(p).unwrap(), q, at.objective())
        });
        assert_eq!(vb[0], vb[1]);
        let em = [&p, &q].map(|p| {
            let config = Snmf::new(2)
                .replicates(skellam_snmf::Replicates::Limit)
                .priors(p.clone());
            let mut at = At::start(&config, &v, Init::default());
            at.step();
            (at.objective(), at.state())
        });
        assert_eq!(em[0], em[1]);
    }
}

/// A million columns and twenty components: forty numbers.
#[test]
fn groups_cost_what_they_hold() {
    let sharing = Sharing::by_component(1, 20);
    let hyper = Hyperparameters {
        alpha: vec![1.0; 40],
        shape: vec![2.0; 20],
        rate: vec![0.5; 20],
    };
    let prior = hyper.prior(&sharing).unwrap();
    assert_eq!(prior.shape, Entries::PerComponent(vec![2.0; 20]));
    assert_eq!(prior.rate, Entries::PerComponent(vec![0.5; 20]));
    let s = Statistics::of_prior(&sharing, &hyper, 1_000_000).unwrap();
    assert_eq!(s.activations, [4e6; 20]);
    let learner = Learner::new(sharing, hyper, Rate::Average).unwrap();
    // All of it as text: no map of columns.
    assert!(serde_json::to_string(&learner).unwrap().len() < 2000);
}

/// Data sets of 3 and of 5 columns teach what one of 8 teaches, and one of any size follows.
#[test]
fn data_sets_of_any_number_of_columns() {
    let (first, second) = (known(3, 1), known(5, 11));
    let atoms = known(1, 21);
    let with = |h: DMatrix<f64>| Factors {
        activations: h,
        ..atoms.clone()
    };
    let joined = DMatrix::from_fn(2, 8, |k, n| {
        if n < 3 {
            first.activations[(k, n)]
        } else {
            second.activations[(k, n - 3)]
        }
    });
    let learner = || {
        Learner::new(Sharing::by_component(3, 2), start(), Rate::Average)
            .unwrap()
            .iterations(400)
    };
    let (mut apart, mut together) = (learner(), learner());
    apart.learn_known(&with(first.activations.clone())).unwrap();
    apart
        .learn_known(&with(second.activations.clone()))
        .unwrap();
    together.learn_known(&with(joined)).unwrap();
    assert_eq!(
        (apart.statistics().columns, together.statistics().columns),
        (4.0, 8.0)
    );
    for (a, b) in (apart.hyperparameters().shape.iter()).zip(&together.hyperparameters().shape) {
        assert!((a - b).abs() <= 1e-6 * a, "{a} {b}");
    }
    for (a, b) in (apart.hyperparameters().rate.iter()).zip(&together.hyperparameters().rate) {
        assert!((a - b).abs() <= 1e-6 * a, "{a} {b}");
    }
    let posterior = Posterior {
        plus: draw(3, 2, 5),
        minus: draw(3, 2, 6),
        shape: draw(2, 70, 7),
        rate: draw(2, 70, 8),
    };
    apart.learn(&posterior).unwrap();
    assert_eq!((apart.seen(), apart.statistics().columns), (3, 26.0));
    // At a constant rate the start counts as a data set of the first one's size.
    let mut constant = Learner::new(
        Sharing::all(3, 2),
        Hyperparameters {
            alpha: vec![1.0],
            shape: vec![2.0],
            rate: vec![0.5],
        },
        Rate::Constant(0.25),
    )
    .unwrap()
    .iterations(0);
    assert_eq!(constant.statistics().activations, [8.0]);
    constant
        .learn_known(&with(DMatrix::from_element(2, 3, 8.0)))
        .unwrap();
    assert_eq!(
        (
            constant.statistics().activations[0],
            constant.statistics().columns
        ),
        (0.75 * 24.0 + 0.25 * 48.0, 3.0)
    );
    // A map says how many columns there are.
    let maps = mapped(&Sharing::all(3, 2), 4);
    let mut fixed = Learner::new(
        maps,
        Hyperparameters {
            alpha: vec![1.0],
            shape: vec![2.0],
            rate: vec![0.5],
        },
        Rate::Average,
    )
    .unwrap();
    assert_eq!(fixed.statistics().activations, [32.0]);
    let refused = fixed.learn_known(&first).unwrap_err();
    assert_eq!(refused.to_string(), "`map of shape` is 2x4, expected 2x3");
}

/// Maps of another shape are refused where they are used, and so are numbers of groups that no memory holds.
#[test]
fn maps_that_do_not_fit_are_refused() {
    let map = |rows, columns| Groups::Each(DMatrix::zeros(rows, columns));
    let one = Hyperparameters {
        alpha: vec![1.0],
        shape: vec![2.0],
        rate: vec![0.5],
    };
    let s = Statistics::of_prior(&Sharing::all(2, 1), &one, 1).unwrap();
    // More columns than there are components.
    let wide = Sharing {
        minus: map(2, 3),
        ..Sharing::all(2, 1)
    };
    let refused = one.clone().improve(&wide, &s).unwrap_err();
    assert_eq!(
        refused,
        FitError::Shape {
            block: "map of minus".into(),
            got: (2, 3),
            expected: (2, 1)
        }
    );
    assert!(one.prior(&wide).is_err() && Statistics::of_prior(&wide, &one, 1).is_err());
    let uneven = Sharing {
        shape: map(1, 3),
        rate: map(1, 4),
        ..Sharing::all(2, 1)
    };
    assert_eq!(
        one.prior(&uneven).unwrap_err().to_string(),
        "`map of rate` is 1x4, expected 1x3"
    );
    let huge = Sharing {
        shape: Groups::Each(dmatrix![usize::MAX]),
        ..Sharing::all(1, 1)
    };
    assert_eq!(
        one.check(&huge).unwrap_err().to_string(),
        format!("1 of `shape` given, the sharing refers to {}", usize::MAX)
    );
    let ones = dmatrix![1.0];
    let q = Posterior {
        plus: ones.clone(),
        minus: ones.clone(),
        shape: ones.clone(),
        rate: ones,
    };
    assert!(matches!(
        Statistics::of(&q, &huge),
        Err(FitError::Data(DataError::TooLarge { .. }))
    ));
    let mut other = s.clone();
    other.columns = f64::NAN;
    let refused = one.clone().improve(&Sharing::all(2, 1), &other);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.starts_with("`statistics` is NaN"), "{refused}");
    let v = tensor(&dmatrix![1.0, 2.0]);
    let prior = Prior {
        rate: Entries::PerComponent(vec![1.0; 2]),
        ..Prior::flat()
    };
    let snmf = Snmf::new(1)
        .replicates(skellam_snmf::Replicates::Limit)
        .priors(prior);
    let refused = snmf.on(&v).unwrap_err();
    assert_eq!(refused.to_string(), "`prior rate` is 2x1, expected 1x1");
}

/// Every refusal says what it was and where, by the name of the field that it was given in.
#[test]
fn messages_name_the_place() {
    let one = Hyperparameters {
        alpha: vec![1.0],
        shape: vec![2.0],
        rate: vec![0.5],
    };
    let learner = |rate| Learner::new(Sharing::all(2, 1), one.clone(), rate);
    let says = |e: FitError, what: &str| assert_eq!(e.to_string(), what);
    says(
        learner(Rate::AtLeast(1.5)).unwrap_err(),
        "`learning rate` is 1.5, expected a number in (0, 1]",
    );
    let mut learner = learner(Rate::Average).unwrap();
    let factors = |minus: f64, h: f64| Factors {
        plus: dmatrix![0.5; 0.2],
        minus: dmatrix![0.1; minus],
        activations: dmatrix![1.0, h],
    };
    says(
        learner.learn_known(&factors(0.0, 1.0)).unwrap_err(),
        "`minus` has 0 in row 1, column 0, expected a finite number > 0",
    );
    says(
        learner.learn_known(&factors(0.2, 0.0)).unwrap_err(),
        "`activations` has 0 in row 0, column 1, expected a finite number > 0",
    );
    let v = dmatrix![0.0, 2.0];
    let v = tensor(&v);
    let vb = SnmfVb::new(1);
    says(
        vb.at_prior(&v, -1.0, &mut rng(0)).unwrap_err(),
        "`jitter` is -1, expected a finite number >= 0",
    );
    // One block, one name: in a prior and in a start.
    let prior = Prior {
        minus: Entries::PerComponent(vec![1.0, -1.0]),
        ..Prior::flat()
    };
    says(
        Snmf::new(2)
            .replicates(skellam_snmf::Replicates::Limit)
            .priors(prior)
            .check()
            .unwrap_err(),
        "`prior minus` has -1 in row 0, column 1, expected a finite number > 0",
    );
    let prior = Prior {
        shape: Entries::PerComponent(vec![1.0, -1.0]),
        ..Prior::flat()
    };
    says(
        Snmf::new(2)
            .replicates(skellam_snmf::Replicates::Limit)
            .priors(prior)
            .check()
            .unwrap_err(),
        "`prior shape` has -1 in row 1, column 0, expected a finite number > 0",
    );
    let start = Init::default().block("atoms_shape", dmatrix![1.0; 1e-300]);
    says(
        vb.init(&v, start, &mut rng(0)).unwrap_err(),
        &format!(
            "`atoms_shape` has {} in row 1, column 0, expected a finite number >= 1e-150",
            1e-300
        ),
    );
    let start = Init::default().block("atoms", dmatrix![1.0; -1.0]);
    let snmf = Snmf::new(1).replicates(skellam_snmf::Replicates::Limit);
    says(
        snmf.init(&v, start, &mut rng(0)).unwrap_err(),
        "`atoms` has -1 in row 1, column 0, expected a finite number >= 0",
    );
}

/// No rows, and any number of components: a map of both has no values, however large the number is.
#[test]
fn sharings_of_nothing_are_refused() {
    let hyper = Hyperparameters {
        alpha: vec![1.0],
        shape: vec![1.0],
        rate: vec![1.0],
    };
    for (rows, components) in [(0, usize::MAX), (0, 1), (1, 0)] {
        let map = match rows {
            0 => Groups::Each(DMatrix::zeros(0, components)),
            _ => Groups::All,
        };
        let sharing = Sharing {
            plus: map,
            ..Sharing::all(rows, components)
        };
        let error = Statistics::of_prior(&sharing, &hyper, 2).unwrap_err();
        assert!(
            matches!(
                &error,
                FitError::Shape { block, .. } if block == "sharing"
            ),
            "{error}"
        );
        assert!(Learner::new(sharing, hyper.clone(), Rate::AtLeast(0.25)).is_err());
    }
}

/// Statistics of another sharing, of fewer groups or more, and weights that make no mean are refused, and change nothing.
#[test]
fn only_statistics_of_one_sharing_are_blended() {
    let of = |sharing: &Sharing| Statistics::of_known(&known(4, 1), sharing).unwrap();
    let (one, each) = (of(&Sharing::all(3, 2)), of(&Sharing::by_component(3, 2)));
    for (old, new) in [(&one, &each), (&each, &one)] {
        let mut mean = old.clone();
        let error = mean.blend(new, 0.5).unwrap_err();
        assert!(matches!(error, FitError::Shape { .. }), "{error}");
        assert_eq!(&mean, old);
        for r in [-0.5, 1.5, f64::NAN] {
            let error = mean.blend(old, r).unwrap_err();
            assert!(
                matches!(error, FitError::Setting { name: "r", .. }),
                "{error}"
            );
            assert_eq!(&mean, old);
        }
    }
}
