//! Soft masks: the sound divided among components.

use crate::{MediaError, Spectrum};

/// Divides a spectrum among components, cell by cell in proportion to their magnitudes.
///
/// ```text
/// X_z[f,t] = X[f,t] M_z[f,t] / Σ_z' M_z'[f,t]
/// ```
///
/// `magnitudes[z]` holds the component's model of the magnitudes, in the order of [`Spectrum::magnitudes`] and in any
/// unit that is the same for all. Where all are 0 every component gets the same share, so the parts always add up to the whole.
///
/// # Errors
///
/// [`MediaError::Setting`] without components, [`MediaError::Cells`], [`MediaError::Share`].
///
/// # Examples
///
/// ```
/// use plca_media::{Stft, soft_masks};
/// let spectrum = Stft::new(4, 2)?.forward(&[1.0, -1.0, 1.0]);
/// let n = spectrum.magnitudes().len();
/// let parts = soft_masks(&spectrum, &[vec![3.0; n], vec![1.0; n]])?;
/// let (whole, part) = (spectrum.magnitudes(), parts[0].magnitudes());
/// assert!(whole.iter().zip(&part).all(|(w, p)| (0.75 * w - p).abs() < 1e-12));
/// # Ok::<(), plca_media::MediaError>(())
/// ```
pub fn soft_masks(
    spectrum: &Spectrum,
    magnitudes: &[Vec<f64>],
) -> Result<Vec<Spectrum>, MediaError> {
    if magnitudes.is_empty() {
        return Err(MediaError::setting("components", 0.0, "at least 1"));
    }
    let expected = spectrum.bins() * spectrum.frames();
    let mut largest = vec![0.0f64; expected];
    for (component, m) in magnitudes.iter().enumerate() {
        if m.len() != expected {
            let got = m.len();
            return Err(MediaError::Cells {
                component,
                got,
                expected,
            });
        }
        for (cell, (&value, largest)) in m.iter().zip(&mut largest).enumerate() {
            if !(value.is_finite() && value >= 0.0) {
                return Err(MediaError::Share {
                    component,
                    cell,
                    value,
                });
            }
            *largest = largest.max(value);
        }
    }
    // Relative to the largest, so that neither sums nor quotients overflow or underflow.
    let relative = |m: &[f64], cell: usize| m[cell] / largest[cell];
    let sums: Vec<f64> = (0..expected)
        .map(|cell| magnitudes.iter().map(|m| relative(m, cell)).sum())
        .collect();
    let even = 1.0 / magnitudes.len() as f64;
    let share = |m: &[f64], cell: usize| {
        if largest[cell] > 0.0 {
            relative(m, cell) / sums[cell]
        } else {
            even
        }
    };
    Ok(magnitudes
        .iter()
        .map(|m| spectrum.scaled(|cell| share(m, cell)))
        .collect())
}
