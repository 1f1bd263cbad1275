//! Soft masks: the sound divided among components.

use crate::{MediaError, Stft};

/// How a sound is divided among components: cell by cell of its spectrum, in proportion to their magnitudes.
///
/// ```math
/// X_z[f,t] = X[f,t] \, \frac{M_z[f,t]}{\sum_{z'} M_{z'}[f,t]}
/// ```
///
/// Where all magnitudes are 0 every component gets the same share, so the parts always add up to the whole. In memory are two numbers
/// per cell, and the magnitudes of one component at a time.
///
/// ```
/// use plca_media::{MediaError, SoftMasks, Stft};
/// let (stft, sound) = (Stft::new(4, 2)?, [1.0, -1.0, 1.0]);
/// let cells = 3 * stft.frames(3);
/// let magnitudes = |z: usize| -> Result<Vec<f64>, MediaError> { Ok(vec![[3.0, 1.0][z]; cells]) };
/// let masks = SoftMasks::new(2, cells, magnitudes)?;
/// let part = masks.part(&stft, &sound, &magnitudes(0)?)?;
/// assert!(sound.iter().zip(&part).all(|(x, p)| (0.75 * x - p).abs() < 1e-12));
/// # Ok::<(), MediaError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SoftMasks {
    components: usize,
    largest: Vec<f64>,
    /// Of magnitudes relative to the largest, so that neither sums nor quotients overflow or underflow.
    sums: Vec<f64>,
}

impl SoftMasks {
    /// The masks of `components` components over a spectrum with this number of cells.
    ///
    /// `magnitudes(z)` is the component's model of the magnitudes, in the order of
    /// [`Spectrum::magnitudes`](crate::Spectrum::magnitudes) and in any unit that is the same for all. It is called twice for every component.
    ///
    /// # Errors
    ///
    /// [`MediaError::Setting`] without components, [`MediaError::Cells`], [`MediaError::Share`], [`MediaError::Room`]; what `magnitudes` fails with.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_media::{MediaError, SoftMasks};
    /// let negative = |_| -> Result<_, MediaError> { Ok(vec![0.5, -1.0]) };
    /// let error = SoftMasks::new(1, 2, negative).unwrap_err();
    /// assert_eq!(error.to_string(), "component 0 is -1 at cell 1, not a finite number >= 0");
    /// ```
    pub fn new<E: From<MediaError>>(
        components: usize,
        cells: usize,
        mut magnitudes: impl FnMut(usize) -> Result<Vec<f64>, E>,
    ) -> Result<Self, E> {
        if components == 0 {
            return Err(MediaError::setting("components", 0.0, "at least 1").into());
        }
        let zeros = || -> Result<Vec<f64>, MediaError> {
            let mut values = plca_io::room(&[cells])?;
            values.resize(cells, 0.0);
            Ok(values)
        };
        let mut masks = Self {
            components,
            largest: zeros()?,
            sums: zeros()?,
        };
        for component in 0..components {
            let values = magnitudes(component)?;
            masks.check(component, &values)?;
            for (largest, &value) in masks.largest.iter_mut().zip(&values) {
                *largest = largest.max(value);
            }
        }
        for component in 0..components {
            let values = magnitudes(component)?;
            masks.check(component, &values)?;
            let cells = masks.sums.iter_mut().zip(&masks.largest).zip(&values);
            for ((sum, largest), value) in cells {
                *sum += value / largest;
            }
        }
        Ok(masks)
    }

    fn check(&self, component: usize, magnitudes: &[f64]) -> Result<(), MediaError> {
        let (got, expected) = (magnitudes.len(), self.sums.len());
        if got != expected {
            return Err(MediaError::Cells {
                component,
                got,
                expected,
            });
        }
        let wrong = |x: &f64| !(x.is_finite() && *x >= 0.0);
        match magnitudes.iter().position(wrong) {
            None => Ok(()),
            Some(cell) => Err(MediaError::Share {
                component,
                cell,
                value: magnitudes[cell],
            }),
        }
    }

    /// The part of a sound that belongs to the component with these magnitudes.
    ///
    /// # Errors
    ///
    /// [`MediaError::Cells`] if there are not as many magnitudes, or cells of the sound, as there are masks.
    ///
    /// # Examples
    ///
    /// See [`SoftMasks`].
    pub fn part(
        &self,
        stft: &Stft,
        sound: &[f64],
        magnitudes: &[f64],
    ) -> Result<Vec<f64>, MediaError> {
        let frames = stft.frames(sound.len());
        let expected = (stft.frame() / 2 + 1) * frames;
        for got in [magnitudes.len(), self.sums.len()] {
            if got != expected {
                return Err(MediaError::Cells {
                    component: 0,
                    got,
                    expected,
                });
            }
        }
        let even = 1.0 / self.components as f64;
        Ok(stft.filtered(sound, |f, t| {
            let cell = f * frames + t;
            if self.largest[cell] > 0.0 {
                magnitudes[cell] / self.largest[cell] / self.sums[cell]
            } else {
                even
            }
        }))
    }
}
