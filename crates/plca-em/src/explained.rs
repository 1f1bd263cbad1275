//! New data under learnt blocks.

use nalgebra::DMatrix;
use plca_fit::{Algorithm, Explained, FitError, Parameters, State, Transform, begin, certify};

/// Explains data by learnt blocks, which keep their bits; the others start even.
pub(crate) fn explained<'a, S: State>(
    algorithm: Box<dyn Algorithm<S::Scalar> + '_>,
    learnt: impl Fn(usize) -> Option<&'a DMatrix<S::Scalar>>,
    how: &Transform,
    dropped: f64,
    empty: Vec<usize>,
    gap: impl Fn(&Parameters<S::Scalar>) -> Result<Vec<f64>, FitError>,
) -> Result<Explained<S>, FitError> {
    let blocks = algorithm.blocks().iter().enumerate();
    let blocks = blocks.map(|(j, spec)| learnt(j).cloned().unwrap_or_else(|| spec.even()));
    let start = begin(&*algorithm, blocks.collect())?;
    let (fit, gap) = certify::<S>(algorithm, start, how, gap)?;
    let keep = |j: usize, block: &mut DMatrix<S::Scalar>| {
        if let Some(learnt) = learnt(j) {
            block.copy_from(learnt);
        }
    };
    Ok(Explained {
        fit: fit.change(|at| at.change(keep))?,
        gap,
        dropped,
        empty,
    })
}
