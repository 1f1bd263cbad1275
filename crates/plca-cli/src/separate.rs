//! `plca separate`: one sound per component of a model of a spectrogram.

use std::path::Path;

use plca_media::{Sound, Spectrum, Stft, read_sound, soft_masks, write_wav};

use crate::args::SeparateArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::outputs::writable;
use crate::saved::Saved;
use crate::spectrogram::hop;

pub(crate) fn run(args: &SeparateArgs) -> Result<(), Failure> {
    let output = args.output.as_path();
    writable(output, &[])?;
    if output.exists() && !output.is_dir() {
        return Err(Failure::of(output, "is no folder"));
    }
    let (kind, file) = Saved::read(&args.model)?;
    let model = kind.approximation(file)?;
    let shape = model.shape();
    let bad = |what: String| Failure::of(&args.model, what);
    let (bins, frames) = match shape[..] {
        [bins, frames] if bins > 1 => (bins, frames),
        _ => {
            return Err(bad(format!(
                "models data of shape {shape:?}, no spectrogram"
            )));
        }
    };
    if model.components() == 0 {
        let name = kind.name();
        return Err(bad(format!(
            "holds the model `{name}`, whose components are no parts of a sound"
        )));
    }
    let frame = 2 * (bins - 1);
    let hop = hop(args.hop, frame);
    let stft = Stft::new(frame, hop)?;
    let sound = read_sound(&args.sound)?;
    let spectra: Vec<Spectrum> = sound.channels.iter().map(|c| stft.forward(c)).collect();
    let got = spectra.first().map_or(0, Spectrum::frames);
    if got != frames {
        let what = format!(
            "has {got} frames of {frame} samples every {hop}, the model {frames}; --hop says every how many"
        );
        return Err(Failure::of(&args.sound, what));
    }
    let magnitudes = (0..model.components()).map(|z| model.component(z));
    let magnitudes = magnitudes.collect::<Result<Vec<_>, _>>()?;
    let masked = spectra.iter().map(|s| soft_masks(s, &magnitudes));
    let masked = masked.collect::<Result<Vec<_>, _>>()?;
    let samples = sound.channels.first().map_or(0, Vec::len);
    let part = |z: usize| -> Result<Sound, Failure> {
        let channels = masked.iter().map(|parts| stft.inverse(&parts[z], samples));
        Ok(Sound {
            rate: sound.rate,
            channels: channels.collect::<Result<_, _>>()?,
        })
    };
    leave(output, magnitudes.len(), part)
}

/// Writes all sounds or none: first into a folder beside the target, from where they are moved.
fn leave(
    output: &Path,
    components: usize,
    part: impl Fn(usize) -> Result<Sound, Failure>,
) -> Result<(), Failure> {
    let failure = |e| Failure::of(output, e);
    let beside = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = |z: usize| format!("component_{z}.wav");
    // Also while the folder is filled: an interruption would leave it behind.
    interrupt::writing(|| {
        let folder = tempfile::tempdir_in(beside).map_err(failure)?;
        for z in 0..components {
            write_wav(&folder.path().join(name(z)), &part(z)?)?;
        }
        std::fs::create_dir_all(output).map_err(failure)?;
        (0..components)
            .try_for_each(|z| std::fs::rename(folder.path().join(name(z)), output.join(name(z))))
            .map_err(failure)
    })
}
