//! Priors that break a law, each caught by that law.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nalgebra::DMatrix;
use plca_priors::laws::{Case, Claims, Law, Optimum, cases, check, check_promises, check_strength};
use plca_priors::{
    CrossEntropy, CrossEntropyStep, Dirichlet, Flat, PriorError, PriorRules, SimplexPrior, Step,
};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

type Block = DMatrix<f64>;

/// The flat prior but for what its two functions add.
struct Wrong<U, D> {
    /// Told counts and the block before; changes what the flat update made of them.
    update: U,
    density: D,
}

impl<U, D> std::fmt::Debug for Wrong<U, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wrong")
    }
}

impl<U: Send + Sync, D: Send + Sync> PriorRules for Wrong<U, D> {}

impl<U, D> SimplexPrior<f64> for Wrong<U, D>
where
    U: Fn(&Block, &Block, &mut Block) + Send + Sync,
    D: Fn(&Block) -> f64 + Send + Sync,
{
    fn update(&self, counts: &Block, theta: &mut Block, step: &Step<'_>) -> Result<(), PriorError> {
        let before = theta.clone();
        Flat.update(counts, theta, step)?;
        (self.update)(counts, &before, theta);
        Ok(())
    }

    fn ln_density(&self, theta: &Block, _: &Step<'_>) -> f64 {
        (self.density)(theta)
    }
}

fn many_cases() -> impl Iterator<Item = Case<f64>> {
    let mut runner = TestRunner::deterministic();
    let strategy = cases::<f64>(1..=5, 1..=3);
    (0..200).map(move |_| strategy.new_tree(&mut runner).unwrap().current())
}

/// The laws that a prior breaks, the first of each case.
fn broken(prior: &dyn SimplexPrior<f64>, claims: Claims) -> HashSet<Law> {
    many_cases()
        .filter_map(|case| check(prior, &claims, &case).err())
        .map(|violation| violation.law)
        .collect()
}

fn broken_by(
    update: impl Fn(&Block, &Block, &mut Block) + Send + Sync,
    claims: Claims,
) -> HashSet<Law> {
    let density = |_: &Block| 0.0;
    broken(&Wrong { update, density }, claims)
}

fn only(law: Law) -> HashSet<Law> {
    HashSet::from([law])
}

/// The harness itself breaks nothing.
#[test]
fn nothing_added_is_lawful() {
    assert_eq!(broken_by(|_, _, _| (), Claims::default()), HashSet::new());
}

#[test]
fn off_the_simplex() {
    let scaled = |_: &Block, _: &Block, theta: &mut Block| *theta *= 1.0 + 1e-9;
    assert_eq!(
        broken_by(scaled, Claims::default()),
        only(Law::Distribution)
    );
    let nan = |_: &Block, _: &Block, theta: &mut Block| theta[0] = f64::NAN;
    assert_eq!(broken_by(nan, Claims::default()), only(Law::Distribution));
}

/// An M-step for one density, the value of another, however near.
#[test]
fn another_maximiser() {
    #[derive(Debug)]
    struct Off(Dirichlet, Dirichlet);
    impl PriorRules for Off {}
    impl SimplexPrior<f64> for Off {
        fn update(
            &self,
            counts: &Block,
            theta: &mut Block,
            step: &Step<'_>,
        ) -> Result<(), PriorError> {
            self.0.update(counts, theta, step)
        }
        fn ln_density(&self, theta: &Block, step: &Step<'_>) -> f64 {
            self.1.ln_density(theta, step)
        }
    }
    let dirichlet = |alpha| Dirichlet::symmetric(alpha).unwrap();
    assert_eq!(
        broken(&Off(dirichlet(2.0), dirichlet(2.0)), Claims::default()),
        HashSet::new()
    );
    for other in [3.0, 2.001, 1.999] {
        let laws = broken(&Off(dirichlet(2.0), dirichlet(other)), Claims::default());
        assert!(laws.contains(&Law::Maximum), "{other}: {laws:?}");
    }
}

/// Coupled columns that reckon with what a frozen one would have become.
#[test]
fn a_frozen_column_unseen() {
    #[derive(Debug)]
    struct Heedless(CrossEntropy, bool);
    impl PriorRules for Heedless {
        fn check(&self, shape: (usize, usize)) -> Result<(), PriorError> {
            self.0.check(shape)
        }
        fn may_empty(&self) -> bool {
            true
        }
    }
    impl SimplexPrior<f64> for Heedless {
        fn update(
            &self,
            counts: &Block,
            theta: &mut Block,
            step: &Step<'_>,
        ) -> Result<(), PriorError> {
            let blind = Step::at(step.iteration);
            self.0
                .update(counts, theta, if self.1 { &blind } else { step })
        }
        fn ln_density(&self, theta: &Block, step: &Step<'_>) -> f64 {
            self.0.ln_density(theta, step)
        }
    }
    let similar = CrossEntropy::groups(&[0, 0, 0], 0.0, 5.0).unwrap();
    let similar = similar.step(CrossEntropyStep::ExactSimilarity).unwrap();
    let claims = Claims {
        optimum: Optimum::NotWorse,
        unique: false,
        columns_alike: false,
        columns_apart: false,
        tolerance: 1e4,
        ..Claims::default()
    };
    let three = many_cases().filter(|case| case.theta.ncols() == 3 && case.theta.min() > 0.0);
    let three: Vec<_> = three.collect();
    for (heedless, expected) in [(false, HashSet::new()), (true, only(Law::Frozen))] {
        let prior = Heedless(similar.clone(), heedless);
        let broken = three
            .iter()
            .filter_map(|case| check(&prior, &claims, case).err());
        let laws: HashSet<Law> = broken.map(|violation| violation.law).collect();
        assert_eq!(laws, expected);
    }
}

/// Half of the way is not worse, but not the best.
#[test]
fn half_steps() {
    let half = |_: &Block, before: &Block, theta: &mut Block| *theta = (&*theta + before) * 0.5;
    let laws = broken_by(half, Claims::default());
    assert!(laws.contains(&Law::Maximum), "{laws:?}");
    let claims = Claims {
        optimum: Optimum::NotWorse,
        unique: false,
        ..Claims::default()
    };
    let laws = broken_by(half, claims);
    assert_eq!(laws, HashSet::new());
    // But the result depends on the start.
    let claims = Claims {
        unique: true,
        ..claims
    };
    assert_eq!(broken_by(half, claims), only(Law::StartForgotten));
}

#[test]
fn backwards() {
    let back = |_: &Block, before: &Block, theta: &mut Block| {
        let far = before * 1.5 - &*theta * 0.5;
        *theta = far.map(|x| x.max(0.0));
        plca_tensor::normalise_columns(theta);
    };
    let claims = Claims {
        optimum: Optimum::NotWorse,
        unique: false,
        ..Claims::default()
    };
    assert_eq!(broken_by(back, claims), only(Law::NotWorse));
}

/// Where nothing was seen and nothing preferred, uniform is an opinion.
#[test]
fn uniform_where_nothing_was_seen() {
    let uniform = |counts: &Block, _: &Block, theta: &mut Block| {
        for z in (0..counts.ncols()).filter(|&z| counts.column(z).sum() == 0.0) {
            theta.column_mut(z).fill(1.0 / counts.nrows() as f64);
        }
    };
    assert_eq!(
        broken_by(uniform, Claims::default()),
        only(Law::NothingSeen)
    );
}

/// `0 · ln 0` that was not thought of.
#[test]
fn density_that_is_no_number() {
    let (update, density) = (
        |_: &Block, _: &Block, _: &mut Block| (),
        |theta: &Block| theta.iter().map(|x| 0.0 * x.ln()).sum(),
    );
    assert_eq!(
        broken(&Wrong { update, density }, Claims::default()),
        only(Law::Density)
    );
}

/// A proper prior, which favours row 0 and yet claims to treat rows alike.
#[test]
fn rows_that_are_not_alike() {
    #[derive(Debug)]
    struct First;
    fn dirichlet(theta: &Block) -> Dirichlet {
        let alpha = |i, _| if i == 0 { 2.0 } else { 1.0 };
        Dirichlet::per_entry(Block::from_fn(theta.nrows(), theta.ncols(), alpha)).unwrap()
    }
    impl PriorRules for First {}
    impl SimplexPrior<f64> for First {
        fn update(
            &self,
            counts: &Block,
            theta: &mut Block,
            step: &Step<'_>,
        ) -> Result<(), PriorError> {
            dirichlet(theta).update(counts, theta, step)
        }
        fn ln_density(&self, theta: &Block, step: &Step<'_>) -> f64 {
            dirichlet(theta).ln_density(theta, step)
        }
    }
    assert_eq!(broken(&First, Claims::default()), only(Law::Permutation));
    let claims = Claims {
        rows_alike: false,
        ..Claims::default()
    };
    assert_eq!(broken(&First, claims), HashSet::new());
}

/// A column that waits for the other columns.
#[test]
fn columns_that_know_each_other() {
    let wait = |counts: &Block, before: &Block, theta: &mut Block| {
        if counts.ncols() > 1 {
            let share = 0.5 / (1.0 + counts.sum());
            *theta = &*theta * (1.0 - share) + before * share;
        }
    };
    let claims = Claims {
        optimum: Optimum::NotWorse,
        unique: false,
        ..Claims::default()
    };
    assert_eq!(broken_by(wait, claims), only(Law::ColumnsApart));
}

/// Bad counts that become zeros.
#[test]
fn bad_counts_taken() {
    #[derive(Debug)]
    struct Lenient;
    impl PriorRules for Lenient {}
    impl SimplexPrior<f64> for Lenient {
        fn update(
            &self,
            counts: &Block,
            theta: &mut Block,
            step: &Step<'_>,
        ) -> Result<(), PriorError> {
            Flat.update(
                &counts.map(|c| if c > 0.0 { c.min(1e300) } else { 0.0 }),
                theta,
                step,
            )
        }
        fn ln_density(&self, _: &Block, _: &Step<'_>) -> f64 {
            0.0
        }
    }
    assert_eq!(broken(&Lenient, Claims::default()), only(Law::BadCount));
}

/// A prior that measures itself against the sum of the counts has no strength of its own.
#[test]
fn strength_in_another_unit() {
    let prior = Dirichlet::symmetric(3.0).unwrap();
    let laws: HashSet<Law> = many_cases()
        .filter_map(|case| check_strength(&prior, &prior, 2.0, &Claims::default(), &case).err())
        .map(|violation| violation.law)
        .collect();
    assert_eq!(laws, only(Law::Strength));
}

/// What a prior may say of itself, all of it untrue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Untrue {
    Nothing,
    PseudoCounts,
    PseudoCountsWhileChanging,
    EmptiesNothing,
    Steady,
    SteadyWhileFalling,
    SteadyForAWhile,
    TwoAtOnce,
    FitsAll,
    FitsNone,
}

/// The flat prior, but for what it says of itself.
#[derive(Clone, Debug)]
struct Boastful(Untrue, Arc<AtomicUsize>);

impl Boastful {
    /// What it is at an iteration.
    fn now(&self, iteration: usize) -> Dirichlet {
        let counts = match self.0 {
            Untrue::PseudoCountsWhileChanging | Untrue::Steady => iteration,
            Untrue::TwoAtOnce => self.1.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        Dirichlet::symmetric(1.0 + counts as f64).unwrap()
    }
}

impl PriorRules for Boastful {
    fn pseudo_counts(&self, (rows, columns): (usize, usize)) -> Option<Block> {
        let untrue = [Untrue::PseudoCounts, Untrue::PseudoCountsWhileChanging];
        (untrue.contains(&self.0)).then(|| Block::from_element(rows, columns, 0.5))
    }

    fn steady(&self, iteration: usize) -> bool {
        match self.0 {
            Untrue::Steady | Untrue::SteadyWhileFalling => true,
            Untrue::SteadyForAWhile => iteration < 3,
            _ => false,
        }
    }

    fn check(&self, expected: (usize, usize)) -> Result<(), PriorError> {
        match self.0 {
            Untrue::FitsNone => Err(PriorError::Shape {
                got: (0, 0),
                expected,
            }),
            _ => Ok(()),
        }
    }
}

impl SimplexPrior<f64> for Boastful {
    fn update(&self, counts: &Block, theta: &mut Block, step: &Step<'_>) -> Result<(), PriorError> {
        if self.0 == Untrue::FitsAll && counts.nrows() > 5 {
            return Err(PriorError::Overflow { column: 0 });
        }
        self.now(step.iteration).update(counts, theta, step)?;
        if self.0 == Untrue::EmptiesNothing {
            let least = (0..theta.nrows()).filter(|&i| theta[i] > 0.0);
            let least = least.min_by(|&a, &b| theta[a].total_cmp(&theta[b]));
            if let Some(i) = least.filter(|&i| theta[i] < 1.0) {
                theta[i] = 0.0;
                plca_tensor::normalise_columns(theta);
            }
        }
        if self.0 == Untrue::SteadyWhileFalling {
            theta.fill(1.0 / theta.nrows() as f64);
        }
        Ok(())
    }

    fn ln_density(&self, theta: &Block, step: &Step<'_>) -> f64 {
        match self.0 {
            Untrue::TwoAtOnce => 0.0,
            _ => self.now(step.iteration).ln_density(theta, step),
        }
    }
}

#[test]
fn untrue_words_of_itself() {
    for (untrue, laws) in [
        (Untrue::Nothing, HashSet::new()),
        (Untrue::PseudoCounts, only(Law::PseudoCounts)),
        (Untrue::PseudoCountsWhileChanging, only(Law::PseudoCounts)),
        (Untrue::EmptiesNothing, only(Law::MayEmpty)),
        (Untrue::Steady, only(Law::Steady)),
        (Untrue::SteadyWhileFalling, only(Law::Steady)),
        (Untrue::SteadyForAWhile, only(Law::Steady)),
        (Untrue::TwoAtOnce, only(Law::Repeatable)),
        (Untrue::FitsAll, only(Law::Fits)),
        (Untrue::FitsNone, only(Law::Fits)),
    ] {
        let found = many_cases().filter_map(|case| {
            let prior = Boastful(untrue, Arc::default());
            let checked = check_promises(&prior, &[1, 2, 3], &Claims::default(), &case);
            checked.err().map(|violation| violation.law)
        });
        assert_eq!(found.collect::<HashSet<_>>(), laws, "{untrue:?}");
    }
}
