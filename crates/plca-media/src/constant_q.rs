//! Magnitudes at log-spaced frequencies.

use std::f64::consts::TAU;

use plca_tensor::shift::real_transforms;
use realfft::num_complex::Complex;

use crate::MediaError;
use crate::stft::hann;

/// Frequencies `f_k = lowest · 2^(k/B)`, `k = 0..bins`, with `B` bins per octave.
///
/// ```
/// let piano = plca_media::Pitches { lowest: 27.5, per_octave: 12, bins: 88 };
/// assert_eq!(piano.frequency(48), 440.0);
/// assert!((piano.frequency(piano.bins - 1) - 4186.009).abs() < 1e-3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pitches {
    /// Frequency of the first bin in Hz.
    pub lowest: f64,
    /// Bins per octave, `B`.
    pub per_octave: usize,
    /// Number of bins.
    pub bins: usize,
}

impl Pitches {
    /// Frequency of a bin in Hz.
    ///
    /// ```
    /// let pitches = plca_media::Pitches { lowest: 55.0, per_octave: 36, bins: 234 };
    /// assert_eq!(pitches.frequency(72), 220.0);
    /// ```
    pub fn frequency(&self, bin: usize) -> f64 {
        self.lowest * (bin as f64 / self.per_octave as f64).exp2()
    }
}

/// Constant-Q transform: windows as long as the frequency is low, so that equal intervals have equal distances.
///
/// ```math
/// \begin{aligned}
/// X[k, t] &= \left| \sum_n w_k(n) \, x(t R + n - N_k / 2) \, e^{-2 \pi i f_k n / r} \right| \cdot \frac{2}{\sum_n w_k(n)} \\
/// N_k &= \lceil Q r / f_k \rceil, \qquad Q = \frac{1}{2^{1/B} - 1}
/// \end{aligned}
/// ```
///
/// `w_k` is a periodic Hann window of `N_k` samples, `r` the sampling rate, `R` the hop; samples outside the sound are 0. A sine of
/// amplitude `a` at `f_k` gives `a`. Products are taken in the frequency domain, where entries of the windowed
/// exponentials below 1e-5 of the largest are left out (J. C. Brown and M. S. Puckette, 1992).
///
/// ```
/// use plca_media::{ConstantQ, Pitches};
/// let pitches = Pitches { lowest: 110.0, per_octave: 12, bins: 24 };
/// let transform = ConstantQ::new(8000, pitches, 400)?;
/// let sound: Vec<f64> = (0..8000).map(|n| 0.5 * (std::f64::consts::TAU * 220.0 * n as f64 / 8000.0).sin()).collect();
/// let (frames, x) = transform.magnitudes(&sound)?;
/// assert_eq!((frames, x.len()), (20, 24 * 20));
/// assert!((x[12 * 20 + 10] - 0.5).abs() < 1e-3);      // an octave above the lowest, in the middle
/// # Ok::<(), plca_media::MediaError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConstantQ {
    hop: usize,
    /// Samples per transform, a power of two.
    length: usize,
    /// For each bin `(frequency, conjugate of the kernel's spectrum)`.
    kernels: Vec<Vec<(usize, Complex<f64>)>>,
}

/// Entries of a kernel's spectrum that are kept, relative to the largest.
const KEPT: f64 = 1e-5;

impl ConstantQ {
    /// A transform of sounds of `rate` samples per second, every `hop` samples.
    ///
    /// # Errors
    ///
    /// [`MediaError::Setting`]: no rate, no hop, no bins, none per octave, a lowest frequency that is not positive or that needs windows
    /// of more than 2^22 samples, a highest one that is not below half the rate.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_media::{ConstantQ, Pitches};
    /// let pitches = Pitches { lowest: 110.0, per_octave: 12, bins: 72 };
    /// let error = ConstantQ::new(8000, pitches, 400).unwrap_err();
    /// assert_eq!(error.to_string(), "`lowest` = 110 is not positive and, 72 bins up, below 4000 Hz");
    /// ```
    pub fn new(rate: u32, pitches: Pitches, hop: usize) -> Result<Self, MediaError> {
        let Pitches {
            lowest,
            per_octave,
            bins,
        } = pitches;
        let counts = [
            ("rate", rate as usize),
            ("hop", hop),
            ("bins", bins),
            ("per_octave", per_octave),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, n)| *n == 0) {
            return Err(MediaError::setting(name, 0.0, "at least 1"));
        }
        let rate = f64::from(rate);
        let highest = pitches.frequency(bins - 1);
        if !(lowest > 0.0 && highest < 0.5 * rate) {
            let domain = format!("positive and, {bins} bins up, below {} Hz", 0.5 * rate);
            return Err(MediaError::setting("lowest", lowest, domain));
        }
        let quality = 1.0 / ((1.0 / per_octave as f64).exp2() - 1.0);
        let longest = quality * rate / lowest;
        if longest > (1 << 22) as f64 {
            let domain = "high enough for windows of at most 4194304 samples";
            return Err(MediaError::setting("lowest", lowest, domain));
        }
        let length = (longest.ceil() as usize + 1).next_power_of_two();
        let transform = real_transforms(length).0;
        let spectrum = |mut wave: Vec<f64>| {
            let mut out = transform.make_output_vec();
            let done = transform.process(&mut wave, &mut out);
            debug_assert!(done.is_ok());
            out
        };
        let kernel = |k: usize| {
            let frequency = pitches.frequency(k);
            let window = hann((quality * rate / frequency).ceil() as usize);
            let sum: f64 = window.iter().sum();
            let first = length / 2 - window.len() / 2;
            let (mut cosine, mut sine) = (vec![0.0; length], vec![0.0; length]);
            for (n, w) in window.iter().enumerate() {
                let phase = TAU * frequency * n as f64 / rate;
                cosine[first + n] = 2.0 * w / sum * phase.cos();
                sine[first + n] = 2.0 * w / sum * phase.sin();
            }
            // Spectrum of cos + i sin at positive frequencies.
            let both: Vec<Complex<f64>> = (spectrum(cosine).iter().zip(spectrum(sine)))
                .map(|(c, s)| Complex::new(c.re - s.im, c.im + s.re))
                .collect();
            let largest = both.iter().map(|x| x.norm()).fold(0.0, f64::max);
            let kept = both
                .iter()
                .enumerate()
                .filter(|(_, x)| x.norm() >= KEPT * largest);
            kept.map(|(f, x)| (f, x.conj() / length as f64)).collect()
        };
        Ok(Self {
            hop,
            length,
            kernels: (0..bins).map(kernel).collect(),
        })
    }

    /// Number of frames, one every hop, the first centred at the first sample; and the magnitudes, row-major `bins x frames`.
    ///
    /// # Errors
    ///
    /// [`MediaError::Room`] for magnitudes that are too many to be held.
    ///
    /// # Examples
    ///
    /// ```
    /// use plca_media::{ConstantQ, Pitches};
    /// let transform = ConstantQ::new(8000, Pitches { lowest: 220.0, per_octave: 12, bins: 12 }, 400)?;
    /// let sound: Vec<f64> = (0..1000).map(|n| (0.2 * n as f64).sin()).collect();
    /// let softer: Vec<f64> = sound.iter().map(|x| 0.5 * x).collect();
    /// let ((frames, loud), (_, soft)) = (transform.magnitudes(&sound)?, transform.magnitudes(&softer)?);
    /// assert_eq!((frames, loud.len()), (3, 12 * 3));                      // one for every 400 samples begun
    /// assert!(loud.iter().zip(&soft).all(|(a, b)| (0.5 * a - b).abs() < 1e-15));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn magnitudes(&self, sound: &[f64]) -> Result<(usize, Vec<f64>), MediaError> {
        let frames = sound.len().div_ceil(self.hop);
        let mut values = plca_io::room(&[self.kernels.len(), frames])?;
        values.resize(self.kernels.len() * frames, 0.0);
        let transform = real_transforms(self.length).0;
        let mut buffer = transform.make_input_vec();
        let mut spectrum = transform.make_output_vec();
        let mut scratch = transform.make_scratch_vec();
        for t in 0..frames {
            for (n, x) in buffer.iter_mut().enumerate() {
                let at = (t * self.hop + n).checked_sub(self.length / 2);
                *x = at.and_then(|at| sound.get(at)).copied().unwrap_or(0.0);
            }
            let done = transform.process_with_scratch(&mut buffer, &mut spectrum, &mut scratch);
            debug_assert!(done.is_ok());
            for (k, kernel) in self.kernels.iter().enumerate() {
                // Parseval: the negative frequencies of a windowed exponential are below what is kept.
                let sum: Complex<f64> = kernel.iter().map(|(f, c)| spectrum[*f] * c).sum();
                values[k * frames + t] = sum.norm();
            }
        }
        Ok((frames, values))
    }
}
