//! Sound files.

use std::fs::File;
use std::io::{Cursor, Write};
use std::path::Path;

use plca_io::write_atomically;

use crate::MediaError;
use crate::decode::{ENDINGS, decode};
use crate::error::ending;

/// Samples per second and, for every channel, its samples; full scale is 1.
///
/// ```
/// let sound = plca_media::Sound { rate: 8000, channels: vec![vec![0.0; 2000], vec![0.0; 2000]] };
/// let seconds = sound.channels[0].len() as f64 / f64::from(sound.rate);
/// assert_eq!(seconds, 0.25);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// Samples per second.
    pub rate: u32,
    /// All of one length.
    pub channels: Vec<Vec<f64>>,
}

impl Sound {
    /// A sound of one channel, at `rate` samples per second.
    ///
    /// ```
    /// let sound = plca_media::Sound::mono(8000, vec![0.5, -0.5]);
    /// assert_eq!((sound.channels.len(), sound.mixed()), (1, vec![0.5, -0.5]));
    /// ```
    pub fn mono(rate: u32, samples: Vec<f64>) -> Self {
        Self {
            rate,
            channels: vec![samples],
        }
    }

    /// Mean of the channels.
    ///
    /// ```
    /// let sound = plca_media::Sound { rate: 8000, channels: vec![vec![1.0, 0.0], vec![0.0, 0.0]] };
    /// assert_eq!(sound.mixed(), [0.5, 0.0]);
    /// ```
    pub fn mixed(&self) -> Vec<f64> {
        let mut sum = vec![0.0; self.channels.first().map_or(0, Vec::len)];
        for channel in &self.channels {
            sum.iter_mut().zip(channel).for_each(|(s, x)| *s += x);
        }
        let n = self.channels.len() as f64;
        sum.iter_mut().for_each(|s| *s /= n);
        sum
    }
}

/// Samples of all channels together that are read at most: 2 GiB in memory.
const MAX_SAMPLES: u64 = 1 << 28;

/// Reads a sound, by its ending `.wav` (integers of 8 to 32 bits, floats of 32 and 64 bits, A-law and µ-law, also in RF64) or `.flac`; with the feature `compressed-sound` also
/// `.mp3`, `.ogg` (Vorbis), `.m4a` and `.aac`.
///
/// Full scale is 1, as in libsndfile: valid bits are on top of their container. Chunks before the samples may have any size.
///
/// # Errors
///
/// [`MediaError`]: another ending, a file that cannot be opened or decoded, no samples, more than 2^28 of them, channels of
/// different length, a sample that is not finite.
///
/// # Examples
///
/// ```
/// use plca_media::{Sound, read_sound};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("half.wav");
/// let spec = hound::WavSpec { channels: 1, sample_rate: 8000, bits_per_sample: 16, sample_format: hound::SampleFormat::Int };
/// let mut file = hound::WavWriter::create(&path, spec)?;
/// file.write_sample(16384i16)?;
/// file.finalize()?;
/// assert_eq!(read_sound(&path)?, Sound::mono(8000, vec![0.5]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_sound(path: impl AsRef<Path>) -> Result<Sound, MediaError> {
    sound_of(path.as_ref())
}

fn sound_of(path: &Path) -> Result<Sound, MediaError> {
    let fault = |what: String| MediaError::file(path, what);
    let file = plca_io::open_file(path)?;
    let (rate, channels, samples) = decoded(file, &ending(path)).map_err(fault)?;
    let count = samples.len();
    if count == 0 {
        return Err(fault("holds no samples".into()));
    }
    if rate == 0 || channels == 0 {
        let what = format!("{count} samples in {channels} channels at {rate} Hz are not a sound");
        return Err(fault(what));
    }
    if !count.is_multiple_of(channels) {
        let what = format!("ends within sample {}", count / channels);
        return Err(fault(what));
    }
    if let Some(at) = samples.iter().position(|x| !x.is_finite()) {
        let (sample, channel, value) = (at / channels, at % channels, samples[at]);
        let what = format!("sample {sample} of channel {channel} is {value}");
        return Err(fault(what));
    }
    let channel = |c: usize| samples[c..].iter().step_by(channels).copied().collect();
    Ok(Sound {
        rate,
        channels: (0..channels).map(channel).collect(),
    })
}

fn decoded(file: File, ending: &str) -> Result<Decoded, String> {
    if ENDINGS.contains(&ending) {
        return plca_io::guarded(|| decode(file, ending));
    }
    let more = match ending {
        "aiff" | "aif" | "wma" | "opus" => ": save it as .wav first",
        "mp3" | "ogg" | "m4a" | "aac" => ": a build with `--features compressed-sound` reads it",
        _ => "",
    };
    let known = ENDINGS.join(", .");
    Err(format!("`.{ending}` is not one of .{known}{more}"))
}

/// Rate, number of channels, interleaved samples.
pub(crate) type Decoded = (u32, usize, Vec<f64>);

/// Refuses more samples of all channels together than are read.
pub(crate) fn too_long(samples: u64, channels: usize, rate: u32) -> Result<(), String> {
    if samples <= MAX_SAMPLES {
        return Ok(());
    }
    let minutes =
        |samples: u64| samples as f64 / (channels.max(1) as f64 * f64::from(rate.max(1)) * 60.0);
    Err(format!(
        "lasts {:.0} minutes or more, {samples} samples of all channels: at most {MAX_SAMPLES} are read, here {:.0} minutes; cut it, or take a lower rate",
        minutes(samples),
        minutes(MAX_SAMPLES)
    ))
}

/// Writes a sound as `.wav` with 32-bit floats, which hold any loudness and lose less than 1e-7 of it.
///
/// # Errors
///
/// [`MediaError::File`]: no samples, channels of different length, a rate or size that the format cannot hold, a
/// full disk ([`MediaError::Io`]). Nothing is left behind then.
///
/// # Examples
///
/// ```
/// use plca_media::{Sound, read_sound, write_wav};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("stereo.wav");
/// let sound = Sound { rate: 8000, channels: vec![vec![0.5, -0.25], vec![3.0, 0.0]] };
/// write_wav(&path, &sound)?;
/// assert_eq!(read_sound(&path)?, sound);                              // nothing is cut off at 1
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_wav(path: impl AsRef<Path>, sound: &Sound) -> Result<(), MediaError> {
    let path = path.as_ref();
    let bytes = encode_wav(path, sound)?;
    Ok(write_atomically(path, |file| file.write_all(&bytes))?)
}

/// The bytes that [`write_wav`] writes; errors name `path`.
///
/// # Errors
///
/// As [`write_wav`].
///
/// # Examples
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("s.wav");
/// let sound = plca_media::Sound::mono(8000, vec![0.5]);
/// plca_media::write_wav(&path, &sound)?;
/// assert_eq!(std::fs::read(&path)?, plca_media::encode_wav(&path, &sound)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn encode_wav(path: &Path, sound: &Sound) -> Result<Vec<u8>, MediaError> {
    let samples = sound.channels.first().map_or(0, Vec::len);
    if samples == 0 || sound.channels.iter().any(|c| c.len() != samples) {
        let what = "channels without samples or of different length";
        return Err(MediaError::file(path, what));
    }
    if sound.rate == 0 {
        return Err(MediaError::file(path, "a rate of 0 Hz"));
    }
    // Bytes of all channels at a time, which the head holds in 16 bits.
    if 4 * sound.channels.len() > usize::from(u16::MAX) {
        let what = format!(
            "{} channels are more than the format holds",
            sound.channels.len()
        );
        return Err(MediaError::file(path, what));
    }
    let spec = hound::WavSpec {
        channels: u16::try_from(sound.channels.len()).map_err(|e| MediaError::file(path, e))?,
        sample_rate: sound.rate,
        bits_per_sample: 32,
        sample_format: hound::SampleFormat::Float,
    };
    // Bytes of a second, which the head holds.
    if sound
        .rate
        .checked_mul(4 * u32::from(spec.channels))
        .is_none()
    {
        let what = format!("{} channels at {} Hz", spec.channels, sound.rate);
        return Err(MediaError::file(
            path,
            format!("{what} are more than the format holds"),
        ));
    }
    if samples.saturating_mul(4 * sound.channels.len()) > u32::MAX as usize - 1024 {
        return Err(MediaError::file(path, "more than 4 GiB of samples"));
    }
    let encode = |bytes: &mut Vec<u8>| -> Result<(), hound::Error> {
        let mut writer = hound::WavWriter::new(Cursor::new(bytes), spec)?;
        for n in 0..samples {
            for channel in &sound.channels {
                writer.write_sample(channel[n] as f32)?;
            }
        }
        writer.finalize()
    };
    let mut bytes = Vec::new();
    encode(&mut bytes).map_err(|e| MediaError::file(path, e))?;
    Ok(bytes)
}
