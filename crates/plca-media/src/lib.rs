//! Sounds and pictures in and out, and the spectrograms in between.
//!
//! | what | by |
//! |---|---|
//! | `.wav` (integers of 8 to 32 bits, 32-bit floats), `.flac` | [`read_sound`] |
//! | `.wav` (32-bit floats) | [`write_wav`] |
//! | `.png`, `.jpg`, `.jpeg` in and out | [`read_image`], [`write_image`] |
//! | short-time Fourier transform and its inverse | [`Stft`] |
//! | one sound per component | [`soft_masks`] |
//! | magnitudes at log-spaced frequencies | [`ConstantQ`] |
//!
//! Magnitudes are what models of this workspace take; the phases stay in the [`Spectrum`], and a component's share of each cell's
//! magnitude tells how much of the cell's sound is its own:
//!
//! ```
//! use plca_media::{Stft, soft_masks};
//! let sound: Vec<f64> = (0..4000).map(|n| (0.1 * n as f64).sin() + (0.9 * n as f64).sin()).collect();
//! let stft = Stft::new(256, 64)?;
//! let spectrum = stft.forward(&sound);
//! // Two components: frequencies below and above bin 16.
//! let low: Vec<f64> = spectrum.cells().map(|(f, _)| if f < 16 { 1.0 } else { 0.0 }).collect();
//! let high: Vec<f64> = low.iter().map(|x| 1.0 - x).collect();
//! let parts = soft_masks(&spectrum, &[low, high])?;
//! let (a, b) = (stft.inverse(&parts[0], sound.len())?, stft.inverse(&parts[1], sound.len())?);
//! assert!(sound.iter().zip(a.iter().zip(&b)).all(|(x, (a, b))| (x - a - b).abs() < 1e-12));
//! # Ok::<(), plca_media::MediaError>(())
//! ```
//!
//! # When not to use this crate
//!
//! For streams, for sounds that do not fit into memory, for colour management.

mod constant_q;
mod error;
mod image_file;
mod mask;
mod sound;
mod stft;

pub use constant_q::{ConstantQ, Pitches};
pub use error::MediaError;
pub use image_file::{Image, read_image, write_image};
pub use mask::soft_masks;
pub use sound::{Sound, read_sound, write_wav};
pub use stft::{Spectrum, Stft};
