//! Objectives never fall and columns stay distributions.

use plca_tensor::strategies::{Start, Table, problems};
use proptest::prelude::*;

use super::conditions::{Precision, rises, stays_on_the_simplex};
use super::setups::{Choice, Kind, Setup};
use super::storages::{complete, masked};
use super::wide::wide_problems;

/// Both conditions in every storage, for every model that takes the data, as `adapt` sets it up, and the laws of its steps.
fn holds<T: Precision>(
    (table, start): &(Table<T>, Start<T>),
    adapt: impl Fn(Setup) -> Setup,
) -> Result<(), TestCaseError> {
    for kind in Kind::of_order(table.shape.len()) {
        let setup = adapt(Setup::from(kind));
        if setup.prior.is_some() && matches!(kind, Kind::Nmf(_)) {
            continue;
        }
        for (storage, data) in complete(table).into_iter().chain(masked(table)) {
            let method = setup.method();
            rises(&method, &*data, start, 25)
                .and_then(|()| setup.obeys(&*data, start))
                .and_then(|()| stays_on_the_simplex(&setup.run(&*data, start, 10)))
                .map_err(|e| TestCaseError::fail(format!("{setup:?}, {storage}: {e}")))?;
        }
    }
    Ok(())
}

/// Priors whose objective is the posterior: columns drawn to corners, to the middle, or to neither.
fn other_priors() -> impl Strategy<Value = Choice> {
    prop_oneof![
        (-3.0..3.0f64).prop_map(Choice::Entropic),
        (0.1..5.0f64).prop_map(Choice::LogisticNormal),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// `L(θ_{n+1}) >= L(θ_n)`; `D` for NMF, with `<=`.
    // [SPEC 1.1] [SPEC 2] [SPEC 3]
    #[test]
    fn plain_em_f64(p in problems::<f64>(1..=4, 1..=5, 1..=4)) {
        holds(&p, |s| s)?;
    }

    /// As for `f64`.
    // [SPEC 1.1] [SPEC 2] [SPEC 3]
    #[test]
    fn plain_em_f32(p in problems::<f32>(1..=4, 1..=5, 1..=4)) {
        holds(&p, |s| s)?;
    }

    /// From starts whose entries differ by many orders of magnitude.
    // [SPEC 1.1] [SPEC 2] [SPEC 3]
    #[test]
    fn wide_starts_f64(p in wide_problems::<f64>(1..=4, 1..=5, 1..=4), squarem: bool) {
        holds(&p, |s| Setup { squarem, wide: true, ..s })?;
    }

    /// As for `f64`.
    // [SPEC 1.1] [SPEC 2] [SPEC 3]
    #[test]
    fn wide_starts_f32(p in wide_problems::<f32>(1..=4, 1..=5, 1..=4), squarem: bool) {
        holds(&p, |s| Setup { squarem, wide: true, ..s })?;
    }

    /// `L + Σ (α - 1) ln θ` rises, `α >= 1`.
    // [SPEC 7]
    #[test]
    fn dirichlet_f64(p in problems::<f64>(1..=4, 1..=5, 1..=4), alpha in 1.0..3.0f64) {
        holds(&p, |s| Setup { prior: Some(Choice::Dirichlet(alpha)), ..s })?;
    }

    /// As for `f64`.
    // [SPEC 7]
    #[test]
    fn dirichlet_f32(p in problems::<f32>(1..=4, 1..=5, 1..=4), alpha in 1.0..3.0f64) {
        holds(&p, |s| Setup { prior: Some(Choice::Dirichlet(alpha)), ..s })?;
    }

    /// `L + ln p` rises under every other prior with an exact M-step.
    // [SPEC 7]
    #[test]
    fn other_priors_f64(p in problems::<f64>(1..=4, 1..=5, 1..=4), prior in other_priors(), squarem: bool) {
        holds(&p, |s| Setup { prior: Some(prior), squarem, ..s })?;
    }

    /// As for `f64`.
    // [SPEC 7]
    #[test]
    fn other_priors_f32(p in problems::<f32>(1..=4, 1..=5, 1..=4), prior in other_priors(), squarem: bool) {
        holds(&p, |s| Setup { prior: Some(prior), squarem, ..s })?;
    }

    /// Extrapolations are kept only if they are not worse than a plain step.
    // [SPEC 10]
    #[test]
    fn squarem_f64(p in problems::<f64>(1..=4, 1..=5, 1..=4), alpha in prop::option::of(1.0..2.0f64)) {
        holds(&p, |s| Setup { squarem: true, prior: alpha.map(Choice::Dirichlet), ..s })?;
    }

    /// As for `f64`.
    // [SPEC 10]
    #[test]
    fn squarem_f32(p in problems::<f32>(1..=4, 1..=5, 1..=4), alpha in prop::option::of(1.0..2.0f64)) {
        holds(&p, |s| Setup { squarem: true, prior: alpha.map(Choice::Dirichlet), ..s })?;
    }

    /// Fewer free blocks: still a maximisation.
    #[test]
    fn frozen_blocks_f64(
        p in problems::<f64>(1..=4, 1..=5, 1..=4), first: bool, weights: bool, squarem: bool,
    ) {
        holds(&p, |s| Setup { freeze_first: first, freeze_weights: weights, squarem, ..s })?;
    }

    /// As for `f64`.
    #[test]
    fn frozen_blocks_f32(
        p in problems::<f32>(1..=4, 1..=5, 1..=4), first: bool, weights: bool, squarem: bool,
    ) {
        holds(&p, |s| Setup { freeze_first: first, freeze_weights: weights, squarem, ..s })?;
    }

    /// Block by block multiplicative updates of PLCA on masked matrices.
    // [SPEC 4]
    #[test]
    fn masked_multiplicative_f64(p in problems::<f64>(2..=2, 1..=6, 1..=4), first: bool, squarem: bool) {
        holds(&p, |s| Setup { multiplicative: true, freeze_first: first, squarem, ..s })?;
    }

    /// As for `f64`.
    // [SPEC 4]
    #[test]
    fn masked_multiplicative_f32(p in problems::<f32>(2..=2, 1..=6, 1..=4), first: bool, squarem: bool) {
        holds(&p, |s| Setup { multiplicative: true, freeze_first: first, squarem, ..s })?;
    }

    /// Coordinate descent: what is worse is not kept.
    // [SPEC 10.1]
    #[test]
    fn fast_f64(p in problems::<f64>(1..=4, 1..=5, 1..=4), alpha in prop::option::of(1.0..3.0f64)) {
        holds(&p, |s| Setup { fast: true, prior: alpha.map(Choice::Dirichlet), ..s })?;
    }

    /// As for `f64`.
    // [SPEC 10.1]
    #[test]
    fn fast_f32(p in problems::<f32>(1..=4, 1..=5, 1..=4), alpha in prop::option::of(1.0..3.0f64)) {
        holds(&p, |s| Setup { fast: true, prior: alpha.map(Choice::Dirichlet), ..s })?;
    }

    /// From starts whose entries differ by many orders of magnitude.
    // [SPEC 10.1]
    #[test]
    fn fast_from_wide_starts_f64(p in wide_problems::<f64>(1..=4, 1..=5, 1..=4)) {
        holds(&p, |s| Setup { fast: true, ..s })?;
    }

    /// As for `f64`.
    // [SPEC 10.1]
    #[test]
    fn fast_from_wide_starts_f32(p in wide_problems::<f32>(1..=4, 1..=5, 1..=4)) {
        holds(&p, |s| Setup { fast: true, ..s })?;
    }

    /// With the first factor fixed.
    // [SPEC 10.1]
    #[test]
    fn fast_with_a_frozen_factor(p in problems::<f64>(2..=4, 1..=5, 1..=4)) {
        holds(&p, |s| Setup { fast: true, freeze_first: true, ..s })?;
    }
}
