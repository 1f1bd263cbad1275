//! How much of every component of a consensus the samples hold.

use std::path::Path;

use nalgebra::DMatrix;
use plca_em::NmfState;
use plca_fit::{Impossible, Transform};
use plca_tensor::Data;
use pntf_l2::NtfState;

use crate::failure::Failure;

/// Samples of a matrix, along one of its dimensions.
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    pub(crate) data: &'a dyn Data<f64>,
    pub(crate) samples: usize,
}

/// Usages with the least squared error, samples x K, and that error.
pub(crate) fn least_squares(
    source: &Source<'_>,
    spectra: &DMatrix<f64>,
) -> Result<(DMatrix<f64>, f64), Failure> {
    let refused = |e| Failure::from(e).about(source.path);
    // The factor of the samples plays no part.
    let any = DMatrix::from_element(1, spectra.ncols(), 1.0);
    let mut factors = vec![spectra.clone(), any];
    if source.samples == 0 {
        factors.reverse();
    }
    let state = NtfState::new(factors).map_err(refused)?;
    let how = Transform::default().along(source.samples);
    let explained = state.transform(source.data, &how).map_err(refused)?;
    let state = explained.fit.state();
    let errors = state.squared_errors().unwrap_or_default();
    Ok((state.factor(source.samples).clone(), errors.iter().sum()))
}

/// Usages with the least divergence.
pub(crate) struct Divergence {
    /// Samples x K.
    pub(crate) usage: DMatrix<f64>,
    /// Of the data that components reach.
    pub(crate) divergence: f64,
    /// For every sample.
    pub(crate) gap: Vec<f64>,
    /// The sum of the data that no component reaches.
    pub(crate) dropped: f64,
}

/// The gap of a sample at which its usage is known well beyond the digits that are shown.
const GAP: f64 = 1e-12;
/// The change of the divergence per count at which nothing but rounding is left.
const TOL: f64 = 1e-16;

/// Usages with the least generalised Kullback-Leibler divergence.
pub(crate) fn least_divergence(
    source: &Source<'_>,
    spectra: &DMatrix<f64>,
) -> Result<Divergence, Failure> {
    let refused = |e| Failure::from(e).about(source.path);
    let k = spectra.ncols();
    let state = match source.samples {
        0 => NmfState::new(DMatrix::from_element(1, k, 1.0), spectra.transpose()),
        _ => NmfState::new(spectra.clone(), DMatrix::from_element(k, 1, 1.0)),
    };
    let mut how = Transform::default().along(source.samples);
    how = how.impossible(Impossible::Drop);
    how.stop = how.stop.tol(TOL).residual_tol(GAP);
    let state = state.map_err(refused)?;
    let explained = state.transform(source.data, &how).map_err(refused)?;
    let state = explained.fit.state();
    Ok(Divergence {
        usage: match source.samples {
            0 => state.w().clone(),
            _ => state.h().transpose(),
        },
        divergence: explained.fit.objective(),
        gap: explained.gap,
        dropped: explained.dropped,
    })
}
