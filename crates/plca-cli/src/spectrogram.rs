//! `plca spectrogram`: the magnitudes of a sound, as data for a model.

use plca_io::Array;
use plca_media::{Stft, read_sound};

use crate::args::SpectrogramArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::outputs::writable;

/// The hop where none is given: a quarter of a frame.
pub(crate) fn hop(given: Option<usize>, frame: usize) -> usize {
    given.unwrap_or(frame / 4)
}

pub(crate) fn run(args: &SpectrogramArgs) -> Result<(), Failure> {
    writable(&args.output, &["npy"])?;
    let stft = Stft::new(args.frame, hop(args.hop, args.frame))?;
    let sound = read_sound(&args.sound)?.mixed();
    let spectrum = stft.forward(&sound);
    let spectrum = spectrum.map_err(|e| Failure::from(e).about(&args.sound))?;
    let shape = vec![spectrum.bins(), spectrum.frames()];
    let array = Array::new(shape, spectrum.magnitudes());
    Ok(interrupt::writing(|| {
        plca_io::write_npy(&args.output, &array)
    })?)
}
