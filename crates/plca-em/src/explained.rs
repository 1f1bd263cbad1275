//! New data under learnt blocks.

use nalgebra::DMatrix;
use plca_fit::{
    Algorithm, Explained, Fit, FitError, Parameters, State, Transform,
    explain::{Outcome, begin, certify},
};
use plca_tensor::Real;

/// Explains data by learnt blocks, which keep their bits; the others start even.
pub(crate) fn explained<'a, S: State>(
    algorithm: Box<dyn Algorithm<S::Scalar> + '_>,
    learnt: impl Fn(usize) -> Option<&'a DMatrix<S::Scalar>>,
    how: &Transform,
    dropped: f64,
    empty: Vec<usize>,
    gap: impl Fn(&Parameters<S::Scalar>) -> Result<Vec<f64>, FitError>,
) -> Result<Explained<S>, FitError> {
    let start = even(&*algorithm, &learnt)?;
    let (fit, gap) = certify::<S>(algorithm, start, how, gap)?;
    Ok(Explained::new(restored(fit, learnt)?, gap, dropped, empty))
}

/// The fit that ends where observations were explained one by one: `write` writes the blocks that are not learnt, each by its place.
pub(crate) fn written<'a, S: State>(
    algorithm: &dyn Algorithm<S::Scalar>,
    learnt: impl Fn(usize) -> Option<&'a DMatrix<S::Scalar>>,
    ended: &Outcome,
    write: impl FnMut(usize, &mut DMatrix<S::Scalar>),
) -> Result<Fit<S>, FitError> {
    let mut at = even(algorithm, &learnt)?;
    at.change(write);
    restored(ended.fit(algorithm, at)?, learnt)
}

/// Learnt blocks, and others that are the same everywhere.
fn even<'a, T: Real>(
    algorithm: &dyn Algorithm<T>,
    learnt: &impl Fn(usize) -> Option<&'a DMatrix<T>>,
) -> Result<Parameters<T>, FitError> {
    let blocks = algorithm.blocks().iter().enumerate();
    let blocks = blocks.map(|(j, spec)| learnt(j).cloned().unwrap_or_else(|| spec.even()));
    begin(algorithm, blocks.collect())
}

/// The same fit with the bits of learnt blocks, which a model may have normalised.
fn restored<'a, S: State>(
    fit: Fit<S>,
    learnt: impl Fn(usize) -> Option<&'a DMatrix<S::Scalar>>,
) -> Result<Fit<S>, FitError> {
    let keep = |j: usize, block: &mut DMatrix<S::Scalar>| {
        if let Some(learnt) = learnt(j) {
            block.copy_from(learnt);
        }
    };
    fit.change(|at| at.change(keep))
}
