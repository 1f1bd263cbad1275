//! Readers and writers of sounds and pictures, and transforms between sounds and spectrograms.
//!
//! | what | by |
//! |---|---|
//! | `.wav` (integers of 8 to 32 bits, 32-bit floats), `.flac`; with the feature `compressed-sound` `.mp3`, `.ogg`, `.m4a`, `.aac` | [`read_sound`] |
//! | `.wav` (32-bit floats) | [`write_wav`], [`encode_wav`] |
//! | `.png`, `.jpg`, `.jpeg`, `.tif`, `.tiff` in and out | [`read_image`], [`write_image`] |
//! | short-time Fourier transform and its inverse | [`Stft`] |
//! | one sound per component | [`SoftMasks`] |
//! | magnitudes at log-spaced frequencies | [`ConstantQ`] |
//!
//! Models of this workspace take magnitudes; the phases stay in the sound. The share of a component in the magnitude of a cell
//! is its share of the sound of that cell:
//!
//! ```
//! use plca_media::{MediaError, SoftMasks, Stft};
//! let sound: Vec<f64> = (0..4000).map(|n| (0.1 * n as f64).sin() + (0.9 * n as f64).sin()).collect();
//! let stft = Stft::new(256, 64)?;
//! let spectrum = stft.forward(&sound)?;
//! // Two components: frequencies below and above bin 16.
//! let half = |z: usize| -> Result<Vec<f64>, MediaError> {
//!     Ok(spectrum.cells().map(|(f, _)| if (f < 16) == (z == 0) { 1.0 } else { 0.0 }).collect())
//! };
//! let masks = SoftMasks::new(2, spectrum.cells().count(), half)?;
//! let (a, b) = (masks.part(&stft, &sound, &half(0)?)?, masks.part(&stft, &sound, &half(1)?)?);
//! assert!(sound.iter().zip(a.iter().zip(&b)).all(|(x, (a, b))| (x - a - b).abs() < 1e-12));
//! # Ok::<(), plca_media::MediaError>(())
//! ```
//!
//! # When not to use this crate
//!
//! For streams, for sounds that do not fit into memory, for colour management.

mod constant_q;
mod decode;
mod error;
mod image_file;
mod mask;
mod riff;
mod sound;
mod stft;

pub use constant_q::{ConstantQ, Pitches};
pub use error::MediaError;
pub use image_file::{Image, read_image, write_image};
pub use mask::SoftMasks;
pub use sound::{Sound, encode_wav, read_sound, write_wav};
pub use stft::{Spectrum, Stft};
