//! Short-time Fourier transform and its inverse.

use std::f64::consts::TAU;

use plca_tensor::shift::{RealTransforms, real_transforms};
use realfft::num_complex::Complex;

use crate::MediaError;

/// Short-time Fourier transform with a periodic Hann window `w(n) = (1 - cos(2πn/N))/2`.
///
/// ```math
/// X[f, t] = \sum_{n=0}^{N-1} w(n) \, x(t R + n - (N - R)) \, e^{-2 \pi i f n / N},
/// \qquad f = 0, \dots, \lfloor N / 2 \rfloor
/// ```
///
/// `N` is the length of a frame, `R` the hop. Samples outside the sound are 0; frames begin and end so that every sample lies in
/// `ceil(N/R)` of them. The inverse adds the frames up, each under the window once more, and divides by the sum of squared
/// windows: it undoes the transform to rounding, and it is linear.
///
/// ```
/// use plca_media::Stft;
/// let stft = Stft::new(1024, 256)?;
/// let sound: Vec<f64> = (0..5000).map(|n| (0.3 * n as f64).sin()).collect();
/// let spectrum = stft.forward(&sound)?;
/// assert_eq!((spectrum.bins(), spectrum.frames()), (513, 23));
/// let back = stft.inverse(&spectrum, sound.len())?;
/// assert!(sound.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-12));
/// # Ok::<(), plca_media::MediaError>(())
/// ```
pub struct Stft {
    frame: usize,
    hop: usize,
    window: Vec<f64>,
    transforms: RealTransforms,
}

impl std::fmt::Debug for Stft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stft")
            .field("frame", &self.frame)
            .field("hop", &self.hop)
            .finish_non_exhaustive()
    }
}

/// Complex amplitudes, `bins` frequencies by `frames` frames; made by [`Stft::forward`].
///
/// ```
/// let stft = plca_media::Stft::new(4, 2)?;
/// let (a, b) = (stft.forward(&[1.0, 2.0, 3.0])?, stft.forward(&[-1.0, -2.0, -3.0])?);
/// assert!(a != b && a.magnitudes() == b.magnitudes());                // the phases are kept
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Spectrum {
    bins: usize,
    /// Frame after frame.
    values: Vec<Complex<f64>>,
}

impl Spectrum {
    /// Number of frequencies, `N/2 + 1`.
    ///
    /// ```
    /// let spectrum = plca_media::Stft::new(1024, 256)?.forward(&[0.0; 10])?;
    /// assert_eq!(spectrum.bins(), 513);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// Number of frames: `ceil((n + N - R)/R)` for a sound of `n` samples.
    ///
    /// ```
    /// let spectrum = plca_media::Stft::new(1024, 256)?.forward(&[0.0; 10])?;
    /// assert_eq!(spectrum.frames(), 4);                                   // each sample in four of them
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn frames(&self) -> usize {
        self.values.len() / self.bins
    }

    /// Magnitudes, frequency by frequency: row-major `bins x frames`, as models take them.
    ///
    /// ```
    /// let spectrum = plca_media::Stft::new(4, 2)?.forward(&[1.0, -1.0, 1.0])?;
    /// assert_eq!(spectrum.magnitudes().len(), spectrum.bins() * spectrum.frames());
    /// # Ok::<(), plca_media::MediaError>(())
    /// ```
    pub fn magnitudes(&self) -> Vec<f64> {
        let (bins, frames) = (self.bins, self.frames());
        let cells = (0..bins).flat_map(|f| (0..frames).map(move |t| t * bins + f));
        cells.map(|at| self.values[at].norm()).collect()
    }

    /// `(frequency, frame)` of the cells in the order of [`magnitudes`](Self::magnitudes).
    ///
    /// ```
    /// let spectrum = plca_media::Stft::new(4, 2)?.forward(&[1.0, -1.0, 1.0])?;
    /// let cells: Vec<_> = spectrum.cells().collect();
    /// assert_eq!((cells[1], cells[spectrum.frames()]), ((0, 1), (1, 0)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cells(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (bins, frames) = (self.bins, self.frames());
        (0..bins).flat_map(move |f| (0..frames).map(move |t| (f, t)))
    }
}

impl Stft {
    /// A transform with frames of `frame` samples, even and from 2 to 2^20, every `hop` samples, at most half a frame.
    ///
    /// # Errors
    ///
    /// [`MediaError::Setting`] outside these ranges.
    ///
    /// # Examples
    ///
    /// ```
    /// let error = plca_media::Stft::new(5, 2).unwrap_err();
    /// assert_eq!(error.to_string(), "`frame` = 5 is not an even number in 2..=1048576");
    /// ```
    pub fn new(frame: usize, hop: usize) -> Result<Self, MediaError> {
        if !(frame.is_multiple_of(2) && (2..=1 << 20).contains(&frame)) {
            let domain = "an even number in 2..=1048576";
            return Err(MediaError::setting("frame", frame as f64, domain));
        }
        if !(1..=frame / 2).contains(&hop) {
            let domain = format!("in 1..={}", frame / 2);
            return Err(MediaError::setting("hop", hop as f64, domain));
        }
        Ok(Self {
            frame,
            hop,
            window: hann(frame),
            transforms: real_transforms(frame),
        })
    }

    /// Samples per frame, `N`.
    ///
    /// ```
    /// let stft = plca_media::Stft::new(1024, 256)?;
    /// assert_eq!(stft.frame(), 2 * (stft.forward(&[])?.bins() - 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn frame(&self) -> usize {
        self.frame
    }

    /// Zeros before the first sample.
    fn lead(&self) -> usize {
        self.frame - self.hop
    }

    /// Frames of a sound with this number of samples, `ceil((n + N - R)/R)`.
    ///
    /// ```
    /// let stft = plca_media::Stft::new(1024, 256)?;
    /// assert_eq!(stft.frames(10), stft.forward(&[0.0; 10])?.frames());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn frames(&self, samples: usize) -> usize {
        (samples + self.lead()).div_ceil(self.hop)
    }

    fn bins(&self) -> usize {
        self.frame / 2 + 1
    }

    /// The transform of a sound; the formula is in the type's documentation.
    ///
    /// # Errors
    ///
    /// [`MediaError::Room`] for a spectrum that is too large to be made.
    ///
    /// # Examples
    ///
    /// ```
    /// let spectrum = plca_media::Stft::new(4, 2)?.forward(&[1.0; 8])?;
    /// assert!((spectrum.magnitudes()[1] - 2.0).abs() < 1e-15);            // frequency 0, frame 1: the window's sum, N/2
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn forward(&self, sound: &[f64]) -> Result<Spectrum, MediaError> {
        let (bins, frames) = (self.bins(), self.frames(sound.len()));
        let mut values = plca_io::room(&[bins, frames])?;
        values.resize(bins * frames, Complex::default());
        let mut analysis = Analysis::new(self, sound);
        for (t, out) in values.chunks_exact_mut(bins).enumerate() {
            analysis.frame(t, out);
        }
        Ok(Spectrum { bins, values })
    }

    /// The first `samples` samples of the sound with this spectrum.
    ///
    /// # Errors
    ///
    /// [`MediaError::Setting`] if the spectrum has other frequencies or fewer frames than a sound of this length has.
    ///
    /// # Examples
    ///
    /// ```
    /// let stft = plca_media::Stft::new(4, 2)?;
    /// let spectrum = stft.forward(&[1.0, 2.0, 3.0])?;
    /// let first = stft.inverse(&spectrum, 2)?;
    /// assert!((first[0] - 1.0).abs() < 1e-15 && (first[1] - 2.0).abs() < 1e-15);
    /// assert!(stft.inverse(&spectrum, 9).is_err());                       // not that long
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn inverse(&self, spectrum: &Spectrum, samples: usize) -> Result<Vec<f64>, MediaError> {
        let bins = self.bins();
        if spectrum.bins != bins {
            let domain = format!("the {bins} of frames of {} samples", self.frame);
            return Err(MediaError::setting("bins", spectrum.bins as f64, domain));
        }
        let frames = self.frames(samples);
        let got = spectrum.frames();
        if got < frames {
            let domain = format!("at least {frames}, for {samples} samples");
            return Err(MediaError::setting("frames", got as f64, domain));
        }
        let mut synthesis = Synthesis::new(self, samples);
        let mut values = vec![Complex::default(); bins];
        for (t, frame) in spectrum.values.chunks_exact(bins).take(frames).enumerate() {
            values.copy_from_slice(frame);
            synthesis.frame(t, &mut values);
        }
        Ok(synthesis.sound())
    }

    /// The sound whose spectrum is that of `sound`, every cell `(frequency, frame)` multiplied by a factor; frame by frame, without
    /// a spectrum in memory.
    pub(crate) fn filtered(&self, sound: &[f64], factor: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let mut analysis = Analysis::new(self, sound);
        let mut synthesis = Synthesis::new(self, sound.len());
        let mut values = vec![Complex::default(); self.bins()];
        for t in 0..self.frames(sound.len()) {
            analysis.frame(t, &mut values);
            for (f, x) in values.iter_mut().enumerate() {
                *x *= factor(f, t);
            }
            synthesis.frame(t, &mut values);
        }
        synthesis.sound()
    }
}

/// From a sound to frames.
struct Analysis<'a> {
    stft: &'a Stft,
    sound: &'a [f64],
    buffer: Vec<f64>,
    scratch: Vec<Complex<f64>>,
}

impl<'a> Analysis<'a> {
    fn new(stft: &'a Stft, sound: &'a [f64]) -> Self {
        Self {
            stft,
            sound,
            buffer: vec![0.0; stft.frame],
            scratch: stft.transforms.0.make_scratch_vec(),
        }
    }

    /// The amplitudes of frame `t`.
    fn frame(&mut self, t: usize, out: &mut [Complex<f64>]) {
        let stft = self.stft;
        for (n, (x, w)) in self.buffer.iter_mut().zip(&stft.window).enumerate() {
            let sample = (t * stft.hop + n).checked_sub(stft.lead());
            *x = w * sample
                .and_then(|at| self.sound.get(at))
                .copied()
                .unwrap_or(0.0);
        }
        // The lengths are the plan's own.
        let plan = &stft.transforms.0;
        let done = plan.process_with_scratch(&mut self.buffer, out, &mut self.scratch);
        debug_assert!(done.is_ok());
    }
}

/// From frames to a sound.
struct Synthesis<'a> {
    stft: &'a Stft,
    sum: Vec<f64>,
    /// Sum of the squared windows.
    weight: Vec<f64>,
    buffer: Vec<f64>,
    scratch: Vec<Complex<f64>>,
}

impl<'a> Synthesis<'a> {
    fn new(stft: &'a Stft, samples: usize) -> Self {
        Self {
            stft,
            sum: vec![0.0; samples],
            weight: vec![0.0; samples],
            buffer: vec![0.0; stft.frame],
            scratch: stft.transforms.1.make_scratch_vec(),
        }
    }

    /// Adds the frame `t` with these amplitudes, which are overwritten.
    fn frame(&mut self, t: usize, values: &mut [Complex<f64>]) {
        let stft = self.stft;
        let last = values.len() - 1;
        // A real signal has no phase there.
        values[0].im = 0.0;
        values[last].im = 0.0;
        let plan = &stft.transforms.1;
        let done = plan.process_with_scratch(values, &mut self.buffer, &mut self.scratch);
        debug_assert!(done.is_ok());
        for (n, (x, w)) in self.buffer.iter().zip(&stft.window).enumerate() {
            if let Some(at) = (t * stft.hop + n).checked_sub(stft.lead())
                && at < self.sum.len()
            {
                self.sum[at] += w * x / stft.frame as f64;
                self.weight[at] += w * w;
            }
        }
    }

    fn sound(mut self) -> Vec<f64> {
        for (x, w) in self.sum.iter_mut().zip(&self.weight) {
            *x /= w;
        }
        self.sum
    }
}

/// `(1 - cos(2πn/N))/2`.
pub(crate) fn hann(n: usize) -> Vec<f64> {
    let value = |i: usize| 0.5 - 0.5 * (TAU * i as f64 / n as f64).cos();
    (0..n).map(value).collect()
}
