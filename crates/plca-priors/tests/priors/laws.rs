//! The priors of this crate obey the laws; priors that do not are caught, each by the law that it breaks.

use nalgebra::{DMatrix, DVector, dmatrix};
use plca_priors::laws::{Claims, Optimum, cases, check, check_strength};
use plca_priors::{
    CrossEntropy, CrossEntropyStep, Dirichlet, Entropic, Flat, LogisticNormal, SimplexPrior, Step,
    Weighted,
};
use proptest::prelude::*;

/// It adds nothing to an objective.
#[test]
fn flat_has_no_density() {
    assert_eq!(Flat.ln_density(&dmatrix![0.25; 0.75], &Step::at(1)), 0.0);
}

proptest! {
    #[test]
    fn flat(case in cases::<f64>(1..=6, 1..=3), single in cases::<f32>(1..=6, 1..=3), s in -9..9i32) {
        check(&Flat, &Claims::default(), &case)?;
        check(&Flat, &Claims::default(), &single)?;
        check_strength(&Flat, &Flat, 2f64.powi(s), &Claims::default(), &case)?;
    }

    #[test]
    fn dirichlet(
        case in cases::<f64>(1..=6, 1..=3), single in cases::<f32>(1..=6, 1..=3), alpha in 1.0..9.0, s in 0.1..9.0,
    ) {
        let prior = Dirichlet::symmetric(alpha).unwrap();
        check(&prior, &Claims::default(), &case)?;
        check(&prior, &Claims::default(), &single)?;
        let strong = prior.weighted(s);
        check_strength(&prior, &strong, s, &Claims::default(), &case)?;
    }

    /// Below 1 the density is unbounded at the border, and entries are clipped.
    // [SPEC 7]
    #[test]
    fn dirichlet_below_one(
        case in cases::<f64>(1..=6, 1..=3), single in cases::<f32>(1..=6, 1..=3), alpha in 0.01..1.0, s in 0.1..1.0,
    ) {
        let claims = Claims { optimum: Optimum::OnSupport, ..Claims::default() };
        let prior = Dirichlet::symmetric(alpha).unwrap();
        check(&prior, &claims, &case)?;
        check(&prior, &claims, &single)?;
        let strong = prior.weighted(s);
        check_strength(&prior, &strong, s, &claims, &case)?;
    }

    #[test]
    fn dirichlet_per_entry(
        case in cases::<f64>(4..=4, 2..=2), alpha in prop::collection::vec(0.1..4.0f64, 8), bounded: bool,
    ) {
        let least = if bounded { 1.0 } else { 0.0 };
        let optimum = if bounded { Optimum::Global } else { Optimum::OnSupport };
        let alpha = DMatrix::from_vec(4, 2, alpha).map(|a| a.max(least));
        let claims = Claims { optimum, rows_alike: false, columns_alike: false, ..Claims::default() };
        check(&Dirichlet::per_entry(alpha).unwrap(), &claims, &case)?;
    }

    /// `β < 0`: strictly concave.
    #[test]
    fn entropic_flat(case in cases::<f64>(1..=6, 1..=3), ln_beta in -4.0..5.0f64, s in 0.1..9.0) {
        let prior = Entropic::new(-ln_beta.exp()).unwrap();
        let claims = Claims { tolerance: 1e4, ..Claims::default() };
        check(&prior, &claims, &case)?;
        check_strength(&prior, &prior.weighted(s), s, &claims, &case)?;
    }

    /// `β > 0`: of equal largest counts the first may be chosen, and without counts nothing is.
    #[test]
    fn entropic_sparse(case in cases::<f64>(1..=6, 1..=3), ln_beta in -4.0..5.0f64, s in 0.1..9.0) {
        let prior = Entropic::new(ln_beta.exp()).unwrap();
        let claims = Claims { unique: false, tolerance: 1e4, ..Claims::default() };
        check(&prior, &claims, &case)?;
        check_strength(&prior, &prior.weighted(s), s, &claims, &case)?;
    }

    #[test]
    fn cross_entropy_clipped(case in cases::<f64>(1..=6, 4..=4), between in 0.0..9.0, within in 0.0..9.0) {
        let prior = CrossEntropy::groups(&[0, 1, 0, 1], between, within).unwrap();
        let claims = Claims {
            optimum: Optimum::Unstated, unique: false, columns_alike: false, columns_apart: false, ..Claims::default()
        };
        check(&prior, &claims, &case)?;
    }

    /// Where a column is 0 its likeness to others has no finite density.
    #[test]
    fn cross_entropy_similar(
        case in cases::<f64>(1..=6, 3..=3).prop_filter("positive", |c| c.theta.min() > 0.0), within in 0.0..9.0,
    ) {
        let prior = CrossEntropy::groups(&[0, 0, 0], 0.0, within).unwrap();
        let prior = prior.step(CrossEntropyStep::ExactSimilarity).unwrap();
        let claims = Claims {
            optimum: Optimum::NotWorse, unique: false, columns_alike: false, columns_apart: false, tolerance: 1e4,
            ..Claims::default()
        };
        check(&prior, &claims, &case)?;
    }

    /// Equal means and variances: rows are alike.
    #[test]
    fn logistic_normal(case in cases::<f64>(4..=4, 1..=3), mean in -2.0..2.0f64, variance in 0.1..9.0, s in 0.1..9.0) {
        let (mean, variance) = (DVector::repeat(4, mean), DVector::repeat(4, variance));
        let prior = LogisticNormal::independent(mean, &variance).unwrap();
        // Newton's method stops at the digits of the objective, so results are compared by it and not entry by entry.
        let claims = Claims { unique: false, tolerance: 1e4, ..Claims::default() };
        check(&prior, &claims, &case)?;
        check_strength(&prior, &prior.weighted(s), s, &claims, &case)?;
    }
}
