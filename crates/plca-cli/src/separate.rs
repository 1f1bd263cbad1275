//! `plca separate`: one sound per component of a model of a spectrogram.

use std::io::Write;
use std::path::{Path, PathBuf};

use plca_io::Pending;
use plca_media::{SoftMasks, Sound, Stft, encode_wav, read_sound};

use crate::args::SeparateArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::outputs::{warn, writable};
use crate::saved::Saved;
use crate::spectrogram::hop;

pub(crate) fn run(args: &SeparateArgs) -> Result<(), Failure> {
    let output = args.output.as_path();
    if output.is_dir() {
        writable(&place(output, 0), &[])?;
    } else if output.exists() {
        return Err(Failure::of(output, "is not a folder"));
    } else {
        writable(output, &[])?;
    }
    let (kind, file) = Saved::read(&args.model)?;
    let model = kind.approximation(file)?;
    let shape = model.shape();
    let bad = |what: String| Failure::of(&args.model, what);
    let (bins, frames) = match shape[..] {
        [bins, frames] if bins > 1 => (bins, frames),
        _ => {
            let what = format!(
                "is a model of data of shape {shape:?}; expected a model of a file that plca spectrogram wrote"
            );
            return Err(bad(what));
        }
    };
    let components = model.components();
    if components == 0 {
        let name = kind.name();
        return Err(bad(format!(
            "holds the model `{name}`, whose components are not parts of a sound; expected another model, such as nmf-kl"
        )));
    }
    let frame = 2 * (bins - 1);
    let hop = hop(args.hop, frame);
    let stft = Stft::new(frame, hop)?;
    let sound = read_sound(&args.sound)?;
    let samples = sound.channels.first().map_or(0, Vec::len);
    let got = stft.frames(samples);
    if got != frames {
        let what = format!(
            "{samples} samples give {got} frames of {frame} samples every {hop}, but {} has {frames} frames: expected the sound and the --hop of its spectrogram",
            args.model.display()
        );
        return Err(Failure::of(&args.sound, what));
    }
    let magnitudes = |z| model.component(z);
    let masks = SoftMasks::new(components, bins * frames, magnitudes);
    let masks = masks.map_err(|e: Failure| e.about(&args.model))?;
    let part = |z: usize| -> Result<Sound, Failure> {
        let magnitudes = magnitudes(z)?;
        let channels = sound.channels.iter();
        let channels = channels.map(|channel| masks.part(&stft, channel, &magnitudes));
        Ok(Sound {
            rate: sound.rate,
            channels: channels.collect::<Result<_, _>>()?,
        })
    };
    // Also while files are filled: an interruption would leave them behind.
    interrupt::writing(|| {
        let made = !output.exists();
        if made {
            std::fs::create_dir(output).map_err(|e| Failure::by(output, e))?;
        }
        leave(output, components, part).inspect_err(|_| {
            if made {
                // Nothing is in it.
                let _ = std::fs::remove_dir(output);
            }
        })
    })?;
    let stale = (components..).map(|z| place(output, z));
    let stale = stale.take_while(|path| path.exists()).count();
    if stale > 0 {
        let (first, last) = (components, components + stale - 1);
        let what = format!(
            "{}: component_{first}.wav to component_{last}.wav come from another run",
            output.display()
        );
        warn(false, &[what]);
    }
    Ok(())
}

/// The file of a component.
fn place(folder: &Path, z: usize) -> PathBuf {
    folder.join(format!("component_{z}.wav"))
}

/// Writes all sounds, and only then gives any its name.
fn leave(
    folder: &Path,
    components: usize,
    part: impl Fn(usize) -> Result<Sound, Failure>,
) -> Result<(), Failure> {
    let paths: Vec<PathBuf> = (0..components).map(|z| place(folder, z)).collect();
    let pending = paths.iter().map(|path| Pending::new(path));
    let mut pending = pending.collect::<Result<Vec<_>, _>>()?;
    for (z, (path, file)) in paths.iter().zip(&mut pending).enumerate() {
        if interrupt::requested() {
            return Err(interrupt::failure());
        }
        let bytes = encode_wav(path, &part(z)?)?;
        file.write(|w| w.write_all(&bytes))?;
    }
    Ok(pending.into_iter().try_for_each(Pending::keep)?)
}
