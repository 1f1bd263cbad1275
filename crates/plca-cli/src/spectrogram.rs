//! `plca spectrogram`: the magnitudes of a sound, as data for a model.

use std::path::Path;

use plca_io::{Array, ModelFile};
use plca_media::{Sound, Stft, read_sound};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::args::SpectrogramArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::outputs::{tell, warn, writable};

/// Share of the power of channels that have nothing in common below which their mean has lost too much of it.
const CANCELLED: f64 = 1.0 / 3.0;

/// What to say of channels that cancel each other in their mean.
pub(crate) fn cancelled(sound: &Sound, mean: &[f64]) -> Option<String> {
    let power = |samples: &[f64]| samples.iter().map(|x| x * x).sum::<f64>();
    let channels = sound.channels.len() as f64;
    // Of channels that have nothing in common the mean has one part in as many of the mean power.
    let usual = sound.channels.iter().map(|c| power(c)).sum::<f64>() / channels / channels;
    let left = power(mean) / usual;
    (left < CANCELLED).then(|| {
        format!(
            "the channels cancel each other: their mean has {:.1} % of the power that it would have if they were unrelated; invert the sign of one of them, or take a channel alone",
            100.0 * left
        )
    })
}

/// What a spectrogram in `.npz` says of its sound, and a model of it in its metadata, `sound`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// Samples in a second.
    pub(crate) rate: u32,
    /// Samples in a frame.
    pub(crate) frame: usize,
    /// Samples between the starts of two frames.
    pub(crate) hop: usize,
}

impl Recorded {
    /// The frequency of a row, in Hz.
    pub(crate) fn frequency(&self, row: usize) -> f64 {
        row as f64 * f64::from(self.rate) / self.frame as f64
    }

    /// The second of the middle of a frame.
    pub(crate) fn second(&self, frame: f64) -> f64 {
        ((frame + 1.0) * self.hop as f64 - self.frame as f64 / 2.0) / f64::from(self.rate)
    }
}

/// The sound of whose spectrogram a file is, or a model is, where that is known.
pub(crate) type Source<'a> = (&'a Path, Option<Recorded>);

/// Refuses data of a sound that cannot be compared with the sound of a model: their frequencies are other ones, of `shifted` kernels also their frames.
pub(crate) fn comparable(
    (data, here): Source<'_>,
    (model, there): Source<'_>,
    shifted: bool,
) -> Result<(), Failure> {
    let (Some(here), Some(there)) = (here, there) else {
        return Ok(());
    };
    let of = model.display();
    let what = if here.rate != there.rate {
        format!(
            "has {} samples a second, the sound of {of} has {}: expected the same rate, by sox or librosa.resample for instance",
            here.rate, there.rate
        )
    } else if here.frame != there.frame {
        format!(
            "has frames of {} samples, the sound of {of} has {}: expected a spectrogram with --frame {}",
            here.frame, there.frame, there.frame
        )
    } else if shifted && here.hop != there.hop {
        format!(
            "has a frame every {} samples, the sound of {of} has one every {}: expected --hop {}, since kernels last as many frames as in the fit",
            here.hop, there.hop, there.hop
        )
    } else {
        return Ok(());
    };
    Err(Failure::of(data, what))
}

/// What the metadata of a file say of a sound.
pub(crate) fn recorded(metadata: &Value) -> Option<Recorded> {
    Recorded::deserialize(&metadata["sound"]).ok()
}

/// Whether a file has the ending of a sound.
pub(crate) fn is_sound(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    let known = ["wav", "flac", "mp3", "ogg", "m4a", "aac"];
    known
        .iter()
        .any(|sound| extension.eq_ignore_ascii_case(sound))
}

/// The hop where none is given: a quarter of a frame.
pub(crate) fn hop(given: Option<usize>, frame: usize) -> usize {
    given.unwrap_or(frame / 4)
}

pub(crate) fn run(args: &SpectrogramArgs) -> Result<(), Failure> {
    writable(&args.output, &["npy", "npz"])?;
    let hop = hop(args.hop, args.frame);
    let stft = Stft::new(args.frame, hop)?;
    let sound = read_sound(&args.sound)?;
    let (rate, mixed) = (f64::from(sound.rate), sound.mixed());
    let spectrum = stft.forward(&mixed);
    let spectrum = spectrum.map_err(|e| Failure::from(e).about(&args.sound))?;
    let cancelled = cancelled(&sound, &mixed);
    warn(false, cancelled.as_slice());
    let shape = vec![spectrum.bins(), spectrum.frames()];
    let array = Array::new(shape, spectrum.magnitudes());
    let summary = format!(
        "{rate} Hz, {} frequencies x {} frames: {:.4} Hz a row, {:.4} ms a frame\n",
        spectrum.bins(),
        spectrum.frames(),
        rate / args.frame as f64,
        1e3 * hop as f64 / rate
    );
    interrupt::writing(|| match args.output.extension() {
        Some(npz) if npz.eq_ignore_ascii_case("npz") => {
            let sound = Recorded {
                rate: sound.rate,
                frame: args.frame,
                hop,
            };
            let file = ModelFile {
                arrays: [("spectrogram".to_string(), array)].into(),
                metadata: json!({ "sound": sound }),
            };
            plca_io::write_model(&args.output, &file, false)
        }
        _ => plca_io::write_npy(&args.output, &array),
    })?;
    match args.piped {
        true => Ok(()),
        false => tell(&summary, &args.output),
    }
}
